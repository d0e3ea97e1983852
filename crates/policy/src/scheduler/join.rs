//! Join: one child below several parents, run whenever any of them runs it (Regehr and Stankovic 2001, section 5.1).
//!
//! The child may take the guarantee of any one parent, but a hard one becomes soft: it can always receive more than that
//! parent gives. Joining a reservation with the lowest priority turns the hard reservation into a soft one.
//!
//! On several processors a second parent may grant one while the child runs on another's. The child then moves if that parent is
//! the one whose guarantee it takes, and the grant is returned if not. So the parent that promised is asked for as long as the
//! child wants a processor, as on one processor alone: a reservation, say, would take a request that is withdrawn and comes
//! again for a wake-up, and begin another period. Costs a look at every parent per notification.
//!
//! Do not join two parents of which either would do: each keeps room for the child that it uses only once.

use super::{Announcing, KindError, Row};
use crate::hierarchy::{
    Action, Context, Decision, Parameters, ProcessorId, Refusal, Scheduler, VpId, VpState, Wake, Width,
};
use talea_guarantee::scheduler::Intake;
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant};

/// The join: one child, registered with [`Parameters::None`], and one own VP per parent.
#[derive(Clone, Debug)]
pub struct Join {
    own: Vec<VpId>,
    /// Position of the parent whose guarantee the child takes.
    takes: usize,
    child: Option<VpId>,
    /// When the child last moved to that parent. Only once in an instant: one above that several edges lead to may choose anew
    /// for each move, as a lottery does while nobody has run, and so for ever.
    moved: Option<Instant>,
}

impl Join {
    /// A join without parents and child, which will take the guarantee of the parent at this position.
    pub fn new(takes: usize) -> Self {
        Join { own: Vec::new(), takes, child: None, moved: None }
    }

    /// Does `change` to every own VP in the state `wanted`: to as many as fit beside what else is to be done now, and to
    /// the others at the scheduling point.
    fn change_own(
        &self,
        cx: &Context<'_>,
        room: usize,
        wanted: fn(VpState) -> bool,
        change: impl Fn(VpId) -> Action,
    ) -> Decision {
        let mut chosen = self.own.iter().copied().filter(|own| wanted(cx.state(*own)));
        let first = chosen.by_ref().take(room);
        let decision = first.fold(Decision::NONE, |decision, own| decision.and(change(own)));
        decision.reconsider_if(chosen.next().is_some())
    }

    fn ask_everybody(&self, cx: &Context<'_>) -> Decision {
        self.change_own(cx, Decision::CAPACITY, |state| state == VpState::Waiting, Action::Request)
    }

    /// Tells parents that have not heard of it the child's deadline.
    fn pass_deadline_on(&self, cx: &Context<'_>, deadline: Instant) -> Decision {
        let mut uninformed = self.own.iter().copied().filter(|own| cx.deadline(*own) != deadline);
        let first = uninformed.by_ref().take(Decision::CAPACITY);
        let decision =
            first.fold(Decision::NONE, |decision, own| decision.and(Action::Announce(own, deadline)));
        decision.reconsider_if(uninformed.next().is_some())
    }
}

