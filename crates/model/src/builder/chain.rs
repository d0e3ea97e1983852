//! Chains under construction.

use super::names::{Misnamed, OperationNames};
use crate::chain::Chain;
use crate::{Place, Violation};
use talea_time::Duration;

/// A cause-effect chain under construction.
#[derive(Clone, Debug)]
pub struct ChainBuilder {
    name: String,
    path: Vec<String>,
    latency: Option<Duration>,
    reaction: Option<Duration>,
    age: Option<Duration>,
}

impl ChainBuilder {
    /// Begins a chain through operations, `task` or `task.subtask`, each connected with the next, without limits.
    pub fn new<Name: Into<String>>(
        name: impl Into<String>,
        operations: impl IntoIterator<Item = Name>,
    ) -> Self {
        let path = operations.into_iter().map(Into::into).collect();
        ChainBuilder { name: name.into(), path, latency: None, reaction: None, age: None }
    }

    /// The limit of its end-to-end latency.
    pub fn latency(mut self, limit: Duration) -> Self {
        self.latency = Some(limit);
        self
    }

    /// The limit of its reaction time.
    pub fn reaction(mut self, limit: Duration) -> Self {
        self.reaction = Some(limit);
        self
    }

    /// The limit of the age of data at its end.
    pub fn age(mut self, limit: Duration) -> Self {
        self.age = Some(limit);
        self
    }

    /// With indices for names. Operations that do not exist are left out.
    pub(super) fn resolve(
        self,
        index: usize,
        names: &OperationNames,
        violations: &mut Vec<Violation>,
    ) -> Chain {
        let mut path = Vec::with_capacity(self.path.len());
        for name in &self.path {
            match names.operation(name) {
                Ok(operation) => path.push(operation),
                Err(Misnamed { fault, remedy }) => {
                    let message = format!("chain \"{}\": {fault}", self.name);
                    violations.push(Violation::error(Place::Chain(index, "path"), message, remedy));
                }
            }
        }
        let ChainBuilder { name, latency, reaction, age, .. } = self;
        Chain { name, path, latency, reaction, age }
    }
}
