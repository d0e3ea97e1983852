//! Whether the edges of an arranged hierarchy receive what they were promised, while it runs.

use super::Promise;
use crate::hierarchy::{Context, Transition, VpId, VpState};
use serde::{Deserialize, Serialize};
use talea_guarantee::due::{Due, Sums};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Bound, Monitor, Standing, Violation};
use talea_time::{Duration, Instant, Work};

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
    /// By VP number: whose work is known, whatever is promised.
    working: Vec<Option<Working>>,
    /// Violations that came to light when somebody [asked](Self::kept), and that nobody has [taken](Self::found).
    found: Vec<(usize, Violation)>,
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
    },
    /// What happens on this virtual processor from `at` on concerns no edge.
    LetGo {
        /// The virtual processor.
        vp: VpId,
        /// Since when.
        at: Instant,
    },
}

impl Change {
    /// When it happens.
    pub fn at(&self) -> Instant {
        match self {
            Change::Held { at, .. } | Change::LetGo { at, .. } => *at,
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
    due: Option<Due>,
    /// Where that judge takes for received what was granted: since when a processor has been.
    granted: Option<Instant>,
    counts: Counts,
}

/// Somebody whose work is known, and whether there is any.
#[derive(Clone, Copy, Debug)]
struct Working {
    counts: Counts,
    tolerance: Duration,
    is_pending: bool,
}

/// What the judge of an edge's work takes for received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// What is granted.
    Grants,
    /// What it is [told](Watch::received): not what mechanisms cost.
    Work,
}

/// What came of an edge's promise. Times are in nanoseconds; instants are on the run's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// The guarantee, in time of the real processor; `NULL` where nothing was promised.
    pub guarantee: String,
    /// On what grounds.
    pub basis: Basis,
    /// Time for which the child wanted a processor; none where nobody saw that.
    pub wanted_ns: Option<i64>,
    /// Time for which it had one: that for which it was granted one, less what [`Self::receipts`] know to have been withheld.
    pub received_ns: i64,
    /// Windows judged, or times without service of a share with an error. `None` if the guarantee cannot be judged by what is
    /// seen: slower processors, shares in the long run, nothing.
    pub judged: Option<u64>,
    /// How many of them broke the promise by what was granted: the hierarchy's own fault.
    pub violations: u64,
    /// The violation of the greatest amount.
    pub worst: Option<Breach>,
    /// The same judged by what was received. None where nobody saw that, and in virtual time where nothing costs anything: there
    /// what is granted is received.
    #[serde(default)]
    pub receipts: Option<Receipts>,
    /// The same by the work that arrived and what was received of it, whatever the schedulers took for demand. None where nobody knows the
    /// work: of schedulers, and of threads whose jobs are not the run's.
    #[serde(default)]
    pub sums: Option<Sums>,
}

/// What became of a promise on a machine that did not always do what the hierarchy decided, or not for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// Of what was granted, what the machine withheld.
    pub withheld_ns: i64,
    /// Windows in which less was received than promised, or more.
    pub violations: u64,
    /// The violation of the greatest amount.
    pub worst: Option<Breach>,
    /// What was received is known up to here alone, where not all was seen of the rest: nothing is judged by that.
    #[serde(default)]
    pub known_until_ns: Option<i64>,
}

/// Whether a promise was kept, and if not, who broke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody saw what was wanted, or not all of what was received.
    NotJudged,
    /// Nothing that could be judged is promised.
    NotJudgeable,
    /// There was no window to judge.
    Untested,
    /// It was.
    Kept,
    /// The hierarchy did not grant what was promised.
    NotGranted,
    /// It was granted, and some of it was withheld: by the machine's kernel or, in virtual time, by what mechanisms cost.
    Withheld,
}

/// Why a guarantee is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It was derived.
    Derived,
    /// It could not be, but the thread requires it.
    Required,
    /// Nothing is promised.
    Nothing,
}

