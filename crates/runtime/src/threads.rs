//! The threads of a run: created with what they need, and ended together.

mod attributes;

use crate::error::PrepareError;
use crate::flow::{JobFlowSetUp, Shared};
use crate::guarding::GuardKeeper;
use crate::hierarchy::LaneMember;
use crate::lane::preemptive::{Slot, SlotCell, SlotPriorities, SlotThread, Slots};
use crate::lane::{KernelPriorities, LaneAgent, UnsteppedLane};
use crate::layout::LaneSite;
use crate::lowered::OwnThread;
use crate::lowering::hierarchy::Level;
use crate::lowering::{LanePriorities, NodeSettings};
use crate::options::RunOptions;
use crate::outcome::{NodeSpin, ThreadAttributes};
use crate::receiving::receive;
use crate::recorder::Recording;
use crate::release::{ReleaseThread, Source};
use std::io::ErrorKind;
use std::sync::Arc;
use talea_linux::clock::thread_cpu_time;
use talea_linux::memory::prefault_stack;
use talea_linux::thread::{JoinHandle, spawn};
use talea_linux::timer::{Sleeper, Tail};
use talea_manage::Marks;
use talea_model::{LaneDispatch, Late, OperationId, System};
use talea_policy::discipline::Discipline;
use talea_policy::lane::LaneQueue;
use talea_policy::strategy::Lane;
use talea_record::{RingFile, RingWriter, ThreadRole};
use talea_ring::inbox::Receiver;
use talea_time::Work;
use talea_transport::Transport;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadPurpose {
    Release { node: usize },
    Receive { node: usize },
    Lane { lane: usize },
    Slot { lane: usize, slot: usize },
    Controller { lane: usize },
}

/// Everything threads are created from.
pub(crate) struct ThreadPlan<'a> {
    pub system: &'a System,
    pub options: &'a RunOptions,
    pub shared: &'a Arc<Shared>,
    /// The nodes of this process and their kernel settings.
    pub nodes: &'a [(usize, NodeSettings)],
    pub realtime: bool,
    /// How many instances of each operation of this process may be in flight.
    pub windows: &'a [usize],
}

/// The threads of a run, and the lanes that have none here: members of the hierarchies of their nodes, and what the caller steps.
pub(crate) struct CreatedThreads {
    pub threads: RunThreads,
    pub lane_members: Vec<LaneMember>,
    /// Lanes that the caller steps.
    pub stepped: Vec<UnsteppedLane>,
}

/// The inboxes of the lanes of this process, by lane over all nodes.
pub(crate) type Inboxes = Vec<Option<Receiver>>;

/// Stack of a thread that no user's code runs on, in bytes.
const BARE_STACK: usize = 128 * 1024;

/// What a thread leaves when it ends.
enum Ended {
    Nothing,
    /// A release thread, what it spun.
    Released(NodeSpin),
    /// An own thread of a lowered hierarchy, by its index, what it received.
    Own(usize, Work),
}

/// What all threads leave.
#[derive(Default)]
pub(crate) struct EndedThreads {
    pub spin: Vec<NodeSpin>,
    /// Of lowered hierarchies.
    pub own: Vec<OwnThread>,
}

/// What a thread does.
type ThreadBody = Box<dyn FnOnce() -> Ended + Send>;

/// The running threads. Dropping it ends them.
pub(crate) struct RunThreads {
    pub shared: Arc<Shared>,
    threads: Vec<JoinHandle<Ended>>,
    slots: Vec<Arc<SlotCell>>,
    /// The position of the thread that receives what other processes send, once there is one.
    receiver: Option<usize>,
}

