//! `talea ctl` on runs of real threads.

use crate::support::{Done, Running, alone, eventually, example, folder, run, within};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use talea_linux::proc::own_session;
use talea_record::{ThreadEntry, TraceFile};

/// A run of an example under a name of its own until it is ended, and that name. None, said on standard error, where hierarchies are
/// not permitted.
fn start(file: &str, system: &str, name: &str) -> Option<(Running, String)> {
    start_text(&fs::read_to_string(example(file)).expect("the example"), system, name, "120s")
}

/// The same of a text that describes a system, for so long.
fn start_text(text: &str, system: &str, name: &str, length: &str) -> Option<(Running, String)> {
    // What is promised then does not depend on this machine.
    start_in(&folder(), text, system, name, &["--for", length, "--no-slices"])
}

/// The same, of a file in this folder.
fn start_in(
    place: &tempfile::TempDir,
    text: &str,
    system: &str,
    name: &str,
    options: &[&str],
) -> Option<(Running, String)> {
    let name = format!("{name}-{}", std::process::id());
    let file = within(place, "system.toml");
    fs::write(&file, text.replace(&format!("\"{system}\""), &format!("\"{name}\""))).expect("a file");
    let mut running = Running::start(&[&["run", &file, "--json", "--fail-on", "never"], options].concat());
    loop {
        if run(&["ctl", &name, "list"]).status == 0 {
            return Some((running, name));
        }
        if running.is_over() {
            let done = running.finish();
            assert!(done.stderr.contains("talea doctor"), "{}", done.stderr);
            talea_measure::skip("hierarchies need real-time priorities, which are not permitted here");
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn ctl(name: &str, arguments: &[&str]) -> Done {
    run(&[&["ctl", name], arguments].concat())
}

#[test]
fn a_running_hierarchy_is_looked_at_and_changed() {
    let _alone = alone();
    let Some((mut running, name)) = start("figure-1.toml", "multimedia", "changed") else { return };
    let list = ctl(&name, &["list"]).exits(0).stdout;
    for part in ["├─ RES", "proportional-share 10ms", "PSBE 0.4 58ms", "video", "elsewhere"] {
        assert!(list.contains(part), "{part} is not in\n{list}");
    }
    assert!(run(&["ctl"]).exits(0).stdout.contains(&name));
    // Another scheduler of shares keeps what "voice" requires; one after another does not.
    ctl(&name, &["replace", "PS", "--kind", "sfq"]).exits(0);
    let refused = ctl(&name, &["replace", "PS", "--kind", "round-robin"]).exits(1);
    for part in ["refused", "voice: it requires PSBE 0.4 60ms", "help: ", "--force"] {
        assert!(refused.stderr.contains(part), "{part} is not in\n{}", refused.stderr);
    }
    // A command comes, reserves, goes back and goes.
    let endless = ["--", "sh", "-c", "echo loud; ulimit -t 60; while :; do :; done"];
    ctl(&name, &["add-scheduler", "BG", "--kind", "round-robin", "--under", "FP=priority 0"]).exits(0);
    ctl(&name, &[&["add-thread", "build", "--under", "BG"][..], &endless].concat()).exits(0);
    let reserve = ["reserve", "build", "--under", "RES", "--guarantee"];
    let refused = ctl(&name, &[&reserve[..], &["RESBH 30ms 33ms"]].concat()).exits(1);
    assert!(refused.stderr.contains("RES: "), "{}", refused.stderr);
    assert!(!refused.stderr.contains("--force"), "admission is not to be forced: {}", refused.stderr);
    ctl(&name, &[&reserve[..], &["RESBH 2ms 40ms"]].concat()).exits(0);
    let json = ctl(&name, &["list", "--json"]).exits(0).json();
    let rows = json["outcome"]["listing"]["rows"].as_array().expect("rows");
    let build = rows.iter().find(|row| row["name"] == "build").expect("it is listed");
    assert_eq!((&build["parent"], &build["guarantee"]), (&"RES".into(), &"RESBH 2ms 40ms".into()));
    ctl(&name, &["release", "build"]).exits(0);
    ctl(&name, &["remove", "build"]).exits(0);
    ctl(&name, &["remove", "BG"]).exits(0);
    // Names that are nobody's are something else than refusals.
    let nobody = ctl(&name, &["remove", "wrods"]).exits(2);
    assert!(nobody.stderr.contains("there is FP, RES, J, PS, video, words, voice"), "{}", nobody.stderr);
    running.signal(rustix::process::Signal::INT);
    let done = running.finish().exits(0);
    assert!(done.stderr.contains("loud"), "programs print beside the results: {}", done.stderr);
    let outcome = &done.json()["run"]["hierarchies"][0];
    let members = outcome["members"].as_array().expect("members");
    assert!(members.iter().any(|member| member["thread"] == "build"), "{outcome}");
    ctl(&name, &["list"]).exits(2);
}

/// Whoever starts the machine, the run or its session is taken in by nobody's mistake.
#[test]
fn what_the_run_stands_on_is_taken_in_by_force_alone() {
    let _alone = alone();
    let Some((mut running, name)) = start("shares.toml", "shares", "protected") else { return };
    let add = |number: i32, more: &[&str]| {
        let number = number.to_string();
        let place = ["add-thread", "other", "--under", "PS", "--share", "1", "--pid", &number];
        ctl(&name, &[&place[..], more].concat())
    };
    let own = std::process::id() as i32;
    // 0 if its leader is in another PID namespace.
    let session = own_session();
    let of_session = if session == 1 { "starts all others" } else { "leads the session of this run" };
    let of_own = if session == own { of_session } else { "has started this run" };
    let protected = [(1, "starts all others"), (own, of_own), (session, of_session)];
    for (number, why) in protected.into_iter().filter(|(number, _)| *number > 0) {
        let refused = add(number, &[]).exits(1);
        assert!(refused.stderr.contains(why) && refused.stderr.contains("--force"), "{}", refused.stderr);
    }
    // A thread of the kernel is scheduled by nobody else, whatever is said.
    let of_kernel = add(2, &["--force"]);
    assert!(of_kernel.status != 0, "{}", of_kernel.stdout);
    running.signal(rustix::process::Signal::INT);
    let done = running.finish().exits(0).json();
    let members = done["run"]["hierarchies"][0]["members"].as_array().expect("members");
    assert!(members.iter().all(|member| member["thread"] != "other"), "{members:?}");
}

/// Threads that were together one thread of the hierarchy, and are one each next: what each receives is seen then, too.
#[test]
fn threads_of_a_process_are_scheduled_together_and_then_each_for_itself() {
    let _alone = alone();
    let Some((mut running, name)) = start("shares.toml", "shares", "apart") else { return };
    let place = folder();
    let note = within(&place, "threads");
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "controlled::as_program_of_two_threads", "--ignored", "--nocapture"]);
    let mut program = command.env(NOTE, &note).stdout(Stdio::null()).spawn().expect("this test");
    let mut tids = Vec::new();
    eventually("its threads are named", || {
        let text = fs::read_to_string(&note).unwrap_or_default();
        tids = text.lines().map(str::to_owned).collect();
        tids.len() == 2
    });
    let under = ["--under", "PS", "--share", "1"];
    let add = |thread: &str, which: [&str; 2]| {
        ctl(&name, &[&["add-thread", thread][..], &under, &which].concat()).exits(0);
    };
    let rows = || {
        let listing = ctl(&name, &["list", "--json"]).exits(0).json();
        listing["outcome"]["listing"]["rows"].as_array().expect("rows").clone()
    };
    let has_received = |thread: &str| {
        let rows = rows();
        let row = rows.iter().find(|row| row["name"] == thread).expect("it is listed");
        row["used_ns"].as_i64() > Some(50_000_000)
    };
    add("whole", ["--pid", &program.id().to_string()]);
    eventually("all of it receives", || has_received("whole"));
    ctl(&name, &["remove", "whole"]).exits(0);
    add("one", ["--tid", &tids[0]]);
    add("two", ["--tid", &tids[1]]);
    eventually("each receives", || has_received("one") && has_received("two"));
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish().exits(0).json();
    program.kill().expect("it lives");
    program.wait().expect("it has ended");
    let hierarchy = &outcome["run"]["hierarchies"][0];
    if hierarchy["judged_by"]["by"] != "receipts" {
        return talea_measure::skip(format!("what is received is not seen here: {}", hierarchy["judged_by"]));
    }
    let edges = outcome["report"]["hierarchies"][0]["edges"].as_array().expect("edges");
    for thread in ["whole", "one", "two"] {
        let of_thread = || edges.iter().filter(|edge| edge["child"] == thread);
        let sum = |of: &dyn Fn(&serde_json::Value) -> Option<i64>| of_thread().filter_map(of).sum::<i64>();
        let received = sum(&|edge| edge["received_ns"].as_i64());
        let withheld = sum(&|edge| edge["receipts"]["withheld_ns"].as_i64());
        // By its clock it had much more than nothing.
        assert!(received > withheld, "{thread} received {received} ns, withheld were {withheld}: {edges:#?}");
    }
}

/// Tells the program where it writes what its threads are.
const NOTE: &str = "TALEA_TEST_NOTE";

#[test]
#[ignore = "run by the test above as a program"]
fn as_program_of_two_threads() {
    let Some(path) = std::env::var_os(NOTE) else { return };
    let spin = || {
        let tid = rustix::thread::gettid();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).expect("a file");
        file.write_all(format!("{tid}\n").as_bytes()).expect("a line");
        // Should nobody be left to end it.
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_secs(120) {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(spin);
        scope.spawn(spin);
    });
}

