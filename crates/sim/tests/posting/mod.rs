//! Work that no description has, in virtual time: declared, posted by jobs, at instants and from outside, and judged like any other.

use crate::explain::{EVERYTHING, explained};
use crate::replay::Everything;
use crate::systems::{Scope, dispatch, systems};
use crate::verify::verify;
use proptest::prelude::*;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use talea_insight::Accounting;
use talea_insight::explain::{Explanation, Kind, Outcome, Question, Subject, Which};
use talea_insight::flow::{Direction, Limits, Link, flow};
use talea_insight::verify::Rule;
use talea_model::{Criticality, LaneDispatch, Late, OperationId, Strategy as By, System, TaskBuilder};
use talea_operation::{
    Declaration, DeclareError, JobContext, NotPosted, Operations, Posted, PostedOperation, PostingRoom,
    Workplace,
};
use talea_policy::strategy::plan_system;
use talea_record::event::{JobOrNone, JobWcet, Lost, Release, Skip, Start};
use talea_record::{
    Activity, Definition, Event, JobId, LogWriter, LossCause, Metadata, Record, Sink, SkipReason, TraceFile,
};
use talea_sim::{DispatchRecords, Simulation, VirtualWorkplace};
use talea_time::{Duration, Instant, Work};

const ROOM: PostingRoom = PostingRoom { operations: 4, jobs: 4, posters: 0 };

fn ns(ns: i64) -> Duration {
    Duration::from_nanos(ns)
}

fn at(ns: i64) -> Instant {
    Instant::from_nanos(ns)
}

fn work(name: &str, deadline: i64, wcet: i64) -> Declaration {
    Declaration::new(name, ns(deadline)).wcet(Work::from_nanos(wcet))
}

fn simulation(system: &System, operations: Operations, room: PostingRoom) -> (Simulation, VirtualWorkplace) {
    let plans = plan_system(system).expect("no anomalies");
    Simulation::with_posting(system, &plans, operations, room).expect("it can be simulated")
}

/// The records, and the tables with all that was defined.
fn simulated(mut simulation: Simulation, until: i64) -> (Metadata, Vec<Record>) {
    let mut everything = Everything::default();
    simulation.advance(at(until), &mut everything);
    simulation.check_invariants();
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut everything);
    (metadata, everything.0)
}

/// What happened, in its order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(String, i64)>>>);

