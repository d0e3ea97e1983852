//! Systems written in Rust obey the same rules as files.

use crate::{parsed, system};
use talea_model::*;
use talea_time::{Duration, Work};

fn task(name: &str) -> TaskBuilder {
    TaskBuilder::new(name, Duration::from_millis(100)).wcet(Work::from_millis(1))
}

#[test]
fn the_builder_and_the_file_make_equal_systems() {
    let ms = Work::from_millis;
    let built = System::builder("arm")
        .strategy(Strategy::Edf)
        .lane_dispatch(LaneDispatch::Preemptive)
        .laxity(Laxity::Remaining)
        .late(Late::None)
        .seed(9)
        .overhead(Overhead { message: Work::from_nanos(20_000), ..Overhead::default() })
        .node("control", [0])
        .node("vision", [1, 2])
        .link(
            LinkBuilder::between("control", "vision")
                .delay(Duration::from_micros(500))
                .jitter(Duration::from_micros(20)),
        )
        .task(
            TaskBuilder::new("grasp", Duration::from_millis(40))
                .deadline(Duration::from_millis(60))
                .phase(Duration::from_millis(3))
                .jitter(Duration::from_millis(2))
                .criticality(Criticality::High)
                .importance(5)
                .overrun(Overrun::Abort)
                .subtask(SubtaskBuilder::new("left").wcet(ms(2)).on("vision"))
                .subtask(SubtaskBuilder::new("right").wcet(ms(3)).on("vision").after([""; 0]))
                .subtask(SubtaskBuilder::new("plan").wcet(ms(1)).on("control").after(["left", "right"]))
                .subtask(
                    SubtaskBuilder::new("move")
                        .wcet(ms(1))
                        .on("control")
                        .exec(Execution::Uniform(ms(0), ms(1))),
                ),
        )
        .task(task("balance").on("control").exec(Execution::Constant(ms(0))))
        .build()
        .expect("the system is valid");
    let text = r#"
        [system]
        name = "arm"
        strategy = "edf"
        lane_dispatch = "preemptive"
        laxity = "remaining"
        late = "none"
        seed = 9
        [overhead]
        message = "20us"
        [[node]]
        name = "control"
        cpus = [0]
        [[node]]
        name = "vision"
        cpus = [1, 2]
        [[link]]
        between = ["control", "vision"]
        delay = "500us"
        jitter = "20us"
        [[task]]
        name = "grasp"
        period = "40ms"
        deadline = "60ms"
        phase = "3ms"
        jitter = "2ms"
        criticality = "high"
        importance = 5
        overrun = "abort"
        subtask = [
            { name = "left", wcet = "2ms", node = "vision" },
            { name = "right", wcet = "3ms", node = "vision", after = [] },
            { name = "plan", wcet = "1ms", node = "control", after = ["left", "right"] },
            { name = "move", wcet = "1ms", node = "control", exec = { uniform = ["0ms", "1ms"] } },
        ]
        [[task]]
        name = "balance"
        period = "100ms"
        node = "control"
        wcet = "1ms"
        exec = "0ms"
    "#;
    assert_eq!(built, system(text));
}

#[test]
fn the_defaults_of_builder_and_file_agree() {
    let built = System::builder("s").task(task("t")).build().expect("the system is valid");
    assert_eq!(built, system("system.name = 's'\ntask = [{ name = 't', period = '100ms', wcet = '1ms' }]"));
}

