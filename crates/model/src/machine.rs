//! A machine as an analysis sees it: what its mechanisms cost, and what it withholds from real-time threads.
//!
//! It is measured (`talea doctor --measure`) and kept as TOML, so that a check can count with a machine that it does not run on.

use crate::description::Overhead;
use crate::slices::Slices;
use crate::system::System;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use talea_guarantee::exact::Span;
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness, Reservation};
use talea_time::{Duration, Work};
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// What a machine costs and withholds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its kernel, for readers.
    pub kernel: String,
    /// Whether the costs are those of real-time threads.
    pub real_time: bool,
    /// What the mechanisms cost, by what else the machine does.
    pub costs: Vec<Costs>,
    /// What the kernel keeps from real-time threads.
    pub withheld: Vec<Withheld>,
    /// The longest time in which the processor was taken away though no rule says so: a stall of the host, or of the hardware.
    pub longest_stall: Duration,
}

/// What the mechanisms cost while the machine does something else, too: what all but the slowest of a hundred take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// What else it does: `idle`, `busy`.
    pub load: String,
    /// What they cost.
    pub overhead: Overhead,
}

/// What the kernel keeps from real-time threads that would take all of a processor: an amount of each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// By what.
    pub by: Mechanism,
    /// How much,
    pub amount: Work,
    /// of each of these. Longer than the amount.
    pub period: Duration,
}

/// Why real-time threads do not get a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `sched_rt_runtime_us`: in one piece at the end of each period, even if the processor stays idle.
    Throttling,
    /// A deadline server for ordinary threads, at any time of each period.
    FairServer,
}

impl Mechanism {
    /// The word in a file.
    pub const fn word(self) -> &'static str {
        match self {
            Mechanism::Throttling => "throttling",
            Mechanism::FairServer => "fair-server",
        }
    }

    fn named(word: &str) -> Option<Mechanism> {
        [Mechanism::Throttling, Mechanism::FairServer].into_iter().find(|known| known.word() == word)
    }
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// It cannot be read.
    #[error("{0}")]
    File(String),
    /// It is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key is missing.
    #[error("\"{0}\" is missing; `talea doctor --measure --out FILE` writes a whole profile")]
    Missing(String),
    /// A key is not what it should be.
    #[error("{key}: {wanted}")]
    Key {
        /// Where.
        key: String,
        /// What is wanted there.
        wanted: &'static str,
    },
    /// A key that no profile has.
    #[error("\"{0}\" is no key of a profile; `talea doctor --measure --out FILE` writes one")]
    Unknown(String),
}

impl Machine {
    /// The highest cost of each mechanism over all loads.
    pub fn highest_costs(&self) -> Overhead {
        self.costs.iter().fold(Overhead::default(), |highest, costs| highest.or_more(&costs.overhead))
    }

    /// How long a thread may have a processor and be at no job of the system though one is ready: what the mechanisms between jobs cost, each
    /// once, the most that one pushes (operations without code do so when they have completed), and the longest stall.
    pub fn longest_dispatch(&self, system: &System) -> Duration {
        let highest = self.highest_costs();
        let Overhead { switch, queue, timer, message, .. } = highest;
        let pushing = system.publishing_costs(&highest).into_iter().max().unwrap_or(Work::ZERO);
        let costs = [switch, queue, timer, message, pushing].map(Work::as_nanos);
        let sum = |sum: i64, cost: i64| sum.saturating_add(cost);
        Duration::from_nanos(costs.into_iter().fold(self.longest_stall.as_nanos(), sum))
    }

    /// What real-time threads that would take all of a processor are kept from: of what takes the greatest part.
    pub fn greatest_part(&self) -> Option<&Withheld> {
        let product = |one: &Withheld, other: &Withheld| {
            i128::from(one.amount.as_nanos()) * i128::from(other.period.as_nanos())
        };
        self.withheld.iter().max_by(|a, b| product(a, b).cmp(&product(b, a)))
    }

    /// What has to be left in small pieces so that nothing is taken; none if nothing would be, or all.
    pub fn slices(&self) -> Option<Slices> {
        self.greatest_part().and_then(|part| Slices::leaving(part.amount, part.period))
    }

