//! Whether the edges of an arranged hierarchy receive what they were promised, while it runs.

use super::Promise;
use super::cause::ChangeCause;
use super::kept::{Breach, Kept, expected};
use super::work::{ByWork, Counts, Workers, Working};
use crate::hierarchy::{Context, Transition, VpId, VpState};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Monitor, Standing, Violation};
use talea_time::{Duration, Instant};

/// The monitors of one hierarchy, fed with the [transitions](crate::hierarchy::Engine::transitions) of its engine.
///
/// It [tells](Self::told) others of its edges, which may judge by something else: what the engine decides is not always what a kernel
/// lets happen.
#[derive(Debug)]
pub struct Watch {
    /// What is short by no more is no violation.
    tolerance: Duration,
    edges: Vec<Watched>,
    /// By VP number: which edge.
    edge_of: Vec<Option<u32>>,
    /// What others have not been told yet, if there are any.
    untold: Option<Vec<Change>>,
    /// Whose work is known, whatever is promised.
    workers: Workers,
    /// Violations that came to light when somebody [asked](Self::kept), and that nobody has [taken](Self::found).
    found: Vec<(usize, Violation)>,
    /// Nothing is judged beyond: what is later counts as if it had come then.
    end: Instant,
}

/// Something has become of the edges that are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An edge is watched from `at` on.
    Held {
        /// The scheduler above.
        parent: String,
        /// The scheduler or thread below.
        child: String,
        /// What is expected.
        promise: Option<Box<Promise>>,
        /// Its virtual processor.
        vp: VpId,
        /// The state that this is in.
        state: VpState,
        /// Since when.
        at: Instant,
        /// Who made the edge, and why.
        cause: ChangeCause,
    },
    /// The edge stays and is promised the same, but what is asked above it or a scheduler at one of its ends is another from `at` on.
    Altered {
        /// Its virtual processor.
        vp: VpId,
        /// Since when.
        at: Instant,
        /// Who made it so, and why.
        cause: ChangeCause,
    },
    /// What happens on this virtual processor from `at` on concerns no edge.
    LetGo {
        /// The virtual processor.
        vp: VpId,
        /// Since when.
        at: Instant,
        /// Who has taken the edge away, and why.
        cause: ChangeCause,
    },
}

impl Change {
    /// When it happens.
    pub fn at(&self) -> Instant {
        match self {
            Change::Held { at, .. } | Change::Altered { at, .. } | Change::LetGo { at, .. } => *at,
        }
    }
}

#[derive(Debug)]
struct Watched {
    parent: String,
    child: String,
    promise: Option<Promise>,
    vp: VpId,
    monitor: Monitor,
    /// The judge that hears of work and not of states, if somebody who has the work tells it.
    by_work: Option<ByWork>,
}

impl Watch {
    /// A watch over nobody yet. What is short by no more than `tolerance` is no violation.
    pub fn new(tolerance: Duration) -> Self {
        let (edges, edge_of, workers) = (Vec::new(), Vec::new(), Workers::default());
        Watch { tolerance, edges, edge_of, untold: None, workers, found: Vec::new(), end: Instant::MAX }
    }

    /// Nothing is promised beyond this instant, which may come before the last decisions and changes do. These count as if they had come then.
    pub fn end_at(&mut self, end: Instant) {
        self.end = end;
    }

    /// What is short by no more is no violation.
    pub fn tolerance(&self) -> Duration {
        self.tolerance
    }

    /// From now on, [tells](Self::told) of changes.
    pub fn tell(&mut self) {
        self.untold.get_or_insert_default();
    }

    /// The changes since the last call, in the order in which they were made; nothing of a watch that does not [tell](Self::tell).
    pub fn told(&mut self) -> impl Iterator<Item = Change> {
        self.untold.iter_mut().flat_map(|untold| untold.drain(..))
    }

