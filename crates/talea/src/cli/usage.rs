//! What the processors' time went into, as tables.

use super::output::{Sheet, length};
use talea_time::Duration;
use talea_trace::usage::{NodeUsage, OperationUsage, Spread, UsageReport};

/// Programs named one by one.
const PROGRAMS: usize = 8;

/// A table per node.
pub fn text(usage: &UsageReport) -> String {
    let nodes: Vec<String> = usage.nodes.iter().map(|node| self::node(usage, node)).collect();
    nodes.join("\n\n")
}

fn node(usage: &UsageReport, node: &NodeUsage) -> String {
    let mut sheet = Sheet::new(1, &["", "time", "share", "events"]);
    let whole_ns = node.available_ns.max(1) as f64;
    let mut row = |what: String, ns: i64, events: Option<u64>| {
        sheet.row(vec![
            what,
            length(ns),
            format!("{:.2} %", ns as f64 / whole_ns * 100.0),
            events.map_or(String::new(), |events| events.to_string()),
        ]);
    };
    let jobs_of = |index: usize| usage.operations.get(index);
    row("execution".into(), node.execution_ns, None);
    for (index, ns) in &node.execution {
        let operation = jobs_of(*index);
        let name = operation.map_or_else(|| format!("operation {index}"), |operation| operation.name.clone());
        row(format!("  {name}"), *ns, operation.map(|operation| operation.jobs));
    }
    row("overhead".into(), node.overhead_ns, None);
    for cost in node.costs.iter().filter(|cost| cost.count > 0 || cost.ns > 0) {
        row(format!("  {}", format!("{:?}", cost.kind).to_lowercase()), cost.ns, Some(cost.count));
    }
    if node.not_broken_down_ns > 0 {
        row("  not broken down".into(), node.not_broken_down_ns, None);
    }
    if usage.has_kernel {
        row("interrupts".into(), node.interrupts_ns, None);
        row("other programs".into(), node.programs_ns, None);
        for program in node.programs.iter().take(PROGRAMS) {
            let name = program.name.as_deref().unwrap_or("thread");
            row(format!("  {name} ({})", program.thread), program.ns, None);
        }
    }
    if node.unobserved_ns > 0 {
        row("threads that are not observed".into(), node.unobserved_ns, None);
    }
    if node.withheld_ns > 0 {
        row("withheld by the kernel".into(), node.withheld_ns, None);
    }
    row("idle".into(), node.idle_ns, None);
    if node.unknown_ns > 0 {
        row("unknown, lost or unheard".into(), node.unknown_ns, None);
    }
    format!("{}\n{}\n{}", node.name, sheet.render(), closing(usage, node))
}

/// Whether the accounts close, and what they leave open.
fn closing(usage: &UsageReport, node: &NodeUsage) -> String {
    let processors = if node.processors == 1 { "processor" } else { "processors" };
    let mut text = format!(
        "sum: {} of {} ({} {processors} for {}), error {}",
        exact(node.available_ns - node.error_ns),
        exact(node.available_ns),
        node.processors,
        exact(node.duration_ns),
        exact(node.error_ns),
    );
    let mut remarks = Vec::new();
    if node.unplaced_ns > 0 {
        remarks.push(format!(
            "costs of {} overlapped with other jobs and are in theirs",
            length(node.unplaced_ns)
        ));
    }
    if node.ambiguous_ns > 0 {
        let time = length(node.ambiguous_ns);
        remarks.push(format!("in {time} of execution several jobs shared a processor unseen"));
    }
    if usage.has_kernel && !node.has_threads {
        remarks.push(
            "no record says which of the kernel's threads are those of the lanes: execution is what the jobs say".into(),
        );
    }
    if !usage.has_costs {
        remarks.push("no costs are recorded: they are within execution and idle".into());
    } else if !usage.has_wakes && !usage.has_kernel {
        remarks.push("idle is what no record tells of".into());
    }
    for remark in remarks {
        text.push_str(&format!("\n  {remark}"));
    }
    text
}

/// A row per operation: least, mean and greatest of what a job took.
pub fn jobs(usage: &UsageReport) -> String {
    let mut sheet = Sheet::new(
        1,
        &[
            "per job",
            "jobs",
            "execution min",
            "mean",
            "max",
            "overhead min",
            "mean",
            "max",
            "response min",
            "mean",
            "max",
        ],
    );
    for OperationUsage { name, jobs, execution, overhead, response, .. } in &usage.operations {
        let mut row = vec![name.clone(), jobs.to_string()];
        for spread in [execution, overhead, response] {
            row.extend(cells(*jobs, spread));
        }
        sheet.row(row);
    }
    sheet.render()
}

fn cells(jobs: u64, spread: &Spread) -> [String; 3] {
    let values = [spread.min_ns, spread.mean_ns, spread.max_ns];
    if jobs == 0 { ["-"; 3].map(String::from) } else { values.map(length) }
}

fn exact(ns: i64) -> String {
    Duration::from_nanos(ns).to_string()
}
