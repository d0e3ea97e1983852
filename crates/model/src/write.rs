//! Writes a system as a file that reads back as the same system.

use crate::System;
use crate::description::{Execution, Node, Subtask, Task};
use std::fmt::{self, Display, Write};

impl System {
    /// The text of a system file that parses to an equal system. Defaults are written out, so that it
    /// keeps its meaning; execution-time traces become lists.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string succeeds");
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "[system]")?;
        quoted(out, "name", &self.name)?;
        quoted(out, "strategy", self.strategy)?;
        quoted(out, "lane_dispatch", self.lane_dispatch)?;
        quoted(out, "laxity", self.laxity)?;
        quoted(out, "late", self.late)?;
        writeln!(out, "seed = {}", self.seed)?;
        quoted(out, "message_delay", self.message_delay)?;
        writeln!(out, "\n[overhead]")?;
        quoted(out, "switch", self.overhead.switch)?;
        quoted(out, "queue", self.overhead.queue)?;
        quoted(out, "timer", self.overhead.timer)?;
        quoted(out, "message", self.overhead.message)?;
        for Node { name, cpus } in &self.nodes {
            writeln!(out, "\n[[node]]")?;
            quoted(out, "name", name)?;
            let cpus: Vec<_> = cpus.iter().map(u16::to_string).collect();
            writeln!(out, "cpus = [{}]", cpus.join(", "))?;
        }
        self.tasks.iter().try_for_each(|task| self.write_task(task, out))
    }

    fn write_task(&self, task: &Task, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[[task]]")?;
        quoted(out, "name", &task.name)?;
        quoted(out, "period", task.period)?;
        quoted(out, "deadline", task.deadline)?;
        quoted(out, "phase", task.phase)?;
        quoted(out, "jitter", task.jitter)?;
        quoted(out, "criticality", task.criticality)?;
        writeln!(out, "importance = {}", task.importance)?;
        quoted(out, "overrun", task.overrun)?;
        if let [alone] = task.subtasks.as_slice()
            && alone.name == task.name
        {
            return self.write_step(alone, out);
        }
        for (position, subtask) in task.subtasks.iter().enumerate() {
            writeln!(out, "  [[task.subtask]]")?;
            quoted(out, "name", &subtask.name)?;
            self.write_step(subtask, out)?;
            if subtask.after.as_slice() != position.checked_sub(1).as_slice() {
                let names = subtask.after.iter().map(|before| &task.subtasks[*before].name);
                list(out, "after", names)?;
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn write_step(&self, subtask: &Subtask, out: &mut String) -> fmt::Result {
        quoted(out, "node", &self.nodes[subtask.node].name)?;
        quoted(out, "wcet", subtask.wcet)?;
        match &subtask.exec {
            Execution::Constant(work) => quoted(out, "exec", work),
            Execution::Uniform(low, high) => writeln!(out, "exec = {{ uniform = [\"{low}\", \"{high}\"] }}"),
            Execution::List(works) => {
                write!(out, "exec = {{ ")?;
                list(out, "list", works.iter())?;
                writeln!(out, " }}")
            }
        }
    }
}

/// `key = "value"`; no value that is written here contains a character that needs an escape.
fn quoted(out: &mut String, key: &str, value: impl Display) -> fmt::Result {
    writeln!(out, "{key} = \"{value}\"")
}

fn list(out: &mut String, key: &str, values: impl Iterator<Item = impl Display>) -> fmt::Result {
    write!(out, "{key} = [")?;
    for (index, value) in values.enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(out, "{separator}\"{value}\"")?;
    }
    write!(out, "]")
}
