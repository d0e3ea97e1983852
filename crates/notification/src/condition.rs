//! Conditions as they are fed: what is kept of events until a [`Condition`] comes true.
//!
//! Everything is decided when events come and when time passes, by whoever has them at that moment; memory is made beforehand.

use crate::event::{Content, Event, EventType, Header};
use crate::filter::Filter;
use crate::pattern::Types;
use std::sync::Arc;
pub use talea_event::Collect;
use talea_time::{Duration, Instant};

/// What is to come true, by filters of events.
pub type Condition = talea_event::Condition<Arc<Filter>>;

/// What an event is that alone comes true.
#[derive(Clone)]
enum OfOneEvent {
    Types(Types),
    Source(u32),
    Masked { mask: u32, value: u32 },
    Matching(Arc<Filter>),
    All(Box<[OfOneEvent]>),
    Not(Box<OfOneEvent>),
}

/// Content of the events by which time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeCame;

impl Content for TimeCame {}

impl TimeCame {
    /// The domain of its events.
    pub(crate) const DOMAIN: &str = "%TIME";
}

/// Content of an event that stands for several.
#[derive(Debug, Default)]
pub(crate) struct EventSet(pub Vec<Event>);

impl Content for EventSet {}

impl EventSet {
    /// The domain of its events.
    pub(crate) const DOMAIN: &str = "%SET";

    /// What the header of an event says that stands for these.
    pub(crate) fn describe(header: &mut Header, events: &[Event]) {
        let headers = || events.iter().map(Event::header);
        header.priority = headers().filter_map(|header| header.priority).max();
        header.timeout = headers().filter_map(|header| header.timeout).min();
        header.stop = headers().filter_map(|header| header.stop).min();
    }
}

/// The event by which time is told.
fn tick() -> Event {
    Event::new(Header::new(EventType::new(TimeCame::DOMAIN, "")), TimeCame)
}

impl OfOneEvent {
    /// What a condition about one event says.
    fn of(condition: &Condition) -> Self {
        match condition {
            Condition::Types(types) => OfOneEvent::Types(Types::of(types.iter().cloned())),
            Condition::Source(source) => OfOneEvent::Source(*source),
            Condition::Masked { mask, value } => OfOneEvent::Masked { mask: *mask, value: *value },
            Condition::Matching(filter) => OfOneEvent::Matching(Arc::clone(filter)),
            Condition::AllOfOne(parts) => OfOneEvent::All(parts.iter().map(OfOneEvent::of).collect()),
            Condition::Not(part) => OfOneEvent::Not(Box::new(OfOneEvent::of(part))),
            _ => unreachable!("a condition of several events or of time is no part of one about one event"),
        }
    }

    /// Whether it comes true with this event.
    fn matches(&self, event: &Event, now: Instant) -> bool {
        match self {
            OfOneEvent::Types(types) => types.have(event.event_type()),
            OfOneEvent::Source(source) => event.header().source == *source,
            OfOneEvent::Masked { mask, value } => event.header().source & mask == *value,
            OfOneEvent::Matching(filter) => filter.judge(event, now).matches,
            OfOneEvent::All(parts) => parts.iter().all(|part| part.matches(event, now)),
            OfOneEvent::Not(part) => !part.matches(event, now),
        }
    }
}

/// The parts of a condition that are about one event.
pub(crate) struct Leaves(Box<[OfOneEvent]>);

impl Leaves {
    pub fn of(condition: &Condition) -> Self {
        Leaves(condition.leaves().into_iter().map(|leaf| OfOneEvent::of(leaf.condition)).collect())
    }

    /// Whether an event can have anything to do with the condition.
    pub fn concern(&self, event: &Event, now: Instant) -> bool {
        self.0.iter().any(|leaf| leaf.matches(event, now))
    }
}

/// What became of events that a condition took in and did not come true with. An event that two parts of it have counts in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// They were kept until the time of their conjunction or sequence was over.
    pub timed_out: u64,
    /// They were kept until a later one took their place ([`Collect::Latest`]).
    pub replaced: u64,
    /// Nothing waited for them: there was one already, or its turn had not come, or another part came true, or they kept an
    /// [`Condition::Unless`] from coming true.
    pub not_needed: u64,
}

