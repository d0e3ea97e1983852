//! Hard CPU reservations: every child gets its budget in each of its periods and no more, by earliest
//! deadline first (Regehr and Stankovic, *HLS*, 2001, section 5.1, "RES").

use super::workload::{Demand, Workload, ms};
use talea_policy::hierarchy::{
    Action, Context, Decision, Engine, Message, Parameters, ProcessorId, Refusal, Scheduler, SchedulerId,
    VpId, VpState, Wake,
};
use talea_policy::scheduler::FixedPriority;
use talea_time::{Duration, Instant, Work};

/// Shares are admitted in billionths of a processor, rounded up.
const WHOLE: i128 = 1_000_000_000;

#[derive(Debug)]
struct Reserve {
    vp: VpId,
    budget: Work,
    period: Duration,
    /// What is left of the budget until `deadline`.
    left: Work,
    /// End of the current period.
    deadline: Instant,
    /// Its service when it was last charged.
    charged: Work,
}

/// The reservation scheduler; needs a whole processor.
#[derive(Debug, Default)]
pub struct Reservations {
    own: Option<VpId>,
    reserves: Vec<Reserve>,
    running: Option<usize>,
}

impl Reservations {
    fn own(&self) -> VpId {
        self.own.expect("init comes first")
    }

    /// Charges the running child, and refills every budget whose period has ended.
    fn update(&mut self, cx: &Context<'_>) {
        for reserve in &mut self.reserves {
            let service = cx.service(reserve.vp);
            reserve.left -= service - reserve.charged;
            reserve.charged = service;
            while reserve.deadline <= cx.now() {
                reserve.deadline += reserve.period;
                reserve.left = reserve.budget;
            }
        }
    }

    /// Who wants the processor and has budget, with the earliest deadline.
    fn most_urgent(&self, cx: &Context<'_>) -> Option<usize> {
        let wants = |reserve: &Reserve| cx.state(reserve.vp) != VpState::Waiting && reserve.left > Work::ZERO;
        let eligible = (0..self.reserves.len()).filter(|index| wants(&self.reserves[*index]));
        eligible.min_by_key(|index| self.reserves[*index].deadline)
    }

    /// The next end of a period or of the running child's budget.
    fn next_change(&self, cx: &Context<'_>) -> Wake {
        let wanting = self.reserves.iter().filter(|reserve| cx.state(reserve.vp) != VpState::Waiting);
        let refill = wanting.map(|reserve| reserve.deadline).min();
        let exhausted = self.running.map(|index| cx.now() + self.reserves[index].left.at_full_speed());
        refill.into_iter().chain(exhausted).min().map_or(Wake::Never, Wake::At)
    }

    /// Brings the processor, if it is ours, to the most urgent child, and asks for one or gives it back.
    fn decide(&mut self, cx: &Context<'_>) -> Decision {
        self.update(cx);
        let (own, next) = (self.own(), self.most_urgent(cx));
        let vp = |index: usize| self.reserves[index].vp;
        let decision = match (cx.state(own), self.running, next) {
            (VpState::Waiting, _, Some(_)) => Decision::request(own),
            (VpState::Ready, _, None) => Decision::release(own),
            (VpState::Running(_), Some(running), None) => {
                Decision::revoke(vp(running)).and(Action::Release(own))
            }
            (VpState::Running(_), None, None) => Decision::release(own),
            (VpState::Running(processor), None, Some(next)) => Decision::grant(vp(next), processor),
            (VpState::Running(processor), Some(running), Some(next)) if running != next => {
                Decision::switch(vp(running), vp(next), processor)
            }
            _ => Decision::NONE,
        };
        if cx.processor(own).is_some() {
            self.running = next;
        }
        decision.wake(self.next_change(cx))
    }

    fn admit(&self, budget: Work, period: Duration) -> Result<(), Refusal> {
        let share = |budget: Work, period: Duration| {
            let (budget, period) = (i128::from(budget.as_nanos()), i128::from(period.as_nanos()));
            (budget * WHOLE + period - 1) / period
        };
        let taken: i128 = self.reserves.iter().map(|reserve| share(reserve.budget, reserve.period)).sum();
        if taken + share(budget, period) > WHOLE {
            let left = (WHOLE - taken) as f64 / WHOLE as f64 * 100.0;
            return Err(Refusal::Admission(format!(
                "{budget} in {period} is more than the {left:.1} % left"
            )));
        }
        Ok(())
    }
}

