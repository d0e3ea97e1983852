//! Simulated runs of operations that read from outside, where nothing is, replayed.

use crate::{recorded, replayed};
use talea_model::{OutputBuilder, OutsideArrivals, Strategy, System, TaskBuilder};
use talea_operation::{JobContext, KeptOutputs, NotRead, Operations, OutputKind};
use talea_record::event::{Value, ValueLost};
use talea_record::{Record, ValueLoss};
use talea_time::{Duration, Work};

const UNTIL: i64 = 200;

fn system() -> System {
    let task = |name: &str| {
        TaskBuilder::external(name, Duration::from_nanos(9))
            .arrivals(OutsideArrivals::Periodic { period: Duration::from_nanos(11), jitter: Duration::ZERO })
            .deadline(Duration::from_nanos(40))
            .wcet(Work::from_nanos(2))
            .output(OutputBuilder::new("out"))
    };
    System::builder("reading")
        .strategy(Strategy::Edf)
        .task(task("one"))
        .task(task("two"))
        .build()
        .expect("sound")
}

/// Each job asks as often as `times` says, with a buffer of `room` bytes, and publishes what it was answered.
fn operations(times: u64, room: usize) -> Operations {
    ["one", "two"].into_iter().fold(Operations::synthetic(), |operations, name| {
        operations.with_ports(name, move |ports| {
            let outside = ports.descriptor(8);
            let out = ports.output_of::<u64>("out", OutputKind::any().plain(), || 0);
            move |job: &JobContext<'_>| {
                let mut buffer = vec![0; room];
                let asked =
                    (0..times).filter(|_| job.read(outside, &mut buffer) == Err(NotRead::NoDescriptor));
                job.set(out, asked.count() as u64);
            }
        })
    })
}

fn is_read(record: &Record) -> bool {
    Value::read(record).is_some_and(|value| value.output.is_none())
}

#[test]
fn jobs_are_told_again_that_nothing_is_there() {
    let system = system();
    let run = recorded(&system, operations(2, 8), UNTIL, &KeptOutputs::All);
    let ended = run.1.iter().filter(|record| record.event == talea_record::Event::COMPLETE).count();
    assert_eq!(run.1.iter().filter(|record| is_read(record)).count(), ended);
    let same = replayed(&system, &run, operations(2, 8));
    assert_eq!((&same.first, same.unknown(), same.outside), (&None, 0, 0));
    assert!(same.compared() > 10, "{same:?}");
    // Asking less is a difference of the code; who asks otherwise is answered something that proves nothing.
    let less = replayed(&system, &run, operations(1, 8));
    assert_eq!((less.differing(), less.unknown()), (same.compared(), 0));
    let more = replayed(&system, &run, operations(3, 8));
    assert_eq!(
        (more.compared(), more.differing()),
        (same.compared(), 0),
        "what is beyond is answered, and not as then"
    );
    let shorter = replayed(&system, &run, operations(1, 4));
    assert_eq!((shorter.differing(), shorter.unknown()), (0, same.compared()));
}

/// Of one that reads more often than there is room for, and of one whose record is lost, nothing is known.
#[test]
fn what_was_read_and_is_not_recorded_proves_nothing() {
    let system = system();
    let run = recorded(&system, operations(20, 8), UNTIL, &KeptOutputs::All);
    let too_long = |record: &Record| {
        ValueLost::read(record)
            .is_some_and(|lost| lost.output.is_none() && lost.cause.known() == Some(ValueLoss::TooLong))
    };
    assert!(run.1.iter().any(too_long) && !run.1.iter().any(is_read));
    let report = replayed(&system, &run, operations(20, 8));
    assert!(report.first.is_none() && report.unknown() > 10 && report.compared() == 0, "{report:?}");

    let (metadata, mut records) = recorded(&system, operations(2, 8), UNTIL, &KeptOutputs::All);
    let lost = records.iter().position(is_read).expect("it is kept");
    let operation = records[lost].job().operation;
    records.remove(lost);
    let report = replayed(&system, &(metadata, records), operations(2, 8));
    let row = &report.outputs[operation.index()];
    assert!(report.first.is_none() && row.unknown == 1, "{report:?}");
}

/// Without what it read, an operation is not called; by name it is kept.
#[test]
fn what_an_operation_reads_is_kept_by_its_name() {
    let system = system();
    let kept = KeptOutputs::Named(vec!["one".into(), "one.out".into(), "two.out".into()]);
    let run = recorded(&system, operations(2, 8), UNTIL, &kept);
    let report = replayed(&system, &run, operations(2, 8));
    assert_eq!(report.outputs.iter().map(|row| row.is_outside).collect::<Vec<_>>(), [false, true]);
    assert!(report.first.is_none() && report.outputs[0].compared > 5 && report.outside > 5, "{report:?}");
}
