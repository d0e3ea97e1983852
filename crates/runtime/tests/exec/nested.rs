//! Tasks in lanes below other schedulers. That lanes keep their orders there, the conformance tests of the simulator and the
//! runtime say; here it is what the schedulers above do to them, and what their jobs may do.

use super::hierarchy::described;
use super::*;
use crate::programs::stage;
use talea_insight::accounting::HierarchyReport;
use talea_model::Criticality;
use talea_policy::arrangement::Kept;
use talea_record::event::{Complete, Trigger, Typed};
use talea_runtime::lowering::Band;
use talea_runtime::{Declaration, JobContext, PostingRoom, Slicing};

/// Lanes with a reservation, a thread with another, and one that takes what is left.
const RESERVED: &str = "
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
under = [{ scheduler = \"FP\", priority = 2 }]
[[scheduler]]
name = \"jobs\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 8ms 20ms\" }]
[[thread]]
name = \"video\"
work = { burst = \"1ms\", period = \"20ms\" }
under = [{ scheduler = \"RES\", guarantee = \"RESBH 2ms 20ms\" }]
[[thread]]
name = \"hog\"
work = \"cpu-bound\"
under = [{ scheduler = \"FP\", priority = 1 }]
";

/// Two lanes, and a chain from the lower into the higher one and back.
const TASKS: &str = "
[[task]]
name = \"fast\"
period = \"20ms\"
criticality = \"high\"
wcet = \"1ms\"
[[task]]
name = \"chain\"
period = \"40ms\"
criticality = \"low\"
  [[task.subtask]]
  name = \"first\"
  wcet = \"2ms\"
  [[task.subtask]]
  name = \"second\"
  wcet = \"1ms\"
";

/// More than any processor has.
const OVERLOAD: &str = "
[[task]]
name = \"endless\"
period = \"10ms\"
criticality = \"low\"
wcet = \"25ms\"
";

fn synthetic(system: &System, over: impl FnMut(&FinishedJob<'_>) -> bool + Send + 'static) -> Ran {
    run_until(system, Operations::synthetic(), options(RtMode::Warn, 0), over)
}

fn edge(ran: &Ran, child: &str) -> Kept {
    let edges = |hierarchy: &HierarchyReport| hierarchy.edges.clone();
    let mut edges = ran.outcome.report.hierarchies.iter().flat_map(edges);
    edges.find(|edge| edge.child == child).expect("an edge")
}

/// What an edge was granted, by the hierarchy's account.
fn granted(ran: &Ran, child: &str) -> i64 {
    let edge = edge(ran, child);
    edge.received_ns + edge.receipts.map_or(0, |receipts| receipts.withheld_ns)
}

/// Jobs and bursts never run two at a time on one processor, by the records of lanes and of the hierarchy together.
fn one_at_a_time(ran: &Ran) {
    let mut running: Option<JobId> = None;
    for (position, record) in ran.records.iter().enumerate() {
        let job = record.job();
        let before = || -> Vec<String> {
            let around = &ran.records[position.saturating_sub(12)..=position];
            let jobs = around.iter().filter(|record| record.event.0 >> 8 == 1);
            jobs.map(|record| {
                let (event, job) = (record.event.name().unwrap_or("?"), record.job());
                format!("{} {event} {}#{}", record.time, ran.name(job), job.instance)
            })
            .collect()
        };
        match record.event {
            Event::START | Event::RESUME => {
                // A job that is cut short by the end of the run leaves no record of that.
                let mut later = ran.records[position..].iter().filter(|record| record.event.0 >> 8 == 1);
                let cut_short = |job| later.all(|record| record.job() != job);
                assert!(running.is_none_or(cut_short), "beside another: {:#?}", before());
                running = Some(job);
            }
            Event::PREEMPT | Event::COMPLETE => {
                assert_eq!(running, Some(job), "without having run: {:#?}", before());
                running = None;
            }
            _ => {}
        }
    }
}

#[test]
fn lanes_beside_a_hog_do_all_their_jobs_and_all_of_it_is_told() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], &format!("{RESERVED}{TASKS}")).with_threads_as_tasks();
    let ran = synthetic(&system, completed(["fast", "chain.second", "video"], 30));
    one_at_a_time(&ran);
    let report = &ran.outcome.report;
    for name in ["fast", "chain.first", "chain.second", "video"] {
        let operation = report.operations.iter().find(|operation| operation.name == name).expect("there");
        assert_eq!(ran.count(Event::COMPLETE, name) as u64, operation.completed, "{name}");
        assert!(operation.completed >= 30, "{name}");
    }
    for k in 0..30 {
        let job = |event, name| ran.position(event, name, k).unwrap_or_else(|| panic!("{name}#{k}"));
        assert!(job(Event::COMPLETE, "chain.first") < job(Event::RELEASE, "chain.second"));
    }
    for mark in [Event::RUN_START, Event::RUN_END] {
        assert_eq!(ran.records.iter().filter(|record| record.event == mark).count(), 1, "{mark:?}");
    }
    assert!(report.lanes.iter().filter(|lane| lane.discipline != "thread").all(|lane| lane.busy_ns > 0));
    assert!(ran.outcome.mishaps == talea_runtime::Mishaps::default(), "{:?}", ran.outcome.mishaps);
    assert_eq!(ran.outcome.hierarchies[0].members.len(), 2, "lanes are no threads of the description");
}

/// By the hierarchy's own account, which does not depend on the machine: lanes that want everything get their reservation in
/// every period that the run touches, and no more.
#[test]
fn lanes_get_no_more_than_is_reserved_for_them() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], &format!("{RESERVED}{OVERLOAD}")).with_threads_as_tasks();
    let ran = synthetic(&system, ended("video", 25));
    one_at_a_time(&ran);
    let periods = ran.outcome.report.duration_ns / 20_000_000 + 2;
    let lanes = granted(&ran, "jobs");
    assert!(lanes > 0 && lanes <= periods * 8_000_000, "{lanes} ns in {periods} periods");
    let done = ran.count(Event::COMPLETE, "endless") as i64 * 25_000_000;
    let received = edge(&ran, "jobs").received_ns;
    assert!(done <= received, "{done} ns of work in {received} ns");
    assert!(ran.count(Event::PREEMPT, "endless") > 0, "a job outlasts its budget");
    assert!(granted(&ran, "hog") > 0, "the rest is the hog's");
}

/// The longest turn of a thread that always wants the processor, and the longest of those without it.
fn longest_turns(ran: &Ran, name: &str) -> (i64, i64) {
    let is_turn = |event| matches!(event, Event::START | Event::RESUME | Event::PREEMPT);
    let of_thread = |record: &&Record| {
        is_turn(record.event) && ran.name(record.job()) == name || record.event == Event::RUN_END
    };
    let mut longest = (0, 0);
    let mut since: Option<&Record> = None;
    for record in ran.records.iter().filter(of_thread) {
        if let Some(since) = since.replace(record) {
            let turn = (record.time - since.time).as_nanos();
            match since.event {
                Event::PREEMPT => longest.1 = turn.max(longest.1),
                _ => longest.0 = turn.max(longest.0),
            }
        }
    }
    longest
}

/// How long no job of the lanes was released and unfinished, from the first release on: release threads may be late.
fn without_jobs(ran: &Ran, hog: &str) -> i64 {
    let (mut pending, mut sum) = (0u64, 0);
    let mut since: Option<talea_time::Instant> = None;
    for record in ran.records.iter().filter(|record| record.event.is_job() && ran.name(record.job()) != hog) {
        match record.event {
            Event::RELEASE => {
                pending += 1;
                sum += since.take().map_or(0, |since| (record.time - since).as_nanos());
            }
            Event::COMPLETE | Event::ABORT => {
                pending -= 1;
                since = (pending == 0).then_some(record.time);
            }
            _ => {}
        }
    }
    sum
}

/// From where the lanes with `task` left to the end of the run, which comes as soon as its thread runs.
fn without_lanes(ran: &Ran, task: &str) -> i64 {
    let last = |is_one: &dyn Fn(&&Record) -> bool| ran.records.iter().rfind(is_one).map(|record| record.time);
    let end = last(&|record| record.event == Event::RUN_END).expect("recorded");
    let is_turn = |record: &&Record| {
        matches!(record.event, Event::START | Event::RESUME) && ran.name(record.job()) == task
    };
    let left = last(&|record| record.event == Event::VP_RELEASE).filter(|left| last(&is_turn) < Some(*left));
    left.map_or(0, |left| (end - left).as_nanos())
}

/// By the hierarchy's own account: of two that always want the processor neither is ahead by more than the longest turn of each, as
/// start-time fair queuing promises (Goyal, Guo and Vin 1996, Theorem 1). The kernel stretches a turn by keeping real-time threads
/// from the processor in the middle of it.
#[test]
fn a_hog_beside_lanes_gets_no_more_than_its_share() {
    let Some((_alone, at)) = stage(1) else { return };
    let shares = "
[[scheduler]]
name = \"PS\"
kind = \"proportional-share\"
quantum = \"2ms\"
[[scheduler]]
name = \"jobs\"
kind = \"lanes\"
under = [{ scheduler = \"PS\", share = 3 }]
[[thread]]
name = \"hog\"
work = \"cpu-bound\"
under = [{ scheduler = \"PS\", share = 1 }]
";
    let system = described(at.cpus[0], &format!("{shares}{OVERLOAD}")).with_threads_as_tasks();
    let ran = synthetic(&system, ended("endless", 36));
    one_at_a_time(&ran);
    let (lanes, hog) = (granted(&ran, "jobs"), granted(&ran, "hog"));
    assert!(lanes > 0 && hog > 0, "{lanes} and {hog}");
    let (longest, longest_without) = longest_turns(&ran, "hog");
    assert!(longest > 0 && longest_without > 0, "they take turns");
    // Until the first job arrives the hog is alone, and when the lanes have left at the end.
    let time_of = |event| ran.records.iter().find(|record| record.event == event).expect("recorded").time;
    let job = ran.position(Event::START, "endless", 0).expect("it starts");
    let alone =
        (ran.records[job].time - time_of(Event::RUN_START)).as_nanos() + without_lanes(&ran, "endless");
    let bound = 3 * (longest + alone + without_jobs(&ran, "hog")) + longest_without;
    assert!(
        (3 * hog - lanes).abs() <= bound,
        "{hog} and {lanes} ns, in turns of {longest} and {longest_without} ns"
    );
}

/// What a user's code does in a job may block; the processor is somebody else's meanwhile, and the job goes on afterwards.
#[test]
fn a_job_that_blocks_lets_others_run_and_ends() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], &format!("{RESERVED}{TASKS}")).with_threads_as_tasks();
    let pause = std::time::Duration::from_millis(2);
    let first = move |_: &JobContext<'_>| std::thread::sleep(pause);
    let operations = Operations::synthetic().with("chain.first", first);
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), completed(["chain.second"], 20));
    one_at_a_time(&ran);
    assert!(ran.count(Event::PREEMPT, "chain.first") > 0, "it lost the processor while it slept");
    assert!(ran.count(Event::RESUME, "chain.first") > 0);
    assert!(ran.outcome.mishaps.panics.is_empty());
}

/// Also one that has nothing to do any more when it wakes has got the processor again before it ends, whoever has it meanwhile.
#[test]
fn a_job_that_ends_as_soon_as_it_wakes_has_gone_on_before() {
    let Some((_alone, at)) = stage(1) else { return };
    let alone = TASKS.replace("40ms", "5ms").replace("20ms", "5ms").replace("1ms", "0.1ms");
    let of_priority = "
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
[[scheduler]]
name = \"jobs\"
kind = \"lanes\"
under = [{ scheduler = \"FP\", priority = 1 }]
";
    for schedulers in [of_priority, RESERVED] {
        let system = described(at.cpus[0], &format!("{schedulers}{alone}")).with_threads_as_tasks();
        let first = |_: &JobContext<'_>| std::thread::sleep(std::time::Duration::from_micros(50));
        let operations = Operations::synthetic().with("chain.first", first);
        let ran = run_until(&system, operations, options(RtMode::Warn, 0), completed(["chain.second"], 200));
        one_at_a_time(&ran);
        assert!(ran.count(Event::RESUME, "chain.first") > 0);
    }
}

/// Nobody could release anything while the hierarchy grants the processor to somebody.
#[test]
fn a_release_thread_that_is_not_above_the_hierarchy_is_refused() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], &format!("{RESERVED}{TASKS}"));
    let band = Band { top: 13, bottom: 1 };
    let options = RunOptions { band, ..options(RtMode::Warn, 100) };
    let refused =
        Executive::prepare(&system, Operations::synthetic(), options).expect_err("refused").to_string();
    assert!(refused.contains("SCHED_FIFO 10 to 13") && refused.contains("raise the top"), "{refused}");
}

