//! The hierarchy of Regehr and Stankovic, *HLS*, 2001, Figures 1 and 3: fixed priority over a reservation scheduler, and
//! a join of a reservation with what is left, over a proportional share.

use super::Nowhere;
use crate::replay::{Everything, records_with};
use std::num::NonZeroU32;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Monitor, Standing, Tally};
use talea_insight::Accounting;
use talea_model::{
    Execution, Request, SchedulerBuilder, SchedulerKind, System, SystemBuilder, ThreadBuilder, ThreadWork,
};
use talea_policy::arrangement::Kept;
use talea_record::{Event, JobId};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant, Work};

const END: Instant = Instant::from_nanos(6_600_000_000);

/// Which of the figure's threads: their order in the system.
const VIDEO: usize = 0;
const WORDS: usize = 1;
const VOICE: usize = 2;

fn promise(text: &str) -> Guarantee {
    text.parse().expect("a guarantee")
}

fn share(weight: u32) -> Request {
    Request::share(NonZeroU32::new(weight).expect("above zero"))
}

pub(super) fn bursts(burst_ms: i64, period_ms: i64) -> ThreadWork {
    let burst = Execution::Constant(Work::from_millis(burst_ms));
    ThreadWork::Bursts { burst, period: Duration::from_millis(period_ms) }
}

/// The figure's schedulers, and its threads with `video`'s work; the others never stop.
pub(super) fn figure(video: ThreadWork) -> SystemBuilder {
    use SchedulerKind as K;
    let reserved = |text| Request::Guarantee(promise(text));
    System::builder("figure")
        .scheduler(SchedulerBuilder::new("FP", K::FIXED_PRIORITY))
        .scheduler(SchedulerBuilder::new("RES", K::RESERVATION).under("FP", Request::Priority(3)))
        .scheduler(
            SchedulerBuilder::new("J", K::JOIN)
                .under("RES", reserved("RESBH 10 20"))
                .under("FP", Request::Priority(1)),
        )
        .scheduler(SchedulerBuilder::new("PS", K::PROPORTIONAL_SHARE).under("J", Request::Nothing))
        .thread(ThreadBuilder::new("video", video).under("RES", reserved("RESBH 5 33")))
        .thread(ThreadBuilder::new("words", ThreadWork::CpuBound).under("PS", share(1)))
        .thread(ThreadBuilder::new("voice", ThreadWork::CpuBound).under("PS", share(4)))
}

fn simulation(system: &System) -> Simulation {
    Simulation::new(system).expect("the hierarchy can be arranged")
}

fn kept(system: &System) -> Vec<Kept> {
    let mut simulation = simulation(system);
    simulation.advance(END, &mut Nowhere);
    simulation.check_invariants();
    simulation.kept(0).expect("the node has a hierarchy")
}

fn received(kept: &[Kept], thread: &str) -> i64 {
    kept.iter().filter(|edge| edge.child == thread).map(|edge| edge.received_ns).sum()
}

/// A thread beside the figure's that takes everything that is not promised.
fn taken(figure: SystemBuilder) -> System {
    let greedy = ThreadBuilder::new("greedy", ThreadWork::CpuBound).under("FP", Request::Priority(2));
    figure.thread(greedy).build().expect("sound")
}

/// What `thread` receives, by the records alone, beside a guarantee.
fn held_to(system: &System, thread: usize, text: &str) -> Tally {
    let mut records = Everything::default();
    let mut simulation = simulation(system);
    simulation.advance(END, &mut records);
    let mut monitor = Monitor::new(&promise(text), Duration::ZERO, Instant::ZERO);
    for record in records.0 {
        let standing = match record.event {
            Event::RELEASE | Event::PREEMPT => Standing::Ready,
            Event::START | Event::RESUME => Standing::Running,
            _ => continue,
        };
        if JobId::unpack(record.causal).operation.index() == thread {
            monitor.note(record.time, standing, &mut |_| {});
        }
    }
    *monitor.tally()
}