    /// Makes a change, and tells of it.
    fn apply(&mut self, change: Change) {
        if let Some(untold) = &mut self.untold {
            untold.push(change.clone());
        }
        match change {
            Change::Held { parent, child, promise, vp, state, at, .. } => {
                let promise = promise.map(|promise| *promise);
                let guarantee = promise.as_ref().map_or(&Guarantee::Null, Promise::guarantee);
                let stated = promise.as_ref().and_then(Promise::stated);
                let mut monitor = Monitor::with_bound(guarantee, stated, self.tolerance, at);
                // It has wanted nothing before.
                monitor.note(at, standing(state), &mut |_| {});
                let number = self.edges.len();
                self.edges.push(Watched { parent, child, promise, vp, monitor, by_work: None });
                if self.edge_of.len() <= vp.index() {
                    self.edge_of.resize(vp.index() + 1, None);
                }
                self.edge_of[vp.index()] = Some(number as u32);
                self.begin_judging(vp, state, at);
            }
            // Who is judged goes on as before.
            Change::Altered { .. } => {}
            Change::LetGo { vp, at, .. } => {
                if let Some(number) = self.edge_of.get_mut(vp.index()).and_then(Option::take) {
                    self.edges[number as usize].take_granted(at);
                    let found = &mut |violation| self.found.push((number as usize, violation));
                    self.edges[number as usize].monitor.let_go(at, found);
                }
            }
        }
    }

    /// Holds `parent` to its promise to `child` from now on, on the virtual processor `vp`. Returns the edge's number.
    pub fn hold(
        &mut self,
        (parent, child): (&str, &str),
        promise: Option<Promise>,
        vp: VpId,
        cx: &Context<'_>,
        cause: ChangeCause,
    ) -> usize {
        let number = self.edges.len();
        let (parent, child) = (parent.to_owned(), child.to_owned());
        let (state, at) = (cx.state(vp), cx.now().min(self.end));
        let promise = promise.map(Box::new);
        self.apply(Change::Held { parent, child, promise, vp, state, at, cause });
        number
    }

    /// What happens on `vp` from `now` on concerns the edge no more; its account stays.
    pub fn let_go(&mut self, vp: VpId, now: Instant, cause: ChangeCause) {
        if self.edge_of(vp).is_some() {
            self.apply(Change::LetGo { vp, at: now.min(self.end), cause });
        }
    }

    /// The edge on `vp` is promised the same, but what is asked above it or a scheduler at one of its ends is another from `now` on.
    pub fn alter(&mut self, vp: VpId, now: Instant, cause: ChangeCause) {
        if self.edge_of(vp).is_some() {
            self.apply(Change::Altered { vp, at: now.min(self.end), cause });
        }
    }

    /// The number of the edge that is watched on this virtual processor, if one is.
    pub fn edge_of(&self, vp: VpId) -> Option<usize> {
        self.edge_of.get(vp.index()).copied().flatten().map(|number| number as usize)
    }

    /// Judges every edge up to `now`, as it stands, and none beyond it. Tells the violations that come to light by it.
    pub fn close_at(&mut self, now: Instant, mut broken: impl FnMut(usize, Violation)) {
        let now = now.min(self.end);
        for (number, edge) in self.edges.iter_mut().enumerate() {
            if self.edge_of[edge.vp.index()] == Some(number as u32) {
                edge.bring_up_to(now);
                edge.monitor.pass(now, &mut |violation| broken(number, violation));
                self.edge_of[edge.vp.index()] = None;
            }
        }
    }

    /// A virtual processor has come into another state at `now`. `broken` hears of each violation that comes to light by it, with the number of
    /// the edge.
    #[inline]
    pub fn note(&mut self, transition: Transition, now: Instant, mut broken: impl FnMut(usize, Violation)) {
        let Some(number) = self.edge_of(transition.vp) else { return };
        let now = now.min(self.end);
        if let Some(by_work) = &mut self.edges[number].by_work {
            by_work.note_grant(transition.state, now);
        }
        let told = &mut |violation| broken(number, violation);
        self.edges[number].monitor.note(now, standing(transition.state), told);
    }

