//! The paper's claims, each decided by a statistic of the samples.
//!
//! Where the paper calls something larger or better, the difference must be sure: the 95 % bootstrap interval of the paired
//! difference must not contain 0. Where it describes the shape of a cloud of points, a statistic stands for
//! the shape (`talea_statistics`); the text of the claim says which. No threshold was chosen by looking at results.

use super::pattern::{Cycle, Follows, Pattern, SURE};
use super::results::Results;
use super::runs::{Trial, mean};
use super::sampler::Sample;
use super::setting::Region;
use crate::experiments::{Claim, Verdict};
use talea_model::Strategy;
use talea_statistics::{Periodicity, bimodality, largest_gap, periodicity, r_squared, spread, swap_test};

/// Above it the coefficient speaks for two modes: the coefficient of a uniform distribution.
const TWO_MODES: f64 = 5.0 / 9.0;
const SIMILAR: [Strategy; 2] = [Strategy::Muf, Strategy::RmsMlf];

/// A decision with its figures; `None` if runs are missing.
type Decision = Option<(bool, String)>;

/// Every claim of sections 4.1 to 4.3.
pub fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = vec![
        claim("RMS serves more with every region through 6 (4.1)", rms_grows(results)),
        claim(
            "RMS misses hard deadlines in some samples of region 7, the paper in 5 (4.1)",
            rms_turns(results),
        ),
        claim("RMS misses hard deadlines in every sample of regions 8 to 11 (4.1)", rms_collapses(results)),
        claim("RMS serves soft work best in regions 0 to 7 (4.1)", rms_is_best(results)),
        claim(
            "RMS follows the load and not the load jitter, in regions 0 to 6 (4.1)",
            rms_follows_load(results),
        ),
        claim(
            "MUF and RMS+MLF keep every hard deadline; the paper saw MUF miss one, in region 9 (4.1)",
            keeps_hard(results),
        ),
    ];
    for strategy in SIMILAR {
        claims.push(claim(
            &format!("{strategy} is cyclic over regions 0 to 11 with period four (4.1)"),
            cyclic(results, strategy),
        ));
        claims.push(claim(
            &format!("{strategy} follows the load jitter more than the load, over regions 0 to 11 (4.1)"),
            follows_jitter(results, strategy),
        ));
        claims.push(claim(
            &format!("{strategy} serves less the greater the mean load jitter is, in the overloaded regions 8 to 11 (4.1)"),
            ordered_by_jitter(results, strategy),
        ));
    }
    claims.extend(comparative_claims(results));
    claims.push(claim(
        "RMS+MLF is preempted little in regions 8 and 10, more in 9 and 11 (4.3)",
        preemption_is_periodic(results),
    ));
    claims
}

/// The claims about MUF beside RMS+MLF, which need the overloaded regions only.
pub fn comparative_claims(results: &Results) -> Vec<Claim> {
    differences(results).into_iter().chain(shapes(results)).collect()
}

fn claim(statement: &str, decision: Decision) -> Claim {
    let (verdict, figures) = match decision {
        Some((holds, figures)) => (Verdict::of(holds), figures),
        None => (Verdict::Undecided, "runs are missing".into()),
    };
    Claim { statement: statement.into(), verdict, figures }
}

fn list(values: impl Iterator<Item = f64>, places: usize) -> String {
    values.map(|value| format!("{value:.places$}")).collect::<Vec<_>>().join(", ")
}

fn rms_grows(results: &Results) -> Decision {
    let trials = results.over(0..=6, Strategy::Rms)?;
    let served: Vec<f64> = trials.iter().map(|trial| trial.effectiveness()).collect();
    // Regions 0 and 1 offer the same.
    let grows = served[1..].windows(2).all(|pair| pair[0] < pair[1]) && served[0] <= served[1];
    Some((grows, format!("soft deadlines per sample in regions 0 to 6: {}", list(served.into_iter(), 1))))
}

fn rms_turns(results: &Results) -> Decision {
    let trial = results.trial(7, Strategy::Rms)?;
    let (missed, all) = (trial.hard_missed(), trial.samples.len());
    Some((0 < missed && missed < all, format!("hard misses in {missed} of {all} samples of region 7")))
}

fn rms_collapses(results: &Results) -> Decision {
    let trials = results.over(8..=11, Strategy::Rms)?;
    let all = trials.iter().all(|trial| trial.hard_missed() == trial.samples.len());
    let missed = trials.iter().map(|trial| format!("{} of {}", trial.hard_missed(), trial.samples.len()));
    Some((all, format!("samples with hard misses: {}", missed.collect::<Vec<_>>().join(", "))))
}

