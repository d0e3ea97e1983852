//! `talea trace list`.

use super::{named, passive, unreadable};
use crate::cli::Outcome;
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output::{self, Sheet, wrap};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use talea_record::event::KERNEL;
use talea_record::stream::Liveness;
use talea_record::stream::publish::{Content, Listed, ListedConsumer};
use talea_record::{RingState, ThreadEntry, TraceFile};

/// Show the programs that can be followed, or the events and counters of one of them
///
/// These are the programs of the same user that publish a stream, as every `talea run` does, and the eight latest that were killed and
/// left one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace list
  talea trace list ofp
  talea trace list ofp --json | jq .content.passive")]
pub struct Options {
    /// A program, by process number or name, or the file of its stream: shows its families of events, counters, histograms and
    /// objects, which of them are on, and for whom
    #[arg(value_name = "PID|NAME|FILE")]
    stream: Option<PathBuf>,
    /// Print JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> Outcome {
    match &options.stream {
        None => {
            let directory = named::directory()?;
            all(&directory.list().map_err(|error| Failure::new(error, ""))?, options)?
        }
        Some(which) => one(&named::stream(which)?, options)?,
    }
    Ok(Verdict::Fine)
}

fn all(streams: &[Listed], options: &Options) -> Result<(), Failure> {
    if options.json {
        return output::json(&streams.iter().map(as_json).collect::<Vec<_>>());
    }
    if streams.is_empty() {
        output::print("no streams: no program of yours publishes one, and none has left one")?;
        return output::print(&wrap(
            "  `talea run SYSTEM` publishes one while it runs, and so does every program that calls talea_record::stream::Stream::publish",
        ));
    }
    let mut sheet = Sheet::new(5, &["pid", "name", "state", "system", "followed by", "threads", "records"]);
    for stream in streams {
        let (system, consumers, threads, records) = match &stream.content {
            Ok(content) => {
                let called = |consumer: &ListedConsumer| format!("{} ({})", consumer.name, consumer.pid);
                let consumers: Vec<String> = content.consumers.iter().map(called).collect();
                let records: u64 = content.rings.iter().map(|ring| ring.written).sum();
                (content.metadata.system.clone(), consumers.join(", "), content.rings.len(), records)
            }
            Err(error) => (error.to_string(), String::new(), 0, 0),
        };
        sheet.row(vec![
            stream.pid.to_string(),
            stream.name.clone(),
            state(stream).into(),
            system,
            consumers,
            threads.to_string(),
            records.to_string(),
        ]);
    }
    output::print(&sheet.render())
}

fn one(stream: &Listed, options: &Options) -> Result<(), Failure> {
    if options.json {
        return output::json(&as_json(stream));
    }
    let content = stream.content.as_ref().map_err(|error| unreadable(&stream.path, error))?;
    let trace = TraceFile::open(&stream.path).map_err(|error| unreadable(&stream.path, &error))?;
    let mut lines = output::Lines::new();
    lines.prose(&format!(
        "{} of process {} ({}), {}",
        stream.name,
        stream.pid,
        state(stream),
        path_shown(&stream.path)
    ))?;
    for consumer in &content.consumers {
        let dead = if consumer.liveness == Liveness::Dead { ", which has ended" } else { "" };
        lines.prose(&format!(
            "followed by {} (process {}{dead}), which wants {} entities",
            consumer.name,
            consumer.pid,
            consumer.wants.len()
        ))?;
    }
    if !content.by_hand.is_empty() {
        lines.prose(&format!("switched on by hand: {}", content.by_hand.join(", ")))?;
    }
    if content.unringed > 0 {
        lines.line(&format!("{} events found no ring", content.unringed))?;
    }
    for ThreadEntry { tid, pid, name, node, .. } in &content.metadata.threads {
        let node = content.metadata.nodes.get(*node).map_or("-", |node| node.name.as_str());
        lines.prose(&format!("thread {tid} ({name}) of process {pid} works for node {node}"))?;
    }
    lines.line("")?;
    let wanted = wanted(content);
    // The kernel's events come from the kernel, not through programs.
    let families = content.directory.name_space().families().iter();
    for family in families.filter(|family| family.number != KERNEL.number) {
        lines.prose(&format!("{} ({:#04x})  {}", family.name, family.number, family.about))?;
        for event in family.events.iter() {
            let name = format!("{}.{}", family.name, event.name);
            let mark = if wanted.contains(&name.as_str()) { "on " } else { "off" };
            let fields: Vec<String> =
                event.fields.iter().map(|field| format!("{}: {}", field.name, field.kind)).collect();
            lines.prose(&format!("  {mark} {name}({})  {}", fields.join(", "), event.about))?;
        }
        let entry = content.directory.entries().iter().find(|entry| entry.family.name == family.name);
        for entity in entry.iter().flat_map(|entry| &entry.passive) {
            let name = format!("{}.{}", family.name, entity.name);
            let mark = if wanted.contains(&name.as_str()) { "on " } else { "off" };
            let reading = trace.reading(&name).map_err(|error| unreadable(&stream.path, &error))?;
            lines.prose(&format!("  {mark} {name} = {}  {}", passive::line(&reading), entity.about))?;
        }
    }
    lines.finish()
}

fn wanted(content: &Content) -> Vec<&str> {
    let consumers = content.consumers.iter().flat_map(|consumer| &consumer.wants);
    consumers.chain(&content.by_hand).map(String::as_str).collect()
}

fn state(stream: &Listed) -> &'static str {
    match stream.liveness {
        Liveness::Alive => "runs",
        Liveness::Dead => "ended",
    }
}

fn as_json(stream: &Listed) -> Value {
    let content = match &stream.content {
        Ok(content) => content_as_json(content, stream),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({
        "pid": stream.pid, "name": stream.name, "state": state(stream), "path": stream.path, "content": content,
    })
}

fn content_as_json(content: &Content, stream: &Listed) -> Value {
    let consumers: Vec<Value> = content
        .consumers
        .iter()
        .map(|consumer| {
            let alive = consumer.liveness == Liveness::Alive;
            json!({ "pid": consumer.pid, "name": consumer.name, "alive": alive, "wants": consumer.wants })
        })
        .collect();
    let rings: Vec<Value> = content
        .rings
        .iter()
        .map(|ring| {
            let open = ring.state == RingState::Open;
            json!({ "name": ring.name, "open": open, "written": ring.written })
        })
        .collect();
    json!({
        "system": content.metadata.system, "strategy": content.metadata.strategy, "consumers": consumers,
        "by_hand": content.by_hand, "rings": rings, "unringed": content.unringed,
        "threads": content.metadata.threads,
        "families": content.directory.name_space().families(), "passive": passive_as_json(content, stream),
    })
}

/// Counters, histograms and objects with what they hold, as `talea trace read --json` has them, and whether anybody
/// wants them. A stream that went away meanwhile has none.
fn passive_as_json(content: &Content, stream: &Listed) -> Vec<Value> {
    let Ok(trace) = TraceFile::open(&stream.path) else { return Vec::new() };
    let wanted = wanted(content);
    let entities = content.directory.entries().iter().flat_map(|entry| {
        let family = entry.family.name.as_ref();
        entry.passive.iter().map(move |entity| (format!("{family}.{}", entity.name), entity))
    });
    let read = entities.filter_map(|(name, entity)| {
        let mut value = passive::json(&trace.reading(&name).ok()?);
        value.insert("on".into(), json!(wanted.contains(&name.as_str())));
        value.insert("about".into(), json!(entity.about));
        value.insert("name".into(), json!(name));
        Some(Value::Object(value))
    });
    read.collect()
}
