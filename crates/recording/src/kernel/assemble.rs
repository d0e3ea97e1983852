//! Opening the events: a buffer for each processor, into which all its events write.
//!
//! A buffer belongs to an event of its own that counts nothing. So it outlives the events that fill it, and reading
//! what is left after they have stopped needs no agreement between reader and stream.

use super::decode::View;
use super::options::{KernelEvent, KernelOptions, KernelScope, Processors};
use super::preflight::{Attempt, Facts, KernelPart, Obstacle, Preflight, explain, explain_tracepoint};
use super::redirect::redirect;
use super::tracepoint::{self, Tracepoint};
use perf_event::events::{Software, Tracepoint as PerfTracepoint};
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag, Sampler};
use std::collections::BTreeSet;
use std::io;

/// One processor's buffer and the events that fill it, all still disabled.
pub(super) struct Assembled {
    pub cpu: u16,
    pub ring: Sampler,
    /// An event that counts nothing, whose descriptor tells when the buffer is filled to its watermark.
    pub bell: Counter,
    pub events: Vec<Counter>,
}

/// Everything that could be opened, and what could not.
pub(super) struct Assembly {
    pub processors: Vec<Assembled>,
    /// In the order of their numbers.
    pub tracepoints: Vec<Tracepoint>,
    pub obstacles: Vec<Obstacle>,
    pub caveats: Vec<String>,
}

/// Opens all that `options` ask for. An obstacle to one kind of event does not keep the others from being tried.
pub(super) fn assemble(options: &KernelOptions, facts: &Facts) -> Assembly {
    let mut assembly = Assembly {
        processors: Vec::new(),
        tracepoints: Vec::new(),
        obstacles: Vec::new(),
        caveats: Vec::new(),
    };
    let opener = Opener { options, facts };
    let tids = match opener.threads() {
        Ok(tids) => tids,
        Err(obstacle) => {
            assembly.obstacles.push(obstacle);
            return assembly;
        }
    };
    match opener.rings() {
        Ok(rings) => assembly.processors = rings,
        Err(obstacle) => {
            assembly.obstacles.push(obstacle);
            return assembly;
        }
    }
    opener.add_sideband(&tids, &mut assembly);
    for event in &options.events {
        opener.add_tracepoints(*event, &tids, &mut assembly);
    }
    assembly.tracepoints.sort_by_key(|tracepoint| tracepoint.id);
    assembly.caveats = opener.caveats();
    assembly
}

impl Assembly {
    pub fn preflight(self, options: &KernelOptions) -> Preflight {
        let refused = |event: &KernelEvent| {
            self.obstacles.iter().any(|obstacle| {
                obstacle.part == KernelPart::Buffers || obstacle.part == KernelPart::Events(*event)
            })
        };
        let available = options.events.iter().copied().filter(|event| !refused(event)).collect();
        Preflight { available, obstacles: self.obstacles, caveats: self.caveats }
    }
}

/// What the buffers of `scope` show.
pub(super) fn view(scope: KernelScope) -> View {
    match scope {
        KernelScope::Machine => View::Processor,
        KernelScope::Process(_) => View::Threads,
    }
}

/// The processors that are online.
pub(super) fn online() -> io::Result<BTreeSet<u16>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_list(text.trim()).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, text))
}

/// A list as the kernel writes it: `0-3,5`.
fn parse_list(text: &str) -> Option<BTreeSet<u16>> {
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(all)
}

/// Whom an event is about.
#[derive(Clone, Copy)]
enum Target {
    Everybody,
    Caller,
    Thread(u32),
}

struct Opener<'a> {
    options: &'a KernelOptions,
    facts: &'a Facts,
}