impl Diary {
    /// Code that notes each job with its number, what came with it, and the instant.
    fn noting(&self) -> impl FnMut(&JobContext<'_>) + Send + 'static + use<> {
        let diary = self.clone();
        move |job| diary.note(format!("{} #{} {}", job.operation(), job.instance(), job.handle()), job.now())
    }

    fn note(&self, what: String, now: Instant) {
        self.0.lock().expect("whole").push((what, now.as_nanos()));
    }

    fn texts(&self) -> Vec<(String, i64)> {
        self.0.lock().expect("whole").clone()
    }
}

/// An operation that is declared after the code that posts it was made.
type Later = Arc<OnceLock<PostedOperation>>;

fn one(wcet: i64) -> System {
    let base = TaskBuilder::new("base", ns(100)).wcet(Work::from_nanos(wcet));
    System::builder("one")
        .strategy(By::Edf)
        .late(Late::None)
        .node("n", [0])
        .task(base)
        .build()
        .expect("sound")
}

#[test]
fn posted_work_is_released_ordered_recorded_and_explained_like_any_other() {
    let system = one(10);
    let (diary, late, soon) = (Diary::default(), Later::default(), Later::default());
    let (own, posted) = (diary.clone(), [Arc::clone(&late), Arc::clone(&soon)]);
    let base = move |job: &JobContext<'_>| {
        let [late, soon] = [&posted[0], &posted[1]].map(|later| *later.get().expect("it was declared"));
        let numbers = [
            job.post(late, 7),
            job.post(soon, 8),
            job.post_work(Posted::new(late).handle(9).due(job.now() + ns(1))),
        ];
        own.note(format!("base {numbers:?}"), job.now());
    };
    let (simulation, workplace) = simulation(&system, Operations::synthetic().with("base", base), ROOM);
    late.set(workplace.declare(work("late", 25, 20), diary.noting()).expect("there is room")).expect("once");
    soon.set(workplace.declare(work("soon", 10, 5), diary.noting()).expect("there is room")).expect("once");
    let outside = *late.get().expect("it was declared");
    let mut calls = 0;
    workplace.call_at(at(50), move |poster| {
        calls += 1;
        poster.post(outside, 100 + calls).expect("there is room");
        (calls == 1).then(|| poster.now() + ns(150))
    });
    workplace.post_at(at(52), *soon.get().expect("it was declared"));
    let (metadata, records) = simulated(simulation, 300);
    let text = |what: &str, at: i64| (what.to_owned(), at);
    assert_eq!(
        diary.texts(),
        [
            text("base [Ok(0), Ok(0), Ok(1)]", 10),
            // Due at 11, 20 and 35, all of which are late when they end.
            text("late #1 9", 30),
            text("soon #0 8", 35),
            text("late #0 7", 55),
            // The call of instant 50 came while that was executed.
            text("soon #1 0", 60),
            text("late #2 101", 80),
            text("base [Ok(3), Ok(2), Ok(4)]", 110),
            text("late #4 9", 130),
            text("soon #2 8", 135),
            text("late #3 7", 155),
            // Posted at the instant at which the next job of the system is released, which is due later.
            text("late #5 102", 220),
            text("base [Ok(6), Ok(3), Ok(7)]", 230),
            text("late #7 9", 250),
            text("soon #3 8", 255),
            text("late #6 7", 275),
        ]
    );
    let name = |job: JobId| metadata.job_name(job);
    let posters: Vec<(String, Option<String>)> = records
        .iter()
        .filter_map(Start::read)
        .map(|start| (name(start.job), start.posted_by.0.map(name)))
        .filter(|(posted, _)| !posted.starts_with("base"))
        .take(5)
        .collect();
    let told = |posted: &str, by: Option<&str>| (posted.to_owned(), by.map(String::from));
    let base = Some("base #0");
    let expected =
        [("late #1", base), ("soon #0", base), ("late #0", base), ("soon #1", None), ("late #2", None)];
    assert_eq!(posters, expected.map(|(posted, by)| told(posted, by)));
    assert_eq!(metadata.tasks[1].activity, Activity::Posted);
    assert!(!metadata.is_there(3) && !metadata.is_there(4), "places that nobody took");

    let report = verify(&metadata, &records, &system, Duration::ZERO);
    assert_eq!(report.count(), 0, "{:#?}", report.violations);
    let mut accounting = Accounting::new(&metadata, Duration::from_secs(1));
    records.iter().for_each(|record| accounting.record(*record));
    let accounted = accounting.finish(at(300));
    let late = accounted.tasks.iter().find(|task| task.name == "late").expect("a row");
    assert_eq!((late.activity, late.released, late.completed), (Activity::Posted, 8, 8));
    assert_eq!(accounted.unknown_records, 0);

    let answer = explained(&metadata, &records, Question { task: Some(1), ..EVERYTHING });
    // In non-preemptive lanes the first one executes from its release on, and the last one has it and the other ahead of it.
    let kinds = |instance: u64| {
        let is_it =
            |subject: &Subject| matches!(subject, Subject::Instance { number, .. } if *number == instance);
        let one = answer.list.iter().find(|one| is_it(&one.subject)).expect("it was late");
        one.totals.iter().map(|total| (total.kind, total.sum())).collect::<Vec<_>>()
    };
    let executes = (Kind::Execution, ns(20));
    assert_eq!(kinds(1), [executes]);
    assert_eq!(kinds(0), [(Kind::Ahead, ns(20)), executes, (Kind::Ahead, ns(5))]);
    let by = JobId { operation: talea_model::OperationId::from_index(0), instance: 0 };
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    };
    let Ok(flow) = flow(&metadata, (by, Direction::Forward), Limits { depth: 9, jobs: 9 }, replay);
    let came: Vec<String> = flow
        .steps
        .iter()
        .filter(|step| matches!(step.next_to, Some((_, Link::Posted))))
        .map(|step| name(step.job))
        .collect();
    assert_eq!(came, ["late #1", "soon #0", "late #0"]);
}

