//! Processors that jobs share unseen.

use super::{LANE_THREAD, START, explained_of, list, one_processor, preempted, record, switch};
use talea_insight::explain::{self, Kind, Stage};
use talea_insight::*;
use talea_record::*;
use talea_samples::{job, metadata, overlapping};
use talea_time::Duration;

/// Without real-time priorities the kernel chooses between jobs that have begun, and nobody saw which of them ran.
#[test]
fn a_processor_that_jobs_share_unseen_is_given_to_none_of_them() {
    use Stage::{Begun, Waiting};
    let plain = Metadata { origin: Origin::Threads { realtime: false }, ..one_processor() };
    let answer = explained_of(&plain, &overlapping(), (1, 0));
    let one = &answer.list[0];
    assert_eq!(
        list(one),
        [
            (0, 10, Waiting, Kind::Unrecorded),
            (10, 120, Begun, Kind::Execution),
            (120, 700, Begun, Kind::Shared),
            (700, 1_000, Begun, Kind::Execution),
        ]
    );
    let sum: Duration = one.totals.iter().map(explain::Total::sum).sum();
    assert_eq!((sum, one.response()), (Duration::from_nanos(1_000), Duration::from_nanos(1_000)));
    assert_eq!(one.unrecorded(), Duration::from_nanos(10 + 580));
    let sentence = answer.sentence(one);
    assert!(sentence.contains("shared unseen") && sentence.contains("--kernel switches"), "{sentence}");
    assert!(!sentence.contains("would have been met"), "{sentence}");
    let json = answer.to_json();
    let interval = &json["explanations"][0]["intervals"][2];
    assert_eq!((interval["cause"].as_str(), interval["blamed"].is_null()), (Some("shared"), true), "{json}");
    let unknown = |gap: &serde_json::Value| gap["not_recorded"][0] == "kernel.switch";
    assert!(json["gaps"].as_array().is_some_and(|gaps| gaps.iter().any(unknown)), "{json}");
    // The one that displaced it may have waited for it, too.
    let kinds: Vec<Kind> =
        explained_of(&plain, &overlapping(), (0, 0)).list[0].totals.iter().map(|one| one.kind).collect();
    assert!(kinds.contains(&Kind::Shared) && !kinds.contains(&Kind::Execution), "{kinds:?}");
    // The accounts know the same time.
    let mut usage = Usage::new(&plain);
    overlapping().into_iter().for_each(|record| usage.record(record));
    assert_eq!(usage.finish().nodes[0].shared_unseen_ns, Some(580));
}

/// With real-time priorities the one processor is the higher lane's.
#[test]
fn with_priorities_the_higher_lane_displaces_the_lower_one() {
    let answer = explained_of(&one_processor(), &overlapping(), (1, 0));
    let kinds: Vec<_> =
        list(&answer.list[0]).into_iter().map(|(from, to, _, kind)| (from, to, kind)).collect();
    assert_eq!(kinds[2], (120, 700, Kind::Higher), "{kinds:?}");
    // The kernel's records settle it without them, too.
    let plain = Metadata { origin: Origin::Threads { realtime: false }, ..one_processor() };
    let mut records = overlapping();
    let met = |after, lane, thread| record(Event::THREAD, after, lane, [thread, 0], ThreadRole::Lane as u16);
    records.splice(1..1, [met(0, 0, 71), met(0, 1, LANE_THREAD), switch(0, 0, LANE_THREAD)]);
    records.extend([preempted(110, LANE_THREAD, 71), preempted(300, 71, LANE_THREAD)]);
    records.extend([preempted(500, LANE_THREAD, 71), switch(710, 71, LANE_THREAD)]);
    records.sort_by_key(|record| record.time);
    let answer = explained_of(&plain, &records, (1, 0));
    let of = |kind: Kind| {
        let totals = &answer.list[0].totals;
        totals.iter().find(|total| total.kind == kind).map(|total| total.sum().as_nanos())
    };
    assert_eq!((of(Kind::Shared), of(Kind::Higher)), (None, Some(180 + 200)), "{:#?}", list(&answer.list[0]));
}

/// On several processors whoever was displaced may have gone on elsewhere, so an empty processor is not known to idle.
#[test]
fn a_displaced_job_may_be_on_any_processor() {
    let two = metadata();
    let draw = |event, after: i64| job(event, START + after, 2, 7, [START, START + 20_000_000], 1);
    let mut records = overlapping();
    records.splice(4..4, [draw(Event::RELEASE, 110)]);
    records.extend([Event::COST, Event::WAKE, Event::SLEEP].map(|event| record(event, 0, 0, [0, 0], 1)));
    records.sort_by_key(|record| record.time);
    records.push(draw(Event::ABORT, 1_500));
    let answer = explained_of(&two, &records, (2, 7));
    let kinds: Vec<_> =
        list(&answer.list[0]).into_iter().map(|(from, to, _, kind)| (from, to, kind)).collect();
    assert_eq!(kinds[1..3], [(120, 700, Kind::Shared), (700, 1_000, Kind::Ahead)], "{kinds:?}");
}
