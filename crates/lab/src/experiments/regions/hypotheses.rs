//! The paper's future work (section 5.2), of which no results were published: do the overheads of the mechanisms explain the
//! differences between MUF and RMS+MLF?
//!
//! **Hypothesis 1**: differences in overhead account for the differences observed. For every sample of the overloaded regions the
//! difference MUF minus RMS+MLF in soft deadlines made, and in the latency of the route's first leg, is regressed on the
//! differences in the factors the paper lists. Both strategies had the identical demand in a sample, so nothing else differs.
//! "Accounts for" means: more than half of the variance, sure at 95 %. A sample whose hard miss makes it count 0 has its soft deadlines here all the
//! same: that rule is how the paper counts, and no overhead.
//!
//! **Hypothesis 2**: which of the two overheads is greater, preemption with its switches or the ordering of a dynamic queue,
//! decides who is ahead. In virtual time both prices are varied; the hypothesis holds if the sign of the net difference in
//! overhead predicts the sign of the difference in soft deadlines wherever the latter is sure.

use super::mechanism::Mechanism;
use super::results::{Estimate, RESAMPLING, Results};
use super::sampler::Sample;
use super::setting::Region;
use crate::experiments::{Claim, Verdict};
use talea_statistics::{Explained, explained, r_squared, slope};

/// The overloaded regions that the paper's figures show.
pub const OVERLOADED: std::ops::RangeInclusive<usize> = 8..=11;

/// More than this share of the variance "accounts for" a difference.
const MOST: f64 = 0.5;

/// MUF and RMS+MLF in the overloaded regions at some prices.
#[derive(Clone, Debug)]
pub struct Study {
    /// The prices; `None` on real threads, whose costs are what they are.
    pub mechanism: Option<Mechanism>,
    /// The trials.
    pub results: Results,
}

/// What the differences are regressed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observed {
    /// Soft deadlines made, whatever became of hard ones.
    SoftMet,
    /// Time from a frame's begin to the end of the route's first leg.
    Latency,
}

impl Observed {
    /// Both.
    pub const ALL: [Observed; 2] = [Observed::SoftMet, Observed::Latency];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Observed::SoftMet => "soft deadlines made",
            Observed::Latency => "latency of the first leg",
        }
    }

    fn of(self, sample: &Sample) -> f64 {
        match self {
            Observed::SoftMet => sample.soft_met as f64,
            Observed::Latency => sample.mean_latency_ms(),
        }
    }
}

/// What a factor is about. Those of one group say nearly the same as each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Preemption and switching.
    Preemption,
    /// Queues: how deep they are, what using them costs.
    Queueing,
    /// Time that the kernel withheld from threads that could go on. It is none of the paper's factors and has to be known,
    /// or what it does would pass for what they do.
    Withheld,
}

impl Group {
    /// Every group.
    pub const ALL: [Group; 3] = [Group::Preemption, Group::Queueing, Group::Withheld];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Group::Preemption => "preemption and switching",
            Group::Queueing => "queueing",
            Group::Withheld => "time withheld",
        }
    }
}

/// A factor that may explain differences.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// What it is called.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// Its value in a sample; `None` where it was not measured. A factor that was not measured in every sample is left out.
    pub of: fn(&Sample) -> Option<f64>,
}

/// The paper's factors, per sample, and the time withheld. Counts come before costs, so that a cost that is only a
/// multiple of a count, as those of the simulator are, is recognised as dependent on it. In virtual time every change to another job is
/// a switch; on real threads one to a job of the same lane is none, and the kernel's count is the one that counts.
pub const FACTORS: [Measure; 7] = [
    Measure {
        name: "preemptions of critical jobs",
        group: Group::Preemption,
        of: |sample| Some(sample.hard_preemptions as f64),
    },
    Measure {
        name: "switches to critical jobs",
        group: Group::Preemption,
        of: |sample| sample.threads.is_none().then_some(sample.hard_switches as f64),
    },
    Measure {
        name: "context switches to critical lanes",
        group: Group::Preemption,
        of: |sample| sample.threads.map(|threads| threads.critical_switches as f64),
    },
    Measure {
        name: "depth of critical queues",
        group: Group::Queueing,
        of: |sample| Some(sample.mean_hard_depth()),
    },
    Measure {
        name: "cost of queueing critical jobs, ms",
        group: Group::Queueing,
        of: |sample| Some(sample.hard_queue_ns as f64 / 1e6),
    },
    Measure {
        name: "cost of switching to critical jobs, ms",
        group: Group::Preemption,
        of: |sample| sample.hard_switch_ns.map(|ns| ns as f64 / 1e6),
    },
    Measure {
        name: "time withheld, ms",
        group: Group::Withheld,
        of: |sample| sample.threads.map(|threads| threads.withheld_ns as f64 / 1e6),
    },
];

