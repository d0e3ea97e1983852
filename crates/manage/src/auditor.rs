//! The auditor: an ordinary thread that brings the records of decisions and the kernel's switches together.
//!
//! ```text
//!   dispatcher, under its lock ──ring──▶ ┐
//!                                        ├─ ledger ──▶ what was received, and which promises that breaks
//!   kernel ─────────────── switches ───▶ ┘   some tens of milliseconds later
//! ```
//!
//! Where switches or decisions were lost, it judges nothing from the last instant on up to which it knows that it has seen all, and
//! writes that down.
//!
//! The dispatcher writes what it writes for everybody who reads the run's stream, whether or not anybody else does. Without the right to
//! see the kernel's switches there is no auditor, and promises are judged by grants.

use crate::STACK;
use crate::managed_run::EndedRun;
use crate::shared::Shared;
use crate::switches::{SwitchStream, ToldBy};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::LongRun;
use talea_insight::receipts::{Ledger, Spell};
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{self, Policy, SchedError};
use talea_linux::stop::{Slept, StopFlag};
use talea_linux::{Tid, proc};
use talea_policy::arrangement::{Promise, Receipts};
use talea_record::event::{self, Typed};
use talea_record::stream::builtin_switch;
use talea_record::{EdgeNumbers, Record, RingReader, RingWriter, Sink};
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
        /// Switches that the kernel did not tell.
        lost: u64,
        /// Records of decisions that were overwritten before they were read.
        #[serde(default)]
        lost_decisions: u64,
        /// From when on nothing was judged, because switches or decisions were lost: in nanoseconds since the run's beginning.
        #[serde(default)]
        unknown_from_ns: Option<i64>,
        /// By what the switches were told.
        #[serde(default)]
        told_by: ToldBy,
    },
    /// By what was granted alone.
    Grants {
        /// Why nobody knows what was received.
        reason: String,
    },
}

/// The longest time for which a processor was withheld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongestWithheld {
    /// Its beginning, in nanoseconds since the run's.
    pub from_ns: i64,
    /// How long it was, in nanoseconds.
    pub length_ns: i64,
    /// Who had the processor at its beginning.
    pub by: Withholder,
}

/// Who had a processor that was withheld, as far as that can be found out afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Withholder {
    /// Nobody: it was idle.
    Nobody,
    /// A thread of this process.
    OwnThread {
        /// Its name.
        name: String,
    },
    /// A thread with a real-time policy.
    RealTime {
        /// Its number.
        thread: u32,
        /// Its name.
        name: String,
    },
    /// A thread without one.
    Ordinary {
        /// Its number.
        thread: u32,
        /// Its name.
        name: String,
    },
    /// A thread that is gone.
    Gone {
        /// Its number.
        thread: u32,
    },
}

impl Withholder {
    /// What is known now of the thread that had a processor then; 0 is the idle thread.
    fn of(thread: u32) -> Self {
        if thread == 0 {
            return Withholder::Nobody;
        }
        let known = i32::try_from(thread).ok().and_then(Tid::from_raw);
        let found = known.and_then(|tid| Some((proc::name_of(tid)?, sched::get(Some(tid)))));
        match found {
            None => Withholder::Gone { thread },
            Some((name, _)) if fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(false) => {
                Withholder::OwnThread { name }
            }
            Some((name, Ok(Policy::Other) | Err(SchedError::Foreign(_)))) => {
                Withholder::Ordinary { thread, name }
            }
            Some((name, Ok(_))) => Withholder::RealTime { thread, name },
            Some((_, Err(_))) => Withholder::Gone { thread },
        }
    }
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

/// All that the auditor works on.
struct AuditState {
    switches: Option<SwitchStream>,
    told_by: ToldBy,
    ledger: Ledger,
    decisions: RingReader,
    /// Decisions in the order of time: who a thread is is told with the instant at which it began, of which the set hears with its next decision.
    decided: VecDeque<Record>,
    seen: VecDeque<Record>,
    /// The instants before which the last looks have taken all switches: what is lost is lost after one of them.
    horizons: VecDeque<Instant>,
    /// Switches that were lost. From the first on nothing is judged.
    lost: u64,
    /// Records of decisions that were lost, and the last instant before the first of them.
    lost_decisions: u64,
    complete_until: Option<Instant>,
    unknown_from: Option<Instant>,
    /// Whether that has been written down.
    is_unknown_told: bool,
    /// The latest decision that was read.
    latest: Instant,
    ring: RingWriter,
    edges: EdgeNumbers,
    /// How many of the node's edges the ledger knows.
    promised: usize,
}

impl AuditState {
    fn new(
        (switches, told_by): (Option<SwitchStream>, ToldBy),
        (decisions, ledger): (RingReader, Ledger),
        (ring, edges): (RingWriter, EdgeNumbers),
    ) -> Self {
        AuditState {
            switches,
            told_by,
            ledger,
            decisions,
            decided: VecDeque::new(),
            seen: VecDeque::new(),
            horizons: VecDeque::new(),
            lost: 0,
            lost_decisions: 0,
            complete_until: None,
            unknown_from: None,
            is_unknown_told: false,
            latest: Instant::ZERO,
            ring,
            edges,
            promised: 0,
        }
    }

