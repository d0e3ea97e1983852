//! The filters of one object, which come and go by their numbers (`FilterAdmin`), and its mapping filters, of which it has one of a kind.
//!
//! ```text
//!   object.filters()         ──► add ──► FilterId ──► get, replace, remove
//!   object.priority_filter() ──► set ──► get, clear
//! ```

use crate::consumer::{AdminFilters, Consumer};
use crate::filter::{Filter, FilterGroup, FilterId};
use crate::limits::LimitExceeded;
use crate::mapping::{MappedValue, MappingError, MappingFilter, MappingFilters, allow_mapping};
use crate::replaced::ReplacedFilters;
use crate::shared::Shared;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The filters of a consumer, a supplier or an admin (`FilterAdmin`): an event has to pass any of them, if there are some.
///
/// A change holds for events that are pushed after it. Numbers are the object's own, and none is given twice.
pub struct FilterAdmin<'a> {
    shared: &'a Shared,
    owner: Owner<'a>,
}

/// Whose filters they are.
pub(crate) enum Owner<'a> {
    /// Those of a supplier.
    Supplier(&'a ReplacedFilters<FilterGroup>),
    /// Those of an admin.
    Admin(Arc<AdminFilters>),
    /// Those of a consumer.
    Consumer(&'a Consumer),
}

impl fmt::Debug for FilterAdmin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterAdmin").field("ids", &self.ids()).finish_non_exhaustive()
    }
}

impl<'a> FilterAdmin<'a> {
    pub(crate) fn new(shared: &'a Shared, owner: Owner<'a>) -> Self {
        FilterAdmin { shared, owner }
    }

    /// Attaches a filter, behind those that are there (`add_filter`).
    ///
    /// # Errors
    /// The object has as many as its channel allows, or the filter has more constraints; nothing has changed.
    pub fn add(&self, filter: Filter) -> Result<FilterId, LimitExceeded> {
        let properties = self.shared.properties();
        properties.allow_constraints(&filter)?;
        let filter = Arc::new(filter);
        self.change(|group| {
            properties.allow_filters(group.all().len() + 1)?;
            Ok(group.add(Arc::clone(&filter)))
        })
    }

    /// Puts a filter in the place of one, whose number it has from now on. False if there is none of this number. With [`Self::get`] and a clone, that
    /// is how constraints of an attached filter come and go.
    ///
    /// # Errors
    /// It has more constraints than the channel allows; nothing has changed.
    pub fn replace(&self, id: FilterId, filter: Filter) -> Result<bool, LimitExceeded> {
        self.shared.properties().allow_constraints(&filter)?;
        let filter = Arc::new(filter);
        self.change(|group| Ok(group.replace(id, Arc::clone(&filter))))
    }

    /// Puts these filters in the place of all (`remove_all_filters` and `add_filter`, at once). Returns their numbers.
    ///
    /// # Errors
    /// They are more, or one has more constraints, than the channel allows; the object has those that it had.
    pub fn set(&self, filters: impl IntoIterator<Item = Filter>) -> Result<Vec<FilterId>, LimitExceeded> {
        let filters: Vec<Arc<Filter>> = filters.into_iter().map(Arc::new).collect();
        let properties = self.shared.properties();
        properties.allow_filters(filters.len())?;
        filters.iter().try_for_each(|filter| properties.allow_constraints(filter))?;
        self.change(|group| {
            group.clear();
            Ok(filters.iter().map(|filter| group.add(Arc::clone(filter))).collect())
        })
    }

    /// Removes a filter (`remove_filter`). False if there is none of this number.
    pub fn remove(&self, id: FilterId) -> bool {
        self.change(|group| Ok::<bool, Infallible>(group.remove(id))).unwrap_or_else(|never| match never {})
    }

    /// Removes all filters (`remove_all_filters`): everything passes.
    pub fn clear(&self) {
        let cleared: Result<(), Infallible> = self.change(|group| {
            group.clear();
            Ok(())
        });
        cleared.unwrap_or_else(|never| match never {});
    }

    /// The filter of this number, if there is one (`get_filter`).
    pub fn get(&self, id: FilterId) -> Option<Arc<Filter>> {
        self.group().get(id)
    }

