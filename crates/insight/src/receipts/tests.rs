//! Decisions and switches that nobody made, and what the ledger says of them.

use super::{GrantedBy, Ledger};
use crate::hierarchy::EdgeState;
use talea_guarantee::guarantee::Guarantee;
use talea_policy::arrangement::Receipts;
use talea_record::event::{
    BuiltinEvent, ChangeAuthor, ChangeKind, ChangeReason, EdgeChange, Lost, Member, RunEnd, Switch, Trigger,
};
use talea_record::event::{Flag, Thread, Timer, VpGrant, VpRelease, VpRevoke};
use talea_record::{MemberRole, Record, RunOutcome, Sink, ThreadRole};
use talea_time::{Duration, Instant, Work};

const SCHEDULER: u16 = 0;
const VIDEO: u16 = 1;
const WORDS: u16 = 2;
const VIDEO_THREAD: u32 = 101;
const WORDS_THREAD: u32 = 102;
const SENTINEL: u32 = 11;
const CONTROLLER: u32 = 12;
const STRANGER: u32 = 999;
const IDLE: u32 = 0;
const CPU: u16 = 3;
const RUNS: EdgeState = EdgeState::Running(CPU);

/// Microseconds after the beginning of the run.
fn us(us: i64) -> Instant {
    Instant::from_nanos(1_000_000_000 + us * 1_000)
}

struct TestLedger(Ledger);

impl TestLedger {
    /// A scheduler above two threads, each with a promise.
    fn new() -> Self {
        let mut ledger = TestLedger(Ledger::new(&[CPU], Duration::from_millis(1)));
        for (edge, guarantee) in [(SCHEDULER, "ALL"), (VIDEO, "RESBS 5ms 20ms"), (WORDS, "RESBS 5ms 20ms")] {
            let guarantee = guarantee.parse::<Guarantee>().expect("a guarantee");
            ledger.0.promise(edge.into(), &guarantee, None);
        }
        for (tid, edge, role) in [
            (SENTINEL, None, MemberRole::Sentinel),
            (CONTROLLER, None, MemberRole::Infrastructure),
            (VIDEO_THREAD, Some(VIDEO.into()), MemberRole::Scheduled),
            (WORDS_THREAD, Some(WORDS.into()), MemberRole::Scheduled),
        ] {
            ledger.tell(0, Member { tid, started_by: 0, edge, node: 0, role: role.into() });
        }
        ledger
    }

    fn tell(&mut self, at: i64, event: impl BuiltinEvent) {
        self.0.record(event.at(us(at), CPU));
    }

    fn decide(&mut self, at: i64, edge: u16, state: EdgeState) {
        let (by, trigger) = (None, Trigger::Change.into());
        match state {
            EdgeState::Running(_) => self.tell(at, VpGrant { edge, by, trigger }),
            EdgeState::Ready => self.tell(at, VpRevoke { edge, by, trigger }),
            _ => self.tell(at, VpRelease { edge, by, trigger }),
        }
    }

    /// The thread and the scheduler above it want the processor and get it.
    fn grant(&mut self, at: i64, edge: u16) {
        for edge in [SCHEDULER, edge] {
            self.decide(at, edge, EdgeState::Ready);
            self.decide(at, edge, RUNS);
        }
    }

    fn switch(&mut self, at: i64, to_tid: u32) {
        let switch = Switch { from_tid: 0, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(false) };
        self.tell(at, switch);
    }

    fn receipts(&self) -> [Receipts; 3] {
        [0, 1, 2].map(|edge| self.0.receipts(edge))
    }

    /// What was withheld of each edge in microseconds, and how often that broke its promise.
    fn finish(&mut self, at: i64) -> [(i64, u64); 3] {
        self.tell(at, RunEnd { node: 0, how: RunOutcome::Over.into() });
        self.receipts().map(|receipts| (receipts.withheld_ns / 1_000, receipts.violations))
    }
}

