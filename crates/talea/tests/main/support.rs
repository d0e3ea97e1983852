//! Running the command.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

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
    pub stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command prints UTF-8");
        let done = Done {
            status: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
        done
    }
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

    pub fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

/// Runs the command to its end.
pub fn run<Argument: AsRef<str>>(arguments: &[Argument]) -> Done {
    talea(arguments).output().expect("the command starts").into()
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

/// Waits until `condition` holds. What another process has done can only be looked for again and again.
///
/// # Panics
/// If it does not within a minute, which no machine needs.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes a file into `folder` and returns its path as an argument.
pub fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, text).expect("writable");
    path.display().to_string()
}
