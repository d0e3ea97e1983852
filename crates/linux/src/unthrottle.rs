//! Lifting what the kernel keeps from real-time threads, for as long as somebody needs it, and putting it back whatever happens.
//!
//! ```text
//!   note written ──▶ guardian forked ──▶ settings lifted ──▶ … ──▶ put back by the drop
//!                                             │ this process is killed: by the guardian
//!                                             └ both are killed: by whoever calls `recover` next
//! ```
//!
//! The settings are the machine's, not the process's: while they are lifted a real-time thread that never sleeps takes its processor for good.

use crate::Tid;
use crate::sched::last_errno;
use crate::setting::read;
use crate::signal_safe::{Text, stat_field, write_to};
use crate::throttling::{Throttling, version};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const FAIR_SERVERS: &str = "/sys/kernel/debug/sched/fair_server";
/// Where it is written down what is to be put back. Only root may lift anything, and only root may write there.
const NOTE: &str = "/run/talea-unthrottled";
/// The field of a `stat` that says when a process began.
const START: usize = 22;
/// Of a path of a setting, and of its value.
const LENGTH: usize = 96;

/// A setting, and what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    path: String,
    before: String,
}

/// What could not be lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlifted {
    /// What the kernel keeps on doing.
    pub what: &'static str,
    /// Why.
    pub why: String,
}

/// Settings that are lifted. Dropping it puts them back.
#[derive(Debug)]
pub struct Lifted {
    settings: Vec<Setting>,
    guardian: Tid,
    tell: Option<OwnedFd>,
}

/// Lifts what can be lifted of what is there. What could not be lifted is said; the first is none where nothing was, or nothing had to be.
pub fn lift() -> (Option<Lifted>, Vec<Unlifted>) {
    let mut unlifted = Vec::new();
    let wanted = wanted(&mut unlifted);
    if wanted.is_empty() {
        return (None, unlifted);
    }
    match lift_all(&wanted, &mut unlifted) {
        Ok(lifted) => (lifted, unlifted),
        Err(error) => {
            unlifted.push(Unlifted { what: "real-time throttling", why: error.to_string() });
            (None, unlifted)
        }
    }
}

/// The settings that have to change, with what each is to be.
fn wanted(unlifted: &mut Vec<Unlifted>) -> Vec<(Setting, &'static str)> {
    let mut wanted = Vec::new();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let groups = read("/sys/fs/cgroup/cpu/cpu.rt_runtime_us");
    if Throttling::of(&release, groups.as_deref()) == Throttling::Threads
        && let Some(before) = read(THROTTLING).filter(|before| !before.starts_with('-'))
    {
        wanted.push((Setting { path: THROTTLING.into(), before }, "-1"));
    }
    if version(&release) >= (6, 12) {
        let servers: Vec<Setting> = fs::read_dir(FAIR_SERVERS)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|cpu| {
                let path = cpu.path().join("runtime").to_str()?.to_owned();
                Some(Setting { before: read(&path)?, path })
            })
            .collect();
        if servers.is_empty() {
            let why = "its settings are in debugfs, which is not mounted or closed (kernel lockdown closes it to root, too)";
            unlifted.push(Unlifted { what: "the fair server of ordinary threads", why: why.into() });
        }
        wanted.extend(servers.into_iter().filter(|server| server.before != "0").map(|server| (server, "0")));
    }
    wanted
}

