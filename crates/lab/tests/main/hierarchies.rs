//! The experiment with hierarchies of schedulers.

use crate::conformance::clock::alone;
use std::path::Path;
use talea_lab::compare::{Clock, Observer};
use talea_lab::experiments::hierarchies::edges::FigureTrial;
use talea_lab::experiments::hierarchies::frames::Frames;
use talea_lab::experiments::hierarchies::hand_over;
use talea_lab::experiments::hierarchies::operations::{self, Measured, Operation, Way};
use talea_lab::experiments::hierarchies::results::{HandOvers, RendererTrial, Results};
use talea_lab::experiments::hierarchies::service::Evidence;
use talea_lab::experiments::hierarchies::setting::{Configuration, Picture};
use talea_lab::experiments::hierarchies::{Part, claims, runs, write_systems};
use talea_lab::experiments::kernel_switches::RecordedSwitches;
use talea_lab::experiments::{Effort, Experiment, ExperimentError, Extent, Options, Verdict};
use talea_runtime::StopHandle;
use talea_time::Duration;

/// Cancels when a number of runs have begun.
struct Patience {
    begun: usize,
    most: usize,
}

impl Patience {
    fn of(most: usize) -> Self {
        Patience { begun: 0, most }
    }
}

impl Observer for Patience {
    fn planned(&mut self, _: usize) {}

    fn starting(&mut self, _: &str, _: Option<StopHandle>) {
        self.begun += 1;
    }

    fn cancelled(&self) -> bool {
        self.begun > self.most
    }
}

fn experiment() -> &'static Experiment {
    Experiment::named("s3").expect("it is listed")
}

fn options(out: &Path, parts: &[&str]) -> Options {
    let parts = parts.iter().map(ToString::to_string).collect();
    Options { clock: Clock::Virtual, effort: Effort::Quick, parts, out: out.into() }
}

#[test]
fn every_system_is_written_and_composes() {
    let place = tempfile::tempdir().expect("a folder");
    write_systems(place.path()).expect("written");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(place.path().join("systems")).expect("a folder") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let parsed =
            talea_model::parse(&path.display().to_string(), &text, Path::new(".")).expect("a system");
        let plans = talea_policy::strategy::plan_lanes_of(&parsed.system).expect("no lanes");
        let arranged = talea_policy::arrangement::arrange(&parsed.system, 0, &plans[0], 1).expect("admitted");
        assert!(arranged.expect("a hierarchy").shortcomings.is_none(), "{}", path.display());
        names.push(path.file_stem().expect("a name").to_string_lossy().into_owned());
    }
    assert_eq!(names.len(), Configuration::ALL.len() + Picture::ALL.len() + 1, "{names:?}");
}

#[test]
fn in_virtual_time_the_papers_pattern_appears() {
    let place = tempfile::tempdir().expect("a folder");
    let findings =
        experiment().run(&options(place.path(), &[]), &mut Patience::of(usize::MAX)).expect("simulated");
    assert_eq!(findings.extent, Extent::Whole);
    for claim in &findings.claims {
        assert_eq!(claim.verdict, Verdict::Holds, "{}: {}", claim.statement, claim.figures);
    }
    for file in
        ["report.md", "results.json", "table-5-shares.svg", "table-5-misses.png", "gaps-simulated.svg"]
    {
        let path = place.path().join(file);
        assert!(findings.files.contains(&path), "{file} is not named");
        assert!(std::fs::metadata(&path).expect(file).len() > 0, "{file}");
    }
    let json = std::fs::read_to_string(place.path().join("results.json")).expect("there");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["table_5"].as_array().expect("rows").len(), Configuration::ALL.len());
    assert_eq!(json["table_4"].as_array().expect("rows").len(), 0, "what a machine costs is not simulated");
}

