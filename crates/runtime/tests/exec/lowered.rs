//! Hierarchies that the kernel keeps by itself: its settings, and the records of those who run with them.

use super::hierarchy::described;
use super::*;
use crate::programs::{Program, child_of, eventually, lives, parent, stage};
use talea_linux::Tid;
use talea_linux::affinity;
use talea_linux::sched::{self, Policy};
use talea_runtime::{HierarchyError, Lower, ParkingOutcome, PrepareError, ScheduledBy, Slicing};

const PRIORITIES: &str = "
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
[[scheduler]]
name = \"inner\"
kind = \"fixed-priority\"
under = [{ scheduler = \"FP\", priority = 2 }]
[[thread]]
name = \"low\"
work = \"cpu-bound\"
under = [{ scheduler = \"FP\", priority = 1 }]
[[thread]]
name = \"middle\"
work = { burst = \"2ms\", period = \"15ms\" }
under = [{ scheduler = \"inner\", priority = 1 }]
[[thread]]
name = \"high\"
work = { burst = \"1ms\", period = \"10ms\" }
under = [{ scheduler = \"inner\", priority = 7 }]
";

/// The policies that threads of these names have, as the kernel had them.
fn policies(ran: &Ran, names: &[&str]) -> Vec<String> {
    let of = |name: &&str| ran.outcome.threads.iter().find(|thread| thread.name == *name);
    names
        .iter()
        .map(|name| of(name).map_or_else(String::new, |thread| thread.actual_policy.clone()))
        .collect()
}

#[test]
fn lowered_threads_have_the_policies_that_the_result_tells() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], PRIORITIES).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("high", 20));
    assert_eq!(
        policies(&ran, &["low", "middle", "high", "rel:ruled"]),
        ["SCHED_FIFO 10", "SCHED_FIFO 11", "SCHED_FIFO 12", "SCHED_FIFO 13"]
    );
    assert!(ran.outcome.threads.iter().all(|thread| thread.actual_cpus == [at.cpus[0]]));
    let hierarchy = &ran.outcome.hierarchies[0];
    assert_eq!(hierarchy.scheduled_by, ScheduledBy::Kernel);
    let told: Vec<_> = hierarchy.lowering.iter().filter_map(|part| part.lowered_to.as_deref()).collect();
    assert_eq!(told[2..], ["SCHED_FIFO 10", "SCHED_FIFO 11", "SCHED_FIFO 12"]);
    for member in &hierarchy.members {
        assert_eq!((member.parking, member.granted_ns), (ParkingOutcome::Kernel, None));
        assert!(member.received_ns > 0, "{member:?}");
    }
    // Nobody judged, and it is not said otherwise.
    assert!(hierarchy.edges.iter().all(|edge| edge.judged.is_none() && edge.wanted_ns.is_none()));
}

/// From the records: while a job of "high" is under way nobody else begins or goes on, and it displaces whoever ran.
#[test]
fn a_high_thread_runs_before_lower_ones() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], PRIORITIES).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("high", 30));
    let mut under_way = None;
    for record in ran.records.iter().filter(|record| record.event.0 >> 8 == 1) {
        let name = ran.name(record.job());
        match record.event {
            Event::START if name == "high" => under_way = Some(record.job().instance),
            Event::COMPLETE | Event::ABORT if name == "high" => under_way = None,
            Event::START | Event::RESUME | Event::COMPLETE => {
                assert_eq!(under_way, None, "{name} at {}", record.time);
            }
            _ => {}
        }
    }
    // Whoever begins or goes on finds the processor given back, or has displaced who had it. A preemption between the
    // reading of the clock and the displacement is not seen.
    let (mut holder, mut unseen) = (None, 0);
    for record in ran.records.iter().filter(|record| record.event.0 >> 8 == 1) {
        match record.event {
            Event::START | Event::RESUME => {
                unseen += usize::from(holder.is_some());
                holder = Some(record.job());
            }
            Event::PREEMPT | Event::COMPLETE => holder = holder.filter(|holder| *holder != record.job()),
            _ => {}
        }
    }
    assert!(unseen <= 1, "{unseen} of {} switches", ran.records.len());
    assert!(ran.count(Event::PREEMPT, "low") > 0, "it never sleeps, and others come");
    let report = &ran.outcome.report;
    let busy: i64 = report.lanes.iter().map(|lane| lane.busy_ns).sum();
    assert!(busy <= report.duration_ns, "one processor is one thread's at a time");
    assert!(report.nodes[0].switches.are_recorded());
}

#[test]
fn the_infrastructure_leaves_the_same_results() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], PRIORITIES).with_threads_as_tasks();
    let run = |lower| {
        // The kernel leaves itself no slices either.
        let options = RunOptions { lower, slicing: Slicing::Never, ..options(RtMode::Warn, 0) };
        run_until(&system, Operations::synthetic(), options, ended("high", 15))
    };
    let (lowered, managed) = (run(Lower::WherePossible), run(Lower::Never));
    let by = |ran: &Ran| ran.outcome.hierarchies[0].scheduled_by;
    assert_eq!((by(&lowered), by(&managed)), (ScheduledBy::Kernel, ScheduledBy::Infrastructure));
    assert!(managed.outcome.hierarchies[0].lowering.is_empty(), "nobody asked");
    let shape = |ran: &Ran| {
        let report = &ran.outcome.report;
        let edges = report.hierarchies[0].edges.iter();
        (
            report.tasks.iter().map(|task| task.name.clone()).collect::<Vec<_>>(),
            report.lanes.iter().map(|lane| lane.label.clone()).collect::<Vec<_>>(),
            edges
                .map(|edge| (edge.parent.clone(), edge.child.clone(), edge.guarantee.clone()))
                .collect::<Vec<_>>(),
            ran.outcome.hierarchies[0].members.iter().map(|member| member.thread.clone()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(shape(&lowered), shape(&managed));
    for ran in [&lowered, &managed] {
        for name in ["low", "middle", "high"] {
            assert!(ran.count(Event::RELEASE, name) >= 1 && ran.count(Event::START, name) >= 1, "{name}");
        }
        for mark in [Event::RUN_START, Event::RUN_END] {
            assert_eq!(ran.records.iter().filter(|record| record.event == mark).count(), 1);
        }
    }
}

/// A burst that has waited behind the one before it has its turn after those who came first.
#[test]
fn threads_of_one_level_take_turns_in_the_order_of_arrival() {
    let Some((_alone, at)) = stage(1) else { return };
    let tables = "
[[scheduler]]
name = \"line\"
kind = \"fifo\"
[[thread]]
name = \"often\"
work = { burst = \"4ms\", period = \"3ms\" }
under = [{ scheduler = \"line\" }]
[[thread]]
name = \"seldom\"
work = { burst = \"1ms\", period = \"20ms\" }
under = [{ scheduler = \"line\" }]
";
    let system = described(at.cpus[0], tables).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("seldom", 5));
    assert_eq!(ran.outcome.hierarchies[0].scheduled_by, ScheduledBy::Kernel);
    assert_eq!(policies(&ran, &["often", "seldom"]), ["SCHED_FIFO 10", "SCHED_FIFO 10"]);
    // "often" always wants the processor, and none of its bursts but the one under way comes before "seldom".
    for job in 0..5 {
        let released = ran.position(Event::RELEASE, "seldom", job).expect("it was released");
        let started = ran.position(Event::START, "seldom", job).expect("it had its turn");
        let between = &ran.records[released..started];
        let others =
            between.iter().filter(|record| record.event == Event::START && ran.name(record.job()) == "often");
        assert!(others.count() <= 1, "seldom#{job}");
    }
}

/// Own threads are lanes, beside those of other nodes, and their bursts wait in a window as all jobs do.
#[test]
fn own_threads_run_beside_lanes_and_skip_what_their_window_has_no_room_for() {
    let Some((_alone, at)) = stage(2) else { return };
    let tables = "
[[node]]
name = \"flat\"
cpus = [CPU]
[[task]]
name = \"beside\"
node = \"flat\"
period = \"10ms\"
wcet = \"1ms\"
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
node = \"ruled\"
[[thread]]
name = \"low\"
work = \"cpu-bound\"
under = [{ scheduler = \"FP\", priority = 1 }]
[[thread]]
name = \"often\"
work = { burst = \"4ms\", period = \"3ms\" }
under = [{ scheduler = \"FP\", priority = 2 }]
";
    let system = described(at.cpus[0], &tables.replace("CPU", &at.cpus[1].to_string()));
    let options = RunOptions { window: Some(2), ..options(RtMode::Warn, 0) };
    let ran =
        run_until(&system.with_threads_as_tasks(), Operations::synthetic(), options, ended("beside", 20));
    assert_eq!(ran.outcome.hierarchies[0].scheduled_by, ScheduledBy::Kernel);
    assert_eq!(
        policies(&ran, &["low", "often", "rel:ruled", "rel:flat"]),
        ["SCHED_FIFO 10", "SCHED_FIFO 11", "SCHED_FIFO 12", "SCHED_FIFO 80"]
    );
    let counts =
        |name: &str| [Event::RELEASE, Event::COMPLETE, Event::SKIP].map(|event| ran.count(event, name));
    let [released, completed, skipped] = counts("often");
    assert!(skipped > 0 && released <= completed + 2 && completed > 0, "{:?}", counts("often"));
    assert_eq!(counts("low"), [1, 0, 0]);
    assert!(counts("beside")[1] > 0, "{:?}", counts("beside"));
    let received: Vec<i64> =
        ran.outcome.hierarchies[0].members.iter().map(|member| member.received_ns).collect();
    assert!(received[1] > completed as i64 * 4_000_000, "{received:?}");
}

#[test]
fn a_process_has_the_policy_for_as_long_as_the_run_lasts() {
    let Some((_alone, at)) = stage(1) else { return };
    let program = Program::start();
    let tid = Tid::from_raw(program.id() as i32).expect("a process has a number");
    let before = (sched::get(Some(tid)), affinity::get(Some(tid)));
    let tables = PRIORITIES.replace("work = \"cpu-bound\"", &format!("pid = {}", program.id()));
    let system = described(at.cpus[0], &tables).with_threads_as_tasks();
    let seen = std::sync::Arc::new(Mutex::new(None));
    let noted = std::sync::Arc::clone(&seen);
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), move |job| {
        if job.operation == "high" && job.instance == 3 {
            *noted.lock().unwrap() = Some((sched::get(Some(tid)), affinity::get(Some(tid))));
        }
        job.operation == "high" && job.instance == 6
    });
    let seen = seen.lock().unwrap().take().expect("the run came so far");
    assert_eq!(seen, (Ok(Policy::Fifo(10)), Ok(vec![at.cpus[0]])));
    assert_eq!((sched::get(Some(tid)), affinity::get(Some(tid))), before, "it has back what it had");
    let member = &ran.outcome.hierarchies[0].members[0];
    assert!(member.received_ns > 0 && member.policy.as_deref() == Some("SCHED_FIFO 10"), "{member:?}");
    assert!(!ran.outcome.report.nodes[0].switches.are_recorded(), "nobody tells when a program runs");
    assert_eq!((ran.count(Event::RELEASE, "low"), ran.count(Event::PREEMPT, "low")), (1, 0));
}

/// With its child, which was there before; or, as one thread, without it.
#[test]
fn a_process_has_the_policy_with_what_it_has_started_or_without() {
    let Some((_alone, at)) = stage(1) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (key, of_both) in [
        ("pid = PID", [Policy::RoundRobin(10), Policy::RoundRobin(10)]),
        ("pid = PID\nchildren = \"later\"", [Policy::Fifo(10), Policy::Other]),
        ("tid = PID", [Policy::Fifo(10), Policy::Other]),
    ] {
        let note = folder.path().join(key);
        let [shell, arguments @ ..] = parent(&note);
        let mut command = std::process::Command::new(shell);
        let program = Program(command.args(arguments).spawn().expect("a shell"));
        let mut child = None;
        eventually("the child is named", || {
            child = child_of(&note);
            child.is_some()
        });
        let both =
            [Tid::from_raw(program.id() as i32).expect("a process has a number"), child.expect("it is")];
        let work = key.replace("PID", &program.id().to_string());
        let tables = PRIORITIES.replace("work = \"cpu-bound\"", &work);
        let system = described(at.cpus[0], &tables).with_threads_as_tasks();
        let are = move || both.map(|tid| sched::get(Some(tid)).expect("it is there"));
        let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), move |job| {
            // What is not its own is not taken in later, either.
            job.operation == "high" && job.instance > 10 && are() == of_both
        });
        assert_eq!(are(), [Policy::Other, Policy::Other], "{key}: they have back what they had");
        let member = &ran.outcome.hierarchies[0].members[0];
        assert_eq!(member.policy, Some(of_both[0].to_string()), "{key}");
        rustix::process::kill_process(both[1], rustix::process::Signal::KILL).expect("it lives");
    }
}

/// A child that the description schedules by itself is not its parent's, in whatever order they stand there.
#[test]
fn a_process_and_its_child_have_each_their_own_policy() {
    let Some((_alone, at)) = stage(1) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let note = folder.path().join("child");
    let [shell, arguments @ ..] = parent(&note);
    let program = Program(std::process::Command::new(shell).args(arguments).spawn().expect("a shell"));
    let mut child = None;
    eventually("the child is named", || {
        child = child_of(&note);
        child.is_some()
    });
    let child = child.expect("it is");
    let both = [Tid::from_raw(program.id() as i32).expect("a process has a number"), child];
    let tables = PRIORITIES
        .replace("work = \"cpu-bound\"", &format!("pid = {}", both[0]))
        .replace("work = { burst = \"2ms\", period = \"15ms\" }", &format!("pid = {child}"));
    let system = described(at.cpus[0], &tables).with_threads_as_tasks();
    let are = move || both.map(|tid| sched::get(Some(tid)).expect("it is there"));
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), move |job| {
        job.operation == "high" && job.instance > 20 && are() == [Policy::Fifo(10), Policy::Fifo(11)]
    });
    assert_eq!(are(), [Policy::Other, Policy::Other], "they have back what they had");
    let members = &ran.outcome.hierarchies[0].members;
    assert!(members.iter().all(|member| member.changes.are_none()), "{members:?}");
    rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("it lives");
}

#[test]
fn what_others_change_of_a_process_is_put_back_and_told() {
    let Some((_alone, at)) = stage(1) else { return };
    let program = Program::start();
    let tid = Tid::from_raw(program.id() as i32).expect("a process has a number");
    let all = affinity::get(Some(tid)).expect("it is there");
    let tables = PRIORITIES.replace("work = \"cpu-bound\"", &format!("pid = {}", program.id()));
    let (cpu, everywhere) = (at.cpus[0], all.clone());
    let system = described(cpu, &tables).with_threads_as_tasks();
    let mut is_changed = false;
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), move |job| {
        if job.instance < 3 {
            return false;
        }
        if !std::mem::replace(&mut is_changed, true) {
            affinity::set(Some(tid), &everywhere).expect("anybody may");
            sched::set_thread(tid, Policy::Fifo(5)).expect("who may give it may change it");
        }
        (sched::get(Some(tid)), affinity::get(Some(tid))) == (Ok(Policy::Fifo(10)), Ok(vec![cpu]))
    });
    let changes = ran.outcome.hierarchies[0].members[0].changes;
    assert_eq!((changes.priorities, changes.processors), (1, u64::from(all.len() > 1)));
    assert_eq!((sched::get(Some(tid)), affinity::get(Some(tid))), (Ok(Policy::Other), Ok(all)));
}

#[test]
fn a_command_starts_and_ends_with_the_run() {
    let Some((_alone, at)) = stage(1) else { return };
    let command = "run = [\"sh\", \"-c\", \"ulimit -t 60; while :; do :; done\"]";
    let system = described(at.cpus[0], &PRIORITIES.replace("work = \"cpu-bound\"", command));
    let system = system.with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("high", 10));
    let member = &ran.outcome.hierarchies[0].members[0];
    assert!(member.received_ns > 0 && member.exit.is_none(), "{member:?}");
    let tid = ran.outcome.threads.iter().find(|thread| thread.name == "low").expect("it is told").tid;
    assert!(sched::get(Tid::from_raw(tid)).is_err(), "it has ended");
    let gone = PRIORITIES.replace("work = \"cpu-bound\"", "run = [\"true\"]");
    let system = described(at.cpus[0], &gone).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("low", 0));
    let exit = ran.outcome.hierarchies[0].members[0].exit.as_deref();
    assert_eq!(exit, Some("exit status: 0"));
}

#[test]
fn the_children_of_a_command_have_its_policy_and_end_with_the_run() {
    let Some((_alone, at)) = stage(1) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let note = folder.path().join("child");
    let command = format!("run = {:?}", parent(&note));
    let system = described(at.cpus[0], &PRIORITIES.replace("work = \"cpu-bound\"", &command));
    let system = system.with_threads_as_tasks();
    let started = note.clone();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), move |_| {
        let child = child_of(&started);
        child.is_some_and(|child| sched::get(Some(child)) == Ok(Policy::RoundRobin(10)))
    });
    let child = child_of(&note).expect("it was started");
    eventually("the child has ended with the run", || !lives(child));
    let member = &ran.outcome.hierarchies[0].members[0];
    assert!(member.received_ns > 0 && member.exit.is_none(), "{member:?}");
}

