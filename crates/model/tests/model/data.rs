//! What operations exchange, what triggers tasks, and chains.

use crate::{parsed, system};
use std::path::Path;
use std::sync::Arc;
use talea_model::*;
use talea_time::{Duration, Work};

const MS: fn(i64) -> Duration = Duration::from_millis;

fn data() -> System {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    read(&folder.join("data.toml")).expect("the file is sound").system
}

fn at(task: usize, subtask: usize, output: usize) -> OutputAddress {
    OutputAddress { operation: OperationAddress { task, subtask }, output }
}

fn field(name: &str, values: FieldValues) -> SyntheticField {
    SyntheticField { name: name.into(), values }
}

#[test]
fn keys_of_outputs() {
    let system = data();
    let sample = &system.tasks[0].subtasks[0].outputs[0];
    assert_eq!((sample.name.as_str(), sample.bytes), ("sample", 48));
    let fields = [
        field("temperature", FieldValues::Uniform(20, 90)),
        field("count", FieldValues::List([1, -2, 3].into())),
        field("größe", FieldValues::Constant(7)),
    ];
    assert_eq!(sample.fields, fields, "in the order in which they are written");
    let pose = &system.tasks[1].subtasks[0].outputs[0];
    assert_eq!((pose.bytes, pose.fields.len()), (8, 0));
}

#[test]
fn keys_of_inputs() {
    let system = data();
    let takes = |task: usize, subtask: usize| -> Vec<(OutputAddress, Take)> {
        system.tasks[task].subtasks[subtask].inputs.iter().map(|input| (input.from, input.take)).collect()
    };
    let each = |capacity, full| Take::Each { capacity, full };
    assert_eq!(takes(0, 1), [(at(0, 0, 0), Take::Instance)], "of a direct predecessor");
    assert_eq!(
        takes(0, 2),
        [(at(0, 0, 0), Take::Instance), (at(0, 0, 0), Take::Latest)],
        "of an indirect one"
    );
    let of_control = [
        (at(0, 1, 0), Take::Latest),
        (at(1, 0, 0), each(8, Full::Newest)),
        (at(1, 0, 0), each(16, Full::Oldest)),
        (at(6, 0, 0), each(16, Full::Block { limit: MS(1) })),
    ];
    assert_eq!(takes(2, 0), of_control);
}

#[test]
fn keys_of_triggers() {
    let system = data();
    let named = |name: &str| system.tasks.iter().find(|task| task.name == name).expect("it is there");
    assert_eq!((named("imu").trigger.clone(), named("imu").separation), (None, None));
    assert_eq!(named("imu").communication, Communication::Implicit);
    assert_eq!(named("control").communication, Communication::Let);
    let by_values = |output, every, on| Some(Trigger::Output { output, every, on });
    assert_eq!(named("log").trigger, by_values(at(0, 1, 0), 20, OnValue::Change));
    assert_eq!(named("archive").trigger, by_values(at(3, 0, 0), 10, OnValue::Value));
    let separated = |separation, burst, excess| Some(Separation { separation, burst, excess });
    assert_eq!(named("archive").separation, separated(MS(1_000), 1, Excess::Defer));
    assert_eq!(named("stop").separation, separated(MS(5), 3, Excess::Drop));
    let outside = |arrivals| Some(Trigger::External { arrivals });
    assert_eq!(named("stop").trigger, outside(OutsideArrivals::Sporadic { mean: MS(20) }));
    let preset = OutsideArrivals::Periodic { period: MS(7), jitter: MS(0) };
    assert_eq!(named("preset").trigger, outside(preset));
    let times: Arc<[Duration]> = [MS(1), MS(5), MS(5), MS(1_000)].into();
    assert_eq!(named("listed").trigger, outside(OutsideArrivals::Listed(times)));
}

#[test]
fn periods_of_triggered_tasks_follow_from_separations_and_producers() {
    let system = data();
    let times: Vec<_> =
        system.tasks.iter().map(|task| (task.name.as_str(), task.period, task.deadline)).collect();
    let expected = [
        ("imu", MS(5), MS(5)),
        ("localisation", MS(100), MS(100)),
        ("control", MS(10), MS(10)),
        ("log", MS(100), MS(50)),
        ("archive", MS(1_000), MS(1_000)),
        ("index", MS(200), MS(1_000)),
        ("stop", MS(5), MS(5)),
        ("preset", MS(7), MS(3)),
        ("listed", MS(1), MS(1)),
    ];
    assert_eq!(times, expected);
}

