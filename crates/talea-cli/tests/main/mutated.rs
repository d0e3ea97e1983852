//! Traces that were made wrong in one way each: `trace verify` finds each, or docs/verification.md says that it cannot.
//!
//! The page has a table with a row for each kind of change and a column for each kind of trace. The traces are made anew, every change is made
//! in each of them where it can be, and what is found has to be what the table says, word for word.

use crate::lowered::without_priorities;
use crate::support::{example, folder, root, run, within, write};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use talea_insight::decisions::Decisions;
use talea_insight::verify::{Verifier, default_overhead, default_tolerance};
use talea_model::{Synchronisation, System};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{Flag, Lost, Switch, Thread, VpGrant, Wakeup};
use talea_record::{
    DecidedBy, Event, JobId, KernelPolicy, KernelPolicyEntry, Metadata, Origin, Record, Sink, SkipReason,
    Switches, ThreadRole, TraceFile, Trigger, ViolationSide, WakeContext,
};
use talea_time::{Duration, Instant};

/// A trace and the system that it is of.
struct Trace {
    system: System,
    metadata: Metadata,
    records: Vec<Record>,
}

/// What a judge said: how often each rule was certainly violated.
type Verdict = BTreeMap<String, u64>;

impl Trace {
    fn open(system: &str, trace: &Path) -> Self {
        let file = TraceFile::open(trace).expect("a trace");
        let records = file.records().expect("records").map(Result::unwrap).collect();
        let system = talea_model::read(Path::new(system)).expect("a system").system;
        Trace { system, metadata: file.metadata().clone(), records }
    }

    /// Of a simulation.
    fn simulated(system: &str, length: &str) -> Self {
        let place = folder();
        let out = within(&place, "out");
        run(&["sim", system, "--for", length, "--fail-on", "never", "--out", &out]).exits(0);
        Self::open(system, &Path::new(&out).join("trace.talea"))
    }

    /// The same as if threads had done it.
    fn as_threads(&self) -> Self {
        let metadata = Metadata { origin: Origin::Threads { realtime: true }, ..self.metadata.clone() };
        Trace { system: self.system.clone(), metadata, records: self.records.clone() }
    }

    /// The same as if it had been lowered to the kernel, which told of its switches and wake-ups, one processor's.
    fn as_lowered(&self) -> Self {
        let mut metadata = Metadata { origin: Origin::Threads { realtime: true }, ..self.metadata.clone() };
        (metadata.nodes[0].decided_by, metadata.nodes[0].switches) = (DecidedBy::Kernel, Switches::Recorded);
        metadata.promise_tolerance = None;
        let policy = |lane: usize| {
            let name = &metadata.lanes[lane].label;
            let place = ORDER.iter().position(|other| other == name).expect("a thread of the example");
            KernelPolicyEntry { lane, policy: KernelPolicy::RealTime(20 - place as u8) }
        };
        metadata.kernel_policies = (0..metadata.lanes.len()).map(policy).collect();
        let own = self.records.iter().filter(|record| {
            record.event.family() != Event::VP_GRANT.family() && record.event != Event::VIOLATION
        });
        let mut records: Vec<Record> = Vec::new();
        let mut kernel = SimulatedKernel::default();
        for at_once in own.copied().collect::<Vec<_>>().chunk_by(|one, other| one.time == other.time) {
            records.extend(at_once);
            kernel.follow(at_once, &mut records);
        }
        for lane in 0..metadata.lanes.len() as u16 {
            let (tid, role) = (thread_of(lane), ThreadRole::Lane.into());
            let met = Thread { tid, pid: 5, node: 0, lane: Some(lane), role };
            records.insert(1, met.at(records[0].time, 0));
        }
        Trace { system: self.system.clone(), metadata, records }
    }

    fn has_hierarchy(&self) -> bool {
        self.metadata.hierarchy().is_some()
    }

    /// What is found in these records instead of its own.
    fn judged(&self, records: &[Record]) -> Verdict {
        let executed = self.system.with_threads_as_tasks();
        let plans = plan_lanes_of(&executed).expect("no anomalies");
        let tolerance = default_tolerance(self.metadata.origin);
        let verifier = Verifier::new(&self.metadata, &executed, &plans, tolerance).expect("the same system");
        let mut verifier = verifier.with_overhead(default_overhead(self.metadata.origin));
        records.iter().for_each(|record| verifier.record(*record));
        let report = verifier.finish();
        let rules = report.rules.iter().map(|rule| (rule.rule.name().to_owned(), rule.violations));
        let mut verdict: Verdict = rules.collect();
        if self.has_hierarchy() {
            let mut decisions = Decisions::new(&self.metadata, &self.system);
            records.iter().for_each(|record| decisions.record(*record));
            let report = decisions.finish();
            verdict.extend(report.rules.iter().map(|rule| (rule.rule.name().to_owned(), rule.violations)));
        }
        verdict
    }

