//! Inherited deadlines: each instance has that of a job which published or pushed what releases it.

use super::judge::Judge;
use super::report::Rule;
use std::collections::VecDeque;
use talea_model::System;
use talea_record::JobId;
use talea_record::event::Release;
use talea_time::Instant;

/// Deadlines that are remembered: more than can be under way at any time.
const REMEMBERED: usize = 1 << 14;

/// What is known of the deadlines that tasks may inherit.
#[derive(Debug)]
pub(super) struct Inheritance {
    /// By operation, of those whose jobs hand their deadlines on: instances that were released, and when they are due.
    jobs: Vec<Option<VecDeque<(u64, Instant)>>>,
    /// By task, of those that inherit: the deadlines of the jobs that have published or pushed for it, and that no instance had yet.
    handed_on: Vec<VecDeque<Instant>>,
    /// By output and by publication: the tasks that inherit the deadlines of those that publish and push there.
    of_outputs: Vec<Vec<usize>>,
    of_publications: Vec<Vec<usize>>,
}

impl Inheritance {
    pub fn new(system: &System) -> Self {
        let inherits = |task: &usize| system.tasks[*task].inherits_deadline;
        let (outputs, publications) = (system.outputs(), system.publications());
        let of_outputs: Vec<Vec<usize>> =
            outputs.iter().map(|output| output.triggers.iter().copied().filter(inherits).collect()).collect();
        let of_publications: Vec<Vec<usize>> = publications
            .iter()
            .map(|site| site.subscribers.iter().map(|(task, _)| *task).filter(inherits).collect())
            .collect();
        let mut jobs = vec![None; system.operations().len()];
        let outputs = outputs.iter().map(|output| output.operation).zip(&of_outputs);
        let publications = publications.iter().map(|site| site.operation).zip(&of_publications);
        for (operation, _) in outputs.chain(publications).filter(|(_, tasks)| !tasks.is_empty()) {
            jobs[operation.index()] = Some(VecDeque::new());
        }
        let handed_on = system.tasks.iter().map(|_| VecDeque::new()).collect();
        Inheritance { jobs, handed_on, of_outputs, of_publications }
    }

    /// A job was released.
    pub fn see(&mut self, told: &Release) {
        // Operations that were declared while the run lasted hand nothing on.
        if let Some(Some(jobs)) = self.jobs.get_mut(told.job.operation.index()) {
            remember(jobs, (told.job.instance, told.deadline));
        }
    }

    /// The job published a value on the output of this number.
    pub fn published(&mut self, job: JobId, output: usize) {
        hand_on(&self.jobs, &mut self.handed_on, &self.of_outputs[output], job);
    }

    /// The job pushed an event of the publication of this number.
    pub fn pushed(&mut self, job: JobId, publication: usize) {
        hand_on(&self.jobs, &mut self.handed_on, &self.of_publications[publication], job);
    }
}

fn remember<T>(list: &mut VecDeque<T>, value: T) {
    if list.len() == REMEMBERED {
        list.pop_front();
    }
    list.push_back(value);
}

fn hand_on(
    jobs: &[Option<VecDeque<(u64, Instant)>>],
    handed_on: &mut [VecDeque<Instant>],
    tasks: &[usize],
    job: JobId,
) {
    let Some(Some(jobs)) = jobs.get(job.operation.index()) else { return };
    let due = jobs.iter().rev().find(|(instance, _)| *instance == job.instance).map(|(_, due)| *due);
    for (task, due) in tasks.iter().zip(due.into_iter().cycle()) {
        remember(&mut handed_on[*task], due);
    }
}

impl Judge<'_> {
    /// An instance of a task was released that inherits its deadline.
    pub(super) fn check_inherited(&mut self, told: Release) {
        let task = self.trace.operations[told.job.operation.index()].task;
        if self.values.is_in_part() || !self.events.is_known() {
            return self.findings.leave_unknown(Rule::Release, 1);
        }
        let handed_on = &mut self.inheritance.handed_on[task];
        // Of several first subtasks each has it.
        let is_last_first = self.system.operations_of(task).iter().rev();
        let is_last_first = is_last_first.into_iter().find(|operation| operation.predecessors.is_empty());
        let is_last_first = is_last_first.is_some_and(|last| last.id == told.job.operation);
        match handed_on.iter().position(|due| *due == told.deadline) {
            Some(place) if is_last_first => _ = handed_on.remove(place),
            Some(_) => {}
            None => self.find(Rule::Release, told.job, None, || {
                "its deadline is not that of a job that may have released it".into()
            }),
        }
    }
}
