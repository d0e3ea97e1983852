//! What the processors' time went into, as tables.

use super::artefacts::SEE_SHARING;
use super::output::{Sheet, exact, length, wrap};
use talea_insight::usage::{
    CostUsage, Dispatching, NodeUsage, OperationUsage, Spread, UsageReport, WithheldBy, WithheldUsage,
};
use talea_record::{CostKind, RecordedEvents};

/// Programs named one by one.
const PROGRAMS: usize = 8;

/// A table per node.
pub fn text(usage: &UsageReport) -> String {
    let nodes: Vec<String> = usage.nodes.iter().map(|node| self::node(usage, node)).collect();
    nodes.join("\n\n")
}

/// What is printed for a figure that is unknown.
const UNTOLD: &str = "not recorded";
/// And for one that depends on which of several jobs ran, if that was not recorded.
const UNSEEN: &str = "?";

fn is_shared(node: &NodeUsage) -> bool {
    node.shared_unseen_ns > Some(0)
}

fn node(usage: &UsageReport, node: &NodeUsage) -> String {
    let mut sheet = Sheet::new(1, &["", "time", "share", "events"]);
    let whole_ns = node.available_ns.max(1) as f64;
    let mut add = |what: String, ns: Option<i64>, without: &str, events: Option<u64>| {
        let share = |ns: i64| format!("{:.2} %", ns as f64 / whole_ns * 100.0);
        sheet.row(vec![
            what,
            ns.map_or(without.into(), length),
            ns.map_or("-".into(), share),
            events.map_or(String::new(), |events| events.to_string()),
        ]);
    };
    // Where dispatching is recorded in part, this is all that can be said.
    let bound = |what: &str, which: &str| match node.dispatching {
        Dispatching::InPart => format!("{what}, {which}"),
        _ => what.to_string(),
    };
    let execution = if is_shared(node) { "execution, at least" } else { "execution" };
    add(execution.into(), node.execution_ns, UNTOLD, None);
    for (index, ns) in &node.execution {
        let operation = usage.operations.get(*index);
        let name = operation.map_or_else(|| format!("operation {index}"), |operation| operation.name.clone());
        add(format!("  {name}"), *ns, UNSEEN, operation.and_then(|operation| operation.jobs));
    }
    let mut row = |what: String, ns: Option<i64>, events: Option<u64>| add(what, ns, UNTOLD, events);
    for member in &node.members {
        row(format!("  {}", member.name), Some(member.ns), None);
    }
    if is_shared(node) {
        row("shared unseen".into(), node.shared_unseen_ns, None);
    }
    row(bound("overhead", "at least"), node.overhead_ns, None);
    let is_told = |cost: &&CostUsage| cost.count.is_none_or(|count| count > 0) || cost.ns > Some(0);
    for cost in node.costs.iter().filter(is_told) {
        row(format!("  {}", cost_name(cost.kind)), cost.ns, cost.count);
    }
    if node.not_broken_down_ns > 0 {
        row("  not broken down".into(), Some(node.not_broken_down_ns), None);
    }
    let is_of_kernel = |name: &String| name.starts_with("kernel.");
    let is_kernel_in_question = usage.has_kernel || usage.not_recorded.iter().any(is_of_kernel);
    if is_kernel_in_question {
        row("interrupts".into(), node.interrupts_ns, None);
        let programs = if usage.has_kernel { "other programs" } else { "other programs, at least" };
        let programs = if node.programs_ns.is_some() { programs } else { "other programs" };
        let others = [
            ("the program's other threads", node.companions_ns, &node.companions),
            (programs, node.programs_ns, &node.programs),
        ];
        for (what, ns, threads) in others {
            row(what.into(), ns, None);
            for thread in threads.iter().take(PROGRAMS) {
                let name = thread.name.as_deref().unwrap_or("thread");
                row(format!("  {name} ({})", thread.thread), Some(thread.ns), None);
            }
        }
        if node.unobserved_ns > Some(0) {
            row("threads that are not observed".into(), node.unobserved_ns, None);
        }
    }
    if node.slices_ns > Some(0) {
        row("left to the kernel in slices".into(), node.slices_ns, None);
    }
    row(bound("idle", "at most"), node.idle_ns, None);
    if node.unknown_ns > 0 {
        row("unknown, lost or unheard".into(), Some(node.unknown_ns), None);
    }
    if node.unrecorded_ns > 0 {
        row("what was not recorded".into(), Some(node.unrecorded_ns), None);
    }
    if node.withheld_ns.map_or(is_kernel_in_question, |ns| ns > 0) {
        row("of all this, withheld".into(), node.withheld_ns, None);
        for WithheldUsage { by, name, ns } in node.withheld.iter().take(PROGRAMS) {
            let who = match by {
                WithheldBy::Nobody => "nobody had it".into(),
                WithheldBy::Overhead => "overhead".into(),
                WithheldBy::Thread(thread) => format!("{} ({thread})", name.as_deref().unwrap_or("thread")),
            };
            row(format!("  {who}"), Some(*ns), None);
        }
    }
    format!("{}\n{}\n{}", node.name, sheet.render(), closing(usage, node))
}

