//! Simulated runs of drawn systems, replayed: the same operations publish the same, and one that was changed is found.

use crate::{recorded, replayed};
use proptest::prelude::*;
use proptest::sample::select;
use std::hash::{DefaultHasher, Hash, Hasher};
use talea_model::{
    Communication, Full, InputBuilder, LaneDispatch, LinkBuilder, LossRate, OutputBuilder, Overrun,
    Strategy as By, SubtaskBuilder, Synchronisation, System, TaskBuilder,
};
use talea_operation::{JobContext, KeptOutputs, Operations, OutputKind, Ports};
use talea_record::event::{Complete, Lost, Release, Typed, ValueLost};
use talea_record::{Event, LossCause, Origin, Record, Sink, ValueLoss};
use talea_replay::{Replay, ReplayError, What};
use talea_samples::recordings::{events_to_leave_out, name_of, recorded_without};
use talea_time::{Duration, Work};

/// A task of up to three steps, one after the other, each with an output; the first reads outputs of other tasks.
#[derive(Clone, Debug)]
struct Drawn {
    period: i64,
    wcet: i64,
    phase: i64,
    communication: Communication,
    overrun: Overrun,
    /// Whether what it reads first releases it, no more often than its period.
    is_triggered: bool,
    /// The nodes of the steps.
    steps: Vec<usize>,
    /// The tasks whose last outputs are read, and how.
    reads: Vec<(usize, Read)>,
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Latest,
    Each { capacity: u32, full: Full },
}

fn drawn(tasks: usize) -> impl Strategy<Value = Vec<Drawn>> {
    let each = |full| (1u32..4).prop_map(move |capacity| Read::Each { capacity, full });
    let read = prop_oneof![Just(Read::Latest), each(Full::Oldest), each(Full::Newest)];
    let task = (
        (2i64..12, 1i64..4, 0i64..5),
        select(&[Communication::Implicit, Communication::Implicit, Communication::Let][..]),
        select(Overrun::ALL),
        (any::<bool>(), prop::collection::vec(0usize..2, 1..4)),
        prop::collection::vec((0..tasks, read), 0..3),
    )
        .prop_map(|((period, wcet, phase), communication, overrun, (is_triggered, steps), reads)| Drawn {
            period,
            wcet,
            phase,
            communication,
            overrun: match (overrun, communication) {
                // A job under logical execution time takes nothing that is newer than its arrival.
                (Overrun::Merge, Communication::Let) => Overrun::Queue,
                _ => overrun,
            },
            is_triggered,
            steps,
            reads,
        });
    prop::collection::vec(task, tasks).prop_map(|mut tasks| {
        for (own, task) in tasks.iter_mut().enumerate() {
            task.reads.retain(|(other, _)| *other != own);
            task.reads.sort_by_key(|(other, _)| *other);
            task.reads.dedup_by_key(|(other, _)| *other);
        }
        for own in 0..tasks.len() {
            // No task releases itself, and none is released by what is published at the end of a period.
            let can_trigger = |other: usize| {
                other < own
                    && (tasks[other].is_triggered || tasks[other].communication == Communication::Implicit)
            };
            let is_triggered = tasks[own].reads.first().is_some_and(|(other, _)| can_trigger(*other));
            tasks[own].is_triggered &= is_triggered;
        }
        tasks
    })
}

fn name(task: usize, step: usize, steps: usize) -> String {
    if steps == 1 { format!("t{task}") } else { format!("t{task}.s{step}") }
}

fn inputs(tasks: &[Drawn], task: usize, step: usize) -> Vec<(String, InputBuilder)> {
    if step > 0 {
        let from = format!("{}.v", name(task, step - 1, tasks[task].steps.len()));
        return vec![("before".into(), InputBuilder::new("before").from(from))];
    }
    let read = |(place, (other, read)): (usize, &(usize, Read))| {
        let steps = tasks[*other].steps.len();
        let input =
            InputBuilder::new(format!("i{place}")).from(format!("{}.v", name(*other, steps - 1, steps)));
        let input = match read {
            Read::Latest => input,
            Read::Each { capacity, full } => input.each().capacity(*capacity).full(*full),
        };
        (format!("i{place}"), input)
    };
    tasks[task].reads.iter().enumerate().map(read).collect()
}

