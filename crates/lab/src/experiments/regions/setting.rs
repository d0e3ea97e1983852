//! The twelve operating regions: one description, twelve systems (Gill et al. 2002, section 3.2).
//!
//! Everything happens in frames of 50 ms, the period of the 20 Hz operations:
//!
//! ```text
//!   frame       0         1         2         3         4         5     ...    19
//!   20 Hz   sensors   sensors   sensors   sensors   sensors   sensors ...
//!           route     route     route     route     route     route   ...
//!   10 Hz                nav.                nav.                nav. ...
//!   5 Hz       stores              display   .   stores
//!   1 Hz                            data-link
//! ```
//!
//! The slower critical operations have frames of their own and are requested so late in them that, as long as there is
//! no load jitter, each ends [`SLACK`] before its frame does. Without load jitter no critical request ever finds another critical
//! operation at work, as in the paper ("organized to reduce contention"); frames 6, 10, 14 and 18 hold the sensors
//! only, which are the windows for extracting data. With load jitter an operation may still be running when the next frame begins, and
//! the two strategies treat that differently: RMS+MLF preempts it for the sensors, MUF does not.
//!
//! What is the paper's: the rates, the added critical consumers at 10, 5 and 1 Hz with the ranges of its Table 2, the
//! chain at 20 Hz that grows from region 1 to region 11 and is the same in regions 0 and 1. What is ours: execution
//! times and phases, which the paper does not state; `experiments/s0-strategies/README.md` gives the reasons.

use talea_model::{Criticality, Execution, Overrun, SubtaskBuilder, System, TaskBuilder};
use talea_time::{Duration, Work};

/// The period of the fastest operations.
pub const FRAME: Duration = Duration::from_millis(50);
/// The least time in which everything repeats; samples are this long, so that each is offered the same requests.
pub const HYPERPERIOD: Duration = Duration::from_secs(1);
/// How long before the end of its frame a slower critical operation ends without load jitter: the mean of the least load
/// jitter, so that in regions 1, 5 and 9 every second one is caught by the next frame.
pub const SLACK: Duration = Duration::from_micros(2500);
/// Execution time of a route leg.
pub const LEG: Work = Work::from_nanos(2_500_000);
/// Legs added to the chain from each region to the next: a tenth of the processor.
pub const LEGS_PER_STEP: usize = 2;
/// Seed of region 0's demand; the other regions count on from it, so that their demand is independent of each other's.
pub const SEED: u64 = 2002;

/// The load and the phases, which the paper does not state: everything in which one choice of the regions can differ from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Setting {
    /// What the constant critical operations take of the processor, in percent; the parts of each are the same.
    pub critical_percent: u8,
    /// What the chain takes of each frame in regions 0 and 1.
    pub chain: Work,
    /// What it takes more from each region to the next.
    pub growth: Work,
    /// When the slower critical operations are requested.
    pub phasing: Phasing,
}

/// When the slower critical operations are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Phasing {
    /// In which frames.
    pub frames: Frames,
    /// How late in their frames: 0 at the begin, 100 so late that without load jitter they end [`SLACK`] before the frame does.
    pub lateness_percent: u8,
}

/// The frames that the slower critical operations are requested in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frames {
    /// Each in frames of its own.
    Own,
    /// All of them in the same frames, as often as their rates allow.
    Shared,
}

impl Setting {
    /// The one that the experiment's tables and figures are of.
    pub const OURS: Setting = Setting {
        critical_percent: 18,
        chain: Work::from_millis(5),
        growth: Work::from_millis(5),
        phasing: Phasing { frames: Frames::Own, lateness_percent: 100 },
    };

    /// Legs that the chain grows by from each region to the next: as few as are no longer than [`LEG`].
    fn legs_per_step(self) -> i64 {
        (self.growth.as_nanos().max(1) + LEG.as_nanos() - 1) / LEG.as_nanos()
    }

