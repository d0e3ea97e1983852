//! The events of a task that begins with several subtasks: all those of an instance have the same one, whichever of them begins first.
//!
//! ```text
//!              the first begins                        the last has begun
//!   UNKNOWN ──────────(1)──────────► TAKEN, or NOTHING ────────(2)────────► UNKNOWN
//! ```
//!
//! 1. It takes the next event that waits, if one does. That keeps its place among those that may wait: it is neither discarded nor expires any more,
//!    and an event that comes finds one place less. So there are never more events than may wait and jobs have.
//! 2. The place is free, and the event is with the jobs that have it alone.
//!
//! Every first subtask of an instance that is released begins, unless the run ends before: tasks that events release abort nothing
//! ([`Overrun::Queue`](talea_model::Overrun::Queue)). Who begins takes the lock here, then that of the consumer.

use crate::connected::ConnectedConsumer;
use crate::consumer::ManyGone;
use crate::delivery::Delivery;
use crate::gone::Gone;
use std::collections::VecDeque;
use talea_linux::pi_lock::PiLock;
use talea_time::Instant;

/// See the module.
pub(super) struct Instances {
    /// First subtasks of the task, at least two.
    firsts: usize,
    /// Those of which some first subtask has begun and another one has not, by their numbers.
    begun: PiLock<VecDeque<Begun>>,
}

struct Begun {
    instance: u64,
    /// First subtasks that have not begun.
    left: usize,
    event: Option<Delivery>,
}

impl Instances {
    /// Of a task that begins with so many subtasks, with room for so many instances that have begun in part; beyond that, memory is taken for more.
    pub fn new(firsts: usize, room: usize) -> Self {
        Instances { firsts, begun: PiLock::new(VecDeque::with_capacity(room)) }
    }

    /// A first subtask of this instance begins: what the instance has.
    pub fn begin(&self, consumer: &ConnectedConsumer, instance: u64, now: Instant) -> Option<Delivery> {
        loop {
            // Dropped when the lock has been given back.
            let mut gone = Gone::default();
            if let Ok(event) = self.begin_locked(consumer, instance, now, &mut gone) {
                return event;
            }
        }
    }

    fn begin_locked(
        &self,
        consumer: &ConnectedConsumer,
        instance: u64,
        now: Instant,
        gone: &mut Gone<'_>,
    ) -> Result<Option<Delivery>, ManyGone> {
        let mut begun = self.begun.lock();
        match begun.binary_search_by_key(&instance, |begun| begun.instance) {
            Err(place) => {
                let event = consumer.take_in_its_place(now, gone)?;
                begun.insert(place, Begun { instance, left: self.firsts - 1, event: event.clone() });
                Ok(event)
            }
            Ok(place) => {
                let of_instance = &mut begun[place];
                of_instance.left -= 1;
                if of_instance.left > 0 {
                    return Ok(of_instance.event.clone());
                }
                let event = begun.remove(place).expect("it was found there").event;
                event.iter().for_each(|event| consumer.give_place_up(event));
                Ok(event)
            }
        }
    }
}