    /// Who is on `vp` has no work at `now`, and its edge is judged by its work and what it receives from then on, too, of which somebody
    /// who has the work tells. What is missing by no more than `tolerance` is not missing.
    pub fn judge_work(&mut self, vp: VpId, counts: Counts, tolerance: Duration, now: Instant) {
        self.workers.begin(vp, Working { counts, tolerance, is_pending: false });
        self.begin_judging(vp, VpState::Waiting, now.min(self.end));
    }

    /// How far behind the edge on `vp` may be from now on, while what is promised is the same: as far as it might before, or further.
    pub fn restate(&mut self, vp: VpId, promise: &Promise) {
        let Some(edge) = self.watched(vp) else { return };
        edge.promise = Some(promise.clone());
        edge.monitor.restate(promise.stated());
        if let Some(by_work) = &mut edge.by_work {
            by_work.restate(promise.stated());
        }
    }

    /// Nobody tells any more of the work of who is on `vp`, who leaves.
    pub fn forget_work(&mut self, vp: VpId) {
        self.workers.forget(vp);
    }

    /// The edge on `vp`, where work is known, is judged by it from `at` on.
    fn begin_judging(&mut self, vp: VpId, state: VpState, at: Instant) {
        let Some(working) = self.workers.of(vp) else { return };
        if let Some(edge) = self.watched(vp) {
            edge.by_work = Some(ByWork::new(edge.promise.as_ref(), working, state, at));
        }
    }

    /// There is work to do for who is below the edge on `vp`, from `now` on if there was none.
    #[inline]
    pub fn work_arrives(&mut self, vp: VpId, now: Instant) {
        let now = now.min(self.end);
        // Where there was some before, nothing changes.
        if self.workers.set_pending(vp, true)
            && let Some(by_work) = self.judge_by_work(vp)
        {
            by_work.work_arrives(now);
        }
    }

    /// All of it is done at `now`.
    #[inline]
    pub fn work_is_done(&mut self, vp: VpId, now: Instant) {
        let now = now.min(self.end);
        self.workers.set_pending(vp, false);
        if let Some(by_work) = self.judge_by_work(vp) {
            by_work.work_is_done(now);
        }
    }

    /// It was worked at from `from` to `to`.
    #[inline]
    pub fn received(&mut self, vp: VpId, (from, to): (Instant, Instant)) {
        let (from, to) = (from.min(self.end), to.min(self.end));
        if let Some(by_work) = self.judge_by_work(vp) {
            by_work.received(from, to);
        }
    }

    #[inline]
    fn judge_by_work(&mut self, vp: VpId) -> Option<&mut ByWork> {
        self.watched(vp)?.by_work.as_mut()
    }

    #[inline]
    fn watched(&mut self, vp: VpId) -> Option<&mut Watched> {
        let number = (*self.edge_of.get(vp.index())?)?;
        Some(&mut self.edges[number as usize])
    }

    /// The edges by number: parent, child, and what is promised.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str, Option<&Promise>)> {
        self.edges.iter().map(|edge| (edge.parent.as_str(), edge.child.as_str(), edge.promise.as_ref()))
    }

    /// What has come of every promise up to the last transition on its edge, edges by number.
    pub fn so_far(&self) -> Vec<Kept> {
        self.edges.iter().map(Watched::kept).collect()
    }

    /// The violations that came to light when somebody asked what has come of promises, with the number of their edge. Each is found once.
    pub fn found(&mut self) -> impl Iterator<Item = (usize, Violation)> {
        self.found.drain(..)
    }

    /// Whether there are such violations.
    #[inline]
    pub fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// What has come of every promise up to the instant of `cx`, edges by number.
    pub fn kept(&mut self, cx: &Context<'_>) -> Vec<Kept> {
        let mut kept = Vec::with_capacity(self.edges.len());
        let now = cx.now().min(self.end);
        for (number, edge) in self.edges.iter_mut().enumerate() {
            if self.edge_of[edge.vp.index()] == Some(number as u32) {
                edge.bring_up_to(now);
                let told = &mut |violation| self.found.push((number, violation));
                edge.monitor.note(now, standing(cx.state(edge.vp)), told);
            }
            kept.push(edge.kept());
        }
        kept
    }
}

