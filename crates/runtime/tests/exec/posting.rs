//! Work that no description has: declared, posted, executed in lanes with the jobs of tasks, recorded and judged like them.

use super::hierarchy::described;
use super::*;
use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use talea_insight::explain::{Explanations, Kind, Question, Which, explain};
use talea_insight::flow::{Direction, Limits, Link, flow};
use talea_insight::verify::{Rule, Verifier, default_tolerance};
use talea_linux::affinity;
use talea_model::{Criticality, LaneDispatch, PublicationId};
use talea_notification::{Content, EventChannelFactory, EventType, Header};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{JobOrNone, JobWcet, Start};
use talea_record::{Activity, JobId, Metadata, Origin, Sink};
use talea_runtime::{
    Declaration, DeclareError, Dispatcher, JobContext, KeptOutputs, LaneStep, NoPoster, NotPosted,
    PostedOperation, Poster, PostingRoom, PrepareError, Prepared, ReplayWorkplace, StopHandle,
};
use talea_time::Instant;

const ROOM: PostingRoom = PostingRoom { operations: 4, jobs: 8, posters: 2 };

pub(super) fn posting(rt: RtMode) -> RunOptions {
    RunOptions { posting: ROOM, ..options(rt, 0) }
}

/// The records and tables of a run that ends when `act`, on a thread of its own, returns.
pub(super) struct Posted {
    pub outcome: Outcome,
    pub records: Vec<Record>,
    pub metadata: Metadata,
}

/// Prepares a run, and lets `act` use it from before its start until `act` returns.
pub(super) fn run_beside<R: Send>(
    system: &System,
    (operations, options): (Operations, RunOptions),
    act: impl FnOnce(Dispatcher) -> R + Send,
) -> (Posted, R) {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let options = RunOptions { duration: None, keep_log: Some(log.clone()), ..options };
    let prepared = Executive::prepare(system, operations, options).expect("the run can be prepared");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    let (outcome, acted) = thread::scope(|scope| {
        let acting = scope.spawn(move || {
            let _stop = StopAtEnd(stop);
            act(dispatcher)
        });
        let outcome = prepared.run().expect("the run can begin");
        (outcome, acting.join().expect("it acts without a panic"))
    });
    let records = records_of(&log);
    let metadata = TraceFile::open(&log).expect("a trace").metadata().clone();
    (Posted { outcome, records, metadata }, acted)
}

