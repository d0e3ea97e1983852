//! From the start instant on, the threads that release, dispatch and trace do not allocate.

use super::*;
use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use talea_event::qos::QosSettings;
use talea_model::{
    Collect, Condition, FieldValues, InputBuilder, LaneDispatch, OutputBuilder, PublicationBuilder,
    SubscriptionBuilder, SubtaskBuilder, Synchronisation, TriggerBuilder,
};
use talea_runtime::{JobContext, KeptOutputs, OutputKind, Ports, RunOptions};

/// Counts allocations of the runtime's threads while [`COUNTING`] is set.
struct Counting;

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The runtime names its threads for what they do and their node, `l0:frugal`; nothing else in this
/// process contains that node's name.
fn is_watched() -> bool {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes with a terminating NUL to the buffer.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.windows(7).any(|window| window == b":frugal")
}

/// Those that dispatch for a hierarchy, while no other set lives in this process.
static DISPATCHERS: AtomicBool = AtomicBool::new(false);

fn dispatches() -> bool {
    let mut name = [0u8; 16];
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let is_own = name.windows(6).any(|window| window == b"frugal");
    is_own || name.starts_with(b"sentinel/") || name.starts_with(b"controller")
}

fn count() {
    let counts = COUNTING.load(Ordering::Relaxed) && is_watched();
    if counts || DISPATCHERS.load(Ordering::Relaxed) && dispatches() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.realloc(pointer, layout, size) }
    }
}

talea_record::family! {
    /// What the code of an operation tells.
    counted {
        /// A job ran.
        ran(instance: u64);
    }
}

fn taking(name: &str, subscription: SubscriptionBuilder) -> TaskBuilder {
    TaskBuilder::triggered_by(name, subscription).deadline(ms(4)).wcet(Work::from_micros(100))
}

