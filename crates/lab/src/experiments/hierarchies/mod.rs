//! The evaluation of Regehr and Stankovic (2001): a CPU-bound renderer beside a background thread (Table 5), operations on a running
//! hierarchy (Table 4), what a context switch costs under one (section 7.1), and the hierarchies of Figures 1 and 3 with what was
//! derived for every edge beside what it received.
//!
//! | File | What it holds |
//! |---|---|
//! | `setting` | the systems, and the published figures |
//! | `service` | from records: which thread wanted, was granted and had the processor |
//! | `frames` | frames and the gaps between them |
//! | `runs` | one run on either clock |
//! | `edges` | promises beside what was granted and received |
//! | `operations` | the times of operations |
//! | `hand_over` | the times of context switches |
//! | `results` | all of it |
//! | `claims` | the claims |
//! | `pictures` | charts |
//! | `report` | files and tables |
//!
//! Nothing is decided by hand: a verdict is a function of the results. Frames and promises are judged by records alone; what
//! operations and context switches cost is measured by the clock, for no record tells when a caller called.

mod claims;
pub mod edges;
pub mod frames;
pub mod hand_over;
pub mod operations;
mod pictures;
mod report;
pub mod results;
pub mod runs;
pub mod service;
pub mod setting;

pub use claims::{Part, claims};
pub use report::write_systems;

use super::folder::Folder;
use super::{Effort, Experiment, ExperimentError, Extent, Findings, Options};
use crate::compare::{Clock, Observer};
use edges::FigureTrial;
use hand_over::Way;
use results::{HandOvers, RendererTrial, Results};
use setting::{Configuration, Picture};
use talea_linux::affinity;
use talea_runtime::Slicing;
use talea_time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s3",
    title: "hierarchies on real threads: a renderer beside a background, operations, context switches, figures 1 and 3",
    source: "Regehr, Stankovic: HLS: A Framework for Composing Soft Real-Time Schedulers (2001)",
    usual_clock: Clock::Real,
    parts: &[Part::ALL[0].keyword(), Part::ALL[1].keyword(), Part::ALL[2].keyword(), Part::ALL[3].keyword()],
    run,
};

/// What is to be done.
struct Programme {
    parts: Vec<Part>,
    /// Real runs have simulated ones beside them.
    clocks: &'static [Clock],
    renderer: Duration,
    figure: Duration,
    cycles: usize,
    turns: usize,
    hand_overs: u32,
}

impl Programme {
    fn of(options: &Options) -> Self {
        let wanted =
            |part: &Part| options.parts.is_empty() || options.parts.iter().any(|name| name == part.keyword());
        let parts = Part::ALL.into_iter().filter(wanted).filter(|part| part.is_on(options.clock)).collect();
        let clocks: &[Clock] = match options.clock {
            Clock::Virtual => &[Clock::Virtual],
            Clock::Real => &[Clock::Virtual, Clock::Real],
        };
        let seconds = Duration::from_secs;
        let (renderer, figure, cycles, turns, hand_overs) = match options.effort {
            Effort::Full => (seconds(30), seconds(14), 500, 20, 2_000),
            Effort::Quick => (seconds(5), seconds(3), 50, 6, 500),
        };
        Programme { parts, clocks, renderer, figure, cycles, turns, hand_overs }
    }

    fn runs(&self) -> usize {
        let of = |part: &Part| match part {
            Part::Table5 => Configuration::ALL.len() * self.clocks.len(),
            Part::Figures => Picture::ALL.len() * self.clocks.len(),
            Part::Table4 => 1,
            Part::Switches => self.turns,
        };
        self.parts.iter().map(of).sum()
    }
}

fn run(options: &Options, observer: &mut dyn Observer) -> Result<Findings, ExperimentError> {
    let programme = Programme::of(options);
    write_systems(&options.out)?;
    observer.planned(programme.runs());
    let mut made = Made::default();
    let attempted = programme.parts.iter().try_for_each(|part| match part {
        Part::Table5 => made.renderers(&programme, observer),
        Part::Table4 => made.operations(&programme, observer),
        Part::Switches => made.switches(&programme, observer),
        Part::Figures => made.figures(&programme, observer),
    });
    let (done, all) = (made.runs, programme.runs());
    if made.results.is_empty() && all > 0 {
        attempted?;
        return Err(ExperimentError::Cancelled { done: 0, all });
    }
    let extent = if done == all { Extent::Whole } else { Extent::Cancelled { done, all } };
    let findings = publish(options, &programme, &made.results, extent)?;
    // What the runs before a failure have shown is not lost with it.
    attempted.map_err(|cause| {
        let (folder, cause) = (options.out.clone(), Box::new(cause));
        ExperimentError::Broken { done, all, folder, cause }
    })?;
    Ok(findings)
}

/// What the runs left so far.
#[derive(Default)]
struct Made {
    results: Results,
    runs: usize,
}

impl Made {
    /// A run is done. One that was cancelled is shorter than the others, and left out.
    fn count(&mut self, observer: &dyn Observer) -> bool {
        self.runs += usize::from(!observer.cancelled());
        !observer.cancelled()
    }

