//! Constraints as programs: a flat list of instructions of one size that only jump forward, and pools of what they name.
//!
//! Truth values go through a flag, all others through an accumulator and a stack of a size known beforehand, for left operands whose right
//! operand has to be computed first. Since no jump leads back, an evaluation executes each instruction at most once; what depends on the
//! data (how long strings are, how many elements or names there are) draws on a budget of steps, and ends in an error when that is used
//! up.
//!
//! ```text
//! threshold < 20 and $domain_name == 'Plant'
//!
//!   0  TestShort < name 0, constant 0        threshold, looked up by name; 20. Goes on with 2, or with 3 where that does not hold
//!   1  JumpIfFalse 3
//!   2  TestAt == position 3, constant 1      the domain's name, at its position; 'Plant'. Goes on with 3
//! ```

mod evaluate;
mod operate;
mod path;

pub(crate) use path::{Labelled, Origin, PathCode, PathStep};

use crate::fault::{Fault, FaultKind};
use crate::problem::Span;
use crate::syntax::{Arithmetic, Relation};
use crate::value::{Filterable, Value};
use std::fmt;
use std::marker::PhantomData;
use talea_time::Instant;

/// Bytes of strings that are compared or searched in one step.
pub const BYTES_PER_STEP: usize = 32;

/// The largest stack of a program; an expression has at most as many levels.
pub(crate) const STACK_MOST: usize = crate::Limits::GREATEST.depth;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Flags how the part of the event at a position compares with a constant. Most constraints are made of this and the next two, so these
    /// take the shortest way, jumps included.
    TestAt(Relation, u16, u16, Then),
    /// Flags how what the event has under a name compares with a constant.
    TestShort(Relation, u16, u16, Then),
    /// Flags how what the name/value list at a position has under a name compares with a constant: position, name, constant.
    TestPicked(Relation, u16, u16, u16, Then),
    /// Flags how what is at a path compares with a constant.
    Test(Relation, u16, u16),
    /// Flags how what is at two paths compares, of which a bare name may be that of a label.
    Named(Relation, u16, u16),
    /// Goes on elsewhere if the flag is false.
    JumpIfFalse(u16),
    /// Goes on elsewhere if the flag is true.
    JumpIfTrue(u16),
    /// Takes an operand into the accumulator.
    Load(Operand),
    /// Puts the accumulator onto the stack.
    Push,
    /// Flags how a left operand compares with a right one.
    Compare(Relation, Operand),
    /// Takes what a left operand and a right one give into the accumulator.
    Calculate(Arithmetic, Operand),
    /// Flags whether a right operand contains a left one.
    Substring(Operand),
    /// Flags whether the sequence at a path contains the accumulator.
    In(u16),
    /// Flags whether there is something at a path.
    Exist(u16),
    /// Flags whether the default arm of the union at a path is active.
    Default(u16),
    /// Turns the flag around.
    Not,
    /// Takes the accumulator, which has to be a boolean, into the flag.
    ToFlag,
    /// Takes the flag into the accumulator.
    FromFlag,
    /// Ends in an error that was known beforehand.
    Fail(u16),
}

/// Where a program goes on after a test, behind all jumps that follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Then {
    pub(crate) holds: u16,
    pub(crate) fails: u16,
}

/// An operation with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Compare(Relation),
    Arithmetic(Arithmetic),
    Substring,
}

impl Operator {
    pub(crate) fn op(self, right: Operand) -> Op {
        match self {
            Operator::Compare(relation) => Op::Compare(relation, right),
            Operator::Arithmetic(operator) => Op::Calculate(operator, right),
            Operator::Substring => Op::Substring(right),
        }
    }
}

/// Where the right operand of an operation is, or one that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// In the accumulator, with the left operand on the stack. Else the left one is in the accumulator.
    Stack,
    /// In the pool of constants.
    Constant(u16),
    /// At a path.
    Path(u16),
}

/// A value that is written out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    Boolean(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(Box<str>),
}

impl Constant {
    #[inline]
    fn value(&self) -> Value<'_> {
        match self {
            Constant::Boolean(value) => Value::Boolean(*value),
            Constant::Integer(value) => Value::Integer(*value),
            Constant::Unsigned(value) => Value::Unsigned(*value),
            Constant::Float(value) => Value::Float(*value),
            Constant::Text(text) => Value::Text(text),
        }
    }
}

/// Instructions and pools, whatever type they are for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// Where in the text each instruction comes from.
    pub(crate) spans: Vec<Span>,
    /// Where the left operand of each instruction stands.
    pub(crate) left_spans: Vec<Span>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) names: Vec<Box<str>>,
    /// Errors that were known beforehand.
    pub(crate) faults: Vec<FaultKind>,
    pub(crate) paths: Vec<PathCode>,
    /// The steps of all paths.
    pub(crate) steps: Vec<PathStep>,
    pub(crate) step_spans: Vec<Span>,
    /// How many left operands are on the stack at most.
    pub(crate) stack: usize,
    /// Steps of the instructions, if each is executed.
    pub(crate) fixed_steps: u32,
    /// Steps beside these that depend on the data.
    pub(crate) data_steps: u32,
    pub(crate) data: DataUse,
}

/// Which instructions take steps that depend on the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataUse {
    /// How often what the event has under a name is looked up.
    pub(crate) lookups: u32,
    /// How often the same is done in a list of which it is known how many names it has at most.
    pub(crate) picks: u32,
    /// How many names these lists have at most, all together.
    pub(crate) picked: u32,
    /// Steps of comparing strings with those that are written out.
    pub(crate) written: u32,
    /// Whether others do, of which nothing is known beforehand.
    pub(crate) is_open: bool,
}

