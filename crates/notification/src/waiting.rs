//! Waiting for events of several consumers at once.

use crate::connected::{PullConsumer, SequencePullConsumer};
use crate::consumer::{Consumer, Outlook};
use crate::signal::Signal;
use std::fmt;
use std::sync::Arc;
use talea_time::{Duration, Instant};

/// Consumers that take their events themselves, for whose events a thread waits together (`WaitSet` in DDS and ROS 2).
///
/// ```
/// use talea_notification::qos::QosSettings;
/// use talea_notification::{AdminProperties, EventChannelFactory, TypePattern, WaitSet};
/// use talea_time::{Duration, Instant};
///
/// let channel = EventChannelFactory::new().create("robot", &QosSettings::new(), AdminProperties::default())?;
/// let stops = channel.consumer("stops").subscribe([TypePattern::new("Robot", "Stop")?]).connect_pull()?;
/// let health = channel.consumer("health").subscribe([TypePattern::new("Health", "*")?]).connect_pull()?;
/// let mut both = WaitSet::new();
/// let (stop, any_health) = (both.add(&stops), both.add(&health));
/// // Where time does not pass, nothing comes.
/// for ready in both.wait(Duration::ZERO, || Instant::ZERO) {
///     let consumer = if *ready == stop { &stops } else { &health };
///     println!("{:?}", consumer.try_pull(Instant::ZERO));
/// }
/// # assert_eq!((stop, any_health), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct WaitSet {
    signal: Arc<Signal>,
    consumers: Vec<Arc<Consumer>>,
    ready: Vec<usize>,
}

impl fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitSet").field("consumers", &self.consumers.len()).finish_non_exhaustive()
    }
}

impl WaitSet {
    /// One without consumers, for which nobody can wait.
    pub fn new() -> Self {
        WaitSet::default()
    }

    /// Adds a consumer and returns its place: 0 for the first one. It stays the caller's, who takes its events.
    pub fn add(&mut self, consumer: &PullConsumer) -> usize {
        self.add_shared(consumer.shared())
    }

    /// The same of one that takes several at once: there is something to take when so many are there, or have waited for long enough.
    pub fn add_sequence(&mut self, consumer: &SequencePullConsumer) -> usize {
        self.add_shared(consumer.shared())
    }

    fn add_shared(&mut self, consumer: Arc<Consumer>) -> usize {
        consumer.follow(&self.signal);
        self.consumers.push(consumer);
        self.ready.reserve(self.consumers.len());
        self.consumers.len() - 1
    }

    /// Waits so long until events can be taken of some, whose places it returns; `now` says what time it is. It returns none if the time has passed,
    /// and if no events can come any more since all are disconnected. Neither allocates nor locks but for a look at each consumer.
    pub fn wait(&mut self, limit: Duration, now: impl Fn() -> Instant) -> &[usize] {
        let WaitSet { signal, consumers, ready } = self;
        let end = now().saturating_add(limit);
        loop {
            let next = look(consumers, now(), ready);
            let Some(until) = next else { break };
            if !ready.is_empty() || now() >= end {
                break;
            }
            let until = until.min(end);
            let changes =
                || look(consumers, now(), ready).is_none_or(|next| next < until || !ready.is_empty());
            signal.wait(until - now(), &now, changes);
        }
        ready
    }
}

/// Which of them have events; and from when on time alone may change that, or nothing if all are closed.
fn look(consumers: &[Arc<Consumer>], now: Instant, ready: &mut Vec<usize>) -> Option<Instant> {
    ready.clear();
    let mut next = None;
    for (place, consumer) in consumers.iter().enumerate() {
        match consumer.outlook(now) {
            Outlook::Closed => continue,
            Outlook::Ready => ready.push(place),
            Outlook::Waits(Some(due)) => next = next.map_or(Some(due), |next: Instant| Some(next.min(due))),
            Outlook::Waits(None) => {}
        }
        next = next.or(Some(Instant::MAX));
    }
    next
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        self.consumers.iter().for_each(|consumer| consumer.follow_no_more(&self.signal));
    }
}
