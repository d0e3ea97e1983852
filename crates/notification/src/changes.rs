//! How subscriptions and offers change, by the standard's rules (`subscription_change`, `offer_change`), which are the same for a proxy and for an admin.

use crate::event::EventType;
use std::collections::BTreeSet;
use talea_event::TypePattern;

/// What is added to subscriptions and what is removed from them.
pub(crate) struct SubscriptionChange {
    added: BTreeSet<TypePattern>,
    removed: BTreeSet<TypePattern>,
}

impl SubscriptionChange {
    pub fn new(
        added: impl IntoIterator<Item = TypePattern>,
        removed: impl IntoIterator<Item = TypePattern>,
    ) -> Self {
        SubscriptionChange { added: added.into_iter().collect(), removed: removed.into_iter().collect() }
    }

    /// What these subscriptions come to. A pattern that is added and removed is not changed. Where they had all types, those that are added take
    /// their place; all types take the place of everything else, and are not removed.
    pub fn apply(&self, before: &BTreeSet<TypePattern>) -> BTreeSet<TypePattern> {
        let SubscriptionChange { added, removed } = self;
        let mut patterns = before.clone();
        let had_all = patterns.iter().any(TypePattern::is_all);
        for pattern in added.difference(removed) {
            if pattern.is_all() {
                patterns = BTreeSet::from([pattern.clone()]);
                break;
            }
            if had_all {
                patterns.retain(|pattern| !pattern.is_all());
            }
            patterns.insert(pattern.clone());
        }
        removed.difference(added).filter(|pattern| !pattern.is_all()).for_each(|pattern| {
            patterns.remove(pattern);
        });
        patterns
    }
}

/// The types that are offered as well, and those that are offered no more; none is in both.
pub(crate) struct OfferChange {
    pub added: Vec<EventType>,
    pub removed: Vec<EventType>,
}

impl OfferChange {
    /// Types that are added and removed are not changed.
    pub fn new(
        added: impl IntoIterator<Item = EventType>,
        removed: impl IntoIterator<Item = EventType>,
    ) -> Self {
        let (mut added, mut removed): (Vec<_>, Vec<_>) =
            (added.into_iter().collect(), removed.into_iter().collect());
        let in_both: Vec<EventType> = added.iter().filter(|one| removed.contains(one)).cloned().collect();
        added.retain(|one| !in_both.contains(one));
        removed.retain(|one| !in_both.contains(one));
        OfferChange { added, removed }
    }

    /// What this list of types comes to, each once.
    pub fn apply_to_list(&self, before: &[EventType]) -> Vec<EventType> {
        let mut types: Vec<EventType> = Vec::new();
        let kept = before.iter().filter(|one| !self.removed.contains(one));
        kept.chain(&self.added).for_each(|one| {
            if !types.contains(one) {
                types.push(one.clone());
            }
        });
        types
    }

    /// What the numbers of these types come to.
    pub fn apply(&self, before: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut types = before.clone();
        types.extend(self.added.iter().map(|one| one.number() as u32));
        self.removed.iter().for_each(|one| _ = types.remove(&(one.number() as u32)));
        types
    }
}
