//! Random hierarchies with random loads, of every kind of scheduler that can be named.
//!
//! What children ask for follows from what the kind declares; it is always so little that all of it is admitted.

mod parameters;
mod system;

use parameters::short_quanta;
use proptest::prelude::*;
use system::request;
use talea_guarantee::scheduler::Children;
use talea_model::{Execution, SchedulerKind, ThreadWork};
use talea_time::{Duration, Work};

pub use parameters::ParameterDraws;
pub(crate) use parameters::parameter_draws;
pub use system::least;
pub(crate) use system::{beside, settings};

/// Periods of reservations and bursts, in milliseconds.
const PERIODS: [u64; 6] = [8, 10, 20, 33, 40, 100];

/// A thread, or a scheduler with what is below it.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A thread.
    Thread(Demand),
    /// A scheduler.
    Scheduler {
        /// What it is.
        kind: SchedulerKind,
        /// What is said of it, as far as the kind has such parameters.
        parameters: ParameterDraws,
        /// Who is below it, with what each asks for.
        children: Vec<(Ask, Tree)>,
    },
}

/// When a thread wants the processor.
#[derive(Clone, Debug)]
pub enum Demand {
    /// Always.
    Endless,
    /// Microseconds, one after the other, every so many microseconds.
    Bursts(Vec<u16>, u32),
}

impl Demand {
    fn work(&self) -> ThreadWork {
        match self {
            Demand::Endless => ThreadWork::CpuBound,
            Demand::Bursts(bursts, period) => {
                let work = |us: &u16| Work::from_nanos(i64::from(*us) * 1_000);
                ThreadWork::Bursts {
                    burst: Execution::List(bursts.iter().map(work).collect()),
                    period: Duration::from_micros(i64::from(*period)),
                }
            }
        }
    }
}

/// Numbers of which whatever the parent needs is made.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    weight: u8,
    period: usize,
    /// Whether a child with a reservation also gets, by a join, what the root has left.
    is_joined: bool,
    /// In microseconds, under schedulers that have warps; mostly none.
    warp: u16,
    /// Whether a limit is asked for an amount of its own, or for all that it is given.
    is_limited: bool,
}

/// Short bursts that come again so soon that most are about what somebody is promised: a little less, a little more, or exactly; and some far
/// more, so that the next one always waits.
fn fine() -> impl Strategy<Value = Demand> {
    let percent = prop_oneof![
        3 => prop::sample::select(vec![10_u32, 20, 25, 30, 33, 40, 50]),
        2 => 5..60_u32,
        1 => 60..160_u32,
    ];
    (prop::collection::vec(20..2_500u16, 1..3), percent).prop_map(|(bursts, percent)| {
        let mean = bursts.iter().map(|burst| u32::from(*burst)).sum::<u32>() / bursts.len() as u32;
        Demand::Bursts(bursts, (mean * 100 / percent).max(100))
    })
}

fn demands() -> impl Strategy<Value = Demand> {
    // Every so often far more than a period holds, and then hardly anything: what queues makes arrivals irregular.
    let uneven = prop_oneof![3 => 1..500u16, 1 => 5_000..60_000u16];
    prop_oneof![
        2 => Just(Demand::Endless),
        2 => (prop::collection::vec(1..20_000u16, 1..5), 1..50u8)
            .prop_map(|(bursts, period)| Demand::Bursts(bursts, u32::from(period) * 1_000)),
        1 => (prop::collection::vec(uneven, 3..12), 1..9u8)
            .prop_map(|(bursts, period)| Demand::Bursts(bursts, u32::from(period) * 1_000)),
        2 => fine(),
    ]
}

fn asks() -> impl Strategy<Value = Ask> {
    let warp = prop_oneof![3 => Just(0), 1 => 1..2_000u16];
    (1..8u8, 0..PERIODS.len(), prop::bool::weighted(0.2), warp, any::<bool>()).prop_map(
        |(weight, period, is_joined, warp, is_limited)| Ask { weight, period, is_joined, warp, is_limited },
    )
}

/// Every kind but joins, which are added where a child has two parents, and lanes, which hold tasks.
pub(crate) fn kinds() -> impl Strategy<Value = SchedulerKind> + use<> {
    let stands_alone = |kind: &SchedulerKind| !kind.chooses_parent() && kind.children != Children::Tasks;
    let kinds: Vec<SchedulerKind> = SchedulerKind::in_files().into_iter().filter(stands_alone).collect();
    prop::sample::select(kinds)
}

