//! One node: its hierarchy, its job slots and what its processors are doing.

mod costs;
mod idle;
mod promises;

use crate::ledger::Ledger;
use idle::IdleWatch;
use promises::{Received, Watching, received_of};
use std::collections::VecDeque;
use talea_model::{OperationId, Overhead, System};
use talea_policy::arrangement::{ArrangeError, ChangeCause, Counts, Watch, arrange};
use talea_policy::composition::{Composition, compose};
use talea_policy::hierarchy::{Engine, Message, Parameters, ProcessorId, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_policy::strategy::Plan;
use talea_record::event::{
    Abort, Complete, Flag, Held, JobOrNone, JobWcet, Preempt, Release, Resume, Skip, Start, Timer, Wait,
    WordType,
};
use talea_record::{CostKind, EdgeNumbers, JobId, Record, Sink, SkipReason};
use talea_time::{Duration, Instant, Work};

/// Jobs a lane's queue holds before it allocates more.
const QUEUE_CAPACITY: usize = 64;

/// What guarantees may be short by: amounts are whole nanoseconds at every level of a hierarchy and of every hand-over.
pub(crate) const ROUNDING: Duration = Duration::from_nanos(100);

/// What they may be short by of what is received, where mechanisms cost something: a run's tolerance unless it is told another. Schedulers
/// promise processors, and no processor is switched for nothing.
const COSTS: Duration = Duration::from_millis(1);

/// A job in its slot, from release to completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub id: JobId,
    /// Nominal release: a first subtask's arrival, a successor's actual release.
    pub nominal: Instant,
    pub deadline: Instant,
    /// When it was released.
    pub released: Instant,
    /// Index of its lane on this node.
    lane: u32,
    /// Processor time it still needs, overheads included, as of `since`.
    remaining: Work,
    /// What it still has to do without overheads, when it last lost its processor.
    work: Work,
    /// When it got its processor; meaningless unless it runs.
    since: Instant,
    started: bool,
    /// It has done its work and waits for room in an input.
    waits: bool,
    /// Who posted it, as its start tells it.
    posted_by: u64,
}

/// A job about to be released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub id: JobId,
    pub nominal: Instant,
    pub deadline: Instant,
    /// Processor time it needs, the cost of the message that releases it included.
    pub demand: Work,
    /// That cost.
    pub delivery: Work,
    /// If it was posted.
    pub posting: Option<Posting>,
}

/// How a job was posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    /// The job that did it, if one did.
    pub by: Option<JobId>,
    /// Its place among those that were posted at one instant, behind all members of its lane: that is the order in which they came, though no time passed.
    pub rank: u32,
    /// How long it executes, if that is not what its operation says.
    pub wcet: Option<Work>,
}

/// A lane, or the place of a thread.
struct LaneState {
    seats: Seats,
    /// Its index over all nodes, for records.
    source: u16,
    jobs: u32,
}

/// Where jobs stand in the hierarchy.
enum Seats {
    /// A lane: any number of them, each with a virtual processor.
    Many { scheduler: SchedulerId, free: Vec<VpId> },
    /// A thread: one after the other on the same virtual processor.
    One { vp: VpId, waiting: VecDeque<Arrived> },
}

/// A job that has done its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Its processor, by its place.
    index: usize,
    /// Its slot.
    pub vp: VpId,
}

/// A job with what its place in the hierarchy is to know.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    slot: Slot,
    job: Job,
    delivery: Work,
}

/// Where a node's numbers in records begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstNumbers {
    pub lane: usize,
    pub edge: usize,
}

struct Processor {
    cpu: u16,
    running: Option<VpId>,
    completes_at: Instant,
    /// The job that ran last, to tell a switch from a continuation.
    last: u64,
}

impl Processor {
    fn idle(cpu: u16) -> Self {
        Processor { cpu, running: None, completes_at: Instant::MAX, last: u64::MAX }
    }
}

/// How an operation is served on its node.
#[derive(Clone, Copy, Debug)]
struct Service {
    lane: u32,
    rank: u32,
    wcet: Work,
}

