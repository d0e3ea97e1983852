//! Hierarchies that change while they run: whatever is added, removed, moved, changed and replaced when, nobody is lost, and
//! what is refused leaves no trace.

use super::compositions::kinds;
use super::script::{ns, work};
use crate::hierarchy::Machine;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use talea_policy::hierarchy::{
    Above, Below, Edge, Enforcement, Engine, Fraction, Message, Parameters, Replacement, SchedulerId, Switch,
    Trigger, VpId, VpState,
};
use talea_policy::job::Job;
use talea_policy::scheduler::{Announcing, Configuration, FixedPriority};
use talea_time::{Instant, Work};

/// Numbers choose among what there is at the time.
#[derive(Clone, Debug)]
enum Act {
    Request { thread: usize, deadline: i64, wcet: i64 },
    Release { thread: usize },
    AddThread { parent: usize, roll: u32 },
    RemoveThread { thread: usize },
    AddScheduler { kind: Configuration, parents: Vec<(usize, u32)> },
    RemoveScheduler { scheduler: usize },
    MoveThread { thread: usize, parent: usize, roll: u32 },
    MoveScheduler { scheduler: usize, parents: Vec<(usize, u32)> },
    Change { vp: usize, roll: u32 },
    Replace { scheduler: usize, kind: Configuration, rolls: Vec<u32>, parents: Option<u32> },
}

type Round = (Vec<Act>, i64);

fn acts() -> impl Strategy<Value = Act> {
    let one = 0..64usize;
    let parents = || proptest::collection::vec((0..64usize, any::<u32>()), 1..4);
    let rolls = proptest::collection::vec(any::<u32>(), 1..4);
    prop_oneof![
        12 => (one.clone(), 1..40i64, 0..6i64)
            .prop_map(|(thread, deadline, wcet)| Act::Request { thread, deadline, wcet }),
        4 => one.clone().prop_map(|thread| Act::Release { thread }),
        4 => (one.clone(), any::<u32>()).prop_map(|(parent, roll)| Act::AddThread { parent, roll }),
        1 => one.clone().prop_map(|thread| Act::RemoveThread { thread }),
        3 => (kinds(), parents()).prop_map(|(kind, parents)| Act::AddScheduler { kind, parents }),
        2 => one.clone().prop_map(|scheduler| Act::RemoveScheduler { scheduler }),
        4 => (one.clone(), one.clone(), any::<u32>())
            .prop_map(|(thread, parent, roll)| Act::MoveThread { thread, parent, roll }),
        2 => (one.clone(), parents())
            .prop_map(|(scheduler, parents)| Act::MoveScheduler { scheduler, parents }),
        2 => (one.clone(), any::<u32>()).prop_map(|(vp, roll)| Act::Change { vp, roll }),
        6 => (one, kinds(), rolls, proptest::option::of(any::<u32>()))
            .prop_map(|(scheduler, kind, rolls, parents)| Act::Replace { scheduler, kind, rolls, parents }),
    ]
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    proptest::collection::vec((proptest::collection::vec(acts(), 0..5), 0..12i64), 1..40)
}

