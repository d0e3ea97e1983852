//! Round robin: everybody in turn, for a quantum at a time.
//!
//! Accepts any guarantee and promises nothing to one child (NULL); with `n` children that always want the processor, each
//! waits at most `n - 1` quanta of what the scheduler receives. A child that loses the processor to somebody outside keeps its
//! turn and what is left of its quantum. Costs a look at every child per notification.
//!
//! Do not use it where children need different shares, or a response before everybody has had a turn.

use super::configuration::{boxed, some_quantum};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_model::SchedulerKind;
use talea_time::Work;

/// The rule of round robin. Children register with [`Parameters::None`].
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum: Work,
    turns: Turns,
}

/// Numbers that are given out in order: who has a smaller one has waited longer.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(u64);

impl Turns {
    pub(super) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// A place in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    turn: u64,
    /// What is left of the quantum.
    left: Work,
}

impl RoundRobin {
    /// Round robin with this quantum.
    pub fn scheduler(quantum: Work) -> Uniprocessor<Self> {
        Uniprocessor::new(RoundRobin { quantum, turns: Turns::default() })
    }
}

impl Rule for RoundRobin {
    type Account = Turn;

    fn kind(&self) -> &'static str {
        SchedulerKind::ROUND_ROBIN.name()
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        _clients: &Clients<Turn>,
        given: Parameters,
    ) -> Result<Turn, Refusal> {
        match given {
            Parameters::None => Ok(Turn { turn: 0, left: self.quantum }),
            _ => Err(Refusal::unacceptable(self.kind(), "no parameters", given)),
        }
    }

    fn woke(&mut self, _cx: &Context<'_>, clients: &mut Clients<Turn>, place: usize) {
        *clients.account_mut(place) = Turn { turn: self.turns.next(), left: self.quantum };
    }

    fn stint_over(&mut self, _cx: &Context<'_>, clients: &mut Clients<Turn>, stint: Stint) {
        let account = clients.account_mut(stint.place);
        account.left -= stint.used;
        if account.left <= Work::ZERO {
            *account = Turn { turn: self.turns.next(), left: self.quantum };
        }
    }

    fn slice(&self, turn: &Turn) -> Option<Work> {
        Some(turn.left)
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Turn>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        clients.least(cx, |account| account.turn)
    }
}

/// What a round robin is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each runs.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::ROUND_ROBIN.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(RoundRobin::scheduler(self.quantum), announcing)
    }
}

pub(super) static ROW: Row =
    Row::new(SchedulerKind::ROUND_ROBIN, |facts| Ok(Config { quantum: facts.quantum() }.into()));
