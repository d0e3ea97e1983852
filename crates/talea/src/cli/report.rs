//! A run's report as a table worth reading.

mod hierarchy;

use super::output::Sheet;
use talea_time::Duration;
use talea_trace::Origin;
use talea_trace::accounting::{Distribution, LaneReport, Report, TaskReport};

/// The whole report as text.
pub fn text(report: &Report) -> String {
    let mut parts = Vec::new();
    if report.tasks.iter().any(|task| task.activity.is_task()) {
        parts.push(tasks(report));
        parts.push(format!("\noperations\n{}", operations(report)));
        parts.push(format!("\nlanes\n{}\n", lanes(report)));
    }
    if report.tasks.iter().any(|task| !task.activity.is_task()) {
        parts.push(format!("{}\n", hierarchy::threads(report)));
    }
    for hierarchy in &report.hierarchies {
        parts.push(format!("{}\n", hierarchy::promises(hierarchy)));
    }
    parts.push(summary(report));
    parts.extend(warnings(report));
    parts.join("\n")
}

fn tasks(report: &Report) -> String {
    let mut sheet = Sheet::new(
        2,
        &[
            "task",
            "kind",
            "period",
            "deadline",
            "released",
            "completed",
            "met",
            "missed",
            "skipped",
            "aborted",
            "min",
            "p50",
            "p99",
            "p99.9",
            "max",
        ],
    );
    for task in report.tasks.iter().filter(|task| task.activity.is_task()) {
        let mut row = vec![
            task.name.clone(),
            kind(task).into(),
            exact(task.period_ns),
            exact(task.deadline_ns),
            task.released.to_string(),
            task.completed.to_string(),
            task.met.to_string(),
            count(task.missed),
            count(task.skipped),
            count(task.aborted),
        ];
        row.extend(spread(task.response_ns.as_ref()));
        sheet.row(row);
    }
    sheet.render()
}

/// Every operation; those that are tasks of their own have their response times above.
fn operations(report: &Report) -> String {
    let mut sheet = Sheet::new(
        2,
        &[
            "operation",
            "lane",
            "released",
            "completed",
            "met",
            "missed",
            "preempted",
            "release p50",
            "p99",
            "max",
            "response p50",
            "p99",
            "max",
        ],
    );
    let of_tasks = report.operations.iter().filter(|operation| !is_thread(&report.lanes[operation.lane]));
    for operation in of_tasks {
        let mut row = vec![
            operation.name.clone(),
            report.lanes[operation.lane].label.clone(),
            operation.released.to_string(),
            operation.completed.to_string(),
            operation.met.to_string(),
            count(operation.missed),
            count(operation.preemptions),
        ];
        row.extend(middle(operation.release_lateness_ns.as_ref()));
        row.extend(middle(operation.response_ns.as_ref()));
        sheet.row(row);
    }
    sheet.render()
}

fn lanes(report: &Report) -> String {
    let mut sheet =
        Sheet::new(4, &["node", "level", "lane", "order", "jobs", "used", "max queue", "preempted"]);
    for (index, lane) in report.lanes.iter().enumerate().filter(|(_, lane)| !is_thread(lane)) {
        let members = report.operations.iter().filter(|operation| operation.lane == index);
        let mut row = lane_cells(report, lane);
        row.push(count(members.map(|operation| operation.preemptions).sum()));
        sheet.row(row);
    }
    sheet.render()
}

/// A share of a node's processors in percent; `-` where it was not measured: without real-time priorities, and where the kernel
/// schedules a hierarchy by itself, it shares processors unseen, and a started job may not be running.
fn used(report: &Report, node: &str, share: f64) -> String {
    match report.origin {
        Origin::Threads { realtime: false } => "-".into(),
        _ if !is_seen(report, node) => "-".into(),
        _ => format!("{:.1} %", share.abs() * 100.0),
    }
}

/// How often jobs of a node were preempted, if that was seen.
fn preemptions(report: &Report, node: &str, preemptions: u64) -> String {
    if is_seen(report, node) { count(preemptions) } else { "not seen".into() }
}

