//! Writes a system as a file that reads back as the same system.

use crate::System;
use crate::chain::Chain;
use crate::channel::{Channel, Condition, EventTake, Mapped, Publication, Subscription};
use crate::description::{Join, Node, Subtask, Task};
use crate::execution::Execution;
use crate::hierarchy::{ChildProcesses, Request, Scheduler, Setting, Thread, ThreadWork, Under};
use crate::inheritance::INHERITED;
use crate::link::{Link, LinkEnds};
use crate::plan::{Plan, PlanEntry};
use crate::ports::{FieldValues, Full, Input, Output, OutputAddress, SyntheticField, Take};
use crate::trigger::{OutsideArrivals, Separation, Trigger};
use std::fmt::{self, Display, Write};
use talea_event::qos::{PropertyValue, QosSettings};
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
        for (key, cost) in self.overhead.costs() {
            quoted(out, key, cost)?;
        }
        for Node { name, cpus } in &self.nodes {
            writeln!(out, "\n[[node]]")?;
            quoted(out, "name", name)?;
            let cpus: Vec<_> = cpus.iter().map(u16::to_string).collect();
            writeln!(out, "cpus = [{}]", cpus.join(", "))?;
        }
        self.links.iter().try_for_each(|link| self.write_link(link, out))?;
        for Channel { name, qos } in &self.channels {
            writeln!(out, "\n[[channel]]")?;
            quoted(out, "name", name)?;
            if qos.iter().next().is_some() {
                write!(out, "qos = ")?;
                write_qos(qos, out)?;
                writeln!(out)?;
            }
        }
        self.tasks.iter().try_for_each(|task| self.write_task(task, out))?;
        self.chains.iter().try_for_each(|chain| self.write_chain(chain, out))?;
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
            ThreadWork::Process { number, children } => {
                writeln!(out, "pid = {number}")?;
                if *children != ChildProcesses::default() {
                    quoted(out, "children", children)?;
                }
            }
            ThreadWork::Thread(number) => writeln!(out, "tid = {number}")?,
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
        match &task.trigger {
            Some(trigger) => self.write_trigger(trigger, task.separation, out)?,
            None => quoted(out, "period", task.period)?,
        }
        match task.inherits_deadline {
            true => quoted(out, "deadline", INHERITED)?,
            false => quoted(out, "deadline", task.deadline)?,
        }
        if task.trigger.is_none() {
            quoted(out, "phase", task.phase)?;
            quoted(out, "jitter", task.jitter)?;
        }
        quoted(out, "communication", task.communication)?;
        match task.inherits_criticality {
            true => quoted(out, "criticality", INHERITED)?,
            false => quoted(out, "criticality", task.criticality)?,
        }
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

    fn write_trigger(
        &self,
        trigger: &Trigger,
        separation: Option<Separation>,
        out: &mut String,
    ) -> fmt::Result {
        match trigger {
            Trigger::Output { output, every, on } => {
                let output = self.output_name(*output);
                writeln!(out, "trigger = {{ output = \"{output}\", every = {every}, on = \"{on}\" }}")?;
            }
            Trigger::External { .. } => quoted(out, "trigger", "external")?,
            Trigger::Events(subscription) => self.write_subscription(subscription, out)?,
        }
        if let Some(Separation { separation, burst, excess }) = separation {
            quoted(out, "separation", separation)?;
            writeln!(out, "burst = {burst}")?;
            quoted(out, "excess", excess)?;
        }
        let Trigger::External { arrivals } = trigger else { return Ok(()) };
        match arrivals {
            OutsideArrivals::Periodic { period, jitter } => {
                writeln!(out, "arrivals = {{ periodic = \"{period}\", jitter = \"{jitter}\" }}")
            }
            OutsideArrivals::Sporadic { mean } => writeln!(out, "arrivals = {{ sporadic = \"{mean}\" }}"),
            OutsideArrivals::Poisson { mean } => writeln!(out, "arrivals = {{ poisson = \"{mean}\" }}"),
            OutsideArrivals::Listed(times) => {
                write!(out, "arrivals = {{ ")?;
                list(out, "list", times.iter())?;
                writeln!(out, " }}")
            }
            OutsideArrivals::None => quoted(out, "arrivals", "none"),
        }
    }

    fn write_inputs(&self, inputs: &[Input], out: &mut String) -> fmt::Result {
        if inputs.is_empty() {
            return Ok(());
        }
        writeln!(out, "inputs = [")?;
        for Input { name, from, take } in inputs {
            let (from, word) = (self.output_name(*from), take.keyword());
            write!(out, "  {{ name = \"{name}\", from = \"{from}\", take = \"{word}\"")?;
            if let Take::Each { capacity, full } = take {
                write!(out, ", capacity = {capacity}, full = \"{}\"", full.keyword())?;
                if let Full::Block { limit } = full {
                    write!(out, ", limit = \"{limit}\"")?;
                }
            }
            writeln!(out, " }},")?;
        }
        writeln!(out, "]")
    }

    fn output_name(&self, address: OutputAddress) -> &str {
        &self.outputs_of(self.operation_at(address.operation))[address.output].name
    }

    fn write_chain(&self, chain: &Chain, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[[chain]]")?;
        quoted(out, "name", &chain.name)?;
        let name = |step: &_| &self.operations()[self.operation_at(*step).index()].name;
        list(out, "path", chain.path.iter().map(name))?;
        writeln!(out)?;
        chain.limits().try_for_each(|(key, limit)| quoted(out, key, limit))
    }

    fn write_step(&self, subtask: &Subtask, out: &mut String) -> fmt::Result {
        quoted(out, "node", &self.nodes[subtask.node].name)?;
        if let Some(lanes) = subtask.lanes {
            quoted(out, "lanes", &self.schedulers[lanes].name)?;
        }
        quoted(out, "wcet", subtask.wcet)?;
        write!(out, "exec = ")?;
        execution(out, &subtask.exec)?;
        writeln!(out)?;
        write_outputs(&subtask.outputs, out)?;
        self.write_inputs(&subtask.inputs, out)?;
        self.write_events(&subtask.events, out)?;
        subtask.subscription.iter().try_for_each(|subscription| self.write_subscription(subscription, out))
    }

    fn write_events(&self, events: &[Publication], out: &mut String) -> fmt::Result {
        if events.is_empty() {
            return Ok(());
        }
        writeln!(out, "events = [")?;
        for publication in events {
            let Publication { channel, event_type, bytes, fields, header_fields, priority, timeout, source } =
                publication;
            let channel = &self.channels[*channel].name;
            write!(out, "  {{ channel = \"{channel}\", type = \"{event_type}\", bytes = {bytes}")?;
            write_fields("fields", fields, out)?;
            write_fields("header_fields", header_fields, out)?;
            if let Some(priority) = priority {
                write!(out, ", priority = {priority}")?;
            }
            if let Some(timeout) = timeout {
                write!(out, ", timeout = \"{timeout}\"")?;
            }
            if *source != 0 {
                write!(out, ", source = {source}")?;
            }
            writeln!(out, " }},")?;
        }
        writeln!(out, "]")
    }

    fn write_subscription(&self, subscription: &Subscription, out: &mut String) -> fmt::Result {
        let Subscription { channel, condition, filter, priority_by, timeout_by, take, qos } = subscription;
        write!(out, "subscription = {{ channel = \"{}\", ", self.channels[*channel].name)?;
        match condition {
            Condition::Types(types) => list(out, "types", types.iter())?,
            condition => write!(out, "when = {}", WrittenCondition(condition))?,
        }
        if let Some(filter) = filter {
            write!(out, ", filter = {}", text(filter))?;
        }
        write_mapping(out, "priority_by", priority_by, |priority| format!("priority = {priority}"))?;
        write_mapping(out, "timeout_by", timeout_by, |timeout| format!("timeout = \"{timeout}\""))?;
        if *take != EventTake::DEFAULT {
            write!(out, ", take = \"{take}\"")?;
        }
        if qos.iter().next().is_some() {
            write!(out, ", qos = ")?;
            write_qos(qos, out)?;
        }
        writeln!(out, " }}")
    }
}

