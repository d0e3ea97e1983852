//! A random hierarchy as the system of a file, with requests of which all are admitted.

use super::{Ask, PERIODS, PLAIN, Tree, statistical_period};
use std::collections::HashMap;
use std::num::NonZeroU32;
use talea_guarantee::conversion::admission::Test;
use talea_guarantee::exact::{Share, Span, ratio};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use talea_guarantee::scheduler::{Children, Parameter};
use talea_model::{
    Asks, Plan, PlanEntry, Request, SchedulerBuilder, SchedulerKind, Setting, System, SystemBuilder,
    ThreadBuilder, ThreadWork,
};
use talea_time::Duration;

impl Tree {
    /// The system of it on these processors.
    pub fn system_on(&self, cpus: &[u16]) -> System {
        self.system_requiring(cpus, &HashMap::new())
    }

    /// The same whose threads of these names require something.
    pub fn system_requiring(&self, cpus: &[u16], required: &HashMap<String, Guarantee>) -> System {
        let builder = System::builder("random").seed(7).node("n", cpus.iter().copied());
        let mut grown = Grown { builder, schedulers: Vec::new(), nodes: 0, required };
        let mut joined = Vec::new();
        grown.grow(self, Vec::new(), &mut joined);
        grown.build()
    }

    /// The system of it on two processors, of one of which `kind` gives somebody who never stops all but so many eighths.
    pub fn system_beside(&self, kind: SchedulerKind, eighths: u8) -> System {
        let part = |eighths: u8| match kind.asks {
            Asks::Share => Request::share(weight_of(eighths)),
            Asks::Guarantee([Kind::Resu]) => {
                let rate = Share::new(ratio(u64::from(eighths), 8_u64)).expect("at most the whole");
                Request::Guarantee(Guarantee::Resu(rate))
            }
            _ => {
                let amount = u64::from(eighths) * 1_000_000;
                reserved((Continuity::Basic, Hardness::Hard), amount, 8_000_000)
            }
        };
        let mut halved = SchedulerBuilder::new("H", kind).under("B", Request::Priority(2));
        if kind.has_quantum() {
            halved = halved.quantum(Duration::from_millis(1));
        }
        let builder = System::builder("parted")
            .seed(7)
            .node("n", [0, 1])
            .scheduler(SchedulerBuilder::new("B", SchedulerKind::FIXED_PRIORITY).on("n"))
            .scheduler(halved)
            .thread(ThreadBuilder::new("other", ThreadWork::CpuBound).under("H", part(8 - eighths)));
        let required = HashMap::new();
        let mut grown = Grown { builder, schedulers: Vec::new(), nodes: 0, required: &required };
        let under = vec![("H".to_owned(), part(eighths)), ("B".to_owned(), Request::Priority(1))];
        grown.grow(self, under, &mut Vec::new());
        grown.build()
    }
}

struct Grown<'r> {
    builder: SystemBuilder,
    /// In the order of the file.
    schedulers: Vec<SchedulerBuilder>,
    nodes: usize,
    required: &'r HashMap<String, Guarantee>,
}

