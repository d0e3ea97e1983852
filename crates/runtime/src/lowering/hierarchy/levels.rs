//! The levels of a flattened hierarchy, and the policies that they become.

use super::{Level, PRIORITIES, RELEASE_BUDGET, RELEASE_PERIOD, Settings, Switches, ThreadSetting};
use talea_linux::sched::Policy;
use talea_time::Work;

/// One level of a flattened hierarchy, by indices of threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rung {
    /// Above all priorities, each with its reservation.
    Reserved(Vec<(usize, Policy)>),
    /// A thread that has the level for itself.
    Alone(usize),
    /// In the order in which they come.
    Fifo(Vec<usize>),
    /// In turn.
    RoundRobin(Vec<usize>),
    /// Below all priorities.
    Ordinary(Vec<usize>),
    /// A scheduler that is not lowered, by name.
    Opaque(String),
}

impl Rung {
    pub fn threads(&self) -> impl Iterator<Item = usize> + '_ {
        let (reserved, others): (&[(usize, Policy)], &[usize]) = match self {
            Rung::Reserved(reserved) => (reserved, &[]),
            Rung::Alone(thread) => (&[], std::slice::from_ref(thread)),
            Rung::Fifo(threads) | Rung::RoundRobin(threads) | Rung::Ordinary(threads) => (&[], threads),
            Rung::Opaque(_) => (&[], &[]),
        };
        reserved.iter().map(|(thread, _)| *thread).chain(others.iter().copied())
    }

    fn takes_priority(&self) -> bool {
        matches!(self, Rung::Alone(_) | Rung::Fifo(_) | Rung::RoundRobin(_))
    }
}

/// How many priorities these levels, highest first, need.
pub(super) fn priorities(rungs: &[Rung]) -> usize {
    rungs.iter().filter(|rung| rung.takes_priority()).count()
}

/// Gives the levels, highest first and no more than there are [`PRIORITIES`], their policies: the lowest has the lowest
/// priority. Where real-time priorities are not to be had, no level needs one.
pub(super) fn settle(rungs: &[Rung], real_time: Permission) -> Settings {
    let mut above = *PRIORITIES.start() + priorities(rungs) as u8;
    let release = match real_time {
        _ if rungs.iter().any(|rung| matches!(rung, Rung::Reserved(_))) => {
            Policy::Deadline { runtime: RELEASE_BUDGET, deadline: RELEASE_PERIOD, period: RELEASE_PERIOD }
        }
        Permission::Granted => Policy::Fifo(above),
        Permission::Refused => Policy::Other,
    };
    let highest = above;
    let mut threads = Vec::new();
    for rung in rungs {
        above -= u8::from(rung.takes_priority());
        let level = if rung.threads().count() > 1 { Level::Shared } else { Level::Own };
        let shared = |policy| move |thread: usize| ThreadSetting { thread, policy, level };
        match rung {
            Rung::Reserved(reserved) => {
                threads.extend(reserved.iter().map(|&(thread, policy)| ThreadSetting {
                    thread,
                    policy,
                    level: Level::Own,
                }))
            }
            Rung::RoundRobin(all) if level == Level::Shared => {
                threads.extend(all.iter().copied().map(shared(Policy::RoundRobin(above))));
            }
            Rung::Alone(_) | Rung::Fifo(_) | Rung::RoundRobin(_) => {
                threads.extend(rung.threads().map(shared(Policy::Fifo(above))));
            }
            Rung::Ordinary(all) => threads.extend(all.iter().copied().map(shared(Policy::Other))),
            Rung::Opaque(_) => {}
        }
    }
    threads.sort_by_key(|setting| setting.thread);
    Settings { release, above: highest, threads, switches: Switches::Unseen }
}

/// Whether real-time priorities are to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    Granted,
    Refused,
}

/// A reservation in millionths of a processor, rounded up.
pub(super) fn millionths(budget: Work, period: talea_time::Duration) -> u64 {
    let (budget, period) = (budget.as_nanos().max(0) as u128, period.as_nanos().max(1) as u128);
    u64::try_from((budget * 1_000_000).div_ceil(period)).unwrap_or(u64::MAX)
}