#[test]
fn releasing_dispatching_and_tracing_do_not_allocate() {
    allocations_are_counted();
    counted::FAMILY.register().expect("the only family of its number");
    let kept = [KeptOutputs::None, KeptOutputs::All];
    let both = [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive];
    for (dispatch, kept) in
        both.into_iter().flat_map(|dispatch| kept.iter().map(move |kept| (dispatch, kept)))
    {
        // The highest lane switches the counting on and off while all kinds of releases go on.
        let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(50_000));
        let overloaded = task("overloaded", 2, 5).overrun(talea_model::Overrun::Abort);
        let overloaded = overloaded.subscription(SubscriptionBuilder::new("c").types(["T/One"]));
        let of = |pattern: &str| pattern.parse::<Condition>().expect("a pattern");
        let few = Condition::all_of_one([of("T/One"), Condition::Matching("x < 8".into())]);
        let nested = Condition::any([
            Condition::in_order([few, Condition::negation(of("T/One"))]).within(ms(9)),
            Condition::every(ms(5)),
            Condition::unless_within(ms(2), of("T/Two")),
        ]);
        let system = system(Strategy::Rms)
            .lane_dispatch(dispatch)
            .node("frugal", [0])
            .task(
                TaskBuilder::new("chain", ms(1))
                    .subtask(step("a").output(OutputBuilder::new("count")))
                    .subtask(step("b").input(InputBuilder::new("count").from("chain.a.count"))),
            )
            .task(task("latest", 5, 1).input(InputBuilder::new("count").from("chain.a.count")))
            .task(
                TaskBuilder::triggered_by("aborted", TriggerBuilder::output("chain.a.count").every(8))
                    .deadline(ms(8))
                    .wcet(Work::from_nanos(1_000))
                    .overrun(talea_model::Overrun::Abort),
            )
            .task(
                TaskBuilder::triggered_by("every", TriggerBuilder::output("chain.a.count").every(4))
                    .deadline(ms(4))
                    .wcet(Work::from_nanos(1_000))
                    .separation(ms(3))
                    .input(InputBuilder::new("count").from("chain.a.count").each().capacity(8)),
            )
            .task(task("clock", 4, 1))
            .task(overloaded)
            .task(
                TaskBuilder::new("guarded", ms(3))
                    .sync(Synchronisation::ReleaseGuardIdle)
                    .subtask(step("c"))
                    .subtask(
                        step("d").subscription(
                            SubscriptionBuilder::new("c").when(
                                Condition::all(Collect::First, [of("T/One"), of("T/Two")]).within(ms(9)),
                            ),
                        ),
                    ),
            )
            // Their first events come while allocations are counted.
            .channel("c", QosSettings::new().max_events(2).timeout(ms(2)))
            .task(
                task("pushing", 2, 1)
                    .phase(ms(8))
                    .event(PublicationBuilder::new("c", "T/One").field("x", FieldValues::Uniform(0, 9))),
            )
            .task(
                task("pushes-too", 3, 1)
                    .phase(ms(8))
                    .event(PublicationBuilder::new("c", "T/Two").timeout(ms(1))),
            )
            .task(taking(
                "alone",
                SubscriptionBuilder::new("c").types(["T/One"]).filter("x < 5 and $priority >= 0 or x > 7"),
            ))
            .task(taking(
                "joint",
                SubscriptionBuilder::new("c")
                    .when(Condition::all(Collect::Latest, [of("T/One"), of("T/Two")])),
            ))
            .task(taking("nested", SubscriptionBuilder::new("c").when(nested)))
            .task(
                TaskBuilder::triggered_by("together", SubscriptionBuilder::new("c"))
                    .deadline(ms(50))
                    .subtask(step("e"))
                    .subtask(step("f").after([""; 0])),
            )
            .task(taking("apart", SubscriptionBuilder::new("c")).separation(ms(4)))
            .task(task("skipping", 7, 9).overrun(talea_model::Overrun::SkipNext))
            .build()
            .expect("a system");
        let switch = |ports: &mut Ports<'_>| {
            let count = ports.output_of::<u64>("count", OutputKind::any().plain(), || 0);
            move |context: &JobContext<'_>| {
                let (_, _) = (context.laxity(), context.aborted());
                match context.instance() {
                    5 => COUNTING.store(true, Ordering::Relaxed),
                    60.. => COUNTING.store(false, Ordering::Relaxed),
                    _ => {}
                }
                counted::ran(context.instance());
                context.set(count, context.instance());
            }
        };
        let run = || {
            let missed = Arc::new(AtomicU64::new(0));
            let misses = Arc::clone(&missed);
            let read = move |ports: &mut Ports<'_>| {
                let count = ports.input::<u64>("count");
                move |context: &JobContext<'_>| match context.get(count) {
                    Some(count) => assert_eq!(*count, context.instance()),
                    None => _ = misses.fetch_add(1, Ordering::Relaxed),
                }
            };
            let operations =
                Operations::synthetic().with_ports("chain.a", switch).with_ports("chain.b", read);
            // A log is kept, so everything between the jobs is recorded as well.
            let options = RunOptions { keep_values: kept.clone(), ..options(RtMode::Warn, 0) };
            let ran = run_until(&system, operations, options, ended("chain.a", 61));
            assert!(ran.position(Event::COMPLETE, "chain.a", 5).is_some(), "the counting was on");
            assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 0, "{dispatch}, {kept:?}");
            assert_eq!(ran.count(Event::VALUE, "chain.a") > 0, *kept == KeptOutputs::All);
            // A job whose event had expired when it began took nothing, which is kept as well.
            assert_eq!(
                ran.count(Event::VALUE, "alone") > 0,
                *kept == KeptOutputs::All && ran.count(Event::START, "alone") > 0
            );
            assert_eq!(
                ran.count(Event::PUSH_KEPT, "pushing") > 0,
                *kept == KeptOutputs::All && ran.count(Event::PUSH, "pushing") > 0
            );
            assert_eq!(ran.outcome.mishaps.panics, []);
            // What a long stall of the machine leaves no room for is told.
            let lost = &ran.outcome.mishaps.lost_values;
            let of_input = lost.iter().filter(|lost| lost.input == "chain.b.count");
            let told = of_input.map(|lost| lost.dropped + lost.overtaken).sum::<u64>();
            assert!(missed.load(Ordering::Relaxed) <= told, "{missed:?} jobs without a value, {told} told");
            ran
        };
        // Where the machine stalls, events have expired when the jobs begin that they release, or come before allocations are counted.
        let has_events = |ran: &Ran| {
            let counted = ran.position(Event::COMPLETE, "chain.a", 5);
            ran.position(Event::PUSH, "pushing", 0) > counted && ran.count(Event::DELIVER, "alone") > 0
        };
        run_given(run, has_events);
    }
}

