//! Shares in the long run: how far behind may whoever always wants the processor be, and is it?
//!
//! Someone who is promised the share s and wants the processor from the beginning on is *behind* by s t less what it has received. Its
//! scheduler may be behind itself by so much that its fraction r of the weights counts; what its siblings may be ahead comes to that.
//! So what levels allow adds up, each times the fractions below it. Of n children with the quantum q:
//!
//! | Scheduler | Behind by at most, in service |
//! |---|---|
//! | start-time fair queueing | r n q, and w D where somebody is warped by D more: nobody who is elected has a tag beyond one's own by more than D, and so none afterwards by more than that and a quantum (Goyal, Guo and Vin 1996, with warps) |
//! | stride | 2 n q: a quantum relative to any one other, so n relative to all (Waldspurger and Weihl 1995), and as much again by what those who sleep keep |
//! | lottery | r n q and six standard deviations |
//! | surplus fair | p n q + 2 q on p processors, which is ours: who is two quanta behind goes before all who are less, after at most one quantum of each of the others |
//!
//! *Lottery.* Let T be the tickets of all, and V what those count, with compensation, who want to run. Let a win pay the client what it received
//! after the win before, f q: compensated tickets t / f win with the chance t / (f V), so a draw pays everybody who wants to run
//! t q / V in the mean, whatever happened before and whoever cuts quanta short. What somebody is behind is thus a martingale, or falls
//! in the mean while others sleep, and a draw adds at most r (1 - r) q² T / V to its variance. The sum of T q / V is the time that was
//! divided; so the variance is at most that of W / q draws of a chance r, the binomial's. What the last win brought has not
//! been paid: a quantum each.

use super::{Nowhere, derived};
use proptest::prelude::*;
use std::cell::Cell;
use std::num::NonZeroU32;
use talea_guarantee::derivation::{Derivation, DerivedEdge, DerivedScheduler};
use talea_guarantee::exact::{Ratio, Span};
use talea_guarantee::guarantee::{Guarantee, Kind};
use talea_guarantee::rewrite::Choice;
use talea_model::{
    Execution, Request, Scheduler, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork,
};
use talea_policy::arrangement::Kept;
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// In what is a run long enough: the bound is a tenth of what is promised.
const PART: f64 = 0.1;

/// So improbable that it does not happen: once in a thousand million.
const DEVIATIONS: f64 = 6.0;

/// Weights and rates whose parts are no whole nanoseconds.
const ROUNDING_NS: f64 = 10_000.0;

/// How far behind, in nanoseconds: always, and per square root of a nanosecond gone by.
#[derive(Clone, Copy, Debug, Default)]
struct Lag {
    fixed: f64,
    root: f64,
}

impl Lag {
    fn after(self, ns: f64) -> f64 {
        self.fixed + self.root * ns.sqrt()
    }

    fn plus(self, other: Lag) -> Lag {
        Lag { fixed: self.fixed + other.fixed, root: self.root + other.root }
    }

    fn times(self, factor: f64) -> Lag {
        Lag { fixed: self.fixed * factor, root: self.root * factor }
    }

    /// When it is [`PART`] of what a share has come to.
    fn is_small_after(self, share: f64) -> f64 {
        let part = PART * share;
        let root = (self.root + (self.root * self.root + 4.0 * part * self.fixed).sqrt()) / (2.0 * part);
        root * root
    }
}

/// What a hierarchy's schedulers are behind.
struct Lags<'s> {
    system: &'s System,
    derivation: &'s Derivation,
}

/// Near enough, for bounds.
pub fn float(ratio: &Ratio) -> f64 {
    let text = ratio.to_string();
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    let part = |digits: &str| digits.parse::<f64>().expect("digits");
    part(numerator) / part(denominator)
}

