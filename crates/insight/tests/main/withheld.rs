//! Everybody who reads a trace finds the same time withheld, to the nanosecond.

use std::collections::BTreeMap;
use std::convert::Infallible;
use talea_insight::Usage;
use talea_insight::explain::{Kind, Question, Subject, Which, explain};
use talea_insight::receipts::Ledger;
use talea_insight::usage::{NodeUsage, WithheldBy};
use talea_record::event::{
    Flag, Lost, Member, Switch, Thread, Trigger, VpGrant, VpRelease, VpRequest, VpRevoke, Withheld,
};
use talea_record::*;
use talea_samples::{job, run_event};
use talea_time::{Duration, Instant};

const START: i64 = 1_000_000_000;
/// Of each of two threads: its number, which is also that of its edge and its processor, and its operation.
const THREADS: [(u32, usize); 2] = [(70, 0), (71, 1)];
/// Another member of the hierarchy, to which nothing is granted.
const OTHER: u32 = 72;
const SENTINEL: u32 = 11;
const CONTROLLER: u32 = 12;
const STRANGER: u32 = 99;
const IDLE: u32 = 0;
/// When the jobs of both are done.
const DONE: i64 = 100_000;

/// Two processors, on which a scheduler of fixed priorities has two threads.
fn metadata() -> Metadata {
    let mut metadata = talea_samples::metadata();
    for lane in &mut metadata.lanes {
        lane.discipline = "thread".into();
        let (parent, child, guarantee) = ("FP".into(), lane.label.clone(), "NULL".into());
        metadata.edges.push(EdgeEntry { node: 0, parent, child, guarantee });
    }
    let (parent, child, guarantee) = ("FP".into(), "other".into(), "NULL".into());
    metadata.edges.push(EdgeEntry { node: 0, parent, child, guarantee });
    metadata
}

/// So many microseconds after the run's start.
fn us(us: i64) -> Instant {
    Instant::from_nanos(START + us * 1_000)
}

fn switch(at: i64, cpu: u16, to_tid: u32) -> Record {
    Switch { from_tid: 0, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(true) }.at(us(at), cpu)
}

/// What the run tells: both threads have a job from the beginning to [`DONE`] and are granted their processors, but for half a
/// millisecond of the first.
fn of_run() -> Vec<Record> {
    let (by, trigger) = (None, Trigger::Thread.into());
    let infrastructure = [(SENTINEL, MemberRole::Sentinel), (CONTROLLER, MemberRole::Infrastructure)];
    let member = |(tid, edge, role): (u32, Option<u32>, MemberRole)| {
        Member { tid, started_by: 0, edge, node: 0, role: role.into() }.at(us(0), Record::NO_CPU)
    };
    let mut records = vec![run_event(Event::RUN_START, START)];
    records.extend(infrastructure.map(|(tid, role)| member((tid, None, role))));
    records.push(member((OTHER, Some(2), MemberRole::Scheduled)));
    for (edge, (tid, operation)) in THREADS.into_iter().enumerate() {
        let (cpu, edge) = (edge as u16, edge as u16);
        let lane = Thread { tid, pid: 5, node: 0, lane: Some(edge), role: ThreadRole::Lane.into() };
        let of_job = |event: Event, at: i64| {
            let words = [START, START + 200_000_000];
            Record { cpu, ..job(event, us(at).as_nanos(), operation, 0, words, 1) }
        };
        records.extend([
            lane.at(us(0), cpu),
            member((tid, Some(edge.into()), MemberRole::Scheduled)),
            of_job(Event::RELEASE, 0),
            VpRequest { edge, by, trigger }.at(us(0), Record::NO_CPU),
            VpGrant { edge, by, trigger }.at(us(0), cpu),
            of_job(Event::START, 0),
            of_job(Event::COMPLETE, DONE),
            VpRelease { edge, by, trigger }.at(us(DONE), cpu),
        ]);
    }
    records.push(VpRevoke { edge: 0, by, trigger }.at(us(61_000), 0));
    records.push(VpGrant { edge: 0, by, trigger }.at(us(61_500), 0));
    records.push(run_event(Event::RUN_END, us(DONE + 1_000).as_nanos()));
    records
}

/// What the kernel tells.
fn of_kernel() -> Vec<Record> {
    let on_first = [
        (0, 70),
        (10_000, STRANGER),
        (15_000, 70),
        // Two have it one after the other.
        (20_000, IDLE),
        (22_000, STRANGER),
        (23_000, 70),
        // The controller has it for longer than a moment, and a stranger for less.
        (30_000, CONTROLLER),
        (30_400, 70),
        (40_000, STRANGER),
        (40_200, 70),
        (50_000, OTHER),
        (51_000, 70),
        // Revoked meanwhile, and granted again.
        (60_000, IDLE),
        (63_000, 70),
        // The sentinel has it where the thread sleeps.
        (80_000, SENTINEL),
        (80_500, 70),
        (90_000, IDLE),
        (91_000, 70),
        (DONE, IDLE),
    ];
    let on_second = [(0, 71), (50_000, IDLE), (52_000, 71), (DONE, STRANGER)];
    let on = |cpu: u16| move |(at, to): (i64, u32)| switch(at, cpu, to);
    on_first.into_iter().map(on(0)).chain(on_second.into_iter().map(on(1))).collect()
}

/// What was withheld, in microseconds: of the first edge and of the second.
const WITHHELD: [i64; 2] = [5_000 + 3_000 + 1_000 + (1_000 + 1_500) + 1_000, 2_000];

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| record.time);
    records
}

