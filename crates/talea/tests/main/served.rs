//! What channels count, told to other programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use talea::hierarchy::control::protocol::{Command, Insistence, Outcome, Statistic};
use talea::hierarchy::control::{Client, ServeError, Sockets};
use talea::notification::{
    Content, Event, EventChannelFactory, EventType, Header, Monitor, MonitorServer, TypePattern,
};
use talea::run::{NotPosted, Post, Posted};
use talea::{Duration, Instant};

struct Tick;
impl Content for Tick {}

/// At an instant that the test says; nothing is delivered.
struct At(Instant);

impl Post for At {
    fn now(&self) -> Instant {
        self.0
    }

    fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
        Ok(0)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

#[test]
fn another_program_is_told_every_statistic_by_its_name() {
    let place = tempfile::tempdir().expect("a folder");
    let sockets = Sockets::at(&place.path().join("control")).expect("a folder");
    let factory = EventChannelFactory::new();
    let channel = factory.create_with_defaults("motion");
    let tick = EventType::new("Robot", "Tick");
    let robot: TypePattern = "Robot".parse().expect("a pattern");
    let guard = channel.consumer("guard").subscribe([robot]).connect_pull().expect("connected");
    let mut imu = channel.supplier("imu").offer([tick.clone()]).connect().expect("connected");
    imu.push(At(Instant::ZERO), &Event::new(Header::new(tick), Tick)).expect("pushed");

    let monitor = Arc::new(Monitor::new().with("plant", &factory));
    let now = || Instant::ZERO + Duration::from_millis(7);
    let server = MonitorServer::start_in(&sockets, "plant", Arc::clone(&monitor), now).expect("served");
    let again = MonitorServer::start_in(&sockets, "plant", Arc::clone(&monitor), now);
    assert!(matches!(again, Err(ServeError::Taken(_))), "{again:?}");
    let client = Client::of(&sockets.find("plant").expect("it is there"));
    let ask = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        client.ask(&Command::Statistics { names }, Insistence::Careful).expect("answered")
    };

    let Outcome::Statistics(all) = ask(&[]) else { panic!("statistics") };
    assert_eq!(
        all.keys().cloned().collect::<std::collections::BTreeSet<_>>(),
        monitor.names().into_iter().collect()
    );
    let names = |name: &str| match &all[&format!("plant/motion/{name}")] {
        Statistic::Names(names) => names.join(", "),
        number => panic!("names, not {number:?}"),
    };
    let told =
        ["ConsumerNames", "SupplierNames", "OfferedTypes", "SubscribedTypes", "SlowestConsumers"].map(names);
    assert_eq!(told, ["guard", "imu", "Robot/Tick", "Robot/Tick", "guard"]);
    let oldest = &all["plant/motion/OldestEvent"];
    assert!(matches!(oldest, Statistic::Number { last: 7e6, count: 1, .. }), "{oldest:?}");

    // What is below a path; and what has been read counts as a sample, whoever has read it.
    let Outcome::Statistics(one) = ask(&["plant/motion/OldestEvent"]) else { panic!("statistics") };
    assert!(matches!(one["plant/motion/OldestEvent"], Statistic::Number { count: 2, .. }), "{one:?}");
    assert_eq!(one.len(), 1);
    let Outcome::Statistics(of_channel) = ask(&["plant/motion", "FactoryNames"]) else {
        panic!("statistics")
    };
    assert_eq!(of_channel.len(), 18);

    // What there is not, and what somebody else does.
    for unknown in ["plant/mot", "plant/motion/", "", "FactoryNames/x"] {
        let Outcome::Misstated(message) = ask(&[unknown]) else { panic!("{unknown} is none") };
        assert!(message.contains(&format!("no statistic \"{unknown}\"")), "{message}");
    }
    let listing = client.ask(&Command::List, Insistence::Careful).expect("answered");
    assert!(
        matches!(&listing, Outcome::Refused(refusal) if refusal.reasons[0].contains("no hierarchy")),
        "{listing:?}"
    );

    drop(guard);
    let Outcome::Statistics(later) = ask(&["plant/motion/SubscribedTypes"]) else { panic!("statistics") };
    assert_eq!(later["plant/motion/SubscribedTypes"], Statistic::Names(vec![]));
    drop(server);
    client.ask(&Command::List, Insistence::Careful).unwrap_err();
}

/// Channels come and go while others ask: each answer is whole, and of a channel that has gone nothing is told.
#[test]
fn channels_come_and_go_while_others_ask() {
    let place = tempfile::tempdir().expect("a folder");
    let sockets = Sockets::at(&place.path().join("control")).expect("a folder");
    let factory = EventChannelFactory::new();
    factory.create_with_defaults("stays");
    let monitor = Arc::new(Monitor::new().with("plant", &factory));
    let _server = MonitorServer::start_in(&sockets, "plant", monitor, || Instant::ZERO).expect("served");
    let client = Client::of(&sockets.find("plant").expect("it is there"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let made = factory.create_with_defaults("goes");
                let consumer = made.consumer("guard").connect_pull();
                factory.destroy(made.id());
                drop(consumer);
            }
        });
        let asking = || {
            for _ in 0..200 {
                let all = Command::Statistics { names: Vec::new() };
                let answer = client.ask(&all, Insistence::Careful).expect("answered");
                let Outcome::Statistics(all) = answer else { panic!("{answer:?}") };
                let stays = all.keys().filter(|name| name.starts_with("plant/stays/"));
                assert_eq!(stays.count(), 17, "{all:?}");
                let goes = Command::Statistics { names: vec!["plant/goes".into()] };
                match client.ask(&goes, Insistence::Careful).expect("answered") {
                    Outcome::Statistics(of_channel) => assert!(of_channel.len() <= 17, "{of_channel:?}"),
                    Outcome::Misstated(message) => assert!(message.contains("plant/goes"), "{message}"),
                    other => panic!("{other:?}"),
                }
            }
        };
        let others = [scope.spawn(asking), scope.spawn(asking)];
        let ended: Vec<_> = others.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|asked| asked.expect("it was answered"));
    });
}
