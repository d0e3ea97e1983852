//! `cargo xtask fuzz`: runs the fuzz targets one after the other, and says how much each has tried and what it has found.

use crate::machine;
use crate::step::{Step, root, run_all};
use clap::Args;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// How long, each target
    #[arg(long, default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Only these targets, the files in fuzz/targets
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',')]
    targets: Vec<String>,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= 1e6 => Ok(minutes),
        _ => Err("give a number above 0, as 10 or 0.5".into()),
    }
}

/// The targets' own workspace.
pub const MANIFEST: &str = "fuzz/Cargo.toml";
/// What is built for fuzzing: instrumented, so that nothing else can use it.
const BUILT: &str = "target/fuzz";
/// Seconds after which one input has taken too long.
const TIMEOUT_S: u32 = 10;
/// Mebibytes that one allocation, and the whole process, may take.
const ALLOCATION_MIB: u32 = 256;
const PROCESS_MIB: u32 = 2048;

/// Runs the targets and prints what came of each.
///
/// # Errors
/// A target has found something, or cannot be run.
pub fn run(options: &Options) -> Result<(), String> {
    let targets = chosen(&all_targets()?, &options.targets)?;
    let nightly = Step::new("nightly", "rustc", &["+nightly", "--version"]).capture();
    if let Some(missing) = nightly.failure {
        return Err(format!(
            "fuzz targets are built with the instrumentation of a nightly toolchain, and there is none ({missing}); \
             install one: rustup toolchain install nightly --profile minimal"
        ));
    }
    let build = ["+nightly", "fuzz", "build", "--fuzz-dir", "fuzz"];
    run_all(&[
        Step::install_program(
            "cargo-fuzz",
            "builds fuzz targets with libFuzzer",
            &["cargo", "+nightly", "fuzz", "--version"],
        ),
        Step::cargo("building the fuzz targets", &build).env("CARGO_TARGET_DIR", BUILT),
    ])?;
    let runs = targets.iter().map(|target| fuzz(target, options.minutes)).collect::<Result<Vec<_>, _>>()?;
    let how = format!("built with {}, minutes each: {}", nightly.output.trim(), options.minutes);
    println!("\n{}\n", machine::described(&how)?);
    print!("{}", table(&runs));
    for run in &runs {
        print!("{}", run.told());
    }
    match runs.iter().filter(|run| run.has_failed()).count() {
        0 => Ok(()),
        count => Err(format!("{count} of {} fuzz targets found something or failed", runs.len())),
    }
}

/// The targets by name: each is a file.
fn all_targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/targets");
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        names.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Those of `all` that were asked for; all of them if none was.
fn chosen(all: &[String], asked: &[String]) -> Result<Vec<String>, String> {
    match asked.iter().find(|name| !all.contains(name)) {
        Some(unknown) => {
            Err(format!("there is no fuzz target \"{unknown}\"; the targets are {}", all.join(", ")))
        }
        None if asked.is_empty() => Ok(all.to_vec()),
        None => Ok(asked.to_vec()),
    }
}

/// What came of a target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    target: String,
    numbers: Numbers,
    /// Inputs that it failed with, which are kept.
    findings: Vec<PathBuf>,
    /// How it ended, if it has failed.
    failure: Option<String>,
    /// What it said when it failed.
    said: String,
}

/// What libFuzzer says of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Numbers {
    executions: u64,
    per_second: u64,
    /// Edges of the program that were taken.
    edges: u64,
    /// Inputs that each reach something which no smaller one does.
    corpus: u64,
}

