//! Wake-ups of chosen threads, told one by one and at once: for whoever has to act on them.
//!
//! A [`crate::kernel::KernelStream`] is read in bulk, and waking its reader for each event would cost the programs under
//! observation some 20 µs a switch. Here the kernel compares each wake-up with a list of threads and wakes the
//! reader for those alone.
//!
//! An event of its own that counts nothing owns each processor's buffer, so that the list can be changed: the kernel
//! takes one filter per event and never another, so a new event with the new list is opened into the same buffer
//! before the old one is closed. In between a wake-up may be told twice, and none is lost. Changing the list takes milliseconds, and
//! whoever takes what is told does not wait for it: the two have nothing in common but the buffers' descriptors.
//!
//! That same event tells every thread that begins or ends, in the order in which it did beside its wake-ups, and wakes nobody for it: whoever
//! takes a wake-up has heard before of whose it is. Where threads come and go, those woken are chosen by the priority that they have, so that the
//! choice is made once and has no limit.

use super::assemble::online;
use super::options::{KernelEvent, KernelOptions, KernelScope, Processors};
use super::preflight::{Attempt, Cause, Facts, KernelPart, Obstacle, explain, explain_tracepoint};
use super::redirect::{descriptor, filter, redirect};
use super::tracepoint::{self, Meaning};
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use talea_time::Instant;
use thiserror::Error;

/// The most threads that fit into the kernel's filter, which is a page of text.
pub const WATCHED_MAX: usize = 256;
/// So many threads, and so many that wake, fit it beside priorities.
const THREADS_MAX: usize = 128;
const WAKERS_MAX: usize = 64;
/// In `common_flags`: an interrupt or a soft interrupt has the processor of the thread that is current.
const IN_INTERRUPT: u8 = 8 | 16;
/// Holds some thousand wake-ups that nobody has taken.
const BUFFER_BYTES: usize = 1 << 16;
const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_EXIT: u32 = 4;
const PERF_RECORD_FORK: u32 = 7;
/// Where a thread, who created it and the instant stand in the last two.
const THREAD_AT: usize = 8;
const PARENT_AT: usize = 12;
const TIME_AT: usize = 16;
const PERF_RECORD_SAMPLE: u32 = 9;
/// A sample of raw data alone begins with their length.
const RAW_AT: usize = 4;

/// One thing that [`WakeWatch::drain`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeUp {
    /// The thread with this number, as the initial pid namespace counts, is being woken.
    Woken(u32),
    /// A thread begins, in a process of its own or in its parent's.
    Begun {
        /// The thread that created it.
        parent: u32,
        /// Its process.
        process: u32,
        /// The new thread.
        thread: u32,
        /// When.
        at: Instant,
    },
    /// The thread with this number ends.
    Ended(u32),
    /// The buffer was full: something is missing.
    Lost,
}

/// Whose wake-ups are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen<'a> {
    /// Those of threads with these numbers, at most [`WATCHED_MAX`].
    Threads(&'a [u32]),
    /// Those of all threads with some priorities, and of some others.
    Priorities {
        /// As the kernel's events have them: 99 less a real-time priority, 120 and the nice value of ordinary threads.
        priorities: &'a [u8],
        /// The numbers of the others, of which the first 128 fit the kernel's filter.
        threads: &'a [u32],
        /// What these threads wake is not told, but for what interrupts wake that come meanwhile (the first 64; of others it is told).
        excluded_wakers: &'a [u32],
    },
}

/// Why wake-ups cannot be watched, and the way around it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("wake-ups cannot be watched: {0}")]
pub struct Unwatchable(pub Obstacle);

/// Tells wake-ups of chosen threads on all processors, and which threads begin and end.
pub struct WakeWatch {
    rings: Vec<Sampler>,
    tid_at: usize,
}

/// Chooses whose wake-ups a [`WakeWatch`] tells.
pub struct WakeChoice {
    /// Each processor's buffer, and what fills it.
    buffers: Vec<(u16, OwnedFd)>,
    events: Vec<Counter>,
    tracepoint: u16,
}

