use super::*;
use crate::lowering::machine::{Budgets, OrdinaryPart, Refusal, Reservations};
use proptest::prelude::*;
use std::path::Path;
use talea_policy::arrangement::{Arrangement, arrange};
use talea_policy::hierarchy::{Parameters, ProcessorId, VpId};
use talea_policy::job::Job;
use talea_policy::strategy::Plan;
use talea_time::Instant;

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

/// A kernel that offers everything.
fn generous() -> Machine {
    Machine {
        real_time: Ok(()),
        round_robin_slice: Some(ms(100)),
        ordinary: None,
        reservations: Ok(Reservations {
            budgets: Budgets::Punctual,
            bandwidth: 950_000,
            periods: Duration::from_micros(100)..=Duration::from_secs(4),
        }),
    }
}

fn system(tables: &str) -> System {
    let head = "[system]\nname = \"s\"\n";
    talea_model::parse("test.toml", &format!("{head}{tables}"), Path::new(".")).expect("a system").system
}

fn scheduler(name: &str, kind: &str, under: &str) -> String {
    format!("[[scheduler]]\nname = \"{name}\"\nkind = \"{kind}\"\n{}", asks(under))
}

fn asks(under: &str) -> String {
    match under {
        "" => String::new(),
        under => format!("under = [{{ scheduler = {under} }}]\n"),
    }
}

fn thread(name: &str, work: &str, under: &str) -> String {
    let work = match work {
        "" => "work = \"cpu-bound\"".into(),
        work if work.starts_with('[') => format!("run = {work}"),
        work => format!("work = {{ {work} }}"),
    };
    format!("[[thread]]\nname = \"{name}\"\n{work}\n{}", asks(under))
}

/// What becomes of these tables on this kernel: `name: form` or `name: - reason` for the obstacles.
fn outcomes(tables: &[String], machine: &Machine) -> Vec<String> {
    let lowering = lower_hierarchy(&system(&tables.concat()), 0, machine).expect("a hierarchy");
    if lowering.settings.is_none() {
        return lowering.obstacles().map(|(name, reason)| format!("{name}: - {reason}")).collect();
    }
    let of = |part: &Part| match &part.outcome {
        PartOutcome::Lowered(form) => format!("{}: {form}", part.name),
        PartOutcome::Stays(reason) => panic!("{} stays in a lowered hierarchy: {reason}", part.name),
    };
    lowering.parts.iter().map(of).collect()
}

/// Everything that is in the way, of which there is to be one with these words in it.
fn obstacle(tables: &[String], machine: &Machine, words: &str) {
    let outcomes = outcomes(tables, machine);
    let [outcome] = &outcomes[..] else { panic!("{outcomes:#?} instead of one obstacle") };
    assert!(outcome.contains(": - ") && outcome.contains(words), "\"{words}\" is not in\n{outcome}");
}

fn priorities() -> Vec<String> {
    vec![
        scheduler("FP", "fixed-priority", ""),
        thread("low", "", "\"FP\", priority = 1"),
        thread("high", "burst = \"1ms\", period = \"10ms\"", "\"FP\", priority = 9"),
    ]
}

fn reservations() -> Vec<String> {
    vec![
        scheduler("RES", "reservation", ""),
        thread("one", "burst = \"1ms\", period = \"10ms\"", "\"RES\", guarantee = \"RESBH 2ms 10ms\""),
        thread("two", "burst = \"3ms\", period = \"30ms\"", "\"RES\", guarantee = \"RESBH 5ms 25ms\""),
    ]
}

#[test]
fn fixed_priority_becomes_priorities() {
    assert_eq!(
        outcomes(&priorities(), &generous()),
        ["FP: priorities of the kernel", "low: SCHED_FIFO 10", "high: SCHED_FIFO 11"]
    );
    let settings =
        lower_hierarchy(&system(&priorities().concat()), 0, &generous()).unwrap().settings.unwrap();
    assert_eq!((settings.release, settings.above), (Policy::Fifo(12), 12));
    assert_eq!(settings.switches, Switches::Nested);
}

