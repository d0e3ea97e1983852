//! Where a channel's deliveries are done: known from the beginning, or from the preparation of the run on.

use std::sync::{Arc, OnceLock};
use talea_operation::Workplace;

/// All channels of a factory share it.
#[derive(Clone, Default)]
pub(crate) struct Place(Arc<OnceLock<Arc<dyn Workplace>>>);

impl Place {
    /// The workplace, once it is known.
    #[inline]
    pub fn get(&self) -> Option<&dyn Workplace> {
        self.0.get().map(Arc::as_ref)
    }

    /// The same for code that the workplace itself keeps, which must not keep the workplace.
    pub fn weak(&self) -> WeakPlace {
        WeakPlace(Arc::downgrade(&self.0))
    }

    /// It is this one. False if another one is known.
    pub fn set(&self, workplace: Arc<dyn Workplace>) -> bool {
        self.0.set(workplace).is_ok()
    }
}

/// See [`Place::weak`].
pub(crate) struct WeakPlace(std::sync::Weak<OnceLock<Arc<dyn Workplace>>>);

impl WeakPlace {
    /// Calls `act` with the workplace, if there is one still.
    pub fn with(&self, act: impl FnOnce(&dyn Workplace)) {
        if let Some(place) = self.0.upgrade()
            && let Some(workplace) = place.get()
        {
            act(workplace.as_ref());
        }
    }
}
