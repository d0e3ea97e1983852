//! A run's report as a table worth reading.

mod hierarchy;

pub use hierarchy::{not_known_to_be_kept, threads};

use super::output::{Sheet, exact, wrap};
use talea_insight::accounting::{
    ChainReport, ChainTimes, Distribution, Figure, LaneReport, Report, SubscriptionReport, TaskReport,
};
use talea_record::{Origin, RecordedEvents};
use talea_time::Duration;

/// The whole report of a run that was recorded as a whole, as text.
pub fn text(report: &Report) -> String {
    text_of(report, &RecordedEvents::everything())
}

/// The report of a trace in which `told` was recorded. A figure that follows from other events is a `?`.
pub fn text_of(report: &Report, told: &RecordedEvents) -> String {
    let mut parts = Vec::new();
    if report.tasks.iter().any(|task| !task.activity.is_thread()) {
        parts.push(tasks(report, told));
        parts.push(format!("\noperations\n{}", operations(report, told)));
        parts.push(format!("\nlanes\n{}\n", lanes(report, told)));
    }
    if !report.chains.is_empty() {
        parts.push(format!("chains\n{}\n", chains(report, told)));
    }
    if !report.subscriptions.is_empty() {
        parts.push(format!("events\n{}\n", subscriptions(report, told)));
    }
    if report.tasks.iter().any(|task| task.activity.is_thread()) {
        parts.push(format!("{}\n", hierarchy::threads(report, told)));
    }
    for hierarchy in &report.hierarchies {
        parts.push(format!("{}\n", hierarchy::promises(hierarchy)));
    }
    parts.push(wrap(&summary(report, told)));
    parts.extend(warnings(report, told).iter().map(|warning| wrap(warning)));
    parts.join("\n")
}

fn tasks(report: &Report, told: &RecordedEvents) -> String {
    let headings = ["task", "kind", "period", "released", "completed", "met", "missed", "skipped", "aborted"];
    let mut counts = Sheet::new(2, &headings);
    let mut times = Sheet::new(1, &["response time", "deadline", "min", "p50", "p99", "p99.9", "max"]);
    for task in report.tasks.iter().filter(|task| !task.activity.is_thread()) {
        counts.row(vec![
            task.name.clone(),
            kind(task).into(),
            period(task),
            cell(told, Figure::Released, task.released.to_string()),
            cell(told, Figure::Completed, task.completed.to_string()),
            cell(told, Figure::Met, task.met.to_string()),
            cell(told, Figure::Missed, count(task.missed)),
            cell(told, Figure::Skipped, count(task.skipped)),
            cell(told, Figure::Aborted, count(task.aborted)),
        ]);
        let mut row = vec![task.name.clone(), exact(task.deadline_ns)];
        row.extend(cells(told, Figure::Response, spread(task.response_ns.as_ref())));
        times.row(row);
    }
    format!("{}\n\n{}", counts.render(), times.render())
}

/// What is posted comes when it comes.
fn period(task: &TaskReport) -> String {
    if task.activity.is_posted() { "posted".into() } else { exact(task.period_ns) }
}

/// Every operation; those that are tasks of their own have their response times above.
fn operations(report: &Report, told: &RecordedEvents) -> String {
    let headings = ["operation", "lane", "released", "completed", "met", "missed", "aborted", "preempted"];
    let mut counts = Sheet::new(2, &headings);
    let headings = ["operation", "released late p50", "p99", "max", "response p50", "p99", "max"];
    let mut times = Sheet::new(1, &headings);
    let of_tasks = report.operations.iter().filter(|operation| !is_thread(&report.lanes[operation.lane]));
    for operation in of_tasks {
        let lane = &report.lanes[operation.lane];
        counts.row(vec![
            operation.name.clone(),
            lane.label.clone(),
            cell(told, Figure::Released, operation.released.to_string()),
            cell(told, Figure::Completed, operation.completed.to_string()),
            cell(told, Figure::Met, operation.met.to_string()),
            cell(told, Figure::Missed, count(operation.missed)),
            cell(told, Figure::Aborted, count(operation.aborted)),
            cell(told, Figure::Preemptions, preemptions(report, &lane.node, operation.preemptions)),
        ]);
        let mut row = vec![operation.name.clone()];
        row.extend(cells(told, Figure::Lateness, middle(operation.release_lateness_ns.as_ref())));
        row.extend(cells(told, Figure::Response, middle(operation.response_ns.as_ref())));
        times.row(row);
    }
    format!("{}\n\n{}", counts.render(), times.render())
}

