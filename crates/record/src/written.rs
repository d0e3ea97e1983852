//! What a file of records says in words: names that others wrote.
//!
//! Whoever made the file may have put anything into a name, and names go everywhere: to terminals, into tables, pictures and the files of
//! other programs. So they are made [printable] where they are read, which is here, and nobody behind needs to think of it.

use serde::de::DeserializeOwned;
use serde_json::Value;
use talea_text::printable;

/// Reads a document of a trace file. Each text in it is [printable].
///
/// # Errors
/// It is not what it should be.
pub(crate) fn document<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    // In most documents nothing can be hidden, and errors are those of the document as it was written.
    let document = serde_json::from_slice(bytes)?;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if bytes.iter().all(is_plain) {
        return Ok(document);
    }
    let mut value: Value = serde_json::from_slice(bytes)?;
    make_printable(&mut value);
    // Read again from bytes: the code that reads each type from a value would be as large as that which reads it from bytes.
    serde_json::from_slice(&serde_json::to_vec(&value)?)
}

/// Documents are no deeper than the reader lets them be.
fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(make_printable),
        Value::Object(values) => values.values_mut().for_each(make_printable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metadata;

    #[test]
    fn names_are_read_without_what_is_hidden() {
        let mut metadata = Metadata::bare("a\u{1b}[2J\n\u{9b}größe");
        metadata.start = talea_time::Instant::from_nanos(i64::MAX);
        let read: Metadata = document(&serde_json::to_vec(&metadata).unwrap()).unwrap();
        assert_eq!(read.system, "a\\u{1b}[2J\\n\\u{9b}größe");
        assert_eq!(read, Metadata { system: read.system.clone(), ..metadata });
    }
}
