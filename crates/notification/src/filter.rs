//! Filters: sets of constraints, attached to admins and proxies, by which events are let through or not.
//!
//! A filter matches an event when **any** of its constraints does: the event is of one of its types, and its expression holds. A filter without
//! constraints matches nothing; where no filter is attached, everything passes; of several filters on an object, any. An expression that cannot be
//! evaluated does not match, and is counted.
//!
//! An event passes an admin with its proxy by the [operator](GroupOperator) of the admin. Where one of them has no filter it does not count.

use crate::event::Event;
use crate::pattern::Types;
use crate::replaced::{Collection, ReplacedFilters};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_event::TypePattern;
use talea_time::{Duration, Instant};

/// An expression that could not be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEvaluated;

/// What an expression says of an event. It is called wherever events are pushed, by several threads at once; it neither waits nor allocates where
/// that matters.
pub trait Expression: Send + Sync {
    /// Whether the event is meant, which has come at `now`.
    ///
    /// # Errors
    /// It cannot be said of this event.
    fn holds(&self, event: &Event, now: Instant) -> Result<bool, NotEvaluated>;

    /// How long that takes at most. An event that has less time left does not come to its consumer, and counts as expired. No time unless it is known.
    fn longest(&self) -> Duration {
        Duration::ZERO
    }
}

impl<F: Fn(&Event) -> Result<bool, NotEvaluated> + Send + Sync> Expression for F {
    fn holds(&self, event: &Event, _now: Instant) -> Result<bool, NotEvaluated> {
        self(event)
    }
}

/// The number of a constraint in its filter. It stays what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstraintId(u32);

/// The number of a filter at the object to which it is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterId(u32);

#[derive(Clone)]
struct Constraint {
    id: ConstraintId,
    /// Of all types if there is none.
    types: Types,
    expression: Option<Arc<dyn Expression>>,
}

impl Constraint {
    fn is_of_type(&self, event: &Event) -> bool {
        self.types.are_none() || self.types.have(event.event_type())
    }
}

/// The sum of these times, or the longest that can be represented.
pub(crate) fn together(times: impl IntoIterator<Item = Duration>) -> Duration {
    let add = |sum: Duration, time| sum.checked_add(time).unwrap_or(Duration::MAX);
    times.into_iter().fold(Duration::ZERO, add)
}

/// A set of constraints. A clone has the same ones, with their numbers, and goes its own way from then on.
#[derive(Clone, Default)]
pub struct Filter {
    constraints: Vec<Constraint>,
    next: u32,
    /// See [`Self::longest`]; kept, for it is asked of each event that may expire.
    longest: Duration,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("constraints", &self.constraints.len()).finish_non_exhaustive()
    }
}

/// What a filter, or a group of them, says of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it matches.
    pub matches: bool,
    /// Constraints that could not be evaluated.
    pub errors: u64,
}

impl Filter {
    /// A filter that matches nothing yet.
    pub fn new() -> Self {
        Filter::default()
    }

    /// A filter of one constraint.
    pub fn of(types: &[TypePattern], expression: impl Expression + 'static) -> Self {
        let mut filter = Filter::new();
        filter.add(types, expression);
        filter
    }

    /// A filter by types alone.
    pub fn of_types(types: &[TypePattern]) -> Self {
        let mut filter = Filter::new();
        filter.add_types(types);
        filter
    }

    /// Adds a constraint: an event of any of these types, or of any type if there are none, of which the expression holds.
    pub fn add(&mut self, types: &[TypePattern], expression: impl Expression + 'static) -> ConstraintId {
        self.put(types, Some(Arc::new(expression)))
    }

    /// Adds a constraint: an event of any of these types.
    pub fn add_types(&mut self, types: &[TypePattern]) -> ConstraintId {
        self.put(types, None)
    }

    fn put(&mut self, types: &[TypePattern], expression: Option<Arc<dyn Expression>>) -> ConstraintId {
        let id = ConstraintId(self.next);
        self.next += 1;
        self.constraints.push(Constraint { id, types: Types::of(types.iter().cloned()), expression });
        self.reckon();
        id
    }

    /// Removes a constraint. False if there is none of this number.
    pub fn remove(&mut self, id: ConstraintId) -> bool {
        let before = self.constraints.len();
        self.constraints.retain(|constraint| constraint.id != id);
        self.reckon();
        self.constraints.len() < before
    }