    /// Whether the change can be made, and is found then.
    fn tried(&self, change: Change) -> Option<bool> {
        let mut records = self.records.clone();
        change(self, &mut records)?;
        // Readers deliver records in the order of time.
        records.sort_by_key(|record| record.time);
        let (before, after) = (self.judged(&self.records), self.judged(&records));
        Some(after.iter().any(|(rule, count)| *count > before[rule]))
    }

    /// The protocol of the task that a record of a job is about.
    fn sync_of(&self, record: &Record) -> Synchronisation {
        let task = self.metadata.operations[record.job().operation.index()].task;
        self.system.tasks.get(task).map_or(Synchronisation::Greedy, |task| task.sync)
    }

    fn is_first(&self, record: &Record) -> bool {
        self.metadata.operations[record.job().operation.index()].predecessors.is_empty()
    }
}

/// The threads of examples/priorities.toml, the highest priority first.
const ORDER: [&str; 4] = ["alarm", "arm", "grip", "vision"];

/// The number of the thread of a lane.
fn thread_of(lane: u16) -> u32 {
    u32::from(lane) + 70
}

/// Who has the one processor, by the records of jobs.
#[derive(Default)]
struct SimulatedKernel {
    thread: u32,
    /// The lane of the job that has it.
    running: Option<u16>,
}

impl SimulatedKernel {
    /// What the kernel tells of an instant in which jobs told this.
    fn follow(&mut self, at_once: &[Record], told: &mut Vec<Record>) {
        let mut stopped = None;
        for record in at_once {
            match record.event {
                Event::RELEASE if self.running != Some(record.source) => {
                    let (tid, context) = (thread_of(record.source), WakeContext::Interrupt.into());
                    let wakeup = Wakeup { tid, waker_tid: 0, target_cpu: 0, priority: 80, context };
                    told.push(wakeup.at(record.time, 0));
                }
                Event::START | Event::RESUME => self.running = Some(record.source),
                Event::PREEMPT => stopped = Some(thread_of(record.source)),
                Event::COMPLETE => self.running = self.running.filter(|lane| *lane != record.source),
                _ => {}
            }
        }
        let to = self.running.map_or(0, thread_of);
        if to != self.thread {
            let preempted = Flag(self.thread == 0 || stopped == Some(self.thread));
            told.push(switched(at_once[0].time, (self.thread, to), preempted));
            self.thread = to;
        }
    }
}

fn switched(at: Instant, (from_tid, to_tid): (u32, u32), preempted: Flag) -> Record {
    Switch { from_tid, to_tid, from_pid: 5, to_pid: 5, preempted }.at(at, 0)
}

/// The middle one of the times for which a thread that displaced another one had the processor for two milliseconds: the places
/// of the switches to it and from it, and whom it displaced.
fn displacement(records: &[Record]) -> Option<(usize, usize, u32)> {
    let switches: Vec<usize> =
        (0..records.len()).filter(|place| of(Event::SWITCH)(&records[*place])).collect();
    let displaced = |pair: &&[usize]| {
        let (first, next) = (&records[pair[0]], &records[pair[1]]);
        let switch = Switch::read(first).filter(|switch| switch.preempted.0 && switch.from_tid > 0);
        switch.is_some() && next.time - first.time >= Duration::from_millis(2)
    };
    let found: Vec<&[usize]> = switches.windows(2).filter(displaced).collect();
    let pair = found.get(found.len() / 2)?;
    Some((pair[0], pair[1], Switch::read(&records[pair[0]])?.from_tid))
}

/// Makes the trace wrong; nothing if it has not what is to be changed.
type Change = fn(&Trace, &mut Vec<Record>) -> Option<()>;

/// The place in the middle of those of which this is so.
fn middle(records: &[Record], is_one: impl Fn(&Record) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..records.len()).filter(|place| is_one(&records[*place])).collect();
    places.get(places.len() / 2).copied()
}

fn of(event: Event) -> impl Fn(&Record) -> bool {
    move |record| record.event == event
}

fn drop_one(records: &mut Vec<Record>, event: Event) -> Option<()> {
    let place = middle(records, of(event))?;
    records.remove(place);
    Some(())
}

fn double(records: &mut Vec<Record>, event: Event) -> Option<()> {
    let place = middle(records, of(event))?;
    records.insert(place, records[place]);
    Some(())
}

fn shift(records: &mut [Record], event: Event, by_us: i64) -> Option<()> {
    let place = middle(records, of(event))?;
    records[place].time = records[place].time.saturating_add(Duration::from_micros(by_us));
    Some(())
}

