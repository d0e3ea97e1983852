//! What is said of a random scheduler: a value for each parameter that its kind declares.

use proptest::prelude::*;
use talea_guarantee::scheduler::{Parameter, Values};
use talea_model::{SchedulerKind, Setting};
use talea_time::Duration;

/// Numbers of which the values of a scheduler's parameters are made, whatever its kind declares.
#[derive(Clone, Copy, Debug)]
pub struct ParameterDraws {
    /// Of its quantum, in microseconds.
    pub(super) quantum: u32,
    /// Of the others in turn; zero leaves a parameter out.
    pub(super) draws: [u16; 4],
}

impl ParameterDraws {
    /// The quantum, of a kind that has one.
    pub(crate) fn quantum(&self, kind: SchedulerKind) -> Option<Duration> {
        kind.has_quantum().then(|| Duration::from_micros(i64::from(self.quantum)))
    }

    /// The values of all parameters of the kind but those that depend on where it stands: its quantum, its plan, and its parents.
    pub(crate) fn settings(&self, kind: SchedulerKind) -> Vec<(&'static str, Setting)> {
        const ELSEWHERE: [Parameter; 4] =
            [Parameter::QUANTUM, Parameter::TAKES, Parameter::PLAN, Parameter::CYCLE];
        let is_drawn = |parameter: &&Parameter| ELSEWHERE.iter().all(|other| other.name != parameter.name);
        let drawn = kind.declaration().parameters.iter().filter(is_drawn).zip(self.draws.iter().cycle());
        drawn.filter_map(|(parameter, draw)| Some((parameter.name, value(parameter, *draw)?))).collect()
    }

    pub(super) fn with_presets(self) -> Self {
        ParameterDraws { draws: [0; 4], ..self }
    }
}

/// How far from its least value an integer is drawn: a large one may only be a matter of memory and patience.
const INTEGERS: i128 = 4096;

/// The value that a draw makes of a parameter; none for its preset.
fn value(parameter: &Parameter, draw: u16) -> Option<Setting> {
    let draw = draw.checked_sub(1)?;
    match parameter.values {
        Values::Time => Some(Setting::Time(Duration::from_micros(100 * (1 + i64::from(draw))))),
        Values::Integer { min, max } => {
            let values = (i128::from(max) - i128::from(min) + 1).min(INTEGERS);
            let above = i64::try_from(i128::from(draw) % values).expect("it is small");
            Some(Setting::Integer(min + above))
        }
        Values::Word(words) => Some(Setting::Word(words[usize::from(draw) % words.len()])),
        Values::Parent | Values::Plan => None,
    }
}

/// What may be said of a scheduler.
pub(crate) fn parameter_draws() -> impl Strategy<Value = ParameterDraws> + Clone {
    parameter_draws_with((1..12u32).prop_map(|quantum| quantum * 1_000))
}

fn parameter_draws_with(
    quantum: impl Strategy<Value = u32> + Clone,
) -> impl Strategy<Value = ParameterDraws> + Clone {
    let draw = prop_oneof![1 => Just(0), 3 => 1..=u16::MAX];
    (quantum, prop::array::uniform4(draw)).prop_map(|(quantum, draws)| ParameterDraws { quantum, draws })
}

/// The same with short quanta.
pub(super) fn short_quanta() -> impl Strategy<Value = ParameterDraws> + Clone {
    parameter_draws_with((1..6u32).prop_map(|quantum| quantum * 50))
}