pub(crate) struct Node {
    index: u16,
    engine: Engine,
    lanes: Vec<LaneState>,
    /// By VP number.
    slots: Vec<Option<Slot>>,
    processors: Vec<Processor>,
    /// By operation index; `None` for operations of other nodes.
    services: Vec<Option<Service>>,
    overhead: Overhead,
    /// Timer expiries at this instant.
    interrupts: u32,
    /// When costs are paid, if dispatching is recorded or promises are judged by what is received.
    ledger: Option<Box<Ledger>>,
    /// Whether messages that arrive are recorded, whatever else is: chains over links are measured by them.
    pub records_messages: bool,
    /// Who compares what edges receive with what they were promised, if the node has a hierarchy.
    watch: Option<Box<Watching>>,
    /// Which instants are idle points, if that matters.
    idle: Option<Box<IdleWatch>>,
    /// Jobs that have begun since somebody asked, if anybody asks.
    begun: Option<Vec<VpId>>,
    /// Something was announced to the engine since the last decision.
    pub unsettled: bool,
}

impl Node {
    /// Node `index` of `system`, whose lanes are numbered from `first.lane` and whose edges from `first.edge` in records.
    ///
    /// # Errors
    /// The node's hierarchy cannot be arranged.
    pub fn new(
        system: &System,
        index: usize,
        plan: &Plan,
        first: FirstNumbers,
    ) -> Result<Self, ArrangeError> {
        let cpus = &system.nodes[index].cpus;
        let mut node = Node {
            index: index as u16,
            lanes: Vec::new(),
            slots: Vec::new(),
            processors: cpus.iter().map(|cpu| Processor::idle(*cpu)).collect(),
            engine: Engine::new(0),
            services: vec![None; system.operations().len()],
            overhead: system.overhead,
            interrupts: 0,
            ledger: None,
            records_messages: !system.chains.is_empty(),
            watch: None,
            idle: None,
            begun: None,
            unsettled: false,
        };
        match arrange(system, index, plan, QUEUE_CAPACITY)? {
            None => {
                let Composition { engine, lanes } = compose(plan, cpus.len(), QUEUE_CAPACITY);
                node.engine = engine;
                node.open_lanes(system, plan, &lanes, first.lane);
            }
            Some(mut arrangement) => {
                node.open_lanes(system, plan, &arrangement.lanes, first.lane);
                let mut watch = Watch::new(ROUNDING);
                let has_costs = system.overhead != Overhead::default();
                arrangement.watch_by(&mut watch, system);
                for leaf in std::mem::take(&mut arrangement.leaves) {
                    let vp = arrangement.add_thread(system, &leaf)?;
                    let names =
                        (&*system.schedulers[leaf.scheduler].name, &*system.threads[leaf.thread].name);
                    let (promise, cx) = (leaf.promise.clone(), arrangement.engine.context());
                    watch.hold(names, promise, vp, &cx, ChangeCause::DESCRIBED);
                    let tolerance = if has_costs { COSTS } else { ROUNDING };
                    watch.judge_work(vp, Counts::Work, tolerance, Instant::ZERO);
                    node.open_thread(system, leaf.thread, vp, first.lane);
                }
                let shortcomings = arrangement.shortcomings.as_ref().map(ToString::to_string);
                // Where nothing costs anything, what is granted is received.
                let received = has_costs.then(|| Received::new(&watch, COSTS, cpus.len()));
                node.ledger = received.as_ref().map(|_| Box::new(Ledger::new(cpus.len())));
                node.watch = Some(Box::new(Watching::new(watch, received, first.edge, shortcomings)));
                node.engine = arrangement.engine;
            }
        }
        Ok(node)
    }

    fn open_lanes(&mut self, system: &System, plan: &Plan, lanes: &[SchedulerId], first_lane: usize) {
        for (lane, scheduler) in plan.lanes.iter().zip(lanes) {
            let place = self.lanes.len();
            for (rank, member) in lane.members.iter().enumerate() {
                let wcet = system.subtask(*member).wcet;
                self.services[member.index()] = Some(Service { lane: place as u32, rank: rank as u32, wcet });
            }
            let seats = Seats::Many { scheduler: *scheduler, free: Vec::with_capacity(QUEUE_CAPACITY) };
            self.lanes.push(LaneState { seats, source: (first_lane + place) as u16, jobs: 0 });
        }
    }

