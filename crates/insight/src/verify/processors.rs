//! Who has the processors of a node: no job of a lower lane while a higher one is ready, and nobody idle.
//!
//! An interrupt takes the processor from whoever has it. So it neither makes a state wrong nor puts it right: the state
//! lasts, and the time of the interrupt is not counted.
//!
//! That a job has begun does not say that it runs: the kernel may have given its processor to another thread. Where the
//! kernel's switches are recorded they judge, and a job that has begun, could go on and has no processor while a lower lane
//! has one was displaced. Where they are not, and jobs of several lanes have begun on one processor, nobody can tell, and the
//! time is [left open](Fault::Unseen). A lane's thread that has a processor without a job dispatches: nothing idles then.

use super::judge::Judge;
use super::report::Rule;
use super::suspicion::{Counting, Fault, State, Suspicion};
use crate::occupancy::{Occupant, ThreadState};
use talea_record::event::Lost;
use talea_record::{Event, JobId, Record};

impl Judge<'_> {
    /// Who has the processors of a node is judged anew after each record that may have changed it: a job's thread gets
    /// its processor from the kernel some time before or after the job says so.
    pub(super) fn touch_nodes(&mut self, record: &Record) {
        let is_of_processor = match record.event {
            Event::SWITCH | Event::IRQ_ENTER | Event::IRQ_EXIT | Event::WAKE | Event::SLEEP => true,
            // A thread that has the processor already is known from now on, and one that is woken waits for any.
            Event::THREAD | Event::WAKEUP => return self.node_touched.fill(true),
            _ => Lost::read(record).is_some_and(|lost| lost.is_of_kernel()),
        };
        if !is_of_processor {
            return;
        }
        for (node, touched) in self.node_touched.iter_mut().enumerate() {
            let processors = self.occupancy.processors(node);
            *touched |= processors.iter().any(|processor| processor.cpu == record.cpu);
        }
    }

    /// Whether a lane of the node waits that should run.
    pub(super) fn judge_node(&mut self, node: usize) {
        // Whoever a lane ran before the recording, or in what was lost, may have any processor.
        if !self.lanes_decide[node] || !self.coverage.identifies(node) || self.occupancy.awaits(node) {
            return;
        }
        let count = self.occupancy.processors(node).len();
        let holders: Vec<Holder> = (0..count).map(|place| self.holder(node, place)).collect();
        for index in 0..self.lanes.len() {
            if self.lanes[index].node == node {
                let found = self.starvation(index, &holders);
                let wrong = found.map(|(state, places)| (state, self.counting(node, &places)));
                self.suspect_lane(index, wrong);
            }
        }
    }

    fn level_of(&self, job: JobId) -> Option<usize> {
        let lent = self.occupancy.lent_by(job).map(|lane| self.lanes[lane].level);
        let own = self.occupancy.lane_of(job).map(|lane| self.lanes[lane].level)?;
        // With the priority of one that waits for it, it goes before all others that this one goes before.
        Some(lent.map_or(own, |lent| lent.min(own)))
    }

    fn holder(&self, node: usize, place: usize) -> Holder {
        if self.occupancy.is_shared_unseen(node, place) {
            let sharers = self.occupancy.sharers(node, place);
            let levels = || sharers.iter().filter_map(|job| self.level_of(*job));
            if let Some((highest, lowest)) = levels().min().zip(levels().max()) {
                let is_unplaced = sharers.iter().any(|job| self.is_unplaced(*job, None));
                return Holder::Several { highest: if is_unplaced { 0 } else { highest }, lowest };
            }
        }
        match self.occupancy.holder(node, place) {
            Occupant::Job(job) => {
                self.level_of(job).map_or(Holder::Other, |level| Holder::Job { job, level })
            }
            Occupant::Lane(lane) => Holder::Thread { lane, level: self.lanes[lane].level },
            Occupant::Idle => Holder::Idle,
            Occupant::Unknown(_) => Holder::Unknown,
            _ => Holder::Other,
        }
    }

    /// What is wrong with what the lane has while these have the processors, and with whose having them.
    fn starvation(&mut self, index: usize, holders: &[Holder]) -> Option<(State, Vec<usize>)> {
        let lane = &self.lanes[index];
        // Whoever waits for room in a lane keeps it, and wants no processor.
        if lane.ready.values().any(|ready| ready.waits.is_some_and(|(_, until)| self.now < until)) {
            return None;
        }
        let node = lane.node;
        let oldest = lane.ready.iter().min_by_key(|(_, ready)| ready.released);
        let waiting = JobId::unpack(*oldest?.0);
        let running = lane.ready.iter().find(|(_, ready)| ready.running.is_some());
        let running = running.map(|(job, _)| JobId::unpack(*job));
        // The job it runs may be one of which only that is known.
        let running = running.or_else(|| self.occupancy.job_of_lane(node, index));
        // A processor that has not been heard of may run a job of this very lane.
        if running.is_none() && holders.contains(&Holder::Unknown) {
            return None;
        }
        let found = match running {
            Some(job) => self.displacement(index, job, holders),
            None => self.waiting(index, waiting, holders),
        };
        let unseen = found.as_ref().and_then(|(state, _)| match state.what {
            Fault::Unseen(rule) => Some(rule),
            _ => None,
        });
        let has_levels = self.has_levels[node];
        for rule in [Rule::Idle, Rule::Lanes] {
            if unseen != Some(rule) && (rule == Rule::Idle || has_levels) {
                self.findings.count_case(rule);
            }
        }
        found
    }

    /// What is wrong while a lane whose job has not begun, or was displaced by record, is ready.
    fn waiting(&self, index: usize, waiting: JobId, holders: &[Holder]) -> Option<(State, Vec<usize>)> {
        let own = self.lanes[index].level;
        let state = |what, running| State { what, running, waiting };
        let places = |is_it: &dyn Fn(&Holder) -> bool| -> Vec<usize> {
            (0..holders.len()).filter(|place| is_it(&holders[*place])).collect()
        };
        let of_lane = places(&|who| matches!(who, Holder::Thread { lane, .. } if *lane == index));
        if !of_lane.is_empty() {
            return Some((state(Fault::Overhead, None), of_lane));
        }
        if let Some(lowest) =
            holders.iter().filter_map(|who| who.highest()).max().filter(|level| *level > own)
        {
            let lower = places(&|who| who.highest() == Some(lowest));
            return Some((holders[lower[0]].lower(waiting), lower));
        }
        let unsure = places(&|who| matches!(who, Holder::Several { lowest, .. } if *lowest > own));
        if !unsure.is_empty() {
            return Some((state(Fault::Unseen(Rule::Lanes), None), unsure));
        }
        let idle = places(&|who| *who == Holder::Idle);
        if !idle.is_empty() {
            // Whoever shares a processor unseen may have gone to the one that seems idle.
            let is_known = !holders.iter().any(|who| matches!(who, Holder::Several { .. }));
            let what = if is_known { Fault::Idle } else { Fault::Unseen(Rule::Idle) };
            return Some((state(what, None), idle));
        }
        let dispatching = places(&|who| matches!(who, Holder::Thread { .. }));
        (!dispatching.is_empty()).then(|| (state(Fault::Overhead, None), dispatching))
    }

    /// What is wrong while a job of the lane has begun, and no record of jobs says that it lost its processor.
    fn displacement(&self, index: usize, job: JobId, holders: &[Holder]) -> Option<(State, Vec<usize>)> {
        let own = self.lanes[index].level;
        let lower: Vec<usize> = (0..holders.len())
            .filter(|place| holders[*place].lowest().is_some_and(|level| level > own))
            .collect();
        let first = holders[*lower.first()?];
        let is_shared =
            || holders.iter().any(|who| matches!(who, Holder::Several { lowest, .. } if *lowest > own));
        let state = match self.occupancy.thread_state(index) {
            ThreadState::Preempted => {
                let running = first.job();
                State { what: Fault::Displaced, running, waiting: job }
            }
            ThreadState::Unknown if is_shared() || self.occupancy.hears_kernel() => {
                State { what: Fault::Unseen(Rule::Lanes), running: None, waiting: job }
            }
            ThreadState::Unknown | ThreadState::Running | ThreadState::Off => return None,
        };
        Some((state, lower))
    }

    fn counting(&self, node: usize, places: &[usize]) -> Counting {
        let is_interrupted = |place: &usize| self.occupancy.interrupt(node, *place).is_some();
        if places.iter().all(is_interrupted) { Counting::Interrupted } else { Counting::Runs }
    }

    fn suspect_lane(&mut self, index: usize, wrong: Option<(State, Counting)>) {
        let now = self.now;
        let known = &mut self.lanes[index].starved;
        if let (Some(known), Some((state, counting))) = (known.as_mut(), wrong)
            && known.lasts(now, state, counting)
        {
            return;
        }
        let new = wrong.map(|(state, counting)| Suspicion::new(state, now, counting));
        let over = std::mem::replace(known, new);
        self.conclude(over);
    }
}

