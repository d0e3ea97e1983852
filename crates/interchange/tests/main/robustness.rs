//! No bytes make a reader panic, and whatever is accepted is a system that every format can be made of.

use crate::files::{EXAMPLES, text};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use talea_interchange::{Format, export, import, read};
use talea_model::{FILE_BYTES_LIMIT, System};

fn must_not_panic(format: Format, text: &str) {
    let _ = Format::of_text(text);
    match import(format, "fuzz.json", text) {
        Ok(imported) => {
            let system = System::new(imported.value).expect("what was accepted is valid");
            let written = system.to_toml();
            let again = talea_model::parse("again.toml", &written, "".as_ref()).expect("and is written well");
            assert_eq!(again.system, system);
            for format in Format::ALL {
                let exported = export(*format, &system);
                import(*format, "again", &exported.value)
                    .unwrap_or_else(|rejected| panic!("{rejected}\n{}", exported.value));
            }
        }
        Err(rejected) => {
            assert!(rejected.list().iter().all(|problem| !problem.remedy.is_empty()), "{rejected}");
            let size = rejected.text().len();
            let spans = rejected.list().iter().filter_map(|problem| problem.location.as_ref());
            spans.for_each(|location| assert!(location.span.end <= size, "{rejected}"));
        }
    }
}

const FRAGMENTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\n",
    "#",
    "//",
    "/*",
    "*/",
    "\\",
    "\\u12",
    "-1",
    "1e999",
    "0x",
    "NaN",
    "99999999999999999999",
    "null",
    "true",
    "µ",
    "\u{feff}",
    "\u{0}",
    "\"tasks\" : ",
    "\"run\" : ",
    "\"a\" : ",
    "\"timer\" : { \"ref\" : \"unique\", \"period\" : 10 }",
    "\"suspend\"",
    "\"resume\" : \"a\"",
    "\"phases\" : {",
    "\"loop\" : 3",
    "\"instance\" : 2",
    "\"policy\" : \"SCHED_DEADLINE\"",
    "\"cpus\" : [0, 1]",
    "\"exec\" : 5",
    "<",
    ">",
    "/>",
    "</",
    "<!--",
    "-->",
    "&",
    "&amp;",
    "&#0;",
    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
    "=",
    "'",
    "<tasks>",
    "<simulation>",
    "<task name=\"a\" id=\"1\" period=\"5\" deadline=\"5\" WCET=\"1\"/>",
    " followed_by=\"1\"",
    " etm=\"acet\"",
    "task",
    "period",
    "wcet",
    "_ms",
    ";",
    "\t",
    "\r\n",
    "uniform 1ms 2ms",
    "list ",
    "5ms",
    "[] ",
];

