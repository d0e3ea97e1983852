//! Records as text: lines for people, and JSON for scripts.

use crate::decode::{Declared, Decoder, Row, Shown, lane_label, node_name, since, thread_text};
use crate::threads::Writers;
use serde::{Serialize, Serializer};
use talea_record::event::{Code, Coded, EdgeChange, Lost, Member, Take};
use talea_record::{
    CallOutcome, ChangeAuthor, DropReason, EdgeEntry, EventLossReason, JobId, LossCause, Metadata, NameSpace,
    PostOutcome, Question, Record, RunOutcome, Typed, ValueLoss,
};
use talea_time::{Duration, Instant};

/// Shows records by the declarations of a name space.
#[derive(Debug)]
pub struct Listing {
    decoder: Decoder,
    columns: Columns,
}

/// Widths of columns.
#[derive(Clone, Copy, Debug)]
struct Columns {
    node: usize,
    lane: usize,
}

impl Columns {
    /// Wider names stand out of their column, so that a single long one does not widen every line.
    const WIDEST: usize = 24;

    /// As wide as the names of these nodes and lanes.
    fn of(metadata: &Metadata) -> Self {
        let widest = |names: &mut dyn Iterator<Item = &String>| {
            names.map(|name| name.chars().count()).max().unwrap_or(1).min(Self::WIDEST)
        };
        Columns {
            node: widest(&mut metadata.nodes.iter().map(|node| &node.name)),
            lane: widest(&mut metadata.lanes.iter().map(|lane| &lane.label)),
        }
    }
}

impl Listing {
    /// A listing of a run's records.
    pub fn new(metadata: &Metadata, names: &NameSpace) -> Self {
        Listing { decoder: Decoder::new(metadata, names), columns: Columns::of(metadata) }
    }

    /// The same, which knows these threads.
    #[must_use]
    pub fn knowing(mut self, writers: Writers) -> Self {
        self.decoder = self.decoder.knowing(writers);
        self
    }

    /// The threads that are known.
    pub fn into_writers(self) -> Writers {
        self.decoder.into_writers()
    }

    /// Learns from a record that is not shown, but comes before those that are.
    pub fn learn(&self, record: &Record) {
        self.decoder.learn(record);
    }

    /// One line for people without its end: as [`format_record`], and `name=value` for the typed fields of events
    /// that it has no words for, and for process and thread of events of programs. Records are to be given in their order.
    pub fn line(&self, record: &Record) -> String {
        self.decoder.learn(record);
        let long = self.decoder.long(record);
        let declared = self.decoder.event(record.event).map(|declared| (declared, long.as_deref()));
        let mut line = format(self.decoder.metadata(), record, declared, self.columns);
        if let (Some(pid), Some(tid)) = self.decoder.writer(record) {
            line.push_str(&format!("  pid={pid} tid={tid}"));
        }
        line
    }

    /// One line of JSON without its end: `time_ns`, `event`, `family`, `node`, `cpu`, `lane`, `task`, `subtask`,
    /// `job`, `release_ns`, `deadline_ns`, `pid` and `tid` as the columns of the [CSV export](crate::csv), left out where
    /// the event does not have them, `causal` where it is not that job, and `fields`, an object of the typed fields.
    /// An event that no family declares has its raw words there.
    pub fn json(&self, record: &Record) -> String {
        let fields = Fields { decoder: &self.decoder, record };
        let causal = (record.causal != 0 && !record.event.is_about_job()).then_some(record.causal);
        let line = JsonLine { row: self.decoder.row(record), causal, fields };
        serde_json::to_string(&line).expect("texts and numbers")
    }
}

#[derive(Serialize)]
struct JsonLine<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causal: Option<u64>,
    fields: Fields<'a>,
}

struct Fields<'a> {
    decoder: &'a Decoder,
    record: &'a Record,
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.record;
        match self.decoder.event(record.event) {
            Some(declared) => {
                let long = self.decoder.long(record);
                serializer.collect_map(declared.values(self.decoder.metadata(), record, long.as_deref()))
            }
            None => serializer.collect_map(
                [
                    ("word0", record.words[0]),
                    ("word1", record.words[1]),
                    ("source", record.source.into()),
                    ("arg", record.arg.into()),
                ]
                .map(|(name, value)| (name, Shown::Unsigned(value))),
            ),
        }
    }
}

/// One line without its end: time since [`Metadata::start`] in seconds, node, processor, lane, event,
/// job, and what the event tells besides. Events of a program's own families come raw; see [`Listing`].
pub fn format_record(metadata: &Metadata, record: &Record) -> String {
    format(metadata, record, None, Columns::of(metadata))
}

