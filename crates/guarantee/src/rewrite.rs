//! Which guarantees are others too: the published rewrite matrix, and the rewrites with their parameters.
//!
//! A rewrite needs no scheduler: every supply that keeps the one guarantee keeps the other. Three cells need a
//! number that the guarantee does not determine, which a [`Choice`] gives: the slack of Theorem 1, and the period
//! of a reservation made from a share (Theorem 6) or from the whole processor.

use crate::exact::{Share, Span};
use crate::guarantee::{Continuity, Guarantee, Kind, Reservation};
use crate::label::Label;
use crate::theorem::{self, Theorem};
use serde::{Serialize, Serializer};
use std::fmt;
use thiserror::Error;

/// Why one guarantee is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// They are the same.
    Same,
    /// The whole processor contains everything that has no maximum.
    WholeProcessor,
    /// A maximum is given up.
    Softened,
    /// What holds for every interval holds for those that the scheduler would choose.
    AlsoBasic,
    /// Only the share in the long run is kept.
    LongRun,
    /// Nothing is promised any more.
    Nothing,
    /// One of the six theorems.
    Theorem(Theorem),
    /// Less of the same kind ([`Label::keeps`]).
    Weaker,
    /// A scheduler that announces the end of each quantum q as a deadline gets a basic reservation of q in q/r
    /// from a slower processor of rate r.
    QuantumDeadlines,
}

impl Rule {
    /// The reason as a clause.
    pub fn reason(self) -> &'static str {
        match self {
            Rule::Same => "they are the same",
            Rule::WholeProcessor => "the whole processor contains every promise without a maximum",
            Rule::Softened => "the maximum is given up",
            Rule::AlsoBasic => "what every interval holds, the aligned periods hold",
            Rule::LongRun => "only the share in the long run is kept",
            Rule::Nothing => "what it receives is not counted on",
            Rule::Theorem(theorem) => theorem.statement(),
            Rule::Weaker => "it is less of the same",
            Rule::QuantumDeadlines => "the end of each quantum is announced as a deadline",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Theorem(theorem) => write!(f, "{theorem}: {}", theorem.statement()),
            other => f.write_str(other.reason()),
        }
    }
}

/// As its name, and for theorems with the number.
impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Rule::Same => "same",
            Rule::WholeProcessor => "whole-processor",
            Rule::Softened => "softened",
            Rule::AlsoBasic => "also-basic",
            Rule::LongRun => "long-run",
            Rule::Nothing => "nothing",
            Rule::Theorem(Theorem::One) => "theorem-1",
            Rule::Theorem(Theorem::Two) => "theorem-2",
            Rule::Theorem(Theorem::Three) => "theorem-3",
            Rule::Theorem(Theorem::Four) => "theorem-4",
            Rule::Theorem(Theorem::Five) => "theorem-5",
            Rule::Theorem(Theorem::Six) => "theorem-6",
            Rule::Weaker => "weaker",
            Rule::QuantumDeadlines => "quantum-deadlines",
        })
    }
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Every guarantee of the one kind is one of the other, by this rule.
    Convertible(Rule),
    /// Not in general; for some cells a theorem says so.
    Impossible(Option<Theorem>),
}

impl Cell {
    /// The theorem that decides the cell, if it is not obvious.
    pub fn theorem(self) -> Option<Theorem> {
        match self {
            Cell::Convertible(Rule::Theorem(theorem)) => Some(theorem),
            Cell::Convertible(_) => None,
            Cell::Impossible(theorem) => theorem,
        }
    }
}

const NO: Cell = Cell::Impossible(None);
const NO2: Cell = Cell::Impossible(Some(Theorem::Two));
const IS: Cell = Cell::Convertible(Rule::Same);
const CPU: Cell = Cell::Convertible(Rule::WholeProcessor);
const SOFT: Cell = Cell::Convertible(Rule::Softened);
const BASIC: Cell = Cell::Convertible(Rule::AlsoBasic);
const RUN: Cell = Cell::Convertible(Rule::LongRun);
const NIL: Cell = Cell::Convertible(Rule::Nothing);
const T1: Cell = Cell::Convertible(Rule::Theorem(Theorem::One));
const T3: Cell = Cell::Convertible(Rule::Theorem(Theorem::Three));
const T4: Cell = Cell::Convertible(Rule::Theorem(Theorem::Four));
const T5: Cell = Cell::Convertible(Rule::Theorem(Theorem::Five));
const T6: Cell = Cell::Convertible(Rule::Theorem(Theorem::Six));

