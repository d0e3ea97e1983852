//! Statistical rate-monotonic scheduling (Atlas and Bestavros 1998).
//!
//! Periodic children with varying demand and harmonic periods. The *superperiod* of a child is the next longer period, that of
//! the last one a chosen multiple of its own. Each has an allowance per superperiod; a job whose demand is `e` (its declared
//! execution time) is admitted on release if `e` is left of the allowance and it can end in its period although every higher child may
//! spend its whole allowance: `e <= P(i) - sum over j < i of a(j) P(i) / P(j+1)`. What is released late in its period
//! has that much less room, so that nothing admitted reaches into the next one. Admitted jobs run by rate, preemptively;
//! all others in the background, in turn.
//!
//! ALL becomes, for each child, that admitted jobs meet their deadlines; how many are admitted depends on the demand. Children are admitted
//! while `sum a(i) / P(i+1) <= 1`. A job that runs longer than it declared goes to the background. Costs a look at every child
//! per notification.
//!
//! Do not use it for children whose every job counts, nor for periods that do not divide each other. Periods begin at multiples
//! of their length on the clock.

use super::configuration::{boxed, some_quantum};
use super::facts::{amounts, reservation_in, whole_nanos};
use super::round_robin::Turns;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, ConfigureError, Facts, KindError, Row};
use crate::hierarchy::{Context, Fraction, Load, Parameters, Refusal, Scheduler, Shortage};
use talea_model::{Request, SchedulerKind, ThreadWork};
use talea_time::{Duration, Instant, Work};

/// The rule. Children register with [`Parameters::Reservation`]: allowance per superperiod, and period.
#[derive(Clone, Debug)]
pub struct StatisticalRateMonotonic {
    /// Periods in the superperiod of the child with the longest one.
    last: u32,
    /// How long those in the background run in turn.
    quantum: Work,
    turns: Turns,
}

