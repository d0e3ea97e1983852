//! Who used the processors of a machine, by the kernel's records alone: threads, interrupts, idleness.
//!
//! This is for traces without the tables of a system, and knows neither nodes nor lanes; [`crate::usage`] is for those with.
//! Every nanosecond from the kernel's first record to the trace's last one has one account on every processor that is heard
//! of. What came before the first record of a processor, and what follows a loss until its next one, is unknown.

use crate::explain::Interrupt;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use talea_record::event::{Switch, Typed};
use talea_record::{KnownThreads, Record, Sink};
use talea_time::Instant;

/// Threads that are told apart; more of them share one account.
const THREADS: usize = 1 << 16;
/// Interrupts within interrupts; more can only be ones whose end was lost.
const NESTED: usize = 16;

/// One processor.
#[derive(Debug)]
struct Processor {
    thread: Option<u32>,
    interrupts: Vec<Interrupt>,
    /// Everything before has its account.
    cursor: Instant,
    usage: ProcessorUse,
}

/// Computes a [`MachineReport`] from records, in memory that grows with threads and processors only.
#[derive(Debug, Default)]
pub struct Machine {
    processors: BTreeMap<u16, Processor>,
    threads: HashMap<u32, ThreadUse>,
    names: KnownThreads,
    interrupts: BTreeMap<Interrupt, InterruptUse>,
    others_ns: i64,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// What a processor's time went into, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessorUse {
    /// Its Linux number.
    pub cpu: u16,
    /// Times that it went from one thread to another.
    pub switches: u64,
    /// Threads.
    pub threads_ns: i64,
    /// Interrupt handlers.
    pub interrupts_ns: i64,
    /// The idle thread.
    pub idle_ns: i64,
    /// Threads that are not observed, the idle one perhaps.
    pub unobserved_ns: i64,
    /// Nothing is known of that time.
    pub unknown_ns: i64,
}

/// What a thread got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadUse {
    /// Its number.
    pub thread: u32,
    /// Its name, if it is in the trace.
    pub name: Option<String>,
    /// Time on processors, without interrupts.
    pub ns: i64,
    /// Times that it got a processor.
    pub switches: u64,
    /// Times that it lost one although it could have gone on.
    pub preempted: u64,
}

/// One interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterruptUse {
    /// What it is.
    pub interrupt: String,
    /// How often its handler ran.
    pub count: u64,
    /// For how long, without others within.
    pub ns: i64,
}

/// Who used the processors of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineReport {
    /// From the kernel's first record to the trace's last one.
    pub duration_ns: i64,
    /// Processors that are heard of, by number.
    pub processors: Vec<ProcessorUse>,
    /// Threads, the greatest first.
    pub threads: Vec<ThreadUse>,
    /// Time of threads beyond those.
    pub other_threads_ns: i64,
    /// Interrupts, the greatest first.
    pub interrupts: Vec<InterruptUse>,
}

impl Machine {
    /// The report; nothing if the kernel told of no processor.
    pub fn finish(mut self) -> Option<MachineReport> {
        let (first, last) = (self.first?, self.last?);
        let cpus: Vec<u16> = self.processors.keys().copied().collect();
        cpus.into_iter().for_each(|cpu| self.reach(cpu, last));
        let named = |usage: &ThreadUse| ThreadUse {
            name: self.names.name(usage.thread).map(str::to_owned),
            ..usage.clone()
        };
        let mut threads: Vec<ThreadUse> = self.threads.values().map(named).collect();
        threads.sort_by_key(|usage| (std::cmp::Reverse(usage.ns), usage.thread));
        let called = |(interrupt, usage): (&Interrupt, &InterruptUse)| InterruptUse {
            interrupt: interrupt.to_string(),
            ..usage.clone()
        };
        let mut interrupts: Vec<InterruptUse> = self.interrupts.iter().map(called).collect();
        interrupts.sort_by_key(|usage| std::cmp::Reverse((usage.ns, usage.count)));
        Some(MachineReport {
            duration_ns: last.as_nanos().saturating_sub(first.as_nanos()),
            processors: self.processors.values().map(|processor| processor.usage).collect(),
            threads,
            other_threads_ns: self.others_ns,
            interrupts,
        })
    }

