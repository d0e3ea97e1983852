//! Hierarchies of schedulers: every key arrives, the derivation sees what the file says, and large ones are read soon.

use crate::{parsed, refusal, system};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::num::NonZeroU32;
use talea_guarantee::derivation::derive;
use talea_guarantee::guarantee::Guarantee;
use talea_model::{
    Asks, ChildProcesses, Execution, HIERARCHY_LIMIT, Plan, PlanEntry, Request, SchedulerBuilder,
    SchedulerKind, Scheduling, Setting, System, SystemBuilder, ThreadBuilder, ThreadWork, Under,
};
use talea_time::{Duration, Work};

fn guarantee(text: &str) -> Guarantee {
    text.parse().expect(text)
}

fn weight(weight: u32) -> NonZeroU32 {
    NonZeroU32::new(weight).expect("above zero")
}

const EVERYTHING: &str = include_str!("../good/hierarchy.toml");

#[test]
fn every_key_arrives() {
    let system = system(EVERYTHING);
    let [root, shares, levels, join, lanes, other] = system.schedulers.as_slice() else {
        panic!("there are six schedulers")
    };
    assert_eq!((root.kind, root.node, root.quantum), (SchedulerKind::FIXED_PRIORITY, 1, None));
    assert_eq!(root.under, []);
    assert_eq!(shares.quantum, Some(Duration::from_millis(7)));
    assert_eq!(shares.under, [Under { scheduler: 0, request: Request::Priority(-3) }]);
    assert_eq!(
        (levels.node, levels.quantum),
        (1, Some(Duration::from_millis(10))),
        "inherited, and the default"
    );
    assert_eq!((join.takes, join.under.len()), (Some(1), 2));
    let warped = Request::Share { weight: weight(4), warp: Duration::from_millis(5) };
    assert_eq!(join.under[0], Under { scheduler: 1, request: warped });
    assert_eq!((lanes.kind, lanes.node), (SchedulerKind::LANES, 1));
    assert_eq!((other.name.as_str(), other.node), ("other", 0));
    let [bursts, command, process, bound, reserved] = system.threads.as_slice() else {
        panic!("there are five threads")
    };
    let burst = Execution::Uniform(Work::from_millis(1), Work::from_millis(2));
    assert_eq!(bursts.work, ThreadWork::Bursts { burst, period: Duration::from_millis(20) });
    assert_eq!(bursts.requires, Some(guarantee("PS 0.1")));
    assert_eq!(command.work, ThreadWork::Command(vec!["sleep".into(), "10".into()]));
    assert_eq!(command.under, [Under { scheduler: 2, request: Request::Priority(9) }]);
    assert_eq!(
        (&process.work, process.node),
        (&ThreadWork::Process { number: 1, children: ChildProcesses::All }, 1)
    );
    assert_eq!(bound.work, ThreadWork::CpuBound);
    let reservation = Request::Guarantee(guarantee("RESBH 5ms 33ms"));
    assert_eq!(reserved.under, [Under { scheduler: 5, request: reservation }]);
    assert_eq!((system.scheduling(1), system.scheduling(2)), (Scheduling::Hierarchy, Scheduling::Lanes));
    let lanes = |node| system.lanes_on(node).collect::<Vec<_>>();
    assert_eq!((lanes(1), lanes(0)), (vec![4], vec![]));
}