/// Ends the run also where the thread that was to do it panics.
struct StopAtEnd(StopHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Posted {
    /// How many records of this event there are.
    pub fn count(&self, event: Event) -> usize {
        self.records.iter().filter(|record| record.event == event).count()
    }

    /// Says why what depends on real-time priorities is not tested, if so.
    pub fn lacks_realtime(&self) -> bool {
        if !self.outcome.realtime {
            talea_measure::skip(format!("no real-time priorities here: {}", self.outcome.missing.join("; ")));
        }
        !self.outcome.realtime
    }

    /// Names and numbers of the jobs that an event tells of, in order.
    pub fn jobs(&self, event: Event) -> Vec<String> {
        let told = self.records.iter().filter(|record| record.event == event);
        told.map(|record| self.metadata.job_name(record.job())).collect()
    }

    /// The instants at which an event is told of this job.
    pub fn times(&self, event: Event, job: &str) -> Vec<Instant> {
        let told = self.records.iter().filter(|record| record.event == event);
        told.filter(|record| self.metadata.job_name(record.job()) == job).map(|record| record.time).collect()
    }

    /// Why jobs of the task were late.
    pub fn failures_of(&self, task: &str) -> Explanations {
        let task = self.metadata.tasks.iter().position(|entry| entry.name == task).expect("it was defined");
        let question = Question { which: Which::Failed, task: Some(task), limit: 10 };
        let replay = |sink: &mut dyn Sink| {
            self.records.iter().for_each(|record| sink.record(*record));
            Ok::<(), Infallible>(())
        };
        explain(&self.metadata, question, replay).expect("memory can be read")
    }

    /// What another reader of the trace finds wrong with what the lanes did. That a processor idled is none of it: how soon
    /// a thread that is woken has its processor is the machine's affair, which may be busy.
    pub fn violations(&self, system: &System) -> Vec<String> {
        self.violations_beyond(system, default_tolerance(self.origin()))
    }

    pub fn origin(&self) -> Origin {
        self.metadata.origin
    }

    /// The same with another tolerance.
    pub fn violations_beyond(&self, system: &System, tolerance: Duration) -> Vec<String> {
        let plans = plan_lanes_of(system).expect("plans");
        let mut verifier =
            Verifier::new(&self.metadata, system, &plans, tolerance).expect("the trace is the system's");
        self.records.iter().for_each(|record| verifier.record(*record));
        verifier
            .finish()
            .violations
            .iter()
            .filter(|found| found.rule != Rule::Idle)
            .map(|found| format!("{}: {}", found.rule.name(), found.text))
            .collect()
    }
}

fn with_dispatch(system: &System, dispatch: LaneDispatch) -> System {
    let mut description = (**system).clone();
    description.lane_dispatch = dispatch;
    System::new(description).expect("a system")
}

/// Posts as soon as the run has begun.
pub(super) fn post_first(poster: &mut Poster, operation: PostedOperation, handle: u64) {
    while let Err(refused) = poster.post(operation, handle) {
        assert_eq!(refused, NotPosted::NotRunning, "there is room");
        thread::yield_now();
    }
}

/// Returns when what was posted into the only lane, and is not late, has ended, and was recorded to: another job that is due later has begun.
fn settle(dispatcher: &Dispatcher, poster: &mut Poster) {
    let (code, told) = telling();
    let last = Declaration::new("last", ms(100_000)).wcet(Work::from_nanos(1)).lane(0);
    let last = dispatcher.declare(last, code).expect("there is room");
    poster.post(last, 0).expect("there is room");
    told.recv().expect("it is executed");
}

/// Code that tells what came with its jobs.
fn telling() -> (impl FnMut(&JobContext<'_>) + Send + 'static, Receiver<(u64, u64)>) {
    let (tell, told): (Sender<(u64, u64)>, _) = mpsc::channel();
    (move |context: &JobContext<'_>| tell.send((context.instance(), context.handle())).expect("heard"), told)
}

#[test]
fn posted_work_is_executed_recorded_and_judged_like_any_other() {
    let system = system(Strategy::Edf).task(task("base", 10, 1)).build().expect("a system");
    for (rt, dispatch) in [
        (RtMode::Warn, LaneDispatch::NonPreemptive),
        (RtMode::Off, LaneDispatch::NonPreemptive),
        (RtMode::Warn, LaneDispatch::Preemptive),
    ] {
        let system = with_dispatch(&system, dispatch);
        let (ran, told) = run_beside(&system, (Operations::synthetic(), posting(rt)), |dispatcher| {
            let mut poster = dispatcher.poster().expect("there are two");
            let (code, early) = telling();
            let before = dispatcher.declare(Declaration::new("before", ms(50)), code).expect("there is room");
            post_first(&mut poster, before, 7);
            // While the run lasts.
            let (code, late) = telling();
            let during =
                Declaration::new("during", ms(5)).wcet(Work::from_millis(1)).criticality(Criticality::High);
            let during = dispatcher.declare(during, code).expect("there is room");
            let numbers: Vec<_> = (40..43).map(|handle| poster.post(during, handle)).collect();
            assert_eq!(numbers, [Ok(0), Ok(1), Ok(2)]);
            let late: Vec<_> = late.iter().take(3).collect();
            settle(&dispatcher, &mut poster);
            (early.recv().expect("it is executed"), late)
        });
        assert_eq!(told, ((0, 7), vec![(0, 40), (1, 41), (2, 42)]));
        let completed = ran.jobs(Event::COMPLETE);
        for job in ["before #0", "during #0", "during #1", "during #2"] {
            assert_eq!(completed.iter().filter(|name| *name == job).count(), 1, "{job} in {completed:?}");
        }
        let row = ran.outcome.report.tasks.iter().find(|task| task.name == "during").expect("a row");
        assert_eq!((row.activity, row.released, row.completed), (Activity::Posted, 3, 3));
        assert!(row.critical && row.deadline_ns == 5_000_000);
        assert_eq!(ran.outcome.report.tasks.len(), 4, "places that nobody took are not told of");
        assert_eq!(ran.outcome.report.unknown_records, 0);
        // Without real-time priorities the kernel may keep the lane's thread from running when it likes.
        if rt == RtMode::Off || ran.lacks_realtime() {
            continue;
        }
        assert_eq!(ran.violations(&system), Vec::<String>::new());
    }
}

/// The lane is busy with the first job while the others are posted, so they are there together.
#[test]
fn lanes_order_posted_work_by_its_own_deadlines() {
    let system = system(Strategy::Edf).task(task("base", 10_000, 1)).build().expect("a system");
    let (ran, order) = run_beside(&system, (Operations::synthetic(), posting(RtMode::Warn)), |dispatcher| {
        let mut poster = dispatcher.poster().expect("there are two");
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let blocking = move |_: &JobContext<'_>| {
            begun.send(()).expect("heard");
            may_go_on.recv().expect("it is told to");
        };
        let first = dispatcher.declare(Declaration::new("first", ms(1)), blocking).expect("there is room");
        let (code, told) = telling();
        let job = dispatcher.declare(Declaration::new("job", ms(10_000)), code).expect("there is room");
        post_first(&mut poster, first, 0);
        has_begun.recv().expect("it begins");
        let now = Instant::from_nanos(i64::MAX / 4);
        for (handle, after) in [(3, 300), (1, 100), (2, 200)] {
            poster
                .post_work(talea_operation::Posted::new(job).handle(handle).due(now + ms(after)))
                .expect("there is room");
        }
        poster.post(job, 0).expect("there is room");
        go_on.send(()).expect("it waits");
        told.iter().take(4).map(|(_, handle)| handle).collect::<Vec<_>>()
    });
    assert_eq!(order, [0, 1, 2, 3]);
    assert_eq!(ran.violations(&system), Vec::<String>::new());
}

#[test]
fn room_is_bounded_and_what_does_not_fit_is_refused_and_counted() {
    let system = system(Strategy::Edf).task(task("base", 10_000, 1)).build().expect("a system");
    let (ran, ()) = run_beside(&system, (Operations::synthetic(), posting(RtMode::Off)), |dispatcher| {
        let mut poster = dispatcher.poster().expect("there are two");
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let blocking = move |context: &JobContext<'_>| {
            if context.instance() == 0 {
                begun.send(()).expect("heard");
                may_go_on.recv().expect("it is told to");
            }
        };
        let job = dispatcher.declare(Declaration::new("job", ms(1_000)), blocking).expect("there is room");
        post_first(&mut poster, job, 0);
        has_begun.recv().expect("it begins");
        for _ in 1..ROOM.jobs {
            poster.post(job, 0).expect("there is room");
        }
        assert_eq!(poster.post(job, 0), Err(NotPosted::Full));
        assert_eq!(poster.post(job, 0), Err(NotPosted::Full));
        go_on.send(()).expect("it waits");
        // Whoever is refused may try again.
        while poster.post(job, 0) == Err(NotPosted::Full) {
            thread::yield_now();
        }
        let more = Declaration::new("more", ms(1));
        for number in 1..ROOM.operations {
            let another = Declaration::new(&format!("another {number}"), ms(1));
            dispatcher.declare(another, |_| ()).expect("there is room");
        }
        let refused = dispatcher.declare(more, |_| ());
        assert_eq!(refused, Err(DeclareError::NoRoom(ROOM.operations)));
        assert_eq!(dispatcher.poster().err(), Some(NoPoster::Bound));
        drop(poster);
        assert!(dispatcher.poster().is_ok());
        assert_eq!(dispatcher.poster().err(), Some(NoPoster::AllTaken(2)));
    });
    let row = ran.outcome.report.tasks.iter().find(|task| task.name == "job").expect("a row");
    assert!(row.skipped >= 2 && row.released > ROOM.jobs as u64, "{row:?}");
}

/// An old job that is unfinished takes its own place and no other.
#[test]
fn a_job_that_is_not_done_leaves_room_for_others() {
    let system = system(Strategy::Edf).task(task("base", 10_000, 1)).build().expect("a system");
    let (ran, posted) = run_beside(&system, (Operations::synthetic(), posting(RtMode::Off)), |dispatcher| {
        let mut poster = dispatcher.poster().expect("there are two");
        let (code, told) = telling();
        let job = dispatcher.declare(Declaration::new("job", ms(10_000)), code).expect("there is room");
        post_first(&mut poster, job, 0);
        told.recv().expect("it is executed");
        // Due last of all, so it stays while others come and go.
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let blocking = move |_: &JobContext<'_>| {
            begun.send(()).expect("heard");
            may_go_on.recv().expect("it is told to");
        };
        let gate = dispatcher.declare(Declaration::new("gate", ms(50_000)), blocking).expect("there is room");
        poster.post(gate, 0).expect("there is room");
        has_begun.recv().expect("it begins");
        poster
            .post_work(talea_operation::Posted::new(job).handle(99).due(Instant::from_nanos(i64::MAX / 2)))
            .expect("there is room");
        let rounds = 3 * ROOM.jobs as u64;
        for round in 0..rounds {
            // Before the old job in the lane's order: this, and the next that keeps the lane busy.
            poster.post(job, round).expect("one place of eight is taken");
            poster.post(gate, 0).expect("there is room");
            go_on.send(()).expect("it waits");
            assert_eq!(told.recv().expect("it is executed").1, round);
            has_begun.recv().expect("it begins");
        }
        go_on.send(()).expect("it waits");
        assert_eq!(told.recv().expect("it is executed").1, 99);
        rounds
    });
    let row = ran.outcome.report.tasks.iter().find(|task| task.name == "job").expect("a row");
    assert_eq!((row.skipped, row.released), (0, posted + 2), "{row:?}");
}