/// No time passes while code posts, and yet one comes after the other.
#[test]
fn what_is_posted_at_one_instant_into_a_lane_without_deadlines_comes_in_that_order() {
    let base = TaskBuilder::new("base", ns(100)).wcet(Work::from_nanos(10));
    let system = System::builder("one").strategy(By::Rms).node("n", [0]).task(base).build().expect("sound");
    let (diary, both) = (Diary::default(), Arc::<OnceLock<[PostedOperation; 2]>>::default());
    let posted = Arc::clone(&both);
    let base = move |job: &JobContext<'_>| {
        let [one, other] = *posted.get().expect("they were declared");
        for (operation, handle) in [(other, 1), (one, 2), (other, 3), (one, 4)] {
            job.post(operation, handle).expect("there is room");
        }
    };
    let (simulation, workplace) = simulation(&system, Operations::synthetic().with("base", base), ROOM);
    let declare = |name| workplace.declare(work(name, 90, 5).lane(0), diary.noting()).expect("there is room");
    both.set(["one", "other"].map(declare)).expect("once");
    let (metadata, mut records) = simulated(simulation, 90);
    let texts: Vec<String> = diary.texts().into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["other #0 1", "one #0 2", "other #1 3", "one #1 4"]);
    assert_eq!(verify(&metadata, &records, &system, Duration::ZERO).count(), 0);
    // Told as if the first two had been posted the other way round.
    let released = |name: &str| {
        let is_it =
            |record: &Record| record.event == Event::RELEASE && metadata.job_name(record.job()) == name;
        records.iter().position(is_it).expect("it was released")
    };
    let (first, second) = (released("other #0"), released("one #0"));
    records.swap(first, second);
    assert!(
        verify(&metadata, &records, &system, Duration::ZERO).count() > 0,
        "their lane did not keep to it"
    );
}

/// The numbers that are given, and those that are skipped, are those of a run (`runtime/tests/exec/posting.rs`).
#[test]
fn room_is_bounded_and_what_does_not_fit_is_refused_and_told() {
    let system = one(10);
    let (diary, later) = (Diary::default(), Later::default());
    let posted = Arc::clone(&later);
    let outcomes: Arc<Mutex<Vec<Result<u64, NotPosted>>>> = Arc::default();
    let seen = Arc::clone(&outcomes);
    let base = move |job: &JobContext<'_>| {
        let operation = *posted.get().expect("it was declared");
        let own = (0..6).map(|handle| job.post(operation, handle));
        seen.lock().expect("whole").extend(own);
    };
    let (simulation, workplace) = simulation(&system, Operations::synthetic().with("base", base), ROOM);
    let foreign = self::simulation(&system, Operations::synthetic(), ROOM).1;
    let foreign = foreign.declare(work("foreign", 9, 1), |_| ()).expect("there is room");
    // It posts itself again while its own place is taken, and the others are.
    let (own, mut note) = (Arc::clone(&later), diary.noting());
    let code = move |job: &JobContext<'_>| {
        note(job);
        if job.instance() == 0 {
            assert_eq!(job.post(*own.get().expect("it was declared"), 50), Err(NotPosted::Full));
        }
        assert_eq!(job.post(foreign, 0), Err(NotPosted::OtherRun));
    };
    later.set(workplace.declare(work("job", 1_000, 5), code).expect("there is room")).expect("once");
    let (metadata, records) = simulated(simulation, 100);
    let full = Err(NotPosted::Full);
    assert_eq!(*outcomes.lock().expect("whole"), [Ok(0), Ok(1), Ok(2), Ok(3), full, full]);
    // Four numbers are tried in vain each time, and the first of them is told of.
    let skipped: Vec<(u64, SkipReason)> = records
        .iter()
        .filter_map(Skip::read)
        .map(|skip| (skip.job.instance, skip.reason.known().expect("a reason")))
        .collect();
    assert_eq!(skipped, [4, 8, 12].map(|number| (number, SkipReason::Full)));
    assert_eq!(diary.texts().len(), 4);
    let report = verify(&metadata, &records, &system, Duration::ZERO);
    assert_eq!(report.count(), 0, "{:#?}", report.violations);
}

