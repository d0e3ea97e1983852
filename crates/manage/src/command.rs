//! Commands that a run starts, each with all that it starts in turn.
//!
//! A command is started by the [keeper](crate::keeper), in a cgroup of its own where there is one, and leads a process group of its own. What it
//! starts belongs to it, and ends with it; a Ctrl-C at the terminal reaches the run alone, which then ends its commands. If the run is
//! killed, its keeper and its guardian end them. The command is not reaped before its end is asked for: until then its number, which is
//! also its group's, is nobody else's.

use crate::guardian::{CommandNote, Guardian};
use crate::keeper::{Ended, Go, Keeper, Kept, ProgramEnd};
use rustix::process::{Signal, kill_process_group};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use talea_linux::Tid;
use talea_linux::cgroup::Cgroup;

/// The command of these words, at least one.
pub fn of_words(words: &[String]) -> Command {
    let (program, arguments) = words.split_first().expect("the model refuses empty commands");
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// A command that was started, and waits until it is [let go](Self::go). It does not outlive this.
pub struct Started {
    /// The member's name.
    pub name: String,
    /// Its process, which has the number of its group.
    pub process: Tid,
    kept: Kept,
    /// Whether its end has been asked for.
    is_ended: bool,
    /// Who ends it if the run cannot.
    guarded: Option<CommandNote>,
}

impl Started {
    /// Starts `command` at the head of a group of its own. It reads nothing, and what it prints goes to standard error.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(name: &str, command: &Command, keeper: &Arc<Keeper>) -> io::Result<Self> {
        let kept = keeper.launch(name, command)?;
        Ok(Started { name: name.into(), process: kept.process, kept, is_ended: false, guarded: None })
    }

    /// Has the guardian end it with its cgroup and its group if the run is killed. False if the guardian cannot remember more.
    #[must_use]
    pub fn guard(&mut self, guardian: &Arc<Guardian>) -> bool {
        self.guarded = guardian.note_command(self.process, self.cgroup().map(|cgroup| cgroup.folder()));
        self.guarded.is_some()
    }

    /// What lets it go.
    pub fn go(&self) -> Go {
        self.kept.go()
    }

    /// The cgroup that it is in.
    pub fn cgroup(&self) -> Option<&Arc<Cgroup>> {
        self.kept.cgroup.as_ref()
    }

    /// Why the calls by which it would change how it is scheduled are not refused, if they are not.
    pub fn unfiltered(&self) -> Option<&str> {
        self.kept.filtered.as_ref().err().map(String::as_str)
    }

    /// Ends it with what it has started. Says how it had ended before that, if it had.
    pub fn end(mut self) -> Option<ProgramEnd> {
        self.finish().filter(|ended| ended.by_itself).map(|ended| ended.end)
    }

    fn finish(&mut self) -> Option<Ended> {
        self.is_ended = true;
        let ended = self.kept.end();
        if ended.is_none() {
            // The keeper has been killed, and the program with it. Those that it has started may be left.
            self.kept.cgroup.iter().for_each(|cgroup| cgroup.kill());
            let _gone = kill_process_group(self.process, Signal::KILL);
            self.kept.cgroup.iter().for_each(|cgroup| remove(cgroup.folder()));
        }
        ended
    }
}

/// Those who were killed leave a cgroup within moments.
fn remove(folder: &Path) {
    for _ in 0..100 {
        if std::fs::remove_dir(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Ends all of them, with whatever they have started, wherever it has gone. Says of those that had ended before how they had.
pub fn end_all(commands: &mut Vec<Started>) -> Vec<(String, ProgramEnd)> {
    if let Some(first) = commands.first() {
        first.kept.end_all();
    }
    let end = |command: Started| Some((command.name.clone(), command.end()?));
    commands.drain(..).filter_map(end).collect()
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_ended {
            self.finish();
        }
    }
}
