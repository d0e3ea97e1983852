//! A second evaluator, as naive as can be, of its own trees and values. It was written from the language's description and has nothing of the
//! crate: it prints its trees itself, with parentheses around everything, and looks values up in its own data.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(String),
    Seq(Vec<Datum>),
    /// The name of the type, which is also its identifier, and the members.
    Struct(Option<String>, Vec<(String, Datum)>),
    List(Vec<(String, Datum)>),
    Pair(String, Box<Datum>),
    /// The number of the enumeration, and the position of the label.
    Enum(usize, usize),
    Union {
        disc: Box<Datum>,
        labels: Vec<Datum>,
        member: String,
        default: bool,
        value: Box<Datum>,
    },
}

/// The labels of the enumerations.
pub const ENUMS: [(&str, &[&str]); 2] = [("Color", &["RED", "GREEN", "BLUE"]), ("Grade", &["LOW", "RED"])];

/// An event: three names, two lists, and a rest.
#[derive(Clone, Debug)]
pub struct World {
    pub domain: String,
    pub kind: String,
    pub event: String,
    pub header: Vec<(String, Datum)>,
    pub data: Vec<(String, Datum)>,
    pub rest: Option<Datum>,
    pub now: i64,
}

/// A path: how it begins, and its steps.
#[derive(Clone, Debug)]
pub struct Way(pub Start, pub Vec<Go>);

#[derive(Clone, Debug)]
pub enum Start {
    Dollar(String),
    Bare(String),
    Whole,
}

#[derive(Clone, Debug)]
pub enum Go {
    Dot(String),
    Nth(usize),
    Index(usize),
    Pick(String),
    ArmDefault,
    ArmInt(i64),
    ArmStr(String),
    Length,
    Disc,
    TypeId,
    ReposId,
}

#[derive(Clone, Debug)]
pub enum Tree {
    Or(Vec<Tree>),
    And(Vec<Tree>),
    Not(Box<Tree>),
    /// With one of `== != < <= > >= + - * / ~`.
    Two(&'static str, Box<Tree>, Box<Tree>),
    In(Box<Tree>, Way),
    Lit(Datum),
    At(Way),
    Exist(Way),
    /// Of the union at the path, without `._d`.
    Default(Way),
}

/// An error; which one does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong;

type Result<T> = std::result::Result<T, Wrong>;

fn named<'d>(pairs: &'d [(String, Datum)], name: &str) -> Option<&'d Datum> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, datum)| datum)
}

fn string(text: &str) -> Datum {
    Datum::Str(text.into())
}

impl World {
    /// `$name` and `name`.
    fn property(&self, name: &str) -> Result<Datum> {
        named(&self.header, name).or_else(|| named(&self.data, name)).cloned().ok_or(Wrong)
    }

    fn fixed(&self, name: &str) -> Option<Datum> {
        match name {
            "domain_name" => Some(string(&self.domain)),
            "type_name" => Some(string(&self.kind)),
            "event_name" => Some(string(&self.event)),
            "curtime" => Some(Datum::Int(self.now)),
            _ => None,
        }
    }

    /// The event as the struct that it is.
    fn whole(&self) -> Datum {
        let of = |name: &str, members: Vec<(&str, Datum)>| {
            let members = members.into_iter().map(|(name, datum)| (name.to_string(), datum)).collect();
            Datum::Struct(Some(name.into()), members)
        };
        let event_type =
            of("EventType", vec![("domain_name", string(&self.domain)), ("type_name", string(&self.kind))]);
        let fixed =
            of("FixedEventHeader", vec![("event_type", event_type), ("event_name", string(&self.event))]);
        let header = of(
            "EventHeader",
            vec![("fixed_header", fixed), ("variable_header", Datum::List(self.header.clone()))],
        );
        let mut members = vec![("header", header), ("filterable_data", Datum::List(self.data.clone()))];
        members.extend(self.rest.clone().map(|rest| ("remainder_of_body", rest)));
        of("StructuredEvent", members)
    }

