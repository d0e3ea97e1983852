//! What lies between the nodes.

use std::fmt;
use talea_time::Duration;

/// How messages travel between nodes. A message that is not lost takes at least `delay` and at most `delay + jitter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Between whom.
    pub ends: LinkEnds,
    /// What a message meets on its way.
    pub route: Route,
}

/// The nodes that a link joins, by index into [`Description::nodes`](crate::Description::nodes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnds {
    /// Both ways between two nodes.
    Between(usize, usize),
    /// One way.
    FromTo(usize, usize),
    /// Between every two nodes that no other link joins in this direction.
    Others,
}

/// What a message meets on its way from one node to another. Where no link is described nothing: it is there at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The least time from the completion of a subtask to the release of its successor.
    pub delay: Duration,
    /// The greatest time beyond that, drawn uniformly per message.
    pub jitter: Duration,
    /// How many of the messages never arrive.
    pub loss: LossRate,
}

impl Route {
    /// The longest that a message takes; the promise of the link.
    pub fn longest(&self) -> Duration {
        self.delay + self.jitter
    }
}

impl LinkEnds {
    /// The directions in which it joins two nodes, none for those that no other link joins.
    pub(crate) fn directions(self) -> impl Iterator<Item = (usize, usize)> {
        let [there, back] = match self {
            LinkEnds::Between(a, b) => [Some((a, b)), Some((b, a))],
            LinkEnds::FromTo(from, to) => [Some((from, to)), None],
            LinkEnds::Others => [None, None],
        };
        there.into_iter().chain(back)
    }
}

/// A share of messages, exact to a billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossRate {
    billionths: u32,
}

impl LossRate {
    /// No message is lost.
    pub const NONE: LossRate = LossRate { billionths: 0 };
    const ALL: u32 = 1_000_000_000;

    /// This many of a billion messages; `None` if they are more than all.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::ALL { Some(LossRate { billionths }) } else { None }
    }

    /// How many of a billion messages.
    pub const fn billionths(self) -> u32 {
        self.billionths
    }

    /// The share that a number between 0 and 1 says; `None` if it is another number, or finer than a billionth.
    pub fn from_share(share: f64) -> Option<Self> {
        let billionths = share * f64::from(Self::ALL);
        let is_whole = (billionths - billionths.round()).abs() < 1e-3;
        let in_range = (0.0..=f64::from(Self::ALL)).contains(&billionths);
        (is_whole && in_range).then(|| LossRate { billionths: billionths.round() as u32 })
    }
}

/// As a system file has it: a number between 0 and 1.
impl fmt::Display for LossRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:09}", self.billionths % Self::ALL);
        let digits = digits.trim_end_matches('0');
        let whole = self.billionths / Self::ALL;
        f.pad(&if digits.is_empty() { whole.to_string() } else { format!("{whole}.{digits}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_rate_is_a_number_from_0_to_1_and_reads_back() {
        for (share, shown) in
            [(0.0, "0"), (1.0, "1"), (0.01, "0.01"), (1e-9, "0.000000001"), (0.123, "0.123")]
        {
            let rate = LossRate::from_share(share).expect("a share");
            assert_eq!(rate.to_string(), shown);
            assert_eq!(LossRate::from_share(shown.parse().expect("a number")), Some(rate));
        }
        for share in [-0.1, 1.000_000_001, 1e-10, f64::NAN, f64::INFINITY] {
            assert_eq!(LossRate::from_share(share), None, "{share}");
        }
        assert_eq!(LossRate::from_billionths(1_000_000_001), None);
    }
}
