//! What figures in the documentation were measured on.

use crate::step::root;
use std::process::Command;

/// Machine, kernel, toolchain and commit, as a list, with what else is to be said of the run.
///
/// # Errors
/// Something about the machine cannot be found out.
pub fn described(run: &str) -> Result<String, String> {
    let cpuinfo =
        std::fs::read_to_string("/proc/cpuinfo").map_err(|error| format!("/proc/cpuinfo: {error}"))?;
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let load = std::fs::read_to_string("/proc/loadavg").map_err(|error| format!("/proc/loadavg: {error}"))?;
    let load = load.split_whitespace().next().unwrap_or("?");
    let virtual_machine = if cpuinfo.contains("hypervisor") { ", a virtual machine" } else { "" };
    let changed = !first_line("git", &["status", "--porcelain", "--untracked-files=no"])?.eq("unknown");
    Ok([
        format!("* machine: {cpus} × {}{virtual_machine}", model.trim_start_matches(['\t', ' ', ':'])),
        format!("* kernel: {}", first_line("uname", &["-sr"])?),
        format!("* toolchain: {}", first_line("rustc", &["--version"])?),
        format!(
            "* commit: {}{}",
            first_line("git", &["rev-parse", "--short", "HEAD"])?,
            if changed { " with uncommitted changes" } else { "" }
        ),
        format!("* {run}; load average at the end: {load}"),
    ]
    .join("\n"))
}

fn first_line(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("unknown").to_string())
}
