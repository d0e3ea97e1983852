//! Operations with code or ports in virtual time: what a job takes when it begins, and what it publishes when it completes.
//!
//! Code takes no virtual time: it is called when its job has done its work, with what the job took when it began, and what it writes is published
//! when the job completes: at that instant, unless the job waits for readers to have room. The processor time of the job is what the description draws, as for synthetic work. As on threads the jobs of such an
//! operation use its ports one at a time: one that begins while another of the same operation is unfinished, as it can in a preemptive
//! lane, takes what there is when that one is done.

use crate::workplace::{Arriving, Call, PostedJob, Told, VirtualPoster, VirtualWorkplace};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use talea_model::{Communication, InputId, OnValue, OperationId, PublicationId, System, Take, Trigger};
use talea_operation::{
    Assembled, Beginning, Connection, Encoded, EventNote, JobServices, KeptBytes, KeptEnd, KeptEvent,
    KeptParts, LostValues, Moment, NotPosted, Operation, Posted, PostedCode, Published, PushedBytes, Reach,
    Stamp, TakenEvent, TakenPart,
};
use talea_policy::demand::{MessageWay, Passage};
use talea_policy::hierarchy::VpId;
use talea_policy::job::Job;
use talea_record::event::{
    self, Answer, Block, Deliver, Drop, EventsLost, Publish, Push, PushUnkept, Unblock, ValueLost,
};
use talea_record::values::{self, KeptOf, MOST_BYTES};
use talea_record::{Definition, DropReason, EventLossReason, JobId, Record, Sink, ValueLoss};
use talea_time::{Duration, Instant, Work};

/// A job of an operation with code or ports that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// The number of its instance.
    instance: u64,
    started: Instant,
    /// Whether it has taken its values.
    has_taken: bool,
    /// Whether its code has returned, and it has left what it took.
    has_returned: bool,
    /// The last output and reader for whose room it has waited.
    waited_for: Option<(usize, usize)>,
}

/// A job whose code has returned and that waits for room for what it wrote.
struct Waiting {
    job: JobId,
    /// Its node, and its slot there.
    place: (usize, VpId),
    connection: Arc<Connection>,
    until: Instant,
}

/// A task that values release.
#[derive(Clone, Debug)]
struct ValueTrigger {
    task: usize,
    every: u64,
    on: OnValue,
    /// Values so far that count.
    values: Cell<u64>,
}

/// An output with its readers.
struct OutputState {
    /// Its number among all.
    id: u32,
    readers: Vec<ReaderState>,
    triggers: Vec<ValueTrigger>,
    /// Whether its values are in the records.
    is_kept: bool,
}

/// A reader of an output.
struct ReaderState {
    input: InputId,
    /// Whether a job of it takes the value of its own instance: that leaves with what releases it, whatever is planned for others.
    is_of_instance: bool,
    /// The way to it, if it is on another node.
    way: Option<MessageWay>,
}

/// An input of an operation.
struct InputState {
    /// Its number among all.
    id: u32,
    /// Whose values it has.
    from: OperationId,
    /// Whether that is on another node.
    is_remote: bool,
    /// Whether a job takes the value of its own instance.
    is_of_instance: bool,
}

struct OperationState {
    operation: Operation,
    name: Box<str>,
    /// In the order in which they began.
    begun: Vec<Begun>,
    /// Under logical execution time: period and deadline of its task.
    planned: Option<(Duration, Duration)>,
    inputs: Vec<InputState>,
    outputs: Vec<OutputState>,
    /// Whether what is published and taken is recorded.
    is_recorded: bool,
    /// Whether what a job is told is recorded, too, so that it can be replayed.
    keeps_answers: bool,
    /// Whether values of any of its outputs are recorded.
    keeps_outputs: bool,
    /// Whether what its jobs push is recorded.
    keeps_pushes: bool,
    /// Where what its jobs take comes, events or bytes from outside, if that is kept.
    kept_taken: Option<Box<dyn KeptEnd>>,
    node: u16,
    /// Whether its jobs may have to wait for readers to have room.
    may_wait: bool,
    /// By number, what came with jobs that were posted and have not ended: the handle, and the execution time if it is the job's own.
    came_with: BTreeMap<u64, (u64, Option<Work>)>,
    /// What is done of posted jobs when they begin.
    beginning: Option<Beginning>,
}

