//! The records of what the schedulers of a hierarchy decide: one for each transition of a virtual processor that stands at an edge.
//!
//! The engine tells which state a virtual processor has come into and what had set it off. Readers know edges and processors by
//! number, and want to know what happened. So this keeps the state before, and makes of
//!
//! | Before | After | Record |
//! |---|---|---|
//! | Waiting | Ready | request |
//! | Ready | Running | grant |
//! | Running | Ready | revoke |
//! | Ready, Running | Waiting | release |
//! | as before | | next job |

use crate::event::{
    ChangeAuthor, ChangeKind, ChangeReason, Code, EdgeChange, Flag, NextJob, Trigger, VpGrant, VpRelease,
    VpRequest, VpRevoke,
};
use crate::{EdgeNumbers, Record};
use talea_policy::arrangement::live::Insistence;
use talea_policy::arrangement::{self, ChangeCause, Watch};
use talea_policy::hierarchy::{self, Transition, VpId, VpState};
use talea_time::Instant;

/// Makes records of the decisions of one node's hierarchy.
#[derive(Debug)]
pub struct DecisionRecords {
    /// Linux numbers, in the order of the hierarchy's processors.
    cpus: Vec<u16>,
    edges: EdgeNumbers,
    /// By VP number.
    states: Vec<VpState>,
    /// By VP number: the edge at which it stood last, all ones of none.
    stood_at: Vec<u16>,
}

impl EdgeChange {
    fn of(edge: u16, what: ChangeKind, cause: ChangeCause) -> Self {
        let ChangeCause { by, why, insistence } = cause;
        let (process, user) = match by {
            arrangement::ChangeAuthor::Operator { process, user } => (process, user),
            _ => (0, 0),
        };
        let (by, why) = (ChangeAuthor::from(by).into(), ChangeReason::from(why).into());
        EdgeChange {
            edge,
            what: what.into(),
            by,
            why,
            process,
            user,
            forced: Flag(insistence == Insistence::Forced),
        }
    }
}

/// A virtual processor that stands at no edge.
const NOWHERE: u16 = u16::MAX;

/// Virtual processors that a hierarchy has, with those that come, without allocating.
const VPS: usize = 1024;

impl DecisionRecords {
    /// Of a hierarchy on these processors in which everybody waits.
    pub fn new(cpus: &[u16], edges: EdgeNumbers) -> Self {
        DecisionRecords {
            cpus: cpus.to_vec(),
            edges,
            states: vec![VpState::Waiting; VPS],
            stood_at: vec![NOWHERE; VPS],
        }
    }

    /// The record of a transition at `now`; none where it is at no edge that the tables have. `watch` knows who stands at which edge.
    #[inline]
    pub fn record(&mut self, transition: Transition, watch: &Watch, now: Instant) -> Option<Record> {
        let Transition { vp, state, trigger } = transition;
        self.make_room(vp);
        let before = std::mem::replace(&mut self.states[vp.index()], state);
        let edge = self.number(watch, vp)?;
        self.stood_at[vp.index()] = edge;
        let (trigger, by) = self.told(trigger, watch);
        self.of(edge, (before, state), (trigger, by), now)
    }

    /// The records at the run's beginning, of who is not waiting then.
    pub fn beginning<'a>(&'a self, watch: &'a Watch, now: Instant) -> impl Iterator<Item = Record> + 'a {
        let told = (Trigger::Beginning.into(), None);
        let of = move |(index, state): (usize, &VpState)| {
            let edge = self.number(watch, VpId::from_index(index as u32))?;
            let wants = (*state != VpState::Waiting).then_some((VpState::Waiting, VpState::Ready));
            let has = matches!(state, VpState::Running(_)).then_some((VpState::Ready, *state));
            Some([wants, has].into_iter().flatten().filter_map(move |turn| self.of(edge, turn, told, now)))
        };
        self.states.iter().enumerate().filter_map(of).flatten()
    }

    /// The records of a change of the hierarchy at `now`: the edge that is the node's `own`th is held on `vp` from now on.
    pub fn added(
        &mut self,
        own: usize,
        vp: VpId,
        now: Instant,
        cause: ChangeCause,
    ) -> impl Iterator<Item = Record> + use<> {
        self.make_room(vp);
        let edge = self.edges.number(own);
        self.stood_at[vp.index()] = edge.unwrap_or(NOWHERE);
        let told = (Trigger::Change.into(), None);
        let standing = edge.map(|edge| {
            let added = EdgeChange::of(edge, ChangeKind::Added, cause).at(now, Record::NO_CPU);
            let state = self.states[vp.index()];
            let wants = (state != VpState::Waiting).then_some((VpState::Waiting, VpState::Ready));
            let has = matches!(state, VpState::Running(_)).then_some((VpState::Ready, state));
            [
                Some(added),
                wants.and_then(|turn| self.of(edge, turn, told, now)),
                has.and_then(|turn| self.of(edge, turn, told, now)),
            ]
        });
        standing.into_iter().flatten().flatten()
    }

    /// The edge that is the node's `own`th, which the tables have, is held on `vp`, though nothing has happened there yet.
    pub fn stands(&mut self, own: usize, vp: VpId) {
        self.make_room(vp);
        self.stood_at[vp.index()] = self.edges.number(own).unwrap_or(NOWHERE);
    }

