//! Threads of hierarchies, and what came of the guarantees.

use super::{cell, cells, count, is_thread, middle, preemptions, used};
use crate::cli::output::{Sheet, length, wrap};
use talea_guarantee::due::Sums;
use talea_guarantee::proviso::{Proviso, provisos_of};
use talea_insight::accounting::{EndedEarly, Figure, HierarchyReport, Report};
use talea_model::System;
use talea_policy::arrangement::{Basis, Breach, Kept, Side, Verdict};
use talea_record::RecordedEvents;
use talea_time::Duration;

/// Every thread with what it received and what became of its bursts.
pub fn threads(report: &Report, told: &RecordedEvents) -> String {
    let headings =
        ["thread", "node", "used", "bursts", "in time", "late", "preempted", "response p50", "p99", "max"];
    let mut sheet = Sheet::new(2, &headings);
    for operation in &report.operations {
        let lane = &report.lanes[operation.lane];
        if !is_thread(lane) {
            continue;
        }
        let task = report.tasks.iter().find(|task| task.name == operation.task);
        let is_endless = task.is_some_and(|task| task.period_ns > ENDLESS_NS);
        let of_bursts = |figure: Figure, number: u64| match is_endless {
            true => "-".into(),
            false => cell(told, figure, number.to_string()),
        };
        let mut row = vec![
            operation.name.clone(),
            lane.node.clone(),
            cell(told, Figure::Used, used(report, &lane.node, lane.utilisation)),
            of_bursts(Figure::Released, operation.released),
            of_bursts(Figure::Met, operation.met),
            cell(told, Figure::Missed, count(operation.missed)),
            cell(told, Figure::Preemptions, preemptions(report, &lane.node, operation.preemptions)),
        ];
        row.extend(cells(told, Figure::Response, middle(operation.response_ns.as_ref())));
        sheet.row(row);
    }
    sheet.render()
}

/// Longer than any period of a burst: what always wants the processor arrives once.
const ENDLESS_NS: i64 = 100 * 365 * 86_400 * 1_000_000_000;

/// Every edge with its guarantee and whether it was kept.
pub fn promises(hierarchy: &HierarchyReport) -> String {
    let headings = ["from", "to", "guarantee", "kept", "wanted", "received", "withheld", "judged", "broken"];
    let mut sheet = Sheet::new(4, &headings);
    let mut worst_of = Vec::new();
    for edge in &hierarchy.edges {
        let (broken, at_worst) = edge.broken();
        sheet.row(vec![
            edge.parent.clone(),
            edge.child.clone(),
            edge.guarantee.clone(),
            verdict(edge, hierarchy.ended_early.as_ref()),
            edge.wanted_ns.map_or("-".into(), length),
            length(edge.received_ns),
            edge.receipts.map_or("-".into(), |receipts| withheld(receipts.withheld_ns)),
            edge.judged().map_or("-".into(), |judged| judged.to_string()),
            count(broken),
        ]);
        if let Some(breach) = at_worst {
            worst_of.push(wrap(&format!("  worst of {} to {}: {}", edge.parent, edge.child, worst(breach))));
        }
        if let Some(sums) = edge.sums.filter(|_| edge.misses_by_sums()) {
            worst_of.push(wrap(&by_sums(edge, sums)));
        }
    }
    let until = match &hierarchy.ended_early {
        None => String::new(),
        Some(ended) => format!(", judged until the hierarchy ended early at {}", time(ended.at_ns)),
    };
    let mut lines = vec![format!("node {}: guarantees{until}", hierarchy.node), sheet.render()];
    lines.extend(worst_of);
    lines.join("\n")
}

/// How many guarantees were kept, in a sentence, and which could not be judged. None where nothing is promised.
pub fn closing(report: &Report) -> Option<String> {
    let promised = |edge: &&Kept| edge.basis != Basis::Nothing;
    let edges = || report.hierarchies.iter().flat_map(|hierarchy| &hierarchy.edges).filter(promised);
    let (all, broken) = (edges().count(), edges().filter(|edge| edge.is_broken()).count());
    if all == 0 {
        return None;
    }
    let unjudged: Vec<String> =
        report.unjudged().map(|(_, edge)| format!("{} to {}", edge.parent, edge.child)).collect();
    let unwanted = edges().filter(|edge| edge.wanted_ns == Some(0)).count();
    let kept = all - broken - unjudged.len() - unwanted;
    let mut closing = format!("guarantees: {kept} of {all} kept");
    for (count, what) in [(broken, "broken"), (unwanted, "not made use of")] {
        if count > 0 {
            closing += &format!(", {count} {what}");
        }
    }
    if !unjudged.is_empty() {
        let count = unjudged.len();
        closing += &format!(", {count} could not be judged: {}", unjudged.join(", "));
    }
    Some(if broken > 0 { closing + "  <-- BROKEN" } else { closing })
}

/// Notes of broken guarantees that were derived, and of which nobody knows that the schedulers can keep them.
pub fn not_known_to_be_kept(system: &System, report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    for of_node in &report.hierarchies {
        let node = system.nodes.iter().position(|node| node.name == of_node.node);
        let Some(hierarchy) = node.and_then(|node| system.hierarchy(node)) else { continue };
        let is_broken = |proviso: &Proviso| {
            let is_it = |edge: &&Kept| edge.parent == proviso.parent && edge.child == proviso.child;
            of_node.edges.iter().find(is_it).is_some_and(Kept::is_broken)
        };
        let doubts = provisos_of(&hierarchy).into_iter().filter(is_broken);
        notes.extend(
            doubts.map(|doubt| format!("note: node {}: {doubt}; `talea check` says more", of_node.node)),
        );
    }
    notes
}

fn time(ns: i64) -> String {
    Duration::from_nanos(ns).rounded().to_string()
}

fn verdict(edge: &Kept, ended: Option<&EndedEarly>) -> String {
    let verdict = match edge.verdict() {
        Verdict::Kept => {
            // Whether it would have been kept is unknown.
            return ended.map_or("yes".into(), |ended| format!("until {}", time(ended.at_ns)));
        }
        Verdict::NotJudged => "not judged",
        Verdict::NotJudgeable => "-",
        Verdict::Untested => "untested",
        Verdict::NotGranted => "NO",
        Verdict::Withheld => "NO (withheld)",
        Verdict::Exceeded => "NO (exceeded)",
        Verdict::HeldLate => "NO (held late)",
    };
    verdict.into()
}

fn withheld(ns: i64) -> String {
    if ns == 0 { "-".into() } else { length(ns) }
}

/// What was wanted and received contradicts the guarantee, whatever the windows say.
fn by_sums(edge: &Kept, sums: Sums) -> String {
    let (wanted, received) = (length(sums.wanted_ns), length(sums.received_ns));
    let how = match sums.missing_ns {
        missing @ 1.. => format!("up to {} less than was due", time(missing)),
        _ => format!("up to {} more than is allowed", time(sums.excess_ns)),
    };
    let Kept { parent, child, .. } = edge;
    format!(
        "  sums of {parent} to {child}: there was work for {wanted}, at which it was for {received}: {how}"
    )
}

/// `1.2ms short of 5ms in 33ms at 2.04s`.
fn worst(breach: &Breach) -> String {
    let (promised, window) = (time(breach.promised_ns), time(breach.to_ns - breach.from_ns));
    let (amount, how) = match breach.bound {
        Side::Least => (breach.promised_ns - breach.received_ns, "short of"),
        Side::Most => (breach.received_ns - breach.promised_ns, "more than"),
    };
    format!("{} {how} {promised} in {window} at {}", time(amount), time(breach.from_ns))
}