/// Whether the records say who had the node's processors.
fn is_seen(report: &Report, node: &str) -> bool {
    report.nodes.iter().any(|entry| entry.name == node && entry.switches.are_recorded())
}

/// Whether it is the place of a thread in a hierarchy.
fn is_thread(lane: &LaneReport) -> bool {
    lane.discipline == "thread"
}

fn lane_cells(report: &Report, lane: &LaneReport) -> Vec<String> {
    vec![
        lane.node.clone(),
        lane.level.to_string(),
        lane.label.clone(),
        lane.discipline.clone(),
        lane.jobs.to_string(),
        used(report, &lane.node, lane.utilisation),
        lane.max_queue.to_string(),
    ]
}

fn summary(report: &Report) -> String {
    let total = |critical: bool| {
        let of_kind = report.tasks.iter().filter(|task| task.activity.is_task() && task.critical == critical);
        of_kind.fold((0, 0), |(met, offered), task| {
            (met + task.met, offered + task.met + task.missed + task.skipped)
        })
    };
    let (hard_met, hard) = total(true);
    let (soft_met, soft) = total(false);
    let samples = &report.samples;
    let mut lines = Vec::new();
    for node in &report.nodes {
        lines.push(format!(
            "node {}: {} of {} processor(s) used, {} switches, {} preemptions",
            node.name,
            used(report, &node.name, node.utilisation),
            node.processors,
            if is_seen(report, &node.name) { node.context_switches.to_string() } else { "-".into() },
            if is_seen(report, &node.name) { node.preemptions.to_string() } else { "-".into() },
        ));
    }
    if hard > 0 {
        lines.push(format!(
            "hard deadlines: {hard_met} of {hard} met{}",
            if hard_met == hard { "" } else { "  <-- MISSED" }
        ));
    }
    if soft > 0 {
        lines.push(format!("soft deadlines: {soft_met} of {soft} met"));
        let efficiency = samples.mean_efficiency.map_or("-".into(), |mean| format!("{:.1} %", mean * 100.0));
        lines.push(format!(
            "per sample of {}: effectiveness {:.1} soft deadlines, efficiency {efficiency} ({} of {} samples with a hard miss)",
            exact(samples.sample_ns),
            samples.mean_effectiveness,
            samples.samples_with_critical_failure,
            samples.samples,
        ));
    }
    lines.join("\n")
}

fn warnings(report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    let tasks = report.tasks.iter().filter(|task| task.activity.is_task());
    let never: u64 = tasks.map(|task| task.released - task.completed - task.aborted).sum();
    if never > 0 {
        warnings.push(format!(
            "{never} released instances had not ended at the end; response times are of those that had"
        ));
    }
    if report.lost_records > 0 {
        warnings.push(format!(
            "warning: {} records were lost; the numbers above are incomplete",
            report.lost_records
        ));
    }
    if report.unknown_records > 0 {
        warnings.push(format!("warning: {} records of unknown kind were ignored", report.unknown_records));
    }
    warnings
}

fn kind(task: &TaskReport) -> &'static str {
    if task.critical { "hard" } else { "soft" }
}

/// A count whose absence is good news.
fn count(count: u64) -> String {
    if count == 0 { "-".into() } else { count.to_string() }
}

fn spread(distribution: Option<&Distribution>) -> [String; 5] {
    match distribution {
        Some(d) => [d.min, d.p50, d.p99, d.p99_9, d.max].map(rounded),
        None => ["-"; 5].map(String::from),
    }
}

fn middle(distribution: Option<&Distribution>) -> [String; 3] {
    match distribution {
        Some(d) => [d.p50, d.p99, d.max].map(rounded),
        None => ["-"; 3].map(String::from),
    }
}

fn rounded(ns: i64) -> String {
    Duration::from_nanos(ns).rounded().to_string()
}

fn exact(ns: i64) -> String {
    Duration::from_nanos(ns).to_string()
}
