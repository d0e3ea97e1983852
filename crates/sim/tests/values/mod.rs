//! Values between tasks in virtual time, held against their definition: which value a job takes follows from when jobs begin and
//! complete alone.

mod waiting;

use crate::explain::explained;
use crate::replay::{metadata, records_with};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use talea_insight::Accounting;
use talea_insight::explain::{Kind, Outcome, Question, Subject, Which};
use talea_insight::verify::Verifier;
use talea_model::{
    Communication, Excess, InputBuilder, LaneDispatch, Late, OnValue, OperationId, OutputBuilder,
    OutsideArrivals, Strategy as By, SubtaskBuilder, Synchronisation, System, TaskBuilder, TriggerBuilder,
};
use talea_operation::{JobContext, NotPosted, Operations, OutputKind, SyntheticValue};
use talea_policy::strategy::{plan_lanes_of, plan_system};
use talea_record::event::{Complete, Release, Skip, Start};
use talea_record::{JobId, Record, Sink, SkipReason};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant, Work};

fn ns(ns: i64) -> Duration {
    Duration::from_nanos(ns)
}

/// A task that writes its instance's number.
#[derive(Clone, Debug)]
struct Drawn {
    period: i64,
    wcet: i64,
    phase: i64,
    communication: Communication,
    /// The tasks it reads, the first by the latest value, the others by each.
    reads: Vec<usize>,
    capacity: u32,
}

fn drawn(tasks: usize) -> impl Strategy<Value = Vec<Drawn>> {
    let communication = select(&[Communication::Implicit, Communication::Implicit, Communication::Let][..]);
    let task = (2i64..12, 1i64..4, 0i64..5, communication, prop::collection::vec(0..tasks, 0..3), 1u32..4)
        .prop_map(|(period, wcet, phase, communication, reads, capacity)| Drawn {
            period,
            wcet,
            phase,
            communication,
            reads,
            capacity,
        });
    prop::collection::vec(task, tasks).prop_map(|mut tasks| {
        for (own, task) in tasks.iter_mut().enumerate() {
            task.reads.retain(|other| *other != own);
            task.reads.sort_unstable();
            task.reads.dedup();
        }
        tasks
    })
}

fn name(task: usize) -> String {
    format!("t{task}")
}

fn system(tasks: &[Drawn], strategy: By, dispatch: LaneDispatch, processors: u16) -> System {
    // Late work does not go last, so that jobs of an operation do not pass each other in a lane.
    let builder = System::builder("values").strategy(strategy).late(Late::None).lane_dispatch(dispatch);
    let builder = builder.node("n", 0..processors);
    let task = |(index, task): (usize, &Drawn)| {
        let built = TaskBuilder::new(name(index), ns(task.period))
            .phase(ns(task.phase))
            .deadline(ns(2 * task.period))
            .wcet(Work::from_nanos(task.wcet))
            .communication(task.communication)
            .output(OutputBuilder::new("v"));
        task.reads.iter().enumerate().fold(built, |built, (place, other)| {
            let input = InputBuilder::new(format!("i{place}")).from(format!("{}.v", name(*other)));
            built.input(if place == 0 { input } else { input.each().capacity(task.capacity) })
        })
    };
    tasks
        .iter()
        .enumerate()
        .map(task)
        .fold(builder, |builder, task| builder.task(task))
        .build()
        .expect("sound")
}

/// What each job took of each input: the instances whose values it had.
type Took = Arc<Mutex<HashMap<(usize, u64), Vec<Vec<u64>>>>>;

fn operations(tasks: &[Drawn], took: &Took) -> Operations {
    tasks.iter().enumerate().fold(Operations::synthetic(), |operations, (index, task)| {
        let (inputs, took) = (task.reads.len(), Arc::clone(took));
        operations.with_ports(&name(index), move |ports| {
            let inputs: Vec<_> = (0..inputs).map(|place| ports.input::<u64>(&format!("i{place}"))).collect();
            let output = ports.output::<u64>("v");
            move |job: &JobContext<'_>| {
                let all = inputs.iter().map(|input| job.all(*input).copied().collect()).collect();
                took.lock().unwrap().insert((index, job.instance()), all);
                job.set(output, job.instance());
            }
        })
    })
}

