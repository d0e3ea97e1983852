//! JSON in which nothing is hidden.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};
use std::io::{self, Write};
use talea_text::is_hidden;

/// Writes `value` as indented JSON. What is [hidden](is_hidden) in texts is escaped, also where JSON permits it as it is.
///
/// # Errors
/// The writer's.
pub fn write(writer: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(writer, Visible(PrettyFormatter::new())))
}

/// Indents, and escapes.
struct Visible(PrettyFormatter<'static>);

/// What the inner formatter does differently than others.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.0.$name(writer $(, $argument)*)
        })*
    };
}

impl Formatter for Visible {
    passed_on! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(place) = rest.find(is_hidden) {
            let hidden = rest[place..].chars().next().expect("it was found");
            writer.write_all(&rest.as_bytes()[..place])?;
            for unit in hidden.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[place + hidden.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_hidden_is_escaped_and_comes_back() {
        let text = "a\u{1b}[2J\n\u{9b}2J\u{202e}\u{e0041} größe \"";
        let value = serde_json::json!({ "list": [text, 1, 2.5], "none": null, "empty": {} });
        let mut written = Vec::new();
        write(&mut written, &value).expect("memory");
        let written = String::from_utf8(written).expect("text");
        assert!(!written.contains(|c| is_hidden(c) && c != '\n'), "{written}");
        assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), value);
        let plain = serde_json::json!({ "list": [1, { "a": "ö" }], "empty": [] });
        let mut written = Vec::new();
        write(&mut written, &plain).expect("memory");
        assert_eq!(written, serde_json::to_vec_pretty(&plain).expect("JSON"));
    }
}