    /// What a processor gives to real-time threads that would take all of it.
    ///
    /// Throttling takes its part at the end of its periods, so that no interval as long as one holds more than one of them. A server
    /// may take its part at the end of one period and at the beginning of the next.
    pub fn gives(&self) -> Guarantee {
        let Some(part) = self.greatest_part() else { return Guarantee::All };
        let by_server = self.withheld.iter().any(|part| part.by == Mechanism::FairServer);
        let continuity = if by_server { Continuity::Basic } else { Continuity::Continuous };
        let left = part.period - Duration::from_nanos(part.amount.as_nanos());
        let spans = (Span::try_from(left.as_work()), Span::try_from(part.period));
        let (Ok(amount), Ok(period)) = spans else { return Guarantee::Null };
        Reservation::new(continuity, Hardness::Soft, amount, period).map_or(Guarantee::Null, Guarantee::from)
    }

    /// Reads a profile from a file of at most a mebibyte.
    ///
    /// # Errors
    /// See [`MachineError`]; the first thing that is wrong.
    pub fn read(path: &Path) -> Result<Self, MachineError> {
        const MOST: u64 = 1 << 20;
        let unread = |error: std::io::Error| MachineError::File(error.to_string());
        let mut text = String::new();
        let file = File::open(path).map_err(unread)?;
        file.take(MOST + 1).read_to_string(&mut text).map_err(unread)?;
        match text.len() as u64 {
            ..=MOST => Self::parse(&text),
            _ => Err(MachineError::File("no profile is longer than a mebibyte".into())),
        }
    }

    /// Reads the text of a profile.
    ///
    /// # Errors
    /// See [`MachineError`]; the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let document = DeTable::parse(text).map_err(|error| MachineError::Syntax(error.to_string()))?;
        let file = Section { at: String::new(), table: document.get_ref() };
        file.has_only(&["machine", "costs", "withheld"])?;
        let machine = file.section("machine")?;
        machine.has_only(&["kernel", "real_time", "longest_stall"])?;
        let costs = file.sections("costs")?;
        let withheld = file.sections("withheld")?;
        Ok(Machine {
            kernel: plain(machine.text("kernel")?),
            real_time: machine.flag("real_time")?,
            costs: costs.iter().map(Section::costs).collect::<Result<_, _>>()?,
            withheld: withheld.iter().map(Section::withheld).collect::<Result<_, _>>()?,
            longest_stall: machine.time("longest_stall")?,
        })
    }
}

/// The text that [`Machine::parse`] reads.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# What this machine costs and withholds: written by talea doctor --measure, read by talea check --machine.\n"
        )?;
        writeln!(f, "[machine]\nkernel = {}", toml_text(&self.kernel))?;
        writeln!(f, "real_time = {}", self.real_time)?;
        writeln!(f, "longest_stall = \"{}\"      # taken away though no rule says so", self.longest_stall)?;
        for Costs { load, overhead } in &self.costs {
            writeln!(f, "\n[[costs]]\nload = {}", toml_text(load))?;
            for (name, cost) in overhead.costs() {
                writeln!(f, "{name} = \"{cost}\"")?;
            }
        }
        for Withheld { by, amount, period } in &self.withheld {
            writeln!(
                f,
                "\n[[withheld]]             # from real-time threads that would take all of a processor"
            )?;
            writeln!(f, "by = \"{}\"\namount = \"{amount}\"\nperiod = \"{period}\"", by.word())?;
        }
        Ok(())
    }
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", plain(text))
}

/// The text without what a terminal obeys, and without what would have to be escaped.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\\').collect()
}

