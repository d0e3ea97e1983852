//! Time constraints: bursts of threads and jobs of lanes that reserve nothing are accepted one by one, and then done in time.

use super::plans::{stretches, system};
use super::shares::Count;
use crate::replay::{Everything, records};
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::path::Path;
use talea_conformance::promises::cases;
use talea_guarantee::derivation::derive;
use talea_model::{
    Description, Execution, Request, SchedulerBuilder, SchedulerKind, System, TaskBuilder, ThreadBuilder,
    ThreadWork, parse,
};
use talea_record::event::Release;
use talea_record::{Event, JobId, Record};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// A reservation for a child that never stops, and two others that never stop either: what is left is not enough for all.
fn below(kind: &str, reserved: &str, guarded: &[(&str, &str)]) -> talea_model::System {
    let scheduler = format!("[[scheduler]]\nname = \"S\"\nkind = \"{kind}\"\nquantum = \"10ms\"");
    let hog = format!("{{ scheduler = \"S\", guarantee = \"{reserved}\" }}");
    let mut threads =
        vec![("hog", "\"cpu-bound\"", hog.as_str()), ("other", "\"cpu-bound\"", "{ scheduler = \"S\" }")];
    threads.extend(guarded.iter().map(|(name, work)| (*name, *work, "{ scheduler = \"S\" }")));
    system(&scheduler, &threads)
}

/// The bursts that are over, each from its release on, in milliseconds; the period in milliseconds.
fn responses(system: &talea_model::System, thread: usize, period: i64) -> Vec<i64> {
    let stretches = stretches(system, thread);
    let passes = 200 / period;
    let end = |pass: i64| {
        let within = stretches.iter().filter(|(from, _)| (pass * period..(pass + 1) * period).contains(from));
        within.map(|(_, to)| to - pass * period).max().unwrap_or(i64::MAX)
    };
    (0..passes).map(end).collect()
}

/// Beside a reservation of half the processor and endless work in turn, a burst of 8 in 20 is always in time by its constraint; in turn,
/// in quanta of 10, it would not be.
#[test]
fn rialto_accepts_what_is_left() {
    let system = below("rialto", "RESCS 5ms 10ms", &[("decoder", "{ burst = \"8ms\", period = \"20ms\" }")]);
    let responses = responses(&system, 2, 20);
    assert!(responses.iter().all(|response| *response <= 20), "{responses:?}");
    let derived = derive(&system.hierarchy(0).expect("one")).expect("nothing is required");
    assert_eq!(derived.between("S", "decoder").expect("an edge").label.to_string(), "NULL");
    assert_eq!(derived.between("S", "hog").expect("an edge").label.to_string(), "RESCS 5ms 10ms");
}

/// What does not fit beside the accepted ones is refused: the first is in time for ever, the second runs in turn.
#[test]
fn who_comes_first_is_accepted_and_keeps_what_it_was_told() {
    for kind in ["rialto", "spring"] {
        let reserved = if kind == "rialto" { "RESCS 5ms 10ms" } else { "RESBH 5ms 20ms" };
        let system = below(
            kind,
            reserved,
            &[
                ("first", "{ burst = \"9ms\", period = \"20ms\" }"),
                ("second", "{ burst = \"9ms\", period = \"20ms\" }"),
            ],
        );
        let first = responses(&system, 2, 20);
        assert!(first.iter().all(|response| *response <= 20), "{kind}: {first:?}");
        assert!(responses(&system, 3, 20).iter().any(|response| *response > 20), "{kind}");
    }
}

/// A piece of Spring's has to fit between slots in one go, which a burst longer than any gap does not.
#[test]
fn spring_refuses_what_fits_into_no_gap() {
    let reserved = "RESBH 4ms 10ms";
    let fits = below("spring", reserved, &[("decoder", "{ burst = \"6ms\", period = \"20ms\" }")]);
    assert!(responses(&fits, 2, 20).iter().all(|response| *response == 10), "in the first gap");
    let long = below("spring", reserved, &[("decoder", "{ burst = \"7ms\", period = \"20ms\" }")]);
    let late = responses(&long, 2, 20);
    assert!(late.iter().any(|response| *response > 10), "{late:?}");
}

