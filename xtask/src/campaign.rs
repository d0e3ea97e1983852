//! `cargo xtask campaign`: tries random systems across all features for some minutes and writes what came of it.

use crate::step::{Step, root, run_all};
use crate::{Seed, machine, seed};
use clap::Args;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Args)]
pub struct Options {
    /// How long, all kinds of trials together
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Begin with the trial of this number; with "any", with another one every time
    #[arg(long, value_name = "NUMBER|any", default_value = "any", value_parser = seed)]
    seed: Seed,
    /// Write the counts here instead of docs/evidence.md
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only trials of these kinds, as they are called in docs/evidence.md; written only where --out says
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<String>,
}

const INTRODUCTION: &str = "\
# Evidence

Written by `cargo xtask campaign`; do not edit. A campaign draws systems that cross all features (hierarchies of all kinds of schedulers,
lanes, tasks with chains, joins and synchronisation protocols, channels with tasks that events release, values, inputs that let their writers wait, bursts, costs,
links, several nodes and processors) and holds what Talea says of each against what else is known of it:

- *simulated*: no response, and no time of a cause-effect chain, is longer than the bound that the check gives, and what it says holds misses nothing;
  events that were pushed came, were lost, or wait; the trace obeys the rules; what
  each thread and scheduler was promised is received, by the monitors of the schedulers and by a second judge that knows only what work
  there was and what was received; threads received by the books of the hierarchy what their jobs executed by the records of
  jobs; the parts of each explained response add up to it; the same system gives the same records, however it is advanced;
  the file that is written of a system is read as the same system; and code that is called again with what it was handed publishes the same. Beside
  half of the systems there is a program that posts work and has a channel of its own, with consumers that several lanes serve: what it posted was
  released and called once, or refused; what it pushed came to whom it was for, once, or was counted, or waits.
- *files*: a system file with mistakes is refused with problems, or is a system that can be checked and simulated; files of rt-app, SimSo and
  CSV tables with mistakes are refused with problems, or are systems. Rings of damaged live streams are not drawn.
- *traces*: a trace with altered bytes is read, or an error says why not.
- *constraints*: a text with mistakes is refused at a place in it, or what is printed of it is the same constraint, and both say the same of every event.
- *events*: altered bytes are refused at a place in them, or are read as an event that has exactly these bytes.
- *threads*: `talea run` of small systems on real threads, a third of them killed at any moment: what was recorded obeys the rules, and a second
  after the end nothing of it is left. Promises that were kept by what was granted, and broken by what the kernel withheld as its own records say,
  are counted and no findings. Moments in which a virtual machine stands still break any rule; so findings of this kind say where to look.
- *replays*: programs on real threads of the campaign's own process, of small systems with channels (filters, conditions, tasks that events release, also with several
  first subtasks), with code for their operations and a channel of the program, whose consumers, serial, concurrent or of sequences, in several lanes, answer that they have an event, want it
  again, can make nothing of it, or panic. A replay of what was recorded hands each job what it had, as the code itself notes, and finds no difference; where one job does otherwise, it
  names that job, and no other operation.
- *bounds*: `talea run` of small systems on real threads for 400 ms, beside `talea check --machine` with the profile of this one. No response
  is longer than its bound but by what nobody had meanwhile, as two threads above all others saw that looked at the clock every 2 ms. What lies
  between their looks they do not see, so those that are longer by less than the longest stall of the profile are counted apart, and so is one that is longer by more and
  does not happen again in three more runs.
- *changes*: the same of hierarchies, programs among their threads, which `talea ctl` changes up to eight times meanwhile: threads and schedulers
  added, moved, removed, reserved and replaced, some by force; a quarter of the runs is killed after that. Some of the programs were there before: they
  are ordinary again when they have been removed, have priority and processors as before when the run is over or killed, and had what the kernel's
  account says.

*Refused* are trials of which what was drawn is no system, or of which a scheduler has no room for its children. *Held* is what was held
against something. A finding ends the campaign with an error, names its trial and keeps its input.
";

/// Runs the campaign and writes the report; its path, if it was to be written.
///
/// # Errors
/// There are findings, or the campaign cannot be run.
pub fn run(options: &Options) -> Result<Option<PathBuf>, String> {
    let build = ["build", "--release", "--quiet", "-p", "talea-cli", "-p", "talea-campaign"];
    run_all(&[Step::cargo("building the campaign", &build)])?;
    let first = match options.seed {
        Seed::Fixed(number) => number,
        Seed::Any => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs() << 20),
    };
    let mut campaign = Command::new(root().join("target/release/talea-campaign"));
    campaign.args(["--minutes", &options.minutes.to_string(), "--seed", &first.to_string()]);
    campaign.args(["--talea", "target/release/talea"]);
    if !options.only.is_empty() {
        campaign.args(["--only", &options.only.join(",")]);
    }
    let output = campaign
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run the campaign: {error}"))?;
    let table = String::from_utf8_lossy(&output.stdout);
    // The table has a head of two lines. If it failed before it was done with a kind, what is there stays.
    if table.lines().count() <= 2 {
        return Err(format!("the campaign failed: {}", output.status));
    }
    let kinds = match &options.only[..] {
        [] => String::new(),
        kinds => format!(", only {}", kinds.join(" and ")),
    };
    let run = format!("minutes: {}{kinds}, first trial: {first}", options.minutes);
    let text = format!("{INTRODUCTION}\n{}\n\n{table}", machine::described(&run)?);
    let path = match &options.out {
        None if options.only.is_empty() => Some(root().join("docs/evidence.md")),
        out => out.clone(),
    };
    if let Some(path) = &path {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    print!("{table}");
    match output.status.success() {
        true => Ok(path),
        false => Err(format!("the campaign found something, or failed: {}", output.status)),
    }
}
