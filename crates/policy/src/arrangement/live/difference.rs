//! What has to happen to an engine that one blueprint becomes another, and making it happen.
//!
//! ```text
//!   1 schedulers that gain a child and are different for it (the base of a plan)   replaced
//!   2 newcomers are seated, movers move, who leaves is removed
//!   3 schedulers that are different for another reason                            replaced
//!   4 children that ask for something else                                        told to their parent
//! ```
//!
//! Threads come and go by those who run them: before a blueprint without them, after one with them.

use super::{Live, Moved, Renewed};
use crate::arrangement::{Blueprint, Post, PostRole, Tie};
use crate::hierarchy::{
    Above, Engine, Message, Parameters, ReconfigureError, Refusal, Replacement, Scheduler, SchedulerId, VpId,
};
use crate::scheduler::KindError;
use std::collections::BTreeMap;
use talea_time::Instant;

/// One step from a blueprint to the next; names are those of the description.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A new scheduler.
    Seat(Post),
    /// A scheduler goes.
    Unseat(String),
    /// Another scheduler in the place of one, with what each child asks of it.
    Replace(Post, Vec<(String, Parameters)>),
    /// Other parents.
    Move(Post),
    /// A child asks its parent for something else; where the parent takes no such message, one that is told of all of them at
    /// once takes its place.
    Change { child: String, parameters: Parameters, parent: Post, all: Vec<(String, Parameters)> },
}

/// A step that was refused. Whoever rehearses has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// A scheduler says no.
    #[error("{who}: {refusal}")]
    Refused {
        /// Who was to be seated, moved or told.
        who: String,
        /// Why not.
        refusal: Refusal,
    },
    /// The hierarchy cannot be changed like this.
    #[error("{who}: {source}")]
    Impossible {
        /// Who was to be changed.
        who: String,
        /// Why not.
        source: ReconfigureError,
    },
    /// There is no scheduler with these parameters.
    #[error("scheduler \"{who}\": {error}")]
    Kind {
        /// Its name.
        who: String,
        /// Why.
        error: KindError,
    },
    /// Somebody has left since the change was planned.
    #[error("\"{0}\" has just left")]
    Left(String),
}

/// The steps from `old` to `new`. `joining` is a thread that is not there until all of them have been made.
pub(super) fn steps(old: &Blueprint, new: &Blueprint, joining: Option<&str>) -> Vec<Step> {
    let gains = |name: &str| new.children(name).any(|(post, _)| tie_in(old, post, name).is_none());
    let (early, late): (Vec<Step>, Vec<Step>) = replacements(old, new, joining)
        .partition(|step| matches!(step, Step::Replace(post, _) if gains(&post.name)));
    early.into_iter().chain(rearrangements(old, new)).chain(late).chain(changes(old, new)).collect()
}

fn tie_in<'a>(blueprint: &'a Blueprint, post: &Post, parent: &str) -> Option<&'a Tie> {
    blueprint.post(&post.name).and_then(|post| post.tie(parent))
}

fn parents(post: &Post) -> impl Iterator<Item = &str> {
    post.under.iter().map(|tie| tie.parent.as_str())
}

/// Schedulers of both blueprints that are not the same in both, with the children that they have when it is their turn.
fn replacements<'a>(
    old: &'a Blueprint,
    new: &'a Blueprint,
    joining: Option<&'a str>,
) -> impl Iterator<Item = Step> + 'a {
    let differs = |post: &&Post| old.post(&post.name).is_some_and(|before| before.role != post.role);
    new.schedulers.iter().filter(differs).map(move |post| {
        let name = post.name.as_str();
        let there = |child: &Post| Some(child.name.as_str()) != joining;
        let gains = new.children(name).any(|(child, _)| tie_in(old, child, name).is_none());
        let children: Vec<(String, Parameters)> = match gains {
            // Before they come, so that whoever is there is asked what is true then.
            true => {
                let asks = |(child, tie): (&Post, &Tie)| {
                    let tie = tie_in(new, child, name).unwrap_or(tie);
                    (child.name.clone(), tie.parameters)
                };
                old.children(name).map(asks).collect()
            }
            false => new
                .children(name)
                .filter(|(child, _)| there(child))
                .map(|(child, tie)| (child.name.clone(), tie.parameters))
                .collect(),
        };
        Step::Replace(post.clone(), children)
    })
}

fn rearrangements<'a>(old: &'a Blueprint, new: &'a Blueprint) -> impl Iterator<Item = Step> + 'a {
    let newcomers = new.schedulers.iter().filter(|post| old.post(&post.name).is_none());
    let moved = |post: &&Post| old.post(&post.name).is_some_and(|before| !parents(before).eq(parents(post)));
    let movers = new.posts().filter(moved);
    let leavers = old.schedulers.iter().rev().filter(|post| new.post(&post.name).is_none());
    newcomers
        .cloned()
        .map(Step::Seat)
        .chain(movers.cloned().map(Step::Move))
        .chain(leavers.map(|post| Step::Unseat(post.name.clone())))
}

