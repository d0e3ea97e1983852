//! What is written: systems, tables, remarks, results as JSON.

use super::claims::Part;
use super::edges::{Edge, FigureTrial};
use super::hand_over;
use super::operations::{Operation, Way};
use super::results::{HandOvers, RendererTrial, Results, quantile};
use super::service::{Evidence, total};
use super::setting::{self, Configuration, Picture, published_switch};
use crate::compare::Clock;
use crate::experiments::folder::Folder;
use crate::experiments::kernel_switches::RecordedSwitches;
use crate::experiments::{Claim, ExperimentError};
use crate::table::{Table, percent};
use serde_json::{Value, json};
use std::path::Path;
use talea_policy::arrangement::{Breach, Side};
use talea_statistics::{mean, mean_interval};
use talea_time::Duration;

/// Writes the systems, to check, simulate and run each.
///
/// # Errors
/// [`ExperimentError::Unwritable`].
pub fn write_systems(out: &Path) -> Result<(), ExperimentError> {
    let mut folder = Folder::make(out.join("systems"))?;
    for configuration in Configuration::ALL {
        folder.write(&format!("renderer-{}.toml", configuration.keyword()), configuration.text())?;
    }
    for picture in Picture::ALL {
        folder.write(&format!("{}.toml", picture.keyword()), picture.text())?;
    }
    folder.write("controlled.toml", setting::CONTROLLED)
}