/// A window in which a promise was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Where the window begins.
    pub from_ns: i64,
    /// Where it ends.
    pub to_ns: i64,
    /// What was received in it.
    pub received_ns: i64,
    /// What was promised for it.
    pub promised_ns: i64,
    /// Whether that was the least or the most.
    pub bound: Side,
}

/// Which side of a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// It was a minimum.
    Least,
    /// It was a maximum.
    Most,
}

impl From<Violation> for Breach {
    fn from(violation: Violation) -> Self {
        Breach {
            from_ns: violation.from.as_nanos(),
            to_ns: violation.to.as_nanos(),
            received_ns: violation.received.as_nanos(),
            promised_ns: violation.promised.as_nanos(),
            bound: match violation.bound {
                Bound::Least => Side::Least,
                Bound::Most => Side::Most,
            },
        }
    }
}

impl Watch {
    /// A watch over nobody yet. What is short by no more than `tolerance` is no violation.
    pub fn new(tolerance: Duration) -> Self {
        let (edges, edge_of, working) = (Vec::new(), Vec::new(), Vec::new());
        Watch { tolerance, edges, edge_of, untold: None, working, found: Vec::new() }
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
            Change::Held { parent, child, promise, vp, state, at } => {
                let promise = promise.map(|promise| *promise);
                let guarantee = promise.as_ref().map_or(&Guarantee::Null, Promise::guarantee);
                let stated = promise.as_ref().and_then(Promise::stated);
                let mut monitor = Monitor::with_bound(guarantee, stated, self.tolerance, at);
                monitor.note(at, standing(state));
                let number = self.edges.len();
                let (due, granted, counts) = (None, None, Counts::Grants);
                self.edges.push(Watched { parent, child, promise, vp, monitor, due, granted, counts });
                if self.edge_of.len() <= vp.index() {
                    self.edge_of.resize(vp.index() + 1, None);
                }
                self.edge_of[vp.index()] = Some(number as u32);
                self.begin_judging(vp, state, at);
            }
            Change::LetGo { vp, at } => {
                if let Some(number) = self.edge_of.get_mut(vp.index()).and_then(Option::take) {
                    self.edges[number as usize].take_granted(at);
                    self.edges[number as usize].monitor.note(at, Standing::Waiting);
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
    ) -> usize {
        let number = self.edges.len();
        let (parent, child) = (parent.to_owned(), child.to_owned());
        let (state, at) = (cx.state(vp), cx.now());
        let promise = promise.map(Box::new);
        self.apply(Change::Held { parent, child, promise, vp, state, at });
        number
    }

    /// What happens on `vp` from `now` on concerns the edge no more; its account stays.
    pub fn let_go(&mut self, vp: VpId, now: Instant) {
        if self.edge_of(vp).is_some() {
            self.apply(Change::LetGo { vp, at: now });
        }
    }

    /// The number of the edge that is watched on this virtual processor, if one is.
    pub fn edge_of(&self, vp: VpId) -> Option<usize> {
        self.edge_of.get(vp.index()).copied().flatten().map(|number| number as usize)
    }

    /// Judges every edge up to `now`, as it stands, and none beyond it. Tells the violations that come to light by it.
    pub fn close_at(&mut self, now: Instant, mut broken: impl FnMut(usize, Violation)) {
        for (number, edge) in self.edges.iter_mut().enumerate() {
            if self.edge_of[edge.vp.index()] == Some(number as u32) {
                edge.bring_up_to(now);
                if let Some(violation) = edge.monitor.pass(now) {
                    broken(number, violation);
                }
                self.edge_of[edge.vp.index()] = None;
            }
        }
    }

    /// A virtual processor has come into another state at `now`. Returns the edge's number with the violation that
    /// has come to light by it.
    #[inline]
    pub fn note(&mut self, transition: Transition, now: Instant) -> Option<(usize, Violation)> {
        let number = (*self.edge_of.get(transition.vp.index())?)? as usize;
        self.edges[number].note_grant(transition.state, now);
        let violation = self.edges[number].monitor.note(now, standing(transition.state))?;
        Some((number, violation))
    }

    /// Who is on `vp` has no work at `now`, and its edge is judged by its work and what it receives from then on, too, of which somebody
    /// who has the work tells. What is missing by no more than `tolerance` is not missing.
    pub fn judge_work(&mut self, vp: VpId, counts: Counts, tolerance: Duration, now: Instant) {
        if self.working.len() <= vp.index() {
            self.working.resize(vp.index() + 1, None);
        }
        self.working[vp.index()] = Some(Working { counts, tolerance, is_pending: false });
        self.begin_judging(vp, VpState::Waiting, now);
    }

    /// How far behind the edge on `vp` may be from now on, while what is promised is the same: as far as it might before, or further.
    pub fn restate(&mut self, vp: VpId, promise: &Promise) {
        let Some(edge) = self.watched(vp) else { return };
        edge.promise = Some(promise.clone());
        edge.monitor.restate(promise.stated());
        if let Some(due) = &mut edge.due {
            due.restate(promise.stated());
        }
    }

    /// Nobody tells any more of the work of who is on `vp`, who leaves.
    pub fn forget_work(&mut self, vp: VpId) {
        if let Some(working) = self.working.get_mut(vp.index()) {
            *working = None;
        }
    }

    /// The edge on `vp`, where work is known, is judged by it from `at` on.
    fn begin_judging(&mut self, vp: VpId, state: VpState, at: Instant) {
        let Some(Working { counts, tolerance, is_pending }) = self.working.get(vp.index()).copied().flatten()
        else {
            return;
        };
        let Some(edge) = self.watched(vp) else { return };
        let guarantee = edge.promise.as_ref().map_or(&Guarantee::Null, Promise::guarantee);
        let stated = edge.promise.as_ref().and_then(Promise::stated);
        let mut due = Due::new(guarantee, stated, tolerance, at);
        if is_pending {
            due.work_arrives(at);
        }
        (edge.due, edge.counts) = (Some(due), counts);
        edge.note_grant(state, at);
    }

    fn set_pending(&mut self, vp: VpId, is_pending: bool) {
        if let Some(Some(working)) = self.working.get_mut(vp.index()) {
            working.is_pending = is_pending;
        }
    }

    /// There is work to do for who is below the edge on `vp`, from `now` on if there was none.
    pub fn work_arrives(&mut self, vp: VpId, now: Instant) {
        self.set_pending(vp, true);
        if let Some(due) = self.watched(vp).and_then(|edge| edge.due.as_mut()) {
            due.work_arrives(now);
        }
    }

    /// All of it is done at `now`.
    pub fn work_is_done(&mut self, vp: VpId, now: Instant) {
        self.set_pending(vp, false);
        let Some(edge) = self.watched(vp) else { return };
        edge.take_granted(now);
        if let Some(due) = &mut edge.due {
            due.work_is_done(now);
        }
    }

    /// It was worked at from `from` to `to`.
    pub fn received(&mut self, vp: VpId, (from, to): (Instant, Instant)) {
        if let Some(due) = self.watched(vp).and_then(|edge| edge.due.as_mut()) {
            due.received(from, to);
        }
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
        for (number, edge) in self.edges.iter_mut().enumerate() {
            if self.edge_of[edge.vp.index()] == Some(number as u32) {
                edge.bring_up_to(cx.now());
                let violation = edge.monitor.note(cx.now(), standing(cx.state(edge.vp)));
                self.found.extend(violation.map(|violation| (number, violation)));
            }
            kept.push(edge.kept());
        }
        kept
    }
}

impl Kept {
    /// What is known of an edge that nobody watches, but for what was received on it.
    pub fn unwatched((parent, child): (&str, &str), promise: Option<&Promise>, received: Work) -> Self {
        let (guarantee, basis) = expected(promise);
        Kept {
            parent: parent.to_owned(),
            child: child.to_owned(),
            guarantee,
            basis,
            wanted_ns: None,
            received_ns: received.as_nanos(),
            judged: None,
            violations: 0,
            worst: None,
            receipts: None,
            sums: None,
        }
    }

    /// The same, judged by what was received as well.
    #[must_use]
    pub fn with_receipts(mut self, receipts: Receipts) -> Self {
        self.received_ns = (self.received_ns - receipts.withheld_ns).max(0);
        self.receipts = Some(receipts);
        self
    }

    /// The same with instants that count from `start`.
    #[must_use]
    pub fn since(mut self, start: Instant) -> Self {
        let in_receipts = self.receipts.iter_mut().filter_map(|receipts| receipts.worst.as_mut());
        for breach in self.worst.iter_mut().chain(in_receipts) {
            breach.from_ns -= start.as_nanos();
            breach.to_ns -= start.as_nanos();
        }
        let known_until = self.receipts.iter_mut().filter_map(|receipts| receipts.known_until_ns.as_mut());
        known_until.for_each(|until| *until -= start.as_nanos());
        self
    }

    /// Whether it was kept by all that is known.
    pub fn verdict(&self) -> Verdict {
        let withheld = self.receipts.is_some_and(|receipts| receipts.violations > 0);
        let is_unknown = self.receipts.is_some_and(|receipts| receipts.known_until_ns.is_some());
        let is_due = self.sums.is_some_and(|sums| sums.wanted_ns > 0);
        let misses = self.misses_by_sums();
        match (self.judged, self.violations) {
            (Some(_), 0) if misses && self.receipts.is_none_or(|receipts| receipts.withheld_ns == 0) => {
                Verdict::NotGranted
            }
            (Some(_), 0) if misses => Verdict::Withheld,
            (None, _) if self.wanted_ns.is_none() => Verdict::NotJudged,
            (None, _) => Verdict::NotJudgeable,
            (Some(_), 1..) => Verdict::NotGranted,
            (Some(_), 0) if withheld => Verdict::Withheld,
            (Some(_), 0) if is_unknown => Verdict::NotJudged,
            // No window of it ended, but what was due at every instant was received.
            (Some(0), 0) if !is_due => Verdict::Untested,
            (Some(_), 0) => Verdict::Kept,
        }
    }

    /// Whether less was received than was due by the work that arrived, or more than a maximum, in no matter which windows.
    pub fn misses_by_sums(&self) -> bool {
        self.sums.is_some_and(|sums| sums.missing_ns > 0 || sums.excess_ns > 0)
    }

    /// Whether something is promised to somebody who wanted it, and nobody could judge whether it was kept.
    pub fn is_unjudged(&self) -> bool {
        let is_unknown =
            matches!(self.verdict(), Verdict::NotJudged | Verdict::NotJudgeable | Verdict::Untested);
        is_unknown && self.basis != Basis::Nothing && self.wanted_ns != Some(0)
    }

    /// In how many windows it was found broken, and the worst of them: by what was granted, or where this was enough by what was
    /// received.
    pub fn broken(&self) -> (u64, Option<&Breach>) {
        match &self.receipts {
            Some(receipts) if self.violations == 0 => (receipts.violations, receipts.worst.as_ref()),
            _ => (self.violations, self.worst.as_ref()),
        }
    }

    /// Whether it was found broken, by whomever.
    pub fn is_broken(&self) -> bool {
        matches!(self.verdict(), Verdict::NotGranted | Verdict::Withheld)
    }
}

/// A guarantee in words, and why it is expected.
fn expected(promise: Option<&Promise>) -> (String, Basis) {
    match promise {
        None | Some(Promise::Derived(Guarantee::Null)) => (Guarantee::Null.to_string(), Basis::Nothing),
        Some(Promise::Derived(guarantee) | Promise::Stated(guarantee, _)) => {
            (guarantee.to_string(), Basis::Derived)
        }
        Some(Promise::Required(guarantee)) => (guarantee.to_string(), Basis::Required),
    }
}

impl Watched {
    /// What has been granted up to `now` counts as received.
    fn take_granted(&mut self, now: Instant) {
        if let (Some(since), Some(due)) = (&mut self.granted, &mut self.due) {
            due.received(*since, now);
            *since = now;
        }
    }

    #[inline]
    fn note_grant(&mut self, state: VpState, now: Instant) {
        if self.due.is_none() || self.counts != Counts::Grants {
            return;
        }
        self.take_granted(now);
        self.granted = matches!(state, VpState::Running(_)).then_some(now);
    }

    /// What is due by `now` is held against what was received until then.
    fn bring_up_to(&mut self, now: Instant) {
        self.take_granted(now);
        if let Some(due) = &mut self.due {
            let _sums = due.until(now);
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
            sums: self.due.as_ref().map(Due::sums),
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
        }
    }

    #[test]
    fn others_are_told_of_every_change_once() {
        let mut watch = Watch::new(Duration::ZERO);
        let mut companion = Watch::new(Duration::ZERO);
        watch.tell();
        watch.apply(held(3));
        watch.let_go(VpId::from_index(4), ms(1));
        watch.let_go(VpId::from_index(3), ms(1));
        let told: Vec<Change> = watch.told().collect();
        assert_eq!(told, [held(3), Change::LetGo { vp: VpId::from_index(3), at: ms(1) }]);
        assert_eq!(watch.told().count(), 0);
        told.into_iter().for_each(|change| companion.apply(change));
        assert_eq!(companion.so_far(), watch.so_far());
        assert_eq!(companion.told().count(), 0, "nobody is told by it");
    }

    #[test]
    fn a_promise_is_kept_if_it_was_granted_and_received() {
        let mut watch = Watch::new(Duration::ZERO);
        watch.apply(held(0));
        let untested = watch.so_far().remove(0);
        assert_eq!(untested.verdict(), Verdict::Untested);
        let breach = Breach { from_ns: 30, to_ns: 40, received_ns: 1, promised_ns: 5, bound: Side::Least };
        let kept = Kept { judged: Some(8), received_ns: 100, ..untested };
        assert_eq!((kept.verdict(), kept.is_broken()), (Verdict::Kept, false));
        let fine = kept.clone().with_receipts(Receipts { withheld_ns: 10, ..Receipts::default() });
        let in_part = Receipts { known_until_ns: Some(1_000), ..Receipts::default() };
        assert_eq!(kept.clone().with_receipts(in_part).verdict(), Verdict::NotJudged);
        assert_eq!(
            kept.clone()
                .with_receipts(in_part)
                .since(Instant::from_nanos(400))
                .receipts
                .unwrap()
                .known_until_ns,
            Some(600)
        );
        assert_eq!((fine.verdict(), fine.received_ns), (Verdict::Kept, 90));
        let withheld = Receipts { withheld_ns: 10, violations: 2, worst: Some(breach), known_until_ns: None };
        let broken = kept.clone().with_receipts(withheld);
        assert_eq!((broken.verdict(), broken.is_broken()), (Verdict::Withheld, true));
        assert_eq!(broken.broken(), (2, Some(&breach)));
        let worst = broken.clone().since(Instant::from_nanos(30)).broken().1.copied().expect("the worst");
        assert_eq!((worst.from_ns, worst.to_ns), (0, 10));
        let ungranted = Kept { violations: 1, ..broken };
        assert_eq!((ungranted.verdict(), ungranted.broken()), (Verdict::NotGranted, (1, None)));
        assert_eq!(Kept { wanted_ns: None, judged: None, ..kept }.verdict(), Verdict::NotJudged);
    }
}
