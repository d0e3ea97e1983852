//! The systems that are run, as the files that describe them, and what Regehr and Stankovic published (2001, section 7).
//!
//! ```text
//!   hard                     soft                            without a reservation
//!
//!   FP ─┬─ RES ── frames     FP ─┬─ RES ── J ── frames       FP ─── TS ─┬─ frames
//!       └─ TS ── background      └─ TS ─┬─┘                             └─ background
//!                                       └─ background
//! ```
//!
//! From the paper are the reservation, the cost of a frame, the gap that is a miss, and the order of the priorities. Added are
//! the numbers of the levels; the quantum, which the paper does not state; two more systems that leave the kernel the part
//! of each second that it withholds from real-time threads; and two whose reservation is what the renderer needs
//! (`experiments/s3-hls/README.md`).

use std::fmt::Write as _;
use std::path::Path;
use talea_model::System;
use talea_time::{Duration, Work};

/// What a frame takes.
pub const FRAME: Work = Work::from_millis(10);
/// The longest time between two frames that is not a miss.
pub const GAP: Duration = Duration::from_millis(33);
/// By how much a gap may be longer, as the paper counts whole milliseconds; and by how much a promise may be missed.
pub const TOLERANCE: Duration = Duration::from_millis(1);
/// The thread that renders frames.
pub const RENDERER: &str = "frames";
/// The thread that always wants the processor besides.
pub const BACKGROUND: &str = "background";

/// How the renderer is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Configuration {
    /// A hard reservation.
    Hard,
    /// A soft one: a hard one joined with time sharing.
    Soft,
    /// Time sharing, above the background.
    High,
    /// Time sharing, as the background.
    Default,
    /// Time sharing, below the background.
    Low,
    /// [`Self::Hard`] where all together may use 31 of 33 ms.
    HardLimited,
    /// [`Self::Soft`] where all together may use 31 of 33 ms.
    SoftLimited,
    /// [`Self::HardLimited`] with a reservation that yields a frame in *every* interval of 33 ms (Theorem 1), wherever in
    /// its periods it comes.
    HardSufficient,
    /// The same, soft.
    SoftSufficient,
}

/// A row of the paper's Table 5, of a run of 30 s.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Published {
    /// The renderer's share of the processor in percent, which is its rate of frames per second.
    pub renderer: f64,
    /// Times that it failed to produce a frame in time.
    pub misses: u64,
    /// The background's share in percent.
    pub background: f64,
}

impl Configuration {
    /// The rows of the table in its order, then ours.
    pub const ALL: [Configuration; 9] = [
        Configuration::Hard,
        Configuration::Soft,
        Configuration::High,
        Configuration::Default,
        Configuration::Low,
        Configuration::HardLimited,
        Configuration::SoftLimited,
        Configuration::HardSufficient,
        Configuration::SoftSufficient,
    ];

