//! States that are wrong if they last.

use super::judge::Judge;
use super::length;
use super::report::{Certainty, Finding, Rule};
use talea_record::JobId;
use talea_time::{Duration, Instant};

/// What is wrong with a state, or what nobody can tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A job of a lower lane has a processor.
    Lower,
    /// One of several jobs of lower lanes has; nobody saw which.
    LowerUnnamed,
    /// The thread of a lower lane has, without a job.
    LowerThread,
    /// The waiting job has begun and could go on, and a lower lane has a processor.
    Displaced,
    Idle,
    /// A lane's thread has a processor without a job, which is overhead.
    Overhead,
    Misordered,
    /// Only the kernel could tell whether the rule is obeyed, and does not.
    Unseen(Rule),
}

impl Fault {
    fn rule(self) -> Rule {
        match self {
            Fault::Lower | Fault::LowerUnnamed | Fault::LowerThread | Fault::Displaced => Rule::Lanes,
            Fault::Idle => Rule::Idle,
            Fault::Overhead => Rule::Dispatching,
            Fault::Misordered => Rule::Order,
            Fault::Unseen(rule) => rule,
        }
    }

    /// Whether a lower lane has what a higher one should have.
    fn is_lower(self) -> bool {
        matches!(self, Fault::Lower | Fault::LowerUnnamed | Fault::LowerThread)
    }

    /// What happened, as a sentence about the job that should not have had what it has, or else about the one that waits.
    fn text(self, running: Option<JobId>, offenders: Offenders) -> &'static str {
        match (self, running, offenders) {
            (Fault::Displaced, Some(_), Offenders::One) => {
                "it ran while a job of a higher lane had begun and could go on"
            }
            (Fault::Displaced, Some(_), Offenders::Several) => {
                "it and others of lower lanes ran while a job of a higher lane had begun and could go on"
            }
            (Fault::Displaced, None, _) => "it had begun and could go on while lower lanes had the processor",
            (Fault::LowerThread, None, Offenders::One) => {
                "it was ready while the thread of a lower lane had the processor"
            }
            (Fault::LowerUnnamed, None, Offenders::One) => {
                "it was ready while jobs of lower lanes shared the processor"
            }
            (Fault::Lower | Fault::LowerUnnamed | Fault::LowerThread, None, _) => {
                "it was ready while lower lanes had the processor"
            }
            (Fault::Lower | Fault::LowerUnnamed | Fault::LowerThread, Some(_), Offenders::One) => {
                "it ran while a job of a higher lane was ready"
            }
            (Fault::Lower | Fault::LowerUnnamed | Fault::LowerThread, Some(_), Offenders::Several) => {
                "it and others of lower lanes ran while a job of a higher lane was ready"
            }
            (Fault::Idle, ..) => "it was ready while a processor idled",
            (Fault::Misordered, ..) => "it kept the lane while a job that comes first waited",
            (Fault::Overhead, ..) => "it was ready while a lane's thread had the processor without a job",
            (Fault::Unseen(_), ..) => "nobody saw who had the processor",
        }
    }
}

/// Whether the one that is named had all of the time what it should not have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offenders {
    One,
    /// Others of lower lanes had it, too.
    Several,
}

/// A state that may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub what: Fault,
    /// Who has what it should not have, if somebody has.
    pub running: Option<JobId>,
    pub waiting: JobId,
}

impl State {
    /// Whether the other state is the same wrong, by whomever.
    fn is_same_wrong(&self, other: &State) -> bool {
        self.what == other.what || self.what.is_lower() && other.what.is_lower()
    }
}

/// A state that is wrong if it lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    pub state: State,
    offenders: Offenders,
    since: Instant,
    /// How long it lasted up to `counted`, without interrupts.
    lasted: Duration,
    counted: Instant,
    counting: Counting,
}

/// Whether a wrong state lasts longer with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    Runs,
    /// Interrupts have the processors, or those who may preempt whoever does what it should not.
    Interrupted,
}

