//! Processes of other programs that are held together, in a cgroup of their own below the one that they come from.
//!
//! The cgroup has the number of whoever made it in its name. If that was killed together with its guardian, the cgroup is left,
//! perhaps with a program in it; the next that comes by removes it.

use crate::freezer::{FreezeSwitch, Freezer};
use crate::keeper::{PREFIX, is_there, maker_of, remove_leftovers};
use rustix::process::getpid;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use talea_linux::Tid;
use talea_linux::cgroup::{self, Cgroup, Freeze, move_to};
use talea_linux::proc::is_gone;

/// How often is looked for processes that were started by one that was just being moved.
const ROUNDS: usize = 16;

/// Where a cgroup around a process goes.
pub(crate) struct CgroupPlace {
    pub folder: PathBuf,
    /// The cgroup from which the process comes.
    pub home: PathBuf,
}

impl CgroupPlace {
    /// Removes what others have left there.
    pub fn around(process: Tid) -> io::Result<Self> {
        let home = home_of(process)?;
        remove_leftovers(&home);
        let folder = home.join(format!("{PREFIX}{}.{process}", getpid()));
        Ok(CgroupPlace { folder, home })
    }
}

/// A cgroup around processes.
pub(crate) struct Group {
    home: PathBuf,
    switch: Arc<FreezeSwitch>,
    /// Those that come from elsewhere.
    others: Vec<(Tid, PathBuf)>,
}

impl Group {
    /// Moves all of `processes` into it, and whoever they start meanwhile.
    ///
    /// # Errors
    /// All are where they were.
    pub fn around(
        place: CgroupPlace,
        processes: &dyn Fn() -> Vec<Tid>,
        freezer: &Arc<Freezer>,
    ) -> io::Result<Self> {
        let switch = freezer.switch(Arc::new(Cgroup::create(place.folder)?));
        let mut group = Group { home: place.home, switch, others: Vec::new() };
        for _ in 0..ROUNDS {
            let inside = group.cgroup().processes();
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
            Ok(home) if home != self.home => self.others.push((process, home)),
            Ok(_) => {}
            Err(_) if is_gone(process) => return Ok(()),
            Err(error) => return Err(error),
        }
        let moved = self.cgroup().take(process);
        if moved.is_err() && is_gone(process) { Ok(()) } else { moved }
    }

    /// Takes in a process as well, which most often is in it by birth: then it costs reading where it is, and not the milliseconds of a move.
    pub fn take(&self, process: Tid) {
        if cgroup::home_of(process).is_ok_and(|home| home != self.cgroup().folder()) {
            let _gone = self.cgroup().take(process);
        }
    }

    /// By which it is frozen and thawed.
    pub fn switch(&self) -> &Arc<FreezeSwitch> {
        &self.switch
    }

    fn cgroup(&self) -> &Cgroup {
        self.switch.cgroup()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.switch.want(Freeze::Off);
        self.switch.settle();
        for _ in 0..ROUNDS {
            let inside = self.cgroup().processes();
            for process in &inside {
                let elsewhere = self.others.iter().find(|(other, _)| other == process);
                let home = elsewhere.map_or(&self.home, |(_, home)| home);
                // One whose cgroup has gone meanwhile goes where the others do.
                let _gone = move_to(home, *process).or_else(|_| move_to(&self.home, *process));
            }
            if inside.is_empty() {
                break;
            }
        }
        let _in_use = self.cgroup().remove();
    }
}

/// The cgroup in which a process is, or was before somebody put it into one to hold it who is not there any more.
fn home_of(process: Tid) -> io::Result<PathBuf> {
    let mut home = cgroup::home_of(process)?;
    while maker_of(&home).is_some_and(|maker| maker == getpid() || !is_there(maker)) {
        home.pop();
    }
    Ok(home)
}
