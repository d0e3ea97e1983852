//! What to write instead of a misspelt word, and instead of a text that is no time.

pub(crate) use talea_guarantee::suggest::{known_words, nearest};
use talea_time::ParseDurationError;

/// What is wrong with the text of a time, and what to write.
pub(crate) fn time_fault(error: ParseDurationError) -> (String, String) {
    use ParseDurationError::*;
    let units = "the units are ns, us, ms, s, min, h";
    match error {
        Empty => ("the time is empty".into(), "write a number and a unit, such as \"50ms\"".into()),
        MissingUnit(text) => (
            format!("the time {text} has no unit"),
            format!("write \"{text}ms\", or another of the units ns, us, ms, s, min, h"),
        ),
        UnknownUnit(unit) => (format!("unknown unit \"{unit}\""), units.into()),
        NotANumber(text) => (
            format!("\"{text}\" is not a time"),
            "write a number and a unit, such as \"50ms\" or \"1.5s\"".into(),
        ),
        Negative(text) => (format!("the time {text} is negative"), "write it without the sign".into()),
        TooFine(text) => (
            format!("{text} is finer than a nanosecond"),
            "nanoseconds are the resolution of all times".into(),
        ),
        TooLong(text) => (format!("{text} is too long"), "stay below 87600h, ten years".into()),
    }
}