#[test]
fn simulated_frames_are_those_of_the_configuration() {
    let trial = |configuration: Configuration| {
        let run =
            runs::simulate(&configuration.system(), Duration::from_secs(30), &mut Patience::of(usize::MAX));
        RendererTrial::of(configuration, Clock::Virtual, run.expect("simulated"))
    };
    let hard = trial(Configuration::Hard);
    assert_eq!((hard.frames.made, hard.frames.gaps, hard.frames.longest_ns), (909, 0, 33_000_000));
    assert_eq!(hard.frames, hard.as_granted, "nothing is withheld in virtual time");
    // Turns of 50 ms: 60 ms between the last frame of one and the first of the next, 300 times in 30 s as in the paper.
    let default = trial(Configuration::Default);
    assert_eq!((default.frames.made, default.frames.gaps), (1500, 300));
    let low = trial(Configuration::Low);
    assert!(low.frames.overdue > low.frames.made, "{:?}", low.frames);
}

#[test]
fn an_interrupted_experiment_has_the_results_so_far() {
    let place = tempfile::tempdir().expect("a folder");
    let options = options(place.path(), &["table-5", "figures"]);
    let findings = experiment().run(&options, &mut Patience::of(2)).expect("two runs were made");
    assert_eq!(findings.extent, Extent::Cancelled { done: 2, all: 12 });
    assert!(findings.claims.iter().any(|claim| claim.verdict == Verdict::Undecided));
    let nothing = experiment().run(&options, &mut Patience::of(0));
    assert!(matches!(nothing, Err(ExperimentError::Cancelled { done: 0, all: 12 })), "{nothing:?}");
}

#[test]
fn a_part_that_there_is_not_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let refused = experiment().run(&options(place.path(), &["table-6"]), &mut Patience::of(9));
    let message = refused.expect_err("there is no such part").to_string();
    assert!(message.contains("table-6") && message.contains("switches"), "{message}");
}

// Verdicts on results made by hand.

fn trial(configuration: Configuration, [renderer, background]: [f64; 2], gaps: [u64; 2]) -> RendererTrial {
    let frames = Frames {
        made: (renderer * 3_000.0) as u64,
        gaps: gaps[0],
        gaps_withheld: gaps[1],
        gaps_stolen: 0,
        overdue: gaps[0],
        overdue_withheld: gaps[1],
        longest_ns: 33_000_000,
    };
    RendererTrial {
        configuration,
        clock: Clock::Real,
        run_ns: 30_000_000_000,
        frames,
        as_granted: frames,
        renderer_share: renderer,
        background_share: background,
        withheld_share: 0.0,
        withheld_longest_ns: 0,
        evidence: Evidence::Switches,
        kernel: Some(RecordedSwitches::OnProcessors),
        gaps: Vec::new(),
    }
}

/// What the paper published, as if it had been measured here.
fn as_published() -> Vec<RendererTrial> {
    let of_paper = Configuration::ALL.into_iter().filter_map(|one| Some((one, one.published()?)));
    let trials = of_paper.map(|(configuration, published)| {
        let shares = [published.renderer / 100.0, published.background / 100.0];
        trial(configuration, shares, [published.misses, 0])
    });
    let ours = [
        Configuration::HardLimited,
        Configuration::SoftLimited,
        Configuration::HardSufficient,
        Configuration::SoftSufficient,
    ];
    trials.chain(ours.map(|one| trial(one, [0.31, 0.6], [0, 0]))).collect()
}

fn verdict(results: &Results, part: Part, of: &str) -> Verdict {
    let claims = claims(results, &[part], &[Clock::Real]);
    let claim = claims.iter().find(|claim| claim.statement.contains(of));
    claim.unwrap_or_else(|| panic!("no claim on {of}")).verdict
}

fn with(replaced: RendererTrial) -> Results {
    let mut renderers = as_published();
    renderers.retain(|trial| trial.configuration != replaced.configuration);
    renderers.push(replaced);
    Results { renderers, ..Results::default() }
}

#[test]
fn the_published_table_5_bears_its_own_claims_out() {
    let results = Results { renderers: as_published(), ..Results::default() };
    for claim in claims(&results, &[Part::Table5], &[Clock::Real]) {
        assert_eq!(claim.verdict, Verdict::Holds, "{}: {}", claim.statement, claim.figures);
    }
}

