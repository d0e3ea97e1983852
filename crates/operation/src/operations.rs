//! The code of a program's operations, by name.

use crate::context::{Code, JobContext};
use crate::ends::EventEnds;
use crate::ports::Ports;
use crate::workplace::Binding;
use std::collections::BTreeMap;
use talea_model::OperationId;

/// Opens an operation's ports and makes its code.
pub(crate) type Registration = Box<dyn FnOnce(&mut Ports<'_>) -> Code>;

/// Which operations of a system run users' code. All others burn synthetic processor time, as the system
/// describes, and publish synthetic values.
#[derive(Default)]
pub struct Operations {
    pub(crate) by_name: BTreeMap<String, Registration>,
    /// By operation.
    pub(crate) events: BTreeMap<OperationId, Box<dyn EventEnds>>,
    pub(crate) bindings: Vec<Binding>,
}

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Operations {
    /// Synthetic work everywhere.
    pub fn synthetic() -> Self {
        Self::default()
    }

    /// Runs `code` for every job of the operation `name` (`task`, or `task.subtask`), one job at a time, instead of what
    /// was set before.
    #[must_use]
    pub fn with(self, name: &str, code: impl FnMut(&JobContext<'_>) + Send + 'static) -> Self {
        self.with_ports(name, |_ports| code)
    }

    /// Gives operations their ends at channels, and has `binding` called when it is known where deliveries are work.
    #[must_use]
    pub fn with_events(
        mut self,
        ends: impl IntoIterator<Item = (OperationId, Box<dyn EventEnds>)>,
        binding: Binding,
    ) -> Self {
        self.events.extend(ends);
        self.bindings.push(binding);
        self
    }

    /// Whether the operation of this name has code.
    pub fn have_code(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether operations have ends at channels.
    pub fn have_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The same with code that reads and writes values: `register` opens each of the operation's ports and returns the code, which keeps
    /// the tokens.
    #[must_use]
    pub fn with_ports<C>(mut self, name: &str, register: impl FnOnce(&mut Ports<'_>) -> C + 'static) -> Self
    where
        C: FnMut(&JobContext<'_>) + Send + 'static,
    {
        self.by_name.insert(name.to_owned(), Box::new(|ports| Box::new(register(ports))));
        self
    }
}
