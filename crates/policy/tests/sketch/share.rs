//! Proportional share by start-time fair queueing (Goyal et al. 1996), with a quantum.

use super::workload::{Demand, Workload, ms};
use talea_policy::hierarchy::{
    Action, Context, Decision, Engine, Message, Parameters, ProcessorId, Refusal, Scheduler, VpId, VpState,
    Wake,
};
use talea_policy::scheduler::FixedPriority;
use talea_time::{Duration, Work};

/// Virtual time per nanosecond of service at weight 1.
const SCALE: i128 = 1_000_000;

#[derive(Debug)]
struct Client {
    vp: VpId,
    weight: i128,
    /// Start tag of its next, or current, quantum.
    start: i128,
    /// Its service when it was last charged.
    charged: Work,
}

/// Serves the child with the least start tag for a quantum at a time.
#[derive(Debug)]
pub struct FairQueue {
    quantum: Duration,
    own: Option<VpId>,
    clients: Vec<Client>,
    running: Option<usize>,
    virtual_time: i128,
}

impl FairQueue {
    pub fn new(quantum: Duration) -> Self {
        FairQueue { quantum, own: None, clients: Vec::new(), running: None, virtual_time: 0 }
    }

    fn own(&self) -> VpId {
        self.own.expect("init comes first")
    }

    fn index(&self, child: VpId) -> usize {
        self.clients.iter().position(|client| client.vp == child).expect("it is a child")
    }

    /// Moves the start tag behind what the child has received.
    fn charge(&mut self, cx: &Context<'_>, index: usize) {
        let client = &mut self.clients[index];
        let service = cx.service(client.vp);
        let used = i128::from((service - client.charged).as_nanos());
        client.charged = service;
        client.start += used * SCALE / client.weight;
    }

    fn least_ready(&self, cx: &Context<'_>) -> Option<usize> {
        let ready = |index: &usize| cx.state(self.clients[*index].vp) == VpState::Ready;
        (0..self.clients.len()).filter(ready).min_by_key(|index| self.clients[*index].start)
    }

    /// Serves the child of the least tag, or gives the processor back.
    fn serve(&mut self, cx: &Context<'_>, processor: ProcessorId) -> Decision {
        self.running = self.least_ready(cx);
        match self.running {
            Some(index) => {
                self.virtual_time = self.clients[index].start;
                let end = Wake::At(cx.now() + self.quantum);
                Decision::grant(self.clients[index].vp, processor).wake(end)
            }
            None => {
                // Idle: virtual time jumps over everything that was served.
                let finished = self.clients.iter().map(|client| client.start).max();
                self.virtual_time = finished.unwrap_or(0).max(self.virtual_time);
                Decision::release(self.own()).wake(Wake::Never)
            }
        }
    }
}

