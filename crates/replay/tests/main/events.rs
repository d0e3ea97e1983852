//! Simulated runs of drawn systems in which events release tasks, replayed: who takes events is handed what it had.

use crate::{recorded, replayed};
use proptest::prelude::*;
use proptest::sample::select;
use std::hash::{DefaultHasher, Hash, Hasher};
use talea_model::{
    Condition, LaneDispatch, OutputBuilder, PublicationBuilder, Strategy as By, SubscriptionBuilder, System,
    TaskBuilder,
};
use talea_notification::declared::{EventPorts, JobEvents};
use talea_notification::qos::QosSettings;
use talea_notification::{Content, Filterable, TimeCame};
use talea_operation::{JobContext, KeptOutputs, Operations, OutputKind, Ports};
use talea_record::Record;
use talea_time::{Duration, Work};

/// What the events carry.
#[derive(Clone, Copy, Default, Filterable)]
#[filterable(crate = "talea_notification::etcl")]
struct Count {
    number: u64,
    state: u64,
}

impl Content for Count {}

fn kind() -> OutputKind<Count> {
    OutputKind::any().encoded(
        |count, to| {
            let (number, state) = to.get_mut(..16)?.split_at_mut(8);
            number.copy_from_slice(&count.number.to_le_bytes());
            state.copy_from_slice(&count.state.to_le_bytes());
            Some(16)
        },
        |count, from| {
            let word = |place| from.get(place..place + 8)?.try_into().ok().map(u64::from_le_bytes);
            let read = word(0).zip(word(8)).filter(|_| from.len() == 16);
            read.map(|(number, state)| *count = Count { number, state }).is_some()
        },
    )
}

/// So long is simulated.
const UNTIL: i64 = 300;

const TYPES: [&str; 3] = ["T/A", "T/B", "T/C"];

fn of_type(event_type: &str) -> Condition {
    Condition::of_types([event_type.parse().expect("a pattern")])
}

#[derive(Clone, Debug)]
struct Drawn {
    /// Of the tasks that push events, one of each type.
    periods: Vec<i64>,
    /// Whether each of these is code.
    have_code: Vec<bool>,
    /// What each of the others subscribes to, and pushes when it has it.
    conditions: Vec<Condition>,
    most: u32,
    timeout: Option<Duration>,
    by: By,
    dispatch: LaneDispatch,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let condition = prop::collection::vec(0usize..1000, 64).prop_map(|numbers| {
        let mut numbers = numbers.into_iter().cycle();
        let mut draw = |below: usize| numbers.next().expect("it has no end") % below;
        let leaves: Vec<Condition> = (0..1 + draw(3)).map(|_| of_type(TYPES[draw(3)])).collect();
        talea_samples::conditions::nested(&mut draw, &leaves, Duration::from_nanos(3))
    });
    let timeout = select(vec![None, Some(Duration::from_nanos(4))]);
    (
        (prop::collection::vec(3i64..12, 3), prop::collection::vec(any::<bool>(), 3)),
        prop::collection::vec(condition, 1..4),
        (1u32..4, timeout),
        select(&[By::Edf, By::Rms, By::Mlf][..]),
        select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
    )
        .prop_map(|((periods, have_code), conditions, (most, timeout), by, dispatch)| Drawn {
            periods,
            have_code,
            conditions,
            most,
            timeout,
            by,
            dispatch,
        })
}

