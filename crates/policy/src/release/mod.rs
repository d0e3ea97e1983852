//! When jobs are released: one machine that the simulator and threads drive alike.
//!
//! * [`arrivals`]: when an instance of a task arrives and is released.
//! * [`overrun`]: what becomes of an arrival whose previous instance is unfinished.
//! * [`join`]: which completion of a predecessor is the one that lets a subtask go on.
//! * [`guard`]: how long a synchronisation protocol then holds the subtask back.
//!
//! ```text
//!  arrival ──► overrun ──► first subtask ──► completion = signal to each successor
//!                                                             │
//!                                   released ◄── guard ◄── join
//! ```
//!
//! All of it is told `now` and does not allocate after it has been made.

pub mod arrivals;
pub mod bounds;
pub mod guard;
pub mod join;
pub mod overrun;

pub use arrivals::{Arrival, Arrivals, Pattern};
