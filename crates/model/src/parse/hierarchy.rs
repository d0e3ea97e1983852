//! The tables of schedulers and threads.

use super::execution::{Traces, execution};
use super::plan::{ReadPlan, Written, plan};
use super::section::{Findings, Given, Item, Section};
use super::tables::many;
use super::values::{Misfit, Reading, elements, found, one_of, scheduler_kind, text, time, wrong_type};
use crate::builder::{SchedulerBuilder, SystemBuilder, ThreadBuilder};
use crate::hierarchy::{Request, SchedulerKind, Setting, ThreadWork};
use crate::keys::{self, Key};
use crate::suggest::{known_words, nearest};
use crate::{Place, Plan};
use std::num::NonZeroU32;
use std::ops::Range;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::scheduler::Parameter;
use talea_time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most bytes of a guarantee; exact numbers of any length would take long to calculate with.
const GUARANTEE_BYTES_LIMIT: usize = 200;

/// Where each scheduler and each thread stands.
pub(super) struct Members<'t> {
    pub schedulers: Vec<Sections<'t>>,
    pub threads: Vec<Sections<'t>>,
}

/// A scheduler or thread, and the entries of its `under`.
pub(super) struct Sections<'t> {
    pub own: Section<'t>,
    under: Vec<Section<'t>>,
    plan: Written,
}

impl<'t> Sections<'t> {
    /// The section of an entry, or of the item if there is none.
    pub(super) fn edge(&self, edge: usize) -> &Section<'t> {
        self.under.get(edge).unwrap_or(&self.own)
    }

    /// Where an entry of its plan stands, and what to write ahead of a message about it.
    pub(super) fn plan_entry(&self, entry: usize) -> (Range<usize>, String) {
        let whole = self.own.span(Parameter::PLAN.name);
        match &self.plan {
            Written::Here(spans) => (spans.get(entry).cloned().unwrap_or(whole), String::new()),
            Written::File { name, lines } => {
                let line = lines.get(entry).map_or(String::new(), |line| format!(", line {line}"));
                (whole, format!("{name}{line}: "))
            }
        }
    }
}

impl<'t> Members<'t> {
    /// Reads all schedulers and threads into `builder`.
    pub(super) fn read(
        file: &Section<'t>,
        mut builder: SystemBuilder,
        findings: &mut Findings,
    ) -> (SystemBuilder, Self) {
        let mut schedulers = Vec::new();
        for (index, own) in many(file, "scheduler", Item::Scheduler, findings).into_iter().enumerate() {
            let under = many(&own, "under", |edge| Item::SchedulerUnder(index, edge), findings);
            let (scheduler, plan) = read_scheduler(&own, &under, findings);
            builder = builder.scheduler(scheduler);
            schedulers.push(Sections { own, under, plan });
        }
        let mut threads = Vec::new();
        for (index, own) in many(file, "thread", Item::Thread, findings).into_iter().enumerate() {
            let under = many(&own, "under", |edge| Item::ThreadUnder(index, edge), findings);
            builder = builder.thread(read_thread(&own, &under, findings));
            threads.push(Sections { own, under, plan: Written::default() });
        }
        (builder, Members { schedulers, threads })
    }
}

