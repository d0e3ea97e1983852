//! Time sharing: dynamic levels with boosts, after the scheduler of Windows 2000 (Solomon and Russinovich 2000).
//!
//! There are levels 0 to 15, higher first, round robin within one. A child starts at its base level; waking up lifts it by a
//! boost, every finished quantum takes one level of that away. Who has wanted the processor in vain for a long time runs at level 15 for a double
//! quantum, so that nobody starves. A child that is preempted keeps its turn and the rest of its quantum.
//!
//! Accepts any guarantee and promises none (NULL). Costs a look at every child per notification.
//!
//! Do not use it for anything with a deadline: what runs when follows from who blocked when.

use super::configuration::{boxed, positive, some_quantum};
use super::round_robin::Turns;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant, Work};

/// The highest level.
pub const TOP_LEVEL: u8 = 15;

/// How a time-sharing scheduler treats its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// How long a child runs before the next of its level.
    pub quantum: Work,
    /// Levels above its base at which a child wakes up.
    pub boost: u8,
    /// How long a child waits in vain before it is lifted to the top.
    pub starvation: Duration,
    /// Base level of children that ask for none.
    pub base: u8,
}

impl Default for Habits {
    /// Those of a desktop: quanta of 30 ms, wake-ups boosted by 2, starvation after 4 s, base level 8.
    fn default() -> Self {
        let starvation = Duration::from_millis(4000);
        Habits { quantum: Work::from_millis(30), boost: 2, starvation, base: 8 }
    }
}

/// The rule. Children register with [`Parameters::Priority`], their base level from 0 to 15, or [`Parameters::None`].
#[derive(Clone, Debug)]
pub struct TimeSharing {
    habits: Habits,
    turns: Turns,
}

/// A child's level and turn.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    base: u8,
    level: u8,
    turn: u64,
    /// What is left of its quantum.
    left: Work,
    /// When it last ran or began to wait.
    served: Instant,
    lift: Lift,
}

/// What lifted a child above its base, and so how it comes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lift {
    /// Waking up: one level per finished quantum.
    WakeUp,
    /// Starvation: all at once.
    Starvation,
}

impl Level {
    /// Where it stands now.
    pub fn level(&self) -> u8 {
        self.level
    }
}

impl TimeSharing {
    /// A scheduler with these habits.
    pub fn scheduler(habits: Habits) -> Uniprocessor<Self> {
        Uniprocessor::new(TimeSharing { habits, turns: Turns::default() })
    }

    fn base(&self, given: Parameters) -> Result<u8, Refusal> {
        match given {
            Parameters::None => Ok(self.habits.base),
            Parameters::Priority(base @ 0..=15) => Ok(base as u8),
            _ => Err(Refusal::unacceptable(self.kind(), "a base level from 0 to 15", given)),
        }
    }
}

impl Rule for TimeSharing {
    type Account = Level;

    fn kind(&self) -> &'static str {
        SchedulerKind::TIME_SHARING.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        _clients: &Clients<Level>,
        given: Parameters,
    ) -> Result<Level, Refusal> {
        let base = self.base(given)?;
        Ok(Level {
            base,
            level: base,
            turn: 0,
            left: self.habits.quantum,
            served: cx.now(),
            lift: Lift::WakeUp,
        })
    }

    fn change(
        &mut self,
        _cx: &Context<'_>,
        clients: &mut Clients<Level>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let base = self.base(given)?;
        let account = clients.account_mut(place);
        (account.base, account.level) = (base, base);
        Ok(())
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Level>, place: usize) {
        let account = clients.account_mut(place);
        account.level = account.base.saturating_add(self.habits.boost).min(TOP_LEVEL);
        account.turn = self.turns.next();
        account.left = self.habits.quantum;
        account.served = cx.now();
        account.lift = Lift::WakeUp;
    }

    fn ran(&mut self, cx: &Context<'_>, clients: &mut Clients<Level>, place: usize, _used: Work) {
        clients.account_mut(place).served = cx.now();
    }

    fn stint_over(&mut self, _cx: &Context<'_>, clients: &mut Clients<Level>, stint: Stint) {
        let account = clients.account_mut(stint.place);
        account.left -= stint.used;
        if account.left > Work::ZERO {
            return;
        }
        account.level = match account.lift {
            Lift::WakeUp => account.level.saturating_sub(1).max(account.base),
            Lift::Starvation => account.base,
        };
        account.lift = Lift::WakeUp;
        account.left = self.habits.quantum;
        account.turn = self.turns.next();
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Level>) {
        let (quantum, patience) = (self.habits.quantum, self.habits.starvation);
        for place in 0..clients.len() {
            let account = clients.account(place);
            if account.level < TOP_LEVEL && cx.now() - account.served >= patience && clients.wants(cx, place)
            {
                let account = clients.account_mut(place);
                (account.level, account.left, account.served) = (TOP_LEVEL, quantum + quantum, cx.now());
                account.lift = Lift::Starvation;
            }
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Level>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let rank = |account: &Level| (TOP_LEVEL - account.level, account.turn);
        clients.wanting(cx).min_by_key(|(_, account)| rank(account)).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Level>, stint: Option<Stint>) -> Option<Instant> {
        let end = stint.map(|stint| {
            let left = clients.account(stint.place).left - stint.used;
            cx.now() + left.at_full_speed()
        });
        let waiting = clients.wanting(cx).filter(|(place, account)| {
            account.level < TOP_LEVEL && stint.is_none_or(|stint| stint.place != *place)
        });
        let starving = waiting.map(|(_, account)| account.served + self.habits.starvation).min();
        // Without a processor nobody can be helped.
        end.map(|end| starving.map_or(end, |starving| end.min(starving)))
    }
}

/// What a time-sharing scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(pub Habits);

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::TIME_SHARING.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.0.quantum)?;
        positive(self, "starvation", self.0.starvation)?;
        boxed(TimeSharing::scheduler(self.0), announcing)
    }
}

const fn row(kind: SchedulerKind) -> Row {
    Row::new(kind, |facts| {
        let level = |name| u8::try_from(facts.integer(name)).expect("its kind declares the range");
        let (quantum, starvation) = (facts.quantum(), facts.time("starvation"));
        Ok(Config(Habits { quantum, boost: level("boost"), starvation, base: level("base_level") }).into())
    })
}

pub(super) static ROW: Row = row(SchedulerKind::TIME_SHARING);
pub(super) static LINUX: Row = row(SchedulerKind::LINUX);
pub(super) static WINDOWS_2000: Row = row(SchedulerKind::WINDOWS_2000);
