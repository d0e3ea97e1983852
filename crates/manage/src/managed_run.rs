//! A run of a set: arrivals from a common start to its end, what is recorded of them, and whether promises are kept.
//!
//! ```text
//!   prepared ──▶ awaited ──start──▶ under way ──end──▶ over
//! ```
//!
//! All of it happens under the dispatcher's lock, at scheduling points: whoever comes first after an instant at which
//! something is due brings it about, at the latest the controller, whose timer is set to it. So the records of a
//! hierarchy come from one place in the order in which things happened, and need one ring. Records are written when
//! the hierarchy *decides*; the kernel follows some microseconds later, which its own events show.

use crate::definitions::{Definitions, Unnamed};
use crate::member::Received;
use crate::member_jobs::MemberJobs;
use crate::thread_jobs::{Gained, ThreadJobs};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::Violation;
use talea_policy::arrangement::{Change, ChangeCause, Kept, Watch};
use talea_policy::hierarchy::{Transition, VpId};
use talea_record::decisions::DecisionRecords;
use talea_record::event::{
    self, Abort, BuiltinEvent, Complete, Dates, Flag, HLS, JobOrNone, Member, Preempt, Release, Resume,
    RunEnd, RunStart, Start, Supply,
};
use talea_record::ring::Definer;
use talea_record::stream::builtin_switch;
use talea_record::{
    Definition, EdgeEntry, EdgeNumbers, Event, JobId, MemberRole, Record, RingReader, RingWriter, RunOutcome,
    SchedulerEntry, Sink,
};
use talea_time::{Duration, Instant, Work};

/// Which marks of a node's run somebody records. Each is recorded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Both of them.
    Both,
    /// That it begins. A release thread says so early, before the first release.
    Beginning,
    /// That it ends. A hierarchy says so when the last of its records has been written.
    End,
}

impl Marks {
    /// Whether this one, RUN_START or RUN_END, is among them.
    pub fn include(self, event: Event) -> bool {
        match self {
            Marks::Both => true,
            Marks::Beginning => event == Event::RUN_START,
            Marks::End => event == Event::RUN_END,
        }
    }
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Prepared,
    /// The start has been agreed on.
    Awaited,
    UnderWay,
    Over,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Start,
    /// The next job of the member at this slot.
    Arrival(u32),
    End,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct EndedRun {
    /// What became of every promise.
    pub kept: Vec<Kept>,
    /// What the members that were there had received.
    pub received: Vec<Received>,
    /// What threads of this process that were there had received by their clocks, by the kernel's numbers.
    pub clocks: Vec<(u32, Work)>,
    /// When the run began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// When it was to end.
    pub planned_end: Instant,
    /// Edges, schedulers and threads that came while it lasted and that the trace does not tell of, for want of room.
    pub undefined: u64,
}

/// Where a hierarchy's records go, and what they say of it.
pub struct RunRecorder {
    /// The ring.
    writer: RingWriter,
    /// Index of its node.
    node: usize,
    /// Its CPUs, in the order of its processors.
    cpus: Vec<u16>,
    /// Which marks of the run it has.
    marks: Marks,
    /// Is given every record, and the ring that it goes to.
    count: fn(&RingWriter, &Record),
    /// Whether somebody judges what was received, for whom decisions are written whatever others want.
    is_audited: bool,
}

impl RunRecorder {
    /// Records go to this ring.
    pub fn new(writer: RingWriter, node: usize, cpus: Vec<u16>, marks: Marks) -> Self {
        RunRecorder { writer, node, cpus, marks, count: |_, _| (), is_audited: false }
    }

    /// The same, of which every record is given to `count` as well, before it is known whether anybody wants it.
    #[must_use]
    pub fn counted(self, count: fn(&RingWriter, &Record)) -> Self {
        RunRecorder { count, ..self }
    }

    #[inline]
    fn write(&mut self, record: Record) {
        (self.count)(&self.writer, &record);
        let is_audited = self.is_audited && is_for_audit(record.event);
        if is_audited || self.writer.is_wanted(builtin_switch(record.event)) {
            self.writer.record(record);
        }
    }