/// A table of a profile.
struct Section<'a> {
    at: String,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    fn wrong(&self, key: &str, wanted: &'static str) -> MachineError {
        let at = format!("{}{key}", self.at);
        match self.value(key) {
            Some(_) => MachineError::Key { key: at, wanted },
            None => MachineError::Missing(at),
        }
    }

    fn has_only(&self, keys: &[&str]) -> Result<(), MachineError> {
        match self.table.keys().find(|key| !keys.contains(&key.get_ref().as_ref())) {
            Some(key) => Err(MachineError::Unknown(format!("{}{}", self.at, key.get_ref()))),
            None => Ok(()),
        }
    }

    fn value(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.get(key).map(|value| value.get_ref())
    }

    fn text(&self, key: &str) -> Result<&'a str, MachineError> {
        match self.value(key) {
            Some(DeValue::String(text)) => Ok(text),
            _ => Err(self.wrong(key, "a text in quotes is wanted")),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, MachineError> {
        match self.value(key) {
            Some(DeValue::Boolean(flag)) => Ok(*flag),
            _ => Err(self.wrong(key, "true or false is wanted")),
        }
    }

    /// At most an hour: a cost or a period of the kernel's.
    fn time(&self, key: &str) -> Result<Duration, MachineError> {
        const LONGEST: Duration = Duration::from_secs(3_600);
        let time: Option<Duration> = self.text(key)?.parse().ok();
        time.filter(|time| (Duration::ZERO..=LONGEST).contains(time))
            .ok_or_else(|| self.wrong(key, "a time such as \"5us\", of at most an hour, is wanted"))
    }

    fn work(&self, key: &str) -> Result<Work, MachineError> {
        self.time(key).map(Duration::as_work)
    }

    fn section(&self, key: &str) -> Result<Section<'a>, MachineError> {
        match self.value(key) {
            Some(DeValue::Table(table)) => Ok(Section { at: format!("{key}."), table }),
            _ => Err(self.wrong(key, "a table is wanted")),
        }
    }

    fn sections(&self, key: &str) -> Result<Vec<Section<'a>>, MachineError> {
        let wanted = "tables in double brackets are wanted";
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(DeValue::Array(all)) => all
                .iter()
                .map(|value| match value.get_ref() {
                    DeValue::Table(table) => Ok(Section { at: format!("{key}."), table }),
                    _ => Err(self.wrong(key, wanted)),
                })
                .collect(),
            Some(_) => Err(self.wrong(key, wanted)),
        }
    }

    fn costs(&self) -> Result<Costs, MachineError> {
        self.has_only(&[&["load"][..], &Overhead::KEYS].concat())?;
        let mut wrong = Ok(());
        let overhead = Overhead::of(|key| {
            let cost = self.work(key);
            cost.unwrap_or_else(|error| {
                wrong = std::mem::replace(&mut wrong, Ok(())).and(Err(error));
                Work::ZERO
            })
        });
        wrong?;
        Ok(Costs { load: plain(self.text("load")?), overhead })
    }

    fn withheld(&self) -> Result<Withheld, MachineError> {
        self.has_only(&["by", "amount", "period"])?;
        let by = Mechanism::named(self.text("by")?);
        let by = by.ok_or_else(|| self.wrong("by", "\"throttling\" or \"fair-server\" is wanted"))?;
        let (amount, period) = (self.work("amount")?, self.time("period")?);
        if amount <= Work::ZERO || amount.at_full_speed() >= period {
            return Err(self.wrong("amount", "more than nothing and less than the period is wanted"));
        }
        Ok(Withheld { by, amount, period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let us = |us| Work::from_micros(us);
        let overhead = Overhead {
            switch: us(3),
            queue: us(1),
            timer: us(9),
            message: us(20),
            push: us(4),
            filter: us(2),
            delivery: us(5),
        };
        let busy = Overhead { switch: us(2), timer: us(30), ..overhead };
        let part = |by, ms| Withheld { by, amount: Work::from_millis(ms), period: Duration::from_secs(1) };
        Machine {
            kernel: "6.18 \"x\"".into(),
            real_time: true,
            costs: vec![
                Costs { load: "idle".into(), overhead },
                Costs { load: "busy".into(), overhead: busy },
            ],
            withheld: vec![part(Mechanism::Throttling, 50), part(Mechanism::FairServer, 40)],
            longest_stall: Duration::from_micros(1_234),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = machine();
        let read = Machine::parse(&written.to_string()).expect("it was written here");
        assert_eq!(read, Machine { kernel: "6.18 x".into(), ..written });
    }

    #[test]
    fn of_each_cost_the_highest_counts_and_of_each_part_the_greatest() {
        let machine = machine();
        let us = |us| Work::from_micros(us);
        let highest = Overhead { timer: us(30), ..machine.costs[0].overhead };
        assert_eq!(machine.highest_costs(), highest);
        assert_eq!(machine.gives().to_string(), "RESBS 950ms 1s");
        let throttled = Machine { withheld: machine.withheld[..1].to_vec(), ..machine.clone() };
        assert_eq!(throttled.gives().to_string(), "RESCS 950ms 1s");
        assert_eq!(Machine { withheld: Vec::new(), ..machine }.gives(), Guarantee::All);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = machine().to_string();
        let of = |from: &str, to: &str| Machine::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(
            of("switch = \"3us\"", "switch = 3").starts_with("costs.switch: a text"),
            "{}",
            of("switch = \"3us\"", "switch = 3")
        );
        assert!(of("push = \"4us\"\n", "").starts_with("\"costs.push\" is missing; `talea doctor --measure"));
        assert!(of("[[costs]]", "[[cost]]").starts_with("\"cost\" is no key"));
        assert!(of("amount = \"50ms\"", "amount = \"2s\"").contains("less than the period"));
        assert!(of("by = \"throttling\"", "by = \"magic\"").contains("fair-server"));
        assert!(
            of("[machine]", "[machine").contains("parse error")
                || of("[machine]", "[machine").contains("TOML")
        );
    }
}
