//! Whoever dies, nobody stays at a real-time priority, parked or held.

use crate::families::named_child;
use crate::programs::{Program, endless, eventually, lives, parent, stage};
use crate::{REMOVED, admission, after, flat, hog, proportional, reservation, whole};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use talea_linux::Tid;
use talea_linux::affinity;
use talea_linux::sched::{self, Policy};
use talea_manage::{Admission, Blocks, ManagedSet, NotDismissed, Options, Parking};
use talea_policy::hierarchy::{
    Context, Decision, Engine, Fraction, Parameters, ProcessorId, Refusal, Scheduler, VpId, Width,
};
use talea_policy::scheduler::{Announcing, Configuration, config};
use talea_time::Work;

pub(crate) fn policy(tid: u32) -> Option<Policy> {
    sched::get(Tid::from_raw(tid as i32)).ok()
}

/// One of the ignored tests below, in a process of its own.
pub(crate) fn in_own_process(test: &str, argument: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(ARGUMENT, argument).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// What the process in which a test runs is told.
pub(crate) const ARGUMENT: &str = "TALEA_TEST_ARGUMENT";

/// The numbers behind `word` in the first line that has it.
pub(crate) fn told(child: &mut Child, word: &str) -> Vec<u32> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.filter_map(|line| Some(line.split_once(word)?.1.to_string())).next();
    line.expect("the process says so").split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Before anybody else is granted its processor, and not when the thread that dismisses it, which is an ordinary one, runs again: the program would keep it
/// from that.
#[test]
fn a_program_is_ordinary_in_the_instant_in_which_it_is_dismissed() {
    let Some((_alone, options)) = stage(1) else { return };
    let program = Program::start();
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let admission = admission("program", root, Parameters::Priority(1));
    let member = set.attach(admission, whole(program.id())).unwrap();
    eventually("it is granted its processor", || policy(program.id()) == Some(Policy::Fifo(12)));
    let mut seen = Vec::new();
    let dismissed = set.dismiss(member, REMOVED, |_, _| {
        seen.push(policy(program.id()));
        Ok::<(), ()>(())
    });
    dismissed.unwrap();
    assert_eq!(seen, [Some(Policy::Fifo(12)), Some(Policy::Other)], "as planned, and then");
    set.stop().unwrap();
}

#[test]
fn a_command_that_is_dismissed_runs_where_it_could() {
    let Some((_alone, options)) = stage(2) else { return };
    let mut engine = Engine::new(2);
    let root =
        engine.add_root(Configuration::from(config::FixedPriority).build(Announcing::Nothing).unwrap());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let admission = admission("command", root, Parameters::Priority(1));
    let member = set.command(admission, &mut endless()).unwrap();
    let leader = Tid::from_raw(set.threads_of(member)[0] as i32).unwrap();
    eventually("it is granted a processor", || {
        policy(set.threads_of(member)[0]) == Some(Policy::Fifo(12))
            && affinity::get(Some(leader)).unwrap().len() == 1
    });
    set.dismiss(member, REMOVED, |_, _| Ok::<(), ()>(())).unwrap();
    let now = (policy(leader.as_raw_nonzero().get() as u32), affinity::get(Some(leader)).unwrap());
    // A command stays on the processors of the set.
    assert_eq!(now, (Some(Policy::Other), options.cpus.clone()));
    set.stop().unwrap();
}

#[test]
fn a_killed_program_leaves_and_the_others_go_on() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("low", root, Parameters::Priority(1)), Blocks::ByHandle, hog).unwrap();
    let program = Program::start();
    set.attach(admission("high", root, Parameters::Priority(2)), whole(program.id())).unwrap();
    after(&set, Work::from_millis(50));
    kill(program.id());
    eventually("the program has left", || set.departed().iter().any(|gone| gone.name == "high"));
    let low = after(&set, Work::from_millis(50));
    assert_eq!(low.len(), 1);
    // Its place is free.
    set.spawn(admission("next", root, Parameters::Priority(2)), Blocks::ByHandle, |_| ()).unwrap();
    eventually("the next has run", || set.departed().len() == 2);
    assert_eq!(set.stop().unwrap().cause, None);
}

