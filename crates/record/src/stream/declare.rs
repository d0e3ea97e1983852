//! Declaring a family: one line for each event, with typed fields.
//!
//! [`crate::family!`] makes a module of functions that emit, which cost a few loads and a branch while nobody listens.
//! What it makes of the fields is decided when the program is compiled: where each stands in the record, and that all
//! of them fit.
//!
//! **After `fork`** the child has memory of its own in place of its parent's rings: its events are off, and what it counts,
//! writes or drops reaches nobody. A child that is to publish goes on with `exec`, or is forked before its parent publishes.

use super::local;
use super::passive::PassiveKind;
use super::thread::{ASKED, switch};
use crate::declaration::{
    Extent, FIRST_FREE, Family, FieldKind, LongBytes, LongText, Part, Place, cut_bytes, cut_text,
};
use crate::event::{FieldType, WordType};
use crate::live::registry::{Numbering, PassiveDeclaration, RegisterError, register_numbered};
use crate::record::{Event, Record};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use talea_ring::control::{ASK, ASK_WORDS};
use talea_time::Instant;

/// Bits of the parts of a record that fields are packed into.
const PARTS: [(Part, u32); 3] = [(Part::First, 64), (Part::Second, 64), (Part::Arg, 16)];

/// Where fields of these kinds stand: the widest first, each in the first part that has room. Widths are powers of
/// two, so this finds a place for all whenever there is one. `None` if there is not.
pub const fn pack<const FIELDS: usize>(kinds: &[FieldKind]) -> Option<[Place; FIELDS]> {
    let mut places = [Place { part: Part::First, shift: 0 }; FIELDS];
    if pack_into(kinds, &mut places) { Some(places) } else { None }
}

/// As [`pack`], into as many places as there are kinds; false, and the places are of no use, if there is no place for all. A long field has
/// the last part to itself.
///
/// # Panics
/// If there are fewer places than kinds.
pub const fn pack_into(kinds: &[FieldKind], places: &mut [Place]) -> bool {
    let mut used = [0; PARTS.len()];
    let mut field = 0;
    while field < kinds.len() {
        if kinds[field].bound().is_some() {
            let last = PARTS.len() - 1;
            if used[last] > 0 {
                return false;
            }
            places[field] = Place { part: PARTS[last].0, shift: 0 };
            used[last] = PARTS[last].1;
        }
        field += 1;
    }
    let mut width = 128;
    while width >= 8 {
        let mut field = 0;
        while field < kinds.len() {
            if kinds[field].bits() == width && kinds[field].bound().is_none() {
                let Some(part) = part_with_room(&used, width) else { return false };
                places[field] = Place { part: PARTS[part].0, shift: used[part] as u8 };
                if width == 128 {
                    // It goes on in the second word.
                    used = [64, 64, used[2]];
                } else {
                    used[part] += width;
                }
            }
            field += 1;
        }
        width /= 2;
    }
    true
}

/// The first part that has room for so many bits; what is wider than a word begins in the first one, if both are free.
const fn part_with_room(used: &[u32; PARTS.len()], width: u32) -> Option<usize> {
    if width == 128 {
        return if used[0] == 0 && used[1] == 0 { Some(0) } else { None };
    }
    let mut part = 0;
    while part < PARTS.len() {
        if used[part] + width <= PARTS[part].1 {
            return Some(part);
        }
        part += 1;
    }
    None
}

/// The place of the field called `name`.
pub const fn place_of<const FIELDS: usize>(
    name: &str,
    names: &[&str; FIELDS],
    places: &[Place; FIELDS],
) -> Place {
    let mut field = 0;
    while !is_same(names[field].as_bytes(), name.as_bytes()) {
        field += 1;
    }
    places[field]
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// A family's number where its declaration gives none: from its name, so that it is the same in every process.
pub const fn number_of(name: &str) -> u8 {
    let (bytes, mut index) = (name.as_bytes(), 0);
    // FNV-1a.
    let mut hash: u32 = 0x811c_9dc5;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u32).wrapping_mul(0x0100_0193);
        index += 1;
    }
    FIRST_FREE + (hash % (256 - FIRST_FREE as u32)) as u8
}

