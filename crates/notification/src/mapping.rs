//! Mapping filters: constraints with values, by which a consumer or its admin says which priority or lifetime an event has for it, whatever the event
//! and its supplier say.
//!
//! The first constraint that matches gives the value; where none does, the filter's default, if it has one. Of a consumer and its admin the consumer's
//! own filter is asked first; where that has no value for the event, the admin's is; where neither has one, what the event states counts. A constraint
//! that cannot be evaluated does not match, and is counted like those of other filters.

use crate::event::Event;
use crate::filter::{ConstraintId, Expression, Filter, together};
use crate::limits::{AdminProperties, LimitExceeded};
use crate::replaced::Collection;
use std::fmt;
use std::sync::Arc;
use talea_event::TypePattern;
use talea_time::{Duration, Instant};
use thiserror::Error;

/// Why a mapping filter is not attached. The object has the one that it had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MappingError {
    /// One of its values, or its default, cannot be what it says.
    #[error("the mapping filter gives events {value}, and {allowed}")]
    OutOfRange {
        /// The value.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// It has more constraints than the channel allows.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

/// What a mapping filter gives: a priority, or a lifetime from the push on.
pub trait MappedValue: Copy + fmt::Display + Send + Sync + 'static {
    /// What such a value may be, if this one cannot be.
    fn problem(self) -> Option<&'static str>;

    #[doc(hidden)]
    fn filter_of(filters: &MappingFilters) -> &Option<Arc<MappingFilter<Self>>>;

    #[doc(hidden)]
    fn place_in(filters: &mut MappingFilters) -> &mut Option<Arc<MappingFilter<Self>>>;
}

impl MappedValue for i16 {
    fn problem(self) -> Option<&'static str> {
        (self == i16::MIN).then_some("priorities are from -32767 to 32767")
    }

    fn filter_of(filters: &MappingFilters) -> &Option<Arc<MappingFilter<Self>>> {
        &filters.priorities
    }

    fn place_in(filters: &mut MappingFilters) -> &mut Option<Arc<MappingFilter<Self>>> {
        &mut filters.priorities
    }
}

impl MappedValue for Duration {
    fn problem(self) -> Option<&'static str> {
        (self <= Duration::ZERO).then_some("lifetimes are above zero")
    }

    fn filter_of(filters: &MappingFilters) -> &Option<Arc<MappingFilter<Self>>> {
        &filters.lifetimes
    }

    fn place_in(filters: &mut MappingFilters) -> &mut Option<Arc<MappingFilter<Self>>> {
        &mut filters.lifetimes
    }
}

/// Constraints with values, of which the first that matches an event says its priority or lifetime for one consumer, or for those of an admin
/// (`MappingFilter`). A clone has the same ones, with their numbers, and goes its own way from then on.
#[derive(Clone)]
pub struct MappingFilter<V> {
    filter: Filter,
    /// One for each constraint, in their order.
    values: Vec<V>,
    default: Option<V>,
}

impl<V> fmt::Debug for MappingFilter<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappingFilter").field("filter", &self.filter).finish_non_exhaustive()
    }
}

impl<V: Copy> MappingFilter<V> {
    /// One that yields nothing, so that what the event has counts.
    pub fn new() -> Self {
        MappingFilter { filter: Filter::new(), values: Vec::new(), default: None }
    }

    /// The same with a value for what no constraint matches (`default_value`).
    #[must_use]
    pub fn or(mut self, default: V) -> Self {
        self.default = Some(default);
        self
    }

    /// The same with this value for events of these types of which the expression holds, behind those before.
    #[must_use]
    pub fn with(mut self, types: &[TypePattern], expression: impl Expression + 'static, value: V) -> Self {
        self.add(types, expression, value);
        self
    }

    /// Adds a constraint behind those before: events of any of these types, or of any type if there are none, of which the expression holds have this
    /// value.
    pub fn add(
        &mut self,
        types: &[TypePattern],
        expression: impl Expression + 'static,
        value: V,
    ) -> ConstraintId {
        self.values.push(value);
        self.filter.add(types, expression)
    }

    /// The same by what adds the constraint to a filter, or refuses to.
    pub(crate) fn add_by<E>(
        &mut self,
        add: impl FnOnce(&mut Filter) -> Result<ConstraintId, E>,
        value: V,
    ) -> Result<ConstraintId, E> {
        let id = add(&mut self.filter)?;
        self.values.push(value);
        Ok(id)
    }

    /// Adds a constraint: events of any of these types have this value.
    pub fn add_types(&mut self, types: &[TypePattern], value: V) -> ConstraintId {
        self.values.push(value);
        self.filter.add_types(types)
    }

    /// Gives what a constraint matches another value (`modify_mapping_constraints`). False if there is none of this number.
    pub fn set_value(&mut self, id: ConstraintId, value: V) -> bool {
        let Some(place) = self.place_of(id) else { return false };
        self.values[place] = value;
        true
    }

    /// Removes a constraint with its value. False if there is none of this number.
    pub fn remove(&mut self, id: ConstraintId) -> bool {
        let Some(place) = self.place_of(id) else { return false };
        self.values.remove(place);
        self.filter.remove(id)
    }

    fn place_of(&self, id: ConstraintId) -> Option<usize> {
        self.filter.constraints().position(|other| other == id)
    }

    /// What has no constraint has this value from now on, or what the event states.
    pub fn set_default(&mut self, default: Option<V>) {
        self.default = default;
    }

    /// The value of what no constraint matches, if it has one (`default_value`).
    pub fn default_value(&self) -> Option<V> {
        self.default
    }

