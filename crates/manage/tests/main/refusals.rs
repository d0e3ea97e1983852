//! The impossible is refused with the reason, before anything is changed.

use crate::programs::{Program, endless, stage};
use crate::{admission, flat, hog, proportional, reservation, whole};
use talea_linux::Tid;
use talea_linux::sched::{self, Policy};
use talea_manage::{
    Admission, AdmitError, Blocks, ManagedSet, Options, Parking, Priorities, SetError, Target,
};
use talea_policy::hierarchy::{Engine, Fraction, Parameters};
use talea_policy::scheduler::config;

#[test]
fn cpus_and_processors_have_to_match() {
    let refused =
        |processors, cpus: &[u16]| ManagedSet::prepare(Engine::new(processors), &Options::on(cpus)).err();
    assert!(matches!(refused(2, &[0]), Some(SetError::Cpus { processors: 2, cpus: 1 })));
    assert!(matches!(refused(2, &[0, 0]), Some(SetError::Cpus { processors: 2, cpus: 1 })));
    assert!(matches!(refused(1, &[1023]), Some(SetError::Affinity(_))));
    assert_eq!(Priorities::above(96), None);
}

#[test]
fn limits_beyond_what_can_be_guarded_are_refused() {
    let Some((_alone, mut options)) = stage(1) else { return };
    options.threads_max = 100_000;
    let refused = ManagedSet::prepare(flat(proportional()).0, &options).err();
    assert!(matches!(refused, Some(SetError::TooMany { what: "threads", .. })));
}

#[test]
fn what_the_scheduler_refuses_leaves_no_trace() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("most", root, reservation(8, 10)), Blocks::ByHandle, hog).unwrap();
    let error = set.spawn(admission("more", root, reservation(3, 10)), Blocks::ByHandle, hog).unwrap_err();
    assert!(matches!(error, AdmitError::Refused { .. }));
    assert!(error.to_string().starts_with("more: "), "{error}");
    // A program is not touched.
    let program = Program::start();
    let tid = Tid::from_raw(program.id() as i32).unwrap();
    for parking in [Parking::WorkConserving, Parking::Held] {
        let admission = Admission { parking, ..admission("program", root, reservation(3, 10)) };
        let error = set.attach(admission, whole(program.id())).unwrap_err();
        assert!(matches!(error, AdmitError::Refused { .. }), "{error}");
        assert_eq!(sched::get(Some(tid)), Ok(Policy::Other));
    }
    // There is room for what fits.
    set.spawn(admission("fits", root, reservation(2, 10)), Blocks::ByHandle, hog).unwrap();
    assert_eq!(set.received().1.len(), 2);
    set.stop().unwrap();
}

#[test]
fn threads_that_are_not_to_be_managed_are_refused() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let weight = Parameters::Weight(1);
    let mut attach = |target, parking| {
        let admission = Admission { parking, ..admission("it", root, weight) };
        set.attach(admission, target).unwrap_err()
    };
    let soft = Parking::WorkConserving;
    let own = attach(whole(std::process::id()), soft);
    assert!(matches!(own, AdmitError::Own { .. }), "{own}");
    let missing = attach(whole(4_194_304), soft);
    assert!(matches!(missing, AdmitError::Missing { what: "process", .. }), "{missing}");
    // Where process numbers are the machine's own, the second is the parent of the kernel's threads.
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        for target in [whole(2), Target::Thread(2)] {
            let kernel = attach(target, soft);
            assert!(matches!(kernel, AdmitError::Kernel { number: 2, .. }), "{kernel}");
        }
    }
    let program = Program::start();
    let tid = Tid::from_raw(program.id() as i32).unwrap();
    let single = attach(Target::Thread(program.id()), Parking::Held);
    assert!(matches!(single, AdmitError::CannotHold { .. }), "{single}");
    sched::set_thread(tid, Policy::Fifo(1)).unwrap();
    let real_time = attach(whole(program.id()), soft);
    assert!(matches!(real_time, AdmitError::RealTime { .. }), "{real_time}");
    assert_eq!(sched::get(Some(tid)), Ok(Policy::Fifo(1)));
    set.stop().unwrap();
}

#[test]
fn a_program_is_one_member_at_a_time() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let member = set.command(admission("once", root, Parameters::Weight(1)), &mut endless()).unwrap();
    let tid = set.threads_of(member)[0];
    let error = set.attach(admission("twice", root, Parameters::Weight(1)), Target::Thread(tid)).unwrap_err();
    assert!(matches!(error, AdmitError::Managed { .. } | AdmitError::RealTime { .. }), "{error}");
    let mut missing = std::process::Command::new("/no/such/program");
    let error = set.command(admission("none", root, Parameters::Weight(1)), &mut missing).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    set.stop().unwrap();
}
