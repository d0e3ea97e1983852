//! Values from JSON.

use super::{EventProblem, place};
use crate::event::{OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties};
use jsonc_parser::ast::{Array, NumberLit, Object, ObjectProp, Value as Json};
use jsonc_parser::common::Ranged;
use std::ops::Range;
use std::sync::Arc;

/// Reads what stands in a text.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
}

type Read<T> = Result<T, EventProblem>;

impl Reader<'_> {
    pub(super) fn problem(&self, span: Range<usize>, message: String, remedy: &str) -> EventProblem {
        let (line, column) = place(self.text, span.start);
        EventProblem { span, line, column, message, remedy: remedy.into() }
    }

    /// What stands at `found` instead of `what`, which is `expected`.
    pub(super) fn unexpected(&self, found: &Json<'_>, what: &str, expected: &str) -> EventProblem {
        let kind = match found {
            Json::StringLit(_) => "a string",
            Json::NumberLit(_) => "a number",
            Json::BooleanLit(_) => "a boolean",
            Json::Object(_) => "an object",
            Json::Array(_) => "an array",
            Json::NullKeyword(_) => "null",
        };
        self.problem(span(found), format!("{what} is {kind}"), &format!("write {expected}"))
    }

    /// Refuses keys that are not among these, and keys that are there twice.
    pub(super) fn only(&self, object: &Object<'_>, keys: &[&str]) -> Read<()> {
        self.without_duplicates(&object.properties)?;
        match object.properties.iter().find(|property| !keys.contains(&property.name.as_str())) {
            Some(property) => {
                let message = format!("there is no key {:?} here", property.name.as_str());
                Err(self.problem(name_span(property), message, &format!("the keys are {}", keys.join(", "))))
            }
            None => Ok(()),
        }
    }

    fn without_duplicates(&self, properties: &[ObjectProp<'_>]) -> Read<()> {
        let mut names: Vec<(&str, usize)> = Vec::with_capacity(properties.len());
        names.extend(properties.iter().enumerate().map(|(index, property)| (property.name.as_str(), index)));
        names.sort_unstable();
        let twice = names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min();
        match twice {
            Some(index) => {
                let name = properties[index].name.as_str();
                let message = format!("the name {name:?} is there twice");
                Err(self.problem(name_span(&properties[index]), message, "leave one of them out"))
            }
            None => Ok(()),
        }
    }

    pub(super) fn needed<'v>(&self, object: &'v Object<'_>, key: &str) -> Read<&'v Json<'v>> {
        match object.get(key) {
            Some(property) => Ok(&property.value),
            None => {
                let start = object.range.start;
                Err(self.problem(start..start + 1, format!("{key} is missing"), "add it"))
            }
        }
    }

    pub(super) fn text_of(&self, value: &Json<'_>, what: &str) -> Read<String> {
        match value {
            Json::StringLit(text) => Ok(text.value.clone().into_owned()),
            other => Err(self.unexpected(other, what, "a string")),
        }
    }

    fn optional_text(&self, object: &Object<'_>, key: &str) -> Read<Option<String>> {
        object.get(key).map(|property| self.text_of(&property.value, key)).transpose()
    }

    pub(super) fn properties(&self, object: &Object<'_>) -> Read<Properties> {
        self.without_duplicates(&object.properties)?;
        let pair =
            |property: &ObjectProp<'_>| Ok((property.name.as_str().to_owned(), self.value(&property.value)?));
        let pairs = object.properties.iter().map(pair).collect::<Read<Vec<_>>>()?;
        Properties::new(pairs).map_err(|error| {
            self.problem(object.range.start..object.range.end, error.to_string(), "leave one of them out")
        })
    }

    /// Pairs of name and value, which are arrays of two.
    fn pairs(&self, value: &Json<'_>, what: &str) -> Read<Properties> {
        let expected = "a list of pairs [name, value]";
        let Json::Array(list) = value else { return Err(self.unexpected(value, what, expected)) };
        let pair = |element: &Json<'_>| match element {
            Json::Array(Array { elements, .. }) if elements.len() == 2 => {
                Ok((self.text_of(&elements[0], "the name of a pair")?, self.value(&elements[1])?))
            }
            other => Err(self.unexpected(other, what, expected)),
        };
        let pairs = list.elements.iter().map(pair).collect::<Read<Vec<_>>>()?;
        Properties::new(pairs)
            .map_err(|error| self.problem(span(value), error.to_string(), "leave one of them out"))
    }

    /// A value of any kind.
    pub(super) fn value(&self, value: &Json<'_>) -> Read<OwnedValue> {
        match value {
            Json::BooleanLit(literal) => Ok(OwnedValue::Boolean(literal.value)),
            Json::StringLit(text) => Ok(OwnedValue::Text(text.value.clone().into_owned())),
            Json::NumberLit(number) => self.number(number),
            Json::Array(array) => {
                let elements =
                    array.elements.iter().map(|element| self.value(element)).collect::<Read<_>>()?;
                Ok(OwnedValue::Sequence(elements))
            }
            Json::Object(object) => self.object(object),
            Json::NullKeyword(_) => {
                let remedy = "leave the name out where there is no value";
                Err(self.problem(span(value), "there is no value null".into(), remedy))
            }
        }
    }

    fn number(&self, number: &NumberLit<'_>) -> Read<OwnedValue> {
        let at = number.range.start..number.range.end;
        if number.value.contains(['.', 'e', 'E']) {
            return match number.value.parse::<f64>() {
                Ok(float) if float.is_finite() => Ok(OwnedValue::Float(float)),
                _ => Err(self.problem(at, "this number is too large".into(), "write at most 1.7e308")),
            };
        }
        match number.value.parse() {
            Ok(integer) => Ok(OwnedValue::Integer(integer)),
            Err(_) => {
                let message = "this number does not fit a signed integer of 64 bits".into();
                Err(self.problem(at, message, "write {\"$u64\": \"...\"}, or a number with a point"))
            }
        }
    }

    /// An unnamed struct, or what a key with `$` says.
    fn object(&self, object: &Object<'_>) -> Read<OwnedValue> {
        let special = match &object.properties[..] {
            [only] if only.name.as_str().starts_with('$') => only,
            _ => {
                let members = self.properties(object)?;
                return Ok(OwnedStruct { members, ..OwnedStruct::default() }.into());
            }
        };
        let name = special.name.as_str();
        let inner = |keys: &[&str]| match &special.value {
            Json::Object(inner) => self.only(inner, keys).map(|()| inner),
            other => Err(self.unexpected(other, name, &format!("an object with {}", keys.join(", ")))),
        };
        match name {
            "$u64" => {
                let text = self.text_of(&special.value, name)?;
                let number = text.parse().map_err(|_| {
                    let remedy = format!("write the digits of a number up to {}", u64::MAX);
                    self.problem(span(&special.value), "this is no unsigned integer".into(), &remedy)
                })?;
                Ok(OwnedValue::Unsigned(number))
            }
            "$nv" => Ok(OwnedValue::List(self.pairs(&special.value, name)?)),
            "$struct" => {
                let inner = inner(&["name", "repos_id", "members"])?;
                let members = self.pairs(self.needed(inner, "members")?, "members")?;
                let type_name = self.optional_text(inner, "name")?;
                let repository_id = self.optional_text(inner, "repos_id")?;
                Ok(OwnedStruct { type_name, repository_id, members }.into())
            }
            "$enum" => self.label(inner(&["name", "repos_id", "labels", "value"])?),
            "$union" => {
                let keys = ["name", "repos_id", "disc", "labels", "member", "default", "value"];
                self.union(inner(&keys)?)
            }
            _ => {
                let message = format!("there is no kind of value {name:?}");
                Err(self.problem(name_span(special), message, "write $u64, $struct, $nv, $enum or $union"))
            }
        }
    }

    fn label(&self, object: &Object<'_>) -> Read<OwnedValue> {
        let listed = self.needed(object, "labels")?;
        let Json::Array(labels) = listed else {
            return Err(self.unexpected(listed, "labels", "a list of strings"));
        };
        let labels =
            labels.elements.iter().map(|label| self.text_of(label, "a label")).collect::<Read<_>>()?;
        let of = OwnedEnumType {
            name: self.text_of(self.needed(object, "name")?, "name")?,
            repository_id: self.optional_text(object, "repos_id")?.unwrap_or_default(),
            labels,
        };
        let value = self.needed(object, "value")?;
        let label = self.text_of(value, "value")?;
        OwnedEnum::new(Arc::new(of), &label).map(OwnedValue::Enum).ok_or_else(|| {
            self.problem(span(value), format!("{label:?} is none of the labels"), "write one of the labels")
        })
    }

    fn union(&self, object: &Object<'_>) -> Read<OwnedValue> {
        let selectors = match object.get("labels").map(|property| &property.value) {
            None => Vec::new(),
            Some(Json::Array(labels)) => {
                labels.elements.iter().map(|label| self.value(label)).collect::<Read<_>>()?
            }
            Some(other) => return Err(self.unexpected(other, "labels", "a list of discriminators")),
        };
        let is_default_arm = match object.get("default").map(|property| &property.value) {
            None => false,
            Some(Json::BooleanLit(literal)) => literal.value,
            Some(other) => return Err(self.unexpected(other, "default", "true or false")),
        };
        Ok(OwnedValue::Union(Box::new(OwnedUnion {
            type_name: self.optional_text(object, "name")?,
            repository_id: self.optional_text(object, "repos_id")?,
            discriminator: self.value(self.needed(object, "disc")?)?,
            selectors,
            member: self.text_of(self.needed(object, "member")?, "member")?,
            is_default_arm,
            value: self.value(self.needed(object, "value")?)?,
        })))
    }
}

fn span(value: &Json<'_>) -> Range<usize> {
    let range = value.range();
    range.start..range.end
}

/// Where the name of a property stands.
fn name_span(property: &ObjectProp<'_>) -> Range<usize> {
    let range = property.name.range();
    range.start..range.end
}
