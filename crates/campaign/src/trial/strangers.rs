//! What strangers send and ask of events: constraints with mistakes, and bytes.

use super::Fault;
use crate::Counts;
use crate::draw::{self, one_of};
use rand::{Rng, RngExt};
use talea_etcl::{Constraint, Event};
use talea_time::Instant;
use talea_wire::{Body, Encoding, Header, Limits, Message};

/// What is tried in one trial: these take microseconds each.
const EACH: usize = 100;
const MISTAKES: usize = 4;

/// A constraint with mistakes is refused with a place in it, or is printed as a text that is the same one, and says something of each event within
/// the steps that it was promised.
pub fn constraints(seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    let rng = &mut draw::numbers(seed);
    let events: Vec<Event> = (0..8).map(|_| draw::event(rng)).collect();
    for _ in 0..EACH {
        let mut text = draw::constraint(rng);
        for _ in 0..rng.random_range(0..=MISTAKES).saturating_sub(2) {
            text = mistyped(&text, rng);
        }
        counts.hold("texts", 1);
        let constraint = match Constraint::parse(&text) {
            Ok(constraint) => constraint,
            Err(problem) => {
                counts.hold("texts that are refused", 1);
                told(&text, &problem)?;
                continue;
            }
        };
        let printed = constraint.to_string();
        let again = Constraint::parse(&printed);
        if !again.as_ref().is_ok_and(|again| again.to_string() == printed) {
            return Err(Fault::new(format!("it is printed as {printed}, which is {again:?}"), text));
        }
        let (program, again) =
            match (constraint.compile::<Event>(), again.expect("it is one").compile::<Event>()) {
                (Ok(program), Ok(again)) => (program, again),
                (Err(problem), Err(_)) => {
                    counts.hold("texts that can never hold", 1);
                    told(&text, &problem)?;
                    continue;
                }
                (one, other) => {
                    let what = format!(
                        "it is compiled ({}), and what is printed of it ({})",
                        one.is_ok(),
                        other.is_ok()
                    );
                    return Err(Fault::new(what, text));
                }
            };
        for event in &events {
            let now = Instant::from_nanos(rng.random_range(0..1_000));
            let (said, same) = (program.evaluate(event, now), again.evaluate(event, now));
            counts.hold("evaluations", 1);
            let agree = match (&said, &same) {
                (Ok(one), Ok(other)) => one == other,
                (Err(_), Err(_)) => true,
                _ => false,
            };
            if !agree {
                let what = format!("of {event:?} it says {said:?}, and what is printed of it says {same:?}");
                return Err(Fault::new(what, text));
            }
        }
    }
    Ok(())
}

/// A problem has words, and is at a place within the text.
fn told(text: &str, problem: &talea_etcl::Problem) -> Result<(), Fault> {
    let range = problem.span.range();
    let is_there = range.start <= range.end && range.end <= text.len();
    if problem.to_string().is_empty() || !is_there || text.get(range).is_none() {
        return Err(Fault::new(format!("a problem without words or place: {problem:?}"), text));
    }
    Ok(())
}

fn mistyped(text: &str, rng: &mut impl Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return text.into();
    }
    let place = rng.random_range(0..chars.len());
    match rng.random_range(0..4) {
        0 => drop(chars.remove(place)),
        1 => chars.insert(
            place,
            one_of(rng, &['(', ')', '$', '.', '\'', '\\', '-', '9', 'e', ' ', '~', '\u{0}', 'ö']),
        ),
        2 => chars.truncate(place),
        _ => {
            let end = (place + rng.random_range(1..12)).min(chars.len());
            let part: Vec<char> = chars[place..end].to_vec();
            chars.splice(place..place, part);
        }
    }
    chars.into_iter().collect()
}

/// Bytes are refused with a place in them, or are an event that has these bytes and no others.
pub fn events(seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    let rng = &mut draw::numbers(seed);
    let limits = Limits { bytes: 1 << 16, ..Limits::default() };
    for _ in 0..EACH {
        let mut bytes = sent(&draw::event(rng), rng);
        for _ in 0..rng.random_range(0..=MISTAKES) {
            altered(&mut bytes, rng);
        }
        counts.hold("byte strings", 1);
        match Message::decode(&bytes, &limits) {
            Ok(message) => {
                counts.hold("events", 1);
                if message.encode() != bytes {
                    return Err(Fault::new("the event that is read has other bytes", bytes));
                }
                if message.to_structured(&limits).is_err() && message.body.encoding != Encoding::Value {
                    return Err(Fault::new("only a value can be no value", bytes));
                }
                _ = message.body.read_as::<Vec<(String, u32)>>();
            }
            Err(error) if error.at > bytes.len() || error.to_string().is_empty() => {
                return Err(Fault::new(format!("a problem without words or place: {error:?}"), bytes));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// The event as it is sent, with a body of some encoding.
fn sent(event: &Event, rng: &mut impl Rng) -> Vec<u8> {
    let remainder = Message::remainder(event);
    let body = match &remainder {
        Some(bytes) => Body { encoding: Encoding::Value, bytes },
        None => {
            let encodings =
                [Encoding::Raw, Encoding::Cdr, Encoding::Json, Encoding::Postcard, Encoding::Named("x")];
            let bytes: &[u8] = one_of(
                rng,
                &[
                    &b"\0\x01\0\0\x01\0\0\0\x02\0\0\0a\0\0\0\x07\0\0\0"[..],
                    b"[[\"a\",7]]",
                    b"\x01\x01a\x07",
                    b"",
                ],
            );
            Body { encoding: one_of(rng, &encodings), bytes }
        }
    };
    let mut message =
        Message::new(Header::new(event.domain_name(), talea_etcl::Event::type_name(event)), body);
    message.header.event_name = event.event_name();
    message.header.source = one_of(rng, &[0, 1, u32::MAX]);
    message.header.priority = one_of(rng, &[None, Some(-1), Some(i16::MAX)]);
    message.header.start =
        one_of(rng, &[None, Some(Instant::from_nanos(i64::MIN)), Some(Instant::from_nanos(5))]);
    message.filterable_data = std::borrow::Cow::Borrowed(event.filterable_data());
    message.variable_header = std::borrow::Cow::Borrowed(event.variable_header());
    message.encode()
}

fn altered(bytes: &mut Vec<u8>, rng: &mut impl Rng) {
    if bytes.is_empty() {
        return;
    }
    let place = rng.random_range(0..bytes.len());
    match rng.random_range(0..5) {
        0 => bytes[place] ^= 1 << rng.random_range(0..8),
        1 => bytes[place] = one_of(rng, &[0, 1, 0x7f, 0x80, 0xff]),
        2 => bytes.truncate(place),
        3 => bytes.insert(place, one_of(rng, &[0, 0x80, 0xff])),
        _ => {
            let end = (place + 8).min(bytes.len());
            rng.fill(&mut bytes[place..end]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_constraints_and_events_are_sound_as_a_rule() {
        let rng = &mut draw::numbers(1);
        let sound = (0..1_000).filter(|_| Constraint::parse(&draw::constraint(rng)).is_ok()).count();
        assert!(sound > 500, "{sound}");
        let event = draw::event(rng);
        let bytes = sent(&event, rng);
        let message = Message::decode(&bytes, &Limits::default());
        assert!(message.is_ok(), "{message:?}");
    }
}
