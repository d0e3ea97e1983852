//! What a job takes when it begins and publishes when it completes, and what its values set off.

use crate::flow::{JobFlow, Shared};
use crate::kept_events::Unkept;
use crate::layout::{OperationSite, Visibility};
use crate::recorder::Subject;
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_model::OnValue;
use talea_operation::{Dropped, EventNote, Moment, Operation, Published, Stamp, TakenEvent};
use talea_policy::job::Job;
use talea_record::event::{
    Answer, Block, Deliver, Drop, EventsLost, Publish, Push, PushUnkept, Take, Unblock, ValueLost,
};
use talea_record::{DropReason, Event, EventLossReason, JobId, ValueLoss};
use talea_time::{Clock, Instant};

impl JobFlow {
    /// A job begins at `now` and takes what there is for it.
    pub fn take_values(
        &mut self,
        site: &OperationSite,
        operation: &mut Operation,
        (subject, job, now): (Subject, &Job, Instant),
        keeps_answers: bool,
    ) {
        let as_of = |input: usize| match site.visibility {
            // All that is there. What is newer than the beginning may have taken the place of what was there then.
            Visibility::AtOnce if !site.inputs[input].comes_early => Instant::MAX,
            Visibility::AtOnce => now,
            Visibility::AtPeriodEnds { .. } if site.inputs[input].is_of_instance => Instant::MAX,
            Visibility::AtPeriodEnds { deadline, .. } => job.deadline.saturating_add(-deadline),
        };
        let recorder = &mut self.recorder;
        let is_wanted = recorder.is_wanted(Event::TAKE);
        operation.take(
            |input| Moment { instance: job.number, as_of: as_of(input) },
            |value| {
                if is_wanted {
                    let input = &site.inputs[value.input];
                    let (now, lane, newest) = (MonotonicClock.now(), subject.lane as u16, value.taken.newest);
                    let is_told = keeps_answers && input.is_elsewhere;
                    if let Some(Stamp { visible_at, .. }) = newest.filter(|_| is_told) {
                        recorder.put_if_wanted(now, Answer::visible(subject.job, input.id, visible_at, lane));
                    }
                    let from = newest.map(|Stamp { instance, .. }| JobId { operation: input.from, instance });
                    let values = value.taken.values as u32;
                    recorder.put(now, Take { job: subject.job, from, input: input.id, values, lane });
                }
            },
        );
    }

    /// A job that began at `now` takes its events.
    pub fn take_events(
        &mut self,
        site: &OperationSite,
        operation: &mut Operation,
        subject: Subject,
        now: Instant,
    ) {
        let (job, lane, mut number) = (subject.job, subject.lane as u16, 0);
        let flow = RefCell::new(self);
        operation.take_events(
            Moment { instance: job.instance, as_of: now },
            |event| {
                let deliver = deliver(event, (job, number, lane));
                flow.borrow_mut().recorder.put_if_wanted(MonotonicClock.now(), deliver);
                number += 1;
            },
            |note| flow.borrow_mut().note(site, job, (note, MonotonicClock.now())),
        );
    }

    /// Records what a channel tells in a job.
    pub fn note(&mut self, site: &OperationSite, job: JobId, (note, now): (EventNote, Instant)) {
        let event = match note {
            EventNote::Pushed(_) => Event::PUSH,
            EventNote::Taken { .. } => Event::DELIVER,
            EventNote::Lost { .. } => Event::EVENT_LOST,
            EventNote::Blocked { .. } => Event::BLOCK,
            EventNote::Unblocked => Event::UNBLOCK,
            EventNote::Answered { .. } => Event::ANSWER,
            EventNote::NotKept => Event::VALUE_LOST,
            EventNote::PushNotKept(_) => Event::PUSH_UNKEPT,
        };
        if !self.recorder.is_wanted(event) {
            return;
        }
        let (lane, node) = (site.lane as u16, site.node as u16);
        match note {
            EventNote::Pushed(publication) => {
                let publication = publication.index() as u32;
                self.recorder.put_if_wanted(now, Push { job, publication, lane });
            }
            EventNote::Taken { event, number } => {
                self.recorder.put_if_wanted(now, deliver(event, (job, number, lane)));
            }
            EventNote::Lost { operation, events, why } => {
                let (operation, why) = (operation.index() as u32, EventLossReason::from(why).into());
                self.recorder.put_if_wanted(now, EventsLost { operation, events, node, why });
            }
            EventNote::Blocked { by } => {
                let by = by.map(|(operation, instance)| JobId { operation, instance });
                self.recorder.put_if_wanted(now, Block { job, by, lane });
            }
            EventNote::Unblocked => self.recorder.put_if_wanted(now, Unblock { job, lane }),
            EventNote::Answered { outcome, call } => {
                self.recorder.put_if_wanted(now, Answer::outcome(job, (call, outcome.into()), lane));
            }
            EventNote::NotKept => {
                let cause = ValueLoss::NoRoom.into();
                self.recorder.put_if_wanted(now, ValueLost { job, output: None, node, cause });
            }
            EventNote::PushNotKept(publication) => {
                let (publication, cause) = (publication.index() as u32, ValueLoss::NoRoom.into());
                self.recorder.put_if_wanted(now, PushUnkept { job, publication, node, cause });
            }
        }
    }