    /// Writes a record unless it has to wait for what is being defined.
    #[inline]
    fn put(&mut self, definitions: &mut Definitions, record: Record) {
        if !definitions.hold(record) {
            definitions.all().for_each(|waiting| self.write(waiting));
            self.write(record);
        }
    }
}

/// What the auditor reads, who judges by what was received: the decisions, and the run's end.
#[inline]
fn is_for_audit(event: Event) -> bool {
    event.family() == HLS.number || event == Event::RUN_END
}

/// A run of a set, from its preparation to its end.
pub struct ManagedRun {
    recorder: RunRecorder,
    pub(crate) watch: Watch,
    decisions: DecisionRecords,
    /// The threads of the infrastructure, and what they are for.
    infrastructure: Vec<(u32, MemberRole)>,
    /// Threads whose edges have been told, with these.
    introduced: HashSet<(u32, u16)>,
    edges: EdgeNumbers,
    /// By place: whether its processor is left to the kernel.
    away: Vec<bool>,
    /// Edges that have been held, of which each is the next of the node.
    held: usize,
    /// Edges that have come and gone before the run begins.
    early: Vec<Record>,
    /// Schedulers that have come.
    schedulers: u32,
    /// What the stream's readers have yet to be told of.
    definitions: Definitions,
    stage: Stage,
    pub(crate) start: Instant,
    end: Instant,
    planned_end: Instant,
    /// The next arrival of each member, by slot.
    agenda: BinaryHeap<Reverse<(Instant, u32)>>,
    pub(crate) ended_run: Option<EndedRun>,
}

impl ManagedRun {
    /// A run with at most so many members.
    pub fn new(recorder: RunRecorder, watch: Watch, edges: EdgeNumbers, members_max: usize) -> Self {
        ManagedRun {
            decisions: DecisionRecords::new(&recorder.cpus, edges),
            away: vec![false; recorder.cpus.len()],
            recorder,
            watch,
            infrastructure: Vec::new(),
            introduced: HashSet::with_capacity(members_max),
            edges,
            held: 0,
            early: Vec::new(),
            schedulers: 0,
            definitions: Definitions::new(),
            stage: Stage::Prepared,
            start: Instant::MAX,
            end: Instant::MAX,
            planned_end: Instant::MAX,
            agenda: BinaryHeap::with_capacity(members_max),
            ended_run: None,
        }
    }

    /// It will last from `start` to `end`.
    pub(crate) fn await_start(&mut self, start: Instant, end: Instant) {
        (self.stage, self.start, self.end) = (Stage::Awaited, start, end);
        self.watch.end_at(end);
        self.planned_end = end;
    }

    /// When it ends or has ended, and when it was to end.
    pub(crate) fn ends(&self) -> (Instant, Instant) {
        (self.end, self.planned_end)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// The instant at which something is due next.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.stage {
            Stage::Prepared | Stage::Over => None,
            Stage::Awaited => Some(self.start),
            Stage::UnderWay => {
                let arrival = self.agenda.peek().map_or(Instant::MAX, |Reverse((at, _))| *at);
                Some(arrival.min(self.end)).filter(|next| *next < Instant::MAX)
            }
        }
    }

