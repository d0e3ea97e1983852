//! Values between operations, and tasks that are released by values or from outside, on real threads.

use super::*;
use rustix::pipe::pipe;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use talea_insight::flow::{Direction, Limits, flow};
use talea_model::{
    Communication, Excess, Full, InputBuilder, OnValue, OutputBuilder, OutsideArrivals, Overrun,
    SubtaskBuilder, Take, TriggerBuilder,
};
use talea_policy::strategy::plan_system;
use talea_record::event::{Complete, Publish, Release, RunStart, Skip, Take as Taken, Timer, Typed};
use talea_record::{Metadata, Origin, Sink, SkipReason};
use talea_runtime::{
    JobContext, NotTriggered, OperationError, OutputKind, Ports, PrepareError, SyntheticValue, TriggerError,
};

fn step(name: &str) -> SubtaskBuilder {
    SubtaskBuilder::new(name).wcet(Work::from_nanos(50_000))
}

fn input(name: &str, from: &str) -> InputBuilder {
    InputBuilder::new(name).from(from)
}

/// A fork and a join on one node; the right branch is synthetic.
#[test]
fn a_join_has_the_values_of_all_its_predecessors() {
    let chain = TaskBuilder::new("t", ms(10))
        .subtask(step("a").output(OutputBuilder::new("v")))
        .subtask(step("left").after(["a"]).input(input("v", "t.a.v")).output(OutputBuilder::new("w")))
        .subtask(step("right").after(["a"]).output(OutputBuilder::new("w").bytes(3)))
        .subtask(
            step("end")
                .after(["left", "right"])
                .input(input("left", "t.left.w"))
                .input(input("right", "t.right.w"))
                .input(input("first", "t.a.v")),
        );
    let system = system(Strategy::Edf).task(chain).build().expect("a system");
    let (tell, told) = mpsc::channel();
    let operations = Operations::synthetic()
        .with_ports("t.a", |ports| {
            let v = ports.output::<u64>("v");
            move |job: &JobContext<'_>| job.set(v, 10 * job.instance())
        })
        .with_ports("t.left", |ports| {
            let (v, w) = (ports.input::<u64>("v"), ports.output::<Vec<u64>>("w"));
            move |job: &JobContext<'_>| {
                let mut w = job.write(w);
                w.clear();
                w.extend([*job.get(v).expect("a published it"), 7]);
            }
        })
        .with_ports("t.end", move |ports| {
            let (left, first) = (ports.input::<Vec<u64>>("left"), ports.input::<u64>("first"));
            let right = ports.input::<SyntheticValue>("right");
            move |job: &JobContext<'_>| {
                let right = job.get(right).map(|value| value.bytes.len());
                let _ = tell.send((job.instance(), job.get(left).cloned(), right, job.get(first).copied()));
            }
        });
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("t.end", 5));
    assert_eq!((&ran.outcome.mishaps.panics[..], &ran.outcome.mishaps.lost_values[..]), (&[][..], &[][..]));
    let told: Vec<_> = told.iter().collect();
    assert!(told.len() > 5);
    for (instance, left, right, first) in told {
        let expected = 10 * instance;
        assert_eq!((left, right, first), (Some(vec![expected, 7]), Some(3), Some(expected)));
    }
}

