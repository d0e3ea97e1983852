//! Structured events from JSON.
//!
//! An object with the strings `domain_name`, `type_name`, `event_name`, the objects `variable_header` and `filterable_data`, and maybe
//! `remainder_of_body`. A number without point and exponent is a signed integer, any other a float; an array is a sequence, an object an unnamed
//! struct. What JSON has no form for is an object with one key: `$u64`, `$struct`, `$nv`, `$enum` or `$union`.

mod reader;

use super::{Event, Properties};
use crate::problem::Span;
use jsonc_parser::ast::{Object, Value as Json};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use reader::Reader;
use std::fmt;
use std::ops::Range;

/// Why a text is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventProblem {
    /// The bytes of the text where it is; maybe none.
    pub span: Range<usize>,
    /// The line of its beginning, from 1.
    pub line: usize,
    /// The character of its beginning in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for EventProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}; {}", self.line, self.column, self.message, self.remedy)
    }
}

impl std::error::Error for EventProblem {}

/// JSON as it is defined, without what other readers permit beside.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

impl Event {
    /// The event that `text` describes, which has less than 4 GiB.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, EventProblem> {
        let reader = Reader { text };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| {
            let range = error.range();
            reader.problem(range.start..range.end, error.kind().to_string(), "write JSON (RFC 8259)")
        })?;
        match parsed.value {
            Some(Json::Object(object)) => event(&reader, &object),
            Some(other) => Err(reader.unexpected(&other, "an event", "an object with domain_name and so on")),
            None => Err(reader.problem(0..0, "this is empty".into(), "write an event, an object in braces")),
        }
    }
}

fn event(reader: &Reader<'_>, object: &Object<'_>) -> Result<Event, EventProblem> {
    const KEYS: [&str; 6] =
        ["domain_name", "type_name", "event_name", "variable_header", "filterable_data", "remainder_of_body"];
    reader.only(object, &KEYS)?;
    let name =
        |key: &str| -> Result<String, EventProblem> { reader.text_of(reader.needed(object, key)?, key) };
    let properties = |key: &str| -> Result<Properties, EventProblem> {
        match reader.needed(object, key)? {
            Json::Object(properties) => reader.properties(properties),
            other => Err(reader.unexpected(other, key, "an object of names and values")),
        }
    };
    let event = Event::new(name("domain_name")?, name("type_name")?, name("event_name")?)
        .with_variable_header(properties("variable_header")?)
        .with_filterable_data(properties("filterable_data")?);
    Ok(match object.get("remainder_of_body") {
        Some(remainder) => event.with_remainder_of_body(reader.value(&remainder.value)?),
        None => event,
    })
}

/// Line and column of a place in a text, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    Span::new(at, at).line_and_column(text)
}