/// By a thread of the program and by operations, into another lane and the own one, also where there is no room, and where it is recorded so that it can be
/// replayed.
#[test]
fn posting_does_not_allocate() {
    use super::posting::{post_first, posting, run_beside};
    use talea_model::Criticality;
    use talea_runtime::{Declaration, NotPosted, PostedOperation};
    allocations_are_counted();
    let kept = [KeptOutputs::None, KeptOutputs::All];
    let dispatches = [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive];
    for (keep_values, dispatch) in kept.iter().flat_map(|kept| dispatches.map(|dispatch| (kept, dispatch))) {
        let node = system(Strategy::Criticality).lane_dispatch(dispatch).node("frugal", [0]);
        let system = node
            .task(task("high", 10, 1).criticality(Criticality::High))
            .task(task("low", 10, 1).criticality(Criticality::Low))
            .build()
            .expect("a system");
        let options = RunOptions { keep_values: keep_values.clone(), ..posting(RtMode::Warn) };
        let (ran, refused) = run_beside(&system, (Operations::synthetic(), options), |dispatcher| {
            let both = [Criticality::High, Criticality::Low].map(|criticality| {
                let name = format!("echo {criticality}");
                let declaration = Declaration::new(&name, ms(5)).criticality(criticality);
                dispatcher.declare(declaration, |_| ()).expect("there is room")
            });
            let relay = Declaration::new("relay", ms(5)).criticality(Criticality::Low);
            let post = move |context: &JobContext<'_>| {
                let post = |operation: PostedOperation| _ = context.post(operation, context.handle());
                both.into_iter().for_each(post);
            };
            let relay = dispatcher.declare(relay, post).expect("there is room");
            let post = move || {
                let mut poster = dispatcher.poster().expect("there are two");
                post_first(&mut poster, relay, 0);
                COUNTING.store(true, Ordering::Relaxed);
                let post = |payload: &u64| poster.post(relay, *payload) == Err(NotPosted::Full);
                let refused = (1..2_000).filter(post).count();
                COUNTING.store(false, Ordering::Relaxed);
                refused
            };
            let thread = std::thread::Builder::new().name("post:frugal".into());
            thread.spawn(post).expect("a thread").join().expect("it posts without a panic")
        });
        assert_eq!(ALLOCATIONS.swap(0, Ordering::Relaxed), 0, "{dispatch}");
        assert_eq!(ran.count(Event::POST) > 0, *keep_values == KeptOutputs::All);
        let rows = ran.outcome.report.tasks.iter();
        let skipped = rows.filter(|task| task.name == "relay").map(|task| task.skipped).sum::<u64>();
        assert_eq!(skipped, refused as u64);
    }
}

