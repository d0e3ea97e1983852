//! A link with delay, jitter and loss, over any other transport.
//!
//! What becomes of a message is drawn where it is sent, from the seed, by [`MessageWay`], of which the simulator has the same answers: for the same
//! jobs the same messages are lost, and the others take the same time. Which of the two clocks counts does not matter here: the sender
//! writes into the message when it is to be delivered, and the receiver holds it until then: as many as its [`Inbox`] has room for.

use crate::clock::ClockMapping;
use crate::counts::{Counts, Refusal, Sent};
use crate::inbox::Inbox;
use crate::message::{Message, Peer};
use crate::news::{Arrived, Received};
use crate::transport::Transport;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_model::{Description, OperationId, Route, System};
use talea_policy::demand::{MessageWay, Passage};
use talea_time::{Clock, Duration, Instant};

/// Carries messages by `T`, as slowly and as unreliably as the links of a system are.
pub struct SimulatedLink<T, C> {
    transport: T,
    clock: C,
    seed: u64,
    /// By receiving node.
    routes: Vec<Route>,
    lost: AtomicU64,
    unheld: AtomicU64,
    undelivered: AtomicU64,
}

/// As many messages are held at most, however long links are: 16 MiB.
const MOST_HELD: usize = 4_096;

/// How many messages the links of a system can have under way to a node at once, as far as its tasks keep to their periods; twice that, and
/// some more, is [`Inbox::with_room`] for it.
pub fn room(system: &System, own: usize) -> usize {
    let node_of = |operation: OperationId| system.subtask(operation).node;
    let mut messages = 0_i64;
    for operation in system.operations_on(own) {
        let away = operation.predecessors.iter().filter(|from| node_of(**from) != own);
        for from in away {
            let longest = system.route(node_of(*from), own).longest();
            let period = system.tasks[operation.task].period.as_nanos().max(1);
            messages = messages.saturating_add(longest.as_nanos() / period + 2);
        }
    }
    usize::try_from(messages).unwrap_or(MOST_HELD).saturating_mul(2).clamp(16, MOST_HELD)
}

impl<T: Transport, C: Clock + Send + Sync> SimulatedLink<T, C> {
    /// What the node of `transport` sends goes by the links of `description`, with its seed.
    pub fn new(transport: T, clock: C, description: &Description) -> Self {
        let own = usize::from(transport.own().node);
        let routes = (0..description.nodes.len()).map(|to| description.route(own, to)).collect();
        let [lost, unheld, undelivered] = [const { AtomicU64::new(0) }; 3];
        SimulatedLink { transport, clock, seed: description.seed, routes, lost, unheld, undelivered }
    }

    /// Gives out what is due. Returns whether that was anything.
    fn deliver(&self, inbox: &mut Inbox, now: Instant, take: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let mut any = false;
        while inbox.held.deliver(now, take) {
            any = true;
        }
        any
    }
}

impl<T: Transport, C: Clock + Send + Sync> Transport for SimulatedLink<T, C> {
    fn own(&self) -> Peer {
        self.transport.own()
    }