    /// What files and systems are called.
    pub const fn keyword(self) -> &'static str {
        match self {
            Configuration::Hard => "hard",
            Configuration::Soft => "soft",
            Configuration::High => "high",
            Configuration::Default => "default",
            Configuration::Low => "low",
            Configuration::HardLimited => "hard-limited",
            Configuration::SoftLimited => "soft-limited",
            Configuration::HardSufficient => "hard-sufficient",
            Configuration::SoftSufficient => "soft-sufficient",
        }
    }

    /// What the paper calls it.
    pub const fn title(self) -> &'static str {
        match self {
            Configuration::Hard => "RESBH 10 33",
            Configuration::Soft => "RESBS 10 33",
            Configuration::High => "NULL (high pri.)",
            Configuration::Default => "NULL (default pri.)",
            Configuration::Low => "NULL (low pri.)",
            Configuration::HardLimited => "RESBH 10 33, limited",
            Configuration::SoftLimited => "RESBS 10 33, limited",
            Configuration::HardSufficient => "RESBH 10.2 21.5, limited",
            Configuration::SoftSufficient => "RESBS 10.2 21.5, limited",
        }
    }

    /// Its row of Table 5; none of what is not the paper's.
    pub const fn published(self) -> Option<Published> {
        let (renderer, misses, background) = match self {
            Configuration::Hard => (32.6, 0, 67.3),
            Configuration::Soft => (67.3, 0, 32.6),
            Configuration::High => (96.7, 6, 3.26),
            Configuration::Default => (49.9, 290, 50.0),
            Configuration::Low => (3.11, 985, 96.9),
            Configuration::HardLimited
            | Configuration::SoftLimited
            | Configuration::HardSufficient
            | Configuration::SoftSufficient => return None,
        };
        Some(Published { renderer, misses, background })
    }

    /// Whether the renderer has a reservation.
    pub const fn reserves(self) -> bool {
        !matches!(self, Configuration::High | Configuration::Default | Configuration::Low)
    }

    /// What the renderer needs, where its reservation is to yield that.
    const fn requires(self) -> &'static str {
        match self {
            Configuration::HardSufficient | Configuration::SoftSufficient => {
                "requires = \"RESCS 10ms 33ms\"\n"
            }
            _ => "",
        }
    }

    /// Whose child the time-sharing scheduler is: of the fixed priorities, or of the reservations, with a maximum of what all
    /// threads together may use.
    const fn rest(self) -> &'static str {
        match self {
            Configuration::HardLimited | Configuration::SoftLimited => {
                "under = [{ scheduler = \"RES\", guarantee = \"RESBH 21ms 33ms\" }]\n"
            }
            Configuration::HardSufficient | Configuration::SoftSufficient => {
                "under = [{ scheduler = \"RES\", guarantee = \"RESBH 15ms 33ms\" }]\n"
            }
            _ => "under = [{ scheduler = \"FP\", priority = 1 }]\n",
        }
    }

    /// The file that describes it.
    pub fn text(self) -> String {
        let mut text = format!(
            "# A CPU-bound renderer of frames beside a background thread (Regehr and Stankovic 2001, table 5): {}.\n\
             # Written by `talea lab run s3`; a frame is 10 ms of processor time of the thread \"{RENDERER}\".\n\n\
             [system]\nname = \"renderer-{}\"\n",
            self.title(),
            self.keyword()
        );
        let mut scheduler = |name: &str, kind: &str, rest: &str| {
            write!(text, "\n[[scheduler]]\nname = \"{name}\"\nkind = \"{kind}\"\n{rest}")
                .expect("text grows");
        };
        scheduler("FP", "fixed-priority", "");
        if self.reserves() {
            scheduler("RES", "reservation", "under = [{ scheduler = \"FP\", priority = 2 }]\n");
        }
        scheduler("TS", "time-sharing", &format!("quantum = \"50ms\"\n{}", self.rest()));
        let mut joined = |reserved: &str| {
            let both = format!("{reserved}, {{ scheduler = \"TS\", priority = 8 }}");
            scheduler("J", "join", &format!("under = [{both}]\n"));
            "{ scheduler = \"J\" }".to_string()
        };
        let parent = match self {
            Configuration::Hard | Configuration::HardLimited => RESERVED.into(),
            Configuration::Soft | Configuration::SoftLimited => joined(RESERVED),
            Configuration::HardSufficient => SUFFICIENT.into(),
            Configuration::SoftSufficient => joined(SUFFICIENT),
            Configuration::High => at_level(9),
            Configuration::Default => at_level(8),
            Configuration::Low => at_level(7),
        };
        for (name, requires, parent) in [(RENDERER, self.requires(), parent), (BACKGROUND, "", at_level(8))] {
            write!(
                text,
                "\n[[thread]]\nname = \"{name}\"\nwork = \"cpu-bound\"\n{requires}under = [{parent}]\n"
            )
            .expect("text grows");
        }
        text
    }

    /// The system.
    pub fn system(self) -> System {
        parse(self.keyword(), &self.text())
    }
}

const RESERVED: &str = "{ scheduler = \"RES\", guarantee = \"RESBH 10ms 33ms\" }";
/// RESCS 10.2 32.8: a frame, and 0.2 ms for switching to it and back.
const SUFFICIENT: &str = "{ scheduler = \"RES\", guarantee = \"RESBH 10.2ms 21.5ms\" }";

fn at_level(level: u8) -> String {
    format!("{{ scheduler = \"TS\", priority = {level} }}")
}

