//! The thread that empties rings and the kernel's buffers into memory, and does nothing else.
//!
//! It wakes up more often the fuller it finds them, and at least every [`LONGEST_PAUSE`]. What merges, names and writes records takes
//! them from memory on another thread, whatever time that takes.

use crate::kernel::{KernelDrawer, Rest};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use talea_record::ring::{DrawingMemory, StreamDrawer};

/// Between two passes over rings in which little happens.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// Between two passes over rings that fill as fast as can be.
const SHORTEST_PAUSE: Duration = Duration::from_micros(100);
/// A ring that was found as full is looked at sooner the next time.
const FULL: f64 = 0.2;
/// Rings that were found as empty are looked at later.
const EMPTY: f64 = 0.05;

/// Parts of a kernel's buffer, of which none has more.
const PARTS_MAX: usize = 1000;

/// What the thread is told.
enum Command {
    Stream(StreamDrawer),
    Kernel(Vec<KernelDrawer>),
    /// To say when it has copied all that is there now.
    CatchUp(Sender<()>),
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Drawing {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread copies.
struct Drawers {
    streams: Vec<StreamDrawer>,
    kernel: Vec<KernelDrawer>,
    memory: DrawingMemory,
}

impl Drawing {
    /// Starts the thread, which does `prepare` first.
    pub fn start(memory: DrawingMemory, prepare: impl FnOnce() + Send + 'static) -> std::io::Result<Self> {
        let (sender, commands) = channel();
        let thread = std::thread::Builder::new().name("talea-draw".into()).spawn(move || {
            prepare();
            Drawers { streams: Vec::new(), kernel: Vec::new(), memory }.work(&commands);
        })?;
        Ok(Drawing { commands: Some(sender), thread: Some(thread) })
    }

    /// Copies out of these rings from now on.
    pub fn add(&self, stream: StreamDrawer) {
        self.tell(Command::Stream(stream));
    }

    /// Copies out of these buffers of the kernel from now on.
    pub fn add_kernel(&self, kernel: Vec<KernelDrawer>) {
        self.tell(Command::Kernel(kernel));
    }

    /// Returns when all that is in the rings and buffers now has been copied, as far as there is memory.
    pub fn catch_up(&self) {
        let (done, is_done) = channel();
        self.tell(Command::CatchUp(done));
        // A thread that has ended, which only a panic makes it, copies nothing any more.
        let _ = is_done.recv();
    }

    fn tell(&self, command: Command) {
        // As in `catch_up`.
        let _ = self.commands.as_ref().expect("it works until it is dropped").send(command);
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What a pass over everything has found.
struct Found {
    /// How full the fullest ring was, 1 being full.
    fullest: f64,
    kernel: Rest,
}

impl Drawers {
    fn work(mut self, commands: &Receiver<Command>) {
        let (mut pause, mut rest) = (LONGEST_PAUSE, Rest::Nothing);
        loop {
            let wait = if rest == Rest::More { Duration::ZERO } else { pause };
            match commands.recv_timeout(wait) {
                Ok(Command::Stream(stream)) => self.streams.push(stream),
                Ok(Command::Kernel(kernel)) => self.kernel.extend(kernel),
                Ok(Command::CatchUp(done)) => {
                    self.catch_up();
                    // Nobody may wait any more.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let found = self.pass();
            rest = found.kernel;
            if found.fullest > FULL || rest == Rest::More {
                pause = (pause / 2).max(SHORTEST_PAUSE);
            } else if found.fullest < EMPTY {
                pause = (pause * 5 / 4).min(LONGEST_PAUSE);
            }
        }
    }

    /// Copies all that is there now. What the kernel adds meanwhile could go on for ever.
    fn catch_up(&mut self) {
        for _ in 0..PARTS_MAX {
            if self.pass().kernel == Rest::Nothing {
                return;
            }
        }
    }

    /// Copies all that is in the rings, and a part of what is in the kernel's buffers.
    fn pass(&mut self) -> Found {
        let mut rest = Rest::Nothing;
        if self.memory.has_room() {
            for kernel in &mut self.kernel {
                if kernel.draw(&self.memory) == Rest::More {
                    rest = Rest::More;
                }
            }
        }
        let fullest = self.streams.iter_mut().map(StreamDrawer::pass).fold(0.0, f64::max);
        Found { fullest, kernel: rest }
    }
}