impl Scheduler for FairQueue {
    fn kind(&self) -> &'static str {
        "fair-queue"
    }

    fn register(&mut self, _cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        let Parameters::Weight(weight @ 1..) = given else {
            return Err(Refusal::Unacceptable { scheduler: self.kind(), wanted: "a weight above 0", given });
        };
        let weight = i128::from(weight);
        self.clients.push(Client { vp: child, weight, start: 0, charged: Work::ZERO });
        Ok(())
    }

    fn unregister(&mut self, _cx: &Context<'_>, child: VpId) {
        let gone = self.index(child);
        self.clients.remove(gone);
        self.running = self.running.map(|index| index - usize::from(index > gone));
    }

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        let index = self.index(child);
        self.clients[index].start = self.clients[index].start.max(self.virtual_time);
        match cx.state(self.own()) {
            VpState::Waiting => Decision::request(self.own()),
            // A quantum is never cut short.
            _ => Decision::NONE,
        }
    }

    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision {
        if let Some(processor) = held {
            self.charge(cx, self.index(child));
            return self.serve(cx, processor);
        }
        match (cx.state(self.own()), self.least_ready(cx)) {
            (VpState::Ready, None) => Decision::release(self.own()),
            _ => Decision::NONE,
        }
    }

    fn message(
        &mut self,
        _cx: &Context<'_>,
        child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        let Message::Change(given) = message;
        let (Some(child), Parameters::Weight(weight @ 1..)) = (child, given) else {
            return Err(Refusal::Unacceptable { scheduler: self.kind(), wanted: "a child's weight", given });
        };
        let index = self.index(child);
        self.clients[index].weight = i128::from(weight);
        Ok(Decision::NONE)
    }

    fn grant(&mut self, cx: &Context<'_>, _own: VpId, processor: ProcessorId) -> Decision {
        self.serve(cx, processor)
    }

    fn revoke(&mut self, cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        let running = self.running.take().expect("a processor held runs a child");
        self.charge(cx, running);
        Decision::revoke(self.clients[running].vp).wake(Wake::Never)
    }

    fn init(&mut self, own: VpId) {
        assert_eq!(self.own.replace(own), None, "one processor at a time");
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        let (Some(running), Some(processor)) = (self.running, cx.processor(self.own())) else {
            return Decision::NONE;
        };
        self.charge(cx, running);
        let again = Decision::NONE.wake(Wake::At(cx.now() + self.quantum));
        match self.least_ready(cx) {
            Some(next) if self.clients[next].start < self.clients[running].start => {
                let stopped = Action::Revoke(self.clients[running].vp);
                self.running = Some(next);
                self.virtual_time = self.clients[next].start;
                again.and(stopped).and(Action::Grant(self.clients[next].vp, processor))
            }
            _ => {
                self.virtual_time = self.clients[running].start;
                again
            }
        }
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let running = self.running.and_then(|index| cx.processor(self.clients[index].vp));
        assert_eq!(running, cx.processor(self.own()));
        let wants = self.clients.iter().any(|client| cx.state(client.vp) != VpState::Waiting);
        assert_eq!(wants, cx.state(self.own()) != VpState::Waiting);
    }
}

fn threads_of_weights<const N: usize>(weights: [u32; N]) -> (Engine, [VpId; N]) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let parent = [(root, Parameters::Priority(0))];
    let queue = engine.add(Box::new(FairQueue::new(ms(10))), &parent).expect("free");
    let threads = weights.map(|weight| {
        engine.add_thread(queue, Parameters::Weight(weight)).expect("every weight above 0 is fine")
    });
    (engine, threads)
}

#[test]
fn shares_approach_the_weights() {
    let (engine, threads) = threads_of_weights([1, 2, 3]);
    let load = Workload::new(engine, &threads.map(|thread| (thread, Demand::Endless))).run(ms(6000));
    for (thread, share) in threads.into_iter().zip([1000, 2000, 3000]) {
        let received = load.received(thread, ms(0), ms(6000));
        assert!((ms(share - 20)..=ms(share + 20)).contains(&received), "{received} of {share} ms");
    }
}

/// The error of start-time fair queueing (Regehr and Stankovic, section 5.1) with the whole processor as input: `r T q + q`.
#[test]
fn every_interval_holds_the_share_up_to_the_error() {
    let (engine, [small, large]) = threads_of_weights([1, 4]);
    let load = Workload::new(engine, &[(small, Demand::Endless), (large, Demand::Endless)]).run(ms(5000));
    assert!(load.share_error(small, 20, ms(5000)) <= ms(4 + 10));
    assert!(load.share_error(large, 80, ms(5000)) <= ms(16 + 10));
}

#[test]
fn sleep_earns_no_credit() {
    let (engine, [steady, sleeper]) = threads_of_weights([1, 1]);
    // Wants 400 ms every second: less than its half, but not before the other has had as much.
    let nap = Demand::Periodic { burst: ms(400), period: ms(1000) };
    let load = Workload::new(engine, &[(steady, Demand::Endless), (sleeper, nap)]).run(ms(4000));
    assert_eq!(load.received(sleeper, ms(0), ms(4000)), ms(1600));
    for second in 1..4 {
        let start = ms(1000 * second);
        let received = load.received(steady, start, start + ms(600));
        assert!((ms(280)..=ms(320)).contains(&received), "{received} in the first 600 ms");
    }
}

#[test]
fn a_weight_is_needed() {
    let mut engine = Engine::new(1);
    let queue = engine.add_root(Box::new(FairQueue::new(ms(10))));
    let refusal = engine.add_thread(queue, Parameters::Weight(0)).unwrap_err();
    assert_eq!(refusal.to_string(), "a fair-queue scheduler takes a weight above 0, not Weight(0)");
}
