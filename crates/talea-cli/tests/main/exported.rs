//! What is at the place of an export or a recording, and beside it, when things go wrong.

use crate::support::{Done, Running, TRACE, eventually, example, folder, run, within};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The trace of a simulated run of an example, in a folder of its own.
fn traced(place: &tempfile::TempDir, system: &str, length: &str) -> String {
    let out = within(place, system);
    run(&["sim", &example(system), "--for", length, "--fail-on", "never", "--out", &out]).exits(0);
    Path::new(&out).join(TRACE).display().to_string()
}

/// The files of a folder, with what is in them.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable"));
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("in UTF-8");
        (name, fs::read(entry.path()).unwrap_or_default())
    };
    entries.map(file).collect()
}

/// A file, or the files of a folder, with what is in them.
fn content(place: &Path) -> BTreeMap<String, Vec<u8>> {
    match fs::read(place) {
        Ok(bytes) => [(String::new(), bytes)].into(),
        Err(_) => files(place),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("in UTF-8")).collect();
    names.sort();
    names
}

/// Where no file may be longer than 512 bytes, as on a full disk; the signal for that is ignored.
fn run_short_of_room(arguments: &[&str]) -> Done {
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let command =
        Command::new("sh").args(["-c", script, "sh", env!("CARGO_BIN_EXE_talea")]).args(arguments).output();
    command.expect("sh runs").into()
}

#[test]
fn a_ctf_export_is_replaced_as_a_whole_or_not_at_all() {
    let place = folder();
    let of_two = traced(&place, "two-nodes.toml", "1s");
    let of_one = traced(&place, "ofp.toml", "1s");
    let around = place.path().join("around");
    let ctf = around.join("ctf").display().to_string();
    run(&["trace", "export", &of_two, "--ctf", &ctf]).exits(0);
    let before = files(Path::new(&ctf));
    assert!(before.contains_key("cpu_1"), "{:?}", before.keys());

    let failed = run_short_of_room(&["trace", "export", &of_one, "--ctf", &ctf]).exits(2);
    assert!(failed.stderr.contains(&format!("cannot write {ctf}: ")), "{}", failed.stderr);
    assert!(failed.stderr.contains("is as it was before"), "{}", failed.stderr);
    assert_eq!(files(Path::new(&ctf)), before);
    let new = around.join("new").display().to_string();
    let failed = run_short_of_room(&["trace", "export", &of_one, "--ctf", &new]).exits(2);
    assert!(failed.stderr.contains(&format!("there is no {new}")), "{}", failed.stderr);
    assert_eq!(names(&around), ["ctf"], "drafts are removed");

    run(&["trace", "export", &of_one, "--ctf", &ctf]).exits(0);
    assert_eq!(names(Path::new(&ctf)), ["cpu_0", "elsewhere", "metadata"]);
    run(&["trace", "export", &of_one, "--ctf", &new]).exits(0);
    assert_eq!(files(Path::new(&ctf)), files(Path::new(&new)), "nothing is left of the earlier one");
    assert_eq!(names(&around), ["ctf", "new"]);
}

fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it is not waited for");
    let (_, after_name) = stat.rsplit_once(')').expect("the name is in brackets");
    after_name.trim_start().starts_with(['T', 'Z'])
}

