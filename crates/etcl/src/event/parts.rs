//! The parts of an event's header.

use super::Properties;
use crate::value::{Kind, Layout, Member, Node, Value};

/// `$.header`
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) fixed: FixedHeader,
    pub(super) variable: Properties,
}

/// `$.header.fixed_header`
#[derive(Clone, Debug)]
pub(super) struct FixedHeader {
    pub(super) event_type: EventType,
    pub(super) event_name: String,
}

/// `$.header.fixed_header.event_type`
#[derive(Clone, Debug)]
pub(super) struct EventType {
    pub(super) domain_name: String,
    pub(super) type_name: String,
}

impl Header {
    pub(super) fn new(domain_name: String, type_name: String, event_name: String) -> Self {
        let event_type = EventType { domain_name, type_name };
        Header { fixed: FixedHeader { event_type, event_name }, variable: Properties::default() }
    }
}

pub(super) fn header() -> &'static Layout {
    static LAYOUT: Layout = Layout {
        name: "EventHeader",
        repository_id: Some("IDL:omg.org/CosNotification/EventHeader:1.0"),
        members: &[
            Member { name: "fixed_header", kind: || Kind::Struct(fixed_header) },
            Member { name: "variable_header", kind: || Kind::List },
        ],
    };
    &LAYOUT
}

fn fixed_header() -> &'static Layout {
    static LAYOUT: Layout = Layout {
        name: "FixedEventHeader",
        repository_id: Some("IDL:omg.org/CosNotification/FixedEventHeader:1.0"),
        members: &[
            Member { name: "event_type", kind: || Kind::Struct(event_type) },
            Member { name: "event_name", kind: || Kind::Text },
        ],
    };
    &LAYOUT
}

fn event_type() -> &'static Layout {
    static LAYOUT: Layout = Layout {
        name: "EventType",
        repository_id: Some("IDL:omg.org/CosNotification/EventType:1.0"),
        members: &[
            Member { name: "domain_name", kind: || Kind::Text },
            Member { name: "type_name", kind: || Kind::Text },
        ],
    };
    &LAYOUT
}

macro_rules! parts {
    ($($part:ident of $layout:ident { $($position:literal: $field:ident as $variant:ident),* })*) => {
        $(impl Node for $part {
            fn len(&self) -> usize {
                $layout().members.len()
            }

            fn at(&self, position: usize) -> Option<Value<'_>> {
                match position {
                    $($position => Some(Value::$variant(&self.$field)),)*
                    _ => None,
                }
            }

            fn name_at(&self, position: usize) -> Option<&str> {
                $layout().name_at(position)
            }

            fn type_name(&self) -> Option<&str> {
                Some($layout().name)
            }

            fn repository_id(&self) -> Option<&str> {
                $layout().repository_id
            }
        })*
    };
}

parts! {
    Header of header { 0: fixed as Struct, 1: variable as List }
    FixedHeader of fixed_header { 0: event_type as Struct, 1: event_name as Text }
    EventType of event_type { 0: domain_name as Text, 1: type_name as Text }
}
