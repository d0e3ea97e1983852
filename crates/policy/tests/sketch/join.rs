//! A join (Regehr and Stankovic, *HLS*, 2001, section 5.1): its child runs whenever any of its parents runs it.

use super::reservation::Reservations;
use super::workload::{Demand, Workload, ms};
use talea_policy::hierarchy::{
    Action, Context, Decision, Engine, Message, Parameters, ProcessorId, Refusal, Scheduler, SchedulerId,
    VpId, VpState, Wake,
};
use talea_policy::scheduler::FixedPriority;
use talea_time::Work;

/// One child, one own VP per parent.
#[derive(Debug, Default)]
pub struct Join {
    own: Vec<VpId>,
    child: Option<VpId>,
}

impl Join {
    /// `change` for every own VP whose state is `wanted`.
    fn for_own(&self, cx: &Context<'_>, wanted: fn(VpState) -> bool, change: fn(VpId) -> Action) -> Decision {
        let chosen = self.own.iter().filter(|own| wanted(cx.state(**own)));
        chosen.fold(Decision::NONE, |decision, own| decision.and(change(*own)))
    }

    fn ask_everybody(&self, cx: &Context<'_>) -> Decision {
        self.for_own(cx, |state| state == VpState::Waiting, Action::Request)
    }
}

impl Scheduler for Join {
    fn kind(&self) -> &'static str {
        "join"
    }

    fn register(&mut self, _cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        if self.child.is_some() {
            return Err(Refusal::Taken { scheduler: self.kind(), given });
        }
        self.child = Some(child);
        Ok(())
    }

    fn unregister(&mut self, _cx: &Context<'_>, _child: VpId) {
        self.child = None;
    }

    fn request(&mut self, cx: &Context<'_>, _child: VpId) -> Decision {
        self.ask_everybody(cx)
    }

    fn release(&mut self, cx: &Context<'_>, _child: VpId, held: Option<ProcessorId>) -> Decision {
        // First those that only ask, so that nobody is granted what the child no longer wants.
        let decision = self.for_own(cx, |state| state == VpState::Ready, Action::Release);
        let runs = |own: &&VpId| held.is_some() && cx.processor(**own) == held;
        self.own.iter().find(runs).map_or(decision, |own| decision.and(Action::Release(*own)))
    }

    fn message(
        &mut self,
        _cx: &Context<'_>,
        _child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        let Message::Change(given) = message;
        Err(Refusal::Unacceptable { scheduler: self.kind(), wanted: "no messages", given })
    }

    fn grant(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision {
        let child = self.child.expect("only a child's request led here");
        match cx.state(child) {
            VpState::Ready => Decision::grant(child, processor),
            // It runs through another parent already, or wants nothing any more.
            _ => Decision::release(own),
        }
    }

    fn revoke(&mut self, _cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        let child = self.child.expect("it ran");
        // A parent whose grant was superfluous has to be asked again, but not in the middle of this one's
        // decision.
        Decision::revoke(child).wake(Wake::AtSchedulingPoint)
    }

    fn init(&mut self, own: VpId) {
        self.own.push(own);
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        match self.child.map(|child| cx.state(child)) {
            Some(VpState::Ready) => self.ask_everybody(cx),
            _ => Decision::NONE,
        }
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let child = self.child.map(|child| cx.state(child)).unwrap_or(VpState::Waiting);
        let running: Vec<_> = self.own.iter().filter_map(|own| cx.processor(*own)).collect();
        match child {
            VpState::Running(processor) => assert_eq!(running, [processor]),
            VpState::Ready => {
                assert!(running.is_empty());
                let asks = |own: &VpId| cx.state(*own) == VpState::Ready;
                assert!(self.own.iter().all(asks), "a child that wants to run asks all its parents");
            }
            VpState::Waiting => {
                assert!(self.own.iter().all(|own| cx.state(*own) == VpState::Waiting));
            }
        }
    }
}

/// A thread that joins 2 ms in 10 ms with whatever the lowest priority leaves, beside `hog` in the middle.
fn soft_reservation(hog: Demand) -> (Workload, VpId, VpId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let priority = Parameters::Priority;
    let reservation = Parameters::Reservation { budget: Work::from_millis(2), period: ms(10) };
    let res = engine.add(Box::new(Reservations::default()), &[(root, priority(3))]).expect("free");
    let parents: [(SchedulerId, Parameters); 2] = [(res, reservation), (root, priority(1))];
    let join = engine.add(Box::new(Join::default()), &parents).expect("there is room");
    let thread = engine.add_thread(join, Parameters::None).expect("the only one");
    let other = engine.add_thread(root, priority(2)).expect("free");
    let load = Workload::new(engine, &[(thread, Demand::Endless), (other, hog)]).run(ms(1000));
    (load, thread, other)
}

#[test]
fn it_runs_through_the_parent_that_promised() {
    let (load, thread, hog) = soft_reservation(Demand::Endless);
    assert_eq!(load.per_period(thread, ms(10), ms(1000)), (ms(2), ms(2)));
    assert_eq!(load.received(hog, ms(0), ms(1000)), ms(800));
}

#[test]
fn it_runs_through_any_parent() {
    // Once more than the reservation, as Regehr and Stankovic, section 5.4, turns a hard reservation into a soft one.
    let (load, thread, other) = soft_reservation(Demand::Periodic { burst: ms(3), period: ms(7) });
    let others = load.received(other, ms(0), ms(1000));
    assert_eq!(load.received(thread, ms(0), ms(1000)), ms(1000) - others);
    assert!(load.per_period(thread, ms(10), ms(1000)).0 >= ms(2));
    assert!(others >= ms(3) * (1000 / 7 - 1), "the other thread gets its work done too");
}

/// On two processors the second parent's grant is superfluous, and the processor goes to who can use it.
#[test]
fn it_occupies_one_processor_only() {
    let mut engine = Engine::new(2);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let priority = Parameters::Priority;
    let parents = [(root, priority(6)), (root, priority(4))];
    let join = engine.add(Box::new(Join::default()), &parents).expect("free");
    let joined = engine.add_thread(join, Parameters::None).expect("the only one");
    let [above, between, below] =
        [7, 5, 3].map(|level| engine.add_thread(root, priority(level)).expect("free"));
    let burst = |burst, period| Demand::Periodic { burst: ms(burst), period: ms(period) };
    let threads =
        [(joined, Demand::Endless), (above, burst(2, 11)), (between, burst(3, 7)), (below, Demand::Endless)];
    let load = Workload::new(engine, &threads).run(ms(770));
    let received = |thread| load.received(thread, ms(0), ms(770));
    // Through its higher parent it outranks all but one, and never needs two processors.
    assert_eq!(received(joined), ms(770));
    assert_eq!(received(above), ms(2 * 70));
    assert!(received(between) >= ms(3 * 109));
    assert_eq!(received(below), ms(770) - received(above) - received(between));
}
