//! Messages between nodes.
//!
//! | Module | What it holds |
//! |---|---|
//! | [`message`] | what a message carries, and its bytes |
//! | [`transport`] | the trait that whatever carries messages implements |
//! | [`counts`] | what is refused, and what is counted |
//! | [`news`] | what a receiver hears: messages, and peers that appear and leave |
//! | [`inbox`] | what a receiver needs: room, and which peers are there |
//! | [`clock`] | what an instant of a peer's clock is on the own one |
//! | [`promise`] | messages that took longer than their link promises |
//! | [`pipe`] | named pipes between processes of one machine |
//! | [`simulated`] | a link with delay, jitter and loss, over any other transport |
//!
//! ```text
//!              send                                  receive
//!  a job's end ────► Transport ═════(the way)═════► Transport ────► Arrived::Message ────► the successor's join
//!                        │ Err                          │ Arrived::Appeared, Left
//!                        ▼                              ▼
//!                  Refusal, counted              which start of a peer it is
//! ```
//!
//! Sending neither allocates nor locks, and does not wait; a transport that has no room refuses, and counts that. Whoever receives is one
//! thread, which owns the [`Inbox`]. Nothing here reads a clock: the simulated link is given one.

#![forbid(unsafe_code)]

pub mod clock;
pub mod counts;
pub mod inbox;
pub mod message;
pub mod news;
pub mod pipe;
pub mod promise;
pub mod simulated;
pub mod transport;

pub use clock::ClockMapping;
pub use counts::{Counts, Refusal, Sent};
pub use inbox::Inbox;
pub use message::{Identity, Message, PAYLOAD_BYTES, Peer};
pub use news::{Arrived, Received};
pub use pipe::Pipes;
pub use promise::PromiseWatch;
pub use simulated::SimulatedLink;
pub use transport::Transport;