    fn follow(&self, Way(start, steps): &Way) -> Result<Datum> {
        let (mut here, steps) = match (start, &steps[..]) {
            (Start::Bare(name), steps) => (self.property(name)?, steps),
            (Start::Dollar(name), steps) => {
                (self.fixed(name).map_or_else(|| self.property(name), Ok)?, steps)
            }
            (Start::Whole, [Go::Dot(name), rest @ ..])
                if !["header", "filterable_data", "remainder_of_body"].contains(&&**name) =>
            {
                (self.fixed(name).map_or_else(|| self.property(name), Ok)?, rest)
            }
            (Start::Whole, steps) => (self.whole(), steps),
        };
        for step in steps {
            here = go(here, step)?;
        }
        Ok(here)
    }

    /// Both sides of a comparison; a bare name that is no property becomes a label if the other side is an enumeration.
    fn sides(&self, left: &Tree, right: &Tree) -> Result<(Datum, Datum)> {
        let label = |tree: &Tree| match tree {
            Tree::At(Way(Start::Bare(name), steps)) if steps.is_empty() && self.property(name).is_err() => {
                Some(name.clone())
            }
            _ => None,
        };
        let as_label = |name: &str, other: &Datum| match other {
            Datum::Enum(of, _) => {
                let position = ENUMS[*of].1.iter().position(|known| *known == name).ok_or(Wrong)?;
                Ok(Datum::Enum(*of, position))
            }
            _ => Err(Wrong),
        };
        match (label(left), label(right)) {
            (Some(_), Some(_)) => Err(Wrong),
            (Some(name), None) => {
                let right = self.value(right)?;
                Ok((as_label(&name, &right)?, right))
            }
            (None, Some(name)) => {
                let left = self.value(left)?;
                let right = as_label(&name, &left)?;
                Ok((left, right))
            }
            (None, None) => Ok((self.value(left)?, self.value(right)?)),
        }
    }

    fn truth(&self, tree: &Tree) -> Result<bool> {
        match self.value(tree)? {
            Datum::Bool(value) => Ok(value),
            _ => Err(Wrong),
        }
    }

    fn value(&self, tree: &Tree) -> Result<Datum> {
        Ok(match tree {
            Tree::Lit(datum) => datum.clone(),
            Tree::At(way) => self.follow(way)?,
            Tree::Exist(way) => Datum::Bool(self.follow(way).is_ok()),
            Tree::Default(way) => match self.follow(way)? {
                Datum::Union { default, .. } => Datum::Bool(default),
                _ => return Err(Wrong),
            },
            Tree::Not(operand) => Datum::Bool(!self.truth(operand)?),
            Tree::And(operands) => {
                for operand in operands {
                    if !self.truth(operand)? {
                        return Ok(Datum::Bool(false));
                    }
                }
                Datum::Bool(true)
            }
            Tree::Or(operands) => {
                for operand in operands {
                    if self.truth(operand)? {
                        return Ok(Datum::Bool(true));
                    }
                }
                Datum::Bool(false)
            }
            Tree::In(element, way) => {
                let element = self.value(element)?;
                let Datum::Seq(elements) = self.follow(way)? else { return Err(Wrong) };
                if is_composite(&element) {
                    return Err(Wrong);
                }
                Datum::Bool(elements.iter().any(|one| order(&element, one) == Ok(Some(Ordering::Equal))))
            }
            Tree::Two("~", left, right) => match (self.value(left)?, self.value(right)?) {
                (Datum::Str(left), Datum::Str(right)) => {
                    let (left, right) = (left.as_bytes(), right.as_bytes());
                    let is_there = (0..=right.len()).any(|from| right[from..].starts_with(left));
                    Datum::Bool(is_there)
                }
                _ => return Err(Wrong),
            },
            Tree::Two(operator @ ("+" | "-" | "*" | "/"), left, right) => {
                calculate(operator, &self.value(left)?, &self.value(right)?)?
            }
            Tree::Two(operator, left, right) => {
                let (left, right) = self.sides(left, right)?;
                let order = order(&left, &right)?;
                Datum::Bool(match *operator {
                    "==" => order.is_some_and(Ordering::is_eq),
                    "!=" => !order.is_some_and(Ordering::is_eq),
                    "<" => order.is_some_and(Ordering::is_lt),
                    "<=" => order.is_some_and(Ordering::is_le),
                    ">" => order.is_some_and(Ordering::is_gt),
                    _ => order.is_some_and(Ordering::is_ge),
                })
            }
        })
    }

