//! The jobs of a lane at places they keep, so that ordering them moves numbers instead of jobs.

use super::Progress;

/// Where a job is while it is in the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// A store of jobs with reusable places.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    /// A place in `free` holds a job that has left.
    places: Vec<Progress>,
    free: Vec<Place>,
}

impl Jobs {
    pub fn with_capacity(capacity: usize) -> Self {
        Jobs { places: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity) }
    }

    #[inline]
    pub fn add(&mut self, progress: Progress) -> Place {
        match self.free.pop() {
            Some(place) => {
                *self.get_mut(place) = progress;
                place
            }
            None => {
                self.places.push(progress);
                Place(self.places.len() as u32 - 1)
            }
        }
    }

    #[inline]
    pub fn get(&self, place: Place) -> &Progress {
        &self.places[place.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, place: Place) -> &mut Progress {
        &mut self.places[place.0 as usize]
    }

    #[inline]
    pub fn remove(&mut self, place: Place) -> Progress {
        self.free.push(place);
        *self.get(place)
    }
}
