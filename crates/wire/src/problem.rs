//! What is wrong with bytes.

use thiserror::Error;

/// Bytes are no event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {at}: {problem}")]
pub struct WireError {
    /// Where, counted from 0.
    pub at: usize,
    /// What.
    pub problem: Problem,
}

/// What is wrong with it there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// It does not begin as an event does.
    #[error("this is no event, which begins with 54 45")]
    Mark,
    /// It is of another version.
    #[error("the event is of version {0}, and version 1 alone is read here; update the reader")]
    Version(u8),
    /// It says that it has parts that nobody knows.
    #[error("the event has parts that are not known here (flags {0:#06x})")]
    Flags(u16),
    /// It ends here although more has to follow.
    #[error("the event ends in the middle of {0}")]
    End(&'static str),
    /// More follows than the event has.
    #[error("{0} bytes follow the event")]
    Trailing(usize),
    /// The header is longer or shorter than it says.
    #[error("the header says that it has {said} bytes, and has {has}")]
    HeaderLength {
        /// As it says.
        said: usize,
        /// As it is.
        has: usize,
    },
    /// A number has more bytes than it needs, or more than there are in 64 bits.
    #[error("{0} is no number in its shortest form")]
    Number(&'static str),
    /// A number is outside of its range.
    #[error("{0} is outside of its range")]
    Range(&'static str),
    /// A part that is there says nothing, and would not be there then.
    #[error("{0} is there and says nothing")]
    Empty(&'static str),
    /// A text is no UTF-8.
    #[error("{0} is no UTF-8")]
    Utf8(&'static str),
    /// A byte says of which kind something is, and there is none of this number.
    #[error("{what} of kind {kind:#04x} is not known here")]
    Kind {
        /// Of what.
        what: &'static str,
        /// The byte.
        kind: u8,
    },
    /// Two properties, or two labels, have one name.
    #[error("there are two of the name {0}")]
    Duplicate(String),
    /// It is more than the reader's limits allow.
    #[error("{what}: {has} are more than the {most} that the reader allows")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// How many there are.
        has: usize,
        /// How many may be.
        most: usize,
    },
}
