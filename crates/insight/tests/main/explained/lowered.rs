//! Threads of a hierarchy that was lowered to the kernel.

use super::{LANE_THREAD, explained_of, list, one_processor, preempted, record, switch};
use talea_insight::explain::{Blamed, Explanation, Explanations, Kind};
use talea_record::*;
use talea_samples::overlapping;
use talea_time::Duration;

/// The thread of `nav`.
const NAV_THREAD: u64 = 71;

/// One processor on which the kernel schedules the threads of both lanes, by these policies.
fn lowered(policies: [Option<KernelPolicy>; 2], switches: Switches) -> Metadata {
    let mut metadata = Metadata { origin: Origin::Threads { realtime: true }, ..one_processor() };
    (metadata.nodes[0].decided_by, metadata.nodes[0].switches) = (DecidedBy::Kernel, switches);
    for lane in &mut metadata.lanes {
        lane.discipline = "thread".into();
        let (parent, child, guarantee) = ("FP".into(), lane.label.clone(), "NULL".into());
        metadata.edges.push(EdgeEntry { node: 0, parent, child, guarantee });
    }
    let known = policies.into_iter().enumerate();
    let entry =
        |(lane, policy): (usize, Option<KernelPolicy>)| Some(KernelPolicyEntry { lane, policy: policy? });
    metadata.kernel_policies = known.filter_map(entry).collect();
    metadata
}

/// The same run with what the kernel tells of it: `nav`'s thread has the processor from 110 to 300, and from 500 on.
fn with_kernel() -> Vec<Record> {
    let met = |lane, thread| record(Event::THREAD, 0, lane, [thread, 0], ThreadRole::Lane as u16);
    let mut records = overlapping();
    records.splice(1..1, [met(0, NAV_THREAD), met(1, LANE_THREAD), switch(0, 0, LANE_THREAD)]);
    records.extend([preempted(110, LANE_THREAD, NAV_THREAD), preempted(300, NAV_THREAD, LANE_THREAD)]);
    records.extend([preempted(500, LANE_THREAD, NAV_THREAD), switch(710, NAV_THREAD, LANE_THREAD)]);
    records.sort_by_key(|record| record.time);
    records
}

/// The parts of the response, which are all of it.
fn parts(answer: &Explanations) -> Vec<(i64, i64, Kind)> {
    let one: &Explanation = &answer.list[0];
    let sum: Duration = one.totals.iter().map(talea_insight::explain::Total::sum).sum();
    assert_eq!(sum, one.response(), "the parts are the whole");
    list(one).into_iter().map(|(from, to, _, kind)| (from, to, kind)).collect()
}

const HIGH: Option<KernelPolicy> = Some(KernelPolicy::RealTime(12));
const LOW: Option<KernelPolicy> = Some(KernelPolicy::RealTime(10));

#[test]
fn a_thread_of_a_higher_priority_of_the_kernel_is_blamed() {
    let answer = explained_of(&lowered([HIGH, LOW], Switches::Recorded), &overlapping(), (1, 0));
    assert!(parts(&answer).contains(&(120, 700, Kind::KernelHigher)), "{:?}", parts(&answer));
    let total = answer.list[0].totals.iter().find(|total| total.kind == Kind::KernelHigher).expect("it ran");
    assert_eq!(total.blamed, Blamed::Operation(0));
    assert!(
        answer.gaps().iter().all(|(_, missing)| missing != &["a run with --no-lower"]),
        "{:?}",
        answer.gaps()
    );
    let sentence = answer.sentence(&answer.list[0]);
    assert!(sentence.contains("priority of the kernel") && sentence.contains("nav"), "{sentence}");
}

/// Programs write no record when they get a processor, so without the kernel's records nobody knows who has it.
#[test]
fn what_the_kernel_does_unseen_is_unknown_unless_it_tells() {
    let metadata = lowered([HIGH, LOW], Switches::Unseen);
    let answer = explained_of(&metadata, &overlapping(), (1, 0));
    assert!(parts(&answer).iter().all(|(_, _, kind)| *kind == Kind::Unrecorded), "{:?}", parts(&answer));
    let kinds =
        |answer: &Explanations| parts(answer).into_iter().map(|(_, _, kind)| kind).collect::<Vec<_>>();
    assert!(
        answer.gaps().iter().any(|(what, _)| what.contains("kernel schedules unseen")),
        "{:?}",
        answer.gaps()
    );
    let answer = explained_of(&metadata, &with_kernel(), (1, 0));
    assert!(!kinds(&answer).contains(&Kind::Unrecorded), "{:?}", parts(&answer));
    for part in [
        (110, 300, Kind::KernelHigher),
        (300, 500, Kind::Execution),
        (500, 710, Kind::KernelHigher),
        (0, 10, Kind::Dispatch),
    ] {
        assert!(parts(&answer).contains(&part), "{part:?} is not in {:?}", parts(&answer));
    }
}

#[test]
fn what_the_policies_do_not_say_is_said_to_be_untold() {
    let (reserved, ordinary) = (Some(KernelPolicy::Deadline), Some(KernelPolicy::Other));
    // As of an older trace, of two reservations, and of two ordinary threads.
    for policies in [[None, None], [reserved, reserved], [ordinary, ordinary]] {
        let answer = explained_of(&lowered(policies, Switches::Unseen), &with_kernel(), (1, 0));
        assert!(
            parts(&answer).contains(&(110, 300, Kind::KernelUntold)),
            "{policies:?}: {:?}",
            parts(&answer)
        );
        let says = |(what, remedy): &(&str, Vec<String>)| {
            what.contains("ran one thread") && remedy[0].contains("--no-lower")
        };
        assert!(answer.gaps().iter().any(says), "{:?}", answer.gaps());
    }
    // Who is behind by its priority had not been switched from yet; of one priority, it was the other's turn.
    for (policies, kind) in [([LOW, HIGH], Kind::KernelLower), ([LOW, LOW], Kind::KernelEqual)] {
        let answer = explained_of(&lowered(policies, Switches::Unseen), &with_kernel(), (1, 0));
        assert!(parts(&answer).contains(&(110, 300, kind)), "{policies:?}: {:?}", parts(&answer));
    }
}
