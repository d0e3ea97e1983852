//! Events: suppliers push them into channels, and each consumer has those that it wants delivered as work of its lane.
//!
//! A delivery is a job like any other: it waits in a lane, ordered by that lane's discipline, is recorded, counted, explained and verified. What a
//! channel does with an event on the way is decided by filters and by quality of service: [`talea_notification`] has the whole.
//!
//! ```
//! use talea::notification::qos::QosSettings;
//! use talea::notification::{AdminProperties, Content, Event, EventChannelFactory, EventType, Header, Outcome};
//! use talea::{Duration, RtMode, Run, System, TaskBuilder, Work};
//!
//! struct Battery(f64);
//! impl Content for Battery {}
//!
//! let factory = EventChannelFactory::new();
//! let channel = factory.create("health", &QosSettings::new(), AdminProperties::default())?;
//! let display = channel.consumer("display").subscribe(["Robot/*".parse()?]).connect(|delivery| {
//!     if let Some(Battery(charge)) = delivery.event().content() {
//!         println!("the battery is at {charge} %");
//!     }
//!     Outcome::Ok
//! })?;
//! let battery = EventType::new("Robot", "Battery");
//! let mut supplier = channel.supplier("gauge").offer([battery.clone()]).connect()?;
//!
//! let gauge = TaskBuilder::new("gauge", Duration::from_millis(10)).wcet(Work::from_micros(100));
//! let system = System::builder("robot").task(gauge).build()?;
//! Run::new(&system)
//!     .operation("gauge", move |job| {
//!         let event = Event::new(Header::new(battery.clone()), Battery(90.0 - job.instance() as f64));
//!         supplier.push(job, &event).expect("nothing is asked of it that there is not");
//!     })
//!     .events(&factory)
//!     .realtime(RtMode::Off)
//!     .duration(Duration::from_secs(1))
//!     .run()?;
//! assert!(display.statistics().delivered > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use talea_notification::*;
