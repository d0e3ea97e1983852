//! Values of rt-app's keys, each refused with what to write instead.

use super::json::{Kind, Member, Value};
use super::thread::Policy;
use crate::Effect;
use crate::names::{did_you_mean, shown};
use crate::reading::Reading;
use std::ops::RangeInclusive;
use talea_model::CPU_LIMIT;
use talea_time::Duration;

/// Reports a value of the wrong type, or none at all.
pub(super) fn wrong(
    reading: &mut Reading<'_>,
    label: &str,
    member: &Member<'_>,
    wanted: &str,
    example: &str,
) {
    let key = shown(&member.key);
    let (span, message) = match &member.value {
        Some(value) => (value.span.clone(), format!("{label}: {key} is {}, not {wanted}", value.kind.name())),
        None => (member.key_span.clone(), format!("{label}: {key} has no value")),
    };
    reading.error(span, message, format!("write {key} : {example}"));
}

/// A whole number in `range`.
pub(super) fn integer(
    reading: &mut Reading<'_>,
    label: &str,
    member: &Member<'_>,
    range: RangeInclusive<i64>,
) -> Option<i64> {
    let Some(Value { span, kind: Kind::Number(text) }) = &member.value else {
        wrong(reading, label, member, "a whole number", "1");
        return None;
    };
    let key = shown(&member.key);
    match text.parse::<i64>() {
        Ok(number) if range.contains(&number) => Some(number),
        Err(error)
            if !matches!(
                error.kind(),
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
            ) =>
        {
            let message = format!("{label}: {key} is {}, not a whole number", shown(text));
            reading.error(span.clone(), message, "rt-app takes whole numbers only, times in microseconds");
            None
        }
        _ => {
            let message = format!("{label}: {key} is {}, out of range", shown(text));
            let remedy = format!("use a number from {} to {}", range.start(), range.end());
            reading.error(span.clone(), message, remedy);
            None
        }
    }
}

/// A time, in whole microseconds of 32 bits.
pub(super) fn duration(reading: &mut Reading<'_>, label: &str, member: &Member<'_>) -> Option<Duration> {
    integer(reading, label, member, 0..=i64::from(i32::MAX)).map(Duration::from_micros)
}

/// A text.
pub(super) fn text<'m>(reading: &mut Reading<'_>, label: &str, member: &'m Member<'_>) -> Option<&'m str> {
    match &member.value {
        Some(Value { kind: Kind::Text(text), .. }) => Some(text),
        _ => {
            wrong(reading, label, member, "a text", "\"name\"");
            None
        }
    }
}

const POLICIES: &[(&str, Policy)] = &[
    ("SCHED_OTHER", Policy::Other),
    ("SCHED_IDLE", Policy::Other),
    ("SCHED_BATCH", Policy::Other),
    ("SCHED_RR", Policy::RoundRobin),
    ("SCHED_FIFO", Policy::Fifo),
    ("SCHED_DEADLINE", Policy::Deadline),
];

/// A scheduling policy by its name.
pub(super) fn policy(reading: &mut Reading<'_>, label: &str, member: &Member<'_>) -> Option<Policy> {
    let name = text(reading, label, member)?;
    if let Some((_, policy)) = POLICIES.iter().find(|(known, _)| *known == name) {
        return Some(*policy);
    }
    let remedy = did_you_mean(
        name,
        POLICIES.iter().map(|(known, _)| *known),
        "write SCHED_OTHER, SCHED_FIFO, SCHED_RR or SCHED_DEADLINE",
    );
    let message = format!("{label}: {} is no scheduling policy", shown(name));
    reading.error(member.span(), message, remedy);
    None
}

/// A list of processor numbers, each counted once.
pub(super) fn cpus(reading: &mut Reading<'_>, label: &str, member: &Member<'_>) -> Option<Vec<u16>> {
    let Some(Value { kind: Kind::List(values), span }) = &member.value else {
        wrong(reading, label, member, "a list", "[0]");
        return None;
    };
    let mut cpus = Vec::new();
    for value in values {
        let number = match &value.kind {
            Kind::Number(text) => text.parse().ok().filter(|cpu| *cpu < CPU_LIMIT),
            _ => None,
        };
        let Some(cpu) = number else {
            let message = format!("{label}: an element of \"cpus\" is no processor number");
            reading.error(value.span.clone(), message, format!("use the numbers 0 to {}", CPU_LIMIT - 1));
            return None;
        };
        if cpus.contains(&cpu) {
            let what = format!("names processor {cpu} twice; it counts once");
            reading.lose(Effect::Approximated, value.span.clone(), label, "cpus", what);
        } else {
            cpus.push(cpu);
        }
    }
    if cpus.is_empty() {
        reading.error(
            span.clone(),
            format!("{label}: \"cpus\" is empty"),
            "name a processor, or leave it out",
        );
        return None;
    }
    Some(cpus)
}
