//! The names of threads: those that exist at the start, and those that are born with their parent's.
//!
//! A new thread has its creator's name until it gives itself another one, and the kernel tells only the second. The
//! table is shared by the decoders of all processors and locked when a thread is created, named or ends.

use super::options::KernelScope;
use std::collections::HashMap;
use std::sync::Mutex;
use talea_record::Record;
use talea_record::declaration::Text;
use talea_record::event::ThreadName;
use talea_time::Instant;

/// Names by thread number.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<u32, Text>>);

impl Names {
    pub fn set(&self, tid: u32, name: Text) {
        self.table().insert(tid, name);
    }

    pub fn forget(&self, tid: u32) {
        self.table().remove(&tid);
    }

    /// Gives the thread `child` the name of `parent`, if that is known.
    pub fn inherit(&self, parent: u32, child: u32) -> Option<Text> {
        let mut table = self.table();
        let name = *table.get(&parent)?;
        table.insert(child, name);
        Some(name)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Text>> {
        self.0.lock().expect("no holder of the lock panics")
    }

    /// Reads the names of all threads in scope from /proc and returns them as records of the instant `now`. Threads that
    /// end meanwhile, and those that /proc hides, are left out.
    pub fn scan(&self, scope: KernelScope, now: Instant) -> Vec<Record> {
        let mut records = Vec::new();
        for pid in processes(scope) {
            for tid in threads(pid).unwrap_or_default() {
                let Ok(name) = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")) else { continue };
                let name = Text::from_bytes(name.strip_suffix(b"\n").unwrap_or(&name));
                self.set(tid, name);
                records.push(ThreadName { name, tid, pid }.at(now, Record::NO_CPU));
            }
        }
        records
    }
}

fn processes(scope: KernelScope) -> Vec<u32> {
    match scope {
        KernelScope::Process(pid) => vec![pid],
        KernelScope::Machine => numbers("/proc").unwrap_or_default(),
    }
}

/// The numbers of a process's threads, in ascending order.
pub(super) fn threads(pid: u32) -> std::io::Result<Vec<u32>> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The entries of a directory that are numbers, in ascending order.
fn numbers(directory: &str) -> std::io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(directory)?;
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