impl WakeWatch {
    /// Opens a buffer on every processor; nothing is told until threads are chosen.
    ///
    /// # Errors
    /// What stands in the way: perf, tracefs or a privilege is missing.
    pub fn open() -> Result<(Self, WakeChoice), Unwatchable> {
        let facts = Facts::read();
        let options = options(BTreeSet::new());
        let obstacle =
            |part, attempt, error: &io::Error| Unwatchable(explain(&facts, &options, part, attempt, error));
        let (tracepoint, tid_at) = waking(&facts).map_err(Unwatchable)?;
        if !facts.global_numbers {
            return Err(Unwatchable(Obstacle {
                part: KernelPart::Events(KernelEvent::Wakeups),
                cause: Cause::Other,
                found: "this process is in a pid namespace, and wake-ups name threads by their numbers outside of it".into(),
                remedy: "run outside of the container, or with the host's pid namespace (`--pid=host`)".into(),
            }));
        }
        let cpus = online().map_err(|error| obstacle(KernelPart::Buffers, Attempt::List, &error))?;
        let (mut rings, mut buffers) = (Vec::with_capacity(cpus.len()), Vec::with_capacity(cpus.len()));
        for cpu in cpus {
            let opened = |error: io::Error| obstacle(KernelPart::Buffers, Attempt::Open { cpu }, &error);
            let ring = builder(Software::DUMMY, cpu).task(true).build().map_err(opened)?;
            let bytes = BUFFER_BYTES;
            let mut ring = ring
                .sampled(bytes)
                .map_err(|error| obstacle(KernelPart::Buffers, Attempt::Map { bytes }, &error))?;
            buffers.push((cpu, descriptor(ring.as_counter()).try_clone_to_owned().map_err(opened)?));
            ring.enable().map_err(opened)?;
            rings.push(ring);
        }
        let choice = WakeChoice { buffers, events: Vec::new(), tracepoint };
        // Whether the tracepoint is permitted is known now, not when the first thread is chosen.
        for (cpu, buffer) in &choice.buffers {
            let part = KernelPart::Events(KernelEvent::Wakeups);
            let tried = choice.event(*cpu, buffer, "pid==0");
            tried.map_err(|error| obstacle(part, Attempt::Tracepoint { cpu: *cpu }, &error))?;
        }
        Ok((WakeWatch { rings, tid_at }, choice))
    }

    /// Descriptors that are readable once something was told, one for each processor.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| descriptor(ring.as_counter()))
    }

    /// Takes all that was told. Neither waits, allocates nor makes a system call.
    pub fn drain(&mut self, mut tell: impl FnMut(WakeUp)) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let data = record.data();
                match record.ty() {
                    PERF_RECORD_LOST => tell(WakeUp::Lost),
                    PERF_RECORD_SAMPLE => {
                        tell(number_at(data, RAW_AT + self.tid_at).map_or(WakeUp::Lost, WakeUp::Woken));
                    }
                    PERF_RECORD_FORK => tell(begun(data).unwrap_or(WakeUp::Lost)),
                    PERF_RECORD_EXIT => tell(number_at(data, THREAD_AT).map_or(WakeUp::Lost, WakeUp::Ended)),
                    _ => {}
                }
            }
        }
    }
}

impl WakeChoice {
    /// Chooses whose wake-ups are told, instead of those before. Takes milliseconds.
    ///
    /// # Errors
    /// More threads than [`WATCHED_MAX`], or the kernel has no room for the events; those before are still watched then.
    pub fn choose(&mut self, chosen: Chosen<'_>) -> io::Result<()> {
        let expression = match chosen {
            Chosen::Threads(tids) if tids.len() > WATCHED_MAX => {
                let message =
                    format!("{} threads to watch, at most {WATCHED_MAX} fit the kernel's filter", tids.len());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            Chosen::Threads(tids) => of_threads(tids),
            Chosen::Priorities { priorities, threads, excluded_wakers } => {
                of_priorities(priorities, threads, excluded_wakers)
            }
        };
        let mut new = Vec::with_capacity(self.buffers.len());
        if !expression.is_empty() {
            for (cpu, buffer) in &self.buffers {
                let mut event = self.event(*cpu, buffer, &expression)?;
                event.enable()?;
                new.push(event);
            }
        }
        self.events = new;
        Ok(())
    }

    fn event(&self, cpu: u16, buffer: &OwnedFd, expression: &str) -> io::Result<Counter> {
        let mut builder = builder(Tracepoint::with_id(u64::from(self.tracepoint)), cpu);
        builder.include_kernel().sample_period(1).sample(SampleFlag::RAW).wakeup_events(1);
        let event = builder.build()?;
        filter(&event, expression)?;
        redirect(&event, buffer)?;
        Ok(event)
    }
}

/// `struct { u32 pid, ppid, tid, ptid; u64 time; }`
fn begun(data: &[&[u8]]) -> Option<WakeUp> {
    let at = number_at(data, TIME_AT)?;
    let high = number_at(data, TIME_AT + 4)?;
    Some(WakeUp::Begun {
        parent: number_at(data, PARENT_AT)?,
        process: number_at(data, 0)?,
        thread: number_at(data, THREAD_AT)?,
        at: Instant::from_nanos((u64::from(high) << 32 | u64::from(at)) as i64),
    })
}

impl fmt::Debug for WakeWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeWatch").field("processors", &self.rings.len()).finish_non_exhaustive()
    }
}

