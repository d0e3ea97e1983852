//! Perf's records into ours, without a system call, a panic or trust in lengths.
//!
//! The layouts are those of `perf_event_open(2)` for the fields that [`super::assemble`] asks for. Every record but a
//! sample ends with a stamp, a sample begins with it:
//! ```text
//! View::Processor   time u64
//! View::Threads     pid u32, tid u32, time u64, stream u64
//! ```
//! On a whole processor the stamp leaves out whose event it is: [`super::occupancy`] knows.

use super::names::birth;
use super::occupancy::{Leaves, Occupancy, Switch, Thread};
use super::tracepoint::{Edge, FieldAt, Meaning, Tracepoint};
use std::collections::VecDeque;
use std::sync::Arc;
use talea_record::declaration::Text;
use talea_record::event::{
    self, Flag, IrqEnter, IrqExit, Lost, SyscallEnter, SyscallExit, ThreadExit, ThreadName, Wakeup,
};
use talea_record::{Event, LossCause, Record, WakeContext};
use talea_time::Instant;

/// The kernel's numbers of the kinds of records.
mod kind {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
}

/// Set in the misc word of a record about a thread that leaves a processor.
const SWITCH_OUT: u16 = 1 << 13;
/// Set beside it if the thread could have gone on.
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Where a tracepoint's data have the flags of the context, which all tracepoints have in common.
pub(super) const CONTEXT_FLAGS_AT: usize = 2;
/// The same for the number of the thread that runs.
pub(super) const THREAD_AT: usize = 4;
const IN_INTERRUPT: u8 = 0x08;
const IN_SOFT_INTERRUPT: u8 = 0x10;

/// Whose events a buffer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Everything that happens on the processor.
    Processor,
    /// What some threads do on the processor; who else is there is not known.
    Threads,
}

/// One record as perf wrote it, without its eight bytes of header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
}

/// A record that this version cannot use: of an unknown kind or tracepoint, or too short for its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecodable;

#[derive(Clone, Copy, Debug)]
struct Stamp {
    time: Instant,
    /// [`Thread::UNSEEN`] on a whole processor.
    thread: Thread,
    stream: u64,
}

/// A wake-up that may come a second time: where events belong to threads, both the waker's and the woken one's get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    waker: u32,
    woken: u32,
    stream: u64,
}

/// Decodes what one processor's buffer holds, in its order.
#[derive(Debug)]
pub(super) struct Decoder {
    cpu: u16,
    view: View,
    /// In the order of their numbers.
    tracepoints: Arc<[Tracepoint]>,
    /// Numbers of threads whose wake-ups and system calls are left out, in ascending order.
    left_out: Arc<[u32]>,
    /// Who has the whole processor.
    occupancy: Occupancy,
    /// Which of the threads that events belong to has it.
    running: Option<Thread>,
    /// The record before was this wake-up.
    seen: Option<Seen>,
}

impl Decoder {
    pub fn new(cpu: u16, view: View, tracepoints: Arc<[Tracepoint]>, left_out: Arc<[u32]>) -> Self {
        debug_assert!(tracepoints.is_sorted_by_key(|tracepoint| tracepoint.id));
        Decoder { cpu, view, tracepoints, left_out, occupancy: Occupancy::Unknown, running: None, seen: None }
    }

    /// Bytes of the stamp.
    fn stamp_bytes(&self) -> usize {
        match self.view {
            View::Processor => 8,
            View::Threads => 24,
        }
    }

    /// Appends what `raw` says to `queue`, in the order of time.
    pub fn decode(&mut self, raw: Raw<'_>, queue: &mut VecDeque<Record>) -> Result<(), Undecodable> {
        let seen = self.seen.take();
        self.try_decode(raw, seen, queue).ok_or(Undecodable)
    }

