//! Triggers under construction.

use super::channel::SubscriptionBuilder;
use super::names::{Misnamed, OperationNames};
use crate::channel::{Channel, SubscriptionOwner};
use crate::description::Task;
use crate::trigger::{OnValue, OutsideArrivals, Trigger};
use crate::{Place, Violation};

/// What releases a task in place of a period, under construction.
#[derive(Clone, Debug)]
pub struct TriggerBuilder {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// An output by name.
    Output {
        output: String,
        every: u32,
        on: OnValue,
    },
    External,
    Events(SubscriptionBuilder),
}

impl TriggerBuilder {
    /// Every value on an output of another task, `task.output` or `task.subtask.output`.
    pub fn output(output: impl Into<String>) -> Self {
        TriggerBuilder { source: Source::Output { output: output.into(), every: 1, on: OnValue::Value } }
    }

    /// Something outside.
    pub fn external() -> Self {
        TriggerBuilder { source: Source::External }
    }

    /// Only every so many values of the output.
    pub fn every(mut self, values: u32) -> Self {
        if let Source::Output { every, .. } = &mut self.source {
            *every = values;
        }
        self
    }

    /// Which values of the output count.
    pub fn on(mut self, counted: OnValue) -> Self {
        if let Source::Output { on, .. } = &mut self.source {
            *on = counted;
        }
        self
    }

    pub(super) fn is_external(&self) -> bool {
        matches!(self.source, Source::External)
    }

    /// The key under which it stands in files.
    pub(super) fn key(&self) -> &'static str {
        match self.source {
            Source::Output { .. } | Source::External => "trigger",
            Source::Events(_) => "subscription",
        }
    }

    /// With indices for names; `None` if it names nothing.
    pub(super) fn resolve(
        self,
        task: usize,
        arrivals: OutsideArrivals,
        tasks: &[Task],
        (names, channels): (&OperationNames, &[Channel]),
        violations: &mut Vec<Violation>,
    ) -> Option<Trigger> {
        match self.source {
            Source::External => Some(Trigger::External { arrivals }),
            Source::Events(subscription) => {
                let owner = SubscriptionOwner::Task(task);
                Some(Trigger::Events(subscription.resolve(owner, tasks, channels, violations)))
            }
            Source::Output { output, every, on } => match names.output(&output, tasks) {
                Ok(output) => Some(Trigger::Output { output, every, on }),
                Err(Misnamed { fault, remedy }) => {
                    let message =
                        format!("task \"{}\" is triggered by \"{output}\": {fault}", tasks[task].name);
                    violations.push(Violation::error(Place::Trigger(task, "output"), message, remedy));
                    None
                }
            },
        }
    }
}

/// The events of the subscription.
impl From<SubscriptionBuilder> for TriggerBuilder {
    fn from(subscription: SubscriptionBuilder) -> Self {
        TriggerBuilder { source: Source::Events(subscription) }
    }
}

/// Every value on the output of that name.
impl From<&str> for TriggerBuilder {
    fn from(output: &str) -> Self {
        TriggerBuilder::output(output)
    }
}
