//! Memory depends on the backlog, not on how long a run lasts.

use talea_model::{
    Communication, Criticality, Description, Execution, Join, LaneDispatch, Late, Laxity, Link, LinkEnds,
    LossRate, Node, Overhead, Overrun, Route, Strategy, Subtask, Synchronisation, System, Task,
};
use talea_record::{Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// Statistics only: how many records there were.
struct Count(u64);

impl Sink for Count {
    fn record(&mut self, _record: Record) {
        self.0 += 1;
    }
}

/// A subtask on `node` that takes up to `wcet_us` after the subtasks `after`.
fn subtask(name: &str, node: usize, wcet_us: i64, after: &[usize]) -> Subtask {
    let wcet = Work::from_nanos(wcet_us * 1000);
    let exec = Execution::Uniform(Work::from_nanos(wcet_us * 700), wcet);
    let (outputs, inputs) = (Vec::new(), Vec::new());
    let (after, join) = (after.to_vec(), Join::All);
    Subtask {
        name: name.into(),
        node,
        lanes: None,
        wcet,
        exec,
        after,
        join,
        bound: None,
        outputs,
        inputs,
        events: Vec::new(),
        subscription: None,
    }
}

fn task(name: &str, period_us: i64, overrun: Overrun, subtasks: Vec<Subtask>) -> Task {
    Task {
        name: name.into(),
        period: Duration::from_micros(period_us),
        deadline: Duration::from_micros(period_us),
        phase: Duration::ZERO,
        jitter: Duration::from_micros(period_us / 10),
        criticality: Criticality::from_level((period_us % 5) as u8).expect("0 to 4"),
        importance: 0,
        trigger: None,
        inherits_deadline: false,
        inherits_criticality: false,
        separation: None,
        communication: Communication::Implicit,
        overrun,
        sync: Synchronisation::Greedy,
        subtasks,
    }
}

fn system(strategy: Strategy, tasks: Vec<Task>) -> System {
    let cost = Work::from_nanos(500);
    // Now and then a message is lost, and what waits for it never released.
    let loss = LossRate::from_share(0.001).expect("a share");
    let route = Route { delay: Duration::from_micros(90), jitter: Duration::from_micros(500), loss };
    System::new(Description {
        chains: Vec::new(),
        schedulers: Vec::new(),
        threads: Vec::new(),
        name: "steady".into(),
        strategy,
        lane_dispatch: LaneDispatch::Preemptive,
        laxity: Laxity::Remaining,
        late: Late::Last,
        seed: 7,
        overhead: Overhead { switch: cost, queue: cost, timer: cost, message: cost, ..Overhead::default() },
        links: vec![Link { ends: LinkEnds::Others, route }],
        channels: Vec::new(),
        nodes: vec![Node { name: "a".into(), cpus: vec![0] }, Node { name: "b".into(), cpus: vec![1, 2] }],
        tasks,
    })
    .expect("it is valid")
}

/// Allocations in the second half of a run of `length`.
fn allocations_in_second_half(system: &System, length: Duration) -> u64 {
    let mut simulation = Simulation::new(system).expect("nothing is wrong");
    let mut count = Count(0);
    let (half, end) = (length.as_nanos() / 2, length.as_nanos());
    simulation.advance(Instant::from_nanos(half), &mut count);
    let before = count.0;
    let allocations =
        allocation_counter::measure(|| simulation.advance(Instant::from_nanos(end), &mut count));
    assert!(count.0 - before > 10_000, "the second half is as busy as the first");
    allocations.count_total
}

#[test]
fn a_steady_run_does_not_allocate() {
    let graph = vec![
        subtask("split", 0, 20, &[]),
        subtask("left", 1, 40, &[0]),
        subtask("right", 0, 30, &[0]),
        subtask("merge", 1, 20, &[1, 2]),
    ];
    for strategy in Strategy::ALL.iter().copied() {
        let mut tasks = vec![task("graph", 1000, Overrun::Queue, graph.clone())];
        for (index, period) in [501, 702, 1003, 1504, 2005].into_iter().enumerate() {
            let alone = vec![subtask("only", index % 2, 50, &[])];
            tasks.push(task(&format!("task{index}"), period, Overrun::SkipNext, alone));
        }
        let system = system(strategy, tasks);
        assert_eq!(allocations_in_second_half(&system, Duration::from_secs(4)), 0, "{strategy}");
    }
}

/// Instances whose merge never happens leave nothing behind either.
#[test]
fn aborted_instances_are_forgotten() {
    let graph = vec![
        subtask("quick", 0, 20, &[]),
        subtask("endless", 1, 2000, &[]),
        subtask("next", 0, 900, &[0]),
        subtask("merge", 0, 20, &[1, 2]),
    ];
    let system = system(Strategy::Edf, vec![task("graph", 1000, Overrun::Abort, graph)]);
    assert_eq!(allocations_in_second_half(&system, Duration::from_secs(10)), 0);
}