    /// Jobs of an operation that is not described are served in this lane, behind all members of it.
    pub fn open_posted(&mut self, operation: OperationId, lane: usize, wcet: Work) {
        if self.services.len() <= operation.index() {
            self.services.resize(operation.index() + 1, None);
        }
        let rank = operation.index() as u32;
        self.services[operation.index()] = Some(Service { lane: lane as u32, rank, wcet });
    }

    /// The lane at this place among those of the node, as records number it.
    pub fn lane_number(&self, lane: usize) -> usize {
        self.lanes[lane].source.into()
    }

    fn open_thread(&mut self, system: &System, thread: usize, vp: VpId, first_lane: usize) {
        let operation =
            system.operation_of_thread(thread).expect("threads are tasks where they are simulated");
        let place = self.lanes.len();
        let wcet = system.subtask(operation).wcet;
        self.services[operation.index()] = Some(Service { lane: place as u32, rank: 0, wcet });
        let seats = Seats::One { vp, waiting: VecDeque::new() };
        self.lanes.push(LaneState { seats, source: (first_lane + place) as u16, jobs: 0 });
    }

    /// Its lanes and places of threads.
    pub fn width(&self) -> usize {
        self.lanes.len()
    }

    /// From now on, writes records of dispatching too.
    pub fn record_dispatch(&mut self, edges: EdgeNumbers) {
        let ledger = self.ledger.get_or_insert_with(|| Box::new(Ledger::new(self.processors.len())));
        ledger.is_recorded = true;
        if let Some(watching) = &mut self.watch {
            let cpus: Vec<u16> = self.processors.iter().map(|processor| processor.cpu).collect();
            watching.record_decisions(&cpus, edges);
        }
    }

    /// From now on, knows its idle points. To be said before anything is released.
    pub fn watch_idle_points(&mut self) {
        self.idle = Some(Box::default());
    }

    /// The worst case of an operation of the node, and its place in its lane.
    pub fn service_of(&self, operation: OperationId) -> (Work, u32) {
        let service = self.services[operation.index()].expect("an operation of the node");
        (service.wcet, service.rank)
    }

    /// From now on, tells which jobs have begun.
    pub fn tell_of_beginnings(&mut self) {
        self.begun = Some(Vec::new());
    }

    /// Tells of each job that has begun and was not told of yet, and its lane as records number it.
    #[inline]
    pub fn tell_begun(&mut self, mut tell: impl FnMut(&Slot, u16)) {
        let Some(begun) = &mut self.begun else { return };
        for vp in begun.iter() {
            let slot = self.slots[vp.index()].as_ref().expect("a job that begins is unfinished");
            tell(slot, self.lanes[slot.lane as usize].source);
        }
        begun.clear();
    }

    /// Whether `now` is an instant at which nothing that was released earlier is unfinished; never if nobody asked for that.
    pub fn is_idle_point(&self, now: Instant) -> bool {
        self.idle.as_ref().is_some_and(|idle| idle.is_idle_point(now))
    }

    /// The next instant at which a job completes, a scheduler wants its timer, or a recorded payment ends.
    pub fn next(&self) -> Instant {
        let completion = self.processors.iter().map(|processor| processor.completes_at).min();
        let timer = self.engine.next_timer().unwrap_or(Instant::MAX);
        let payment = self.ledger.as_ref().map_or(Instant::MAX, |ledger| ledger.next());
        completion.unwrap_or(Instant::MAX).min(timer).min(payment)
    }

    /// A job that has done its work by `now`, and its processor, if there is one.
    pub fn done(&self, now: Instant) -> Option<Done> {
        let index = self.processors.iter().position(|processor| processor.completes_at <= now)?;
        let vp = self.processors[index].running.expect("only a running job completes");
        Some(Done { index, vp })
    }

