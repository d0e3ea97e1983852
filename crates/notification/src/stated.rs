//! What is set for suppliers: of the quality of service, what concerns them.

use crate::delivery::Pusher;
use crate::event::Event;
use crate::qos::{Level, PropertyName, Qos, QosError, QosProblem, QosProblems, QosSettings};
use talea_time::{Duration, Instant};

/// What is said of an event beside its header: by its supplier, where it states nothing itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stated {
    pub priority: Option<i16>,
    pub timeout: Option<Duration>,
    /// When the event was pushed, if that was before.
    pub pushed: Option<Instant>,
    /// The job that pushed it, if one did.
    pub by: Pusher,
}

impl Stated {
    pub const NOTHING: Stated = Stated { priority: None, timeout: None, pushed: None, by: Pusher::NO_JOB };

    /// What is set for a supplier or its admin. What is set for all of the channel, consumers have as well, and may have replaced.
    pub fn of(qos: &Qos) -> Self {
        let is_own = |property| matches!(qos.origin(property), Some(Level::Admin | Level::Proxy));
        Stated {
            priority: is_own(PropertyName::Priority).then_some(qos.priority),
            timeout: qos.timeout.filter(|_| is_own(PropertyName::Timeout)),
            ..Stated::NOTHING
        }
    }

    /// How long the event is worth anything after its push, if it or its supplier says so.
    pub fn timeout(&self, event: &Event) -> Option<Duration> {
        event.header().timeout.or(self.timeout)
    }
}

/// The properties that concern suppliers.
const CONCERNS: [PropertyName; 3] =
    [PropertyName::Priority, PropertyName::Timeout, PropertyName::ConnectionReliability];

/// The property concerns consumers alone, where it can be set at all.
fn concerns_consumers(property: PropertyName) -> QosProblem {
    let whose = property.levels().iter().map(|level| match level {
        Level::Channel => "the channel",
        Level::Admin => "an admin of consumers",
        Level::Proxy => "a consumer",
        Level::Message => "an event",
    });
    let allowed = format!("it concerns consumers; set it for {}", whose.collect::<Vec<_>>().join(" or "));
    property.problem(QosError::UnavailableProperty, allowed)
}

/// What can be set for suppliers at this level beside all that counts already.
pub(crate) fn available(qos: &Qos, level: Level) -> Vec<(PropertyName, String)> {
    let all = qos.available(level).into_iter();
    all.filter(|(property, _)| CONCERNS.contains(property)).collect()
}

/// What this quality of service comes to with settings for suppliers, whom most properties do not concern.
///
/// # Errors
/// Every problem.
pub(crate) fn with(qos: &Qos, settings: &QosSettings, level: Level) -> Result<Qos, QosProblems> {
    // What cannot be set at this level at all, the check of levels says.
    let of_level = settings.iter().map(|(property, _)| property).filter(|one| one.levels().contains(&level));
    let others = of_level.filter(|property| !CONCERNS.contains(property));
    let mut problems: Vec<QosProblem> = others.map(concerns_consumers).collect();
    match qos.with(settings, level) {
        Ok(qos) if problems.is_empty() => Ok(qos),
        Ok(_) => Err(QosProblems(problems)),
        Err(QosProblems(more)) => {
            problems.extend(more);
            Err(QosProblems(problems))
        }
    }
}
