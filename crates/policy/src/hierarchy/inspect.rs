//! What stands where: the hierarchy as a list of edges.

use super::vp::{Bottom, Context, ProcessorId, Top, Vp, VpId, VpState};
use super::{Decision, Engine, Parameters, Refusal, Scheduler, SchedulerId, Width};
use talea_time::Work;

/// Who is above a virtual processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// The machine, which gives the root this processor.
    Machine(ProcessorId),
    /// Its parent.
    Scheduler(SchedulerId),
}

/// Who is below a virtual processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// A scheduler, which it is an own VP of.
    Scheduler(SchedulerId),
    /// A thread, which it is.
    Thread,
}

/// A virtual processor as an edge of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Its number.
    pub vp: VpId,
    /// Its upper end.
    pub above: Above,
    /// Its lower end.
    pub below: Below,
    /// What the lower end asks of the upper one: given on entry or changed by the last message.
    pub parameters: Parameters,
    /// Its state.
    pub state: VpState,
    /// Processor time received since it was registered first, wherever it was since, up to the instant of the last call.
    pub service: Work,
}

impl Engine {
    /// The schedulers that have not been removed, in the order of their seats: the root, which never leaves its, first.
    pub fn schedulers(&self) -> impl Iterator<Item = SchedulerId> + '_ {
        self.seats.iter().map(|seat| seat.id).filter(|id| self.is_seated(*id))
    }

    /// The kind of the scheduler; none if it has been removed.
    pub fn kind(&self, scheduler: SchedulerId) -> Option<&'static str> {
        self.is_seated(scheduler).then(|| self.seats[scheduler.index()].scheduler.kind())
    }

    /// The edges to the parents of `scheduler`, or to the machine, in the order in which they were given. None if it has been
    /// removed.
    pub fn parents(&self, scheduler: SchedulerId) -> impl Iterator<Item = Edge> + '_ {
        let own = if self.is_seated(scheduler) { &self.seats[scheduler.index()].own[..] } else { &[] };
        own.iter().filter_map(|vp| self.edge(*vp))
    }

    /// The edges to the children of `scheduler`, in the order of their numbers. Looks at every VP.
    pub fn children(&self, scheduler: SchedulerId) -> impl Iterator<Item = Edge> + '_ {
        self.edges().filter(move |edge| edge.above == Above::Scheduler(scheduler))
    }

    /// Every edge, in the order of their numbers.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        (0..self.vps.len() as u32).filter_map(|index| self.edge(VpId(index)))
    }

    /// The edge with this number, if there is one.
    pub fn edge(&self, vp: VpId) -> Option<Edge> {
        let it: &Vp = self.vps.get(vp.index())?;
        let above = match it.top {
            Top::Machine(processor) => Above::Machine(processor),
            Top::Scheduler(parent) => Above::Scheduler(parent),
            Top::Custody => unreachable!("custody ends before the call that began it"),
        };
        let below = match it.bottom {
            Bottom::Scheduler(id) => Below::Scheduler(id),
            Bottom::Thread => Below::Thread,
            Bottom::Nobody => return None,
        };
        let service = it.service_at(self.now);
        Some(Edge { vp, above, below, parameters: self.parameters[vp.index()], state: it.state, service })
    }
}

/// Who sits in a seat that nobody sits in. It has no VPs, so nobody ever asks it anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacant;

impl Scheduler for Vacant {
    fn kind(&self) -> &'static str {
        "vacant"
    }

    fn width(&self) -> Width {
        Width::Any
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        Box::new(*self)
    }

    fn register(&mut self, _cx: &Context<'_>, _child: VpId, _given: Parameters) -> Result<(), Refusal> {
        Err(Refusal::Gone)
    }

    fn unregister(&mut self, _cx: &Context<'_>, _child: VpId) {
        unreachable!("it has no children")
    }

    fn request(&mut self, _cx: &Context<'_>, _child: VpId) -> Decision {
        unreachable!("it has no children")
    }

    fn release(&mut self, _cx: &Context<'_>, _child: VpId, _held: Option<ProcessorId>) -> Decision {
        unreachable!("it has no children")
    }

    fn grant(&mut self, _cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        unreachable!("it has no parent")
    }

    fn revoke(&mut self, _cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        unreachable!("it has no parent")
    }

    fn init(&mut self, _own: VpId) {
        unreachable!("schedulers are seated before")
    }

    fn timer(&mut self, _cx: &Context<'_>) -> Decision {
        unreachable!("it asked for none")
    }

    fn check_invariants(&self, _cx: &Context<'_>) {}
}
