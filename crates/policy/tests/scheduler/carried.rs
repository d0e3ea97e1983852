//! Schedulers of reservations take each other's places at any instants, and no maximum is exceeded by it.

use super::script::{Piece, Script, endless, ns, work};
use proptest::prelude::*;
use talea_policy::hierarchy::{Enforcement, Engine, Fraction, Parameters, Replacement, VpId};
use talea_policy::scheduler::{Announcing, Config, Configuration, Renewal, config};

const UNTIL: i64 = 4_000;

/// A kind that holds its children to a maximum in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reservation,
    ResourceKernel,
    Spring,
}

impl Kind {
    fn configuration(self) -> Configuration {
        match self {
            Kind::Reservation => config::Reservation::hard(Fraction::ONE).into(),
            Kind::ResourceKernel => config::ResourceKernel { quantum: work(3) }.into(),
            Kind::Spring => config::Spring { effort: 1_000, quantum: work(3) }.into(),
        }
    }

    fn asks(self, (budget, period): (i64, i64)) -> Parameters {
        let (budget, period) = (work(budget), ns(period));
        match self {
            Kind::ResourceKernel => {
                Parameters::Reserve { budget, period, deadline: period, enforcement: Enforcement::Hard }
            }
            Kind::Reservation | Kind::Spring => Parameters::Reservation { budget, period },
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![3 => Just(Kind::Reservation), 2 => Just(Kind::ResourceKernel), 1 => Just(Kind::Spring)]
}

/// Who takes the place, and after how long.
fn replacements() -> impl Strategy<Value = Vec<(Kind, i64)>> {
    proptest::collection::vec((kinds(), 1..60i64), 1..80)
}

fn bursts() -> impl Strategy<Value = Vec<Piece>> {
    proptest::collection::vec((0..80i64, 1..40i64), 1..40).prop_map(|steps| {
        let mut arrival = 0;
        let piece = |(gap, work)| {
            arrival += gap;
            Piece { arrival, work, deadline: arrival + 1_000 }
        };
        steps.into_iter().map(piece).collect()
    })
}

/// The most that any interval holds more than its part of `budget` in `period`, times the period.
fn excess(supply: &[(i64, i64)], (budget, period): (i64, i64)) -> i64 {
    let (mut lead, mut lowest, mut worst, mut at) = (0, 0, 0, 0);
    for (from, to) in supply {
        lead -= budget * (from - at);
        lowest = lowest.min(lead);
        lead += (period - budget) * (to - from);
        worst = worst.max(lead - lowest);
        at = *to;
    }
    worst
}

/// Runs threads with these reservations, the first of which always wants more.
fn run(first: Kind, budgets: &[(i64, i64)], jobs: Vec<Vec<Piece>>, others: &[(Kind, i64)]) -> Script {
    let mut engine = Engine::new(1);
    let root = engine.add_root(first.configuration().build(Announcing::Nothing).expect("in range"));
    let threads: Vec<VpId> = budgets
        .iter()
        .map(|budget| engine.add_thread(root, first.asks(*budget)).expect("a quarter of the processor"))
        .collect();
    let mut script = Script::new(engine, threads.iter().copied().zip(jobs).collect());
    let mut until = 0;
    for (kind, after) in others.iter().cycle() {
        until += after;
        if until >= UNTIL {
            break;
        }
        script.run_on(until);
        let children: Vec<(VpId, Parameters)> =
            threads.iter().zip(budgets).map(|(thread, budget)| (*thread, kind.asks(*budget))).collect();
        let scheduler = kind.configuration().build(Announcing::Nothing).expect("in range");
        let replacement = Replacement { scheduler, children: &children, parents: &[] };
        let now = script.machine.now;
        script.machine.engine.replace(root, replacement, now).expect("there is as much room as before");
    }
    script.run_on(UNTIL);
    script
}

/// Budgets that all of the schedulers admit: a resource kernel lets each claim its own twice in a row, so that not even three quarters always fit.
fn budgets() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let period = prop::sample::select(vec![40_i64, 80, 160]);
    let are_admitted = |budgets: &Vec<(i64, i64)>| {
        [Kind::Reservation, Kind::ResourceKernel, Kind::Spring].into_iter().all(|kind| {
            let mut engine = Engine::new(1);
            let scheduler = kind.configuration().build(Announcing::Nothing).expect("in range");
            let root = engine.add_root(scheduler);
            budgets.iter().all(|budget| engine.add_thread(root, kind.asks(*budget)).is_ok())
        })
    };
    proptest::collection::vec((1..10i64, period), 1..4).prop_filter("they are not admitted", are_admitted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// In no interval of any length t does anybody receive more than 2 x + t x / y, however often its scheduler is another one.
    #[test]
    fn no_maximum_is_exceeded_by_replacing(
        first in kinds(), budgets in budgets(), jobs in proptest::collection::vec(bursts(), 3), others in replacements(),
    ) {
        let jobs = std::iter::once(endless()).chain(jobs).collect();
        let script = run(first, &budgets, jobs, &others);
        for (trace, (budget, period)) in script.traces.iter().zip(&budgets) {
            let supply: Vec<(i64, i64)> =
                trace.supply.iter().map(|(from, to)| (from.as_nanos(), to.as_nanos())).collect();
            let most = excess(&supply, (*budget, *period));
            prop_assert!(most <= 2 * budget * period, "{} of {budget} in {period}: {supply:?}", most / period);
        }
    }

    /// Where a scheduler gives its place to one of the same kind, nobody notices: each period holds the whole budget and no more.
    #[test]
    fn what_is_left_of_a_period_is_left_to_the_next_scheduler(
        budgets in budgets(), jobs in proptest::collection::vec(bursts(), 3), after in 1..60i64,
        kind in prop_oneof![Just(Kind::Reservation), Just(Kind::ResourceKernel)],
    ) {
        let jobs = std::iter::once(endless()).chain(jobs).collect();
        let script = run(kind, &budgets, jobs, &[(kind, after)]);
        let (budget, period) = budgets[0];
        for start in (0..UNTIL - period).step_by(period as usize) {
            prop_assert_eq!(script.traces[0].received(start, start + period), budget);
        }
    }
}

/// A limit whose place another limit takes in every third of its period lets no more pass than one that stays.
#[test]
fn a_limit_that_is_replaced_counts_on() {
    for renewal in [Renewal::Over, Renewal::Unsafe] {
        let limit = || {
            let limit = config::Limit { budget: work(4), period: ns(12), renewal };
            limit.build(Announcing::Nothing).expect("in range")
        };
        let mut engine = Engine::new(1);
        let root = engine.add_root(limit());
        let thread = engine.add_thread(root, Parameters::None).expect("its only child");
        let mut script = Script::new(engine, vec![(thread, endless())]);
        for until in (3..600).step_by(3) {
            script.run_on(until);
            let children = [(thread, Parameters::None)];
            let replacement = Replacement { scheduler: limit(), children: &children, parents: &[] };
            let now = script.machine.now;
            script.machine.engine.replace(root, replacement, now).expect("a limit takes one child");
        }
        script.run_on(600);
        for start in (0..600).step_by(12) {
            assert_eq!(script.traces[0].received(start, start + 12), 4, "{renewal:?} at {start}");
        }
    }
}
