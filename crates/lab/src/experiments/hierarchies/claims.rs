//! The claims of sections 3.3, 5.3, 7 and 10 of the paper, each a function of the results.
//!
//! On real threads any guarantee can be broken because the kernel withholds processor time. So claims that this can affect are decided
//! twice: by the whole run, and by those parts of it in which nothing was withheld.

use super::edges::{Edge, FigureTrial};
use super::hand_over;
use super::operations::{Operation, Way};
use super::results::{RendererTrial, Results, quantile};
use super::service::Evidence;
use super::setting::{Configuration, OPERATION_BOUND_NS, Picture, published_switch};
use crate::compare::Clock;
use crate::experiments::{Claim, Verdict};
use crate::table::percent;

/// Whether it holds, and the figures; none if runs are missing.
type Decision = Option<(bool, String)>;

/// The reservation's share.
const RESERVED: f64 = 10.0 / 33.0;
/// A larger difference than the beginning of a run and context switches explain.
const NOTICEABLE: f64 = 0.1;

/// Which parts were to be done, so that no verdict is given on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The renderer of Table 5.
    Table5,
    /// The operations of Table 4.
    Table4,
    /// Context switches.
    Switches,
    /// The hierarchies of Figures 1 and 3.
    Figures,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 4] = [Part::Table5, Part::Table4, Part::Switches, Part::Figures];

    /// What to type.
    pub const fn keyword(self) -> &'static str {
        match self {
            Part::Table5 => "table-5",
            Part::Table4 => "table-4",
            Part::Switches => "switches",
            Part::Figures => "figures",
        }
    }

    /// Whether it can be done on this clock: what the machine costs cannot be simulated.
    pub const fn is_on(self, clock: Clock) -> bool {
        match self {
            Part::Table5 | Part::Figures => true,
            Part::Table4 | Part::Switches => matches!(clock, Clock::Real),
        }
    }
}

/// Every claim of these parts, on these clocks.
pub fn claims(results: &Results, parts: &[Part], clocks: &[Clock]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for part in parts {
        match part {
            Part::Table5 => clocks.iter().for_each(|clock| claims.extend(of_renderer(results, *clock))),
            Part::Table4 => claims.extend(of_operations(results)),
            Part::Switches => claims.extend(of_switches(results)),
            Part::Figures => clocks.iter().for_each(|clock| claims.extend(of_figures(results, *clock))),
        }
    }
    claims
}

fn claim(statement: impl Into<String>, decision: Decision) -> Claim {
    let (verdict, figures) = match decision {
        Some((holds, figures)) => (Verdict::of(holds), figures),
        None => (Verdict::Undecided, "runs are missing, or the kernel told too little of them".into()),
    };
    Claim { statement: statement.into(), verdict, figures }
}

const fn place(clock: Clock) -> &'static str {
    match clock {
        Clock::Virtual => "simulated",
        Clock::Real => "real threads",
    }
}

// Table 5.

const RESERVING: [Configuration; 2] = [Configuration::Hard, Configuration::Soft];
const SHARING: [Configuration; 3] = [Configuration::High, Configuration::Default, Configuration::Low];
const LIMITED: [Configuration; 2] = [Configuration::HardLimited, Configuration::SoftLimited];
const SUFFICIENT: [Configuration; 2] = [Configuration::HardSufficient, Configuration::SoftSufficient];

