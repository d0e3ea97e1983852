//! What mechanisms cost is nobody's: it is granted, and not received.

use super::figure::{bursts, figure};
use crate::replay::Everything;
use talea_insight::Usage;
use talea_insight::usage::{UsageReport, WithheldBy};
use talea_model::{Overhead, Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
use talea_policy::arrangement::{Kept, Verdict};
use talea_record::{Event, Record, Sink};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant, Work};

const END: Instant = Instant::from_nanos(1_000_000_000);

fn costs(switch_us: i64, queue_us: i64, timer_us: i64) -> Overhead {
    let us = |us: i64| Work::from_nanos(us * 1_000);
    Overhead { switch: us(switch_us), queue: us(queue_us), timer: us(timer_us), ..Overhead::default() }
}

/// What came of every edge, and all records.
fn simulated(system: &System) -> (Vec<Kept>, Vec<Record>) {
    let simulation = Simulation::new(system).expect("the hierarchy can be arranged");
    let mut simulation = simulation.with_dispatch(DispatchRecords::Kept);
    let mut records = Everything::default();
    simulation.advance(END, &mut records);
    let kept = simulation.kept(0).expect("the node has a hierarchy");
    let again = simulation.kept(0).expect("the node has a hierarchy");
    let amounts =
        |kept: &[Kept]| kept.iter().map(|edge| (edge.received_ns, edge.receipts)).collect::<Vec<_>>();
    assert_eq!(amounts(&again), amounts(&kept), "asking changes nothing");
    simulation.finish(&mut records);
    (kept, records.0)
}

fn usage(system: &System, records: &[Record]) -> UsageReport {
    let simulation = Simulation::new(system).expect("the hierarchy can be arranged");
    let mut usage = Usage::new(simulation.metadata());
    records.iter().for_each(|record| usage.record(*record));
    usage.finish()
}

fn withheld(edge: &Kept) -> i64 {
    edge.receipts.expect("costs are seen").withheld_ns
}

/// The sum over the edges into those named.
fn sum(kept: &[Kept], children: &[&str], of: impl Fn(&Kept) -> i64) -> i64 {
    kept.iter().filter(|edge| children.contains(&edge.child.as_str())).map(of).sum()
}

/// A reservation of 4 ms in every 10 ms, and somebody who always wants the rest.
fn reserved(overhead: Overhead) -> System {
    let asked = |text: &str| Request::Guarantee(text.parse().expect("a guarantee"));
    System::builder("reserved")
        .overhead(overhead)
        .scheduler(SchedulerBuilder::new("FP", SchedulerKind::FIXED_PRIORITY))
        .scheduler(SchedulerBuilder::new("RES", SchedulerKind::RESERVATION).under("FP", Request::Priority(1)))
        .thread(ThreadBuilder::new("reserved", ThreadWork::CpuBound).under("RES", asked("RESBH 4 10")))
        .thread(ThreadBuilder::new("rest", ThreadWork::CpuBound).under("FP", Request::Priority(0)))
        .build()
        .expect("sound")
}

#[test]
fn a_switch_comes_out_of_what_is_granted() {
    let (kept, records) = simulated(&reserved(costs(100, 0, 0)));
    let edge = |child: &str| kept.iter().find(|edge| edge.child == child).expect("it is there");
    // A hundred periods, in each of which it has the processor once.
    let reserved = edge("reserved");
    assert_eq!((reserved.received_ns, withheld(reserved)), (390_000_000, 10_000_000));
    assert_eq!(withheld(edge("RES")), 10_000_000);
    assert_eq!((edge("rest").received_ns, withheld(edge("rest"))), (590_000_000, 10_000_000));
    assert_eq!(reserved.verdict(), Verdict::Kept);
    assert!(records.iter().all(|record| record.event != Event::VIOLATION));
}