/// Runs a target and keeps what it says in a file.
fn fuzz(target: &str, minutes: f64) -> Result<Run, String> {
    let corpus = folder(&format!("fuzz/corpus/{target}"))?;
    let artifacts = folder(&format!("fuzz/artifacts/{target}"))?;
    let log = root().join(BUILT).join(format!("{target}.log"));
    let before = kept(&artifacts)?;
    let mut limits = vec![
        format!("-max_total_time={}", (minutes * 60.0).ceil()),
        format!("-timeout={TIMEOUT_S}"),
        format!("-malloc_limit_mb={ALLOCATION_MIB}"),
        format!("-rss_limit_mb={PROCESS_MIB}"),
        "-print_final_stats=1".into(),
        // What is fuzzed counts references where it shares at all.
        "-detect_leaks=0".into(),
    ];
    let dictionary = format!("fuzz/dictionaries/{target}.dict");
    if root().join(&dictionary).is_file() {
        limits.push(format!("-dict={dictionary}"));
    }
    let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
    let arguments = [&["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", target, "--"][..], &limits].concat();
    println!("==> fuzzing {target} for {minutes} minutes; what it says is kept in {}", shown(&log));
    let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = output.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let status = Step::cargo(target, &arguments)
        .env("CARGO_TARGET_DIR", BUILT)
        .env("TALEA_FUZZ_SEEDS", &corpus.display().to_string())
        // Where memory was allocated is not asked where none of it is used after it was freed.
        .env("ASAN_OPTIONS", "malloc_context_size=2:detect_stack_use_after_return=0")
        .command()
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(|error| format!("cannot run {target}: {error}"))?;
    let said = fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let said = String::from_utf8_lossy(&said);
    let failure = (!status.success()).then(|| status.to_string());
    Ok(Run {
        target: target.into(),
        numbers: Numbers::of(&said),
        findings: kept(&artifacts)?.difference(&before).cloned().collect(),
        said: if failure.is_some() { reason(&said) } else { String::new() },
        failure,
    })
}

fn folder(path: &str) -> Result<PathBuf, String> {
    let path = root().join(path);
    fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Inputs that libFuzzer has kept because of what happened with them; those that are only slow go on.
fn kept(artifacts: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", artifacts.display());
    let paths: Result<Vec<PathBuf>, _> =
        fs::read_dir(artifacts).map_err(told)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let is_finding = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ["crash-", "oom-", "timeout-", "leak-"].iter().any(|kind| name.starts_with(kind))
    };
    Ok(paths.map_err(told)?.into_iter().filter(is_finding).collect())
}

/// From the root of the repository.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

impl Numbers {
    /// From what libFuzzer prints: lines of its progress, and statistics at the end.
    fn of(said: &str) -> Self {
        let mut numbers = Numbers::default();
        for line in said.lines() {
            let after = |name: &str| {
                let rest = line.split_once(name)?.1.trim_start();
                rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
            };
            let set = |number: &mut u64, found: Option<u64>| *number = found.unwrap_or(*number);
            if line.starts_with('#') {
                set(&mut numbers.executions, after("#"));
                set(&mut numbers.edges, after("cov:"));
                set(&mut numbers.corpus, after("corp:"));
                set(&mut numbers.per_second, after("exec/s:"));
            }
            set(&mut numbers.executions, after("stat::number_of_executed_units:"));
            set(&mut numbers.per_second, after("stat::average_exec_per_sec:"));
        }
        numbers
    }
}

/// The lines that say why a target has failed: from the first that does, as far as they help.
fn reason(said: &str) -> String {
    const LINES: usize = 12;
    let says_why =
        |line: &&str| line.contains("panicked at") || line.contains("ERROR:") || line.starts_with("error");
    let lines: Vec<&str> = said.lines().collect();
    let first = lines.iter().position(says_why).unwrap_or(lines.len().saturating_sub(LINES));
    let mut text = String::new();
    for line in lines.iter().skip(first).take(LINES) {
        let short: String = line.chars().take(400).collect();
        writeln!(text, "    {short}").expect("writing to a string succeeds");
    }
    text
}

impl Run {
    fn has_failed(&self) -> bool {
        self.failure.is_some() || !self.findings.is_empty()
    }