/// The event's declaration, and the bytes of its long field.
type WithLong<'a> = (&'a Declared, Option<&'a [u8]>);

fn format(metadata: &Metadata, record: &Record, declared: Option<WithLong<'_>>, columns: Columns) -> String {
    let seconds = since(record.time, metadata.start) as f64 / 1e9;
    let event = match (record.event.name(), declared) {
        (Some(name), _) => name.to_owned(),
        (None, Some((declared, _))) => format!("{}:{}", declared.family, declared.name),
        (None, None) => format!("event {:#06x}", record.event.0),
    };
    let node = node_name(metadata, record).unwrap_or("-");
    let cpu = if record.cpu == Record::NO_CPU { "-".into() } else { format!("cpu{}", record.cpu) };
    let lane = lane_label(metadata, record).unwrap_or("-");
    let Columns { node: node_width, lane: lane_width } = columns;
    let mut line = format!("{seconds:>13.9}  {node:<node_width$} {cpu:<4} {lane:<lane_width$} {event:<8}");
    if record.event.is_about_job() {
        line.push_str(&format!(" {}", metadata.job_name(record.job())));
    }
    let detail = match (detail(metadata, record), declared) {
        (Some(detail), _) => detail,
        (None, Some(declared)) => fields(metadata, record, declared),
        (None, None) => raw(record),
    };
    if !detail.is_empty() {
        line.push_str("  ");
        line.push_str(&detail);
    }
    line
}

