//! Events of a program's own families, events that no family declares, and losses.

use super::jobs::cpu_name;
use super::packets::{Flow, Mark, Packets, Track, annotation, typed};
use crate::decode::{Decoder, Shown, ShownKind};
use talea_record::event::{Coded, Lost};
use talea_record::{LossCause, Record};

/// Shows an event of the program as an instant with its typed fields on `track`; `flow` is the job it belongs to. An
/// event whose only field is a number draws it as a curve, too.
pub(super) fn event(decoder: &Decoder, record: &Record, track: Track, flow: Option<Flow>, out: &mut Packets) {
    let declared = decoder.event(record.event);
    let name = match declared {
        Some(declared) => format!("{}:{}", declared.family, declared.name),
        None => format!("event {:#06x}", record.event.0),
    };
    let annotations = match declared {
        Some(declared) => {
            let long = decoder.long(record);
            let values = declared.values(decoder.metadata(), record, long.as_deref());
            let mut annotations: Vec<_> = values.map(|(name, value)| typed(name, value)).collect();
            if record.causal != 0 {
                annotations.push(typed("causal", Shown::Unsigned(record.causal)));
            }
            annotations
        }
        None => [
            ("causal", record.causal),
            ("word0", record.words[0]),
            ("word1", record.words[1]),
            ("source", record.source.into()),
            ("arg", record.arg.into()),
        ]
        .map(|(name, value)| typed(name, Shown::Unsigned(value)))
        .into(),
    };
    number(decoder, record, &name, out);
    let mark = Mark { name, category: "program", annotations, flows: flow.into_iter().collect() };
    out.instant(record.time, track, mark);
}

/// The curve of an event with one field, a number.
fn number(decoder: &Decoder, record: &Record, name: &str, out: &mut Packets) {
    let Some(declared) = decoder.event(record.event) else { return };
    let mut kinds = declared.kinds();
    let only = match (kinds.next(), kinds.next()) {
        (Some((field, ShownKind::Unsigned | ShownKind::Signed | ShownKind::Float)), None) => field,
        _ => return,
    };
    let track = Track::Number(record.event.0);
    if !out.is_described(track) {
        out.counter_track(track, None, format!("{name} {only}"), None);
    }
    match declared.values(decoder.metadata(), record, None).next() {
        Some((_, Shown::Float(value))) => out.measure(record.time, track, value),
        Some((_, Shown::Signed(value))) => out.count(record.time, track, value),
        Some((_, Shown::Unsigned(value))) => {
            out.count(record.time, track, i64::try_from(value).unwrap_or(i64::MAX));
        }
        _ => {}
    }
}

/// The track of the program's events on a processor of which no thread is known.
pub(super) fn describe(cpu: u16, out: &mut Packets) -> Track {
    let track = Track::Program(cpu);
    if !out.is_described(track) {
        let name = match cpu {
            Record::NO_CPU => "Program events".into(),
            cpu => format!("Program events on {}", cpu_name(cpu)),
        };
        out.track(track, None, name);
    }
    track
}

/// Shows that records are missing.
pub(super) fn lost(record: &Record, Lost { records, ring, cause, .. }: Lost, out: &mut Packets) {
    if !out.is_described(Track::Losses) {
        out.track(Track::Losses, None, "Lost records".into());
    }
    let name = match ring {
        Record::KERNEL => format!("{records} records of the kernel lost on {}", cpu_name(record.cpu)),
        Record::NO_RING => format!("{records} records of threads without a ring lost"),
        ring => format!("{records} records of ring {ring} lost"),
    };
    let cause = LossCause::CODES.label(cause.number().into()).unwrap_or("unknown");
    let annotations = vec![
        annotation("records", i64::try_from(records).unwrap_or(i64::MAX)),
        typed("cause", Shown::Text(cause.into())),
    ];
    out.instant(record.time, Track::Losses, Mark { name, category: "lost", annotations, flows: Vec::new() });
}
