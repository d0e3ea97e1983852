//! The machine as its kernel tells of it: who really had each processor, wake-ups, interrupts, system calls.

use super::jobs::cpu_name;
use super::messages::{SchedSwitch, SchedWaking, SchedulingEvent};
use super::packets::{Flow, Mark, Packets, Track, annotation};
use crate::decode::node_of;
use crate::threads::Threads;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use talea_record::event::builtin;
use talea_record::event::{Switch, Wakeup};
use talea_record::{Definition, Event, InterruptKind, Metadata, Record, Typed};
use talea_time::Instant;

/// The number of a thread that is not observed: no thread has one as great.
const UNSEEN: i32 = 1 << 22;
/// Kernel priorities of threads that were not seen to be made ready.
const ORDINARY: i32 = 120;
const IDLE: i32 = 120;

/// Threads and processors at the place in the trace that has been reached.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// What is known of the threads.
    threads: Threads,
    /// The node of each thread of the run.
    node_of: HashMap<u32, usize>,
    /// The name under which a thread's track was described.
    described: HashMap<u32, String>,
    /// The thread that has each processor, unless it is the idle one.
    running: BTreeMap<u16, u32>,
    /// The wake-up of each thread that has not run since.
    woken: HashMap<u32, u64>,
    wakeups: u64,
    /// Tracks of interrupts and system calls with so many slices under way.
    open: BTreeMap<Track, u32>,
}

impl Kernel {
    /// Of a run whose records are yet to come.
    pub fn new(metadata: &Metadata) -> Self {
        Kernel { threads: Threads::of(metadata), ..Kernel::default() }
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.threads.define(definition);
    }

    /// Comes to an instant, by which threads may have been defined.
    pub fn reach(&mut self, time: Instant, out: &mut Packets) {
        let mut defined = Vec::new();
        self.threads.reach(time, |tid| defined.push(tid));
        defined.into_iter().for_each(|tid| self.describe_thread(tid, out));
    }

    /// The thread that has the processor, if it is known.
    pub fn running(&self, cpu: u16) -> Option<u32> {
        self.running.get(&cpu).copied().filter(|tid| *tid != Record::UNSEEN_THREAD)
    }

    /// The thread that wrote an event of a program, if it is known; its track has been described.
    pub fn writer(&mut self, record: &Record, out: &mut Packets) -> Option<u32> {
        let writer = self.threads.writer(record)?;
        self.describe_thread(writer.tid, out);
        Some(writer.tid)
    }

    /// Shows a record, if it is about threads or the kernel.
    pub fn record(&mut self, metadata: &Metadata, record: &Record, out: &mut Packets) {
        if record.event != Event::THREAD && record.event.family() != builtin::KERNEL.number {
            return;
        }
        self.threads.learn(metadata, record);
        match record.typed() {
            Typed::Thread(thread) => {
                if let Some(node) = node_of(metadata, record) {
                    self.node_of.insert(thread.tid, node);
                }
                self.describe_thread(thread.tid, out);
            }
            Typed::ThreadName(named) if self.described.contains_key(&named.tid) => {
                self.describe_thread(named.tid, out);
            }
            Typed::Switch(switch) => self.switch(record, switch, out),
            Typed::Wakeup(wakeup) => self.wakeup(record, wakeup, out),
            Typed::IrqEnter(interrupt) => {
                let track = Track::Interrupts(record.cpu);
                if !out.is_described(track) {
                    describe_root(out);
                    out.track(track, Some(Track::Kernel), format!("{} interrupts", cpu_name(record.cpu)));
                }
                let kind = match interrupt.kind.known() {
                    Some(InterruptKind::Soft) => "soft interrupt",
                    Some(InterruptKind::Local) => "local interrupt",
                    Some(InterruptKind::Device) | None => "interrupt",
                };
                self.enter(record.time, track, format!("{kind} {}", interrupt.irq), out);
            }
            Typed::IrqExit(_) => self.leave(record.time, Track::Interrupts(record.cpu), Vec::new(), out),
            Typed::SyscallEnter(call) => {
                let tid = call.tid;
                let track = Track::SystemCalls(tid);
                if !out.is_described(track) {
                    self.describe_thread(tid, out);
                    out.track(track, Some(Track::Thread(tid)), format!("{} system calls", self.name(tid)));
                }
                self.enter(record.time, track, format!("system call {}", call.number), out);
            }
            Typed::SyscallExit(call) => {
                let result = vec![annotation("result", call.result)];
                self.leave(record.time, Track::SystemCalls(call.tid), result, out);
            }
            Typed::ThreadExit(exit) => self.forget(record, exit.tid, out),
            _ => {}
        }
    }

