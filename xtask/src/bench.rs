//! `cargo xtask bench`: runs the benchmarks and writes docs/performance.md.

use crate::machine;
use crate::step::root;
use clap::Args;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(Args)]
pub struct Options {
    /// Fewer repetitions: enough to see the order of magnitude
    #[arg(long)]
    quick: bool,
    /// Write the report here instead of docs/performance.md
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Package and name of every benchmark.
const BENCHMARKS: [(&str, &str); 10] = [
    ("talea-sim", "jobs"),
    ("talea-analysis", "analysis"),
    ("talea-policy", "hierarchy"),
    ("talea-sim", "hierarchies"),
    ("talea-runtime", "mechanisms"),
    ("talea-lab", "hierarchies"),
    ("talea-lab", "programs"),
    ("talea-record", "streams"),
    ("talea-notification", "events"),
    ("talea-etcl", "filters"),
];

/// Packages whose benchmarks need others' libraries, which nothing else does.
const HAVE_PEERS: [&str; 3] = ["talea-runtime", "talea-notification", "talea-etcl"];

/// Runs every benchmark and writes the report; its path.
///
/// # Errors
/// A benchmark fails, or the report cannot be written.
pub fn run(options: &Options) -> Result<PathBuf, String> {
    let mut rows = Vec::new();
    for (package, bench) in BENCHMARKS {
        println!("==> {package} {bench}");
        rows.extend(measure(package, bench, options)?);
    }
    let path = options.out.clone().unwrap_or_else(|| root().join("docs/performance.md"));
    std::fs::write(&path, text(&rows, options)?).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// One JSON object per line of the benchmark's standard output.
fn measure(package: &str, bench: &str, options: &Options) -> Result<Vec<Value>, String> {
    let mut command = Command::new("cargo");
    command.args(["bench", "--quiet", "-p", package, "--bench", bench]);
    if HAVE_PEERS.contains(&package) {
        command.args(["--features", "peers"]);
    }
    command.args(["--", "--json"]);
    if options.quick {
        command.arg("--quick");
    }
    let output = command
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo bench: {error}"))?;
    if !output.status.success() {
        return Err(format!("the benchmark {package} {bench} failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().filter(|line| line.starts_with('{'));
    rows.map(|line| serde_json::from_str(line).map_err(|error| format!("{package} {bench}: {error}: {line}")))
        .collect()
}

const INTRODUCTION: &str = "\
Written by `cargo xtask bench`; do not edit. The machine is shared with others, so absolute times change from run to run. Therefore each
figure stands beside a *floor*: the cheapest code that could do the same on this machine, or the simplest case, measured in the same run
and in turns with it. The ratio of the two can be compared between machines. [The glossary](glossary.md) explains terms such as
lane, bell and sentinel.
";

const SIMULATOR: &str = "\
Jobs per second that one core simulates, with everything that the tables of results need: 10 tasks, one node, 78 % load. The last column
is the same simulation without accounting. A median far below the max means that other programs disturbed the run.
";

const ANALYSIS: &str = "\
Median processor time of one analysis, and of the textbook's algorithm in plain Python on the same tasks
(`crates/analysis/benches/peer.py`), which gives the same answers.
";

const MECHANISMS: &str = "\
Each table has one *floor*, the *subjects*, which are Talea's, and sometimes *peers*, other software for the same purpose. p50, p99 and
p99.9 are the times that 50, 99 and 99.9 % of the measurements did not exceed.";

fn text(rows: &[Value], options: &Options) -> Result<String, String> {
    let mut text = String::new();
    let mut line = |content: &str| {
        text.push_str(content);
        text.push('\n');
    };
    line(&format!("# Performance\n\n{INTRODUCTION}"));
    let effort = if options.quick { "quick" } else { "full" };
    line(&machine::described(&format!("effort: {effort}"))?);
    line("\n## Simulator\n");
    line(SIMULATOR);
    line("| system | median | min | max | without accounting |");
    line("|---|---:|---:|---:|---:|");
    for row in rows.iter().filter(|row| row["median"].is_number()) {
        let million = |key: &str| format!("{:.2} M/s", row[key].as_f64().unwrap_or(f64::NAN) / 1e6);
        line(&format!(
            "| {} | {} | {} | {} | {} |",
            string(row, "subject"),
            million("median"),
            million("min"),
            million("max"),
            million("floor_median"),
        ));
    }
    line("\n## Analysis\n");
    line(ANALYSIS);
    line("| analysis | median | Python | ratio |");
    line("|---|---:|---:|---:|");
    for row in rows.iter().filter(|row| row["seconds"].is_number()) {
        let of = |key: &str, show: fn(f64) -> String| row[key].as_f64().map_or("-".into(), show);
        line(&format!(
            "| {} | {} | {} | {} |",
            string(row, "subject"),
            of("seconds", |seconds| time(seconds * 1e9)),
            of("peer_seconds", |seconds| time(seconds * 1e9)),
            of("peer_ratio", |ratio| format!("{ratio:.0}")),
        ));
    }
    line(&format!(
        "\n## Decisions of the hierarchy, mechanisms of the Linux runtime, data streams, and filters\n\n{MECHANISMS}"
    ));
    let mut group = "";
    for row in rows.iter().filter(|row| row["p50_ns"].is_number()) {
        if string(row, "group") != group {
            group = string(row, "group");
            line(&format!("\n### {group}\n"));
            line("| | role | p50 | p99 | p99.9 | max | p50 / floor | p99 / floor | |");
            line("|---|---|---:|---:|---:|---:|---:|---:|---|");
        }
        line(&mechanism(row));
    }
    Ok(text)
}

fn mechanism(row: &Value) -> String {
    let mut cells = format!("| {} | {} |", string(row, "subject"), string(row, "role"));
    for key in ["p50_ns", "p99_ns", "p999_ns", "max_ns"] {
        write!(cells, " {} |", time(row[key].as_f64().unwrap_or(f64::NAN))).expect("text grows");
    }
    for key in ["p50_ratio", "p99_ratio"] {
        write!(cells, " {:.2} |", row[key].as_f64().unwrap_or(f64::NAN)).expect("text grows");
    }
    write!(cells, " {} |", string(row, "note")).expect("text grows");
    cells
}

fn string<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        _ => format!("{:.2} ms", ns / 1e6),
    }
}
