//! Every key arrives in the model, and every default is what the documentation says.

use crate::{parsed, refusal, system};
use std::sync::Arc;
use talea_model::*;
use talea_time::{Duration, Work};

const EVERYTHING: &str = include_str!("../good/everything.toml");

#[test]
fn keys_of_the_system() {
    let system = system(EVERYTHING);
    assert_eq!(system.name, "everything");
    assert_eq!(system.strategy, Strategy::Muf);
    assert_eq!(system.lane_dispatch, LaneDispatch::Preemptive);
    assert_eq!(system.laxity, Laxity::Remaining);
    assert_eq!(system.late, Late::None);
    assert_eq!(system.seed, u64::MAX);
    let overhead = Overhead {
        switch: Work::from_nanos(4_000),
        queue: Work::from_nanos(3_000),
        timer: Work::from_nanos(2_000),
        message: Work::from_nanos(1_000),
        push: Work::from_nanos(400),
        filter: Work::from_nanos(300),
        delivery: Work::from_nanos(200),
    };
    assert_eq!(system.overhead, overhead);
    assert_eq!(
        system.nodes,
        [Node { name: "left".into(), cpus: vec![0, 2] }, Node { name: "right".into(), cpus: vec![1023] }]
    );
}

#[test]
fn keys_of_links() {
    let system = system(EVERYTHING);
    let us = Duration::from_micros;
    let loss = |share| LossRate::from_share(share).expect("a share");
    let there = Route { delay: us(100), jitter: us(30), loss: loss(0.001) };
    let back = Route { delay: us(200), jitter: us(0), loss: loss(1.0) };
    let ends = system.links.iter().map(|link| link.ends).collect::<Vec<_>>();
    assert_eq!(ends, [LinkEnds::FromTo(0, 1), LinkEnds::FromTo(1, 0)]);
    assert_eq!([system.route(0, 1), system.route(1, 0)], [there, back]);
    assert_eq!(system.route(0, 0), Route::default(), "nothing lies within a node");
    assert_eq!(there.longest(), us(130));
}

#[test]
fn a_link_of_two_nodes_goes_before_that_of_all_others() {
    let text = "[system]\nname = \"s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\ncpus = [1]\n[[node]]\nname = \"c\"\n\
                cpus = [2]\n[[link]]\ndelay = \"1ms\"\n[[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"2ms\"\n[[link]]\nfrom = \"c\"\n\
                to = \"a\"\n[[task]]\nname = \"t\"\nperiod = \"9ms\"\nwcet = \"1ms\"\nnode = \"a\"\n";
    let system = parsed(text).system;
    let delays = [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2)].map(|(from, to)| system.route(from, to).delay);
    assert_eq!(delays, [2, 2, 0, 1, 1].map(Duration::from_millis));
}

#[test]
fn keys_of_tasks() {
    let system = system(EVERYTHING);
    let [graph, alone] = system.tasks.as_slice() else { panic!("there are two tasks") };
    assert_eq!(graph.name, "graph");
    assert_eq!(graph.period, Duration::from_millis(100));
    assert_eq!(graph.deadline, Duration::from_millis(150));
    assert_eq!(graph.phase, Duration::from_millis(5));
    assert_eq!(graph.jitter, Duration::from_millis(1));
    assert_eq!(graph.criticality, Criticality::VeryHigh);
    assert_eq!(graph.importance, -7);
    assert_eq!(graph.overrun, Overrun::SkipNext);
    assert_eq!(graph.sync, Synchronisation::PhaseModification, "its own");
    assert_eq!(alone.sync, Synchronisation::ReleaseGuard, "that of the system");
    let bounds = graph.subtasks.iter().map(|subtask| subtask.bound).collect::<Vec<_>>();
    assert_eq!(bounds, [Some(Duration::from_millis(9)), None, None, None, None, None]);
    let joins = graph.subtasks.iter().map(|subtask| subtask.join).collect::<Vec<_>>();
    assert_eq!(joins, [Join::All, Join::All, Join::All, Join::First, Join::Count(2), Join::All]);
    assert_eq!(alone.period, Duration::from_millis(500));
    assert_eq!(alone.criticality, Criticality::VeryLow);
    assert_eq!(alone.overrun, Overrun::Abort);
    let operation = &alone.subtasks[0];
    assert_eq!((operation.name.as_str(), operation.node), ("alone", 1));
    assert_eq!(operation.exec, Execution::List(Arc::from([Work::from_nanos(250_000)])));
}

