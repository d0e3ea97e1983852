//! What all consumers of a channel have subscribed to, and all suppliers offer, put together: for who passes events on
//! to another channel (a gateway).
//!
//! ```text
//!   a consumer:  its subscriptions × the parts of its condition about one event
//!                ─► types and sources, with the filters of which one has to match
//!   a channel:   those of all consumers, without what others of them cover
//! ```
//! It is an upper bound: what is in none of it no consumer takes. By types and sources that is as exact as patterns and
//! masks can be; of filters that an event has to pass together it has those of one object, the consumer's own first,
//! then its condition's, then its admin's.

use crate::condition::Condition;
use crate::event::{Event, EventType};
use crate::filter::{Expression, Filter, GroupOperator, NotEvaluated, together};
use crate::topology::{Subscribed, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use talea_event::TypePattern;
use talea_time::{Duration, Instant};

/// Sources of events: those that are [`value`](Self::value) in the bits of [`mask`](Self::mask).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sources {
    mask: u32,
    value: u32,
}

impl Sources {
    /// All sources.
    pub const ANY: Sources = Sources { mask: 0, value: 0 };

    /// One alone.
    fn one(source: u32) -> Self {
        Sources { mask: u32::MAX, value: source }
    }

    /// None if there can be no such source.
    fn masked(mask: u32, value: u32) -> Option<Self> {
        (value & !mask == 0).then_some(Sources { mask, value })
    }

    /// The bits that count.
    pub fn mask(self) -> u32 {
        self.mask
    }

    /// What they are.
    pub fn value(self) -> u32 {
        self.value
    }

    /// The source, if it is one alone.
    pub fn only(self) -> Option<u32> {
        (self.mask == u32::MAX).then_some(self.value)
    }

    /// Whether this source is one of them.
    pub fn have(self, source: u32) -> bool {
        source & self.mask == self.value
    }

    fn cover(self, other: Sources) -> bool {
        self.mask & !other.mask == 0 && self.have(other.value)
    }

    fn common(self, other: Sources) -> Option<Self> {
        let agree = (self.value ^ other.value) & self.mask & other.mask == 0;
        agree.then_some(Sources { mask: self.mask | other.mask, value: self.value | other.value })
    }
}

/// Events that consumers of a channel take, or would if there were some.
#[derive(Clone)]
pub struct Interest {
    /// Their types.
    pub types: TypePattern,
    /// Their sources.
    pub sources: Sources,
    /// An event that none of these matches nobody takes by this; nothing is said of others. Empty if somebody takes all
    /// of them.
    pub filters: Vec<Arc<Filter>>,
}

impl Interest {
    /// Whether each event of the other one is one of this.
    fn covers(&self, other: &Interest) -> bool {
        let has = |filter: &Arc<Filter>| self.filters.iter().any(|own| Arc::ptr_eq(own, filter));
        self.types.covers(&other.types)
            && self.sources.cover(other.sources)
            && (self.filters.is_empty() || !other.filters.is_empty() && other.filters.iter().all(has))
    }
}

/// Filters are the same if they are one.
impl PartialEq for Interest {
    fn eq(&self, other: &Self) -> bool {
        let filters = |interest: &Interest| interest.filters.iter().map(Arc::as_ptr).collect::<Vec<_>>();
        (&self.types, self.sources) == (&other.types, other.sources) && filters(self) == filters(other)
    }
}

impl Eq for Interest {}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = self.filters.len();
        f.debug_struct("Interest")
            .field("types", &self.types)
            .field("sources", &self.sources)
            .field("filters", &filters)
            .finish()
    }
}

/// What an [observer](crate::EventChannel::observe) of a channel is told: all of it, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What consumers have subscribed to, in the order of types and sources, without what others of it cover.
    pub subscribed: Vec<Interest>,
    /// The types that suppliers offer, by domain and name.
    pub offered: Vec<EventType>,
}