impl Lags<'_> {
    fn model(&self, name: &str) -> &Scheduler {
        self.system.schedulers.iter().find(|scheduler| scheduler.name == name).expect("a scheduler")
    }

    fn children(&self, scheduler: &str) -> impl Iterator<Item = &DerivedEdge> {
        self.derivation.edges.iter().filter(move |edge| edge.parent == scheduler)
    }

    fn share(&self, edge: &DerivedEdge) -> f64 {
        float(edge.label.absolute_share().ratio())
    }

    /// Of the share promised on an edge. None of anything else.
    fn of(&self, edge: &DerivedEdge) -> Option<Lag> {
        if edge.label.guarantee().kind() != Kind::Ps {
            return None;
        }
        let above = self.derivation.schedulers.iter().find(|above| above.name == edge.parent)?;
        let inputs: Vec<&DerivedEdge> = above
            .accepted
            .iter()
            .filter_map(|accepted| above.edges.get(accepted.input))
            .map(|edge| self.derivation.edges.iter().find(|known| known.edge == *edge).expect("derived"))
            .collect();
        let given = match inputs.as_slice() {
            [] => above.accepted.len() as f64,
            inputs => inputs.iter().map(|input| self.share(input)).sum(),
        };
        let behind = inputs.iter().map(|input| self.of_input(input)).fold(Lag::default(), Lag::plus);
        let fraction = self.share(edge) / given;
        Some(behind.times(fraction).plus(self.own(above, edge, fraction)))
    }

    fn of_input(&self, input: &DerivedEdge) -> Lag {
        let error = |error: &Span| Lag { fixed: float(error.nanos()), root: 0.0 };
        match input.label.absolute() {
            Guarantee::Ps(_) => self.of(input).expect("it is a share"),
            Guarantee::All | Guarantee::Null => Lag::default(),
            Guarantee::Psbe { error: behind, .. } => error(&behind),
            Guarantee::Resu(_) => Lag { fixed: self.slices(&input.parent), root: 0.0 },
            Guarantee::Reservation(_) => {
                let share = input.label.rewrite(Kind::Psbe, &Choice::default()).expect("Theorems 3 and 4");
                let Guarantee::Psbe { error: behind, .. } = share.label.absolute() else {
                    panic!("it was asked for")
                };
                error(&behind)
            }
        }
    }

    /// A slower processor is exact at the ends of slices: of its own, or of those that somebody below announces.
    fn slices(&self, scheduler: &str) -> f64 {
        let model = self.model(scheduler);
        let own = 2.0 * model.quantum.map_or(0.0, |quantum| quantum.as_nanos() as f64);
        let above =
            model.under.iter().map(|under| self.slices(&self.system.schedulers[under.scheduler].name));
        own + above.sum::<f64>()
    }

    /// What comes to it by the scheduler itself.
    fn own(&self, above: &DerivedScheduler, edge: &DerivedEdge, fraction: f64) -> Lag {
        let model = self.model(&above.name);
        let quantum = model.quantum.map_or(0.0, |quantum| quantum.as_nanos() as f64);
        let children = self.children(&above.name).count() as f64;
        let fixed = |fixed| Lag { fixed, root: 0.0 };
        match model.kind.name() {
            "fixed-priority" | "join" => Lag::default(),
            "proportional-share" | "sfq" => {
                let (weight, warp) = self.request(&above.name, &edge.child);
                let others =
                    self.children(&above.name).map(|other| self.request(&above.name, &other.child).1);
                let warped = others.map(|other| other - warp).fold(0.0, f64::max);
                // Who announces slices is exact at their ends only.
                fixed(fraction * children * quantum + weight * warped + 2.0 * fraction * quantum)
            }
            "stride" => fixed(2.0 * children * quantum),
            "lottery" => Lag {
                fixed: fraction * children * quantum,
                root: DEVIATIONS * (quantum * fraction * (1.0 - fraction)).sqrt(),
            },
            "sfs" => fixed((above.accepted.len() as f64 * children + 2.0) * quantum),
            other => panic!("{other} gives no shares"),
        }
    }

    /// The weight and the warp that a child asks for.
    fn request(&self, scheduler: &str, child: &str) -> (f64, f64) {
        let schedulers = self.system.schedulers.iter().map(|below| (&below.name, &below.under));
        let threads = self.system.threads.iter().map(|below| (&below.name, &below.under));
        let (_, under) = schedulers.chain(threads).find(|(name, _)| *name == child).expect("it is below");
        let here = under.iter().find(|under| self.system.schedulers[under.scheduler].name == scheduler);
        match here.expect("it is under it").request {
            Request::Share { weight, warp } => (f64::from(weight.get()), warp.as_nanos() as f64),
            ref other => panic!("{other:?} is no share"),
        }
    }

    /// Whether somebody below never stops, with nobody in between who does: who stops, even for no time, begins anew.
    fn never_stops(&self, name: &str) -> bool {
        if let Some(thread) = self.system.threads.iter().find(|thread| thread.name == name) {
            return thread.work == ThreadWork::CpuBound;
        }
        let gives_all = matches!(
            self.model(name).kind.name(),
            "fixed-priority"
                | "proportional-share"
                | "sfq"
                | "stride"
                | "lottery"
                | "sfs"
                | "eevdf"
                | "round-robin"
                | "time-sharing"
        );
        gives_all && self.children(name).any(|edge| self.never_stops(&edge.child))
    }

    /// The edges with a share of somebody who never stops, with share and lag.
    fn judged(&self, doubted: &[(String, String)]) -> Vec<(&DerivedEdge, f64, Lag)> {
        let is_doubted = |edge: &DerivedEdge| {
            doubted.iter().any(|(parent, child)| (parent, child) == (&edge.parent, &edge.child))
        };
        let edges = self.derivation.edges.iter().filter(|edge| !is_doubted(edge));
        let shares = edges.filter_map(|edge| Some((edge, self.share(edge), self.of(edge)?)));
        shares.filter(|(edge, ..)| self.never_stops(&edge.child)).collect()
    }
}