/// How many of them are events that came, not times that came.
fn events_among(all: &[Event]) -> u64 {
    all.iter().filter(|event| event.event_type().domain() != TimeCame::DOMAIN).count() as u64
}

/// What is behind `length` is gone, and counted.
fn drop_from(all: &mut Vec<Event>, length: usize, count: &mut u64, gone: &mut Vec<Event>) {
    *count += events_among(&all[length..]);
    let_go(all, length, gone);
}

/// What is behind `length` is gone, often nothing.
#[inline]
fn let_go(all: &mut Vec<Event>, length: usize, gone: &mut Vec<Event>) {
    match length {
        _ if all.len() <= length => {}
        0 => gone.append(all),
        _ => gone.extend(all.drain(length..)),
    }
}

/// A condition that is being fed.
pub(crate) struct State {
    root: Part,
    left_out: LeftOut,
    scratch: Vec<Event>,
    tick: Event,
    most: usize,
}

enum Part {
    Event(OfOneEvent),
    Any(Vec<Part>),
    All {
        parts: Vec<Part>,
        had: Vec<Vec<Event>>,
        collect: Collect,
        within: Option<Duration>,
        since: Option<Instant>,
    },
    InOrder {
        parts: Vec<Part>,
        next: usize,
        had: Vec<Event>,
        within: Option<Duration>,
        since: Option<Instant>,
    },
    Times {
        part: Box<Part>,
        count: u32,
        /// How often it has come true, with what.
        times: u32,
        had: Vec<Event>,
        within: Option<Duration>,
        since: Option<Instant>,
    },
    Timer {
        due: Option<Instant>,
        time: Duration,
        is_repeated: bool,
    },
    Unless {
        part: Box<Part>,
        within: Duration,
        due: Option<Instant>,
    },
}

/// What may bring a condition further.
#[derive(Clone, Copy)]
enum Input<'a> {
    Event(&'a Event),
    /// Only time.
    Tick(&'a Event),
}

/// An input on its way through the parts of a condition, and what becomes of it.
struct Feed<'a> {
    input: Input<'a>,
    now: Instant,
    /// Parts that have taken it.
    taken: u64,
    left_out: &'a mut LeftOut,
    gone: &'a mut Vec<Event>,
}

impl State {
    /// That of a condition, from `now` on.
    pub fn begin(condition: &Condition, now: Instant) -> Self {
        let most = condition.events();
        let scratch = Vec::with_capacity(condition.events_in_hand());
        State { root: Part::begin(condition, now), left_out: LeftOut::default(), scratch, tick: tick(), most }
    }

    /// The most events with which it comes true.
    pub fn most(&self) -> usize {
        self.most
    }

    /// An event has come. If it comes true with it, `came` has the events. What it has no more is in `gone`, which
    /// `came` has as well: who calls this has a lock, under which nothing is dropped.
    pub fn offer(
        &mut self,
        event: &Event,
        now: Instant,
        gone: &mut Vec<Event>,
        mut came: impl FnMut(&[Event], &mut Vec<Event>),
    ) {
        self.take_in(event, now, gone, &mut came);
    }

    /// The same; returns how many parts have taken the event.
    fn take_in(
        &mut self,
        event: &Event,
        now: Instant,
        gone: &mut Vec<Event>,
        came: &mut impl FnMut(&[Event], &mut Vec<Event>),
    ) -> u64 {
        self.pass(now, gone, &mut *came);
        let taken = self.feed(Input::Event(event), now, gone, came);
        if taken == 0 {
            self.left_out.not_needed += 1;
        }
        taken
    }

    /// What was left out since this was asked.
    pub fn take_left_out(&mut self) -> LeftOut {
        std::mem::take(&mut self.left_out)
    }

    /// Time has come to this; otherwise as [`Self::offer`].
    pub fn pass(
        &mut self,
        now: Instant,
        gone: &mut Vec<Event>,
        mut came: impl FnMut(&[Event], &mut Vec<Event>),
    ) {
        while self.due().is_some_and(|due| due <= now) {
            let tick = self.tick.clone();
            self.feed(Input::Tick(&tick), now, gone, &mut came);
        }
    }

