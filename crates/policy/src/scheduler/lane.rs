//! A lane as a leaf scheduler: one queue, one processor at a time (a dispatching queue of Kokyu).
//!
//! Its children are threads that stand for job slots; what each wants its processor for is its
//! [`Job`](crate::job::Job). The order is the [`LaneQueue`]'s, the same object that a lane's thread asks on
//! Linux. Accepts and gives what the queue's discipline can make of its input: nothing is promised to a job
//! but its place in the order. Costs a heap operation per notification.
//!
//! Do not use it to keep jobs from each other: one that takes longer than declared delays all that its order puts behind it.

use super::uniprocessor::{Announcing, announce};
use super::{Facts, KindError, Row};
use crate::discipline::Discipline;
use crate::hierarchy::{
    Action, Context, Decision, Message, Parameters, ProcessorId, Refusal, Scheduler, VpId, VpState, Wake,
    Width,
};
use crate::job::Job;
use crate::lane::LaneQueue;
use crate::strategy::LaneRules;
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant, Work};

/// A lane over job slots.
#[derive(Clone, Debug)]
pub struct LaneScheduler {
    queue: LaneQueue,
    own: Option<VpId>,
    /// The slot that has the processor.
    running: Option<VpId>,
    /// The slot whose job has begun and blocks, and keeps the lane: nobody else of it is served until it is back.
    keeper: Option<VpId>,
    /// Choose anew at the multiples of this much time too (SimSo's LLF); never if zero.
    tick: Duration,
    announcing: Announcing,
}

impl LaneScheduler {
    /// A lane that orders its jobs by `queue`, which is empty.
    pub fn new(queue: LaneQueue) -> Self {
        let (tick, announcing) = (Duration::ZERO, Announcing::Nothing);
        LaneScheduler { queue, own: None, running: None, keeper: None, tick, announcing }
    }

    /// The same lane, which also chooses anew whenever the clock is at a multiple of `tick`.
    pub fn with_tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The same lane, which tells its parent as much as `announcing` says.
    pub fn announcing(mut self, announcing: Announcing) -> Self {
        self.announcing = announcing;
        self
    }

    fn own(&self) -> VpId {
        self.own.expect("init comes before everything else")
    }

    /// Lets the queue choose: the best job by now, which need not be the one that has the processor.
    #[inline(always)]
    fn elect(&mut self, cx: &Context<'_>) -> Option<VpId> {
        if let Some(running) = self.running {
            self.charge(running, cx.burst(running));
        }
        self.queue.elect_tag(cx.now()).map(slot_of)
    }

    /// Whoever the slot's job outranked is not the job that the lane last ran any more.
    fn charge(&mut self, slot: VpId, ran: Work) {
        self.queue.charge(slot.index() as u32, ran);
    }

    /// Lets the queue choose for `processor` and gives it to the chosen slot.
    fn choose(&mut self, cx: &Context<'_>, processor: ProcessorId) -> Decision {
        let chosen = self.elect(cx);
        let decision = match (self.running, chosen) {
            (Some(running), Some(chosen)) if running != chosen => {
                Decision::switch(running, chosen, processor)
            }
            (None, Some(chosen)) => Decision::grant(chosen, processor),
            (_, None) => Decision::release(self.own()),
            _ => Decision::NONE,
        };
        self.running = chosen;
        self.with_timer(cx, decision)
    }

    /// The decision, with word to the parent of another earliest deadline: before a request, and after what is done with a
    /// processor, which those above may take back when they hear it. Looks at every job.
    #[inline(always)]
    fn with_announcement(&self, cx: &Context<'_>, decision: Decision) -> Decision {
        if self.announcing == Announcing::Nothing { decision } else { self.announce_earliest(cx, decision) }
    }

    #[inline(never)]
    fn announce_earliest(&self, cx: &Context<'_>, decision: Decision) -> Decision {
        let earliest = || self.queue.iter().map(|progress| progress.job.deadline).min();
        match cx.state(self.own()) {
            VpState::Running(_) => {
                let timer = decision.timer();
                decision.then(announce(cx, self.own(), earliest(), Decision::NONE)).wake(timer)
            }
            VpState::Waiting | VpState::Ready => announce(cx, self.own(), earliest(), decision),
        }
    }

