//! Running one job: from START to COMPLETE or ABORT, on whatever thread the lane chose.

use super::enforcement::JobHost;
use crate::flow::{JobFlow, Shared};
use crate::job_table::{Begin, Finish};
use crate::layout::OperationSite;
use crate::operation::{Behaviour, JobContext, JobPayloads};
use crate::outcome::OperationPanic;
use crate::payloads::Payload;
use crate::posting::Posted;
use crate::recorder::Subject;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use talea_policy::demand;
use talea_policy::job::Job;
use talea_record::event::{Dates, Flag};
use talea_record::{CostKind, JobId};

/// How the code of a job came back.
enum Return {
    /// It ran to its end.
    Whole,
    /// It was told that the run is over and may have left early: it neither completed nor was aborted.
    CutShort,
    /// It panicked.
    Panicked,
}

/// Runs `job`, records it, and releases its successors without ringing. `depth` is the number of jobs
/// in the lane. Returns whether the job ran; a dead one does not.
pub(crate) fn execute(
    shared: &Shared,
    flow: &mut JobFlow,
    host: &mut impl JobHost,
    job: &Job,
    depth: usize,
) -> Begin {
    if shared.jobs.begin(job.tag, job.number) == Begin::Dead {
        return Begin::Dead;
    }
    let operation = shared.operation_of(job.tag);
    let site = shared.layout.operation(operation);
    let subject = Subject { job: JobId { operation, instance: job.number }, lane: site.lane };
    let depth = depth.min(usize::from(u16::MAX)) as u16;
    host.begin(flow, subject.job, |flow, now| {
        flow.recorder.put(now, subject.start(depth));
    });

    let payload = Cell::new(Payload::EMPTY);
    let returned = call(shared, site, job, &payload, (host, flow));

    let finish = || shared.jobs.finish(job.tag, job.number);
    let completion = host.end(flow, finish, |flow, end, finish| {
        flow.count_end(shared, site.node, end);
        let dates = Dates { nominal: site.nominal_release(job), deadline: job.deadline };
        match (returned, finish) {
            (Return::Panicked, _) | (_, Finish::Aborted) => {
                flow.recorder.put(end, subject.abort(dates, Flag(true)));
                None
            }
            (Return::CutShort, Finish::Completed) => None,
            (Return::Whole, Finish::Completed) => {
                flow.recorder.put(end, subject.complete(dates));
                Some(end)
            }
        }
    });
    if let Some(end) = completion
        && !site.successors.is_empty()
    {
        let began = flow.recorder.stopwatch();
        flow.tell_successors(shared, subject, (job, &payload.get()), end);
        flow.recorder.cost(began, CostKind::Delivery, Some(site.lane), site.successors.len());
    }
    Begin::Run
}

fn call(
    shared: &Shared,
    site: &OperationSite,
    job: &Job,
    payload: &Cell<Payload>,
    (host, flow): (&impl JobHost, &mut JobFlow),
) -> Return {
    let told_the_end = Cell::new(false);
    let checkpoint = || {
        host.checkpoint();
        let over = shared.is_over(site.node);
        told_the_end.set(told_the_end.get() || over);
        over
    };
    let flow = RefCell::new(flow);
    let post = |posted: Posted| flow.borrow_mut().post(shared, posted);
    let reader = site.local.expect("an operation of this process");
    let context = JobContext {
        jobs: &shared.jobs,
        name: &site.name,
        job,
        handle: shared.posting.handle(job.tag),
        payloads: JobPayloads { all: &shared.payloads, reader, attached: payload },
        checkpoint: &checkpoint,
        post: &post,
    };
    match shared.behaviour(site.id) {
        Behaviour::Synthetic => {
            let demand = demand::execution_from(&site.exec, site.stream, job.number);
            shared.burner.burn(demand, || context.aborted());
        }
        Behaviour::User(operation) => {
            let mut code = operation.take();
            // The user's closure is called again for the next job whatever state a panic left it in;
            // what it keeps is its own business.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| code(&context))) {
                note_panic(shared, site, job, panic);
                return Return::Panicked;
            }
        }
    }
    if told_the_end.get() { Return::CutShort } else { Return::Whole }
}

fn note_panic(shared: &Shared, site: &OperationSite, job: &Job, panic: Box<dyn Any + Send>) {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    let operation = site.name.to_string();
    let mut panics = shared.tally.panics.lock().unwrap_or_else(PoisonError::into_inner);
    panics.push(OperationPanic { operation, instance: job.number, message });
}
