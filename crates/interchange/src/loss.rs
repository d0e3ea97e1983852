//! What a translation does not say, or says differently.

use std::borrow::Cow;
use std::fmt;
use talea_model::{Location, Place};

/// A translated value and what the translation cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated<T> {
    /// The value.
    pub value: T,
    /// Everything that the value does not say as the original did, in the order of the original.
    pub losses: Vec<Loss>,
}

impl<T> Translated<T> {
    /// Whether the value means what the original meant.
    pub fn is_faithful(&self) -> bool {
        !self.losses.iter().any(|loss| loss.effect.changes_meaning())
    }
}

/// One thing that did not carry over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened to it.
    pub effect: Effect,
    /// Where in the original it stands.
    pub origin: Origin,
    /// The item, `task "nav"`.
    pub subject: String,
    /// The key of the item, as the original spells it; empty for the item as a whole.
    pub key: Cow<'static, str>,
    /// What is lost or assumed, and why.
    pub what: Cow<'static, str>,
}

/// `subject, key: what`.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { subject, key, what, .. } = self;
        match key.as_ref() {
            "" => write!(f, "{subject}: {what}"),
            key => write!(f, "{subject}, {key}: {what}"),
        }
    }
}

/// What happened to something that did not carry over as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The other side has no word for it.
    Lost,
    /// Something similar stands in its place.
    Approximated,
    /// The original does not say it and the result must.
    Assumed,
    /// It concerns one run or one program, not the system.
    Setting,
}

impl Effect {
    /// Whether the system means something else without it.
    pub const fn changes_meaning(self) -> bool {
        !matches!(self, Effect::Setting)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Effect::Lost => "lost",
            Effect::Approximated => "approximated",
            Effect::Assumed => "assumed",
            Effect::Setting => "left out",
        })
    }
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the text that was imported.
    Text(Location),
    /// In the system that was exported.
    Model(Place),
}
