//! The tree of an expression. Each node knows where in the text it stands.

use crate::problem::Span;

/// An operation, a literal or a path, with its place.
///
/// Two expressions are equal if their trees are, wherever they stand.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it is.
    pub node: Node,
    /// Where it stands, without parentheses around it.
    pub span: Span,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// What an expression is. Chains of operators that associate to the left are one node with all operands, so that the depth of a tree is
/// what the text has of nesting, not of length.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Two or more operands, of which one has to be true.
    Or(Vec<Expression>),
    /// Two or more operands, which all have to be true.
    And(Vec<Expression>),
    /// The opposite of a boolean.
    Not(Box<Expression>),
    /// A comparison.
    Compare(Relation, Box<Expression>, Box<Expression>),
    /// Whether the sequence at a path has an element.
    In(Box<Expression>, Path),
    /// Whether the right string contains the left one.
    Substring(Box<Expression>, Box<Expression>),
    /// An operand, and one or more further ones with their operators: either all `+` and `-`, or all `*` and `/`.
    Arithmetic(Box<Expression>, Vec<(Arithmetic, Expression)>),
    /// A value that is written out.
    Literal(Literal),
    /// What an event has at a path.
    Path(Path),
    /// Whether an event has something at a path.
    Exist(Path),
    /// Whether the default arm of the union at a path is active. The path is written with `._d` at its end, which is not part of it here.
    Default(Path),
}

/// A comparison. Its number has a bit for each order in which it holds: 1 less, 2 equal, 4 greater, 8 none, which is that of what is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Relation {
    /// `==`
    Equal = 2,
    /// `!=`
    Unequal = 1 | 4 | 8,
    /// `<`
    Less = 1,
    /// `<=`
    AtMost = 1 | 2,
    /// `>`
    Greater = 4,
    /// `>=`
    AtLeast = 2 | 4,
}

impl Relation {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::Unequal => "!=",
            Relation::Less => "<",
            Relation::AtMost => "<=",
            Relation::Greater => ">",
            Relation::AtLeast => ">=",
        }
    }
}

/// An operation on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl Arithmetic {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
        }
    }
}

/// A value that is written out.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `TRUE` or `FALSE`.
    Boolean(bool),
    /// Digits, maybe with a sign.
    Integer(i64),
    /// Digits of a number that only the unsigned integers have.
    Unsigned(u64),
    /// A number with a point or an exponent; it is finite.
    Float(f64),
    /// A string, without quotes and escapes.
    Text(String),
}

/// Where something stands in an event.
#[derive(Clone, Debug)]
pub struct Path {
    /// Where it begins.
    pub root: Root,
    /// The way from there.
    pub steps: Vec<Step>,
    /// Where the path stands in the text, with its `$`.
    pub span: Span,
    /// Where its root stands: `$`, `$name` or `name`.
    pub root_span: Span,
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root && self.steps == other.steps
    }
}

impl Path {
    /// The name, if the path is nothing but a name without `$`: that of a property, or of a label.
    pub fn bare_name(&self) -> Option<&str> {
        match &self.root {
            Root::Bare(name) if self.steps.is_empty() => Some(name),
            _ => None,
        }
    }
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// `$`: the event as a whole.
    Event,
    /// `$name`: a field of the fixed header, or a property.
    Dollar(String),
    /// `name`: a property, or a label of an enumeration.
    Bare(String),
}

/// One step of a path.
#[derive(Clone, Debug)]
pub struct Step {
    /// What the step does.
    pub kind: StepKind,
    /// Where it stands, with its dot or brackets.
    pub span: Span,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// What a step of a path does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// `.name`: a member of a struct, or of a union while it is active.
    Member(String),
    /// `.2`: the member of a struct at a position, from 0.
    Position(u64),
    /// `[2]`: the element of a sequence, or the pair of a name/value list, at an index from 0.
    Index(u64),
    /// `(name)`: the value that a name/value list has for a name.
    Pick(String),
    /// `.(v)`: what a union has, if `v` selects the arm that is active; `.()`: if the default arm is.
    Arm(Selector),
    /// `._length`: how many elements a sequence or name/value list has.
    Length,
    /// `._d`: the discriminator of a union.
    Discriminator,
    /// `._type_id`: the name of a named type.
    TypeId,
    /// `._repos_id`: the repository's identifier of a named type.
    RepositoryId,
}

/// What selects an arm of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `.()`
    Default,
    /// `.(2)`, `.(-2)`: a number, or the position of a label.
    Number(i64),
    /// `.('text')`: a string, or a label.
    Text(String),
}

impl Expression {
    /// The parts of the expression that are expressions, in the order of the text.
    pub fn operands(&self) -> Vec<&Expression> {
        match &self.node {
            Node::Or(operands) | Node::And(operands) => operands.iter().collect(),
            Node::Not(operand) | Node::In(operand, _) => vec![operand],
            Node::Compare(_, left, right) | Node::Substring(left, right) => vec![left, right],
            Node::Arithmetic(first, rest) => {
                std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand)).collect()
            }
            Node::Literal(_) | Node::Path(_) | Node::Exist(_) | Node::Default(_) => Vec::new(),
        }
    }
}