#[test]
fn an_operation_of_another_run_is_refused() {
    let system = system(Strategy::Edf).task(task("base", 10_000, 1)).build().expect("a system");
    let other = prepare(&system, posting(RtMode::Off)).expect("it can be prepared");
    let foreign = other.dispatcher().declare(Declaration::new("job", ms(1)), |_| ()).expect("there is room");
    drop(other);
    run_beside(&system, (Operations::synthetic(), posting(RtMode::Off)), |dispatcher| {
        let mut poster = dispatcher.poster().expect("there are two");
        assert_eq!(poster.post(foreign, 0), Err(NotPosted::OtherRun), "nothing is declared here");
        let own = dispatcher.declare(Declaration::new("own", ms(1)), |_| ()).expect("there is room");
        post_first(&mut poster, own, 0);
        assert_eq!(poster.post(foreign, 0), Err(NotPosted::OtherRun));
    });
}

#[test]
fn what_cannot_be_declared_is_refused_with_what_could() {
    let node = system(Strategy::Muf).node("one", [0]);
    let system = node.task(task("base", 10, 1).criticality(Criticality::High)).build().expect("a system");
    let prepared = prepare(&system, posting(RtMode::Off)).expect("it can be prepared");
    let dispatcher = prepared.dispatcher();
    let declare = |declaration: Declaration| match dispatcher.declare(declaration, |_| ()) {
        Ok(_) => "declared".to_owned(),
        Err(refused) => refused.to_string(),
    };
    let high = || Declaration::new("x", ms(1)).wcet(Work::from_millis(1)).criticality(Criticality::High);
    for (declaration, words) in [
        (Declaration::new("", ms(1)), "cannot be called \"\""),
        (Declaration::new("base", ms(1)), "or another operation has it"),
        (Declaration::new("?3", ms(1)), "begins with '?'"),
        (Declaration::new("x", Duration::ZERO), "its deadline is 0"),
        (high().wcet(Work::from_nanos(-1)), "0 or more"),
        (high().wcet(Work::ZERO), "goes by laxity"),
        (high().node("two"), "no node \"two\" with lanes; the nodes with lanes are one"),
        (high().lane(3), "has no lane 3; its lanes are 0 (high)"),
        (high().wcet(Work::MAX), "it has to be ten years at most"),
        (Declaration::new("x", ms(1)).wcet(Work::from_millis(1)), "more urgent work (0 (high))"),
    ] {
        let told = declare(declaration);
        assert!(told.contains(words), "{told}");
    }
    assert_eq!(declare(high().node("one")), "declared");
    assert!(declare(high()).contains("or another operation has it"));
    let anyway = Declaration::new("y", ms(1)).wcet(Work::from_millis(1)).lane(0);
    assert_eq!(declare(anyway), "declared");
    let mut poster = dispatcher.poster().expect("there are two");
    let operation =
        dispatcher.declare(Declaration::new("z", ms(1)).wcet(Work::from_millis(1)).lane(0), |_| ());
    assert_eq!(poster.post(operation.expect("there is room"), 0), Err(NotPosted::NotRunning));

    let rates = self::system(Strategy::Rms).task(task("base", 10, 1)).build().expect("a system");
    let prepared = prepare(&rates, posting(RtMode::Off)).expect("it can be prepared");
    let refused = prepared.dispatcher().declare(Declaration::new("x", ms(1)), |_| ());
    assert!(matches!(refused, Err(DeclareError::Value { what: "period", .. })), "{refused:?}");
    let faster = Declaration::new("x", ms(1)).period(ms(5));
    assert!(prepared.dispatcher().declare(faster, |_| ()).is_ok(), "in the next lower lane");
    let slower = Declaration::new("y", ms(1)).period(ms(50));
    let refused = prepared.dispatcher().declare(slower, |_| ());
    assert!(matches!(refused, Err(DeclareError::NoLaneForIt { .. })), "{refused:?}");
}

