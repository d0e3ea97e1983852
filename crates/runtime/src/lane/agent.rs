//! A lane: takes jobs from its inbox, orders them, and has the best one run. Preemption by higher lanes is not its business, so it never
//! has to ask: that is its [`Enforcement`]'s, which also knows where jobs run. Mostly that is here, to their end. In a preemptive lane
//! it is in other threads, and the lane hears by its inbox, too, that they have ended.
//!
//! ```text
//!          ┌─────────── ring ────────────┐
//!          ▼                             │
//!   (1) take in ──► (2) elect ──None──► (5) sleep ◄── (3b) a thread runs it, or goes on with it
//!          ▲             │ job                                      ▲
//!          │             ▼                                          │
//!          └── (4) ── (3a) run to completion, release successors, ring
//! ```
//!
//! One round of this, 1 to 4, is a [step](LaneAgent::step). A thread of the lane's own takes one after the other and sleeps in
//! between; who steps it otherwise decides when.

use super::enforcement::{Enforcement, JobHost};
use super::execute::{Chosen, OthersOfLane, execute};
use crate::flow::{JobFlow, Shared};
use crate::job_table::{Begin, Tag};
use crate::recorder::Stopwatch;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_record::CostKind;
use talea_ring::inbox::Receiver;
use talea_time::{Clock, Instant, Work};

/// Everything a lane owns.
pub(crate) struct LaneAgent {
    pub shared: Arc<Shared>,
    pub inbox: Receiver,
    pub queue: LaneQueue,
    /// Index over the lanes of all nodes.
    pub lane: usize,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A job was executed, or was aborted just before it began, or others had a turn; there may be more.
    Worked,
    /// Others may go first, which came before the chosen job began, or which it is behind now that it is late: nothing was executed yet.
    ChooseAgain,
    /// There is nothing to do before something comes: there is no job, or the one that was chosen runs elsewhere.
    Idle,
}

/// A job that its lane has chosen, and the lane.
pub(crate) struct Elected<'a> {
    lane: &'a mut LaneAgent,
    pub job: Job,
    /// When it was chosen.
    pub at: Instant,
    taken_in: TakenIn,
}

/// What the lane has taken in before it chose, of which there is a cost.
#[derive(Clone, Copy)]
struct TakenIn {
    since: Stopwatch,
    tags: usize,
}

impl LaneAgent {
    /// Serves the lane until the run is stopped.
    pub fn serve(mut self, mut flow: JobFlow, enforcement: &mut impl Enforcement) {
        while !self.is_over() && !enforcement.is_gone() {
            if self.step(&mut flow, enforcement) == Step::Idle {
                self.sleep(&mut flow, enforcement);
            }
        }
    }

    /// Whether the run is, or that of the node.
    pub fn is_over(&self) -> bool {
        self.shared.is_over(self.shared.layout.lanes[self.lane].node)
    }

    /// Takes in what has come, and has the best job run.
    pub fn step(&mut self, flow: &mut JobFlow, enforcement: &mut impl Enforcement) -> Step {
        let since = flow.recorder.stopwatch();
        let LaneAgent { shared, inbox, queue, lane } = self;
        let tags = take_in(inbox, |tag| match enforcement.ended(tag) {
            Some(job) => over((shared, *lane), queue, &job),
            None => queue.push(shared.job(tag)),
        });
        let taken_in = TakenIn { since, tags };
        if !enforcement.may_choose(tags) {
            taken_in.tell(flow, *lane);
            return Step::Idle;
        }
        loop {
            let at = MonotonicClock.now();
            let executed = queue.current().map_or(Work::ZERO, |current| enforcement.executed(&current.job));
            let Some(job) = queue.elect(at, executed) else {
                enforcement.give_back(flow);
                taken_in.tell(flow, *lane);
                return Step::Idle;
            };
            if !shared.jobs.is_dead(job.tag, job.number) || enforcement.has(&job) {
                return enforcement.run(flow, Elected { lane: self, job, at, taken_in });
            }
            over((shared, *lane), queue, &job);
        }
    }

    /// Sleeps until something is posted into the lane, or the run is over.
    pub fn sleep(&self, flow: &mut JobFlow, enforcement: &mut impl Enforcement) {
        flow.recorder.sleep(self.lane);
        enforcement.sleep(|| self.inbox.has_number() || self.is_over());
        flow.recorder.wake(self.lane);
    }
}

