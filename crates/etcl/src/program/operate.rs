//! What operators do with two values.

use super::{Attempt, Constant};
use crate::fault::FaultKind;
use crate::syntax::{Arithmetic, Relation};
use crate::value::{Node, Value};
use std::cmp::Ordering;

impl Relation {
    /// Whether the relation holds between two things of this order; none at all is that of what is not a number.
    #[inline]
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        let bit = order.map_or(3, |order| order as i8 + 1);
        self as u8 >> bit & 1 != 0
    }
}

/// How what a path leads to compares with a constant, in a few instructions where both are of one kind; `None` if it leads nowhere.
///
/// The value is looked at where it was written: to move it would cost more than to compare it.
#[inline(always)]
pub(super) fn test(
    relation: Relation,
    found: &Option<Value<'_>>,
    constant: &Constant,
    attempt: &mut Attempt,
) -> Option<Result<bool, FaultKind>> {
    let holds = match (found, constant) {
        (Some(Value::Integer(left)), Constant::Integer(right)) => relation.holds(Some(left.cmp(right))),
        (Some(Value::Float(left)), Constant::Float(right)) => relation.holds(left.partial_cmp(right)),
        (Some(Value::Text(left)), Constant::Text(right)) => {
            if let Err(kind) = attempt.charge_bytes(left.len().min(right.len())) {
                return Some(Err(kind));
            }
            match relation {
                Relation::Equal => is_same(left, right),
                Relation::Unequal => !is_same(left, right),
                other => other.holds(Some((**left).cmp(&**right))),
            }
        }
        (Some(value), constant) => return Some(compare(relation, *value, constant.value(), attempt)),
        (None, _) => return None,
    };
    Some(Ok(holds))
}

/// Whether two values are in a relation.
pub(super) fn compare(
    relation: Relation,
    left: Value<'_>,
    right: Value<'_>,
    attempt: &mut Attempt,
) -> Result<bool, FaultKind> {
    order(left, right, attempt).map(|order| relation.holds(order))
}

/// The order of two values.
fn order(left: Value<'_>, right: Value<'_>, attempt: &mut Attempt) -> Result<Option<Ordering>, FaultKind> {
    Ok(Some(match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => left.cmp(&right),
        (Value::Float(left), Value::Float(right)) => return Ok(left.partial_cmp(&right)),
        (Value::Text(left), Value::Text(right)) => {
            attempt.charge_bytes(left.len().min(right.len()))?;
            left.cmp(right)
        }
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(&right),
        _ => return mixed_order(left, right, attempt),
    }))
}

fn mixed_order(
    left: Value<'_>,
    right: Value<'_>,
    attempt: &mut Attempt,
) -> Result<Option<Ordering>, FaultKind> {
    if let (Value::Enum(left), Value::Enum(right)) = (left, right) {
        return match is_same_type(left, right, attempt)? {
            true => Ok(Some(left.ordinal().cmp(&right.ordinal()))),
            false => Err(FaultKind::DifferentEnums),
        };
    }
    let incomparable = FaultKind::Incomparable { left: left.category(), right: right.category() };
    let number = |value| match value {
        Value::Enum(label) => Some(Number::Integer(i128::from(label.ordinal()))),
        other => Number::of(other),
    };
    let is_enum = |value: &Value<'_>| matches!(value, Value::Enum(_));
    let either_is_enum = is_enum(&left) || is_enum(&right);
    match (number(left), number(right)) {
        (Some(Number::Integer(left)), Some(Number::Integer(right))) => Ok(Some(left.cmp(&right))),
        (Some(left), Some(right)) if !either_is_enum => Ok(left.float().partial_cmp(&right.float())),
        _ => Err(incomparable),
    }
}

/// Whether two enumerations are one.
fn is_same_type(left: &dyn Node, right: &dyn Node, attempt: &mut Attempt) -> Result<bool, FaultKind> {
    let length = |text: Option<&str>| text.map_or(0, str::len);
    let (name, id) = (left.type_name(), left.repository_id());
    attempt.charge_bytes(length(name).saturating_add(length(id)))?;
    Ok(name == right.type_name() && id == right.repository_id())
}

/// A number in the widest form of its kind.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Integer(value) => Some(Number::Integer(i128::from(value))),
            Value::Unsigned(value) => Some(Number::Integer(i128::from(value))),
            Value::Float(value) => Some(Number::Float(value)),
            _ => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

