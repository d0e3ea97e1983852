//! What a run of a hierarchy of schedulers has beyond its report: the kernel's account.

use crate::cli::output::{Sheet, length};
use serde_json::{Value, json};
use talea_runtime::{HierarchyOutcome, MemberOutcome, ParkingOutcome};

/// What `--json` says of a hierarchy; what became of its promises is in the report.
pub fn json(hierarchy: &HierarchyOutcome) -> Value {
    json!({
        "node": hierarchy.node, "members": hierarchy.members, "grants": hierarchy.grants,
        "untraced": hierarchy.untraced, "uncontrolled": hierarchy.uncontrolled, "unmanaged_threads": hierarchy.unmanaged_threads,
        "cause": hierarchy.cause, "shortcomings": hierarchy.shortcomings,
    })
}

/// Every thread with what the hierarchy granted it and what the kernel says it received.
pub fn accounts(hierarchy: &HierarchyOutcome) -> String {
    let mut sheet = Sheet::new(1, &["thread", "granted", "by the kernel", "while others run", "program"]);
    for member in &hierarchy.members {
        sheet.row(vec![
            member.thread.clone(),
            length(member.granted_ns),
            length(member.received_ns),
            parking(member).into(),
            member.exit.clone().unwrap_or_else(|| "-".into()),
        ]);
    }
    format!("node {}: processor time\n{}", hierarchy.node, sheet.render())
}

fn parking(member: &MemberOutcome) -> &'static str {
    match member.parking {
        ParkingOutcome::WorkConserving => "parked",
        ParkingOutcome::Held => "held",
        ParkingOutcome::NotHeld => "parked (not held)",
    }
}

/// What went differently than a good run goes.
pub fn remarks(hierarchy: &HierarchyOutcome) -> Vec<String> {
    let node = &hierarchy.node;
    let mut remarks = Vec::new();
    if let Some(cause) = &hierarchy.cause {
        remarks.push(format!("warning: node {node}: the hierarchy ended before the run did: {cause}"));
    }
    if let Some(shortcomings) = &hierarchy.shortcomings {
        remarks.push(format!("warning: node {node}: {shortcomings}; `talea check` explains it"));
    }
    if let Some(reason) = &hierarchy.uncontrolled {
        remarks.push(format!("note: node {node}: `talea ctl` could not control it: {reason}"));
    }
    for member in &hierarchy.members {
        if let Some(exit) = &member.exit {
            remarks.push(format!("note: {}: its program ended before the run did ({exit})", member.thread));
        }
        if member.parking == ParkingOutcome::NotHeld {
            remarks.push(format!(
                "warning: {}: it is promised a maximum, but cannot be held; it may use idle processors",
                member.thread
            ));
        }
    }
    if hierarchy.unmanaged_threads > 0 {
        remarks.push(format!(
            "warning: node {node}: {} threads of programs are beyond what can be managed and stay ordinary ones",
            hierarchy.unmanaged_threads
        ));
    }
    if let Some(reason) = &hierarchy.untraced {
        remarks.push(format!(
            "note: node {node}: wake-ups of programs are looked for every 10ms, for the kernel does not tell them: {reason}"
        ));
    }
    remarks
}
