//! Expressions as text, which parses to the same tree. Parentheses stand only where the tree needs them.

use super::KEYWORDS;
use super::tree::{Arithmetic, Expression, Literal, Node, Path, Root, Selector, StepKind};
use std::fmt::{self, Display, Formatter, Write};

/// How tightly a node binds; an operand has to bind as tightly as its place asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Compare,
    In,
    Substring,
    Sum,
    Term,
    Unary,
    Factor,
}

fn binding(node: &Node) -> Binding {
    match node {
        Node::Or(_) => Binding::Or,
        Node::And(_) => Binding::And,
        Node::Compare(..) => Binding::Compare,
        Node::In(..) => Binding::In,
        Node::Substring(..) => Binding::Substring,
        Node::Arithmetic(_, rest) => match rest.first() {
            Some((Arithmetic::Multiply | Arithmetic::Divide, _)) => Binding::Term,
            _ => Binding::Sum,
        },
        Node::Not(_) => Binding::Unary,
        Node::Literal(_) | Node::Path(_) | Node::Exist(_) | Node::Default(_) => Binding::Factor,
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Or(operands) => chain(f, operands, " or ", Binding::And),
            Node::And(operands) => chain(f, operands, " and ", Binding::Compare),
            Node::Not(operand) => {
                f.write_str("not ")?;
                within(f, operand, Binding::Factor)
            }
            Node::Compare(relation, left, right) => {
                within(f, left, Binding::In)?;
                write!(f, " {} ", relation.symbol())?;
                within(f, right, Binding::In)
            }
            Node::In(element, path) => {
                within(f, element, Binding::Substring)?;
                write!(f, " in {path}")
            }
            Node::Substring(left, right) => {
                within(f, left, Binding::Sum)?;
                f.write_str(" ~ ")?;
                within(f, right, Binding::Sum)
            }
            Node::Arithmetic(first, rest) => {
                let operand =
                    if binding(&self.node) == Binding::Term { Binding::Unary } else { Binding::Term };
                within(f, first, operand)?;
                for (operator, expression) in rest {
                    write!(f, " {} ", operator.symbol())?;
                    within(f, expression, operand)?;
                }
                Ok(())
            }
            Node::Literal(literal) => literal.fmt(f),
            Node::Path(path) => path.fmt(f),
            Node::Exist(path) => write!(f, "exist {path}"),
            Node::Default(path) => write!(f, "default {path}._d"),
        }
    }
}

fn chain(f: &mut Formatter<'_>, operands: &[Expression], between: &str, least: Binding) -> fmt::Result {
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        within(f, operand, least)?;
    }
    Ok(())
}

fn within(f: &mut Formatter<'_>, operand: &Expression, least: Binding) -> fmt::Result {
    if binding(&operand.node) < least { write!(f, "({operand})") } else { operand.fmt(f) }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Literal::Integer(value) => value.fmt(f),
            Literal::Unsigned(value) => value.fmt(f),
            // With a point or an exponent, and as many digits as it takes to read the same number.
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Text(text) => quoted(f, text),
        }
    }
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for letter in text.chars() {
        if matches!(letter, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(letter)?;
    }
    f.write_char('\'')
}

/// A name, with a `\` before it if it would be a keyword otherwise.
struct Name<'a>(&'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if KEYWORDS.contains(&self.0) {
            f.write_char('\\')?;
        }
        f.write_str(self.0)
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Event => f.write_char('$')?,
            Root::Dollar(name) => write!(f, "${}", Name(name))?,
            Root::Bare(name) => Name(name).fmt(f)?,
        }
        self.steps.iter().try_for_each(|step| step.kind.fmt(f))
    }
}

impl Display for StepKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StepKind::Member(name) => write!(f, ".{}", Name(name)),
            StepKind::Position(position) => write!(f, ".{position}"),
            StepKind::Index(index) => write!(f, "[{index}]"),
            StepKind::Pick(name) => write!(f, "({})", Name(name)),
            StepKind::Arm(Selector::Default) => f.write_str(".()"),
            StepKind::Arm(Selector::Number(number)) => write!(f, ".({number})"),
            StepKind::Arm(Selector::Text(text)) => {
                f.write_str(".(")?;
                quoted(f, text)?;
                f.write_char(')')
            }
            StepKind::Length => f.write_str("._length"),
            StepKind::Discriminator => f.write_str("._d"),
            StepKind::TypeId => f.write_str("._type_id"),
            StepKind::RepositoryId => f.write_str("._repos_id"),
        }
    }
}
