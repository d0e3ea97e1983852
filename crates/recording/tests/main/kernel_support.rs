//! Two threads that hand a token to and fro on one processor and note when.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::mpsc::{Receiver, Sender, channel};
use talea_record::*;
use talea_recording::kernel::*;
use talea_time::Instant;

pub const UNSEEN: u32 = Record::UNSEEN_THREAD;
pub const SMALL_BUFFER: usize = 64 << 10;

/// One token's way from one thread to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    pub from: u32,
    pub to: u32,
    /// Read by `from` before it gave the token away.
    pub start: Instant,
    /// Read by `to` after it got it.
    pub end: Instant,
}

impl HandOver {
    pub fn contains(&self, time: Instant) -> bool {
        self.start <= time && time <= self.end
    }

    /// Whether it has no instant in common with any of these gaps.
    pub fn is_outside(&self, gaps: &[(Instant, Instant)]) -> bool {
        gaps.iter().all(|(from, to)| self.end < *from || *to < self.start)
    }
}

/// When a thread gives the token away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At once.
    Free,
    /// When the other one sleeps, so that giving it away wakes it.
    WhenTheOtherSleeps,
}

struct Player {
    other: u32,
    from_other: PipeReader,
    to_other: PipeWriter,
}

enum Request {
    Meet(u32),
    Play { rounds: usize, pace: Pace, serves: bool },
}

/// The threads "ping" and "pong".
pub struct Players {
    pub tids: [u32; 2],
    requests: [Sender<Request>; 2],
    /// The readings of the clock of each: before giving and after getting.
    books: [Receiver<Vec<(Instant, Instant)>>; 2],
}

impl Players {
    /// Both exist and have their names when this returns.
    pub fn new(cpu: u16) -> Self {
        let (to_pong, from_ping) = channel_of_tokens();
        let (to_ping, from_pong) = channel_of_tokens();
        let (ping, ping_requests, ping_books) = spawn("ping", cpu, from_pong, to_pong);
        let (pong, pong_requests, pong_books) = spawn("pong", cpu, from_ping, to_ping);
        ping_requests.send(Request::Meet(pong)).unwrap();
        pong_requests.send(Request::Meet(ping)).unwrap();
        Players {
            tids: [ping, pong],
            requests: [ping_requests, pong_requests],
            books: [ping_books, pong_books],
        }
    }

    /// Hands the token over `2 * rounds` times and returns the hand-overs in order.
    pub fn play(&self, rounds: usize, pace: Pace) -> Vec<HandOver> {
        // The one that receives first is on its way to sleep before the other one looks whether it does.
        for (player, serves) in [(1, false), (0, true)] {
            self.requests[player].send(Request::Play { rounds, pace, serves }).unwrap();
            assert_eq!(self.books[player].recv().unwrap(), [], "it begins");
        }
        let [ping, pong] = [0, 1].map(|player| self.books[player].recv().unwrap());
        let [p, q] = self.tids;
        let mut all = Vec::with_capacity(2 * rounds);
        for round in 0..rounds {
            all.push(HandOver { from: p, to: q, start: ping[round].0, end: pong[round].1 });
            all.push(HandOver { from: q, to: p, start: pong[round].0, end: ping[round].1 });
        }
        all
    }
}

fn channel_of_tokens() -> (PipeWriter, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    (writer, reader)
}

type Books = Receiver<Vec<(Instant, Instant)>>;

fn spawn(name: &str, cpu: u16, from: PipeReader, to: PipeWriter) -> (u32, Sender<Request>, Books) {
    let (requests, inbox) = channel();
    let (outbox, books) = channel();
    let (introduce, introduced) = channel();
    let run = move || {
        pin(cpu);
        introduce.send(thread_number()).unwrap();
        let mut player = Player { other: 0, from_other: from, to_other: to };
        for request in inbox {
            match request {
                Request::Meet(other) => player.other = other,
                Request::Play { rounds, pace, serves } => {
                    outbox.send(Vec::new()).unwrap();
                    outbox.send(player.play(rounds, pace, serves)).unwrap();
                }
            }
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(run).unwrap();
    (introduced.recv().unwrap(), requests, books)
}

impl Player {
    fn play(&mut self, rounds: usize, pace: Pace, serves: bool) -> Vec<(Instant, Instant)> {
        let mut book = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            book.push(if serves {
                let given = self.give(pace);
                (given, self.get())
            } else {
                let got = self.get();
                (self.give(pace), got)
            });
        }
        book
    }

    fn give(&mut self, pace: Pace) -> Instant {
        while pace == Pace::WhenTheOtherSleeps && !sleeps(self.other) {
            std::thread::yield_now();
        }
        let before = now();
        self.to_other.write_all(&[0]).unwrap();
        before
    }

    fn get(&mut self) -> Instant {
        self.from_other.read_exact(&mut [0]).unwrap();
        now()
    }
}

/// Whether a thread of this process is asleep, from the third field of its stat file, after the name.
fn sleeps(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

pub fn thread_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

pub fn pin(cpu: u16) {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu));
    sched_setaffinity(None, &set).unwrap();
}

