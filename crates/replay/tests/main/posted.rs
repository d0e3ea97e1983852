//! Simulated runs of programs that post work, replayed: jobs that were posted are called again with what they had, and posts are held against those of
//! the recording.

use proptest::prelude::*;
use proptest::sample::select;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};
use talea_model::{LaneDispatch, OperationId, OutputBuilder, Strategy as By, System, TaskBuilder};
use talea_operation::{
    Declaration, JobContext, KeptOutputs, NotPosted, Operations, OutputKind, Posted, PostedOperation,
    PostingRoom,
};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{self, Lost};
use talea_record::{Definition, Event, JobId, LossCause, Metadata, PostOutcome, Question, Record, Sink};
use talea_replay::{NotCalled, Replay, ReplayReport, What};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

const ROOM: PostingRoom = PostingRoom { operations: 4, jobs: 2, posters: 0 };
const NAMES: [&str; 3] = ["alarm", "note", "log"];
/// The longest that their jobs execute, in nanoseconds.
const WCETS: [i64; 3] = [300_000, 900_000, 2_500_000];

pub(crate) fn ms(number: i64) -> Duration {
    Duration::from_millis(number)
}

/// What a job saw: its operation, its number and its handle, its dates, the instants that it was told, how long it may be delayed, and how posting was
/// answered.
type Seen = (String, u64, u64, [Instant; 5], Duration, Vec<Result<u64, NotPosted>>);

/// A program that posts: jobs of its tasks, and posted ones as long as their handles say so, post others by the hash of what they see.
#[derive(Clone, Default)]
struct Program {
    seed: u64,
    posted: Arc<OnceLock<Vec<PostedOperation>>>,
    diary: Arc<Mutex<Vec<Seen>>>,
    /// The job that does something else, and what.
    changed: Option<(String, u64, Change)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    OtherHandle,
    OtherDeadline,
    OtherWcet,
    OtherOperation,
    NothingPosted,
    OneMore,
    Panic,
}

impl Program {
    fn new(seed: u64) -> Self {
        Program { seed, ..Program::default() }
    }

    fn work(&self, job: &JobContext<'_>, depth: u64) -> u64 {
        let change = self.changed.as_ref();
        let change =
            change.filter(|(name, number, _)| (name.as_str(), *number) == (job.operation(), job.instance()));
        let change = change.map(|(.., change)| *change);
        let times = [job.started(), job.now(), job.release(), job.deadline(), job.now()];
        let mut hasher = DefaultHasher::new();
        (self.seed, job.operation(), job.instance(), job.handle(), times).hash(&mut hasher);
        let drawn = hasher.finish();
        let mut posts: Vec<(usize, u64)> = match depth {
            0 => Vec::new(),
            // The handle says how many posts may follow from the job.
            _ => (0..drawn % 4)
                .map(|post| ((drawn >> (8 + 4 * post)) as usize % 3, 16 * (drawn >> 32) + depth - 1))
                .collect(),
        };
        match (change, posts.first_mut()) {
            (Some(Change::OtherHandle), Some((_, handle))) => *handle += 16,
            (Some(Change::OtherOperation), Some((operation, _))) => *operation = (*operation + 1) % 3,
            (Some(Change::NothingPosted), _) => posts.clear(),
            (Some(Change::OneMore), _) => posts.push((0, 0)),
            (Some(Change::Panic), _) => panic!("it was to panic"),
            (Some(_) | None, _) => {}
        }
        let declared = self.posted.get().expect("all is declared before the run begins");
        let post = |(place, (operation, handle)): (usize, &(usize, u64))| {
            let (declared_wcet, operation, handle) = (WCETS[*operation], declared[*operation], *handle);
            // Every other one says when it is due, some of them at an instant that is over.
            let due = times[0] + Duration::from_micros(handle as i64 / 16 % 4_000 - 500);
            let is_other = place == 0 && change == Some(Change::OtherDeadline);
            // Some say how long they execute, and some that they do not at all, which is refused; the first may be what is changed.
            let refused = if place == 0 { None } else { Some(0) };
            let wcet =
                [None, refused, Some(30_000), Some(70_000), Some(declared_wcet)][handle as usize / 32 % 5];
            let wcet = match wcet {
                Some(30_000 | 70_000) if place == 0 && change == Some(Change::OtherWcet) => None,
                _ if place == 0 && change == Some(Change::OtherWcet) => Some(50_000),
                wcet => wcet,
            };
            let work = Posted { wcet: wcet.map(Work::from_nanos), ..Posted::new(operation).handle(handle) };
            let post_due = |at| job.post_work(work.due(at));
            match (handle / 16 % 2, is_other) {
                (0, false) => job.post_work(work),
                (0, true) => post_due(job.deadline() + ms(50)),
                (_, is_other) => post_due(if is_other { due + ms(10) } else { due }),
            }
        };
        let answers = posts.iter().enumerate().map(post).collect();
        let seen = (job.operation().to_owned(), job.instance(), job.handle(), times, job.laxity(), answers);
        self.diary.lock().expect("whole").push(seen);
        drawn
    }

