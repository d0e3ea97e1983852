//! The keeper: a process of its own that starts the programs of a run, and ends them with whatever they have started.
//!
//! ```text
//!   Talea ──asks──▶ keeper ──clone3──▶ program, waiting ──let go──▶ program ──▶ what it starts
//!     ▲                │                 in its cgroup, filtered          in the same cgroup
//!     └──── watches ───┘
//! ```
//!
//! Each program is started in a cgroup of version 2 of its own where one can be made, and with a filter on the calls that change how it is
//! scheduled ([`talea_linux::seccomp`]). It waits, before its first instruction, until its threads have been taken in and the run wants it. It
//! ends when the keeper does, by its parent-death signal; what it has started ends by the cgroup, or because orphans become the
//! keeper's own children, one generation after another, wherever they have gone. So a daemon ends with its run, without cgroups, too.
//!
//! The keeper was forked before there was anything to keep, from when on it knows no thread but its own. It ends what it has started when
//! the process that it serves has ended or is ending (its warden is not there any more), which it sees within some 50 ms. If it is killed
//! itself, the programs end with it, and the set sees that and ends.
//!
//! Where the set's processors are not all there are, a program that waits is moved into a cgroup of version 1 that has these alone, where that
//! can be made: then it does not get beyond them, also when somebody else moves it.
//!
//! The keeper is an ordinary process on all processors. Where programs that are raised leave it none, it is the guardian that ends them, and
//! the keeper comes after it.

mod answerer;
mod life;
mod region;

use crate::guardian::Guardian;
use answerer::Answerer;
pub(crate) use region::PROGRAMS_MAX;
use region::{FAILED, GO, READY, Region, Request, Slot, ask};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{PidfdFlags, WaitOptions, getpid, pidfd_open, test_kill_process, waitpid};
use rustix::thread::futex::{self, Flags};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use talea_linux::Tid;
use talea_linux::cgroup::{self, Cgroup, Survey};
use talea_linux::sched::last_errno;
use talea_linux::seccomp::{Filter, Listener, SchedulingCall};

/// What the names of all cgroups made here begin with; the number of whoever made them follows.
pub(crate) const PREFIX: &str = "talea-";
/// Of a cgroup in which a program was started, behind the number: nobody else is in one.
const STARTED: &str = ".run";
/// Of its process and, until they execute theirs, of those in which programs begin.
pub(crate) const NAME: &CStr = c"talea-keeper";
/// How long a program that has been started may take to say so.
const READY_WITHIN: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 5, tv_nsec: 0 };

/// The keeper of a run. It ends with this, and ends what it has started.
pub struct Keeper {
    process: Tid,
    region: *mut Region,
    /// The end by which it is asked, one at a time.
    socket: Mutex<OwnedFd>,
    /// The processors that programs may use.
    cpus: Vec<u16>,
    places: OnceLock<Places>,
    /// Cgroups that have been made.
    made: AtomicU64,
    /// Who answers the calls of programs that are filtered, once there are any.
    answerer: OnceLock<Result<Answerer, String>>,
}

/// Where programs are put.
struct Places {
    survey: Survey,
    /// Whether there is a cgroup with the processors.
    cpuset: Result<Option<PathBuf>, String>,
}

// SAFETY: all of the region but the request and the text is made of atomics; these two are used with the socket's lock held. It stays mapped
// until the keeper is dropped.
unsafe impl Send for Keeper {}
// SAFETY: as above.
unsafe impl Sync for Keeper {}

/// A program that was started and waits.
pub(crate) struct Kept {
    keeper: Arc<Keeper>,
    slot: usize,
    /// Its first process.
    pub process: Tid,
    /// Its cgroup, if it has one.
    pub cgroup: Option<Arc<Cgroup>>,
    /// Whether calls that would change how it is scheduled are refused; or why they are not.
    pub filtered: Result<(), String>,
}

/// Lets a program go on that waits for its beginning.
#[derive(Clone)]
pub struct Go {
    keeper: Arc<Keeper>,
    slot: usize,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub end: ProgramEnd,
    /// Whether it had ended before it was ended.
    pub by_itself: bool,
}