/// What a job took is what was there when it began, though more has been published since; and each value is taken once or counted.
#[test]
fn readers_of_other_tasks_have_the_latest_value_or_each() {
    let system = system(Strategy::Rms)
        .task(task("fast", 2, 1).wcet(Work::from_nanos(50_000)).output(OutputBuilder::new("count")))
        .task(task("latest", 10, 1).input(input("count", "fast.count")))
        .task(task("each", 20, 1).input(input("count", "fast.count").each().capacity(4)))
        .build()
        .expect("a system");
    let (tell, told) = mpsc::channel();
    let latest = tell.clone();
    let operations = Operations::synthetic()
        .with_ports("fast", |ports| {
            let count = ports.output::<u64>("count");
            move |job: &JobContext<'_>| job.set(count, job.instance())
        })
        .with_ports("latest", move |ports| {
            let count = ports.input::<u64>("count");
            move |job: &JobContext<'_>| {
                let value = job.get(count).copied();
                let age = job.age(count);
                while job.now() - job.started() < ms(4) && !job.aborted() {
                    assert_eq!(job.get(count).copied(), value, "it stays while others are published");
                }
                assert!(age.is_none_or(|age| age >= Duration::ZERO));
                let _ = latest.send(("latest", value.into_iter().collect()));
            }
        })
        .with_ports("each", move |ports| {
            let count = ports.input::<u64>("count");
            move |job: &JobContext<'_>| {
                let _ = tell.send(("each", job.all(count).copied().collect::<Vec<u64>>()));
            }
        });
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("each", 5));
    assert_eq!(ran.outcome.mishaps.panics, []);
    let told: Vec<(&str, Vec<u64>)> = told.iter().collect();
    let of = |name: &str| -> Vec<u64> {
        told.iter().filter(|(of, _)| *of == name).flat_map(|(_, values)| values.clone()).collect()
    };
    let (latest, each) = (of("latest"), of("each"));
    assert!(latest.is_sorted() && latest.len() > 3);
    assert!(each.windows(2).all(|pair| pair[0] < pair[1]), "no value comes twice: {each:?}");
    let [lost] = &ran.outcome.mishaps.lost_values[..] else { panic!("{:?}", ran.outcome.mishaps) };
    let published = ran.records.iter().filter(|record| Publish::read(record).is_some()).count() as u64;
    assert_eq!(lost.input, "each.count");
    let waiting = published - lost.dropped - each.len() as u64;
    assert!(waiting <= 4, "{published} published, {} dropped, {} taken", lost.dropped, each.len());
    check_takes(&ran);
}

/// Whoever takes a value begins after who wrote it has completed, and none newer has been published before.
fn check_takes(ran: &Ran) {
    let mut published = Vec::new();
    for record in &ran.records {
        if let Some(publish) = Publish::read(record) {
            published.push((publish.job, publish.visible));
        }
    }
    let mut takes = 0;
    for record in &ran.records {
        let Some(Taken { from: Some(from), .. }) = Taken::read(record) else { continue };
        let visible = published.iter().find(|(job, _)| *job == from).expect("it was published").1;
        assert!(visible <= record.time, "{from:?} is taken before it is there");
        takes += 1;
    }
    assert!(takes > 3);
}

/// Whatever the jobs' order on the processor, what a reader sees is what was published at the end of the last period.
#[test]
fn under_logical_execution_time_values_change_at_the_ends_of_periods() {
    let system = system(Strategy::Rms)
        .task(task("writer", 10, 1).communication(Communication::Let).output(OutputBuilder::new("count")))
        .task(task("reader", 20, 1).communication(Communication::Let).input(input("count", "writer.count")))
        .build()
        .expect("a system");
    let (tell, told) = mpsc::channel();
    let operations = Operations::synthetic()
        .with_ports("writer", |ports| {
            let count = ports.output::<u64>("count");
            move |job: &JobContext<'_>| job.set(count, job.instance())
        })
        .with_ports("reader", move |ports| {
            let count = ports.input::<u64>("count");
            move |job: &JobContext<'_>| {
                let _ = tell.send((job.instance(), job.get(count).copied()));
            }
        });
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("reader", 8));
    for (instance, value) in told.iter() {
        // Published at the end of the period of the writer's instance 2k - 1, which is when the reader's instance k arrives.
        let expected = (2 * instance).checked_sub(1);
        if ran.outcome.mishaps.late_values == 0 {
            assert_eq!(value, expected);
        } else {
            assert!(value <= expected, "values may only be later");
        }
    }
}

/// A reader without logical execution time begins in the midst of the writer's period, when its value is there and not yet visible.
#[test]
fn nobody_takes_before_its_time_what_was_published_under_logical_execution_time() {
    let input = || input("count", "writer.count");
    let reader = |name| task(name, 20, 1).wcet(Work::from_nanos(20_000)).phase(ms(10));
    let system = system(Strategy::Rms)
        .task(task("writer", 20, 1).communication(Communication::Let).output(OutputBuilder::new("count")))
        .task(reader("latest").input(input()))
        .task(reader("each").input(input().each()))
        .build()
        .expect("a system");
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("each", 12));
    let published = ran.records.iter().filter_map(Publish::read);
    let published: BTreeMap<u64, talea_time::Instant> =
        published.map(|publish| (publish.job.instance, publish.visible)).collect();
    let mut takes = 0;
    for record in &ran.records {
        if let Some(Taken { from: Some(from), .. }) = Taken::read(record) {
            assert!(published[&from.instance] <= record.time, "{from:?} is taken before it is there");
            takes += 1;
        }
    }
    assert!(takes > 10, "{takes}");
}

