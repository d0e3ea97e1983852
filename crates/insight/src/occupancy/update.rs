//! What each record changes.

use super::{
    Beginning, BlockedJob, KernelRecords, KnownThread, Lane, LaneKnowledge, Occupancy, Processor, RecordGap,
    RunThread, SleepState, Unknown, WaitingForRoom,
};
use crate::hierarchy::EdgeState;
use talea_record::event::{Abort, Block, Switch, Thread, Wait};
use talea_record::{ChangeKind, Event, JobId, Record, ThreadRole, Typed};

/// Whether a switch names the process: of a thread that has ended the kernel does not know it any more.
pub(super) fn names_process(process: u32) -> bool {
    !matches!(process, 0 | Record::UNSEEN_THREAD)
}

impl Occupancy {
    /// Takes a record into account.
    pub fn apply(&mut self, record: &Record) {
        self.names.learn(record);
        if record.event.is_job() {
            self.hear_job(record);
        }
        match record.typed() {
            Typed::RunStart(start) => self.begin(usize::from(start.node)),
            Typed::Start(_) | Typed::Resume(_) => self.enter(record),
            Typed::Preempt(_) => self.leave(record),
            Typed::Wait(wait) => self.wait(record, wait),
            Typed::Block(block) => self.block(record, block),
            Typed::Unblock(unblock) => self.unblock(record, unblock.job),
            Typed::Take(take) if self.is_simulated && take.values > 0 => self.make_room(take.input as usize),
            Typed::Complete(_) | Typed::Abort(_) => self.end(record),
            Typed::Wake(wake) => self.set_awake(wake.lane, record.cpu, SleepState::Awake),
            Typed::Sleep(sleep) => self.set_awake(sleep.lane, record.cpu, SleepState::Asleep),
            Typed::Thread(thread) => self.meet(thread),
            Typed::Member(member) => self.join(member),
            Typed::ThreadExit(exit) => self.exit(exit.tid),
            Typed::EdgeChange(change) if change.what == ChangeKind::Removed => {
                self.decided(usize::from(change.edge), EdgeState::Waiting);
                self.part(usize::from(change.edge));
            }
            Typed::VpRequest(_) | Typed::VpGrant(_) | Typed::VpRevoke(_) | Typed::VpRelease(_) => {
                if let Some((edge, state)) = EdgeState::told_by(record) {
                    self.decided(edge, state);
                }
            }
            Typed::Switch(switch) => self.switch(record.cpu, switch),
            Typed::Wakeup(wakeup) => self.wake_up(wakeup.tid),
            Typed::IrqEnter(interrupt) => {
                self.on_cpu(record.cpu, |processor| processor.interrupts.push(interrupt.into()));
            }
            Typed::IrqExit(_) => self.on_cpu(record.cpu, |processor| {
                processor.interrupts.pop();
            }),
            // The records of jobs are whole: what they tell holds until the kernel is heard of again.
            Typed::Lost(lost) if lost.is_of_kernel() => {
                self.woken.clear();
                self.on_cpu(record.cpu, |processor| {
                    processor.thread = None;
                    processor.unseen = Unknown::Lost;
                    processor.waiting.clear();
                    processor.interrupts.clear();
                });
            }
            Typed::Lost(_) => (0..self.nodes.len()).for_each(|node| self.gap(node, Unknown::Lost)),
            _ => {}
        }
    }

    /// A thread that still has a processor does not lose it by being woken, and says itself how it leaves.
    fn wake_up(&mut self, thread: u32) {
        let has = |processor: &Processor| processor.thread == Some(thread);
        if self.threads.contains_key(&thread) && !self.nodes.iter().flatten().any(has) {
            self.woken.insert(thread);
        }
    }

    fn switch(&mut self, cpu: u16, switch: Switch) {
        self.kernel = KernelRecords::Present;
        self.recognise(cpu, switch);
        let (from, to) = (switch.from_tid, switch.to_tid);
        self.woken.remove(&from);
        self.woken.remove(&to);
        for (thread, process) in [(from, switch.from_pid), (to, switch.to_pid)] {
            if self.processes.contains(&process) {
                self.companions.insert(thread, process);
            } else if names_process(process) {
                self.companions.remove(&thread);
            }
        }
        let waits = switch.preempted.0 && self.threads.contains_key(&from);
        let processors = self.nodes.iter_mut().flatten();
        processors.for_each(|processor| processor.waiting.retain(|thread| *thread != to && *thread != from));
        self.on_cpu(cpu, |processor| {
            processor.thread = Some(to);
            processor.waiting.extend(waits.then_some(from));
            processor.gap = RecordGap::None;
        });
    }