#[test]
fn a_description_with_another_period_of_a_triggered_task_is_corrected() {
    let mut description = Description::clone(&data());
    description.tasks[0].period = MS(10);
    description.tasks[5].period = MS(1);
    let system = System::new(description).expect("it is sound");
    assert_eq!([3, 4, 5].map(|task: usize| system.tasks[task].period), [MS(200), MS(1_000), MS(400)]);
}

#[test]
fn ports_are_numbered_in_file_order() {
    let system = data();
    let outputs: Vec<_> = system.outputs().iter().map(|site| site.name.as_str()).collect();
    let expected = [
        "imu.read.sample",
        "imu.estimate.state",
        "localisation.pose",
        "control.command",
        "log.line",
        "stop.request",
    ];
    assert_eq!(outputs, expected);
    let inputs: Vec<_> =
        system.inputs().iter().map(|site| (site.name.as_str(), site.output.index())).collect();
    let expected = [
        ("imu.estimate.sample", 0),
        ("imu.watch.sample", 0),
        ("imu.watch.newest", 0),
        ("control.state", 1),
        ("control.pose", 2),
        ("control.every-pose", 2),
        ("control.stop", 5),
        ("log.state", 1),
    ];
    assert_eq!(inputs, expected);
    for (index, site) in system.outputs().iter().enumerate() {
        assert_eq!((site.id.index(), &system.outputs_of(site.operation)[site.index]), (index, site));
        assert_eq!(
            site.name.rsplit_once('.').map(|(_, name)| name),
            Some(system.output(site.id).name.as_str())
        );
        for reader in &site.readers {
            assert_eq!(system.inputs()[reader.index()].output, site.id);
        }
    }
    for (index, site) in system.inputs().iter().enumerate() {
        assert_eq!((site.id.index(), &system.inputs_of(site.operation)[site.index]), (index, site));
        assert!(system.outputs()[site.output.index()].readers.contains(&site.id));
        assert_eq!(system.input(site.id).take, site.take);
    }
    let state = &system.outputs()[1];
    assert_eq!(state.triggers, [3]);
    assert_eq!(system.trigger_output(3), Some(state.id));
    assert_eq!([0, 6].map(|task| system.trigger_output(task)), [None, None]);
    assert_eq!(system.outputs()[4].triggers, [4, 5]);
}

/// Events connect who pushes them with the first subtask of who has subscribed, and with nobody else.
#[test]
fn chains_lead_through_channels() {
    let text = |path: &str| {
        format!(
            "[system]\nname = \"s\"\nstrategy = \"edf\"\n[[channel]]\nname = \"c\"\n\
             [[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"1us\"\nevents = [{{ channel = \"c\", type = \"T/A\" }}]\n\
             [[task]]\nname = \"b\"\nperiod = \"10ms\"\nwcet = \"1us\"\nevents = [{{ channel = \"c\", type = \"T/B\" }}]\n\
             [[task]]\nname = \"r\"\nsubscription = {{ channel = \"c\", types = [\"T/A\"] }}\ndeadline = \"9ms\"\n\
             [[task.subtask]]\nname = \"x\"\nwcet = \"1us\"\n[[task.subtask]]\nname = \"y\"\nwcet = \"1us\"\n\
             [[chain]]\nname = \"c\"\npath = {path}\n"
        )
    };
    let connected = parsed(&text("[\"a\", \"r.x\", \"r.y\"]")).system;
    let hops = &connected.chain_sites()[0].hops;
    let kinds: Vec<HopKind> = hops.iter().map(|hop| hop.kind).collect();
    assert_eq!(kinds, [HopKind::Events, HopKind::Successor]);
    for path in ["[\"b\", \"r.x\"]", "[\"a\", \"r.y\"]", "[\"r.x\", \"a\"]"] {
        let problems = talea_model::parse("s.toml", &text(path), Path::new("")).unwrap_err().to_string();
        assert!(problems.contains("not connected"), "{path}: {problems}");
    }
}

