//! What was granted, received and withheld: the one definition, which everybody uses who reads records.
//!
//! Schedulers grant processors; a kernel gives them, and may withhold them: real-time throttling, its server of ordinary
//! threads, long interrupt threads. In virtual time nothing withholds them but what the mechanisms cost. A promise is kept if
//! it was *received*. So each edge is judged twice, by monitors of the same promise: one where decisions are made, by what is
//! granted, one here by what is left of it.
//!
//! ```text
//!   granted    ├────── frames ──────┤├── background ──┤
//!   has it     ├── frames ──┤ nobody      ├─── bg. ───┤
//!   withheld                ├─────────────┤
//! ```
//!
//! | Word | Meaning |
//! |---|---|
//! | granted | the records of decisions (family `hls`) say that who is below the edge has this processor. Where the kernel decides, as between lanes: a thread of the run lost it although it could go on, or is the release thread and due |
//! | withheld | it was granted, and for more than [`MOMENT`] the processor was another thread's, whoever's but the infrastructure's, or idle. Where the kernel decides, which of the run's threads has it is its decision: then it is withheld if none has it |
//! | received | granted and not withheld |
//!
//! Who took the time is the second question, and its answer is beside: a [`Spell`] names who had the processor first, and who has
//! the kernel's switches knows everybody.
//!
//! | File | What it does |
//! |---|---|
//! | `edges` | what every edge receives, and which promises that breaks; a simulation says itself what it withholds |
//! | `processors` | who has a processor, by the kernel's switches, beside who is to have it |
//! | `ledger`, `delayed` | both in the order of time |
//! | `withholdings` | when processors were withheld, for everybody who reads a trace: from the auditor's word or from the switches |
//!
//! What the kernel's switches do not show is not seen: interrupts on top of a thread, and time that a hypervisor takes.

pub(crate) mod delayed;
mod edges;
mod ledger;
mod processors;
mod withholdings;

#[cfg(test)]
mod tests;

pub use edges::EdgeReceipts;
pub use ledger::{Ledger, Total};
pub use processors::{GrantedBy, Spell};
pub use withholdings::Withholdings;

use talea_time::Duration;

/// What is withheld for no longer is the way from a decision to the switch, or one of the infrastructure's threads. Waking an idle
/// processor of a virtual machine takes some 150 µs.
pub const MOMENT: Duration = Duration::from_micros(250);

/// A thread's clock may differ from the switches by one of so many parts of the run: it begins and ends a moment from it.
pub const DISAGREEMENT: i64 = 50;

/// Records that tell of the time before them may come this much after it. Where a hierarchy decides, what the kernel withheld is told by
/// an ordinary thread that looks now and then.
pub(crate) fn lingering(has_hierarchy: bool) -> Duration {
    if has_hierarchy { Duration::from_millis(500) } else { Duration::from_millis(10) }
}