/// Requests that differ under schedulers that do not. Several at once are one replacement by the same scheduler, so that their order
/// does not matter.
fn changes<'a>(old: &'a Blueprint, new: &'a Blueprint) -> impl Iterator<Item = Step> + 'a {
    let stays = |post: &&Post| old.post(&post.name).is_some_and(|before| before.role == post.role);
    new.schedulers.iter().filter(stays).filter_map(move |post| {
        let all = new.children(&post.name).filter_map(|(child, tie)| {
            // Movers have said what they want when they moved.
            let before = tie_in(old, child, &post.name)?;
            Some((child, tie, before.parameters != tie.parameters))
        });
        let all: Vec<(&Post, &Tie, bool)> = all.collect();
        let mut changed = all.iter().filter(|(.., changed)| *changed);
        let (first, more) = (changed.next()?, changed.next().is_some());
        let all = all.iter().map(|(child, tie, _)| (child.name.clone(), tie.parameters)).collect();
        Some(match more {
            true => Step::Replace(post.clone(), all),
            false => {
                let (child, parameters) = (first.0.name.clone(), first.1.parameters);
                Step::Change { child, parameters, parent: post.clone(), all }
            }
        })
    })
}

/// Steps under way on an engine, with everybody's numbers.
pub(super) struct Walk<'a> {
    engine: &'a mut Engine,
    now: Instant,
    schedulers: BTreeMap<String, SchedulerId>,
    threads: &'a BTreeMap<String, VpId>,
    dropped: Vec<VpId>,
}

impl<'a> Walk<'a> {
    pub fn new(live: &'a Live, engine: &'a mut Engine, now: Instant) -> Self {
        Walk { engine, now, schedulers: live.schedulers.clone(), threads: &live.threads, dropped: Vec::new() }
    }

    /// Makes all steps.
    ///
    /// # Errors
    /// The first refusal; the steps before it have been made.
    pub fn all(mut self, steps: &[Step]) -> Result<Renewed, StepError> {
        steps.iter().try_for_each(|step| self.step(step))?;
        Ok(Renewed { schedulers: self.schedulers, dropped: self.dropped })
    }

    fn step(&mut self, step: &Step) -> Result<(), StepError> {
        match step {
            Step::Seat(post) => {
                let parents = self.above(post)?;
                self.engine.advance(self.now);
                let added = self.engine.add(build(post)?, &parents);
                let id = added.map_err(|refusal| StepError::Refused { who: quoted(&post.name), refusal })?;
                self.schedulers.insert(post.name.clone(), id);
                Ok(())
            }
            Step::Unseat(name) => {
                let id = self.scheduler(name)?;
                self.dropped.extend(self.engine.parents(id).map(|edge| edge.vp));
                self.engine.remove(id, self.now).map_err(|source| impossible(name, source))?;
                self.schedulers.remove(name);
                Ok(())
            }
            Step::Move(post) => self.go(post),
            Step::Replace(post, children) => self.replace(post, children),
            Step::Change { child, parameters, parent, all } => {
                let (id, vp) = (self.scheduler(&parent.name)?, self.vp(child, &parent.name)?);
                let told = self.engine.message(id, Some(vp), Message::Change(*parameters), self.now);
                match told {
                    Ok(()) => Ok(()),
                    Err(Refusal::NotUnderstood { .. }) => self.replace(parent, all),
                    Err(refusal) => Err(StepError::Refused { who: quoted(child), refusal }),
                }
            }
        }
    }

    fn go(&mut self, post: &Post) -> Result<(), StepError> {
        let parents = self.above(post)?;
        let gone = |source| impossible(&post.name, source);
        match (&post.role, parents.first()) {
            (PostRole::Thread, Some((parent, parameters))) => {
                let vp = self.thread(&post.name)?;
                self.engine.move_thread(vp, *parent, *parameters, self.now).map_err(gone)
            }
            _ => {
                let id = self.scheduler(&post.name)?;
                self.engine.move_scheduler(id, &parents, self.now).map_err(gone)
            }
        }
    }

    fn replace(&mut self, post: &Post, children: &[(String, Parameters)]) -> Result<(), StepError> {
        let id = self.scheduler(&post.name)?;
        let children: Vec<(VpId, Parameters)> = children
            .iter()
            .map(|(child, parameters)| Ok((self.vp(child, &post.name)?, *parameters)))
            .collect::<Result<_, StepError>>()?;
        let replacement = Replacement { scheduler: build(post)?, children: &children, parents: &[] };
        let replaced = self.engine.replace(id, replacement, self.now);
        replaced.map_err(|source| match source {
            ReconfigureError::Child { child, refusal } => {
                StepError::Refused { who: self.name_of(child), refusal }
            }
            source => impossible(&post.name, source),
        })
    }