#[test]
fn nested_priorities_and_turns_are_flattened() {
    let tables = [
        scheduler("FP", "fixed-priority", ""),
        scheduler("inner", "fixed-priority", "\"FP\", priority = 5"),
        scheduler("first", "fifo", "\"inner\", priority = 2"),
        scheduler("turns", "round-robin", "\"FP\", priority = 1")
            .replace("robin\"", "robin\"\nquantum = \"100ms\""),
        thread("a", "", "\"first\""),
        thread("b", "", "\"first\""),
        thread("c", "", "\"inner\", priority = 1"),
        thread("d", "", "\"turns\""),
        thread("e", "", "\"turns\""),
        thread("top", "", "\"FP\", priority = 6"),
    ];
    assert_eq!(
        outcomes(&tables, &generous())[2..],
        [
            "first: SCHED_FIFO 12",
            "turns: SCHED_RR 10",
            "a: SCHED_FIFO 12",
            "b: SCHED_FIFO 12",
            "c: SCHED_FIFO 11",
            "d: SCHED_RR 10",
            "e: SCHED_RR 10",
            "top: SCHED_FIFO 13"
        ]
    );
    let settings = lower_hierarchy(&system(&tables.concat()), 0, &generous()).unwrap().settings.unwrap();
    let shared = |name: usize| settings.threads[name].level == Level::Shared;
    assert_eq!([0, 1, 2, 3, 4, 5].map(shared), [true, true, false, true, true, false]);
    assert_eq!(settings.switches, Switches::Unseen, "nobody tells when a slice is over");
    let coarse = Machine { round_robin_slice: Some(ms(12)), ..generous() };
    obstacle(&tables, &coarse, "turns: - its quantum is 100ms, but the kernel's slice is 12ms");
}

#[test]
fn one_thread_in_turn_is_alone() {
    let tables = [scheduler("RR", "round-robin", ""), thread("only", "[\"true\"]", "\"RR\"")];
    assert_eq!(outcomes(&tables, &generous()), ["RR: SCHED_FIFO 10", "only: SCHED_FIFO 10"]);
}

#[test]
fn hard_reservations_become_deadline_servers() {
    assert_eq!(
        outcomes(&reservations(), &generous()),
        ["RES: reservations of the kernel", "one: SCHED_DEADLINE 2ms/10ms", "two: SCHED_DEADLINE 5ms/25ms"]
    );
    let settings =
        lower_hierarchy(&system(&reservations().concat()), 0, &generous()).unwrap().settings.unwrap();
    let release =
        Policy::Deadline { runtime: RELEASE_BUDGET, deadline: RELEASE_PERIOD, period: RELEASE_PERIOD };
    assert_eq!((settings.release, settings.switches), (release, Switches::Unseen));
}

#[test]
fn reservations_come_first_or_not_at_all() {
    let below = |res: i32| {
        [
            scheduler("FP", "fixed-priority", ""),
            scheduler("RES", "reservation", &format!("\"FP\", priority = {res}")),
            thread("clock", "burst = \"1ms\", period = \"10ms\"", "\"FP\", priority = 2"),
            thread("video", "", "\"RES\", guarantee = \"RESBH 2ms 10ms\""),
        ]
    };
    assert_eq!(
        outcomes(&below(3), &generous())[2..],
        ["clock: SCHED_FIFO 10", "video: SCHED_DEADLINE 2ms/10ms"]
    );
    // Below somebody else a reservation is promised nothing, so that it does not compose either.
    let outcomes = outcomes(&below(1), &generous()).join("\n");
    assert!(
        outcomes.contains("does not compose") && outcomes.contains("here clock comes first"),
        "{outcomes}"
    );
}