/// What a run's auditor makes of both: what of each edge was withheld, and its records, which come a little later.
fn audited() -> ([i64; 2], Vec<Record>) {
    let mut ledger = Ledger::new(&[0, 1], Duration::from_millis(1));
    sorted([of_run(), of_kernel()].concat()).into_iter().for_each(|record| ledger.record(record));
    let of_edges = [0, 1].map(|edge| ledger.receipts(edge).withheld_ns);
    assert_eq!(of_edges.iter().sum::<i64>(), ledger.total().withheld.as_nanos());
    let told = ledger.spells().map(|spell| {
        let (thread, from, to) = (spell.thread, spell.from, spell.to);
        Withheld { thread, from, to, node: 0 }.at(to + Duration::from_millis(30), spell.cpu)
    });
    (of_edges, told.collect())
}

fn usage(records: &[Record]) -> NodeUsage {
    let mut usage = Usage::new(&metadata());
    records.iter().for_each(|record| usage.record(*record));
    usage.finish().nodes.remove(0)
}

/// What of the response of the edge's job was withheld.
fn explained(records: &[Record], operation: usize) -> i64 {
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    };
    let id = JobId { operation: talea_model::OperationId::from_index(operation), instance: 0 };
    let which = Which::This(Subject::Job(id));
    let answer = explain(&metadata(), Question { which, task: None, limit: 1 }, replay).expect("it is there");
    let one = &answer.list[0];
    let withheld = one.totals.iter().filter(|total| total.kind == Kind::Withheld);
    withheld.map(|total| total.sum().as_nanos()).sum()
}

/// Who took it, in microseconds.
fn takers(node: &NodeUsage) -> BTreeMap<WithheldBy, i64> {
    node.withheld.iter().map(|taken| (taken.by, taken.ns / 1_000)).collect()
}

#[test]
fn every_reader_finds_the_same_time_withheld() {
    let (of_edges, told) = audited();
    assert_eq!(of_edges, WITHHELD.map(|us| us * 1_000));
    let (switched, audited) = ([of_run(), of_kernel()].concat(), [of_run(), told.clone()].concat());
    // The trace's own switches have a gap in which the auditor saw everything.
    let is_lost = |record: &&Record| record.cpu == 0 && (us(9_000)..us(16_000)).contains(&record.time);
    let kept: Vec<Record> = of_kernel().iter().filter(|record| !is_lost(record)).copied().collect();
    let cause = LossCause::Overwritten.into();
    let lost = Lost { records: 2, since: None, ring: Record::KERNEL, cause }.at(us(9_000), 0);
    let in_part = [of_run(), kept, vec![lost], told.clone()].concat();
    let both = [of_run(), of_kernel(), told].concat();
    for (what, records) in
        [("switches", switched), ("the auditor", audited), ("both", both), ("in part", in_part)]
    {
        let records = sorted(records);
        let node = usage(&records);
        assert_eq!(node.withheld_ns, Some(of_edges.iter().sum()), "{what}");
        assert_eq!(node.error_ns, 0, "{what}");
        for (operation, of_edge) in of_edges.into_iter().enumerate() {
            assert_eq!(explained(&records, operation), of_edge, "{what}, {operation}");
        }
        // Who knows the first that had it alone says it was that one.
        let (nobody, stranger) = if what == "the auditor" { (8_500, 5_000) } else { (7_500, 6_000) };
        let by = [
            (WithheldBy::Nobody, nobody),
            (WithheldBy::Thread(STRANGER), stranger),
            (WithheldBy::Thread(OTHER), 1_000),
        ];
        assert_eq!(takers(&node), by.into(), "{what}");
    }
}

/// A thread of the run that has a processor which is granted to another one executes there, and yet is without its own.
#[test]
fn what_a_thread_of_the_run_took_is_its_execution() {
    let mut kernel = of_kernel();
    let taken = switch(50_000, 0, OTHER);
    *kernel.iter_mut().find(|record| **record == taken).expect("it is there") = switch(50_000, 0, 71);
    let records = sorted([of_run(), kernel].concat());
    let node = usage(&records);
    assert_eq!(node.withheld_ns, Some(WITHHELD.iter().sum::<i64>() * 1_000));
    assert_eq!(takers(&node)[&WithheldBy::Thread(71)], 1_000);
    // But for what was withheld and taken by others, revoked, the controller's, the stranger's moment and the sentinel's.
    let executed = 2 * DONE - WITHHELD[0] - WITHHELD[1] + 1_000 - 500 - 400 - 200 - 500;
    assert_eq!(node.execution_ns, Some(executed * 1_000));
    let explained = THREADS.map(|(_, operation)| explained(&records, operation) / 1_000);
    assert_eq!(explained, [WITHHELD[0], WITHHELD[1] - 1_000]);
}

/// What is granted is not known where decisions were lost, nor where the beginning was not recorded.
#[test]
fn what_was_granted_must_be_known() {
    let lost = Lost { records: 3, since: Some(us(30_000)), ring: 0, cause: LossCause::Overwritten.into() };
    let lost = lost.at(us(70_000), Record::NO_CPU);
    let node = usage(&sorted([of_run(), of_kernel(), vec![lost]].concat()));
    assert_eq!(node.withheld_ns, Some((5_000 + 3_000) * 1_000), "what was told before the loss");
    let under_way: Vec<Record> =
        of_run().into_iter().filter(|record| record.event != Event::RUN_START).collect();
    let node = usage(&sorted([under_way, of_kernel()].concat()));
    assert_eq!(node.withheld_ns, Some(0));
}