    /// The numbers of its constraints.
    pub fn constraints(&self) -> impl Iterator<Item = ConstraintId> + '_ {
        self.constraints.iter().map(|constraint| constraint.id)
    }

    /// How long it takes at most to judge an event: as long as all of its constraints whose [longest time](Expression::longest) is known.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    fn reckon(&mut self) {
        let expressions = self.constraints.iter().filter_map(|constraint| constraint.expression.as_ref());
        self.longest = together(expressions.map(|expression| expression.longest()));
    }

    /// What it says of the event.
    pub fn judge(&self, event: &Event, now: Instant) -> Verdict {
        let (first, errors) = self.first(event, now);
        Verdict { matches: first.is_some(), errors }
    }

    /// The place of the first constraint that matches the event, and how many before it could not be evaluated.
    pub(crate) fn first(&self, event: &Event, now: Instant) -> (Option<usize>, u64) {
        let mut errors = 0;
        for (place, constraint) in self.constraints.iter().enumerate() {
            if !constraint.is_of_type(event) {
                continue;
            }
            match constraint.expression.as_ref().map_or(Ok(true), |expression| expression.holds(event, now)) {
                Ok(true) => return (Some(place), errors),
                Ok(false) => {}
                Err(NotEvaluated) => errors += 1,
            }
        }
        (None, errors)
    }
}

/// How the filters of an admin and those of its proxy go together (`InterFilterGroupOperator`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupOperator {
    /// An event has to pass both.
    #[default]
    And,
    /// An event has to pass one of them.
    Or,
}

/// The filters of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterGroup {
    filters: Vec<(FilterId, Arc<Filter>)>,
    /// The number of the next one.
    next: u32,
}

impl FromIterator<Filter> for FilterGroup {
    fn from_iter<I: IntoIterator<Item = Filter>>(filters: I) -> Self {
        let mut group = FilterGroup::default();
        filters.into_iter().for_each(|filter| _ = group.add(Arc::new(filter)));
        group
    }
}

impl FilterGroup {
    pub fn add(&mut self, filter: Arc<Filter>) -> FilterId {
        let id = FilterId(self.next);
        self.next += 1;
        self.filters.push((id, filter));
        id
    }

    /// False if there is none of this number.
    pub fn replace(&mut self, id: FilterId, filter: Arc<Filter>) -> bool {
        let own = self.filters.iter_mut().find(|(other, _)| *other == id);
        own.map(|(_, own)| *own = filter).is_some()
    }

    /// False if there is none of this number.
    pub fn remove(&mut self, id: FilterId) -> bool {
        let before = self.filters.len();
        self.filters.retain(|(other, _)| *other != id);
        self.filters.len() < before
    }

    pub fn clear(&mut self) {
        self.filters.clear();
    }

    pub fn get(&self, id: FilterId) -> Option<Arc<Filter>> {
        self.filters.iter().find(|(other, _)| *other == id).map(|(_, filter)| Arc::clone(filter))
    }

    pub fn ids(&self) -> impl Iterator<Item = FilterId> + '_ {
        self.filters.iter().map(|(id, _)| *id)
    }

    pub fn all(&self) -> impl ExactSizeIterator<Item = &Filter> {
        self.shared().map(|filter| &**filter)
    }

    /// The same, as others may have them too.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = &Arc<Filter>> {
        self.filters.iter().map(|(_, filter)| filter)
    }

    /// How long that takes at most.
    pub fn longest(&self) -> Duration {
        together(self.all().map(Filter::longest))
    }

    /// What they say; nothing if there are none.
    #[inline]
    pub fn judge(&self, event: &Event, now: Instant) -> Option<Verdict> {
        if self.filters.is_empty() { None } else { Some(self.judge_by_some(event, now)) }
    }

    fn judge_by_some(&self, event: &Event, now: Instant) -> Verdict {
        let mut errors = 0;
        for (_, filter) in &self.filters {
            let verdict = filter.judge(event, now);
            errors += verdict.errors;
            if verdict.matches {
                return Verdict { matches: true, errors };
            }
        }
        Verdict { matches: false, errors }
    }
}

impl Collection for FilterGroup {
    fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}

impl ReplacedFilters<FilterGroup> {
    /// How long they take at most.
    #[inline]
    pub fn longest(&self) -> Duration {
        self.ask(FilterGroup::longest).unwrap_or(Duration::ZERO)
    }

