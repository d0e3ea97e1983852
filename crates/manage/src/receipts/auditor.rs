//! The auditor: an ordinary thread that brings the dispatcher's notes and the kernel's switches together.

use super::ledger::{Ledger, WithheldInterval};
use super::withholding::Infrastructure;
use crate::STACK;
use crate::notes::{Note, Notes};
use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::{Slept, StopFlag};
use talea_policy::arrangement::{Receipts, Watch};
use talea_policy::hierarchy::VpId;
use talea_record::event;
use talea_record::stream::builtin_switch;
use talea_record::{EdgeNumbers, Record, RingWriter, Sink};
use talea_recording::kernel::{KernelEvent, KernelOptions, KernelScope, KernelStream, Processors};
use talea_time::{Clock, Duration, Instant, Work};

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
    room: Vec<Note>,
    /// Notes that are younger than what the kernel has told.
    waiting: VecDeque<Note>,
    seen: SwitchQueue,
    dropped: u64,
    ring: RingWriter,
    node: usize,
    cpus: Vec<u16>,
    edges: EdgeNumbers,
}

impl AuditState {
    fn look(&mut self, shared: &Shared) {
        let horizon = MonotonicClock.now() - SETTLING;
        if let Some(kernel) = &mut self.kernel {
            kernel.poll(horizon, &mut self.seen);
        }
        self.collect(shared);
        self.work_up_to(horizon);
    }

    /// Takes the notes. Whatever is decided afterwards is later than any instant read before.
    fn collect(&mut self, shared: &Shared) {
        let mut state = shared.state.lock_patiently();
        if let Some(notes) = state.run.as_mut().and_then(|run| run.notes.as_mut()) {
            self.dropped = notes.exchange(&mut self.room);
        }
        drop(state);
        self.waiting.extend(self.room.drain(..));
    }

    fn work_up_to(&mut self, horizon: Instant) {
        loop {
            let note = self.waiting.front().map(|note| note.at).filter(|at| *at < horizon);
            let switch = self.seen.0.front().map(|record| record.time).filter(|at| *at < horizon);
            match (note, switch) {
                (None, None) => break,
                (Some(note), Some(switch)) if switch < note => self.take_switch(),
                (Some(_), _) => {
                    let note = self.waiting.pop_front().expect("there is a first");
                    self.ledger.note(note);
                }
                (None, Some(_)) => self.take_switch(),
            }
        }
        self.tell();
    }

    fn take_switch(&mut self) {
        let record = self.seen.0.pop_front().expect("there is a first");
        self.ledger.record(&record);
    }

    /// Writes down what was found broken.
    fn tell(&mut self) {
        for (place, interval, thread) in self.ledger.spells() {
            let WithheldInterval { from, to } = interval;
            let node = self.node as u16;
            let withheld = event::Withheld { thread, from, to, node };
            let record = withheld.at(MonotonicClock.now(), self.cpus[place]);
            if self.ring.is_wanted(builtin_switch(record.event)) {
                self.ring.record(record);
            }
        }
        for (edge, violation) in self.ledger.broken() {
            let Some(edge) = self.edges.number(edge) else { continue };
            let withheld = event::Violation::withheld(edge.into(), &violation);
            let record = withheld.at(MonotonicClock.now(), Record::NO_CPU);
            if self.ring.is_wanted(builtin_switch(record.event)) {
                self.ring.record(record);
            }
        }
    }

    fn finish(&mut self, shared: &Shared) {
        self.collect(shared);
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
    /// Begins to work. `watch` is the companion of the one in the set's run, which takes notes; what is found broken goes to
    /// `ring`, by the numbers that `edges` say: the first among those of all nodes, and how many there are.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn start(
        shared: Arc<Shared>,
        (SwitchStream(kernel), cpus): (SwitchStream, &[u16]),
        infrastructure: Infrastructure,
        watch: Watch,
        (ring, node, edges): (RingWriter, usize, EdgeNumbers),
    ) -> std::io::Result<Self> {
        let audit_state = AuditState {
            kernel: Some(kernel),
            ledger: Ledger::new(cpus, infrastructure, watch),
            room: Notes::room(),
            waiting: VecDeque::new(),
            seen: SwitchQueue::default(),
            dropped: 0,
            ring,
            node,
            cpus: cpus.to_vec(),
            edges,
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
        audit_state.ledger.receipts()
    }

    /// The run that began at `start` is over: says what came of it, unless that contradicts what the `clocks` of threads say that
    /// they received.
    pub fn finish(mut self, start: Instant, clocks: &[(VpId, Work)]) -> Audit {
        self.end();
        let mut audit_state = at(&self.audit_state);
        audit_state.finish(&self.shared);
        if audit_state.dropped > 0 {
            let reason = format!(
                "{} decisions could not be noted down, for the thread that reads the notes had no processor",
                audit_state.dropped
            );
            return Audit::of_grants(reason);
        }
        let doubted = audit_state.ledger.contradictions(clocks).len();
        if doubted > 0 {
            return Audit::of_grants(format!(
                "the kernel's switches contradict the clocks of {doubted} threads, so it cannot have told all of them"
            ));
        }
        let total = audit_state.ledger.total();
        let longest = total.longest.map(|spell| LongestWithheld {
            from_ns: (spell.from - start).as_nanos(),
            length_ns: spell.length().as_nanos(),
        });
        let judged_by = JudgedBy::Receipts {
            withheld_ns: total.withheld.as_nanos(),
            spells: total.spells,
            longest,
            lost: audit_state.ledger.lost,
        };
        Audit { receipts: audit_state.ledger.receipts(), judged_by }
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