    fn operations(&self) -> Operations {
        let tasks = ["fast", "slow"];
        tasks.into_iter().fold(Operations::synthetic(), |operations, task| {
            let own = self.clone();
            operations.with_ports(task, |ports| {
                let out = ports.output_of::<u64>("out", OutputKind::any().plain(), || 0);
                move |job: &JobContext<'_>| job.set(out, own.work(job, 3))
            })
        })
    }

    fn declare(
        &self,
        declare: impl Fn(Declaration, Box<dyn FnMut(&JobContext<'_>) + Send>) -> PostedOperation,
    ) {
        let declared = NAMES.iter().enumerate().map(|(lane, name)| {
            let own = self.clone();
            let wcet = Work::from_nanos(WCETS[lane]);
            let declaration = Declaration::new(name, ms(20 + lane as i64)).wcet(wcet).lane(lane % 2);
            declare(declaration, Box::new(move |job: &JobContext<'_>| _ = own.work(job, job.handle() % 16)))
        });
        self.posted.set(declared.collect()).expect("it is declared once");
    }

    fn seen(&self) -> Vec<Seen> {
        self.diary.lock().expect("whole").clone()
    }
}

fn system(dispatch: LaneDispatch) -> System {
    let task = |name: &str, period: i64| {
        TaskBuilder::new(name, ms(period)).wcet(Work::from_micros(700)).output(OutputBuilder::new("out"))
    };
    System::builder("posting")
        .strategy(By::Rms)
        .lane_dispatch(dispatch)
        .task(task("fast", 7))
        .task(task("slow", 11))
        .build()
        .expect("a system")
}

/// What a simulation tells, definitions among it.
#[derive(Default)]
pub(crate) struct Recorded {
    pub records: Vec<Record>,
    defined: Vec<Definition>,
}

impl Sink for Recorded {
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    fn define(&mut self, definition: &Definition) {
        self.defined.push(definition.clone());
    }
}

/// A simulation of the program, in which something outside posts, too.
fn recorded(system: &System, program: &Program) -> (Metadata, Vec<Record>) {
    let plans = plan_lanes_of(system).expect("sorted");
    let (simulation, workplace) =
        Simulation::with_posting(system, &plans, program.operations(), ROOM).expect("simulated");
    program.declare(|declaration, code| workplace.declare(declaration, code).expect("there is room"));
    let posted = Arc::clone(&program.posted);
    let mut handle = 1_601;
    workplace.call_at(Instant::ZERO + ms(3), move |outside| {
        handle += 16;
        let declared = posted.get().expect("declared");
        // As many as there is room for, and one more, of which nobody is told again.
        (0..3).for_each(|_| _ = outside.post(declared[0], handle));
        Some(outside.now() + ms(13))
    });
    let mut simulation = simulation.with_kept_values(system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(200), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    (metadata, recorded.records)
}

/// It is replayed with what the program declares.
fn replayed(
    system: &System,
    (metadata, records): &(Metadata, Vec<Record>),
    program: &Program,
) -> ReplayReport {
    let mut replay = Replay::new(system, metadata, program.operations()).expect("it can be replayed");
    let workplace = replay.workplace(ROOM);
    program.declare(|declaration, code| workplace.declare(declaration, code).expect("there is room"));
    records.iter().for_each(|record| replay.record(*record));
    replay.finish()
}

fn compared(report: &ReplayReport) -> u64 {
    report.posts.iter().map(|row| row.compared).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every job has what it had, in the same order, and what is changed in one of them is found there.
    #[test]
    fn posted_jobs_are_called_again_as_they_were_and_a_change_is_named(
        seed in any::<u64>(),
        dispatch in select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
        chosen in any::<prop::sample::Index>(),
        change in select(
            &[Change::OtherHandle, Change::OtherDeadline, Change::OtherWcet, Change::OtherOperation, Change::NothingPosted, Change::OneMore, Change::Panic][..]
        ),
    ) {
        let (system, program) = (system(dispatch), Program::new(seed));
        let trace = recorded(&system, &program);
        let is_post = |answer: &&Result<u64, NotPosted>| **answer != Err(NotPosted::NoExecution);
        let posts: usize = program.seen().iter().map(|(.., answers)| answers.iter().filter(is_post).count()).sum();
        let is_posted = |seen: &&Seen| NAMES.contains(&seen.0.as_str());
        prop_assert!(posts > 20 && program.seen().iter().filter(is_posted).count() > 20);
        let has = |what: &dyn Fn(&Result<u64, NotPosted>) -> bool| program.seen().iter().any(|(.., answers)| answers.iter().any(what));
        prop_assert!([Err(NotPosted::Full), Err(NotPosted::NoExecution)].iter().all(|one| has(&|answer| answer == one)));
        prop_assert!(has(&|answer| answer.is_ok()));

        let again = Program::new(seed);
        let same = replayed(&system, &trace, &again);
        prop_assert_eq!((&same.first, same.unknown(), &same.posted, &same.differences), (&None, 0, &Vec::new(), &Vec::new()));
        let (now, then) = (again.seen(), program.seen());
        prop_assert_eq!(now.iter().zip(&then).find(|(now, then)| now != then), None);
        prop_assert_eq!(now.len(), then.len());
        prop_assert_eq!((compared(&same), same.called), (posts as u64, program.seen().len() as u64));

        // One that is known by its number: those of posted work do not all come.
        let can_change = |(.., answers): &Seen| !answers.is_empty();
        let with_posts: Vec<Seen> = program.seen().into_iter().filter(can_change).collect();
        let (name, number, ..) = chosen.get(&with_posts).clone();
        let changed = Program { changed: Some((name.clone(), number, change)), ..Program::new(seed) };
        let other = replayed(&system, &trace, &changed);
        let first = other.first.expect("it is found");
        prop_assert!(first.output.starts_with(&format!("{name}>")), "{}", first);
        prop_assert_eq!((first.instance, first.post.is_some()), (number, true));
        let is_it = match first.what {
            What::Handle { recorded, now } => change == Change::OtherHandle && recorded + 16 == now,
            What::Due { recorded_ns, now_ns } => change == Change::OtherDeadline && recorded_ns != now_ns,
            What::Wcet { recorded_ns, now_ns } => change == Change::OtherWcet && recorded_ns != now_ns,
            What::OtherOperation { .. } => change == Change::OtherOperation,
            What::NothingNow => change == Change::NothingPosted,
            What::NothingThen => change == Change::OneMore,
            What::Panicked { .. } => change == Change::Panic,
            _ => false,
        };
        prop_assert!(is_it, "{}", first);
        // The others are handed what they had all the same.
        let panics = usize::from(change == Change::Panic);
        prop_assert_eq!(changed.seen().len() + panics, program.seen().len());
    }
}

/// Traces of before do not have how long a job would have executed that was refused: it is unknown whether that is otherwise.
#[test]
fn of_a_refusal_that_does_not_say_how_long_the_job_executes_it_is_unknown() {
    let (system, program) = (system(LaneDispatch::NonPreemptive), Program::new(7));
    let (metadata, records) = recorded(&system, &program);
    let is_refused = |(.., answers): &&Seen| answers.first() == Some(&Err(NotPosted::Full));
    let (name, number, ..) = program.seen().iter().find(is_refused).expect("one is refused").clone();
    let changed = || Program { changed: Some((name.clone(), number, Change::OtherWcet)), ..Program::new(7) };
    let is_wcet = |record: &Record| {
        event::Answer::read(record).is_some_and(|answer| answer.what.known() == Some(Question::RefusedWcet))
    };
    let whole = (metadata.clone(), records.clone());
    let of_whole = replayed(&system, &whole, &changed());
    let first = of_whole.first.clone().expect("it is found");
    assert_eq!((first.instance, first.post, of_whole.differing()), (number, Some(0), 1), "{first}");
    assert!(matches!(first.what, What::Wcet { .. }), "{first}");
    let before = (metadata, records.into_iter().filter(|record| !is_wcet(record)).collect());
    let of_before = replayed(&system, &before, &changed());
    assert_eq!((&of_before.first, of_before.unknown()), (&None, 0));
    assert_eq!(compared(&of_before), compared(&of_whole));
}

/// A program of which an alarm, which is posted from outside, posts a note.
fn with_alarm(system: &System, room: PostingRoom) -> (Metadata, Vec<Record>) {
    let plans = plan_lanes_of(system).expect("sorted");
    let (simulation, workplace) =
        Simulation::with_posting(system, &plans, Operations::synthetic(), room).expect("simulated");
    let note = workplace.declare(note(5), |_| ()).expect("there is room");
    let alarm =
        workplace.declare(alarm(), move |job| _ = job.post(note, job.handle())).expect("there is room");
    workplace.call_at(Instant::ZERO + ms(3), move |outside| {
        outside.post(alarm, 40).expect("there is room");
        Some(outside.now() + ms(30))
    });
    let mut simulation = simulation.with_kept_values(system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(100), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    (metadata, recorded.records)
}

fn alarm() -> Declaration {
    Declaration::new("alarm", ms(5)).wcet(Work::from_micros(50)).lane(0)
}

fn note(deadline: i64) -> Declaration {
    Declaration::new("note", ms(deadline)).wcet(Work::from_micros(10)).lane(1)
}

/// The jobs that were not called again, by operation.
fn not_called(report: &ReplayReport) -> Vec<(&str, u64, NotCalled)> {
    report.posted.iter().map(|posted| (posted.operation.as_str(), posted.jobs, posted.why)).collect()
}

#[test]
fn what_is_not_declared_or_declared_otherwise_is_named() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, records) = with_alarm(&system, ROOM);
    let replay = |declare: &dyn Fn(&talea_operation::ReplayWorkplace)| {
        let mut replay =
            Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed");
        declare(&replay.workplace(ROOM));
        records.iter().for_each(|record| replay.record(*record));
        replay.finish()
    };
    let silent = |_: &JobContext<'_>| ();
    // What is not declared is a difference: at its first job, once.
    let report = replay(&|workplace| _ = workplace.declare(note(5), silent).expect("there is room"));
    assert_eq!(not_called(&report), [("alarm", 4, NotCalled::NotDeclared)]);
    assert_eq!((report.differing(), report.differences.len()), (1, 0));
    let first = report.first.expect("it differs").to_string();
    let expected = "alarm of job 0, 3.05ms after the start: its operation was declared then, and is not now, where note is declared";
    assert_eq!(first, expected);
    // Another one in its place.
    let report = replay(&|workplace| {
        let note = workplace.declare(note(5), silent).expect("there is room");
        let other = Declaration { name: "alert".into(), ..alarm() };
        workplace.declare(other, move |job| _ = job.post(note, job.handle())).expect("there is room");
    });
    let first = report.first.expect("it differs").to_string();
    assert!(first.ends_with("where note, alert is declared"), "{first}");
    // Declared otherwise: it is said, and jobs are called again.
    let report = replay(&|workplace| {
        let note = workplace.declare(note(6), silent).expect("there is room");
        let alarm = alarm().wcet(Work::from_micros(70)).lane(1);
        workplace.declare(alarm, move |job| _ = job.post(note, job.handle())).expect("there is room");
    });
    let said: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    let expected = [
        "the deadline of \"note\", which is posted, is 5ms in the trace and 6ms in the description",
        "the worst-case execution time of \"alarm\", which is posted, is 50us in the trace and 70us in the description",
        "the lane of \"alarm\", which is posted, is 0 on local in the trace and 1 on local in the description",
    ];
    assert_eq!(said, expected);
    assert_eq!((report.first, compared(&replay_of_both(&system, &metadata, &records))), (None, 4));
    // What has to do with something outside is not called.
    let report = replay(&|workplace| {
        workplace.declare(note(5), silent).expect("there is room");
        workplace.declare(alarm().outside(), |_| panic!("it is not called")).expect("there is room");
    });
    assert_eq!(not_called(&report), [("alarm", 4, NotCalled::Outside)]);
    assert_eq!((report.first, report.outside), (None, 4));
    // One that posts nothing, and panics.
    let report = replay(&|workplace| {
        let note = workplace.declare(note(5), |_| panic!("no paper")).expect("there is room");
        workplace.declare(alarm(), move |job| _ = job.post(note, job.handle())).expect("there is room");
    });
    let first = report.first.expect("it differs").to_string();
    assert!(
        first.starts_with("note of job 0, ")
            && first.ends_with("it completed then, and panics now: no paper"),
        "{first}"
    );
    // Where nothing can be declared, it is named, and is no difference.
    let mut replay = Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed");
    records.iter().for_each(|record| replay.record(*record));
    let report = replay.finish();
    assert_eq!(
        not_called(&report),
        [("note", 4, NotCalled::NotDeclared), ("alarm", 4, NotCalled::NotDeclared)]
    );
    let completed = records.iter().filter(|record| record.event == Event::COMPLETE).count() as u64;
    assert_eq!((report.first.clone(), report.called), (None, completed - 8));
}

fn replay_of_both(system: &System, metadata: &Metadata, records: &[Record]) -> ReplayReport {
    let mut replay = Replay::new(system, metadata, Operations::synthetic()).expect("it can be replayed");
    let workplace = replay.workplace(ROOM);
    let note = workplace.declare(note(5), |_| ()).expect("there is room");
    workplace.declare(alarm(), move |job| _ = job.post(note, job.handle())).expect("there is room");
    records.iter().for_each(|record| replay.record(*record));
    replay.finish()
}

/// So many records are lost.
pub(crate) fn lost(records: u64) -> Record {
    let lost = Lost { records, since: None, ring: 0, cause: LossCause::Overwritten.into() };
    lost.at(Instant::ZERO, Record::NO_CPU)
}

/// A trace of before has neither the handles nor the answers; and where the records of them are lost, nothing is handed in their place.
#[test]
fn handles_that_are_not_recorded_are_not_made_up() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, records) = with_alarm(&system, ROOM);
    assert!(metadata.keeps_posts);
    let without: Vec<Record> = records.iter().copied().filter(|record| record.event != Event::POST).collect();
    assert!(records.len() > without.len() + 7);
    let of_before = Metadata { keeps_posts: false, ..metadata.clone() };
    let report = replay_of_both(&system, &of_before, &without);
    let expected = [("note", 4, NotCalled::NotRecorded), ("alarm", 4, NotCalled::NotRecorded)];
    assert_eq!((not_called(&report), &report.first, compared(&report)), (expected.to_vec(), &None, 0));

    let with_gap: Vec<Record> = std::iter::once(lost(8)).chain(without).collect();
    let report = replay_of_both(&system, &metadata, &with_gap);
    let expected = [("note", 4, NotCalled::Lost), ("alarm", 4, NotCalled::Lost)];
    assert_eq!((not_called(&report), report.first.clone()), (expected.to_vec(), None));
}

/// With what execution time a job is posted is compared; that of its operation is the same said or not, and of another one it is told when it is declared.
#[test]
fn another_execution_time_is_named() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, records) = with_alarm(&system, ROOM);
    let replay = |declared: i64, posted: Option<i64>| {
        let mut replay =
            Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed");
        let workplace = replay.workplace(ROOM);
        let note = note(5).wcet(Work::from_micros(declared));
        let note = workplace.declare(note, |_| ()).expect("there is room");
        let post = move |job: &JobContext<'_>| {
            let wcet = posted.map(Work::from_micros);
            _ = job.post_work(Posted { wcet, ..Posted::new(note).handle(job.handle()) });
        };
        workplace.declare(alarm(), post).expect("there is room");
        records.iter().for_each(|record| replay.record(*record));
        let report = replay.finish();
        (report.first.map(|first| first.to_string()), report.differences.len())
    };
    assert_eq!(
        [replay(10, None), replay(10, Some(10)), replay(11, Some(10))],
        [(None, 0), (None, 0), (None, 1)]
    );
    // Declared otherwise, that is said, once.
    assert_eq!(replay(11, None), (None, 1));
    let expected = "alarm>note of job 0, post 0, 3.05ms after the start: it was posted to execute for up to 10us, and is to execute for up to 11us now";
    assert_eq!(replay(10, Some(11)), (Some(expected.to_owned()), 0));
    assert_eq!(replay(11, Some(11)).1, 1);
}

