use super::*;
use crate::description::*;
use crate::execution::Execution;
use crate::operation::OperationAddress;
use crate::{
    Chain, Excess, Full, Input, OnValue, Output, OutputAddress, OutsideArrivals, PORT_LIMIT, Separation,
    Take, Trigger,
};
use talea_time::{Duration, Work};

fn subtask(name: &str, after: &[usize]) -> Subtask {
    let wcet = Work::from_millis(1);
    let (exec, after) = (Execution::Constant(wcet), after.to_vec());
    let (outputs, inputs) = (Vec::new(), Vec::new());
    Subtask {
        name: name.into(),
        node: 0,
        lanes: None,
        wcet,
        exec,
        after,
        join: Join::All,
        bound: None,
        outputs,
        inputs,
        events: Vec::new(),
        subscription: None,
    }
}

fn task(subtasks: Vec<Subtask>) -> Task {
    let (mut description, _) =
        crate::System::builder("s").task(crate::TaskBuilder::new("t", Duration::from_secs(10_000))).resolve();
    Task { subtasks, ..description.tasks.remove(0) }
}

fn messages(task_subtasks: Vec<Subtask>) -> Vec<String> {
    let mut description = crate::System::builder("s").node("n", [0]).resolve().0;
    description.tasks = vec![task(task_subtasks)];
    violations(&description).into_iter().map(|violation| violation.message).collect()
}

#[test]
fn ranks_follow_the_graph_and_then_the_file() {
    let diamond = [subtask("d", &[1, 2]), subtask("b", &[3]), subtask("c", &[3]), subtask("a", &[])];
    assert_eq!(topological_ranks(&diamond), Some(vec![3, 1, 2, 0]));
    assert_eq!(topological_ranks(&[subtask("a", &[1]), subtask("b", &[0])]), None);
}

#[test]
fn a_cycle_is_named_in_the_order_of_execution() {
    let tail = vec![subtask("tail", &[1]), subtask("a", &[3]), subtask("b", &[1]), subtask("c", &[2])];
    assert_eq!(messages(tail), ["the subtasks of task \"t\" wait for each other: a, b, c, a"]);
    let own = vec![subtask("a", &[0])];
    assert_eq!(messages(own), ["the subtasks of task \"t\" wait for each other: a, a"]);
}

#[test]
fn indices_out_of_range_are_refused_before_they_are_used() {
    let mut stray = subtask("a", &[7]);
    stray.node = 3;
    assert_eq!(
        messages(vec![stray]),
        [
            "subtask \"a\" of task \"t\" is on node number 3, which does not exist",
            "subtask \"a\" of task \"t\" is after subtask number 7, which does not exist",
        ]
    );
}

#[test]
fn negative_times_are_refused() {
    let mut negative = subtask("a", &[]);
    negative.exec = Execution::Uniform(Work::from_nanos(-5), Work::from_nanos(5));
    assert_eq!(messages(vec![negative]), ["the exec of subtask \"a\" of task \"t\" is negative (-5ns)"]);
}

#[test]
fn more_operations_than_a_trace_word_numbers_are_refused() {
    let mut description = crate::System::builder("s").node("n", [0]).resolve().0;
    let many = (0..=OperationId::LIMIT).map(|index| subtask(&format!("s{index}"), &[])).collect();
    description.tasks = vec![task(many)];
    let found = violations(&description);
    assert_eq!(found.len(), 1, "{:?}", found.first());
    assert_eq!(found[0].message, "with task \"t\" the system has more than 1048576 subtasks");
}

/// A system of two tasks, of which the second reads the first's output.
fn pair() -> Description {
    use crate::{InputBuilder, OutputBuilder, TaskBuilder};
    let task = |name| TaskBuilder::new(name, Duration::from_millis(9)).wcet(Work::from_millis(1));
    let (description, unresolved) = crate::System::builder("s")
        .task(task("a").output(OutputBuilder::new("o")))
        .task(task("b").input(InputBuilder::new("i").from("a.o")))
        .resolve();
    assert!(unresolved.is_empty());
    description
}

fn messages_of(change: impl FnOnce(&mut Description)) -> Vec<String> {
    let mut description = pair();
    change(&mut description);
    violations(&description).into_iter().map(|violation| violation.message).collect()
}

