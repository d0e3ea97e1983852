//! Lanes below other schedulers: when they have a processor is not theirs, and what they do with it is judged as anywhere.

use crate::replay::Everything;
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use talea_insight::verify::{Rule, Verifier, VerifyReport};
use talea_model::{
    Description, Execution, Request, Scheduler, SchedulerKind, Settings, System, Thread, ThreadWork, Under,
};
use talea_policy::strategy::plan_lanes_of;
use talea_record::{Event, Metadata, Record, Sink, SkipReason};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant, Work};

const UNTIL: i64 = 300;

/// The same system with the lanes of each node below a reservation that does not always let them run.
fn hung_up(system: &System) -> System {
    let mut description: Description = (**system).clone();
    for node in 0..description.nodes.len() {
        description.nodes[node].cpus.truncate(1);
        let root = description.schedulers.len();
        let under = |amount: &str| {
            let request = Request::Guarantee(amount.parse().expect("a guarantee"));
            vec![Under { scheduler: root, request }]
        };
        let scheduler = |name: &str, kind, under| Scheduler {
            name: format!("{name}-{node}"),
            node,
            kind,
            quantum: None,
            takes: None,
            settings: Settings::of(kind),
            under,
        };
        description.schedulers.extend([
            scheduler("root", SchedulerKind::RESERVATION, Vec::new()),
            scheduler("lanes", SchedulerKind::LANES, under("RESBH 6ns 10ns")),
        ]);
        let burst = Execution::Constant(Work::from_nanos(2));
        description.threads.push(Thread {
            name: format!("ticker-{node}"),
            node,
            work: ThreadWork::Bursts { burst, period: Duration::from_nanos(10) },
            requires: None,
            under: under("RESBH 3ns 10ns"),
        });
    }
    System::new(description).unwrap_or_else(|violations| panic!("{violations:?}"))
}

fn simulated(system: &System) -> (Metadata, Vec<Record>) {
    let simulation = Simulation::new(system).expect("no anomalies").with_dispatch(DispatchRecords::Kept);
    let (metadata, mut simulation) = (simulation.metadata().clone(), simulation);
    let mut everything = Everything::default();
    simulation.advance(Instant::from_nanos(UNTIL), &mut everything);
    simulation.finish(&mut everything);
    (metadata, everything.0)
}

fn verified(metadata: &Metadata, records: &[Record], asked: &System) -> VerifyReport {
    let executed = asked.with_threads_as_tasks();
    let plans = plan_lanes_of(&executed).expect("no anomalies");
    let mut verifier =
        Verifier::new(metadata, &executed, &plans, Duration::ZERO).expect("it is the same system");
    records.iter().for_each(|record| verifier.record(*record));
    verifier.finish()
}

/// Below other schedulers there is room for systems without jobs of no time, on one processor a node.
const SCOPE: Scope = Scope { processors: 1, ..Scope::GUARDED };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_simulated_trace_of_lanes_below_schedulers_is_clean(system in systems(SCOPE)) {
        let system = hung_up(&system);
        let (metadata, records) = simulated(&system);
        let report = verified(&metadata, &records, &system);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
        let of_tasks = |record: &&Record| {
            record.event == Event::RELEASE && !metadata.lanes[usize::from(record.source)].is_thread()
        };
        let released = records.iter().filter(of_tasks).count();
        prop_assert_eq!((report.jobs, report.unjudged), (released as u64, 0));
        for rule in Rule::OF_PROCESSORS {
            prop_assert!(report.without_case().all(|other| other != rule), "{:?} was not judged", rule);
        }
    }
}

/// One node; `tasks` are name, period, deadline, phase, execution and more.
fn system(settings: &str, tasks: &[(&str, i64, i64, i64, i64, &str)]) -> System {
    let mut text = format!("[system]\nname = \"below\"\n{settings}\n[[node]]\nname = \"one\"\ncpus = [0]\n");
    for (name, period, deadline, phase, exec, rest) in tasks {
        text.push_str(&format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}ns\"\ndeadline = \"{deadline}ns\"\nphase = \"{phase}ns\"\nwcet = \"{exec}ns\"\n{rest}\n"
        ));
    }
    hung_up(&talea_model::parse("below.toml", &text, std::path::Path::new(".")).expect("a system").system)
}