/// A child's allowance and what became of its job.
#[derive(Clone, Copy, Debug)]
pub struct Statistical {
    allowance: Work,
    period: Duration,
    superperiod: Duration,
    /// The most a job may demand beside the higher children.
    room: Work,
    /// What is left of the allowance until `end`.
    left: Work,
    end: Instant,
    job: JobState,
    /// Jobs admitted, and released, so far.
    counts: (u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobState {
    /// Has this much of its declared demand left.
    Admitted(Work),
    /// Runs when no admitted job wants to; with the rest of a quantum.
    Background { turn: u64, slice: Work },
}

impl Statistical {
    /// Jobs admitted, of jobs released.
    pub fn counts(&self) -> (u64, u64) {
        self.counts
    }
}

impl StatisticalRateMonotonic {
    /// A scheduler; the superperiod of the child with the longest period has `last` of its periods.
    pub fn scheduler(last: u32, quantum: Work) -> Uniprocessor<Self> {
        Uniprocessor::new(StatisticalRateMonotonic { last: last.max(1), quantum, turns: Turns::default() })
    }

    /// The superperiod of each of `periods`, which are sorted.
    fn superperiods(&self, periods: &[Duration]) -> Vec<Duration> {
        let next = |place: usize| periods.get(place + 1).copied();
        (0..periods.len()).map(|place| next(place).unwrap_or(periods[place] * i64::from(self.last))).collect()
    }

    /// Allowance and period that are asked for by a newcomer or in the `place` of a child, if there is room for them beside
    /// the others.
    fn asked(
        &self,
        clients: &Clients<Statistical>,
        place: Option<usize>,
        given: Parameters,
    ) -> Result<(Work, Duration), Refusal> {
        let refusal = Refusal::unacceptable(self.kind(), "an allowance and a period above 0", given);
        let Parameters::Reservation { budget: allowance, period } = given else { return Err(refusal) };
        let share = Fraction::of(allowance, period).ok_or(refusal)?;
        let mut all: Vec<(Duration, Work)> =
            clients.accounts().map(|other| (other.period, other.allowance)).collect();
        let place = place.unwrap_or(all.len());
        let others = all.iter().enumerate().filter(|(other, _)| *other != place);
        for other in others.map(|(_, (other, _))| *other) {
            let (short, long) = (period.min(other), period.max(other));
            if long.as_nanos() % short.as_nanos() != 0 {
                let rule = "the longer must be a multiple of the shorter";
                return Err(Shortage::Period { given: period, other, rule }.into());
            }
        }
        match all.get_mut(place) {
            Some(replaced) => *replaced = (period, allowance),
            None => all.push((period, allowance)),
        }
        // Stable, so that those of the same period are in the same order as in `by_rate`.
        all.sort_by_key(|(period, _)| *period);
        let periods: Vec<Duration> = all.iter().map(|(period, _)| *period).collect();
        let superperiods = self.superperiods(&periods);
        let loads =
            all.iter().zip(&superperiods).filter_map(|((_, work), length)| Fraction::of(*work, *length));
        let mut loads: Vec<Fraction> = loads.collect();
        let last = loads.pop().unwrap_or(share);
        Load::of(loads).admit(last, Fraction::ONE)?;
        Ok((allowance, period))
    }

    fn background(&mut self) -> JobState {
        JobState::Background { turn: self.turns.next(), slice: self.quantum }
    }
}

/// Places by period, shortest first; equal ones in order of registration.
fn by_rate(clients: &Clients<Statistical>) -> Vec<usize> {
    let mut places: Vec<usize> = (0..clients.len()).collect();
    places.sort_by_key(|place| clients.account(*place).period);
    places
}

impl Rule for StatisticalRateMonotonic {
    type Account = Statistical;

    fn kind(&self) -> &'static str {
        SchedulerKind::SRMS.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Statistical>,
        given: Parameters,
    ) -> Result<Statistical, Refusal> {
        let (allowance, period) = self.asked(clients, None, given)?;
        Ok(Statistical {
            allowance,
            period,
            superperiod: period,
            room: Work::ZERO,
            left: Work::ZERO,
            end: cx.now(),
            job: JobState::Background { turn: 0, slice: self.quantum },
            counts: (0, 0),
        })
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Statistical>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let (allowance, period) = self.asked(clients, Some(place), given)?;
        let account = clients.account_mut(place);
        // What is left of this superperiod is not more than it was.
        (account.allowance, account.period) = (allowance, period);
        account.left = account.left.min(allowance);
        self.regroup(cx, clients);
        Ok(())
    }

    fn regroup(&mut self, cx: &Context<'_>, clients: &mut Clients<Statistical>) {
        let order = by_rate(clients);
        let periods: Vec<Duration> = order.iter().map(|place| clients.account(*place).period).collect();
        let superperiods = self.superperiods(&periods);
        let mut higher: Vec<(Work, Duration)> = Vec::new();
        for (place, superperiod) in order.into_iter().zip(superperiods) {
            let account = clients.account_mut(place);
            let periods_in = |length: Duration| account.period.as_nanos() / length.as_nanos();
            let claimed: Work = higher
                .iter()
                .map(|(work, length)| Work::from_nanos(work.as_nanos() * periods_in(*length)))
                .sum();
            account.room = account.period.as_work() - claimed;
            if std::mem::replace(&mut account.superperiod, superperiod) != superperiod {
                // A new superperiod begins with the next job.
                account.end = cx.now();
            }
            higher.push((account.allowance, superperiod));
        }
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Statistical>, place: usize) {
        let demand = cx.job(clients.vp(place)).wcet;
        let background = self.background();
        let account = clients.account_mut(place);
        if account.end <= cx.now() {
            let passed = cx.now().as_nanos() / account.superperiod.as_nanos() + 1;
            account.end = Instant::ZERO + account.superperiod * passed;
            account.left = account.allowance;
        }
        account.counts.1 += 1;
        account.job = background;
        let elapsed = Work::from_nanos(cx.now().as_nanos() % account.period.as_nanos());
        if demand > Work::ZERO && demand <= account.left && demand + elapsed <= account.room {
            account.left -= demand;
            account.job = JobState::Admitted(demand);
            account.counts.0 += 1;
        }
    }

    /// Every job is admitted or not for itself.
    fn job_followed(&mut self, cx: &Context<'_>, clients: &mut Clients<Statistical>, place: usize) {
        self.woke(cx, clients, place);
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Statistical>, place: usize, used: Work) {
        let account = clients.account_mut(place);
        match &mut account.job {
            JobState::Admitted(left) => *left -= used,
            JobState::Background { slice, .. } => *slice -= used,
        }
        let is_over = |left: Work| left <= Work::ZERO;
        if matches!(account.job, JobState::Admitted(left) | JobState::Background { slice: left, .. } if is_over(left))
        {
            account.job = self.background();
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Statistical>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let rank = |account: &Statistical| match account.job {
            JobState::Admitted(_) => (0, account.period.as_nanos() as u64),
            JobState::Background { turn, .. } => (1, turn),
        };
        clients.wanting(cx).min_by_key(|(_, account)| rank(account)).map(|(place, _)| place)
    }

    fn next(
        &self,
        cx: &Context<'_>,
        clients: &Clients<Statistical>,
        stint: Option<Stint>,
    ) -> Option<Instant> {
        stint.map(|stint| match clients.account(stint.place).job {
            JobState::Admitted(left) | JobState::Background { slice: left, .. } => {
                cx.now() + left.at_full_speed()
            }
        })
    }
}

/// What a statistical rate-monotonic scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Periods in the last superperiod, at least 1.
    pub last: u32,
    /// How long each in the background runs.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::SRMS.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(StatisticalRateMonotonic::scheduler(self.last, self.quantum), announcing)
    }
}