fn system(
    tasks: &[Drawn],
    (strategy, sync): (By, Synchronisation),
    dispatch: LaneDispatch,
    loss: f64,
) -> System {
    let link = LinkBuilder::others()
        .delay(Duration::from_nanos(1))
        .jitter(Duration::from_nanos(2))
        .loss(LossRate::from_share(loss).expect("a share"));
    let mut builder = System::builder("drawn").strategy(strategy).sync(sync).lane_dispatch(dispatch);
    builder = builder.node("n0", 0..1).node("n1", 1..2).link(link);
    for (index, task) in tasks.iter().enumerate() {
        let steps = task.steps.len();
        let (own, period) = (format!("t{index}"), Duration::from_nanos(task.period));
        let built = match task.is_triggered {
            false => TaskBuilder::new(own, period)
                .phase(Duration::from_nanos(task.phase))
                .communication(task.communication),
            true => {
                let (other, steps) = (task.reads[0].0, tasks[task.reads[0].0].steps.len());
                let output = format!("{}.v", name(other, steps - 1, steps));
                TaskBuilder::triggered_by(own, output.as_str()).separation(period)
            }
        };
        let mut built = built.deadline(Duration::from_nanos(2 * task.period)).overrun(task.overrun);
        if steps == 1 {
            built = built
                .wcet(Work::from_nanos(task.wcet))
                .on(format!("n{}", task.steps[0]))
                .output(OutputBuilder::new("v"));
            built = inputs(tasks, index, 0).into_iter().fold(built, |built, (_, input)| built.input(input));
        } else {
            for (step, node) in task.steps.iter().enumerate() {
                let subtask = SubtaskBuilder::new(format!("s{step}"))
                    .wcet(Work::from_nanos(task.wcet))
                    .on(format!("n{node}"))
                    .output(OutputBuilder::new("v"));
                let subtask = inputs(tasks, index, step)
                    .into_iter()
                    .fold(subtask, |subtask, (_, input)| subtask.input(input));
                built = built.subtask(subtask);
            }
        }
        builder = builder.task(built);
    }
    builder.build().expect("sound")
}

/// What one operation does otherwise, from this instance on.
type Change = Option<(String, u64)>;

/// Each operation publishes a digest of all that it was ever handed, and now and then nothing.
fn operations(tasks: &[Drawn], change: &Change) -> Operations {
    let mut operations = Operations::synthetic();
    for (index, task) in tasks.iter().enumerate() {
        for step in 0..task.steps.len() {
            let name = name(index, step, task.steps.len());
            let names: Vec<String> = inputs(tasks, index, step).into_iter().map(|(name, _)| name).collect();
            let change = change.as_ref().filter(|(changed, _)| *changed == name).map(|(_, from)| *from);
            operations = operations.with_ports(&name, move |ports| digesting(ports, &names, change));
        }
    }
    operations
}