    /// The job in `vp`, which is unfinished.
    pub fn slot(&self, vp: VpId) -> &Slot {
        self.slots[vp.index()].as_ref().expect("the slot of an unfinished job is taken")
    }

    /// Ends the job that has done its work at `now`, and returns it.
    pub fn complete(&mut self, Done { index, vp }: Done, now: Instant, sink: &mut dyn Sink) -> Slot {
        let cpu = self.take_processor(index, vp, now, sink);
        let slot = self.vacate(vp, now);
        self.go_on(index, vp, &slot);
        let (job, lane, nominal, deadline) = (slot.id, self.source(&slot), slot.nominal, slot.deadline);
        sink.record(Complete { job, lane, nominal, deadline }.at(now, cpu));
        slot
    }

    /// The job that has done its work at `now` gives up its processor until there is [room](Self::wake) for what it wrote, up to an instant.
    /// It keeps its lane, as the thread of a lane does.
    pub fn wait_for_room(
        &mut self,
        Done { index, vp }: Done,
        (input, until): (u32, Instant),
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let cpu = self.take_processor(index, vp, now, sink);
        let slot = self.slots[vp.index()].as_mut().expect("a job that waits is unfinished");
        (slot.remaining, slot.waits) = (Work::ZERO, true);
        let slot = *slot;
        if let Seats::Many { scheduler, .. } = self.lanes[slot.lane as usize].seats {
            // Unless it has executed nothing, and its lane has chosen another one in this very instant: then it waits beside that.
            let _kept = self.engine.message(scheduler, Some(vp), Message::KeepPlace, now);
        }
        self.engine.release(vp, now);
        if let Some(watching) = &mut self.watch {
            watching.work_is_done(vp, now);
        }
        self.unsettled = true;
        let (job, lane) = (slot.id, self.source(&slot));
        sink.record(Wait { job, input, lane, until }.at(now, cpu));
    }

    /// The job in `vp` [waits](Self::wait_for_room) no longer, and wants a processor again.
    pub fn wake(&mut self, vp: VpId, now: Instant) {
        let slot = self.slots[vp.index()].as_mut().expect("a job that waits is unfinished");
        assert!(std::mem::take(&mut slot.waits), "only a job that waits is woken");
        let Slot { id, deadline, released: release, .. } = *slot;
        let service = self.services[id.operation.index()].expect("operations are released on their node");
        let (wcet, rank, number, tag) = (service.wcet, service.rank, id.instance, vp.index() as u32);
        if let Some(watching) = &mut self.watch {
            watching.work_arrives(vp, now);
        }
        self.engine.request(vp, Job { release, deadline, wcet, rank, number, tag }, now);
        self.unsettled = true;
    }

    /// The job loses its processor, and has worked up to `now`. Returns which one that is.
    fn take_processor(&mut self, index: usize, vp: VpId, now: Instant, sink: &mut dyn Sink) -> u16 {
        self.stop_paying(index, vp, now, sink);
        self.tell_work(vp, now);
        let processor = &mut self.processors[index];
        processor.running = None;
        processor.completes_at = Instant::MAX;
        processor.cpu
    }

