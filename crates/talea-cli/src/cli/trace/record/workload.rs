//! The command that `talea trace record` starts to record it.

use crate::cli::Outcome;
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output::tell;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use talea_time::{Duration, Instant};

/// How long a command may take to end before it gets the next, stronger signal.
const GRACE: Duration = Duration::from_secs(3);

/// A command that was started to be recorded.
pub struct Workload {
    child: Child,
    group: Group,
    /// The signal that it was asked to end with, and when the next, stronger one is due.
    asked: Option<(Signal, Instant)>,
}

/// The process group that the command is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// One of its own, which gets signals as a whole.
    Own,
    /// The terminal's, so that it can read from there. Ctrl-C reaches it without this command.
    Terminal,
}

/// With which ends of a command its exit status is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReportedEnds {
    /// Failures, which this command's exit status reports, too.
    Failures,
    /// Every end, because this command's exit status is about something else.
    All,
}

impl Workload {
    /// Starts the command, if there is one, with these variables in its environment.
    pub fn start(command: &[OsString], environment: &[(&str, String)]) -> Result<Option<Self>, Failure> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let group = if std::io::stdin().is_terminal() { Group::Terminal } else { Group::Own };
        let mut command = Command::new(program);
        if group == Group::Own {
            command.process_group(0);
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let child = command.args(arguments).spawn().map_err(|error| {
            Failure::new(
                format!("cannot start {}: {error}", path_shown(program)),
                "give the program and its arguments after `--`",
            )
        })?;
        Ok(Some(Workload { child, group, asked: None }))
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Asks the command to end: first as Ctrl-C would, then with stronger signals.
    pub fn ask_to_end(&mut self, now: Instant) {
        let next = match self.asked {
            None => Signal::INT,
            Some((_, due)) if now < due => return,
            Some((Signal::INT, _)) => Signal::TERM,
            Some(_) => Signal::KILL,
        };
        self.signal(next);
        self.asked = Some((next, now.saturating_add(GRACE)));
    }

    /// A command that has ended already needs no signal.
    fn signal(&self, signal: Signal) {
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        let _ = match self.group {
            Group::Own => kill_process_group(pid, signal),
            Group::Terminal => kill_process(pid, signal),
        };
    }

    /// Waits for the command, which has ended or has been given the time to.
    pub fn finish(mut self, reported: ReportedEnds) -> Outcome {
        // If it was asked to end, so was all that it has started; what ignored that is killed.
        if !self.is_over() || self.asked.is_some() {
            self.signal(Signal::KILL);
        }
        let status = self.child.wait();
        let status =
            status.map_err(|error| Failure::new(format!("cannot wait for the command: {error}"), ""))?;
        let is_fine = status.success() || self.asked.is_some();
        if !is_fine || reported == ReportedEnds::All {
            tell!("note: the command ended with {status}");
        }
        Ok(if is_fine { Verdict::Fine } else { Verdict::Negative })
    }
}
