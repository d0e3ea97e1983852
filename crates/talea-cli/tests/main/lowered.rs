//! Hierarchies that `talea run` leaves to the kernel.

use crate::support::{Running, eventually, example, folder, run, within, write};
use std::fs;
use std::process::{Child, Command};
use talea_linux::Tid;
use talea_linux::sched::{self, Policy, SchedError};

/// Whether real-time priorities are not permitted here, which is said on standard error then.
pub(crate) fn without_priorities() -> bool {
    match std::thread::spawn(|| sched::set_self(Policy::Fifo(13))).join().expect("it asks the kernel only") {
        Ok(()) => false,
        Err(error @ SchedError::PriorityNotPermitted { .. }) => {
            talea_measure::skip(error);
            true
        }
        Err(error) => panic!("{error}"),
    }
}

/// A program that uses its processor, for no longer than a test may take.
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let child = Command::new("sh").args(["-c", "ulimit -t 60; while :; do :; done"]).spawn();
        Hog(child.expect("a shell"))
    }

    fn policy(&self) -> Result<Policy, SchedError> {
        sched::get(Tid::from_raw(self.0.id() as i32))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn the_check_says_what_would_be_lowered() {
    let json = run(&["check", &example("figure-1.toml"), "--json"]).exits(0).json();
    let parts = json["hierarchies"][0]["lowering"].as_array().expect("every part").clone();
    let why = |name: &str| {
        let part = parts.iter().find(|part| part["name"] == name).expect("a part");
        part["stays_because"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(parts.len(), 7);
    assert!(why("J").contains("several schedulers") && why("voice").contains("below PS"), "{parts:?}");
    let shown = run(&["check", &example("figure-1.toml")]).exits(0).stdout;
    assert!(
        shown.contains("not lowered to the kernel") && shown.contains("J: it is under several"),
        "{shown}"
    );
    if without_priorities() {
        return;
    }
    let shown = run(&["check", &example("priorities.toml")]).exits(0).stdout;
    for part in ["lowered to the kernel, which does all of it", "alarm", "SCHED_FIFO 13", "SCHED_FIFO 10"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

/// The file may be meant for another machine, so it is no error.
#[test]
fn the_check_warns_of_programs_that_are_not_there() {
    let place = folder();
    let text = "[system]\nname = \"absent\"\n[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
        [[thread]]\nname = \"gone\"\nrun = [\"/no/such/program\", \"-x\"]\nunder = [{ scheduler = \"FP\", priority = 1 }]\n\
        [[thread]]\nname = \"shell\"\nrun = [\"sh\"]\nunder = [{ scheduler = \"FP\", priority = 2 }]\n";
    let file = write(&place, "absent.toml", text);
    let done = run(&["check", &file]).exits(0);
    assert!(
        done.stderr.contains("absent.toml:8: thread \"gone\": there is no program /no/such/program"),
        "{}",
        done.stderr
    );
    assert!(!done.stderr.contains("shell"), "{}", done.stderr);
    let json = run(&["check", &file, "--json"]).exits(0).json();
    assert_eq!(json["hierarchies"][0]["warnings"].as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn a_run_tells_what_was_lowered_and_a_run_of_the_infrastructure_does_not() {
    if without_priorities() {
        return;
    }
    let lowered = run(&["run", &example("priorities.toml"), "--for", "300ms"]).exits(0);
    for part in ["lowered to the kernel", "SCHED_FIFO 12", "not judged", "vision"] {
        assert!(lowered.stdout.contains(part), "{part} is not in\n{}", lowered.stdout);
    }
    assert!(lowered.stderr.contains("--no-lower"), "{}", lowered.stderr);
    let managed =
        run(&["run", &example("priorities.toml"), "--for", "300ms", "--no-lower", "--fail-on", "never"]);
    let managed = managed.exits(0);
    assert!(
        !managed.stdout.contains("not judged") && !managed.stdout.contains("lowered"),
        "{}",
        managed.stdout
    );
    for table in ["response p50", "node local: guarantees", "node local: processor time"] {
        assert!(lowered.stdout.contains(table) && managed.stdout.contains(table), "{table}");
    }
}

/// What the kernel tells of its switches and wake-ups is held against the priorities that it was given.
#[test]
fn the_kernel_keeps_the_priorities_of_a_lowered_run() {
    if without_priorities() {
        return;
    }
    let (place, system) = (folder(), example("priorities.toml"));
    let file = within(&place, "both.talea");
    let record = ["trace", "record", "--kernel", "switches,wakeups", "--out", &file, "--"];
    let command = [env!("CARGO_BIN_EXE_talea"), "run", &system, "--for", "1s", "--fail-on", "never"];
    let done = run(&[&record[..], &command].concat());
    if done.status == 2 && done.stderr.contains("the kernel withholds events") {
        talea_measure::skip(&done.stderr);
        return;
    }
    done.exits(0);
    // Longer than any machine of use takes to wake a thread up, shorter than the bursts that others wait for.
    let verify = ["trace", "verify", &system, &file, "--tolerance", "5ms"];
    let json = run(&[&verify[..], &["--json"]].concat()).json();
    let rules = json["decisions"]["rules"].as_array().expect("the kernel told");
    let priority = rules.iter().find(|rule| rule["rule"] == "priority").expect("a rule");
    assert!(priority["cases"].as_u64() > Some(10), "{json}");
    assert_eq!(priority["violations"], 0, "{json}");
    let text = run(&verify).stdout;
    assert!(text.contains("switches of the kernel") && text.contains("priority"), "{text}");
}

/// Of every response the parts are the whole, and whom the kernel preferred is one whose priority is higher.
#[test]
fn a_lowered_run_is_explained_by_the_priorities_of_the_kernel() {
    if without_priorities() {
        return;
    }
    let place = folder();
    run(&[
        "run",
        &example("priorities.toml"),
        "--for",
        "500ms",
        "--out",
        &within(&place, "out"),
        "--fail-on",
        "never",
    ])
    .exits(0);
    let trace = within(&place, "out/trace.talea");
    let json = run(&["trace", "explain", &trace, "--worst", "--json"]).exits(0).json();
    let explanations = json["explanations"].as_array().expect("explanations");
    let mut higher = 0;
    for one in explanations {
        let intervals = one["intervals"].as_array().expect("intervals");
        let number =
            |of: &serde_json::Value, key: &str| of[key].as_i64().unwrap_or_else(|| panic!("{key}: {of}"));
        let sum: i64 = intervals.iter().map(|part| number(part, "to_ns") - number(part, "from_ns")).sum();
        assert_eq!(sum, number(one, "response_ns"), "{one}");
        let above = ["alarm", "arm", "grip", "vision"];
        let place = |name: &str| above.iter().position(|known| *known == name).expect("a thread");
        let own = place(one["subject"]["task"].as_str().expect("a name"));
        for part in intervals.iter().filter(|part| part["cause"] == "kernel-higher") {
            higher += 1;
            assert!(place(part["blamed"].as_str().expect("a name")) < own, "{part}");
        }
        // Between jobs nobody tells what the processor did, but the kernel, which was not asked.
        for cause in ["idle", "wake-up", "dispatch", "kernel-untold"] {
            assert!(intervals.iter().all(|part| part["cause"] != cause), "{cause} is in {one}");
        }
    }
    assert!(higher > 0, "{json}");
}

#[test]
fn control_of_a_lowered_run_is_refused_with_the_remedy() {
    if without_priorities() {
        return;
    }
    let place = folder();
    let name = format!("lowered-{}", std::process::id());
    let text = fs::read_to_string(example("priorities.toml")).expect("the example");
    let file =
        write(&place, "system.toml", &text.replace("name = \"priorities\"", &format!("name = \"{name}\"")));
    let mut running = Running::start(&["run", &file, "--for", "120s", "--json"]);
    eventually("the run is found", || run(&["ctl"]).exits(0).stdout.contains(&name));
    for command in
        [&["list"][..], &["remove", "vision"][..], &["replace", "FP", "--kind", "sfq", "--force"][..]]
    {
        let refused = run(&[&["ctl", &name][..], command].concat()).exits(1);
        for part in ["is lowered", "--no-lower"] {
            assert!(refused.stderr.contains(part), "{part} is not in\n{}", refused.stderr);
        }
    }
    let listed = run(&["ctl"]).exits(0).stdout;
    let line = listed.lines().find(|line| line.contains(&name)).expect("it is listed");
    assert!(line.contains("no: ") && line.contains("--no-lower"), "{line}");
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish().exits(0).json();
    assert_eq!(outcome["run"]["hierarchies"][0]["scheduled_by"], "kernel");
}

/// The guardian takes real-time priorities back from whoever has them when the run can no more.
#[test]
fn a_killed_run_leaves_nobody_at_a_real_time_priority() {
    if without_priorities() {
        return;
    }
    let place = folder();
    let hog = Hog::start();
    let text = fs::read_to_string(example("priorities.toml")).expect("the example");
    let vision = "work = { burst = { uniform = [\"20ms\", \"40ms\"] }, period = \"100ms\" }";
    let text = text
        .replace("name = \"priorities\"", &format!("name = \"lowered-and-killed-{}\"", std::process::id()))
        .replace(vision, &format!("pid = {}", hog.0.id()));
    let file = write(&place, "system.toml", &text);
    let mut running = Running::start(&["run", &file, "--for", "120s", "--json"]);
    eventually("the program has its priority", || hog.policy() == Ok(Policy::Fifo(10)));
    running.kill();
    eventually("the program is an ordinary one again", || hog.policy() == Ok(Policy::Other));
}

/// Two nodes, one of which the kernel can schedule by itself.
const ONE_OF_TWO: &str = r#"
    [system]
    name = "one-of-two"
    [[node]]
    name = "a"
    cpus = [0]
    [[node]]
    name = "b"
    cpus = [1]
    [[scheduler]]
    name = "F"
    node = "a"
    kind = "fifo"
    [[thread]]
    name = "first"
    work = "cpu-bound"
    under = [{ scheduler = "F" }]
    [[scheduler]]
    name = "S"
    node = "b"
    kind = "proportional-share"
    quantum = "2ms"
    [[thread]]
    name = "often"
    work = { burst = "1ms", period = "10ms" }
    under = [{ scheduler = "S", share = 2 }]
    [[thread]]
    name = "always"
    work = "cpu-bound"
    under = [{ scheduler = "S", share = 1 }]
"#;

/// The trace has records of decisions of one node, and none of the other.
#[test]
fn what_was_lowered_is_not_judged_beside_what_was_not() {
    if without_priorities() {
        return;
    }
    let place = folder();
    let (system, out) = (write(&place, "one-of-two.toml", ONE_OF_TWO), within(&place, "out"));
    let ran = run(&["run", &system, "--for", "300ms", "--out", &out, "--fail-on", "never"]).exits(0);
    assert!(ran.stdout.contains("lowered to the kernel"), "{}", ran.stdout);
    let trace = within(&place, "out/trace.talea");
    let verified = run(&["trace", "verify", &system, &trace]);
    let told = "the kernel decides about 1 more, which nobody judged";
    let words = verified.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(told), "{}", verified.stdout);
    let json = run(&["trace", "verify", &system, &trace, "--json"]).json();
    let rules = json["decisions"]["rules"].as_array().expect("decisions are judged");
    let jobs = rules.iter().find(|rule| rule["rule"] == "jobs").expect("a rule");
    assert!(jobs["cases"].as_u64() > Some(0) && jobs["violations"] == 0, "{jobs}");
    for edge in json["promises"]["edges"].as_array().expect("edges") {
        assert_eq!(edge["watched"], edge["node"] == "b", "{edge}");
    }
}
