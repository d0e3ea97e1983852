//! Which format a text is in, by what it looks like.

use crate::format::Format;
use crate::tabular;

impl Format {
    /// The format that `text` looks like: an element, an object or a comment, or a row of columns that
    /// tables have.
    pub fn of_text(text: &str) -> Option<Format> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('<') {
            Some(Format::SimSo)
        } else if text.starts_with(['{', '/']) {
            Some(Format::RtApp)
        } else if tabular::looks_like_a_table(text) {
            Some(Format::Csv)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_tells_the_format() {
        assert_eq!(Format::of_text("\u{feff}\n <?xml version=\"1.0\"?>"), Some(Format::SimSo));
        assert_eq!(Format::of_text("/* a use case */ {"), Some(Format::RtApp));
        assert_eq!(Format::of_text("task,period_ms,wcet_ms\n"), Some(Format::Csv));
        assert_eq!(Format::of_text("[system]\nname = \"x\"\n"), None);
    }
}
