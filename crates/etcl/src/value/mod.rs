//! The data that constraints look at, as borrowed views: nothing is copied or converted to be filtered.
//!
//! A [`Value`] is a number, a string and so on, or leads to a [`Node`], through which one looks at what has parts. A type that has a view is
//! a [`View`]; what a constraint can be compiled for is [`Filterable`]. All three are derived by `#[derive(Filterable)]` with the feature
//! `derive`.

mod layout;
mod node;
mod standard;

pub use layout::{EnumType, Form, Kind, Label, Layout, Lookup, Member};
pub use node::{Category, Node, SelectorValue, Value};

/// A type whose values can be looked at as parts of an event.
pub trait View {
    /// What is known of every value of the type.
    fn kind() -> Kind
    where
        Self: Sized;

    /// The value; `None` if there is none, as of an `Option`.
    fn view(&self) -> Option<Value<'_>>;
}

/// Where events have the fields of their header, member by member, if their type has a way there.
pub const VARIABLE_HEADER: [&str; 2] = ["header", "variable_header"];

/// A type that constraints are compiled for: the whole that `$` stands for.
pub trait Filterable: Node {
    /// What is known of the type as a whole.
    fn layout() -> &'static Layout
    where
        Self: Sized;

    /// What a name without a path before it stands for.
    ///
    /// Asked once, when a constraint is compiled; what is [`Lookup::ByName`] is looked up in each event by [`Filterable::short`].
    fn resolve(name: &str, form: Form) -> Lookup
    where
        Self: Sized,
    {
        let _ = form;
        Self::layout().position(name).map_or(Lookup::Absent, |position| {
            Lookup::At(position, (Self::layout().members[position].kind)())
        })
    }

    /// The position of what these members, one within the other, lead to, where there is a shorter way than through each of them.
    fn shortcut(members: &[&str]) -> Option<(usize, Kind)>
    where
        Self: Sized,
    {
        let _ = members;
        None
    }

    /// The position of what the name/value list at a position has under this name, where that has a place of its own.
    fn picked(list: usize, name: &str) -> Option<(usize, Kind)>
    where
        Self: Sized,
    {
        let _ = (list, name);
        None
    }

    /// The most names that the name/value list at a position has, if that is known: what is looked up there takes no more steps. An evaluation on an
    /// event with more may end in an error, as one that takes too many steps.
    fn most_names(list: usize) -> Option<u32>
    where
        Self: Sized,
    {
        let _ = list;
        None
    }

    /// The value that a name without a path stands for in this event.
    fn short(&self, name: &str) -> Option<Value<'_>> {
        self.named(name)
    }

    /// How many names [`Filterable::short`] compares at most.
    fn short_names(&self) -> usize {
        self.len()
    }
}
