//! The JSON dialect of rt-app and workgen as a tree with positions.
//!
//! Beyond JSON it has comments (`/* */`, `//`, and here also `#`), trailing and missing commas, keys without
//! a value (`"suspend",`), unquoted keys, and above all keys that repeat, each with a meaning of its own and
//! in an order that matters. The tokens come from `jsonc-parser`; its own tree refuses keys without a
//! value, and readers that fill maps merge repeated keys, so the tree is made here.

use crate::names::shown;
use crate::reading::Reading;
use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};
use std::borrow::Cow;
use std::ops::Range;

/// How deep objects and lists may nest; rt-app's own files have five levels.
const DEPTH: usize = 64;

/// How many values a file may have, so that a text of one letter a value does not fill the memory.
const VALUES: usize = 1 << 20;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Value<'t> {
    pub span: Range<usize>,
    pub kind: Kind<'t>,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    Null,
    Bool,
    /// Spelt as in the file.
    Number(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Value<'t>>),
    /// In file order; keys may repeat.
    Object(Vec<Member<'t>>),
}

#[derive(Debug)]
pub(super) struct Member<'t> {
    pub key: Cow<'t, str>,
    pub key_span: Range<usize>,
    /// `None` for a key that stands alone.
    pub value: Option<Value<'t>>,
}

impl Member<'_> {
    /// The key and its value.
    pub fn span(&self) -> Range<usize> {
        self.key_span.start..self.value.as_ref().map_or(self.key_span.end, |value| value.span.end)
    }
}

impl Kind<'_> {
    /// How messages call it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// The members of the object that is the whole text. What is wrong with the syntax is in `reading`.
pub(super) fn read<'t>(reading: &mut Reading<'t>) -> Vec<Member<'t>> {
    let text = reading.lines.text;
    let scanner = Scanner::new(text, &options());
    let mut reader = Reader {
        reading,
        text,
        scanner,
        base: 0,
        token: None,
        span: 0..0,
        end_before: 0,
        values: 0,
        broken: false,
    };
    reader.advance();
    if reader.token != Some(Token::OpenBrace) {
        let message = format!("the file begins with {}", reader.found());
        reader.fail(message, "an rt-app file is one object: { \"tasks\": { ... } }");
        return Vec::new();
    }
    let members = reader.object(0);
    if !reader.broken && reader.token.is_some() {
        let message = format!("after the end of the object stands {}", reader.found());
        reader.fail(message, "remove it; an rt-app file is one object");
    }
    members
}

fn options() -> ScannerOptions {
    ScannerOptions::default()
}

struct Reader<'t, 'r> {
    reading: &'r mut Reading<'t>,
    text: &'t str,
    scanner: Scanner<'t>,
    /// Where the text of the scanner begins in the whole.
    base: usize,
    /// The token looked at; `None` at the end.
    token: Option<Token<'t>>,
    span: Range<usize>,
    /// Where the token before it ends.
    end_before: usize,
    values: usize,
    /// Whether the rest cannot be read; one mistake makes one message.
    broken: bool,
}

