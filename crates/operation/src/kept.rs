//! Which values a trace keeps.

use crate::error::{OperationError, OperationErrors, nearest};
use std::str::FromStr;
use talea_model::{Operation, PublicationSite, System};

/// What the trace of a run keeps, so that the run can be replayed: values of outputs, events that jobs take and push, and what
/// they read from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptOutputs {
    /// None.
    #[default]
    None,
    /// All that can be bytes.
    All,
    /// The outputs of these names, `task.output` or `task.subtask.output`, what the operations of these names take or read, `task` or `task.subtask`,
    /// and what jobs push into the channels of these names.
    Named(Vec<String>),
}

/// What of a system is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptParts {
    /// By output.
    pub outputs: Vec<bool>,
    /// By operation: the events that its jobs take.
    pub events: Vec<bool>,
    /// By operation: what its jobs read of the descriptor that releases them, if their code does.
    pub reads: Vec<bool>,
    /// By publication: what jobs push.
    pub pushes: Vec<bool>,
}

impl KeptParts {
    /// Whether there is anything.
    pub fn are_any(&self) -> bool {
        self.count() > 0
    }

    /// How many there are at most.
    pub fn count(&self) -> usize {
        self.outputs
            .iter()
            .chain(&self.events)
            .chain(&self.reads)
            .chain(&self.pushes)
            .filter(|is_kept| **is_kept)
            .count()
    }
}

impl FromStr for KeptOutputs {
    type Err = std::convert::Infallible;

    /// `all`, or names with commas in between.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "all" => KeptOutputs::All,
            names => KeptOutputs::Named(names.split(',').map(|name| name.trim().to_owned()).collect()),
        })
    }
}

impl KeptOutputs {
    /// Which parts of `system` these are.
    ///
    /// # Errors
    /// [`OperationError::UnknownOutput`] for each name of none.
    pub fn among(&self, system: &System) -> Result<KeptParts, OperationErrors> {
        let named = |name: &str| match self {
            KeptOutputs::None => false,
            KeptOutputs::All => true,
            KeptOutputs::Named(names) => names.iter().any(|wanted| wanted == name),
        };
        let takes = |id| system.takes_events(id) || system.reads_outside(id);
        let takers = || system.operations().iter().filter(|operation| takes(operation.id));
        let names = || {
            let outputs = system.outputs().iter().map(|site| site.name.as_str());
            // Of others nothing could be kept.
            let is_used =
                |channel: usize| move |site: &PublicationSite| system.publication(site).channel == channel;
            let channels = system.channels.iter().enumerate();
            let channels =
                channels.filter(move |(index, _)| system.publications().iter().any(is_used(*index)));
            let channels = channels.map(|(_, channel)| channel.name.as_str());
            outputs.chain(takers().map(|operation| operation.name.as_str())).chain(channels)
        };
        if let KeptOutputs::Named(wanted) = self {
            let unknown = wanted.iter().filter(|name| !names().any(|known| known == **name));
            let errors: Vec<_> = unknown
                .map(|name| OperationError::UnknownOutput {
                    name: name.clone(),
                    nearest: nearest(name, names()),
                })
                .collect();
            if !errors.is_empty() {
                return Err(OperationErrors(errors));
            }
        }
        let is_kept = |operation: &Operation| system.takes_events(operation.id) && named(&operation.name);
        let events = system.operations().iter().map(is_kept);
        // Code that takes events reads no descriptor.
        let may_read = |id| system.reads_outside(id) && !system.takes_events(id);
        let is_read = |operation: &Operation| may_read(operation.id) && named(&operation.name);
        let reads = system.operations().iter().map(is_read);
        let outputs = system.outputs().iter().map(|site| named(&site.name));
        let pushes = system.publications().iter();
        let pushes = pushes.map(|site| named(&system.channels[system.publication(site).channel].name));
        Ok(KeptParts {
            outputs: outputs.collect(),
            events: events.collect(),
            reads: reads.collect(),
            pushes: pushes.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::{OutputBuilder, TaskBuilder};
    use talea_time::{Duration, Work};

    #[test]
    fn outputs_are_chosen_by_name() {
        let task = |name: &str| {
            TaskBuilder::new(name, Duration::from_millis(1))
                .wcet(Work::from_nanos(1))
                .output(OutputBuilder::new("out"))
        };
        let system = System::builder("test").task(task("fast")).task(task("slow")).build().expect("a system");
        let among =
            |text: &str| text.parse::<KeptOutputs>().unwrap().among(&system).map(|parts| parts.outputs);
        assert_eq!(KeptOutputs::None.among(&system).unwrap().outputs, [false, false]);
        assert_eq!(among("all").unwrap(), [true, true]);
        assert_eq!(among("slow.out").unwrap(), [false, true]);
        assert_eq!(among("slow.out, fast.out").unwrap(), [true, true]);
        let error = among("slow.ot").unwrap_err().to_string();
        assert!(error.contains("\"slow.ot\"") && error.contains("did you mean \"slow.out\"?"), "{error}");
    }
}
