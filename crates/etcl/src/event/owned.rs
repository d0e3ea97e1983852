//! Values that own what they have.

use crate::value::{Kind, Node, SelectorValue, Value, View};
use std::sync::Arc;
use thiserror::Error;

/// A value of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValue {
    /// A boolean.
    Boolean(bool),
    /// A signed integer.
    Integer(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(String),
    /// Elements, also of several types.
    Sequence(Vec<OwnedValue>),
    /// Members with names.
    Struct(Box<OwnedStruct>),
    /// Pairs of name and value.
    List(Properties),
    /// A label of an enumeration.
    Enum(OwnedEnum),
    /// One of several arms.
    Union(Box<OwnedUnion>),
}

impl View for OwnedValue {
    fn kind() -> Kind {
        Kind::Dynamic
    }

    #[inline]
    fn view(&self) -> Option<Value<'_>> {
        Some(match self {
            OwnedValue::Boolean(value) => Value::Boolean(*value),
            OwnedValue::Integer(value) => Value::Integer(*value),
            OwnedValue::Unsigned(value) => Value::Unsigned(*value),
            OwnedValue::Float(value) => Value::Float(*value),
            OwnedValue::Text(text) => Value::Text(text),
            OwnedValue::Sequence(elements) => Value::Sequence(elements),
            OwnedValue::Struct(members) => Value::Struct(&**members),
            OwnedValue::List(properties) => Value::List(properties),
            OwnedValue::Enum(label) => Value::Enum(label),
            OwnedValue::Union(union) => Value::Union(&**union),
        })
    }
}

macro_rules! conversions {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for OwnedValue {
            fn from(value: $from) -> Self {
                OwnedValue::$variant(value.into())
            }
        })*
    };
}

conversions! {
    bool => Boolean, i32 => Integer, i64 => Integer, u64 => Unsigned, f64 => Float, &str => Text, String => Text,
    Vec<OwnedValue> => Sequence, OwnedStruct => Struct, Properties => List, OwnedEnum => Enum, OwnedUnion => Union,
}

/// Two properties of one name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there are two values for {0}; names of properties differ from each other")]
pub struct DuplicateName(pub String);

/// Properties: pairs of name and value, in their order. The names differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties(Vec<Property>);

/// A pair of name and value.
#[derive(Clone, Debug, PartialEq)]
struct Property {
    name: Box<str>,
    value: OwnedValue,
}

impl Property {
    /// The length decides most cases.
    #[inline]
    fn is_named(&self, name: &str) -> bool {
        self.name.len() == name.len() && *self.name == *name
    }
}

impl Properties {
    /// These properties.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn new(pairs: impl IntoIterator<Item = (String, OwnedValue)>) -> Result<Self, DuplicateName> {
        let pair = |(name, value): (String, OwnedValue)| Property { name: name.into(), value };
        let pairs: Vec<Property> = pairs.into_iter().map(pair).collect();
        let mut names: Vec<&str> = pairs.iter().map(|pair| &*pair.name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(DuplicateName(pair[0].into())),
            None => Ok(Properties(pairs)),
        }
    }

    /// The value of this name. The time is in proportion to how many there are.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&OwnedValue> {
        self.0.iter().find(|pair| pair.is_named(name)).map(|pair| &pair.value)
    }

    /// Gives the name this value; what it had before.
    pub fn insert(&mut self, name: &str, value: impl Into<OwnedValue>) -> Option<OwnedValue> {
        match self.0.iter_mut().find(|pair| *pair.name == *name) {
            Some(pair) => Some(std::mem::replace(&mut pair.value, value.into())),
            None => {
                self.0.push(Property { name: name.into(), value: value.into() });
                None
            }
        }
    }

    /// Removes the property of this name; the value that it had.
    pub fn remove(&mut self, name: &str) -> Option<OwnedValue> {
        let place = self.0.iter().position(|pair| *pair.name == *name)?;
        Some(self.0.remove(place).value)
    }

    /// Removes all properties.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The properties in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OwnedValue)> {
        self.0.iter().map(|pair| (&*pair.name, &pair.value))
    }

    /// The same with what they own.
    pub fn into_pairs(self) -> impl Iterator<Item = (Box<str>, OwnedValue)> {
        self.0.into_iter().map(|pair| (pair.name, pair.value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Properties with names that differ; of two values of one name the last one stays.
impl<Name: AsRef<str>, Content: Into<OwnedValue>> FromIterator<(Name, Content)> for Properties {
    fn from_iter<Pairs: IntoIterator<Item = (Name, Content)>>(pairs: Pairs) -> Self {
        let mut properties = Properties::default();
        for (name, value) in pairs {
            properties.insert(name.as_ref(), value);
        }
        properties
    }
}

impl Node for Properties {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.0.get(position).and_then(|pair| pair.value.view())
    }

    #[inline]
    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|pair| pair.is_named(name))
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        self.0.get(position).map(|pair| &*pair.name)
    }

    fn named(&self, name: &str) -> Option<Value<'_>> {
        self.get(name).and_then(View::view)
    }

    fn pair(&self, position: usize) -> Option<Value<'_>> {
        self.0.get(position).map(|pair| Value::Struct(pair))
    }
}