/// All first subtasks of a task that events release have them, and one stands for all where something is lost.
#[test]
fn tasks_that_events_release_may_begin_with_several_subtasks() {
    let text = |more: &str, late: &str| {
        format!(
            "[system]\nname = \"s\"\nstrategy = \"rms\"\n[[node]]\nname = \"n\"\ncpus = [0]\n\
            [[node]]\nname = \"o\"\ncpus = [1]\n[[channel]]\nname = \"c\"\n\
            [[task]]\nname = \"a\"\nnode = \"n\"\nperiod = \"10ms\"\nwcet = \"1us\"\n\
            events = [{{ channel = \"c\", type = \"T/A\" }}]\n\
            [[task]]\nname = \"r\"\nsubscription = {{ channel = \"c\" }}\n{more}\n\
            [[task.subtask]]\nname = \"x\"\nnode = \"n\"\nwcet = \"1us\"\n\
            [[task.subtask]]\nname = \"then\"\nnode = \"n\"\nwcet = \"1us\"\n\
            [[task.subtask]]\nname = \"y\"\nnode = \"{late}\"\nafter = []\nwcet = \"1us\"\n\
            [[chain]]\nname = \"c\"\npath = [\"a\", \"r.y\"]\n"
        )
    };
    let system = parsed(&text("deadline = \"9ms\"", "n")).system;
    let [subscriber] = &system.publications()[0].subscribers[..] else { panic!("there is one") };
    assert_eq!(subscriber.operations().map(OperationId::index).collect::<Vec<_>>(), [1, 3]);
    let takes: Vec<bool> = system.operations().iter().map(|of| system.takes_events(of.id)).collect();
    assert_eq!(takes, [false, true, false, true]);
    assert_eq!(system.chain_sites()[0].hops, [Hop { kind: HopKind::Events, inputs: Vec::new() }]);
    assert_eq!(parsed(&system.to_toml()).system, system);
    let refused = |more: &str, late: &str| {
        let problems =
            talea_model::parse("s.toml", &text(more, late), ".".as_ref()).expect_err("it is refused");
        format!("{problems:?}")
    };
    assert!(refused("deadline = \"9ms\"", "o").contains("are on different nodes"));
    assert!(refused("separation = \"9ms\"", "n").contains("each of them would have its turn by itself"));
}

/// An operation that something else releases has events by a subscription of its own, be it a whole task or a later subtask; what releases its task
/// is not changed by that.
#[test]
fn operations_take_events_by_subscriptions_of_their_own() {
    let text = "[system]\nname = \"s\"\nstrategy = \"muf\"\n[[channel]]\nname = \"c\"\n\
        [[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"1us\"\ncriticality = \"inherited\"\n\
        events = [{ channel = \"c\", type = \"T/A\" }]\n\
        [[task]]\nname = \"alone\"\nperiod = \"10ms\"\nwcet = \"1us\"\nsubscription = { channel = \"c\", types = [\"T/A\"] }\n\
        [[task]]\nname = \"r\"\nsubscription = { channel = \"c\" }\ndeadline = \"9ms\"\n\
        [[task.subtask]]\nname = \"x\"\nwcet = \"1us\"\n\
        [[task.subtask]]\nname = \"y\"\nwcet = \"1us\"\nsubscription = { channel = \"c\", qos = { OrderPolicy = \"Priority\" } }\n\
        [[task]]\nname = \"w\"\ntrigger = \"external\"\nseparation = \"10ms\"\nwcet = \"1us\"\ncriticality = \"very-high\"\n\
        subscription = { channel = \"c\" }\n\
        [[chain]]\nname = \"c\"\npath = [\"a\", \"r.y\"]\n";
    let system = parsed(text).system;
    let subscribers: Vec<(usize, usize, bool)> = system.publications()[0]
        .subscribers
        .iter()
        .map(|one| (one.operation.index(), one.task, one.is_released))
        .collect();
    assert_eq!(subscribers, [(1, 1, false), (2, 2, true), (3, 2, false), (4, 3, false)]);
    let takes: Vec<bool> = system.operations().iter().map(|of| system.takes_events(of.id)).collect();
    assert_eq!(takes, [false, true, true, true, true]);
    let of_later = system.subscription_of(system.operations()[3].id).expect("it has one of its own");
    assert_eq!(system.subscription_qos(of_later).order, talea_event::qos::OrderPolicy::Priority);
    assert_eq!((&system.tasks[1].trigger, system.tasks[1].period), (&None, MS(10)));
    assert_eq!(system.tasks[0].criticality, talea_model::Criticality::VeryHigh, "as who takes its events");
    assert_eq!(system.chain_sites()[0].hops, [Hop { kind: HopKind::TakenEvents, inputs: Vec::new() }]);
    assert_eq!(parsed(&system.to_toml()).system, system);
}