fn simulated(system: &System, operations: Operations, until: i64) -> Vec<Record> {
    let plans = plan_lanes_of(system).expect("sorted");
    let mut simulation = Simulation::with_operations(system, &plans, operations).expect("simulated");
    let mut records = Vec::new();
    simulation.advance(Instant::from_nanos(until), &mut records);
    simulation.finish(&mut records);
    records
}

/// When jobs began and completed, by task.
#[derive(Default)]
struct Lives {
    /// By instance.
    starts: HashMap<(usize, u64), Instant>,
    /// In the order in which they completed: instance, completion, and deadline.
    completions: HashMap<usize, Vec<(u64, Instant)>>,
    /// Places in the order of starts and completions of all.
    order: Vec<(usize, u64, bool)>,
}

fn lives(records: &[Record]) -> Lives {
    let mut lives = Lives::default();
    let of = |job: JobId| (job.operation.index(), job.instance);
    for record in records {
        if let Some(start) = Start::read(record) {
            lives.starts.insert(of(start.job), record.time);
            lives.order.push((start.job.operation.index(), start.job.instance, true));
        }
        if let Some(complete) = Complete::read(record) {
            let (task, instance) = of(complete.job);
            lives.completions.entry(task).or_default().push((instance, record.time));
            lives.order.push((task, instance, false));
        }
    }
    lives
}

proptest! {
    /// Of non-preemptive lanes, where jobs of a task do not pass each other.
    #[test]
    fn jobs_take_what_was_visible_when_they_began_or_arrived(
        tasks in (2usize..5).prop_flat_map(drawn),
        strategy in select(&[By::Rms, By::Edf, By::Muf][..]),
        processors in 1u16..3,
    ) {
        let system = system(&tasks, strategy, LaneDispatch::NonPreemptive, processors);
        let took: Took = Arc::default();
        let records = simulated(&system, operations(&tasks, &took), 200);
        let lives = lives(&records);
        let took = took.lock().unwrap();
        // The instances that were read before, by task and place.
        let mut before: HashMap<(usize, usize), u64> = HashMap::new();
        for (task, instance, is_start) in &lives.order {
            let Some(taken) = took.get(&(*task, *instance)).filter(|_| *is_start) else { continue };
            let arrival = Instant::ZERO + ns(tasks[*task].phase + *instance as i64 * tasks[*task].period);
            let start = lives.starts[&(*task, *instance)];
            for (place, other) in tasks[*task].reads.iter().enumerate() {
                let writer = &tasks[*other];
                let visible = |(number, completion): (u64, Instant)| match writer.communication {
                    Communication::Implicit => completion,
                    Communication::Let => {
                        let end = Instant::ZERO + ns(writer.phase + (number as i64 + 1) * writer.period);
                        end.max(completion)
                    }
                };
                let as_of = match tasks[*task].communication {
                    Communication::Implicit => start,
                    Communication::Let => arrival,
                };
                let completions = lives.completions.get(other).map_or(&[][..], Vec::as_slice);
                let there: Vec<u64> = completions.iter().copied().filter(|one| visible(*one) <= as_of).map(|one| one.0).collect();
                // Of values that lie behind there is room for as many as come until a job's deadline; and jobs that are later than that may
                // begin after later ones, which have taken newer values.
                let is_hopeless = as_of + ns(2 * tasks[*task].period) < start;
                if place == 0 && is_hopeless {
                    let by_then = |number: &u64| completions.iter().any(|one| one.0 == *number && visible(*one) <= start);
                    prop_assert!(taken[place].iter().all(by_then), "what had been published");
                } else if place == 0 {
                    prop_assert_eq!(&taken[place], &there.last().copied().into_iter().collect::<Vec<_>>(),
                        "latest of t{} for t{}#{}", other, task, instance);
                } else {
                    let last = before.get(&(*task, place)).copied();
                    let new: Vec<u64> = there.iter().copied().filter(|number| last.is_none_or(|last| *number > last)).collect();
                    prop_assert!(taken[place].windows(2).all(|pair| pair[0] < pair[1]));
                    prop_assert!(taken[place].iter().all(|number| new.contains(number)), "no value is there twice, or too early");
                    let capacity = tasks[*task].capacity as usize;
                    if writer.communication == Communication::Implicit && tasks[*task].communication == Communication::Implicit {
                        let kept: Vec<u64> = new.iter().copied().skip(new.len().saturating_sub(capacity)).collect();
                        prop_assert_eq!(&taken[place], &kept, "the newest that there is room for");
                    }
                    if let Some(newest) = taken[place].last() {
                        before.insert((*task, place), *newest);
                    }
                }
            }
        }
    }

    /// Ports and code change no schedule, and code sees each job once, also in lanes where jobs of an operation pass each other.
    #[test]
    fn handing_values_on_changes_no_schedule(
        tasks in (2usize..5).prop_flat_map(drawn),
        strategy in select(&[By::Rms, By::Edf, By::Mlf, By::Muf][..]),
        dispatch in select(LaneDispatch::ALL),
        processors in 1u16..3,
    ) {
        let with = system(&tasks, strategy, dispatch, processors);
        let bare: Vec<Drawn> = tasks.iter().map(|task| Drawn { reads: Vec::new(), ..task.clone() }).collect();
        let without = system(&bare, strategy, dispatch, processors);
        let took: Took = Arc::default();
        let records = simulated(&with, operations(&tasks, &took), 150);
        prop_assert_eq!(&records, &simulated(&without, Operations::synthetic(), 150));
        let completed = records.iter().filter(|record| Complete::read(record).is_some()).count();
        prop_assert_eq!(took.lock().unwrap().len(), completed, "code is called once for each job that completes");
    }
}

