//! Threads that have their policy and CPUs from their first instruction.
//!
//! A thread that set its own attributes would first have to run with those of its creator: one
//! created with SCHED_OTHER on a CPU where a SCHED_FIFO thread spins never gets that far. The C
//! library therefore creates the thread held, applies the attributes from the creator's side, and
//! only then lets it go; what the kernel refuses is an error of the creation, and no thread exists.
//! SCHED_DEADLINE cannot be given that way: such a thread starts with SCHED_OTHER, changes itself
//! and reports before it runs anything of the caller's.
//!
//! The thread then reads back what the kernel really gave it (a cpuset, for instance, narrows an
//! affinity without an error) and sends a [`ThreadReport`]; [`spawn`] returns when that has come. The
//! caller sleeps meanwhile: it must not be the only thing that lets the new thread's CPU go idle.

use crate::affinity::{self, AffinityError, list};
use crate::sched::{self, Policy, SchedError};
use crate::{Tid, memory};
use rustix::io::Errno;
use rustix::thread::{gettid, set_current_timer_slack, set_name};
use std::ffi::{CString, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The longest thread name Linux keeps, in bytes.
pub const NAME_MAX: usize = 15;

/// What was wanted for a thread and what the kernel says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// The name as the kernel has it: at most [`NAME_MAX`] bytes of the one given.
    pub name: String,
    /// The kernel's thread id.
    pub tid: Tid,
    /// The policy asked for.
    pub wanted_policy: Policy,
    /// The policy read back.
    pub actual_policy: Policy,
    /// The CPUs asked for, ascending.
    pub wanted_cpus: Vec<u16>,
    /// The CPUs read back, ascending.
    pub actual_cpus: Vec<u16>,
}

impl ThreadReport {
    /// Whether every attribute read back is the one asked for.
    pub fn is_as_wanted(&self) -> bool {
        self.wanted_policy == self.actual_policy && self.wanted_cpus == self.actual_cpus
    }
}

impl fmt::Display for ThreadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadReport { name, tid, .. } = self;
        write!(f, "{name} ({tid}): {} on CPU {}", self.actual_policy, list(&self.actual_cpus))?;
        if !self.is_as_wanted() {
            write!(f, ", wanted {} on CPU {}", self.wanted_policy, list(&self.wanted_cpus))?;
        }
        Ok(())
    }
}

/// Why a thread could not be created. No thread is left over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpawnError {
    /// The policy was refused.
    #[error("thread {name}: {source}")]
    Policy {
        /// The name given.
        name: String,
        /// What was refused and the remedy.
        source: SchedError,
    },
    /// The CPUs were refused.
    #[error("thread {name}: {source}")]
    Cpus {
        /// The name given.
        name: String,
        /// What was refused and the remedy.
        source: AffinityError,
    },
    /// A name is not empty and has no NUL byte.
    #[error("{0:?} is not a thread name: it is empty or contains a NUL character")]
    Name(String),
    /// The stack is too small for any thread.
    #[error("a stack of {asked} bytes is too small or too large; the least is {least}")]
    Stack {
        /// Bytes asked for.
        asked: usize,
        /// Bytes any thread needs.
        least: usize,
    },
    /// No room for one more thread.
    #[error(
        "thread {name}: the kernel has no room for it ({errno}): look at `ulimit -u`, the cgroup's pids.max, \
         and, with memory locked, RLIMIT_MEMLOCK (now {memlock}), against which its stack of {stack} bytes counts"
    )]
    NoRoom {
        /// The name given.
        name: String,
        /// The kernel's answer.
        errno: Errno,
        /// Bytes of stack asked for.
        stack: usize,
        /// RLIMIT_MEMLOCK in words.
        memlock: String,
    },
}

/// Where the thread leaves what its function returned, or what it panicked with.
type Outcome<T> = Arc<Mutex<Option<std::thread::Result<T>>>>;

/// A running thread; dropping it lets the thread run on by itself.
pub struct JoinHandle<T> {
    native: Native,
    outcome: Outcome<T>,
    report: ThreadReport,
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("report", &self.report).finish_non_exhaustive()
    }
}

impl<T> JoinHandle<T> {
    /// What the thread has, as read back before it ran anything.
    pub fn report(&self) -> &ThreadReport {
        &self.report
    }

