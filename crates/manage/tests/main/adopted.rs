//! Processes that were there before: what they start afterwards, and what others change of them.

use crate::families::named_child;
use crate::programs::{Program, eventually, lives, parent, stage};
use crate::restoration::policy;
use crate::{REMOVED, admission, after, flat, hog, part, proportional, reservation, whole};
use rustix::process::{Signal, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use talea_linux::Tid;
use talea_linux::affinity;
use talea_linux::sched::{self, Policy};
use talea_linux::signal_safe::stat_field;
use talea_manage::{Admission, AdmitError, Blocks, ForeignChanges, ManagedSet, Parking, Received, Target};
use talea_model::ChildProcesses;
use talea_policy::hierarchy::{Fraction, Parameters};
use talea_policy::scheduler::config;
use talea_time::{Duration, Work};

/// A program and all that it starts, which end with their test.
pub(crate) struct Group(pub Child);

impl Drop for Group {
    fn drop(&mut self) {
        kill_process_group(Tid::from_child(&self.0), Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
}

/// What it has received, in parts of what it was granted.
fn part_granted(received: &Received) -> f64 {
    received.work.as_nanos() as f64 / received.granted.as_nanos() as f64
}

/// A process that waits, and a child of it that uses its processor for ever.
fn with_child(folder: &std::path::Path) -> (Group, Tid) {
    let note = folder.join("child");
    let [program, arguments @ ..] = parent(&note);
    let mut command = Command::new(program);
    let group = Group(command.args(arguments).process_group(0).spawn().unwrap());
    (group, named_child(&note))
}

fn is_real_time(tid: Tid) -> bool {
    matches!(sched::get(Some(tid)), Ok(Policy::Fifo(_) | Policy::RoundRobin(_)))
}

#[test]
fn what_a_process_starts_from_then_on_is_of_its_member() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let notes = ["elder", "younger"].map(|name| folder.path().join(name));
    let script = format!(
        "ulimit -t 60; sleep 600 & echo $! > '{}'; read go; (while :; do :; done) & echo $! > '{}'; wait",
        notes[0].display(),
        notes[1].display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).process_group(0);
    let mut group = Group(command.spawn().unwrap());
    let elder = named_child(&notes[0]);
    eventually("who begins now does so later than the elder", || {
        let mut now = Command::new("sleep").arg("600").spawn().unwrap();
        let is_later = began(Tid::from_child(&now)) > began(elder);
        now.kill().unwrap();
        now.wait().unwrap();
        is_later
    });
    let before = affinity::get(Some(elder)).unwrap();
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("own", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    let process = Target::Process(group.0.id(), ChildProcesses::Later);
    let member = set.attach(admission("family", root, Parameters::Weight(1)), process).unwrap();
    group.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let younger = named_child(&notes[1]);
    let is_member = |tid: Tid| set.threads_of(member).contains(&(tid.as_raw_nonzero().get() as u32));
    eventually("the younger is taken in", || is_member(younger));
    assert!(is_real_time(younger) && !is_member(elder) && !is_real_time(elder));
    let received = after(&set, Work::from_millis(300));
    let share = part(&received, "family");
    assert!((0.3..0.7).contains(&share), "{share} of a half: {received:?}");
    assert!(received.iter().all(|received| received.changes.are_none()), "{received:?}");
    set.stop().unwrap();
    assert!(lives(younger), "it was there before the set, in its parent");
    assert_eq!(
        (sched::get(Some(younger)).unwrap(), affinity::get(Some(younger)).unwrap()),
        (Policy::Other, before)
    );
}

/// When a process began, in ticks.
fn began(process: Tid) -> Option<u64> {
    stat_field(process.as_raw_nonzero().get(), 22)
}

/// A process, a child of it and a child of that one, which all were there before and use their processor for ever; and one that begins later.
#[test]
fn what_a_process_has_started_is_of_its_member() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = |name: &str| folder.path().join(name);
    let spin = "while :; do :; done";
    let script = format!(
        "ulimit -t 60; (({spin}) & echo $! > '{}'; {spin}) & echo $! > '{}'; read go; ({spin}) & echo $! > '{}'; {spin}",
        note("grandchild").display(),
        note("child").display(),
        note("later").display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).process_group(0);
    let mut group = Group(command.spawn().unwrap());
    let heirs = [named_child(&note("child")), named_child(&note("grandchild"))];
    let before = affinity::get(Some(heirs[0])).unwrap();
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("own", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    let member = set.attach(admission("family", root, Parameters::Weight(1)), whole(group.0.id())).unwrap();
    let is_member = |tid: Tid| set.threads_of(member).contains(&(tid.as_raw_nonzero().get() as u32));
    assert!(heirs.iter().all(|heir| is_member(*heir) && is_real_time(*heir)));
    group.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let later = named_child(&note("later"));
    eventually("what begins later is taken in", || is_member(later));
    let received = after(&set, Work::from_millis(300));
    let share = part(&received, "family");
    assert!((0.3..0.7).contains(&share), "{share} of a half: {received:?}");
    set.stop().unwrap();
    for tid in [heirs[0], heirs[1], later] {
        let now = (sched::get(Some(tid)).unwrap(), affinity::get(Some(tid)).unwrap());
        assert_eq!((now, lives(tid)), ((Policy::Other, before.clone()), true), "it was there before");
    }
}

/// Of a process that is held to a maximum its children are, too.
#[test]
fn what_a_process_has_started_is_held_with_it() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (group, child) = with_child(folder.path());
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let parking = Parking::Held;
    let capped = Admission { parking, ..admission("capped", root, reservation(5, 20)) };
    let member = match set.attach(capped, whole(group.0.id())) {
        // Without a cgroup a signal to the process does not reach its child.
        Err(AdmitError::OutOfReach { .. }) => {
            return talea_measure::skip("there is no cgroup (version 2) to hold them in");
        }
        member => member.unwrap(),
    };
    assert!(set.threads_of(member).contains(&(child.as_raw_nonzero().get() as u32)));
    let received = after(&set, Work::from_millis(100));
    let granted = part_granted(&received[0]);
    assert!(granted < 1.5, "{granted} times what was granted: {received:?}");
    set.stop().unwrap();
    assert!(lives(child) && !is_real_time(child));
}

/// A child that is a member by itself, or will be, is not its parent's, and neither is it once it was.
#[test]
fn a_child_that_is_kept_apart_is_not_of_its_parents_member() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (group, child) = with_child(folder.path());
    let child = child.as_raw_nonzero().get() as u32;
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("own", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    set.keep_apart([child]);
    let family = set.attach(admission("family", root, Parameters::Weight(1)), whole(group.0.id())).unwrap();
    // Longer than the warden takes to look for new processes.
    after(&set, Work::from_millis(150));
    assert_eq!(set.threads_of(family), [group.0.id()]);
    let own = set.attach(admission("child", root, Parameters::Weight(1)), whole(child)).unwrap();
    after(&set, Work::from_millis(150));
    assert_eq!((set.threads_of(family), set.threads_of(own)), (vec![group.0.id()], vec![child]));
    set.stop().unwrap();
}

/// Each of two threads of a process is scheduled for itself.
#[test]
fn one_thread_of_a_process_is_a_member_alone() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("threads");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "adopted::as_program_of_three_threads", "--ignored", "--nocapture"]);
    command.env(NOTE, &note).stdout(Stdio::null()).process_group(0);
    let group = Group(command.spawn().unwrap());
    let mut tids = Vec::new();
    eventually("its threads are named", || {
        let text = std::fs::read_to_string(&note).unwrap_or_default();
        tids = text.lines().filter_map(|line| line.parse().ok()).collect();
        tids.len() == 2
    });
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let large = set.attach(admission("large", root, Parameters::Weight(3)), Target::Thread(tids[0])).unwrap();
    let small = set.attach(admission("small", root, Parameters::Weight(1)), Target::Thread(tids[1])).unwrap();
    assert_eq!((set.threads_of(large), set.threads_of(small)), (vec![tids[0]], vec![tids[1]]));
    let received = after(&set, Work::from_millis(400));
    let share = part(&received, "large");
    assert!((0.6..0.9).contains(&share), "{share} of three quarters: {received:?}");
    assert_eq!(policy(group.0.id()), Some(Policy::Other), "its first thread is nobody's");
    set.dismiss(small, REMOVED, |_, _| Ok::<(), ()>(())).unwrap();
    assert_eq!(policy(tids[1]), Some(Policy::Other));
    // What the other one has received is known when it has gone as well, but for the last moments.
    drop(group);
    eventually("it has left", || !set.is_member(large));
    let summary = set.stop().unwrap();
    let large = summary.received.iter().find(|received| received.name == "large").unwrap();
    assert!(large.work * 2 > large.granted, "{large:?}");
}