#[test]
fn the_end_of_a_set_makes_threads_ordinary() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let program = Program::start();
    let cpus = affinity::get(Tid::from_raw(program.id() as i32)).unwrap();
    set.attach(admission("program", root, Parameters::Weight(1)), whole(program.id())).unwrap();
    assert!(matches!(policy(program.id()), Some(Policy::Fifo(_))));
    let summary = set.stop().unwrap();
    assert_eq!((policy(program.id()), summary.cause), (Some(Policy::Other), None));
    assert_eq!(affinity::get(Tid::from_raw(program.id() as i32)).unwrap(), cpus);
}

#[test]
fn without_a_guardian_the_set_ends() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("hog", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    let guardian = kill(set.guardian());
    assert!(guardian, "the guardian was there");
    eventually("the set has ended", || set.is_ended());
    let cause = set.stop().unwrap().cause.unwrap();
    assert!(cause.contains("guardian"), "{cause}");
}

fn kill(process: u32) -> bool {
    let process = rustix::process::Pid::from_raw(process as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).is_ok()
}

/// The set's process is killed while it holds a program and schedules two others.
#[test]
fn a_killed_set_leaves_ordinary_threads() {
    let Some((_alone, _)) = stage(1) else { return };
    let programs: Vec<Program> = (0..3).map(|_| Program::start()).collect();
    let numbers: Vec<String> = programs.iter().map(|program| program.id().to_string()).collect();
    let cgroup =
        |program: &Program| std::fs::read_to_string(format!("/proc/{}/cgroup", program.id())).unwrap();
    let before = (cgroup(&programs[0]), cpus_of(programs[0].id()));
    let mut set = in_own_process("restoration::as_set", &numbers.join(" "));
    assert_eq!(told(&mut set, "managed ").len(), 3);
    assert!(
        programs.iter().all(|program| policy(program.id()).is_some_and(|policy| policy != Policy::Other))
    );
    let killed = Instant::now();
    set.kill().unwrap();
    let are_ordinary = || programs.iter().all(|program| policy(program.id()) == Some(Policy::Other));
    eventually("the programs are ordinary ones", are_ordinary);
    // Past the test harness, which would keep it to itself.
    let took = killed.elapsed().as_millis();
    writeln!(std::io::stderr(), "{took} ms after its death all programs of a set were ordinary ones")
        .unwrap();
    set.wait().unwrap();
    for program in &programs {
        assert_eq!(policy(program.id()), Some(Policy::Other), "it stays one");
        // And it runs.
        let received = |pid| std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        let before = received(program.id());
        eventually("the program runs", || received(program.id()) != before);
    }
    for program in &programs {
        eventually("it is where it was", || (cgroup(program), cpus_of(program.id())) == before);
    }
    let prefix = format!("talea-{}.", set.id());
    eventually("no cgroup is left", || cgroups_below_root().iter().all(|name| !name.starts_with(&prefix)));
}

fn cpus_of(tid: u32) -> Vec<u16> {
    affinity::get(Tid::from_raw(tid as i32)).unwrap()
}

/// The names of what is right below where the programs of this test are, in the places where cgroups mostly are.
fn cgroups_below_root() -> Vec<String> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let folders =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| std::path::Path::new(root).join(own));
    let entries = folders.into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// How a program's time as a member ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Stopped,
    Dismissed,
    Killed,
}