/// A declared family, as [`crate::family!`] makes it.
#[derive(Debug)]
pub struct DeclaredFamily {
    family: Family,
    numbering: Numbering,
    passive: &'static [DeclaredPassive],
    /// The switch of event number 0, [`ASK`] before it is registered.
    first: AtomicU32,
    /// Whether an event has tried to register the family in vain: the next ones need not.
    is_refused: AtomicBool,
}

/// A declared passive entity.
#[derive(Debug)]
pub struct DeclaredPassive {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub about: &'static str,
    /// What it is.
    pub kind: PassiveKind,
    /// Where it is in the passive area, once its family is registered.
    pub place: &'static AtomicU32,
}

impl DeclaredFamily {
    /// A family that is not registered yet.
    ///
    /// # Panics
    /// If it has more entities than a family can have.
    pub const fn new(family: Family, passive: &'static [DeclaredPassive]) -> Self {
        let Cow::Borrowed(events) = family.events else { panic!("declared families are constants") };
        assert!(
            events.len() + passive.len() <= ASK_WORDS,
            "a family has at most 256 events and passive entities"
        );
        let first = AtomicU32::new(ASK as u32);
        DeclaredFamily {
            family,
            numbering: Numbering::Declared,
            passive,
            first,
            is_refused: AtomicBool::new(false),
        }
    }

    /// The same, of a family without events that is made while the program runs, and has a number of Talea's own.
    pub(super) fn made(family: Family, passive: &'static [DeclaredPassive]) -> Self {
        DeclaredFamily { numbering: Numbering::Own, ..DeclaredFamily::new(family, passive) }
    }

    /// Its declaration.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// Enters the family into the streams of this process, so that it is listed and can be switched before its first
    /// event. Later calls do nothing. Otherwise the first event of the family does this, and its thread pays for it.
    ///
    /// # Errors
    /// See [`RegisterError`]; the family's events are then counted as events without a ring.
    pub fn register(&self) -> Result<(), RegisterError> {
        if self.first.load(Ordering::Acquire) != ASK as u32 {
            return Ok(());
        }
        let declared = |passive: &DeclaredPassive| PassiveDeclaration {
            name: Cow::Borrowed(passive.name),
            about: Cow::Borrowed(passive.about),
            kind: passive.kind.clone(),
        };
        let declarations: Vec<_> = self.passive.iter().map(declared).collect();
        let entry = register_numbered(&self.family, self.numbering, &declarations)?;
        for (passive, entry) in self.passive.iter().zip(&entry.passive) {
            passive.place.store(entry.place as u32, Ordering::Relaxed);
        }
        self.first.store(entry.switch as u32, Ordering::Release);
        Ok(())
    }

    /// Whether the family is registered, after trying once.
    pub(super) fn is_registered(&self) -> bool {
        if self.is_refused.load(Ordering::Relaxed) {
            return self.first.load(Ordering::Acquire) != ASK as u32;
        }
        let is_registered = self.register().is_ok();
        self.is_refused.store(!is_registered, Ordering::Relaxed);
        is_registered
    }

    /// The switch `number` behind the family's first.
    #[inline(always)]
    pub(super) fn switch(&self, number: usize) -> usize {
        (self.first.load(Ordering::Relaxed) as usize).wrapping_add(number)
    }

    /// Whether anybody wants event `number`, as far as the calling thread can tell without finding out.
    #[inline]
    pub fn is_on(&'static self, number: u8) -> bool {
        match switch(self.switch(usize::from(number))) {
            0 => false,
            ASKED => local::is_wanted(self, usize::from(number)),
            _ => true,
        }
    }

    /// Emits event `number` if anybody wants it.
    #[inline(always)]
    pub fn emit<P: Emitted>(&'static self, number: u8, payload: impl FnOnce() -> P) {
        let found = switch(self.switch(usize::from(number)));
        if found != 0 {
            payload().emit(found, self);
        }
    }
}

