//! `talea trace show --follow`.

use super::show::{Filter, Options};
use super::{name_space, unreadable};
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::interrupt;
use crate::cli::output::tell;
use crate::cli::output::{self, Audience};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use talea_export::{Listing, Writers};
use talea_linux::clock::MonotonicClock;
use talea_record::stream::publish::Listed;
use talea_record::stream::{Consumer, Liveness, Selection, Start};
use talea_record::{Event, Metadata, Record, TraceFile};
use talea_recording::recording::SETTLING;
use talea_time::{Clock, Duration};

/// How often the rings are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Prints what the program behind the stream at `path` does, until Ctrl-C, the stream's end, or the last record asked for.
/// What was switched on for that is switched off again.
pub fn main(path: &Path, options: &Options) -> crate::cli::Outcome {
    let stream = Listed::at(path);
    if stream.liveness == Liveness::Dead {
        return Err(Failure::new(
            format!("{} cannot be followed, because nobody writes it any more", path_shown(path)),
            "leave out --follow to see what is there; `talea trace list` shows what runs",
        ));
    }
    let trace = TraceFile::open(path).map_err(|error| unreadable(path, &error))?;
    let names = name_space(&trace, path)?;
    let selection = Filter::new(trace.metadata(), &names, options)?.selection(&names);
    if selection == Selection::nothing() {
        return Err(Failure::new("no record can satisfy all of these filters", "leave one out"));
    }
    let stop = interrupt::flag()?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path_shown(path)), "");
    let consumer = TraceFile::attach(path, "show --follow", &selection, Start::Now);
    let consumer = consumer.map_err(|error| failed(&error))?;
    let mut following = Following {
        path,
        options,
        consumer: consumer.announcing(),
        writers: Writers::default(),
        metadata: trace.metadata().clone(),
        defined: 0,
        left: options.limit,
    };
    following.until_the_end(&stop)?;
    Ok(Verdict::Fine)
}

/// A stream, and what is left to print of it.
struct Following<'a> {
    path: &'a Path,
    options: &'a Options,
    consumer: Consumer,
    writers: Writers,
    metadata: Metadata,
    /// How many of the stream's definitions these tables have beyond those that they were read with.
    defined: usize,
    left: Option<usize>,
}

impl Following<'_> {
    fn until_the_end(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        loop {
            // Asked before the rings are looked at, so that nothing of the end is missed.
            let goes_on = self.consumer.liveness() == Liveness::Alive;
            let is_stopped = stop.load(Ordering::Relaxed);
            let mut records = Vec::new();
            match goes_on && !is_stopped {
                true => self.consumer.poll(MonotonicClock.now() - SETTLING, &mut records),
                false => self.consumer.drain(&mut records),
            };
            if self.consumer.is_cut() {
                return Err(Failure::file(
                    "follow",
                    self.path,
                    "the file was made shorter meanwhile, by another program",
                ));
            }
            let audience = self.print(&records)?;
            if audience == Audience::Gone || self.left == Some(0) || is_stopped {
                return Ok(());
            }
            if !goes_on {
                tell!("note: {} has ended", path_shown(self.path));
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_nanos(LOOK.as_nanos() as u64));
        }
    }

    fn print(&mut self, records: &[Record]) -> Result<Audience, Failure> {
        if records.is_empty() {
            return Ok(Audience::There);
        }
        let unreadable = |error: &dyn std::fmt::Display| {
            Failure::new(format!("cannot follow {}: {error}", path_shown(self.path)), "")
        };
        // A stream that is published before its run begins gets to know when that was.
        if records.iter().any(|record| record.event == Event::RUN_START)
            && let Ok(trace) = TraceFile::open(self.path)
        {
            (self.metadata, self.defined) = (trace.metadata().clone(), 0);
        }
        let directory = self.consumer.directory().map_err(|error| unreadable(&error))?;
        // What came while the run lasts was defined before the first record of it. Those that the tables have already change nothing.
        let definitions = directory.definitions();
        definitions[self.defined.min(definitions.len())..]
            .iter()
            .for_each(|definition| self.metadata.define(definition));
        self.defined = definitions.len();
        let names = directory.name_space();
        let listing = Listing::new(&self.metadata, names).knowing(std::mem::take(&mut self.writers));
        let filter = Filter::new(&self.metadata, names, self.options)?;
        let mut lines = String::new();
        for record in records {
            if !filter.lets_through(record) {
                listing.learn(record);
                continue;
            }
            if self.left == Some(0) {
                break;
            }
            self.left = self.left.map(|left| left - 1);
            match self.options.json {
                true => lines += &listing.json(record),
                false => lines += &output::fold(&listing.line(record)),
            }
            lines.push('\n');
        }
        self.writers = listing.into_writers();
        output::print_now(&lines)
    }
}