/// What a child of a scheduler of this kind may ask for; now and then something else.
fn asked(kind: &str, roll: u32) -> Parameters {
    let (low, high) = (i64::from(roll % 7) + 1, i64::from(roll / 7 % 23) + 8);
    match kind {
        _ if roll.is_multiple_of(11) => Parameters::Weight(low as u32),
        "fixed-priority" => Parameters::Priority((roll % 97) as i32 - 50),
        "time-sharing" => Parameters::Priority((roll % 16) as i32),
        "eevdf" if roll.is_multiple_of(2) => Parameters::Requests { weight: low as u32, request: work(high) },
        "proportional-share" | "sfq" if roll.is_multiple_of(2) => {
            Parameters::WarpedWeight { weight: low as u32, warp: ns(high) }
        }
        "proportional-share" | "sfq" | "stride" | "lottery" | "eevdf" | "sfs" => {
            Parameters::Weight(low as u32)
        }
        "reservation" | "soft-cbs" | "tbs" => {
            Parameters::Reservation { budget: work(low), period: ns(high * 2) }
        }
        "bss-i" => Parameters::Rate(Fraction::new(low, high * 2).expect("above 0")),
        "resource-kernel" if roll.is_multiple_of(2) => {
            let enforcement = [Enforcement::Hard, Enforcement::Firm, Enforcement::Soft][roll as usize % 3];
            let period = ns(high * 4);
            Parameters::Reserve { budget: work(low), period, deadline: period, enforcement }
        }
        "rialto" if roll.is_multiple_of(2) => {
            Parameters::Reservation { budget: work(low), period: ns(16 << (roll % 4)) }
        }
        "srms" => Parameters::Reservation { budget: work(low), period: ns(8 << (roll % 5)) },
        "explicit-plan" => Parameters::Process(roll % 5),
        _ => Parameters::None,
    }
}

struct Play {
    machine: Machine,
    threads: Vec<VpId>,
    number: u64,
    /// What each thread was seen to receive since it was added.
    seen: BTreeMap<VpId, Work>,
    /// The states that the transitions so far have led to.
    states: BTreeMap<VpId, VpState>,
    /// By act, whether it was refused.
    refused: Vec<bool>,
    /// Kinds that took another's place while somebody ran below it.
    took_over: BTreeSet<&'static str>,
}

impl Play {
    fn new(processors: usize) -> Self {
        let mut engine = Engine::new(processors);
        engine.add_root(Box::new(FixedPriority::new()));
        engine.watch();
        Play {
            machine: Machine::new(engine),
            threads: Vec::new(),
            number: 0,
            seen: BTreeMap::new(),
            states: BTreeMap::new(),
            refused: Vec::new(),
            took_over: BTreeSet::new(),
        }
    }

    fn scheduler(&self, number: usize) -> SchedulerId {
        let all: Vec<SchedulerId> = self.machine.engine.schedulers().collect();
        all[number % all.len()]
    }

    fn asked_of(&self, parent: SchedulerId, roll: u32) -> Parameters {
        asked(self.machine.engine.kind(parent).expect("it is there"), roll)
    }

    fn parents(&self, chosen: &[(usize, u32)]) -> Vec<(SchedulerId, Parameters)> {
        let parent = |&(number, roll): &(usize, u32)| {
            let parent = self.scheduler(number);
            (parent, self.asked_of(parent, roll))
        };
        chosen.iter().map(parent).collect()
    }

    fn thread(&self, number: usize) -> Option<VpId> {
        (!self.threads.is_empty()).then(|| self.threads[number % self.threads.len()])
    }

    fn request(&mut self, thread: VpId, deadline: i64, wcet: i64) {
        let (release, tag) = (self.machine.now, thread.index() as u32);
        self.number += 1;
        let deadline = release + ns(deadline);
        let job = Job { release, deadline, wcet: work(wcet), rank: 0, number: self.number, tag };
        self.machine.request(thread, job);
    }