/// The instance that is given up waits, or is told; either way the lane goes on.
#[test]
fn overruns_are_dealt_with_as_in_lanes_of_their_own() {
    let Some((_alone, at)) = stage(1) else { return };
    for (policy, event) in [("abort", Event::ABORT), ("skip-next", Event::SKIP)] {
        let task = OVERLOAD.replace("wcet", &format!("overrun = \"{policy}\"\nwcet"));
        let system = described(at.cpus[0], &format!("{RESERVED}{task}")).with_threads_as_tasks();
        let ran = synthetic(&system, ended("endless", 20));
        assert!(ran.count(event, "endless") >= 5, "{policy}");
        let unfinished = ran.count(Event::RELEASE, "endless")
            - ran.count(Event::COMPLETE, "endless")
            - ran.count(Event::ABORT, "endless");
        assert!(unfinished <= 2, "{policy}: {unfinished} jobs are left over");
    }
}

/// A maximum that is promised to the lanes holds their threads, also where nobody else wants the processor.
#[test]
fn lanes_with_a_maximum_are_held() {
    let Some((_alone, at)) = stage(1) else { return };
    let alone = "
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
[[scheduler]]
name = \"jobs\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 4ms 20ms\" }]
[[thread]]
name = \"clock\"
work = { burst = \"0.1ms\", period = \"20ms\" }
under = [{ scheduler = \"RES\", guarantee = \"RESBH 1ms 20ms\" }]
";
    let system = described(at.cpus[0], &format!("{alone}{OVERLOAD}")).with_threads_as_tasks();
    let ran = synthetic(&system, ended("clock", 25));
    let done = ran.count(Event::COMPLETE, "endless") as f64 * 25e6;
    let share = done / ran.outcome.report.duration_ns as f64;
    assert!(share < 0.3, "{share} of the processor, which is idle otherwise");
}

fn mostly_in_time(ran: &Ran, name: &str) {
    let jobs: Vec<Complete> = ran.of(Event::COMPLETE, name).filter_map(Complete::read).collect();
    let ends = ran.of(Event::COMPLETE, name).map(|record| record.time);
    let in_time = ends.zip(&jobs).filter(|(end, job)| *end <= job.deadline).count();
    assert!(2 * in_time > jobs.len(), "{in_time} of {} jobs of {name} in time", jobs.len());
}

/// The jobs of lanes that reserve nothing have time constraints below a scheduler that plans: a thread that takes turns of five periods
/// delays them only where they are refused, as where the machine stood still until too little was left before the deadline. Without
/// constraints at most the last of five would be in time.
#[test]
fn jobs_in_lanes_that_reserve_nothing_have_time_constraints() {
    let Some((_alone, at)) = stage(1) else { return };
    for kind in ["rialto", "spring"] {
        let tables = format!(
            "[[scheduler]]\nname = \"S\"\nkind = \"{kind}\"\nquantum = \"100ms\"\n\
             [[scheduler]]\nname = \"jobs\"\nkind = \"lanes\"\nunder = [{{ scheduler = \"S\" }}]\n\
             [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{{ scheduler = \"S\" }}]\n\
             [[task]]\nname = \"fast\"\nperiod = \"20ms\"\ncriticality = \"high\"\nwcet = \"6ms\"\nexec = \"1ms\"\n\
             [[task]]\nname = \"slow\"\nperiod = \"50ms\"\ncriticality = \"low\"\n\
             [[task.subtask]]\nname = \"a\"\nwcet = \"6ms\"\nexec = \"2ms\"\n\
             [[task.subtask]]\nname = \"b\"\nwcet = \"6ms\"\nexec = \"2ms\"\n"
        );
        let system = described(at.cpus[0], &tables).with_threads_as_tasks();
        let ran = synthetic(&system, completed(["fast", "slow.b"], 30));
        one_at_a_time(&ran);
        mostly_in_time(&ran, "fast");
        mostly_in_time(&ran, "slow.b");
        assert!(granted(&ran, "hog") > granted(&ran, "jobs"), "{kind}: what is left");
    }
}

/// Of jobs that are released together, and of those that come while another waits for its turn, the lane asks for the first by its own
/// order, although its thread does not run.
#[test]
fn a_lane_that_waits_asks_for_its_most_urgent_job() {
    let Some((_alone, at)) = stage(1) else { return };
    // The long one is always refused.
    let tables = "[[scheduler]]\nname = \"S\"\nkind = \"rialto\"\nquantum = \"200ms\"\n\
         [[scheduler]]\nname = \"jobs\"\nkind = \"lanes\"\nunder = [{ scheduler = \"S\" }]\n\
         [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"S\" }]\n\
         [[task]]\nname = \"long\"\nperiod = \"100ms\"\ndeadline = \"90ms\"\nwcet = \"91ms\"\nexec = \"1ms\"\n\
         overrun = \"skip-next\"\n\
         [[task]]\nname = \"short\"\nperiod = \"50ms\"\ndeadline = \"40ms\"\nwcet = \"10ms\"\nexec = \"1ms\"\n";
    let head = format!(
        "[system]\nname = \"ruled\"\nstrategy = \"edf\"\n[[node]]\nname = \"ruled\"\ncpus = [{}]\n",
        at.cpus[0]
    );
    let parsed = talea_model::parse("ruled.toml", &format!("{head}{tables}"), std::path::Path::new("."));
    let system = parsed.expect("a system").system.with_threads_as_tasks();
    // In slices the lane's thread is an ordinary one, which elects the long one then and waits with it for its turn.
    for slicing in [Slicing::Never, Slicing::WhereLimited] {
        let options = RunOptions { slicing, ..options(RtMode::Warn, 0) };
        let ran = run_until(&system, Operations::synthetic(), options, completed(["short"], 30));
        one_at_a_time(&ran);
        mostly_in_time(&ran, "short");
        let is_limited =
            slicing == Slicing::WhereLimited && talea_manage::Options::on(&at.cpus).slices.is_some();
        assert_eq!(slices_are_told(&ran) > 0, is_limited, "{slicing:?}");
    }
}

/// How many slices the records tell of. What is revoked for one is revoked in one, and each ends before the next begins.
fn slices_are_told(ran: &Ran) -> usize {
    let (mut slices, mut is_away) = (0, false);
    for record in &ran.records {
        match record.typed() {
            Typed::Supply(supply) => {
                assert_eq!(supply.given.0, is_away, "{record:?}");
                is_away = !supply.given.0;
                slices += usize::from(is_away);
            }
            Typed::VpRevoke(revoke) if revoke.trigger == Trigger::Supply => assert!(is_away, "{record:?}"),
            Typed::VpGrant(grant) => assert!(!is_away, "{grant:?} in a slice, at {}", record.time),
            _ => {}
        }
    }
    slices
}

/// Two places for lanes, each with its reservation; the tasks of one want more than any processor has.
const PARTITIONS: &str = "
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
[[scheduler]]
name = \"flight\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 8ms 20ms\" }]
[[scheduler]]
name = \"cabin\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 6ms 20ms\" }]
[[task]]
name = \"steer\"
lanes = \"flight\"
period = \"20ms\"
criticality = \"high\"
wcet = \"1ms\"
[[task]]
name = \"movie\"
lanes = \"cabin\"
period = \"10ms\"
criticality = \"low\"
overrun = \"skip-next\"
wcet = \"25ms\"
[[task]]
name = \"request\"
period = \"40ms\"
  [[task.subtask]]
  name = \"ask\"
  lanes = \"cabin\"
  wcet = \"0.2ms\"
  [[task.subtask]]
  name = \"answer\"
  lanes = \"flight\"
  wcet = \"0.2ms\"
";

/// By the hierarchy's own account, which does not depend on the machine.
#[test]
fn each_of_several_lanes_has_what_is_reserved_for_it() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], PARTITIONS).with_threads_as_tasks();
    let ran = synthetic(&system, completed(["steer", "request.answer"], 15));
    one_at_a_time(&ran);
    let labels: Vec<&str> = ran.outcome.report.lanes.iter().map(|lane| lane.label.as_str()).collect();
    assert_eq!(labels, ["flight high 20ms", "flight medium", "cabin medium", "cabin low"]);
    let periods = ran.outcome.report.duration_ns / 20_000_000 + 2;
    let cabin = granted(&ran, "cabin");
    assert!(cabin > 0 && cabin <= periods * 6_000_000, "{cabin} ns in {periods} periods");
    assert!(ran.count(Event::PREEMPT, "movie") > 0, "a job outlasts its budget");
    let steered = ran.count(Event::COMPLETE, "steer") as i64 * 1_000_000;
    assert!(steered <= edge(&ran, "flight").received_ns, "{steered} ns of work in less time");
    for k in 0..15 {
        let job = |event, name| ran.position(event, name, k).unwrap_or_else(|| panic!("{name}#{k}"));
        assert!(job(Event::COMPLETE, "request.ask") < job(Event::RELEASE, "request.answer"));
    }
}

