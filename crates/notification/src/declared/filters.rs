//! Constraints of descriptions, which are texts until it is known what the events carry.

use super::SyntheticEvent;
use crate::constraint::ConstraintError;
use crate::event::{Content, Event};
use crate::filter::{Expression, Filter, FilterGroup, NotEvaluated, SharedFilters};
use std::sync::Arc;
use talea_etcl::Filterable;
use talea_time::Instant;

/// A constraint of a task, as it holds of events with the contents that have been opened so far: synthetic ones from the beginning.
#[derive(Clone)]
pub(super) struct ByContent {
    pub task: Arc<str>,
    text: Arc<str>,
    filters: Arc<SharedFilters>,
}

impl ByContent {
    /// The constraint of the task of this name, and the filter that holds it against events.
    pub fn parse(task: &str, text: &str) -> (Filter, Self) {
        let synthetic = Filter::parse_only::<SyntheticEvent>(text).expect("validation has read the filter");
        let filters = Arc::new(SharedFilters::new(FilterGroup::from_iter([synthetic])));
        let made = ByContent { task: task.into(), text: text.into(), filters: Arc::clone(&filters) };
        (Filter::of(&[], Opened(filters)), made)
    }

    /// It holds of events that carry a `T`, too.
    pub fn open<T: Content + Filterable>(&self) -> Result<(), ConstraintError> {
        let filter = Filter::parse_only::<T>(&self.text)?;
        let mut group = self.filters.get();
        group.add(Arc::new(filter));
        self.filters.set(group);
        Ok(())
    }
}

struct Opened(Arc<SharedFilters>);

impl Expression for Opened {
    fn holds(&self, event: &Event, now: Instant) -> Result<bool, NotEvaluated> {
        match self.0.judge(event, now) {
            Some(verdict) if verdict.matches => Ok(true),
            Some(verdict) if verdict.errors > 0 => Err(NotEvaluated),
            _ => Ok(false),
        }
    }
}