    /// Returns how many parts have taken it.
    fn feed(
        &mut self,
        input: Input<'_>,
        now: Instant,
        gone: &mut Vec<Event>,
        came: &mut impl FnMut(&[Event], &mut Vec<Event>),
    ) -> u64 {
        // A filter may have panicked.
        let_go(&mut self.scratch, 0, gone);
        let mut feed = Feed { input, now, taken: 0, left_out: &mut self.left_out, gone };
        if self.root.feed(&mut feed, &mut self.scratch) {
            came(&self.scratch, feed.gone);
        }
        let Feed { taken, gone, .. } = feed;
        let_go(&mut self.scratch, 0, gone);
        taken
    }

    /// When time alone changes something.
    pub fn due(&self) -> Option<Instant> {
        self.root.due()
    }
}

impl Part {
    fn begin(condition: &Condition, now: Instant) -> Self {
        let of = |parts: &[Condition]| parts.iter().map(|part| Part::begin(part, now)).collect();
        match condition {
            Condition::Any(parts) => Part::Any(of(parts)),
            Condition::All { parts, collect, within } => Part::All {
                had: parts.iter().map(|part| Vec::with_capacity(part.events())).collect(),
                parts: of(parts),
                collect: *collect,
                within: *within,
                since: None,
            },
            Condition::InOrder { parts, within } => Part::InOrder {
                parts: of(parts),
                next: 0,
                had: Vec::with_capacity(condition.events()),
                within: *within,
                since: None,
            },
            Condition::Times { part, count, within } => Part::Times {
                part: Box::new(Part::begin(part, now)),
                count: *count,
                times: 0,
                had: Vec::with_capacity(condition.events()),
                within: *within,
                since: None,
            },
            Condition::After(time) => {
                Part::Timer { due: Some(now.saturating_add(*time)), time: *time, is_repeated: false }
            }
            Condition::Every(period) => {
                Part::Timer { due: Some(now.saturating_add(*period)), time: *period, is_repeated: true }
            }
            Condition::Unless { part, within } => Part::Unless {
                part: Box::new(Part::begin(part, now)),
                within: *within,
                due: Some(now.saturating_add(*within)),
            },
            of_one_event => Part::Event(OfOneEvent::of(of_one_event)),
        }
    }

    /// Whether it comes true with this; its events are behind what is in `to`.
    fn feed(&mut self, feed: &mut Feed<'_>, to: &mut Vec<Event>) -> bool {
        let Feed { input, now, .. } = *feed;
        match self {
            Part::Event(one) => match input {
                Input::Event(event) if one.matches(event, now) => {
                    feed.taken += 1;
                    to.push(event.clone());
                    true
                }
                _ => false,
            },
            Part::Any(parts) => {
                let mut is_true = false;
                // Each is fed, for it may keep something; the first that comes true is the one.
                for part in parts {
                    let length = to.len();
                    if part.feed(feed, to) {
                        if is_true {
                            drop_from(to, length, &mut feed.left_out.not_needed, feed.gone);
                        }
                        is_true = true;
                    }
                }
                is_true
            }
            Part::All { parts, had, collect, within, since } => {
                if is_over(*since, *within, now) {
                    had.iter_mut().for_each(|had| drop_from(had, 0, &mut feed.left_out.timed_out, feed.gone));
                    *since = None;
                }
                let length = to.len();
                for (part, had) in parts.iter_mut().zip(had.iter_mut()) {
                    // What it has already, it need not look for; only parts of several events keep something.
                    if !had.is_empty() && *collect == Collect::First && matches!(part, Part::Event(_)) {
                        continue;
                    }
                    if part.feed(feed, to) && (had.is_empty() || *collect == Collect::Latest) {
                        drop_from(had, 0, &mut feed.left_out.replaced, feed.gone);
                        had.extend(to.drain(length..));
                        since.get_or_insert(now);
                    }
                    drop_from(to, length, &mut feed.left_out.not_needed, feed.gone);
                }
                let is_true = had.iter().all(|had| !had.is_empty());
                if is_true {
                    had.iter_mut().for_each(|had| to.append(had));
                    *since = None;
                }
                is_true
            }
            Part::InOrder { parts, next, had, within, since } => {
                if is_over(*since, *within, now) {
                    drop_from(had, 0, &mut feed.left_out.timed_out, feed.gone);
                    parts[*next].forget(&mut feed.left_out.timed_out, feed.gone);
                    (*next, *since) = (0, None);
                    parts[0].begin_anew(feed);
                }
                let length = to.len();
                if !parts[*next].feed(feed, to) {
                    return false;
                }
                had.extend(to.drain(length..));
                since.get_or_insert(now);
                *next += 1;
                let is_true = *next == parts.len();
                if is_true {
                    to.append(had);
                    (*next, *since) = (0, None);
                }
                // A part is awaited from when its turn comes.
                parts[*next].begin_anew(feed);
                is_true
            }
            Part::Times { part, count, times, had, within, since } => {
                if is_over(*since, *within, now) {
                    drop_from(had, 0, &mut feed.left_out.timed_out, feed.gone);
                    (*times, *since) = (0, None);
                }
                let length = to.len();
                if !part.feed(feed, to) {
                    return false;
                }
                had.extend(to.drain(length..));
                since.get_or_insert(now);
                *times += 1;
                let is_true = *times == *count;
                if is_true {
                    to.append(had);
                    (*times, *since) = (0, None);
                }
                is_true
            }
            Part::Timer { due, time, is_repeated } => {
                let (Input::Tick(tick), true) = (input, due.is_some_and(|due| due <= now)) else {
                    return false;
                };
                // Of several that are over it tells once.
                *due = due.filter(|_| *is_repeated).map(|due| {
                    let over = (now - due).as_nanos() / time.as_nanos() + 1;
                    Instant::from_nanos(due.as_nanos().saturating_add(over.saturating_mul(time.as_nanos())))
                });
                to.push(tick.clone());
                true
            }
            Part::Unless { part, within, due } => {
                let length = to.len();
                if part.feed(feed, to) {
                    drop_from(to, length, &mut feed.left_out.not_needed, feed.gone);
                    *due = Some(now.saturating_add(*within));
                    return false;
                }
                let (Input::Tick(tick), true) = (input, due.is_some_and(|due| due <= now)) else {
                    return false;
                };
                *due = None;
                to.push(tick.clone());
                true
            }
        }
    }

