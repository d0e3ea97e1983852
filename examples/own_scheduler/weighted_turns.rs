//! Weighted round robin: everybody in turn, each for as many quanta as its share.

use talea::schedulers::{
    Asks, Clients, Configuration, Context, Declaration, Parameter, Parameters, Refusal, Row, Rule,
    SchedulerKind, Stint, conversion, table,
};
use talea::{Instant, Work};

/// The rule: who has waited longest is next.
#[derive(Clone, Debug, PartialEq)]
struct WeightedTurns {
    quantum: Work,
    /// How many turns have been given out.
    turns: u64,
}

/// A place in the queue.
#[derive(Clone, Debug)]
struct Turn {
    number: u64,
    /// As long as all of the child's turns.
    whole: Work,
    left: Work,
}

impl WeightedTurns {
    fn queue(&mut self, turn: &mut Turn) {
        self.turns += 1;
        *turn = Turn { number: self.turns, left: turn.whole, ..*turn };
    }
}

impl Rule for WeightedTurns {
    type Account = Turn;

    fn kind(&self) -> &'static str {
        DECLARATION.name
    }

    fn admit(&mut self, _: &Context<'_>, _: &Clients<Turn>, given: Parameters) -> Result<Turn, Refusal> {
        let Parameters::Weight(weight) = given else {
            return Err(Refusal::unacceptable(self.kind(), "a weight", given));
        };
        let whole = self.quantum * i64::from(weight);
        Ok(Turn { number: 0, whole, left: whole })
    }

    fn woke(&mut self, _: &Context<'_>, clients: &mut Clients<Turn>, place: usize) {
        self.queue(clients.account_mut(place));
    }

    fn stint_over(&mut self, _: &Context<'_>, clients: &mut Clients<Turn>, stint: Stint) {
        let turn = clients.account_mut(stint.place);
        turn.left -= stint.used;
        if turn.left <= Work::ZERO {
            self.queue(turn);
        }
    }

    fn keeps(&self, _: &Context<'_>, clients: &Clients<Turn>, stint: Stint) -> bool {
        stint.used < clients.account(stint.place).left
    }

    fn elect(&mut self, cx: &Context<'_>, clients: &mut Clients<Turn>, _: Option<usize>) -> Option<usize> {
        clients.wanting(cx).min_by_key(|(_, turn)| turn.number).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Turn>, stint: Option<Stint>) -> Option<Instant> {
        stint.map(|stint| cx.now() + (clients.account(stint.place).left - stint.used).at_full_speed())
    }
}

/// What files, checks and results know of it: shares in the long run, as stride scheduling gives.
static DECLARATION: Declaration = Declaration {
    name: "weighted-turns",
    about: "Everybody in turn, each for as many quanta as its share.",
    source: "folklore",
    parameters: &[Parameter::TURN],
    asks: Asks::Share,
    conversions: &table::LONG_RUN,
    convert: conversion::in_the_long_run,
    ..Declaration::PLAIN
};

/// How one is made of a description.
pub static ROW: Row = Row::new(SchedulerKind::of(&DECLARATION), |facts| {
    Ok(Configuration::by_rule(WeightedTurns { quantum: facts.quantum(), turns: 0 }))
});