fn step(name: &str) -> SubtaskBuilder {
    SubtaskBuilder::new(name).wcet(Work::from_nanos(1))
}

#[test]
fn successors_have_the_value_of_their_own_instance_also_over_links() {
    let task = TaskBuilder::new("t", ns(10))
        .deadline(ns(100))
        .subtask(step("a").on("one").output(OutputBuilder::new("v")))
        .subtask(
            step("b").on("two").input(InputBuilder::new("v").from("t.a.v")).output(OutputBuilder::new("w")),
        )
        .subtask(
            step("c")
                .on("one")
                .after(["a", "b"])
                .input(InputBuilder::new("v").from("t.a.v"))
                .input(InputBuilder::new("w").from("t.b.w")),
        );
    let link = talea_model::LinkBuilder::others().delay(ns(3)).jitter(ns(25));
    let system =
        System::builder("s").node("one", [0]).node("two", [0]).link(link).task(task).build().expect("sound");
    let told = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&told);
    let operations = Operations::synthetic()
        .with_ports("t.a", |ports| {
            let v = ports.output::<u64>("v");
            move |job: &JobContext<'_>| job.set(v, job.instance())
        })
        .with_ports("t.b", |ports| {
            let (v, w) = (ports.input::<u64>("v"), ports.output::<u64>("w"));
            move |job: &JobContext<'_>| job.set(w, job.get(v).expect("of its instance") + 100)
        })
        .with_ports("t.c", move |ports| {
            let (v, w) = (ports.input::<u64>("v"), ports.input::<u64>("w"));
            move |job: &JobContext<'_>| {
                all.lock().unwrap().push((job.instance(), job.get(v).copied(), job.get(w).copied()));
            }
        });
    simulated(&system, operations, 2_000);
    let told = told.lock().unwrap();
    assert!(told.len() > 150, "{}", told.len());
    assert!(told.iter().all(|(number, v, w)| (*v, *w) == (Some(*number), Some(number + 100))));
}

