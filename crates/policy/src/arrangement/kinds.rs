//! What the words of a description are as schedulers and parameters.

use super::{ArrangeError, pace_of};
use crate::discipline::Discipline;
use crate::hierarchy::{Enforcement, Fraction, Parameters};
use crate::scheduler::{Exhaustion, Habits, Kind, Renewal, Requests, WakeUp};
use crate::strategy::LaneRules;
use num_bigint::BigInt;
use num_rational::BigRational;
use talea_guarantee::conversion::admission::common_base;
use talea_guarantee::derivation::Derivation;
use talea_guarantee::exact::{Share, Span};
use talea_guarantee::guarantee::{Guarantee, Hardness, Reservation};
use talea_model::{Request, SchedulerKind, System, ThreadWork, Under};
use talea_time::{Duration, Work};

/// Threads that a lane of the hierarchy holds without allocating.
const LANE_CAPACITY: usize = 64;

/// Choices of a planning scheduler for each of its children: some for each piece of the longest plan.
const PLANNING_EFFORT: u32 = 24_000;

/// A scheduler of a description, with what has been derived about its hierarchy.
pub(super) struct Facts<'a> {
    pub system: &'a System,
    pub derivation: &'a Derivation,
    /// Index of the scheduler.
    pub index: usize,
}

/// What a child that makes `request` of a scheduler of `kind`, whose amounts count the time of a processor of speed `pace`,
/// registers with. None if a number does not fit.
fn parameters(kind: SchedulerKind, request: &Request, pace: &Share) -> Option<Parameters> {
    Some(match (kind, request) {
        // The amount of a limit is the scheduler's own parameter.
        (SchedulerKind::Limit, _) | (_, Request::Nothing) => Parameters::None,
        (_, Request::Priority(priority)) => Parameters::Priority(*priority),
        (_, Request::Share { weight, warp: Duration::ZERO }) => Parameters::Weight(weight.get()),
        (_, Request::Share { weight, warp }) => {
            Parameters::WarpedWeight { weight: weight.get(), warp: *warp }
        }
        // Its scheduler knows the speed of the processor that it divides.
        (_, Request::Guarantee(Guarantee::Resu(rate))) => Parameters::Rate(fraction(rate)?),
        (kind, Request::Guarantee(guarantee)) => {
            let reservation = guarantee.as_reservation()?;
            let (budget, period) = amounts(reservation, pace)?;
            match kind {
                SchedulerKind::ResourceKernel => {
                    let enforcement = match reservation.hardness() {
                        Hardness::Hard => Enforcement::Hard,
                        Hardness::Soft => Enforcement::Soft,
                    };
                    Parameters::Reserve { budget, period, deadline: period, enforcement }
                }
                _ => Parameters::Reservation { budget, period },
            }
        }
    })
}

/// Whole nanoseconds of the real processor: amounts rounded down, so that what was admitted exactly still is.
fn amounts(reservation: &Reservation, pace: &Share) -> Option<(Work, Duration)> {
    let slowed = reservation.slowed(pace);
    Some((whole_nanos(slowed.amount())?.as_work(), whole_nanos(slowed.period())?))
}

fn whole_nanos(span: &Span) -> Option<Duration> {
    i64::try_from(span.nanos().to_integer()).ok().map(Duration::from_nanos)
}

fn fraction(share: &Share) -> Option<Fraction> {
    let part = |number: &BigInt| i64::try_from(number).ok();
    Fraction::new(part(share.ratio().numer())?, part(share.ratio().denom())?)
}