fn lanes(report: &Report, told: &RecordedEvents) -> String {
    let mut sheet =
        Sheet::new(4, &["node", "level", "lane", "order", "jobs", "used", "max queue", "preempted"]);
    for (index, lane) in report.lanes.iter().enumerate().filter(|(_, lane)| !is_thread(lane)) {
        let members = report.operations.iter().filter(|operation| operation.lane == index);
        let mut row = lane_cells(report, lane, told);
        let sum = members.map(|operation| operation.preemptions).sum();
        row.push(cell(told, Figure::Preemptions, preemptions(report, &lane.node, sum)));
        sheet.row(row);
    }
    sheet.render()
}

/// Cause-effect chains, each time with its limit.
fn chains(report: &Report, told: &RecordedEvents) -> String {
    let headings = [
        "chain",
        "latency\np50",
        "\nmax",
        "\nlimit",
        "reaction\nmax",
        "\nlimit",
        "data age\np50",
        "\nmax",
        "\nlimit",
        "\nmissed",
        "samples\nunused",
    ];
    let mut sheet = Sheet::new(1, &headings);
    let limit = |times: &ChainTimes| times.limit_ns.map_or("-".into(), exact);
    for chain in &report.chains {
        let ChainReport { latency, reaction, age, .. } = chain;
        let of = |times: &ChainTimes| {
            let [p50, _, max] = middle(times.time_ns.as_ref());
            [p50, max].map(|text| cell(told, Figure::Chains, text))
        };
        let [latency_p50, latency_max] = of(latency);
        let [_, reaction_max] = of(reaction);
        let [age_p50, age_max] = of(age);
        sheet.row(vec![
            chain.name.clone(),
            latency_p50,
            latency_max,
            limit(latency),
            reaction_max,
            limit(reaction),
            age_p50,
            age_max,
            limit(age),
            cell(told, Figure::Chains, count(chain.missed())),
            cell(told, Figure::Chains, count(chain.unused)),
        ]);
    }
    let mut text = sheet.render();
    for chain in report.chains.iter().filter(|chain| chain.never_comes_through()) {
        let ChainReport { name, without_sample, .. } = chain;
        let times = if *without_sample == 1 { "once".into() } else { format!("{without_sample} times") };
        let limits =
            if chain.has_limits() { ", so that nothing tells whether its limits are kept" } else { "" };
        text += &wrap(&format!(
            "\n  {name}: its last operation completed {times}, and never with a sample{limits}"
        ));
    }
    text
}

/// The events of tasks that are released by them, and of operations that take them.
fn subscriptions(report: &Report, told: &RecordedEvents) -> String {
    let headings = [
        "task",
        "channel",
        "pushed",
        "delivered",
        "discarded",
        "expired",
        "others",
        "delay p50",
        "p99",
        "max",
    ];
    let mut sheet = Sheet::new(2, &headings);
    for subscription in &report.subscriptions {
        let SubscriptionReport { pushed, delivered, discarded, expired, .. } = subscription;
        let [p50, p99, max] = middle(subscription.delay_ns.as_ref());
        let of = |figure: Figure, text: String| cell(told, figure, text);
        sheet.row(vec![
            subscription.subscriber().to_owned(),
            subscription.channel.clone(),
            of(Figure::Pushed, count(*pushed)),
            of(Figure::Delivered, count(*delivered)),
            of(Figure::EventsLost, count(*discarded)),
            of(Figure::EventsLost, count(*expired)),
            of(Figure::Delay, cell(told, Figure::EventsLost, count(subscription.others()))),
            of(Figure::Delay, p50),
            of(Figure::Delay, p99),
            of(Figure::Delay, max),
        ]);
    }
    sheet.render()
}

/// A share of a node's processors in percent; `?` where lanes without real-time priorities share them unseen, and a started job
/// may not be running; `-` where it was not measured, as where the kernel schedules a hierarchy by itself.
fn used(report: &Report, node: &str, share: f64) -> String {
    match report.origin {
        _ if report.shares_unseen(node) => "?".into(),
        Origin::Threads { realtime: false } => "-".into(),
        _ if !is_seen(report, node) => "-".into(),
        _ => format!("{:.1} %", share.abs() * 100.0),
    }
}

/// How often jobs of a node were preempted, if that was seen.
fn preemptions(report: &Report, node: &str, preemptions: u64) -> String {
    match is_seen(report, node) {
        _ if report.shares_unseen(node) => "?".into(),
        true => count(preemptions),
        false => "not seen".into(),
    }
}

/// A count of how often a node's processors went from one job to another, if that was seen.
fn seen(report: &Report, node: &str, count: u64) -> String {
    match is_seen(report, node) {
        _ if report.shares_unseen(node) => "?".into(),
        true => count.to_string(),
        false => "-".into(),
    }
}

/// Whether the records say which jobs had the node's processors.
fn is_seen(report: &Report, node: &str) -> bool {
    report.nodes.iter().any(|entry| entry.name == node && entry.switches.are_recorded())
}

/// Whether it is the place of a thread in a hierarchy.
fn is_thread(lane: &LaneReport) -> bool {
    lane.discipline == "thread"
}

