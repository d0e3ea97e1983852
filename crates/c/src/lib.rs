//! Declaring and writing events from C and C++: the functions of `include/talea.h`.
//!
//! What they do is what [`talea_record::stream`] does for Rust programs; a family is registered with tables instead of a macro, and stays
//! for as long as the process.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use talea_record::Event;
use talea_record::declaration::{EventEntry, Family, Field, FieldKind, LONGEST, Place, Text, is_bound};
use talea_record::stream::declare::{DeclaredFamily, LongPayload, Payload, number_of, pack_into};
use talea_record::stream::{LocalWriter, Stream, attach_thread};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// `struct talea_field`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CField {
    name: *const c_char,
    kind: u32,
}

/// `struct talea_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CEvent {
    name: *const c_char,
    about: *const c_char,
    fields: *const CField,
    field_count: usize,
}

/// `union talea_value`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CValue {
    u: u64,
    i: i64,
    f: f64,
    text: *const c_char,
    bytes: *const u8,
    span: *const CSpan,
}

/// `struct talea_span`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CSpan {
    data: *const u8,
    length: usize,
}

/// A registered family.
#[derive(Debug)]
pub struct CFamily {
    declared: &'static DeclaredFamily,
    events: Vec<Fields>,
}

/// The fields of an event.
#[derive(Debug)]
struct Fields {
    /// Their kinds and places.
    all: Vec<(FieldKind, Place)>,
    /// The index and the bound of the long one.
    long: Option<(usize, usize)>,
}

impl Fields {
    fn new(all: Vec<(FieldKind, Place)>) -> Self {
        let bounds = all.iter().map(|(kind, _)| kind.bound());
        let long = bounds.enumerate().find_map(|(index, bound)| Some((index, usize::from(bound?))));
        Fields { all, long }
    }
}

/// The kinds of fields by their numbers in the header.
const KINDS: [FieldKind; 15] = [
    FieldKind::U64,
    FieldKind::I64,
    FieldKind::F64,
    FieldKind::U32,
    FieldKind::I32,
    FieldKind::F32,
    FieldKind::U16,
    FieldKind::I16,
    FieldKind::U8,
    FieldKind::I8,
    FieldKind::Bool,
    FieldKind::Duration,
    FieldKind::Text,
    FieldKind::Bytes8,
    FieldKind::Bytes16,
];

/// The kind of a field with this number. Long ones have their bound in the low half.
fn kind_of(number: u32) -> Option<FieldKind> {
    let bound = number as u16;
    match number >> 16 {
        0 => KINDS.get(number as usize).copied(),
        1 if is_bound(bound.into()) => Some(FieldKind::LongText(bound)),
        2 if is_bound(bound.into()) => Some(FieldKind::LongBytes(bound)),
        _ => None,
    }
}

fn fail(error: impl ToString) {
    let text = error.to_string().replace('\0', " ");
    ERROR.with_borrow_mut(|last| *last = CString::new(text).expect("it has no zeros"));
}

/// What went well, on the heap for the caller; null, with the reason kept, if it did not.
fn handed_out<T>(result: Result<T, impl ToString>) -> *mut T {
    match result {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            fail(error);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `text` is null or ends with a zero.
unsafe fn text_of(text: *const c_char) -> Result<String, &'static str> {
    if text.is_null() {
        return Err("a name or a description is missing");
    }
    // SAFETY: it is not null, and the caller says that it ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(str::to_owned).map_err(|_| "a name or a description is not UTF-8")
}

/// # Safety
/// As `struct talea_event` in the header says.
unsafe fn slice_of<'a, T>(first: *const T, count: usize) -> Result<&'a [T], &'static str> {
    match count {
        0 => Ok(&[]),
        // SAFETY: the caller says that so many are there.
        _ if !first.is_null() => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
        _ => Err("a table is missing"),
    }
}

/// `talea_publish`.
///
/// # Safety
/// `name` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_publish(name: *const c_char) -> *mut Stream {
    // SAFETY: as above.
    let name = unsafe { text_of(name) }.map_err(str::to_owned);
    handed_out(name.and_then(|name| Stream::publish(&name).map_err(|error| error.to_string())))
}

/// `talea_unpublish`.
///
/// # Safety
/// `stream` is null or of [`talea_publish`], and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_unpublish(stream: *mut Stream) {
    if !stream.is_null() {
        // SAFETY: it was made by `Box::into_raw` and is given back once.
        drop(unsafe { Box::from_raw(stream) });
    }
}

