//! Options that several commands share.

use super::draft::linked;
use super::failure::{Failure, path_shown};
use clap::Args;
use std::convert::Infallible;
use std::path::{Component, Path, PathBuf};
use talea_model::{MemberLines, Parsed, Strategy, System};
use talea_policy::strategy::{Anomaly, NodeAnomaly, Plan, plan_lanes_of, plan_system};
use talea_runtime::KeptOutputs;
use talea_text::links::resolved_folder;
use talea_text::printable;
use talea_time::Duration;

/// Which system, and what to change about it.
#[derive(Args)]
pub struct SystemOptions {
    /// The system file
    pub system: PathBuf,
    /// How operations are sorted into lanes: rms, edf, mlf, muf, rms+mlf or criticality [default: the file's]
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<Strategy>,
    /// Seed of pseudo-random execution times and release jitter [default: the file's]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

impl SystemOptions {
    /// Reads the file, shows its warnings and makes the changes.
    pub fn read(&self) -> Result<System, Failure> {
        self.read_with_lines().map(|(system, _)| system)
    }

    /// The same, and the lines on which the members of its hierarchies stand.
    pub fn read_with_lines(&self) -> Result<(System, MemberLines), Failure> {
        let Parsed { mut system, lines, .. } = super::failure::read_system(&self.system)?;
        if let Some(strategy) = self.strategy {
            if !system.has_lanes() {
                return Err(Failure::new(
                    "--strategy sorts tasks into lanes, but the schedulers of the file say who runs next",
                    "leave it out",
                ));
            }
            system = system.with_strategy(strategy);
        }
        if let Some(seed) = self.seed {
            system = system.with_seed(seed);
        }
        Ok((system, lines))
    }
}

/// Programs and processes of the threads on a node that are not there, each with the place in the file that names it.
pub fn absentees(file: &Path, system: &System, lines: &MemberLines, node: usize) -> Vec<String> {
    let absent = talea_runtime::absentees(system, node).into_iter();
    let place = |thread: usize| {
        lines.of_work(thread).map_or(String::new(), |line| format!("{}:{line}: ", path_shown(file)))
    };
    absent.map(|(thread, text)| format!("{}{}", place(thread), printable(&text))).collect()
}

/// What to write besides the table.
#[derive(Args)]
pub struct ResultOptions {
    /// Print the results as JSON, and nothing else, on standard output
    #[arg(long)]
    pub json: bool,
    /// Write result.json, schedule.csv and trace.talea to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write who ran when to this file: start_ns,end_ns,node,cpu,task,subtask,job
    #[arg(long, value_name = "FILE.csv")]
    pub schedule: Option<PathBuf>,
    /// Record the values of these outputs in the trace, the events that these operations take, and those that are pushed into these channels, so that the run can be replayed: all, or names such as imu.read.sample,halt,operator
    #[arg(long, value_name = "all|NAME,...", requires = "out", value_parser = kept_outputs)]
    pub keep_values: Option<KeptOutputs>,
    /// Length of the samples in which soft deadlines count only if no hard one was missed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    pub sample: Duration,
    /// Which missed deadlines make the exit status 1; with hard and any, exceeded limits of chains and broken guarantees do, too; with any, those guarantees that could not be judged
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = FailOn::Hard)]
    pub fail_on: FailOn,
}

/// Which missed deadlines make the answer no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Those of critical tasks
    Hard,
    /// All
    Any,
    /// None
    Never,
}

fn kept_outputs(text: &str) -> Result<KeptOutputs, Infallible> {
    text.parse()
}

impl ResultOptions {
    /// What is recorded of outputs and events, which the system has.
    pub fn kept(&self, system: &System) -> Result<KeptOutputs, Failure> {
        let kept = self.keep_values.clone().unwrap_or_default();
        let help = "name an output as task.output or task.subtask.output, an operation that events release, or a channel";
        let parts = kept.among(system).map_err(|error| Failure::new(error, help))?;
        // Operations without code read nothing from outside.
        let are_any = parts.outputs.iter().chain(&parts.events).chain(&parts.pushes).any(|is_kept| *is_kept);
        if kept == KeptOutputs::All && !are_any {
            let help =
                "give subtasks outputs, have events of a channel release a task, or leave --keep-values out";
            return Err(Failure::new("the system has no outputs or events that could be kept", help));
        }
        Ok(kept)
    }
}

