//! Running the command.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
pub use talea_measure::eventually;

/// Name of the trace in an `--out` folder.
pub const TRACE: &str = "trace.talea";

/// The repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file of `examples/`.
pub fn example(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

/// A folder of its own for a test.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A path in `folder` as an argument.
pub fn within(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// The command with these arguments, in a pipe.
pub fn talea<Argument: AsRef<str>>(arguments: &[Argument]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talea"));
    command.args(arguments.iter().map(AsRef::as_ref));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a finished command left.
pub struct Done {
    /// Exit status; -1 if a signal ended it.
    pub status: i32,
    pub stdout: String,
    /// Sentences that are in several lines because of their length are in one here.
    pub stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command prints UTF-8");
        let (status, errors) = (output.status.code().unwrap_or(-1), text(output.stderr));
        let done = Done { status, stdout: text(output.stdout), stderr: unwrapped(&errors) };
        assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
        done
    }
}

/// The text with the lines put together again that were broken because they were too long.
fn unwrapped(text: &str) -> String {
    // Errors in files are broken earlier, as there are line numbers beside them.
    const NARROWEST: usize = 84;
    let (mut whole, mut before) = (String::new(), 0);
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches(' ');
        let first = rest.split_whitespace().next().map_or(0, |word| word.chars().count());
        if rest.len() < line.len() && first > 0 && before + 1 + first > NARROWEST {
            whole.truncate(whole.trim_end().len());
            whole.push(' ');
            whole.push_str(rest);
        } else {
            whole.push_str(line);
        }
        before = line.trim_end().chars().count();
    }
    whole
}

/// Fails if a line of what the command says in this folder has more than a hundred columns.
pub fn errors_fit<Argument: AsRef<str>>(folder: &Path, arguments: &[Argument]) {
    let output = talea(arguments).current_dir(folder).output().expect("the command starts");
    let errors = String::from_utf8(output.stderr).expect("the command prints UTF-8");
    assert!(!errors.is_empty());
    let long = errors.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "this line has more than 100 columns");
}

