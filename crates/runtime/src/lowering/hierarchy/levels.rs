//! The levels of a flattened hierarchy, and the policies that they become.

use super::{Level, PRIORITIES, RELEASE_BUDGET, RELEASE_PERIOD, Settings, Switches, ThreadSetting};
use talea_linux::sched::Policy;
use talea_time::Work;

/// One level of a flattened hierarchy, by indices of threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FlatLevel {
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

impl FlatLevel {
    pub fn threads(&self) -> impl Iterator<Item = usize> + '_ {
        let (reserved, others): (&[(usize, Policy)], &[usize]) = match self {
            FlatLevel::Reserved(reserved) => (reserved, &[]),
            FlatLevel::Alone(thread) => (&[], std::slice::from_ref(thread)),
            FlatLevel::Fifo(threads) | FlatLevel::RoundRobin(threads) | FlatLevel::Ordinary(threads) => {
                (&[], threads)
            }
            FlatLevel::Opaque(_) => (&[], &[]),
        };
        reserved.iter().map(|(thread, _)| *thread).chain(others.iter().copied())
    }

    fn takes_priority(&self) -> bool {
        matches!(self, FlatLevel::Alone(_) | FlatLevel::Fifo(_) | FlatLevel::RoundRobin(_))
    }
}

/// How many priorities these levels, highest first, need.
pub(super) fn priorities(levels: &[FlatLevel]) -> usize {
    levels.iter().filter(|level| level.takes_priority()).count()
}

/// Gives the levels, highest first and no more than there are [`PRIORITIES`], their policies: the lowest has the lowest
/// priority. Where real-time priorities are not to be had, no level needs one.
pub(super) fn settle(levels: &[FlatLevel], real_time: Permission) -> Settings {
    let mut above = *PRIORITIES.start() + priorities(levels) as u8;
    let release = match real_time {
        _ if levels.iter().any(|level| matches!(level, FlatLevel::Reserved(_))) => {
            Policy::Deadline { runtime: RELEASE_BUDGET, deadline: RELEASE_PERIOD, period: RELEASE_PERIOD }
        }
        Permission::Granted => Policy::Fifo(above),
        Permission::Refused => Policy::Other,
    };
    let highest = above;
    let mut threads = Vec::new();
    for level in levels {
        above -= u8::from(level.takes_priority());
        let own_or_shared = if level.threads().count() > 1 { Level::Shared } else { Level::Own };
        let shared = |policy| move |thread: usize| ThreadSetting { thread, policy, level: own_or_shared };
        match level {
            FlatLevel::Reserved(reserved) => {
                threads.extend(reserved.iter().map(|&(thread, policy)| ThreadSetting {
                    thread,
                    policy,
                    level: Level::Own,
                }))
            }
            FlatLevel::RoundRobin(all) if own_or_shared == Level::Shared => {
                threads.extend(all.iter().copied().map(shared(Policy::RoundRobin(above))));
            }
            FlatLevel::Alone(_) | FlatLevel::Fifo(_) | FlatLevel::RoundRobin(_) => {
                threads.extend(level.threads().map(shared(Policy::Fifo(above))));
            }
            FlatLevel::Ordinary(all) => threads.extend(all.iter().copied().map(shared(Policy::Other))),
            FlatLevel::Opaque(_) => {}
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
