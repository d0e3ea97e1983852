//! What is known of a scheduler of a description when it is to be made.

use crate::hierarchy::{Fraction, Parameters};
use crate::strategy::LaneRules;
use num_bigint::BigInt;
use num_rational::BigRational;
use talea_guarantee::derivation::Derivation;
use talea_guarantee::exact::{Share, Span};
use talea_guarantee::guarantee::{Guarantee, Reservation};
use talea_model::{Plan, Request, SchedulerKind, Setting, System, ThreadWork};
use talea_time::{Duration, Work};

/// A scheduler of a description, with what has been derived about its hierarchy.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    system: &'a System,
    derivation: &'a Derivation,
    /// Index of the scheduler.
    index: usize,
}

/// Why no scheduler can be made of a description, or a child cannot register with one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// A child of a statistical scheduler has to have a period of its own.
    #[error(
        "\"{child}\" under the srms scheduler \"{scheduler}\" has no period; only threads with bursts have one"
    )]
    NoPeriod {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
    },
    /// A superperiod is what the next longer period says.
    #[error(
        "\"{child}\" under the srms scheduler \"{scheduler}\" asks for a superperiod of {given}, but {rule}"
    )]
    Superperiod {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
        /// What it asks for.
        given: Duration,
        /// What it may ask for.
        rule: String,
    },
    /// Numbers of a guarantee need more than 64 bits in nanoseconds.
    #[error(
        "what \"{child}\" asks of \"{scheduler}\", {asked}, is too finely divided to be scheduled; round it"
    )]
    TooFine {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
        /// What is asked for.
        asked: String,
    },
    /// Something else that an own scheduler needs.
    #[error("{problem}")]
    Other {
        /// The scheduler.
        scheduler: String,
        /// The child; the scheduler itself where it is it that cannot be made.
        child: String,
        /// What is wrong, with the names of the two.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl ConfigureError {
    /// The scheduler that cannot be made or takes nobody like that, and the child in question.
    pub fn concerned(&self) -> (&str, &str) {
        match self {
            ConfigureError::NoPeriod { scheduler, child }
            | ConfigureError::Superperiod { scheduler, child, .. }
            | ConfigureError::TooFine { scheduler, child, .. }
            | ConfigureError::Other { scheduler, child, .. } => (scheduler, child),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            ConfigureError::NoPeriod { .. } => "give it bursts, or another scheduler",
            ConfigureError::Superperiod { .. } => "ask for that superperiod",
            ConfigureError::TooFine { .. } => "give numbers of fewer digits",
            ConfigureError::Other { remedy, .. } => remedy,
        }
    }
}

impl<'a> Facts<'a> {
    /// The facts about the scheduler at `index` of the description.
    pub(crate) fn new(system: &'a System, derivation: &'a Derivation, index: usize) -> Self {
        Facts { system, derivation, index }
    }