    /// The numbers of its constraints and their values, in the order in which they are tried (`get_mapping_constraints`).
    pub fn constraints(&self) -> impl Iterator<Item = (ConstraintId, V)> + '_ {
        self.filter.constraints().zip(self.values.iter().copied())
    }

    /// How long it takes at most to find the value of an event: as long as all of its constraints whose [longest time](Expression::longest) is known.
    pub fn longest(&self) -> Duration {
        self.filter.longest()
    }

    /// The value for the event, if it has one, and how many constraints could not be evaluated.
    pub fn value(&self, event: &Event, now: Instant) -> (Option<V>, u64) {
        let (first, errors) = self.filter.first(event, now);
        (first.map(|place| self.values[place]).or(self.default), errors)
    }
}

impl<V: MappedValue> MappingFilter<V> {
    /// Whether each of its values can be.
    pub(crate) fn check(&self) -> Result<(), MappingError> {
        let mut values = self.values.iter().copied().chain(self.default);
        let wrong = values.find_map(|value| Some((value, value.problem()?)));
        wrong.map_or(Ok(()), |(value, allowed)| {
            Err(MappingError::OutOfRange { value: value.to_string(), allowed })
        })
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }
}

impl<V: Copy> Default for MappingFilter<V> {
    fn default() -> Self {
        MappingFilter::new()
    }
}

/// The mapping filters of one object.
#[derive(Clone, Debug, Default)]
pub struct MappingFilters {
    priorities: Option<Arc<MappingFilter<i16>>>,
    lifetimes: Option<Arc<MappingFilter<Duration>>>,
}

impl MappingFilters {
    pub(crate) fn new(
        priorities: Option<MappingFilter<i16>>,
        lifetimes: Option<MappingFilter<Duration>>,
    ) -> Self {
        MappingFilters { priorities: priorities.map(Arc::new), lifetimes: lifetimes.map(Arc::new) }
    }

    pub(crate) fn have<V: MappedValue>(&self) -> bool {
        V::filter_of(self).is_some()
    }

    /// The value for the event, if there is a filter that has one, and how many constraints could not be evaluated.
    pub(crate) fn value<V: MappedValue>(&self, event: &Event, now: Instant) -> (Option<V>, u64) {
        V::filter_of(self).as_ref().map_or((None, 0), |filter| filter.value(event, now))
    }

    /// How long both take at most.
    pub(crate) fn longest(&self) -> Duration {
        let priorities = self.priorities.as_ref().map(|filter| filter.longest());
        together(priorities.into_iter().chain(self.lifetimes.as_ref().map(|filter| filter.longest())))
    }
}

impl Collection for MappingFilters {
    fn is_empty(&self) -> bool {
        self.priorities.is_none() && self.lifetimes.is_none()
    }
}

/// Whether a mapping filter may be attached.
pub(crate) fn allow_mapping<V: MappedValue>(
    properties: &AdminProperties,
    filter: Option<&MappingFilter<V>>,
) -> Result<(), MappingError> {
    let Some(filter) = filter else { return Ok(()) };
    properties.allow_constraints(filter.filter())?;
    filter.check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::fixtures::{NOW, above, event, types};

    #[test]
    fn mapping_filters_yield_the_value_of_the_first_that_matches() {
        let mapping = MappingFilter::new().with(&types("Test/a"), above(10), 3).with(&[], above(5), 2);
        let value = |name, value| mapping.value(&event(name, value), NOW);
        assert_eq!(value("a", 11), (Some(3), 0));
        assert_eq!((value("b", 11), value("a", 7), value("a", 1)), ((Some(2), 0), (Some(2), 0), (None, 0)));
        assert_eq!(value("a", 13), (None, 2));
        let mapping = MappingFilter::<i16>::new().or(7);
        assert_eq!(mapping.value(&event("a", 1), NOW), (Some(7), 0));
    }

    #[test]
    fn constraints_come_and_go_with_their_values() {
        let mut mapping = MappingFilter::new();
        let first = mapping.add(&[], above(10), 3);
        let second = mapping.add_types(&types("Test/b"), 2);
        let other = mapping.clone();
        let value = |mapping: &MappingFilter<i16>, name, value| mapping.value(&event(name, value), NOW).0;
        assert!(mapping.remove(first) && !mapping.remove(first) && !mapping.set_value(first, 9));
        assert_eq!((value(&mapping, "b", 11), value(&mapping, "a", 11)), (Some(2), None));
        assert!(mapping.set_value(second, 5));
        mapping.set_default(Some(-1));
        assert_eq!((value(&mapping, "b", 11), value(&mapping, "a", 11)), (Some(5), Some(-1)));
        let third = mapping.add(&[], above(0), 8);
        assert!(third > second && mapping.constraints().eq([(second, 5), (third, 8)]));
        assert_eq!(
            (value(&other, "a", 11), value(&other, "b", 1)),
            (Some(3), Some(2)),
            "it has gone its own way"
        );
    }

    #[test]
    fn values_out_of_range_are_found_wherever_they_stand() {
        let problem = |mapping: MappingFilter<i16>| mapping.check().unwrap_err().to_string();
        let told = problem(MappingFilter::new().with(&[], above(0), 1).with(&[], above(1), i16::MIN));
        assert_eq!(told, "the mapping filter gives events -32768, and priorities are from -32767 to 32767");
        problem(MappingFilter::new().or(i16::MIN));
        for lifetime in [Duration::ZERO, -Duration::from_millis(1)] {
            let told = MappingFilter::new().or(lifetime).check().unwrap_err().to_string();
            assert!(told.ends_with("lifetimes are above zero"), "{told}");
        }
        let sound = MappingFilter::new().with(&[], above(0), -i16::MAX).or(i16::MAX);
        assert_eq!((sound.check(), MappingFilter::new().or(Duration::MAX).check()), (Ok(()), Ok(())));
    }
}
