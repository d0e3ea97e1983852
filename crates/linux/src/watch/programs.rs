//! What the kernel does at its tracepoints.

use super::layout::{ENTERED, EXITING, count, group, site, switch};
use super::{Inherit, Tables, ThreadEvents};
use crate::bpf::assembler::Register::{A1, A2, A3, A4, Frame, R0, S1, S2, S3, S4};
use crate::bpf::assembler::{Assembler, Do, Helper, If, Label, Register, Width};
use crate::bpf::btf::Types;
use crate::bpf::program::Attached;
use crate::bpf::{BpfError, btf};
use rustix::fd::AsFd;
use std::sync::OnceLock;

const SWITCH: &str = "btf_trace_sched_switch";
const WAKING: &str = "btf_trace_sched_waking";
const FORK: &str = "btf_trace_sched_process_fork";
const EXEC: &str = "btf_trace_sched_process_exec";
const EXIT: &str = "btf_trace_sched_process_exit";

/// Keys in a program's memory.
const KEY: i16 = -4;
const SECOND_KEY: i16 = -8;
/// A word there.
const AMOUNT: i16 = -16;
/// An event there.
const EVENT: i16 = -48;
const EVENT_BYTES: i16 = 32;
/// A thread's entry there.
const ENTRY: i16 = -64;

const fn byte(word: usize) -> i16 {
    (word * 8) as i16
}

/// The types that the programs need, which do not change while the machine runs.
fn types() -> Result<&'static Types, BpfError> {
    static TYPES: OnceLock<Result<Types, BpfError>> = OnceLock::new();
    let read = || btf::Types::of_kernel(&[SWITCH, WAKING, FORK, EXEC, EXIT], "task_struct", &["pid", "tgid"]);
    TYPES.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// Attaches all of them. Those by which threads come and go are first, so that no thread is missed that is entered later.
pub(super) fn attach(tables: &Tables) -> Result<Vec<Attached>, BpfError> {
    let types = types()?;
    let writer = Writer { tables, pid: types.field("pid"), tgid: types.field("tgid") };
    let programs = [
        ("talea_fork", FORK, writer.forked()),
        ("talea_exec", EXEC, writer.executed()),
        ("talea_exit", EXIT, writer.exiting()),
        ("talea_waking", WAKING, writer.woken()),
        ("talea_switch", SWITCH, writer.switched()),
    ];
    programs
        .iter()
        .map(|(name, tracepoint, program)| Attached::new(name, program, types.typedef(tracepoint)))
        .collect()
}

struct Writer<'a> {
    tables: &'a Tables,
    /// Where a thread's number is in the kernel's `task_struct`, and its process's.
    pid: i16,
    tgid: i16,
}

