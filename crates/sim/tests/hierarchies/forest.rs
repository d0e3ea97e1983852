//! Random hierarchies with random loads.

use proptest::prelude::*;
use std::num::NonZeroU32;
use talea_guarantee::exact::{Share, Span, ratio};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use talea_model::{
    Asks, Execution, Request, SchedulerBuilder, SchedulerKind, System, SystemBuilder, ThreadBuilder,
    ThreadWork,
};
use talea_time::{Duration, Work};

/// Periods of reservations and bursts, in milliseconds.
const PERIODS: [u64; 6] = [8, 10, 20, 33, 40, 100];

/// A thread, or a scheduler with what is below it.
#[derive(Clone, Debug)]
pub enum Tree {
    Thread(Demand),
    Scheduler { kind: SchedulerKind, quantum: u8, children: Vec<(Ask, Tree)> },
}

#[derive(Clone, Debug)]
pub enum Demand {
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
    (1..8u8, 0..PERIODS.len(), prop::bool::weighted(0.2)).prop_map(|(weight, period, is_joined)| Ask {
        weight,
        period,
        is_joined,
    })
}

/// All but limits: their periods begin with a request, as those of a reservation do; a parent that lays its periods down otherwise
/// may give them less.
fn kinds() -> impl Strategy<Value = SchedulerKind> {
    use SchedulerKind as K;
    prop::sample::select(vec![
        K::FixedPriority,
        K::ProportionalShare,
        K::StartTimeFair,
        K::Eevdf,
        K::Stride,
        K::Lottery,
        K::Reservation,
        K::ConstantBandwidth,
        K::TotalBandwidth,
        K::ResourceKernel,
        K::Rialto,
        K::RialtoNt,
        K::Spring,
        K::BssI,
        K::PShed,
        K::SurplusFair,
        K::RoundRobin,
        K::EarliestDeadline,
        K::LeastLaxity,
        K::Fifo,
        K::TimeSharing,
        K::Linux,
        K::Windows2000,
    ])
}

fn scheduler(kind: SchedulerKind, quantum: u8, mut children: Vec<(Ask, Tree)>) -> Tree {
    if kind.has_one_child() {
        children.truncate(1);
    }
    // They order jobs, which only threads have.
    if matches!(kind, SchedulerKind::EarliestDeadline | SchedulerKind::LeastLaxity | SchedulerKind::Fifo) {
        for (_, child) in children.iter_mut().filter(|(_, child)| matches!(child, Tree::Scheduler { .. })) {
            *child = Tree::Thread(Demand::Endless);
        }
    }
    Tree::Scheduler { kind, quantum, children }
}

fn below() -> impl Strategy<Value = Tree> {
    demands().prop_map(Tree::Thread).prop_recursive(3, 14, 4, |inner| {
        (kinds(), 1..12u8, prop::collection::vec((asks(), inner), 1..4))
            .prop_map(|(kind, quantum, children)| scheduler(kind, quantum, children))
    })
}

/// A hierarchy whose root is of any kind.
pub fn trees() -> impl Strategy<Value = Tree> {
    kinds().prop_flat_map(trees_of)
}

/// A hierarchy whose root, or an only child of whose root, is of this kind.
pub fn trees_of(kind: SchedulerKind) -> impl Strategy<Value = Tree> {
    let children = prop::collection::vec((asks(), below()), 1..5);
    (1..12u8, children).prop_map(move |(quantum, children)| match kind {
        // Each limits a reservation, whose periods begin when its own do: with a demand that never pauses.
        SchedulerKind::Limit => {
            let endless = |ask| vec![(ask, Tree::Thread(Demand::Endless))];
            let limited = |(ask, _)| (ask, scheduler(kind, quantum, endless(ask)));
            let children = children.into_iter().map(limited).collect();
            scheduler(SchedulerKind::Reservation, quantum, children)
        }
        kind => scheduler(kind, quantum, children),
    })
}