    /// What they say; nothing if there are none.
    #[inline]
    pub fn judge(&self, event: &Event, now: Instant) -> Option<Verdict> {
        self.ask(|group| group.judge(event, now)).flatten()
    }
}

/// Whether an event passes an admin and its proxy, of which the proxy has said this and the admin is asked.
#[inline]
pub(crate) fn passes(
    operator: GroupOperator,
    proxy: Option<Verdict>,
    admin: impl FnOnce() -> Option<Verdict>,
    errors: &AtomicU64,
) -> bool {
    let count = |verdict: Option<Verdict>| {
        let verdict = verdict?;
        if verdict.errors > 0 {
            errors.fetch_add(verdict.errors, Ordering::Relaxed);
        }
        Some(verdict.matches)
    };
    let own = count(proxy);
    // What has been decided needs no second group.
    match (operator, own) {
        (GroupOperator::And, Some(false)) => return false,
        (GroupOperator::Or, Some(true)) => return true,
        _ => {}
    }
    count(admin()).or(own).unwrap_or(true)
}

#[cfg(test)]
pub(crate) mod fixtures {
    use super::*;
    use crate::event::{Content, EventType, Header};

    pub(crate) const NOW: Instant = Instant::ZERO;

    struct Value(i64);
    impl Content for Value {}

    pub(crate) fn event(name: &str, value: i64) -> Event {
        Event::new(Header::new(EventType::new("Test", name)), Value(value))
    }

    /// Holds for values above `least`; 13 cannot be evaluated.
    pub(crate) fn above(least: i64) -> impl Expression {
        move |event: &Event| {
            let value = event.content::<Value>().ok_or(NotEvaluated)?.0;
            if value == 13 { Err(NotEvaluated) } else { Ok(value > least) }
        }
    }

    pub(crate) fn types(text: &str) -> Vec<TypePattern> {
        vec![text.parse().expect("a pattern")]
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{NOW, above, event, types};
    use super::*;

    #[test]
    fn any_constraint_is_enough_and_none_matches_nothing() {
        let mut filter = Filter::new();
        assert_eq!(filter.judge(&event("a", 1), NOW), Verdict::default());
        let large = filter.add(&types("Test/a"), above(10));
        let of_type = filter.add_types(&types("Test/b*"));
        let judged = |filter: &Filter, name, value| filter.judge(&event(name, value), NOW);
        assert!(judged(&filter, "a", 11).matches && !judged(&filter, "a", 10).matches);
        assert!(judged(&filter, "bc", 0).matches && !judged(&filter, "c", 20).matches);
        assert_eq!(judged(&filter, "a", 13), Verdict { matches: false, errors: 1 });
        assert!(filter.remove(of_type) && !filter.remove(of_type) && !judged(&filter, "bc", 0).matches);
        let next = filter.add_types(&[]);
        assert!(next > of_type && filter.constraints().eq([large, next]));
        assert_eq!(judged(&filter, "a", 13), Verdict { matches: true, errors: 1 }, "the next one is tried");
    }

    #[test]
    fn a_group_that_is_not_there_does_not_count() {
        let group = |least: Option<i64>| {
            least.map(|least| Filter::of(&[], above(least))).into_iter().collect::<FilterGroup>()
        };
        let errors = AtomicU64::new(0);
        for (admin, proxy) in [(None, None), (Some(3), None), (None, Some(5)), (Some(3), Some(5))] {
            for operator in [GroupOperator::And, GroupOperator::Or] {
                for value in [2, 4, 6] {
                    let both = [admin, proxy].into_iter().flatten().map(|least| value > least);
                    let expected = match operator {
                        GroupOperator::And => both.clone().all(|passes| passes),
                        GroupOperator::Or => both.clone().count() == 0 || both.clone().any(|passes| passes),
                    };
                    let (admin, proxy) = (group(admin), group(proxy));
                    let event = event("a", value);
                    let passes =
                        passes(operator, proxy.judge(&event, NOW), || admin.judge(&event, NOW), &errors);
                    assert_eq!(passes, expected);
                }
            }
        }
        assert_eq!(errors.load(Ordering::Relaxed), 0);
        let (group, event) = (group(Some(1)), event("a", 13));
        assert!(!passes(GroupOperator::Or, group.judge(&event, NOW), || group.judge(&event, NOW), &errors));
        assert_eq!(errors.load(Ordering::Relaxed), 2);
    }
}
