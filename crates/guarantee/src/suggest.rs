//! What the author of a misspelt name probably meant.

/// How many names are compared; a system may have a million.
const NAMES: usize = 1000;

/// A longer text is no misspelt name, and comparing it costs its square.
const LONGEST_BYTES: usize = 200;

/// The name most like `word`, if one is close enough for `word` to be a misspelling of it; large letters count as small ones.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    let length = word.chars().count();
    let tolerance = (length / 3).max(1);
    names
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(length) <= tolerance)
        .take(NAMES)
        .map(|name| (strsim::osa_distance(&word, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// What to write instead of an unknown word: the nearest known one, or else the known ones, if there are many the first of them.
pub fn known_words<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
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

#[cfg(test)]
mod tests {
    use super::{known_words, nearest};

    #[test]
    fn near_misses_are_recognised_and_others_are_not() {
        let keys = ["period", "deadline", "phase", "wcet"];
        assert_eq!(nearest("peroid", keys), Some("period"));
        assert_eq!(nearest("Deadline", keys), Some("deadline"));
        assert_eq!(nearest("wect", keys), Some("wcet"));
        assert_eq!(nearest("res", ["RES", "PS"]), Some("RES"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest(&"period".repeat(100), keys), None);
    }

    #[test]
    fn the_nearest_word_is_named_or_else_all() {
        assert_eq!(known_words("peroid", ["period", "phase"]), "did you mean \"period\"?");
        assert_eq!(known_words("x", ["mission"]), "write \"mission\"");
        assert_eq!(known_words("x", ["abc", "bcd"]), "write one of \"abc\", \"bcd\"");
    }
}
