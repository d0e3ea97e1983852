//! What a receiver hears.

use crate::message::{Message, Peer};

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived<'a> {
    /// A message. Its peer has appeared before.
    Message(Message<'a>),
    /// A peer is there; an earlier start of the same node no longer is.
    Appeared(Peer),
    /// A peer has said that it leaves, or another start of its node has appeared. Nothing more comes from it.
    Left(Peer),
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
