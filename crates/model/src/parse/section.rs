//! One table of the file, read by its declaration.

use super::Finding;
use super::execution::Traces;
use crate::channel::SubscriptionOwner;
use crate::keys::{Key, Kind, Presence, Table};
use crate::suggest::nearest;
use crate::{Place, Severity, keys};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What was found while reading.
pub(super) struct Findings {
    /// About what is there.
    pub problems: Vec<Finding>,
    /// About what is not there.
    pub absences: Vec<Finding>,
    pub unread: Unread,
    pub traces: Traces,
}

/// The places of values that could not be read and have stand-ins.
#[derive(Default)]
pub(super) struct Unread {
    places: HashSet<Place>,
    tasks: HashSet<usize>,
    hierarchy: bool,
    operations: bool,
    channels: bool,
    lanes: bool,
}

impl Unread {
    pub(super) fn insert(&mut self, place: Place) {
        self.tasks.extend(place.task());
        self.operations |= matches!(
            place,
            Place::Task(_, "name" | "subtask" | "outputs" | "events")
                | Place::Subtask(_, _, "name" | "outputs" | "events")
                | Place::Output(_, _, _, "name")
                | Place::Publication(_, _, _, "channel" | "type" | "fields")
        );
        self.channels |= matches!(place, Place::Channel(_, "name"));
        self.hierarchy |= matches!(
            place,
            Place::SchedulerUnder(..)
                | Place::ThreadUnder(..)
                | Place::Scheduler(_, "name")
                | Place::Thread(..)
        );
        self.lanes |= matches!(
            place,
            Place::Task(_, "lanes" | "node")
                | Place::Subtask(_, _, "lanes" | "node")
                | Place::Scheduler(_, "name" | "kind" | "node")
                | Place::SchedulerUnder(..)
        );
        self.places.insert(place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        self.places.contains(&place)
    }

    /// Whether who is below whom, or what somebody is called, could not be read.
    pub(super) fn concerns_hierarchy(&self) -> bool {
        self.hierarchy
    }

    /// Whether in whose lanes a subtask is, or where somebody's lanes are, could not be read.
    pub(super) fn concerns_lanes(&self) -> bool {
        self.lanes
    }

    /// Whether what an operation or an output is called could not be read.
    pub(super) fn concerns_operations(&self) -> bool {
        self.operations
    }

    /// Whether what a channel is called could not be read.
    pub(super) fn concerns_channels(&self) -> bool {
        self.channels
    }

    /// Whether a value of the task or of one of its subtasks could not be read.
    pub(super) fn concerns_task(&self, task: usize) -> bool {
        self.tasks.contains(&task)
    }
}

impl Findings {
    pub(super) fn new(base_dir: &Path) -> Self {
        Findings {
            problems: Vec::new(),
            absences: Vec::new(),
            unread: Unread::default(),
            traces: Traces::new(base_dir),
        }
    }

    /// Something the file as a whole lacks.
    pub(super) fn miss_whole(&mut self, message: &str, remedy: &str) {
        self.unread.insert(Place::Whole);
        let (message, remedy) = (message.into(), remedy.into());
        self.absences.push(Finding { severity: Severity::Error, span: None, message, remedy });
    }

    /// A key that a table lacks.
    pub(super) fn miss(&mut self, section: &Section<'_>, key: &'static str, remedy: &str) {
        self.unread.insert(section.item.place(key));
        let message = format!("\"{key}\" is missing in {}", section.declaration.header);
        let span = Some(section.header());
        self.absences.push(Finding { severity: Severity::Error, span, message, remedy: remedy.into() });
    }

    /// Reads with the trace files taken out, because reading them and reporting both need the findings.
    pub(super) fn with_traces<T>(&mut self, read: impl FnOnce(&mut Self, &mut Traces) -> T) -> T {
        let mut traces = std::mem::replace(&mut self.traces, Traces::new("".as_ref()));
        let value = read(self, &mut traces);
        self.traces = traces;
        value
    }

