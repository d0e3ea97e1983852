//! What a program brings to a system: code for its operations, and the values that go between them.
//!
//! [`Operations`] has the code by name. Code that reads or writes values says so when it is registered, and is given a token for each of
//! its [`Ports`]; a job uses the tokens, so no name is looked up while it runs. [`assemble`](Operations::assemble) makes of all this, and of
//! what the description says about connections, one [`Operation`] each: its code with the ends of its connections. Threads and the simulator
//! drive the same ones:
//!
//! ```text
//!   begin:  take ──► code(&JobContext) ──► leave        end:  publish, or discard if the job did not complete
//! ```

#![forbid(unsafe_code)]

mod assembly;
mod context;
mod ends;
mod error;
mod events;
mod kept;
mod kind;
mod operation;
mod operations;
mod placement;
mod ports;
mod posting;
mod publications;
mod pushes;
mod reading;
mod replaying;
mod services;
mod synthetic;
mod threads;
mod workplace;

pub use assembly::{Assembled, KeptOutput, Wiring};
pub use context::{Code, JobContext};
pub use ends::EventEnds;
pub use error::{OperationError, OperationErrors};
pub use events::{EventNote, KeptEvent, TakenEvent, TakenPart};
pub use kept::{KeptOutputs, KeptParts};
pub use kind::{OutputKind, Value};
pub use operation::{Body, LostValues, Operation, TakenValue, outputs_in};
pub use operations::Operations;
pub use placement::{DeclareError, LanePlacement};
pub use ports::{Descriptor, Input, Output, Ports};
pub use posting::{Declaration, NotPosted, Posted, PostedOperation, PostingRoom};
pub use publications::ProgramPublications;
pub use pushes::{PushAnswer, PushedBytes};
pub use reading::NotRead;
pub use replaying::{DeclaredOperation, HandedAgain, ReplayWorkplace};
pub use services::JobServices;
pub use synthetic::{SyntheticValue, decode_fields, encode_fields};
pub use talea_channel::{
    Connection, Dropped, Encoded, FullReader, KeptBytes, KeptEnd, Moment, Published, Reach, Stamp,
};
pub use talea_event::{EventLoss, Outcome};
pub use threads::{call_on_this_thread, on_each_thread};
pub use workplace::{
    Again, Beginning, Binding, ChannelTask, Post, PostedCode, ProgramChannel, TRY_AGAIN, Workplace,
};
