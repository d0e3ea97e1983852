//! Live control of a running hierarchy, in the process and from outside (Regehr and Stankovic 2001, sections 5.4 and 7: `HLSCtl`).
//!
//! ```text
//!   program ───────────────────────▶ Governor ── plan ──▶ derivation: refused, with the reason and a remedy
//!   talea ctl ── socket ── Server ──────▲   │
//!                (owner alone)              └── under the dispatcher's lock ──▶ engine, watch: all of it or nothing
//! ```
//!
//! The [`Governor`] owns the description of what runs beside the [set](crate::ManagedSet), and changes both by the rules of
//! [`talea_policy::arrangement::live`]. Judging, deriving and looking for remedies happen without the dispatcher's lock, starting
//! programs too; under it are a copy of the engine and the steps themselves.
//!
//! Lock order: the governor's before the dispatcher's.

mod connection;
mod governor;
mod listing;
mod pieces;
pub mod protocol;
mod server;
mod sockets;

pub use governor::{Governor, OwnThread, Reason};
pub use pieces::Piece;
pub use server::{CommandHandler, ServeError, Server};
pub use sockets::{Client, ClientError, Controllable, FindError, Sockets};
