//! Names that a system may have, made from names that it may not have.

use std::collections::HashSet;
use talea_guarantee::suggest::nearest;
use talea_model::NAME_BYTES_LIMIT;

/// Whether `name` may stand in a system file: letters, digits, `-` and `_`, and not too long.
pub(crate) fn is_valid(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_LIMIT && name.chars().all(is_allowed)
}

fn is_allowed(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_')
}

/// `name` with a `-` for everything that a name must not contain, cut to the length of a name.
pub(crate) fn mended(name: &str, or: &str) -> String {
    let mended: String = name.trim().chars().map(|c| if is_allowed(c) { c } else { '-' }).collect();
    let mended = &mended[..mended.floor_char_boundary(NAME_BYTES_LIMIT)];
    if mended.is_empty() { or.into() } else { mended.into() }
}

/// The name of the system in a file: what the file is called, without folders and extension.
pub(crate) fn of_system(source_name: &str) -> String {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    mended(stem, "imported")
}

/// The names given so far.
#[derive(Default)]
pub(crate) struct Taken {
    names: HashSet<String>,
    /// The number to try next for a name that was taken, so that a thousand equal names cost a thousand steps.
    next: std::collections::HashMap<String, usize>,
}

impl Taken {
    /// Takes `name` if nobody has it.
    pub fn take(&mut self, name: &str) -> bool {
        self.names.insert(name.into())
    }

    /// `name`, or with a number behind it if somebody has it.
    pub fn unique(&mut self, name: &str) -> String {
        if self.take(name) {
            return name.into();
        }
        loop {
            let number = self.next.entry(name.into()).or_insert(2);
            let suffix = format!("-{number}");
            *number += 1;
            let room = name.floor_char_boundary(NAME_BYTES_LIMIT - suffix.len());
            let numbered = format!("{}{suffix}", &name[..room]);
            if self.take(&numbered) {
                return numbered;
            }
        }
    }
}

/// A remedy for an unknown word: the one that was probably meant, or else what may be written.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("did you mean \"{nearest}\"?"),
        None => otherwise.into(),
    }
}

/// A text from a file, short enough for a message.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mended_and_made_unique() {
        assert_eq!(mended("TASK T1", "task"), "TASK-T1");
        assert_eq!(mended("mp3.decoder", "task"), "mp3-decoder");
        assert_eq!(mended("  ", "task"), "task");
        assert!(is_valid(&mended(&"µ".repeat(100), "task")));
        assert_eq!(of_system("/tmp/a.b/mp3-long.json"), "mp3-long");
        assert_eq!(of_system(".json"), "imported");
        let mut taken = Taken::default();
        assert!(taken.take("a-2"));
        let names: Vec<_> = (0..3).map(|_| taken.unique("a")).collect();
        assert_eq!(names, ["a", "a-3", "a-4"]);
        let long = "x".repeat(NAME_BYTES_LIMIT);
        assert!((0..12).all(|_| is_valid(&taken.unique(&long))));
    }
}
