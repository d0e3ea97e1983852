//! What a command starts belongs to its member, and ends with it.

use crate::programs::{child_of, eventually, lives, parent, stage};
use crate::{admission, after, flat, hog, part, proportional};
use std::path::Path;
use std::process::Command;
use talea_linux::Tid;
use talea_linux::sched::{self, Policy};
use talea_manage::{Blocks, ManagedSet};
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

/// The child that [`parent`] writes down in `note`, which it does after it has started it.
pub(crate) fn named_child(note: &Path) -> Tid {
    let mut child = None;
    eventually("the parent names its child", || {
        child = child_of(note);
        child.is_some()
    });
    child.expect("it was named")
}
