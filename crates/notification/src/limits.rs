//! What a channel does for itself, and what strangers may ask of it.

use crate::filter::{Filter, FilterGroup};
use thiserror::Error;

/// What a channel does for itself, beside the quality of service of what goes through it (the standard's admin properties, and limits of our own). 0 is
/// no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdminProperties {
    /// Events that may wait in all of the channel (`MaxQueueLength`), those in the hands of call-backs included. When one comes that is too many, the channel's own
    /// [`DiscardPolicy`](crate::qos::DiscardPolicy) says which of all that wait goes, whichever consumer it waits for; what came while there was no limit neither counts nor goes.
    pub max_queue_length: usize,
    /// Consumers that may be connected (`MaxConsumers`).
    pub max_consumers: usize,
    /// Suppliers that may be connected (`MaxSuppliers`).
    pub max_suppliers: usize,
    /// Whether a push is refused when as many events wait as may; otherwise the channel's discard policy decides (`RejectNewEvents`).
    pub reject_new_events: bool,
    /// Types that one supplier may offer and push.
    pub max_types_per_supplier: usize,
    /// Filters that a supplier, a consumer or an admin may have.
    pub max_filters: usize,
    /// Constraints that a filter may have.
    pub max_constraints: usize,
    /// What an event may carry, in bytes ([`Content::bytes`](crate::Content::bytes)).
    pub max_event_bytes: usize,
}

/// Somebody asks for more than the channel's properties let an object have. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{wanted} {what} are more than the {most} that the channel allows (AdminProperties::{property})")]
pub struct LimitExceeded {
    /// Of what.
    what: &'static str,
    /// The property that says so.
    property: &'static str,
    wanted: usize,
    most: usize,
}

impl LimitExceeded {
    /// The property that limits it.
    pub fn property(&self) -> &'static str {
        self.property
    }

    /// What was asked for, and what may be.
    pub fn wanted_and_most(&self) -> (usize, usize) {
        (self.wanted, self.most)
    }
}

fn check(
    what: &'static str,
    property: &'static str,
    wanted: usize,
    most: usize,
) -> Result<(), LimitExceeded> {
    match most {
        0 => Ok(()),
        most if wanted <= most => Ok(()),
        most => Err(LimitExceeded { what, property, wanted, most }),
    }
}

impl AdminProperties {
    /// Whether an object may have so many filters.
    pub(crate) fn allow_filters(&self, filters: usize) -> Result<(), LimitExceeded> {
        check("filters of one object", "max_filters", filters, self.max_filters)
    }

    pub(crate) fn allow_constraints(&self, filter: &Filter) -> Result<(), LimitExceeded> {
        let constraints = filter.constraints().count();
        check("constraints of one filter", "max_constraints", constraints, self.max_constraints)
    }

    /// Whether an object may have these filters.
    pub(crate) fn allow_group(&self, group: &FilterGroup) -> Result<(), LimitExceeded> {
        self.allow_filters(group.all().len())?;
        group.all().try_for_each(|filter| self.allow_constraints(filter))
    }

    pub(crate) fn allow_types(&self, types: usize) -> Result<(), LimitExceeded> {
        check("types of one supplier", "max_types_per_supplier", types, self.max_types_per_supplier)
    }
}

/// Whether an event of this size may be pushed, where this is the limit.
#[inline]
pub(crate) fn allow_bytes(bytes: usize, most: usize) -> Result<(), LimitExceeded> {
    check("bytes of one event", "max_event_bytes", bytes, most)
}