/// A heading and what stands below it.
pub type Section = (&'static str, Table);

/// The tables of the parts that were done.
pub fn sections(results: &Results) -> Vec<Section> {
    let all = [
        ("Table 5: a CPU-bound renderer beside a background thread", renderers(results)),
        ("Table 4: operations on a running hierarchy", operations(results)),
        ("Context switches", switches(results)),
        ("Figures 1 and 3, edge by edge", edges(results)),
    ];
    all.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

fn ms(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}

const fn place(clock: Clock) -> &'static str {
    match clock {
        Clock::Virtual => "simulated",
        Clock::Real => "real",
    }
}

fn renderers(results: &Results) -> Table {
    let mut table = Table::new(
        2,
        &[
            "app. guarantee",
            "where",
            "%a",
            "frames/s",
            "gaps > 33 ms",
            "with time withheld",
            "with steal time",
            "as granted",
            "frames overdue",
            "longest gap, ms",
            "%b",
            "withheld, %",
            "at once, ms",
        ],
    );
    if results.renderers.is_empty() {
        return table;
    }
    for configuration in Configuration::ALL {
        if let Some(published) = configuration.published() {
            let mut row = vec![configuration.title().to_string(), "paper".into()];
            row.extend([published.renderer.to_string(), published.renderer.to_string()]);
            row.push(published.misses.to_string());
            row.extend(std::iter::repeat_n("-".to_string(), 5));
            row.extend([published.background.to_string(), "-".into(), "-".into()]);
            table.row(row);
        }
        for trial in results.renderers.iter().filter(|trial| trial.configuration == configuration) {
            table.row(renderer(trial));
        }
    }
    table
}

fn renderer(trial: &RendererTrial) -> Vec<String> {
    let frames = &trial.frames;
    vec![
        trial.configuration.title().into(),
        place(trial.clock).into(),
        percent(trial.renderer_share),
        format!("{:.1}", trial.rate()),
        frames.gaps.to_string(),
        frames.gaps_withheld.to_string(),
        frames.gaps_stolen.to_string(),
        trial.as_granted.gaps.to_string(),
        frames.overdue.to_string(),
        ms(frames.longest_ns),
        percent(trial.background_share),
        percent(trial.withheld_share),
        ms(trial.withheld_longest_ns),
    ]
}

fn micros(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}

fn operations(results: &Results) -> Table {
    let headings = ["operation, µs", "by", "mean", "95 %", "p50", "p99", "max", "paper"];
    let mut table = Table::new(2, &headings);
    for operation in Operation::ALL {
        for way in Way::ALL {
            let Some(measured) = results.operation(operation, way) else { continue };
            let interval = mean_interval(&measured.ns, super::results::RESAMPLING);
            let at = |share| quantile(&measured.ns, share).map_or("-".into(), micros);
            let published = operation.published().map_or("-".into(), |published| {
                format!("{} ± {:.2}", micros(published.mean_ns), published.half_width_ns / 1e3)
            });
            table.row(vec![
                operation.title().into(),
                way.name().into(),
                micros(mean(&measured.ns)),
                interval.map_or("-".into(), |interval| {
                    format!("[{}, {}]", micros(interval.low), micros(interval.high))
                }),
                at(0.5),
                at(0.99),
                at(1.0),
                published,
            ]);
        }
    }
    table
}

fn switches(results: &Results) -> Table {
    let mut table =
        Table::new(1, &["who decides", "turns", "p50, µs", "p99", "p99.9", "over the kernel's", "paper"]);
    let of_kernel = results.hand_over(hand_over::Way::Kernel).and_then(|of_way| of_way.quantile(0.5));
    for of_way in &results.hand_overs {
        let at = |share| of_way.quantile(share).map_or("-".into(), |ns| format!("{:.2}", ns / 1e3));
        let over = of_way
            .quantile(0.5)
            .zip(of_kernel)
            .map_or("-".into(), |(ns, kernel)| format!("{:+.2}", (ns - kernel) / 1e3));
        let paper = match of_way.way {
            hand_over::Way::Kernel => micros(published_switch::NATIVE_NS),
            hand_over::Way::Levels(1) => micros(published_switch::HIERARCHY_NS),
            _ => "-".into(),
        };
        let turns = match of_way.spoilt {
            0 => of_way.turns.len().to_string(),
            spoilt => format!("{} ({spoilt} do not count)", of_way.turns.len()),
        };
        table.row(vec![of_way.way.to_string(), turns, at(0.5), at(0.99), at(0.999), over, paper]);
    }
    if let Some(found) = results.per_level() {
        let interval = found.interval.map_or("-".into(), |interval| {
            format!("[{:.3}, {:.3}]", interval.low / 1e3, interval.high / 1e3)
        });
        let paper = format!("{:.2}", published_switch::PER_LEVEL_NS / 1e3);
        let explained = format!("R² {:.2}", found.r_squared);
        let row = [
            "each additional level".into(),
            "-".into(),
            format!("{:.3}", found.ns / 1e3),
            interval,
            explained,
            "-".into(),
            paper,
        ];
        table.row(row.into());
    }
    table
}

fn edges(results: &Results) -> Table {
    let headings = [
        "figure",
        "where",
        "edge",
        "derived",
        "kept as granted",
        "wanted, s",
        "granted, s",
        "received, s",
        "judged",
        "broken as granted",
        "as received",
        "with time withheld",
        "worst",
    ];
    let mut table = Table::new(5, &headings);
    for (clock, trial) in &results.figures {
        for edge in &trial.edges {
            table.row(edge_row(*clock, trial, edge));
        }
    }
    table
}

fn edge_row(clock: Clock, trial: &FigureTrial, edge: &Edge) -> Vec<String> {
    let seconds = |ns: i64| format!("{:.2}", ns as f64 / 1e9);
    let kept = &edge.kept;
    let judged = kept.judged.is_some();
    let of_received = |value: fn(&super::edges::Received) -> u64| match &edge.received {
        Some(received) if judged => value(received).to_string(),
        _ => "-".into(),
    };
    let worst = edge.received.as_ref().and_then(|received| received.worst).or(kept.worst);
    vec![
        trial.picture.title().into(),
        place(clock).into(),
        format!("{} → {}", kept.parent, kept.child),
        kept.guarantee.clone(),
        match edge.is_kept_as_granted() {
            None => "-".into(),
            Some(true) => "yes".into(),
            Some(false) => "no".into(),
        },
        kept.wanted_ns.map_or("-".into(), seconds),
        seconds(kept.received_ns),
        edge.received.as_ref().map_or("-".into(), |received| seconds(received.received_ns)),
        kept.judged.map_or("-".into(), |judged| judged.to_string()),
        if judged { kept.violations.to_string() } else { "-".into() },
        of_received(|received| received.broken),
        of_received(|received| received.broken_withheld),
        worst.as_ref().map_or("-".into(), breach),
    ]
}

/// `1.2ms short of 5ms in 33ms`.
fn breach(breach: &Breach) -> String {
    let time = |ns: i64| Duration::from_nanos(ns).rounded();
    let (promised, window) = (time(breach.promised_ns), time(breach.to_ns - breach.from_ns));
    let (amount, how) = match breach.bound {
        Side::Least => (breach.promised_ns - breach.received_ns, "short of"),
        Side::Most => (breach.received_ns - breach.promised_ns, "more than"),
    };
    format!("{} {how} {promised} in {window}", time(amount))
}

/// Claims as a table.
pub fn claim_table(claims: &[Claim]) -> Table {
    let mut table = Table::new(3, &["claim", "verdict", "figures"]);
    for claim in claims {
        table.row(vec![claim.statement.clone(), claim.verdict.to_string(), claim.figures.clone()]);
    }
    table
}

/// What to know about runs on real threads before reading on.
pub fn remarks(results: &Results) -> Vec<String> {
    let untold =
        results.renderers.iter().filter(|trial| trial.clock == Clock::Real).find_map(|trial| {
            match (&trial.kernel, trial.evidence) {
                (Some(RecordedSwitches::Nothing(reason)), _) => Some(reason.replace('\n', "; ")),
                (_, Evidence::Decisions) => Some("it told of none".into()),
                _ => None,
            }
        });
    let untold = untold.map(|reason| {
        format!(
            "Note: the kernel does not tell of switches ({reason}). What threads received is taken to be what they were \
             granted, and nothing is known of time withheld."
        )
    });
    let of_renderers = results.renderers.iter().filter(|trial| trial.clock == Clock::Real);
    let of_renderers = of_renderers.map(|trial| (trial.withheld_longest_ns, trial.configuration.keyword()));
    let longest =
        of_renderers.max_by_key(|(longest, _)| *longest).filter(|(longest, _)| *longest > 5_000_000);
    let withheld = longest.map(|(longest, configuration)| {
        format!(
            "Note: the kernel withheld the processor from threads that were granted it, for up to {} ms at once (configuration \
             {configuration}). Real-time threads are not to have more than a part of each second: \"real-time throttling\" \
             and \"fair server\" in `talea doctor`. A miss in such a gap may be the pause's.",
            ms(longest)
        )
    });
    let ended = results.figures.iter().find_map(|(_, trial)| {
        trial
            .run
            .cause
            .as_ref()
            .map(|cause| format!("Note: the run of {} ended early: {cause}.", trial.picture.title()))
    });
    let of_renderers = results.renderers.iter().map(|trial| (trial.evidence, trial.configuration.keyword()));
    let of_figures = results.figures.iter();
    let of_figures = of_figures.map(|(_, trial)| (trial.run.service.evidence, trial.picture.keyword()));
    let doubted: Vec<&str> = of_renderers
        .chain(of_figures)
        .filter(|(evidence, _)| *evidence == Evidence::Contradicted)
        .map(|(_, name)| name)
        .collect();
    let doubted = (!doubted.is_empty()).then(|| {
        format!(
            "Note: the switches that the kernel told contradict the threads' own clocks in {}. There what threads received is \
             taken to be what they were granted, and nothing is known of time withheld.",
            doubted.join(", ")
        )
    });
    untold.into_iter().chain(doubted).chain(withheld).chain(ended).collect()
}

/// Everything as JSON.
pub fn json(results: &Results, claims: &[Claim], parts: &[Part], conditions: &str) -> Value {
    let operations: Vec<Value> = results
        .operations
        .iter()
        .map(|measured| {
            let at = |share| quantile(&measured.ns, share);
            json!({
                "operation": measured.operation, "way": measured.way, "count": measured.ns.len(),
                "mean_ns": mean(&measured.ns), "p50_ns": at(0.5), "p99_ns": at(0.99), "max_ns": at(1.0),
                "published": measured.operation.published(),
            })
        })
        .collect();
    let hand_over = |of_way: &HandOvers| {
        let at = |share| of_way.quantile(share);
        json!({
            "way": of_way.way, "p50_ns": at(0.5), "p99_ns": at(0.99), "p999_ns": at(0.999),
            "spoilt_turns": of_way.spoilt, "medians_of_turns_ns": of_way.medians(),
        })
    };
    let figure = |(clock, trial): &(Clock, FigureTrial)| {
        json!({
            "figure": trial.picture, "clock": clock, "edges": trial.edges, "kernel": trial.run.recorded,
            "evidence": trial.run.service.evidence, "cause": trial.run.cause, "lost_records": trial.run.service.lost,
            "withheld_ns": total(&trial.run.service.withheld).as_nanos(),
        })
    };
    let renderer = |trial: &RendererTrial| json!({ "trial": trial, "frames_per_second": trial.rate(), "published": trial.configuration.published() });
    json!({
        "conditions": conditions,
        "parts": parts.iter().map(|part| part.keyword()).collect::<Vec<_>>(),
        "claims": claims,
        "table_5": results.renderers.iter().map(renderer).collect::<Vec<_>>(),
        "table_4": operations,
        "switches": results.hand_overs.iter().map(hand_over).collect::<Vec<_>>(),
        "per_level": results.per_level(),
        "figures": results.figures.iter().map(figure).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::hierarchies::operations::Measured;

    #[test]
    fn what_was_measured_is_in_the_tables_beside_what_was_published() {
        let ns =
            |way| if let hand_over::Way::Levels(levels) = way { 2_000.0 + levels as f64 } else { 1_000.0 };
        let of_way = |way| HandOvers { way, turns: vec![vec![ns(way), ns(way) + 9.0]; 3], spoilt: 1 };
        let of = |operation| Way::ALL.map(|way| Measured { operation, way, ns: vec![20_000.0, 30_000.0] });
        let results = Results {
            hand_overs: hand_over::Way::all().map(of_way).collect(),
            operations: Operation::ALL.into_iter().flat_map(of).collect(),
            ..Results::default()
        };
        let sections = sections(&results);
        let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
        assert_eq!(titles, ["Table 4: operations on a running hierarchy", "Context switches"]);
        let [operations, switches] = [0, 1].map(|index| sections[index].1.markdown());
        assert!(operations.contains("| 25.0 ± 1.63 |"), "{operations}");
        for part in ["3 (1 do not count)", "| 11.7 |", "| each additional level |", "0.96"] {
            assert!(switches.contains(part), "{part} is not in\n{switches}");
        }
        let json = json(&results, &[], &Part::ALL, "by hand");
        assert_eq!(json["switches"][0]["spoilt_turns"], 1);
        assert_eq!(json["table_4"].as_array().map(Vec::len), Some(14));
    }
}
