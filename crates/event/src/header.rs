//! What constraints find in the header of every event, before what its content has.

use talea_etcl::{Filterable, Form, Kind, Layout, Lookup, Member, Node, Value};

/// The names, which are written with a `$`, and what they are.
pub const HEADER: [(&str, Kind); 5] = [
    ("domain_name", Kind::Text),
    ("type_name", Kind::Text),
    ("event_name", Kind::Text),
    ("source", Kind::Integer),
    ("priority", Kind::Integer),
];

/// Where the header has this name, written in this form, and as what.
pub fn in_header(name: &str, form: Form) -> Option<(usize, Kind)> {
    let place = HEADER.iter().position(|(known, _)| *known == name).filter(|_| form != Form::Bare)?;
    Some((place, HEADER[place].1))
}

/// An event of which only the header is known: what constraints are held against before there are events. Everything else may be there.
#[derive(Clone, Copy, Debug)]
pub struct AnyEvent;

impl Node for AnyEvent {
    fn len(&self) -> usize {
        HEADER.len()
    }

    fn at(&self, _position: usize) -> Option<Value<'_>> {
        None
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        HEADER.get(position).map(|(name, _)| *name)
    }
}

static MEMBERS: [Member; 0] = [];
static LAYOUT: Layout = Layout { name: "Event", repository_id: None, members: &MEMBERS };

impl Filterable for AnyEvent {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(name: &str, form: Form) -> Lookup {
        in_header(name, form).map_or(Lookup::ByName, |(place, kind)| Lookup::At(place, kind))
    }

    fn short(&self, _name: &str) -> Option<Value<'_>> {
        None
    }

    fn short_names(&self) -> usize {
        0
    }
}