fn parse(name: &str, text: &str) -> System {
    let parsed = talea_model::parse(name, text, Path::new("."));
    parsed.expect("the experiment's systems are tested").system
}

/// A hierarchy of which every edge is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Picture {
    /// Figure 1: a video player, a word processor and voice recognition.
    Figure1,
    /// Figure 3: the same with guarantees, where all threads always want the processor.
    Figure3,
    /// Figure 3 without what is left over, so that the kernel withholds nothing.
    Figure3Reserved,
}

impl Picture {
    /// Every one.
    pub const ALL: [Picture; 3] = [Picture::Figure1, Picture::Figure3, Picture::Figure3Reserved];

    /// What files are called.
    pub const fn keyword(self) -> &'static str {
        match self {
            Picture::Figure1 => "figure-1",
            Picture::Figure3 => "figure-3",
            Picture::Figure3Reserved => "figure-3-reserved",
        }
    }

    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Picture::Figure1 => "figure 1",
            Picture::Figure3 => "figure 3",
            Picture::Figure3Reserved => "figure 3 without slack",
        }
    }

    /// The file that describes it.
    pub fn text(self) -> String {
        let figure_3 = include_str!("../../../../../examples/figure-3.toml");
        match self {
            Picture::Figure1 => include_str!("../../../../../examples/figure-1.toml").into(),
            Picture::Figure3 => figure_3.into(),
            Picture::Figure3Reserved => {
                let join = figure_3.find("[[scheduler]]\nname = \"J\"").expect("it has a join");
                let below = figure_3[join + 1..].find("[[scheduler]]").expect("it joins for PS") + join + 1;
                let first = figure_3.find("[system]").expect("it has a name");
                let own = "# Figure 3 without the join: PS has its reservation and nothing of what is left over.\n\
                     # Written by `talea lab run s3`.\n\n";
                let text = format!("{own}{}{}", &figure_3[first..join], &figure_3[below..]);
                let reserved = "{ scheduler = \"RES\", guarantee = \"RESBH 10ms 20ms\" }";
                text.replace("{ scheduler = \"J\" }", reserved)
                    .replace("\"figure-3\"", "\"figure-3-reserved\"")
            }
        }
    }

    /// The system.
    pub fn system(self) -> System {
        parse(self.keyword(), &self.text())
    }
}

/// The hierarchy in which control operations are measured.
pub const CONTROLLED: &str = r#"# A hierarchy that is changed while it runs (Regehr and Stankovic 2001, table 4).
# Written by `talea lab run s3`.

[system]
name = "controlled"

[[scheduler]]
name = "FP"
kind = "fixed-priority"

[[scheduler]]
name = "RES"
kind = "reservation"
under = [{ scheduler = "FP", priority = 2 }]

[[scheduler]]
name = "TS"
kind = "time-sharing"
quantum = "50ms"
under = [{ scheduler = "RES", guarantee = "RESBH 20ms 33ms" }]

[[thread]]
name = "app"
work = "cpu-bound"
under = [{ scheduler = "TS" }]

[[thread]]
name = "background"
work = "cpu-bound"
under = [{ scheduler = "TS" }]
"#;

/// The system of [`CONTROLLED`].
pub fn controlled() -> System {
    parse("controlled", CONTROLLED)
}

/// A row of the paper's Table 4, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct PublishedOperation {
    /// The mean.
    pub mean_ns: f64,
    /// Half of its 95 % interval.
    pub half_width_ns: f64,
}

/// The paper's context switches, in nanoseconds.
pub mod published_switch {
    /// The median of Windows 2000.
    pub const NATIVE_NS: f64 = 7_100.0;
    /// The median under the time-sharing scheduler of HLS.
    pub const HIERARCHY_NS: f64 = 11_700.0;
    /// What each additional level adds.
    pub const PER_LEVEL_NS: f64 = 960.0;
}