#[test]
fn a_claim_falls_with_the_figure_that_it_is_about() {
    let of = |results: &Results, what: &str| verdict(results, Part::Table5, what);
    let missed = with(trial(Configuration::Soft, [0.65, 0.3], [3, 0]));
    assert_eq!(of(&missed, "misses nothing"), Verdict::DoesNotHold);
    assert_eq!(of(&missed, "withholds nothing"), Verdict::DoesNotHold);
    assert_eq!(of(&missed, "only the soft one"), Verdict::DoesNotHold);
    let withheld = with(trial(Configuration::Soft, [0.65, 0.3], [3, 3]));
    assert_eq!(of(&withheld, "misses nothing"), Verdict::DoesNotHold);
    assert_eq!(of(&withheld, "withholds nothing"), Verdict::Holds);
    assert_eq!(of(&withheld, "only the soft one"), Verdict::Holds);
    let limited = with(trial(Configuration::SoftLimited, [0.6, 0.3], [1, 1]));
    assert_eq!(of(&limited, "leave the kernel"), Verdict::DoesNotHold);
    let insufficient = with(trial(Configuration::HardSufficient, [0.47, 0.45], [1, 0]));
    assert_eq!(of(&insufficient, "Theorem 1"), Verdict::DoesNotHold);
    let unmissed = with(trial(Configuration::Low, [0.03, 0.96], [0, 0]));
    assert_eq!(of(&unmissed, "misses at every priority"), Verdict::DoesNotHold);
    let slow = with(trial(Configuration::Hard, [0.28, 0.7], [0, 0]));
    assert_eq!(of(&slow, "at least 30 frames/s"), Verdict::DoesNotHold);
    let idle = with(trial(Configuration::Hard, [0.31, 0.5], [0, 0]));
    assert_eq!(of(&idle, "the background the rest"), Verdict::DoesNotHold);
    let starved = with(trial(Configuration::Soft, [0.97, 0.02], [0, 0]));
    assert_eq!(of(&starved, "the background goes on"), Verdict::DoesNotHold);
    let lucky = with(trial(Configuration::Default, [0.5, 0.5], [0, 0]));
    assert_eq!(of(&lucky, "frames are late"), Verdict::DoesNotHold);
    assert_eq!(of(&lucky, "only the soft one"), Verdict::DoesNotHold, "another one has all of it as well");
    let mut unknown = as_published();
    unknown.iter_mut().for_each(|trial| trial.evidence = Evidence::Contradicted);
    let unknown = Results { renderers: unknown, ..Results::default() };
    assert_eq!(of(&unknown, "misses nothing"), Verdict::Undecided, "nobody knows who had the processor");
    let mut missing = as_published();
    missing.retain(|trial| trial.configuration != Configuration::Hard);
    let missing = Results { renderers: missing, ..Results::default() };
    assert_eq!(of(&missing, "misses nothing"), Verdict::Undecided);
}

#[test]
fn operations_are_judged_by_their_medians() {
    let results = |median_us: f64| {
        let of = |operation| {
            let more = if operation == Operation::Begin { 1.0 } else { 0.0 };
            let ns = vec![(median_us + more) * 1e3, 5e9, 1.0];
            Way::ALL.map(|way| Measured { operation, way, ns: ns.clone() })
        };
        Results { operations: Operation::ALL.into_iter().flat_map(of).collect(), ..Results::default() }
    };
    assert_eq!(verdict(&results(28.0), Part::Table4, "by the library"), Verdict::Holds);
    assert_eq!(verdict(&results(29.5), Part::Table4, "by the socket"), Verdict::DoesNotHold);
    assert_eq!(verdict(&results(20.0), Part::Table4, "takes longer than ending"), Verdict::Holds);
    assert_eq!(verdict(&Results::default(), Part::Table4, "by the library"), Verdict::Undecided);
}

