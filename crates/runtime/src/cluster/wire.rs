//! What coordinator and members say to each other: one JSON text per line.

use super::agreement::Agreement;
use crate::outcome::{HierarchyOutcome, Mishaps, NodeSpin, Stopped, ThreadAttributes};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// Names the run's directory to a member.
pub(super) const DIRECTORY_VARIABLE: &str = "TALEA_CLUSTER_DIRECTORY";
/// Names the member's node.
pub(super) const NODE_VARIABLE: &str = "TALEA_CLUSTER_NODE";

/// The control socket in the run's directory.
pub(super) fn control_of(directory: &Path) -> PathBuf {
    directory.join("control")
}

/// From a member to the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromMember {
    /// First of all.
    Hello { node: usize, agreement: Agreement },
    /// Everything is prepared.
    Ready { realtime: bool, epoch: u64, missing: Vec<String>, threads: Vec<ThreadAttributes> },
    /// Preparing failed; the member exits.
    Failed { message: String },
    /// The run is over.
    Finished {
        stopped: Stopped,
        spin: Vec<NodeSpin>,
        mishaps: Box<Mishaps>,
        hierarchies: Vec<HierarchyOutcome>,
    },
}

/// From the coordinator to a member.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToMember {
    /// The run starts at this instant of CLOCK_MONOTONIC.
    Start { at_ns: i64 },
    /// End early.
    Stop,
}

/// Sends one message.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Receives one message; `None` at the end of the connection.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn messages_cross_and_the_end_is_an_end() {
        let mut bytes = Vec::new();
        send(&mut bytes, &ToMember::Start { at_ns: 7 }).unwrap();
        send(&mut bytes, &ToMember::Stop).unwrap();
        let mut reader = BufReader::new(&bytes[..]);
        assert!(matches!(receive(&mut reader).unwrap(), Some(ToMember::Start { at_ns: 7 })));
        assert!(matches!(receive(&mut reader).unwrap(), Some(ToMember::Stop)));
        assert!(receive::<ToMember>(&mut reader).unwrap().is_none());
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        assert!(receive::<ToMember>(&mut BufReader::new(&b"{\"halt\":1}\n"[..])).is_err());
    }
}