/// Table 2 of Regehr and Stankovic (2001): the row converts to the column.
const MATRIX: [[Cell; 9]; 9] = [
    // ALL RESU RESBH  RESBS RESCH RESCS PSBE  PS   NULL
    [IS, CPU, NO, CPU, NO, CPU, CPU, CPU, NIL],
    [NO, IS, NO, NO, NO, NO, NO, RUN, NIL],
    [NO, NO, IS, SOFT, NO2, T1, T4, T5, NIL],
    [NO, NO, NO, IS, NO2, T1, T4, T5, NIL],
    [NO, NO, BASIC, BASIC, IS, SOFT, T3, T5, NIL],
    [NO, NO, NO, BASIC, NO, IS, T3, T5, NIL],
    [NO, NO, NO, T6, NO, T6, IS, RUN, NIL],
    [NO, NO, NO, NO, NO, NO, NO, IS, NIL],
    [NO, NO, NO, NO, NO, NO, NO, NO, IS],
];

/// The cell of the matrix for guarantees of these kinds.
pub fn cell(from: Kind, to: Kind) -> Cell {
    MATRIX[from as usize][to as usize]
}

/// What a guarantee leaves open about the one that it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The c of Theorem 1: by how much the interval is longer than it must be.
    pub slack: Span,
    /// Period of a reservation made from a share or from the whole processor.
    pub period: Option<Span>,
}

impl Default for Choice {
    /// No slack, and no period.
    fn default() -> Self {
        Choice { slack: Span::zero(), period: None }
    }
}

/// A guarantee that another one is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rewritten {
    /// Why.
    pub rule: Rule,
    /// The guarantee.
    pub label: Label,
}

/// Why a guarantee is not one of another kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoRewrite {
    /// The matrix says so.
    #[error("{from} is not convertible to {to}{}", .theorem.map(|theorem| format!(" ({theorem}: {})", theorem.statement())).unwrap_or_default())]
    Never {
        /// What there is.
        from: Kind,
        /// What was wanted.
        to: Kind,
        /// The theorem that says so, unless it is obvious.
        theorem: Option<Theorem>,
    },
    /// The guarantee says nothing about the period, and the choice neither.
    #[error("a reservation made from {from} needs a period")]
    NeedsPeriod {
        /// What there is.
        from: Kind,
    },
    /// Theorem 6 promises nothing in so short a period.
    #[error("a share with this error promises nothing in so short a period{}", longer(.shortest))]
    PeriodTooShort {
        /// The shortest, if there is one.
        shortest: Option<Span>,
    },
}

fn longer(shortest: &Option<Span>) -> String {
    shortest.as_ref().map(|least| format!("; the shortest is {least}")).unwrap_or_default()
}

impl Label {
    /// This guarantee as one of kind `to`.
    ///
    /// A result that is a reservation counts the same processor's time as this one, if this is one too; all other
    /// results are real.
    ///
    /// # Errors
    /// The kinds are not convertible, or the choice lacks a period or gives one that is too short.
    pub fn rewrite(&self, to: Kind, choice: &Choice) -> Result<Rewritten, NoRewrite> {
        let from = self.guarantee().kind();
        match cell(from, to) {
            Cell::Convertible(rule) => Ok(Rewritten { rule, label: self.convert(to, rule, choice)? }),
            Cell::Impossible(theorem) => {
                // Theorem 2 speaks of the processor's own time: the whole of a slower one has gaps.
                let whole = self.pace().is_whole().then(|| self.guarantee().as_reservation()).flatten();
                let hard = whole.filter(|_| theorem == Some(Theorem::Two)).and_then(theorem::two);
                match hard {
                    Some(hard) => {
                        Ok(Rewritten { rule: Rule::Theorem(Theorem::Two), label: Label::real(hard) })
                    }
                    None => Err(NoRewrite::Never { from, to, theorem }),
                }
            }
        }
    }

