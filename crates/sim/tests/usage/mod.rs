//! The accounts of simulated processors close exactly.

use crate::replay::{metadata, records, records_with};
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use talea_insight::usage::UsageReport;
use talea_insight::{Accounting, Usage};
use talea_policy::demand;
use talea_record::{Event, Metadata, Record, Sink};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant};

const UNTIL: i64 = 120;

fn usage(metadata: &Metadata, records: &[Record]) -> UsageReport {
    let mut usage = Usage::new(metadata);
    records.iter().for_each(|record| usage.record(*record));
    usage.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn with_costs_every_nanosecond_has_its_account(system in systems(Scope::GUARDED)) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        let usage = usage(&metadata, &records);
        let mut accounting = Accounting::new(&metadata, Duration::from_nanos(1_000));
        records.iter().for_each(|record| accounting.record(*record));
        let report = accounting.finish(Instant::from_nanos(UNTIL));
        for (node, known) in usage.nodes.iter().zip(&report.nodes) {
            prop_assert_eq!(node.available_ns, UNTIL * known.processors as i64);
            prop_assert_eq!(
                [node.error_ns, node.unplaced_ns, node.shared_unseen_ns.unwrap_or(1), node.unknown_ns, node.not_broken_down_ns],
                [0; 5]
            );
            prop_assert_eq!(node.execution_ns.zip(node.overhead_ns).map(|(own, over)| own + over), Some(known.busy_ns));
            prop_assert_eq!(node.idle_ns, Some(node.available_ns - known.busy_ns));
            prop_assert_eq!((node.unrecorded_ns, node.interrupts_ns), (0, None));
        }
        let told: i64 =
            records.iter().filter(|record| record.event == Event::COST).map(|record| record.words[0] as i64).sum();
        prop_assert_eq!(usage.nodes.iter().filter_map(|node| node.overhead_ns).sum::<i64>(), told);
        for (index, operation) in usage.operations.iter().enumerate() {
            let completed = records.iter().filter(|record| {
                record.event == Event::COMPLETE && record.job().operation.index() == index
            });
            let drawn: i64 = completed
                .clone()
                .map(|record| demand::execution(&system, record.job().operation, record.job().instance).as_nanos())
                .sum();
            let jobs = completed.count() as u64;
            prop_assert_eq!(operation.jobs, Some(jobs));
            prop_assert_eq!(operation.execution.map(|spread| spread.sum_ns), Some(drawn));
            let least = jobs as i64 * 2 * system.overhead.queue.as_nanos();
            prop_assert!(operation.overhead.is_some_and(|spread| spread.sum_ns >= least));
            let response = &report.operations[index].response_ns;
            prop_assert_eq!(response.as_ref().map_or(0, |spread| spread.max), operation.response.map_or(0, |own| own.max_ns));
        }
    }

    /// Without records of dispatching its cost is part of the execution, and the accounts close all the same.
    #[test]
    fn without_costs_the_accounts_close(system in systems(Scope::GUARDED)) {
        let metadata = metadata(&system);
        let (kept, dropped) =
            (records_with(&system, &[], UNTIL, DispatchRecords::Kept), records(&system, &[], UNTIL));
        for (with, without) in usage(&metadata, &kept).nodes.iter().zip(usage(&metadata, &dropped).nodes) {
            prop_assert_eq!((without.error_ns, without.overhead_ns), (0, Some(0)));
            prop_assert_eq!(without.execution_ns, with.execution_ns.zip(with.overhead_ns).map(|(own, over)| own + over));
            prop_assert_eq!(without.idle_ns, with.idle_ns);
        }
    }
}
