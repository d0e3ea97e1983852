//! What is recorded of dispatching: who pays for what and when, and what is said between nodes.
//!
//! It stands apart, is cold and knows no sink by its type, so that the code of a simulation without such records stays as
//! it is without them.

use super::promises::received_of;
use super::{Node, Slot};
use crate::ledger::Paid;
use talea_model::OperationId;
use talea_policy::hierarchy::VpId;
use talea_record::event::{Cost, Guard, JobOrNone, MessageLost, Receive, Send, Signal};
use talea_record::{CostKind, JobId, LossReason, Record, Sink};
use talea_time::Instant;

impl Node {
    /// Whether dispatching is recorded.
    #[inline]
    pub(super) fn records_dispatch(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.is_recorded)
    }

    /// Records the payments that are complete at `now`.
    #[inline]
    pub fn pay(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.records_dispatch() {
            self.record_payments(now, sink);
        }
    }

    #[cold]
    fn record_payments(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(ledger) = &mut self.ledger else { return };
        for (index, processor) in self.processors.iter().enumerate() {
            let Some(vp) = processor.running else { continue };
            while let Some(paid) = ledger.complete(index, vp, now) {
                let slot = self.slots[vp.index()].as_ref().expect("a running job has a slot");
                let lane = self.lanes[slot.lane as usize].source;
                sink.record(cost_record(self.index, processor.cpu, lane, paid, now));
            }
        }
    }

    /// Records what the jobs that have processors have paid of payments that are not complete at `now`, the end.
    pub fn pay_off(&mut self, now: Instant, sink: &mut dyn Sink) {
        for index in 0..self.processors.len() {
            if let Some(vp) = self.processors[index].running {
                self.stop_paying(index, vp, now, sink);
            }
        }
    }

    /// The job that has the processor pays what it owes, from `now` on.
    #[inline]
    pub(super) fn begin_paying(&mut self, index: usize, vp: VpId, now: Instant) {
        let Some(ledger) = &mut self.ledger else { return };
        ledger.begin(index, vp, now);
        if let Some(received) = received_of(&mut self.watch) {
            received.pays(index, ledger.paid_at(index, vp), now);
        }
    }

    /// The job that has the processor stops paying, and what it has paid is recorded.
    #[inline]
    pub(super) fn stop_paying(&mut self, index: usize, vp: VpId, now: Instant, sink: &mut dyn Sink) {
        if self.ledger.is_some() {
            self.record_stop(index, vp, now, sink);
        }
    }

    #[cold]
    fn record_stop(&mut self, index: usize, vp: VpId, now: Instant, sink: &mut dyn Sink) {
        let Some(ledger) = &mut self.ledger else { return };
        while let Some(paid) = ledger.complete(index, vp, now).or_else(|| ledger.stop(index, vp, now)) {
            if ledger.is_recorded {
                let slot = self.slots[vp.index()].as_ref().expect("a job that pays has a slot");
                let lane = self.lanes[slot.lane as usize].source;
                sink.record(cost_record(self.index, self.processors[index].cpu, lane, paid, now));
            }
        }
        if let Some(received) = received_of(&mut self.watch) {
            received.pays(index, None, now);
        }
    }

    /// Records that the completion of `job` is told to `successor` on another node, if dispatching is recorded.
    #[inline]
    pub fn send(&self, slot: &Slot, successor: OperationId, now: Instant, sink: &mut dyn Sink) {
        if self.records_dispatch() {
            self.record_send(slot, successor, now, sink);
        }
    }

    #[cold]
    fn record_send(&self, slot: &Slot, successor: OperationId, now: Instant, sink: &mut dyn Sink) {
        let send = Send { job: slot.id, to: successor.index() as u64, lane: self.source(slot) };
        sink.record(send.at(now, Record::NO_CPU));
    }

    /// Records that word of the completion of `job` does not reach the job that waits for it on another node.
    #[cold]
    pub fn lose(&self, slot: &Slot, waiting: JobId, now: Instant, sink: &mut dyn Sink) {
        let JobId { operation, instance } = waiting;
        let (to, lane) = (operation.index() as u64, self.source(slot));
        let lost = MessageLost { job: slot.id, to, instance, lane, why: LossReason::Link.into() };
        sink.record(lost.at(now, Record::NO_CPU));
    }

    /// Records that a message for `job` arrives, which `from` sent, if that is wanted.
    #[inline]
    pub fn receive(&self, job: JobId, from: (JobId, Instant), now: Instant, sink: &mut dyn Sink) {
        if self.records_messages || self.records_dispatch() {
            self.record_receive(job, from, now, sink);
        }
    }

    /// Records that all that `job` needs is done, if dispatching is recorded.
    pub fn signal(&self, job: JobId, now: Instant, sink: &mut dyn Sink) {
        if self.records_dispatch() {
            sink.record(Signal { job, lane: self.lane_of(job) }.at(now, Record::NO_CPU));
        }
    }

    /// Records that `job` waits at its guard, if dispatching is recorded.
    pub fn hold(&self, job: JobId, until: Instant, now: Instant, sink: &mut dyn Sink) {
        if self.records_dispatch() {
            sink.record(Guard { job, until, lane: self.lane_of(job) }.at(now, Record::NO_CPU));
        }
    }

    /// The lane of a job of the node, as records number it.
    fn lane_of(&self, job: JobId) -> u16 {
        let service = self.services[job.operation.index()].expect("it is an operation of the node");
        self.lanes[service.lane as usize].source
    }

    #[cold]
    fn record_receive(&self, job: JobId, (from, sent): (JobId, Instant), now: Instant, sink: &mut dyn Sink) {
        let (sent, from, lane) = (Some(sent), JobOrNone(Some(from)), self.lane_of(job));
        sink.record(Receive { job, sent, from, lane }.at(now, Record::NO_CPU));
    }
}

/// A payment on a processor of the node. What interrupts is nobody's lane.
fn cost_record(node: u16, cpu: u16, lane: u16, paid: Paid, now: Instant) -> Record {
    let Paid { kind, cost, count } = paid;
    let lane = (kind != CostKind::Release).then_some(lane);
    let cost = cost.at_full_speed();
    Cost { cost, count, node: node.into(), lane, kind: kind.into() }.at(now, cpu)
}
