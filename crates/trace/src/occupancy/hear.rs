//! What each record changes.

use super::{Beginning, Doubt, Hearing, Interrupt, Kernel, Occupancy, Processor, Role, Unknown, Wakefulness};
use crate::{Event, JobId, Record, ThreadRole};

/// More names of threads than this are not kept.
const NAMES: usize = 1 << 16;

impl Occupancy {
    /// Takes a record into account.
    pub fn apply(&mut self, record: &Record) {
        if record.event.is_job() {
            self.hear_job(record);
        }
        match record.event {
            Event::RUN_START => self.begin(usize::from(record.source)),
            Event::START | Event::RESUME => self.enter(record),
            Event::PREEMPT => self.leave(record),
            Event::COMPLETE | Event::ABORT => self.end(record),
            Event::WAKE => self.set_awake(record, Wakefulness::Awake),
            Event::SLEEP => self.set_awake(record, Wakefulness::Asleep),
            Event::THREAD => self.meet(record),
            Event::SWITCH => self.switch(record),
            Event::WAKEUP => self.wake_up(record.words[0] as u32),
            Event::IRQ_ENTER => self.on_cpu(record.cpu, |processor| {
                processor.interrupts.push(Interrupt { kind: record.arg, number: record.words[0] });
            }),
            Event::IRQ_EXIT => self.on_cpu(record.cpu, |processor| {
                processor.interrupts.pop();
            }),
            Event::THREAD_NAME if self.names.len() < NAMES => {
                self.names.insert(record.causal as u32, name_in(record.words));
            }
            // The records of jobs are whole: what they tell holds until the kernel is heard of again.
            Event::LOST if record.source == Record::KERNEL => {
                self.woken.clear();
                self.on_cpu(record.cpu, |processor| {
                    processor.thread = None;
                    processor.unseen = Unknown::Lost;
                    processor.waiting.clear();
                    processor.interrupts.clear();
                });
            }
            Event::LOST => (0..self.nodes.len()).for_each(|node| self.doubt(node, Unknown::Lost)),
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

    fn switch(&mut self, record: &Record) {
        self.kernel = Kernel::Heard;
        let (from, to) = (record.words[0] as u32, (record.words[0] >> 32) as u32);
        self.woken.remove(&from);
        self.woken.remove(&to);
        let processes = [record.words[1] as u32, (record.words[1] >> 32) as u32];
        for (thread, process) in [from, to].into_iter().zip(processes) {
            if self.processes.contains(&process) {
                self.companions.insert(thread);
            }
        }
        let waits = record.arg == 1 && self.threads.contains_key(&from);
        let processors = self.nodes.iter_mut().flatten();
        processors.for_each(|processor| processor.waiting.retain(|thread| *thread != to && *thread != from));
        self.on_cpu(record.cpu, |processor| {
            processor.thread = Some(to);
            processor.waiting.extend(waits.then_some(from));
            processor.doubt = Doubt::None;
        });
    }

    /// Every processor with this number: nodes that are processes of one machine may share it.
    fn on_cpu(&mut self, cpu: u16, mut change: impl FnMut(&mut Processor)) {
        self.nodes.iter_mut().flatten().filter(|processor| processor.cpu == cpu).for_each(&mut change);
    }

    fn enter(&mut self, record: &Record) {
        let job = record.job();
        let Some(lane) = self.lane_of(job) else { return };
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
        processors[index].doubt = Doubt::None;
        let lane = &mut self.lanes[lane];
        lane.current = Some(job);
        lane.cpu = record.cpu;
        if lane.awake == Wakefulness::Asleep {
            lane.awake = Wakefulness::Awake;
        }
    }

    /// Takes the job from the processor it has, which is not the record's if its thread has migrated since.
    fn leave(&mut self, record: &Record) {
        let job = record.job();
        let Some(lane) = self.lane_of(job) else { return };
        let had_one = record.event != Event::ABORT || record.arg == 1;
        for processor in &mut self.nodes[self.lanes[lane].node] {
            processor.jobs.retain(|other| *other != job);
            if had_one && processor.cpu == record.cpu {
                processor.doubt = Doubt::None;
            }
        }
    }

    fn end(&mut self, record: &Record) {
        self.leave(record);
        let job = record.job();
        if let Some(lane) = self.lane_of(job)
            && self.lanes[lane].current == Some(job)
        {
            self.lanes[lane].current = None;
        }
    }

    fn set_awake(&mut self, record: &Record, awake: Wakefulness) {
        if let Some(lane) = self.lanes.get_mut(usize::from(record.source)) {
            lane.awake = awake;
            lane.cpu = record.cpu;
            lane.hearing = Hearing::Begun;
        }
    }

    /// The run begins on the node: nobody has anything yet.
    fn begin(&mut self, node: usize) {
        let Some(beginning) = self.beginnings.get_mut(node) else { return };
        if std::mem::replace(beginning, Beginning::Passed) == Beginning::Awaited {
            self.nodes[node].iter_mut().for_each(|processor| processor.doubt = Doubt::None);
            self.lanes
                .iter_mut()
                .filter(|lane| lane.node == node)
                .for_each(|lane| lane.hearing = Hearing::Begun);
        }
    }

    /// The first job of a node that was not seen to begin was under way before. A lane is heard of when a job of it
    /// gets or loses a processor, which a release does not say.
    fn hear_job(&mut self, record: &Record) {
        let Some(index) = self.lane_of(record.job()) else { return };
        let node = self.lanes[index].node;
        if std::mem::replace(&mut self.beginnings[node], Beginning::Passed) == Beginning::Awaited {
            self.doubt(node, Unknown::Unheard);
        }
        if !matches!(record.event, Event::RELEASE | Event::SKIP) {
            self.lanes[index].hearing = Hearing::Begun;
        }
    }

    fn meet(&mut self, record: &Record) {
        // 0 is what the kernel has for its idle thread.
        let process = Some((record.words[0] >> 32) as u32).filter(|process| *process != 0);
        if record.arg != ThreadRole::Program as u16 {
            self.processes.extend(process);
        }
        let lane = usize::from(record.source);
        let role = match record.arg {
            arg if arg == ThreadRole::Release as u16 => Role::Release,
            arg if arg == ThreadRole::Receiver as u16 => Role::Receiver,
            _ if lane < self.lanes.len() => {
                self.identified[self.lanes[lane].node] = true;
                Role::Lane(lane)
            }
            _ => return,
        };
        self.threads.insert(record.words[0] as u32, role);
    }

    /// What was known until now may not be so any more, or nothing was: of every processor and lane of the node, until it
    /// is heard of.
    fn doubt(&mut self, node: usize, why: Unknown) {
        for processor in &mut self.nodes[node] {
            processor.doubt = Doubt::Since(why);
            processor.waiting.clear();
            processor.jobs.clear();
        }
        for lane in self.lanes.iter_mut().filter(|lane| lane.node == node) {
            (lane.current, lane.hearing) = (None, Hearing::Awaited(why));
            if lane.awake == Wakefulness::Awake {
                lane.awake = Wakefulness::Untold;
            }
        }
    }
}

/// The text of up to 16 bytes in two words.
pub(crate) fn name_in(words: [u64; 2]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