/// A run that leaves the kernel its part in slices holds changes against what is left.
#[test]
fn what_slices_leave_is_what_can_be_promised() {
    let _alone = alone();
    let text = fs::read_to_string(example("figure-1.toml")).expect("the example");
    let Some((mut running, name)) = start_in(&folder(), &text, "multimedia", "sliced", &["--for", "120s"])
    else {
        return;
    };
    let json = ctl(&name, &["list", "--json"]).exits(0).json();
    let rows = json["outcome"]["listing"]["rows"].as_array().expect("rows");
    let reservations = rows.iter().find(|row| row["name"] == "RES").expect("it is listed");
    if reservations["guarantee"] == "ALL" {
        talea_measure::skip(
            "the kernel keeps nothing from real-time threads here, so that nothing is left to it",
        );
    } else {
        let planned = ["replace", "RES", "--kind", "spring"];
        let refused = ctl(&name, &planned).exits(1);
        let given = reservations["guarantee"].as_str().expect("a guarantee");
        let why = format!("RES: it is given {given}, and accepts only ALL or RESU");
        assert!(refused.stderr.contains(&why), "{}", refused.stderr);
        ctl(&name, &["replace", "RES", "--kind", "cbs"]).exits(0);
        ctl(&name, &[&planned[..], &["--force"]].concat()).exits(0);
    }
    running.signal(rustix::process::Signal::INT);
    running.finish().exits(0);
}