/// Each value carries whom it comes from, so what the records say of that can be held against what the operations saw.
#[test]
fn what_led_to_a_job_is_what_its_values_say() {
    let by = |output| TaskBuilder::triggered_by("act", TriggerBuilder::output(output).every(2));
    let system = system(Strategy::Rms)
        .task(task("sense", 3, 1).wcet(Work::from_nanos(50_000)).output(OutputBuilder::new("number")))
        .task(
            task("plan", 7, 1)
                .wcet(Work::from_nanos(50_000))
                .input(input("number", "sense.number"))
                .output(OutputBuilder::new("both")),
        )
        .task(
            by("plan.both").deadline(ms(20)).wcet(Work::from_nanos(20_000)).input(input("both", "plan.both")),
        )
        .build()
        .expect("a system");
    let (tell, told) = mpsc::channel();
    let operations = Operations::synthetic()
        .with_ports("sense", |ports| {
            let number = ports.output::<u64>("number");
            move |job: &JobContext<'_>| job.set(number, job.instance())
        })
        .with_ports("plan", |ports| {
            let (number, both) = (ports.input::<u64>("number"), ports.output::<(u64, Option<u64>)>("both"));
            move |job: &JobContext<'_>| job.set(both, (job.instance(), job.get(number).copied()))
        })
        .with_ports("act", move |ports| {
            let both = ports.input::<(u64, Option<u64>)>("both");
            move |job: &JobContext<'_>| {
                let (plan, sense) = *job.get(both).expect("it was released by one");
                let _ = tell.send((job.instance(), plan, sense));
            }
        });
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("act", 8));
    let plans = plan_system(&system).expect("it can be planned");
    let origin = Origin::Threads { realtime: false };
    let metadata = Metadata::new(&system, &plans, origin, ran.records[0].time);
    let id = |name: &str, instance| {
        let operation =
            system.operations().iter().find(|operation| operation.name == name).expect("there").id;
        JobId { operation, instance }
    };
    let replay = |sink: &mut dyn Sink| {
        ran.records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    };
    let limits = Limits { depth: 9, jobs: 1_000 };
    let jobs = |job: JobId, direction: Direction| {
        let Ok(flow) = flow(&metadata, (job, direction), limits, replay);
        assert!(!flow.is_cut);
        flow.steps.iter().map(|step| step.job).collect::<BTreeSet<JobId>>()
    };
    let mut acts = 0;
    for (act, plan, sense) in told.iter() {
        let saw = [Some(id("act", act)), Some(id("plan", plan)), sense.map(|sense| id("sense", sense))];
        // A newer plan may have been there when the second of two released it.
        let released_by = id("plan", 2 * act + 1);
        let expected: BTreeSet<JobId> = saw.into_iter().flatten().collect();
        let back = jobs(id("act", act), Direction::Back);
        assert!(back.is_superset(&expected) && back.contains(&released_by), "{back:?} {expected:?}");
        assert!(plan != released_by.instance || back == expected, "{back:?} {expected:?}");
        if let Some(sense) = sense {
            let forward = jobs(id("sense", sense), Direction::Forward);
            assert!(forward.contains(&id("plan", plan)) && forward.contains(&id("act", act)), "{forward:?}");
        }
        acts += 1;
    }
    assert!(acts >= 8, "{acts}");
}

