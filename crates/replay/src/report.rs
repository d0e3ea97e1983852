//! What a replay found.

use serde::{Deserialize, Serialize};
use std::fmt;
use talea_record::CallOutcome;

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
    /// By publication of the system, in its order: what jobs pushed into channels. Behind these, what they pushed into channels of the program, by the operation
    /// that pushes, the channel and the type, as `alarm>motion Robot/Step`, in the order in which these were found.
    #[serde(default)]
    pub publications: Vec<OutputReport>,
    /// What jobs posted, by the operation that posts and the one that is posted, as `control>alarm`, in the order in which these were found; and by its
    /// name alone an operation whose jobs cannot be called again as they were.
    #[serde(default)]
    pub posts: Vec<OutputReport>,
    /// What the code of consumers of a program's own channels said of what it was handed, call by call, by the operation of their jobs.
    #[serde(default)]
    pub outcomes: Vec<OutputReport>,
    /// Jobs of work that was posted which are not called again, by operation and reason.
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
        self.outputs.iter().chain(&self.publications).chain(&self.posts).chain(&self.outcomes)
    }

    /// How many values, events, posted jobs and answers of consumers were compared.
    pub fn compared(&self) -> u64 {
        self.rows().map(|row| row.compared).sum()
    }

    /// Those that differ, which proves nothing, see [`OutputReport::unknown`].
    pub fn unknown(&self) -> u64 {
        self.rows().map(|row| row.unknown).sum()
    }

    /// No difference proves anything.
    pub(crate) fn distrust(&mut self) {
        self.first = None;
        let rows = self.outputs.iter_mut().chain(&mut self.publications);
        for row in rows.chain(&mut self.posts).chain(&mut self.outcomes) {
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
    /// A job that it posted, by its place among these, or how it ended, in this row of posts.
    Post { row: usize, post: Option<usize> },
    /// What the code of a consumer said in one of the calls of the job, in this row of outcomes.
    Outcome { row: usize, call: usize },
}

impl ReplayReport {
    /// The row of posts of this name.
    pub(crate) fn row_of_posts(&mut self, name: &str) -> usize {
        let known = self.posts.iter().position(|row| row.output == name);
        known.unwrap_or_else(|| {
            self.posts.push(OutputReport::new(name, true, false));
            self.posts.len() - 1
        })
    }

    /// The row of what the code of a consumer says in jobs of this operation.
    pub(crate) fn row_of_outcomes(&mut self, name: &str) -> usize {
        let known = self.outcomes.iter().position(|row| row.output == name);
        known.unwrap_or_else(|| {
            self.outcomes.push(OutputReport::new(name, false, false));
            self.outcomes.len() - 1
        })
    }

    /// The row of what is pushed into a channel of the program by this name, whose events are recorded or not.
    pub(crate) fn row_of_pushes(&mut self, name: &str, is_kept: bool) -> usize {
        let known = self.publications.iter().position(|row| row.output == name);
        known.unwrap_or_else(|| {
            self.publications.push(OutputReport::new(name, is_kept, false));
            self.publications.len() - 1
        })
    }

    /// Something of a job was compared, and differs so, if at all; which proves nothing if the job is not on its track.
    pub(crate) fn count(
        &mut self,
        compared: Compared,
        (instance, at_ns): (u64, i64),
        is_on_track: bool,
        what: Option<What>,
    ) {
        let (row, push, post, call) = match compared {
            Compared::Output(output) => (&mut self.outputs[output], None, None, None),
            Compared::Push { publication, push } => {
                (&mut self.publications[publication], Some(push), None, None)
            }
            Compared::Post { row, post } => (&mut self.posts[row], None, post, None),
            Compared::Outcome { row, call } => (&mut self.outcomes[row], None, None, Some(call)),
        };
        if what.is_some() && !is_on_track {
            row.unknown += 1;
            return;
        }
        row.compared += 1;
        let Some(what) = what else { return };
        row.differing += 1;
        let difference = Difference { output: row.output.clone(), push, post, call, instance, at_ns, what };
        row.first.get_or_insert_with(|| difference.clone());
        self.first.get_or_insert(difference);
    }
}

/// Jobs of posted work that a trace has, and that are not called again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostedReport {
    /// The operation.
    pub operation: String,
    /// Jobs that completed.
    pub jobs: u64,
    /// Why.
    #[serde(default)]
    pub why: NotCalled,
}

/// Why jobs of posted work are not called again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotCalled {
    /// The trace does not record with what handle jobs are posted.
    #[default]
    NotRecorded,
    /// The record of that is lost.
    Lost,
    /// A channel posted them, to hand on events that are not in the trace, or to ask a supplier for some.
    OfChannel,
    /// The program cannot read the events that a channel handed on: of some it does not say how they become bytes, or says something else than then.
    Unreadable,
    /// The operation is not declared. Where operations can be declared, that is a difference, too.
    NotDeclared,
    /// Its declaration says that it has to do with something [outside](talea_operation::Declaration::outside).
    Outside,
}

