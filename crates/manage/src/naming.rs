//! Who the threads are that the records of a run speak of.
//!
//! Records have threads' numbers, and are written where nobody asks the kernel for a name. A warden does, some milliseconds later, and enters the answer
//! into the stream as a definition. Programs give their threads names when these are at work already, and get another name with another program
//! (`execve`), so those that are known are looked at again from time to time, some at each look.
//!
//! A process in which a program begins has the keeper's name until it executes the program, whose name then holds from the beginning.
//!
//! A thread that has ended by then has no name that anybody knows any more, and no definition.

use crate::keeper;
use talea_linux::Tid;
use talea_linux::proc;
use talea_record::ring::Definer;
use talea_record::{Definition, ThreadEntry};
use talea_time::Instant;

/// Known threads that are looked at again at a time: some thirty microseconds.
const AGAIN: usize = 8;

/// Names the threads of a node.
#[derive(Debug)]
pub struct Naming {
    node: usize,
    named: Vec<Named>,
    /// The first that is looked at again next.
    next: usize,
}

/// A thread that has been defined.
#[derive(Debug)]
struct Named {
    tid: Tid,
    process: Tid,
    name: String,
    /// Since when records speak of it.
    since: Instant,
}

impl Naming {
    /// Of the node with this index.
    pub fn of_node(node: usize) -> Self {
        Naming { node, named: Vec::new(), next: 0 }
    }

    /// Whether there is anybody to be looked at again.
    pub fn has_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// Defines a thread that records speak of from an instant on, unless it has ended. Reads /proc, and may wait for memory. Returns whether there was
    /// room for it.
    pub fn define(&mut self, definer: &Definer, tid: u32, since: Instant) -> bool {
        let Some(named) = named(tid, since) else { return true };
        let has_room = named.define(since, self.node, definer);
        match self.named.iter_mut().find(|known| known.tid == named.tid) {
            Some(known) => *known = Named { since: known.since.min(named.since), ..named },
            None => self.named.push(named),
        }
        has_room
    }

    /// Looks whether some of those that are known have got another name, which holds from `now` on, and returns how many of them there was no room for.
    pub fn look_again(&mut self, definer: &Definer, now: Instant) -> u64 {
        let mut lost = 0;
        for _ in 0..AGAIN.min(self.named.len()) {
            self.next %= self.named.len().max(1);
            let Some(known) = self.named.get_mut(self.next) else { break };
            match proc::name_of(known.tid) {
                // Its number may be another's next, who is met as this one was.
                None => {
                    self.named.swap_remove(self.next);
                    continue;
                }
                Some(name) if name != known.name => {
                    let began = known.name.as_bytes() == keeper::NAME.to_bytes();
                    let since = if began { known.since } else { now };
                    known.name = name;
                    lost += u64::from(!known.define(since, self.node, definer));
                }
                Some(_) => {}
            }
            self.next += 1;
        }
        lost
    }
}

/// Defines a thread as [`Naming::define`] does, of which nobody asks again.
pub fn define_thread(definer: &Definer, tid: u32, since: Instant, node: usize) -> bool {
    named(tid, since).is_none_or(|named| named.define(since, node, definer))
}

/// What the kernel says of a thread, if it is there.
fn named(tid: u32, since: Instant) -> Option<Named> {
    let tid = Tid::from_raw(i32::try_from(tid).ok()?)?;
    Some(Named { tid, process: proc::process_of(tid)?, name: proc::name_of(tid)?, since })
}