/// What a channel of the program hands on, and what its consumer pushes, in runs that can be replayed: structured events and others, alone and several at once.
#[test]
fn keeping_the_events_of_a_programs_channel_does_not_allocate() {
    use super::posting::{posting, run_beside};
    use talea_notification::{
        Collect, Condition, Content, Event as Pushed, EventChannelFactory, EventPool, EventType, Header,
        Outcome, StructuredEvent,
    };
    use talea_runtime::{Declaration, PostingRoom};
    #[derive(Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
    struct Number(u64);
    impl Content for Number {}
    allocations_are_counted();
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let node = system(Strategy::Rms).lane_dispatch(dispatch).node("frugal", [0]);
        let system = node.task(task("only", 10, 1)).build().expect("a system");
        let room = PostingRoom { operations: 2, jobs: 8, posters: 2 };
        let options = RunOptions { keep_values: KeptOutputs::All, posting: room, ..posting(RtMode::Warn) };
        let (ran, ()) = run_beside(&system, (Operations::synthetic(), options), |dispatcher| {
            let factory = EventChannelFactory::new();
            let channel = factory.create_with_defaults("channel");
            let types = ["A", "B", "C"].map(|name| EventType::new("T", name));
            let kind = OutputKind::<Number>::any().serialized();
            types.iter().for_each(|of| channel.carries(of, &kind).expect("it has bytes"));
            let supplier =
                |name: &str| channel.supplier(name).offer(types.clone()).connect().expect("there is room");
            let of = |name: &str| Condition::Types([format!("T/{name}").parse().expect("a pattern")].into());
            let (tell, told) = std::sync::mpsc::sync_channel(64);
            let mut relay = supplier("relay");
            let mut pool = EventPool::new(64, &types[2], Number::default);
            let both = channel.consumer("both").when(Condition::all(Collect::First, [of("A"), of("S")]));
            let both = both.lane(Declaration::new("both", ms(5)).lane(0).wcet(Work::from_micros(50)));
            let both = both.connect_with_job(move |delivery, job| {
                let mut loan = pool.loan().expect("there are more than wait");
                loan.content().0 = delivery.number();
                relay.push(job, &loan.done()).expect("it is taken");
                Outcome::Ok
            });
            let log = channel.consumer("log").subscribe(["T/C".parse().expect("a pattern")]);
            let log = log.lane(Declaration::new("log", ms(5)).lane(0).wcet(Work::from_micros(50)));
            let log = log.connect(move |delivery| {
                tell.send(delivery.number()).expect("heard");
                Outcome::Ok
            });
            let _consumers = [both, log].map(|consumer| consumer.expect("it can be connected"));
            factory.bind(dispatcher.workplace().expect("there are two")).expect("it can be bound");
            let event = Pushed::new(Header::new(types[0].clone()), Number(7));
            let fields = [("number", 5i64)].into_iter().collect();
            let said = StructuredEvent::new("T", "S", "said").with_filterable_data(fields);
            let said = Pushed::structured(said.with_remainder_of_body("rest")).expect("sound");
            let (mut outside, mut poster) =
                (supplier("outside"), dispatcher.poster().expect("there are two"));
            let mut hand = || {
                outside.push(&mut poster, &event).expect("it is taken");
                outside.push(&mut poster, &said).expect("it is taken");
                told.recv_timeout(std::time::Duration::from_secs(10)).expect("it is handed on");
            };
            // Whatever is prepared by the first.
            (0..20).for_each(|_| hand());
            COUNTING.store(true, Ordering::Relaxed);
            (0..200).for_each(|_| hand());
            COUNTING.store(false, Ordering::Relaxed);
        });
        assert_eq!(ALLOCATIONS.swap(0, Ordering::Relaxed), 0, "{dispatch}");
        assert!(ran.count(Event::VALUE) > 400 && ran.count(Event::PUSH_KEPT) > 200);
        assert_eq!(ran.outcome.mishaps.values_unkept, 0);
    }
}

