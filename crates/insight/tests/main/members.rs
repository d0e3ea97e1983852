//! Who stands behind an edge of a hierarchy has the time of all threads there, whatever put it there.

use std::convert::Infallible;
use talea_insight::Usage;
use talea_insight::explain::{Kind, Question, Subject, Which, explain};
use talea_insight::schedule::{Runner, Segments};
use talea_insight::usage::{MemberUsage, NodeUsage};
use talea_record::event::{
    EdgeChange, Flag, Member, Switch, Thread, ThreadExit, Trigger, VpGrant, VpRequest, VpRevoke, Withheld,
};
use talea_record::*;
use talea_samples::{job, run_event};
use talea_time::Instant;

/// The processes: of the run, of the program that the description starts, of one that was added, and of none of them.
const RUN: u32 = 5;
const BUSY: u32 = 71;
const HOG: u32 = 80;
const STRANGER: u32 = 99;
/// Threads: of the run, and beside the first ones of the programs one in a process that each of them has started.
const VIDEO: u32 = 70;
const CHILD: u32 = 72;
const OF_HOG: u32 = 81;
const LATER: u32 = 82;
/// The edges, and who is below them.
const TO_VIDEO: u16 = 0;
const TO_BUSY: u16 = 1;
const TO_HOG: u16 = 2;

/// One processor, on which a scheduler of fixed priorities has a thread and a program; another program is added.
fn metadata() -> Metadata {
    let mut metadata = talea_samples::metadata();
    metadata.nodes[0].cpus = vec![0];
    for (lane, label) in metadata.lanes.iter_mut().zip(["video", "busy"]) {
        (lane.discipline, lane.label) = ("thread".into(), label.into());
    }
    let kind = "fixed-priority".into();
    metadata.schedulers = vec![SchedulerEntry { node: 0, name: "FP".into(), kind }];
    for child in ["video", "busy", "hog"] {
        let (parent, guarantee) = ("FP".into(), "NULL".into());
        metadata.edges.push(EdgeEntry { node: 0, parent, child: child.into(), guarantee });
    }
    metadata
}

/// So many milliseconds after the run's start.
fn ms(ms: i64) -> Instant {
    Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
}

fn switch(at: i64, from: (u32, u32), to: (u32, u32)) -> Record {
    let ((from_tid, from_pid), (to_tid, to_pid)) = (from, to);
    Switch { from_tid, to_tid, from_pid, to_pid, preempted: Flag(true) }.at(ms(at), 0)
}

/// The kernel gives the processor to these threads of these processes one after the other, from these milliseconds on.
fn switches(all: &[(i64, (u32, u32))]) -> Vec<Record> {
    let before = [(0, (0, 0))].into_iter().chain(all.iter().copied());
    before.zip(all).map(|((_, from), (at, to))| switch(*at, from, *to)).collect()
}

fn member(at: i64, tid: u32, edge: u16) -> Record {
    let (edge, role) = (Some(edge.into()), MemberRole::Scheduled.into());
    Member { tid, started_by: 0, edge, node: 0, role }.at(ms(at), Record::NO_CPU)
}

fn removed(at: i64, edge: u16) -> Record {
    let (what, by) = (ChangeKind::Removed.into(), ChangeAuthor::Run.into());
    let change = EdgeChange {
        edge,
        what,
        by,
        why: ChangeReason::Ended.into(),
        process: 0,
        user: 0,
        forced: Flag(false),
    };
    change.at(ms(at), Record::NO_CPU)
}

fn of_job(event: Event, at: i64, operation: usize) -> Record {
    job(event, ms(at).as_nanos(), operation, 0, [ms(0).as_nanos(), ms(500).as_nanos()], 1)
}

/// The run from its beginning to `end`: the program of the description has a job all the time.
fn of_run(end: i64) -> Vec<Record> {
    let lane = |tid: u32, pid: u32, lane: u16| {
        Thread { tid, pid, node: 0, lane: Some(lane), role: ThreadRole::Lane.into() }.at(ms(0), 0)
    };
    let own = Thread { tid: RUN, pid: RUN, node: 0, lane: None, role: ThreadRole::Companion.into() };
    vec![
        own.at(ms(0), 0),
        run_event(Event::RUN_START, ms(0).as_nanos()),
        lane(VIDEO, RUN, 0),
        lane(BUSY, BUSY, 1),
        member(0, VIDEO, TO_VIDEO),
        member(0, BUSY, TO_BUSY),
        of_job(Event::RELEASE, 0, 1),
        of_job(Event::START, 0, 1),
        run_event(Event::RUN_END, ms(end).as_nanos()),
    ]
}