fn of_renderer(results: &Results, clock: Clock) -> Vec<Claim> {
    let of = |configuration| results.renderer(configuration, clock);
    let at = place(clock);
    let mut claims = vec![claim(
        format!("{at}: with a reservation, hard or soft, the renderer misses nothing (table 5)"),
        no_gaps(&RESERVING.map(of)),
    )];
    if clock == Clock::Real {
        claims.push(claim(
            format!("{at}: the same where the kernel withholds nothing"),
            no_gaps_unexcused(&RESERVING.map(of)),
        ));
        claims.push(claim(
            format!("{at}: the same where all threads together leave the kernel 6 % (ours)"),
            no_gaps(&LIMITED.map(of)),
        ));
    }
    claims.push(claim(
        format!("{at}: it misses nothing with a reservation of a frame in every 33 ms by Theorem 1 (ours)"),
        no_gaps(&SUFFICIENT.map(of)),
    ));
    claims.extend([
        claim(
            format!("{at}: without a reservation it misses at every priority (table 5)"),
            gaps_everywhere(&SHARING.map(of)),
        ),
        claim(
            format!("{at}: a hard reservation gives at least 30 frames/s, and the background the rest (table 5)"),
            hard(of(Configuration::Hard)),
        ),
        claim(
            format!("{at}: a soft one gives more than that, and the background goes on (table 5)"),
            soft(of(Configuration::Soft)),
        ),
        claim(
            format!("{at}: only the soft one has no misses, more than the reserved frames and a background that goes on (7.2)"),
            only_soft(results, clock),
        ),
        claim(
            format!("{at}: at high priority the background runs only now and then (table 5)"),
            below(of(Configuration::High), |trial| trial.background_share),
        ),
        claim(
            format!("{at}: at default priority both have half, which is more than enough, and frames are late (7.2)"),
            halves(of(Configuration::Default)),
        ),
        claim(
            format!("{at}: at low priority the renderer provides few frames (7.2)"),
            below(of(Configuration::Low), |trial| trial.renderer_share),
        ),
    ]);
    claims
}

/// Gaps of each trial in words: `soft 3 (2 with time withheld), longest 84.0 ms`.
fn gaps_of(trials: &[&RendererTrial]) -> String {
    let of = |trial: &&RendererTrial| {
        let frames = &trial.frames;
        let reasons = [(frames.gaps_withheld, "time withheld"), (frames.gaps_stolen, "steal time")];
        let reasons = reasons.iter().filter(|(gaps, _)| *gaps > 0);
        let reasons: Vec<String> = reasons.map(|(gaps, reason)| format!("{gaps} with {reason}")).collect();
        let reasons = match &reasons[..] {
            [] => String::new(),
            reasons => format!(" ({})", reasons.join(", ")),
        };
        let longest = frames.longest_ns as f64 / 1e6;
        format!(
            "{}: {} gaps over 33 ms of {} frames{reasons}, longest {longest:.1} ms",
            trial.configuration.keyword(),
            frames.gaps,
            frames.made
        )
    };
    trials.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// All of them, if they are there and it is known of each who had the processor.
fn all<'a, const COUNT: usize>(
    trials: &[Option<&'a RendererTrial>; COUNT],
) -> Option<Vec<&'a RendererTrial>> {
    let is_known =
        |trial: &&RendererTrial| trial.clock == Clock::Virtual || trial.evidence == Evidence::Switches;
    trials.iter().map(|trial| trial.filter(is_known)).collect()
}

fn no_gaps<const COUNT: usize>(trials: &[Option<&RendererTrial>; COUNT]) -> Decision {
    let trials = all(trials)?;
    Some((trials.iter().all(|trial| trial.frames.gaps == 0), gaps_of(&trials)))
}

fn no_gaps_unexcused<const COUNT: usize>(trials: &[Option<&RendererTrial>; COUNT]) -> Decision {
    let trials = all(trials)?;
    let withheld = trials.iter().map(|trial| {
        let longest = trial.withheld_longest_ns as f64 / 1e6;
        let granted = trial.as_granted.gaps;
        format!(
            "{}: {} gaps without, {granted} by what was granted; withheld {} % of the time, up to {longest:.1} ms at once",
            trial.configuration.keyword(),
            trial.frames.unexcused(),
            percent(trial.withheld_share),
        )
    });
    let figures = withheld.collect::<Vec<_>>().join("; ");
    Some((trials.iter().all(|trial| trial.frames.unexcused() == 0), figures))
}

fn gaps_everywhere<const COUNT: usize>(trials: &[Option<&RendererTrial>; COUNT]) -> Decision {
    let trials = all(trials)?;
    Some((trials.iter().all(|trial| trial.frames.gaps > 0), gaps_of(&trials)))
}

fn shares(trial: &RendererTrial) -> String {
    format!(
        "{:.1} frames/s, renderer {} %, background {} %, withheld {} %",
        trial.rate(),
        percent(trial.renderer_share),
        percent(trial.background_share),
        percent(trial.withheld_share)
    )
}

