//! Steps of a developer command: programs, run one after the other or in two lines at once.

use crate::holders::Holders;
use std::io::{PipeReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A step whose output is kept and that takes longer than this hangs: the longest takes a minute and a half.
const LIMIT: Duration = Duration::from_secs(600);

/// One program to run, from the root of the repository unless it says otherwise.
#[derive(Clone, Debug)]
pub struct Step {
    name: String,
    program: Vec<String>,
    environment: Vec<(String, String)>,
    folder: PathBuf,
    /// Run `program` only if this fails.
    unless: Option<Vec<String>>,
    need: Need,
    /// It is stopped after this time, if its output is kept.
    limit: Duration,
}

/// What it means that a step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The command fails.
    Required,
    /// Some tests will be skipped, and say so.
    Optional,
}

/// How a step ended whose output was kept.
#[derive(Debug)]
pub struct Ended {
    /// Everything that it printed.
    pub output: String,
    /// How long it took.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Step {
    /// A program with its arguments.
    pub fn new(name: &str, program: &str, arguments: &[&str]) -> Self {
        let program = std::iter::once(program).chain(arguments.iter().copied()).map(String::from);
        Step {
            name: name.into(),
            program: program.collect(),
            environment: Vec::new(),
            folder: root().into(),
            unless: None,
            need: Need::Required,
            limit: LIMIT,
        }
    }

    /// `cargo` with these arguments.
    pub fn cargo(name: &str, arguments: &[&str]) -> Self {
        Step::new(name, "cargo", arguments)
    }

    /// Installs a toolchain component unless `cargo` with `probe` works.
    pub fn install_component(component: &str, probe: &[&str]) -> Self {
        let install = Step::new(
            &format!("toolchain component {component}"),
            "rustup",
            &["component", "add", component],
        );
        let probe = std::iter::once("cargo").chain(probe.iter().copied());
        Step { unless: Some(probe.map(String::from).collect()), ..install }
    }

    /// Installs a program with cargo, which does what `purpose` says, unless the program `probe` works.
    pub fn install_program(program: &str, purpose: &str, probe: &[&str]) -> Self {
        let install = Step::cargo(&format!("{program}, which {purpose}"), &["install", "--locked", program]);
        Step { unless: Some(probe.iter().copied().map(String::from).collect()), ..install }
    }

    /// Installs a package of Debian, unless the program `probe` works. It needs root and apt-get; where they are missing,
    /// or it fails, the tests that want the package are skipped and say so.
    pub fn install_package(package: &str, probe: &[&str]) -> Self {
        let install = format!("apt-get install -y -q {package}");
        let script = format!(
            "[ \"$(id -u)\" = 0 ] || {{ echo 'only root may install it'; exit 1; }}; \
             command -v apt-get >/dev/null || {{ echo 'there is no apt-get'; exit 1; }}; \
             {install} || {{ apt-get update -q && {install}; }}"
        );
        let install = Step::new(&format!("package {package}"), "sh", &["-c", &script]);
        let unless = Some(probe.iter().copied().map(String::from).collect());
        Step { unless, need: Need::Optional, ..install }.env("DEBIAN_FRONTEND", "noninteractive")
    }

    /// Installs a package of Python below `target/python`, unless the probe can be imported with it.
    pub fn install_python(package: &str, probe: &str) -> Self {
        const FOLDER: &str = "target/python";
        let patience = ["--retries", "1", "--timeout", "10"];
        let install =
            [&["-m", "pip", "install", "--quiet", "--target", FOLDER, package][..], &patience].concat();
        let install = Step::new(&format!("package {package} for python3"), "python3", &install);
        let folder = root().join(FOLDER).display().to_string();
        let probe = ["env", &format!("PYTHONPATH={folder}"), "python3", "-c", probe].map(String::from);
        Step { unless: Some(probe.into()), need: Need::Optional, ..install }
            .env("PIP_ROOT_USER_ACTION", "ignore")
    }

    /// The same with an environment variable.
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// The same in another folder.
    pub fn within(mut self, folder: PathBuf) -> Self {
        self.folder = folder;
        self
    }