    fn renderers(
        &mut self,
        programme: &Programme,
        observer: &mut dyn Observer,
    ) -> Result<(), ExperimentError> {
        for configuration in Configuration::ALL {
            let system = configuration.system();
            for clock in programme.clocks {
                if observer.cancelled() {
                    return Ok(());
                }
                let run = run_on(*clock, &system, programme.renderer, observer)?;
                if self.count(observer) {
                    self.results.renderers.push(RendererTrial::of(configuration, *clock, run));
                }
            }
        }
        Ok(())
    }

    fn figures(&mut self, programme: &Programme, observer: &mut dyn Observer) -> Result<(), ExperimentError> {
        for picture in Picture::ALL {
            let system = picture.system();
            for clock in programme.clocks {
                if observer.cancelled() {
                    return Ok(());
                }
                let run = run_on(*clock, &system, programme.figure, observer)?;
                if self.count(observer) {
                    self.results.figures.push((*clock, FigureTrial::of(picture, run)));
                }
            }
        }
        Ok(())
    }

    fn operations(
        &mut self,
        programme: &Programme,
        observer: &mut dyn Observer,
    ) -> Result<(), ExperimentError> {
        if observer.cancelled() {
            return Ok(());
        }
        observer.starting("operations on a running hierarchy", None);
        self.results.operations = operations::measure(programme.cycles, observer)?;
        self.count(observer);
        Ok(())
    }

    /// All ways take turns, and begin with another one in each, so that what disturbs for a while disturbs all.
    fn switches(
        &mut self,
        programme: &Programme,
        observer: &mut dyn Observer,
    ) -> Result<(), ExperimentError> {
        let ways: Vec<Way> = Way::all().collect();
        let mut all: Vec<HandOvers> =
            ways.iter().map(|way| HandOvers { way: *way, turns: Vec::new(), spoilt: 0 }).collect();
        let cpu = affinity::allowed().ok().and_then(|all| all.last().copied()).unwrap_or(0);
        for turn in 0..programme.turns {
            if observer.cancelled() {
                break;
            }
            observer.starting("context switches", None);
            for step in 0..ways.len() {
                let place = (turn + step) % ways.len();
                match ways[place].measure(cpu, programme.hand_overs)? {
                    Some(taken) => {
                        all[place].turns.push(taken.iter().map(|one| one.as_nanos() as f64).collect())
                    }
                    None => all[place].spoilt += 1,
                }
            }
            self.runs += 1;
        }
        all.retain(|of_way| !of_way.turns.is_empty());
        self.results.hand_overs = all;
        Ok(())
    }
}

fn run_on(
    clock: Clock,
    system: &talea_model::System,
    duration: Duration,
    observer: &mut dyn Observer,
) -> Result<runs::Run, ExperimentError> {
    match clock {
        Clock::Virtual => runs::simulate(system, duration, observer),
        Clock::Real => runs::execute(system, duration, observer),
    }
}

fn publish(
    options: &Options,
    programme: &Programme,
    results: &Results,
    extent: Extent,
) -> Result<Findings, ExperimentError> {
    let claims = claims(results, &programme.parts, programme.clocks);
    let conditions = conditions(options, programme);
    let sections = report::sections(results);
    let remarks: String = report::remarks(results).iter().map(|remark| format!("{remark}\n\n")).collect();
    let mut folder = Folder::make(options.out.clone())?;
    let tables: Vec<String> =
        sections.iter().map(|(title, table)| format!("## {title}\n\n{}\n", table.markdown())).collect();
    let document = format!(
        "# {}\n\n{conditions}.\n\n{remarks}{}\n## Claims\n\n{}\n",
        EXPERIMENT.title,
        tables.join("\n"),
        report::claim_table(&claims).markdown()
    );
    folder.write("report.md", document)?;
    let json = report::json(results, &claims, &programme.parts, &conditions);
    folder
        .write("results.json", serde_json::to_string_pretty(&json).expect("results are plain data") + "\n")?;
    for picture in pictures::pictures(results) {
        folder.draw(&picture)?;
    }
    let texts: Vec<String> =
        sections.iter().map(|(title, table)| format!("{title}\n{}", table.text())).collect();
    let table = format!("{conditions}\n\n{remarks}{}", texts.join("\n\n"));
    Ok(Findings { table, claims, files: folder.files(), extent })
}

/// How the results were made, in a few words.
fn conditions(options: &Options, programme: &Programme) -> String {
    let clocks = match options.clock {
        Clock::Virtual => "simulated, where switching costs nothing",
        Clock::Real => match runs::slicing() {
            Slicing::WhereLimited | Slicing::WherePromised => {
                "on real threads that leave the kernel its part in small slices, with simulated runs beside them"
            }
            Slicing::Never => "on real threads without throttling, with simulated runs beside them",
        },
    };
    let of = |part: &Part| match part {
        Part::Table5 => format!("renderers for {} each", programme.renderer),
        Part::Table4 => format!("every operation {} times", programme.cycles),
        Part::Switches => format!("{} turns of {} context switches", programme.turns, programme.hand_overs),
        Part::Figures => format!("figures for {} each", programme.figure),
    };
    let parts: Vec<String> = programme.parts.iter().map(of).collect();
    match parts.is_empty() {
        true => "nothing of what was asked for can be simulated".into(),
        false => format!("{clocks}: {}", parts.join(", ")),
    }
}
