//! Every kind of scheduler with its parameters, as a value: where a description becomes a scheduler.

use super::{
    Announcing, Eevdf, Exhaustion, ExplicitPlan, FairQueue, FixedPriority, Gaps, Habits, Join, LaneScheduler,
    Limit, Lottery, PlanEntry, PlanError, Renewal, Repeat, Requests, Reservation, ResourceKernel, Rialto,
    RoundRobin, Rule, SlowerProcessor, Spring, StatisticalRateMonotonic, Stride, SurplusFair, TimeSharing,
    TotalBandwidth, Uniprocessor, WakeUp,
};
use crate::discipline::Discipline;
use crate::hierarchy::{Fraction, Scheduler};
use crate::lane::LaneQueue;
use crate::strategy::LaneRules;
use talea_guarantee::algorithm::article;
use talea_time::{Duration, Instant, Work};

/// A scheduler to be, with all that it is made from. What its children register with stands beside each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`FixedPriority`]; children: `Priority`.
    FixedPriority,
    /// [`Join`]; one child: `None`.
    Join {
        /// The parent whose guarantee the child is given, by position.
        takes: usize,
    },
    /// [`Limit`]; one child: `None`.
    Limit {
        /// The most the child may have,
        budget: Work,
        /// per this much time.
        period: Duration,
        /// When such a period begins.
        renewal: Renewal,
    },
    /// [`LaneScheduler`] over threads with jobs: FIFO, earliest deadline or least laxity first; children: `None`.
    Lane {
        /// The order.
        discipline: Discipline,
        /// How keys are computed and when the lane chooses anew.
        rules: LaneRules,
        /// Jobs that wait without allocating.
        capacity: usize,
    },
    /// [`RoundRobin`]; children: `None`.
    RoundRobin {
        /// How long each runs.
        quantum: Work,
    },
    /// [`FairQueue`]; children: `Weight` or `WarpedWeight`.
    ProportionalShare {
        /// How long each runs.
        quantum: Work,
        /// What waking up does.
        wake_up: WakeUp,
    },
    /// [`Stride`]; children: `Weight`.
    Stride {
        /// How long each runs.
        quantum: Work,
    },
    /// [`Lottery`]; children: `Weight`.
    Lottery {
        /// How long each runs.
        quantum: Work,
        /// Where the draws come from.
        seed: u64,
    },
    /// [`Eevdf`]; children: `Weight` or `Requests`.
    Eevdf {
        /// How long each runs at most before the next choice.
        quantum: Work,
    },
    /// [`TimeSharing`]; children: `Priority` from 0 to 15, or `None`.
    TimeSharing(Habits),
    /// [`Reservation`] with [`Exhaustion::Suspend`]; children: `Reservation`.
    Reservation {
        /// The most that is reserved.
        capacity: Fraction,
    },
    /// [`Reservation`] as constant bandwidth servers; children: `Reservation`.
    ConstantBandwidth {
        /// Hard, or soft as published.
        exhaustion: Exhaustion,
        /// The most that is reserved.
        capacity: Fraction,
    },
    /// [`TotalBandwidth`]; children: `Reservation`.
    TotalBandwidth {
        /// The most that is reserved.
        capacity: Fraction,
        /// How requests are served.
        requests: Requests,
    },
    /// [`SlowerProcessor`]: BSS-I, PShED; children: `Rate`.
    SlowerProcessor {
        /// The speed of the processor it receives.
        speed: Fraction,
        /// By how much the deadline of an exhausted child is postponed.
        slice: Duration,
    },
    /// [`ResourceKernel`]; children: `Reserve` or `None`.
    ResourceKernel {
        /// How long each without budget runs.
        quantum: Work,
    },
    /// [`Rialto`]; children: `Reservation` or `None`.
    Rialto {
        /// The shortest period.
        base: Duration,
        /// The longest is the base times two to this power, at most 16.
        levels: u32,
        /// How long each runs in what is left.
        quantum: Work,
    },
    /// [`Spring`]; children: `Reservation` or `None`.
    Spring {
        /// Choices tried per reservation and piece of work.
        effort: u32,
        /// How long each without a guarantee runs.
        quantum: Work,
    },
    /// [`StatisticalRateMonotonic`]; children: `Reservation`.
    StatisticalRateMonotonic {
        /// Periods in the last superperiod, at least 1.
        last: u32,
        /// How long each in the background runs.
        quantum: Work,
    },
    /// [`ExplicitPlan`]; children: `Process`.
    ExplicitPlan {
        /// In order of time.
        entries: Vec<PlanEntry>,
        /// What comes after the last.
        repeat: Repeat,
        /// Who runs in between.
        gaps: Gaps,
        /// When the plan begins.
        origin: Instant,
    },
    /// [`SurplusFair`], on all its own VPs; children: `Weight`.
    SurplusFair {
        /// How long each runs.
        quantum: Work,
    },
}

