//! What tables become.

use crate::files::{accepted, changes, example, named, names};
use talea_interchange::{Format, Translated, export};
use talea_model::{Criticality, Execution, Overrun};
use talea_time::{Duration, Work};

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_spreadsheet_with_units_in_the_first_row() {
    let Translated { value, losses } = example("plant.csv");
    assert_eq!(names(&value), ["valve", "pump", "trend"]);
    assert_eq!((named(&value, "valve").period, named(&value, "valve").deadline), (ms(10), ms(5)));
    assert_eq!(named(&value, "pump").deadline, ms(20), "the period");
    assert_eq!(named(&value, "trend").subtasks[0].wcet, Work::from_nanos(42_000_500));
    assert_eq!(named(&value, "trend").criticality, Criticality::VeryLow);
    let nodes: Vec<_> = value.nodes.iter().map(|node| (node.name.as_str(), node.cpus.as_slice())).collect();
    let expected: [(&str, &[u16]); 2] = [("field", &[0]), ("office", &[1])];
    assert_eq!(nodes, expected);
    assert_eq!(changes(&losses), ["assumed node \"field\", cpus", "assumed node \"office\", cpus"]);
}

#[test]
fn graphs_of_subtasks() {
    let Translated { value, losses } = example("arm.csv");
    assert_eq!(losses, []);
    let balance = named(&value, "balance");
    assert_eq!((balance.jitter, balance.criticality), (Duration::from_micros(200), Criticality::High));
    let uniform = Execution::Uniform(Work::from_nanos(400_000), Work::from_millis(1));
    assert_eq!(balance.subtasks[0].exec, uniform);
    let grasp = named(&value, "grasp");
    assert_eq!((grasp.importance, grasp.overrun, grasp.deadline), (4, Overrun::SkipNext, ms(35)));
    let after: Vec<_> = grasp.subtasks.iter().map(|step| step.after.clone()).collect();
    assert_eq!(after, [vec![], vec![], vec![0, 1]]);
    assert_eq!(grasp.subtasks[1].exec, Execution::List([4, 2, 3].map(Work::from_millis).into()));
    let placed: Vec<&str> = grasp.subtasks.iter().map(|step| value.nodes[step.node].name.as_str()).collect();
    assert_eq!(placed, ["vision", "vision", "control"]);
    assert_eq!(value.nodes[1].cpus, [1, 2]);
}

#[test]
fn rows_of_a_task_need_not_be_together_and_follow_each_other() {
    let text = "subtask\ttask\twcet\tperiod\nx\ta\t1ms\t\n\tb\t1ms\t5ms\ny\ta\t1ms\t9ms\n";
    let Translated { value, losses } = accepted(Format::Csv, text);
    assert_eq!((names(&value), losses.len()), (vec!["a", "b"], 0));
    let a = named(&value, "a");
    assert_eq!((a.period, &a.subtasks[1].after), (ms(9), &vec![0]), "the period stands on its last row");
    assert_eq!(value.nodes[0].name, "local");
}

#[test]
fn processors_without_a_node_are_those_of_the_only_one() {
    let Translated { value, .. } = accepted(Format::Csv, "task,period,wcet,cpus\na,5ms,1ms,2 3\n");
    assert_eq!((value.nodes[0].name.as_str(), value.nodes[0].cpus.as_slice()), ("local", &[2, 3][..]));
}

#[test]
fn times_finer_than_a_nanosecond_are_rounded_and_said() {
    let Translated { value, losses } = accepted(Format::Csv, "task,period_us,wcet_us\na,10,0.1234567\n");
    assert_eq!(value.tasks[0].subtasks[0].wcet, Work::from_nanos(123));
    assert_eq!(changes(&losses), ["approximated task \"a\", wcet"]);
}

#[test]
fn a_system_becomes_a_row_per_subtask() {
    let text = "[system]\nname = \"s\"\nseed = 7\n[[node]]\nname = \"n\"\ncpus = [0, 2]\n[[node]]\nname = \"idle\"\ncpus = [1]\n\
                [[task]]\nname = \"t\"\nperiod = \"10ms\"\n\
                [[task.subtask]]\nname = \"a\"\nnode = \"n\"\nwcet = \"2ms\"\nexec = { uniform = [\"1ms\", \"2ms\"] }\n\
                [[task.subtask]]\nname = \"b\"\nnode = \"n\"\nwcet = \"3ms\"\nafter = []\n";
    let system = talea_model::parse("s.toml", text, "".as_ref()).expect("valid").system;
    let exported = export(Format::Csv, &system);
    assert_eq!(
        exported.value,
        "task,period,deadline,phase,jitter,criticality,importance,overrun,subtask,node,cpus,wcet,exec,after\n\
         t,10ms,10ms,0s,0s,medium,0,queue,a,n,0 2,2ms,uniform 1ms 2ms,\n\
         t,10ms,10ms,0s,0s,medium,0,queue,b,n,0 2,3ms,3ms,[]\n"
    );
    assert_eq!(changes(&exported.losses), ["lost the system, seed", "lost node \"idle\", name"]);
}
