//! Whether every edge of a simulated hierarchy receives what is derived for it.

use crate::forest::{self, Tree};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use talea_guarantee::derivation::{Derivation, NotDerived, derive};
use talea_guarantee::proviso::provisos;
use talea_guarantee::scheduler::{Asks, Intake};
use talea_model::{SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
use talea_policy::arrangement::{Basis, Kept};
use talea_policy::scheduler::Row;
use talea_record::{Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// A sink for those who look at the books alone.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn record(&mut self, _record: Record) {}
}

/// As many cases as `PROPTEST_CASES` says, or else this number.
pub fn cases(number: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(number),
    }
}

/// Fails unless hierarchies with a scheduler of this kind keep what is derived of them.
pub(crate) fn check(row: &Row, number: u32) {
    let kind = row.kind();
    let run = |trees: BoxedStrategy<Tree>, cpus: &[u16]| {
        let config = ProptestConfig { failure_persistence: None, ..cases(number) };
        let outcome = TestRunner::new(config).run(&trees, |tree| assert_kept_on(&tree, cpus));
        outcome.unwrap_or_else(|error| panic!("{kind} on {} processors: {error}", cpus.len()));
    };
    run(forest::trees_with(kind), &[0]);
    if row.processors() == Intake::Several && !kind.chooses_parent() {
        run(forest::trees_of(kind).boxed(), &[0, 1]);
    }
    if matches!(kind.asks, Asks::Share | Asks::WarpedShare) {
        check_shares(kind);
    }
}

/// Threads that never stop receive their shares in the long run, which nobody judges window by window.
fn check_shares(kind: SchedulerKind) {
    let config = ProptestConfig { failure_persistence: None, ..cases(4) };
    let weights = (prop::collection::vec(1..8u32, 1..5), 1..6i64, forest::parameter_draws());
    let outcome = TestRunner::new(config).run(&weights, |(weights, quantum_ms, parameters)| {
        let mut scheduler = SchedulerBuilder::new("S", kind);
        if kind.has_quantum() {
            scheduler = scheduler.quantum(Duration::from_millis(quantum_ms));
        }
        for (parameter, setting) in parameters.settings(kind) {
            scheduler = scheduler.set(parameter, setting);
        }
        let mut system = System::builder("shared").scheduler(scheduler);
        for (place, weight) in weights.iter().enumerate() {
            let thread = ThreadBuilder::new(format!("t{place}"), ThreadWork::CpuBound);
            system = system.thread(thread.with_share("S", *weight));
        }
        let system = system.build().expect("a sound hierarchy");
        let edges = simulated_for(&system, Duration::from_secs(30))?;
        let sum: u32 = weights.iter().sum();
        for (edge, weight) in edges.iter().zip(weights) {
            let fair = 30_000_000_000 * i64::from(weight) / i64::from(sum);
            let off = (edge.received_ns - fair).abs();
            // Also for those who draw lots.
            prop_assert!(off <= 1_000_000_000, "{} received {} of {fair} ns", edge.child, edge.received_ns);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{kind}: {error}"));
}

/// This hierarchy; or the same of which nothing is said but quanta, if with what is said of it a scheduler has no room for its children.
pub fn admitted(tree: &Tree, cpus: &[u16]) -> Tree {
    match Simulation::new(&tree.system_on(cpus)) {
        Ok(_) => tree.clone(),
        Err(_) => tree.with_presets(),
    }
}

/// What came of every edge in two seconds.
///
/// # Errors
/// A scheduler refuses a child, or there is none like that.
pub fn simulated(system: &System) -> Result<Vec<Kept>, TestCaseError> {
    simulated_for(system, Duration::from_secs(2))
}

fn simulated_for(system: &System, duration: Duration) -> Result<Vec<Kept>, TestCaseError> {
    let mut simulation = Simulation::new(system).map_err(|error| TestCaseError::fail(error.to_string()))?;
    simulation.advance(Instant::ZERO + duration, &mut Nowhere);
    simulation.check_invariants();
    Ok(simulation.kept(0).expect("the node has a hierarchy"))
}

/// What can be derived of the hierarchy.
pub fn derived(system: &System) -> Derivation {
    match derive(&system.hierarchy(0).expect("the node has a hierarchy")) {
        Ok(derivation) => derivation,
        Err(NotDerived::Failed(failure)) => failure.derived,
        Err(malformed) => panic!("{malformed}"),
    }
}

/// The edges of which a promise is derived that nobody claims to be kept.
pub fn doubted(system: &System) -> Vec<(String, String)> {
    let hierarchy = system.hierarchy(0).expect("the node has a hierarchy");
    let provisos = provisos(&hierarchy, &derived(system));
    provisos.into_iter().map(|proviso| (proviso.parent, proviso.child)).collect()
}

/// Fails unless each edge receives what is derived for it on one processor.
///
/// # Errors
/// An edge that does not, with the hierarchy.
pub fn assert_kept(tree: &Tree) -> Result<(), TestCaseError> {
    assert_kept_on(tree, &[0])
}

/// The same on these processors.
///
/// # Errors
/// An edge that does not, with the hierarchy.
pub fn assert_kept_on(tree: &Tree, cpus: &[u16]) -> Result<(), TestCaseError> {
    let tree = &admitted(tree, cpus);
    let system = tree.system_on(cpus);
    let doubted = doubted(&system);
    for edge in simulated(&system)? {
        let is_doubted = doubted.contains(&(edge.parent.clone(), edge.child.clone()));
        let is_promised = edge.basis == Basis::Derived && !is_doubted;
        prop_assert!(!is_promised || edge.violations == 0, "{edge:#?}\n{}", tree.drawn());
        // The judge that knows the work alone agrees.
        prop_assert!(!is_promised || !edge.misses_by_sums(), "{edge:#?}\n{}", tree.drawn());
    }
    Ok(())
}
