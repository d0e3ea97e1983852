//! What the mechanisms cost in virtual time, and how that is varied.
//!
//! Without costs MUF and RMS+MLF give the soft operations the identical time: both serve some critical job whenever there is
//! one, so the instants at which none is left are the same whatever the order among them. Only costs can tell the two
//! apart, and they differ in two places. RMS+MLF preempts a critical job for one of a higher rate, which costs it the switch back. MUF's
//! critical lane is ordered by laxity where RMS+MLF's are first in, first out, which in Kokyu costs more. Here
//! both kinds of lanes are the same heap, so the measured price of ordering is zero, and it is a factor of its own.

use talea_model::{Description, Execution, Overhead, Strategy, System};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::plan_system;
use talea_time::Work;

/// Prices of the mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mechanism {
    /// Giving the processor to another job than it ran last.
    pub switch_ns: i64,
    /// Putting a job into a queue, and again taking it out.
    pub queue_ns: i64,
    /// What a job of a lane ordered by deadline or laxity pays on top.
    pub ordering_ns: i64,
    /// A timer that releases a job.
    pub timer_ns: i64,
}

impl Mechanism {
    /// Nothing costs anything.
    pub const FREE: Mechanism = Mechanism { switch_ns: 0, queue_ns: 0, ordering_ns: 0, timer_ns: 0 };

    /// As measured once by the benchmarks of `docs/performance.md`, and kept so that results can be repeated: push to first
    /// instruction on the same processor for a switch, a push into a lane whose thread looks for it for the queue, a wake-up for a
    /// timer.
    pub const MEASURED: Mechanism =
        Mechanism { switch_ns: 2_300, queue_ns: 60, ordering_ns: 0, timer_ns: 1_100 };

    /// The same prices this many times.
    pub const fn times(self, factor: i64) -> Mechanism {
        Mechanism {
            switch_ns: self.switch_ns * factor,
            queue_ns: self.queue_ns * factor,
            ordering_ns: self.ordering_ns * factor,
            timer_ns: self.timer_ns * factor,
        }
    }

    /// The same prices with this one for ordering.
    pub const fn with_ordering(self, ordering_ns: i64) -> Mechanism {
        Mechanism { ordering_ns, ..self }
    }

    /// `system` under `strategy` at these prices. Draws of execution times are what they are without prices: the
    /// price of ordering shifts a range and leaves its width.
    pub fn charge(self, system: &System, strategy: Strategy) -> System {
        let system = system.with_strategy(strategy);
        let mut description = Description::clone(&system);
        description.overhead = Overhead {
            switch: Work::from_nanos(self.switch_ns),
            queue: Work::from_nanos(self.queue_ns),
            timer: Work::from_nanos(self.timer_ns),
            ..Overhead::default()
        };
        let plans = plan_system(&system).expect("every strategy can sort the regions, which a test checks");
        let ordered = plans
            .iter()
            .flat_map(|plan| &plan.lanes)
            .filter(|lane| lane.discipline != Discipline::Fifo)
            .flat_map(|lane| &lane.members);
        for id in ordered {
            let operation = &system.operations()[id.index()];
            let subtask = &mut description.tasks[operation.task].subtasks[operation.subtask];
            subtask.exec = longer(&subtask.exec, Work::from_nanos(self.ordering_ns));
        }
        System::new(description).expect("prices break no rule of systems")
    }
}

fn longer(exec: &Execution, by: Work) -> Execution {
    match exec {
        Execution::Constant(work) => Execution::Constant(*work + by),
        Execution::Uniform(low, high) => Execution::Uniform(*low + by, *high + by),
        Execution::List(list) => Execution::List(list.iter().map(|work| *work + by).collect()),
    }
}
