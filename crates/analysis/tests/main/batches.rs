//! Chains through jobs that take all events which wait when they begin.

use talea_analysis::Effort;
use talea_analysis::system::{ChainBounds, ChainObstacle, analyse};
use talea_event::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_model::{
    ChainBuilder, EventTake, PublicationBuilder, Strategy, SubscriptionBuilder, System, TaskBuilder,
};
use talea_policy::strategy::plan_system;
use talea_time::{Duration, Work};

const MS: fn(i64) -> Duration = Duration::from_millis;

/// "sense" pushes every 10 ms, and "report", if it is there, every 20 ms; "log" takes what waits every 40 ms.
fn bounds(
    publication: PublicationBuilder,
    subscription: SubscriptionBuilder,
    with_report: bool,
) -> ChainBounds {
    let task = |name: &str, period| TaskBuilder::new(name, MS(period)).wcet(Work::from_millis(1));
    let mut system = System::builder("batches").strategy(Strategy::Rms).node("n", [0]);
    system = system.channel("c", QosSettings::new()).task(task("sense", 10).event(publication));
    if with_report {
        system = system.task(task("report", 20).event(PublicationBuilder::new("c", "T/Report")));
    }
    let log = TaskBuilder::new("log", MS(40)).wcet(Work::from_millis(2)).subscription(subscription);
    let system = system.task(log).chain(ChainBuilder::new("c", ["sense", "log"])).build().expect("a system");
    let plans = plan_system(&system).expect("it has periods");
    let mut effort = Effort::new(1_000_000);
    let bounds = analyse(&system, &plans, &mut effort).expect("small numbers");
    bounds.chains(&system, &mut effort).remove(0)
}

fn times(bounds: &ChainBounds) -> [Result<i64, &'static str>; 3] {
    let word = |obstacle: ChainObstacle| match obstacle {
        ChainObstacle::InTurn(_) => "in turn",
        ChainObstacle::Discarded(_) => "discarded",
        ChainObstacle::Expired(_) => "expired",
        ChainObstacle::Filtered(_) => "filtered",
        other => panic!("{other}"),
    };
    [bounds.latency, bounds.reaction, bounds.age]
        .map(|time| time.map(|time| time.as_nanos() / 1_000_000).map_err(word))
}

#[test]
fn a_batch_is_as_old_as_its_newest_event_and_waits_for_one_job() {
    let event = || PublicationBuilder::new("c", "T/Sense");
    let all = || SubscriptionBuilder::new("c").take(EventTake::All);
    let most = |events| QosSettings::new().max_events(events);
    // Sensed within 1 ms, 40 ms until the next look, which ends after 3 ms. The newest event is 10 ms and 1 ms older than that.
    let bounded = [Ok(1 + 40 + 3), Ok(10 + 1 + 40 + 3), Ok(3 + 10 + 1)];
    assert_eq!(times(&bounds(event(), all(), false)), bounded);
    assert_eq!(
        times(&bounds(event(), all().qos(QosSettings::new().order(OrderPolicy::Priority)), false)),
        bounded
    );

    // Between two looks, in 43 ms, come five: when one goes, it is the oldest of one publisher that makes no difference.
    let kept = |events, discard| all().qos(most(events).discard(discard));
    assert_eq!(times(&bounds(event(), kept(5, DiscardPolicy::Lifo), false)), bounded);
    let discarded = [Err("discarded"); 3];
    assert_eq!(times(&bounds(event(), kept(4, DiscardPolicy::Lifo), false)), discarded);
    assert_eq!(times(&bounds(event(), kept(4, DiscardPolicy::Priority), false)), discarded);
    assert_eq!(times(&bounds(event(), kept(1, DiscardPolicy::Fifo), false)), bounded);
    // Nor is it, where only one may wait, how many are taken.
    let newest = SubscriptionBuilder::new("c").qos(most(1));
    assert_eq!(times(&bounds(event(), newest, false)), bounded);
    let next = SubscriptionBuilder::new("c").qos(most(2));
    assert_eq!(times(&bounds(event(), next, false)), [Err("in turn"); 3]);

    // Of two publishers one may push out what the other has pushed: five and three come, "log" being 1 ms later.
    let with_both = [Ok(1 + 40 + 4), Ok(10 + 1 + 40 + 4), Ok(4 + 10 + 1)];
    assert_eq!(times(&bounds(event(), kept(8, DiscardPolicy::Fifo), true)), with_both);
    assert_eq!(times(&bounds(event(), kept(7, DiscardPolicy::Fifo), true)), discarded);

    // An event waits for up to 43 ms.
    let timeout = |ms| bounds(event().timeout(MS(ms)), all(), false);
    assert_eq!((times(&timeout(43)), times(&timeout(42))), (bounded, [Err("expired"); 3]));

    // What a filter lets through takes no longer, and may come at any time.
    let filtered =
        bounds(event().field("x", talea_model::FieldValues::Uniform(0, 9)), all().filter("x < 5"), false);
    assert_eq!(times(&filtered), [Ok(44), Err("filtered"), Err("filtered")]);
}