fn read_scheduler(
    own: &Section<'_>,
    under: &[Section<'_>],
    findings: &mut Findings,
) -> (SchedulerBuilder, Written) {
    let name = own.text("name", findings).unwrap_or_default();
    // What concerns a kind that cannot be read is not reported.
    let kind = own.other("kind", findings, scheduler_kind).unwrap_or(SchedulerKind::FIXED_PRIORITY);
    let mut scheduler = SchedulerBuilder::new(name, kind);
    if let Some(node) = own.text("node", findings) {
        scheduler = scheduler.on(node);
    }
    if let Some(quantum) = own.time("quantum", findings) {
        scheduler = scheduler.quantum(quantum);
    }
    if let Some(takes) = own.text("takes", findings) {
        scheduler = scheduler.takes(takes);
    }
    let mut written = Written::default();
    for key in own.declaration.parameters() {
        if let Some(setting) = read_setting(own, key, &mut written, findings) {
            scheduler = scheduler.set(key.name, setting);
        }
    }
    let scheduler = under.iter().fold(scheduler, |scheduler, section| {
        let (parent, request) = read_edge(section, findings);
        scheduler.under(parent, request)
    });
    (scheduler, written)
}

/// The value of a parameter, if one is given; where the entries stand if it is a plan.
fn read_setting(
    own: &Section<'_>,
    key: &Key,
    written: &mut Written,
    findings: &mut Findings,
) -> Option<Setting> {
    match key.kind {
        keys::Kind::Time => own.time(key.name, findings).map(Setting::Time),
        keys::Kind::Integer { .. } => {
            own.integer(key.name, findings).map(|number| Setting::Integer(number as i64))
        }
        keys::Kind::OneOf(_) => own.other(key.name, findings, one_of).map(Setting::Word),
        keys::Kind::Plan => read_plan(own, key, written, findings).map(Setting::Plan),
        _ => unreachable!("no parameter \"{}\" is of another type", key.name),
    }
}

/// A plan, as far as it can be read; every mistake in it is reported.
fn read_plan(own: &Section<'_>, key: &Key, written: &mut Written, findings: &mut Findings) -> Option<Plan> {
    let (key, Given::Value(value)) = own.given(key.name) else { return None };
    let ReadPlan { plan, misfits } = findings.with_traces(|_, files| plan(key, value, files));
    for (entry, Misfit { span, message, remedy }) in misfits {
        let of_entry = match (own.item, entry) {
            (Item::Scheduler(scheduler), Some(entry)) => Some(Place::PlanEntry(scheduler, entry)),
            _ => None,
        };
        for place in of_entry.into_iter().chain([own.item.place(key.name)]) {
            findings.unread.insert(place);
        }
        findings.error(span, message, remedy);
    }
    let (plan, places) = plan?;
    *written = places;
    Some(plan)
}

fn read_thread(own: &Section<'_>, under: &[Section<'_>], findings: &mut Findings) -> ThreadBuilder {
    let name = own.text("name", findings).unwrap_or_default();
    let mut thread = ThreadBuilder::new(name, read_work(own, findings));
    if let Some(requires) = own.other("requires", findings, guarantee) {
        thread = thread.requires(requires);
    }
    under.iter().fold(thread, |thread, section| {
        let (parent, request) = read_edge(section, findings);
        thread.under(parent, request)
    })
}

/// The parent's name and what is asked of it: one of priority, share and guarantee, or nothing.
fn read_edge(section: &Section<'_>, findings: &mut Findings) -> (String, Request) {
    let parent = section.text("scheduler", findings).unwrap_or_default();
    let priority = section.integer("priority", findings).map(|priority| Request::Priority(priority as i32));
    let warp = section.time("warp", findings);
    let share = section.integer("share", findings).and_then(|share| NonZeroU32::new(share as u32));
    let share = share.map(|weight| Request::Share { weight, warp: warp.unwrap_or_default() });
    let guarantee = section.other("guarantee", findings, guarantee).map(Request::Guarantee);
    let is_given = |name: &&str| matches!(section.given(name).1, Given::Value(_));
    let given: Vec<&str> = ["priority", "share", "guarantee"].into_iter().filter(is_given).collect();
    if let [first, second, ..] = given[..] {
        let message = format!("an entry of \"under\" asks for a {first} and also for a {second}");
        findings.unread.insert(section.item.place(first));
        findings.error(section.span(second), message, "keep the one that the scheduler takes");
    } else if is_given(&"warp") && !given.contains(&"share") {
        findings.error(
            section.span("warp"),
            "a warp without a share".into(),
            "add share = 1, or leave the warp out",
        );
    }
    (parent, priority.or(share).or(guarantee).unwrap_or_default())
}

fn read_work(own: &Section<'_>, findings: &mut Findings) -> ThreadWork {
    let work = findings
        .with_traces(|findings, traces| own.other("work", findings, |key, value| work(key, value, traces)));
    let run = own.other("run", findings, command).map(ThreadWork::Command);
    let pid = own.integer("pid", findings);
    let children = own.word("children", findings);
    let process =
        pid.map(|pid| ThreadWork::Process { number: pid as u32, children: children.unwrap_or_default() });
    let tid = own.integer("tid", findings).map(|tid| ThreadWork::Thread(tid as u32));
    let is_given = |name: &&str| matches!(own.given(name).1, Given::Value(_));
    let given: Vec<&str> = ["work", "run", "pid", "tid"].into_iter().filter(is_given).collect();
    if is_given(&"children") && !given.contains(&"pid") {
        findings.error(
            own.span("children"),
            "\"children\" says which processes are scheduled with a process that is there, and the thread has no \"pid\"".into(),
            "add pid = 1234, or leave the key out; a command is always scheduled with all that it starts",
        );
    }
    match given[..] {
        [_] => {}
        [] => findings.error(
            own.header(),
            "the thread does not say what it does".into(),
            "add work = \"cpu-bound\", work = { burst = \"5ms\", period = \"33ms\" }, run = [\"program\"], pid = 1234 or \
             tid = 1234",
        ),
        [first, second, ..] => findings.error(
            own.span(second),
            format!("a thread has \"{first}\" and also \"{second}\""),
            "keep one of them; it does one thing",
        ),
    }
    work.or(run).or(process).or(tid).unwrap_or(ThreadWork::CpuBound)
}