fn digesting(
    ports: &mut Ports<'_>,
    inputs: &[String],
    change: Option<u64>,
) -> impl FnMut(&JobContext<'_>) + Send + use<> {
    let inputs: Vec<_> = inputs.iter().map(|name| ports.input::<[u64; 3]>(name)).collect();
    let output = ports.output_of::<[u64; 3]>("v", OutputKind::any().plain(), Default::default);
    let mut state = 0u64;
    move |job: &JobContext<'_>| {
        let mut hasher = DefaultHasher::new();
        (state, job.instance(), job.started(), job.now(), job.deadline(), job.release()).hash(&mut hasher);
        for input in &inputs {
            job.all(*input).for_each(|value| value.hash(&mut hasher));
            job.stamp(*input).map(|stamp| (stamp.instance, stamp.visible_at)).hash(&mut hasher);
            job.age(*input).hash(&mut hasher);
        }
        state = hasher.finish();
        let changed = u64::from(change.is_some_and(|from| job.instance() >= from));
        if !state.is_multiple_of(7) {
            job.set(output, [job.instance(), state, changed]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn the_same_operations_publish_the_same_and_one_that_was_changed_is_found(
        tasks in (2usize..5).prop_flat_map(drawn),
        strategy in select(&[By::Edf, By::Rms, By::Mlf][..]),
        sync in select(&[Synchronisation::Greedy, Synchronisation::ReleaseGuard, Synchronisation::ReleaseGuardIdleOne][..]),
        dispatch in select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
        loss in select(&[0.0, 0.2][..]),
        changed in any::<prop::sample::Index>(),
        from in 0u64..6,
    ) {
        let system = system(&tasks, (strategy, sync), dispatch, loss);
        let run = recorded(&system, operations(&tasks, &None), 200, &KeptOutputs::All);
        let same = replayed(&system, &run, operations(&tasks, &None));
        prop_assert_eq!(&same.first, &None);
        prop_assert_eq!((same.unknown(), same.lost_records), (0, 0));
        let completed = run.1.iter().filter(|record| record.event == talea_record::Event::COMPLETE).count() as u64;
        prop_assert_eq!((same.called, same.compared()), (completed, completed));

        let name = changed.get(system.operations()).name.clone();
        let other = replayed(&system, &run, operations(&tasks, &Some((name.clone(), from))));
        let output = format!("{name}.v");
        for row in &other.outputs {
            if row.output == output {
                let published = |record: &&Record| {
                    talea_record::event::Publish::read(record).is_some_and(|publish| {
                        system.outputs()[publish.output as usize].name == output && publish.job.instance >= from
                    })
                };
                let expected: Vec<u64> = run.1.iter().filter(published).map(|record| record.job().instance).collect();
                prop_assert_eq!(row.differing as usize, expected.len());
                prop_assert_eq!(row.first.as_ref().map(|first| first.instance), expected.first().copied());
                let is_last_word = |first: &talea_replay::Difference| matches!(&first.what, What::Bytes { at: 16, .. });
                prop_assert!(row.first.as_ref().is_none_or(is_last_word));
            } else {
                prop_assert_eq!(row.differing, 0, "{} is as it was, of {:?}", &row.output, &other.first);
            }
        }
    }
}

fn pair() -> (Vec<Drawn>, System) {
    let task = |reads: Vec<(usize, Read)>| Drawn {
        period: 10,
        wcet: 1,
        phase: 0,
        communication: Communication::Implicit,
        overrun: Overrun::Queue,
        is_triggered: false,
        steps: vec![0],
        reads,
    };
    let tasks = vec![task(vec![]), task(vec![(0, Read::Latest)])];
    let system = system(&tasks, (By::Edf, Synchronisation::Greedy), LaneDispatch::NonPreemptive, 0.0);
    (tasks, system)
}

#[test]
fn traces_without_values_and_of_other_systems_are_refused() {
    let (tasks, system) = pair();
    let (metadata, _) = recorded(&system, operations(&tasks, &None), 100, &KeptOutputs::None);
    let refused = Replay::new(&system, &metadata, operations(&tasks, &None)).map(drop);
    assert!(matches!(refused, Err(ReplayError::NoValues)));

    let (metadata, _) = recorded(&system, operations(&tasks, &None), 100, &KeptOutputs::All);
    let task = TaskBuilder::new("t0", Duration::from_millis(1)).wcet(Work::from_nanos(5));
    let other = System::builder("other").task(task).build().expect("sound");
    let refused = Replay::new(&other, &metadata, Operations::synthetic()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("it has output \"t0.v\", and the description has no other output"), "{refused}");
}

/// A recording that was not asked for all that a replay goes by is refused, and told by what it lacks; of what else it lacks nothing is missed.
#[test]
fn what_a_recording_left_out_is_refused_or_not_needed() {
    let (tasks, system) = pair();
    let (metadata, records) = recorded(&system, operations(&tasks, &None), 1_000, &KeptOutputs::All);
    let whole = replayed(&system, &(metadata.clone(), records.clone()), operations(&tasks, &None));
    assert_eq!((&whole.first, whole.unknown()), (&None, 0));
    let mut refused = Vec::new();
    for left_out in events_to_leave_out() {
        let left = recorded_without(&metadata, &records, &[left_out]);
        match Replay::new(&system, &left.0, operations(&tasks, &None)) {
            Err(ReplayError::LeftOut { events }) => {
                assert_eq!(events, [name_of(left_out)]);
                refused.push(left_out);
            }
            Err(error) => panic!("without {}: {error}", name_of(left_out)),
            Ok(_) => {
                let report = replayed(&system, &left, operations(&tasks, &None));
                assert_eq!(report, whole, "without {}", name_of(left_out));
            }
        }
    }
    for needed in [Event::TAKE, Event::PUBLISH, Event::START, Event::ANSWER, Event::VALUE_PART] {
        assert!(refused.contains(&needed), "{}", name_of(needed));
    }
    // A trace of before says of none of these that it was not asked for: they were not known.
    let (old, _) = recorded_without(&metadata, &records, &[Event::JOB_WCET]);
    let old = talea_record::Metadata { unrecorded: std::collections::BTreeSet::new(), ..old };
    assert_eq!(replayed(&system, &(old, records), operations(&tasks, &None)), whole);
}

/// What an operation outside publishes is what was recorded, and it is not called; a panic is told as such.
#[test]
fn operations_outside_are_not_called_and_panics_are_named() {
    let (tasks, system) = pair();
    let run = recorded(&system, operations(&tasks, &None), 100, &KeptOutputs::All);
    let outside = operations(&tasks, &None).with_ports("t0", |ports| {
        ports.outside();
        let _output = ports.output_of::<[u64; 3]>("v", OutputKind::any().plain(), Default::default);
        |_: &JobContext<'_>| unreachable!("it is not called")
    });
    let report = replayed(&system, &run, outside);
    assert_eq!((&report.first, report.called, report.outside, report.unknown()), (&None, 10, 10, 0));
    assert!(report.outputs[0].is_outside && !report.outputs[1].is_outside);
    assert_eq!((report.outputs[0].compared, report.outputs[1].compared), (0, 10));

    let panics = operations(&tasks, &None).with_ports("t0", |ports| {
        let _output = ports.output_of::<[u64; 3]>("v", OutputKind::any().plain(), Default::default);
        |job: &JobContext<'_>| assert!(job.instance() < 4, "no more")
    });
    let first = replayed(&system, &run, panics).first.expect("it differs");
    assert_eq!((first.output.as_str(), first.what), ("t0.v", What::NothingNow));
}

/// Records that are lost leave operations with something else than they kept, which is no difference of theirs.
#[test]
fn no_difference_is_told_of_what_the_trace_has_lost() {
    let (tasks, system) = pair();
    let (metadata, records) = recorded(&system, operations(&tasks, &None), 1_000, &KeptOutputs::All);
    for missing in 0..records.len() {
        let mut records = records.clone();
        let (time, cause) = (records[missing].time, LossCause::Overwritten.into());
        records[missing] = Lost { records: 1, since: None, ring: 0, cause }.at(time, Record::NO_CPU);
        let report = replayed(&system, &(metadata.clone(), records), operations(&tasks, &None));
        assert_eq!(report.first, None, "without record {missing}");
        assert!(report.compared() + report.unknown() >= 197, "without record {missing}: {report:?}");
    }
}

/// A thread that lacks a processor when its job has ended records what that published only when it has one again.
#[test]
fn word_of_what_was_published_may_come_behind_later_records() {
    let (tasks, system) = pair();
    let (metadata, records) = recorded(&system, operations(&tasks, &None), 1_000, &KeptOutputs::All);
    let is_of_values = |record: &Record| {
        [Event::PUBLISH, Event::VALUE, Event::VALUE_PART, Event::DROP].contains(&record.event)
    };
    let ends = (0..records.len()).filter(|at| records[*at].event == Event::COMPLETE);
    let mut moved = 0;
    for end in ends {
        let told: Vec<Record> = records[end + 1..].iter().copied().take_while(is_of_values).collect();
        let (told_at, mut late) = (end + 1, records.clone());
        late.drain(told_at..told_at + told.len());
        let to = (told_at + 20).min(late.len());
        late.splice(to..to, told.iter().copied());
        moved += usize::from(!told.is_empty());
        let report = replayed(&system, &(metadata.clone(), late), operations(&tasks, &None));
        assert_eq!((report.first.as_ref(), report.unknown()), (None, 0), "of {:?}", records[end]);
    }
    assert!(moved > 50, "{moved} jobs");
}

/// A reader of values that nobody recorded is handed what is published now, so nothing is its fault; and values of the reader itself are judged
/// again as soon as it is on its own.
#[test]
fn a_reader_is_not_blamed_for_values_that_were_not_recorded() {
    let (tasks, system) = pair();
    let kept = KeptOutputs::Named(vec!["t1.v".into()]);
    let run = recorded(&system, operations(&tasks, &None), 100, &kept);
    let same = replayed(&system, &run, operations(&tasks, &None));
    assert_eq!((same.first.as_ref(), same.unknown(), same.compared()), (None, 0, 10));
    let of_another = replayed(&system, &run, operations(&tasks, &Some(("t0".into(), 3))));
    assert_eq!((of_another.differing(), of_another.unknown()), (0, 7), "{of_another:?}");

    // One value of many had no room when it was published; those before it came later.
    let (metadata, mut records) = recorded(&system, operations(&tasks, &None), 100, &KeptOutputs::All);
    let is_fourth = |record: &Record| {
        talea_record::event::Value::read(record)
            .is_some_and(|value| value.output == Some(0) && value.job.instance == 3)
    };
    let place = records.iter().position(is_fourth).expect("it is there");
    let (job, time) = (records[place].job(), records[place].time);
    let lost = ValueLost { job, output: Some(0), node: 0, cause: ValueLoss::NoRoom.into() };
    records[place] = lost.at(time, Record::NO_CPU);
    // The records behind it, with the rest of its bytes, are nobody's now.
    let report = replayed(&system, &(metadata, records), operations(&tasks, &Some(("t1".into(), 0))));
    assert_eq!((report.outputs[0].unrecorded, report.outputs[0].differing), (1, 0));
    assert_eq!((report.outputs[1].differing, report.outputs[1].unknown), (3, 7), "{report:?}");
}

/// What somebody may do to a record.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Remove,
    Repeat,
    Swap,
    Word { word: usize, bit: u32 },
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is wrong with the records, the replay comes to its end.
    #[test]
    fn no_records_make_a_replay_panic(
        tasks in (2usize..4).prop_flat_map(drawn),
        dispatch in select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
        harms in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just(Harm::Remove),
            Just(Harm::Repeat),
            Just(Harm::Swap),
            (0usize..Record::WORDS, 0u32..64).prop_map(|(word, bit)| Harm::Word { word, bit }),
        ]), 1..40),
    ) {
        let system = system(&tasks, (By::Edf, Synchronisation::Greedy), dispatch, 0.1);
        let (metadata, mut records) = recorded(&system, operations(&tasks, &None), 100, &KeptOutputs::All);
        for (place, harm) in harms {
            let place = place.index(records.len() - 1);
            match harm {
                Harm::Remove if records.len() > 2 => _ = records.remove(place),
                Harm::Repeat => records.insert(place, records[place]),
                Harm::Swap => records.swap(place, place + 1),
                Harm::Remove => {}
                Harm::Word { word, bit } => {
                    let mut words = records[place].to_words();
                    words[word] ^= 1 << bit;
                    records[place] = Record::from_words(words);
                }
            }
        }
        let mut replay = Replay::new(&system, &metadata, operations(&tasks, &None)).expect("it can be replayed");
        records.iter().for_each(|record| replay.record(*record));
        let report = replay.finish();
        prop_assert!(report.differing() <= report.compared());
    }
}

