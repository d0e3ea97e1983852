//! The longest blocking of a busy period, by the latest deadline that counts in it.

use super::table::effective_deadline;
use crate::task::{Numbers, Task};

/// Two step functions of time, with steps at the relative deadlines.
pub(super) struct Blocking {
    /// D - J, ascending.
    deadlines: Vec<u64>,
    /// Longest own blocking of the first i tasks, at index i.
    own: Vec<u64>,
    /// Longest C - 1 of the tasks from i on, at index i.
    later: Vec<u64>,
}

impl Blocking {
    pub(super) fn of(tasks: &[Task]) -> Self {
        let mut numbers: Vec<Numbers> = tasks.iter().map(Task::numbers).collect();
        numbers.sort_unstable_by_key(effective_deadline);
        let mut own = vec![0; numbers.len() + 1];
        let mut later = vec![0; numbers.len() + 1];
        for (index, task) in numbers.iter().enumerate() {
            own[index + 1] = task.blocking.max(own[index]);
        }
        for (index, task) in numbers.iter().enumerate().rev() {
            later[index] = later[index + 1].max(task.wcet - 1);
        }
        Blocking { deadlines: numbers.iter().map(effective_deadline).collect(), own, later }
    }

    /// The own blocking of tasks with deadlines up to `time`.
    pub(super) fn own(&self, time: u64) -> u64 {
        self.own[self.due(time)]
    }

    /// [`own`](Self::own), and the longest job with a deadline after `time`, started 1 ns before.
    pub(super) fn nonpreemptive(&self, time: u64) -> u128 {
        let due = self.due(time);
        u128::from(self.own[due]) + u128::from(self.later[due])
    }

    /// What [`nonpreemptive`](Self::nonpreemptive) never exceeds.
    pub(super) fn longest_nonpreemptive(&self) -> u128 {
        u128::from(self.own[self.deadlines.len()]) + u128::from(self.later[0])
    }

    fn due(&self, time: u64) -> usize {
        self.deadlines.partition_point(|deadline| *deadline <= time)
    }
}
