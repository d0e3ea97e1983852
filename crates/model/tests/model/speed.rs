//! Large files are read in time that grows with their size. The tests assert results, not times: what
//! takes quadratic time at these sizes takes minutes and is noticed.

use crate::parsed;
use std::fmt::Write;

#[test]
fn a_hundred_thousand_tasks() {
    let mut text = "[system]\nname = \"large\"\n".to_owned();
    for task in 0..100_000 {
        writeln!(text, "[[task]]\nname = \"task-{task}\"\nperiod = \"1h\"\ncriticality = 3\nwcet = \"30ms\"")
            .expect("writing to a string succeeds");
    }
    assert_eq!(parsed(&text).system.operations().len(), 100_000);
}

#[test]
fn a_chain_of_twenty_thousand_subtasks_written_backwards() {
    let last = 20_000;
    let mut text = "[system]\nname = \"s\"\n[[task]]\nname = \"t\"\nperiod = \"10h\"\n".to_owned();
    for position in 0..=last {
        let after = if position == last { "".into() } else { format!("\"s{}\"", position + 1) };
        writeln!(text, "[[task.subtask]]\nname = \"s{position}\"\nwcet = \"1us\"\nafter = [{after}]")
            .expect("writing to a string succeeds");
    }
    let system = parsed(&text).system;
    assert_eq!(system.operations()[0].topological_rank, last);
    assert_eq!(system.operations()[1].successors.len(), 1);
}

#[test]
fn as_many_errors_as_tasks() {
    let wrong =
        "[[task]]\nname = \"t\"\nperiod = 5\nwcet = \"2ms\"\nexec = \"3ms\"\nnode = \"x\"\ncolour = 1\n";
    let text = format!("[system]\nname = \"s\"\n{}", wrong.repeat(10_000));
    let problems = talea_model::parse("t", &text, "".as_ref()).expect_err("it is malformed");
    assert_eq!(problems.list().len(), 10_000 * 4 - 1);
    let syntax = "= 5\n".repeat(30_000);
    assert!(talea_model::parse("t", &syntax, "".as_ref()).is_err());
}
