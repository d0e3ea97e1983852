//! Guarantees in JSON.
//!
//! They are written as objects whose numbers are exact texts, in nanoseconds where they are times:
//! `{"type": "PSBE", "share": "2/5", "delta_ns": "58000000"}`. They are read in this form, and in the notation of
//! [`crate::notation`] as one text.

use crate::exact::{Ratio, Share, Span};
use crate::guarantee::{Guarantee, Kind, Reservation};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

impl Serialize for Guarantee {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("type", self.kind().name())?;
        match self {
            Guarantee::All | Guarantee::Null => {}
            Guarantee::Resu(rate) => object.serialize_entry("rate", rate)?,
            Guarantee::Ps(share) => object.serialize_entry("share", share)?,
            Guarantee::Psbe { share, error } => {
                object.serialize_entry("share", share)?;
                object.serialize_entry("delta_ns", error)?;
            }
            Guarantee::Reservation(reservation) => {
                object.serialize_entry("x_ns", reservation.amount())?;
                object.serialize_entry("y_ns", reservation.period())?;
            }
        }
        object.end()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Object(Box<Fields>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(rename = "type")]
    kind: Kind,
    rate: Option<Share>,
    share: Option<Share>,
    delta_ns: Option<Span>,
    x_ns: Option<Span>,
    y_ns: Option<Span>,
}

impl Fields {
    fn guarantee(self) -> Result<Guarantee, String> {
        let Fields { kind, rate, share, delta_ns, x_ns, y_ns } = self;
        match (kind, rate, share, delta_ns, x_ns, y_ns) {
            (Kind::All, None, None, None, None, None) => Ok(Guarantee::All),
            (Kind::Null, None, None, None, None, None) => Ok(Guarantee::Null),
            (Kind::Resu, Some(rate), None, None, None, None) => Ok(Guarantee::Resu(rate)),
            (Kind::Ps, None, Some(share), None, None, None) => Ok(Guarantee::Ps(share)),
            (Kind::Psbe, None, Some(share), Some(error), None, None) => Ok(Guarantee::Psbe { share, error }),
            (kind, None, None, None, Some(amount), Some(period)) => {
                let (continuity, hardness) = kind.reservation().ok_or(format!("{kind} has no x_ns, y_ns"))?;
                let reservation = Reservation::new(continuity, hardness, amount, period);
                reservation.map(Guarantee::from).map_err(|error| error.to_string())
            }
            (kind, ..) => Err(format!("{kind} has other parameters; {}", wanted(kind))),
        }
    }
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::All | Kind::Null => "write only its \"type\"",
        Kind::Resu => "write \"rate\"",
        Kind::Ps => "write \"share\"",
        Kind::Psbe => "write \"share\" and \"delta_ns\"",
        Kind::Resbh | Kind::Resbs | Kind::Resch | Kind::Rescs => "write \"x_ns\" and \"y_ns\"",
    }
}

impl<'de> Deserialize<'de> for Guarantee {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Text(text) => text.parse().map_err(D::Error::custom),
            Form::Object(fields) => fields.guarantee().map_err(D::Error::custom),
        }
    }
}

/// A rational as text: `"a/b"`, or `"a"` if it is whole.
fn exact(number: &Ratio) -> String {
    number.to_string()
}

/// A rational as text, or a whole number as a number.
fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ratio, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Whole(u64),
        Text(String),
    }
    match Number::deserialize(deserializer)? {
        Number::Whole(number) => Ok(Ratio::from_integer(number.into())),
        Number::Text(text) => {
            // The parser of rationals panics on a denominator of zero in some versions; rule it out first.
            let below = text.split_once('/').map_or("1", |(_, below)| below);
            let zero = below.trim_start_matches(['+', '-']).chars().all(|digit| digit == '0');
            let number = if zero { None } else { text.parse().ok() };
            number.ok_or_else(|| D::Error::custom(format!("\"{text}\" is no fraction such as \"5/6\"")))
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&exact(self.nanos()))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let nanos = read(deserializer)?;
        Span::new(nanos).ok_or_else(|| D::Error::custom("a time of a guarantee is zero or more nanoseconds"))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&exact(self.ratio()))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = read(deserializer)?;
        Share::new(part).ok_or_else(|| D::Error::custom("a share is a number from 0 to 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_texts_read_as_the_same_guarantee() {
        for (object, text) in [
            (r#"{"type":"ALL"}"#, "ALL"),
            (r#"{"type":"RESBH","x_ns":"5000000","y_ns":"33000000"}"#, "RESBH 5 33"),
            (r#"{"type":"PSBE","share":"2/5","delta_ns":"58000000"}"#, "PSBE 0.4 58"),
            (r#"{"type":"RESU","rate":"1/3"}"#, "RESU 1/3"),
            (r#"{"type":"PS","share":"1"}"#, "PS 1"),
        ] {
            let from_object: Guarantee = serde_json::from_str(object).expect(object);
            let from_text: Guarantee = serde_json::from_str(&format!("\"{text}\"")).expect(text);
            assert_eq!(from_object, from_text);
            assert_eq!(serde_json::to_string(&from_text).expect("JSON"), object);
        }
    }

    #[test]
    fn wrong_objects_are_refused() {
        for object in [
            r#"{"type":"ALL","rate":"1"}"#,
            r#"{"type":"RESBH","x_ns":"5"}"#,
            r#"{"type":"RESBH","x_ns":"5","y_ns":"4"}"#,
            r#"{"type":"PS","share":"1/0"}"#,
            r#"{"type":"PS","share":"-1/2"}"#,
            r#"{"type":"PS","share":"1/2","colour":"red"}"#,
            r#"{"type":"ps","share":"1/2"}"#,
        ] {
            assert!(serde_json::from_str::<Guarantee>(object).is_err(), "{object}");
        }
    }
}
