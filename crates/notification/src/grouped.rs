//! A consumer's condition over several events: fed by whichever supplier comes, without any of them waiting for another one.
//!
//! A supplier puts its event into a mailbox and then tries to have the state. Who gets it feeds it with all that is in the mailbox, also with what
//! others put there; who does not leaves: whoever has the state looks once more when it has given it back. Nobody waits for a supplier in the
//! midst of putting an event there, which may be of a lower priority and preempted by who waits: it has not asked yet, and will try itself.
//!
//! What the state has no more is put beside it and dropped, a few events at a time, by who gives the state back, for as
//! long as there is some or somebody else has the state, who does the same.

use crate::condition::{Condition, EventSet, Leaves, LeftOut, State};
use crate::event::{Event, EventPool, EventType};
use crate::filter::together;
use crate::gone::Gone;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering, fence};
use talea_channel::mailbox::{MailReceiver, MailSender, mailbox};
use talea_linux::pi_lock::PiLock;
use talea_time::{Duration, Instant};

pub(crate) struct Grouped {
    condition: Condition,
    leaves: Leaves,
    mail: MailSender<(Event, Instant)>,
    /// Whether an event has been put into the mailbox since whoever had the state last began to look there.
    is_asked: AtomicBool,
    /// When time alone changes something, in nanoseconds; `i64::MAX` never.
    due: AtomicI64,
    inner: PiLock<Inner>,
    /// Apart from the state, which nobody may have without answering.
    sets: Sets,
    /// The most events with which it comes true.
    events: usize,
    /// How long it takes at most to hold an event against its filters.
    longest: Duration,
    left_out: LeftOutCounts,
}

/// What was left out so far.
#[derive(Default)]
struct LeftOutCounts {
    timed_out: AtomicU64,
    replaced: AtomicU64,
    not_needed: AtomicU64,
}

/// Only [`Grouped::answer`], [`Grouped::pass`] and [`Grouped::begin`] have it: who gives it back looks whether somebody asks.
struct Inner {
    mail: MailReceiver<(Event, Instant)>,
    state: State,
    /// To be dropped by who gives it back.
    gone: Vec<Event>,
}

/// From so many events to be dropped on the state is given back before it is fed with more.
const MANY_GONE: usize = 8;

/// Who has what a condition has come true with; he has the state as well, so that what goes for it is put there.
pub(crate) type Came<'a> = &'a mut dyn FnMut(Event, &mut Vec<Event>);

/// Memory for what it comes true with.
struct Sets {
    free: PiLock<EventPool<EventSet>>,
    /// Sets for which none was free.
    lost: AtomicU64,
}

impl Grouped {
    /// With memory for as many sets as wait at most. Time counts from the origin of the clock, until it [begins](Self::begin).
    pub fn new(condition: Condition, most: usize) -> Self {
        // Those that wait, one for each thread that delivers, and those that suppliers are about to discard.
        let (sets, waiting) = (2 * most + 8, 2 * most + 8);
        let (state, leaves) = (State::begin(&condition, Instant::ZERO), Leaves::of(&condition));
        let size = state.most();
        let set = || EventSet(Vec::with_capacity(size));
        let sets = EventPool::new(sets, &EventType::new(EventSet::DOMAIN, ""), set);
        let (sender, receiver) = mailbox(waiting);
        let due = AtomicI64::new(nanoseconds(state.due()));
        let events = state.most().max(1);
        let sets = Sets { free: PiLock::new(sets), lost: AtomicU64::new(0) };
        // To see whether the event concerns it, and again where it is fed.
        let longest = together(condition.filters().into_iter().map(|filter| filter.longest()));
        let longest = together([longest, longest]);
        // What one step leaves behind, and what goes for it where it waits.
        let gone = MANY_GONE + 2 * (condition.kept_events() + condition.events_in_hand()) + 3 * most;
        let inner = PiLock::new(Inner { mail: receiver, state, gone: Vec::with_capacity(gone) });
        Grouped {
            condition,
            leaves,
            mail: sender,
            is_asked: AtomicBool::new(false),
            due,
            inner,
            sets,
            events,
            longest,
            left_out: LeftOutCounts::default(),
        }
    }

    /// What it waits for.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The most events with which it comes true.
    pub fn events(&self) -> usize {
        self.events
    }

    /// How long it takes at most to hold an event against its filters.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The most events that it keeps until it comes true.
    pub fn kept_events(&self) -> usize {
        self.condition.kept_events()
    }

    /// Time counts from `now` on; what has come is forgotten.
    pub fn begin(&self, now: Instant) {
        let mut inner = self.inner.lock();
        let former = std::mem::replace(&mut inner.state, State::begin(&self.condition, now));
        self.due.store(nanoseconds(inner.state.due()), Ordering::Relaxed);
        drop(inner);
        drop(former);
        // What comes while it begins may still be forgotten.
        self.answer(&mut |_, _| ());
    }

    /// Events of sets that nobody has any more are free for their suppliers.
    pub fn tidy(&self) {
        loop {
            let mut gone = Gone::default();
            let Some(mut free) = self.sets.free.try_lock() else { return };
            free.tidy(|set| gone.take_from(&mut set.0));
            drop(free);
            if !gone.is_full() {
                return;
            }
        }
    }

    /// Whether the event can have anything to do with the condition.
    pub fn concerns(&self, event: &Event, now: Instant) -> bool {
        self.leaves.concern(event, now)
    }

