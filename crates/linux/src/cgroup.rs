//! Control groups: where they are, which version, whether this process may make some, and what can be done with one.
//!
//! ```text
//!   version 2, one tree      freeze, kill, processor time; a program can be started in one (clone3)
//!   version 1, a tree each   here only `cpuset`, where version 2 does not offer it: processors beyond it are refused
//! ```
//!
//! Moving a process by writing its number waits for a grace period of the whole kernel, some 10 ms; starting one inside costs microseconds.
//! So programs are started where they belong. Version 1's `cpu` is left alone: without `cpu.rt_runtime_us` no thread in it may have a
//! real-time priority. Its freezer, too: a frozen process does not even end when it is killed.

use crate::Tid;
use crate::affinity::list;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use talea_time::Work;

/// Lists the processes of a cgroup, and takes in those that are written to it.
pub const PROCESSES: &str = "cgroup.procs";
/// Ends all of its processes, those that are just being started included.
pub const KILL: &str = "cgroup.kill";
const FREEZE: &str = "cgroup.freeze";

/// What was found of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Version 2.
    pub unified: Result<Unified, Missing>,
    /// Version 1's tree of processors.
    pub cpuset: Result<PathBuf, Missing>,
    /// The controllers of version 1 that are mounted.
    pub version_1: Vec<String>,
}

/// Where cgroups of version 2 can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unified {
    /// The cgroup of this process.
    pub home: PathBuf,
    /// Where it is mounted, unless so that moving processes is quick, and does not keep everybody from freezing others meanwhile
    /// (`favordynmods`).
    pub slow_moves: Option<PathBuf>,
}

/// Why there are no cgroups to be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Nothing of that version is mounted.
    #[error("not mounted")]
    NotMounted,
    /// It is mounted, and none can be made where this process is.
    #[error("no cgroup can be made in {}: {reason}", home.display())]
    NotWritable {
        /// The cgroup of this process.
        home: PathBuf,
        /// The kernel's answer.
        reason: String,
    },
    /// The kernel is too old to end or hold all of a cgroup at once.
    #[error("{} lacks {file}, which Linux has since {since}", home.display())]
    Old {
        /// A cgroup.
        home: PathBuf,
        /// What it lacks.
        file: &'static str,
        /// A version.
        since: &'static str,
    },
}

impl Survey {
    /// Looks, and tries to make a cgroup, which is removed again. Some tens of microseconds.
    pub fn take() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let version_1 = of_version_1(&mounts).into_iter().map(|(controllers, _)| controllers).collect();
        Survey { unified: unified(&mounts, &own), cpuset: cpuset(&mounts, &own), version_1 }
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.unified, self.version_1.as_slice()) {
            (Err(Missing::NotMounted), []) => return f.write_str("none is mounted"),
            (Err(Missing::NotMounted), _) => f.write_str("version 1 alone")?,
            (_, []) => f.write_str("version 2")?,
            (_, _) => f.write_str("versions 1 and 2 at once")?,
        }
        match &self.unified {
            Ok(unified) => write!(f, "; version 2 can be written in {}", unified.home.display())?,
            Err(Missing::NotMounted) => {}
            Err(missing) => write!(f, "; {missing}")?,
        }
        match &self.cpuset {
            Ok(home) => write!(f, "; processors by version 1 in {}", home.display()),
            Err(_) if self.unified.is_ok() && self.version_1.is_empty() => Ok(()),
            Err(missing) => write!(f, "; processors by version 1: {missing}"),
        }
    }
}

fn unified(mounts: &str, own: &str) -> Result<Unified, Missing> {
    let home = home(mounts, own).ok_or(Missing::NotMounted)?;
    let slow_moves = unified_mount(mounts).filter(|(_, options)| !options.contains(&"favordynmods"));
    let tried = home.join(format!("talea-{}.try", rustix::process::getpid()));
    try_folder(&home, &tried, || {
        let lacks = |file: &&(&'static str, &'static str)| !tried.join(file.0).exists();
        match [(FREEZE, "5.2"), (KILL, "5.14")].iter().find(lacks) {
            None => Ok(()),
            Some(&(file, since)) => Err(Missing::Old { home: home.clone(), file, since }),
        }
    })?;
    Ok(Unified { home: home.clone(), slow_moves: slow_moves.map(|(root, _)| root) })
}