/// A job in the middle that has begun and completed without being preempted, and the places of both.
fn whole_job(records: &[Record]) -> Option<(usize, usize)> {
    let start = middle(records, |record| {
        let has =
            |event: Event| records.iter().any(|other| other.event == event && other.causal == record.causal);
        record.event == Event::START && has(Event::COMPLETE) && !has(Event::PREEMPT)
    })?;
    let is_end = |record: &Record| record.event == Event::COMPLETE && record.causal == records[start].causal;
    Some((start, records.iter().position(is_end)?))
}

/// A release of a successor.
fn successor(trace: &Trace, records: &[Record]) -> Option<usize> {
    middle(records, |record| record.event == Event::RELEASE && !trace.is_first(record))
}

/// A release of a job that a guard with this protocol held.
fn held_by(trace: &Trace, records: &[Record], sync: Synchronisation) -> Option<usize> {
    middle(records, |record| {
        let is_held = |other: &Record| other.event == Event::GUARD && other.causal == record.causal;
        record.event == Event::RELEASE && trace.sync_of(record) == sync && records.iter().any(is_held)
    })
}

/// As if the guard of a job had opened earlier.
fn held_for_less(trace: &Trace, records: &mut [Record], sync: Synchronisation, by: Duration) -> Option<()> {
    let place = held_by(trace, records, sync)?;
    records[place].time = records[place].time.saturating_add(-by);
    date(records, place, records[place].time);
    Some(())
}

/// As if a job had been released later, and had done later all that it did.
fn held_for_longer(records: &mut [Record], place: usize, by: Duration) {
    let (job, late) = (records[place].causal, records[place].time.saturating_add(by));
    date(records, place, late);
    for record in records.iter_mut().filter(|record| record.event.is_job() && record.causal == job) {
        record.time = record.time.saturating_add(by);
    }
}

/// The release at `place`, and all records that have its nominal instant, have this one instead.
fn date(records: &mut [Record], place: usize, release: Instant) {
    let (job, nominal) = (records[place].causal, records[place].words[0]);
    let is_dated =
        |record: &&mut Record| record.event.is_job() && record.causal == job && record.words[0] == nominal;
    for record in records.iter_mut().filter(is_dated) {
        record.words[0] = release.as_nanos() as u64;
    }
}