/// The time in which no thread of the run had the processor is at most this much longer than what was withheld.
const UNACCOUNTED: f64 = 0.02;

fn hard(trial: Option<&RendererTrial>) -> Decision {
    let trial = trial?;
    let rest = 1.0 - trial.renderer_share - trial.withheld_share;
    // The last frame is under way when the run ends.
    let enough = trial.rate() >= 30.0 - 1e9 / trial.run_ns.max(1) as f64;
    let holds = enough
        && trial.background_share >= rest - UNACCOUNTED
        && trial.renderer_share < RESERVED + NOTICEABLE / 2.0;
    Some((holds, shares(trial)))
}

fn goes_on(trial: &RendererTrial) -> bool {
    trial.background_share > NOTICEABLE
}

fn has_more(trial: &RendererTrial) -> bool {
    trial.renderer_share > RESERVED + NOTICEABLE
}

fn soft(trial: Option<&RendererTrial>) -> Decision {
    let trial = trial?;
    Some((has_more(trial) && goes_on(trial), shares(trial)))
}

fn only_soft(results: &Results, clock: Clock) -> Decision {
    let mut good = Vec::new();
    for configuration in RESERVING.into_iter().chain(SHARING) {
        let trial = results.renderer(configuration, clock)?;
        if trial.frames.unexcused() == 0 && has_more(trial) && goes_on(trial) {
            good.push(configuration);
        }
    }
    let names = good.iter().map(|configuration| configuration.title()).collect::<Vec<_>>().join(", ");
    let figures = match (good.is_empty(), clock) {
        (true, _) => "none has".into(),
        (false, Clock::Virtual) => names,
        (false, Clock::Real) => format!("{names}, not counting misses with time withheld"),
    };
    Some((good == [Configuration::Soft], figures))
}

fn below(trial: Option<&RendererTrial>, share: impl Fn(&RendererTrial) -> f64) -> Decision {
    let trial = trial?;
    Some((share(trial) < NOTICEABLE, shares(trial)))
}

fn halves(trial: Option<&RendererTrial>) -> Decision {
    let trial = trial?;
    let alike = (trial.renderer_share - trial.background_share).abs() < NOTICEABLE;
    let figures = format!("{}; {}", shares(trial), gaps_of(&[trial]));
    Some((alike && trial.renderer_share > RESERVED && trial.frames.gaps > 0, figures))
}

// Table 4.

fn of_operations(results: &Results) -> Vec<Claim> {
    let of = |way: Way| {
        claim(
            format!(
                "by the {}, creating, destroying, beginning and ending take less than 30 µs (10)",
                way.name()
            ),
            operations_are_short(results, way),
        )
    };
    let slower = || {
        let median = |operation, way| quantile(&results.operation(operation, way)?.ns, 0.5);
        let (begin, end) = (median(Operation::Begin, Way::Library)?, median(Operation::End, Way::Library)?);
        Some((begin > end, format!("medians {} and {}", micros(begin), micros(end))))
    };
    let begin = claim("beginning a reservation takes longer than ending one (table 4)", slower());
    Way::ALL.into_iter().map(of).chain([begin]).collect()
}

fn micros(ns: f64) -> String {
    format!("{:.1} µs", ns / 1e3)
}

fn operations_are_short(results: &Results, way: Way) -> Decision {
    let mut figures = Vec::new();
    let mut holds = true;
    for operation in Operation::ALL.into_iter().filter(|operation| operation.published().is_some()) {
        let median = quantile(&results.operation(operation, way)?.ns, 0.5)?;
        holds &= median < OPERATION_BOUND_NS;
        figures.push(format!("{} {}", operation.title(), micros(median)));
    }
    Some((holds, format!("medians: {}", figures.join(", "))))
}

// Context switches.