#[test]
fn context_switches_are_judged_by_the_line_over_their_depth() {
    let results = |of_level: fn(f64) -> f64| {
        let ns = |way| match way {
            hand_over::Way::Kernel => 1_000.0,
            hand_over::Way::Sentinel => 1_500.0,
            hand_over::Way::Levels(levels) => of_level(levels as f64),
        };
        let of = |way| HandOvers {
            way,
            turns: (0..8).map(|turn| vec![ns(way) + f64::from(turn)]).collect(),
            spoilt: 0,
        };
        Results { hand_overs: hand_over::Way::all().map(of).collect(), ..Results::default() }
    };
    let of = |results: &Results, what| verdict(results, Part::Switches, what);
    let linear = results(|levels| 2_000.0 + 90.0 * levels);
    for what in ["takes longer", "about 0.5 %", "adds about the same", "no more than"] {
        assert_eq!(of(&linear, what), Verdict::Holds, "{what}");
    }
    assert_eq!(of(&results(|_| 2_000.0), "adds about the same"), Verdict::DoesNotHold);
    assert_eq!(of(&results(|levels| 2_000.0 + 1_500.0 * levels), "no more than"), Verdict::DoesNotHold);
    assert_eq!(of(&results(|_| 900.0), "takes longer"), Verdict::DoesNotHold);
    assert_eq!(of(&results(|_| 9_000.0), "about 0.5 %"), Verdict::DoesNotHold);
}

// On real threads: what there is, not how fast.

/// None, said on standard error, where hierarchies are not permitted.
fn permitted<T>(result: Result<T, ExperimentError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.to_string().contains("talea doctor") => {
            talea_measure::skip("hierarchies need real-time priorities, which are not permitted here");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_real_run_accounts_for_its_threads() {
    let _alone = alone();
    let configuration = Configuration::HardLimited;
    let mut nobody = Patience::of(usize::MAX);
    let run = runs::execute(&configuration.system(), Duration::from_millis(400), &mut nobody);
    let Some(run) = permitted(run) else { return };
    let trial = RendererTrial::of(configuration, Clock::Real, run.clone());
    assert!(run.cause.is_none() && trial.run_ns > 0, "{trial:?}");
    assert!(trial.renderer_share > 0.0 && trial.background_share > 0.0, "{trial:?}");
    assert!(trial.renderer_share + trial.background_share <= 1.0 + 1e-9, "one processor: {trial:?}");
    assert_eq!(trial.gaps.iter().map(|(_, length)| length).sum::<i64>(), trial.run_ns, "gaps fill the run");
    assert_eq!(run.kept.len(), 4, "two edges between schedulers, two to threads: {:?}", run.kept);
    if matches!(run.recorded, Some(RecordedSwitches::Nothing(_))) {
        assert_eq!(trial.evidence, Evidence::Decisions);
    }
}

#[test]
fn a_real_figure_has_every_edge_twice() {
    let _alone = alone();
    let picture = Picture::Figure3Reserved;
    let mut nobody = Patience::of(usize::MAX);
    let run = runs::execute(&picture.system(), Duration::from_millis(400), &mut nobody);
    let Some(run) = permitted(run) else { return };
    let trial = FigureTrial::of(picture, run);
    let names: Vec<&str> = trial.edges.iter().map(|edge| edge.kept.child.as_str()).collect();
    assert_eq!(names, ["RES", "PS", "video", "words", "voice"]);
    for edge in &trial.edges {
        assert_eq!(edge.received.is_some(), ["video", "words", "voice"].contains(&&*edge.kept.child));
        assert!(edge.kept.received_ns > 0, "{edge:?}");
    }
    assert_eq!(trial.judged(), 5);
}

#[test]
fn operations_are_done_on_a_running_hierarchy() {
    let _alone = alone();
    let Some(all) = permitted(operations::measure(1, &Patience::of(usize::MAX))) else { return };
    assert_eq!(all.len(), Operation::ALL.len() * Way::ALL.len());
    assert!(all.iter().all(|measured| measured.ns.len() == 1 && measured.ns[0] > 0.0));
}

#[test]
fn context_switches_are_made_in_every_way() {
    let _alone = alone();
    let cpu = talea_linux::affinity::allowed().expect("readable")[0];
    for way in hand_over::Way::all() {
        let Some(taken) = permitted(way.measure(cpu, 8)) else { return };
        let Some(taken) = taken else { continue };
        assert!((7..=8).contains(&taken.len()), "{way}: {taken:?}");
        assert!(taken.iter().all(|one| *one > Duration::ZERO), "{way}: {taken:?}");
    }
}
