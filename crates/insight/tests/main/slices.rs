//! What a hierarchy leaves to the kernel in slices, in explanations and in the accounts of the processors.

use talea_insight::Usage;
use talea_insight::explain::{Kind, Question, Subject, Which, explain};
use talea_record::event::{Flag, Supply, Trigger, Typed, VpGrant, VpRequest, VpRevoke};
use talea_record::*;
use talea_samples::{at, job, metadata, run_event};
use talea_time::Instant;

const START: i64 = 1_000_000_000;

/// The lane of `nav` below a fixed priority, with one processor.
fn below_fixed_priority() -> Metadata {
    let mut metadata = metadata();
    metadata.nodes[0].cpus = vec![0];
    let kind = LANES.to_owned();
    metadata.schedulers = vec![SchedulerEntry { node: 0, name: "tasks".into(), kind }];
    let (parent, child, guarantee) = ("FP".into(), "tasks".into(), "PSBE 0.93 581.25us".into());
    metadata.edges = vec![EdgeEntry { node: 0, parent, child, guarantee }];
    metadata
}

/// A job of `nav` that executes from 10 to 1000, from which a slice of 200 is taken, and that nobody follows.
fn records() -> Vec<Record> {
    let nav = |event, after| job(event, START + after, 0, 0, [START, START + 10_000_000], 1);
    let moment = |after: i64| Instant::from_nanos(START + after);
    let (edge, by) = (0, None);
    let (own, supply) = (Trigger::Thread.into(), Trigger::Supply.into());
    vec![
        run_event(Event::RUN_START, START),
        nav(Event::RELEASE, 0),
        VpRequest { edge, by, trigger: own }.at(moment(10), Record::NO_CPU),
        VpGrant { edge, by, trigger: own }.at(moment(10), 0),
        nav(Event::START, 10),
        Supply { node: 0, given: Flag(false) }.at(moment(500), 0),
        VpRevoke { edge, by, trigger: supply }.at(moment(500), 0),
        nav(Event::PREEMPT, 500),
        Supply { node: 0, given: Flag(true) }.at(moment(700), 0),
        VpGrant { edge, by, trigger: supply }.at(moment(700), 0),
        nav(Event::RESUME, 700),
        nav(Event::COMPLETE, 1_000),
        event::VpRelease { edge, by, trigger: own }.at(moment(1_000), 0),
        run_event(Event::RUN_END, START + 2_000),
    ]
}

#[test]
fn a_slice_is_explained_as_one() {
    let (metadata, records) = (below_fixed_priority(), records());
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), std::convert::Infallible>(())
    };
    let which = Which::This(Subject::Instance { task: 0, number: 0 });
    let question = Question { which, task: None, limit: 1 };
    let answer = explain(&metadata, question, replay).expect("it is there");
    let one = &answer.list[0];
    assert_eq!(one.response(), at(1_000) - at(0));
    let totals = |kind| one.totals.iter().filter(move |total| total.kind == kind);
    let slices = totals(Kind::LeftInSlices).map(|total| total.sum().as_nanos()).sum::<i64>();
    assert_eq!(slices, 200, "{:#?}", one.totals);
    assert_eq!(totals(Kind::UsedUp).count(), 0, "fixed priority keeps nothing for anybody");
    let whole: i64 = one.totals.iter().map(|total| total.sum().as_nanos()).sum();
    assert_eq!(whole, 1_000);
}

#[test]
fn slices_have_an_account_of_their_own() {
    let mut usage = Usage::new(&below_fixed_priority());
    records().into_iter().for_each(|record| usage.record(record));
    let node = &usage.finish().nodes[0];
    assert_eq!((node.slices_ns, node.execution_ns), (Some(200), Some(490 + 300)));
    assert_eq!((node.error_ns, node.available_ns), (0, 2_000));
    assert_eq!(serde_json::to_value(node).expect("JSON")["slices_ns"], 200);
}

/// A lane below schedulers that has jobs and no processor does not dispatch: its processor is idle, unless somebody else has it.
#[test]
fn a_lane_that_waits_for_its_turn_leaves_its_processor_idle() {
    let recorded = [
        "job.release",
        "job.start",
        "job.preempt",
        "job.resume",
        "job.complete",
        "job.abort",
        "run.run-start",
        "run.run-end",
        "dispatch.cost",
        "dispatch.wake",
        "dispatch.sleep",
        "hls.request",
        "hls.grant",
        "hls.revoke",
        "hls.release",
        "hls.next-job",
        "hls.supply",
    ];
    let recorded = Some(recorded.map(String::from).into());
    let mut usage = Usage::new(&Metadata { recorded, ..below_fixed_priority() });
    let of_timer = |record: Record| match record.typed() {
        Typed::VpRevoke(VpRevoke { edge, by, .. }) => {
            VpRevoke { edge, by, trigger: Trigger::Timer.into() }.at(record.time, record.cpu)
        }
        Typed::VpGrant(VpGrant { edge, by, .. }) => {
            VpGrant { edge, by, trigger: Trigger::Timer.into() }.at(record.time, record.cpu)
        }
        _ => record,
    };
    let decided = records().into_iter().filter(|record| record.event != Event::SUPPLY);
    let mut records: Vec<Record> = decided.map(of_timer).collect();
    records.insert(4, event::Wake { lane: 0 }.at(Instant::from_nanos(START + 10), 0));
    records.into_iter().for_each(|record| usage.record(record));
    let node = &usage.finish().nodes[0];
    assert_eq!((node.execution_ns, node.not_broken_down_ns), (Some(490 + 300), 0));
    assert_eq!(node.idle_ns, Some(10 + 200 + 1_000));
}
