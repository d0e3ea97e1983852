//! Conditions over several events and over time: the filters of the real-time event channel (Harrison, Levine and Schmidt 1997), freely nested.
//!
//! A condition is fed with events and with time, and now and then comes true; the events of which it came true are handed on together, in one call.
//!
//! | Condition | Comes true |
//! |---|---|
//! | [`of_types`](Condition::of_types), [`from_source`](Condition::from_source), [`masked`](Condition::masked), [`matching`](Condition::matching), [`anything`](Condition::anything) | with an event that is such a one |
//! | [`all_of_one`](Condition::all_of_one) | with an event of which all parts come true (logical and) |
//! | [`negation`](Condition::negation) | with an event of which its part does not |
//! | [`any`](Condition::any) | when one of its parts does (disjunction) |
//! | [`all`](Condition::all) | when each part has come true since it came true last (conjunction) |
//! | [`in_order`](Condition::in_order) | when its parts have come true one after the other (sequence) |
//! | [`after`](Condition::after), [`every`](Condition::every) | once, or again and again, after a time |
//! | [`unless_within`](Condition::unless_within) | when its part has not come true for a time, which begins anew each time that it does (deadline) |
//!
//! Everything is decided when events come and when time passes, by whoever has them at that moment; memory is made beforehand.

use crate::event::{Content, Event, EventType, Header};
use crate::filter::Filter;
use crate::pattern::Types;
use std::sync::Arc;
use talea_event::TypePattern;
use talea_time::{Duration, Instant};

/// Which event of a part counts until a conjunction is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// The first; others are left out, as in the original.
    #[default]
    First,
    /// The latest.
    Latest,
}

/// What is to come true.
#[derive(Clone, Debug)]
pub struct Condition(Node);

#[derive(Clone, Debug)]
enum Node {
    Types(Types),
    Source(u32),
    Masked {
        mask: u32,
        value: u32,
    },
    Matching(Arc<Filter>),
    Anything,
    AllOfOne(Vec<Node>),
    Not(Box<Node>),
    Any(Vec<Node>),
    All {
        parts: Vec<Node>,
        collect: Collect,
        within: Option<Duration>,
    },
    InOrder {
        parts: Vec<Node>,
        within: Option<Duration>,
    },
    After(Duration),
    Every(Duration),
    Unless {
        part: Box<Node>,
        within: Duration,
    },
    /// What has no time, and somebody has limited it.
    Limited,
}

/// Content of the events by which time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeCame;

impl Content for TimeCame {}

/// Content of an event that stands for several.
#[derive(Debug, Default)]
pub(crate) struct EventSet(pub Vec<Event>);

impl Content for EventSet {}

fn nodes(parts: impl IntoIterator<Item = Condition>) -> Vec<Node> {
    parts.into_iter().map(|part| part.0).collect()
}

impl Condition {
    /// Events of any of these types.
    pub fn of_types(types: impl IntoIterator<Item = TypePattern>) -> Self {
        Condition(Node::Types(Types::of(types)))
    }

    /// Events from this source.
    pub fn from_source(source: u32) -> Self {
        Condition(Node::Source(source))
    }

    /// Events whose source is `value` in the bits of `mask`.
    pub fn masked(mask: u32, value: u32) -> Self {
        Condition(Node::Masked { mask, value })
    }

    /// Events that the filter matches.
    pub fn matching(filter: Filter) -> Self {
        Condition(Node::Matching(Arc::new(filter)))
    }

    /// All events (null).
    pub fn anything() -> Self {
        Condition(Node::Anything)
    }

    /// An event of which all parts come true at once.
    pub fn all_of_one(parts: impl IntoIterator<Item = Condition>) -> Self {
        Condition(Node::AllOfOne(nodes(parts)))
    }

    /// Events with which the part does not come true.
    pub fn negation(part: Condition) -> Self {
        Condition(Node::Not(Box::new(part.0)))
    }

    /// One of the parts, the first that comes true with an event.
    pub fn any(parts: impl IntoIterator<Item = Condition>) -> Self {
        Condition(Node::Any(nodes(parts)))
    }

    /// All parts, in whichever order; their events are handed on in the order of the parts.
    pub fn all(collect: Collect, parts: impl IntoIterator<Item = Condition>) -> Self {
        Condition(Node::All { parts: nodes(parts), collect, within: None })
    }

