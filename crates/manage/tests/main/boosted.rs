//! Threads to which the kernel lends a deadline thread's priority: it refuses to change theirs meanwhile, and nothing ends by it.
//!
//! Whoever holds the dispatcher's lock while the controller, which is a deadline thread, waits for it is such a thread. That
//! happens where a sentinel dispatches just when a timer or a wake-up is due: often, if programs with several threads block
//! and wake beside others whose budgets or quanta end.

use crate::programs::{Program, eventually, stage};
use crate::restoration::{ARGUMENT, in_own_process, policy, told};
use crate::{admission, after, flat, hog, part, reservation, whole};
use rustix::thread::futex::{self, Flags};
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::time::{Duration as StdDuration, Instant};
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_manage::{AdmitError, Blocks, ManagedSet, Options, Target};
use talea_measure::skip;
use talea_policy::hierarchy::{Fraction, Parameters, SchedulerId};
use talea_policy::scheduler::{Configuration, WakeUp, config};
use talea_time::{Duration, Work};

/// How often members are to be found blocked: at least ten times as often as it took for a refusal to end the set.
const BLOCKS: u64 = 2_000;
/// Members beside the hog. Where wake-ups are not traced, each is found blocked once in [`talea_manage::LOOK_EVERY`] at most, so
/// that fewer would take longer.
const OTHERS: u32 = 8;
/// Members beside the hog that have [`FLOOD`] threads each; with more of them the processor has no time to spare when the machine
/// does other things as well.
const FLOODS: usize = 3;
const FLOOD: u32 = 40;

/// Tells the program of several threads how many.
fn threads_of_program() -> Option<u32> {
    std::env::var(ARGUMENT).ok().map(|count| count.parse().unwrap())
}

#[test]
#[ignore = "run by the tests below as a program of several threads"]
fn as_blocking_program() {
    let Some(count) = threads_of_program() else { return };
    let (tell, hear) = std::sync::mpsc::channel();
    for thread in 0..count {
        let tell = tell.clone();
        std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            // Work and pauses of lengths of their own, so that they meet in all ways and leave times at which all pause.
            let pause = StdDuration::from_micros(u64::from(100 * count + 137 * thread));
            // By the clock, since a turn of such a loop takes three times as long on one machine as on another.
            let work = StdDuration::from_nanos(u64::from(4_000 + 260 * thread));
            loop {
                let began = Instant::now();
                while began.elapsed() < work {
                    std::hint::spin_loop();
                }
                std::thread::sleep(pause);
            }
        });
    }
    let tids: Vec<String> = hear.iter().take(count as usize).map(|tid| tid.to_string()).collect();
    println!("threads {}", tids.join(" "));
    // Should nobody be left to end it.
    std::thread::sleep(StdDuration::from_secs(120));
}

/// A program of several threads, and their numbers.
fn program(threads: u32) -> (Program, Vec<u32>) {
    let mut program = Program(in_own_process("boosted::as_blocking_program", &threads.to_string()));
    let numbers = told(&mut program.0, "threads ");
    (program, numbers)
}

/// A shell with two such programs.
fn family() -> Command {
    let own = std::env::current_exe().unwrap();
    let one = "--exact boosted::as_blocking_program --ignored --nocapture >/dev/null";
    let mut command = Command::new("sh");
    let script = format!("'{0}' {one} & '{0}' {one} & wait", own.display());
    command.args(["-c", &script]).env(ARGUMENT, "2");
    command
}

/// Quanta of a millisecond, which end all the time.
fn quanta() -> (Configuration, Parameters) {
    let kind = config::ProportionalShare { quantum: Work::from_millis(1), wake_up: WakeUp::Preempts };
    (kind.into(), Parameters::Weight(1))
}

/// Budgets of a millisecond, which end and come again all the time, with room for all members.
fn budgets() -> (Configuration, Parameters) {
    (config::Reservation::hard(Fraction::ONE).into(), reservation(1, i64::from(OTHERS) + 2))
}

/// A set with a thread of its own that always wants the processor, and where others go.
fn beside_a_hog(
    (kind, parameters): &(Configuration, Parameters),
    options: &Options,
) -> (ManagedSet, SchedulerId) {
    let (engine, root) = flat(kind.clone());
    let mut set = ManagedSet::prepare(engine, options).unwrap();
    set.spawn(admission("hog", root, *parameters), Blocks::ByHandle, hog).unwrap();
    (set, root)
}

/// The set goes on while its members are found blocked [`BLOCKS`] times.
fn endures(set: ManagedSet) {
    eventually("members block", || set.is_ended() || set.totals().blocks >= BLOCKS);
    let (totals, summary) = (set.totals(), set.stop().unwrap());
    assert_eq!(summary.cause, None, "{totals:?}");
}

