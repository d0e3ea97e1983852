//! What became of the jobs of every instance in flight, for precedence and overrun.

use std::collections::BTreeMap;
use talea_model::{Synchronisation, System};
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
    /// Likewise when they were released, of tasks whose successors are released by timers; otherwise empty.
    released: Vec<Option<Instant>>,
    /// Its unfinished first jobs are to be aborted, since that instant.
    pub doomed: Option<Instant>,
}

/// The instances of one task.
#[derive(Debug)]
pub(super) struct Instances {
    /// Its operations in file order.
    pub operations: Vec<usize>,
    /// Of each of them the places of its predecessors among these, and how many of them it waits for.
    joins: Vec<(Vec<usize>, usize)>,
    /// Whether successors are released by timers that begin with releases.
    has_timers: bool,
    pub list: BTreeMap<u64, Instance>,
}

/// Older ones can only be instances whose end was lost.
const LIMIT: usize = 1 << 14;
/// Instances that are over are remembered for late branches and for the overrun of the next ones.
const REMEMBERED: usize = 64;

impl Instances {
    pub fn new(metadata: &Metadata, system: &System, task: usize) -> Self {
        let operations = metadata.operations.iter().enumerate();
        let of_task = operations.filter(|(_, operation)| operation.task == task).map(|(index, _)| index);
        let operations: Vec<usize> = of_task.collect();
        let place = |before: &usize| operations.iter().position(|index| index == before);
        let join = |index: &usize| {
            let before = &metadata.operations[*index].predecessors;
            let described = system.operations().get(*index);
            let needed = described.map(|operation| system.subtask(operation.id).join.needed(before.len()));
            (before.iter().filter_map(place).collect(), needed.unwrap_or(before.len()))
        };
        let joins = operations.iter().map(join).collect();
        let sync = system.tasks.get(task).map(|task| task.sync);
        let has_timers = sync == Some(Synchronisation::ModifiedPhaseModification);
        Instances { operations, joins, has_timers, list: BTreeMap::new() }
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
        let timed = if self.has_timers { count } else { 0 };
        let fresh =
            || Instance { jobs: vec![Progress::Coming; count], released: vec![None; timed], doomed: None };
        self.list.entry(job.instance).or_insert_with(fresh).jobs[place] = progress;
        self.trim();
    }

    /// The timers of the job's successors count from this instant.
    pub fn set_release(&mut self, job: JobId, at: Instant) {
        let place = self.place(job.operation.index());
        let instance = self.list.get_mut(&job.instance);
        if let (Some(place), Some(instance)) = (place, instance)
            && let Some(released) = instance.released.get_mut(place)
        {
            *released = Some(at);
        }
    }

    /// From when on the timers of the job's successors count, if they have any and that is known.
    pub fn release(&self, job: JobId) -> Option<Instant> {
        let place = self.place(job.operation.index())?;
        self.list.get(&job.instance)?.released.get(place).copied().flatten()
    }

    fn trim(&mut self) {
        while self.list.len() > REMEMBERED
            && (self.list.len() > LIMIT
                || self.list.first_key_value().is_some_and(|(_, first)| self.is_over(first)))
        {
            self.list.pop_first();
        }
    }

    fn is_over(&self, instance: &Instance) -> bool {
        (0..instance.jobs.len()).all(|place| match instance.jobs[place] {
            Progress::Completed(_) | Progress::Aborted(_) => true,
            Progress::Coming => !self.may_come(instance, place),
            Progress::Released => false,
        })
    }

    /// A job that is still to come is released when so many of its predecessors have completed as it waits for, unless too many of them were
    /// aborted or never come themselves.
    fn may_come(&self, instance: &Instance, place: usize) -> bool {
        let (before, needed) = &self.joins[place];
        let may_complete = |place: &&usize| match instance.jobs[**place] {
            Progress::Completed(_) | Progress::Released => true,
            Progress::Aborted(_) => false,
            Progress::Coming => self.may_come(instance, **place),
        };
        match before.is_empty() {
            // The first ones of an instance are released together, those of other nodes as messages allow; of one that is aborted none is.
            true => {
                instance.doomed.is_none()
                    && !instance.jobs.iter().any(|job| matches!(job, Progress::Aborted(_)))
            }
            false => before.iter().filter(may_complete).count() >= *needed,
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
