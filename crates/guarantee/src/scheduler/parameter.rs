//! What can be said of one scheduler beside its kind, its name and its place.

/// A parameter of a kind of scheduler, which is a key of its `[[scheduler]]` table.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// What it can be.
    pub values: Values,
    /// What it is where nothing is said.
    pub preset: Preset,
    /// What depends on it.
    pub affects: Affects,
    /// What it means.
    pub about: &'static str,
}

/// What values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A time above zero.
    Time,
    /// A whole number in a range, both ends included.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of the scheduler's parents.
    Parent,
    /// When which child runs: a list of entries.
    Plan,
}

/// What a parameter is where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// This time, in nanoseconds.
    Nanos(i64),
    /// This number.
    Integer(i64),
    /// This word.
    Word(&'static str),
    /// It depends on something else, in words.
    Open(&'static str),
    /// Nothing: it has to be said.
    Required,
}

/// What depends on a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affects {
    /// The guarantees that the scheduler gives, and with them its schedule.
    Guarantees,
    /// Its schedule alone.
    Schedule,
}

impl Parameter {
    /// The quantum of a kind whose guarantees depend on it: 10 ms if nothing is said, as in the published hierarchies.
    pub const QUANTUM: Parameter = Parameter {
        name: "quantum",
        values: Values::Time,
        preset: Preset::Nanos(10_000_000),
        affects: Affects::Guarantees,
        about: "How long a child runs before the scheduler chooses anew.",
    };

    /// The quantum of a kind whose guarantees do not depend on it.
    pub const TURN: Parameter = Parameter { affects: Affects::Schedule, ..Parameter::QUANTUM };

    /// The parent whose guarantee the child of a join takes.
    pub const TAKES: Parameter = Parameter {
        name: "takes",
        values: Values::Parent,
        preset: Preset::Open("the first with which everybody receives what it needs"),
        affects: Affects::Guarantees,
        about: "The parent whose guarantee its child takes.",
    };

    /// The entries of an explicit plan.
    pub const PLAN: Parameter = Parameter {
        name: "plan",
        values: Values::Plan,
        preset: Preset::Required,
        affects: Affects::Schedule,
        about: "Who runs when and for how long: entries in the order of their starts, none of which begins before the one ahead of it \
                is over. Starts count from the beginning of the plan, which is when the first child wants the processor.",
    };

    /// After how long a plan begins again.
    pub const CYCLE: Parameter = Parameter {
        name: "cycle",
        values: Values::Time,
        preset: Preset::Open("the plan is followed once"),
        affects: Affects::Schedule,
        about: "The plan begins again whenever this much time has passed; all its entries are over by then.",
    };
}