#[test]
fn shares_become_eevdf_while_everything_runs() {
    let _alone = alone();
    let Some((mut running, name)) = start("shares.toml", "shares", "swapped") else { return };
    let all = run(&["ctl", "--json"]).exits(0).json();
    let own = all.as_array().expect("runs").iter().find(|run| run["name"] == *name).expect("it is listed");
    assert!(own["uncontrolled"].is_null(), "{own}");
    let done = ctl(&name, &["replace", "PS", "--kind", "eevdf"]).exits(0);
    assert!(
        done.stdout.contains("PS promises editor PSBE 0.25 5ms, not PSBE 0.25 8.75ms"),
        "{}",
        done.stdout
    );
    let misstated = ctl(&name, &["replace", "PS", "--kind", "reservation"]).exits(2);
    for part in ["takes something else", "--child \"NAME=REQUEST\""] {
        assert!(misstated.stderr.contains(part), "{part} is not in\n{}", misstated.stderr);
    }
    let unknown = ctl(&name, &["replace", "PS", "--kind", "evdf"]).exits(2).stderr;
    assert_eq!(unknown, "error: unknown kind of scheduler \"evdf\"; did you mean \"eevdf\"?\n");
    assert!(ctl(&name, &["list"]).exits(0).stdout.contains("eevdf 5ms"));
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish().exits(0).json();
    let edges = outcome["report"]["hierarchies"][0]["edges"].as_array().expect("edges");
    let promised: Vec<&str> = edges.iter().filter_map(|edge| edge["guarantee"].as_str()).collect();
    assert_eq!(promised.len(), 6, "both schedulers are judged: {promised:?}");
}

