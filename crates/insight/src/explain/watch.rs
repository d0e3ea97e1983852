//! The second pass: what happened while the jobs of the targets were released and unfinished.

use super::cause::{Cause, KernelOrder, Order, Stage};
use super::find::Target;
use super::life::{Hop, TakenEvent};
use super::pieces::{Claim, Cost, Pieces, SpentAt};
use crate::hierarchy::{DECISIONS, Hierarchies, Turn};
use crate::occupancy::{Occupancy, Occupant, SleepState, Unknown, WaitingForRoom};
use crate::own_wcets::OwnWcets;
use crate::receipts::{Spell, Withholdings, lingering};
use std::collections::HashMap;
use talea_record::event::{self, Typed};
use talea_record::recorded_events::Beginning;
use talea_record::{CostKind, Event, JobId, KernelPolicy, Metadata, Record, RecordedEvents, Sink};
use talea_time::{Instant, Work};

/// Unfinished jobs whose keys are remembered; more can only be jobs whose end was lost.
const KEYS: usize = 1 << 18;

/// What decides a job's place in its lane.
#[derive(Clone, Copy, Debug)]
struct OrderKey {
    released: Instant,
    deadline: Instant,
    wcet: Work,
    /// When it last got the lane.
    got: Option<Instant>,
    /// The lane had no thread for it, and it has not had the lane since.
    lacks_slot: bool,
}

/// What of the time on processors the trace tells.
#[derive(Clone, Copy, Debug)]
struct NodeCoverage {
    /// Whose job executes.
    jobs: bool,
    /// Whether a processor without a job dispatches or is idle.
    dispatching: bool,
    /// Whom the schedulers of its hierarchy gave which processor.
    decisions: bool,
}

impl NodeCoverage {
    fn of(metadata: &Metadata, recorded: &RecordedEvents, node: usize) -> Self {
        let is_ours = metadata.nodes[node].decided_by.is_ours();
        let of_jobs = recorded.has_all(&[Event::START, Event::WAIT, Event::COMPLETE, Event::ABORT]);
        // On one processor, a job that begins has preempted the one that ran.
        let is_alone = metadata.nodes[node].cpus.len() == 1;
        let jobs = of_jobs && (is_alone || recorded.has_all(&[Event::PREEMPT, Event::RESUME]));
        NodeCoverage {
            jobs,
            // Threads of a lowered hierarchy tell of jobs alone.
            dispatching: jobs && is_ours && recorded.has_all(&[Event::COST, Event::WAKE, Event::SLEEP]),
            decisions: recorded.has_all(&DECISIONS) && is_ours,
        }
    }
}

/// One job of one target, from its release to its end.
struct WatchedJob {
    /// Index of the target, and of the hop within.
    place: (usize, usize),
    hop: Hop,
    node: usize,
    lane: usize,
    end: Instant,
    pieces: Pieces,
    events: Vec<TakenEvent>,
}

/// What was seen of all targets.
pub(super) struct Observations {
    /// Of every job, by target and hop.
    pub pieces: HashMap<(usize, usize), Pieces>,
    /// What these took of channels, in the order of time within each.
    pub events: HashMap<(usize, usize), Vec<TakenEvent>>,
    /// By target.
    pub releases: HashMap<usize, Release>,
    /// At the end.
    pub occupancy: Occupancy,
}

/// Watches the jobs on the targets' paths.
pub(super) struct Watcher<'a> {
    metadata: &'a Metadata,
    pub occupancy: Occupancy,
    hierarchies: Hierarchies,
    withholdings: Withholdings,
    order_keys: HashMap<u64, OrderKey>,
    own_wcets: OwnWcets,
    /// By node.
    coverage: Vec<NodeCoverage>,
    beginning: Beginning,
    /// Jobs to come, the last of which is the next.
    coming: Vec<WatchedJob>,
    open: Vec<WatchedJob>,
    done: Vec<WatchedJob>,
    /// With the index of the target.
    releases: Vec<(usize, Release)>,
    cursor: Instant,
}

