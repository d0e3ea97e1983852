//! What holds on a machine that costs and withholds something.

use std::path::Path;
use talea_check::machine::{MachineCheck, check_on};
use talea_check::{Check, Verdict, check};
use talea_model::{Machine, System};
use talea_policy::strategy::plan_lanes_of;

/// Costs of a desktop, and the kernel's default throttling.
const MACHINE: &str = "
[machine]
kernel = \"6.1\"
real_time = true
longest_stall = \"2ms\"
[[costs]]
load = \"busy\"
switch = \"2us\"
queue = \"10us\"
timer = \"30us\"
message = \"1us\"
push = \"1us\"
filter = \"1us\"
delivery = \"1us\"
[[withheld]]
by = \"throttling\"
amount = \"50ms\"
period = \"1s\"
";

fn system(text: &str) -> System {
    talea_model::parse("test", text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}")).system
}

fn both(text: &str) -> (Check, MachineCheck) {
    let system = system(text);
    let plans = plan_lanes_of(&system).expect("it has lanes");
    let machine = Machine::parse(MACHINE).expect("a profile");
    (check(&system).expect("small numbers"), check_on(&system, &plans, &machine).expect("small numbers"))
}

/// Tasks by rate: period in milliseconds, execution time in microseconds.
fn tasks(tasks: &[(u32, u32)]) -> String {
    let task = |(index, (period, wcet)): (usize, &(u32, u32))| {
        format!(
            "[[task]]\nname = \"t{index}\"\nperiod = \"{period}ms\"\nwcet = \"{wcet}us\"\ncriticality = \"high\"\n"
        )
    };
    tasks.iter().enumerate().map(task).collect()
}

const RATES: &str = "[system]\nname = \"rates\"\nstrategy = \"rms\"\n";

#[test]
fn what_the_kernel_takes_back_is_missing_near_its_limit() {
    let text = format!("{RATES}{}", tasks(&[(5, 1500), (10, 3000), (20, 4000), (40, 5300)]));
    let (ideal, here) = both(&text);
    assert!(ideal.holds(), "93.25 % hold by response-time analysis");
    assert!(!here.holds() && here.beyond().count() == 1, "{:?}", here.load);
    // The highest task, too, waits while the kernel withholds.
    assert!(here.report.tasks[0].bound_ns > Some(50_000_000), "{:?}", here.report.tasks[0]);
}

#[test]
fn what_leaves_the_kernel_its_part_is_delayed_by_costs_alone() {
    let text = format!("{RATES}{}", tasks(&[(5, 1400), (10, 2900), (20, 3800), (40, 4800)]));
    let (ideal, here) = both(&text);
    assert_eq!(here.beyond().count(), 0, "{:?}", here.load);
    assert!(ideal.holds() && here.holds());
    let last = |report: &talea_check::CheckReport| report.tasks[3].bound_ns.expect("it has a bound");
    assert_eq!(last(&ideal.report), 20_000_000, "exactly at the release of all others");
    assert!(last(&here.report) > 28_000_000, "microseconds cross that release: {}", last(&here.report));
}

