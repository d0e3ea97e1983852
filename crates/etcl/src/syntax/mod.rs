//! The language as text: what its tokens are, the tree that an expression is, and how one becomes the other.

mod format;
mod lexer;
mod parser;
mod tree;

pub(crate) use parser::parse;
pub use tree::{Arithmetic, Expression, Literal, Node, Path, Relation, Root, Selector, Step, StepKind};

/// Words that are no names unless a `\` stands before them. The last five belong to the preferences of traders and have no use here.
pub(crate) const KEYWORDS: [&str; 13] =
    ["and", "or", "not", "in", "exist", "default", "TRUE", "FALSE", "min", "max", "with", "first", "random"];
