//! Fixed priority, nested to any depth, over lanes: exactly the right job runs on every processor.

use super::Machine;
use super::tree::{self, Tree};
use crate::lane::LaneModel;
use proptest::prelude::*;
use talea_model::{LaneDispatch, Late};
use talea_policy::discipline::Discipline::{Deadline, Fifo, Laxity};
use talea_policy::hierarchy::{Engine, Parameters, Switch, VpId};
use talea_policy::job::Job;
use talea_policy::lane::Ties;
use talea_policy::strategy::LaneRules;
use talea_time::{Duration, Instant, Work};

const SLOTS_PER_LANE: usize = 3;

/// What a thread does at an instant; threads are counted over all lanes, modulo their number.
#[derive(Clone, Debug)]
enum Act {
    /// Asks for a processor for a job, if it does not.
    Request { thread: usize, deadline: i64, wcet: i64, rank: u32 },
    /// Ends its job or gives up, if it has one.
    Release { thread: usize },
    /// Whoever runs on a processor ends its job.
    Complete { processor: usize },
}

/// Acts of one instant, and how long until the next.
type Round = (Vec<Act>, i64);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let act = prop_oneof![
        5 => (0..64usize, 0..14i64, 1..6i64, 0..2u32)
            .prop_map(|(thread, deadline, wcet, rank)| Act::Request { thread, deadline, wcet, rank }),
        1 => (0..64usize).prop_map(|thread| Act::Release { thread }),
        3 => (0..4usize).prop_map(|processor| Act::Complete { processor }),
    ];
    proptest::collection::vec((proptest::collection::vec(act, 0..5), 0..4i64), 1..30)
}

struct Bench<'a> {
    tree: &'a Tree,
    machine: Machine,
    /// By lane.
    models: Vec<LaneModel>,
    /// Slots of all lanes, with their lane.
    slots: Vec<(VpId, usize)>,
    number: u64,
}

impl<'a> Bench<'a> {
    fn new(tree: &'a Tree, processors: usize) -> Self {
        let (mut engine, lanes) = tree::build(tree, processors);
        let mut slots = Vec::new();
        for (index, lane) in lanes.iter().enumerate() {
            for _ in 0..SLOTS_PER_LANE {
                let slot = engine.add_thread(*lane, Parameters::None).expect("a lane takes any slot");
                slots.push((slot, index));
            }
        }
        let models = tree::lane_kinds(tree)
            .into_iter()
            .map(|(discipline, rules)| LaneModel::new(discipline, rules, Ties::LastRan))
            .collect();
        Bench { tree, machine: Machine::new(engine), models, slots, number: 0 }
    }

