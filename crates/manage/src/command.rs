//! Commands that a run starts, each with all that it starts in turn.
//!
//! A command leads a process group of its own. What it starts belongs to that group unless it leaves it, so all of it can be
//! stopped and ended together, and a Ctrl-C at the terminal reaches the run alone, which then ends its commands; if the run is
//! killed, its guardian does. The command is not reaped before its end is asked for: until then its number, which is also its
//! group's, is nobody else's.

use crate::guardian::{CommandNote, Guardian};
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use talea_linux::{Tid, stdio};

/// The command of these words, at least one. It reads nothing, and what it prints goes to standard error.
pub fn of_words(words: &[String]) -> Command {
    let (program, arguments) = words.split_first().expect("the model refuses empty commands");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(stdio::standard_error());
    command
}

/// A command that was started. It does not outlive this.
pub struct Started {
    /// The member's name.
    pub name: String,
    /// Its process, which has the number of its group.
    pub process: Tid,
    /// Until it is reaped.
    child: Option<Child>,
    /// Who ends it if the run cannot.
    guarded: Option<CommandNote>,
}

impl Started {
    /// Starts `command` at the head of a group of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(name: &str, command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Started { name: name.into(), process: Tid::from_child(&child), child: Some(child), guarded: None })
    }

    /// Has the guardian end it with its group if the run is killed. False if the guardian cannot remember more.
    #[must_use]
    pub fn guard(&mut self, guardian: &Arc<Guardian>) -> bool {
        self.guarded = guardian.note_command(self.process);
        self.guarded.is_some()
    }

    /// Ends it with its group. Says how it had ended before that, if it had.
    pub fn end(mut self) -> Option<ExitStatus> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let had_ended = matches!(waitid(WaitId::Pid(self.process), look), Ok(Some(_)));
        self.end_all().filter(|_| had_ended)
    }

    /// Kills what is left of the group while the number is still its own, then reaps.
    fn end_all(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        let _gone = kill_process_group(self.process, Signal::KILL);
        child.wait().ok()
    }
}

/// Ends all of them. Says of those that had ended before how they had.
pub fn end_all(commands: &mut Vec<Started>) -> Vec<(String, ExitStatus)> {
    let end = |command: Started| Some((command.name.clone(), command.end()?));
    commands.drain(..).filter_map(end).collect()
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end_all();
    }
}
