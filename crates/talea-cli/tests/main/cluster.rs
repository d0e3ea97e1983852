//! A run of several nodes, whose processes are lost one way or another.

use crate::support::{Running, TRACE, eventually, example, folder, run, within, write};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// `check` and `sim` say beforehand what a run refuses, and the run says it once, though each of its processes finds it.
#[test]
fn a_trigger_of_another_node_is_warned_of_and_refused() {
    let place = folder();
    let file = write(
        &place,
        "apart.toml",
        "[system]\nname = \"apart\"\n[[node]]\nname = \"a\"\ncpus = [0]\n[[node]]\nname = \"b\"\ncpus = [1]\n\
         [[task]]\nname = \"p\"\nnode = \"a\"\nperiod = \"20ms\"\nwcet = \"1ms\"\noutputs = [{ name = \"v\" }]\n\
         [[task]]\nname = \"c\"\nnode = \"b\"\ndeadline = \"20ms\"\nwcet = \"1ms\"\ntrigger = { output = \"p.v\" }\n",
    );
    let warning = "warning: task \"c\" is released by output \"v\" of task \"p\", which is on another node";
    assert!(run(&["check", &file]).exits(0).stderr.contains(warning));
    assert!(run(&["sim", &file, "--for", "100ms"]).exits(0).stderr.contains(warning));
    let refused = run(&["run", &file, "--rt", "off", "--for", "100ms"]).exits(2);
    let times = |what: &str| refused.stderr.matches(what).count();
    assert_eq!((times("warning:"), times("error:")), (1, 1), "{}", refused.stderr);
    assert!(refused.stderr.contains("task \"c\" is released by output \"p.v\""), "{}", refused.stderr);
}

/// A run of two nodes that goes on until it is ended from outside, once it has begun.
fn begun(place: &tempfile::TempDir) -> Running {
    begun_with(place, &[])
}

fn begun_with(place: &tempfile::TempDir, options: &[&str]) -> Running {
    let out = within(place, "out");
    let arguments = [
        "run",
        &example("two-nodes.toml"),
        "--rt",
        "off",
        "--forever",
        "--json",
        "--fail-on",
        "never",
        "--out",
        &out,
    ];
    let mut running = Running::start(&[&arguments, options].concat());
    running.await_file(&place.path().join("out").join(TRACE));
    running
}

/// The process that `parent` runs the node in.
fn member(parent: u32, node: &str) -> u32 {
    let processes = fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let wanted = format!("TALEA_CLUSTER_NODE={node}");
    let is_it = |process: &u32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        parent_of(*process) == Some(parent)
            && environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    processes.into_iter().find(is_it).unwrap_or_else(|| panic!("no process of node {node}"))
}

/// State and parent of a process; the name before them may hold blanks.
fn state_of(process: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn parent_of(process: u32) -> Option<u32> {
    state_of(process).map(|(_, parent)| parent)
}

/// It has ended with all its threads, of which the last one closes what it had open, even if nobody has asked how.
fn is_gone(process: u32) -> bool {
    let has_others =
        || fs::read_dir(format!("/proc/{process}/task")).is_ok_and(|threads| threads.count() > 1);
    state_of(process).is_none_or(|(state, _)| state == 'Z' && !has_others())
}

fn send(process: u32, signal: Signal) {
    kill_process(pid_of(process), signal).expect("it is ours");
}

fn pid_of(process: u32) -> Pid {
    Pid::from_raw(process.try_into().expect("a process number")).expect("above zero")
}

/// The run's directory in memory, as a member is told.
fn directory_of(member: u32) -> PathBuf {
    let environment = fs::read(format!("/proc/{member}/environ")).expect("it is ours");
    let told = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"TALEA_CLUSTER_DIRECTORY="));
    PathBuf::from(OsStr::from_bytes(told.expect("a member is told")))
}

#[test]
fn a_killed_node_ends_the_run_and_is_named() {
    let place = folder();
    let mut running = begun(&place);
    send(member(running.id(), "vision"), Signal::KILL);
    let done = running.finish().exits(0);
    let json = done.json();
    let lost = &json["run"]["mishaps"]["lost_nodes"][0];
    assert_eq!(lost["node"], "vision", "{json}");
    assert!(lost["how"].as_str().is_some_and(|how| how.contains("SIGKILL")), "{lost}");
    assert!(done.stderr.contains("node vision ended before the run did"), "{}", done.stderr);
    assert_eq!(json["run"]["stopped"], "interrupted");
}