#[test]
fn what_is_received_as_granted_is_withheld_from_nobody() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(20, VIDEO_THREAD);
    // The controller looks, and goes; the sentinel finds that the thread has blocked.
    ledger.switch(5_000, CONTROLLER);
    ledger.switch(5_300, VIDEO_THREAD);
    ledger.switch(8_000, SENTINEL);
    ledger.decide(8_400, VIDEO, EdgeState::Waiting);
    ledger.decide(8_400, SCHEDULER, EdgeState::Waiting);
    ledger.switch(8_420, IDLE);
    // The controller gives the idle processor, and that of a stranger, to a thread, and takes a while; or takes it from another thread.
    for (at, before) in [(10_000, IDLE), (20_000, STRANGER), (30_000, WORDS_THREAD)] {
        ledger.switch(at, before);
        ledger.switch(at + 1_000, CONTROLLER);
        ledger.grant(at + 1_010, VIDEO);
        ledger.switch(at + 1_400, VIDEO_THREAD);
        ledger.decide(at + 2_000, VIDEO, EdgeState::Waiting);
        ledger.decide(at + 2_000, SCHEDULER, EdgeState::Waiting);
    }
    ledger.switch(32_010, IDLE);
    assert_eq!(ledger.finish(60_000), [(0, 0); 3]);
    assert_eq!(ledger.0.total().spells, 0);
}

#[test]
fn the_controller_is_there_for_a_moment_while_a_processor_is_withheld() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    for (at, to) in [(2_000, STRANGER), (2_200, CONTROLLER), (2_210, STRANGER), (2_400, VIDEO_THREAD)] {
        ledger.switch(at, to);
    }
    assert_eq!(ledger.finish(60_000)[1].0, 400);
    // It is not the stranger's only from when the controller goes.
    let mut ledger = TestLedger::new();
    ledger.switch(0, CONTROLLER);
    ledger.grant(10, VIDEO);
    ledger.switch(1_000, STRANGER);
    ledger.switch(3_000, VIDEO_THREAD);
    assert_eq!(ledger.finish(60_000)[1].0, 2_000);
}

#[test]
fn a_pause_of_the_kernel_is_withheld_from_everybody_who_was_granted_in_it() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(2_000, IDLE);
    // In the pause the hierarchy goes on deciding, and ordinary programs run.
    ledger.decide(12_000, VIDEO, EdgeState::Ready);
    ledger.decide(12_000, WORDS, EdgeState::Ready);
    ledger.decide(12_000, WORDS, RUNS);
    ledger.switch(20_000, STRANGER);
    ledger.switch(52_000, WORDS_THREAD);
    let [scheduler, video, words] = ledger.finish(100_000);
    assert_eq!(scheduler, (50_000, 1), "ALL is broken once, by one pause");
    assert_eq!((video.0, words.0), (10_000, 40_000));
    assert!(words.1 > 0, "it was granted more than 5ms in every 20ms, and received nothing for 40ms");
    let total = ledger.0.total();
    let longest = total.longest.expect("a spell");
    assert_eq!((total.spells, longest.from, longest.to), (1, us(2_000), us(52_000)));
    assert_eq!(total.withheld, Duration::from_millis(50));
    // What follows from the pause is told; that "video" was never granted again is the hierarchy's to tell.
    let broken: Vec<_> = ledger.0.broken().collect();
    assert!(broken.iter().any(|(edge, _)| *edge == 0) && broken.iter().any(|(edge, _)| *edge == 2));
    let late = broken.iter().filter(|(edge, violation)| *edge == 1 && violation.from > us(12_000));
    assert_eq!(late.count(), 0, "{broken:?}");
    assert_eq!(ledger.0.broken().count(), 0, "each is told once");
}

#[test]
fn what_nobody_was_granted_is_not_withheld() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.decide(3_000, VIDEO, EdgeState::Waiting);
    ledger.decide(3_000, SCHEDULER, EdgeState::Waiting);
    ledger.switch(3_010, STRANGER);
    ledger.grant(90_000, WORDS);
    ledger.switch(90_050, WORDS_THREAD);
    assert_eq!(ledger.finish(100_000), [(0, 0); 3]);
}