impl<'t> Reader<'t, '_> {
    fn advance(&mut self) {
        if self.broken {
            return;
        }
        self.end_before = self.span.end;
        loop {
            self.skip_hash_comments();
            let scanned = self.scanner.scan();
            self.span = self.base + self.scanner.token_start()..self.base + self.scanner.token_end();
            match scanned {
                Ok(Some(Token::CommentLine(_) | Token::CommentBlock(_))) => {}
                Ok(token) => {
                    self.token = token;
                    return;
                }
                Err(error) => {
                    let range = error.range();
                    self.span = self.base + range.start..self.base + range.end;
                    let message = format!("this cannot be read: {}", lower_case(&error.kind().to_string()));
                    self.fail(message, "mend it; texts stand in double quotes, times are whole numbers");
                    return;
                }
            }
        }
    }

    /// Comments that the scanner does not know, to the end of their line.
    fn skip_hash_comments(&mut self) {
        loop {
            let rest = &self.text[self.base + self.scanner.token_end()..];
            let trimmed = rest.trim_start();
            if !trimmed.starts_with('#') {
                return;
            }
            let line = trimmed.find('\n').unwrap_or(trimmed.len());
            self.base = self.text.len() - trimmed.len() + line;
            self.scanner = Scanner::new(&self.text[self.base..], &options());
        }
    }

    /// Reports a mistake after which nothing is certain.
    fn fail(&mut self, message: String, remedy: &str) {
        if !self.broken {
            self.reading.error(self.span.clone(), message, remedy);
        }
        self.broken = true;
        self.token = None;
    }

    fn found(&self) -> String {
        match &self.token {
            Some(token) => shown(token.as_str()),
            None => "the end of the file".into(),
        }
    }

    /// The object that begins here, up to the token after it.
    fn object(&mut self, depth: usize) -> Vec<Member<'t>> {
        let open = self.span.clone();
        let mut members = Vec::new();
        self.advance();
        loop {
            match self.token.take() {
                Some(Token::CloseBrace) => {
                    self.advance();
                    return members;
                }
                Some(Token::Comma) => self.advance(),
                Some(Token::String(key)) => members.push(self.member(key, depth)),
                Some(Token::Word(key) | Token::Number(key)) => {
                    members.push(self.member(Cow::Borrowed(key), depth));
                }
                None => {
                    self.span = open;
                    self.fail("this { is never closed".into(), "write the } that belongs to it");
                    return members;
                }
                token => {
                    self.token = token;
                    let message = format!("{} stands where a key is expected", self.found());
                    self.fail(message, "write \"key\" : value, or close the object with }");
                    return members;
                }
            }
        }
    }

    fn member(&mut self, key: Cow<'t, str>, depth: usize) -> Member<'t> {
        let key_span = self.span.clone();
        self.advance();
        if self.token != Some(Token::Colon) {
            return Member { key, key_span, value: None };
        }
        self.advance();
        let value = self.value(depth + 1);
        Member { key, key_span, value }
    }

    fn list(&mut self, depth: usize) -> Vec<Value<'t>> {
        let open = self.span.clone();
        let mut values = Vec::new();
        self.advance();
        loop {
            match &self.token {
                Some(Token::CloseBracket) => {
                    self.advance();
                    return values;
                }
                Some(Token::Comma) => self.advance(),
                None => {
                    self.span = open;
                    self.fail("this [ is never closed".into(), "write the ] that belongs to it");
                    return values;
                }
                Some(_) => values.extend(self.value(depth + 1)),
            }
        }
    }

    /// The value that begins here; `None` if none does.
    fn value(&mut self, depth: usize) -> Option<Value<'t>> {
        self.values += 1;
        if depth > DEPTH || self.values > VALUES {
            let message = if depth > DEPTH {
                format!("values are nested more than {DEPTH} levels deep")
            } else {
                format!("the file has more than {VALUES} values")
            };
            self.fail(message, "check that this is the file you mean");
            return None;
        }
        let start = self.span.start;
        let kind = match self.token.take() {
            Some(Token::OpenBrace) => {
                let members = self.object(depth);
                return Some(self.ended(start, Kind::Object(members)));
            }
            Some(Token::OpenBracket) => {
                let values = self.list(depth);
                return Some(self.ended(start, Kind::List(values)));
            }
            Some(Token::Null) => Kind::Null,
            Some(Token::Boolean(_)) => Kind::Bool,
            Some(Token::Number(text)) => Kind::Number(text),
            Some(Token::String(text)) => Kind::Text(text),
            Some(Token::Word(text)) => Kind::Text(Cow::Borrowed(text)),
            token => {
                self.token = token;
                let message = format!("{} stands where a value is expected", self.found());
                self.fail(message, "write a number, a text in double quotes, a list or an object");
                return None;
            }
        };
        let span = self.span.clone();
        self.advance();
        Some(Value { span, kind })
    }

    /// A value in brackets, which reaches to the token before this one.
    fn ended(&self, start: usize, kind: Kind<'t>) -> Value<'t> {
        Value { span: start..self.end_before.max(start), kind }
    }
}