/// The end of a program that was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// Its process ended: it exited, or a signal ended it.
    Process(ExitStatus),
    /// The kernel did not execute its file, for this reason: it has never run. It was there when it was looked for.
    NotExecuted(Errno),
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramEnd::Process(status) => write!(f, "{status}"),
            ProgramEnd::NotExecuted(errno) => {
                write!(f, "its program could not be executed: {}", io::Error::from(*errno))?;
                if *errno == Errno::NOENT {
                    f.write_str("; its file was there, so the interpreter that it names is missing")?;
                }
                Ok(())
            }
        }
    }
}

impl Keeper {
    /// Forks the keeper of programs on these processors. It restores nobody: that is the guardian's.
    pub fn start(guardian: &Guardian, cpus: &[u16]) -> Result<Self, Errno> {
        let process = getpid();
        let own = pidfd_open(process, PidfdFlags::empty())?;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let filter = Filter::new();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let region = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), size_of::<Region>(), protection, MapFlags::SHARED)
        }?;
        let region = region.cast::<Region>();
        // SAFETY: the child makes async-signal-safe calls alone and never returns.
        match unsafe { libc::fork() } {
            -1 => {
                let errno = last_errno();
                // SAFETY: mapped above and used by nobody.
                let _leaked = unsafe { munmap(region.cast(), size_of::<Region>()) };
                Err(errno)
            }
            0 => {
                let (watched, socket) = (own.as_raw_fd(), far.as_raw_fd());
                crate::guardian::close_all_but([libc::STDERR_FILENO, watched, socket]);
                // SAFETY: zeroed memory is an empty region, which stays mapped in the child.
                let region = unsafe { &*region };
                let warden = guardian.warden();
                let keeper = life::Keeper { region, filter: &filter, process, watched, socket, warden };
                // SAFETY: this process was just forked.
                unsafe { keeper.live() }
            }
            process => Ok(Keeper {
                process: Tid::from_raw(process).expect("a process has a number"),
                region,
                socket: Mutex::new(near),
                cpus: cpus.to_vec(),
                places: OnceLock::new(),
                made: AtomicU64::new(0),
                answerer: OnceLock::new(),
            }),
        }
    }

    fn region(&self) -> &Region {
        // SAFETY: mapped until `self` is dropped, and zeroed memory is a region.
        unsafe { &*self.region }
    }

    fn slot(&self, slot: usize) -> &Slot {
        &self.region().slots[slot]
    }

    /// Its process, for those who look.
    pub fn process(&self) -> u32 {
        self.process.as_raw_nonzero().get() as u32
    }

    /// Whether it is there.
    pub fn is_alive(&self) -> bool {
        matches!(waitpid(Some(self.process), WaitOptions::NOHANG), Ok(None))
    }

    /// By what programs are contained here, in a sentence each; nothing is missing where it is empty.
    pub fn shortcomings(&self) -> Vec<String> {
        let Some(places) = self.places.get() else { return Vec::new() };
        let mut all = Vec::new();
        if let Err(missing) = &places.survey.unified {
            all.push(format!(
                "programs have no cgroup of their own ({missing}), so they are held by SIGSTOP, and one that leaves its process group only \
                 ends with the run"
            ));
        }
        if let Err(reason) = &places.cpuset {
            all.push(format!("programs are kept on the node's processors by their filter alone ({reason})"));
        }
        all
    }

    fn places(&self) -> &Places {
        self.places.get_or_init(|| {
            let survey = Survey::take();
            if let Ok(unified) = &survey.unified {
                remove_leftovers(&unified.home);
            }
            let cpuset = self.make_cpuset(&survey);
            Places { survey, cpuset }
        })
    }

    /// Where programs have the set's processors alone, if these are not all.
    fn make_cpuset(&self, survey: &Survey) -> Result<Option<PathBuf>, String> {
        let allowed = talea_linux::affinity::allowed().unwrap_or_default();
        if allowed.iter().all(|cpu| self.cpus.contains(cpu)) {
            return Ok(None);
        }
        let home = survey.cpuset.as_ref().map_err(|missing| format!("cpuset by version 1: {missing}"))?;
        remove_leftovers(home);
        let folder = home.join(format!("{PREFIX}{}{STARTED}{}", getpid(), self.process));
        let bytes = folder.as_os_str().as_bytes();
        if bytes.len() >= region::PATH_MAX {
            return Err("its path is too long".into());
        }
        cgroup::create_cpuset(&folder, &self.cpus).map_err(|error| error.to_string())?;
        let ends = bytes.iter().chain(&[0]);
        self.region().cpuset.iter().zip(ends).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        Ok(Some(folder))
    }

    /// Starts `command`, which then waits. It reads nothing, and what it prints goes to standard error.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn launch(self: &Arc<Self>, name: &str, command: &Command) -> io::Result<Kept> {
        let program = resolve(command.get_program(), search_path(command).as_deref())?;
        let arguments = std::iter::once(command.get_program()).chain(command.get_args()).map(zero_ended);
        let arguments: Vec<CString> = arguments.collect::<io::Result<_>>()?;
        let environment = environment(command)?;
        let program = zero_ended(program.as_os_str())?;
        let directory = command.get_current_dir().map(|path| zero_ended(path.as_os_str())).transpose()?;
        let made = self.make_cgroup();
        let cgroup = made.as_ref().map(|cgroup| cgroup.folder().as_os_str().as_bytes()).unwrap_or_default();
        let socket = self.lock();
        let Some(slot) = self.region().slots.iter().position(Slot::is_free) else {
            made.iter().for_each(|cgroup| _ = cgroup.remove());
            return Err(io::Error::other(format!("at most {PROGRAMS_MAX} programs are started at a time")));
        };
        // SAFETY: with the lock nobody else uses it, and the keeper reads it when it is asked.
        let written =
            unsafe { self.region().write([&arguments, &environment], [Some(&program), directory.as_ref()]) };
        let Some(written) = written else {
            made.iter().for_each(|cgroup| _ = cgroup.remove());
            return Err(io::Error::from(Errno::TOOBIG));
        };
        let region::Written { program, arguments, environment, directory, length } = written;
        let request = Request { slot, program, arguments, environment, directory, length, filtered: true };
        // SAFETY: as above.
        unsafe { *self.region().request.get() = request };
        let own = self.slot(slot);
        own.word.store(0, Ordering::Relaxed);
        own.listener.store(-1, Ordering::Relaxed);
        own.errno.store(0, Ordering::Relaxed);
        own.set_folder(cgroup);
        let is_told = self.ask(&socket, ask::START);
        let process = Tid::from_raw(own.process.load(Ordering::Acquire)).filter(|_| is_told);
        let Some(process) = process else {
            own.set_folder(b"");
            made.iter().for_each(|cgroup| _ = cgroup.remove());
            return Err(match own.errno.load(Ordering::Relaxed) {
                0 => io::Error::other("the keeper, which starts programs, has been killed"),
                errno => io::Error::from_raw_os_error(errno),
            });
        };
        let is_ready = wait_for(own);
        // Copied in the new process before it said that it is ready.
        drop(socket);
        if let Ok(Some(cpuset)) = &self.places().cpuset {
            // It waits meanwhile. One that cannot be moved has its filter.
            let _unmoved = cgroup::move_to(cpuset, process);
        }
        let filtered = self.listener(own, process).and_then(|listener| self.hear(name, listener));
        let cgroup = made.filter(|made| {
            let is_inside = !own.folder().bytes().is_empty();
            if !is_inside {
                made.remove();
            }
            is_inside
        });
        let cgroup = cgroup.map(Arc::new);
        let kept = Kept { keeper: Arc::clone(self), slot, process, cgroup, filtered };
        if !is_ready {
            let errno = own.errno.load(Ordering::Relaxed);
            kept.end();
            return Err(io::Error::other(format!("{name} did not begin (error {errno})")));
        }
        Ok(kept)
    }

    fn make_cgroup(&self) -> Option<Cgroup> {
        let home = &self.places().survey.unified.as_ref().ok()?.home;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let folder = home.join(format!("{PREFIX}{}{STARTED}{}-{number}", getpid(), self.process));
        let fits = folder.as_os_str().len() < region::PATH_MAX;
        Cgroup::create(folder).ok().filter(|_| fits)
    }

    fn listener(&self, slot: &Slot, process: Tid) -> Result<Listener, String> {
        match slot.listener.load(Ordering::Relaxed) {
            -1 => Err(Errno::from_raw_os_error(slot.errno.load(Ordering::Relaxed)).to_string()),
            number => Listener::of(process, number).map_err(|errno| errno.to_string()),
        }
    }

    fn hear(&self, name: &str, listener: Listener) -> Result<(), String> {
        let answerer = self.answerer.get_or_init(|| Answerer::start().map_err(|error| error.to_string()));
        answerer.as_ref().map_err(Clone::clone)?.hear(name, listener).map_err(|error| error.to_string())
    }

    /// How often a program has called to change how it is scheduled, by call.
    pub fn calls(&self, name: &str) -> Vec<(SchedulingCall, u64)> {
        let answerer = self.answerer.get().and_then(|answerer| answerer.as_ref().ok());
        answerer.map_or_else(Vec::new, |answerer| answerer.calls(name))
    }

    fn lock(&self) -> MutexGuard<'_, OwnedFd> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the keeper answered.
    fn ask(&self, socket: &OwnedFd, word: u8) -> bool {
        let mut answer = [0];
        let is_asked = send(socket, word);
        is_asked && matches!(rustix::io::retry_on_intr(|| rustix::io::read(socket, &mut answer)), Ok(1))
    }

    /// Ends all programs with whatever they have started, and says how each ended. One that had ended before is told apart. False if the
    /// keeper is not there any more.
    fn end_all(&self) -> bool {
        let socket = self.lock();
        self.ask(&socket, ask::END_ALL)
    }
}