    /// What has come so far does not count, and time counts from `now` on.
    fn begin_anew(&mut self, feed: &mut Feed<'_>) {
        self.forget(&mut feed.left_out.not_needed, feed.gone);
        self.await_from(feed.now);
    }

    /// Nothing has come; what was kept is counted.
    fn forget(&mut self, count: &mut u64, gone: &mut Vec<Event>) {
        match self {
            Part::Event(_) | Part::Timer { .. } => {}
            Part::Any(parts) => parts.iter_mut().for_each(|part| part.forget(count, gone)),
            Part::All { parts, had, since, .. } => {
                parts.iter_mut().for_each(|part| part.forget(count, gone));
                had.iter_mut().for_each(|had| drop_from(had, 0, count, gone));
                *since = None;
            }
            Part::InOrder { parts, next, had, since, .. } => {
                parts.iter_mut().for_each(|part| part.forget(count, gone));
                drop_from(had, 0, count, gone);
                (*next, *since) = (0, None);
            }
            Part::Times { part, times, had, since, .. } => {
                part.forget(count, gone);
                drop_from(had, 0, count, gone);
                (*times, *since) = (0, None);
            }
            Part::Unless { part, .. } => part.forget(count, gone),
        }
    }

    /// Time counts from `now` on.
    fn await_from(&mut self, now: Instant) {
        match self {
            Part::Event(_) => {}
            Part::Any(parts) | Part::All { parts, .. } => {
                parts.iter_mut().for_each(|part| part.await_from(now))
            }
            Part::InOrder { parts, .. } => parts[0].await_from(now),
            Part::Times { part, .. } => part.await_from(now),
            Part::Timer { due, time, .. } => *due = Some(now.saturating_add(*time)),
            Part::Unless { part, within, due } => {
                part.await_from(now);
                *due = Some(now.saturating_add(*within));
            }
        }
    }

    /// Events that it keeps now.
    #[cfg(test)]
    fn keeps(&self) -> u64 {
        let below = |parts: &[Part]| parts.iter().map(Part::keeps).sum::<u64>();
        match self {
            Part::Event(_) | Part::Timer { .. } => 0,
            Part::Any(parts) => below(parts),
            Part::All { parts, had, .. } => {
                below(parts) + had.iter().map(|had| events_among(had)).sum::<u64>()
            }
            Part::InOrder { parts, had, .. } => below(parts) + events_among(had),
            Part::Times { part, had, .. } => part.keeps() + events_among(had),
            Part::Unless { part, .. } => part.keeps(),
        }
    }

