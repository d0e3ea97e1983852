//! What there is to say of a kind of scheduler.

use super::Parameter;
use crate::conversion::admission::Test;
use crate::conversion::table::Conversion;
use crate::conversion::{Converted, Offer, Refused, nothing};
use crate::guarantee::Kind;

/// A kind of scheduler as everybody knows it who does not run it.
///
/// An own one is written over [`Declaration::PLAIN`], which promises nothing.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// What system files, messages and results call it: lowercase words with hyphens. No other kind has it.
    pub name: &'static str,
    /// Other names under which system files may ask for it, which no other kind has either. Results use the name.
    pub synonyms: &'static [&'static str],
    /// What it does, in a few sentences.
    pub about: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Another kind that promises the same, or is the same.
    pub alike: Option<Alike>,
    /// What can be said of one scheduler beside its place.
    pub parameters: &'static [Parameter],
    /// How many virtual processors it takes from its parents.
    pub intake: Intake,
    /// How many children it has.
    pub children: Children,
    /// What its children ask for.
    pub asks: Asks,
    /// How it decides whether it can keep what its children ask for. None if it admits all of them.
    pub admission: Option<Test>,
    /// Its row in the table of what is accepted and given, for readers; [`convert`](Self::convert) does as it says.
    pub conversions: &'static [Conversion],
    /// What it makes of the guarantees that it is given.
    pub convert: fn(&Offer<'_>) -> Result<Converted, Refused>,
    /// Whether what is derived below a uniformly slower processor is known to be kept.
    pub below_slower: BelowSlower,
    /// What it does with the deadlines of its children's work.
    pub deadlines: Deadlines,
    /// When the periods of what it gives begin.
    pub periods: Periods,
    /// How far behind a share in the long run, or a slower processor, it may leave a child.
    pub behind: Behind,
    /// Whether it plans for all its children together, which makes admitting one dear.
    pub plans: Plans,
    /// Whether it may leave a processor that it has unused.
    pub conserving: Conserving,
    /// Which timers of its own take the processor from its children, by which the number of switches is bounded.
    pub timers: Timers,
    /// What the kernel lacks to do the same by itself, as a sentence without its full stop.
    pub kernel_lacks: &'static str,
    /// Where it can be named.
    pub scope: Scope,
    /// Its row in the published table of conversions, or behind that.
    pub place: u8,
}

impl Declaration {
    /// A kind without a name that takes one virtual processor, has no parameters, and promises nothing to children that ask for
    /// nothing.
    pub const PLAIN: Declaration = Declaration {
        name: "",
        synonyms: &[],
        about: "",
        source: "",
        alike: None,
        parameters: &[],
        intake: Intake::One,
        children: Children::Many,
        asks: Asks::Nothing,
        admission: None,
        conversions: &[],
        convert: nothing,
        below_slower: BelowSlower::Kept,
        deadlines: Deadlines::Told,
        periods: Periods::Own,
        behind: Behind::Unstated,
        plans: Plans::Nothing,
        conserving: Conserving::Unstated,
        timers: Timers::Unstated,
        kernel_lacks: "the kernel does not know this scheduler",
        scope: Scope::Everywhere,
        place: u8::MAX,
    };

    /// What its children ask for, as far as guarantees depend on it.
    pub const fn demand(&self) -> Demand {
        match self.asks {
            Asks::Nothing | Asks::Level | Asks::NoChildren => Demand::Nothing,
            Asks::Priority => Demand::Priority,
            Asks::Share | Asks::WarpedShare => Demand::Weight,
            Asks::Guarantee(kinds) => Demand::Guarantee(kinds),
            Asks::GuaranteeOrJobs(kinds) => Demand::GuaranteeIfAny(kinds),
            Asks::AtMost(kind) => Demand::AtMost(kind),
        }
    }
}

/// Another kind, by name, that tells a reader something about this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// It accepts and gives the same, so that remedies need to look at one of the two only.
    Promises(&'static str),
    /// It is the same code under another name, and so promises the same too.
    Code(&'static str),
}

/// How many virtual processors a scheduler takes from its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// One: it schedules one processor.
    One,
    /// Any number.
    Several,
}

/// How many children a scheduler has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// One at most.
    One,
    /// Any number.
    Many,
    /// Any number, all of them threads, whose jobs it orders.
    Threads,
    /// Any number, all of them threads with bursts.
    Bursts,
    /// None of a description: what it schedules are tasks.
    Tasks,
}

