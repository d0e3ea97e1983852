//! What must hold of a whole run: nothing that should have happened by its end is missing.

use super::judge::Judge;
use talea_model::Synchronisation;
use talea_policy::demand;
use talea_record::JobId;
use talea_time::{Instant, Work};

/// Judges a run whose last record has been taken.
pub fn judge(judge: &Judge<'_>) {
    let end = judge.end();
    for operation in judge.system.operations() {
        let task = &judge.system.tasks[operation.task];
        let instances = (end.as_nanos() / task.period.as_nanos()) as u64 + 1;
        for instance in 0..instances {
            let nominal = Instant::ZERO + task.phase + task.period * instance as i64;
            let job = JobId { operation: operation.id, instance };
            let due = if operation.predecessors.is_empty() {
                Some(nominal + demand::release_jitter(judge.system, operation.task, instance))
            } else {
                judge.joined(job).map(|(at, _)| at)
            };
            let node = judge.system.subtask(operation.id).node;
            let is_first = operation.predecessors.is_empty();
            let skipped = is_first && judge.skipped.contains(&(operation.task, instance, node));
            let told = judge.lives.contains_key(&job) || skipped;
            let is_due = skipped || due.is_some_and(|due| due < end);
            if task.sync == Synchronisation::Greedy || is_first || !is_due {
                assert_eq!(told, is_due, "{job:?} due at {due:?}");
            }
        }
    }
    for (job, life) in &judge.lives {
        let successors = &judge.system.operations()[job.operation.index()].successors;
        for successor in successors.iter().filter(|_| life.completed.is_some_and(|completed| completed < end))
        {
            let arrives = judge.signal(job.operation, job.instance, *successor).is_some();
            assert_eq!(arrives, !judge.lost.contains(&(*job, *successor)), "{job:?} to {successor:?}");
        }
        if let Some(completed) = life.completed {
            assert!(life.released <= completed, "{job:?}");
        } else if !life.aborted {
            let since = life.running.map_or(end, |(_, since)| since);
            let service = life.service + (end - since).as_work();
            // A job that needs nothing at all completes as soon as it gets a processor.
            let waits_for_nothing = life.demand == Work::ZERO && life.running.is_none();
            assert!(
                service < life.demand || waits_for_nothing,
                "{job:?} has all it needs and did not complete"
            );
        }
    }
}
