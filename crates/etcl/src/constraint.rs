//! A constraint: its text, its tree, and what it is compiled to.

use crate::compile::{Compiled, Wanted, compile};
use crate::limits::Limits;
use crate::problem::{Problem, ProblemKind, Span};
use crate::program::Program;
use crate::syntax::{Expression, parse};
use crate::value::Filterable;
use std::fmt;
use std::str::FromStr;

/// An expression that follows the grammar.
///
/// Printed, it has parentheses only where they are needed, and parses to the same tree.
#[derive(Clone, Debug)]
pub struct Constraint {
    text: String,
    expression: Expression,
    limits: Limits,
}

impl Constraint {
    /// Reads `text` within the [default limits](Limits::DEFAULT). Nothing but spaces is the constraint `TRUE`.
    ///
    /// # Errors
    /// It does not follow the grammar, or is larger than the limits permit.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::parse_within(text, Limits::DEFAULT)
    }

    /// The same within other limits.
    ///
    /// # Errors
    /// The same, or the limits cannot be granted.
    pub fn parse_within(text: &str, limits: Limits) -> Result<Self, Problem> {
        let limits = limits.checked().map_err(|error| {
            let remedy = "choose limits below Limits::GREATEST";
            Problem::new(ProblemKind::Limit, text, Span::default(), error.to_string(), remedy)
        })?;
        let expression = parse(text, &limits)?;
        Ok(Constraint { text: text.into(), expression, limits })
    }

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The program for events of type `T`.
    ///
    /// # Errors
    /// A part that is certain to be evaluated cannot be without an error: operands of types that the operator does not take, or a name that
    /// `T` does not have. Or the program takes more steps than the limits permit.
    pub fn compile<T: Filterable>(&self) -> Result<Program<T>, Problem> {
        self.compile_with_warnings().map(|(program, _)| program)
    }

    /// The same, with what is probably a mistake but does not keep the constraint from matching: parts that end in an error if
    /// evaluation comes to them, which `and` or `or` before them may prevent, and `exist` of what the type never has.
    ///
    /// # Errors
    /// The same.
    pub fn compile_with_warnings<T: Filterable>(&self) -> Result<(Program<T>, Vec<Problem>), Problem> {
        let Compiled { code, warnings } =
            compile::<T>(&self.expression, &self.text, &self.limits, Wanted::Boolean)?;
        Ok((Program::new(code), warnings))
    }

    /// The program of a part of the expression, whose value may be of any kind.
    ///
    /// # Errors
    /// It takes more steps than the limits permit.
    pub(crate) fn compile_part<T: Filterable>(&self, part: &Expression) -> Result<Program<T>, Problem> {
        compile::<T>(part, &self.text, &self.limits, Wanted::Any).map(|compiled| Program::new(compiled.code))
    }
}

impl FromStr for Constraint {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        Self::parse(text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}
