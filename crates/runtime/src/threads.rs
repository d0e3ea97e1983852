//! The threads of a run: created with what they need, and ended together.

use crate::flow::{JobFlowSetUp, Shared};
use crate::guarding::GuardKeeper;
use crate::hierarchy::LaneMember;
use crate::lane::preemptive::{Controller, Slot, SlotCell, SlotPriorities, SlotThread};
use crate::lane::{KernelPriorities, LaneAgent, LanePreemption, SteppedLaneSetUp};
use crate::lowering::{LanePriorities, Lowering};
use crate::operation::Behaviour;
use crate::options::RunOptions;
use crate::outcome::{NodeSpin, ThreadAttributes};
use crate::receiving::receive;
use crate::recorder::Recording;
use crate::release::{ReleaseThread, Source};
use std::io::ErrorKind;
use std::sync::Arc;
use talea_linux::memory::prefault_stack;
use talea_linux::sched::Policy;
use talea_linux::thread::{JoinHandle, SpawnError, spawn};
use talea_linux::timer::Sleeper;
use talea_manage::Marks;
use talea_model::{LaneDispatch, Late, OperationId, Scheduling, System};
use talea_policy::discipline::Discipline;
use talea_policy::lane::LaneQueue;
use talea_policy::strategy::{Lane, Plan};
use talea_record::{RingFile, RingWriter, ThreadRole};
use talea_ring::inbox::Receiver;
use talea_transport::Transport;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Release { node: usize },
    Receive { node: usize },
    Lane { lane: usize },
    Slot { lane: usize, slot: usize },
    Controller { lane: usize },
}

/// Everything threads are created from.
pub(crate) struct ThreadPlan<'a> {
    pub system: &'a System,
    pub plans: &'a [Plan],
    pub options: &'a RunOptions,
    pub shared: &'a Arc<Shared>,
    /// The nodes of this process and their kernel settings.
    pub nodes: &'a [(usize, Lowering)],
    pub realtime: bool,
    /// How many instances of each operation of this process may be in flight.
    pub windows: &'a [usize],
}

/// The threads of a run, and the lanes that have none here: members of the hierarchies of their nodes, and what the caller steps.
pub(crate) struct CreatedThreads {
    pub threads: RunThreads,
    pub lane_members: Vec<LaneMember>,
    /// Lanes that the caller steps.
    pub stepped: Vec<SteppedLaneSetUp>,
}

/// The inboxes of the lanes of this process, by lane over all nodes.
pub(crate) type Inboxes = Vec<Option<Receiver>>;

/// Stack of a thread that no user's code runs on, in bytes.
const BARE_STACK: usize = 128 * 1024;

/// What a thread leaves when it ends.
type Ended = Option<NodeSpin>;

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
/// Where a later job of an operation never outranks an earlier one, at most one job of each member is
/// under way, and one slot more serves the job that outranks them all. That is so in order of release and
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
        LaneDispatch::Preemptive if in_order => options.slots.clamp(1, lane.members.len() + 1),
        LaneDispatch::Preemptive => options.slots.max(1),
    }
}