    /// Records that what a channel of the program has handed to a job, or it has pushed there, is not kept.
    pub fn lose_event(&mut self, site: &OperationSite, job: JobId, lost: Unkept, now: Instant) {
        let node = site.node as u16;
        match lost {
            Unkept::Taken(cause) => {
                self.recorder.put_if_wanted(now, ValueLost { job, output: None, node, cause: cause.into() });
            }
            Unkept::Pushed(publication, cause) => {
                let (publication, cause) = (publication.index() as u32, cause.into());
                self.recorder.put_if_wanted(now, PushUnkept { job, publication, node, cause });
            }
        }
    }

    /// A job has completed at `end`: its values go to their readers. What they trigger is [released](Self::release_by_values) after that.
    pub fn publish(
        &mut self,
        shared: &Shared,
        site: &OperationSite,
        operation: &mut Operation,
        (subject, job): (Subject, &Job),
        end: Instant,
    ) {
        let visible_at = match site.visibility {
            Visibility::AtOnce => end,
            Visibility::AtPeriodEnds { period, deadline } => {
                let planned = job.deadline.saturating_add(-deadline).saturating_add(period);
                if planned < end {
                    shared.tally.late_values.fetch_add(1, Ordering::Relaxed);
                }
                planned.max(end)
            }
        };
        let stamp = Stamp { instance: job.number, visible_at };
        self.values.clear();
        let is_sent = |output: usize| site.outputs[output].is_sent();
        if shared.link.is_some() && !operation.encode(&mut self.values, is_sent) {
            shared.tally.values_unsent.fetch_add(1, Ordering::Relaxed);
        }
        let lane = subject.lane as u16;
        let recorder = std::cell::RefCell::new(&mut self.recorder);
        let mut came_of = std::mem::take(&mut self.came_of);
        came_of.clear();
        operation.publish(
            stamp,
            |output, came| {
                came_of.push(came);
                if came != Published::Nothing {
                    let output = site.outputs[output].id;
                    let publish = Publish { job: subject.job, output, visible: visible_at, lane };
                    recorder.borrow_mut().put_if_wanted(end, publish);
                }
            },
            |output, Dropped { reader, instance }| {
                let (job, output) = (JobId { operation: site.id, instance }, &site.outputs[output]);
                match output.readers.get(reader) {
                    Some(&input) => {
                        let why = DropReason::NoRoom.into();
                        recorder.borrow_mut().put_if_wanted(end, Drop { job, input, lane, why });
                    }
                    // Behind the readers comes the end by which values are recorded.
                    None => {
                        let (cause, node) = (ValueLoss::NoRoom.into(), site.node as u16);
                        let lost = ValueLost { job, output: Some(output.id), node, cause };
                        recorder.borrow_mut().put_if_wanted(end, lost);
                    }
                }
            },
        );
        self.came_of = came_of;
    }

    /// Releases at `now` what the values trigger that a job, which is due at `due`, [published](Self::publish) last, at `end`. Does not ring.
    pub fn release_by_values(
        &mut self,
        shared: &Shared,
        site: &OperationSite,
        (end, due): (Instant, Instant),
        now: Instant,
    ) {
        let came_of = std::mem::take(&mut self.came_of);
        for (output, came) in site.outputs.iter().zip(&came_of) {
            for trigger in &output.triggers {
                let counts = match trigger.on {
                    OnValue::Value => *came != Published::Nothing,
                    OnValue::Change => *came == Published::New,
                };
                if counts {
                    self.count_value(shared, trigger, (end, due), now);
                }
            }
        }
        self.came_of = came_of;
    }
}

/// A job takes an event.
fn deliver(TakenEvent { publication, from }: TakenEvent, (job, number, lane): (JobId, u32, u16)) -> Deliver {
    Deliver::of((job, number, lane), publication, from)
}