/// However many outputs an operation has, each releases what it triggers and nothing else.
#[test]
fn each_of_seventy_outputs_releases_its_own_tasks() {
    let outputs = (0..70).map(|output| OutputBuilder::new(format!("o{output}")));
    let source = outputs.fold(task("source", 10, 1).wcet(Work::from_nanos(50_000)), TaskBuilder::output);
    let reader = |output: usize| {
        TaskBuilder::triggered_by(format!("r{output}"), TriggerBuilder::output(format!("source.o{output}")))
            .deadline(ms(20))
            .wcet(Work::from_nanos(20_000))
    };
    // As remainders of 64, three of them are equal in pairs.
    let tasks = [3, 5, 67, 69].map(reader);
    let system = tasks.into_iter().fold(system(Strategy::Rms).task(source), SystemBuilder::task);
    let system = system.build().expect("a system");
    let operations = Operations::synthetic().with_ports("source", |ports| {
        let outputs: Vec<_> = (0..70).map(|output| ports.output::<u64>(&format!("o{output}"))).collect();
        move |job: &JobContext<'_>| {
            let written = if job.instance().is_multiple_of(2) { 3 } else { 69 };
            job.set(outputs[written], job.instance());
        }
    });
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("source", 6));
    assert_eq!(ran.outcome.mishaps.panics, []);
    let released = |name: &str| ran.count(Event::RELEASE, name);
    let completed = ran.count(Event::COMPLETE, "source");
    assert_eq!((released("r3"), released("r69")), (completed.div_ceil(2), completed / 2));
    assert_eq!((released("r5"), released("r67")), (0, 0));
}

#[test]
fn values_release_tasks_all_of_them_some_or_those_that_are_new() {
    let log = |name: &str, trigger: TriggerBuilder| {
        TaskBuilder::triggered_by(name, trigger).deadline(ms(20)).wcet(Work::from_nanos(20_000))
    };
    let system = system(Strategy::Rms)
        .task(task("source", 4, 1).wcet(Work::from_nanos(50_000)).output(OutputBuilder::new("count")))
        .task(log("all", TriggerBuilder::output("source.count")).input(input("count", "source.count").each()))
        .task(log("third", TriggerBuilder::output("source.count").every(3)))
        .task(log("changes", TriggerBuilder::output("source.count").on(OnValue::Change)))
        .task(log("apart", TriggerBuilder::output("source.count")).separation(ms(4)))
        .build()
        .expect("a system");
    let operations = Operations::synthetic()
        .with_ports("source", |ports| {
            let count = ports.output_of::<u64>("count", OutputKind::any().compared(), Default::default);
            // The run goes on behind the last value, so that its guard has been told of each when it ends.
            move |job: &JobContext<'_>| {
                if job.instance() < 30 {
                    job.set(count, job.instance() / 2);
                }
            }
        })
        .with_ports("all", |ports| {
            let count = ports.input::<u64>("count");
            move |job: &JobContext<'_>| assert!(job.all(count).len() <= 1 || job.all(count).is_sorted())
        });
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("source", 36));
    let published = ran.records.iter().filter(|record| Publish::read(record).is_some()).count();
    let released = |name: &str| ran.count(Event::RELEASE, name);
    assert_eq!(ran.outcome.mishaps.panics, []);
    assert_eq!((released("all"), released("third")), (published, published / 3));
    assert_eq!(released("changes"), published.div_ceil(2));
    // Instances that wait at the guard when the run ends are not released.
    let instances = |event| ran.of(event, "apart").map(|record| record.job().instance);
    let seen: BTreeSet<u64> = instances(Event::RELEASE).chain(instances(Event::GUARD)).collect();
    assert_eq!((seen.len(), released("apart") > 0), (published, true), "each was released or waits");
}