/// The tasks in lanes that reserve nothing, beside two threads that never stop.
fn beside_hogs(tasks: &Description, kind: SchedulerKind) -> System {
    let plans = SchedulerBuilder::new("S", kind).on("n0").quantum(Duration::from_nanos(3));
    let lanes = SchedulerBuilder::new("jobs", SchedulerKind::LANES).under("S", Request::Nothing);
    let hog = |name| ThreadBuilder::new(name, ThreadWork::CpuBound).under("S", Request::Nothing);
    let template = System::builder("template")
        .node("n0", [0])
        .scheduler(plans)
        .scheduler(lanes)
        .thread(hog("one"))
        .thread(hog("other"))
        .task(TaskBuilder::new("any", Duration::from_millis(10)).wcet(Work::from_millis(1)))
        .build()
        .expect("sound");
    let (schedulers, threads) = (template.schedulers.clone(), template.threads.clone());
    System::new(Description { schedulers, threads, ..tasks.clone() }).expect("as sound as before")
}

/// When, what, and of which operation and instance.
type Told = (i64, u16, usize, u64);

/// What happens to the jobs of the first `tasks` tasks, in order, and the instant from which on one of them cannot be in time any more.
/// Of jobs whose deadlines are after `until` that is not known.
fn told(system: &System, tasks: usize, until: i64) -> (Vec<Told>, i64) {
    let operations = system.operations().iter().filter(|operation| operation.task < tasks).count();
    let of_tasks = |record: &Record| {
        record.event.is_about_job() && JobId::unpack(record.causal).operation.index() < operations
    };
    let all: Vec<Record> = records(system, &[until / 2], until).into_iter().filter(of_tasks).collect();
    let mut doomed = i64::MAX;
    for record in all.iter().filter(|record| record.event == Event::RELEASE) {
        let released = Release::read(record).expect("a release");
        let end = all.iter().find(|other| {
            other.job() == record.job() && [Event::COMPLETE, Event::ABORT].contains(&other.event)
        });
        let in_time = match end {
            Some(end) => end.event == Event::COMPLETE && end.time <= released.deadline,
            None => released.deadline.as_nanos() > until,
        };
        if !in_time {
            let wcet = system.subtask(record.job().operation).wcet.as_nanos();
            doomed = doomed.min(released.deadline.as_nanos().min(until) - wcet);
        }
    }
    let event = |record: &Record| {
        let JobId { operation, instance } = record.job();
        (record.time.as_nanos(), record.event.0, operation.index(), instance)
    };
    let mut events: Vec<Told> = all.iter().map(event).collect();
    events.sort_unstable();
    (events, doomed)
}

/// What the tasks' lanes do when they have the processor for themselves and when they are below a scheduler of `kind` beside threads
/// that never stop, both until the lanes alone are not in time any more.
fn compared(tasks: &Description, kind: SchedulerKind) -> (Vec<Told>, Vec<Told>, i64) {
    // Who is refused may have a deadline some time ahead.
    const COMPARED: i64 = 150;
    const LONGEST: i64 = 100;
    let count = tasks.tasks.len();
    assert!(tasks.tasks.iter().all(|task| task.deadline.as_nanos() <= LONGEST));
    let alone = System::new(tasks.clone()).expect("as sound as before");
    let (expected, doomed) = told(&alone, count, COMPARED + LONGEST);
    let (found, _) = told(&beside_hogs(tasks, kind), count, COMPARED + LONGEST);
    let before = |events: Vec<Told>| -> Vec<Told> {
        events.into_iter().filter(|event| event.0 < doomed.min(COMPARED)).collect()
    };
    (before(expected), before(found), doomed)
}