    fn look(&mut self, shared: &Shared) {
        let horizon = MonotonicClock.now() - SETTLING;
        let mut certain = Instant::ZERO;
        if let Some(switches) = &mut self.switches {
            self.lost = switches.poll(horizon, &mut self.seen);
            self.horizons.push_back(horizon);
            if self.horizons.len() > switches.looks_until_certain() {
                certain = self.horizons.pop_front().unwrap_or(horizon);
            }
        }
        let waiting = self.collect(shared);
        self.work_up_to(waiting.map_or(certain, |waiting| certain.min(waiting)));
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
        if self.lost > 0 {
            self.judge_no_more();
        }
        while let Some(record) = self.decisions.take() {
            if let Typed::Lost(lost) = record.typed() {
                self.lost_decisions += lost.records;
                self.complete_until.get_or_insert(self.latest);
            }
            self.latest = self.latest.max(record.time);
            if self.complete_until.is_none() {
                let at = self.decided.partition_point(|before| before.time <= record.time);
                self.decided.insert(at, record);
            }
        }
        let is_complete = self.complete_until.is_none_or(|until| horizon < until);
        let horizon = self.complete_until.map_or(horizon, |until| horizon.min(until));
        loop {
            let decision = self.decided.front().map(|record| record.time).filter(|at| *at < horizon);
            let switch = self.seen.front().map(|record| record.time).filter(|at| *at < horizon);
            let next = match (decision, switch) {
                (Some(decision), Some(switch)) if switch < decision => self.seen.pop_front(),
                (Some(_), _) => self.decided.pop_front(),
                (None, Some(_)) => self.seen.pop_front(),
                (None, None) => break,
            };
            if let Some(record) = next {
                if let Some(switches) = &mut self.switches {
                    switches.note(&record.typed());
                }
                self.ledger.record(record);
            }
        }
        if !is_complete {
            self.judge_no_more();
        }
        self.tell();
    }

    /// What has been judged was told completely.
    fn judge_no_more(&mut self) {
        let from = self.ledger.close();
        self.unknown_from.get_or_insert(from);
        self.seen.clear();
        self.decided.clear();
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
        if let Some(since) = self.unknown_from.filter(|_| !self.is_unknown_told) {
            self.is_unknown_told = true;
            let node = self.edges.node as u16;
            record(event::Unaudited { since, node }.at(MonotonicClock.now(), Record::NO_CPU));
        }
    }

    /// By the node's own numbers.
    fn receipts(&self) -> Vec<Receipts> {
        let known_until_ns = self.unknown_from.map(Instant::as_nanos);
        let of = |own: usize| {
            let receipts = self.edges.number(own).map(|edge| self.ledger.receipts(edge.into()));
            Receipts { known_until_ns, ..receipts.unwrap_or_default() }
        };
        (0..self.promised).map(of).collect()
    }

