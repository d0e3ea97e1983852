//! Handing a value to a successor in the same lane: what a run does around the code of the two jobs, with values and without. Code does
//! nothing but touch a word of the value, so that what is left is the price of the ports.

use super::Effort;
#[cfg(feature = "peers")]
use super::copper::CopperLists;
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use talea_linux::clock::MonotonicClock;
use talea_measure::{Report, Role, Samples};
use talea_model::{InputBuilder, OutputBuilder, SubtaskBuilder, System, TaskBuilder};
use talea_operation::{EventNote, JobServices, Moment, NotPosted, Operation, Operations, Posted, Stamp};
use talea_policy::job::Job;
use talea_time::{Clock, Duration, Instant, Work};

const GROUP: &str = "a job and its successor, code that does nothing (per pair)";
const BATCH: u32 = 256;

/// A value of `N` words.
#[derive(Clone, Copy)]
struct Words<const N: usize>([u64; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Words([0; N])
    }
}

/// Nobody asks.
struct Nobody;

impl JobServices for Nobody {
    fn clock(&self) -> Instant {
        Instant::ZERO
    }

    fn is_to_stop(&self) -> bool {
        false
    }

    fn post(&self, _posted: Posted) -> Result<u64, NotPosted> {
        Err(NotPosted::NotRunning)
    }

    fn note(&self, _note: EventNote, _at: Instant) {}
}

/// A task of two subtasks.
fn pair(with_values: bool) -> System {
    let step = |name| SubtaskBuilder::new(name).wcet(Work::from_nanos(1_000));
    let (first, second) = (step("first"), step("second"));
    let (first, second) = match with_values {
        true => {
            let input = InputBuilder::new("value").from("pair.first.value");
            (first.output(OutputBuilder::new("value")), second.input(input))
        }
        false => (first, second),
    };
    let task = TaskBuilder::new("pair", Duration::from_millis(1)).subtask(first).subtask(second);
    System::builder("pair").task(task).build().expect("the description is sound")
}

fn without() -> Operations {
    Operations::synthetic()
        .with("pair.first", |job| _ = black_box(job.instance()))
        .with("pair.second", |job| _ = black_box(job.instance()))
}

fn with<const N: usize>() -> Operations {
    Operations::synthetic()
        .with_ports("pair.first", |ports| {
            let value = ports.output::<Words<N>>("value");
            move |job: &talea_operation::JobContext<'_>| job.write(value).0[0] = job.instance()
        })
        .with_ports("pair.second", |ports| {
            let value = ports.input::<Words<N>>("value");
            move |job: &talea_operation::JobContext<'_>| {
                black_box(job.get(value).map(|words| words.0[0]));
            }
        })
}

/// What executing both does with the operations.
struct Pair {
    first: Operation,
    second: Operation,
    instance: u64,
}

impl Pair {
    fn new(system: &System, operations: Operations) -> Self {
        let assembled = operations.assemble(system).expect("all fits");
        let mut both = assembled.operations.into_iter().map(|operation| operation.expect("it has code"));
        let (first, second) = (both.next().expect("the first"), both.next().expect("the second"));
        Pair { first, second, instance: 0 }
    }

    fn run(&mut self) {
        let at = Instant::ZERO;
        let instance = self.instance;
        self.instance += 1;
        let job = Job { release: at, deadline: at, wcet: Work::ZERO, rank: 0, number: instance, tag: 0 };
        for operation in [&mut self.first, &mut self.second] {
            operation.take(|_| Moment { instance, as_of: Instant::MAX }, |_| ());
            operation.call(&Nobody, "", &job, at, 0);
            operation.leave(instance);
            operation.publish(Stamp { instance, visible_at: at }, |_, _| (), |_, _| ());
        }
    }
}

pub fn measure(effort: Effort, report: &mut Report) {
    let (bare, values) = (pair(false), pair(true));
    let mut plain = Pair::new(&bare, without());
    let mut small = Pair::new(&values, with::<8>());
    let mut large = Pair::new(&values, with::<8192>());
    let (sender, receiver) = sync_channel::<Words<8>>(4);
    let mut channel = Pair::new(&bare, without());
    let mut called = Pair::new(&bare, without());
    let successor: Box<dyn Fn(&Words<8>)> = Box::new(|words| _ = black_box(words.0[0]));
    let mut samples = [const { None }; 5].map(|_: Option<()>| Samples::new());
    #[cfg(feature = "peers")]
    let (mut lists, mut listed, mut through_lists) =
        (CopperLists::default(), Pair::new(&bare, without()), Samples::new());
    let time = |samples: &mut Samples, run: &mut dyn FnMut()| {
        let begin = MonotonicClock.now();
        (0..BATCH).for_each(|_| run());
        samples.add_batch(MonotonicClock.now() - begin, BATCH);
    };
    for _ in 0..effort.repetitions * effort.batches {
        time(&mut samples[0], &mut || plain.run());
        time(&mut samples[1], &mut || small.run());
        time(&mut samples[2], &mut || large.run());
        time(&mut samples[3], &mut || {
            channel.run();
            sender.send(Words([1; 8])).expect("somebody listens");
            black_box(receiver.recv().expect("it was sent").0[0]);
        });
        time(&mut samples[4], &mut || {
            called.run();
            black_box(&successor)(&Words([called.instance; 8]));
        });
        #[cfg(feature = "peers")]
        time(&mut through_lists, &mut || {
            listed.run();
            lists.hand_over(listed.instance);
        });
    }
    let [plain, small, large, channel, called] = samples;
    let more = |samples: &Samples| format!("+{:.1} ns", samples.ns(0.5) - plain.ns(0.5));
    let notes = [&small, &large, &channel, &called].map(more);
    let [of_small, of_large, of_channel, of_called] = notes;
    #[cfg(feature = "peers")]
    let of_lists = more(&through_lists);
    report.add(GROUP, "no values", Role::Floor, plain);
    report.add_with_note(GROUP, "a value of 64 bytes", Role::Subject, small, of_small);
    report.add_with_note(GROUP, "a value of 64 KiB, one word of it written", Role::Subject, large, of_large);
    report.add_with_note(GROUP, "64 bytes through std::sync::mpsc, bounded", Role::Peer, channel, of_channel);
    report.add_with_note(
        GROUP,
        "64 bytes to a boxed closure that is called in place",
        Role::Peer,
        called,
        of_called,
    );
    #[cfg(feature = "peers")]
    report.add_with_note(GROUP, "64 bytes through a list of Copper", Role::Peer, through_lists, of_lists);
}
