//! Whatever hierarchy, load and blocking: no edge receives less, or more where that is a maximum, than is derived for it.

mod figure;
mod forest;

use forest::Tree;
use proptest::prelude::*;
use talea_model::{SchedulerKind, System};
use talea_policy::arrangement::{Basis, Kept};
use talea_sim::{Simulation, SimulationError};
use talea_time::{Duration, Instant};
use talea_trace::{Record, Sink};

/// A sink for tests that look at the books alone.
struct Nowhere;

impl Sink for Nowhere {
    fn record(&mut self, _record: Record) {}
}

/// What came of every edge in two seconds. None if a scheduler refuses a child.
fn simulated(system: &System) -> Option<Vec<Kept>> {
    let mut simulation = match Simulation::new(system) {
        Ok(simulation) => simulation,
        Err(SimulationError::Hierarchy { .. }) => return None,
        Err(other) => panic!("{other}"),
    };
    simulation.advance(Instant::ZERO + Duration::from_secs(2), &mut Nowhere);
    simulation.check_invariants();
    simulation.kept(0)
}

fn assert_kept(tree: &Tree) -> Result<(), TestCaseError> {
    let system = tree.system();
    let Some(kept) = simulated(&system) else {
        return Err(TestCaseError::reject("a scheduler refuses a child"));
    };
    for edge in kept {
        // A slower processor is exact between deadlines that its children announce. Children that announce none, which random ones
        // do not, run ahead of their share and then wait for as long. What they keep is tested where they are.
        let is_promised = edge.basis == Basis::Derived && !tree.has_slower_processors();
        prop_assert!(!is_promised || edge.violations == 0, "{edge:#?}\n{}", tree.drawn());
    }
    Ok(())
}

fn cases(number: u32) -> ProptestConfig {
    ProptestConfig { max_global_rejects: 10 * number, ..ProptestConfig::with_cases(number) }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn every_edge_of_a_random_hierarchy_receives_what_is_derived(tree in forest::trees()) {
        assert_kept(&tree)?;
    }
}

macro_rules! each_scheduler {
    ($($name:ident: $kind:ident),* $(,)?) => {
        $(proptest! {
            #![proptest_config(cases(200))]

            #[test]
            fn $name(tree in forest::trees_of(SchedulerKind::$kind)) {
                assert_kept(&tree)?;
            }
        })*
    };
}

each_scheduler! {
    fixed_priorities_keep_what_they_promise: FixedPriority,
    limits_keep_what_they_promise: Limit,
    proportional_shares_keep_what_they_promise: ProportionalShare,
    start_time_fair_queues_keep_what_they_promise: StartTimeFair,
    eevdf_keeps_what_it_promises: Eevdf,
    reservations_keep_what_they_promise: Reservation,
    constant_bandwidth_servers_keep_what_they_promise: ConstantBandwidth,
    total_bandwidth_servers_keep_what_they_promise: TotalBandwidth,
    resource_kernels_keep_what_they_promise: ResourceKernel,
    rialto_keeps_what_it_promises: Rialto,
}
