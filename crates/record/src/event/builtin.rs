//! The families that Talea itself writes, each event declared once.

use super::BuiltinEvent;
use super::codes::{
    ChangeAuthor, ChangeKind, ChangeReason, CostKind, DropReason, EventLossReason, InterruptKind, LossCause,
    LossReason, MemberRole, PostOutcome, Question, RunOutcome, SkipReason, ThreadRole, Trigger, ValueLoss,
    ViolationSide, WakeContext,
};
use super::declare::events;
use super::field::{Code, FieldType, Flag, JobOrNone, Meaning};
use super::layout::Layout;
use crate::declaration::{EventEntry, Family, Field, Part, Place, Text};
use crate::record::{Event, JobId, Record};
use std::borrow::Cow;
use talea_time::{Duration, Instant};

events! {
    /// The run itself: its beginning, its end, its threads, and what was lost.
    RUN = 0x00 "run" {
        /// A run began; planned_end is 0 for none.
        RUN_START = 1 "run-start" RunStart {
            /// Its planned end.
            planned_end: Option<Instant> = First,
            /// The node it runs on.
            node: u16 = Source means Node,
        }
        /// A run ended; nothing after this instant counts; how is 1 if its process was gone, and not by its own word.
        RUN_END = 2 "run-end" RunEnd {
            /// The node it ran on.
            node: u16 = Source means Node,
            /// How it ended.
            how: Code<RunOutcome> = Arg,
        }
        /// Records before this one, after the instant since, are lost; ring is 65535 for the kernel's, 65533 for threads without one.
        LOST = 3 "lost" Lost {
            /// How many were overwritten or never written.
            records: u64 = First,
            /// The instant of the last record of the same ring that was not; `None` if there is none or it is unknown.
            since: Option<Instant> = Second,
            /// The ring they were lost from, by its number in its file, [`Record::KERNEL`] for events of the kernel on the record's
            /// processor, or [`Record::DAMAGED`] for records of a log that were damaged.
            ring: u16 = Source,
            /// Why.
            cause: Code<LossCause> = Arg,
        }
        /// A thread of the run is at work; lane is 65535 for one that serves no lane.
        THREAD = 4 "thread" Thread {
            /// Its number.
            tid: u32 = First means Thread,
            /// Its process's.
            pid: u32 = First << 32,
            /// The node.
            node: u32 = Second means Node,
            /// The lane it serves, if it serves one.
            lane: Option<u16> = Source means Lane,
            /// What it is for.
            role: Code<ThreadRole> = Arg,
        }
        /// Word of a completed job was lost on its way to an operation on another node; what waits for it there is not released.
        MESSAGE_LOST = 5 "message-lost" MessageLost {
            /// The completed job.
            job: JobId = Causal,
            /// The operation.
            to: u64 = First means Operation,
            /// The instance of it; of what follows in the same task, that of the job.
            instance: u64 = Second,
            /// The job's lane.
            lane: u16 = Source means Lane,
            /// Why it was lost.
            why: Code<LossReason> = Arg,
        }
        /// A node has left the run before its end, as another one has heard: its process ended, or it said so.
        NODE_LEFT = 6 "node-left" NodeLeft {
            /// Which start of the node it was.
            epoch: u64 = First,
            /// The node that left.
            left: u32 = Second means Node,
            /// The node that heard of it.
            node: u16 = Source means Node,
        }
        /// A hypervisor has taken so much of the record's processor in a stretch of time (steal time, which the kernel counts in ticks).
        STEAL = 7 "steal" Steal {
            /// How much.
            amount: Duration = Causal,
            /// Where the stretch begins.
            from: Instant = First,
            /// Where it ends.
            to: Instant = Second,
        }
        /// Up to 24 bytes of the long field of the program's event behind it, and zeros behind the last one.
        PART = 8 "part" EventPart {
            /// The first eight of them.
            first: [u8; 8] = Causal,
            /// The next eight.
            second: [u8; 8] = First,
            /// The last eight.
            third: [u8; 8] = Second,
            /// Bytes that all parts of the event have together.
            bytes: u16 = Source,
            /// Which part it is, from 1.
            number: u16 = Arg,
        }
    }

    /// The life of every job, from which all results are computed.
    JOB = 0x01 "job" {
        /// A job was released.
        RELEASE = 1 "release" Release {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// Its nominal release: a first subtask's arrival `phase + k * period`, a successor's actual release.
            nominal: Instant = First,
            /// Absolute end-to-end deadline, which may be so far that there is none, see [`Record::deadline`].
            deadline: Instant = Second means Deadline,
        }
        /// A job began to execute; depth jobs were in its lane, itself included.
        START = 2 "start" Start {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// Jobs in its lane at that instant including itself, saturating.
            depth: u16 = Arg,
            /// The job that posted it, of posted work: what releases tasks tells of itself. Of simulations, older traces have something else there, which
            /// [`Metadata::posted_by`](crate::Metadata::posted_by) knows.
            posted_by: JobOrNone = First,
        }
        /// A running job lost its processor; by is all ones if unknown.
        PREEMPT = 3 "preempt" Preempt {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// The job that has the processor instead, if it is known.
            by: Option<JobId> = First,
        }
        /// A job that was preempted, or waited, got a processor again.
        RESUME = 4 "resume" Resume {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
        }
        /// A job completed.
        COMPLETE = 5 "complete" Complete {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// Its nominal release.
            nominal: Instant = First,
            /// Its deadline.
            deadline: Instant = Second means Deadline,
        }
        /// A job was not released; its whole instance is skipped.
        SKIP = 6 "skip" Skip {
            /// The job of a first subtask.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// Its nominal release.
            nominal: Instant = First,
            /// Its deadline.
            deadline: Instant = Second means Deadline,
            /// Why.
            reason: Code<SkipReason> = Arg,
        }
        /// A job was aborted; running is 1 if it had its processor.
        ABORT = 7 "abort" Abort {
            /// The job; its instance never completes, and what depends on it is not released.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// Its nominal release.
            nominal: Instant = First,
            /// Its deadline.
            deadline: Instant = Second means Deadline,
            /// Whether it had been running on the record's processor at that instant.
            running: Flag = Arg,
        }
        /// A job has done its work and gives up its processor until readers of its outputs have room for what it wrote. It keeps its lane meanwhile.
        WAIT = 8 "wait" Wait {
            /// The job.
            job: JobId = Causal,
            /// The first input that has no room.
            input: u32 = First means Input,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// Until when it waits at most.
            until: Instant = Second,
        }
        /// The run ends, and its guard still holds the job of a first subtask, which has not been released.
        HELD = 9 "held" Held {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// When its instance arrived.
            nominal: Instant = First,
            /// Its deadline.
            deadline: Instant = Second means Deadline,
        }
        /// A job that is posted executes this long at most, which is another time than its operation's.
        JOB_WCET = 10 "wcet" JobWcet {
            /// The job, whose release follows at this instant.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// The longest that it executes, at full speed.
            wcet: Duration = First,
        }
    }

    /// What lies between the jobs: wake-ups, queueing, timers, messages, and their cost.
    DISPATCH = 0x02 "dispatch" {
        /// A processor spent the time up to now on dispatching; kind says on what.
        COST = 1 "cost" Cost {
            /// How long, up to the record's time; what jobs executed meanwhile, having preempted it, is theirs.
            cost: Duration = First,
            /// How many jobs it was for.
            count: u32 = Second,
            /// The node.
            node: u32 = Second << 32 means Node,
            /// The lane, if it was for one.
            lane: Option<u16> = Source means Lane,
            /// What on.
            kind: Code<CostKind> = Arg,
        }
        /// A lane's thread runs again after it slept.
        WAKE = 2 "wake" Wake {
            /// The lane.
            lane: u16 = Source means Lane,
        }
        /// A lane has nothing to do and its thread goes to sleep.
        SLEEP = 3 "sleep" Sleep {
            /// The lane.
            lane: u16 = Source means Lane,
        }
        /// The release thread is about to release what was due at an instant.
        TIMER = 4 "timer" Timer {
            /// The instant.
            due: Instant = First,
            /// When the kernel woke the thread; from there on it spun.
            woken: Instant = Second,
            /// The node.
            node: u16 = Source means Node,
        }
        /// A completed job is told to an operation on another node.
        SEND = 5 "send" Send {
            /// The job.
            job: JobId = Causal,
            /// The operation.
            to: u64 = First means Operation,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// Word came from another node of a predecessor of the job, or of whose value releases it; sent is when it left, 0 if unknown.
        RECEIVE = 6 "receive" Receive {
            /// The job.
            job: JobId = Causal,
            /// When it left, if that is known.
            sent: Option<Instant> = First,
            /// Of whom it tells.
            from: JobOrNone = Second,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// All that the job needs of its predecessors is done; it is released when its guard opens. Jobs that are released greedily have none.
        SIGNAL = 7 "signal" Signal {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
        }
        /// The job waits at its guard, until an instant unless an idle point opens the guard earlier.
        GUARD = 8 "guard" Guard {
            /// The job.
            job: JobId = Causal,
            /// The instant.
            until: Instant = First,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// The job comes first in its preemptive lane and has to wait, for each thread of the lane has another job. One of those runs.
        NO_SLOT = 9 "no-slot" NoSlot {
            /// The job.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
        }
        /// The guard of a first subtask let the job through as of an instant; its release, which comes after this, is when a thread got around to it.
        OPEN = 10 "open" Open {
            /// The job.
            job: JobId = Causal,
            /// The instant, from which on the job counts as released to the rules of its lane. Of successors their nominal release says it.
            at: Instant = First,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// A program, or one of its jobs, has posted a job with a handle, or a job has wanted to; told in runs that are to be replayed. What channels post for their events is not.
        POST = 11 "post" Post {
            /// The job; of one that was refused, the number that the next one might have had.
            job: JobId = Causal,
            /// The job that posted it.
            by: JobOrNone = First,
            /// What it found.
            handle: u64 = Second,
            /// Its lane.
            lane: u16 = Source means Lane,
            /// What came of it.
            outcome: Code<PostOutcome> = Arg,
        }
    }

    /// The kernel's own view: who had which processor, who woke whom, interrupts and system calls.
    KERNEL = 0x03 "kernel" {
        /// A processor went from one thread to another; a thread of all ones is not observed; preempted is 1 if the first could go on.
        SWITCH = 1 "switch" Switch {
            /// The thread that had it: 0 is the idle thread and [`Record::UNSEEN_THREAD`] one that is not observed.
            from_tid: u32 = First means Thread,
            /// The thread that has it now, likewise.
            to_tid: u32 = First << 32 means Thread,
            /// Process of the first.
            from_pid: u32 = Second,
            /// Process of the other.
            to_pid: u32 = Second << 32,
            /// Whether the first could have gone on.
            preempted: Flag = Arg,
        }
        /// A thread was made ready; context is 1 for a thread, 2 for a soft interrupt, 3 for an interrupt.
        WAKEUP = 2 "wakeup" Wakeup {
            /// Its number.
            tid: u32 = First means Thread,
            /// The waker's.
            waker_tid: u32 = First << 32 means Thread,
            /// The processor it will run on.
            target_cpu: u32 = Second,
            /// Its kernel priority: 99 less its real-time priority, 100 to 139 for ordinary threads, -1 for deadline threads.
            priority: i32 = Second << 32,
            /// Where it came from.
            context: Code<WakeContext> = Arg,
        }
        /// An interrupt handler began; kind is 1 device, 2 soft, 3 local.
        IRQ_ENTER = 3 "irq-enter" IrqEnter {
            /// The interrupt's number.
            irq: u64 = First,
            /// What it counts.
            kind: Code<InterruptKind> = Arg,
        }
        /// An interrupt handler ended; kind is 1 device, 2 soft, 3 local.
        IRQ_EXIT = 4 "irq-exit" IrqExit {
            /// The interrupt's number.
            irq: u64 = First,
            /// What it counts.
            kind: Code<InterruptKind> = Arg,
        }
        /// A thread entered a system call.
        SYSCALL_ENTER = 5 "syscall-enter" SyscallEnter {
            /// The call's number.
            number: u64 = First,
            /// The thread's.
            tid: u32 = Second means Thread,
        }
        /// A thread left a system call.
        SYSCALL_EXIT = 6 "syscall-exit" SyscallExit {
            /// What it got.
            result: i64 = First,
            /// The thread's number.
            tid: u32 = Second means Thread,
            /// The call's.
            number: u32 = Second << 32,
        }
        /// The name of a thread.
        THREAD_NAME = 7 "thread-name" ThreadName {
            /// The name.
            name: Text = First,
            /// The thread's number.
            tid: u32 = Causal means Thread,
            /// Its process's.
            pid: u32 = Causal << 32,
        }
        /// A thread ended.
        THREAD_EXIT = 8 "thread-exit" ThreadExit {
            /// Its number.
            tid: u32 = First means Thread,
            /// Its process's.
            pid: u32 = First << 32,
        }
    }

    /// Hierarchies of schedulers: guarantees that were not kept.
    HIERARCHY = 0x04 "hierarchy" {
        /// A guarantee was broken in a window; side says how.
        VIOLATION = 1 "violation" Violation {
            /// By how much.
            amount: Duration = Causal,
            /// The edge: index into [`crate::Metadata::edges`].
            edge: u16 = Source means Edge,
            /// Where the window begins.
            from: Instant = First,
            /// Where it ends.
            to: Instant = Second,
            /// How.
            side: Code<ViolationSide> = Arg means Number,
        }
    }

    /// What the schedulers of a hierarchy say to each other: who wants a processor, is given one and loses it, and why.
    HLS = 0x05 "hls" {
        /// Who is below an edge wants a processor from the scheduler above.
        VP_REQUEST = 1 "request" VpRequest {
            /// The edge.
            edge: u16 = Source means Edge,
            /// The edge of the thread that set it off, if it was one.
            by: Option<u32> = First means Edge,
            /// What set it off.
            trigger: Code<Trigger> = Arg,
        }
        /// The scheduler above gives it the record's processor.
        VP_GRANT = 2 "grant" VpGrant {
            /// The edge.
            edge: u16 = Source means Edge,
            /// The edge of the thread that set it off, if it was one.
            by: Option<u32> = First means Edge,
            /// What set it off.
            trigger: Code<Trigger> = Arg,
        }
        /// The scheduler above takes the record's processor back; who is below still wants one.
        VP_REVOKE = 3 "revoke" VpRevoke {
            /// The edge.
            edge: u16 = Source means Edge,
            /// The edge of the thread that set it off, if it was one.
            by: Option<u32> = First means Edge,
            /// What set it off.
            trigger: Code<Trigger> = Arg,
        }
        /// Who is below wants no processor any more and gives back the record's, if it had one.
        VP_RELEASE = 4 "release" VpRelease {
            /// The edge.
            edge: u16 = Source means Edge,
            /// The edge of the thread that set it off, if it was one.
            by: Option<u32> = First means Edge,
            /// What set it off.
            trigger: Code<Trigger> = Arg,
        }
        /// The thread below wants its processor for another job from now on.
        NEXT_JOB = 5 "next-job" NextJob {
            /// The edge.
            edge: u16 = Source means Edge,
        }
        /// The hierarchy was changed: an edge is part of it from now on, no longer, or altered; by says who did that, why what for, and forced is 1 if promises might break by it.
        EDGE_CHANGE = 6 "change" EdgeChange {
            /// The edge.
            edge: u16 = Source means Edge,
            /// What became of it.
            what: Code<ChangeKind> = Arg,
            /// Who changed the hierarchy.
            by: Code<ChangeAuthor> = First,
            /// What for.
            why: Code<ChangeReason> = First << 16,
            /// The process of an operator; 0 if it is unknown here, and of others.
            process: u32 = First << 32,
            /// The user as whom an operator's process runs; 0 of others.
            user: u32 = Second,
            /// Whether it was asked for whatever promises it breaks, as by `talea ctl --force`. Older traces do not tell.
            forced: Flag = Second << 32,
        }
        /// The kernel had withheld the record's processor from whom it was granted to; thread is who had it, 0 if nobody.
        WITHHELD = 7 "withheld" Withheld {
            /// The number of the thread that had it at first; 0 is the idle thread.
            thread: u32 = Causal means Thread,
            /// From when.
            from: Instant = First,
            /// Until when.
            to: Instant = Second,
            /// The node.
            node: u16 = Source means Node,
        }
        /// A thread has the processor when who is below the edge has it, or serves the hierarchy: edge is 4294967295 then; started_by is the thread that started it, 0 if none was seen to.
        MEMBER = 8 "member" Member {
            /// Its number.
            tid: u32 = First means Thread,
            /// The number of the thread of the same program that started it while it was scheduled; 0 if none was seen to.
            started_by: u32 = First << 32 means Thread,
            /// The edge, if it has one.
            edge: Option<u32> = Second means Edge,
            /// The node.
            node: u16 = Source means Node,
            /// What it is for.
            role: Code<MemberRole> = Arg,
        }
        /// The record's processor is taken from the hierarchy's root, to be left to the kernel in a slice, or given back to it.
        SUPPLY = 9 "supply" Supply {
            /// The node.
            node: u16 = Source means Node,
            /// Whether it is given back.
            given: Flag = Arg,
        }
        /// From the instant since on nobody tells what the kernel withheld on the node's processors, for records were lost before they were compared.
        UNAUDITED = 10 "unaudited" Unaudited {
            /// From when on.
            since: Instant = First,
            /// The node.
            node: u16 = Source means Node,
        }
    }

    /// Values that operations hand on.
    PORT = 0x06 "port" {
        /// A job that completed has published a value.
        PUBLISH = 1 "publish" Publish {
            /// The job.
            job: JobId = Causal,
            /// The output.
            output: u32 = First means Output,
            /// From when on readers see it.
            visible: Instant = Second,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// A job that began took values of an input; from is the job that wrote the newest, all ones if there was none.
        TAKE = 2 "take" Take {
            /// The job.
            job: JobId = Causal,
            /// Who wrote the newest of them.
            from: Option<JobId> = First,
            /// The input.
            input: u32 = Second means Input,
            /// How many they were.
            values: u32 = Second << 32,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// A value was dropped that no job has taken.
        DROP = 3 "drop" Drop {
            /// The job that wrote it.
            job: JobId = Causal,
            /// The input.
            input: u32 = First means Input,
            /// The lane of who wrote it.
            lane: u16 = Source means Lane,
            /// Why.
            why: Code<DropReason> = Arg,
        }
        /// A published value is kept, or what a job took of a channel or read from outside; its first bytes stand here, and the others in the value-part records that follow on the same node.
        VALUE = 4 "value" Value {
            /// The job that published it, or took or read it.
            job: JobId = Causal,
            /// The output; `None`: the events that the job took, or what it read of the descriptor that released it.
            output: Option<u32> = First means Output,
            /// How many bytes it has.
            bytes: u32 = First << 32,
            /// The first eight of them, and zeros behind them if there are fewer.
            head: [u8; 8] = Second,
            /// The node.
            node: u16 = Source means Node,
        }
        /// The next 24 bytes of the value before it, and zeros behind the last one.
        VALUE_PART = 5 "value-part" ValuePart {
            /// The first eight of them.
            first: [u8; 8] = Causal,
            /// The next eight.
            second: [u8; 8] = First,
            /// The last eight.
            third: [u8; 8] = Second,
            /// The node.
            node: u16 = Source means Node,
            /// Which part of the value it is, from 1.
            number: u16 = Arg,
        }
        /// A published value was to be kept, and is not: it came faster than values are kept, or is too long, or is never bytes.
        VALUE_LOST = 6 "value-lost" ValueLost {
            /// The job that published it, or took or read it.
            job: JobId = Causal,
            /// The output; `None`: the events that the job took, or what it read of the descriptor that released it.
            output: Option<u32> = First means Output,
            /// The node.
            node: u16 = Source means Node,
            /// Why.
            cause: Code<ValueLoss> = Arg,
        }
        /// What a job was told, or said, that no other record tells: the time, whether to stop, when it was released, how old a value is; what a consumer's code said of what it was handed in a call, and how long a job would have executed that it wanted to post.
        ANSWER = 7 "answer" Answer {
            /// The job.
            job: JobId = Causal,
            /// The answer: an instant or a time in nanoseconds, 1 for yes, or a [`CallOutcome`](crate::CallOutcome).
            answer: u64 = First,
            /// Which question of its kind it was, from 0; of values the number of the input, of posts that were refused that of the operation.
            question: u64 = Second,
            /// The job's lane.
            lane: u16 = Source means Lane,
            /// What it asked.
            what: Code<Question> = Arg,
        }
    }

    /// Events that operations push into channels, and jobs take of them.
    EVENT = 0x07 "event" {
        /// A job pushed an event into a channel.
        PUSH = 1 "push" Push {
            /// The job.
            job: JobId = Causal,
            /// As what it is published.
            publication: u32 = First means Publication,
            /// The job's lane.
            lane: u16 = Source means Lane,
        }
        /// A job took an event of a channel: one that it was released by, or of several at once each.
        DELIVER = 2 "deliver" Deliver {
            /// The job that took it.
            job: JobId = Causal,
            /// The job that pushed it; `None` if a program did otherwise.
            from: Option<JobId> = First,
            /// As what it was published; `None` if that has no number.
            publication: Option<u32> = Second means Publication,
            /// Which of the events of the job it is, from 0.
            number: u32 = Second << 32,
            /// The lane of the job that took it.
            lane: u16 = Source means Lane,
        }
        /// Events that a task had subscribed to do not wait for it any more, and none of its jobs has had them.
        EVENT_LOST = 3 "lost" EventsLost {
            /// The first operation of the task.
            operation: u32 = First means Operation,
            /// How many.
            events: u32 = First << 32,
            /// The node.
            node: u16 = Source means Node,
            /// Why.
            why: Code<EventLossReason> = Arg,
        }
        /// What a job pushed, or wanted to, is kept; its first bytes stand here, and the others in the value-part records that follow on the same node. No bytes: there was no room for the event. Behind an event of a program's own channel stands how pushing it was answered.
        PUSH_KEPT = 4 "push-kept" PushKept {
            /// The job.
            job: JobId = Causal,
            /// As what it is published.
            publication: u32 = First means Publication,
            /// How many bytes it has.
            bytes: u32 = First << 32,
            /// The first eight of them, and zeros behind them if there are fewer.
            head: [u8; 8] = Second,
            /// The node.
            node: u16 = Source means Node,
            /// Which of the pushes of the job it is, from 0.
            number: u16 = Arg,
        }
        /// What a job pushed was to be kept, and is not: it came faster than events are kept, or is too long.
        PUSH_UNKEPT = 5 "push-unkept" PushUnkept {
            /// The job.
            job: JobId = Causal,
            /// As what it is published.
            publication: u32 = First means Publication,
            /// The node.
            node: u16 = Source means Node,
            /// Why.
            cause: Code<ValueLoss> = Arg,
        }
        /// A delivery to a consumer that is called one at a time waits for another one to it, which has the waiting job's priority meanwhile.
        BLOCK = 6 "block" Block {
            /// The job that waits.
            job: JobId = Causal,
            /// The job whose delivery it waits for, if that is known.
            by: Option<JobId> = First,
            /// The lane of the job that waits.
            lane: u16 = Source means Lane,
        }
        /// It does not wait any more: the other delivery is over.
        UNBLOCK = 7 "unblock" Unblock {
            /// The job that waited.
            job: JobId = Causal,
            /// Its lane.
            lane: u16 = Source means Lane,
        }
    }
}
