//! Structured events: a fixed header, properties in the header and in the body, and a rest.
//!
//! The structure and its type names are those of the notification service (OMG Notification Service 1.1, section 2.2).

#[cfg(feature = "json")]
mod json;
mod owned;
mod parts;

#[cfg(feature = "json")]
pub use json::EventProblem;
pub use owned::{DuplicateName, OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties};

use crate::value::{self, Filterable, Form, Kind, Layout, Lookup, Member, Node, Value, View};
use parts::Header;

/// A structured event that owns what it has.
#[derive(Clone, Debug)]
pub struct Event {
    header: Header,
    filterable_data: Properties,
    remainder_of_body: Option<OwnedValue>,
}

/// Positions of the parts, which `$.0` and so on count too.
const HEADER: usize = 0;
const FILTERABLE_DATA: usize = 1;
const REMAINDER_OF_BODY: usize = 2;
/// Positions beside these, for what short names stand for.
const DOMAIN_NAME: usize = 3;
const TYPE_NAME: usize = 4;
const EVENT_NAME: usize = 5;
const VARIABLE_HEADER: usize = 6;

static LAYOUT: Layout = Layout {
    name: "StructuredEvent",
    repository_id: Some("IDL:omg.org/CosNotification/StructuredEvent:1.0"),
    members: &[
        Member { name: "header", kind: || Kind::Struct(parts::header) },
        Member { name: "filterable_data", kind: || Kind::List },
        Member { name: "remainder_of_body", kind: || Kind::Dynamic },
    ],
};

impl Event {
    /// An event with these names and no properties.
    pub fn new(
        domain_name: impl Into<String>,
        type_name: impl Into<String>,
        event_name: impl Into<String>,
    ) -> Self {
        Event {
            header: Header::new(domain_name.into(), type_name.into(), event_name.into()),
            filterable_data: Properties::default(),
            remainder_of_body: None,
        }
    }

    /// The same event with these properties in its header.
    pub fn with_variable_header(mut self, properties: Properties) -> Self {
        self.header.variable = properties;
        self
    }

    /// The same event with this property in its header, in place of one of the same name.
    pub fn with_in_header(mut self, name: &str, value: impl Into<OwnedValue>) -> Self {
        self.set_in_header(name, value);
        self
    }

    /// Gives a property in its header this value; what it had before.
    pub fn set_in_header(&mut self, name: &str, value: impl Into<OwnedValue>) -> Option<OwnedValue> {
        self.header.variable.insert(name, value)
    }

    /// Removes a property of its header; the value that it had.
    pub fn remove_from_header(&mut self, name: &str) -> Option<OwnedValue> {
        self.header.variable.remove(name)
    }

    /// The same event with these properties in its body.
    pub fn with_filterable_data(mut self, properties: Properties) -> Self {
        self.filterable_data = properties;
        self
    }

    /// The same event with this property in its body, in place of one of the same name.
    pub fn with(mut self, name: &str, value: impl Into<OwnedValue>) -> Self {
        self.filterable_data.insert(name, value);
        self
    }

    /// The same event with this rest, which constraints reach as `$.remainder_of_body`.
    pub fn with_remainder_of_body(mut self, remainder: impl Into<OwnedValue>) -> Self {
        self.remainder_of_body = Some(remainder.into());
        self
    }

    /// The name of the domain.
    pub fn domain_name(&self) -> &str {
        &self.header.fixed.event_type.domain_name
    }

    /// The name of the type.
    pub fn type_name(&self) -> &str {
        &self.header.fixed.event_type.type_name
    }

    /// The name of the event.
    pub fn event_name(&self) -> &str {
        &self.header.fixed.event_name
    }

    /// The properties in the header.
    pub fn variable_header(&self) -> &Properties {
        &self.header.variable
    }

    /// The properties in the body.
    pub fn filterable_data(&self) -> &Properties {
        &self.filterable_data
    }

    /// The rest.
    pub fn remainder_of_body(&self) -> Option<&OwnedValue> {
        self.remainder_of_body.as_ref()
    }
}

impl Node for Event {
    fn len(&self) -> usize {
        LAYOUT.members.len()
    }

    #[inline]
    fn at(&self, position: usize) -> Option<Value<'_>> {
        match position {
            HEADER => Some(Value::Struct(&self.header)),
            FILTERABLE_DATA => Some(Value::List(&self.filterable_data)),
            REMAINDER_OF_BODY => self.remainder_of_body.as_ref().and_then(View::view),
            DOMAIN_NAME => Some(Value::Text(self.domain_name())),
            TYPE_NAME => Some(Value::Text(Event::type_name(self))),
            EVENT_NAME => Some(Value::Text(self.event_name())),
            VARIABLE_HEADER => Some(Value::List(&self.header.variable)),
            _ => None,
        }
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        LAYOUT.name_at(position)
    }

    fn type_name(&self) -> Option<&str> {
        Some(LAYOUT.name)
    }

    fn repository_id(&self) -> Option<&str> {
        LAYOUT.repository_id
    }
}

impl Filterable for Event {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(name: &str, form: Form) -> Lookup {
        let fixed = match name {
            "domain_name" => Some(DOMAIN_NAME),
            "type_name" => Some(TYPE_NAME),
            "event_name" => Some(EVENT_NAME),
            _ => None,
        };
        match (form, fixed, LAYOUT.position(name)) {
            (Form::Dollar | Form::Dotted, Some(position), _) => Lookup::At(position, Kind::Text),
            (Form::Dotted, None, Some(position)) => Lookup::At(position, (LAYOUT.members[position].kind)()),
            _ => Lookup::ByName,
        }
    }

    fn shortcut(members: &[&str]) -> Option<(usize, Kind)> {
        match members {
            members if members == value::VARIABLE_HEADER => Some((VARIABLE_HEADER, Kind::List)),
            ["header", "fixed_header", "event_name"] => Some((EVENT_NAME, Kind::Text)),
            ["header", "fixed_header", "event_type", "domain_name"] => Some((DOMAIN_NAME, Kind::Text)),
            ["header", "fixed_header", "event_type", "type_name"] => Some((TYPE_NAME, Kind::Text)),
            _ => None,
        }
    }

    /// The property of this name, of the header or else of the body.
    #[inline]
    fn short(&self, name: &str) -> Option<Value<'_>> {
        self.header.variable.get(name).or_else(|| self.filterable_data.get(name)).and_then(View::view)
    }

    fn short_names(&self) -> usize {
        self.header.variable.len() + self.filterable_data.len()
    }
}
