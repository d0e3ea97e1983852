//! Lanes below a scheduler that plans: the job that they have elected holds a time constraint, and no other does. What is held is found
//! out by asking what else would be accepted.

use super::script::{at, ns, work};
use crate::hierarchy::Machine;
use proptest::prelude::*;
use std::collections::BTreeMap;
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{Constraint, Engine, Message, Parameters, Replacement, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_policy::scheduler::{Announcing, Configuration, FixedPriority, LaneScheduler, config};
use talea_policy::strategy::LaneRules;

/// A scheduler that plans, and below it lanes, a thread that never stops, and one that only asks what would be accepted.
struct Stage {
    machine: Machine,
    root: SchedulerId,
    lanes: VpId,
    level: SchedulerId,
    /// The own VP of each lane.
    of_lanes: [VpId; 2],
    /// Two slots of each lane, the higher one first.
    slots: [[VpId; 2]; 2],
    hog: VpId,
    probe: VpId,
    jobs: u64,
}

fn rialto() -> Configuration {
    config::Rialto { base: ns(1_000), levels: 2, quantum: work(10) }.into()
}

fn spring() -> Configuration {
    config::Spring { effort: 3_000, quantum: work(10) }.into()
}

/// The same on both kinds.
fn on_both(dispatch: LaneDispatch, check: impl Fn(Stage)) {
    [rialto(), spring()].iter().for_each(|kind| check(Stage::new(kind, dispatch)));
}

impl Stage {
    fn new(kind: &Configuration, dispatch: LaneDispatch) -> Self {
        let mut engine = Engine::new(1);
        let root = engine.add_root(kind.build(Announcing::Nothing).expect("in range"));
        let above = FixedPriority::new();
        let level = engine.add(Box::new(above), &[(root, Parameters::Jobs)]).expect("it reserves nothing");
        let lanes = engine.parents(level).next().expect("one parent").vp;
        let rules = LaneRules { dispatch, laxity: Laxity::Remaining, late: Late::None };
        let mut of_lanes = Vec::new();
        let slots = [1, 0].map(|priority| {
            let lane = LaneScheduler::new(LaneQueue::new(Discipline::Deadline, rules, 4));
            let lane = engine.add(Box::new(lane), &[(level, Parameters::Priority(priority))]).expect("free");
            of_lanes.extend(engine.parents(lane).map(|edge| edge.vp));
            [(); 2].map(|()| engine.add_thread(lane, Parameters::None).expect("any slot"))
        });
        let [hog, probe] = [(); 2].map(|()| engine.add_thread(root, Parameters::None).expect("anybody"));
        let of_lanes = of_lanes.try_into().expect("one parent each");
        let machine = Machine::new(engine);
        let mut stage = Stage { machine, root, lanes, level, of_lanes, slots, hog, probe, jobs: 0 };
        stage.want(hog, i64::MAX, 0);
        stage.machine.settle();
        stage
    }

    /// A job arrives.
    fn want(&mut self, slot: VpId, deadline: i64, wcet: i64) {
        self.jobs += 1;
        let (release, tag) = (self.machine.now, slot.index() as u32);
        let (deadline, wcet) = (at(deadline), work(wcet));
        self.machine.request(slot, Job { release, deadline, wcet, rank: 0, number: self.jobs, tag });
    }

    /// A child asks for something else.
    fn change(&mut self, parent: SchedulerId, child: VpId, given: Parameters) {
        let now = self.machine.now;
        self.machine.engine.message(parent, Some(child), Message::Change(given), now).expect("taken");
    }

    /// Another scheduler takes the root's place.
    fn replace(&mut self, kind: &Configuration) {
        let scheduler = kind.build(Announcing::Nothing).expect("in range");
        let asks = |vp: VpId| if vp == self.lanes { Parameters::Jobs } else { Parameters::None };
        let edges = self.machine.engine.children(self.root);
        let children: Vec<(VpId, Parameters)> = edges.map(|edge| (edge.vp, asks(edge.vp))).collect();
        let replacement = Replacement { scheduler, children: &children, parents: &[] };
        let now = self.machine.now;
        self.machine.engine.replace(self.root, replacement, now).expect("no reservations");
    }

    /// It has ended, or is aborted.
    fn end(&mut self, slot: VpId) {
        self.machine.release(slot);
    }

    fn run_until(&mut self, until: i64) {
        self.machine.settle();
        while self.machine.now < at(until) {
            let timer = self.machine.engine.next_timer().unwrap_or(at(until));
            self.machine.advance(timer.min(at(until)), |_, _, _| {});
            self.machine.settle();
        }
    }

    fn running(&self) -> Option<VpId> {
        self.machine.running().next().flatten()
    }

    fn is_accepted(&mut self, deadline: i64, amount: i64) -> bool {
        let start = self.machine.now;
        let asked = Constraint { start, deadline: at(deadline), work: work(amount) };
        let message = Message::Constrain(asked);
        let told = self.machine.engine.message(self.root, Some(self.probe), message, start);
        self.machine.settle();
        told.is_ok()
    }

    fn end_probe(&mut self) {
        let now = self.machine.now;
        self.machine.engine.message(self.root, Some(self.probe), Message::EndConstraint, now).expect("taken");
        self.machine.settle();
    }

    /// How much of the time until `deadline` is held: what is not accepted beside it.
    fn held(&mut self, deadline: i64) -> i64 {
        self.machine.settle();
        let whole = (at(deadline) - self.machine.now).as_nanos();
        let accepted = (1..=whole).rev().find(|amount| self.is_accepted(deadline, *amount));
        if accepted.is_some() {
            self.end_probe();
        }
        whole - accepted.unwrap_or(0)
    }
}

#[test]
fn the_elected_job_holds_a_constraint_until_it_ends() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [_, [first, second]] = stage.slots;
        stage.want(first, 40, 8);
        stage.want(second, 20, 5);
        stage.run_until(0);
        assert_eq!(stage.running(), Some(second));
        assert_eq!((stage.held(20), stage.held(40)), (5, 5), "the other one has yet to be elected");
        stage.run_until(2);
        assert_eq!(stage.held(40), 3, "what remains");
        stage.run_until(5);
        stage.end(second);
        stage.run_until(5);
        assert_eq!((stage.running(), stage.held(40)), (Some(first), 8));
        stage.run_until(7);
        stage.end(first);
        stage.run_until(7);
        assert_eq!((stage.running(), stage.held(40)), (Some(stage.hog), 0), "aborted");
    });
}