    /// The decision, with word to the parent of whose job the processor is wanted for, if it is another one, as one of a slot whose job
    /// has `changed` is: before a request, and after what is done with a processor.
    #[inline(always)]
    fn with_job(&mut self, cx: &Context<'_>, decision: Decision, changed: Option<VpId>) -> Decision {
        if cx.passes_jobs(self.own()) { self.pass_job(cx, decision, changed) } else { decision }
    }

    #[inline(never)]
    fn pass_job(&mut self, cx: &Context<'_>, decision: Decision, changed: Option<VpId>) -> Decision {
        // Whoever is elected without a processor can still be outranked when there is one.
        let elected = self.elect(cx);
        match elected.filter(|_| elected == changed || elected != cx.behind(self.own())) {
            None => decision,
            Some(slot) => {
                let pass = Action::PassJob(slot);
                match cx.state(self.own()) {
                    VpState::Running(_) => decision.and(pass),
                    VpState::Waiting | VpState::Ready => {
                        Decision::NONE.and(pass).then(decision).wake(decision.timer())
                    }
                }
            }
        }
    }

    fn with_timer(&self, cx: &Context<'_>, decision: Decision) -> Decision {
        if self.running.is_none() || !self.queue.wants_reconsideration() {
            return decision;
        }
        if self.tick > Duration::ZERO {
            let ticks = cx.now().as_nanos() / self.tick.as_nanos() + 1;
            return decision.wake(Wake::At(Instant::ZERO + self.tick * ticks));
        }
        decision.wake(Wake::AtSchedulingPoint)
    }
}

fn slot_of(tag: u32) -> VpId {
    VpId::from_index(tag)
}