fn lift_all(wanted: &[(Setting, &'static str)], unlifted: &mut Vec<Unlifted>) -> io::Result<Option<Lifted>> {
    // Those that would be refused are found out by writing what is there.
    let mut settings: Vec<(Setting, &'static str)> = Vec::new();
    for (setting, to) in wanted {
        match fs::write(&setting.path, &setting.before) {
            Ok(()) => settings.push((setting.clone(), to)),
            Err(error) => {
                let what =
                    if setting.path == THROTTLING { "real-time throttling" } else { "the fair server" };
                let why = format!("{} cannot be written: {error}", setting.path);
                if unlifted.iter().all(|other| other.what != what) {
                    unlifted.push(Unlifted { what, why });
                }
            }
        }
    }
    if settings.is_empty() {
        return Ok(None);
    }
    let owner = getpid();
    let before: Vec<Setting> = settings.iter().map(|(setting, _)| setting.clone()).collect();
    write_note(Path::new(NOTE), owner.as_raw_nonzero().get(), &before)?;
    let guarded = Guarded::of(&before);
    let pidfd = pidfd_open(owner, PidfdFlags::empty())?;
    let (hear, tell) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the child makes async-signal-safe calls alone and never returns.
    let guardian = match unsafe { libc::fork() } {
        -1 => {
            let error = last_errno();
            let _unneeded = fs::remove_file(NOTE);
            return Err(error.into());
        }
        // SAFETY: the descriptors are copies of live ones.
        0 => unsafe { guard(&guarded, pidfd.as_raw_fd(), hear.as_raw_fd()) },
        child => Tid::from_raw(child).expect("a process has a number"),
    };
    let lifted = Lifted { settings: before, guardian, tell: Some(tell) };
    for (setting, to) in &settings {
        if let Err(error) = fs::write(&setting.path, to) {
            unlifted.push(Unlifted { what: "a limit", why: format!("{}: {error}", setting.path) });
        }
    }
    Ok(Some(lifted))
}

impl Drop for Lifted {
    fn drop(&mut self) {
        put_back(&self.settings);
        let _gone = fs::remove_file(NOTE);
        if let Some(tell) = self.tell.take() {
            let _ended = rustix::io::write(&tell, b"q");
        }
        while matches!(waitpid(Some(self.guardian), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    }
}

fn put_back(settings: &[Setting]) {
    for setting in settings {
        let _nobody_else_can = fs::write(&setting.path, &setting.before);
    }
}

/// What the guardian needs, without a heap.
struct Guarded {
    settings: [(Text<LENGTH>, Text<LENGTH>); GUARDED_MAX],
    count: usize,
}

/// Of a machine of so many processors and one setting more.
const GUARDED_MAX: usize = 257;

impl Guarded {
    fn of(settings: &[Setting]) -> Box<Self> {
        let mut guarded =
            Box::new(Guarded { settings: [const { (Text::empty(), Text::empty()) }; GUARDED_MAX], count: 0 });
        for (place, setting) in guarded.settings.iter_mut().zip(settings) {
            *place =
                (Text::empty().with(setting.path.as_bytes()), Text::empty().with(setting.before.as_bytes()));
        }
        guarded.count = settings.len().min(GUARDED_MAX);
        guarded
    }
}

/// The guardian's life.
///
/// # Safety
/// Only in a process just forked; the descriptors are its copies.
unsafe fn guard(guarded: &Guarded, watched: i32, hear: i32) -> ! {
    let mut polled = [
        libc::pollfd { fd: watched, events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd: hear, events: libc::POLLIN, revents: 0 },
    ];
    // SAFETY: async-signal-safe calls with live arguments.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"talea-throttle".as_ptr());
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        // A real-time thread that never sleeps must not keep it from putting the settings back.
        let priority = libc::sched_param { sched_priority: 99 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
        loop {
            libc::poll(polled.as_mut_ptr(), 2, -1);
            let mut word = 0_u8;
            if polled[1].revents & libc::POLLIN != 0 && libc::read(hear, (&raw mut word).cast(), 1) == 1 {
                libc::_exit(0);
            }
            if polled[0].revents != 0 {
                for (path, before) in &guarded.settings[..guarded.count] {
                    write_to(path, before.bytes());
                }
                libc::unlink(c"/run/talea-unthrottled".as_ptr());
                libc::_exit(0);
            }
        }
    }
}

/// The first line is the process that lifts, and when it began; each further one a setting and what it was.
fn write_note(path: &Path, owner: i32, settings: &[Setting]) -> io::Result<()> {
    let mut text = format!("{owner} {}\n", stat_field(owner, START).unwrap_or(0));
    for Setting { path, before } in settings {
        text += &format!("{path} {before}\n");
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::other("another run has lifted the limits, which come back when that ends")
        }
        _ => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
    })?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Puts back what a process had lifted that was killed together with its guardian. Returns whether there was anything.
pub fn recover() -> bool {
    recover_from(Path::new(NOTE))
}

fn recover_from(note: &Path) -> bool {
    let Ok(mut file) = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(note) else {
        return false;
    };
    // What anybody else may have written is nobody's word.
    if file.metadata().map_or(true, |found| found.uid() != rustix::process::geteuid().as_raw()) {
        return false;
    }
    let mut text = String::new();
    if (&mut file).take(1 << 16).read_to_string(&mut text).is_err() {
        return false;
    }
    let Some((owner, settings)) = parsed(&text) else { return false };
    if stat_field(owner.0, START) == Some(owner.1) {
        return false;
    }
    put_back(&settings);
    let _gone = fs::remove_file(note);
    true
}

fn parsed(text: &str) -> Option<((i32, u64), Vec<Setting>)> {
    let mut lines = text.lines();
    let (process, start) = lines.next()?.split_once(' ')?;
    let is_known = |path: &str| path == THROTTLING || path.starts_with(FAIR_SERVERS) && !path.contains("..");
    let setting = |line: &str| {
        let (path, before) = line.split_once(' ')?;
        let before = before.parse::<i64>().ok()?.to_string();
        is_known(path).then(|| Setting { path: path.into(), before })
    };
    Some(((process.parse().ok()?, start.parse().ok()?), lines.filter_map(setting).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_note_says_is_put_back_if_it_is_a_limit() {
        let text = "12 345\n/proc/sys/kernel/sched_rt_runtime_us 950000\n/etc/passwd 1\n\
                    /sys/kernel/debug/sched/fair_server/cpu0/runtime x\n\
                    /sys/kernel/debug/sched/fair_server/cpu1/runtime 50000000\n";
        let (owner, settings) = parsed(text).expect("a note");
        assert_eq!(owner, (12, 345));
        let said: Vec<(&str, &str)> =
            settings.iter().map(|setting| (setting.path.as_str(), setting.before.as_str())).collect();
        assert_eq!(
            said,
            [(THROTTLING, "950000"), ("/sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000")]
        );
        assert_eq!(parsed("nothing"), None);
    }

    #[test]
    fn a_note_of_a_process_that_lives_is_left_and_one_of_a_dead_one_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let note = folder.path().join("note");
        let own = getpid().as_raw_nonzero().get();
        write_note(&note, own, &[]).expect("writable");
        assert!(write_note(&note, own, &[]).is_err(), "one at a time");
        assert!(!recover_from(&note) && note.exists());
        fs::write(&note, "4194304 1\n").expect("writable");
        assert!(recover_from(&note) && !note.exists());
        assert!(!recover_from(&note));
    }
}
