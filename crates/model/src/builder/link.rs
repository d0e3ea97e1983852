//! Links between nodes.

use super::NodeNames;
use crate::link::{Link, LinkEnds, LossRate, Route};
use crate::{Place, Violation};
use talea_time::Duration;

/// How messages travel between nodes; at once and without loss, unless more is said.
#[derive(Clone, Debug)]
pub struct LinkBuilder {
    ends: Ends,
    route: Route,
}

/// The nodes by name.
#[derive(Clone, Debug)]
enum Ends {
    Between(String, String),
    FromTo(String, String),
    Others,
}

impl LinkBuilder {
    /// Both ways between two nodes.
    pub fn between(one: impl Into<String>, other: impl Into<String>) -> Self {
        Self::joining(Ends::Between(one.into(), other.into()))
    }

    /// From one node to another.
    pub fn from_to(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self::joining(Ends::FromTo(from.into(), to.into()))
    }

    /// Between every two nodes that no other link joins.
    pub fn others() -> Self {
        Self::joining(Ends::Others)
    }

    fn joining(ends: Ends) -> Self {
        LinkBuilder { ends, route: Route::default() }
    }

    /// The least time that a message takes.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.route.delay = delay;
        self
    }

    /// The greatest time beyond that.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.route.jitter = jitter;
        self
    }

    /// The share of messages that never arrive.
    pub fn loss(mut self, loss: LossRate) -> Self {
        self.route.loss = loss;
        self
    }

    /// With numbers for names. One that means nothing is 0.
    pub(super) fn resolve(self, index: usize, nodes: &NodeNames<'_>, found: &mut Vec<Violation>) -> Link {
        let mut number = |key, name: &str| {
            nodes.find(Some(name)).unwrap_or_else(|(_, remedy)| {
                let message = format!("a link joins node \"{name}\", which does not exist");
                found.push(Violation::error(Place::Link(index, key), message, remedy));
                0
            })
        };
        let ends = match &self.ends {
            Ends::Between(one, other) => LinkEnds::Between(number("between", one), number("between", other)),
            Ends::FromTo(from, to) => LinkEnds::FromTo(number("from", from), number("to", to)),
            Ends::Others => LinkEnds::Others,
        };
        Link { ends, route: self.route }
    }
}
