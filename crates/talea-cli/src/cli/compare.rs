//! `talea compare`.

use super::failure::{Failure, Verdict};
use super::options::positive;
use super::output::{self, Sheet};
use clap::Args;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use talea_check::score::Kind;
use talea_lab::compare::{Clock, Observer, Plan, Trial, compare};
use talea_model::Strategy;
use talea_record::RecordedEvents;
use talea_runtime::{RtMode, RunOptions, StopHandle};
use talea_time::Duration;

/// Run a system under several strategies and compare them
///
/// A strategy sorts operations into lanes, that is into priorities. Each one runs the same system with the same execution times.
/// The run is divided into samples of equal length. Effectiveness is the mean number of soft deadlines met in a sample, where a
/// sample in which a hard deadline was missed counts 0. Efficiency is effectiveness divided by the number of soft deadlines in a
/// sample.
#[derive(Args)]
#[command(
    after_help = "Example:\n  talea compare examples/ofp.toml --strategy rms --strategy muf --strategy rms+mlf --sim"
)]
pub struct Options {
    /// The system file
    system: PathBuf,
    /// A strategy to compare: rms, edf, mlf, muf, rms+mlf or criticality; can be given several times [default: all of them]
    #[arg(long, value_name = "STRATEGY")]
    strategy: Vec<Strategy>,
    /// Compare in virtual time instead of on real threads
    #[arg(long)]
    sim: bool,
    /// How long each strategy runs [default: 60s with --sim, else 10s]
    #[arg(long = "for", value_name = "TIME", value_parser = positive)]
    duration: Option<Duration>,
    /// Seed of pseudo-random execution times and release jitter [default: the file's]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Length of the samples by which effectiveness is counted
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    sample: Duration,
    /// On real threads, what to do about real-time priorities: strict refuses to run without them, warn runs without and says so,
    /// off does not ask for them
    #[arg(long, value_name = "MODE", default_value_t = RtMode::Warn, conflicts_with = "sim")]
    rt: RtMode,
    /// Print the results as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> super::Outcome {
    let mut system = super::failure::read_system(&options.system)?.system;
    if let Some(seed) = options.seed {
        system = system.with_seed(seed);
    }
    if !system.has_lanes() {
        return Err(Failure::new(
            "strategies sort tasks into lanes, but the schedulers of the file say who runs next",
            "talea sim shows what they do",
        ));
    }
    let strategies =
        if options.strategy.is_empty() { Strategy::ALL.to_vec() } else { options.strategy.clone() };
    let clock = if options.sim { Clock::Virtual } else { Clock::Real };
    let default = if options.sim { Duration::from_secs(60) } else { Duration::from_secs(10) };
    let plan = Plan {
        strategies,
        clock,
        duration: options.duration.unwrap_or(default),
        sample: options.sample,
        options: RunOptions { rt: options.rt, ..RunOptions::default() },
    };
    let mut watch = Watch::new("comparing")?;
    let trials = compare(&system, &plan, &mut watch).map_err(|error| Failure::new(error, ""))?;
    watch.done();
    if options.json {
        output::json(&as_json(&trials))?;
    } else {
        let mut lines = output::Lines::new();
        let how = match clock {
            Clock::Virtual => "simulated",
            Clock::Real if trials.iter().all(|trial| trial.realtime == Some(true)) => "on real-time threads",
            Clock::Real => "on ordinary threads (no-rt)",
        };
        lines.prose(&format!(
            "{}: {} of each strategy, {how}, seed {}",
            system.name, plan.duration, system.seed
        ))?;
        lines.line(&text(&trials))?;
        if watch.cancelled() {
            lines.line("interrupted; the last row, if it is shorter, covers what had run")?;
        }
        lines.finish()?;
    }
    Ok(Verdict::Fine)
}

/// Shows progress, and ends the comparison at Ctrl-C.
pub struct Watch {
    bar: ProgressBar,
    begun: u64,
    cancelled: Arc<AtomicBool>,
    running: Arc<Mutex<Option<StopHandle>>>,
}

