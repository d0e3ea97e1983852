//! What to write instead of a misspelt word, and instead of a text that is no time.

pub(crate) use talea_guarantee::suggest::nearest;
use talea_time::ParseDurationError;

/// A remedy for an unknown word: the nearest known one, or all of them if they are few.
pub(crate) fn known_words<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(nearest) = nearest(word, candidates.clone()) {
        return format!("did you mean \"{nearest}\"?");
    }
    let mut words: Vec<_> = candidates.into_iter().take(13).map(|word| format!("\"{word}\"")).collect();
    if words.len() > 12 {
        words.truncate(12);
        words.push("...".into());
    }
    match words.as_slice() {
        [only] => format!("write {only}"),
        _ => format!("write one of {}", words.join(", ")),
    }
}

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
        Negative(text) => (format!("the time {text} is negative"), "write zero or more".into()),
        TooFine(text) => (
            format!("{text} is finer than a nanosecond"),
            "nanoseconds are the resolution of all times".into(),
        ),
        TooLong(text) => (format!("{text} is too long"), "stay below 87600h, ten years".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_named_or_else_all() {
        assert_eq!(known_words("peroid", ["period", "phase"]), "did you mean \"period\"?");
        assert_eq!(known_words("x", ["mission"]), "write \"mission\"");
        assert_eq!(known_words("x", ["abc", "bcd"]), "write one of \"abc\", \"bcd\"");
    }
}
