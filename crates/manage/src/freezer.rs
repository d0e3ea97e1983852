//! Processes of other programs that are held together, in a cgroup of their own below the one that they come from.
//!
//! The cgroup has the number of whoever made it in its name. If that was killed together with its guardian, the cgroup is left,
//! perhaps with a program in it; the next that comes by removes it.

use rustix::process::{getpid, test_kill_process};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use talea_linux::Tid;
use talea_linux::proc::is_gone;

/// Lists the processes of a cgroup, and takes in those that are written to it.
const PROCESSES: &str = "cgroup.procs";
const PREFIX: &str = "talea-";
/// How often is looked for processes that were started by one that was just being moved.
const ROUNDS: usize = 16;

/// Where a cgroup around a process goes.
pub(crate) struct Place {
    pub folder: PathBuf,
    /// The cgroup from which the process comes.
    pub home: PathBuf,
}

impl Place {
    /// Removes what others have left there.
    pub fn around(process: Tid) -> io::Result<Self> {
        let home = home_of(process)?;
        remove_leftovers(&home);
        let folder = home.join(format!("{PREFIX}{}.{process}", getpid()));
        Ok(Place { folder, home })
    }
}

/// A cgroup around processes.
pub(crate) struct Group {
    place: Place,
    freeze: File,
    /// Those that come from elsewhere.
    others: Vec<(Tid, PathBuf)>,
}

impl Group {
    /// Moves all of `processes` into it, and whoever they start meanwhile.
    ///
    /// # Errors
    /// All are where they were.
    pub fn around(place: Place, processes: &dyn Fn() -> Vec<Tid>) -> io::Result<Self> {
        std::fs::create_dir(&place.folder)?;
        let opened = OpenOptions::new().write(true).open(place.folder.join("cgroup.freeze"));
        let freeze = opened.inspect_err(|_| _ = std::fs::remove_dir(&place.folder))?;
        let mut group = Group { place, freeze, others: Vec::new() };
        for _ in 0..ROUNDS {
            let inside = group.processes();
            let is_outside = |process: &Tid| !inside.contains(process) && !is_gone(*process);
            let outside: Vec<Tid> = processes().into_iter().filter(is_outside).collect();
            if outside.is_empty() {
                return Ok(group);
            }
            outside.into_iter().try_for_each(|process| group.fetch(process))?;
        }
        Err(io::Error::other("its processes start others faster than they can be moved"))
    }

    fn fetch(&mut self, process: Tid) -> io::Result<()> {
        match home_of(process) {
            Ok(home) if home != self.place.home => self.others.push((process, home)),
            Ok(_) => {}
            Err(_) if is_gone(process) => return Ok(()),
            Err(error) => return Err(error),
        }
        let moved = move_to(&self.place.folder, process);
        if moved.is_err() && is_gone(process) { Ok(()) } else { moved }
    }

    /// Takes in a process as well, which most often is in it by birth.
    pub fn take(&self, process: Tid) {
        let _gone = move_to(&self.place.folder, process);
    }

    pub fn write(&self, word: &[u8]) {
        // Gone with the process, or it works.
        let _gone = self.freeze.write_all_at(word, 0);
    }

    pub fn is_frozen(&self) -> bool {
        let events = std::fs::read_to_string(self.place.folder.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "frozen 1")
    }

    fn processes(&self) -> Vec<Tid> {
        let listed = std::fs::read_to_string(self.place.folder.join(PROCESSES)).unwrap_or_default();
        listed.lines().filter_map(|line| Tid::from_raw(line.parse().ok()?)).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.write(b"0");
        for _ in 0..ROUNDS {
            let inside = self.processes();
            for process in &inside {
                let elsewhere = self.others.iter().find(|(other, _)| other == process);
                let home = elsewhere.map_or(&self.place.home, |(_, home)| home);
                // One whose cgroup has gone meanwhile goes where the others do.
                let _gone = move_to(home, *process).or_else(|_| move_to(&self.place.home, *process));
            }
            if inside.is_empty() {
                break;
            }
        }
        let _in_use = std::fs::remove_dir(&self.place.folder);
    }
}

fn move_to(cgroup: &Path, process: Tid) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(cgroup.join(PROCESSES))?;
    file.write_all(process.to_string().as_bytes())
}

/// The cgroup in which a process is, or was before somebody put it into one to hold it who is not there any more.
fn home_of(process: Tid) -> io::Result<PathBuf> {
    let root = unified_root().ok_or(io::ErrorKind::NotFound)?;
    let listed = std::fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    let own = listed.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(io::ErrorKind::NotFound)?;
    let mut home = root.join(own);
    while maker_of(&home).is_some_and(|maker| maker == getpid() || !is_there(maker)) {
        home.pop();
    }
    Ok(home)
}

/// Removes cgroups that are empty and whose makers are not there any more.
fn remove_leftovers(home: &Path) {
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        if maker_of(&entry.path()).is_some_and(|maker| !is_there(maker)) {
            let _in_use = std::fs::remove_dir(entry.path());
        }
    }
}

/// Who made a cgroup to hold somebody in, by its name.
fn maker_of(cgroup: &Path) -> Option<Tid> {
    let (maker, _) = cgroup.file_name()?.to_str()?.strip_prefix(PREFIX)?.split_once('.')?;
    Tid::from_raw(maker.parse().ok()?)
}

fn is_there(process: Tid) -> bool {
    !matches!(test_kill_process(process), Err(rustix::io::Errno::SRCH))
}

/// Where cgroup v2 is mounted.
fn unified_root() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let unified = |line: &str| {
        let mut fields = line.split(' ');
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    };
    mounts.lines().find_map(unified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_says_who_made_it() {
        let made = |path: &str| maker_of(Path::new(path)).map(|maker| maker.as_raw_nonzero().get());
        assert_eq!(made("/cgroup/talea-12.345"), Some(12));
        assert_eq!((made("/cgroup/talea-12"), made("/talea-1.2/else"), made("/")), (None, None, None));
    }
}
