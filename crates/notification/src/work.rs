//! The work by which consumers have their events.

use crate::delivery::Delivery;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use talea_event::Outcome;
use talea_operation::{Declaration, EventNote, JobContext, PostedOperation, Workplace};
use talea_time::{Duration, Instant};

/// When there is something to do for which no job is posted, and by which priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub at: Instant,
    pub priority: i16,
}

/// What a lane of a consumer is to be: the work of each thread that serves it.
#[derive(Clone, Debug)]
pub(crate) struct LaneWork {
    /// The least priority of its events.
    pub least: i16,
    /// At least one.
    pub servers: Vec<Declaration>,
}

impl LaneWork {
    /// Of one thread.
    pub fn of(least: i16, work: Declaration) -> Self {
        LaneWork { least, servers: vec![work] }
    }

    /// Another thread serves the lane named last, or, without any, one for all events.
    pub fn add_server(lanes: &mut Vec<LaneWork>, work: Declaration) {
        match lanes.last_mut() {
            Some(lane) => lane.servers.push(work),
            None => lanes.push(LaneWork::of(i16::MIN, work)),
        }
    }
}

/// A thread that serves a lane of a consumer, by the operation whose jobs it executes.
pub(crate) struct Server {
    operation: PostedOperation,
    /// How long after an event was pushed its delivery is due, where the event does not say so.
    deadline: Duration,
    /// None where it serves its lane alone.
    load: Option<ServerLoad>,
}

/// What a server has to do.
#[derive(Default)]
struct ServerLoad {
    /// Jobs that were posted for events and have not begun.
    waiting: AtomicUsize,
    /// Jobs that have begun and not ended: one, but for what is delivered in the midst of it.
    running: AtomicUsize,
}

impl Server {
    /// By this operation, whose jobs are due so long after they were posted; one of so many of its lane.
    pub fn new(operation: PostedOperation, deadline: Duration, servers: usize) -> Self {
        Server { operation, deadline, load: (servers > 1).then(ServerLoad::default) }
    }

    /// What was posted has not found room.
    pub fn refused(&self) {
        if let Some(load) = &self.load {
            let less_one = |waiting: usize| waiting.checked_sub(1);
            _ = load.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one);
        }
    }

    /// Its operation, for a job that is to be posted.
    pub fn take_on(&self) -> PostedOperation {
        if let Some(load) = &self.load {
            load.waiting.fetch_add(1, Ordering::Relaxed);
        }
        self.operation
    }

    /// One of its jobs begins; it ends with what is returned.
    fn begin(&self) -> Option<Serving<'_>> {
        self.refused();
        let load = self.load.as_ref()?;
        load.running.fetch_add(1, Ordering::Relaxed);
        Some(Serving(load))
    }

    fn busy(&self) -> usize {
        let load =
            |load: &ServerLoad| load.waiting.load(Ordering::Relaxed) + load.running.load(Ordering::Relaxed);
        self.load.as_ref().map_or(0, load)
    }

    /// Whether it is not the only one of its lane, and no job of it waits.
    fn is_free_of_several(&self) -> bool {
        self.load.as_ref().is_some_and(|load| load.waiting.load(Ordering::Relaxed) == 0)
    }

    /// When a delivery is due: when its event stops being worth anything, or else so long after it was pushed, or could be delivered first.
    pub fn due(&self, delivery: &Delivery) -> Instant {
        let since = delivery.pushed.max(delivery.not_before);
        delivery.expires().unwrap_or_else(|| since.saturating_add(self.deadline))
    }
}

/// A job of a server that has not ended.
pub(crate) struct Serving<'a>(&'a ServerLoad);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A job of a server, in which the code of its consumer is called, once or several times.
pub(crate) struct Calling<'a, 'j> {
    pub job: &'a JobContext<'j>,
    pub by: &'a Server,
    /// How often the code has been called.
    calls: Cell<u32>,
}

impl<'a, 'j> Calling<'a, 'j> {
    pub fn new(job: &'a JobContext<'j>, by: &'a Server) -> Self {
        Calling { job, by, calls: Cell::new(0) }
    }

    /// The code has been called and has said this, which is recorded in a run that is to be replayed, and compared in a replay.
    pub fn answered(&self, outcome: Outcome) {
        let call = self.calls.replace(self.calls.get().saturating_add(1));
        let services = self.job.services();
        if services.keeps_events() {
            services.note(EventNote::Answered { outcome, call }, services.clock());
        }
    }
}

/// A lane of a consumer: one queue, and those who serve it.
pub(crate) struct ServedLane {
    /// The least priority of its events.
    pub least: i16,
    /// At least one.
    pub servers: Box<[Server]>,
}

impl ServedLane {
    /// The server that has the least to do.
    pub fn free_server(&self) -> &Server {
        let servers = &self.servers;
        match &servers[..] {
            [one] => one,
            several => several.iter().min_by_key(|server| server.busy()).expect("there is one"),
        }
    }
}