impl Grown<'_> {
    fn name(&mut self, prefix: &str) -> String {
        self.nodes += 1;
        format!("{prefix}{}", self.nodes)
    }

    /// Adds the tree below its parents; what is joined goes under the root too if that orders by priority. The name of what is added.
    fn grow(&mut self, tree: &Tree, under: Vec<(String, Request)>, root: &mut Vec<String>) -> String {
        match tree {
            Tree::Thread(demand) => {
                let name = self.name("t");
                let mut thread = ThreadBuilder::new(&name, demand.work());
                if let Some(required) = self.required.get(&name) {
                    thread = thread.requires(required.clone());
                }
                let thread =
                    under.into_iter().fold(thread, |thread, (parent, ask)| thread.under(parent, ask));
                let builder = std::mem::replace(&mut self.builder, System::builder(""));
                self.builder = builder.thread(thread);
                name
            }
            Tree::Scheduler { kind, parameters, children } => {
                let name = self.name("s");
                let mut scheduler = SchedulerBuilder::new(&name, *kind);
                if let Some(quantum) = parameters.quantum(*kind) {
                    scheduler = scheduler.quantum(quantum);
                }
                for (parameter, setting) in parameters.settings(*kind) {
                    scheduler = scheduler.set(parameter, setting);
                }
                if under.is_empty() {
                    scheduler = scheduler.on("n");
                    if *kind == SchedulerKind::FIXED_PRIORITY {
                        root.push(name.clone());
                    }
                }
                let scheduler = under
                    .into_iter()
                    .fold(scheduler, |scheduler, (parent, ask)| scheduler.under(parent, ask));
                let own = self.add(scheduler);
                let asks: Vec<Ask> = children.iter().map(|(ask, _)| *ask).collect();
                let mut names = Vec::new();
                for (place, (ask, child)) in children.iter().enumerate() {
                    let request = request(*kind, &asks, place);
                    let edge = match (&request, root.first().cloned()) {
                        (Request::Guarantee(Guarantee::Reservation(_)), Some(top))
                            if ask.is_joined && kind.children != Children::Bursts =>
                        {
                            (self.join(&name, request, top, ask.weight), Request::Nothing)
                        }
                        _ => (name.clone(), request),
                    };
                    names.push(self.grow(child, vec![edge], root));
                }
                if kind.parameter(Parameter::PLAN.name).is_some() {
                    let (plan, cycle) = plan(parameters.quantum, children, &names);
                    let planned = self.schedulers[own].clone().set(Parameter::PLAN.name, Setting::Plan(plan));
                    self.schedulers[own] = match cycle {
                        Some(cycle) => planned.set(Parameter::CYCLE.name, Setting::Time(cycle)),
                        None => planned,
                    };
                }
                name
            }
        }
    }

    /// A join below a reservation and, with the lowest priority, the root. Whose guarantee it takes is drawn, or left open.
    fn join(&mut self, reserved: &str, request: Request, top: String, draw: u8) -> String {
        let name = self.name("j");
        let lowest = Request::Priority(-(self.nodes as i32));
        let join = SchedulerBuilder::new(&name, SchedulerKind::JOIN);
        let join = match draw % 3 {
            0 => join.takes(reserved),
            1 => join.takes(top.clone()),
            _ => join,
        };
        self.add(join.under(reserved, request).under(top, lowest));
        name
    }

    /// Adds a scheduler, and says which one it is.
    fn add(&mut self, scheduler: SchedulerBuilder) -> usize {
        self.schedulers.push(scheduler);
        self.schedulers.len() - 1
    }

    fn build(self) -> System {
        let builder = self.schedulers.into_iter().fold(self.builder, SystemBuilder::scheduler);
        builder.build().expect("a sound hierarchy")
    }
}

/// A plan that has an entry for every child, most with a gap behind it, and after how long it begins again, if it does.
fn plan(quantum: u32, children: &[(Ask, Tree)], names: &[String]) -> (Plan, Option<Duration>) {
    let unit = Duration::from_micros(i64::from(quantum));
    let mut start = Duration::ZERO;
    let mut entries = Vec::new();
    for ((ask, _), child) in children.iter().zip(names) {
        let duration = unit * i64::from(ask.weight);
        entries.push(PlanEntry { start, duration, child: child.clone() });
        start += duration + unit * (ask.period as i64);
    }
    let (Ask { is_joined, .. }, _) = children[0];
    (Plan::new(entries), (!is_joined).then_some(start))
}

/// What an only child asks of a scheduler of `kind`: something that does not keep it from having all that the scheduler has.
pub fn least(kind: SchedulerKind) -> Request {
    request(kind, &[PLAIN], 0)
}

/// What the child at `place` of so many asks of a scheduler of `kind`, if all ask for as much.
pub(crate) fn beside(kind: SchedulerKind, children: usize, place: usize) -> Request {
    request(kind, &vec![PLAIN; children], place)
}

