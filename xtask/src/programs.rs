//! Test programs, run so that those that mostly wait and those that compute share the time.
//!
//! `cargo test` runs one test program after the other, and many of them wait for threads of theirs to run a second or two.
//! Here one line of programs runs at ordinary priority, and beside it, in the background, another line of programs and
//! commands that compute; once nothing else is left, they run in two lines. Tests of whole systems on real-time
//! threads, some of which judge how late these were, run by themselves. Those that judge what threads receive by the
//! kernel's account need not: work in the background lengthens them.

use crate::step::{Ended, Step, root};
use serde_json::Value;
use std::path::Path;
use std::sync::Mutex;

/// Crates whose integration tests run by themselves.
const ALONE: [&str; 2] = ["talea-linux", "talea-runtime"];

/// Crates whose integration tests wait for threads and processes more than they compute, in the order of their runs.
const WAITING: [&str; 3] = ["talea-manage", "talea-cli", "talea-lab"];

/// Crates whose integration tests compute longest, the longest first: short programs are left for the end.
const LONGEST: [&str; 5] =
    ["talea-sim-tests", "talea-analysis", "talea-policy-tests", "talea-replay", "talea-campaign"];

/// Parts that users choose, all of which are tested.
pub const FEATURES: &str = "--features=talea-cli/parquet";

/// All test programs of the workspace, and the command, built.
#[derive(Default)]
pub struct Programs {
    /// The command `talea`, as the tests run it.
    pub talea: String,
    /// Those that run by themselves.
    pub alone: Vec<Step>,
    /// Those that wait.
    pub waiting: Vec<Step>,
    /// The others, those that take longest first.
    pub computing: Vec<Step>,
}

impl Programs {
    /// Builds all test programs; with these environment variables they will run.
    ///
    /// # Errors
    /// They cannot be built, or cargo says something else than it promises.
    pub fn build(environment: &[(&str, String)]) -> Result<Self, String> {
        let arguments = ["test", "--workspace", FEATURES, "--no-run", "--quiet", "--message-format"];
        let build = Step::cargo("tests", &[&arguments[..], &["json-render-diagnostics"]].concat());
        println!("==> building the tests");
        let output = build
            .command()
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!("the tests cannot be built: {}", output.status));
        }
        let messages: Result<Vec<Value>, _> =
            String::from_utf8_lossy(&output.stdout).lines().map(serde_json::from_str).collect();
        let messages = messages.map_err(|error| format!("what cargo says is no JSON: {error}"))?;
        let programs = Programs::of(messages, environment);
        match programs.talea.is_empty() {
            true => Err("cargo built no program talea with the tests".into()),
            false => Ok(programs),
        }
    }

    /// Those that cargo tells of, each line in its order.
    fn of(mut messages: Vec<Value>, environment: &[(&str, String)]) -> Self {
        let order = || WAITING.iter().chain(&LONGEST);
        messages.sort_by_key(|message| {
            let package = package_of(message);
            order().position(|first| *first == package).unwrap_or(order().count())
        });
        let mut programs = Programs::default();
        messages.iter().for_each(|message| programs.add(message, environment));
        programs
    }

    /// Adds the program that cargo tells of, if it is a test program or the command.
    fn add(&mut self, message: &Value, environment: &[(&str, String)]) {
        let text = |value: &Value| value.as_str().map(String::from);
        let is_test = message["profile"]["test"] == true;
        let (Some(executable), Some(manifest)) =
            (text(&message["executable"]), text(&message["manifest_path"]))
        else {
            return;
        };
        if !is_test {
            if message["target"]["name"] == "talea" && message["target"]["kind"][0] == "bin" {
                self.talea = executable;
            }
            return;
        }
        let folder = Path::new(&manifest).parent().unwrap_or(root());
        let is_integration = message["target"]["kind"][0] == "test";
        let target = message["target"]["name"].as_str().unwrap_or_default();
        let package = package_of(message);
        let what =
            if is_integration { format!("integration tests \"{target}\"") } else { "unit tests".into() };
        let folder_text = folder.display().to_string();
        let mut step = Step::new(&format!("{package}, {what}"), &executable, &["--quiet"])
            .within(folder.into())
            .env("CARGO_MANIFEST_DIR", &folder_text);
        for (key, value) in environment {
            step = step.env(key, value);
        }
        let line = match is_integration {
            true if ALONE.contains(&package.as_str()) => &mut self.alone,
            true if WAITING.contains(&package.as_str()) => &mut self.waiting,
            _ => &mut self.computing,
        };
        line.push(step);
    }
}

/// The name of the package that cargo tells of, by an identifier such as
/// `path+file:///talea/crates/sim#talea-sim@0.1.0`, which leaves it out where the folder has the same.
fn package_of(message: &Value) -> String {
    let id = message["package_id"].as_str().unwrap_or_default();
    let (folder, fragment) = id.rsplit_once('#').unwrap_or_default();
    match fragment.split_once('@') {
        Some((name, _)) => name.into(),
        None => folder.rsplit('/').next().unwrap_or_default().into(),
    }
}