/// A lane by laxity has chosen another job when the one that has run is aborted at the same instant: the time that this one ran is not
/// the other one's.
#[test]
fn an_abort_beside_a_change_of_mind_leaves_the_order() {
    let text = "[system]\nname = \"laxity\"\nstrategy = \"mlf\"\nlane_dispatch = \"preemptive\"\nlaxity = \"remaining\"\n\
                [[task]]\nname = \"long\"\nperiod = \"40ns\"\ndeadline = \"18ns\"\nphase = \"3ns\"\nwcet = \"3ns\"\n\
                [[task]]\nname = \"short\"\nperiod = \"3ns\"\ndeadline = \"16ns\"\nphase = \"4ns\"\noverrun = \"abort\"\n\
                [[task.subtask]]\nname = \"one\"\nwcet = \"1ns\"\n\
                [[task.subtask]]\nname = \"other\"\nwcet = \"4ns\"\nafter = []\n\
                [[task]]\nname = \"before\"\nperiod = \"40ns\"\ndeadline = \"8ns\"\nphase = \"1ns\"\nwcet = \"3ns\"\n";
    let alone =
        parse("laxity.toml", text, Path::new("")).unwrap_or_else(|problems| panic!("{problems}")).system;
    for kind in [SchedulerKind::RIALTO, SchedulerKind::SPRING] {
        let told = |system: &System| -> Vec<Told> {
            told(system, 3, 20).0.into_iter().filter(|event| event.0 < 9).collect()
        };
        let events = told(&alone);
        assert!(
            events.contains(&(7, Event::START.0, 0, 0)),
            "the least laxity is that of the long one: {events:?}"
        );
        assert_eq!(events, told(&beside_hogs(&alone, kind)), "{kind}");
    }
}