/// A job's getting a processor is a switch as well, which the nodes' lines count.
fn cost_name(kind: CostKind) -> String {
    match kind {
        CostKind::Switch => "context switches".into(),
        other => format!("{other:?}").to_lowercase(),
    }
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
    for remark in remarks(usage, node) {
        text.push_str(&format!("\n{}", wrap(&format!("  {remark}"))));
    }
    text
}

fn remarks(usage: &UsageReport, node: &NodeUsage) -> Vec<String> {
    let mut remarks = Vec::new();
    if node.unplaced_ns > 0 {
        remarks.push(format!(
            "costs of {} overlapped with other jobs and are in theirs",
            length(node.unplaced_ns)
        ));
    }
    if is_shared(node) {
        remarks.push(format!(
            "shared unseen: several jobs had begun on one processor, and nobody saw which of them ran; ? is what depends on it\n  {SEE_SHARING}"
        ));
    }
    if usage.has_kernel && !node.has_threads {
        remarks.push(
            "no record says which of the kernel's threads are those of the lanes: execution is what the jobs say".into(),
        );
    }
    if node.dispatching == Dispatching::InPart {
        remarks.push(
            "many jobs began with no record of dispatching: it was recorded for a part of the run only"
                .into(),
        );
    }
    if !usage.not_recorded.is_empty() {
        let within = match (node.execution_ns, node.idle_ns) {
            (Some(_), Some(_)) => "; what they would tell is within execution and idle",
            (Some(_), None) => "; some of what they would tell is within execution",
            _ => "",
        };
        let names = &usage.not_recorded;
        remarks.push(format!(
            "not recorded: {}{within}\n  to have them, record with {}",
            names.join(", "),
            RecordedEvents::options_for(names)
        ));
    }
    remarks
}

/// A row per operation: least, mean and greatest of what a job took.
pub fn jobs(usage: &UsageReport) -> String {
    let mut sheet = Sheet::new(
        1,
        &[
            "per job",
            "jobs",
            "execution\nmin",
            "mean",
            "max",
            "overhead\nmin",
            "mean",
            "max",
            "response\nmin",
            "mean",
            "max",
        ],
    );
    for OperationUsage { name, jobs, execution, overhead, response, .. } in &usage.operations {
        let mut row = vec![name.clone(), jobs.map_or("?".into(), |jobs| jobs.to_string())];
        for spread in [execution, overhead, response] {
            row.extend(cells(*jobs, spread.as_ref()));
        }
        sheet.row(row);
    }
    if usage.operations.iter().all(|operation| operation.jobs.is_none()) {
        let of_jobs: Vec<&str> = usage.not_recorded.iter().map(String::as_str).collect();
        return format!("what single jobs took is not known, for want of {}", of_jobs.join(", "));
    }
    sheet.render()
}

/// `?` was not recorded, `-` is none.
fn cells(jobs: Option<u64>, spread: Option<&Spread>) -> [String; 3] {
    let Some(spread) = spread else { return ["?"; 3].map(String::from) };
    let values = [spread.min_ns, spread.mean_ns, spread.max_ns];
    if jobs == Some(0) { ["-"; 3].map(String::from) } else { values.map(length) }
}
