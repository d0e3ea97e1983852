//! Conditions over several events and over time: the filters of the real-time event channel (Harrison, Levine and Schmidt 1997), freely nested.
//!
//! A condition is fed with events and with time, and now and then comes true; the events of which it came true are handed on together, in one call.
//!
//! | Condition | Comes true |
//! |---|---|
//! | [`of_types`](Condition::of_types), [`from_source`](Condition::from_source), [`masked`](Condition::masked), [`matching`](Condition::matching), [`anything`](Condition::anything) | with an event that is such a one |
//! | [`all_of_one`](Condition::all_of_one) | with an event of which all parts come true (logical and) |
//! | [`negation`](Condition::negation) | with an event of which its part does not |
//! | [`any`](Condition::any) | when one of its parts does (disjunction) |
//! | [`all`](Condition::all) | when each part has come true since it came true last (conjunction) |
//! | [`in_order`](Condition::in_order) | when its parts have come true one after the other (sequence) |
//! | [`times`](Condition::times) | each time that its part has come true so many times, with the events of all of them (count) |
//! | [`after`](Condition::after), [`every`](Condition::every) | once, or again and again, after a time |
//! | [`unless_within`](Condition::unless_within) | when its part has not come true for a time, which begins anew each time that it does (deadline) |
//!
//! Time counts from when the consumer was connected or its run started, and in a sequence from when the part's turn comes.

use crate::pattern::{TypePattern, TypePatternError};
use std::str::FromStr;
use talea_time::Duration;

/// Which event of a part counts until a conjunction is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Collect {
    /// The first; others are left out, as in the original.
    #[default]
    First,
    /// The latest.
    Latest,
}

impl Collect {
    /// Both, in the order of the documentation.
    pub const ALL: &[Collect] = &[Collect::First, Collect::Latest];

    /// The word that stands for it in system files.
    pub const fn keyword(self) -> &'static str {
        match self {
            Collect::First => "first",
            Collect::Latest => "latest",
        }
    }
}

/// What is to come true, with filters of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition<Filter> {
    /// An event of one of these types.
    Types(Box<[TypePattern]>),
    /// An event from this source.
    Source(u32),
    /// An event whose source is `value` in the bits of `mask`.
    Masked {
        /// The bits that count.
        mask: u32,
        /// What they are.
        value: u32,
    },
    /// An event that the filter matches.
    Matching(Filter),
    /// An event of which all parts come true at once.
    AllOfOne(Vec<Condition<Filter>>),
    /// An event with which the part does not come true.
    Not(Box<Condition<Filter>>),
    /// One of the parts, the first that comes true.
    Any(Vec<Condition<Filter>>),
    /// All parts, in whichever order.
    All {
        /// What is awaited.
        parts: Vec<Condition<Filter>>,
        /// Which event of a part counts.
        collect: Collect,
        /// How long after it began it begins anew.
        within: Option<Duration>,
    },
    /// All parts, one after the other.
    InOrder {
        /// What is awaited.
        parts: Vec<Condition<Filter>>,
        /// How long after it began it begins anew.
        within: Option<Duration>,
    },
    /// The part so many times, again and again.
    Times {
        /// What is counted.
        part: Box<Condition<Filter>>,
        /// How many times, at least 2.
        count: u32,
        /// How long after it began it begins anew.
        within: Option<Duration>,
    },
    /// Once, so long after the beginning.
    After(Duration),
    /// Every so often, from the beginning.
    Every(Duration),
    /// When the part has not come true for so long.
    Unless {
        /// What should come true.
        part: Box<Condition<Filter>>,
        /// For how long it has not.
        within: Duration,
    },
    /// What has no time, and somebody has [limited](Condition::within) it. It is refused.
    Limited,
}

/// A part that is about one event, as large as it can be.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'c, Filter> {
    /// The part.
    pub condition: &'c Condition<Filter>,
    /// Whether its event is handed on; otherwise it only keeps something from coming true.
    pub hands_on: bool,
}

impl<Filter> FromStr for Condition<Filter> {
    type Err = TypePatternError;

    /// An event of this type, `Domain/Name`, in which a `*` at the end of domain or name stands for any rest.
    fn from_str(pattern: &str) -> Result<Self, TypePatternError> {
        Ok(Condition::of_types([pattern.parse()?]))
    }
}

impl<Filter> Condition<Filter> {
    /// Events of any of these types.
    pub fn of_types(types: impl IntoIterator<Item = TypePattern>) -> Self {
        Condition::Types(types.into_iter().collect())
    }

