//! `import` and `export`: files of other programs, what is lost on the way, and what is refused.

use crate::support::{Done, example, folder, root, run, within, write};
use std::fs;

/// An example file of another program.
fn foreign(name: &str) -> String {
    root().join("crates/interchange/tests/data").join(name).display().to_string()
}

/// Plays a system in virtual time. Whether it meets its deadlines is not the translation's concern.
fn runs(system: &str) {
    run(&["sim", system, "--for", "1s", "--fail-on", "never"]).exits(0);
}

fn refused<Argument: AsRef<str>>(arguments: &[Argument], says: &[&str]) -> Done {
    let done = run(arguments).exits(2);
    assert_eq!(done.stdout, "");
    for words in says {
        assert!(done.stderr.contains(words), "{words:?} is not in:\n{}", done.stderr);
    }
    done
}

#[test]
fn every_example_becomes_a_system_that_runs() {
    let place = folder();
    for name in [
        "gripper.json",
        "conveyor.json",
        "reservations.json",
        "mixer.xml",
        "bottling.xml",
        "plant.csv",
        "arm.csv",
    ] {
        let system = within(&place, &format!("{name}.toml"));
        let done = run(&["import", &foreign(name), "--out", &system]).exits(0);
        assert_eq!(done.stdout, "");
        runs(&system);
    }
}

#[test]
fn losses_are_shown_and_stand_at_the_top_of_the_result() {
    let done = run(&["import", &foreign("gripper.json")]).exits(0);
    let said = "lost: task \"pose\", lock, unlock: operations hold no locks";
    assert!(done.stderr.contains(&format!("gripper.json:18:4: warning: {said}")), "{}", done.stderr);
    assert!(done.stderr.contains("note: left out: global, duration, calibration, logdir"), "{}", done.stderr);
    assert!(done.stdout.starts_with("# Imported from "), "{}", done.stdout);
    assert!(done.stdout.contains(&format!("# - {said}")), "{}", done.stdout);
    assert!(done.stdout.contains("[system]\nname = \"gripper\"\n"), "{}", done.stdout);
    let place = folder();
    runs(&write(&place, "gripper.toml", &done.stdout));
}

