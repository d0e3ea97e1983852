//! What is said of mistakes: the place, what was expected, and what to write.

use talea_etcl::{Constraint, Event, Limits, ProblemKind};

/// What is said of a text that does not follow the grammar.
fn said(text: &str) -> String {
    let problem = Constraint::parse(text).map(|constraint| constraint.to_string()).expect_err(text);
    assert_eq!(problem.kind, ProblemKind::Syntax, "{text}: {problem}");
    problem.to_string()
}

#[test]
fn syntax_errors_name_the_place_and_the_remedy() {
    for (text, expected) in [
        ("a ==", "line 1, column 5: expected an operand, found the end; add what is missing"),
        ("a =\n", "line 1, column 3: expected an operator or operand, found \"=\"; write == to compare"),
        ("a =< b", "line 1, column 3: expected an operator or operand, found \"=\"; write <= or >="),
        (
            "a == 1\nand b & c",
            "line 2, column 7: expected an operator or operand, found \"&\"; write and, or",
        ),
        (
            "1 < a < 3",
            "line 1, column 7: expected an operator or the end, found \"<\"; comparisons do not chain; join two of them with and",
        ),
        (
            "a.b == 1",
            "line 1, column 2: expected an operator or the end, found \".\"; write $ before a name that a path begins with, as $name.member",
        ),
        (
            "a == \"x\"",
            "line 1, column 6: expected an operator or operand, found \"\\\"\"; write strings in single quotes: 'text'",
        ),
        ("a == 'x", "line 1, column 6: expected ' at the end of a string; close it with '"),
        (
            "a == '\\n'",
            "line 1, column 7: expected \\' or \\\\ in a string, found another escape; write \\\\ for a backslash",
        ),
        (
            "(a == 1",
            "line 1, column 8: expected an operator, or \")\" for the \"(\" at line 1, column 1, found the end; close the parenthesis",
        ),
        (
            "a == 1)",
            "line 1, column 7: expected an operator or the end, found \")\"; remove it, or open it with ( before",
        ),
        (
            "not not a",
            "line 1, column 5: expected an operand behind \"not\", found the keyword not; write not (not ...), or leave both out",
        ),
        (
            "$default == 1",
            "line 1, column 2: expected a name behind \"$\", found the keyword default; write \\ before a name that is a keyword",
        ),
        (
            "min a",
            "line 1, column 1: expected an operand, found the keyword min; write \\ before a name that is a keyword",
        ),
        (
            "1. == a",
            "line 1, column 1: expected a digit behind the point of a number; write it with a digit, as 1.0",
        ),
        (
            "default $a",
            "line 1, column 9: expected \"._d\" at the end of what stands behind \"default\"; name a union's discriminator, as default $name._d",
        ),
        (
            "1 in 'a'",
            "line 1, column 6: expected a sequence behind \"in\", found a string; name one, as $name or name",
        ),
        (
            "$a[x] == 1",
            "line 1, column 4: expected an index behind \"[\", found the name x; write a whole number from 0",
        ),
        (
            "$a('x') == 1",
            "line 1, column 4: expected a name behind \"(\", found a string; write the name of a property without quotes, with \\ before it if it is a keyword",
        ),
        (
            "$a._size == 1",
            "line 1, column 4: expected a name, found _size; begin names with a letter; with \"_\" begin only _length, _d, _type_id and _repos_id",
        ),
        (
            "-a == 1",
            "line 1, column 2: expected a number behind the sign, found the name a; write 0 - x for what is no literal",
        ),
        (
            "a AND b",
            "line 1, column 3: expected an operator or the end, found the name AND; keywords are in lower case",
        ),
        (
            "ö == 1",
            "line 1, column 1: expected an operator or operand, found \"ö\"; use letters, digits, _ and the operators of the language; anything else belongs in strings",
        ),
        (
            "-9223372036854775809 < a",
            "line 1, column 1: expected a number of at most 64 bits, found a smaller one; write at least -9223372036854775808",
        ),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn columns_count_characters() {
    assert!(said("'öäü' == a b").starts_with("line 1, column 12: "), "{}", said("'öäü' == a b"));
}

#[test]
fn limits_are_kept_and_named() {
    let small = Limits {
        length_bytes: 60,
        nodes: 8,
        depth: 3,
        string_bytes: 4,
        identifier_bytes: 6,
        evaluation_steps: 100,
    };
    let refused = |text: &str| {
        let problem =
            Constraint::parse_within(text, small).map(|constraint| constraint.to_string()).expect_err(text);
        assert_eq!(problem.kind, ProblemKind::Limit, "{text}: {problem}");
        problem.message
    };
    assert_eq!(refused(&" ".repeat(61)), "the text has 61 bytes; at most 60 are accepted");
    assert_eq!(
        refused("a or b or c or d or e or f or g or h or i"),
        "more than 8 parts; no more are accepted"
    );
    assert_eq!(refused("((((a))))"), "more than 3 levels; no more are accepted");
    assert_eq!(refused("$a.1.2.3.4"), "more than 3 levels; no more are accepted");
    assert_eq!(refused("a == 'fünf'"), "a string of 5 bytes; at most 4 are accepted");
    assert_eq!(refused("abcdefg"), "a name of 7 bytes; at most 6 are accepted");
    let above = Limits { depth: 65, ..Limits::DEFAULT };
    let problem = Constraint::parse_within("TRUE", above).map(|constraint| constraint.to_string());
    let problem = problem.expect_err("it cannot be granted");
    assert!(problem.message.contains("depth = 65 is above 64"), "{problem}");
}

#[test]
fn what_can_only_end_in_an_error_is_refused_when_it_is_compiled() {
    for (text, message) in [
        ("5 + 'al' == 5", "+ takes numbers; 'al' is a string"),
        ("$a == 1 + 'x'", "+ takes numbers; 'x' is a string"),
        ("5 ~ 'a'", "~ takes strings; 5 is an integer"),
        ("'a' and 'b'", "expected a boolean; 'a' is a string"),
        ("1 + 1", "expected a boolean; 1 + 1 is an integer"),
        ("not 1.5", "expected a boolean; 1.5 is a float"),
        ("'abc' == 0", "'abc' is a string and 0 is an integer, which cannot be compared"),
        ("TRUE and 1 == TRUE", "1 is an integer and TRUE is a boolean, which cannot be compared"),
        ("$domain_name > 5", "$domain_name is a string and 5 is an integer, which cannot be compared"),
        ("1 in $domain_name", "in takes a sequence; $domain_name is a string"),
        ("$.header.fixed_header.name == 'x'", "FixedEventHeader has no member name"),
        (
            "$.filterable_data == 1",
            "$.filterable_data is a name/value list and 1 is an integer, which cannot be compared",
        ),
        ("$.filterable_data.a == 1", "a name/value list has nothing of this kind"),
    ] {
        let constraint = Constraint::parse(text).expect("it parses");
        let problem = constraint.compile::<Event>().expect_err(text);
        assert_eq!(problem.message, message, "{text}");
    }
    // Where it may be passed over, it is accepted and noted.
    for text in ["$a == 1 or 'x' > 5", "FALSE and (1/0)", "$a and not 5", "exist $.header.nothing"] {
        let constraint = Constraint::parse(text).expect("it parses");
        let (_, warnings) = constraint.compile_with_warnings::<Event>().expect(text);
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
    }
}