fn system(drawn: &Drawn) -> System {
    let qos = QosSettings::new().max_events(drawn.most);
    let mut builder =
        System::builder("drawn").strategy(drawn.by).lane_dispatch(drawn.dispatch).node("n", [0]);
    builder = builder.channel("c", qos.clone()).channel("d", qos);
    for (place, (period, event_type)) in drawn.periods.iter().zip(TYPES).enumerate() {
        let mut publication = PublicationBuilder::new("c", event_type).bytes(24).priority(place as i16);
        if let Some(timeout) = drawn.timeout {
            publication = publication.timeout(timeout);
        }
        let task = TaskBuilder::new(format!("push{place}"), Duration::from_nanos(*period));
        builder = builder.task(task.wcet(Work::from_nanos(1)).event(publication));
    }
    for (place, condition) in drawn.conditions.iter().enumerate() {
        let subscription = SubscriptionBuilder::new("c").when(condition.clone());
        let task = TaskBuilder::triggered_by(format!("take{place}"), subscription);
        let task = task.deadline(Duration::from_nanos(9 + place as i64));
        let task = task.wcet(Work::from_nanos(1 + place as i64)).output(OutputBuilder::new("out"));
        builder = builder.task(task.event(PublicationBuilder::new("d", format!("U/{place}"))));
    }
    // Handed on once more.
    let last = TaskBuilder::triggered_by("last", SubscriptionBuilder::new("d").types(["U"]));
    let last = last.deadline(Duration::from_nanos(20)).wcet(Work::from_nanos(1));
    builder.task(last.output(OutputBuilder::new("out"))).build().expect("sound")
}

/// A digest of all that the job can know of its events, and of what was before.
fn digest(state: u64, job: &JobContext<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state, job.instance(), job.started(), job.deadline()).hash(&mut hasher);
    let delivery = job.event();
    delivery.is_some().hash(&mut hasher);
    let Some(delivery) = delivery else { return hasher.finish() };
    (delivery.priority(), delivery.pushed(), delivery.expires(), delivery.number()).hash(&mut hasher);
    let of_all = delivery.event().header();
    (of_all.priority, of_all.timeout, of_all.stop, delivery.events().len()).hash(&mut hasher);
    for event in delivery.events() {
        let header = event.header();
        header.event_type.to_string().hash(&mut hasher);
        (header.priority, header.timeout, header.source).hash(&mut hasher);
        header.origin.map(|origin| (origin.operation, origin.instance)).hash(&mut hasher);
        event.content::<Count>().map(|count| (count.number, count.state)).hash(&mut hasher);
        format!("{:?}", event.variable_header()).hash(&mut hasher);
        event.content::<TimeCame>().is_some().hash(&mut hasher);
        let synthetic = event.content::<talea_notification::declared::SyntheticEvent>();
        synthetic.map(|event| &event.bytes).hash(&mut hasher);
    }
    hasher.finish()
}

fn taking(ports: &mut Ports<'_>, pushes: Option<String>) -> impl FnMut(&JobContext<'_>) + Send + use<> {
    ports.subscription();
    let out = ports.output_of::<u64>("out", OutputKind::any().plain(), Default::default);
    let events = pushes.map(|event_type| ports.publication_of::<Count>(&event_type, kind()));
    let mut state = 0;
    move |job: &JobContext<'_>| {
        state = digest(state, job);
        job.set(out, state);
        if let Some(events) = events {
            assert!(job.push(events, |count, header| {
                *count = Count { number: job.instance(), state };
                header.fields.set("state", state).expect("sound");
            }));
        }
    }
}

