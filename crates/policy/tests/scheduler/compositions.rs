//! Random hierarchies of every kind of scheduler, with a way to make one from a description.

use super::script::{at, ns, work};
use proptest::prelude::*;
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{Enforcement, Engine, Fraction, Parameters, SchedulerId, VpId};
use talea_policy::scheduler::{
    Announcing, Configuration, Exhaustion, FixedPriority, Gaps, Habits, PlanEntry, Renewal, Repeat, Requests,
    WakeUp, config,
};
use talea_policy::strategy::LaneRules;

/// What hangs below a scheduler.
#[derive(Clone, Debug)]
pub enum Branch {
    Thread,
    Scheduler(Configuration, Vec<Branch>),
}

/// Times are in nanoseconds, quanta a few of them.
pub fn kinds() -> impl Strategy<Value = Configuration> {
    let quantum = (1..6i64).prop_map(work);
    let wake_up = prop_oneof![Just(WakeUp::Waits), Just(WakeUp::Preempts)];
    let exhaustion = prop_oneof![Just(Exhaustion::Suspend), Just(Exhaustion::Postpone)];
    let gaps = prop_oneof![Just(Gaps::Released), Just(Gaps::EventDriven)];
    let one = Fraction::ONE;
    let entries = proptest::collection::vec((0..6i64, 0..4u32, 1..5i64), 1..6).prop_map(|steps| {
        let mut start = 0;
        let entry = |(step, process, length)| {
            start += step;
            PlanEntry { start: ns(start), process, duration: work(length) }
        };
        steps.into_iter().map(entry).collect::<Vec<_>>()
    });
    let habits = (1..6i64, 0..4u8, 5..40i64).prop_map(|(quantum, boost, starvation)| Habits {
        quantum: work(quantum),
        boost,
        starvation: ns(starvation),
        base: 8,
    });
    let plan = (entries, gaps, prop_oneof![Just(Repeat::Once), Just(Repeat::Every(ns(40)))]).prop_map(
        |(entries, gaps, repeat)| config::ExplicitPlan { entries, repeat, gaps, beginning: at(0).into() },
    );
    let requests = Requests::InPieces;
    prop_oneof![
        Just(config::FixedPriority.into()),
        (0..2usize).prop_map(|takes| config::Join { takes }.into()),
        (1..6i64, 6..20i64, prop::sample::select(vec![Renewal::Over, Renewal::Unsafe])).prop_map(
            |(budget, period, renewal)| {
                config::Limit { budget: work(budget), period: ns(period), renewal }.into()
            }
        ),
        quantum.clone().prop_map(|quantum| config::RoundRobin { quantum }.into()),
        (quantum.clone(), wake_up).prop_map(|(quantum, wake_up)| config::ProportionalShare {
            quantum,
            wake_up
        }
        .into()),
        quantum.clone().prop_map(|quantum| config::Stride { quantum }.into()),
        (quantum.clone(), any::<u64>()).prop_map(|(quantum, seed)| config::Lottery { quantum, seed }.into()),
        quantum.clone().prop_map(|quantum| config::Eevdf { quantum }.into()),
        habits.prop_map(|habits| config::TimeSharing(habits).into()),
        Just(config::Reservation::hard(one).into()),
        exhaustion.prop_map(move |exhaustion| config::Reservation { exhaustion, capacity: one }.into()),
        Just(config::TotalBandwidth { capacity: one, requests }.into()),
        (1..9i64).prop_map(move |slice| config::SlowerProcessor { speed: one, slice: ns(slice) }.into()),
        quantum.clone().prop_map(|quantum| config::ResourceKernel { quantum }.into()),
        quantum.clone().prop_map(|quantum| config::Rialto { base: ns(16), levels: 3, quantum }.into()),
        quantum.clone().prop_map(|quantum| config::Spring { effort: 50, quantum }.into()),
        (1..3u32, quantum.clone()).prop_map(|(last, quantum)| config::StatisticalRateMonotonic {
            last,
            quantum
        }
        .into()),
        plan.prop_map(Configuration::from),
        quantum.prop_map(|quantum| config::SurplusFair { quantum }.into()),
        lanes(),
    ]
}

fn lanes() -> impl Strategy<Value = Configuration> {
    let discipline =
        prop_oneof![Just(Discipline::Fifo), Just(Discipline::Deadline), Just(Discipline::Laxity)];
    discipline.prop_map(|discipline| config::Lane { discipline, rules: PREEMPTIVE, capacity: 8 }.into())
}

pub const PREEMPTIVE: LaneRules =
    LaneRules { dispatch: LaneDispatch::Preemptive, laxity: Laxity::Remaining, late: Late::None };