/// By a descriptor that becomes ready and by calls of the program, as fast as separations allow, in the lanes of both kinds.
#[test]
fn releases_from_outside_do_not_allocate() {
    const TIMES: u64 = 100;
    allocations_are_counted();
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let external = |name: &str| {
            TaskBuilder::external(name, ms(1)).burst(2).deadline(ms(50)).wcet(Work::from_nanos(20_000))
        };
        let node = system(Strategy::Rms).lane_dispatch(dispatch).node("frugal", [0]);
        let system = node.task(external("ready")).task(external("called")).build().expect("a system");
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let [ready, called] = [0; 2].map(|_| Arc::new(AtomicU64::new(0)));
        let (readies, calls) = (Arc::clone(&ready), Arc::clone(&called));
        let operations = Operations::synthetic()
            .with_ports("ready", move |ports| {
                let outside = ports.descriptor(1);
                move |job: &JobContext<'_>| {
                    assert_eq!(job.read(outside, &mut [0; 1]), Ok(1), "it is ready");
                    readies.fetch_add(1, Ordering::Release);
                }
            })
            .with("called", move |_: &JobContext<'_>| _ = calls.fetch_add(1, Ordering::Release));
        let _alone = alone();
        // What is read is kept, too.
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let (keep_log, keep_values) = (Some(log.clone()), KeptOutputs::All);
        let options = RunOptions { keep_log, keep_values, ..options(RtMode::Warn, 60_000) };
        let prepared = Executive::prepare(&system, operations, options).expect("prepared");
        prepared.descriptor("ready", reader).expect("a pipe can be waited for");
        let mut trigger = prepared.trigger("called").expect("it is external");
        let stop = prepared.stop_handle();
        let running = std::thread::spawn(move || prepared.run().expect("it runs"));
        let outside = move || {
            for time in 1..=TIMES {
                // The first ones until the run has begun, and everything has been used once.
                COUNTING.store(time > 5, Ordering::Relaxed);
                rustix::io::write(&writer, b"x").expect("there is room");
                while trigger.fire().is_err() {
                    std::thread::yield_now();
                }
                while ready.load(Ordering::Acquire) < time || called.load(Ordering::Acquire) < time {
                    std::thread::yield_now();
                }
            }
            COUNTING.store(false, Ordering::Relaxed);
            // A pipe that nobody writes to any more is ready, too.
            writer
        };
        let thread = std::thread::Builder::new().name("out:frugal".into());
        let _writer = thread.spawn(outside).expect("a thread").join().expect("it does not panic");
        stop.stop();
        let outcome = running.join().expect("no thread panics");
        assert_eq!(ALLOCATIONS.swap(0, Ordering::Relaxed), 0, "{dispatch}");
        let kept = records_of(&log).iter().filter(|record| record.event == Event::VALUE).count();
        assert_eq!(kept as u64 + outcome.mishaps.values_unkept, TIMES);
        assert!(
            outcome.report.tasks.iter().all(|task| task.completed == TIMES),
            "{:?}",
            outcome.report.tasks
        );
    }
}

/// Without this the test would also pass if nothing were counted.
fn allocations_are_counted() {
    let allocating = |context: &JobContext<'_>| {
        COUNTING.store(true, Ordering::Relaxed);
        std::hint::black_box(vec![context.instance()]);
        COUNTING.store(false, Ordering::Relaxed);
    };
    let system =
        system(Strategy::Edf).node("frugal", [0]).task(task("job", 10_000, 1)).build().expect("a system");
    let operations = Operations::synthetic().with("job", allocating);
    let _ = run_until(&system, operations, options(RtMode::Off, 0), ended("job", 0));
    assert!(ALLOCATIONS.swap(0, Ordering::Relaxed) > 0);
}

/// A run of these tables on the node "frugal", in which nothing may be allocated between the 10th and the 70th job of the thread "v-frugal".
fn run_frugally(cpu: u16, tables: &str) -> Ran {
    let text = format!("[system]\nname = \"h\"\n[[node]]\nname = \"frugal\"\ncpus = [{cpu}]\n{tables}");
    let parsed = talea_model::parse("h.toml", &text, std::path::Path::new(".")).expect("a system");
    let system = parsed.system.with_threads_as_tasks();
    let mut over = ended("v-frugal", 80);
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), move |job| {
        if job.operation == "v-frugal" {
            DISPATCHERS.store((10..70).contains(&job.instance), Ordering::Relaxed);
        }
        over(job)
    });
    assert!(ran.count(Event::COMPLETE, "v-frugal") > 60);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 0, "{tables}");
    ran
}

