//! A guarantee where it stands in a hierarchy: whose time do its amounts count?
//!
//! A scheduler that uses a uniformly slower processor promises its children amounts of *that* processor's time:
//! RESBS 10 20 below RESU 0.5 is a quarter of the real processor (section 5.1). A [`Label`] therefore carries
//! the speed of the processor that its amounts count on, its *pace*. Only reservations and slower processors
//! count so; shares are parts of a whole real processor wherever they stand.

use crate::exact::{Ratio, Share, Span};
use crate::guarantee::{Continuity, Guarantee, Hardness, Reservation};
use num_traits::One;
use serde::{Serialize, Serializer};
use std::fmt;

/// A guarantee and the speed of the processor whose time it counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    guarantee: Guarantee,
    /// The whole processor unless the guarantee is a reservation or a slower processor.
    pace: Share,
}

impl Label {
    /// A guarantee in the time of the real processor.
    pub fn real(guarantee: impl Into<Guarantee>) -> Self {
        Label { guarantee: guarantee.into(), pace: Share::whole() }
    }

    /// A reservation or a slower processor in the time of a processor of speed `pace`; anything else is real.
    pub fn paced(guarantee: impl Into<Guarantee>, pace: &Share) -> Self {
        let guarantee = guarantee.into();
        match guarantee {
            Guarantee::Reservation(_) | Guarantee::Resu(_) => Label { guarantee, pace: pace.clone() },
            _ => Label::real(guarantee),
        }
    }

    /// `guarantee`, which the receiver of this label wants: its amounts count on the same processor.
    pub fn wanted(&self, guarantee: &Guarantee) -> Label {
        Label::paced(guarantee.clone(), &self.pace)
    }

    /// The guarantee as it is promised.
    pub fn guarantee(&self) -> &Guarantee {
        &self.guarantee
    }

    /// The speed of the processor whose time it counts.
    pub fn pace(&self) -> &Share {
        &self.pace
    }

    /// The long-run part of the real processor.
    pub fn absolute_share(&self) -> Share {
        &self.guarantee.share() * &self.pace
    }

    /// The same promise in time of the real processor.
    pub fn absolute(&self) -> Guarantee {
        match &self.guarantee {
            Guarantee::Reservation(reservation) => reservation.slowed(&self.pace).into(),
            Guarantee::Resu(rate) => Guarantee::Resu(rate * &self.pace),
            other => other.clone(),
        }
    }

    /// The same without a maximum.
    pub(crate) fn softened(&self) -> Label {
        Label { guarantee: self.guarantee.softened(), pace: self.pace.clone() }
    }

    /// Whether every supply that keeps this promise keeps `other` too, by definition and for promises of the
    /// same kind: at least as much is promised. Maxima have to be equal.
    ///
    /// * PS and RESU: no smaller a share.
    /// * PSBE: no smaller a share `s`, and the error `e` reaches `e/s` no further: below its first `e/s` of
    ///   time neither promises anything.
    /// * RESBS: at least the amount in the same period, or in periods several of which make up one of `other`.
    /// * RESCS: any interval holds the amount once for each period that fits into it, and of one more all that
    ///   the missing time cannot have taken away.
    pub fn keeps(&self, other: &Label) -> bool {
        match (&self.absolute(), &other.absolute()) {
            (Guarantee::All, Guarantee::All) | (Guarantee::Null, Guarantee::Null) => true,
            (Guarantee::Resu(own), Guarantee::Resu(wanted)) | (Guarantee::Ps(own), Guarantee::Ps(wanted)) => {
                own >= wanted
            }
            (
                Guarantee::Psbe { share, error },
                Guarantee::Psbe { share: wanted_share, error: wanted_error },
            ) => share >= wanted_share && error * wanted_share <= wanted_error * share,
            (Guarantee::Reservation(own), Guarantee::Reservation(wanted)) => {
                own.kind() == wanted.kind()
                    && match own.hardness() {
                        Hardness::Hard => own == wanted,
                        Hardness::Soft => least_amount(own, wanted.period()) >= *wanted.amount(),
                    }
            }
            _ => false,
        }
    }
}

/// What a soft reservation holds at least in each interval of length `period`: any one if it is continuous, the
/// aligned ones if it is basic.
fn least_amount(reservation: &Reservation, period: &Span) -> Span {
    let times = period.per(reservation.period());
    let whole = times.floor();
    let full = reservation.amount().scaled(&whole).expect("a count is not negative");
    match reservation.continuity() {
        Continuity::Basic if times.is_integer() && times >= Ratio::one() => full,
        Continuity::Basic => Span::zero(),
        Continuity::Continuous => {
            let missing = reservation.period().nanos() * (whole + Ratio::one()) - period.nanos();
            let partial = reservation.amount().nanos() - missing;
            &full + &Span::new(partial).unwrap_or_else(Span::zero)
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.guarantee)?;
        if !self.pace.is_whole() {
            write!(f, " of a processor of speed {}", self.pace)?;
        }
        Ok(())
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            #[serde(flatten)]
            guarantee: &'a Guarantee,
            #[serde(skip_serializing_if = "Share::is_whole")]
            pace: &'a Share,
            notation: String,
        }
        let notation = self.guarantee.to_string();
        Fields { guarantee: &self.guarantee, pace: &self.pace, notation }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::ratio;

    fn real(text: &str) -> Label {
        Label::real(text.parse::<Guarantee>().expect(text))
    }

    #[test]
    fn more_of_the_same_kind_keeps_less() {
        for (own, wanted) in [
            ("PS 0.4", "PS 0.3"),
            ("PSBE 0.5 10", "PSBE 0.5 11"),
            ("PSBE 0.5 10", "PSBE 0.25 5"),
            ("RESBS 5 20", "RESBS 4 20"),
            ("RESBS 5 20", "RESBS 10 40"),
            ("RESCS 5 20", "RESCS 5 21"),
            ("RESCS 5 10", "RESCS 8 18"),
            ("RESBH 5 20", "RESBH 5 20"),
            ("RESU 0.4", "RESU 0.3"),
        ] {
            assert!(real(own).keeps(&real(wanted)), "{own} keeps {wanted}");
        }
        for (own, wanted) in [
            ("PSBE 0.5 10", "PSBE 0.25 4"),
            ("PSBE 0.2 1", "PSBE 0.3 100"),
            ("RESBS 5 20", "RESBS 5 19"),
            ("RESBS 5 20", "RESBS 5 30"),
            ("RESCS 5 10", "RESCS 9 18"),
            ("RESBH 5 20", "RESBH 4 20"),
            ("RESCH 5 20", "RESCH 5 21"),
            ("ALL", "PS 1"),
        ] {
            assert!(!real(own).keeps(&real(wanted)), "{own} does not keep {wanted}");
        }
    }

    #[test]
    fn amounts_below_a_slower_processor_count_its_time() {
        let half = Share::new(ratio(1, 2)).expect("a half");
        let label = Label::paced("RESBS 10 20".parse::<Guarantee>().expect("a reservation"), &half);
        assert_eq!(label.absolute_share(), Share::new(ratio(1, 4)).expect("a quarter"));
        assert_eq!(label.absolute().to_string(), "RESBS 5ms 20ms");
        assert!(label.keeps(&real("RESBS 5 20")) && !label.keeps(&real("RESBS 6 20")));
        assert_eq!(Label::paced(Guarantee::Ps(half.clone()), &half), Label::real(Guarantee::Ps(half)));
    }
}
