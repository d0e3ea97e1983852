//! Developer commands: `cargo xtask test`, `cargo xtask bench`, `cargo xtask campaign`, `cargo xtask fuzz`, `cargo xtask reference`.

#![forbid(unsafe_code)]

mod bench;
mod campaign;
mod fuzz;
mod holders;
mod machine;
mod programs;
mod skipped;
mod step;

use clap::{Args, Parser, Subcommand};
use programs::{FEATURES, Programs, Score};
use skipped::Skipped;
use std::process::ExitCode;
use step::{Step, run_all};
use talea_measure::SKIPPED_FILE;

/// Developer commands of Talea.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that has to hold: format, lints, documentation, all tests, models, vectors.
    ///
    /// Installs the toolchain components it needs and, as root where there is apt-get, the packages babeltrace2, which
    /// checks CTF exports, and python3-jsonschema, which checks the schema of system files; and, below target/python, the
    /// package perfetto, whose schema checks Perfetto exports. Needs neither network (once dependencies are fetched), nor
    /// root, nor a quiet machine; what a missing privilege or program keeps from being tested is listed at the end as
    /// skipped, with the reasons.
    Test(TestOptions),
    /// Run the benchmarks and write docs/performance.md with machine, toolchain and commit.
    ///
    /// Run as root for real-time priorities, on a machine that does little else.
    Bench(bench::Options),
    /// Try random systems across all features for some minutes, and write docs/evidence.md.
    Campaign(campaign::Options),
    /// Run the fuzz targets one after the other, with what they found before to begin with, and print what each has tried and found.
    ///
    /// Needs a nightly toolchain, and installs cargo-fuzz, which builds the targets with libFuzzer, unless it is there. Fails
    /// if a target finds something; the input is kept in fuzz/artifacts, and its path printed. What the targets judge
    /// stands in docs/verification.md.
    #[command(after_help = "Example: cargo xtask fuzz --minutes 10 --target etcl_parse,event_message")]
    Fuzz(fuzz::Options),
    /// Check licences, bans and sources of all dependencies (needs cargo-deny).
    Deny,
    /// Write docs/system-file.md, docs/command.md and the conversions in docs/guarantees.md anew from what the code declares.
    Reference,
}

#[derive(Args)]
struct TestOptions {
    /// Draw what random tests try from this seed; with "any", from another one every time
    #[arg(long, value_name = "NUMBER|any", default_value = "1", value_parser = seed)]
    seed: Seed,
}

#[derive(Clone, Copy)]
enum Seed {
    Fixed(u64),
    Any,
}

fn seed(text: &str) -> Result<Seed, String> {
    match text {
        "any" => Ok(Seed::Any),
        number => number.parse().map(Seed::Fixed).map_err(|_| "give a whole number, or \"any\"".into()),
    }
}

fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Command::Test(options) => test(&options),
        Command::Bench(options) => bench::run(&options).map(|path| println!("written: {}", path.display())),
        Command::Campaign(options) => campaign::run(&options)
            .map(|path| path.into_iter().for_each(|path| println!("written: {}", path.display()))),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Reference => run_all(&[reference()]),
        Command::Deny => run_all(&[Step::cargo("deny", &["deny", "check", "licenses", "bans", "sources"])]),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The test that compares the pages, told to write them instead.
fn reference() -> Step {
    let arguments = ["test", "--quiet", "--package", "talea-cli", "--bin", "talea", "reference"];
    Step::cargo("reference pages", &arguments).env("TALEA_WRITE_REFERENCE", "1")
}

fn test(options: &TestOptions) -> Result<(), String> {
    run_all(&installations())?;
    run_all(&checks())?;
    let skipped =
        Skipped::collect().map_err(|error| format!("there is no file to list skipped tests in: {error}"))?;
    let mut environment = vec![(SKIPPED_FILE, skipped.file())];
    if let Seed::Fixed(seed) = options.seed {
        // The same tests every time: what a new seed finds is not the fault of the change under test.
        environment.push(("PROPTEST_RNG_SEED", seed.to_string()));
    }
    let mut programs = Programs::build(&environment)?;
    println!("==> running the tests");
    let mut score = Score::default();
    score.run(&programs.alone, &[]);
    // What takes longest comes first, so that both lines end together.
    let mut background = other_tests(&programs.talea, &environment, &skipped);
    background.append(&mut programs.computing);
    score.run(&programs.waiting, &background);
    print!("{skipped}");
    println!("{}", score.sum()?);
    Ok(())
}

fn installations() -> [Step; 5] {
    [
        Step::install_component("rustfmt", &["fmt", "--version"]),
        Step::install_component("clippy", &["clippy", "--version"]),
        Step::install_package("babeltrace2", &["babeltrace2", "--version"]),
        Step::install_package(
            "python3-jsonschema",
            &["python3", "-c", "from jsonschema import Draft202012Validator"],
        ),
        Step::install_python(
            "perfetto==0.59.1",
            "from perfetto.protos.perfetto.trace import perfetto_trace_pb2; from google.protobuf import unknown_fields",
        ),
    ]
}

fn checks() -> [Step; 5] {
    let fuzz_lints = ["clippy", "--manifest-path", fuzz::MANIFEST, "--no-default-features", "--all-targets"];
    [
        Step::cargo("format", &["fmt", "--all", "--check"]),
        Step::cargo("format of the fuzz targets", &["fmt", "--manifest-path", fuzz::MANIFEST, "--check"]),
        // Their own workspace; nothing is linked, so that it needs no nightly toolchain.
        Step::cargo(
            "lints of the fuzz targets",
            &[&fuzz_lints[..], &["--quiet", "--", "-D", "warnings"]].concat(),
        )
        .env("CARGO_TARGET_DIR", "target"),
        Step::cargo(
            "lints",
            &["clippy", "--workspace", FEATURES, "--all-targets", "--quiet", "--", "-D", "warnings"],
        ),
        Step::cargo("documentation", &["doc", "--workspace", FEATURES, "--no-deps", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    ]
}

/// Tests that are no programs of their own before cargo makes them.
fn other_tests(talea: &str, environment: &[(&str, String)], skipped: &Skipped) -> Vec<Step> {
    let mut examples =
        Step::cargo("examples in the documentation", &["test", "--workspace", FEATURES, "--doc", "--quiet"]);
    for (key, value) in environment {
        examples = examples.env(key, value);
    }
    let loom = ["test", "-p", "talea-ring", "--profile", "loom", "--test", "loom", "--quiet"];
    let mut steps = vec![
        examples,
        // Loom replaces the atomics at compile time, so its models are built apart.
        Step::cargo("loom models", &loom)
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", "target/loom"),
        Step::new("vectors", talea, &["vectors", "vectors", "--quiet"]),
    ];
    // Miri comes with nightly toolchains alone, which nobody has to have.
    let miri = Step::cargo("protocols under Miri", &MIRI)
        // The futex of rustix makes a pointer of a number, which is no use of memory.
        .env("MIRIFLAGS", "-Zmiri-permissive-provenance")
        .env("CARGO_TARGET_DIR", "target/miri");
    match Step::cargo("miri", &["+nightly", "miri", "--version"]).capture().failure {
        None => steps.push(miri),
        Some(_) => skipped.note(miri.name(), "there is no nightly toolchain with Miri"),
    }
    steps
}

/// Small on purpose: Miri looks at every access.
const MIRI: [&str; 8] = ["+nightly", "miri", "test", "-p", "talea-ring", "--test", "protocols", "--quiet"];