/// Whoever reads the trace knows who has come, while it is written and afterwards.
#[test]
fn what_comes_to_a_running_hierarchy_is_in_its_trace() {
    let _alone = alone();
    let place = folder();
    let text = fs::read_to_string(example("figure-1.toml")).expect("the example");
    let options = ["--for", "120s", "--out", &within(&place, "out")];
    let Some((mut running, name)) = start_in(&place, &text, "multimedia", "defined", &options) else {
        return;
    };
    let worst = || run(&["trace", "explain", &name, "--worst", "--json"]).exits(0).stdout;
    eventually("the run has begun", || worst().contains("response_ns"));
    let follower = Running::start(&["trace", "show", &name, "--follow", "--event", "change"]);
    eventually("it is followed", || run(&["trace", "list", "--json"]).stdout.contains("show --follow"));
    ctl(&name, &["add-scheduler", "BG", "--kind", "round-robin", "--under", "FP=priority 7", "--force"])
        .exits(0);
    // Short turns and pauses, for others use this processor, too.
    let busy = "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.03; done";
    ctl(&name, &["add-thread", "build", "--under", "BG", "--", "sh", "-c", busy]).exits(0);
    let told = || worst().contains("BG below FP, for build");
    eventually("bursts wait for the turns that the new thread has", told);
    ctl(&name, &["replace", "BG", "--kind", "stride", "--force"]);
    ctl(&name, &["remove", "build"]).exits(0);
    // Most of the time one of its bursts is under way or waits.
    ctl(&name, &["remove", "voice", "--force"]).exits(0);
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish().exits(0).json();
    assert_eq!(outcome["run"]["hierarchies"][0]["undefined"], 0, "there was room for all");
    let voice = &outcome["report"]["tasks"].as_array().expect("tasks")[2];
    let count = |what: &str| voice[what].as_u64().expect("a count");
    assert_eq!(voice["name"], "voice");
    assert_eq!(count("released"), count("completed") + count("aborted"), "{voice}");
    let followed = follower.finish().exits(0).stdout;
    for part in ["BG to build", "FP to BG", "removed", "added"] {
        assert!(followed.contains(part), "{part} is not in\n{followed}");
    }
    let (trace, system) = (within(&place, "out/trace.talea"), within(&place, "system.toml"));
    let shown = run(&["trace", "show", &trace, "--event", "change"]).exits(0).stdout;
    for part in ["BG to build", "FP to BG", "removed", "added"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // What is decided about a newcomer is told after that it has come.
    let all = run(&["trace", "show", &trace]).exits(0).stdout;
    let of_newcomer: Vec<&str> = all.lines().filter(|line| line.contains("BG to build")).collect();
    assert!(of_newcomer[0].contains("what=added"), "{}", of_newcomer[0]);
    let request = of_newcomer.iter().find(|line| line.contains(" request ")).expect("it wants to run");
    assert!(request.contains("trigger=thread"), "{request}");
    assert!(run(&["trace", "explain", &trace, "--worst"]).exits(0).stdout.contains("BG below FP"));
    let verified = run(&["trace", "verify", &system, &trace, "--json"]).json();
    let rules = verified["decisions"]["rules"].as_array().expect("decisions are judged");
    assert!(rules.iter().all(|rule| rule["violations"] == 0), "{}", verified["decisions"]);
    let edges = verified["promises"]["edges"].as_array().expect("edges");
    assert!(edges.iter().any(|edge| edge["child"] == "build"), "{edges:?}");
    let rules = verified["lanes"]["rules"].as_array().expect("rules");
    let overrun = rules.iter().find(|rule| rule["rule"] == "overrun").expect("a rule");
    assert_eq!(overrun["violations"], 0, "who leaves gives up its bursts: {verified}");
}

/// What was added has its own time, as what the description starts does, and is no other program.
#[test]
fn what_was_added_is_in_the_accounts_of_time() {
    let _alone = alone();
    let (place, name) = (folder(), format!("accounts-{}", std::process::id()));
    let (file, trace) = (within(&place, "system.toml"), within(&place, "both.talea"));
    let text = fs::read_to_string(example("figure-1.toml")).expect("the example");
    fs::write(&file, text.replace("\"multimedia\"", &format!("\"{name}\""))).expect("a file");
    let record = ["trace", "record", "--kernel", "switches,names", "--out", &trace, "--"];
    let system =
        [env!("CARGO_BIN_EXE_talea"), "run", &file, "--for", "6s", "--no-slices", "--fail-on", "never"];
    let mut running = Running::start(&[&record[..], &system].concat());
    let mut is_over = false;
    eventually("the run can be controlled, or is none", || {
        is_over = running.is_over();
        is_over || run(&["ctl", &name, "list"]).status == 0
    });
    if is_over {
        let done = running.finish();
        let is_refused =
            ["talea doctor", "the kernel withholds events"].map(|part| done.stderr.contains(part));
        assert!(is_refused.contains(&true), "{}", done.stderr);
        return talea_measure::skip("hierarchies, or events of the kernel, are not permitted here");
    }
    let busy = ["--force", "--", "sh", "-c", "while :; do :; done"];
    ctl(&name, &[&["add-thread", "hog", "--under", "PS", "--share", "1"][..], &busy].concat()).exits(0);
    running.finish().exits(0);
    let stats = run(&["trace", "stats", &trace, "--json"]).json();
    let node = &stats["usage"]["nodes"][0];
    let members = node["members"].as_array().expect("members");
    assert_eq!(members.iter().map(|member| &member["name"]).collect::<Vec<_>>(), ["hog"], "{node:#}");
    let had = members[0]["ns"].as_i64().expect("a time");
    // Until it has been held it is one.
    let programs = node["programs"].as_array().expect("programs");
    let of_shells = programs.iter().filter(|program| program["name"] == "sh");
    let as_other: i64 = of_shells.filter_map(|program| program["ns"].as_i64()).sum();
    assert!(had > 4 * as_other, "{had} ns, and {as_other} ns as another program: {node:#}");
    assert_eq!(node["error_ns"], 0, "{node:#}");
    let csv = within(&place, "schedule.csv");
    run(&["trace", "export", &trace, "--schedule", &csv]).exits(0);
    assert!(fs::read_to_string(&csv).expect("a schedule").contains(",hog,hog,\n"));
}

/// Whoever reads the trace knows who has changed what, and what for.
#[test]
fn who_changed_a_running_hierarchy_and_why_is_in_its_trace() {
    let _alone = alone();
    let place = folder();
    let text = fs::read_to_string(example("figure-1.toml")).expect("the example");
    let options = ["--for", "120s", "--no-slices", "--out", &within(&place, "out")];
    let Some((mut running, name)) = start_in(&place, &text, "multimedia", "authors", &options) else {
        return;
    };
    let begun = || run(&["trace", "read", &name, "results.released", "--json"]).exits(0).json();
    eventually("the run has begun", || begun()[0]["value"].as_u64() > Some(0));
    ctl(&name, &["add-scheduler", "BG", "--kind", "round-robin", "--under", "FP=priority 0"]).exits(0);
    // A thread that has started another, and ends by itself.
    let brief = "(sleep 0.3; true) & wait";
    ctl(&name, &["add-thread", "brief", "--under", "BG", "--", "sh", "-c", brief]).exits(0);
    let rows = || ctl(&name, &["list"]).exits(0).stdout;
    eventually("its program has ended", || !rows().contains("brief"));
    // What is promised stays, whatever the order.
    ctl(&name, &["change", "RES", "--priority", "12"]).exits(0);
    ctl(&name, &["replace", "BG", "--kind", "fifo"]).exits(0);
    let endless = "ulimit -t 60; while :; do sleep 0.05; done";
    ctl(&name, &["add-thread", "build", "--under", "BG", "--", "sh", "-c", endless]).exits(0);
    ctl(&name, &["reserve", "build", "--under", "RES", "--guarantee", "RESBH 2ms 40ms"]).exits(0);
    ctl(&name, &["release", "build"]).exits(0);
    ctl(&name, &["remove", "build"]).exits(0);
    ctl(&name, &["remove", "BG"]).exits(0);
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish().exits(0).json();
    let trace = within(&place, "out/trace.talea");
    let shown = run(&["trace", "show", &trace, "--event", "change", "--json"]).exits(0).stdout;
    let changes =
        shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a record"));
    let told: Vec<(String, String)> = changes
        .map(|change| {
            let fields = &change["fields"];
            let word = |field: &str| fields[field].as_str().expect("a word").to_owned();
            let user = u64::from(rustix::process::getuid().as_raw());
            match word("by").as_str() {
                "operator" => {
                    assert!(fields["process"].as_u64() > Some(1), "{change}");
                    assert_eq!(fields["user"].as_u64(), Some(user), "{change}");
                }
                _ => assert_eq!((&fields["process"], &fields["user"]), (&0.into(), &0.into()), "{change}"),
            }
            (format!("{} {}", word("edge"), word("what")), format!("{} {}", word("by"), word("why")))
        })
        .collect();
    let expected = [
        ("FP to BG added", "operator scheduler-added"),
        ("BG to brief added", "operator thread-added"),
        ("BG to brief removed", "member ended"),
        ("FP to RES altered", "operator request-changed"),
        ("FP to BG altered", "operator scheduler-replaced"),
        ("BG to build added", "operator thread-added"),
        ("BG to build removed", "operator reserved"),
        ("RES to build added", "operator reserved"),
        ("RES to build removed", "operator reservation-ended"),
        ("BG to build added", "operator reservation-ended"),
        ("BG to build removed", "operator thread-removed"),
        ("FP to BG removed", "operator scheduler-removed"),
    ];
    assert_eq!(told, expected.map(|(edge, cause)| (edge.to_owned(), cause.to_owned())), "{shown}");
    let lines = run(&["trace", "show", &trace, "--event", "change"]).exits(0).stdout;
    for part in ["edge=FP to BG what=added by=operator why=scheduler-added process=", "by=member why=ended\n"]
    {
        assert!(lines.contains(part), "{part} is not in\n{lines}");
    }
    let members = run(&["trace", "show", &trace, "--event", "member", "--json"]).exits(0).stdout;
    let members: Vec<serde_json::Value> =
        members.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let of_brief: Vec<&serde_json::Value> = members
        .iter()
        .map(|member| &member["fields"])
        .filter(|fields| fields["edge"] == "BG to brief")
        .collect();
    let first = &of_brief.first().expect("it has a thread")["tid"];
    assert_eq!(of_brief[0]["started_by"], 0, "the run has started it");
    // Where the kernel tells nothing, newcomers are found later.
    if outcome["run"]["hierarchies"][0]["untraced"].is_null() {
        assert!(of_brief[1..].iter().any(|fields| fields["started_by"] == *first), "{of_brief:#?}");
    }
}

/// What was done in spite of promises says so, and nothing else does.
#[test]
fn a_forced_change_says_so_in_the_trace() {
    let _alone = alone();
    let place = folder();
    let text = fs::read_to_string(example("figure-1.toml")).expect("the example");
    let options = ["--for", "120s", "--no-slices", "--out", &within(&place, "out")];
    let Some((mut running, name)) = start_in(&place, &text, "multimedia", "forced", &options) else {
        return;
    };
    let begun = || run(&["trace", "read", &name, "results.released", "--json"]).exits(0).json();
    eventually("the run has begun", || begun()[0]["value"].as_u64() > Some(0));
    ctl(&name, &["replace", "PS", "--kind", "sfq"]).exits(0);
    ctl(&name, &["replace", "PS", "--kind", "round-robin"]).exits(1);
    ctl(&name, &["replace", "PS", "--kind", "round-robin", "--force"]).exits(0);
    running.signal(rustix::process::Signal::INT);
    running.finish().exits(0);
    let trace = within(&place, "out/trace.talea");
    let lines = run(&["trace", "show", &trace, "--event", "change"]).exits(0).stdout;
    let (forced, careful): (Vec<&str>, Vec<&str>) = lines.lines().partition(|line| line.ends_with(" forced"));
    for (changes, kind) in [(&forced, "forced"), (&careful, "careful")] {
        assert!(changes.iter().any(|line| line.contains("why=scheduler-replaced")), "{kind}: {lines}");
    }
    assert!(
        lines.rfind(" user=") > lines.rfind(careful.last().expect("some")),
        "the forced ones come last: {lines}"
    );
    let json = run(&["trace", "show", &trace, "--event", "change", "--json"]).exits(0).stdout;
    let told = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a record"));
    let told = told.filter(|change| change["fields"]["forced"] == 1).count();
    assert_eq!(told, forced.len(), "{json}");
    let picture = within(&place, "out/run.pftrace");
    run(&["trace", "export", &trace, "--perfetto", &picture]).exits(0);
    let picture = String::from_utf8_lossy(&fs::read(&picture).expect("a file")).into_owned();
    for part in ["changes of the hierarchy", "(forced)", "scheduler-replaced"] {
        assert!(picture.contains(part), "{part} is not shown");
    }
}

/// Whoever reads the trace knows which threads came while the run lasted: as the kernel has them, under each name that they had.
#[test]
fn threads_that_come_to_a_running_hierarchy_are_defined_in_its_trace() {
    let _alone = alone();
    let place = folder();
    let text = fs::read_to_string(example("figure-1.toml")).expect("the example");
    let options = ["--for", "120s", "--no-slices", "--out", &within(&place, "out")];
    let Some((mut running, name)) = start_in(&place, &text, "multimedia", "defined", &options) else {
        return;
    };
    let begun = || run(&["trace", "read", &name, "results.released", "--json"]).exits(0).json();
    eventually("the run has begun", || begun()[0]["value"].as_u64() > Some(0));
    ctl(&name, &["add-scheduler", "BG", "--kind", "round-robin", "--under", "FP=priority 0"]).exits(0);
    let (note, word) = (within(&place, "threads"), within(&place, "word"));
    let program = std::env::current_exe().expect("this test");
    let program = format!(
        "{NOTE}={note} {WORD}={word} exec {} --exact controlled::as_program_of_named_threads --ignored --nocapture",
        program.display()
    );
    ctl(&name, &["add-thread", "player", "--under", "BG", "--", "sh", "-c", &program]).exits(0);
    let mut numbers: Vec<u32> = Vec::new();
    eventually("its threads are named", || {
        let text = fs::read_to_string(&note).unwrap_or_default();
        numbers = text.lines().map(|line| line.parse().expect("a number")).collect();
        numbers.len() == 2
    });
    // As the kernel has them now, and where they are read.
    let live = run(&["trace", "list", &name, "--json"]).exits(0).json();
    let live = live["path"].as_str().expect("its place").to_owned();
    let known = |path: &str| TraceFile::open(Path::new(path)).expect("a trace").metadata().threads.clone();
    let process = |tid: u32| -> u32 {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:")).expect("a line");
        line.trim().parse().expect("a number")
    };
    let comm = |tid: u32| {
        let comm = fs::read_to_string(format!("/proc/{tid}/comm")).expect("it lives");
        comm.trim_end_matches('\n').to_owned()
    };
    let mut told = Vec::new();
    let mut all_known = || {
        let pid = process(numbers[0]);
        let now: Vec<(u32, u32, String)> =
            [numbers[0], numbers[1], pid].map(|tid| (tid, process(tid), comm(tid))).into();
        let known = known(&live);
        let latest = |tid: u32| known.iter().filter(|entry| entry.tid == tid).max_by_key(|entry| entry.since);
        let same = |told: &(u32, u32, String)| {
            latest(told.0).is_some_and(|known| (known.pid, &known.name) == (told.1, &told.2))
        };
        let all = now.iter().all(same);
        told.extend(now.into_iter().filter(|_| all));
        all
    };
    eventually("they are defined", &mut all_known);
    fs::write(&word, "").expect("a word");
    eventually("one has another name", || comm(numbers[1]) == "drain (b)");
    eventually("that is defined, too", &mut all_known);
    ctl(&name, &["remove", "player"]).exits(0);
    running.signal(rustix::process::Signal::INT);
    running.finish().exits(0);
    let trace = within(&place, "out/trace.talea");
    let known = known(&trace);
    for (tid, pid, name) in &told {
        let is_it = |entry: &&ThreadEntry| (entry.tid, entry.pid, &entry.name) == (*tid, *pid, name);
        assert!(known.iter().any(|entry| is_it(&entry)), "{tid} {name} is not in {known:#?}");
    }
    let names = told.iter().map(|(_, _, name)| name.as_str()).collect::<Vec<_>>();
    assert!(["decoder", "drain", "drain (b)"].iter().all(|name| names.contains(name)), "{names:?}");
    // Those of the run itself are the same to a reader: lanes' threads, and who serves the hierarchy.
    let lines = run(&["trace", "show", &trace, "--event", "member"]).exits(0).stdout;
    let decoder = format!("tid={} (decoder) pid={}", numbers[0], told[0].1);
    for part in [decoder.as_str(), "edge=BG to player role=scheduled", "(sentinel", "(controller"] {
        assert!(lines.contains(part), "{part} is not in\n{lines}");
    }
    // Of everybody with whom records deal: each was there until the end, or is said above to have been.
    let unnamed = lines.lines().filter(|line| !line.contains(" pid="));
    assert_eq!(unnamed.collect::<Vec<_>>(), [""; 0]);
}

/// Tells the program which file it waits for.
const WORD: &str = "TALEA_TEST_WORD";

#[test]
#[ignore = "run by the test above as a program"]
fn as_program_of_named_threads() {
    let (Some(path), Some(word)) = (std::env::var_os(NOTE), std::env::var_os(WORD)) else { return };
    let write = |line: String| {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).expect("a file");
        file.write_all(line.as_bytes()).expect("a line");
    };
    let call = |name: &str| fs::write("/proc/thread-self/comm", name).expect("its own name");
    // Should nobody be left to end it.
    let wait = |is_over: &dyn Fn() -> bool| {
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_secs(120) && !is_over() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let first = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            call("decoder");
            write(format!("{}\n", rustix::thread::gettid()));
            first.wait();
            wait(&|| false);
        });
        scope.spawn(|| {
            call("drain");
            first.wait();
            write(format!("{}\n", rustix::thread::gettid()));
            wait(&|| Path::new(&word).exists());
            call("drain (b)");
            wait(&|| false);
        });
    });
}

