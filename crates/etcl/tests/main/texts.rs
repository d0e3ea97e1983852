//! No text makes the parser or the compiler panic, and what they accept prints and parses again.

use crate::held_text;
use crate::tapes;
use proptest::collection::vec;
use proptest::prelude::*;
use talea_etcl::{Constraint, Event, Limits};
use talea_time::Instant;

const FRAGMENTS: [&str; 52] = [
    "and",
    "or",
    "not",
    "in",
    "exist",
    "default",
    "TRUE",
    "FALSE",
    "min",
    "$",
    ".",
    "(",
    ")",
    "[",
    "]",
    "~",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    ".5",
    "1.",
    "1e3",
    "1e999",
    "'a'",
    "'",
    "\\",
    "\\'",
    "\\and",
    "_length",
    "_d",
    "_type_id",
    "a",
    "threshold",
    "$domain_name",
    "ö",
    "\u{0}",
    "=",
    "!",
    " ",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..100)) {
        held_text::hold(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_fragments(mut tape in tapes(60), spaced in any::<bool>()) {
        let parts = tape.list(40, |tape| tape.pick(&FRAGMENTS));
        held_text::hold(&parts.join(if spaced { " " } else { "" }));
    }
}

#[test]
fn what_nests_deeply_or_goes_on_is_refused_and_does_not_overflow_the_stack() {
    let deep = format!("{}1{}", "(".repeat(400_000), ")".repeat(400_000));
    let nested = format!("{}$a{} == 1", "1 - (".repeat(62), ")".repeat(62));
    let run = move || {
        let limits = Limits { evaluation_steps: 1 << 20, ..Limits::GREATEST };
        let refused = |text: &str| match Constraint::parse_within(text, limits) {
            Ok(_) => panic!("it is accepted"),
            Err(problem) => problem.message,
        };
        assert!(refused(&deep).contains("64 levels"));
        assert!(refused(&vec!["a"; 17_000].join(" + ")).contains("16384 parts"));
        // A long chain is no deep tree.
        for text in [vec!["a"; 16_000].join(" or "), nested.clone()] {
            let constraint = Constraint::parse_within(&text, limits).expect("it fits");
            let program = constraint.compile::<Event>().expect("it fits");
            assert!(program.evaluate(&Event::new("a", "b", "c"), Instant::ZERO).is_err());
        }
    };
    // Threads with real-time priorities have small stacks.
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread").join().expect("no panic");
}

/// A word of the language counted as a name, so that within short names nothing could be asked for at all.
#[test]
fn words_of_the_language_are_no_names_that_may_be_too_long() {
    let limits = Limits { identifier_bytes: 3, ..Limits::DEFAULT };
    for text in
        ["", "TRUE", "exist $a or FALSE", "default $abc._d", "$a._type_id == $b._repos_id and $a._length > 0"]
    {
        held_text::hold(text);
        let constraint = Constraint::parse_within(text, limits).expect(text);
        Constraint::parse_within(&constraint.to_string(), limits).expect(text);
    }
    for text in ["abcd", "$abcd", "\\TRUE == 1", "_abc"] {
        let problem = Constraint::parse_within(text, limits).expect_err(text);
        assert_eq!(problem.message, "a name of 4 bytes; at most 3 are accepted", "{text}");
    }
}
