//! One thread object as plain values: its properties, and the steps of one round of its loop.

use super::json::{Kind, Member, Value};
use super::keys::{EventKey, Key, Property, classify, known_keys};
use super::values::{cpus, duration, integer, policy, wrong};
use crate::Effect;
use crate::reading::Reading;
use crate::settings::task_label;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use talea_time::{Duration, Work};

/// How many steps all rounds of a file may have once their loops are written out.
const STEPS: usize = 1 << 20;

/// How many threads one object may stand for.
const INSTANCES: i64 = 10_000;

/// A scheduling policy of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Other,
    Fifo,
    RoundRobin,
    Deadline,
}

/// A step that a description can say something about. Names are shared: a loop repeats them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Run(Work),
    Sleep(Duration),
    Timer(Duration),
    Suspend(Rc<str>),
    Resume(Rc<str>),
    Yield,
}

/// What one thread object says.
#[derive(Debug)]
pub(super) struct Thread {
    pub name: String,
    /// The key of the object.
    pub span: Range<usize>,
    pub instances: usize,
    pub delay: Duration,
    pub attributes: Attributes,
    /// The steps of one round, loops of phases written out.
    pub round: Vec<Step>,
    /// Whether it waits for conditions or barriers.
    pub waits: bool,
    /// Whether it has a period and an execution time instead of events, as in the first versions of rt-app.
    pub is_plain: bool,
}

/// What may be said of a thread and, differently, of its phases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub policy: Option<Policy>,
    pub priority: Option<i64>,
    /// `dl-runtime`, `dl-period`, `dl-deadline`.
    pub runtime: Option<Duration>,
    pub period: Option<Duration>,
    pub deadline: Option<Duration>,
    pub cpus: Option<Vec<u16>>,
}

impl Thread {
    pub fn label(&self) -> String {
        task_label(&self.name)
    }
}

/// Reads thread objects; what concerns several of them is kept here.
pub(super) struct Threads<'r, 't> {
    pub reading: &'r mut Reading<'t>,
    steps_left: usize,
    /// Which thread uses a timer that is not its own.
    pub timers: HashMap<String, String>,
}

/// An object taken apart.
#[derive(Default)]
struct Parts<'m, 't> {
    attributes: Attributes,
    rounds: Option<i64>,
    rounds_span: Range<usize>,
    instances: Option<i64>,
    delay: Duration,
    exec: Option<Work>,
    phases: Option<&'m Value<'t>>,
    events: Vec<(EventKey, &'m Member<'t>)>,
}

impl<'r, 't> Threads<'r, 't> {
    pub fn new(reading: &'r mut Reading<'t>) -> Self {
        Threads { reading, steps_left: STEPS, timers: HashMap::new() }
    }

    /// The thread of one member of `tasks`; `None` if it cannot be read or starts no thread.
    pub fn read(&mut self, member: &Member<'t>) -> Option<Thread> {
        let label = task_label(&member.key);
        let Some(Value { kind: Kind::Object(members), .. }) = &member.value else {
            wrong(self.reading, &label, member, "an object", "{ \"run\" : 1000, ... }");
            return None;
        };
        let parts = self.take_apart(&label, members, Level::Thread);
        let instances = parts.instances.unwrap_or(1);
        let mut thread = Thread {
            name: member.key.to_string(),
            span: member.key_span.clone(),
            instances: instances as usize,
            delay: parts.delay,
            attributes: parts.attributes.clone(),
            round: Vec::new(),
            waits: false,
            is_plain: parts.exec.is_some(),
        };
        if let Some(exec) = parts.exec {
            for (_, event) in &parts.events {
                let what = "stands beside \"exec\", which is all that the thread does";
                self.reading.lose(Effect::Lost, event.span(), &label, event.key.to_string(), what);
            }
            thread.round.push(Step::Run(exec));
            match parts.attributes.period {
                Some(period) => thread.round.push(Step::Timer(period)),
                None => {
                    let message = format!("{label} has an \"exec\" and no \"period\"");
                    self.reading.error(member.key_span.clone(), message, "write \"period\" : 10000");
                }
            }
        } else if let Some(phases) = parts.phases {
            self.read_phases(&mut thread, &parts, phases);
        } else {
            thread.round = self.steps(&mut thread.waits, &thread.name, instances, &parts.events);
        }
        self.note_rounds(&label, &parts);
        if instances == 0 {
            let what = "has no instance and is started by others only; left out";
            self.reading.lose(Effect::Lost, thread.span, &label, "instance", what);
            return None;
        }
        Some(thread)
    }

    fn take_apart<'m>(&mut self, label: &str, members: &'m [Member<'t>], level: Level) -> Parts<'m, 't> {
        let mut parts = Parts::default();
        let mut seen: Vec<Property> = Vec::new();
        for member in members {
            match classify(&member.key) {
                Key::Event(event) => parts.events.push((event, member)),
                Key::Property(Property::Other(why)) => {
                    self.reading.lose(Effect::Lost, member.span(), label, member.key.to_string(), why);
                }
                Key::Property(property) if level.has(property) => {
                    if seen.contains(&property) {
                        let what = "stands there twice; the last one counts";
                        self.reading.lose(
                            Effect::Approximated,
                            member.span(),
                            label,
                            member.key.to_string(),
                            what,
                        );
                    }
                    seen.push(property);
                    self.read_property(label, property, member, &mut parts);
                }
                _ => self.reading.ignore(member.span(), label, &member.key, "rt-app", known_keys()),
            }
        }
        parts
    }

