//! What the user gets for wrong input: exit status 2, what is wrong and what to do, and nothing on standard output.

use crate::support::{Done, example, folder, run, talea, within, write};
use std::fs::OpenOptions;

fn refused<Argument: AsRef<str>>(arguments: &[Argument], says: &[&str]) -> Done {
    let done = run(arguments).exits(2);
    assert_eq!(done.stdout, "");
    for words in says {
        assert!(done.stderr.contains(words), "{words:?} is not in:\n{}", done.stderr);
    }
    done
}

#[test]
fn system_files() {
    let place = folder();
    for command in ["check", "sim", "run", "compare"] {
        refused(&[command, "no-such.toml"], &["no-such.toml", "there is no such file", "check the path"]);
    }
    refused(&["check", &place.path().display().to_string()], &["this is a directory"]);
    let text = "[system]\nname = \"x\"\n\n[[task]]\nname = \"a\"\nperiode = \"10ms\"\nwcet = \"1ms\"\n";
    let misspelt = write(&place, "misspelt.toml", text);
    refused(&["check", &misspelt], &["misspelt.toml:6:1", "periode", "help:", "period"]);
    let unfinished = write(&place, "unfinished.toml", "[system\n");
    refused(&["sim", &unfinished], &["unfinished.toml:1", "help:"]);
    let empty = write(&place, "empty.toml", "");
    refused(&["check", &empty], &["empty.toml", "empty", "[system]"]);
}

#[test]
fn options() {
    let hello = example("hello.toml");
    for command in ["sim", "run"] {
        refused(&[command, &hello, "--for", "0s"], &["--for", "longer than zero"]);
        refused(&[command, &hello, "--for", "5"], &["--for", "no unit", "5ms"]);
        refused(&[command, &hello, "--for=-5s"], &["--for", "negative"]);
        refused(&[command, &hello, "--for", "99999999999h"], &["--for", "292 years"]);
        refused(&[command, &hello, "--strategy", "rmss"], &["rmss", "rms", "muf", "criticality"]);
        refused(&[command, &hello, "--sample", "0s"], &["--sample"]);
        refused(&[command, &hello, "--seed", "-1"], &["--seed"]);
    }
    refused(&["run", &hello, "--rt", "maybe"], &["maybe", "strict", "warn", "off"]);
    refused(&["run", &hello, "--tail", "long"], &["off", "adaptive"]);
    refused(&["run", &hello, "--slots", "0"], &["1..=256"]);
    refused(&["run", &hello, "--for", "1s", "--forever"], &["--forever"]);
    refused(&["compare", &hello, "--sim", "--rt", "off"], &["--rt", "--sim"]);
    refused(&["simulate", &hello], &["simulate", "sim"]);
    refused(&["lab", "run", "strategy"], &["no experiment \"strategy\"", "strategies"]);
}

#[test]
fn what_a_running_hierarchy_cannot_be_given() {
    let whole = "a share is a whole number from 1 to";
    let share = refused(&["ctl", "x", "change", "y", "--share", "-3"], &["-3", "--share", whole]);
    assert!(!share.stderr.contains("tip:"), "{}", share.stderr);
    refused(&["ctl", "x", "change", "y", "--share", "0"], &[whole]);
    let kinds = refused(
        &["ctl", "x", "replace", "y", "--kind", "lanes"],
        &["it is none of", "fixed-priority", "edf"],
    );
    assert_eq!(kinds.stderr.matches("lanes").count(), 1, "{}", kinds.stderr);
}

#[test]
fn quanta_too_short_to_be_run() {
    let place = folder();
    let text = std::fs::read_to_string(example("figure-1.toml")).expect("there");
    let short = write(&place, "short.toml", &text.replace("quantum = \"10ms\"", "quantum = \"1ns\""));
    let warned = run(&["check", &short, "--fail-on", "never"]).exits(0);
    let warning = [
        "short.toml:",
        "warning: the quantum of scheduler \"PS\", 1ns, is too short to be run",
        "at least 50us",
    ];
    assert!(warning.iter().all(|words| warned.stderr.contains(words)), "{}", warned.stderr);
}

#[test]
fn places_for_results() {
    let place = folder();
    let hello = example("hello.toml");
    let file = write(&place, "file", "in the way");
    let [nowhere, below] = ["nowhere/schedule.csv", "file/out"].map(|name| within(&place, name));
    let directory = place.path().display().to_string();
    for command in ["sim", "run"] {
        // If it ran before it looked, this would take longer than anybody waits.
        let arguments = |option, path| [command, &hello, "--for", "2562047h", option, path];
        refused(&arguments("--out", &file), &[&file, "in the way"]);
        refused(&arguments("--out", &below), &["in the way"]);
        refused(&arguments("--schedule", &nowhere), &[&nowhere, "does not exist"]);
        refused(&arguments("--schedule", &directory), &["this is a folder"]);
    }
}

#[test]
fn no_input_is_overwritten() {
    let place = folder();
    let text = std::fs::read_to_string(example("hello.toml")).expect("there");
    let system = write(&place, "hello.toml", &text);
    for command in ["sim", "run"] {
        refused(&[command, &system, "--for", "100ms", "--schedule", &system], &["written over"]);
        let out = within(&place, "out");
        let trace = within(&place, "out/trace.talea");
        refused(
            &[command, &system, "--for", "100ms", "--out", &out, "--schedule", &trace],
            &["written over"],
        );
    }
    assert_eq!(std::fs::read_to_string(&system).expect("there"), text);
}

#[test]
fn traces() {
    let place = folder();
    for (name, bytes, says) in [
        (
            "text",
            "this is a text that is long enough to be the head of a trace file, but it is none at all"
                .repeat(3),
            "not a Talea trace",
        ),
        ("empty", String::new(), "empty"),
    ] {
        let path = write(&place, name, &bytes);
        refused(&["trace", "show", &path], &[says, &path]);
        refused(&["trace", "stats", &path], &[says]);
        refused(&["trace", "export", &path, "--csv", &within(&place, "o.csv")], &[says]);
    }
    refused(&["trace", "show", &within(&place, "none")], &["No such file", "--out"]);
    let out = within(&place, "out");
    run(&["sim", &example("hello.toml"), "--for", "1s", "--out", &out]).exits(0);
    let trace = within(&place, "out/trace.talea");
    refused(&["trace", "show", &trace, "--task", "blnk"], &["no task \"blnk\"", "blink, log"]);
}

#[test]
fn processors_that_are_not_there() {
    let place = folder();
    let text = "[system]\nname = \"x\"\n[[node]]\nname = \"far\"\ncpus = [1000]\n\
                [[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"1ms\"\n";
    let far = write(&place, "far.toml", text);
    refused(&["run", &far, "--for", "1s"], &["node \"far\"", "cpu 1000"]);
    run(&["sim", &far, "--for", "1s"]).exits(0);
}

#[test]
fn a_full_device_is_an_error() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
        talea_measure::skip("there is no /dev/full");
        return;
    };
    let arguments = ["sim", &example("hello.toml"), "--for", "1s"];
    let output = talea(&arguments).stdout(full).output().expect("the command starts");
    let done = Done::from(output).exits(2);
    assert!(done.stderr.contains("cannot write to standard output"), "{}", done.stderr);
}
