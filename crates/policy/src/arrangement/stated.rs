//! How far behind a share in the long run, or a slower processor, may be.
//!
//! The derivation says of such an edge what it comes to in the limit, and no run reaches that. What the schedulers that there are do is more,
//! and is stated here, so that a run can be judged by it. What a scheduler adds, with quantum `q`, `T` children of which this one has the
//! fraction `r`, to the fraction `r` of what it is behind itself:
//!
//! | Scheduler | Behind by |
//! |---|---|
//! | stride | `2 (T + 1) q`: a quantum relative to each sibling, at both ends of a window |
//! | lottery | `2 q`, and six standard deviations of its draws: `6 sqrt(t q r (1 - r))` in `t` |
//! | sfq, proportional-share | `2 (T + 1) q`, and twice what warps let siblings be ahead |
//! | sfs | `2 (p T + 2) q` on `p` processors: after two quanta somebody who is behind goes first, when each sibling's turn has ended |
//! | soft-cbs | twice the reservation's period |
//! | bss-i, pshed | twice what is due in the longest time between two deadlines: of a thread, or of the slices of shares |
//!
//! Kinds that are registered by programs state nothing, and what they promise in the long run is not judged.

use crate::scheduler::Facts;
use num_traits::ToPrimitive;
use talea_guarantee::derivation::Derivation;
use talea_guarantee::exact::Ratio;
use talea_guarantee::guarantee::{Guarantee, Kind};
use talea_guarantee::label::Label;
use talea_guarantee::monitor::LongRun;
use talea_guarantee::rewrite::Choice;
use talea_guarantee::scheduler::{Behind, Deadlines};
use talea_model::{Request, Scheduler, System, ThreadWork};
use talea_time::Duration;

/// The bound of the edge from `parent` to `child`.
pub(super) fn bound(system: &System, derivation: &Derivation, edge: (&str, &str)) -> Option<LongRun> {
    let Ok(stated) = Stating { system, derivation }.of(edge) else { return None };
    Some(LongRun { behind: nanos(stated.behind), chance: nanos(stated.chance) })
}

fn nanos(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.ceil() as i64)
}

/// A bound in nanoseconds, as [`LongRun`] has it.
#[derive(Clone, Copy, Debug, Default)]
struct Stated {
    behind: f64,
    chance: f64,
}

/// Nothing is stated.
struct Unstated;

struct Stating<'a> {
    system: &'a System,
    derivation: &'a Derivation,
}

