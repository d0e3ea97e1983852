//! `talea trace list`.

use super::unreadable;
use crate::cli::Outcome;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output::{self, Sheet};
use clap::Args;
use serde_json::{Value, json};
use talea_trace::namespace::builtin::KERNEL;
use talea_trace::stream::passive::{HistogramReading, Reading};
use talea_trace::stream::publish::{Content, Listed};
use talea_trace::stream::{Liveness, StreamDirectory};
use talea_trace::{RingState, TraceFile};

/// Show the programs whose streams can be followed, or what one of them can tell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace list
  talea trace list ofp")]
pub struct Options {
    /// A program, by process number or name: its families, events and who wants them
    #[arg(value_name = "PID|NAME")]
    stream: Option<String>,
    /// Print JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> Outcome {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error, "`talea trace list` shows all streams");
    let directory = StreamDirectory::of_user().map_err(|error| Failure::new(error, ""))?;
    match &options.stream {
        None => all(&directory.list().map_err(|error| failed(&error))?, options)?,
        Some(name) => one(&directory.find(name).map_err(|error| failed(&error))?, options)?,
    }
    Ok(Verdict::Fine)
}

fn all(streams: &[Listed], options: &Options) -> Result<(), Failure> {
    if options.json {
        return output::json(&streams.iter().map(as_json).collect::<Vec<_>>());
    }
    if streams.is_empty() {
        return output::print("no streams: no program of yours publishes one, and none has left one");
    }
    let mut sheet = Sheet::new(5, &["pid", "name", "state", "system", "followed by", "threads", "records"]);
    for stream in streams {
        let (system, consumers, threads, records) = match &stream.content {
            Ok(content) => {
                let consumers: Vec<&str> =
                    content.consumers.iter().map(|consumer| consumer.name.as_str()).collect();
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
    let content = stream.content.as_ref().map_err(|error| {
        Failure::new(format!("cannot read stream {}: {error}", stream.path.display()), "")
    })?;
    let trace = TraceFile::open(&stream.path).map_err(|error| unreadable(&stream.path, &error))?;
    let mut lines = output::Lines::new();
    lines.line(&format!(
        "{} of process {} ({}), {}",
        stream.name,
        stream.pid,
        state(stream),
        stream.path.display()
    ))?;
    for consumer in &content.consumers {
        let dead = if consumer.liveness == Liveness::Dead { ", which has ended" } else { "" };
        lines.line(&format!(
            "followed by {} (process {}{dead}), who wants {} entities",
            consumer.name,
            consumer.pid,
            consumer.wants.len()
        ))?;
    }
    if !content.by_hand.is_empty() {
        lines.line(&format!("switched on by hand: {}", content.by_hand.join(", ")))?;
    }
    if content.unringed > 0 {
        lines.line(&format!("{} events found no ring", content.unringed))?;
    }
    lines.line("")?;
    let wanted = wanted(content);
    // What the kernel tells it tells of itself, not through programs.
    let families = content.directory.name_space().families().iter();
    for family in families.filter(|family| family.number != KERNEL.number) {
        lines.line(&format!("{} ({:#04x})  {}", family.name, family.number, family.about))?;
        for event in family.events.iter() {
            let name = format!("{}.{}", family.name, event.name);
            let mark = if wanted.contains(&name.as_str()) { "on " } else { "off" };
            let fields: Vec<String> =
                event.fields.iter().map(|field| format!("{}: {}", field.name, field.kind.name())).collect();
            lines.line(&format!("  {mark} {name}({})  {}", fields.join(", "), event.about))?;
        }
        let entry = content.directory.entries().iter().find(|entry| entry.family.name == family.name);
        for passive in entry.iter().flat_map(|entry| &entry.passive) {
            let name = format!("{}.{}", family.name, passive.name);
            let mark = if wanted.contains(&name.as_str()) { "on " } else { "off" };
            let reading = trace.reading(&name).map_err(|error| unreadable(&stream.path, &error))?;
            lines.line(&format!("  {mark} {name} = {}  {}", value(&reading), passive.about))?;
        }
    }
    lines.finish()
}

/// What a passive entity holds, on one line.
fn value(reading: &Reading) -> String {
    match reading {
        Reading::Counter(count) => count.to_string(),
        Reading::Histogram(histogram) => {
            let inside: Vec<String> = histogram.inside.iter().map(u64::to_string).collect();
            let HistogramReading { lower, width, below, above, .. } = histogram;
            format!("{below} below {lower}, by {width}: [{}], {above} above", inside.join(" "))
        }
        Reading::Object(None) => "nothing yet".into(),
        Reading::Object(Some(fields)) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
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
        Ok(content) => content_as_json(content),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({
        "pid": stream.pid, "name": stream.name, "state": state(stream), "path": stream.path, "content": content,
    })
}

fn content_as_json(content: &Content) -> Value {
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
        "families": content.directory.name_space().families(),
    })
}