#[test]
fn costs_beyond_measure_break_what_was_granted() {
    let (kept, records) = simulated(&reserved(costs(1_500, 0, 0)));
    let reserved = kept.iter().find(|edge| edge.child == "reserved").expect("it is there");
    // It was granted all that was promised, and received less.
    assert_eq!((reserved.violations, reserved.verdict()), (0, Verdict::Withheld));
    let worst = reserved.receipts.and_then(|receipts| receipts.worst).expect("the worst of them");
    assert_eq!((worst.received_ns, worst.promised_ns), (2_500_000, 4_000_000));
    assert!(records.iter().any(|record| record.event == Event::VIOLATION && record.arg == 3));
    assert!(records.iter().all(|record| record.event != Event::VIOLATION || record.arg == 3));
}

/// However many small costs lie in a window, and however late it is known that it is broken, and that several are.
#[test]
fn every_window_that_costs_break_is_told() {
    let asked = |text: &str| Request::Guarantee(text.parse().expect("a guarantee"));
    let system = System::builder("many")
        .overhead(costs(20, 5, 0))
        .scheduler(SchedulerBuilder::new("RES", SchedulerKind::RESERVATION))
        .scheduler(
            SchedulerBuilder::new("RR", SchedulerKind::ROUND_ROBIN)
                .quantum(Duration::from_micros(60))
                .under("RES", asked("RESBH 3 5")),
        )
        .thread(ThreadBuilder::new("one", bursts(2, 100)).under("RR", Request::Nothing))
        .thread(ThreadBuilder::new("two", bursts(30, 100)).under("RR", Request::Nothing))
        .thread(ThreadBuilder::new("three", bursts(30, 100)).under("RR", Request::Nothing))
        .build()
        .expect("sound");
    let (kept, records) = simulated(&system);
    let edge = kept.iter().find(|edge| edge.child == "RR").expect("it is there");
    assert_eq!(edge.violations, 0);
    let received = edge.receipts.expect("costs are seen").violations;
    let told = records.iter().filter(|record| record.event == Event::VIOLATION && record.arg == 3);
    assert_eq!(told.count() as u64, received);
    assert!(received > 10, "{received}");
}

#[test]
fn without_costs_what_is_granted_is_received() {
    let (kept, _) = simulated(&reserved(Overhead::default()));
    assert!(kept.iter().all(|edge| edge.receipts.is_none() && edge.verdict() != Verdict::Withheld));
    assert_eq!(sum(&kept, &["reserved"], |edge| edge.received_ns), 400_000_000);
    let (_, records) = simulated(&reserved(Overhead::default()));
    assert_eq!(usage(&reserved(Overhead::default()), &records).nodes[0].withheld_ns, Some(0));
}

/// Through a join with two parents, with costs of all kinds: the threads are withheld what the records say that was paid, and
/// everybody above what those below are.
#[test]
fn what_is_withheld_is_what_was_paid() {
    for overhead in [costs(100, 30, 20), costs(7_000, 0, 0), costs(0, 0, 900), costs(0, 2_000, 0)] {
        let system = figure(bursts(9, 66)).overhead(overhead).build().expect("sound");
        let (kept, records) = simulated(&system);
        let paid = records.iter().filter(|record| record.event == Event::COST);
        let paid: i64 = paid.map(|record| record.words[0] as i64).sum();
        assert!(paid > 0);
        let threads = ["video", "words", "voice"];
        assert_eq!(sum(&kept, &threads, withheld), paid, "{overhead:?}");
        assert_eq!(sum(&kept, &threads, |edge| edge.received_ns) + paid, END.as_nanos(), "{overhead:?}");
        // The accounts say the same beside overhead, and an explanation what its thread paid.
        let node = usage(&system, &records).nodes.remove(0);
        assert_eq!((node.withheld_ns, node.overhead_ns), (Some(paid), Some(paid)), "{overhead:?}");
        assert_eq!(node.withheld.iter().map(|taken| taken.by).collect::<Vec<_>>(), [WithheldBy::Overhead]);
        for (above, below) in [("PS", &threads[1..]), ("J", &["PS"])] {
            assert_eq!(sum(&kept, &[above], withheld), sum(&kept, below, withheld), "{above}, {overhead:?}");
            let received = |children: &[&str]| sum(&kept, children, |edge| edge.received_ns);
            assert_eq!(received(&[above]), received(below), "{above}, {overhead:?}");
        }
    }
}