impl Stating<'_> {
    fn of(&self, (parent, child): (&str, &str)) -> Result<Stated, Unstated> {
        let edge = self.derivation.between(parent, child).ok_or(Unstated)?;
        match edge.label.absolute() {
            Guarantee::Ps(_) => self.of_share((parent, child), in_f64(edge.label.absolute_share().ratio())),
            Guarantee::Resu(_) => self.of_speed((parent, child), in_f64(edge.label.absolute_share().ratio())),
            other => as_share(other),
        }
    }

    fn scheduler(&self, name: &str) -> Result<(usize, &Scheduler), Unstated> {
        let mut schedulers = self.system.schedulers.iter().enumerate();
        schedulers.find(|(_, scheduler)| scheduler.name == name).ok_or(Unstated)
    }

    /// What the scheduler is behind itself, and the share that it has.
    fn input(&self, name: &str) -> Result<(Stated, f64), Unstated> {
        let (_, scheduler) = self.scheduler(name)?;
        let parents = scheduler.under.iter().map(|under| &self.system.schedulers[under.scheduler].name);
        let mut sum = (Stated::default(), 0.0);
        for parent in parents {
            let edge = self.derivation.between(parent, name).ok_or(Unstated)?;
            let stated = self.of((parent, name))?;
            sum.0.behind += stated.behind;
            sum.0.chance += stated.chance;
            sum.1 += in_f64(edge.label.absolute_share().ratio());
        }
        if scheduler.under.is_empty() {
            for given in &self.derivation.given {
                sum.0.behind += as_share(given.absolute())?.behind;
                sum.1 += in_f64(given.absolute_share().ratio());
            }
        }
        Ok(sum)
    }

    fn of_share(&self, (parent, child): (&str, &str), share: f64) -> Result<Stated, Unstated> {
        let (index, scheduler) = self.scheduler(parent)?;
        if scheduler.kind.behind == Behind::PassedOn {
            return self.passed_on(parent, child);
        }
        let (input, whole) = self.input(parent)?;
        let fraction = if whole > 0.0 { (share / whole).min(1.0) } else { return Err(Unstated) };
        let facts = Facts::new(self.system, self.derivation, index);
        let quantum = facts.quantum_time().as_nanos() as f64;
        let children = facts.requests().count() as f64;
        let processors = match scheduler.under.len() {
            0 => self.system.nodes[scheduler.node].cpus.len(),
            parents => parents,
        } as f64;
        let own = match scheduler.kind.behind {
            Behind::Turns => 2.0 * (children + 1.0) * quantum,
            Behind::Draws => 2.0 * quantum,
            Behind::Warps => 2.0 * ((children + 1.0) * quantum + warps(&facts)),
            Behind::Surplus => 2.0 * (processors * children + 2.0) * quantum,
            Behind::Periods => 2.0 * period(&facts, child).ok_or(Unstated)?,
            Behind::Unstated | Behind::PassedOn | Behind::Deadlines => return Err(Unstated),
        };
        let deviations = (LongRun::DEVIATIONS * LongRun::DEVIATIONS) as f64;
        let chance = match scheduler.kind.behind {
            Behind::Draws => deviations * quantum * fraction * (1.0 - fraction),
            _ => 0.0,
        };
        Ok(Stated {
            behind: fraction * input.behind + own,
            // Square roots add up to at most the root of twice the sum.
            chance: if chance > 0.0 && input.chance > 0.0 {
                2.0 * (chance + fraction * fraction * input.chance)
            } else {
                chance + fraction * fraction * input.chance
            },
        })
    }

    /// Nothing is divided: the child has what one of the edges above has.
    fn passed_on(&self, name: &str, child: &str) -> Result<Stated, Unstated> {
        let (_, scheduler) = self.scheduler(name)?;
        let given = self.derivation.between(name, child).ok_or(Unstated)?.label.absolute_share();
        for under in &scheduler.under {
            let above = &self.system.schedulers[under.scheduler].name;
            let edge = self.derivation.between(above, name).ok_or(Unstated)?;
            if edge.label.absolute_share() == given {
                return self.of((above, name));
            }
        }
        Err(Unstated)
    }

    fn of_speed(&self, (parent, child): (&str, &str), speed: f64) -> Result<Stated, Unstated> {
        let (_, scheduler) = self.scheduler(parent)?;
        match scheduler.kind.behind {
            Behind::PassedOn => return self.passed_on(parent, child),
            Behind::Deadlines if self.is_always_entitled(child) => {}
            _ => return Err(Unstated),
        }
        let slice = scheduler.quantum.unwrap_or_default().as_nanos() as f64;
        let between = self.between_deadlines(child, speed).max(slice);
        let input = self.input(parent)?.0;
        Ok(Stated { behind: 2.0 * speed * between + input.behind, chance: 0.0 })
    }

    /// Whether all that is wanted below counts: a thread, and shares, which are served in slices. Other schedulers want what is spared
    /// beside what they announce deadlines for, which nobody owes them; their children are judged instead.
    fn is_always_entitled(&self, child: &str) -> bool {
        match self.scheduler(child) {
            Ok((_, scheduler)) => scheduler.kind.deadlines == Deadlines::Slices,
            Err(Unstated) => true,
        }
    }

    /// The longest time between two deadlines that `child` announces, at this speed.
    fn between_deadlines(&self, child: &str, speed: f64) -> f64 {
        if let Some(thread) = self.system.threads.iter().find(|thread| thread.name == child) {
            return match &thread.work {
                ThreadWork::Bursts { period, .. } => period.as_nanos() as f64,
                _ => 0.0,
            };
        }
        // The end of each quantum at this speed.
        self.scheduler(child).map_or(0.0, |(_, scheduler)| {
            scheduler.quantum.unwrap_or_default().as_nanos() as f64 / speed.max(1e-9)
        })
    }
}

/// What is promised in every window.
fn as_share(guarantee: Guarantee) -> Result<Stated, Unstated> {
    if guarantee == Guarantee::All {
        return Ok(Stated::default());
    }
    let share = Label::real(guarantee).rewrite(Kind::Psbe, &Choice::default()).map_err(|_| Unstated)?;
    match share.label.absolute() {
        Guarantee::Psbe { error, .. } => Ok(Stated { behind: in_f64(error.nanos()), ..Stated::default() }),
        _ => Err(Unstated),
    }
}

/// Virtual time by which all children together may be ahead.
fn warps(facts: &Facts<'_>) -> f64 {
    let ahead = |(_, request): (&str, &Request)| match request {
        Request::Share { weight, warp } => warp.as_nanos() as f64 * f64::from(weight.get()),
        _ => 0.0,
    };
    facts.requests().map(ahead).sum()
}

/// The period that the child asks for.
fn period(facts: &Facts<'_>, child: &str) -> Option<f64> {
    let (_, request) = facts.requests().find(|(name, _)| *name == child)?;
    period_of(request).map(|period| period / in_f64(facts.pace().ratio()))
}

fn period_of(request: &Request) -> Option<f64> {
    match request {
        Request::Guarantee(guarantee) => {
            guarantee.as_reservation().map(|asked| in_f64(asked.period().nanos()))
        }
        _ => None,
    }
}

fn in_f64(ratio: &Ratio) -> f64 {
    ratio.to_f64().unwrap_or_default()
}