/// What an event says, with or without a long field.
pub trait Emitted {
    /// Emits it, whose switch was `found`, not 0.
    fn emit(self, found: u64, family: &'static DeclaredFamily);
}

impl Emitted for Payload {
    #[inline(always)]
    fn emit(self, found: u64, family: &'static DeclaredFamily) {
        local::emit(found, family, self);
    }
}

impl Emitted for LongPayload<'_> {
    #[inline(always)]
    fn emit(self, found: u64, family: &'static DeclaredFamily) {
        local::emit_long(found, family, self);
    }
}

/// A type that a declared field can have: a [`FieldType`], or a long text or bytes.
pub trait DeclaredType {
    /// How the field is decoded.
    const KIND: FieldKind;
    /// What an event is with the field.
    type Payload;
    /// Adds the value to an event without a long field.
    fn add_to(self, place: Place, payload: Payload) -> Self::Payload;
}

impl<T: FieldType> DeclaredType for T {
    const KIND: FieldKind = <T as FieldType>::KIND;
    type Payload = Payload;

    #[inline(always)]
    fn add_to(self, place: Place, mut payload: Payload) -> Payload {
        self.put(place, &mut payload.0);
        payload
    }
}

impl<'a, const MOST: usize> DeclaredType for LongText<'a, MOST> {
    const KIND: FieldKind = FieldKind::LongText(Self::BOUND);
    type Payload = LongPayload<'a>;

    #[inline(always)]
    fn add_to(self, _: Place, payload: Payload) -> LongPayload<'a> {
        payload.with_long_text(self.as_bytes(), MOST)
    }
}

impl<'a, const MOST: usize> DeclaredType for LongBytes<'a, MOST> {
    const KIND: FieldKind = FieldKind::LongBytes(Self::BOUND);
    type Payload = LongPayload<'a>;

    #[inline(always)]
    fn add_to(self, _: Place, payload: Payload) -> LongPayload<'a> {
        payload.with_long_bytes(self.as_bytes(), MOST)
    }
}

/// What an event says, packed.
#[derive(Clone, Copy, Debug)]
pub struct Payload(Record);

impl Payload {
    /// Nothing yet.
    #[inline(always)]
    pub fn new(event: Event) -> Self {
        let (source, cpu) = (Record::NO_LANE, Record::NO_CPU);
        Payload(Record { time: Instant::ZERO, causal: 0, words: [0; 2], event, source, cpu, arg: 0 })
    }

    /// This is what it is about.
    #[inline(always)]
    #[must_use]
    pub fn about(mut self, causal: impl WordType) -> Self {
        self.0.causal = causal.bits();
        self
    }

    /// This value in this place.
    #[inline(always)]
    #[must_use]
    pub fn with<T: DeclaredType>(self, place: Place, value: T) -> T::Payload {
        value.add_to(place, self)
    }

    /// At most `most` bytes of this text, or of what should be one, cut between characters.
    #[inline(always)]
    #[must_use]
    pub fn with_long_text(self, text: &[u8], most: usize) -> LongPayload<'_> {
        self.with_long(cut_text(text, most))
    }

    /// At most `most` of these bytes.
    #[inline(always)]
    #[must_use]
    pub fn with_long_bytes(self, bytes: &[u8], most: usize) -> LongPayload<'_> {
        self.with_long(cut_bytes(bytes, most))
    }

    #[inline(always)]
    fn with_long(mut self, (bytes, extent): (&[u8], Extent)) -> LongPayload<'_> {
        self.0.arg = extent.bits();
        LongPayload { payload: self, bytes }
    }

    /// The record's words.
    #[inline]
    pub(super) fn at(self, time: Instant, cpu: u16) -> [u64; Record::WORDS] {
        self.record(time, cpu).to_words()
    }

    #[inline]
    fn record(self, time: Instant, cpu: u16) -> Record {
        Record { time, cpu, ..self.0 }
    }

    /// The event's number within its family.
    pub(super) fn number(self) -> usize {
        usize::from(self.0.event.0 as u8)
    }
}

/// What an event with a long field says, packed, and the bytes of that field.
#[derive(Clone, Copy, Debug)]
pub struct LongPayload<'a> {
    payload: Payload,
    bytes: &'a [u8],
}

