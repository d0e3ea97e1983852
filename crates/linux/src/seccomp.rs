//! Calls by which a program would change how it is scheduled: a filter that has each of them answered by somebody else.
//!
//! The program waits in its call until that one has answered ([`Listener`]), some 8 µs; all other calls cost some tens of nanoseconds
//! more. What it starts inherits the filter, and nobody can take it off.

use crate::Tid;
use crate::sched::last_errno;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::mem::MaybeUninit;

/// A call that changes how somebody is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchedulingCall {
    /// `sched_setaffinity`.
    Affinity,
    /// `sched_setscheduler`.
    Scheduler,
    /// `sched_setparam`.
    Parameter,
    /// `sched_setattr`.
    Attributes,
    /// `setpriority`, which `nice` is.
    Nice,
}

impl SchedulingCall {
    /// All of them.
    pub const ALL: [SchedulingCall; 5] = [
        SchedulingCall::Affinity,
        SchedulingCall::Scheduler,
        SchedulingCall::Parameter,
        SchedulingCall::Attributes,
        SchedulingCall::Nice,
    ];

    /// The call's name.
    pub fn name(self) -> &'static str {
        match self {
            SchedulingCall::Affinity => "sched_setaffinity",
            SchedulingCall::Scheduler => "sched_setscheduler",
            SchedulingCall::Parameter => "sched_setparam",
            SchedulingCall::Attributes => "sched_setattr",
            SchedulingCall::Nice => "setpriority",
        }
    }

    fn number(self) -> libc::c_long {
        match self {
            SchedulingCall::Affinity => libc::SYS_sched_setaffinity,
            SchedulingCall::Scheduler => libc::SYS_sched_setscheduler,
            SchedulingCall::Parameter => libc::SYS_sched_setparam,
            SchedulingCall::Attributes => libc::SYS_sched_setattr,
            SchedulingCall::Nice => libc::SYS_setpriority,
        }
    }

    /// Its number for 32-bit programs, where such run.
    #[cfg(target_arch = "x86_64")]
    fn compatible_number(self) -> u32 {
        match self {
            SchedulingCall::Affinity => 241,
            SchedulingCall::Scheduler => 156,
            SchedulingCall::Parameter => 154,
            SchedulingCall::Attributes => 351,
            SchedulingCall::Nice => 97,
        }
    }

    fn of(number: u32, architecture: u32) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if architecture == COMPATIBLE {
            return Self::ALL.into_iter().find(|call| call.compatible_number() == number);
        }
        let native = number & !X32;
        Self::ALL
            .into_iter()
            .find(|call| architecture == NATIVE && call.number() == libc::c_long::from(native))
    }
}

/// What the kernel calls the architectures, by `linux/audit.h`.
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "x86_64")]
const COMPATIBLE: u32 = 0x4000_0003;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xC000_00F3;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const NATIVE: u32 = 0;

/// Set in the numbers of calls by programs with pointers of 32 bits on x86-64.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;
#[cfg(not(target_arch = "x86_64"))]
const X32: u32 = 0;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// The filter as the kernel reads it.
pub struct Filter(Vec<libc::sock_filter>);

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

impl Filter {
    /// One that has all [`SchedulingCall`]s answered.
    pub fn new() -> Self {
        let mut program = vec![load(ARCHITECTURE_AT)];
        #[cfg(target_arch = "x86_64")]
        {
            let numbers: Vec<u32> = SchedulingCall::ALL.iter().map(|call| call.compatible_number()).collect();
            section(&mut program, COMPATIBLE, &numbers);
        }
        let numbers = SchedulingCall::ALL.iter().map(|call| call.number() as u32);
        let numbers: Vec<u32> = numbers
            .flat_map(|number| if X32 == 0 { vec![number] } else { vec![number, number | X32] })
            .collect();
        section(&mut program, NATIVE, &numbers);
        program.push(answer(ALLOW));
        Filter(program)
    }

    /// Puts the filter on the calling thread and what it creates from then on. Returns the descriptor of its listener, which programs that
    /// it executes do not get. Async-signal-safe.
    ///
    /// # Errors
    /// The kernel's number of why not: too old, or the filter may not be used here.
    pub fn install(&self) -> Result<RawFd, i32> {
        const SET_MODE_FILTER: libc::c_uint = 1;
        const NEW_LISTENER: libc::c_uint = 1 << 3;
        let program = libc::sock_fprog { len: self.0.len() as u16, filter: self.0.as_ptr().cast_mut() };
        // SAFETY: the program is live; the kernel copies it.
        let install =
            || unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, NEW_LISTENER, &raw const program) };
        let mut listener = install();
        if listener < 0 && last_errno() == Errno::ACCESS {
            // Without the privilege the program must not gain one by executing another.
            // SAFETY: the call takes numbers.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            listener = install();
        }
        if listener < 0 { Err(last_errno().raw_os_error()) } else { Ok(listener as RawFd) }
    }
}

fn load(at: u32) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: at }
}

fn answer(with: u32) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: with }
}

/// For one architecture, which has been loaded: notifies of these numbers and allows all others. For another, goes on behind it.
fn section(program: &mut Vec<libc::sock_filter>, architecture: u32, numbers: &[u32]) {
    let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let is = |k: u32, jt: usize, jf: usize| libc::sock_filter { code, jt: jt as u8, jf: jf as u8, k };
    program.push(is(architecture, 0, numbers.len() + 3));
    program.push(load(NUMBER_AT));
    for (at, number) in numbers.iter().enumerate() {
        // Over the numbers behind this one, and over the answer for all others.
        program.push(is(*number, numbers.len() - at, 0));
    }
    program.push(answer(ALLOW));
    program.push(answer(NOTIFY));
}