/// Why no scheduler can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// A time has to be above zero.
    #[error("the {what} of {} {kind} scheduler is {given}, but has to be above zero", article(kind))]
    NotPositive {
        /// The scheduler.
        kind: &'static str,
        /// The parameter.
        what: &'static str,
        /// Its value.
        given: Duration,
    },
    /// A limit of more than the whole processor, or a capacity.
    #[error("{} {kind} scheduler cannot give away more than the whole processor", article(kind))]
    MoreThanWhole {
        /// The scheduler.
        kind: &'static str,
    },
    /// The plan cannot be followed.
    #[error("an explicit plan cannot be followed: {0}")]
    Plan(#[from] PlanError),
}

impl Kind {
    /// Makes the scheduler. It tells its parent of deadlines if it is `announcing` them and knows any.
    ///
    /// # Errors
    /// Parameters with which there is no such scheduler.
    pub fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        self.check()?;
        Ok(match self {
            Kind::FixedPriority => Box::new(FixedPriority::new().announcing(announcing)),
            Kind::Join { takes } => Box::new(Join::new(*takes)),
            Kind::Lane { discipline, rules, capacity } => {
                let queue = LaneQueue::new(*discipline, *rules, *capacity);
                Box::new(LaneScheduler::new(queue).announcing(announcing))
            }
            Kind::SurplusFair { quantum } => Box::new(SurplusFair::new(*quantum)),
            Kind::Limit { budget, period, renewal } => {
                boxed(Limit::scheduler(*budget, *period, *renewal), announcing)
            }
            Kind::RoundRobin { quantum } => boxed(RoundRobin::scheduler(*quantum), announcing),
            Kind::ProportionalShare { quantum, wake_up } => {
                boxed(FairQueue::scheduler(*quantum, *wake_up), announcing)
            }
            Kind::Stride { quantum } => boxed(Stride::scheduler(*quantum), announcing),
            Kind::Lottery { quantum, seed } => boxed(Lottery::scheduler(*quantum, *seed), announcing),
            Kind::Eevdf { quantum } => boxed(Eevdf::scheduler(*quantum), announcing),
            Kind::TimeSharing(habits) => boxed(TimeSharing::scheduler(*habits), announcing),
            Kind::Reservation { capacity } => {
                boxed(Reservation::scheduler(Exhaustion::Suspend, *capacity), announcing)
            }
            Kind::ConstantBandwidth { exhaustion, capacity } => {
                boxed(Reservation::scheduler(*exhaustion, *capacity), announcing)
            }
            Kind::TotalBandwidth { capacity, requests } => {
                boxed(TotalBandwidth::scheduler(*capacity, *requests), announcing)
            }
            Kind::SlowerProcessor { speed, slice } => {
                boxed(SlowerProcessor::scheduler(*speed, *slice), announcing)
            }
            Kind::ResourceKernel { quantum } => boxed(ResourceKernel::scheduler(*quantum), announcing),
            Kind::Rialto { base, levels, quantum } => {
                boxed(Rialto::scheduler(*base, *levels, *quantum), announcing)
            }
            Kind::Spring { effort, quantum } => boxed(Spring::scheduler(*effort, *quantum), announcing),
            Kind::StatisticalRateMonotonic { last, quantum } => {
                boxed(StatisticalRateMonotonic::scheduler(*last, *quantum), announcing)
            }
            Kind::ExplicitPlan { entries, repeat, gaps, origin } => {
                let plan = ExplicitPlan::new(entries.clone(), *repeat, *gaps, *origin)?;
                boxed(plan.scheduler(), announcing)
            }
        })
    }

    /// The name in messages and, later, in system files.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::FixedPriority => "fixed-priority",
            Kind::Join { .. } => "join",
            Kind::Limit { .. } => "limit",
            Kind::Lane { .. } => "lane",
            Kind::RoundRobin { .. } => "round-robin",
            Kind::ProportionalShare { .. } => "proportional-share",
            Kind::Stride { .. } => "stride",
            Kind::Lottery { .. } => "lottery",
            Kind::Eevdf { .. } => "eevdf",
            Kind::TimeSharing(_) => "time-sharing",
            Kind::Reservation { .. } => "reservation",
            Kind::ConstantBandwidth { .. } => "constant-bandwidth",
            Kind::TotalBandwidth { .. } => "total-bandwidth",
            Kind::SlowerProcessor { .. } => "slower-processor",
            Kind::ResourceKernel { .. } => "resource-kernel",
            Kind::Rialto { .. } => "rialto",
            Kind::Spring { .. } => "spring",
            Kind::StatisticalRateMonotonic { .. } => "statistical-rate-monotonic",
            Kind::ExplicitPlan { .. } => "explicit-plan",
            Kind::SurplusFair { .. } => "surplus-fair",
        }
    }

    /// Times that have to be above zero, and fractions that must not be above one.
    fn check(&self) -> Result<(), KindError> {
        let kind = self.name();
        let positive = |what: &'static str, given: Duration| match given > Duration::ZERO {
            true => Ok(()),
            false => Err(KindError::NotPositive { kind, what, given }),
        };
        let at_most_one = |fraction: Fraction| match fraction.numerator() <= fraction.denominator() {
            true => Ok(()),
            false => Err(KindError::MoreThanWhole { kind }),
        };
        match self {
            Kind::FixedPriority | Kind::Join { .. } | Kind::Lane { .. } | Kind::ExplicitPlan { .. } => Ok(()),
            Kind::Limit { budget, period, .. } => {
                positive("budget", budget.at_full_speed())?;
                match budget.at_full_speed() <= *period {
                    true => Ok(()),
                    false => Err(KindError::MoreThanWhole { kind }),
                }
            }
            Kind::RoundRobin { quantum }
            | Kind::ProportionalShare { quantum, .. }
            | Kind::Stride { quantum }
            | Kind::Lottery { quantum, .. }
            | Kind::Eevdf { quantum }
            | Kind::ResourceKernel { quantum }
            | Kind::Spring { quantum, .. }
            | Kind::StatisticalRateMonotonic { quantum, .. }
            | Kind::SurplusFair { quantum } => positive("quantum", quantum.at_full_speed()),
            Kind::TimeSharing(habits) => {
                positive("quantum", habits.quantum.at_full_speed())?;
                positive("starvation", habits.starvation)
            }
            Kind::Reservation { capacity }
            | Kind::ConstantBandwidth { capacity, .. }
            | Kind::TotalBandwidth { capacity, .. } => at_most_one(*capacity),
            Kind::SlowerProcessor { speed, slice } => {
                at_most_one(*speed)?;
                positive("slice", *slice)
            }
            Kind::Rialto { base, quantum, .. } => {
                positive("base", *base)?;
                positive("quantum", quantum.at_full_speed())
            }
        }
    }
}

fn boxed<R: Rule>(scheduler: Uniprocessor<R>, announcing: Announcing) -> Box<dyn Scheduler> {
    Box::new(scheduler.announcing(announcing))
}