/// With everything taken that is not promised every promise is kept, and each is the best: one that is slightly better is broken.
#[test]
fn the_figures_guarantees_are_kept() {
    let system = taken(figure(ThreadWork::CpuBound));
    let edges = kept(&system);
    assert!(edges.iter().all(|edge| edge.violations == 0), "{edges:#?}");
    assert_eq!(received(&edges, "video"), 1_000_000_000);
    assert_eq!(received(&edges, "words") + received(&edges, "voice"), 3_300_000_000);
    let promised = [(VIDEO, "RESBH 5 33", "RESBS 6 33"), (WORDS, "PSBE 0.1 22", "PSBE 0.15 22")];
    for (thread, derived, better) in promised.into_iter().chain([(VOICE, "PSBE 0.4 58", "PSBE 0.45 58")]) {
        let tally = held_to(&system, thread, derived);
        assert!(tally.judged > 50 && tally.violations == 0, "{derived}: {tally:?}");
        assert!(held_to(&system, thread, better).violations > 0, "{better} is not broken");
    }
}

/// Slack goes to the proportional share, through the join's other parent.
#[test]
fn what_nobody_takes_goes_to_the_share() {
    let system = figure(bursts(5, 33)).build().expect("sound");
    let edges = kept(&system);
    let [words, voice] = ["words", "voice"].map(|thread| received(&edges, thread));
    assert_eq!(words + voice, 5_600_000_000);
    assert!((voice - 4 * words).abs() < 60_000_000);
    let mut simulation = simulation(&system);
    let mut accounting = Accounting::new(simulation.metadata(), Duration::from_secs(1));
    simulation.advance(END, &mut accounting);
    simulation.finish(&mut accounting);
    let report = accounting.finish(END);
    let frames = report.tasks.iter().find(|task| task.name == "video").expect("it was there");
    assert_eq!((frames.completed, frames.missed), (200, 0));
}

/// A burst that takes longer than its period is late, and so is what queues behind it; nothing is lost.
#[test]
fn late_bursts_queue() {
    let system = System::builder("late")
        .scheduler(SchedulerBuilder::new("FP", SchedulerKind::FIXED_PRIORITY))
        .thread(ThreadBuilder::new("slow", bursts(15, 10)).under("FP", Request::Priority(0)))
        .build()
        .expect("sound");
    let mut records = Everything::default();
    simulation(&system).advance(Instant::from_nanos(95_000_000), &mut records);
    let ends = records.0.iter().filter(|record| record.event == Event::COMPLETE);
    let ends: Vec<i64> = ends.map(|record| record.time.as_nanos() / 1_000_000).collect();
    assert_eq!(ends, [15, 30, 45, 60, 75, 90]);
    let arrivals = records.0.iter().filter(|record| record.event == Event::RELEASE).count();
    assert_eq!(arrivals, 10);
}

/// On two processors: round robin beside reservations, and always somebody who wants to run on both.
fn wide(switch: Work) -> System {
    use SchedulerKind as K;
    let reserved = |text| Request::Guarantee(promise(text));
    System::builder("wide")
        .node("n", [0, 1])
        .overhead(talea_model::Overhead { switch, ..Default::default() })
        .scheduler(SchedulerBuilder::new("FP", K::FIXED_PRIORITY).on("n"))
        .scheduler(SchedulerBuilder::new("RES", K::RESERVATION).under("FP", Request::Priority(1)))
        .scheduler(SchedulerBuilder::new("RR", K::ROUND_ROBIN).under("FP", Request::Priority(0)))
        .thread(ThreadBuilder::new("short", bursts(3, 10)).under("RES", reserved("RESBH 3 10")))
        .thread(ThreadBuilder::new("long", ThreadWork::CpuBound).under("RES", reserved("RESBH 4 25")))
        .thread(ThreadBuilder::new("ever", ThreadWork::CpuBound).under("RR", Request::Nothing))
        .thread(ThreadBuilder::new("often", bursts(11, 40)).under("RR", Request::Nothing))
        .build()
        .expect("sound")
}

#[test]
fn slices_give_the_same_records_as_one_run() {
    let system = wide(Work::from_nanos(20_000));
    let slices: Vec<i64> = (1..125).map(|slice| slice * 8_000_000).collect();
    let records = |slices: &[i64]| records_with(&system, slices, 1_000_000_000, DispatchRecords::Kept);
    assert_eq!(records(&[]), records(&slices));
}