    fn try_decode(&mut self, raw: Raw<'_>, seen: Option<Seen>, queue: &mut VecDeque<Record>) -> Option<()> {
        if raw.kind == kind::SAMPLE {
            let (stamp, rest) = raw.body.split_at_checked(self.stamp_bytes())?;
            return self.sample(self.stamp(stamp)?, rest, seen, queue);
        }
        let (body, stamp) = raw.body.split_at_checked(raw.body.len().checked_sub(self.stamp_bytes())?)?;
        let stamp = self.stamp(stamp)?;
        match raw.kind {
            kind::SWITCH_CPU_WIDE => {
                let other = Thread { pid: u32_at(body, 0)?, tid: u32_at(body, 4)? };
                self.switch(stamp.time, raw.misc, other, queue);
            }
            kind::SWITCH => self.own_switch(stamp, raw.misc, queue),
            kind::LOST => self.gap(lost(self.cpu, stamp.time, u64_at(body, 8)?), queue),
            kind::COMM => {
                let thread = Thread { pid: u32_at(body, 0)?, tid: u32_at(body, 4)? };
                let name = Text::from_bytes(body.get(8..)?);
                let Thread { tid, pid } = thread;
                push(queue, ThreadName { name, tid, pid }.at(stamp.time, self.cpu));
            }
            kind::FORK => {
                let (pid, child, parent) = (u32_at(body, 0)?, u32_at(body, 8)?, u32_at(body, 12)?);
                push(queue, birth(stamp.time, self.cpu, child, pid, parent));
            }
            kind::EXIT => self.exit(stamp, Thread { pid: u32_at(body, 0)?, tid: u32_at(body, 8)? }, queue),
            _ => return None,
        }
        Some(())
    }

    fn stamp(&self, bytes: &[u8]) -> Option<Stamp> {
        let (thread, time, stream) = match self.view {
            View::Processor => (Thread::UNSEEN, u64_at(bytes, 0)?, 0),
            View::Threads => (
                Thread { pid: u32_at(bytes, 0)?, tid: u32_at(bytes, 4)? },
                u64_at(bytes, 8)?,
                u64_at(bytes, 16)?,
            ),
        };
        Some(Stamp { time: Instant::from_nanos(i64::try_from(time).ok()?), thread, stream })
    }

    fn switch(&mut self, time: Instant, misc: u16, other: Thread, queue: &mut VecDeque<Record>) {
        let told = match misc & SWITCH_OUT {
            0 => self.occupancy.arriving(time, other),
            _ => self.occupancy.leaving(time, other, leaves(misc)),
        };
        for switch in told.into_iter().flatten() {
            push(queue, self.switched(switch));
        }
    }

    fn gap(&mut self, lost: Record, queue: &mut VecDeque<Record>) {
        self.running = None;
        if let Some(switch) = self.occupancy.gap() {
            push(queue, self.switched(switch));
        }
        push(queue, lost);
    }

    /// A thread that has ended has lost its own number, and perhaps its process's, when it leaves for the last time.
    fn leaving(&self, thread: Thread) -> Thread {
        match self.running {
            Some(running) if thread.tid == Thread::UNSEEN.tid => running,
            _ => thread,
        }
    }

    fn own_switch(&mut self, stamp: Stamp, misc: u16, queue: &mut VecDeque<Record>) {
        let (from, to) = if misc & SWITCH_OUT == 0 {
            self.running = Some(stamp.thread);
            (Thread::UNSEEN, stamp.thread)
        } else {
            let from = self.leaving(stamp.thread);
            self.running = None;
            (from, Thread::UNSEEN)
        };
        push(queue, self.switched(Switch { time: stamp.time, from, to, leaves: leaves(misc) }));
    }

    fn exit(&mut self, stamp: Stamp, thread: Thread, queue: &mut VecDeque<Record>) {
        let Thread { tid, pid } = thread;
        push(queue, ThreadExit { tid, pid }.at(stamp.time, self.cpu));
        // Its events end before it leaves the processor for the last time.
        if self.view == View::Threads && self.running == Some(thread) {
            self.running = None;
            let (time, to) = (stamp.time, Thread::UNSEEN);
            push(queue, self.switched(Switch { time, from: thread, to, leaves: Leaves::Willingly }));
        }
    }

