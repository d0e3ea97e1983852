//! How long cause-effect chains take: bounds on latency, maximum reaction time and data age.
//!
//! After Davare, Zhu, Di Natale, Pinello, Kanajan and Sangiovanni-Vincentelli 2007 ("Period Optimization for Hard Real-time Distributed
//! Automotive Systems", DAC) and Dürr, von der Brüggen, Chen and Chen 2019 ("End-to-End Timing Analysis of Sporadic Cause-Effect Chains in
//! Distributed Systems", ACM TECS 18(5s), article 58), for tasks whose releases may be triggered, and with both kinds of communication as in
//! Günzel, Ueter, Chen and Chen 2023 ("Timing Analysis of Cause-Effect Chains with Heterogeneous Communication Mechanisms", RTNS).
//!
//! The chain is cut where a reader is not released by what it reads. The pieces are *stretches*: from the arrival of their first task, each
//! operation releases the next, so that the last one completes at most W later. Let G be the greatest distance between two arrivals of a stretch's
//! first task, d the longest time of a message.
//!
//! * *Forward*: what a job of the writer publishes is visible at most P + d after its arrival, with P = W, or the end of the period if that is
//!   later under logical execution time. The first arrival of the reader after that is at most G(reader) later; its job takes this value or
//!   a newer one, and completes the stretch W(reader) later. Summed up that is the latency. An event that a job of the first operation has just
//!   missed is sampled by the job of the next arrival: the reaction time is G(first) longer.
//! * *Backward*: a job of the reader takes its values at some s, no more than W before its completion. All jobs of the writer that arrived P + d
//!   before s are visible, so that what it takes was sampled less than G(writer) + P + d before s. Summed up that is the age. Of a writer whose
//!   stretch goes on with every n-th value only, n times the period counts in place of the period.
//! * *Higher priority* (Dürr et al., section 5): if the writer's stretch is one segment in a higher lane of the reader's processor, one of its
//!   subtasks is ready from its release, at most its jitter J after its arrival, to its completion, and the reader does not run meanwhile. A job of the
//!   reader that arrives after that release begins after the completion: J + G(reader) in place of P + G(reader). And when a job of the
//!   reader begins, all writers that were released before are done: G(writer) + J in place of G(writer) + P.
//!
//! A task that is released by *events* goes on with the stretch like one that values trigger, if the k-th job to begin takes the k-th event: those
//! of its subscription are delivered in the order in which they come, none is discarded, since no more come in a response time than may wait, and
//! none expires. Where it begins with several subtasks, these are the longest response time of them, until which an event keeps its place, and the
//! shortest, by which it is taken; and all of them keep the order. Where a filter leaves some out, or only values that differ from the one before
//! trigger, those that come through still take no longer; but how long it is until the next one nobody knows, so there is no reaction time, no age
//! of what is read behind it, and no latency of a sample that several jobs may have before it.
//!
//! Where something else releases the jobs that take events, and each takes *all that wait*, or the only one that may, the chain is cut there as before a reader: an event waits
//! until the next job of the reader begins, and what is newest of what that has, which is what its sample is, is the newest that has been pushed; a job that finds none has no
//! sample. That is so if none is discarded before: in the time between the beginnings of two jobs, at most G(reader) + W(reader), no more come, from all who publish, than may wait; or
//! the oldest goes, and only one publishes them. And none expires in that time. Where each job takes one of several, an event may wait for as many of them as there are events before
//! it, which nothing here bounds: there is no time of such a chain.
//!
//! All of that needs that no job is left out, that values are taken in the order of the instances, and that no queue drops any.

use super::model::Node;
use super::release::Entry;
use super::triggered::{self, Triggered};
use super::{Obstacle, SystemBounds};
use crate::effort::Effort;
use talea_event::qos::{DiscardPolicy, OrderPolicy};
use talea_model::{
    Communication, Full, Hop, HopKind, InputId, LossRate, OnValue, OperationId, Overrun, System, Take,
    Trigger,
};
use talea_time::Duration;
use thiserror::Error;

/// What is known of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBounds {
    /// From the release of the first operation's job to the completion of the last one's that first used its value.
    pub latency: Result<Duration, ChainObstacle>,
    /// From an event that a job of the first operation has just missed, or from the arrival of what triggers it from outside, to the first
    /// completion of the last operation that has seen it.
    pub reaction: Result<Duration, ChainObstacle>,
    /// From the release of the job that sampled to the completion of the last operation's job that used the sample.
    pub age: Result<Duration, ChainObstacle>,
    /// What the reaction time is made of, from the first operation to the last; empty where it has no bound.
    pub steps: Vec<ChainStep>,
}

/// A part of a reaction time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainStep {
    /// What passes.
    pub kind: ChainStepKind,
    /// The operation whose job it is about.
    pub operation: OperationId,
    /// How long at most.
    pub time: Duration,
}

