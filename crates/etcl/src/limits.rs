//! How large a constraint may be, and how long an evaluation may take.

use thiserror::Error;

/// What a constraint may have, and what an evaluation may do. Constraints come from other programs and from people; these bounds keep
/// them from taking memory or time that nobody granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text.
    pub length_bytes: usize,
    /// Parts of the expression: operations, names, steps of paths and literals.
    pub nodes: usize,
    /// Levels of the expression, parentheses within each other, and steps of one path.
    pub depth: usize,
    /// Bytes of one string literal, without its quotes.
    pub string_bytes: usize,
    /// Bytes of one name.
    pub identifier_bytes: usize,
    /// Steps of one evaluation; [`Program::steps`](crate::Program::steps) says what a step is.
    pub evaluation_steps: u32,
}

impl Limits {
    /// Enough for filters that people write: 4 KiB of text, 512 parts, 32 levels, strings of 1 KiB, names of 128 bytes, 4096 steps.
    pub const DEFAULT: Limits = Limits {
        length_bytes: 4 << 10,
        nodes: 512,
        depth: 32,
        string_bytes: 1 << 10,
        identifier_bytes: 128,
        evaluation_steps: 4096,
    };

    /// The most that each of them can be: programs count in 16 bits, and recursion over an expression has to fit small stacks.
    pub const GREATEST: Limits = Limits {
        length_bytes: 1 << 20,
        nodes: 16 << 10,
        depth: 64,
        string_bytes: 1 << 16,
        identifier_bytes: 1 << 10,
        evaluation_steps: 1 << 24,
    };

    /// These limits, unless one of them is above [`GREATEST`](Self::GREATEST).
    ///
    /// # Errors
    /// The first that is.
    pub fn checked(self) -> Result<Self, LimitsError> {
        let greatest = Self::GREATEST;
        let pairs = [
            ("length_bytes", self.length_bytes, greatest.length_bytes),
            ("nodes", self.nodes, greatest.nodes),
            ("depth", self.depth, greatest.depth),
            ("string_bytes", self.string_bytes, greatest.string_bytes),
            ("identifier_bytes", self.identifier_bytes, greatest.identifier_bytes),
            ("evaluation_steps", self.evaluation_steps as usize, greatest.evaluation_steps as usize),
        ];
        match pairs.into_iter().find(|(_, value, most)| value > most) {
            Some((limit, value, most)) => Err(LimitsError { limit, value, most }),
            None => Ok(self),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A limit that cannot be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the limit {limit} = {value} is above {most}, the most that there can be; choose a lower one")]
pub struct LimitsError {
    /// The field of [`Limits`].
    pub limit: &'static str,
    /// What it is.
    pub value: usize,
    /// The most that it can be.
    pub most: usize,
}
