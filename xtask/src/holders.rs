//! Who keeps a pipe open: a program that does not end, or what it left behind.

use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::io::PipeReader;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// All other processes that have one pipe open.
pub struct Holders {
    /// What the descriptors of all of them lead to, such as `pipe:[4711]`.
    pipe: PathBuf,
}

impl Holders {
    /// Those of this pipe.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn of(reader: &PipeReader) -> io::Result<Self> {
        fs::read_link(format!("/proc/self/fd/{}", reader.as_raw_fd())).map(|pipe| Holders { pipe })
    }

    /// Kills them and says who they were and where each of their threads was: what hangs can be seen no more afterwards.
    pub fn stop(&self) -> String {
        let processes = self.processes();
        let said = processes.iter().map(|&pid| described(pid)).collect();
        for pid in processes {
            // One that has ended meanwhile is what is wanted.
            let _ended = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        said
    }

    fn processes(&self) -> Vec<i32> {
        let own = std::process::id();
        let pids = entries(Path::new("/proc")).filter_map(|entry| entry.file_name()?.to_str()?.parse().ok());
        let others = pids.filter(|&pid: &i32| u32::try_from(pid) != Ok(own));
        others.filter(|pid| self.is_held_by(*pid)).collect()
    }

    fn is_held_by(&self, pid: i32) -> bool {
        entries(Path::new(&format!("/proc/{pid}/fd")))
            .any(|descriptor| fs::read_link(descriptor).is_ok_and(|target| target == self.pipe))
    }
}

/// The command of a process and what each of its threads does. A thread that runs a test has the name of that test.
fn described(pid: i32) -> String {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let arguments = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
    let mut said = format!("still there: process {pid}, {}\n", arguments.replace('\0', " ").trim_end());
    for thread in entries(&folder.join("task")) {
        let read = |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
        let (name, stat, waits) = (read("comm"), read("stat"), read("wchan"));
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
        let waits = if waits.is_empty() || waits == "0" { String::new() } else { format!(" in {waits}") };
        writeln!(said, "    thread {:<15} {state}{waits}", name.trim_end())
            .expect("a string takes everything");
    }
    said
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
