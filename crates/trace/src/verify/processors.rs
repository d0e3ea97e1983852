//! Who has the processors of a node: no job of a lower lane while a higher one is ready, and nobody idle.
//!
//! An interrupt takes the processor from whoever has it. So it neither makes a state wrong nor puts it right: the state
//! lasts, and the time of the interrupt is not counted.

use super::judge::Judge;
use super::report::Rule;
use super::suspicion::{Course, State, Suspicion};
use crate::occupancy::Occupant;
use crate::{Event, JobId, Record};

impl Judge<'_> {
    /// Who has the processors of a node is judged anew after each record that may have changed it: a job's thread gets
    /// its processor from the kernel some time before or after the job says so.
    pub(super) fn touch_nodes(&mut self, record: &Record) {
        let is_of_processor = match record.event {
            Event::SWITCH | Event::IRQ_ENTER | Event::IRQ_EXIT | Event::WAKE | Event::SLEEP => true,
            // A thread that has the processor already is known from now on.
            Event::THREAD => return self.node_touched.fill(true),
            event => event == Event::LOST && record.source == Record::KERNEL,
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
        if !self.coverage.identifies(node) || self.occupancy.awaits(node) {
            return;
        }
        let count = self.occupancy.processors(node).len();
        let holders: Vec<Occupant> = (0..count).map(|index| self.occupancy.holder(node, index)).collect();
        for index in 0..self.lanes.len() {
            if self.lanes[index].node == node {
                let wrong = self.starvation(index, &holders);
                self.suspect_lane(index, wrong);
            }
        }
    }

    /// What is wrong with the lane's having no processor while these have them.
    fn starvation(&mut self, index: usize, holders: &[Occupant]) -> Option<(State, Course)> {
        let lane = &self.lanes[index];
        let node = lane.node;
        // The job it runs may be one of which only that is known.
        let runs =
            lane.ready.values().any(|ready| ready.running.is_some()) || self.occupancy.runs(node, index);
        let oldest = lane.ready.iter().min_by_key(|(_, ready)| ready.released);
        let (waiting, _) = oldest?;
        let waiting = JobId::unpack(*waiting);
        // A processor that has not been heard of may run a job of this very lane.
        let is_known = !runs && !holders.iter().any(|who| matches!(who, Occupant::Unknown(_)));
        if !runs && !is_known {
            return None;
        }
        self.findings.count_case(Rule::Idle);
        if self.has_levels[node] {
            self.findings.count_case(Rule::Lanes);
        }
        if runs {
            return None;
        }
        let own = self.lanes[index].level;
        let level = |who: &Occupant| match who {
            Occupant::Job(job) => self.occupancy.lane_of(*job).map(|lane| self.lanes[lane].level),
            _ => None,
        };
        let lowest = holders.iter().filter_map(level).max().filter(|level| *level > own);
        let is_wrong = |who: &Occupant| match lowest {
            Some(lowest) => level(who) == Some(lowest),
            None => matches!(who, Occupant::Idle | Occupant::Lane(_)),
        };
        let places: Vec<usize> = (0..holders.len()).filter(|place| is_wrong(&holders[*place])).collect();
        let first = holders[*places.first()?];
        let state = match first {
            Occupant::Job(job) => State { rule: Rule::Lanes, running: Some(job), waiting },
            _ => State { rule: Rule::Idle, running: None, waiting },
        };
        let is_interrupted = |place: &usize| self.occupancy.interrupt(node, *place).is_some();
        let course = if places.iter().all(is_interrupted) { Course::Interrupted } else { Course::Runs };
        Some((state, course))
    }

    fn suspect_lane(&mut self, index: usize, wrong: Option<(State, Course)>) {
        let now = self.now;
        match (&mut self.lanes[index].starved, wrong) {
            (Some(known), Some((new, course))) if known.state.rule == new.rule => known.lasts(now, course),
            (known, wrong) => {
                let new = wrong.map(|(state, course)| Suspicion::new(state, now, course));
                let over = std::mem::replace(known, new);
                self.conclude(over);
            }
        }
    }
}