/// Fails if somebody is further behind than its lag at `now`. Gives the number of those of whom the lag says anything by then.
fn judge(judged: &[(&DerivedEdge, f64, Lag)], kept: &[Kept], now: Instant) -> Result<u32, TestCaseError> {
    let ns = now.as_nanos() as f64;
    let mut told = 0;
    for (edge, share, lag) in judged {
        let bound = lag.after(ns) + ROUNDING_NS;
        let is_it = |kept: &&Kept| kept.parent == edge.parent && kept.child == edge.child;
        let kept = kept.iter().find(is_it).expect("every edge is watched");
        if kept.wanted_ns != Some(now.as_nanos()) || bound > PART * share * ns {
            continue;
        }
        told += 1;
        let behind = share * ns - kept.received_ns as f64;
        prop_assert!(behind <= bound, "at {now} it is behind by {behind} ns, not {bound}: {kept:#?}");
    }
    Ok(told)
}

/// Runs until every share can be judged, though no longer than `longest`, and fails if one is not kept. Gives how many have been.
pub fn assert_shared(
    system: &System,
    doubted: &[(String, String)],
    longest: Duration,
) -> Result<u32, TestCaseError> {
    let derivation = derived(system);
    let lags = Lags { system, derivation: &derivation };
    let judged = lags.judged(doubted);
    let enough = judged.iter().map(|(_, share, lag)| lag.is_small_after(*share));
    let enough = enough.filter(|ns| *ns <= longest.as_nanos() as f64).fold(0.0, f64::max);
    let mut simulation = Simulation::new(system).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut told = 0;
    // With room for the rounding; and before that, for the lag is to be kept all the time.
    for part in [0.5, 0.8, 1.1] {
        let now = Instant::from_nanos((enough * part) as i64);
        simulation.advance(now, &mut Nowhere);
        // Before accounts are closed at an instant of which the events are still to come.
        simulation.check_invariants();
        let kept = simulation.kept(0).expect("the node has a hierarchy");
        told = judge(&judged, &kept, now)?;
    }
    Ok(told)
}

/// How many shares the cases of a test have judged.
#[derive(Debug, Default)]
pub struct Count(Cell<u32>);

impl Count {
    pub fn add(&self, told: u32) {
        self.0.set(self.0.get() + told);
    }

    pub fn get(&self) -> u32 {
        self.0.get()
    }
}

/// A thread that is worth all of a processor while another sleeps, and 21/22 of it beside all, does not lose with every wake-up what
/// it could not make up.
#[test]
fn who_is_worth_nearly_a_processor_keeps_its_share_beside_those_who_wake_all_the_time() {
    let share = |weight| Request::share(NonZeroU32::new(weight).expect("above zero"));
    let burst = |us: i64| ThreadWork::Bursts {
        burst: Execution::Constant(Work::from_nanos(us * 1_000)),
        period: Duration::from_millis(1),
    };
    let scheduler = SchedulerBuilder::new("S", SchedulerKind::SFS).quantum(Duration::from_micros(100));
    let mut builder = System::builder("nearly").node("n", [0, 1, 2]).scheduler(scheduler.on("n"));
    let endless = || ThreadWork::CpuBound;
    let threads =
        [(endless(), 7), (endless(), 3), (endless(), 2), (burst(328), 1), (burst(1), 2), (burst(17), 7)];
    for (number, (work, weight)) in threads.into_iter().enumerate() {
        builder = builder.thread(ThreadBuilder::new(format!("t{number}"), work).under("S", share(weight)));
    }
    let system = builder.build().expect("sound");
    let mut simulation = Simulation::new(&system).expect("it can be arranged");
    simulation.advance(Instant::ZERO + Duration::from_secs(2), &mut Nowhere);
    let kept = simulation.kept(0).expect("there is a hierarchy");
    let heavy = kept.iter().find(|edge| edge.child == "t0").expect("it is there");
    assert!(heavy.guarantee.starts_with("PS 21/22"), "{heavy:?}");
    assert!(heavy.received_ns >= 2_000_000_000 / 22 * 21 - 500_000, "{heavy:?}");
}