impl Watch {
    /// For runs of which the number will be said.
    pub fn new(what: &str) -> Result<Self, Failure> {
        let bar = super::progress::bar(what, 0);
        let cancelled = Arc::new(AtomicBool::new(false));
        let running: Arc<Mutex<Option<StopHandle>>> = Arc::default();
        let (set, stop) = (Arc::clone(&cancelled), Arc::clone(&running));
        super::interrupt::on_interrupt(move || {
            set.store(true, Ordering::Relaxed);
            if let Some(handle) = &*stop.lock().unwrap_or_else(PoisonError::into_inner) {
                handle.stop();
            }
        })?;
        Ok(Watch { bar, begun: 0, cancelled, running })
    }

    /// Takes the progress bar away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Watch {
    fn planned(&mut self, runs: usize) {
        self.bar.set_length(runs as u64);
    }

    fn starting(&mut self, name: &str, stop: Option<StopHandle>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // A cancellation that came before the handle was there stops the run now.
        if self.cancelled()
            && let Some(handle) = &stop
        {
            handle.stop();
        }
        *running = stop;
        drop(running);
        self.bar.set_message(name.to_string());
        // Runs that have ended; the one that begins now has not.
        self.bar.set_position(self.begun);
        self.begun += 1;
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

fn text(trials: &[Trial]) -> String {
    let mut deadlines = Sheet::new(
        1,
        &[
            "strategy",
            "hard met",
            "hard missed",
            "soft met",
            "of",
            "effectiveness",
            "efficiency",
            "bad samples",
        ],
    );
    let mut dispatching = Sheet::new(1, &["strategy", "lanes", "preemptions", "switches"]);
    for trial in trials {
        let (hard, soft) = (trial.score(Kind::Hard), trial.score(Kind::Soft));
        let samples = &trial.report.samples;
        deadlines.row(vec![
            trial.strategy.to_string(),
            hard.met.to_string(),
            (hard.missed + hard.skipped).to_string(),
            soft.met.to_string(),
            soft.offered().to_string(),
            format!("{:.1}", samples.mean_effectiveness),
            samples.mean_efficiency.map_or("-".into(), |mean| format!("{:.1} %", mean * 100.0)),
            format!("{}/{}", samples.samples_with_critical_failure, samples.samples),
        ]);
        let nodes = &trial.report.nodes;
        let is_unseen = nodes.iter().any(|node| trial.report.shares_unseen(&node.name));
        let sum = |count: fn(&talea_insight::accounting::NodeReport) -> u64| match is_unseen {
            true => "?".into(),
            false => nodes.iter().map(count).sum::<u64>().to_string(),
        };
        dispatching.row(vec![
            trial.strategy.to_string(),
            trial.report.lanes.iter().filter(|lane| lane.discipline != "thread").count().to_string(),
            sum(|node| node.preemptions),
            sum(|node| node.job_switches),
        ]);
    }
    format!(
        "{}\n\n{}\n\ndeadlines met, in percent of those offered\n{}",
        deadlines.render(),
        dispatching.render(),
        by_task(trials)
    )
}

fn by_task(trials: &[Trial]) -> String {
    let Some(first) = trials.first() else {
        return "nothing has run".into();
    };
    let names: Vec<&str> = trials.iter().map(|trial| trial.strategy.keyword()).collect();
    let headings: Vec<&str> = ["task", "kind"].into_iter().chain(names).collect();
    let mut sheet = Sheet::new(2, &headings);
    for (index, task) in first.report.tasks.iter().enumerate() {
        let kind = if task.critical { "hard" } else { "soft" };
        let mut row = vec![task.name.clone(), kind.into()];
        row.extend(trials.iter().map(|trial| {
            let task = &trial.report.tasks[index];
            let decided = task.met + task.missed + task.skipped;
            if decided == 0 { "-".into() } else { format!("{:.1}", task.met as f64 * 100.0 / decided as f64) }
        }));
        sheet.row(row);
    }
    sheet.render()
}

fn as_json(trials: &[Trial]) -> serde_json::Value {
    let trial = |trial: &Trial| {
        serde_json::json!({
            "strategy": trial.strategy, "realtime": trial.realtime,
            "hard": trial.score(Kind::Hard), "soft": trial.score(Kind::Soft),
            "report": trial.report.to_json(&RecordedEvents::everything()),
        })
    };
    serde_json::Value::Array(trials.iter().map(trial).collect())
}
