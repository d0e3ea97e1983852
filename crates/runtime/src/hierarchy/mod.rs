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
//! | `cast` | everybody takes their places: the threads and their parts |
//! | `control` | changes from outside while it runs |
//! | `lanes` | the tasks' lanes as members |
//! | `caps` | who may not receive more than is promised |
//! | `outcome` | what came of it |
//! | `present` | programs and processes that are not there |

mod cast;
mod control;
mod lanes;
mod outcome;
mod present;
mod quantum;

pub use cast::HierarchyError;
pub(crate) use cast::{Hierarchy, Labour, PREFAULTED, Stage, edges, rings_of};
pub(crate) use control::Control;
pub(crate) use lanes::{Berth, below_others, release_is_above};
pub(crate) use outcome::early_end;
pub use outcome::{HierarchyOutcome, MemberOutcome, ParkingOutcome, ScheduledBy};
pub use present::absentees;
pub use quantum::ShortQuantum;
