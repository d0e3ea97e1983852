//! What a command starts belongs to its member, and ends with it.

use crate::programs::{child_of, eventually, lives, parent, stage};
use crate::{admission, after, flat, hog, part, proportional};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;
use talea_linux::Tid;
use talea_linux::sched::{self, Policy};
use talea_manage::{Blocks, ManagedSet};
use talea_measure::skip;
use talea_policy::hierarchy::Parameters;
use talea_policy::scheduler::config;
use talea_time::Work;

#[test]
fn the_children_of_a_command_are_of_its_member_and_end_with_it() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("child");
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("own", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    let [program, arguments @ ..] = parent(&note);
    let mut command = Command::new(program);
    command.args(arguments);
    let family = set.command(admission("family", root, Parameters::Weight(1)), &mut command).unwrap();
    eventually("the child is taken in", || set.threads_of(family).len() == 2);
    let child = named_child(&note);
    let is_real_time = |policy| matches!(policy, Ok(Policy::Fifo(_) | Policy::RoundRobin(_)));
    assert!(is_real_time(sched::get(Some(child))), "{:?}", sched::get(Some(child)));
    let received = after(&set, Work::from_millis(300));
    let share = part(&received, "family");
    assert!((0.3..0.7).contains(&share), "{share} of a half: {received:?}");
    let summary = set.stop().unwrap();
    assert_eq!((summary.exits.len(), summary.cause), (0, None));
    eventually("the child has ended with the set", || !lives(child));
}

/// Two processes of a program that wake each other are granted their processor all the time, so nobody has to act on it.
#[test]
fn a_program_whose_processes_wake_each_other_is_left_alone() {
    const ROUNDS: u64 = 2_000;
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "ulimit -t 60; cd '{}'; mkfifo there back; (while read -r line; do echo back; done < there > back) &\n\
         exec 3> there 4< back; i=0; while [ $i -lt {ROUNDS} ]; do echo there >&3; read -r line <&4; i=$((i+1)); done",
        folder.path().display()
    );
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    if let Some(reason) = set.untraced() {
        return skip(reason);
    }
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    let program = set.command(admission("program", root, Parameters::Priority(1)), &mut command).unwrap();
    eventually("the program has ended", || !set.is_member(program));
    let totals = set.totals();
    set.stop().unwrap();
    assert!(totals.wakeups < ROUNDS / 2, "{totals:?} in {ROUNDS} rounds");
}

/// Somebody on another processor answers a program at once, so that it is woken again and again in the moment in which it is lowered for having
/// blocked, and another member goes on.
#[test]
fn a_program_is_heard_of_that_is_woken_while_it_is_lowered() {
    const ROUNDS: u64 = 2_000;
    let Some((_alone, mut options)) = stage(2) else { return };
    options.cpus.remove(0);
    let folder = tempfile::tempdir().unwrap();
    let (there, back) = (folder.path().join("there"), folder.path().join("back"));
    for fifo in [&there, &back] {
        rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    if let Some(reason) = set.untraced() {
        return skip(reason);
    }
    set.spawn(admission("below", root, Parameters::Priority(1)), Blocks::ByHandle, hog).unwrap();
    let script = "ulimit -t 60; while read -r line; do echo back; done < \"$0\" > \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).args([&there, &back]);
    let program = set.command(admission("program", root, Parameters::Priority(2)), &mut command).unwrap();
    let mut to = std::fs::OpenOptions::new().write(true).open(&there).unwrap();
    let mut from = BufReader::new(std::fs::File::open(&back).unwrap());
    let mut line = String::new();
    for _ in 0..ROUNDS {
        to.write_all(b"there\n").unwrap();
        line.clear();
        from.read_line(&mut line).unwrap();
        assert_eq!(line, "back\n");
    }
    let totals = set.totals();
    drop(to);
    eventually("the program has ended", || !set.is_member(program));
    set.stop().unwrap();
    // It is looked at every ten milliseconds, and may have been woken just then.
    assert!(totals.blocks > ROUNDS / 10 && totals.found < ROUNDS / 100, "{totals:?} in {ROUNDS} rounds");
}

#[test]
fn a_member_lives_as_long_as_what_it_has_started() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("child");
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let [program, arguments @ ..] = parent(&note);
    let mut command = Command::new(program);
    command.args(arguments);
    let family = set.command(admission("family", root, Parameters::Priority(1)), &mut command).unwrap();
    let leader = Tid::from_raw(set.threads_of(family)[0] as i32).unwrap();
    eventually("the child is taken in", || set.threads_of(family).len() == 2);
    let child = named_child(&note);
    rustix::process::kill_process(leader, rustix::process::Signal::KILL).unwrap();
    eventually("the leader has ended", || !lives(leader));
    after(&set, Work::from_millis(200));
    assert!(set.is_member(family) && lives(child));
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    eventually("the member has left", || !set.is_member(family));
    let summary = set.stop().unwrap();
    assert_eq!(summary.exits.len(), 1, "{:?}", summary.exits);
}

/// Its file passes every check before the kernel is asked to execute it; it then never runs, and has no exit status.
#[test]
fn a_program_that_the_kernel_does_not_execute_is_told_of_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let mut leaves = Vec::new();
    for (name, program, code) in [("missing", script.as_os_str(), ""), ("failing", "sh".as_ref(), "exit 127")]
    {
        let mut command = Command::new(program);
        command.args(["-c", code]);
        leaves.push(set.command(admission(name, root, Parameters::Weight(1)), &mut command).unwrap());
    }
    eventually("both have ended", || leaves.iter().all(|&leaf| !set.is_member(leaf)));
    let mut exits = set.stop().unwrap().exits;
    exits.sort_by(|(a, _), (b, _)| b.cmp(a));
    let told: Vec<String> = exits.iter().map(|(name, end)| format!("{name}: {end}")).collect();
    assert_eq!(
        told,
        [
            "missing: its program could not be executed: No such file or directory (os error 2); its file was there, so the interpreter \
             that it names is missing",
            "failing: exit status: 127",
        ]
    );
}

/// The child that [`parent`] writes down in `note`, which it does after it has started it.
pub(crate) fn named_child(note: &Path) -> Tid {
    let mut child = None;
    eventually("the parent names its child", || {
        child = child_of(note);
        child.is_some()
    });
    child.expect("it was named")
}
