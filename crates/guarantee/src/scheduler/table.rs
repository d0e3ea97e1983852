//! The built-in kinds: a row each, by family, in the order of the documentation.
//!
//! A row says all that is known of a kind but how its scheduler decides; the code of that is a file of its own among the policies,
//! which names the row.

mod jobs;
mod reservations;
mod shares;
mod structure;
mod time_sharing;

use super::SchedulerKind;

/// Every built-in kind.
pub(super) const FAMILIES: [&[SchedulerKind]; 5] =
    [structure::ROWS, shares::ROWS, reservations::ROWS, time_sharing::ROWS, jobs::ROWS];

/// Rows, each with the constant by which programs name the kind.
macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident = $row:expr;)*) => {
        impl SchedulerKind {
            $($(#[$doc])* pub const $name: SchedulerKind = SchedulerKind::of(&$row);)*
        }
        pub(super) const ROWS: &[SchedulerKind] = &[$(SchedulerKind::$name),*];
    };
}

use rows;

/// What is missing where the kernel has the same scheduler, but cannot use it in that place.
const LACKS_NOTHING: &str = "the kernel does not do it here";

#[cfg(test)]
mod tests {
    use crate::scheduler::{Alike, Demand, SchedulerKind, Scope};
    use std::collections::HashSet;

    #[test]
    fn rows_are_complete_and_do_not_contradict_each_other() {
        let mut names = HashSet::new();
        for kind in super::FAMILIES.into_iter().flatten().copied() {
            assert!(names.insert(kind.name), "{kind} is there twice");
            assert!(kind.synonyms.iter().all(|synonym| names.insert(*synonym)), "{kind}");
            assert!(!kind.about.is_empty() && !kind.source.is_empty(), "{kind} is not explained");
            assert_eq!(kind.scope == Scope::Files, kind.conversions.is_empty(), "{kind}");
            let Some(Alike::Code(other) | Alike::Promises(other)) = kind.alike else { continue };
            let other = SchedulerKind::named(other).unwrap_or_else(|| panic!("{kind} is like {other}?"));
            // Those who may ask for nothing promise the same to those who ask for something.
            let demand = |kind: SchedulerKind| match kind.demand() {
                Demand::GuaranteeIfAny(kinds) => Demand::Guarantee(kinds),
                demand => demand,
            };
            assert_eq!((demand(kind), kind.conversions), (demand(other), other.conversions), "{kind}");
        }
    }

    #[test]
    fn each_has_a_place_of_its_own_beside_the_published_table() {
        let kinds = SchedulerKind::in_derivations();
        let built_in = kinds.iter().filter(|kind| kind.place < u8::MAX);
        assert!(built_in.enumerate().all(|(place, kind)| usize::from(kind.place) == place));
        assert_eq!(SchedulerKind::in_files().first(), Some(&SchedulerKind::FIXED_PRIORITY));
    }
}
