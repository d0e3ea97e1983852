//! Work that the system does not describe, in virtual time: operations that are declared, and what is posted or due at instants.

use super::{
    Arriving, Comes, Definition, Execution, NewOperation, OperationState, Posting, Simulation, SkipReason,
    Slot, Synchronisation, TRY_AGAIN, Workplace,
};
use crate::workplace::{PostedJob, VirtualWorkplace};
use talea_operation::Posted;
use talea_record::event::{Answer, JobOrNone, Post};
use talea_record::{PostOutcome, Record, Sink};
use talea_time::Work;

impl Simulation {
    /// Operations that the program has declared, and types of events that it pushes, are known from now on, here and to whoever takes the records.
    #[inline]
    pub(super) fn take_new(&mut self, sink: &mut dyn Sink) {
        let has_new = self.workplace.as_ref().is_some_and(VirtualWorkplace::has_new);
        if has_new || self.values.as_mut().is_some_and(|values| values.has_defined()) {
            self.define_new(sink);
        }
    }

    #[cold]
    fn define_new(&mut self, sink: &mut dyn Sink) {
        let Some(workplace) = &self.workplace else { return };
        let defined = self.values.as_mut().map(|values| values.take_defined()).unwrap_or_default();
        let publications = workplace.take_new_publications();
        publications.iter().for_each(|definition| sink.define(definition));
        defined.iter().chain(&publications).for_each(|definition| self.metadata.define(definition));
        workplace.take_new().into_iter().for_each(|operation| self.take_operation(operation, sink));
    }

    fn take_operation(
        &mut self,
        NewOperation { id, placement, declaration, code }: NewOperation,
        sink: &mut dyn Sink,
    ) {
        let node = placement.node;
        // Each is alone in its task, and they are numbered alike.
        let task = self.tasks.len() + (id.index() - self.described);
        self.nodes[node].open_posted(id, placement.level, declaration.wcet);
        self.operations.push(OperationState {
            task: task as u32,
            node: node as u32,
            sync: Synchronisation::Greedy,
            exec: Execution::Constant(declaration.wcet),
            stream: 0,
            publishing: Work::ZERO,
            outstanding: 0,
            latest: None,
            predecessors: 0,
            successors: Vec::new(),
            ways: Vec::new(),
            lost_predecessors: 0,
            is_lost: false,
        });
        self.guarding.places.push(None);
        let keeps_events = self.metadata.keeps_posts && code.has_again();
        let values = self.values.as_mut().expect("they are there where work can be posted");
        values.declare(id, &declaration.name, node, code);
        let definition = Definition::posted(
            (id.index(), task),
            &declaration.name,
            (self.nodes[node].lane_number(placement.level), declaration.wcet),
            (declaration.deadline, declaration.criticality),
        )
        .of_channel(declaration.is_of_channel)
        .keeping_events(keeps_events);
        self.metadata.define(&definition);
        sink.define(&definition);
    }

    /// What an instant brings.
    pub(super) fn come(&mut self, comes: Comes, sink: &mut dyn Sink) {
        match comes {
            Comes::Instances { task, jobs } => {
                (0..jobs).for_each(|_| self.arrive_by_trigger(task, None, sink));
            }
            Comes::Job(operation) => {
                let workplace = self.workplace.as_ref().expect("it comes from there");
                let arriving = workplace
                    .claim(Posted::new(operation), None, self.now)
                    .expect("it is asked for while it can be");
                if matches!(arriving, Arriving::NoRoom(_)) {
                    workplace.post_at(self.now.saturating_add(TRY_AGAIN), operation);
                }
                self.take_new(sink);
                self.arrive(arriving, None, sink);
            }
            Comes::Call(mut code) => {
                let values = self.values.as_mut().expect("they are there where code can be called");
                let next = values.call_outside(&mut code, self.now);
                if let (Some(next), Some(workplace)) = (next, &self.workplace) {
                    workplace.call_boxed_at(next, code);
                }
                self.arrive_all(None, sink);
            }
        }
    }

    /// What the values and the events of a job release, or code that was called, and what either has posted.
    pub(super) fn arrive_all(&mut self, by: Option<&Slot>, sink: &mut dyn Sink) {
        self.take_new(sink);
        let mut place = 0;
        while let Some(arriving) =
            self.values.as_ref().and_then(|values| values.arriving().get(place).copied())
        {
            self.arrive(arriving, by, sink);
            place += 1;
        }
    }

    fn arrive(&mut self, arriving: Arriving, by: Option<&Slot>, sink: &mut dyn Sink) {
        match arriving {
            Arriving::Instance(task) => self.arrive_by_trigger(task, by, sink),
            Arriving::Job(job) => {
                self.tell_post(&job, PostOutcome::Posted, sink);
                self.values.as_mut().expect("it has code").post(&job);
                let times = (self.now, job.deadline);
                let declared = self.metadata.operations[job.id.operation.index()].wcet;
                let wcet = job.wcet.filter(|wcet| *wcet != declared);
                let posting = Posting { by: job.by, rank: self.next_rank, wcet };
                self.next_rank = self.next_rank.saturating_add(1);
                self.release_posted(Some(posting), job.id, times, Work::ZERO, sink);
            }
            Arriving::NoRoom(job) => {
                let now = self.now;
                // What is called at an instant is not called again.
                if job.by.is_some() {
                    self.tell_post(&job, PostOutcome::Full, sink);
                }
                self.concern(job.id.operation).skip(job.id, now, job.deadline, SkipReason::Full, now, sink);
            }
        }
    }

    /// Jobs that ended now have wanted to post when all was over.
    pub(super) fn tell_refused(&mut self, sink: &mut dyn Sink) {
        self.take_new(sink);
        let refused = self.values.as_mut().map(|values| values.take_refused()).unwrap_or_default();
        refused.iter().for_each(|posted| self.tell_post(posted, PostOutcome::NotRunning, sink));
    }

    /// Somebody has posted the job, or wanted to, which is recorded where the simulation is to be replayed.
    fn tell_post(&self, posted: &PostedJob, outcome: PostOutcome, sink: &mut dyn Sink) {
        let entry = &self.metadata.operations[posted.id.operation.index()];
        if self.metadata.keeps_posts && !entry.is_of_channel {
            let PostedJob { id: job, handle, by, wcet, .. } = *posted;
            let (lane, code) = (entry.lane as u16, outcome.into());
            let post = Post { job, by: JobOrNone(by), handle, lane, outcome: code };
            sink.record(post.at(self.now, Record::NO_CPU));
            if let Some(by) = by.filter(|_| outcome != PostOutcome::Posted) {
                let lane = self.metadata.operations[by.operation.index()].lane as u16;
                let wanted = Answer::refused_wcet(by, job.operation, wcet.unwrap_or(entry.wcet), lane);
                sink.record(wanted.at(self.now, Record::NO_CPU));
            }
        }
    }
}
