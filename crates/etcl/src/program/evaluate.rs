//! Executing a program on an event.

use super::operate::{calculate, compare, contains, is_substring, ordinal, test};
use super::{Attempt, Code, Labelled, Op, Operand, Origin, PathCode};
use crate::fault::{Fault, FaultKind};
use crate::problem::Span;
use crate::syntax::Relation;
use crate::value::{Filterable, Node, Value};
use talea_time::Instant;

/// What a program leaves: which of both means something, its compiler knows.
pub(super) struct Outcome<'a> {
    pub(super) flag: bool,
    pub(super) value: Value<'a>,
}

impl Code {
    /// Executes the program, which needs no more than `STACK` places.
    #[inline]
    pub(super) fn run<'a, T: Filterable, const STACK: usize>(
        &'a self,
        event: &'a T,
        now: Instant,
    ) -> Result<Outcome<'a>, Fault> {
        let attempt = &mut Attempt::new(self.data_steps);
        let mut flag = true;
        let mut value = Value::Boolean(true);
        let (mut stack, mut height) = ([value; STACK], 0);
        let mut next = 0;
        // Both operands of an operation.
        macro_rules! operands {
            ($operand:expr) => {
                match $operand {
                    Operand::Stack => {
                        height -= 1;
                        (stack[height], value)
                    }
                    other => (value, self.operand(other, event, now, attempt)?),
                }
            };
        }
        // How what was found compares with a constant. It is not moved from where it was written.
        macro_rules! tested {
            ($relation:expr, $found:expr, $constant:expr, $at:expr, $absent:expr) => {
                match test($relation, &$found, &self.constants[usize::from($constant)], attempt) {
                    Some(Ok(holds)) => holds,
                    Some(Err(kind)) => return Err(self.fault(kind, $at)),
                    None => return Err($absent),
                }
            };
        }
        while let Some(op) = self.ops.get(next) {
            let at = next;
            next += 1;
            match *op {
                Op::TestAt(relation, position, constant) => {
                    let found = event.at(usize::from(position));
                    flag = tested!(relation, found, constant, at, self.left_fault(FaultKind::Missing, at));
                }
                Op::TestShort(relation, name, constant) => {
                    if let Err(kind) = attempt.charge(event.short_names()) {
                        return Err(self.left_fault(kind, at));
                    }
                    let found = event.short(&self.names[usize::from(name)]);
                    flag = tested!(relation, found, constant, at, self.left_fault(FaultKind::Missing, at));
                }
                Op::TestPicked(relation, position, name, constant) => {
                    attempt.why = FaultKind::Missing;
                    let found = self.pick(event.at(usize::from(position)), name, attempt);
                    flag = tested!(relation, found, constant, at, self.left_fault(attempt.why, at));
                }
                Op::Test(relation, path, constant) => {
                    let found = self.follow(self.path(path), event, now, attempt);
                    flag = tested!(relation, found, constant, at, self.astray(path, attempt));
                }
                Op::JumpIfFalse(target) => {
                    if !flag {
                        next = usize::from(target);
                    }
                }
                Op::JumpIfTrue(target) => {
                    if flag {
                        next = usize::from(target);
                    }
                }
                Op::Load(operand) => value = self.operand(operand, event, now, attempt)?,
                Op::Compare(relation, operand) => {
                    let (left, right) = operands!(operand);
                    flag = compare(relation, left, right, attempt).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Calculate(operator, operand) => {
                    let (left, right) = operands!(operand);
                    value = calculate(operator, left, right).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Substring(operand) => {
                    let (left, right) = operands!(operand);
                    flag = is_substring(left, right, attempt).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Not => flag = !flag,
                Op::ToFlag => {
                    let Value::Boolean(truth) = value else {
                        return Err(self.fault(FaultKind::NotBoolean { found: value.category() }, at));
                    };
                    flag = truth;
                }
                Op::FromFlag => value = Value::Boolean(flag),
                Op::Push => {
                    stack[height] = value;
                    height += 1;
                }
                Op::Named(relation, left, right) => {
                    flag = self.named(relation, (left, right), event, now, attempt, at)?;
                }
                Op::In(path) => {
                    let found = self.at(path, event, now, attempt)?;
                    let Value::Sequence(sequence) = found else {
                        let kind = FaultKind::Operand { found: found.category() };
                        return Err(Fault { kind, span: self.path_span(path) });
                    };
                    flag = contains(sequence, value, attempt).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Exist(path) => {
                    flag = match self.follow(self.path(path), event, now, attempt) {
                        Some(_) => true,
                        None if attempt.why.is_absence() => false,
                        None => return Err(self.astray(path, attempt)),
                    };
                }
                Op::Default(path) => match self.at(path, event, now, attempt)? {
                    Value::Union(union) => flag = union.is_default_arm(),
                    other => {
                        let kind = FaultKind::Shape { found: other.category() };
                        return Err(Fault { kind, span: self.path_span(path) });
                    }
                },
                Op::Fail(fault) => return Err(self.fault(self.faults[usize::from(fault)], at)),
            }
        }
        Ok(Outcome { flag, value })
    }

    /// An operand that is not on the stack.
    #[inline]
    fn operand<'a, T: Filterable>(
        &'a self,
        operand: Operand,
        event: &'a T,
        now: Instant,
        attempt: &mut Attempt,
    ) -> Result<Value<'a>, Fault> {
        match operand {
            Operand::Path(path) => self.at(path, event, now, attempt),
            Operand::Constant(index) => Ok(self.constants[usize::from(index)].value()),
            Operand::Stack => Ok(Value::Boolean(true)),
        }
    }

    #[inline]
    fn path(&self, path: u16) -> &PathCode {
        &self.paths[usize::from(path)]
    }

    /// What there is at a path.
    #[inline]
    fn at<'a, T: Filterable>(
        &'a self,
        path: u16,
        event: &'a T,
        now: Instant,
        attempt: &mut Attempt,
    ) -> Result<Value<'a>, Fault> {
        match self.follow(self.path(path), event, now, attempt) {
            Some(value) => Ok(value),
            None => Err(self.astray(path, attempt)),
        }
    }

    /// Whether what is at two paths is in a relation; one of them may be a label of the other's enumeration.
    fn named<T: Filterable>(
        &self,
        relation: Relation,
        (left, right): (u16, u16),
        event: &T,
        now: Instant,
        attempt: &mut Attempt,
        at: usize,
    ) -> Result<bool, Fault> {
        let left_value = self.unless_label(left, event, now, attempt)?;
        let right_value = self.unless_label(right, event, now, attempt)?;
        let (left, right) = match (left_value, right_value) {
            (Some(left), Some(right)) => (left, right),
            (None, Some(Value::Enum(labels))) => (self.label(left, labels, attempt)?, Value::Enum(labels)),
            (Some(Value::Enum(labels)), None) => (Value::Enum(labels), self.label(right, labels, attempt)?),
            (None, _) => return Err(self.missing(left)),
            (_, None) => return Err(self.missing(right)),
        };
        compare(relation, left, right, attempt).map_err(|kind| self.fault(kind, at))
    }

    /// What there is at a path, or nothing if it is a bare name that may be that of a label.
    fn unless_label<'a, T: Filterable>(
        &'a self,
        path: u16,
        event: &'a T,
        now: Instant,
        attempt: &mut Attempt,
    ) -> Result<Option<Value<'a>>, Fault> {
        let code = self.path(path);
        if code.labelled == Labelled::Always {
            return Ok(None);
        }
        match self.follow(code, event, now, attempt) {
            Some(value) => Ok(Some(value)),
            None if attempt.why == FaultKind::Missing && code.labelled == Labelled::IfMissing => Ok(None),
            None => Err(self.astray(path, attempt)),
        }
    }

    /// The position of the label that the bare name at a path is in an enumeration.
    fn label(&self, path: u16, labels: &dyn Node, attempt: &mut Attempt) -> Result<Value<'static>, Fault> {
        let path = self.path(path);
        let name = match path.origin {
            Origin::Short(name) => &*self.names[usize::from(name)],
            _ => "",
        };
        let ordinal = ordinal(labels, name, attempt).map_err(|kind| Fault { kind, span: path.root_span })?;
        Ok(Value::Integer(ordinal.into()))
    }

    #[cold]
    fn fault(&self, kind: FaultKind, at: usize) -> Fault {
        Fault { kind, span: self.spans.get(at).copied().unwrap_or_default() }
    }

    #[cold]
    fn left_fault(&self, kind: FaultKind, at: usize) -> Fault {
        Fault { kind, span: self.left_spans.get(at).copied().unwrap_or_default() }
    }

    /// The fault of a path that leads nowhere: it stands where the path can be followed no longer.
    #[cold]
    fn astray(&self, path: u16, attempt: &Attempt) -> Fault {
        let span = attempt.step.map_or(self.path(path).root_span, |step| self.step_spans[step]);
        Fault { kind: attempt.why, span }
    }

    #[cold]
    fn missing(&self, path: u16) -> Fault {
        Fault { kind: FaultKind::Missing, span: self.path(path).root_span }
    }

    fn path_span(&self, path: u16) -> Span {
        let path = self.path(path);
        match path.first == path.end {
            true => path.root_span,
            false => path.root_span.to(self.step_spans[usize::from(path.end) - 1]),
        }
    }
}
