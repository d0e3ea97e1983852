//! What a recording has come to.

use super::Options;
use crate::cli::failure::path_shown;
use crate::cli::output::tell;
use talea_record::LossCause;
use talea_recording::kernel::KernelTotals;
use talea_recording::recording::Recorded;

/// Prints what was recorded: on standard error, because standard output is the command's.
pub fn summarise(options: &Options, recorded: &Recorded) {
    let kernel = recorded.kernel.as_ref();
    let of_kernel =
        kernel.map_or(String::new(), |totals| format!(", {} of them the kernel's", totals.records));
    tell!("{}: {} records{of_kernel}", path_shown(&options.out), recorded.records);
    if recorded.cut_off > 0 {
        tell!("note: the run was cut off: its process was gone before it had ended");
    }
    for (cause, count) in &recorded.lost {
        let (what, help) = match cause {
            LossCause::Overwritten => (
                "were overwritten before they could be read",
                "--ring-records N gives rings more room, --priority P has them emptied in time",
            ),
            LossCause::RecorderFull => (
                "were overwritten while the recorder had no memory for them",
                "--memory gives it more; a faster disk or fewer --events need less",
            ),
            LossCause::NoRing => ("were of threads that found no ring", "--rings N gives the program more"),
            LossCause::Damaged => ("were damaged", ""),
        };
        tell!("warning: {count} records of programs {what}; the trace says where");
        if !help.is_empty() {
            tell!("  help: {help}");
        }
    }
    let of_kernel = kernel.map_or(0, KernelTotals::lost_in_all);
    if of_kernel > 0 {
        tell!(
            "warning: {of_kernel} kernel events were lost, for its buffers were full; the trace says where"
        );
        tell!("  help: --kernel-buffer SIZE gives it more room");
    }
    if recorded.late > 0 {
        tell!(
            "note: {} records came late, which costs memory on reading; readers have them in order",
            recorded.late
        );
    }
}
