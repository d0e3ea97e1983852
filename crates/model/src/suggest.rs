//! What the author of a misspelt word probably meant.

/// How many candidates are looked at; a system may have a million names.
const CANDIDATES: usize = 1000;

/// The candidate most like `word`, if one is close enough to be a misspelling of it.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let tolerance = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .take(CANDIDATES)
        .map(|candidate| (strsim::osa_distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_recognised_and_others_are_not() {
        let keys = ["period", "deadline", "phase", "wcet"];
        assert_eq!(nearest("peroid", keys), Some("period"));
        assert_eq!(nearest("Deadline", keys), Some("deadline"));
        assert_eq!(nearest("wect", keys), Some("wcet"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(known_words("x", ["mission"]), "write \"mission\"");
    }
}