    /// Every processor with this number: nodes that are processes of one machine may share it.
    fn on_cpu(&mut self, cpu: u16, mut change: impl FnMut(&mut Processor)) {
        self.nodes.iter_mut().flatten().filter(|processor| processor.cpu == cpu).for_each(&mut change);
    }

    fn enter(&mut self, record: &Record) {
        let job = record.job();
        let Some(lane) = self.lane_of(job) else { return };
        // What it has again is whoever's it waits for.
        if self.lanes[lane].blocked.is_some_and(|blocked| blocked.job == job) {
            return;
        }
        let node = self.lanes[lane].node;
        self.nodes[node].iter_mut().for_each(|processor| processor.jobs.retain(|other| *other != job));
        // A lane runs one job at a time on one processor: the record of another one's leaving was lost.
        let lanes = &self.lane_of_operation;
        let of_lane = |other: &JobId| lanes.get(other.operation.index()) == Some(&lane);
        let processors = &mut self.nodes[node];
        let has_every = processors.iter().all(|processor| processor.jobs.iter().any(of_lane));
        for processor in processors.iter_mut().filter(|processor| has_every || processor.cpu == record.cpu) {
            processor.jobs.retain(|other| !of_lane(other));
        }
        let index =
            processors.iter().position(|processor| processor.cpu == record.cpu).unwrap_or_else(|| {
                processors.push(Processor::new(record.cpu));
                processors.len() - 1
            });
        processors[index].jobs.push(job);
        processors[index].gap = RecordGap::None;
        let lane = &mut self.lanes[lane];
        lane.current = Some(job);
        lane.waiting = None;
        lane.cpu = record.cpu;
        if lane.awake == SleepState::Asleep {
            lane.awake = SleepState::Awake;
        }
    }

    /// Takes the job from the processor it has, which is not the record's if its thread has migrated since.
    fn leave(&mut self, record: &Record) {
        let job = record.job();
        let Some(lane) = self.lane_of(job) else { return };
        let had_one = Abort::read(record).is_none_or(|abort| abort.running.0);
        for processor in &mut self.nodes[self.lanes[lane].node] {
            processor.jobs.retain(|other| *other != job);
            if had_one && processor.cpu == record.cpu {
                processor.gap = RecordGap::None;
            }
        }
    }

    /// The job gives up its processor until there is room for what it wrote, and its lane does nothing meanwhile.
    fn wait(&mut self, record: &Record, Wait { job, input, until, .. }: Wait) {
        self.leave(record);
        let Some(lane) = self.lane_of(job).map(|lane| &mut self.lanes[lane]) else { return };
        lane.waiting = Some(WaitingForRoom { job, input: input as usize, until });
        if lane.awake == SleepState::Awake {
            lane.awake = SleepState::Asleep;
        }
    }

    /// The job waits for another one, which goes on in its place where both have the node's one processor.
    fn block(&mut self, record: &Record, Block { job, by, .. }: Block) {
        let Some(index) = self.lane_of(job) else { return };
        let node = self.lanes[index].node;
        self.leave(record);
        let other = by.and_then(|by| Some((by, &self.lanes[self.lane_of(by)?])));
        let is_under_way = |(by, lane): &(JobId, &Lane)| lane.current == Some(*by) && lane.node == node;
        let other = other.filter(is_under_way).map(|(by, _)| by);
        let has_its_processor = match (other, &mut self.nodes[node][..]) {
            (Some(by), [processor]) if !processor.jobs.contains(&by) => {
                processor.jobs.push(by);
                true
            }
            _ => false,
        };
        self.lanes[index].blocked = Some(BlockedJob { job, by, has_its_processor });
    }

