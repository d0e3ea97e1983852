//! What is written: tables, samples, systems.

use super::claims::comparative_claims;
use super::hypotheses::{Group, OVERLOADED, Observed, Point, Study};
use super::mechanism::Mechanism;
use super::results::Results;
use super::runs::Trial;
use super::sampler::Sample;
use super::setting::Region;
use crate::experiments::folder::Folder;
use crate::experiments::{Claim, ExperimentError, Verdict};
use crate::table::{Table, percent};
use std::path::Path;
use talea_model::Strategy;
use talea_statistics::{Explained, Fate, bimodality, largest_gap, spread};

/// Writes the twelve systems, under RMS+MLF at the measured prices, to run, simulate and check each.
///
/// # Errors
/// [`ExperimentError::Unwritable`].
pub fn write_systems(out: &Path) -> Result<(), ExperimentError> {
    let mut folder = Folder::make(out.join("systems"))?;
    for region in Region::all() {
        let system = Mechanism::MEASURED.charge(&region.system(), Strategy::RmsMlf);
        let head = format!(
            "# Operating region {} of Gill, Kuhns, Cytron and Schmidt (2002): {} route legs, load jitter {}.\n\
             # Written by `talea lab run s0`; experiments/s0-strategies/README.md explains the figures.\n\n",
            region.number(),
            region.legs(),
            region.load_jitter()
        );
        folder.write(&format!("{}.toml", system.name), head + &system.to_toml())?;
    }
    Ok(())
}

/// The regions and what every strategy made in them; in brackets the samples with a hard miss.
pub fn overview(results: &Results, strategies: &[Strategy]) -> Table {
    let headings = ["region", "load jitter", "legs", "mean load", "worst", "critical"].map(String::from);
    let headings: Vec<String> =
        headings.into_iter().chain(strategies.iter().map(ToString::to_string)).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(2, &headings);
    for region in Region::all() {
        let load = region.load();
        let mut row = vec![
            region.number().to_string(),
            region.load_jitter().to_string(),
            region.legs().to_string(),
            format!("{} %", percent(load.mean)),
            format!("{} %", percent(load.worst)),
            format!("{} %", percent(load.critical_worst)),
        ];
        let made = strategies.iter().map(|strategy| results.trial(region.number(), *strategy));
        row.extend(made.map(|trial| trial.map_or("-".into(), served)));
        table.row(row);
    }
    table
}

fn served(trial: &Trial) -> String {
    match trial.hard_missed() {
        0 => format!("{:.1}", trial.effectiveness()),
        missed => format!("{:.1} ({missed})", trial.effectiveness()),
    }
}

/// How the weighted fractions of the overloaded regions spread.
pub fn distributions(results: &Results) -> Table {
    let mut table = Table::new(
        2,
        &[
            "region",
            "strategy",
            "samples",
            "mean",
            "deviation",
            "least",
            "greatest",
            "largest gap",
            "bimodality",
            "preemptions",
        ],
    );
    for region in 8..=11 {
        for strategy in [Strategy::Muf, Strategy::RmsMlf] {
            let Some(trial) = results.trial(region, strategy) else { continue };
            let fractions = trial.efficiencies();
            let Some(spread) = spread(&fractions) else { continue };
            let preemptions = trial.samples.iter().map(|sample| sample.hard_preemptions as f64);
            table.row(vec![
                region.to_string(),
                strategy.to_string(),
                spread.count.to_string(),
                format!("{:.4}", spread.mean),
                format!("{:.4}", spread.deviation),
                format!("{:.4}", spread.min),
                format!("{:.4}", spread.max),
                largest_gap(&fractions).map_or("-".into(), |gap| format!("{:.1} %", gap * 100.0)),
                bimodality(&fractions).map_or("-".into(), |coefficient| format!("{coefficient:.2}")),
                format!("{:.1}", super::runs::mean(preemptions)),
            ]);
        }
    }
    table
}