    /// Does it, and says whether it was refused.
    fn act(&mut self, act: &Act) -> bool {
        let now = self.machine.now;
        let count = self.machine.engine.schedulers().count();
        self.machine.engine.advance(now);
        match act {
            Act::Request { thread, deadline, wcet } => {
                if let Some(thread) = self.thread(*thread).filter(|thread| !self.machine.wants(*thread)) {
                    self.request(thread, *deadline, *wcet);
                }
                false
            }
            Act::Release { thread } => {
                if let Some(thread) = self.thread(*thread).filter(|thread| self.machine.wants(*thread)) {
                    self.machine.release(thread);
                }
                false
            }
            Act::AddThread { parent, roll } => {
                let parent = self.scheduler(*parent);
                let added = self.machine.engine.add_thread(parent, self.asked_of(parent, *roll));
                if let Ok(thread) = added {
                    self.threads.push(thread);
                    self.seen.insert(thread, Work::ZERO);
                }
                added.is_err()
            }
            Act::RemoveThread { thread } => {
                if let Some(thread) = self.thread(*thread).filter(|thread| !self.machine.wants(*thread)) {
                    self.machine.engine.remove_thread(thread);
                    self.threads.retain(|other| *other != thread);
                    self.seen.remove(&thread);
                }
                false
            }
            Act::AddScheduler { kind, parents } if count < 8 => {
                let scheduler = kind.build(Announcing::Deadlines).expect("in range");
                let width = if matches!(kind.name(), "fixed-priority" | "join") { 3 } else { 1 };
                let parents = self.parents(&parents[..parents.len().min(width)]);
                self.machine.engine.add(scheduler, &parents).is_err()
            }
            Act::AddScheduler { .. } => false,
            Act::RemoveScheduler { scheduler } => {
                self.machine.engine.remove(self.scheduler(*scheduler), now).is_err()
            }
            Act::MoveThread { thread, parent, roll } => self.thread(*thread).is_some_and(|thread| {
                let parent = self.scheduler(*parent);
                let parameters = self.asked_of(parent, *roll);
                self.machine.engine.move_thread(thread, parent, parameters, now).is_err()
            }),
            Act::MoveScheduler { scheduler, parents } => {
                let (scheduler, parents) = (self.scheduler(*scheduler), self.parents(parents));
                self.machine.engine.move_scheduler(scheduler, &parents, now).is_err()
            }
            Act::Change { vp, roll } => {
                let edges: Vec<Edge> = self.machine.engine.edges().collect();
                let Edge { vp, above, .. } = edges[vp % edges.len()];
                let Above::Scheduler(parent) = above else { return false };
                let message = Message::Change(self.asked_of(parent, *roll));
                self.machine.engine.message(parent, Some(vp), message, now).is_err()
            }
            Act::Replace { scheduler, kind, rolls, parents } => {
                self.replace(self.scheduler(*scheduler), kind, rolls, *parents)
            }
        }
    }

