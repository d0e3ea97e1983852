//! Posted work: jobs of operations that the description of the system does not have, released by a program while the run lasts.

/// How much work can be posted that the description of the system does not have. The default is none.
///
/// All memory for it is taken when the run is prepared, in every lane, because each of them may be given all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostingRoom {
    /// Operations that can be declared.
    pub operations: usize,
    /// Jobs of each of them that can be in flight, rounded up to a power of two.
    pub jobs: usize,
    /// Threads of the program that can post, one after the other too: the place of one that has ended is not given again. Operations
    /// can post as well, and do not count.
    pub posters: usize,
}

impl PostingRoom {
    /// Jobs of one operation that can be in flight.
    pub(crate) fn window(&self) -> usize {
        self.jobs.max(1).next_power_of_two()
    }

    /// Jobs of all operations that can be in flight.
    pub(crate) fn all_jobs(&self) -> usize {
        self.operations * self.window()
    }
}