#[test]
fn a_reservation_that_the_kernel_would_not_keep_stays() {
    let machine = |change: fn(&mut Reservations)| {
        let mut machine = generous();
        machine.reservations.iter_mut().for_each(change);
        machine
    };
    // 20 % and 20 % and the 5 % of the release thread.
    assert_eq!(outcomes(&reservations(), &machine(|offer| offer.bandwidth = 450_000)).len(), 3);
    let words = "45.0 % of a processor would be reserved, of which the kernel admits 45.0 %";
    obstacle(&reservations(), &machine(|offer| offer.bandwidth = 449_999), words);
    obstacle(
        &reservations(),
        &machine(|offer| offer.periods = ms(11)..=ms(100)),
        "\"one\": the kernel takes periods",
    );
    // These bursts are below their budgets, and no more frequent.
    let coarse = machine(|offer| offer.budgets = Budgets::AtTicks);
    assert!(outcomes(&reservations(), &coarse)[0].ends_with("reservations of the kernel"));
    for (from, to) in [
        ("burst = \"3ms\"", "burst = \"5ms\""),
        ("period = \"30ms\"", "period = \"24ms\""),
        ("{ burst = \"3ms\", period = \"30ms\" }", "\"cpu-bound\""),
    ] {
        let changed = reservations().concat().replace(from, to);
        obstacle(&[changed], &coarse, "\"two\" may come to the end of its budget");
    }
    let bound = Machine { reservations: Err(Refusal::RootDomain), ..generous() };
    obstacle(
        &reservations(),
        &bound,
        "may run on every cpu of their root domain alone, which is more than cpu 0",
    );
    let program =
        reservations().concat().replace("work = { burst = \"1ms\", period = \"10ms\" }", "run = [\"true\"]");
    obstacle(&[program], &generous(), "the kernel reserves for single threads");
}

#[test]
fn ordinary_threads_come_last_and_must_not_be_brought_forward() {
    let tables = |priority: i32, burst: &str| {
        [
            scheduler("FP", "fixed-priority", ""),
            scheduler("rest", "linux", &format!("\"FP\", priority = {priority}")),
            thread("clock", burst, "\"FP\", priority = 5"),
            thread("shell", "[\"true\"]", "\"rest\""),
            thread("batch", "", "\"rest\""),
        ]
    };
    let usual = OrdinaryPart { amount: Work::from_millis(50), period: ms(1_000) };
    let fair = Machine { ordinary: Some(usual), ..generous() };
    // At most 102 bursts in a second, of which 950 ms are safe.
    let little = tables(1, "burst = \"9ms\", period = \"10ms\"");
    assert_eq!(
        outcomes(&little, &fair)[1..],
        ["rest: SCHED_OTHER", "clock: SCHED_FIFO 10", "shell: SCHED_OTHER", "batch: SCHED_OTHER"]
    );
    for much in [tables(1, "burst = \"9.4ms\", period = \"10ms\""), tables(1, "")] {
        obstacle(&much, &fair, "50ms of each 1s before those that are to come first");
        assert!(
            outcomes(&much, &generous())[1].ends_with("SCHED_OTHER"),
            "a kernel that keeps nothing for them"
        );
    }
    obstacle(&tables(9, ""), &fair, "here clock comes behind them");
    let levels =
        tables(1, "").concat().replace("{ scheduler = \"rest\" }", "{ scheduler = \"rest\", priority = 3 }");
    obstacle(&[levels], &generous(), "no nice values");
}

#[test]
fn a_node_of_ordinary_threads_needs_no_privilege() {
    let refused = || "it needs CAP_SYS_NICE".to_string();
    let bare = Machine {
        real_time: Err(refused()),
        round_robin_slice: None,
        reservations: Err(Refusal::Other(refused())),
        ..generous()
    };
    let tables = [scheduler("CFS", "linux", ""), thread("a", "", "\"CFS\"")];
    assert_eq!(outcomes(&tables, &bare), ["CFS: SCHED_OTHER", "a: SCHED_OTHER"]);
    let settings = lower_hierarchy(&system(&tables.concat()), 0, &bare).unwrap().settings.unwrap();
    assert_eq!(settings.release, Policy::Other);
    for tables in [priorities(), reservations()] {
        obstacle(&tables, &bare, "it needs CAP_SYS_NICE");
    }
}

#[test]
fn several_processors_are_not_ordered_by_priority() {
    let mut tables = priorities();
    tables.insert(0, "[[node]]\nname = \"n\"\ncpus = [0, 1]\n".into());
    obstacle(&tables, &generous(), "its node has 2 cpus");
}

