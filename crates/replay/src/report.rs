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
    /// By publication of the system, in its order: what jobs pushed into channels.
    #[serde(default)]
    pub publications: Vec<OutputReport>,
    /// Jobs that are not replayed, by operation: of work that was posted, deliveries to consumers of the program among it.
    #[serde(default)]
    pub posted: Vec<PostedReport>,
    /// The first difference, in the order in which the jobs ended.
    pub first: Option<Difference>,
    /// Records that the trace has lost.
    pub lost_records: u64,
    /// What is wrong with the trace, in sentences. Where records were altered, no difference proves anything.
    pub damage: Vec<String>,
}

impl ReplayReport {
    fn rows(&self) -> impl Iterator<Item = &OutputReport> {
        self.outputs.iter().chain(&self.publications)
    }

    /// How many values and events were compared.
    pub fn compared(&self) -> u64 {
        self.rows().map(|row| row.compared).sum()
    }

    /// Values and events that differ, which proves nothing, see [`OutputReport::unknown`].
    pub fn unknown(&self) -> u64 {
        self.rows().map(|row| row.unknown).sum()
    }

    /// No difference proves anything.
    pub(crate) fn distrust(&mut self) {
        self.first = None;
        for row in self.outputs.iter_mut().chain(&mut self.publications) {
            row.unknown += row.differing;
            row.compared -= std::mem::take(&mut row.differing);
            row.first = None;
        }
    }

    /// How many of them differ.
    pub fn differing(&self) -> u64 {
        self.rows().map(|row| row.differing).sum()
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compared {
    /// What a job published on this output.
    Output(usize),
    /// What it pushed as this publication, by its place among these pushes.
    Push { publication: usize, push: usize },
}

impl ReplayReport {
    /// Something of a job was compared, and differs so, if at all; which proves nothing if the job is not on its track.
    pub(crate) fn count(
        &mut self,
        compared: Compared,
        (instance, at_ns): (u64, i64),
        is_on_track: bool,
        what: Option<What>,
    ) {
        let (row, push) = match compared {
            Compared::Output(output) => (&mut self.outputs[output], None),
            Compared::Push { publication, push } => (&mut self.publications[publication], Some(push)),
        };
        if what.is_some() && !is_on_track {
            row.unknown += 1;
            return;
        }
        row.compared += 1;
        let Some(what) = what else { return };
        row.differing += 1;
        let difference = Difference { output: row.output.clone(), push, instance, at_ns, what };
        row.first.get_or_insert_with(|| difference.clone());
        self.first.get_or_insert(difference);
    }
}

/// Jobs of posted work that a trace has, and that are not replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostedReport {
    /// The operation.
    pub operation: String,
    /// Jobs that completed.
    pub jobs: u64,
}

/// What a replay found of an output, or of what is pushed as a publication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReport {
    /// Its name.
    pub output: String,
    /// Whether its values, or events, were recorded, so that they can be compared.
    pub is_kept: bool,
    /// Whether its operation has to do with something outside, or takes events that are not in the trace.
    pub is_outside: bool,
    /// Jobs of which it is known what they published, and which were called; of a publication, the events that these pushed, then or now.
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

/// A value, or an event that was pushed, that differs from what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The output, or publication.
    pub output: String,
    /// Of a publication, which of the pushes of the job as it, from 0.
    #[serde(default)]
    pub push: Option<usize>,
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
    /// Bytes of the header of an event, with all that its operation set there, from this one on.
    Header {
        /// The first that differs.
        at: usize,
        /// Up to 16 of those that were recorded, from there on.
        recorded: Vec<u8>,
        /// Up to 16 of those that are there now, from there on.
        now: Vec<u8>,
    },
    /// The event is the same, and was pushed at another turn among all that the job pushed, from 0.
    Turn {
        /// Which it was.
        recorded: u16,
        /// Which it is now.
        now: u16,
    },
    /// The value is longer now than what is recorded.
    TooLongNow {
        /// How many bytes were recorded.
        recorded_length: usize,
        /// How many are recorded at most.
        most: usize,
    },
    /// The job published, or pushed, nothing now.
    NothingNow,
    /// The job had published, or pushed, nothing.
    NothingThen,
    /// The job panicked now, with this.
    Panicked {
        /// The text of the panic.
        message: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { output, push, instance, at_ns, what } = self;
        let at = talea_time::Duration::from_nanos(*at_ns);
        let (thing, published) =
            if push.is_some() { ("an event", "pushed") } else { ("a value", "published") };
        write!(f, "{output} of job {instance}")?;
        if let Some(push) = push {
            write!(f, ", event {push}")?;
        }
        write!(f, ", {at} after the start: ")?;
        let hex = |bytes: &[u8]| match bytes {
            [] => "nothing".to_owned(),
            bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
        };
        match what {
            What::Header { at, recorded, now } => {
                write!(
                    f,
                    "its header differs from byte {at} on, recorded {}, now {}",
                    hex(recorded),
                    hex(now)
                )
            }
            What::Turn { recorded, now } => {
                write!(f, "it was push {recorded} of the job, from 0, and is push {now} now")
            }
            What::TooLongNow { recorded_length, most } => {
                write!(f, "{recorded_length} bytes were recorded, and there are more than {most} now")
            }
            What::NothingNow => write!(f, "{thing} was recorded, and none is {published} now"),
            What::NothingThen => write!(f, "{thing} is {published} now, and none was recorded"),
            What::Panicked { message } => {
                write!(f, "{thing} was recorded, and the job panics now: {message}")
            }
            What::Bytes { at, recorded, now, recorded_length, length } => {
                if recorded_length != length {
                    write!(f, "{recorded_length} bytes were recorded and there are {length} now; ")?;
                }
                write!(f, "from byte {at} on, recorded {}, now {}", hex(recorded), hex(now))
            }
        }
    }
}