impl Observed {
    /// The types that are subscribed to, from whichever sources. What a gateway has subscribed to changes from `before`
    /// to `now` by `subscription_change(now.types(), before.types())`, but for all types, which are not removed but
    /// replaced.
    pub fn types(&self) -> Vec<TypePattern> {
        let types: BTreeSet<&TypePattern> = self.subscribed.iter().map(|interest| &interest.types).collect();
        types.into_iter().cloned().collect()
    }

    /// A filter that matches what somebody may take, by types, sources and filters: for the consumer by which a gateway
    /// has events of another channel.
    pub fn filter(&self) -> Filter {
        let mut filter = Filter::new();
        for interest in &self.subscribed {
            let types = std::slice::from_ref(&interest.types);
            match interest.filters.is_empty() && interest.sources == Sources::ANY {
                true => filter.add_types(types),
                false => filter.add(types, MayBeTaken::by(interest)),
            };
        }
        filter
    }
}

/// Whether an event of the types of an interest is one of it.
struct MayBeTaken {
    sources: Sources,
    filters: Vec<Arc<Filter>>,
    longest: Duration,
}

impl MayBeTaken {
    fn by(Interest { sources, filters, .. }: &Interest) -> Self {
        let longest = together(filters.iter().map(|filter| filter.longest()));
        MayBeTaken { sources: *sources, filters: filters.clone(), longest }
    }
}

impl Expression for MayBeTaken {
    fn holds(&self, event: &Event, now: Instant) -> Result<bool, NotEvaluated> {
        if !self.sources.have(event.header().source) {
            return Ok(false);
        }
        let mut matches = self.filters.is_empty();
        let mut errors = 0;
        for filter in &self.filters {
            let verdict = filter.judge(event, now);
            errors += verdict.errors;
            matches |= verdict.matches;
            if matches {
                break;
            }
        }
        if matches || errors == 0 { Ok(matches) } else { Err(NotEvaluated) }
    }

    fn longest(&self) -> Duration {
        self.longest
    }
}

/// Which events a part of a condition is about, as far as types, sources and one filter say it.
struct Scope {
    types: Vec<TypePattern>,
    sources: Sources,
    filter: Option<Arc<Filter>>,
}

impl Scope {
    fn everything() -> Self {
        Scope { types: vec![TypePattern::all()], sources: Sources::ANY, filter: None }
    }

    /// None if there can be no such event.
    fn of(part: &Condition) -> Option<Self> {
        let everything = Scope::everything();
        Some(match part {
            Condition::Types(types) => Scope { types: types.to_vec(), ..everything },
            Condition::Source(source) => Scope { sources: Sources::one(*source), ..everything },
            Condition::Masked { mask, value } => {
                Scope { sources: Sources::masked(*mask, *value)?, ..everything }
            }
            Condition::Matching(filter) => Scope { filter: Some(Arc::clone(filter)), ..everything },
            Condition::AllOfOne(parts) => {
                parts.iter().try_fold(everything, |scope, part| scope.and(Scope::of(part)?))?
            }
            // What an event is not says no pattern.
            _ => everything,
        })
    }

    fn and(self, other: Scope) -> Option<Self> {
        let common = |own: &TypePattern| -> Vec<TypePattern> {
            other.types.iter().filter_map(|other| own.common(other)).collect()
        };
        let types: Vec<TypePattern> = self.types.iter().flat_map(common).collect();
        let (sources, filter) = (self.sources.common(other.sources)?, self.filter.or(other.filter));
        (!types.is_empty()).then_some(Scope { types, sources, filter })
    }
}

