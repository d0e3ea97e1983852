//! What a planning scheduler promises, while reservations come, change and go.

use super::script::{at, ns, work};
use crate::hierarchy::Machine;
use proptest::prelude::*;
use talea_policy::hierarchy::{Constraint, Engine, Message, Parameters, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_policy::scheduler::{Announcing, Config, config};

/// What a child asks for: budget and period.
type Asked = (i64, i64);

#[derive(Clone, Debug)]
enum Act {
    /// Wants the processor at once, or later.
    Add(Asked, Begins),
    /// The child with this number, modulo how many there are.
    Change(usize, Asked),
    Remove(usize),
    /// Sleeps if it wants the processor, else wakes up.
    Turn(usize),
    /// One of two that never sleep and reserve nothing wants a piece of work: start from now, length, work.
    Piece(usize, i64, i64, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    AtOnce,
    Later,
}

/// A time in which a child wanted the processor and had the same reservation.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    thread: VpId,
    asked: Asked,
    from: i64,
    to: i64,
}

struct Play {
    machine: Machine,
    root: SchedulerId,
    /// With what each reserves, and since when it counts on it.
    children: Vec<(VpId, Asked, i64)>,
    endless: [VpId; 2],
    supply: Vec<(VpId, i64, i64)>,
    stretches: Vec<Stretch>,
    /// Accepted pieces: whose, and start, deadline and work.
    pieces: Vec<(VpId, i64, i64, i64)>,
    /// Reservations made and refused while others wanted theirs.
    made: usize,
    refused: usize,
}

fn reservation((budget, period): Asked) -> Parameters {
    Parameters::Reservation { budget: work(budget), period: ns(period) }
}

impl Play {
    fn new() -> Self {
        let mut engine = Engine::new(1);
        let kind = config::Spring { effort: 3_000, quantum: work(4) };
        let root = engine.add_root(kind.build(Announcing::Nothing).expect("in range"));
        let endless = [(); 2].map(|()| engine.add_thread(root, Parameters::None).expect("anybody"));
        let mut play = Play {
            machine: Machine::new(engine),
            root,
            children: Vec::new(),
            endless,
            supply: Vec::new(),
            stretches: Vec::new(),
            pieces: Vec::new(),
            made: 0,
            refused: 0,
        };
        endless.into_iter().for_each(|thread| play.wake(thread));
        play
    }

    fn now(&self) -> i64 {
        self.machine.now.as_nanos()
    }

    fn wake(&mut self, thread: VpId) {
        let (release, deadline) = (self.machine.now, talea_time::Instant::MAX);
        let tag = thread.index() as u32;
        self.machine.request(thread, Job { release, deadline, wcet: work(0), rank: 0, number: 0, tag });
    }

    fn end_stretch(&mut self, child: usize) {
        let (thread, asked, from) = self.children[child];
        if self.machine.wants(thread) {
            self.stretches.push(Stretch { thread, asked, from, to: self.now() });
        }
    }

    fn tally(&mut self, is_made: bool) {
        if self.children.iter().any(|(thread, ..)| self.machine.wants(*thread)) {
            *(if is_made { &mut self.made } else { &mut self.refused }) += 1;
        }
    }

    fn act(&mut self, act: &Act) {
        let now = self.machine.now;
        let number = |roll: &usize| roll % self.children.len().max(1);
        match act {
            Act::Add(asked, begins) => {
                self.machine.engine.advance(now);
                let added = self.machine.engine.add_thread(self.root, reservation(*asked));
                self.tally(added.is_ok());
                if let Ok(thread) = added {
                    self.children.push((thread, *asked, self.now()));
                    if *begins == Begins::AtOnce {
                        self.wake(thread);
                    }
                }
            }
            Act::Piece(whose, start, length, amount) => {
                let thread = self.endless[whose % 2];
                let (start, deadline) = (self.now() + start, self.now() + start + length);
                let is_open = |piece: &&(VpId, i64, i64, i64)| piece.0 == thread && piece.2 > now.as_nanos();
                if self.pieces.iter().find(is_open).is_none() {
                    let constraint =
                        Constraint { start: at(start), deadline: at(deadline), work: work(*amount) };
                    let message = Message::Constrain(constraint);
                    if self.machine.engine.message(self.root, Some(thread), message, now).is_ok() {
                        self.pieces.push((thread, start, deadline, *amount));
                    }
                }
            }
            _ if self.children.is_empty() => {}
            Act::Change(roll, asked) => {
                let child = number(roll);
                let thread = self.children[child].0;
                let message = Message::Change(reservation(*asked));
                let changed = self.machine.engine.message(self.root, Some(thread), message, now);
                self.tally(changed.is_ok());
                if changed.is_ok() {
                    self.end_stretch(child);
                    self.children[child] = (thread, *asked, self.now());
                }
            }
            Act::Remove(roll) => {
                let child = number(roll);
                self.end_stretch(child);
                let (thread, ..) = self.children.remove(child);
                if self.machine.wants(thread) {
                    self.machine.release(thread);
                }
                self.machine.engine.remove_thread(thread);
            }
            Act::Turn(roll) => {
                let child = number(roll);
                self.end_stretch(child);
                let thread = self.children[child].0;
                match self.machine.wants(thread) {
                    true => {
                        self.machine.release(thread);
                    }
                    false => self.wake(thread),
                }
                self.children[child].2 = self.now();
            }
        }
    }

    fn play(mut self, acts: &[(Act, i64)]) -> Self {
        for (act, gap) in acts {
            self.act(act);
            self.machine.settle();
            self.pass(*gap);
        }
        self.pass(400);
        (0..self.children.len()).for_each(|child| self.end_stretch(child));
        self
    }

    fn pass(&mut self, gap: i64) {
        let (until, supply) = (self.machine.now + ns(gap), &mut self.supply);
        self.machine.advance(until, |thread, from, to| {
            supply.push((thread, from.as_nanos(), to.as_nanos()));
        });
    }

    fn received(&self, thread: VpId, from: i64, to: i64) -> i64 {
        let part = |(who, start, end): &(VpId, i64, i64)| {
            if *who == thread { (to.min(*end) - from.max(*start)).max(0) } else { 0 }
        };
        self.supply.iter().map(part).sum()
    }

    /// How many periods of some phase hold exactly the budget; none if there is no such phase.
    fn periods_kept(&self, stretch: &Stretch) -> Option<i64> {
        let (budget, period) = stretch.asked;
        let windows = |phase: i64| (stretch.to - stretch.from - phase) / period;
        let is_kept = |phase: &i64| {
            (0..windows(*phase)).all(|window| {
                let start = stretch.from + phase + window * period;
                self.received(stretch.thread, start, start + period) == budget
            })
        };
        (0..period).find(is_kept).map(windows)
    }

    /// Checks every promise; returns how many periods there were.
    fn judge(&self) -> Result<i64, String> {
        for &(thread, start, deadline, amount) in &self.pieces {
            let received = self.received(thread, start, deadline);
            if received < amount && deadline <= self.now() {
                return Err(format!("{received} of {amount} from {start} to {deadline}"));
            }
        }
        let kept = |stretch: &Stretch| self.periods_kept(stretch).ok_or_else(|| format!("{stretch:?}"));
        self.stretches.iter().map(kept).sum()
    }
}

fn acts() -> impl Strategy<Value = Vec<(Act, i64)>> {
    let asked = || {
        let period = proptest::sample::select(vec![8, 10, 12, 16, 20, 24, 40, 48]);
        (1..9i64, period).prop_map(|(budget, period): (i64, i64)| (budget.min(period), period))
    };
    let act = prop_oneof![
        3 => asked().prop_map(|asked| Act::Add(asked, Begins::AtOnce)),
        1 => asked().prop_map(|asked| Act::Add(asked, Begins::Later)),
        2 => (0..8usize, asked()).prop_map(|(child, asked)| Act::Change(child, asked)),
        1 => (0..8usize).prop_map(Act::Remove),
        2 => (0..8usize).prop_map(Act::Turn),
        2 => (0..2usize, 0..40i64, 1..60i64, 1..9i64)
            .prop_map(|(whose, start, length, work)| Act::Piece(whose, start, length, work)),
    ];
    proptest::collection::vec((act, 0..90i64), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// RESBH and pieces done in time, for whoever was accepted, whatever comes, changes, goes, sleeps and wakes up beside it.
    #[test]
    fn what_is_planned_is_kept_while_everything_changes(acts in acts()) {
        let judged = Play::new().play(&acts).judge();
        prop_assert!(judged.is_ok(), "{judged:?}");
    }
}

/// The property above is about something: reservations are made and refused while others run, and many periods are judged.
#[test]
fn much_is_planned_while_others_run() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut made, mut refused, mut pieces, mut periods) = (0, 0, 0, 0);
    for _ in 0..200 {
        let acts = acts().new_tree(&mut runner).expect("acts are never rejected").current();
        let play = Play::new().play(&acts);
        made += play.made;
        refused += play.refused;
        pieces += play.pieces.len();
        periods += play.judge().expect("every promise is kept");
    }
    assert!(
        made > 200 && refused > 100 && pieces > 100 && periods > 5_000,
        "{made} {refused} {pieces} {periods}"
    );
}