/// Video below a reservation, two programs that take turns; `last` is below everything else.
fn multimedia(last: &str) -> String {
    format!(
        "[system]\nname = \"multimedia\"\n\
         [[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
         [[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\nunder = [{{ scheduler = \"FP\", priority = 2 }}]\n\
         [[scheduler]]\nname = \"RR\"\nkind = \"round-robin\"\nquantum = \"10ms\"\nunder = [{{ scheduler = \"FP\", priority = 1 }}]\n\
         [[thread]]\nname = \"video\"\nwork = {{ burst = \"4ms\", period = \"33ms\" }}\n\
         under = [{{ scheduler = \"RES\", guarantee = \"RESBH 5ms 33ms\" }}]\n\
         [[thread]]\nname = \"words\"\nwork = {{ burst = \"10ms\", period = \"100ms\" }}\nunder = [{{ scheduler = \"RR\" }}]\n\
         [[thread]]\nname = \"voice\"\nwork = {{ burst = \"40ms\", period = \"100ms\" }}\nunder = [{{ scheduler = \"RR\" }}]\n\
         {last}"
    )
}

#[test]
fn a_thread_that_nobody_waits_for_takes_only_what_slices_leave() {
    let (ideal, here) = both(&multimedia(""));
    assert!(ideal.composes() && here.findings.is_empty() && here.beyond().count() == 0, "{:?}", here.load);
    let bounds = |report: &talea_check::CheckReport| {
        report.threads.iter().map(|thread| (thread.bound_ns.is_some(), thread.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(bounds(&ideal.report), [(true, Verdict::Holds); 3]);
    assert_eq!(bounds(&here.report), [(true, Verdict::Holds); 3]);

    let spin =
        "[[thread]]\nname = \"spin\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"FP\", priority = 0 }]\n";
    let (ideal, here) = both(&multimedia(spin));
    assert!(ideal.composes(), "an ideal machine gives the lowest what is left");
    let beyond: Vec<_> = here.beyond().collect();
    assert_eq!(beyond.len(), 1);
    assert_eq!(beyond[0].endless, ["spin"], "{}", beyond[0]);
    // The kernel's part is left to it in slices, of which the reservations know nothing.
    assert_eq!(here.sliced[0].as_ref().map(ToString::to_string).as_deref(), Some("PSBE 0.93 581.25us"));
    assert!(here.findings.is_empty() && here.holds(), "{:?}", here.findings);

    // A plan needs the processor at instants of its own.
    let (_, here) = both(&multimedia(spin).replace("\"reservation\"", "\"spring\""));
    assert_eq!(here.sliced, [None]);
    assert!(here.findings.iter().any(|finding| finding.node == "RES"), "{:?}", here.findings);
    assert!(!here.holds());
}

/// `writer`, with this overrun policy, waits for up to 25 ms each time that it finds a queue full which its reader empties every 40 ms.
fn waiting(overrun: &str) -> MachineCheck {
    let system = system(&format!(
        "{RATES}[[task]]\nname = \"writer\"\nperiod = \"10ms\"\nwcet = \"1ms\"\noverrun = \"{overrun}\"\noutputs = [{{ name = \"v\" }}]\n\
         [[task]]\nname = \"reader\"\nperiod = \"40ms\"\nwcet = \"1ms\"\n\
         inputs = [{{ name = \"v\", from = \"writer.v\", take = \"each\", capacity = 1, full = \"block\", limit = \"25ms\" }}]\n"
    ));
    let plans = plan_lanes_of(&system).expect("it has lanes");
    check_on(&system, &plans, &Machine::parse(MACHINE).expect("a profile")).expect("small numbers")
}

#[test]
fn jobs_that_wait_for_room_take_what_they_execute_in_the_long_run() {
    let here = waiting("queue");
    let load = &here.load[0];
    assert_eq!(
        (load.takes_ns, load.endless.as_slice()),
        (None, &["reader".to_string(), "writer".into()][..])
    );
    // 100 jobs of 1 ms and 25 more, and what mechanisms cost.
    let wanted = load.in_the_long_run_ns.expect("nobody computes for ever");
    assert!((125_000_000..145_000_000).contains(&wanted), "{wanted}");
    let told = load.to_string();
    assert!(
        told.contains(
            "but may take all of one, for no bound is known on how many jobs of reader, writer wait"
        ),
        "{told}"
    );
    assert!(!told.contains("nothing bounds"), "{told}");
}

#[test]
fn jobs_of_which_one_at_most_is_under_way_do_not_pile_up() {
    for overrun in ["skip-next", "abort"] {
        let here = waiting(overrun);
        assert_eq!(here.load[0].endless, ["reader"], "{overrun}: {}", here.load[0]);
    }
}

/// A maximum limits what a program takes of each second.
#[test]
fn a_program_below_a_maximum_leaves_the_kernel_its_part() {
    let capped = |amount: u32| {
        format!(
            "[system]\nname = \"capped\"\n[[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\n\
             [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{{ scheduler = \"RES\", guarantee = \"RESBH {amount}ms 10ms\" }}]\n"
        )
    };
    assert_eq!(both(&capped(8)).1.beyond().count(), 0);
    assert_eq!(both(&capped(10)).1.beyond().count(), 1);
}

/// One processor gives no more than a second in a second, and a maximum of 94 % takes less than the 95 % that the kernel leaves: 47 ms at
/// each end of it, and 94 % of the rest.
#[test]
fn a_node_takes_no_more_than_its_processors_give() {
    let capped = |amount: &str| {
        format!(
            "[system]\nname = \"capped\"\n[[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\n\
             [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{{ scheduler = \"RES\", guarantee = \"RESBH {amount}\" }}]\n"
        )
    };
    /// The end of the budget.
    const TIMER_NS: i64 = 30_000;
    let takes = |amount: &str| both(&capped(amount)).1.load[0].takes_ns;
    assert_eq!(takes("47ms 50ms"), Some(945_640_000 + TIMER_NS));
    assert_eq!(takes("50ms 50ms"), Some(1_000_000_000));
    // In two windows of a period each, as before: the time between is long.
    assert_eq!(takes("300ms 700ms"), Some(771_428_572 + TIMER_NS));
    assert_eq!(takes("600ms 10s"), Some(1_000_000_000));
}

/// What is received is exactly what is needed, which no bound can be of: the reason is not what mechanisms cost, where they cost nothing.
#[test]
fn costs_are_a_reason_only_where_there_are_any() {
    let shares = |head: &str| {
        format!(
            "[system]\nname = \"shares\"\n{head}[[scheduler]]\nname = \"S\"\nkind = \"proportional-share\"\nquantum = \"1ms\"\n\
             [[thread]]\nname = \"words\"\nwork = {{ burst = \"10ms\", period = \"100ms\" }}\nunder = [{{ scheduler = \"S\", share = 1 }}]\n\
             [[thread]]\nname = \"voice\"\nwork = \"cpu-bound\"\nunder = [{{ scheduler = \"S\", share = 9 }}]\n"
        )
    };
    let why = |head: &str| {
        let found = check(&system(&shares(head))).expect("small numbers");
        found.report.threads[0].why.clone().expect("a reason")
    };
    let ideal = why("");
    assert!(ideal.contains("10.0 % of a processor and receives 10.0 %; that is no more than"), "{ideal}");
    assert!(!ideal.contains("switches"), "{ideal}");
    assert!(
        why("[overhead]\nswitch = \"10us\"\n").ends_with("the costs in [overhead] more is needed than that")
    );
}

/// Every file answers, whatever is odd about it.
#[test]
fn a_long_chain_is_checked_in_a_moment() {
    let steps: String = (0..3_000)
        .map(|index| format!("  [[task.subtask]]\n  name = \"s{index}\"\n  wcet = \"1us\"\n"))
        .collect();
    let text = format!(
        "[system]\nname = \"chain\"\n[[task]]\nname = \"t\"\nperiod = \"10s\"\ncriticality = \"high\"\n{steps}"
    );
    let found = check(&system(&text)).expect("small numbers");
    assert_eq!(found.report.tasks[0].bound_ns, Some(3_000_000));
}

/// On several processors a lane that those above leave too little is overloaded, and not late by centuries.
#[test]
fn an_overload_by_parts_of_the_lanes_above_is_named() {
    let text = format!(
        "[system]\nname = \"parts\"\nstrategy = \"rms\"\n[[node]]\nname = \"n\"\ncpus = [0, 1]\n{}",
        tasks(&[(10, 4_150), (20, 8_300), (40, 24_000)])
    );
    let found = check(&system(&text)).expect("small numbers");
    let why = found.report.tasks[2].why.as_deref().unwrap_or_default();
    assert!(why.contains("need 101.5 % of a processor"), "{why}");
}

/// Before a run the costs are measured only where they may decide.
#[test]
fn costs_are_measured_before_a_run_where_they_may_decide() {
    use std::cell::Cell;
    let limits = Machine { costs: Vec::new(), ..Machine::parse(MACHINE).expect("a profile") };
    let beyond = |rates: &[(u32, u32)]| {
        let system = system(&format!("{RATES}{}", tasks(rates)));
        let plans = plan_lanes_of(&system).expect("it has lanes");
        let asked = Cell::new(false);
        let measure = || {
            asked.set(true);
            Machine::parse(MACHINE).ok()
        };
        let found =
            talea_check::machine::beyond_limits(&system, &plans, &limits, measure).expect("small numbers");
        (found.len(), asked.get())
    };
    assert_eq!(beyond(&[(10, 2000)]), (0, false), "far from the limit");
    assert_eq!(beyond(&[(10, 9700)]), (1, false), "beyond it anyway");
    assert_eq!(beyond(&[(5, 1500), (10, 3000), (20, 4000), (40, 5300)]), (1, true), "costs decide");
    assert_eq!(beyond(&[(100, 90_000)]), (0, true), "costs do not matter");
}