impl Elected<'_> {
    /// How many jobs the lane has, this one among them.
    pub fn depth(&self) -> usize {
        let LaneAgent { shared, queue, lane, .. } = &*self.lane;
        let dead = shared.port(*lane).dead.load(Ordering::Relaxed) as usize;
        queue.len().saturating_sub(dead).max(1)
    }

    /// What choosing it has cost is told once, by whoever runs it.
    pub fn tell_cost(&self, flow: &mut JobFlow) {
        flow.recorder.cost(self.taken_in.since, CostKind::Queue, Some(self.lane.lane), self.taken_in.tags);
    }

    /// Runs it to its end in the calling thread, unless others are to run first.
    pub fn run_here(self, flow: &mut JobFlow, host: &mut impl JobHost) -> Step {
        self.tell_cost(flow);
        if host.offer(flow, &self.job) {
            return Step::Worked;
        }
        let depth = self.depth();
        let Elected { lane: LaneAgent { shared, inbox, queue, lane }, job, at, .. } = self;
        let is_chosen_until = queue.elected_until(&job, at);
        let others = Others { is_chosen_until, lane: RefCell::new((&mut *inbox, &mut *queue)) };
        let chosen = Chosen::ByLane { depth, waiting: Some(&others) };
        if execute(shared, flow, host, &job, chosen) == Begin::NotYet {
            return Step::ChooseAgain;
        }
        over((shared, *lane), queue, &job);
        flow.ring(shared);
        Step::Worked
    }
}

impl TakenIn {
    /// Nothing was chosen.
    fn tell(self, flow: &mut JobFlow, lane: usize) {
        if self.tags > 0 {
            flow.recorder.cost(self.since, CostKind::Queue, Some(lane), self.tags);
        }
    }
}

/// Gives all that has come to `each`. Returns how much that was.
fn take_in(inbox: &mut Receiver, mut each: impl FnMut(Tag)) -> usize {
    let mut news = 0;
    while let Some(tag) = inbox.pop() {
        each(tag);
        news += 1;
    }
    news
}

/// The job of the lane has ended, or was dead: the queue forgets it, and then the table, since another one may have its tag from then on.
fn over((shared, lane): (&Shared, usize), queue: &mut LaneQueue, job: &Job) {
    let removed = queue.remove(job.tag);
    assert!(removed.is_some(), "a lane holds the job it ran");
    shared.forget(lane, job);
}

/// Those that the lane has not chosen.
struct Others<'a> {
    lane: RefCell<(&'a mut Receiver, &'a mut LaneQueue)>,
    /// From when on the lane would choose another one.
    is_chosen_until: Instant,
}

