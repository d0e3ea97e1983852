//! What a run of a hierarchy of schedulers has beyond its report: the kernel's account.

use crate::cli::lowering;
use crate::cli::output::{Sheet, length};
use serde_json::{Value, json};
use talea_policy::arrangement::Verdict;
use talea_runtime::{
    ForeignChanges, HierarchyOutcome, JudgedBy, LongestWithheld, MemberOutcome, ParkingOutcome, ScheduledBy,
    ToldBy, Withholder,
};
use talea_text::printable;
use talea_time::Duration;

/// What `--json` says of a hierarchy, besides whether its guarantees were kept, which is in the report.
pub fn json(hierarchy: &HierarchyOutcome) -> Value {
    json!({
        "node": hierarchy.node, "scheduled_by": hierarchy.scheduled_by, "lowering": hierarchy.lowering,
        "members": hierarchy.members, "grants": hierarchy.grants, "undefined": hierarchy.undefined,
        "untraced": hierarchy.untraced, "uncontrolled": hierarchy.uncontrolled, "unmanaged_threads": hierarchy.unmanaged_threads,
        "judged_by": hierarchy.judged_by, "cause": hierarchy.ended_early.as_ref().map(|ended| &ended.cause),
        "ended_early": hierarchy.ended_early, "shortcomings": hierarchy.shortcomings,
        "unrestored": hierarchy.unrestored, "uncontained": hierarchy.uncontained,
        "given": hierarchy.given, "slices": hierarchy.slices, "unsliced": hierarchy.unsliced,
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

/// What to do about a kernel that leaves real-time threads not all of a processor.
const REMEDY: &str = "  help: Linux keeps real-time threads from a part of each second where they leave no idle time (`talea doctor` \
     says how much and how to change it); let the threads want less than that \
     leaves, as in examples/figure-1.toml";

/// What to do where moving processes keeps everybody from freezing others.
const FAVOR_MOVES: &str = "  help: `mount -o remount,favordynmods` on the mount of cgroup2 (see /proc/mounts) makes moving processes quick, until the \
     machine is started anew; forks take a little longer then";

/// What to know where the kernel could have left them all of it.
const NOT_READY: &str = "  help: a thread that is let go or woken takes some of its turn until it runs, and a virtual machine may stand still \
     meanwhile; of longer periods or quanta less is lost to that";

/// What the node's use of its processors says of why some were withheld.
fn remedy(is_near_limit: bool) -> String {
    if is_near_limit { REMEDY.into() } else { NOT_READY.into() }
}

/// What the kernel withheld from threads that the hierarchy had granted a processor, and which guarantees that broke.
fn receipts(hierarchy: &HierarchyOutcome, is_near_limit: bool) -> Vec<String> {
    match &hierarchy.judged_by {
        None => Vec::new(),
        Some(JudgedBy::Grants { reason }) => by_grants(hierarchy, reason, is_near_limit),
        Some(JudgedBy::Receipts {
            withheld_ns,
            spells,
            longest,
            lost,
            lost_decisions,
            unknown_from_ns,
            told_by,
        }) => {
            let mut remarks = Vec::new();
            if let Some(from) = unknown_from_ns {
                let lost = match lost_decisions {
                    0 => format!("{lost} of the kernel's switches were lost"),
                    lost => format!(
                        "{lost} records of the hierarchy were overwritten before they were read, for the thread that reads them had no processor"
                    ),
                };
                remarks.push(format!(
                    "warning: node {}: {lost}, so from {} on what was received is unknown, and no guarantee was judged by it",
                    hierarchy.node,
                    Duration::from_nanos(*from).rounded()
                ));
            }
            if let ToldBy::Events { reason } = told_by {
                remarks.push(format!(
                    "note: node {}: each switch was an event of perf, which takes about a microsecond of it; {reason}",
                    hierarchy.node
                ));
            }
            if let Some(longest) = longest {
                remarks.extend(withheld(hierarchy, (*withheld_ns, *spells), longest, is_near_limit));
            }
            remarks
        }
    }
}

fn withheld(
    hierarchy: &HierarchyOutcome,
    (withheld_ns, spells): (i64, u64),
    longest: &LongestWithheld,
    is_near_limit: bool,
) -> Vec<String> {
    let broken = hierarchy.edges.iter().filter(|edge| edge.verdict() == Verdict::Withheld);
    let broken: Vec<String> = broken.map(|edge| format!("{} to {}", edge.parent, edge.child)).collect();
    let granted: i64 = hierarchy.members.iter().filter_map(|member| member.granted_ns).sum();
    if broken.is_empty() && withheld_ns * 100 <= granted {
        return Vec::new();
    }
    let times = if spells == 1 { "once".into() } else { format!("{spells} times") };
    let what = match &broken[..] {
        [] => "no guarantee was broken by it".into(),
        edges => {
            format!("so these guarantees, which the hierarchy kept, were not received: {}", edges.join(", "))
        }
    };
    let (had_it, remedy) = withholder(&longest.by, is_near_limit);
    let text = format!(
        "warning: node {}: the kernel withheld granted processors {times}, {} in all, the longest {} at {}, when {had_it}; {what}",
        hierarchy.node,
        length(withheld_ns),
        length(longest.length_ns),
        Duration::from_nanos(longest.from_ns).rounded(),
    );
    [text].into_iter().chain(remedy).collect()
}

/// Who had the processor meanwhile, and what to do about that.
fn withholder(by: &Withholder, is_near_limit: bool) -> (String, Option<String>) {
    let named = |thread: &u32, name: &str| format!("thread {thread} ({}) had it", printable(name));
    match by {
        Withholder::Nobody => ("it was idle".into(), Some(remedy(is_near_limit))),
        Withholder::Ordinary { thread, name } => (named(thread, name), Some(remedy(is_near_limit))),
        Withholder::OwnThread { name } => (format!("{} of the run itself had it", printable(name)), None),
        Withholder::RealTime { thread, name } => (
            format!("thread {thread} ({}), which has a real-time policy, had it", printable(name)),
            Some(format!(
                "  help: give thread {thread} another processor (taskset), or an ordinary policy (chrt --other)"
            )),
        ),
        Withholder::Gone { thread } => (
            format!("thread {thread} had it, which is gone"),
            Some(
                "  help: each process that a program starts runs a little before it is held (docs/containment.md): let programs \
                 that start many have a processor of their own"
                    .into(),
            ),
        ),
    }
}

/// It is unknown when threads received what they were granted, but known how much in all: up to a hundredth less than granted is
/// due to switches and interrupts.
fn by_grants(hierarchy: &HierarchyOutcome, reason: &str, is_near_limit: bool) -> Vec<String> {
    let node = &hierarchy.node;
    let mut remarks = vec![format!(
        "note: node {node}: guarantees were judged by what was granted alone, for the kernel's switches are not known: {reason}"
    )];
    let accounts =
        hierarchy.members.iter().filter_map(|member| Some((member.granted_ns?, member.received_ns)));
    let (granted, received) =
        accounts.fold((0, 0), |(granted, received), (more, had)| (granted + more, received + had));
    let kept = granted - received;
    if kept * 100 > granted {
        remarks.push(format!(
            "warning: node {node}: the kernel kept {} ({:.1} %) of what was granted from the threads, so a \"yes\" above is the \
             hierarchy's and not the kernel's",
            length(kept),
            kept as f64 / granted as f64 * 100.0
        ));
        remarks.push(remedy(is_near_limit));
    }
    remarks
}

/// What to say before everything else, if the hierarchy ended before the run was to.
pub fn failure(hierarchy: &HierarchyOutcome) -> Option<String> {
    let ended = hierarchy.ended_early.as_ref()?;
    Some(format!(
        "the hierarchy of node {} ended early, after {}: {}; its threads were ordinary ones from then on",
        hierarchy.node,
        Duration::from_nanos(ended.at_ns).rounded(),
        ended.cause
    ))
}

/// What went differently than a good run goes.
///
/// Near the limit it takes nearly all that Linux leaves real-time threads.
pub fn remarks(hierarchy: &HierarchyOutcome, is_near_limit: bool) -> Vec<String> {
    let node = &hierarchy.node;
    let mut remarks = Vec::new();
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
    if let Some(given) = hierarchy.given.as_ref().filter(|_| hierarchy.slices > 0) {
        remarks.push(format!(
            "note: node {node}: its threads would take more of a processor than the kernel leaves them; {} times they left it unused for {}, \
             before the kernel would have taken it for longer, so promises are derived from {given} of each processor instead of all of it",
            hierarchy.slices,
            talea_model::SLICE.rounded()
        ));
    }
    remarks.extend(receipts(hierarchy, is_near_limit));
    for member in &hierarchy.members {
        if let Some(exit) = &member.exit {
            remarks.push(format!(
                "note: {}: the process that was started for it ended before the run did ({exit}); processes that this had started, such as \
                 daemons, stayed members until the run ended",
                member.thread
            ));
        }
        if !member.calls.is_empty() {
            let calls: Vec<String> =
                member.calls.iter().map(|(call, times)| format!("{call} {times} times")).collect();
            remarks.push(format!(
                "note: {}: its program called to change how it is scheduled ({}), which is not its to change",
                member.thread,
                calls.join(", ")
            ));
        }
        let ForeignChanges { processors, priorities } = member.changes;
        if !member.changes.are_none() {
            let of = [("processors", processors), ("policy or priority", priorities)];
            let of = of.into_iter().filter(|(_, times)| *times > 0);
            let of: Vec<String> = of.map(|(what, times)| format!("{what} {times} times")).collect();
            remarks.push(format!(
                "note: {}: its threads were scheduled otherwise by somebody else or by themselves ({}), which was put back",
                member.thread,
                of.join(", ")
            ));
        }
        if let Some(excess) = member.excess_ns {
            let why = match member.held_late_ns {
                0 => "it ran where or when nobody let it".into(),
                late => format!(
                    "for {} it ran on when it was to be held, for the kernel froze it late, as it does while somebody moves processes from one cgroup to \
                     another",
                    length(late)
                ),
            };
            remarks.push(format!(
                "warning: {}: the kernel gave it {} more than it was granted, which was a maximum: {why}",
                member.thread,
                length(excess)
            ));
            if member.held_late_ns > 0 {
                remarks.push(FAVOR_MOVES.into());
            }
        }
        if member.parking == ParkingOutcome::NotHeld {
            remarks.push(format!(
                "warning: {}: it is promised a maximum, but cannot be held; it may use idle processors",
                member.thread
            ));
        }
    }
    for shortcoming in &hierarchy.uncontained {
        remarks.push(format!("note: node {node}: {shortcoming}"));
    }
    if hierarchy.unmanaged_threads > 0 {
        remarks.push(format!(
            "warning: node {node}: {} threads of programs are beyond what can be managed and stay ordinary ones",
            hierarchy.unmanaged_threads
        ));
    }
    if hierarchy.undefined > 0 {
        remarks.push(format!(
            "warning: node {node}: the trace does not tell of {} schedulers, edges and threads that came while the hierarchy ran, for there is no \
             room for more",
            hierarchy.undefined
        ));
    }
    if let Some(threads) = &hierarchy.unrestored {
        remarks.push(format!("warning: node {node}: {threads}"));
    }
    if let Some(reason) = &hierarchy.untraced {
        remarks.push(format!(
            "note: node {node}: wake-ups of programs are looked for every 10ms, for the kernel does not tell them: {reason}; a program that starts \
             many processes may receive more than a maximum until they are found"
        ));
    }
    remarks
}