impl Watched {
    /// What has been granted up to `now` counts as received.
    fn take_granted(&mut self, now: Instant) {
        if let Some(by_work) = &mut self.by_work {
            by_work.take_granted(now);
        }
    }

    /// What is due by `now` is held against what was received until then.
    fn bring_up_to(&mut self, now: Instant) {
        if let Some(by_work) = &mut self.by_work {
            by_work.bring_up_to(now);
        }
    }

    fn kept(&self) -> Kept {
        let tally = self.monitor.tally();
        let (guarantee, basis) = expected(self.promise.as_ref());
        Kept {
            parent: self.parent.clone(),
            child: self.child.clone(),
            guarantee,
            basis,
            wanted_ns: Some(tally.wanted.as_nanos()),
            received_ns: tally.received.as_nanos(),
            judged: self.monitor.judges().then_some(tally.judged),
            violations: tally.violations,
            worst: tally.worst.map(Breach::from),
            receipts: None,
            sums: self.by_work.as_ref().map(ByWork::sums),
            exceeded_ns: None,
            is_held_late: false,
        }
    }
}

fn standing(state: VpState) -> Standing {
    match state {
        VpState::Waiting => Standing::Waiting,
        VpState::Ready => Standing::Ready,
        VpState::Running(_) => Standing::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Engine, Parameters, Trigger};
    use crate::scheduler::{Announcing, Configuration, config};
    use talea_time::Work;

    fn ms(ms: i64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn held(vp: u32) -> Change {
        Change::Held {
            parent: "RES".into(),
            child: "video".into(),
            promise: Some(Box::new(Promise::Derived("RESBS 5ms 10ms".parse().expect("a guarantee")))),
            vp: VpId::from_index(vp),
            state: VpState::Waiting,
            at: ms(0),
            cause: ChangeCause::DESCRIBED,
        }
    }

    #[test]
    fn others_are_told_of_every_change_once() {
        let mut watch = Watch::new(Duration::ZERO);
        let mut companion = Watch::new(Duration::ZERO);
        watch.tell();
        watch.apply(held(3));
        let cause = ChangeCause::ENDED;
        watch.let_go(VpId::from_index(4), ms(1), cause);
        watch.let_go(VpId::from_index(3), ms(1), cause);
        let told: Vec<Change> = watch.told().collect();
        assert_eq!(told, [held(3), Change::LetGo { vp: VpId::from_index(3), at: ms(1), cause }]);
        assert_eq!(watch.told().count(), 0);
        told.into_iter().for_each(|change| companion.apply(change));
        assert_eq!(companion.so_far(), watch.so_far());
        assert_eq!(companion.told().count(), 0, "nobody is told by it");
    }

    /// Who is judged comes and goes until nobody decides any more, which is a moment after the planned end.
    #[test]
    fn what_comes_after_the_end_counts_as_if_it_had_come_then() {
        let mut engine = Engine::new(1);
        let scheduler = Configuration::from(config::RoundRobin { quantum: Work::from_millis(1) });
        let root = engine.add_root(scheduler.build(Announcing::Nothing).expect("it has no parameters"));
        let vp = engine.add_thread(root, Parameters::None).expect("there is room");
        let mut watch = Watch::new(Duration::ZERO);
        watch.end_at(ms(10));
        engine.advance(ms(12));
        let promise = Promise::Derived("PS 1".parse().expect("a guarantee"));
        watch.hold(("RR", "thread"), Some(promise), vp, &engine.context(), ChangeCause::DESCRIBED);
        let ready = Transition { vp, state: VpState::Ready, trigger: Trigger::Thread(vp) };
        watch.note(ready, ms(11), |_, violation| panic!("{violation:?}"));
        assert_eq!(watch.kept(&engine.context())[0].wanted_ns, Some(0));
        watch.close_at(ms(10), |_, violation| panic!("{violation:?}"));
    }
}
