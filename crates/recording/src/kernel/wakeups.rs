//! Wake-ups of chosen threads, told one by one: for whoever has to act on them.
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
//!
//! Threads that may have a processor as soon as they can run need nobody who acts on their wake-ups. Those of some priorities are therefore told
//! without waking the reader, who hears of them when it looks for another reason; and where a thread wakes another that last ran on its own
//! processor, they are not told. So a program whose threads wake each other goes on undisturbed.

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

/// Whose wake-ups are told, and how. Priorities are as the kernel's events have them: 99 less a real-time priority, 120 and the nice value of
/// ordinary threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// Those of these, at once.
    pub woken: Woken<'a>,
    /// Except while they have one of these priorities: then they are told without waking the reader.
    pub quiet: &'a [u8],
    /// The same of these, and they are told only if an interrupt wakes them or a thread that is on another processor than they were last.
    pub from_elsewhere: &'a [u8],
}

/// Threads whose wake-ups are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken<'a> {
    /// Those with these numbers, at most [`WATCHED_MAX`].
    Threads(&'a [u32]),
    /// Those with some priorities, and some others.
    Priorities {
        /// Of one of these priorities, or a quiet one.
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
            let tried = choice.event(*cpu, buffer, "pid==0", Telling::Waking);
            tried.map_err(|error| obstacle(part, Attempt::Tracepoint { cpu: *cpu }, &error))?;
        }
        Ok((WakeWatch { rings, tid_at }, choice))
    }

    /// Descriptors that are readable once something was told at once, or a buffer is half full; one for each processor.
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
        if let Woken::Threads(tids) = chosen.woken
            && tids.len() > WATCHED_MAX
        {
            let message =
                format!("{} threads to watch, at most {WATCHED_MAX} fit the kernel's filter", tids.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut new = Vec::with_capacity(2 * self.buffers.len());
        for (cpu, buffer) in &self.buffers {
            let events = [(at_once(&chosen), Telling::Waking), (quietly(&chosen, *cpu), Telling::Quiet)];
            for (expression, telling) in events {
                if !expression.is_empty() {
                    let mut event = self.event(*cpu, buffer, &expression, telling)?;
                    event.enable()?;
                    new.push(event);
                }
            }
        }
        self.events = new;
        Ok(())
    }

    fn event(&self, cpu: u16, buffer: &OwnedFd, expression: &str, telling: Telling) -> io::Result<Counter> {
        let mut builder = builder(Tracepoint::with_id(u64::from(self.tracepoint)), cpu);
        builder.include_kernel().sample_period(1).sample(SampleFlag::RAW).wakeup_events(match telling {
            Telling::Waking => 1,
            // The kernel wakes the reader when half of the buffer is used.
            Telling::Quiet => 0,
        });
        let event = builder.build()?;
        filter(&event, expression)?;
        redirect(&event, buffer)?;
        Ok(event)
    }
}

/// Whether what is told wakes the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    Waking,
    Quiet,
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

/// What the kernel's filter reads of wake-ups that are told at once: `(pid==12||pid==34)&&(prio!=87)`. Nothing if there are none.
fn at_once(Chosen { woken, quiet, from_elsewhere }: &Chosen<'_>) -> String {
    let (chosen, not_by_excluded) = match woken {
        Woken::Threads(threads) => (of_threads(threads), String::new()),
        Woken::Priorities { priorities, threads, excluded_wakers } => {
            let threads = of_threads(&threads[..threads.len().min(THREADS_MAX)]);
            (any_of([of_priorities(priorities), threads]), not_by(excluded_wakers))
        }
    };
    let others = quiet.iter().chain(*from_elsewhere).map(|priority| format!("prio!={priority}"));
    all_of(chosen, others.chain(in_interrupt_or(not_by_excluded)))
}

/// What it reads of wake-ups on this processor that are told without waking the reader.
fn quietly(Chosen { woken, quiet, from_elsewhere }: &Chosen<'_>, cpu: u16) -> String {
    let (chosen, not_by_excluded) = match woken {
        Woken::Threads([]) => return String::new(),
        Woken::Threads(threads) => (of_threads(threads), String::new()),
        Woken::Priorities { excluded_wakers, .. } => (String::new(), not_by(excluded_wakers)),
    };
    let elsewhere = all_of(format!("target_cpu!={cpu}"), [not_by_excluded.clone()].into_iter());
    let quiet = all_of(of_priorities(quiet), in_interrupt_or(not_by_excluded).into_iter());
    let from_elsewhere = all_of(of_priorities(from_elsewhere), in_interrupt_or(elsewhere).into_iter());
    let parts = [quiet, from_elsewhere].into_iter().filter(|part| !part.is_empty());
    all_of(any_of(parts.map(|part| format!("({part})"))), [chosen].into_iter())
}

