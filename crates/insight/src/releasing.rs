//! What released a job, as far as records tell: which value, or which message from another node.

use talea_record::{CountedValues, Metadata};

/// Values of an output, and messages for an operation, that are remembered.
const KEPT: usize = 1024;

/// The latest values of an output that may have released jobs.
#[derive(Debug)]
pub(crate) struct Publications {
    /// How many there were.
    count: u64,
    /// Instance of the job that published, and when.
    latest: Box<[(u64, i64)]>,
}

impl Publications {
    pub fn new() -> Self {
        Publications { count: 0, latest: vec![(u64::MAX, i64::MIN); KEPT].into() }
    }

    pub fn note(&mut self, instance: u64, time_ns: i64) {
        self.latest[self.count as usize % KEPT] = (instance, time_ns);
        self.count += 1;
    }

    /// The instance of the job whose value released the instance `number`, which arrived at `nominal_ns`.
    pub fn releasing(&self, number: u64, nominal_ns: i64, rule: ReleaseRule) -> Option<u64> {
        let kept = self.count.min(KEPT as u64);
        let nth = |place: u64| self.latest[place as usize % KEPT];
        match rule {
            ReleaseRule::Numbered { every } => {
                let place = u64::from(every).checked_mul(number.checked_add(1)?)? - 1;
                let is_kept = place < self.count && self.count - place <= kept;
                is_kept.then(|| nth(place).0)
            }
            ReleaseRule::Dated => {
                let mut newest_first = (1..=kept).map(|back| nth(self.count - back));
                newest_first.find(|(_, time_ns)| *time_ns <= nominal_ns).map(|(from, _)| from)
            }
            ReleaseRule::ByMessage => None,
        }
    }
}

/// How it is known which value released a job, where no message has told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReleaseRule {
    /// It arrived when the value was published: the newest one then.
    Dated,
    /// The value went over a link: each so-many-th value released one.
    Numbered { every: u32 },
    /// It went over a link, and only values that were changes released one: nothing else tells.
    ByMessage,
}

impl ReleaseRule {
    pub fn of(metadata: &Metadata, (from, to): (usize, usize), every: u32, on: CountedValues) -> Self {
        match (on, are_apart(metadata, from, to)) {
            (_, false) => ReleaseRule::Dated,
            (CountedValues::All, true) => ReleaseRule::Numbered { every },
            (CountedValues::Changes, true) => ReleaseRule::ByMessage,
        }
    }
}

/// Whether the operations are on different nodes, so that one hears of the other by messages.
pub(crate) fn are_apart(metadata: &Metadata, from: usize, to: usize) -> bool {
    let node = |operation: usize| metadata.lanes[metadata.operations[operation].lane].node;
    node(from) != node(to)
}

/// The latest messages by which jobs of one operation heard of jobs of another.
#[derive(Debug)]
pub(crate) struct Messages {
    /// By the instance that heard, modulo their number: that instance, and which one it heard of.
    latest: Box<[(u64, u64)]>,
}

impl Messages {
    pub fn new() -> Self {
        Messages { latest: vec![(u64::MAX, u64::MAX); KEPT].into() }
    }

    pub fn note(&mut self, instance: u64, of: u64) {
        self.latest[instance as usize % KEPT] = (instance, of);
    }

    /// Which instance this one has heard of.
    pub fn heard(&self, instance: u64) -> Option<u64> {
        let kept = self.latest[instance as usize % KEPT];
        (kept.0 == instance).then_some(kept.1)
    }
}
