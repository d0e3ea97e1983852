//! No text makes the reader panic, and what it accepts is a system.

use crate::held_file::hold;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const GOOD: &[&str] = &[
    include_str!("../good/everything.toml"),
    include_str!("../good/inline.toml"),
    include_str!("../good/data.toml"),
    include_str!("../../../../examples/ofp.toml"),
    include_str!("../../../../examples/figure-1.toml"),
    include_str!("../../../../examples/resource-kernel.toml"),
];

const FRAGMENTS: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'''",
    "\"\"\"",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "\\",
    "\\u0000",
    "-1",
    "1e999",
    "0x",
    "nan",
    "9999999999999999999999",
    "[[task]]\n",
    "[task]\n",
    "[task.subtask]\n",
    "[[task.subtask]]\n",
    "[[node]]\n",
    "[[scheduler]]\n",
    "[[chain]]\n",
    "path = [\"imu.read\", \"log\"]\n",
    "trigger = \"external\"\n",
    "trigger = { output = \"imu.read.sample\" }\n",
    "inputs = [{ name = \"i\", from = \"imu.read.sample\" }]\n",
    "outputs = [{ name = \"o\", fields = { x = [] } }]\n",
    "take = \"each\", full = \"block\"",
    "[[thread]]\n",
    "under = [{ scheduler = \"FP\" }]\n",
    "kind = \"join\"\n",
    "RESBH 1/3ns 5",
    "[system]\n",
    "name",
    "task",
    "node",
    "exec = { trace = \".\" }\n",
    "after = []\n",
    "\u{feff}",
    "µ",
    "\u{0}",
    "true",
    "1979-05-27",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..300)) {
        hold(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_fragments(fragments in vec(proptest::sample::select(FRAGMENTS), 0..40)) {
        hold(&fragments.concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn mutated_good_files(
        file in 0..GOOD.len(),
        edits in vec((any::<Index>(), 0usize..8, proptest::sample::select(FRAGMENTS)), 1..6),
    ) {
        let mut text: Vec<char> = GOOD[file].chars().collect();
        for (place, removed, inserted) in edits {
            let start = place.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, inserted.chars());
        }
        hold(&text.into_iter().collect::<String>());
    }

    #[test]
    fn truncated_good_files(file in 0..GOOD.len(), cut in any::<Index>()) {
        let text = GOOD[file];
        let end = text.floor_char_boundary(cut.index(text.len()));
        hold(&text[..end]);
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_an_overflow() {
    for open in ["[", "{a=", "[{a="] {
        hold(&format!("a = {}", open.repeat(100_000)));
    }
    hold(&format!("{}a = 1", "a.".repeat(100_000)));
    hold(&format!("[{}a]", "a.".repeat(100_000)));
}