/// The instants at which jobs of the operation are released, and the reasons why others are not.
fn releases(records: &[Record], operation: usize) -> (Vec<(i64, i64)>, Vec<SkipReason>) {
    let released = records.iter().filter_map(|record| {
        let release = Release::read(record).filter(|release| release.job.operation.index() == operation)?;
        Some((release.nominal.as_nanos(), record.time.as_nanos()))
    });
    let skipped =
        records.iter().filter_map(Skip::read).filter(|skip| skip.job.operation.index() == operation);
    (released.collect(), skipped.filter_map(|skip| skip.reason.known()).collect())
}

#[test]
fn values_and_what_comes_from_outside_release_tasks() {
    let times = |times: &[i64]| OutsideArrivals::Listed(times.iter().map(|time| ns(*time)).collect());
    let outside = |name: &str, excess, list: &[i64]| {
        TaskBuilder::external(name, ns(10))
            .excess(excess)
            .arrivals(times(list))
            .deadline(ns(50))
            .wcet(Work::from_nanos(1))
    };
    let triggered = |name: &str, trigger: TriggerBuilder| {
        TaskBuilder::triggered_by(name, trigger).deadline(ns(50)).wcet(Work::from_nanos(1))
    };
    let system = System::builder("s")
        .node("n", 0..8)
        .task(TaskBuilder::new("source", ns(5)).wcet(Work::from_nanos(1)).output(OutputBuilder::new("v")))
        .task(triggered("third", TriggerBuilder::output("source.v").every(3)))
        .task(triggered("changes", TriggerBuilder::output("source.v").on(OnValue::Change)))
        .task(triggered("apart", TriggerBuilder::output("source.v").every(2)).separation(ns(10)))
        .task(outside("deferred", Excess::Defer, &[3, 4, 50]))
        .task(outside("dropped", Excess::Drop, &[3, 4, 50]))
        .task(outside("counted", Excess::Count, &[3, 4, 50]))
        .build()
        .expect("sound");
    let operations = Operations::synthetic().with_ports("source", |ports| {
        let v = ports.output_of::<u64>("v", OutputKind::any().compared(), Default::default);
        move |job: &JobContext<'_>| {
            assert_eq!(job.post(posted(), 0), Err(NotPosted::OtherRun));
            job.set(v, job.instance() / 4);
        }
    });
    let records = simulated(&system, operations, 60);
    let at = |times: &[i64]| times.iter().map(|time| (*time, *time)).collect::<Vec<_>>();
    // The source completes at 1, 6, 11, …
    assert_eq!(releases(&records, 1).0, at(&[11, 26, 41, 56]));
    assert_eq!(releases(&records, 2).0, at(&[1, 21, 41]));
    assert_eq!(releases(&records, 3).0, at(&[6, 16, 26, 36, 46, 56]));
    assert_eq!(releases(&records, 4), (vec![(3, 3), (4, 13), (50, 50)], vec![]));
    assert_eq!(releases(&records, 5), (at(&[3, 50]), vec![SkipReason::Early]));
    assert_eq!(releases(&records, 6), (at(&[3, 4, 50]), vec![]));
}

/// Some operation of another run.
fn posted() -> talea_operation::PostedOperation {
    talea_operation::PostedOperation { id: talea_model::OperationId::from_index(0), run: u64::MAX }
}

#[test]
fn synthetic_values_have_fields_that_follow_from_the_seed() {
    use talea_model::FieldValues;
    let task = |seed| {
        let source = TaskBuilder::new("source", ns(5)).wcet(Work::from_nanos(1)).output(
            OutputBuilder::new("v")
                .bytes(24)
                .field("constant", FieldValues::Constant(-7))
                .field("uniform", FieldValues::Uniform(10, 12))
                .field("list", FieldValues::List([1, 2, 3].into())),
        );
        let sink = TaskBuilder::new("sink", ns(5)).wcet(Work::from_nanos(1));
        let sink = sink.input(InputBuilder::new("v").from("source.v").each());
        System::builder("s").seed(seed).node("n", [0]).task(source).task(sink).build().expect("sound")
    };
    let values = |seed| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&told);
        let operations = Operations::synthetic().with_ports("sink", move |ports| {
            let v = ports.input::<SyntheticValue>("v");
            move |job: &JobContext<'_>| {
                all.lock().unwrap().extend(job.all(v).map(|value| value.fields.to_vec()));
            }
        });
        simulated(&task(seed), operations, 500);
        std::mem::take(&mut *told.lock().unwrap())
    };
    let drawn = values(1);
    assert!(drawn.len() > 90);
    for (instance, fields) in drawn.iter().enumerate() {
        assert_eq!((fields[0], fields[2]), (-7, 1 + instance as i64 % 3));
        assert!((10..=12).contains(&fields[1]));
    }
    assert_eq!(drawn, values(1), "the same in every run");
    assert_ne!(drawn, values(2));
}