/// What comes from outside is kept to what is declared: deferred, dropped or counted.
#[test]
fn the_program_releases_tasks_as_often_as_is_declared() {
    for excess in [Excess::Defer, Excess::Drop, Excess::Count] {
        let system = system(Strategy::Rms)
            .task(
                TaskBuilder::external("stop", ms(20))
                    .burst(2)
                    .excess(excess)
                    .deadline(ms(50))
                    .wcet(Work::from_nanos(20_000)),
            )
            .task(task("clock", 5, 1).wcet(Work::from_nanos(20_000)))
            .build()
            .expect("a system");
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let options = RunOptions { duration: None, keep_log: Some(log.clone()), ..options(RtMode::Warn, 0) };
        let prepared = Executive::prepare(&system, Operations::synthetic(), options).expect("prepared");
        let mut trigger = prepared.trigger("stop").expect("it is external");
        assert!(matches!(prepared.trigger("stop"), Err(TriggerError::Taken(_))));
        assert_eq!(trigger.fire(), Err(NotTriggered::NotRunning));
        let Err(TriggerError::NoSuchTask { external, .. }) = prepared.trigger("clock") else {
            panic!("it has a period")
        };
        assert_eq!(external, ["stop"]);
        let (started, begins) = mpsc::channel();
        let stop = prepared.stop_handle();
        let mut left = 12;
        let prepared = prepared.on_finished(Box::new(move |job: &FinishedJob<'_>| {
            if job.operation == "clock" {
                left -= 1;
                let _ = started.send(());
                if left == 0 {
                    stop.stop();
                }
            }
        }));
        let fires = std::thread::spawn(move || {
            begins.recv().expect("the run has begun");
            (0..5).map(|_| trigger.fire().expect("there is room")).collect::<Vec<u64>>()
        });
        let outcome = prepared.run().expect("it runs");
        assert_eq!(fires.join().unwrap(), [0, 1, 2, 3, 4]);
        let records = records_of(&log);
        let ran = Ran { outcome, records, system: system.clone() };
        let released = ran.count(Event::RELEASE, "stop");
        let skipped: Vec<_> = ran.records.iter().filter_map(Skip::read).collect();
        match excess {
            Excess::Defer => {
                assert!((2..=5).contains(&released) && skipped.is_empty(), "{released}");
                // What the guard held at the end has arrived, too.
                assert_eq!(released + ran.count(Event::HELD, "stop"), 5);
                assert_eq!(ran.outcome.report.tasks[0].released, 5);
            }
            Excess::Drop => {
                assert_eq!(released + skipped.len(), 5);
                assert!(skipped.iter().all(|skip| skip.reason.known() == Some(SkipReason::Early)));
                assert!(!skipped.is_empty());
                let task = &ran.outcome.report.tasks[0];
                assert_eq!((task.released, task.skipped), (released as u64, skipped.len() as u64));
            }
            Excess::Count => assert_eq!((released, skipped.len()), (5, 0)),
        }
        let early = &ran.outcome.mishaps.early_arrivals[..];
        let is_told = matches!(early, [one] if (&*one.task, &one.excess) == ("stop", &excess.to_string()) && one.arrivals > 0);
        assert!(is_told, "{excess}: five at once are more than two: {:?}", ran.outcome.mishaps);
        let releases = ran.records.iter().filter_map(Release::read);
        let of_stop: Vec<_> = releases
            .filter(|release| system.operations()[release.job.operation.index()].name == "stop")
            .collect();
        assert!(of_stop.iter().all(|release| release.deadline - release.nominal == ms(50)));
    }
}

/// No arrivals are drawn for what something outside has been given for, and nobody wakes for them.
#[test]
fn the_release_thread_sleeps_while_nothing_comes_from_outside() {
    let system = system(Strategy::Rms)
        .task(TaskBuilder::external("stop", ms(1)).wcet(Work::from_nanos(20_000)))
        .task(task("clock", 5, 1).wcet(Work::from_nanos(20_000)))
        .build()
        .expect("a system");
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let options = RunOptions { keep_log: Some(log.clone()), ..options(RtMode::Warn, 22) };
    let prepared = Executive::prepare(&system, Operations::synthetic(), options).expect("prepared");
    let _trigger = prepared.trigger("stop").expect("it is external");
    let (reader, _writer) = pipe().expect("a pipe");
    assert!(matches!(prepared.descriptor("stop", reader), Err(TriggerError::Taken(_))));
    let outcome = prepared.run().expect("it runs");
    let start = talea_time::Instant::from_nanos(outcome.report.start_ns);
    let alarms: Vec<_> =
        records_of(&log).iter().filter_map(Timer::read).map(|timer| timer.due - start).collect();
    assert!(
        !alarms.is_empty() && alarms.iter().all(|due| due.as_nanos() % ms(5).as_nanos() == 0),
        "{alarms:?}"
    );
}