impl Scheduler for Reservations {
    fn kind(&self) -> &'static str {
        "reservation"
    }

    fn register(&mut self, cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        let Parameters::Reservation { budget, period } = given else {
            return Err(Refusal::Unacceptable { scheduler: self.kind(), wanted: "a reservation", given });
        };
        self.admit(budget, period)?;
        let deadline = cx.now() + period;
        self.reserves.push(Reserve {
            vp: child,
            budget,
            period,
            left: budget,
            deadline,
            charged: Work::ZERO,
        });
        Ok(())
    }

    fn unregister(&mut self, _cx: &Context<'_>, child: VpId) {
        let gone = self.reserves.iter().position(|reserve| reserve.vp == child).expect("it is a child");
        self.reserves.remove(gone);
        self.running = self.running.map(|index| index - usize::from(index > gone));
    }

    fn request(&mut self, cx: &Context<'_>, _child: VpId) -> Decision {
        self.decide(cx)
    }

    fn release(&mut self, cx: &Context<'_>, _child: VpId, held: Option<ProcessorId>) -> Decision {
        if held.is_some() {
            self.running = None;
        }
        self.decide(cx)
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

    fn grant(&mut self, cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        self.decide(cx)
    }

    fn revoke(&mut self, cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        self.update(cx);
        let running = self.running.take().expect("a processor held runs a child");
        Decision::revoke(self.reserves[running].vp).wake(self.next_change(cx))
    }

    fn init(&mut self, own: VpId) {
        assert_eq!(self.own.replace(own), None, "one processor at a time");
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        self.decide(cx)
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let running = self.running.and_then(|index| cx.processor(self.reserves[index].vp));
        assert_eq!(running, cx.processor(self.own()));
        for reserve in &self.reserves {
            assert!(reserve.left >= Work::ZERO, "no reserve is overdrawn");
        }
    }
}

fn reservation(budget: i64, period: i64) -> Parameters {
    Parameters::Reservation { budget: Work::from_millis(budget), period: ms(period) }
}

/// Reservations at the top of fixed priority, and below them a thread that takes what is left.
fn machine() -> (Engine, SchedulerId, VpId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let parent = [(root, Parameters::Priority(2))];
    let res = engine.add(Box::new(Reservations::default()), &parent).expect("free");
    let rest = engine.add_thread(root, Parameters::Priority(1)).expect("free");
    (engine, res, rest)
}

#[test]
fn backlogged_children_get_exactly_their_budgets() {
    let (mut engine, res, rest) = machine();
    let [a, b, c] = [(2, 10), (5, 33), (10, 20)]
        .map(|(budget, period)| engine.add_thread(res, reservation(budget, period)).expect("it fits"));
    let load = Workload::new(engine, &[a, b, c, rest].map(|thread| (thread, Demand::Endless))).run(ms(3300));
    assert_eq!(load.per_period(a, ms(10), ms(3300)), (ms(2), ms(2)));
    assert_eq!(load.per_period(b, ms(33), ms(3300)), (ms(5), ms(5)));
    assert_eq!(load.per_period(c, ms(20), ms(3300)), (ms(10), ms(10)));
    // Hard: what they do not get goes to those below, although they want more.
    assert_eq!(load.received(rest, ms(0), ms(3300)), ms(3300 - 660 - 500 - 1650));
}

#[test]
fn a_full_processor_is_reserved_without_a_miss() {
    let (mut engine, res, rest) = machine();
    let shares = [(1, 4), (3, 12), (5, 10)];
    let threads = shares.map(|(budget, period)| {
        engine.add_thread(res, reservation(budget, period)).expect("1/4 + 1/4 + 1/2 is 1")
    });
    let mut all: Vec<_> = threads.iter().map(|thread| (*thread, Demand::Endless)).collect();
    all.push((rest, Demand::Endless));
    let load = Workload::new(engine, &all).run(ms(720));
    for (thread, (budget, period)) in threads.into_iter().zip(shares) {
        assert_eq!(load.per_period(thread, ms(period), ms(720)), (ms(budget), ms(budget)));
    }
    assert_eq!(load.received(rest, ms(0), ms(720)), ms(0));
}

#[test]
fn an_unused_budget_is_left_to_others_and_not_saved() {
    let (mut engine, res, rest) = machine();
    let sparse = engine.add_thread(res, reservation(4, 10)).expect("it fits");
    let demand = Demand::Periodic { burst: ms(6), period: ms(50) };
    let load = Workload::new(engine, &[(sparse, demand), (rest, Demand::Endless)]).run(ms(1000));
    // 4 ms in the first period, the other 2 in the second, however much went unused before.
    assert_eq!(load.received(sparse, ms(50), ms(60)), ms(4));
    assert_eq!(load.received(sparse, ms(60), ms(70)), ms(2));
    assert_eq!(load.received(rest, ms(0), ms(1000)), ms(1000 - 120));
}

#[test]
fn more_than_a_processor_is_refused_and_forgotten() {
    let (mut engine, res, _) = machine();
    engine.add_thread(res, reservation(6, 10)).expect("it fits");
    let refusal = engine.add_thread(res, reservation(9, 20)).unwrap_err();
    assert_eq!(refusal.to_string(), "not admitted: 9ms in 20ms is more than the 40.0 % left");
    let next = engine.add_thread(res, reservation(8, 20)).expect("the refused child took nothing");
    engine.remove_thread(next);
    engine.add_thread(res, reservation(4, 10)).expect("a child that leaves gives its share back");
}