    fn lane_of(&self, thread: VpId) -> usize {
        self.slots.iter().find(|(slot, _)| *slot == thread).expect("only slots run").1
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Request { thread, deadline, wcet, rank } => {
                let (slot, lane) = self.slots[thread % self.slots.len()];
                if self.machine.wants(slot) {
                    return;
                }
                let release = self.machine.now;
                let deadline = release + Duration::from_nanos(deadline);
                let tag = slot.index() as u32;
                let wcet = Work::from_nanos(wcet);
                let job = Job { release, deadline, wcet, rank, number: self.number, tag };
                self.number += 1;
                self.models[lane].push(job);
                self.machine.request(slot, job);
            }
            Act::Release { thread } => {
                let (slot, _) = self.slots[thread % self.slots.len()];
                self.release(slot);
            }
            Act::Complete { processor } => {
                let running = self.machine.running().nth(processor);
                if let Some(thread) = running.flatten() {
                    self.release(thread);
                }
            }
        }
    }

    fn release(&mut self, slot: VpId) {
        if self.machine.wants(slot) {
            let lane = self.lane_of(slot);
            self.models[lane].remove(slot.index() as u32).expect("the model knows it");
            self.machine.release(slot);
        }
    }

    /// Exactly the lanes that must run do, each with the job it must choose.
    fn check(&self) {
        let backlog: Vec<usize> = self.models.iter().map(|model| model.entries.len()).collect();
        let processors = self.machine.engine.processors();
        let mut expected: Vec<VpId> = tree::expected(self.tree, processors, &backlog)
            .into_iter()
            .enumerate()
            .filter(|(_, runs)| *runs)
            .map(|(lane, _)| {
                let job = self.models[lane].choose(self.machine.now).expect("only lanes with jobs run");
                VpId::from_index(job.tag)
            })
            .collect();
        let mut running: Vec<VpId> = self.machine.running().flatten().collect();
        expected.sort_unstable();
        running.sort_unstable();
        assert_eq!(running, expected, "at {} with backlog {backlog:?}", self.machine.now);
    }

    fn play(mut self, rounds: &[Round]) -> Vec<(Instant, Switch)> {
        for (acts, gap) in rounds {
            acts.iter().for_each(|act| self.act(act));
            self.machine.settle();
            self.check();
            let until = self.machine.now + Duration::from_nanos(*gap);
            let (models, slots) = (&mut self.models, &self.slots);
            self.machine.advance(until, |thread, start, end| {
                let lane = slots.iter().find(|(slot, _)| *slot == thread).expect("only slots run").1;
                models[lane].run(thread.index() as u32, (end - start).as_work());
            });
        }
        self.machine.log
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn lanes_under_one_fixed_priority_scheduler(
        tree in tree::trees(0), processors in 1..=3usize, rounds in rounds(),
    ) {
        Bench::new(&tree, processors).play(&rounds);
    }

    #[test]
    fn lanes_under_fixed_priority_schedulers_two_deep(
        tree in tree::trees(1), processors in 1..=3usize, rounds in rounds(),
    ) {
        Bench::new(&tree, processors).play(&rounds);
    }

    #[test]
    fn lanes_under_fixed_priority_schedulers_three_deep(
        tree in tree::trees(2), processors in 1..=4usize, rounds in rounds(),
    ) {
        Bench::new(&tree, processors).play(&rounds);
    }

    #[test]
    fn the_same_events_give_the_same_switches(
        tree in tree::trees(1), processors in 1..=3usize, rounds in rounds(),
    ) {
        let first = Bench::new(&tree, processors).play(&rounds);
        prop_assert_eq!(first, Bench::new(&tree, processors).play(&rounds));
    }
}

/// A nested scheduler that holds two processors and has asked for two more in vain moves both processors to
/// its two higher children at one scheduling point.
#[test]
fn two_children_at_once_displace_two_others() {
    let fifo = || Tree::Lane { discipline: Fifo, rules: PREEMPTIVE };
    let nested = Tree::Fixed { width: 4, children: vec![fifo(), fifo(), fifo(), fifo()] };
    let tree = Tree::Fixed { width: usize::MAX, children: vec![nested] };
    let request = |lane| Act::Request { thread: lane * SLOTS_PER_LANE, deadline: 9, wcet: 5, rank: 0 };
    Bench::new(&tree, 2).play(&[(vec![request(2), request(3)], 1), (vec![request(0), request(1)], 1)]);
}

const PREEMPTIVE: LaneRules = LaneRules {
    dispatch: LaneDispatch::Preemptive,
    laxity: talea_model::Laxity::Remaining,
    late: Late::Last,
};

/// After the first round of every thread, deciding does not allocate.
#[test]
fn deciding_does_not_allocate() {
    let lane = |discipline| Tree::Lane { discipline, rules: PREEMPTIVE };
    let nested = Tree::Fixed { width: 2, children: vec![lane(Laxity), lane(Deadline)] };
    let tree = Tree::Fixed { width: usize::MAX, children: vec![lane(Fifo), nested, lane(Laxity)] };
    let (mut engine, lanes) = tree::build(&tree, 2);
    let slots: Vec<VpId> = (0..12)
        .map(|slot| engine.add_thread(lanes[slot % 4], Parameters::None).expect("a lane takes any slot"))
        .collect();
    let mut instant = 0;
    let mut round = |engine: &mut Engine| {
        for (index, slot) in slots.iter().enumerate() {
            let now = Instant::from_nanos(instant);
            let deadline = now + Duration::from_nanos(20 - index as i64);
            let (number, tag) = (instant as u64, slot.index() as u32);
            let job = Job { release: now, deadline, wcet: Work::from_nanos(3), rank: 0, number, tag };
            engine.request(*slot, job, now);
            let _ = engine.settle(now);
            instant += 1;
        }
        for slot in &slots {
            engine.release(*slot, Instant::from_nanos(instant));
            let _ = engine.settle(Instant::from_nanos(instant));
            instant += 1;
        }
    };
    round(&mut engine);
    let allocations = allocation_counter::measure(|| (0..200).for_each(|_| round(&mut engine)));
    assert_eq!(allocations.count_total, 0);
}