impl Suspicion {
    pub fn new(state: State, since: Instant, counting: Counting) -> Self {
        let offenders = Offenders::One;
        Suspicion { state, offenders, since, lasted: Duration::ZERO, counted: since, counting }
    }

    /// Whether the state that begins `now` with this counting is the same wrong, which lasts then.
    pub fn lasts(&mut self, now: Instant, state: State, counting: Counting) -> bool {
        if !self.state.is_same_wrong(&state) {
            return false;
        }
        if self.state.running != state.running {
            self.offenders = Offenders::Several;
        }
        self.state.running = self.state.running.or(state.running);
        // That a lower lane ran jobs is surer than that its thread had the processor.
        if self.state.what == Fault::LowerThread {
            self.state.what = state.what;
        }
        self.count(now, counting);
        true
    }

    /// The state lasts longer, or not, from `now` on.
    pub fn count(&mut self, now: Instant, counting: Counting) {
        self.lasted = self.duration(now);
        (self.counted, self.counting) = (now, counting);
    }

    /// The rule that is broken if it lasts.
    pub fn rule(&self) -> Rule {
        self.state.what.rule()
    }

    /// How long it has lasted, without interrupts.
    fn duration(&self, now: Instant) -> Duration {
        let more = match self.counting {
            Counting::Runs => length(self.counted, now),
            Counting::Interrupted => Duration::ZERO,
        };
        Duration::from_nanos(self.lasted.as_nanos().saturating_add(more.as_nanos()))
    }
}

impl Judge<'_> {
    fn has_several_processors(&self, job: JobId) -> bool {
        let lane = &self.lanes[self.expected.operations[job.operation.index()].lane];
        self.occupancy.processors(lane.node).len() > 1
    }

    /// A suspicious state is over; it was a violation if it lasted.
    pub(super) fn conclude(&mut self, suspicion: Option<Suspicion>) {
        let Some(suspicion) = suspicion else { return };
        let (State { what, running, waiting }, offenders) = (suspicion.state, suspicion.offenders);
        let (rule, duration) = (what.rule(), suspicion.duration(self.now));
        if what == Fault::Overhead {
            self.findings.count_case(Rule::Dispatching);
        }
        match what {
            Fault::Overhead if duration <= self.overhead => {
                if duration > Duration::ZERO {
                    self.findings.tolerate(rule, duration);
                }
                return;
            }
            Fault::Overhead => {}
            Fault::Unseen(_) if duration <= self.tolerance => return,
            Fault::Unseen(rule) => return self.findings.leave_open(rule, duration),
            _ if duration <= self.tolerance => {
                if duration > Duration::ZERO {
                    self.findings.tolerate(rule, duration);
                }
                return;
            }
            _ => {}
        }
        // That a node's only processor idles is wrong whatever the lane.
        let rests_on_lanes = what != Fault::Idle || self.has_several_processors(waiting);
        if rests_on_lanes && self.is_unplaced(waiting, running) {
            self.unjudged += 1;
            return;
        }
        let (job, other) = (running.or(Some(waiting)), running.map(|_| waiting));
        // Who has the processor is inferred from what threads say of their own jobs. While the kernel holds the thread of a
        // higher lane off, as by throttling, the processor idles or a lower lane has it, and only the kernel tells of that. So it is with the thread
        // that chooses for a preemptive lane.
        let is_of_processor =
            matches!(what.rule(), Rule::Idle | Rule::Lanes | Rule::Dispatching) || what == Fault::Misordered;
        let is_doubtful = is_of_processor && !self.is_simulated() && !self.occupancy.hears_kernel();
        let certainty = if is_doubtful { Certainty::Possible } else { Certainty::Certain };
        let finding =
            Finding { rule, certainty, at: suspicion.since, duration, judged: self.now, job, other };
        self.findings.add(self.trace, finding, || what.text(running, offenders).into());
    }
}
