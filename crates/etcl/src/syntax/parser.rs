//! From text to a tree, by recursive descent.
//!
//! ```text
//! constraint := [ or ]                                   nothing at all is TRUE
//! or         := and { "or" and }
//! and        := compare { "and" compare }
//! compare    := in [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) in ]
//! in         := substring [ "in" ( "$" component | NAME ext ) ]
//! substring  := sum [ "~" sum ]
//! sum        := term { ( "+" | "-" ) term }
//! term       := unary { ( "*" | "/" ) unary }
//! unary      := [ "not" ] factor
//! factor     := "(" or ")" | [ "+" | "-" ] NUMBER | STRING | "TRUE" | "FALSE"
//!             | "exist" ( NAME | "$" component ) | "default" "$" component | "$" component | NAME
//! component  := [ "." dot | NAME ext | "[" DIGITS "]" ext | "(" NAME ")" ext ]
//! ext        := [ "." dot | "[" DIGITS "]" ext | "(" NAME ")" ext ]
//! dot        := NAME ext | DIGITS ext | "(" [ [ "+" | "-" ] DIGITS | STRING ] ")" ext
//!             | "_length" | "_d" | "_type_id" | "_repos_id"
//! ```
//!
//! The rules from `or` to `term` differ in their operators only, so one function goes through their levels ([`Level`]) with the first operand in
//! hand; each level takes its further operands from the next tighter one. Recursion is as deep as parentheses are, which the limits
//! bound, and takes few functions each, because whoever reads constraints may have a small stack.

mod paths;

use super::lexer::{Digits, Lexer, Token};
use super::tree::{Arithmetic, Expression, Literal, Node, Path, Relation, Root, Step, StepKind};
use crate::limits::Limits;
use crate::problem::{Problem, ProblemKind, Span};

/// The tree of `text`, within `limits`, which can be granted.
///
/// # Errors
/// What is wrong with it first.
pub(crate) fn parse(text: &str, limits: &Limits) -> Result<Expression, Problem> {
    if text.len() > limits.length_bytes {
        let message =
            format!("the text has {} bytes; at most {} are accepted", text.len(), limits.length_bytes);
        let remedy = "split it into several constraints, of which one has to match";
        return Err(Problem::new(ProblemKind::Limit, text, Span::default(), message, remedy));
    }
    let lexer = Lexer { text, limits };
    let (token, span) = lexer.token(0, Digits::Number)?;
    let mut parser = Parser { lexer, token, span, last: Span::default(), nodes: 0, open: 0 };
    if parser.token == Token::End {
        return Ok(Expression { node: Node::Literal(Literal::Boolean(true)), span: Span::default() });
    }
    let (expression, _) = parser.expression(Level::Or).map_err(|problem| *problem)?;
    match parser.token {
        Token::End => Ok(expression),
        _ => Err(*parser.unexpected_end()),
    }
}

/// How tightly operators bind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Or,
    And,
    Compare,
    In,
    Substring,
    Sum,
    Term,
    Unary,
}

impl Level {
    const TIGHTEST_FIRST: [Level; 8] = [
        Level::Unary,
        Level::Term,
        Level::Sum,
        Level::Substring,
        Level::In,
        Level::Compare,
        Level::And,
        Level::Or,
    ];
}

/// What is read, or what is wrong. Boxed, so that recursion takes less of the stack.
type Read<T> = Result<T, Box<Problem>>;

/// A tree and how many levels it has.
type Parsed = Read<(Expression, usize)>;

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token that is next, and where it stands.
    token: Token<'a>,
    span: Span,
    /// Where the token before it stood.
    last: Span,
    nodes: usize,
    /// Parentheses that are open.
    open: usize,
}

