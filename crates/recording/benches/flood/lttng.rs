//! The peer: the same flood through LTTng-UST, in a session with a daemon and a home of its own.

use super::Result as Flooded;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const PROGRAM: &str = include_str!("peer.c");
const HEADER: &str = include_str!("peer.h");

/// Floods LTTng-UST.
///
/// # Errors
/// What is missing or fails.
pub fn flood(rate: u64, threads: u32, length: Duration) -> Result<Flooded, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let home = folder.path();
    for (name, content) in [("peer.c", PROGRAM), ("peer.h", HEADER)] {
        std::fs::write(home.join(name), content).map_err(|error| format!("{name}: {error}"))?;
    }
    let libraries = ["-llttng-ust", "-ldl", "-lpthread"];
    run(Command::new("cc").args(["-O2", "-I.", "peer.c", "-o", "peer"]).args(libraries), home)?;
    let mut daemon = Command::new("lttng-sessiond");
    let mut daemon = at_home(&mut daemon, home)
        .args(["--no-kernel", "--quiet"])
        .spawn()
        .map_err(|error| format!("lttng-sessiond: {error}"))?;
    let result = record(home, rate, threads, length);
    end(&mut daemon);
    result
}

fn record(home: &Path, rate: u64, threads: u32, length: Duration) -> Result<Flooded, String> {
    let output = format!("--output={}", home.join("trace").display());
    let mut created = Err(String::new());
    // The daemon, just started, answers after a while.
    for _ in 0..50 {
        created = lttng(home, &["--no-sessiond", "create", "talea", &output]);
        if created.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    created?;
    lttng(home, &["enable-channel", "-u", "c", "--subbuf-size=512K", "--num-subbuf=4", "-s", "talea"])?;
    lttng(home, &["enable-event", "-u", "-c", "c", "-s", "talea", "talea_peer:*"])?;
    lttng(home, &["start", "talea"])?;
    let arguments = [rate.to_string(), threads.to_string(), length.as_millis().to_string()];
    let written = run(Command::new(home.join("peer")).args(arguments), home)?;
    let written = written.trim().parse().map_err(|_| "the peer says no number".to_owned())?;
    lttng(home, &["stop", "talea"])?;
    let listed = lttng(home, &["list", "talea"])?;
    let lost =
        listed.lines().find_map(|line| line.trim().strip_prefix("Discarded events:")?.trim().parse().ok());
    let lost = lost.ok_or_else(|| "lttng does not say what was discarded".to_owned())?;
    lttng(home, &["destroy", "talea"])?;
    Ok(Flooded { written, lost, load: None })
}

fn lttng(home: &Path, arguments: &[&str]) -> Result<String, String> {
    run(Command::new("lttng").args(arguments), home)
}

fn end(daemon: &mut Child) {
    // It ends its own children when it is asked to.
    if let Some(pid) = rustix::process::Pid::from_raw(daemon.id() as i32) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let _ = daemon.wait();
}

/// The command with a home of its own, where LTTng keeps its sockets.
fn at_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.current_dir(home).env("LTTNG_HOME", home).env("HOME", home)
}

fn run(command: &mut Command, home: &Path) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = at_home(command, home).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}", message.lines().last().unwrap_or("failed without a word")))
}