/// A program creates a thread, and starts another program, while it is bound to one CPU as a member.
fn late_ones_are_unbound(end: End) {
    // Where there is one CPU alone, nobody can tell.
    let Some((_alone, options)) = stage(2) else { return };
    let mut late = Program(in_own_process("restoration::as_late", "managed"));
    let before = cpus_of(late.id());
    let mut managed = Managed::attach(late.id(), &options, end);
    let numbers = told(&mut late.0, "created ");
    let (thread, child) = (numbers[0], numbers[1]);
    for late in [thread, child] {
        eventually("it is taken in", || matches!(policy(late), Some(Policy::RoundRobin(_))));
        assert_eq!(cpus_of(late).len(), 1, "it is bound as the others are");
    }
    managed.end();
    for tid in [late.id(), thread, child] {
        eventually("it is an ordinary one", || policy(tid) == Some(Policy::Other));
        eventually("it runs where it could", || cpus_of(tid) == before);
    }
    kill(child);
}

/// A program as the only member, in a set of this process or in one that can be killed.
enum Managed {
    Here { set: Option<Box<ManagedSet>>, end: End, member: talea_manage::MemberId },
    There(Program),
}

impl Managed {
    fn attach(program: u32, options: &Options, end: End) -> Self {
        if let End::Killed = end {
            let mut set = Program(in_own_process("restoration::as_set_of_one", &program.to_string()));
            told(&mut set.0, "managed ");
            return Managed::There(set);
        }
        let (engine, root) = flat(proportional());
        let mut set =
            ManagedSet::prepare(engine, &Options { slices: None, ..Options::on(&options.cpus[1..]) })
                .unwrap();
        let admission = admission("late", root, Parameters::Weight(1));
        let member = set.attach(admission, whole(program)).unwrap();
        Managed::Here { set: Some(Box::new(set)), end, member }
    }

    fn end(&mut self) {
        match self {
            Managed::There(set) => {
                kill(set.id());
                set.0.wait().unwrap();
            }
            Managed::Here { set, end: End::Dismissed, member } => {
                let set = set.as_ref().expect("it has not ended");
                set.dismiss(*member, REMOVED, |_, _| Ok::<(), ()>(())).unwrap();
            }
            Managed::Here { set, .. } => {
                let summary = set.take().expect("it has not ended").stop().unwrap();
                assert_eq!((summary.cause, summary.unrestored), (None, None));
            }
        }
    }
}

#[test]
fn who_was_created_by_a_member_runs_where_that_could_after_the_end() {
    late_ones_are_unbound(End::Stopped);
}

#[test]
fn who_was_created_by_a_member_runs_where_that_could_after_its_dismissal() {
    late_ones_are_unbound(End::Dismissed);
}

#[test]
fn who_was_created_by_a_member_runs_where_that_could_after_the_set_was_killed() {
    late_ones_are_unbound(End::Killed);
}

#[test]
#[ignore = "run by late_ones_are_unbound"]
fn as_late() {
    let Ok(_managed) = std::env::var(ARGUMENT) else { return };
    while sched::get(None).unwrap() == Policy::Other {
        std::thread::yield_now();
    }
    let (tell, hear) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tell.send(rustix::thread::gettid()).unwrap();
        loop {
            std::thread::park();
        }
    });
    let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap();
    println!("created {} {}", hear.recv().unwrap(), child.id());
    child.wait().unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
#[ignore = "run by late_ones_are_unbound"]
fn as_set_of_one() {
    let Ok(number) = std::env::var(ARGUMENT) else { return };
    let last = *affinity::allowed().unwrap().last().unwrap();
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &Options { slices: None, ..Options::on(&[last]) }).unwrap();
    let target = whole(number.parse().unwrap());
    set.attach(admission("late", root, Parameters::Weight(1)), target).unwrap();
    println!("managed {number}");
    loop {
        std::thread::park();
    }
}

