//! Tokens, one at a time and from any place: what digits mean depends on what stands before them, and only the parser knows that.

use super::KEYWORDS;
use crate::limits::Limits;
use crate::problem::{Problem, ProblemKind, Span};
use std::borrow::Cow;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name, without a `\` before it.
    Name(&'a str),
    /// A word of the language.
    Keyword(&'static str),
    /// Digits.
    Integer(u64),
    /// A number with a point or an exponent.
    Float(f64),
    /// A string without quotes and escapes.
    Text(Cow<'a, str>),
    /// `_length` and its like.
    Special(&'static str),
    /// Anything else that has a meaning.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// How a message names it.
    pub(super) fn described(&self) -> String {
        match self {
            Token::Name(name) => format!("the name {name}"),
            Token::Keyword(word) => format!("the keyword {word}"),
            Token::Integer(number) => format!("the number {number}"),
            Token::Float(number) => format!("the number {number:?}"),
            Token::Text(_) => "a string".into(),
            Token::Special(name) => (*name).into(),
            Token::Symbol(symbol) => format!("\"{symbol}\""),
            Token::End => "the end".into(),
        }
    }
}

/// What digits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    /// A number, maybe with a point and an exponent.
    Number,
    /// A position or index: digits and nothing else.
    Position,
}

const SYMBOLS: [&str; 20] =
    ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", "$", ".", "+", "-", "*", "/", "~", "=", "!", "&"];
const SPECIAL: [&str; 4] = ["_length", "_d", "_type_id", "_repos_id"];

/// A text and what it may have.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    pub(super) limits: &'a Limits,
}

impl<'a> Lexer<'a> {
    /// The token at byte `at` or behind the spaces there.
    pub(super) fn token(&self, at: usize, digits: Digits) -> Result<(Token<'a>, Span), Problem> {
        let start = at + self.while_from(at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok((Token::End, Span::new(start, start)));
        };
        let is_float = || rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        match first {
            'a'..='z' | 'A'..='Z' => self.word(start),
            '\\' => self.escaped(start),
            '0'..='9' if digits == Digits::Position => self.integer(start),
            '0'..='9' => self.number(start),
            '.' if digits == Digits::Number && is_float() => self.number(start),
            '\'' => self.string(start),
            '_' => self.special(start),
            _ => self.symbol(start, first),
        }
    }

    fn while_from(&self, at: usize, is: impl Fn(u8) -> bool) -> usize {
        self.text.as_bytes()[at..].iter().take_while(|byte| is(**byte)).count()
    }

    fn problem(&self, span: Span, message: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem::new(ProblemKind::Syntax, self.text, span, message, remedy)
    }

    /// The letters, digits and `_` that begin there: a name, or a word of the language.
    fn letters(&self, start: usize) -> (&'a str, Span) {
        let length = self.while_from(start, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let span = Span::new(start, start + length);
        (&self.text[span.range()], span)
    }

    /// The name, unless it is too long.
    fn name(&self, start: usize) -> Result<(&'a str, Span), Problem> {
        let (name, span) = self.letters(start);
        let (length, most) = (name.len(), self.limits.identifier_bytes);
        if length > most {
            let message = format!("a name of {length} bytes; at most {most} are accepted");
            return Err(Problem::new(ProblemKind::Limit, self.text, span, message, "use a shorter name"));
        }
        Ok((name, span))
    }

    fn word(&self, start: usize) -> Result<(Token<'a>, Span), Problem> {
        let (word, span) = self.letters(start);
        match KEYWORDS.iter().find(|keyword| **keyword == word) {
            Some(keyword) => Ok((Token::Keyword(keyword), span)),
            None => self.name(start).map(|(name, span)| (Token::Name(name), span)),
        }
    }

    fn escaped(&self, start: usize) -> Result<(Token<'a>, Span), Problem> {
        if !self.text.as_bytes().get(start + 1).is_some_and(u8::is_ascii_alphabetic) {
            let span = Span::new(start, start + 1);
            return Err(self.problem(
                span,
                "expected a name behind \"\\\"",
                "write \\ only before a name that is a keyword",
            ));
        }
        let (name, span) = self.name(start + 1)?;
        Ok((Token::Name(name), Span { start: start as u32, end: span.end }))
    }

    fn special(&self, start: usize) -> Result<(Token<'a>, Span), Problem> {
        let (word, span) = self.letters(start);
        if let Some(special) = SPECIAL.iter().find(|special| **special == word) {
            return Ok((Token::Special(special), span));
        }
        let (name, span) = self.name(start)?;
        Err(self.problem(
            span,
            format!("expected a name, found {name}"),
            "begin names with a letter; with \"_\" begin only _length, _d, _type_id and _repos_id",
        ))
    }

    fn integer(&self, start: usize) -> Result<(Token<'a>, Span), Problem> {
        let span = Span::new(start, start + self.while_from(start, |byte| byte.is_ascii_digit()));
        match self.text[span.range()].parse() {
            Ok(number) => Ok((Token::Integer(number), span)),
            Err(_) => Err(self.problem(
                span,
                "expected a number of at most 64 bits, found a larger one",
                format!("write at most {}, or a number with a point", u64::MAX),
            )),
        }
    }

    fn number(&self, start: usize) -> Result<(Token<'a>, Span), Problem> {
        let bytes = self.text.as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let digits = |at: usize| at + self.while_from(at, |byte| byte.is_ascii_digit());
        let whole = digits(start);
        let mut end = whole;
        if bytes.get(end) == Some(&b'.') {
            if !is_digit(end + 1) {
                let message = "expected a digit behind the point of a number";
                return Err(self.problem(
                    Span::new(start, end + 1),
                    message,
                    "write it with a digit, as 1.0",
                ));
            }
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if is_digit(signed) {
                end = digits(signed);
            }
        }
        if end == whole {
            return self.integer(start);
        }
        let span = Span::new(start, end);
        match self.text[span.range()].parse::<f64>() {
            Ok(number) if number.is_finite() => Ok((Token::Float(number), span)),
            _ => Err(self.problem(
                span,
                "expected a number that 64 bits can hold, found a larger one",
                "write at most 1.7e308",
            )),
        }
    }

    fn string(&self, start: usize) -> Result<(Token<'a>, Span), Problem> {
        let inner = start + 1;
        let (mut end, mut has_escapes) = (inner, false);
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(end) {
                None => {
                    let span = Span::new(start, self.text.len());
                    return Err(self.problem(span, "expected ' at the end of a string", "close it with '"));
                }
                Some(b'\'') => break,
                Some(b'\\') if matches!(bytes.get(end + 1), Some(b'\'' | b'\\')) => {
                    has_escapes = true;
                    end += 2;
                }
                Some(b'\\') => {
                    let span = Span::new(end, end + 1);
                    let message = "expected \\' or \\\\ in a string, found another escape";
                    return Err(self.problem(span, message, "write \\\\ for a backslash"));
                }
                Some(_) => end += 1,
            }
        }
        let span = Span::new(start, end + 1);
        let text = &self.text[inner..end];
        if text.len() > self.limits.string_bytes {
            let message = format!(
                "a string of {} bytes; at most {} are accepted",
                text.len(),
                self.limits.string_bytes
            );
            return Err(Problem::new(ProblemKind::Limit, self.text, span, message, "use a shorter string"));
        }
        let text = if has_escapes { Cow::Owned(unescaped(text)) } else { Cow::Borrowed(text) };
        Ok((Token::Text(text), span))
    }

    fn symbol(&self, start: usize, first: char) -> Result<(Token<'a>, Span), Problem> {
        let rest = &self.text[start..];
        let found = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        let span = Span::new(start, start + found.map_or(first.len_utf8(), |symbol| symbol.len()));
        let remedy = match (found, first) {
            (Some(&"="), _) if rest.starts_with("=<") || rest.starts_with("=>") => "write <= or >=",
            (Some(&"="), _) => "write == to compare",
            (Some(&"!"), _) => "write not before what is to be false, and != to compare",
            (Some(&"&"), _) | (None, '|') => "write and, or",
            (Some(symbol), _) => return Ok((Token::Symbol(symbol), span)),
            (None, '"') => "write strings in single quotes: 'text'",
            (None, ',' | ';') => "write one expression, with and, or between its parts",
            (None, '%' | '^') => "numbers have + - * / only",
            _ => "use letters, digits, _ and the operators of the language; anything else belongs in strings",
        };
        let shown: String = first.escape_debug().collect();
        Err(self.problem(span, format!("expected an operator or operand, found \"{shown}\""), remedy))
    }
}

/// Each backslash in `text` is followed by what it stands for.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}
