//! Small programs that the kernel runs at its tracepoints (BPF), as far as Talea needs them: maps, programs of hand-assembled
//! instructions, raw tracepoints whose arguments are typed by the kernel's own description of its types (BTF).
//!
//! What the kernel calls a program here is a page of instructions, which it verifies and translates; a library that compiles or
//! relocates them would be larger than all that is done with it.
//!
//! | File | What it holds |
//! |---|---|
//! | `call` | the system call |
//! | `assembler` | instructions with labels |
//! | `btf` | where a kernel structure has a field, and the types by which tracepoints are attached |
//! | `map` | tables that programs and this process share; arrays as memory |
//! | `ring` | what programs tell at once |
//! | `program` | loading, with the verifier's words where it refuses; attaching |
//!
//! Everything ends with its descriptors: a process that is killed leaves nothing attached.

pub mod assembler;
pub mod btf;
#[expect(unsafe_code, reason = "the system call takes addresses")]
mod call;
#[expect(unsafe_code, reason = "arrays are memory that the kernel shares")]
pub mod map;
pub mod program;
pub mod ring;

use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why the kernel runs no program of ours.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BpfError {
    /// The caller may not.
    #[error(
        "BPF is not permitted ({what}: {errno}): it takes CAP_BPF and CAP_PERFMON; `sudo setcap \
         cap_bpf,cap_perfmon,cap_sys_nice+ep $(command -v talea)`; in a container: `--cap-add=bpf --cap-add=perfmon`, and \
         a seccomp profile that allows bpf(2)"
    )]
    NotPermitted {
        /// What was tried.
        what: &'static str,
        /// The kernel's refusal.
        errno: Errno,
    },
    /// There is no description of the kernel's types, or not of this one.
    #[error(
        "this kernel does not describe {0} (/sys/kernel/btf/vmlinux); it takes CONFIG_DEBUG_INFO_BTF and Linux 5.18 or later"
    )]
    NoTypes(String),
    /// The verifier refuses a program.
    #[error("the kernel's verifier refuses the program {name}: {errno}; {log}")]
    Refused {
        /// Of the program.
        name: &'static str,
        /// The kernel's refusal.
        errno: Errno,
        /// The verifier's last words.
        log: String,
    },
    /// Anything else.
    #[error("{what}: {errno}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// The kernel's refusal.
        errno: Errno,
    },
    /// Threads have other numbers here than in the kernel's own words.
    #[error(
        "this process is in a pid namespace, and the kernel names threads by their numbers outside of it"
    )]
    PidNamespace,
}

impl BpfError {
    pub(crate) fn of(what: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS | Errno::NOSYS => BpfError::NotPermitted { what, errno },
            _ => BpfError::Os { what, errno },
        }
    }
}

impl From<BpfError> for io::Error {
    fn from(error: BpfError) -> Self {
        io::Error::other(error)
    }
}