/// Slots of a lane: as many as are asked for, or fewer where more could never be taken.
///
/// Where a later job of an operation never outranks an earlier one, at most one job of each member, and of each operation
/// that can be declared, is under way, and one slot more serves the job that outranks them all. That is so in order of release and
/// in order of deadline. It is not so where late jobs stand last, because every job that becomes late
/// keeps its slot while the next one of the same operation begins, nor in order of laxity, which an
/// earlier job gains while it runs.
pub(crate) fn slots_of(lane: &Lane, options: &RunOptions) -> usize {
    let in_order = match lane.discipline {
        Discipline::Fifo => true,
        Discipline::Deadline => lane.rules.late != Late::Last,
        Discipline::Laxity => false,
    };
    match lane.rules.dispatch {
        LaneDispatch::NonPreemptive => 0,
        LaneDispatch::Preemptive if in_order => {
            options.slots.clamp(1, lane.members.len() + options.posting.operations + 1)
        }
        LaneDispatch::Preemptive => options.slots.max(1),
    }
}

impl ThreadPlan<'_> {
    /// The threads of this process. A lane's slots come before its controller, which has to know them.
    pub fn roles(&self) -> Vec<ThreadPurpose> {
        let mut roles = Vec::new();
        let hosted = self.shared.ports.iter().enumerate().filter(|(_, port)| port.is_some());
        for (lane, _) in hosted {
            let slots = slots_of(self.lane(lane), self.options);
            if slots == 0 {
                roles.push(ThreadPurpose::Lane { lane });
            } else {
                roles.extend((0..slots).map(|slot| ThreadPurpose::Slot { lane, slot }));
                roles.push(ThreadPurpose::Controller { lane });
            }
        }
        if self.shared.link.is_some() {
            let hears = |(_, settings): &&(usize, NodeSettings)| matches!(settings, NodeSettings::Lanes(_));
            roles.extend(
                self.nodes.iter().filter(hears).map(|(node, _)| ThreadPurpose::Receive { node: *node }),
            );
        }
        roles.extend(self.nodes.iter().map(|(node, _)| ThreadPurpose::Release { node: *node }));
        roles
    }

    /// Those of lanes that the caller steps, for whom they are there though nothing is executed.
    pub fn stepped_roles(&self) -> Vec<ThreadPurpose> {
        let is_stepped = |role: &ThreadPurpose| {
            let is_lane = matches!(role, ThreadPurpose::Lane { .. });
            is_lane && self.options.stepped && !self.is_managed(self.node(*role))
        };
        self.roles().into_iter().filter(is_stepped).collect()
    }

    fn lane(&self, lane: usize) -> &Lane {
        self.shared.layout.lanes[lane].lane.as_ref().expect("it is executed")
    }

    /// Creates the threads; each has the ring of the same position. Those of lanes in hierarchies are left to be taken in.
    pub fn create(
        &self,
        roles: &[ThreadPurpose],
        rings: &mut RingFile,
        mut inboxes: Inboxes,
        mut keepers: Vec<Option<GuardKeeper>>,
    ) -> Result<CreatedThreads, PrepareError> {
        let mut running = RunThreads {
            shared: Arc::clone(self.shared),
            threads: Vec::new(),
            slots: Vec::new(),
            receiver: None,
        };
        let (mut slots, mut lane_members, mut stepped) = (Vec::new(), Vec::new(), Vec::new());
        for (position, &role) in roles.iter().enumerate() {
            let writer = rings.writer(position);
            match role {
                ThreadPurpose::Slot { lane, .. } => {
                    let cell = Arc::new(SlotCell::new());
                    running.slots.push(Arc::clone(&cell));
                    let body = self.slot_body(lane, writer, Arc::clone(&cell));
                    let tid = running.create_thread(self, role, body)?;
                    slots.push(Slot::new(cell, tid));
                }
                ThreadPurpose::Controller { lane } => {
                    let inbox = inboxes[lane].take().expect("each lane has one inbox");
                    let body = self.controller_body(lane, writer, inbox, std::mem::take(&mut slots));
                    running.create_thread(self, role, body)?;
                }
                ThreadPurpose::Lane { lane } => {
                    let inbox = inboxes[lane].take().expect("each lane has one inbox");
                    if self.is_managed(self.node(role)) {
                        lane_members.push(self.lane_member(lane, writer, inbox));
                    } else if self.options.stepped && !self.is_own(lane) {
                        stepped.push(self.stepped_lane(lane, writer, inbox));
                    } else {
                        running.create_thread(self, role, self.lane_body(lane, writer, inbox))?;
                    }
                }
                ThreadPurpose::Receive { node } => {
                    running.create_thread(self, role, self.receive_body(node, writer))?;
                    running.receiver = Some(running.threads.len() - 1);
                }
                ThreadPurpose::Release { node } => {
                    let body = self.release_body(node, writer, keepers[node].take());
                    running.create_thread(self, role, body)?;
                }
            }
        }
        Ok(CreatedThreads { threads: running, lane_members, stepped })
    }

    fn flow_set_up(&self, node: usize, writer: RingWriter) -> JobFlowSetUp {
        let recording = Recording::new(writer, node, &self.system.nodes[node].cpus);
        let recording = match self.settings(node) {
            NodeSettings::Lanes(_) => recording,
            NodeSettings::Hierarchy(_) => recording.of_jobs_alone(),
        };
        JobFlowSetUp::new(self.shared, recording)
    }

    fn queue(&self, lane: usize) -> LaneQueue {
        let Lane { discipline, rules, members, .. } = self.lane(lane);
        let layout = &self.shared.layout;
        let window = |member: &OperationId| {
            layout.operation(*member).local.map_or(0, |operation| self.windows[operation])
        };
        let described: usize = members.iter().map(window).sum();
        LaneQueue::new(*discipline, *rules, described + self.options.posting.all_jobs())
    }

    fn lane_agent(&self, lane: usize, inbox: Receiver) -> LaneAgent {
        LaneAgent { shared: Arc::clone(self.shared), inbox, queue: self.queue(lane), lane }
    }

    fn lane_body(&self, lane: usize, writer: RingWriter, inbox: Receiver) -> ThreadBody {
        let LaneSite { node, level, .. } = self.shared.layout.lanes[lane];
        let (flow_set_up, processor) = (self.flow_set_up(node, writer), self.processor(node));
        let own = match self.settings(node) {
            NodeSettings::Hierarchy(settings) => Some(settings.threads[level]),
            NodeSettings::Lanes(_) => None,
        };
        let thread = self.lane_agent(lane, inbox);
        Box::new(move || {
            let (shared, before) = (Arc::clone(&thread.shared), thread_cpu_time());
            let flow = flow_set_up.begin(ThreadRole::Lane, Some(lane));
            let level = own.map_or(Level::Own, |setting| setting.level);
            thread.serve(flow, &mut KernelPriorities::new(&shared, lane, processor, level));
            own.map_or(Ended::Nothing, |setting| Ended::Own(setting.thread, thread_cpu_time() - before))
        })
    }

    fn lane_member(&self, lane: usize, writer: RingWriter, inbox: Receiver) -> LaneMember {
        let site = &self.shared.layout.lanes[lane];
        LaneMember {
            node: site.node,
            level: site.level,
            under: self.lane(lane).under.expect("it is a lane of a hierarchy"),
            name: self.name(ThreadPurpose::Lane { lane }),
            agent: self.lane_agent(lane, inbox),
            flow_set_up: self.flow_set_up(site.node, writer),
            stack: self.stack(ThreadPurpose::Lane { lane }),
        }
    }

    fn stepped_lane(&self, lane: usize, writer: RingWriter, inbox: Receiver) -> UnsteppedLane {
        // Whichever thread steps it runs wherever it likes.
        let recording = Recording::new(writer, self.shared.layout.lanes[lane].node, &[]);
        let flow_set_up = JobFlowSetUp::new(self.shared, recording);
        UnsteppedLane { agent: self.lane_agent(lane, inbox), flow_set_up }
    }

    fn slot_body(&self, lane: usize, writer: RingWriter, cell: Arc<SlotCell>) -> ThreadBody {
        let node = self.shared.layout.lanes[lane].node;
        let flow_set_up = self.flow_set_up(node, writer);
        let thread =
            SlotThread { shared: Arc::clone(self.shared), cell, lane, processor: self.processor(node) };
        Box::new(move || {
            thread.serve(flow_set_up);
            Ended::Nothing
        })
    }

    fn controller_body(
        &self,
        lane: usize,
        writer: RingWriter,
        inbox: Receiver,
        slots: Vec<Slot>,
    ) -> ThreadBody {
        let site = &self.shared.layout.lanes[lane];
        let NodeSettings::Lanes(lowering) = self.settings(site.node) else {
            unreachable!("own threads are no preemptive lanes")
        };
        let priorities = match lowering.lanes[site.level] {
            LanePriorities::Banded { granted, parked, .. } => SlotPriorities { granted, parked },
            LanePriorities::Single(priority) => {
                unreachable!("a preemptive lane has priority {priority} only")
            }
        };
        let (flow_set_up, processor) = (self.flow_set_up(site.node, writer), self.processor(site.node));
        let priorities = self.realtime.then_some(priorities);
        let mut slots = Slots::new(self.shared, lane, slots, priorities, processor);
        let thread = self.lane_agent(lane, inbox);
        Box::new(move || {
            thread.serve(flow_set_up.begin(ThreadRole::Lane, Some(lane)), &mut slots);
            Ended::Nothing
        })
    }

    fn release_body(&self, node: usize, writer: RingWriter, keeper: Option<GuardKeeper>) -> ThreadBody {
        let gate = self.nodes.iter().position(|(own, _)| *own == node).expect("a node of this process");
        let flow_set_up = self.flow_set_up(node, writer);
        let (tail, spins) = match self.settings(node) {
            NodeSettings::Lanes(_) => (self.options.tail, Some(self.system.nodes[node].name.clone())),
            // It may have a reservation, which is not for spinning.
            NodeSettings::Hierarchy(_) => (Tail::Off, None),
        };
        let thread = ReleaseThread {
            shared: Arc::clone(self.shared),
            node,
            sleeper: Sleeper::new(tail),
            sources: Source::of_node(self.system, node, &self.shared.layout),
            keeper,
            gate,
            duration: self.options.duration,
            marks: if self.is_managed(node) { Marks::Beginning } else { Marks::Both },
        };
        Box::new(move || {
            let cost = thread.serve(flow_set_up);
            spins.map_or(Ended::Nothing, |name| Ended::Released(NodeSpin::new(name, cost)))
        })
    }

    /// Receives what other processes send, and only enqueues.
    fn receive_body(&self, node: usize, writer: RingWriter) -> ThreadBody {
        let shared = Arc::clone(self.shared);
        let link = shared.link.as_ref().expect("only where there are other processes is there a receiver");
        let mut inbox = link.inbox(self.system.nodes.len());
        let flow_set_up = self.flow_set_up(node, writer);
        Box::new(move || {
            let mut flow = flow_set_up.begin(ThreadRole::Receiver, None);
            receive(&shared, node, &mut inbox, &mut flow);
            Ended::Nothing
        })
    }
}