#[test]
fn what_is_due_at_an_instant_without_room_comes_when_there_is_some() {
    let room = PostingRoom { jobs: 1, ..ROOM };
    let (simulation, workplace) = simulation(&one(10), Operations::synthetic(), room);
    let diary = Diary::default();
    let long = workplace.declare(work("long", 5_000_000, 1_500_000), diary.noting()).expect("there is room");
    workplace.post_at(at(100), long);
    // Of several instants the earliest alone.
    workplace.post_at(at(200), long);
    let own = workplace.clone();
    workplace.call_at(at(1_000), move |_| {
        own.post_at(at(1_000), long);
        None
    });
    let (_, records) = simulated(simulation, 5_000_000);
    let job = |record: &Record| record.job().operation.index() == 1;
    let told = |event: Event| -> Vec<i64> {
        let told = records.iter().filter(|record| record.event == event && job(record));
        told.map(|record| record.time.as_nanos()).collect()
    };
    assert_eq!(told(Event::RELEASE), [100, 2_001_000]);
    assert_eq!(told(Event::SKIP), [1_000, 1_001_000]);
}

#[test]
fn what_cannot_be_declared_is_refused_and_what_comes_too_late_is_not_posted() {
    let base = TaskBuilder::new("base", ns(100)).wcet(Work::from_nanos(10)).criticality(Criticality::High);
    let system = System::builder("one").strategy(By::Muf).node("n", [0]).task(base).build().expect("sound");
    let outcome: Arc<Mutex<Option<Result<u64, NotPosted>>>> = Arc::default();
    let (seen, later) = (Arc::clone(&outcome), Later::default());
    let posted = Arc::clone(&later);
    let code = move |job: &JobContext<'_>| {
        *seen.lock().expect("whole") = Some(job.post(*posted.get().expect("declared"), 0));
    };
    let room = PostingRoom { operations: 1, ..ROOM };
    let (mut simulation, workplace) = simulation(&system, Operations::synthetic().with("base", code), room);
    let declare = |declaration: Declaration| workplace.declare(declaration, |_| ()).map(|_| ());
    let high = |name: &str| work(name, 9, 1).criticality(Criticality::High);
    for (declaration, words) in [
        (high("base"), "or another operation has it"),
        (high("?1"), "begins with '?'"),
        (work("x", 0, 1), "its deadline is 0"),
        (work("x", 9, 1), "more urgent work (0 (high))"),
        (work("x", 9, 0).criticality(Criticality::High), "goes by laxity"),
        (high("x").node("m"), "no node \"m\" with lanes; the nodes with lanes are n"),
        (high("x").lane(3), "has no lane 3; its lanes are 0 (high)"),
    ] {
        let told = declare(declaration).expect_err("it cannot be").to_string();
        assert!(told.contains(words), "{told}");
    }
    later.set(workplace.declare(high("x"), |_| ()).expect("there is room")).expect("once");
    assert_eq!(declare(high("y")), Err(DeclareError::NoRoom(1)));
    // The job ends with the simulation: its code is called, and nothing is released any more.
    let mut records = Everything::default();
    simulation.advance(at(10), &mut records);
    simulation.finish(&mut records);
    assert_eq!(*outcome.lock().expect("whole"), Some(Err(NotPosted::NotRunning)));
    assert!(records.0.iter().all(|record| record.event != Event::SKIP));
}