    fn read_property<'m>(
        &mut self,
        label: &str,
        property: Property,
        member: &'m Member<'t>,
        parts: &mut Parts<'m, 't>,
    ) {
        let reading = &mut *self.reading;
        let attributes = &mut parts.attributes;
        match property {
            Property::Loop => {
                parts.rounds = integer(reading, label, member, -1..=i64::from(i32::MAX));
                parts.rounds_span = member.span();
            }
            Property::Instance => parts.instances = integer(reading, label, member, 0..=INSTANCES),
            Property::Delay => parts.delay = duration(reading, label, member).unwrap_or_default(),
            Property::Phases => parts.phases = member.value.as_ref(),
            Property::Policy => attributes.policy = policy(reading, label, member),
            Property::Priority => attributes.priority = integer(reading, label, member, -20..=99),
            // Zero stands for "not given", as in rt-app.
            Property::Runtime => attributes.runtime = duration(reading, label, member).filter(is_given),
            Property::Period => attributes.period = duration(reading, label, member).filter(is_given),
            Property::Deadline => attributes.deadline = duration(reading, label, member).filter(is_given),
            Property::Cpus => attributes.cpus = cpus(reading, label, member),
            Property::Exec => parts.exec = duration(reading, label, member).map(Duration::as_work),
            Property::Other(_) => unreachable!("handled by the caller"),
        }
    }

    /// Says what a finite loop loses: tasks have no end.
    fn note_rounds(&mut self, label: &str, parts: &Parts<'_, 't>) {
        if let Some(rounds) = parts.rounds.filter(|rounds| *rounds >= 0) {
            let what =
                format!("ends after {rounds} round(s) in rt-app; tasks are released to the end of the run");
            self.reading.lose(Effect::Lost, parts.rounds_span.clone(), label, "loop", what);
        }
    }

    fn read_phases(&mut self, thread: &mut Thread, parts: &Parts<'_, 't>, phases: &Value<'t>) {
        let label = thread.label();
        let Kind::Object(members) = &phases.kind else {
            let message = format!("{label}: \"phases\" is {}, not an object", phases.kind.name());
            self.reading.error(phases.span.clone(), message, "write { \"name\" : { ... }, ... }");
            return;
        };
        if let Some((_, event)) = parts.events.first() {
            let what = "stands beside phases, where rt-app does not look for events";
            self.reading.lose(Effect::Lost, event.span(), &label, event.key.to_string(), what);
        }
        for (index, member) in members.iter().enumerate() {
            let Some(Value { kind: Kind::Object(inside), .. }) = &member.value else {
                wrong(self.reading, &label, member, "an object", "{ \"loop\" : 1, \"run\" : 1000, ... }");
                continue;
            };
            let phase = self.take_apart(&label, inside, Level::Phase);
            self.adopt(thread, &phase.attributes, index, member);
            let instances = parts.instances.unwrap_or(1);
            let steps = self.steps(&mut thread.waits, &thread.name, instances, &phase.events);
            match phase.rounds.unwrap_or(1) {
                ..0 => {
                    if index > 0 || index + 1 < members.len() {
                        let what = "repeats for ever; only this phase is imported";
                        let span = phase.rounds_span.clone();
                        self.reading.lose(Effect::Lost, span, &label, "loop", what);
                    }
                    thread.round = steps;
                    return;
                }
                rounds => self.repeat(thread, &phase, steps, rounds as usize),
            }
        }
    }

    /// Adds the steps of a phase `rounds` times.
    fn repeat(&mut self, thread: &mut Thread, phase: &Parts<'_, 't>, steps: Vec<Step>, rounds: usize) {
        let wanted = steps.len().saturating_mul(rounds);
        if wanted > self.steps_left {
            let what = format!("{rounds} rounds of a phase are too many to write out; it counts once");
            let (span, label) = (phase.rounds_span.clone(), thread.label());
            self.reading.lose(Effect::Approximated, span, &label, "loop", what);
            thread.round.extend(steps);
            return;
        }
        self.steps_left -= wanted;
        for _ in 0..rounds {
            thread.round.extend_from_slice(&steps);
        }
    }

    /// Takes over what the first phase says of the thread; what others say differently is lost.
    fn adopt(&mut self, thread: &mut Thread, phase: &Attributes, index: usize, member: &Member<'t>) {
        let label = thread.label();
        let mut differing = Vec::new();
        macro_rules! adopt {
            ($($field:ident: $key:literal),*) => {$(
                if phase.$field.is_some() && phase.$field != thread.attributes.$field {
                    if index == 0 && thread.attributes.$field.is_none() {
                        thread.attributes.$field = phase.$field.clone();
                    } else {
                        differing.push($key);
                    }
                }
            )*};
        }
        adopt!(policy: "policy", priority: "priority", runtime: "dl-runtime", period: "dl-period",
               deadline: "dl-deadline", cpus: "cpus");
        for key in differing {
            let what = "changes between phases; an operation keeps what it has in the first";
            self.reading.lose(Effect::Lost, member.key_span.clone(), &label, key, what);
        }
    }
}

pub(super) fn is_given(time: &Duration) -> bool {
    *time > Duration::ZERO
}

/// Which object the properties are in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Thread,
    Phase,
}

impl Level {
    fn has(self, property: Property) -> bool {
        let of_threads =
            matches!(property, Property::Instance | Property::Delay | Property::Phases | Property::Exec);
        self == Level::Thread || !of_threads
    }
}