/// What the mechanisms did per sample in the overloaded regions, as far as it was measured.
pub fn mechanisms(results: &Results) -> Table {
    let headings = [
        "region",
        "strategy",
        "preemptions",
        "job switches",
        "context switches",
        "cost of switching",
        "cost of queueing",
        "depth",
        "withheld",
    ];
    let mut table = Table::new(2, &headings);
    for region in OVERLOADED {
        for strategy in [Strategy::Muf, Strategy::RmsMlf] {
            let Some(trial) = results.trial(region, strategy) else { continue };
            let mean = |of: &dyn Fn(&Sample) -> Option<f64>| -> Option<f64> {
                let values: Option<Vec<f64>> = trial.samples.iter().map(of).collect();
                values.map(|values| super::runs::mean(values.into_iter()))
            };
            let cell = |value: Option<f64>, unit: &str| {
                value.map_or("-".into(), |value| format!("{value:.1}{unit}"))
            };
            table.row(vec![
                region.to_string(),
                strategy.to_string(),
                cell(mean(&|sample| Some(sample.hard_preemptions as f64)), ""),
                cell(mean(&|sample| Some(sample.hard_switches as f64)), ""),
                cell(mean(&|sample| Some(sample.threads?.critical_switches as f64)), ""),
                cell(mean(&|sample| Some(sample.hard_switch_ns? as f64 / 1e3)), " µs"),
                cell(mean(&|sample| Some(sample.hard_queue_ns as f64 / 1e3)), " µs"),
                cell(mean(&|sample| Some(sample.mean_hard_depth())), ""),
                cell(mean(&|sample| Some(sample.threads?.withheld_ns as f64 / 1e6)), " ms"),
            ]);
        }
    }
    table
}

/// The regressions of one study, factor by factor.
pub fn regression(study: &Study) -> Table {
    let mut table = Table::new(
        2,
        &[
            "difference in",
            "factor",
            "per unit",
            "standardised",
            "95 %",
            "unique R²",
            "partial R²",
            "R² of all",
        ],
    );
    for explanation in Observed::ALL.into_iter().filter_map(|observed| study.explain(observed)) {
        let Explained::By(regression) = &explanation.explained else { continue };
        for (index, factor) in regression.factors.iter().enumerate() {
            let mut row = vec![explanation.observed.name().to_string(), factor.name.clone()];
            row.extend(factor_cells(&factor.fate));
            row.push(if index == 0 { format!("{:.3}", regression.r_squared) } else { String::new() });
            table.row(row);
        }
    }
    table
}

fn factor_cells(fate: &Fate) -> [String; 5] {
    let dash = || "-".to_string();
    match fate {
        Fate::Estimated { coefficient, standardised, interval, unique_r_squared, partial_r_squared } => [
            format!("{coefficient:.4}"),
            format!("{standardised:.3}"),
            interval.map_or_else(dash, |interval| interval.to_string()),
            format!("{unique_r_squared:.3}"),
            format!("{partial_r_squared:.3}"),
        ],
        Fate::Constant => ["does not vary".into(), dash(), dash(), dash(), dash()],
        Fate::Dependent => ["said by others".into(), dash(), dash(), dash(), dash()],
    }
}

/// How much the factors explain in each study, together and by group.
pub fn regressions(studies: &[Study]) -> Table {
    let groups = Group::ALL.map(|group| format!("only by {}", group.name()));
    let headings = ["prices", "difference in", "R²", "95 %"].into_iter();
    let headings: Vec<&str> = headings.chain(groups.iter().map(String::as_str)).collect();
    let mut table = Table::new(2, &headings);
    for study in studies {
        for explanation in Observed::ALL.into_iter().filter_map(|observed| study.explain(observed)) {
            let [r_squared, interval] = match &explanation.explained {
                Explained::By(regression) => [
                    format!("{:.3}", regression.r_squared),
                    regression.r_squared_interval.map_or("-".into(), |interval| interval.to_string()),
                ],
                Explained::NoVariation => ["no difference".into(), "-".into()],
                Explained::TooFewSamples => ["too few samples".into(), "-".into()],
            };
            let share = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.3}"));
            let named = [prices(study.mechanism), explanation.observed.name().to_string()];
            let unique = Group::ALL.map(|group| share(explanation.unique_to(group)));
            table.row(named.into_iter().chain([r_squared, interval]).chain(unique).collect());
        }
    }
    table
}

