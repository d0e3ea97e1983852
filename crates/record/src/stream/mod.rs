//! Data streams: what a process tells while it runs, to whoever wants to know.
//!
//! After Niehaus et al.'s data stream interfaces of kernel and user programs (DSKI, DSUI): programs declare *entities*
//! in *families*; consumers list them, switch them by name and follow them, each with an own choice and its own place;
//! an entity stays switched on while anybody wants it, and costs next to nothing while nobody does. Active entities
//! are events, in the rings of [`crate::ring`]; passive ones are updated in place.
//!
//! ```text
//!   process that writes                 its ring file                      others
//!   ------------------------------      -------------------------------    ---------------------------
//!   registry: families of the  -------> directory: families, append-only -> names, decoders
//!     process, numbered once
//!   event: is its switch on?   <------- control: switches, consumers   <--- ConsumerSlot, Operator (writable)
//!          then a record       -------> rings                            -> Consumer (read only)
//!   counter, histogram, object -------> passive area                     -> copies
//! ```
//!
//! | File | What is in it |
//! |---|---|
//! | [`talea_ring::control`] | consumers and switches: the protocol |
//! | `directory` | families in a file: the protocol and the documents |
//! | `live` | the file as its process has it, and families in a process |
//! | `selection` | choosing by name |
//! | [`consumer`] | following and switching |
//! | [`declare`] | declaring families: the macro |
//! | `announced` | programs wait for the recorder that started them |
//! | [`local`] | the calling thread's ring |
//! | [`clock`] | time stamps |
//! | [`publish`] | where streams are found |

mod announced;
pub mod clock;
pub mod consumer;
pub mod declare;
pub mod local;
pub mod passive;
pub mod publish;
#[expect(unsafe_code, reason = "an event's own way into the ring goes without checks")]
mod thread;

pub use crate::directory::{Directory, DirectoryError, Entry, builtin_switch};
pub use crate::live::process::{Liveness, descends_from};
pub use crate::live::registry::{PassiveDeclaration, RegisterError, register};
pub use crate::selection::{Later, Selection, SelectionError, UnknownName};
pub use announced::{RECORDER, RING_RECORDS, RINGS, announcement};
pub use consumer::{
    AttachError, Consumer, ConsumerSlot, Operator, Start, Switching, attend, waits_for_this_process,
};
pub use declare::DeclaredFamily;
pub use local::{AttachThreadError, LocalWriter, attach_thread, is_bound};
pub use publish::{Listed, Stream, StreamDirectory};