impl Named {
    /// Enters the definition. Returns whether there was room for it.
    fn define(&self, since: Instant, node: usize, definer: &Definer) -> bool {
        let number = |tid: Tid| tid.as_raw_nonzero().get() as u32;
        let (tid, pid, name) = (number(self.tid), number(self.process), self.name.clone());
        definer.define(&Definition::Thread(ThreadEntry { since, tid, pid, name, node })).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use talea_record::{DecidedBy, Metadata, NodeEntry, RingFile, Switches, THREADS_DEFINED_MAX, TraceFile};

    fn at(time: i64) -> Instant {
        Instant::from_nanos(time)
    }

    /// A stream of one node, and what its readers know in the end.
    fn defined(run: impl FnOnce(&Definer)) -> Metadata {
        let mut metadata = Metadata::bare("x");
        let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
        metadata.nodes.push(NodeEntry { name: "a".into(), cpus: vec![0], switches, decided_by });
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("rings");
        let rings = RingFile::create(&path, &metadata, &["all".into()], 16).expect("rings");
        run(&rings.definer());
        TraceFile::open(&path).expect("whole").metadata().clone()
    }

    /// A thread that takes the names that it is sent, and says when it has.
    fn with_thread(run: impl FnOnce(u32, &dyn Fn(&str))) {
        let (to_thread, names) = channel::<String>();
        let (from_thread, done) = channel::<u32>();
        let thread = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            from_thread.send(own).expect("somebody waits");
            for name in names {
                std::fs::write("/proc/thread-self/comm", name).expect("its own name");
                from_thread.send(own).expect("somebody waits");
            }
        });
        let tid = done.recv().expect("it runs");
        run(tid, &|name| {
            to_thread.send(name.into()).expect("it runs");
            done.recv().expect("it runs");
        });
        drop(to_thread);
        thread.join().expect("it ends");
    }

    #[test]
    fn a_thread_that_takes_another_name_is_defined_again() {
        let mut number = 0;
        let metadata = defined(|definer| {
            with_thread(|tid, call| {
                number = tid;
                call("first");
                let mut naming = Naming::of_node(0);
                assert!(naming.define(definer, tid, at(10)) && naming.has_named());
                assert_eq!(naming.look_again(definer, at(20)), 0);
                call("second");
                assert_eq!(naming.look_again(definer, at(30)), 0);
                // Behind another edge, too: nothing new.
                assert!(naming.define(definer, tid, at(40)));
            });
        });
        let told = |entry: &ThreadEntry| (entry.since.as_nanos(), entry.name.clone());
        assert_eq!(
            metadata.threads.iter().map(told).collect::<Vec<_>>(),
            [(10, "first".into()), (30, "second".into())]
        );
        let is_own = |entry: &ThreadEntry| (entry.tid, entry.pid) == (number, std::process::id());
        assert!(metadata.threads.iter().all(is_own));
    }

    #[test]
    fn a_program_has_its_own_name_from_its_beginning() {
        let mut number = 0;
        let metadata = defined(|definer| {
            with_thread(|tid, call| {
                number = tid;
                call(keeper::NAME.to_str().expect("ASCII"));
                let mut naming = Naming::of_node(0);
                assert!(naming.define(definer, tid, at(10)) && naming.define(definer, tid, at(20)));
                call("program");
                assert_eq!(naming.look_again(definer, at(30)), 0);
            });
        });
        for time in [10, 20, 30] {
            assert_eq!(metadata.thread(number, at(time)).map(|entry| entry.name.as_str()), Some("program"));
        }
    }

    #[test]
    fn a_thread_that_has_ended_is_not_defined_and_not_asked_again() {
        let metadata = defined(|definer| {
            let mut naming = Naming::of_node(0);
            let mut ended = 0;
            with_thread(|tid, _| {
                ended = tid;
                assert!(naming.define(definer, tid, at(10)));
            });
            // It has been joined before the kernel has done with it.
            let task = format!("/proc/self/task/{ended}");
            while std::path::Path::new(&task).exists() {
                std::thread::yield_now();
            }
            assert_eq!((naming.look_again(definer, at(20)), naming.has_named()), (0, false));
            assert!(naming.define(definer, ended, at(30)) && !naming.has_named());
        });
        assert_eq!(metadata.threads.len(), 1);
    }

    #[test]
    fn threads_without_end_leave_room_for_edges() {
        let metadata = defined(|definer| {
            with_thread(|tid, call| {
                let mut naming = Naming::of_node(0);
                let mut lost = 0;
                for number in 0..THREADS_DEFINED_MAX + 3 {
                    call(&format!("name-{number}"));
                    match number {
                        0 => assert!(naming.define(definer, tid, at(0))),
                        _ => lost += naming.look_again(definer, at(number as i64)),
                    }
                }
                assert_eq!(lost, 3);
            });
            let (parent, child) = ("FP".into(), "t".into());
            let entry = talea_record::EdgeEntry { node: 0, parent, child, guarantee: "NULL".into() };
            definer.define(&Definition::Edge { number: 0, entry }).expect("room");
        });
        assert_eq!((metadata.threads.len(), metadata.edges.len()), (THREADS_DEFINED_MAX, 1));
    }
}
