//! Events as bytes, to be sent or kept: a header that says all that is needed to route, order, expire and filter an event, and behind it a body in the
//! encoding of whoever made it. The header is read without the body, and the body without this crate.
//!
//! # Layout
//!
//! Numbers are *varints*: seven bits a byte, the least significant first, the eighth bit says that another byte follows; no more bytes than needed.
//! *Signed* numbers are varints of `2n`, or `-2n - 1` for negative ones. A *text* is a varint of its length in bytes and as much UTF-8. An *optional* text
//! is a 0, or a varint of its length plus one and the text.
//!
//! | Part | Bytes |
//! |---|---|
//! | mark | `54 45` ("TE") |
//! | version | `01` |
//! | flags | two bytes, the low one first: which of the parts from "event name" on there are, bit 0 the first of them |
//! | length of the header | varint: the bytes of the parts from "domain" to "filterable data" |
//! | domain, type | two texts |
//! | event name (bit 0) | text, not empty |
//! | source (bit 1) | varint, 1 to 2³² − 1 |
//! | priority (bit 2) | signed, −32768 to 32767 |
//! | timeout (bit 3) | varint, nanoseconds |
//! | start (bit 4), stop (bit 5) | signed, nanoseconds on the sender's CLOCK_MONOTONIC |
//! | reliability (bit 6) | `00` best effort, `01` persistent |
//! | origin (bit 7) | three varints: publication, operation, instance of the job that pushed it |
//! | variable header (bit 8), filterable data (bit 9) | properties, at least one |
//! | encoding of the body | `00` none, `01` bytes of whatever kind, `02` CDR, `03` JSON, `04` postcard, `05` a value as below, `ff` another one, whose name follows as a text |
//! | body | varint of its length, and as many bytes |
//!
//! *Properties* are a varint of how many there are, and for each a text, its name, and a *value*: a byte that says of which kind it is, and
//!
//! | Kind | Behind it |
//! |---|---|
//! | `00` false, `01` true | nothing |
//! | `02` integer, `03` unsigned | signed, varint |
//! | `04` floating-point number | 8 bytes, IEEE 754, the low one first |
//! | `05` text | text |
//! | `06` sequence | varint of how many there are, and the values |
//! | `07` list | properties, perhaps none |
//! | `08` struct | two optional texts (name and identifier of its type), properties, perhaps none |
//! | `09` label of an enumeration | two texts (name and identifier of the type), varint of how many labels there are and these as texts, varint of which it is |
//! | `0a` union | two optional texts, the discriminator, a sequence of the values that select the arm, the arm's name as a text, `00` or `01` if it is the default arm, and its value |
//!
//! An event has one encoding: what is empty, or 0 where that means nothing, is not there. A CDR body begins with the four bytes that say how it is encapsulated
//! (OMG DDSI-RTPS, 10.2), as it does in DDS and ROS 2.
//!
//! # Strangers
//!
//! Whatever bytes come, [`Message::decode`] says what is wrong with them, and where, or reads an event within the [`Limits`] that it was given: it neither panics nor
//! makes more memory than in proportion to the bytes. A later version, and flags that are not known, are refused by name.

#![forbid(unsafe_code)]

mod body;
mod limits;
mod message;
mod problem;
mod read;
mod values;
mod write;

pub use body::{Body, BodyProblem, Encoding};
#[cfg(any(feature = "json", feature = "postcard", feature = "cdr"))]
pub use body::{encode_body, encode_body_into};
pub use limits::Limits;
pub use message::{Header, Message, Origin, VERSION};
pub use problem::{Problem, WireError};
pub use values::{properties_len, value_len};
pub use write::NoRoom;
