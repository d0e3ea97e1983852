//! Values, and the one trait through which what has parts is looked at.

use std::fmt;

/// A value that is borrowed from an event.
///
/// The tag has a word of its own, so that values are copied in whole words: in the smallest layout booleans stand beside the tag, and
/// what was written in words is read at odd bytes, for which processors wait.
#[derive(Clone, Copy)]
#[repr(u64)]
pub enum Value<'a> {
    /// A boolean.
    Boolean(bool),
    /// A signed integer of at most 64 bits.
    Integer(i64),
    /// An unsigned integer of at most 64 bits.
    Unsigned(u64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(&'a str),
    /// A label of an enumeration: the [`Node`] knows which one, and has the others.
    Enum(&'a dyn Node),
    /// Elements, of one type or of several.
    Sequence(&'a dyn Node),
    /// Members with names.
    Struct(&'a dyn Node),
    /// Pairs of a name and a value.
    List(&'a dyn Node),
    /// One of several arms.
    Union(&'a dyn Node),
}

/// What kind of thing a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// True or false.
    Boolean,
    /// A signed or unsigned integer.
    Integer,
    /// A floating-point number.
    Float,
    /// A string.
    Text,
    /// A label of an enumeration.
    Enum,
    /// A sequence.
    Sequence,
    /// A struct.
    Struct,
    /// A name/value list.
    List,
    /// A union.
    Union,
}

impl Category {
    /// Whether it can be calculated with.
    pub fn is_number(self) -> bool {
        matches!(self, Category::Integer | Category::Float)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Category::Boolean => "a boolean",
            Category::Integer => "an integer",
            Category::Float => "a float",
            Category::Text => "a string",
            Category::Enum => "an enumeration's label",
            Category::Sequence => "a sequence",
            Category::Struct => "a struct",
            Category::List => "a name/value list",
            Category::Union => "a union",
        })
    }
}

impl Value<'_> {
    /// What kind of thing it is.
    pub fn category(&self) -> Category {
        match self {
            Value::Boolean(_) => Category::Boolean,
            Value::Integer(_) | Value::Unsigned(_) => Category::Integer,
            Value::Float(_) => Category::Float,
            Value::Text(_) => Category::Text,
            Value::Enum(_) => Category::Enum,
            Value::Sequence(_) => Category::Sequence,
            Value::Struct(_) => Category::Struct,
            Value::List(_) => Category::List,
            Value::Union(_) => Category::Union,
        }
    }

    /// Whether a selector names this value: the value of an integer or string, the position or name of a label.
    pub fn is_selected_by(&self, selector: SelectorValue<'_>) -> bool {
        match (selector, self) {
            (SelectorValue::Number(number), Value::Integer(value)) => number == *value,
            (SelectorValue::Number(number), Value::Unsigned(value)) => u64::try_from(number) == Ok(*value),
            (SelectorValue::Number(number), Value::Enum(label)) => number == i64::from(label.ordinal()),
            (SelectorValue::Text(text), Value::Text(value)) => text == *value,
            (SelectorValue::Text(text), Value::Enum(label)) => {
                label.name_at(label.ordinal() as usize) == Some(text)
            }
            _ => false,
        }
    }
}

/// As it would be written; of what has parts, what it is.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Value::Integer(value) => value.fmt(f),
            Value::Unsigned(value) => value.fmt(f),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Text(text) => write!(f, "'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
            Value::Enum(label) => {
                f.write_str(label.name_at(label.ordinal() as usize).unwrap_or("an unknown label"))
            }
            Value::Sequence(node) => write!(f, "a sequence of {}", node.len()),
            Value::Struct(node) => match node.type_name() {
                Some(name) => write!(f, "a struct {name}"),
                None => f.write_str("a struct"),
            },
            Value::List(node) => write!(f, "a name/value list of {}", node.len()),
            Value::Union(node) => write!(f, "a union with {} active", node.name_at(0).unwrap_or("no arm")),
        }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.category())
    }
}

/// What selects an arm of a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorValue<'a> {
    /// A number, or the position of a label.
    Number(i64),
    /// A string, or a label.
    Text(&'a str),
}

/// What has parts. The [`Value`] that leads here says what it is, and so which of these methods are asked.
///
/// | | `len`, `at` | `position`, `named`, `name_at` | |
/// |---|---|---|---|
/// | sequence | elements | | |
/// | struct | members in the order of their declaration | their names | |
/// | name/value list | values | their names, which differ | `pair` |
/// | enumeration | labels as strings | labels | `ordinal` |
/// | union | the active arm is at 0, if it has a value | its name | `discriminator`, `is_selected_by`, `is_default_arm` |
///
/// Evaluation calls each method at most once per step, so implementations that take constant time (`position`: a time in
/// proportion to `len`) keep evaluation bounded. They must not allocate, lock or panic.
pub trait Node {
    /// How many parts there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part at a position below `len`; `None` if it is absent, as the value of an `Option` can be.
    fn at(&self, position: usize) -> Option<Value<'_>>;

    /// Where the part with this name is.
    fn position(&self, name: &str) -> Option<usize> {
        (0..self.len()).find(|position| self.name_at(*position) == Some(name))
    }

    /// The part with this name, if it is there and not absent.
    fn named(&self, name: &str) -> Option<Value<'_>> {
        self.position(name).and_then(|position| self.at(position))
    }

    /// The name of the part at a position.
    fn name_at(&self, position: usize) -> Option<&str> {
        let _ = position;
        None
    }

    /// The name of the type, if it has one.
    fn type_name(&self) -> Option<&str> {
        None
    }

    /// The identifier of the type in an interface repository, if it has one.
    fn repository_id(&self) -> Option<&str> {
        None
    }

    /// The pair at a position of a name/value list: a struct with the members `name` and `value`.
    fn pair(&self, position: usize) -> Option<Value<'_>> {
        let _ = position;
        None
    }

    /// The position of the label of an enumeration.
    fn ordinal(&self) -> u32 {
        0
    }

    /// The discriminator of a union.
    fn discriminator(&self) -> Option<Value<'_>> {
        None
    }

    /// Whether this value of the discriminator of a union selects the arm that is active.
    fn is_selected_by(&self, selector: SelectorValue<'_>) -> bool {
        let _ = selector;
        false
    }

    /// How many values [`Node::is_selected_by`] compares at most.
    fn selectors(&self) -> usize {
        1
    }

    /// Whether the default arm of a union is active.
    fn is_default_arm(&self) -> bool {
        false
    }
}
