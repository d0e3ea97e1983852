//! Constraints of descriptions, which are texts until it is known what the events carry.

use super::SyntheticEvent;
use crate::constraint::{ConstraintError, Only};
use crate::event::{Content, Event};
use crate::filter::{Expression, Filter, FilterGroup, NotEvaluated};
use crate::replaced::ReplacedFilters;
use std::sync::Arc;
use talea_etcl::Filterable;
use talea_time::{Duration, Instant};

/// What the events carry against which the constraints of a subscriber are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// Numbers, none more than so many.
    Numbers(usize),
    /// Whatever code of operations says when it is opened.
    Anything,
}

/// A constraint of a subscriber, as it holds of events with the contents that have been opened so far: synthetic ones from the beginning.
#[derive(Clone)]
pub(super) struct ByContent {
    /// Whose it is, in words.
    pub subscriber: Arc<str>,
    text: Arc<str>,
    /// How long it is taken to take at most.
    longest: Duration,
    filters: Arc<ReplacedFilters<FilterGroup>>,
}

impl ByContent {
    /// The constraint of who is called so, and the expression that holds it against events.
    pub fn parse(subscriber: &str, text: &str, carried: Carried) -> (Opened, Self) {
        let synthetic = Only::<SyntheticEvent>::parse(text).expect("validation has read the filter");
        // Where code says what events carry, a name may stand for what takes as many steps as are allowed.
        let longest = match carried {
            Carried::Numbers(most) => synthetic.longest_among(most),
            Carried::Anything => synthetic.longest_of_all(),
        };
        let filters = Arc::new(ReplacedFilters::new(FilterGroup::from_iter([Filter::of(&[], synthetic)])));
        let made = ByContent {
            subscriber: subscriber.into(),
            text: text.into(),
            longest,
            filters: Arc::clone(&filters),
        };
        (Opened { filters, longest }, made)
    }

    /// It holds of events that carry a `T`, too.
    pub fn open<T: Content + Filterable>(&self) -> Result<(), ConstraintError> {
        let only = Only::<T>::parse(&self.text)?;
        if only.longest_of_all() > self.longest {
            return Err(ConstraintError::OwnHeader);
        }
        let filter = Filter::of(&[], only);
        let mut group = self.filters.get();
        group.add(Arc::new(filter));
        self.filters.set(group);
        Ok(())
    }
}

/// A constraint that is held against events, whatever has been opened by then.
pub(super) struct Opened {
    filters: Arc<ReplacedFilters<FilterGroup>>,
    longest: Duration,
}

impl Expression for Opened {
    fn holds(&self, event: &Event, now: Instant) -> Result<bool, NotEvaluated> {
        match self.filters.judge(event, now) {
            Some(verdict) if verdict.matches => Ok(true),
            Some(verdict) if verdict.errors > 0 => Err(NotEvaluated),
            _ => Ok(false),
        }
    }

    /// The same in a run and in a simulation, so that these agree on what expires.
    fn longest(&self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_etcl::OwnedValue;

    #[derive(Filterable)]
    struct Plain {
        charge: i64,
    }
    impl Content for Plain {}

    /// What stands in its own header is found where that of the event is.
    #[derive(Filterable)]
    struct Head {
        variable_header: OwnedValue,
    }

    #[derive(Filterable)]
    struct Frame {
        header: Head,
    }
    impl Content for Frame {}

    /// What a filter is taken to take holds of whatever code fills in.
    #[test]
    fn a_filter_by_a_field_of_the_header_is_not_held_against_another_header() {
        let spelled_out = |carried| ByContent::parse("t", "$.header.variable_header(leg) == 1", carried);
        let (opened, anything) = spelled_out(Carried::Anything);
        let (among_few, _) = spelled_out(Carried::Numbers(2));
        let (by_name, named) = ByContent::parse("t", "charge == 1", Carried::Anything);
        assert!(among_few.longest() < opened.longest() && opened.longest() < by_name.longest());
        anything.open::<Plain>().expect("it has no header of its own");
        let refused = anything.open::<Frame>().expect_err("it has one").to_string();
        assert!(refused.contains("a member \"header\" of its own"), "{refused}");
        named.open::<Plain>().expect("it has that member");
        let refused = named.open::<Frame>().expect_err("it has no such member").to_string();
        assert!(refused.contains("charge"), "{refused}");
    }
}