#[test]
fn addresses_out_of_range_are_refused_before_they_are_used() {
    let nowhere =
        |task, subtask, output| OutputAddress { operation: OperationAddress { task, subtask }, output };
    for from in [nowhere(2, 0, 0), nowhere(0, 1, 0), nowhere(0, 0, 1)] {
        let OutputAddress { operation: OperationAddress { task, subtask }, output } = from;
        let expected = format!(
            "output number {output} of subtask number {subtask} of task number {task}, which does not exist"
        );
        assert_eq!(
            messages_of(|description| description.tasks[1].subtasks[0].inputs[0].from = from),
            [format!("input \"i\" of task \"b\" reads {expected}")]
        );
        let trigger = Trigger::Output { output: from, every: 1, on: OnValue::Value };
        assert_eq!(
            messages_of(|description| description.tasks[1].trigger = Some(trigger)),
            [format!("task \"b\" is triggered by {expected}")]
        );
    }
    let path = vec![OperationAddress { task: 0, subtask: 0 }, OperationAddress { task: 0, subtask: 1 }];
    let chain = Chain { name: "c".into(), path, latency: None, reaction: None, age: None };
    assert_eq!(
        messages_of(|description| description.chains.push(chain)),
        ["chain \"c\" leads through subtask number 1 of task number 0, which does not exist"]
    );
}

#[test]
fn what_only_plain_values_can_say_wrongly_is_refused() {
    let output = OutputAddress { operation: OperationAddress { task: 0, subtask: 0 }, output: 0 };
    let trigger = Trigger::Output { output, every: 0, on: OnValue::Value };
    assert_eq!(
        messages_of(|description| description.tasks[1].trigger = Some(trigger)),
        ["task \"b\" is triggered by every 0th value"]
    );
    let separation = Separation { separation: Duration::ZERO, burst: 0, excess: Excess::Drop };
    assert_eq!(
        messages_of(|description| {
            description.tasks[1].trigger = Some(Trigger::External { arrivals: OutsideArrivals::None });
            description.tasks[1].separation = Some(separation);
        }),
        ["the separation of task \"b\" is zero", "task \"b\" has a burst of 0"]
    );
    let each = |capacity| Take::Each { capacity, full: Full::Oldest };
    for capacity in [0, 65_537] {
        assert_eq!(
            messages_of(|description| description.tasks[1].subtasks[0].inputs[0].take = each(capacity)),
            [format!("input \"i\" of task \"b\" has a capacity of {capacity}")]
        );
    }
    assert_eq!(
        messages_of(|description| description.tasks[0].subtasks[0].outputs[0].bytes = Output::BYTES_LIMIT + 1),
        ["the values of output \"o\" of task \"a\" have 1048577 bytes"]
    );
}

#[test]
fn triggers_that_fire_less_than_once_in_ten_years_are_refused() {
    let output = OutputAddress { operation: OperationAddress { task: 0, subtask: 0 }, output: 0 };
    let trigger = Trigger::Output { output, every: u32::MAX, on: OnValue::Value };
    assert!(messages_of(|description| description.tasks[1].trigger = Some(trigger.clone())).is_empty());
    assert_eq!(
        messages_of(|description| {
            description.tasks[0].period = TIME_LIMIT;
            description.tasks[0].deadline = TIME_LIMIT;
            description.tasks[1].trigger = Some(trigger);
        }),
        ["task \"b\" is triggered by every 4294967295th value, less often than once in ten years"]
    );
}

#[test]
fn more_ports_and_chains_than_are_numbered_are_refused() {
    let output = |index: usize| Output { name: format!("o{index}"), bytes: 8, fields: Vec::new() };
    let outputs: Vec<Output> = (0..=PORT_LIMIT).map(output).collect();
    assert_eq!(
        messages_of(|description| {
            description.tasks[1].subtasks[0].inputs.clear();
            description.tasks[0].subtasks[0].outputs = outputs;
        }),
        ["with task \"a\" the system has more than 65536 outputs"]
    );
    let input = |index: usize| {
        let from = OutputAddress { operation: OperationAddress { task: 0, subtask: 0 }, output: 0 };
        Input { name: format!("i{index}"), from, take: Take::Latest }
    };
    let inputs: Vec<Input> = (0..=PORT_LIMIT).map(input).collect();
    assert_eq!(
        messages_of(|description| description.tasks[1].subtasks[0].inputs = inputs),
        ["with task \"b\" the system has more than 65536 inputs"]
    );
    let chain = |index: usize| {
        let path = vec![OperationAddress { task: 0, subtask: 0 }, OperationAddress { task: 1, subtask: 0 }];
        Chain { name: format!("c {index}"), path, latency: None, reaction: None, age: None }
    };
    assert_eq!(
        messages_of(|description| description.chains = (0..=PORT_LIMIT).map(chain).collect()),
        ["the system has 65537 chains, more than 65536"]
    );
}

#[test]
fn predecessors_are_found_through_others() {
    let graph = task(vec![subtask("a", &[]), subtask("b", &[0]), subtask("c", &[1]), subtask("d", &[])]);
    let before = |later| (0..4).filter(|earlier| graph.precedes(*earlier, later)).collect::<Vec<_>>();
    assert_eq!([0, 1, 2, 3].map(before), [vec![], vec![0], vec![0, 1], vec![]]);
}
