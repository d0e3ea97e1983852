//! Tries random systems for some minutes and says what was found.

use clap::Parser;
use indicatif::ProgressBar;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use talea_campaign::{Counts, Finding, Kind, Surroundings, attempt};

/// Try random systems across all features, held against judges from outside.
#[derive(Parser)]
struct Options {
    /// How long
    #[arg(long, default_value_t = 10.0, value_name = "MINUTES")]
    minutes: f64,
    /// Begin with this trial; each further one has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Make this many trials of each kind instead of trying for some minutes
    #[arg(long)]
    trials: Option<u64>,
    /// Only trials of these kinds
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// The command, for runs on threads
    #[arg(long)]
    talea: Option<PathBuf>,
    /// A profile of this machine, for bounds; otherwise it is measured first
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Where inputs with findings are kept
    #[arg(long, default_value = "target/campaign")]
    findings: PathBuf,
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    let kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(|kind| options.only.is_empty() || options.only.contains(kind)).collect();
    if kinds.contains(&Kind::Bounds) && options.machine.is_none() {
        options.machine = measured(&options);
    }
    let each = Duration::from_secs_f64(options.minutes.max(0.0) * 60.0 / kinds.len() as f64);
    let mut findings = 0;
    println!("| trial | trials | refused | findings | held |\n|---|---:|---:|---:|---|");
    for kind in kinds {
        let (counts, found) = go(kind, each, &options);
        findings += found;
        let held: Vec<String> = counts.held.iter().map(|(what, count)| format!("{count} {what}")).collect();
        println!(
            "| {} | {} | {} | {found} | {} |",
            kind.name(),
            counts.trials,
            counts.refused,
            held.join(", ")
        );
    }
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A profile of this machine; none if there is no command to measure it by, or it cannot be.
fn measured(options: &Options) -> Option<PathBuf> {
    let profile = options.findings.join("machine.toml");
    fs::create_dir_all(&options.findings).ok()?;
    let _none_yet = fs::remove_file(&profile);
    let output =
        Command::new(options.talea.as_ref()?).args(["doctor", "--measure", "--out"]).arg(&profile).output();
    let is_there = profile.exists();
    if !is_there {
        eprintln!("this machine cannot be measured, so no bounds are tried: {output:?}");
    }
    is_there.then_some(profile)
}

fn go(kind: Kind, each: Duration, options: &Options) -> (Counts, u64) {
    let around = Surroundings { talea: options.talea.clone(), machine: options.machine.clone() };
    let (mut counts, mut found) = (Counts::default(), 0);
    let bar = ProgressBar::new_spinner().with_message(kind.name());
    bar.enable_steady_tick(Duration::from_millis(200));
    let since = Instant::now();
    for seed in options.seed.. {
        let is_over = match options.trials {
            Some(trials) => counts.trials >= trials,
            None => since.elapsed() >= each,
        };
        if is_over {
            break;
        }
        bar.set_position(counts.trials);
        if let Err(finding) = attempt(kind, seed, &around, &mut counts) {
            found += 1;
            bar.suspend(|| tell(&finding, options));
        }
    }
    bar.finish_and_clear();
    (counts, found)
}

fn tell(finding: &Finding, options: &Options) {
    let Finding { kind, seed, what, input } = finding;
    eprintln!("{} {seed}: {what}", kind.name());
    let ending = match kind {
        Kind::Traces => "talea",
        Kind::Constraints => "etcl",
        Kind::Events => "event",
        _ => "toml",
    };
    let path = options.findings.join(format!("{}-{seed}.{ending}", kind.name()));
    let written = fs::create_dir_all(&options.findings).and_then(|()| fs::write(&path, input));
    match written {
        Ok(()) => eprintln!(
            "  its input is in {}; repeat it with --only {} --seed {seed} --trials 1",
            path.display(),
            kind.name()
        ),
        Err(error) => eprintln!("  its input cannot be written to {}: {error}", path.display()),
    }
}