/// `talea_register`.
///
/// # Safety
/// Texts end with zeros, and tables have as many entries as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_register(
    name: *const c_char,
    about: *const c_char,
    events: *const CEvent,
    event_count: usize,
) -> *const CFamily {
    // SAFETY: as above.
    handed_out(unsafe { register(name, about, events, event_count) })
}

/// # Safety
/// As [`talea_register`].
unsafe fn register(
    name: *const c_char,
    about: *const c_char,
    events: *const CEvent,
    event_count: usize,
) -> Result<CFamily, String> {
    // SAFETY: the caller's promise, here and below.
    let (name, about) = unsafe { (text_of(name)?, text_of(about)?) };
    // SAFETY: likewise.
    let events = unsafe { slice_of(events, event_count) }?;
    let count = u8::try_from(events.len()).map_err(|_| "a family has at most 255 events")?;
    let (mut entries, mut places) = (Vec::new(), Vec::new());
    for (number, event) in (0..count).zip(events) {
        // SAFETY: likewise.
        let (name, about) = unsafe { (text_of(event.name)?, text_of(event.about)?) };
        // SAFETY: likewise.
        let fields = unsafe { fields_of(&name, event) }?;
        entries.push(EventEntry {
            number,
            name: name.into(),
            about: about.into(),
            fields: fields
                .iter()
                .map(|(name, kind, place)| Field {
                    name: name.clone().into(),
                    ..Field::new("", *kind, place.part).shifted(place.shift)
                })
                .collect(),
        });
        places.push(Fields::new(fields.into_iter().map(|(_, kind, place)| (kind, place)).collect()));
    }
    let number = number_of(&name);
    // A family stays for as long as the process, as the statics of Rust programs do.
    let events = Cow::Borrowed(&*Vec::leak(entries));
    let family = Family { number, name: name.into(), about: about.into(), events };
    let declared = &*Box::leak(Box::new(DeclaredFamily::new(family, &[])));
    declared.register().map_err(|error| error.to_string())?;
    Ok(CFamily { declared, events: places })
}

/// # Safety
/// As [`talea_register`].
unsafe fn fields_of(name: &str, event: &CEvent) -> Result<Vec<(String, FieldKind, Place)>, String> {
    // SAFETY: the caller's promise.
    let fields = unsafe { slice_of(event.fields, event.field_count) }?;
    let kinds: Option<Vec<FieldKind>> = fields.iter().map(|field| kind_of(field.kind)).collect();
    let kinds = kinds.ok_or_else(|| {
        format!("a field of event \"{name}\" has no known type, or a bound other than 1 to {LONGEST} bytes")
    })?;
    let mut places = vec![Place { part: talea_record::declaration::Part::First, shift: 0 }; kinds.len()];
    if !pack_into(&kinds, &mut places) {
        return Err(format!(
            "the fields of event \"{name}\" do not fit into two words and 16 bits, which a long one takes"
        ));
    }
    // SAFETY: the caller's promise.
    let names: Result<Vec<String>, _> = fields.iter().map(|field| unsafe { text_of(field.name) }).collect();
    Ok(names?.into_iter().zip(kinds).zip(places).map(|((name, kind), place)| (name, kind, place)).collect())
}

/// `talea_attach_thread`.
///
/// # Safety
/// `name` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_attach_thread(name: *const c_char) -> *mut LocalWriter {
    // SAFETY: as above.
    let name = unsafe { text_of(name) }.map_err(str::to_owned);
    let attach = |name: String| match talea_record::stream::is_bound() {
        true => Err("the thread has a ring already".to_owned()),
        false => attach_thread(&name).map_err(|error| error.to_string()),
    };
    handed_out(name.and_then(attach))
}

/// `talea_detach_thread`.
///
/// # Safety
/// `ring` is null or of [`talea_attach_thread`] on this thread, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_detach_thread(ring: *mut LocalWriter) {
    if !ring.is_null() {
        // SAFETY: it was made by `Box::into_raw` and is given back once.
        drop(unsafe { Box::from_raw(ring) });
    }
}

