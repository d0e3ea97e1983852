//! What jobs push into channels, as bytes. Channels themselves are not known here, nor how they make bytes.

use talea_model::PublicationId;

/// What a job pushed, or wanted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedBytes {
    /// As what it is published.
    pub publication: PublicationId,
    /// Which of the pushes of the job it is, from 0; [the last number](Self::LAST) is that of all others, too, and these are not kept.
    pub number: u16,
    /// The event: its header and what it carries. Empty: there was no room for it. None: it is longer than what is kept.
    pub bytes: Option<Vec<u8>>,
}

impl PushedBytes {
    /// The greatest number.
    pub const LAST: u16 = u16::MAX;
}