fn write_mapping<Value>(
    out: &mut String,
    key: &str,
    entries: &[Mapped<Value>],
    written: impl Fn(&Value) -> String,
) -> fmt::Result {
    if entries.is_empty() {
        return Ok(());
    }
    let entry = |Mapped { filter, value }: &Mapped<Value>| {
        let filter =
            filter.as_ref().map_or_else(String::new, |filter| format!("filter = {}, ", text(filter)));
        format!("{{ {filter}{} }}", written(value))
    };
    let entries: Vec<String> = entries.iter().map(entry).collect();
    write!(out, ", {key} = [{}]", entries.join(", "))
}

/// A condition as it stands in a file.
struct WrittenCondition<'c>(&'c Condition);

impl fmt::Display for WrittenCondition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |parts: &[Condition]| {
            let parts: Vec<String> = parts.iter().map(|part| WrittenCondition(part).to_string()).collect();
            format!("[{}]", parts.join(", "))
        };
        let limit = |within: &Option<Duration>| {
            within.map_or_else(String::new, |within| format!(", within = \"{within}\""))
        };
        match self.0 {
            Condition::Types(types) => match &types[..] {
                [pattern] => write!(f, "\"{pattern}\""),
                types => {
                    let types: Vec<String> = types.iter().map(|pattern| format!("\"{pattern}\"")).collect();
                    write!(f, "{{ types = [{}] }}", types.join(", "))
                }
            },
            Condition::Source(source) => write!(f, "{{ source = {source} }}"),
            Condition::Masked { mask, value } => write!(f, "{{ mask = {mask}, value = {value} }}"),
            Condition::Matching(filter) => write!(f, "{{ filter = {} }}", text(filter)),
            Condition::AllOfOne(parts) => write!(f, "{{ all_of_one = {} }}", all(parts)),
            Condition::Not(part) => write!(f, "{{ not = {} }}", WrittenCondition(part)),
            Condition::Any(parts) => write!(f, "{{ any = {} }}", all(parts)),
            Condition::All { parts, collect, within } => {
                let collect = collect.keyword();
                write!(f, "{{ all = {}, collect = \"{collect}\"{} }}", all(parts), limit(within))
            }
            Condition::InOrder { parts, within } => {
                write!(f, "{{ in_order = {}{} }}", all(parts), limit(within))
            }
            Condition::Times { part, count, within } => {
                write!(f, "{{ count = {count}, of = {}{} }}", WrittenCondition(part), limit(within))
            }
            Condition::After(time) => write!(f, "{{ after = \"{time}\" }}"),
            Condition::Every(period) => write!(f, "{{ every = \"{period}\" }}"),
            Condition::Unless { part, within } => {
                write!(f, "{{ unless = {}, within = \"{within}\" }}", WrittenCondition(part))
            }
            Condition::Limited => unreachable!("validation refuses it"),
        }
    }
}