impl Scheduler for LaneScheduler {
    fn kind(&self) -> &'static str {
        kind(self.queue.discipline()).name()
    }

    fn width(&self) -> Width {
        Width::One
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }

    fn register(&mut self, cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        match given {
            Parameters::None if !cx.is_thread(child) => Err(Refusal::NotAThread { scheduler: self.kind() }),
            Parameters::None => Ok(()),
            _ => Err(Refusal::Unacceptable { scheduler: self.kind(), wanted: "no parameters", given }),
        }
    }

    fn unregister(&mut self, _cx: &Context<'_>, _child: VpId) {}

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        if self.keeper == Some(child) {
            self.keeper = None;
        } else {
            // A job's tag is its slot, also if it was released where tags mean nothing.
            self.queue.push(Job { tag: child.index() as u32, ..*cx.job(child) });
        }
        let decision = match cx.state(self.own()) {
            VpState::Waiting if self.keeper.is_some() => Decision::NONE,
            VpState::Waiting => Decision::request(self.own()),
            VpState::Ready => Decision::NONE,
            VpState::Running(processor) => self.choose(cx, processor),
        };
        let decision = self.with_announcement(cx, decision);
        self.with_job(cx, decision, Some(child))
    }

    fn job_changed(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        let tag = child.index() as u32;
        self.queue.remove(tag).expect("a lane knows its unfinished jobs");
        self.queue.push(Job { tag, ..*cx.job(child) });
        let decision = match cx.processor(self.own()) {
            Some(processor) => self.choose(cx, processor),
            None => Decision::NONE,
        };
        let decision = self.with_announcement(cx, decision);
        self.with_job(cx, decision, Some(child))
    }

    /// A lane orders jobs, not threads: the next one has to be put in its place.
    fn job_followed(&mut self, cx: &Context<'_>, child: VpId, ran: Work) -> Decision {
        if self.running == Some(child) {
            self.charge(child, ran);
        }
        self.job_changed(cx, child)
    }

    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision {
        if self.keeper == Some(child) {
            // It has begun, however little it has executed; without a processor that has been charged.
            let ran = if held.is_some() { cx.burst(child) } else { Work::ZERO };
            self.charge(child, ran.max(Work::from_nanos(1)));
            self.running = None;
            return Decision::release(self.own()).wake(Wake::Never);
        }
        if held.is_some() {
            self.charge(child, cx.burst(child));
        }
        self.queue.remove(child.index() as u32).expect("a lane knows its unfinished jobs");
        let decision = match held {
            Some(processor) => {
                self.running = None;
                self.choose(cx, processor)
            }
            None if self.queue.is_empty() && cx.state(self.own()) == VpState::Ready => {
                Decision::release(self.own())
            }
            None => Decision::NONE,
        };
        let decision = self.with_announcement(cx, decision);
        self.with_job(cx, decision, None)
    }

    fn grant(&mut self, cx: &Context<'_>, _own: VpId, processor: ProcessorId) -> Decision {
        let decision = self.choose(cx, processor);
        self.with_job(cx, decision, None)
    }

    fn revoke(&mut self, cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        let running = self.running.take().expect("a lane that holds a processor runs a job");
        self.charge(running, cx.burst(running));
        Decision::NONE.and(Action::Revoke(running)).wake(Wake::Never)
    }

    fn init(&mut self, own: VpId) {
        assert_eq!(self.own.replace(own), None, "a lane uses one processor at a time");
    }

    fn message(
        &mut self,
        _cx: &Context<'_>,
        child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        // It may have lost its processor in this very instant.
        let chosen = self.queue.current().map(|progress| slot_of(progress.job.tag));
        let may_keep = child.is_some() && child == chosen && self.queue.runs_to_completion();
        if message != Message::KeepPlace || !may_keep {
            return Err(Refusal::NotUnderstood { scheduler: self.kind(), message });
        }
        self.keeper = child;
        Ok(Decision::NONE)
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        match cx.processor(self.own()) {
            Some(processor) => {
                let decision = self.choose(cx, processor);
                self.with_job(cx, decision, None)
            }
            // It may have wanted one before anybody wanted to know what for.
            None => self.with_job(cx, Decision::NONE, None),
        }
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let own = self.own();
        assert_eq!(
            self.queue.is_empty() || self.keeper.is_some(),
            cx.state(own) == VpState::Waiting,
            "a lane with jobs, of which none blocks, asks for a processor"
        );
        for progress in self.queue.iter() {
            let slot = slot_of(progress.job.tag);
            assert_eq!(
                self.keeper == Some(slot),
                cx.state(slot) == VpState::Waiting,
                "queued jobs have a slot that wants, but for one that blocks"
            );
        }
        let processor = self.running.and_then(|running| cx.processor(running));
        assert_eq!(processor, cx.processor(own), "a job runs where the lane does");
    }
}

/// What a lane over threads with jobs, in the order of arrival, of deadlines or of laxity, is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The order.
    pub discipline: Discipline,
    /// How keys are computed and when the lane chooses anew.
    pub rules: LaneRules,
    /// Jobs that wait without allocating.
    pub capacity: usize,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        kind(self.discipline).name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        let queue = LaneQueue::new(self.discipline, self.rules, self.capacity);
        Ok(Box::new(LaneScheduler::new(queue).announcing(announcing)))
    }
}

/// The kind that orders jobs so.
const fn kind(discipline: Discipline) -> SchedulerKind {
    match discipline {
        Discipline::Fifo => SchedulerKind::FIFO,
        Discipline::Deadline => SchedulerKind::EDF,
        Discipline::Laxity => SchedulerKind::LAXITY,
    }
}

fn lane(facts: &Facts<'_>, discipline: Discipline) -> Config {
    let capacity = usize::try_from(facts.integer("capacity")).expect("its kind declares the range");
    Config { discipline, rules: facts.lane_rules(), capacity }
}

pub(super) static FIFO: Row = Row::new(SchedulerKind::FIFO, |facts| Ok(lane(facts, Discipline::Fifo).into()));
pub(super) static EDF: Row =
    Row::new(SchedulerKind::EDF, |facts| Ok(lane(facts, Discipline::Deadline).into()));
pub(super) static LAXITY: Row =
    Row::new(SchedulerKind::LAXITY, |facts| Ok(lane(facts, Discipline::Laxity).into()));