#[test]
fn all_violations_come_at_once() {
    let subtask = SubtaskBuilder::new("a").wcet(Work::ZERO).on("nowhere").after(["b"]);
    let error = System::builder("no good")
        .node("n", [0, 0])
        .task(TaskBuilder::new("t", Duration::ZERO).subtask(subtask))
        .task(task("t"))
        .build()
        .expect_err("the system is not valid");
    assert_eq!(
        error.to_string(),
        "error: system name \"no good\" contains ' ' (names consist of letters, digits, - and _; write \"no-good\")\n\
         error: node \"n\" has cpu 0 twice (list each processor once)\n\
         error: the period of task \"t\" is zero (make it more than zero)\n\
         error: subtask \"a\" of task \"t\" is on node \"nowhere\", which does not exist (write \"n\")\n\
         error: subtask \"a\" of task \"t\" is after \"b\", which its task does not have (leave \"after\" out; this is \
         the only subtask)\n\
         error: the wcet of subtask \"a\" of task \"t\" is zero (make it more than zero)\n\
         error: task \"t\" exists already (give each task its own name)"
    );
    assert_eq!(error.0[4].place, Place::Subtask(0, 0, "after"));
    assert_eq!(error.0[6].related, Some(Place::Task(0, "name")));
}

#[test]
fn an_empty_system_is_refused() {
    let error = System::builder("s").build().expect_err("there is no task");
    assert_eq!(error.0[0].place, Place::Whole);
}

#[test]
fn plain_values_obey_the_rules_too() {
    let good = System::builder("s").task(task("t")).build().expect("the system is valid");
    let mut description = Description::clone(&good);
    description.nodes.clear();
    let violations = System::new(description).expect_err("there is no node");
    let messages: Vec<_> = violations.iter().map(|violation| violation.message.as_str()).collect();
    assert_eq!(messages, ["the system has no node", "task \"t\" is on node number 0, which does not exist"]);
    assert!(good.warnings().is_empty());
    let overloaded = System::builder("s").task(task("t").wcet(Work::from_millis(101))).build();
    assert_eq!(overloaded.expect("overload is allowed").warnings().len(), 2);
}

/// Through tasks in between, and those that inherit theirs as well; what is stated stays.
#[test]
fn criticality_is_inherited_from_those_that_are_released() {
    let text = r#"
        system.name = "s"
        system.strategy = "muf"
        channel = [{ name = "c" }]
        [[task]]
        name = "camera"
        period = "10ms"
        wcet = "1ms"
        criticality = "inherited"
        outputs = [{ name = "picture" }]
        [[task]]
        name = "detect"
        trigger = { output = "camera.picture", every = 1 }
        deadline = "5ms"
        wcet = "1ms"
        criticality = "inherited"
        events = [{ channel = "c", type = "A/Obstacle" }]
        [[task]]
        name = "brake"
        subscription = { channel = "c", types = ["A/Obstacle"] }
        deadline = "5ms"
        wcet = "1ms"
        criticality = "high"
        [[task]]
        name = "log"
        subscription = { channel = "c", types = ["A/*"] }
        deadline = "5ms"
        wcet = "1ms"
        criticality = "very-low"
        events = [{ channel = "c", type = "B/Logged" }]
        [[task]]
        name = "alarm"
        subscription = { channel = "c", types = ["B/*"] }
        deadline = "5ms"
        wcet = "1ms"
        criticality = "very-high"
    "#;
    let system = parsed(text).system;
    let levels: Vec<Criticality> = system.tasks.iter().map(|task| task.criticality).collect();
    use Criticality::{High, VeryHigh, VeryLow};
    assert_eq!(levels, [VeryHigh, VeryHigh, High, VeryLow, VeryHigh]);
    let warned: Vec<String> = system.warnings().iter().map(ToString::to_string).collect();
    assert!(warned.len() == 1 && warned[0].contains("task \"log\" is very-low"), "{warned:?}");
    let mut stated = (*system).clone();
    stated.tasks[2].criticality = Criticality::Low;
    stated.tasks[4].criticality = Criticality::Low;
    let changed = System::new(stated).expect("a system");
    assert_eq!(changed.tasks[0].criticality, Criticality::Low, "it follows");
    let alone = TaskBuilder::new("t", Duration::from_millis(10)).wcet(Work::from_millis(1));
    let refused = System::builder("s").task(alone.inherit_criticality()).build();
    assert!(refused.expect_err("it releases nobody").to_string().contains("inherits its criticality"));
}