/// A text with what it needs of escapes, which are those of JSON but for one character.
fn text(text: &str) -> String {
    let escaped = serde_json::to_string(text).expect("a text can be written");
    escaped.replace('\u{7f}', "\\u007f")
}

fn write_qos(qos: &QosSettings, out: &mut String) -> fmt::Result {
    let properties = qos.iter().map(|(property, value)| match value {
        PropertyValue::Number(_) | PropertyValue::Flag(_) => format!("{property} = {value}"),
        value => format!("{property} = \"{value}\""),
    });
    write!(out, "{{ {} }}", properties.collect::<Vec<_>>().join(", "))
}

fn write_fields(key: &str, fields: &[SyntheticField], out: &mut String) -> fmt::Result {
    if fields.is_empty() {
        return Ok(());
    }
    let fields: Vec<String> = fields.iter().map(field).collect();
    write!(out, ", {key} = {{ {} }}", fields.join(", "))
}

fn write_outputs(outputs: &[Output], out: &mut String) -> fmt::Result {
    if outputs.is_empty() {
        return Ok(());
    }
    writeln!(out, "outputs = [")?;
    for Output { name, bytes, fields } in outputs {
        write!(out, "  {{ name = \"{name}\", bytes = {bytes}")?;
        write_fields("fields", fields, out)?;
        writeln!(out, " }},")?;
    }
    writeln!(out, "]")
}

/// A field with its name in quotes, since that may have letters that keys do not take without.
fn field(field: &SyntheticField) -> String {
    let name = &field.name;
    match &field.values {
        FieldValues::Constant(number) => format!("\"{name}\" = {number}"),
        FieldValues::Uniform(low, high) => format!("\"{name}\" = {{ uniform = [{low}, {high}] }}"),
        FieldValues::List(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            format!("\"{name}\" = {{ list = [{}] }}", numbers.join(", "))
        }
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
