//! A guarantee that is a maximum is one on an idle processor, too.

use crate::programs::{Program, endless, eventually, parent, stage};
use crate::{flat, hog, reservation};
use std::io::Write;
use std::process::Command;
use talea_manage::{Admission, AdmitError, Blocks, Held, ManagedSet, MemberId, Parking, Received, Target};
use talea_policy::hierarchy::Fraction;
use talea_policy::scheduler::config;
use talea_time::Duration;

/// What the only member has received, over how much time, from now on for some periods.
fn measure(set: &ManagedSet) -> (Received, Duration) {
    let (from, before) = set.received();
    let mut last = None;
    eventually("half a second has passed", || {
        let (to, mut now) = set.received();
        let mut own = now.pop().expect("one member");
        own.work -= before[0].work;
        own.granted -= before[0].granted;
        last = Some((own, to - from));
        to - from >= Duration::from_millis(500)
    });
    last.expect("measured")
}

/// 5 ms in 20 ms, and nobody else: held, it receives a quarter; where it may run on, it would receive nearly everything.
fn capped(take_in: impl Fn(&mut ManagedSet, Admission<'_>) -> MemberId) {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let (name, parameters) = ("capped", reservation(5, 20));
    let admission = Admission { name, parent: root, parameters, parking: Parking::Held, edge: None };
    let member = take_in(&mut set, admission);
    let (received, over) = measure(&set);
    let share = received.work.as_nanos() as f64 / over.as_nanos() as f64;
    assert!(share < 0.35, "{share} of a quarter: {received:?}");
    eventually("it has received something", || set.received().1[0].work.as_nanos() > 20_000_000);
    eventually("it is seen held", || set.held(member) == Held::Yes);
    eventually("it is seen let go", || set.held(member) == Held::No);
    set.stop().unwrap();
}

#[test]
fn an_own_thread_is_held() {
    capped(|set, admission| set.spawn(admission, Blocks::ByHandle, hog).unwrap().0);
}

#[test]
fn a_program_is_held() {
    capped(|set, admission| set.command(admission, &mut endless()).unwrap());
}

/// More often than there is room for programs that are held, and each time with what the command has started.
#[test]
fn a_cap_that_comes_and_goes_holds_all_processes_of_a_command() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let [program, arguments @ ..] = parent(&folder.path().join("child"));
    let mut command = Command::new(program);
    command.args(arguments);
    let (name, parameters) = ("capped", reservation(5, 20));
    let admission =
        Admission { name, parent: root, parameters, parking: Parking::WorkConserving, edge: None };
    let member = set.command(admission, &mut command).unwrap();
    eventually("the child is taken in", || set.threads_of(member).len() == 2);
    let (received, over) = measure(&set);
    let free = received.work.as_nanos() as f64 / over.as_nanos() as f64;
    for _ in 0..150 {
        set.set_parking(member, Parking::Held).unwrap();
        set.set_parking(member, Parking::WorkConserving).unwrap();
    }
    set.set_parking(member, Parking::Held).unwrap();
    assert_eq!(set.parking(member), Some(Parking::Held));
    let (received, over) = measure(&set);
    let share = received.work.as_nanos() as f64 / over.as_nanos() as f64;
    assert!(share < 0.35, "{share} of a quarter, and {free} before: {received:?}");
    set.stop().unwrap();
}

#[test]
fn who_cannot_be_held_is_as_before() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let program = Program::start();
    let (name, parameters) = ("thread", reservation(5, 20));
    let admission =
        Admission { name, parent: root, parameters, parking: Parking::WorkConserving, edge: None };
    let member = set.attach(admission, Target::Thread(program.id())).unwrap();
    let refused = set.set_parking(member, Parking::Held);
    assert!(matches!(refused, Err(AdmitError::CannotHold { .. })), "{refused:?}");
    assert_eq!(set.parking(member), Some(Parking::WorkConserving));
    set.stop().unwrap();
}

/// Threads of the program that sleep all the time.
const SLEEPERS: usize = 60;
/// Tells the program where its second thread writes.
const PROGRESS: &str = "TALEA_TEST_PROGRESS";

#[test]
#[ignore = "run by the test below as a program of many threads"]
fn as_program_of_many_threads() {
    let Some(path) = std::env::var_os(PROGRESS) else { return };
    for _ in 0..SLEEPERS {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
    }
    let mut file = std::fs::File::create(path).unwrap();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
            file.write_all(b".").unwrap();
        }
    });
    // Should nobody be left to end it.
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_secs(120) {
        std::hint::spin_loop();
    }
}

/// Holding a program wakes all of its threads, and so does letting it go; the kernel is not asked to tell of each. What one of them has waited for
/// meanwhile it finds, although another thread would take all of the program's time.
#[test]
fn threads_that_sleep_are_not_heard_of_each_time_that_their_program_is_held() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let progress = folder.path().join("progress");
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "caps::as_program_of_many_threads";
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(PROGRESS, &progress);
    command.stdout(std::process::Stdio::null());
    let (name, parameters) = ("many", reservation(5, 20));
    let admission = Admission { name, parent: root, parameters, parking: Parking::Held, edge: None };
    let member = set.command(admission, &mut command).unwrap();
    eventually("all are taken in", || set.threads_of(member).len() > SLEEPERS + 1);
    let written = || std::fs::metadata(&progress).map_or(0, |file| file.len());
    let before = set.totals();
    // The only one, whose processor is idle then.
    let held = || set.totals().revocations - before.revocations;
    eventually("it is held and let go", || held() >= 20);
    // By the kernel's time slices of 100 ms alone it would come to its turn once in twenty times, or not at all.
    let (began, goal) = (held(), written() + 10);
    eventually("its second thread goes on", || written() >= goal);
    let turns = held() - began;
    assert!(turns < 100, "it goes on ten times while the program is held {turns} times");
    let woken = set.totals().wakeups - before.wakeups;
    assert!(woken < held() * SLEEPERS as u64, "{woken} wake-ups told, held {} times", held());
    set.stop().unwrap();
}
