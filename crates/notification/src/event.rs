//! Events: a header that the service understands, and content that is the program's own.

use crate::fields::{HeaderFields, Settled};
use crate::qos::Reliability;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;
use talea_etcl::Properties;
use talea_linux::clock::MonotonicClock;
use talea_model::{OperationId, PublicationId};
use talea_time::{Clock, Duration, Instant};

/// The type of an event: a domain, such as `Robot`, and a name within it, such as `Battery`.
///
/// Types are numbered in the process when they are first named, so that comparing and looking up cost no text.
#[derive(Clone)]
pub struct EventType(Arc<TypeName>);

struct TypeName {
    domain: Box<str>,
    name: Box<str>,
    number: u32,
}

/// Types by domain and name.
type Types = HashMap<(Box<str>, Box<str>), EventType>;

/// The types of the process.
static TYPES: OnceLock<Mutex<Types>> = OnceLock::new();

impl EventType {
    /// The type of this domain and name. Allocates when it is named for the first time.
    pub fn new(domain: &str, name: &str) -> Self {
        let mut types = TYPES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let number = types.len() as u32;
        let entry = types.entry((domain.into(), name.into()));
        entry
            .or_insert_with(|| {
                EventType(Arc::new(TypeName { domain: domain.into(), name: name.into(), number }))
            })
            .clone()
    }

    /// Its domain (`domain_name`).
    pub fn domain(&self) -> &str {
        &self.0.domain
    }

    /// Its name in the domain (`type_name`).
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its number in this process.
    pub(crate) fn number(&self) -> usize {
        self.0.number as usize
    }
}

impl PartialEq for EventType {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for EventType {}

impl std::hash::Hash for EventType {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0.domain, self.0.name)
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What the service knows of an event. What is not set here, the quality of service of the supplier and of each consumer says.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Its type.
    pub event_type: EventType,
    /// Which event of its type it is (`event_name`).
    pub event_name: Option<Arc<str>>,
    /// Who it comes from, a number of the program's own, 0 if that does not matter.
    pub source: u32,
    /// Its priority, greater is more urgent.
    pub priority: Option<i16>,
    /// How long after its push it is worth being delivered.
    pub timeout: Option<Duration>,
    /// It is not delivered before this.
    pub start: Option<Instant>,
    /// It is not delivered after this.
    pub stop: Option<Instant>,
    /// Whether it is to survive the end of the process.
    pub reliability: Option<Reliability>,
    /// Who has pushed it, if that is what the description of a system says.
    pub origin: Option<Origin>,
    /// What else users say in it. A [structured](Event::structured) event has these fields in its own variable header, into which they are moved when the event
    /// is made; [`Event::variable_header`] has them either way.
    pub fields: HeaderFields,
}

/// The job that has pushed an event which a description of a system declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// As what it was published.
    pub publication: PublicationId,
    /// The operation.
    pub operation: OperationId,
    /// The instance of the job.
    pub instance: u64,
}

impl Header {
    /// The instant at which it is this time by the clock on the wall, for [`start`](Self::start) and [`stop`](Self::stop), as that clock is set now:
    /// whoever sets it afterwards changes nothing. Times of long ago are the origin of the clock of instants.
    pub fn at_wall_time(time: SystemTime) -> Instant {
        WallClock::now().instant(time)
    }

    /// A header with nothing but a type.
    pub fn new(event_type: EventType) -> Self {
        Header {
            event_type,
            event_name: None,
            source: 0,
            priority: None,
            timeout: None,
            start: None,
            stop: None,
            reliability: None,
            origin: None,
            fields: HeaderFields::default(),
        }
    }
}

/// How the clock on the wall is set: which time it shows at an instant. Instants of a run are those of the machine, in a simulation they are virtual, and
/// whoever simulates says which time it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    shown: SystemTime,
    at: Instant,
}

impl WallClock {
    /// As the machine's is set now.
    pub fn now() -> Self {
        WallClock { shown: SystemTime::now(), at: MonotonicClock.now() }
    }

