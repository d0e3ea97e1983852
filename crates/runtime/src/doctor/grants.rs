//! What needs a privilege.

use super::{Finding, in_scratch_thread, read};
use rustix::io::Errno;
use rustix::mm::{MlockFlags, mlock_with, munlock};
use std::ffi::c_void;
use talea_linux::cgroup::{Missing, Survey, Unified};
use talea_linux::sched::{self, Policy, SchedError};
use talea_linux::{affinity, memory};
use talea_time::Duration;

pub(super) fn examine() -> Vec<Finding> {
    vec![
        real_time_priority(),
        reservations(),
        cgroup_budget(&read("/proc/self/cgroup").unwrap_or_default(), read),
        control_groups(&Survey::take()),
        memory_locking(),
        cpus(),
    ]
}

/// What programs that are started can be contained in.
fn control_groups(survey: &Survey) -> Finding {
    const NAME: &str = "control groups";
    match &survey.unified {
        Ok(Unified { slow_moves, .. }) => Finding {
            remedy: slow_moves.as_ref().map(|mount| {
                format!(
                    "where others move processes between cgroups, each move keeps a hierarchy from holding its programs for some \
                     10 ms: `sudo mount -o remount,favordynmods {}` (Linux 6.0 on) makes moves quick until the machine is \
                     started anew; forks take a little longer then",
                    mount.display()
                )
            }),
            ..Finding::ok(NAME, survey.to_string())
        },
        Err(Missing::NotMounted) => Finding::warn(
            NAME,
            format!("{survey}: programs are held by SIGSTOP and end one by one"),
            "`sudo mkdir -p /sys/fs/cgroup/unified && sudo mount -t cgroup2 none /sys/fs/cgroup/unified`",
        ),
        Err(Missing::NotWritable { .. }) => Finding::warn(
            NAME,
            format!("{survey}: programs are held by SIGSTOP and end one by one"),
            "run in a cgroup of your own (`systemd-run --user --scope -p Delegate=yes talea run ...`), or under `sudo`",
        ),
        Err(Missing::Old { since, .. }) => {
            let remedy = format!("Linux {since} or later");
            Finding::warn(NAME, format!("{survey}: programs are held by SIGSTOP and end one by one"), remedy)
        }
    }
}

const PRIORITY: &str = "real-time priority";

/// Lanes use levels well below it, but a machine that grants the highest grants all.
fn real_time_priority() -> Finding {
    let highest = Policy::Fifo(99);
    match in_scratch_thread(move || sched::set_self(highest)) {
        Ok(()) => Finding::ok(PRIORITY, "SCHED_FIFO works up to priority 99"),
        Err(SchedError::PriorityNotPermitted { limit, .. }) if limit > 0 => {
            let priority = limit.min(99) as u8;
            match in_scratch_thread(move || sched::set_self(Policy::Fifo(priority))) {
                Ok(()) => Finding::warn(
                    PRIORITY,
                    format!("SCHED_FIFO works up to priority {priority}, the limit of this user"),
                    "enough for as many lanes; for more: `sudo setcap cap_sys_nice+ep $(command -v talea)`, or \
                     \"@realtime - rtprio 99\" in /etc/security/limits.conf and a new login",
                ),
                Err(error) => priority_refused(&error),
            }
        }
        Err(error) => priority_refused(&error),
    }
}

fn priority_refused(error: &SchedError) -> Finding {
    Finding::fail(
        PRIORITY,
        format!("none: {error}"),
        "`sudo setcap cap_sys_nice+ep $(command -v talea)`, or run under `sudo`, or \"@realtime - rtprio 99\" in \
         /etc/security/limits.conf with your user in the group and a new login; in a container: `--cap-add=sys_nice` \
         and `--ulimit rtprio=99`",
    )
}

fn reservations() -> Finding {
    const NAME: &str = "deadline reservations";
    let period = Duration::from_millis(100);
    let wanted = Policy::Deadline { runtime: Duration::from_millis(1).as_work(), deadline: period, period };
    // A scratch thread inherits the caller's CPUs, and a reservation wants all of them.
    let tried = in_scratch_thread(move || {
        let allowed = affinity::allowed().map_err(|error| error.to_string())?;
        affinity::set(None, &allowed).map_err(|error| error.to_string())?;
        sched::set_self(wanted).map_err(|error| error.to_string())
    });
    match tried {
        Ok(()) => Finding::ok(NAME, "SCHED_DEADLINE works (tried 1 ms every 100 ms)"),
        Err(error) => Finding::warn(
            NAME,
            format!("none: {error}"),
            "`sudo setcap cap_sys_nice+ep $(command -v talea)`; the process must be allowed on every CPU of its \
             root domain; without it reservations are scheduled by Talea itself",
        ),
    }
}

