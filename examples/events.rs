//! Events in twenty lines: who pushes does not know who listens. `cargo run --example events`

use talea::notification::{Event, EventChannelFactory, Filter, Outcome, StructuredEvent};
use talea::{Duration, JobContext, Run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let system = talea::read("examples/hello.toml".as_ref())?.system;
    let factory = EventChannelFactory::new();
    let channel = factory.create_with_defaults("robot");
    let low = Filter::parse::<StructuredEvent>(&[], "$charge < 20")?;
    let _warning = channel.consumer("warning").filter(low).connect(|delivery| {
        println!("low battery: event {}", delivery.number());
        Outcome::Ok
    })?;
    let mut supplier = channel.supplier("blink").connect()?;
    let blink = move |job: &JobContext<'_>| {
        let charge = 100 - 10 * job.instance() as i64;
        let battery = StructuredEvent::new("Robot", "Battery", "left").with("charge", charge);
        supplier.push(job, &Event::structured(battery).expect("it has no header")).expect("it is small");
    };
    Run::new(&system).events(&factory).operation("blink", blink).duration(Duration::from_secs(1)).run()?;
    Ok(())
}