/// A job declares the operation that it posts, in the replay as then.
#[test]
fn what_a_job_declares_is_called_again() {
    let system = system(LaneDispatch::NonPreemptive);
    let plans = plan_lanes_of(&system).expect("sorted");
    let declaring = |declare: Box<dyn Fn() -> PostedOperation + Send>| {
        Operations::synthetic().with_ports("fast", move |ports| {
            let _out = ports.output_of::<u64>("out", OutputKind::any().plain(), || 0);
            move |job: &JobContext<'_>| {
                if job.instance() == 3 {
                    job.post(declare(), 9).expect("there is room");
                }
            }
        })
    };
    let place = Arc::new(OnceLock::<talea_sim::VirtualWorkplace>::new());
    let (own, told) = (Arc::clone(&place), Arc::new(Mutex::new(Vec::new())));
    let telling = Arc::clone(&told);
    let declare = move || {
        let (workplace, telling) = (own.get().expect("it is there"), Arc::clone(&telling));
        let tell = move |job: &JobContext<'_>| telling.lock().expect("whole").push((job.handle(), job.now()));
        workplace.declare(note(5), tell).expect("there is room")
    };
    let (simulation, workplace) =
        Simulation::with_posting(&system, &plans, declaring(Box::new(declare)), ROOM).expect("simulated");
    place.set(workplace).expect("once");
    let mut simulation = simulation.with_kept_values(&system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    let tables = simulation.metadata().clone();
    simulation.advance(Instant::ZERO + ms(50), &mut recorded);
    let whole = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    let then = std::mem::take(&mut *told.lock().expect("whole"));
    assert_eq!(then.len(), 1);

    // Of a trace, whose tables have what was defined, and as records come.
    for (metadata, defines) in [(&whole, false), (&tables, true)] {
        let place = Arc::new(OnceLock::<talea_operation::ReplayWorkplace>::new());
        let (own, telling) = (Arc::clone(&place), Arc::clone(&told));
        let declare = move || {
            let (workplace, telling) = (own.get().expect("it is there"), Arc::clone(&telling));
            let tell =
                move |job: &JobContext<'_>| telling.lock().expect("whole").push((job.handle(), job.now()));
            workplace.declare(note(5), tell).expect("there is room")
        };
        let mut replay =
            Replay::new(&system, metadata, declaring(Box::new(declare))).expect("it can be replayed");
        place.set(replay.workplace(ROOM)).expect("once");
        if defines {
            recorded.defined.iter().for_each(|definition| replay.define(definition));
        }
        recorded.records.iter().for_each(|record| replay.record(*record));
        let report = replay.finish();
        assert_eq!((report.first.as_ref(), &report.posted, compared(&report)), (None, &Vec::new(), 1));
        assert_eq!(std::mem::take(&mut *told.lock().expect("whole")), then);
    }
}

