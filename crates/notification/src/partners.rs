//! Who is at the other side of a channel: suppliers and consumers that have types in common, and those that would, but for what the events carry.

use crate::event::{ContentType, EventType};
use crate::topology::{Offering, Subscribed, Topology};
use std::collections::BTreeMap;

/// A supplier as a consumer sees it, or a consumer as a supplier does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its number in the channel.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The types that one offers and the other has subscribed to, by domain and name.
    pub types: Vec<EventType>,
    /// Why it is none all the same: what it says that its events carry, and what one has said oneself. Events of such content are counted at the
    /// consumer ([`incompatible`](crate::ConsumerStatistics::incompatible)).
    pub mismatch: Option<(&'static str, &'static str)>,
}

/// Partners have come, gone or changed. Where several threads change something at once, their news may come in another order;
/// [`SupplierHandle::partners`](crate::SupplierHandle::partners) and [`ConsumerHandle::partners`](crate::ConsumerHandle::partners) say how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartnersChanged {
    /// Those that have come, or have other types in common than before.
    pub matched: Vec<Partner>,
    /// Those that have come, but whose events carry something else.
    pub incompatible: Vec<Partner>,
    /// Those that have gone, as they were.
    pub gone: Vec<Partner>,
}

impl PartnersChanged {
    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.matched.is_empty() && self.incompatible.is_empty() && self.gone.is_empty()
    }

    /// What has changed from these partners to those, both by their numbers.
    pub(crate) fn between(before: &BTreeMap<u32, Partner>, after: &BTreeMap<u32, Partner>) -> Self {
        let is_new = |partner: &&Partner| before.get(&partner.number) != Some(partner);
        let (incompatible, matched) =
            after.values().filter(is_new).cloned().partition(|partner| partner.mismatch.is_some());
        let gone = before.values().filter(|partner| !after.contains_key(&partner.number)).cloned().collect();
        PartnersChanged { matched, incompatible, gone }
    }
}

impl Topology {
    /// The partners of the supplier or consumer of this number; none if it is not there.
    pub fn partners(&self, number: u32) -> BTreeMap<u32, Partner> {
        if let Some(offering) = self.suppliers.get(&number) {
            let consumers = self.consumers.iter();
            let partners = consumers.filter_map(|(number, subscribed)| {
                let (types, name) =
                    (self.common(offering, subscribed)?, subscribed.consumer.name.to_string());
                let mismatch = mismatch(subscribed.consumer.content, offering.content);
                Some((*number, Partner { number: *number, name, types, mismatch }))
            });
            return partners.collect();
        }
        let Some(subscribed) = self.consumers.get(&number) else { return BTreeMap::new() };
        let partners = self.suppliers.iter().filter_map(|(number, offering)| {
            let (types, name) = (self.common(offering, subscribed)?, offering.name.to_string());
            let mismatch = mismatch(offering.content, subscribed.consumer.content);
            Some((*number, Partner { number: *number, name, types, mismatch }))
        });
        partners.collect()
    }

    /// The types that one offers and the other has subscribed to, if there are any.
    fn common(&self, offering: &Offering, subscribed: &Subscribed) -> Option<Vec<EventType>> {
        let offered = self.types().map(|entry| &entry.event_type);
        let offered = offered.filter(|one| offering.types.contains(&(one.number() as u32)));
        let mut types: Vec<EventType> = offered.filter(|one| subscribed.wants(one)).cloned().collect();
        types.sort_by(|one, other| (one.domain(), one.name()).cmp(&(other.domain(), other.name())));
        Some(types).filter(|types| !types.is_empty())
    }
}

/// What these two have said that events carry, if both have and it is not the same.
fn mismatch(theirs: Option<ContentType>, own: Option<ContentType>) -> Option<(&'static str, &'static str)> {
    let (theirs, own) = (theirs?, own?);
    (theirs != own).then_some((theirs.name, own.name))
}