    /// What was found, and what to do with it; nothing if all held.
    fn told(&self) -> String {
        let target = &self.target;
        let mut text = String::new();
        if let Some(failure) = &self.failure {
            text += &format!("\n{target} ended early: {failure}\n{}", self.said);
        }
        for finding in &self.findings {
            let input = shown(finding);
            text += &format!(
                "  kept: {input}\n  \
                 again: cargo +nightly fuzz run --fuzz-dir fuzz {target} {input}\n  \
                 smaller: cargo +nightly fuzz tmin --fuzz-dir fuzz {target} {input}\n  \
                 once mended, it belongs into the tests of what was fuzzed (docs/verification.md)\n"
            );
        }
        text
    }
}

fn table(runs: &[Run]) -> String {
    let mut text = String::from(
        "| target | executions | executions/s | edges | corpus | findings |\n|---|---|---|---|---|---|\n",
    );
    for run in runs {
        let Numbers { executions, per_second, edges, corpus } = run.numbers;
        let findings = match (run.findings.len(), &run.failure) {
            (0, Some(_)) => "failed".into(),
            (count, _) => count.to_string(),
        };
        let target = &run.target;
        text += &format!("| `{target}` | {executions} | {per_second} | {edges} | {corpus} | {findings} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 40Mb
#131072\tpulse  cov: 3796 ft: 14708 corp: 211/123Kb lim: 600 exec/s: 8738 rss: 75Mb
#140000\tREDUCE cov: 3801 ft: 14710 corp: 212/123Kb lim: 600 exec/s: 8000 rss: 75Mb L: 5/600 MS: 1 CopyPart-
";

    #[test]
    fn numbers_are_those_of_the_end_or_of_the_last_progress() {
        let progress = Numbers { executions: 140_000, per_second: 8_000, edges: 3_801, corpus: 212 };
        assert_eq!(Numbers::of(SAID), progress);
        let done =
            format!("{SAID}stat::number_of_executed_units: 140123\nstat::average_exec_per_sec:     7000\n");
        assert_eq!(Numbers::of(&done), Numbers { executions: 140_123, per_second: 7_000, ..progress });
        assert_eq!(Numbers::of("error: no such target"), Numbers::default());
    }

    #[test]
    fn a_failure_is_told_with_its_reason_and_the_input_that_is_kept() {
        let said = format!(
            "{SAID}thread '<unnamed>' panicked at targets/x.rs:3:5:\n\"a\" allocates\nnote: run with\n"
        );
        assert!(
            reason(&said)
                .starts_with("    thread '<unnamed>' panicked at targets/x.rs:3:5:\n    \"a\" allocates\n")
        );
        let found = Run {
            target: "x".into(),
            numbers: Numbers::of(&said),
            findings: vec![root().join("fuzz/artifacts/x/crash-1")],
            failure: Some("exit status: 77".into()),
            said: reason(&said),
        };
        assert!(found.has_failed());
        let told = found.told();
        assert!(
            told.contains("\"a\" allocates") && told.contains("kept: fuzz/artifacts/x/crash-1\n"),
            "{told}"
        );
        let without_input = Run { findings: Vec::new(), ..found };
        assert!(without_input.has_failed());
        assert!(table(&[without_input]).ends_with("| `x` | 140000 | 8000 | 3801 | 212 | failed |\n"));
        assert!(!Run::default().has_failed() && Run::default().told().is_empty());
    }

    #[test]
    fn slow_inputs_are_no_findings() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["crash-1", "slow-unit-2", "timeout-3"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let kept = kept(folder.path()).unwrap();
        assert_eq!(kept, ["crash-1", "timeout-3"].map(|name| folder.path().join(name)).into());
    }

    #[test]
    fn every_target_is_declared_and_unknown_ones_are_refused_by_name() {
        let all = all_targets().unwrap();
        let manifest = fs::read_to_string(root().join(MANIFEST)).unwrap();
        for target in &all {
            assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), all.len());
        assert_eq!(chosen(&all, &[]), Ok(all.clone()));
        assert_eq!(chosen(&all, &["etcl_parse".into()]), Ok(vec!["etcl_parse".into()]));
        let refused = chosen(&all, &["etcl".into()]).unwrap_err();
        assert!(refused.contains("\"etcl\"") && refused.contains("etcl_evaluate, etcl_parse"), "{refused}");
    }
}
