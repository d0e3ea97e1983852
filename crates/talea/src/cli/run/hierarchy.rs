//! What a run of a hierarchy of schedulers has beyond its report: the kernel's account.

use crate::cli::lowering;
use crate::cli::output::{Sheet, length};
use serde_json::{Value, json};
use talea_runtime::{HierarchyOutcome, MemberOutcome, ParkingOutcome, ScheduledBy};

/// What `--json` says of a hierarchy; what became of its promises is in the report.
pub fn json(hierarchy: &HierarchyOutcome) -> Value {
    json!({
        "node": hierarchy.node, "scheduled_by": hierarchy.scheduled_by, "lowering": hierarchy.lowering,
        "members": hierarchy.members, "grants": hierarchy.grants,
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
            member.granted_ns.map_or("-".into(), length),
            length(member.received_ns),
            parking(member),
            member.exit.clone().unwrap_or_else(|| "-".into()),
        ]);
    }
    let mut text = format!("node {}: processor time\n{}", hierarchy.node, sheet.render());
    if !hierarchy.lowering.is_empty() {
        text = format!("{text}\n\n{}", lowering::parts(&hierarchy.node, &hierarchy.lowering));
    }
    text
}

fn parking(member: &MemberOutcome) -> String {
    match member.parking {
        ParkingOutcome::WorkConserving => "parked".into(),
        ParkingOutcome::Held => "held".into(),
        ParkingOutcome::NotHeld => "parked (not held)".into(),
        ParkingOutcome::Kernel => member.policy.clone().unwrap_or_else(|| "by the kernel".into()),
    }
}

/// What the kernel kept from threads that the hierarchy had granted a processor: promises are judged by grants, which it does
/// not know of. Up to a hundredth are switches and interrupts.
fn withheld(hierarchy: &HierarchyOutcome) -> Option<String> {
    let accounts =
        hierarchy.members.iter().filter_map(|member| Some((member.granted_ns?, member.received_ns)));
    let (granted, received) =
        accounts.fold((0, 0), |(granted, received), (more, had)| (granted + more, received + had));
    let kept = granted - received;
    (kept * 100 > granted).then(|| {
        format!(
            "warning: node {}: the kernel kept {} ({:.1} %) of what was granted from the threads: guarantees are judged by what \
             is granted, so a \"yes\" above is the hierarchy's and not the kernel's; real-time threads are not to have all of \
             a processor (`talea doctor`), so leave them less to want",
            hierarchy.node,
            length(kept),
            kept as f64 / granted as f64 * 100.0
        )
    })
}

/// What went differently than a good run goes.
pub fn remarks(hierarchy: &HierarchyOutcome) -> Vec<String> {
    let node = &hierarchy.node;
    let mut remarks = Vec::new();
    if let Some(cause) = &hierarchy.cause {
        remarks.push(format!("warning: node {node}: the hierarchy ended before the run did: {cause}"));
    }
    if hierarchy.scheduled_by == ScheduledBy::Kernel {
        remarks.push(format!(
            "note: node {node}: the kernel schedules it, so nobody judges what is promised; `--no-lower` leaves it to the \
             infrastructure, which does"
        ));
    }
    if let Some(shortcomings) = &hierarchy.shortcomings {
        remarks.push(format!("warning: node {node}: {shortcomings}; `talea check` explains it"));
    }
    if let Some(reason) = &hierarchy.uncontrolled {
        remarks.push(format!("note: node {node}: `talea ctl` could not control it: {reason}"));
    }
    remarks.extend(withheld(hierarchy));
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
