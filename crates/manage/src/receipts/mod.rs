//! What the threads of a set really received, beside what they were granted.
//!
//! The hierarchy grants processors; the kernel gives them, and may withhold them: real-time throttling, its server of ordinary
//! threads, long interrupt threads. A promise is kept if it was *received*. So each edge is judged twice, by two watches over the
//! same edges: one under the dispatcher's lock by what is granted, one here by what the kernel's switches leave of it.
//!
//! ```text
//!   dispatcher, under its lock ──notes──▶ ┐
//!                                         ├─ ledger ──▶ what was received, and which promises that breaks
//!   kernel ──────────────── switches ───▶ ┘   on an ordinary thread, some tens of milliseconds later
//! ```
//!
//! The dispatcher's part is to write down each change of state, into memory that is there: no call, no lock beyond its own, no
//! allocation. Without the right to see the kernel's switches none of this exists, and promises are judged by grants.
//!
//! | File | What it does |
//! |---|---|
//! | `notes` | what the dispatcher writes down |
//! | `withholding` | who has a processor beside who is to have it |
//! | `ledger` | both in the order of time, and the judgement |
//! | `auditor` | the thread |
//!
//! What the kernel's switches do not show is not seen: interrupts on top of a thread, and time that a hypervisor takes.

mod auditor;
mod ledger;
mod withholding;

#[cfg(test)]
mod tests;

pub(crate) use auditor::Auditor;
pub use auditor::{Audit, JudgedBy, LongestWithheld, SwitchStream};
pub(crate) use withholding::Infrastructure;