fn prepare(system: &System, options: RunOptions) -> Result<Prepared, PrepareError> {
    Executive::prepare(system, Operations::synthetic(), options)
}

/// A high lane's job that is posted by a low one has run when the post returns, where the kernel keeps lanes nested.
#[test]
fn an_operation_posts_into_a_higher_lane() {
    let node = system(Strategy::Criticality).node("one", [0]);
    let system = node
        .task(task("high", 10_000, 1).criticality(Criticality::High))
        .task(task("low", 20, 1).criticality(Criticality::Low))
        .build()
        .expect("a system");
    let run = || {
        let (handle, handles) = mpsc::channel::<PostedOperation>();
        let (done, is_done) = mpsc::channel();
        // With room beforehand: who has to wait for memory lets lower lanes go on.
        let (order, seen) = mpsc::sync_channel(2);
        let told = order.clone();
        let low = move |context: &JobContext<'_>| {
            let Ok(operation) = handles.try_recv() else { return };
            context.post(operation, context.instance()).expect("there is room");
            told.send("posted").expect("heard");
            done.send(()).expect("heard");
        };
        let operations = Operations::synthetic().with("low", low);
        let (ran, ()) = run_beside(&system, (operations, posting(RtMode::Warn)), move |dispatcher| {
            let alarm = Declaration::new("alarm", ms(1)).criticality(Criticality::High);
            let code = move |_: &JobContext<'_>| order.send("alarm").expect("heard");
            handle.send(dispatcher.declare(alarm, code).expect("there is room")).expect("it is waited for");
            is_done.recv().expect("it is posted");
        });
        (ran, seen.try_iter().collect::<Vec<&str>>())
    };
    // Of runs in which the machine did not stop between the post and the first instant of what is posted, nor where another job was ready.
    let is_timely = |(ran, _): &(Posted, Vec<&str>)| {
        let of = |event| ran.times(event, "alarm #0").first().copied();
        let late = of(Event::START).zip(of(Event::RELEASE)).map(|(start, release)| start - release);
        let is_stalled = || ran.violations(&system).iter().any(|one| one.starts_with("dispatching"));
        ran.lacks_realtime()
            || late.is_some_and(|late| late <= default_tolerance(ran.origin())) && !is_stalled()
    };
    let (ran, seen) = (0..ATTEMPTS).map(|_| run()).find(is_timely).expect("it begins at once");
    let name = |job: JobId| ran.metadata.operations[job.operation.index()].name.as_str();
    let mut starts = ran.records.iter().filter_map(Start::read);
    let started = starts.find(|start| name(start.job) == "alarm").expect("it began");
    let JobOrNone(Some(by)) = started.posted_by else { panic!("nobody is said to have posted it") };
    assert_eq!(name(by), "low");
    assert!(starts.all(|start| start.posted_by == JobOrNone(None)), "no other job was posted");
    let replay = |sink: &mut dyn Sink| {
        ran.records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    };
    let limits = Limits { depth: 9, jobs: 9 };
    let Ok(flow) = flow(&ran.metadata, (by, Direction::Forward), limits, replay);
    let came: Vec<(JobId, Link)> =
        flow.steps.iter().filter_map(|step| Some((step.job, step.next_to?.1))).collect();
    assert_eq!(came, [(started.job, Link::Posted)]);
    if !ran.lacks_realtime() {
        assert_eq!(seen, ["alarm", "posted"]);
        assert_eq!(ran.violations(&system), Vec::<String>::new());
        let preempted = ran.jobs(Event::PREEMPT);
        assert!(preempted.len() == 1 && preempted[0].starts_with("low #"), "{preempted:?}");
    }
}