/// Tells the program where it writes what its threads are.
const NOTE: &str = "TALEA_TEST_NOTE";

#[test]
#[ignore = "run by the test above as a program"]
fn as_program_of_three_threads() {
    let Some(path) = std::env::var_os(NOTE) else { return };
    let spin = || {
        let tid = rustix::thread::gettid();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        file.write_all(format!("{tid}\n").as_bytes()).unwrap();
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

/// Whoever manages the process that has started it is not managed with it.
#[test]
fn a_set_does_not_take_in_its_own_process() {
    let Some((_alone, _)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("members");
    let test = std::env::current_exe().unwrap();
    let script = "\"$0\" --exact adopted::as_child --ignored --nocapture; echo done";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(test).env(NOTE, &note).stdout(Stdio::null()).process_group(0);
    let mut shell = command.spawn().unwrap();
    assert!(shell.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(&note).unwrap(), format!("{:?}", [shell.id()]));
}

#[test]
#[ignore = "run by the test above as a child of the process that it takes in"]
fn as_child() {
    let Some(path) = std::env::var_os(NOTE) else { return };
    let Some((_alone, options)) = stage(1) else { return };
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get() as u32;
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let member = set.attach(admission("parent", root, Parameters::Weight(1)), whole(parent)).unwrap();
    set.spawn(admission("own", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    // Longer than the warden takes to look for new processes.
    after(&set, Work::from_millis(200));
    std::fs::write(path, format!("{:?}", set.threads_of(member))).unwrap();
    set.stop().unwrap();
}

const MS: fn(i64) -> Duration = Duration::from_millis;

/// Their numbers may be others' soon.
#[test]
fn threads_that_have_gone_are_forgotten() {
    let Some((_alone, options)) = stage(1) else { return };
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -t 60; read go; for i in 1 2 3; do sleep 600 & p=\"$p $!\"; done; read go; kill $p; wait; read go",
    ]);
    let mut group = Group(command.stdin(Stdio::piped()).process_group(0).spawn().unwrap());
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let process = whole(group.0.id());
    let member = set.attach(admission("shell", root, Parameters::Priority(1)), process).unwrap();
    let mut stdin = group.0.stdin.take().unwrap();
    stdin.write_all(b"go\n").unwrap();
    eventually("its children are taken in", || set.threads_of(member).len() == 4);
    stdin.write_all(b"go\n").unwrap();
    eventually("they are forgotten", || set.threads_of(member) == [group.0.id()]);
    set.stop().unwrap();
}

#[test]
fn what_others_change_is_put_back_and_counted() {
    let Some((_alone, options)) = stage(1) else { return };
    let program = Program::start();
    let tid = Tid::from_raw(program.id() as i32).unwrap();
    let all = affinity::get(Some(tid)).unwrap();
    // It is parked all the time, so that only a look finds what has become of it.
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("own", root, Parameters::Priority(2)), Blocks::ByHandle, hog).unwrap();
    let process = whole(program.id());
    set.attach(admission("program", root, Parameters::Priority(1)), process).unwrap();
    let changes = |set: &ManagedSet| {
        set.received().1.iter().find(|one| one.name == "program").map(|one| one.changes).unwrap()
    };
    after(&set, Work::from_millis(200));
    assert_eq!(changes(&set), ForeignChanges::default(), "nobody has changed anything");
    let mut priorities = 0;
    for foreign in [Policy::Other, Policy::Fifo(9), Policy::RoundRobin(5)] {
        sched::set_thread(tid, foreign).unwrap();
        eventually("its priority is put back", || changes(&set).priorities > priorities);
        priorities = changes(&set).priorities;
        assert!(policy(program.id()).is_some_and(|policy| policy != foreign && policy != Policy::Other));
    }
    // Only that its heirs would have its priority, too.
    sched::set_thread(tid, Policy::Fifo(10)).unwrap();
    eventually("its flag is put back", || changes(&set).priorities > priorities);
    assert!(sched::resets_on_fork(tid) && policy(program.id()) == Some(Policy::Fifo(10)));
    let deadline = Policy::Deadline { runtime: Work::from_millis(1), deadline: MS(20), period: MS(20) };
    affinity::set(Some(tid), &all).unwrap();
    // Where the kernel lets anybody be one.
    if sched::set_thread(tid, deadline).is_ok() {
        eventually("it is no deadline thread", || policy(program.id()) == Some(Policy::Fifo(10)));
    }
    eventually("it is where it was bound", || affinity::get(Some(tid)).unwrap() == options.cpus);
    if all.len() > 1 {
        let before = changes(&set).processors;
        affinity::set(Some(tid), &all).unwrap();
        eventually("its processors are put back", || changes(&set).processors > before);
        assert_eq!(affinity::get(Some(tid)).unwrap(), options.cpus);
    }
    let summary = set.stop().unwrap();
    let told = summary.received.iter().find(|received| received.name == "program").unwrap();
    assert!(told.changes.priorities >= 3, "{told:?}");
    assert_eq!((policy(program.id()), affinity::get(Some(tid)).unwrap()), (Some(Policy::Other), all));
}
