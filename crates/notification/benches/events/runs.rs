//! Runs whose jobs push events to a consumer.

use super::{BATCH, Words, event, pattern};
use rustix::thread::futex::{self, Flags};
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use talea_linux::affinity;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{self, Policy};
use talea_linux::thread::spawn;
use talea_measure::Samples;
use talea_model::{Criticality, Strategy, System, TaskBuilder};
use talea_notification::qos::QosSettings;
use talea_notification::{AdminProperties, Delivery, EventChannelFactory, EventType, Outcome, Supplier};
use talea_operation::{Declaration, JobContext, Operations};
use talea_runtime::{Executive, PostingRoom, RtMode, RunOptions};
use talea_time::{Clock, Duration, Instant, Work};

/// Where the job that pushes finds its supplier.
type SupplierSlot = Arc<Mutex<Option<Supplier>>>;

/// A run of a job every 2 ms, `jobs` of them, which calls `push`, beside a consumer that `consume` is called of in the lane of `work`.
fn run(
    system: &System,
    push: impl FnMut(&JobContext<'_>) + Send + 'static,
    supplier: &SupplierSlot,
    work: Declaration,
    (jobs, consume): (u64, impl FnMut(&Delivery) -> Outcome + Send + 'static),
) {
    let posting = PostingRoom { operations: 1, jobs: 128, posters: 1 };
    let length = Duration::from_millis(2 * jobs as i64);
    let options = RunOptions { posting, rt: RtMode::Warn, duration: Some(length), ..RunOptions::default() };
    let prepared = Executive::prepare(system, Operations::synthetic().with("push", push), options);
    let prepared = prepared.expect("the run can be prepared");
    let workplace = prepared.dispatcher().workplace().expect("there is a poster");
    let factory = EventChannelFactory::on(workplace);
    let channel = factory.create("bench", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let consumer = channel.consumer("c").subscribe([pattern("Tick")]).lane(work).connect(consume);
    let _consumer = consumer.expect("connected");
    let offered = channel.supplier("s").offer([EventType::new("Bench", "Tick")]);
    *supplier.lock().expect("whole") = Some(offered.connect().expect("connected"));
    prepared.run().expect("it runs");
    supplier.lock().expect("whole").take();
}

/// A run whose jobs push events to a consumer of their own lane, which is called in their midst. Each job pushes a batch.
pub fn in_the_midst(jobs: u64) -> Samples {
    let samples = Arc::new(Mutex::new(Samples::new()));
    let supplier: Arc<Mutex<Option<Supplier>>> = Arc::default();
    let (own, slot, called) = (Arc::clone(&samples), Arc::clone(&supplier), Arc::new(AtomicU64::new(0)));
    let (calls, tick) = (Arc::clone(&called), event("Tick"));
    let push = move |job: &JobContext<'_>| {
        let mut slot = slot.lock().expect("whole");
        let Some(supplier) = slot.as_mut() else { return };
        let (begin, before) = (MonotonicClock.now(), calls.load(Ordering::Relaxed));
        (0..BATCH).for_each(|_| _ = supplier.push(job, &tick).expect("pushed"));
        let took = MonotonicClock.now() - begin;
        // What was not called at once waited for something more urgent.
        if calls.load(Ordering::Relaxed) - before == u64::from(BATCH) {
            own.lock().expect("whole").add_batch(took, BATCH);
        }
    };
    let task = TaskBuilder::new("push", Duration::from_millis(2)).wcet(Work::from_millis(1));
    let system = System::builder("bench").strategy(Strategy::Edf).node("n", [0]).task(task);
    let system = system.build().expect("sound");
    let sum = Arc::clone(&called);
    let consume = move |delivery: &Delivery| {
        black_box(delivery.event().content::<Words>().expect("words").0[0]);
        sum.fetch_add(1, Ordering::Relaxed);
        Outcome::Ok
    };
    run(&system, push, &supplier, Declaration::new("c", Duration::from_millis(100)), (jobs, consume));
    std::mem::replace(&mut *samples.lock().expect("whole"), Samples::new())
}

/// Wakes a thread above all lanes that does nothing but note when.
struct Bare {
    word: AtomicU32,
    woken_ns: AtomicI64,
}

impl Bare {
    const END: u32 = u32::MAX;

    fn wait(&self) {
        let mut seen = 0;
        while seen != Bare::END {
            // An error means that the word has changed already or a signal came: both are looked at.
            _ = futex::wait(&self.word, Flags::PRIVATE, seen, None);
            let now = MonotonicClock.now();
            if self.word.load(Ordering::Relaxed) != seen {
                seen = self.word.load(Ordering::Relaxed);
                self.woken_ns.store(now.as_nanos(), Ordering::Relaxed);
            }
        }
    }

    fn wake(&self, word: u32) {
        self.word.store(word, Ordering::Relaxed);
        _ = futex::wake(&self.word, Flags::PRIVATE, 1);
    }
}

/// How long from a bare wake-up, and from a push, to the first instruction of who is above the job that does it; each job does both. None where
/// real-time priorities are not permitted.
pub fn another_lane(jobs: u64) -> Option<[Samples; 2]> {
    const TOP: Policy = Policy::Fifo(98);
    let permitted = std::thread::spawn(|| sched::set_self(TOP)).join().expect("asking does not panic");
    if let Err(error) = permitted {
        eprintln!("not measured, {}: {error}", super::OTHER_LANE);
        return None;
    }
    let cpu = affinity::allowed().expect("the CPUs of this process can be read")[0];
    let bare = Arc::new(Bare { word: AtomicU32::new(0), woken_ns: AtomicI64::new(0) });
    let own = Arc::clone(&bare);
    let sleeper = spawn("bare", TOP, &[cpu], 256 * 1024, move || own.wait()).expect("the policy was tried");
    let both: Arc<Mutex<[Samples; 2]>> = Arc::new(Mutex::new([Samples::new(), Samples::new()]));
    let supplier = SupplierSlot::default();
    let called_ns = Arc::new(AtomicI64::new(0));
    let (own, slot, called, waker, tick) =
        (Arc::clone(&both), Arc::clone(&supplier), Arc::clone(&called_ns), Arc::clone(&bare), event("Tick"));
    let mut number = 0;
    let push = move |job: &JobContext<'_>| {
        let mut slot = slot.lock().expect("whole");
        let Some(supplier) = slot.as_mut() else { return };
        let mut both = own.lock().expect("whole");
        let mut note = |which: usize, begin: Instant, there: &AtomicI64| {
            // Who was not above, or was late, is no sample.
            let there = Instant::from_nanos(there.load(Ordering::Relaxed));
            if there > begin {
                both[which].add(there - begin);
            }
        };
        number += 1;
        let mut wake = || {
            let begin = MonotonicClock.now();
            waker.wake(number);
            note(0, begin, &waker.woken_ns);
        };
        if number % 2 == 0 {
            wake();
        }
        let begin = MonotonicClock.now();
        supplier.push(job, &tick).expect("pushed");
        let end = called.load(Ordering::Relaxed);
        if number % 2 == 1 {
            wake();
        }
        note(1, begin, &AtomicI64::new(end));
    };
    let task = |name, period, criticality| {
        TaskBuilder::new(name, period).criticality(criticality).wcet(Work::from_micros(100))
    };
    let system = System::builder("bench")
        .strategy(Strategy::Criticality)
        .node("n", [cpu])
        .task(task("push", Duration::from_millis(2), Criticality::Low))
        .task(task("above", Duration::from_secs(60), Criticality::VeryHigh));
    let system = system.build().expect("sound");
    let work = Declaration::new("c", Duration::from_millis(100)).criticality(Criticality::VeryHigh);
    let consume = move |_: &Delivery| {
        called_ns.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
        Outcome::Ok
    };
    run(&system, push, &supplier, work, (jobs, consume));
    bare.wake(Bare::END);
    sleeper.join().expect("it does not panic");
    Some(std::mem::replace(&mut *both.lock().expect("whole"), [Samples::new(), Samples::new()]))
}