/// Late work that no file knows is explained: whose jobs were before it.
#[test]
fn a_late_posted_job_has_its_reasons() {
    let system =
        system(Strategy::Edf).node("one", [0]).task(task("base", 10_000, 1)).build().expect("a system");
    let (ran, ()) = run_beside(&system, (Operations::synthetic(), posting(RtMode::Warn)), |dispatcher| {
        let mut poster = dispatcher.poster().expect("there are two");
        let (posted, is_posted) = mpsc::channel::<()>();
        let spin = move |context: &JobContext<'_>| {
            is_posted.recv().expect("it is told");
            let begin = context.now();
            while context.now() - begin < ms(5) {
                std::hint::spin_loop();
            }
        };
        let before = dispatcher.declare(Declaration::new("before", ms(1)), spin).expect("there is room");
        let (code, executed) = telling();
        let late = dispatcher.declare(Declaration::new("late", ms(2)), code).expect("there is room");
        post_first(&mut poster, before, 0);
        poster.post(late, 0).expect("there is room");
        posted.send(()).expect("it waits");
        // Jobs that are late come behind all others, so also behind what is posted now.
        executed.recv().expect("it is executed");
        settle(&dispatcher, &mut poster);
    });
    let answer = ran.failures_of("late");
    let [late] = &answer.list[..] else { panic!("one job is late") };
    let sum: Duration = late.intervals.iter().map(|interval| interval.length()).sum();
    let lateness = ran.outcome.report.tasks.iter().find(|task| task.name == "late").expect("a row");
    let response = lateness.response_ns.as_ref().expect("it completed").max;
    assert_eq!(sum, Duration::from_nanos(response));
    if !ran.lacks_realtime() {
        let peers = late.totals.iter().filter(|total| total.kind == Kind::Ahead);
        assert!(peers.map(|total| total.sum()).max() > Some(ms(2)), "{:?}", late.totals);
    }
}