/// "all take less than 30 µs" (section 10).
pub const OPERATION_BOUND_NS: f64 = 30_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::hierarchies::operations::Operation;
    use serde_json::Value;

    fn tables() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/paper_tables.json");
        let text = std::fs::read_to_string(path).expect("the tables are part of the repository");
        let mut tables: Value = serde_json::from_str(&text).expect("JSON");
        tables["seed_003"].take()
    }

    #[test]
    fn what_is_published_is_what_was() {
        let tables = tables();
        let rows = tables["table_5_cpu_bound_app"].as_array().expect("rows");
        let of_paper = Configuration::ALL.into_iter().filter(|one| one.published().is_some());
        assert_eq!(rows.len(), of_paper.clone().count());
        for (row, configuration) in rows.iter().zip(of_paper) {
            let published = configuration.published().expect("filtered");
            assert_eq!(row["guarantee"], configuration.title());
            assert_eq!(row["app_percent"], published.renderer);
            assert_eq!(row["fps"], published.renderer);
            assert_eq!(row["misses"], published.misses);
            assert_eq!(row["background_percent"], published.background);
        }
        let setup = &tables["table_5_setup"];
        assert_eq!(setup["frame_cost_ns"], FRAME.as_nanos());
        assert_eq!(setup["max_gap_ns"], GAP.as_nanos());
        for row in tables["table_4_operations"].as_array().expect("rows") {
            let operation = Operation::ALL.into_iter().find(|one| row["operation"] == one.title());
            let published = operation.and_then(Operation::published).expect("it is measured");
            assert_eq!(row["mean_ns"], published.mean_ns);
            assert_eq!(row["ci95_half_width_ns"], published.half_width_ns);
        }
        let switch = &tables["context_switch"];
        assert_eq!(switch["native_median_ns"], published_switch::NATIVE_NS);
        assert_eq!(switch["hls_timesharing_median_ns"], published_switch::HIERARCHY_NS);
        assert_eq!(switch["per_extra_level_ns"], published_switch::PER_LEVEL_NS);
    }

    /// The edges to threads with what is derived for them.
    fn derived(system: &System) -> Vec<(String, String)> {
        let plans = talea_policy::strategy::plan_lanes_of(system).expect("no lanes");
        let arranged = talea_policy::arrangement::arrange(system, 0, &plans[0], 1).expect("arranged");
        let arrangement = arranged.expect("a hierarchy");
        assert!(arrangement.shortcomings.is_none(), "{}: {:?}", system.name, arrangement.shortcomings);
        let promise = |leaf: &talea_policy::arrangement::Leaf| {
            leaf.promise.as_ref().map_or("NULL".into(), |promise| promise.guarantee().to_string())
        };
        arrangement
            .leaves
            .iter()
            .map(|leaf| (system.threads[leaf.thread].name.clone(), promise(leaf)))
            .collect()
    }

    #[test]
    fn the_renderers_receive_what_the_paper_gives_them() {
        for configuration in Configuration::ALL {
            let system = configuration.system();
            assert_eq!(system.name, format!("renderer-{}", configuration.keyword()));
            let expected = match configuration {
                Configuration::Hard | Configuration::HardLimited => "RESBH 10ms 33ms",
                Configuration::Soft | Configuration::SoftLimited => "RESBS 10ms 33ms",
                Configuration::HardSufficient => "RESBH 10.2ms 21.5ms",
                Configuration::SoftSufficient => "RESBS 10.2ms 21.5ms",
                _ => "NULL",
            };
            let derived = derived(&system);
            assert!(derived.contains(&(RENDERER.into(), expected.into())), "{configuration:?}: {derived:?}");
            assert!(derived.contains(&(BACKGROUND.into(), "NULL".into())), "{configuration:?}: {derived:?}");
        }
    }

    #[test]
    fn figure_3_has_the_papers_labels_with_and_without_slack() {
        for picture in [Picture::Figure3, Picture::Figure3Reserved] {
            let system = picture.system();
            assert_eq!(system.name, picture.keyword());
            let expected =
                [("video", "RESBH 5ms 33ms"), ("words", "PSBE 0.1 22ms"), ("voice", "PSBE 0.4 58ms")];
            let expected = expected.map(|(name, promise)| (name.to_string(), promise.to_string()));
            assert_eq!(derived(&system), expected, "{picture:?}");
        }
        assert_eq!(Picture::Figure1.system().threads.len(), 3);
        assert_eq!(controlled().schedulers.len(), 3);
    }
}