    /// The same at the lowest ordinary priority, so that it takes only what nothing else wants.
    pub fn in_the_background(mut self) -> Self {
        self.program.splice(0..0, ["nice", "-n", "19"].map(String::from));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it and shows what it prints.
    ///
    /// # Errors
    /// It cannot be run, or failed although it is required.
    pub fn run(&self) -> Result<(), String> {
        if self.is_done() {
            return Ok(());
        }
        println!("==> {}: {}", self.name, self.program.join(" "));
        let start = Instant::now();
        let status = self.command().status();
        println!("    {} took {:.1} s", self.name, start.elapsed().as_secs_f64());
        match (status, self.need) {
            (Ok(status), _) if status.success() => Ok(()),
            (Ok(status), Need::Required) => Err(self.failed(status)),
            (Err(error), Need::Required) => Err(self.unstarted(&error)),
            (_, Need::Optional) => {
                println!("    skipped: {} is missing, and so are the tests that want it", self.name);
                Ok(())
            }
        }
    }

    /// Runs it and keeps what it prints. If the pipe that it prints to is still open after its limit, because it hangs or
    /// has left a process behind, it has failed; who had it open stands at the end of the output, and is killed.
    pub fn capture(&self) -> Ended {
        let start = Instant::now();
        let (output, failure) = self.run_into_pipe().unwrap_or_else(|error| {
            let failure = Some(self.unstarted(&error));
            (String::new(), failure)
        });
        Ended { output, took: start.elapsed(), failure }
    }

    fn run_into_pipe(&self) -> std::io::Result<(String, Option<String>)> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // It holds ends of the pipe, which is read until the last one is closed.
        drop(command);
        let (output, stopped) = read_until(self.limit, reader)?;
        let status = child.wait()?;
        let failure = match stopped.is_empty() {
            true => (!status.success()).then(|| self.failed(status)),
            false => Some(format!("{} did not end within {:?}", self.name, self.limit)),
        };
        Ok((String::from_utf8_lossy(&output).into_owned() + &stopped, failure))
    }

    /// The program as a command, for whoever reads its output in another way.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Whether its probe works, so that there is nothing to do.
    fn is_done(&self) -> bool {
        self.unless.as_ref().is_some_and(|probe| {
            Command::new(&probe[0]).args(&probe[1..]).output().is_ok_and(|out| out.status.success())
        })
    }

    fn unstarted(&self, error: &std::io::Error) -> String {
        format!("{}: cannot run {}: {error}", self.name, self.program[0])
    }

    fn failed(&self, status: ExitStatus) -> String {
        format!("{} failed: {status}", self.name)
    }
}

/// All that is written to the pipe, and who had it open at its end after the limit and were stopped.
fn read_until(limit: Duration, mut reader: PipeReader) -> std::io::Result<(Vec<u8>, String)> {
    let holders = Holders::of(&reader)?;
    let (reads, has_read) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let _until_then = reads;
            let mut output = Vec::new();
            reader.read_to_end(&mut output).map(|_| output)
        });
        let mut stopped = String::new();
        while has_read.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            stopped += &holders.stop();
        }
        reading.join().expect("reading does not panic").map(|output| (output, stopped))
    })
}

/// Runs the steps in order and stops at the first that fails.
///
/// # Errors
/// What the step that failed says.
pub fn run_all(steps: &[Step]) -> Result<(), String> {
    steps.iter().try_for_each(Step::run)
}

/// The root of the repository.
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lives in the repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_required_steps_may_fail_the_command() {
        let failing = Step::new("test", "false", &[]);
        assert!(failing.run().is_err());
        assert!(Step { need: Need::Optional, ..failing }.run().is_ok());
        let absent = Step::new("test", "/none/such", &[]);
        assert!(absent.run().is_err());
        assert!(Step { need: Need::Optional, ..absent }.run().is_ok());
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let there = Step { unless: Some(vec!["true".into()]), ..Step::new("test", "false", &[]) };
        assert!(there.run().is_ok());
    }

    #[test]
    fn what_hangs_or_is_left_behind_is_stopped_and_named() {
        for script in ["echo begun; exec sleep 1000", "echo begun; sleep 1000 & exit 0"] {
            let step = Step { limit: Duration::from_millis(200), ..Step::new("test", "sh", &["-c", script]) };
            let ended = step.capture();
            assert_eq!(ended.failure.as_deref(), Some("test did not end within 200ms"));
            let (begun, still_there) = ended.output.split_once('\n').unwrap();
            assert_eq!(begun, "begun");
            assert!(still_there.contains("sleep 1000\n    thread sleep "), "{still_there}");
        }
    }

    #[test]
    fn what_a_step_prints_is_kept_in_its_order() {
        let script = "pwd; echo $SAID >&2; echo three; exit 3";
        let step = Step::new("test", "sh", &["-c", script]).env("SAID", "two").within("/".into());
        let ended = step.in_the_background().capture();
        assert_eq!(ended.output, "/\ntwo\nthree\n");
        assert_eq!(ended.failure.as_deref(), Some("test failed: exit status: 3"));
    }
}