#[test]
fn a_descriptor_that_is_ready_releases_its_task_once_for_each_job() {
    let system = system(Strategy::Rms)
        .task(TaskBuilder::external("stop", ms(1)).burst(4).deadline(ms(20)).wcet(Work::from_nanos(20_000)))
        .task(task("clock", 5, 1).wcet(Work::from_nanos(20_000)))
        .build()
        .expect("a system");
    let _alone = alone();
    let (reader, writer) = pipe().expect("a pipe");
    let own = reader.try_clone().expect("another descriptor of it");
    let (tell, told) = mpsc::channel();
    let (tell_first, first) = mpsc::channel();
    let operations = Operations::synthetic().with("stop", move |job: &JobContext<'_>| {
        let _ = tell_first.send(job.started().as_nanos());
        let mut bytes = [0; 4];
        let length = rustix::io::read(&own, &mut bytes).expect("it is ready");
        let _ = tell.send(bytes[..length].to_vec());
    });
    let prepared = Executive::prepare(&system, operations, options(RtMode::Warn, 60_000)).expect("prepared");
    let file = std::fs::File::open("/proc/self/exe").expect("readable");
    assert!(matches!(prepared.descriptor("stop", file), Err(TriggerError::Unpollable { .. })));
    prepared.descriptor("stop", reader).expect("a pipe can be waited for");
    // Ready before the run begins.
    rustix::io::write(&writer, b"first").expect("there is room");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    assert_eq!(told.recv().unwrap(), b"firs");
    assert_eq!(told.recv().unwrap(), b"t", "it is still ready, and looked at again");
    rustix::io::write(&writer, b"then").expect("there is room");
    assert_eq!(told.recv().unwrap(), b"then");
    stop.stop();
    let outcome = running.join().expect("no thread panics");
    assert_eq!(outcome.report.tasks[0].released, 3, "it is not polled while its job runs");
    assert!(
        first.recv().expect("the first") >= outcome.report.start_ns,
        "what is ready before is ready then"
    );
}

/// What the other side has closed can be read for ever. It is read to its end, and then not looked at any more.
#[test]
fn a_descriptor_whose_other_side_is_closed_releases_its_task_until_its_end() {
    let system = system(Strategy::Rms)
        .task(TaskBuilder::external("pipe", ms(1)).burst(4).deadline(ms(20)).wcet(Work::from_nanos(20_000)))
        .task(TaskBuilder::external("socket", ms(1)).burst(4).deadline(ms(20)).wcet(Work::from_nanos(20_000)))
        .task(TaskBuilder::external("open", ms(1)).burst(4).deadline(ms(20)).wcet(Work::from_nanos(20_000)))
        .task(task("clock", 2, 1).wcet(Work::from_nanos(20_000)))
        .build()
        .expect("a system");
    let _alone = alone();
    let (reader, writer) = pipe().expect("a pipe");
    let (own, other) = UnixStream::pair().expect("two sockets");
    let (open, _writer) = pipe().expect("a pipe");
    rustix::io::write(&writer, b"12345678").expect("there is room");
    drop(writer);
    rustix::io::write(&other, b"12345678").expect("there is room");
    other.shutdown(Shutdown::Write).expect("it is open");
    // Behind the last release of each, the clock goes on for a while, with nothing else to do.
    let (ends, after) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let read = |descriptor: OwnedFd, ends: &Arc<AtomicU32>| {
        let ends = Arc::clone(ends);
        move |_: &JobContext<'_>| {
            let length = rustix::io::read(&descriptor, &mut [0; 4]).expect("it is ready");
            ends.fetch_add(u32::from(length == 0), Ordering::Relaxed);
        }
    };
    let clock = {
        let (ends, after) = (Arc::clone(&ends), Arc::clone(&after));
        move |_: &JobContext<'_>| {
            after.fetch_add(u32::from(ends.load(Ordering::Relaxed) >= 2), Ordering::Relaxed);
        }
    };
    let operations = Operations::synthetic()
        .with("pipe", read(reader.try_clone().expect("another descriptor of it"), &ends))
        .with("socket", read(own.try_clone().expect("another descriptor of it").into(), &ends))
        .with("clock", clock);
    let prepared = Executive::prepare(&system, operations, options(RtMode::Warn, 60_000)).expect("prepared");
    prepared.descriptor("pipe", reader).expect("a pipe can be waited for");
    prepared.descriptor("socket", own).expect("a socket can be waited for");
    prepared.descriptor("open", open).expect("a pipe can be waited for");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    while after.load(Ordering::Relaxed) < 50 && !running.is_finished() {
        std::thread::yield_now();
    }
    stop.stop();
    let outcome = running.join().expect("no thread panics");
    let released = |name: &str| {
        let task = outcome.report.tasks.iter().find(|task| task.name == name).expect("a task");
        task.released
    };
    assert_eq!(["pipe", "socket", "open"].map(released), [3, 3, 0], "two with data, and the end");
    assert_eq!(outcome.mishaps.ended_descriptors, ["pipe", "socket"]);
}