    /// Ends what is under way.
    pub fn finish(mut self, end: Instant, out: &mut Packets) {
        let cpus: BTreeSet<u16> = self.running.keys().copied().collect();
        cpus.into_iter().for_each(|cpu| self.stop(cpu, end, out));
        for (track, depth) in self.open {
            (0..depth).for_each(|_| out.end(end, track, Vec::new()));
        }
    }

    /// The thread as the scheduling events of viewers name it: number, name and the kernel's priority.
    fn scheduled(&self, tid: u32, cpu: u16) -> (Option<i32>, Option<String>, Option<i32>) {
        let name = match tid {
            0 => format!("swapper/{cpu}"),
            Record::UNSEEN_THREAD => "not observed".to_owned(),
            tid => self.threads.name(tid).map_or_else(|| format!("thread {tid}"), str::to_owned),
        };
        let number = if tid == Record::UNSEEN_THREAD { UNSEEN } else { tid as i32 };
        let priority = if tid == 0 { IDLE } else { ORDINARY };
        (Some(number), Some(name), Some(self.threads.priority(tid).unwrap_or(priority)))
    }

    /// The switch as the kernel's own tracing has it, from which viewers draw their tracks of processors and the states of threads.
    fn native_switch(&self, record: &Record, switch: Switch, out: &mut Packets) {
        let (prev_pid, prev_comm, prev_prio) = self.scheduled(switch.from_tid, record.cpu);
        let (next_pid, next_comm, next_prio) = self.scheduled(switch.to_tid, record.cpu);
        // The idle thread can always go on.
        let could_go_on = switch.preempted.0 || switch.from_tid == 0;
        let prev_state = Some(i64::from(!could_go_on));
        let event =
            SchedSwitch { prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio };
        let tid = prev_pid.unwrap_or_default() as u32;
        out.scheduling(record.time, record.cpu, tid, SchedulingEvent::Switch(event));
    }

    fn native_waking(&self, record: &Record, wakeup: Wakeup, out: &mut Packets) {
        let (pid, comm, prio) = self.scheduled(wakeup.tid, record.cpu);
        let event = SchedWaking { comm, pid, prio, target_cpu: Some(wakeup.target_cpu as i32) };
        let waker = self.scheduled(wakeup.waker_tid, record.cpu).0.unwrap_or_default() as u32;
        out.scheduling(record.time, record.cpu, waker, SchedulingEvent::Waking(event));
    }

    fn switch(&mut self, record: &Record, switch: Switch, out: &mut Packets) {
        let (cpu, time) = (record.cpu, record.time);
        self.native_switch(record, switch, out);
        self.stop(cpu, time, out);
        let to = switch.to_tid;
        if to == 0 {
            return;
        }
        // The record of its leaving another processor was lost.
        let elsewhere = self.running.iter().find(|(_, tid)| **tid == to && to != Record::UNSEEN_THREAD);
        if let Some(elsewhere) = elsewhere.map(|(cpu, _)| *cpu) {
            self.stop(elsewhere, time, out);
        }
        describe_cpu(out, cpu);
        let flows: Vec<Flow> = self.woken.remove(&to).map(Flow::Wakeup).into_iter().collect();
        let annotations = vec![annotation("tid", to.into()), annotation("pid", switch.to_pid.into())];
        let mark = Mark { name: self.name(to), category: "thread", annotations, flows };
        out.begin(time, Track::KernelProcessor(cpu), mark);
        self.running.insert(cpu, to);
        if to != Record::UNSEEN_THREAD {
            self.describe_thread(to, out);
            let mark = Mark { name: cpu_name(cpu), category: "running", ..Mark::default() };
            out.begin(time, Track::Thread(to), mark);
        }
    }

