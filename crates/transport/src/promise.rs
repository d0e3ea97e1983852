//! Messages that took longer than their link promises.

use crate::clock::ClockMapping;
use crate::message::Message;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use talea_model::Description;
use talea_time::{Duration, Instant};

/// Holds what a node receives against the longest times of the links to it.
#[derive(Debug)]
pub struct PromiseWatch {
    /// By sending node; `None` where no link is described.
    longest: Vec<Option<Duration>>,
    /// How much longer a message may take before it counts.
    tolerance: Duration,
    late: AtomicU64,
    worst_ns: AtomicI64,
}

impl PromiseWatch {
    /// Of what is sent to the node at `own`.
    pub fn new(description: &Description, own: usize) -> Self {
        let longest = |from| description.link(from, own).map(|route| route.longest());
        PromiseWatch {
            longest: (0..description.nodes.len()).map(longest).collect(),
            tolerance: Duration::ZERO,
            late: AtomicU64::new(0),
            worst_ns: AtomicI64::new(0),
        }
    }

    /// The same, but for what takes longer by no more than this: who holds messages back lets them go somewhat after they are due.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Duration) -> Self {
        PromiseWatch { tolerance, ..self }
    }

    /// A message is received at `now`. Counts it if it is sure to have taken longer than promised, and returns by how much.
    #[inline]
    pub fn see(&self, message: &Message<'_>, clock: ClockMapping, now: Instant) -> Option<Duration> {
        let longest = (*self.longest.get(usize::from(message.identity.peer.node))?)?;
        let excess = clock.least_age(message.sent, now) + -longest;
        if excess <= self.tolerance {
            return None;
        }
        self.late.fetch_add(1, Ordering::Relaxed);
        self.worst_ns.fetch_max(excess.as_nanos(), Ordering::Relaxed);
        Some(excess)
    }

    /// How many messages took longer, and by how much the worst.
    pub fn late(&self) -> (u64, Duration) {
        (self.late.load(Ordering::Relaxed), Duration::from_nanos(self.worst_ns.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;
    use talea_model::{LinkBuilder, System, TaskBuilder};
    use talea_time::Work;

    #[test]
    fn only_what_is_surely_late_counts_and_only_where_a_link_promises() {
        let us = Duration::from_micros;
        let task = TaskBuilder::new("t", Duration::from_millis(1)).wcet(Work::from_nanos(1)).on("a");
        let link = LinkBuilder::from_to("a", "b").delay(us(2)).jitter(us(1));
        let system = System::builder("s").node("a", [0]).node("b", [1]).node("c", [2]).link(link).task(task);
        let watch = PromiseWatch::new(&system.build().expect("a system"), 1);
        let at = |us: i64| Instant::from_nanos(us * 1_000);
        let exact = ClockMapping::SAME;
        // It was sent at 1 us.
        assert_eq!(watch.see(&message(0, 0, &[]), exact, at(4)), None);
        assert_eq!(watch.see(&message(0, 1, &[]), exact, at(5)), Some(us(1)));
        assert_eq!(watch.see(&message(0, 2, &[]), ClockMapping { error: us(1), ..exact }, at(5)), None);
        assert_eq!(
            watch.see(&message(0, 3, &[]), ClockMapping { error: us(1), ..exact }, at(8)),
            Some(us(3))
        );
        assert_eq!(watch.see(&message(2, 4, &[]), exact, at(1_000)), None, "no link is described");
        assert_eq!(watch.see(&message(9, 5, &[]), exact, at(1_000)), None, "no such node");
        assert_eq!(watch.late(), (2, us(3)));
        let watch = watch.with_tolerance(us(1));
        assert_eq!(watch.see(&message(0, 6, &[]), exact, at(5)), None);
        assert_eq!(watch.see(&message(0, 7, &[]), exact, at(6)), Some(us(2)));
    }
}