    fn send(&self, to: usize, message: &Message<'_>) -> Result<Sent, Refusal> {
        let route = self.routes.get(to).copied().unwrap_or_default();
        let job = message.identity.job;
        match MessageWay::new(self.seed, job.operation, message.to, route).passage(job.instance) {
            Passage::Lost => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                Ok(Sent::Lost)
            }
            Passage::Arrives(Duration::ZERO) => self.transport.send(to, message),
            Passage::Arrives(time) => {
                let not_before = Some(message.sent.saturating_add(time));
                self.transport.send(to, &Message { not_before, ..*message })
            }
        }
    }

    fn receive(
        &self,
        inbox: &mut Inbox,
        within: Option<Duration>,
        take: &mut dyn FnMut(Arrived<'_>),
    ) -> std::io::Result<Received> {
        let now = self.clock.now();
        if self.deliver(inbox, now, take) {
            return Ok(Received::More);
        }
        let until_next = inbox.held.next().map(|due| due - now);
        let within = [within, until_next].into_iter().flatten().min();
        // The inner transport has the rest of the inbox meanwhile.
        let mut held = std::mem::take(&mut inbox.held);
        let received = self.transport.receive(inbox, within, &mut |arrived| match arrived {
            Arrived::Message(Message { identity, not_before: Some(not_before), .. }) => {
                let Arrived::Message(message) = arrived else { unreachable!("it is one") };
                let due = self.clock_of(usize::from(identity.peer.node)).range(not_before).0;
                if due <= self.clock.now() {
                    take(arrived);
                } else if !held.put(due, message) {
                    self.unheld.fetch_add(1, Ordering::Relaxed);
                    take(Arrived::Dropped(message));
                }
            }
            other => take(other),
        });
        inbox.held = held;
        self.deliver(inbox, self.clock.now(), take);
        if matches!(received, Ok(Received::End)) {
            self.undelivered.fetch_add(inbox.held.discard() as u64, Ordering::Relaxed);
        }
        received
    }

    fn stop_receiving(&self) -> std::io::Result<()> {
        self.transport.stop_receiving()
    }

    fn leave_silently(&self) {
        self.transport.leave_silently();
    }

    fn clock_of(&self, node: usize) -> ClockMapping {
        self.transport.clock_of(node)
    }

    fn counts(&self) -> Counts {
        let lost = self.lost.load(Ordering::Relaxed);
        let counts = self.transport.counts();
        let unheld = self.unheld.load(Ordering::Relaxed);
        let undelivered = self.undelivered.load(Ordering::Relaxed);
        Counts { sent: counts.sent + lost, lost, unheld, undelivered, ..counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;
    use crate::pipe::{self, Pipes};
    use crate::promise::PromiseWatch;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicI64;
    use talea_model::{LinkBuilder, LossRate, SubtaskBuilder, TaskBuilder};
    use talea_time::Work;

    /// A clock that the test drives.
    struct Driven<'a>(&'a AtomicI64);

    impl Clock for Driven<'_> {
        fn now(&self) -> Instant {
            Instant::from_nanos(self.0.load(Ordering::Relaxed))
        }
    }

    /// The machine's.
    struct Real(std::time::Instant);

    impl Clock for Real {
        fn now(&self) -> Instant {
            Instant::from_nanos(self.0.elapsed().as_nanos() as i64)
        }
    }

    const US: i64 = 1_000;

    fn system() -> System {
        let us = Duration::from_micros;
        let loss = LossRate::from_share(0.2).expect("a share");
        let there = LinkBuilder::from_to("a", "b").delay(us(200)).jitter(us(300)).loss(loss);
        let back = LinkBuilder::from_to("b", "a").delay(us(50));
        let task = TaskBuilder::new("t", Duration::from_millis(1)).wcet(Work::from_nanos(1)).on("a");
        let builder = System::builder("s").seed(9).node("a", [0]).node("b", [1]).link(there).link(back);
        builder.task(task).build().expect("a system")
    }

    fn pipes() -> (tempfile::TempDir, [Pipes; 2]) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        pipe::create(directory.path(), 2).expect("pipes");
        let open = |node| Pipes::open(directory.path(), 2, Peer { node, epoch: 11 }).expect("pipes");
        let both = [open(0), open(1)];
        (directory, both)
    }

    /// What the simulator says of the messages from `a` to `b`.
    fn passage(system: &System, counter: u64) -> Passage {
        let message = message(0, counter, &[]);
        MessageWay::new(system.seed, message.identity.job.operation, message.to, system.route(0, 1))
            .passage(counter)
    }

    #[test]
    fn messages_are_late_and_lost_as_the_simulator_has_it() {
        let (system, now, (_directory, [one, other])) = (system(), AtomicI64::new(0), pipes());
        let one = SimulatedLink::new(one, Driven(&now), &system);
        let other = SimulatedLink::new(other, Driven(&now), &system);
        let (mut inbox, mut arrivals) = (Inbox::new(2).with_room(256), BTreeMap::new());
        for step in 0..2_000 {
            now.store(step * US, Ordering::Relaxed);
            let allocated = allocation_counter::measure(|| {
                if step % 10 == 0 {
                    let counter = step as u64 / 10;
                    let message = Message { sent: Driven(&now).now(), ..message(0, counter, &[1, 2]) };
                    one.send(1, &message).expect("there is room");
                }
            });
            assert_eq!(allocated.count_total, 0);
            let mut take = |arrived: Arrived<'_>| {
                if let Arrived::Message(message) = arrived {
                    assert_eq!(message.payload, [1, 2]);
                    let took = Driven(&now).now() - message.sent;
                    assert!(arrivals.insert(message.identity.job.instance, took).is_none(), "once");
                }
            };
            let _ = other.receive(&mut inbox, Some(Duration::ZERO), &mut take).expect("it is readable");
        }
        let mut lost = 0;
        for counter in 0..140 {
            match (passage(&system, counter), arrivals.get(&counter)) {
                (Passage::Lost, None) => {}
                // The test looks once in a microsecond.
                (Passage::Arrives(time), Some(took)) => {
                    assert!(time <= *took && *took <= time + Duration::from_nanos(US), "{counter}");
                }
                other => panic!("{counter}: {other:?}"),
            }
        }
        for counter in 0..200 {
            lost += u64::from(passage(&system, counter) == Passage::Lost);
        }
        let counts = one.counts();
        assert_eq!((counts.sent, counts.lost, other.counts().unheld), (200, lost, 0));
        assert!((20..60).contains(&lost), "a fifth");
    }

    #[test]
    fn two_nodes_on_threads_answer_each_other_over_a_lossy_link() {
        const COUNT: u64 = 150;
        let (system, (_directory, pipes)) = (system(), pipes());
        let clock = std::time::Instant::now();
        let [one, other] = pipes.map(|pipes| SimulatedLink::new(pipes, Real(clock), &system));
        let kept: Vec<u64> =
            (0..COUNT).filter(|counter| passage(&system, *counter) != Passage::Lost).collect();
        let watches = [0, 1].map(|own| PromiseWatch::new(&system, own));
        let answered = std::thread::scope(|scope| {
            // The second node answers each message until it is told to stop.
            let second = scope.spawn(|| {
                let mut inbox = Inbox::new(2).with_room(COUNT as usize);
                let mut heard = Vec::new();
                loop {
                    let mut take = |arrived: Arrived<'_>| {
                        let Arrived::Message(request) = arrived else { return };
                        let now = Real(clock).now();
                        assert!(
                            now - request.sent >= Duration::from_micros(200),
                            "no earlier than the link's delay"
                        );
                        let _ = watches[1].see(&request, other.clock_of(0), now);
                        heard.push(request.identity.job.instance);
                        let mut answer = message(1, request.identity.job.instance, &[]);
                        (answer.sent, answer.reply_to) = (now, Some(request.identity.job));
                        other.send(0, &answer).expect("there is room");
                    };
                    if other.receive(&mut inbox, None, &mut take).expect("it is readable") == Received::End {
                        return heard;
                    }
                }
            });
            let (mut inbox, mut answered) = (Inbox::new(2).with_room(COUNT as usize), Vec::new());
            for counter in 0..COUNT {
                one.send(1, &Message { sent: Real(clock).now(), ..message(0, counter, &[]) })
                    .expect("there is room");
                // A pipe of the least size holds 56 messages.
                while counter >= 40
                    && answered.len() + 40 < kept.iter().filter(|kept| **kept <= counter).count()
                {
                    receive_answers(&one, &mut inbox, &mut answered);
                }
            }
            while answered.len() < kept.len() {
                receive_answers(&one, &mut inbox, &mut answered);
            }
            other.stop_receiving().expect("there is room");
            let mut heard = second.join().expect("it answers");
            heard.sort_unstable();
            assert_eq!(heard, kept);
            answered
        });
        assert_eq!(answered.len(), kept.len());
        assert_eq!(one.counts().lost, COUNT - kept.len() as u64);
        assert!(watches[1].late().0 <= kept.len() as u64);
    }

    #[test]
    fn what_is_held_when_the_receiver_is_stopped_and_what_it_has_no_room_for_is_counted() {
        let (system, now, (_directory, [one, other])) = (system(), AtomicI64::new(0), pipes());
        let one = SimulatedLink::new(one, Driven(&now), &system);
        let other = SimulatedLink::new(other, Driven(&now), &system);
        let (mut inbox, mut dropped, mut sent) = (Inbox::new(2).with_room(3), Vec::new(), Vec::new());
        for counter in 0..20 {
            let outcome = one.send(1, &message(0, counter, &[])).expect("there is room");
            assert_eq!(
                outcome == Sent::Lost,
                passage(&system, counter) == Passage::Lost,
                "the sender is told"
            );
            sent.extend((outcome == Sent::Sent).then_some(counter));
        }
        other.stop_receiving().expect("there is room");
        let mut take = |arrived: Arrived<'_>| match arrived {
            Arrived::Dropped(message) => dropped.push(message.identity.job.instance),
            Arrived::Message(_) => panic!("nothing is due"),
            Arrived::Appeared(_) | Arrived::Left(_) => {}
        };
        while other.receive(&mut inbox, None, &mut take).expect("it is readable") == Received::More {}
        assert_eq!(dropped, sent[3..], "those that came after there was no room");
        let counts = other.counts();
        assert_eq!((counts.undelivered, counts.unheld), (3, sent.len() as u64 - 3));
    }

    #[test]
    fn what_is_under_way_arrives_though_its_sender_has_left() {
        let (system, now, (_directory, [one, other])) = (system(), AtomicI64::new(0), pipes());
        let one = SimulatedLink::new(one, Driven(&now), &system);
        let other = SimulatedLink::new(other, Driven(&now), &system);
        let mut inbox = Inbox::new(2).with_room(8);
        let mut hear = |at: i64| {
            now.store(at, Ordering::Relaxed);
            let mut heard = Vec::new();
            let mut take = |arrived: Arrived<'_>| {
                heard.push(match arrived {
                    Arrived::Message(_) => "message",
                    Arrived::Appeared(_) => "appeared",
                    Arrived::Left(_) => "left",
                    Arrived::Dropped(_) => "dropped",
                });
            };
            let _ = other.receive(&mut inbox, Some(Duration::ZERO), &mut take).expect("it is readable");
            heard
        };
        let arrives = |counter: &u64| passage(&system, *counter) != Passage::Lost;
        let counter = (0..100).find(arrives).expect("four fifths arrive");
        let message = Message { sent: Instant::ZERO, ..message(0, counter, &[]) };
        assert_eq!(one.send(1, &message), Ok(Sent::Sent));
        drop(one);
        assert_eq!(hear(1), ["appeared", "left"]);
        assert_eq!(other.send(0, &message), Err(Refusal::Left));
        assert_eq!(hear(1_000 * US), ["message"]);
    }

    #[test]
    fn there_is_room_for_what_links_have_under_way() {
        let ms = Duration::from_millis;
        let step = |name: &str, node: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(1)).on(node);
        let system = |delay| {
            let task =
                TaskBuilder::new("t", ms(10)).subtask(step("x", "a")).subtask(step("y", "b").after(["x"]));
            let link = LinkBuilder::from_to("a", "b").delay(delay).jitter(ms(50));
            System::builder("s")
                .node("a", [0])
                .node("b", [1])
                .link(link)
                .task(task)
                .build()
                .expect("a system")
        };
        assert_eq!(room(&system(ms(200)), 1), 2 * (25 + 2));
        assert_eq!(room(&system(ms(200)), 0), 16, "nothing comes");
        assert_eq!(room(&system(Duration::from_secs(3_600)), 1), MOST_HELD);
    }

    fn receive_answers(
        transport: &SimulatedLink<Pipes, Real>,
        inbox: &mut Inbox,
        answered: &mut Vec<talea_record::JobId>,
    ) {
        let mut take = |arrived: Arrived<'_>| {
            if let Arrived::Message(message) = arrived {
                answered.push(message.reply_to.expect("it is an answer"));
            }
        };
        let _ = transport.receive(inbox, None, &mut take).expect("it is readable");
    }
}