fn lane_cells(report: &Report, lane: &LaneReport, told: &RecordedEvents) -> Vec<String> {
    vec![
        lane.node.clone(),
        lane.level.to_string(),
        lane.label.clone(),
        lane.discipline.clone(),
        cell(told, Figure::Started, lane.jobs.to_string()),
        cell(told, Figure::Used, used(report, &lane.node, lane.utilisation)),
        cell(told, Figure::Started, lane.max_queue.to_string()),
    ]
}

fn summary(report: &Report, told: &RecordedEvents) -> String {
    let total = |critical: bool| {
        let of_kind =
            report.tasks.iter().filter(|task| !task.activity.is_thread() && task.critical == critical);
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
            "node {}: {} of {} processor(s) used, {} job switches, {} preemptions",
            node.name,
            cell(told, Figure::Used, used(report, &node.name, node.utilisation)),
            node.processors,
            cell(told, Figure::Switches, seen(report, &node.name, node.job_switches)),
            cell(told, Figure::Preemptions, seen(report, &node.name, node.preemptions)),
        ));
    }
    if [Figure::Met, Figure::Missed, Figure::Skipped].iter().any(|figure| !figure.is_known(told)) {
        lines.push("how many deadlines were met of all there were is not known".into());
        return lines.join("\n");
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
    if Figure::Chains.is_known(told) && !report.chains_met() {
        let missed: u64 = report.chains.iter().map(ChainReport::missed).sum();
        lines.push(format!("limits of chains: exceeded {missed} times  <-- MISSED"));
    }
    lines.extend(hierarchy::closing(report));
    lines.join("\n")
}

fn warnings(report: &Report, told: &RecordedEvents) -> Vec<String> {
    let mut warnings = Vec::new();
    let tasks = report.tasks.iter().filter(|task| !task.activity.is_thread());
    let never: u64 = tasks.map(|task| task.released - task.completed - task.aborted).sum();
    let missing = told.missing_of_jobs();
    if !missing.is_empty() {
        warnings.push(format!(
            "? is what nobody knows, for want of {}; to have it, record with {}",
            missing.join(", "),
            RecordedEvents::options_for(&missing)
        ));
    }
    if report.nodes.iter().any(|node| report.shares_unseen(&node.name)) {
        warnings.push(
            "? is how often and for how long jobs had processors: without real-time priorities the kernel shares them out, and no job \
             sees another take its place"
                .into(),
        );
    }
    if never > 0 && Figure::Missed.is_known(told) {
        let (instances, that) = if never == 1 { ("instance", "it") } else { ("instances", "them") };
        warnings.push(format!(
            "{never} released {instances} had not ended at the end; response times are without {that}"
        ));
    }
    let losing = report.tasks.iter().filter(|task| task.messages_lost > 0);
    let losing: Vec<String> = losing.map(|task| format!("{} of {}", task.messages_lost, task.name)).collect();
    if !losing.is_empty() {
        warnings.push(format!(
            "messages lost between nodes: {}; jobs that needed them were not released",
            losing.join(", ")
        ));
    }
    for node in &report.nodes {
        if let Some(left_ns) = node.left_ns {
            warnings.push(format!(
                "node {} left after {}",
                node.name,
                Duration::from_nanos(left_ns).rounded()
            ));
        }
    }
    let merged = report.tasks.iter().filter(|task| task.merged > 0);
    let merged: Vec<String> = merged.map(|task| format!("{} of {}", task.merged, task.name)).collect();
    if !merged.is_empty() {
        warnings.push(format!(
            "arrivals merged with an instance that had not begun, which stands for both: {}",
            merged.join(", ")
        ));
    }
    let cut_off = report.tasks.iter().filter(|task| task.cut_off > 0);
    let cut_off: Vec<String> = cut_off.map(|task| format!("{} of {}", task.cut_off, task.name)).collect();
    if !cut_off.is_empty() {
        warnings.push(format!("instances cut off because a node left: {}", cut_off.join(", ")));
    }
    if !report.chains.is_empty() && !Figure::Chains.is_known(told) {
        warnings.push(
            "? of chains is what nobody knows, for want of what was published and taken; to have it, record with --events run,job,port".into(),
        );
    }
    let figures = [Figure::Pushed, Figure::Delivered, Figure::EventsLost];
    if !report.subscriptions.is_empty() && !figures.iter().all(|figure| figure.is_known(told)) {
        warnings.push(
            "? of events is what was not recorded; to have it, record with --events run,job,event".into(),
        );
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

/// A figure, if its events were recorded.
fn cell(told: &RecordedEvents, figure: Figure, text: String) -> String {
    if figure.is_known(told) { text } else { "?".into() }
}

fn cells<const COUNT: usize>(
    told: &RecordedEvents,
    figure: Figure,
    texts: [String; COUNT],
) -> [String; COUNT] {
    texts.map(|text| cell(told, figure, text))
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