    /// The job has waited, and goes on.
    fn unblock(&mut self, record: &Record, job: JobId) {
        let Some(index) = self.lane_of(job) else { return };
        let lane = &mut self.lanes[index];
        let Some(blocked) = lane.blocked.take_if(|blocked| blocked.job == job) else { return };
        if let Some(by) = blocked.by.filter(|_| blocked.has_its_processor) {
            let node = lane.node;
            self.nodes[node].iter_mut().for_each(|processor| processor.jobs.retain(|other| *other != by));
        }
        self.enter(record);
    }

    /// An input has room: whoever waited for that goes on as soon as it has a processor.
    fn make_room(&mut self, input: usize) {
        for lane in &mut self.lanes {
            lane.waiting = lane.waiting.filter(|waiting| waiting.input != input);
        }
    }

    fn end(&mut self, record: &Record) {
        self.leave(record);
        let job = record.job();
        let Some(lane) = self.lane_of(job).map(|lane| &mut self.lanes[lane]) else { return };
        lane.current = lane.current.filter(|current| *current != job);
        lane.waiting = lane.waiting.filter(|waiting| waiting.job != job);
        lane.blocked = lane.blocked.filter(|blocked| blocked.job != job);
    }

    fn set_awake(&mut self, lane: u16, cpu: u16, awake: SleepState) {
        if let Some(lane) = self.lanes.get_mut(usize::from(lane)) {
            lane.awake = awake;
            lane.cpu = cpu;
            lane.knowledge = LaneKnowledge::Known;
        }
    }

    /// The run begins on the node: nobody has anything yet.
    fn begin(&mut self, node: usize) {
        let Some(beginning) = self.beginnings.get_mut(node) else { return };
        if std::mem::replace(beginning, Beginning::Passed) == Beginning::Awaited {
            self.nodes[node].iter_mut().for_each(|processor| processor.gap = RecordGap::None);
            self.lanes
                .iter_mut()
                .filter(|lane| lane.node == node)
                .for_each(|lane| lane.knowledge = LaneKnowledge::Known);
        }
    }

    /// The first job of a node that was not seen to begin was under way before. A lane is heard of when a job of it
    /// gets or loses a processor, which a release does not say.
    fn hear_job(&mut self, record: &Record) {
        let Some(index) = self.lane_of(record.job()) else { return };
        let node = self.lanes[index].node;
        if std::mem::replace(&mut self.beginnings[node], Beginning::Passed) == Beginning::Awaited {
            self.gap(node, Unknown::BeforeRecording);
        }
        if !matches!(record.event, Event::RELEASE | Event::SKIP) {
            self.lanes[index].knowledge = LaneKnowledge::Known;
        }
    }

    fn meet(&mut self, thread: Thread) {
        let role = thread.role.known();
        // 0 is what the kernel has for its idle thread.
        let lane = thread.lane.map(usize::from).filter(|lane| *lane < self.lanes.len());
        if role != Some(ThreadRole::Program) && thread.pid != 0 {
            self.processes.insert(thread.pid);
            if !lane.is_some_and(|lane| self.edges.is_of_thread(lane)) {
                self.own_processes.insert(thread.pid);
            }
        }
        let role = match role {
            Some(ThreadRole::Release) => RunThread::Release,
            Some(ThreadRole::Receiver) => RunThread::Receiver,
            _ => {
                let Some(lane) = lane else { return };
                self.identified[self.lanes[lane].node] = true;
                RunThread::Lane(lane)
            }
        };
        let of_process = thread.pid;
        match self.threads.get_mut(&thread.tid).filter(|known| known.role == role) {
            Some(known) => (known.of_process, known.process) = (of_process, None),
            None => self.know(thread.tid, KnownThread { of_process, ..KnownThread::new(role) }),
        }
    }

    /// What was known until now may not be so any more, or nothing was: of every processor and lane of the node, until it
    /// is heard of.
    fn gap(&mut self, node: usize, why: Unknown) {
        for processor in &mut self.nodes[node] {
            processor.gap = RecordGap::Since(why);
            processor.waiting.clear();
            processor.jobs.clear();
            processor.granted.clear();
        }
        for lane in self.lanes.iter_mut().filter(|lane| lane.node == node) {
            (lane.current, lane.waiting, lane.blocked) = (None, None, None);
            lane.knowledge = LaneKnowledge::Awaited(why);
            if lane.awake == SleepState::Awake {
                lane.awake = SleepState::Unknown;
            }
        }
    }
}