/// `talea_is_on`.
///
/// # Safety
/// `family` is null or of [`talea_register`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_is_on(family: *const CFamily, event: usize) -> c_int {
    // SAFETY: families stay for as long as the process.
    let family = unsafe { family.as_ref() };
    let is_on = |family: &CFamily| event < family.events.len() && family.declared.is_on(event as u8);
    c_int::from(family.is_some_and(is_on))
}

/// `talea_write`.
///
/// # Safety
/// `family` is null or of [`talea_register`], and `values` has a value of its type for each field of the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_write(family: *const CFamily, event: usize, values: *const CValue) {
    // SAFETY: families stay for as long as the process.
    let Some(family) = (unsafe { family.as_ref() }) else { return };
    let Some(fields) = family.events.get(event) else { return };
    let number = event as u8;
    let payload = || {
        let family_number = family.declared.family().number;
        let mut payload = Payload::new(Event(u16::from_be_bytes([family_number, number])));
        for (index, (kind, place)) in fields.all.iter().enumerate() {
            // SAFETY: there is a value of its type for each field.
            payload = unsafe { with(payload, *kind, *place, *values.add(index)) };
        }
        payload
    };
    match fields.long {
        None => family.declared.emit(number, payload),
        Some((index, bound)) => family.declared.emit(number, || {
            // SAFETY: likewise.
            unsafe { with_long(payload(), fields.all[index].0, bound, *values.add(index)) }
        }),
    }
}

/// # Safety
/// The value has the type that `kind` says, which is a long one, for as long as the payload is there.
unsafe fn with_long<'a>(payload: Payload, kind: FieldKind, bound: usize, value: CValue) -> LongPayload<'a> {
    if let FieldKind::LongBytes(_) = kind {
        // SAFETY: the caller's promise: null, or a span.
        let span = unsafe { value.span.as_ref() }.filter(|span| !span.data.is_null());
        // SAFETY: the caller's promise: so many bytes are there.
        let bytes = span.map(|span| unsafe { std::slice::from_raw_parts(span.data, span.length) });
        return payload.with_long_bytes(bytes.unwrap_or(&[]), bound);
    }
    // SAFETY: the caller's promise.
    payload.with_long_text(unsafe { text_at(value) }, bound)
}

/// The bytes of a text up to its zero; none of a null one.
///
/// # Safety
/// The value is a text.
unsafe fn text_at<'a>(value: CValue) -> &'a [u8] {
    // SAFETY: the caller's promise: null, or ended by a zero.
    let text = unsafe { (!value.text.is_null()).then(|| CStr::from_ptr(value.text)) };
    text.map_or(&[], CStr::to_bytes)
}

/// # Safety
/// The value has the type that `kind` says.
unsafe fn with(payload: Payload, kind: FieldKind, place: Place, value: CValue) -> Payload {
    // SAFETY: the caller's promise; every bit pattern is a number.
    let (u, i, f) = unsafe { (value.u, value.i, value.f) };
    match kind {
        FieldKind::U64 | FieldKind::Instant | FieldKind::Job => payload.with(place, u),
        FieldKind::I64 | FieldKind::Duration => payload.with(place, i),
        FieldKind::F64 => payload.with(place, f),
        FieldKind::U32 => payload.with(place, u as u32),
        FieldKind::I32 => payload.with(place, i as i32),
        FieldKind::F32 => payload.with(place, f as f32),
        FieldKind::U16 => payload.with(place, u as u16),
        FieldKind::I16 => payload.with(place, i as i16),
        FieldKind::U8 => payload.with(place, u as u8),
        FieldKind::I8 => payload.with(place, i as i8),
        FieldKind::Bool => payload.with(place, u != 0),
        // SAFETY: the caller's promise.
        FieldKind::Text => payload.with(place, Text::from_bytes(unsafe { text_at(value) })),
        // They come behind the others.
        FieldKind::LongText(_) | FieldKind::LongBytes(_) => payload,
        // SAFETY: the caller's promise: so many bytes.
        FieldKind::Bytes8 => payload.with(place, unsafe { *value.bytes.cast::<[u8; 8]>() }),
        // SAFETY: likewise.
        FieldKind::Bytes16 => payload.with(place, unsafe { *value.bytes.cast::<[u8; 16]>() }),
    }
}

/// `talea_error`.
#[unsafe(no_mangle)]
pub extern "C" fn talea_error() -> *const c_char {
    ERROR.with_borrow(|last| last.as_ptr())
}
