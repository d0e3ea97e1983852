//! Values that are handed on: what a job takes is what was there for it, and what values or the outside release comes when it may.
//!
//! Every reader of an output is followed on its own: what was published and it has not passed. A `latest` input gives the newest value that
//! was visible when the job began, an `instance` input that of the job's own instance, and from an `each` input every value is taken once or
//! dropped by record. Under logical execution time what counts is what was visible when the instance arrived, but that of its own instance
//! is there as soon as it is published.
//!
//! On real threads a value that was published less than the tolerance before a job began may not have been seen, and over a link nobody knows when it
//! arrived: of that is judged only that it was published before. A value is dated by the end of its job, and a thread may lose its processor between
//! that and handing it on: that a reader has missed it is certain only where the producer's lane has begun another job since, one after the other,
//! and else [possible](Certainty::Possible). Once records were lost, or where the recording joined the run, what was
//! there is not known.

use super::judge::Judge;
use super::report::{Certainty, Rule};
use std::collections::VecDeque;
use talea_model::{Communication, Excess, OnValue, System, Take as Taking, Trigger};
use talea_record::event::{Drop, Publish, Release, Take};
use talea_record::{Event, JobId, Metadata, RecordedEvents};
use talea_time::{Duration, Instant};

/// More values than any input has room for.
const REMEMBERED: usize = 1 << 17;

/// Values of their own instances that jobs have taken and may take again: more than there are jobs of an operation that have begun.
const TAKEN: usize = 1 << 8;

/// A value that a reader has not passed.
#[derive(Clone, Copy, Debug)]
struct Value {
    instance: u64,
    published: Instant,
    visible: Instant,
    /// The lane that has published it.
    lane: u16,
    /// Whether the job of its instance has it.
    is_taken: bool,
}

/// Whether the value of an input goes over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Local,
    Link,
}

/// What is there for an input.
#[derive(Debug)]
struct Reader {
    way: Way,
    values: VecDeque<Value>,
    /// Dropped before the record of their publication came.
    dropped: Vec<u64>,
    /// The instance whose value was taken last.
    last: Option<u64>,
}

/// What may release an instance of a task.
#[derive(Debug, Default)]
struct Released {
    /// Values that were published to release it.
    values: u64,
    /// When those that released were, from the instance `first` on.
    times: VecDeque<Instant>,
    first: u64,
    /// From when on the next release keeps the separation, without any burst.
    theoretical: Option<Instant>,
}

/// Whether it is known what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Everything,
    InPart,
}

/// All readers and all tasks that values release.
#[derive(Debug)]
pub(super) struct Values {
    known: Known,
    readers: Vec<Reader>,
    released: Vec<Released>,
    /// By lane whose jobs run one after the other: when the last of them began.
    begun: Vec<Option<Instant>>,
    /// Whether it is recorded what jobs take.
    has_takes: bool,
}

impl Values {
    pub fn new(trace: &Metadata, system: &System) -> Self {
        let reader = |site: &talea_model::InputSite| {
            let from = system.outputs()[site.output.index()].operation;
            let is_local = system.subtask(from).node == system.subtask(site.operation).node;
            let way = if is_local { Way::Local } else { Way::Link };
            Reader { way, values: VecDeque::new(), dropped: Vec::new(), last: None }
        };
        Values {
            known: Known::Everything,
            readers: system.inputs().iter().map(reader).collect(),
            released: system.tasks.iter().map(|_| Released::default()).collect(),
            begun: vec![None; trace.lanes.len()],
            has_takes: false,
        }
    }

    /// Of a trace that has these events.
    pub fn rest_on(&mut self, recorded: &RecordedEvents) {
        if !recorded.has_all(&[Event::PUBLISH, Event::TAKE, Event::DROP]) {
            self.known = Known::InPart;
        }
    }

    /// Whether it is known when inputs have room.
    pub fn tells_of_room(&self) -> bool {
        self.has_takes && self.known == Known::Everything
    }

    /// A job begins in a lane of the trace whose jobs run one after the other: what those before it have published is there.
    pub fn begins(&mut self, lane: u16, now: Instant) {
        self.begun.get_mut(usize::from(lane)).into_iter().for_each(|begun| *begun = Some(now));
    }

    /// Whether some of what was published is not known.
    pub fn is_in_part(&self) -> bool {
        self.known == Known::InPart
    }

    /// Records are missing.
    pub fn forget(&mut self) {
        self.known = Known::InPart;
        self.readers.iter_mut().for_each(|reader| reader.values.clear());
        self.released.iter_mut().for_each(|released| *released = Released::default());
    }
}

