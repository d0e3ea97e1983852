//! Objects: structures that are replaced and copied as a whole, by the protocol of [`talea_ring::object`].

use super::{Entity, ObjectField, PassiveKind};
use crate::stream::declare::DeclaredFamily;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use talea_ring::object::{Copied, HEAD};

/// A structure as words; [`crate::family!`] makes it one.
pub trait Structure: Copy {
    /// Its fields.
    const FIELDS: &'static [ObjectField];
    /// Its words: an array with one for each field.
    type Words: AsRef<[u64]>;
    /// The structure as words.
    fn to_words(self) -> Self::Words;
    /// The structure that [`Self::to_words`] gave.
    fn from_words(words: &[u64]) -> Self;
}

/// A structure that one thread at a time replaces.
#[derive(Debug)]
pub struct Object<T>(Entity, PhantomData<fn(T)>);

impl<T: Structure> Object<T> {
    /// The object with switch `number` of its family; made by [`crate::family!`].
    #[doc(hidden)]
    pub const fn new(family: &'static DeclaredFamily, number: usize) -> Self {
        Object(Entity::new(family, number), PhantomData)
    }

    #[doc(hidden)]
    pub const KIND: PassiveKind = PassiveKind::Object { fields: Cow::Borrowed(T::FIELDS) };

    const WORDS: usize = HEAD + T::FIELDS.len();

    #[doc(hidden)]
    pub const fn place(&'static self) -> &'static AtomicU32 {
        &self.0.place
    }

    /// Replaces the structure, if anybody wants the object. While another thread is replacing it, this does nothing
    /// but count that.
    #[inline(always)]
    pub fn set(&self, structure: T) {
        self.0.update(Self::WORDS, |words| {
            let _ = Copied::new(words).replace(structure.to_words().as_ref());
        });
    }

    /// A copy from the calling thread's stream; `None` if there is no stream or nothing was set.
    pub fn get(&self) -> Option<T> {
        self.0
            .look(Self::WORDS, |words| Copied::new(words).wait_for_copy())?
            .map(|words| T::from_words(&words))
    }
}