#[test]
fn what_cannot_be_lowered_stays_and_says_why() {
    let Some((_alone, at)) = stage(1) else { return };
    let tables = PRIORITIES
        .replace("name = \"inner\"\nkind = \"fixed-priority\"", "name = \"inner\"\nkind = \"sfq\"")
        .replace("\"inner\", priority = ", "\"inner\", share = ")
        .replace("\"FP\", priority = 2", "\"FP\", priority = 9");
    let system = described(at.cpus[0], &tables).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("high", 5));
    let hierarchy = &ran.outcome.hierarchies[0];
    assert_eq!(hierarchy.scheduled_by, ScheduledBy::Infrastructure);
    let why = |name: &str| {
        let part = hierarchy.lowering.iter().find(|part| part.name == name).expect("a part");
        part.stays_because.clone().unwrap_or_default()
    };
    assert!(why("inner").contains("do not bound"), "{}", why("inner"));
    assert!(why("low").contains("beside inner, which stays"), "{}", why("low"));
    assert!(why("high").contains("below inner, which stays"), "{}", why("high"));
}

/// Nothing is left behind by a run that does not come about.
#[test]
fn a_refused_program_leaves_the_others_as_they_were() {
    let Some((_alone, at)) = stage(1) else { return };
    let program = Program::start();
    let tid = Tid::from_raw(program.id() as i32).expect("a process has a number");
    let before = (sched::get(Some(tid)), affinity::get(Some(tid)));
    let tables = PRIORITIES
        .replace("work = \"cpu-bound\"", &format!("pid = {}", program.id()))
        .replace("work = { burst = \"1ms\", period = \"10ms\" }", "run = [\"/nowhere/at-all\"]");
    let system = described(at.cpus[0], &tables);
    let refused = Executive::prepare(&system, Operations::synthetic(), options(RtMode::Warn, 1_000));
    let Err(PrepareError::Hierarchy { source, .. }) = refused else { panic!("{refused:?}") };
    assert!(matches!(*source, HierarchyError::Admit(_)), "{source}");
    eventually("it has back what it had", || (sched::get(Some(tid)), affinity::get(Some(tid))) == before);
}

/// Ordinary threads need no permission, and get none.
#[test]
fn ordinary_threads_run_without_real_time_priorities() {
    let tables = "
[[scheduler]]
name = \"CFS\"
kind = \"linux\"
[[thread]]
name = \"clock\"
work = { burst = \"0.1ms\", period = \"5ms\" }
under = [{ scheduler = \"CFS\" }]
[[thread]]
name = \"batch\"
work = \"cpu-bound\"
under = [{ scheduler = \"CFS\" }]
";
    let system = described(affinity::allowed().unwrap()[0], tables).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Off, 0), ended("clock", 5));
    assert_eq!(policies(&ran, &["clock", "batch", "rel:ruled"]), ["SCHED_OTHER"; 3]);
    assert_eq!(ran.outcome.hierarchies[0].scheduled_by, ScheduledBy::Kernel);
    let system = described(affinity::allowed().unwrap()[0], PRIORITIES);
    let refused = Executive::prepare(&system, Operations::synthetic(), options(RtMode::Off, 1_000));
    let Err(PrepareError::Hierarchy { source, .. }) = refused else { panic!("{refused:?}") };
    assert!(matches!(*source, HierarchyError::NotEnforceable { .. }), "{source}");
}