    /// One that shows this time at that instant, [`Instant::ZERO`] being the beginning of a simulation.
    pub fn showing(shown: SystemTime, at: Instant) -> Self {
        WallClock { shown, at }
    }

    /// The instant at which it shows this time. Times of long ago are the origin of the clock of instants.
    pub fn instant(self, time: SystemTime) -> Instant {
        let nanos = |time: std::time::Duration| {
            Duration::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
        };
        match time.duration_since(self.shown) {
            Ok(later) => self.at.saturating_add(nanos(later)),
            Err(earlier) => self.at.saturating_add(-nanos(earlier.duration())).max(Instant::ZERO),
        }
    }

    /// The same of a time after the beginning of 1970.
    pub(crate) fn instant_since_1970(self, since: Duration) -> Instant {
        let since = std::time::Duration::from_nanos(since.as_nanos().unsigned_abs());
        self.instant(SystemTime::UNIX_EPOCH + since)
    }
}

/// What an event may carry.
pub trait Content: Any + Send + Sync {
    /// How many bytes it has. Content that has more than its own value, on the heap for instance, adds that, so that a channel's limit
    /// ([`AdminProperties::max_event_bytes`](crate::AdminProperties::max_event_bytes)) counts it, and how much
    /// [waits](crate::EventChannel::queued_bytes). Asked once of each event, when it has been written.
    fn bytes(&self) -> usize {
        size_of_val(self)
    }
}

/// What events carry, as a supplier or a consumer has said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentType {
    pub id: TypeId,
    pub name: &'static str,
}

impl ContentType {
    pub fn of<T: 'static>() -> Self {
        ContentType { id: TypeId::of::<T>(), name: std::any::type_name::<T>() }
    }
}

/// An event in memory: its header and its content.
pub(crate) struct Parts<T> {
    pub header: Header,
    pub content: T,
    /// Bytes of the content and the fields of the header.
    bytes: usize,
    /// Fields of the header that the content has now.
    settled: Settled,
}

impl<T: Content> Parts<T> {
    fn new(header: Header, content: T) -> Self {
        Parts { header, content, bytes: 0, settled: Vec::new() }
    }

    /// It is written.
    fn done(&mut self) {
        self.header.fields.complete(&mut self.content, &mut self.settled);
        self.bytes = self.header.fields.bytes() + self.content.bytes();
    }
}

/// The same with content of whatever type.
trait Carried: Any + Send + Sync {
    fn header(&self) -> &Header;
    fn content_type(&self) -> TypeId;
    fn bytes(&self) -> usize;
}

