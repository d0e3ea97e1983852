//! A workplace in virtual time: lanes by level, the earliest deadline first in each, one processor, code that takes no time.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};
use talea_linux::clock::MonotonicClock;
use talea_model::OperationId;
use talea_notification::Event;
use talea_operation::{
    ChannelTask, Declaration, EventNote, JobServices, NotPosted, Operation, Post, Posted, PostedCode,
    PostedOperation, Workplace,
};
use talea_policy::job::Job;
use talea_time::{Clock, Duration, Instant, Work};

/// All handles are of the same one.
#[derive(Clone, Default)]
pub struct VirtualTime(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    now: Instant,
    operations: Vec<(Declaration, Option<Operation>)>,
    /// Level, deadline, number, operation.
    jobs: Vec<(usize, Instant, u64, usize)>,
    alarms: Vec<(Instant, PostedOperation)>,
    posted: u64,
    /// Jobs that there is room for at once, if that is limited.
    room: Option<usize>,
    /// Whether the instants are those of the real clock.
    is_real: bool,
}

impl VirtualTime {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no test panics with it")
    }

    /// The workplace says what time it really is.
    pub fn use_real_clock(&self) {
        self.inner().is_real = true;
    }

    pub fn limit_jobs(&self, room: usize) {
        self.inner().room = Some(room);
    }

    /// It is this instant.
    pub fn set(&self, now: Instant) {
        self.inner().now = now;
    }

    /// The instants at which jobs are to be posted, with the levels of their lanes.
    pub fn alarms(&self) -> Vec<(Instant, usize)> {
        let inner = self.inner();
        let level = |operation: &PostedOperation| inner.operations[operation.id.index()].0.level.unwrap_or(0);
        let mut alarms: Vec<_> = inner.alarms.iter().map(|(at, operation)| (*at, level(operation))).collect();
        alarms.sort_unstable();
        alarms
    }

    /// It is so much later, and nothing else happens.
    pub fn advance(&self, time: Duration) {
        let mut inner = self.inner();
        inner.now = inner.now.saturating_add(time);
    }

    /// The names of the operations that were declared.
    pub fn names(&self) -> Vec<String> {
        self.inner().operations.iter().map(|(declaration, _)| declaration.name.clone()).collect()
    }

    /// Jobs that wait.
    pub fn jobs(&self) -> usize {
        self.inner().jobs.len()
    }

    /// The levels of the jobs that wait, the most urgent first.
    pub fn levels(&self) -> Vec<usize> {
        let mut jobs = self.inner().jobs.clone();
        jobs.sort_unstable();
        jobs.iter().map(|job| job.0).collect()
    }

    /// Executes the most urgent job; false if there is none.
    pub fn step(&self) -> bool {
        self.step_if(|_| true)
    }

    /// Executes the most urgent job of the lanes of this level; false if there is none. Also in the midst of a job of another one.
    pub fn step_at(&self, level: usize) -> bool {
        self.step_if(|other| other == level)
    }

    fn step_if(&self, is_of: impl Fn(usize) -> bool) -> bool {
        let mut inner = self.inner();
        let places = (0..inner.jobs.len()).filter(|place| is_of(inner.jobs[*place].0));
        let Some(place) = places.min_by_key(|place| inner.jobs[*place]) else { return false };
        let (_, deadline, number, index) = inner.jobs.swap_remove(place);
        let mut operation = inner.operations[index].1.take().expect("it is not being called");
        let now = inner.now;
        drop(inner);
        let job = Job { release: now, deadline, wcet: Work::ZERO, rank: 0, number, tag: 0 };
        operation.call(&Services(self), "", &job, now, 0);
        self.inner().operations[index].1 = Some(operation);
        true
    }

    /// Executes all jobs that there are.
    pub fn run(&self) {
        while self.step() {}
    }

    /// Time passes, and what is due on the way is posted and executed.
    pub fn pass(&self, time: Duration) {
        let end = self.inner().now.saturating_add(time);
        loop {
            self.run();
            let mut inner = self.inner();
            let next = (0..inner.alarms.len()).min_by_key(|place| inner.alarms[*place].0);
            match next.filter(|place| inner.alarms[*place].0 <= end) {
                Some(place) => {
                    let (at, operation) = inner.alarms.swap_remove(place);
                    inner.now = inner.now.max(at);
                    drop(inner);
                    _ = self.clone().post_work(Posted::new(operation));
                }
                None => {
                    inner.now = end;
                    return;
                }
            }
        }
    }
}

struct Services<'a>(&'a VirtualTime);

impl JobServices for Services<'_> {
    fn clock(&self) -> Instant {
        self.0.inner().now
    }

    fn is_to_stop(&self) -> bool {
        false
    }

    fn post(&self, posted: Posted) -> Result<u64, NotPosted> {
        self.0.clone().post_work(posted)
    }

    fn note(&self, _note: EventNote, _at: Instant) {}
}

impl Post for VirtualTime {
    fn now(&self) -> Instant {
        self.inner().now
    }

    fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        let mut inner = self.inner();
        if inner.room.is_some_and(|room| inner.jobs.len() >= room) {
            return Err(NotPosted::Full);
        }
        let index = posted.operation.id.index();
        let declaration = &inner.operations[index].0;
        let own = inner.now.saturating_add(declaration.deadline);
        let (level, deadline) = (declaration.level.unwrap_or(0), posted.deadline.unwrap_or(own));
        inner.posted += 1;
        let number = inner.posted;
        inner.jobs.push((level, deadline, number, index));
        Ok(number)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

impl Workplace for VirtualTime {
    fn now(&self) -> Instant {
        let inner = self.inner();
        if inner.is_real { MonotonicClock.now() } else { inner.now }
    }

    fn declare(
        &self,
        declaration: Declaration,
        code: PostedCode,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let mut inner = self.inner();
        let id = OperationId::from_index(inner.operations.len());
        inner.operations.push((declaration, Some(Operation::without_ports(id, code.whole()))));
        Ok(PostedOperation { id, run: 0 })
    }

    fn task(
        &self,
        _first: OperationId,
        _channel_task: Box<dyn ChannelTask>,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        Err("there is no system with tasks".into())
    }

    fn post_at(&self, at: Instant, operation: PostedOperation) {
        let alarms = &mut self.inner().alarms;
        match alarms.iter_mut().find(|(_, other)| *other == operation) {
            Some((earliest, _)) => *earliest = at.min(*earliest),
            None => alarms.push((at, operation)),
        }
    }
}

/// What the tests' events carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(pub u64);

impl talea_notification::Content for Number {}

pub fn number(event: &Event) -> u64 {
    event.content::<Number>().expect("a number").0
}