    pub(super) fn error(&mut self, span: Range<usize>, message: String, remedy: impl Into<String>) {
        let remedy = remedy.into();
        self.problems.push(Finding { severity: Severity::Error, span: Some(span), message, remedy });
    }
}

/// The item of the description that a table describes.
#[derive(Clone, Copy)]
pub(super) enum Item {
    File,
    System,
    Overhead,
    Node(usize),
    Link(usize),
    Task(usize),
    Subtask(usize, usize),
    Output(usize, usize, usize),
    Input(usize, usize, usize),
    Trigger(usize),
    Channel(usize),
    Publication(usize, usize, usize),
    Subscription(SubscriptionOwner),
    PriorityBy(SubscriptionOwner, usize),
    TimeoutBy(SubscriptionOwner, usize),
    Chain(usize),
    Scheduler(usize),
    SchedulerUnder(usize, usize),
    Thread(usize),
    ThreadUnder(usize, usize),
}

impl Item {
    pub(super) fn place(self, key: &'static str) -> Place {
        match self {
            Item::File => Place::Whole,
            Item::System => Place::System(key),
            Item::Overhead => Place::Overhead(key),
            Item::Node(node) => Place::Node(node, key),
            Item::Link(link) => Place::Link(link, key),
            Item::Task(task) => Place::Task(task, key),
            Item::Subtask(task, subtask) => Place::Subtask(task, subtask, key),
            Item::Output(task, subtask, output) => Place::Output(task, subtask, output, key),
            Item::Input(task, subtask, input) => Place::Input(task, subtask, input, key),
            Item::Trigger(task) => Place::Trigger(task, key),
            Item::Channel(channel) => Place::Channel(channel, key),
            Item::Publication(task, subtask, event) => Place::Publication(task, subtask, event, key),
            Item::Subscription(owner) => Place::Subscription(owner, key),
            Item::PriorityBy(owner, entry) => Place::PriorityBy(owner, entry, key),
            Item::TimeoutBy(owner, entry) => Place::TimeoutBy(owner, entry, key),
            Item::Chain(chain) => Place::Chain(chain, key),
            Item::Scheduler(scheduler) => Place::Scheduler(scheduler, key),
            Item::SchedulerUnder(scheduler, edge) => Place::SchedulerUnder(scheduler, edge, key),
            Item::Thread(thread) => Place::Thread(thread, key),
            Item::ThreadUnder(thread, edge) => Place::ThreadUnder(thread, edge, key),
        }
    }
}

/// A table of the file with its declaration.
#[derive(Clone, Copy)]
pub(super) struct Section<'t> {
    pub declaration: &'static Table,
    pub item: Item,
    values: &'t DeTable<'t>,
    /// The header of the table, or the whole of an inline table.
    header: (usize, usize),
}

/// What stands for a key.
pub(super) enum Given<'t> {
    Value(&'t Spanned<DeValue<'t>>),
    Default(&'static keys::Literal),
    Nothing,
}

impl<'t> Section<'t> {
    /// Takes a table, reporting keys it should not have and keys it lacks.
    pub(super) fn open(
        declaration: &'static Table,
        item: Item,
        values: &'t DeTable<'t>,
        header: Range<usize>,
        findings: &mut Findings,
    ) -> Self {
        let section = Section { declaration, item, values, header: (header.start, header.end) };
        for (name, value) in values {
            match declaration.find(name.get_ref()) {
                None => section.report_unknown(name.get_ref(), name.span(), value.get_ref(), findings),
                Some(Key { kind: Kind::Later(remedy), .. }) => {
                    let message = format!("this version does not know \"{}\" in files yet", name.get_ref());
                    findings.error(name.span(), message, *remedy);
                }
                Some(Key { kind: Kind::Former(remedy), .. }) => {
                    let message = format!("\"{}\" is a key of earlier versions", name.get_ref());
                    findings.error(name.span(), message, *remedy);
                }
                Some(_) => {}
            }
        }
        let required = declaration.keys.iter().filter(|key| matches!(key.presence, Presence::Required));
        for key in required.filter(|key| !values.contains_key(key.name)) {
            findings.unread.insert(item.place(key.name));
            let (message, remedy) = missing(declaration, key);
            let span = (!matches!(item, Item::File)).then(|| section.header());
            findings.absences.push(Finding { severity: Severity::Error, span, message, remedy });
        }
        section
    }

