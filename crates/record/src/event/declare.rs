//! Declaring the builtin events, and the lists of codes that their fields have, once: what writes, reads, lists and exports
//! them comes from here.

/// Declares fixed lists of values with names: an enum for each, and [`Codes`](super::Codes), which has them all.
macro_rules! codes {
    ($(
        $(#[$about:meta])*
        $list:ident $list_name:literal {
            $($(#[doc = $note:literal])* $code:ident = $number:literal $name:literal,)*
        }
    )*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[repr(u16)]
            pub enum $list {
                $($(#[doc = $note])* $code = $number,)*
            }

            impl $list {
                /// Every value.
                pub const ALL: [Self; [$($number),*].len()] = [$($list::$code),*];
            }

            impl Coded for $list {
                const CODES: Codes = Codes::$list;

                #[inline]
                fn code(self) -> u16 {
                    self as u16
                }

                #[inline]
                fn from_code(code: u16) -> Option<Self> {
                    match code {
                        $($number => Some($list::$code),)*
                        _ => None,
                    }
                }
            }
        )*

        /// A fixed list of values with names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Codes {
            $(
                #[doc = concat!("[`", stringify!($list), "`].")]
                $list,
            )*
        }

        impl Codes {
            /// The list's name, an identifier.
            pub fn name(self) -> &'static str {
                match self {
                    $(Codes::$list => $list_name,)*
                }
            }

            /// Whether a value has this number.
            pub fn have(self, number: u64) -> bool {
                match self {
                    $(Codes::$list => u16::try_from(number).is_ok_and(|code| $list::from_code(code).is_some()),)*
                }
            }

            /// Values and their names.
            pub fn entries(self) -> &'static [(u16, &'static str)] {
                match self {
                    $(Codes::$list => &[$(($number, $name)),*],)*
                }
            }
        }
    };
}

/// Declares the builtin families:
///
/// ```text
/// /// What the family is about, one sentence.
/// FAMILY = number "name" {
///     /// What the event says, one sentence.
///     EVENT = number "name" Event {
///         /// What the field is.
///         field: Type = Part << shift means Meaning,
///     }
/// }
/// ```
///
/// Of each event come: the constant `Event::EVENT`, its entry in the name space with the sentence, the names, types and places of
/// its fields, a struct with these fields that becomes a record and is read from one, and what a reader that knows nothing else
/// can learn of it (see [`Layout`](super::layout::Layout)). A field that only names a part stands at its lowest bit; `means` says
/// what its number stands for, if its type does not; that there may be none says its type.
macro_rules! events {
    ($(
        $(#[doc = $about:literal])*
        $family:ident = $family_number:literal $family_name:literal {
            $(
                $(#[doc = $event_about:literal])*
                $constant:ident = $number:literal $name:literal $event:ident {
                    $(
                        $(#[doc = $note:literal])*
                        $field:ident: $type:ty = $part:ident $(<< $shift:literal)? $(means $meaning:ident)?,
                    )*
                }
            )*
        }
    )*) => {
        /// Every builtin family, in the order of their numbers.
        pub const ALL: &[Family] = &[$(constant::$family),*];

        $(
            $(#[doc = $about])*
            pub static $family: Family = constant::$family;
        )*

        /// The families as constants, for tables of them; whoever names one where records pass takes the static, since every use of
        /// a constant makes and drops a family.
        mod constant {
            use super::*;

            $(pub(super) const $family: Family = Family {
                number: $family_number,
                name: Cow::Borrowed($family_name),
                about: Cow::Borrowed(concat!($($about),*).trim_ascii()),
                events: Cow::Borrowed(&[$(EventEntry {
                    number: $number,
                    name: Cow::Borrowed($name),
                    about: Cow::Borrowed(concat!($($event_about),*).trim_ascii()),
                    fields: Cow::Borrowed($event::FIELDS),
                }),*]),
            };)*
        }

        impl Event {
            $($(
                $(#[doc = $event_about])*
                #[doc = concat!(" Its fields: [`", stringify!($event), "`].")]
                pub const $constant: Event = Event($family_number << 8 | $number);
            )*)*

            /// The name of a builtin event, for listings; `None` for events of other families.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $($(Event::$constant => Some($name),)*)*
                    _ => None,
                }
            }

            /// What a builtin event's records are about, and where they say so.
            #[inline]
            pub(crate) fn layout(self) -> Option<&'static Layout> {
                match self {
                    $($(Event::$constant => {
                        const LAYOUT: Layout = Layout::of($event::FIELDS, $event::MEANINGS);
                        Some(&LAYOUT)
                    })*)*
                    _ => None,
                }
            }
        }

        $($(
            $(#[doc = $event_about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $event {
                $($(#[doc = $note])* pub $field: $type,)*
            }

            impl $event {
                const FIELDS: &'static [Field] = &[$(
                    Field::new(stringify!($field), <$type as FieldType>::KIND, Part::$part)$(.shifted($shift))?
                ),*];
                const MEANINGS: &'static [Meaning] = &[$(events!(@meaning $type $(, $meaning)?)),*];

                /// The record of this at `time` on `cpu`, which may be [`Record::NO_CPU`].
                #[inline]
                pub fn at(self, time: Instant, cpu: u16) -> Record {
                    BuiltinEvent::at(self, time, cpu)
                }

                /// What the record says, if it is one of this event.
                #[inline]
                pub fn read(record: &Record) -> Option<Self> {
                    (record.event == Event::$constant).then(|| Self::decode(record))
                }

                #[inline]
                fn decode(record: &Record) -> Self {
                    $(
                        let place = events!(@place $part $(<< $shift)?);
                        let $field = <$type as FieldType>::take(place, record);
                    )*
                    let _ = record;
                    $event { $($field),* }
                }
            }

            impl BuiltinEvent for $event {
                const EVENT: Event = Event::$constant;

                #[inline]
                fn fill(self, record: &mut Record) {
                    let _ = &record;
                    $(self.$field.put(events!(@place $part $(<< $shift)?), record);)*
                }
            }
        )*)*

        /// A record with its fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Typed {
            $($(
                $(#[doc = $event_about])*
                $event($event),
            )*)*
            /// An event of another family, or one that no family declares.
            Other,
        }

        impl Record {
            /// Tells `check` each number of the record that stands for something, with where it stands and for what; where there
            /// may be none, and is none, nothing.
            #[inline]
            pub(crate) fn check_numbers(&self, mut check: impl FnMut(Part, Meaning, u64)) {
                match self.event {
                    $($(Event::$constant => {$(
                        let meaning = const { events!(@meaning $type $(, $meaning)?) };
                        let place = events!(@place $part $(<< $shift)?);
                        if let (true, Some(number)) = (meaning.is_checked(), <$type as FieldType>::number(place, self)) {
                            check(Part::$part, meaning, number);
                        }
                    )*})*)*
                    _ => {}
                }
            }

            /// What the record says.
            #[inline]
            pub fn typed(&self) -> Typed {
                match self.event {
                    $($(Event::$constant => Typed::$event($event::decode(self)),)*)*
                    _ => Typed::Other,
                }
            }
        }
    };

    (@meaning $type:ty) => { <$type as FieldType>::MEANING };
    (@meaning $type:ty, $meaning:ident) => { Meaning::$meaning };
    (@place $part:ident) => { Place { part: Part::$part, shift: 0 } };
    (@place $part:ident << $shift:literal) => { Place { part: Part::$part, shift: $shift } };
}

pub(super) use {codes, events};
