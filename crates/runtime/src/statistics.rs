//! Statistics of channels, for other programs of the user.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use talea_manage::control::protocol::{Command, Force, Insistence, Outcome, Refusal, Statistic};
use talea_manage::control::{CommandHandler, ServeError, Server, Sockets};
use talea_notification::{Monitor, Monitored, Numeric};
use talea_policy::arrangement::ChangeAuthor;
use talea_time::Instant;

/// Tells whoever may open its socket, which is the user alone, what a [`Monitor`] reads: `talea ctl NAME statistics`. One ordinary thread answers, and reads when it is
/// asked. Dropping it ends that.
pub struct MonitorServer(Server);

impl std::fmt::Debug for MonitorServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MonitorServer").field(&self.0.path()).finish()
    }
}

impl MonitorServer {
    /// Tells under this name, which no other control socket of the process may have, what the monitor reads as of `now`: the instant on the clock of the run to which the
    /// factories are bound.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(
        name: &str,
        monitor: Arc<Monitor>,
        now: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        MonitorServer::start_in(&Sockets::of_user()?, name, monitor, now)
    }

    /// The same with a socket in this folder.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start_in(
        sockets: &Sockets,
        name: &str,
        monitor: Arc<Monitor>,
        now: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        Server::start(sockets, name, Arc::new(StatisticsDesk::new(monitor, now))).map(MonitorServer)
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Where questions for statistics are answered, and all others refused.
pub(crate) struct StatisticsDesk {
    monitor: Arc<Monitor>,
    now: Box<dyn Fn() -> Instant + Send + Sync>,
}

impl CommandHandler for StatisticsDesk {
    fn handle(&self, command: Command, _insistence: Insistence, _author: ChangeAuthor) -> Outcome {
        match command {
            Command::Statistics { names } => {
                self.tell(&names).map_or_else(Outcome::Misstated, Outcome::Statistics)
            }
            _ => Outcome::Refused(Refusal {
                reasons: vec!["it tells statistics of channels and has no hierarchy of schedulers".into()],
                remedy: Some("ask for `statistics`".into()),
                force: Force::InVain,
            }),
        }
    }
}

impl StatisticsDesk {
    /// What the monitor reads as of `now`, on the clock of the run to which its factories are bound.
    pub fn new(monitor: Arc<Monitor>, now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        StatisticsDesk { monitor, now: Box::new(now) }
    }

    /// The statistics of these names, or below these paths; all if there are none.
    fn tell(&self, wanted: &[String]) -> Result<BTreeMap<String, Statistic>, String> {
        let all = self.monitor.names();
        let is_meant = |wanted: &str, name: &str| {
            name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(unknown) = wanted.iter().find(|wanted| !all.iter().any(|name| is_meant(wanted, name))) {
            return Err(format!(
                "there is no statistic \"{unknown}\", nor any below it; `statistics` alone tells all that there are"
            ));
        }
        let are_wanted =
            |name: &String| wanted.is_empty() || wanted.iter().any(|wanted| is_meant(wanted, name));
        let now = (self.now)();
        // One that has gone meanwhile is not told of.
        let read = |name: String| Some((name.clone(), told(self.monitor.get(&name, now).ok()?)));
        Ok(all.into_iter().filter(are_wanted).filter_map(read).collect())
    }
}

fn told(monitored: Monitored) -> Statistic {
    match monitored {
        Monitored::Names(names) => Statistic::Names(names),
        Monitored::Numeric(Numeric { count, average, sum_of_squares, minimum, maximum, last }) => {
            Statistic::Number { last, count, average, sum_of_squares, minimum, maximum }
        }
    }
}