    /// Execution time of a route leg.
    pub fn leg(self) -> Work {
        Work::from_nanos(self.growth.as_nanos() / self.legs_per_step())
    }

    /// Length of the chain of route legs in `region`.
    pub fn legs(self, region: Region) -> usize {
        let leg = self.leg().as_nanos();
        let first = ((self.chain.as_nanos() + leg / 2) / leg).max(1);
        let steps = region.number().max(1) as i64 - 1;
        (first + steps * self.legs_per_step()) as usize
    }

    /// Execution time of a critical operation of the constant load.
    fn work(self, critical: &Critical) -> Work {
        let percent = i64::from(self.critical_percent);
        Work::from_nanos(critical.work.as_nanos() * percent / i64::from(Setting::OURS.critical_percent))
    }

    /// When a slower critical operation is requested first.
    fn phase(self, critical: &Critical) -> Duration {
        let Phasing { frames, lateness_percent } = self.phasing;
        let frame = match frames {
            Frames::Own => critical.frame,
            Frames::Shared => 1,
        };
        // One that takes longer than a frame is requested at its begin.
        let latest = (FRAME - self.work(critical).at_full_speed() - SLACK).max(Duration::ZERO);
        let within = latest.as_nanos() * i64::from(lateness_percent) / 100;
        Duration::from_nanos(FRAME.as_nanos() * frame + within)
    }

    /// The system of `region`, under RMS+MLF and without mechanism costs until told otherwise.
    pub fn system(self, region: Region) -> System {
        let mut builder = System::builder(format!("region-{:02}", region.number()))
            .seed(SEED + u64::from(region.0))
            .node("mission", [0])
            .task(self.task(&SENSORS, Duration::ZERO));
        for critical in &SLOWER {
            let phase = self.phase(critical);
            builder = builder.task(self.task(critical, phase)).task(region.consumer(critical, phase));
        }
        builder
            .task(self.route(region))
            .task(display())
            .build()
            .expect("the regions keep the rules of systems, which a test checks")
    }

    fn task(self, critical: &Critical, phase: Duration) -> TaskBuilder {
        TaskBuilder::new(critical.name, critical.period)
            .phase(phase)
            .criticality(Criticality::High)
            .wcet(self.work(critical))
    }

    fn route(self, region: Region) -> TaskBuilder {
        let route = TaskBuilder::new("route", FRAME).criticality(Criticality::Low).overrun(Overrun::Queue);
        (1..=self.legs(region)).fold(route, |route, leg| {
            route.subtask(SubtaskBuilder::new(format!("leg-{leg:02}")).wcet(self.leg()))
        })
    }
}

/// A critical operation of the constant load.
struct Critical {
    name: &'static str,
    period: Duration,
    work: Work,
    /// The first frame that it is requested in.
    frame: i64,
}

const SENSORS: Critical = Critical { name: "sensors", period: FRAME, work: Work::from_millis(3), frame: 0 };

/// The critical operations that a consumer with load jitter accompanies.
const SLOWER: [Critical; 3] = [
    Critical { name: "navigation", period: Duration::from_millis(100), work: Work::from_millis(5), frame: 1 },
    Critical { name: "stores", period: Duration::from_millis(200), work: Work::from_millis(10), frame: 0 },
    Critical { name: "data-link", period: HYPERPERIOD, work: Work::from_millis(20), frame: 2 },
];

/// Worst case that is declared for a consumer that takes no time: laxity needs one.
const NEARLY_NOTHING: Work = Work::from_nanos(1_000);

/// An operating region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Region(u8);

/// The ranges of execution times in Table 2 of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadJitter {
    /// 0 ms.
    Zero,
    /// 0 to 5 ms.
    MediumLow,
    /// 5 to 10 ms.
    High,
    /// 0 to 10 ms.
    MediumHigh,
}

impl LoadJitter {
    /// The cycle that the regions go through.
    pub const CYCLE: [LoadJitter; 4] =
        [LoadJitter::Zero, LoadJitter::MediumLow, LoadJitter::High, LoadJitter::MediumHigh];

