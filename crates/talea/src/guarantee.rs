//! What schedulers promise each other (Regehr and Stankovic 2001).
//!
//! A [`Guarantee`] is written as text or as a value. The promises of a whole hierarchy are [derived](derivation::derive)
//! from the root down; of a system it is
//!
//! ```
//! use talea::guarantee::derivation::derive;
//! use talea::{Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
//!
//! let reserved = |guarantee: &str| Ok::<_, Box<dyn std::error::Error>>(Request::Guarantee(guarantee.parse()?));
//! let system = System::builder("player")
//!     .scheduler(SchedulerBuilder::new("reserved", SchedulerKind::RESERVATION))
//!     .scheduler(
//!         SchedulerBuilder::new("shares", SchedulerKind::SFQ)
//!             .under("reserved", reserved("RESBH 10ms 20ms")?),
//!     )
//!     .thread(ThreadBuilder::new("voice", ThreadWork::CpuBound).with_share("shares", 4))
//!     .thread(ThreadBuilder::new("text", ThreadWork::CpuBound).with_share("shares", 1))
//!     .build()?;
//! let hierarchy = system.hierarchy(0).expect("the node is scheduled by one");
//! let derivation = derive(&hierarchy)?;
//! let text = derivation.between("shares", "text").expect("it is derived");
//! assert_eq!(text.label.to_string(), "PSBE 0.1 22ms");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use talea_guarantee::guarantee::Guarantee;
pub use talea_guarantee::{
    conversion, derivation, exact, hierarchy, label, monitor, notation, proviso, remedy, rewrite, scheduler,
    theorem,
};