const CHANGES: &[(&str, Change)] = &[
    ("release-dropped", |_, records| drop_one(records, Event::RELEASE)),
    ("start-dropped", |_, records| drop_one(records, Event::START)),
    ("preempt-dropped", |_, records| drop_one(records, Event::PREEMPT)),
    ("resume-dropped", |_, records| drop_one(records, Event::RESUME)),
    ("wait-dropped", |_, records| drop_one(records, Event::WAIT)),
    ("wait-beyond-limit", |_, records| {
        let place = middle(records, of(Event::WAIT))?;
        records[place].words[1] += 1_000_000;
        Some(())
    }),
    ("wait-cut-short", |_, records| {
        let waits = |record: &Record| {
            records.iter().any(|other| other.event == Event::WAIT && other.causal == record.causal)
        };
        let place = middle(records, |record| record.event == Event::RESUME && waits(record))?;
        records[place].time = records[place].time.saturating_add(Duration::from_micros(-500));
        Some(())
    }),
    ("wait-for-another-input", |_, records| {
        let place = middle(records, of(Event::WAIT))?;
        records[place].words[0] ^= 1;
        Some(())
    }),
    ("complete-dropped", |_, records| drop_one(records, Event::COMPLETE)),
    ("instance-dropped", |trace, records| {
        let place = middle(records, |record| record.event == Event::RELEASE && trace.is_first(record))?;
        let job = records[place].job();
        let task = trace.metadata.operations[job.operation.index()].task;
        let is_of_it = |record: &Record| {
            let entry = trace.metadata.operations.get(record.job().operation.index());
            record.event.is_job()
                && record.job().instance == job.instance
                && entry.is_some_and(|entry| entry.task == task)
        };
        records.retain(|record| !is_of_it(record));
        Some(())
    }),
    ("last-instances-dropped", |_, records| {
        let end = records.iter().map(|record| record.time).max()?;
        let start = records.first()?.time;
        let from = start.saturating_add(Duration::from_nanos((end - start).as_nanos() / 2));
        records.retain(|record| !record.event.is_job() || record.time < from);
        Some(())
    }),
    ("release-doubled", |_, records| double(records, Event::RELEASE)),
    ("start-doubled", |_, records| double(records, Event::START)),
    ("complete-doubled", |_, records| double(records, Event::COMPLETE)),
    ("release-early", |trace, records| {
        let place = middle(records, |record| record.event == Event::RELEASE && trace.is_first(record))?;
        records[place].time = records[place].time.saturating_add(Duration::from_micros(-300));
        Some(())
    }),
    ("release-late", |trace, records| {
        let place = middle(records, |record| record.event == Event::RELEASE && trace.is_first(record))?;
        let job = records[place].causal;
        let late = Duration::from_micros(5);
        records.iter_mut().filter(|record| record.event.is_job() && record.causal == job).for_each(
            |record| {
                record.time = record.time.saturating_add(late);
            },
        );
        Some(())
    }),
    ("start-early", |_, records| shift(records, Event::START, -700)),
    ("start-late", |_, records| {
        let (start, end) = whole_job(records)?;
        let half = Duration::from_nanos((records[end].time - records[start].time).as_nanos() / 2);
        records[start].time = records[start].time.saturating_add(half);
        Some(())
    }),
    ("complete-early", |_, records| {
        let (start, end) = whole_job(records)?;
        let half = Duration::from_nanos((records[end].time - records[start].time).as_nanos() / 2);
        records[end].time = records[start].time.saturating_add(half);
        Some(())
    }),
    ("executes-beyond-demand", |_, records| {
        let (_, end) = whole_job(records)?;
        records[end].time = records[end].time.saturating_add(Duration::from_micros(50));
        Some(())
    }),
    ("start-and-end-exchanged", |_, records| {
        let (start, end) = whole_job(records)?;
        let time = records[start].time;
        records[start].time = records[end].time;
        records[end].time = time;
        Some(())
    }),
    ("deadline-of-release-wrong", |_, records| {
        let place = middle(records, of(Event::RELEASE))?;
        records[place].words[1] = records[place].words[1].wrapping_add(1_000_000);
        Some(())
    }),
    ("arrival-of-release-wrong", |_, records| {
        let place = middle(records, of(Event::RELEASE))?;
        records[place].words[0] = records[place].words[0].wrapping_sub(1_000_000);
        Some(())
    }),
    ("deadline-of-end-wrong", |_, records| {
        let place = middle(records, of(Event::COMPLETE))?;
        records[place].words[1] = records[place].words[1].wrapping_add(1_000_000);
        Some(())
    }),
    ("inherited-deadline-wrong", |trace, records| {
        let inherits = |record: &Record| {
            let operation = trace.metadata.operations.get(record.job().operation.index());
            operation.is_some_and(|operation| trace.metadata.tasks[operation.task].inherits_deadline)
        };
        let place = middle(records, |record| record.event == Event::RELEASE && inherits(record))?;
        let job = records[place].causal;
        let dated = records.iter_mut().filter(|record| record.event.is_job() && record.causal == job);
        for record in dated.filter(|record| [Event::RELEASE, Event::COMPLETE].contains(&record.event)) {
            record.words[1] = record.words[1].wrapping_add(1_000_000);
        }
        Some(())
    }),
    ("inherited-deadline-stale", |trace, records| {
        let heir = trace.system.tasks.iter().position(|task| task.inherits_deadline)?;
        let operation = trace.system.operations_of(heir)[0].id;
        let is_release =
            |record: &Record| record.event == Event::RELEASE && record.job().operation == operation;
        let place = middle(records, is_release)?;
        // That of the value before, which released nothing.
        let period = trace.system.tasks[heir].deadline.as_nanos() as u64;
        let job = records[place].causal;
        let dated = records.iter_mut().filter(|record| record.event.is_job() && record.causal == job);
        for record in dated.filter(|record| [Event::RELEASE, Event::COMPLETE].contains(&record.event)) {
            record.words[1] = record.words[1].wrapping_sub(period);
        }
        Some(())
    }),
    ("lane-wrong", |trace, records| {
        let lanes = trace.metadata.lanes.len();
        let place = middle(records, |record| record.event == Event::START).filter(|_| lanes > 1)?;
        records[place].source = (records[place].source + 1) % lanes as u16;
        Some(())
    }),
    ("processor-wrong", |_, records| {
        let place = middle(records, of(Event::START))?;
        records[place].cpu = 7;
        Some(())
    }),
    ("jobs-exchanged", |_, records| {
        // Two that wait at the same time change places.
        let waits = |record: &Record, at: Instant, all: &[Record]| {
            let began = all.iter().find(|other| other.event == Event::START && other.causal == record.causal);
            record.event == Event::RELEASE && record.time <= at && began.is_some_and(|began| began.time > at)
        };
        let all = records.clone();
        let place = middle(records, |record| {
            record.event == Event::START
                && all.iter().any(|other| waits(other, record.time, &all) && other.source == record.source)
        })?;
        let (first, at) = (records[place].causal, records[place].time);
        let second =
            all.iter().find(|other| waits(other, at, &all) && other.source == all[place].source)?.causal;
        for record in
            records.iter_mut().filter(|record| record.event.is_job() && record.event != Event::RELEASE)
        {
            record.causal = match record.causal {
                job if job == first => second,
                job if job == second => first,
                job => job,
            };
        }
        Some(())
    }),
    ("instance-wrong", |_, records| {
        let place = middle(records, of(Event::COMPLETE))?;
        let job = records[place].job();
        records[place].causal = JobId { instance: job.instance + 1_000, ..job }.pack();
        Some(())
    }),
    ("operation-wrong", |_, records| {
        let place = middle(records, of(Event::START))?;
        let job = records[place].job();
        records[place].causal =
            JobId { operation: talea_model::OperationId::from_index(4_000), ..job }.pack();
        Some(())
    }),
    ("aborted-without-reason", |trace, records| {
        // Successors on threads are also aborted where too many instances are in flight.
        let place = middle(records, |record| record.event == Event::COMPLETE && trace.is_first(record))?;
        records[place].event = Event::ABORT;
        Some(())
    }),
    ("skipped-without-reason", |trace, records| {
        let place = middle(records, |record| record.event == Event::RELEASE && trace.is_first(record))?;
        let job = records[place].causal;
        (records[place].event, records[place].arg) = (Event::SKIP, SkipReason::Overrun as u16);
        records
            .retain(|record| record.causal != job || !record.event.is_job() || record.event == Event::SKIP);
        Some(())
    }),
    ("successor-dropped", |trace, records| {
        let job = records[successor(trace, records)?].causal;
        records.retain(|record| record.causal != job || !record.event.is_job());
        Some(())
    }),
    ("successor-early", |trace, records| {
        let place = successor(trace, records)?;
        let time = records[place].time.saturating_add(Duration::from_micros(-200));
        records[place].time = time;
        records[place].words[0] = time.as_nanos() as u64;
        Some(())
    }),
    ("guard-violated", |trace, records| {
        // As if the guard had let it through when the one before had been, and not a period later.
        let is_guarded = |record: &Record| trace.sync_of(record) == Synchronisation::ReleaseGuard;
        let place = middle(records, |record| {
            record.event == Event::RELEASE && !trace.is_first(record) && is_guarded(record)
        })?;
        let early = records[place].time.saturating_add(Duration::from_millis(-2));
        records[place].time = early;
        records[place].words[0] = early.as_nanos() as u64;
        Some(())
    }),
    ("phase-violated", |trace, records| {
        held_for_less(trace, records, Synchronisation::PhaseModification, Duration::from_millis(1))
    }),
    ("timer-violated", |trace, records| {
        held_for_less(trace, records, Synchronisation::ModifiedPhaseModification, Duration::from_millis(1))
    }),
    ("idle-point-invented", |trace, records| {
        held_for_less(trace, records, Synchronisation::ReleaseGuardIdle, Duration::from_micros(100))
    }),
    ("guard-held", |trace, records| {
        // Idle points are a change of their own.
        let place = middle(records, |record| {
            let sync = trace.sync_of(record);
            let is_guarded = sync != Synchronisation::Greedy && !trace.is_first(record);
            record.event == Event::RELEASE && is_guarded && !sync.heeds_idle_points()
        })?;
        held_for_longer(records, place, Duration::from_millis(1));
        Some(())
    }),
    ("idle-point-missed", |trace, records| {
        let place = held_by(trace, records, Synchronisation::ReleaseGuardIdle)?;
        held_for_longer(records, place, Duration::from_micros(100));
        Some(())
    }),
    ("successor-late", |trace, records| {
        let place = middle(records, |record| {
            record.event == Event::RELEASE
                && !trace.is_first(record)
                && trace.sync_of(record) == Synchronisation::Greedy
        })?;
        held_for_longer(records, place, Duration::from_micros(5));
        Some(())
    }),
    ("depth-wrong", |_, records| {
        let place = middle(records, of(Event::START))?;
        records[place].arg ^= 1;
        Some(())
    }),
    ("preemptor-wrong", |_, records| {
        let place = middle(records, of(Event::PREEMPT))?;
        records[place].words[0] ^= 1;
        Some(())
    }),
    ("run-end-dropped", |_, records| drop_one(records, Event::RUN_END)),
    ("request-dropped", |_, records| drop_one(records, Event::VP_REQUEST)),
    ("grant-dropped", |_, records| drop_one(records, Event::VP_GRANT)),
    ("revoke-dropped", |_, records| drop_one(records, Event::VP_REVOKE)),
    ("give-back-dropped", |_, records| drop_one(records, Event::VP_RELEASE)),
    ("grant-doubled", |_, records| double(records, Event::VP_GRANT)),
    ("grant-to-another", |trace, records| {
        let place = middle(records, of(Event::VP_GRANT))?;
        records[place].source = (records[place].source + 1) % trace.metadata.edges.len() as u16;
        Some(())
    }),
    ("grant-of-another-processor", |_, records| {
        let place = middle(records, of(Event::VP_GRANT))?;
        records[place].cpu = 7;
        Some(())
    }),
    ("grant-while-it-waits", |_, records| {
        // One that has just given its processor back, and has not asked again.
        let place =
            middle(records, |record| record.event == Event::VP_RELEASE && record.cpu != Record::NO_CPU)?;
        let before = records[place];
        let grant = VpGrant { edge: before.source, trigger: Trigger::Thread.into(), by: None };
        records.insert(place + 1, grant.at(before.time, before.cpu));
        Some(())
    }),
    ("broken-promise-invented", |trace, records| {
        if trace.metadata.edges.is_empty() {
            return None;
        }
        let place = middle(records, of(Event::VP_GRANT))?;
        let time = records[place].time;
        let from = time.saturating_add(Duration::from_millis(-20));
        let (amount, side) = (Duration::from_millis(1), ViolationSide::Least.into());
        let violation = talea_record::event::Violation { amount, edge: 1, from, to: time, side };
        records.insert(place, violation.at(time, Record::NO_CPU));
        Some(())
    }),
    ("kernel-runs-a-lower-priority", |_, records| {
        let (first, next, lower) = displacement(records)?;
        let (from, to) = (records[first].time, records[next].time);
        let higher = Switch::read(&records[first])?.to_tid;
        let quarter = Duration::from_nanos((to - from).as_nanos() / 4);
        records.push(switched(from + quarter, (higher, lower), Flag(true)));
        records.push(switched(to - quarter, (lower, higher), Flag(true)));
        Some(())
    }),
    ("kernel-switches-late", |_, records| {
        let (first, ..) = displacement(records)?;
        records[first].time += Duration::from_millis(1);
        Some(())
    }),
    ("trigger-wrong", |_, records| {
        let place = middle(records, of(Event::VP_GRANT))?;
        records[place].arg ^= 1;
        Some(())
    }),
];

