//! Simulated runs of drawn systems in which events release tasks, replayed: who takes events is handed what it had.

use crate::{recorded, replayed};
use proptest::prelude::*;
use proptest::sample::select;
use std::hash::{DefaultHasher, Hash, Hasher};
use talea_model::{
    Condition, EventTake, LaneDispatch, OutputBuilder, Overrun, PublicationBuilder, Strategy as By,
    SubscriptionBuilder, SubtaskBuilder, System, TaskBuilder,
};
use talea_notification::declared::{EventPorts, JobEvents};
use talea_notification::qos::QosSettings;
use talea_notification::{Content, Delivery, Filterable, TimeCame};
use talea_operation::{JobContext, KeptOutputs, Operations, OutputKind, Ports};
use talea_record::event::{Lost, PushKept, PushUnkept};
use talea_record::{Event, LossCause, Record, ValueLoss};
use talea_replay::What;
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
    /// The period of a task that takes what the others push when its jobs begin.
    look: i64,
    take: EventTake,
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
        (1u32..4, timeout, 3i64..15, select(EventTake::ALL)),
        select(&[By::Edf, By::Rms, By::Mlf][..]),
        select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
    )
        .prop_map(|((periods, have_code), conditions, (most, timeout, look, take), by, dispatch)| {
            Drawn { periods, have_code, conditions, most, timeout, look, take, by, dispatch }
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
    let look = TaskBuilder::new("look", Duration::from_nanos(drawn.look)).wcet(Work::from_nanos(1));
    let look = look.subscription(SubscriptionBuilder::new("d").take(drawn.take)).overrun(Overrun::Abort);
    builder = builder.task(look.output(OutputBuilder::new("out")));
    // Handed on once more.
    let last = TaskBuilder::triggered_by("last", SubscriptionBuilder::new("d").types(["U"]));
    let step = |name| SubtaskBuilder::new(name).wcet(Work::from_nanos(1)).output(OutputBuilder::new("out"));
    let last = last.deadline(Duration::from_nanos(20)).subtask(step("one"));
    builder.task(last.subtask(step("two").after([""; 0]))).build().expect("sound")
}

/// A digest of all that the job can know of its events, and of what was before.
fn digest(state: u64, job: &JobContext<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state, job.instance(), job.started(), job.deadline()).hash(&mut hasher);
    for delivery in job.events() {
        hash_delivery(&delivery, &mut hasher);
    }
    job.event().is_some().hash(&mut hasher);
    hasher.finish()
}