    fn replace(
        &mut self,
        id: SchedulerId,
        kind: &Configuration,
        rolls: &[u32],
        changed: Option<u32>,
    ) -> bool {
        let engine = &self.machine.engine;
        let ask = |(place, edge): (usize, Edge)| {
            (edge.vp, asked(kind.name(), rolls[place % rolls.len()].wrapping_add(place as u32)))
        };
        let children: Vec<_> = engine.children(id).enumerate().map(ask).collect();
        let own = |edge: Edge| match (edge.above, changed) {
            (Above::Scheduler(parent), Some(roll)) => Some((edge.vp, self.asked_of(parent, roll))),
            _ => None,
        };
        let parents: Vec<_> = engine.parents(id).filter_map(own).collect();
        let scheduler = kind.build(Announcing::Deadlines).expect("in range");
        let replacement = Replacement { scheduler, children: &children, parents: &parents };
        let before: Vec<Edge> = engine.edges().collect();
        let answer = self.machine.engine.replace(id, replacement, self.machine.now);
        let after: Vec<Edge> = self.machine.engine.edges().collect();
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((before.vp, before.above, before.below), (after.vp, after.above, after.below));
            assert_eq!(before.service, after.service, "nothing is gained or lost on the way");
            if before.below == Below::Thread {
                let wanted = |edge: &Edge| edge.state != VpState::Waiting;
                assert_eq!(wanted(before), wanted(after), "who wants a processor goes on to");
            }
        }
        let runs =
            |edge: &Edge| edge.above == Above::Scheduler(id) && matches!(edge.state, VpState::Running(_));
        if answer.is_ok() && before.iter().any(runs) {
            self.took_over.insert(kind.name());
        }
        answer.is_err()
    }

    /// The transitions are such as virtual processors make, and lead to where they are.
    fn check_transitions(&mut self) {
        for transition in self.machine.engine.transitions() {
            let state = self.states.entry(transition.vp).or_insert(VpState::Waiting);
            let is_one = matches!(
                (*state, transition.state),
                (VpState::Waiting, VpState::Ready)
                    | (VpState::Ready, VpState::Running(_) | VpState::Waiting)
                    | (VpState::Running(_), VpState::Ready | VpState::Waiting)
            );
            let is_one = is_one || matches!(transition.trigger, Trigger::Job(vp) if vp == transition.vp);
            assert!(is_one, "{:?} from {state:?}", transition);
            *state = transition.state;
        }
        for edge in self.machine.engine.edges() {
            let state = self.states.get(&edge.vp).copied().unwrap_or(VpState::Waiting);
            assert_eq!(state, edge.state, "VP {}", edge.vp.index());
        }
    }

    fn settle(&mut self) {
        self.machine.settle();
        self.check_transitions();
        for (thread, seen) in &self.seen {
            assert_eq!(self.machine.engine.context().service(*thread), *seen, "accounts are kept");
        }
    }

    fn play(mut self, rounds: &[Round], is_left_out: impl Fn(usize) -> bool) -> Self {
        for (acts, gap) in rounds {
            for act in acts {
                let is_left_out = is_left_out(self.refused.len());
                let is_refused = !is_left_out && self.act(act);
                self.refused.push(is_refused);
                self.check_transitions();
            }
            self.settle();
            let until = self.machine.now + ns(*gap);
            while self.machine.now < until {
                let timer = self.machine.engine.next_timer().unwrap_or(Instant::MAX);
                assert!(timer > self.machine.now, "a timer that is due has been fired");
                let seen = &mut self.seen;
                self.machine.advance(timer.min(until), |thread, start, end| {
                    *seen.get_mut(&thread).expect("it is there") += (end - start).as_work();
                });
                self.settle();
            }
        }
        self
    }
}

fn log(play: &Play) -> &[(Instant, Switch)] {
    &play.machine.log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_changes_while_it_runs_stays_a_hierarchy(processors in 1..=3usize, rounds in rounds()) {
        let played = Play::new(processors).play(&rounds, |_| false);
        // Once more without what was refused.
        let without = Play::new(processors).play(&rounds, |act| played.refused[act]);
        prop_assert_eq!(log(&played), log(&without));
        prop_assert_eq!(
            played.machine.engine.edges().collect::<Vec<_>>(),
            without.machine.engine.edges().collect::<Vec<_>>()
        );
        prop_assert_eq!(&played.threads, &without.threads);
    }
}

/// The property above is about something: every kind of change is made and refused, and every kind of scheduler takes over from
/// one with children that run.
#[test]
fn the_changes_that_are_tried_are_made_and_refused() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut tally: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut took_over = BTreeSet::new();
    for case in 0..2_000 {
        let rounds = rounds().new_tree(&mut runner).expect("rounds are never rejected").current();
        let mut played = Play::new(case % 3 + 1).play(&rounds, |_| false);
        took_over.append(&mut played.took_over);
        let acts = rounds.iter().flat_map(|(acts, _)| acts);
        for (act, is_refused) in acts.zip(&played.refused) {
            let name = format!("{act:?}").split(' ').next().expect("it has a name").to_owned();
            tally.entry(name).or_default()[usize::from(*is_refused)] += 1;
        }
    }
    for (act, [made, refused]) in &tally {
        let cannot_fail = ["Request", "Release", "RemoveThread"].contains(&act.as_str());
        assert!(*made >= 100 && (*refused >= 100 || cannot_fail), "{tally:?}");
    }
    assert_eq!(took_over.len(), 23, "{took_over:?}");
}
