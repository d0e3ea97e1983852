//! A hierarchy for one node: one of those that schedulers are tested with, some of whose threads make room for lanes.

use super::one_of;
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::{Rng, RngExt};
use talea_conformance::forest;
use talea_conformance::promises::admitted;
use talea_model::{Description, Plan, PlanEntry, Scheduler, SchedulerKind, Setting, Settings, Thread, Under};

/// Adds the schedulers and threads of `node`. Whether there are lanes among them.
pub fn add(description: &mut Description, rng: &mut impl Rng, (node, cpus): (usize, &[u16])) -> bool {
    let mut runner = runner(rng);
    let shapes: Vec<BoxedStrategy<forest::Tree>> = match cpus.len() {
        1 => vec![forest::trees().boxed(), forest::limited().boxed(), forest::shares().boxed()],
        _ => vec![forest::trees_of(SchedulerKind::FIXED_PRIORITY).boxed(), forest::surplus().boxed()],
    };
    let shape = &shapes[rng.random_range(0..shapes.len())];
    let tree = shape.new_tree(&mut runner).expect("nothing is filtered").current();
    let drawn = admitted(&tree, cpus).system_on(cpus);
    let first = description.schedulers.len();
    let name = |name: &str| format!("n{node}-{name}");
    let under = |under: &[Under]| {
        let moved =
            |under: &Under| Under { scheduler: under.scheduler + first, request: under.request.clone() };
        under.iter().map(moved).collect::<Vec<_>>()
    };
    for scheduler in &drawn.schedulers {
        let mut settings = scheduler.settings.clone();
        for (key, setting) in scheduler.settings.iter() {
            if let Setting::Plan(plan) = setting {
                let entry = |entry: &PlanEntry| PlanEntry { child: name(&entry.child), ..entry.clone() };
                let entries: Vec<PlanEntry> = plan.entries().iter().map(entry).collect();
                settings.set(key, Setting::Plan(Plan::new(entries)));
            }
        }
        description.schedulers.push(Scheduler {
            name: name(&scheduler.name),
            node,
            takes: scheduler.takes.map(|parent| parent + first),
            settings,
            under: under(&scheduler.under),
            ..scheduler.clone()
        });
    }
    let threads = drawn.threads.iter().map(|thread| Thread {
        name: name(&thread.name),
        node,
        under: under(&thread.under),
        ..thread.clone()
    });
    let mut threads: Vec<Thread> = threads.collect();
    let most = if rng.random_ratio(1, 2) { 0 } else { one_of(rng, &[1, 1, 2, 3]) };
    let count = (0..most).take_while(|_| lanes_instead(description, rng, (node, &mut threads))).count();
    description.threads.extend(threads);
    count > 0
}

/// A thread gives its place to lanes. Whether there was one below a scheduler that takes lanes.
fn lanes_instead(
    description: &mut Description,
    rng: &mut impl Rng,
    (node, threads): (usize, &mut Vec<Thread>),
) -> bool {
    use talea_guarantee::scheduler::Children;
    let takes_lanes = |thread: &Thread| {
        let mut parents = thread.under.iter().map(|under| &description.schedulers[under.scheduler]);
        parents.all(|parent| !matches!(parent.kind.children, Children::Threads | Children::Bursts))
    };
    let places: Vec<usize> = (0..threads.len()).filter(|place| takes_lanes(&threads[*place])).collect();
    if places.is_empty() {
        return false;
    }
    let thread = threads.remove(one_of(rng, &places));
    description.schedulers.push(Scheduler {
        name: thread.name,
        node,
        kind: SchedulerKind::LANES,
        quantum: None,
        takes: None,
        settings: Settings::of(SchedulerKind::LANES),
        under: thread.under,
    });
    true
}

fn runner(rng: &mut impl Rng) -> TestRunner {
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}
