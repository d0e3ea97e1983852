//! Executing a program on an event.

use super::operate::{calculate, compare, contains, is_substring, ordinal, test};
use super::{Attempt, Code, Labelled, Op, Operand, Origin, PathCode, STACK_MOST, Then};
use crate::fault::{Fault, FaultKind};
use crate::problem::Span;
use crate::syntax::Relation;
use crate::value::{Filterable, Node, Value};
use talea_time::Instant;

/// What a program leaves: which of both means something, its compiler knows.
struct Outcome<'a> {
    flag: bool,
    value: Value<'a>,
}

/// How far a program has come, up to where it needs more than its flag.
struct Begun {
    next: usize,
    flag: bool,
    attempt: Attempt,
}

impl Code {
    /// Whether the program's flag is set in the end.
    #[inline]
    pub(super) fn holds<T: Filterable>(&self, event: &T, now: Instant) -> Result<bool, Fault> {
        let mut begun = self.begun();
        match self.begin_run(event, &mut begun)? {
            true => Ok(begun.flag),
            false => self.go_on(event, now, begun).map(|outcome| outcome.flag),
        }
    }

    /// The value that the program leaves.
    pub(super) fn value<'a, T: Filterable>(&'a self, event: &'a T, now: Instant) -> Result<Value<'a>, Fault> {
        self.go_on(event, now, self.begun()).map(|outcome| outcome.value)
    }

    #[inline]
    fn begun(&self) -> Begun {
        Begun { next: 0, flag: true, attempt: Attempt::new(self.data_steps) }
    }

    /// Executes the instructions that most constraints are made of, up to another one or the end. Returns whether that is the end. A loop for these
    /// alone keeps what it needs in registers, which one for all instructions does not.
    #[inline]
    fn begin_run<T: Filterable>(&self, event: &T, begun: &mut Begun) -> Result<bool, Fault> {
        let Begun { next, flag, attempt } = begun;
        let (mut at, mut holds) = (*next, *flag);
        while let Some(op) = self.ops.get(at) {
            let then = match *op {
                Op::TestAt(relation, position, constant, then) => {
                    attempt.why = FaultKind::Missing;
                    let found = event.at(usize::from(position));
                    holds = self.tested(relation, &found, constant, at, attempt)?;
                    then
                }
                Op::TestShort(relation, name, constant, then) => {
                    if let Err(kind) = attempt.charge(event.short_names()) {
                        return Err(self.left_fault(kind, at));
                    }
                    attempt.why = FaultKind::Missing;
                    let found = event.short(&self.names[usize::from(name)]);
                    holds = self.tested(relation, &found, constant, at, attempt)?;
                    then
                }
                Op::TestPicked(relation, position, name, constant, then) => {
                    attempt.why = FaultKind::Missing;
                    let found = self.pick(event.at(usize::from(position)), name, attempt);
                    holds = self.tested(relation, &found, constant, at, attempt)?;
                    then
                }
                Op::JumpIfFalse(target) => Then { holds: at as u16 + 1, fails: target },
                Op::JumpIfTrue(target) => Then { holds: target, fails: at as u16 + 1 },
                _ => {
                    (*next, *flag) = (at, holds);
                    return Ok(false);
                }
            };
            at = usize::from(if holds { then.holds } else { then.fails });
        }
        *flag = holds;
        Ok(true)
    }

    /// How what was found compares with a constant. It is not moved from where it was written.
    #[inline(always)]
    fn tested(
        &self,
        relation: Relation,
        found: &Option<Value<'_>>,
        constant: u16,
        at: usize,
        attempt: &mut Attempt,
    ) -> Result<bool, Fault> {
        match test(relation, found, &self.constants[usize::from(constant)], attempt) {
            Some(Ok(holds)) => Ok(holds),
            Some(Err(kind)) => Err(self.fault(kind, at)),
            None => Err(self.left_fault(attempt.why, at)),
        }
    }