fn rms_is_best(results: &Results) -> Decision {
    let rms = results.over(0..=7, Strategy::Rms)?;
    let mut worse = Vec::new();
    for (region, rms) in rms.iter().enumerate() {
        for strategy in SIMILAR {
            let other = results.trial(region, strategy)?;
            if other.effectiveness() > rms.effectiveness() {
                worse.push(format!(
                    "region {region}: rms {:.1}, {strategy} {:.1}",
                    rms.effectiveness(),
                    other.effectiveness()
                ));
            }
        }
    }
    let figures = match worse.is_empty() {
        true => "RMS serves as much as MUF and RMS+MLF, or more, in each".into(),
        false => format!("not in {}", worse.join("; ")),
    };
    Some((worse.is_empty(), figures))
}

/// A column of the regions' loads without load jitter, and one of their mean load jitter in ms.
fn conditions(regions: impl Iterator<Item = usize>) -> (Vec<f64>, Vec<f64>) {
    let of = |number| {
        let region = Region::numbered(number).expect("a region");
        let (low, high) = region.load_jitter().range();
        (region.legs() as f64, (low.as_nanos() + high.as_nanos()) as f64 / 2e6)
    };
    regions.map(of).unzip()
}

/// What `factor` explains of what `other` leaves unexplained.
fn partial_r_squared(value: &[f64], factor: &[&[f64]], other: &[&[f64]]) -> Option<f64> {
    let without = r_squared(value, other)?;
    let with = r_squared(value, &[other, factor].concat())?;
    let left = 1.0 - without;
    Some(if left > 1e-9 { (with - without).max(0.0) / left } else { 0.0 })
}

fn partials(
    results: &Results,
    regions: std::ops::RangeInclusive<usize>,
    strategy: Strategy,
) -> Option<(f64, f64)> {
    let trials = results.over(regions.clone(), strategy)?;
    let served: Vec<f64> = trials.iter().map(|trial| trial.effectiveness()).collect();
    let (legs, jitter) = conditions(regions);
    let load = partial_r_squared(&served, &[&legs], &[&jitter])?;
    Some((load, partial_r_squared(&served, &[&jitter], &[&legs])?))
}

fn rms_follows_load(results: &Results) -> Decision {
    let (load, jitter) = partials(results, 0..=6, Strategy::Rms)?;
    let figures = format!("partial R² of the chain's length {load:.2}, of the mean load jitter {jitter:.2}");
    Some((load > 0.5 && jitter < 0.5, figures))
}

fn follows_jitter(results: &Results, strategy: Strategy) -> Decision {
    let trials = results.over(0..=11, strategy)?;
    let served: Vec<f64> = trials.iter().map(|trial| trial.effectiveness()).collect();
    let Follows { load, jitter, .. } = Pattern::of_regions().follows(&served)?;
    let figures = format!("partial R² of the mean load jitter {jitter:.2}, of the chain's length {load:.2}");
    Some((jitter > load, figures))
}

fn cyclic(results: &Results, strategy: Strategy) -> Decision {
    let trials = results.over(0..=11, strategy)?;
    let served: Vec<f64> = trials.iter().map(|trial| trial.effectiveness()).collect();
    let Cycle { share, p } = Pattern::of_regions().cycle(&served)?;
    Some((p < SURE, format!("the cycle explains {:.0} % of what the load leaves, p = {p:.3}", share * 100.0)))
}

fn ordered_by_jitter(results: &Results, strategy: Strategy) -> Decision {
    // Mean load jitter 0, 2.5, 5 and 7.5 ms.
    let served: Vec<f64> = [8, 9, 11, 10]
        .into_iter()
        .map(|region| results.trial(region, strategy).map(|trial| trial.effectiveness()))
        .collect::<Option<_>>()?;
    let falls = served.windows(2).all(|pair| pair[0] > pair[1]);
    Some((
        falls,
        format!("soft deadlines per sample in regions 8, 9, 11, 10: {}", list(served.into_iter(), 1)),
    ))
}

/// How many samples had hard misses, and in how many of them the kernel held threads off.
fn missed_in(trial: &Trial) -> String {
    let missed = || trial.samples.iter().filter(|sample| sample.hard_missed());
    let region = trial.region.number();
    match missed().filter(|sample| sample.was_held_off()).count() {
        0 => format!("{} in region {region}", missed().count()),
        held_off => format!("{} in region {region} ({held_off} with time withheld)", missed().count()),
    }
}

fn keeps_hard(results: &Results) -> Decision {
    let mut figures = Vec::new();
    for strategy in SIMILAR {
        let trials = results.over(0..=11, strategy)?;
        let missed: Vec<String> =
            trials.iter().filter(|trial| trial.hard_missed() > 0).map(|trial| missed_in(trial)).collect();
        if !missed.is_empty() {
            figures.push(format!("{strategy}: samples with hard misses: {}", missed.join(", ")));
        }
    }
    let kept = figures.is_empty();
    Some((kept, if kept { "no sample of any region with a hard miss".into() } else { figures.join("; ") }))
}