fn of_switches(results: &Results) -> Vec<Claim> {
    let median = |way| results.hand_over(way)?.quantile(0.5);
    let one = || Some((median(hand_over::Way::Kernel)?, median(hand_over::Way::Levels(1))?));
    let dearer = || {
        let (kernel, hierarchy) = one()?;
        let figures = format!(
            "medians {} and {}, a factor of {:.1}; the paper {:.1}",
            micros(kernel),
            micros(hierarchy),
            hierarchy / kernel,
            published_switch::HIERARCHY_NS / published_switch::NATIVE_NS
        );
        Some((hierarchy > kernel, figures))
    };
    let overhead = || {
        let (kernel, hierarchy) = one()?;
        let share = (hierarchy - kernel) / 1e6;
        Some((share <= 0.005, format!("{:.2} % of a millisecond", share * 100.0)))
    };
    let linear = || {
        let found = results.per_level()?;
        let interval = found.interval.map_or(String::new(), |interval| format!(" {interval}"));
        let figures = format!(
            "{:.0} ns{interval} for each level; the depth explains {:.0} %",
            found.ns,
            found.r_squared * 100.0
        );
        Some((found.interval.is_some_and(|interval| interval.low > 0.0) && found.r_squared > 0.5, figures))
    };
    let cheap = || {
        let found = results.per_level()?;
        let holds = found.interval.is_some_and(|interval| interval.high < published_switch::PER_LEVEL_NS);
        Some((holds, format!("{:.0} ns against {:.0} ns", found.ns, published_switch::PER_LEVEL_NS)))
    };
    vec![
        claim("a context switch under a hierarchy takes longer than the kernel's own (7.1)", dearer()),
        claim("with a switch each millisecond the hierarchy adds about 0.5 %, or less (7.1)", overhead()),
        claim("each additional level adds about the same (7.1)", linear()),
        claim("it adds no more than the paper's 0.96 µs", cheap()),
    ]
}

// Figures 1 and 3.

fn of_figures(results: &Results, clock: Clock) -> Vec<Claim> {
    let mut claims = Vec::new();
    for picture in Picture::ALL {
        let trial = || results.figure(picture, clock);
        let (at, title) = (place(clock), picture.title());
        claims.push(claim(
            format!("{at}: every scheduler of {title} grants what was derived (3.3, 5.3)"),
            trial().and_then(granted),
        ));
        if clock == Clock::Real {
            claims.push(claim(
                format!("{at}: every thread of {title} receives what was derived"),
                trial().and_then(|trial| received(trial, |broken, _| broken)),
            ));
            claims.push(claim(
                format!("{at}: every thread of {title} receives it where the kernel withholds nothing"),
                trial().and_then(|trial| received(trial, |broken, withheld| broken - withheld)),
            ));
        }
    }
    claims
}

fn name(edge: &Edge) -> String {
    format!("{} to {} {}", edge.kept.parent, edge.kept.child, edge.kept.guarantee)
}

fn granted(trial: &FigureTrial) -> Decision {
    if trial.judged() == 0 {
        return None;
    }
    let broken: Vec<String> = trial
        .edges
        .iter()
        .filter(|edge| edge.is_kept_as_granted() == Some(false))
        .map(|edge| {
            format!("{}: {} of {} windows", name(edge), edge.kept.violations, edge.kept.judged.unwrap_or(0))
        })
        .collect();
    let figures = match broken.is_empty() {
        true => format!("all {} promises that can be judged were kept", trial.judged()),
        false => format!("broken: {}", broken.join("; ")),
    };
    Some((broken.is_empty(), figures))
}

fn received(trial: &FigureTrial, counted: impl Fn(u64, u64) -> u64) -> Decision {
    if trial.run.service.evidence != Evidence::Switches {
        return None;
    }
    let judged: Vec<(&Edge, super::edges::Received)> = trial
        .edges
        .iter()
        .filter(|edge| edge.kept.judged.is_some())
        .filter_map(|edge| Some((edge, edge.received?)))
        .collect();
    if judged.is_empty() {
        return None;
    }
    let broken: u64 =
        judged.iter().map(|(_, received)| counted(received.broken, received.broken_withheld)).sum();
    let figures = judged.iter().map(|(edge, received)| {
        let withheld = match received.broken_withheld {
            0 => String::new(),
            withheld => format!(" ({withheld} with time withheld)"),
        };
        format!("{}: {} of {} broken{withheld}", edge.kept.child, received.broken, received.judged)
    });
    Some((broken == 0, figures.collect::<Vec<_>>().join("; ")))
}