    fn finish(&mut self, shared: &Shared) {
        let waiting = self.collect(shared);
        assert_eq!(waiting, None, "a run that is over has written all its decisions");
        if let Some(switches) = self.switches.take() {
            self.lost = switches.finish(&mut self.seen);
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
        switches: SwitchStream,
        (decisions, ledger): (RingReader, Ledger),
        (ring, edges): (RingWriter, EdgeNumbers),
    ) -> std::io::Result<Self> {
        let told_by = switches.told_by().clone();
        let audit_state = AuditState::new((Some(switches), told_by), (decisions, ledger), (ring, edges));
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

    /// These threads of a program have just been dismissed, and may come back as others' at once.
    pub fn part(&self, threads: impl Iterator<Item = u32>) {
        if let Some(switches) = &mut at(&self.audit_state).switches {
            switches.part(threads);
        }
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
        let doubted = audit_state.ledger.contradictions(&ended_run.clocks).len();
        if doubted > 0 && audit_state.unknown_from.is_none() {
            return Audit::of_grants(format!(
                "the kernel's switches contradict the clocks of {doubted} threads, so it cannot have told all of them"
            ));
        }
        let total = audit_state.ledger.total();
        let longest = total.longest.map(|spell| LongestWithheld {
            from_ns: (spell.from - ended_run.start).as_nanos(),
            length_ns: spell.length().as_nanos(),
            by: Withholder::of(spell.thread),
        });
        let judged_by = JudgedBy::Receipts {
            withheld_ns: total.withheld.as_nanos(),
            spells: total.spells,
            longest,
            lost: audit_state.lost,
            lost_decisions: audit_state.lost_decisions,
            unknown_from_ns: audit_state.unknown_from.map(|from| (from - ended_run.start).as_nanos()),
            told_by: audit_state.told_by.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use talea_record::event::{Flag, Switch, Trigger, Unaudited, VpGrant, VpRevoke};
    use talea_record::stream::{Selection, Start};
    use talea_record::{EdgeEntry, Event, Metadata, NodeEntry, RingFile, RingShape};

    /// From the first decision on that was overwritten, nobody knows whose turn it was: what is withheld by what is known of that would be false.
    #[test]
    fn nothing_is_judged_from_the_first_decision_on_that_was_lost() {
        const CPU: u16 = 3;
        let ms = |ms: i64| Instant::from_nanos(1_000_000_000 + ms * 1_000_000);
        let mut metadata = Metadata::bare("x");
        let (switches, decided_by) = Default::default();
        metadata.nodes = vec![NodeEntry { name: "n".into(), cpus: vec![CPU], switches, decided_by }];
        let (parent, child, guarantee) = ("RES".into(), "video".into(), "RESBS 5ms 20ms".into());
        metadata.edges = vec![EdgeEntry { node: 0, parent, child, guarantee }];
        let folder = tempfile::tempdir().expect("a folder");
        let shape = RingShape { writers: &[], spare: 2, capacity: 64, later: 0 };
        let file = RingFile::create_shaped(&folder.path().join("rings"), &metadata, shape).expect("rings");
        let mut writer = file.claim("decisions").expect("it is free");
        let all: Selection = "hls,hierarchy".parse().expect("a selection");
        let mut told = file.attach("told", &all, Start::Now).expect("it can be read");
        let ledger = Ledger::new(&[CPU], Duration::from_millis(1));
        let told_to = (file.claim("auditor").expect("it is free"), EdgeNumbers::of(&metadata, 0));
        let mut audit_state = AuditState::new((None, ToldBy::default()), (writer.reader(), ledger), told_to);
        audit_state.promised = 1;
        audit_state.ledger.promise(0, &"RESBS 5ms 20ms".parse().expect("a guarantee"), None);
        let (by, trigger, edge) = (None, Trigger::Timer.into(), 0);
        let member = event::Member {
            tid: 7,
            started_by: 0,
            edge: Some(0),
            node: 0,
            role: talea_record::MemberRole::Scheduled.into(),
        };
        writer.record(member.at(ms(0), Record::NO_CPU));
        writer.record(event::VpRequest { edge, by, trigger }.at(ms(0), Record::NO_CPU));
        writer.record(VpGrant { edge, by, trigger }.at(ms(1), CPU));
        let switch = |at: i64, to_tid: u32| {
            Switch { from_tid: 0, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(false) }.at(ms(at), CPU)
        };
        // It has the processor a moment, and from then on somebody else.
        audit_state.seen.extend([switch(1, 7), switch(2, 9)]);
        audit_state.work_up_to(ms(5));
        assert_eq!((audit_state.unknown_from, audit_state.lost_decisions), (None, 0));
        for turn in 0..100 {
            writer.record(VpRevoke { edge, by, trigger }.at(ms(10 + 2 * turn), CPU));
            writer.record(VpGrant { edge, by, trigger }.at(ms(11 + 2 * turn), CPU));
        }
        audit_state
            .seen
            .extend((0..100).flat_map(|turn| [switch(10 + 2 * turn, 9), switch(11 + 2 * turn, 7)]));
        // Up to there all that had been decided is known.
        audit_state.work_up_to(ms(500));
        assert!(audit_state.lost_decisions > 100, "{}", audit_state.lost_decisions);
        assert_eq!(audit_state.unknown_from, Some(ms(2)));
        audit_state.work_up_to(ms(900));
        let mut records = Vec::new();
        told.drain(&mut records);
        let withheld: Vec<_> = records.iter().filter(|record| record.event == Event::WITHHELD).collect();
        assert!(
            withheld.iter().all(|record| record.words[1] <= ms(5).as_nanos().cast_unsigned()),
            "{withheld:?}"
        );
        let unknown: Vec<_> = records.iter().filter_map(Unaudited::read).collect();
        assert_eq!(unknown, [Unaudited { since: ms(2), node: 0 }], "it is told once");
        assert!(records.iter().all(|record| record.event != Event::VIOLATION));
        assert_eq!(audit_state.receipts()[0].known_until_ns, Some(ms(2).as_nanos()));
    }

    #[test]
    fn who_had_a_processor_is_told_while_it_is_there() {
        assert_eq!(Withholder::of(0), Withholder::Nobody);
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(matches!(Withholder::of(own), Withholder::OwnThread { name } if !name.is_empty()));
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat is there");
        let thread = other.id();
        // What was forked has the other's name once it has begun.
        while fs::read_to_string(format!("/proc/{thread}/comm")).expect("it waits") != "cat\n" {
            std::thread::yield_now();
        }
        assert_eq!(Withholder::of(thread), Withholder::Ordinary { thread, name: "cat".into() });
        drop(other.stdin.take());
        other.wait().expect("it ends");
        assert_eq!(Withholder::of(thread), Withholder::Gone { thread });
    }
}