#[test]
fn keys_of_subtasks() {
    let system = system(EVERYTHING);
    let subtasks = &system.tasks[0].subtasks;
    let ms = Work::from_millis;
    let of = |index: usize| {
        let Subtask { name, node, wcet, exec, after, .. } = &subtasks[index];
        (name.as_str(), *node, *wcet, exec.clone(), after.as_slice())
    };
    assert_eq!(of(0), ("constant", 0, ms(2), Execution::Constant(ms(1)), [].as_slice()));
    assert_eq!(of(1), ("uniform", 1, ms(2), Execution::Uniform(ms(0), ms(2)), [0].as_slice()));
    assert_eq!(of(2), ("list", 1, ms(3), Execution::List(Arc::from([ms(1), ms(2), ms(3)])), [0].as_slice()));
    assert_eq!(
        of(3),
        ("trace", 0, ms(20), Execution::List(Arc::from([ms(1), ms(2), ms(20)])), [1, 2].as_slice())
    );
    assert_eq!(of(4), ("count", 0, ms(10), Execution::Constant(ms(0)), [0, 1, 2].as_slice()));
    assert_eq!(of(5), ("another-source", 0, ms(10), Execution::Constant(ms(0)), [].as_slice()));
}

#[test]
fn operations_know_their_neighbours() {
    let system = system(EVERYTHING);
    let names: Vec<_> = system.operations().iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "graph.constant",
            "graph.uniform",
            "graph.list",
            "graph.trace",
            "graph.count",
            "graph.another-source",
            "alone"
        ]
    );
    let constant = &system.operations()[0];
    assert_eq!(constant.successors, [1, 2, 4].map(OperationId::from_index));
    let trace = &system.operations()[3];
    assert_eq!(trace.predecessors, [OperationId::from_index(1), OperationId::from_index(2)]);
    assert_eq!(system.operations_of(1)[0].id, OperationId::from_index(6));
}

#[test]
fn defaults() {
    let system =
        system("[system]\nname = \"s\"\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\nwcet = \"1ms\"\n");
    let expected = Description {
        chains: Vec::new(),
        schedulers: Vec::new(),
        threads: Vec::new(),
        name: "s".into(),
        strategy: Strategy::RmsMlf,
        lane_dispatch: LaneDispatch::NonPreemptive,
        laxity: Laxity::Declared,
        late: Late::Last,
        seed: 1,
        overhead: Overhead::default(),
        links: Vec::new(),
        channels: Vec::new(),
        nodes: vec![Node { name: "local".into(), cpus: vec![0] }],
        tasks: vec![Task {
            name: "t".into(),
            period: Duration::from_millis(10),
            deadline: Duration::from_millis(10),
            phase: Duration::ZERO,
            jitter: Duration::ZERO,
            trigger: None,
            inherits_deadline: false,
            inherits_criticality: false,
            separation: None,
            communication: Communication::Implicit,
            criticality: Criticality::Medium,
            importance: 0,
            overrun: Overrun::Queue,
            sync: Synchronisation::Greedy,
            subtasks: vec![Subtask {
                name: "t".into(),
                node: 0,
                lanes: None,
                wcet: Work::from_millis(1),
                exec: Execution::Constant(Work::from_millis(1)),
                after: vec![],
                join: Join::All,
                bound: None,
                outputs: vec![],
                inputs: vec![],
                events: Vec::new(),
                subscription: None,
            }],
        }],
    };
    assert_eq!(*system, expected);
}

