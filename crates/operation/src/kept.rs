//! Which values a trace keeps.

use crate::error::{OperationError, OperationErrors, nearest};
use std::str::FromStr;
use talea_model::System;

/// The outputs whose values the trace of a run keeps, so that the run can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptOutputs {
    /// None.
    #[default]
    None,
    /// All whose values can be bytes.
    All,
    /// Those of these names, `task.output` or `task.subtask.output`.
    Named(Vec<String>),
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
    /// Whether each output of `system` is one of them.
    ///
    /// # Errors
    /// [`OperationError::UnknownOutput`] for each name of no output.
    pub fn among(&self, system: &System) -> Result<Vec<bool>, OperationErrors> {
        let all = system.outputs();
        let named = match self {
            KeptOutputs::None => return Ok(vec![false; all.len()]),
            KeptOutputs::All => return Ok(vec![true; all.len()]),
            KeptOutputs::Named(names) => names,
        };
        let names = || all.iter().map(|site| site.name.as_str());
        let unknown = named.iter().filter(|name| !names().any(|known| known == **name));
        let errors: Vec<_> = unknown
            .map(|name| OperationError::UnknownOutput { name: name.clone(), nearest: nearest(name, names()) })
            .collect();
        match errors.is_empty() {
            true => Ok(names().map(|name| named.iter().any(|wanted| wanted == name)).collect()),
            false => Err(OperationErrors(errors)),
        }
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
        let among = |text: &str| text.parse::<KeptOutputs>().unwrap().among(&system);
        assert_eq!(KeptOutputs::None.among(&system).unwrap(), [false, false]);
        assert_eq!(among("all").unwrap(), [true, true]);
        assert_eq!(among("slow.out").unwrap(), [false, true]);
        assert_eq!(among("slow.out, fast.out").unwrap(), [true, true]);
        let error = among("slow.ot").unwrap_err().to_string();
        assert!(error.contains("\"slow.ot\"") && error.contains("did you mean \"slow.out\"?"), "{error}");
    }
}