    /// Executes the rest of the program.
    fn go_on<'a, T: Filterable>(
        &'a self,
        event: &'a T,
        now: Instant,
        begun: Begun,
    ) -> Result<Outcome<'a>, Fault> {
        // A stack is filled when it is made, so it is no larger than needed.
        match self.stack {
            0 => self.run::<T, 0>(event, now, begun),
            1..=4 => self.run::<T, 4>(event, now, begun),
            _ => self.run::<T, STACK_MOST>(event, now, begun),
        }
    }

    /// Executes the rest of a program that needs no more than `STACK` places. Never a part of its callers, which would share their frames with all of it.
    #[inline(never)]
    fn run<'a, T: Filterable, const STACK: usize>(
        &'a self,
        event: &'a T,
        now: Instant,
        mut begun: Begun,
    ) -> Result<Outcome<'a>, Fault> {
        let mut value = Value::Boolean(true);
        let (mut stack, mut height) = ([value; STACK], 0);
        loop {
            if self.begin_run(event, &mut begun)? {
                return Ok(Outcome { flag: begun.flag, value });
            }
            let Begun { next, flag, attempt } = &mut begun;
            let at = *next;
            *next += 1;
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
            match self.ops[at] {
                Op::TestAt(..)
                | Op::TestShort(..)
                | Op::TestPicked(..)
                | Op::JumpIfFalse(_)
                | Op::JumpIfTrue(_) => unreachable!("these have been executed"),
                Op::Test(relation, path, constant) => {
                    let found = self.follow(self.path(path), event, now, attempt);
                    *flag = match test(relation, &found, &self.constants[usize::from(constant)], attempt) {
                        Some(Ok(holds)) => holds,
                        Some(Err(kind)) => return Err(self.fault(kind, at)),
                        None => return Err(self.astray(path, attempt)),
                    };
                }
                Op::Load(operand) => value = self.operand(operand, event, now, attempt)?,
                Op::Compare(relation, operand) => {
                    let (left, right) = operands!(operand);
                    *flag = compare(relation, left, right, attempt).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Calculate(operator, operand) => {
                    let (left, right) = operands!(operand);
                    value = calculate(operator, left, right).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Substring(operand) => {
                    let (left, right) = operands!(operand);
                    *flag = is_substring(left, right, attempt).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Not => *flag = !*flag,
                Op::ToFlag => {
                    let Value::Boolean(truth) = value else {
                        return Err(self.fault(FaultKind::NotBoolean { found: value.category() }, at));
                    };
                    *flag = truth;
                }
                Op::FromFlag => value = Value::Boolean(*flag),
                Op::Push => {
                    stack[height] = value;
                    height += 1;
                }
                Op::Named(relation, left, right) => {
                    *flag = self.named(relation, (left, right), event, now, attempt, at)?;
                }
                Op::In(path) => {
                    let found = self.at(path, event, now, attempt)?;
                    let Value::Sequence(sequence) = found else {
                        let kind = FaultKind::Operand { found: found.category() };
                        return Err(Fault { kind, span: self.path_span(path) });
                    };
                    *flag = contains(sequence, value, attempt).map_err(|kind| self.fault(kind, at))?;
                }
                Op::Exist(path) => {
                    *flag = match self.follow(self.path(path), event, now, attempt) {
                        Some(_) => true,
                        None if attempt.why.is_absence() => false,
                        None => return Err(self.astray(path, attempt)),
                    };
                }
                Op::Default(path) => match self.at(path, event, now, attempt)? {
                    Value::Union(union) => *flag = union.is_default_arm(),
                    other => {
                        let kind = FaultKind::Shape { found: other.category() };
                        return Err(Fault { kind, span: self.path_span(path) });
                    }
                },
                Op::Fail(fault) => return Err(self.fault(self.faults[usize::from(fault)], at)),
            }
        }
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