#[test]
fn hops_of_chains_say_what_connects_them() {
    let system = data();
    let names: Vec<_> = system.chains.iter().map(|chain| chain.name.as_str()).collect();
    assert_eq!(names, ["stop to actuator", "log", "hand-over"]);
    let limits: Vec<_> = system.chains[0].limits().collect();
    assert_eq!(limits, [("latency", MS(10)), ("reaction", MS(30)), ("age", MS(20))]);
    assert_eq!(system.chains[1].limits().count(), 0);
    let input = |name: &str| system.inputs().iter().find(|site| site.name == name).expect("it is there").id;
    let hops = |chain: usize| system.chain_sites()[chain].hops.clone();
    let hop = |kind, inputs: &[&str]| Hop { kind, inputs: inputs.iter().map(|name| input(name)).collect() };
    assert_eq!(hops(0), [hop(HopKind::Data, &["control.stop"])]);
    let by_value = HopKind::Trigger(system.outputs()[1].id);
    assert_eq!(hops(1), [hop(HopKind::Successor, &["imu.estimate.sample"]), hop(by_value, &["log.state"])]);
    assert_eq!(hops(2), [hop(HopKind::Data, &["imu.watch.sample", "imu.watch.newest"])]);
    let operations: Vec<_> = system.chain_sites()[1]
        .operations
        .iter()
        .map(|id| system.operations()[id.index()].name.as_str())
        .collect();
    assert_eq!(operations, ["imu.read", "imu.estimate", "log"]);
}

#[test]
fn what_is_written_reads_back() {
    let system = data();
    assert_eq!(parsed(&system.to_toml()).system, system);
}

#[test]
fn threads_as_tasks_and_other_settings_keep_the_connections() {
    let system = data();
    let (outputs, inputs) = (system.outputs().to_vec(), system.inputs().to_vec());
    let others = [system.with_threads_as_tasks(), system.with_strategy(Strategy::Edf), system.with_seed(7)];
    for other in others {
        assert_eq!((other.outputs(), other.inputs()), (&outputs[..], &inputs[..]));
        assert_eq!(other.chain_sites(), system.chain_sites());
    }
    let planned = system.with_synchronisation(Synchronisation::PhaseModification);
    let keeps = |task: &Task| (task.trigger.is_some()) == (task.sync == Synchronisation::Greedy);
    assert!(planned.tasks.iter().all(keeps), "triggered tasks have no periodic arrivals");
    let guarded = system.with_synchronisation(Synchronisation::ReleaseGuard);
    assert!(guarded.tasks.iter().all(|task| task.sync == Synchronisation::ReleaseGuard));
}

