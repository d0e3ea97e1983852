//! Results: histograms by group and subject, as a table or as JSON lines.

use hdrhistogram::Histogram;
use talea_time::Duration;

/// How results are written to standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs: one object per row.
    JsonLines,
}

/// What a subject is to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What everything else in the group is compared with; the first of each group.
    Floor,
    /// What Talea uses.
    Subject,
    /// What others offer.
    Peer,
}

/// Samples of one subject, in hundredths of a nanosecond so that batches keep their fractions.
#[derive(Debug)]
pub struct Samples(Histogram<u64>);

const FRACTION: f64 = 100.0;

impl Default for Samples {
    fn default() -> Self {
        Self::new()
    }
}

impl Samples {
    /// No samples yet, with room for times of up to ten seconds: nothing allocates while measuring.
    pub fn new() -> Self {
        Samples(Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("constant bounds"))
    }

    /// One operation that took `time`.
    pub fn add(&mut self, time: Duration) {
        self.add_batch(time, 1);
    }

    /// The time of each of `count` operations that took `time` together.
    pub fn add_batch(&mut self, time: Duration, count: u32) {
        let hundredths = time.as_nanos().max(0) as f64 * FRACTION / f64::from(count);
        self.0.saturating_record((hundredths as u64).max(1));
    }

    /// The quantile in nanoseconds.
    pub fn ns(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / FRACTION
    }
}

#[derive(Debug)]
struct Row {
    group: &'static str,
    subject: &'static str,
    role: Role,
    samples: Samples,
    note: String,
}

/// Every subject with its samples.
#[derive(Debug)]
pub struct Report {
    real_time: bool,
    rows: Vec<Row>,
}

impl Report {
    /// An empty report of measurements on threads with or without real-time priorities.
    pub fn new(real_time: bool) -> Self {
        Report { real_time, rows: Vec::new() }
    }

    /// Adds a subject to its group; the first of a group is its floor.
    pub fn add(&mut self, group: &'static str, subject: &'static str, role: Role, samples: Samples) {
        self.add_with_note(group, subject, role, samples, String::new());
    }

    /// The same with a remark.
    pub fn add_with_note(
        &mut self,
        group: &'static str,
        subject: &'static str,
        role: Role,
        samples: Samples,
        note: String,
    ) {
        self.rows.push(Row { group, subject, role, samples, note });
    }

    /// Prints to standard output.
    pub(crate) fn print(&self, format: Format) {
        match format {
            Format::Table => self.print_table(),
            Format::JsonLines => self.print_json(),
        }
    }

    /// The median of the floor of the row's group.
    fn floor(&self, row: &Row) -> &Samples {
        let floor = self.rows.iter().find(|other| other.group == row.group && other.role == Role::Floor);
        &floor.expect("each group has a floor").samples
    }

    fn print_table(&self) {
        println!("threads: {}", if self.real_time { "SCHED_FIFO" } else { "ordinary (no-rt)" });
        let mut group = "";
        for row in &self.rows {
            if row.group != group {
                group = row.group;
                println!("\n{group}");
                println!(
                    "  {:32} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
                    "", "p50", "p99", "p99.9", "max", "p50/fl.", "p99/fl."
                );
            }
            let (samples, floor) = (&row.samples, self.floor(row));
            print!("  {:32}", row.subject);
            for quantile in [0.5, 0.99, 0.999, 1.0] {
                print!(" {:>10}", time(samples.ns(quantile)));
            }
            for quantile in [0.5, 0.99] {
                print!(" {:>8.2}", samples.ns(quantile) / floor.ns(quantile));
            }
            println!("  {}", row.note);
        }
    }

    fn print_json(&self) {
        for row in &self.rows {
            let (samples, floor) = (&row.samples, self.floor(row));
            println!(
                "{}",
                serde_json::json!({
                    "group": row.group,
                    "subject": row.subject,
                    "role": match row.role {
                        Role::Floor => "floor",
                        Role::Subject => "subject",
                        Role::Peer => "peer",
                    },
                    "real_time": self.real_time,
                    "samples": samples.0.len(),
                    "p50_ns": samples.ns(0.5),
                    "p99_ns": samples.ns(0.99),
                    "p999_ns": samples.ns(0.999),
                    "max_ns": samples.ns(1.0),
                    "p50_ratio": samples.ns(0.5) / floor.ns(0.5),
                    "p99_ratio": samples.ns(0.99) / floor.ns(0.99),
                    "note": row.note,
                })
            );
        }
    }
}

fn time(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}ns") } else { Duration::from_nanos(ns as i64).rounded().to_string() }
}
