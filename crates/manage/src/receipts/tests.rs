//! Decisions and switches that nobody made, and what the ledger says of them.

use super::ledger::Ledger;
use super::withholding::Infrastructure;
use crate::notes::{Note, Notes, What};
use talea_guarantee::guarantee::Guarantee;
use talea_policy::arrangement::{Change, Promise, Receipts, Watch};
use talea_policy::hierarchy::{ProcessorId, Transition, Trigger, VpId, VpState};
use talea_record::{Event, Record};
use talea_time::{Duration, Instant, Work};

const SCHEDULER: VpId = VpId::from_index(0);
const VIDEO: VpId = VpId::from_index(1);
const WORDS: VpId = VpId::from_index(2);
const VIDEO_THREAD: u32 = 101;
const WORDS_THREAD: u32 = 102;
const SENTINEL: u32 = 11;
const CONTROLLER: u32 = 12;
const STRANGER: u32 = 999;
const IDLE: u32 = 0;
const CPU: u16 = 3;
const RUNS: VpState = VpState::Running(ProcessorId::from_index(0));

/// Microseconds after the beginning of the run.
fn us(us: i64) -> Instant {
    Instant::from_nanos(1_000_000_000 + us * 1_000)
}

struct TestLedger(Ledger);

impl TestLedger {
    /// A scheduler above two threads, each with a promise.
    fn new() -> Self {
        let infrastructure = Infrastructure { sentinels: [SENTINEL].into(), helpers: [CONTROLLER].into() };
        let watch = Watch::new(Duration::from_millis(1));
        let mut ledger = TestLedger(Ledger::new(&[CPU], infrastructure, watch));
        for (child, vp, guarantee) in [
            ("RES", SCHEDULER, "ALL"),
            ("video", VIDEO, "RESBS 5ms 20ms"),
            ("words", WORDS, "RESBS 5ms 20ms"),
        ] {
            let promise = Some(Promise::Derived(guarantee.parse::<Guarantee>().expect("a guarantee")));
            let (parent, child) = ("above".into(), child.into());
            let held = Change::Held { parent, child, promise, vp, state: VpState::Waiting, at: us(-50) };
            ledger.note(-50, What::Change(Box::new(held)));
        }
        ledger.note(-40, What::Thread(VIDEO_THREAD, VIDEO));
        ledger.note(-40, What::Thread(WORDS_THREAD, WORDS));
        ledger.note(0, What::Begun);
        ledger
    }

    fn note(&mut self, at: i64, what: What) {
        self.0.note(Note { at: us(at), what });
    }

    fn decide(&mut self, at: i64, vp: VpId, state: VpState) {
        self.note(at, What::State(Transition { vp, state, trigger: Trigger::Change }));
    }

    /// The thread and the scheduler above it want the processor and get it.
    fn grant(&mut self, at: i64, vp: VpId) {
        for vp in [SCHEDULER, vp] {
            self.decide(at, vp, VpState::Ready);
            self.decide(at, vp, RUNS);
        }
    }

    fn switch(&mut self, at: i64, to: u32) {
        let words = [u64::from(to) << 32, 0];
        let (event, source) = (Event::SWITCH, Record::KERNEL);
        self.0.record(&Record { time: us(at), causal: 0, words, event, source, cpu: CPU, arg: 0 });
    }

    /// What was withheld of each edge in microseconds, and how often that broke its promise.
    fn finish(&mut self, at: i64) -> [(i64, u64); 3] {
        self.note(at, What::Over);
        let receipts = self.0.receipts();
        let of = |edge: usize| (receipts[edge].withheld_ns / 1_000, receipts[edge].violations);
        [of(0), of(1), of(2)]
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
    ledger.decide(8_400, VIDEO, VpState::Waiting);
    ledger.decide(8_400, SCHEDULER, VpState::Waiting);
    ledger.switch(8_420, IDLE);
    assert_eq!(ledger.finish(60_000), [(0, 0); 3]);
    assert_eq!(ledger.0.total().spells, 0);
}

#[test]
fn a_pause_of_the_kernel_is_withheld_from_everybody_who_was_granted_in_it() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(2_000, IDLE);
    // In the pause the hierarchy goes on deciding, and ordinary programs run.
    ledger.decide(12_000, VIDEO, VpState::Ready);
    ledger.decide(12_000, WORDS, VpState::Ready);
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
    let broken = ledger.0.broken();
    assert!(broken.iter().any(|(edge, _)| *edge == 0) && broken.iter().any(|(edge, _)| *edge == 2));
    let late = broken.iter().filter(|(edge, violation)| *edge == 1 && violation.from > us(12_000));
    assert_eq!(late.count(), 0, "{broken:?}");
    assert!(ledger.0.broken().is_empty(), "each is told once");
}

#[test]
fn what_nobody_was_granted_is_not_withheld() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.decide(3_000, VIDEO, VpState::Waiting);
    ledger.decide(3_000, SCHEDULER, VpState::Waiting);
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
    assert_eq!(ledger.0.receipts()[1].withheld_ns, 3_000_000);
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
    let lost = Record {
        time: us(2_000),
        causal: 0,
        words: [7, 0],
        event: Event::LOST,
        source: Record::KERNEL,
        cpu: CPU,
        arg: 0,
    };
    ledger.0.record(&lost);
    assert_eq!(ledger.finish(50_000)[1].0, 1_000);
    assert_eq!(ledger.0.lost, 7);
}

#[test]
fn a_promise_that_is_let_go_is_judged_no_more() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(10, VIDEO_THREAD);
    ledger.switch(1_000, IDLE);
    ledger.note(3_000, What::Change(Box::new(Change::LetGo { vp: VIDEO, at: us(3_000) })));
    let receipts: Vec<Receipts> = {
        let _all = ledger.finish(200_000);
        ledger.0.receipts()
    };
    assert_eq!((receipts[1].withheld_ns, receipts[1].violations), (2_000_000, 0));
}

#[test]
fn clocks_that_say_something_else_are_noticed() {
    let mut ledger = TestLedger::new();
    ledger.grant(0, VIDEO);
    ledger.switch(0, VIDEO_THREAD);
    ledger.switch(60_000, IDLE);
    let _receipts = ledger.finish(100_000);
    let ms = Work::from_millis;
    assert!(ledger.0.contradictions(&[(VIDEO, ms(60)), (WORDS, ms(0))]).is_empty());
    assert!(ledger.0.contradictions(&[(VIDEO, ms(61))]).is_empty(), "they are read a moment apart");
    assert_eq!(ledger.0.contradictions(&[(VIDEO, ms(90)), (WORDS, ms(50))]), [VIDEO, WORDS]);
}

#[test]
fn notes_without_room_are_counted() {
    let mut notes = Notes::empty();
    let mut room = Notes::room();
    let most = room.capacity();
    (0..most + 3).for_each(|at| notes.write(us(at as i64), What::Begun));
    // Time in notes never runs backwards.
    assert_eq!(notes.exchange(&mut room), 3);
    assert_eq!(room.len(), most);
    notes.write(us(0), What::Over);
    room.clear();
    assert_eq!(notes.exchange(&mut room), 3);
    assert_eq!(room, [Note { at: us(most as i64 + 2), what: What::Over }]);
}