/// The last processor this process may use: interrupts tend to be on the first one.
pub fn a_processor() -> Option<u16> {
    let allowed = sched_getaffinity(None).unwrap();
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    last.map(|cpu| cpu as u16)
}

/// These events of everybody on one processor.
pub fn options(cpu: u16, events: &[KernelEvent]) -> KernelOptions {
    KernelOptions {
        processors: Processors::These([cpu].into()),
        events: events.iter().copied().collect(),
        buffer_bytes: 16 * SMALL_BUFFER,
        ..KernelOptions::default()
    }
}

/// The stream, or `None` and a word on standard error if the machine withholds it. Other refusals are failures.
pub fn open(options: &KernelOptions) -> Option<KernelStream> {
    let error = match KernelStream::open(options, now()) {
        Ok(stream) => return Some(stream),
        Err(error) => error,
    };
    let KernelError::Refused(found) = &error else { panic!("{error}") };
    let is_of_the_machine = |obstacle: &Obstacle| match obstacle.cause {
        Cause::Paranoid | Cause::Seccomp | Cause::NoPerf | Cause::LockedMemory => true,
        Cause::NoTracefs | Cause::TracefsUnreadable => true,
        Cause::SecurityModule => std::fs::read_to_string("/sys/kernel/security/lockdown")
            .is_ok_and(|mode| !mode.contains("[none]")),
        _ => false,
    };
    assert!(found.obstacles.iter().all(is_of_the_machine), "{error}");
    skip(&error.to_string());
    None
}

pub fn skip(reason: &str) {
    talea_measure::skip(reason);
}

pub fn finish(stream: KernelStream) -> (Vec<Record>, KernelTotals) {
    let mut records = Vec::new();
    let totals = stream.finish(&mut records).unwrap();
    (records, totals)
}

/// Where records of one processor are missing: between the record before a loss and the instant at which it is told.
/// After a loss at the very end nothing is known any more.
pub fn gaps(records: &[Record]) -> Vec<(Instant, Instant)> {
    let gap = |(at, record): (usize, &Record)| {
        let from = at.checked_sub(1).map_or(Instant::ZERO, |before| records[before].time);
        let to = if at + 1 == records.len() { Instant::MAX } else { record.time };
        (record.event == Event::LOST).then_some((from, to))
    };
    records.iter().enumerate().filter_map(gap).collect()
}

/// Who leaves a processor is who got it before; only an arrival may be untold, where the kernel hides a thread.
pub fn assert_passed_on(switches: &[&Record]) {
    for pair in switches.windows(2).filter(|pair| to(pair[0]) != UNSEEN && to(pair[1]) != UNSEEN) {
        assert_eq!(to(pair[0]), from(pair[1]), "{:?} then {:?}", pair[0], pair[1]);
    }
}

/// Fills in who arrived unseen: it is who leaves next.
pub fn with_unseen_arrivals(records: &[Record]) -> Vec<Record> {
    let mut filled = records.to_vec();
    let mut next: BTreeMap<u16, (u32, u32)> = BTreeMap::new();
    for record in filled.iter_mut().rev().filter(|record| record.event == Event::SWITCH) {
        let leaving = (from(record), record.words[1] as u32);
        if let (UNSEEN, Some((tid, pid))) = (to(record), next.get(&record.cpu)) {
            record.words[0] = u64::from(leaving.0) | u64::from(*tid) << 32;
            record.words[1] = u64::from(leaving.1) | u64::from(*pid) << 32;
        }
        next.insert(record.cpu, leaving);
    }
    filled
}

/// Runs `test` in a thread without capabilities, which the kernel asks for wherever it asks at all.
pub fn without_capabilities(test: impl FnOnce() + Send + 'static) {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySet::empty();
    let outcome = std::thread::spawn(move || {
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
            .unwrap();
        test();
    });
    if let Err(panic) = outcome.join() {
        std::panic::resume_unwind(panic);
    }
}

pub fn assert_in_order(records: &[Record]) {
    for pair in records.windows(2) {
        assert!(pair[0].time <= pair[1].time, "{:?} before {:?}", pair[0], pair[1]);
    }
}

pub fn of(records: &[Record], event: Event) -> Vec<&Record> {
    records.iter().filter(|record| record.event == event).collect()
}

pub fn from(record: &Record) -> u32 {
    record.words[0] as u32
}

pub fn to(record: &Record) -> u32 {
    (record.words[0] >> 32) as u32
}

pub fn woken(record: &Record) -> u32 {
    record.words[0] as u32
}
