//! How many events wait in all of a channel, and which of them goes when these are more than may.
//!
//! An event that comes is put into its consumer's queue first, and then, if more wait than may, one goes: of all that wait in the channel, the one that comes
//! included, the one that the channel's discard policy names. Whoever finds more waiting than may looks at the queues one after the other, so the choice takes as many steps as
//! consumers are connected and events wait. One thread at a time chooses over the whole channel; who comes meanwhile does not wait but chooses in its own queue. A queue
//! whose lock somebody has, because an event is just being taken from it, is left out of the choice. Where that leaves nothing, one event too many waits, and the next push
//! takes out two.
//!
//! Lock order: the topology, the members, then the inner part of a consumer, for which nobody waits here. What goes is
//! dropped when all have been given back; where much has expired, the choice begins anew after that.

use super::{Consumer, Entered};
use crate::delivery::{Arrival, Delivery};
use crate::gone::Gone;
use crate::qos::DiscardPolicy;
use crate::queue::Rank;
use crate::signal::Signal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use talea_linux::pi_lock::PiLock;
use talea_time::Instant;

/// Events that go for one that comes: one for itself, and one that somebody could not take out.
const AT_ONCE: usize = 2;

/// See the module. Events that came while there was no limit do not count, and do not go for others.
pub(crate) struct ChannelLoad {
    queued: AtomicUsize,
    /// 0 if there is no limit.
    most: AtomicUsize,
    /// Events that came while there was one.
    arrivals: AtomicU64,
    /// The channel's discard policy.
    discard: AtomicU8,
    /// The consumers that are connected, by their numbers.
    members: PiLock<BTreeMap<u32, Arc<Consumer>>>,
    /// Whether suppliers may wait for room, or could at some time.
    may_block: AtomicBool,
    /// Raised when an event is gone, if they may.
    made_room: Signal,
}

impl ChannelLoad {
    pub fn new(discard: DiscardPolicy) -> Self {
        ChannelLoad {
            queued: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            arrivals: AtomicU64::new(0),
            discard: AtomicU8::new(discard as u8),
            members: PiLock::new(BTreeMap::new()),
            may_block: AtomicBool::new(false),
            made_room: Signal::default(),
        }
    }