/// Nobody else would end what the set has started.
#[test]
fn commands_end_with_a_set_that_is_killed() {
    let Some((_alone, _)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("child");
    let mut set = in_own_process("restoration::as_set_of_a_command", note.to_str().unwrap());
    let leader = Tid::from_raw(told(&mut set, "started ")[0] as i32).unwrap();
    let child = named_child(&note);
    assert!(lives(leader) && lives(child));
    set.kill().unwrap();
    set.wait().unwrap();
    eventually("the command has ended", || !lives(leader));
    eventually("what it has started has ended", || !lives(child));
}

#[test]
#[ignore = "run by commands_end_with_a_set_that_is_killed"]
fn as_set_of_a_command() {
    let Ok(note) = std::env::var(ARGUMENT) else { return };
    let last = *affinity::allowed().unwrap().last().unwrap();
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &Options { slices: None, ..Options::on(&[last]) }).unwrap();
    let [program, arguments @ ..] = parent(std::path::Path::new(&note));
    let mut command = Command::new(program);
    command.args(arguments);
    let member = set.command(admission("command", root, Parameters::Weight(1)), &mut command).unwrap();
    println!("started {}", set.threads_of(member)[0]);
    loop {
        std::thread::park();
    }
}

/// Slots and virtual processors are used again.
#[test]
fn a_member_that_has_left_is_not_the_one_that_has_its_place() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let weight = Parameters::Weight(1);
    let (old, _) = set.spawn(admission("old", root, weight), Blocks::ByHandle, |_| ()).unwrap();
    eventually("it has left", || set.departed().len() == 1);
    let (new, _) = set.spawn(admission("new", root, weight), Blocks::ByHandle, hog).unwrap();
    assert_eq!(old.vp(), new.vp(), "its number is used again");
    assert!(!set.is_member(old) && set.is_member(new));
    assert_eq!((set.threads_of(old), set.parking(old)), (Vec::new(), None));
    assert_eq!(set.dismiss(old, REMOVED, |_, _| Ok::<(), ()>(())), Err(NotDismissed::Gone));
    assert!(set.is_member(new));
    set.stop().unwrap();
}

#[test]
#[ignore = "run by a_killed_set_leaves_ordinary_threads"]
fn as_set() {
    let Ok(numbers) = std::env::var(ARGUMENT) else { return };
    let last = *affinity::allowed().unwrap().last().unwrap();
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let options = talea_manage::Options { slices: None, ..talea_manage::Options::on(&[last]) };
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    for number in numbers.split(' ') {
        // The processor is idle for three quarters, in which all are held.
        let admission =
            Admission { parking: Parking::Held, ..admission("program", root, reservation(5, 60)) };
        set.attach(admission, whole(number.parse().unwrap())).unwrap();
    }
    // More than all their budgets of some periods.
    after(&set, Work::from_millis(60));
    println!("managed {numbers}");
    loop {
        std::thread::park();
    }
}

/// A program that creates many threads: some are taken in, the others stay ordinary ones.
#[test]
fn a_flood_of_threads_is_bounded() {
    let Some((_alone, mut options)) = stage(1) else { return };
    options.threads_max = 8;
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let mut flood = Program(in_own_process("restoration::as_flood", "40"));
    let member = set.attach(admission("flood", root, Parameters::Weight(1)), whole(flood.id())).unwrap();
    // It waits for the end of what it reads: with all of its threads it would not be taken in.
    drop(flood.0.stdin.take());
    let threads = told(&mut flood.0, "threads ");
    eventually("the limit is reached", || set.threads_of(member).len() == 8);
    eventually("the others are counted", || set.totals().unmanaged_threads >= 30);
    let managed = set.threads_of(member);
    for tid in threads {
        // What is ordinary and what round robin, which is not a policy of ours.
        assert_eq!(policy(tid) == Some(Policy::Other), !managed.contains(&tid), "{tid} of {managed:?}");
    }
    kill(flood.id());
    eventually("it has left", || set.departed().len() == 1);
    set.stop().unwrap();
}