impl Opener<'_> {
    /// The threads to follow; [`Target::Everybody`] alone for the whole machine.
    fn threads(&self) -> Result<Vec<Target>, Obstacle> {
        match self.options.scope {
            KernelScope::Machine => Ok(vec![Target::Everybody]),
            KernelScope::Process(pid) => match super::names::threads(pid) {
                Ok(tids) => Ok(tids.into_iter().map(Target::Thread).collect()),
                Err(error) => Err(self.explain(KernelPart::Buffers, Attempt::List, &error)),
            },
        }
    }

    fn explain(&self, part: KernelPart, attempt: Attempt, error: &io::Error) -> Obstacle {
        explain(self.facts, self.options, part, attempt, error)
    }

    fn rings(&self) -> Result<Vec<Assembled>, Obstacle> {
        let part = KernelPart::Buffers;
        let chosen = match &self.options.processors {
            Processors::These(chosen) => chosen.clone(),
            Processors::Online => online().map_err(|error| self.explain(part, Attempt::List, &error))?,
        };
        let target = match self.options.scope {
            KernelScope::Machine => Target::Everybody,
            KernelScope::Process(_) => Target::Caller,
        };
        let mut rings = Vec::with_capacity(chosen.len());
        for cpu in chosen {
            let open = |error: io::Error| self.explain(part, Attempt::Open { cpu }, &error);
            let bytes = self.options.buffer_bytes;
            let mut builder = self.builder(Software::DUMMY, target, cpu);
            builder.wakeup_watermark((bytes / 4).max(1));
            let ring = builder.build().map_err(open)?;
            let ring = ring.sampled(bytes).map_err(|e| self.explain(part, Attempt::Map { bytes }, &e))?;
            let bell = self.builder(Software::DUMMY, target, cpu).build().map_err(open)?;
            redirect(&bell, &ring).map_err(|errno| open(errno.into()))?;
            rings.push(Assembled { cpu, ring, bell, events: Vec::new() });
        }
        Ok(rings)
    }

    /// What all events have in common: they must agree on the clock and on what a stamp consists of.
    fn builder(&self, event: impl perf_event::events::Event, target: Target, cpu: u16) -> Builder<'static> {
        let mut builder = Builder::new(event);
        builder
            .one_cpu(usize::from(cpu))
            .clockid(Clock::MONOTONIC)
            .sample(SampleFlag::TIME)
            .sample_id_all(true)
            .read_format(ReadFormat::empty());
        if view(self.options.scope) == View::Threads {
            builder.sample(SampleFlag::TID | SampleFlag::STREAM_ID);
        }
        match target {
            Target::Everybody => builder.any_pid(),
            Target::Caller => builder.observe_self(),
            Target::Thread(tid) => builder.observe_pid(tid as i32).inherit(true).inherit_thread(true),
        };
        builder
    }

    /// Opens an event that reports losses, where the kernel can (Linux 6.0), and lets it write into the buffer.
    fn open(&self, builder: &mut Builder<'_>, ring: &Sampler) -> io::Result<Counter> {
        let opened = match builder.read_format(ReadFormat::LOST).build() {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                builder.read_format(ReadFormat::empty()).build()
            }
            other => other,
        }?;
        redirect(&opened, ring)?;
        Ok(opened)
    }

    /// Opens events of `make` for all targets on all processors; all or none.
    fn add<'b>(
        &self,
        assembly: &mut Assembly,
        targets: &[Target],
        make: impl Fn(Target, u16) -> Builder<'b>,
    ) -> Result<(), (u16, io::Error)> {
        let mut opened = Vec::with_capacity(assembly.processors.len());
        for processor in &assembly.processors {
            let mut events = Vec::with_capacity(targets.len());
            for target in targets {
                match self.open(&mut make(*target, processor.cpu), &processor.ring) {
                    Ok(event) => events.push(event),
                    // The thread has ended since it was listed.
                    Err(error)
                        if matches!(target, Target::Thread(_)) && is_gone(&error) && targets.len() > 1 => {}
                    Err(error) => return Err((processor.cpu, error)),
                }
            }
            opened.push(events);
        }
        for (processor, events) in assembly.processors.iter_mut().zip(opened) {
            processor.events.extend(events);
        }
        Ok(())
    }

    /// Switches and names come without a tracepoint, as notes of an event that counts nothing.
    fn add_sideband(&self, targets: &[Target], assembly: &mut Assembly) {
        let wanted: Vec<KernelEvent> = [KernelEvent::Switches, KernelEvent::Names]
            .into_iter()
            .filter(|event| self.options.events.contains(event))
            .collect();
        if wanted.is_empty() {
            return;
        }
        let (switches, names) =
            (wanted.contains(&KernelEvent::Switches), wanted.contains(&KernelEvent::Names));
        let result = self.add(assembly, targets, |target, cpu| {
            let mut builder = self.builder(Software::DUMMY, target, cpu);
            builder.context_switch(switches).comm(names).task(names);
            builder
        });
        if let Err((cpu, error)) = result {
            let attempt = Attempt::Open { cpu };
            let explained =
                wanted.into_iter().map(|event| self.explain(KernelPart::Events(event), attempt, &error));
            assembly.obstacles.extend(explained);
        }
    }

    fn add_tracepoints(&self, event: KernelEvent, targets: &[Target], assembly: &mut Assembly) {
        let tracepoints = match tracepoint::of_event(event, self.facts) {
            Ok(tracepoints) => tracepoints,
            Err(error) => return assembly.obstacles.push(explain_tracepoint(self.facts, event, &error)),
        };
        for tracepoint in tracepoints {
            let result = self.add(assembly, targets, |target, cpu| {
                let kind = PerfTracepoint::with_id(u64::from(tracepoint.id));
                let mut builder = self.builder(kind, target, cpu);
                builder.include_kernel().sample_period(1).sample(SampleFlag::RAW);
                builder
            });
            match result {
                Ok(()) => assembly.tracepoints.push(tracepoint),
                Err((cpu, error)) => {
                    let part = KernelPart::Events(event);
                    let obstacle = self.explain(part, Attempt::Tracepoint { cpu }, &error);
                    return assembly.obstacles.push(obstacle);
                }
            }
        }
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        let wants = |event| self.options.events.contains(&event);
        if let KernelScope::Process(_) = self.options.scope {
            if wants(KernelEvent::Switches) {
                caveats.push(
                    "switches tell when the process's own threads come and go, not who has the processor meanwhile"
                        .into(),
                );
            }
            if wants(KernelEvent::Wakeups) {
                caveats.push(
                    "wake-ups of the process's threads by others, timers included, may be missing".into(),
                );
            }
        }
        let numbered = wants(KernelEvent::Wakeups) || wants(KernelEvent::SystemCalls);
        if numbered && !self.facts.global_numbers {
            caveats.push(
                "this process is in a pid namespace: wake-ups and system calls name threads by their numbers outside \
                 of it"
                    .into(),
            );
        }
        caveats
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_are_read() {
        let read = |text| parse_list(text).map(Vec::from_iter);
        assert_eq!(read("0-1"), Some(vec![0, 1]));
        assert_eq!(read("0,2-4,7"), Some(vec![0, 2, 3, 4, 7]));
        assert_eq!(read("3"), Some(vec![3]));
        assert_eq!(read(""), None);
        assert_eq!(read("a-b"), None);
    }
}