impl Subscribed {
    fn interests(&self) -> Vec<Interest> {
        let scopes = match self.consumer.condition() {
            None => vec![Scope::everything()],
            Some(condition) => {
                condition.leaves().iter().filter_map(|leaf| Scope::of(leaf.condition)).collect()
            }
        };
        let settings = self.consumer.settings.load();
        let (operator, of_admin) = (self.consumer.admin.operator, self.consumer.admin.filters.get());
        let own: Vec<&Arc<Filter>> = settings.filters.shared().collect();
        let of_admin: Vec<&Arc<Filter>> = of_admin.shared().collect();
        // Where one group is enough, an event need not pass the other one: of both any. Who has no filter does not
        // count.
        let (first, last) = match operator {
            GroupOperator::Or => ([own, of_admin].concat(), Vec::new()),
            GroupOperator::And => (own, of_admin),
        };
        let mut interests = Vec::new();
        for Scope { types, sources, filter } in &scopes {
            let of_condition: Vec<&Arc<Filter>> = filter.iter().collect();
            let candidates = [&first[..], &of_condition, &last[..]];
            let filters = candidates.into_iter().find(|filters| !filters.is_empty()).unwrap_or_default();
            for pattern in &self.patterns {
                let common = types.iter().filter_map(|types| pattern.common(types));
                interests.extend(common.map(|types| Interest {
                    types,
                    sources: *sources,
                    filters: filters.iter().copied().cloned().collect(),
                }));
            }
        }
        interests
    }
}

/// The filters of an interest that several consumers have, while it is put together.
#[derive(Default)]
struct Union {
    takes_all: bool,
    filters: Vec<Arc<Filter>>,
    known: BTreeSet<usize>,
}

impl Union {
    fn add(&mut self, filters: Vec<Arc<Filter>>) {
        self.takes_all |= filters.is_empty();
        let known = &mut self.known;
        self.filters.extend(filters.into_iter().filter(|one| known.insert(Arc::as_ptr(one).addr())));
    }
}

impl Topology {
    /// What an observer is told: nothing of a channel that is destroyed, and nothing of what gateways say. Takes as
    /// many steps as consumers have subscriptions and parts of conditions, and those with a `*` times all others.
    pub fn observed(&self) -> Observed {
        if self.is_closed {
            return Observed::default();
        }
        let mut unions: BTreeMap<(TypePattern, Sources), Union> = BTreeMap::new();
        for subscribed in self.consumers.values().filter(|subscribed| !subscribed.is_gateway) {
            for Interest { types, sources, filters } in subscribed.interests() {
                unions.entry((types, sources)).or_default().add(filters);
            }
        }
        let all: Vec<Interest> = unions
            .into_iter()
            .map(|((types, sources), union)| {
                let filters = if union.takes_all { Vec::new() } else { union.filters };
                Interest { types, sources, filters }
            })
            .collect();
        let subscribed = without_covered(all);
        let offers = self.suppliers.values().filter(|offering| !offering.is_gateway);
        let offered: BTreeSet<u32> = offers.flat_map(|offering| offering.types.iter().copied()).collect();
        let types = self.types().map(|entry| &entry.event_type);
        let mut offered: Vec<EventType> =
            types.filter(|one| offered.contains(&(one.number() as u32))).cloned().collect();
        offered.sort_by(|one, other| (one.domain(), one.name()).cmp(&(other.domain(), other.name())));
        Observed { subscribed, offered }
    }
}

/// Of interests that differ in types or sources, those that no other one covers.
fn without_covered(all: Vec<Interest>) -> Vec<Interest> {
    // A type alone is covered by a pattern or by the same type, which stands beside it.
    let is_wide = |interest: &&Interest| interest.types.exact().is_none();
    let wide: Vec<&Interest> = all.iter().filter(is_wide).collect();
    let is_covered = |interest: &Interest| {
        let begin = all.partition_point(|other| other.types < interest.types);
        let same = all[begin..].iter().take_while(|other| other.types == interest.types);
        let mut others = wide.iter().copied().chain(same);
        others.any(|other| {
            (&other.types, other.sources) != (&interest.types, interest.sources) && other.covers(interest)
        })
    };
    let is_left: Vec<bool> = all.iter().map(|interest| !is_covered(interest)).collect();
    all.into_iter().zip(is_left).filter_map(|(interest, is_left)| is_left.then_some(interest)).collect()
}
