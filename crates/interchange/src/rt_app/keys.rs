//! The keys of rt-app's objects.

/// What a key of a thread or phase object stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Property(Property),
    Event(EventKey),
    /// None that rt-app knows; it ignores such keys.
    Unknown,
}

/// A key that describes the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Property {
    Loop,
    Instance,
    Delay,
    Phases,
    Policy,
    Priority,
    Runtime,
    Period,
    Deadline,
    Cpus,
    /// The execution time in files of the first versions, which have no events.
    Exec,
    /// One of those below that a description has no word for.
    Other(&'static str),
}

/// A key that is a step of what the thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKey {
    Run,
    Sleep,
    Timer,
    Suspend,
    Resume,
    Yield,
    /// A step that a description has no word for.
    Other(&'static OtherEvent),
}

/// A step that a description has no word for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherEvent {
    pub prefix: &'static str,
    /// Whether the thread may wait there.
    pub waits: bool,
    pub why: &'static str,
}

use Property::{
    Cpus, Deadline, Delay, Exec, Instance, Loop, Other, Period, Phases, Policy, Priority, Runtime,
};

const PROPERTIES: &[(&str, Property)] = &[
    ("loop", Loop),
    ("instance", Instance),
    ("delay", Delay),
    ("phases", Phases),
    ("policy", Policy),
    ("priority", Priority),
    ("dl-runtime", Runtime),
    ("dl-period", Period),
    ("dl-deadline", Deadline),
    // The names of the reservation before they had a prefix; "runtime" has become an event.
    ("period", Period),
    ("deadline", Deadline),
    ("cpus", Cpus),
    ("exec", Exec),
    ("util_min", Other("operations have no utilisation clamps")),
    ("util_max", Other("operations have no utilisation clamps")),
    ("taskgroup", Other("there are no groups of tasks; share a processor with nodes")),
    // Both spellings are in use: that of rt-app's documentation and that of its code.
    ("membind_nodes", Other("memory is not bound to NUMA nodes")),
    ("nodes_membind", Other("memory is not bound to NUMA nodes")),
    ("dl-reclaim", Other("unused time of a reservation is not reclaimed by name")),
    ("lock_order", Other(LOCK)),
    ("resources", Other(LOCK)),
];

const LOCK: &str = "operations hold no locks, so nobody waits for one";
const WAIT: &str = "operations wait for their predecessors only, not for conditions inside";

const OTHER_EVENTS: &[OtherEvent] = &[
    OtherEvent { prefix: "lock", waits: false, why: LOCK },
    OtherEvent { prefix: "unlock", waits: false, why: LOCK },
    OtherEvent { prefix: "wait", waits: true, why: WAIT },
    OtherEvent { prefix: "signal", waits: false, why: WAIT },
    OtherEvent { prefix: "broad", waits: false, why: WAIT },
    OtherEvent { prefix: "sync", waits: true, why: WAIT },
    OtherEvent { prefix: "barrier", waits: true, why: WAIT },
    OtherEvent {
        prefix: "mem",
        waits: false,
        why: "how long writing memory takes is not known; add it to the wcet",
    },
    OtherEvent {
        prefix: "iorun",
        waits: false,
        why: "how long writing to a device takes is not known; add it to the wcet",
    },
    OtherEvent {
        prefix: "fork",
        waits: false,
        why: "tasks are released from the start, not begun by others",
    },
];

const EVENTS: &[(&str, EventKey)] = &[
    ("run", EventKey::Run),
    ("sleep", EventKey::Sleep),
    ("timer", EventKey::Timer),
    ("suspend", EventKey::Suspend),
    ("resume", EventKey::Resume),
    ("yield", EventKey::Yield),
];

/// What `key` stands for. Properties are whole words. Events are beginnings of words, as in rt-app, which
/// is how a strict JSON file tells its steps apart: `run`, `run1`, `run2`; `runtime` is one of them.
pub(super) fn classify(key: &str) -> Key {
    if let Some((_, property)) = PROPERTIES.iter().find(|(name, _)| *name == key) {
        return Key::Property(*property);
    }
    let event = EVENTS.iter().find(|(prefix, _)| key.starts_with(prefix));
    if let Some((_, event)) = event {
        return Key::Event(*event);
    }
    match OTHER_EVENTS.iter().find(|event| key.starts_with(event.prefix)) {
        Some(event) => Key::Event(EventKey::Other(event)),
        None => Key::Unknown,
    }
}

/// Every key of a thread or phase.
pub(super) fn known_keys() -> impl Iterator<Item = &'static str> {
    let properties = PROPERTIES.iter().map(|(name, _)| *name);
    let events = EVENTS.iter().map(|(name, _)| *name);
    properties.chain(events).chain(OTHER_EVENTS.iter().map(|event| event.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_by_their_beginning_and_properties_by_the_whole_word() {
        assert_eq!(classify("run"), Key::Event(EventKey::Run));
        assert_eq!(classify("runtime2"), Key::Event(EventKey::Run));
        assert_eq!(classify("timer0"), Key::Event(EventKey::Timer));
        assert_eq!(classify("loop"), Key::Property(Property::Loop));
        assert_eq!(classify("loop1"), Key::Unknown);
        assert!(matches!(classify("membind_nodes"), Key::Property(Property::Other(_))));
        assert!(matches!(classify("mem"), Key::Event(EventKey::Other(_))));
        assert!(matches!(classify("lock1"), Key::Event(EventKey::Other(_))));
        assert!(matches!(classify("lock_order"), Key::Property(Property::Other(_))));
        assert!(known_keys().all(|key| classify(key) != Key::Unknown));
    }
}
