//! What became of the jobs of every instance in flight, for precedence and overrun.

use std::collections::BTreeMap;
use talea_record::{JobId, Metadata};
use talea_time::Instant;

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Progress {
    #[default]
    Coming,
    Released,
    Completed(Instant),
    Aborted(Instant),
}

/// One instance of a task.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// By position among the task's operations.
    pub jobs: Vec<Progress>,
    /// Its unfinished first jobs are to be aborted, since that instant.
    pub doomed: Option<Instant>,
}

/// The instances of one task.
#[derive(Debug)]
pub(super) struct Instances {
    /// Its operations in file order.
    pub operations: Vec<usize>,
    pub list: BTreeMap<u64, Instance>,
}

/// Older ones can only be instances whose end was lost.
const LIMIT: usize = 1 << 14;
/// Instances that are over are remembered for late branches and for the overrun of the next ones.
const REMEMBERED: usize = 64;

impl Instances {
    pub fn new(metadata: &Metadata, task: usize) -> Self {
        let operations = metadata.operations.iter().enumerate();
        let of_task = operations.filter(|(_, operation)| operation.task == task).map(|(index, _)| index);
        Instances { operations: of_task.collect(), list: BTreeMap::new() }
    }

    pub fn place(&self, operation: usize) -> Option<usize> {
        self.operations.iter().position(|index| *index == operation)
    }

    /// How far the job is; `None` if nothing is known of its instance.
    pub fn progress(&self, job: JobId) -> Option<Progress> {
        let place = self.place(job.operation.index())?;
        self.list.get(&job.instance).map(|instance| instance.jobs[place])
    }

    /// The job is that far now. Begins the instance if it is new.
    pub fn set(&mut self, job: JobId, progress: Progress) {
        let Some(place) = self.place(job.operation.index()) else { return };
        let count = self.operations.len();
        let fresh = || Instance { jobs: vec![Progress::Coming; count], doomed: None };
        self.list.entry(job.instance).or_insert_with(fresh).jobs[place] = progress;
        self.trim();
    }

    fn trim(&mut self) {
        // A job that is still to come is released when its predecessors complete, unless one of the instance was aborted.
        let is_over = |instance: &Instance| {
            let aborted = instance.doomed.is_some()
                || instance.jobs.iter().any(|job| matches!(job, Progress::Aborted(_)));
            instance.jobs.iter().all(|job| match job {
                Progress::Completed(_) | Progress::Aborted(_) => true,
                Progress::Coming => aborted,
                Progress::Released => false,
            })
        };
        while self.list.len() > REMEMBERED
            && (self.list.len() > LIMIT
                || self.list.first_key_value().is_some_and(|(_, first)| is_over(first)))
        {
            self.list.pop_first();
        }
    }

    /// The instances before `number`, the latest first, whose jobs of `operations` are released and unfinished.
    pub fn unfinished_before(
        &self,
        number: u64,
        operations: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = (u64, usize)> {
        let unfinished = move |(number, instance): (&u64, &Instance)| {
            let jobs = self.operations.iter().zip(&instance.jobs);
            let mut open = jobs.filter(|(index, job)| operations(**index) && **job == Progress::Released);
            open.next().map(|(index, _)| (*number, *index))
        };
        self.list.range(..number).rev().filter_map(unfinished)
    }

    /// When the last job of `operations` of an instance before `number` ended.
    pub fn last_end_before(&self, number: u64, operations: impl Fn(usize) -> bool) -> Option<Instant> {
        let ends =
            self.list.range(..number).flat_map(|(_, instance)| self.operations.iter().zip(&instance.jobs));
        ends.filter(|(index, _)| operations(**index))
            .filter_map(|(_, job)| match job {
                Progress::Completed(at) | Progress::Aborted(at) => Some(*at),
                _ => None,
            })
            .max()
    }
}
