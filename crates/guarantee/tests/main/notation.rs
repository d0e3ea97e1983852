//! What is printed reads back, and no text makes the parser panic.

use num_bigint::BigInt;
use proptest::prelude::*;
use talea_guarantee::exact::{Ratio, Share, Span};
use talea_guarantee::guarantee::{Guarantee, Kind, Reservation};

fn ratio() -> impl Strategy<Value = Ratio> {
    let whole = prop_oneof![0_u64..5, 0..u64::MAX];
    let below = prop_oneof![Just(1_u64), 1_u64..1000, Just(1_000_000_007)];
    (whole, below).prop_map(|(above, below)| Ratio::new(BigInt::from(above), BigInt::from(below)))
}

fn span() -> impl Strategy<Value = Span> {
    ratio().prop_map(|nanos| Span::new(nanos).expect("not negative"))
}

fn share() -> impl Strategy<Value = Share> {
    (0_u64..=1_000_003, 1_000_003_u64..2_000_006).prop_map(|(above, below)| {
        Share::new(Ratio::new(BigInt::from(above), BigInt::from(below))).expect("at most 1")
    })
}

pub fn any_guarantee() -> impl Strategy<Value = Guarantee> {
    let reservations = vec![Kind::Resbh, Kind::Resbs, Kind::Resch, Kind::Rescs];
    let reservation = (prop::sample::select(reservations), span(), span());
    let reservation = reservation.prop_filter_map("a period of zero", |(kind, one, other)| {
        let (continuity, hardness) = kind.reservation().expect("one of the four");
        let (amount, period) = if one <= other { (one, other) } else { (other, one) };
        Reservation::new(continuity, hardness, amount, period).ok().map(Guarantee::from)
    });
    prop_oneof![
        Just(Guarantee::All),
        Just(Guarantee::Null),
        share().prop_map(Guarantee::Resu),
        share().prop_map(Guarantee::Ps),
        (share(), span()).prop_map(|(share, error)| Guarantee::Psbe { share, error }),
        reservation,
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(guarantee in any_guarantee()) {
        prop_assert_eq!(guarantee.to_string().parse::<Guarantee>(), Ok(guarantee));
    }

    #[test]
    fn what_is_written_in_json_reads_back(guarantee in any_guarantee()) {
        let text = serde_json::to_string(&guarantee).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Guarantee>(&text).expect("it was written by us"), guarantee);
    }

    /// A separator more or less changes nothing.
    #[test]
    fn commas_and_blanks_separate_alike(guarantee in any_guarantee(), blank in "[ ,\t]{1,3}") {
        let text = guarantee.to_string().replace(' ', &blank);
        prop_assert_eq!(text.parse::<Guarantee>(), Ok(guarantee));
    }

    #[test]
    fn whatever_is_read_is_read_or_refused_with_a_place(text in "(RES[BC][HS]|PSBE|PS|RESU|ALL|NULL)?[ ,]?[0-9./%µnums -]{0,12}.{0,3}") {
        if let Err(error) = text.parse::<Guarantee>() {
            prop_assert!(error.at().end <= text.len() && error.at().start <= error.at().end);
            prop_assert!(text.is_char_boundary(error.at().start) && text.is_char_boundary(error.at().end));
            prop_assert!(!error.problem().remedy().is_empty());
        }
    }
}