fn refusal(present: &[Asked], asked: Asked) -> String {
    let mut engine = Engine::new(1);
    let kind = config::Spring { effort: 3_000, quantum: work(4) };
    let root = engine.add_root(kind.build(Announcing::Nothing).expect("in range"));
    for present in present {
        engine.add_thread(root, reservation(*present)).expect("it fits");
    }
    engine.add_thread(root, reservation(asked)).expect_err("it does not fit").to_string()
}

#[test]
fn a_reservation_is_refused_with_the_reason() {
    assert_eq!(
        refusal(&[(5, 10)], (6, 10)),
        "not admitted: 60 % of the processor are asked for and 50 % are left"
    );
    let too_long = "not admitted: a piece of 40ns without interruption does not fit between pieces of 5ns in every 10ns, which leave 10ns at most";
    assert_eq!(refusal(&[(5, 10)], (40, 100)), too_long);
    assert_eq!(refusal(&[(40, 100)], (5, 10)), too_long);
    assert_eq!(
        refusal(&[(5, 7_919)], (1, 7)),
        "not admitted: its periods and those of the others begin together again only after more than 4096 pieces of work"
    );
    let no_order = refusal(&[(5, 20), (5, 20)], (25, 100));
    let expected = "not admitted: no order of 11 pieces of work that meets every deadline was found in ";
    assert!(no_order.starts_with(expected), "{no_order}");
    assert_eq!(
        refusal(&[], (11, 10)),
        "a spring scheduler takes a budget above 0 and at most its period, or no parameters, not \
         Reservation { budget: Work(11), period: Duration(10) }"
    );
}

/// Long pieces have to be placed long before their deadlines where short ones leave little room.
#[test]
fn full_processors_are_planned() {
    let sets: [&[Asked]; 4] = [
        &[(5, 10), (5, 20), (5, 20)],
        &[(2, 10), (8, 100), (8, 100), (8, 100), (8, 100), (8, 100), (8, 100)],
        &[(1, 3), (1, 4), (1, 5), (1, 6)],
        &[(20, 100), (5, 20), (5, 20)],
    ];
    for set in sets {
        let mut play = Play::new();
        for asked in set {
            let thread = play.machine.engine.add_thread(play.root, reservation(*asked));
            play.children.push((thread.unwrap_or_else(|refusal| panic!("{set:?}: {refusal}")), *asked, 0));
        }
        for (thread, ..) in play.children.clone() {
            play.wake(thread);
        }
        play.machine.settle();
        let periods = play.play(&[]).judge().expect("every promise is kept");
        assert!(periods >= set.iter().map(|(_, period)| 400 / period - 1).sum::<i64>(), "{set:?}");
    }
}
