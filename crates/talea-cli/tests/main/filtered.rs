//! `filter`: constraints on events in files.

use crate::support::{errors_fit, example, folder, run, talea, write};
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn the_answer_is_printed_and_the_exit_status() {
    let event = example("event.json");
    let asked = |expression: &str, status: i32| run(&["filter", expression, "--event", &event]).exits(status);
    assert_eq!(asked("threshold < 20 and 'bear' ~ text", 0).stdout, "true\n");
    assert_eq!(asked("threshold > 20", 1).stdout, "false\n");
    assert_eq!(asked("-1 in $readings", 1).stdout, "false\n");
    assert_eq!(asked("", 0).stdout, "true\n");
    let refused = asked("threshold > ", 2);
    assert!(
        refused.stdout.is_empty() && refused.stderr.contains("the constraint:1:13"),
        "{}",
        refused.stderr
    );
    let without = asked("$.remainder_of_body.hal == 2", 2);
    assert!(
        without.stderr.contains("the constraint:1:20") && without.stderr.contains("━━━━"),
        "{}",
        without.stderr
    );
    assert!(without.stderr.contains("help: "), "{}", without.stderr);
    assert!(asked("TRUE or 'a' > 5", 0).stderr.contains("warning: the constraint, line 1, column 9"));
    let now = run(&["filter", "$curtime == -5", "--event", &event, "--now", "-5"]).exits(0);
    assert_eq!(now.stdout, "true\n");
}

/// 1 ms after the beginning of 1970, in the calendar of the standard.
#[test]
fn times_of_the_event_are_on_the_clock_of_the_current_time() {
    let folder = folder();
    let event = |header: &str| {
        let text = format!(
            "{{\"domain_name\": \"A\", \"type_name\": \"B\", \"event_name\": \"\", \"variable_header\": {{{header}}}, \"filterable_data\": {{}}}}"
        );
        write(&folder, "event.json", &text)
    };
    let sound = event("\"StartTime\": 122192928000010000, \"Timeout\": 20000");
    let asked = |expression: &str, now: &str, status: i32| {
        run(&["filter", expression, "--event", &sound, "--now", now]).exits(status)
    };
    let held = "$.header.variable_header(StartTime) > $curtime and $Timeout == 2000000";
    assert_eq!(
        (asked(held, "999999", 0).stdout, asked(held, "1000000", 1).stdout),
        ("true\n".into(), "false\n".into())
    );
    asked("StartTime == 1000000 and not exist $StopTime", "0", 0);
    for wrong in ["\"StopTime\": 3", "\"StartTime\": \"noon\"", "\"Timeout\": -1"] {
        let refused = run(&["filter", "TRUE", "--event", &event(wrong)]).exits(2);
        assert!(refused.stderr.contains("in the header of the event is a time"), "{}", refused.stderr);
        assert!(refused.stderr.contains("help: "), "{}", refused.stderr);
    }
}

/// A user's field of the header, spelled out, and by its name before the field of the body that has the same.
#[test]
fn fields_of_the_header_are_found() {
    let folder = folder();
    let text = "{\"domain_name\": \"A\", \"type_name\": \"B\", \"event_name\": \"\", \
        \"variable_header\": {\"mission\": 7, \"leg\": \"home\"}, \"filterable_data\": {\"mission\": 8, \"size\": 3}}";
    let event = write(&folder, "fields.json", text);
    let asked = |expression: &str, status: i32| run(&["filter", expression, "--event", &event]).exits(status);
    asked("$.header.variable_header(mission) == 7 and $mission == 7 and mission == 7 and $.mission == 7", 0);
    asked("$.filterable_data(mission) == 8 and size == 3 and 'ho' ~ $leg", 0);
    asked("not exist $.header.variable_header(size) and $.header.variable_header._length == 2", 0);
    assert!(asked("$.header.variable_header(size) == 3", 2).stderr.contains("no such value"));
}

#[test]
fn parts_are_explained() {
    let event = example("event.json");
    let expression = "(severity == MINOR or threshold + 1 > 3 * pressure) and $nothing == 1";
    let done = run(&["filter", expression, "--event", &event, "--explain"]).exits(2);
    let expected = "\
error  (severity == MINOR or threshold + 1 > 3 * pressure) and $nothing == 1
true     severity == MINOR or threshold + 1 > 3 * pressure
false      severity == MINOR
MAJOR        severity
label        MINOR
true       threshold + 1 > 3 * pressure
16           threshold + 1
15             threshold
7.5          3 * pressure
2.5            pressure
error    $nothing == 1
error      $nothing    (the event has no such value)
";
    assert_eq!(done.stdout, expected);
    assert!(done.stderr.contains("the constraint:1:57"), "{}", done.stderr);
    let done =
        run(&["filter", "exist priority or severity > MINOR", "--event", &event, "--explain"]).exits(0);
    assert!(done.stdout.contains("-       severity > MINOR\n"), "{}", done.stdout);
}

#[test]
fn an_event_comes_from_standard_input_too() {
    let mut command = talea(&["filter", "$domain_name == 'Plant'", "--event", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let text = std::fs::read(example("event.json")).expect("there");
    child.stdin.take().expect("a pipe").write_all(&text).expect("somebody reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"true\n"[..]));
    let empty = run(&["filter", "TRUE", "--event", "-"]).exits(2);
    assert!(empty.stderr.contains("standard input:1:1"), "{}", empty.stderr);
}

#[test]
fn what_is_no_event_is_said_with_file_line_and_remedy() {
    let place = folder();
    for (text, says, remedy) in [
        ("{\n \"domain_name\": 1\n}", "bad.json:2:17", "write a string"),
        ("{\n \"domain\": \"x\"\n}", "bad.json:2:2", "the keys are domain_name"),
        ("{\n nonsense", "bad.json:2:2", "write JSON"),
    ] {
        let file = write(&place, "bad.json", text);
        let done = run(&["filter", "TRUE", "--event", &file]).exits(2);
        assert!(done.stderr.contains(says) && done.stderr.contains(remedy), "{}", done.stderr);
    }
    errors_fit(place.path(), &["filter", "TRUE", "--event", "bad.json"]);
    let long = format!("{} threshold =< 3", "threshold < 20 and ".repeat(40));
    errors_fit(place.path(), &["filter", &long, "--event", "bad.json"]);
    let absent = run(&["filter", "TRUE", "--event", "no-such.json"]).exits(2);
    assert!(absent.stderr.contains("cannot read no-such.json: there is no such file"), "{}", absent.stderr);
}
