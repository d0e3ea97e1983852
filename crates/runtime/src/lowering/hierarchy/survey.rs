//! The walk over a hierarchy from its root down: who can be what in the kernel, and who cannot for which reason.

use super::levels::{FlatLevel, Permission, millionths, priorities, settle};
use super::{
    Form, Lowering, PRIORITIES, Part, PartOutcome, RELEASE_BUDGET, RELEASE_PERIOD, Reason, Settings, Switches,
};
use crate::lowering::machine::{Budgets, Machine, Refusal};
use std::cmp::Reverse;
use talea_linux::sched::Policy;
use talea_model::{SchedulerKind, System, ThreadWork};
use talea_policy::arrangement::{Blueprint, Post, PostRole, Tie};
use talea_policy::hierarchy::Parameters;
use talea_policy::scheduler::config::{Reservation, RoundRobin};
use talea_policy::scheduler::{Config, Exhaustion};
use talea_time::{Duration, Work};

/// The kernel keeps budgets of at least this much.
const LEAST_BUDGET: Work = Work::from_nanos(1_024);

/// What the kernel can do of a scheduler.
enum Shape {
    /// Its children one below the other.
    Priorities,
    /// One level of threads.
    Level(FlatLevel),
}

/// What has been found so far.
#[derive(Default)]
struct Findings {
    /// The levels, highest first.
    levels: Vec<FlatLevel>,
    /// The scheduler of ordinary threads, by position among all schedulers.
    ordinary: Option<usize>,
}

pub(super) struct Surveyor<'a> {
    system: &'a System,
    node: usize,
    machine: &'a Machine,
    blueprint: &'a Blueprint,
}

impl<'a> Surveyor<'a> {
    pub fn new(system: &'a System, node: usize, machine: &'a Machine, blueprint: &'a Blueprint) -> Self {
        Surveyor { system, node, machine, blueprint }
    }

    /// What becomes of everybody.
    pub fn survey(&self) -> Lowering {
        let schedulers = &self.blueprint.schedulers;
        let mut outcomes: Vec<Option<PartOutcome>> = vec![None; schedulers.len()];
        let mut found = Findings::default();
        let mut ahead = vec![&schedulers[0]];
        while let Some(post) = ahead.pop() {
            if post.role == PostRole::Thread {
                self.add(FlatLevel::Alone(post.index), &mut found, &mut outcomes);
                continue;
            }
            let position = self.position(post);
            let children = self.children(post);
            match self.judge(post, &children, &found) {
                Ok(Shape::Priorities) => {
                    outcomes[position] = Some(PartOutcome::Lowered(Form::Priorities));
                    ahead.extend(children.iter().rev().map(|(child, _)| *child));
                }
                Ok(Shape::Level(level)) => {
                    outcomes[position] = Some(PartOutcome::Lowered(Form::Reservations));
                    let is_ordinary = matches!(level, FlatLevel::Ordinary(_));
                    self.add(level, &mut found, &mut outcomes);
                    if is_ordinary {
                        found.ordinary = Some(position);
                    }
                }
                Err(reason) => {
                    outcomes[position] = Some(PartOutcome::Stays(reason));
                    self.add(FlatLevel::Opaque(post.name.clone()), &mut found, &mut outcomes);
                }
            }
        }
        if let Err(reason) = self.general(&found.levels) {
            outcomes[0] = Some(PartOutcome::Stays(reason));
        }
        self.conclude(&found.levels, outcomes)
    }

    /// Another level below those that there are.
    fn add(&self, level: FlatLevel, found: &mut Findings, outcomes: &mut [Option<PartOutcome>]) {
        if let Some(position) = found.ordinary {
            let reason = Reason::AboveOthers { below: self.named(&level) };
            outcomes[position] = Some(PartOutcome::Stays(reason));
        }
        found.levels.push(level);
    }

