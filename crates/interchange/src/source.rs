//! Files as text, refused before they fill the memory, and positions in them.

use crate::Problems;
use std::ops::Range;
use std::path::Path;
use talea_model::Location;

/// Reads the text file at `path`, for [`crate::import`].
///
/// # Errors
/// The file cannot be read, is not UTF-8, or is larger than [`talea_model::FILE_BYTES_LIMIT`].
pub fn read(path: &Path) -> Result<String, Problems> {
    talea_text::read::text(path)
        .map_err(|error| Problems::whole_file(&path.display().to_string(), error.to_string(), error.remedy()))
}

/// Where the lines of a text begin, and how many characters come before a place.
pub(crate) struct Lines<'t> {
    pub text: &'t str,
    starts: Vec<usize>,
    /// Characters before every block, so that a file of one long line does not cost its length again for
    /// every position in it.
    characters: Vec<usize>,
}

const BLOCK: usize = 1024;

impl<'t> Lines<'t> {
    pub fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect();
        let mut characters = vec![0];
        for block in text.as_bytes().chunks(BLOCK) {
            characters.push(characters[characters.len() - 1] + starting_in(block));
        }
        Lines { text, starts, characters }
    }

    /// The position of a stretch of the text, widened to whole characters.
    pub fn locate(&self, span: Range<usize>) -> Location {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.floor_char_boundary(span.end).max(start);
        let line = self.starts.partition_point(|line_start| *line_start <= start);
        let column = self.characters_before(start) - self.characters_before(self.starts[line - 1]) + 1;
        Location { span: start..end, line, column }
    }

    fn characters_before(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        self.characters[block] + starting_in(&self.text.as_bytes()[block * BLOCK..offset])
    }
}

/// How many characters begin in these bytes: all bytes but the later ones of a character.
fn starting_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "ab\nµ = \"µs\"\n";
        let lines = Lines::new(text);
        let place = |offset| {
            let location = lines.locate(offset..offset + 1);
            (location.line, location.column)
        };
        assert_eq!(place(1), (1, 2));
        assert_eq!(place(3), (2, 1));
        assert_eq!(place(5), (2, 2));
        assert_eq!(lines.locate(4..5).span, 3..5, "half a character is widened");
        assert_eq!(place(900), (3, 1));
    }

    #[test]
    fn blocks_do_not_change_the_columns() {
        let text = "µ".repeat(BLOCK * 2) + "\n" + &"x".repeat(BLOCK);
        let lines = Lines::new(&text);
        for offset in [0, 2, BLOCK, BLOCK + 2, 3 * BLOCK, 4 * BLOCK + 1, 5 * BLOCK] {
            let Location { line, column, .. } = lines.locate(offset..offset);
            let before = &text[text[..offset].rfind('\n').map_or(0, |end| end + 1)..offset];
            assert_eq!(column, before.chars().count() + 1);
            assert_eq!(line, 1 + usize::from(offset > 4 * BLOCK));
        }
    }
}