#[test]
#[ignore = "run by a_flood_of_threads_is_bounded"]
fn as_flood() {
    let Ok(count) = std::env::var(ARGUMENT) else { return };
    let count = count.parse().unwrap();
    assert_eq!(std::io::stdin().lines().count(), 0);
    let (tell, hear) = std::sync::mpsc::channel();
    for _ in 0..count {
        let tell = tell.clone();
        std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            loop {
                std::thread::park();
            }
        });
    }
    let tids: Vec<String> = hear.iter().take(count).map(|tid| tid.to_string()).collect();
    println!("threads {}", tids.join(" "));
    loop {
        std::thread::park();
    }
}

/// Decides as another scheduler does, and once panics where a thread of the infrastructure asks it whose name begins so.
struct Panicking {
    decider: Box<dyn Scheduler>,
    /// In whose hands, once it is armed.
    whose: &'static str,
    armed: Arc<AtomicBool>,
}

impl Panicking {
    fn asked(&mut self) -> &mut dyn Scheduler {
        let name = rustix::thread::name().unwrap();
        if name.to_string_lossy().starts_with(self.whose) && self.armed.swap(false, Ordering::AcqRel) {
            panic!("as arranged, in {}", self.whose);
        }
        self.decider.as_mut()
    }
}

impl Scheduler for Panicking {
    fn kind(&self) -> &'static str {
        self.decider.kind()
    }

    fn width(&self) -> Width {
        self.decider.width()
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        self.decider.duplicate()
    }

    fn register(&mut self, cx: &Context<'_>, child: VpId, parameters: Parameters) -> Result<(), Refusal> {
        self.decider.register(cx, child, parameters)
    }

    fn unregister(&mut self, cx: &Context<'_>, child: VpId) {
        self.decider.unregister(cx, child);
    }

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        self.asked().request(cx, child)
    }

    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision {
        self.asked().release(cx, child, held)
    }

    fn grant(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision {
        self.asked().grant(cx, own, processor)
    }

    fn revoke(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision {
        self.asked().revoke(cx, own, processor)
    }

    fn init(&mut self, own: VpId) {
        self.decider.init(own);
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        self.asked().timer(cx)
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        self.decider.check_invariants(cx);
    }
}

/// The controller panics when a quantum ends, a sentinel when a thread blocks, both in the middle of a decision.
#[test]
fn a_panic_of_the_infrastructure_gives_everything_back() {
    let Some((_alone, options)) = stage(1) else { return };
    for whose in ["controller", "sentinel/"] {
        let armed = Arc::new(AtomicBool::new(false));
        let decider = proportional().build(Announcing::Nothing).unwrap();
        let mut engine = Engine::new(1);
        let root = engine.add_root(Box::new(Panicking { decider, whose, armed: Arc::clone(&armed) }));
        let mut set = ManagedSet::prepare(engine, &options).unwrap();
        set.spawn(admission("hog", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
        let blocker = admission("blocker", root, Parameters::Weight(1));
        let (blocks, _) = set
            .spawn(blocker, Blocks::Anywhere, |handle| {
                while !handle.is_ended() {
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            })
            .unwrap();
        let program = Program::start();
        let tid = Tid::from_raw(program.id() as i32);
        let cpus = affinity::get(tid).unwrap();
        let held = Admission { parking: Parking::Held, ..admission("program", root, Parameters::Weight(1)) };
        set.attach(held, whole(program.id())).unwrap();
        after(&set, Work::from_millis(30));
        let threads = [set.threads_of(blocks), vec![program.id()]].concat();
        assert!(threads.iter().all(|tid| policy(*tid) != Some(Policy::Other)));
        armed.store(true, Ordering::Release);
        eventually("the set has ended", || set.is_ended());
        eventually("the program is an ordinary one", || policy(program.id()) == Some(Policy::Other));
        let cause = set.stop().unwrap().cause.unwrap();
        assert!(cause.contains("panicked") && !armed.load(Ordering::Acquire), "{whose}: {cause}");
        assert_eq!(affinity::get(tid).unwrap(), cpus, "{whose}");
        let received = |pid| std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        let before = received(program.id());
        eventually("the program runs", || received(program.id()) != before);
    }
}
