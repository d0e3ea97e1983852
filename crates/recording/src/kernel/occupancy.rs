//! Who has a processor, from the two sides of every switch.
//!
//! The kernel tells a switch twice: the leaving thread names the next one, then the arriving thread names the previous
//! one. Neither names itself, since that would make a switch a fifth dearer, and one side or both can be missing: after a
//! gap, and where the kernel does not tell a thread's events.
//!
//! ```text
//!  state           leaving side: next            arriving side: prev
//!  Unknown         Left(next)                    ! prev → unseen
//!  Left(n)         ! unseen → n, n → next        ! prev → n, Here(n)
//!                  Arriving(n, next)             if prev is n: ! unseen → n, n → unseen, Unknown
//!  Arriving(l, n)  ! n → next, Arriving(n, next) if prev is l: Here(n)
//!                                                else: ! prev → unseen, Unknown
//!  Here(t)         ! t → next, Arriving(t, next) ! prev → unseen, Unknown
//! ```
//! `!` tells a switch. In the steady state the leaving side tells it and the arriving side confirms it. Who arrives unseen is
//! who leaves next; nothing told is wrong.

use talea_record::Record;
use talea_time::Instant;

/// A thread by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
}

impl Thread {
    pub const UNSEEN: Thread = Thread { pid: Record::UNSEEN_THREAD, tid: Record::UNSEEN_THREAD };
}

/// Whether a leaving thread could have gone on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    Willingly,
    Preempted,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub time: Instant,
    pub from: Thread,
    pub to: Thread,
    pub leaves: Leaves,
}

/// Up to two switches, in the order of time.
pub(super) type Switches = [Option<Switch>; 2];

/// See the table in the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupancy {
    Unknown,
    /// Somebody left for `next`.
    Left {
        time: Instant,
        next: Thread,
        leaves: Leaves,
    },
    /// `left` left for `next`, as told.
    Arriving {
        left: Thread,
        next: Thread,
    },
    Here(Thread),
}

impl Occupancy {
    /// The thread on the processor leaves it to `next`.
    #[must_use]
    pub fn leaving(&mut self, time: Instant, next: Thread, leaves: Leaves) -> Switches {
        let to_next = |from| Some(Switch { time, from, to: next, leaves });
        let (state, told) = match *self {
            Occupancy::Unknown => (Occupancy::Left { time, next, leaves }, [None, None]),
            Occupancy::Left { time, next: left, leaves } => {
                let before = Switch { time, from: Thread::UNSEEN, to: left, leaves };
                (Occupancy::Arriving { left, next }, [Some(before), to_next(left)])
            }
            Occupancy::Arriving { next: left, .. } | Occupancy::Here(left) => {
                (Occupancy::Arriving { left, next }, [to_next(left), None])
            }
        };
        *self = state;
        told
    }

    /// The thread on the processor got it from `prev`.
    #[must_use]
    pub fn arriving(&mut self, time: Instant, prev: Thread) -> Switches {
        let somebody = Switch { time, from: prev, to: Thread::UNSEEN, leaves: Leaves::Willingly };
        let (state, told) = match *self {
            Occupancy::Arriving { left, next } if prev.tid == left.tid || prev.tid == Thread::UNSEEN.tid => {
                (Occupancy::Here(next), [None, None])
            }
            Occupancy::Left { time, next, leaves } if prev.tid == next.tid => {
                let before = Switch { time, from: Thread::UNSEEN, to: next, leaves };
                (Occupancy::Unknown, [Some(before), Some(somebody)])
            }
            Occupancy::Left { time, next, leaves } => {
                (Occupancy::Here(next), [Some(Switch { time, from: prev, to: next, leaves }), None])
            }
            Occupancy::Unknown | Occupancy::Arriving { .. } | Occupancy::Here(_) => {
                (Occupancy::Unknown, [Some(somebody), None])
            }
        };
        *self = state;
        told
    }