impl Scheduler for Join {
    fn kind(&self) -> &'static str {
        SchedulerKind::JOIN.name()
    }

    fn width(&self) -> Width {
        Width::Any
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }

    fn register(&mut self, _cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        match (self.child, given) {
            (Some(_), _) => Err(Refusal::Taken { scheduler: self.kind(), given }),
            (None, Parameters::None) => {
                self.child = Some(child);
                Ok(())
            }
            _ => Err(Refusal::unacceptable(self.kind(), "no parameters", given)),
        }
    }

    fn unregister(&mut self, _cx: &Context<'_>, _child: VpId) {
        self.child = None;
    }

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        // Parents have to know the deadline before they decide about the request.
        let news = self.pass_deadline_on(cx, cx.deadline(child));
        if news.len() + self.own.len() > Decision::CAPACITY {
            return news.wake(Wake::AtSchedulingPoint);
        }
        self.own.iter().fold(news, |decision, own| match cx.state(*own) {
            VpState::Waiting => decision.and(Action::Request(*own)),
            _ => decision,
        })
    }

    fn release(&mut self, cx: &Context<'_>, _child: VpId, held: Option<ProcessorId>) -> Decision {
        // First the processor: a parent that decides anew when another request is taken back might revoke it, and there is
        // nobody any more to take it from. Who is granted it for a request that is still to be taken back returns it.
        let runs = |own: &&VpId| held.is_some() && cx.processor(**own) == held;
        let first = self.own.iter().find(runs).map_or(Decision::NONE, |own| Decision::release(*own));
        let room = Decision::CAPACITY - first.len();
        let others = self.change_own(cx, room, |state| state == VpState::Ready, Action::Release);
        // Whoever is not asked yet is about to be if what the first parent granted was given back at once.
        let asks_later = self.own.iter().any(|own| cx.state(*own) == VpState::Waiting);
        first.then(others).wake(others.reconsider_if(asks_later).timer())
    }

    fn announced(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        self.pass_deadline_on(cx, cx.deadline(child))
    }

    fn grant(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision {
        let child = self.child.expect("only a child's request led here");
        let is_taken = self.own.get(self.takes) == Some(&own);
        match cx.state(child) {
            VpState::Ready => Decision::grant(child, processor),
            VpState::Running(_) if is_taken && self.moved == Some(cx.now()) => {
                Decision::release(own).wake(Wake::At(cx.now() + Duration::from_nanos(1)))
            }
            VpState::Running(elsewhere) if is_taken => {
                self.moved = Some(cx.now());
                let through = |other: &&VpId| cx.processor(**other) == Some(elsewhere);
                let other = self.own.iter().find(through).expect("it runs through one of them");
                Decision::revoke(child).and(Action::Grant(child, processor)).and(Action::Release(*other))
            }
            // It runs through another parent already, or wants nothing any more.
            VpState::Running(_) | VpState::Waiting => Decision::release(own),
        }
    }

    fn revoke(&mut self, cx: &Context<'_>, _own: VpId, processor: ProcessorId) -> Decision {
        let child = self.child.expect("it ran");
        // A parent whose grant was superfluous has to be asked again, but not in the middle of this one's
        // decision.
        let decision = match cx.processor(child) == Some(processor) {
            true => Decision::revoke(child),
            // It has released, and while the other parents were told, one above them all took the processor back.
            false => Decision::NONE,
        };
        decision.wake(Wake::AtSchedulingPoint)
    }

    fn init(&mut self, own: VpId) {
        self.own.push(own);
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        let Some(child) = self.child else { return Decision::NONE };
        let news = self.pass_deadline_on(cx, cx.deadline(child));
        match cx.state(child) {
            _ if !news.is_empty() => news,
            VpState::Ready => self.ask_everybody(cx),
            VpState::Waiting => {
                self.change_own(cx, Decision::CAPACITY, |state| state == VpState::Ready, Action::Release)
            }
            VpState::Running(_) if self.moved == Some(cx.now()) => Decision::NONE,
            VpState::Running(_) => {
                let taken = self.own.get(self.takes).filter(|own| cx.state(**own) == VpState::Waiting);
                taken.map_or(Decision::NONE, |own| Decision::request(*own))
            }
        }
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let child = self.child.map(|child| cx.state(child)).unwrap_or(VpState::Waiting);
        let running = self.own.iter().filter(|own| cx.processor(**own).is_some());
        match child {
            VpState::Running(processor) => {
                assert!(running.map(|own| cx.processor(*own)).eq([Some(processor)]), "it runs in one place");
            }
            VpState::Ready => {
                let asks = |own: &VpId| cx.state(*own) == VpState::Ready;
                assert!(self.own.iter().all(asks), "a child that wants to run asks all its parents");
            }
            VpState::Waiting => {
                let idle = |own: &VpId| cx.state(*own) == VpState::Waiting;
                assert!(self.own.iter().all(idle), "nobody asks for a child that wants nothing");
            }
        }
    }
}

/// What a join is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The parent whose guarantee the child is given, by position.
    pub takes: usize,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::JOIN.name()
    }

    fn build(&self, _announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        Ok(Box::new(Join::new(self.takes)))
    }
}

pub(super) static ROW: Row =
    Row::new(SchedulerKind::JOIN, |facts| Ok(Config { takes: facts.taken() }.into())).on(Intake::Several);