impl NotCalled {
    /// In words, to follow *not called again:*.
    pub fn words(self) -> &'static str {
        match self {
            NotCalled::NotRecorded => "the trace does not record what is posted",
            NotCalled::Lost => "what they were posted with, or handed, is not in the trace",
            NotCalled::OfChannel => {
                "a channel of the program posted them, and the trace has no events of theirs"
            }
            NotCalled::Unreadable => "the program cannot read the events that they were handed",
            NotCalled::NotDeclared => "the operation is not declared",
            NotCalled::Outside => "the operation has to do with something outside",
        }
    }
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

impl OutputReport {
    /// Nothing has been compared.
    pub(crate) fn new(name: &str, is_kept: bool, is_outside: bool) -> Self {
        let (compared, differing, unknown, unrecorded, first) = (0, 0, 0, 0, None);
        let output = name.to_owned();
        OutputReport { output, is_kept, is_outside, compared, differing, unknown, unrecorded, first }
    }
}

/// A value, an event that was pushed, a job that was posted, or what a consumer said of a delivery, that differs from what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The output, publication, or row of posts or outcomes.
    pub output: String,
    /// Of a publication, which of the pushes of the job as it, from 0.
    #[serde(default)]
    pub push: Option<usize>,
    /// Of posts, which of those of the job it is, from 0.
    #[serde(default)]
    pub post: Option<usize>,
    /// Of outcomes, which of the calls of the job it is, from 0.
    #[serde(default)]
    pub call: Option<usize>,
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
    /// The job published, pushed or posted nothing now.
    NothingNow,
    /// The job had published, pushed or posted nothing.
    NothingThen,
    /// The job posts a job of another operation.
    OtherOperation {
        /// The one that was recorded.
        recorded: String,
        /// The one of now.
        now: String,
    },
    /// The job posts with another handle.
    Handle {
        /// The one that was recorded.
        recorded: u64,
        /// The one of now.
        now: u64,
    },
    /// The job that is posted is due at another instant.
    Due {
        /// From the start of the run to when it was due, in nanoseconds.
        recorded_ns: i64,
        /// The same of now.
        now_ns: i64,
    },
    /// The job that is posted executes at most for another time.
    Wcet {
        /// The one of then, in nanoseconds at full speed.
        recorded_ns: i64,
        /// The one of now.
        now_ns: i64,
    },
    /// The code of a consumer says something else of what it is handed in a call.
    Outcome {
        /// As what the first of the events was pushed that it is handed, and by which job, if that is recorded.
        event: Option<String>,
        /// How many others it is handed with that.
        others: usize,
        /// What it said.
        recorded: CallOutcome,
        /// What it says now.
        now: CallOutcome,
    },
    /// The operation was declared when this was recorded, and is not now.
    NotDeclared {
        /// What is declared now.
        declared: Vec<String>,
    },
    /// The job, which completed then and is of posted work, panicked now, with this.
    CompletedThen {
        /// The text of the panic.
        message: String,
    },
    /// The job panicked now, with this.
    Panicked {
        /// The text of the panic.
        message: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { output, push, post, call, instance, at_ns, what } = self;
        let at = talea_time::Duration::from_nanos(*at_ns);
        let (thing, published) = match (push, post, call) {
            (Some(_), ..) => ("an event", "pushed"),
            (None, Some(_), _) => ("a post", "made"),
            (None, None, Some(_)) => ("an answer of the consumer", "given"),
            (None, None, None) => ("a value", "published"),
        };
        write!(f, "{output} of job {instance}")?;
        if let Some(push) = push {
            write!(f, ", event {push}")?;
        }
        if let Some(post) = post {
            write!(f, ", post {post}")?;
        }
        if let Some(call) = call {
            write!(f, ", call {call}")?;
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
            What::OtherOperation { recorded, now } => {
                write!(f, "a job of {recorded} was posted, and one of {now} is posted now")
            }
            What::Handle { recorded, now } => {
                write!(f, "it was posted with the handle {recorded}, and is posted with {now} now")
            }
            What::Due { recorded_ns, now_ns } => {
                let [recorded, now] = [recorded_ns, now_ns].map(|at| talea_time::Duration::from_nanos(*at));
                write!(
                    f,
                    "it was posted to be due {recorded} after the start, and is to be due {now} after it now"
                )
            }
            What::Wcet { recorded_ns, now_ns } => {
                let [recorded, now] =
                    [recorded_ns, now_ns].map(|time| talea_time::Duration::from_nanos(*time));
                write!(
                    f,
                    "it was posted to execute for up to {recorded}, and is to execute for up to {now} now"
                )
            }
            What::Outcome { event, others, recorded, now } => {
                let [recorded, now] = [recorded, now].map(|said| said.name());
                write!(f, "handed {}", event.as_deref().unwrap_or("an event"))?;
                match others {
                    0 => {}
                    1 => write!(f, " and another event")?,
                    others => write!(f, " and {others} others")?,
                }
                write!(f, ", the consumer answered {recorded}, and answers {now} now")
            }
            What::NotDeclared { declared } => {
                let declared = if declared.is_empty() { "nothing".to_owned() } else { declared.join(", ") };
                write!(f, "its operation was declared then, and is not now, where {declared} is declared")
            }
            What::CompletedThen { message } => write!(f, "it completed then, and panics now: {message}"),
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