#[test]
fn nodes_that_share_a_processor_stay() {
    let mut tables = priorities();
    tables.insert(0, "[[node]]\nname = \"n\"\ncpus = [0]\n[[node]]\nname = \"m\"\ncpus = [0]\n".into());
    let tables = tables.concat().replace("kind = \"fixed", "node = \"n\"\nkind = \"fixed");
    obstacle(&[tables], &generous(), "cpu 0 is also that of node \"m\"");
}

#[test]
fn one_scheduler_that_stays_keeps_the_others() {
    let tables = [
        scheduler("FP", "fixed-priority", ""),
        scheduler("PS", "sfq", "\"FP\", priority = 3"),
        thread("clock", "", "\"FP\", priority = 2"),
        thread("a", "", "\"PS\", share = 1"),
    ];
    obstacle(&tables, &generous(), "PS: - the kernel's shares");
    let lowering = lower_hierarchy(&system(&tables.concat()), 0, &generous()).unwrap();
    let kept: Vec<_> = lowering.account().into_iter().map(|part| part.stays_because.is_some()).collect();
    assert_eq!(kept, [true; 4]);
    assert!(
        matches!(&lowering.parts[0].outcome, PartOutcome::Stays(Reason::BesideKept { with }) if with == "PS")
    );
}

#[test]
fn every_other_kind_says_why_it_stays() {
    for (kind, request) in [
        ("limit", ", guarantee = \"RESBH 1ms 10ms\""),
        ("proportional-share", ", share = 1"),
        ("eevdf", ", share = 1"),
        ("lottery", ", share = 1"),
        ("stride", ", share = 1"),
        ("tbs", ", guarantee = \"RESBS 1ms 10ms\""),
        ("resource-kernel", ", guarantee = \"RESBH 1ms 10ms\""),
        ("rialto", ", guarantee = \"RESCS 1ms 10ms\""),
        ("bss-i", ", guarantee = \"RESU 0.5\""),
        ("pshed", ", guarantee = \"RESU 0.5\""),
        ("time-sharing", ""),
        ("windows-2000", ""),
        ("edf", ""),
        ("laxity", ""),
    ] {
        let tables = [
            scheduler("S", kind, ""),
            thread("t", "burst = \"1ms\", period = \"10ms\"", &format!("\"S\"{request}")),
        ];
        obstacle(&tables, &generous(), "S: - ");
    }
}

#[test]
fn what_does_not_compose_stays() {
    let tables = priorities().concat().replacen("work", "requires = \"PS 0.5\"\nwork", 1);
    obstacle(&[tables], &generous(), "does not compose");
}

#[test]
fn priorities_come_to_an_end() {
    let levels = |count: i32| {
        let mut tables = vec![scheduler("FP", "fixed-priority", "")];
        tables
            .extend((0..count).map(|at| thread(&format!("t{at}"), "", &format!("\"FP\", priority = {at}"))));
        tables
    };
    let most = PRIORITIES.count() as i32;
    assert_eq!(outcomes(&levels(most), &generous()).last().unwrap(), "t38: SCHED_FIFO 48");
    obstacle(&levels(most + 1), &generous(), "it has 40 levels of priority, and there are 39");
}

/// A hierarchy that the kernel can have.
#[derive(Clone, Debug)]
enum Tree {
    Thread,
    Fifo(u8),
    /// Children with something that their priority comes from.
    Priorities(Vec<(i8, Tree)>),
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![3 => Just(Tree::Thread), 1 => (1_u8..4).prop_map(Tree::Fifo)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec((any::<i8>(), inner), 1..5).prop_map(Tree::Priorities)
    })
}

/// Tables of a tree under `under`, which may be nothing.
fn tables(tree: &Tree, under: &str, names: &mut u32, text: &mut String) {
    *names += 1;
    let name = format!("n{names}");
    match tree {
        Tree::Thread => *text += &thread(&name, "", under),
        Tree::Fifo(threads) => {
            *text += &scheduler(&name, "fifo", under);
            (0..*threads).for_each(|_| tables(&Tree::Thread, &format!("\"{name}\""), names, text));
        }
        Tree::Priorities(children) => {
            *text += &scheduler(&name, "fixed-priority", under);
            for (at, (key, child)) in children.iter().enumerate() {
                // No two children have the same.
                let priority = i32::from(*key) * 8 + at as i32;
                tables(child, &format!("\"{name}\", priority = {priority}"), names, text);
            }
        }
    }
}

