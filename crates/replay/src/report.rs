//! What a replay found.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// What the trace has otherwise than the description, and does not keep jobs from being called again: when they are released and due, for one.
    #[serde(default)]
    pub differences: Vec<talea_record::difference::Difference>,
    /// Jobs whose code was called again.
    pub called: u64,
    /// Jobs that have to do with something outside, or have taken events that are not in the trace: they were not called.
    pub outside: u64,
    /// By output of the system, in its order; those of operations outside are not compared.
    pub outputs: Vec<OutputReport>,
    /// The first difference, in the order in which the jobs ended.
    pub first: Option<Difference>,
    /// Records that the trace has lost.
    pub lost_records: u64,
    /// What is wrong with the trace, in sentences. Where records were altered, no difference proves anything.
    pub damage: Vec<String>,
}

impl ReplayReport {
    /// How many values were compared.
    pub fn compared(&self) -> u64 {
        self.outputs.iter().map(|output| output.compared).sum()
    }

    /// Values that differ, which proves nothing, see [`OutputReport::unknown`]; of all outputs.
    pub fn unknown(&self) -> u64 {
        self.outputs.iter().map(|output| output.unknown).sum()
    }

    /// No difference proves anything.
    pub(crate) fn distrust(&mut self) {
        self.first = None;
        for row in &mut self.outputs {
            row.unknown += row.differing;
            row.compared -= std::mem::take(&mut row.differing);
            row.first = None;
        }
    }

    /// How many of them differ.
    pub fn differing(&self) -> u64 {
        self.outputs.iter().map(|output| output.differing).sum()
    }
}

/// What a replay found of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReport {
    /// Its name.
    pub output: String,
    /// Whether its values were recorded, so that they can be compared.
    pub is_kept: bool,
    /// Whether its operation has to do with something outside, or takes events that are not in the trace.
    pub is_outside: bool,
    /// Jobs of which it is known what they published, and which were called.
    pub compared: u64,
    /// Those of them that published something else, or where one published and the other did not.
    pub differing: u64,
    /// Those that publish something else, which proves nothing: the operation had, then or before, taken values that were not recorded, or records of
    /// its jobs are lost, or the trace is damaged.
    pub unknown: u64,
    /// Values that were published and not recorded: there was no room, they were too long, or their bytes could not be made.
    pub unrecorded: u64,
    /// The first that differs.
    pub first: Option<Difference>,
}

/// A value that differs from what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The output.
    pub output: String,
    /// Number of the task's instance.
    pub instance: u64,
    /// From the start of the run to the end of the job, in nanoseconds.
    pub at_ns: i64,
    /// What differs.
    pub what: What,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum What {
    /// Bytes, from this one on.
    Bytes {
        /// The first that differs.
        at: usize,
        /// Up to 16 of those that were recorded, from there on.
        recorded: Vec<u8>,
        /// Up to 16 of those that are there now, from there on.
        now: Vec<u8>,
        /// How many were recorded in all.
        recorded_length: usize,
        /// How many there are now.
        length: usize,
    },
    /// The value is longer now than what is recorded.
    TooLongNow {
        /// How many bytes were recorded.
        recorded_length: usize,
        /// How many are recorded at most.
        most: usize,
    },
    /// The job published nothing now.
    NothingNow,
    /// The job had published nothing.
    NothingThen,
    /// The job panicked now, with this.
    Panicked {
        /// The text of the panic.
        message: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { output, instance, at_ns, what } = self;
        let at = talea_time::Duration::from_nanos(*at_ns);
        write!(f, "{output} of job {instance}, {at} after the start: ")?;
        match what {
            What::TooLongNow { recorded_length, most } => {
                write!(f, "{recorded_length} bytes were recorded, and there are more than {most} now")
            }
            What::NothingNow => f.write_str("a value was recorded, and none is published now"),
            What::NothingThen => f.write_str("a value is published now, and none was recorded"),
            What::Panicked { message } => {
                write!(f, "a value was recorded, and the job panics now: {message}")
            }
            What::Bytes { at, recorded, now, recorded_length, length } => {
                if recorded_length != length {
                    write!(f, "{recorded_length} bytes were recorded and there are {length} now; ")?;
                }
                let hex = |bytes: &[u8]| match bytes {
                    [] => "nothing".to_owned(),
                    bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
                };
                write!(f, "from byte {at} on, recorded {}, now {}", hex(recorded), hex(now))
            }
        }
    }
}