#[test]
fn cpus_default_to_the_first() {
    let system = system(include_str!("../good/inline.toml"));
    assert_eq!(system.nodes[0].cpus, [0]);
    assert_eq!(system.seed, 16);
    assert_eq!(system.overhead.switch, Work::from_nanos(1_000));
    assert_eq!(system.tasks[1].subtasks[1].after, [0]);
}

#[test]
fn every_keyword_is_read() {
    fn check(key: &str, table: &str, keyword: &str, of: impl Fn(&System) -> String) {
        let (in_system, in_task) = if table == "system" { (key, "overrun") } else { ("late", key) };
        let system_word = if table == "system" { keyword } else { "last" };
        let task_word = if table == "system" { "queue" } else { keyword };
        let text = format!(
            "[system]\nname = \"s\"\n{in_system} = \"{system_word}\"\n[[task]]\nname = \"t\"\n\
             period = \"10ms\"\nwcet = \"1ms\"\n{in_task} = \"{task_word}\"\n"
        );
        assert_eq!(of(&system(&text)), keyword);
    }
    for word in Strategy::ALL {
        check("strategy", "system", word.keyword(), |system| system.strategy.to_string());
    }
    for word in LaneDispatch::ALL {
        check("lane_dispatch", "system", word.keyword(), |system| system.lane_dispatch.to_string());
    }
    for word in Laxity::ALL {
        check("laxity", "system", word.keyword(), |system| system.laxity.to_string());
    }
    for word in Late::ALL {
        check("late", "system", word.keyword(), |system| system.late.to_string());
    }
    for word in Overrun::ALL {
        check("overrun", "task", word.keyword(), |system| system.tasks[0].overrun.to_string());
    }
    for word in Synchronisation::ALL {
        check("sync", "system", word.keyword(), |system| system.tasks[0].sync.to_string());
        check("sync", "task", word.keyword(), |system| system.tasks[0].sync.to_string());
    }
    for word in Criticality::ALL.iter().map(|criticality| criticality.keyword()) {
        check("criticality", "task", word, |system| system.tasks[0].criticality.to_string());
    }
}

#[test]
fn warnings_do_not_refuse() {
    let text = "[system]\nname = \"s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"idle\"\n\
                cpus = [1]\n[[task]]\nname = \"t\"\nnode = \"a\"\nperiod = \"10ms\"\ndeadline = \"5ms\"\n\
                wcet = \"11ms\"\nexec = \"12ms\"\n[[task]]\nname = \"u\"\nnode = \"b\"\nperiod = \"1s\"\nwcet = \"1s\"\n";
    let shown: Vec<_> = parsed(text).warnings.iter().map(|w| w.in_file("f").to_string()).collect();
    assert_eq!(
        shown,
        [
            "f:3:1: warning: node \"a\" is asked for 110.0 % of a processor and has 100 %\n  help: lower a wcet, \
             lengthen a period or add a cpu, unless the overload is meant",
            "f:5:1: warning: nodes \"a\" and \"b\" both have cpu 0\n  help: give each node its own, or they compete \
             for it when they run on this machine; see line 3",
            "f:8:8: warning: node \"idle\" has nothing to do\n  help: place a subtask on it, or remove it",
            "f:15:8: warning: the wcet of task \"t\", 11ms, is longer than the deadline of 5ms\n  help: lower the \
             wcet or lengthen the deadline; a job that takes this long always misses; see line 14",
            "f:16:8: warning: task \"t\" can take 12ms, more than its wcet of 11ms\n  help: raise the wcet, unless \
             breaking the promise is meant; see line 15",
        ]
    );
}

#[test]
fn a_value_that_cannot_be_read_makes_one_message() {
    let text =
        "[system]\nname = \"s\"\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\nwcet = 5\nexec = \"7ms\"\n";
    assert_eq!(refusal(text).matches("error:").count(), 1);
    assert_eq!(refusal(text).matches("warning:").count(), 0);
}

#[test]
fn many_problems_are_counted() {
    let text = format!("[system]\nname = \"s\"\n{}", "[[task]]\n".repeat(150));
    let text = refusal(&text);
    assert!(text.ends_with("and 350 more problems"), "{text}");
}