    /// The processor was used up to `now` as it is.
    fn reach(&mut self, cpu: u16, now: Instant) {
        let first = *self.first.get_or_insert(now);
        let processor = self.processors.entry(cpu).or_insert_with(|| Processor {
            thread: None,
            interrupts: Vec::new(),
            cursor: first,
            usage: ProcessorUse { cpu, ..ProcessorUse::default() },
        });
        let ns = now.as_nanos().saturating_sub(processor.cursor.as_nanos());
        if ns <= 0 {
            return;
        }
        processor.cursor = now;
        let usage = &mut processor.usage;
        let account = match (processor.interrupts.last(), processor.thread) {
            (Some(interrupt), _) => {
                add(&mut self.interrupts.entry(*interrupt).or_default().ns, ns);
                &mut usage.interrupts_ns
            }
            (None, None) => &mut usage.unknown_ns,
            (None, Some(0)) => &mut usage.idle_ns,
            (None, Some(Record::UNSEEN_THREAD)) => &mut usage.unobserved_ns,
            (None, Some(thread)) => {
                match thread_use(&mut self.threads, thread) {
                    Some(thread) => add(&mut thread.ns, ns),
                    None => add(&mut self.others_ns, ns),
                }
                &mut usage.threads_ns
            }
        };
        add(account, ns);
    }

    fn switch(&mut self, cpu: u16, switch: Switch) {
        let (from, to) = (switch.from_tid, switch.to_tid);
        let Some(processor) = self.processors.get_mut(&cpu) else { return };
        processor.usage.switches += 1;
        processor.thread = Some(to);
        if let Some(from) = thread_use(&mut self.threads, from).filter(|_| switch.preempted.0) {
            from.preempted += 1;
        }
        if let Some(to) = thread_use(&mut self.threads, to) {
            to.switches += 1;
        }
    }
}

/// The account of a thread; none of the idle one, of those that are not observed, and of too many.
fn thread_use(threads: &mut HashMap<u32, ThreadUse>, thread: u32) -> Option<&mut ThreadUse> {
    let is_one = thread != 0 && thread != Record::UNSEEN_THREAD;
    if !is_one || threads.len() >= THREADS && !threads.contains_key(&thread) {
        return None;
    }
    Some(threads.entry(thread).or_insert_with(|| ThreadUse { thread, ..ThreadUse::default() }))
}

/// Damaged records may tell of centuries.
fn add(account: &mut i64, ns: i64) {
    *account = account.saturating_add(ns);
}

impl Sink for Machine {
    fn record(&mut self, record: Record) {
        self.last = self.last.max(Some(record.time));
        self.names.learn(&record);
        match record.typed() {
            Typed::Switch(switch) => {
                self.reach(record.cpu, record.time);
                self.switch(record.cpu, switch);
            }
            Typed::IrqEnter(interrupt) => {
                self.reach(record.cpu, record.time);
                let interrupt = Interrupt::from(interrupt);
                self.interrupts.entry(interrupt).or_default().count += 1;
                if let Some(processor) = self.processors.get_mut(&record.cpu)
                    && processor.interrupts.len() < NESTED
                {
                    processor.interrupts.push(interrupt);
                }
            }
            Typed::IrqExit(_) => {
                self.reach(record.cpu, record.time);
                self.processors.get_mut(&record.cpu).map(|processor| processor.interrupts.pop());
            }
            Typed::Lost(lost) if lost.is_of_kernel() && self.processors.contains_key(&record.cpu) => {
                self.reach(record.cpu, record.time);
                if let Some(processor) = self.processors.get_mut(&record.cpu) {
                    processor.thread = None;
                    processor.interrupts.clear();
                }
            }
            _ => {}
        }
    }
}