fn sorted(parts: &[Vec<Record>]) -> Vec<Record> {
    let mut records = parts.concat();
    records.sort_by_key(|record| record.time);
    records
}

fn usage(records: &[Record]) -> NodeUsage {
    let mut usage = Usage::new(&metadata());
    records.iter().for_each(|record| usage.record(*record));
    usage.finish().nodes.remove(0)
}

/// What the account has of threads, in milliseconds, by number.
fn programs(node: &NodeUsage) -> Vec<(u32, i64)> {
    let mut programs: Vec<(u32, i64)> =
        node.programs.iter().map(|program| (program.thread, program.ns / 1_000_000)).collect();
    programs.sort_unstable();
    programs
}

fn hog(ms: i64) -> Vec<MemberUsage> {
    vec![MemberUsage { name: "hog".into(), ns: ms * 1_000_000 }]
}

/// When the one that was added had the processor, in milliseconds.
fn shown(records: &[Record]) -> Vec<(i64, i64)> {
    let mut segments = Segments::new(&metadata());
    let mut shown = Vec::new();
    let since = |at: Instant| (at - ms(0)).as_nanos() / 1_000_000;
    let mut add = |segment: talea_insight::Segment| match &segment.runner {
        Runner::Member(name) if **name == *"hog" => shown.push((since(segment.start), since(segment.end))),
        Runner::Member(name) => panic!("{name}"),
        Runner::Job(_) | Runner::SharedUnseen(_) => {}
    };
    records.iter().for_each(|record| segments.feed(record, &mut add));
    segments.finish(records.last().expect("there are some").time, &mut add);
    shown
}

#[test]
fn all_threads_behind_an_edge_are_its_own() {
    let kernel = switches(&[
        (0, (BUSY, BUSY)),
        (10, (CHILD, CHILD)),
        (20, (HOG, HOG)),
        (30, (OF_HOG, OF_HOG)),
        (40, (STRANGER, STRANGER)),
        (50, (0, 0)),
    ]);
    let members = vec![member(10, CHILD, TO_BUSY), member(15, HOG, TO_HOG), member(15, OF_HOG, TO_HOG)];
    let records = sorted(&[of_run(60), members, kernel]);
    let node = usage(&records);
    assert_eq!(node.execution, [(1, Some(20_000_000))], "a program's children count with it");
    assert_eq!((node.members.clone(), node.execution_ns), (hog(20), Some(40_000_000)));
    assert_eq!((programs(&node), node.idle_ns), (vec![(STRANGER, 10)], Some(10_000_000)));
    assert_eq!((node.error_ns, node.companions_ns), (0, Some(0)));
    assert_eq!(shown(&records), [(20, 40)]);
}

#[test]
fn who_has_left_is_a_stranger() {
    let of_job = vec![of_job(Event::ABORT, 20, 1)];
    let kernel =
        switches(&[(0, (HOG, HOG)), (10, (BUSY, BUSY)), (30, (LATER, HOG)), (40, (HOG, HOG)), (50, (0, 0))]);
    let changes = vec![member(0, HOG, TO_HOG), member(0, LATER, TO_HOG)];
    let left = vec![removed(20, TO_BUSY), removed(45, TO_HOG)];
    let records = sorted(&[of_run(50), of_job, changes.clone(), kernel.clone(), left]);
    let node = usage(&records);
    assert_eq!((&node.execution[..], &node.members), (&[(1, Some(10_000_000))][..], &hog(25)));
    assert_eq!(programs(&node), [(BUSY, 10), (HOG, 5)]);
    assert_eq!((node.error_ns, node.companions_ns, node.not_broken_down_ns), (0, Some(0), 0));
    assert_eq!(shown(&records), [(0, 10), (30, 45)]);
    // One that comes back is who it was.
    let back =
        vec![removed(20, TO_HOG), member(20, LATER, TO_HOG), removed(35, TO_HOG), member(35, LATER, TO_HOG)];
    let node = usage(&sorted(&[of_run(50), changes, kernel, back]));
    assert_eq!((node.members.clone(), programs(&node)), (hog(20), vec![(HOG, 10)]));
}