impl Tree {
    /// The system of it on these processors.
    pub fn system_on(&self, cpus: &[u16]) -> System {
        let builder = System::builder("random").seed(7).node("n", cpus.iter().copied());
        let mut grown = Grown { builder, nodes: 0 };
        let mut joined = Vec::new();
        grown.grow(self, Vec::new(), &mut joined);
        grown.builder.build().expect("a sound hierarchy")
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

struct Grown {
    builder: SystemBuilder,
    nodes: usize,
}

impl Grown {
    fn name(&mut self, prefix: &str) -> String {
        self.nodes += 1;
        format!("{prefix}{}", self.nodes)
    }

    /// Adds the tree below its parents; what is joined goes under the root too if that orders by priority.
    fn grow(&mut self, tree: &Tree, under: Vec<(String, Request)>, root: &mut Vec<String>) {
        match tree {
            Tree::Thread(demand) => {
                let thread = ThreadBuilder::new(self.name("t"), demand.work());
                let thread =
                    under.into_iter().fold(thread, |thread, (parent, ask)| thread.under(parent, ask));
                let builder = std::mem::replace(&mut self.builder, System::builder(""));
                self.builder = builder.thread(thread);
            }
            Tree::Scheduler { kind, quantum, children } => {
                let name = self.name("s");
                let mut scheduler = SchedulerBuilder::new(&name, *kind);
                if kind.has_quantum() {
                    scheduler = scheduler.quantum(Duration::from_millis(i64::from(*quantum)));
                }
                if under.is_empty() {
                    scheduler = scheduler.on("n");
                    if *kind == SchedulerKind::FixedPriority {
                        root.push(name.clone());
                    }
                }
                self.add(
                    under
                        .into_iter()
                        .fold(scheduler, |scheduler, (parent, ask)| scheduler.under(parent, ask)),
                );
                let asks: Vec<Ask> = children.iter().map(|(ask, _)| *ask).collect();
                for (place, (ask, child)) in children.iter().enumerate() {
                    let request = request(*kind, &asks, place);
                    let edge = match (&request, root.first().cloned()) {
                        (Request::Guarantee(Guarantee::Reservation(_)), Some(top)) if ask.is_joined => {
                            (self.join(&name, request, top), Request::Nothing)
                        }
                        _ => (name.clone(), request),
                    };
                    self.grow(child, vec![edge], root);
                }
            }
        }
    }

    /// A join below a reservation and, with the lowest priority, the root.
    fn join(&mut self, reserved: &str, request: Request, top: String) -> String {
        let name = self.name("j");
        let lowest = Request::Priority(-(self.nodes as i32));
        self.add(
            SchedulerBuilder::new(&name, SchedulerKind::Join).under(reserved, request).under(top, lowest),
        );
        name
    }

    fn add(&mut self, scheduler: SchedulerBuilder) {
        let builder = std::mem::replace(&mut self.builder, System::builder(""));
        self.builder = builder.scheduler(scheduler);
    }
}

/// What an only child asks of a scheduler of `kind`: something that does not keep it from having all that the scheduler has.
pub fn least(kind: SchedulerKind) -> Request {
    request(kind, &[Ask { weight: 1, period: 0, is_joined: false }], 0)
}

/// What the child at `place` asks of a scheduler of `kind` beside its siblings.
fn request(kind: SchedulerKind, asks: &[Ask], place: usize) -> Request {
    let Ask { weight, period, .. } = asks[place];
    // Something is left free; shortened periods need half, and reserves whose budgets may be used late, two thirds.
    let total: u64 = asks.iter().map(|ask| u64::from(ask.weight)).sum::<u64>() + 1;
    let total = match kind {
        SchedulerKind::Rialto | SchedulerKind::RialtoNt => 2 * total,
        SchedulerKind::ResourceKernel => 3 * total,
        _ => total,
    };
    match kind.asks() {
        Asks::Nothing | Asks::NoChildren | Asks::AtMost(_) => Request::Nothing,
        Asks::Priority => Request::Priority(place as i32),
        Asks::Level => Request::Priority(i32::from(weight)),
        Asks::Share | Asks::WarpedShare => {
            Request::share(NonZeroU32::new(u32::from(weight)).expect("weights begin at 1"))
        }
        Asks::Guarantee([Kind::Resu]) => {
            let rate = Share::new(ratio(u64::from(weight), total)).expect("at most the whole");
            Request::Guarantee(Guarantee::Resu(rate))
        }
        Asks::Guarantee(kinds) => {
            let period = PERIODS[period] * 1_000_000;
            // What is not interrupted has to fit beside the others into the shortest period.
            let shortest = asks.iter().map(|ask| PERIODS[ask.period]).min().unwrap_or_default() * 1_000_000;
            let base = if kind == SchedulerKind::Spring { shortest } else { period };
            // Whole microseconds.
            let amount = (base * u64::from(weight) / total / 1_000).max(1) * 1_000;
            let (continuity, hardness) = kinds[usize::from(weight) % kinds.len()]
                .reservation()
                .unwrap_or((Continuity::Basic, Hardness::Soft));
            let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
            let reservation = Reservation::new(continuity, hardness, amount, period);
            Request::Guarantee(reservation.expect("the amount fits").into())
        }
    }
}