#[test]
fn the_builder_makes_what_the_file_says() {
    let from_file = system(include_str!("../../../../examples/figure-1.toml"));
    let reserved = |text: &str| Request::Guarantee(guarantee(text));
    let bursts = |us: i64, period: i64| ThreadWork::Bursts {
        burst: Execution::Constant(Work::from_nanos(us * 1_000)),
        period: Duration::from_millis(period),
    };
    let built = System::builder("multimedia")
        .scheduler(SchedulerBuilder::new("FP", SchedulerKind::FIXED_PRIORITY))
        .scheduler(SchedulerBuilder::new("RES", SchedulerKind::RESERVATION).under("FP", Request::Priority(2)))
        .scheduler(
            SchedulerBuilder::new("J", SchedulerKind::JOIN)
                .under("RES", reserved("RESBH 10 20"))
                .under("FP", Request::Priority(1)),
        )
        .scheduler(
            SchedulerBuilder::new("PS", SchedulerKind::PROPORTIONAL_SHARE).under("J", Request::Nothing),
        )
        .thread(ThreadBuilder::new("video", bursts(9_000, 66)).under("RES", reserved("RESBH 5 33")))
        .thread(ThreadBuilder::new("words", bursts(10_000, 100)).with_share("PS", 1))
        .thread(
            ThreadBuilder::new("voice", bursts(60_000, 100))
                .requires(guarantee("PSBE 0.4 60"))
                .with_share("PS", 4),
        );
    assert_eq!(built.build().expect("it is valid"), from_file);
}

/// The published result: figure 3 of Regehr and Stankovic (2001).
#[test]
fn the_published_hierarchy_gives_the_published_guarantees() {
    let system = system(include_str!("../../../../examples/figure-1.toml"));
    let hierarchy = system.hierarchy(0).expect("the node has schedulers");
    let derivation = derive(&hierarchy).expect("it composes");
    for (parent, child, label) in [
        ("FP", "RES", "ALL"),
        ("FP", "J", "NULL"),
        ("RES", "video", "RESBH 5ms 33ms"),
        ("RES", "J", "RESBH 10ms 20ms"),
        ("J", "PS", "RESBS 10ms 20ms"),
        ("PS", "words", "PSBE 0.1 22ms"),
        ("PS", "voice", "PSBE 0.4 58ms"),
    ] {
        assert_eq!(derivation.between(parent, child).expect("an edge").label.to_string(), label);
    }
}

#[test]
fn warps_leave_the_long_run_only() {
    let text = include_str!("../../../../examples/figure-1.toml")
        .replace("share = 1 ", "share = 1, warp = \"5ms\" ");
    let hierarchy = parsed(&text).system.hierarchy(0).expect("the node has schedulers");
    let failure = derive(&hierarchy).expect_err("voice requires a bound").to_string();
    assert!(failure.contains("voice") && failure.contains("PS 0.4"), "{failure}");
}

#[test]
fn every_kind_and_parameter_stands_in_the_documentation() {
    let text = include_str!("../../../../docs/policies.md");
    for kind in SchedulerKind::in_files() {
        let names = std::iter::once(kind.name()).chain(kind.declaration().synonyms.iter().copied());
        let parameters = kind.declaration().parameters.iter().map(|parameter| parameter.name);
        for word in names.chain(parameters) {
            assert!(text.contains(&format!("`{word}`")), "{word} of {kind}");
        }
    }
}

/// Chains of a thousand schedulers, and as many beside each other, are read and derived like small ones.
#[test]
fn a_thousand_levels() {
    let mut text =
        "[system]\nname = \"deep\"\n[[scheduler]]\nname = \"s0\"\nkind = \"fixed-priority\"\n".to_owned();
    for level in 1..1000 {
        let above = level - 1;
        text += &format!(
            "[[scheduler]]\nname = \"s{level}\"\nkind = \"fixed-priority\"\n\
             under = [{{ scheduler = \"s{above}\", priority = 1 }}]\n"
        );
    }
    text +=
        "[[thread]]\nname = \"t\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"s999\", priority = 1 }]\n";
    let system = system(&text);
    let hierarchy = system.hierarchy(0).expect("the node has schedulers");
    let derivation = derive(&hierarchy).expect("the highest child has all");
    assert_eq!(derivation.between("s999", "t").expect("labelled").label.to_string(), "ALL");
    let circle = text.replacen(
        "kind = \"fixed-priority\"\n",
        "kind = \"fixed-priority\"\nunder = [{ scheduler = \"s999\", priority = 2 }]\n",
        1,
    );
    let refused = refusal(&circle);
    assert!(
        refused.contains("in a circle: s0 under s999 under s998") && refused.contains("..."),
        "{refused}"
    );
    let crowd: String = (0..HIERARCHY_LIMIT).map(|n| format!("[[thread]]\nname = \"t{n}\"\n")).collect();
    assert!(refusal(&format!("{text}{crowd}")).contains("more than 10000"));
}

