//! What carries messages.

use crate::clock::ClockMapping;
use crate::counts::{Counts, Refusal, Sent};
use crate::inbox::Inbox;
use crate::message::{Message, Peer};
use crate::news::{Arrived, Received};
use talea_time::Duration;

/// Whatever carries messages from one node to the others. Any thread of the node sends; one thread receives, and owns the [`Inbox`].
///
/// An implementation does not wait, allocate or lock in [`send`](Self::send), counts what it refuses, and delivers a message at most once.
/// It need not keep messages in order, nor deliver all of them.
pub trait Transport: Send + Sync {
    /// This start of this node.
    fn own(&self) -> Peer;

    /// Sends to a node. One that has left, as far as [`receive`](Self::receive) has heard, is refused until another start of it appears.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has been sent, and it has been counted.
    fn send(&self, to: usize, message: &Message<'_>) -> Result<Sent, Refusal>;

    /// Waits for news, at most for the time `within`, and gives all that there is to `take`.
    ///
    /// # Errors
    /// The way into this node is broken, as the system says; nothing more will come.
    fn receive(
        &self,
        inbox: &mut Inbox,
        within: Option<Duration>,
        take: &mut dyn FnMut(Arrived<'_>),
    ) -> std::io::Result<Received>;

    /// Ends this node's receiver after what has arrived.
    ///
    /// # Errors
    /// `WouldBlock` as long as there is no room for it: what has arrived is to be received first.
    fn stop_receiving(&self) -> std::io::Result<()>;

    /// What this node belongs to is over for all of its nodes: they are not told when this one is gone. Else dropping a transport tells them.
    fn leave_silently(&self);

    /// What the instants of a node's messages are on the own clock.
    fn clock_of(&self, node: usize) -> ClockMapping;

    /// What has been sent, refused and lost up to now.
    fn counts(&self) -> Counts;
}