impl LongPayload<'_> {
    /// This value in this place.
    #[inline(always)]
    #[must_use]
    pub fn with(mut self, place: Place, value: impl FieldType) -> Self {
        value.put(place, &mut self.payload.0);
        self
    }

    /// The event's record, and the bytes of its long field.
    #[inline]
    pub(super) fn at(&self, time: Instant, cpu: u16) -> (Record, &[u8]) {
        (self.payload.record(time, cpu), self.bytes)
    }

    /// The event's number within its family.
    pub(super) fn number(&self) -> usize {
        self.payload.number()
    }
}

/// Declares families of events: a module with a function for each, which emits it while anybody wants it.
///
/// ```
/// talea_record::family! {
///     /// What the navigation filter does.
///     pub nav {
///         /// A position was computed.
///         fix(latitude: f64, longitude: f64);
///         /// The filter restarted.
///         reset(cause: u32, attempts: u16);
///         /// A position was used by a job.
///         used(age: talea_time::Duration) for job: talea_record::JobId;
///     }
/// }
/// nav::fix(47.1, 8.5);
/// # use talea_record::JobId;
/// # let job = JobId { operation: talea_model::OperationId::from_index(0), instance: 7 };
/// nav::used(job, talea_time::Duration::from_millis(3));
/// assert_eq!(nav::FAMILY.family().events.len(), 3);
/// ```
///
/// Fields have the types of [`FieldType`]. Together they have 144 bits: two words and 16 bits; a
/// [`Text`](crate::declaration::Text), which has up to 16 bytes, and a `[u8; 16]` have both words, a `[u8; 8]` has one.
/// What stands behind `for` is the causal id, the first argument.
///
/// One field of an event may be longer, a [`LongText`](crate::declaration::LongText) or [`LongBytes`](crate::declaration::LongBytes) with a bound of up to 256
/// bytes. It takes the 16 bits, so that two words are left for the others, and each 24 bytes are one record more in the ring:
///
/// ```
/// talea_record::family! {
///     /// What the program says.
///     pub log {
///         /// A message.
///         said(message: talea_record::declaration::LongText<200>, line: u32, level: u8);
///     }
/// }
/// log::said("the filter has restarted".into(), 17, 2);
/// ```
///
/// More than fits is an error of compilation:
///
/// ```compile_fail
/// talea_record::family! {
///     /// Too much.
///     pub wide {
///         /// Three words.
///         three(a: u64, b: u64, c: u64);
///     }
/// }
/// ```
///
/// ```compile_fail
/// talea_record::family! {
///     /// Too long.
///     pub long {
///         /// More than 256 bytes.
///         text(message: talea_record::declaration::LongText<257>);
///     }
/// }
/// ```
///
/// Passive entities stand among the events (see [`passive`](crate::stream::passive)):
///
/// ```
/// talea_record::family! {
///     /// What the camera does.
///     pub camera {
///         /// Pictures taken.
///         counter pictures;
///         /// Nanoseconds from the trigger to the picture.
///         histogram delay(lower: 0, width: 1_000, buckets: 64);
///         /// Where it looks.
///         object pose: Pose { pan: f64, tilt: f64, zoom: u32 }
///     }
/// }
/// camera::pictures.add(1);
/// camera::delay.add(12_345);
/// camera::pose.set(camera::Pose { pan: 0.5, tilt: -0.25, zoom: 3 });
/// ```
///
/// Beside its function, an event has a module of the same name with its number, `nav::fix::EVENT`. `nav::FAMILY` is the
/// declaration; [`register`](crate::stream::DeclaredFamily::register) it at the start of the program, so that others
/// can see and switch its events before the first. The family's number comes from its name; where two families of a
/// program collide, registering one fails, and gives it a number of its own: `pub nav = 0x42 { ... }`.
#[macro_export]
macro_rules! family {
    () => {};
    ($(#[doc = $about:expr])* $vis:vis $family:ident { $($body:tt)* } $($rest:tt)*) => {
        $crate::family! { @family [$($about)*] [$vis] $family [$crate::stream::declare::number_of(stringify!($family))] { $($body)* } }
        $crate::family! { $($rest)* }
    };
    ($(#[doc = $about:expr])* $vis:vis $family:ident = $number:literal { $($body:tt)* } $($rest:tt)*) => {
        $crate::family! { @family [$($about)*] [$vis] $family [$number] { $($body)* } }
        $crate::family! { $($rest)* }
    };

    (@family [$($about:expr)*] [$vis:vis] $family:ident [$number:expr] { $($body:tt)* }) => {
        $(#[doc = $about])*
        $vis mod $family {
            #[allow(unused_imports)]
            use super::*;

            const NUMBER: u8 = $number;

            $crate::family! { @entities [$family] [$($about)*] [] [] [0] $($body)* }
        }
    };

    // A counter.
    (@entities $family:tt $about:tt $events:tt [$($passive:tt)*] [$number:expr]
        $(#[doc = $doc:expr])* counter $name:ident ; $($rest:tt)*
    ) => {
        $crate::family! { @entities $family $about $events [$($passive)* {[$($doc)*] $name ($crate::stream::passive::Counter)}] [$number] $($rest)* }
    };
    // A histogram.
    (@entities $family:tt $about:tt $events:tt [$($passive:tt)*] [$number:expr]
        $(#[doc = $doc:expr])* histogram $name:ident ( lower: $lower:expr, width: $width:expr, buckets: $buckets:expr $(,)? ) ; $($rest:tt)*
    ) => {
        $crate::family! { @entities $family $about $events [$($passive)* {[$($doc)*] $name ($crate::stream::passive::Histogram<{ $lower }, { $width }, { $buckets }>)}] [$number] $($rest)* }
    };
    // An object.
    (@entities $family:tt $about:tt $events:tt [$($passive:tt)*] [$number:expr]
        $(#[doc = $doc:expr])* object $name:ident : $structure:ident { $($(#[doc = $note:expr])* $field:ident : $type:ty),* $(,)? } $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $structure {
            $($(#[doc = $note])* pub $field: $type,)*
        }
        impl $crate::stream::passive::Structure for $structure {
            const FIELDS: &'static [$crate::stream::passive::ObjectField] = &[
                $($crate::stream::passive::ObjectField::new(
                    stringify!($field),
                    <$type as $crate::event::WordType>::KIND,
                )),*
            ];
            type Words = [u64; { <[&str]>::len(&[$(stringify!($field)),*]) }];
            #[inline(always)]
            fn to_words(self) -> Self::Words {
                [$($crate::event::WordType::bits(self.$field)),*]
            }
            fn from_words(words: &[u64]) -> Self {
                let mut words = words.iter().copied();
                $structure {
                    $($field: $crate::event::WordType::from_bits(words.next().unwrap_or_default()),)*
                }
            }
        }
        $crate::family! { @entities $family $about $events [$($passive)* {[$($doc)*] $name ($crate::stream::passive::Object<$structure>)}] [$number] $($rest)* }
    };
    // An event with a causal id.
    (@entities $family:tt $about:tt [$($events:tt)*] $passive:tt [$number:expr]
        $(#[doc = $doc:expr])* $event:ident ( $($field:ident : $type:ty),* $(,)? ) for $causal:ident : $id:ty ; $($rest:tt)*
    ) => {
        $crate::family! { @event [$($doc)*] $event [$number] [$($field: $type),*] [$causal: $id] }
        $crate::family! { @entities $family $about [$($events)* $event] $passive [$number + 1] $($rest)* }
    };
    // An event.
    (@entities $family:tt $about:tt [$($events:tt)*] $passive:tt [$number:expr]
        $(#[doc = $doc:expr])* $event:ident ( $($field:ident : $type:ty),* $(,)? ) ; $($rest:tt)*
    ) => {
        $crate::family! { @event [$($doc)*] $event [$number] [$($field: $type),*] [] }
        $crate::family! { @entities $family $about [$($events)* $event] $passive [$number + 1] $($rest)* }
    };
    // All of them.
    (@entities [$family:ident] [$($about:expr)*] [$($event:ident)*] [$($passive:tt)*] [$number:expr]) => {
        const EVENTS: &[$crate::declaration::EventEntry] = &[$($event::ENTRY),*];
        $crate::family! { @passive [] [EVENTS.len()] $($passive)* }
        const DECLARATION: $crate::declaration::Family = $crate::declaration::Family {
            number: NUMBER,
            name: ::std::borrow::Cow::Borrowed(stringify!($family)),
            about: ::std::borrow::Cow::Borrowed(concat!($($about, "\n"),*).trim_ascii()),
            events: ::std::borrow::Cow::Borrowed(EVENTS),
        };
        /// The family's declaration.
        pub static FAMILY: $crate::stream::declare::DeclaredFamily =
            $crate::stream::declare::DeclaredFamily::new(DECLARATION, &PASSIVE);
    };

    (@passive [$({[$($doc:expr)*] $name:ident ($($kind:tt)*)})*] [$number:expr]) => {
        static PASSIVE: [$crate::stream::declare::DeclaredPassive; { <[&str]>::len(&[$(stringify!($name)),*]) }] = [
            $($crate::stream::declare::DeclaredPassive {
                name: stringify!($name),
                about: concat!($($doc, "\n"),*).trim_ascii(),
                kind: <$($kind)*>::KIND,
                place: $name.place(),
            }),*
        ];
    };
    (@passive [$($done:tt)*] [$number:expr] {[$($doc:expr)*] $name:ident ($($kind:tt)*)} $($rest:tt)*) => {
        $(#[doc = $doc])*
        #[allow(non_upper_case_globals)]
        pub static $name: $($kind)* = <$($kind)*>::new(&FAMILY, $number);
        $crate::family! { @passive [$($done)* {[$($doc)*] $name ($($kind)*)}] [$number + 1] $($rest)* }
    };

    (@event [$($doc:expr)*] $event:ident [$number:expr] [$($field:ident: $type:ty),*] [$($causal:ident: $id:ty)?]) => {
        $(#[doc = $doc])*
        #[inline(always)]
        pub fn $event($($causal: $id,)? $($field: $type),*) {
            FAMILY.emit($event::NUMBER, || {
                $crate::stream::declare::Payload::new($event::EVENT)
                    $(.about($causal))?
                    $(.with(const { $event::place(stringify!($field)) }, $field))*
            });
        }

        #[doc = concat!("The event `", stringify!($event), "`.")]
        pub mod $event {
            #[allow(unused_imports)]
            use super::*;
            #[allow(unused_imports)]
            use $crate::declaration::{EventEntry, Field, FieldKind, Part, Place};
            #[allow(unused_imports)]
            use $crate::event::FieldType;
            use $crate::stream::declare::{DeclaredType, pack, place_of};
            use ::std::borrow::Cow;

            pub(super) const NUMBER: u8 = $number;
            /// The number that its records carry.
            pub const EVENT: $crate::Event = $crate::Event((super::NUMBER as u16) << 8 | NUMBER as u16);
            const KINDS: &[FieldKind] = &[$(<$type as DeclaredType>::KIND),*];
            const PLACES: [Place; KINDS.len()] = match pack(KINDS) {
                Some(places) => places,
                None => panic!(concat!("the fields of `", stringify!($event), "` do not fit into two words and 16 bits, which a long one takes")),
            };
            const FIELD_NAMES: [&str; KINDS.len()] = [$(stringify!($field)),*];
            pub(super) const fn place(name: &'static str) -> Place {
                place_of(name, &FIELD_NAMES, &PLACES)
            }
            const fn placed(name: &'static str, kind: FieldKind) -> Field {
                let place = place(name);
                Field::new(name, kind, place.part).shifted(place.shift)
            }
            pub(super) const ENTRY: EventEntry = EventEntry {
                number: NUMBER,
                name: Cow::Borrowed(stringify!($event)),
                about: Cow::Borrowed(concat!($($doc, "\n"),*).trim_ascii()),
                fields: Cow::Borrowed(&[
                    $(Field::new(stringify!($causal), <$id as FieldType>::KIND, Part::Causal),)?
                    $(placed(stringify!($field), <$type as DeclaredType>::KIND)),*
                ]),
            };
        }
    };
}