#[test]
fn a_spell_counts_only_if_it_lasts_longer_than_the_way_to_a_switch() {
    for (length, withheld) in [(249, 0), (250, 0), (251, 251)] {
        let mut ledger = TestLedger::new();
        ledger.grant(0, VIDEO);
        ledger.switch(10, VIDEO_THREAD);
        ledger.switch(1_000, STRANGER);
        ledger.switch(1_000 + length, VIDEO_THREAD);
        assert_eq!(ledger.finish(5_000)[1], (withheld, 0), "{length} µs");
    }
}

#[test]
fn a_spell_that_is_not_over_counts_up_to_the_end() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(1_000, IDLE);
    assert_eq!(ledger.finish(4_000)[1].0, 3_000);
    // Nothing that comes later matters.
    ledger.switch(9_000, VIDEO_THREAD);
    assert_eq!(ledger.receipts()[1].withheld_ns, 3_000_000);
}

#[test]
fn other_members_have_no_right_to_what_one_was_granted() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(500, WORDS_THREAD);
    ledger.switch(2_500, VIDEO_THREAD);
    assert_eq!(ledger.finish(5_000)[1].0, 2_000, "who had it before is not known");
}

#[test]
fn where_the_kernel_tells_nothing_nothing_is_known_to_be_withheld() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(1_000, IDLE);
    ledger.tell(
        2_000,
        Lost {
            records: 7,
            since: None,
            ring: Record::KERNEL,
            cause: talea_record::LossCause::Overwritten.into(),
        },
    );
    assert_eq!(ledger.finish(50_000)[1].0, 1_000);
    assert_eq!(ledger.0.lost_switches, 7);
}

/// Who is below the edge has ended.
fn removed(edge: u16) -> EdgeChange {
    let (by, why) = (ChangeAuthor::Member.into(), ChangeReason::Ended.into());
    EdgeChange { edge, what: ChangeKind::Removed.into(), by, why, process: 0, user: 0, forced: Flag(false) }
}

#[test]
fn a_promise_that_is_let_go_is_judged_no_more() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(1_000, IDLE);
    ledger.tell(3_000, removed(VIDEO));
    assert_eq!(ledger.finish(200_000)[1], (2_000, 0));
}

#[test]
fn clocks_that_say_something_else_are_noticed() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(0, VIDEO_THREAD);
    ledger.switch(60_000, IDLE);
    let _receipts = ledger.finish(100_000);
    let ms = Work::from_millis;
    assert!(ledger.0.contradictions(&[(VIDEO_THREAD, ms(60)), (WORDS_THREAD, ms(0))]).is_empty());
    assert!(ledger.0.contradictions(&[(VIDEO_THREAD, ms(61))]).is_empty(), "they are read a moment apart");
    assert_eq!(
        ledger.0.contradictions(&[(VIDEO_THREAD, ms(90)), (WORDS_THREAD, ms(50))]),
        [VIDEO_THREAD, WORDS_THREAD]
    );
}

#[test]
fn lanes_are_served_by_any_of_their_threads() {
    let mut ledger = TestLedger::new();
    let edge = Some(VIDEO.into());
    ledger.tell(0, Member { tid: 103, started_by: 0, edge, node: 0, role: MemberRole::Scheduled.into() });
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(2_000, 103);
    ledger.switch(4_000, WORDS_THREAD);
    ledger.switch(5_000, VIDEO_THREAD);
    assert_eq!(ledger.finish(10_000)[1].0, 1_000);
}

#[test]
fn a_thread_that_comes_late_counts_from_then_on() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(0, 103);
    ledger.tell(
        40_000,
        Member {
            tid: 103,
            started_by: 0,
            edge: Some(VIDEO.into()),
            node: 0,
            role: MemberRole::Scheduled.into(),
        },
    );
    assert_eq!(ledger.finish(100_000)[1].0, 40_000);
    let ms = Work::from_millis;
    assert!(ledger.0.contradictions(&[(103, ms(60))]).is_empty());
    assert_eq!(ledger.0.contradictions(&[(103, ms(100))]), [103]);
}

