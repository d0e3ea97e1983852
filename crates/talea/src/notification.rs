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
//!
//! # Events
//!
//! An [`Event`] has a [`Header`], which the channel reads, and [`Content`] of any type, which it does not. [`Event::new`] allocates; an [`EventPool`] has
//! events that were made beforehand, lends one to be written, and has it back when nobody has it any more. So in jobs events come from pools.
//!
//! ```
//! use talea::notification::{Content, EventPool, EventType};
//!
//! #[derive(Default)]
//! struct Battery { charge: f64 }
//! impl Content for Battery {}
//!
//! let mut events = EventPool::new(8, &EventType::new("Robot", "Battery"), Battery::default);
//! let mut event = events.loan().expect("none is under way");
//! event.content().charge = 11.5;
//! event.header().priority = Some(7);
//! let event = event.done();
//! assert_eq!(event.content::<Battery>().map(|battery| battery.charge), Some(11.5));
//! ```
//!
//! Events whose properties nobody knows beforehand carry an [`etcl::Event`]: names with values, as strangers send them ([`wire`]).
//!
//! # Which events a consumer has
//!
//! Those of the types to which it has [subscribed](ConsumerBuilder::subscribe), of these what its [`Filter`]s match, and of these those with which its
//! [`Condition`] comes true. A filter holds a constraint, a text or code, against header and content. The text is checked against the type that
//! events carry, and compiled, when it is read:
//!
//! ```
//! use talea::notification::{Collect, Condition, Content, Filter, Filterable};
//!
//! #[derive(Filterable)]
//! #[filterable(crate = "talea::notification::etcl")]
//! struct Battery { charge: f64, cell: u32 }
//! impl Content for Battery {}
//!
//! let low = Filter::parse::<Battery>(&[], "charge < 20 and cell != 3 and $priority >= 0")?;
//! let wrong = Filter::parse::<Battery>(&[], "charg < 20").unwrap_err();
//! assert!(wrong.to_string().contains("charge"));
//!
//! // The newest of each, whenever there is one of both; or word that nothing came for a while.
//! let of = |text: &str| text.parse().map(|event_type| Condition::of_types([event_type]));
//! let both = Condition::all(Collect::Latest, [of("Robot/Battery")?, of("Robot/Position")?]);
//! let silence = Condition::unless_within(talea::Duration::from_millis(50), of("Robot/*")?);
//! let either = Condition::any([both, silence]);
//! # let _ = (low, either);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where and when it has them
//!
//! | Asked for by | What |
//! |---|---|
//! | [`lane`](ConsumerBuilder::lane), [`lane_from`](ConsumerBuilder::lane_from), [`ThreadPool`] | the lane in which it is called, one for all events or by their priority |
//! | [`qos`]: `OrderPolicy`, `DiscardPolicy`, `MaxEventsPerConsumer` | the order in which events wait for it, and which goes if there is no room |
//! | `Timeout`, [`map_lifetime`](ConsumerBuilder::map_lifetime), the header's stop time | until when an event is worth being delivered, which is the deadline of the job that delivers it |
//! | `MinimumSeparation`, `PacingInterval`, `MaximumBatchSize` | how often it is called, and with how many |
//! | [`on_deadline_miss`](ConsumerBuilder::on_deadline_miss) | what is called when a delivery was late |
//! | [`Outcome`] | what its code says of what it was given: it has it, again later, it is of no use, or the consumer is gone |
//!
//! A consumer that takes its events itself is connected by [`connect_pull`](ConsumerBuilder::connect_pull): it tries, waits, iterates, waits for several
//! at once ([`WaitSet`]) or is an asynchronous [`EventStream`].
//!
//! # Channels of a description
//!
//! A system may declare channels, what its operations publish, and tasks that events release. Such a system is checked, simulated and run like any other,
//! and its code opens what is declared ([`declared::EventPorts`]). The same code runs on threads ([`Run`](crate::Run)) and in virtual time:
//!
//! ```
//! use talea::notification::declared::{EventPorts, JobEvents};
//! use talea::notification::qos::QosSettings;
//! use talea::notification::{Content, Filterable};
//! use talea::run::Operations;
//! use talea::system::FieldValues;
//! use talea::{Duration, PublicationBuilder, SubscriptionBuilder, System, TaskBuilder, Work};
//!
//! #[derive(Default, Filterable)]
//! #[filterable(crate = "talea::notification::etcl")]
//! struct Battery { charge: f64 }
//! impl Content for Battery {}
//!
//! let gauge = TaskBuilder::new("gauge", Duration::from_millis(10)).wcet(Work::from_micros(100));
//! // Without code, the field would be drawn.
//! let battery = PublicationBuilder::new("health", "Robot/Battery");
//! let battery = battery.field("charge", FieldValues::Uniform(0, 100));
//! let low = SubscriptionBuilder::new("health").types(["Robot/*"]).filter("charge < 20");
//! let guard = TaskBuilder::triggered_by("guard", low).deadline(Duration::from_millis(5));
//! let system = System::builder("robot")
//!     .channel("health", QosSettings::new().max_events(8))
//!     .task(gauge.event(battery))
//!     .task(guard.wcet(Work::from_micros(50)))
//!     .build()?;
//! let operations = Operations::synthetic()
//!     .with_ports("gauge", |ports| {
//!         let battery = ports.publication::<Battery>("Robot/Battery");
//!         move |job| {
//!             let charge = 90.0 - job.instance() as f64;
//!             assert!(job.push(battery, |battery, _header| battery.charge = charge));
//!         }
//!     })
//!     .with_ports("guard", |ports| {
//!         ports.subscription();
//!         move |job| {
//!             let taken = job.event().expect("it has not expired");
//!             assert!(taken.event().content::<Battery>().is_some_and(|battery| battery.charge < 20.0));
//!         }
//!     });
//! let report = talea::simulation::simulate_operations(&system, operations, Duration::from_secs(1))?;
//! assert_eq!((report.tasks[0].met, report.tasks[1].met), (100, 29), "from the 71st on");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Consumers and suppliers that a program connects itself have their events in virtual time as well, in a [`VirtualRun`](crate::simulation::VirtualRun).
//!
//! # Real time
//!
//! All memory is made when channels, pools and consumers are. Pushing an event of an offered type, filtering, queueing, conditions and delivering then
//! neither allocate nor lock, in as many steps as consumers have subscribed to the type. What is not real-time safe: making, connecting, disconnecting
//! and changing; the first push of a type that was not offered; events of [retained](SupplierBuilder::offer_retained) types, which take a lock for as
//! long as remembering one takes; and what the program's own code does.
//!
//! # What is counted
//!
//! Each event that comes to a consumer is counted once when it does not wait any more, by what became of it ([`ConsumerStatistics`],
//! [`ChannelStatistics`]). A [`Monitor`] reads it by the standard's names; `talea trace read` shows the numbers among them while the program runs, and `talea ctl NAME statistics` all of
//! them if the program has a [`MonitorServer`].

pub use talea_notification::*;
pub use talea_runtime::MonitorServer;