    /// The whole description.
    pub fn system(&self) -> &'a System {
        self.system
    }

    /// The scheduler in it.
    pub fn scheduler(&self) -> &'a talea_model::Scheduler {
        &self.system.schedulers[self.index]
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.scheduler().name
    }

    /// Its quantum as a time; zero if the kind has none.
    pub fn quantum_time(&self) -> Duration {
        self.scheduler().quantum.unwrap_or_default()
    }

    /// Its quantum as service; zero if the kind has none.
    pub fn quantum(&self) -> Work {
        self.quantum_time().as_work()
    }

    /// A parameter that the kind declares as a time.
    ///
    /// # Panics
    /// If it does not.
    pub fn time(&self, parameter: &str) -> Duration {
        match self.setting(parameter) {
            Setting::Time(time) => *time,
            other => panic!("{parameter} is declared as a time, not {other}"),
        }
    }

    /// A parameter that the kind declares as a whole number.
    ///
    /// # Panics
    /// If it does not.
    pub fn integer(&self, parameter: &str) -> i64 {
        match self.setting(parameter) {
            Setting::Integer(number) => *number,
            other => panic!("{parameter} is declared as a whole number, not {other}"),
        }
    }

    /// A parameter that the kind declares as a word.
    ///
    /// # Panics
    /// If it does not.
    pub fn word(&self, parameter: &str) -> &'static str {
        match self.setting(parameter) {
            Setting::Word(word) => word,
            other => panic!("{parameter} is declared as a word, not {other}"),
        }
    }

    /// A parameter that the kind declares as a time, if it is given: one that is open where nothing is said.
    pub fn optional_time(&self, parameter: &str) -> Option<Duration> {
        self.scheduler().settings.get(parameter).is_some().then(|| self.time(parameter))
    }

    /// A parameter that the kind declares as a plan.
    ///
    /// # Panics
    /// If it does not.
    pub fn plan(&self, parameter: &str) -> &'a Plan {
        match self.setting(parameter) {
            Setting::Plan(plan) => plan,
            other => panic!("{parameter} is declared as a plan, not {other}"),
        }
    }

    fn setting(&self, parameter: &str) -> &'a Setting {
        let found = self.scheduler().settings.get(parameter);
        found.unwrap_or_else(|| panic!("{} does not declare {parameter}", self.scheduler().kind))
    }

    /// How its node's lanes behave.
    pub fn lane_rules(&self) -> LaneRules {
        LaneRules { dispatch: self.system.lane_dispatch, laxity: self.system.laxity, late: self.system.late }
    }

    /// The speed of the processor whose time amounts below this scheduler count.
    pub fn pace(&self) -> Share {
        pace_of(self.derivation, self.name())
    }

    /// The same as a fraction; one if it is too finely divided.
    pub fn speed(&self) -> Fraction {
        fraction(&self.pace()).unwrap_or(Fraction::ONE)
    }

    /// How long the scheduler's own processor takes for what a whole one does in `time`, in nanoseconds rounded down.
    pub fn in_real_time(&self, time: Duration) -> Duration {
        let nanos = BigRational::from_integer(time.as_nanos().into());
        let slowed = nanos / self.pace().ratio();
        i64::try_from(slowed.to_integer()).map_or(time, Duration::from_nanos)
    }

    /// Of a join: the position of the parent whose guarantee its child is given; the first if nothing could be derived.
    pub fn taken(&self) -> usize {
        let derived = self.derivation.schedulers.iter().find(|derived| derived.name == *self.name());
        derived.map_or(0, |derived| derived.takes)
    }

    /// What its first child is given, with that child's name, in time of the real processor. None if nothing could be derived.
    pub fn given_below(&self) -> Option<(&'a str, Guarantee)> {
        let edge = self.derivation.edges.iter().find(|edge| edge.parent == *self.name())?;
        Some((edge.child.as_str(), edge.label.absolute()))
    }

    /// What its children ask for, with their names: schedulers and then threads, in file order.
    pub fn requests(&self) -> impl Iterator<Item = (&'a str, &'a Request)> + use<'a> {
        let (system, index) = (self.system, self.index);
        let of_schedulers =
            system.schedulers.iter().map(|scheduler| (scheduler.name.as_str(), &scheduler.under));
        let of_threads = system.threads.iter().map(|thread| (thread.name.as_str(), &thread.under));
        of_schedulers.chain(of_threads).flat_map(move |(name, under)| {
            let here = under.iter().filter(move |under| under.scheduler == index);
            here.map(move |under| (name, &under.request))
        })
    }

    /// What `child` registers with for `request`, as most schedulers understand it: amounts count the real processor's time.
    ///
    /// # Errors
    /// [`ConfigureError::TooFine`].
    pub fn parameters(&self, child: &str, request: &Request) -> Result<Parameters, ConfigureError> {
        parameters(request, &self.pace()).ok_or_else(|| self.too_fine_request(child, request))
    }

    /// The error that what a child asks for has numbers that do not fit.
    pub fn too_fine(&self, child: &str, asked: &Guarantee) -> ConfigureError {
        let (scheduler, child) = (self.name().into(), child.into());
        ConfigureError::TooFine { scheduler, child, asked: asked.to_string() }
    }

    pub(super) fn too_fine_request(&self, child: &str, request: &Request) -> ConfigureError {
        let Request::Guarantee(asked) = request else { panic!("only guarantees have large numbers") };
        self.too_fine(child, asked)
    }
}