fn broken(report: &VerifyReport) -> Vec<Rule> {
    report.rules.iter().filter(|rule| rule.violations > 0).map(|rule| rule.rule).collect()
}

/// What is found in a trace of `ran` if `asked`, which has the same lanes, should have run.
fn compared(ran: &System, asked: &System) -> VerifyReport {
    let (metadata, records) = simulated(ran);
    verified(&metadata, &records, asked)
}

const PEERS: [(&str, i64, i64, i64, i64, &str); 2] =
    [("long", 100, 90, 0, 30, ""), ("short", 100, 20, 10, 5, "")];

#[test]
fn order_and_preemption_are_judged() {
    let keeps = system("strategy = \"edf\"\nlane_dispatch = \"nonpreemptive\"", &PEERS);
    let preempts = system("strategy = \"edf\"\nlane_dispatch = \"preemptive\"", &PEERS);
    assert_eq!(broken(&compared(&keeps, &keeps)), []);
    assert_eq!(broken(&compared(&preempts, &keeps)), [Rule::NonPreemption]);
    assert_eq!(broken(&compared(&keeps, &preempts)), [Rule::Order]);
    let late = |late: &str| {
        let tasks =
            [("busy", 200, 200, 0, 30, ""), ("late", 200, 10, 1, 10, ""), ("timely", 200, 150, 2, 10, "")];
        system(&format!("strategy = \"edf\"\nlate = \"{late}\""), &tasks)
    };
    assert_eq!(broken(&compared(&late("last"), &late("none"))), [Rule::Order]);
}

#[test]
fn overruns_are_judged() {
    let of = |policy: &str| system("strategy = \"edf\"", &[("slow", 10, 40, 0, 15, policy)]);
    let policies = ["overrun = \"queue\"", "overrun = \"skip-next\"", "overrun = \"abort\""];
    for ran in policies {
        for asked in policies {
            let expected: &[Rule] = if ran == asked { &[] } else { &[Rule::Overrun] };
            assert_eq!(broken(&compared(&of(ran), &of(asked))), expected, "{ran} {asked}");
        }
    }
    // A skip for which there is no reason.
    let system = of("overrun = \"skip-next\"");
    let (metadata, mut records) = simulated(&system);
    let release = records
        .iter()
        .position(|record| record.event == Event::RELEASE && record.job().operation.index() == 0)
        .expect("released");
    (records[release].event, records[release].arg) = (Event::SKIP, SkipReason::Overrun as u16);
    let job = records[release].causal;
    records.retain(|record| record.event == Event::SKIP || record.causal != job || !record.event.is_job());
    assert!(broken(&verified(&metadata, &records, &system)).contains(&Rule::Overrun));
}

#[test]
fn precedence_is_judged() {
    let text = "[system]\nname = \"below\"\nstrategy = \"edf\"\n[[node]]\nname = \"one\"\ncpus = [0]\n\
                [[task]]\nname = \"chain\"\nperiod = \"50ns\"\n\
                [[task.subtask]]\nname = \"a\"\nwcet = \"5ns\"\n[[task.subtask]]\nname = \"b\"\nwcet = \"5ns\"\n";
    let parsed = talea_model::parse("below.toml", text, std::path::Path::new(".")).expect("a system");
    let system = hung_up(&parsed.system);
    let (metadata, mut records) = simulated(&system);
    assert_eq!(broken(&verified(&metadata, &records, &system)), []);
    let successor = records
        .iter()
        .position(|record| record.event == Event::RELEASE && record.job().operation.index() == 1)
        .expect("released");
    let early = records[successor].time.saturating_add(Duration::from_nanos(-1));
    records[successor].time = early;
    records[successor].words[0] = early.as_nanos() as u64;
    records.sort_by_key(|record| record.time);
    assert!(broken(&verified(&metadata, &records, &system)).contains(&Rule::Precedence));
}