/// What another run has declared is refused as it was then, and takes no turn.
#[test]
fn an_operation_of_another_run_is_told_from_the_own_ones() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, records) = with_alarm(&system, ROOM);
    let other =
        Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed").workplace(ROOM);
    let foreign = other.declare(note(5), |_| ()).expect("there is room");
    let mut replay = Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed");
    let workplace = replay.workplace(ROOM);
    let own = workplace.declare(note(5), |_| ()).expect("there is room");
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&numbers);
    let code = move |job: &JobContext<'_>| {
        assert_eq!(job.post(foreign, 0), Err(NotPosted::OtherRun));
        tell.lock().expect("whole").push(job.post(own, job.handle()));
        assert_eq!(job.handle(), 40);
    };
    workplace.declare(alarm(), code).expect("there is room");
    let full = workplace.declare(Declaration { name: "x".into(), ..note(5) }, |_| ());
    assert!(full.is_ok() && workplace.declare(alarm(), |_| ()).is_err());
    records.iter().for_each(|record| replay.record(*record));
    assert_eq!(replay.finish().first, None);
    assert_eq!(*numbers.lock().expect("whole"), [Ok(0), Ok(1), Ok(2), Ok(3)]);
}

/// The records of one job of a posted operation that tell of it itself, in a recording by hand.
fn life(job: JobId, by: Option<JobId>, handle: u64, at: Instant) -> [Record; 3] {
    let (nominal, deadline) = (at, at + ms(5));
    let outcome = PostOutcome::Posted.into();
    [
        event::Post { job, by: event::JobOrNone(by), handle, lane: 0, outcome }.at(at, Record::NO_CPU),
        event::Start { job, lane: 0, depth: 0, posted_by: event::JobOrNone(by) }.at(at, Record::NO_CPU),
        event::Complete { job, nominal, deadline, lane: 0 }.at(at, Record::NO_CPU),
    ]
}