    /// What `rule` makes of this guarantee; the matrix has been asked.
    fn convert(&self, to: Kind, rule: Rule, choice: &Choice) -> Result<Label, NoRewrite> {
        if rule == Rule::Same {
            return Ok(self.clone());
        }
        match to {
            Kind::Null => Ok(Label::real(Guarantee::Null)),
            Kind::Resu => Ok(Label::real(Guarantee::Resu(self.absolute_share()))),
            Kind::Ps => Ok(Label::real(Guarantee::Ps(self.absolute_share()))),
            Kind::Psbe => Ok(Label::real(self.bounded())),
            Kind::Resbh | Kind::Resbs | Kind::Resch | Kind::Rescs => self.reserve(to, choice),
            Kind::All => unreachable!("only ALL becomes ALL, and that is the same"),
        }
    }

    /// The whole processor or a reservation as a share with bounded error.
    fn bounded(&self) -> Guarantee {
        match &self.absolute() {
            Guarantee::Reservation(real) => match real.continuity() {
                Continuity::Basic => theorem::four(real),
                Continuity::Continuous => theorem::three(real),
            },
            _ => Guarantee::Psbe { share: Share::whole(), error: Span::zero() },
        }
    }

    /// A reservation made from anything that the matrix lets become one.
    fn reserve(&self, to: Kind, choice: &Choice) -> Result<Label, NoRewrite> {
        let from = self.guarantee().kind();
        let (continuity, hardness) = to.reservation().expect("the caller wants a reservation");
        let make = |amount: &Span, period: Span, pace: &Share| {
            let made = Reservation::new(continuity, hardness, amount.clone(), period);
            Label::paced(made.expect("a rewrite never promises more than there is"), pace)
        };
        let period = || choice.period.clone().filter(|period| !period.is_zero());
        match self.guarantee() {
            Guarantee::Reservation(own) => {
                let continued = own.continuity() == Continuity::Basic && continuity == Continuity::Continuous;
                let period = match continued {
                    true => theorem::one(&own.slowed(self.pace()), &choice.slack),
                    false => own.period().clone(),
                };
                Ok(make(own.amount(), period, self.pace()))
            }
            Guarantee::Psbe { share, error } => {
                let period = period().ok_or(NoRewrite::NeedsPeriod { from })?;
                let amount = theorem::six(share, error, &period);
                let amount = amount.map_err(|shortest| NoRewrite::PeriodTooShort { shortest })?;
                Ok(make(&amount, period, &Share::whole()))
            }
            _ => {
                let period = period().ok_or(NoRewrite::NeedsPeriod { from })?;
                Ok(make(&period, period.clone(), &Share::whole()))
            }
        }
    }

    /// The shortest chain of rewrites that ends in `goal`, or none.
    ///
    /// Three rewrites and a last step to less of the same kind are enough: of a basic reservation by way of a
    /// continuous one and a share, to a reservation of another period.
    pub fn reach(&self, goal: &Label) -> Option<Vec<Rewritten>> {
        const REWRITES_MAX: usize = 3;
        let period = goal.guarantee().as_reservation().map(|goal| goal.period().clone());
        let choice = Choice { slack: Span::zero(), period };
        let mut chains = vec![Vec::new()];
        for _ in 0..=REWRITES_MAX {
            for chain in &chains {
                if let Some(end) = self.end_of(chain).fall(goal) {
                    return Some([chain.as_slice(), &end].concat());
                }
            }
            chains = chains.iter().flat_map(|chain| self.longer(chain, &choice)).collect();
        }
        None
    }