#[test]
fn programs_of_several_threads_that_block_end_nothing() {
    let Some((_alone, options)) = stage(1) else { return };
    for system in [quanta(), budgets()] {
        let (mut set, root) = beside_a_hog(&system, &options);
        let programs: Vec<_> = (0..OTHERS).map(|number| program(3 + number % 2)).collect();
        for (program, _) in &programs {
            set.attach(admission("program", root, system.1), whole(program.id())).unwrap();
        }
        endures(set);
        let threads = programs.iter().flat_map(|(_, threads)| threads);
        threads.for_each(|tid| assert_eq!(policy(*tid), Some(Policy::Other)));
    }
}

#[test]
fn a_command_whose_children_block_ends_nothing() {
    let Some((_alone, options)) = stage(1) else { return };
    for system in [quanta(), budgets()] {
        let (mut set, root) = beside_a_hog(&system, &options);
        for _ in 0..OTHERS {
            set.command(admission("command", root, system.1), &mut family()).unwrap();
        }
        endures(set);
    }
}

#[test]
fn floods_of_threads_that_block_end_nothing() {
    let Some((_alone, mut options)) = stage(1) else { return };
    options.threads_max = FLOODS * (FLOOD as usize + 8);
    // As sets are by default. Without slices each wake-up of a parked thread is a matter for the controller, and this takes ten times as long.
    options.slices = Options::on(&options.cpus).slices;
    let system = budgets();
    let (mut set, root) = beside_a_hog(&system, &options);
    let floods: Vec<_> = (0..FLOODS).map(|_| program(FLOOD)).collect();
    for (flood, threads) in &floods {
        let member = set.attach(admission("flood", root, system.1), whole(flood.id())).unwrap();
        assert!(set.threads_of(member).len() >= threads.len());
    }
    endures(set);
}

/// Wake-ups of a command are told, and not found by looking, also where its parked threads are ordinary ones.
#[test]
fn wake_ups_of_commands_are_told_with_slices_and_without() {
    let Some((_alone, options)) = stage(1) else { return };
    for slices in [None, Options::on(&options.cpus).slices] {
        let (mut set, root) = beside_a_hog(&quanta(), &Options { slices, ..options.clone() });
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "boosted::as_blocking_program", "--ignored"]).env(ARGUMENT, "1");
        set.command(admission("command", root, quanta().1), &mut command).unwrap();
        eventually("it blocks", || set.is_ended() || set.totals().blocks >= 100);
        let totals = set.totals();
        set.stop().unwrap();
        assert!(totals.wakeups >= 50 && totals.wakeups > 4 * totals.found, "{slices:?}: {totals:?}");
    }
}

/// A program with a lock that lends priority: a thread that holds it half of the time, and a deadline thread that wants it again and
/// again, both for lengths of time that change, so that the ends of quanta fall on all phases.
#[test]
#[ignore = "run by a_program_that_is_lent_priority_ends_nothing"]
fn as_lent_program() {
    if threads_of_program().is_none() {
        return;
    }
    static LOCK: AtomicU32 = AtomicU32::new(0);
    let take = || while futex::lock_pi(&LOCK, Flags::PRIVATE, None).is_err() {};
    let give_back = || futex::unlock_pi(&LOCK, Flags::PRIVATE).unwrap();
    let work = |round: u32| (0..3_000 * (1 + round % 7)).for_each(|_| std::hint::spin_loop());
    let period = Duration::from_millis(10);
    let policy = Policy::Deadline { runtime: Work::from_millis(1), deadline: period, period };
    let waiter = spawn("waiter", policy, &[], 64 * 1024, move || {
        for round in 0_u64.. {
            let asked = Instant::now();
            take();
            give_back();
            // While this thread waits the holder runs at the kernel's word, whatever it has been granted: for a quarter of the time
            // at most, on machines of any speed.
            std::thread::sleep(3 * asked.elapsed() + StdDuration::from_micros(137 * (1 + round % 5)));
        }
    });
    let waits = u32::from(waiter.is_ok());
    println!("threads {} {waits}", rustix::thread::gettid());
    for round in (0..u32::MAX).cycle() {
        take();
        work(round);
        give_back();
        work(round / 7);
    }
}

#[test]
fn a_program_that_is_lent_priority_ends_nothing() {
    let Some((_alone, options)) = stage(1) else { return };
    let mut program = Program(in_own_process("boosted::as_lent_program", "1"));
    let [holder, waits] = told(&mut program.0, "threads ")[..] else { panic!("two numbers") };
    if waits == 0 {
        return skip("a deadline thread that waits for a managed one: SCHED_DEADLINE is not permitted here");
    }
    let system = quanta();
    let (mut set, root) = beside_a_hog(&system, &options);
    eventually("the holder is taken in", || {
        match set.attach(admission("holder", root, system.1), Target::Thread(holder)) {
            Ok(_) => true,
            // Just then the deadline thread waits for it.
            Err(AdmitError::Lent { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    });
    eventually("the kernel refuses to change the holder", || set.is_ended() || set.totals().lent >= 20);
    // It is lowered afterwards, so that both go on and share.
    let received = after(&set, Work::from_millis(300));
    let share = part(&received, "hog");
    assert!(share > 0.2, "{share} of a half: {received:?}");
    assert_eq!(set.stop().unwrap().cause, None);
    assert_eq!(policy(holder), Some(Policy::Other));
}
