//! Proportional shares.

use super::rows;
use crate::conversion::{self, table};
use crate::scheduler::{
    Alike, Asks, Behind, Conserving, Deadlines, Declaration, Intake, Parameter, SchedulerKind, Scope, Timers,
};

/// What all of them have in common.
const SHARES: Declaration = Declaration {
    asks: Asks::Share,
    conserving: Conserving::Always,
    timers: Timers::Quanta,
    kernel_lacks: "the kernel's shares (nice, cpu.weight) do not bound how far a thread may fall behind",
    ..Declaration::PLAIN
};

/// What those have in common that serve a child in slices of their quantum and bound how far it falls behind.
const SLICED: Declaration =
    Declaration { parameters: &[Parameter::QUANTUM], deadlines: Deadlines::Slices, ..SHARES };

/// What those have in common that keep shares in the long run only.
const LONG_RUN: Declaration = Declaration {
    behind: Behind::Turns,
    parameters: &[Parameter::TURN],
    conversions: &table::LONG_RUN,
    convert: conversion::in_the_long_run,
    ..SHARES
};

rows! {
    /// The proportional-share scheduler of HLS: a child that wakes up may preempt.
    PROPORTIONAL_SHARE = Declaration {
        behind: Behind::Warps,
        name: "proportional-share",
        about: "Start-time fair queuing in which a child that wakes up may preempt. Gives shares with a bounded error. A child with a warp is \
                served ahead of its share for a while; then all shares are kept in the long run only. The same code as sfq but for what a child does \
                that wakes up.",
        source: "Regehr 2001; Goyal, Guo and Vin 1996; warps: Duda and Cheriton 1999",
        alike: Some(Alike::Promises("sfq")),
        asks: Asks::WarpedShare,
        conversions: &table::FAIR,
        convert: conversion::start_time_fair,
        place: 3,
        ..SLICED
    };
    /// Start-time fair queuing (Goyal, Guo and Vin 1996).
    SFQ = Declaration {
        behind: Behind::Warps,
        name: "sfq",
        about: "Start-time fair queuing: each child has a virtual time, which passes more slowly the larger its share is, and the one whose \
                next quantum begins earliest in virtual time runs. A child that wakes up waits for the end of the quantum. Gives shares with \
                a bounded error; warps as under proportional-share.",
        source: "Goyal, Guo and Vin 1996",
        asks: Asks::WarpedShare,
        conversions: &table::FAIR,
        convert: conversion::start_time_fair,
        place: 17,
        ..SLICED
    };
    /// Earliest eligible virtual deadline first (Stoica et al. 1996).
    EEVDF = Declaration {
        name: "eevdf",
        about: "Earliest eligible virtual deadline first: of the children that are not ahead of their shares, the one whose request is \
                due earliest. Its error is at most one quantum, and no scheduler of shares has a smaller one.",
        source: "Stoica et al. 1996",
        conversions: &table::EEVDF,
        convert: conversion::eevdf,
        place: 9,
        ..SLICED
    };
    /// Lottery scheduling (Waldspurger and Weihl 1994).
    LOTTERY = Declaration {
        behind: Behind::Draws,
        name: "lottery",
        about: "Lottery scheduling: chooses the next child at random, with a probability in proportion to its share, and a greater one if the \
                child did not use its last quantum up.",
        source: "Waldspurger and Weihl 1994",
        alike: Some(Alike::Promises("stride")),
        place: 12,
        ..LONG_RUN
    };
    /// Stride scheduling (Waldspurger and Weihl 1995).
    STRIDE = Declaration {
        name: "stride",
        about: "Stride scheduling: each child has a counter, its pass, to which every quantum adds the inverse of its share. The child with the \
                least pass runs.",
        source: "Waldspurger and Weihl 1995",
        place: 13,
        ..LONG_RUN
    };
    /// Surplus fair scheduling of several processors (Chandra et al. 2000).
    SFS = Declaration {
        behind: Behind::Surplus,
        name: "sfs",
        synonyms: &["surplus-fair"],
        about: "Surplus fair scheduling: shares of several processors at once. They are reduced first so that no child is owed more than one \
                processor; the children that have the least more than they are owed run.",
        source: "Chandra et al. 2000",
        parameters: &[Parameter::TURN],
        intake: Intake::Several,
        conversions: &table::SURPLUS,
        convert: conversion::surplus_fair,
        kernel_lacks: "the kernel's shares (nice, cpu.weight) are not made feasible over several processors",
        place: 18,
        ..SHARES
    };
    /// Proportional shares of which a child has a warp.
    WARPED_SHARE = Declaration {
        name: "warped-share",
        about: "What proportional-share and sfq are for derivations while one of their children has a warp: who is warped is served \
                ahead of its share, so that only the long run is promised.",
        source: "Duda and Cheriton 1999",
        alike: Some(Alike::Promises("stride")),
        parameters: &[],
        scope: Scope::Derivations,
        place: 22,
        ..LONG_RUN
    };
}