/// Who has a processor, as far as the records tell, without interrupts. Levels grow downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Job {
        job: JobId,
        level: usize,
    },
    /// One of several jobs that have begun; nobody saw which.
    Several {
        highest: usize,
        lowest: usize,
    },
    /// A lane's thread between its jobs.
    Thread {
        lane: usize,
        level: usize,
    },
    Idle,
    /// The release thread, another program, or nobody because the kernel holds the processor off.
    Other,
    Unknown,
}

impl Holder {
    /// The highest level that it can be of.
    fn highest(&self) -> Option<usize> {
        match self {
            Holder::Job { level, .. }
            | Holder::Thread { level, .. }
            | Holder::Several { highest: level, .. } => Some(*level),
            Holder::Idle | Holder::Other | Holder::Unknown => None,
        }
    }

    /// The lowest level that it can be of.
    fn lowest(&self) -> Option<usize> {
        match self {
            Holder::Several { lowest, .. } => Some(*lowest),
            _ => self.highest(),
        }
    }

    fn job(&self) -> Option<JobId> {
        match self {
            Holder::Job { job, .. } => Some(*job),
            _ => None,
        }
    }

    /// It is of a lower lane than the job that waits.
    fn lower(&self, waiting: JobId) -> State {
        let what = match self {
            Holder::Thread { .. } => Fault::LowerThread,
            Holder::Several { .. } => Fault::LowerUnnamed,
            _ => Fault::Lower,
        };
        State { what, running: self.job(), waiting }
    }
}