    /// Least and greatest execution time of each consumer.
    pub fn range(self) -> (Work, Work) {
        let [low, high] = match self {
            LoadJitter::Zero => [0, 0],
            LoadJitter::MediumLow => [0, 5],
            LoadJitter::High => [5, 10],
            LoadJitter::MediumHigh => [0, 10],
        }
        .map(Work::from_millis);
        (low, high)
    }
}

impl std::fmt::Display for LoadJitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (low, high) = self.range();
        let ms = |work: Work| work.as_nanos() / 1_000_000;
        match low == high {
            true => write!(f, "{} ms", ms(high)),
            false => write!(f, "{}-{} ms", ms(low), ms(high)),
        }
    }
}

/// Shares of one processor.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Load {
    /// Critical operations, in the mean.
    pub critical_mean: f64,
    /// Critical operations at their worst.
    pub critical_worst: f64,
    /// All operations, in the mean.
    pub mean: f64,
    /// All operations at their worst.
    pub worst: f64,
}

impl Region {
    /// Every region.
    pub fn all() -> impl Iterator<Item = Region> {
        (0..12).map(Region)
    }

    /// The region of this number, if there is one.
    pub fn numbered(number: usize) -> Option<Region> {
        Region::all().find(|region| region.number() == number)
    }

    /// 0 to 11.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The range of the added consumers' execution times.
    pub fn load_jitter(self) -> LoadJitter {
        LoadJitter::CYCLE[self.number() % LoadJitter::CYCLE.len()]
    }

    /// Length of the chain of route legs in the experiment's own setting.
    pub fn legs(self) -> usize {
        Setting::OURS.legs(self)
    }

    /// The system of this region in the experiment's own setting.
    pub fn system(self) -> System {
        Setting::OURS.system(self)
    }

    /// The consumer with load jitter that is requested together with `critical`.
    fn consumer(self, critical: &Critical, phase: Duration) -> TaskBuilder {
        let (low, high) = self.load_jitter().range();
        let exec = if low == high { Execution::Constant(high) } else { Execution::Uniform(low, high) };
        TaskBuilder::new(format!("consumer-{}", rate(critical.period)), critical.period)
            .phase(phase)
            .criticality(Criticality::High)
            .wcet(high.max(NEARLY_NOTHING))
            .exec(exec)
    }

    /// The load that the region's system offers.
    pub fn load(self) -> Load {
        let system = self.system();
        let mut load = Load { critical_mean: 0.0, critical_worst: 0.0, mean: 0.0, worst: 0.0 };
        for task in &system.tasks {
            for subtask in &task.subtasks {
                let share = |work: f64| work / task.period.as_nanos() as f64;
                let (mean, worst) =
                    (share(mean_ns(&subtask.exec)), share(subtask.exec.max().as_nanos() as f64));
                load.mean += mean;
                load.worst += worst;
                if task.criticality.is_critical() {
                    load.critical_mean += mean;
                    load.critical_worst += worst;
                }
            }
        }
        load
    }
}

fn display() -> TaskBuilder {
    TaskBuilder::new("display", Duration::from_millis(200))
        .phase(FRAME + FRAME)
        .criticality(Criticality::Low)
        .overrun(Overrun::Queue)
        .wcet(Work::from_millis(5))
}

fn rate(period: Duration) -> String {
    format!("{}hz", Duration::from_secs(1).as_nanos() / period.as_nanos())
}

fn mean_ns(exec: &Execution) -> f64 {
    match exec {
        Execution::Constant(work) => work.as_nanos() as f64,
        Execution::Uniform(low, high) => (low.as_nanos() + high.as_nanos()) as f64 / 2.0,
        Execution::List(list) => {
            list.iter().map(|work| work.as_nanos() as f64).sum::<f64>() / list.len() as f64
        }
    }
}