    fn position(&self, post: &Post) -> usize {
        let found = self.blueprint.schedulers.iter().position(|other| other.index == post.index);
        found.expect("it is one of them")
    }

    /// The children of a scheduler, those of fixed priority from the highest down.
    fn children(&self, post: &Post) -> Vec<(&'a Post, &'a Tie)> {
        let mut children: Vec<(&Post, &Tie)> = Vec::new();
        for child in self.blueprint.posts() {
            children
                .extend(child.under.iter().filter(|tie| tie.scheduler == post.index).map(|tie| (child, tie)));
        }
        if self.kind(post) == SchedulerKind::FIXED_PRIORITY {
            children.sort_by_key(|(_, tie)| match tie.parameters {
                Parameters::Priority(priority) => Reverse(priority),
                _ => panic!("children of fixed priority ask for one"),
            });
        }
        children
    }

    fn kind(&self, post: &Post) -> SchedulerKind {
        self.system.schedulers[post.index].kind
    }

    fn name(&self, thread: usize) -> String {
        self.system.threads[thread].name.clone()
    }

    fn work(&self, thread: usize) -> &'a ThreadWork {
        &self.system.threads[thread].work
    }

    fn is_program(&self, thread: usize) -> bool {
        self.work(thread).is_program()
    }

    /// Somebody of a level, for messages.
    fn named(&self, level: &FlatLevel) -> String {
        match level {
            FlatLevel::Opaque(scheduler) => scheduler.clone(),
            other => other.threads().next().map_or_else(String::new, |thread| self.name(thread)),
        }
    }

    /// What concerns all of the node.
    fn general(&self, levels: &[FlatLevel]) -> Result<(), Reason> {
        let own = &self.system.nodes[self.node].cpus;
        for (node, other) in self.system.nodes.iter().enumerate() {
            let shared = own.iter().find(|cpu| node != self.node && other.cpus.contains(cpu));
            if let Some(&cpu) = shared {
                return Err(Reason::SharedCpu { cpu, with: other.name.clone() });
            }
        }
        let (needed, available) = (priorities(levels), PRIORITIES.count());
        if needed > available { Err(Reason::TooManyLevels { needed, available }) } else { Ok(()) }
    }

    /// Whether the kernel can do what this scheduler does where it stands.
    fn judge(&self, post: &Post, children: &[(&Post, &Tie)], found: &Findings) -> Result<Shape, Reason> {
        let kind = self.kind(post);
        if post.under.len() > 1 {
            return Err(Reason::SeveralParents);
        }
        let shape = if kind == SchedulerKind::FIXED_PRIORITY {
            self.real_time()?;
            return Ok(Shape::Priorities);
        } else if kind == SchedulerKind::FIFO {
            self.real_time()?;
            FlatLevel::Fifo(self.turns(children)?)
        } else if let Some(RoundRobin { quantum }) = configured(post) {
            self.real_time()?;
            let threads = self.turns(children)?;
            self.slice(&threads, quantum.at_full_speed())?;
            FlatLevel::RoundRobin(threads)
        } else if let Some(Reservation { exhaustion: Exhaustion::Suspend, .. }) = configured(post) {
            if let Some(above) = found.levels.first() {
                return Err(Reason::BelowOthers { above: self.named(above) });
            }
            FlatLevel::Reserved(self.reserved(children)?)
        } else if kind == SchedulerKind::LINUX {
            let threads = threads_of(children)?;
            if children.iter().any(|(_, tie)| tie.parameters != Parameters::None) {
                return Err(Reason::OrdinaryLevels);
            }
            self.let_be(&found.levels)?;
            FlatLevel::Ordinary(threads)
        } else {
            return Err(Reason::Kind { kind });
        };
        Ok(if children.is_empty() { Shape::Priorities } else { Shape::Level(shape) })
    }

    /// Priorities of the kernel are to be had, and order the threads of one processor.
    fn real_time(&self) -> Result<(), Reason> {
        let cpus = self.system.nodes[self.node].cpus.len();
        match &self.machine.real_time {
            _ if cpus > 1 => Err(Reason::SeveralCpus { cpus }),
            Ok(()) => Ok(()),
            Err(refused) => Err(Reason::NotPermitted { refused: refused.clone() }),
        }
    }

    /// Threads that take turns: where there are several, each of them one thread of the kernel.
    fn turns(&self, children: &[(&Post, &Tie)]) -> Result<Vec<usize>, Reason> {
        let threads = threads_of(children)?;
        match threads.iter().find(|thread| self.is_program(**thread)) {
            Some(program) if threads.len() > 1 => {
                Err(Reason::ProgramAmongOthers { program: self.name(*program) })
            }
            _ => Ok(threads),
        }
    }

    /// Threads that take turns after a quantum do so after the kernel's slice.
    fn slice(&self, threads: &[usize], quantum: Duration) -> Result<(), Reason> {
        match self.machine.round_robin_slice {
            slice if threads.len() > 1 && slice != Some(quantum) => Err(Reason::Slice { quantum, slice }),
            _ => Ok(()),
        }
    }

    /// Those above ordinary threads want so little that the kernel has no reason to bring these forward.
    fn let_be(&self, levels: &[FlatLevel]) -> Result<(), Reason> {
        let Some(part) = self.machine.ordinary else { return Ok(()) };
        let left = part.period.as_nanos() - part.amount.as_nanos();
        let mut wanted = 0_i64;
        for thread in levels.iter().flat_map(FlatLevel::threads) {
            let most = self.most_within(thread, part.period);
            wanted = match most.and_then(|most| wanted.checked_add(most)).filter(|sum| *sum <= left) {
                Some(sum) => sum,
                None => return Err(Reason::OrdinaryPart { part, because: self.name(thread) }),
            };
        }
        Ok(())
    }

    /// The most nanoseconds that a thread which is never behind can want in any interval: its bursts that begin in it, and
    /// one from before.
    fn most_within(&self, thread: usize, interval: Duration) -> Option<i64> {
        let ThreadWork::Bursts { burst, period } = self.work(thread) else { return None };
        let bursts = interval.as_nanos() / period.as_nanos() + 2;
        burst.max().as_nanos().checked_mul(bursts)
    }

    /// The reservations of these threads, if the kernel can keep them.
    fn reserved(&self, children: &[(&Post, &Tie)]) -> Result<Vec<(usize, Policy)>, Reason> {
        self.real_time()?;
        let offer = match &self.machine.reservations {
            Ok(offer) => offer,
            Err(Refusal::RootDomain) => {
                return Err(Reason::RootDomain { cpus: self.system.nodes[self.node].cpus.clone() });
            }
            Err(Refusal::Other(refused)) => return Err(Reason::NotPermitted { refused: refused.clone() }),
        };
        let mut reserved = Vec::with_capacity(children.len());
        let mut asked = millionths(RELEASE_BUDGET, RELEASE_PERIOD);
        for (thread, (_, tie)) in threads_of(children)?.into_iter().zip(children) {
            let name = || self.name(thread);
            let Parameters::Reservation { budget, period } = tie.parameters else {
                panic!("children of reservations ask for one");
            };
            if self.is_program(thread) {
                return Err(Reason::ProgramReserved { program: name() });
            }
            if !offer.periods.contains(&period) || budget < LEAST_BUDGET {
                let (least, most) = (*offer.periods.start(), *offer.periods.end());
                return Err(Reason::OutOfRange { thread: name(), least, most });
            }
            if offer.budgets == Budgets::AtTicks && !self.is_within(thread, budget, period) {
                return Err(Reason::Ticks { thread: name() });
            }
            asked = asked.saturating_add(millionths(budget, period));
            reserved.push((thread, Policy::Deadline { runtime: budget, deadline: period, period }));
        }
        let offered = offer.bandwidth;
        if asked > offered { Err(Reason::Bandwidth { asked, offered }) } else { Ok(reserved) }
    }

    /// Whether a thread never comes to the end of its budget, because its bursts are shorter and no more frequent.
    fn is_within(&self, thread: usize, budget: Work, reserved: Duration) -> bool {
        matches!(self.work(thread), ThreadWork::Bursts { burst, period } if burst.max() < budget && *period >= reserved)
    }

    /// The levels become policies, and every part has an outcome.
    fn conclude(&self, levels: &[FlatLevel], outcomes: Vec<Option<PartOutcome>>) -> Lowering {
        let stays = outcomes.iter().any(|outcome| !matches!(outcome, Some(PartOutcome::Lowered(_))));
        let permission = match self.machine.real_time {
            Ok(()) => Permission::Granted,
            Err(_) => Permission::Refused,
        };
        let settings = (!stays).then(|| {
            let settings = settle(levels, permission);
            Settings { switches: self.switches(&settings), ..settings }
        });
        let below = |post: &Post| PartOutcome::Stays(Reason::Below { above: post.under[0].parent.clone() });
        let policy = |thread: usize| {
            let threads = settings.iter().flat_map(|settings| &settings.threads);
            threads.clone().find(|setting| setting.thread == thread).map(|setting| setting.policy)
        };
        let schedulers = self.blueprint.schedulers.iter().zip(outcomes).map(|(post, outcome)| {
            let mut outcome = outcome.unwrap_or_else(|| below(post));
            let alike = [SchedulerKind::FIFO, SchedulerKind::ROUND_ROBIN, SchedulerKind::LINUX];
            let of_all = match alike.contains(&self.kind(post)) {
                true => self.children(post).first().and_then(|(child, _)| policy(child.index)),
                false => None,
            };
            match (&mut outcome, of_all) {
                (PartOutcome::Lowered(form), Some(policy)) => *form = Form::Policy(policy),
                (PartOutcome::Lowered(form), None) if self.kind(post) == SchedulerKind::FIXED_PRIORITY => {
                    *form = Form::Priorities;
                }
                _ => {}
            }
            Part { name: post.name.clone(), outcome }
        });
        let has_place: Vec<usize> = levels.iter().flat_map(FlatLevel::threads).collect();
        let threads = self.blueprint.threads.iter().map(|post| {
            let outcome = match policy(post.index) {
                Some(policy) => PartOutcome::Lowered(Form::Policy(policy)),
                // Which policy, nobody has to know.
                None if has_place.contains(&post.index) => PartOutcome::Lowered(Form::Priorities),
                None => below(post),
            };
            Part { name: post.name.clone(), outcome }
        });
        let parts = schedulers.chain(threads).collect();
        let mut lowering = Lowering { parts, settings: settings.clone() };
        lowering.keep_company();
        lowering
    }

    /// Threads of the run that have a level each, or take turns in the order of arrival, preempt each other like nested
    /// calls.
    fn switches(&self, settings: &Settings) -> Switches {
        let nested = settings
            .threads
            .iter()
            .all(|setting| matches!(setting.policy, Policy::Fifo(_)) && !self.is_program(setting.thread));
        if nested { Switches::Nested } else { Switches::Unseen }
    }
}

/// What a scheduler is made from, if it is that of this type.
fn configured<C: Config>(post: &Post) -> Option<&C> {
    match &post.role {
        PostRole::Scheduler(configuration, _) => configuration.of(),
        PostRole::Lanes | PostRole::Thread => None,
    }
}

/// The children as threads.
fn threads_of(children: &[(&Post, &Tie)]) -> Result<Vec<usize>, Reason> {
    match children.iter().find(|(child, _)| child.role != PostRole::Thread) {
        Some((child, _)) => Err(Reason::TurnsOfSchedulers { child: child.name.clone() }),
        None => Ok(children.iter().map(|(child, _)| child.index).collect()),
    }
}