/// What explains a difference.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Explanation {
    /// The difference.
    pub observed: Observed,
    /// How much of it is explained, and by what.
    pub explained: Explained,
    /// What R² loses without all factors of a group, for each group that has any; `None` if nothing varies.
    pub unique: Vec<(Group, Option<f64>)>,
}

impl Explanation {
    /// What R² loses without the factors of this group.
    pub fn unique_to(&self, group: Group) -> Option<f64> {
        self.unique.iter().find(|(of, _)| *of == group)?.1
    }
}

/// One region at some prices.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Point {
    /// The region.
    pub region: Region,
    /// The prices; `None` on real threads.
    pub mechanism: Option<Mechanism>,
    /// Overhead of critical work that RMS+MLF has more than MUF, in ms per sample of one second: switches and queueing.
    pub net_overhead_ms: f64,
    /// Soft deadlines that MUF makes more than RMS+MLF, per sample.
    pub soft_met: Estimate,
}

impl Study {
    /// The difference regressed on the factors, over all pairs of samples of the overloaded regions; `None` if regions are missing.
    pub fn explain(&self, observed: Observed) -> Option<Explanation> {
        let pairs: Vec<_> = OVERLOADED.map(|region| self.results.pairs(region)).collect::<Option<_>>()?;
        let samples = || pairs.iter().flat_map(|pairs| pairs.samples());
        let measured: Vec<&Measure> =
            FACTORS.iter().filter(|factor| samples().all(|sample| (factor.of)(sample).is_some())).collect();
        let column = |quantity: &dyn Fn(&Sample) -> f64| -> Vec<f64> {
            pairs.iter().flat_map(|pairs| pairs.differences(quantity)).collect()
        };
        let of = |factor: &Measure| column(&|sample| (factor.of)(sample).expect("it was measured"));
        let factors: Vec<(&str, Vec<f64>)> =
            measured.iter().map(|factor| (factor.name, of(factor))).collect();
        let value = column(&|sample| observed.of(sample));
        let without = |group: Option<Group>| -> Option<f64> {
            let kept = measured.iter().zip(&factors).filter(|(factor, _)| Some(factor.group) != group);
            let kept: Vec<&[f64]> = kept.map(|(_, (_, column))| column.as_slice()).collect();
            r_squared(&value, &kept)
        };
        let all = without(None);
        let beyond = |group| Some((all? - without(Some(group))?).max(0.0));
        let groups =
            Group::ALL.into_iter().filter(|group| measured.iter().any(|factor| factor.group == *group));
        Some(Explanation {
            observed,
            explained: explained(&value, &factors, RESAMPLING),
            unique: groups.map(|group| (group, beyond(group))).collect(),
        })
    }

    /// Every overloaded region whose runs were made, and whose costs of switching are known.
    pub fn points(&self) -> Vec<Point> {
        let point = |region| {
            let pairs = self.results.pairs(region)?;
            let overhead = |sample: &Sample| {
                let switching_ns = sample.hard_switch_ns.expect("it is known of every sample");
                (switching_ns + sample.hard_queue_ns) as f64 / 1e6
            };
            if pairs.samples().any(|sample| sample.hard_switch_ns.is_none()) {
                return None;
            }
            Some(Point {
                region: pairs.region,
                mechanism: self.mechanism,
                net_overhead_ms: -pairs.difference(overhead)?.mean,
                soft_met: pairs.difference(|sample| sample.soft_met as f64)?,
            })
        };
        OVERLOADED.filter_map(point).collect()
    }
}

