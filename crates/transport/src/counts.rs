//! What is refused, and what is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a message that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Sent,
    /// A simulated link has lost it, and says so. Of real losses a sender does not hear.
    Lost,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no room on the way: the receiver does not keep up.
    #[error("the way to the node is full")]
    Full,
    /// There is no way to this node.
    #[error("there is no way to the node")]
    Absent,
    /// The node has left: it said so, or whoever started its process saw that end.
    #[error("the node has left")]
    Left,
    /// The payload is longer than [`PAYLOAD_BYTES`](crate::message::PAYLOAD_BYTES).
    #[error("the payload is longer than a message carries")]
    TooLong,
}

/// Numbers of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent, those among them that were lost later.
    pub sent: u64,
    /// Refused because the way was full.
    pub full: u64,
    /// Refused because there is no way to the node.
    pub absent: u64,
    /// Refused because the node has left.
    pub left: u64,
    /// Refused because of their length.
    pub too_long: u64,
    /// Lost on a simulated way.
    pub lost: u64,
    /// Received from an earlier start of a node, and dropped.
    pub stale: u64,
    /// Received and no message.
    pub garbled: u64,
    /// Received and dropped, for want of room to hold what is not to be delivered yet.
    pub unheld: u64,
    /// Received and still held, not being due yet, when the receiver was stopped.
    pub undelivered: u64,
}

impl Counts {
    /// Messages that were refused when they were to be sent.
    pub fn refused(&self) -> u64 {
        self.full + self.absent + self.left + self.too_long
    }
}

/// The numbers of one sender, counted by any of its threads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: AtomicU64,
    full: AtomicU64,
    absent: AtomicU64,
    left: AtomicU64,
    too_long: AtomicU64,
    stale: AtomicU64,
    garbled: AtomicU64,
}

impl Tally {
    pub fn count(&self, sent: Result<(), Refusal>) -> Result<Sent, Refusal> {
        let count = match sent {
            Ok(()) => &self.sent,
            Err(Refusal::Full) => &self.full,
            Err(Refusal::Absent) => &self.absent,
            Err(Refusal::Left) => &self.left,
            Err(Refusal::TooLong) => &self.too_long,
        };
        count.fetch_add(1, Ordering::Relaxed);
        sent.map(|()| Sent::Sent)
    }

    pub fn count_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_garbled(&self) {
        self.garbled.fetch_add(1, Ordering::Relaxed);
    }

    pub fn counts(&self) -> Counts {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            sent: now(&self.sent),
            full: now(&self.full),
            absent: now(&self.absent),
            left: now(&self.left),
            too_long: now(&self.too_long),
            stale: now(&self.stale),
            garbled: now(&self.garbled),
            ..Counts::default()
        }
    }
}