#[test]
fn a_started_job_keeps_its_constraint_in_a_lane_that_does_not_preempt() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [_, [first, second]] = stage.slots;
        stage.want(first, 40, 8);
        stage.run_until(3);
        stage.want(second, 20, 5);
        stage.run_until(3);
        assert_eq!((stage.running(), stage.held(40)), (Some(first), 5));
    });
}

/// Also from a lane to a higher one and back, which preempts whatever the lanes' own rule is.
#[test]
fn who_preempts_takes_the_place_and_who_resumes_asks_for_what_remains() {
    let check = |mut stage: Stage, low: VpId, high: VpId| {
        stage.want(low, 40, 8);
        stage.run_until(3);
        stage.want(high, 20, 5);
        stage.run_until(3);
        assert_eq!((stage.running(), stage.held(20), stage.held(40)), (Some(high), 5, 5));
        stage.run_until(8);
        stage.end(high);
        stage.run_until(8);
        assert_eq!((stage.running(), stage.held(40)), (Some(low), 5));
    };
    on_both(LaneDispatch::Preemptive, |stage| {
        let [_, [low, high]] = stage.slots;
        check(stage, low, high);
    });
    on_both(LaneDispatch::NonPreemptive, |stage| {
        let [[high, _], [low, _]] = stage.slots;
        check(stage, low, high);
    });
}

#[test]
fn what_was_accepted_meanwhile_is_not_taken_back() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [[high, _], [low, _]] = stage.slots;
        stage.want(low, 40, 8);
        stage.run_until(3);
        stage.want(high, 20, 5);
        stage.run_until(4);
        assert!(
            !stage.is_accepted(40, 33) && stage.is_accepted(40, 32),
            "all but what remains of the higher"
        );
        stage.run_until(8);
        stage.end(high);
        stage.run_until(8);
        assert_eq!(stage.running(), Some(stage.hog), "refused, and so the hog's turn comes first");
        stage.end_probe();
        assert_eq!(stage.held(40), 0, "it has asked");
        stage.run_until(18);
        assert_eq!(stage.running(), Some(low), "in turn");
    });
}