    /// Whether time alone may make it come true.
    fn is_timed(&self) -> bool {
        match self {
            Part::Event(_) => false,
            Part::Any(parts) | Part::InOrder { parts, .. } => parts.iter().any(Part::is_timed),
            Part::All { parts, .. } => parts.iter().any(Part::is_timed),
            Part::Times { part, .. } => part.is_timed(),
            Part::Timer { .. } | Part::Unless { .. } => true,
        }
    }

    fn due(&self) -> Option<Instant> {
        let first = |parts: &[Part]| parts.iter().filter_map(Part::due).min();
        match self {
            Part::Event(_) => None,
            Part::Any(parts) | Part::All { parts, .. } => first(parts),
            Part::Times { part, .. } => part.due(),
            // Only what comes next is fed, and what is due of others would be due for ever. A first part that waits for time does so from when the
            // sequence begins anew.
            Part::InOrder { parts, next, within, since, .. } => {
                let over = since.zip(*within).filter(|_| parts[0].is_timed());
                let over = over.map(|(since, within)| since.saturating_add(within).saturating_add(INSTANT));
                parts[*next].due().into_iter().chain(over).min()
            }
            Part::Timer { due, .. } => *due,
            Part::Unless { part, due, .. } => part.due().into_iter().chain(*due).min(),
        }
    }
}

/// The shortest time.
const INSTANT: Duration = Duration::from_nanos(1);