/// Who runs, by the engine: the thread's index.
fn engine_runs(arrangement: &Arrangement, vps: &[VpId]) -> Option<usize> {
    let runs = arrangement.engine.running(ProcessorId::from_index(0))?.thread();
    vps.iter().position(|vp| *vp == runs)
}

/// Who runs, by the kernel's rules: the highest priority, and of that the one who has been runnable for longest.
fn kernel_runs(settings: &Settings, runnable: &[usize]) -> Option<usize> {
    let priority = |thread: usize| match settings.threads[thread].policy {
        Policy::Fifo(priority) => priority,
        other => panic!("{other} in a tree of priorities"),
    };
    let highest = runnable.iter().map(|thread| priority(*thread)).max()?;
    runnable.iter().copied().find(|thread| priority(*thread) == highest)
}

proptest! {
    /// Threads wake up and block in any order: the kernel runs whom the engine would have granted the processor.
    #[test]
    fn the_kernel_runs_whom_the_engine_chooses(
        children in prop::collection::vec((any::<i8>(), trees()), 1..5),
        events in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let mut text = String::new();
        tables(&Tree::Priorities(children), "", &mut 0, &mut text);
        let system = system(&text);
        prop_assume!(!system.threads.is_empty());
        let lowering = lower_hierarchy(&system, 0, &generous()).unwrap();
        let Some(settings) = lowering.settings else {
            let too_many = |why: &Reason| matches!(why, Reason::TooManyLevels { .. });
            prop_assert!(lowering.obstacles().all(|(_, why)| too_many(why)), "it stays for another reason");
            return Ok(());
        };
        let plan = Plan { lanes: Vec::new(), warnings: Vec::new() };
        let mut arrangement = arrange(&system, 0, &plan, 1).unwrap().unwrap();
        let leaves = std::mem::take(&mut arrangement.leaves);
        let vps: Vec<VpId> =
            leaves.iter().map(|leaf| arrangement.add_thread(&system, leaf).unwrap()).collect();
        let mut runnable: Vec<usize> = Vec::new();
        for (step, event) in events.iter().enumerate() {
            let thread = event.index(vps.len());
            let now = Instant::from_nanos(step as i64 * 1_000);
            match runnable.iter().position(|other| *other == thread) {
                Some(at) => {
                    runnable.remove(at);
                    arrangement.engine.release(vps[thread], now);
                }
                None => {
                    runnable.push(thread);
                    let tag = vps[thread].index() as u32;
                    let job = Job { release: now, deadline: Instant::MAX, wcet: Work::ZERO, rank: 0, number: 0, tag };
                    arrangement.engine.request(vps[thread], job, now);
                }
            }
            arrangement.engine.settle(now);
            prop_assert_eq!(engine_runs(&arrangement, &vps), kernel_runs(&settings, &runnable), "{}", text);
        }
        prop_assert!(leaves.iter().all(|leaf| matches!(leaf.parameters, Parameters::Priority(_) | Parameters::None)));
    }
}

#[test]
fn promises_that_are_not_known_to_be_kept_stay_with_who_can_judge_them() {
    let below = |kind: &str| {
        let tables = [
            scheduler("B", "bss-i", ""),
            scheduler("K", kind, "\"B\", guarantee = \"RESU 0.5\""),
            thread("t", "", "\"K\", guarantee = \"RESBH 1ms 10ms\""),
        ];
        outcomes(&tables, &generous())
    };
    let doubted = "B: - K is not known to keep what it promises t, and whether it does only the infrastructure can judge";
    assert!(
        below("resource-kernel").iter().any(|outcome| outcome == doubted),
        "{:?}",
        below("resource-kernel")
    );
    assert!(!below("cbs").iter().any(|outcome| outcome.contains("not known")), "{:?}", below("cbs"));
}