/// The work by which a consumer has its events.
pub(crate) struct Work {
    /// The one for the greatest priorities first.
    lanes: Box<[ServedLane]>,
    /// Jobs that were posted for events and have not begun. As a rule there are as many as events wait; where there was no room for one, a job
    /// does for several.
    pub outstanding: AtomicUsize,
    /// Of a task: events of which each is to release a job at an instant, since it may not be delivered before, or there was no room for a job.
    pub without_job: AtomicUsize,
    /// Deliveries of a priority that no lane begins with.
    pub lane_misses: AtomicU64,
}

impl Work {
    pub fn new(lanes: Box<[ServedLane]>) -> Self {
        Work {
            lanes,
            outstanding: AtomicUsize::new(0),
            without_job: AtomicUsize::new(0),
            lane_misses: AtomicU64::new(0),
        }
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        self.lanes.iter().map(|lane| lane.servers.len()).sum()
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Who serves events of this priority that are to be delivered now. Whether the lane is that of another one is counted, unless it is for all.
    pub fn server(&self, priority: i16) -> &Server {
        let lane = self.lane_for(priority);
        if lane.least != priority && lane.least != i16::MIN {
            self.lane_misses.fetch_add(1, Ordering::Relaxed);
        }
        lane.free_server()
    }

    /// The highest lane that is for no more than this priority, or else the lowest.
    fn lane_for(&self, priority: i16) -> &ServedLane {
        let lane = self.lanes.iter().find(|lane| lane.least <= priority);
        lane.or(self.lanes.last()).expect("there is a lane")
    }

    /// Whether events of this priority are of this lane, the first being that for the greatest.
    pub fn is_of(&self, priority: i16, lane: usize) -> bool {
        let is_high_enough = self.lanes[lane].least <= priority || lane + 1 == self.lanes.len();
        let is_of_higher = lane.checked_sub(1).is_some_and(|above| self.lanes[above].least <= priority);
        is_high_enough && !is_of_higher
    }

    /// A job of the lane for this priority is to look at this instant.
    pub fn wake_at(&self, workplace: &dyn Workplace, Due { at, priority }: Due) {
        workplace.post_at(at, self.lane_for(priority).free_server().operation);
    }

    /// The server of a lane.
    pub fn server_of(&self, (lane, server): (usize, usize)) -> &Server {
        &self.lanes[lane].servers[server]
    }

    /// One of the jobs begins, or one that was posted for an instant and is none of them: of this server of this lane. It ends with what is returned.
    pub fn begin(&self, (lane, server): (usize, usize)) -> Option<Serving<'_>> {
        self.refused();
        self.server_of((lane, server)).begin()
    }

    /// The same of a job that ends apart from where it begins.
    pub fn begin_apart(&self, server: (usize, usize)) {
        std::mem::forget(self.begin(server));
    }

    /// A job ends with what is returned that has [begun](Self::begin_apart).
    pub fn begun_apart(&self, (lane, server): (usize, usize)) -> Option<Serving<'_>> {
        self.lanes[lane].servers[server].load.as_ref().map(Serving)
    }

    /// What was posted has not found room.
    pub fn refused(&self) {
        let less_one = |outstanding: usize| outstanding.checked_sub(1);
        _ = self.outstanding.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one);
    }

    /// A server of a lane that is not the only one, unless a job of it waits.
    pub fn free_of_several(&self, server: (usize, usize)) -> Option<&Server> {
        Some(self.server_of(server)).filter(|server| server.is_free_of_several())
    }
}

/// A delivery that was late: one of those of its job, if that had several at once.
#[derive(Clone, Debug)]
pub struct Miss<'a> {
    /// The operation of the consumer's lane.
    pub operation: &'a str,
    /// The number of the job.
    pub instance: u64,
    /// What was delivered.
    pub delivery: &'a Delivery,
    /// When it was due: when the event stopped being worth anything, or else as long after its push, its start or the instant from which on it was to be tried again as the
    /// declaration of the lane says.
    pub due: Instant,
    /// How long after that the call ended.
    pub lateness: Duration,
}

impl<'a> Miss<'a> {
    /// By what the job is found in a trace of the run.
    pub fn job(&self) -> MissedJob<'a> {
        MissedJob { operation: self.operation, instance: self.instance }
    }
}

/// A job in a trace, as `talea trace explain TRACE` takes it, which says where the time went: shown, it is the options for a shell,
/// `--task 'motion.guard' --job 12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedJob<'a> {
    /// The operation, which is a task of that name there.
    pub operation: &'a str,
    /// The number of the job.
    pub instance: u64,
}

impl fmt::Display for MissedJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--task '")?;
        for (place, part) in self.operation.split('\'').enumerate() {
            write!(f, "{}{part}", if place > 0 { "'\\''" } else { "" })?;
        }
        write!(f, "' --job {}", self.instance)
    }
}

/// Who is called when a delivery was late.
pub(crate) type OnMiss = Box<dyn Fn(&Miss<'_>) + Send + Sync>;