/// `twist` goes into what those push that have no other events.
fn operations(drawn: &Drawn, twist: u64) -> Operations {
    let mut operations = Operations::synthetic();
    for (place, event_type) in TYPES.into_iter().enumerate().filter(|(place, _)| drawn.have_code[*place]) {
        operations = operations.with_ports(&format!("push{place}"), move |ports| {
            let events = ports.publication_of::<Count>(event_type, kind());
            move |job: &JobContext<'_>| {
                let number = job.instance() + twist;
                assert!(job.push(events, |count, header| {
                    *count = Count { number, state: 0 };
                    header.source = number as u32 % 3;
                    header.fields.set("number", number).expect("sound");
                    if number.is_multiple_of(3) {
                        header.fields.set("third", vec!["of".into(), 3.into()]).expect("sound");
                    } else {
                        header.fields.remove("third");
                    }
                }));
            }
        });
    }
    for place in 0..drawn.conditions.len() {
        let pushes = format!("U/{place}");
        operations = operations.with_ports(&format!("take{place}"), move |ports| taking(ports, Some(pushes)));
    }
    operations.with_ports("last", |ports| taking(ports, None))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn who_takes_events_is_handed_what_it_had(drawn in drawn(), twist in 1u64..9) {
        let system = system(&drawn);
        let run = recorded(&system, operations(&drawn, 0), UNTIL, &KeptOutputs::All);
        let completed = run.1.iter().filter(|record| record.event == talea_record::Event::COMPLETE).count() as u64;
        let same = replayed(&system, &run, operations(&drawn, 0));
        prop_assert_eq!((&same.first, same.unknown(), same.outside), (&None, 0, 0));
        prop_assert!(same.called <= completed && same.called >= completed.saturating_sub(4));
        // Whatever others push now, each is handed what it had then.
        let pushed_otherwise = replayed(&system, &run, operations(&drawn, twist));
        prop_assert_eq!((&pushed_otherwise.first, pushed_otherwise.unknown()), (&None, 0));

        // Without the events of one, that one is left as it was, and so are those of which it takes them.
        let named = KeptOutputs::Named(vec!["take0.out".into(), "last.out".into(), "last".into()]);
        let part = recorded(&system, operations(&drawn, 0), UNTIL, &named);
        let report = replayed(&system, &part, operations(&drawn, 0));
        prop_assert_eq!((&report.first, report.unknown()), (&None, 0));
        let row = |name: &str| report.outputs.iter().find(|row| row.output == name).expect("a row");
        prop_assert!(row("take0.out").is_outside && !row("last.out").is_outside);
        prop_assert_eq!(row("last.out").compared > 0, run.1.iter().any(|record| {
            let last = system.operations().last().expect("it has some").id;
            record.event == talea_record::Event::COMPLETE && record.job().operation == last
        }));
    }
}

fn one() -> Drawn {
    Drawn {
        periods: vec![5, 7, 11],
        have_code: vec![true, false, true],
        conditions: vec![of_type("T")],
        most: 2,
        timeout: None,
        by: By::Edf,
        dispatch: LaneDispatch::NonPreemptive,
    }
}

/// One that makes something else of what it takes is found.
#[test]
fn one_that_was_changed_is_found() {
    let drawn = one();
    let system = system(&drawn);
    let run = recorded(&system, operations(&drawn, 0), UNTIL, &KeptOutputs::All);
    let changed = operations(&drawn, 0).with_ports("last", |ports| {
        let mut code = taking(ports, None);
        move |job: &JobContext<'_>| {
            if job.instance() != 3 {
                code(job);
            }
        }
    });
    let report = replayed(&system, &run, changed);
    let first = report.first.expect("it differs");
    assert_eq!((first.output.as_str(), first.instance), ("last.out", 3));

    // What a job took is lost: what differs from then on proves nothing.
    let mut records = run.1.clone();
    let of_last = |record: &Record| {
        let value = talea_record::event::Value::read(record)?;
        (value.output.is_none() && value.job.instance == 2).then_some(value.job.operation)
    };
    let last = system.operations().last().expect("it has some").id;
    let lost = records.iter().position(|record| of_last(record) == Some(last)).expect("it is kept");
    records.remove(lost);
    let report = replayed(&system, &(run.0, records), operations(&drawn, 0));
    assert!(report.first.is_none() && report.unknown() > 0, "{report:?}");
}

/// A trace that ends anywhere, as that of a program which is killed does, tells of no difference.
#[test]
fn a_trace_may_end_anywhere() {
    let drawn = one();
    let system = system(&drawn);
    let (metadata, records) = recorded(&system, operations(&drawn, 0), UNTIL, &KeptOutputs::All);
    for length in (0..records.len()).step_by(5) {
        let cut = (metadata.clone(), records[..length].to_vec());
        let report = replayed(&system, &cut, operations(&drawn, 0));
        assert_eq!((&report.first, report.unknown()), (&None, 0), "after {length} records");
    }
}