/// A lane of several tasks, one above it that preempts it, a chain, equal keys, and a task that inherits its deadline.
const LANES: &str = r#"
[system]
name = "lanes"
strategy = "criticality"
seed = 7
[[node]]
name = "one"
cpus = [0]
[[task]]
name = "high"
period = "3ms"
wcet = "500us"
phase = "200us"
criticality = "high"
[[task]]
name = "low"
period = "9ms"
wcet = "1ms"
exec = { uniform = ["500us", "1ms"] }
[[task]]
name = "alike"
period = "9ms"
wcet = "1ms"
outputs = [{ name = "value" }]
[[task]]
name = "heir"
trigger = { output = "alike.value", every = 2 }
deadline = "inherited"
wcet = "200us"
[[task]]
name = "chain"
period = "9ms"
[[task.subtask]]
name = "a"
wcet = "300us"
[[task.subtask]]
name = "b"
wcet = "300us"
"#;

/// A job waits for room in one of two inputs.
const WAITING: &str = r#"
[system]
name = "waiting"
strategy = "rms"
lane_dispatch = "nonpreemptive"
[[node]]
name = "one"
cpus = [0]
[[task]]
name = "writer"
period = "5ms"
wcet = "1ms"
outputs = [{ name = "value" }]
[[task]]
name = "beside"
period = "7ms"
wcet = "2ms"
[[task]]
name = "reader"
period = "40ms"
wcet = "1ms"
inputs = [
  { name = "all", from = "writer.value", take = "each", capacity = 3, full = "block", limit = "2ms" },
  { name = "newest", from = "writer.value", take = "latest" },
]
"#;

