//! What each scheduler makes of what it is given: the published table, and simulated schedulers on interrupted supply.

use crate::sketch::{algorithm, guarantee};
use crate::supply::{Supply, any_supply, whole};
use proptest::prelude::*;
use std::num::NonZeroU32;
use talea_guarantee::conversion::Refused;
use talea_guarantee::conversion::admission::{Supply as Given, Test, admit};
use talea_guarantee::conversion::table::{Accepts, Conversion, Provides, Standing};
use talea_guarantee::exact::{Ratio, Share, Span};
use talea_guarantee::guarantee::{Guarantee, Kind};
use talea_guarantee::label::Label;
use talea_guarantee::request::Request;
use talea_guarantee::rewrite::{Cell, cell};
use talea_guarantee::scheduler::{Algorithm, Demand, SchedulerKind};

/// One guarantee of each kind.
fn example(kind: Kind) -> Guarantee {
    guarantee(match kind {
        Kind::All => "ALL",
        Kind::Resu => "RESU 0.5",
        Kind::Resbh => "RESBH 5 10",
        Kind::Resbs => "RESBS 5 10",
        Kind::Resch => "RESCH 5 10",
        Kind::Rescs => "RESCS 5 10",
        Kind::Psbe => "PSBE 0.5 5",
        Kind::Ps => "PS 0.5",
        Kind::Null => "NULL",
    })
}

/// Requests that an algorithm understands and can admit.
fn requests(algorithm: &Algorithm) -> Vec<Request> {
    let reservation =
        |kind: &Kind, numbers: &str| Request::Guarantee(guarantee(&format!("{kind} {numbers}")));
    match algorithm.kind().demand() {
        Demand::Nothing => vec![Request::Nothing],
        Demand::Priority => vec![Request::Priority(1), Request::Priority(7), Request::Priority(3)],
        Demand::Weight => vec![Request::Weight(NonZeroU32::MIN), Request::Weight(NonZeroU32::MIN)],
        Demand::Guarantee([Kind::Resu]) => {
            vec![Request::Guarantee(guarantee("RESU 0.25")), Request::Guarantee(guarantee("RESU 0.75"))]
        }
        Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds) => {
            kinds.iter().map(|kind| reservation(kind, "20 100")).collect()
        }
        Demand::AtMost(_) => vec![Request::Nothing],
    }
}

fn acceptable(kind: Kind, conversion: &Conversion) -> bool {
    match conversion.accepts {
        Accepts::Any => true,
        Accepts::One(wanted) | Accepts::Several(wanted) => matches!(cell(kind, wanted), Cell::Convertible(_)),
    }
}

/// The functions do what the table says: what it accepts, and of which kind what it gives is.
#[test]
fn every_algorithm_does_what_its_row_says() {
    for algorithm in Algorithm::every(&Span::from_millis(1)) {
        let wanted = requests(&algorithm);
        let wanted: Vec<&Request> = wanted.iter().collect();
        for kind in Kind::EVERY {
            let given = [Label::real(example(kind))];
            let rows: Vec<&Conversion> =
                algorithm.kind().conversions.iter().filter(|row| acceptable(kind, row)).collect();
            // A limit on the whole processor or a share needs a period.
            let unsettled =
                algorithm.kind() == SchedulerKind::LIMIT && matches!(kind, Kind::All | Kind::Psbe);
            match algorithm.convert(0, &given, &wanted) {
                Err(Refused::Unacceptable { .. }) => {
                    assert!(rows.is_empty() || unsettled, "{algorithm} refuses {kind}");
                }
                Err(other) => panic!("{algorithm} of {kind}: {other}"),
                Ok(converted) => {
                    assert!(!rows.is_empty(), "{algorithm} takes {kind}");
                    let gives = |kind: Kind| rows.iter().any(|row| provides(row, &given[0], kind));
                    for output in &converted.outputs {
                        let kind = output.label.guarantee().kind();
                        assert!(gives(kind), "{algorithm} gives {kind}");
                    }
                }
            }
        }
    }
}

