//! Which types of events somebody is interested in.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Types of events: a domain and a name, each of which may end with `*` for any rest.
///
/// ```
/// use talea_event::TypePattern;
///
/// let arms: TypePattern = "Robot/Arm*".parse()?;
/// assert!(arms.matches("Robot", "ArmMoved") && !arms.matches("Robot", "Stop"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypePattern {
    domain: Part,
    name: Part,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Part {
    Is(Box<str>),
    BeginsWith(Box<str>),
}

impl Part {
    fn matches(&self, text: &str) -> bool {
        match self {
            Part::Is(whole) => text == &**whole,
            Part::BeginsWith(beginning) => text.starts_with(&**beginning),
        }
    }

    fn is_any(&self) -> bool {
        matches!(self, Part::BeginsWith(beginning) if beginning.is_empty())
    }

    fn covers(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Is(own), Part::Is(other)) => own == other,
            (Part::Is(_), Part::BeginsWith(_)) => false,
            (Part::BeginsWith(own), Part::Is(other) | Part::BeginsWith(other)) => other.starts_with(&**own),
        }
    }

    /// Texts that begin alike have one of two such parts within the other, or nothing in common.
    fn common(&self, other: &Part) -> Option<Part> {
        let narrower =
            if self.covers(other) { Some(other) } else { Some(self).filter(|own| other.covers(own)) };
        narrower.cloned()
    }
}

impl FromStr for Part {
    type Err = TypePatternError;

    fn from_str(text: &str) -> Result<Self, TypePatternError> {
        match text.strip_suffix('*').unwrap_or(text) {
            beginning if beginning.contains('*') => Err(TypePatternError { text: text.into() }),
            beginning if beginning.len() < text.len() => Ok(Part::BeginsWith(beginning.into())),
            "" => Ok(Part::BeginsWith("".into())),
            whole => Ok(Part::Is(whole.into())),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Is(whole) => f.write_str(whole),
            Part::BeginsWith(beginning) => write!(f, "{beginning}*"),
        }
    }
}

/// A `*` that is not at the end of a domain or name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" is no pattern of types: a * stands at the end of a domain or of a name, as in Robot/Arm*"
)]
pub struct TypePatternError {
    text: String,
}

impl TypePattern {
    /// All types.
    pub fn all() -> Self {
        let any = || Part::BeginsWith("".into());
        TypePattern { domain: any(), name: any() }
    }

    /// The type of this domain and name alone.
    pub fn exactly(domain: &str, name: &str) -> Self {
        TypePattern { domain: Part::Is(domain.into()), name: Part::Is(name.into()) }
    }

    /// Types of this domain and name, in each of which a `*` at the end stands for any rest. As in the standard, an empty domain or name is any, and
    /// the name `%ALL` is, too.
    ///
    /// # Errors
    /// There is a `*` elsewhere.
    pub fn new(domain: &str, name: &str) -> Result<Self, TypePatternError> {
        let name = if name == "%ALL" { "*" } else { name };
        Ok(TypePattern { domain: domain.parse()?, name: name.parse()? })
    }

    /// Whether the type of this domain and name is one of them.
    pub fn matches(&self, domain: &str, name: &str) -> bool {
        self.domain.matches(domain) && self.name.matches(name)
    }

    /// Domain and name of the type, if it is one alone.
    pub fn exact(&self) -> Option<(&str, &str)> {
        match (&self.domain, &self.name) {
            (Part::Is(domain), Part::Is(name)) => Some((domain, name)),
            _ => None,
        }
    }

    /// Whether each type that is one of `other` is one of these.
    pub fn covers(&self, other: &TypePattern) -> bool {
        self.domain.covers(&other.domain) && self.name.covers(&other.name)
    }

    /// The types that are of both; none if there can be none.
    pub fn common(&self, other: &TypePattern) -> Option<TypePattern> {
        let (domain, name) = (self.domain.common(&other.domain)?, self.name.common(&other.name)?);
        Some(TypePattern { domain, name })
    }

    /// Whether all types are.
    pub fn is_all(&self) -> bool {
        self.domain.is_any() && self.name.is_any()
    }
}

impl FromStr for TypePattern {
    type Err = TypePatternError;

    /// `domain/name`; without a slash, all names of a domain.
    fn from_str(text: &str) -> Result<Self, TypePatternError> {
        let (domain, name) = text.split_once('/').unwrap_or((text, "*"));
        TypePattern::new(domain, name)
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_say() {
        let matches = |pattern: &str, domain: &str, name: &str| {
            pattern.parse::<TypePattern>().expect("a pattern").matches(domain, name)
        };
        for (pattern, domain, name, expected) in [
            ("Robot/Arm*", "Robot", "Arm", true),
            ("Robot/Arm*", "Robot", "AXrm", false),
            ("Robot", "Robot", "Stop", true),
            ("Robot*/Stop", "RobotTwo", "Stop", true),
            ("Robot*/Stop", "RobotTwo", "Stopped", false),
            ("*", "a", "b", true),
            ("/Stop", "any", "Stop", true),
            ("Robot/%ALL", "Robot", "Stop", true),
        ] {
            assert_eq!(matches(pattern, domain, name), expected, "{pattern} and {domain}/{name}");
        }
        assert!("Ro*ot/Stop".parse::<TypePattern>().is_err() && "a/*b*".parse::<TypePattern>().is_err());
        assert!(TypePattern::all().is_all() && "*/%ALL".parse() == Ok(TypePattern::all()));
        assert_eq!("Robot/Arm*".parse::<TypePattern>().expect("a pattern").to_string(), "Robot/Arm*");
    }

    /// Every type of a small alphabet is of the common pattern if it is of both, and of what covers another whenever it
    /// is of that.
    #[test]
    fn what_patterns_have_in_common_and_cover_is_what_their_types_say() {
        let parts = ["*", "a", "a*", "ab", "ab*", "b*"];
        let texts = ["a", "b", "ab", "aba", "ba"];
        let pairs = |all: &[&str]| -> Vec<(String, String)> {
            all.iter().flat_map(|one| all.iter().map(|other| (one.to_string(), other.to_string()))).collect()
        };
        let patterns: Vec<TypePattern> = pairs(&parts)
            .iter()
            .map(|(domain, name)| TypePattern::new(domain, name).expect("a pattern"))
            .collect();
        let types = pairs(&texts);
        for one in &patterns {
            for other in &patterns {
                let of = |pattern: &TypePattern| -> Vec<bool> {
                    types.iter().map(|(domain, name)| pattern.matches(domain, name)).collect()
                };
                let both: Vec<bool> =
                    of(one).iter().zip(of(other)).map(|(one, other)| *one && other).collect();
                let common = one.common(other);
                assert_eq!(common, other.common(one));
                assert_eq!(common.as_ref().map_or(vec![false; types.len()], of), both, "{one} and {other}");
                assert_eq!(one.covers(other), common.as_ref() == Some(other), "{one} and {other}");
                if one.covers(other) {
                    assert_eq!(of(other), both, "{one} and {other}");
                }
            }
        }
    }
}