    /// Whether the whole holds.
    pub fn judge(&self, tree: &Tree) -> Result<bool> {
        self.truth(tree)
    }
}

fn is_composite(datum: &Datum) -> bool {
    matches!(
        datum,
        Datum::Seq(_) | Datum::Struct(..) | Datum::List(_) | Datum::Pair(..) | Datum::Union { .. }
    )
}

/// An integer of any kind.
fn integer(datum: &Datum) -> Option<i128> {
    match datum {
        Datum::Int(value) => Some((*value).into()),
        Datum::Uint(value) => Some((*value).into()),
        _ => None,
    }
}

fn float(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Float(value) => Some(*value),
        Datum::Int(value) => Some(*value as f64),
        Datum::Uint(value) => Some(*value as f64),
        _ => None,
    }
}

fn order(left: &Datum, right: &Datum) -> Result<Option<Ordering>> {
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        return Ok(Some(left.cmp(&right)));
    }
    if let (Some(left), Some(right)) = (float(left), float(right)) {
        return Ok(left.partial_cmp(&right));
    }
    match (left, right) {
        (Datum::Str(left), Datum::Str(right)) => Ok(Some(left.as_bytes().cmp(right.as_bytes()))),
        (Datum::Bool(left), Datum::Bool(right)) => Ok(Some(u8::from(*left).cmp(&u8::from(*right)))),
        (Datum::Enum(a, left), Datum::Enum(b, right)) if a == b => Ok(Some(left.cmp(right))),
        (Datum::Enum(_, left), right) => Ok(Some((*left as i128).cmp(&integer(right).ok_or(Wrong)?))),
        (left, Datum::Enum(_, right)) => Ok(Some(integer(left).ok_or(Wrong)?.cmp(&(*right as i128)))),
        _ => Err(Wrong),
    }
}

fn calculate(operator: &str, left: &Datum, right: &Datum) -> Result<Datum> {
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        let exact = match operator {
            "+" => a + b,
            "-" => a - b,
            // A product of two 64-bit numbers needs 128 bits without a sign at most where both are unsigned.
            "*" => a.checked_mul(b).ok_or(Wrong)?,
            _ if b == 0 => return Err(Wrong),
            _ => a / b,
        };
        let may_be_unsigned = matches!(left, Datum::Uint(_)) || matches!(right, Datum::Uint(_));
        return match i64::try_from(exact) {
            Ok(signed) => Ok(Datum::Int(signed)),
            Err(_) if may_be_unsigned => u64::try_from(exact).map(Datum::Uint).map_err(|_| Wrong),
            Err(_) => Err(Wrong),
        };
    }
    let (a, b) = (float(left).ok_or(Wrong)?, float(right).ok_or(Wrong)?);
    let result = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        _ if b == 0.0 => return Err(Wrong),
        _ => a / b,
    };
    if a.is_finite() && b.is_finite() && !result.is_finite() { Err(Wrong) } else { Ok(Datum::Float(result)) }
}

