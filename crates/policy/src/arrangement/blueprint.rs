//! A node's hierarchy as values: who is to be seated where, before anybody is.
//!
//! Two blueprints can be compared, which is how a [running hierarchy](super::live) is brought from one description to the next.

use super::{ArrangeError, Promise, stated};
use crate::hierarchy::Parameters;
use crate::scheduler::{Announcing, Configuration, Facts, Row, row};
use talea_guarantee::derivation::Derivation;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::scheduler::{Deadlines, Intake};
use talea_model::{SchedulerKind, System, Under};
use talea_time::Duration;

/// A node's hierarchy as it is to be arranged.
#[derive(Clone, Debug, PartialEq)]
pub struct Blueprint {
    /// The schedulers, each behind all above it.
    pub schedulers: Vec<Post>,
    /// The threads, in file order.
    pub threads: Vec<Post>,
}

/// Somebody's place in a blueprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    /// Index into the description's schedulers or threads.
    pub index: usize,
    /// Its name, which is its own among both.
    pub name: String,
    /// What it is.
    pub role: PostRole,
    /// Its parents in the order of the description; none at the root.
    pub under: Vec<Tie>,
}

/// What somebody is in a blueprint.
#[derive(Clone, Debug, PartialEq)]
pub enum PostRole {
    /// A scheduler.
    Scheduler(Configuration, Announcing),
    /// A scheduler over lanes of tasks.
    Lanes,
    /// A thread.
    Thread,
}

/// One virtual processor in a blueprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Tie {
    /// Index of the scheduler above into the description's.
    pub scheduler: usize,
    /// Its name.
    pub parent: String,
    /// What the lower end registers with.
    pub parameters: Parameters,
    /// What it is to receive, if anything is known.
    pub promise: Option<Promise>,
}

impl Blueprint {
    /// The blueprint of `node`, which has a hierarchy, from what was derived about it.
    ///
    /// # Errors
    /// Those of [`ArrangeError`] that no engine is needed for.
    pub fn new(system: &System, node: usize, derivation: &Derivation) -> Result<Self, ArrangeError> {
        let drawing = Drawing { system, node, derivation };
        let schedulers: Result<_, _> =
            drawing.downwards().into_iter().map(|index| drawing.scheduler(index)).collect();
        let threads: Result<_, _> = system.threads_on(node).map(|index| drawing.thread(index)).collect();
        Ok(Blueprint { schedulers: schedulers?, threads: threads? })
    }

    /// Whoever goes by this name.
    pub fn post(&self, name: &str) -> Option<&Post> {
        self.posts().find(|post| post.name == name)
    }

    /// Everybody: schedulers, each behind all above it, and then threads.
    pub fn posts(&self) -> impl DoubleEndedIterator<Item = &Post> {
        self.schedulers.iter().chain(&self.threads)
    }

    /// Whether what somebody receives is bounded from above: by the promises to it, or because all that is above it is.
    pub fn is_capped(&self, name: &str) -> bool {
        let capped =
            |tie: &Tie| tie.promise.as_ref().is_some_and(Promise::is_maximum) || self.is_capped(&tie.parent);
        self.post(name).is_some_and(|post| !post.under.is_empty() && post.under.iter().all(capped))
    }

    /// Who is under `scheduler`, and how.
    pub fn children<'a>(&'a self, scheduler: &'a str) -> impl Iterator<Item = (&'a Post, &'a Tie)> {
        self.posts().flat_map(move |post| {
            post.under.iter().filter(move |tie| tie.parent == scheduler).map(move |tie| (post, tie))
        })
    }
}

impl Post {
    /// What it is to its parent of this name.
    pub fn tie(&self, parent: &str) -> Option<&Tie> {
        self.under.iter().find(|tie| tie.parent == parent)
    }
}

struct Drawing<'a> {
    system: &'a System,
    node: usize,
    derivation: &'a Derivation,
}