    /// Releases a job; the decision follows with [`Node::settle`]. Returns its slot.
    pub fn release(&mut self, released: Released, now: Instant, sink: &mut dyn Sink) -> VpId {
        let Released { id, nominal, deadline, demand, delivery, posting } = released;
        let service = self.services[id.operation.index()].expect("operations are released on their node");
        let lane = &mut self.lanes[service.lane as usize];
        lane.jobs += 1;
        let source = lane.source;
        let vp = match &mut lane.seats {
            Seats::One { vp, .. } => *vp,
            Seats::Many { scheduler, free } => match free.pop() {
                Some(vp) => vp,
                None => {
                    let added = self.engine.add_thread(*scheduler, Parameters::None);
                    added.expect("a lane takes any number of job slots")
                }
            },
        };
        if self.slots.len() <= vp.index() {
            self.slots.resize(vp.index() + 1, None);
        }
        let remaining = demand + self.overhead.queue + self.overhead.queue;
        let work = demand - delivery;
        let slot = Slot {
            id,
            nominal,
            deadline,
            released: now,
            lane: service.lane,
            remaining,
            work,
            since: now,
            started: false,
            waits: false,
            posted_by: JobOrNone(posting.and_then(|posting| posting.by)).bits(),
        };
        let (lane, own_wcet) = (source, posting.and_then(|posting| posting.wcet));
        if let Some(wcet) = own_wcet {
            let wcet = Duration::from_nanos(wcet.as_nanos());
            sink.record(JobWcet { job: id, lane, wcet }.at(now, Record::NO_CPU));
        }
        let release = Release { job: id, lane, nominal, deadline };
        sink.record(release.at(now, Record::NO_CPU));
        if let Some(idle) = &mut self.idle {
            idle.released(id, now);
        }
        let job = Job {
            release: now,
            deadline,
            wcet: own_wcet.unwrap_or(service.wcet),
            rank: posting.map_or(service.rank, |posting| posting.rank),
            number: id.instance,
            tag: vp.index() as u32,
        };
        let arrived = Arrived { slot, job, delivery };
        if let Some(watching) = &mut self.watch {
            watching.work_arrives(vp, now);
        }
        match &mut self.lanes[service.lane as usize].seats {
            Seats::One { waiting, .. } if self.slots[vp.index()].is_some() => waiting.push_back(arrived),
            _ => self.seat(vp, arrived, now),
        }
        vp
    }

    /// The job takes its seat and wants a processor.
    #[inline]
    fn seat(&mut self, vp: VpId, arrived: Arrived, now: Instant) {
        self.open(vp, &arrived);
        self.engine.request(vp, arrived.job, now);
        self.unsettled = true;
    }

    /// The job is the one that its place in the hierarchy is for.
    #[inline]
    fn open(&mut self, vp: VpId, Arrived { slot, delivery, .. }: &Arrived) {
        self.slots[vp.index()] = Some(*slot);
        if let Some(ledger) = &mut self.ledger {
            ledger.open(vp);
            ledger.owe(vp, CostKind::Queue, self.overhead.queue + self.overhead.queue, 1);
            ledger.owe(vp, CostKind::Delivery, *delivery, 1);
        }
    }

    /// The thread whose job has ended on the processor goes on with the next one, if that waits: nobody is switched for it.
    #[inline]
    fn go_on(&mut self, index: usize, vp: VpId, ended: &Slot) {
        if let Some(next) = &self.slots[vp.index()]
            && self.processors[index].last == ended.id.pack()
        {
            self.processors[index].last = next.id.pack();
        }
    }

    /// Whether the job is there, released and unfinished.
    pub fn has(&self, vp: VpId, id: JobId) -> bool {
        self.slots[vp.index()].is_some_and(|slot| slot.id == id)
    }

    /// Whether the job is there, released, and has not begun.
    pub fn waits_to_begin(&self, vp: VpId, id: JobId) -> bool {
        self.slots[vp.index()].is_some_and(|slot| slot.id == id && !slot.started) || self.waits_behind(vp, id)
    }

    /// Whether the job waits for one of the same thread that is before it.
    fn waits_behind(&self, vp: VpId, id: JobId) -> bool {
        let waits = |lane: &LaneState| match &lane.seats {
            Seats::Many { .. } => false,
            Seats::One { vp: own, waiting } => {
                *own == vp && waiting.iter().any(|behind| behind.slot.id == id)
            }
        };
        self.lanes.iter().any(waits)
    }

    /// Aborts the job in `vp` if it is still `id`. Returns whether it was.
    pub fn abort(&mut self, vp: VpId, id: JobId, now: Instant, sink: &mut dyn Sink) -> bool {
        if !self.has(vp, id) {
            return false;
        }
        if self.slot(vp).waits {
            self.wake(vp, now);
        }
        let place = self.processors.iter().position(|processor| processor.running == Some(vp));
        let (cpu, running) = match place {
            Some(index) => (self.take_processor(index, vp, now, sink), Flag(true)),
            None => (Record::NO_CPU, Flag(false)),
        };
        let slot = self.vacate(vp, now);
        if let Some(index) = place {
            self.go_on(index, vp, &slot);
        }
        let (job, lane, nominal, deadline) = (slot.id, self.source(&slot), slot.nominal, slot.deadline);
        sink.record(Abort { job, lane, nominal, deadline, running }.at(now, cpu));
        true
    }

