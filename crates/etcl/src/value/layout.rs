//! What is known of a type before there is a value: it lets paths be resolved and mistakes be found when a constraint is compiled.

use super::{Category, Node, Value};

/// What is known of all values of a type.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Nothing: each value is looked at when it comes.
    Dynamic,
    /// They are booleans.
    Boolean,
    /// They are integers, signed or not.
    Integer,
    /// They are floating-point numbers.
    Float,
    /// They are strings.
    Text,
    /// They are labels of this enumeration.
    Enum(&'static EnumType),
    /// They are sequences with elements of one kind.
    Sequence(fn() -> Kind),
    /// They are structs with these members.
    Struct(fn() -> &'static Layout),
    /// They are name/value lists.
    List,
    /// They are unions.
    Union,
}

impl Kind {
    /// What the values are, as far as it is known.
    pub fn category(self) -> Option<Category> {
        match self {
            Kind::Dynamic => None,
            Kind::Boolean => Some(Category::Boolean),
            Kind::Integer => Some(Category::Integer),
            Kind::Float => Some(Category::Float),
            Kind::Text => Some(Category::Text),
            Kind::Enum(_) => Some(Category::Enum),
            Kind::Sequence(_) => Some(Category::Sequence),
            Kind::Struct(_) => Some(Category::Struct),
            Kind::List => Some(Category::List),
            Kind::Union => Some(Category::Union),
        }
    }
}

/// The members of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The name of the type.
    pub name: &'static str,
    /// Its identifier in an interface repository, if it has one.
    pub repository_id: Option<&'static str>,
    /// In the order of their declaration, which is that of their positions.
    pub members: &'static [Member],
}

/// A member of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// What is known of its values; asked only when a path leads there, so that types may contain themselves.
    pub kind: fn() -> Kind,
}

impl Layout {
    /// Where the member with this name is.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    /// The name of the member at a position.
    pub fn name_at(&self, position: usize) -> Option<&'static str> {
        self.members.get(position).map(|member| member.name)
    }
}

/// An enumeration. Its labels count from 0 in the order of their declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumType {
    /// The name of the type.
    pub name: &'static str,
    /// Its identifier in an interface repository, if it has one.
    pub repository_id: Option<&'static str>,
    /// The labels.
    pub labels: &'static [&'static str],
}

/// A label of such an enumeration, for types that are none themselves but have a value that is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The enumeration.
    pub of: &'static EnumType,
    /// The position of the label.
    pub ordinal: u32,
}

impl Node for Label {
    fn len(&self) -> usize {
        self.of.labels.len()
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.name_at(position).map(Value::Text)
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        self.of.labels.get(position).copied()
    }

    fn type_name(&self) -> Option<&str> {
        Some(self.of.name)
    }

    fn repository_id(&self) -> Option<&str> {
        self.of.repository_id
    }

    fn ordinal(&self) -> u32 {
        self.ordinal
    }
}

/// How a name is written that begins a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `name`
    Bare,
    /// `$name`
    Dollar,
    /// `$.name`
    Dotted,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// The part at a position of every value of the type.
    At(usize, Kind),
    /// What a value has under this name, if it has.
    ByName,
    /// Nothing, in no value of the type.
    Absent,
}
