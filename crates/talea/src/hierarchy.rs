//! A hierarchy of schedulers over threads of a program's own and those of other programs, changed by calls while it runs. A [`Run`](crate::Run)
//! sets its hierarchies up itself, and `talea ctl` changes them from outside; this is for programs that are no system of tasks.
//!
//! ```no_run
//! use talea::hierarchy::{
//!     Blocks, Change, Governor, Insistence, Live, ManagedSet, Options, OwnThread, arrange, plan_lanes_of,
//! };
//! use talea::{Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
//!
//! let system = System::builder("own")
//!     .scheduler(SchedulerBuilder::new("PS", SchedulerKind::EEVDF))
//!     .thread(ThreadBuilder::new("video", ThreadWork::CpuBound).with_share("PS", 3))
//!     .build()?;
//! let lanes = plan_lanes_of(&system).expect("there are no tasks that could not be sorted");
//! let arrangement = arrange(&system, 0, &lanes[0], 1)?.expect("the node has a hierarchy");
//! let live = Live::new(&system, 0, &arrangement)?;
//! let set = ManagedSet::prepare(arrangement.engine, &Options::on(&[0]))?;
//! // Nobody of the description is there yet.
//! let governor = Governor::new(set, live, []);
//!
//! let share = Request::share(3.try_into()?);
//! let blocks = Blocks::ByHandle;
//! let thread = OwnThread { name: "video", under: "PS", request: share, requires: None, blocks };
//! let (done, waker) = governor.spawn(thread, Insistence::Careful, |handle| {
//!     while !handle.is_ended() {
//!         // A piece of work, and then nothing until somebody calls `waker.wake()`.
//!         handle.block();
//!     }
//! })?;
//! println!("{done:?}");
//! waker.wake();
//! let turns = Change::Replace {
//!     name: "PS".into(),
//!     kind: SchedulerKind::STRIDE,
//!     quantum: None,
//!     settings: Vec::new(),
//!     children: Vec::new(),
//! };
//! governor.change(&turns, Insistence::Careful)?;
//! let set = governor.retire().expect("it runs");
//! set.stop().expect("no thread of it has panicked");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `ManagedSet::attach` and `ManagedSet::command` take in processes and commands. A program serves `talea ctl` with a
//! [`Server`](control::Server) over its governor.

pub use talea_manage::control::{self, Governor, OwnThread, Piece, Reason};
pub use talea_manage::{
    Admission, AdmitError, Blocked, Blocks, Handle, ManagedSet, MemberId, Options, Parking, SetError,
    Summary, Target, Waker, WatchedEdge,
};
pub use talea_policy::arrangement::live::{Change, Insistence, Live, Refused};
pub use talea_policy::arrangement::{
    ArrangeError, Arrangement, ChangeAuthor, ChangeCause, ChangeReason, arrange,
};
pub use talea_policy::strategy::plan_lanes_of;