/// Of lanes that have no processor: somebody else's constraint is more urgent.
#[test]
fn lanes_that_wait_ask_for_whom_they_would_serve() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [[high, _], [low, next]] = stage.slots;
        let probe = stage.probe;
        assert!(stage.is_accepted(12, 10));
        stage.want(probe, i64::MAX, 0);
        stage.want(low, 40, 8);
        stage.run_until(1);
        assert_eq!(stage.running(), Some(probe));
        stage.want(high, 20, 5);
        stage.want(next, 30, 2);
        stage.run_until(2);
        stage.end(high);
        stage.run_until(10);
        assert_eq!(stage.running(), Some(next), "of the lower lane the more urgent one");
        stage.end(probe);
        assert_eq!((stage.held(30), stage.held(40)), (2, 2));
        stage.end(next);
        assert_eq!((stage.held(30), stage.held(40)), (0, 8));
        stage.run_until(11);
        assert_eq!(stage.running(), Some(low));
        stage.end(low);
        assert_eq!(stage.held(40), 0);
    });
}

#[test]
fn who_is_refused_or_takes_longer_than_declared_takes_turns() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [_, [first, _]] = stage.slots;
        stage.want(first, 4, 5);
        stage.run_until(0);
        assert_eq!((stage.running(), stage.held(4)), (Some(stage.hog), 0), "refused");
        stage.end(first);
        stage.want(first, 20, 5);
        stage.run_until(0);
        assert_eq!(stage.running(), Some(first));
        stage.run_until(5);
        assert_eq!((stage.running(), stage.held(20)), (Some(stage.hog), 0), "five it has had");
        stage.run_until(15);
        assert_eq!(stage.running(), Some(first));
    });
}

/// The same job does not ask twice, whatever happens beside it.
#[test]
fn news_of_others_changes_nothing() {
    on_both(LaneDispatch::Preemptive, |mut stage| {
        let [[high, _], [low, late]] = stage.slots;
        stage.want(high, 20, 5);
        stage.run_until(1);
        stage.want(low, 60, 3);
        stage.want(late, 70, 3);
        stage.run_until(2);
        stage.end(low);
        stage.run_until(3);
        assert_eq!((stage.running(), stage.held(20), stage.held(70)), (Some(high), 2, 2));
    });
}

#[test]
fn what_lanes_ask_for_can_change_while_they_run_and_so_can_their_scheduler() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [_, [first, second]] = stage.slots;
        stage.want(first, 40, 8);
        stage.run_until(2);
        let (root, lanes) = (stage.root, stage.lanes);
        for scheduler in [spring(), rialto()] {
            stage.replace(&scheduler);
            assert_eq!(stage.held(40), 6, "the new one is asked for what remains");
        }
        for (given, held) in [(Parameters::None, 0), (Parameters::Jobs, 6)] {
            stage.change(root, lanes, given);
            assert_eq!(stage.held(40), held, "it asks again for what remains");
        }
        stage.want(second, 50, 4);
        stage.end(first);
        assert_eq!(stage.held(50), 4);
    });
}

/// What lanes on real threads do: the thread of a lane goes on with another job.
#[test]
fn a_thread_that_goes_on_with_another_job_asks_for_that() {
    on_both(LaneDispatch::NonPreemptive, |mut stage| {
        let [_, [thread, _]] = stage.slots;
        stage.want(thread, 40, 8);
        stage.run_until(3);
        let now = stage.machine.now;
        let tag = thread.index() as u32;
        let job = Job { release: now, deadline: at(30), wcet: work(4), rank: 1, number: 1, tag };
        stage.machine.engine.change_job(thread, job, now);
        assert_eq!((stage.held(30), stage.held(40)), (4, 4));
        stage.run_until(5);
        assert_eq!((stage.running(), stage.held(30)), (Some(thread), 2), "counted from the change on");
    });
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// A job with a deadline from now and a worst case arrives in this slot, unless that has one.
    Want(usize, i64, i64),
    /// The job in this slot ends or is aborted, if there is one.
    End(usize),
    /// This lane becomes the highest.
    Raise(usize),
    /// The lanes ask for nothing, and at once for their jobs again.
    AskAnew,
    /// Another scheduler takes the place of the one that plans.
    Replace,
}