fn cpuset(mounts: &str, own: &str) -> Result<PathBuf, Missing> {
    let has = |controllers: &str| controllers.split(',').any(|one| one == "cpuset");
    let all = of_version_1(mounts);
    let (controllers, root) =
        all.iter().find(|(controllers, _)| has(controllers)).ok_or(Missing::NotMounted)?;
    let below = own.lines().find_map(|line| {
        let (own, path) = line.split_once(':')?.1.split_once(':')?;
        (own == controllers).then(|| path.trim_start_matches('/').to_owned())
    });
    let home = root.join(below.unwrap_or_default());
    let tried = home.join(format!("talea-{}.try", rustix::process::getpid()));
    try_folder(&home, &tried, || Ok(()))?;
    Ok(home)
}

fn try_folder(home: &Path, tried: &Path, look: impl FnOnce() -> Result<(), Missing>) -> Result<(), Missing> {
    let refused = |error: io::Error| Missing::NotWritable { home: home.into(), reason: error.to_string() };
    fs::create_dir(tried).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(refused(error)),
    })?;
    let seen = look();
    let _another_took_it = fs::remove_dir(tried);
    seen
}

/// The controllers of each tree of version 1, and where it is mounted.
fn of_version_1(mounts: &str) -> Vec<(String, PathBuf)> {
    let known = [
        "cpuset",
        "cpu",
        "cpuacct",
        "blkio",
        "memory",
        "devices",
        "freezer",
        "net_cls",
        "perf_event",
        "net_prio",
        "hugetlb",
        "pids",
    ];
    let tree = |line: &str| {
        let mut fields = line.split(' ');
        let (_, place, kind, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let controllers: Vec<&str> = options.split(',').filter(|option| known.contains(option)).collect();
        (kind == "cgroup" && !controllers.is_empty()).then(|| (controllers.join(","), PathBuf::from(place)))
    };
    mounts.lines().filter_map(tree).collect()
}

/// Where version 2 is mounted, and with which options.
fn unified_mount(mounts: &str) -> Option<(PathBuf, Vec<&str>)> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, place, kind, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| (PathBuf::from(place), options.split(',').collect()))
    })
}

/// The cgroup of version 2 that `own`, as proc tells it, says.
fn home(mounts: &str, own: &str) -> Option<PathBuf> {
    let below = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(unified_mount(mounts)?.0.join(below))
}

/// The cgroup of version 2 in which a process is.
///
/// # Errors
/// It is gone, or there is no version 2.
pub fn home_of(process: Tid) -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    home(&mounts, &fs::read_to_string(format!("/proc/{process}/cgroup"))?)
        .ok_or(io::ErrorKind::NotFound.into())
}

/// Moves a process, with all its threads. Waits for the kernel, some milliseconds.
///
/// # Errors
/// The kernel's refusal.
pub fn move_to(cgroup: &Path, process: Tid) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(cgroup.join(PROCESSES))?;
    file.write_all(process.to_string().as_bytes())
}

/// The processes in a cgroup.
pub fn processes_in(cgroup: &Path) -> Vec<Tid> {
    let listed = fs::read_to_string(cgroup.join(PROCESSES)).unwrap_or_default();
    listed.lines().filter_map(|line| Tid::from_raw(line.parse().ok()?)).collect()
}

/// A cgroup of version 2 that was made here. It is not removed by itself.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    freeze: File,
}

impl Cgroup {
    /// Makes it.
    ///
    /// # Errors
    /// The kernel's refusal; nothing is left.
    pub fn create(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let opened = OpenOptions::new().write(true).open(folder.join(FREEZE));
        let freeze = opened.inspect_err(|_| _ = fs::remove_dir(&folder))?;
        Ok(Cgroup { folder, freeze })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps its processes from running, or lets them go on. Allocates nothing.
    pub fn freeze(&self, freeze: Freeze) {
        // Gone with its processes, or it works.
        let _gone = self.freeze.write_all_at(if freeze == Freeze::On { b"1" } else { b"0" }, 0);
    }

    /// Whether all of its threads have stopped.
    pub fn is_frozen(&self) -> bool {
        self.says("frozen 1")
    }

    /// Whether anybody is in it.
    pub fn is_populated(&self) -> bool {
        self.says("populated 1")
    }

    fn says(&self, line: &str) -> bool {
        let events = fs::read_to_string(self.folder.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|one| one == line)
    }

    /// Those that are in it now.
    pub fn processes(&self) -> Vec<Tid> {
        processes_in(&self.folder)
    }

    /// Moves a process into it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn take(&self, process: Tid) -> io::Result<()> {
        move_to(&self.folder, process)
    }

    /// Processor time that all that ever were in it have received in it. That of a thread that is running is some milliseconds old.
    pub fn received(&self) -> Option<Work> {
        received_in(&self.folder)
    }

