//! Jobs that are posted by another one of their lane and executed in its midst.

use super::posting::{Posted as Ran, run_beside};
use super::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use talea_model::{Criticality, LaneDispatch};
use talea_runtime::{Declaration, JobContext, Post, Posted, PostedOperation, PostingRoom};

/// What happened, in its order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(String, ThreadId)>>>);

impl Diary {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().expect("whole").push((what.into(), thread::current().id()));
    }

    fn texts(&self) -> Vec<String> {
        self.0.lock().expect("whole").iter().map(|(text, _)| text.clone()).collect()
    }
}

fn posted(operation: PostedOperation, job: &JobContext<'_>, after: i64, handle: u64) -> Posted {
    Posted::new(operation).handle(handle).due(job.release() + ms(1_000 * after))
}

/// The operations that the job of the system posts, once they are declared, and what it does with them.
type Act = Box<dyn FnMut(&JobContext<'_>, &[PostedOperation]) + Send>;

/// Room for all records that a thread makes in these runs, however late they are read.
const RECORDS: usize = 1 << 17;

/// A run of a system with the task `pusher`, whose first job that finds the operations declared does this; it ends when the last operation has been
/// executed, and `declare` says what they are.
fn run_of(
    system: &System,
    rt: RtMode,
    mut act: Act,
    declare: impl FnOnce(&talea_runtime::Dispatcher) -> Vec<PostedOperation> + Send,
    last: Receiver<()>,
) -> Ran {
    let operations: Arc<OnceLock<Vec<PostedOperation>>> = Arc::default();
    let own = Arc::clone(&operations);
    let mut is_done = false;
    let code = move |job: &JobContext<'_>| {
        if let Some(operations) = own.get()
            && !std::mem::replace(&mut is_done, true)
        {
            act(job, operations);
        }
    };
    let posting = PostingRoom { operations: 5, jobs: 8, posters: 2 };
    let options = RunOptions { posting, ring_records: Some(RECORDS), ..options(rt, 0) };
    let (ran, ()) =
        run_beside(system, (Operations::synthetic().with("pusher", code), options), move |dispatcher| {
            assert!(operations.set(declare(&dispatcher)).is_ok(), "nobody else sets them");
            let last = last;
            last.recv().expect("it is executed");
        });
    ran
}

/// Of one lane, the pusher in it: what comes first is executed at once, what does not waits, and so does what is posted in somebody's midst.
#[test]
fn what_comes_first_in_the_own_lane_is_executed_at_once_and_recorded_as_work_of_its_own() {
    let system = system(Strategy::Edf).task(task("pusher", 5, 1)).build().expect("a system");
    for rt in [RtMode::Warn, RtMode::Off] {
        let diary = Diary::default();
        let (end, last) = mpsc::channel();
        let (own, notes) = (diary.clone(), diary.clone());
        let released_ns = Arc::new(AtomicI64::new(0));
        let read = Arc::clone(&released_ns);
        let act: Act = Box::new(move |mut job, operations| {
            let [first, urgent, broken, ending] = operations else { panic!("there are four") };
            own.note("begin");
            let now = Post::now(&job);
            job.post_here(posted(*first, job, 50, 1), Some(now)).expect("there is room");
            read.store(now.as_nanos(), Ordering::Relaxed);
            job.post_here(posted(*broken, job, 50, 0), None).expect("there is room");
            own.note("posts");
            job.post_work(posted(*urgent, job, 1, 3)).expect("there is room");
            job.post_here(posted(*first, job, 60, 4), None).expect("there is room");
            job.post_here(posted(*ending, job, 90, 0), None).expect("there is room");
            own.note("end");
        });
        let declare = move |dispatcher: &talea_runtime::Dispatcher| {
            let noting = |name: &'static str| {
                let diary = notes.clone();
                move |job: &JobContext<'_>| diary.note(format!("{name} {}", job.handle()))
            };
            let declare = |name, code: Box<dyn FnMut(&JobContext<'_>) + Send>| {
                let declared = Declaration::new(name, ms(100)).wcet(Work::from_nanos(1));
                dispatcher.declare(declared, code).expect("there is room")
            };
            let inner = declare("inner", Box::new(noting("inner")));
            let first = noting("first");
            let posting = move |mut job: &JobContext<'_>| {
                if job.handle() == 1 {
                    job.post_here(posted(inner, job, 70, 2), None).expect("there is room");
                }
                first(job);
            };
            let first = declare("first", Box::new(posting));
            let urgent = declare("urgent", Box::new(noting("urgent")));
            let broken = declare("broken", Box::new(|_| panic!("it is broken")));
            let ending = declare("ending", Box::new(move |_| end.send(()).expect("heard")));
            vec![first, urgent, broken, ending]
        };
        let ran = run_of(&system, rt, act, declare, last);
        let expected = ["begin", "first 1", "posts", "end", "urgent 3", "first 4", "inner 2"];
        assert_eq!(diary.texts(), expected);
        let read_at = talea_time::Instant::from_nanos(released_ns.load(Ordering::Relaxed));
        assert_eq!(ran.times(Event::RELEASE, "first #0"), [read_at], "it is released when that was read");
        assert_eq!(ran.outcome.mishaps.panics.len(), 1);
        assert_eq!(ran.outcome.mishaps.panics[0].operation, "broken");
        let told = |event| ran.jobs(event).into_iter().filter(|name| name.starts_with("pusher")).count();
        assert_eq!((told(Event::PREEMPT), told(Event::RESUME)), (2, 2), "first and broken");
        for name in ["first", "urgent", "inner"] {
            let row = ran.outcome.report.tasks.iter().find(|task| task.name == name).expect("a row");
            assert_eq!(row.released, row.completed, "{name}");
        }
        if rt == RtMode::Off || ran.lacks_realtime() {
            continue;
        }
        assert_eq!(ran.violations(&system), Vec::<String>::new());
    }
}

