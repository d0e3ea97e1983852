//! Processes that were there before: what they start afterwards, and what others change of them.

use crate::families::named_child;
use crate::programs::{Program, eventually, lives, stage};
use crate::restoration::policy;
use crate::{admission, after, flat, hog, part, proportional};
use rustix::process::{Signal, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use talea_linux::Tid;
use talea_linux::affinity;
use talea_linux::sched::{self, Policy};
use talea_linux::signal_safe::stat_field;
use talea_manage::{Blocks, ForeignChanges, ManagedSet, Target};
use talea_policy::hierarchy::Parameters;
use talea_policy::scheduler::config;
use talea_time::{Duration, Work};

/// A program and all that it starts, which end with their test.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        kill_process_group(Tid::from_child(&self.0), Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
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
    let process = Target::Process(group.0.id());
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
    let process = Target::Process(group.0.id());
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
    let process = Target::Process(program.id());
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