/// Operations are declared by a job and by a call while the simulation lasts, and every reader of the log knows them.
#[test]
fn a_log_has_what_was_declared_while_the_simulation_lasted() {
    let system = one(10);
    let place: Arc<OnceLock<VirtualWorkplace>> = Arc::default();
    let own = Arc::clone(&place);
    let base = move |job: &JobContext<'_>| {
        let name = format!("made by {}", job.instance());
        let made = own.get().expect("it was made").declare(work(&name, 40, 3), |_| ());
        job.post(made.expect("there is room"), 1).expect("there is room");
    };
    let (mut simulation, workplace) = simulation(&system, Operations::synthetic().with("base", base), ROOM);
    assert!(place.set(workplace.clone()).is_ok());
    let own = workplace.clone();
    workplace.call_at(at(20), move |poster| {
        let made = own.declare(work("made by a call", 40, 3), |_| ()).expect("there is room");
        poster.post(made, 2).expect("there is room");
        None
    });
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("trace");
    let mut log = LogWriter::create(&path, simulation.metadata()).expect("a log");
    let mut accounting = Accounting::new(simulation.metadata(), Duration::from_secs(1));
    simulation.advance(at(250), &mut (&mut log, &mut accounting));
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut (&mut log, &mut accounting));
    log.finish().expect("it was written");
    let trace = TraceFile::open(&path).expect("a trace");
    let names: Vec<&str> = trace.metadata().task_names().collect();
    assert_eq!(names, ["base", "made by 0", "made by a call", "made by 1", "made by 2"]);
    assert_eq!(trace.metadata().operations, metadata.operations);
    let mut records = Everything::default();
    trace.replay(&mut records).expect("it can be read");
    assert_eq!(verify(trace.metadata(), &records.0, &system, Duration::ZERO).count(), 0);
    let report = accounting.finish(at(250));
    let completed: Vec<(&str, u64)> =
        report.tasks.iter().map(|task| (task.name.as_str(), task.completed)).collect();
    let each = [("base", 3), ("made by 0", 1), ("made by a call", 1), ("made by 1", 1), ("made by 2", 1)];
    assert_eq!(completed, each);
}

/// Time would stand still.
#[test]
fn jobs_that_take_no_time_and_post_each_other_for_ever_are_named() {
    let later = Later::default();
    let own = Arc::clone(&later);
    let (mut simulation, workplace) = simulation(&one(10), Operations::synthetic(), ROOM);
    let code = move |job: &JobContext<'_>| {
        job.post(*own.get().expect("it was declared"), 0).expect("there is room");
    };
    let endless = workplace.declare(work("endless", 9, 0), code).expect("there is room");
    later.set(endless).expect("once");
    workplace.post_at(at(5), endless);
    let mut nowhere = Nowhere;
    let stands = catch_unwind(AssertUnwindSafe(|| simulation.advance(at(100), &mut nowhere)));
    let stands = stands.expect_err("it does not go on");
    let text = stands.downcast_ref::<String>().expect("a text");
    assert!(text.contains("operation \"endless\"") && text.contains("give it a wcet"), "{text}");
}

struct Nowhere;

impl Sink for Nowhere {
    fn record(&mut self, _record: Record) {}
}