    /// The same: what happens on `vp` is no edge's any more.
    pub fn removed(&mut self, vp: VpId, now: Instant, cause: ChangeCause) -> Option<Record> {
        self.make_room(vp);
        let edge = std::mem::replace(&mut self.stood_at[vp.index()], NOWHERE);
        (edge != NOWHERE).then(|| EdgeChange::of(edge, ChangeKind::Removed, cause).at(now, Record::NO_CPU))
    }

    /// The same: the edge on `vp` stays, and is another one.
    pub fn altered(&mut self, vp: VpId, now: Instant, cause: ChangeCause) -> Option<Record> {
        self.make_room(vp);
        let edge = self.stood_at[vp.index()];
        (edge != NOWHERE).then(|| EdgeChange::of(edge, ChangeKind::Altered, cause).at(now, Record::NO_CPU))
    }

    fn make_room(&mut self, vp: VpId) {
        if self.states.len() <= vp.index() {
            self.states.resize(vp.index() + 1, VpState::Waiting);
            self.stood_at.resize(vp.index() + 1, NOWHERE);
        }
    }

    fn number(&self, watch: &Watch, vp: VpId) -> Option<u16> {
        self.edges.number(watch.edge_of(vp)?)
    }

    /// What set a transition off, as records have it, and the edge of the thread behind it.
    fn told(&self, trigger: hierarchy::Trigger, watch: &Watch) -> (Code<Trigger>, Option<u32>) {
        let (trigger, thread) = match trigger {
            hierarchy::Trigger::Thread(vp) => (Trigger::Thread, Some(vp)),
            hierarchy::Trigger::Job(vp) => (Trigger::Job, Some(vp)),
            hierarchy::Trigger::Timer => (Trigger::Timer, None),
            hierarchy::Trigger::SchedulingPoint => (Trigger::SchedulingPoint, None),
            hierarchy::Trigger::Change => (Trigger::Change, None),
            hierarchy::Trigger::Supply => (Trigger::Supply, None),
        };
        let by = thread.and_then(|vp| self.number(watch, vp));
        (trigger.into(), by.map(u32::from))
    }

    fn of(
        &self,
        edge: u16,
        (before, after): (VpState, VpState),
        (trigger, by): (Code<Trigger>, Option<u32>),
        now: Instant,
    ) -> Option<Record> {
        let cpu = |state: VpState| match state {
            VpState::Running(processor) => self.cpus[processor.index()],
            VpState::Waiting | VpState::Ready => Record::NO_CPU,
        };
        Some(match (before, after) {
            (VpState::Waiting, VpState::Ready) => VpRequest { edge, by, trigger }.at(now, Record::NO_CPU),
            (VpState::Ready, VpState::Running(_)) => VpGrant { edge, by, trigger }.at(now, cpu(after)),
            (VpState::Running(_), VpState::Ready) => VpRevoke { edge, by, trigger }.at(now, cpu(before)),
            (VpState::Ready | VpState::Running(_), VpState::Waiting) => {
                VpRelease { edge, by, trigger }.at(now, cpu(before))
            }
            _ if trigger == Trigger::Job => NextJob { edge }.at(now, cpu(after)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Typed;
    use talea_policy::arrangement::ChangeReason::{NotAdmitted, ThreadAdded};
    use talea_policy::arrangement::{ChangeAuthor::Operator, ChangeCause};

    fn told(record: Option<Record>) -> EdgeChange {
        match record.expect("a record").typed() {
            Typed::EdgeChange(change) => change,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_says_who_made_it_and_why() {
        let edges = EdgeNumbers { first: 0, known: 1, total: 1, node: 0, nodes: 1 };
        let mut records = DecisionRecords::new(&[0], edges);
        let (vp, now) = (VpId::from_index(7), Instant::from_nanos(5));
        let cause = ChangeCause::careful(Operator { process: 4711, user: 1000 }, ThreadAdded);
        assert_eq!(records.altered(vp, now, cause), None, "nothing stands there");
        let added = told(records.added(1, vp, now, cause).next());
        let (by, why) = (ChangeAuthor::Operator.into(), ChangeReason::ThreadAdded.into());
        let expected = EdgeChange {
            edge: 1,
            what: ChangeKind::Added.into(),
            by,
            why,
            process: 4711,
            user: 1000,
            forced: Flag(false),
        };
        assert_eq!(added, expected);
        let altered = told(records.altered(vp, now, cause));
        assert_eq!(altered, EdgeChange { what: ChangeKind::Altered.into(), ..expected });
        let forced = ChangeCause { insistence: Insistence::Forced, ..cause };
        let altered = told(records.altered(vp, now, forced));
        assert_eq!((altered.forced, altered.user), (Flag(true), 1000));
        let removed = told(records.removed(vp, now, forced.not_admitted()));
        assert_eq!(removed.forced, Flag(true), "giving it up again is of the same request");
        assert_eq!(removed.why, ChangeReason::from(NotAdmitted));
        assert_eq!((removed.by, removed.process), (by, 4711));
        let ended = told(records.added(2, vp, now, ChangeCause::ENDED).next());
        assert_eq!((ended.by, ended.process, ended.user), (ChangeAuthor::Member.into(), 0, 0));
    }
}