    /// Whether the function has returned or panicked.
    pub fn is_finished(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits for the thread to end.
    ///
    /// # Errors
    /// What the thread panicked with.
    pub fn join(self) -> std::thread::Result<T> {
        let JoinHandle { native, outcome, .. } = self;
        native.join();
        let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.expect("the thread left its outcome before it ended")
    }
}

/// A thread of the C library: joined, or let go on drop.
struct Native(libc::pthread_t);

impl Native {
    fn join(self) {
        // SAFETY: this is the only handle to the thread, so it was not joined or detached before,
        // and forgetting it keeps it from being used again.
        let code = unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
        std::mem::forget(self);
        assert_eq!(code, 0, "a thread does not join itself");
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: this is the only handle to the thread, and joining forgets it.
        unsafe { libc::pthread_detach(self.0) };
    }
}

/// Creates a thread with a policy, the CPUs `cpus` (empty: all that are allowed to this process)
/// and `stack` bytes of stack, waits for its report, and lets it run `run`. Its timer slack is
/// 1 ns, so that a thread of the ordinary policy, too, wakes as punctually as the kernel can.
///
/// # Errors
/// See [`SpawnError`]; nothing of `run` has happened then.
pub fn spawn<T, F>(
    name: &str,
    policy: Policy,
    cpus: &[u16],
    stack: usize,
    run: F,
) -> Result<JoinHandle<T>, SpawnError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let outcome: Outcome<T> = Arc::default();
    let its = Arc::clone(&outcome);
    let run = Box::new(move || {
        // A panic must not unwind into C. Whoever joins gets it and decides.
        let result = catch_unwind(AssertUnwindSafe(run));
        *its.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let (native, report) = spawn_boxed(name, policy, cpus, stack, run)?;
    Ok(JoinHandle { native, outcome, report })
}

/// Creates a thread. This is compiled once, [`spawn`] for each function that threads run.
fn spawn_boxed(
    name: &str,
    policy: Policy,
    cpus: &[u16],
    stack: usize,
    run: Box<dyn FnOnce() + Send>,
) -> Result<(Native, ThreadReport), SpawnError> {
    let policy_error = |source| SpawnError::Policy { name: name.into(), source };
    let cpus_error = |source| SpawnError::Cpus { name: name.into(), source };
    let kernel_name = kernel_name(name)?;
    sched::check(policy).map_err(policy_error)?;
    let mut wanted_cpus = match cpus {
        [] => affinity::allowed().map_err(cpus_error)?,
        some => some.to_vec(),
    };
    wanted_cpus.sort_unstable();
    wanted_cpus.dedup();
    affinity::checked(&wanted_cpus).map_err(cpus_error)?;
    let attributes = Attributes::new(policy, &wanted_cpus, stack)?;

    let (report_to, report_from) = sync_channel(1);
    let start = Start { name: kernel_name, policy, wanted_cpus, run, report_to };
    let native = create(&attributes, start).map_err(|errno| match errno {
        Errno::PERM => policy_error(sched::refused(0, policy, errno)),
        _ => SpawnError::NoRoom { name: name.into(), errno, stack, memlock: memory::memlock_limit() },
    })?;
    match report_from.recv().expect("a new thread reports before anything else") {
        Ok(report) => Ok((native, report)),
        Err(source) => {
            native.join();
            Err(policy_error(source))
        }
    }
}

/// The name cut to what Linux keeps, at a character's boundary.
fn kernel_name(name: &str) -> Result<CString, SpawnError> {
    let cut = &name[..name.floor_char_boundary(NAME_MAX)];
    if cut.is_empty() {
        return Err(SpawnError::Name(name.into()));
    }
    CString::new(cut).map_err(|_| SpawnError::Name(name.into()))
}

/// Thread attributes of the C library, destroyed on drop.
struct Attributes(libc::pthread_attr_t);

impl Attributes {
    fn new(policy: Policy, cpus: &[u16], stack: usize) -> Result<Self, SpawnError> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: pthread_attr_init initialises what it is given, and its result is checked.
        let mut attributes = unsafe {
            assert_eq!(libc::pthread_attr_init(raw.as_mut_ptr()), 0, "out of memory");
            Attributes(raw.assume_init())
        };
        // A deadline thread changes itself; see the module's note.
        let (number, priority) = match policy {
            Policy::Fifo(priority) => (libc::SCHED_FIFO, priority.into()),
            Policy::RoundRobin(priority) => (libc::SCHED_RR, priority.into()),
            Policy::Other | Policy::Deadline { .. } => (libc::SCHED_OTHER, 0),
        };
        let parameters = libc::sched_param { sched_priority: priority };
        let raw = &raw mut attributes.0;
        // SAFETY: cpu_set_t is a plain array of words, for which zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `raw` was initialised above; parameters and set are live for the calls, which
        // copy them; the CPU numbers were found among the allowed ones, so they are within the set.
        let codes = unsafe {
            cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu.into(), &mut set));
            [
                libc::pthread_attr_setinheritsched(raw, libc::PTHREAD_EXPLICIT_SCHED),
                libc::pthread_attr_setschedpolicy(raw, number),
                libc::pthread_attr_setschedparam(raw, &raw const parameters),
                libc::pthread_attr_setaffinity_np(raw, size_of_val(&set), &raw const set),
            ]
        };
        assert_eq!(codes, [0; 4], "attributes were checked before");
        // SAFETY: `raw` was initialised above.
        if unsafe { libc::pthread_attr_setstacksize(raw, stack) } != 0 {
            return Err(SpawnError::Stack { asked: stack, least: least_stack() });
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new` and destroyed once.
        unsafe { libc::pthread_attr_destroy(&raw mut self.0) };
    }
}

fn least_stack() -> usize {
    // SAFETY: sysconf only reads.
    let least = unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) };
    usize::try_from(least).unwrap_or(libc::PTHREAD_STACK_MIN)
}

/// Everything the new thread takes with it.
struct Start {
    name: CString,
    policy: Policy,
    wanted_cpus: Vec<u16>,
    run: Box<dyn FnOnce() + Send>,
    report_to: SyncSender<Result<ThreadReport, SchedError>>,
}

fn create(attributes: &Attributes, start: Start) -> Result<Native, Errno> {
    let argument = Box::into_raw(Box::new(start));
    let mut native = MaybeUninit::uninit();
    // SAFETY: the attributes are initialised; `entry` takes exactly the box that is passed, which
    // is Send and 'static, and owns it once the thread exists.
    let code =
        unsafe { libc::pthread_create(native.as_mut_ptr(), &raw const attributes.0, entry, argument.cast()) };
    if code == 0 {
        // SAFETY: a successful pthread_create has written the handle.
        return Ok(Native(unsafe { native.assume_init() }));
    }
    // SAFETY: no thread was created, so the box still has its one owner here.
    drop(unsafe { Box::from_raw(argument) });
    Err(Errno::from_raw_os_error(code))
}

extern "C" fn entry(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `create` passes the pointer of a box of exactly this type and leaves it to us.
    let start = unsafe { Box::from_raw(argument.cast::<Start>()) };
    let Start { name, policy, wanted_cpus, run, report_to } = *start;
    let report = settle(name, policy, wanted_cpus);
    let settled = report.is_ok();
    // The creator waits for this and drops the other end only afterwards.
    report_to.send(report).expect("the creator waits for the report");
    if settled {
        run();
    }
    std::ptr::null_mut()
}

/// The new thread's own part of its attributes, and the report of all of them.
fn settle(name: CString, policy: Policy, wanted_cpus: Vec<u16>) -> Result<ThreadReport, SchedError> {
    set_name(&name).expect("a thread can name itself");
    set_current_timer_slack(NonZeroU64::new(1)).expect("a thread can set its own timer slack");
    if matches!(policy, Policy::Deadline { .. }) {
        sched::set_self(policy)?;
    }
    Ok(ThreadReport {
        name: rustix::thread::name().expect("a thread can read its name").to_string_lossy().into_owned(),
        tid: gettid(),
        wanted_policy: policy,
        actual_policy: sched::get(None)?,
        wanted_cpus,
        actual_cpus: affinity::get(None).expect("a thread can read its own CPUs"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(kernel_name("lane").unwrap().to_str(), Ok("lane"));
        assert_eq!(kernel_name("a-name-of-seventeen").unwrap().to_str(), Ok("a-name-of-seven"));
        assert_eq!(kernel_name("fourteen-bytes\u{e9}").unwrap().to_str(), Ok("fourteen-bytes"));
        assert_eq!(kernel_name(""), Err(SpawnError::Name("".into())));
        assert_eq!(kernel_name("a\0b"), Err(SpawnError::Name("a\0b".into())));
    }
}