#[test]
fn the_builder_and_the_file_make_equal_systems() {
    let us = Work::from_micros;
    let state = OutputBuilder::new("state").bytes(64).field("x", FieldValues::Uniform(20, 90));
    let poisson = OutsideArrivals::Poisson { mean: MS(20) };
    let built = System::builder("robot")
        .task(
            TaskBuilder::new("imu", MS(5))
                .subtask(SubtaskBuilder::new("read").wcet(us(100)).output(OutputBuilder::new("sample")))
                .subtask(
                    SubtaskBuilder::new("estimate")
                        .wcet(us(300))
                        .input(InputBuilder::new("sample").from("imu.read.sample"))
                        .output(state),
                ),
        )
        .task(
            TaskBuilder::new("control", MS(10))
                .wcet(us(1_000))
                .communication(Communication::Let)
                .input(InputBuilder::new("state").from("imu.estimate.state").latest())
                .input(InputBuilder::new("stop").from("stop.request").each().capacity(4).full(Full::Newest)),
        )
        .task(
            TaskBuilder::triggered_by("log", TriggerBuilder::output("imu.estimate.state").every(20))
                .separation(MS(100))
                .wcet(us(50)),
        )
        .task(TaskBuilder::triggered_by("show", "imu.read.sample").deadline(MS(9)).wcet(us(1)))
        .task(
            TaskBuilder::external("stop", MS(5))
                .burst(3)
                .excess(Excess::Count)
                .arrivals(poisson)
                .wcet(us(200))
                .output(OutputBuilder::new("request")),
        )
        .chain(ChainBuilder::new("stop to actuator", ["stop", "control"]).latency(MS(10)).age(MS(20)));
    let text = r#"
        [system]
        name = "robot"
        [[task]]
        name = "imu"
        period = "5ms"
        [[task.subtask]]
        name = "read"
        wcet = "100us"
        outputs = [{ name = "sample" }]
        [[task.subtask]]
        name = "estimate"
        wcet = "300us"
        inputs = [{ name = "sample", from = "imu.read.sample", take = "instance" }]
        outputs = [{ name = "state", bytes = 64, fields.x.uniform = [20, 90] }]
        [[task]]
        name = "control"
        period = "10ms"
        communication = "let"
        wcet = "1ms"
        inputs = [
            { name = "state", from = "imu.estimate.state" },
            { name = "stop", from = "stop.request", take = "each", capacity = 4, full = "newest" },
        ]
        [[task]]
        name = "log"
        trigger = { output = "imu.estimate.state", every = 20 }
        separation = "100ms"
        wcet = "50us"
        [[task]]
        name = "show"
        trigger.output = "imu.read.sample"
        deadline = "9ms"
        wcet = "1us"
        [[task]]
        name = "stop"
        trigger = "external"
        separation = "5ms"
        burst = 3
        excess = "count"
        arrivals = { poisson = "20ms" }
        wcet = "200us"
        outputs = [{ name = "request" }]
        [[chain]]
        name = "stop to actuator"
        path = ["stop", "control"]
        latency = "10ms"
        age = "20ms"
    "#;
    assert_eq!(built.build().expect("it is sound"), system(text));
}

#[test]
fn an_input_that_reads_nothing_is_refused() {
    let task = TaskBuilder::new("t", MS(5)).wcet(Work::from_micros(1)).input(InputBuilder::new("in"));
    let violations = System::builder("s").task(task).build().expect_err("it says nothing");
    assert_eq!(
        violations.to_string(),
        "error: input \"in\" of task \"t\" does not say what it reads (name an output: from = \"task.output\")"
    );
}

#[test]
fn values_that_come_faster_than_the_separation_lets_them_are_warned_of() {
    let text = |separation: &str, excess: &str| {
        format!(
            "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"5ms\"\nwcet = \"1us\"\noutputs = [{{ name = \"o\" }}]\n\
             [[task]]\nname = \"b\"\ntrigger = {{ output = \"a.o\", every = 2 }}\nseparation = \"{separation}\"\nexcess = \"{excess}\"\n\
             wcet = \"1us\"\n"
        )
    };
    let warnings = |separation, excess| parsed(&text(separation, excess)).warnings;
    let [warning] = &warnings("11ms", "defer")[..] else { panic!("one warning") };
    assert_eq!(
        warning.in_file("f").to_string(),
        "f:11:14: warning: task \"b\" is triggered every 10ms and released every 11ms: ever more releases wait\n  help: shorten the \
         separation, write every = ... at the trigger, excess = \"drop\", or overrun = \"merge\"; see line 10"
    );
    assert!(warnings("10ms", "defer").is_empty());
    assert!(warnings("11ms", "drop").is_empty());
}

#[test]
fn what_follows_from_a_value_that_cannot_be_read_is_not_reported() {
    let head = "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"5ms\"\nwcet = \"1us\"\n";
    let outputs = "outputs = [{ name = 7 }]\n";
    let rest = "[[task]]\nname = \"b\"\nperiod = \"5ms\"\nwcet = \"1us\"\ninputs = [{ name = \"i\", from = \"a.o\" }]\n";
    let text = crate::refusal(&format!("{head}{outputs}{rest}"));
    assert_eq!(text.matches("error:").count(), 1, "{text}");
    let triggered =
        "trigger = 7\nseparation = \"1ms\"\nburst = 2\narrivals = \"none\"\nname = \"b\"\nwcet = \"1us\"\n";
    let text = crate::refusal(&format!("{head}[[task]]\n{triggered}"));
    assert_eq!(text.matches("error:").count(), 1, "{text}");
    let triggered = "trigger = \"external\"\nseparation = 1\narrivals = { sporadic = \"1ms\" }\nname = \"b\"\nwcet = \"1us\"\n";
    let text = crate::refusal(&format!("{head}[[task]]\n{triggered}"));
    assert_eq!(text.matches("error:").count(), 1, "{text}");
}