/// All of them.
pub(crate) struct Values {
    /// By operation.
    operations: Vec<Option<OperationState>>,
    /// Values that were published later than planned.
    pub late: u64,
    input_names: Box<[Box<str>]>,
    /// Scratch: what the values of a job release, and what it, or code that is called at an instant, has posted.
    arriving: Vec<Arriving>,
    /// Scratch: a value as bytes.
    bytes: Vec<u8>,
    told: RefCell<Told>,
    /// Where work is posted, if any can be.
    workplace: Option<VirtualWorkplace>,
    /// In the order in which they began to wait.
    waiting: Vec<Waiting>,
}

/// What stands before the completion of a job that has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeforeEnd {
    Nothing,
    /// It has not taken its values, or has given them back: another one had the ports.
    Take,
    /// It may have to wait for readers to have room.
    WaitForRoom,
}

/// What a job can ask of a simulation.
struct Services<'a> {
    now: Instant,
    job: JobId,
    /// What it posts and what channels tell, in their order.
    told: &'a RefCell<Told>,
    workplace: Option<&'a VirtualWorkplace>,
}

impl JobServices for Services<'_> {
    fn clock(&self) -> Instant {
        self.now
    }

    fn is_to_stop(&self) -> bool {
        false
    }

    fn post(&self, posted: Posted) -> Result<u64, NotPosted> {
        // Nothing can have been declared where there is no place for it.
        let workplace = self.workplace.ok_or(NotPosted::OtherRun)?;
        self.told.borrow_mut().post(workplace, posted, Some(self.job), self.now)
    }

    fn note(&self, note: EventNote, _at: Instant) {
        self.told.borrow_mut().notes.push(note);
    }

    fn keeps_events(&self) -> bool {
        self.told.borrow().keeps_events
    }

    fn keep(&self, event: KeptEvent, bytes: Option<&[u8]>) {
        self.told.borrow_mut().kept.push((event, bytes.map(<[u8]>::to_vec)));
    }
}

/// What is known of a job that has completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub id: JobId,
    pub job: Job,
    /// Its lane, as records number it.
    pub lane: u16,
}

impl Values {
    /// Those of `system`, whose jobs can post at `workplace`, if there is one; none if nothing has code or ports, and nothing can be posted.
    pub fn new(system: &System, assembled: Assembled, workplace: Option<VirtualWorkplace>) -> Option<Self> {
        let mut operations: Vec<Option<OperationState>> = Vec::with_capacity(assembled.operations.len());
        for (operation, described) in assembled.operations.into_iter().zip(system.operations()) {
            operations.push(operation.map(|operation| state(system, described.id, operation)));
        }
        let is_needed = workplace.is_some() || operations.iter().any(Option::is_some);
        let posted_before = vec![0; system.tasks.len()];
        let told = RefCell::new(Told { posted_before, ..Told::default() });
        let input_names = system.inputs().iter().map(|input| input.name.as_str().into()).collect();
        let mut values = Values {
            operations,
            late: 0,
            input_names,
            arriving: Vec::new(),
            bytes: Vec::new(),
            told,
            workplace,
            waiting: Vec::new(),
        };
        if !system.chains.is_empty() {
            values.record();
        }
        is_needed.then_some(values)
    }

    /// What connections lost.
    pub fn lost(&self) -> Vec<LostValues> {
        let operations = self.operations.iter().flatten();
        operations
            .flat_map(|state| state.operation.lost(|input| self.input_names[input].to_string()))
            .collect()
    }

    /// From now on, records what is published and taken.
    pub fn record(&mut self) {
        self.operations.iter_mut().flatten().for_each(|state| state.is_recorded = true);
    }

    /// From now on, has recorded what channels of the program hand on, and what jobs push there.
    pub fn keep_events(&mut self) {
        self.told.get_mut().keeps_events = true;
    }