/// The way to the first release of a target, on which others can keep the release thread from waking.
#[derive(Debug)]
pub(super) struct Release {
    node: usize,
    due: Instant,
    released: Instant,
    /// Stretches, in order, in which the kernel tells what kept the thread from a processor.
    pub detained: Vec<(Instant, Instant, Cause)>,
}

impl Release {
    /// The cause kept the thread off between the instants, as far as its release was due and had not come.
    fn detain(&mut self, from: Instant, to: Instant, cause: Cause) {
        let (from, to) = (from.max(self.due), to.min(self.released));
        match self.detained.last_mut() {
            _ if from >= to => {}
            Some((_, end, last)) if *last == cause && *end == from => *end = to,
            _ => self.detained.push((from, to, cause)),
        }
    }

    /// What kept the thread off between the instants had been withheld from the run's threads.
    fn withhold(&mut self, (begin, end): (Instant, Instant), taker: impl Fn(Cause) -> u32) {
        for (from, to, cause) in std::mem::take(&mut self.detained) {
            let (inner_from, inner_to) = (from.max(begin), to.min(end));
            if inner_from >= inner_to {
                self.detain(from, to, cause);
                continue;
            }
            self.detain(from, inner_from, cause);
            self.detain(inner_from, inner_to, Cause::Withheld { thread: taker(cause) });
            self.detain(inner_to, to, cause);
        }
    }
}

impl<'a> Watcher<'a> {
    pub fn new(metadata: &'a Metadata, recorded: &RecordedEvents, targets: &[&Target]) -> Self {
        let mut coming = Vec::new();
        let mut releases = Vec::new();
        for (target, described) in targets.iter().enumerate() {
            for (position, hop) in described.path.iter().enumerate() {
                let lane = metadata.operations[hop.job.operation.index()].lane;
                let end = hop.ended.unwrap_or_else(|| described.until(hop)).min(described.end);
                if position == 0 {
                    let node = metadata.lanes[lane].node;
                    let (due, released) = (described.due, hop.released);
                    releases.push((target, Release { node, due, released, detained: Vec::new() }));
                }
                coming.push(WatchedJob {
                    place: (target, position),
                    hop: *hop,
                    node: metadata.lanes[lane].node,
                    lane,
                    end,
                    pieces: Pieces::new(position, hop.released),
                    events: Vec::new(),
                });
            }
        }
        coming.sort_by_key(|watch| std::cmp::Reverse(watch.hop.released));
        Watcher {
            metadata,
            occupancy: Occupancy::new(metadata),
            hierarchies: Hierarchies::new(metadata),
            withholdings: Withholdings::new(metadata),
            order_keys: HashMap::new(),
            own_wcets: OwnWcets::default(),
            beginning: recorded.beginning(),
            coverage: (0..metadata.nodes.len())
                .map(|node| NodeCoverage::of(metadata, recorded, node))
                .collect(),
            coming,
            open: Vec::new(),
            done: Vec::new(),
            releases,
            cursor: metadata.start,
        }
    }

    /// What was seen, at the end of the trace.
    pub fn finish(mut self) -> Observations {
        self.withholdings.close();
        self.withhold();
        self.reach(Instant::MAX);
        self.done.append(&mut self.open);
        let (mut pieces, mut events) = (HashMap::new(), HashMap::new());
        for watch in self.done {
            pieces.insert(watch.place, watch.pieces);
            events.insert(watch.place, watch.events);
        }
        Observations {
            pieces,
            events,
            releases: self.releases.into_iter().collect(),
            occupancy: self.occupancy,
        }
    }

    /// Nothing changed up to `now`: what kept release threads off did so until then.
    fn hold(&mut self, now: Instant) {
        let from = self.cursor;
        self.cursor = from.max(now);
        for node in 0..self.metadata.nodes.len() {
            let Some(cause) = self.detention(node) else { continue };
            for (_, release) in self.releases.iter_mut().filter(|(_, release)| release.node == node) {
                release.detain(from, now, cause);
            }
        }
    }