/// What has to be said of a scheduler of `kind` with these children: a plan with an entry of a millisecond for each.
pub(crate) fn settings(kind: SchedulerKind, children: &[String]) -> Vec<(&'static str, Setting)> {
    if kind.parameter(Parameter::PLAN.name).is_none() {
        return Vec::new();
    }
    let ms = |ms: usize| Duration::from_millis(ms as i64);
    let entry = |(place, child): (usize, &String)| PlanEntry {
        start: ms(2 * place),
        duration: ms(1),
        child: child.clone(),
    };
    let plan: Vec<PlanEntry> = children.iter().enumerate().map(entry).collect();
    let cycle = Setting::Time(ms(2 * children.len() + 1));
    vec![(Parameter::PLAN.name, Setting::Plan(Plan::new(plan))), (Parameter::CYCLE.name, cycle)]
}

/// What the child at `place` asks of a scheduler of `kind` beside its siblings.
pub(super) fn request(kind: SchedulerKind, asks: &[Ask], place: usize) -> Request {
    let Ask { weight, period, warp, is_limited, .. } = asks[place];
    // Something is left free; shortened periods need half, and reserves whose budgets may be used late, two thirds.
    let total: u64 = asks.iter().map(|ask| u64::from(ask.weight)).sum::<u64>() + 1;
    let total = match kind.admission {
        Some(Test::PowersOfTwo) => 2 * total,
        Some(Test::RateMonotonic) => 3 * total,
        _ => total,
    };
    if kind.children == Children::Bursts {
        let superperiod = 2_000_000 * u64::from(statistical_period(place));
        let allowance = superperiod * u64::from(weight) / total;
        return reserved((Continuity::Basic, Hardness::Hard), allowance, superperiod);
    }
    match kind.asks {
        Asks::Nothing | Asks::NoChildren => Request::Nothing,
        Asks::AtMost(_) if is_limited => {
            let period = PERIODS[period] * 1_000_000;
            reserved((Continuity::Basic, Hardness::Hard), period * u64::from(weight) / 40, period)
        }
        Asks::AtMost(_) => Request::Nothing,
        Asks::Priority => Request::Priority(place as i32),
        Asks::Level => Request::Priority(i32::from(weight)),
        Asks::Share => Request::share(weight_of(weight)),
        Asks::WarpedShare => {
            Request::Share { weight: weight_of(weight), warp: Duration::from_micros(i64::from(warp)) }
        }
        Asks::Guarantee([Kind::Resu]) => {
            let rate = Share::new(ratio(u64::from(weight), total)).expect("at most the whole");
            Request::Guarantee(Guarantee::Resu(rate))
        }
        Asks::GuaranteeOrJobs(_) if weight == 7 => Request::Nothing,
        Asks::Guarantee(kinds) | Asks::GuaranteeOrJobs(kinds) => {
            let period = PERIODS[period] * 1_000_000;
            // What is not interrupted has to fit beside the others into the shortest period.
            let shortest = asks.iter().map(|ask| PERIODS[ask.period]).min().unwrap_or_default() * 1_000_000;
            let base = if kind == SchedulerKind::SPRING { shortest } else { period };
            let kind = kinds[usize::from(weight) % kinds.len()].reservation();
            let kind = kind.unwrap_or((Continuity::Basic, Hardness::Soft));
            reserved(kind, base * u64::from(weight) / total, period)
        }
    }
}

fn weight_of(weight: u8) -> NonZeroU32 {
    NonZeroU32::new(u32::from(weight)).expect("weights begin at 1")
}

/// About the amount in the period, both in nanoseconds: in whole microseconds, and something.
fn reserved((continuity, hardness): (Continuity, Hardness), amount: u64, period: u64) -> Request {
    let amount = (amount / 1_000).max(1) * 1_000;
    let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
    let reservation = Reservation::new(continuity, hardness, amount, period);
    Request::Guarantee(reservation.expect("the amount fits").into())
}
