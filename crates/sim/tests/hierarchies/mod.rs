//! Whatever hierarchy, load and blocking: no edge receives less, or more where that is a maximum, than is derived for it.

mod constraints;
mod figure;
mod limits;
mod outside;
mod plans;
mod required;
mod shares;
mod toll;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use shares::Count;
use talea_conformance::forest::{self, Tree};
use talea_conformance::promises::{
    Nowhere, admitted, assert_kept, assert_kept_on, cases, derived, doubted, simulated,
};
use talea_model::{Execution, Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
use talea_time::{Duration, Work};

/// Runs the systems that `strategy` gives with their drawings until their shares can be judged; most can be.
fn assert_shared(systems: impl Strategy<Value = (System, String)>, number: u32) {
    let (config, judged) = (cases(number), Count::default());
    let number = config.cases;
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..config });
    let outcome = runner.run(&systems, |(system, drawn)| {
        let told = shares::assert_shared(&system, &doubted(&system), Duration::from_secs(8));
        judged.add(told.map_err(|error| TestCaseError::fail(format!("{error}\n{drawn}")))?);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(judged.get() > number, "{} shares in {number} hierarchies", judged.get());
}

fn on(cpus: &'static [u16]) -> impl Fn(Tree) -> (System, String) {
    move |tree| (tree.system_on(cpus), tree.drawn())
}

#[test]
fn shares_are_kept_in_the_long_run() {
    assert_shared(forest::shares().prop_map(on(&[0])), 300);
}

#[test]
fn shares_of_several_processors_are_kept_in_the_long_run() {
    assert_shared(forest::surplus().prop_map(on(&[0, 1])), 80);
    assert_shared(forest::surplus().prop_map(on(&[0, 1, 2])), 80);
}

/// One of the processors is there for a part of the time only.
#[test]
fn shares_of_a_processor_and_a_part_are_kept_in_the_long_run() {
    let system = |(tree, kind, eighths): (Tree, SchedulerKind, u8)| {
        let drawn = format!("{eighths}/8 by {kind}\n{}", tree.drawn());
        (tree.system_beside(kind, eighths), drawn)
    };
    assert_shared(forest::parted().prop_map(system), 80);
}

/// What is said to be required and received is received.
#[test]
fn requirements_are_kept_of_which_the_check_says_so() {
    let (config, said) = (cases(700), Count::default());
    let number = config.cases;
    let trees = (prop_oneof![forest::trees(), forest::limited(), forest::shares()], required::wishes());
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..config });
    let outcome = runner.run(&trees, |(tree, wishes)| {
        said.add(required::assert_kept(&tree, &wishes)?);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    // More than 150 of 700: some of the kinds that are drawn, such as plans, promise nothing that could be required.
    assert!(said.get() > number * 3 / 14, "{} requirements in {number} hierarchies", said.get());
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn every_edge_of_a_random_hierarchy_receives_what_is_derived(tree in forest::trees()) {
        assert_kept(&tree)?;
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn limits_keep_what_they_promise(tree in forest::limited()) {
        assert_kept(&tree)?;
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn so_it_does_on_two_processors(tree in forest::trees_of(SchedulerKind::FIXED_PRIORITY)) {
        assert_kept_on(&tree, &[0, 1])?;
    }
}

/// Two threads that never stop share halves of a processor, with whatever between them and their half that knows no deadlines.
#[test]
fn who_announces_no_deadline_does_not_starve_its_siblings() {
    use SchedulerKind as K;
    let half = || Request::Guarantee("RESU 1/2".parse().expect("a guarantee"));
    let orders = [
        K::FIXED_PRIORITY,
        K::PROPORTIONAL_SHARE,
        K::SFQ,
        K::EEVDF,
        K::STRIDE,
        K::LOTTERY,
        K::SFS,
        K::TBS,
        K::RESOURCE_KERNEL,
        K::RIALTO,
        K::RIALTO_NT,
        K::SPRING,
        K::BSS_I,
        K::PSHED,
        K::TIME_SHARING,
        K::ROUND_ROBIN,
        K::EDF,
        K::FIFO,
        K::LAXITY,
    ];
    for order in orders.map(Some).into_iter().chain([None]) {
        let mut builder = System::builder("halves").scheduler(SchedulerBuilder::new("B", K::BSS_I));
        let above = match order {
            None => ("B", half()),
            Some(kind) => {
                builder = builder.scheduler(SchedulerBuilder::new("K", kind).under("B", half()));
                ("K", forest::least(kind))
            }
        };
        let system = builder
            .thread(ThreadBuilder::new("a", ThreadWork::CpuBound).under(above.0, above.1))
            .thread(ThreadBuilder::new("b", ThreadWork::CpuBound).under("B", half()))
            .build()
            .expect("sound");
        let edges = simulated(&system).expect("nobody refuses");
        let received =
            |child: &str| edges.iter().find(|edge| edge.child == child).expect("an edge").received_ns;
        // Of what is reserved for it, those that reserve ask for the half's time by deadlines, and for more only if that is spared.
        let reserves = order
            .is_some_and(|kind| [K::TBS, K::RESOURCE_KERNEL, K::SPRING, K::BSS_I, K::PSHED].contains(&kind));
        let (a, b) = (received("a"), received("b"));
        // Ahead or behind by a slice of 10 ms.
        assert!(b >= 990_000_000 && a + b == 2_000_000_000, "{order:?}: {a} and {b}");
        assert!(reserves || a >= 990_000_000, "{order:?}: {a} and {b}");
    }
}

/// A server with a backlog of short requests announces a deadline for each of them, as far ahead as its reservation reaches, and its siblings
/// receive what they reserve all the same.
#[test]
fn a_backlog_of_short_requests_takes_nothing_from_siblings_on_a_slower_processor() {
    use SchedulerKind as K;
    let guarantee = |text: &str| Request::Guarantee(text.parse().expect("a guarantee"));
    let backlog = ThreadWork::Bursts {
        burst: Execution::Constant(Work::from_micros(20)),
        period: Duration::from_micros(100),
    };
    for above in [K::BSS_I, K::PSHED] {
        let quantum = Duration::from_millis(1);
        let system = System::builder("backlog")
            .scheduler(SchedulerBuilder::new("S", above).quantum(quantum))
            .scheduler(SchedulerBuilder::new("B", K::TBS).under("S", guarantee("RESU 5/11")))
            .scheduler(
                SchedulerBuilder::new("P", K::PROPORTIONAL_SHARE)
                    .quantum(Duration::from_millis(9))
                    .under("S", guarantee("RESU 5/11")),
            )
            .thread(ThreadBuilder::new("one", ThreadWork::CpuBound).under("B", guarantee("RESBS 727us 8ms")))
            .thread(ThreadBuilder::new("many", backlog.clone()).under("B", guarantee("RESBS 9ms 33ms")))
            .thread(
                ThreadBuilder::new("most", ThreadWork::CpuBound).under("B", guarantee("RESBS 4363us 8ms")),
            )
            .thread(
                ThreadBuilder::new("rest", ThreadWork::CpuBound).under(
                    "P",
                    Request::Share { weight: 1.try_into().expect("not zero"), warp: Duration::ZERO },
                ),
            )
            .build()
            .expect("sound");
        let edges = simulated(&system).expect("nobody refuses");
        let broken: Vec<_> = edges.iter().filter(|edge| edge.violations > 0).collect();
        assert!(broken.is_empty(), "{above:?}: {broken:?}");
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
    fixed_priorities_keep_what_they_promise: FIXED_PRIORITY,
    proportional_shares_keep_what_they_promise: PROPORTIONAL_SHARE,
    start_time_fair_queues_keep_what_they_promise: SFQ,
    eevdf_keeps_what_it_promises: EEVDF,
    reservations_keep_what_they_promise: RESERVATION,
    statistical_rate_monotonic_schedulers_take_nothing_from_others: SRMS,
    constant_bandwidth_servers_keep_what_they_promise: CBS,
    total_bandwidth_servers_keep_what_they_promise: TBS,
    resource_kernels_keep_what_they_promise: RESOURCE_KERNEL,
    rialto_keeps_what_it_promises: RIALTO,
    planning_keeps_what_it_promises: SPRING,
    slower_processors_keep_what_they_promise: BSS_I,
    slower_processors_by_another_name_do_too: PSHED,
}