const GUARDED: &str = r#"
[system]
name = "guarded"
strategy = "rms"
sync = "release-guard"
[[node]]
name = "one"
cpus = [0]
[[node]]
name = "two"
cpus = [1]
[[task]]
name = "chain"
period = "5ms"
[[task.subtask]]
name = "a"
node = "one"
wcet = "1ms"
[[task.subtask]]
name = "b"
node = "two"
wcet = "1ms"
[[task]]
name = "other"
period = "4ms"
wcet = "2ms"
node = "two"
"#;

/// Guards that open by bounds and at idle points.
const PROTOCOLS: &str = r#"
[system]
name = "protocols"
strategy = "rms"
[[node]]
name = "one"
cpus = [0]
[[node]]
name = "two"
cpus = [1]
[[node]]
name = "three"
cpus = [2]
[[task]]
name = "phased"
period = "10ms"
sync = "phase-modification"
subtask = [{ name = "a", node = "one", wcet = "1ms", bound = "4ms" }, { name = "b", node = "one", wcet = "1ms" }]
[[task]]
name = "timed"
period = "10ms"
sync = "modified-phase-modification"
subtask = [{ name = "a", node = "one", wcet = "1ms", bound = "4ms" }, { name = "b", node = "one", wcet = "1ms" }]
[[task]]
name = "rested"
period = "10ms"
sync = "release-guard-idle"
  [[task.subtask]]
  name = "a"
  node = "two"
  wcet = "3ms"
  exec = { list = ["3ms", "1ms"] }
  [[task.subtask]]
  name = "b"
  node = "three"
  wcet = "1ms"