/// What passes in a part of a reaction time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainStepKind {
    /// From an event that was just missed to the next arrival.
    Sampling,
    /// From the arrival until the operation's value is visible, or until the last one completes.
    Response,
    /// Until as many values have come as it takes to trigger the operation's task.
    Gathering,
    /// Until the value can be read by the operation.
    Message,
    /// Until the operation's task arrives the next time.
    Waiting,
    /// The same from the writer's release on, as the reader cannot run before the writer is done.
    WaitingBehind,
}

/// Why a time of a chain has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainObstacle {
    /// An operation of it has no bound.
    #[error("an operation of it has no bound: {1}")]
    NoResponse(OperationId, Obstacle),
    /// Nothing bounds the time between two releases of this operation.
    #[error("nothing says how long it may be until the operation is released again")]
    Irregular(OperationId),
    /// Jobs of this operation may be left out.
    #[error("jobs of an operation may be left out")]
    LeftOut(OperationId),
    /// The message from this operation to that one may be lost.
    #[error("a message between two operations may be lost")]
    Lost(OperationId, OperationId),
    /// Jobs of this operation may pass each other.
    #[error("jobs of an operation may complete in another order than they arrive")]
    OutOfOrder(OperationId),
    /// Messages from this operation to that one may overtake each other.
    #[error("messages between two operations may overtake each other")]
    Overtaken(OperationId, OperationId),
    /// The queue of this input may be full.
    #[error("values may be dropped, as the queue of an input may be full")]
    Dropped(InputId),
    /// A filter may leave out events that release this operation.
    #[error("a filter may leave events out")]
    Filtered(OperationId),
    /// Only values that differ from the one before release this operation.
    #[error("values that are the same as before release nothing")]
    Unchanged(OperationId),
    /// This operation awaits several events, or one after the other.
    #[error("an operation awaits several events")]
    Together(OperationId),
    /// More events may wait for this operation than there is room for.
    #[error("events may be discarded for want of room")]
    Discarded(OperationId),
    /// Events may expire before this operation takes them.
    #[error("events may expire before they are taken")]
    Expired(OperationId),
    /// This operation takes events in another order than that in which they come.
    #[error("events are taken in another order than that in which they come")]
    Reordered(OperationId),
    /// Jobs of this operation, which something else releases, each take one of the events that wait.
    #[error("each job takes one event, and nothing says how many wait before it")]
    InTurn(OperationId),
    /// This operation may begin without the value.
    #[error("an operation does not wait for all its predecessors")]
    NotAwaited(OperationId),
    /// The search was given up.
    #[error("the search is too costly")]
    TooCostly,
    /// A time is longer than can be counted.
    #[error("a time in it is longer than 292 years")]
    Overflow,
}

/// When a task arrives: up to `lag` after the points of a grid of this period, once for each, from `phase` on.
#[derive(Clone, Copy, Debug)]
struct Grid {
    period: u64,
    lag: u64,
    phase: u64,
}

impl Grid {
    fn gap(self) -> Result<u64, ChainObstacle> {
        add(self.period, self.lag)
    }

    /// The same for what cannot wait for it before `start`, if its first arrival comes later than a period after that.
    fn gap_from(self, start: u64) -> Result<u64, ChainObstacle> {
        add(self.period.max(self.phase.saturating_sub(start)), self.lag)
    }
}

/// Operations of a chain each of which releases the next.
#[derive(Debug)]
struct Stretch {
    first: OperationId,
    last: OperationId,
    /// From the arrival of the first one's task to the completion of the last one, for the value that goes forward.
    forward: u64,
    /// The same for a job of the last one and what it took.
    backward: u64,
    /// Whether all are of one instance.
    is_one_instance: bool,
    /// The part of `forward` that passes until enough values have come.
    gathering: u64,
    /// Of how many jobs of the first one in a row one leads to a job of the last.
    every: u64,
    /// Why jobs of the first one may lead to none of the last, with the operation that is not released then.
    may_end: Option<ChainObstacle>,
}

/// How long it takes from one stretch to the next.
#[derive(Clone, Copy, Debug)]
enum Passing {
    /// The message, and whatever else the writer's value waits for.
    Visible { published: u64, message: u64 },
    /// The writer has the higher priority: its jitter.
    Behind { jitter: u64 },
}

impl SystemBounds {
    /// What is known of the chains of `system`, in their order.
    pub fn chains(&self, system: &System, effort: &mut Effort) -> Vec<ChainBounds> {
        let view = View { bounds: self, system };
        let chain = |site: &talea_model::ChainSite| match effort.spend(site.operations.len() as u64) {
            Ok(()) => view.chain(site, effort),
            Err(_) => ChainBounds::none(ChainObstacle::TooCostly),
        };
        system.chain_sites().iter().map(chain).collect()
    }
}

impl ChainBounds {
    fn none(obstacle: ChainObstacle) -> Self {
        ChainBounds { latency: Err(obstacle), reaction: Err(obstacle), age: Err(obstacle), steps: Vec::new() }
    }