impl ThreadPlan<'_> {
    /// The threads of this process. A lane's slots come before its controller, which has to know them.
    pub fn roles(&self) -> Vec<Role> {
        let mut roles = Vec::new();
        let hosted = self.shared.ports.iter().enumerate().filter(|(_, port)| port.is_some());
        for (lane, _) in hosted {
            let slots = slots_of(self.lane(lane), self.options);
            if slots == 0 {
                roles.push(Role::Lane { lane });
            } else {
                roles.extend((0..slots).map(|slot| Role::Slot { lane, slot }));
                roles.push(Role::Controller { lane });
            }
        }
        if self.shared.link.is_some() {
            roles.extend(self.nodes.iter().map(|(node, _)| Role::Receive { node: *node }));
        }
        roles.extend(self.nodes.iter().map(|(node, _)| Role::Release { node: *node }));
        roles
    }

    /// The stack of the thread: with memory locked, all of it takes memory.
    fn stack(&self, role: Role) -> usize {
        let runs_code_of_users = match role {
            Role::Lane { lane } | Role::Slot { lane, .. } => {
                let is_user =
                    |member: &OperationId| matches!(self.shared.behaviour(*member), Behaviour::User(_));
                self.shared.posting.has_room() || self.lane(lane).members.iter().any(is_user)
            }
            Role::Release { .. } | Role::Receive { .. } | Role::Controller { .. } => false,
        };
        if runs_code_of_users { self.options.stack } else { self.options.stack.min(BARE_STACK) }
    }

    fn lane(&self, lane: usize) -> &Lane {
        let site = &self.shared.layout.lanes[lane];
        &self.plans[site.node].lanes[site.level]
    }

    fn node(&self, role: Role) -> usize {
        match role {
            Role::Release { node } | Role::Receive { node } => node,
            Role::Lane { lane } | Role::Slot { lane, .. } | Role::Controller { lane } => {
                self.shared.layout.lanes[lane].node
            }
        }
    }

    /// A name that says what the thread is within the 15 characters that Linux keeps.
    pub fn name(&self, role: Role) -> String {
        let node = &self.system.nodes[self.node(role)].name;
        let level = |lane: usize| self.shared.layout.lanes[lane].level;
        match role {
            Role::Release { .. } => format!("rel:{node}"),
            Role::Receive { .. } => format!("rcv:{node}"),
            Role::Lane { lane } => format!("l{}:{node}", level(lane)),
            Role::Slot { lane, slot } => format!("l{}s{slot}:{node}", level(lane)),
            Role::Controller { lane } => format!("l{}c:{node}", level(lane)),
        }
    }

    fn lowering(&self, node: usize) -> &Lowering {
        let found = self.nodes.iter().find(|(own, _)| *own == node);
        &found.expect("a node of this process").1
    }

    fn policy(&self, role: Role) -> Policy {
        if !self.realtime {
            return Policy::Other;
        }
        let lowering = self.lowering(self.node(role));
        let lane = |lane: usize| lowering.lanes[self.shared.layout.lanes[lane].level];
        Policy::Fifo(match role {
            Role::Release { .. } | Role::Receive { .. } => lowering.release,
            Role::Lane { lane: number }
            | Role::Slot { lane: number, .. }
            | Role::Controller { lane: number } => match (lane(number), role) {
                (LanePriorities::Single(priority), _) => priority,
                (LanePriorities::Banded { controller, .. }, Role::Controller { .. }) => controller,
                (LanePriorities::Banded { granted, .. }, _) => granted,
            },
        })
    }

    /// The processor whose word a node's lanes use: its only one, unless it shares that with a node
    /// of several processors, or the kernel does not keep the lanes nested.
    fn processor(&self, node: usize) -> Option<usize> {
        let [cpu] = self.system.nodes[node].cpus[..] else { return None };
        let shares = |(other, _): &(usize, Lowering)| {
            let cpus = &self.system.nodes[*other].cpus;
            cpus.len() > 1 && cpus.contains(&cpu)
        };
        (self.realtime && !self.nodes.iter().any(shares)).then_some(usize::from(cpu))
    }

    /// Whether the lanes of the node have places below other schedulers.
    fn is_managed(&self, node: usize) -> bool {
        self.system.scheduling(node) == Scheduling::Hierarchy
    }

    /// Creates the threads; each has the ring of the same position. Those of lanes in hierarchies are left to be taken in.
    pub fn create(
        &self,
        roles: &[Role],
        rings: &mut RingFile,
        mut inboxes: Inboxes,
        mut keepers: Vec<Option<GuardKeeper>>,
    ) -> Result<CreatedThreads, SpawnError> {
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
                Role::Slot { lane, .. } => {
                    let cell = Arc::new(SlotCell::new());
                    running.slots.push(Arc::clone(&cell));
                    let body = self.slot_body(lane, writer, Arc::clone(&cell));
                    let tid = running.create_thread(self, role, body)?;
                    slots.push(Slot::new(cell, tid));
                }
                Role::Controller { lane } => {
                    let inbox = inboxes[lane].take().expect("each lane has one inbox");
                    let body = self.controller_body(lane, writer, inbox, std::mem::take(&mut slots));
                    running.create_thread(self, role, body)?;
                }
                Role::Lane { lane } => {
                    let inbox = inboxes[lane].take().expect("each lane has one inbox");
                    if self.is_managed(self.node(role)) {
                        lane_members.push(self.lane_member(lane, writer, inbox));
                    } else if self.options.stepped {
                        stepped.push(self.stepped_lane(lane, writer, inbox));
                    } else {
                        running.create_thread(self, role, self.lane_body(lane, writer, inbox))?;
                    }
                }
                Role::Receive { node } => {
                    running.create_thread(self, role, self.receive_body(node, writer))?;
                    running.receiver = Some(running.threads.len() - 1);
                }
                Role::Release { node } => {
                    let body = self.release_body(node, writer, keepers[node].take());
                    running.create_thread(self, role, body)?;
                }
            }
        }
        Ok(CreatedThreads { threads: running, lane_members, stepped })
    }

    fn flow_set_up(&self, node: usize, writer: RingWriter) -> JobFlowSetUp {
        let cpus = &self.system.nodes[node].cpus;
        JobFlowSetUp::new(self.shared, Recording::new(writer, node, cpus))
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
        let node = self.shared.layout.lanes[lane].node;
        let (flow_set_up, processor) = (self.flow_set_up(node, writer), self.processor(node));
        let thread = self.lane_agent(lane, inbox);
        Box::new(move || {
            let shared = Arc::clone(&thread.shared);
            let flow = flow_set_up.begin(ThreadRole::Lane, Some(lane));
            thread.serve(flow, &mut KernelPriorities::new(&shared, lane, processor));
            None
        })
    }

    fn lane_member(&self, lane: usize, writer: RingWriter, inbox: Receiver) -> LaneMember {
        let site = &self.shared.layout.lanes[lane];
        LaneMember {
            node: site.node,
            level: site.level,
            name: self.name(Role::Lane { lane }),
            agent: self.lane_agent(lane, inbox),
            flow_set_up: self.flow_set_up(site.node, writer),
            stack: self.stack(Role::Lane { lane }),
        }
    }

    fn stepped_lane(&self, lane: usize, writer: RingWriter, inbox: Receiver) -> SteppedLaneSetUp {
        let site = &self.shared.layout.lanes[lane];
        SteppedLaneSetUp {
            node: self.system.nodes[site.node].name.clone(),
            level: site.level,
            agent: self.lane_agent(lane, inbox),
            flow_set_up: self.flow_set_up(site.node, writer),
        }
    }

    fn slot_body(&self, lane: usize, writer: RingWriter, cell: Arc<SlotCell>) -> ThreadBody {
        let node = self.shared.layout.lanes[lane].node;
        let flow_set_up = self.flow_set_up(node, writer);
        let thread =
            SlotThread { shared: Arc::clone(self.shared), cell, lane, processor: self.processor(node) };
        Box::new(move || {
            thread.serve(flow_set_up);
            None
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
        let priorities = match self.lowering(site.node).lanes[site.level] {
            LanePriorities::Banded { granted, parked, .. } => SlotPriorities { granted, parked },
            LanePriorities::Single(priority) => {
                unreachable!("a preemptive lane has priority {priority} only")
            }
        };
        let flow_set_up = self.flow_set_up(site.node, writer);
        let thread = Controller {
            shared: Arc::clone(self.shared),
            inbox,
            queue: self.queue(lane),
            lane,
            slots,
            priorities: self.realtime.then_some(priorities),
            preemption: LanePreemption::new(self.processor(site.node)),
            granted: None,
        };
        Box::new(move || {
            thread.serve(flow_set_up);
            None
        })
    }

    fn release_body(&self, node: usize, writer: RingWriter, keeper: Option<GuardKeeper>) -> ThreadBody {
        let gate = self.nodes.iter().position(|(own, _)| *own == node).expect("a node of this process");
        let flow_set_up = self.flow_set_up(node, writer);
        let thread = ReleaseThread {
            shared: Arc::clone(self.shared),
            sleeper: Sleeper::new(self.options.tail),
            sources: Source::of_node(self.system, node),
            keeper,
            gate,
            duration: self.options.duration,
            marks: if self.is_managed(node) { Marks::Beginning } else { Marks::Both },
        };
        let name = self.system.nodes[node].name.clone();
        Box::new(move || Some(NodeSpin::new(name, thread.serve(flow_set_up))))
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
            None
        })
    }
}

impl RunThreads {
    fn create_thread(
        &mut self,
        plan: &ThreadPlan<'_>,
        role: Role,
        body: ThreadBody,
    ) -> Result<talea_linux::Tid, SpawnError> {
        let cpus = &plan.system.nodes[plan.node(role)].cpus;
        let stack = plan.stack(role);
        let thread = spawn(&plan.name(role), plan.policy(role), cpus, stack, move || {
            prefault_stack(stack / 4);
            body()
        })?;
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

    /// Ends all threads and returns what the release threads spun.
    ///
    /// # Panics
    /// With what a thread of the runtime panicked with.
    pub fn end(&mut self) -> Vec<NodeSpin> {
        self.shared.shut_down();
        self.slots.iter().for_each(|slot| slot.wake_to_stop());
        if let (Some(link), Some(receiver)) = (&self.shared.link, self.receiver.take()) {
            stop_receiver(&*link.transport, &self.threads[receiver]);
        }
        let mut spins = Vec::new();
        let mut panicked = None;
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(ended) => spins.extend(ended),
                Err(panic) => panicked = Some(panic),
            }
        }
        if let Some(panic) = panicked
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
        spins
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
