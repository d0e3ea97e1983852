//! What a receiver hears.

use crate::message::{Message, Peer};

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived<'a> {
    /// A message. Its peer has appeared before.
    Message(Message<'a>),
    /// A peer is there; an earlier start of the same node no longer is.
    Appeared(Peer),
    /// A peer has said that it leaves, its process has ended, or another start of its node has appeared. It sends nothing more; what a
    /// simulated link holds of what it sent before still comes.
    Left(Peer),
    /// A message that is lost at its receiver: there is no room to hold what is not to be delivered yet.
    Dropped(Message<'a>),
}

/// Whether a receiver goes on.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// There may be more.
    More,
    /// It was told to stop.
    End,
}
