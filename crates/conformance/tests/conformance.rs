//! Every scheduler that a system file can name conforms, and so does the own one of the example.

#![forbid(unsafe_code)]

#[path = "../../../examples/own_scheduler/weighted_turns.rs"]
mod weighted_turns;

use talea_model::SchedulerKind;
use talea_policy::scheduler::{row, rows};

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

#[test]
fn an_own_scheduler() {
    talea_conformance::check(&weighted_turns::ROW);
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