#[test]
fn lanes_below_other_schedulers_take_posted_work() {
    let system = described(
        0,
        "[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
         [[scheduler]]\nname = \"jobs\"\nkind = \"lanes\"\nunder = [{ scheduler = \"FP\", priority = 2 }]\n\
         [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"FP\", priority = 1 }]\n\
         [[task]]\nname = \"base\"\nperiod = \"10ms\"\nwcet = \"1ms\"\n",
    );
    let prepared = prepare(&system, posting(RtMode::Warn));
    if let Err(refused @ PrepareError::Hierarchy { .. }) = &prepared {
        return talea_measure::skip(format!("no hierarchies here: {refused}"));
    }
    drop(prepared);
    let (ran, told) = run_beside(&system, (Operations::synthetic(), posting(RtMode::Warn)), |dispatcher| {
        let mut poster = dispatcher.poster().expect("there are two");
        let (code, told) = telling();
        let work = Declaration::new("work", ms(50)).period(ms(5)).wcet(Work::from_millis(1)).lane(0);
        let work = dispatcher.declare(work, code).expect("there is room");
        post_first(&mut poster, work, 1);
        (2..5).for_each(|handle| _ = poster.post(work, handle).expect("there is room"));
        let told = told.iter().take(4).map(|(_, handle)| handle).collect::<Vec<_>>();
        settle(&dispatcher, &mut poster);
        told
    });
    assert_eq!(told, [1, 2, 3, 4]);
    let row = ran.outcome.report.tasks.iter().find(|task| task.name == "work").expect("a row");
    assert_eq!(row.completed, 4);
}

struct Nothing;

impl Content for Nothing {}

