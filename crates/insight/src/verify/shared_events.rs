//! What jobs of one instance have of the events that release their task, where that begins with several subtasks: all the same, whichever of them
//! took them out of the channel. What they have is compared when they end, for two that begin at once are recorded in either order.

use super::judge::Judge;
use super::report::Rule;
use std::collections::BTreeMap;
use talea_model::{OperationId, System, Trigger};
use talea_record::JobId;

/// Instances of a task that are remembered: more than are unfinished at any time.
const REMEMBERED: usize = 1 << 12;

/// An event: its publication and the instance of the job that pushed it.
type Event = (u32, u64);

/// The instances of a task that are unfinished.
#[derive(Debug)]
pub(super) struct SharedEvents {
    /// First subtasks of the task, at least two.
    firsts: usize,
    instances: BTreeMap<u64, Instance>,
}

#[derive(Debug, Default)]
struct Instance {
    /// The one that was the first to take something.
    first: Option<OperationId>,
    /// What jobs have that have not ended.
    taken: Vec<(OperationId, Vec<Event>)>,
    /// The one that ended first, with what it had.
    known: Option<(JobId, Vec<Event>)>,
    ended: usize,
}

impl SharedEvents {
    /// None of a task that begins with one subtask, or otherwise than by events.
    pub fn of(system: &System, task: usize) -> Option<Self> {
        let by_events = matches!(system.tasks[task].trigger, Some(Trigger::Events(_)));
        let firsts = system.operations_of(task).iter().filter(|operation| operation.predecessors.is_empty());
        let firsts = firsts.count();
        (by_events && firsts > 1).then(|| SharedEvents { firsts, instances: BTreeMap::new() })
    }

    /// Records are missing.
    pub fn forget(&mut self) {
        self.instances.clear();
    }

    fn instance(&mut self, instance: u64) -> &mut Instance {
        if self.instances.len() > REMEMBERED {
            self.instances.pop_first();
        }
        self.instances.entry(instance).or_default()
    }

    /// A job has this event. Returns whether its operation was the first of its instance to have any.
    pub fn take(&mut self, job: JobId, event: Event) -> bool {
        let instance = self.instance(job.instance);
        match instance.taken.iter_mut().find(|(operation, _)| *operation == job.operation) {
            Some((_, events)) => events.push(event),
            None => instance.taken.push((job.operation, vec![event])),
        }
        *instance.first.get_or_insert(job.operation) == job.operation
    }

    /// A job has ended. Returns the one of its instance that had other events than this one, if one had.
    fn end(&mut self, job: JobId) -> Option<JobId> {
        let firsts = self.firsts;
        let instance = self.instance(job.instance);
        let place = instance.taken.iter().position(|(operation, _)| *operation == job.operation);
        let had = place.map_or_else(Vec::new, |place| instance.taken.swap_remove(place).1);
        instance.ended += 1;
        let other = match &instance.known {
            None => {
                instance.known = Some((job, had));
                None
            }
            Some((other, known)) => (*known != had).then_some(*other),
        };
        if instance.ended == firsts {
            self.instances.remove(&job.instance);
        }
        other
    }
}

impl Judge<'_> {
    /// A job has ended, and has had all its events.
    pub(super) fn compare_events(&mut self, job: JobId) {
        let Some(operation) = self.system.operations().get(job.operation.index()) else { return };
        if !self.events.is_known() || !operation.predecessors.is_empty() {
            return;
        }
        let Some(shared) = self.events.shared_by(operation.task) else { return };
        if let Some(other) = shared.end(job) {
            self.find(Rule::Events, job, Some(other), || {
                "it had other events than a job of the same instance".into()
            });
        }
    }
}