/// Jobs of one operation, of which those that are due first have most time to lose. The trace says so where the operation does not.
#[test]
fn a_posted_job_may_have_an_execution_time_of_its_own() {
    let mut description = (*one(10)).clone();
    description.strategy = By::Mlf;
    let system = System::new(description).expect("as sound as it was");
    let (diary, job) = (Diary::default(), Later::default());
    let posted = Arc::clone(&job);
    let base = move |context: &JobContext<'_>| {
        let job = *posted.get().expect("it was declared");
        let due = |wcet, ns| Posted::new(job).due(context.now() + ns).wcet(Work::from_nanos(wcet));
        assert_eq!(context.post_work(due(0, ns(60))), Err(NotPosted::NoExecution));
        assert_eq!(context.post_work(due(-4, ns(60))), Err(NotPosted::NoExecution));
        assert_eq!(context.post_work(due(i64::MAX, ns(60))), Err(NotPosted::NoExecution));
        // The second is as long as its operation says, which needs no word.
        for (handle, wcet, after) in [(1, 5, 60), (2, 20, 62), (3, 30, 65)] {
            context.post_work(due(wcet, ns(after)).handle(handle)).expect("there is room");
        }
    };
    let (simulation, workplace) = simulation(&system, Operations::synthetic().with("base", base), ROOM);
    job.set(workplace.declare(work("job", 50, 20), diary.noting()).expect("there is room")).expect("once");
    let (metadata, records) = simulated(simulation, 100);
    let text = |what: &str, at: i64| (what.to_owned(), at);
    assert_eq!(diary.texts(), [text("job #2 3", 40), text("job #1 2", 60), text("job #0 1", 65)]);
    let told = records.iter().filter_map(JobWcet::read);
    let told: Vec<(u64, i64)> = told.map(|told| (told.job.instance, told.wcet.as_nanos())).collect();
    assert_eq!(told, [(0, 5), (2, 30)]);
    assert_eq!(verify(&metadata, &records, &system, Duration::ZERO).count(), 0);
    let mut silent = records.clone();
    silent.retain(|record| record.event != Event::JOB_WCET);
    let found = verify(&metadata, &silent, &system, Duration::ZERO);
    assert!(found.of(Rule::Order) > 0, "{:#?}", found.violations);
    // What was lost may be that word alone, just before the release that it is about.
    let mut lost = records.clone();
    let word = lost.iter().position(|record| record.event == Event::JOB_WCET).expect("it is told");
    let (since, cause) = (Some(lost[word - 1].time), LossCause::Overwritten.into());
    lost[word] = Lost { records: 1, since, ring: 0, cause }.at(lost[word].time, Record::NO_CPU);
    let found = verify(&metadata, &lost, &system, Duration::ZERO);
    assert_eq!((found.count(), found.lost_records), (0, 1), "{:#?}", found.violations);
    let job = JobId { operation: OperationId::from_index(1), instance: 0 };
    let question = Question { which: Which::This(Subject::Job(job)), task: None, limit: 1 };
    let kinds = |records: &[Record]| -> Vec<(Kind, i64)> {
        let answer = explained(&metadata, records, question);
        let intervals = &answer.list[0].intervals;
        intervals.iter().map(|one| (one.cause.kind(), (one.to - one.from).as_nanos())).collect()
    };
    assert_eq!(kinds(&records), [(Kind::Ahead, 30), (Kind::Ahead, 20), (Kind::Execution, 5)]);
    assert_ne!(kinds(&silent), kinds(&records), "who went first would have been no more urgent");
}

/// Code of the program that waits to be called, and operations that were not taken in, may have the workplace themselves.
#[test]
fn nothing_is_kept_by_a_simulation_that_is_gone() {
    let kept = Arc::new(());
    let (simulation, workplace) = simulation(&one(10), Operations::synthetic(), ROOM);
    let (own, other) = ((workplace.clone(), Arc::clone(&kept)), (workplace.clone(), Arc::clone(&kept)));
    workplace.call_at(at(5), move |_| {
        _ = &own;
        None
    });
    workplace.declare(work("job", 9, 1), move |_| _ = &other).expect("there is room");
    drop((simulation, workplace));
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// What jobs of an operation of the system post: the operation, after how long it is due, unless its own deadline counts, and how long it executes, unless
/// its own time does.
type Posts = Vec<(usize, Option<i64>, Option<i64>)>;

#[derive(Clone, Debug)]
struct Drawn {
    system: System,
    /// Of each declared operation the node, the lane, deadline and execution time.
    declared: Vec<(prop::sample::Index, prop::sample::Index, i64, i64)>,
    /// By operation of the system, and then by declared operation.
    posts: Vec<Posts>,
    /// When jobs are posted from outside, and which.
    outside: Vec<(i64, usize)>,
    window: usize,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let declared = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..30i64, 0..4i64);
    let declared = prop::collection::vec(declared, 1..4);
    let dispatching = prop::sample::select(vec![LaneDispatch::NonPreemptive, LaneDispatch::Preemptive]);
    (systems(Scope::GUARDED), dispatching, declared, 1..5usize).prop_flat_map(
        |(system, dispatching, declared, window)| {
            let mut description = (*system).clone();
            description.lane_dispatch = dispatching;
            let system = System::new(description).expect("as sound as it was");
            let (operations, count) = (system.operations().len(), declared.len());
            let own = (prop::option::of(0..20i64), prop::option::of(1..6i64));
            let posts = (0..count, own).prop_map(|(to, (due, wcet))| (to, due, wcet));
            let posts = prop::collection::vec(posts, 0..3);
            // What posted jobs post goes to operations behind their own, so that it ends.
            let posts = prop::collection::vec(posts, operations + count);
            let outside = prop::collection::vec((0..UNTIL, 0..count), 0..6);
            (Just(system), Just(declared), posts, outside, Just(window)).prop_map(
                |(system, declared, posts, outside, window)| Drawn {
                    system,
                    declared,
                    posts,
                    outside,
                    window,
                },
            )
        },
    )
}