/// Jobs end about when the reservation of their lanes runs out, which have nobody beside them. So the thread of a lane often waits to say that its job
/// has ended when its processor is left idle.
const JUST_ENOUGH: &str = "
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
[[scheduler]]
name = \"jobs\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 1ms 2ms\" }]
[[task]]
name = \"short\"
period = \"2ms\"
overrun = \"skip-next\"
wcet = \"1.1ms\"
exec = { uniform = [\"0.75ms\", \"1.1ms\"] }
";

#[test]
fn no_job_of_a_limited_lane_ends_on_an_idle_processor() {
    let Some((_alone, at)) = stage(1) else { return };
    let ran = synthetic(&described(at.cpus[0], JUST_ENOUGH), completed(["short"], 500));
    one_at_a_time(&ran);
    assert!(ran.count(Event::PREEMPT, "short") > 0, "the reservation runs out in the midst of a job");
}

#[test]
fn who_posts_says_in_which_of_several_lanes() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], PARTITIONS).with_threads_as_tasks();
    let options = RunOptions {
        posting: PostingRoom { operations: 4, jobs: 8, posters: 1 },
        ..options(RtMode::Warn, 0)
    };
    let prepared = Executive::prepare(&system, Operations::synthetic(), options).expect("it can be prepared");
    let dispatcher = prepared.dispatcher();
    let urgent = |name: &str| {
        let (deadline, wcet) = (Duration::from_millis(5), Work::from_micros(10));
        Declaration::new(name, deadline).wcet(wcet).criticality(Criticality::Medium)
    };
    let told = |declaration| match dispatcher.declare(declaration, |_| ()) {
        Ok(_) => "declared".to_owned(),
        Err(error) => error.to_string(),
    };
    let unsaid = told(urgent("x"));
    assert!(unsaid.contains("say in which lanes it is") && unsaid.contains("flight, cabin"), "{unsaid}");
    let unknown = told(urgent("x").in_lanes("galley"));
    assert!(unknown.contains("no lanes \"galley\"") && unknown.contains("flight, cabin"), "{unknown}");
    assert_eq!(told(urgent("in-cabin").in_lanes("cabin")), "declared");
    assert_eq!(told(urgent("in-flight").in_lanes("flight")), "declared");
    assert_eq!(told(urgent("by-level").lane(3)), "declared");
    let elsewhere = told(urgent("y").lane(3).in_lanes("flight"));
    assert!(
        elsewhere.contains("no lane 3 under \"flight\"; its lanes are 0 (flight high 20ms)"),
        "{elsewhere}"
    );
    let low = told(urgent("z").in_lanes("flight").criticality(Criticality::VeryLow));
    assert!(low.contains("more urgent work (0 (flight high 20ms), 1 (flight medium))"), "{low}");
}