    /// Ends all of its processes at once.
    pub fn kill(&self) {
        let _gone = fs::write(self.folder.join(KILL), "1");
    }

    /// Removes it, if nobody is in it.
    pub fn remove(&self) -> bool {
        fs::remove_dir(&self.folder).is_ok()
    }
}

/// As [`Cgroup::received`].
pub fn received_in(cgroup: &Path) -> Option<Work> {
    let stat = fs::read_to_string(cgroup.join("cpu.stat")).ok()?;
    let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?.parse().ok()?;
    Some(Work::from_micros(micros))
}

/// Whether a cgroup's processes may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeze {
    /// They may not.
    On,
    /// They may.
    Off,
}

/// Makes a cgroup of version 1 whose processes may use these processors alone.
///
/// # Errors
/// The kernel's refusal; nothing is left.
pub fn create_cpuset(folder: &Path, cpus: &[u16]) -> io::Result<()> {
    fs::create_dir(folder)?;
    let above = folder.parent().unwrap_or(folder);
    let fill = || {
        // Where memory is taken from is not restricted, but has to be said.
        let memory = fs::read_to_string(above.join("cpuset.mems"))?;
        fs::write(folder.join("cpuset.mems"), memory.trim())?;
        fs::write(folder.join("cpuset.cpus"), list(cpus).replace(' ', ""))
    };
    fill().inspect_err(|_| _ = fs::remove_dir(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
        cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
        cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn both_versions_are_told_apart() {
        let own = "4:cpuset:/jail\n2:cpu,cpuacct:/\n0::/user.slice/one.scope\n";
        assert_eq!(home(BOTH, own), Some("/sys/fs/cgroup/unified/user.slice/one.scope".into()));
        let trees: Vec<String> = of_version_1(BOTH).into_iter().map(|(controllers, _)| controllers).collect();
        assert_eq!(trees, ["cpu,cpuacct", "cpuset"], "a tree without controllers restricts nobody");
        assert_eq!(home("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0", "0::/"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(home("tmpfs /tmp tmpfs rw 0 0", "0::/"), None);
        assert_eq!(unified_mount(BOTH), Some(("/sys/fs/cgroup/unified".into(), vec!["rw", "relatime"])));
        assert_eq!(
            unified_mount("cgroup2 /cg cgroup2 rw,nosuid,favordynmods 0 0"),
            Some(("/cg".into(), vec!["rw", "nosuid", "favordynmods"]))
        );
    }

    #[test]
    fn what_is_found_is_said() {
        let unified = Ok(Unified { home: "/cg/own".into(), slow_moves: None });
        let said = |unified, cpuset, version_1: &[&str]| {
            let version_1 = version_1.iter().map(|one| (*one).to_owned()).collect();
            Survey { unified, cpuset, version_1 }.to_string()
        };
        let none = Err(Missing::NotMounted);
        assert_eq!(said(Err(Missing::NotMounted), none.clone(), &[]), "none is mounted");
        assert_eq!(
            said(unified.clone(), none.clone(), &[]),
            "version 2; version 2 can be written in /cg/own"
        );
        let both = said(unified, Ok("/cpuset".into()), &["cpuset"]);
        assert!(both.starts_with("versions 1 and 2 at once;") && both.ends_with("in /cpuset"), "{both}");
        let refused = Missing::NotWritable { home: "/cg".into(), reason: "denied".into() };
        let alone = said(Err(Missing::NotMounted), Err(refused), &["cpuset"]);
        assert_eq!(alone, "version 1 alone; processors by version 1: no cgroup can be made in /cg: denied");
    }

    /// Where this may not be done, the survey says so and nothing is tried.
    #[test]
    fn a_cgroup_is_made_frozen_killed_and_removed() {
        let Ok(unified) = Survey::take().unified else { return };
        let cgroup = Cgroup::create(unified.home.join(format!("talea-{}.test", std::process::id()))).unwrap();
        assert!(!cgroup.is_populated() && cgroup.received() == Some(Work::ZERO));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Tid::from_child(&child);
        cgroup.take(process).unwrap();
        assert_eq!(cgroup.processes(), [process]);
        assert_eq!(home_of(process).unwrap(), cgroup.folder());
        cgroup.freeze(Freeze::On);
        while !cgroup.is_frozen() {
            std::thread::yield_now();
        }
        // Frozen ones end as well.
        cgroup.kill();
        child.wait().unwrap();
        while !cgroup.remove() {
            std::thread::yield_now();
        }
    }
}