/// Whether it is there and its writer has locked it.
fn is_locked(draft: &Path) -> bool {
    let Ok(file) = fs::File::open(draft) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// An export that is stopped with its draft under way, and the draft.
fn stopped_export(trace: &str, format: &str, place: &Path) -> (Running, PathBuf) {
    let around = place.parent().expect("it is in a folder");
    let drafts = || names(around).into_iter().filter(|name| name.starts_with(".talea-draft-"));
    // One that was over before it could be stopped has left no draft, and another one is tried.
    for _ in 0..50 {
        for stale in drafts().map(|name| around.join(name)) {
            let removed = if stale.is_dir() { fs::remove_dir_all(&stale) } else { fs::remove_file(&stale) };
            removed.expect("nobody else is here");
        }
        let mut export = Running::start(&["trace", "export", trace, format, &place.display().to_string()]);
        let mut draft = None;
        eventually("the export has begun or is over", || {
            draft = drafts().next().map(|name| around.join(name));
            draft.is_some() || export.is_over()
        });
        if export.is_over() {
            continue;
        }
        export.signal(Signal::STOP);
        eventually("the export has stopped", || is_stopped(export.id()));
        // One that was stopped between making its draft and locking it is a dead one to others, and would make another.
        match draft.filter(|draft| is_locked(draft)) {
            Some(draft) => return (export, draft),
            None => drop(export),
        }
    }
    panic!("every export was over at once");
}

#[test]
fn drafts_of_the_dead_are_removed_and_those_of_the_living_are_not() {
    let place = folder();
    let trace = traced(&place, "ofp.toml", "60s");
    for (format, name) in [("--csv", "out.csv"), ("--ctf", "out")] {
        let around = place.path().join(format);
        fs::create_dir(&around).expect("writable");
        let (mut export, draft) = stopped_export(&trace, format, &around.join(name));
        let other = around.join("other.svg").display().to_string();
        run(&["trace", "export", &trace, "--svg", &other]).exits(0);
        assert!(draft.exists(), "its writer is only stopped");
        export.kill();
        drop(export);
        assert!(draft.exists(), "nobody can do anything at a SIGKILL");
        run(&["trace", "export", &trace, "--svg", &other]).exits(0);
        assert!(!draft.exists(), "{draft:?}");
    }
}

#[test]
fn an_interrupted_export_leaves_nothing() {
    let place = folder();
    let trace = traced(&place, "ofp.toml", "60s");
    for (format, name) in [("--csv", "out.csv"), ("--ctf", "out")] {
        let around = place.path().join(format);
        fs::create_dir(&around).expect("writable");
        let (mut export, _) = stopped_export(&trace, format, &around.join(name));
        export.signal(Signal::INT);
        export.signal(Signal::CONT);
        let done = export.finish();
        assert!(done.status == 130 || done.status == 0, "{}: {}", done.status, done.stderr);
        // The signal can come when it has its place already. Then it is whole.
        let left = names(&around);
        assert!(left.is_empty() && done.status == 130 || left == [name], "{}: {left:?}", done.status);
        if !left.is_empty() {
            let whole = place.path().join(format!("whole-{name}"));
            run(&["trace", "export", &trace, format, &whole.display().to_string()]).exits(0);
            assert_eq!(content(&around.join(name)), content(&whole));
        }
    }
}

#[test]
fn standard_output_has_the_export_and_nothing_else() {
    let place = folder();
    let trace = traced(&place, "hello.toml", "1s");
    let file = within(&place, "out.csv");
    run(&["trace", "export", &trace, "--csv", &file]).exits(0);
    let whole = fs::read_to_string(&file).expect("there");
    let piped = run(&["trace", "export", &trace, "--csv", "/dev/stdout"]).exits(0);
    assert_eq!(piped.stdout, whole);
    assert_eq!(piped.stderr, "written: /dev/stdout\n");
    // A reader that goes away has read enough.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_talea"));
    command.args(["trace", "export", &trace, "--csv", "/dev/stdout"]).stdout(writer);
    let done: Done = command.output().expect("it starts").into();
    assert_eq!(done.exits(0).stderr, "");
    // Into a file that has something already, as with >>.
    let appended = place.path().join("appended");
    fs::write(&appended, "before\n").expect("writable");
    let output = fs::OpenOptions::new().append(true).open(&appended).expect("there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_talea"));
    command.args(["trace", "export", &trace, "--csv", "/dev/stdout"]).stdout(output).stderr(Stdio::null());
    assert!(command.status().expect("it starts").success());
    assert_eq!(fs::read_to_string(&appended).expect("there"), format!("before\n{whole}"));
}

/// A pipe stands for every place that is no file: a device of whoever may replace it, above all.
#[test]
fn a_recording_replaces_nothing_but_files() {
    let place = folder();
    let pipe = within(&place, "pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo").success());
    let record = |out: &str| run(&["trace", "record", "--kernel", "off", "--out", out, "--", "true"]);
    let refused = record(&pipe).exits(2);
    assert!(refused.stderr.contains("takes things in order only"), "{}", refused.stderr);
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&fs::metadata(&pipe).expect("there").file_type()));
    assert_eq!(names(place.path()), ["pipe"]);

    // Where a link leads, it goes on leading; and what a killed recorder left goes.
    let (link, file) = (within(&place, "link.talea"), within(&place, "file.talea"));
    fs::write(&file, "an earlier one").expect("writable");
    std::os::unix::fs::symlink(&file, &link).expect("writable");
    fs::write(within(&place, ".file.talea.talea-draft"), "half").expect("writable");
    record(&link).exits(0);
    assert_eq!(fs::read_link(&link).expect("still one").display().to_string(), file);
    assert!(fs::read(&file).expect("there").starts_with(b"TALEATRC"));
    assert_eq!(names(place.path()), ["file.talea", "link.talea", "pipe"]);
}