fn go(here: Datum, step: &Go) -> Result<Datum> {
    let selected = |int: Option<i64>, text: Option<&str>, by: &Datum| match by {
        Datum::Enum(of, at) => int == Some(*at as i64) || text.is_some_and(|text| ENUMS[*of].1[*at] == text),
        Datum::Str(label) => text == Some(label),
        other => int.is_some() && integer(other) == int.map(i128::from),
    };
    let arm = |int: Option<i64>, text: Option<&str>| match &here {
        Datum::Union { disc, labels, value, .. } => {
            let is_selected =
                labels.iter().any(|label| selected(int, text, label)) || selected(int, text, disc);
            if is_selected { Ok((**value).clone()) } else { Err(Wrong) }
        }
        _ => Err(Wrong),
    };
    match (step, &here) {
        (Go::Dot(name), Datum::Struct(_, members)) => named(members, name).cloned().ok_or(Wrong),
        (Go::Dot(name), Datum::Union { member, value, .. }) if member == name => Ok((**value).clone()),
        (Go::Dot(name), Datum::Pair(key, _)) if name == "name" => Ok(string(key)),
        (Go::Dot(name), Datum::Pair(_, value)) if name == "value" => Ok((**value).clone()),
        (Go::Nth(at), Datum::Struct(_, members)) => {
            members.get(*at).map(|(_, datum)| datum.clone()).ok_or(Wrong)
        }
        (Go::Nth(0), Datum::Pair(key, _)) => Ok(string(key)),
        (Go::Nth(1), Datum::Pair(_, value)) => Ok((**value).clone()),
        (Go::Index(at), Datum::Seq(elements)) => elements.get(*at).cloned().ok_or(Wrong),
        (Go::Index(at), Datum::List(pairs)) => {
            pairs.get(*at).map(|(name, datum)| Datum::Pair(name.clone(), datum.clone().into())).ok_or(Wrong)
        }
        (Go::Pick(name), Datum::List(pairs)) => named(pairs, name).cloned().ok_or(Wrong),
        (Go::ArmDefault, Datum::Union { default: true, value, .. }) => Ok((**value).clone()),
        (Go::ArmInt(number), _) => arm(Some(*number), None),
        (Go::ArmStr(text), _) => arm(None, Some(text)),
        (Go::Length, Datum::Seq(elements)) => Ok(Datum::Int(elements.len() as i64)),
        (Go::Length, Datum::List(pairs)) => Ok(Datum::Int(pairs.len() as i64)),
        (Go::Disc, Datum::Union { disc, .. }) => Ok((**disc).clone()),
        (Go::TypeId, Datum::Struct(Some(name), _)) => Ok(string(name)),
        (Go::TypeId, Datum::Enum(of, _)) => Ok(string(ENUMS[*of].0)),
        (Go::ReposId, Datum::Struct(Some(name), _)) => Ok(string(&repository_id(name))),
        (Go::ReposId, Datum::Enum(of, _)) => Ok(string(&repository_id(ENUMS[*of].0))),
        _ => Err(Wrong),
    }
}

/// The identifier of a type: those of the notification service have theirs.
pub fn repository_id(name: &str) -> String {
    let is_ours = ["StructuredEvent", "EventHeader", "FixedEventHeader", "EventType"].contains(&name);
    let module = if is_ours { "omg.org/CosNotification" } else { "test" };
    format!("IDL:{module}/{name}:1.0")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl Display for Tree {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let all = |operands: &[Tree], word: &str| {
            operands.iter().map(|operand| format!("({operand})")).collect::<Vec<_>>().join(word)
        };
        match self {
            Tree::Or(operands) => f.write_str(&all(operands, " or ")),
            Tree::And(operands) => f.write_str(&all(operands, " and ")),
            Tree::Not(operand) => write!(f, "not ({operand})"),
            Tree::Two(operator, left, right) => {
                // A name in parentheses is a name.
                write!(f, "({left}) {operator} ({right})")
            }
            Tree::In(element, way) => write!(f, "({element}) in {way}"),
            Tree::Lit(Datum::Bool(value)) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Tree::Lit(Datum::Int(value)) => write!(f, "{value}"),
            Tree::Lit(Datum::Uint(value)) => write!(f, "{value}"),
            Tree::Lit(Datum::Float(value)) => write!(f, "{value:e}"),
            Tree::Lit(Datum::Str(text)) => f.write_str(&quoted(text)),
            Tree::Lit(other) => panic!("{other:?} cannot be written out"),
            Tree::At(way) => write!(f, "{way}"),
            Tree::Exist(way) => write!(f, "exist {way}"),
            Tree::Default(way) => write!(f, "default {way}._d"),
        }
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Start::Bare(name) => f.write_str(name)?,
            Start::Dollar(name) => write!(f, "${name}")?,
            Start::Whole => f.write_str("$")?,
        }
        for step in &self.1 {
            match step {
                Go::Dot(name) => write!(f, ".{name}"),
                Go::Nth(at) => write!(f, ".{at}"),
                Go::Index(at) => write!(f, "[{at}]"),
                Go::Pick(name) => write!(f, "({name})"),
                Go::ArmDefault => f.write_str(".()"),
                Go::ArmInt(number) => write!(f, ".({number})"),
                Go::ArmStr(text) => write!(f, ".({})", quoted(text)),
                Go::Length => f.write_str("._length"),
                Go::Disc => f.write_str("._d"),
                Go::TypeId => f.write_str("._type_id"),
                Go::ReposId => f.write_str("._repos_id"),
            }?;
        }
        Ok(())
    }
}
