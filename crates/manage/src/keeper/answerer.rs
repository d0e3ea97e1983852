//! The answerer: an ordinary thread that answers programs which call to change how they are scheduled, and counts them.
//!
//! It is an ordinary thread because what it does is in nobody's interest but the caller's, who waits meanwhile: a program that calls without
//! end takes from itself alone.

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use talea_linux::seccomp::{Listener, SchedulingCall};

/// Of the thread that answers: it calls nothing deep.
const STACK: usize = 256 * 1024;

const STOP: u64 = u64::MAX;
const AT_A_TIME: usize = 16;

/// A program whose calls are answered.
struct Heard {
    name: String,
    listener: Listener,
}

#[derive(Default)]
struct Book {
    programs: Vec<Arc<Heard>>,
    /// By name of the program.
    calls: BTreeMap<String, BTreeMap<SchedulingCall, u64>>,
}

pub(super) struct Answerer {
    poll: Arc<OwnedFd>,
    stop: OwnedFd,
    book: Arc<Mutex<Book>>,
    thread: Option<JoinHandle<()>>,
}

impl Answerer {
    pub fn start() -> io::Result<Self> {
        let poll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&*poll, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        let book = Arc::<Mutex<Book>>::default();
        let (own, read) = (Arc::clone(&poll), Arc::clone(&book));
        let thread = std::thread::Builder::new().name("answerer".into()).stack_size(STACK);
        let thread = thread.spawn(move || serve(&own, &read))?;
        Ok(Answerer { poll, stop, book, thread: Some(thread) })
    }

    /// Answers this program from now on.
    pub fn hear(&self, name: &str, listener: Listener) -> io::Result<()> {
        let mut book = at(&self.book);
        let number = epoll::EventData::new_u64(book.programs.len() as u64);
        epoll::add(&*self.poll, &listener, number, epoll::EventFlags::IN)?;
        book.programs.push(Arc::new(Heard { name: name.into(), listener }));
        Ok(())
    }

    /// How often a program has called what, by now.
    pub fn calls(&self, name: &str) -> Vec<(SchedulingCall, u64)> {
        let book = at(&self.book);
        book.calls.get(name).into_iter().flatten().map(|(call, times)| (*call, *times)).collect()
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        let _told = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(poll: &OwnedFd, book: &Mutex<Book>) {
    let mut ready = Vec::with_capacity(AT_A_TIME);
    loop {
        ready.clear();
        match epoll::wait(poll, rustix::buffer::spare_capacity(&mut ready), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => panic!("waiting for calls failed: {errno}"),
        }
        for event in &ready {
            if event.data.u64() == STOP {
                return;
            }
            let Some(heard) = at(book).programs.get(event.data.u64() as usize).map(Arc::clone) else {
                continue;
            };
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::IN) {
                answer(&heard, book);
            } else {
                // All whom the filter was on have ended.
                let _gone = epoll::delete(poll, &heard.listener);
            }
        }
    }
}

fn answer(heard: &Heard, book: &Mutex<Book>) {
    let Some(asked) = heard.listener.receive() else { return };
    if let Some(call) = asked.call {
        let mut book = at(book);
        // One at a time is written where there is none yet, which allocates.
        let calls = book.calls.entry(heard.name.clone()).or_default();
        *calls.entry(call).or_default() += 1;
    }
    heard.listener.answer(&asked, asked.answer());
}

fn at(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}