    /// What of others keeps the node's release thread from waking: that the kernel leaves a processor idle, or else that strangers have
    /// all of them, of which a program counts before an interrupt, which is short. Where a job, a lane or nobody has one, it is
    /// the wake-up itself that is late.
    fn detention(&self, node: usize) -> Option<Cause> {
        let mut processors = 0..self.occupancy.processors(node).len();
        if processors.any(|index| self.occupancy.occupant(node, index) == Occupant::IdleBeforeReady) {
            return Some(Cause::Idle);
        }
        let strangers = (0..self.occupancy.processors(node).len()).map(|index| {
            match self.occupancy.occupant(node, index) {
                Occupant::Companion(thread) => Some((0, Cause::Companion { thread })),
                Occupant::Program(thread) => Some((0, Cause::Program { thread })),
                Occupant::Interrupt(interrupt) => Some((1, Cause::Interrupt { interrupt })),
                _ => None,
            }
        });
        let strangers: Option<Vec<(u8, Cause)>> = strangers.collect();
        strangers?.into_iter().min_by_key(|(rank, _)| *rank).map(|(_, cause)| cause)
    }

    /// Everything up to `now` was as it is.
    fn reach(&mut self, now: Instant) {
        self.hold(now);
        while self.coming.last().is_some_and(|watch| watch.hop.released <= now) {
            self.open.extend(self.coming.pop());
        }
        let Watcher { metadata, occupancy, hierarchies, order_keys, coverage, open, beginning, .. } = self;
        let view = View { metadata, occupancy, hierarchies, order_keys, coverage, beginning: *beginning };
        for watch in open {
            let to = now.min(watch.end);
            if to > watch.pieces.cursor() {
                watch.reach(&view, to);
            }
        }
        let lingering = |node: usize| lingering(self.hierarchies.decide_on(node));
        let is_open = |watch: &WatchedJob| {
            self.withholdings.open_since(watch.node).is_some_and(|since| since < watch.end)
        };
        let over =
            |watch: &mut WatchedJob| watch.end.saturating_add(lingering(watch.node)) < now && !is_open(watch);
        self.done.extend(self.open.extract_if(.., over));
    }

    /// Notes what has been found to be withheld.
    fn withhold(&mut self) {
        let Watcher { withholdings, occupancy, open, releases, .. } = self;
        for (node, spell) in withholdings.spells() {
            let Spell { cpu, thread, from, to } = spell;
            let processors = occupancy.processors(node);
            let index = processors.iter().position(|processor| processor.cpu == cpu);
            let is_told = index.is_some_and(|index| occupancy.is_told_by_kernel(node, index));
            let taker = |cause: Cause| match cause {
                Cause::Program { thread } | Cause::Companion { thread } => thread,
                Cause::Idle | Cause::Blocked | Cause::WakeUp if is_told => 0,
                _ => thread,
            };
            if !occupancy.is_simulated() {
                open.iter_mut()
                    .filter(|watch| watch.node == node)
                    .for_each(|watch| watch.pieces.withhold(spell, taker));
                let of_node = releases.iter_mut().filter(|(_, release)| release.node == node);
                of_node.for_each(|(_, release)| release.withhold((from, to), taker));
            }
        }
    }