/// The result of a calculation. Signed integers give signed ones; where one is unsigned, the result may also be.
pub(super) fn calculate(
    operator: Arithmetic,
    left: Value<'_>,
    right: Value<'_>,
) -> Result<Value<'static>, FaultKind> {
    let number = |value: Value<'_>| Number::of(value).ok_or(FaultKind::Operand { found: value.category() });
    match (number(left)?, number(right)?) {
        (Number::Integer(a), Number::Integer(b)) => {
            let is_unsigned = [left, right].iter().any(|value| matches!(value, Value::Unsigned(_)));
            integer(operator, a, b, is_unsigned)
        }
        (a, b) => float(operator, a.float(), b.float()),
    }
}

fn integer(
    operator: Arithmetic,
    left: i128,
    right: i128,
    is_unsigned: bool,
) -> Result<Value<'static>, FaultKind> {
    if operator == Arithmetic::Divide && right == 0 {
        return Err(FaultKind::DivisionByZero);
    }
    let exact = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right),
    }
    .ok_or(FaultKind::Overflow)?;
    match (i64::try_from(exact), u64::try_from(exact)) {
        (Ok(result), _) => Ok(Value::Integer(result)),
        (_, Ok(result)) if is_unsigned => Ok(Value::Unsigned(result)),
        _ => Err(FaultKind::Overflow),
    }
}

fn float(operator: Arithmetic, left: f64, right: f64) -> Result<Value<'static>, FaultKind> {
    let result = match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide if right == 0.0 => return Err(FaultKind::DivisionByZero),
        Arithmetic::Divide => left / right,
    };
    // What was infinite or no number before stays so.
    match result.is_finite() || !left.is_finite() || !right.is_finite() {
        true => Ok(Value::Float(result)),
        false => Err(FaultKind::Overflow),
    }
}

/// Whether `right` contains `left`. The search takes time in proportion to both, by the two-way algorithm of the standard library.
pub(super) fn is_substring(
    left: Value<'_>,
    right: Value<'_>,
    attempt: &mut Attempt,
) -> Result<bool, FaultKind> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            attempt.charge_bytes(left.len().saturating_add(right.len()))?;
            Ok(right.contains(left))
        }
        (Value::Text(_), other) | (other, _) => Err(FaultKind::Operand { found: other.category() }),
    }
}

/// Whether a sequence has an element that is equal. What cannot be compared is unequal.
pub(super) fn contains(
    sequence: &dyn Node,
    element: Value<'_>,
    attempt: &mut Attempt,
) -> Result<bool, FaultKind> {
    if matches!(element, Value::Sequence(_) | Value::Struct(_) | Value::List(_) | Value::Union(_)) {
        return Err(FaultKind::Operand { found: element.category() });
    }
    for position in 0..sequence.len() {
        attempt.charge(1)?;
        let Some(value) = sequence.at(position) else { continue };
        match order(element, value, attempt) {
            Ok(Some(Ordering::Equal)) => return Ok(true),
            Ok(_) | Err(FaultKind::Incomparable { .. } | FaultKind::DifferentEnums) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(false)
}

/// Where an enumeration has this label.
pub(super) fn ordinal(labels: &dyn Node, label: &str, attempt: &mut Attempt) -> Result<u32, FaultKind> {
    attempt.charge(labels.len())?;
    let position = labels.position(label).ok_or(FaultKind::UnknownLabel)?;
    u32::try_from(position).map_err(|_| FaultKind::UnknownLabel)
}

/// Whether two texts are the same. Up to 16 bytes are compared where they stand, which takes a third of the time of a call.
#[inline]
fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    // The first and the last bytes overlap, or meet.
    match left.len() {
        8..=16 => {
            left.first_chunk::<8>() == right.first_chunk::<8>()
                && left.last_chunk::<8>() == right.last_chunk::<8>()
        }
        4..=7 => {
            left.first_chunk::<4>() == right.first_chunk::<4>()
                && left.last_chunk::<4>() == right.last_chunk::<4>()
        }
        2 | 3 => {
            left.first_chunk::<2>() == right.first_chunk::<2>()
                && left.last_chunk::<2>() == right.last_chunk::<2>()
        }
        1 => left[0] == right[0],
        0 => true,
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_counts_at_each_length() {
        for length in 0..40 {
            let text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmn"[..length].to_owned();
            assert!(is_same(&text, &text.clone()));
            assert!(!is_same(&text, &format!("{text}x")) && !is_same(&format!("{text}x"), &text));
            for place in 0..length {
                let mut other = text.clone();
                other.replace_range(place..=place, "X");
                assert!(!is_same(&text, &other), "{text} {other}");
            }
        }
    }
}