/// What happens at one instant, and how long nothing does after that.
fn rounds() -> impl Strategy<Value = Vec<(Vec<Act>, i64)>> {
    let act = prop_oneof![
        3 => (0..4usize, 1..60i64, 1..12i64).prop_map(|(slot, deadline, wcet)| Act::Want(slot, deadline, wcet)),
        2 => (0..4usize).prop_map(Act::End),
        1 => (0..2usize).prop_map(Act::Raise),
        1 => Just(Act::AskAnew),
        1 => Just(Act::Replace),
    ];
    prop::collection::vec((prop::collection::vec(act, 0..4), 0..9i64), 1..25)
}

/// A job as a bystander sees it: deadline, worst case, and how long it has run.
type Seen = (i64, i64, i64);

/// What the lanes would serve: in the higher lane with a job the one that has begun, if lanes do not preempt, or the most urgent one.
fn elected(slots: [[VpId; 2]; 2], seen: &BTreeMap<VpId, Seen>, dispatch: LaneDispatch) -> Option<Seen> {
    let of =
        |lane: [VpId; 2]| -> Vec<Seen> { lane.iter().filter_map(|slot| seen.get(slot).copied()).collect() };
    let lane = slots.into_iter().map(of).find(|jobs| !jobs.is_empty())?;
    let begun = lane.iter().find(|(.., ran)| *ran > 0 && dispatch == LaneDispatch::NonPreemptive);
    begun.or(lane.iter().min()).copied()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Where nobody else asks, a job is accepted exactly if what remains of it fits before its deadline, and holds that and no more.
    #[test]
    fn what_is_held_is_what_remains_of_the_elected_job(
        rounds in rounds(), is_spring: bool, preempts: bool,
    ) {
        let dispatch = if preempts { LaneDispatch::Preemptive } else { LaneDispatch::NonPreemptive };
        let mut stage = Stage::new(&if is_spring { spring() } else { rialto() }, dispatch);
        let mut seen: BTreeMap<VpId, Seen> = BTreeMap::new();
        let mut deadlines = Vec::new();
        let (mut is_spring, mut priority) = (is_spring, 1);
        for (acts, gap) in rounds {
            for act in acts {
                let slot = |number: usize| stage.slots[number / 2][number % 2];
                match act {
                    Act::Want(number, length, wcet) => {
                        let (slot, mut deadline) = (slot(number), stage.machine.now.as_nanos() + length);
                        if seen.contains_key(&slot) {
                            continue;
                        }
                        // Ties are decided by rules that are tested elsewhere.
                        while deadlines.contains(&deadline) {
                            deadline += 1;
                        }
                        deadlines.push(deadline);
                        stage.want(slot, deadline, wcet);
                        seen.insert(slot, (deadline, wcet, 0));
                    }
                    Act::End(number) => {
                        let slot = slot(number);
                        if seen.remove(&slot).is_some() {
                            stage.end(slot);
                        }
                    }
                    Act::Raise(lane) => {
                        priority += 1;
                        stage.change(stage.level, stage.of_lanes[lane], Parameters::Priority(priority));
                        // The higher one stands first.
                        let raised = [stage.slots[lane], stage.slots[1 - lane]];
                        let of_raised = [stage.of_lanes[lane], stage.of_lanes[1 - lane]];
                        (stage.slots, stage.of_lanes) = (raised, of_raised);
                    }
                    Act::AskAnew => {
                        for asked in [Parameters::None, Parameters::Jobs] {
                            stage.change(stage.root, stage.lanes, asked);
                        }
                    }
                    Act::Replace => {
                        is_spring = !is_spring;
                        stage.replace(&if is_spring { spring() } else { rialto() });
                    }
                }
            }
            stage.machine.settle();
            let now = stage.machine.now.as_nanos();
            let remains = elected(stage.slots, &seen, dispatch).map_or(0, |(deadline, wcet, ran)| {
                let remains = (wcet - ran).max(0);
                if remains <= deadline - now { remains } else { 0 }
            });
            let horizon = deadlines.iter().copied().max().unwrap_or(0).max(now + 1);
            prop_assert_eq!(stage.held(horizon), remains, "at {} with {:?}", now, seen);
            if remains > 0 {
                let running = stage.running().and_then(|slot| seen.get(&slot)).copied();
                prop_assert_eq!(running, elected(stage.slots, &seen, dispatch), "before the hog");
            }
            stage.machine.advance(at(now + gap), |thread, from, to| {
                if let Some((.., ran)) = seen.get_mut(&thread) {
                    *ran += (to - from).as_nanos();
                }
            });
        }
    }
}