    /// Records that `id` is not released.
    pub fn skip(
        &mut self,
        id: JobId,
        nominal: Instant,
        deadline: Instant,
        reason: SkipReason,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let service = self.services[id.operation.index()].expect("operations are skipped on their node");
        let lane = self.lanes[service.lane as usize].source;
        let skip = Skip { job: id, lane, nominal, deadline, reason: reason.into() };
        sink.record(skip.at(now, Record::NO_CPU));
    }

    /// Records that the run ends while a guard holds `job`.
    pub fn hold_at_end(
        &self,
        job: JobId,
        (nominal, deadline): (Instant, Instant),
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let service = self.services[job.operation.index()].expect("operations are held on their node");
        let lane = self.lanes[service.lane as usize].source;
        sink.record(Held { job, lane, nominal, deadline }.at(now, Record::NO_CPU));
    }

    /// Records that `job` cannot wait for its release, and never comes.
    pub fn refuse(&self, job: JobId, deadline: Instant, now: Instant, sink: &mut dyn Sink) {
        let service = self.services[job.operation.index()].expect("operations are refused on their node");
        let (lane, nominal) = (self.lanes[service.lane as usize].source, now);
        sink.record(Release { job, lane, nominal, deadline }.at(now, Record::NO_CPU));
        let running = Flag(false);
        sink.record(Abort { job, lane, nominal, deadline, running }.at(now, Record::NO_CPU));
    }

    /// A timer expired on this node.
    pub fn interrupt(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.interrupts == 0 && self.records_dispatch() {
            self.record_timer(now, sink);
        }
        self.interrupts += 1;
    }

    #[cold]
    fn record_timer(&self, now: Instant, sink: &mut dyn Sink) {
        let timer = Timer { due: now, woken: now, node: self.index };
        sink.record(timer.at(now, self.processors[0].cpu));
    }

    /// Fires due timers of schedulers.
    pub fn fire_timers(&mut self, now: Instant) {
        if self.engine.next_timer().is_some_and(|due| due <= now) {
            self.engine.fire_timers(now);
            self.unsettled = true;
        }
    }

    /// Decides who runs now, and starts, preempts and resumes accordingly.
    pub fn settle(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.unsettled = false;
        let count = self.engine.settle(now).len();
        for index in 0..count {
            let switch = self.engine.switches()[index];
            if let Some(vp) = self.processors[switch.processor.index()].running.take() {
                let successor = switch.to.and_then(|to| self.slots[to.thread().index()].as_ref());
                let successor = successor.map(|slot| slot.id);
                self.preempt(switch.processor.index(), vp, successor, now, sink);
            }
        }
        for index in 0..count {
            let switch = self.engine.switches()[index];
            if let Some(to) = switch.to {
                self.dispatch(switch.processor.index(), to.thread(), now, sink);
            }
        }
        // Threads that have kept their processors for their next jobs.
        for index in 0..self.processors.len() {
            if self.processors[index].running.is_none()
                && let Some(occupant) = self.engine.running(ProcessorId::from_index(index as u16))
            {
                self.dispatch(index, occupant.thread(), now, sink);
            }
        }
        if self.watch.is_some() {
            self.judge(now, sink);
        }
    }

    /// Lets whoever runs on the first processor pay for the timers that expired at this instant.
    #[inline]
    pub fn charge_interrupts(&mut self, now: Instant, sink: &mut dyn Sink) {
        let expiries = std::mem::take(&mut self.interrupts);
        if expiries > 0 && self.overhead.timer > Work::ZERO {
            self.charge_expiries(expiries, now, sink);
        }
    }