/// A chain in a high lane, and what is aborted in a low one.
const JOBS: &str = "[[task]]\nname = \"chain\"\nperiod = \"5ms\"\ncriticality = \"high\"\n\
    [[task.subtask]]\nname = \"a\"\nwcet = \"200us\"\n[[task.subtask]]\nname = \"b\"\nwcet = \"200us\"\n\
    [[task]]\nname = \"late\"\nperiod = \"7ms\"\ncriticality = \"low\"\noverrun = \"abort\"\nwcet = \"4ms\"\n";

/// Arrivals, decisions, records and monitors of a hierarchy, and of lanes in it.
#[test]
fn dispatching_for_a_hierarchy_does_not_allocate() {
    let Some((_alone, at)) = crate::programs::stage(1) else { return };
    let tables = format!(
        "[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
         [[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\nunder = [{{ scheduler = \"FP\", priority = 2 }}]\n\
         [[scheduler]]\nname = \"J\"\nkind = \"join\"\nunder = [{{ scheduler = \"RES\", guarantee = \"RESBH 5ms 20ms\" }}, \
         {{ scheduler = \"FP\", priority = 1 }}]\n\
         [[scheduler]]\nname = \"PS\"\nkind = \"proportional-share\"\nquantum = \"2ms\"\nunder = [{{ scheduler = \"J\" }}]\n\
         [[thread]]\nname = \"v-frugal\"\nwork = {{ burst = \"1ms\", period = \"10ms\" }}\n\
         under = [{{ scheduler = \"RES\", guarantee = \"RESBH 2ms 10ms\" }}]\n\
         [[thread]]\nname = \"a-frugal\"\nwork = \"cpu-bound\"\nunder = [{{ scheduler = \"PS\", share = 1 }}]\n\
         [[thread]]\nname = \"b-frugal\"\nwork = \"cpu-bound\"\nrequires = \"PSBE 0.1 100ms\"\n\
         under = [{{ scheduler = \"PS\", share = 2 }}]\n\
         [[scheduler]]\nname = \"lanes\"\nkind = \"lanes\"\nunder = [{{ scheduler = \"RES\", guarantee = \"RESBH 4ms 10ms\" }}]\n{JOBS}"
    );
    let ran = run_frugally(at.cpus[0], &tables);
    assert!(ran.count(Event::COMPLETE, "chain.b") > 60 && ran.count(Event::ABORT, "late") > 0);
    assert!(
        ran.outcome.report.hierarchies[0].edges.iter().any(|edge| edge.judged > Some(0)),
        "monitors judged"
    );
}

/// Bursts and jobs of lanes that ask for time constraints, are accepted and refused, and end them.
#[test]
fn asking_for_time_constraints_does_not_allocate() {
    let Some((_alone, at)) = crate::programs::stage(1) else { return };
    for kind in ["rialto", "spring"] {
        let mut tables = format!(
            "[[scheduler]]\nname = \"S\"\nkind = \"{kind}\"\nquantum = \"2ms\"\n\
             [[scheduler]]\nname = \"lanes\"\nkind = \"lanes\"\nunder = [{{ scheduler = \"S\" }}]\n{JOBS}"
        );
        for (name, burst, period) in [("v", 1, 10), ("w", 2, 15), ("x", 6, 20), ("y", 9, 30), ("z", 12, 40)] {
            tables += &format!(
                "[[thread]]\nname = \"{name}-frugal\"\nwork = {{ burst = \"{burst}ms\", period = \"{period}ms\" }}\n\
                 under = [{{ scheduler = \"S\" }}]\n"
            );
        }
        let ran = run_frugally(at.cpus[0], &tables);
        assert!(ran.count(Event::COMPLETE, "chain.b") > 20 && ran.count(Event::ABORT, "late") > 0, "{kind}");
    }
}
