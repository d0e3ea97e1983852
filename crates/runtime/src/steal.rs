//! What a hypervisor takes of a run's processors meanwhile, in which nothing of it goes on and no record is made.

use std::collections::BTreeSet;
use talea_linux::steal::StealTimes;
use talea_record::event::Steal;
use talea_record::{Metadata, Record, Sink};
use talea_time::{Duration, Instant};

/// How often it is looked for: reading the kernel's account costs more the more processors and interrupts there are.
const EVERY: Duration = Duration::from_millis(100);

/// Looks for it, on the collector's thread.
pub(crate) struct StealWatch {
    times: StealTimes,
    /// The processors of the run, with what had been taken of them.
    processors: Vec<(u16, Duration)>,
    looked: Instant,
    /// What no record tells of yet.
    found: Vec<Record>,
    start: Instant,
}

impl StealWatch {
    /// Of all processors of a run; nothing where the kernel has no account, which no kernel of ours lacks.
    pub fn new(metadata: &Metadata, now: Instant) -> Option<Self> {
        Some(StealWatch::of(StealTimes::open().ok()?, metadata, now))
    }

    fn of(times: StealTimes, metadata: &Metadata, now: Instant) -> Self {
        let processors: BTreeSet<u16> =
            metadata.nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect();
        let processors = processors.into_iter().map(|cpu| (cpu, Duration::ZERO)).collect();
        let mut watch =
            StealWatch { times, processors, looked: now, found: Vec::new(), start: metadata.start };
        watch.read(|_, _| ());
        watch
    }

    /// Looks, if that is due.
    pub fn look(&mut self, now: Instant) {
        if now - self.looked >= EVERY {
            self.look_now(now);
        }
    }

    /// Looks.
    pub fn look_now(&mut self, now: Instant) {
        // What was taken before the start is none of the run's.
        let from = self.looked.max(self.start);
        let is_of_run = now > self.start;
        let mut found = std::mem::take(&mut self.found);
        self.read(|cpu, amount| {
            if is_of_run {
                found.push(Steal { amount, from, to: now }.at(now, cpu));
            }
        });
        (self.found, self.looked) = (found, now);
    }

    /// Calls `each` with what was taken of processors since the last time.
    fn read(&mut self, mut each: impl FnMut(u16, Duration)) {
        let StealWatch { times, processors, .. } = self;
        let read = times.read(|cpu, taken| {
            let known = processors.iter_mut().find(|(known, _)| *known == cpu);
            if let Some((_, before)) = known {
                let amount = taken - std::mem::replace(before, taken);
                if amount > Duration::ZERO {
                    each(cpu, amount);
                }
            }
        });
        // An account that cannot be read now tells of it the next time.
        drop(read);
    }

    /// Hands on what is known, as of this instant; before the start nothing. Returns whether there was any.
    pub fn put(&mut self, sink: &mut impl Sink, at: Instant) -> bool {
        let is_known = at >= self.start && !self.found.is_empty();
        if is_known {
            self.found.drain(..).for_each(|record| sink.record(Record { time: at, ..record }));
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use talea_policy::strategy::plan_lanes_of;
    use talea_record::Origin;

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_is_taken_of_the_runs_processors_from_its_start_on_is_told_once() {
        let text = "[system]\nname = \"s\"\nstrategy = \"edf\"\n[[node]]\nname = \"n\"\ncpus = [1]\n[[task]]\nname = \"t\"\nperiod = \"5ms\"\nwcet = \"1ms\"\n";
        let system = talea_model::parse("s.toml", text, std::path::Path::new(".")).expect("a system").system;
        let plans = plan_lanes_of(&system).expect("plans");
        let metadata = Metadata::new(&system, &plans, Origin::Threads { realtime: false }, at(500));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stat");
        let account = |ticks: [i64; 2]| {
            let line = |cpu: usize| format!("cpu{cpu} 1 1 1 1 1 1 1 {} 0 0\n", ticks[cpu]);
            fs::write(&path, format!("cpu  1 1 1 1 1 1 1 99 0 0\n{}{}intr 1\n", line(0), line(1)))
                .expect("written");
        };
        account([5, 7]);
        let times = StealTimes::of(fs::File::open(&path).expect("written"));
        let tick = times.tick();
        let mut watch = StealWatch::of(times, &metadata, at(0));
        let mut told = Vec::new();
        account([5, 9]);
        watch.look(at(400));
        watch.put(&mut told, at(400));
        assert!(told.is_empty(), "the run has not begun");
        account([50, 12]);
        watch.look(at(450));
        watch.look(at(600));
        watch.put(&mut told, at(580));
        watch.put(&mut told, at(590));
        account([50, 13]);
        watch.look(at(690));
        watch.put(&mut told, at(690));
        assert_eq!(told.len(), 1, "it is not looked at so soon");
        watch.look_now(at(695));
        watch.put(&mut told, at(700));
        let amount = |ticks: i64| Duration::from_nanos(tick.as_nanos() * ticks);
        let expected = [
            Steal { amount: amount(3), from: at(500), to: at(600) }.at(at(580), 1),
            Steal { amount: amount(1), from: at(600), to: at(695) }.at(at(700), 1),
        ];
        assert_eq!(told, expected);
    }
}