    /// Sides of switches are missing from here on.
    #[must_use]
    pub fn gap(&mut self) -> Option<Switch> {
        match std::mem::replace(self, Occupancy::Unknown) {
            Occupancy::Left { time, next, leaves } => {
                Some(Switch { time, from: Thread::UNSEEN, to: next, leaves })
            }
            Occupancy::Unknown | Occupancy::Arriving { .. } | Occupancy::Here(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: u32 = Record::UNSEEN_THREAD;

    fn thread(tid: u32) -> Thread {
        Thread { pid: tid, tid }
    }

    #[derive(Clone, Copy, Debug)]
    enum Side {
        /// The leaving side, with the next thread.
        Out(u32),
        /// The arriving side, with the previous thread.
        In(u32),
        Gap,
    }
    use Side::{Gap, In, Out};

    /// What is told of sides at 0, 1, 2...: time, leaving and arriving thread.
    fn told(sides: &[Side]) -> Vec<(i64, u32, u32)> {
        let mut occupancy = Occupancy::Unknown;
        let step = |(time, side): (usize, &Side)| {
            let time = Instant::from_nanos(time as i64);
            match side {
                Out(next) => occupancy.leaving(time, thread(*next), Leaves::Willingly),
                In(prev) => occupancy.arriving(time, thread(*prev)),
                Gap => [occupancy.gap(), None],
            }
        };
        let switches = sides.iter().enumerate().flat_map(step).flatten();
        switches.map(|switch| (switch.time.as_nanos(), switch.from.tid, switch.to.tid)).collect()
    }

    #[test]
    fn each_switch_is_told_once_when_it_begins() {
        let sides = [Out(2), In(1), Out(3), In(2), Out(1), In(3)];
        assert_eq!(told(&sides), [(0, 1, 2), (2, 2, 3), (4, 3, 1)]);
    }

    #[test]
    fn after_a_gap_one_arrival_is_unseen() {
        let steady = [Out(2), In(1), Gap];
        let after = |sides: &[Side]| told(&[&steady, sides].concat())[1..].to_vec();
        assert_eq!(after(&[In(7), Out(9), In(8), Out(1), In(9)]), [(3, 7, NOBODY), (4, 8, 9), (6, 9, 1)]);
        assert_eq!(after(&[Out(9), In(8), Out(1), In(9)]), [(3, 8, 9), (5, 9, 1)]);
        assert_eq!(after(&[Out(9), Gap, Out(3), In(2)]), [(3, NOBODY, 9), (5, 2, 3)]);
    }

    #[test]
    fn a_thread_that_is_never_told_is_missed_and_takes_nobodys_place() {
        // 6 comes and goes untold: only its predecessor and its successor speak.
        let known = [Out(2), In(1), Out(6), In(6), Out(4), In(3), Out(5), In(4)];
        assert_eq!(told(&known), [(0, 1, 2), (2, 2, 6), (3, 6, NOBODY), (4, 3, 4), (6, 4, 5)]);
        let unknown = [Out(6), In(6), Out(4), In(3)];
        assert_eq!(told(&unknown), [(0, NOBODY, 6), (1, 6, NOBODY), (2, 3, 4)]);
        // Two of them, one after the other.
        assert_eq!(told(&[Out(2), In(1), Out(6), In(7)]), [(0, 1, 2), (2, 2, 6), (3, 7, NOBODY)]);
        // One whose leaving alone is untold.
        assert_eq!(told(&[Out(2), In(1), In(2), Out(4), In(3)]), [(0, 1, 2), (2, 2, NOBODY), (3, 3, 4)]);
    }

    #[test]
    fn a_thread_that_loses_its_number_while_it_runs_is_told_by_it() {
        assert_eq!(told(&[Out(2), In(1), Out(3), In(NOBODY)]), [(0, 1, 2), (2, 2, 3)]);
    }
}
