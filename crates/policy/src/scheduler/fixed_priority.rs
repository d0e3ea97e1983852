//! Preemptive fixed priority with one VP per priority (Regehr and Stankovic, *HLS*, 2001, section 5.1).
//!
//! Accepts any guarantee; passes it to its highest child and nothing to the others, and the highest child's deadlines to a
//! uniformly slower processor above: the others have what that spares, since a lower child that ran by the rate would leave nothing of it
//! to the highest when that wakes up. On `m` processors the
//! `m` highest Ready children run. A notification costs a bitmap scan, that is one word per 64 children, and
//! on several processors a look at each.
//!
//! Do not use it to share a processor between children that never block: all but the highest starve.

use super::uniprocessor::{Announcing, announce};
use super::{KindError, Row};
use crate::hierarchy::{
    Action, Context, Decision, Message, Parameters, ProcessorId, Refusal, SPARE, Scheduler, VpId, VpState,
    Width,
};
use talea_guarantee::scheduler::Intake;
use talea_model::SchedulerKind;
use talea_time::Work;

/// The fixed-priority scheduler. Children register with [`Parameters::Priority`]; larger is higher.
#[derive(Clone, Debug, Default)]
pub struct FixedPriority {
    own: Vec<VpId>,
    /// Highest priority first; a child's position is its rank.
    children: Vec<(i32, VpId)>,
    /// Rank by VP number, for VPs that are children.
    rank_of: Vec<u32>,
    /// Bit `r`: the child of rank `r` is Ready.
    ready: Vec<u64>,
    /// The child that runs on the processor of an own VP, in the order of `own`.
    on_own: Vec<Option<VpId>>,
    announcing: Announcing,
}

impl FixedPriority {
    /// A scheduler without children.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, which tells a single parent as much as `announcing` says.
    pub fn announcing(mut self, announcing: Announcing) -> Self {
        self.announcing = announcing;
        self
    }

    /// The decision, with word to the parent of whose job the highest child is at, if that is another one, as it is if this child's has
    /// `changed`: before a request, and after what is done with a processor.
    #[inline(always)]
    fn with_job(&self, cx: &Context<'_>, decision: Decision, changed: Option<VpId>) -> Decision {
        let [own] = self.own[..] else { return decision };
        if cx.passes_jobs(own) { self.pass_job(cx, own, decision, changed) } else { decision }
    }

    #[inline(never)]
    fn pass_job(&self, cx: &Context<'_>, own: VpId, decision: Decision, changed: Option<VpId>) -> Decision {
        let wants = |(_, child): &&(i32, VpId)| cx.state(*child) != VpState::Waiting;
        let Some((_, highest)) = self.children.iter().find(wants) else { return decision };
        let behind = cx.behind(*highest);
        if behind.is_none() || changed != Some(*highest) && behind == cx.behind(own) {
            return decision;
        }
        let pass = Action::PassJob(*highest);
        match cx.state(own) {
            VpState::Running(_) => decision.and(pass),
            VpState::Waiting | VpState::Ready => {
                Decision::NONE.and(pass).then(decision).wake(decision.timer())
            }
        }
    }

    /// The decision, with word to the parent of the highest child's deadline: before a request, and after what is done with a
    /// processor, which those above may take back when they hear it.
    #[inline(always)]
    fn with_announcement(&self, cx: &Context<'_>, decision: Decision) -> Decision {
        match (self.announcing, &self.own[..]) {
            (Announcing::Deadlines | Announcing::Slices(_), [own]) => {
                self.announce_highest(cx, *own, decision)
            }
            _ => decision,
        }
    }

    #[inline(never)]
    fn announce_highest(&self, cx: &Context<'_>, own: VpId, decision: Decision) -> Decision {
        let wants = |(_, child): &&(i32, VpId)| cx.state(*child) != VpState::Waiting;
        let highest = self.children.first().filter(wants).map(|(_, child)| cx.deadline(*child));
        let deadline = match self.children.iter().any(|child| wants(&child)) {
            true => highest.or(Some(SPARE)),
            // It is about to take its request back.
            false => return decision,
        };
        match cx.state(own) {
            VpState::Running(_) => {
                let timer = decision.timer();
                decision.then(announce(cx, own, deadline, Decision::NONE)).wake(timer)
            }
            VpState::Waiting | VpState::Ready => announce(cx, own, deadline, decision),
        }
    }