    fn learn(&mut self, record: &Record) {
        match record.typed() {
            Typed::Release(release) => {
                if self.order_keys.len() >= KEYS {
                    self.order_keys.clear();
                }
                let (released, deadline) = (record.time, release.deadline);
                let entry = self.metadata.operations.get(release.job.operation.index());
                let declared = || entry.map_or(Work::ZERO, |entry| entry.wcet);
                let wcet = self.own_wcets.released(release.job).unwrap_or_else(declared);
                let order_keys = OrderKey { released, deadline, wcet, got: None, lacks_slot: false };
                self.order_keys.insert(record.causal, order_keys);
            }
            Typed::Start(_) | Typed::Resume(_) => {
                if let Some(order_keys) = self.order_keys.get_mut(&record.causal) {
                    (order_keys.got, order_keys.lacks_slot) = (Some(record.time), false);
                }
            }
            Typed::NoSlot(_) => {
                if let Some(order_keys) = self.order_keys.get_mut(&record.causal) {
                    order_keys.lacks_slot = true;
                }
            }
            Typed::Complete(_) | Typed::Abort(_) => {
                self.order_keys.remove(&record.causal);
            }
            _ => {}
        }
    }

    fn cost(&mut self, record: &Record, told: event::Cost) {
        let lane = told.lane.map(usize::from).filter(|lane| *lane < self.metadata.lanes.len());
        let node = lane.map_or(told.node as usize, |lane| self.metadata.lanes[lane].node);
        let cost = Cost {
            from: Instant::from_nanos(record.time.as_nanos().saturating_sub(told.length_ns())),
            to: record.time,
            cpu: record.cpu,
            lane,
            kind: told.kind.known(),
        };
        for watch in self.open.iter_mut().filter(|watch| watch.node == node) {
            watch.pieces.overlay(cost, watch.lane);
        }
    }
}

impl Sink for Watcher<'_> {
    fn record(&mut self, record: Record) {
        self.reach(record.time);
        self.occupancy.apply(&record);
        self.hierarchies.apply(&record);
        self.withholdings.record(record);
        self.withhold();
        match record.typed() {
            _ if record.event.is_job() || record.event == Event::NO_SLOT => self.learn(&record),
            Typed::JobWcet(told) => self.own_wcets.hear(told),
            Typed::Cost(cost) => self.cost(&record, cost),
            Typed::Deliver(told) => {
                let of_job = |watch: &&mut WatchedJob| watch.hop.job == told.job;
                for watch in self.open.iter_mut().filter(of_job) {
                    watch.events.push(TakenEvent::of(self.metadata, told));
                }
            }
            Typed::Lost(lost) if !lost.is_of_kernel() => {
                let since = lost.since_or_zero();
                self.open.iter_mut().for_each(|watch| watch.pieces.doubt(since, record.time));
            }
            _ => {}
        }
    }
}

/// Who has a processor, as far as the records tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    One(Occupant),
    /// One of several jobs that have begun; nobody saw which.
    Several,
}

/// What is known at one instant.
struct View<'a> {
    metadata: &'a Metadata,
    occupancy: &'a Occupancy,
    hierarchies: &'a Hierarchies,
    order_keys: &'a HashMap<u64, OrderKey>,
    coverage: &'a [NodeCoverage],
    beginning: Beginning,
}

impl WatchedJob {
    /// Splits the time up to `to`, in which nothing was recorded, where the job's stage changes, and where a job of its lane waits for room no longer.
    fn reach(&mut self, view: &View<'_>, to: Instant) {
        let began = self.hop.started.unwrap_or(Instant::MAX);
        while self.pieces.cursor() < to {
            let now = self.pieces.cursor();
            let stage = if now < began { Stage::Waiting } else { Stage::Begun };
            let until = view.occupancy.waiting_for_room(self.lane, now).map(|waiting| waiting.until);
            let next = [Some(began), until].into_iter().flatten().filter(|next| *next > now).min();
            self.put(view, next.map_or(to, |next| next.min(to)), stage);
        }
    }

    fn put(&mut self, view: &View<'_>, to: Instant, stage: Stage) {
        let (cause, spent_at) = self.cause(view, stage);
        let schedulers_decide = view.hierarchies.decide_on(self.node) && !view.is_by_kernel(self.node);
        let is_own = |cpu: u16| !schedulers_decide || view.hierarchies.has(self.lane, cpu);
        let claim = if spent_at.cpu.is_some_and(is_own) { Claim::Own } else { Claim::Others };
        self.pieces.push(to, stage, cause, (spent_at, claim));
    }