const UNTIL: i64 = 120;

/// The records of it, up to `slices` and then to the end, and how often jobs were called, posted and refused.
fn records_of(drawn: &Drawn, dispatch: DispatchRecords, slices: &[i64]) -> (Metadata, Vec<Record>, [u64; 3]) {
    let Drawn { system, declared, posts, outside, window } = drawn;
    let all: Arc<OnceLock<Vec<PostedOperation>>> = Arc::default();
    let counts: Arc<Mutex<[u64; 3]>> = Arc::default();
    let posting = |posts: &Posts, from: usize| {
        let (all, counts, posts) = (Arc::clone(&all), Arc::clone(&counts), posts.clone());
        move |job: &JobContext<'_>| {
            let mut counts = counts.lock().expect("whole");
            counts[0] += 1;
            let all = all.get().expect("they were declared");
            for (handle, (operation, due, wcet)) in posts.iter().enumerate().filter(|(_, to)| to.0 >= from) {
                let deadline = due.map(|after| job.now() + ns(after));
                let wcet = wcet.map(Work::from_nanos);
                let plain = Posted::new(all[*operation]).handle(handle as u64);
                let posted = job.post_work(Posted { deadline, wcet, ..plain });
                counts[if posted.is_ok() { 1 } else { 2 }] += 1;
            }
        }
    };
    let mut operations = Operations::synthetic();
    for (operation, posts) in system.operations().iter().zip(posts) {
        operations = operations.with(&operation.name, posting(posts, 0));
    }
    let plans = plan_system(system).expect("no anomalies");
    let room = PostingRoom { operations: declared.len(), jobs: *window, posters: 0 };
    let made = Simulation::with_posting(system, &plans, operations, room).expect("it can be simulated");
    let (simulation, workplace) = made;
    let mut simulation = simulation.with_dispatch(dispatch);
    let declare = |(place, (node, lane, deadline, wcet)): (usize, &(_, prop::sample::Index, i64, i64))| {
        let node: &prop::sample::Index = node;
        let with_lanes: Vec<usize> = (0..plans.len()).filter(|node| !plans[*node].lanes.is_empty()).collect();
        let node = with_lanes[node.index(with_lanes.len())];
        let declaration = work(&format!("posted {place}"), *deadline, (*wcet).max(1));
        let lane = lane.index(plans[node].lanes.len());
        let declaration = declaration.node(&system.nodes[node].name).lane(lane);
        let code = posting(&posts[system.operations().len() + place], place + 1);
        workplace.declare(declaration, code).expect("there is room")
    };
    let declared: Vec<PostedOperation> = declared.iter().enumerate().map(declare).collect();
    all.set(declared.clone()).expect("once");
    for (time, operation) in outside.iter().copied() {
        let operation = declared[operation];
        if operation.id.index().is_multiple_of(2) {
            workplace.post_at(at(time), operation);
        } else {
            workplace.call_at(at(time), move |poster| {
                _ = poster.post_work(Posted::new(operation).handle(3).due(poster.now() + ns(5)));
                None
            });
        }
    }
    let mut everything = Everything::default();
    for slice in slices {
        simulation.advance(at(*slice), &mut everything);
        simulation.check_invariants();
    }
    simulation.advance(at(UNTIL), &mut everything);
    simulation.check_invariants();
    let metadata = simulation.metadata().clone();
    // What completes with the end posts nothing any more.
    let counted = *counts.lock().expect("whole");
    simulation.finish(&mut everything);
    (metadata, everything.0, counted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is posted, in whatever lanes, and by whomever: the trace is that of its policy, nothing is lost, and it is the same again.
    #[test]
    fn simulated_traces_with_posted_work_are_clean(drawn in drawn(), dispatch in dispatch(), slices in prop::collection::vec(0..UNTIL, 0..3)) {
        let (metadata, records, [called, posted, refused]) = records_of(&drawn, dispatch, &[]);
        let report = verify(&metadata, &records, &drawn.system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
        let is_posted = |job: JobId| metadata.tasks[metadata.operations[job.operation.index()].task].activity.is_posted();
        let released = records.iter().filter_map(Release::read).filter(|release| is_posted(release.job));
        let from_outside = drawn.outside.len() as u64;
        let released = released.count() as u64;
        prop_assert!((posted..=posted + from_outside).contains(&released), "{posted} {released}");
        let skipped = records.iter().filter_map(Skip::read).filter(|skip| is_posted(skip.job)).count() as u64;
        prop_assert!((refused..=refused + from_outside).contains(&skipped), "{refused} {skipped}");
        let completed = records.iter().filter(|record| record.event == Event::COMPLETE && record.time < at(UNTIL));
        prop_assert_eq!(called, completed.count() as u64);
        let posters = records.iter().filter_map(Start::read).filter(|start| start.posted_by != JobOrNone(None));
        for start in posters {
            prop_assert!(is_posted(start.job));
        }
        let late = explained(&metadata, &records, EVERYTHING);
        let slowest = explained(&metadata, &records, Question { which: Which::Worst, ..EVERYTHING });
        for one in late.list.iter().chain(&slowest.list).filter(|one| !matches!(one.outcome, Outcome::Skipped { .. })) {
            let sum: Duration = one.intervals.iter().map(|interval| interval.length()).sum();
            prop_assert_eq!(sum, one.response(), "{:?}", one);
        }
        let is_late = |record: &&Record| {
            let ended = record.event == Event::COMPLETE && is_posted(record.job());
            ended && record.dates().is_some_and(|dates| dates.deadline < record.time)
        };
        let is_of_posted = |one: &&Explanation| {
            matches!(one.subject, Subject::Instance { task, .. } if metadata.tasks[task].activity.is_posted())
        };
        let explained_late = late.list.iter().filter(is_of_posted).filter(|one| one.outcome == Outcome::Missed);
        prop_assert_eq!(explained_late.count(), records.iter().filter(is_late).count());
        let ended = records.iter().filter(|record| record.event == Event::COMPLETE && is_posted(record.job()));
        let mut accounting = Accounting::new(&metadata, Duration::from_secs(1));
        records.iter().for_each(|record| accounting.record(*record));
        let accounted = accounting.finish(at(UNTIL));
        let counted: u64 = accounted.tasks.iter().filter(|task| task.activity.is_posted()).map(|task| task.completed).sum();
        prop_assert_eq!((counted, accounted.unknown_records), (ended.count() as u64, 0));
        let mut slices = slices;
        slices.sort_unstable();
        let (_, again, _) = records_of(&drawn, dispatch, &slices);
        prop_assert_eq!(records, again);
    }
}

/// What a definition changes comes to every sink in turn.
#[test]
fn definitions_come_to_all_sinks_before_the_first_record() {
    #[derive(Default)]
    struct Seen(Vec<String>);
    impl Sink for Seen {
        fn record(&mut self, record: Record) {
            if record.event == Event::RELEASE {
                self.0.push(format!("release of {}", record.job().operation.index()));
            }
        }
        fn define(&mut self, definition: &Definition) {
            let Definition::Operation { number, entry, .. } = definition else { panic!("an operation") };
            self.0.push(format!("{} is {number}", entry.name));
        }
    }
    let (mut simulation, workplace) = simulation(&one(10), Operations::synthetic(), ROOM);
    let own = workplace.clone();
    workplace.call_at(at(20), move |poster| {
        let made = own.declare(work("made", 40, 3), |_| ()).expect("there is room");
        poster.post(made, 2).expect("there is room");
        None
    });
    let (mut one, mut other) = (Seen::default(), Seen::default());
    simulation.advance(at(50), &mut (&mut one, &mut other));
    assert_eq!(one.0, ["release of 0", "made is 1", "release of 1"]);
    assert_eq!(one.0, other.0);
}