/// A duration greater than zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    let duration: Duration =
        text.parse().map_err(|error: talea_time::ParseDurationError| error.to_string())?;
    if duration > Duration::ZERO { Ok(duration) } else { Err("it must be longer than zero".into()) }
}

/// How it is decided what runs next: `rms, preemptive lanes`, or by the schedulers.
pub fn who_decides(system: &System) -> String {
    let lanes = format!("{}, {} lanes", system.strategy, system.lane_dispatch);
    match (system.has_lanes(), system.schedulers.is_empty()) {
        (_, true) => lanes,
        (true, false) => format!("its schedulers and {lanes}"),
        (false, false) => "its schedulers".into(),
    }
}

/// Refuses to write `output` over `input`, which the same command reads or writes.
pub fn distinct(output: &Path, input: &Path) -> Result<(), Failure> {
    if place_of(output) == place_of(input) {
        return Err(Failure::new(
            format!("{} would be written over {}", path_shown(output), path_shown(input)),
            "give it another name",
        ));
    }
    Ok(())
}

/// Refuses to write `output` where `other` is, which the same command reads or writes, or one of them into the other.
pub fn apart(output: &Path, other: &Path) -> Result<(), Failure> {
    distinct(output, other)?;
    let [one, two] = [output, other].map(place_of);
    let (inner, outer) = match (one.starts_with(&two), two.starts_with(&one)) {
        (true, _) => (output, other),
        (_, true) => (other, output),
        _ => return Ok(()),
    };
    Err(Failure::new(
        format!("{} would be within {}, which is written as a whole", path_shown(inner), path_shown(outer)),
        "give it a place of its own",
    ))
}

/// Where a path leads, also if nothing is there yet.
fn place_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let mut missing = Vec::new();
    let mut known = path.as_path();
    loop {
        if let Ok(place) = std::fs::canonicalize(known) {
            return missing.iter().rev().fold(place, |place, name| match name {
                Component::ParentDir => place.parent().unwrap_or(Path::new("/")).into(),
                name => place.join(name),
            });
        }
        let (Some(folder), Some(name)) = (known.parent(), known.components().next_back()) else {
            return path;
        };
        missing.push(name);
        known = folder;
    }
}

/// The lanes of every node, none of which has a hierarchy.
pub fn plans(system: &System) -> Result<Vec<Plan>, Failure> {
    plan_system(system).map_err(anomalous)
}

/// The lanes of every node, wherever they stand.
pub fn lanes_of(system: &System) -> Result<Vec<Plan>, Failure> {
    plan_lanes_of(system).map_err(anomalous)
}

/// The system as it is executed in these lanes: with the response bounds that its protocols need.
pub fn planned(system: &System, plans: &[Plan]) -> Result<System, Failure> {
    let help = "talea check --advise compares the protocols";
    talea_check::planned(system, plans).map_err(|error| Failure::new(error, help))
}

fn anomalous(anomalies: Vec<NodeAnomaly>) -> Failure {
    let lines: Vec<String> = anomalies.iter().map(ToString::to_string).collect();
    let help = match anomalies.iter().all(|found| found.anomaly == Anomaly::Hierarchy) {
        true => {
            "talea check derives what the schedulers promise; talea sim and talea run show whether it is kept"
        }
        false => "choose another strategy, or change the operations named above",
    };
    Failure::new(lines.join("\n       "), help)
}

/// Makes the folder `out`, if there is to be one.
pub fn make_folder(out: Option<&Path>) -> Result<(), Failure> {
    match out {
        Some(folder) => {
            resolved_folder(folder).map_err(linked)?;
            std::fs::create_dir_all(folder).map_err(|error| Failure::uncreated("the folder", folder, &error))
        }
        None => Ok(()),
    }
}
