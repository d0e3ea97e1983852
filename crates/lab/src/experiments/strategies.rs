//! The strategies on the operational flight program of `examples/ofp.toml`.
//!
//! The question is Gill et al.'s: which strategy keeps the hard deadlines, and what do the soft operations get?
//! See `experiments/strategies/README.md`.

use super::{Claim, Effort, Experiment, ExperimentError, Extent, Findings, Options, Verdict};
use crate::compare::{Clock, Observer, Plan, Trial, compare};
use std::path::Path;
use talea_check::score::Kind;
use talea_figure::drawing::{self, Bar};
use talea_model::{Strategy, System};
use talea_runtime::RunOptions;
use talea_time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "strategies",
    title: "every strategy on the operational flight program of examples/ofp.toml",
    source: "Gill, Kuhns, Cytron, Schmidt: Empirical Differences Between COTS Middleware Scheduling Strategies (2002)",
    usual_clock: Clock::Virtual,
    parts: &[],
    run,
};

const SYSTEM: &str = include_str!("../../../../examples/ofp.toml");

fn run(options: &Options, observer: &mut dyn Observer) -> Result<Findings, ExperimentError> {
    let duration = match (options.clock, options.effort) {
        (Clock::Virtual, Effort::Full) => Duration::from_secs(600),
        (Clock::Virtual, Effort::Quick) => Duration::from_secs(60),
        (Clock::Real, Effort::Full) => Duration::from_secs(20),
        (Clock::Real, Effort::Quick) => Duration::from_secs(4),
    };
    let plan = Plan {
        strategies: Strategy::ALL.to_vec(),
        clock: options.clock,
        duration,
        sample: Duration::from_secs(1),
        options: RunOptions::default(),
    };
    let trials = compare(&system(), &plan, observer)?;
    if observer.cancelled() {
        return Err(ExperimentError::Cancelled { done: trials.len(), all: plan.strategies.len() });
    }
    let findings =
        Findings { table: table(&trials), claims: claims(&trials), files: Vec::new(), extent: Extent::Whole };
    write(findings, &trials, &options.out)
}

fn system() -> System {
    let parsed = talea_model::parse("examples/ofp.toml", SYSTEM, Path::new("."));
    parsed.expect("the example is part of this repository and tested").system
}

/// One row per strategy, tab-free, aligned.
fn table(trials: &[Trial]) -> String {
    let mut lines = vec![format!(
        "{:<12} {:>11} {:>9} {:>14} {:>14} {:>11} {:>12}",
        "strategy", "hard missed", "soft met", "of soft", "effectiveness", "efficiency", "preemptions"
    )];
    for trial in trials {
        let (hard, soft) = (trial.score(Kind::Hard), trial.score(Kind::Soft));
        let samples = &trial.report.samples;
        let nodes = &trial.report.nodes;
        let preemptions = match nodes.iter().any(|node| trial.report.shares_unseen(&node.name)) {
            true => "?".into(),
            false => nodes.iter().map(|node| node.preemptions).sum::<u64>().to_string(),
        };
        lines.push(format!(
            "{:<12} {:>11} {:>9} {:>14} {:>14.1} {:>9.1} % {:>12}",
            trial.strategy.keyword(),
            hard.missed + hard.skipped,
            soft.met,
            soft.offered(),
            samples.mean_effectiveness,
            samples.mean_efficiency.unwrap_or(0.0) * 100.0,
            preemptions,
        ));
    }
    lines.join("\n")
}

fn claims(trials: &[Trial]) -> Vec<Claim> {
    let of = |strategy: Strategy| {
        trials.iter().find(|trial| trial.strategy == strategy).expect("every strategy has been tried")
    };
    let hard_misses = |strategy: Strategy| {
        let score = of(strategy).score(Kind::Hard);
        score.missed + score.skipped
    };
    let efficiency = |strategy: Strategy| of(strategy).report.samples.mean_efficiency.unwrap_or(0.0) * 100.0;
    let misses = |strategies: &[Strategy]| {
        let each = strategies.iter().map(|strategy| format!("{strategy}: {}", hard_misses(*strategy)));
        each.collect::<Vec<_>>().join(", ") + " hard misses"
    };
    let (muf, hybrid) = (Strategy::Muf, Strategy::RmsMlf);
    vec![
        Claim {
            statement: "MUF and RMS+MLF keep every hard deadline (section 4.1)".into(),
            verdict: Verdict::of(hard_misses(muf) + hard_misses(hybrid) == 0),
            figures: misses(&[muf, hybrid]),
        },
        Claim {
            statement: "RMS misses hard deadlines under high load, because it sees rates only (section 4.1)"
                .into(),
            verdict: Verdict::of(hard_misses(Strategy::Rms) > 0),
            figures: misses(&[Strategy::Rms]),
        },
        Claim {
            statement: "where hard deadlines are missed, effectiveness collapses (section 3.3)".into(),
            verdict: Verdict::of(efficiency(Strategy::Rms) < efficiency(muf).min(efficiency(hybrid))),
            figures: format!(
                "efficiency rms {:.1} %, muf {:.1} %, rms+mlf {:.1} %",
                efficiency(Strategy::Rms),
                efficiency(muf),
                efficiency(hybrid)
            ),
        },
        Claim {
            statement:
                "MUF and RMS+MLF serve soft operations differently although their policies rank them alike \
                        (section 4.2)"
                    .into(),
            verdict: Verdict::of(of(muf).score(Kind::Soft) != of(hybrid).score(Kind::Soft)),
            figures: format!(
                "soft deadlines met: muf {}, rms+mlf {}",
                of(muf).score(Kind::Soft).met,
                of(hybrid).score(Kind::Soft).met
            ),
        },
    ]
}

fn write(mut findings: Findings, trials: &[Trial], out: &Path) -> Result<Findings, ExperimentError> {
    let figure = out.join("strategies.svg");
    let bars: Vec<Bar> = trials
        .iter()
        .map(|trial| {
            let (hard, soft) = (trial.score(Kind::Hard), trial.score(Kind::Soft));
            Bar {
                label: trial.strategy.keyword().into(),
                upper: hundredths(soft.met, soft.offered()),
                lower: hundredths(hard.met, hard.offered()),
            }
        })
        .collect();
    drawing::bars("deadlines met, in percent", ["soft", "hard"], &bars)
        .and_then(|picture| Ok(std::fs::write(&figure, picture)?))
        .map_err(|cause| ExperimentError::unwritable(&figure, cause))?;
    let rows: Vec<serde_json::Value> = trials
        .iter()
        .map(|trial| {
            serde_json::json!({
                "strategy": trial.strategy, "realtime": trial.realtime,
                "hard": trial.score(Kind::Hard), "soft": trial.score(Kind::Soft), "report": trial.report,
            })
        })
        .collect();
    let results = out.join("results.json");
    let text =
        serde_json::to_string_pretty(&serde_json::json!({ "claims": findings.claims, "trials": rows }))
            .expect("reports are plain data");
    std::fs::write(&results, text).map_err(|cause| ExperimentError::unwritable(&results, cause))?;
    findings.files = vec![figure, results];
    Ok(findings)
}

fn hundredths(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}