#[test]
fn nothing_counts_after_the_last_instant_of_which_all_is_known() {
    let mut ledger = TestLedger::new();
    ledger.decide(0, VIDEO, RUNS);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(1_000, STRANGER);
    ledger.switch(2_000, VIDEO_THREAD);
    assert_eq!(ledger.0.close(), us(2_000));
    let known = ledger.0.receipts(VIDEO.into());
    assert_eq!(known.withheld_ns, 1_000_000);
    ledger.switch(3_000, STRANGER);
    ledger.switch(90_000, VIDEO_THREAD);
    ledger.tell(100_000, RunEnd { node: 0, how: RunOutcome::Over.into() });
    assert_eq!((ledger.0.receipts(VIDEO.into()), ledger.0.close()), (known, us(2_000)));
}

/// What a run without schedulers on two processors tells: two lanes' threads and a release thread.
struct TestOrder(Ledger);

const HIGH: u32 = 201;
const LOW: u32 = 202;
const RELEASE: u32 = 203;

impl TestOrder {
    fn new() -> Self {
        let ledger = Ledger::granted_by(GrantedBy::Kernel, &[CPU, CPU + 1], Duration::ZERO);
        let mut order = TestOrder(ledger.with_reserved(vec![2]));
        order.meet(HIGH, Some(0), ThreadRole::Lane);
        order.meet(LOW, Some(1), ThreadRole::Lane);
        order.meet(RELEASE, None, ThreadRole::Release);
        order
    }

    fn meet(&mut self, tid: u32, lane: Option<u16>, role: ThreadRole) {
        self.0.record(Thread { tid, pid: 5, node: 0, lane, role: role.into() }.at(us(0), CPU));
    }

    /// The thread `from` gives its processor to another one; it could go on if it was `preempted`.
    fn switch(&mut self, at: i64, (from_tid, to_tid): (u32, u32), preempted: bool) {
        self.switch_on(CPU, at, (from_tid, to_tid), preempted);
    }

    fn switch_on(&mut self, cpu: u16, at: i64, (from_tid, to_tid): (u32, u32), preempted: bool) {
        let switch = Switch { from_tid, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(preempted) };
        self.0.record(switch.at(us(at), cpu));
    }

    /// From when to when a processor was withheld, and by whom at first, since the last call.
    fn spells(&mut self) -> Vec<(i64, i64, u32)> {
        let since = |at: Instant| (at - us(0)).as_nanos() / 1_000;
        self.0.spells().map(|spell| (since(spell.from), since(spell.to), spell.thread)).collect()
    }
}

#[test]
fn where_the_kernel_decides_it_is_withheld_until_a_thread_of_the_run_has_the_processor_again() {
    let mut order = TestOrder::new();
    order.switch(1_000, (IDLE, LOW), false);
    order.switch(3_000, (LOW, IDLE), true);
    order.switch(3_100, (IDLE, STRANGER), true);
    order.switch(3_500, (STRANGER, RELEASE), true);
    order.switch(3_600, (RELEASE, LOW), false);
    assert_eq!(order.spells(), [(3_000, 3_500, IDLE)]);
    order.switch(3_800, (LOW, IDLE), false);
    order.switch(9_000, (IDLE, LOW), true);
    assert_eq!(order.spells(), [], "a thread that sleeps is not held off");
    order.switch(9_100, (LOW, STRANGER), true);
    order.switch(9_350, (STRANGER, LOW), true);
    assert_eq!(order.spells(), [], "no longer than a moment");
    order.switch(10_000, (LOW, STRANGER), true);
    order.0.close();
    assert_eq!(order.spells(), []);
}

#[test]
fn what_another_thread_of_the_run_preempted_waits_as_well() {
    let mut order = TestOrder::new();
    order.switch(1_000, (IDLE, LOW), false);
    order.switch(2_000, (LOW, HIGH), true);
    order.switch(3_000, (HIGH, STRANGER), false);
    order.switch(3_400, (STRANGER, IDLE), false);
    order.switch(3_500, (IDLE, LOW), true);
    order.switch(4_000, (LOW, IDLE), false);
    assert_eq!(order.spells(), [(3_000, 3_500, STRANGER)], "not while the higher one had it");
    order.switch(5_000, (IDLE, LOW), true);
    assert_eq!(order.spells(), [], "nobody could have gone on");
}

