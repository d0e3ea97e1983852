//! What the bounds of tasks whose instances are merged mean.

use talea_analysis::system::SystemBounds;
use talea_model::{Overrun, System};

/// What is to be known about the merging of a task.
pub(super) fn remarks(system: &System, bounds: &SystemBounds, task: usize) -> Vec<String> {
    let described = &system.tasks[task];
    if described.overrun != Overrun::Merge {
        return Vec::new();
    }
    let every_one_counts = "each arrival counts as a job, and those that are merged are none, so others are held up by less than is reckoned";
    let ends_before_next = |bound| described.trigger.is_none() && bound <= described.period;
    let remark = match bounds.tasks[task].response {
        Ok(bound) if ends_before_next(bound) => {
            "no two of its instances are merged, for each has ended when the next one arrives".into()
        }
        Ok(_) => format!(
            "its bound is that of the instances that are executed; what is merged arrives while one of those waits, and is served with it, in less time; \
             {every_one_counts}"
        ),
        Err(_) => every_one_counts.into(),
    };
    vec![remark]
}