/// Instances of `task`, a task "pipe" whose operation `reader` reads four bytes at a time, that were released and left out until that has read all
/// of eight bytes and seen the end of them.
fn read_to_the_end(task: TaskBuilder, reader: &str) -> (u64, u64) {
    let system = system(Strategy::Rms).task(task.deadline(ms(20))).build().expect("a system");
    let _alone = alone();
    let (end, writer) = pipe().expect("a pipe");
    let own = end.try_clone().expect("another descriptor of it");
    rustix::io::write(&writer, b"12345678").expect("there is room");
    drop(writer);
    let (tell, told) = mpsc::channel();
    let operations = Operations::synthetic().with(reader, move |_: &JobContext<'_>| {
        let length = rustix::io::read(&own, &mut [0; 4]).expect("it is ready");
        let _ = tell.send(length);
    });
    let prepared = Executive::prepare(&system, operations, options(RtMode::Warn, 60_000)).expect("prepared");
    prepared.descriptor("pipe", end).expect("a pipe can be waited for");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    assert_eq!([(); 3].map(|()| told.recv().expect("it is released")), [4, 4, 0], "all, and the end");
    stop.stop();
    let outcome = running.join().expect("no thread panics");
    assert_eq!(outcome.mishaps.ended_descriptors, ["pipe"]);
    let task = &outcome.report.tasks[0];
    (task.released, task.skipped)
}

/// What comes too early is dropped, and is looked at again when it no longer is: neither what was written nor the end is lost, and nobody
/// is kept busy meanwhile.
#[test]
fn a_descriptor_that_is_ready_too_early_is_looked_at_again_when_it_may_be() {
    let task = TaskBuilder::external("pipe", ms(10)).excess(Excess::Drop).wcet(Work::from_nanos(20_000));
    let (released, left_out) = read_to_the_end(task, "pipe");
    assert_eq!(released, 3);
    // Fewer where the machine stalls until it is no longer too early.
    assert!(left_out <= 2, "once at most for each after the first: {left_out}");
}

/// Each of them may be who reads.
#[test]
fn a_descriptor_is_looked_at_again_when_all_first_subtasks_have_ended() {
    let first = |name| SubtaskBuilder::new(name).after([""; 0]).wcet(Work::from_nanos(20_000));
    let task = TaskBuilder::external("pipe", ms(1)).burst(8).overrun(Overrun::SkipNext);
    let task = task.subtask(first("quick")).subtask(first("slow"));
    assert_eq!(read_to_the_end(task, "pipe.slow"), (3, 0), "none while another had not ended");
}

/// Without anything outside arrivals are drawn, the same in every run.
#[test]
fn arrivals_are_drawn_where_nothing_outside_is_given() {
    let times = [0, 3, 3, 11].map(Duration::from_millis);
    let system = system(Strategy::Rms)
        .task(
            TaskBuilder::external("listed", ms(1))
                .burst(2)
                .arrivals(OutsideArrivals::Listed(times.into()))
                .deadline(ms(50))
                .wcet(Work::from_nanos(20_000)),
        )
        .task(task("clock", 5, 1).wcet(Work::from_nanos(20_000)))
        .build()
        .expect("a system");
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("clock", 5));
    let start = ran.records.iter().find(|record| RunStart::read(record).is_some()).expect("it began").time;
    let nominal: Vec<_> = ran.records.iter().filter_map(Release::read).collect();
    let of_listed = nominal
        .iter()
        .filter(|release| system.operations()[release.job.operation.index()].name == "listed")
        .map(|release| release.nominal - start);
    assert_eq!(of_listed.collect::<Vec<_>>(), times);
}