    fn charge_expiries(&mut self, expiries: u32, now: Instant, sink: &mut dyn Sink) {
        let stolen = Work::from_nanos(self.overhead.timer.as_nanos() * i64::from(expiries));
        if let Some(vp) = self.processors[0].running {
            let slot = self.slots[vp.index()].as_mut().expect("a running job has a slot");
            slot.remaining += stolen;
            self.processors[0].completes_at += stolen.at_full_speed();
            self.stop_paying(0, vp, now, sink);
            if let Some(ledger) = &mut self.ledger {
                ledger.owe(vp, CostKind::Release, stolen, expiries);
            }
            self.begin_paying(0, vp, now);
            if let Some(received) = received_of(&mut self.watch) {
                received.weigh(now);
            }
        }
    }

    fn preempt(&mut self, processor: usize, vp: VpId, by: Option<JobId>, now: Instant, sink: &mut dyn Sink) {
        self.stop_paying(processor, vp, now, sink);
        self.tell_work(vp, now);
        let slot = self.slots[vp.index()].as_mut().expect("a job that leaves early is unfinished");
        slot.remaining -= (now - slot.since).as_work();
        let (job, lane) = (slot.id, self.lanes[slot.lane as usize].source);
        let processor = &mut self.processors[processor];
        processor.completes_at = Instant::MAX;
        sink.record(Preempt { job, lane, by }.at(now, processor.cpu));
    }

    fn dispatch(&mut self, processor: usize, vp: VpId, now: Instant, sink: &mut dyn Sink) {
        let place = &mut self.processors[processor];
        let slot = self.slots[vp.index()].as_mut().expect("a dispatched job has a slot");
        if place.last != slot.id.pack() {
            slot.remaining += self.overhead.switch;
            place.last = slot.id.pack();
            if let Some(ledger) = &mut self.ledger {
                ledger.owe(vp, CostKind::Switch, self.overhead.switch, 1);
            }
        }
        slot.since = now;
        place.running = Some(vp);
        place.completes_at = now.saturating_add(slot.remaining.at_full_speed());
        let resumes = std::mem::replace(&mut slot.started, true);
        if let Some(begun) = self.begun.as_mut().filter(|_| !resumes) {
            begun.push(vp);
        }
        let (job, place_of_lane, posted_by, cpu) = (slot.id, slot.lane as usize, slot.posted_by, place.cpu);
        self.begin_paying(processor, vp, now);
        let LaneState { jobs, source: lane, .. } = self.lanes[place_of_lane];
        let depth = jobs.min(u32::from(u16::MAX)) as u16;
        let record = if resumes {
            Resume { job, lane }.at(now, cpu)
        } else {
            let posted_by = JobOrNone::from_bits(posted_by);
            Start { job, lane, depth, posted_by }.at(now, cpu)
        };
        sink.record(record);
    }

    /// Takes the job out of its slot and its lane.
    #[inline]
    fn vacate(&mut self, vp: VpId, now: Instant) -> Slot {
        self.unsettled = true;
        let slot = self.slots[vp.index()].take().expect("the slot of an unfinished job is taken");
        if let Some(idle) = &mut self.idle {
            idle.ended(slot.id);
        }
        let lane = &mut self.lanes[slot.lane as usize];
        lane.jobs -= 1;
        let next = match &mut lane.seats {
            Seats::Many { free, .. } => {
                free.push(vp);
                None
            }
            Seats::One { waiting, .. } => waiting.pop_front(),
        };
        match next {
            None => {
                self.engine.release(vp, now);
                if let Some(watching) = &mut self.watch {
                    watching.work_is_done(vp, now);
                }
            }
            // Its next job waits, so the thread does not sleep.
            Some(next) => {
                self.open(vp, &next);
                self.engine.follow(vp, next.job, now);
            }
        }
        slot
    }

    /// The lane of the slot's job, as records number it.
    #[inline]
    pub fn source(&self, slot: &Slot) -> u16 {
        self.lanes[slot.lane as usize].source
    }

    /// Lets the hierarchy check its invariants.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check_invariants(&self) {
        self.engine.check_invariants();
    }
}