[[task]]
name = "busy"
node = "three"
period = "20ms"
phase = "2ms"
wcet = "9500us"
"#;

/// Lanes, with a chain, below a reservation that does not always let them run.
const BELOW: &str = r#"
[system]
name = "below"
strategy = "edf"
lane_dispatch = "nonpreemptive"
[[node]]
name = "one"
cpus = [0]
[[scheduler]]
name = "RES"
kind = "reservation"
[[scheduler]]
name = "tasks"
kind = "lanes"
under = [{ scheduler = "RES", guarantee = "RESBH 6ms 10ms" }]
[[thread]]
name = "ticker"
work = { burst = "2ms", period = "10ms" }
under = [{ scheduler = "RES", guarantee = "RESBH 3ms 10ms" }]
[[task]]
name = "chain"
period = "20ms"
[[task.subtask]]
name = "a"
wcet = "3ms"
[[task.subtask]]
name = "b"
wcet = "2ms"
[[task]]
name = "long"
period = "40ms"
wcet = "9ms"
"#;

/// What the page says of a change in a trace.
fn words(found: Option<bool>) -> &'static str {
    match found {
        Some(true) => "found",
        Some(false) => "invisible",
        None => "-",
    }
}

/// A change is found in a kind of trace if it is found wherever it can be made there.
fn everywhere(traces: &[&Trace], change: Change) -> Option<bool> {
    traces.iter().filter_map(|trace| trace.tried(change)).reduce(|one, other| one && other)
}

#[test]
fn what_is_found_and_what_is_not_is_what_the_page_says() {
    let place = folder();
    // Long enough that the middle is not at the very end.
    let lanes = Trace::simulated(&write(&place, "lanes.toml", LANES), "300ms");
    let waiting = Trace::simulated(&write(&place, "waiting.toml", WAITING), "300ms");
    let guarded = Trace::simulated(&write(&place, "guarded.toml", GUARDED), "300ms");
    let protocols = Trace::simulated(&write(&place, "protocols.toml", PROTOCOLS), "300ms");
    let hierarchy = Trace::simulated(&example("figure-1.toml"), "400ms");
    let below = Trace::simulated(&write(&place, "below.toml", BELOW), "300ms");
    let lowered = Trace::simulated(&example("priorities.toml"), "400ms").as_lowered();
    let threads = [lanes.as_threads(), waiting.as_threads(), guarded.as_threads(), protocols.as_threads()];
    let scheduled = [hierarchy.as_threads(), below.as_threads()];
    for trace in [&lanes, &waiting, &guarded, &protocols, &hierarchy, &below, &lowered]
        .into_iter()
        .chain(&threads)
        .chain(&scheduled)
    {
        let verdict = trace.judged(&trace.records);
        assert!(verdict.values().all(|count| *count == 0), "{}: {verdict:?}", trace.metadata.system);
    }
    let mut table = String::from(
        "| Change | simulated | threads | hierarchies | hierarchies on threads | lowered |\n|---|---|---|---|---|---|\n",
    );
    let mut found_somewhere = 0;
    for (name, change) in CHANGES {
        let simulated = everywhere(&[&lanes, &waiting, &guarded, &protocols], *change);
        let threads = everywhere(&threads.each_ref(), *change);
        let hierarchies = everywhere(&[&hierarchy, &below], *change);
        let scheduled = everywhere(&[&scheduled[0], &scheduled[1]], *change);
        found_somewhere += usize::from([simulated, threads, hierarchies].contains(&Some(true)));
        let lowered = everywhere(&[&lowered], *change);
        let cells = [simulated, threads, hierarchies, scheduled, lowered].map(words).join(" | ");
        writeln!(table, "| `{name}` | {cells} |").expect("text grows");
    }
    assert!(CHANGES.len() >= 20 && found_somewhere >= 20, "{found_somewhere} of {}", CHANGES.len());
    let page = std::fs::read_to_string(root().join("docs/verification.md")).expect("the page");
    assert!(page.contains(&table), "docs/verification.md has another table than what is found:\n{table}");
}

/// In a trace of real threads is found what the page says that is found in one, as far as the run has it.
#[test]
fn what_the_page_says_is_found_in_traces_of_real_threads_is() {
    is_found_in_runs_of("lanes.toml", LANES, &DEPENDS);
}

/// The same of one of threads below schedulers.
#[test]
fn what_the_page_says_is_found_in_traces_of_real_hierarchies_is() {
    if !without_priorities() {
        is_found_in_runs_of("below.toml", BELOW, &[&DEPENDS[..], &DEPENDS_BELOW].concat());
    }
}