/// `name=value name=value`, without what the line has in columns of its own.
fn fields(metadata: &Metadata, record: &Record, (declared, long): WithLong<'_>) -> String {
    let pairs = declared.for_people(metadata, record, long);
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn raw(record: &Record) -> String {
    let [first, second] = record.words;
    let (causal, source, arg) = (record.causal, record.source, record.arg);
    match record.event.name() {
        Some(_) => String::new(),
        None => format!("causal {causal:#x}, words {first:#x} {second:#x}, source {source}, arg {arg}"),
    }
}

/// What an event tells besides, in words; `None` for events without words of their own.
fn detail(metadata: &Metadata, record: &Record) -> Option<String> {
    let length = |ns: i64| Duration::from_nanos(ns).rounded().to_string();
    let to_deadline = record.deadline().map(|deadline| since(deadline, record.time));
    let due = || to_deadline.map_or("no deadline".to_owned(), |left| format!("due in {}", length(left)));
    let after = |release: Instant| since(record.time, release);
    let detail = match record.typed() {
        Typed::RunStart(start) => {
            let planned = |end| format!("planned for {}", length(since(end, record.time)));
            start.planned_end.map(planned).unwrap_or_default()
        }
        Typed::RunEnd(end) if end.how == RunOutcome::CutOff => "cut off: its process was gone".into(),
        Typed::RunEnd(_) | Typed::Resume(_) | Typed::Unblock(_) => String::new(),
        Typed::Lost(lost) => losses(lost),
        Typed::Release(release) if after(release.nominal) > 0 => {
            format!("{}, released {} late", due(), length(after(release.nominal)))
        }
        Typed::Release(_) | Typed::Held(_) => due(),
        Typed::Start(start) => {
            let by = metadata.posted_by(&start).map(|job| format!(", posted by {}", metadata.job_name(job)));
            format!("{} in the lane{}", start.depth, by.unwrap_or_default())
        }
        Typed::Preempt(preempt) => {
            preempt.by.map(|by| format!("by {}", metadata.job_name(by))).unwrap_or_default()
        }
        Typed::Block(block) => {
            let by = block.by.map_or_else(|| "another delivery".into(), |by| metadata.job_name(by));
            format!("by {by}, to the same consumer")
        }
        Typed::Wait(wait) => {
            let most = length(since(wait.until, record.time));
            format!("for room in {}, up to {most}", input_name(metadata, wait.input))
        }
        Typed::Complete(complete) => {
            let is_last = |operation: &talea_record::OperationEntry| operation.is_last;
            let ends = metadata.operations.get(complete.job.operation.index()).is_some_and(is_last);
            let verdict = match to_deadline.filter(|_| ends) {
                Some(left) if left < 0 => format!(", MISSED by {}", length(left.saturating_neg())),
                Some(left) => format!(", met, {} left", length(left)),
                None => String::new(),
            };
            format!("after {}{verdict}", length(after(complete.nominal)))
        }
        Typed::Skip(skip) => match skip.reason.known() {
            Some(reason) => reason.in_words().into(),
            None => format!("reason {}", skip.reason.number()),
        },
        Typed::Abort(abort) if abort.running.0 => {
            format!("while running, after {}", length(after(abort.nominal)))
        }
        Typed::Abort(abort) => format!("while waiting, after {}", length(after(abort.nominal))),
        Typed::Publish(publish) => output_name(metadata, publish.output),
        Typed::Take(take) => {
            let name = own_name(metadata, take);
            let values = match take.values {
                0 => format!("no {name}"),
                1 => name,
                many => format!("{many} of {name}"),
            };
            let from = take.from.map(|from| format!(", from {}", metadata.job_name(from)));
            values + &from.unwrap_or_default()
        }
        Typed::Value(value) => {
            let shown = &value.head[..value.head.len().min(value.bytes as usize)];
            let more = if shown.len() < value.bytes as usize { " …" } else { "" };
            let name = kept_name(metadata, (value.job, value.output));
            format!("{name}, {} bytes: {}{more}", value.bytes, hex(shown))
        }
        Typed::ValuePart(part) => {
            let bytes: Vec<String> =
                [part.first, part.second, part.third].iter().map(|word| hex(word)).collect();
            format!("… {}", bytes.join(" "))
        }
        Typed::ValueLost(lost) => {
            let why = loss_reason(lost.cause);
            format!("{}: {why}", kept_name(metadata, (lost.job, lost.output)))
        }
        Typed::Answer(answer) => match answer.what.known() {
            Some(Question::Time) => {
                format!("it is {}", length(since(Instant::from_nanos(answer.answer as i64), metadata.start)))
            }
            Some(Question::Stop) => "it is to stop".into(),
            Some(Question::Release) => {
                let at = since(Instant::from_nanos(answer.answer as i64), metadata.start);
                format!("released at {}", length(at))
            }
            Some(Question::Visible) => {
                let at = since(Instant::from_nanos(answer.answer as i64), metadata.start);
                format!("{} visible from {}", input_name(metadata, answer.question as u32), length(at))
            }
            Some(Question::Outcome) => {
                let said = CallOutcome::CODES.label(answer.answer);
                let said = said.map_or_else(|| answer.answer.to_string(), str::to_owned);
                format!("call {} answers {said}", answer.question)
            }
            Some(Question::RefusedWcet) => {
                let wcet = length(answer.answer as i64);
                let wanted = usize::try_from(answer.question).ok();
                let wanted = wanted.and_then(|wanted| metadata.operations.get(wanted));
                let wanted = wanted.map_or_else(|| answer.question.to_string(), |one| one.name.clone());
                format!("was refused a job of {wanted} that executes for up to {wcet}")
            }
            None => format!("question {}", answer.what.number()),
        },
        Typed::Post(post) => {
            let by = post.by.0.map_or("the program".to_owned(), |by| metadata.job_name(by));
            let came = match post.outcome.known() {
                Some(PostOutcome::Posted) => "posted".to_owned(),
                Some(PostOutcome::Full) => "refused for want of room, wanted".to_owned(),
                Some(PostOutcome::NotRunning) => "refused since the run is over, wanted".to_owned(),
                None => format!("outcome {}, wanted", post.outcome.number()),
            };
            format!("{came} by {by} with handle {}", post.handle)
        }
        Typed::Drop(drop) => {
            let input = input_name(metadata, drop.input);
            match drop.why.known() {
                Some(DropReason::Link) => format!("lost by the link on its way to {input}"),
                Some(DropReason::NoRoom) | None => format!("never taken by {input}"),
            }
        }
        Typed::Push(push) => publication_name(metadata, push.publication),
        Typed::Deliver(deliver) => {
            let publication = deliver.publication.and_then(|of| metadata.publications.get(of as usize));
            let event_type = publication.map_or("an event", |publication| publication.event_type.as_str());
            let from = deliver.from.map(|from| format!(", from {}", metadata.job_name(from)));
            format!("{event_type}{}", from.unwrap_or_default())
        }
        Typed::PushKept(kept) => {
            let name = publication_name(metadata, kept.publication);
            let shown = &kept.head[..kept.head.len().min(kept.bytes as usize)];
            match kept.bytes {
                0 => format!("{name}: there was no room for it"),
                bytes => {
                    let more = if shown.len() < bytes as usize { " …" } else { "" };
                    format!("{name}, push {} of the job, {bytes} bytes: {}{more}", kept.number, hex(shown))
                }
            }
        }
        Typed::PushUnkept(lost) => {
            format!("{}: {}", publication_name(metadata, lost.publication), loss_reason(lost.cause))
        }
        Typed::EventsLost(lost) => {
            let operation = metadata.operations.get(lost.operation as usize);
            let operation = operation.map_or_else(|| lost.operation.to_string(), |known| known.name.clone());
            let why = match lost.why.known() {
                Some(EventLossReason::Discarded) => "as many waited as may".into(),
                Some(EventLossReason::Expired) => "not worth being delivered any more".into(),
                None => format!("reason {}", lost.why.number()),
            };
            let events = if lost.events == 1 { "event" } else { "events" };
            format!("{} {events} for {operation}: {why}", lost.events)
        }
        Typed::EdgeChange(change) => changed(metadata, change),
        Typed::Member(member) => joined(metadata, record.time, member),
        _ => return None,
    };
    Some(detail)
}

/// What became of an edge, and who did it and what for where that was recorded.
fn changed(metadata: &Metadata, change: EdgeChange) -> String {
    let EdgeChange { edge, what, by, why, process, user, forced } = change;
    let mut text = format!("edge={} what={}", edge_name(metadata, edge.into()), word(what));
    if by != ChangeAuthor::Unknown {
        text.push_str(&format!(" by={} why={}", word(by), word(why)));
    }
    if by == ChangeAuthor::Operator {
        text.push_str(&format!(" process={process} user={user}"));
    }
    if forced.0 {
        text.push_str(" forced");
    }
    text
}

/// A thread and what it is to a hierarchy, and who has started it where that was seen.
fn joined(metadata: &Metadata, time: Instant, member: Member) -> String {
    let Member { tid, started_by, edge, role, .. } = member;
    let mut text = format!("tid={}", thread_text(metadata, tid.into(), time));
    if let Some(thread) = metadata.thread(tid, time) {
        text.push_str(&format!(" pid={}", thread.pid));
    }
    if let Some(edge) = edge {
        text.push_str(&format!(" edge={}", edge_name(metadata, edge)));
    }
    text.push_str(&format!(" role={}", word(role)));
    if started_by != 0 {
        text.push_str(&format!(" started_by={}", thread_text(metadata, started_by.into(), time)));
    }
    text
}

fn edge_name(metadata: &Metadata, edge: u32) -> String {
    metadata.edges.get(edge as usize).map_or_else(|| edge.to_string(), EdgeEntry::name)
}

/// The value's name, or its number where the list does not have it.
fn word<C: Coded>(code: Code<C>) -> String {
    let number = code.number();
    C::CODES.label(number.into()).map_or_else(|| number.to_string(), str::to_owned)
}

fn output_name(metadata: &Metadata, output: u32) -> String {
    metadata.outputs.get(output as usize).map_or_else(|| output.to_string(), |output| output.name.clone())
}

fn publication_name(metadata: &Metadata, publication: u32) -> String {
    match metadata.publications.get(publication as usize) {
        Some(publication) => format!("{} into {}", publication.event_type, publication.channel),
        None => format!("publication {publication}"),
    }
}

/// Why bytes are not kept.
fn loss_reason(cause: Code<ValueLoss>) -> String {
    match cause.known() {
        Some(ValueLoss::NoRoom) => "there was no room".into(),
        Some(ValueLoss::TooLong) => "it is too long".into(),
        Some(ValueLoss::Failed) => "making its bytes panicked".into(),
        None => format!("reason {}", cause.number()),
    }
}

/// What was to be kept of a job.
fn kept_name(metadata: &Metadata, (job, output): (JobId, Option<u32>)) -> String {
    let reads = || metadata.operations.get(job.operation.index()).is_some_and(|entry| entry.keeps_reads);
    match output {
        Some(output) => output_name(metadata, output),
        None if reads() => "read from outside".into(),
        None => "events taken".into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn input_name(metadata: &Metadata, input: u32) -> String {
    metadata.inputs.get(input as usize).map_or_else(|| input.to_string(), |input| input.name.clone())
}

/// The name of the input beside that of its operation.
fn own_name(metadata: &Metadata, take: Take) -> String {
    let name = input_name(metadata, take.input);
    let operation = metadata.operations.get(take.job.operation.index());
    let own = operation.and_then(|operation| name.strip_prefix(&operation.name)?.strip_prefix('.'));
    own.map_or_else(|| name.clone(), str::to_owned)
}

fn losses(Lost { records, ring, cause, .. }: Lost) -> String {
    if cause == LossCause::RecorderFull {
        return format!("{records} records of ring {ring}, for the recorder had no memory left");
    }
    match ring {
        Record::NO_RING => format!("{records} records of threads without a ring"),
        Record::KERNEL if records == 0 => "what the kernel told may be among them".into(),
        Record::KERNEL => format!("{records} records of the kernel"),
        Record::DAMAGED => format!("{records} damaged records"),
        ring => format!("{records} records of ring {ring}"),
    }
}