/// A guarantee in its notation; what is wrong is shown where it stands in the text.
fn guarantee(key: &'static Key, value: &Spanned<DeValue<'_>>) -> Reading<Guarantee> {
    let written = text(key, value)?;
    let misfit = |message: String, remedy: String| Misfit { span: value.span(), message, remedy };
    if written.len() > GUARANTEE_BYTES_LIMIT {
        let message = format!("\"{}\" has {} bytes", key.name, written.len());
        return Err(misfit(
            message,
            format!("a guarantee has at most {GUARANTEE_BYTES_LIMIT}; round its numbers"),
        ));
    }
    written.parse::<Guarantee>().map_err(|error| {
        let message = format!("\"{}\", column {}: {}", key.name, error.column(), error.problem());
        let (at, whole) = (error.at(), value.span());
        // A text of one line without escapes stands in the file as it is, between its quotes.
        let span = match whole.len() == written.len() + 2 {
            true => whole.start + 1 + at.start..whole.start + 1 + at.end.max(at.start),
            false => whole,
        };
        Misfit { span, message, remedy: error.problem().remedy() }
    })
}

fn work(key: &'static Key, value: &Spanned<DeValue<'_>>, traces: &mut Traces) -> Reading<ThreadWork> {
    match value.get_ref() {
        DeValue::String(word) if word == "cpu-bound" => Ok(ThreadWork::CpuBound),
        DeValue::String(word) => Err(Misfit {
            span: value.span(),
            message: format!("\"work\" cannot be \"{word}\""),
            remedy: match nearest(word, ["cpu-bound"]) {
                Some(nearest) => format!("did you mean \"{nearest}\"?"),
                None => "write \"cpu-bound\" or { burst = \"5ms\", period = \"33ms\" }".into(),
            },
        }),
        DeValue::Table(table) => bursts(key, value, table, traces),
        _ => Err(wrong_type(key, value)),
    }
}

fn bursts(
    key: &'static Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
    traces: &mut Traces,
) -> Reading<ThreadWork> {
    const PARTS: [&str; 2] = ["burst", "period"];
    if let Some((name, _)) = table.iter().find(|(name, _)| !PARTS.contains(&name.get_ref().as_ref())) {
        let message = format!("unknown key \"{}\" in \"work\"", name.get_ref());
        return Err(Misfit { span: name.span(), message, remedy: known_words(name.get_ref(), PARTS) });
    }
    let part = |name: &str| {
        table.get(name).ok_or_else(|| Misfit {
            span: value.span(),
            message: format!("\"work\" lacks its {name}"),
            remedy: "write work = { burst = \"5ms\", period = \"33ms\" }".into(),
        })
    };
    let named = |misfit: Misfit, part: &str| Misfit {
        message: misfit.message.replacen("\"work\"", &format!("the {part} of \"work\""), 1),
        remedy: misfit.remedy.replacen("write work = ", &format!("write {part} = \"5ms\", as in work = "), 1),
        ..misfit
    };
    let burst = execution(key, part("burst")?, traces).map_err(|misfit| named(misfit, "burst"))?;
    let period: Duration = time(key, part("period")?).map_err(|misfit| named(misfit, "period"))?;
    Ok(ThreadWork::Bursts { burst, period })
}

fn command(key: &'static Key, value: &Spanned<DeValue<'_>>) -> Reading<Vec<String>> {
    let word = |element: &Spanned<DeValue<'_>>| match element.get_ref() {
        DeValue::String(word) => Ok(word.to_string()),
        other => Err(Misfit {
            span: element.span(),
            message: format!("a word of \"{}\" is a text, not {}", key.name, found(other)),
            remedy: "write it in quotes".into(),
        }),
    };
    elements(key, value)?.iter().map(word).collect()
}
