//! All kinds that can be named: the built-in ones, and those that the program has registered.
//!
//! Kinds are only ever added, so a handle stays what it is for as long as the process lives. Nothing on the way of a decision looks
//! here: kinds are looked up when files, requests and results are read or written.

use super::{Declaration, Parameter, SchedulerKind, Values, table};
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

static REGISTERED: RwLock<Vec<SchedulerKind>> = RwLock::new(Vec::new());

/// Why a kind cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// Another kind goes by that name.
    #[error("the name \"{name}\" is that of the kind {of} already; give the new kind another one")]
    Taken {
        /// The name or synonym.
        name: &'static str,
        /// The kind that has it.
        of: SchedulerKind,
    },
    /// System files could not name it.
    #[error("a kind of scheduler cannot be called \"{0}\"; use lowercase letters, digits and hyphens")]
    BadName(&'static str),
    /// It has a parameter with a name that means something else for every scheduler, or two of one name.
    #[error("the kind {kind} cannot have a parameter \"{parameter}\": {why}")]
    BadParameter {
        /// The kind.
        kind: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Every kind there is: the built-in ones in the order of the documentation, then the registered ones in the order of registration.
pub fn all() -> Vec<SchedulerKind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    table::FAMILIES.into_iter().flatten().chain(registered.iter()).copied().collect()
}

/// Enters an own kind. From then on it is found by its name and synonyms.
///
/// # Errors
/// See [`RegisterError`]; nothing is entered then.
pub fn register(declaration: &'static Declaration) -> Result<SchedulerKind, RegisterError> {
    let kind = SchedulerKind::of(declaration);
    check_parameters(kind)?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    for name in names(kind) {
        let is_of_files =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || !name.chars().all(is_of_files) {
            return Err(RegisterError::BadName(name));
        }
        let mut others = table::FAMILIES.into_iter().flatten().chain(registered.iter());
        if let Some(of) = others.find(|other| names(**other).any(|taken| taken == name)) {
            return Err(RegisterError::Taken { name, of: *of });
        }
    }
    registered.push(kind);
    Ok(kind)
}

fn names(kind: SchedulerKind) -> impl Iterator<Item = &'static str> {
    std::iter::once(kind.name()).chain(kind.declaration().synonyms.iter().copied())
}

fn check_parameters(kind: SchedulerKind) -> Result<(), RegisterError> {
    const RESERVED: [&str; 4] = ["name", "kind", "node", "under"];
    for (place, parameter) in kind.parameters.iter().enumerate() {
        let refuse =
            |why| Err(RegisterError::BadParameter { kind: kind.name(), parameter: parameter.name, why });
        if RESERVED.contains(&parameter.name) {
            return refuse("every scheduler has this key");
        }
        if kind.parameters[..place].iter().any(|other| other.name == parameter.name) {
            return refuse("it has one of that name");
        }
        if parameter.values == Values::Parent && parameter.name != Parameter::TAKES.name {
            return refuse("only \"takes\" names a parent");
        }
        if parameter.values == Values::Plan && parameter.name != Parameter::PLAN.name {
            return refuse("only \"plan\" is a plan");
        }
        let others = all().into_iter().filter(|other| *other != kind);
        let mut same = others.filter_map(|other| other.parameter(parameter.name));
        if same.any(|other| other.values != parameter.values) {
            return refuse("another kind has one of that name with other values");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parameters_are_one_kinds_own() {
        static MINE: Declaration = Declaration { name: "mine", synonyms: &["my-own"], ..Declaration::PLAIN };
        let mine = register(&MINE).expect("nobody has it");
        assert_eq!(SchedulerKind::named("my-own"), Some(mine));
        assert_eq!("mine".parse(), Ok(mine));
        assert!(all().ends_with(&[mine]));

        static AGAIN: Declaration = Declaration { name: "other", synonyms: &["mine"], ..Declaration::PLAIN };
        assert_eq!(register(&AGAIN), Err(RegisterError::Taken { name: "mine", of: mine }));
        assert_eq!(SchedulerKind::named("other"), None);

        static BUILT_IN: Declaration = Declaration { name: "sfq", ..Declaration::PLAIN };
        let taken = register(&BUILT_IN).expect_err("there is one");
        assert!(taken.to_string().contains("\"sfq\" is that of the kind sfq"), "{taken}");

        static SPACED: Declaration = Declaration { name: "My own", ..Declaration::PLAIN };
        assert_eq!(register(&SPACED), Err(RegisterError::BadName("My own")));

        static CLASH: Declaration = Declaration {
            name: "clash",
            parameters: &[Parameter { values: Values::Parent, ..Parameter::QUANTUM }],
            ..Declaration::PLAIN
        };
        assert!(matches!(register(&CLASH), Err(RegisterError::BadParameter { parameter: "quantum", .. })));
    }
}