fn lower_case(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_lowercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree on one line, and the messages.
    fn tree(text: &str) -> (String, Vec<String>) {
        let mut reading = Reading::new("x.json", text);
        let members = read(&mut reading);
        let problems = match reading.has_errors() {
            true => reading.reject::<()>().expect_err("has errors").to_string(),
            false => String::new(),
        };
        (
            members.iter().map(line).collect(),
            problems.lines().step_by(2).map(|line| line.replace("x.json:", "")).collect(),
        )
    }

    fn line(member: &Member<'_>) -> String {
        let value = member.value.as_ref().map_or(String::new(), |value| format!("={}", text_of(&value.kind)));
        format!("{}{value};", member.key)
    }

    fn text_of(kind: &Kind<'_>) -> String {
        match kind {
            Kind::Null => "null".into(),
            Kind::Bool => "bool".into(),
            Kind::Number(text) => (*text).into(),
            Kind::Text(text) => text.to_string(),
            Kind::List(values) => values.iter().map(|value| text_of(&value.kind) + " ").collect(),
            Kind::Object(members) => format!("{{{}}}", members.iter().map(line).collect::<String>()),
        }
    }

    #[test]
    fn repeated_keys_keep_their_order() {
        let (tree, problems) = tree("{ \"run\" : 1, \"sleep\" : 2, \"run\" : 3 }");
        assert_eq!((tree.as_str(), problems.len()), ("run=1;sleep=2;run=3;", 0));
    }

    #[test]
    fn the_dialect_is_read() {
        let text = "/* one */ {\n# two\n  \"suspend\",\n  run : 5, // three\n  \"timer\" : { \"ref\" : 'u', \
                    \"period\" : 10, },\n  \"cpus\" : [0, 1,] # four\n  \"suspend\"\n}\n# five";
        let (tree, problems) = tree(text);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(tree, "suspend;run=5;timer={ref=u;period=10;};cpus=0 1 ;suspend;");
    }

    #[test]
    fn one_mistake_makes_one_message_with_its_place() {
        for (text, expected) in [
            ("[]", "1:1: error: the file begins with \"[\""),
            ("{ \"a\" : }", "1:9: error: \"}\" stands where a value is expected"),
            ("{ \"a\" : { \"b\" : 1 ", "1:9: error: this { is never closed"),
            ("{ \"a\" : [1, 2 ", "1:9: error: this [ is never closed"),
            ("{ \"a\" : 1 } }", "1:13: error: after the end of the object stands \"}\""),
            ("{\n : 1 }", "2:2: error: \":\" stands where a key is expected"),
            ("{ \"a }", "1:3: error: this cannot be read: unterminated string literal"),
            ("{ /* }", "1:3: error: this cannot be read: unterminated comment block"),
        ] {
            assert_eq!(tree(text).1, [expected], "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for open in ["{\"a\":", "[", "{\"a\":["] {
            let text = format!("{{\"a\":{}", open.repeat(100_000));
            assert!(tree(&text).1[0].contains("levels deep"), "{open}");
        }
    }

    #[test]
    fn spans_are_those_of_the_text() {
        let text = "{ \"µ\" : { \"a\" : [1, 2] } /* c */, \"b\" : 7 }";
        let mut reading = Reading::new("x.json", text);
        let members = read(&mut reading);
        let spans: Vec<&str> = members.iter().map(|member| &text[member.span()]).collect();
        assert_eq!(spans, ["\"µ\" : { \"a\" : [1, 2] }", "\"b\" : 7"]);
    }
}