    /// Events from this source.
    pub fn from_source(source: u32) -> Self {
        Condition::Source(source)
    }

    /// Events whose source is `value` in the bits of `mask`.
    pub fn masked(mask: u32, value: u32) -> Self {
        Condition::Masked { mask, value }
    }

    /// Events that the filter matches.
    pub fn matching(filter: impl Into<Filter>) -> Self {
        Condition::Matching(filter.into())
    }

    /// All events (null).
    pub fn anything() -> Self {
        Condition::of_types([TypePattern::all()])
    }

    /// An event of which all parts come true at once.
    pub fn all_of_one(parts: impl IntoIterator<Item = Self>) -> Self {
        Condition::AllOfOne(parts.into_iter().collect())
    }

    /// Events with which the part does not come true.
    pub fn negation(part: Self) -> Self {
        Condition::Not(Box::new(part))
    }

    /// One of the parts, the first that comes true with an event.
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        Condition::Any(parts.into_iter().collect())
    }

    /// All parts, in whichever order; their events are handed on in the order of the parts.
    pub fn all(collect: Collect, parts: impl IntoIterator<Item = Self>) -> Self {
        Condition::All { parts: parts.into_iter().collect(), collect, within: None }
    }

    /// All parts, one after the other, each awaited from when its turn comes. What is not what comes next is left out.
    pub fn in_order(parts: impl IntoIterator<Item = Self>) -> Self {
        Condition::InOrder { parts: parts.into_iter().collect(), within: None }
    }

    /// The part so many times; the events of all of them are handed on together, as they came.
    pub fn times(count: u32, part: Self) -> Self {
        Condition::Times { part: Box::new(part), count, within: None }
    }

    /// Of [`all`](Self::all), [`in_order`](Self::in_order) and [`times`](Self::times): what is not complete so long after it began begins anew. Others are refused when the
    /// consumer is connected.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        match &mut self {
            Condition::All { within, .. }
            | Condition::InOrder { within, .. }
            | Condition::Times { within, .. } => *within = Some(time),
            _ => self = Condition::Limited,
        }
        self
    }

    /// Once, so long after the consumer was connected.
    pub fn after(time: Duration) -> Self {
        Condition::After(time)
    }

    /// Every so often, from the time at which the consumer was connected.
    pub fn every(period: Duration) -> Self {
        Condition::Every(period)
    }

    /// When the part has not come true for so long: since then, or since the consumer was connected. Once, until the part comes true again.
    pub fn unless_within(time: Duration, part: Self) -> Self {
        Condition::Unless { part: Box::new(part), within: time }
    }

    /// The conditions that it consists of.
    pub fn parts(&self) -> &[Self] {
        match self {
            Condition::AllOfOne(parts)
            | Condition::Any(parts)
            | Condition::All { parts, .. }
            | Condition::InOrder { parts, .. } => parts,
            Condition::Not(part) | Condition::Unless { part, .. } | Condition::Times { part, .. } => {
                std::slice::from_ref(part)
            }
            _ => &[],
        }
    }

    /// How many conditions it is, with all its parts.
    pub fn size(&self) -> usize {
        1 + self.parts().iter().map(Condition::size).sum::<usize>()
    }

    /// The most events with which one that counts comes true.
    pub const EVENTS_MOST: usize = 256;

    /// What is wrong with it, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let is_empty = |parts: &[Self]| parts.is_empty().then_some("a condition of several parts has none");
        let is_no_time = |time: &Duration| (*time <= Duration::ZERO).then_some("a time is more than 0");
        let own = match self {
            Condition::Any(parts) => is_empty(parts),
            Condition::AllOfOne(parts) => is_empty(parts).or_else(|| Self::not_of_one_event(parts)),
            Condition::Not(part) => Self::not_of_one_event(std::slice::from_ref(part.as_ref())),
            Condition::All { parts, within, .. } | Condition::InOrder { parts, within } => {
                is_empty(parts).or_else(|| within.as_ref().and_then(is_no_time))
            }
            Condition::Times { count, within, .. } => (*count < 2)
                .then_some("what is counted comes at least 2 times")
                .or_else(|| within.as_ref().and_then(is_no_time)),
            Condition::After(time) | Condition::Every(time) | Condition::Unless { within: time, .. } => {
                is_no_time(time)
            }
            Condition::Limited => {
                Some("within is of all, in_order and times, which are complete some time after they begin")
            }
            Condition::Types(types) => types.is_empty().then_some("a condition of types names none"),
            Condition::Source(_) | Condition::Masked { .. } | Condition::Matching(_) => None,
        };
        let has_too_many = || {
            (self.counts() && self.events() > Self::EVENTS_MOST)
                .then_some("with a count, a condition has at most 256 events")
        };
        own.or_else(has_too_many).or_else(|| self.parts().iter().find_map(Condition::problem))
    }

    /// Whether it, or a part of it, counts.
    fn counts(&self) -> bool {
        matches!(self, Condition::Times { .. }) || self.parts().iter().any(Condition::counts)
    }

    fn not_of_one_event(parts: &[Self]) -> Option<&'static str> {
        let is_it = parts.iter().any(|part| !part.is_of_one_event());
        is_it.then_some(
            "all_of_one and not (negation) are about one event: they have no conditions of several events or of time as parts",
        )
    }

    /// Whether an event alone decides it.
    pub fn is_of_one_event(&self) -> bool {
        match self {
            Condition::Types(_)
            | Condition::Source(_)
            | Condition::Masked { .. }
            | Condition::Matching(_) => true,
            Condition::AllOfOne(parts) => parts.iter().all(Condition::is_of_one_event),
            Condition::Not(part) => part.is_of_one_event(),
            _ => false,
        }
    }

    /// Whether it comes true with each event that it hands on, at once.
    pub fn comes_at_once(&self) -> bool {
        match self {
            Condition::All { .. } | Condition::InOrder { .. } | Condition::Times { .. } => false,
            Condition::Any(parts) => parts.iter().all(Condition::comes_at_once),
            _ => true,
        }
    }

    /// Whether time makes it come true, or begin anew.
    pub fn is_timed(&self) -> bool {
        match self {
            Condition::After(_)
            | Condition::Every(_)
            | Condition::Unless { .. }
            | Condition::All { within: Some(_), .. }
            | Condition::InOrder { within: Some(_), .. }
            | Condition::Times { within: Some(_), .. } => true,
            _ => self.parts().iter().any(Condition::is_timed),
        }
    }

    /// The most events with which it comes true.
    pub fn events(&self) -> usize {
        match self {
            Condition::Any(parts) => parts.iter().map(Condition::events).max().unwrap_or(0),
            Condition::All { parts, .. } | Condition::InOrder { parts, .. } => {
                parts.iter().map(Condition::events).sum()
            }
            Condition::Times { part, count, .. } => part.events().saturating_mul(*count as usize),
            Condition::Unless { part, .. } => part.events().max(1),
            _ => 1,
        }
    }

    /// How many events at most are of one of its [leaves](Self::leaves) when it comes true.
    pub fn events_of_leaf(&self) -> usize {
        let below = self.parts().iter().map(Condition::events_of_leaf).max().unwrap_or(1);
        if let Condition::Times { count, .. } = self { below.saturating_mul(*count as usize) } else { below }
    }

    /// The most events that are in hand while it is fed: all parts of a disjunction are, of which one counts.
    pub fn events_in_hand(&self) -> usize {
        let parts = self.parts().iter().map(Condition::events_in_hand);
        match self {
            Condition::Any(_) => parts.sum(),
            _ => parts.max().unwrap_or(0).max(self.events()),
        }
    }

    /// The most events that it keeps until it comes true.
    pub fn kept_events(&self) -> usize {
        let own = match self {
            Condition::All { .. } | Condition::InOrder { .. } | Condition::Times { .. } => self.events(),
            _ => 0,
        };
        own + self.parts().iter().map(Condition::kept_events).sum::<usize>()
    }

    /// Its parts that are about one event, in their order.
    pub fn leaves(&self) -> Vec<Leaf<'_, Filter>> {
        let mut leaves = Vec::new();
        self.collect_leaves(true, &mut leaves);
        leaves
    }

    fn collect_leaves<'c>(&'c self, hands_on: bool, to: &mut Vec<Leaf<'c, Filter>>) {
        if self.is_of_one_event() {
            return to.push(Leaf { condition: self, hands_on });
        }
        let hands_on = hands_on && !matches!(self, Condition::Unless { .. });
        self.parts().iter().for_each(|part| part.collect_leaves(hands_on, to));
    }

    /// Of a condition about one event: whether an event of this type, from this source, may be one.
    pub fn may_be(&self, (domain, name): (&str, &str), source: u32) -> bool {
        match self {
            Condition::Types(types) => types.iter().any(|pattern| pattern.matches(domain, name)),
            Condition::Source(of) => source == *of,
            Condition::Masked { mask, value } => source & mask == *value,
            Condition::Matching(_) => true,
            Condition::AllOfOne(parts) => parts.iter().all(|part| part.may_be((domain, name), source)),
            Condition::Not(part) => !part.must_be((domain, name), source),
            _ => false,
        }
    }

    /// Of the same: whether every such event is one.
    fn must_be(&self, (domain, name): (&str, &str), source: u32) -> bool {
        match self {
            Condition::Matching(_) => false,
            Condition::AllOfOne(parts) => parts.iter().all(|part| part.must_be((domain, name), source)),
            Condition::Not(part) => !part.may_be((domain, name), source),
            decided => decided.may_be((domain, name), source),
        }
    }

    /// The types that it names.
    pub fn types(&self) -> Vec<&TypePattern> {
        let own: &[TypePattern] = if let Condition::Types(types) = self { types } else { &[] };
        own.iter().chain(self.parts().iter().flat_map(Condition::types)).collect()
    }

    /// Types to one of which each event belongs that has to do with it; none where it may be any. What only time brings about needs no event.
    pub fn needed_types(&self) -> Option<Vec<&TypePattern>> {
        let of_leaves = self.leaves().into_iter().map(|leaf| leaf.condition.types_of_one());
        of_leaves.collect::<Option<Vec<_>>>().map(|types| types.concat())
    }

    /// The same of a condition about one event.
    fn types_of_one(&self) -> Option<Vec<&TypePattern>> {
        match self {
            Condition::Types(types) => Some(types.iter().collect()),
            Condition::AllOfOne(parts) => {
                parts.iter().filter_map(Condition::types_of_one).min_by_key(Vec::len)
            }
            _ => None,
        }
    }

    /// Its filters.
    pub fn filters(&self) -> Vec<&Filter> {
        let own = if let Condition::Matching(filter) = self { Some(filter) } else { None };
        own.into_iter().chain(self.parts().iter().flat_map(Condition::filters)).collect()
    }

    /// The same with filters of another kind.
    pub fn map<Other>(&self, filter: &mut impl FnMut(&Filter) -> Other) -> Condition<Other> {
        let mut all = |parts: &[Self]| parts.iter().map(|part| part.map(filter)).collect::<Vec<_>>();
        match self {
            Condition::AllOfOne(parts) => Condition::AllOfOne(all(parts)),
            Condition::Any(parts) => Condition::Any(all(parts)),
            Condition::All { parts, collect, within } => {
                Condition::All { parts: all(parts), collect: *collect, within: *within }
            }
            Condition::InOrder { parts, within } => Condition::InOrder { parts: all(parts), within: *within },
            Condition::Times { part, count, within } => {
                Condition::Times { part: Box::new(part.map(filter)), count: *count, within: *within }
            }
            Condition::Not(part) => Condition::Not(Box::new(part.map(filter))),
            Condition::Unless { part, within } => {
                Condition::Unless { part: Box::new(part.map(filter)), within: *within }
            }
            Condition::Types(types) => Condition::Types(types.clone()),
            Condition::Source(source) => Condition::Source(*source),
            Condition::Masked { mask, value } => Condition::Masked { mask: *mask, value: *value },
            Condition::Matching(own) => Condition::Matching(filter(own)),
            Condition::After(time) => Condition::After(*time),
            Condition::Every(period) => Condition::Every(*period),
            Condition::Limited => Condition::Limited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Condition = super::Condition<String>;

    fn of(patterns: &[&str]) -> Condition {
        Condition::of_types(patterns.iter().map(|pattern| pattern.parse().expect("a pattern")))
    }

    fn needed(condition: &Condition) -> Option<Vec<String>> {
        condition.needed_types().map(|types| types.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_condition_needs_the_types_of_its_parts_if_each_has_some() {
        let (a, b) = (of(&["T/a"]), of(&["T/b", "U/*"]));
        let all = |types: &[&str]| Some(types.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            needed(&Condition::all(Collect::First, [a.clone(), b.clone()])),
            all(&["T/a", "T/b", "U/*"])
        );
        let filtered = Condition::all_of_one([Condition::Matching("x < 3".into()), b.clone(), a.clone()]);
        assert_eq!(needed(&filtered), all(&["T/a"]), "an event is of all of them");
        assert_eq!(needed(&Condition::any([filtered, Condition::Source(3)])), None);
        assert_eq!(needed(&Condition::Not(a.clone().into())), None);
        let silence = Condition::unless_within(talea_time::Duration::from_millis(5), a);
        assert_eq!(
            needed(&Condition::any([silence, Condition::Every(talea_time::Duration::from_millis(7))])),
            all(&["T/a"])
        );
        assert_eq!(needed(&Condition::Every(talea_time::Duration::from_millis(7))), all(&[]));
    }
}