    /// All parts, one after the other. What is not what comes next is left out.
    pub fn in_order(parts: impl IntoIterator<Item = Condition>) -> Self {
        Condition(Node::InOrder { parts: nodes(parts), within: None })
    }

    /// Of [`all`](Self::all) and [`in_order`](Self::in_order): what is not complete so long after it began begins anew. Others are refused when the
    /// consumer is connected.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        match &mut self.0 {
            Node::All { within, .. } | Node::InOrder { within, .. } => *within = Some(time),
            _ => self.0 = Node::Limited,
        }
        self
    }

    /// Once, so long after the consumer was connected.
    pub fn after(time: Duration) -> Self {
        Condition(Node::After(time))
    }

    /// Every so often, from the time at which the consumer was connected.
    pub fn every(period: Duration) -> Self {
        Condition(Node::Every(period))
    }

    /// When the part has not come true for so long: since then, or since the consumer was connected. Once, until the part comes true again.
    pub fn unless_within(time: Duration, part: Condition) -> Self {
        Condition(Node::Unless { part: Box::new(part.0), within: time })
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        self.0.problem()
    }

    /// Whether an event can have anything to do with it.
    pub(crate) fn concerns(&self, event: &Event, now: Instant) -> bool {
        self.0.concerns(event, now)
    }

    /// Its state, from `now` on.
    pub(crate) fn begin(&self, now: Instant) -> State {
        let most = self.0.events();
        State { root: self.0.begin(now), scratch: Vec::with_capacity(most), tick: tick(), most }
    }
}

/// The event by which time is told.
fn tick() -> Event {
    Event::new(Header::new(EventType::new("%TIME", "")), TimeCame)
}

impl Node {
    fn problem(&self) -> Option<&'static str> {
        let is_empty = |parts: &[Node]| parts.is_empty().then_some("a condition of several parts has none");
        let is_no_time = |time: &Duration| (*time <= Duration::ZERO).then_some("a time is more than 0");
        let (own, parts): (_, &[Node]) = match self {
            Node::Types(_) | Node::Source(_) | Node::Masked { .. } | Node::Matching(_) | Node::Anything => {
                (None, &[])
            }
            Node::AllOfOne(parts) => (is_empty(parts).or_else(|| Node::not_of_one_event(parts)), parts),
            Node::Not(part) => {
                let part = std::slice::from_ref(part.as_ref());
                (Node::not_of_one_event(part), part)
            }
            Node::Any(parts) => (is_empty(parts), parts),
            Node::All { parts, within, .. } | Node::InOrder { parts, within } => {
                (is_empty(parts).or_else(|| within.as_ref().and_then(is_no_time)), parts)
            }
            Node::After(time) | Node::Every(time) => (is_no_time(time), &[]),
            Node::Unless { part, within } => (is_no_time(within), std::slice::from_ref(part.as_ref())),
            Node::Limited => {
                (Some("within is of all and in_order, which are complete some time after they begin"), &[])
            }
        };
        own.or_else(|| parts.iter().find_map(Node::problem))
    }

    fn not_of_one_event(parts: &[Node]) -> Option<&'static str> {
        let is_it = parts.iter().any(|part| !part.is_of_one_event());
        is_it.then_some(
            "all_of_one and negation are about one event: they have no conditions of several events or of time as parts",
        )
    }

    fn is_of_one_event(&self) -> bool {
        match self {
            Node::Types(_) | Node::Source(_) | Node::Masked { .. } | Node::Matching(_) | Node::Anything => {
                true
            }
            Node::AllOfOne(parts) => parts.iter().all(Node::is_of_one_event),
            Node::Not(part) => part.is_of_one_event(),
            _ => false,
        }
    }

    /// Whether it comes true with this event alone; of conditions of one event.
    fn matches(&self, event: &Event, now: Instant) -> bool {
        match self {
            Node::Types(types) => types.have(event.event_type()),
            Node::Source(source) => event.header().source == *source,
            Node::Masked { mask, value } => event.header().source & mask == *value,
            Node::Matching(filter) => filter.judge(event, now).matches,
            Node::Anything => true,
            Node::AllOfOne(parts) => parts.iter().all(|part| part.matches(event, now)),
            Node::Not(part) => !part.matches(event, now),
            _ => false,
        }
    }

    fn concerns(&self, event: &Event, now: Instant) -> bool {
        match self {
            Node::Any(parts) | Node::All { parts, .. } | Node::InOrder { parts, .. } => {
                parts.iter().any(|part| part.concerns(event, now))
            }
            Node::Unless { part, .. } => part.concerns(event, now),
            of_one_event => of_one_event.matches(event, now),
        }
    }

    /// The most events with which it comes true.
    fn events(&self) -> usize {
        match self {
            Node::Any(parts) => parts.iter().map(Node::events).max().unwrap_or(0),
            Node::All { parts, .. } | Node::InOrder { parts, .. } => parts.iter().map(Node::events).sum(),
            Node::Unless { part, .. } => part.events().max(1),
            _ => 1,
        }
    }

    fn begin(&self, now: Instant) -> Part {
        let of = |parts: &[Node]| parts.iter().map(|part| part.begin(now)).collect();
        match self {
            Node::Any(parts) => Part::Any(of(parts)),
            Node::All { parts, collect, within } => Part::All {
                had: parts.iter().map(|part| Vec::with_capacity(part.events())).collect(),
                parts: of(parts),
                collect: *collect,
                within: *within,
                since: None,
            },
            Node::InOrder { parts, within } => Part::InOrder {
                parts: of(parts),
                next: 0,
                had: Vec::with_capacity(self.events()),
                within: *within,
                since: None,
            },
            Node::After(time) => Part::Timer { due: Some(now.saturating_add(*time)), period: None },
            Node::Every(period) => {
                Part::Timer { due: Some(now.saturating_add(*period)), period: Some(*period) }
            }
            Node::Unless { part, within } => Part::Unless {
                part: Box::new(part.begin(now)),
                within: *within,
                due: Some(now.saturating_add(*within)),
            },
            of_one_event => Part::Event(of_one_event.clone()),
        }
    }
}