/// Whether what began then is over.
fn is_over(since: Option<Instant>, within: Option<Duration>, now: Instant) -> bool {
    since.zip(within).is_some_and(|(since, within)| now - since > within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talea_event::TypePattern;

    struct Nothing;
    impl Content for Nothing {}

    fn event(name: &str) -> Event {
        Event::new(Header::new(EventType::new("Test", name)), Nothing)
    }

    fn of(name: &str) -> Condition {
        Condition::of_types([TypePattern::new("Test", name).expect("a pattern")])
    }

    fn at(ms: i64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// What comes of events at these milliseconds: the names of those that are handed on together, `%` for time.
    fn fed(condition: &Condition, steps: &[(i64, &str)]) -> Vec<String> {
        assert_eq!(condition.problem(), None);
        let (mut state, mut all) = (State::begin(condition, Instant::ZERO), Vec::new());
        for (ms, name) in steps {
            let mut came = |events: &[Event], _: &mut Vec<Event>| {
                let names = events.iter().map(|event| match event.event_type().domain() {
                    "%TIME" => "%",
                    _ => event.event_type().name(),
                });
                all.push(format!("{ms}: {}", names.collect::<Vec<_>>().join(" ")));
            };
            match *name {
                "" => state.pass(at(*ms), &mut Vec::new(), &mut came),
                name => state.offer(&event(name), at(*ms), &mut Vec::new(), &mut came),
            }
        }
        all
    }

    #[test]
    fn conjunctions_collect_the_first_or_the_latest_of_each() {
        let steps = [(1, "a"), (2, "a"), (3, "c"), (4, "b"), (5, "b"), (6, "a")];
        for collect in [Collect::First, Collect::Latest] {
            let all = Condition::all(collect, [of("b"), of("a")]);
            assert_eq!(fed(&all, &steps), ["4: b a", "6: b a"]);
        }
        // Which one it is, not only of which type: instances tell.
        let (one, two, b) = (event("a"), event("a"), event("b"));
        for (collect, expected) in [(Collect::First, &one), (Collect::Latest, &two)] {
            let both = Condition::all(collect, [of("a"), of("b")]);
            let mut state = State::begin(&both, Instant::ZERO);
            let mut had = Vec::new();
            [&one, &two, &b].into_iter().for_each(|event| {
                state.offer(event, at(1), &mut Vec::new(), |events, _| had.extend_from_slice(events))
            });
            assert!(std::ptr::eq(had[0].header(), expected.header()) && had.len() == 2);
        }
    }

    #[test]
    fn a_count_comes_true_with_all_that_it_has_counted() {
        let three = Condition::times(3, of("a"));
        let steps = [(1, "a"), (2, "b"), (3, "a"), (4, "a"), (5, "a"), (6, "a"), (30, "a")];
        assert_eq!(fed(&three, &steps), ["4: a a a", "30: a a a"]);
        let within = three.clone().within(Duration::from_millis(10));
        assert_eq!(fed(&within, &steps), ["4: a a a"]);
        assert_eq!(left_out(&within, &steps), [2, 0, 1], "those of 5 and 6, and b");
        // Counted may be what is made of several events; and what is counted may be a part.
        let pairs = Condition::times(2, Condition::in_order([of("a"), of("b")]));
        assert_eq!(fed(&pairs, &[(1, "a"), (2, "b"), (3, "b"), (4, "a"), (5, "b")]), ["5: a b a b"]);
        let both = Condition::all(Collect::First, [Condition::times(2, of("a")), of("b")]);
        assert_eq!(
            fed(&both, &[(1, "b"), (2, "a"), (3, "a"), (4, "a"), (5, "b"), (6, "a")]),
            ["3: a a b", "6: a a b"]
        );
        let ticks = Condition::times(2, Condition::every(Duration::from_millis(4)));
        assert_eq!(fed(&ticks, &[(4, ""), (8, ""), (12, ""), (17, "")]), ["8: % %", "17: % %"]);
        assert!(Condition::times(1, of("a")).problem().is_some());
        assert!(Condition::times(256, of("a")).problem().is_none());
        assert!(Condition::times(257, of("a")).problem().is_some());
        assert!(Condition::times(20, Condition::times(20, of("a"))).problem().is_some());
        let together =
            |count| Condition::in_order([Condition::times(200, of("a")), Condition::times(count, of("b"))]);
        assert!(together(56).problem().is_none());
        assert!(together(57).problem().is_some());
        assert!(Condition::negation(Condition::times(2, of("a"))).problem().is_some());
    }

    #[test]
    fn what_takes_too_long_begins_anew() {
        let within = Duration::from_millis(5);
        let all = Condition::all(Collect::First, [of("a"), of("b")]).within(within);
        assert_eq!(fed(&all, &[(1, "a"), (7, "b"), (8, "a"), (20, "a"), (25, "b")]), ["8: a b", "25: a b"]);
        let order = Condition::in_order([of("a"), of("b")]).within(within);
        assert_eq!(fed(&order, &[(1, "a"), (7, "b"), (8, "a"), (13, "b")]), ["13: a b"]);
    }

    /// What is left out of events at these milliseconds: what timed out, what was replaced, what nothing waited for.
    fn left_out(condition: &Condition, steps: &[(i64, &str)]) -> [u64; 3] {
        let mut state = State::begin(condition, Instant::ZERO);
        for (ms, name) in steps {
            match *name {
                "" => state.pass(at(*ms), &mut Vec::new(), |_, _| ()),
                name => state.offer(&event(name), at(*ms), &mut Vec::new(), |_, _| ()),
            }
        }
        let LeftOut { timed_out, replaced, not_needed } = state.take_left_out();
        assert_eq!(state.take_left_out(), LeftOut::default());
        [timed_out, replaced, not_needed]
    }

    #[test]
    fn what_is_left_out_is_counted_by_cause() {
        let ms = Duration::from_millis;
        let steps = [(1, "a"), (2, "a"), (3, "c"), (4, "b"), (5, "b"), (6, "a")];
        let pair = |collect| Condition::all(collect, [of("b"), of("a")]);
        assert_eq!(left_out(&pair(Collect::First), &steps), [0, 0, 2], "the second a, and c");
        assert_eq!(left_out(&pair(Collect::Latest), &steps), [0, 1, 1]);
        let within = pair(Collect::First).within(ms(5));
        assert_eq!(left_out(&within, &[(1, "a"), (7, "b"), (8, "a"), (20, "a"), (30, "a")]), [2, 0, 0]);
        let order = Condition::in_order([of("a"), of("b"), of("c")]).within(ms(5));
        assert_eq!(left_out(&order, &[(1, "b"), (2, "a"), (3, "b"), (9, "c"), (10, "a")]), [2, 0, 2]);
        let late = Condition::unless_within(ms(5), of("a"));
        assert_eq!(left_out(&late, &[(4, "a"), (9, ""), (10, "b")]), [0, 0, 2]);
        // One that two have, of which one comes true.
        let either = Condition::any([of("a"), Condition::in_order([of("a"), of("b")])]);
        assert_eq!(left_out(&either, &[(1, "a")]), [0, 0, 0]);
        assert_eq!(
            left_out(&either, &[(1, "a"), (2, "a"), (3, "b")]),
            [0, 0, 0],
            "the second a came true alone"
        );
        // A sequence in a sequence that is over in its midst.
        let inner = Condition::in_order([of("b"), of("c")]);
        let nested = Condition::in_order([of("a"), inner]).within(ms(5));
        assert_eq!(left_out(&nested, &[(1, "a"), (2, "b"), (9, "a")]), [2, 0, 0]);
    }

    #[test]
    fn sequences_go_by_order() {
        let order = Condition::in_order([of("a"), of("b"), of("a")]);
        assert_eq!(
            fed(&order, &[(1, "b"), (2, "a"), (3, "a"), (4, "b"), (5, "b"), (6, "a"), (7, "a")]),
            ["6: a b a"]
        );
    }

    #[test]
    fn conditions_of_one_event_combine() {
        let arm = |source| {
            let mut header = Header::new(EventType::new("Test", "arm"));
            header.source = source;
            Event::new(header, Nothing)
        };
        let matches = |condition: &Condition, event: &Event| {
            let mut is_true = false;
            State::begin(condition, Instant::ZERO)
                .offer(event, at(1), &mut Vec::new(), |_, _| is_true = true);
            assert_eq!(is_true, Leaves::of(condition).concern(event, at(1)));
            is_true
        };
        let both = Condition::all_of_one([of("arm"), Condition::masked(0b110, 0b100)]);
        assert!(
            matches(&both, &arm(0b101)) && !matches(&both, &arm(0b111)) && !matches(&both, &event("leg"))
        );
        let not = Condition::negation(Condition::from_source(3));
        assert!(
            matches(&not, &arm(4)) && !matches(&not, &arm(3)) && matches(&Condition::anything(), &arm(0))
        );
        let any = Condition::any([Condition::from_source(3), of("leg")]);
        assert!(matches(&any, &arm(3)) && matches(&any, &event("leg")) && !matches(&any, &arm(2)));
    }

    #[test]
    fn time_makes_things_true() {
        let ms = Duration::from_millis;
        let steps = [(4, ""), (10, ""), (25, ""), (30, "")];
        assert_eq!(fed(&Condition::after(ms(5)), &steps), ["10: %"]);
        assert_eq!(fed(&Condition::every(ms(10)), &steps), ["10: %", "25: %", "30: %"]);
        let late = Condition::unless_within(ms(5), of("a"));
        let steps = [(4, "a"), (8, ""), (9, ""), (30, ""), (31, "a"), (36, "b"), (37, "a")];
        assert_eq!(fed(&late, &steps), ["9: %", "36: %"]);
        // The usual one: an event of any of several types, or nothing for too long.
        let watch = Condition::any([of("a"), Condition::unless_within(ms(5), of("a"))]);
        assert_eq!(fed(&watch, &[(1, "a"), (6, ""), (7, "a"), (20, "")]), ["1: a", "6: %", "7: a", "20: %"]);
        let timed = Condition::all(Collect::Latest, [of("a"), Condition::every(ms(10))]);
        assert_eq!(fed(&timed, &[(1, "a"), (2, "a"), (10, ""), (20, ""), (21, "a")]), ["10: a %", "21: a %"]);
    }

    /// All parts of a disjunction may come true with one event.
    #[test]
    fn there_is_memory_for_all_that_comes_true_at_once() {
        let both = || Condition::all(Collect::First, [of("a"), of("b")]);
        let nested =
            Condition::any([both(), Condition::any([both(), Condition::in_order([of("a"), of("b")])])]);
        assert_eq!((nested.events(), nested.events_in_hand(), nested.kept_events()), (2, 6, 6));
        let mut state = State::begin(&nested, Instant::ZERO);
        let memory = (state.scratch.capacity(), state.scratch.as_ptr());
        let mut came = Vec::new();
        for name in ["a", "b"] {
            state.offer(&event(name), at(1), &mut Vec::new(), |events, _| came.push(events.len()));
        }
        assert_eq!(came, [2]);
        assert_eq!((state.scratch.capacity(), state.scratch.as_ptr()), memory);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let conjunction = Condition::all(Collect::First, [of("a"), of("b")]);
        assert!(Condition::negation(conjunction.clone()).problem().is_some());
        assert!(Condition::any([Condition::all_of_one([conjunction])]).problem().is_some());
        assert!(Condition::all(Collect::First, []).problem().is_some());
        assert!(Condition::any([Condition::every(Duration::ZERO)]).problem().is_some());
        assert!(Condition::negation(of("a")).within(Duration::from_millis(1)).problem().is_some());
        assert!(of("a").within(Duration::from_millis(1)).problem().is_some());
        assert!(Condition::in_order([of("a")]).within(Duration::ZERO).problem().is_some());
    }

    /// Any condition over events `a` to `c` and time.
    fn conditions() -> impl Strategy<Value = Condition> {
        let ms = Duration::from_millis;
        let leaf = prop_oneof![
            6 => (0usize..3).prop_map(|name| of(["a", "b", "c"][name])),
            1 => (1i64..6).prop_map(move |time| Condition::after(ms(time))),
            1 => (1i64..6).prop_map(move |time| Condition::every(ms(time))),
        ];
        leaf.prop_recursive(3, 12, 3, move |inner| {
            let parts = prop::collection::vec(inner.clone(), 1..4);
            let within = prop::option::of(1i64..9);
            let timed = move |condition: Condition, within: Option<i64>| match within {
                Some(time) => condition.within(ms(time)),
                None => condition,
            };
            prop_oneof![
                parts.clone().prop_map(Condition::any),
                (parts.clone(), any::<bool>(), within.clone()).prop_map(move |(parts, latest, within)| {
                    let collect = if latest { Collect::Latest } else { Collect::First };
                    timed(Condition::all(collect, parts), within)
                }),
                (parts, within).prop_map(move |(parts, within)| timed(Condition::in_order(parts), within)),
                (inner, 1i64..6).prop_map(move |(part, time)| Condition::unless_within(ms(time), part)),
            ]
        })
    }

    proptest! {
        /// Whatever parts have taken in has come to the consumer, or is kept still, or is counted; and what no part has taken is counted, too.
        #[test]
        fn every_event_is_accounted_for(
            condition in conditions(),
            steps in prop::collection::vec((0i64..4, 0usize..5), 0..60),
        ) {
            prop_assume!(condition.problem().is_none());
            let mut state = State::begin(&condition, Instant::ZERO);
            let (mut now, mut expected, mut came) = (0, 0, 0);
            let events = ["a", "b", "c", "d"].map(event);
            for (later, which) in steps {
                now += later;
                let mut come = |all: &[Event], _: &mut Vec<Event>| came += events_among(all);
                match events.get(which) {
                    Some(event) => expected += state.take_in(event, at(now), &mut Vec::new(), &mut come).max(1),
                    None => state.pass(at(now), &mut Vec::new(), come),
                }
            }
            let LeftOut { timed_out, replaced, not_needed } = state.take_left_out();
            let accounted = came + timed_out + replaced + not_needed + state.root.keeps();
            prop_assert_eq!(accounted, expected, "{:?}, {} came", state.root.keeps(), came);
        }

        /// A conjunction of parts that share no event comes true as often as its rarest part at most, and with each part once.
        #[test]
        fn a_conjunction_is_complete_each_time(names in prop::collection::vec(0usize..4, 0..60), latest in any::<bool>()) {
            let all = ["a", "b", "c"];
            let collect = if latest { Collect::Latest } else { Collect::First };
            let mut state = State::begin(&Condition::all(collect, all.map(of)), Instant::ZERO);
            let (mut had, mut came) = ([false; 3], 0);
            for name in names {
                let event = event(["a", "b", "c", "d"][name]);
                let mut now = None;
                state.offer(&event, at(1), &mut Vec::new(), |events, _| now = Some(events.iter().map(|event| event.event_type().name().to_owned()).collect::<Vec<_>>()));
                if name < 3 {
                    had[name] = true;
                }
                let is_complete = had.iter().all(|had| *had);
                prop_assert_eq!(now, is_complete.then(|| all.map(str::to_owned).to_vec()));
                if is_complete {
                    had = [false; 3];
                    came += 1;
                }
            }
            prop_assert!(came <= 20);
        }
    }
}
