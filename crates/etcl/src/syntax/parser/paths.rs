//! Paths: the rules `component`, `ext` and `dot`.

use super::{Parser, Read, integer};
use crate::problem::{ProblemKind, Span};
use crate::syntax::lexer::{Digits, Token};
use crate::syntax::tree::{Literal, Path, Root, Selector, Step, StepKind};

impl Parser<'_> {
    /// A path that begins with the `$` that is next.
    pub(super) fn component(&mut self) -> Read<Path> {
        let start = self.span;
        self.advance(Digits::Number)?;
        match self.token {
            Token::Name(name) => {
                let root_span = start.to(self.span);
                self.advance(Digits::Number)?;
                self.path(Root::Dollar(name.into()), start, root_span)
            }
            Token::Keyword(_) if !self.ends_operand() => {
                Err(self.expected("a name behind \"$\"", "write \\ before a name that is a keyword"))
            }
            _ => self.path(Root::Event, start, start),
        }
    }

    /// Whether the keyword that is next can stand behind an operand.
    fn ends_operand(&self) -> bool {
        ["and", "or", "in"].iter().any(|word| self.is_keyword(word))
    }

    /// The steps that follow a root.
    pub(super) fn path(&mut self, root: Root, start: Span, root_span: Span) -> Read<Path> {
        self.count(root_span)?;
        let mut steps: Vec<Step> = Vec::new();
        // Behind a point digits are a position, so what was read as a number is read once more.
        let is_dot = |parser: &Self| parser.lexer.text[parser.span.range()].starts_with('.');
        loop {
            let from = self.span;
            let kind = if is_dot(self) {
                self.span.end = self.span.start + 1;
                self.advance(Digits::Position)?;
                self.dot()?
            } else if self.is("[") {
                self.advance(Digits::Position)?;
                self.index()?
            } else if self.is("(") {
                self.advance(Digits::Number)?;
                self.pick()?
            } else {
                break;
            };
            self.count(from)?;
            if steps.len() >= self.lexer.limits.depth {
                return Err(self.too_deep(from));
            }
            let is_last = matches!(
                kind,
                StepKind::Length | StepKind::Discriminator | StepKind::TypeId | StepKind::RepositoryId
            );
            steps.push(Step { kind, span: from.to(self.last) });
            if is_last {
                break;
            }
        }
        Ok(Path { root, steps, span: start.to(self.last), root_span })
    }

    fn dot(&mut self) -> Read<StepKind> {
        let kind = match self.token {
            Token::Name(name) => StepKind::Member(name.into()),
            Token::Integer(position) => StepKind::Position(position),
            Token::Special("_length") => StepKind::Length,
            Token::Special("_d") => StepKind::Discriminator,
            Token::Special("_type_id") => StepKind::TypeId,
            Token::Special(_) => StepKind::RepositoryId,
            Token::Symbol("(") => {
                self.advance(Digits::Position)?;
                let selector = self.selector()?;
                if !self.is(")") {
                    return Err(self.expected("\")\" behind a union's selector", "close the parenthesis"));
                }
                StepKind::Arm(selector)
            }
            Token::Keyword(_) => {
                let remedy = "write \\ before a name that is a keyword";
                return Err(self.expected("a member behind \".\"", remedy));
            }
            _ => {
                let remedy = "write a name, a position, (selector), _length, _d, _type_id or _repos_id";
                return Err(self.expected("a member behind \".\"", remedy));
            }
        };
        self.advance(Digits::Number)?;
        Ok(kind)
    }

    fn selector(&mut self) -> Read<Selector> {
        let is_negative = self.is("-");
        let start = self.span;
        if is_negative || self.is("+") {
            self.advance(Digits::Position)?;
        } else if self.is(")") {
            return Ok(Selector::Default);
        }
        let selector = match std::mem::replace(&mut self.token, Token::End) {
            Token::Integer(number) => match integer(number, is_negative) {
                Some(Literal::Integer(number)) => Selector::Number(number),
                _ => {
                    let message = "expected a selector of at most 64 bits, found a larger one".into();
                    let span = start.to(self.span);
                    return Err(self.problem(
                        ProblemKind::Syntax,
                        span,
                        message,
                        "write one that a union can have",
                    ));
                }
            },
            Token::Text(text) if start == self.span => Selector::Text(text.into_owned()),
            other => {
                self.token = other;
                let remedy = "write a number, a string, or nothing for the default arm";
                return Err(self.expected("a union's selector", remedy));
            }
        };
        self.advance(Digits::Number)?;
        Ok(selector)
    }

    fn index(&mut self) -> Read<StepKind> {
        let Token::Integer(index) = self.token else {
            return Err(self.expected("an index behind \"[\"", "write a whole number from 0"));
        };
        self.advance(Digits::Number)?;
        if !self.is("]") {
            return Err(self.expected("\"]\" behind an index", "close the bracket; an index is one number"));
        }
        self.advance(Digits::Number)?;
        Ok(StepKind::Index(index))
    }

    fn pick(&mut self) -> Read<StepKind> {
        let Token::Name(name) = self.token else {
            let remedy = "write the name of a property without quotes, with \\ before it if it is a keyword";
            return Err(self.expected("a name behind \"(\"", remedy));
        };
        self.advance(Digits::Number)?;
        if !self.is(")") {
            return Err(self.expected("\")\" behind a name", "close the parenthesis"));
        }
        self.advance(Digits::Number)?;
        Ok(StepKind::Pick(name.into()))
    }
}
