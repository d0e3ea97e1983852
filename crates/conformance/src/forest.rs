//! Random hierarchies with random loads, of every kind of scheduler that can be named.
//!
//! What children ask for follows from what the kind declares; it is always so little that all of it is admitted.

use proptest::prelude::*;
use std::collections::HashMap;
use std::num::NonZeroU32;
use talea_guarantee::conversion::admission::Test;
use talea_guarantee::exact::{Share, Span, ratio};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use talea_guarantee::scheduler::{Children, Parameter};
use talea_model::{
    Asks, Execution, Plan, PlanEntry, Request, SchedulerBuilder, SchedulerKind, Setting, System,
    SystemBuilder, ThreadBuilder, ThreadWork,
};
use talea_time::{Duration, Work};

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
        /// Its quantum, if the kind has one.
        quantum: Quantum,
        /// Who is below it, with what each asks for.
        children: Vec<(Ask, Tree)>,
    },
}

/// In microseconds.
pub type Quantum = u32;

/// When a thread wants the processor.
#[derive(Clone, Debug)]
pub enum Demand {
    /// Always.
    Endless,
    /// Microseconds, one after the other, every so many milliseconds.
    Bursts(Vec<u16>, u8),
}

impl Demand {
    fn work(&self) -> ThreadWork {
        match self {
            Demand::Endless => ThreadWork::CpuBound,
            Demand::Bursts(bursts, period) => {
                let work = |us: &u16| Work::from_nanos(i64::from(*us) * 1_000);
                ThreadWork::Bursts {
                    burst: Execution::List(bursts.iter().map(work).collect()),
                    period: Duration::from_millis(i64::from(*period)),
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

fn demands() -> impl Strategy<Value = Demand> {
    // Every so often far more than a period holds, and then hardly anything: what queues makes arrivals irregular.
    let uneven = prop_oneof![3 => 1..500u16, 1 => 5_000..60_000u16];
    prop_oneof![
        2 => Just(Demand::Endless),
        2 => (prop::collection::vec(1..20_000u16, 1..5), 1..50u8)
            .prop_map(|(bursts, period)| Demand::Bursts(bursts, period)),
        1 => (prop::collection::vec(uneven, 3..12), 1..9u8)
            .prop_map(|(bursts, period)| Demand::Bursts(bursts, period)),
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

fn quanta() -> impl Strategy<Value = Quantum> {
    (1..12u32).prop_map(|quantum| quantum * 1_000)
}

fn scheduler(kind: SchedulerKind, quantum: Quantum, mut children: Vec<(Ask, Tree)>) -> Tree {
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
            *child = Tree::Thread(Demand::Bursts(bursts, statistical_period(place)));
        }
    }
    Tree::Scheduler { kind, quantum, children }
}

/// In milliseconds: each twice as long as the one before, which so has it as its superperiod.
fn statistical_period(place: usize) -> u8 {
    5 << place
}

fn below() -> impl Strategy<Value = Tree> {
    demands().prop_map(Tree::Thread).prop_recursive(3, 14, 4, |inner| {
        (kinds(), quanta(), prop::collection::vec((asks(), inner), 1..4))
            .prop_map(|(kind, quantum, children)| scheduler(kind, quantum, children))
    })
}

/// A hierarchy whose root is of any kind.
pub fn trees() -> impl Strategy<Value = Tree> {
    kinds().prop_flat_map(trees_of)
}

/// A hierarchy whose root is of this kind.
pub fn trees_of(kind: SchedulerKind) -> impl Strategy<Value = Tree> {
    let children = prop::collection::vec((asks(), below()), 1..5);
    (quanta(), children).prop_map(move |(quantum, children)| scheduler(kind, quantum, children))
}

/// A hierarchy with a scheduler of this kind at its root or somewhere below.
pub fn trees_with(kind: SchedulerKind) -> BoxedStrategy<Tree> {
    if kind.chooses_parent() {
        return trees_of(SchedulerKind::FIXED_PRIORITY).boxed();
    }
    let child = prop_oneof![2 => below(), 1 => trees_of(kind)];
    let above = (kinds(), quanta(), prop::collection::vec((asks(), child), 1..4))
        .prop_map(|(kind, quantum, children)| scheduler(kind, quantum, children));
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
    (givers, quanta(), children, any::<bool>()).prop_map(|(giver, quantum, children, has_root)| {
        let limited = |(outer, middle, inner, between, child)| {
            let limit = scheduler(K::LIMIT, quantum, vec![(inner, child)]);
            match between {
                None => (outer, limit),
                Some(kind) => (outer, scheduler(kind, quantum, vec![(middle, limit)])),
            }
        };
        let giver = scheduler(giver, quantum, children.into_iter().map(limited).collect());
        match has_root {
            // Where joins have a second parent.
            true => Tree::Scheduler { kind: K::FIXED_PRIORITY, quantum, children: vec![(PLAIN, giver)] },
            false => giver,
        }
    })
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
    (above, asks(), sharers(), beside, quanta()).prop_map(|(above, ask, sharer, mut beside, quantum)| {
        let Some(kind) = above else { return sharer };
        // The highest of a fixed-priority scheduler is its last child.
        beside.push((ask, sharer));
        scheduler(kind, quantum / 4, beside)
    })
}

/// Shares of several processors, in short quanta.
pub fn surplus() -> impl Strategy<Value = Tree> {
    let child = prop_oneof![3 => nervous().prop_map(Tree::Thread), 1 => sharers()];
    (short_quanta(), prop::collection::vec((asks(), child), 3..8))
        .prop_map(|(quantum, children)| scheduler(SchedulerKind::SFS, quantum, children))
}

/// The same of two processors, one of which is there for so many eighths of the time: its slower part is given by this kind.
pub fn parted() -> impl Strategy<Value = (Tree, SchedulerKind, u8)> {
    use SchedulerKind as K;
    (surplus(), prop::sample::select(vec![K::PSHED, K::RESERVATION, K::STRIDE]), 1..8u8)
}

fn short_quanta() -> impl Strategy<Value = Quantum> {
    (1..6u32).prop_map(|quantum| quantum * 50)
}

/// Who never stops, and who blocks and wakes all the time beside it.
fn nervous() -> impl Strategy<Value = Demand> {
    prop_oneof![
        3 => Just(Demand::Endless),
        2 => (prop::collection::vec(1..800u16, 1..5), 1..4u8)
            .prop_map(|(bursts, period)| Demand::Bursts(bursts, period)),
        1 => demands(),
    ]
}

fn sharers() -> impl Strategy<Value = Tree> {
    let threads = prop::collection::vec((asks(), nervous().prop_map(Tree::Thread)), 1..5);
    let lower = (short_quanta(), sharing(), threads)
        .prop_map(|(quantum, kind, children)| scheduler(kind, quantum, children));
    let child = prop_oneof![2 => nervous().prop_map(Tree::Thread), 1 => lower];
    (short_quanta(), sharing(), prop::collection::vec((asks(), child), 1..5))
        .prop_map(|(quantum, kind, children)| scheduler(kind, quantum, children))
}

fn sharing() -> impl Strategy<Value = SchedulerKind> {
    use SchedulerKind as K;
    prop::sample::select(vec![K::STRIDE, K::LOTTERY, K::PROPORTIONAL_SHARE, K::SFQ, K::SFS])
}

impl Tree {
    /// The system of it on these processors.
    pub fn system_on(&self, cpus: &[u16]) -> System {
        self.system_requiring(cpus, &HashMap::new())
    }

    /// The same whose threads of these names require something.
    pub fn system_requiring(&self, cpus: &[u16], required: &HashMap<String, Guarantee>) -> System {
        let builder = System::builder("random").seed(7).node("n", cpus.iter().copied());
        let mut grown = Grown { builder, schedulers: Vec::new(), nodes: 0, required };
        let mut joined = Vec::new();
        grown.grow(self, Vec::new(), &mut joined);
        grown.build()
    }

    /// The system of it on two processors, of one of which `kind` gives somebody who never stops all but so many eighths.
    pub fn system_beside(&self, kind: SchedulerKind, eighths: u8) -> System {
        let part = |eighths: u8| match kind.asks {
            Asks::Share => Request::share(weight_of(eighths)),
            Asks::Guarantee([Kind::Resu]) => {
                let rate = Share::new(ratio(u64::from(eighths), 8_u64)).expect("at most the whole");
                Request::Guarantee(Guarantee::Resu(rate))
            }
            _ => {
                let amount = u64::from(eighths) * 1_000_000;
                reserved((Continuity::Basic, Hardness::Hard), amount, 8_000_000)
            }
        };
        let mut halved = SchedulerBuilder::new("H", kind).under("B", Request::Priority(2));
        if kind.has_quantum() {
            halved = halved.quantum(Duration::from_millis(1));
        }
        let builder = System::builder("parted")
            .seed(7)
            .node("n", [0, 1])
            .scheduler(SchedulerBuilder::new("B", SchedulerKind::FIXED_PRIORITY).on("n"))
            .scheduler(halved)
            .thread(ThreadBuilder::new("other", ThreadWork::CpuBound).under("H", part(8 - eighths)));
        let required = HashMap::new();
        let mut grown = Grown { builder, schedulers: Vec::new(), nodes: 0, required: &required };
        let under = vec![("H".to_owned(), part(eighths)), ("B".to_owned(), Request::Priority(1))];
        grown.grow(self, under, &mut Vec::new());
        grown.build()
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
            Tree::Scheduler { kind, quantum, children } => {
                lines.push(format!("{indent}{kind} quantum {quantum} ({ask})"));
                let asks: Vec<Ask> = children.iter().map(|(ask, _)| *ask).collect();
                for (place, (_, child)) in children.iter().enumerate() {
                    let joined = if asks[place].is_joined { ", joined" } else { "" };
                    child.draw(depth + 1, &format!("{}{joined}", request(*kind, &asks, place)), lines);
                }
            }
        }
    }
}

struct Grown<'r> {
    builder: SystemBuilder,
    /// In the order of the file.
    schedulers: Vec<SchedulerBuilder>,
    nodes: usize,
    required: &'r HashMap<String, Guarantee>,
}

impl Grown<'_> {
    fn name(&mut self, prefix: &str) -> String {
        self.nodes += 1;
        format!("{prefix}{}", self.nodes)
    }

    /// Adds the tree below its parents; what is joined goes under the root too if that orders by priority. The name of what is added.
    fn grow(&mut self, tree: &Tree, under: Vec<(String, Request)>, root: &mut Vec<String>) -> String {
        match tree {
            Tree::Thread(demand) => {
                let name = self.name("t");
                let mut thread = ThreadBuilder::new(&name, demand.work());
                if let Some(required) = self.required.get(&name) {
                    thread = thread.requires(required.clone());
                }
                let thread =
                    under.into_iter().fold(thread, |thread, (parent, ask)| thread.under(parent, ask));
                let builder = std::mem::replace(&mut self.builder, System::builder(""));
                self.builder = builder.thread(thread);
                name
            }
            Tree::Scheduler { kind, quantum, children } => {
                let name = self.name("s");
                let mut scheduler = SchedulerBuilder::new(&name, *kind);
                if kind.has_quantum() {
                    scheduler = scheduler.quantum(Duration::from_micros(i64::from(*quantum)));
                }
                if under.is_empty() {
                    scheduler = scheduler.on("n");
                    if *kind == SchedulerKind::FIXED_PRIORITY {
                        root.push(name.clone());
                    }
                }
                let scheduler = under
                    .into_iter()
                    .fold(scheduler, |scheduler, (parent, ask)| scheduler.under(parent, ask));
                let own = self.add(scheduler);
                let asks: Vec<Ask> = children.iter().map(|(ask, _)| *ask).collect();
                let mut names = Vec::new();
                for (place, (ask, child)) in children.iter().enumerate() {
                    let request = request(*kind, &asks, place);
                    let edge = match (&request, root.first().cloned()) {
                        (Request::Guarantee(Guarantee::Reservation(_)), Some(top))
                            if ask.is_joined && kind.children != Children::Bursts =>
                        {
                            (self.join(&name, request, top), Request::Nothing)
                        }
                        _ => (name.clone(), request),
                    };
                    names.push(self.grow(child, vec![edge], root));
                }
                if kind.parameter(Parameter::PLAN.name).is_some() {
                    let (plan, cycle) = plan(*quantum, children, &names);
                    let planned = self.schedulers[own].clone().set(Parameter::PLAN.name, Setting::Plan(plan));
                    self.schedulers[own] = match cycle {
                        Some(cycle) => planned.set(Parameter::CYCLE.name, Setting::Time(cycle)),
                        None => planned,
                    };
                }
                name
            }
        }
    }

    /// A join below a reservation and, with the lowest priority, the root.
    fn join(&mut self, reserved: &str, request: Request, top: String) -> String {
        let name = self.name("j");
        let lowest = Request::Priority(-(self.nodes as i32));
        self.add(
            SchedulerBuilder::new(&name, SchedulerKind::JOIN).under(reserved, request).under(top, lowest),
        );
        name
    }

    /// Adds a scheduler, and says which one it is.
    fn add(&mut self, scheduler: SchedulerBuilder) -> usize {
        self.schedulers.push(scheduler);
        self.schedulers.len() - 1
    }

    fn build(self) -> System {
        let builder = self.schedulers.into_iter().fold(self.builder, SystemBuilder::scheduler);
        builder.build().expect("a sound hierarchy")
    }
}

/// A plan that has an entry for every child, most with a gap behind it, and after how long it begins again, if it does.
fn plan(quantum: Quantum, children: &[(Ask, Tree)], names: &[String]) -> (Plan, Option<Duration>) {
    let unit = Duration::from_micros(i64::from(quantum));
    let mut start = Duration::ZERO;
    let mut entries = Vec::new();
    for ((ask, _), child) in children.iter().zip(names) {
        let duration = unit * i64::from(ask.weight);
        entries.push(PlanEntry { start, duration, child: child.clone() });
        start += duration + unit * (ask.period as i64);
    }
    let (Ask { is_joined, .. }, _) = children[0];
    (Plan::new(entries), (!is_joined).then_some(start))
}

/// What an only child asks of a scheduler of `kind`: something that does not keep it from having all that the scheduler has.
pub fn least(kind: SchedulerKind) -> Request {
    request(kind, &[PLAIN], 0)
}

/// What the child at `place` of so many asks of a scheduler of `kind`, if all ask for as much.
pub(crate) fn beside(kind: SchedulerKind, children: usize, place: usize) -> Request {
    request(kind, &vec![PLAIN; children], place)
}

/// What has to be said of a scheduler of `kind` with these children: a plan with an entry of a millisecond for each.
pub(crate) fn settings(kind: SchedulerKind, children: &[String]) -> Vec<(&'static str, Setting)> {
    if kind.parameter(Parameter::PLAN.name).is_none() {
        return Vec::new();
    }
    let ms = |ms: usize| Duration::from_millis(ms as i64);
    let entry = |(place, child): (usize, &String)| PlanEntry {
        start: ms(2 * place),
        duration: ms(1),
        child: child.clone(),
    };
    let plan: Vec<PlanEntry> = children.iter().enumerate().map(entry).collect();
    let cycle = Setting::Time(ms(2 * children.len() + 1));
    vec![(Parameter::PLAN.name, Setting::Plan(Plan::new(plan))), (Parameter::CYCLE.name, cycle)]
}

/// What the child at `place` asks of a scheduler of `kind` beside its siblings.
fn request(kind: SchedulerKind, asks: &[Ask], place: usize) -> Request {
    let Ask { weight, period, warp, is_limited, .. } = asks[place];
    // Something is left free; shortened periods need half, and reserves whose budgets may be used late, two thirds.
    let total: u64 = asks.iter().map(|ask| u64::from(ask.weight)).sum::<u64>() + 1;
    let total = match kind.admission {
        Some(Test::PowersOfTwo) => 2 * total,
        Some(Test::RateMonotonic) => 3 * total,
        _ => total,
    };
    if kind.children == Children::Bursts {
        let superperiod = 2_000_000 * u64::from(statistical_period(place));
        let allowance = superperiod * u64::from(weight) / total;
        return reserved((Continuity::Basic, Hardness::Hard), allowance, superperiod);
    }
    match kind.asks {
        Asks::Nothing | Asks::NoChildren => Request::Nothing,
        Asks::AtMost(_) if is_limited => {
            let period = PERIODS[period] * 1_000_000;
            reserved((Continuity::Basic, Hardness::Hard), period * u64::from(weight) / 40, period)
        }
        Asks::AtMost(_) => Request::Nothing,
        Asks::Priority => Request::Priority(place as i32),
        Asks::Level => Request::Priority(i32::from(weight)),
        Asks::Share => Request::share(weight_of(weight)),
        Asks::WarpedShare => {
            Request::Share { weight: weight_of(weight), warp: Duration::from_micros(i64::from(warp)) }
        }
        Asks::Guarantee([Kind::Resu]) => {
            let rate = Share::new(ratio(u64::from(weight), total)).expect("at most the whole");
            Request::Guarantee(Guarantee::Resu(rate))
        }
        Asks::GuaranteeOrJobs(_) if weight == 7 => Request::Nothing,
        Asks::Guarantee(kinds) | Asks::GuaranteeOrJobs(kinds) => {
            let period = PERIODS[period] * 1_000_000;
            // What is not interrupted has to fit beside the others into the shortest period.
            let shortest = asks.iter().map(|ask| PERIODS[ask.period]).min().unwrap_or_default() * 1_000_000;
            let base = if kind == SchedulerKind::SPRING { shortest } else { period };
            let kind = kinds[usize::from(weight) % kinds.len()].reservation();
            let kind = kind.unwrap_or((Continuity::Basic, Hardness::Soft));
            reserved(kind, base * u64::from(weight) / total, period)
        }
    }
}

fn weight_of(weight: u8) -> NonZeroU32 {
    NonZeroU32::new(u32::from(weight)).expect("weights begin at 1")
}

/// About the amount in the period, both in nanoseconds: in whole microseconds, and something.
fn reserved((continuity, hardness): (Continuity, Hardness), amount: u64, period: u64) -> Request {
    let amount = (amount / 1_000).max(1) * 1_000;
    let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
    let reservation = Reservation::new(continuity, hardness, amount, period);
    Request::Guarantee(reservation.expect("the amount fits").into())
}