impl DataUse {
    /// The most steps that it takes, if they are known beforehand.
    pub(crate) fn most(self) -> Option<u32> {
        (!self.is_open && self.lookups == 0).then(|| self.picked.saturating_add(self.written))
    }
}

impl Code {
    /// Tells each test where the jumps behind it lead. All instructions are there.
    pub(crate) fn thread_jumps(&mut self) {
        for at in 0..self.ops.len() {
            let behind =
                Then { holds: self.behind_jumps(at + 1, true), fails: self.behind_jumps(at + 1, false) };
            if let Op::TestAt(.., then) | Op::TestShort(.., then) | Op::TestPicked(.., then) =
                &mut self.ops[at]
            {
                *then = behind;
            }
        }
    }

    /// The first instruction from `at` on that is executed with this flag and is no jump.
    fn behind_jumps(&self, mut at: usize, flag: bool) -> u16 {
        loop {
            at = match self.ops.get(at) {
                Some(Op::JumpIfFalse(target)) if !flag => usize::from(*target),
                Some(Op::JumpIfTrue(target)) if flag => usize::from(*target),
                Some(Op::JumpIfFalse(_) | Op::JumpIfTrue(_)) => at + 1,
                _ => return at as u16,
            };
        }
    }
}

/// A constraint that can be evaluated on values of `T`.
///
/// Evaluation neither allocates nor locks nor panics, and takes at most [`steps`](Self::steps) steps.
pub struct Program<T> {
    pub(crate) code: Code,
    of: PhantomData<fn(&T)>,
}

impl<T> Clone for Program<T> {
    fn clone(&self) -> Self {
        Program { code: self.code.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Program<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)
    }
}

impl<T: Filterable> Program<T> {
    pub(crate) fn new(code: Code) -> Self {
        Program { code, of: PhantomData }
    }

    /// Whether the constraint holds for `event` at the instant `now`, which is what `$curtime` stands for.
    ///
    /// # Errors
    /// A part that had to be evaluated could not be. In a filter this counts as no match.
    pub fn evaluate(&self, event: &T, now: Instant) -> Result<bool, Fault> {
        self.code.holds(event, now)
    }

    /// The value of an expression, which need not be a boolean and has been compiled for its value.
    pub(crate) fn value<'a>(&'a self, event: &'a T, now: Instant) -> Result<Value<'a>, Fault> {
        self.code.value(event, now)
    }

    /// The most steps that an evaluation takes, whatever the event has; known when the program is made.
    ///
    /// A step is an instruction, a step of a path, an element or name that is looked at, or [`BYTES_PER_STEP`] bytes of a string that is
    /// compared or searched. Where it is known beforehand how many of these there are, that is all: instructions and steps of paths, comparisons with strings
    /// that are written out, and lists of [`Filterable::most_names`]. Else it is the limit that the constraint was parsed with, and an evaluation that would take
    /// more ends in [`FaultKind::TooManySteps`].
    pub fn steps(&self) -> u32 {
        self.code.fixed_steps + self.code.data_steps
    }

    /// The most steps that an evaluation takes on events that have no more than so many names which are looked up, wherever that is, with numbers or booleans
    /// under them. No more than [`steps`](Self::steps), which holds of all events.
    pub fn steps_with_numbers(&self, names: usize) -> u32 {
        let DataUse { lookups, picks, picked, written, is_open } = self.code.data;
        if is_open {
            return self.steps();
        }
        let names = u32::try_from(names).unwrap_or(u32::MAX);
        let looked_up = lookups.saturating_mul(names).saturating_add(picks.saturating_mul(names).min(picked));
        let data = looked_up.saturating_add(written);
        self.code.fixed_steps + data.min(self.code.data_steps)
    }

    /// How many operands wait on the stack at most.
    pub fn stack(&self) -> usize {
        self.code.stack
    }
}

/// An evaluation under way: what it may still spend on data, and why the last path led nowhere.
///
/// Paths give an `Option` and leave the reason here: values stay where they were written, instead of being copied from one result
/// type into another, which took most of the time of an evaluation.
#[derive(Debug)]
struct Attempt {
    steps_left: u32,
    why: FaultKind,
    /// The step of the path at which it could be followed no longer; `None` is its root.
    step: Option<usize>,
}

impl Attempt {
    fn new(steps: u32) -> Self {
        Attempt { steps_left: steps, why: FaultKind::Missing, step: None }
    }

    /// Takes `steps` from what is left.
    #[inline]
    fn charge(&mut self, steps: usize) -> Result<(), FaultKind> {
        match u32::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps)) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(FaultKind::TooManySteps),
        }
    }

    /// Takes the steps of looking at so many bytes.
    #[inline]
    fn charge_bytes(&mut self, bytes: usize) -> Result<(), FaultKind> {
        self.charge(bytes / BYTES_PER_STEP)
    }

    /// The same for a path.
    #[inline]
    fn afford(&mut self, steps: usize) -> Option<()> {
        match self.charge(steps) {
            Ok(()) => Some(()),
            Err(kind) => self.stop(kind),
        }
    }

    /// A path that leads nowhere.
    #[inline]
    fn stop<T>(&mut self, why: FaultKind) -> Option<T> {
        self.why = why;
        None
    }
}