    /// What the time goes into right now.
    ///
    /// On several processors a job that has none could have any of them. The one to ask about is the least important:
    /// one where its own lane dispatches, an idle one, the one of the lowest lane, and so on.
    fn cause(&self, view: &View<'_>, stage: Stage) -> (Cause, SpentAt) {
        let processors = view.occupancy.processors(self.node);
        if !view.coverage[self.node].jobs {
            let cpu = processors.first().filter(|_| processors.len() == 1).map(|processor| processor.cpu);
            return (self.told_by_kernel(view), SpentAt { cpu, lane: None });
        }
        if !view.sees_threads(self.node) {
            return (Cause::Unrecorded, SpentAt { cpu: None, lane: None });
        }
        let holders = || (0..processors.len()).map(|index| (index, view.holder(self.node, index)));
        let at = |index: usize, lane: Option<usize>| SpentAt { cpu: Some(processors[index].cpu), lane };
        let blamed = |index: usize, holder: Holder| match holder {
            Holder::One(who) => (self.blame(view, who, stage), at(index, who_lane(view, who))),
            Holder::Several => (Cause::Shared, at(index, None)),
        };
        // Of a program's job nobody tells when it begins: all that its threads do is for it.
        let is_programs = view.is_by_kernel(self.node) && self.hop.started.is_none();
        let is_own = |(_, holder): &(usize, Holder)| match holder {
            Holder::One(Occupant::Job(job)) => *job == self.hop.job,
            Holder::One(Occupant::Lane(lane)) => is_programs && *lane == self.lane,
            _ => false,
        };
        if let Some((index, _)) = holders().find(is_own) {
            return (Cause::Execution, at(index, Some(self.lane)));
        }
        let now = self.pieces.cursor();
        if let Some(blocked) = view.occupancy.blocked(self.lane) {
            let own = view.level(self.hop.job);
            let is_above = |(_, holder): &(usize, Holder)| match holder {
                Holder::One(Occupant::Job(job)) => blocked.by != Some(*job) && view.level(*job) < own,
                _ => false,
            };
            // Neither of the two runs while a higher lane has the only processor.
            let above = holders().find(is_above).filter(|_| processors.len() == 1);
            return match above {
                Some((index, holder)) => blamed(index, holder),
                None => {
                    let cause = match blocked.job {
                        job if job != self.hop.job => {
                            Cause::Peer { job, order: self.order(view, job, stage) }
                        }
                        _ => Cause::Serial { job: blocked.by },
                    };
                    (cause, SpentAt { cpu: None, lane: Some(self.lane) })
                }
            };
        }
        if let Some(WaitingForRoom { job, input, .. }) = view.occupancy.waiting_for_room(self.lane, now) {
            let cause = match view.metadata.inputs.get(input) {
                _ if job != self.hop.job => Cause::Peer { job, order: self.order(view, job, stage) },
                Some(input) => Cause::Room { reader: input.operation },
                None => Cause::Blocked,
            };
            return (cause, SpentAt { cpu: None, lane: Some(self.lane) });
        }
        if let Some(index) = view.occupancy.processor_of(self.node, self.hop.job) {
            return match view.holder(self.node, index) {
                Holder::One(Occupant::Idle) => (Cause::Blocked, at(index, None)),
                holder => blamed(index, holder),
            };
        }
        let schedulers_decide = view.hierarchies.decide_on(self.node) && !view.is_by_kernel(self.node);
        if schedulers_decide && let Some((cause, edge)) = self.turn(view) {
            let cpu = edge.and_then(|edge| view.hierarchies.processor(edge));
            return (cause, SpentAt { cpu, lane: None });
        }
        // Of lanes below other schedulers, those processors that these gave them.
        let is_given =
            |index: usize| !schedulers_decide || view.hierarchies.has(self.lane, processors[index].cpu);
        let holders = || holders().filter(|(index, _)| is_given(*index));
        let of_lane = |(_, holder): &(usize, Holder)| match holder {
            Holder::One(Occupant::Job(job)) => view.occupancy.lane_of(*job) == Some(self.lane),
            _ => false,
        };
        let chosen = holders()
            .find(of_lane)
            .or_else(|| holders().min_by_key(|(_, holder)| self.importance(view, *holder)));
        match chosen {
            Some((index, holder)) => blamed(index, holder),
            None if !view.tells_idle(self.node) => (Cause::Unrecorded, SpentAt { cpu: None, lane: None }),
            None => (Cause::Idle, SpentAt { cpu: None, lane: None }),
        }
    }

