//! Whether the programs and processes that a description names are on this machine.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use talea_linux::Tid;
use talea_linux::proc::{is_kernel_thread, process_of};
use talea_model::{System, ThreadWork};

/// What of a node's threads is not on this machine: the index of the thread, and a sentence. The description may be meant for another, or the
/// process be started later.
pub fn absentees(system: &System, node: usize) -> Vec<(usize, String)> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let said = |index: usize| {
        let thread = &system.threads[index];
        Some((index, absent(&thread.name, &thread.work, &search)?))
    };
    system.threads_on(node).filter_map(said).collect()
}

fn absent(thread: &str, work: &ThreadWork, search: &OsStr) -> Option<String> {
    match work {
        ThreadWork::CpuBound | ThreadWork::Bursts { .. } => None,
        ThreadWork::Command(words) => {
            let program = words.first()?;
            if program.contains('/') {
                let there = is_program(Path::new(program));
                return (!there).then(|| {
                    format!(
                        "thread \"{thread}\": there is no program {program} on this machine, so it cannot be run here; a path that is not \
                         absolute counts from where `talea` is started"
                    )
                });
            }
            let there = std::env::split_paths(search).any(|folder| is_program(&folder.join(program)));
            (!there).then(|| {
                format!(
                    "thread \"{thread}\": no folder of PATH has a program {program} on this machine, so it cannot be run here; install \
                     it, or give its path"
                )
            })
        }
        ThreadWork::Process { number, .. } | ThreadWork::Thread(number)
            if tid(*number).is_some_and(is_kernel_thread) =>
        {
            Some(format!(
            "thread \"{thread}\": {number} is a thread of the kernel on this machine, which nobody else may schedule; name a \
             program's process (`pgrep NAME` finds it)"
        ))
        }
        ThreadWork::Thread(number) => (!Path::new(&format!("/proc/{number}")).exists()).then(|| {
            format!(
                "thread \"{thread}\": there is no thread {number} on this machine, so it cannot be run here now; a thread has its \
                 number only while it runs (`ls /proc/PID/task` shows those of a process)"
            )
        }),
        ThreadWork::Process { number, .. } => (!is_process(*number)).then(|| {
            format!(
                "thread \"{thread}\": there is no process {number} on this machine, so it cannot be run here now; a process has its \
                 number only while it runs (`pgrep NAME` finds it)"
            )
        }),
    }
}

/// Whether there is a process, and not only a thread, of this number.
fn is_process(number: u32) -> bool {
    tid(number).is_some_and(|tid| process_of(tid) == Some(tid))
}

fn tid(number: u32) -> Option<Tid> {
    Tid::from_raw(i32::try_from(number).ok()?)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::ChildProcesses;

    fn of(work: ThreadWork) -> Option<String> {
        absent("t", &work, OsStr::new("/nowhere:/bin:/usr/bin"))
    }

    fn command(program: &str) -> ThreadWork {
        ThreadWork::Command(vec![program.into(), "an argument".into()])
    }

    #[test]
    fn programs_are_found_as_they_would_be_started() {
        assert_eq!(of(command("sh")), None);
        assert_eq!(of(command("/bin/sh")), None);
        assert!(of(command("no-such-program")).is_some_and(|text| text.contains("PATH")));
        assert!(
            of(command("/bin/no-such-program")).is_some_and(|text| text.contains("/bin/no-such-program"))
        );
        assert!(of(command("/etc/passwd")).is_some(), "a file that is no program");
        assert!(of(command("/bin")).is_some(), "a folder");
    }

    #[test]
    fn processes_are_there_or_not() {
        let process = |number| ThreadWork::Process { number, children: ChildProcesses::All };
        assert_eq!(of(process(std::process::id())), None);
        assert!(of(process(4_194_304)).is_some_and(|text| text.contains("no process 4194304")));
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(of(ThreadWork::Thread(own)), None);
        assert!(of(process(own)).is_some(), "a thread is no process");
        assert!(of(ThreadWork::Thread(4_194_304)).is_some_and(|text| text.contains("no thread 4194304")));
        assert_eq!(of(ThreadWork::CpuBound), None);
    }
}