/// What waits for a node that has left is told apart from what is late.
#[test]
fn a_run_goes_on_without_a_killed_node_and_is_explained() {
    let place = folder();
    let mut running = begun_with(&place, &["--keep-going"]);
    let trace = place.path().join("out").join(TRACE).display().to_string();
    let shows = |what: &str| run(&["trace", "show", &trace]).stdout.contains(what);
    eventually("a grasp has come to its end", || shows("grasp.move #0"));
    send(member(running.id(), "vision"), Signal::KILL);
    eventually("messages are refused", || shows("message-lost"));
    running.signal(Signal::INT);
    let done = running.finish().exits(0);
    let json = done.json();
    assert_eq!(json["run"]["mishaps"]["lost_nodes"][0]["node"], "vision", "{json}");
    assert!(
        done.stderr.contains("messages were not sent, for the node that they were for had ended"),
        "{}",
        done.stderr
    );
    let vision = &json["report"]["nodes"][1];
    assert!(vision["left_ns"].as_i64().is_some_and(|at| at > 0), "{vision}");
    let grasp = json["report"]["tasks"]
        .as_array()
        .and_then(|tasks| tasks.iter().find(|task| task["name"] == "grasp"));
    let grasp = grasp.expect("a task");
    assert!(grasp["messages_lost"].as_u64() >= Some(2) && grasp["cut_off"].as_u64() >= Some(1), "{grasp}");

    let explained = run(&["trace", "explain", &trace, "--task", "grasp", "--limit", "1000"]).exits(0);
    let words = explained.words();
    assert!(
        words.contains(" was lost ") && words.contains("because node vision had left the run"),
        "{words}"
    );
    let explained =
        run(&["trace", "explain", &trace, "--task", "grasp", "--limit", "1000", "--json"]).exits(0).json();
    let of = |key: &'static str| {
        let all = explained["explanations"].as_array().expect("a list").iter();
        all.filter(move |one| one["stranding"].get(key).is_some()).count()
    };
    assert!(of("message_of") >= 1, "{explained}");
    let unfinished = explained["explanations"].as_array().expect("a list").iter();
    let unfinished = unfinished.filter(|one| one["outcome"] == "unfinished").count();
    assert_eq!(of("message_of") + of("node_left"), unfinished, "none is late without a reason");
}

/// A run over imposed links loses what a simulation loses, and both say so of the instances that this cuts off.
#[test]
fn imposed_links_lose_the_messages_that_a_simulation_loses() {
    let place = folder();
    let text = fs::read_to_string(example("two-nodes.toml")).expect("readable");
    let lossy = text.replace("delay = \"500us\"", "delay = \"500us\"\nloss = 0.2");
    assert_ne!(text, lossy);
    let system = write(&place, "lossy.toml", &lossy);
    let lost = |name: &str, command: &[&str]| {
        let out = within(&place, name);
        run(&[command, &["--for", "1s", "--fail-on", "never", "--out", &out]].concat()).exits(0);
        let trace = place.path().join(name).join(TRACE).display().to_string();
        let arguments = ["trace", "explain", &trace, "--task", "grasp", "--limit", "1000"];
        let words = run(&arguments).exits(0).words();
        let json = run(&[&arguments[..], &["--json"]].concat()).exits(0).json();
        assert!(words.contains("on the link from node"), "{words}");
        let all = json["explanations"].as_array().expect("a list").clone();
        let instances = |of: &dyn Fn(&serde_json::Value) -> bool| -> BTreeSet<u64> {
            all.iter().filter(|one| of(one)).filter_map(|one| one["subject"]["instance"].as_u64()).collect()
        };
        (instances(&|one| one["stranding"]["why"] == "link"), instances(&|one| one["outcome"] == "missed"))
    };
    let (simulated, _) = lost("sim", &["sim", &system]);
    let (real, late) = lost("run", &["run", &system, "--rt", "off", "--impose-links"]);
    // A busy machine does not get as far with all of them in a second.
    assert!(!real.is_empty() && real.is_subset(&simulated), "{real:?} of {simulated:?}");
    assert!(late.is_disjoint(&simulated), "{late:?} completed, of which {simulated:?} cannot");
    let refused = run(&["run", &example("ofp.toml"), "--impose-links"]).exits(2);
    assert!(refused.stderr.contains("has no links to impose"), "{}", refused.stderr);
}

#[test]
fn an_interrupt_ends_all_nodes() {
    let place = folder();
    let mut running = begun(&place);
    let members = ["control", "vision"].map(|node| member(running.id(), node));
    running.signal(Signal::INT);
    let json = running.finish().exits(0).json();
    assert_eq!(json["run"]["stopped"], "interrupted");
    assert_eq!(json["run"]["mishaps"]["lost_nodes"], serde_json::json!([]));
    assert!(members.into_iter().all(is_gone));
}

#[test]
fn no_node_outlives_a_killed_coordinator() {
    let place = folder();
    let mut running = begun(&place);
    let members = ["control", "vision"].map(|node| member(running.id(), node));
    let directory = directory_of(members[0]);
    running.kill();
    for process in members {
        eventually("the nodes of a killed run end", || is_gone(process));
    }
    assert!(!directory.exists(), "the last node to end removes {}", directory.display());
}

/// A frozen node keeps the run from ending after the first interrupt, until its time is up.
#[test]
fn a_second_interrupt_does_not_wait_for_a_frozen_node() {
    let place = folder();
    let mut running = begun(&place);
    let [control, vision] = ["control", "vision"].map(|node| member(running.id(), node));
    let directory = directory_of(vision);
    send(vision, Signal::STOP);
    running.signal(Signal::INT);
    eventually("the first interrupt ends the other node", || is_gone(control));
    running.signal(Signal::INT);
    let coordinator = running.id();
    eventually("the second interrupt ends the coordinator", || is_gone(coordinator));
    // Linux thaws a process group that has lost its last parent, so it may have ended already.
    let _ = kill_process(pid_of(vision), Signal::CONT);
    assert_eq!(running.finish().status, 130);
    eventually("a thawed node ends without its coordinator", || is_gone(vision));
    assert!(!directory.exists(), "the last node to end removes {}", directory.display());
}
