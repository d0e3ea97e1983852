//! Full disks: what is told, what stays, and what goes on.

use crate::support::{Done, TRACE, example, folder, run, traced, within, write};
use std::path::Path;
use std::process::Command;

/// Runs `script` where the folder `$FULL` is a file system of so many bytes, with the command as `$TALEA`; `None`, with the
/// reason on standard error, where nothing can be mounted.
fn in_small_room(bytes: u32, place: &tempfile::TempDir, script: &str) -> Option<Done> {
    let full = within(place, "full");
    std::fs::create_dir(&full).expect("writable");
    let mount = format!("mount -t tmpfs -o size={bytes} tmpfs \"$FULL\"");
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{mount} || exit 99; {script}")]);
        command.env("FULL", &full).env("TALEA", env!("CARGO_BIN_EXE_talea")).output()
    };
    match inside("true") {
        Ok(probe) if probe.status.success() => {}
        Ok(probe) => {
            talea_measure::skip(format!("cannot mount: {}", String::from_utf8_lossy(&probe.stderr)));
            return None;
        }
        Err(error) => {
            talea_measure::skip(format!("there is no unshare: {error}"));
            return None;
        }
    }
    Some(inside(script).expect("it started before").into())
}

/// A system that writes a lot, for 400 ms.
fn busy(place: &tempfile::TempDir) -> String {
    let text = "[system]\nname = \"busy\"\n[[task]]\nname = \"tick\"\nperiod = \"1ms\"\nwcet = \"20us\"\n";
    write(place, "busy.toml", text)
}

#[test]
fn a_command_goes_on_when_its_recording_cannot() {
    let place = folder();
    let system = busy(&place);
    let script = format!(
        "$TALEA trace record --kernel off --out $FULL/r.talea -- \
         sh -c '$TALEA run {system} --rt off --for 400ms --fail-on never >/dev/null; echo went on; exit 7'
         echo status $?; ls -A $FULL; $TALEA trace show $FULL/r.talea"
    );
    let Some(done) = in_small_room(24 << 10, &place, &script) else { return };
    for part in [
        "No space left on device",
        "the command goes on and is not recorded any more",
        "note: the command ended with exit status: 7",
        "error: the recording is incomplete: writing ",
        "can be read",
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert!(done.stdout.starts_with("went on\nstatus 2\nr.talea\n"), "{}", done.stdout);
    assert!(done.words().contains("complete tick #0"), "{}", done.stdout);
}

#[test]
fn a_recording_without_room_for_its_head_leaves_nothing() {
    let place = folder();
    let system = busy(&place);
    let script = format!(
        "head -c 100000 /dev/zero > $FULL/fill 2>/dev/null
         $TALEA trace record --kernel off --out $FULL/r.talea -- \
         sh -c '$TALEA run {system} --rt off --for 400ms --fail-on never >/dev/null; exit 7'
         echo status $?; ls -A $FULL"
    );
    let Some(done) = in_small_room(16 << 10, &place, &script) else { return };
    assert_eq!(done.stdout, "status 2\nfill\n");
    assert!(done.stderr.contains("there is nothing to be read in"), "{}", done.stderr);
    assert!(done.stderr.contains("the command ended with exit status: 7"), "{}", done.stderr);
}

#[test]
fn runs_without_room_leave_no_empty_files() {
    let place = folder();
    let system = busy(&place);
    let script = format!(
        "head -c 100000 /dev/zero > $FULL/fill 2>/dev/null
         $TALEA sim {system} --for 1s --out $FULL/sim; echo status $?
         $TALEA run {system} --rt off --for 100ms --out $FULL/run; echo status $?
         ls -A $FULL/sim $FULL/run | grep -v :"
    );
    let Some(done) = in_small_room(16 << 10, &place, &script) else { return };
    assert_eq!(done.stdout.trim_end(), "status 2\nstatus 2");
    for name in ["sim", "run"] {
        let path = within(&place, &format!("full/{name}/{TRACE}"));
        assert!(done.stderr.contains(&format!("error: cannot create {path}: No space")), "{}", done.stderr);
    }
}

/// The limit of a file's length stands for the disk, so that this needs no privilege.
#[test]
fn a_simulation_loses_nothing_of_an_earlier_one() {
    let place = folder();
    let out = within(&place, "out");
    let system = example("hello.toml");
    run(&["sim", &system, "--for", "1s", "--out", &out]).exits(0);
    let content = || {
        let files = ["result.json", "schedule.csv", TRACE];
        files.map(|name| std::fs::read(Path::new(&out).join(name)).expect("there"))
    };
    let before = content();
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args([
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_talea"),
        "sim",
        &system,
        "--for",
        "2s",
        "--out",
        &out,
    ]);
    let done = Done::from(command.output().expect("sh runs")).exits(2);
    assert!(done.stderr.contains("is as it was before"), "{}", done.stderr);
    assert_eq!(done.stderr.matches("cannot ").count(), 1, "{}", done.stderr);
    assert!(before == content());
    let left = std::fs::read_dir(&out).expect("readable").count();
    assert_eq!(left, 3, "drafts are removed");
}

#[test]
fn a_device_that_takes_nothing_is_an_error_of_every_export() {
    let (_place, trace) = traced(&["sim", &example("ofp.toml"), "--for", "1s"]);
    let formats: &[&str] = &[
        "--perfetto",
        #[cfg(feature = "parquet")]
        "--parquet",
        "--csv",
        "--schedule",
        "--svg",
    ];
    for format in formats {
        let done = run(&["trace", "export", &trace, format, "/dev/full"]).exits(2);
        assert!(done.stderr.contains("cannot write /dev/full: "), "{format}: {}", done.stderr);
        assert!(done.stderr.contains("No space left"), "{format}: {}", done.stderr);
    }
    let done = run(&["trace", "explain", &trace, "--worst", "--svg", "/dev/full"]).exits(2);
    assert!(done.stderr.contains("cannot write /dev/full: No space left"), "{}", done.stderr);
}

#[test]
fn outputs_are_kept_apart_from_each_other_and_from_the_trace() {
    let (place, trace) = traced(&["sim", &example("hello.toml"), "--for", "1s"]);
    let at = |name: &str| within(&place, name);
    let refused = |arguments: &[&str], one: &str, other: &str| {
        let done = run(&[&["trace", "export", &trace], arguments].concat()).exits(2);
        assert!(done.stderr.contains(one) && done.stderr.contains(other), "{}", done.stderr);
    };
    let (ctf, inner) = (at("d/c"), at("d/c/metadata"));
    refused(&["--ctf", &ctf, "--csv", &inner], &ctf, &inner);
    refused(&["--csv", &at("x.csv"), "--schedule", &at("y/../x.csv")], &at("x.csv"), &at("y/../x.csv"));
    let around = at("out");
    refused(&["--ctf", &around], &around, &trace);
    refused(&["--csv", &trace], "written over", &trace);
    assert!(!Path::new(&ctf).exists() && !Path::new(&at("x.csv")).exists(), "nothing was written");
    run(&["trace", "show", &trace, "--limit", "1"]).exits(0);
}
