//! A constraint part by part: what each is in an event, and which one has an error.

use crate::constraint::Constraint;
use crate::fault::Fault;
use crate::problem::{Problem, Span};
use crate::syntax::{Expression, Node};
use crate::value::{Filterable, Value};
use talea_time::Instant;

/// A part of a constraint as it is in one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// How many parts it stands in.
    pub depth: usize,
    /// Where in the text.
    pub span: Span,
    /// The part as it is written, in one line.
    pub text: String,
    /// Whether it is a literal, which shows its value itself.
    pub is_literal: bool,
    /// What became of it.
    pub outcome: PartOutcome,
}

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartOutcome {
    /// Its value, as it would be written.
    Value(String),
    /// A bare name that stands for a label.
    Label,
    /// It has none.
    Fault(Fault),
    /// Evaluation did not come to it.
    Skipped,
}

impl Constraint {
    /// What each part of the constraint is in `event` at the instant `now`, from the whole down, in the order of the text. Parts
    /// are evaluated one by one, which takes longer than evaluating the whole and is meant for people.
    ///
    /// # Errors
    /// A part takes more steps than the limits permit.
    pub fn explain<T: Filterable>(&self, event: &T, now: Instant) -> Result<Vec<Part>, Problem> {
        let mut parts = Vec::new();
        self.explain_part(self.expression(), (event, now), (0, true), &mut parts)?;
        Ok(parts)
    }

    fn explain_part<T: Filterable>(
        &self,
        part: &Expression,
        (event, now): (&T, Instant),
        (depth, is_reached): (usize, bool),
        parts: &mut Vec<Part>,
    ) -> Result<Ended, Problem> {
        let program = self.compile_part::<T>(part)?;
        let (outcome, ended) = match program.value(event, now) {
            _ if !is_reached => (PartOutcome::Skipped, Ended::Fault),
            Ok(value) => (PartOutcome::Value(value.to_string()), Ended::of(value)),
            Err(fault) => (PartOutcome::Fault(fault), Ended::Fault),
        };
        let whole = parts.len();
        let is_literal = matches!(part.node, Node::Literal(_));
        parts.push(Part { depth, span: part.span, text: part.to_string(), is_literal, outcome });
        let mut is_reached = is_reached;
        for operand in part.operands() {
            let ended_operand = self.explain_part(operand, (event, now), (depth + 1, is_reached), parts)?;
            is_reached &= match &part.node {
                Node::And(_) => ended_operand == Ended::True,
                Node::Or(_) => ended_operand == Ended::False,
                // A missing name may be a label, in which case the whole has a value.
                Node::Compare(..) => ended_operand != Ended::Fault || is_label(operand),
                _ => ended_operand != Ended::Fault,
            };
        }
        if matches!(part.node, Node::Compare(..)) && matches!(parts[whole].outcome, PartOutcome::Value(_)) {
            for operand in &mut parts[whole + 1..] {
                if operand.depth == depth + 1 && matches!(operand.outcome, PartOutcome::Fault(_)) {
                    operand.outcome = PartOutcome::Label;
                }
            }
        }
        Ok(ended)
    }
}

/// How the evaluation of a part ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    True,
    False,
    Other,
    Fault,
}

impl Ended {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Boolean(true) => Ended::True,
            Value::Boolean(false) => Ended::False,
            _ => Ended::Other,
        }
    }
}

fn is_label(part: &Expression) -> bool {
    matches!(&part.node, Node::Path(path) if path.bare_name().is_some())
}
