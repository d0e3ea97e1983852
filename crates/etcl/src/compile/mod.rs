//! From trees to programs, with the checks that need no event.
//!
//! A part that cannot be evaluated without an error, whatever comes, makes the constraint refused if it is certain to be evaluated. If it stands
//! behind an `and` or `or` that may stop before it, as in `TRUE or 1/0`, the constraint is accepted with a warning.

mod check;
mod emit;
mod paths;

use crate::fault::FaultKind;
use crate::limits::Limits;
use crate::problem::{Problem, ProblemKind, Span};
use crate::program::{Code, DataUse, Op, Operand};
use crate::syntax::{Expression, Node};
use crate::value::{Category, Filterable};
use std::marker::PhantomData;

/// What the whole has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// True or false, as a constraint.
    Boolean,
    /// Anything, as a part of one.
    Any,
}

/// A program and what is doubtful about it.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    pub(crate) warnings: Vec<Problem>,
}

/// The program of `expression`, which stands in `text`, for events of type `T`.
///
/// # Errors
/// A part that is certain to be evaluated cannot be without an error, or the program takes too many steps.
pub(crate) fn compile<T: Filterable>(
    expression: &Expression,
    text: &str,
    limits: &Limits,
    wanted: Wanted,
) -> Result<Compiled, Problem> {
    let mut compiler = Compiler::<T>::new(text);
    let fact = match wanted {
        Wanted::Boolean => compiler.truth(expression),
        Wanted::Any => compiler.expression(expression),
    };
    match wanted {
        Wanted::Boolean => {
            if let Some(problem) = fact.fails {
                return Err(*problem);
            }
        }
        // A part is run for its value, or for the error that it has.
        Wanted::Any => compiler.ensure_value(expression),
    }
    let Compiler { mut code, warnings, data, .. } = compiler;
    code.thread_jumps();
    match limits.evaluation_steps.checked_sub(code.fixed_steps) {
        Some(left) => {
            code.data_steps = data.most().map_or(left, |most| most.min(left));
            code.data = data;
        }
        None => {
            let message = format!(
                "an evaluation takes {} steps; at most {} are granted",
                code.fixed_steps, limits.evaluation_steps
            );
            let remedy = "write less, or grant more steps";
            return Err(Problem::new(ProblemKind::Limit, text, expression.span, message, remedy));
        }
    }
    Ok(Compiled { code, warnings })
}

/// What is known of a part before there is an event.
struct Fact {
    category: Option<Category>,
    /// What it is, if it is always the same boolean.
    constant: Option<bool>,
    /// Why it always ends in an error.
    fails: Option<Box<Problem>>,
}

impl Fact {
    fn of(category: Option<Category>) -> Self {
        Fact { category, constant: None, fails: None }
    }

    fn boolean() -> Self {
        Self::of(Some(Category::Boolean))
    }
}

/// A path that leads nowhere in any event of the type.
struct Dead {
    problem: Box<Problem>,
    fault: FaultKind,
}

/// Whether what a part gives is in the accumulator, and not in the flag.
fn is_value(part: &Expression) -> bool {
    matches!(part.node, Node::Path(_) | Node::Arithmetic(..) | Node::Literal(_))
}

struct Compiler<'a, T> {
    text: &'a str,
    code: Code,
    warnings: Vec<Problem>,
    /// How many left operands are on the stack.
    height: usize,
    /// Which instructions take steps that depend on the data.
    data: DataUse,
    of: PhantomData<fn(&T)>,
}

impl<'a, T: Filterable> Compiler<'a, T> {
    fn new(text: &'a str) -> Self {
        Compiler {
            text,
            code: Code::default(),
            warnings: Vec::new(),
            height: 0,
            data: DataUse::default(),
            of: PhantomData,
        }
    }

    fn problem(&self, kind: ProblemKind, span: Span, message: String, remedy: &str) -> Box<Problem> {
        Box::new(Problem::new(kind, self.text, span, message, remedy))
    }

    /// The text of a part.
    fn quoted(&self, span: Span) -> &'a str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// Ensures that what the part gives is in the accumulator.
    fn ensure_value(&mut self, part: &Expression) {
        if !is_value(part) {
            self.push(Op::FromFlag, part.span);
        }
    }

    fn push(&mut self, op: Op, span: Span) {
        self.push_with_left(op, span, span);
    }

    /// An instruction for a part that stands at `span` and its left operand at `left`.
    fn push_with_left(&mut self, op: Op, span: Span, left: Span) {
        match op {
            Op::Push => {
                self.height += 1;
                self.code.stack = self.code.stack.max(self.height);
            }
            Op::Compare(_, Operand::Stack)
            | Op::Calculate(_, Operand::Stack)
            | Op::Substring(Operand::Stack) => {
                self.height -= 1;
            }
            _ => {}
        }
        self.code.fixed_steps += 1;
        self.code.ops.push(op);
        self.code.spans.push(span);
        self.code.left_spans.push(left);
    }
}
