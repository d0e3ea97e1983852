use super::*;
use crate::description::*;
use crate::execution::Execution;
use talea_time::{Duration, Work};

fn subtask(name: &str, after: &[usize]) -> Subtask {
    let wcet = Work::from_millis(1);
    let (exec, after) = (Execution::Constant(wcet), after.to_vec());
    let (outputs, inputs) = (Vec::new(), Vec::new());
    Subtask { name: name.into(), node: 0, wcet, exec, after, join: Join::All, bound: None, outputs, inputs }
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
