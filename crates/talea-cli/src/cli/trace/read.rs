//! `talea trace read`.

use super::{named, passive, unreadable};
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output::{self, Sheet};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use talea_record::stream::passive::Reading;
use talea_record::stream::publish::Listed;
use talea_record::stream::{Directory, Liveness, Operator};
use talea_record::{TraceFile, TraceKind};

/// Read counters, gauges, histograms and objects of a program
///
/// Counters, gauges and histograms count from when the program's stream is published, whether or not anybody asks; an object is updated only
/// while it is switched on (`talea trace enable`) or followed, and else keeps its values. Each count is exact, and the fields of an object are all of one update. The counts of a histogram are read one after the other, so
/// they may differ by what is counted meanwhile.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace read robot
  talea trace read robot nav.fixes nav.position --json
  talea trace read robot nav --take  # each reading has what was counted since the one before")]
pub struct Options {
    /// The program, by process number or name, or the file of its stream
    #[arg(value_name = "PID|NAME|FILE")]
    stream: PathBuf,
    /// What to read, as FAMILY or FAMILY.NAME; everything if nothing is named
    #[arg(value_name = "ENTITY")]
    entities: Vec<String>,
    /// Set counters and histograms to zero after reading them; gauges and objects stay as they are
    #[arg(long)]
    take: bool,
    /// Print JSON instead
    #[arg(long)]
    json: bool,
}

/// What was read of an entity.
struct Read {
    name: String,
    about: String,
    reading: Reading,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.stream)?;
    let trace = TraceFile::open(&path).map_err(|error| unreadable(&path, &error))?;
    if trace.kind() == TraceKind::Log {
        return Err(Failure::new(
            format!("{} is a log, which has events and nothing that could be read", path_shown(&path)),
            "name a stream: `talea trace list` shows what there is",
        ));
    }
    let directory = trace.directory().map_err(|error| unreadable(&path, &error))?;
    let chosen = choose(&directory, &options.entities, &path_shown(&path))?;
    let mut operator = if options.take { Some(operator(&Listed::at(&path))?) } else { None };
    let mut read = Vec::with_capacity(chosen.len());
    for (name, about) in chosen {
        let reading = match &mut operator {
            Some(operator) => operator.take(&name).map_err(|error| Failure::new(error, ""))?,
            None => trace.reading(&name).map_err(|error| unreadable(&path, &error))?,
        };
        read.push(Read { name, about, reading });
    }
    if options.json {
        output::json(&read.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        let mut sheet = Sheet::new(3, &["name", "holds", "which is"]);
        read.iter().for_each(|read| {
            sheet.row(vec![read.name.clone(), passive::line(&read.reading), read.about.clone()])
        });
        output::print(&sheet.render())?;
    }
    Ok(Verdict::Fine)
}

/// Names and descriptions of what was asked for, in the order of the directory.
fn choose(directory: &Directory, wanted: &[String], path: &str) -> Result<Vec<(String, String)>, Failure> {
    let all = || {
        directory.entries().iter().flat_map(|entry| {
            let family = entry.family.name.as_ref();
            entry.passive.iter().map(move |passive| (family, passive))
        })
    };
    for name in wanted {
        let is_family = all().any(|(family, _)| family == name);
        if !is_family && let Err(error) = directory.passive(name) {
            let names: Vec<String> =
                all().map(|(family, entry)| format!("{family}.{}", entry.name)).collect();
            return Err(Failure::new(error, choices(&names)));
        }
    }
    let full = |family: &str, name: &str| format!("{family}.{name}");
    let is_wanted = |family: &str, name: &str| {
        wanted.is_empty() || wanted.iter().any(|wanted| *wanted == family || *wanted == full(family, name))
    };
    let chosen = all().filter(|(family, passive)| is_wanted(family, &passive.name));
    let chosen: Vec<_> = chosen
        .map(|(family, passive)| (full(family, &passive.name), passive.about.clone().into_owned()))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::new(
            format!("the program of {path} has no counters, histograms or objects (yet)"),
            "programs declare them with talea::family!; `talea trace show --follow` shows events",
        ));
    }
    Ok(chosen)
}

fn choices(names: &[String]) -> String {
    match names {
        [] => "the program has no counters, histograms or objects (yet)".into(),
        names => format!("choose of: {}", names.join(", ")),
    }
}

/// Who may begin counts anew.
fn operator(stream: &Listed) -> Result<Operator, Failure> {
    if stream.liveness == Liveness::Dead {
        return Err(Failure::new(
            format!("process {} of stream \"{}\" has ended, and what it left stays", stream.pid, stream.name),
            "read without --take",
        ));
    }
    Operator::open(&stream.path).map_err(|error| Failure::new(error, ""))
}

fn as_json(read: &Read) -> Value {
    let mut value = passive::json(&read.reading);
    value.insert("name".into(), json!(read.name));
    value.insert("about".into(), json!(read.about));
    Value::Object(value)
}