/// What `child` registers with that asks for a guarantee; or for nothing, and then its jobs ask if it has any: the bursts of a thread,
/// or the jobs of lanes, as far as these have one parent.
///
/// # Errors
/// [`ConfigureError::TooFine`].
pub(super) fn parameters_or_jobs(
    facts: &Facts<'_>,
    child: &str,
    request: &Request,
) -> Result<Parameters, ConfigureError> {
    let has_jobs = |thread: &talea_model::Thread| {
        thread.name == child && matches!(thread.work, ThreadWork::Bursts { .. })
    };
    let is_lanes = |scheduler: &talea_model::Scheduler| {
        scheduler.name == child && scheduler.kind == SchedulerKind::LANES && scheduler.under.len() == 1
    };
    let asks_for_jobs =
        || facts.system.threads.iter().any(has_jobs) || facts.system.schedulers.iter().any(is_lanes);
    match request {
        Request::Nothing if asks_for_jobs() => Ok(Parameters::Jobs),
        request => facts.parameters(child, request),
    }
}

/// What a child that makes `request` registers with, where amounts count the time of a processor of speed `pace`. None if a number
/// does not fit.
fn parameters(request: &Request, pace: &Share) -> Option<Parameters> {
    Some(match request {
        Request::Nothing => Parameters::None,
        Request::Priority(priority) => Parameters::Priority(*priority),
        Request::Share { weight, warp: Duration::ZERO } => Parameters::Weight(weight.get()),
        Request::Share { weight, warp } => Parameters::WarpedWeight { weight: weight.get(), warp: *warp },
        // Its scheduler knows the speed of the processor that it divides.
        Request::Guarantee(Guarantee::Resu(rate)) => Parameters::Rate(fraction(rate)?),
        Request::Guarantee(guarantee) => {
            let (budget, period) = amounts(guarantee.as_reservation()?, pace)?;
            Parameters::Reservation { budget, period }
        }
    })
}

/// Whole nanoseconds of the real processor: amounts rounded down, so that what was admitted exactly still is.
pub(super) fn amounts(reservation: &Reservation, pace: &Share) -> Option<(Work, Duration)> {
    let slowed = reservation.slowed(pace);
    Some((whole_nanos(slowed.amount())?.as_work(), whole_nanos(slowed.period())?))
}

pub(super) fn whole_nanos(span: &Span) -> Option<Duration> {
    i64::try_from(span.nanos().to_integer()).ok().map(Duration::from_nanos)
}

/// The reservation that is asked for, if one is.
pub(super) fn reservation_in(request: &Request) -> Option<&Reservation> {
    match request {
        Request::Guarantee(guarantee) => guarantee.as_reservation(),
        _ => None,
    }
}

fn fraction(share: &Share) -> Option<Fraction> {
    let part = |number: &BigInt| i64::try_from(number).ok();
    Fraction::new(part(share.ratio().numer())?, part(share.ratio().denom())?)
}

/// The speed of the processor whose time a scheduler's amounts count.
fn pace_of(derivation: &Derivation, scheduler: &str) -> Share {
    let into = derivation.edges.iter().find(|edge| edge.child == scheduler);
    match into.map(|edge| edge.label.absolute()) {
        Some(Guarantee::Resu(rate)) => rate,
        _ => Share::whole(),
    }
}