/// Every change that is found in a trace as if threads had made it is found in one of a run, but for those that
/// depend on what else happens. What a busy machine does to the one job that is changed may hide it: then another run is asked.
fn is_found_in_runs_of(name: &str, text: &str, depends: &[&str]) {
    let place = folder();
    let file = write(&place, name, text);
    let deterministic = Trace::simulated(&file, "300ms").as_threads();
    let is_due = |(name, change): &&(&str, Change)| {
        !depends.contains(name) && deterministic.tried(*change) == Some(true)
    };
    let mut due: Vec<&(&str, Change)> = CHANGES.iter().filter(is_due).collect();
    let mut missed = BTreeSet::new();
    for attempt in 0..ATTEMPTS {
        let out = within(&place, &format!("out{attempt}"));
        let options = ["--rt", "warn", "--no-lower", "--for", "300ms", "--fail-on", "never", "--out", &out];
        run(&[&["run", &file][..], &options].concat()).exits(0);
        let real = Trace::open(&file, &Path::new(&out).join("trace.talea"));
        due.retain(|(name, change)| {
            let is_found = real.tried(*change);
            if is_found == Some(false) {
                missed.insert(*name);
            }
            is_found != Some(true)
        });
        if due.is_empty() {
            break;
        }
    }
    let left: Vec<&str> = due.iter().map(|(name, _)| *name).collect();
    assert!(
        left.is_empty(),
        "{left:?} were not found in any of {ATTEMPTS} runs, and missed in some: {missed:?}"
    );
}

/// Runs in which a change is made until it is found.
const ATTEMPTS: usize = 5;

/// Changes that are found or not depending on what else happens at that moment.
const DEPENDS: [&str; 5] =
    ["jobs-exchanged", "start-early", "release-early", "successor-early", "preempt-dropped"];

/// The same below schedulers, where there is room for a little more.
const DEPENDS_BELOW: [&str; 2] = ["release-late", "executes-beyond-demand"];

/// The trace without what lies between, and with a record that says so, as a file.
fn with_loss(place: &tempfile::TempDir, whole: &Trace, (from, to): (i64, i64)) -> (String, Vec<Record>) {
    let at = |ns: i64| whole.metadata.start.saturating_add(Duration::from_nanos(ns));
    let is_kept = |record: &&Record| record.time < at(from) || record.time >= at(to);
    let mut kept: Vec<Record> = whole.records.iter().filter(is_kept).copied().collect();
    let lost = Lost {
        records: (whole.records.len() - kept.len()) as u64,
        since: None,
        ring: 0,
        cause: talea_record::LossCause::Overwritten.into(),
    };
    let here = kept.partition_point(|record| record.time < at(to));
    kept.insert(here, lost.at(at(to), Record::NO_CPU));
    let trace = within(place, "lost.talea");
    let mut log = talea_record::LogWriter::create(Path::new(&trace), &whole.metadata).expect("writable");
    kept.iter().for_each(|record| log.record(*record));
    log.finish().expect("written");
    (trace, kept)
}

/// Around a loss nothing is obeyed and nothing violated: it is unknown.
#[test]
fn what_was_lost_is_unknown() {
    let place = folder();
    let file = write(&place, "lanes.toml", LANES);
    let figure = example("figure-1.toml");
    for (file, length, stretch) in
        [(&file, "60ms", (20_000_000, 30_000_000)), (&figure, "400ms", (100_000_000, 220_000_000))]
    {
        let whole = Trace::simulated(file, length);
        let (trace, kept) = with_loss(&place, &whole, stretch);
        let verdict = whole.judged(&kept);
        assert!(verdict.values().all(|count| *count == 0), "{file}: {verdict:?}");
        let done = run(&["trace", "verify", file, &trace]).exits(0);
        assert!(done.words().contains("unknown, for"), "{}", done.stdout);
        assert!(done.words().contains("cases of the rule arrivals nothing is known"), "{}", done.stdout);
        let json = run(&["trace", "verify", file, &trace, "--json"]).exits(0).json();
        let lanes = if json["lanes"].is_object() { &json["lanes"] } else { &json };
        let rules = lanes["rules"].as_array().expect("a list");
        let arrivals = rules.iter().find(|rule| rule["rule"] == "arrivals").expect("every rule");
        assert!(arrivals["unknown"].as_u64() > Some(3), "{arrivals}");
        if whole.has_hierarchy() {
            let rules = json["decisions"]["rules"].as_array().expect("a list");
            let kept = rules.iter().find(|rule| rule["rule"] == "guarantees").expect("every rule");
            assert_eq!(kept["cases"], 0, "no guarantee is known to be kept");
        }
    }
}
