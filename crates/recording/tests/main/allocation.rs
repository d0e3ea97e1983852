//! Reading the kernel stream allocates nothing.

use crate::kernel_support::*;
use allocation_counter::measure;
use talea_record::{Record, Sink};
use talea_recording::kernel::KernelEvent;
use talea_samples::at;

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn record(&mut self, _: Record) {
        self.0 += 1;
    }
}

#[test]
fn reading_the_kernel_stream_allocates_nothing() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let wanted = options(cpu, &[KernelEvent::Switches, KernelEvent::Wakeups, KernelEvent::SystemCalls]);
    let Some(mut stream) = open(&wanted) else { return };
    let mut count = Count::default();
    let mut play_and_read = || {
        players.play(300, Pace::Free);
        measure(|| {
            stream.poll(at(i64::MAX), &mut count);
        })
        .count_total
    };
    play_and_read();
    assert_eq!((0..5).map(|_| play_and_read()).sum::<u64>(), 0);
    assert!(count.0 > 5 * 600, "{} records", count.0);
}
