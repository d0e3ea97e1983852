//! Whether operations are in the lanes that the plan gives them.

use super::judge::Judge;
use super::report::{Certainty, Finding, Rule};
use talea_record::{Metadata, Record};
use talea_time::Duration;

impl Judge<'_> {
    /// The lanes of the trace and those of the plan.
    pub(super) fn compare_plans(&mut self) {
        for index in 0..self.trace.operations.len() {
            let of = |metadata: &Metadata| {
                let lane = &metadata.lanes[metadata.operations[index].lane];
                format!("level {} \"{}\" ({})", lane.level, lane.label, lane.discipline)
            };
            let is_thread = self.expected.lanes[self.expected.operations[index].lane].is_thread();
            // In which lane something is posted is not the plan's to say.
            if is_thread || self.is_posted(self.trace.operations[index].task) {
                continue;
            }
            self.findings.count_case(Rule::Plan);
            let (is, should) = (of(self.trace), of(&self.expected));
            if is != should {
                let name = &self.trace.operations[index].name;
                let text = format!("{name} is in lane {is}; the plan puts it into {should}");
                let (at, duration) = (self.trace.start, Duration::ZERO);
                self.findings.add(
                    self.trace,
                    Finding {
                        rule: Rule::Plan,
                        certainty: Certainty::Certain,
                        at,
                        duration,
                        judged: at,
                        job: None,
                        other: None,
                    },
                    || text,
                );
                self.misplaced[index] = true;
            }
        }
        // This rests on the tables of the trace alone, and no lost record can change it.
        self.findings.settle_all();
    }

    /// Whether the record is from the lane that the trace itself says.
    pub(super) fn check_lane(&mut self, record: &Record) {
        let index = record.job().operation.index();
        let said = self.trace.operations[index].lane;
        let is_known = self.misplaced[index] || self.misplaced_by_record[index];
        if usize::from(record.source) != said && !is_known {
            self.misplaced_by_record[index] = true;
            let (source, job) = (record.source, record.job());
            self.find(Rule::Plan, job, None, || {
                format!("it was served by lane {source} instead of lane {said}")
            });
        }
    }
}