impl Done {
    /// Standard output as JSON, which it must be from end to end.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}; {}", self.stdout, self.stderr))
    }

    /// This, if the exit status was `status`.
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// This, if something is on standard output and no line of it is longer than a hundred columns.
    pub fn fits(self) -> Self {
        assert!(!self.stdout.is_empty(), "{}", self.stderr);
        let long = self.stdout.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "this line has more than 100 columns");
        self
    }

    /// What is on standard output as one line, for sentences that may be in several.
    pub fn words(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

/// Runs the command to its end.
pub fn run<Argument: AsRef<str>>(arguments: &[Argument]) -> Done {
    talea(arguments).output().expect("the command starts").into()
}

/// Whoever runs hierarchies that leave a processor little time has it for itself: their threads would take it from each other.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A command under way; it does not outlive the test.
pub struct Running(Option<Child>);

impl Running {
    pub fn start<Argument: AsRef<str>>(arguments: &[Argument]) -> Self {
        Running(Some(talea(arguments).spawn().expect("the command starts")))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it has not been waited for")
    }

    pub fn id(&mut self) -> u32 {
        self.child().id()
    }

    pub fn signal(&mut self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(self.child());
        rustix::process::kill_process(process, signal).expect("it is ours");
    }

    /// Whether the command has ended.
    pub fn is_over(&mut self) -> bool {
        self.child().try_wait().expect("ours").is_some()
    }

    /// Fails if the command has ended.
    pub fn lives(&mut self) {
        if self.child().try_wait().expect("ours").is_some() {
            let output = self.0.take().expect("not waited for").wait_with_output().expect("ended");
            panic!("the command ended: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    pub fn kill(&mut self) {
        self.child().kill().expect("it is ours");
    }

    /// Waits until the command has written `path`, which must be before it ends.
    pub fn await_file(&mut self, path: &Path) {
        self.await_length(path, 1);
    }

    /// Waits until the command has written so many bytes more to `path`, which must be before it ends.
    pub fn await_growth(&mut self, path: &Path, bytes: u64) {
        let length = std::fs::metadata(path).expect("the file is there").len();
        self.await_length(path, length + bytes);
    }

    fn await_length(&mut self, path: &Path, length: u64) {
        eventually(&format!("{} has {length} bytes", path.display()), || {
            let ended = self.child().try_wait().expect("ours").is_some();
            let written = std::fs::metadata(path).is_ok_and(|file| file.len() >= length);
            if ended && !written {
                let output = self.0.take().expect("not waited for").wait_with_output().expect("ended");
                panic!("the command ended first: {}", String::from_utf8_lossy(&output.stderr));
            }
            written
        });
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Done {
        let child = self.0.take().expect("it has not been waited for");
        child.wait_with_output().expect("ours").into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes a file into `folder` and returns its path as an argument.
pub fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, text).expect("writable");
    path.display().to_string()
}

/// A folder with the trace of a command of which `--out` is asked.
pub fn traced(arguments: &[&str]) -> (tempfile::TempDir, String) {
    let place = folder();
    let out = within(&place, "out");
    let arguments: Vec<&str> =
        arguments.iter().copied().chain(["--fail-on", "never", "--out", &out]).collect();
    run(&arguments).exits(0);
    let trace = place.path().join("out").join(TRACE).display().to_string();
    (place, trace)
}

/// A folder with a recording from outside, with these options, of a short run of the system.
pub fn recorded(system: &str, options: &[&str]) -> (tempfile::TempDir, String) {
    // Its threads have no real-time priorities, and threads of another test that have would leave them no time to complete a job.
    let _alone = alone();
    let place = folder();
    let trace = within(&place, "recorded.talea");
    let record = ["trace", "record", "--kernel", "off", "--out", &trace];
    let command = ["--", env!("CARGO_BIN_EXE_talea"), "run", system, "--rt", "off", "--for", "300ms"];
    run(&[&record[..], options, &command, &["--fail-on", "never"]].concat()).exits(0);
    (place, trace)
}

/// A folder with a trace that holds no system: a program's own events, and switches of two processors between threads 7
/// ("worker") and 8 for 100 us.
pub fn bare() -> (tempfile::TempDir, String) {
    use talea_record::{Event, InterruptKind, LogWriter, Metadata, Record, Sink};
    let place = folder();
    let trace = within(&place, "bare.talea");
    let mut log = LogWriter::create(Path::new(&trace), &Metadata::bare("filter")).expect("writable");
    let mut write = |us: i64, cpu: u16, event: Event, causal: u64, words: [u64; 2]| {
        let time = talea_time::Instant::from_nanos(us * 1_000);
        // Interrupts are of devices; of what else there is here, nothing stands there.
        let is_interrupt = [Event::IRQ_ENTER, Event::IRQ_EXIT].contains(&event);
        let arg = if is_interrupt { InterruptKind::Device as u16 } else { 0 };
        log.record(Record { time, causal, words, event, source: Record::KERNEL, cpu, arg });
    };
    let switch = |from: u64, to: u64| [from | to << 32, 0];
    write(0, Record::NO_CPU, Event::THREAD_NAME, 7, [u64::from_le_bytes(*b"worker\0\0"), 0]);
    write(0, 0, Event::SWITCH, 0, switch(0, 7));
    write(0, 1, Event::SWITCH, 0, switch(7, 0));
    write(30, 0, Event::IRQ_ENTER, 0, [24, 0]);
    write(40, 0, Event::IRQ_EXIT, 0, [24, 0]);
    write(60, 0, Event::SWITCH, 0, switch(7, 8));
    write(80, 0, Event::LOST, 0, [5, 0]);
    write(100, 1, Event::SWITCH, 0, switch(0, 8));
    log.finish().expect("written");
    (place, trace)
}

/// More records than a run writes before its first jobs have ended.
const UNDER_WAY: u64 = 64;

/// A system under a name that no other test has, whose run is under way, until it is ended.
pub struct Program {
    pub name: String,
    pub running: Running,
}

impl Program {
    pub fn start(place: &tempfile::TempDir, name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let file = within(place, "system.toml");
        let text = format!(
            "[system]\nname = \"{name}\"\n[[task]]\nname = \"tick\"\nperiod = \"5ms\"\nwcet = \"100us\"\n"
        );
        std::fs::write(&file, text).expect("writable");
        let mut running = Running::start(&["run", &file, "--rt", "off", "--forever"]);
        // A stream is published while the run is prepared, and what follows it then sees the run from its beginning.
        eventually("the program's run is under way", || {
            running.lives();
            let stream = listed(&name);
            let rings = stream.as_ref().and_then(|stream| stream["content"]["rings"].as_array());
            let written = |ring: &serde_json::Value| ring["written"].as_u64().expect("a number");
            rings.is_some_and(|rings| rings.iter().map(written).sum::<u64>() > UNDER_WAY)
        });
        Program { name, running }
    }

    /// A recording of it into a file, once it has begun.
    pub fn record(&self, place: &tempfile::TempDir, events: &str) -> (Running, String) {
        self.record_with(place, events, "off")
    }

    /// The same with these events of the kernel.
    pub fn record_with(&self, place: &tempfile::TempDir, events: &str, kernel: &str) -> (Running, String) {
        let file = within(place, &format!("{events}.talea"));
        let arguments = ["trace", "record", "--attach", &self.name, "--events", events, "--kernel", kernel];
        let mut recording = Running::start(&[&arguments[..], &["--out", &file]].concat());
        recording.await_file(Path::new(&file));
        recording.await_growth(Path::new(&file), 20 * talea_record::Record::BYTES as u64);
        (recording, file)
    }
}

/// The stream of this name, if there is one.
pub fn listed(name: &str) -> Option<serde_json::Value> {
    let streams = run(&["trace", "list", "--json"]).exits(0).json();
    let streams = streams.as_array().expect("a list").clone();
    streams.into_iter().find(|stream| stream["name"] == name && stream["content"]["rings"].is_array())
}
