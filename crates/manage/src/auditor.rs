//! The auditor: an ordinary thread that brings the records of decisions and the kernel's switches together.
//!
//! ```text
//!   dispatcher, under its lock ──ring──▶ ┐
//!                                        ├─ ledger ──▶ what was received, and which promises that breaks
//!   kernel ─────────────── switches ───▶ ┘   some tens of milliseconds later
//! ```
//!
//! The dispatcher writes what it writes for everybody who reads the run's stream, whether or not anybody else does. Without the right to
//! see the kernel's switches there is no auditor, and promises are judged by grants.

use crate::STACK;
use crate::managed_run::EndedRun;
use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::LongRun;
use talea_insight::receipts::{Ledger, Spell};
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::{Slept, StopFlag};
use talea_policy::arrangement::{Promise, Receipts};
use talea_record::event;
use talea_record::stream::builtin_switch;
use talea_record::{EdgeNumbers, Record, RingReader, RingWriter, Sink};
use talea_recording::kernel::{KernelEvent, KernelOptions, KernelScope, KernelStream, Processors};
use talea_time::{Clock, Duration, Instant};

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(50);
/// A switch younger than this may not be in the kernel's buffer yet.
const SETTLING: Duration = Duration::from_millis(1);

/// By what the promises of a hierarchy were judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum JudgedBy {
    /// By what was granted, and by what was received of it.
    Receipts {
        /// Time for which a processor that was granted was withheld, in nanoseconds.
        withheld_ns: i64,
        /// How often.
        spells: u64,
        /// The longest of these spells.
        longest: Option<LongestWithheld>,
        /// Switches that the kernel did not tell, so that nobody knows what was withheld then.
        lost: u64,
    },
    /// By what was granted alone.
    Grants {
        /// Why nobody knows what was received.
        reason: String,
    },
}

/// The longest time for which a processor was withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongestWithheld {
    /// Its beginning, in nanoseconds since the run's.
    pub from_ns: i64,
    /// How long it was, in nanoseconds.
    pub length_ns: i64,
}

/// What becomes of an audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// By number of the edge; none where only grants are known.
    pub receipts: Vec<Receipts>,
    /// By what they were judged.
    pub judged_by: JudgedBy,
}

impl Audit {
    pub(crate) fn of_grants(reason: String) -> Self {
        Audit { receipts: Vec::new(), judged_by: JudgedBy::Grants { reason } }
    }
}

/// The kernel's switches on the processors of a set.
pub struct SwitchStream(KernelStream);

impl SwitchStream {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel's refusal with its remedies, in a line each.
    pub fn open(cpus: &[u16]) -> Result<Self, String> {
        let options = KernelOptions {
            scope: KernelScope::Machine,
            processors: Processors::These(cpus.iter().copied().collect()),
            events: [KernelEvent::Switches].into(),
            ..KernelOptions::default()
        };
        let opened = KernelStream::open(&options, MonotonicClock.now());
        opened.map(SwitchStream).map_err(|error| error.to_string())
    }
}

/// Switches as they come.
#[derive(Default)]
struct SwitchQueue(VecDeque<Record>);

impl Sink for SwitchQueue {
    fn record(&mut self, record: Record) {
        self.0.push_back(record);
    }
}

/// All that the auditor works on.
struct AuditState {
    kernel: Option<KernelStream>,
    ledger: Ledger,
    decisions: RingReader,
    seen: SwitchQueue,
    /// Decisions in the order of time: who a thread is is told with the instant at which it began, of which the set hears with its next decision.
    decided: VecDeque<Record>,
    ring: RingWriter,
    edges: EdgeNumbers,
    /// How many of the node's edges the ledger knows.
    promised: usize,
}

impl AuditState {
    fn look(&mut self, shared: &Shared) {
        let horizon = MonotonicClock.now() - SETTLING;
        if let Some(kernel) = &mut self.kernel {
            kernel.poll(horizon, &mut self.seen);
        }
        let waiting = self.collect(shared);
        self.work_up_to(waiting.map_or(horizon, |waiting| horizon.min(waiting)));
    }

    /// Learns what has been promised since. Whatever is decided afterwards is later than any instant read before. Returns from when on
    /// decisions wait for definitions.
    fn collect(&mut self, shared: &Shared) -> Option<Instant> {
        // Who has begun by now is told in the records that are read next.
        shared.tell(|_, _| ());
        let state = shared.state.lock_patiently();
        let promises = state.run.iter().flat_map(|run| run.watch.edges()).skip(self.promised);
        let promises = promises.map(|(_, _, promise)| {
            let guarantee = promise.map_or(&Guarantee::Null, Promise::guarantee).clone();
            (guarantee, promise.and_then(Promise::stated))
        });
        let promises: Vec<(Guarantee, Option<LongRun>)> = promises.collect();
        let waiting = state.run.as_ref().and_then(|run| run.waiting_since());
        drop(state);
        for (guarantee, stated) in promises {
            if let Some(edge) = self.edges.number(self.promised) {
                self.ledger.promise(edge.into(), &guarantee, stated);
            }
            self.promised += 1;
        }
        waiting
    }

