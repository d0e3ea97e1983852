//! What holds of any text as a system file: tests draw texts for it, and so does the fuzz target `system_file`.

use std::path::Path;
use talea_model::{Location, Problem};

/// Reads it; what is accepted is written and read once more.
///
/// # Panics
/// Something is not as the crate says.
pub fn hold(text: &str) {
    match talea_model::parse("fuzz.toml", text, Path::new("/nonexistent")) {
        Ok(parsed) => {
            parsed.warnings.iter().for_each(|warning| told(text, warning));
            let written = parsed.system.to_toml();
            let again = talea_model::parse("again.toml", &written, Path::new(""));
            let again =
                again.unwrap_or_else(|problems| panic!("{text}\nis written as\n{written}\n{problems}"));
            assert_eq!(again.system, parsed.system, "{text}\nis written as\n{written}");
        }
        Err(problems) => {
            assert!(!problems.list().is_empty());
            problems.list().iter().for_each(|problem| told(text, problem));
            let _ = problems.to_string();
        }
    }
}

/// The problem has words, and a place within the text if it has any.
fn told(text: &str, problem: &Problem) {
    assert!(!problem.message.is_empty() && !problem.remedy.is_empty(), "{problem:?}");
    if let Some(Location { span, line, column }) = &problem.location {
        assert!(text.get(span.clone()).is_some(), "{problem:?} is outside of the text");
        let before = &text[..span.start];
        let line_before = before.rsplit('\n').next().unwrap_or_default();
        let place = (before.matches('\n').count() + 1, line_before.chars().count() + 1);
        assert_eq!((*line, *column), place, "{problem:?}");
    }
}
