//! What others may ask of the nodes of a run while it lasts: to look at a node's hierarchy and change it, and what its channels count.

use crate::names::{RUNS_AT_ONCE, plain};
use crate::statistics::StatisticsDesk;
use std::sync::Arc;
use talea_linux::clock::MonotonicClock;
use talea_manage::control::protocol::{Command, Insistence, Outcome};
use talea_manage::control::{CommandHandler, ServeError, Server, Sockets};
use talea_model::System;
use talea_notification::{EventChannelFactory, Monitor};
use talea_policy::arrangement::ChangeAuthor;
use talea_time::Clock;

/// The way in from outside.
pub(crate) enum Control {
    Open(#[expect(dead_code, reason = "dropping it ends it")] Server),
    /// Nobody else can ask anything, for this reason.
    Closed(String),
}

impl Control {
    /// Opens the socket of a node with a hierarchy, which handles all but questions for what the node's channels count.
    pub fn of_hierarchy(
        (system, node): (&System, usize),
        hierarchy: Arc<dyn CommandHandler>,
        channels: Option<&EventChannelFactory>,
    ) -> Self {
        let statistics = channels.map(|channels| statistics(system, node, channels));
        let name = system.nodes[node].name.clone();
        Control::open(&name_of(system, node), &(Arc::new(NodeDesk { name, hierarchy, statistics }) as _))
    }

    /// Opens the socket of a node without a hierarchy, which tells what its channels count.
    pub fn of_channels(system: &System, node: usize, channels: &EventChannelFactory) -> Self {
        Control::open(&name_of(system, node), &(Arc::new(statistics(system, node, channels)) as _))
    }

    fn open(name: &str, handler: &Arc<dyn CommandHandler>) -> Self {
        match serve(name, handler) {
            Ok(server) => Control::Open(server),
            Err(error) => Control::Closed(error.to_string()),
        }
    }

    /// Lets nobody in any more.
    pub fn close(&mut self) {
        *self = Control::Closed("the run has ended".into());
    }

    /// Why nobody else can ask anything, if nobody can.
    pub fn closed(&self) -> Option<&str> {
        match self {
            Control::Open(_) => None,
            Control::Closed(reason) => Some(reason),
        }
    }
}

/// By what name a node is asked: that of the system and, if it has several nodes, of the node.
fn name_of(system: &System, node: usize) -> String {
    match system.nodes.len() {
        1 => plain(&system.name),
        _ => plain(&format!("{}.{}", system.name, system.nodes[node].name)),
    }
}

/// What the channels of a node count, as of the clock by which runs are bound to it.
fn statistics(system: &System, node: usize, channels: &EventChannelFactory) -> StatisticsDesk {
    let monitor = Monitor::new().with(&name_of(system, node), channels);
    StatisticsDesk::new(Arc::new(monitor), || MonotonicClock.now())
}

/// Another run of this process may have the name.
fn serve(name: &str, handler: &Arc<dyn CommandHandler>) -> Result<Server, ServeError> {
    let sockets = Sockets::of_user()?;
    let mut server = Server::start(&sockets, name, Arc::clone(handler));
    for run in 2..RUNS_AT_ONCE {
        if !matches!(server, Err(ServeError::Taken(_))) {
            break;
        }
        server = Server::start(&sockets, &format!("{name}-{run}"), Arc::clone(handler));
    }
    server
}

/// Where what is asked of a node with a hierarchy goes.
struct NodeDesk {
    /// Of the node.
    name: String,
    hierarchy: Arc<dyn CommandHandler>,
    /// None if the node has no channels.
    statistics: Option<StatisticsDesk>,
}

impl CommandHandler for NodeDesk {
    fn handle(&self, command: Command, insistence: Insistence, author: ChangeAuthor) -> Outcome {
        match (&command, &self.statistics) {
            (Command::Statistics { .. }, Some(statistics)) => statistics.handle(command, insistence, author),
            (Command::Statistics { .. }, None) => Outcome::Misstated(format!(
                "the description has no channel on node \"{}\", so there are no statistics",
                self.name
            )),
            _ => self.hierarchy.handle(command, insistence, author),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_manage::control::protocol::Done;

    /// Does whatever it is asked for.
    struct Obeying;

    impl CommandHandler for Obeying {
        fn handle(&self, command: Command, _: Insistence, _: ChangeAuthor) -> Outcome {
            assert!(!matches!(command, Command::Statistics { .. }), "a hierarchy counts nothing of channels");
            Outcome::Done(Done::default())
        }
    }

    #[test]
    fn a_node_with_a_hierarchy_and_channels_answers_for_both() {
        let factory = EventChannelFactory::new();
        factory.create_with_defaults("motion");
        let statistics = || {
            let monitor = Monitor::new().with("plant", &factory);
            StatisticsDesk::new(Arc::new(monitor), || talea_time::Instant::ZERO)
        };
        let desk = |statistics| NodeDesk { name: "n".into(), hierarchy: Arc::new(Obeying), statistics };
        let handle = |desk: &NodeDesk, command| {
            desk.handle(command, Insistence::Careful, ChangeAuthor::Operator { process: 1, user: 1 })
        };
        let ask = || Command::Statistics { names: vec!["plant/motion/ConsumerCount".into()] };
        let both = desk(Some(statistics()));
        assert!(matches!(handle(&both, ask()), Outcome::Statistics(told) if told.len() == 1));
        assert_eq!(handle(&both, Command::List), Outcome::Done(Done::default()));
        let without = desk(None);
        let Outcome::Misstated(why) = handle(&without, ask()) else { panic!("it has none") };
        assert!(why.contains("no channel on node \"n\""), "{why}");
        assert_eq!(handle(&without, Command::List), Outcome::Done(Done::default()));
    }
}
