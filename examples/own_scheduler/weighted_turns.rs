//! Weighted round robin: everybody in turn, each for as many quanta as its share.

use talea::schedulers::*;

/// The rule: who has waited longest is next.
#[derive(Clone, Debug, PartialEq)]
struct WeightedTurns {
    quantum: Work,
    /// How many turns have been given out.
    turns: u64,
}

/// A place in the queue: who has a smaller number has waited longer.
#[derive(Clone, Debug)]
struct Turn {
    number: u64,
    whole: Work,
    left: Work,
}

impl Rule for WeightedTurns {
    type Account = Turn;

    fn kind(&self) -> &'static str {
        DECLARATION.name
    }

    fn admit(&mut self, _: &Context<'_>, _: &Clients<Turn>, given: Parameters) -> Result<Turn, Refusal> {
        let whole = self.quantum * i64::from(given.weight(self.kind())?);
        Ok(Turn { number: 0, whole, left: whole })
    }

    fn woke(&mut self, _: &Context<'_>, clients: &mut Clients<Turn>, place: usize) {
        self.turns += 1;
        let turn = clients.account_mut(place);
        (turn.number, turn.left) = (self.turns, turn.whole);
    }

    fn stint_over(&mut self, cx: &Context<'_>, clients: &mut Clients<Turn>, stint: Stint) {
        let turn = clients.account_mut(stint.place);
        turn.left -= stint.used;
        if turn.left <= Work::ZERO {
            self.woke(cx, clients, stint.place);
        }
    }

    fn slice(&self, turn: &Turn) -> Option<Work> {
        Some(turn.left)
    }

    fn elect(&mut self, cx: &Context<'_>, clients: &mut Clients<Turn>, _: Option<usize>) -> Option<usize> {
        clients.least(cx, |turn| turn.number)
    }
}

/// What files, checks and results know of it: shares in the long run, as stride scheduling gives.
static DECLARATION: Declaration = Declaration {
    name: "weighted-turns",
    about: "Everybody in turn, each for as many quanta as its share.",
    parameters: &[Parameter::TURN],
    asks: Asks::Share,
    conversions: &table::LONG_RUN,
    convert: conversion::in_the_long_run,
    conserving: Conserving::Always,
    timers: Timers::Quanta,
    ..Declaration::PLAIN
};

/// How one is made of a description.
pub static ROW: Row = Row::new(SchedulerKind::of(&DECLARATION), |facts| {
    Ok(Configuration::by_rule(WeightedTurns { quantum: facts.quantum(), turns: 0 }))
});
