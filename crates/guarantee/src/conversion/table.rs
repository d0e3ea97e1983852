//! Table 1 of Regehr and Stankovic (2001): what schedulers accept and provide. Each kind's declaration names its row.

use crate::guarantee::Kind;
use std::fmt;

/// What a scheduler has to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Any guarantee at all.
    Any,
    /// One of this kind, or what can be rewritten to it.
    One(Kind),
    /// One of this kind for each processor.
    Several(Kind),
}

/// What a scheduler gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provides {
    /// What it is given to its highest child, NULL to all others.
    HighestThenNull,
    /// What one of its parents gives, without a maximum.
    Softened,
    /// One guarantee of this kind.
    One(Kind),
    /// Any number of guarantees of these kinds.
    Many(&'static [Kind]),
}

/// How well a conversion is founded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The paper shows it, or the work that it cites.
    Shown,
    /// The paper says that the scheduler could be adapted to it.
    Adaptable,
    /// The paper believes in it; the parameters and their proof are ours (`shares`).
    Believed,
    /// Not in the paper.
    Ours,
}

/// One conversion of one scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The weakest acceptable guarantee.
    pub accepts: Accepts,
    /// What the scheduler makes of it.
    pub provides: Provides,
    /// Where it comes from.
    pub standing: Standing,
}

const fn many(accepts: Kind, provides: &'static [Kind], standing: Standing) -> Conversion {
    Conversion { accepts: Accepts::One(accepts), provides: Provides::Many(provides), standing }
}

const fn single(accepts: Accepts, provides: Provides) -> [Conversion; 1] {
    [Conversion { accepts, provides, standing: Standing::Shown }]
}

/// Of fixed priority.
pub const FIXED_PRIORITY: [Conversion; 1] = single(Accepts::Any, Provides::HighestThenNull);
/// Of a join.
pub const JOIN: [Conversion; 1] = single(Accepts::Any, Provides::Softened);
/// Of a limit.
pub const LIMIT: [Conversion; 1] = single(Accepts::One(Kind::Resbs), Provides::One(Kind::Resbh));
/// Of all that promise nothing.
pub const TIME_SHARING: [Conversion; 1] = [many(Kind::Null, &[Kind::Null], Standing::Shown)];
/// Of start-time fair queuing.
pub const FAIR: [Conversion; 3] = [
    many(Kind::Ps, &[Kind::Ps], Standing::Shown),
    many(Kind::Psbe, &[Kind::Psbe], Standing::Shown),
    many(Kind::Resu, &[Kind::Psbe], Standing::Believed),
];
/// Of earliest eligible virtual deadline first.
pub const EEVDF: [Conversion; 3] = [
    many(Kind::All, &[Kind::Psbe], Standing::Shown),
    many(Kind::Resu, &[Kind::Psbe], Standing::Believed),
    many(Kind::Psbe, &[Kind::Psbe], Standing::Ours),
];
/// Of shares in the long run.
pub const LONG_RUN: [Conversion; 2] =
    [many(Kind::Ps, &[Kind::Ps], Standing::Shown), many(Kind::Resu, &[Kind::Ps], Standing::Shown)];
/// Of shares of several processors.
pub const SURPLUS: [Conversion; 2] = [
    Conversion {
        accepts: Accepts::Several(Kind::Ps),
        provides: Provides::Many(&[Kind::Ps]),
        standing: Standing::Shown,
    },
    Conversion {
        accepts: Accepts::Several(Kind::Resu),
        provides: Provides::Many(&[Kind::Ps]),
        standing: Standing::Shown,
    },
];
/// Of hard reservations by a plan.
pub const PLANNED: [Conversion; 2] = both(&[Kind::Resbh], Standing::Shown);
/// Of hard reservations by deadline.
pub const HARD: [Conversion; 3] = of_share(both(&[Kind::Resbh], Standing::Shown));
/// Of soft reservations.
pub const SOFT: [Conversion; 2] = both(&[Kind::Resbs], Standing::Shown);
/// Of reserves, hard or soft.
pub const KERNEL: [Conversion; 3] = of_share(both(&[Kind::Resbs, Kind::Resbh], Standing::Adaptable));
/// Of continuous reservations.
pub const RIALTO: [Conversion; 2] = both(&[Kind::Rescs], Standing::Adaptable);
/// Of uniformly slower processors.
pub const SLOWER: [Conversion; 2] = both(&[Kind::Resu], Standing::Shown);
/// Of reservations that are kept on the average.
pub const AVERAGE: [Conversion; 3] =
    of_share([many(Kind::All, &[Kind::Ps], Standing::Ours), many(Kind::Resu, &[Kind::Ps], Standing::Ours)]);
/// Of admission job by job.
pub const STATISTICAL: [Conversion; 3] = of_share([
    many(Kind::All, &[Kind::Null], Standing::Ours),
    many(Kind::Resu, &[Kind::Null], Standing::Ours),
]);

/// The conversions of a deadline-based scheduler: shown for the whole processor.
const fn both(provides: &'static [Kind], of_slower: Standing) -> [Conversion; 2] {
    [many(Kind::All, provides, Standing::Shown), many(Kind::Resu, provides, of_slower)]
}

/// The same of a share with bounded error, too, by looking at each deadline.
const fn of_share(of_processors: [Conversion; 2]) -> [Conversion; 3] {
    let [whole, slower] = of_processors;
    let of_share = Conversion { accepts: Accepts::One(Kind::Psbe), standing: Standing::Ours, ..whole };
    [whole, slower, of_share]
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.accepts {
            Accepts::Any => f.write_str("any -> ")?,
            Accepts::One(kind) => write!(f, "{kind} -> ")?,
            Accepts::Several(kind) => write!(f, "{kind}+ -> ")?,
        }
        match self.provides {
            Provides::HighestThenNull => f.write_str("(any, NULL+)"),
            Provides::Softened => f.write_str("any, softened"),
            Provides::One(kind) => write!(f, "{kind}"),
            Provides::Many([kind]) => write!(f, "{kind}+"),
            Provides::Many(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(|kind| format!("{kind}+")).collect();
                write!(f, "({})", kinds.join(", "))
            }
        }
    }
}