fn formats() -> impl Strategy<Value = Format> {
    select(Format::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(format in formats(), bytes in vec(any::<u8>(), 0..300)) {
        must_not_panic(format, &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_fragments(format in formats(), fragments in vec(select(FRAGMENTS), 0..40)) {
        must_not_panic(format, &fragments.concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn mutated_examples(
        (format, name) in select(&EXAMPLES[..]),
        edits in vec((any::<Index>(), 0usize..8, select(FRAGMENTS)), 1..6),
    ) {
        let mut text: Vec<char> = text(name).chars().collect();
        for (place, removed, inserted) in edits {
            let start = place.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, inserted.chars());
        }
        must_not_panic(format, &text.into_iter().collect::<String>());
    }

    /// Numbers and names are what changes the meaning without breaking the syntax.
    #[test]
    fn examples_with_other_words(
        (format, name) in select(&EXAMPLES[..]),
        edits in vec((any::<Index>(), select(&["0", "1", "7", "-1", "2147483647", "a", "pose", "run", "loop"][..])), 1..5),
    ) {
        let text = text(name);
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '.';
        let mut pieces: Vec<&str> = text.split_inclusive(|character| !is_word(character)).collect();
        for (place, word) in &edits {
            let index = place.index(pieces.len());
            if pieces[index].starts_with(is_word) && index + 1 < pieces.len() {
                pieces.insert(index + 1, &pieces[index][pieces[index].len() - 1..]);
                pieces[index] = word;
            }
        }
        must_not_panic(format, &pieces.concat());
    }

    #[test]
    fn truncated_examples((format, name) in select(&EXAMPLES[..]), cut in any::<Index>()) {
        let text = text(name);
        must_not_panic(format, &text[..text.floor_char_boundary(cut.index(text.len()))]);
    }

    #[test]
    fn examples_of_another_format((_, name) in select(&EXAMPLES[..]), format in formats()) {
        must_not_panic(format, &text(name));
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_an_overflow() {
    for open in ["{\"a\":", "[", "{\"tasks\":", "/* { */ {\"a\" : ["] {
        must_not_panic(Format::RtApp, &format!("{{\"a\":{}", open.repeat(100_000)));
    }
    for open in ["<a>", "<tasks><task>", "<simulation>"] {
        must_not_panic(Format::SimSo, &format!("<simulation>{}", open.repeat(100_000)));
    }
    let close = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    must_not_panic(Format::SimSo, &close("<a>", "</a>"));
    must_not_panic(Format::RtApp, &close("[", "]"));
}

/// Texts that would cost the square of their length if anything compared everything with everything.
#[test]
fn large_inputs_cost_what_they_are_long() {
    let many = 20_000;
    let rt_app = |inside: &str| format!("{{ \"tasks\" : {{ {inside} }} }}");
    let timer = "\"timer\" : { \"ref\" : \"unique\", \"period\" : 10000 }";
    let resumes: String = (0..many).map(|number| format!("\"resume\" : \"w{number}\",")).collect();
    let head = format!("\"h\" : {{ \"instance\" : 1000, \"run\" : 1, {resumes} {timer} }}");
    let waiting = "\"w\" : { \"instance\" : 9000, \"suspend\" : \"w1\", \"run\" : 1 }";
    for text in [
        "#\n".repeat(many) + &rt_app(&head),
        "/**/".repeat(many) + &rt_app(&format!("{head}, {waiting}")),
        rt_app(&format!(
            "\"a\" : {{ \"instance\" : 10000, \"phases\" : {{ \"p\" : {{ \"loop\" : 1000000, \"run\" : 1, {timer} }} }} }}"
        )),
        rt_app(&format!("\"a\" : {{ \"run\" : 1, {timer} }},").repeat(many / 10)),
        rt_app(&"\"a\" : 1.5,".repeat(many)),
        rt_app(&format!("\"a\" : {{ {} }}", "\"x\" : 1,".repeat(many))),
    ] {
        must_not_end_badly(Format::RtApp, &text);
    }
    let task = |id: usize, more: &str| {
        format!("<task name=\"a\" id=\"{id}\" period=\"5\" deadline=\"5\" WCET=\"1\" {more}/>")
    };
    let chain: String = (0..many / 10)
        .map(|id| task(id, &format!("task_type=\"APeriodic\" followed_by=\"{}\"", id + 1)))
        .collect();
    let heads: String = (0..many / 10).map(|id| task(many + id, "followed_by=\"0\"")).collect();
    let attributes: String = (0..many).map(|number| format!("a{number}=\"\" ")).collect();
    for text in [
        format!("<simulation><tasks>{chain}{heads}</tasks></simulation>"),
        format!("<simulation {attributes}/>"),
        format!("<simulation><tasks>{}</tasks></simulation>", "<task/>".repeat(many)),
    ] {
        must_not_end_badly(Format::SimSo, &text);
    }
    for text in [
        format!("task,period_ms,wcet_ms\n{}", "a,1,1\n".repeat(many)),
        format!(
            "task,period,wcet,subtask,after\n{}",
            (0..many).map(|row| format!("a,1s,1ms,s{row},q\n")).collect::<String>()
        ),
        format!("task,period,wcet{}\na,1s,1ms\n", ",x".repeat(many)),
        "\"".to_owned() + &"a,".repeat(many),
        "#\n".repeat(many) + "task,period,wcet\na,1s,x\n",
    ] {
        must_not_end_badly(Format::Csv, &text);
    }
}

/// Without the ways out, which write a large system several times.
fn must_not_end_badly(format: Format, text: &str) {
    if let Ok(imported) = import(format, "large", text) {
        System::new(imported.value).expect("what was accepted is valid");
    }
}

#[test]
fn files_that_are_no_text_are_refused_before_they_fill_the_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("file");
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("writable");
        read(&path).expect_err("refused").to_string()
    };
    assert!(message(&[b'a', b'\n', 0xff]).contains("not UTF-8: line 2"));
    assert!(message(&vec![b' '; FILE_BYTES_LIMIT as usize + 1]).contains("at most 16 MiB are read"));
    assert!(read("/no/such/file".as_ref()).expect_err("refused").to_string().contains("check the path"));
    assert!(read(folder.path()).expect_err("refused").to_string().contains("name the file in it"));
    assert_eq!(read("/dev/zero".as_ref()).map_err(|rejected| rejected.list().len()), Err(1));
    std::fs::write(&path, "\u{feff}task,period_ms,wcet_ms\na,5,1\n").expect("writable");
    import(Format::Csv, "bom", &read(&path).expect("text")).expect("a table");
    assert!(
        import(Format::Csv, "empty", " \n").expect_err("empty").to_string().contains("the file is empty")
    );
}
