//! Writes a system as a file that reads back as the same system.

use crate::System;
use crate::description::{Join, Node, Subtask, Task};
use crate::execution::Execution;
use crate::hierarchy::{Request, Scheduler, Setting, Thread, ThreadWork, Under};
use crate::link::{Link, LinkEnds};
use crate::plan::{Plan, PlanEntry};
use std::fmt::{self, Display, Write};
use talea_time::Duration;

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
        if self.has_lanes() {
            quoted(out, "strategy", self.strategy)?;
        }
        quoted(out, "lane_dispatch", self.lane_dispatch)?;
        quoted(out, "laxity", self.laxity)?;
        quoted(out, "late", self.late)?;
        writeln!(out, "seed = {}", self.seed)?;
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
        self.links.iter().try_for_each(|link| self.write_link(link, out))?;
        self.tasks.iter().try_for_each(|task| self.write_task(task, out))?;
        self.schedulers.iter().try_for_each(|scheduler| self.write_scheduler(scheduler, out))?;
        self.threads.iter().try_for_each(|thread| self.write_thread(thread, out))
    }

    fn write_link(&self, link: &Link, out: &mut String) -> fmt::Result {
        let name = |node: usize| &self.nodes[node].name;
        writeln!(out, "\n[[link]]")?;
        match link.ends {
            LinkEnds::Between(one, other) => {
                writeln!(out, "between = [\"{}\", \"{}\"]", name(one), name(other))?;
            }
            LinkEnds::FromTo(from, to) => {
                quoted(out, "from", name(from))?;
                quoted(out, "to", name(to))?;
            }
            LinkEnds::Others => {}
        }
        quoted(out, "delay", link.route.delay)?;
        quoted(out, "jitter", link.route.jitter)?;
        writeln!(out, "loss = {}", link.route.loss)
    }

    fn write_scheduler(&self, scheduler: &Scheduler, out: &mut String) -> fmt::Result {
        let Scheduler { name, node, kind, quantum, takes, settings, under } = scheduler;
        writeln!(out, "\n[[scheduler]]")?;
        quoted(out, "name", name)?;
        quoted(out, "kind", kind)?;
        quoted(out, "node", &self.nodes[*node].name)?;
        if let Some(quantum) = quantum {
            quoted(out, "quantum", quantum)?;
        }
        if let Some(takes) = takes {
            quoted(out, "takes", &self.schedulers[*takes].name)?;
        }
        for (name, setting) in settings.iter() {
            match setting {
                Setting::Integer(number) => writeln!(out, "{name} = {number}")?,
                Setting::Time(_) | Setting::Word(_) => quoted(out, name, setting)?,
                Setting::Plan(plan) => write_plan(out, name, plan)?,
            }
        }
        self.write_under(under, out)
    }

    fn write_thread(&self, thread: &Thread, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[[thread]]")?;
        quoted(out, "name", &thread.name)?;
        match &thread.work {
            ThreadWork::CpuBound => quoted(out, "work", "cpu-bound")?,
            ThreadWork::Bursts { burst, period } => {
                write!(out, "work = {{ burst = ")?;
                execution(out, burst)?;
                writeln!(out, ", period = \"{period}\" }}")?;
            }
            ThreadWork::Command(words) => {
                let words: Vec<String> =
                    words.iter().map(|word| toml::Value::from(word.as_str()).to_string()).collect();
                writeln!(out, "run = [{}]", words.join(", "))?;
            }
            ThreadWork::Process(number) => writeln!(out, "pid = {number}")?,
        }
        if let Some(requires) = &thread.requires {
            quoted(out, "requires", requires)?;
        }
        self.write_under(&thread.under, out)
    }

    fn write_under(&self, under: &[Under], out: &mut String) -> fmt::Result {
        if under.is_empty() {
            return Ok(());
        }
        write!(out, "under = [")?;
        for (index, Under { scheduler, request }) in under.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(out, "{separator}{{ scheduler = \"{}\"", self.schedulers[*scheduler].name)?;
            match request {
                Request::Nothing => {}
                Request::Priority(priority) => write!(out, ", priority = {priority}")?,
                Request::Share { weight, warp } => {
                    write!(out, ", share = {weight}")?;
                    if *warp > Duration::ZERO {
                        write!(out, ", warp = \"{warp}\"")?;
                    }
                }
                Request::Guarantee(guarantee) => write!(out, ", guarantee = \"{guarantee}\"")?,
            }
            write!(out, " }}")?;
        }
        writeln!(out, "]")
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
        quoted(out, "sync", task.sync)?;
        if let [alone] = task.subtasks.as_slice()
            && alone.name == task.name
            && alone.bound.is_none()
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
            match subtask.join {
                Join::All => {}
                Join::First => quoted(out, "join", subtask.join)?,
                Join::Count(count) => writeln!(out, "join = {count}")?,
            }
            if let Some(bound) = subtask.bound {
                quoted(out, "bound", bound)?;
            }
        }
        Ok(())
    }

    fn write_step(&self, subtask: &Subtask, out: &mut String) -> fmt::Result {
        quoted(out, "node", &self.nodes[subtask.node].name)?;
        quoted(out, "wcet", subtask.wcet)?;
        write!(out, "exec = ")?;
        execution(out, &subtask.exec)?;
        writeln!(out)
    }
}

fn write_plan(out: &mut String, key: &str, plan: &Plan) -> fmt::Result {
    writeln!(out, "{key} = [")?;
    for PlanEntry { start, duration, child } in plan.entries() {
        writeln!(out, "  {{ start = \"{start}\", duration = \"{duration}\", child = \"{child}\" }},")?;
    }
    writeln!(out, "]")
}

fn execution(out: &mut String, execution: &Execution) -> fmt::Result {
    match execution {
        Execution::Constant(work) => write!(out, "\"{work}\""),
        Execution::Uniform(low, high) => write!(out, "{{ uniform = [\"{low}\", \"{high}\"] }}"),
        Execution::List(works) => {
            write!(out, "{{ ")?;
            list(out, "list", works.iter())?;
            write!(out, " }}")
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