/// `read` finds a file's text; the cgroup file of the kernel is `membership`.
fn cgroup_budget(membership: &str, read: impl Fn(&str) -> Option<String>) -> Finding {
    const NAME: &str = "cgroup real-time budget";
    // Version 1 lines are "4:cpu,cpuacct:/path", version 2 is "0::/path".
    let path = membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == "cpu").then_some(path)
    });
    let Some(path) = path else {
        return Finding::ok(NAME, "no version 1 cpu controller, so no budget is imposed");
    };
    let directory = format!("/sys/fs/cgroup/cpu{}", path.trim_end_matches('/'));
    let file = format!("{directory}/cpu.rt_runtime_us");
    match read(&file).map(|text| text.parse::<i64>()) {
        None => Finding::ok(NAME, "the kernel does not divide real-time time among cgroups"),
        Some(Ok(0)) => Finding::fail(
            NAME,
            format!("{file} is 0: no thread of this group may be real-time"),
            format!(
                "`echo 950000 | sudo tee {file}` (parents first), or move the process to the root group: \
                     `echo $$ | sudo tee /sys/fs/cgroup/cpu/cgroup.procs`"
            ),
        ),
        Some(Ok(budget)) => Finding::ok(NAME, format!("{file} is {budget}")),
        Some(Err(_)) => {
            Finding::warn(NAME, format!("{file} is not a number"), "look at the cgroup's settings")
        }
    }
}

/// More than the runtime of any system here needs once stacks are sized as asked.
const LOCKED_BYTES: usize = 256 << 20;

fn memory_locking() -> Finding {
    const NAME: &str = "memory locking";
    let area: Vec<u8> = Vec::with_capacity(LOCKED_BYTES);
    let address = area.as_ptr() as *mut c_void;
    // SAFETY: the area is allocated for as long as it is locked, locking changes no contents, and
    // ONFAULT keeps the kernel from populating it.
    let tried = unsafe {
        mlock_with(address, LOCKED_BYTES, MlockFlags::ONFAULT).and_then(|()| munlock(address, LOCKED_BYTES))
    };
    match tried {
        Ok(()) => Finding::ok(NAME, format!("{} MiB can be locked", LOCKED_BYTES >> 20)),
        Err(Errno::NOSYS) => {
            Finding::warn(NAME, "this kernel has no mlock2 to try with", "use Linux 4.4 or later")
        }
        Err(errno) => Finding::warn(
            NAME,
            format!(
                "{} MiB cannot be locked ({errno}): RLIMIT_MEMLOCK is {}",
                LOCKED_BYTES >> 20,
                memory::memlock_limit()
            ),
            "`ulimit -l unlimited`, or \"@realtime - memlock unlimited\" in /etc/security/limits.conf and a new \
             login; `sudo setcap cap_sys_nice,cap_ipc_lock+ep $(command -v talea)`; systemd LimitMEMLOCK=infinity",
        ),
    }
}

fn cpus() -> Finding {
    const NAME: &str = "CPUs";
    match affinity::allowed() {
        Ok(allowed) => {
            let online = read("/sys/devices/system/cpu/online").unwrap_or_else(|| "unknown".into());
            let found = format!("this process may use {} of {online} online", affinity::list(&allowed));
            if allowed.len() > 1 {
                return Finding::ok(NAME, found);
            }
            Finding::warn(
                NAME,
                found,
                "with one CPU, releases and measurements share it with the work; widen the cpuset \
                 (`taskset`, systemd AllowedCPUs=, `docker run --cpuset-cpus`)",
            )
        }
        Err(error) => {
            Finding::fail(NAME, error.to_string(), "allow sched_setaffinity in the seccomp profile in force")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_group_without_real_time_budget_is_a_failure() {
        let membership = "4:memory:/jobs\n1:cpu,cpuacct:/jobs\n0::/";
        let finding = cgroup_budget(membership, |path| {
            assert_eq!(path, "/sys/fs/cgroup/cpu/jobs/cpu.rt_runtime_us");
            Some("0".into())
        });
        assert_eq!(finding.status, Status::Fail);
        assert!(finding.remedy.unwrap().contains("/sys/fs/cgroup/cpu/jobs/cpu.rt_runtime_us"));
    }

    #[test]
    fn moves_that_are_slow_are_told_of_where_programs_can_be_held() {
        let found = |slow_moves: Option<&str>| {
            let unified = Unified { home: "/cg/own".into(), slow_moves: slow_moves.map(Into::into) };
            let missing = Err(Missing::NotMounted);
            control_groups(&Survey { unified: Ok(unified), cpuset: missing, version_1: Vec::new() })
        };
        assert_eq!((found(None).status, found(None).remedy), (Status::Ok, None));
        let Finding { status, remedy, .. } = found(Some("/cg"));
        assert_eq!(status, Status::Ok);
        assert!(remedy.is_some_and(|told| told.contains("remount,favordynmods /cg`")));
    }

    #[test]
    fn a_group_with_budget_or_without_the_controller_is_fine() {
        let status =
            |membership, text: Option<&str>| cgroup_budget(membership, |_| text.map(str::to_owned)).status;
        assert_eq!(status("1:cpu:/", Some("950000")), Status::Ok);
        assert_eq!(status("1:cpu:/", None), Status::Ok);
        assert_eq!(status("0::/user.slice", Some("0")), Status::Ok);
        assert_eq!(status("3:cpuset:/", Some("0")), Status::Ok);
        assert_eq!(status("1:cpu:/", Some("much")), Status::Warn);
    }
}