    fn rank(&self, child: VpId) -> usize {
        self.rank_of[child.index()] as usize
    }

    /// Where `own` stands among the own VPs.
    fn place(&self, own: VpId) -> usize {
        self.own.iter().position(|known| *known == own).expect("it is one of ours")
    }

    fn set_ready(&mut self, rank: usize) {
        self.ready[rank / 64] |= 1 << (rank % 64);
    }

    fn clear_ready(&mut self, rank: usize) {
        self.ready[rank / 64] &= !(1 << (rank % 64));
    }

    /// The rank of the highest Ready child.
    fn highest_ready(&self) -> Option<usize> {
        let word = self.ready.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.ready[word].trailing_zeros() as usize)
    }

    /// The running child of the lowest priority, with the own VP it runs on and the processor.
    fn lowest_running(&self, cx: &Context<'_>) -> Option<(usize, usize, ProcessorId)> {
        let mut lowest: Option<(usize, usize, ProcessorId)> = None;
        for (place, own) in self.own.iter().enumerate() {
            if let (Some(processor), Some(child)) = (cx.processor(*own), self.on_own[place]) {
                let rank = self.rank(child);
                lowest = lowest.filter(|(other, ..)| *other > rank).or(Some((rank, place, processor)));
            }
        }
        lowest
    }

    /// Gives the processor of the own VP at `place` to the highest Ready child, or back.
    fn use_or_release(&mut self, place: usize, processor: ProcessorId) -> Decision {
        let Some(rank) = self.highest_ready() else {
            self.on_own[place] = None;
            return Decision::release(self.own[place]);
        };
        self.clear_ready(rank);
        let child = self.children[rank].1;
        self.on_own[place] = Some(child);
        Decision::grant(child, processor)
    }

    /// Gives the lowest running child's processor to the highest Ready one if that is higher.
    fn preempt(&mut self, cx: &Context<'_>) -> Decision {
        let (Some(ready), Some((running, place, processor))) =
            (self.highest_ready(), self.lowest_running(cx))
        else {
            return Decision::NONE;
        };
        if ready > running {
            return Decision::NONE;
        }
        self.clear_ready(ready);
        self.set_ready(running);
        let winner = self.children[ready].1;
        self.on_own[place] = Some(winner);
        Decision::switch(self.children[running].1, winner, processor)
    }

    fn rebuild(&mut self, cx: &Context<'_>) {
        self.children.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
        self.ready = vec![0; self.children.len().div_ceil(64)];
        for rank in 0..self.children.len() {
            let child = self.children[rank].1;
            if self.rank_of.len() <= child.index() {
                self.rank_of.resize(child.index() + 1, u32::MAX);
            }
            self.rank_of[child.index()] = rank as u32;
            if cx.state(child) == VpState::Ready {
                self.set_ready(rank);
            }
        }
    }

    fn priority_in(&self, parameters: Parameters) -> Result<i32, Refusal> {
        let Parameters::Priority(priority) = parameters else {
            let wanted = "a priority";
            return Err(Refusal::Unacceptable { scheduler: self.kind(), wanted, given: parameters });
        };
        if self.children.iter().any(|(taken, _)| *taken == priority) {
            return Err(Refusal::Taken { scheduler: self.kind(), given: parameters });
        }
        Ok(priority)
    }
}

