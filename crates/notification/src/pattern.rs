//! Which types of events somebody is interested in.

use crate::event::EventType;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Types of events: a domain and a name, each of which may end with `*` for any rest.
///
/// ```
/// use talea_notification::{EventType, TypePattern};
///
/// let arms: TypePattern = "Robot/Arm*".parse()?;
/// assert!(arms.matches(&EventType::new("Robot", "ArmMoved")) && !arms.matches(&EventType::new("Robot", "Stop")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypePattern {
    domain: Part,
    name: Part,
    /// The number of the type, if it is one alone.
    exact: Option<usize>,
}

impl TypePattern {
    fn of(domain: Part, name: Part) -> Self {
        let exact = match (&domain, &name) {
            (Part::Is(domain), Part::Is(name)) => Some(EventType::new(domain, name).number()),
            _ => None,
        };
        TypePattern { domain, name, exact }
    }
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
        TypePattern::of(any(), any())
    }

    /// Types of this domain and name, in each of which a `*` at the end stands for any rest. As in the standard, an empty domain or name is any, and
    /// the name `%ALL` is, too.
    ///
    /// # Errors
    /// There is a `*` elsewhere.
    pub fn new(domain: &str, name: &str) -> Result<Self, TypePatternError> {
        let name = if name == "%ALL" { "*" } else { name };
        Ok(TypePattern::of(domain.parse()?, name.parse()?))
    }

    /// Whether the type is one of them.
    pub fn matches(&self, event_type: &EventType) -> bool {
        match self.exact {
            Some(number) => event_type.number() == number,
            None => self.domain.matches(event_type.domain()) && self.name.matches(event_type.name()),
        }
    }

    /// The type, if it is one alone.
    pub(crate) fn exact(&self) -> Option<EventType> {
        match (&self.domain, &self.name) {
            (Part::Is(domain), Part::Is(name)) => Some(EventType::new(domain, name)),
            _ => None,
        }
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

impl From<&EventType> for TypePattern {
    fn from(event_type: &EventType) -> Self {
        TypePattern::of(Part::Is(event_type.domain().into()), Part::Is(event_type.name().into()))
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
            pattern.parse::<TypePattern>().expect("a pattern").matches(&EventType::new(domain, name))
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
}