/// Lanes learn that the scheduler above them takes time constraints now. In turns of half a second with a thread that never stops, that
/// one has none that is shorter; a time constraint ends it early.
#[test]
fn lanes_begin_to_ask_for_time_constraints_while_they_run() {
    let _alone = alone();
    let text = r#"
        [system]
        name = "turns"
        strategy = "edf"
        [[node]]
        name = "n"
        cpus = [0]
        [[scheduler]]
        name = "S"
        kind = "round-robin"
        quantum = "500ms"
        [[scheduler]]
        name = "jobs"
        kind = "lanes"
        under = [{ scheduler = "S" }]
        [[thread]]
        name = "hog"
        work = "cpu-bound"
        under = [{ scheduler = "S" }]
        [[task]]
        name = "often"
        period = "20ms"
        phase = "10ms"
        deadline = "40ms"
        wcet = "7ms"
        exec = "6ms"
    "#;
    let place = folder();
    let out = within(&place, "out");
    let options = ["--for", "120s", "--no-slices", "--out", &out];
    let Some((mut running, name)) = start_in(&place, text, "turns", "asking", &options) else { return };
    let replaced = ["replace", "S", "--kind", "rialto", "--child", "jobs=nothing", "--child", "hog=nothing"];
    ctl(&name, &replaced).exits(0);
    let ended = || -> u64 {
        let read = run(&["trace", "read", &name, "results.met", "results.missed", "--json"]).exits(0).json();
        [0, 1].iter().map(|&index| read[index]["value"].as_u64().expect("a counter")).sum()
    };
    let at_change = ended();
    eventually("a hundred jobs end after the change", || ended() >= at_change + 100);
    running.signal(rustix::process::Signal::INT);
    running.finish().exits(0);
    let trace = within(&place, "out/trace.talea");
    let shown = run(&["trace", "show", &trace, "--event", "grant", "--json"]).exits(0).stdout;
    let grants: Vec<serde_json::Value> =
        shown.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let time = |grant: &serde_json::Value| grant["time_ns"].as_i64().expect("a time");
    let is_short = |turn: &&[serde_json::Value]| {
        turn[0]["fields"]["edge"] == "S to hog"
            && turn[1]["fields"]["edge"] == "S to jobs"
            && time(&turn[1]) - time(&turn[0]) < 400_000_000
    };
    let short = grants.windows(2).filter(is_short).count();
    // The change itself ends one.
    assert!(short > 2, "{short} in\n{shown}");
}

#[test]
fn nothing_to_control_is_said_so() {
    let unknown = run(&["ctl", "no-such-run", "list"]).exits(2);
    assert!(unknown.stderr.contains("no run \"no-such-run\" can be controlled"), "{}", unknown.stderr);
    let unnamed = run(&["ctl", "--json"]).exits(0);
    assert!(unnamed.json().is_array());
    let twice = run(&["ctl", "x", "change", "y", "--share", "1", "--priority", "2"]).exits(2);
    assert!(twice.stderr.contains("cannot be used with"), "{}", twice.stderr);
}

/// Bursts of threads are jobs, which the dispatcher records: whoever that is, the run counts them.
#[test]
fn the_jobs_of_a_hierarchy_are_counted_while_it_runs() {
    let _alone = alone();
    let Some((running, name)) = start("figure-1.toml", "multimedia", "counted") else { return };
    eventually("jobs are counted", || {
        let read =
            run(&["trace", "read", &name, "results.released", "results.met", "--json"]).exits(0).json();
        let count = |index: usize| read[index]["value"].as_u64().expect("a counter");
        count(0) > 0 && count(1) > 0
    });
    drop(running);
}
