//! Work that no description has: its jobs are numbered as they are posted, by several threads at a time, and each has a deadline
//! of its own.

use std::convert::Infallible;
use talea_insight::explain::{Outcome, Question, Subject, Which, explain};
use talea_insight::*;
use talea_record::*;
use talea_samples::{at, job, metadata, ms, run_event};
use talea_time::Duration;

/// Of [`with_posted`].
const ALARM: usize = 3;

/// The metadata, and a posted operation `alarm` in the lower lane.
pub(super) fn with_posted() -> Metadata {
    let mut metadata = metadata();
    metadata.reserve_posted(1);
    let (mut entry, mut task) = (metadata.operations[ALARM].clone(), metadata.tasks[2].clone());
    (entry.name, entry.lane, task.name) = ("alarm".into(), 1, "alarm".into());
    metadata.define(&Definition::Operation { number: ALARM, entry, task });
    metadata
}

/// A record of a job that was posted and is due at these milliseconds.
fn alarm(event: Event, time_ms: i64, number: u64, [posted, due]: [i64; 2]) -> Record {
    job(event, ms(time_ms), ALARM, number, [ms(posted), ms(due)], 0)
}

fn accounted(records: &[Record], end_ms: i64) -> Report {
    let mut accounting = Accounting::new(&with_posted(), Duration::from_millis(100));
    records.iter().for_each(|record| accounting.record(*record));
    accounting.finish(at(ms(end_ms)))
}

/// Three threads post: what took the clock first got the last number, and what is numbered 1 ends before 0 is heard of.
fn overtaking() -> Vec<Record> {
    let dates = |number: u64| [[3, 30], [2, 40], [1, 20]][number as usize];
    let told = |event, time, number| alarm(event, time, number, dates(number));
    vec![
        run_event(Event::RUN_START, ms(0)),
        told(Event::RELEASE, 1, 2),
        told(Event::RELEASE, 2, 1),
        told(Event::START, 2, 1),
        told(Event::COMPLETE, 3, 1),
        told(Event::RELEASE, 3, 0),
        told(Event::START, 3, 0),
        told(Event::COMPLETE, 35, 0),
        // Of a job that has ended nothing counts.
        told(Event::RELEASE, 35, 1),
        told(Event::START, 35, 2),
        told(Event::COMPLETE, 36, 2),
        run_event(Event::RUN_END, ms(50)),
    ]
}

#[test]
fn jobs_count_in_whatever_order_they_were_posted() {
    let report = accounted(&overtaking(), 50);
    let row = report.tasks.iter().find(|task| task.name == "alarm").expect("it was defined");
    assert_eq!((row.offered, row.released, row.completed), (3, 3, 3));
    assert_eq!((row.met, row.missed, row.unfinished), (1, 2, 0));
    assert_eq!(row.worst_lateness_ns, Some(16_000_000));
}

#[test]
fn jobs_that_are_overtaken_are_explained() {
    let metadata = with_posted();
    let records = overtaking();
    let of = |number| {
        let which = Which::This(Subject::Instance { task: 2, number });
        explain(&metadata, Question { which, task: None, limit: 1 }, |sink: &mut dyn Sink| {
            records.iter().for_each(|record| sink.record(*record));
            Ok::<(), Infallible>(())
        })
        .expect("it tells enough")
    };
    for (number, outcome, response_ms) in
        [(0, Outcome::Missed, 32), (1, Outcome::Met, 1), (2, Outcome::Missed, 35)]
    {
        let answer = of(number);
        let one = &answer.list[0];
        assert_eq!(one.outcome, outcome, "{number}");
        assert_eq!((one.end - one.arrival).as_nanos(), response_ms * 1_000_000, "{number}");
    }
    let counts = of(0).counts;
    assert_eq!((counts.met, counts.missed), (1, 2));
}

#[test]
fn a_deadline_before_that_of_an_earlier_job_is_missed() {
    let released = |number, due| alarm(Event::RELEASE, 1, number, [1, due]);
    let records = [
        run_event(Event::RUN_START, ms(0)),
        released(0, 900_000),
        released(1, 250),
        released(2, 5),
        alarm(Event::COMPLETE, 310, 1, [1, 250]),
        run_event(Event::RUN_END, ms(320)),
    ];
    let mut accounting =
        Accounting::new(&with_posted(), Duration::from_millis(100)).with_samples(Samples::Keep);
    records.iter().for_each(|record| accounting.record(*record));
    let report = accounting.finish(at(ms(320)));
    let row = report.tasks.iter().find(|task| task.name == "alarm").expect("it was defined");
    assert_eq!((row.released, row.completed, row.missed, row.unfinished), (3, 1, 2, 1));
    let missed: Vec<_> =
        report.samples.list.iter().map(|sample| (sample.index, sample.soft_offered)).collect();
    assert_eq!(missed, [(0, 1), (2, 1)], "each in the sample in which its deadline is");
}

/// A job that was posted for an event that it takes is linked once with the job that pushed: by the event.
#[test]
fn the_event_that_a_job_was_posted_for_leads_to_it() {
    use talea_insight::flow::{Direction, Limits, Link, flow};
    use talea_record::event::{Deliver, JobOrNone, Start};

    let mut metadata = with_posted();
    let number = metadata.publications.len();
    let entry = PublicationEntry {
        name: "motion T/A".into(),
        operation: None,
        channel: "motion".into(),
        event_type: "T/A".into(),
        subscribers: Vec::new(),
        takers: Vec::new(),
        is_kept: false,
    };
    metadata.define(&Definition::Publication { number, entry });
    let id =
        |operation, instance| JobId { operation: talea_model::OperationId::from_index(operation), instance };
    let (pushing, other, taking) = (id(0, 0), id(0, 1), id(ALARM, 0));
    let start = Start { job: taking, lane: 1, depth: 1, posted_by: JobOrNone(Some(pushing)) };
    let take = |from, number_of_event| Deliver {
        job: taking,
        from: Some(from),
        publication: Some(number as u32),
        number: number_of_event,
        lane: 1,
    };
    let posted = start.at(at(ms(2)), 0);
    let [own, others] = [take(pushing, 0), take(other, 1)].map(|deliver| deliver.at(at(ms(3)), 0));
    let event = Link::Event(number);
    for (records, expected) in [
        (vec![posted], vec![(pushing, Link::Posted)]),
        (vec![posted, own], vec![(pushing, event)]),
        (vec![posted, own, others], vec![(pushing, event), (other, event)]),
        (vec![posted, others], vec![(pushing, Link::Posted), (other, event)]),
    ] {
        let replay = |sink: &mut dyn Sink| {
            records.iter().for_each(|record| sink.record(*record));
            Ok::<(), Infallible>(())
        };
        let found = flow(&metadata, (taking, Direction::Back), Limits { depth: 4, jobs: 9 }, replay);
        let steps = found.expect("it is read").steps;
        let links: Vec<_> = steps.iter().filter_map(|step| Some((step.job, step.next_to?.1))).collect();
        assert_eq!(links, expected);
    }
}
