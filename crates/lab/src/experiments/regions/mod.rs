//! The experiment of Gill, Kuhns, Cytron and Schmidt (2002) as a whole: twelve operating regions under RMS, MUF, RMS+MLF,
//! EDF and MLF; the paper's figures; a verdict on each of its claims; and the regressions it left to future work.
//!
//! | File | What it holds |
//! |---|---|
//! | `setting` | the twelve regions as systems |
//! | `mechanism` | what the mechanisms cost in virtual time |
//! | `sampler` | makes samples of records |
//! | `switching` | what the kernel's switches say about a run's threads |
//! | `runs` | one region under one strategy on either clock |
//! | `results` | all samples, by region and strategy, and in pairs |
//! | `claims` | the claims of section 4 |
//! | `pattern` | the cycle over the regions, and what follows the load jitter |
//! | `sweep` | where that pattern appears: ten thousand other settings of load, growth and phases |
//! | `hypotheses` | the hypotheses of section 5.2 |
//! | `pictures` | Figures 4 to 8, and two more |
//! | `report` | files and tables |
//!
//! Nothing is decided by hand: a verdict is a function of the samples.

mod claims;
pub mod hypotheses;
pub mod mechanism;
pub mod pattern;
mod pictures;
mod report;
pub mod results;
pub mod runs;
pub mod sampler;
pub mod setting;
pub mod sweep;
pub mod switching;

use super::folder::Folder;
use super::kernel_switches::RecordedSwitches;
use super::{Claim, Effort, Experiment, ExperimentError, Extent, Findings, Options, Verdict};
use crate::compare::{Clock, Observer};
use hypotheses::{OVERLOADED, Point, Study};
use mechanism::Mechanism;
use results::Results;
use runs::Course;
use sampler::HELD_OFF;
use setting::Region;
use sweep::{Grid, Sweep};
use talea_model::Strategy;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s0",
    title: "twelve operating regions under RMS, MUF and RMS+MLF, and what explains the difference of the last two",
    source: "Gill, Kuhns, Cytron, Schmidt: Empirical Differences Between COTS Middleware Scheduling Strategies (2002)",
    usual_clock: Clock::Virtual,
    parts: &[REGIONS, SWEEP],
    run,
};

/// The twelve regions in the experiment's own setting, on either clock.
const REGIONS: &str = "regions";
/// The same in ten thousand settings, always simulated.
const SWEEP: &str = "sweep";

/// The paper's strategies.
const THREE: [Strategy; 3] = [Strategy::Rms, Strategy::Muf, Strategy::RmsMlf];
/// The same, and two that have one lane for everything.
const FIVE: [Strategy; 5] = [Strategy::Rms, Strategy::Muf, Strategy::RmsMlf, Strategy::Edf, Strategy::Mlf];

/// Multiples of the measured prices; at the last one a switch takes half a millisecond.
const FACTORS: [i64; 6] = [1, 3, 10, 30, 100, 200];
/// The price of ordering as a share of that of a switch. A sample has 52 critical jobs, and RMS+MLF pays for 8 to 16 switches
/// more in regions 9 to 11: the preemptions outweigh the ordering in all three, in regions 10 and 11, and in none.
const ORDERING: [(i64, i64); 4] = [(0, 1), (1, 16), (1, 5), (1, 2)];

/// The regions in which the load exceeds the processor at times or always.
const CROWDED: std::ops::RangeInclusive<usize> = 7..=11;

/// What is run.
struct Programme {
    strategies: &'static [Strategy],
    /// In the regions that are not overloaded, where every sample is nearly like the other.
    relaxed: Course,
    /// In the regions from 7 on, where they differ.
    crowded: Course,
    /// Runs at other prices, of MUF and RMS+MLF in the overloaded regions.
    studies: Vec<Mechanism>,
    study_course: Course,
}