/// What a child of a scheduler of `kind` may ask for.
fn request(kind: SchedulerKind, number: u32) -> Request {
    match kind.asks {
        Asks::Nothing | Asks::AtMost(_) | Asks::NoChildren => Request::Nothing,
        Asks::Priority => Request::Priority(number as i32),
        Asks::Level => Request::Priority((number % 16) as i32),
        Asks::Share => Request::share(weight(1 + number)),
        Asks::WarpedShare => {
            Request::Share { weight: weight(1 + number), warp: Duration::from_nanos(i64::from(number % 3)) }
        }
        Asks::GuaranteeOrJobs(_) if number.is_multiple_of(3) => Request::Nothing,
        Asks::Guarantee(kinds) | Asks::GuaranteeOrJobs(kinds) => {
            let kind = kinds[number as usize % kinds.len()];
            let text = match kind.reservation() {
                Some(_) => format!("{kind} {}ns {}ms", 1 + number, 1 + number % 7),
                None => format!("{kind} 1/{}", 1 + number),
            };
            Request::Guarantee(guarantee(&text))
        }
    }
}

fn work() -> impl Strategy<Value = ThreadWork> {
    prop_oneof![
        Just(ThreadWork::CpuBound),
        (1i64..1_000_000, 1i64..1_000_000).prop_map(|(burst, period)| ThreadWork::Bursts {
            burst: Execution::List([Work::from_nanos(burst), Work::from_nanos(1)].into()),
            period: Duration::from_nanos(period),
        }),
        ("[^\0]{1,9}", vec("[^\0]{0,9}", 0..3))
            .prop_map(|(first, rest)| ThreadWork::Command([vec![first], rest].concat())),
        (1u32..i32::MAX as u32, prop_oneof![Just(ChildProcesses::All), Just(ChildProcesses::Later)])
            .prop_map(|(number, children)| ThreadWork::Process { number, children }),
        (1u32..i32::MAX as u32).prop_map(ThreadWork::Thread),
    ]
}

/// Schedulers each under an earlier one that can have it, and threads under any.
fn any_hierarchy() -> impl Strategy<Value = System> {
    let kinds = vec((select(SchedulerKind::in_files()), any::<Index>(), 1i64..1_000_000), 0..12);
    let threads = vec((work(), any::<Index>()), 1..6);
    (kinds, threads).prop_map(|(kinds, threads)| {
        let mut system = System::builder("random");
        let mut open = vec![(String::from("root"), SchedulerKind::FIXED_PRIORITY)];
        system = system.scheduler(SchedulerBuilder::new("root", SchedulerKind::FIXED_PRIORITY));
        let mut number = 0;
        let mut followers = Vec::new();
        let mut parent_of = |open: &mut Vec<(String, SchedulerKind)>, index: Index| {
            number += 1;
            let place = index.index(open.len());
            let (name, kind) = open[place].clone();
            if kind.has_one_child() {
                open.remove(place);
            }
            (name, request(kind, number))
        };
        for (number, (kind, index, quantum)) in kinds.into_iter().enumerate() {
            if [SchedulerKind::JOIN, SchedulerKind::LANES].contains(&kind) {
                continue;
            }
            let (parent, request) = parent_of(&mut open, index);
            let name = format!("s{number}");
            let mut scheduler = SchedulerBuilder::new(&name, kind).under(parent, request);
            if kind.has_quantum() {
                scheduler = scheduler.quantum(Duration::from_nanos(quantum));
            }
            // Who follows a plan has one child, which is in it.
            if kind.parameter("plan").is_some() {
                let child = format!("p{number}");
                followers
                    .push(ThreadBuilder::new(&child, ThreadWork::CpuBound).under(&name, Request::Nothing));
                let entry = |start| PlanEntry {
                    start: Duration::from_nanos(start),
                    duration: Duration::from_nanos(quantum),
                    child: child.clone(),
                };
                let plan = Plan::new([entry(0), entry(quantum)]);
                scheduler = scheduler.set("plan", Setting::Plan(plan));
                scheduler = scheduler.set("gaps", Setting::Word("event-driven"));
                if quantum % 2 == 0 {
                    scheduler = scheduler.set("cycle", Setting::Time(Duration::from_nanos(quantum * 2)));
                }
            }
            system = system.scheduler(scheduler);
            open.push((name, kind));
        }
        system = followers.into_iter().fold(system, SystemBuilder::thread);
        for (number, (work, index)) in threads.into_iter().enumerate() {
            let (parent, request) = parent_of(&mut open, index);
            system = system.thread(ThreadBuilder::new(format!("t{number}"), work).under(parent, request));
        }
        system.build().unwrap_or_else(|violations| panic!("{violations}"))
    })
}