fn options(cpus: BTreeSet<u16>) -> KernelOptions {
    KernelOptions {
        scope: KernelScope::Machine,
        processors: Processors::These(cpus),
        events: [KernelEvent::Wakeups].into(),
        buffer_bytes: BUFFER_BYTES,
        ..KernelOptions::default()
    }
}

/// The tracepoint's number and where the woken thread stands in it.
fn waking(facts: &Facts) -> Result<(u16, usize), Obstacle> {
    let event = KernelEvent::Wakeups;
    let tracepoints =
        tracepoint::of_event(event, facts).map_err(|error| explain_tracepoint(facts, event, &error))?;
    let found = tracepoints.iter().find_map(|tracepoint| match tracepoint.meaning {
        Meaning::Wakeup { tid, .. } if tid.size == 4 => Some((tracepoint.id, tid.offset)),
        _ => None,
    });
    let strange = tracepoint::TracepointError::Strange("sched/sched_waking");
    found.ok_or_else(|| explain_tracepoint(facts, event, &strange))
}

fn builder(event: impl perf_event::events::Event, cpu: u16) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder.any_pid().one_cpu(usize::from(cpu)).clockid(Clock::MONOTONIC);
    builder
}

/// What the kernel's filters read: `pid==12||pid==34`.
fn of_threads(tids: &[u32]) -> String {
    tids.iter().map(|tid| format!("pid=={tid}")).collect::<Vec<_>>().join("||")
}

/// `common_pid` is the thread that is current, which need not be what wakes.
fn of_priorities(priorities: &[u8], threads: &[u32], excluded_wakers: &[u32]) -> String {
    let priorities = priorities.iter().map(|priority| format!("prio=={priority}"));
    let threads = threads.iter().take(THREADS_MAX).map(|tid| format!("pid=={tid}"));
    let woken = priorities.chain(threads).collect::<Vec<_>>().join("||");
    let wakers = excluded_wakers.iter().take(WAKERS_MAX).map(|waker| format!("common_pid!={waker}"));
    let wakers = wakers.collect::<Vec<_>>().join("&&");
    match (woken.is_empty(), wakers.is_empty()) {
        (true, _) | (_, true) => woken,
        _ => format!("({woken})&&(common_flags&{IN_INTERRUPT}||({wakers}))"),
    }
}

/// Four bytes at `at`, wherever the buffer's end cuts them.
fn number_at(parts: &[&[u8]], at: usize) -> Option<u32> {
    let mut bytes = parts.iter().flat_map(|part| part.iter().copied()).skip(at);
    let mut number = [0; 4];
    for byte in &mut number {
        *byte = bytes.next()?;
    }
    Some(u32::from_ne_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_longest_numbers_fits_the_kernels_page() {
        // The largest thread id Linux can give is 4194303.
        assert!(of_threads(&[4_194_303; WATCHED_MAX]).len() < 4096);
        assert_eq!(of_threads(&[1, 23]), "pid==1||pid==23");
        assert_eq!((of_threads(&[]), of_priorities(&[], &[], &[7])), (String::new(), String::new()));
        assert_eq!(of_priorities(&[89, 121], &[12], &[]), "prio==89||prio==121||pid==12");
        let excluding = of_priorities(&[89], &[], &[7, 8]);
        assert_eq!(excluding, "(prio==89)&&(common_flags&24||(common_pid!=7&&common_pid!=8))");
        let many = [4_194_303; 500];
        assert!(of_priorities(&[89, 88, 121], &many, &many).len() < 4096);
    }

    #[test]
    fn numbers_are_read_across_the_end_of_the_buffer() {
        let bytes = 77_u32.to_ne_bytes();
        let (front, back) = bytes.split_at(1);
        assert_eq!(number_at(&[&[9, 9], front, back], 2), Some(77));
        assert_eq!(number_at(&[&bytes], 1), None);
    }
}