/// A condition that is being fed.
pub(crate) struct State {
    root: Part,
    scratch: Vec<Event>,
    tick: Event,
    most: usize,
}

enum Part {
    Event(Node),
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
    Timer {
        due: Option<Instant>,
        period: Option<Duration>,
    },
    Unless {
        part: Box<Part>,
        within: Duration,
        due: Option<Instant>,
    },
}

/// With what a condition is fed.
#[derive(Clone, Copy)]
enum Food<'a> {
    Event(&'a Event),
    /// Only time.
    Tick(&'a Event),
}

impl State {
    /// The most events with which it comes true.
    pub fn most(&self) -> usize {
        self.most
    }

    /// An event has come. If it comes true with it, `came` has the events.
    pub fn offer(&mut self, event: &Event, now: Instant, mut came: impl FnMut(&[Event])) {
        self.pass(now, &mut came);
        self.feed(Food::Event(event), now, &mut came);
    }

    /// Time has come to this.
    pub fn pass(&mut self, now: Instant, mut came: impl FnMut(&[Event])) {
        while self.due().is_some_and(|due| due <= now) {
            let tick = self.tick.clone();
            self.feed(Food::Tick(&tick), now, &mut came);
        }
    }

    fn feed(&mut self, food: Food<'_>, now: Instant, came: &mut impl FnMut(&[Event])) {
        self.scratch.clear();
        if self.root.feed(food, now, &mut self.scratch) {
            came(&self.scratch);
        }
        self.scratch.clear();
    }

    /// When time alone changes something.
    pub fn due(&self) -> Option<Instant> {
        self.root.due()
    }
}

impl Part {
    /// Whether it comes true with this; its events are behind what is in `to`.
    fn feed(&mut self, food: Food<'_>, now: Instant, to: &mut Vec<Event>) -> bool {
        match self {
            Part::Event(node) => match food {
                Food::Event(event) if node.matches(event, now) => {
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
                    if part.feed(food, now, to) {
                        if is_true {
                            to.truncate(length);
                        }
                        is_true = true;
                    }
                }
                is_true
            }
            Part::All { parts, had, collect, within, since } => {
                if is_over(*since, *within, now) {
                    had.iter_mut().for_each(Vec::clear);
                    *since = None;
                }
                let length = to.len();
                for (part, had) in parts.iter_mut().zip(had.iter_mut()) {
                    // What it has already, it need not look for; only parts of several events keep something.
                    if !had.is_empty() && *collect == Collect::First && matches!(part, Part::Event(_)) {
                        continue;
                    }
                    if part.feed(food, now, to) && (had.is_empty() || *collect == Collect::Latest) {
                        had.clear();
                        had.extend(to.drain(length..));
                        since.get_or_insert(now);
                    }
                    to.truncate(length);
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
                    had.clear();
                    (*next, *since) = (0, None);
                }
                let length = to.len();
                if !parts[*next].feed(food, now, to) {
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
                is_true
            }
            Part::Timer { due, period } => {
                let (Food::Tick(tick), true) = (food, due.is_some_and(|due| due <= now)) else {
                    return false;
                };
                // Of several that are over it tells once.
                *due = due.zip(*period).map(|(due, period)| {
                    let over = (now - due).as_nanos() / period.as_nanos() + 1;
                    Instant::from_nanos(due.as_nanos().saturating_add(over.saturating_mul(period.as_nanos())))
                });
                to.push(tick.clone());
                true
            }
            Part::Unless { part, within, due } => {
                let length = to.len();
                if part.feed(food, now, to) {
                    to.truncate(length);
                    *due = Some(now.saturating_add(*within));
                    return false;
                }
                let (Food::Tick(tick), true) = (food, due.is_some_and(|due| due <= now)) else {
                    return false;
                };
                *due = None;
                to.push(tick.clone());
                true
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        let first = |parts: &[Part]| parts.iter().filter_map(Part::due).min();
        match self {
            Part::Event(_) => None,
            Part::Any(parts) | Part::All { parts, .. } => first(parts),
            // Only what comes next is fed, and what is due of others would be due for ever.
            Part::InOrder { parts, next, .. } => parts[*next].due(),
            Part::Timer { due, .. } => *due,
            Part::Unless { part, due, .. } => part.due().into_iter().chain(*due).min(),
        }
    }
}

/// Whether what began then is over.
fn is_over(since: Option<Instant>, within: Option<Duration>, now: Instant) -> bool {
    since.zip(within).is_some_and(|(since, within)| now - since > within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let (mut state, mut all) = (condition.begin(Instant::ZERO), Vec::new());
        for (ms, name) in steps {
            let mut came = |events: &[Event]| {
                let names = events.iter().map(|event| match event.event_type().domain() {
                    "%TIME" => "%",
                    _ => event.event_type().name(),
                });
                all.push(format!("{ms}: {}", names.collect::<Vec<_>>().join(" ")));
            };
            match *name {
                "" => state.pass(at(*ms), &mut came),
                name => state.offer(&event(name), at(*ms), &mut came),
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
            let mut state = Condition::all(collect, [of("a"), of("b")]).begin(Instant::ZERO);
            let mut had = Vec::new();
            [&one, &two, &b]
                .into_iter()
                .for_each(|event| state.offer(event, at(1), |events| had.extend_from_slice(events)));
            assert!(std::ptr::eq(had[0].header(), expected.header()) && had.len() == 2);
        }
    }

    #[test]
    fn what_takes_too_long_begins_anew() {
        let within = Duration::from_millis(5);
        let all = Condition::all(Collect::First, [of("a"), of("b")]).within(within);
        assert_eq!(fed(&all, &[(1, "a"), (7, "b"), (8, "a"), (20, "a"), (25, "b")]), ["8: a b", "25: a b"]);
        let order = Condition::in_order([of("a"), of("b")]).within(within);
        assert_eq!(fed(&order, &[(1, "a"), (7, "b"), (8, "a"), (13, "b")]), ["13: a b"]);
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
            condition.begin(Instant::ZERO).offer(event, at(1), |_| is_true = true);
            assert_eq!(is_true, condition.concerns(event, at(1)));
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

    proptest! {
        /// A conjunction of parts that share no event comes true as often as its rarest part at most, and with each part once.
        #[test]
        fn a_conjunction_is_complete_each_time(names in prop::collection::vec(0usize..4, 0..60), latest in any::<bool>()) {
            let all = ["a", "b", "c"];
            let collect = if latest { Collect::Latest } else { Collect::First };
            let mut state = Condition::all(collect, all.map(of)).begin(Instant::ZERO);
            let (mut had, mut came) = ([false; 3], 0);
            for name in names {
                let event = event(["a", "b", "c", "d"][name]);
                let mut now = None;
                state.offer(&event, at(1), |events| now = Some(events.iter().map(|event| event.event_type().name().to_owned()).collect::<Vec<_>>()));
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