impl RunThreads {
    fn create_thread(
        &mut self,
        plan: &ThreadPlan<'_>,
        role: ThreadPurpose,
        body: ThreadBody,
    ) -> Result<talea_linux::Tid, PrepareError> {
        let (node, stack) = (plan.node(role), plan.stack(role));
        let cpus = &plan.system.nodes[node].cpus;
        let spawned = spawn(&plan.name(role), plan.policy(role), cpus, stack, move || {
            prefault_stack(stack / 4);
            body()
        });
        let thread = spawned.map_err(|error| plan.refused(node, error))?;
        let tid = thread.report().tid;
        self.threads.push(thread);
        Ok(tid)
    }

    /// What the kernel says each thread has.
    pub fn attributes(&self) -> Vec<ThreadAttributes> {
        self.threads.iter().map(|thread| thread.report().into()).collect()
    }

    /// Threads that have something else than was asked for.
    pub fn not_as_wanted(&self) -> Vec<String> {
        let reports = self.threads.iter().map(JoinHandle::report);
        reports.filter(|report| !report.is_as_wanted()).map(ToString::to_string).collect()
    }

    /// Ends all threads and returns what they leave.
    ///
    /// # Panics
    /// With what a thread of the runtime panicked with.
    pub fn end(&mut self) -> EndedThreads {
        self.shared.shut_down();
        self.slots.iter().for_each(|slot| slot.wake_to_stop());
        if let (Some(link), Some(receiver)) = (&self.shared.link, self.receiver.take()) {
            stop_receiver(&*link.transport, &self.threads[receiver]);
        }
        let mut left = EndedThreads::default();
        let mut panicked = None;
        for handle in self.threads.drain(..) {
            let policy = handle.report().actual_policy;
            match handle.join() {
                Ok(Ended::Nothing) => {}
                Ok(Ended::Released(spin)) => left.spin.push(spin),
                Ok(Ended::Own(thread, received)) => left.own.push(OwnThread { thread, policy, received }),
                Err(panic) => panicked = Some(panic),
            }
        }
        if let Some(panic) = panicked
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
        left
    }
}