#[test]
fn who_goes_on_elsewhere_waits_no_longer() {
    let mut order = TestOrder::new();
    order.switch(1_000, (IDLE, LOW), false);
    order.switch(2_000, (LOW, STRANGER), true);
    order.switch_on(CPU + 1, 2_600, (IDLE, LOW), false);
    order.switch(9_000, (STRANGER, IDLE), false);
    assert_eq!(order.spells(), [(2_000, 2_600, STRANGER)]);
}

#[test]
fn a_release_thread_that_is_late_was_held_off_from_when_it_was_due() {
    let mut order = TestOrder::new();
    let timer = |order: &mut TestOrder, at: i64, due: i64| {
        order.0.record(Timer { due: us(due), woken: us(at), node: 0 }.at(us(at), CPU));
    };
    order.switch(1_000, (IDLE, LOW), false);
    order.switch(2_000, (LOW, STRANGER), false);
    order.switch(2_900, (STRANGER, RELEASE), true);
    timer(&mut order, 2_920, 2_500);
    assert_eq!(order.spells(), [(2_500, 2_900, STRANGER)]);
    timer(&mut order, 2_930, 2_500);
    assert_eq!(order.spells(), [], "told once");
    order.switch(3_000, (RELEASE, STRANGER), false);
    order.switch(3_400, (STRANGER, RELEASE), true);
    timer(&mut order, 3_420, 3_410);
    assert_eq!(order.spells(), [], "it was there before it was due");
    order.switch(4_000, (RELEASE, STRANGER), false);
    order.switch(4_700, (STRANGER, RELEASE), true);
    timer(&mut order, 4_720, 4_460);
    assert_eq!(order.spells(), [], "no longer than a moment");
    // Where records were lost, it may have been there in between.
    for (at, of) in [(5_000, Record::KERNEL), (7_000, 0)] {
        order.switch(at, (RELEASE, STRANGER), false);
        let cause = talea_record::LossCause::Overwritten.into();
        order.0.record(Lost { records: 7, since: None, ring: of, cause }.at(us(at + 500), CPU));
        order.switch(at + 1_000, (STRANGER, RELEASE), true);
        timer(&mut order, at + 1_020, at + 100);
        assert_eq!(order.spells(), [], "{of}");
    }
}

#[test]
fn a_thread_that_receives_messages_is_one_of_the_run() {
    const RECEIVER: u32 = 205;
    let mut order = TestOrder::new();
    order.meet(RECEIVER, None, ThreadRole::Receiver);
    order.meet(STRANGER, None, ThreadRole::Program);
    order.switch(1_000, (IDLE, LOW), false);
    order.switch(2_000, (LOW, RECEIVER), true);
    order.switch(3_000, (RECEIVER, LOW), false);
    assert_eq!(order.spells(), []);
    order.switch(4_000, (LOW, STRANGER), true);
    order.switch(5_000, (STRANGER, LOW), false);
    order.switch(6_000, (LOW, IDLE), false);
    assert_eq!(
        order.spells(),
        [(4_000, 5_000, STRANGER)],
        "none of the program's others serves lanes or releases jobs"
    );
}

#[test]
fn a_reservation_of_the_kernels_may_be_used_up() {
    const RESERVED: u32 = 204;
    let mut order = TestOrder::new();
    order.meet(RESERVED, Some(2), ThreadRole::Lane);
    order.switch(1_000, (IDLE, RESERVED), false);
    order.switch(2_000, (RESERVED, IDLE), true);
    order.switch(9_000, (IDLE, RESERVED), true);
    assert_eq!(order.spells(), []);
}

#[test]
fn after_a_loss_nobody_is_known_to_wait() {
    for of in [Record::KERNEL, 0] {
        let mut order = TestOrder::new();
        order.switch(1_000, (IDLE, LOW), false);
        order.switch(2_000, (LOW, IDLE), true);
        let cause = talea_record::LossCause::Overwritten.into();
        order.0.record(Lost { records: 7, since: None, ring: of, cause }.at(us(2_500), CPU));
        order.switch(9_000, (IDLE, STRANGER), false);
        order.switch(9_900, (STRANGER, IDLE), false);
        order.0.close();
        assert_eq!(order.spells(), [(2_000, 2_500, IDLE)], "{of}");
    }
}