fn scheduler(kind: SchedulerKind, parameters: ParameterDraws, mut children: Vec<(Ask, Tree)>) -> Tree {
    if kind.has_one_child() {
        children.truncate(1);
    }
    // They order jobs, which only threads have.
    if kind.children == Children::Threads {
        for (_, child) in children.iter_mut().filter(|(_, child)| matches!(child, Tree::Scheduler { .. })) {
            *child = Tree::Thread(Demand::Endless);
        }
    }
    if kind.children == Children::Bursts {
        for (place, (_, child)) in children.iter_mut().enumerate() {
            let bursts = match child {
                Tree::Thread(Demand::Bursts(bursts, _)) => std::mem::take(bursts),
                _ => vec![4_000],
            };
            *child = Tree::Thread(Demand::Bursts(bursts, statistical_period(place) * 1_000));
        }
    }
    Tree::Scheduler { kind, parameters, children }
}

/// In milliseconds: each twice as long as the one before, which so has it as its superperiod.
fn statistical_period(place: usize) -> u32 {
    5 << place
}

fn below() -> impl Strategy<Value = Tree> {
    demands().prop_map(Tree::Thread).prop_recursive(3, 14, 4, |inner| {
        (kinds(), parameter_draws(), prop::collection::vec((asks(), inner), 1..4))
            .prop_map(|(kind, parameters, children)| scheduler(kind, parameters, children))
    })
}

/// A hierarchy whose root is of any kind.
pub fn trees() -> impl Strategy<Value = Tree> {
    kinds().prop_flat_map(trees_of)
}

/// A hierarchy whose root is of this kind.
pub fn trees_of(kind: SchedulerKind) -> impl Strategy<Value = Tree> {
    let children = prop::collection::vec((asks(), below()), 1..5);
    (parameter_draws(), children)
        .prop_map(move |(parameters, children)| scheduler(kind, parameters, children))
}

/// A hierarchy with a scheduler of this kind at its root or somewhere below.
pub fn trees_with(kind: SchedulerKind) -> BoxedStrategy<Tree> {
    if kind.chooses_parent() {
        return trees_of(SchedulerKind::FIXED_PRIORITY).boxed();
    }
    let child = prop_oneof![2 => below(), 1 => trees_of(kind)];
    let above = (kinds(), parameter_draws(), prop::collection::vec((asks(), child), 1..4))
        .prop_map(|(kind, parameters, children)| scheduler(kind, parameters, children));
    prop_oneof![2 => trees_of(kind), 1 => above].boxed()
}

/// Limits below whatever gives something that they accept, which is sometimes another limit or the highest place below that.
pub fn limited() -> impl Strategy<Value = Tree> {
    use SchedulerKind as K;
    let givers = prop::sample::select(vec![
        K::RESERVATION,
        K::CBS,
        K::TBS,
        K::RESOURCE_KERNEL,
        K::RIALTO,
        K::PROPORTIONAL_SHARE,
        K::SFQ,
        K::EEVDF,
    ]);
    let between = prop::sample::select(vec![None, None, Some(K::LIMIT), Some(K::FIXED_PRIORITY)]);
    let children = prop::collection::vec((asks(), asks(), asks(), between, below()), 1..4);
    (givers, parameter_draws(), children, any::<bool>()).prop_map(
        |(giver, parameters, children, has_root)| {
            let limited = |(outer, middle, inner, between, child)| {
                let limit = scheduler(K::LIMIT, parameters, vec![(inner, child)]);
                match between {
                    None => (outer, limit),
                    Some(kind) => (outer, scheduler(kind, parameters, vec![(middle, limit)])),
                }
            };
            let giver = scheduler(giver, parameters, children.into_iter().map(limited).collect());
            match has_root {
                // Where joins have a second parent.
                true => {
                    Tree::Scheduler { kind: K::FIXED_PRIORITY, parameters, children: vec![(PLAIN, giver)] }
                }
                false => giver,
            }
        },
    )
}

/// What a child asks that has no wishes.
const PLAIN: Ask = Ask { weight: 1, period: 0, is_joined: false, warp: 0, is_limited: false };

