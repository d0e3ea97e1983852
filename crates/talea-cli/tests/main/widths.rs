//! Help and results fit a hundred columns.

use crate::support::{Running, errors_fit, eventually, folder, root, run, within, write};
use rustix::process::Signal;

/// Fails if what the command prints has a longer line.
fn fits(arguments: &[&str]) -> String {
    run(arguments).fits().stdout
}

/// The help of a command and of all those below it, and how many there are.
fn help_fits(command: &[&str]) -> usize {
    let help = fits(&[&["help"], command].concat());
    let long = fits(&[command, &["--help"]].concat());
    fits(&[command, &["-h"]].concat());
    assert!(long.contains("\nExample"), "talea {} --help has no example", command.join(" "));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    // What a command does may go on below, further to the right.
    let names =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let below = names.filter(|name| *name != "help").map(|name| help_fits(&[command, &[name]].concat()));
    1 + below.sum::<usize>()
}

#[test]
fn help_of_every_command_fits() {
    let commands = help_fits(&[]);
    assert!(commands > 30, "only {commands} commands were found");
}

#[test]
fn results_of_every_example_fit() {
    let examples = std::fs::read_dir(root().join("examples")).expect("the folder is there");
    let paths = examples.map(|entry| entry.expect("readable").path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let place = folder();
        let (system, out) = (path.display().to_string(), within(&place, "out"));
        let trace = within(&place, "out/trace.talea");
        fits(&["check", &system, "--explain"]);
        fits(&["sim", &system, "--for", "500ms", "--out", &out]);
        fits(&["trace", "show", &trace]);
        fits(&["trace", "stats", &trace, "--jobs"]);
        fits(&["trace", "verify", &system, &trace]);
        let text = std::fs::read_to_string(&path).expect("readable");
        if !text.contains("[[scheduler]]") {
            fits(&["check", &system, "--sensitivity"]);
            fits(&["compare", &system, "--sim", "--for", "200ms"]);
            fits(&["trace", "explain", &trace, "--worst"]);
        }
    }
    for command in [&["doctor"][..], &["lab", "list"], &["trace", "list"]] {
        fits(command);
    }
}

#[test]
fn errors_fit_too() {
    let folder = root().join("crates/model/tests/malformed");
    let malformed = std::fs::read_dir(&folder).expect("the folder is there");
    let names = malformed.map(|entry| entry.expect("readable").file_name().into_string().expect("a text"));
    for name in names.filter(|name| name.ends_with(".toml")) {
        errors_fit(&folder, &["check", &name]);
    }
    let long = "a-scheduler-with-a-name-that-is-rather-long-as-names-go ".repeat(4);
    errors_fit(&folder, &["ctl", &long, "list"]);
    errors_fit(&folder, &["check", "no-such-file.toml"]);
}

/// Two nodes, names as long as those of real systems, and times from a millisecond to seconds.
const LONG_TASKS: &str = r#"
[system]
name = "autonomous-ground-vehicle-perception-and-control"

[[node]]
name = "perception-computer-left"
cpus = [0]

[[node]]
name = "vehicle-control-computer"
cpus = [0]

[[task]]
name = "lidar-point-cloud-segmentation"
period = "100ms"
criticality = "high"
[[task.subtask]]
name = "ground-plane-removal"
node = "perception-computer-left"
wcet = "20ms"
[[task.subtask]]
name = "obstacle-clustering"
node = "vehicle-control-computer"
wcet = "15ms"

[[task]]
name = "trajectory-follower-controller"
period = "1ms"
criticality = "very-high"
node = "vehicle-control-computer"
wcet = "300us"

[[task]]
name = "telemetry-compression-and-upload"
period = "7s"
deadline = "9s"
criticality = "very-low"
node = "perception-computer-left"
wcet = "5s"
overrun = "skip-next"
"#;

#[test]
fn long_names_and_large_numbers_of_tasks_fit() {
    let place = folder();
    let (system, out) = (write(&place, "system.toml", LONG_TASKS), within(&place, "out"));
    let trace = within(&place, "out/trace.talea");
    fits(&["check", &system, "--explain", "--sensitivity", "--advise"]);
    // A million jobs.
    fits(&["sim", &system, "--for", "1000s"]);
    fits(&["compare", &system, "--sim", "--for", "10s"]);
    fits(&["run", &system, "--rt", "off", "--for", "300ms", "--fail-on", "never", "--out", &out]);
    fits(&["trace", "stats", &trace, "--jobs"]);
    fits(&["trace", "explain", &trace, "--worst"]);
    fits(&["trace", "verify", &system, &trace]);
    // In a pipe each record is one line however long its names are, so that `grep` finds whole records.
    let [lines, json] =
        [&[][..], &["--json"]].map(|form| run(&[&["trace", "show", &trace][..], form].concat()));
    assert_eq!(lines.stdout.lines().count(), json.stdout.lines().count());
}

const LONG_HIERARCHY: &str = r#"
[system]
name = "SYSTEM"

[[node]]
name = "infotainment-head-unit"

[[scheduler]]
name = "root-fixed-priorities"
kind = "fixed-priority"

[[scheduler]]
name = "reservations-of-the-drivers-displays"
kind = "reservation"
under = [{ scheduler = "root-fixed-priorities", priority = 2000 }]

[[scheduler]]
name = "passenger-applications-shares"
kind = "proportional-share"
quantum = "2500us"
under = [{ scheduler = "root-fixed-priorities", priority = 1 }]

[[thread]]
name = "instrument-cluster-renderer"
work = { burst = "4ms", period = "16666667ns" }
requires = "RESBH 5123456ns 16666667ns"
under = [{ scheduler = "reservations-of-the-drivers-displays", guarantee = "RESBH 5123456ns 16666667ns" }]

[[thread]]
name = "passenger-video-player-thread"
work = { burst = "4ms", period = "41666667ns" }
under = [{ scheduler = "passenger-applications-shares", share = 4000 }]

[[thread]]
name = "background-map-tile-prefetcher"
work = { burst = "1ms", period = "41666667ns" }
under = [{ scheduler = "passenger-applications-shares", share = 1500, warp = "12345us" }]
"#;

#[test]
fn long_names_and_large_numbers_of_hierarchies_fit() {
    let place = folder();
    let name = format!("autonomous-ground-vehicle-multimedia-{}", std::process::id());
    let system = write(&place, "system.toml", &LONG_HIERARCHY.replace("SYSTEM", &name));
    fits(&["check", &system, "--explain"]);
    fits(&["sim", &system, "--for", "1000s", "--fail-on", "never"]);

    let out = within(&place, "out");
    let arguments = ["run", &system, "--for", "60s", "--fail-on", "never", "--out", &out];
    let mut running = Running::start(&arguments);
    let mut is_controlled = false;
    eventually("the run can be controlled, or is not permitted", || {
        is_controlled = run(&["ctl", &name, "list"]).status == 0;
        is_controlled || running.is_over()
    });
    if !is_controlled {
        let done = running.finish();
        assert!(done.stderr.contains("talea doctor"), "{}", done.stderr);
        return talea_measure::skip("hierarchies need real-time priorities, which are not permitted here");
    }
    for command in [&["ctl", &name, "list"][..], &["ctl"], &["trace", "list"], &["trace", "list", &name]] {
        fits(command);
    }
    running.signal(Signal::INT);
    running.finish().fits();
    fits(&["trace", "stats", &within(&place, "out/trace.talea"), "--jobs"]);
}
