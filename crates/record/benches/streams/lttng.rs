//! The peer: an LTTng-UST tracepoint with two fields, in a recording session of its own.
//!
//! Its program is compiled when the benchmark runs, and everything it needs lies in a temporary folder: the
//! session daemon has its own home there and disturbs no other session.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use talea_time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = include_str!("peer.c");
const HEADER: &str = include_str!("peer.h");

/// The running peer. Dropping it ends its session and its daemon.
pub struct Peer {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    daemon: Child,
    folder: TempDir,
}

impl Peer {
    /// Compiles and starts the peer.
    ///
    /// # Errors
    /// What is missing or fails, for the message that it was skipped.
    pub fn start() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let path = folder.path();
        for (name, content) in [("peer.c", PROGRAM), ("peer.h", HEADER)] {
            std::fs::write(path.join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        run(Command::new("cc").args(["-O2", "-I.", "peer.c", "-o", "peer", "-llttng-ust", "-ldl"]), path)?;
        let mut daemon = Command::new("lttng-sessiond");
        let daemon = at_home(&mut daemon, path).args(["--no-kernel", "--quiet"]).spawn();
        let mut daemon = daemon.map_err(|error| format!("lttng-sessiond: {error}"))?;
        match Peer::record(path) {
            Ok((program, requests, answers)) => Ok(Peer { program, requests, answers, daemon, folder }),
            Err(message) => {
                end(&mut daemon);
                Err(message)
            }
        }
    }

    fn record(home: &Path) -> Result<(Child, ChildStdin, BufReader<ChildStdout>), String> {
        let output = format!("--output={}", home.join("trace").display());
        create_session(home, &output)?;
        for arguments in [
            // Room for every event of a benchmark, so that none is dropped, which would be cheaper.
            &["enable-channel", "-u", "wide", "--subbuf-size=8M", "--num-subbuf=8", "-s", "talea"][..],
            &["enable-event", "-u", "-c", "wide", "-s", "talea", "talea_peer:*"],
            &["start", "talea"],
        ] {
            run(Command::new("lttng").args(arguments), home)?;
        }
        let mut program = Command::new(home.join("peer"));
        let program = at_home(&mut program, home).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut program = program.map_err(|error| format!("the peer: {error}"))?;
        let requests = program.stdin.take().expect("it was asked for");
        let answers = BufReader::new(program.stdout.take().expect("it was asked for"));
        Ok((program, requests, answers))
    }

    /// Emits `count` events and says how long that took.
    ///
    /// # Panics
    /// If the peer has ended.
    pub fn batch(&mut self, count: u32) -> Duration {
        writeln!(self.requests, "{count}").expect("the peer reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the peer answers");
        Duration::from_nanos(line.trim().parse().expect("the peer answers with nanoseconds"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // What has ended already cannot be ended again, which is as well.
        let _ = self.program.kill();
        let _ = self.program.wait();
        let _ = run(Command::new("lttng").args(["destroy", "--no-wait", "talea"]), self.folder.path());
        end(&mut self.daemon);
    }
}

fn end(daemon: &mut Child) {
    let _ = daemon.kill();
    let _ = daemon.wait();
}

/// Creates the session as soon as the daemon, just started, answers.
fn create_session(home: &Path, output: &str) -> Result<(), String> {
    const ATTEMPTS: u32 = 50;
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match run(Command::new("lttng").args(["--no-sessiond", "create", "talea", output]), home) {
            Ok(()) => return Ok(()),
            Err(message) => last = message,
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(last)
}

/// The command with a home of its own, where LTTng keeps its sockets.
fn at_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.current_dir(home).env("LTTNG_HOME", home).env("HOME", home)
}

fn run(command: &mut Command, home: &Path) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = at_home(command, home).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}", message.lines().last().unwrap_or("failed without a word")))
}