impl Scheduler for FixedPriority {
    fn kind(&self) -> &'static str {
        SchedulerKind::FIXED_PRIORITY.name()
    }

    fn width(&self) -> Width {
        Width::Any
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }

    fn register(&mut self, cx: &Context<'_>, child: VpId, parameters: Parameters) -> Result<(), Refusal> {
        let priority = self.priority_in(parameters)?;
        self.children.push((priority, child));
        self.rebuild(cx);
        Ok(())
    }

    fn unregister(&mut self, cx: &Context<'_>, child: VpId) {
        self.children.retain(|(_, known)| *known != child);
        self.rebuild(cx);
    }

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        self.set_ready(self.rank(child));
        let idle = self.own.iter().find(|own| cx.state(**own) == VpState::Waiting);
        let decision = match idle {
            // The parent may keep us waiting while a lower child runs on another processor.
            Some(own) => Decision::request(*own).reconsider_if(self.own.len() > 1),
            None => self.preempt(cx),
        };
        let decision = self.with_announcement(cx, decision);
        self.with_job(cx, decision, Some(child))
    }

    fn job_changed(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        self.with_job(cx, Decision::NONE, Some(child))
    }

    fn announced(&mut self, cx: &Context<'_>, _child: VpId) -> Decision {
        self.with_announcement(cx, Decision::NONE)
    }

    fn job_followed(&mut self, cx: &Context<'_>, child: VpId, _ran: Work) -> Decision {
        let decision = self.with_announcement(cx, Decision::NONE);
        self.with_job(cx, decision, Some(child))
    }

    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision {
        let decision = match held {
            Some(processor) => {
                let holds = |own: &VpId| cx.state(*own) == VpState::Running(processor);
                let place = self.own.iter().position(holds).expect("a child runs on what the parent holds");
                self.use_or_release(place, processor)
            }
            None => {
                let asking = self.own.iter().filter(|own| cx.state(**own) == VpState::Ready).count();
                let superfluous = self.own.iter().copied().find(|own| cx.state(*own) == VpState::Ready);
                self.clear_ready(self.rank(child));
                let ready: u32 = self.ready.iter().map(|word| word.count_ones()).sum();
                match superfluous {
                    Some(own) if asking > ready as usize => Decision::release(own),
                    _ => Decision::NONE,
                }
            }
        };
        let decision = self.with_announcement(cx, decision);
        self.with_job(cx, decision, None)
    }

    fn message(
        &mut self,
        cx: &Context<'_>,
        child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        let Message::Change(parameters) = message else {
            return Err(Refusal::NotUnderstood { scheduler: self.kind(), message });
        };
        let (Some(child), priority) = (child, self.priority_in(parameters)?) else {
            let wanted = "changes of a child's priority";
            return Err(Refusal::Unacceptable { scheduler: self.kind(), wanted, given: parameters });
        };
        let rank = self.rank(child);
        self.children[rank].0 = priority;
        self.rebuild(cx);
        let decision = self.preempt(cx);
        let decision = self.with_announcement(cx, decision);
        Ok(self.with_job(cx, decision, None))
    }

    fn grant(&mut self, _cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision {
        self.use_or_release(self.place(own), processor)
    }

    fn revoke(&mut self, cx: &Context<'_>, own: VpId, _processor: ProcessorId) -> Decision {
        let place = self.place(own);
        let child = self.on_own[place].take().expect("a revoked processor has a child on it");
        let decision = Decision::revoke(child);
        let loser = self.rank(child);
        // The processor goes, but the child that stops must be the lowest.
        match self.lowest_running(cx) {
            Some((lowest, other, processor)) if lowest > loser => {
                self.set_ready(lowest);
                self.on_own[other] = Some(child);
                decision.and(Action::Revoke(self.children[lowest].1)).and(Action::Grant(child, processor))
            }
            _ => {
                self.set_ready(loser);
                decision
            }
        }
    }

    fn init(&mut self, own: VpId) {
        self.own.push(own);
        self.on_own.push(None);
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        let decision = self.preempt(cx);
        self.with_job(cx, decision, None)
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let mut lowest_running = 0;
        for (rank, (_, child)) in self.children.iter().enumerate() {
            let bit = self.ready[rank / 64] >> (rank % 64) & 1 == 1;
            assert_eq!(bit, cx.state(*child) == VpState::Ready, "the ready set is the set of Ready children");
            if cx.processor(*child).is_some() {
                lowest_running = rank;
            }
        }
        let holds_all = self.own.iter().all(|own| cx.processor(*own).is_some());
        if let (Some(ready), true) = (self.highest_ready(), holds_all) {
            assert!(ready > lowest_running, "no Ready child is higher than a running one");
        }
        for (own, child) in self.own.iter().zip(&self.on_own) {
            let running = child.and_then(|child| cx.processor(child));
            assert_eq!(running, cx.processor(*own), "a child runs where the own VP does that it was put on");
        }
        let runs = self.children.iter().filter(|(_, child)| cx.processor(*child).is_some()).count();
        let holds = self.own.iter().filter(|own| cx.processor(**own).is_some()).count();
        assert_eq!(runs, holds, "every processor held runs a child");
    }
}

/// What a fixed-priority scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config;

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::FIXED_PRIORITY.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        Ok(Box::new(FixedPriority::new().announcing(announcing)))
    }
}

pub(super) static ROW: Row =
    Row::new(SchedulerKind::FIXED_PRIORITY, |_| Ok(Config.into())).on(Intake::Several);
