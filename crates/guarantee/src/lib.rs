//! What schedulers promise each other: the guarantees of hierarchical loadable schedulers (Regehr and Stankovic,
//! *HLS: A Framework for Composing Soft Real-Time Schedulers*, 2001).
//!
//! * [`guarantee`]: the nine kinds of guarantee, with exact parameters ([`exact`]); [`notation`] reads and prints them.
//! * [`label`]: a guarantee where it stands, below a slower processor or not.
//! * [`rewrite`]: which guarantee is another one too, by which of the six theorems ([`theorem`]).
//! * [`request`]: what a child asks of its scheduler.
//! * [`conversion`]: what schedulers make of what they are given, and whether they can admit their children.
//! * [`scheduler`]: the kinds of schedulers, built-in and own, each declared once.
//! * [`hierarchy`]: schedulers, threads and edges as plain values.
//! * [`derivation`]: the guarantee on every edge with its grounds, or who does not receive what it needs.
//! * [`remedy`]: what to change then.
//! * [`suggest`]: what was probably meant by a misspelt name.
//! * [`monitor`]: whether a virtual processor receives what it was promised, as time goes by.
//!
//! ```
//! use talea_guarantee::derivation::derive;
//! use talea_guarantee::hierarchy::Hierarchy;
//!
//! let hierarchy: Hierarchy = serde_json::from_str(
//!     r#"{
//!         "schedulers": [
//!             {"name": "root", "kind": "reservation"},
//!             {"name": "share", "kind": "sfq", "quantum_ns": 10000000}
//!         ],
//!         "threads": [
//!             {"name": "video", "requires": "RESBH 5ms 33ms"},
//!             {"name": "voice", "requires": "PSBE 0.4 58ms"},
//!             {"name": "text"}
//!         ],
//!         "edges": [
//!             {"parent": "root", "child": "video", "request": {"guarantee": "RESBH 5ms 33ms"}},
//!             {"parent": "root", "child": "share", "request": {"guarantee": "RESBH 10ms 20ms"}},
//!             {"parent": "share", "child": "voice", "request": {"weight": 4}},
//!             {"parent": "share", "child": "text", "request": {"weight": 1}}
//!         ]
//!     }"#,
//! )?;
//! let derivation = derive(&hierarchy)?;
//! let text = derivation.between("share", "text").expect("it is labelled");
//! assert_eq!(text.label.to_string(), "PSBE 0.1 22ms");
//! println!("{}", derivation.explain_thread("voice").expect("it is satisfied"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything is exact and, but for the list of kinds that a program registers, pure; no scheduler's code is known here, only what it
//! promises.

#![forbid(unsafe_code)]

pub mod conversion;
pub mod derivation;
pub mod due;
pub mod exact;
pub mod guarantee;
pub mod hierarchy;
mod json;
pub mod label;
pub mod monitor;
pub mod notation;
pub mod proviso;
pub mod remedy;
pub mod request;
pub mod rewrite;
pub mod scheduler;
pub mod suggest;
pub mod theorem;