    /// The bound that a key of the chain's limits is about.
    pub fn of_key(&self, key: &str) -> Result<Duration, ChainObstacle> {
        match key {
            "latency" => self.latency,
            "reaction" => self.reaction,
            "age" => self.age,
            _ => unreachable!("chains have limits of three kinds"),
        }
    }
}

struct View<'a> {
    bounds: &'a SystemBounds,
    system: &'a System,
}

type Found<T> = Result<T, ChainObstacle>;

impl View<'_> {
    fn chain(&self, site: &talea_model::ChainSite, effort: &mut Effort) -> ChainBounds {
        let parts = self.stretches(site, effort).and_then(|stretches| {
            let passings = self.passings(&stretches, effort)?;
            Ok((stretches.into_iter().map(|(stretch, _)| stretch).collect::<Vec<_>>(), passings))
        });
        let (stretches, passings) = match parts {
            Ok(parts) => parts,
            Err(obstacle) => return ChainBounds::none(obstacle),
        };
        let latency = self.latency(&stretches, &passings, effort);
        let sampling = self.sampling(stretches[0].first, effort);
        let reaction = latency.as_ref().map_err(|obstacle| *obstacle).and_then(|(latency, steps)| {
            let sampling = sampling?;
            stretches.iter().find_map(|stretch| stretch.may_end).map_or(Ok(()), Err)?;
            let first = step(ChainStepKind::Sampling, stretches[0].first, sampling)?;
            let steps = first.into_iter().chain(steps.iter().copied()).collect::<Vec<ChainStep>>();
            Ok((duration(add(*latency, sampling)?)?, steps))
        });
        let (reaction, steps) = match reaction {
            Ok((reaction, steps)) => (Ok(reaction), steps),
            Err(obstacle) => (Err(obstacle), Vec::new()),
        };
        ChainBounds {
            latency: latency.and_then(|(latency, _)| duration(latency)),
            reaction,
            age: self.age(&stretches, &passings, effort).and_then(duration),
            steps,
        }
    }

    /// The stretches, each but the last with the hop to the next.
    fn stretches<'s>(
        &self,
        site: &'s talea_model::ChainSite,
        effort: &mut Effort,
    ) -> Found<Vec<(Stretch, Option<&'s Hop>)>> {
        let mut done = Vec::new();
        let mut now = self.begin(site.operations[0])?;
        for (hop, pair) in site.hops.iter().zip(site.operations.windows(2)) {
            let (from, to) = (pair[0], pair[1]);
            match hop.kind {
                HopKind::Successor if self.has_what_released_it(hop, from, to, effort)? => {
                    self.follow(&mut now, from, to)?;
                }
                HopKind::Data if self.hands_on_within_instance(hop, from, to)? => {
                    self.follow(&mut now, from, to)?;
                }
                HopKind::Trigger(_) => {
                    self.trigger(&mut now, from, to, effort)?;
                    self.must_have_what_triggers(hop, from, to)?;
                }
                HopKind::Events => self.deliver(&mut now, from, to)?,
                HopKind::TakenEvents => {
                    now.may_end = now.may_end.or(self.take_what_waits(from, to, effort)?);
                    let next = self.begin(to)?;
                    done.push((std::mem::replace(&mut now, next), Some(hop)));
                }
                HopKind::Successor | HopKind::Data => {
                    let next = self.begin(to)?;
                    done.push((std::mem::replace(&mut now, next), Some(hop)));
                }
            }
        }
        done.push((now, None));
        Ok(done)
    }

    fn begin(&self, operation: OperationId) -> Found<Stretch> {
        self.must_run(operation)?;
        let response = self.response(operation)?;
        Ok(Stretch {
            first: operation,
            last: operation,
            forward: response,
            backward: response,
            is_one_instance: true,
            gathering: 0,
            every: 1,
            may_end: None,
        })
    }

    /// Goes on with an operation of the same instance.
    fn follow(&self, stretch: &mut Stretch, from: OperationId, to: OperationId) -> Found<()> {
        self.must_arrive(from, to)?;
        // It waits for others, too.
        if let Some((from, to)) = self.lossy_way_to(to) {
            return Err(ChainObstacle::Lost(from, to));
        }
        let waits = |operation: &talea_model::Operation| {
            let predecessors = operation.predecessors.len();
            self.system.subtask(operation.id).join.waits_for_all(predecessors)
        };
        let operation = &self.system.operations()[to.index()];
        // Behind a detour every join on the way counts; of those of the whole task it is enough to ask.
        let all = match operation.predecessors.contains(&from) {
            true => std::slice::from_ref(operation),
            false => self.system.operations_of(operation.task),
        };
        if let Some(impatient) = all.iter().find(|operation| !waits(operation)) {
            return Err(ChainObstacle::NotAwaited(impatient.id));
        }
        // Both count from the arrival of the same instance.
        let (before, after) = (self.response(from)?, self.response(to)?);
        stretch.forward = add(stretch.forward - before, after)?;
        stretch.backward = add(stretch.backward - before, after)?;
        stretch.last = to;
        Ok(())
    }

    /// Goes on with a task that values of `from` trigger.
    fn trigger(
        &self,
        stretch: &mut Stretch,
        from: OperationId,
        to: OperationId,
        effort: &mut Effort,
    ) -> Found<()> {
        self.must_arrive(from, to)?;
        self.must_keep_order(from)?;
        self.must_run(to)?;
        let task = self.task(to);
        let Some(Trigger::Output { every, on, .. }) = self.system.tasks[task].trigger else {
            unreachable!("such a hop leads to a task that values trigger")
        };
        match on {
            OnValue::Value => {}
            OnValue::Change if every > 1 => return Err(ChainObstacle::Irregular(to)),
            OnValue::Change => stretch.may_end = Some(ChainObstacle::Unchanged(to)),
        }
        if every > 1 {
            // It waits for the values of as many further arrivals.
            let grid = self.grid(from, effort)?;
            let more = grid.period.checked_mul(u64::from(every) - 1).ok_or(ChainObstacle::Overflow)?;
            let more = add(more, grid.lag)?;
            stretch.every = stretch.every.checked_mul(every.into()).ok_or(ChainObstacle::Overflow)?;
            stretch.forward = add(stretch.forward, more)?;
            stretch.gathering = add(stretch.gathering, more)?;
        }
        self.go_on(stretch, from, to)
    }

    /// What a value triggers takes that value, or a newer one: it does unless its queue drops the new one, for want of room, or an old one for a
    /// new one that is under way.
    fn must_have_what_triggers(&self, hop: &Hop, from: OperationId, to: OperationId) -> Found<()> {
        if hop.inputs.is_empty() {
            return Ok(());
        }
        if !self.arrives_in_order(from, to)? {
            return Err(ChainObstacle::Overtaken(from, to));
        }
        let task = self.task(to);
        let Some(Trigger::Output { every, on, .. }) = self.system.tasks[task].trigger else {
            unreachable!("such a hop leads to a task that values trigger")
        };
        let capacity_of = |input: &InputId| match self.system.inputs()[input.index()].take {
            Take::Latest | Take::Instance => u64::MAX,
            Take::Each { full: Full::Oldest, .. } if self.node_of(from) == self.node_of(to) => u64::MAX,
            Take::Each { capacity, .. } => capacity.into(),
        };
        let capacity = hop.inputs.iter().map(capacity_of).max().expect("it has inputs");
        if capacity == u64::MAX {
            return Ok(());
        }
        // Every job that waits has been released by `every` values, and fewer have come since. Where only changes release, others come uncounted.
        let triggered = Triggered::new(self.system, task, to);
        let signals = self.bounds.solution.signals_of(&self.bounds.model, &triggered);
        let jobs = signals
            .filter(|_| on == OnValue::Value)
            .and_then(|signals| signals.most_in(self.response(to).ok()?));
        let every = u64::from(every);
        let most = jobs.and_then(|jobs| jobs.checked_mul(every)?.checked_add(every - 1));
        let has_room = most.is_some_and(|most| most <= capacity);
        if has_room { Ok(()) } else { Err(ChainObstacle::Dropped(hop.inputs[0])) }
    }

    /// The stretch leads on to an operation that `from` has released.
    fn go_on(&self, stretch: &mut Stretch, from: OperationId, to: OperationId) -> Found<()> {
        let response = self.response(to)?;
        // What inherits its deadline counts from the arrival of what has released it.
        let before = if self.system.task_of(to).inherits_deadline { self.response(from)? } else { 0 };
        stretch.forward = add(stretch.forward - before, response)?;
        stretch.backward = add(stretch.backward - before, response)?;
        stretch.last = to;
        stretch.is_one_instance = false;
        Ok(())
    }

    /// Goes on with a task that has subscribed to events which `from` pushes.
    fn deliver(&self, stretch: &mut Stretch, from: OperationId, to: OperationId) -> Found<()> {
        self.must_keep_order(from)?;
        self.must_run(to)?;
        let task = self.task(to);
        // Of several first subtasks of an instance the one that begins first takes the event, and it keeps its place until the last has begun.
        let (mut soonest, mut latest) = (u64::MAX, 0);
        for first in self.system.operations_of(task).iter().filter(|first| first.predecessors.is_empty()) {
            let response = self.response(first.id)?;
            self.must_keep_order(first.id)?;
            (soonest, latest) = (soonest.min(response), latest.max(response));
        }
        let Some(Trigger::Events(subscription)) = &self.system.tasks[task].trigger else {
            unreachable!("such a hop leads to a task with a subscription")
        };
        if !subscription.condition.comes_at_once() {
            return Err(ChainObstacle::Together(to));
        }
        let qos = self.system.subscription_qos(subscription);
        if !matches!(qos.order, OrderPolicy::Any | OrderPolicy::Fifo) {
            return Err(ChainObstacle::Reordered(to));
        }
        // Of a task that goes on with another one's segment the segment does not say it.
        let triggered = Triggered::new(self.system, task, to);
        let signals = self.bounds.solution.signals_of(&self.bounds.model, &triggered);
        let waiting = signals.and_then(|signals| signals.most_in(latest));
        if waiting.is_none_or(|waiting| waiting > u64::from(qos.max_events)) {
            return Err(ChainObstacle::Discarded(to));
        }
        let timeouts = self.system.subscribed_by(task).flat_map(|(site, _)| {
            let stated = self.system.publication(site).timeout;
            subscription.timeouts(stated.filter(|timeout| *timeout > Duration::ZERO).or(qos.timeout))
        });
        let judged = subscription.longest_filtering();
        if timeouts.into_iter().any(|timeout| nanos(timeout) < soonest || timeout < judged) {
            return Err(ChainObstacle::Expired(to));
        }
        if subscription.is_filtered() {
            stretch.may_end = Some(ChainObstacle::Filtered(to));
        }
        self.go_on(stretch, from, to)
    }

    /// Jobs of `to`, which something else releases, take events that `from` pushes: the newest that was pushed is among what a job has, unless one before had it. Returns what may keep
    /// events of jobs of `from` from coming.
    fn take_what_waits(
        &self,
        from: OperationId,
        to: OperationId,
        effort: &mut Effort,
    ) -> Found<Option<ChainObstacle>> {
        let subscription = self.system.subscription_of(to).expect("such a hop leads to who has subscribed");
        if !subscription.condition.comes_at_once() {
            return Err(ChainObstacle::Together(to));
        }
        let qos = self.system.subscription_qos(subscription);
        if u64::from(self.system.most_taken(subscription)) < u64::from(qos.max_events) {
            return Err(ChainObstacle::InTurn(to));
        }
        self.must_keep_order(from)?;
        self.must_keep_order(to)?;
        // From the beginning of a job to that of the next one, and before the first.
        let between = add(self.grid(to, effort)?.gap_from(0)?, self.response(to)?)?;
        let publications = self.system.publications().iter();
        let published: Vec<_> = publications
            .filter(|site| site.subscriber(to).is_some_and(|own| !own.leaves.is_empty()))
            .collect();
        let has_newest =
            published.len() == 1 && matches!(qos.discard, DiscardPolicy::Any | DiscardPolicy::Fifo);
        if !has_newest {
            let most = |operation: OperationId| -> Option<u64> {
                let period = triggered::released_every(self.system, self.task(operation));
                (between.checked_add(self.spread(operation).ok()?)? / period).checked_add(1)
            };
            let all = published.iter().try_fold(0_u64, |sum, site| sum.checked_add(most(site.operation)?));
            if all.is_none_or(|all| all > u64::from(qos.max_events)) {
                return Err(ChainObstacle::Discarded(to));
            }
        }
        let timeouts = published.iter().flat_map(|site| {
            let stated = self.system.publication(site).timeout;
            subscription.timeouts(stated.filter(|timeout| *timeout > Duration::ZERO).or(qos.timeout))
        });
        let judged = subscription.longest_filtering();
        if timeouts.into_iter().any(|timeout| nanos(timeout) < between || timeout < judged) {
            return Err(ChainObstacle::Expired(to));
        }
        Ok(subscription.is_filtered().then_some(ChainObstacle::Filtered(to)))
    }

    /// Whether a successor goes on with the value of the job that released it, or a newer one. Under logical execution time it takes what was visible when
    /// its instance arrived, unless it takes the value of that.
    fn has_what_released_it(
        &self,
        hop: &Hop,
        from: OperationId,
        to: OperationId,
        effort: &mut Effort,
    ) -> Found<bool> {
        self.must_not_fall_back(hop, from, to)?;
        if hop.inputs.is_empty() || hop.inputs.iter().any(|input| self.takes_instance(*input)) {
            return Ok(true);
        }
        if self.system.task_of(to).communication == Communication::Let {
            return Ok(false);
        }
        self.must_keep_order(from)?;
        if !self.arrives_in_order(from, to)? {
            return Err(ChainObstacle::Overtaken(from, to));
        }
        self.must_drop_nothing(hop, from, to, effort)?;
        Ok(true)
    }

    fn takes_instance(&self, input: InputId) -> bool {
        self.system.inputs()[input.index()].take == Take::Instance
    }

    /// Of what several inputs give the newest counts, so that one of them is enough; unless another one may give an older value than before: what was
    /// newer then is used late.
    fn must_not_fall_back(&self, hop: &Hop, from: OperationId, to: OperationId) -> Found<()> {
        match hop.inputs.len() < 2 || self.arrives_in_order(from, to)? {
            true => Ok(()),
            false => Err(ChainObstacle::Overtaken(from, to)),
        }
    }

    /// By one of the inputs no value is dropped that a job would have used.
    fn must_drop_nothing(
        &self,
        hop: &Hop,
        from: OperationId,
        to: OperationId,
        effort: &mut Effort,
    ) -> Found<()> {
        for input in &hop.inputs {
            let has_room = match self.system.inputs()[input.index()].take {
                Take::Each { capacity, .. } => self.has_room(from, to, capacity, effort)?,
                Take::Latest => self.keeps_what_is_seen(from, to, self.system.room_of_latest(*input))?,
                Take::Instance => true,
            };
            if has_room {
                return Ok(());
            }
        }
        Err(ChainObstacle::Dropped(*hop.inputs.first().expect("values go by an input")))
    }

    /// Whether a reader takes the value of its own instance, which nothing tells it of.
    fn hands_on_within_instance(&self, hop: &Hop, from: OperationId, to: OperationId) -> Found<bool> {
        let takes_instance = hop.inputs.iter().any(|input| self.takes_instance(*input));
        if self.task(from) != self.task(to) || !takes_instance {
            return Ok(false);
        }
        self.must_not_fall_back(hop, from, to)?;
        match self.node_of(from) == self.node_of(to) {
            true => Ok(true),
            // What releases it may come by a shorter way.
            false => Err(ChainObstacle::NotAwaited(to)),
        }
    }

    fn passings(&self, stretches: &[(Stretch, Option<&Hop>)], effort: &mut Effort) -> Found<Vec<Passing>> {
        let passing = |pair: &[(Stretch, Option<&Hop>)]| {
            let hop = pair[0].1.expect("all but the last have one");
            self.passing(&pair[0].0, hop, &pair[1].0, effort)
        };
        stretches.windows(2).map(passing).collect()
    }

    fn passing(&self, writer: &Stretch, hop: &Hop, reader: &Stretch, effort: &mut Effort) -> Found<Passing> {
        let (from, to) = (writer.last, reader.first);
        if hop.kind == HopKind::TakenEvents {
            // Pushed when a job completes, also under logical execution time, and within a node.
            return Ok(Passing::Visible { published: 0, message: 0 });
        }
        self.must_arrive(from, to)?;
        self.must_keep_order(from)?;
        self.must_not_fall_back(hop, from, to)?;
        self.must_drop_nothing(hop, from, to, effort)?;
        if let Some(jitter) = self.jitter_of_higher_writer(writer, to) {
            return Ok(Passing::Behind { jitter });
        }
        let route = self.system.route(self.node_of(from), self.node_of(to));
        let message = if self.node_of(from) == self.node_of(to) { 0 } else { nanos(route.longest()) };
        Ok(Passing::Visible { published: self.until_end_of_period(from), message })
    }

    /// Under logical execution time, when values are visible at the earliest: at the end of the period.
    fn until_end_of_period(&self, operation: OperationId) -> u64 {
        let task = self.system.task_of(operation);
        match task.communication {
            Communication::Let => nanos(task.period),
            Communication::Implicit => 0,
        }
    }

    /// The release jitter of a writer that is one segment in a higher lane of the reader's processor.
    fn jitter_of_higher_writer(&self, writer: &Stretch, reader: OperationId) -> Option<u64> {
        let model = &self.bounds.model;
        let implicit = |operation| self.system.task_of(operation).communication == Communication::Implicit;
        let [above, below] = [writer.last, reader].map(|operation| &model.operations[operation.index()]);
        let node: &Node = &model.nodes[above.node];
        let segment = &model.segments[above.segment];
        let Entry::Release(jitter) = segment.entry else { return None };
        let is_higher = above.node == below.node && above.lane < below.lane && node.processors == 1;
        // Whoever waits for room leaves the processor to lower lanes.
        let never_waits = segment.operations.iter().all(|operation| {
            let id = self.system.operations()[*operation].id;
            super::model::waits_of(self.system, id).is_ok_and(|waits| waits.times == 0)
        });
        let is_one = writer.is_one_instance && is_higher && never_waits;
        (is_one && implicit(writer.last) && implicit(reader)).then_some(jitter)
    }

    /// Whether so many of the latest values are enough: those that come before a reader has seen what was visible when it looked, or behind that was not
    /// visible yet.
    fn keeps_what_is_seen(&self, writer: OperationId, reader: OperationId, room: usize) -> Found<bool> {
        let task = self.task(writer);
        let route = self.system.route(self.node_of(writer), self.node_of(reader));
        let unseen = add(nanos(route.longest()), self.until_end_of_period(writer))?;
        let is_planned = self.system.task_of(reader).communication == Communication::Let;
        if unseen == 0 && !is_planned {
            return Ok(true);
        }
        let late = if is_planned { self.response(reader)? } else { 0 };
        let reach = add(add(unseen, late)?, self.spread(writer)?)?;
        Ok(reach / triggered::released_every(self.system, task) + 2 <= room as u64)
    }

    /// By how much jobs of the operation may complete closer together than they are released on average.
    fn spread(&self, operation: OperationId) -> Found<u64> {
        let releases = self.bounds.solution.releases_of(operation.index());
        add(self.response(operation)?, releases.map_or(0, |releases| releases.bunched))
    }

    /// Whether messages of the operation to the other never overtake each other.
    fn arrives_in_order(&self, from: OperationId, to: OperationId) -> Found<bool> {
        let route = self.system.route(self.node_of(from), self.node_of(to));
        let apart = triggered::released_every(self.system, self.task(from));
        Ok(route.jitter == Duration::ZERO || add(nanos(route.jitter), self.spread(from)?)? < apart)
    }

    /// Whether a queue of this capacity never overflows: what the writer publishes between two looks of the reader.
    fn has_room(
        &self,
        writer: OperationId,
        reader: OperationId,
        capacity: u32,
        effort: &mut Effort,
    ) -> Found<bool> {
        let task = self.task(writer);
        let route = self.system.route(self.node_of(writer), self.node_of(reader));
        // It looks when it begins, or under logical execution time at its arrival; what is not visible yet stays there, too.
        let between = add(self.wait(writer, reader, effort)?, self.response(reader)?)?;
        let unseen = add(nanos(route.longest()), self.until_end_of_period(writer))?;
        let reach = add(add(between, unseen)?, self.spread(writer)?)?;
        Ok(reach / triggered::released_every(self.system, task) < u64::from(capacity))
    }

    fn latency(
        &self,
        stretches: &[Stretch],
        passings: &[Passing],
        effort: &mut Effort,
    ) -> Found<(u64, Vec<ChainStep>)> {
        let mut steps = Vec::new();
        let mut sum: u64 = 0;
        // Behind a reader several jobs may have the sample, and the first that leads on may be a late one.
        if let Some(obstacle) = stretches[1..].iter().find_map(|stretch| stretch.may_end) {
            return Err(obstacle);
        }
        let mut take = |kind, operation, time: u64| {
            sum = add(sum, time)?;
            steps.extend(step(kind, operation, time)?);
            Ok::<(), ChainObstacle>(())
        };
        for (index, stretch) in stretches.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| (&stretches[before], passings[before]));
            if let Some((writer, passing)) = before {
                let gap = self.wait(writer.first, stretch.first, effort)?;
                match passing {
                    Passing::Visible { message, .. } => {
                        take(ChainStepKind::Message, stretch.first, message)?;
                        take(ChainStepKind::Waiting, stretch.first, gap)?;
                    }
                    Passing::Behind { jitter } => {
                        debug_assert!(writer.gathering == 0);
                        take(ChainStepKind::WaitingBehind, stretch.first, add(jitter, gap)?)?;
                    }
                }
            }
            match passings.get(index) {
                Some(Passing::Behind { .. }) => {}
                passing => {
                    let published = match passing {
                        Some(Passing::Visible { published, .. }) => *published,
                        _ => 0,
                    };
                    take(ChainStepKind::Gathering, stretch.last, stretch.gathering)?;
                    let response = stretch.forward.max(published) - stretch.gathering;
                    take(ChainStepKind::Response, stretch.last, response)?;
                }
            }
        }
        Ok((sum, steps))
    }

    fn age(&self, stretches: &[Stretch], passings: &[Passing], effort: &mut Effort) -> Found<u64> {
        let (last, writers) = stretches.split_last().expect("a chain has operations");
        let mut sum = last.backward;
        for (writer, passing) in writers.iter().zip(passings) {
            if let Some(obstacle) = writer.may_end {
                return Err(obstacle);
            }
            let before = match *passing {
                Passing::Visible { published, message } => add(writer.backward.max(published), message)?,
                Passing::Behind { jitter } => jitter,
            };
            let grid = self.grid(writer.first, effort)?;
            let period = grid.period.checked_mul(writer.every).ok_or(ChainObstacle::Overflow)?;
            sum = add(sum, add(Grid { period, ..grid }.gap()?, before)?)?;
        }
        Ok(sum)
    }

    /// How long it takes from an event that was just missed until the task arrives again. What comes from outside is the event itself.
    fn sampling(&self, first: OperationId, effort: &mut Effort) -> Found<u64> {
        match self.system.task_of(first).trigger {
            Some(Trigger::External { .. }) => Ok(0),
            Some(Trigger::Output { .. } | Trigger::Events(_)) | None => self.grid(first, effort)?.gap(),
        }
    }

    /// How long a value of the writer waits at most until the reader's task arrives.
    fn wait(&self, writer: OperationId, reader: OperationId, effort: &mut Effort) -> Found<u64> {
        // What has no grid may arrive from the beginning on.
        let start = self.grid(writer, effort).map_or(0, |grid| grid.phase);
        self.grid(reader, effort)?.gap_from(start)
    }

    /// When the task of an operation arrives.
    fn grid(&self, operation: OperationId, effort: &mut Effort) -> Found<Grid> {
        let (mut at, mut every_all, mut lag) = (self.task(operation), 1_u64, 0_u64);
        loop {
            effort.spend(1).map_err(|_| ChainObstacle::TooCostly)?;
            let task = &self.system.tasks[at];
            if task.overrun == Overrun::Merge && !self.is_done_within_period(at) {
                return Err(ChainObstacle::Irregular(operation));
            }
            let (every, on) = match &task.trigger {
                None => {
                    let times = |count| nanos(task.period).checked_mul(count).ok_or(ChainObstacle::Overflow);
                    // The first that triggers is the last of as many.
                    let phase = add(nanos(task.phase), times(every_all - 1)?)?;
                    return Ok(Grid { period: times(every_all)?, lag, phase });
                }
                Some(Trigger::External { .. } | Trigger::Events(_)) => {
                    return Err(ChainObstacle::Irregular(operation));
                }
                Some(Trigger::Output { every, on, .. }) => (*every, *on),
            };
            let output = self.system.trigger_output(at).expect("it is triggered by one");
            let producer = self.system.outputs()[output.index()].operation;
            if on == OnValue::Change {
                return Err(ChainObstacle::Irregular(operation));
            }
            self.must_run(producer)?;
            if !task.inherits_deadline {
                lag = add(lag, self.response(producer)?)?;
            }
            every_all = every_all.checked_mul(every.into()).ok_or(ChainObstacle::Overflow)?;
            at = self.task(producer);
        }
    }

    /// Whether each job of a task with a period is sure to end before the next one arrives, so that no two are merged.
    fn is_done_within_period(&self, task: usize) -> bool {
        let period = nanos(self.system.tasks[task].period);
        let mut own = self.system.operations_of(task).iter();
        self.system.tasks[task].trigger.is_none()
            && own.all(|operation| self.response(operation.id).is_ok_and(|response| response <= period))
    }

    fn must_run(&self, operation: OperationId) -> Found<()> {
        let task = self.task(operation);
        // Where it is missing, its own reason says more.
        self.response(operation)?;
        let is_lost = super::lossy_trigger(self.system, task).or_else(|| self.lossy_way_to(operation));
        if let Some((from, to)) = is_lost {
            return Err(ChainObstacle::Lost(from, to));
        }
        match self.bounds.loses_none(self.system, task) {
            true => Ok(()),
            false => Err(ChainObstacle::LeftOut(operation)),
        }
    }

    /// A message that may be lost, of those within its task by which the operation comes to be released.
    fn lossy_way_to(&self, operation: OperationId) -> Option<(OperationId, OperationId)> {
        let task = self.task(operation);
        let all = self.system.operations_of(task);
        let mut on_way = vec![false; all.len()];
        let mut found = vec![operation];
        while let Some(next) = found.pop() {
            let next = &self.system.operations()[next.index()];
            if !std::mem::replace(&mut on_way[next.subtask], true) {
                found.extend(&next.predecessors);
            }
        }
        let leads_here = |to: &OperationId| on_way[self.system.operations()[to.index()].subtask];
        self.system.messages_that_may_be_lost(task).find(|(_, to)| leads_here(to))
    }

    fn must_arrive(&self, from: OperationId, to: OperationId) -> Found<()> {
        let (from_node, to_node) = (self.node_of(from), self.node_of(to));
        let is_lossy = from_node != to_node && self.system.route(from_node, to_node).loss > LossRate::NONE;
        if is_lossy { Err(ChainObstacle::Lost(from, to)) } else { Ok(()) }
    }

    fn must_keep_order(&self, operation: OperationId) -> Found<()> {
        match self.bounds.solution.completes_in_order(&self.bounds.model, operation.index()) {
            true => Ok(()),
            false => Err(ChainObstacle::OutOfOrder(operation)),
        }
    }

    /// From the arrival of the task.
    fn response(&self, operation: OperationId) -> Found<u64> {
        match &self.bounds.operations[operation.index()].response {
            Ok(response) => Ok(nanos(response.bound)),
            Err(obstacle) => Err(ChainObstacle::NoResponse(operation, *obstacle)),
        }
    }

    fn task(&self, operation: OperationId) -> usize {
        self.system.operations()[operation.index()].task
    }

    fn node_of(&self, operation: OperationId) -> usize {
        self.system.subtask(operation).node
    }
}

fn step(kind: ChainStepKind, operation: OperationId, time: u64) -> Found<Option<ChainStep>> {
    let time = duration(time)?;
    Ok((time > Duration::ZERO).then_some(ChainStep { kind, operation, time }))
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().unsigned_abs()
}

fn duration(ns: u64) -> Found<Duration> {
    i64::try_from(ns).map(Duration::from_nanos).map_err(|_| ChainObstacle::Overflow)
}

fn add(a: u64, b: u64) -> Found<u64> {
    a.checked_add(b).ok_or(ChainObstacle::Overflow)
}
