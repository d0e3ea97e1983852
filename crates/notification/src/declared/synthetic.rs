//! Events of operations without code: of the declared size, with fields that are drawn from the seed.

use crate::event::{Content, Event, EventPool, EventType, Header, Origin};
use std::sync::{Arc, LazyLock};
use talea_channel::Codec;
use talea_etcl::{Filterable, Form, Layout, Lookup, Node, Value};
use talea_model::{FieldValues, PublicationSite, SyntheticField, System};
use talea_operation::{decode_fields, encode_fields};
use talea_policy::demand::{self, Purpose};
use talea_time::Duration;

/// What an event carries that an operation without code has pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyntheticEvent {
    names: Arc<[String]>,
    /// Its fields, in the order of the description.
    pub fields: Box<[i64]>,
    /// The rest of the bytes that are declared, so that making and reading the event has its price.
    pub bytes: Box<[u8]>,
}

impl SyntheticEvent {
    /// One with zeros in fields of these names, and in so many bytes beside them.
    fn empty(names: &Arc<[String]>, rest: usize) -> Self {
        let (fields, bytes) = (vec![0; names.len()].into(), vec![0; rest].into());
        SyntheticEvent { names: Arc::clone(names), fields, bytes }
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<i64> {
        let place = self.names.iter().position(|known| known == name)?;
        self.fields.get(place).copied()
    }
}

impl Content for SyntheticEvent {}

impl Node for SyntheticEvent {
    fn len(&self) -> usize {
        self.fields.len()
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.fields.get(position).map(|field| Value::Integer(*field))
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        self.names.get(position).map(String::as_str)
    }
}

static LAYOUT: LazyLock<Layout> =
    LazyLock::new(|| Layout { name: "SyntheticEvent", repository_id: None, members: &[] });

impl Filterable for SyntheticEvent {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(_name: &str, _form: Form) -> Lookup {
        Lookup::ByName
    }

    #[inline]
    fn short(&self, name: &str) -> Option<Value<'_>> {
        self.field(name).map(Value::Integer)
    }

    fn short_names(&self) -> usize {
        self.names.len()
    }
}

/// Where the synthetic events of a publication come from.
pub(super) struct SyntheticSource {
    pool: EventPool<SyntheticEvent>,
    draws: Box<[Draw]>,
    names: Arc<[String]>,
    /// Those of the header, by their names.
    in_header: Box<[(String, Draw)]>,
    /// Bytes beside the fields.
    rest: usize,
}

/// The values of a field, with the stream from which they are drawn.
type Draw = (FieldValues, u64);

/// The most fields of a publication: streams of publications do not overlap.
const FIELDS: usize = 1 << 10;

impl SyntheticSource {
    /// With so many events, which are all that can be under way.
    pub fn new(system: &System, site: &PublicationSite, event_type: &EventType, events: usize) -> Self {
        let described = system.publication(site);
        let draws_of = |purpose: Purpose, fields: &[SyntheticField]| -> Vec<Draw> {
            let stream =
                |place: usize| demand::stream(system.seed, purpose, site.id.index() * FIELDS + place);
            let draw = |(place, field): (usize, &SyntheticField)| (field.values.clone(), stream(place));
            fields.iter().enumerate().map(draw).collect()
        };
        let draws: Box<[_]> = draws_of(Purpose::Event, &described.fields).into();
        let names_in_header = described.header_fields.iter().map(|field| field.name.clone());
        let in_header =
            names_in_header.zip(draws_of(Purpose::EventHeader, &described.header_fields)).collect();
        let names: Arc<[String]> = described.fields.iter().map(|field| field.name.clone()).collect();
        let rest = (described.bytes as usize).saturating_sub(draws.len() * size_of::<i64>());
        let content = || SyntheticEvent::empty(&names, rest);
        let mut source = SyntheticSource {
            pool: EventPool::new(events, event_type, content),
            draws,
            names: Arc::clone(&names),
            in_header,
            rest,
        };
        // They have their places from now on, in which numbers are put without allocating.
        source.pool.describe(|header| fill(header, &source.in_header, 0));
        source
    }

    /// What makes content without anything in it, as its events have.
    pub fn empty(&self) -> impl Fn() -> SyntheticEvent + Send + Sync + use<> {
        let (names, rest) = (Arc::clone(&self.names), self.rest);
        move || SyntheticEvent::empty(&names, rest)
    }

    /// The event of the job of this origin, from the source of this number; none if all are under way.
    pub fn event(
        &mut self,
        (origin, source): (Origin, u32),
        priority: Option<i16>,
        timeout: Option<Duration>,
    ) -> Option<Event> {
        let mut loan = self.pool.loan()?;
        let header = loan.header();
        (header.origin, header.priority, header.timeout) = (Some(origin), priority, timeout);
        header.source = source;
        fill(header, &self.in_header, origin.instance);
        let content = loan.content();
        for (field, (values, stream)) in content.fields.iter_mut().zip(&self.draws) {
            *field = demand::field_from(values, *stream, origin.instance);
        }
        content.bytes.fill(origin.instance as u8);
        Some(loan.done())
    }
}

/// The header has the fields of the event of this job.
fn fill(header: &mut Header, fields: &[(String, Draw)], instance: u64) {
    for (name, (values, stream)) in fields {
        let number = demand::field_from(values, *stream, instance);
        header.fields.put_allowed(name, number);
    }
}

impl SyntheticEvent {
    /// All its fields, and then the rest.
    pub(super) const CODEC: Codec<SyntheticEvent> = Codec {
        encode: |event, to| encode_fields((&event.fields, &event.bytes), to),
        decode: |event, from| decode_fields((&mut event.fields, &mut event.bytes), from),
    };
}