impl Judge<'_> {
    pub(super) fn publish(&mut self, told: Publish) {
        let Publish { job, output, visible, lane } = told;
        let Some(site) = self.system.outputs().get(output as usize) else { return };
        let (values, published) = (&mut self.values, self.now);
        if values.known == Known::InPart {
            return;
        }
        for input in &site.readers {
            let reader = &mut values.readers[input.index()];
            if let Some(place) = reader.dropped.iter().position(|instance| *instance == job.instance) {
                reader.dropped.swap_remove(place);
                continue;
            }
            if reader.values.len() == REMEMBERED {
                reader.values.pop_front();
            }
            let instance = job.instance;
            reader.values.push_back(Value { instance, published, visible, lane, is_taken: false });
        }
        for task in &site.triggers {
            let every = match self.system.tasks[*task].trigger {
                Some(Trigger::Output { every, on: OnValue::Value, .. }) => u64::from(every.max(1)),
                // Which values are other ones than before is not known: it may be any.
                _ => 1,
            };
            let released = &mut values.released[*task];
            released.values += 1;
            if released.values % every == 0 {
                self.inheritance.published(self.system, job, *task, published);
                released.times.push_back(published);
                if released.times.len() > REMEMBERED {
                    released.times.pop_front();
                    released.first += 1;
                }
            }
        }
    }

    pub(super) fn drop_value(&mut self, told: Drop) {
        let Some(reader) = self.values.readers.get_mut(told.input as usize) else { return };
        match reader.values.iter().rposition(|value| value.instance == told.job.instance) {
            Some(place) => _ = reader.values.remove(place),
            None => reader.dropped.push(told.job.instance),
        }
    }

    pub(super) fn take_values(&mut self, told: Take) {
        let Take { job, from, input, values, lane } = told;
        let Some(site) = self.system.inputs().get(input as usize) else { return };
        // Since when the job looks is not known any more.
        if self.expected.operations.get(site.operation.index()).is_some_and(|entry| self.is_over(entry.lane))
        {
            return;
        }
        self.values.has_takes = true;
        if self.is_simulated() && values > 0 && site.take.wait_limit().is_some() {
            self.make_room(input);
        }
        if self.values.known == Known::InPart {
            return self.findings.leave_unknown(Rule::Values, 1);
        }
        self.findings.count_case(Rule::Values);
        let producer = self.system.outputs()[site.output.index()].operation;
        if site.operation != job.operation || from.is_some_and(|from| from.operation != producer) {
            return self
                .find(Rule::Values, job, from, || "it took by an input that is another operation's".into());
        }
        let task = self.trace.operations[job.operation.index()].task;
        let as_of = match self.system.tasks[task].communication {
            Communication::Implicit => self.now,
            Communication::Let => self.arrival(task, job.instance),
        };
        let tolerance = self.tolerance;
        let is_simulated = self.is_simulated();
        // A thread takes what there is from its beginning on, and may lose its processor before it tells.
        let began = self.lanes.get(usize::from(lane)).and_then(|lane| lane.ready.get(&job.pack())?.began);
        let looks = began.filter(|_| !is_simulated).unwrap_or(self.now);
        let sure = Instant::from_nanos(looks.as_nanos().saturating_sub(tolerance.as_nanos()));
        let Values { readers, begun, .. } = &mut self.values;
        let reader = &mut readers[input as usize];
        let place = from.map(|from| reader.values.iter().rposition(|value| value.instance == from.instance));
        let is_instance = site.take == Taking::Instance;
        let is_each = matches!(site.take, Taking::Each { .. });
        // A queue is drained in the order of publication: what is visible behind a value that is not waits with it.
        let is_there = |value: &&Value| {
            value.visible <= as_of.min(looks) && (tolerance == Duration::ZERO || value.published <= sure)
        };
        let newest = match is_instance {
            true => None,
            false => reader.values.iter().take_while(is_there).count().checked_sub(1),
        };
        // What a later job of the operation had that went before stays the latest, also for one that arrived before it was visible.
        let is_kept = site.take == Taking::Latest && from.map(|from| from.instance) == reader.last;
        let after = |place: Option<usize>| place.map_or(0, |place| place + 1);
        // Whether one of those that it has missed was handed on for certain.
        let is_handed_on = |value: &Value| {
            is_simulated || begun.get(usize::from(value.lane)).is_some_and(|at| *at > Some(value.published))
        };
        let missed = reader.values.iter().take(after(newest)).skip(after(place.flatten()));
        let missed =
            if missed.into_iter().any(is_handed_on) { Certainty::Certain } else { Certainty::Possible };
        let mut certainty = Certainty::Certain;
        let problem = match place {
            Some(None) if is_instance => Some("nobody has published what it took, or it was dropped"),
            Some(None) => Some("nobody has published what it took, or it was taken or dropped before"),
            Some(Some(place)) if !is_instance && !is_kept && reader.values[place].visible > as_of => {
                Some("it took a value that was not visible yet")
            }
            Some(Some(_)) if is_instance && from.is_some_and(|from| from.instance != job.instance) => {
                Some("it took the value of another instance")
            }
            _ if is_instance || reader.way == Way::Link => None,
            Some(Some(place)) if newest.is_some_and(|newest| newest > place) => {
                certainty = missed;
                Some("it took a value although a newer one was visible")
            }
            None if newest.is_some() => {
                certainty = missed;
                Some("it took nothing although a value was visible")
            }
            Some(Some(place)) if is_each && place + 1 != values as usize => {
                Some("what it took is not each value since the one that was taken last")
            }
            _ => None,
        };
        reader.last = from.map(|from| from.instance).or(reader.last);
        if let Some(place) = place.flatten() {
            match site.take {
                // Jobs of earlier instances may begin later, and the job itself takes it again if another one has gone before it.
                Taking::Instance => {
                    reader.values[place].is_taken = true;
                    while reader.values.len() > TAKEN
                        && reader.values.front().is_some_and(|front| front.is_taken)
                    {
                        reader.values.pop_front();
                    }
                }
                Taking::Latest => _ = reader.values.drain(..place),
                Taking::Each { .. } => _ = reader.values.drain(..=place),
            }
        }
        if let Some(problem) = problem {
            self.find_with(Rule::Values, certainty, (job, from), || problem.into());
        }
    }

    /// There is room in the input: whoever waited for that is ready. Threads tell later that they have taken what made room.
    fn make_room(&mut self, input: u32) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let waiting =
                lane.ready.values_mut().find(|ready| ready.waits.is_some_and(|(of, _)| of == input));
            if let Some(ready) = waiting {
                ready.waits = None;
                self.node_touched[self.lanes[index].node] = true;
                return;
            }
        }
    }

    /// A first job of a task with a trigger was released: keeps it what is declared, and did a value release it?
    pub(super) fn check_trigger(&mut self, told: Release, opened: Option<Instant>) {
        let job = told.job;
        let task = self.trace.operations[job.operation.index()].task;
        let firsts = &self.trace.operations;
        let is_leading = (0..job.operation.index())
            .all(|before| firsts[before].task != task || !firsts[before].predecessors.is_empty());
        if !is_leading {
            return;
        }
        self.findings.count_case(Rule::Triggers);
        if told.nominal > self.now {
            self.find(Rule::Triggers, job, None, || "it was released before it arrived".into());
        }
        self.check_separation(job, task, (told.nominal, opened));
        self.check_value(job, task, told.nominal);
    }

    fn check_separation(&mut self, job: JobId, task: usize, (nominal, opened): (Instant, Option<Instant>)) {
        let Some(separation) = &self.system.tasks[task].separation else { return };
        let (apart, burst) = (separation.separation, separation.burst);
        let ahead = apart.as_nanos().saturating_mul(i64::from(burst.max(1)) - 1);
        let theoretical = self.values.released[task].theoretical;
        let least = theoretical.map(|at| at.as_nanos().saturating_sub(ahead));
        // When it is released, and when it might have been: that it came late puts off no later one.
        let (at, allowed) = match separation.excess {
            Excess::Count => return,
            Excess::Defer => {
                (opened.unwrap_or(self.now), nominal.max(Instant::from_nanos(least.unwrap_or(i64::MIN))))
            }
            Excess::Drop => (nominal, nominal),
        };
        let tolerance = if opened.is_some() { Duration::ZERO } else { self.tolerance };
        let next = theoretical.map_or(allowed, |theoretical| theoretical.max(allowed)).saturating_add(apart);
        self.values.released[task].theoretical = Some(next);
        if let Some(least) = least.filter(|least| at.as_nanos().saturating_add(tolerance.as_nanos()) < *least)
        {
            let early = Duration::from_nanos(least - at.as_nanos());
            self.find(Rule::Triggers, job, None, || {
                format!("it was released {} earlier than separation and burst allow", early.rounded())
            });
        }
    }

    fn check_value(&mut self, job: JobId, task: usize, nominal: Instant) {
        let Some(Trigger::Output { on, .. }) = self.system.tasks[task].trigger else { return };
        let Some(output) = self.system.trigger_output(task) else { return };
        let from = self.system.outputs()[output.index()].operation;
        let is_local = self.system.subtask(from).node == self.system.subtask(job.operation).node;
        let is_simulated = self.is_simulated();
        let released = &self.values.released[task];
        if self.values.known == Known::InPart || released.values == 0 {
            return self.findings.leave_unknown(Rule::Triggers, 1);
        }
        // On threads it is dated by its release, like a successor, before which the thread may lose its processor.
        let dated_by_release = self.system.tasks[task].inherits_deadline && !is_simulated;
        let may_release = |published: &Instant| match is_local && !dated_by_release {
            true => nominal == *published,
            false => nominal >= *published,
        };
        let is_right = match on {
            OnValue::Value => {
                let Some(place) = job.instance.checked_sub(released.first) else { return };
                released.times.get(place as usize).is_some_and(may_release)
            }
            OnValue::Change => {
                let is_forgotten =
                    released.first > 0 && released.times.front().is_none_or(|at| nominal < *at);
                is_forgotten || released.times.iter().rev().any(may_release)
            }
        };
        if !is_right {
            self.find(Rule::Triggers, job, None, || {
                "no value was published that releases it, or not when it arrived".into()
            });
        }
    }
}