    /// The numbers of all filters, in the order in which they were attached (`get_all_filters`).
    pub fn ids(&self) -> Vec<FilterId> {
        self.group().ids().collect()
    }

    fn group(&self) -> FilterGroup {
        match &self.owner {
            Owner::Supplier(filters) => filters.get(),
            Owner::Admin(admin) => admin.filters.get(),
            Owner::Consumer(consumer) => consumer.settings.load().filters.clone(),
        }
    }

    /// Changes the filters, or nothing. The topology's lock lets one change after the other; no filter is dropped under it, for that may call code of the
    /// program, which may call the channel. So whoever calls this keeps what `change` adds.
    fn change<T, E>(&self, change: impl FnOnce(&mut FilterGroup) -> Result<T, E>) -> Result<T, E> {
        let topology = self.shared.topology();
        let mut group = self.group();
        let changed = change(&mut group);
        let (mut filters, mut settings) = (Vec::new(), Vec::new());
        if changed.is_ok() {
            let group = group.clone();
            match &self.owner {
                Owner::Supplier(own) => filters = own.set(group),
                Owner::Admin(admin) => filters = admin.filters.set(group),
                Owner::Consumer(consumer) => settings = consumer.set(|own| own.filters = group.clone()),
            }
        }
        drop(topology);
        drop((group, filters, settings));
        if changed.is_ok() {
            self.shared.tell_observers();
        }
        changed
    }
}

/// The mapping filter for priorities, or that for lifetimes, of a consumer or of an admin of consumers (`priority_filter`, `lifetime_filter`): it has one
/// of each, or none.
///
/// A change holds for events that are pushed after it. Constraints of an attached filter, which have their numbers there, come and go with
/// [`get`](Self::get), a clone and [`set`](Self::set).
pub struct MappingAdmin<'a, V> {
    shared: &'a Shared,
    owner: MappingOwner<'a>,
    of: PhantomData<fn(V) -> V>,
}

/// Whose mapping filters they are.
pub(crate) enum MappingOwner<'a> {
    /// Those of an admin.
    Admin(Arc<AdminFilters>),
    /// Those of a consumer.
    Consumer(&'a Consumer),
}

impl<V: MappedValue> fmt::Debug for MappingAdmin<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappingAdmin").field("filter", &self.get()).finish_non_exhaustive()
    }
}

impl<'a, V: MappedValue> MappingAdmin<'a, V> {
    pub(crate) fn new(shared: &'a Shared, owner: MappingOwner<'a>) -> Self {
        MappingAdmin { shared, owner, of: PhantomData }
    }

    /// The attached filter, if there is one.
    pub fn get(&self) -> Option<Arc<MappingFilter<V>>> {
        V::filter_of(&self.filters()).clone()
    }

    /// Attaches a filter, in the place of the one that is attached.
    ///
    /// # Errors
    /// One of its values is out of range, or it has more constraints than the channel allows; nothing has changed.
    pub fn set(&self, filter: MappingFilter<V>) -> Result<(), MappingError> {
        allow_mapping(&self.shared.properties(), Some(&filter))?;
        self.put(Some(Arc::new(filter)));
        Ok(())
    }

    /// Takes the filter away. False if there is none.
    pub fn clear(&self) -> bool {
        self.put(None).is_some()
    }

    fn filters(&self) -> MappingFilters {
        match &self.owner {
            MappingOwner::Admin(admin) => admin.mappings.get(),
            MappingOwner::Consumer(consumer) => consumer.settings.load().mappings.clone(),
        }
    }

    /// Returns the one that was there. As with filters, one change is made after the other, and none is dropped under the topology's lock.
    fn put(&self, filter: Option<Arc<MappingFilter<V>>>) -> Option<Arc<MappingFilter<V>>> {
        let topology = self.shared.topology();
        let mut filters = self.filters();
        let before = std::mem::replace(V::place_in(&mut filters), filter);
        let (mut of_admin, mut of_consumer) = (Vec::new(), Vec::new());
        match &self.owner {
            MappingOwner::Admin(admin) => of_admin = admin.mappings.set(filters.clone()),
            MappingOwner::Consumer(consumer) => {
                of_consumer = consumer.set(|own| own.mappings = filters.clone());
            }
        }
        drop(topology);
        drop((filters, of_admin, of_consumer));
        before
    }
}