    /// What the schedulers above have decided, and the edge to whom they gave a processor instead; nothing if they gave the job's
    /// place one.
    fn turn(&self, view: &View<'_>) -> Option<(Cause, Option<usize>)> {
        if !view.coverage[self.node].decisions {
            return Some((Cause::Unrecorded, None));
        }
        match view.hierarchies.turn(self.lane) {
            Turn::Granted => None,
            Turn::Others(edge) => {
                let cpu = view.hierarchies.processor(edge);
                let processors = view.occupancy.processors(self.node);
                let index = processors.iter().position(|processor| Some(processor.cpu) == cpu);
                let job = index.and_then(|index| match view.holder(self.node, index) {
                    Holder::One(Occupant::Job(job)) => Some(job),
                    _ => None,
                });
                let last = view.hierarchies.last(edge);
                Some((Cause::Turn { edge, last, job }, Some(edge)))
            }
            Turn::NotAsked(edge) => Some((Cause::UsedUp { edge }, None)),
            Turn::LeftInSlices => Some((Cause::LeftInSlices, None)),
            Turn::NotWanted => Some((Cause::WakeUp, None)),
            Turn::Unknown if view.beginning == Beginning::UnderWay => Some((Cause::Unheard, None)),
            Turn::Unknown => Some((Cause::Uncertain, None)),
        }
    }

    /// What the kernel alone tells, where events of jobs were not recorded: of one processor, that others have it.
    fn told_by_kernel(&self, view: &View<'_>) -> Cause {
        let is_alone = view.occupancy.processors(self.node).len() == 1;
        let who = view.occupancy.occupant(self.node, 0);
        let is_anothers = matches!(
            who,
            Occupant::Companion(_)
                | Occupant::Program(_)
                | Occupant::Interrupt(_)
                | Occupant::IdleBeforeReady
                | Occupant::Release
                | Occupant::Receiver
        );
        let is_known = is_alone && is_anothers && view.occupancy.identifies(self.node);
        if is_known { self.blame(view, who, Stage::Waiting) } else { Cause::Unrecorded }
    }

    /// Who is asked first why it has its processor although this job has none.
    fn importance(&self, view: &View<'_>, holder: Holder) -> (u8, usize) {
        let Holder::One(who) = holder else { return (3, usize::MAX) };
        match who {
            Occupant::Unknown(_) => (0, 0),
            Occupant::Lane(lane) if lane == self.lane => (1, 0),
            Occupant::Idle => (2, 0),
            Occupant::Companion(_) | Occupant::Program(_) | Occupant::IdleBeforeReady => (4, 0),
            Occupant::Interrupt(_) => (5, 0),
            Occupant::Member(_) => (7, 0),
            Occupant::Release | Occupant::Receiver | Occupant::Lane(_) => (6, 0),
            Occupant::Job(job) => {
                let level = view.level(job);
                let is_lower = !view.is_apart(job, self.lane) && level > view.level(self.hop.job);
                let rank = if is_lower { 3 } else { 7 };
                (rank, usize::MAX - level)
            }
        }
    }