    pub(super) fn header(&self) -> Range<usize> {
        self.header.0..self.header.1
    }

    /// The value of a key, or of its default.
    ///
    /// # Panics
    /// If the key is not declared; the readers of tables name declared keys.
    pub(super) fn given(&self, name: &str) -> (&'static Key, Given<'t>) {
        let key = self.declaration.find(name).unwrap_or_else(|| panic!("\"{name}\" is not declared"));
        let given = match (self.values.get(name), &key.presence) {
            (Some(value), _) => Given::Value(value),
            (None, Presence::Default(literal)) => Given::Default(literal),
            (None, _) => Given::Nothing,
        };
        (key, given)
    }

    /// Whether the file says something for a key.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Where the value of a key stands; the header if the key is absent.
    pub(super) fn span(&self, name: &str) -> Range<usize> {
        self.values.get(name).map_or(self.header(), Spanned::span)
    }

    fn report_unknown(&self, name: &str, span: Range<usize>, value: &DeValue<'_>, findings: &mut Findings) {
        let place = match self.declaration.header {
            "" => "a system file".to_owned(),
            header => header.to_owned(),
        };
        let is_table = match value {
            DeValue::Table(_) => true,
            DeValue::Array(elements) => elements.iter().any(|element| element.get_ref().is_table()),
            _ => false,
        };
        let what = if is_table { "table" } else { "key" };
        let known = || self.declaration.known().map(|key| key.name);
        let remedy = if let Some(nearest) = nearest(name, known()) {
            format!("did you mean \"{nearest}\"?")
        } else if let Some(remedy) = home_of(name) {
            remedy
        } else {
            format!("the keys here are {}", known().collect::<Vec<_>>().join(", "))
        };
        findings.error(span, format!("unknown {what} \"{name}\" in {place}"), remedy);
    }
}

/// Where a key `name` belongs.
fn home_of(name: &str) -> Option<String> {
    let tables = [
        &keys::SYSTEM,
        &keys::OVERHEAD,
        &keys::NODE,
        &keys::TASK,
        &keys::SUBTASK,
        &keys::OUTPUT,
        &keys::INPUT,
        &keys::TRIGGER,
        &keys::CHANNEL,
        &keys::PUBLICATION,
        &keys::SUBSCRIPTION,
        &keys::PRIORITY_BY,
        &keys::TIMEOUT_BY,
        &keys::CHAIN,
        &keys::SCHEDULER,
        &keys::THREAD,
        &keys::UNDER,
    ];
    let home = tables.into_iter().find(|table| table.known().any(|key| key.name == name))?;
    Some(match home.find(name).map(|key| &key.kind) {
        Some(Kind::Many(inner)) if !inner.is_inline() => {
            format!("write {} below its {}", inner.header, home.header)
        }
        _ => format!("\"{name}\" belongs in {}", home.header),
    })
}

fn missing(declaration: &Table, key: &Key) -> (String, String) {
    match &key.kind {
        Kind::Many(inner) if inner.is_inline() => {
            (format!("\"{}\" is missing in {}", key.name, declaration.header), entry_wanted(key.name, inner))
        }
        Kind::One(inner) | Kind::Many(inner) => {
            let required = inner.keys.iter().filter(|key| matches!(key.presence, Presence::Required));
            let required: Vec<_> = required.map(|key| key.name).collect();
            (
                format!("{} is missing", inner.header),
                format!("write {} and below it {}", inner.header, required.join(", ")),
            )
        }
        _ => (
            format!("\"{}\" is missing in {}", key.name, declaration.header),
            format!("add {} = {}", key.name, super::values::sample(key)),
        ),
    }
}

/// What to write where the list `name` has no entry.
pub(super) fn entry_wanted(name: &str, table: &Table) -> String {
    let list = format!("{name} = [{}]", table.entry().unwrap_or("{ ... }"));
    match name {
        "under" => format!("name the scheduler above: {list}"),
        _ => format!("write {list}, or leave it out"),
    }
}
