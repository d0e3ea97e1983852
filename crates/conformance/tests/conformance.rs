//! Every scheduler that a system file can name conforms, and so does the own one of the example.

#![forbid(unsafe_code)]

#[path = "../../../examples/own_scheduler/weighted_turns.rs"]
mod weighted_turns;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use talea::run::control::protocol::{Command, Insistence, Listing, Outcome, Row};
use talea::run::control::{Client, Sockets};
use talea_model::SchedulerKind;
use talea_policy::scheduler::{row, rows};

/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// What each thread of the run is to receive: more than its clock may have counted before it was granted anything.
const ENOUGH: Duration = Duration::from_millis(5);

macro_rules! each {
    ($($name:ident: $kind:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            talea_conformance::check(row(SchedulerKind::$kind).expect("it is in the table"));
        })*

        const TESTED: &[SchedulerKind] = &[$(SchedulerKind::$kind),*];
    };
}

each! {
    fixed_priority: FIXED_PRIORITY,
    join: JOIN,
    limit: LIMIT,
    proportional_share: PROPORTIONAL_SHARE,
    sfq: SFQ,
    eevdf: EEVDF,
    lottery: LOTTERY,
    stride: STRIDE,
    sfs: SFS,
    reservation: RESERVATION,
    cbs: CBS,
    tbs: TBS,
    resource_kernel: RESOURCE_KERNEL,
    rialto: RIALTO,
    rialto_nt: RIALTO_NT,
    spring: SPRING,
    srms: SRMS,
    bss_i: BSS_I,
    pshed: PSHED,
    soft_cbs: SOFT_CBS,
    time_sharing: TIME_SHARING,
    linux: LINUX,
    windows_2000: WINDOWS_2000,
    round_robin: ROUND_ROBIN,
    explicit_plan: EXPLICIT_PLAN,
    fifo: FIFO,
    edf: EDF,
    laxity: LAXITY,
}

/// The example's own scheduler, which is registered once for all tests.
fn own() -> SchedulerKind {
    static OWN: OnceLock<SchedulerKind> = OnceLock::new();
    *OWN.get_or_init(|| talea::schedulers::register(&weighted_turns::ROW).expect("nobody has its name"))
}

#[test]
fn an_own_scheduler() {
    own();
    talea_conformance::check(&weighted_turns::ROW);
}

/// Where a system file names a kind that nobody has, the own ones are among those that may be meant.
#[test]
fn an_own_scheduler_is_suggested_like_the_built_in_ones() {
    own();
    let remedy = |kind: &str| {
        let text = format!("[system]\nname = \"x\"\n[[scheduler]]\nname = \"S\"\nkind = \"{kind}\"\n");
        let problems = talea::parse("x.toml", &text, "".as_ref()).expect_err("there is no such kind");
        problems.list().iter().map(|problem| problem.remedy.clone()).collect::<Vec<_>>().join("\n")
    };
    assert!(remedy("weighted-turn").contains("did you mean \"weighted-turns\"?"));
    assert!(remedy("table-driven").contains("lanes, weighted-turns"), "{}", remedy("table-driven"));
}

/// A system file names it; while the system runs, another scheduler takes its place, and it takes that one's.
#[test]
fn an_own_scheduler_takes_the_place_of_another_while_it_runs() {
    let own = own();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own_scheduler/system.toml");
    let system = talea::read(&file).expect("the example can be read").system;
    assert!(system.schedulers.iter().any(|scheduler| scheduler.name == "shares" && scheduler.kind == own));
    let prepared = match talea::Run::new(&system).prepare() {
        Err(error) if error.to_string().contains("permitted") => return talea_measure::skip(error),
        prepared => prepared.expect("the example can be prepared"),
    };
    // However long it takes: whoever controls ends the run, and the end of the run whoever controls.
    let (stop, is_over) = (prepared.stop_handle(), AtomicBool::new(false));
    let (run, seen) = std::thread::scope(|scope| {
        let controller = scope.spawn(|| {
            let client = client(&is_over);
            let seen = ["stride", "weighted-turns"].map(|kind| replaced(client.as_ref()?, kind));
            client.iter().for_each(await_receipts);
            stop.stop();
            seen
        });
        let run = prepared.run();
        is_over.store(true, Ordering::Relaxed);
        (run, controller.join().expect("whoever controls does not panic"))
    });
    match run {
        Err(error) if error.to_string().contains("permitted") => talea_measure::skip(error),
        Err(error) => panic!("{error}"),
        Ok(outcome) => {
            assert_eq!(seen, [Some("stride".to_owned()), Some("weighted-turns".to_owned())]);
            let edges = outcome.hierarchies.iter().flat_map(|hierarchy| &hierarchy.edges);
            assert!(edges.clone().count() > 0);
            edges.for_each(|edge| assert!(edge.received_ns > 0, "{edge:?}"));
        }
    }
}

/// The way to the run of this process; none if that was over before it could be controlled.
fn client(is_over: &AtomicBool) -> Option<Client> {
    loop {
        let sockets = Sockets::of_user().ok()?;
        match sockets.find(&std::process::id().to_string()) {
            Ok(run) => return Some(Client::of(&run)),
            Err(_) if !is_over.load(Ordering::Relaxed) => std::thread::sleep(LOOK),
            Err(_) => return None,
        }
    }
}

/// What there is of the run's hierarchy; none if the run is over.
fn listing(client: &Client) -> Option<Listing> {
    match client.ask(&Command::List, Insistence::Careful).ok()? {
        Outcome::Listing(listing) => Some(listing),
        other => panic!("{other:?}"),
    }
}

/// What "shares" is once a scheduler of this kind has been asked for; none if the run is over.
fn replaced(client: &Client, kind: &str) -> Option<String> {
    let command = Command::Replace {
        name: "shares".into(),
        kind: kind.into(),
        quantum: None,
        settings: BTreeMap::new(),
        children: Vec::new(),
    };
    assert!(matches!(client.ask(&command, Insistence::Careful).ok()?, Outcome::Done(_)), "{kind}");
    let rows = listing(client)?.rows;
    rows.into_iter().find(|row| row.name == "shares").map(|row| row.kind)
}

/// Waits until each thread has received something by its clock, or the run is over. Only then is it certain that not all that was granted will
/// prove to have been withheld, when the kernel's switches are known.
fn await_receipts(client: &Client) {
    let has_received = |row: &Row| row.kind != "thread" || row.used_ns > Some(ENOUGH.as_nanos() as i64);
    while listing(client).is_some_and(|listing| !listing.rows.iter().all(has_received)) {
        std::thread::sleep(LOOK);
    }
}

/// Every kind that stands in files has code, and a test above.
#[test]
fn none_is_left_out() {
    let built_in = rows().into_iter().map(|row| row.kind()).filter(|kind| kind.place < u8::MAX);
    for kind in built_in {
        assert!(TESTED.contains(&kind), "{kind} is not tested");
    }
    let in_files = SchedulerKind::in_files().into_iter();
    for kind in in_files.filter(|kind| *kind != SchedulerKind::LANES) {
        assert!(row(kind).is_some(), "{kind} cannot be made");
    }
}
