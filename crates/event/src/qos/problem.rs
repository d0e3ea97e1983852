//! What is wrong with a property.

use std::fmt;

/// What is wrong with a property, in the standard's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QosError {
    /// There is such a property, and this service does not have it (`UNSUPPORTED_PROPERTY`).
    UnsupportedProperty,
    /// The property cannot be set at this level (`UNAVAILABLE_PROPERTY`).
    UnavailableProperty,
    /// The value makes sense, and this service does not have it (`UNSUPPORTED_VALUE`).
    UnsupportedValue,
    /// The value makes sense, and not together with others (`UNAVAILABLE_VALUE`).
    UnavailableValue,
    /// There is no property of this name (`BAD_PROPERTY`).
    BadProperty,
    /// The value is of another kind (`BAD_TYPE`).
    BadType,
    /// The value is outside of what is allowed (`BAD_VALUE`).
    BadValue,
}

/// A problem with one property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosProblem {
    /// The name of the property, as it was given.
    pub property: String,
    /// The class of the problem.
    pub error: QosError,
    /// What is allowed instead.
    pub allowed: String,
}

impl fmt::Display for QosProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QosProblem { property, error, allowed } = self;
        let what = match error {
            QosError::UnsupportedProperty => "is not supported",
            QosError::UnavailableProperty => "cannot be set at this level",
            QosError::UnsupportedValue => "has a value that is not supported",
            QosError::UnavailableValue => "has a value that does not go together with others",
            QosError::BadProperty => "is no property",
            QosError::BadType => "has a value of another kind",
            QosError::BadValue => "has a value outside of what is allowed",
        };
        write!(f, "{property} {what}: {allowed}")
    }
}

/// All problems with what was to be set. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosProblems(pub Vec<QosProblem>);

impl fmt::Display for QosProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for QosProblems {}
