//! A node's hierarchy of schedulers on real threads: the run of a description's `[[scheduler]]` and `[[thread]]` tables.
//!
//! ```text
//!  description ──arrange──▶ engine ──ManagedSet::prepare──▶ sentinels, controller, warden, guardian
//!       │                                                       │
//!       └─ [[thread]] ──▶ own threads, programs, processes ─────┘ each with its part: what arrives for it when
//! ```
//!
//! The tasks of such a node stand in lanes somewhere below its schedulers; each lane's thread is a member, too.
//!
//! What a thread does decides what it is: bursts and what always wants the processor are threads of this process that
//! burn processor time; commands are started, and stopped until the run begins; processes are taken in as they are. A
//! thread that is promised a maximum, itself or through all schedulers above it, is held where it may not run, because
//! parking alone would let it use idle processors.
//!
//! | File | What it does |
//! |---|---|
//! | `set_up` | the threads become members, with their parts in the run |
//! | `control` | changes from outside while it runs |
//! | `lanes` | the tasks' lanes as members |
//! | `accounts` | what came of its members |
//! | `leaving` | what is left of its processors to ordinary threads |
//! | `present` | programs and processes that are not there |

mod accounts;
mod control;
mod error;
mod lanes;
mod leaving;
mod present;
mod set_up;

pub(crate) use accounts::early_end;
pub use error::HierarchyError;
pub(crate) use lanes::{LaneMember, below_others, release_is_above};
pub(crate) use leaving::leaving;
pub use present::absentees;
pub(crate) use set_up::{Hierarchy, HierarchyParts, edges, numbers, rings_of};