impl<T: Content> Carried for Parts<T> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn content_type(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// An event. It is shared by all that have it, and nobody changes it any more.
#[derive(Clone)]
pub struct Event(Arc<dyn Carried>);

impl Event {
    /// An event of its own, which allocates. [`EventPool`] has events that do not.
    pub fn new(header: Header, content: impl Content) -> Self {
        let mut parts = Parts::new(header, content);
        parts.done();
        Event(Arc::new(parts))
    }

    /// What the service knows of it.
    pub fn header(&self) -> &Header {
        self.0.header()
    }

    /// Its type.
    pub fn event_type(&self) -> &EventType {
        &self.0.header().event_type
    }

    /// What kind of content it has.
    pub(crate) fn content_type(&self) -> TypeId {
        self.0.content_type()
    }

    /// The fields in its header that the service does not know, of a structured event with those that it knows: the standard's variable header.
    pub fn variable_header(&self) -> &Properties {
        match self.content::<talea_etcl::Event>() {
            Some(structured) => structured.variable_header(),
            None => self.header().fields.properties(),
        }
    }

    /// How many bytes its content and the fields of its header have.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Its content, if that is a `T`.
    pub fn content<T: Content>(&self) -> Option<&T> {
        self.parts().map(|parts| &parts.content)
    }

    /// Both of it, if its content is a `T`.
    pub(crate) fn parts<T: Content>(&self) -> Option<&Parts<T>> {
        let any: &dyn Any = self.0.as_ref();
        any.downcast_ref()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("header", self.header()).finish_non_exhaustive()
    }
}

/// Events of one supplier, made beforehand and used again when nobody has them any more.
pub struct EventPool<T> {
    events: Box<[Arc<Parts<T>>]>,
    /// Where to look for a free one first: the one that was lent last, which is still in the processor's caches.
    next: usize,
    /// Those from here on have not been used since they were tidy.
    used: usize,
}

impl<T: Content> EventPool<T> {
    /// So many events of this type with content that `content` makes. The only allocation, but for what content allocates when it is changed.
    ///
    /// # Panics
    /// If that is none.
    pub fn new(events: usize, event_type: &EventType, mut content: impl FnMut() -> T) -> Self {
        assert!(events > 0, "a pool has events");
        let event = || Arc::new(Parts::new(Header::new(event_type.clone()), content()));
        EventPool { events: std::iter::repeat_with(event).take(events).collect(), next: 0, used: 0 }
    }

    /// An event to be written, which is as it was used last; none if all are in use.
    pub fn loan(&mut self) -> Option<Loan<'_, T>> {
        let (count, first) = (self.events.len(), self.next);
        let place = (0..count).map(|step| (first + step) % count).find(|place| self.is_free(*place))?;
        self.next = place;
        self.used = self.used.max(place + 1);
        let mut loan = Loan { event: &mut self.events[place] };
        let Parts { header, content, settled, .. } = loan.parts();
        header.fields.take_back(content, settled);
        Some(loan)
    }

    /// Calls `describe` with the headers of those that are free.
    pub(crate) fn describe(&mut self, mut describe: impl FnMut(&mut Header)) {
        self.events.iter_mut().filter_map(Arc::get_mut).for_each(|parts| describe(&mut parts.header));
    }

    /// The first that is free, so that no more are used than have to be.
    pub(crate) fn loan_first(&mut self) -> Option<Loan<'_, T>> {
        self.next = 0;
        self.loan()
    }

    /// Calls `tidy` with the content of those that are free and have been used, one after the other until it says that
    /// one is not tidy now.
    pub(crate) fn tidy(&mut self, mut tidy: impl FnMut(&mut T) -> bool) {
        let mut free = self.events[..self.used].iter_mut().filter_map(Arc::get_mut);
        let are_tidy = free.all(|parts| tidy(&mut parts.content));
        while are_tidy && self.used > 0 && self.is_free(self.used - 1) {
            self.used -= 1;
        }
    }

    /// Whether only the pool has it, so that nobody else can get it; this also sees what its last reader did.
    fn is_free(&mut self, place: usize) -> bool {
        Arc::get_mut(&mut self.events[place]).is_some()
    }
}

impl<T> fmt::Debug for EventPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventPool").field("events", &self.events.len()).finish_non_exhaustive()
    }
}

/// An event of a pool that is being written. Dropped, it is free again.
pub struct Loan<'a, T> {
    event: &'a mut Arc<Parts<T>>,
}

impl<T: Content> Loan<'_, T> {
    fn parts(&mut self) -> &mut Parts<T> {
        Arc::get_mut(self.event).expect("nobody else has an event that is being written")
    }

    /// What the service is to know of it. It is as it was set last; its [fields](Header::fields) are there, too, so that setting them again does not allocate.
    /// Structured content has them in its own variable header while the event is under way, and allocates for that.
    pub fn header(&mut self) -> &mut Header {
        &mut self.parts().header
    }

    /// Its content.
    pub fn content(&mut self) -> &mut T {
        &mut self.parts().content
    }

    /// Both.
    pub(crate) fn parts_mut(&mut self) -> (&mut T, &mut Header) {
        let Parts { header, content, .. } = self.parts();
        (content, header)
    }

    /// It is written.
    pub fn done(mut self) -> Event {
        self.parts().done();
        let event: Arc<Parts<T>> = Arc::clone(self.event);
        Event(event)
    }
}

