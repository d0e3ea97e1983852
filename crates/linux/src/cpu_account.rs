//! Whose processor time is counted, and how much it was.

use crate::Tid;
use crate::cgroup::Cgroup;
use crate::cpu_time::{process_cpu_time_of, thread_cpu_time_of};
use crate::proc;
use std::sync::Arc;
use talea_time::Work;

/// A clock of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// A thread of this process.
    OwnThread(Tid),
    /// A whole process.
    Process(Tid),
    /// A thread of another process.
    Thread(Tid),
}

impl CpuClock {
    /// The time received since the thread or process began; `None` once it is gone.
    fn read(self) -> Option<Work> {
        match self {
            CpuClock::OwnThread(tid) => thread_cpu_time_of(tid),
            CpuClock::Process(pid) => process_cpu_time_of(pid),
            CpuClock::Thread(tid) => proc::run_time_ns(tid).map(Work::from_nanos),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    source: CpuClock,
    /// Reading when counting began.
    before: Work,
    /// Received since then, by the last reading there was.
    received: Work,
}

/// What some threads or processes have received together since then.
#[derive(Clone, Debug, Default)]
pub struct CpuAccount {
    entries: Vec<Entry>,
    /// What those received that have gone.
    gone: Work,
    /// A cgroup in which all of them are, also those that come and go unseen, with its reading when counting began.
    cgroup: Option<(Arc<Cgroup>, Work)>,
}

impl CpuAccount {
    /// What is received in a cgroup counts as well, from the next opening on. Its clock is some milliseconds behind that of a thread that is
    /// running.
    pub fn count_in(&mut self, cgroup: Option<Arc<Cgroup>>) {
        self.cgroup = cgroup.map(|cgroup| (cgroup, Work::ZERO));
    }

    /// Counts from now on what `source` receives, and what those receive that are counted already.
    pub fn open(&mut self, source: CpuClock) {
        self.add(source);
        self.gone = Work::ZERO;
        if let Some((cgroup, before)) = &mut self.cgroup {
            *before = cgroup.received().unwrap_or(Work::ZERO);
        }
        for entry in &mut self.entries {
            entry.before = entry.source.read().unwrap_or(Work::ZERO);
            entry.received = Work::ZERO;
        }
    }

    /// Counts a process that was started by one that is counted, from its beginning; nothing if it is counted already.
    pub fn enter_child(&mut self, process: Tid) {
        self.add(CpuClock::Process(process));
    }

    /// The same from now on, for one that was there before whoever counts knew of it.
    pub fn enter_elder(&mut self, process: Tid) {
        let source = CpuClock::Process(process);
        self.add_from(source, || source.read().unwrap_or(Work::ZERO));
    }

    fn add(&mut self, source: CpuClock) {
        self.add_from(source, || Work::ZERO);
    }

    fn add_from(&mut self, source: CpuClock, before: impl FnOnce() -> Work) {
        if self.entries.iter().all(|entry| entry.source != source) {
            self.entries.push(Entry { source, before: before(), received: Work::ZERO });
        }
    }

    /// The processes that are counted and had not gone by the last reading.
    pub fn processes(&self) -> impl Iterator<Item = Tid> {
        self.entries.iter().filter_map(|entry| match entry.source {
            CpuClock::Process(process) => Some(process),
            CpuClock::OwnThread(_) | CpuClock::Thread(_) => None,
        })
    }

    /// What was received, by the last readings of those that have gone. A system call for each, or a file.
    pub fn received(&mut self) -> Work {
        let mut sum = Work::ZERO;
        let gone = &mut self.gone;
        self.entries.retain_mut(|entry| match entry.source.read() {
            Some(now) => {
                entry.received = entry.received.max(now - entry.before);
                sum += entry.received;
                true
            }
            // Its number may be another's next.
            None => {
                *gone += entry.received;
                false
            }
        });
        let sum = sum + self.gone;
        let together = self.cgroup.as_ref().and_then(|(cgroup, before)| Some(cgroup.received()? - *before));
        together.map_or(sum, |together| together.max(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use rustix::thread::gettid;

    #[test]
    fn time_counts_from_the_entry_and_that_of_children_from_their_beginning() {
        let mut account = CpuAccount::default();
        let all = thread_cpu_time_of(gettid()).expect("this thread exists");
        account.open(CpuClock::OwnThread(gettid()));
        let since = account.received();
        assert!(since <= thread_cpu_time_of(gettid()).expect("still") - all, "{since}");
        let mut late = CpuAccount::default();
        late.enter_elder(getpid());
        assert!(late.received() < all, "what it had received before nobody counts");
        account.enter_child(getpid());
        account.enter_child(getpid());
        assert_eq!(account.processes().collect::<Vec<_>>(), [getpid()]);
        assert!(account.received() >= all, "a process has received what its threads have");
    }

    #[test]
    fn who_has_gone_keeps_what_was_last_read() {
        let mut account = CpuAccount::default();
        account.open(CpuClock::Process(Tid::from_raw(4_194_304).expect("not zero")));
        account.entries[0].received = Work::from_millis(3);
        assert_eq!(account.received(), Work::from_millis(3));
        assert_eq!(account.processes().count(), 0, "its number may be another's");
        assert_eq!(account.received(), Work::from_millis(3), "counted once");
        account.open(CpuClock::Process(getpid()));
        assert!(account.received() < Work::from_millis(3), "counting began anew");
    }
}