/// Claims about MUF minus RMS+MLF.
fn differences(results: &Results) -> Vec<Claim> {
    let percent = |region: usize| results.pairs(region)?.difference(|sample| sample.efficiency() * 100.0);
    let below = |region| {
        let difference = percent(region)?;
        Some((difference.is_below_zero(), format!("MUF minus RMS+MLF: {difference:.3} % of what is offered")))
    };
    let above = |region| {
        let difference = percent(region)?;
        Some((difference.is_above_zero(), format!("MUF minus RMS+MLF: {difference:.3} % of what is offered")))
    };
    vec![
        claim("MUF is slightly below RMS+MLF without load jitter, in region 8 (4.2)", below(8)),
        claim("MUF is better than RMS+MLF on average in region 9 (4.1, 4.2)", above(9)),
        claim("MUF is slightly below RMS+MLF in region 10 (4.3)", below(10)),
        claim("MUF's least and greatest values are slightly lower in region 9 (4.2)", lower_ends(results)),
    ]
}

fn lower_ends(results: &Results) -> Decision {
    let [muf, hybrid] = [results.fractions(9, Strategy::Muf)?, results.fractions(9, Strategy::RmsMlf)?];
    let figures =
        format!("MUF {:.3} to {:.3}, RMS+MLF {:.3} to {:.3}", muf.min, muf.max, hybrid.min, hybrid.max);
    Some((muf.min < hybrid.min && muf.max < hybrid.max, figures))
}

/// Claims about the shapes of Figures 5 to 8.
fn shapes(results: &Results) -> Vec<Claim> {
    let mut claims = vec![
        claim(
            "MUF's values vary more than RMS+MLF's in region 8: their deviation is greater (4.2)",
            varies_more(results, 8),
        ),
        claim("both are lower and spread wider in region 9 than in region 8 (4.2)", lower_and_wider(results)),
        claim(
            "distributions are narrow in regions 8 and 10: a range less than half of that in 9 and 11 (4.2, 4.3)",
            narrow(results),
        ),
        claim("both are lower in region 10 than in region 8 (4.3)", lower(results)),
    ];
    for region in [9, 11] {
        let section = if region == 9 { "4.2" } else { "4.3" };
        claims.push(claim(
            &format!("MUF's values are more continuous in region {region}: their largest gap is a smaller share of their range ({section})"),
            more_continuous(results, region),
        ));
        claims.push(claim(
            &format!("RMS+MLF's values are bimodal in region {region}: a coefficient above 5/9 ({section})"),
            bimodal(results, region),
        ));
    }
    claims.push(claim(
        "RMS+MLF's values come periodically in region 9: a frequency with more of their variance than chance gives (4.2)",
        periodic(results, 9),
    ));
    claims
}

fn lower_and_wider(results: &Results) -> Decision {
    let mut holds = true;
    let mut figures = Vec::new();
    for strategy in SIMILAR {
        let (calm, jittered) = (results.fractions(8, strategy)?, results.fractions(9, strategy)?);
        holds &= jittered.mean < calm.mean && jittered.range() > calm.range();
        figures.push(format!(
            "{strategy} mean {:.3} and {:.3}, range {:.3} and {:.3}",
            calm.mean,
            jittered.mean,
            calm.range(),
            jittered.range()
        ));
    }
    Some((holds, figures.join("; ")))
}

fn narrow(results: &Results) -> Decision {
    let mut holds = true;
    let mut figures = Vec::new();
    for strategy in SIMILAR {
        let ranges: Vec<f64> = (8..=11)
            .map(|region| results.fractions(region, strategy).map(|spread| spread.range()))
            .collect::<Option<_>>()?;
        holds &= ranges[0].max(ranges[2]) < ranges[1].min(ranges[3]) / 2.0;
        figures.push(format!("{strategy} ranges in 8 to 11: {}", list(ranges.into_iter(), 3)));
    }
    Some((holds, figures.join("; ")))
}

fn lower(results: &Results) -> Decision {
    let mut holds = true;
    let mut figures = Vec::new();
    for strategy in SIMILAR {
        let (eight, ten) = (results.fractions(8, strategy)?, results.fractions(10, strategy)?);
        holds &= ten.mean < eight.mean;
        figures.push(format!("{strategy} {:.3} and {:.3}", eight.mean, ten.mean));
    }
    Some((holds, figures.join("; ")))
}