    /// The cause, given who has the processor that this job could have.
    fn blame(&self, view: &View<'_>, who: Occupant, stage: Stage) -> Cause {
        match who {
            Occupant::Unknown(Unknown::Lost) => Cause::Uncertain,
            // Whether the run had begun before is told by the record of its beginning alone.
            Occupant::Unknown(Unknown::BeforeRecording) if view.beginning == Beginning::Unknown => {
                Cause::Unrecorded
            }
            Occupant::Unknown(Unknown::BeforeRecording) => Cause::Unheard,
            Occupant::Companion(thread) => Cause::Companion { thread },
            Occupant::Program(thread) => Cause::Program { thread },
            // Whose place was given the processor has yet to get it from this one.
            Occupant::Member(_) => Cause::Dispatch { kind: Some(CostKind::Switch) },
            Occupant::IdleBeforeReady => Cause::Idle,
            Occupant::Interrupt(interrupt) => Cause::Interrupt { interrupt },
            Occupant::Release => Cause::Dispatch { kind: Some(CostKind::Release) },
            Occupant::Receiver => Cause::Dispatch { kind: Some(CostKind::Delivery) },
            Occupant::Lane(other) if other != self.lane && view.is_by_kernel(self.node) => {
                self.kernel(view, Some(other))
            }
            Occupant::Lane(_) => Cause::Dispatch { kind: None },
            // A reservation that is used up waits for its next period.
            Occupant::Idle
                if view.is_by_kernel(self.node)
                    && view.metadata.kernel_policy(self.lane) == Some(KernelPolicy::Deadline) =>
            {
                self.kernel(view, None)
            }
            // The lanes may have dispatched, of which nothing was recorded.
            Occupant::Idle if !view.tells_idle(self.node) => Cause::Unrecorded,
            Occupant::Idle if view.occupancy.awake(self.lane) == SleepState::Asleep => Cause::WakeUp,
            Occupant::Idle => Cause::Idle,
            Occupant::Job(job)
                if view.is_by_kernel(self.node) && view.occupancy.lane_of(job) != Some(self.lane) =>
            {
                self.kernel(view, view.occupancy.lane_of(job))
            }
            // Whose place was given the processor has yet to get it from this one.
            Occupant::Job(job) if view.is_apart(job, self.lane) => {
                Cause::Dispatch { kind: Some(CostKind::Switch) }
            }
            Occupant::Job(job) if view.has_lent_priority(job, view.level(self.hop.job)) => {
                Cause::Lent { job }
            }
            Occupant::Job(job) => match view.level(job).cmp(&view.level(self.hop.job)) {
                std::cmp::Ordering::Less => Cause::Higher { job },
                std::cmp::Ordering::Greater => Cause::Lower { job },
                std::cmp::Ordering::Equal => Cause::Peer { job, order: self.order(view, job, stage) },
            },
        }
    }

    /// The kernel had the thread of another lane run, or nobody.
    fn kernel(&self, view: &View<'_>, other: Option<usize>) -> Cause {
        let metadata = view.metadata;
        let policy = |lane: usize| metadata.kernel_policy(lane);
        let order = KernelOrder::of(policy(self.lane), other.and_then(policy));
        let is_of = |other: usize| metadata.operations.iter().position(|entry| entry.lane == other);
        Cause::Kernel { operation: other.and_then(is_of), order }
    }