fn provides(row: &Conversion, given: &Label, kind: Kind) -> bool {
    match row.provides {
        Provides::HighestThenNull => kind == given.guarantee().kind() || kind == Kind::Null,
        Provides::Softened => kind == given.guarantee().softened().kind(),
        Provides::One(only) => kind == only,
        Provides::Many(kinds) => kinds.contains(&kind),
    }
}

#[test]
fn the_rows_read_as_published() {
    let row = |name: &str| {
        let rows = algorithm(name, 1).kind().conversions.iter();
        let published = rows.filter(|row| row.standing != Standing::Ours);
        published.map(Conversion::to_string).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(row("fixed-priority"), "any -> (any, NULL+)");
    assert_eq!(row("limit"), "RESBS -> RESBH");
    assert_eq!(row("proportional-share"), "PS -> PS+, PSBE -> PSBE+, RESU -> PSBE+");
    assert_eq!(row("resource-kernel"), "ALL -> (RESBS+, RESBH+), RESU -> (RESBS+, RESBH+)");
    assert_eq!(row("sfs"), "PS+ -> PS+, RESU+ -> PS+");
    assert_eq!(row("bss-i"), "ALL -> RESU+, RESU -> RESU+");
}

fn given(algorithm: &Algorithm, inputs: &[&str], wanted: &[Request]) -> Vec<String> {
    let given: Vec<Label> = inputs.iter().map(|text| Label::real(guarantee(text))).collect();
    let wanted: Vec<&Request> = wanted.iter().collect();
    let converted = algorithm.convert(0, &given, &wanted).expect("it is acceptable");
    converted.outputs.iter().map(|output| output.label.to_string()).collect()
}

fn weights(weights: &[u32]) -> Vec<Request> {
    weights.iter().map(|weight| Request::Weight(NonZeroU32::new(*weight).expect("some weight"))).collect()
}

#[test]
fn the_highest_priorities_get_the_processors() {
    let fixed = algorithm("fixed-priority", 1);
    let wanted = [Request::Priority(2), Request::Priority(9), Request::Priority(5)];
    assert_eq!(given(&fixed, &["ALL"], &wanted), ["NULL", "ALL", "NULL"]);
    assert_eq!(given(&fixed, &["ALL", "ALL"], &wanted), ["NULL", "ALL", "ALL"]);
    assert_eq!(given(&fixed, &["NULL", "RESBH 1 2"], &wanted), ["NULL", "RESBH 1ms 2ms", "NULL"]);
}

#[test]
fn several_processors_are_shared_with_feasible_weights() {
    let sfs = algorithm("sfs", 1);
    assert_eq!(given(&sfs, &["ALL", "ALL"], &weights(&[100, 1, 1])), ["PS 1", "PS 0.5", "PS 0.5"]);
    assert_eq!(given(&sfs, &["PS 0.5", "RESU 0.3"], &weights(&[1, 1, 2])), ["PS 0.2", "PS 0.2", "PS 0.4"]);
    assert_eq!(given(&sfs, &["ALL", "ALL"], &weights(&[1])), ["PS 1"]);
}

#[test]
fn slower_processors_nest() {
    let slower = algorithm("pshed", 1);
    let half = Request::Guarantee(guarantee("RESU 0.5"));
    let nested = Label::paced(guarantee("RESU 0.5"), &Share::new(Ratio::new(1.into(), 2.into())).unwrap());
    let below = slower.convert(0, &[nested], &[&half]).expect("half of a quarter").outputs;
    assert_eq!(below[0].label.absolute(), guarantee("RESU 0.125"));
}

/// Who goes first.
#[derive(Clone, Copy)]
enum Order {
    Deadline,
    Period,
}

/// Always busy children with an amount in each period, all of which begin together: until all that comes round does.
fn with_budgets(supply: &Supply, claims: &[(u64, u64)], order: Order) -> Vec<Vec<bool>> {
    let slots = claims.iter().map(|(_, period)| period).product::<u64>() * supply.0.len() as u64;
    let mut budgets = vec![0; claims.len()];
    let slot = |slot: u64| {
        for (budget, (amount, period)) in budgets.iter_mut().zip(claims) {
            if slot.is_multiple_of(*period) {
                *budget = *amount;
            }
        }
        let key = |child: &usize| match (order, claims[*child].1) {
            (Order::Deadline, period) => (slot / period + 1) * period,
            (Order::Period, period) => period,
        };
        let ready = (0..claims.len()).filter(|child| budgets[*child] > 0);
        let served = ready.min_by_key(key).filter(|_| supply.0[slot as usize % supply.0.len()])?;
        budgets[served] -= 1;
        Some(served)
    };
    by_thread(claims.len(), &(0..slots).map(slot).collect::<Vec<_>>())
}

/// Who is served in each slot, by thread.
fn by_thread(threads: usize, served: &[Option<usize>]) -> Vec<Vec<bool>> {
    (0..threads).map(|thread| served.iter().map(|served| *served == Some(thread)).collect()).collect()
}

/// Start-time fair queuing of always busy threads on `supply`: who is served in each of its slots, over and over.
pub fn fair_queuing(supply: &Supply, quantum: usize, weights: &[u64], slots: usize) -> Vec<Vec<bool>> {
    let mut finish: Vec<Ratio> = vec![whole(0); weights.len()];
    let (mut running, mut left) = (0, 0);
    let slot = |slot: usize| {
        if !supply.0[slot % supply.0.len()] {
            return None;
        }
        if left == 0 {
            // The start tag of a busy thread is its last finish tag.
            running = (0..weights.len()).min_by_key(|thread| finish[*thread].clone()).expect("threads");
            left = quantum;
            finish[running] += whole(quantum as u64) / whole(weights[running]);
        }
        left -= 1;
        Some(running)
    };
    by_thread(weights.len(), &(0..slots).map(slot).collect::<Vec<_>>())
}

/// Earliest eligible virtual deadline first, always busy, requests of one quantum, on a processor of its own.
fn virtual_deadlines(quantum: usize, weights: &[u64], slots: usize) -> Vec<Vec<bool>> {
    let sum: u64 = weights.iter().sum();
    let mut eligible: Vec<Ratio> = vec![whole(0); weights.len()];
    let (mut running, mut left, mut now) = (0, 0, whole(0));
    let slot = |_| {
        if left == 0 {
            let deadline =
                |thread: &usize| &eligible[*thread] + whole(quantum as u64) / whole(weights[*thread]);
            let ready = (0..weights.len()).filter(|thread| eligible[*thread] <= now);
            running = ready.min_by_key(deadline).expect("somebody is always eligible");
            left = quantum;
            eligible[running] = deadline(&running);
        }
        left -= 1;
        now += whole(1) / whole(sum);
        Some(running)
    };
    by_thread(weights.len(), &(0..slots).map(slot).collect::<Vec<_>>())
}

/// The largest shortfall behind `share` in any window of `served`.
pub fn shortfall(served: &[bool], share: &Ratio) -> Ratio {
    // The greatest rise of st - W(t) between two instants.
    let (mut behind, mut least, mut most) = (whole(0), whole(0), whole(0));
    for slot in served {
        behind += share;
        if *slot {
            behind -= whole(1);
        }
        most = most.max(&behind - &least);
        least = least.min(behind.clone());
    }
    most
}

proptest! {
    /// The formula of start-time fair queuing holds for the algorithm on a supply that comes and goes.
    #[test]
    fn fair_queuing_keeps_the_formula(
        supply in any_supply(),
        quantum in 1_u64..5,
        weight in prop::collection::vec(1_u32..6, 1..5),
    ) {
        prop_assume!(supply.0.contains(&true));
        let share = Share::new(supply.share()).expect("a share");
        let own = Guarantee::Psbe { error: supply.error(share.ratio()), share };
        let fair = Algorithm::new(SchedulerKind::SFQ, &Span::from_nanos(quantum));
        let wanted = weights(&weight);
        let outputs = fair.convert(0, &[Label::real(own)], &wanted.iter().collect::<Vec<_>>()).expect("PSBE");
        let weight: Vec<u64> = weight.iter().map(|weight| u64::from(*weight)).collect();
        let served = fair_queuing(&supply, quantum as usize, &weight, 60 * supply.0.len());
        for (output, served) in outputs.outputs.iter().zip(&served) {
            let Guarantee::Psbe { share, error } = output.label.guarantee() else { unreachable!() };
            let seen = shortfall(served, share.ratio());
            prop_assert!(seen <= *error.nanos(), "{supply:?}: {seen} behind, promised {error}");
        }
    }

    /// A slower processor whose deadlines are the ends of quanta supplies what the conversion assumes, at worst.
    #[test]
    fn a_slower_processor_with_quanta_as_deadlines(
        rate in (1_u64..6, 1_u64..6),
        quantum in 1_u64..4,
        places in prop::collection::vec(any::<u32>(), 1..6),
    ) {
        let (above, more) = rate;
        let below = above + more;
        // q/r is quantum * below / above slots; scale so that it is a whole number of slots of length 1/above.
        let (served, period) = (quantum * above, quantum * below);
        let cycles = places.iter().map(|place| {
            let start = u64::from(*place) % (period - served + 1);
            (0..period).map(move |slot| (start..start + served).contains(&slot))
        });
        let supply = Supply(cycles.flatten().collect());
        let slower = Label::real(Guarantee::Resu(Share::new(Ratio::new(above.into(), below.into())).expect("a rate")));
        let fair = Algorithm::new(SchedulerKind::SFQ, &Span::from_nanos(quantum * above));
        let one = weights(&[1]);
        let converted = fair.convert(0, &[slower], &one.iter().collect::<Vec<_>>()).expect("RESU");
        let steps = &converted.accepted[0].steps;
        prop_assert_eq!(steps.len(), 2);
        for step in steps {
            prop_assert!(supply.keeps(step.label.guarantee()), "{:?} does not keep {}", supply, step.label);
        }
    }

    /// Rate-monotonic admission is exact: the first period of each reservation, begun with all others, decides.
    #[test]
    fn rate_monotonic_admission_is_what_a_simulation_says(
        numbers in prop::collection::vec((1_u64..7, 2_u64..20), 1..6),
    ) {
        let mut claims: Vec<(u64, u64)> = numbers.iter().map(|(amount, more)| (*amount, amount + more)).collect();
        claims.sort_by_key(|(_, period)| *period);
        let served = by_shortest_period(&claims);
        let in_time = claims.iter().enumerate().all(|(child, (amount, period))| {
            let first = served.iter().take(*period as usize).filter(|served| **served == Some(child));
            first.count() as u64 == *amount
        });
        prop_assert_eq!(admitted(Test::RateMonotonic, &claims), in_time);
    }

    /// What Rialto's test admits has a schedule with slots at the same offsets, in which every interval as long as
    /// the period holds the amount.
    #[test]
    fn related_periods_make_continuous_reservations(
        numbers in prop::collection::vec((1_u64..5, 1_u64..6), 1..4),
    ) {
        let claims: Vec<(u64, u64)> = numbers.iter().map(|(amount, eights)| (*amount, 8 * eights)).collect();
        let load = |harmonic: &Vec<(u64, u64)>| -> Ratio {
            harmonic.iter().map(|(amount, period)| whole(*amount) / whole(*period)).sum()
        };
        let lightest = claims.iter().map(|(_, base)| related(&claims, *base)).min_by_key(load).expect("claims");
        prop_assert_eq!(admitted(Test::PowersOfTwo, &claims), load(&lightest) <= whole(1));
        if load(&lightest) <= whole(1) {
            let served = by_shortest_period(&lightest);
            for (child, (amount, period)) in lightest.iter().enumerate() {
                let supply = Supply(served.iter().map(|served| *served == Some(child)).collect());
                let promised = guarantee(&format!("RESCH {amount}ns {period}ns"));
                prop_assert!(supply.keeps(&promised), "{supply:?} does not keep {promised}");
            }
        }
    }

    /// A busy thread under EEVDF is behind its share by no more than a quantum, counted from when it began; in any
    /// window whatever, by no more than two.
    #[test]
    fn eevdf_is_a_quantum_behind_its_share_at_most(
        quantum in 1_u64..5,
        weight in prop::collection::vec(1_u64..6, 1..5),
    ) {
        let sum: u64 = weight.iter().sum();
        for (served, weight) in virtual_deadlines(quantum as usize, &weight, 400).iter().zip(&weight) {
            let share = Ratio::new((*weight).into(), sum.into());
            prop_assert!(lag(served, &share) <= whole(quantum));
            prop_assert!(shortfall(served, &share) <= whole(2 * quantum));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// What is admitted of a share has its amount in every period, earliest deadline or shortest period first, on a supply that comes and
    /// goes.
    #[test]
    fn reservations_of_a_share_are_kept(
        pattern in prop::collection::vec(prop::bool::weighted(0.85), 1..14),
        numbers in prop::collection::vec((1_u64..4, 1_u64..9), 1..3),
    ) {
        let supply = Supply(pattern);
        prop_assume!(supply.0.contains(&true));
        let share = Share::new(supply.share()).expect("a share");
        let own = Label::real(Guarantee::Psbe { error: supply.error(share.ratio()), share });
        let claims: Vec<(u64, u64)> = numbers.iter().map(|(amount, more)| (*amount, amount + more)).collect();
        let promised: Vec<Guarantee> =
            claims.iter().map(|(amount, period)| guarantee(&format!("RESBH {amount}ns {period}ns"))).collect();
        let wanted: Vec<Request> = promised.iter().cloned().map(Request::Guarantee).collect();
        let wanted: Vec<&Request> = wanted.iter().collect();
        for (kind, order) in [("reservation", Order::Deadline), ("resource-kernel", Order::Period)] {
            if algorithm(kind, 1).convert(0, std::slice::from_ref(&own), &wanted).is_err() {
                continue;
            }
            for (served, promised) in with_budgets(&supply, &claims, order).into_iter().zip(&promised) {
                prop_assert!(Supply(served).keeps(promised), "{kind} on {supply:?} does not keep {promised}");
            }
        }
    }
}

/// The claims with periods shortened to powers of two of `base`, which divides by eight; shortest first.
fn related(claims: &[(u64, u64)], base: u64) -> Vec<(u64, u64)> {
    let lengths = || (0..6).map(|power| base << power).chain((0..4).map(|power| base >> power));
    let shorter =
        |period: u64| lengths().filter(|length| *length <= period).max().expect("an eighth of 40 is short");
    let mut related: Vec<(u64, u64)> =
        claims.iter().map(|(amount, period)| (*amount, shorter(*period))).collect();
    related.sort_by_key(|(_, period)| *period);
    related
}

/// Who is served in each slot of the longest period if all begin together and earlier claims go first.
fn by_shortest_period(claims: &[(u64, u64)]) -> Vec<Option<usize>> {
    let mut left = vec![0; claims.len()];
    let slot = |slot: u64| {
        for (left, (amount, period)) in left.iter_mut().zip(claims) {
            if slot.is_multiple_of(*period) {
                *left = *amount;
            }
        }
        let child = left.iter().position(|left| *left > 0)?;
        left[child] -= 1;
        Some(child)
    };
    (0..claims.last().expect("claims").1).map(slot).collect()
}

fn admitted(test: Test, claims: &[(u64, u64)]) -> bool {
    let claims: Vec<(Span, Span)> = claims
        .iter()
        .map(|(amount, period)| (Span::from_nanos(*amount), Span::from_nanos(*period)))
        .collect();
    admit(test, &claims.iter().map(|(amount, period)| (amount, period)).collect::<Vec<_>>(), &Given::whole())
        .is_ok()
}

/// The largest shortfall behind `share` in windows that begin when the thread does.
fn lag(served: &[bool], share: &Ratio) -> Ratio {
    let (mut behind, mut most) = (whole(0), whole(0));
    for slot in served {
        behind += share - whole(u64::from(*slot));
        most = most.max(behind.clone());
    }
    most
}

/// The published error of EEVDF, one quantum, is a bound on its lag. Between two instants, the first of which finds the
/// thread ahead, it may receive less than PSBE with that error says.
#[test]
fn the_published_error_of_eevdf_is_its_lag() {
    let served = &virtual_deadlines(1, &[2, 1, 3, 3], 400)[0];
    let share = Ratio::new(2.into(), 9.into());
    assert!(lag(served, &share) < whole(1) && shortfall(served, &share) > whole(1));
}