/// What is to be replayed needs no machine that could run it: no processor of that number, no priorities and no threads. What is declared comes to the
/// replay, which is called in place of a run.
#[test]
fn what_is_to_be_replayed_is_prepared_without_what_a_run_needs() {
    let below = described(
        999,
        "[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
         [[scheduler]]\nname = \"jobs\"\nkind = \"lanes\"\nunder = [{ scheduler = \"FP\", priority = 2 }]\n\
         [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"FP\", priority = 1 }]\n\
         [[task]]\nname = \"base\"\nperiod = \"10ms\"\nwcet = \"1ms\"\n",
    );
    let far = system(Strategy::Rms).node("far", [999]).task(task("base", 10, 1)).build().expect("a system");
    for (system, stepped) in [(&below, false), (&far, false), (&far, true)] {
        let plans = plan_lanes_of(system).expect("sorted");
        let workplace = ReplayWorkplace::new(system, plans, ROOM);
        let options = RunOptions { stepped, keep_values: KeptOutputs::All, ..posting(RtMode::Strict) };
        let replay = || panic!("it is replayed");
        let prepared = Executive::prepare_replay(system, options, workplace.clone(), replay);
        let mut prepared = prepared.expect("nothing of the machine is asked for");
        assert!(prepared.is_replay() && prepared.threads().is_empty() && prepared.missing().is_empty());
        assert_eq!(prepared.lanes().is_some(), stepped);
        let dispatcher = prepared.dispatcher();
        let work = Declaration::new("work", ms(50)).wcet(Work::from_millis(1)).lane(0);
        let work = dispatcher.declare(work, |_| ()).expect("there is room");
        let mut poster = dispatcher.poster().expect("there are two");
        assert_eq!(poster.post(work, 1), Err(NotPosted::NotRunning));
        let declared: Vec<String> =
            workplace.take_new().into_iter().map(|new| new.declaration.name).collect();
        assert_eq!((declared, workplace.names()), (vec!["work".to_owned()], vec!["work".to_owned()]));
        // Consumers of the program's channels come there, too, to be handed what they were handed, and what is pushed has its name there.
        let factory = EventChannelFactory::on(dispatcher.workplace().expect("there are two"));
        let channel = factory.create_with_defaults("channel");
        let consumer = channel
            .consumer("consumer")
            .lane(Declaration::new("hand", ms(50)).wcet(Work::from_millis(1)).lane(0));
        let _consumer = consumer.connect(|_| talea_notification::Outcome::Ok).expect("it can be connected");
        let event_type = EventType::new("T", "A");
        let mut supplier =
            channel.supplier("supplier").offer([event_type.clone()]).connect().expect("there is room");
        supplier
            .push(&mut poster, &talea_notification::Event::new(Header::new(event_type), Nothing))
            .expect("it is taken");
        let handed: Vec<_> = workplace
            .take_new()
            .into_iter()
            .map(|new| (new.declaration.name, new.handed.is_some()))
            .collect();
        assert_eq!(handed, [("hand".to_owned(), true)]);
        let first = PublicationId::from_index(system.publications().len());
        assert_eq!(workplace.name_of(first).as_deref(), Some("channel T/A"));
        let replayed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| prepared.run()));
        let panic = replayed.expect_err("it is called");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"it is replayed"));
    }
}