proptest! {
    #[test]
    fn a_written_hierarchy_reads_back(system in any_hierarchy()) {
        let text = system.to_toml();
        prop_assert_eq!(&parsed(&text).system, &system, "{}", text);
    }

    /// What the rules of files accept, the derivation understands.
    #[test]
    fn an_accepted_hierarchy_makes_sense_to_the_derivation(system in any_hierarchy()) {
        let hierarchy = system.hierarchy(0).expect("the node has schedulers");
        if let Err(talea_guarantee::derivation::NotDerived::Malformed(faults)) = derive(&hierarchy) {
            return Err(TestCaseError::fail(format!("{faults:?}\n{}", system.to_toml())));
        }
    }
}

/// Two schedulers of kind `lanes` on one node and one on another; tasks of the first say in whose lanes they are.
#[test]
fn subtasks_are_in_the_lanes_that_they_name_or_in_the_only_ones() {
    let under = |name: &str, priority| {
        SchedulerBuilder::new(name, SchedulerKind::LANES).under("root", Request::Priority(priority))
    };
    let work = |name: &str| talea_model::SubtaskBuilder::new(name).wcet(Work::from_millis(1));
    let chain = talea_model::TaskBuilder::new("chain", Duration::from_millis(50))
        .subtask(work("a").on("two").in_lanes("low"))
        .subtask(work("b").on("one"))
        .subtask(work("c").on("two").in_lanes("high"));
    let alone = talea_model::TaskBuilder::new("alone", Duration::from_millis(20));
    let system = System::builder("s")
        .node("one", [0])
        .node("two", [1])
        .scheduler(SchedulerBuilder::new("root", SchedulerKind::FIXED_PRIORITY).on("two"))
        .scheduler(under("high", 2))
        .scheduler(under("low", 1))
        .scheduler(SchedulerBuilder::new("root-1", SchedulerKind::FIXED_PRIORITY).on("one"))
        .scheduler(SchedulerBuilder::new("only", SchedulerKind::LANES).under("root-1", Request::Priority(1)))
        .task(chain)
        .task(alone.wcet(Work::from_millis(1)).on("two").in_lanes("low"))
        .build()
        .expect("a system");
    let name = |subtask| system.schedulers[system.lanes_with(subtask).expect("in lanes")].name.as_str();
    let lanes: Vec<&str> = system.tasks.iter().flat_map(|task| &task.subtasks).map(name).collect();
    assert_eq!(lanes, ["low", "only", "high", "low"]);
    assert_eq!(system.lanes_on(1).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(parsed(&system.to_toml()).system, system);
}