    /// Who is above, with what is asked of them.
    fn above(&self, post: &Post) -> Result<Vec<(SchedulerId, Parameters)>, StepError> {
        post.under.iter().map(|tie| Ok((self.scheduler(&tie.parent)?, tie.parameters))).collect()
    }

    fn scheduler(&self, name: &str) -> Result<SchedulerId, StepError> {
        self.schedulers.get(name).copied().ok_or_else(|| StepError::Left(name.into()))
    }

    fn thread(&self, name: &str) -> Result<VpId, StepError> {
        self.threads.get(name).copied().ok_or_else(|| StepError::Left(name.into()))
    }

    /// The virtual processor between two.
    fn vp(&self, child: &str, parent: &str) -> Result<VpId, StepError> {
        vp_between(self.engine, &self.schedulers, self.threads, (parent, child))
            .ok_or_else(|| StepError::Left(child.into()))
    }

    fn name_of(&self, vp: VpId) -> String {
        let thread = self.threads.iter().find(|(_, own)| **own == vp).map(|(name, _)| name);
        let is_own = |id: &SchedulerId| self.engine.parents(*id).any(|edge| edge.vp == vp);
        let scheduler = self.schedulers.iter().find(|(_, id)| is_own(id)).map(|(name, _)| name);
        thread.or(scheduler).map_or_else(|| "a child".into(), |name| quoted(name))
    }
}

/// The virtual processor between a parent and a child, by name, if both are there.
pub(super) fn vp_between(
    engine: &Engine,
    schedulers: &BTreeMap<String, SchedulerId>,
    threads: &BTreeMap<String, VpId>,
    (parent, child): (&str, &str),
) -> Option<VpId> {
    let above = Above::Scheduler(*schedulers.get(parent)?);
    let edge = match (threads.get(child), schedulers.get(child)) {
        (Some(vp), _) => engine.edge(*vp).filter(|edge| edge.above == above),
        (None, Some(id)) => engine.parents(*id).find(|edge| edge.above == above),
        (None, None) => None,
    };
    edge.map(|edge| edge.vp)
}

fn build(post: &Post) -> Result<Box<dyn Scheduler>, StepError> {
    let PostRole::Scheduler(kind, announcing) = &post.role else {
        panic!("lanes and threads are neither seated nor replaced while they run");
    };
    kind.build(*announcing).map_err(|error| StepError::Kind { who: post.name.clone(), error })
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn impossible(who: &str, source: ReconfigureError) -> StepError {
    let who = quoted(who);
    match source {
        ReconfigureError::Refused(refusal) => StepError::Refused { who, refusal },
        source => StepError::Impossible { who, source },
    }
}

/// Edges whose promise is another one in `new`, or which are new ones.
pub(super) fn moved_promises(old: &Blueprint, new: &Blueprint) -> Vec<Moved> {
    let of = |post: &Post, tie: &Tie| {
        let before = tie_in(old, post, &tie.parent);
        let is_same = before.is_some_and(|before| before.promise == tie.promise);
        (!is_same).then(|| Moved {
            parent: tie.parent.clone(),
            child: post.name.clone(),
            before: before.and_then(|before| before.promise.clone()),
            after: tie.promise.clone(),
        })
    };
    new.posts().flat_map(|post| post.under.iter().filter_map(move |tie| of(post, tie))).collect()
}

/// Parents and children of edges that stay in `new` with the same guarantee, but above which something else is asked, or whose scheduler above
/// or below is another one.
pub(super) fn altered(old: &Blueprint, new: &Blueprint) -> Vec<(String, String)> {
    let is_other =
        |name: &str| match (old.post(name).map(|post| &post.role), new.post(name).map(|post| &post.role)) {
            (Some(PostRole::Scheduler(before, _)), Some(PostRole::Scheduler(after, _))) => before != after,
            _ => false,
        };
    let is_altered = |post: &Post, tie: &Tie| {
        let stays = tie_in(old, post, &tie.parent).filter(|before| match (&before.promise, &tie.promise) {
            (Some(before), Some(after)) => before.is_like(after),
            (before, after) => before.is_none() && after.is_none(),
        });
        stays.is_some_and(|before| {
            before.parameters != tie.parameters || is_other(&tie.parent) || is_other(&post.name)
        })
    };
    let of_post = |post: &Post| {
        let ties = post.under.iter().filter(|tie| is_altered(post, tie));
        ties.map(|tie| (tie.parent.clone(), post.name.clone())).collect::<Vec<_>>()
    };
    new.posts().flat_map(of_post).collect()
}