#[test]
fn there_is_no_room_where_no_lane_could_execute_it() {
    let system = described(
        0,
        "[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
         [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"FP\", priority = 1 }]\n",
    );
    assert!(matches!(prepare(&system, posting(RtMode::Off)), Err(PrepareError::NoLanesToPost)));
}

fn two_lanes() -> System {
    let node = system(Strategy::Criticality).node("one", [0]);
    node.task(task("high", 10_000, 1).criticality(Criticality::High))
        .task(task("low", 10_000, 1).criticality(Criticality::Low))
        .build()
        .expect("a system")
}

/// Of jobs that are due at once the longest has least time to lose; what it needs is said as it is posted.
#[test]
fn posted_jobs_are_ordered_by_execution_times_of_their_own() {
    let node = system(Strategy::Mlf).node("one", [0]);
    let system = node.task(task("base", 10_000, 1)).build().expect("a system");
    let options = RunOptions { stepped: true, ..posting(RtMode::Off) };
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let options = RunOptions { duration: None, keep_log: Some(log.clone()), ..options };
    let mut prepared = prepare(&system, options).expect("it can be prepared");
    let lanes = prepared.lanes().expect("there is one");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    let outcome = thread::scope(|scope| {
        scope.spawn(move || {
            let _stop = StopAtEnd(stop);
            affinity::set(None, &[0]).expect("the node's processor is one of the process's");
            let mut lanes = lanes.begin();
            let (code, told) = telling();
            let declaration = Declaration::new("work", ms(20_000)).wcet(Work::from_millis(2));
            let operation = dispatcher.declare(declaration, code).expect("there is room");
            let due = Instant::from_nanos(i64::MAX / 4);
            let posted = |ms| talea_operation::Posted::new(operation).wcet(Work::from_millis(ms)).due(due);
            while lanes.poster().post_work(posted(1).handle(1)) == Err(NotPosted::NotRunning) {
                thread::yield_now();
            }
            for wcet in [Work::ZERO, Work::MAX] {
                assert_eq!(lanes.poster().post_work(posted(1).wcet(wcet)), Err(NotPosted::NoExecution));
            }
            for wcet in [5, 2] {
                lanes.poster().post_work(posted(wcet).handle(wcet.unsigned_abs())).expect("there is room");
            }
            let mut steps = 0;
            while steps < 4 {
                match lanes.step() {
                    LaneStep::Worked => steps += 1,
                    LaneStep::Idle => lanes.wait(),
                    LaneStep::Over => panic!("nobody has stopped it"),
                }
            }
            assert_eq!(told.try_iter().map(|(_, handle)| handle).collect::<Vec<_>>(), [5, 2, 1]);
        });
        prepared.run().expect("the run can begin")
    });
    let records = records_of(&log);
    let metadata = TraceFile::open(&log).expect("a trace").metadata().clone();
    let told = records.iter().filter_map(JobWcet::read).map(|told| told.wcet);
    // The third one's is its operation's.
    assert_eq!(told.collect::<Vec<_>>(), [ms(1), ms(5)]);
    let ran = Posted { outcome, records, metadata };
    assert_eq!(ran.violations(&system), [""; 0]);
}

/// The lanes have no threads: nothing runs but when the caller says so, in the order of the lanes.
#[test]
fn a_caller_steps_lanes_by_hand() {
    let system = two_lanes();
    let options = RunOptions { stepped: true, duration: None, ..posting(RtMode::Off) };
    let _alone = alone();
    let mut prepared = prepare(&system, options.clone()).expect("it can be prepared");
    let lanes = prepared.lanes().expect("there are two");
    assert!(prepared.lanes().is_none(), "they are handed out once");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    let outcome = thread::scope(|scope| {
        scope.spawn(move || {
            let stop = StopAtEnd(stop);
            let mut lanes = lanes.begin();
            assert_eq!(dispatcher.poster().err(), Some(NoPoster::Bound));
            let (code, told) = telling();
            let low = Declaration::new("work", ms(1)).criticality(Criticality::Low);
            let low = dispatcher.declare(low, code).expect("there is room");
            while lanes.poster().post(low, 1) == Err(NotPosted::NotRunning) {
                thread::yield_now();
            }
            lanes
                .poster()
                .post_work(talea_operation::Posted::new(low).handle(2).due(Instant::ZERO))
                .expect("there is room");
            assert!(told.try_recv().is_err(), "nobody has stepped it");
            // The tasks' own jobs are released by their thread, when that comes to it.
            let mut steps = 0;
            while steps < 4 {
                match lanes.step() {
                    LaneStep::Worked => steps += 1,
                    LaneStep::Idle => lanes.wait(),
                    LaneStep::Over => panic!("nobody has stopped it"),
                }
            }
            assert_eq!(told.try_iter().map(|(_, handle)| handle).collect::<Vec<_>>(), [1, 2]);
            assert_eq!(lanes.step(), LaneStep::Idle);
            drop(stop);
            assert_eq!(lanes.step(), LaneStep::Over);
        });
        prepared.run().expect("the run can begin")
    });
    let completed: Vec<(&str, u64)> =
        outcome.report.tasks.iter().map(|task| (task.name.as_str(), task.completed)).collect();
    assert_eq!(completed, [("high", 1), ("low", 1), ("work", 2)]);

    let preemptive = with_dispatch(&system, LaneDispatch::Preemptive);
    assert!(matches!(prepare(&preemptive, options), Err(PrepareError::SteppedPreemptive { .. })));
}

/// Both lanes are there, so a job of the higher one runs first, whatever was posted before.
#[test]
fn a_step_takes_the_highest_lane_that_has_a_job() {
    let system = two_lanes();
    let options = RunOptions { stepped: true, duration: None, ..posting(RtMode::Off) };
    let _alone = alone();
    let mut prepared = prepare(&system, options).expect("it can be prepared");
    let lanes = prepared.lanes().expect("there are two");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    thread::scope(|scope| {
        let order = scope.spawn(move || {
            let _stop = StopAtEnd(stop);
            let mut lanes = lanes.begin();
            let (tell, told) = mpsc::channel();
            let both = [Criticality::Low, Criticality::High].map(|criticality| {
                let tell = tell.clone();
                let declaration = Declaration::new(&format!("{criticality} work"), ms(1));
                let code = move |_: &JobContext<'_>| tell.send(criticality).expect("heard");
                dispatcher.declare(declaration.criticality(criticality), code).expect("there is room")
            });
            while lanes.poster().post(both[0], 0) == Err(NotPosted::NotRunning) {
                thread::yield_now();
            }
            lanes.poster().post(both[0], 0).expect("there is room");
            lanes.poster().post(both[1], 0).expect("there is room");
            let mut order = Vec::new();
            while order.len() < 3 {
                if lanes.step() == LaneStep::Idle {
                    lanes.wait();
                }
                order.extend(told.try_iter());
            }
            order
        });
        prepared.run().expect("the run can begin");
        let order = order.join().expect("it steps without a panic");
        assert_eq!(order, [Criticality::High, Criticality::Low, Criticality::Low]);
    });
}