    /// So many may wait from now on; 0 is no limit. What waits stays until more come.
    pub fn limit(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// By this policy events go from now on.
    pub fn discard_by(&self, discard: DiscardPolicy) {
        self.discard.store(discard as u8, Ordering::Relaxed);
    }

    fn discard(&self) -> DiscardPolicy {
        DiscardPolicy::ALL[usize::from(self.discard.load(Ordering::Relaxed))]
    }

    /// The number of an event that comes, if there is a limit.
    #[inline]
    pub fn number(&self) -> Arrival {
        match self.most.load(Ordering::Relaxed) {
            0 => Arrival::NONE,
            _ => Arrival::of(self.arrivals.fetch_add(1, Ordering::Relaxed) + 1),
        }
    }

    /// One more waits, if it counts. Whether these are more than may.
    #[inline]
    pub fn add(&self, delivery: &Delivery) -> bool {
        delivery.arrival != Arrival::NONE && {
            let queued = self.queued.fetch_add(1, Ordering::Relaxed) + 1;
            let most = self.most.load(Ordering::Relaxed);
            most > 0 && queued > most
        }
    }

    /// One waits no more.
    #[inline]
    pub fn remove(&self, delivery: &Delivery) {
        if delivery.arrival != Arrival::NONE {
            self.queued.fetch_sub(1, Ordering::Relaxed);
        }
        if self.may_block.load(Ordering::Relaxed) {
            self.made_room.raise();
        }
    }

    /// More wait than may.
    fn is_over(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        most > 0 && self.queued.load(Ordering::Relaxed) > most
    }

    /// As many wait as may.
    pub fn is_full(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        most > 0 && self.queued.load(Ordering::Relaxed) >= most
    }

    /// Suppliers may wait for room from now on.
    pub fn let_wait(&self) {
        self.may_block.store(true, Ordering::Relaxed);
    }

    /// Raised when an event of the channel is gone.
    pub fn made_room(&self) -> &Signal {
        &self.made_room
    }

    /// The consumer is connected.
    pub fn join(&self, consumer: &Arc<Consumer>) {
        self.members.lock().insert(consumer.number, Arc::clone(consumer));
    }

    /// The consumer of this number is not any more. What is returned may run code of the program when it is dropped.
    #[must_use]
    pub fn leave(&self, number: u32) -> Option<Arc<Consumer>> {
        self.members.lock().remove(&number)
    }

    /// Nobody is connected any more. As [`Self::leave`].
    #[must_use]
    pub fn leave_all(&self) -> BTreeMap<u32, Arc<Consumer>> {
        std::mem::take(&mut *self.members.lock())
    }

    /// More wait than may since this event came to its consumer: says what became of it there.
    #[cold]
    pub fn make_room(&self, own: &Consumer, coming: &Coming, now: Instant, gone: &mut Gone<'_>) -> Entered {
        let mut made = Made { entered: Entered::Waits, left: AT_ONCE };
        while !self.has_made_room(own, coming, now, &mut made, gone) {
            gone.let_go();
        }
        made.entered
    }

    /// Lets go what may. False if there may be more, and what is gone is to be dropped first.
    fn has_made_room(
        &self,
        own: &Consumer,
        coming: &Coming,
        now: Instant,
        made: &mut Made,
        gone: &mut Gone<'_>,
    ) -> bool {
        let members = self.members.try_lock();
        let all = || {
            let all = members.iter().flat_map(|members| members.values().map(Arc::as_ref));
            all.chain(members.is_none().then_some(own))
        };
        let discard = self.discard();
        while made.left > 0 {
            // Also where its queue is one of those that are left out.
            let mut first = (made.entered != Entered::Refused).then(|| (coming.rank(discard), own));
            // What has expired goes before all others.
            for consumer in all() {
                let rank = consumer.first_to_go(discard, coming, now, gone);
                if gone.is_full() {
                    return false;
                }
                if let Some(rank) = rank
                    && first.is_none_or(|(least, _)| rank < least)
                {
                    first = Some((rank, consumer));
                }
            }
            let Some((rank, consumer)) = first.filter(|_| self.is_over()) else { return true };
            let Some(went) = consumer.let_go_first(discard, coming, rank) else { return true };
            made.left -= 1;
            if went.arrival == coming.arrival {
                made.entered = Entered::Refused;
            } else if consumer.number == own.number
                && made.entered == Entered::Waits
                && went.not_before <= coming.not_before
            {
                // Of one that was due later the delivery comes too late for this one.
                made.entered = Entered::InPlace;
            }
            gone.add(went.event);
            if gone.is_full() {
                return made.left == 0;
            }
        }
        true
    }
}

/// What has been done for an event that comes.
struct Made {
    /// What became of it.
    entered: Entered,
    /// How many may go still.
    left: usize,
}

/// An event that comes to a channel in which more wait than may.
#[derive(Clone, Copy)]
pub(crate) struct Coming {
    arrival: Arrival,
    number: u64,
    priority: i16,
    expires: Instant,
    not_before: Instant,
}

impl Coming {
    /// None if it does not count.
    pub fn of(delivery: &Delivery) -> Option<Self> {
        let Delivery { arrival, priority, expires, not_before, .. } = *delivery;
        arrival.number().map(|number| Coming { arrival, number, priority, expires, not_before })
    }

    fn rank(&self, discard: DiscardPolicy) -> Rank {
        Rank::of_coming(discard, (self.priority, self.expires), self.number)
    }

    /// Where an event stands among those that wait; none if it does not count.
    fn rank_of(&self, discard: DiscardPolicy, waiting: &Delivery) -> Option<Rank> {
        let number = waiting.arrival.number()?;
        Some(match number == self.number {
            true => self.rank(discard),
            false => Rank::of(discard, waiting, number),
        })
    }
}

impl Consumer {
    /// Of the events that wait for it, where the one stands that goes first; none if there is none, or its lock cannot be had at once.
    fn first_to_go(
        &self,
        discard: DiscardPolicy,
        coming: &Coming,
        now: Instant,
        gone: &mut Gone<'_>,
    ) -> Option<Rank> {
        let mut inner = self.inner.try_lock()?;
        if !self.drain(&mut inner, now, gone) {
            return None;
        }
        inner.queue.first_to_go(|waiting| coming.rank_of(discard, waiting)).map(|(rank, _)| rank)
    }

    /// The event that goes first is gone, unless one goes before it that stands behind `rank`: somebody has taken it.
    fn let_go_first(&self, discard: DiscardPolicy, coming: &Coming, rank: Rank) -> Option<Delivery> {
        let mut inner = self.inner.try_lock()?;
        let (first, place) = inner.queue.first_to_go(|waiting| coming.rank_of(discard, waiting))?;
        let gone = (first <= rank).then(|| inner.queue.remove(place))?;
        self.gone(&gone, &self.counts.discarded);
        Some(gone)
    }
}