    /// The last steps, which only give up some of what there is, if they lead to `goal`.
    fn fall(&self, goal: &Label) -> Option<Vec<Rewritten>> {
        let weaker = |label: &Label| Rewritten { rule: Rule::Weaker, label: label.clone() };
        if self == goal {
            return Some(Vec::new());
        }
        if self.keeps(goal) {
            return Some(vec![weaker(goal)]);
        }
        // Every interval of a length holds at least what those of another length do, but not if they are aligned: the
        // length changes before the alignment.
        let soft = goal.guarantee().as_reservation().filter(|goal| goal.kind() == Kind::Resbs)?;
        let everywhere = Label::paced(soft.as_kind(Continuity::Continuous, soft.hardness()), goal.pace());
        let basic = Rewritten { rule: Rule::AlsoBasic, label: goal.clone() };
        self.keeps(&everywhere).then(|| vec![weaker(&everywhere), basic])
    }

    /// What a chain of rewrites that starts here ends in.
    fn end_of<'a>(&'a self, chain: &'a [Rewritten]) -> &'a Label {
        chain.last().map_or(self, |last| &last.label)
    }

    /// Every chain that is one rewrite longer.
    fn longer(&self, chain: &[Rewritten], choice: &Choice) -> Vec<Vec<Rewritten>> {
        let last = self.end_of(chain);
        let others = Kind::EVERY.into_iter().filter(|kind| *kind != last.guarantee().kind());
        let steps = others.filter_map(|kind| last.rewrite(kind, choice).ok());
        steps.map(|step| [chain, &[step]].concat()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::ratio;

    fn guarantee(text: &str) -> Guarantee {
        text.parse().expect(text)
    }

    fn chain(from: &str, goal: &str) -> Option<Vec<String>> {
        let from = Label::real(guarantee(from));
        let steps = from.reach(&from.wanted(&guarantee(goal)))?;
        Some(steps.iter().map(|step| step.label.to_string()).collect())
    }

    #[test]
    fn convertibility_is_transitive() {
        for (from, via, to) in triples(Kind::EVERY) {
            let yes = |from, to| matches!(cell(from, to), Cell::Convertible(_));
            assert!(!(yes(from, via) && yes(via, to)) || yes(from, to), "{from} {via} {to}");
        }
    }

    fn triples(kinds: [Kind; 9]) -> impl Iterator<Item = (Kind, Kind, Kind)> {
        kinds
            .into_iter()
            .flat_map(move |a| kinds.into_iter().flat_map(move |b| kinds.into_iter().map(move |c| (a, b, c))))
    }

    #[test]
    fn chains_end_in_what_is_wanted() {
        assert_eq!(chain("RESBH 5 53", "RESBH 5 53"), Some(vec![]));
        let weaker = chain("RESBH 5 53", "RESCS 5 106").expect("Theorem 1");
        assert_eq!(weaker, ["RESCS 5ms 101ms", "RESCS 5ms 106ms"]);
        assert_eq!(chain("RESBH 5 53", "RESCS 5 100.999999"), None);
        assert_eq!(
            chain("RESBH 10 20", "RESBS 5 30"),
            Some(vec!["RESCS 10ms 30ms".into(), "RESCS 5ms 30ms".into(), "RESBS 5ms 30ms".into()])
        );
        assert_eq!(chain("ALL", "RESBS 5 20").expect("all of it").len(), 2);
        assert_eq!(chain("PS 1", "PSBE 0.1 1000000"), None);
        assert_eq!(chain("RESCS 5 20", "RESBH 5 20"), None);
    }

    #[test]
    fn a_slower_processor_has_the_gaps_of_the_real_one() {
        let half = Share::new(ratio(1, 2)).expect("a half");
        let whole_of_it = Label::paced(guarantee("RESBH 10 10"), &half);
        let refused = whole_of_it.rewrite(Kind::Resch, &Choice::default());
        assert!(matches!(refused, Err(NoRewrite::Never { theorem: Some(Theorem::Two), .. })));
        let continuous = whole_of_it.rewrite(Kind::Rescs, &Choice::default()).expect("Theorem 1");
        assert_eq!(continuous.label.absolute(), guarantee("RESCS 5 15"));
        let share = whole_of_it.rewrite(Kind::Psbe, &Choice::default()).expect("Theorem 4");
        assert_eq!(share.label, Label::real(guarantee("PSBE 0.5 5")));
    }
}
