//! The extended trader constraint language (ETCL) of the notification service: expressions by which consumers say which events they want.
//!
//! ```
//! use talea_etcl::{Constraint, Event, OwnedValue, Properties};
//! use talea_time::Instant;
//!
//! let constraint = Constraint::parse("$domain_name == 'Plant' and threshold < 20 and not exist $muted")?;
//! let program = constraint.compile::<Event>()?;
//!
//! let mut data = Properties::default();
//! data.insert("threshold", 15);
//! let event = Event::new("Plant", "Pump", "overload").with_filterable_data(data);
//! assert!(program.evaluate(&event, Instant::ZERO)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From text to an answer
//!
//! 1. [`Constraint::parse`] reads a text within [`Limits`]. What is wrong is a [`Problem`], with its place and what to write instead.
//! 2. [`Constraint::compile`] makes of it a [`Program`] for one type of event: names become positions where the type says so, and what can
//!    never be evaluated without an error is refused. Its [`steps`](Program::steps) say how long an evaluation takes at most.
//! 3. [`Program::evaluate`] answers for one event, without allocating, locking or panicking. A part that has no value is a [`Fault`],
//!    which in a filter means that the event does not match.
//!
//! # The language
//!
//! | Written | Meaning |
//! |---|---|
//! | `and`, `or`, `not` | of booleans; from left to right, and no further than needed. `not` binds tighter than `==` |
//! | `== != < <= > >=` | numbers by value, strings by the bytes of UTF-8, `FALSE < TRUE`, labels by their position; they do not chain |
//! | `+ - * /` | integers of 64 bits, checked; with a float as floats; the division of integers truncates toward zero |
//! | `'a' ~ $b` | whether the right string contains the left one |
//! | `1 in $list` | whether the sequence has an element that is equal |
//! | `exist $a.b` | whether there is something; never an error because there is not |
//! | `default $a._d` | whether the default arm of the union is active |
//! | `$name`, `name` | a property of the event's header, or else of its body; `$domain_name`, `$type_name` and `$event_name` are the fixed header |
//! | `$.header.variable_header(x)`, `$.filterable_data(x)`, `$.remainder_of_body` | the same spelled out |
//! | `$curtime` | the instant of evaluation, in nanoseconds of the caller's clock. Channels convert the times of events to that clock, so that they can be compared |
//! | `.name .1 [2] (name) .(v) .()` | member, member by position, element, property, arm of a union that `v` selects, default arm |
//! | `._length ._d ._type_id ._repos_id` | how many elements, discriminator, name and identifier of a type |
//! | `RED` | in a comparison with an enumeration, and if it is no property: its label |
//!
//! Numbers are `1`, `1.5`, `.5`, `1.5e-3`; strings stand in single quotes with the escapes `\'` and `\\`. Keywords are case-sensitive; `\` makes
//! a name of one. Nothing at all is `TRUE`.
//!
//! Integers beyond the signed ones are unsigned, and so may be results of which an operand was. Floats that become infinite are an overflow.
//! Enumerations of different types are not compared.
//!
//! # Types of one's own
//!
//! With the feature `derive`, `#[derive(Filterable)]` makes a struct an event that is filtered where it is, without conversion. Its
//! fields may be numbers, strings, booleans, instants and durations, options, sequences, and what derives it too. An absent option
//! is a missing name. An enumeration without fields has labels; one whose variants have one field each is a union, with the variant as discriminator.
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! use talea_etcl::{Constraint, Filterable};
//! use talea_time::Instant;
//!
//! #[derive(Filterable)]
//! enum Severity { Minor, Major, Critical }
//!
//! #[derive(Filterable)]
//! struct Place { hall: u32 }
//!
//! #[derive(Filterable)]
//! struct Alarm {
//!     severity: Severity,
//!     at: Place,
//!     #[filterable(rename = "text")]
//!     message: String,
//! }
//!
//! let program = Constraint::parse("severity >= Major and $.at.hall == 2 and 'hot' ~ $text").unwrap().compile::<Alarm>().unwrap();
//! let alarm = Alarm { severity: Severity::Critical, at: Place { hall: 2 }, message: "hot bearing".into() };
//! assert_eq!(program.evaluate(&alarm, Instant::ZERO), Ok(true));
//!
//! let misspelt = Constraint::parse("severity >= Majo").unwrap().compile::<Alarm>().unwrap_err();
//! assert_eq!(misspelt.remedy, "did you mean Major?");
//! # }
//! ```
//!
//! Without the macro, a type implements [`Node`] and [`Filterable`], and its parts [`View`].
//!
//! # What is not here
//!
//! Preferences of traders (`min`, `max`, `with`, `first`, `random`) are refused. Booleans and strings of one character are no numbers.

#![forbid(unsafe_code)]

// The macro names this crate from outside, and so do the tests within.
extern crate self as talea_etcl;

mod compile;
mod constraint;
mod event;
mod explain;
mod fault;
mod limits;
mod problem;
mod program;
pub mod syntax;
mod value;

pub use constraint::Constraint;
#[cfg(feature = "json")]
pub use event::EventProblem;
pub use event::{
    DuplicateName, Event, OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties,
};
pub use explain::{Part, PartOutcome};
pub use fault::{Fault, FaultKind};
pub use limits::{Limits, LimitsError};
pub use problem::{Problem, ProblemKind, Span};
pub use program::{BYTES_PER_STEP, Program};
#[cfg(feature = "derive")]
pub use talea_etcl_derive::Filterable;
pub use value::{
    Category, EnumType, Filterable, Form, Kind, Label, Layout, Lookup, Member, Node, SelectorValue,
    VARIABLE_HEADER, Value, View,
};