    /// Whoever has the processor has lost it.
    fn stop(&mut self, cpu: u16, time: Instant, out: &mut Packets) {
        let Some(tid) = self.running.remove(&cpu) else { return };
        out.end(time, Track::KernelProcessor(cpu), Vec::new());
        if tid != Record::UNSEEN_THREAD {
            out.end(time, Track::Thread(tid), Vec::new());
        }
    }

    fn wakeup(&mut self, record: &Record, wakeup: Wakeup, out: &mut Packets) {
        self.native_waking(record, wakeup, out);
        let Wakeup { tid, waker_tid, .. } = wakeup;
        self.wakeups += 1;
        self.woken.insert(tid, self.wakeups);
        describe_cpu(out, record.cpu);
        let mark = Mark {
            name: format!("wake {}", self.name(tid)),
            category: "wakeup",
            annotations: vec![annotation("tid", tid.into()), annotation("waker_tid", waker_tid.into())],
            flows: vec![Flow::Wakeup(self.wakeups)],
        };
        out.instant(record.time, Track::KernelProcessor(record.cpu), mark);
    }

    fn enter(&mut self, time: Instant, track: Track, name: String, out: &mut Packets) {
        *self.open.entry(track).or_default() += 1;
        out.begin(time, track, Mark { name, category: "kernel", ..Mark::default() });
    }

    /// The innermost slice of the track ends, if its beginning is in the trace.
    fn leave(
        &mut self,
        time: Instant,
        track: Track,
        annotations: Vec<super::messages::DebugAnnotation>,
        out: &mut Packets,
    ) {
        if let Some(depth) = self.open.get_mut(&track).filter(|depth| **depth > 0) {
            *depth -= 1;
            out.end(time, track, annotations);
        }
    }

    /// Describes the thread's track, unless it was described under the name it has.
    pub fn describe_thread(&mut self, tid: u32, out: &mut Packets) {
        let name = self.name(tid);
        if self.described.get(&tid) == Some(&name) {
            return;
        }
        let parent = match self.node_of.get(&tid).copied().or_else(|| self.threads.node(tid)) {
            Some(node) => Track::Node(node),
            None => {
                if !out.is_described(Track::OtherThreads) {
                    out.track(Track::OtherThreads, None, "Other threads".into());
                }
                Track::OtherThreads
            }
        };
        let pid = self.threads.process(tid);
        out.thread(tid, pid, parent, &name);
        self.described.insert(tid, name);
    }

    /// A thread's end: its number may be another's after it.
    fn forget(&mut self, record: &Record, tid: u32, out: &mut Packets) {
        while self.open.get(&Track::SystemCalls(tid)).is_some_and(|depth| *depth > 0) {
            self.leave(record.time, Track::SystemCalls(tid), Vec::new(), out);
        }
        self.open.remove(&Track::SystemCalls(tid));
        self.woken.remove(&tid);
        self.node_of.remove(&tid);
        self.described.remove(&tid);
        self.threads.forget(record);
    }

    /// `lane 10ms (4711)`.
    fn name(&self, tid: u32) -> String {
        match self.threads.name(tid) {
            Some(name) => format!("{name} ({tid})"),
            None if tid == Record::UNSEEN_THREAD => "not observed".into(),
            None => format!("thread {tid}"),
        }
    }
}

fn describe_cpu(out: &mut Packets, cpu: u16) {
    let track = Track::KernelProcessor(cpu);
    if !out.is_described(track) {
        describe_root(out);
        out.track(track, Some(Track::Kernel), format!("{} threads", cpu_name(cpu)));
    }
}

fn describe_root(out: &mut Packets) {
    if !out.is_described(Track::Kernel) {
        out.track(Track::Kernel, None, "Kernel".into());
    }
}
