//! Who comes before whom inside a lane (`docs/policies.md`), from the description and the records alone.

use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::job::Job;
use talea_policy::strategy::{Lane, LaneRules};
use talea_time::{Duration, Instant, Work};

/// A job that is released and unfinished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    /// What the policy sees of it.
    pub job: Job,
    /// When the records say that it was released.
    pub released: Instant,
    /// Before its release, if that is not known exactly: a guard has opened for it since then, and to the rules it was released when that happened.
    pub earliest: Instant,
    /// Time it has had a processor.
    pub service: Work,
    /// Since when it has one.
    pub running: Option<Instant>,
    /// When it began, if it has.
    pub began: Option<Instant>,
    /// It has done its work and keeps its lane until there is room for what it wrote, in this input and at most until then.
    pub waits: Option<(u32, Instant)>,
}

impl Ready {
    /// Service up to `now`.
    pub fn executed(&self, now: Instant) -> Work {
        let running_ns =
            self.running.map_or(0, |since| now.as_nanos().saturating_sub(since.as_nanos()).max(0));
        Work::from_nanos(self.service.as_nanos().saturating_add(running_ns))
    }
}

/// How a lane orders its jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneOrder {
    pub discipline: Discipline,
    pub rules: LaneRules,
}

/// Which of the two jobs the lane ran last, if it was one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastRan {
    Neither,
    Running,
    Waiting,
}

impl LaneOrder {
    /// Stands for a thread below schedulers, which is no lane.
    pub const OF_THREAD: LaneOrder = LaneOrder {
        discipline: Discipline::Fifo,
        rules: LaneRules {
            dispatch: LaneDispatch::NonPreemptive,
            laxity: Laxity::Remaining,
            late: Late::None,
        },
    };

    /// Of a lane of a plan.
    pub fn of(lane: &Lane) -> Self {
        LaneOrder { discipline: lane.discipline, rules: lane.rules }
    }

    fn urgency(&self, ready: &Ready, now: Instant) -> Instant {
        self.discipline.urgency(&ready.job, ready.executed(now), self.rules.laxity)
    }

    fn is_late(&self, urgency: Instant, now: Instant) -> bool {
        self.rules.late == Late::Last && self.discipline != Discipline::Fifo && urgency <= now
    }

    /// Whether the keys of jobs depend on how long they have executed, which real records tell only roughly.
    fn is_rough(&self) -> bool {
        self.discipline == Discipline::Laxity
            && self.rules.laxity == Laxity::Remaining
            && self.rules.dispatch == LaneDispatch::Preemptive
    }

    /// Whether `waiting` should have the lane instead of `running`, for a choice made between `earliest` and
    /// now: only if it should at both instants and when it becomes late in between. A preemptive lane is decided about by another thread, up to
    /// `tolerance` after the record; so only if it should then, too.
    pub fn outranks(
        &self,
        waiting: &Ready,
        running: &Ready,
        last_ran: LastRan,
        (earliest, now): (Instant, Instant),
        tolerance: Duration,
    ) -> bool {
        let after = now.saturating_add(tolerance);
        let late = Some(self.urgency(waiting, now)).filter(|late| earliest < *late && *late < now);
        [now, earliest]
            .into_iter()
            .chain(late)
            .chain((self.rules.dispatch == LaneDispatch::Preemptive).then_some(after))
            .all(|chosen| self.outranks_at(waiting, running, last_ran, (now, chosen), tolerance))
    }

    /// The same for a choice at `chosen`, with the service that the jobs have had by `now`.
    fn outranks_at(
        &self,
        waiting: &Ready,
        running: &Ready,
        last_ran: LastRan,
        (now, chosen): (Instant, Instant),
        tolerance: Duration,
    ) -> bool {
        let place = |ready: &Ready| {
            let urgency = self.urgency(ready, now);
            (self.is_late(urgency, chosen), urgency)
        };
        let (theirs, own) = (place(waiting), place(running));
        if self.is_rough() {
            let apart_ns = theirs.1.as_nanos().saturating_sub(own.1.as_nanos()).saturating_abs();
            if tolerance > Duration::ZERO && apart_ns <= tolerance.as_nanos() {
                return false;
            }
        }
        // In the order of releases, which decides between equals, too, nobody knows which of two came first, where one opened a guard while the other came.
        let is_unknown = running.earliest < running.job.release && running.earliest <= waiting.job.release;
        let by_release = self.discipline == Discipline::Fifo || theirs == own && last_ran == LastRan::Neither;
        if is_unknown && by_release {
            return false;
        }
        let rest = |ready: &Ready| (ready.job.release, ready.job.rank, ready.job.number);
        match last_ran {
            LastRan::Running => theirs < own,
            LastRan::Waiting => theirs <= own,
            LastRan::Neither => (theirs, rest(waiting)) < (own, rest(running)),
        }
    }
}