impl Drawing<'_> {
    /// The node's schedulers, each behind all above it.
    fn downwards(&self) -> Vec<usize> {
        let schedulers = &self.system.schedulers;
        let mut left: Vec<usize> =
            (0..schedulers.len()).filter(|index| schedulers[*index].node == self.node).collect();
        let mut order: Vec<usize> = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let is_next =
                |index: &usize| schedulers[*index].under.iter().all(|under| order.contains(&under.scheduler));
            let next = left.iter().position(is_next).expect("a validated hierarchy has no circles");
            order.push(left.remove(next));
        }
        order
    }

    fn facts(&self, index: usize) -> Facts<'_> {
        Facts::new(self.system, self.derivation, index)
    }

    /// How a scheduler is made.
    fn row(&self, index: usize) -> Result<&'static Row, ArrangeError> {
        let scheduler = &self.system.schedulers[index];
        row(scheduler.kind)
            .ok_or_else(|| ArrangeError::NoCode { scheduler: scheduler.name.clone(), kind: scheduler.kind })
    }

    fn scheduler(&self, index: usize) -> Result<Post, ArrangeError> {
        let scheduler = &self.system.schedulers[index];
        let processors = match scheduler.under.len() {
            0 => self.system.nodes[self.node].cpus.len(),
            parents => parents,
        };
        let role = if scheduler.kind == SchedulerKind::LANES {
            PostRole::Lanes
        } else {
            let row = self.row(index)?;
            if processors > 1 && row.processors() == Intake::One {
                let (scheduler, kind) = (scheduler.name.clone(), scheduler.kind);
                return Err(ArrangeError::OneProcessor { scheduler, kind, given: processors });
            }
            PostRole::Scheduler(row.configure(&self.facts(index))?, self.announcing(index))
        };
        let under = self.ties(&scheduler.name, &scheduler.under, None)?;
        Ok(Post { index, name: scheduler.name.clone(), role, under })
    }

    fn thread(&self, index: usize) -> Result<Post, ArrangeError> {
        let thread = &self.system.threads[index];
        let under = self.ties(&thread.name, &thread.under, thread.requires.as_ref())?;
        Ok(Post { index, name: thread.name.clone(), role: PostRole::Thread, under })
    }

    fn ties(
        &self,
        child: &str,
        under: &[Under],
        required: Option<&Guarantee>,
    ) -> Result<Vec<Tie>, ArrangeError> {
        let tie = |under: &Under| {
            let parent = self.system.schedulers[under.scheduler].name.clone();
            let above = under.scheduler;
            let parameters = self.row(above)?.parameters(&self.facts(above), child, &under.request)?;
            let promise = self.promise(&parent, child, required);
            Ok(Tie { scheduler: under.scheduler, parent, parameters, promise })
        };
        under.iter().map(tie).collect()
    }

    fn promise(&self, parent: &str, child: &str, required: Option<&Guarantee>) -> Option<Promise> {
        match self.derivation.between(parent, child).map(|edge| edge.label.absolute()) {
            // Of a thread that requires something and is promised nothing at all, the requirement is judged.
            Some(Guarantee::Null) | None if required.is_some() => required.cloned().map(Promise::Required),
            Some(guarantee @ (Guarantee::Ps(_) | Guarantee::Resu(_))) => {
                match stated::bound(self.system, self.derivation, (parent, child)) {
                    Some(bound) => Some(Promise::Stated(guarantee, bound)),
                    None => Some(Promise::Derived(guarantee)),
                }
            }
            derived => derived.map(Promise::Derived),
        }
    }

    /// What a scheduler tells of deadlines: with those of a share every quantum is done by its end at the rate that it has.
    fn announcing(&self, index: usize) -> Announcing {
        let scheduler = &self.system.schedulers[index];
        if !self.is_below_slower(index) {
            return Announcing::Nothing;
        }
        let in_real_time = |quantum: Duration| self.facts(index).in_real_time(quantum);
        match (scheduler.kind.deadlines, scheduler.quantum) {
            (Deadlines::Slices, Some(quantum)) => Announcing::Slices(in_real_time(quantum)),
            _ => Announcing::Deadlines,
        }
    }

    /// Whether deadlines come to a uniformly slower processor from there.
    fn is_below_slower(&self, index: usize) -> bool {
        self.system.schedulers[index].under.iter().any(|under| {
            match self.system.schedulers[under.scheduler].kind.deadlines {
                Deadlines::GoneBy => true,
                Deadlines::PassedOn => self.is_below_slower(under.scheduler),
                Deadlines::Told | Deadlines::Slices => false,
            }
        })
    }
}
