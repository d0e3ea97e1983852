//! What is said to help below an explicit plan, which alone decides whose turn it is.

use talea_insight::explain::{Kind, Question, Subject, Which, explain};
use talea_record::event::{Trigger, VpGrant, VpRelease, VpRequest};
use talea_record::*;
use talea_samples::{job, metadata, run_event};
use talea_time::Instant;

const START: i64 = 1_000_000_000;

/// The lane of `nav` and a thread below a plan, with one processor.
fn below_plan() -> Metadata {
    let mut metadata = metadata();
    metadata.nodes[0].cpus = vec![0];
    let scheduler = |name: &str, kind: &str| SchedulerEntry { node: 0, name: name.into(), kind: kind.into() };
    metadata.schedulers = vec![scheduler("P", "explicit-plan"), scheduler("tasks", LANES)];
    let edge = |child: &str| {
        let (parent, guarantee) = ("P".into(), "NULL".into());
        EdgeEntry { node: 0, parent, child: child.into(), guarantee }
    };
    metadata.edges = vec![edge("tasks"), edge("video")];
    metadata
}

/// A job of `nav` that is served from 900 on; the thread is, from 10 until then or `served`.
fn records(served: i64) -> Vec<Record> {
    let nav = |event, after| job(event, START + after, 0, 0, [START, START + 10_000_000], 1);
    let moment = |after: i64| Instant::from_nanos(START + after);
    let (by, trigger) = (None, Trigger::Thread.into());
    let planned = Trigger::Timer.into();
    vec![
        run_event(Event::RUN_START, START),
        VpRequest { edge: 1, by, trigger }.at(moment(0), Record::NO_CPU),
        nav(Event::RELEASE, 10),
        VpRequest { edge: 0, by, trigger }.at(moment(10), Record::NO_CPU),
        VpGrant { edge: 1, by, trigger: planned }.at(moment(10), 0),
        VpRelease { edge: 1, by, trigger }.at(moment(served), 0),
        VpGrant { edge: 0, by, trigger: planned }.at(moment(900), 0),
        nav(Event::START, 900),
        nav(Event::COMPLETE, 1_000),
        VpRelease { edge: 0, by, trigger }.at(moment(1_000), 0),
        run_event(Event::RUN_END, START + 2_000),
    ]
}

/// What most of the response was, and what is said of it.
fn explained(records: &[Record]) -> (Kind, String) {
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), std::convert::Infallible>(())
    };
    let which = Which::This(Subject::Instance { task: 0, number: 0 });
    let question = Question { which, task: None, limit: 1 };
    let answer = explain(&below_plan(), question, replay).expect("it is there");
    let one = &answer.list[0];
    let most = one.totals.iter().max_by_key(|total| total.sum()).expect("it took some time");
    (most.kind, answer.sentence(one))
}

#[test]
fn who_waits_for_the_turn_of_another_is_advised_to_change_the_plan() {
    let (kind, sentence) = explained(&records(900));
    assert_eq!(kind, Kind::Turn, "{sentence}");
    let advice = "P promises tasks nothing: an earlier or longer entry for tasks in its plan would help, or a shorter one for video, if it has one.";
    assert!(sentence.ends_with(advice), "{sentence}");
}

#[test]
fn who_waits_for_an_entry_is_advised_to_change_the_plan() {
    let (kind, sentence) = explained(&records(20));
    assert_eq!(kind, Kind::UsedUp, "{sentence}");
    let advice = "P runs tasks when its plan says so, and not beyond: an entry for tasks at that time would help, or a longer one, or gaps = \
                  \"event-driven\".";
    assert!(sentence.ends_with(advice), "{sentence}");
}