/// Whether the largest gaps differ by more than they would if it were chance which of the two values of a sample is
/// MUF's: a permutation test within the pairs.
fn more_continuous(results: &Results, region: usize) -> Decision {
    let pairs: Vec<(f64, f64)> = {
        let fractions = |strategy| Some(results.trial(region, strategy)?.efficiencies());
        fractions(Strategy::Muf)?.into_iter().zip(fractions(Strategy::RmsMlf)?).collect()
    };
    let gaps = |swapped: &[bool]| {
        let sides = pairs.iter().zip(swapped);
        let sides =
            sides.map(|(&(muf, hybrid), swapped)| if *swapped { (hybrid, muf) } else { (muf, hybrid) });
        let (muf, hybrid): (Vec<f64>, Vec<f64>) = sides.unzip();
        Some((largest_gap(&muf)?, largest_gap(&hybrid)?))
    };
    let (muf, hybrid) = gaps(&vec![false; pairs.len()])?;
    let wider = |swapped: &[bool]| gaps(swapped).map_or(0.0, |(muf, hybrid)| hybrid - muf);
    let p = swap_test(pairs.len(), super::results::RESAMPLING, wider);
    let figures = format!(
        "largest gap: MUF {:.1} %, RMS+MLF {:.1} % of the range, p = {p:.3}",
        muf * 100.0,
        hybrid * 100.0
    );
    Some((muf < hybrid && p < SURE, figures))
}

/// Whether the deviations differ by more than they would if it were chance which of the two values of a sample is MUF's.
fn varies_more(results: &Results, region: usize) -> Decision {
    let fractions = |strategy| Some(results.trial(region, strategy)?.efficiencies());
    let (muf, hybrid) = (fractions(Strategy::Muf)?, fractions(Strategy::RmsMlf)?);
    let pairs: Vec<(f64, f64)> = muf.into_iter().zip(hybrid).collect();
    let deviations = |swapped: &[bool]| -> Option<(f64, f64)> {
        let sides = pairs.iter().zip(swapped);
        let sides =
            sides.map(|(&(muf, hybrid), swapped)| if *swapped { (hybrid, muf) } else { (muf, hybrid) });
        let (muf, hybrid): (Vec<f64>, Vec<f64>) = sides.unzip();
        Some((spread(&muf)?.deviation, spread(&hybrid)?.deviation))
    };
    let (muf, hybrid) = deviations(&vec![false; pairs.len()])?;
    let wider = |swapped: &[bool]| deviations(swapped).map_or(0.0, |(muf, hybrid)| muf - hybrid);
    let p = swap_test(pairs.len(), super::results::RESAMPLING, wider);
    let figures = format!(
        "deviation: MUF {:.3} %, RMS+MLF {:.3} % of what is offered, p = {p:.3}",
        muf * 100.0,
        hybrid * 100.0
    );
    Some((muf > hybrid && p < SURE, figures))
}

/// Whether a frequency stands out of the values in the order of the samples.
fn periodic(results: &Results, region: usize) -> Decision {
    let of = |strategy| results.trial(region, strategy).map(|trial| periodicity(&trial.efficiencies()));
    let describe = |found: Option<Periodicity>| match found {
        Some(Periodicity { period, share, p }) => {
            format!("{:.1} % at a period of {period:.1} samples, p = {p:.3}", share * 100.0)
        }
        None => "no variation".into(),
    };
    let (hybrid, muf) = (of(Strategy::RmsMlf)?, of(Strategy::Muf)?);
    let figures = format!("the strongest frequency: RMS+MLF {}; MUF {}", describe(hybrid), describe(muf));
    Some((hybrid.is_some_and(|found| found.p < SURE), figures))
}

fn bimodal(results: &Results, region: usize) -> Decision {
    let coefficient = |strategy| bimodality(&results.trial(region, strategy)?.efficiencies());
    let (muf, hybrid) = (coefficient(Strategy::Muf)?, coefficient(Strategy::RmsMlf)?);
    Some((hybrid > TWO_MODES, format!("coefficient: RMS+MLF {hybrid:.2}, MUF {muf:.2}")))
}

fn preemption_is_periodic(results: &Results) -> Decision {
    let preemptions = |sample: &Sample| sample.hard_preemptions as f64;
    let trials = results.over(8..=11, Strategy::RmsMlf)?;
    let counts: Vec<f64> = trials.iter().map(|trial| mean(trial.samples.iter().map(preemptions))).collect();
    let holds = counts[0].max(counts[2]) < counts[1].min(counts[3]);
    let figures = format!(
        "preemptions of critical jobs per sample in regions 8 to 11: {}",
        list(counts.into_iter(), 1)
    );
    Some((holds, figures))
}
