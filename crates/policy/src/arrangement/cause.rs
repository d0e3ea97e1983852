//! Who changes a hierarchy while it runs, and why.

use super::live::Insistence;

/// Why an edge comes, goes or is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeCause {
    /// Who changes the hierarchy.
    pub by: ChangeAuthor,
    /// What for. Edges beside the one that is meant change for the same reason: shares of others become smaller when a thread is added.
    pub why: ChangeReason,
    /// Whether who asks for it insists that promises may break, as `talea ctl --force` does. What did not have to be forced is told as forced, too.
    pub insistence: Insistence,
}

/// Who changes a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAuthor {
    /// The run itself, which does what its description says.
    Run,
    /// The program that runs the hierarchy, by a call.
    Program,
    /// Who asks from outside, through the control socket.
    Operator {
        /// The number of the process that asks; 0 if it is in a PID namespace that this one does not see.
        process: u32,
        /// The number of the user as whom it runs.
        user: u32,
    },
    /// The thread or program that is scheduled.
    Member,
}

/// What a hierarchy is changed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeReason {
    /// The description says so, from the beginning.
    Described,
    /// A thread was added.
    ThreadAdded,
    /// A thread was removed.
    ThreadRemoved,
    /// A scheduler was added.
    SchedulerAdded,
    /// A scheduler was removed.
    SchedulerRemoved,
    /// A scheduler was replaced by another one.
    SchedulerReplaced,
    /// A thread or scheduler got other parents.
    Moved,
    /// A thread or scheduler asks for something else.
    RequestChanged,
    /// A thread or scheduler begins a reservation.
    Reserved,
    /// It ends its reservation and goes back to where it was.
    ReservationEnded,
    /// What was scheduled has ended.
    Ended,
    /// What was to be scheduled could not be taken in, and the room that was made for it is given up.
    NotAdmitted,
}

impl ChangeCause {
    /// It is as described.
    pub const DESCRIBED: ChangeCause = ChangeCause::careful(ChangeAuthor::Run, ChangeReason::Described);
    /// Who was scheduled has ended.
    pub const ENDED: ChangeCause = ChangeCause::careful(ChangeAuthor::Member, ChangeReason::Ended);

    /// That of who does not insist.
    pub const fn careful(by: ChangeAuthor, why: ChangeReason) -> Self {
        ChangeCause { by, why, insistence: Insistence::Careful }
    }

    /// That of giving up what was changed for somebody who then could not be taken in.
    #[must_use]
    pub fn not_admitted(self) -> Self {
        ChangeCause { why: ChangeReason::NotAdmitted, ..self }
    }
}