    /// From now on, records what is wanted and has bytes. Returns which outputs and events these are.
    pub fn keep(&mut self, wanted: &KeptParts) -> KeptParts {
        self.bytes.resize(MOST_BYTES, 0);
        let mut kept = KeptParts {
            outputs: vec![false; wanted.outputs.len()],
            events: vec![false; wanted.events.len()],
            reads: vec![false; wanted.reads.len()],
            pushes: vec![false; wanted.pushes.len()],
        };
        for (index, state) in self.operations.iter_mut().enumerate() {
            let Some(state) = state else { continue };
            for (port, output) in state.operation.outputs().zip(&mut state.outputs) {
                output.is_kept = wanted.outputs[output.id as usize] && port.has_bytes();
                kept.outputs[output.id as usize] = output.is_kept;
                state.keeps_outputs |= output.is_kept;
            }
            if wanted.events.get(index) == Some(&true) {
                state.kept_taken = state.operation.keep_events();
                kept.events[index] = state.kept_taken.is_some();
            }
            if wanted.reads.get(index) == Some(&true) {
                // Who has read writes it down before another one reads.
                state.kept_taken = state.operation.keep_reads(1);
                kept.reads[index] = state.kept_taken.is_some();
            }
            let is_wanted = |publication: PublicationId| wanted.pushes[publication.index()];
            for publication in state.operation.log_pushes(is_wanted, MOST_BYTES) {
                kept.pushes[publication.index()] = true;
                state.keeps_pushes = true;
            }
        }
        let keeps_answers = kept.are_any();
        self.operations.iter_mut().flatten().for_each(|state| state.keeps_answers = keeps_answers);
        kept
    }

    /// A job has begun at `now`.
    pub fn begin(&mut self, job: JobId, deadline: Instant, lane: u16, now: Instant, sink: &mut dyn Sink) {
        let Some(state) = &mut self.operations[job.operation.index()] else { return };
        let has_taken = state.begun.is_empty();
        let instance = job.instance;
        state.begun.push(Begun { instance, started: now, has_taken, has_returned: false, waited_for: None });
        if has_taken {
            state.take(job, deadline, (lane, now), &mut self.bytes, sink);
            if let Some(begin) = &mut state.beginning {
                begin(now);
            }
        }
    }

    /// Jobs of the operation that have begun and not completed.
    pub fn begun(&self, operation: OperationId) -> usize {
        self.operations[operation.index()].as_ref().map_or(0, |state| state.begun.len())
    }

    /// The job, which has begun, never completes: what it has taken and written is left.
    pub fn forget(&mut self, job: JobId) {
        let Some(state) = &mut self.operations[job.operation.index()] else { return };
        if let Some(place) = state.begun.iter().position(|begun| begun.instance == job.instance) {
            let Begun { has_taken, has_returned, .. } = state.begun[place];
            if has_returned {
                state.operation.discard();
                self.waiting.retain(|waiting| waiting.job != job);
            } else if has_taken {
                state.operation.leave(job.instance);
            } else {
                // It may have had events before another one went first.
                state.operation.leave_events(job.instance);
            }
            state.begun.remove(place);
        }
    }

    /// What a job, which has begun and done its work, has to do before it completes.
    #[inline]
    pub fn before_end(&self, job: JobId) -> BeforeEnd {
        let Some(state) = &self.operations[job.operation.index()] else { return BeforeEnd::Nothing };
        if state.may_wait {
            return BeforeEnd::WaitForRoom;
        }
        let has_to_take = |begun: &Begun| !begun.has_taken && begun.instance == job.instance;
        if state.begun.iter().any(has_to_take) { BeforeEnd::Take } else { BeforeEnd::Nothing }
    }

    /// A job has done its work and [has to take](BeforeEnd::Take) its values: it takes its values, and its code is called, before anything tells that it has completed.
    pub fn take_at_end(&mut self, completed: &Completed, now: Instant, sink: &mut dyn Sink) {
        if let Some(state) = &mut self.operations[completed.id.operation.index()] {
            state.call(completed, (&mut self.told, self.workplace.as_ref()), &mut self.bytes, now, sink);
        }
    }