impl Programme {
    fn of(options: &Options) -> Self {
        let clock = options.clock;
        let course = |samples| Course { clock, samples };
        let (relaxed, crowded, study_samples, strategies) = match (clock, options.effort) {
            (Clock::Virtual, Effort::Full) => (300, 300, 150, FIVE.as_slice()),
            (Clock::Virtual, Effort::Quick) => (60, 60, 30, FIVE.as_slice()),
            (Clock::Real, Effort::Full) => (30, 30, 0, FIVE.as_slice()),
            (Clock::Real, Effort::Quick) => (2, 8, 0, THREE.as_slice()),
        };
        let prices = FACTORS.into_iter().flat_map(|factor| {
            ORDERING.map(|(part, of)| {
                let prices = Mechanism::MEASURED.times(factor);
                prices.with_ordering(prices.switch_ns * part / of)
            })
        });
        // The main runs are at the measured prices.
        let others = prices.filter(|prices| *prices != Mechanism::MEASURED);
        let studies = match clock {
            Clock::Virtual => std::iter::once(Mechanism::FREE).chain(others).collect(),
            Clock::Real => Vec::new(),
        };
        let [relaxed, crowded, study_course] = [relaxed, crowded, study_samples].map(course);
        Programme { strategies, relaxed, crowded, studies, study_course }
    }

    fn course(&self, region: Region) -> Course {
        if region.number() < *CROWDED.start() { self.relaxed } else { self.crowded }
    }

    fn runs(&self) -> usize {
        12 * self.strategies.len() + self.studies.len() * OVERLOADED.count() * 2
    }

    /// The price of the main runs.
    fn mechanism(&self) -> Option<Mechanism> {
        (self.crowded.clock == Clock::Virtual).then_some(Mechanism::MEASURED)
    }
}

/// What the runs left.
struct Made {
    /// The twelve regions at measured prices, or on real threads.
    main: Study,
    /// The overloaded regions at other prices.
    studies: Vec<Study>,
    runs: usize,
}

fn run(options: &Options, observer: &mut dyn Observer) -> Result<Findings, ExperimentError> {
    let is_named = |part: &str| options.parts.iter().any(|name| name == part);
    let has_regions = options.parts.is_empty() || is_named(REGIONS);
    // Nothing of it is about threads.
    let has_sweep = is_named(SWEEP) || options.parts.is_empty() && options.clock == Clock::Virtual;
    let grid = has_sweep.then(|| Grid::of(options.effort));
    let programme = has_regions.then(|| Programme::of(options));
    let runs = programme.as_ref().map_or(0, Programme::runs) + grid.as_ref().map_or(0, Grid::count);
    report::write_systems(&options.out)?;
    observer.planned(runs);
    let mut done = 0;
    let mut parts: Vec<Findings> = Vec::new();
    if let Some(programme) = programme {
        let made = make(&programme, observer)?;
        done += made.runs;
        parts.extend(publish_regions(options, &programme, &made)?);
    }
    if let Some(grid) = grid
        && !observer.cancelled()
    {
        let swept = Sweep::over(grid, observer)?;
        done += swept.count();
        parts.extend((swept.count() > 0).then(|| swept.publish(&options.out)).transpose()?);
    }
    let findings = parts.into_iter().reduce(Findings::and);
    let extent = if done == runs { Extent::Whole } else { Extent::Cancelled { done, all: runs } };
    let findings = findings.map(|findings| Findings { extent, ..findings });
    findings.ok_or(ExperimentError::Cancelled { done: 0, all: runs })
}

/// The files of the twelve regions, if any run was made.
fn publish_regions(
    options: &Options,
    programme: &Programme,
    made: &Made,
) -> Result<Option<Findings>, ExperimentError> {
    if made.main.results.trials().is_empty() {
        return Ok(None);
    }
    let kind = match options.clock {
        Clock::Virtual => "sim",
        Clock::Real => "real",
    };
    let folder = Folder::make(options.out.join(kind))?;
    let all = programme.runs();
    let extent = if made.runs == all { Extent::Whole } else { Extent::Cancelled { done: made.runs, all } };
    publish(programme, made, folder, extent).map(Some)
}