/// What the kernel tells of a call, `struct seccomp_notif`.
#[repr(C)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const RECEIVE: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const _: () = assert!(size_of::<Notification>() == 80 && size_of::<Response>() == 24);

/// A program's call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    id: u64,
    /// The thread that calls.
    pub thread: u32,
    /// What it calls; none for a call that this version does not know.
    pub call: Option<SchedulingCall>,
    /// What it passes along.
    pub arguments: [u64; 6],
}

impl Asked {
    /// What is answered where scheduling is somebody else's: a policy without real-time priority and a nice value would change nothing
    /// for the program, so they are taken for given. The rest is refused as to anybody without the privilege.
    pub fn answer(&self) -> Result<(), Errno> {
        match self.call {
            Some(SchedulingCall::Nice) => Ok(()),
            Some(SchedulingCall::Scheduler) => {
                let policy = self.arguments[1] as i32 & !libc::SCHED_RESET_ON_FORK;
                let is_ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&policy);
                if is_ordinary { Ok(()) } else { Err(Errno::PERM) }
            }
            _ => Err(Errno::PERM),
        }
    }
}

/// The other end of a filter. When it is closed, calls are answered with ENOSYS.
pub struct Listener(OwnedFd);

impl Listener {
    /// That of a process which has it under this number. Needs the right to trace the process, as its parents have.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn of(process: Tid, number: RawFd) -> Result<Self, Errno> {
        let process = pidfd_open(process, PidfdFlags::empty())?;
        Ok(Listener(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?))
    }

    /// One that was installed by the calling process, which gives it up.
    ///
    /// # Safety
    /// Nobody else uses the descriptor.
    pub unsafe fn from_raw(number: RawFd) -> Self {
        // SAFETY: as the caller promises.
        Listener(unsafe { OwnedFd::from_raw_fd(number) })
    }

    /// The next call that waits, as soon as there is one. None if whoever called has ended meanwhile.
    pub fn receive(&self) -> Option<Asked> {
        // SAFETY: all zeroes is a notification, and the kernel asks for zeroes.
        let mut told: Notification = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the notification is writable and as long as the call says.
        let code = unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE, &raw mut told) };
        let call = || SchedulingCall::of(told.number as u32, told.architecture);
        (code == 0).then(|| Asked { id: told.id, thread: told.pid, call: call(), arguments: told.arguments })
    }

    /// Answers a call. One whose caller has ended meanwhile needs no answer.
    pub fn answer(&self, asked: &Asked, answer: Result<(), Errno>) {
        let error = answer.err().map_or(0, |errno| -errno.raw_os_error());
        let response = Response { id: asked.id, value: 0, error, flags: 0 };
        // SAFETY: the response is live; the kernel copies it.
        let _gone = unsafe { libc::ioctl(self.0.as_raw_fd(), SEND, &raw const response) };
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn what_changes_nothing_is_answered_and_the_rest_refused() {
        let asked = |call, policy: i32| Asked {
            id: 1,
            thread: 2,
            call: Some(call),
            arguments: [0, policy as u64, 0, 0, 0, 0],
        };
        assert_eq!(asked(SchedulingCall::Nice, 0).answer(), Ok(()));
        assert_eq!(asked(SchedulingCall::Scheduler, libc::SCHED_BATCH).answer(), Ok(()));
        assert_eq!(asked(SchedulingCall::Scheduler, libc::SCHED_FIFO).answer(), Err(Errno::PERM));
        assert_eq!(asked(SchedulingCall::Affinity, 0).answer(), Err(Errno::PERM));
    }

    /// In a thread of its own, on which the filter stays.
    #[test]
    fn a_filtered_thread_asks_and_others_do_not() {
        let (tell, hear) = mpsc::channel();
        let filtered = std::thread::spawn(move || {
            tell.send(Filter::new().install()).unwrap();
            let own = rustix::thread::gettid();
            let before = crate::affinity::get(None).unwrap();
            let mut one = rustix::thread::CpuSet::new();
            one.set(usize::from(before[0]));
            let pinned = rustix::thread::sched_setaffinity(None, &one);
            let raised = crate::sched::set_self(crate::sched::Policy::Fifo(1));
            let same = crate::sched::set_self(crate::sched::Policy::Other);
            (
                own,
                pinned.is_err(),
                crate::affinity::get(None).unwrap() == before,
                raised.is_err(),
                same.is_ok(),
            )
        });
        let listener = match hear.recv().unwrap() {
            // SAFETY: the thread that installed it does not use it.
            Ok(listener) => unsafe { Listener::from_raw(listener) },
            Err(errno) => {
                talea_measure::skip(format!("no filter can be listened to here: error {errno}"));
                return;
            }
        };
        let mut calls = Vec::new();
        while calls.len() < 3 {
            let asked = listener.receive().expect("the thread calls and waits");
            listener.answer(&asked, asked.answer());
            calls.push((asked.thread, asked.call));
        }
        let (own, pinned, unmoved, raised, same) = filtered.join().unwrap();
        assert!(pinned && unmoved && raised && same);
        let own = own.as_raw_nonzero().get() as u32;
        let expected = [SchedulingCall::Affinity, SchedulingCall::Scheduler, SchedulingCall::Scheduler];
        assert_eq!(calls, expected.map(|call| (own, Some(call))));
    }
}
