//! Bodies: bytes in the encoding of who made the event.

use crate::limits::Limits;
use crate::problem::{Problem, WireError};
use crate::read::Reader;
use crate::values::{read_value, value_len, write_value};
use crate::write::Writer;
use talea_etcl::OwnedValue;
use thiserror::Error;

/// In which encoding a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding<'a> {
    /// There is no body.
    None,
    /// Bytes of whatever kind, as both sides have agreed.
    Raw,
    /// OMG's Common Data Representation, as in DDS and ROS 2, behind the four bytes that say how it is encapsulated.
    Cdr,
    /// JSON.
    Json,
    /// The compact encoding of the crate postcard.
    Postcard,
    /// A value in the encoding of properties: the remainder of a structured event's body.
    Value,
    /// Another one, by its name.
    Named(&'a str),
}

const NAMED: u8 = 0xff;

impl<'a> Encoding<'a> {
    const KNOWN: [Encoding<'static>; 6] =
        [Encoding::None, Encoding::Raw, Encoding::Cdr, Encoding::Json, Encoding::Postcard, Encoding::Value];

    pub(crate) fn write(self, writer: &mut Writer<'_>) {
        match (self, Self::KNOWN.iter().position(|known| *known == self)) {
            (Encoding::Named(name), _) => {
                writer.byte(NAMED);
                writer.text(name);
            }
            (_, place) => writer.byte(place.expect("all others are known") as u8),
        }
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let at = reader.at();
        let kind = reader.byte("the encoding of the body")?;
        if kind == NAMED {
            return match reader.name("the name of an encoding")? {
                "" => Err(WireError { at, problem: Problem::Empty("the name of an encoding") }),
                name => Ok(Encoding::Named(name)),
            };
        }
        let known = Self::KNOWN.get(usize::from(kind)).copied();
        known.ok_or(WireError { at, problem: Problem::Kind { what: "a body", kind } })
    }
}

impl std::fmt::Display for Encoding<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Encoding::None => "no body",
            Encoding::Raw => "raw bytes",
            Encoding::Cdr => "CDR",
            Encoding::Json => "JSON",
            Encoding::Postcard => "postcard",
            Encoding::Value => "a value",
            Encoding::Named(name) => name,
        })
    }
}

/// The body of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'a> {
    /// In which encoding it is.
    pub encoding: Encoding<'a>,
    /// It; empty if there is none.
    pub bytes: &'a [u8],
}

/// A body cannot be read or written.
#[derive(Debug, Error)]
pub enum BodyProblem {
    /// It is in an encoding that is not read and written here, or was not asked for when this program was built.
    #[error(
        "{0} is not an encoding that serde reads and writes here (the features json, postcard and cdr of talea-wire)"
    )]
    Encoding(String),
    /// It is not what it says, or not of the type that was asked for.
    #[error("the body is no such value in {0}: {1}")]
    Value(&'static str, String),
    /// The bytes are no value.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl<'a> Body<'a> {
    /// No body.
    pub const NONE: Body<'static> = Body { encoding: Encoding::None, bytes: &[] };

    /// Bytes of whatever kind.
    pub fn raw(bytes: &'a [u8]) -> Self {
        Body { encoding: Encoding::Raw, bytes }
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        self.encoding.write(writer);
        writer.number(self.bytes.len() as u64);
        writer.bytes(self.bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let encoding = Encoding::read(reader)?;
        let at = reader.at();
        let count = reader.count(reader.limits.bytes, "the length of the body")?;
        if encoding == Encoding::None && count > 0 {
            return Err(WireError { at, problem: Problem::Range("the length of a body that is none") });
        }
        Ok(Body { encoding, bytes: reader.take(count, "the body")? })
    }

    /// The value that is the body, if it is in the encoding of properties.
    ///
    /// # Errors
    /// It is in another one, or no value.
    pub fn value(&self, limits: &Limits) -> Result<OwnedValue, BodyProblem> {
        if self.encoding != Encoding::Value {
            return Err(BodyProblem::Encoding(self.encoding.to_string()));
        }
        let mut reader = Reader::new(self.bytes, *limits);
        let value = read_value(&mut reader, 0)?;
        match reader.left() {
            0 => Ok(value),
            left => Err(reader.problem(Problem::Trailing(left)).into()),
        }
    }
}

/// A value as the bytes of a body. Allocates.
pub(crate) fn value_bytes(value: &OwnedValue) -> Vec<u8> {
    let mut bytes = vec![0; value_len(value)];
    write_value(&mut Writer::new(&mut bytes), value);
    bytes
}

/// How a body in CDR begins that is encapsulated with the low byte first.
#[cfg(feature = "cdr")]
const CDR_LE: [u8; 4] = [0, 1, 0, 0];
/// The same with the high byte first.
#[cfg(feature = "cdr")]
const CDR_BE: [u8; 4] = [0, 0, 0, 0];

#[cfg(any(feature = "json", feature = "postcard", feature = "cdr"))]
impl Body<'_> {
    /// What the body says, by its encoding.
    ///
    /// # Errors
    /// It cannot be read as a `T`, or its encoding is not read here.
    pub fn read_as<T: serde::de::DeserializeOwned>(&self) -> Result<T, BodyProblem> {
        match self.encoding {
            #[cfg(feature = "json")]
            Encoding::Json => serde_json::from_slice(self.bytes)
                .map_err(|error| BodyProblem::Value("JSON", error.to_string())),
            #[cfg(feature = "postcard")]
            Encoding::Postcard => match postcard::take_from_bytes(self.bytes) {
                Ok((value, [])) => Ok(value),
                Ok((_, left)) => {
                    Err(BodyProblem::Value("postcard", format!("{} bytes follow the value", left.len())))
                }
                Err(error) => Err(BodyProblem::Value("postcard", error.to_string())),
            },
            #[cfg(feature = "cdr")]
            Encoding::Cdr => read_cdr(self.bytes),
            other => Err(BodyProblem::Encoding(other.to_string())),
        }
    }
}

