//! What a job can ask of what executes it.

use crate::events::{EventNote, KeptEvent};
use crate::posting::{NotPosted, Posted};
use crate::pushes::PushAnswer;
use crate::reading::NotRead;
use talea_time::Instant;

/// What a job can ask of what executes it.
pub trait JobServices {
    /// The current instant on the clock of the run, for what channels and the like do while the job runs: its code does not see it.
    fn clock(&self) -> Instant;
    /// The same as an answer to the job's code, which a replay gives again.
    fn now(&self) -> Instant {
        self.clock()
    }
    /// Whether the job is to stop, which it has asked now.
    fn is_to_stop(&self) -> bool;
    /// Posts a job.
    ///
    /// # Errors
    /// [`NotPosted`].
    fn post(&self, posted: Posted) -> Result<u64, NotPosted>;
    /// The same; the job is executed before this returns, in the midst of the one that posts it, if both are of one lane and nothing that waits there
    /// comes before it. Where `released` was [read](Self::clock) for it, and nothing recorded since, it is released then.
    ///
    /// # Errors
    /// [`NotPosted`].
    fn post_here(&self, posted: Posted, released: Option<Instant>) -> Result<u64, NotPosted> {
        _ = released;
        self.post(posted)
    }
    /// Reads of the descriptor that releases the job's task into `buffer`, without waiting. Returns how many bytes.
    ///
    /// # Errors
    /// [`NotRead`]; where nothing comes from outside, [`NotRead::NoDescriptor`].
    fn read(&self, buffer: &mut [u8]) -> Result<usize, NotRead> {
        _ = buffer;
        Err(NotRead::NoDescriptor)
    }
    /// A channel tells something of the instant `at`, no earlier one than it told of before, which is recorded if that is wanted.
    fn note(&self, note: EventNote, at: Instant);
    /// Whether what channels of the program hand on in the job, and what it pushes there, is to be [kept](Self::keep).
    fn keeps_events(&self) -> bool {
        false
    }
    /// Has this recorded of what a channel of the program hands on in the job, or of what it pushes there. None: it has no bytes, or more than are kept.
    fn keep(&self, event: KeptEvent, bytes: Option<&[u8]>) {
        _ = (event, bytes);
    }
    /// What the push is answered that was [kept](Self::keep) last, and of which this comes now: in a replay, what it was answered then.
    fn answer_push(&self, now: PushAnswer) -> PushAnswer {
        now
    }
}