fn make(programme: &Programme, observer: &mut dyn Observer) -> Result<Made, ExperimentError> {
    let mut made = Made {
        main: Study { mechanism: programme.mechanism(), results: Results::default() },
        studies: Vec::new(),
        runs: 0,
    };
    for region in Region::all() {
        for strategy in programme.strategies {
            if observer.cancelled() {
                return Ok(made);
            }
            let trial = programme.course(region).run(region, *strategy, Mechanism::MEASURED, observer)?;
            made.main.results.add(trial);
            made.runs += usize::from(!observer.cancelled());
        }
    }
    for mechanism in &programme.studies {
        let mut results = Results::default();
        for region in OVERLOADED.filter_map(Region::numbered) {
            for strategy in [Strategy::Muf, Strategy::RmsMlf] {
                if observer.cancelled() {
                    return Ok(made);
                }
                results.add(programme.study_course.run(region, strategy, *mechanism, observer)?);
                made.runs += usize::from(!observer.cancelled());
            }
        }
        made.studies.push(Study { mechanism: Some(*mechanism), results });
    }
    Ok(made)
}

fn publish(
    programme: &Programme,
    made: &Made,
    mut folder: Folder,
    extent: Extent,
) -> Result<Findings, ExperimentError> {
    let results = &made.main.results;
    let priced = made.studies.iter().filter(|study| study.mechanism != Some(Mechanism::FREE));
    let studies: Vec<Study> = std::iter::once(&made.main).chain(priced).cloned().collect();
    let points: Vec<Point> = studies.iter().flat_map(Study::points).collect();
    let mut claims = claims::claims(results);
    claims.extend(identical_without_costs(&made.studies));
    claims.extend(hypotheses::verdicts(&made.main, &points));
    let conditions = conditions(programme, results);
    let overview = report::overview(results, programme.strategies);
    let distributions = report::distributions(results);
    let mechanisms = report::mechanisms(results);
    let regressions = report::regressions(&studies);
    let ahead = report::ahead(&points);

    folder.write("samples.csv", report::samples_csv(results, std::path::Path::new("samples.csv"))?)?;
    let sections = [
        ("Soft deadlines made per sample (samples with a hard miss)", &overview),
        ("Weighted fractions in the overloaded regions", &distributions),
        ("What the mechanisms did per sample", &mechanisms),
        ("Claims", &report::claim_table(&claims)),
        ("Who is ahead at which prices", &ahead),
        ("The comparisons at which prices", &report::comparisons(&sparse(&studies))),
        ("What explains the difference of MUF and RMS+MLF", &report::regression(&made.main)),
        ("What explains it at which prices", &regressions),
    ];
    let document = sections.map(|(title, table)| format!("## {title}\n\n{}\n", table.markdown()));
    let remarks: String = remarks(results).iter().map(|remark| format!("{remark}\n\n")).collect();
    let head = format!("# {}\n\n{conditions}.\n\n{remarks}", EXPERIMENT.title);
    folder.write("report.md", head + &document.join("\n"))?;
    let explanations: Vec<serde_json::Value> = studies.iter().map(explanations).collect();
    let json = serde_json::json!({
        "conditions": conditions, "claims": claims, "points": points, "explanations": explanations,
        "regions": results.trials().iter().map(summary).collect::<Vec<_>>(),
    });
    folder
        .write("results.json", serde_json::to_string_pretty(&json).expect("results are plain data") + "\n")?;
    for picture in pictures::pictures(results, &points, &conditions) {
        folder.draw(&picture)?;
    }
    let table = format!(
        "{conditions}\n\n{remarks}{}\n\n{}\n\n{}",
        overview.text(),
        distributions.text(),
        mechanisms.text()
    );
    Ok(Findings { table, claims, files: folder.files(), extent })
}

/// The studies that make columns of a table: those at the prices measured, tenfold and a hundredfold.
fn sparse(studies: &[Study]) -> Vec<Study> {
    let shown = |study: &&Study| {
        study.mechanism.is_none_or(|prices| {
            [1, 10, 100].map(|factor| Mechanism::MEASURED.times(factor).switch_ns).contains(&prices.switch_ns)
        })
    };
    studies.iter().filter(shown).cloned().collect()
}