/// Some wait at the guard while later ones are dropped: each is counted as what became of it, and explained by what held it.
#[test]
fn of_a_burst_each_arrival_is_counted_and_explained() {
    let list = [3, 3, 3, 3, 4, 60];
    let burst = |name: &str, excess| {
        TaskBuilder::external(name, ns(10))
            .burst(2)
            .excess(excess)
            .arrivals(OutsideArrivals::Listed(list.iter().map(|time| ns(*time)).collect()))
            .deadline(ns(50))
            .wcet(Work::from_nanos(1))
    };
    let system = System::builder("s")
        .node("n", 0..2)
        .task(burst("dropped", Excess::Drop))
        .task(burst("deferred", Excess::Defer))
        .build()
        .expect("sound");
    let records = records_with(&system, &[], 100, DispatchRecords::Kept);
    let metadata = metadata(&system);
    let mut accounting = Accounting::new(&metadata, Duration::from_nanos(1_000));
    records.iter().for_each(|record| accounting.record(*record));
    let report = accounting.finish(Instant::from_nanos(100));
    for (task, operation) in report.tasks.iter().zip(0..) {
        let (released, skipped) = releases(&records, operation);
        assert_eq!(released.len() + skipped.len(), list.len(), "{}", task.name);
        let told = (task.released, task.met, task.skipped);
        assert_eq!(
            told,
            (released.len() as u64, released.len() as u64, skipped.len() as u64),
            "{}",
            task.name
        );
    }
    assert_eq!((report.tasks[0].skipped, report.tasks[1].skipped), (3, 0));
    let question = Question { which: Which::Worst, task: Some(1), limit: 1 };
    let explanations = explained(&metadata, &records, question);
    let one = &explanations.list[0];
    let cause_of = |kind| {
        one.totals.iter().filter(|total| total.kind == kind).map(|total| total.sum()).sum::<Duration>()
    };
    assert_eq!(one.response(), cause_of(Kind::Guard) + cause_of(Kind::Execution), "{one:#?}");
    assert!(cause_of(Kind::Guard) >= ns(19), "{one:#?}");
    let text = explanations.sentence(one);
    assert!(text.contains("its separation and burst"), "{text}");
}

