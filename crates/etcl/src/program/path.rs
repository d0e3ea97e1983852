//! Paths as programs have them, and how they are followed.

use super::{Attempt, Code};
use crate::fault::FaultKind;
use crate::problem::Span;
use crate::value::{Filterable, Node, SelectorValue, Value};
use talea_time::Instant;

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The event as a whole.
    Whole,
    /// A part of the event at a position that is known.
    At(u16),
    /// What the event has under this name.
    Short(u16),
    /// What the name/value list at a position that is known has under a name.
    Picked(u16, u16),
    /// The instant of evaluation.
    Now,
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathCode {
    pub(crate) origin: Origin,
    /// Its first step, and the one behind its last.
    pub(crate) first: u16,
    pub(crate) end: u16,
    pub(crate) labelled: Labelled,
    /// Where its root stands in the text.
    pub(crate) root_span: Span,
}

/// Whether a path is a bare name that stands for a label where it is compared with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// It is none.
    Never,
    /// If the event has nothing of this name.
    IfMissing,
    /// The type has nothing of this name.
    Always,
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// The member at a position that is known from the type.
    At(u32),
    /// The member with a name.
    Member(u16),
    /// The member at a position.
    Position(u64),
    /// The element or pair at an index.
    Index(u64),
    /// The value of a name.
    Pick(u16),
    /// What the default arm has.
    DefaultArm,
    /// What the arm has that a number selects.
    ArmOfNumber(i64),
    /// What the arm has that a string or label selects.
    ArmOfText(u16),
    /// How many elements there are.
    Length,
    /// The discriminator.
    Discriminator,
    /// The name of the type.
    TypeId,
    /// The identifier of the type.
    RepositoryId,
}

impl Code {
    /// What there is at the path; if there is nothing, `attempt` knows why.
    #[inline]
    pub(super) fn follow<'a, T: Filterable>(
        &'a self,
        path: &PathCode,
        event: &'a T,
        now: Instant,
        attempt: &mut Attempt,
    ) -> Option<Value<'a>> {
        attempt.why = FaultKind::Missing;
        attempt.step = None;
        if path.first != path.end {
            return self.walk(path, event, now, attempt);
        }
        self.begin(path.origin, event, now, attempt)
    }

    #[inline]
    fn begin<'a, T: Filterable>(
        &'a self,
        origin: Origin,
        event: &'a T,
        now: Instant,
        attempt: &mut Attempt,
    ) -> Option<Value<'a>> {
        match origin {
            Origin::At(position) => event.at(usize::from(position)),
            Origin::Short(name) => {
                attempt.afford(event.short_names())?;
                event.short(&self.names[usize::from(name)])
            }
            Origin::Picked(position, name) => self.pick(event.at(usize::from(position)), name, attempt),
            Origin::Whole => Some(Value::Struct(event)),
            Origin::Now => Some(Value::Integer(now.as_nanos())),
        }
    }

    /// What a name/value list has under a name.
    #[inline]
    pub(super) fn pick<'a>(
        &'a self,
        list: Option<Value<'a>>,
        name: u16,
        attempt: &mut Attempt,
    ) -> Option<Value<'a>> {
        match &list {
            Some(Value::List(node)) => {
                attempt.afford(node.len())?;
                node.named(&self.names[usize::from(name)])
            }
            Some(other) => attempt.stop(FaultKind::Shape { found: other.category() }),
            None => None,
        }
    }

    /// The same with the steps of the path.
    fn walk<'a, T: Filterable>(
        &'a self,
        path: &PathCode,
        event: &'a T,
        now: Instant,
        attempt: &mut Attempt,
    ) -> Option<Value<'a>> {
        let beginning = self.begin(path.origin, event, now, attempt);
        self.walk_on(usize::from(path.first), usize::from(path.end), &beginning, attempt)
    }

    /// What there is behind the step `index` and those that follow. Each value stays in a place of its own, which a loop could not give
    /// it; there are no more steps than levels.
    fn walk_on<'a>(
        &'a self,
        index: usize,
        end: usize,
        from: &Option<Value<'a>>,
        attempt: &mut Attempt,
    ) -> Option<Value<'a>> {
        let Some(value) = from else { return None };
        attempt.step = Some(index);
        if index + 1 == end {
            return self.step(self.steps[index], value, attempt);
        }
        let next = self.step(self.steps[index], value, attempt);
        self.walk_on(index + 1, end, &next, attempt)
    }

    #[inline]
    fn step<'a>(&'a self, step: PathStep, value: &Value<'a>, attempt: &mut Attempt) -> Option<Value<'a>> {
        match (step, *value) {
            (PathStep::At(position), Value::Struct(node)) => node.at(position as usize),
            (PathStep::Pick(name), Value::List(node)) => {
                attempt.afford(node.len())?;
                node.named(&self.names[usize::from(name)])
            }
            (PathStep::Member(name), _) => self.member(&self.names[usize::from(name)], value, attempt),
            (PathStep::Position(position), Value::Struct(node)) => {
                node.at(below(position, node.len(), attempt)?)
            }
            (PathStep::Index(index), Value::Sequence(node)) => node.at(below(index, node.len(), attempt)?),
            (PathStep::Index(index), Value::List(node)) => node.pair(below(index, node.len(), attempt)?),
            (PathStep::DefaultArm, Value::Union(node)) => match node.is_default_arm() {
                true => node.at(0),
                false => attempt.stop(FaultKind::InactiveArm),
            },
            (PathStep::ArmOfNumber(number), Value::Union(node)) => {
                arm(node, SelectorValue::Number(number), attempt)
            }
            (PathStep::ArmOfText(name), Value::Union(node)) => {
                arm(node, SelectorValue::Text(&self.names[usize::from(name)]), attempt)
            }
            (PathStep::Length, Value::Sequence(node) | Value::List(node)) => {
                Some(Value::Integer(i64::try_from(node.len()).ok()?))
            }
            (PathStep::Discriminator, Value::Union(node)) => node.discriminator(),
            (
                PathStep::TypeId | PathStep::RepositoryId,
                Value::Enum(node) | Value::Struct(node) | Value::Union(node),
            ) => {
                attempt.why = FaultKind::Unnamed;
                let is_name = step == PathStep::TypeId;
                let name = if is_name { node.type_name() } else { node.repository_id() };
                name.map(Value::Text)
            }
            (_, other) => attempt.stop(FaultKind::Shape { found: other.category() }),
        }
    }

    fn member<'a>(&self, name: &str, value: &Value<'a>, attempt: &mut Attempt) -> Option<Value<'a>> {
        match *value {
            Value::Struct(node) => {
                attempt.afford(node.len())?;
                node.named(name)
            }
            Value::Union(node) => match node.name_at(0) == Some(name) {
                true => node.at(0),
                false => attempt.stop(FaultKind::InactiveArm),
            },
            other => attempt.stop(FaultKind::Shape { found: other.category() }),
        }
    }
}

fn arm<'a>(union: &'a dyn Node, selector: SelectorValue<'_>, attempt: &mut Attempt) -> Option<Value<'a>> {
    attempt.afford(union.selectors())?;
    match union.is_selected_by(selector) {
        true => union.at(0),
        false => attempt.stop(FaultKind::InactiveArm),
    }
}

/// The position, if it is below `length`.
fn below(position: u64, length: usize, attempt: &mut Attempt) -> Option<usize> {
    match usize::try_from(position) {
        Ok(position) if position < length => Some(position),
        _ => attempt.stop(FaultKind::Index { length: u32::try_from(length).unwrap_or(u32::MAX) }),
    }
}
