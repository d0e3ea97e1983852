//! An event that counts how often it is looked at.

use std::cell::Cell;
use talea_etcl::{Filterable, Form, Kind, Layout, Lookup, Member, Node, Value};

/// An event whose parts are all the same sequence or struct of a length without end in sight.
#[derive(Debug)]
pub struct Endless {
    length: usize,
    looked_at: Cell<u64>,
    text: String,
}

impl Endless {
    /// One of parts that have so many parts each, and strings of as many bytes.
    pub fn new(length: usize) -> Self {
        Endless { length, looked_at: Cell::new(0), text: "a".repeat(length) }
    }

    /// How often anything of it has been looked at.
    pub fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    fn look(&self) {
        self.looked_at.set(self.looked_at.get() + 1);
    }
}

impl Node for Endless {
    fn len(&self) -> usize {
        self.length
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.look();
        Some(match position % 5 {
            0 => Value::Integer(position as i64),
            1 => Value::Sequence(self),
            2 => Value::Struct(self),
            3 => Value::Text(&self.text),
            _ => Value::Enum(self),
        })
    }

    fn position(&self, name: &str) -> Option<usize> {
        // As if each name were compared.
        self.looked_at.set(self.looked_at.get() + self.length as u64);
        match name {
            "number" => Some(0),
            "list" => Some(1),
            "inner" => Some(2),
            "text" => Some(3),
            "label" => Some(4),
            _ => None,
        }
    }
}

/// A type of which nothing is known but by name, when it is looked at.
pub static LAYOUT: Layout =
    Layout { name: "Endless", repository_id: None, members: &[Member { name: "x", kind: || Kind::Dynamic }] };

impl Filterable for Endless {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(_: &str, _: Form) -> Lookup {
        Lookup::ByName
    }
}