impl<'a> Parser<'a> {
    fn advance(&mut self, digits: Digits) -> Read<()> {
        let (token, span) = self.lexer.token(self.span.end as usize, digits)?;
        self.last = std::mem::replace(&mut self.span, span);
        self.token = token;
        Ok(())
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    fn is_keyword(&self, word: &str) -> bool {
        matches!(self.token, Token::Keyword(found) if found == word)
    }

    fn problem(&self, kind: ProblemKind, span: Span, message: String, remedy: &str) -> Box<Problem> {
        Box::new(Problem::new(kind, self.lexer.text, span, message, remedy))
    }

    fn expected(&self, what: &str, remedy: &str) -> Box<Problem> {
        let message = format!("expected {what}, found {}", self.token.described());
        self.problem(ProblemKind::Syntax, self.span, message, remedy)
    }

    /// What stands behind a whole expression.
    fn unexpected_end(&self) -> Box<Problem> {
        let remedy = match &self.token {
            token if relation(token).is_some() => "comparisons do not chain; join two of them with and",
            Token::Symbol("." | "[" | "(") => {
                "write $ before a name that a path begins with, as $name.member"
            }
            Token::Symbol(")") => "remove it, or open it with ( before",
            Token::Float(_) => "write $ before a name that a path begins with, and spaces between operands",
            Token::Keyword("min" | "max" | "with" | "first" | "random") => {
                "preferences of traders are not part of constraints; write \\ before a name that is such a word"
            }
            Token::Name(name) if ["AND", "OR", "NOT", "IN"].contains(name) => "keywords are in lower case",
            _ => "join expressions with and, or, a comparison or an operator",
        };
        self.expected("an operator or the end", remedy)
    }

    /// Counts a part of the expression that stands over others of `below` levels.
    fn node(&mut self, node: Node, span: Span, below: usize) -> Parsed {
        self.count(span)?;
        let depth = below + 1;
        if depth > self.lexer.limits.depth {
            return Err(self.too_deep(span));
        }
        Ok((Expression { node, span }, depth))
    }

    fn count(&mut self, span: Span) -> Read<()> {
        self.nodes += 1;
        if self.nodes > self.lexer.limits.nodes {
            let message = format!("more than {} parts; no more are accepted", self.lexer.limits.nodes);
            let remedy = "split it into several constraints, of which one has to match";
            return Err(self.problem(ProblemKind::Limit, span, message, remedy));
        }
        Ok(())
    }

    fn too_deep(&self, span: Span) -> Box<Problem> {
        let message = format!("more than {} levels; no more are accepted", self.lexer.limits.depth);
        self.problem(ProblemKind::Limit, span, message, "use fewer parentheses within each other")
    }

    /// An operand and what operators of this level and tighter ones make of it.
    fn expression(&mut self, loosest: Level) -> Parsed {
        let (mut left, mut depth) = self.unary()?;
        for level in Level::TIGHTEST_FIRST {
            (left, depth) = match level {
                Level::Or => self.chain("or", Level::And, Node::Or, left, depth)?,
                Level::And => self.chain("and", Level::Compare, Node::And, left, depth)?,
                Level::Compare => self.compare(left, depth)?,
                Level::In => self.contained(left, depth)?,
                Level::Substring => self.substring(left, depth)?,
                Level::Sum => self.arithmetic(sum, Level::Term, left, depth)?,
                Level::Term => self.arithmetic(term, Level::Unary, left, depth)?,
                Level::Unary => (left, depth),
            };
            if level == loosest {
                break;
            }
        }
        Ok((left, depth))
    }

    fn chain(
        &mut self,
        word: &str,
        tighter: Level,
        node: fn(Vec<Expression>) -> Node,
        first: Expression,
        mut depth: usize,
    ) -> Parsed {
        if !self.is_keyword(word) {
            return Ok((first, depth));
        }
        let start = first.span;
        let mut operands = vec![first];
        while self.is_keyword(word) {
            self.advance(Digits::Number)?;
            let (next, below) = self.expression(tighter)?;
            depth = depth.max(below);
            operands.push(next);
        }
        self.node(node(operands), start.to(self.last), depth)
    }

    fn compare(&mut self, left: Expression, left_depth: usize) -> Parsed {
        let Some(relation) = relation(&self.token) else { return Ok((left, left_depth)) };
        self.advance(Digits::Number)?;
        let (right, right_depth) = self.expression(Level::In)?;
        let span = left.span.to(self.last);
        self.node(Node::Compare(relation, left.into(), right.into()), span, left_depth.max(right_depth))
    }

    fn contained(&mut self, element: Expression, depth: usize) -> Parsed {
        if !self.is_keyword("in") {
            return Ok((element, depth));
        }
        self.advance(Digits::Number)?;
        let path = match self.token {
            Token::Symbol("$") => self.component()?,
            Token::Name(name) => {
                let span = self.span;
                self.advance(Digits::Number)?;
                self.path(Root::Bare(name.into()), span, span)?
            }
            _ => return Err(self.expected("a sequence behind \"in\"", "name one, as $name or name")),
        };
        let span = element.span.to(self.last);
        self.node(Node::In(element.into(), path), span, depth)
    }

    fn substring(&mut self, left: Expression, left_depth: usize) -> Parsed {
        if !self.is("~") {
            return Ok((left, left_depth));
        }
        self.advance(Digits::Number)?;
        let (right, right_depth) = self.expression(Level::Sum)?;
        let span = left.span.to(self.last);
        self.node(Node::Substring(left.into(), right.into()), span, left_depth.max(right_depth))
    }

    fn arithmetic(
        &mut self,
        operator: fn(&Token<'_>) -> Option<Arithmetic>,
        tighter: Level,
        first: Expression,
        mut depth: usize,
    ) -> Parsed {
        let start = first.span;
        let mut rest = Vec::new();
        while let Some(symbol) = operator(&self.token) {
            self.advance(Digits::Number)?;
            let (next, below) = self.expression(tighter)?;
            depth = depth.max(below);
            rest.push((symbol, next));
        }
        if rest.is_empty() {
            return Ok((first, depth));
        }
        self.node(Node::Arithmetic(first.into(), rest), start.to(self.last), depth)
    }

    fn unary(&mut self) -> Parsed {
        if !self.is_keyword("not") {
            return self.factor();
        }
        let start = self.span;
        self.advance(Digits::Number)?;
        if self.is_keyword("not") {
            return Err(self.expected("an operand behind \"not\"", "write not (not ...), or leave both out"));
        }
        let (operand, depth) = self.factor()?;
        self.node(Node::Not(operand.into()), start.to(self.last), depth)
    }

    fn factor(&mut self) -> Parsed {
        let start = self.span;
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Symbol("(") => self.parenthesised(start),
            Token::Symbol(sign @ ("+" | "-")) => {
                self.advance(Digits::Number)?;
                self.signed(start, sign == "-")
            }
            Token::Integer(number) => {
                self.literal(integer(number, false).unwrap_or(Literal::Unsigned(number)))
            }
            Token::Float(number) => self.literal(Literal::Float(number)),
            Token::Text(text) => self.literal(Literal::Text(text.into_owned())),
            Token::Keyword("TRUE") => self.literal(Literal::Boolean(true)),
            Token::Keyword("FALSE") => self.literal(Literal::Boolean(false)),
            Token::Keyword("exist") => self.exist(start),
            Token::Keyword("default") => self.default(start),
            Token::Symbol("$") => {
                self.token = Token::Symbol("$");
                self.whole_path()
            }
            Token::Name(name) => self.bare(name),
            other => {
                self.token = other;
                Err(self.no_operand())
            }
        }
    }

    fn no_operand(&self) -> Box<Problem> {
        let remedy = match &self.token {
            Token::End => "add what is missing",
            Token::Keyword(_) => "write \\ before a name that is a keyword",
            Token::Special(_) => "write what has it, as $name._length",
            _ => "write a name, a number, a string in single quotes, TRUE, FALSE or (",
        };
        self.expected("an operand", remedy)
    }

    fn bare(&mut self, name: &str) -> Parsed {
        let span = self.span;
        self.advance(Digits::Number)?;
        let path = Path { root: Root::Bare(name.into()), steps: Vec::new(), span, root_span: span };
        self.node(Node::Path(path), span, 0)
    }

    fn whole_path(&mut self) -> Parsed {
        let path = self.component()?;
        let span = path.span;
        self.node(Node::Path(path), span, 0)
    }

    fn parenthesised(&mut self, start: Span) -> Parsed {
        self.open += 1;
        if self.open > self.lexer.limits.depth {
            return Err(self.too_deep(start));
        }
        self.advance(Digits::Number)?;
        let parsed = self.expression(Level::Or)?;
        if !self.is(")") {
            let (line, column) = start.line_and_column(self.lexer.text);
            let what = format!("an operator, or \")\" for the \"(\" at line {line}, column {column}");
            return Err(self.expected(&what, "close the parenthesis"));
        }
        self.advance(Digits::Number)?;
        self.open -= 1;
        Ok(parsed)
    }

    fn literal(&mut self, literal: Literal) -> Parsed {
        let span = self.span;
        self.advance(Digits::Number)?;
        self.node(Node::Literal(literal), span, 0)
    }

    fn signed(&mut self, start: Span, is_negative: bool) -> Parsed {
        let span = start.to(self.span);
        let literal = match self.token {
            Token::Integer(number) => integer(number, is_negative).or(if is_negative {
                None
            } else {
                Some(Literal::Unsigned(number))
            }),
            Token::Float(number) => Some(Literal::Float(if is_negative { -number } else { number })),
            _ => return Err(self.expected("a number behind the sign", "write 0 - x for what is no literal")),
        };
        let Some(literal) = literal else {
            let message = "expected a number of at most 64 bits, found a smaller one".into();
            return Err(self.problem(
                ProblemKind::Syntax,
                span,
                message,
                "write at least -9223372036854775808",
            ));
        };
        self.advance(Digits::Number)?;
        self.node(Node::Literal(literal), span, 0)
    }

    fn exist(&mut self, start: Span) -> Parsed {
        self.advance(Digits::Number)?;
        let path = match self.token {
            Token::Symbol("$") => self.component()?,
            Token::Name(name) => {
                let span = self.span;
                self.advance(Digits::Number)?;
                Path { root: Root::Bare(name.into()), steps: Vec::new(), span, root_span: span }
            }
            _ => {
                return Err(
                    self.expected("a name behind \"exist\"", "write exist name, or exist $name.member")
                );
            }
        };
        self.node(Node::Exist(path), start.to(self.last), 0)
    }

    fn default(&mut self, start: Span) -> Parsed {
        self.advance(Digits::Number)?;
        let remedy = "name a union's discriminator, as default $name._d";
        if !self.is("$") {
            return Err(self.expected("\"$\" behind \"default\"", remedy));
        }
        let mut path = self.component()?;
        if !matches!(path.steps.last(), Some(Step { kind: StepKind::Discriminator, .. })) {
            let message = "expected \"._d\" at the end of what stands behind \"default\"".into();
            return Err(self.problem(ProblemKind::Syntax, path.span, message, remedy));
        }
        path.steps.pop();
        self.node(Node::Default(path), start.to(self.last), 0)
    }
}

fn relation(token: &Token<'_>) -> Option<Relation> {
    match token {
        Token::Symbol("==") => Some(Relation::Equal),
        Token::Symbol("!=") => Some(Relation::Unequal),
        Token::Symbol("<") => Some(Relation::Less),
        Token::Symbol("<=") => Some(Relation::AtMost),
        Token::Symbol(">") => Some(Relation::Greater),
        Token::Symbol(">=") => Some(Relation::AtLeast),
        _ => None,
    }
}

fn sum(token: &Token<'_>) -> Option<Arithmetic> {
    match token {
        Token::Symbol("+") => Some(Arithmetic::Add),
        Token::Symbol("-") => Some(Arithmetic::Subtract),
        _ => None,
    }
}

fn term(token: &Token<'_>) -> Option<Arithmetic> {
    match token {
        Token::Symbol("*") => Some(Arithmetic::Multiply),
        Token::Symbol("/") => Some(Arithmetic::Divide),
        _ => None,
    }
}

/// The literal of these digits, if they are a signed integer.
fn integer(digits: u64, is_negative: bool) -> Option<Literal> {
    let value = if is_negative { 0i64.checked_sub_unsigned(digits) } else { i64::try_from(digits).ok() };
    value.map(Literal::Integer)
}
