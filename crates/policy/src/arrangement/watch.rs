//! Whether the edges of an arranged hierarchy receive what they were promised, while it runs.

use super::Promise;
use crate::hierarchy::{Context, Transition, VpId, VpState};
use serde::{Deserialize, Serialize};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Bound, Monitor, Standing, Violation};
use talea_time::{Duration, Instant, Work};

/// The monitors of one hierarchy, fed with the [transitions](crate::hierarchy::Engine::transitions) of its engine.
#[derive(Debug)]
pub struct Watch {
    /// What is short by no more is no violation.
    tolerance: Duration,
    edges: Vec<Watched>,
    /// By VP number: which edge.
    edge_of: Vec<Option<u32>>,
}

#[derive(Debug)]
struct Watched {
    parent: String,
    child: String,
    promise: Option<Promise>,
    vp: VpId,
    monitor: Monitor,
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
    /// Time for which it was granted one.
    pub received_ns: i64,
    /// Windows judged, or times without service of a share with an error. `None` if the guarantee cannot be judged by what is
    /// seen: slower processors, shares in the long run, nothing.
    pub judged: Option<u64>,
    /// How many of them broke the promise.
    pub violations: u64,
    /// The violation of the greatest amount.
    pub worst: Option<Breach>,
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
        Watch { tolerance, edges: Vec::new(), edge_of: Vec::new() }
    }

    /// Holds `parent` to its promise to `child` from now on, on the virtual processor `vp`. Returns the edge's number.
    pub fn hold(
        &mut self,
        (parent, child): (&str, &str),
        promise: Option<Promise>,
        vp: VpId,
        cx: &Context<'_>,
    ) -> usize {
        let guarantee = promise.as_ref().map_or(&Guarantee::Null, Promise::guarantee);
        let mut monitor = Monitor::new(guarantee, self.tolerance, cx.now());
        monitor.note(cx.now(), standing(cx.state(vp)));
        let number = self.edges.len();
        let (parent, child) = (parent.to_owned(), child.to_owned());
        self.edges.push(Watched { parent, child, promise, vp, monitor });
        if self.edge_of.len() <= vp.index() {
            self.edge_of.resize(vp.index() + 1, None);
        }
        self.edge_of[vp.index()] = Some(number as u32);
        number
    }

    /// What happens on `vp` from `now` on concerns the edge no more; its account stays.
    pub fn let_go(&mut self, vp: VpId, now: Instant) {
        if let Some(number) = self.edge_of.get_mut(vp.index()).and_then(Option::take) {
            self.edges[number as usize].monitor.note(now, Standing::Waiting);
        }
    }

    /// A virtual processor has come into another state at `now`. Returns the edge's number with the violation that
    /// has come to light by it.
    #[inline]
    pub fn note(&mut self, transition: Transition, now: Instant) -> Option<(usize, Violation)> {
        let number = (*self.edge_of.get(transition.vp.index())?)? as usize;
        let violation = self.edges[number].monitor.note(now, standing(transition.state))?;
        Some((number, violation))
    }

    /// Judges every edge up to the instant of `cx`, and none beyond it. Tells the violations that come to light by it.
    pub fn close(&mut self, cx: &Context<'_>, mut broken: impl FnMut(usize, Violation)) {
        for (number, edge) in self.edges.iter_mut().enumerate() {
            if self.edge_of[edge.vp.index()] == Some(number as u32) {
                if let Some(violation) = edge.monitor.note(cx.now(), standing(cx.state(edge.vp))) {
                    broken(number, violation);
                }
                self.edge_of[edge.vp.index()] = None;
            }
        }
    }

    /// The edges by number: parent, child, and what is promised.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str, Option<&Promise>)> {
        self.edges.iter().map(|edge| (edge.parent.as_str(), edge.child.as_str(), edge.promise.as_ref()))
    }

    /// The number of the first edge between the same two as that of `number`: another promise between them is held as another
    /// edge.
    pub fn first_between(&self, number: usize) -> usize {
        let Watched { parent, child, .. } = &self.edges[number];
        let same = self.edges.iter().position(|edge| edge.parent == *parent && edge.child == *child);
        same.unwrap_or(number)
    }

    /// What has come of every promise up to the last transition on its edge, edges by number.
    pub fn so_far(&self) -> Vec<Kept> {
        self.edges.iter().map(Watched::kept).collect()
    }

    /// What has come of every promise up to the instant of `cx`, edges by number.
    pub fn kept(&mut self, cx: &Context<'_>) -> Vec<Kept> {
        let mut kept = Vec::with_capacity(self.edges.len());
        for (number, edge) in self.edges.iter_mut().enumerate() {
            if self.edge_of[edge.vp.index()] == Some(number as u32) {
                edge.monitor.note(cx.now(), standing(cx.state(edge.vp)));
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
        }
    }
}

/// A guarantee in words, and why it is expected.
fn expected(promise: Option<&Promise>) -> (String, Basis) {
    match promise {
        None | Some(Promise::Derived(Guarantee::Null)) => (Guarantee::Null.to_string(), Basis::Nothing),
        Some(Promise::Derived(guarantee)) => (guarantee.to_string(), Basis::Derived),
        Some(Promise::Required(guarantee)) => (guarantee.to_string(), Basis::Required),
    }
}

impl Watched {
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