    fn work_up_to(&mut self, horizon: Instant) {
        while let Some(record) = self.decisions.take() {
            let at = self.decided.partition_point(|before| before.time <= record.time);
            self.decided.insert(at, record);
        }
        loop {
            let decision = self.decided.front().map(|record| record.time).filter(|at| *at < horizon);
            let switch = self.seen.0.front().map(|record| record.time).filter(|at| *at < horizon);
            let next = match (decision, switch) {
                (Some(decision), Some(switch)) if switch < decision => self.seen.0.pop_front(),
                (Some(_), _) => self.decided.pop_front(),
                (None, Some(_)) => self.seen.0.pop_front(),
                (None, None) => break,
            };
            next.into_iter().for_each(|record| self.ledger.record(record));
        }
        self.tell();
    }

    /// Writes down what was found broken.
    fn tell(&mut self) {
        let mut record = |record: Record| {
            if self.ring.is_wanted(builtin_switch(record.event)) {
                self.ring.record(record);
            }
        };
        for Spell { cpu, thread, from, to } in self.ledger.spells() {
            let node = self.edges.node as u16;
            record(event::Withheld { thread, from, to, node }.at(MonotonicClock.now(), cpu));
        }
        for (edge, violation) in self.ledger.broken() {
            let withheld = event::Violation::withheld(edge, &violation);
            record(withheld.at(MonotonicClock.now(), Record::NO_CPU));
        }
    }

    /// By the node's own numbers.
    fn receipts(&self) -> Vec<Receipts> {
        let of = |own: usize| self.edges.number(own).map(|edge| self.ledger.receipts(edge.into()));
        (0..self.promised).map(|own| of(own).unwrap_or_default()).collect()
    }

    fn finish(&mut self, shared: &Shared) {
        let waiting = self.collect(shared);
        assert_eq!(waiting, None, "a run that is over has written all its decisions");
        if let Some(kernel) = self.kernel.take() {
            // What it has recorded by now is delivered, whatever becomes of the stop.
            let _stopped = kernel.finish(&mut self.seen);
        }
        self.work_up_to(Instant::MAX);
    }
}

/// An auditor at work. Dropping it ends it.
pub(crate) struct Auditor {
    done: StopFlag,
    audit_state: Arc<Mutex<AuditState>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Auditor {
    /// Begins to work. `decisions` are those of the set's run; what is found broken goes to `ring`, by the numbers that `edges` say.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn start(
        shared: Arc<Shared>,
        SwitchStream(kernel): SwitchStream,
        (decisions, ledger): (RingReader, Ledger),
        (ring, edges): (RingWriter, EdgeNumbers),
    ) -> std::io::Result<Self> {
        let audit_state = AuditState {
            kernel: Some(kernel),
            ledger,
            decisions,
            seen: SwitchQueue::default(),
            decided: VecDeque::new(),
            ring,
            edges,
            promised: 0,
        };
        let (audit_state, done) = (Arc::new(Mutex::new(audit_state)), StopFlag::new());
        let (own, told, of) = (Arc::clone(&audit_state), done.clone(), Arc::clone(&shared));
        let thread =
            std::thread::Builder::new().name("auditor".into()).stack_size(STACK).spawn(move || {
                while told.sleep_until(MonotonicClock.now() + INTERVAL) == Slept::Due {
                    at(&own).look(&of);
                }
            })?;
        Ok(Auditor { done, audit_state, shared, thread: Some(thread) })
    }

    /// What every edge has received by now, edges by number.
    pub fn receipts(&self) -> Vec<Receipts> {
        let mut audit_state = at(&self.audit_state);
        audit_state.look(&self.shared);
        audit_state.receipts()
    }

    /// The run is over: says what came of it, unless that contradicts what the clocks of threads say that they received.
    pub fn finish(mut self, ended_run: &EndedRun) -> Audit {
        self.end();
        let mut audit_state = at(&self.audit_state);
        audit_state.finish(&self.shared);
        if audit_state.ledger.lost_decisions > 0 {
            let reason = format!(
                "{} records of the hierarchy were overwritten before they were read, for the thread that reads them had no processor",
                audit_state.ledger.lost_decisions
            );
            return Audit::of_grants(reason);
        }
        let doubted = audit_state.ledger.contradictions(&ended_run.clocks).len();
        if doubted > 0 {
            return Audit::of_grants(format!(
                "the kernel's switches contradict the clocks of {doubted} threads, so it cannot have told all of them"
            ));
        }
        let total = audit_state.ledger.total();
        let longest = total.longest.map(|spell| LongestWithheld {
            from_ns: (spell.from - ended_run.start).as_nanos(),
            length_ns: spell.length().as_nanos(),
        });
        let judged_by = JudgedBy::Receipts {
            withheld_ns: total.withheld.as_nanos(),
            spells: total.spells,
            longest,
            lost: audit_state.ledger.lost_switches,
        };
        Audit { receipts: audit_state.receipts(), judged_by }
    }

    fn end(&mut self) {
        self.done.stop();
        if let Some(thread) = self.thread.take() {
            // What it panicked with is found in the state's lock.
            let _panicked = thread.join();
        }
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.end();
    }
}

fn at(audit_state: &Mutex<AuditState>) -> MutexGuard<'_, AuditState> {
    audit_state.lock().unwrap_or_else(PoisonError::into_inner)
}
