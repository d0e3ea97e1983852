//! The name space: the families whose events a trace may hold, found by number and name.

use crate::declaration::{EventEntry, Family, Field};
use crate::event::builtin;
use crate::record::Event;
use serde::{Deserialize, Serialize};

/// All families whose events a trace may hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameSpace {
    families: Vec<Family>,
}

impl Default for NameSpace {
    /// The builtin families.
    fn default() -> Self {
        NameSpace { families: builtin::ALL.to_vec() }
    }
}

/// Why a family could not be added to a name space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameSpaceError {
    /// Another family has the number or the name.
    #[error("family \"{name}\" ({number:#04x}) is there already")]
    Taken {
        /// Its name.
        name: String,
        /// Its number.
        number: u8,
    },
    /// A field reaches beyond its part of the record, or is the event's second long one.
    #[error("field \"{field}\" of event \"{event}\" does not fit into its part of the record")]
    Misfit {
        /// The event.
        event: String,
        /// The field.
        field: String,
    },
    /// Two events have the same number or name, or two fields of one event have the same name.
    #[error("\"{name}\" occurs twice in family \"{family}\"")]
    Twice {
        /// The family.
        family: String,
        /// What occurs twice.
        name: String,
    },
}

impl NameSpace {
    /// The families in the order of their numbers.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Adds a family.
    ///
    /// # Errors
    /// See [`NameSpaceError`]; the name space is unchanged then.
    pub fn add(&mut self, family: Family) -> Result<(), NameSpaceError> {
        check(&family)?;
        let taken = |other: &Family| other.number == family.number || other.name == family.name;
        if self.families.iter().any(taken) {
            return Err(NameSpaceError::Taken { name: family.name.into_owned(), number: family.number });
        }
        let place = self.families.partition_point(|other| other.number < family.number);
        self.families.insert(place, family);
        Ok(())
    }

    /// The family called `name`.
    pub fn family(&self, name: &str) -> Option<&Family> {
        self.families.iter().find(|family| family.name == name)
    }

    /// What is known of `event`.
    pub fn event(&self, event: Event) -> Option<(&Family, &EventEntry)> {
        let [family, number] = event.0.to_be_bytes();
        let family = self.families.binary_search_by_key(&family, |entry| entry.number).ok()?;
        let family = &self.families[family];
        let entry = family.events.iter().find(|entry| entry.number == number)?;
        Some((family, entry))
    }
}

fn check(family: &Family) -> Result<(), NameSpaceError> {
    let twice = |name: &str| {
        Err(NameSpaceError::Twice { family: family.name.clone().into_owned(), name: name.to_owned() })
    };
    for (index, event) in family.events.iter().enumerate() {
        let before = &family.events[..index];
        if before.iter().any(|other| other.number == event.number || other.name == event.name) {
            return twice(&event.name);
        }
        for (index, field) in event.fields.iter().enumerate() {
            if event.fields[..index].iter().any(|other| other.name == field.name) {
                return twice(&field.name);
            }
            let is_second_long = |other: &Field| other.kind.bound().and(field.kind.bound()).is_some();
            if !field.fits() || event.fields[..index].iter().any(is_second_long) {
                let (event, field) = (event.name.clone().into_owned(), field.name.clone().into_owned());
                return Err(NameSpaceError::Misfit { event, field });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::{FieldKind, Part};

    #[test]
    fn builtin_families_are_consistent_and_in_order() {
        let mut space = NameSpace { families: Vec::new() };
        for family in builtin::ALL {
            space.add(family.clone()).expect("no number, name or field twice");
        }
        assert_eq!(space, NameSpace::default());
    }

    #[test]
    fn every_builtin_constant_is_declared_under_its_name() {
        let space = NameSpace::default();
        for (event, name) in [
            (Event::RUN_START, "run-start"),
            (Event::RELEASE, "release"),
            (Event::ABORT, "abort"),
            (Event::COST, "cost"),
            (Event::RECEIVE, "receive"),
            (Event::SWITCH, "switch"),
            (Event::THREAD_NAME, "thread-name"),
        ] {
            assert_eq!(space.event(event).map(|(_, entry)| entry.name.as_ref()), Some(name));
            assert_eq!(event.name(), Some(name));
        }
    }

    #[test]
    fn a_field_beyond_its_part_is_refused() {
        let wide = Field::new("wide", FieldKind::U64, Part::First);
        let added = |fields: Vec<Field>| {
            let entry = EventEntry { number: 0, name: "e".into(), about: "".into(), fields: fields.into() };
            let family =
                Family { number: 0x40, name: "f".into(), about: "".into(), events: vec![entry].into() };
            NameSpace::default().add(family)
        };
        let misfit = |field: &str| Err(NameSpaceError::Misfit { event: "e".into(), field: field.to_owned() });
        assert_eq!(added(vec![wide.clone()]), Ok(()));
        assert_eq!(added(vec![wide.shifted(8)]), misfit("wide"));
        let long = |name, kind| Field::new(name, kind, Part::Arg);
        let text = long("text", FieldKind::LongText(256));
        assert_eq!(added(vec![text.clone()]), Ok(()));
        for kind in [FieldKind::LongText(0), FieldKind::LongBytes(257)] {
            assert_eq!(added(vec![long("long", kind)]), misfit("long"));
        }
        assert_eq!(added(vec![text.clone().shifted(1)]), misfit("text"));
        assert_eq!(added(vec![text, long("more", FieldKind::LongBytes(8))]), misfit("more"));
    }
}