pub(super) static ROW: Row = Row::new(SchedulerKind::SRMS, |facts| {
    Ok(Config { last: last_superperiod(facts)?, quantum: facts.quantum() }.into())
})
.registering(parameters);

/// The children: name, period, and the superperiod that is asked for, shortest period first.
fn children<'f>(facts: &Facts<'f>) -> Result<Vec<(&'f str, Duration, Duration)>, ConfigureError> {
    let mut children = Vec::new();
    for (child, request) in facts.requests() {
        let thread = facts.system().threads.iter().find(|thread| thread.name == child);
        let Some(ThreadWork::Bursts { period, .. }) = thread.map(|thread| &thread.work) else {
            return Err(ConfigureError::NoPeriod { scheduler: facts.name().into(), child: child.into() });
        };
        let asked = reservation_in(request).and_then(|asked| whole_nanos(asked.period()));
        children.push((child, *period, asked.ok_or_else(|| facts.too_fine_request(child, request))?));
    }
    children.sort_by_key(|(_, period, _)| *period);
    Ok(children)
}

/// How many periods the last superperiod has.
fn last_superperiod(facts: &Facts<'_>) -> Result<u32, ConfigureError> {
    let children = children(facts)?;
    let wrong = |child: &str, given: Duration, rule: String| ConfigureError::Superperiod {
        scheduler: facts.name().into(),
        child: child.into(),
        given,
        rule,
    };
    for pair in children.windows(2) {
        let ((child, _, given), (next, period, _)) = (pair[0], pair[1]);
        if given != period {
            return Err(wrong(child, given, format!("the next longer period, of \"{next}\", is {period}")));
        }
    }
    let Some((child, period, given)) = children.last() else { return Ok(1) };
    let times = given.as_nanos() / period.as_nanos();
    let is_multiple = given.as_nanos() % period.as_nanos() == 0;
    u32::try_from(times).ok().filter(|times| *times > 0 && is_multiple).ok_or_else(|| {
        wrong(child, *given, format!("as the longest it needs a multiple of its period, {period}"))
    })
}

/// The allowance per superperiod with the child's own period.
fn parameters(facts: &Facts<'_>, child: &str, request: &Request) -> Result<Parameters, ConfigureError> {
    let children = children(facts)?;
    let (_, period, _) = children.iter().find(|(name, ..)| *name == child).expect("it asks this scheduler");
    let (budget, _) = reservation_in(request)
        .and_then(|asked| amounts(asked, &facts.pace()))
        .ok_or_else(|| facts.too_fine_request(child, request))?;
    Ok(Parameters::Reservation { budget, period: *period })
}
