//! Steal time: what a hypervisor took of processors that could have run something (proc(5), `/proc/stat`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use talea_time::Duration;

/// Bytes of the file's first lines, of all processors and of each: at most ten numbers of twenty digits.
const MOST: usize = 1 << 20;
/// Where the steal time stands behind the name.
const STEAL: usize = 7;

/// Reads steal time. It grows in ticks, of 10 ms as a rule.
#[derive(Debug)]
pub struct StealTimes {
    file: File,
    buffer: Vec<u8>,
    tick: Duration,
}

impl StealTimes {
    /// Opens the kernel's account.
    ///
    /// # Errors
    /// There is none.
    pub fn open() -> io::Result<Self> {
        Ok(StealTimes::of(File::open("/proc/stat")?))
    }

    /// Reads an account that looks like the kernel's.
    pub fn of(file: File) -> Self {
        // SAFETY: the call takes a number.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
        let tick = Duration::from_nanos(1_000_000_000 / per_second);
        StealTimes { file, buffer: vec![0; 4096], tick }
    }

    /// How much it grows by at a time.
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// Calls `each` with every processor that is there and what was taken of it since the machine began. Eleven
    /// microseconds on a virtual machine of two processors (median of 20 000), and more with more of them.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(u16, Duration)) -> io::Result<()> {
        let StealTimes { file, buffer, tick } = self;
        let text = loop {
            let length = file.read_at(buffer, 0)?;
            let text = &buffer[..length];
            let is_whole = length < buffer.len() || steals(text).1;
            if is_whole || buffer.len() >= MOST {
                break text;
            }
            let longer = buffer.len() * 4;
            buffer.resize(longer, 0);
        };
        let (list, _) = steals(text);
        list.for_each(|(cpu, ticks)| each(cpu, Duration::from_nanos(ticks.saturating_mul(tick.as_nanos()))));
        Ok(())
    }
}

/// The processors and their steal time in ticks, and whether something else stands behind them, so that they are all. A line that does not end is
/// none yet.
fn steals(text: &[u8]) -> (impl Iterator<Item = (u16, i64)>, bool) {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(&text[..0], |end| &text[..end]);
    let lines = || whole.split(|byte| *byte == b'\n');
    let is_all = lines().any(|line| !line.is_empty() && !line.starts_with(b"cpu"));
    let of_processor = |line: &[u8]| {
        let line = std::str::from_utf8(line.strip_prefix(b"cpu")?).ok()?;
        let (cpu, numbers) = line.split_once(' ')?;
        Some((cpu.parse().ok()?, numbers.split_ascii_whitespace().nth(STEAL)?.parse().ok()?))
    };
    (lines().filter_map(of_processor), is_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_each_processor_is_read() {
        let text = b"cpu  9 9 9 9 9 9 9 99 9 9\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu12 1 2 3 4 5 6 7 0 0 0\nintr 5\ncpu3 1 2 3 4 5 6 7 8\n";
        let (list, is_all) = steals(text);
        assert_eq!((list.collect::<Vec<_>>(), is_all), (vec![(0, 80), (12, 0), (3, 8)], true));
        let (list, is_all) = steals(b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu1 1 2");
        assert_eq!((list.count(), is_all), (1, false), "the rest is not there");
        for cut in 0..text.len() {
            let (list, is_all) = steals(&text[..cut]);
            assert!(is_all || list.count() < 3, "cut at {cut}");
        }
        let before_more = text.iter().position(|byte| *byte == b'i').expect("an i");
        assert!((0..before_more).all(|cut| !steals(&text[..cut]).1), "all of it is of processors");
        assert_eq!(steals(b"").0.count() + steals(b"cpux 1 2 3 4 5 6 7 8\ncpu1").0.count(), 0);
    }

    #[test]
    fn this_machine_tells_of_the_processors_that_may_be_used() {
        let mut times = StealTimes::open().unwrap();
        let mut told = Vec::new();
        times.read(|cpu, taken| told.push((cpu, taken))).unwrap();
        for cpu in crate::affinity::allowed().unwrap() {
            assert!(
                told.iter().any(|(known, taken)| *known == cpu && *taken >= Duration::ZERO),
                "{cpu}: {told:?}"
            );
        }
    }
}