fn of_threads(threads: &[u32]) -> String {
    any_of(threads.iter().map(|thread| format!("pid=={thread}")))
}

fn of_priorities(priorities: &[u8]) -> String {
    any_of(priorities.iter().map(|priority| format!("prio=={priority}")))
}

/// `common_pid` is the thread that is current, which need not be what wakes.
fn not_by(wakers: &[u32]) -> String {
    let wakers = wakers.iter().take(WAKERS_MAX).map(|waker| format!("common_pid!={waker}"));
    wakers.collect::<Vec<_>>().join("&&")
}

/// What a thread does under this condition, and all that interrupts do; nothing if that is anything.
fn in_interrupt_or(condition: String) -> Option<String> {
    (!condition.is_empty()).then(|| format!("common_flags&{IN_INTERRUPT}||({condition})"))
}

fn any_of(conditions: impl IntoIterator<Item = String>) -> String {
    let conditions = conditions.into_iter().filter(|condition| !condition.is_empty());
    conditions.collect::<Vec<_>>().join("||")
}

/// Both what is chosen and further conditions; nothing if nothing is chosen.
fn all_of(chosen: String, further: impl Iterator<Item = String>) -> String {
    let mut further = further.filter(|condition| !condition.is_empty()).peekable();
    if chosen.is_empty() || further.peek().is_none() {
        return chosen;
    }
    further.fold(format!("({chosen})"), |all, condition| format!("{all}&&({condition})"))
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
        let of = |woken| Chosen { woken, quiet: &[87], from_elsewhere: &[88] };
        let longest = of(Woken::Threads(&[4_194_303; WATCHED_MAX]));
        assert!(at_once(&longest).len() < 4096 && quietly(&longest, 1023).len() < 4096);
        let many = [4_194_303; 500];
        let longest = of(Woken::Priorities { priorities: &[121], threads: &many, excluded_wakers: &many });
        assert!(at_once(&longest).len() < 4096 && quietly(&longest, 1023).len() < 4096);
    }

    #[test]
    fn filters_are_what_the_kernel_reads() {
        let few = Chosen { woken: Woken::Threads(&[1, 23]), quiet: &[], from_elsewhere: &[] };
        assert_eq!((at_once(&few), quietly(&few, 3)), ("pid==1||pid==23".into(), String::new()));
        let few = Chosen { quiet: &[87], from_elsewhere: &[88], ..few };
        assert_eq!(at_once(&few), "(pid==1||pid==23)&&(prio!=87)&&(prio!=88)");
        let quiet = "((prio==87)||((prio==88)&&(common_flags&24||(target_cpu!=3))))&&(pid==1||pid==23)";
        assert_eq!(quietly(&few, 3), quiet);
        let nobody = Chosen { woken: Woken::Threads(&[]), ..few };
        assert_eq!((at_once(&nobody), quietly(&nobody, 3)), (String::new(), String::new()));

        let of = |threads, excluded_wakers| {
            let woken = Woken::Priorities { priorities: &[89, 121], threads, excluded_wakers };
            Chosen { woken, quiet: &[87], from_elsewhere: &[86] }
        };
        assert_eq!(at_once(&of(&[12], &[])), "(prio==89||prio==121||pid==12)&&(prio!=87)&&(prio!=86)");
        let wakers = "(common_flags&24||(common_pid!=7&&common_pid!=8))";
        let others = "(prio!=87)&&(prio!=86)";
        assert_eq!(at_once(&of(&[], &[7, 8])), format!("(prio==89||prio==121)&&{others}&&{wakers}"));
        let elsewhere = "(common_flags&24||((target_cpu!=3)&&(common_pid!=7&&common_pid!=8)))";
        let quiet = format!("((prio==87)&&{wakers})||((prio==86)&&{elsewhere})");
        assert_eq!(quietly(&of(&[12], &[7, 8]), 3), quiet);
    }

    #[test]
    fn numbers_are_read_across_the_end_of_the_buffer() {
        let bytes = 77_u32.to_ne_bytes();
        let (front, back) = bytes.split_at(1);
        assert_eq!(number_at(&[&[9, 9], front, back], 2), Some(77));
        assert_eq!(number_at(&[&bytes], 1), None);
    }
}