impl Node for Property {
    fn len(&self) -> usize {
        2
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        match position {
            0 => Some(Value::Text(&self.name)),
            1 => self.value.view(),
            _ => None,
        }
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        ["name", "value"].get(position).copied()
    }
}

/// A struct.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedStruct {
    /// The name of its type, if it has one.
    pub type_name: Option<String>,
    /// The identifier of its type, if it has one.
    pub repository_id: Option<String>,
    /// Its members in their order.
    pub members: Properties,
}

impl Node for OwnedStruct {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.members.at(position)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.members.position(name)
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        self.members.name_at(position)
    }

    fn type_name(&self) -> Option<&str> {
        self.type_name.as_deref()
    }

    fn repository_id(&self) -> Option<&str> {
        self.repository_id.as_deref()
    }
}

/// An enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEnumType {
    /// The name of the type.
    pub name: String,
    /// The identifier of the type.
    pub repository_id: String,
    /// The labels, counted from 0.
    pub labels: Vec<String>,
}

/// A label of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEnum {
    of: Arc<OwnedEnumType>,
    ordinal: u32,
}

impl OwnedEnum {
    /// The label of this name; `None` if the enumeration does not have it.
    pub fn new(of: Arc<OwnedEnumType>, label: &str) -> Option<Self> {
        let ordinal = of.labels.iter().position(|known| known == label)?;
        Some(OwnedEnum { of, ordinal: u32::try_from(ordinal).ok()? })
    }
}

impl Node for OwnedEnum {
    fn len(&self) -> usize {
        self.of.labels.len()
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.name_at(position).map(Value::Text)
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        self.of.labels.get(position).map(String::as_str)
    }

    fn type_name(&self) -> Option<&str> {
        Some(&self.of.name)
    }

    fn repository_id(&self) -> Option<&str> {
        Some(&self.of.repository_id)
    }

    fn ordinal(&self) -> u32 {
        self.ordinal
    }
}

/// A union with the arm that is active.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedUnion {
    /// The name of its type, if it has one.
    pub type_name: Option<String>,
    /// The identifier of its type, if it has one.
    pub repository_id: Option<String>,
    /// The discriminator.
    pub discriminator: OwnedValue,
    /// The values of the discriminator that select the active arm, if it is not the default arm.
    pub selectors: Vec<OwnedValue>,
    /// The name of the active arm.
    pub member: String,
    /// Whether the active arm is the default one.
    pub is_default_arm: bool,
    /// What the active arm has.
    pub value: OwnedValue,
}

impl Node for OwnedUnion {
    fn len(&self) -> usize {
        1
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        if position == 0 { self.value.view() } else { None }
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        (position == 0).then_some(&self.member)
    }

    fn type_name(&self) -> Option<&str> {
        self.type_name.as_deref()
    }

    fn repository_id(&self) -> Option<&str> {
        self.repository_id.as_deref()
    }

    fn discriminator(&self) -> Option<Value<'_>> {
        self.discriminator.view()
    }

    fn is_selected_by(&self, selector: SelectorValue<'_>) -> bool {
        // The discriminator itself selects the arm too, which the default arm has no other values for.
        let mut values = self.selectors.iter().chain([&self.discriminator]).filter_map(View::view);
        values.any(|value| value.is_selected_by(selector))
    }

    fn selectors(&self) -> usize {
        self.selectors.len() + 1
    }

    fn is_default_arm(&self) -> bool {
        self.is_default_arm
    }
}