/// How the samples were made, in a few words.
fn conditions(programme: &Programme, results: &Results) -> String {
    let lost: u64 = results.trials().iter().map(|trial| trial.lost_records).sum();
    let lost = if lost > 0 { format!(", {lost} records lost") } else { String::new() };
    let samples = match (programme.relaxed.samples, programme.crowded.samples) {
        (relaxed, crowded) if relaxed == crowded => format!("{crowded} samples each"),
        (relaxed, crowded) => {
            let from = CROWDED.start();
            format!("{crowded} samples each from region {from} on, {relaxed} before")
        }
    };
    match programme.crowded.clock {
        Clock::Virtual => format!("simulated at measured prices, {samples}"),
        Clock::Real if results.trials().iter().all(|trial| trial.realtime == Some(true)) => {
            format!("on real-time threads, {samples}{lost}")
        }
        Clock::Real => format!("on ordinary threads (no-rt), {samples}{lost}"),
    }
}

/// What to know about runs on real threads before reading on.
fn remarks(results: &Results) -> Vec<String> {
    let reason = results.trials().iter().find_map(|trial| match &trial.recorded {
        Some(RecordedSwitches::Nothing(reason)) => Some(reason.replace('\n', "; ")),
        _ => None,
    });
    let unknown = reason.map(|reason| {
        format!(
            "Note: the kernel does not tell of switches ({reason}). What they cost and what time was withheld is not \
             known of every run, and is left out of what is said of those regions."
        )
    });
    let samples = || results.trials().iter().flat_map(|trial| &trial.samples);
    let held_off = samples().filter(|sample| sample.was_held_off());
    let longest =
        held_off.clone().filter_map(|sample| sample.threads).map(|threads| threads.withheld_ns).max();
    let held_off = longest.map(|longest_ns| {
        format!(
            "Note: the kernel withheld the processor from threads of the run that could go on, for more than {} ms in {} \
             of {} samples and for up to {:.1} ms. Real-time threads are not to have more than a part of each second: \
             \"real-time throttling\" and \"fair server\" in `talea doctor`. A hard miss in such a sample may be the pause's.",
            HELD_OFF.as_nanos() / 1_000_000,
            held_off.count(),
            samples().count(),
            longest_ns as f64 / 1e6,
        )
    });
    unknown.into_iter().chain(held_off).collect()
}

fn summary(trial: &runs::Trial) -> serde_json::Value {
    serde_json::json!({
        "region": trial.region, "strategy": trial.strategy, "samples": trial.samples.len(),
        "effectiveness": trial.effectiveness(), "efficiency": trial.efficiency(),
        "samples_with_hard_miss": trial.hard_missed(), "realtime": trial.realtime,
        "lost_records": trial.lost_records, "kernel": trial.recorded,
    })
}

fn explanations(study: &Study) -> serde_json::Value {
    let explanations: Vec<_> =
        hypotheses::Observed::ALL.into_iter().filter_map(|observed| study.explain(observed)).collect();
    serde_json::json!({ "mechanism": study.mechanism, "explanations": explanations })
}

/// The paper's argument that policy alone cannot tell the two apart (section 1.3).
fn identical_without_costs(studies: &[Study]) -> Option<Claim> {
    let free = studies.iter().find(|study| study.mechanism == Some(Mechanism::FREE))?;
    let pairs: Vec<_> = OVERLOADED.map(|region| free.results.pairs(region)).collect::<Option<_>>()?;
    let differences =
        pairs.iter().flat_map(|pairs| pairs.differences(|sample| sample.effectiveness() as f64));
    let (samples, different) = differences.fold((0, 0), |(samples, different), difference| {
        (samples + 1, different + u64::from(difference != 0.0))
    });
    Some(Claim {
        statement: "by policy alone MUF and RMS+MLF serve soft work identically: nothing costs time (1.3)"
            .into(),
        verdict: Verdict::of(different == 0),
        figures: format!("{different} of {samples} pairs of samples of regions 8 to 11 differ"),
    })
}