/// A run starts a process for each node, between which completions go with their values, and nothing else.
#[test]
fn what_cannot_go_from_node_to_node_is_warned_of() {
    let of_length = |bytes: u32, writer: &str, reader: &str| {
        let text = format!(
            "[system]\nname = \"s\"\n[[node]]\nname = \"a\"\ncpus = [0]\n[[node]]\nname = \"b\"\ncpus = [1]\n\
             [[task]]\nname = \"z\"\nnode = \"b\"\nperiod = \"20ms\"\nwcet = \"1ms\"\n\
             [[task]]\nname = \"t\"\nperiod = \"20ms\"\n\
             [[task.subtask]]\nname = \"w\"\nnode = \"a\"\nwcet = \"1ms\"\n\
             outputs = [{{ name = \"v\", bytes = {bytes} }}, {{ name = \"u\", bytes = {bytes} }}]\n\
             [[task.subtask]]\nname = \"x\"\nwcet = \"1ms\"\nnode = \"{writer}\"\n\
             [[task.subtask]]\nname = \"r\"\nwcet = \"1ms\"\n{reader}\n"
        );
        let warnings =
            parse("s.toml", &text, Path::new("")).unwrap_or_else(|problems| panic!("{problems}")).warnings;
        warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    let between = |writer: &str, reader: &str| of_length(3_000, writer, reader);
    let on_b = |rest: &str| format!("node = \"b\"\n{rest}");
    let direct = "after = [\"w\"]\ninputs = [{ name = \"v\", from = \"t.w.v\" }]";
    assert_eq!(between("a", &on_b(direct)), [""; 0], "a successor may be anywhere");
    let both =
        "after = [\"w\"]\ninputs = [{ name = \"v\", from = \"t.w.v\" }, { name = \"u\", from = \"t.w.u\" }]";
    let told = between("a", &on_b(both));
    assert!(
        told[0].contains("subtask \"w\" of task \"t\" sends to other nodes takes 6008 bytes"),
        "{told:?}"
    );
    assert_eq!(of_length(2_004, "a", &on_b(both)), [""; 0], "a message is full");
    assert_eq!(of_length(2_005, "a", &on_b(both)).len(), 1, "each has four bytes in front of it");
    assert_eq!(between("a", &format!("node = \"a\"\n{both}")), [""; 0], "on the same node they may be long");
    for reader in [
        "inputs = [{ name = \"v\", from = \"t.w.v\", take = \"latest\" }]",
        "after = [\"w\"]\ninputs = [{ name = \"v\", from = \"t.w.v\", take = \"latest\" }]",
        "after = [\"w\"]\ninputs = [{ name = \"v\", from = \"t.w.v\", take = \"each\" }]",
        "after = [\"x\"]\ninputs = [{ name = \"v\", from = \"t.w.v\", take = \"latest\" }]",
    ] {
        let told = between("a", &on_b(reader));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("reads output \"v\" of subtask \"w\" of task \"t\", which is on another node"),
            "{told:?}"
        );
        let is_said = told[0].contains("not what it comes directly after");
        assert_eq!(is_said, !reader.starts_with("after = [\"w\"]"), "{told:?}");
        assert_eq!(between("b", &format!("node = \"a\"\n{reader}")), [""; 0], "on one node all go");
    }
    let triggered = |node: &str| {
        let task = format!(
            "[[task]]\nname = \"c\"\nnode = \"{node}\"\nwcet = \"1ms\"\ndeadline = \"20ms\"\ntrigger = {{ output = \"t.w.v\" }}"
        );
        between("a", &on_b(&task))
    };
    assert!(triggered("b")[0].contains("task \"c\" is released by output \"v\""), "{:?}", triggered("b"));
    assert_eq!(triggered("a"), [""; 0]);
}