    /// A job has done its work at `now`, and its code is called, if it has not been. Returns the input that has no room for what it wrote, and until
    /// when it waits at most for that, if it does. Then it is told [when it is not to wait any longer](Self::next_with_room); the
    /// [tasks and jobs](Self::arriving) that it has posted are released at once.
    pub fn wait_for_room(
        &mut self,
        completed: &Completed,
        place: (usize, VpId),
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Option<(u32, Instant)> {
        let job = completed.id;
        self.arriving.clear();
        let state = self.operations[job.operation.index()].as_mut()?;
        let asked = (&mut self.told, self.workplace.as_ref());
        let at = state.call(completed, asked, &mut self.bytes, now, sink);
        let (begun, mut found) = (&mut state.begun[at], None);
        state.operation.wait_for_room(|output, full| {
            let reader = (output, full.reader);
            if found.is_none() && begun.waited_for.is_none_or(|last| reader > last) {
                found = Some((reader, Arc::clone(full.connection), now.saturating_add(full.limit)));
            }
        });
        let ((output, reader), connection, until) = found?;
        begun.waited_for = Some((output, reader));
        let input = state.outputs[output].readers[reader].input.index() as u32;
        self.waiting.push(Waiting { job, place, connection, until });
        self.take_posted();
        Some((input, until))
    }

    /// The next instant at which a job waits no longer for room.
    pub fn next(&self) -> Instant {
        self.waiting.iter().map(|waiting| waiting.until).min().unwrap_or(Instant::MAX)
    }

    /// The node and the slot of a job that waits for room no longer, if there is one.
    #[inline]
    pub fn next_with_room(&mut self, now: Instant) -> Option<(usize, VpId)> {
        if self.waiting.is_empty() {
            return None;
        }
        let goes_on = |waiting: &Waiting| waiting.until <= now || waiting.connection.has_room();
        let index = self.waiting.iter().position(goes_on)?;
        Some(self.waiting.remove(index).place)
    }

    /// A job has completed at `now`: calls its code, unless it has waited since, and publishes its values, which release [tasks](Self::arriving).
    pub fn complete(&mut self, completed: &Completed, now: Instant, sink: &mut dyn Sink) {
        let Completed { id, job, lane } = *completed;
        self.arriving.clear();
        let Some(state) = &mut self.operations[id.operation.index()] else { return };
        let asked = (&mut self.told, self.workplace.as_ref());
        let place = state.call(completed, asked, &mut self.bytes, now, sink);
        if state.operation.has_code_or_events() {
            let (told, workplace) = (&self.told, self.workplace.as_ref());
            state.operation.push_events(&Services { now, job: id, told, workplace }, job.number);
            let told = self.told.get_mut();
            if !told.notes.is_empty() {
                state.record_notes(told, (id, lane), now, sink);
            }
            if state.keeps_pushes {
                state.keep_pushes(id, now, sink);
            }
        }
        state.begun.remove(place);
        let visible_at = match state.planned {
            None => now,
            Some((period, deadline)) => {
                let planned = job.deadline.saturating_add(-deadline).saturating_add(period);
                self.late += u64::from(planned < now);
                planned.max(now)
            }
        };
        if state.keeps_outputs {
            state.keep(id, &mut self.bytes, now, sink);
        }
        let (is_recorded, outputs, arriving) = (state.is_recorded, &state.outputs, &mut self.arriving);
        let stamp = Stamp { instance: id.instance, visible_at };
        let records = std::cell::RefCell::new(sink);
        state.operation.publish_to(
            stamp,
            |output, reader| {
                let ReaderState { input, is_of_instance, way } = &outputs[output].readers[reader];
                let Some(way) = way else { return Reach::From(visible_at) };
                let leaves = if *is_of_instance { now } else { visible_at };
                match way.passage(id.instance) {
                    Passage::Arrives(time) => Reach::From(leaves + time),
                    Passage::Lost => {
                        if is_recorded {
                            let (input, why) = (input.index() as u32, DropReason::Link.into());
                            let lost = Drop { job: id, input, lane, why };
                            records.borrow_mut().record(lost.at(now, Record::NO_CPU));
                        }
                        Reach::Lost
                    }
                }
            },
            |output, came| {
                if came == Published::Nothing {
                    return;
                }
                let output = &outputs[output];
                if is_recorded {
                    let publish = Publish { job: id, output: output.id, visible: visible_at, lane };
                    records.borrow_mut().record(publish.at(now, Record::NO_CPU));
                }
                for trigger in &output.triggers {
                    if trigger.on == OnValue::Change && came == Published::Same {
                        continue;
                    }
                    trigger.values.update(|values| values + 1);
                    if trigger.values.get().is_multiple_of(trigger.every) {
                        arriving.push(Arriving::Instance(trigger.task));
                    }
                }
            },
            |output, dropped| {
                if is_recorded {
                    let input = outputs[output].readers[dropped.reader].input.index() as u32;
                    let job = JobId { operation: id.operation, instance: dropped.instance };
                    let why = DropReason::NoRoom.into();
                    records.borrow_mut().record(Drop { job, input, lane, why }.at(now, Record::NO_CPU));
                }
            },
        );
        self.take_posted();
    }

    /// What has been posted arrives behind what does already. Most jobs post nothing.
    #[inline]
    fn take_posted(&mut self) {
        let posted = &mut self.told.get_mut().posted;
        if !posted.is_empty() {
            self.arriving.append(posted);
        }
    }

    /// What the values and the events of the job release that completed last, or began to wait, and what it, or the code that was called last, has posted.
    pub fn arriving(&self) -> &[Arriving] {
        &self.arriving
    }

    /// Whether there is anything to [take](Self::take_defined).
    #[inline]
    pub fn has_defined(&mut self) -> bool {
        !self.told.get_mut().defined.is_empty()
    }

    /// What the code of jobs has brought about since this was asked last, and whoever takes the records has been told.
    pub fn take_defined(&mut self) -> Vec<Definition> {
        std::mem::take(&mut self.told.get_mut().defined)
    }

    /// An operation has been declared, which is the next one by its number.
    pub fn declare(&mut self, id: OperationId, name: &str, node: usize, code: PostedCode) {
        assert_eq!(id.index(), self.operations.len(), "declared operations are numbered in turn");
        let (beginning, code) = code.parts();
        let operation = Operation::without_ports(id, code);
        self.operations.push(Some(OperationState {
            operation,
            name: name.into(),
            begun: Vec::with_capacity(4),
            planned: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            is_recorded: false,
            keeps_answers: false,
            keeps_outputs: false,
            keeps_pushes: false,
            kept_taken: None,
            node: node as u16,
            may_wait: false,
            came_with: BTreeMap::new(),
            beginning,
        }));
    }

    /// A job of a declared operation is released.
    pub fn post(&mut self, posted: &PostedJob) {
        let state = self.operations[posted.id.operation.index()].as_mut();
        let state = state.expect("a declared operation has code");
        state.came_with.insert(posted.id.instance, (posted.handle, posted.wcet));
    }

    /// What jobs wanted to post when all was over, since this was asked last.
    pub fn take_refused(&mut self) -> Vec<PostedJob> {
        std::mem::take(&mut self.told.get_mut().refused)
    }

    /// Code of the program is called at `now`. What it posts is [to arrive](Self::arriving). Returns when it is to be called again.
    pub fn call_outside(&mut self, code: &mut Call, now: Instant) -> Option<Instant> {
        self.arriving.clear();
        let workplace = self.workplace.as_ref().expect("it was given there");
        let next = code(&mut VirtualPoster { now, told: &self.told, workplace });
        assert!(
            next.is_none_or(|next| next > now),
            "code that is called at {now} after the start asks to be called again at {}, which is not later",
            next.unwrap_or(now)
        );
        self.take_posted();
        next
    }
}

impl OperationState {
    /// Calls the code of a job that has done its work at `now`, unless it has been called. Returns its place among those that have begun.
    fn call(
        &mut self,
        completed: &Completed,
        (told, workplace): (&mut RefCell<Told>, Option<&VirtualWorkplace>),
        bytes: &mut [u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> usize {
        let Completed { id, job, lane } = *completed;
        let place = self
            .begun
            .iter()
            .position(|begun| begun.instance == id.instance)
            .expect("a job begins before it completes");
        if self.begun[place].has_returned {
            return place;
        }
        if !self.begun[place].has_taken {
            // Another one has the ports, and does not run: it has begun before this one.
            if let Some(holder) = self.begun.iter_mut().find(|begun| begun.has_taken) {
                holder.has_taken = false;
                self.operation.put_back();
            }
            self.begun[place].has_taken = true;
            self.take(id, job.deadline, (lane, now), bytes, sink);
        }
        let services = Services { now, job: id, told: &*told, workplace };
        let (handle, own_wcet) = self.came_with.remove(&id.instance).unwrap_or((0, None));
        let job = Job { wcet: own_wcet.unwrap_or(job.wcet), ..job };
        let started = self.begun[place].started;
        self.operation.call(&services, &self.name, &job, started, handle);
        let has_room = self.operation.end_reads(id.instance, started);
        debug_assert!(has_room, "what was read before is written down");
        if self.operation.has_code_or_events() {
            self.record_told((told.get_mut(), workplace), (id, lane), bytes, now, sink);
        }
        self.operation.leave(id.instance);
        self.begun[place].has_returned = true;
        place
    }

    /// Records what the code of a job has brought about.
    fn record_told(
        &mut self,
        (told, workplace): (&mut Told, Option<&VirtualWorkplace>),
        (job, lane): (JobId, u16),
        bytes: &mut [u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        // Before the first record of what it has pushed.
        if let Some(workplace) = workplace.filter(|workplace| workplace.has_new_publications()) {
            let defined = workplace.take_new_publications();
            defined.iter().for_each(|definition| sink.define(definition));
            told.defined.extend(defined);
        }
        self.keep_taken(job, bytes, now, sink);
        if !told.notes.is_empty() {
            self.record_notes(told, (job, lane), now, sink);
        }
        if !told.kept.is_empty() {
            self.keep_of_program(job, std::mem::take(&mut told.kept), now, sink);
        }
        if self.keeps_pushes {
            self.keep_pushes(job, now, sink);
        }
    }

    /// Records what channels have told.
    fn record_notes(&self, told: &mut Told, of: (JobId, u16), now: Instant, sink: &mut dyn Sink) {
        for note in told.notes.drain(..) {
            sink.record(record_of(note, of, self.node, now));
        }
    }

    /// Records what the job wrote, of outputs whose values are kept.
    fn keep(&mut self, job: JobId, bytes: &mut [u8], now: Instant, mut sink: &mut dyn Sink) {
        let node = self.node;
        for (port, state) in self.operation.outputs().zip(&self.outputs).filter(|(_, state)| state.is_kept) {
            let output = state.id;
            match port.encode(bytes) {
                Encoded::Nothing => {}
                Encoded::Bytes(length) => {
                    values::write(&mut sink, (job, KeptOf::Output(output)), &bytes[..length], node, now);
                }
                Encoded::NoRoom => {
                    let (output, cause) = (Some(output), ValueLoss::TooLong.into());
                    let lost = ValueLost { job, output, node, cause };
                    sink.record(lost.at(now, Record::NO_CPU));
                }
            }
        }
    }

    /// Records what channels of the program have handed to the job, and what it has pushed there.
    fn keep_of_program(
        &self,
        job: JobId,
        kept: Vec<(KeptEvent, Option<Vec<u8>>)>,
        now: Instant,
        mut sink: &mut dyn Sink,
    ) {
        let node = self.node;
        let (mut taken, mut numbers) = (Some(Vec::new()), 0..);
        for (event, bytes) in kept {
            match (event, bytes) {
                (KeptEvent::Pushed(publication), bytes) => {
                    let (publication, number) =
                        (publication.index() as u32, numbers.next().unwrap_or(u16::MAX));
                    match bytes.filter(|_| number < PushedBytes::LAST) {
                        Some(bytes) => {
                            let of = KeptOf::Pushed { publication, number };
                            values::write(&mut sink, (job, of), &bytes, node, now);
                        }
                        None => {
                            let lost =
                                PushUnkept { job, publication, node, cause: ValueLoss::TooLong.into() };
                            sink.record(lost.at(now, Record::NO_CPU));
                        }
                    }
                }
                (KeptEvent::Taken(part), bytes) => {
                    taken = taken.zip(bytes).map(|(mut taken, bytes)| {
                        taken.extend(bytes);
                        taken
                    });
                    if part == TakenPart::More {
                        continue;
                    }
                    match taken.take().filter(|taken| taken.len() <= MOST_BYTES) {
                        Some(taken) => values::write(&mut sink, (job, KeptOf::Taken), &taken, node, now),
                        None => {
                            let cause = ValueLoss::TooLong.into();
                            let lost = ValueLost { job, output: None, node, cause };
                            sink.record(lost.at(now, Record::NO_CPU));
                        }
                    }
                }
            }
        }
    }

    /// Records what the job has pushed since the last call, of channels whose events are kept.
    fn keep_pushes(&mut self, job: JobId, now: Instant, mut sink: &mut dyn Sink) {
        let node = self.node;
        for PushedBytes { publication, number, bytes } in self.operation.pushed() {
            let publication = publication.index() as u32;
            match bytes {
                Some(bytes) => {
                    let of = KeptOf::Pushed { publication, number };
                    values::write(&mut sink, (job, of), &bytes, node, now);
                }
                None => {
                    let cause = ValueLoss::TooLong.into();
                    let lost = PushUnkept { job, publication, node, cause };
                    sink.record(lost.at(now, Record::NO_CPU));
                }
            }
        }
    }

    /// Records what the job has taken of a channel or read from outside since the last call, if that is kept.
    fn keep_taken(&mut self, job: JobId, bytes: &mut [u8], now: Instant, mut sink: &mut dyn Sink) {
        let (node, Some(kept)) = (self.node, &mut self.kept_taken) else { return };
        kept.take_all(Instant::MAX, bytes, &mut |_, taken| {
            let cause = match taken {
                KeptBytes::Bytes(bytes) => {
                    return values::write(&mut sink, (job, KeptOf::Taken), bytes, node, now);
                }
                KeptBytes::TooLong => ValueLoss::TooLong,
                KeptBytes::Failed => ValueLoss::Failed,
            };
            let lost = ValueLost { job, output: None, node, cause: cause.into() };
            sink.record(lost.at(now, Record::NO_CPU));
        });
    }

    fn take_events(&mut self, job: JobId, (lane, now): (u16, Instant), sink: &mut dyn Sink) {
        let (node, records) = (self.node, RefCell::new(sink));
        let mut number = 0;
        self.operation.take_events(
            Moment { instance: job.instance, as_of: now },
            |event| {
                records.borrow_mut().record(delivered(event, (job, number, lane), now));
                number += 1;
            },
            |note| records.borrow_mut().record(record_of(note, (job, lane), node, now)),
        );
    }

    fn take(
        &mut self,
        job: JobId,
        deadline: Instant,
        (lane, now): (u16, Instant),
        bytes: &mut [u8],
        sink: &mut dyn Sink,
    ) {
        let as_of = self.planned.map_or(now, |(_, relative)| deadline.saturating_add(-relative));
        if self.operation.has_events() {
            self.take_events(job, (lane, now), sink);
        }
        self.keep_taken(job, bytes, now, sink);
        let (inputs, is_recorded, keeps_answers) = (&self.inputs, self.is_recorded, self.keeps_answers);
        self.operation.take(
            |input| {
                let as_of = match inputs[input] {
                    InputState { is_of_instance: false, .. } => as_of,
                    InputState { is_remote: false, .. } => Instant::MAX,
                    InputState { is_remote: true, .. } => now,
                };
                Moment { instance: job.instance, as_of }
            },
            |value| {
                if is_recorded {
                    let InputState { id: input, from, is_remote, .. } = inputs[value.input];
                    let newest = value.taken.newest;
                    if let Some(Stamp { visible_at, .. }) = newest.filter(|_| keeps_answers && is_remote) {
                        sink.record(Answer::visible(job, input, visible_at, lane).at(now, Record::NO_CPU));
                    }
                    let from = newest.map(|newest| JobId { operation: from, instance: newest.instance });
                    let values = value.taken.values as u32;
                    sink.record(event::Take { job, from, input, values, lane }.at(now, Record::NO_CPU));
                }
            },
        );
    }
}

/// A job takes an event.
fn delivered(
    TakenEvent { publication, from }: TakenEvent,
    (job, number, lane): (JobId, u32, u16),
    now: Instant,
) -> Record {
    Deliver::of((job, number, lane), publication, from).at(now, Record::NO_CPU)
}

/// What a channel tells in a job, as a record.
fn record_of(note: EventNote, (job, lane): (JobId, u16), node: u16, now: Instant) -> Record {
    match note {
        EventNote::Pushed(publication) => {
            let publication = publication.index() as u32;
            Push { job, publication, lane }.at(now, Record::NO_CPU)
        }
        EventNote::Taken { event, number } => delivered(event, (job, number, lane), now),
        EventNote::Lost { operation, events, why } => {
            let operation = operation.index() as u32;
            let why = EventLossReason::from(why).into();
            EventsLost { operation, events, node, why }.at(now, Record::NO_CPU)
        }
        EventNote::Blocked { by } => {
            let by = by.map(|(operation, instance)| JobId { operation, instance });
            Block { job, by, lane }.at(now, Record::NO_CPU)
        }
        EventNote::Unblocked => Unblock { job, lane }.at(now, Record::NO_CPU),
        EventNote::Answered { outcome, call } => {
            Answer::outcome(job, (call, outcome.into()), lane).at(now, Record::NO_CPU)
        }
        EventNote::NotKept => {
            let cause = ValueLoss::NoRoom.into();
            ValueLost { job, output: None, node, cause }.at(now, Record::NO_CPU)
        }
        EventNote::PushNotKept(publication) => {
            let (publication, cause) = (publication.index() as u32, ValueLoss::NoRoom.into());
            PushUnkept { job, publication, node, cause }.at(now, Record::NO_CPU)
        }
    }
}

fn state(system: &System, id: OperationId, operation: Operation) -> OperationState {
    let task = system.task_of(id);
    let node = |operation: OperationId| system.subtask(operation).node;
    let reader = |input: &InputId| {
        let to = system.inputs()[input.index()].operation;
        let is_remote = node(to) != node(id);
        let is_of_instance = system.inputs()[input.index()].take == Take::Instance;
        let way = is_remote.then(|| MessageWay::of(system, id, to));
        ReaderState { input: *input, is_of_instance, way }
    };
    let trigger = |task: &usize| match system.tasks[*task].trigger {
        Some(Trigger::Output { every, on, .. }) => {
            ValueTrigger { task: *task, every: every.into(), on, values: Cell::new(0) }
        }
        _ => unreachable!("the task is among those that the output triggers"),
    };
    let output = |site: &talea_model::OutputSite| OutputState {
        id: site.id.index() as u32,
        readers: site.readers.iter().map(reader).collect(),
        triggers: site.triggers.iter().map(trigger).collect(),
        is_kept: false,
    };
    let input = |site: &talea_model::InputSite| {
        let from = system.outputs()[site.output.index()].operation;
        InputState {
            id: site.id.index() as u32,
            from,
            is_remote: node(from) != node(id),
            is_of_instance: site.take == Take::Instance,
        }
    };
    OperationState {
        operation,
        name: system.operations()[id.index()].name.as_str().into(),
        begun: Vec::with_capacity(4),
        planned: (task.communication == Communication::Let).then_some((task.period, task.deadline)),
        is_recorded: false,
        keeps_answers: false,
        keeps_outputs: false,
        keeps_pushes: false,
        kept_taken: None,
        node: node(id) as u16,
        may_wait: system.wait_limits(id).next().is_some(),
        came_with: BTreeMap::new(),
        beginning: None,
        inputs: system.inputs_of(id).iter().map(input).collect(),
        outputs: system.outputs_of(id).iter().map(output).collect(),
    }
}
