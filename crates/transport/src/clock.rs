//! Clocks of peers.

use talea_time::{Duration, Instant};

/// What an instant of a peer's clock is on the own clock: later by `offset`, give or take `error`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockMapping {
    /// What is added to the peer's instants.
    pub offset: Duration,
    /// How wrong that may be, in both directions; not negative.
    pub error: Duration,
}

impl ClockMapping {
    /// Of a peer on the same machine, which reads the same clock: exact.
    pub const SAME: ClockMapping = ClockMapping { offset: Duration::ZERO, error: Duration::ZERO };

    /// The earliest and the latest that the peer's instant may be on the own clock.
    pub fn range(&self, of_peer: Instant) -> (Instant, Instant) {
        let meant = of_peer.saturating_add(self.offset);
        (meant.saturating_add(-self.error), meant.saturating_add(self.error))
    }

    /// How long ago the peer's instant is at `now`, at least: what is sure to have passed, however wrong the mapping is.
    pub fn least_age(&self, of_peer: Instant, now: Instant) -> Duration {
        now.saturating_since(self.range(of_peer).1).max(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_overstated() {
        let at = Instant::from_nanos;
        let ns = Duration::from_nanos;
        assert_eq!(ClockMapping::SAME.least_age(at(5), at(9)), ns(4));
        let mapping = ClockMapping { offset: ns(100), error: ns(3) };
        assert_eq!(mapping.range(at(5)), (at(102), at(108)));
        assert_eq!(mapping.least_age(at(5), at(110)), ns(2));
        assert_eq!(mapping.least_age(at(5), at(104)), ns(0), "it may have been sent just now");
    }
}