#[cfg(feature = "cdr")]
fn read_cdr<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, BodyProblem> {
    let wrong = |error: String| BodyProblem::Value("CDR", error);
    let (kind, rest) = bytes
        .split_first_chunk::<4>()
        .ok_or_else(|| wrong("it has not the four bytes of its encapsulation".into()))?;
    // The last two bytes are options, which say how much padding there is.
    match [kind[0], kind[1]] {
        [0, 1] => cdr_encoding::from_bytes::<T, byteorder::LittleEndian>(rest),
        [0, 0] => cdr_encoding::from_bytes::<T, byteorder::BigEndian>(rest),
        _ => {
            return Err(wrong(format!(
                "its encapsulation {kind:02x?} is neither {CDR_LE:02x?} nor {CDR_BE:02x?}"
            )));
        }
    }
    .map(|(value, _)| value)
    .map_err(|error| wrong(error.to_string()))
}

/// The bytes of a body that says this. Allocates.
///
/// # Errors
/// It cannot be said in the encoding, or that is not written here.
#[cfg(any(feature = "json", feature = "postcard", feature = "cdr"))]
pub fn encode_body<T: serde::Serialize>(encoding: Encoding<'_>, value: &T) -> Result<Vec<u8>, BodyProblem> {
    match encoding {
        #[cfg(feature = "json")]
        Encoding::Json => {
            serde_json::to_vec(value).map_err(|error| BodyProblem::Value("JSON", error.to_string()))
        }
        #[cfg(feature = "postcard")]
        Encoding::Postcard => {
            postcard::to_stdvec(value).map_err(|error| BodyProblem::Value("postcard", error.to_string()))
        }
        #[cfg(feature = "cdr")]
        Encoding::Cdr => {
            let mut bytes = CDR_LE.to_vec();
            let encoded = cdr_encoding::to_vec::<T, byteorder::LittleEndian>(value);
            bytes.extend(encoded.map_err(|error| BodyProblem::Value("CDR", error.to_string()))?);
            Ok(bytes)
        }
        other => Err(BodyProblem::Encoding(other.to_string())),
    }
}

/// The same into memory that is there, without allocating, as far as `value` does not. Returns how many bytes it has.
///
/// # Errors
/// As [`encode_body`]; or there is no room for it.
#[cfg(any(feature = "json", feature = "postcard", feature = "cdr"))]
pub fn encode_body_into<T: serde::Serialize>(
    encoding: Encoding<'_>,
    value: &T,
    out: &mut [u8],
) -> Result<usize, BodyProblem> {
    match encoding {
        #[cfg(feature = "json")]
        Encoding::Json => {
            let room = out.len();
            let mut left = out;
            serde_json::to_writer(&mut left, value)
                .map_err(|error| BodyProblem::Value("JSON", error.to_string()))?;
            Ok(room - left.len())
        }
        #[cfg(feature = "postcard")]
        Encoding::Postcard => match postcard::to_slice(value, out) {
            Ok(written) => Ok(written.len()),
            Err(error) => Err(BodyProblem::Value("postcard", error.to_string())),
        },
        #[cfg(feature = "cdr")]
        Encoding::Cdr => {
            let wrong = |error: String| BodyProblem::Value("CDR", error);
            let room = out.len();
            let (kind, mut left) =
                out.split_first_chunk_mut::<4>().ok_or_else(|| wrong("there is no room for it".into()))?;
            *kind = CDR_LE;
            cdr_encoding::to_writer::<T, byteorder::LittleEndian, _>(&mut left, value)
                .map_err(|error| wrong(error.to_string()))?;
            Ok(room - left.len())
        }
        other => Err(BodyProblem::Encoding(other.to_string())),
    }
}