impl OthersOfLane for Others<'_> {
    fn may_go_first(&self) -> bool {
        let is_late = || self.is_chosen_until < Instant::MAX && self.is_chosen_until <= MonotonicClock.now();
        self.lane.borrow().0.has_number() || is_late()
    }

    fn let_first(&self, shared: &Shared, job: &Job, now: Instant) -> bool {
        let (inbox, queue) = &mut *self.lane.borrow_mut();
        // Where jobs run in the midst of others, none runs in another thread, whose end would come.
        take_in(inbox, |tag| queue.push(shared.job(tag)));
        queue.precedes_waiting(job, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::execute::Candidate;
    use super::super::{JobHost, UnsteppedLane};
    use super::*;
    use crate::{Declaration, Executive, JobContext, Operations, PostingRoom, RtMode, RunOptions};
    use std::path::Path;
    use std::sync::mpsc;
    use std::thread;
    use talea_operation::{NotPosted, Posted};
    use talea_record::{JobId, ThreadRole};
    use talea_time::Duration;

    /// What happens while a lane waits for its turn to begin the first job.
    enum Meanwhile {
        /// Somebody posts another one.
        Comes(Posted),
        /// That takes until then.
        Until(Instant),
    }

    struct Waiting<'a> {
        shared: &'a Shared,
        meanwhile: Option<Meanwhile>,
        not_yet: u32,
    }

    impl JobHost for Waiting<'_> {
        fn may_execute_within(&self) -> bool {
            false
        }

        fn begin(&mut self, flow: &mut JobFlow, _job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
            record(flow, MonotonicClock.now());
        }

        fn start(
            &mut self,
            flow: &mut JobFlow,
            candidate: &Candidate<'_>,
            record: impl FnOnce(&mut JobFlow, Instant),
        ) -> Begin {
            match self.meanwhile.take() {
                Some(Meanwhile::Comes(posted)) => {
                    flow.post_quietly(self.shared, posted, None).expect("there is room");
                }
                Some(Meanwhile::Until(then)) => {
                    while MonotonicClock.now() < then {
                        std::hint::spin_loop();
                    }
                }
                None => {}
            }
            let begun = candidate.begin();
            match begun {
                Begin::Run => self.begin(flow, candidate.id, record),
                Begin::NotYet => self.not_yet += 1,
                Begin::Dead => {}
            }
            begun
        }

        fn end<F, R>(
            &mut self,
            flow: &mut JobFlow,
            finish: impl FnOnce() -> F,
            record: impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>,
        ) -> Option<R> {
            let end = MonotonicClock.now();
            record(flow, end, finish())
        }
    }

    impl Enforcement for Waiting<'_> {
        fn run(&mut self, flow: &mut JobFlow, elected: Elected<'_>) -> Step {
            elected.run_here(flow, self)
        }

        fn give_back(&mut self, _flow: &mut JobFlow) {}

        fn sleep(&mut self, _has_work: impl Fn() -> bool) {}
    }

    #[test]
    fn a_job_that_comes_before_the_chosen_one_begins_may_go_first() {
        let due = [Duration::from_secs(10), Duration::from_secs(1)];
        let (order, not_yet) = served(due, 1, |[_, urgent]| Meanwhile::Comes(urgent));
        assert!(order == [due[1], due[0]] && not_yet >= 1, "the first choice was given up");
    }

    /// Late ones come last, and a job that is chosen in time may be late when its lane has its turn.
    #[test]
    fn a_chosen_job_that_becomes_late_before_it_begins_goes_last() {
        let due = [Duration::from_secs(1_000), Duration::from_millis(200)];
        // A machine that stands still has it late before it is chosen: then it is tried again.
        let tried = (0..5).map(|_| served(due, 2, move |_| Meanwhile::Until(MonotonicClock.now() + due[1])));
        let (order, _) =
            tried.into_iter().find(|(_, not_yet)| *not_yet >= 1).expect("a choice that was given up");
        assert_eq!(order, due);
    }

    /// In what order jobs are served that are due within these times, and how often a choice was given up. The first `posted` of them are there from the
    /// beginning.
    fn served(
        due: [Duration; 2],
        posted: usize,
        meanwhile: impl FnOnce([Posted; 2]) -> Meanwhile + Send + 'static,
    ) -> (Vec<Duration>, u32) {
        let text = "[system]\nname = \"one\"\nstrategy = \"edf\"\nlate = \"last\"\n\
                    [[task]]\nname = \"task\"\nperiod = \"1h\"\nwcet = \"1us\"\n";
        let system = talea_model::parse("one.toml", text, Path::new(".")).expect("a system").system;
        let posting = PostingRoom { operations: 2, jobs: 4, posters: 1 };
        let options =
            RunOptions { rt: RtMode::Off, stepped: true, duration: None, posting, ..RunOptions::default() };
        let mut prepared = Executive::prepare(&system, Operations::synthetic(), options).expect("it can run");
        let mut lanes = prepared.lanes().expect("there is one");
        let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
        let stepping = thread::spawn(move || {
            let (tell, told) = mpsc::channel();
            let jobs = due.map(|due| {
                let tell = tell.clone();
                let code = move |_: &JobContext<'_>| tell.send(due).expect("heard");
                let declared = dispatcher.declare(Declaration::new(&format!("in {due}"), due), code);
                Posted::new(declared.expect("there is room"))
            });
            let UnsteppedLane { mut agent, flow_set_up } = lanes.lanes.pop().expect("the only one");
            let mut flow = flow_set_up.begin(ThreadRole::Lane, Some(agent.lane));
            let shared = Arc::clone(&agent.shared);
            for job in &jobs[..posted] {
                while flow.post_quietly(&shared, *job, None) == Err(NotPosted::NotRunning) {
                    thread::yield_now();
                }
            }
            let mut host = Waiting { shared: &shared, meanwhile: Some(meanwhile(jobs)), not_yet: 0 };
            let mut order = Vec::new();
            // The job of the task, which is due last, may come at any time.
            let mut again = 0;
            while order.len() < 2 {
                again += u32::from(agent.step(&mut flow, &mut host) == Step::ChooseAgain);
                order.extend(told.try_iter());
            }
            stop.stop();
            (order, host.not_yet, again)
        });
        prepared.run().expect("the run can begin");
        let (order, not_yet, again) = stepping.join().expect("it steps without a panic");
        assert_eq!(again, not_yet, "no step says that it executed what it did not");
        (order, not_yet)
    }
}