impl Writer<'_> {
    /// `sched_switch(preempt, prev, next, prev_state)`: settles the group that had the processor, unless it keeps it.
    fn switched(&self) -> Vec<u64> {
        /// In `prev_state`, of a thread that never comes back.
        const DEAD: i32 = 0x80;
        let tables = self.tables;
        let mut p = Assembler::new();
        let [out, alive, stranger, changed] = std::array::from_fn(|_| p.label());
        p.load(Width::Double, S2, A1, 8);
        p.load(Width::Double, S3, A1, 16);
        p.load(Width::Double, R0, A1, 24);
        p.operate_by(Do::And, R0, DEAD);
        p.jump_if(If::Equal, R0, 0, alive);
        // A first thread that has made room for another one of its process, which executes a program, has that one's number now.
        self.of_watched(&mut p, S2, alive);
        p.load(Width::Word, A1, R0, 4);
        p.jump_if(If::Different, A1, EXITING as i32, alive);
        p.map(A1, tables.threads.as_fd());
        p.memory(A2, KEY);
        p.call(Helper::Delete);
        p.place(alive);
        p.call(Helper::Processor);
        p.store(Width::Word, Frame, KEY, R0);
        p.look_up(tables.sites.as_fd(), KEY);
        p.jump_if(If::Equal, R0, 0, out);
        p.copy(S1, R0);
        self.key(&mut p, SECOND_KEY, S3, self.pid);
        p.look_up(tables.threads.as_fd(), SECOND_KEY);
        p.set(S3, 0);
        p.jump_if(If::Equal, R0, 0, stranger);
        p.load(Width::Word, S3, R0, 0);
        p.place(stranger);
        // Strangers are told one by one.
        p.jump_if(If::Equal, S3, 0, changed);
        p.load(Width::Double, A1, S1, byte(site::GROUP));
        p.jump_if_registers(If::Equal, A1, S3, out);
        p.place(changed);
        p.call(Helper::Now);
        p.copy(S4, R0);
        step(&mut p, site::CHANGES);
        self.settle(&mut p);
        p.store(Width::Double, S1, byte(site::SINCE), S4);
        p.store(Width::Double, S1, byte(site::GROUP), S3);
        p.load(Width::Word, A1, Frame, SECOND_KEY);
        p.store(Width::Double, S1, byte(site::THREAD), A1);
        step(&mut p, site::CHANGES);
        self.record(&mut p, out);
        p.place(out);
        p.exit();
        p.finish()
    }

    /// Gives the group that had the processor at `S1` what it has had by `S4`. One that was entered while it ran has its time from then on.
    fn settle(&self, p: &mut Assembler) {
        let [known, later, settle, settled] = std::array::from_fn(|_| p.label());
        p.load(Width::Double, A2, S1, byte(site::SINCE));
        p.load(Width::Double, A1, S1, byte(site::GROUP));
        p.jump_if(If::Different, A1, 0, known);
        self.key(p, KEY, S2, self.pid);
        p.look_up(self.tables.threads.as_fd(), KEY);
        p.jump_if(If::Equal, R0, 0, settled);
        p.load(Width::Word, A1, R0, 0);
        p.load(Width::Double, A2, R0, byte(ENTERED));
        p.load(Width::Double, A3, S1, byte(site::SINCE));
        p.jump_if_registers(If::Greater, A2, A3, later);
        p.copy(A2, A3);
        p.place(later);
        p.jump_if_registers(If::Greater, A2, S4, settled);
        p.jump(settle);
        p.place(known);
        p.place(settle);
        p.store(Width::Word, Frame, KEY, A1);
        p.copy(A3, S4);
        p.operate(Do::Subtract, A3, A2);
        p.store(Width::Double, Frame, AMOUNT, A3);
        p.look_up(self.tables.groups.as_fd(), KEY);
        p.jump_if(If::Equal, R0, 0, settled);
        p.load(Width::Double, A1, Frame, AMOUNT);
        p.fetch_add(R0, byte(group::RECEIVED), A1);
        p.place(settled);
    }

    /// Records the switch to the thread in [`SECOND_KEY`] and the group in `S3`, where a record is kept.
    fn record(&self, p: &mut Assembler, out: Label) {
        p.load(Width::Double, A1, S1, byte(site::RECORD));
        p.jump_if(If::Equal, A1, 0, out);
        p.load(Width::Double, A2, S1, byte(site::RECORDED));
        p.operate_by(Do::And, A2, switch::KEPT as i32 - 1);
        p.operate(Do::Add, A2, A1);
        p.operate_by(Do::Add, A2, -1);
        p.store(Width::Word, Frame, KEY, A2);
        p.look_up(self.tables.switches.as_fd(), KEY);
        p.jump_if(If::Equal, R0, 0, out);
        p.store(Width::Double, R0, byte(switch::TIME), S4);
        p.load(Width::Word, A1, Frame, SECOND_KEY);
        p.store(Width::Word, R0, byte(switch::TO), A1);
        p.store(Width::Word, R0, byte(switch::TO) + 4, S3);
        step(p, site::RECORDED);
    }

    /// `sched_waking(p)`: counts, and tells where that is wanted.
    fn woken(&self) -> Vec<u64> {
        let mut p = Assembler::new();
        let out = p.label();
        p.load(Width::Double, S1, A1, 0);
        self.of_watched(&mut p, S1, out);
        p.load(Width::Word, S3, R0, 0);
        p.store(Width::Word, Frame, SECOND_KEY, S3);
        p.look_up(self.tables.groups.as_fd(), SECOND_KEY);
        p.jump_if(If::Equal, R0, 0, out);
        p.set(A1, 1);
        p.fetch_add(R0, byte(group::WAKE_UPS), A1);
        p.load(Width::Double, A1, R0, byte(group::TOLD));
        self.tell(&mut p, ThreadEvents::WOKEN, None, out);
        p.place(out);
        p.exit();
        p.finish()
    }

    /// `sched_process_fork(parent, child)`, before the child runs for the first time: it is in its parent's group.
    fn forked(&self) -> Vec<u64> {
        let mut p = Assembler::new();
        let [out, passed_on] = std::array::from_fn(|_| p.label());
        p.load(Width::Double, S2, A1, 0);
        p.load(Width::Double, S1, A1, 8);
        self.of_watched(&mut p, S2, out);
        p.load(Width::Word, S3, R0, 0);
        p.load(Width::Word, A1, R0, 4);
        p.jump_if(If::Equal, A1, Inherit::Nobody as i32, out);
        p.jump_if(If::Equal, A1, Inherit::Everybody as i32, passed_on);
        p.load(Width::Word, A2, S1, self.tgid);
        p.load(Width::Word, A3, S2, self.tgid);
        p.jump_if_registers(If::Different, A2, A3, out);
        p.place(passed_on);
        p.store(Width::Word, Frame, ENTRY, S3);
        p.store(Width::Word, Frame, ENTRY + 4, A1);
        p.call(Helper::Now);
        p.store(Width::Double, Frame, ENTRY + byte(ENTERED), R0);
        self.key(&mut p, SECOND_KEY, S1, self.pid);
        self.enter(&mut p);
        p.load(Width::Word, S4, Frame, KEY);
        self.tell_of(&mut p, ThreadEvents::FORKED, out);
        p.place(out);
        p.exit();
        p.finish()
    }

    /// `sched_process_exec(p, old_pid, bprm)`: a thread that is not its process's first has got that one's number.
    fn executed(&self) -> Vec<u64> {
        let mut p = Assembler::new();
        let [out, same] = std::array::from_fn(|_| p.label());
        p.load(Width::Double, S1, A1, 0);
        p.load(Width::Double, A2, A1, 8);
        p.store(Width::Word, Frame, KEY, A2);
        p.look_up(self.tables.threads.as_fd(), KEY);
        p.jump_if(If::Equal, R0, 0, out);
        p.load(Width::Word, S3, R0, 0);
        for word in [0, ENTERED] {
            p.load(Width::Double, A1, R0, byte(word));
            p.store(Width::Double, Frame, ENTRY + byte(word), A1);
        }
        self.key(&mut p, SECOND_KEY, S1, self.pid);
        p.load(Width::Word, S4, Frame, KEY);
        p.load(Width::Word, A1, Frame, SECOND_KEY);
        p.jump_if_registers(If::Equal, A1, S4, same);
        self.enter(&mut p);
        p.map(A1, self.tables.threads.as_fd());
        p.memory(A2, KEY);
        p.call(Helper::Delete);
        p.place(same);
        self.tell_of(&mut p, ThreadEvents::EXECUTED, out);
        p.place(out);
        p.exit();
        p.finish()
    }

    /// `sched_process_exit(p, group_dead)`. The thread runs a little longer; its time counts up to its last switch.
    fn exiting(&self) -> Vec<u64> {
        let mut p = Assembler::new();
        let out = p.label();
        p.load(Width::Double, S1, A1, 0);
        self.of_watched(&mut p, S1, out);
        p.load(Width::Word, S3, R0, 0);
        p.set(A1, EXITING as i32);
        p.store(Width::Word, R0, 4, A1);
        p.set(S4, 0);
        self.tell_of(&mut p, ThreadEvents::EXITING, out);
        p.place(out);
        p.exit();
        p.finish()
    }

    // Parts.

    /// The number of a thread, or of its process, becomes a key.
    fn key(&self, p: &mut Assembler, key: i16, thread: Register, field: i16) {
        p.load(Width::Word, A1, thread, field);
        p.store(Width::Word, Frame, key, A1);
    }

    /// `R0` becomes the entry of a thread whose number is then in [`KEY`]; ends where there is none.
    fn of_watched(&self, p: &mut Assembler, thread: Register, out: Label) {
        self.key(p, KEY, thread, self.pid);
        p.look_up(self.tables.threads.as_fd(), KEY);
        p.jump_if(If::Equal, R0, 0, out);
    }

    /// The thread of the number in [`SECOND_KEY`] gets the entry in memory.
    fn enter(&self, p: &mut Assembler) {
        let entered = p.label();
        p.map(A1, self.tables.threads.as_fd());
        p.memory(A2, SECOND_KEY);
        p.memory(A3, ENTRY);
        p.set(A4, 0);
        p.call(Helper::Update);
        p.jump_if(If::Equal, R0, 0, entered);
        self.count(p, count::NOT_ENTERED);
        p.place(entered);
    }

    /// Tells of the thread at `S1` and the other one whose number is in `S4`, where the group in `S3` has that told.
    fn tell_of(&self, p: &mut Assembler, kind: ThreadEvents, out: Label) {
        p.store(Width::Word, Frame, SECOND_KEY, S3);
        p.look_up(self.tables.groups.as_fd(), SECOND_KEY);
        p.jump_if(If::Equal, R0, 0, out);
        p.load(Width::Double, A1, R0, byte(group::TOLD));
        self.tell(p, kind, Some(S4), out);
    }

    /// Tells of the thread at `S1`, if `A1` has the kind's bit.
    fn tell(&self, p: &mut Assembler, kind: ThreadEvents, other: Option<Register>, out: Label) {
        let bit = kind.bits() as i32;
        p.operate_by(Do::And, A1, bit);
        p.jump_if(If::Equal, A1, 0, out);
        p.store(Width::Word, Frame, EVENT, A1);
        p.store(Width::Word, Frame, EVENT + 4, S3);
        self.key(p, EVENT + 8, S1, self.pid);
        self.key(p, EVENT + 12, S1, self.tgid);
        p.set(A1, 0);
        p.store(Width::Double, Frame, EVENT + 16, A1);
        if let Some(other) = other {
            p.store(Width::Word, Frame, EVENT + 16, other);
        }
        p.call(Helper::Now);
        p.store(Width::Double, Frame, EVENT + 24, R0);
        p.map(A1, self.tables.events.as_fd());
        p.memory(A2, EVENT);
        p.set(A3, EVENT_BYTES.into());
        p.set(A4, 0);
        p.call(Helper::Tell);
        p.jump_if(If::Equal, R0, 0, out);
        self.count(p, count::NOT_TOLD);
    }

    /// One more of these.
    fn count(&self, p: &mut Assembler, word: usize) {
        p.value_of(A1, self.tables.counts.as_fd());
        p.set(A2, 1);
        p.fetch_add(A1, byte(word), A2);
    }
}

/// One more in a word of the processor at `S1`.
fn step(p: &mut Assembler, word: usize) {
    p.set(A1, 1);
    p.fetch_add(S1, byte(word), A1);
}