/// What the children of a scheduler ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing.
    Nothing,
    /// A priority of their own.
    Priority,
    /// A level from 0 to 15, or nothing.
    Level,
    /// A share.
    Share,
    /// A share, possibly with a warp.
    WarpedShare,
    /// A guarantee of one of these kinds.
    Guarantee(&'static [Kind]),
    /// A guarantee of one of these kinds; or nothing for what is left, and then a time constraint for each job that has a deadline.
    GuaranteeOrJobs(&'static [Kind]),
    /// A guarantee of this kind, or nothing for as much as there is.
    AtMost(Kind),
    /// It has no children: its threads are tasks.
    NoChildren,
}

impl Asks {
    /// What to write in a system file, for remedies.
    pub fn wanted(self) -> String {
        let guarantee = |kind: &Kind| match kind {
            Kind::Resu => "guarantee = \"RESU 0.5\"".into(),
            kind => format!("guarantee = \"{kind} 5ms 33ms\""),
        };
        match self {
            Asks::Nothing => "nothing but its name".into(),
            Asks::Priority => "priority = 1, a whole number that no sibling has".into(),
            Asks::Level => "priority = 8, a level from 0 to 15, or nothing but its name".into(),
            Asks::Share => "share = 1, a whole number above zero".into(),
            Asks::WarpedShare => "share = 1, a whole number above zero, and warp if it needs one".into(),
            Asks::Guarantee(kinds) => kinds.iter().map(guarantee).collect::<Vec<_>>().join(" or "),
            Asks::GuaranteeOrJobs(kinds) => {
                let guarantees: Vec<String> = kinds.iter().map(guarantee).collect();
                format!(
                    "{}, or nothing but its name: each burst or job is a time constraint then",
                    guarantees.join(" or ")
                )
            }
            Asks::AtMost(kind) => format!("{}, or nothing but its name", guarantee(&kind)),
            Asks::NoChildren => "another scheduler; its threads are tasks of the node".into(),
        }
    }
}

/// What a child asks of a scheduler, as far as guarantees depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    Nothing,
    /// A priority of its own.
    Priority,
    /// A relative share.
    Weight,
    /// A guarantee of one of these kinds.
    Guarantee(&'static [Kind]),
    /// The same, or nothing, for which nothing is given.
    GuaranteeIfAny(&'static [Kind]),
    /// A guarantee of this kind, or nothing for as much as there is.
    AtMost(Kind),
}

/// Whether what a kind is derived to promise below a uniformly slower processor is known to be kept there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowSlower {
    /// It is: the scheduler keeps the deadlines that it announces if they can be kept at all, or tells those of its children.
    Kept,
    /// It is if the scheduler has one parent: of several it cannot tell which a deadline is for.
    KeptUnderOneParent,
    /// It is not: the scheduler orders by something else than the deadlines that the slower processor goes by.
    Unknown,
}

/// What a scheduler does with the deadlines of its children's work, which uniformly slower processors go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    /// It tells its parent the earliest, where that concerns anybody.
    Told,
    /// It tells its parent those as they come: what is above it is as if it were above its children.
    PassedOn,
    /// It tells its parent the end of each quantum at the rate that it has.
    Slices,
    /// It goes by them itself.
    GoneBy,
}

/// When the periods of a scheduler's reservations begin, by which a limit further down can begin its own at the same instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    /// It gives no periods, or begins them by a rule of its own.
    Own,
    /// When the child wakes up after the last one is over.
    WhenOver,
    /// When the child wakes up and the last one is over, or what is left of the budget could not be had any more at its rate: the
    /// rule of constant-bandwidth servers.
    WhenUnsafe,
    /// As its parent's: it has none of its own.
    PassedOn,
    /// As the nearest scheduler above it that has periods of its own: the rule of a limit.
    AsAbove,
}

/// How far behind a scheduler may leave a child that is promised a share in the long run, or a slower processor, beside what it is behind
/// itself. With it a run is judged that ends; of what nothing is stated, the limit alone is promised, which no run reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing is stated.
    Unstated,
    /// As far as it is itself: nothing is divided.
    PassedOn,
    /// Two quanta for each child and two more: one relative to each sibling, at both ends of a window.
    Turns,
    /// The same and twice what warps let all siblings be ahead.
    Warps,
    /// Two quanta, and six standard deviations of the draws.
    Draws,
    /// Two quanta for each child on each processor and four more: after two, somebody who is behind goes first.
    Surplus,
    /// Two of the periods that the child asks for.
    Periods,
    /// What is due in the two longest times between deadlines.
    Deadlines,
}

/// What a scheduler lays down ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plans {
    /// Nothing.
    Nothing,
    /// When each of its children runs.
    Everything,
}

/// Whether a scheduler may leave a processor that it has unused although a child wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conserving {
    /// It does not, whatever its children have been promised and have had: it is work-conserving.
    Always,
    /// It may, or nothing is stated.
    Unstated,
}

/// Which timers of a scheduler take the processor from its children. What others do that come and go is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// None: it decides when somebody comes or goes.
    None,
    /// The ends of budgets and of periods: two for each reservation and period, and the ends of quanta, if it has a
    /// [`quantum`](Parameter::QUANTUM).
    Budgets,
    /// The ends of budgets alone: two for each budget that has been received, since a child that used its own up goes on with the next.
    BudgetsReceived,
    /// The ends of quanta: one for each [`quantum`](Parameter::QUANTUM) received, and of each child one that has begun.
    Quanta,
    /// The entries of its [`plan`](Parameter::PLAN).
    Plan,
    /// Nothing is stated.
    Unstated,
}

/// Where a kind can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In system files and in derivations.
    Everywhere,
    /// In system files only: in derivations it is something else than a scheduler.
    Files,
    /// In derivations only: in system files it is another kind, under circumstances.
    Derivations,
}