/// Ends the receiver. A full way in is being emptied by it, and it takes the stop after that; one that has
/// panicked empties nothing and needs no stop.
fn stop_receiver(transport: &dyn Transport, receiver: &JoinHandle<Ended>) {
    while !receiver.is_finished() {
        match transport.stop_receiving() {
            Ok(()) => return,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                std::thread::yield_now();
            }
            Err(error) => panic!("telling our own receiver to stop failed: {error}"),
        }
    }
}

impl Drop for RunThreads {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::plans;
    use talea_linux::sched::Policy;
    use talea_model::{Criticality, Strategy, TaskBuilder};
    use talea_record::JobId;
    use talea_time::{Duration, Instant, Work};
    use talea_transport::{Identity, Message, Peer, Pipes, pipe};

    #[test]
    fn a_lane_in_which_late_jobs_stand_last_has_as_many_slots_as_asked_for() {
        let slots = |strategy, late, dispatch| {
            let task = TaskBuilder::new("job", Duration::from_millis(5)).wcet(Work::from_millis(1));
            let system = System::builder("test").strategy(strategy).late(late).lane_dispatch(dispatch);
            let system = system.task(task).build().expect("a system");
            slots_of(&plans(&system).expect("a plan")[0].lanes[0], &RunOptions::default())
        };
        let asked = RunOptions::default().slots;
        let preemptive = LaneDispatch::Preemptive;
        assert_eq!(slots(Strategy::Edf, Late::Last, preemptive), asked);
        assert_eq!(slots(Strategy::Edf, Late::None, preemptive), 2);
        assert_eq!(slots(Strategy::Mlf, Late::None, preemptive), asked);
        assert_eq!(slots(Strategy::Edf, Late::Last, LaneDispatch::NonPreemptive), 0);
    }

    #[test]
    fn a_full_pipe_that_nobody_reads_any_more_does_not_hold_up_the_end() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        pipe::create(directory.path(), 2).expect("pipes");
        let open = |node| Pipes::open(directory.path(), 2, Peer { node, epoch: 0 }).expect("pipes");
        let (one, other) = (open(0), open(1));
        let job = JobId { operation: OperationId::from_index(0), instance: 0 };
        let message = Message {
            identity: Identity { peer: one.own(), job },
            to: job.operation,
            reply_to: None,
            sent: Instant::ZERO,
            deadline: Instant::ZERO,
            period: Duration::ZERO,
            band: Criticality::Medium,
            timer: None,
            not_before: None,
            payload: &[],
        };
        while one.send(1, &message).is_ok() {}
        let body = || -> Ended { std::panic::resume_unwind(Box::new("it has no more to say")) };
        let receiver = spawn("rcv", Policy::Other, &[], 64 * 1024, body).expect("a thread");
        stop_receiver(&other, &receiver);
        assert!(receiver.join().is_err());
    }
}