    /// Why the other job of the lane had it.
    fn order(&self, view: &View<'_>, other: JobId, stage: Stage) -> Order {
        if view.metadata.lanes[self.lane].is_thread() {
            return Order::Earlier;
        }
        let (Some(own), Some(theirs)) =
            (view.order_keys.get(&self.hop.job.pack()), view.order_keys.get(&other.pack()))
        else {
            return Order::Unknown;
        };
        let own_key = view.urgency(self.lane, own);
        let their_key = view.urgency(self.lane, theirs);
        let had_it_before = theirs.got.is_some_and(|got| got <= own.released);
        // The lane chose between the two when the other one last got it, and again when this one came.
        let chosen = theirs.got.map(|got| got.max(own.released));
        let late = |key: Instant| chosen.is_some_and(|chosen| key <= chosen);
        let has_lateness = view.metadata.lanes[self.lane].discipline != "fifo";
        let went_last = has_lateness && late(own_key) && !late(their_key);
        if own.lacks_slot && (their_key > own_key || has_lateness && late(their_key)) {
            Order::NoSlot
        } else if their_key <= own_key {
            Order::Ahead
        } else if had_it_before && stage == Stage::Waiting && own_key > own.released {
            Order::RunsToCompletion
        } else if went_last {
            Order::LateGoesLast
        } else if had_it_before && stage == Stage::Waiting {
            Order::RunsToCompletion
        } else {
            Order::Behind
        }
    }
}

/// The lane whose thread or job has the processor.
fn who_lane(view: &View<'_>, who: Occupant) -> Option<usize> {
    match who {
        Occupant::Job(job) => view.occupancy.lane_of(job),
        Occupant::Lane(lane) => Some(lane),
        _ => None,
    }
}

impl View<'_> {
    /// Who has the processor. Where jobs share one unseen, those that it does not execute may be on any other of the node.
    fn holder(&self, node: usize, index: usize) -> Holder {
        let occupancy = self.occupancy;
        match occupancy.occupant(node, index) {
            Occupant::Job(_) if occupancy.is_shared_unseen(node, index) => Holder::Several,
            Occupant::Idle | Occupant::Lane(_) if occupancy.is_any_shared_unseen(node) => Holder::Several,
            who => Holder::One(who),
        }
    }

    /// Whether a processor of which nobody says anything is idle.
    fn tells_idle(&self, node: usize) -> bool {
        let by_kernel = self.occupancy.hears_kernel() && self.occupancy.identifies(node);
        self.coverage[node].dispatching || self.coverage[node].jobs && by_kernel
    }

    /// Whether the kernel decides on the node, to which its hierarchy was lowered.
    fn is_by_kernel(&self, node: usize) -> bool {
        !self.metadata.nodes[node].decided_by.is_ours()
    }

    /// Whether it is known which thread has a processor of the node: records of jobs say it, or the kernel's own do.
    fn sees_threads(&self, node: usize) -> bool {
        let by_kernel = || self.occupancy.hears_kernel() && self.occupancy.identifies(node);
        !self.is_by_kernel(node) || self.metadata.nodes[node].switches.are_recorded() || by_kernel()
    }

    /// Whether the job is of another place than `lane`: schedulers decide between them.
    fn is_apart(&self, job: JobId, lane: usize) -> bool {
        let is_ranked = |other: usize| {
            self.metadata.are_ranked(lane, other)
                || self.metadata.kernel_policy(lane).is_some() && self.metadata.kernel_policy(other).is_some()
        };
        self.occupancy.lane_of(job).is_some_and(|other| !is_ranked(other))
    }

    /// Whether the job is of a lower lane than that of `own`, and goes before it with the priority of a job that waits for it.
    fn has_lent_priority(&self, job: JobId, own: usize) -> bool {
        let lent = self.occupancy.lent_by(job).map(|lane| self.metadata.rank(lane));
        self.level(job) > own && lent.is_some_and(|lent| lent <= own)
    }

    fn level(&self, job: JobId) -> usize {
        self.occupancy.lane_of(job).map_or(usize::MAX, |lane| self.metadata.rank(lane))
    }

    /// The constant key of a job that has not begun (`docs/policies.md`).
    fn urgency(&self, lane: usize, order_keys: &OrderKey) -> Instant {
        match self.metadata.lanes[lane].discipline.as_str() {
            "fifo" => order_keys.released,
            "laxity" => {
                let wcet_ns = order_keys.wcet.as_nanos();
                Instant::from_nanos(order_keys.deadline.as_nanos().saturating_sub(wcet_ns))
            }
            _ => order_keys.deadline,
        }
    }
}
