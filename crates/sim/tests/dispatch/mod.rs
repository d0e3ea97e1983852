//! Records of dispatching: they change nothing else, and with them every nanosecond of a job is accounted for.

use crate::replay::{records, records_with};
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use std::collections::HashMap;
use talea_model::System;
use talea_policy::demand;
use talea_record::{CostKind, Event, JobId, Record};
use talea_sim::DispatchRecords;
use talea_time::{Instant, Work};

const UNTIL: i64 = 120;

fn is_dispatch(record: &Record) -> bool {
    matches!(
        record.event,
        Event::COST | Event::TIMER | Event::SEND | Event::RECEIVE | Event::SIGNAL | Event::GUARD
    )
}

/// What a job received while it had a processor, and what of that went into costs.
#[derive(Default)]
struct Account {
    service_ns: i64,
    costs_ns: HashMap<u16, i64>,
    since: Option<(u16, i64)>,
    by_message: bool,
}

/// The accounts of the jobs that completed. Costs of a lane are those of its job on the processor, costs of no lane of
/// whoever has it.
fn accounts(records: &[Record]) -> HashMap<JobId, Account> {
    let mut open: HashMap<JobId, Account> = HashMap::new();
    let mut done = HashMap::new();
    for record in records {
        let now = record.time.as_nanos();
        let job = record.job();
        match record.event {
            Event::START | Event::RESUME => open.entry(job).or_default().since = Some((record.cpu, now)),
            Event::PREEMPT | Event::COMPLETE => {
                let account = open.get_mut(&job).expect("it began");
                let (_, since) = account.since.take().expect("it runs");
                account.service_ns += now - since;
                if record.event == Event::COMPLETE {
                    done.insert(job, open.remove(&job).expect("it is there"));
                }
            }
            Event::COST => {
                let runs_there =
                    |account: &&mut Account| account.since.is_some_and(|(cpu, _)| cpu == record.cpu);
                let account = open.values_mut().find(runs_there).expect("only a job that runs pays");
                let (_, since) = account.since.expect("it runs");
                assert!(now - record.words[0] as i64 >= since, "a job pays while it has the processor");
                *account.costs_ns.entry(record.arg).or_default() += record.words[0] as i64;
            }
            Event::RECEIVE => open.entry(job).or_default().by_message = true,
            Event::ABORT => {
                open.remove(&job);
            }
            _ => {}
        }
    }
    done
}

fn check(system: &System, records: &[Record]) {
    for (job, account) in accounts(records) {
        let of = |kind: CostKind| account.costs_ns.get(&(kind as u16)).copied().unwrap_or(0);
        let demand = demand::execution(system, job.operation, job.instance).as_nanos();
        let costs: i64 = account.costs_ns.values().sum();
        assert_eq!(account.service_ns - costs, demand, "{job:?}");
        assert_eq!(of(CostKind::Queue), 2 * system.overhead.queue.as_nanos());
        let switch = system.overhead.switch.as_nanos();
        assert!(switch == 0 && of(CostKind::Switch) == 0 || of(CostKind::Switch) % switch.max(1) == 0);
        assert!(account.by_message || of(CostKind::Delivery) == 0);
        assert!([0, system.overhead.message.as_nanos()].contains(&of(CostKind::Delivery)));
        assert!(system.overhead.timer > Work::ZERO || of(CostKind::Release) == 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_else_changes(
        system in systems(Scope::GUARDED), mut slices in proptest::collection::vec(0..UNTIL, 0..12),
    ) {
        slices.sort_unstable();
        let kept = records_with(&system, &slices, UNTIL, DispatchRecords::Kept);
        prop_assert!(kept.is_sorted_by_key(|record| record.time), "records come in the order of time");
        let others: Vec<Record> = kept.iter().filter(|record| !is_dispatch(record)).copied().collect();
        prop_assert_eq!(others, records(&system, &[], UNTIL));
        prop_assert_eq!(&kept, &records_with(&system, &[], UNTIL, DispatchRecords::Kept), "slices change nothing");
    }

    #[test]
    fn what_a_job_receives_is_its_demand_and_what_it_pays(system in systems(Scope::GUARDED)) {
        check(&system, &records_with(&system, &[], UNTIL, DispatchRecords::Kept));
    }

    #[test]
    fn messages_are_sent_and_received(system in systems(Scope::GUARDED)) {
        let kept = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        for (position, record) in kept.iter().enumerate().filter(|(_, record)| record.event == Event::RECEIVE) {
            let took = record.time - Instant::from_nanos(record.words[0] as i64);
            let successor = record.job().operation.index() as u64;
            let here = system.subtask(record.job().operation).node;
            let in_time = |sent: &Record| {
                let route = system.route(system.subtask(sent.job().operation).node, here);
                route.delay <= took && took <= route.longest()
            };
            let matches = |sent: &&Record| {
                sent.event == Event::SEND
                    && sent.words[0] == successor
                    && sent.job().instance == record.job().instance
                    && sent.time.as_nanos() == record.words[0] as i64
                    && in_time(sent)
            };
            prop_assert!(kept[..position].iter().any(|sent| matches(&sent)));
        }
    }
}