    /// What is due at `now`, the earliest first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        if self.stage == Stage::Awaited {
            return Some(Due::Start);
        }
        match self.agenda.peek() {
            Some(&Reverse((at, slot))) if at < self.end => {
                self.agenda.pop();
                Some(Due::Arrival(slot))
            }
            _ => Some(Due::End),
        }
    }

    /// The run begins.
    pub(crate) fn begin(&mut self) {
        self.stage = Stage::UnderWay;
        let planned_end = (self.end != Instant::MAX).then_some(self.end);
        let node = self.recorder.node as u16;
        self.mark(self.start, RunStart { planned_end, node });
        for &(tid, role) in &self.infrastructure {
            let (edge, role) = (None, role.into());
            self.recorder
                .write(Member { tid, started_by: 0, edge, node, role }.at(self.start, Record::NO_CPU));
            self.definitions.meet(Unnamed { tid, since: self.start });
        }
        let (recorder, definitions) = (&mut self.recorder, &mut self.definitions);
        for change in self.early.drain(..) {
            recorder.put(definitions, Record { time: self.start, ..change });
        }
        for (place, _) in self.away.iter().enumerate().filter(|(_, away)| **away) {
            let supply = Supply { node, given: Flag(false) }.at(self.start, recorder.cpus[place]);
            recorder.put(definitions, supply);
        }
        self.decisions
            .beginning(&self.watch, self.start)
            .for_each(|record| recorder.put(definitions, record));
    }

    /// The place's processor is left to the kernel from now on, or given back. Comes before what that sets off.
    pub(crate) fn supply(&mut self, place: usize, given: Flag, now: Instant) {
        self.away[place] = !given.0;
        self.job(now, Some(place), Supply { node: self.recorder.node as u16, given });
    }

    /// These threads serve the set.
    pub(crate) fn serve(&mut self, infrastructure: Vec<(u32, MemberRole)>) {
        self.infrastructure = infrastructure;
    }

    /// The decisions from now on, for somebody who judges what of them was received, and what is short by no more is no broken promise.
    pub(crate) fn audit(&mut self) -> (RingReader, Duration) {
        self.recorder.is_audited = true;
        (self.recorder.writer.reader(), self.watch.tolerance())
    }

    /// The thread of this number stands behind the virtual processor, which is told once. One of the same program has started it, if
    /// that was seen.
    pub(crate) fn introduce(&mut self, (tid, started_by): (u32, Option<u32>), vp: VpId, now: Instant) {
        let edge = self.watch.edge_of(vp).and_then(|own| self.edges.number(own));
        if let Some(edge) = edge.filter(|_| self.stage == Stage::UnderWay)
            && self.introduced.insert((tid, edge))
        {
            let (node, role) = (self.recorder.node as u16, MemberRole::Scheduled.into());
            let started_by = started_by.unwrap_or(0);
            let member = Member { tid, started_by, edge: Some(edge.into()), node, role };
            let since = now.clamp(self.start, self.end);
            self.write(member.at(since, Record::NO_CPU));
            self.definitions.meet(Unnamed { tid, since });
        }
    }

    /// The thread of this number has ended, and the number may be another's next.
    pub(crate) fn forget(&mut self, tid: u32, vp: VpId) {
        if let Some(edge) = self.watch.edge_of(vp).and_then(|own| self.edges.number(own)) {
            self.introduced.remove(&(tid, edge));
        }
    }

    /// The member at `slot` has another arrival to come.
    pub(crate) fn expect(&mut self, slot: u32, jobs: &ThreadJobs) {
        let at = jobs.next_release(self.start);
        if at < Instant::MAX && self.stage == Stage::UnderWay {
            self.agenda.push(Reverse((at, slot)));
        }
    }

    /// The run ends at `now`, or did at its planned end. One that had not begun begins and ends with its start.
    pub(crate) fn close(&mut self, now: Instant) {
        if self.is_over() {
            return;
        }
        if self.stage != Stage::UnderWay {
            self.start = self.start.min(now);
            self.begin();
        }
        let at = now.max(self.start).min(self.end);
        self.end = at;
        self.note_changes();
        let mut broken: Vec<(usize, Violation)> = self.watch.found().collect();
        self.watch.close_at(at, |edge, violation| broken.push((edge, violation)));
        for (edge, violation) in broken {
            self.violated(edge, &violation, at);
        }
        let node = self.recorder.node as u16;
        self.mark(at, RunEnd { node, how: RunOutcome::Over.into() });
        self.definitions.all().for_each(|record| self.recorder.write(record));
        self.stage = Stage::Over;
    }

    /// Edges have come into other states at `now`.
    #[inline]
    pub(crate) fn judge(&mut self, transition: Transition, now: Instant) {
        // What comes late, after the planned end, is judged as if it had come then: nothing is promised beyond.
        let now = now.min(self.end);
        if let Some(record) = self.decisions.record(transition, &self.watch, now) {
            self.write(record);
        }
        let ManagedRun { watch, edges, recorder, definitions, stage, .. } = self;
        watch.note(transition, now, |edge, violation| {
            if let Some(number) = edges.number(edge).filter(|_| *stage == Stage::UnderWay) {
                let broken = event::Violation::of(number.into(), &violation);
                recorder.put(definitions, broken.at(now, Record::NO_CPU));
            }
        });
    }

    /// Records what came to light about promises when somebody asked.
    pub(crate) fn tell_found(&mut self, now: Instant) {
        let found: Vec<(usize, Violation)> = self.watch.found().collect();
        if self.stage == Stage::UnderWay {
            found.iter().for_each(|(edge, violation)| self.violated(*edge, violation, now.min(self.end)));
        }
    }

    /// Records edges that have come or gone, which is to be done before anything else is decided. Returns whether there were any.
    pub(crate) fn note_changes(&mut self) -> bool {
        let changes: Vec<Change> = self.watch.told().collect();
        changes.iter().for_each(|change| self.record_change(change));
        !changes.is_empty()
    }

    fn record_change(&mut self, change: &Change) {
        match change {
            Change::Held { parent, child, promise, vp, at, cause, .. } => {
                let own = self.held;
                self.held += 1;
                if self.edges.knows(own) {
                    self.decisions.stands(own, *vp);
                    return;
                }
                if let Some(number) = self.edges.number(own) {
                    let guarantee =
                        promise.as_ref().map_or(&Guarantee::Null, |promise| promise.guarantee()).to_string();
                    let (node, parent, child) = (self.recorder.node, parent.clone(), child.clone());
                    let entry = EdgeEntry { node, parent, child, guarantee };
                    self.definitions.queue(Definition::Edge { number, entry });
                } else {
                    self.definitions.lose();
                }
                let at = (*at).min(self.end);
                let records: Vec<Record> = self.decisions.added(own, *vp, at, *cause).collect();
                records.into_iter().for_each(|record| self.write_change(record));
            }
            Change::Altered { vp, at, cause } => {
                if let Some(record) = self.decisions.altered(*vp, (*at).min(self.end), *cause) {
                    self.write_change(record);
                }
            }
            Change::LetGo { vp, at, cause } => {
                if let Some(record) = self.decisions.removed(*vp, (*at).min(self.end), *cause) {
                    self.introduced.retain(|(_, edge)| *edge != record.source);
                    self.write_change(record);
                }
            }
        }
    }

    /// What comes or goes before the run begins is a change of the tables like any other, and is told when it begins.
    fn write_change(&mut self, record: Record) {
        match self.stage {
            Stage::Prepared | Stage::Awaited if record.event == Event::EDGE_CHANGE => self.early.push(record),
            _ => self.write(record),
        }
    }

    /// There is a scheduler of this name and kind from now on.
    pub(crate) fn define_scheduler(&mut self, name: &str, kind: &str) {
        let (node, name, kind) = (self.recorder.node, name.to_owned(), kind.to_owned());
        let (serial, entry) = (self.schedulers, SchedulerEntry { node, name, kind });
        self.schedulers += 1;
        self.definitions.queue(Definition::Scheduler { serial, entry });
    }

    /// Takes the threads that are to be named.
    pub(crate) fn unnamed(&mut self) -> impl Iterator<Item = Unnamed> + '_ {
        self.definitions.unnamed()
    }

    /// Who enters definitions, and the node that they are of.
    pub(crate) fn definer(&self) -> (Definer, usize) {
        (self.recorder.writer.definer(), self.recorder.node)
    }

    /// So many threads could not be defined.
    pub(crate) fn lose_threads(&mut self, threads: u64) {
        self.definitions.lose_threads(threads);
        if let Some(ended) = &mut self.ended_run {
            ended.undefined += threads;
        }
    }

    /// Takes what the stream's readers have yet to be told of, and who tells them. That may wait, and is not done under the lock;
    /// [`Self::defined`] says that it is done.
    pub(crate) fn definitions(&mut self) -> Option<(Definer, Vec<Definition>)> {
        let queued = self.definitions.take()?;
        Some((self.recorder.writer.definer(), queued))
    }

    /// What was taken has been told, but for so many definitions: the records that waited for it are written.
    pub(crate) fn defined(&mut self, lost: u64) {
        self.definitions.entered(lost);
        self.definitions.due().for_each(|record| self.recorder.write(record));
    }

    /// What was decided from then on cannot be read yet.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.definitions.since()
    }

    /// How many edges, schedulers and threads readers of the trace do not know, for want of room.
    pub(crate) fn undefined(&self) -> u64 {
        self.definitions.lost()
    }

    /// A promise has been broken.
    fn violated(&mut self, edge: usize, violation: &Violation, at: Instant) {
        if let Some(number) = self.edges.number(edge) {
            let broken = event::Violation::of(number.into(), violation);
            self.write(broken.at(at, Record::NO_CPU));
        }
    }

    /// A maximum was not kept, as the kernel's account says when the run is over.
    pub(crate) fn exceeded(
        &mut self,
        edge: usize,
        (amount, is_held_late): (Duration, bool),
        window: (Instant, Instant),
        now: Instant,
    ) {
        if let Some(number) = self.edges.number(edge) {
            let exceeded = event::Violation::exceeded(number, amount, window, is_held_late);
            self.recorder.write(exceeded.at(now, Record::NO_CPU));
        }
    }

    /// The edge above a member that has gone is judged no more.
    pub(crate) fn let_go(&mut self, vp: VpId, now: Instant, cause: ChangeCause) {
        self.watch.let_go(vp, now, cause);
        self.watch.forget_work(vp);
    }

    // Records of jobs.

    pub(crate) fn released(&mut self, jobs: &ThreadJobs, number: u64, now: Instant) {
        let Dates { nominal, deadline } = jobs.dates(number, self.start);
        self.job(now, None, Release { job: jobs.id(number), lane: jobs.lane, nominal, deadline });
    }

    /// A job has got the processor of `place`.
    pub(crate) fn gained(
        &mut self,
        who: &MemberJobs,
        place: usize,
        (job, gained): (JobId, Gained),
        now: Instant,
    ) {
        let lane = who.lane();
        let depth = who.backlog().min(u64::from(u16::MAX)) as u16;
        match gained {
            Gained::Starts => {
                self.job(now, Some(place), Start { job, lane, depth, posted_by: JobOrNone(None) });
            }
            Gained::Resumes => self.job(now, Some(place), Resume { job, lane }),
        }
    }

    /// A job has lost the processor of `place`, or goes on without one, to this one if it is known.
    pub(crate) fn lost(
        &mut self,
        lane: u16,
        place: Option<usize>,
        (job, by): (JobId, Option<JobId>),
        now: Instant,
    ) {
        self.job(now, place, Preempt { job, lane, by });
    }

    /// A job is done. `place` is where it ran.
    pub(crate) fn completed(&mut self, jobs: &ThreadJobs, number: u64, place: Option<usize>, now: Instant) {
        let Dates { nominal, deadline } = jobs.dates(number, self.start);
        self.job(now, place, Complete { job: jobs.id(number), lane: jobs.lane, nominal, deadline });
    }

    /// A job was given up. `place` is where it ran.
    pub(crate) fn aborted(&mut self, jobs: &ThreadJobs, number: u64, place: Option<usize>, now: Instant) {
        let Dates { nominal, deadline } = jobs.dates(number, self.start);
        let (job, lane, running) = (jobs.id(number), jobs.lane, Flag(place.is_some()));
        self.job(now, place, Abort { job, lane, nominal, deadline, running });
    }

    fn job(&mut self, now: Instant, place: Option<usize>, event: impl BuiltinEvent) {
        let cpu = place.map_or(Record::NO_CPU, |place| self.recorder.cpus[place]);
        self.write(event.at(now.min(self.end), cpu));
    }

    fn mark<E: BuiltinEvent>(&mut self, time: Instant, event: E) {
        if self.recorder.marks.include(E::EVENT) {
            self.write(event.at(time, Record::NO_CPU));
        }
    }

    /// Nothing is written of what comes before the run or after it.
    fn write(&mut self, record: Record) {
        if self.stage == Stage::UnderWay {
            self.recorder.put(&mut self.definitions, record);
        }
    }
}