/// How many tests passed and failed, and which steps failed.
#[derive(Default)]
pub struct Score {
    passed: u64,
    failed: u64,
    /// Why each step failed that did.
    failures: Vec<String>,
}

impl Score {
    /// Runs `front` in order and at the same time, in the background, `back`; what is left of that when `front` is done
    /// runs in two lines. All run, whatever fails.
    pub fn run(&mut self, front: &[Step], back: &[Step]) {
        let score = Mutex::new(self);
        let note = |step: &Step, ended: Ended| score.lock().expect("no line panics").note(step, ended);
        let left = Mutex::new(back.iter());
        let take = || left.lock().expect("no line panics").next();
        let in_the_background = || {
            while let Some(step) = take() {
                note(step, step.clone().in_the_background().capture());
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(in_the_background);
            front.iter().for_each(|step| note(step, step.capture()));
            in_the_background();
        });
    }

    fn note(&mut self, step: &Step, ended: Ended) {
        let (passed, failed) = counts(&ended.output);
        self.passed += passed;
        self.failed += failed;
        let seconds = ended.took.as_secs_f64();
        let tests = if passed > 0 { format!("{passed} passed, ") } else { String::new() };
        match ended.failure {
            None => println!("    {}: {tests}{seconds:.1} s", step.name()),
            Some(failure) => {
                println!("==> {}, after {seconds:.1} s:\n{}", failure, ended.output);
                self.failures.push(failure);
            }
        }
    }

    /// The sum, as a line.
    ///
    /// # Errors
    /// What failed.
    pub fn sum(&self) -> Result<String, String> {
        let sum = format!("{} passed, {} failed", self.passed, self.failed);
        match self.failures.is_empty() {
            true => Ok(sum),
            false => Err(format!("{}\n{sum}", self.failures.join("\n"))),
        }
    }
}

/// Tests that passed and that failed, in what test harnesses print.
fn counts(output: &str) -> (u64, u64) {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
    results.fold((0, 0), |(passed, failed), line| {
        let number = |what: &str| {
            let before = line.split_once(what).map_or("", |(before, _)| before);
            before.rsplit([' ', '.']).next().and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0)
        };
        (passed + number(" passed"), failed + number(" failed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn harnesses_are_counted() {
        let output = "....\ntest result: ok. 4 passed; 0 failed; 1 ignored; finished in 0.1s\n\
                      test result: FAILED. 12 passed; 3 failed; 0 ignored\n12 passed, 9 failed\n";
        assert_eq!(counts(output), (16, 3));
    }

    #[test]
    fn programs_are_told_apart_and_put_in_order_by_their_crate_and_kind() {
        let artifact = |package: &str, kind: &str, test: bool| {
            json!({
                "reason": "compiler-artifact",
                "package_id": format!("path+file:///talea/crates/{package}#talea-{package}@0.1.0"),
                "manifest_path": format!("/talea/crates/{package}/Cargo.toml"),
                "target": {"kind": [kind], "name": if kind == "bin" { "talea" } else { "main" }},
                "profile": {"test": test},
                "executable": (test || kind == "bin").then(|| format!("/talea/target/{package}-{kind}")),
            })
        };
        let built = [
            ("time", "lib", true),
            ("analysis", "test", true),
            ("runtime", "lib", true),
            ("lab", "test", true),
            ("lab", "lib", false),
            ("manage", "test", true),
            ("runtime", "test", true),
            ("talea-cli", "bin", false),
        ];
        let artifacts = built.map(|(package, kind, test)| artifact(package, kind, test));
        let finished = json!({"reason": "build-finished", "success": true});
        let programs = Programs::of(artifacts.into_iter().chain([finished]).collect(), &[]);
        assert_eq!(programs.talea, "/talea/target/talea-cli-bin");
        let names = |steps: &[Step]| steps.iter().map(|step| step.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&programs.alone), ["talea-runtime, integration tests \"main\""]);
        let waiting = ["manage", "lab"].map(|name| format!("talea-{name}, integration tests \"main\""));
        assert_eq!(names(&programs.waiting), waiting);
        let computing = [
            "talea-analysis, integration tests \"main\"",
            "talea-time, unit tests",
            "talea-runtime, unit tests",
        ];
        assert_eq!(names(&programs.computing), computing);
        assert_eq!(package_of(&json!({"package_id": "path+file:///talea/xtask#0.1.0"})), "xtask");
    }

    #[test]
    fn all_steps_run_whatever_fails() {
        let mut score = Score::default();
        let says = |text: &str| Step::new("front", "echo", &[text]);
        let back = [Step::new("back", "false", &[]), says("test result: ok. 2 passed; 0 failed")];
        score.run(&[says("test result: ok. 5 passed; 0 failed")], &back);
        assert_eq!(score.sum(), Err("back failed: exit status: 1\n7 passed, 0 failed".into()));
    }
}