/// Without a signal where the other end is closed.
fn send(socket: &OwnedFd, word: u8) -> bool {
    let sent =
        rustix::io::retry_on_intr(|| rustix::net::send(socket, &[word], rustix::net::SendFlags::NOSIGNAL));
    sent == Ok(1)
}

/// Waits until the program says that it waits. False if it does not.
fn wait_for(slot: &Slot) -> bool {
    loop {
        match slot.word.load(Ordering::Acquire) {
            READY | GO => return true,
            FAILED => return false,
            before => match futex::wait(&slot.word, Flags::empty(), before, Some(&READY_WITHIN)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return false,
            },
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _is_there = self.end_all();
        // Its end of the socket closes, at which it leaves its cgroup.
        let (near, _far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .unwrap_or_else(|errno| panic!("there is no room for a socket: {errno}"));
        drop(std::mem::replace(&mut *self.lock(), near));
        while matches!(waitpid(Some(self.process), WaitOptions::empty()), Err(Errno::INTR)) {}
        // SAFETY: mapped in `start`; no reference outlives `self`.
        let _leaked = unsafe { munmap(self.region.cast(), size_of::<Region>()) };
    }
}

impl Kept {
    /// What lets it go.
    pub fn go(&self) -> Go {
        Go { keeper: Arc::clone(&self.keeper), slot: self.slot }
    }

    /// Ends it with what is in its cgroup or group. None if the keeper is not there any more: the program has ended with it, and what the
    /// program had started ends here, if it has a cgroup.
    pub fn end(&self) -> Option<Ended> {
        let socket = self.keeper.lock();
        if !self.keeper.slot(self.slot).is_free() {
            // SAFETY: with the lock nobody else uses it.
            unsafe { (*self.keeper.region().request.get()).slot = self.slot };
            if !self.keeper.ask(&socket, ask::END) {
                self.end_what_is_left();
                return None;
            }
        }
        drop(socket);
        Some(self.ended())
    }

    /// Ends all programs of its keeper, wherever what they have started has gone.
    pub fn end_all(&self) {
        if !self.keeper.end_all() {
            self.end_what_is_left();
        }
    }

    /// The parent-death signal reaches the program alone, not what it has started.
    fn end_what_is_left(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    fn ended(&self) -> Ended {
        let slot = self.keeper.slot(self.slot);
        let end = match slot.word.load(Ordering::Acquire) {
            FAILED => ProgramEnd::NotExecuted(Errno::from_raw_os_error(slot.errno.load(Ordering::Relaxed))),
            _ => ProgramEnd::Process(ExitStatus::from_raw(slot.status.load(Ordering::Relaxed))),
        };
        Ended { end, by_itself: slot.had_ended.load(Ordering::Relaxed) == 1 }
    }
}

impl Go {
    /// Lets it go, if it waits. A system call.
    pub fn let_go(&self) {
        let slot = self.keeper.slot(self.slot);
        if slot.word.compare_exchange(READY, GO, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let _one = futex::wake(&slot.word, Flags::empty(), 1);
        }
    }
}

/// The file that is to be executed, as `execvp` would find it.
fn resolve(program: &OsStr, search: Option<&OsStr>) -> io::Result<PathBuf> {
    let executable = |path: &Path| -> io::Result<()> {
        let about = std::fs::metadata(path)?;
        match about.is_file() && about.permissions().mode() & 0o111 != 0 {
            true => Ok(()),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    if program.as_bytes().contains(&b'/') {
        return executable(Path::new(program)).map(|()| program.into());
    }
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for folder in search.map(std::env::split_paths).into_iter().flatten() {
        let path = folder.join(program);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = error,
            Err(_) => {}
        }
    }
    Err(refused)
}

fn search_path(command: &Command) -> Option<OsString> {
    let own = command.get_envs().find(|(name, _)| *name == "PATH");
    let usual = || std::env::var_os("PATH").or_else(|| Some("/bin:/usr/bin".into()));
    own.map_or_else(usual, |(_, value)| value.map(Into::into))
}

/// The variables of this process with the command's own.
fn environment(command: &Command) -> io::Result<Vec<CString>> {
    let changed = |name: &OsStr| command.get_envs().any(|(own, _)| own == name);
    let kept = std::env::vars_os().filter(|(name, _)| !changed(name));
    let own = command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
    let text = |(name, value): (OsString, OsString)| {
        let mut text = name.into_vec();
        text.push(b'=');
        text.extend(value.into_vec());
        zero_ended(OsStr::from_bytes(&text))
    };
    kept.chain(own).map(text).collect()
}

fn zero_ended(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a zero in an argument"))
}

/// Ends and removes what those have left who are not there any more, killed together with their keeper and guardian.
pub(crate) fn remove_leftovers(home: &Path) {
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(maker) = maker_of(&path).filter(|maker| !is_there(*maker)) else { continue };
        let is_started = path.to_string_lossy().contains(&format!("{PREFIX}{maker}{STARTED}"));
        if is_started && std::fs::write(path.join(cgroup::KILL), "1").is_ok() {
            // Those who are being killed leave it within moments.
            for _ in 0..100 {
                if std::fs::remove_dir(&path).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        let _in_use = std::fs::remove_dir(&path);
    }
}

/// Who made a cgroup, by its name.
pub(crate) fn maker_of(cgroup: &Path) -> Option<Tid> {
    let (maker, _) = cgroup.file_name()?.to_str()?.strip_prefix(PREFIX)?.split_once('.')?;
    Tid::from_raw(maker.parse().ok()?)
}

pub(crate) fn is_there(process: Tid) -> bool {
    !matches!(test_kill_process(process), Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priorities::Priorities;

    fn status(ended: Ended) -> ExitStatus {
        let ProgramEnd::Process(status) = ended.end else { panic!("{}", ended.end) };
        status
    }

    #[test]
    fn a_cgroup_says_who_made_it() {
        let made = |path: &str| maker_of(Path::new(path)).map(|maker| maker.as_raw_nonzero().get());
        assert_eq!((made("/cgroup/talea-12.345"), made("/cgroup/talea-12.run5-0")), (Some(12), Some(12)));
        assert_eq!((made("/cgroup/talea-12"), made("/talea-1.2/else"), made("/")), (None, None, None));
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let path = OsStr::new("/nowhere:/bin:/usr/bin");
        assert!(resolve(OsStr::new("sh"), Some(path)).is_ok_and(|found| found.ends_with("sh")));
        assert_eq!(resolve(OsStr::new("sh"), None).unwrap_err().kind(), io::ErrorKind::NotFound);
        let folder = resolve(OsStr::new("/bin/"), Some(path)).unwrap_err();
        assert_eq!(folder.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(resolve(OsStr::new("none-such"), Some(path)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn keeper() -> (Arc<Guardian>, Arc<Keeper>) {
        let guardian = Arc::new(Guardian::start(Priorities::default()).unwrap());
        let cpus = talea_linux::affinity::allowed().unwrap();
        let keeper = Keeper::start(&guardian, &cpus).unwrap();
        (guardian, Arc::new(keeper))
    }

    fn lives(process: Tid) -> bool {
        !talea_linux::proc::is_gone(process)
    }

    #[test]
    fn programs_that_wait_at_once_become_each_its_own() {
        let (_guardian, keeper) = keeper();
        let command = |code: &str| {
            let mut command = shell(&format!("{}exit $CODE", ": ;".repeat(code.len())));
            command.env("CODE", code);
            command
        };
        let codes = [7, 11, 113];
        let all = codes.map(|code: i32| keeper.launch("waits", &command(&code.to_string())).unwrap());
        all.iter().for_each(|kept| kept.go().let_go());
        let ended = all.map(|kept| {
            while lives(kept.process) {
                std::thread::yield_now();
            }
            status(kept.end().unwrap()).code()
        });
        assert_eq!(ended, codes.map(Some));
    }

    #[test]
    fn a_program_waits_goes_on_and_says_how_it_ended() {
        let (_guardian, keeper) = keeper();
        let mut command = shell("exit $CODE");
        command.env("CODE", "7");
        let kept = keeper.launch("seven", &command).unwrap();
        assert!(lives(kept.process), "it waits");
        kept.go().let_go();
        while lives(kept.process) {
            std::thread::yield_now();
        }
        let ended = kept.end().unwrap();
        assert_eq!((status(ended).code(), ended.by_itself), (Some(7), true));
        let waiting = keeper.launch("waits", &command).unwrap();
        let ended = waiting.end().unwrap();
        assert_eq!((status(ended).signal(), ended.by_itself), (Some(libc::SIGKILL), false));
        let missing = keeper.launch("missing", &Command::new("/none/such")).err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    /// The process whose number is in this file, once it is there.
    fn noted(note: &Path) -> Tid {
        loop {
            if let Ok(number) = std::fs::read_to_string(note) {
                return Tid::from_raw(number.trim().parse().unwrap()).unwrap();
            }
            std::thread::yield_now();
        }
    }

    /// It leaves its group and its session, and its parent ends.
    #[test]
    fn a_daemon_ends_with_the_program_that_started_it() {
        let (_guardian, keeper) = keeper();
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("daemon");
        let script = format!(
            "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60' & exit 0",
            note.display()
        );
        let kept = keeper.launch("daemon", &shell(&script)).unwrap();
        kept.go().let_go();
        let daemon = noted(&note);
        while lives(kept.process) {
            std::thread::yield_now();
        }
        assert!(lives(daemon));
        kept.end_all();
        assert!(!lives(daemon));
        let ended = kept.end().unwrap();
        assert_eq!((status(ended).code(), ended.by_itself), (Some(0), true));
        if let Some(cgroup) = &kept.cgroup {
            assert!(!cgroup.folder().exists());
        }
    }

    #[test]
    fn whoever_kills_the_keeper_ends_its_programs() {
        let (_guardian, keeper) = keeper();
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("child");
        let script = format!("sleep 60 & echo $! > {0}.new; mv {0}.new {0}; wait", note.display());
        let kept = keeper.launch("program", &shell(&script)).unwrap();
        kept.go().let_go();
        let child = noted(&note);
        rustix::process::kill_process(keeper.process, rustix::process::Signal::KILL).unwrap();
        while lives(kept.process) {
            std::thread::yield_now();
        }
        assert_eq!(kept.end(), None);
        if kept.cgroup.is_none() {
            rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        }
        while lives(child) {
            std::thread::yield_now();
        }
        let refused = keeper.launch("late", &shell("exit")).err().unwrap();
        assert!(refused.to_string().contains("keeper"), "{refused}");
        let removed = |cgroup: &Arc<Cgroup>| cgroup.remove();
        while !kept.cgroup.iter().all(removed) {
            std::thread::yield_now();
        }
    }
}