/// On threads, who was posted may end before the job that posted it has; its handle may lead to what that has put there.
#[test]
fn who_was_posted_has_its_turn_after_who_posted_it() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, _) = with_alarm(&system, ROOM);
    let operation = |name: &str| {
        let place = metadata.operations.iter().position(|entry| entry.name == name);
        OperationId::from_index(place.expect("it is declared"))
    };
    let job = |name: &str, instance| JobId { operation: operation(name), instance };
    let at = |millis| Instant::ZERO + ms(millis);
    // An alarm posts a note, and that another one; each is over within the job that has posted it.
    let [outer, middle, inner] = [job("alarm", 0), job("note", 0), job("note", 1)];
    let [post_outer, start_outer, end_outer] = life(outer, None, 3, at(1));
    let [post_middle, start_middle, end_middle] = life(middle, Some(outer), 2, at(2));
    let [post_inner, start_inner, end_inner] = life(inner, Some(middle), 1, at(3));
    // This one ends within the alarm, too, and was posted by nobody; it is called behind the note before it.
    let [post_other, start_other, end_other] = life(job("note", 2), None, 9, at(3));
    // And this one after it.
    let later = life(job("note", 3), None, 8, at(4));
    let begun = [post_outer, start_outer, post_middle, start_middle, post_inner, start_inner];
    let ended = [end_inner, post_other, start_other, end_other, end_middle];
    for has_end in [true, false] {
        let mut replay =
            Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed");
        let workplace = replay.workplace(ROOM);
        let own = Arc::new(OnceLock::<PostedOperation>::new());
        let order = Arc::new(Mutex::new(Vec::new()));
        let code = || {
            let (own, order) = (Arc::clone(&own), Arc::clone(&order));
            move |job: &JobContext<'_>| {
                order.lock().expect("whole").push(job.handle());
                if matches!(job.handle(), 2 | 3) {
                    job.post(*own.get().expect("declared"), job.handle() - 1).expect("it was posted then");
                }
            }
        };
        own.set(workplace.declare(note(5), code()).expect("there is room")).expect("once");
        workplace.declare(alarm(), code()).expect("there is room");
        begun.iter().chain(&ended).for_each(|record| replay.record(*record));
        if has_end {
            replay.record(end_outer);
        }
        later.iter().for_each(|record| replay.record(*record));
        let report = replay.finish();
        let order = order.lock().expect("whole").clone();
        match has_end {
            true => assert_eq!((order, compared(&report)), (vec![3, 2, 1, 9, 8], 2)),
            // Of the alarm there is no end: those that it posted have theirs in their order all the same.
            false => assert_eq!((order, compared(&report)), (vec![2, 1, 9, 8], 1)),
        }
        assert_eq!((report.first.clone(), report.unknown()), (None, 0));
    }
}