#[test]
fn whoever_publishes_waits_for_room_up_to_a_limit() {
    let each =
        input("count", "fast.count").take(Take::Each { capacity: 1, full: Full::Block { limit: ms(2) } });
    let system = system(Strategy::Rms)
        .node("one", [0])
        .task(task("fast", 5, 1).wcet(Work::from_nanos(50_000)).output(OutputBuilder::new("count")))
        .task(task("slow", 50, 1).wcet(Work::from_nanos(50_000)).input(each))
        .build()
        .expect("a system");
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("slow", 2));
    let waited = |record: &Record| match record.typed() {
        Typed::Complete(Complete { job, nominal, .. }) => {
            ran.name(job) == "fast" && record.time - nominal >= ms(2)
        }
        _ => false,
    };
    assert!(ran.records.iter().any(waited), "the second value waits for two milliseconds");
    // It gives up its processor meanwhile, and nobody preempts it.
    let of_fast: Vec<&Record> = ran.records.iter().filter(|record| record.event.is_job()).collect();
    let of_fast = of_fast.into_iter().filter(|record| ran.name(record.job()) == "fast");
    let stops: Vec<(Event, JobId)> = of_fast
        .filter(|record| [Event::WAIT, Event::RESUME, Event::PREEMPT].contains(&record.event))
        .map(|record| (record.event, record.job()))
        .collect();
    assert!(!stops.is_empty());
    for pair in stops.chunks(2) {
        let [(Event::WAIT, waits), (Event::RESUME, goes_on)] = pair else { panic!("{stops:?}") };
        assert_eq!(waits, goes_on);
    }
    assert_eq!(ran.outcome.mishaps.lost_values[0].input, "slow.count");
}

#[test]
fn all_that_is_wrong_with_ports_is_said_before_anything_runs() {
    let system = system(Strategy::Rms)
        .task(task("source", 4, 1).output(OutputBuilder::new("count")).output(OutputBuilder::new("other")))
        .task(task("sink", 4, 1).input(input("count", "source.count")).input(input("other", "source.other")))
        .task(
            TaskBuilder::triggered_by("changes", TriggerBuilder::output("source.count").on(OnValue::Change))
                .deadline(ms(20))
                .wcet(Work::from_nanos(20_000)),
        )
        .task(task("typed", 4, 1).input(input("value", "silent.value")))
        .task(task("silent", 4, 1).output(OutputBuilder::new("value")))
        .build()
        .expect("a system");
    let operations = Operations::synthetic()
        .with_ports("source", |ports: &mut Ports<'_>| {
            let _ =
                (ports.output::<u64>("count"), ports.output::<u64>("cuont"), ports.output::<u64>("count"));
            |_: &JobContext<'_>| ()
        })
        .with_ports("sink", |ports: &mut Ports<'_>| {
            let _ = ports.input::<f32>("count");
            |_: &JobContext<'_>| ()
        })
        .with_ports("typed", |ports: &mut Ports<'_>| {
            let _ = ports.input::<u64>("value");
            |_: &JobContext<'_>| ()
        })
        .with("nobody", |_| ());
    let refused = Executive::prepare(&system, operations, options(RtMode::Off, 10));
    let Err(PrepareError::Operations(errors)) = refused else { panic!("much is wrong") };
    use OperationError::*;
    let found = |is_it: fn(&OperationError) -> bool| errors.0.iter().filter(|error| is_it(error)).count();
    assert_eq!(found(|error| matches!(error, UnknownPort { nearest: Some(port), .. } if port == "count")), 1);
    assert_eq!(found(|error| matches!(error, OpenedTwice { .. })), 1);
    assert_eq!(found(|error| matches!(error, NotOpened { name, .. } if name == "other")), 2);
    assert_eq!(found(|error| matches!(error, TypeMismatch { taken: "f32", written: "u64", .. })), 1);
    assert_eq!(found(|error| matches!(error, NotCompared { .. })), 1);
    assert_eq!(found(|error| matches!(error, NoProducer { producer, .. } if producer == "silent")), 1);
    assert_eq!(found(|error| matches!(error, UnknownOperation { name, .. } if name == "nobody")), 1);
    assert_eq!(errors.0.len(), 8, "{errors}");
}