impl Facts<'_> {
    fn scheduler(&self) -> &talea_model::Scheduler {
        &self.system.schedulers[self.index]
    }

    /// The speed of the processor whose time amounts below this scheduler count.
    fn pace(&self) -> Share {
        pace_of(self.derivation, &self.scheduler().name)
    }

    /// How long the scheduler's own processor takes for what a whole one does in `time`, in nanoseconds rounded down.
    pub fn in_real_time(&self, time: Duration) -> Duration {
        let nanos = BigRational::from_integer(time.as_nanos().into());
        let slowed = nanos / self.pace().ratio();
        i64::try_from(slowed.to_integer()).map_or(time, Duration::from_nanos)
    }

    /// What `child` registers with for `request`.
    pub fn parameters_of(&self, child: &str, request: &Request) -> Result<Parameters, ArrangeError> {
        let scheduler = self.scheduler();
        if scheduler.kind == SchedulerKind::StatisticalRateMonotonic {
            return self.statistical(child, request);
        }
        parameters(scheduler.kind, request, &self.pace()).ok_or_else(|| self.too_fine(child, request))
    }

    fn too_fine(&self, child: &str, request: &Request) -> ArrangeError {
        let Request::Guarantee(asked) = request else { panic!("only guarantees have large numbers") };
        ArrangeError::TooFine {
            scheduler: self.scheduler().name.clone(),
            child: child.into(),
            asked: asked.to_string(),
        }
    }

    /// The kind of the scheduler, which is given `processors` virtual processors.
    pub fn kind(&self, processors: usize) -> Result<Kind, ArrangeError> {
        let scheduler = self.scheduler();
        let (kind, name) = (scheduler.kind, &scheduler.name);
        let is_of_several =
            matches!(kind, SchedulerKind::FixedPriority | SchedulerKind::Join | SchedulerKind::SurplusFair);
        if processors > 1 && !is_of_several {
            return Err(ArrangeError::OneProcessor { scheduler: name.clone(), kind, given: processors });
        }
        let time = scheduler.quantum.unwrap_or_default();
        let quantum = time.as_work();
        let speed = fraction(&self.pace()).unwrap_or(Fraction::ONE);
        Ok(match kind {
            SchedulerKind::FixedPriority => Kind::FixedPriority,
            SchedulerKind::Join => Kind::Join { takes: self.taken() },
            SchedulerKind::Limit => self.limit()?,
            SchedulerKind::ProportionalShare => {
                Kind::ProportionalShare { quantum, wake_up: WakeUp::Preempts }
            }
            SchedulerKind::StartTimeFair => Kind::ProportionalShare { quantum, wake_up: WakeUp::Waits },
            // In any window a child can fall behind by what it is ahead at its beginning, too: by a request and a quantum. The
            // promise is one quantum, so both are half of it.
            SchedulerKind::Eevdf => {
                let half = (quantum.as_nanos() / 2).max(1);
                Kind::Eevdf { quantum: Work::from_nanos(half) }
            }
            SchedulerKind::Lottery => Kind::Lottery { quantum, seed: self.system.seed },
            SchedulerKind::Stride => Kind::Stride { quantum },
            SchedulerKind::SurplusFair => Kind::SurplusFair { quantum },
            SchedulerKind::Reservation => Kind::Reservation { capacity: speed },
            SchedulerKind::ConstantBandwidth => {
                Kind::ConstantBandwidth { exhaustion: Exhaustion::Suspend, capacity: speed }
            }
            SchedulerKind::TotalBandwidth => {
                Kind::TotalBandwidth { capacity: speed, requests: Requests::InPieces }
            }
            SchedulerKind::ResourceKernel => Kind::ResourceKernel { quantum },
            SchedulerKind::Rialto | SchedulerKind::RialtoNt => self.rialto(quantum)?,
            SchedulerKind::Spring => Kind::Spring { effort: PLANNING_EFFORT, quantum },
            SchedulerKind::StatisticalRateMonotonic => {
                Kind::StatisticalRateMonotonic { last: self.last_superperiod()?, quantum }
            }
            SchedulerKind::BssI | SchedulerKind::PShed => Kind::SlowerProcessor { speed, slice: time },
            SchedulerKind::TimeSharing | SchedulerKind::Linux | SchedulerKind::Windows2000 => {
                Kind::TimeSharing(Habits { quantum, ..Habits::default() })
            }
            SchedulerKind::RoundRobin => Kind::RoundRobin { quantum },
            SchedulerKind::Fifo => self.lane(Discipline::Fifo),
            SchedulerKind::EarliestDeadline => self.lane(Discipline::Deadline),
            SchedulerKind::LeastLaxity => self.lane(Discipline::Laxity),
            SchedulerKind::Lanes => panic!("lanes are arranged by their plan"),
        })
    }

    /// The parent whose guarantee a join's child is given; the first if nothing could be derived.
    fn taken(&self) -> usize {
        let name = &self.scheduler().name;
        let derived = self.derivation.schedulers.iter().find(|derived| derived.name == *name);
        derived.map_or(0, |derived| derived.takes)
    }

    fn lane(&self, discipline: Discipline) -> Kind {
        let rules = LaneRules {
            dispatch: self.system.lane_dispatch,
            laxity: self.system.laxity,
            late: self.system.late,
        };
        Kind::Lane { discipline, rules, capacity: LANE_CAPACITY }
    }

    /// What the children of this scheduler ask for, with their names.
    fn requests(&self) -> impl Iterator<Item = (&str, &Request)> {
        let of_schedulers =
            self.system.schedulers.iter().map(|scheduler| (scheduler.name.as_str(), &scheduler.under));
        let of_threads = self.system.threads.iter().map(|thread| (thread.name.as_str(), &thread.under));
        of_schedulers.chain(of_threads).flat_map(|(name, under)| {
            let here = under.iter().filter(|under| under.scheduler == self.index);
            here.map(move |under| (name, &under.request))
        })
    }

    /// As much as its child asks for, or as it receives itself.
    fn limit(&self) -> Result<Kind, ArrangeError> {
        let name = &self.scheduler().name;
        let below = self.derivation.edges.iter().find(|edge| edge.parent == *name);
        let asked = self.requests().find_map(|(child, request)| match request {
            Request::Guarantee(guarantee) => Some((child, guarantee)),
            _ => None,
        });
        let (child, guarantee) = match (below, asked) {
            (Some(edge), _) => (edge.child.as_str(), edge.label.absolute()),
            (None, Some((child, guarantee))) => (child, guarantee.clone()),
            // It limits nobody, or receives nothing that could be said in numbers: then to the whole.
            (None, None) => {
                let period = Duration::from_millis(1_000);
                return Ok(Kind::Limit { budget: period.as_work(), period, renewal: Renewal::Over });
            }
        };
        let amounts =
            guarantee.as_reservation().and_then(|reservation| amounts(reservation, &Share::whole()));
        let (budget, period) =
            amounts.ok_or_else(|| self.too_fine(child, &Request::Guarantee(guarantee.clone())))?;
        Ok(Kind::Limit { budget, period, renewal: self.renewal() })
    }

    /// By whose rule a limit's periods begin: that of whoever lays down those of what it is given.
    fn renewal(&self) -> Renewal {
        let mut below = self.scheduler();
        while let [Under { scheduler, .. }] = below.under.as_slice() {
            below = &self.system.schedulers[*scheduler];
            match below.kind {
                SchedulerKind::Reservation | SchedulerKind::ConstantBandwidth => return Renewal::Unsafe,
                SchedulerKind::Limit | SchedulerKind::FixedPriority | SchedulerKind::Join => {}
                _ => break,
            }
        }
        Renewal::Over
    }

    /// A plan whose base is the common one for which the children were admitted.
    fn rialto(&self, quantum: Work) -> Result<Kind, ArrangeError> {
        const LEVELS_MAX: u32 = 16;
        let reservations: Vec<&Reservation> =
            self.requests().filter_map(|(_, request)| reservation_in(request)).collect();
        let claims: Vec<(&Span, &Span)> =
            reservations.iter().map(|reservation| (reservation.amount(), reservation.period())).collect();
        let nanos = |ratio: &BigRational| i64::try_from(ratio.to_integer()).unwrap_or(i64::MAX);
        let Some(base) = common_base(&claims) else {
            return Ok(Kind::Rialto { base: Duration::from_millis(1), levels: 10, quantum });
        };
        let base = Duration::from_nanos(nanos(&base).max(1));
        let longest = claims.iter().map(|(_, period)| nanos(period.nanos())).max().unwrap_or_default();
        let levels = (longest / base.as_nanos()).max(1).ilog2();
        Ok(Kind::Rialto { base, levels: levels.min(LEVELS_MAX), quantum })
    }

    /// The children of a statistical scheduler: name, period, and the superperiod that is asked for, shortest period first.
    fn statistical_children(&self) -> Result<Vec<(&str, Duration, Duration)>, ArrangeError> {
        let scheduler = || self.scheduler().name.clone();
        let mut children = Vec::new();
        for (child, request) in self.requests() {
            let thread = self.system.threads.iter().find(|thread| thread.name == child);
            let Some(ThreadWork::Bursts { period, .. }) = thread.map(|thread| &thread.work) else {
                return Err(ArrangeError::NoPeriod { scheduler: scheduler(), child: child.into() });
            };
            let asked = reservation_in(request).and_then(|asked| whole_nanos(asked.period()));
            children.push((child, *period, asked.ok_or_else(|| self.too_fine(child, request))?));
        }
        children.sort_by_key(|(_, period, _)| *period);
        Ok(children)
    }

    /// How many periods the last superperiod has.
    fn last_superperiod(&self) -> Result<u32, ArrangeError> {
        let children = self.statistical_children()?;
        let wrong = |child: &str, given: Duration, rule: String| ArrangeError::Superperiod {
            scheduler: self.scheduler().name.clone(),
            child: child.into(),
            given,
            rule,
        };
        for pair in children.windows(2) {
            let ((child, _, given), (next, period, _)) = (pair[0], pair[1]);
            if given != period {
                return Err(wrong(
                    child,
                    given,
                    format!("the next longer period, of \"{next}\", is {period}"),
                ));
            }
        }
        match children.last() {
            None => Ok(1),
            Some((child, period, given)) => {
                let times = given.as_nanos() / period.as_nanos();
                let is_multiple = given.as_nanos() % period.as_nanos() == 0;
                u32::try_from(times).ok().filter(|times| *times > 0 && is_multiple).ok_or_else(|| {
                    wrong(
                        child,
                        *given,
                        format!("as the longest it needs a multiple of its period, {period}"),
                    )
                })
            }
        }
    }

    /// The allowance per superperiod with the child's own period.
    fn statistical(&self, child: &str, request: &Request) -> Result<Parameters, ArrangeError> {
        let children = self.statistical_children()?;
        let (_, period, _) =
            children.iter().find(|(name, ..)| *name == child).expect("it asks this scheduler");
        let (budget, _) = reservation_in(request)
            .and_then(|asked| amounts(asked, &self.pace()))
            .ok_or_else(|| self.too_fine(child, request))?;
        Ok(Parameters::Reservation { budget, period: *period })
    }
}

fn reservation_in(request: &Request) -> Option<&Reservation> {
    match request {
        Request::Guarantee(guarantee) => guarantee.as_reservation(),
        _ => None,
    }
}