/// Shares of shares in short quanta, below whatever gives them something to divide, beside others who take what they can.
pub fn shares() -> impl Strategy<Value = Tree> {
    use SchedulerKind as K;
    let above = prop::sample::select(vec![
        None,
        Some(K::FIXED_PRIORITY),
        Some(K::RESERVATION),
        Some(K::CBS),
        Some(K::TBS),
        Some(K::RIALTO),
        Some(K::EEVDF),
        Some(K::BSS_I),
    ]);
    let beside = prop::collection::vec((asks(), demands().prop_map(Tree::Thread)), 0..3);
    (above, asks(), sharers(), beside, parameter_draws()).prop_map(
        |(above, ask, sharer, mut beside, parameters)| {
            let Some(kind) = above else { return sharer };
            // The highest of a fixed-priority scheduler is its last child.
            beside.push((ask, sharer));
            scheduler(kind, ParameterDraws { quantum: parameters.quantum / 4, ..parameters }, beside)
        },
    )
}

/// Shares of several processors, in short quanta.
pub fn surplus() -> impl Strategy<Value = Tree> {
    let child = prop_oneof![3 => nervous().prop_map(Tree::Thread), 1 => sharers()];
    (short_quanta(), prop::collection::vec((asks(), child), 3..8))
        .prop_map(|(parameters, children)| scheduler(SchedulerKind::SFS, parameters, children))
}

/// The same of two processors, one of which is there for so many eighths of the time: its slower part is given by this kind.
pub fn parted() -> impl Strategy<Value = (Tree, SchedulerKind, u8)> {
    use SchedulerKind as K;
    (surplus(), prop::sample::select(vec![K::PSHED, K::RESERVATION, K::STRIDE]), 1..8u8)
}

/// Who never stops, and who blocks and wakes all the time beside it.
fn nervous() -> impl Strategy<Value = Demand> {
    prop_oneof![
        3 => Just(Demand::Endless),
        2 => (prop::collection::vec(1..800u16, 1..5), 1..4u8)
            .prop_map(|(bursts, period)| Demand::Bursts(bursts, u32::from(period) * 1_000)),
        1 => demands(),
    ]
}

fn sharers() -> impl Strategy<Value = Tree> {
    let threads = prop::collection::vec((asks(), nervous().prop_map(Tree::Thread)), 1..5);
    let lower = (short_quanta(), sharing(), threads)
        .prop_map(|(parameters, kind, children)| scheduler(kind, parameters, children));
    let child = prop_oneof![2 => nervous().prop_map(Tree::Thread), 1 => lower];
    (short_quanta(), sharing(), prop::collection::vec((asks(), child), 1..5))
        .prop_map(|(parameters, kind, children)| scheduler(kind, parameters, children))
}

fn sharing() -> impl Strategy<Value = SchedulerKind> {
    use SchedulerKind as K;
    prop::sample::select(vec![K::STRIDE, K::LOTTERY, K::PROPORTIONAL_SHARE, K::SFQ, K::SFS])
}

impl Tree {
    /// The same of which nothing is said but quanta.
    #[must_use]
    pub fn with_presets(&self) -> Self {
        match self {
            Tree::Thread(demand) => Tree::Thread(demand.clone()),
            Tree::Scheduler { kind, parameters, children } => Tree::Scheduler {
                kind: *kind,
                parameters: parameters.with_presets(),
                children: children.iter().map(|(ask, child)| (*ask, child.with_presets())).collect(),
            },
        }
    }

    /// Hears what is said of every scheduler of a kind.
    pub(crate) fn parameters_of(&self, wanted: SchedulerKind, hear: &mut impl FnMut(&ParameterDraws)) {
        let Tree::Scheduler { kind, parameters, children } = self else { return };
        if *kind == wanted {
            hear(parameters);
        }
        children.iter().for_each(|(_, child)| child.parameters_of(wanted, hear));
    }

    /// What it looks like, for failures.
    pub fn drawn(&self) -> String {
        let mut lines = Vec::new();
        self.draw(0, "", &mut lines);
        lines.join("\n")
    }

    fn draw(&self, depth: usize, ask: &str, lines: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        match self {
            Tree::Thread(demand) => lines.push(format!("{indent}thread {demand:?} ({ask})")),
            Tree::Scheduler { kind, parameters, children } => {
                let settings = parameters.settings(*kind).into_iter();
                let settings: String = settings.map(|(name, value)| format!(", {name} {value}")).collect();
                lines.push(format!("{indent}{kind} quantum {}{settings} ({ask})", parameters.quantum));
                let asks: Vec<Ask> = children.iter().map(|(ask, _)| *ask).collect();
                for (place, (_, child)) in children.iter().enumerate() {
                    let joined = if asks[place].is_joined { ", joined" } else { "" };
                    child.draw(depth + 1, &format!("{}{joined}", request(*kind, &asks, place)), lines);
                }
            }
        }
    }
}