#[test]
fn a_system_that_a_table_can_say_comes_back_unchanged() {
    let place = folder();
    let [table, back] = ["hello.csv", "hello.toml"].map(|name| within(&place, name));
    let hello = example("hello.toml");
    let done = run(&["export", &hello, "--to", "csv", "--strict", "-o", &table]).exits(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    run(&["import", &table, "--strict", "-o", &back]).exits(0);
    let simulate =
        |system: &str| run(&["sim", system, "--for", "2s", "--json"]).exits(0).json()["report"].clone();
    assert_eq!(simulate(&back), simulate(&hello));
}

#[test]
fn exports_of_every_example_are_read_back() {
    let place = folder();
    for name in ["hello.toml", "ofp.toml", "overload.toml", "two-nodes.toml"] {
        for (format, extension) in [("rt-app", "json"), ("simso", "xml"), ("csv", "csv")] {
            let file = within(&place, &format!("{name}.{extension}"));
            let printed = run(&["export", &example(name), "--to", format]).exits(0).stdout;
            run(&["export", &example(name), "--out", &file]).exits(0);
            assert_eq!(fs::read_to_string(&file).expect("written"), printed, "the extension says {format}");
            let system = run(&["import", &file]).exits(0).stdout;
            runs(&write(&place, "back.toml", &system));
        }
    }
}

#[test]
fn strict_translations_write_nothing_if_anything_is_lost() {
    let place = folder();
    let out = within(&place, "out");
    for arguments in [
        ["import", &foreign("conveyor.json"), "--from", "rt-app"],
        ["export", &example("ofp.toml"), "--to", "simso"],
    ] {
        let done = run(&[&arguments[..], &["--strict", "--out", &out]].concat()).exits(1);
        assert!(done.stderr.contains("nothing is written"), "{}", done.stderr);
        assert!(!fs::exists(&out).expect("readable"));
        let done = run(&[&arguments[..], &["--strict"]].concat()).exits(1);
        assert_eq!(done.stdout, "");
    }
    run(&["import", &foreign("reservations.json"), "--strict"]).exits(0);
}

#[test]
fn the_format_is_told_by_the_content_where_the_name_does_not() {
    let place = folder();
    for name in ["gripper.json", "mixer.xml", "plant.csv"] {
        let text = fs::read_to_string(foreign(name)).expect("there");
        let nameless = write(&place, "tasks", &text);
        let said = run(&["import", &nameless]).exits(0).stdout;
        assert!(said.contains("[system]\nname = \"tasks\"\n"), "{said}");
    }
    let text = write(&place, "text", "two words\n");
    refused(&["import", &text], &["does not look like any format", "--from rt-app"]);
    refused(&["import", &text, "--from", "csv"], &["text:1:1", "unknown column", "the columns are task"]);
    refused(&["import", &text, "--from", "cheddar"], &["cheddar", "rt-app, simso, csv"]);
    refused(&["import", &example("hello.toml")], &["called like a system file", "talea check"]);
    refused(&["export", &example("hello.toml")], &["not said what to export to", "--to csv"]);
}

#[test]
fn wrong_files_are_shown_at_their_places() {
    let place = folder();
    let json = "{ \"tasks\" : {\n  \"a\" : { \"run\" : 1.5,\n    \"timer\" : { \"perod\" : 10000 } } } }\n";
    let json = write(&place, "bad.json", json);
    refused(
        &["import", &json],
        &[
            "bad.json:2:19",
            "\"1.5\", not a whole number",
            "microseconds",
            "bad.json:3:17",
            "\"period\"",
            "1 error, 1 warning",
        ],
    );
    let xml = write(&place, "bad.xml", "<simulation>\n<tasks>\n</simulation>\n");
    refused(&["import", &xml], &["bad.xml:3:", "not well-formed"]);
    let csv = write(&place, "bad.csv", "task,perod_ms,wcet\na,1,1ms\n");
    refused(&["import", &csv], &["bad.csv:1:6", "did you mean \"period_ms\"?"]);
    let bytes = place.path().join("bytes.csv");
    fs::write(&bytes, [b't', 0xff]).expect("writable");
    refused(&["import", &bytes.display().to_string()], &["not UTF-8", "save it"]);
    refused(&["import", &within(&place, "none.json")], &["none.json", "check the path"]);
    refused(&["import", &place.path().display().to_string()], &["name the file in it"]);
    refused(&["export", &within(&place, "none.toml"), "--to", "csv"], &["there is no such file"]);
}

#[test]
fn nothing_is_replaced_unless_that_is_meant() {
    let place = folder();
    let there = write(&place, "there.toml", "precious");
    let hello = write(&place, "hello.csv", "task,period_ms,wcet_ms\na,10,1\n");
    refused(&["import", &hello, "-o", &there], &["exists already", "--force"]);
    assert_eq!(fs::read_to_string(&there).expect("there"), "precious");
    run(&["import", &hello, "-o", &there, "--force"]).exits(0);
    refused(&["export", &there, "--to", "csv", "-o", &hello], &["exists already"]);
    refused(&["import", &hello, "-o", &hello, "--force"], &["written over"]);
    refused(&["import", &hello, "-o", &within(&place, "no/where.toml")], &["does not exist"]);
    refused(&["import", &hello, "-o", &place.path().display().to_string()], &["is a folder"]);
    refused(&["import", &hello, "--force"], &["--out"]);
    assert_eq!(fs::read_to_string(&hello).expect("there").lines().count(), 2);
}

#[test]
fn each_command_shows_an_example() {
    for command in ["import", "export"] {
        let help = run(&[command, "--help"]).exits(0).stdout;
        assert!(help.contains("Examples:\n  talea "), "{help}");
        assert!(help.contains("rt-app, simso or csv"), "{help}");
    }
}
