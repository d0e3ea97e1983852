//! What jobs publish on outputs, held against what they published then.

use super::Replay;
use super::replayed::Replayed;
use crate::compare::compare;
use crate::report::{Compared, What};
use crate::steps::{End, Recorded};
use talea_model::System;
use talea_operation::Encoded;
use talea_record::values::MOST_BYTES;

impl Replay {
    /// Compares what the job wrote with what was recorded, and puts that in its place.
    pub(super) fn settle_outputs(&mut self, end: &End, is_called: bool, panicked: Option<String>) {
        let (is_cut, job) = (self.is_cut(end), self.known_as(end));
        let Some(replayed) = &mut self.operations[end.job.operation.index()] else { return };
        let is_on_track = replayed.is_on_track;
        let sites = self.system.outputs_of(end.job.operation);
        for (port, site) in replayed.operation.outputs().zip(sites) {
            let place = site.id.index();
            let recorded = end.published.get(&(place as u32));
            let row = &mut self.report.outputs[place];
            if !self.kept[place] {
                if recorded.is_some() {
                    self.unverified.publish(site.id, end.job.instance);
                }
                continue;
            }
            let now = port.encode(&mut self.buffer);
            let what = match (recorded, now) {
                (Some(Recorded::Bytes(recorded)), Encoded::Bytes(length)) => {
                    Some(compare(recorded, &self.buffer[..length]))
                }
                (Some(Recorded::Bytes(recorded)), Encoded::NoRoom) => {
                    Some(Some(What::TooLongNow { recorded_length: recorded.len(), most: MOST_BYTES }))
                }
                (Some(Recorded::Bytes(_)), Encoded::Nothing) => Some(Some(match &panicked {
                    Some(message) => What::Panicked { message: message.clone() },
                    None => What::NothingNow,
                })),
                (None, Encoded::Nothing) => Some(None),
                (None, Encoded::Bytes(_) | Encoded::NoRoom) if is_cut => {
                    row.unrecorded += 1;
                    None
                }
                (None, Encoded::Bytes(_) | Encoded::NoRoom) => Some(Some(What::NothingThen)),
                (Some(Recorded::Awaited | Recorded::Unrecorded), _) => {
                    row.unrecorded += 1;
                    self.unverified.publish(site.id, end.job.instance);
                    None
                }
            };
            match recorded {
                Some(Recorded::Bytes(bytes)) => {
                    if what != Some(None) && !port.decode(bytes) {
                        port.discard();
                    }
                }
                Some(Recorded::Awaited | Recorded::Unrecorded) => {}
                None => port.discard(),
            }
            if let Some(what) = what.filter(|_| is_called) {
                self.report.count(Compared::Output(place), job, is_on_track, what);
            }
        }
    }
}

/// By output, whether its values can be bytes.
pub(super) fn has_bytes(system: &System, operations: &mut [Option<Replayed>]) -> Vec<bool> {
    let mut has_bytes = vec![false; system.outputs().len()];
    for (operation, replayed) in system.operations().iter().zip(operations) {
        let Some(replayed) = replayed else { continue };
        for (port, site) in replayed.operation.outputs().zip(system.outputs_of(operation.id)) {
            has_bytes[site.id.index()] = port.has_bytes();
        }
    }
    has_bytes
}