fn hash_delivery(delivery: &Delivery, hasher: &mut DefaultHasher) {
    (delivery.priority(), delivery.pushed(), delivery.expires(), delivery.number()).hash(hasher);
    let of_all = delivery.event().header();
    (of_all.priority, of_all.timeout, of_all.stop, delivery.events().len()).hash(hasher);
    for event in delivery.events() {
        let header = event.header();
        header.event_type.to_string().hash(hasher);
        (header.priority, header.timeout, header.source).hash(hasher);
        header.origin.map(|origin| (origin.operation, origin.instance)).hash(hasher);
        event.content::<Count>().map(|count| (count.number, count.state)).hash(hasher);
        format!("{:?}", event.variable_header()).hash(hasher);
        event.content::<TimeCame>().is_some().hash(hasher);
        let synthetic = event.content::<talea_notification::declared::SyntheticEvent>();
        synthetic.map(|event| &event.bytes).hash(hasher);
    }
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
    let operations = operations.with_ports("look", |ports| taking(ports, None));
    let operations = operations.with_ports("last.one", |ports| taking(ports, None));
    operations.with_ports("last.two", |ports| taking(ports, None))
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
        let pushes = run.1.iter().filter(|record| record.event == talea_record::Event::PUSH).count() as u64;
        let compared: u64 = same.publications.iter().map(|row| row.compared).sum();
        prop_assert_eq!((compared, same.publications.iter().all(|row| row.is_kept)), (pushes, true));
        // Whatever others push now, each is handed what it had then; and what is pushed otherwise is found, of each job that does.
        let pushed_otherwise = replayed(&system, &run, operations(&drawn, twist));
        prop_assert_eq!(pushed_otherwise.unknown(), 0);
        prop_assert!(pushed_otherwise.outputs.iter().all(|row| row.differing == 0));
        for (row, as_then) in pushed_otherwise.publications.iter().zip(&same.publications) {
            let is_changed = (0..3).any(|place| drawn.have_code[place] && row.output.starts_with(&format!("push{place}>")));
            let expected = (as_then.compared, if is_changed { as_then.compared } else { 0 });
            prop_assert_eq!((row.compared, row.differing), expected, "{}", &row.output);
            prop_assert_eq!(row.first.as_ref().map(|first| first.push), (row.differing > 0).then_some(Some(0)));
        }

        // Without the events of one, that one is left as it was, and so are those of which it takes them.
        let named = KeptOutputs::Named(vec!["take0.out".into(), "last.two.out".into(), "last.two".into()]);
        let part = recorded(&system, operations(&drawn, 0), UNTIL, &named);
        let report = replayed(&system, &part, operations(&drawn, 0));
        prop_assert_eq!((&report.first, report.unknown()), (&None, 0));
        let row = |name: &str| report.outputs.iter().find(|row| row.output == name).expect("a row");
        prop_assert!(row("take0.out").is_outside && !row("last.two.out").is_outside);
        prop_assert_eq!(row("last.two.out").compared > 0, run.1.iter().any(|record| {
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
        look: 8,
        take: EventTake::All,
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
    let changed = operations(&drawn, 0).with_ports("last.two", |ports| {
        let mut code = taking(ports, None);
        move |job: &JobContext<'_>| {
            if job.instance() != 3 {
                code(job);
            }
        }
    });
    let report = replayed(&system, &run, changed);
    let first = report.first.expect("it differs");
    assert_eq!((first.output.as_str(), first.instance), ("last.two.out", 3));

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

/// Records that are lost leave operations with something else than they kept, which is no difference of theirs.
#[test]
fn no_difference_is_told_of_what_the_trace_has_lost() {
    let drawn = one();
    let system = system(&drawn);
    let (metadata, records) = recorded(&system, operations(&drawn, 0), 60, &KeptOutputs::All);
    for missing in 0..records.len() {
        let mut records = records.clone();
        let (time, cause) = (records[missing].time, LossCause::Overwritten.into());
        records[missing] = Lost { records: 1, since: None, ring: 0, cause }.at(time, Record::NO_CPU);
        let report = replayed(&system, &(metadata.clone(), records), operations(&drawn, 0));
        assert_eq!(report.first, None, "without record {missing}");
    }
}

/// What the third job of a task does, which pushes events of two types.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Third {
    AsEver,
    Priority,
    Content,
    Field,
    OneMore,
    OneLess,
    OtherTurn,
    Panic,
}

/// A task that pushes an event of each of two types, and one that keeps for ever what it takes of the first, so that there is no room at some time. Without
/// the others' code, what is pushed is recorded all the same.
fn pushing(third: Third) -> (System, Operations) {
    let publication = |name: &str| PublicationBuilder::new("c", name).bytes(16);
    let push = TaskBuilder::new("push", Duration::from_nanos(10)).wcet(Work::from_nanos(1));
    let take = TaskBuilder::triggered_by("take", SubscriptionBuilder::new("c").types(["T/A"]));
    let system = System::builder("pushing")
        .channel("c", QosSettings::new().max_events(2))
        .task(push.event(publication("T/A")).event(publication("T/B")).output(OutputBuilder::new("out")))
        .task(take.deadline(Duration::from_nanos(9)).wcet(Work::from_nanos(1)))
        .build()
        .expect("sound");
    let operations = Operations::synthetic()
        .with_ports("push", move |ports| {
            let [a, b] = ["T/A", "T/B"].map(|event_type| ports.publication_of::<Count>(event_type, kind()));
            let out = ports.output_of::<u64>("out", OutputKind::any().plain(), Default::default);
            move |job: &JobContext<'_>| {
                let third = if job.instance() == 2 { third } else { Third::AsEver };
                let push = |events| {
                    job.push(events, |count, header| {
                        let state = u64::from(third == Third::Content);
                        *count = Count { number: job.instance(), state };
                        header.priority = (third == Third::Priority).then_some(7);
                        header.fields.set("state", u64::from(third == Third::Field)).expect("sound");
                    })
                };
                let [first, second] = if third == Third::OtherTurn { [b, a] } else { [a, b] };
                let mut pushed = u64::from(push(first));
                assert!(third != Third::Panic, "in the midst");
                if third != Third::OneLess {
                    pushed += u64::from(push(second));
                }
                if third == Third::OneMore {
                    push(b);
                }
                job.set(out, pushed);
            }
        })
        .with_ports("take", |ports| {
            ports.subscription();
            let mut all = Vec::new();
            move |job: &JobContext<'_>| all.extend(job.event())
        });
    (system, operations)
}

#[test]
fn the_first_push_that_differs_is_named() {
    let (system, operations) = pushing(Third::AsEver);
    let run = recorded(&system, operations, UNTIL, &KeptOutputs::All);
    let found = |third| replayed(&system, &run, pushing(third).1);
    let same = found(Third::AsEver);
    let pushed = run.1.iter().filter(|record| record.event == Event::PUSH).count() as u64;
    let jobs = same.outputs[0].compared;
    // Some were refused for want of room, and are so again, of which the output tells.
    assert!(same.first.is_none() && pushed < 2 * jobs && pushed > jobs, "{same:?}");
    assert_eq!(same.publications.iter().map(|row| row.compared).collect::<Vec<_>>(), [jobs, jobs]);

    let first = |third| {
        let report = found(third);
        let differing: Vec<u64> = report.publications.iter().map(|row| row.differing).collect();
        let first = report.first.unwrap_or_else(|| panic!("{third:?} is found"));
        assert_eq!(first.instance, 2);
        (first.output, first.push, first.what, differing)
    };
    for (third, is_of_header) in [(Third::Priority, true), (Third::Field, true), (Third::Content, false)] {
        let (output, push, what, differing) = first(third);
        assert_eq!((output.as_str(), push, differing), ("push>c T/A", Some(0), vec![1, 1]));
        assert_eq!(matches!(what, What::Header { .. }), is_of_header, "{what:?}");
        assert_eq!(matches!(what, What::Bytes { at: 8, .. }), !is_of_header, "{what:?}");
    }
    let of_b =
        |push, what, differing: [u64; 2]| ("push>c T/B".to_owned(), Some(push), what, differing.to_vec());
    assert_eq!(first(Third::OneMore), of_b(1, What::NothingThen, [0, 1]));
    assert_eq!(first(Third::OneLess), of_b(0, What::NothingNow, [0, 1]));
    let message = "in the midst".into();
    assert_eq!(first(Third::Panic), of_b(0, What::Panicked { message }, [0, 1]));
    let of_a = ("push>c T/A".to_owned(), Some(0));
    let turn = What::Turn { recorded: 0, now: 1 };
    assert_eq!(first(Third::OtherTurn), (of_a.0, of_a.1, turn, vec![1, 1]));
    let told = found(Third::OneMore).first.expect("it is found").to_string();
    assert!(
        told.starts_with("push>c T/B of job 2, event 1, 21ns after the start: an event is pushed now"),
        "{told}"
    );
}

/// By the name of its channel; of what is not kept, nothing is said.
#[test]
fn pushes_are_kept_by_the_name_of_their_channel() {
    let (system, operations) = pushing(Third::AsEver);
    let run = recorded(&system, operations, UNTIL, &KeptOutputs::Named(vec!["c".into()]));
    let report = replayed(&system, &run, pushing(Third::Content).1);
    assert_eq!((report.differing(), report.outputs[0].is_kept), (2, false));
    let (system, operations) = pushing(Third::AsEver);
    let run = recorded(&system, operations, UNTIL, &KeptOutputs::Named(vec!["take".into()]));
    let report = replayed(&system, &run, pushing(Third::Content).1);
    assert!(
        report.first.is_none() && report.publications.iter().all(|row| !row.is_kept && row.compared == 0)
    );
}

/// A push that is not recorded says nothing of the others.
#[test]
fn pushes_that_are_not_recorded_are_counted() {
    let (system, operations) = pushing(Third::AsEver);
    let (metadata, mut records) = recorded(&system, operations, UNTIL, &KeptOutputs::All);
    let is_third = |record: &Record| PushKept::read(record).is_some_and(|kept| kept.job.instance == 2);
    let place = records.iter().position(is_third).expect("it is there");
    let PushKept { job, publication, node, .. } = PushKept::read(&records[place]).expect("it is one");
    let lost = PushUnkept { job, publication, node, cause: ValueLoss::NoRoom.into() };
    records[place] = lost.at(records[place].time, Record::NO_CPU);
    let run = (metadata, records);
    let same = replayed(&system, &run, pushing(Third::AsEver).1);
    assert_eq!(
        (&same.first, same.publications[0].unrecorded, same.publications[1].unrecorded),
        (&None, 1, 0)
    );
    let other = replayed(&system, &run, pushing(Third::Content).1);
    assert_eq!(other.first.expect("the other one is there").output, "push>c T/B");
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