/// A line is drawn through no fewer points than this: three prices of all four regions.
const LINE: usize = 12;

/// How well the net difference in overhead predicts who is ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Prediction {
    /// Points whose difference in soft deadlines is sure.
    pub sure: usize,
    /// Those of them whose sign is that of the net overhead.
    pub right: usize,
    /// The share of the variance of all points' differences that a line over the net overhead explains, if there are enough of
    /// them for one.
    pub r_squared: Option<f64>,
    /// The slope of that line: soft deadlines per ms of overhead.
    pub slope: Option<f64>,
}

/// The prediction over `points`.
pub fn prediction(points: &[Point]) -> Prediction {
    let sure = points.iter().filter(|point| point.soft_met.is_above_zero() || point.soft_met.is_below_zero());
    let right = |point: &&Point| point.net_overhead_ms * point.soft_met.mean > 0.0;
    let value: Vec<f64> = points.iter().map(|point| point.soft_met.mean).collect();
    let overhead: Vec<f64> = points.iter().map(|point| point.net_overhead_ms).collect();
    let line =
        (points.len() >= LINE).then(|| Some((r_squared(&value, &[&overhead])?, slope(&value, &overhead)?)));
    let (r_squared, slope) = line.flatten().unzip();
    Prediction { sure: sure.clone().count(), right: sure.filter(right).count(), r_squared, slope }
}

/// The verdicts on both hypotheses: on the first by the study at hand, on the second by all points.
pub fn verdicts(study: &Study, points: &[Point]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Observed::ALL.map(|observed| first(study, observed)).into();
    claims.push(second(points));
    claims
}

fn first(study: &Study, observed: Observed) -> Claim {
    let statement = format!(
        "hypothesis 1: overheads account for the difference in {} in regions 8 to 11 (5.2)",
        observed.name()
    );
    let explanation = study.explain(observed);
    let withheld = explanation.as_ref().and_then(|explanation| explanation.unique_to(Group::Withheld));
    let (verdict, figures) = match explanation.map(|explanation| explanation.explained) {
        None => (Verdict::Undecided, "runs are missing".into()),
        Some(Explained::TooFewSamples) => (Verdict::Undecided, "too few samples".into()),
        Some(Explained::NoVariation) => {
            (Verdict::DoesNotHold, "the difference is the same in every sample".into())
        }
        Some(Explained::By(regression)) => {
            let interval = regression.r_squared_interval;
            // What the kernel withheld is none of the paper's overheads.
            let sure = interval.is_some_and(|interval| interval.low - withheld.unwrap_or(0.0) > MOST);
            let interval = interval.map_or(String::new(), |interval| format!(" [{interval:.3}]"));
            let pairs = regression.observations;
            let foreign = withheld.map_or(String::new(), |part| {
                format!(", of which time withheld by the kernel alone explains {part:.3}")
            });
            (
                Verdict::of(sure),
                format!("R² {:.3}{interval} over {pairs} pairs of samples{foreign}", regression.r_squared),
            )
        }
    };
    Claim { statement, verdict, figures }
}

fn second(points: &[Point]) -> Claim {
    let prediction = prediction(points);
    let Prediction { sure, right, r_squared, slope } = prediction;
    let line = r_squared.zip(slope).map_or(String::new(), |(r_squared, slope)| {
        format!("; a line over it has R² {r_squared:.3} and a slope of {slope:.2} soft deadlines per ms")
    });
    let figures = format!(
        "{right} of {sure} sure differences have the sign of the net overhead ({} points in all){line}",
        points.len()
    );
    let (verdict, figures) = match (points.len(), sure) {
        (0, _) => (Verdict::Undecided, "what switches cost is not known".into()),
        (count, 0) => {
            (Verdict::Undecided, format!("no difference between the two is sure; {count} points{line}"))
        }
        _ => (Verdict::of(right == sure), figures),
    };
    Claim {
        statement: "hypothesis 2: whichever overhead is greater, preemption or dynamic ordering, decides who is ahead (5.2)".into(),
        verdict,
        figures,
    }
}
