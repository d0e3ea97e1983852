//! Events in twenty lines: who pushes does not know who listens. `cargo run --example events`

use talea::notification::qos::QosSettings;
use talea::notification::{AdminProperties, Event, EventChannelFactory, EventType, Filter, Filterable};
use talea::notification::{Content, Header, Outcome};
use talea::{Duration, Run};

#[derive(Filterable)]
#[filterable(crate = "talea::notification::etcl")]
struct Battery {
    charge: f64,
}
impl Content for Battery {}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let system = talea::read("examples/hello.toml".as_ref())?.system;
    let factory = EventChannelFactory::new();
    let channel = factory.create("robot", &QosSettings::new(), AdminProperties::default())?;
    let low = Filter::parse::<Battery>(&[], "charge < 20")?;
    let _warning = channel.consumer("warning").filter(low).connect(|delivery| {
        println!("low battery: event {}", delivery.number());
        Outcome::Ok
    })?;
    let battery = EventType::new("Robot", "Battery");
    let mut supplier = channel.supplier("blink").offer([battery.clone()]).connect()?;
    let blink = move |job: &talea::JobContext<'_>| {
        let charge = 100.0 - 10.0 * job.instance() as f64;
        supplier
            .push(job, &Event::new(Header::new(battery.clone()), Battery { charge }))
            .expect("it is a small event");
    };
    Run::new(&system).events(&factory).operation("blink", blink).duration(Duration::from_secs(1)).run()?;
    Ok(())
}