impl<T> fmt::Debug for Loan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("header", &self.event.header).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_etcl::OwnedValue;

    impl Content for u64 {}
    impl Content for u32 {}

    #[test]
    fn types_are_the_same_by_domain_and_name() {
        let (one, same) = (EventType::new("Robot", "Battery"), EventType::new("Robot", "Battery"));
        assert_eq!((&one, one.number(), one.to_string()), (&same, same.number(), "Robot/Battery".into()));
        assert_ne!(one, EventType::new("Robot", "Stop"));
        assert_ne!(one, EventType::new("RobotBattery", ""));
    }

    /// A header's fields are in the content while the event is under way, and not a use longer.
    #[test]
    fn structured_content_of_a_pool_has_no_fields_of_an_earlier_use() {
        let content = || talea_etcl::Event::new("A", "B", "").with_in_header("leg", 1).with("charge", 3);
        let mut pool = EventPool::new(1, &EventType::new("A", "B"), content);
        let fields = |properties: &Properties| {
            let pair = |(name, value): (&str, &OwnedValue)| (name.to_owned(), value.clone());
            properties.iter().map(pair).collect::<Vec<_>>()
        };
        let own = vec![("leg".to_owned(), OwnedValue::from(1))];
        let of_header = [("mission".to_owned(), OwnedValue::from(7)), ("leg".into(), 2.into())];
        let both = vec![("leg".to_owned(), OwnedValue::from(2)), ("mission".into(), 7.into())];
        for use_again in 0..3 {
            let mut loan = pool.loan().expect("nobody has it");
            let (content, header) = loan.parts_mut();
            assert_eq!(fields(content.variable_header()), own);
            if use_again == 0 {
                header.fields.set("mission", 7).expect("sound");
                header.fields.set("leg", 2).expect("sound");
            }
            assert_eq!(header.fields.get("mission"), Some(&7.into()), "as of any other event of a pool");
            assert_eq!(fields(header.fields.properties()).len(), of_header.len());
            let event = loan.done();
            assert_eq!((fields(event.variable_header()), event.header().fields.len()), (both.clone(), 0));
        }
        let mut loan = pool.loan().expect("nobody has it");
        loan.header().fields.clear();
        assert_eq!(fields(loan.done().variable_header()), own);
        {
            let mut loan = pool.loan().expect("nobody has it");
            loan.content().remove_from_header("leg");
            loan.header().fields.set("leg", 5).expect("sound");
        }
        let mut loan = pool.loan().expect("a loan that is dropped is as it was left");
        assert!(loan.content().variable_header().is_empty());
        assert_eq!(loan.done().variable_header().get("leg"), Some(&5.into()));
    }

    #[test]
    fn an_event_of_a_pool_is_used_again_when_nobody_has_it() {
        let battery = EventType::new("Robot", "Battery");
        let mut pool = EventPool::new(2, &battery, || 7u64);
        let write = |pool: &mut EventPool<u64>, value| {
            let mut loan = pool.loan()?;
            *loan.content() = value;
            loan.header().priority = Some(value as i16);
            Some(loan.done())
        };
        let (one, two) = (write(&mut pool, 1).expect("free"), write(&mut pool, 2).expect("free"));
        let shared = one.clone();
        assert!(write(&mut pool, 3).is_none(), "both are in use");
        drop(one);
        assert!(write(&mut pool, 3).is_none(), "somebody has it still");
        assert_eq!((shared.content(), shared.content::<u32>()), (Some(&1u64), None));
        drop(shared);
        let three = write(&mut pool, 3).expect("free");
        assert_eq!((three.content(), three.header().priority), (Some(&3u64), Some(3)));
        assert_eq!(two.content(), Some(&2u64));
        assert!(pool.loan().is_none());
        drop((two, three));
        assert!(pool.loan().is_some() && pool.loan().is_some(), "a loan that is dropped is free");
    }
}