/// An operation of the description that has posted, and has no code now, would say nothing of that itself.
#[test]
fn posts_of_an_operation_without_code_are_missed() {
    let task = TaskBuilder::new("watch", ms(10)).wcet(Work::from_micros(100));
    let system = System::builder("posting").task(task).build().expect("a system");
    let plans = plan_lanes_of(&system).expect("sorted");
    let declared = Arc::new(OnceLock::<PostedOperation>::new());
    let own = Arc::clone(&declared);
    let watching = Operations::synthetic().with("watch", move |job| {
        (0..2).for_each(|post| _ = job.post(*own.get().expect("declared"), 10 * job.instance() + post));
    });
    let (simulation, workplace) =
        Simulation::with_posting(&system, &plans, watching, ROOM).expect("simulated");
    declared.set(workplace.declare(note(5).lane(0), |_| ()).expect("there is room")).expect("once");
    let mut simulation = simulation.with_kept_values(&system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(25), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    let replayed = |lost: Option<Record>, has_place: bool| {
        let mut replay =
            Replay::new(&system, &metadata, Operations::synthetic()).expect("it can be replayed");
        if has_place {
            replay.workplace(ROOM).declare(note(5).lane(0), |_| ()).expect("there is room");
        }
        lost.iter().chain(&recorded.records).for_each(|record| replay.record(*record));
        replay.finish()
    };
    let report = replayed(None, true);
    let [row] = &report.posts[..] else { panic!("{:?}", report.posts) };
    assert_eq!((row.output.as_str(), row.compared, row.differing), ("watch>note", 6, 6));
    let first = row.first.as_ref().expect("it differs");
    assert_eq!((first.instance, first.post, &first.what), (0, Some(0), &What::NothingNow));
    // Where records are lost, nobody knows what the operation would have posted; and where there is no place, nothing can be posted.
    let report = replayed(Some(lost(1)), true);
    assert_eq!((report.differing(), report.unknown()), (0, 6));
    let report = replayed(None, false);
    assert_eq!((report.differing(), report.unknown()), (0, 0));
}

/// Where a job posts and nothing can be declared, nobody knows what it was told: what it publishes otherwise proves nothing.
#[test]
fn what_depends_on_an_answer_that_is_not_known_is_unknown() {
    let system = system(LaneDispatch::NonPreemptive);
    let telling = |declared: Arc<OnceLock<PostedOperation>>| {
        Operations::synthetic().with_ports("fast", move |ports| {
            let out = ports.output_of::<u64>("out", OutputKind::any().plain(), || 0);
            move |job: &JobContext<'_>| {
                let answer = declared.get().map(|note| job.post(*note, 1));
                job.set(out, answer.and_then(Result::ok).unwrap_or(99));
            }
        })
    };
    let declared = Arc::<OnceLock<PostedOperation>>::default();
    let plans = plan_lanes_of(&system).expect("sorted");
    let (simulation, workplace) =
        Simulation::with_posting(&system, &plans, telling(Arc::clone(&declared)), ROOM).expect("simulated");
    declared.set(workplace.declare(note(5), |_| ()).expect("there is room")).expect("once");
    let mut simulation = simulation.with_kept_values(&system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(60), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);

    let row = |report: &ReplayReport| {
        let row = report.outputs.iter().find(|row| row.output == "fast.out").expect("there is one");
        (row.compared, row.differing, row.unknown)
    };
    // As it was.
    let again = Arc::<OnceLock<PostedOperation>>::default();
    let mut replay =
        Replay::new(&system, &metadata, telling(Arc::clone(&again))).expect("it can be replayed");
    let workplace = replay.workplace(ROOM);
    again.set(workplace.declare(note(5), |_| ()).expect("there is room")).expect("once");
    recorded.records.iter().for_each(|record| replay.record(*record));
    let (jobs, ..) = row(&replay.finish());
    assert!(jobs > 5);
    // What was declared elsewhere is posted where nothing can be.
    let mut replay = Replay::new(&system, &metadata, telling(again)).expect("it can be replayed");
    recorded.records.iter().for_each(|record| replay.record(*record));
    assert_eq!(row(&replay.finish()), (0, 0, jobs));
}