    /// An event has come; `came` is called with what the condition has come true with, one event or one that stands for several. False if there
    /// was no room for it.
    pub fn offer(&self, event: &Event, now: Instant, came: Came<'_>) -> bool {
        if self.mail.push((event.clone(), now)).is_err() {
            return false;
        }
        self.is_asked.store(true, Ordering::SeqCst);
        self.answer(came);
        true
    }

    /// Time has come to this.
    pub fn pass(&self, now: Instant, came: Came<'_>) {
        let mut has_passed = false;
        while !has_passed {
            let mut gone = Gone::default();
            let mut inner = self.inner.lock();
            has_passed = self.feed(&mut inner, came);
            if has_passed {
                let Inner { state, gone, .. } = &mut *inner;
                state.pass(now, gone, |events, gone| self.sets.hand_on(events, gone, came));
                self.note(state);
            }
            gone.take_from(&mut inner.gone);
        }
        self.answer(came);
    }

    /// Feeds the state with what is in the mailbox, and with what comes meanwhile from those who find the state taken and leave.
    fn answer(&self, came: Came<'_>) {
        // Who asks does so before he tries to have the state, and who had it gives it back before he looks whether he is asked: of two who meet,
        // one at least sees the other.
        fence(Ordering::SeqCst);
        let mut is_over = false;
        while !is_over || self.is_asked.load(Ordering::SeqCst) {
            // Dropped when the state has been given back.
            let mut gone = Gone::default();
            let Some(mut inner) = self.inner.try_lock() else { break };
            let is_fed = self.feed(&mut inner, came);
            is_over = gone.take_from(&mut inner.gone) && is_fed;
            drop(inner);
            fence(Ordering::SeqCst);
        }
    }

    /// Feeds the state with what is in the mailbox; false if that was not all, since much is to be dropped first.
    fn feed(&self, inner: &mut Inner, came: Came<'_>) -> bool {
        let Inner { mail, state, gone } = inner;
        // First, so that who puts one in behind what is taken here asks again.
        self.is_asked.swap(false, Ordering::SeqCst);
        let mut is_empty = false;
        while !is_empty && gone.len() < MANY_GONE {
            match mail.pop() {
                Some((event, now)) => {
                    state.offer(&event, now, gone, |events, gone| self.sets.hand_on(events, gone, came));
                    gone.push(event);
                }
                None => is_empty = true,
            }
        }
        self.note(state);
        is_empty
    }

    /// What others see of the state.
    fn note(&self, state: &mut State) {
        self.due.store(nanoseconds(state.due()), Ordering::Relaxed);
        let LeftOut { timed_out, replaced, not_needed } = state.take_left_out();
        let LeftOutCounts { timed_out: all_timed_out, replaced: all_replaced, not_needed: all_others } =
            &self.left_out;
        for (all, now) in [(all_timed_out, timed_out), (all_replaced, replaced), (all_others, not_needed)] {
            if now > 0 {
                all.fetch_add(now, Ordering::Relaxed);
            }
        }
    }

    /// What it has taken in and did not come true with.
    pub fn left_out(&self) -> LeftOut {
        let LeftOutCounts { timed_out, replaced, not_needed } = &self.left_out;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LeftOut { timed_out: read(timed_out), replaced: read(replaced), not_needed: read(not_needed) }
    }

    /// When time alone changes something.
    pub fn due(&self) -> Option<Instant> {
        Some(self.due.load(Ordering::Relaxed)).filter(|due| *due != i64::MAX).map(Instant::from_nanos)
    }

    /// Sets for which no memory was free.
    pub fn lost(&self) -> u64 {
        self.sets.lost.load(Ordering::Relaxed)
    }
}

fn nanoseconds(due: Option<Instant>) -> i64 {
    due.map_or(i64::MAX, Instant::as_nanos)
}

impl Sets {
    fn hand_on(&self, events: &[Event], gone: &mut Vec<Event>, came: Came<'_>) {
        if let [event] = events {
            return came(event.clone(), gone);
        }
        let mut free = self.free.lock();
        free.tidy(|set| {
            if !set.0.is_empty() {
                gone.append(&mut set.0);
            }
            true
        });
        let Some(mut set) = free.loan_first() else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        EventSet::describe(set.header(), events);
        set.content().0.extend_from_slice(events);
        let event = set.done();
        drop(free);
        came(event, gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Collect;
    use crate::event::Header;
    use std::sync::atomic::AtomicUsize;

    /// Who has the state answers whoever finds it taken; and nobody else has it.
    #[test]
    fn of_what_several_offer_at_once_nothing_is_left_behind() {
        const SUPPLIERS: usize = 3;
        const TIMES: usize = if cfg!(miri) { 20 } else { 5_000 };
        let types = ["Test/Tick"].map(|pattern| pattern.parse().expect("a pattern"));
        let grouped = Grouped::new(Condition::all(Collect::Latest, [Condition::of_types(types)]), 4);
        let (taken, came) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let event = Event::new(Header::new(EventType::new("Test", "Tick")), 0_u64);
        let offer = || {
            let mut count = |_, _: &mut Vec<Event>| _ = came.fetch_add(1, Ordering::Relaxed);
            for _ in 0..TIMES {
                let has_room = grouped.offer(&event, Instant::ZERO, &mut count);
                taken.fetch_add(usize::from(has_room), Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            (0..SUPPLIERS).for_each(|_| _ = scope.spawn(offer));
            for _ in 0..TIMES {
                grouped.tidy();
                assert_eq!(grouped.lost(), 0);
            }
        });
        assert_eq!(came.into_inner(), taken.into_inner());
    }
}