#[test]
fn a_number_that_another_thread_has_next_is_no_members() {
    let kernel = switches(&[
        (0, (HOG, HOG)),
        (10, (OF_HOG, HOG)),
        // The number of a thread that has ended unheard.
        (20, (OF_HOG, STRANGER)),
        (30, (HOG, HOG)),
        // One that has ended, of which the kernel told.
        (40, (0, 0)),
        (50, (HOG, HOG)),
        (60, (LATER, LATER)),
        (70, (0, 0)),
    ]);
    let exit = ThreadExit { tid: HOG, pid: HOG }.at(ms(35), 0);
    let members = vec![member(0, HOG, TO_HOG), member(0, OF_HOG, TO_HOG), member(58, LATER, TO_HOG)];
    let records = sorted(&[of_run(70), members, kernel, vec![exit]]);
    let node = usage(&records);
    assert_eq!(node.members, hog(40), "up to its last switch, and what came later");
    assert_eq!((programs(&node), node.error_ns), (vec![(HOG, 10), (OF_HOG, 10)], 0));
    assert_eq!(shown(&records), [(0, 20), (30, 40), (60, 70)]);
}

/// Without the kernel's switches the schedulers' decisions say it, as records of jobs do of who has some.
#[test]
fn who_was_given_the_processor_has_it() {
    let (by, trigger, edge) = (None, Trigger::Timer.into(), TO_HOG);
    let decisions = vec![
        member(5, HOG, TO_HOG),
        VpRequest { edge, by, trigger }.at(ms(5), Record::NO_CPU),
        of_job(Event::PREEMPT, 10, 1),
        VpGrant { edge, by, trigger }.at(ms(10), 0),
        VpRevoke { edge, by, trigger }.at(ms(30), 0),
        of_job(Event::RESUME, 30, 1),
        of_job(Event::PREEMPT, 40, 1),
        VpGrant { edge, by, trigger }.at(ms(40), 0),
        removed(45, TO_HOG),
    ];
    let records = sorted(&[of_run(50), decisions.clone()]);
    let node = usage(&records);
    assert_eq!((&node.execution[..], &node.members), (&[(1, Some(20_000_000))][..], &hog(25)));
    assert_eq!((node.idle_ns, node.error_ns), (Some(5_000_000), 0));
    assert_eq!(shown(&records), [(10, 30), (40, 45)]);
    // What was withheld of it was another's.
    let withheld = Withheld { thread: STRANGER, from: ms(12), to: ms(16), node: 0 }.at(ms(25), 0);
    let node = usage(&sorted(&[of_run(50), decisions, vec![withheld]]));
    assert_eq!((node.members.clone(), programs(&node)), (hog(21), vec![(STRANGER, 4)]));
    assert_eq!((node.withheld_ns, node.error_ns), (Some(4_000_000), 0));
}

/// A thread waits while what was added has its turn, and then until that is off the processor.
#[test]
fn nobody_is_called_another_program_who_has_a_turn() {
    let (by, trigger) = (None, Trigger::Timer.into());
    let request = |at: i64, edge: u16| VpRequest { edge, by, trigger }.at(ms(at), Record::NO_CPU);
    let decisions = vec![
        member(0, HOG, TO_HOG),
        request(0, TO_HOG),
        VpGrant { edge: TO_HOG, by, trigger }.at(ms(0), 0),
        of_job(Event::RELEASE, 10, 0),
        request(10, TO_VIDEO),
        VpRevoke { edge: TO_HOG, by, trigger }.at(ms(20), 0),
        VpGrant { edge: TO_VIDEO, by, trigger }.at(ms(20), 0),
        of_job(Event::START, 20, 0),
        of_job(Event::COMPLETE, 30, 0),
    ];
    let late = Switch { from_tid: HOG, to_tid: VIDEO, from_pid: HOG, to_pid: RUN, preempted: Flag(true) };
    let kernel = vec![
        switch(0, (0, 0), (HOG, HOG)),
        late.at(Instant::from_nanos(ms(20).as_nanos() + 120_000), 0),
        switch(30, (VIDEO, RUN), (0, 0)),
    ];
    let records = sorted(&[of_run(40), decisions, kernel]);
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    };
    let id = JobId { operation: talea_model::OperationId::from_index(0), instance: 0 };
    let which = Which::This(Subject::Job(id));
    let answer = explain(&metadata(), Question { which, task: None, limit: 1 }, replay).expect("it is there");
    let totals = answer.list[0].totals.iter().map(|total| (total.kind, total.sum().as_nanos() / 1_000));
    let mut totals: Vec<(Kind, i64)> = totals.filter(|(kind, _)| *kind != Kind::Timer).collect();
    totals.sort_unstable();
    let mut expected = vec![(Kind::Turn, 10_000), (Kind::Switch, 120), (Kind::Execution, 9_880)];
    expected.sort_unstable();
    assert_eq!(totals, expected);
}
