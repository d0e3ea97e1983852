//! Deliveries that wait for another one to the same consumer, which is called one at a time.

use super::posting::{Posted, posting, run_beside};
use super::*;
use crate::programs::stage;
use std::convert::Infallible;
use std::sync::mpsc;
use std::thread;
use talea_insight::explain::{Kind, Question, Subject, Which, explain};
use talea_model::{Criticality, LaneDispatch};
use talea_notification::{
    Content, Event as Pushed, EventChannelFactory, EventType, Header, Outcome as Called,
};
use talea_record::Sink;
use talea_record::event::Block;
use talea_runtime::{Declaration, Lower};

struct Nothing;
impl Content for Nothing {}

fn event(priority: i16) -> Pushed {
    let mut header = Header::new(EventType::new("T", "E"));
    header.priority = Some(priority);
    Pushed::new(header, Nothing)
}

/// Three lanes on these processors, below a scheduler if they are to be.
fn lanes(dispatch: LaneDispatch, cpus: std::ops::Range<u16>, schedulers: &str) -> System {
    let levels = [("one", Criticality::High), ("two", Criticality::Medium), ("three", Criticality::Low)];
    let tasks = levels.map(|(name, level)| task(name, 50, 1).criticality(level));
    let system = system(Strategy::Criticality).lane_dispatch(dispatch).node("n", cpus);
    let system = tasks.into_iter().fold(system, |system, task| system.task(task)).build().expect("sound");
    let text = format!("{}{schedulers}", system.to_toml());
    talea_model::parse("lanes.toml", &text, std::path::Path::new(".")).expect("sound").system
}

const SCHEDULERS: &str = "[[scheduler]]\nname = \"top\"\nkind = \"fixed-priority\"\n\
                          [[scheduler]]\nname = \"lanes\"\nkind = \"lanes\"\nunder = [{ scheduler = \"top\", priority = 1 }]\n";

/// The lower lane delivers an event, pushes an urgent one meanwhile, and goes on until the delivery of that waits.
fn waiting(system: &System, options: RunOptions) -> Posted {
    let (ran, ()) = run_beside(system, (Operations::synthetic(), options), |dispatcher| {
        let factory = EventChannelFactory::on(dispatcher.workplace().expect("there is a poster"));
        let channel = factory.create_with_defaults("c");
        let connected = || channel.supplier("s").connect().expect("connected");
        let (mut again, mut first) = (connected(), connected());
        let (done, last) = mpsc::channel();
        let lane = |name: &str, level| Declaration::new(name, ms(500)).criticality(level);
        let (asked, mut is_done) = (channel.clone(), false);
        let consumer = channel
            .consumer("serial")
            .lane_from(5, lane("high", Criticality::High))
            .lane_from(i16::MIN, lane("low", Criticality::Low))
            .connect_with_job(move |delivery, job| {
                if delivery.priority() == 9 {
                    done.send(()).expect("somebody waits");
                    return Called::Ok;
                }
                if std::mem::replace(&mut is_done, true) {
                    return Called::Ok;
                }
                again.push(job, &event(9)).expect("pushed");
                while asked
                    .statistics(job.now())
                    .consumers
                    .iter()
                    .all(|(_, _, one)| one.waited_for_serial == 0)
                {
                    thread::yield_now();
                }
                Called::Ok
            })
            .expect("connected");
        let mut poster = dispatcher.poster().expect("there is room");
        while first.push(&mut poster, &event(1)).expect("pushed").queued == 0 {
            thread::yield_now();
        }
        last.recv().expect("it is delivered");
        // Of those that were pushed before the run had begun others may have waited, too.
        assert!(consumer.statistics().waited_for_serial >= 1);
    });
    ran
}

#[test]
fn a_delivery_that_waits_for_another_one_is_recorded_and_explained_as_blocked_by_it() {
    for way in ["lanes", "without priorities", "preemptive lanes", "two processors", "lowered", "a hierarchy"]
    {
        let staged = if way == "a hierarchy" { stage(1) } else { None };
        let first = match &staged {
            Some((_, at)) => at.cpus[0],
            // It has said why.
            None if way == "a hierarchy" => continue,
            None => 0,
        };
        if way == "two processors" && thread::available_parallelism().is_ok_and(|count| count.get() < 2) {
            talea_measure::skip("one processor is here");
            continue;
        }
        let dispatch =
            if way == "preemptive lanes" { LaneDispatch::Preemptive } else { LaneDispatch::NonPreemptive };
        let cpus = first..first + if way == "two processors" { 2 } else { 1 };
        let schedulers = if matches!(way, "lowered" | "a hierarchy") { SCHEDULERS } else { "" };
        let system = lanes(dispatch, cpus, schedulers);
        let rt = if way == "without priorities" { RtMode::Off } else { RtMode::Warn };
        let lower = if way == "a hierarchy" { Lower::Never } else { Lower::WherePossible };
        let ran = waiting(&system, RunOptions { lower, ..posting(rt) });
        let still = ran.count(Event::BLOCK) - ran.count(Event::UNBLOCK);
        assert!(still <= 1, "{way}: one may wait at the end, and {still} do");
        let mut blocked =
            ran.records.iter().filter_map(|record| Block::read(record).map(|told| (told, record.time)));
        let (Block { job, by, .. }, from) = blocked.next().expect("it waits");
        let by = by.expect("it is known");
        let [job_name, by_name] = [job, by].map(|job| ran.metadata.job_name(job));
        assert!(
            job_name.starts_with("high #") && by_name.starts_with("low #"),
            "{way}: {job_name}, {by_name}"
        );
        let to = ran.times(Event::UNBLOCK, &job_name)[0];
        let question = Question { which: Which::This(Subject::Job(job)), task: None, limit: 1 };
        let answer = explain(&ran.metadata, question, |sink: &mut dyn Sink| {
            ran.records.iter().for_each(|record| sink.record(*record));
            Ok::<(), Infallible>(())
        });
        let answer = answer.expect("it tells enough");
        let total =
            answer.list[0].totals.iter().find(|total| total.kind == Kind::Serial).expect("it is named");
        assert_eq!(answer.blamed_name(total.blamed), "low");
        assert!(total.begun > Duration::ZERO && total.begun <= to - from, "{total:?}");
        let violations = ran.violations(&system);
        assert!(violations.iter().all(|found| !found.starts_with("life")), "{violations:?}");
    }
}
