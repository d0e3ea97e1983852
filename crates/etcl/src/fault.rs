//! Why an evaluation has no result.

use crate::problem::Span;
use crate::value::Category;
use std::fmt;

/// An evaluation that ended in an error. In a filter that is no match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub kind: FaultKind,
    /// The part of the constraint that could not be evaluated.
    pub span: Span,
}

/// Why a part of a constraint could not be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The event has nothing under this name, or an optional value is absent.
    Missing,
    /// A label that the enumeration does not have.
    UnknownLabel,
    /// Another arm of the union is active.
    InactiveArm,
    /// The path goes on as if there were something else.
    Shape {
        /// What there is.
        found: Category,
    },
    /// A type without a name or identifier was asked for it.
    Unnamed,
    /// An index or position at or above how many there are.
    Index {
        /// How many there are.
        length: u32,
    },
    /// An operator has an operand that it does not take.
    Operand {
        /// What there is.
        found: Category,
    },
    /// Two things that cannot be compared.
    Incomparable {
        /// What is on the left.
        left: Category,
        /// What is on the right.
        right: Category,
    },
    /// Labels of different enumerations.
    DifferentEnums,
    /// The whole, or an operand of `and`, `or` or `not`, is no boolean.
    NotBoolean {
        /// What there is.
        found: Category,
    },
    /// A division by zero.
    DivisionByZero,
    /// A result that 64 bits cannot hold.
    Overflow,
    /// More steps than an evaluation may take.
    TooManySteps,
}

impl FaultKind {
    /// Whether `exist` takes it as the answer no.
    pub(crate) fn is_absence(self) -> bool {
        matches!(
            self,
            FaultKind::Missing
                | FaultKind::InactiveArm
                | FaultKind::Shape { .. }
                | FaultKind::Unnamed
                | FaultKind::Index { .. }
        )
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            FaultKind::Missing => "ask first: exist name and ...; names are case-sensitive",
            FaultKind::UnknownLabel => "check the label's spelling; labels are case-sensitive",
            FaultKind::InactiveArm => "ask first for the discriminator ._d",
            FaultKind::Shape { .. } => {
                "write .name or .0 for members, [0] for elements, (name) for a property, .(selector) for arms"
            }
            FaultKind::Unnamed => "ask only types with names for ._type_id and ._repos_id",
            FaultKind::Index { .. } => "ask first for ._length",
            FaultKind::Operand { .. } => "+ - * / take numbers, ~ takes strings, in takes a sequence",
            FaultKind::Incomparable { .. } => {
                "compare numbers with numbers, strings with strings, labels with labels or integers"
            }
            FaultKind::DifferentEnums => "compare labels of one enumeration",
            FaultKind::NotBoolean { .. } => {
                "compare it with something; note that not binds tighter than ==: write not (a == b)"
            }
            FaultKind::DivisionByZero => "ask first whether the divisor is 0",
            FaultKind::Overflow => "calculate with floats: 1.0 * x",
            FaultKind::TooManySteps => "compare shorter strings and sequences, or grant more steps",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Missing => f.write_str("the event has no such value"),
            FaultKind::UnknownLabel => {
                f.write_str("this is neither a property nor a label of the enumeration")
            }
            FaultKind::InactiveArm => f.write_str("another arm of the union is active"),
            FaultKind::Shape { found } => write!(f, "{found} has nothing of this kind"),
            FaultKind::Unnamed => f.write_str("the type has none"),
            FaultKind::Index { length } => write!(f, "there are only {length}, counted from 0"),
            FaultKind::Operand { found } => write!(f, "{found} cannot be an operand here"),
            FaultKind::Incomparable { left, right } => write!(f, "{left} cannot be compared with {right}"),
            FaultKind::DifferentEnums => f.write_str("labels of different enumerations cannot be compared"),
            FaultKind::NotBoolean { found } => write!(f, "expected a boolean, found {found}"),
            FaultKind::DivisionByZero => f.write_str("division by zero"),
            FaultKind::Overflow => f.write_str("the result does not fit 64 bits"),
            FaultKind::TooManySteps => f.write_str("too many steps"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at bytes {} to {}: {}; {}", self.span.start, self.span.end, self.kind, self.kind.remedy())
    }
}

impl std::error::Error for Fault {}
