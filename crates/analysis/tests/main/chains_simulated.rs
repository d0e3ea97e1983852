//! No time of a chain that a simulation shows is longer than its bound, for the random systems on which the measurement of chains is tried
//! (`sim/tests/chains`).

#[path = "../../../sim/tests/chains/systems.rs"]
mod systems;

use proptest::prelude::*;
use talea_analysis::Effort;
use talea_analysis::system::analyse;
use talea_insight::Accounting;
use talea_policy::strategy::plan_system;
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

const UNTIL: i64 = 3_000;

proptest! {
    #[test]
    fn no_simulated_time_of_a_chain_exceeds_its_bound(system in systems::systems()) {
        let plans = plan_system(&system).expect("operations have periods and execution times");
        let mut effort = Effort::new(2_000_000);
        let bounds = analyse(&system, &plans, &mut effort).expect("small numbers");
        let bounds = bounds.chains(&system, &mut effort);
        let mut simulation = Simulation::with_plans(&system, &plans).expect("it can be simulated");
        let mut accounting = Accounting::new(simulation.metadata(), Duration::from_nanos(500));
        simulation.advance(Instant::from_nanos(UNTIL), &mut accounting);
        simulation.finish(&mut accounting);
        let report = accounting.finish(Instant::from_nanos(UNTIL));
        for (chain, bound) in report.chains.iter().zip(&bounds) {
            let times = [
                ("latency", &chain.latency, &bound.latency),
                ("reaction", &chain.reaction, &bound.reaction),
                ("age", &chain.age, &bound.age),
            ];
            for (what, seen, bound) in times {
                if let (Some(seen), Ok(bound)) = (seen.time_ns, bound) {
                    // Distributions are exact up to 2048 ns and round up by less than a thousandth beyond.
                    let seen_ns = seen.max - seen.max / 1_000;
                    prop_assert!(seen_ns <= bound.as_nanos(), "{what} of {}: {seen_ns} ns of at most {bound}\n{}", chain.name, system.to_toml());
                }
            }
        }
    }
}