/// Work of another lane, and all work where a preemptive lane decides, is executed by whose it is.
#[test]
fn what_is_of_another_lane_or_of_a_preemptive_one_is_not_executed_on_the_spot() {
    let two = system(Strategy::Criticality)
        .task(task("pusher", 5, 1).criticality(Criticality::High))
        .task(task("other", 5, 1).criticality(Criticality::Low));
    let two = two.build().expect("a system");
    let mut preemptive =
        (*system(Strategy::Edf).task(task("pusher", 5, 1)).build().expect("a system")).clone();
    preemptive.lane_dispatch = LaneDispatch::Preemptive;
    let preemptive = System::new(preemptive).expect("a system");
    for (system, criticality) in [(two, Criticality::Low), (preemptive, Criticality::High)] {
        let diary = Diary::default();
        let (end, last) = mpsc::channel();
        let (own, notes) = (diary.clone(), diary.clone());
        let act: Act = Box::new(move |mut job, operations| {
            own.note("pusher");
            job.post_here(posted(operations[0], job, 50, 1), None).expect("there is room");
            own.note("end");
        });
        let declare = move |dispatcher: &talea_runtime::Dispatcher| {
            let declared =
                Declaration::new("delivery", ms(100)).wcet(Work::from_nanos(1)).criticality(criticality);
            let code = move |_: &JobContext<'_>| {
                notes.note("delivery");
                end.send(()).expect("heard");
            };
            vec![dispatcher.declare(declared, code).expect("there is room")]
        };
        let ran = run_of(&system, RtMode::Warn, act, declare, last);
        let diary = diary.0.lock().expect("whole").clone();
        assert_eq!(diary.len(), 3);
        let delivered = diary.iter().position(|(text, _)| text == "delivery").expect("it is executed");
        // Another thread may execute it meanwhile, where there are no real-time priorities.
        assert!(delivered == 2 || diary[0].1 != diary[1].1, "{diary:?}");
        assert_eq!(ran.outcome.report.unknown_records, 0);
    }
}

/// A higher lane comes at any instant of it, and what is recorded of both is possible.
#[test]
fn what_is_executed_on_the_spot_is_preempted_like_any_other_job() {
    let above = TaskBuilder::new("above", Duration::from_micros(250)).wcet(Work::from_micros(20));
    let system = system(Strategy::Criticality)
        .task(task("pusher", 2_000, 5).criticality(Criticality::Low))
        .task(above.criticality(Criticality::High))
        .build()
        .expect("a system");
    let (end, last) = mpsc::channel();
    // Each is released, displaces the pusher, begins, ends, and the pusher goes on.
    let act: Act = Box::new(move |mut job, operations| {
        for _ in 0..RECORDS / 6 {
            job.post_here(posted(operations[0], job, 50, 1), None).expect("there is room");
        }
        job.post_here(posted(operations[1], job, 90, 0), None).expect("there is room");
    });
    let declare = move |dispatcher: &talea_runtime::Dispatcher| {
        let declared =
            |name| Declaration::new(name, ms(100)).wcet(Work::from_nanos(1)).criticality(Criticality::Low);
        let short = dispatcher.declare(declared("short"), |_: &JobContext<'_>| ()).expect("there is room");
        let ending = move |_: &JobContext<'_>| end.send(()).expect("heard");
        vec![short, dispatcher.declare(declared("ending"), ending).expect("there is room")]
    };
    let ran = run_of(&system, RtMode::Warn, act, declare, last);
    if ran.lacks_realtime() {
        return;
    }
    assert_eq!(ran.outcome.report.lost_records, 0);
    assert!(ran.jobs(Event::PREEMPT).iter().any(|name| name.starts_with("short")), "some were displaced");
    // How soon a thread that is woken has its processor is the machine's affair.
    let is_of_life = |violation: &String| violation.starts_with("life");
    assert_eq!(ran.violations(&system).into_iter().filter(is_of_life).collect::<Vec<_>>(), [""; 0]);
}
