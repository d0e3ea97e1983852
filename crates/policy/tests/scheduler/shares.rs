//! How far proportional shares may be off, by the papers.

use super::script::{Piece, Script, endless, ns, work};
use super::workload::{Demand, Workload, ms};
use proptest::prelude::*;
use talea_policy::hierarchy::{Engine, Parameters, VpId};
use talea_policy::scheduler::{Announcing, Config, FixedPriority, WakeUp, config};
use talea_time::Work;

const UNTIL: i64 = 1_000;

/// Threads of these weights that always want the processor, below a thread that takes it now and then.
fn backlogged(kind: &impl Config, weights: &[u32], interruptions: Vec<Piece>) -> Script {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let scheduler = kind.build(Announcing::Nothing).expect("parameters are in range");
    let parent = engine.add(scheduler, &[(root, Parameters::Priority(0))]).expect("free");
    let mut threads: Vec<(VpId, Vec<Piece>)> = weights
        .iter()
        .map(|weight| (engine.add_thread(parent, Parameters::Weight(*weight)).expect("a weight"), endless()))
        .collect();
    let above = engine.add_thread(root, Parameters::Priority(1)).expect("free");
    threads.push((above, interruptions));
    Script::new(engine, threads)
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(1..12u32, 2..6)
}

fn interruptions() -> impl Strategy<Value = Vec<Piece>> {
    proptest::collection::vec((1..90i64, 1..20i64), 0..20).prop_map(|steps| {
        let mut arrival = 0;
        let piece = |(gap, work)| {
            arrival += gap;
            Piece { arrival, work, deadline: i64::MAX / 2 }
        };
        steps.into_iter().map(piece).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Goyal, Guo and Vin 1996, theorem 1: `|W(f) / r(f) - W(g) / r(g)| <= l(f) / r(f) + l(g) / r(g)` in any interval in which
    /// both are backlogged, however the processor comes and goes.
    #[test]
    fn start_time_fair_queueing_is_fair_in_every_interval(
        weights in weights(), quantum in 1..12i64, interruptions in interruptions(), preempts: bool,
    ) {
        let wake_up = if preempts { WakeUp::Preempts } else { WakeUp::Waits };
        let kind = config::ProportionalShare { quantum: work(quantum), wake_up };
        let script = backlogged(&kind, &weights, interruptions).run(UNTIL);
        for from in (0..UNTIL).step_by(97) {
            for to in (from..UNTIL).step_by(61) {
                for (f, one) in weights.iter().enumerate() {
                    for (g, other) in weights.iter().enumerate() {
                        let (one, other) = (i64::from(*one), i64::from(*other));
                        let received = |place: usize| script.traces[place].received(from, to);
                        let difference = received(f) * other - received(g) * one;
                        prop_assert!(difference <= quantum * (one + other));
                    }
                }
            }
        }
    }

    /// Stoica et al. 1996: `-r < lag < max(r, q)` at all times, here with requests of one quantum or more.
    #[test]
    fn lags_of_eevdf_are_bounded(
        clients in proptest::collection::vec((1..8u32, 1..20i64), 2..6), quantum in 1..8i64,
    ) {
        let kind = config::Eevdf { quantum: work(quantum) };
        let mut engine = Engine::new(1);
        let root = engine.add_root(kind.build(Announcing::Nothing).expect("in range"));
        let threads = clients
            .iter()
            .map(|(weight, request)| {
                let request = Parameters::Requests { weight: *weight, request: work(*request) };
                (engine.add_thread(root, request).expect("fits"), endless())
            })
            .collect();
        let script = Script::new(engine, threads).run(UNTIL);
        let sum: i64 = clients.iter().map(|(weight, _)| i64::from(*weight)).sum();
        let longest = clients.iter().map(|(_, request)| *request).max().expect("two");
        for now in 1..UNTIL {
            for (trace, (weight, _)) in script.traces.iter().zip(&clients) {
                let lag = i64::from(*weight) * now - trace.received(0, now) * sum;
                prop_assert!(lag > -longest * sum, "lag {} of {} at {}", lag, sum, now);
                prop_assert!(lag < longest.max(quantum) * sum, "lag {} of {} at {}", lag, sum, now);
            }
        }
    }

    /// Waldspurger and Weihl 1995: two clients are never more than one quantum off relative to each other.
    #[test]
    fn stride_is_off_by_a_quantum_between_any_two(
        weights in prop_oneof![weights(), proptest::collection::vec(1..=1u32 << 20, 2..6)], quantum in 1..12i64,
    ) {
        let script = backlogged(&config::Stride { quantum: work(quantum) }, &weights, Vec::new()).run(UNTIL);
        for now in (0..UNTIL).step_by(7) {
            for (f, one) in weights.iter().enumerate() {
                for (g, other) in weights.iter().enumerate() {
                    let received = |place: usize| script.traces[place].received(0, now) as f64;
                    // Against the share of both together; strides are rounded.
                    let both = received(f) + received(g);
                    let share = both * f64::from(*one) / f64::from(one + other);
                    prop_assert!((received(f) - share).abs() <= quantum as f64 + 0.1);
                }
            }
        }
    }
}

/// After `n` draws at share `p` the standard deviation is `sqrt(n p (1 - p))`; five of them, with seeds that do not change.
#[test]
fn lotteries_are_won_in_proportion() {
    let weights = [1u32, 2, 5, 12];
    let quanta = 20_000i64;
    for seed in 0..8 {
        let kind = config::Lottery { quantum: work(10), seed };
        let script = backlogged(&kind, &weights, Vec::new()).run(10 * quanta);
        for (trace, weight) in script.traces.iter().zip(weights) {
            let p = f64::from(weight) / 20.0;
            let won = trace.received(0, 10 * quanta) as f64 / 10.0;
            let (expected, deviation) = (quanta as f64 * p, (quanta as f64 * p * (1.0 - p)).sqrt());
            assert!((won - expected).abs() <= 5.0 * deviation, "seed {seed}: {won} of {expected}");
        }
    }
}

/// A thread that blocks after a fifth of its quantum and comes back at once gets its share all the same.
#[test]
fn compensation_makes_up_for_short_quanta() {
    for seed in 0..8 {
        let mut engine = Engine::new(1);
        let kind = config::Lottery { quantum: work(10), seed };
        let root = engine.add_root(kind.build(Announcing::Nothing).expect("in range"));
        let mut thread = |weight| engine.add_thread(root, Parameters::Weight(weight)).expect("a weight");
        let (short, long) = (thread(1), thread(1));
        let pieces = (0..60_000).map(|_| Piece { arrival: 0, work: 2, deadline: i64::MAX / 2 }).collect();
        let script = Script::new(engine, vec![(short, pieces), (long, endless())]).run(100_000);
        let received = script.traces[0].received(0, 100_000);
        // Half, with a deviation of at most that of 10 000 draws of 10.
        assert!((47_500..52_500).contains(&received), "seed {seed}: {received}");
    }
}

/// Chandra et al. 2000, section 2: with weights 1 and 10 on two processors both run all the time; when a third of weight 1
/// arrives, start tags that know no readjustment would starve the first until they have caught up.
#[test]
fn surplus_fair_scheduling_readjusts_infeasible_weights() {
    let mut engine = Engine::new(2);
    let root =
        engine.add_root(config::SurplusFair { quantum: work(10) }.build(Announcing::Nothing).expect("fine"));
    let threads =
        [1, 10, 1].map(|weight| engine.add_thread(root, Parameters::Weight(weight)).expect("a weight"));
    let arrivals = [0, 0, 1_000];
    let pieces = |arrival| vec![Piece { arrival, work: i64::MAX / 4, deadline: i64::MAX / 2 }];
    let threads = threads.into_iter().zip(arrivals.map(pieces)).collect();
    let script = Script::new(engine, threads).run(5_000);
    assert_eq!(
        script.traces.iter().map(|trace| trace.received(0, 1_000)).collect::<Vec<_>>(),
        [1_000, 1_000, 0]
    );
    // The heavy one has a processor, the others share the second; from the start.
    for (from, to) in [(1_000, 2_000), (1_000, 5_000), (3_000, 4_000)] {
        let received: Vec<i64> = script.traces.iter().map(|trace| trace.received(from, to)).collect();
        let whole = to - from;
        assert!((received[1] - whole).abs() <= 30, "{received:?} in {from}..{to}");
        assert!(
            (received[0] - whole / 2).abs() <= 30 && (received[2] - whole / 2).abs() <= 30,
            "{received:?}"
        );
    }
}

/// Others wake up all the time, some at the instants at which turns end; whoever is owed a whole processor never loses it.
#[test]
fn surplus_fair_scheduling_gives_a_whole_processor_to_whom_it_is_owed() {
    let mut engine = Engine::new(3);
    let kind = config::SurplusFair { quantum: Work::from_millis(3) };
    let root = engine.add_root(kind.build(Announcing::Nothing).expect("fine"));
    let threads =
        [100, 50, 3, 1].map(|weight| engine.add_thread(root, Parameters::Weight(weight)).expect("a weight"));
    let bursts = |burst, period| Demand::Periodic { burst: ms(burst), period: ms(period) };
    let demands = [Demand::Endless, Demand::Endless, bursts(9, 33), bursts(14, 36)];
    let pairs: Vec<_> = threads.into_iter().zip(demands).collect();
    let load = Workload::new(engine, &pairs).run(ms(10_000));
    // They may wait for the end of a turn once, when it is found out that there are four.
    for thread in &threads[..2] {
        assert!(load.received(*thread, ms(0), ms(10_000)) >= ms(10_000 - 3));
    }
}

/// A thread with warp is served first when it wakes up, and gets no more than its share in the long run.
#[test]
fn warp_shortens_the_wait_and_not_the_others() {
    let wait = |warp: i64| {
        let mut engine = Engine::new(1);
        let kind = config::ProportionalShare { quantum: work(10), wake_up: WakeUp::Preempts };
        let root = engine.add_root(kind.build(Announcing::Nothing).expect("in range"));
        let others: Vec<VpId> =
            (0..4).map(|_| engine.add_thread(root, Parameters::Weight(1)).expect("a weight")).collect();
        let given = Parameters::WarpedWeight { weight: 1, warp: ns(warp) };
        let warped = engine.add_thread(root, given).expect("a weight");
        let arrivals = || (5..3_000).step_by(53);
        let piece = |arrival| Piece { arrival, work: 9, deadline: i64::MAX / 2 };
        let mut threads = vec![(warped, arrivals().map(piece).collect::<Vec<_>>())];
        threads.extend(others.into_iter().map(|thread| (thread, endless())));
        let script = Script::new(engine, threads).run(3_000);
        let ends = script.traces[0].ends.iter();
        ends.zip(arrivals()).map(|(end, arrival)| end.as_nanos() - arrival - 9).max().expect("it ran")
    };
    assert_eq!(wait(100), 0);
    assert!(wait(0) > 0);
}
