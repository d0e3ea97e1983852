//! What system files say of a scheduler beside its kind is what it does.

use std::path::Path;
use talea_model::parse;
use talea_policy::arrangement::{Blueprint, PostRole};
use talea_policy::hierarchy::{Enforcement, Parameters};
use talea_policy::scheduler::{Exhaustion, Habits, config};

fn blueprint(scheduler: &str, guarantee: &str) -> Blueprint {
    let text = format!(
        "[system]\nname = \"said\"\n[[scheduler]]\nname = \"S\"\n{scheduler}\n[[thread]]\nname = \"t\"\n\
         work = \"cpu-bound\"\nunder = [{{ scheduler = \"S\", guarantee = \"{guarantee}\" }}]\n"
    );
    let system =
        parse("said.toml", &text, Path::new("")).unwrap_or_else(|problems| panic!("{problems}")).system;
    let derivation =
        talea_guarantee::derivation::derive(&system.hierarchy(0).expect("one")).expect("it fits");
    Blueprint::new(&system, 0, &derivation).expect("it can be made")
}

fn enforcement(scheduler: &str, guarantee: &str) -> Enforcement {
    match blueprint(scheduler, guarantee).threads[0].under[0].parameters {
        Parameters::Reserve { enforcement, .. } => enforcement,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_soft_reserve_can_be_firm() {
    let kernel = "kind = \"resource-kernel\"";
    assert_eq!(enforcement(kernel, "RESBS 5ms 20ms"), Enforcement::Soft);
    let firm = format!("{kernel}\nenforcement = \"firm\"");
    assert_eq!(enforcement(&firm, "RESBS 5ms 20ms"), Enforcement::Firm);
    assert_eq!(enforcement(&firm, "RESBH 5ms 20ms"), Enforcement::Hard);
}

#[test]
fn planning_takes_the_effort_that_is_said() {
    let effort = |scheduler: &str| match &blueprint(scheduler, "RESBH 5ms 20ms").schedulers[0].role {
        PostRole::Scheduler(configuration, _) => {
            configuration.of::<config::Spring>().map(|spring| spring.effort)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(effort("kind = \"spring\""), Some(24_000));
    assert_eq!(effort("kind = \"spring\"\neffort = 7"), Some(7));
}

#[test]
fn constant_bandwidth_servers_stop_or_go_on() {
    let exhaustion = |kind: &str, guarantee: &str| {
        let blueprint = blueprint(&format!("kind = \"{kind}\""), guarantee);
        let PostRole::Scheduler(configuration, _) = &blueprint.schedulers[0].role else {
            panic!("a scheduler")
        };
        configuration.of::<config::Reservation>().map(|config| config.exhaustion)
    };
    assert_eq!(exhaustion("constant-bandwidth", "RESBH 5ms 20ms"), Some(Exhaustion::Suspend));
    assert_eq!(exhaustion("soft-cbs", "RESBS 5ms 20ms"), Some(Exhaustion::Postpone));
}

fn made<C: talea_policy::scheduler::Config>(scheduler: &str) -> C {
    let text = format!(
        "[system]\nname = \"said\"\n[[scheduler]]\nname = \"S\"\n{scheduler}\n[[thread]]\nname = \"t\"\n\
         work = \"cpu-bound\"\nunder = [{{ scheduler = \"S\" }}]\n"
    );
    let system =
        parse("said.toml", &text, Path::new("")).unwrap_or_else(|problems| panic!("{problems}")).system;
    let derivation =
        talea_guarantee::derivation::derive(&system.hierarchy(0).expect("one")).expect("it fits");
    let blueprint = Blueprint::new(&system, 0, &derivation).expect("it can be made");
    let PostRole::Scheduler(configuration, _) = &blueprint.schedulers[0].role else { panic!("a scheduler") };
    configuration.of::<C>().expect("a scheduler of this kind").clone()
}

#[test]
fn time_sharing_has_the_habits_that_are_said() {
    use talea_time::{Duration, Work};
    let usual = Habits { quantum: Work::from_millis(10), ..Habits::default() };
    for kind in ["time-sharing", "linux", "windows-2000"] {
        assert_eq!(made::<config::TimeSharing>(&format!("kind = \"{kind}\"")).0, usual);
    }
    let said = "kind = \"time-sharing\"\nquantum = \"20ms\"\nboost = 0\nstarvation = \"1s\"\nbase_level = 15";
    let starvation = Duration::from_secs(1);
    let habits = Habits { quantum: Work::from_millis(20), boost: 0, starvation, base: 15 };
    assert_eq!(made::<config::TimeSharing>(said).0, habits);
}

#[test]
fn orders_of_jobs_have_the_room_that_is_said() {
    assert_eq!(made::<config::Lane>("kind = \"edf\"").capacity, 64);
    assert_eq!(made::<config::Lane>("kind = \"fifo\"\ncapacity = 3").capacity, 3);
}