/// A scheduler of any kind over threads and, `levels` times, others.
pub fn branches(levels: u32) -> impl Strategy<Value = Branch> {
    let leaf = (kinds(), 1..5usize).prop_map(|(kind, threads)| {
        let threads = if is_single(&kind) { 1 } else { threads };
        Branch::Scheduler(kind, vec![Branch::Thread; threads])
    });
    (0..levels).fold(leaf.boxed(), |below, _| {
        let child = prop_oneof![2 => below.clone(), 1 => Just(Branch::Thread)];
        let node = (kinds(), proptest::collection::vec(child, 1..4)).prop_map(|(kind, mut children)| {
            if is_single(&kind) {
                children.truncate(1);
            }
            if matches!(kind.name(), "fifo" | "edf" | "laxity") {
                // Lanes order jobs, which only threads have.
                children.iter_mut().for_each(|child| *child = Branch::Thread);
            }
            Branch::Scheduler(kind, children)
        });
        prop_oneof![3 => node, 1 => below].boxed()
    })
}

fn is_single(kind: &Configuration) -> bool {
    matches!(kind.name(), "join" | "limit")
}

/// Whether a scheduler of this kind uses a processor whenever one of its children wants it.
pub fn is_work_conserving(kind: &Configuration) -> bool {
    match kind.name() {
        "limit" | "reservation" | "resource-kernel" | "spring" => false,
        _ => kind.of::<config::ExplicitPlan>().is_none_or(|plan| plan.gaps == Gaps::EventDriven),
    }
}

/// What the `place`-th of `count` children asks of a scheduler of this kind. Together they are always admitted.
pub fn parameters(kind: &Configuration, place: usize, count: usize) -> Parameters {
    let (index, n) = (place as i64, count as i64);
    match kind.name() {
        "fixed-priority" => Parameters::Priority(place as i32),
        "time-sharing" => Parameters::Priority(place as i32 * 3 % 16),
        "proportional-share" | "sfq" if place % 2 == 1 => {
            Parameters::WarpedWeight { weight: place as u32 + 1, warp: ns(index) }
        }
        "eevdf" if place % 2 == 1 => {
            Parameters::Requests { weight: place as u32 + 1, request: work(3 + index) }
        }
        "proportional-share" | "sfq" | "stride" | "lottery" | "eevdf" | "sfs" => {
            Parameters::Weight(place as u32 * 2 + 1)
        }
        "reservation" | "soft-cbs" | "tbs" => {
            let budget = 2 + index;
            Parameters::Reservation { budget: work(budget), period: ns(budget * n + index) }
        }
        "bss-i" => Parameters::Rate(Fraction::new(1, n).expect("a child")),
        "resource-kernel" if place.is_multiple_of(2) => {
            let enforcement = [Enforcement::Hard, Enforcement::Firm, Enforcement::Soft][place % 3];
            let period = ns(20 * n + 8 * index);
            Parameters::Reserve { budget: work(2 + index), period, deadline: period, enforcement }
        }
        "rialto" if place.is_multiple_of(2) => {
            Parameters::Reservation { budget: work(16 / n), period: ns((16 << (place % 4)) + 3) }
        }
        "spring" if place.is_multiple_of(2) => {
            Parameters::Reservation { budget: work(2 + index), period: ns((20 * n) << (place % 4)) }
        }
        "srms" => Parameters::Reservation { budget: work(8 / n), period: ns(8 << place) },
        "explicit-plan" => Parameters::Process(place as u32),
        _ => Parameters::None,
    }
}

/// A hierarchy: `branches` from the highest priority on, below fixed priority on `processors` processors.
pub struct Hierarchy {
    pub engine: Engine,
    /// Threads with the number of the branch they belong to.
    pub threads: Vec<(VpId, usize)>,
    /// Schedulers that plan on arrival, with their threads.
    pub planners: Vec<(SchedulerId, VpId)>,
    root: SchedulerId,
    /// Priorities below all others, for the second parents of joins.
    low: i32,
}

pub fn build(branches: &[Branch], processors: usize) -> Hierarchy {
    let mut engine = Engine::new(processors);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let mut hierarchy = Hierarchy { engine, threads: Vec::new(), planners: Vec::new(), root, low: -1_000 };
    for (index, branch) in branches.iter().enumerate() {
        hierarchy.add(branch, index, root, Parameters::Priority(-(index as i32)));
    }
    hierarchy
}

impl Hierarchy {
    fn add(&mut self, branch: &Branch, number: usize, parent: SchedulerId, given: Parameters) {
        let Branch::Scheduler(kind, children) = branch else {
            let thread = self.engine.add_thread(parent, given).expect("parameters fit");
            self.threads.push((thread, number));
            return;
        };
        let mut parents = vec![(parent, given)];
        if kind.name() == "join" {
            self.low -= 1;
            parents.push((self.root, Parameters::Priority(self.low)));
        }
        let scheduler = kind.build(Announcing::Deadlines).expect("parameters are in range");
        let id = self.engine.add(scheduler, &parents).expect("parameters fit");
        for (place, child) in children.iter().enumerate() {
            self.add(child, number, id, parameters(kind, place, children.len()));
            if matches!((kind.name(), child), ("spring" | "rialto", Branch::Thread)) {
                self.planners.push((id, self.threads.last().expect("it was just added").0));
            }
        }
    }
}

/// All kinds of the branch.
pub fn kinds_in(branch: &Branch) -> Vec<&Configuration> {
    match branch {
        Branch::Thread => Vec::new(),
        Branch::Scheduler(kind, children) => {
            std::iter::once(kind).chain(children.iter().flat_map(kinds_in)).collect()
        }
    }
}
