//! Patterns of types as they are held against events: types that are named whole are compared by their numbers.

use crate::event::EventType;
use talea_event::TypePattern;

/// The types that patterns mean.
#[derive(Clone, Debug)]
pub(crate) struct Types(Box<[Meant]>);

#[derive(Clone, Debug)]
enum Meant {
    One(EventType),
    All(TypePattern),
}

impl Types {
    pub fn of(patterns: impl IntoIterator<Item = TypePattern>) -> Self {
        let meant = |pattern: TypePattern| match pattern.exact() {
            Some((domain, name)) => Meant::One(EventType::new(domain, name)),
            None => Meant::All(pattern),
        };
        Types(patterns.into_iter().map(meant).collect())
    }

    /// Whether they are none.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn have(&self, event_type: &EventType) -> bool {
        self.0.iter().any(|meant| match meant {
            Meant::One(one) => one == event_type,
            Meant::All(pattern) => pattern.matches(event_type.domain(), event_type.name()),
        })
    }
}

impl From<&EventType> for TypePattern {
    fn from(event_type: &EventType) -> Self {
        TypePattern::exactly(event_type.domain(), event_type.name())
    }
}