/// As long as lanes that have the processor for themselves are in time, each job that they elect is accepted, and others in turn do
/// not delay it: they do the same beside threads that never stop, in every strategy, whether lanes preempt or not.
#[test]
fn lanes_that_reserve_nothing_are_as_if_alone() {
    let (config, events) = (cases(1_500), Count::default());
    let number = config.cases;
    let kinds = prop::sample::select(vec![SchedulerKind::RIALTO, SchedulerKind::SPRING]);
    let drawn = (systems(Scope { jitter: true, ..Scope::ONE_PROCESSOR }), kinds);
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..config });
    let outcome = runner.run(&drawn, |(system, kind)| {
        let mut tasks = Description::clone(&system);
        for subtask in tasks.tasks.iter_mut().flat_map(|task| &mut task.subtasks) {
            // Who takes less may be in time although its worst case would not.
            subtask.exec = Execution::Constant(subtask.wcet);
        }
        let (expected, found, doomed) = compared(&tasks, kind);
        prop_assert_eq!(&expected, &found, "before {}", doomed);
        events.add(expected.len() as u32);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(events.get() > 20 * number, "{} events in {number} systems", events.get());
}

/// A system of a scheduler that plans, lanes below it, and others.
fn with_lanes(kind: &str, threads: &[(&str, &str, &str)], tasks: &[(&str, &str)]) -> System {
    let mut text = format!(
        "[system]\nname = \"lanes\"\nstrategy = \"rms\"\n[[scheduler]]\nname = \"S\"\nkind = \"{kind}\"\nquantum = \"10ms\"\n\
         [[scheduler]]\nname = \"jobs\"\nkind = \"lanes\"\nunder = [{{ scheduler = \"S\" }}]\n"
    );
    for (name, times) in tasks {
        text += &format!("[[task]]\nname = \"{name}\"\n{times}\n");
    }
    for (name, work, asks) in threads {
        text += &format!(
            "[[thread]]\nname = \"{name}\"\nwork = {work}\nunder = [{{ scheduler = \"S\"{asks} }}]\n"
        );
    }
    parse("lanes.toml", &text, Path::new("")).unwrap_or_else(|problems| panic!("{problems}")).system
}

const HOG: (&str, &str, &str) = ("hog", "\"cpu-bound\"", "");

/// Beside a reservation of half the processor and endless work in turn, jobs of 8 in 20 are always in time by their constraints, also in
/// two lanes of which the higher preempts; by a reservation of their own they would have slots, and in turn they would be late.
#[test]
fn jobs_of_lanes_have_time_constraints() {
    for (kind, reserved) in [("rialto", "RESCS 5ms 10ms"), ("spring", "RESBH 5ms 10ms")] {
        let reserved = format!(", guarantee = \"{reserved}\"");
        let threads = [("reserved", "\"cpu-bound\"", &*reserved), HOG];
        let tasks = [
            ("fast", "period = \"20ms\"\nwcet = \"4ms\"\nexec = \"3ms\""),
            ("slow", "period = \"40ms\"\nwcet = \"5ms\""),
        ];
        let system = with_lanes(kind, &threads, &tasks);
        for (task, period) in [(0, 20), (1, 40)] {
            let responses = responses(&system, task, period);
            assert!(responses.iter().all(|response| *response <= period), "{kind}: {responses:?}");
        }
        assert!(responses(&system, 0, 20).iter().all(|response| *response <= 10), "{kind}: in the first gap");
        let derived = derive(&system.hierarchy(0).expect("one")).expect("nothing is required");
        assert_eq!(derived.between("S", "jobs").expect("an edge").label.to_string(), "NULL");
    }
}

/// Who was accepted first keeps what it was told, the lanes or a thread; the other one is refused and takes turns.
#[test]
fn lanes_and_threads_are_accepted_in_the_order_in_which_they_ask() {
    for kind in ["rialto", "spring"] {
        // The task's first job asks before the thread's, because tasks are released first.
        let burst = ("burst", "{ burst = \"11ms\", period = \"20ms\" }", "");
        let tasks = [("job", "period = \"20ms\"\nwcet = \"11ms\"\noverrun = \"queue\"")];
        let lanes_first = with_lanes(kind, &[burst, HOG], &tasks);
        assert!(responses(&lanes_first, 0, 20).iter().all(|response| *response == 11), "{kind}");
        let phased = [("job", "period = \"20ms\"\nphase = \"2ms\"\nwcet = \"12ms\"")];
        let lanes_last = with_lanes(kind, &[burst, HOG], &phased);
        assert_eq!(responses(&lanes_last, 1, 20)[0], 11, "{kind}");
        assert!(responses(&lanes_last, 0, 20)[0] > 22, "{kind}: in turn with the hog");
    }
}

/// An aborted job leaves nothing behind: the next one of its task is accepted as if there had been none.
#[test]
fn an_aborted_job_ends_its_constraint() {
    for kind in ["rialto", "spring"] {
        let tasks = [
            ("late", "period = \"10ms\"\ndeadline = \"40ms\"\nwcet = \"30ms\"\noverrun = \"abort\""),
            ("rare", "period = \"200ms\"\nphase = \"10ms\"\ndeadline = \"200ms\"\nwcet = \"1ms\""),
        ];
        let system = with_lanes(kind, &[HOG], &tasks);
        let mut records = Everything::default();
        let mut simulation = Simulation::new(&system).expect("the hierarchy can be arranged");
        simulation.advance(Instant::from_nanos(200_000_000), &mut records);
        simulation.check_invariants();
        let aborts = records.0.iter().filter(|record| record.event == Event::ABORT).count();
        assert!(aborts >= 18, "{aborts}");
        let of_hog = |record: &&Record| JobId::unpack(record.causal).operation.index() == 2;
        let hog: Vec<_> =
            records.0.iter().filter(|record| record.event == Event::START).filter(of_hog).collect();
        assert!(hog.is_empty(), "{kind}: each of the jobs is accepted when it is elected: {hog:?}");
    }
}