/// Which of the paper's comparisons of MUF and RMS+MLF hold at which prices.
pub fn comparisons(studies: &[Study]) -> Table {
    let claims = studies.first().map(|study| comparative_claims(&study.results)).unwrap_or_default();
    let headings: Vec<String> = studies.iter().map(|study| prices(study.mechanism)).collect();
    let headings: Vec<&str> = std::iter::once("claim").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(1, &headings);
    let verdicts: Vec<Vec<Claim>> = studies.iter().map(|study| comparative_claims(&study.results)).collect();
    for (index, claim) in claims.iter().enumerate() {
        let cells = verdicts.iter().map(|claims| match claims[index].verdict {
            Verdict::Holds => "yes".to_string(),
            Verdict::DoesNotHold => "no".to_string(),
            Verdict::Undecided => "-".to_string(),
        });
        table.row(std::iter::once(claim.statement.clone()).chain(cells).collect());
    }
    table
}

/// Prices in words.
pub fn prices(mechanism: Option<Mechanism>) -> String {
    match mechanism {
        None => "real threads".into(),
        Some(Mechanism { switch_ns, ordering_ns, .. }) => {
            format!("switch {} µs, ordering {} µs", micros(switch_ns), micros(ordering_ns))
        }
    }
}

fn micros(ns: i64) -> String {
    let text = format!("{:.1}", ns as f64 / 1e3);
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// Who is ahead at which prices.
pub fn ahead(points: &[Point]) -> Table {
    let mut table = Table::new(
        2,
        &["prices", "region", "overhead of RMS+MLF less MUF's, ms/s", "MUF less RMS+MLF, soft deadlines/s"],
    );
    for point in points {
        table.row(vec![
            prices(point.mechanism),
            point.region.number().to_string(),
            format!("{:+.3}", point.net_overhead_ms),
            format!("{:.2}", point.soft_met),
        ]);
    }
    table
}

/// Claims as a table.
pub fn claim_table(claims: &[Claim]) -> Table {
    let mut table = Table::new(3, &["claim", "verdict", "figures"]);
    for claim in claims {
        table.row(vec![claim.statement.clone(), claim.verdict.to_string(), claim.figures.clone()]);
    }
    table
}

/// Empty for what is not known.
fn known(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Every sample as CSV.
///
/// # Errors
/// [`ExperimentError::Unwritable`].
pub fn samples_csv(results: &Results, path: &Path) -> Result<Vec<u8>, ExperimentError> {
    let unwritable = |cause: &dyn std::fmt::Display| ExperimentError::unwritable(path, cause.to_string());
    let mut csv = csv::Writer::from_writer(Vec::new());
    let headings = [
        "region",
        "strategy",
        "sample",
        "hard_offered",
        "hard_met",
        "soft_offered",
        "soft_met",
        "effectiveness",
        "efficiency",
        "hard_preemptions",
        "hard_switches",
        "hard_depth_mean",
        "hard_switch_ns",
        "hard_queue_ns",
        "hard_thread_switches",
        "withheld_ns",
        "route_latency_ms",
    ];
    csv.write_record(headings).map_err(|cause| unwritable(&cause))?;
    for trial in results.trials() {
        for (index, sample) in trial.samples.iter().enumerate() {
            let row = [
                trial.region.number().to_string(),
                trial.strategy.to_string(),
                (index + 1).to_string(),
                sample.hard_offered.to_string(),
                sample.hard_met.to_string(),
                sample.soft_offered.to_string(),
                sample.soft_met.to_string(),
                sample.effectiveness().to_string(),
                format!("{:.6}", sample.efficiency()),
                sample.hard_preemptions.to_string(),
                sample.hard_switches.to_string(),
                format!("{:.4}", sample.mean_hard_depth()),
                known(sample.hard_switch_ns),
                sample.hard_queue_ns.to_string(),
                known(sample.threads.map(|threads| threads.critical_switches)),
                known(sample.threads.map(|threads| threads.withheld_ns)),
                format!("{:.4}", sample.mean_latency_ms()),
            ];
            csv.write_record(row).map_err(|cause| unwritable(&cause))?;
        }
    }
    csv.into_inner().map_err(|cause| unwritable(&cause))
}
