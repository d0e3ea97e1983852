//! What is set for suppliers: of the quality of service, what concerns them.

use crate::event::Event;
use crate::qos::{Level, PropertyName, Qos, QosError, QosProblem, QosProblems, QosSettings};
use talea_time::{Duration, Instant};

/// What is said of an event beside its header: by its supplier, where it states nothing itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    pub priority: Option<i16>,
    pub timeout: Option<Duration>,
    /// When the event was pushed, if that was before.
    pub pushed: Option<Instant>,
}

impl Stated {
    pub const NOTHING: Stated = Stated { priority: None, timeout: None, pushed: None };

    /// What is set for a supplier or its admin. What is set for all of the channel, consumers have as well, and may have replaced.
    pub fn of(qos: &Qos) -> Self {
        let is_own = |property| matches!(qos.origin(property), Some(Level::Admin | Level::Proxy));
        Stated {
            priority: is_own(PropertyName::Priority).then_some(qos.priority),
            timeout: qos.timeout.filter(|_| is_own(PropertyName::Timeout)),
            pushed: None,
        }
    }

    /// How long the event is worth anything after its push, if it or its supplier says so.
    pub fn timeout(self, event: &Event) -> Option<Duration> {
        event.header().timeout.or(self.timeout)
    }
}

/// What this quality of service comes to with settings for suppliers, whom most properties do not concern.
///
/// # Errors
/// Every problem.
pub(crate) fn with(qos: &Qos, settings: &QosSettings, level: Level) -> Result<Qos, QosProblems> {
    let concerns = [PropertyName::Priority, PropertyName::Timeout, PropertyName::ConnectionReliability];
    let others = settings.iter().map(|(property, _)| property).filter(|one| !concerns.contains(one));
    let mut problems: Vec<QosProblem> = others
        .map(|property| {
            let allowed =
                "it concerns consumers; set it for the channel, an admin of consumers or a consumer";
            property.problem(QosError::UnavailableProperty, allowed)
        })
        .collect();
    match qos.with(settings, level) {
        Ok(qos) if problems.is_empty() => Ok(qos),
        Ok(_) => Err(QosProblems(problems)),
        Err(QosProblems(more)) => {
            problems.extend(more);
            Err(QosProblems(problems))
        }
    }
}