    fn sample(
        &mut self,
        stamp: Stamp,
        rest: &[u8],
        seen: Option<Seen>,
        queue: &mut VecDeque<Record>,
    ) -> Option<()> {
        let length = u32_at(rest, 0)? as usize;
        let data = rest.get(4..4 + length)?;
        let id = u16::from_ne_bytes(*data.first_chunk()?);
        let by = u32_at(data, THREAD_AT)?;
        let index = self.tracepoints.binary_search_by_key(&id, |tracepoint| tracepoint.id).ok()?;
        let (time, cpu) = (stamp.time, self.cpu);
        let record = match self.tracepoints[index].meaning {
            Meaning::Wakeup { tid, priority, cpu: target } => {
                let woken = u32_of(data, tid)?;
                let now = Seen { waker: by, woken, stream: stamp.stream };
                let twice =
                    |seen: Seen| seen.stream != now.stream && Seen { stream: now.stream, ..seen } == now;
                let wakeup = Wakeup {
                    tid: woken,
                    waker_tid: by,
                    target_cpu: u32_of(data, target)?,
                    priority: u32_of(data, priority)? as i32,
                    context: context(data)?.into(),
                };
                if seen.is_some_and(twice) || self.leaves_out(woken) {
                    return Some(());
                }
                self.seen = (self.view == View::Threads).then_some(now);
                wakeup.at(time, cpu)
            }
            Meaning::Move { tid, cpu } => {
                retarget(queue, u32_of(data, tid)?, u32_of(data, cpu)?);
                return Some(());
            }
            Meaning::Interrupt { edge: Edge::Enter, kind, number } => {
                IrqEnter { irq: u64_of(data, number)?, kind: kind.into() }.at(time, cpu)
            }
            Meaning::Interrupt { edge: Edge::Exit, kind, number } => {
                IrqExit { irq: u64_of(data, number)?, kind: kind.into() }.at(time, cpu)
            }
            Meaning::SyscallEnter { number } => {
                SyscallEnter { number: u64_of(data, number)?, tid: by }.at(time, cpu)
            }
            Meaning::SyscallExit { number, result } => {
                let number = u64_of(data, number)? as u32;
                SyscallExit { result: u64_of(data, result)? as i64, tid: by, number }.at(time, cpu)
            }
        };
        let is_anybodys = matches!(record.event, Event::IRQ_ENTER | Event::IRQ_EXIT);
        if is_anybodys || !self.leaves_out(by) {
            push(queue, record);
        }
        Some(())
    }

    fn leaves_out(&self, tid: u32) -> bool {
        self.left_out.binary_search(&tid).is_ok()
    }

    fn switched(&self, Switch { time, from, to, leaves }: Switch) -> Record {
        let preempted = Flag(leaves == Leaves::Preempted);
        let (from_tid, from_pid, to_tid, to_pid) = (from.tid, from.pid, to.tid, to.pid);
        event::Switch { from_tid, to_tid, from_pid, to_pid, preempted }.at(time, self.cpu)
    }
}

/// `records` of the kernel were lost on `cpu` before `time`.
pub(super) fn lost(cpu: u16, time: Instant, records: u64) -> Record {
    Lost { records, since: None, ring: Record::KERNEL, cause: LossCause::Overwritten.into() }.at(time, cpu)
}

/// Appends a record. An interrupt can come between the moment a record's time is taken and the moment it gets its
/// place in the buffer, so neighbours may have to change places.
fn push(queue: &mut VecDeque<Record>, record: Record) {
    let place = queue.iter().rposition(|earlier| earlier.time <= record.time).map_or(0, |index| index + 1);
    queue.insert(place, record);
}

/// A woken thread's processor is chosen after the wake-up has been recorded, by the same thread and before anything else.
fn retarget(queue: &mut VecDeque<Record>, tid: u32, cpu: u32) {
    if let Some(last) = queue.back_mut()
        && let Some(wakeup) = Wakeup::read(last).filter(|wakeup| wakeup.tid == tid)
    {
        *last = Wakeup { target_cpu: cpu, ..wakeup }.at(last.time, last.cpu);
    }
}

fn leaves(misc: u16) -> Leaves {
    match misc & SWITCH_OUT_PREEMPT {
        0 => Leaves::Willingly,
        _ => Leaves::Preempted,
    }
}

fn context(data: &[u8]) -> Option<WakeContext> {
    let flags = *data.get(CONTEXT_FLAGS_AT)?;
    Some(match flags {
        flags if flags & IN_INTERRUPT != 0 => WakeContext::Interrupt,
        flags if flags & IN_SOFT_INTERRUPT != 0 => WakeContext::SoftInterrupt,
        _ => WakeContext::Thread,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_of(data: &[u8], field: FieldAt) -> Option<u32> {
    u64_of(data, field).map(|value| value as u32)
}

/// A field of 4 bytes keeps its sign.
fn u64_of(data: &[u8], field: FieldAt) -> Option<u64> {
    match field.size {
        8 => u64_at(data, field.offset),
        _ => u32_at(data, field.offset).map(|value| i64::from(value as i32) as u64),
    }
}

#[cfg(test)]
mod tests;