/// Whether the trace says what guards do meanwhile does not matter to what it says at the end.
#[test]
fn what_guards_hold_at_the_end_has_arrived() {
    let task = |name: &str, arrivals: &[i64]| {
        TaskBuilder::external(name, ns(100))
            .arrivals(OutsideArrivals::Listed(arrivals.iter().map(|time| ns(*time)).collect()))
            .deadline(ns(50))
    };
    let both =
        task("both", &[10, 20, 90]).subtask(SubtaskBuilder::new("a").wcet(Work::from_nanos(1)).on("n"));
    let both = both.subtask(SubtaskBuilder::new("b").wcet(Work::from_nanos(1)).on("m").after(["a"; 0]));
    let system = System::builder("s").node("n", [0]).node("m", [1]).task(both);
    let system = system.build().expect("sound");
    for dispatch in [DispatchRecords::Kept, DispatchRecords::Dropped] {
        let records = records_with(&system, &[], 100, dispatch);
        let mut starts = records.iter().filter_map(Start::read);
        assert!(starts.all(|start| start.posted_by.0.is_none()), "nobody posts in virtual time");
        let metadata = metadata(&system);
        let mut accounting = Accounting::new(&metadata, Duration::from_nanos(1_000));
        records.iter().for_each(|record| accounting.record(*record));
        let report = accounting.finish(Instant::from_nanos(100));
        let told = &report.tasks[0];
        // One is due at 70, one beyond the end.
        let counts = (told.released, told.completed, told.met, told.missed, told.unfinished);
        assert_eq!(counts, (3, 1, 1, 1, 1), "{told:#?}");
        assert_eq!(report.operations.iter().map(|one| one.released).collect::<Vec<_>>(), [1, 1]);
        let question = Question { which: Which::Failed, task: None, limit: 9 };
        let explanations = explained(&metadata, &records, question);
        assert_eq!(explanations.list.len(), 1);
        let one = &explanations.list[0];
        assert_eq!((one.arrival.as_nanos(), one.response(), one.hops[0].is_released), (20, ns(80), false));
        assert!(one.totals.iter().all(|total| total.kind == Kind::Guard), "{one:#?}");
        let job = JobId { operation: OperationId::from_index(0), instance: 2 };
        let question = Question { which: Which::This(Subject::Job(job)), ..question };
        let explanations = explained(&metadata, &records, question);
        assert_eq!(
            (explanations.list[0].outcome, explanations.list[0].response()),
            (Outcome::Unfinished, ns(10))
        );
        let plans = plan_system(&system).expect("no anomalies");
        let mut verifier =
            Verifier::new(&metadata, &system, &plans, Duration::ZERO).expect("the same system");
        records.iter().for_each(|record| verifier.record(*record));
        assert_eq!(verifier.finish().violations, []);
    }
}

/// What finds no room at a guard is given up there, and that is what is said of it.
#[test]
fn what_finds_no_room_at_a_guard_is_explained_by_that() {
    let part = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(1)).on("n");
    let source = TaskBuilder::new("source", ns(5)).wcet(Work::from_nanos(1)).output(OutputBuilder::new("v"));
    let task = TaskBuilder::triggered_by("t", TriggerBuilder::output("source.v")).separation(ns(1_000));
    let task = task.excess(Excess::Count).sync(Synchronisation::ReleaseGuard).deadline(ns(4_000));
    let task = task.subtask(part("a")).subtask(part("b"));
    let system = System::builder("s").node("n", [0]).task(source).task(task).build().expect("sound");
    let records = records_with(&system, &[], 3_000, DispatchRecords::Kept);
    let question = Question { which: Which::Failed, task: None, limit: 1 };
    let explanations = explained(&metadata(&system), &records, question);
    let one = &explanations.list[0];
    let (operation, Some(refused)) = (OperationId::from_index(2), one.refused()) else { panic!("{one:#?}") };
    assert_eq!((one.outcome, refused.operation), (Outcome::Aborted, operation));
    assert!(explanations.sentence(one).contains("than there is room for"), "{}", explanations.sentence(one));
}

/// A guard of a synchronisation protocol holds what follows: no message is on its way.
#[test]
fn what_a_guard_holds_at_the_end_waits_for_no_message() {
    let part = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(1)).on("n");
    let task = TaskBuilder::new("t", ns(100))
        .sync(Synchronisation::ModifiedPhaseModification)
        .subtask(part("a").bound(ns(70)))
        .subtask(part("b"));
    let system = System::builder("s").node("n", [0]).task(task).build().expect("sound");
    for dispatch in [DispatchRecords::Kept, DispatchRecords::Dropped] {
        let records = records_with(&system, &[], 60, dispatch);
        let question = Question { which: Which::Worst, task: None, limit: 1 };
        let explanations = explained(&metadata(&system), &records, question);
        let one = &explanations.list[0];
        assert_eq!((one.outcome, one.response()), (Outcome::Unfinished, ns(60)));
        let last = one.intervals.last().expect("it took time");
        let is_told = dispatch == DispatchRecords::Kept;
        assert_eq!((last.to - last.from, last.cause.kind() == Kind::Guard), (ns(59), is_told), "{one:#?}");
        assert_ne!(last.cause.kind(), Kind::Message);
    }
}