/// On threads, a job that something triggers is released a little later than it was triggered where others are left out, or aborted, for it.
#[test]
fn a_triggered_job_is_released_again_when_it_was() {
    let often = TaskBuilder::new("often", Duration::from_millis(5))
        .wcet(Work::from_micros(10))
        .output(OutputBuilder::new("value").bytes(8));
    let other = TaskBuilder::triggered_by("other", "often.value")
        .wcet(Work::from_micros(10))
        .deadline(Duration::from_millis(5))
        .output(OutputBuilder::new("told"));
    let system = System::builder("triggered").task(often).task(other).build().expect("a system");
    let operations = || {
        Operations::synthetic().with_ports("other", |ports| {
            let told = ports.output_of::<i64>("told", OutputKind::any().plain(), || 0);
            move |job: &JobContext<'_>| job.set(told, job.release().as_nanos())
        })
    };
    let (mut metadata, mut records) = recorded(&system, operations(), 100_000_000, &KeptOutputs::All);
    // As threads record it: each was triggered a microsecond before it was released.
    metadata.origin = Origin::Threads { realtime: true };
    let is_of_other = |record: &Record| record.dates().is_some() && record.job().operation.index() == 1;
    for record in records.iter_mut().filter(|record| is_of_other(record)) {
        let earlier = |at: talea_time::Instant| at + -Duration::from_micros(1);
        *record = match record.typed() {
            Typed::Release(release) => {
                Release { nominal: earlier(release.nominal), ..release }.at(record.time, record.cpu)
            }
            Typed::Complete(complete) => {
                Complete { nominal: earlier(complete.nominal), ..complete }.at(record.time, record.cpu)
            }
            _ => *record,
        };
    }
    let report = replayed(&system, &(metadata, records), operations());
    let told = report.outputs.iter().find(|row| row.output == "other.told").expect("there is one");
    assert!(told.compared > 10, "{report:?}");
    assert_eq!((&report.first, report.unknown()), (&None, 0));
}
