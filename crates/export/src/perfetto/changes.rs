//! Changes of hierarchies of schedulers: instants on a track of each node, which say who changed what, and what for.

use super::packets::{Mark, Packets, Track, typed};
use crate::decode::Decoder;
use talea_record::event::Coded;
use talea_record::{ChangeKind, EdgeEntry, Record, Typed};

/// Shows a record, if it is about a change. One of an edge that nobody defined has no node, and is not shown.
pub(super) fn record(decoder: &Decoder, record: &Record, out: &mut Packets) {
    let Typed::EdgeChange(change) = record.typed() else { return };
    let metadata = decoder.metadata();
    let known = metadata.edges.get(usize::from(change.edge));
    let (Some(edge), Some(declared)) = (known, decoder.event(record.event)) else { return };
    let track = Track::Changes(edge.node);
    if !out.is_described(track) {
        out.track(track, Some(Track::Node(edge.node)), "changes of the hierarchy".into());
    }
    let what = ChangeKind::CODES.label(change.what.number().into()).unwrap_or("changed");
    let forced = if change.forced.0 { " (forced)" } else { "" };
    let mark = Mark {
        name: format!("{what}: {}{forced}", EdgeEntry::name(edge)),
        category: "change",
        annotations: declared
            .values(metadata, record, None)
            .map(|(name, value)| typed(name, value))
            .collect(),
        flows: Vec::new(),
    };
    out.instant(record.time, track, mark);
}
