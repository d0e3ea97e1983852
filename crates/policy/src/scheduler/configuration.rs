//! A scheduler to be, as a value: all that it is made from.
//!
//! Each scheduler's file has a `Config` of its own. A [`Configuration`] is one of any kind: it can be compared, which is how a change of a
//! running hierarchy finds out whose scheduler is different now, and made into a scheduler as often as needed.

use super::{Announcing, PlanError, Rule, Uniprocessor};
use crate::hierarchy::{Fraction, Scheduler};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use talea_guarantee::scheduler::article;
use talea_time::{Duration, Work};

/// What one scheduler is made from.
pub trait Config: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// What messages call the scheduler.
    fn name(&self) -> &'static str;

    /// Makes the scheduler. It tells its parent of deadlines if it is `announcing` them and knows any.
    ///
    /// # Errors
    /// Parameters with which there is no such scheduler.
    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError>;
}

/// What a scheduler of any kind is made from.
#[derive(Clone)]
pub struct Configuration(Arc<dyn AnyConfig>);

/// [`Config`] without its type.
trait AnyConfig: Any + fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError>;
    fn is_same(&self, other: &dyn AnyConfig) -> bool;
}

impl<C: Config> AnyConfig for C {
    fn name(&self) -> &'static str {
        Config::name(self)
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        Config::build(self, announcing)
    }

    fn is_same(&self, other: &dyn AnyConfig) -> bool {
        (other as &dyn Any).downcast_ref::<C>() == Some(self)
    }
}

impl Configuration {
    /// What messages call the scheduler.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Makes the scheduler, as [`Config::build`].
    ///
    /// # Errors
    /// Parameters with which there is no such scheduler.
    pub fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        self.0.build(announcing)
    }

    /// It as the one of this type, if it is that.
    pub fn of<C: Config>(&self) -> Option<&C> {
        (&*self.0 as &dyn Any).downcast_ref()
    }
}

impl Configuration {
    /// Whatever this rule decides, for one processor at a time: a rule that has decided nothing yet is all that such a scheduler is
    /// made from.
    pub fn by_rule<R: Rule + fmt::Debug + PartialEq + Sync>(rule: R) -> Self {
        ByRule(rule).into()
    }
}

#[derive(Clone, Debug, PartialEq)]
struct ByRule<R>(R);

impl<R: Rule + fmt::Debug + PartialEq + Sync> Config for ByRule<R> {
    fn name(&self) -> &'static str {
        self.0.kind()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        boxed(Uniprocessor::new(self.0.clone()), announcing)
    }
}

impl<C: Config> From<C> for Configuration {
    fn from(config: C) -> Self {
        Configuration(Arc::new(config))
    }
}

impl PartialEq for Configuration {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name(), self.0)
    }
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

/// A time that has to be above zero.
pub(super) fn positive(config: &impl Config, what: &'static str, given: Duration) -> Result<(), KindError> {
    match given > Duration::ZERO {
        true => Ok(()),
        false => Err(KindError::NotPositive { kind: config.name(), what, given }),
    }
}

/// A quantum, which has to be above zero.
pub(super) fn some_quantum(config: &impl Config, quantum: Work) -> Result<(), KindError> {
    positive(config, "quantum", quantum.at_full_speed())
}

/// A part of the processor, which must not be more than all of it.
pub(super) fn at_most_whole(config: &impl Config, fraction: Fraction) -> Result<(), KindError> {
    match fraction.numerator() <= fraction.denominator() {
        true => Ok(()),
        false => Err(KindError::MoreThanWhole { kind: config.name() }),
    }
}

/// A scheduler by a rule.
pub(super) fn boxed<R: Rule>(
    scheduler: Uniprocessor<R>,
    announcing: Announcing,
) -> Result<Box<dyn Scheduler>, KindError> {
    Ok(Box::new(scheduler.announcing(announcing)))
}
