//! Programs: loaded, verified and attached.

use super::BpfError;
use super::call::{Attributes, Command};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// A program of tracing (`BPF_PROG_TYPE_TRACING`).
const TRACING: u32 = 26;
/// At a tracepoint whose arguments are typed (`BPF_TRACE_RAW_TP`).
const AT_TRACEPOINT: u32 = 23;
/// What programs say of themselves for functions that the kernel offers to such alone.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";
const LOG_BYTES: usize = 1 << 18;
/// So much of the verifier's words is shown: the last say why it refuses.
const LOG_SHOWN: usize = 600;

/// A program at its tracepoint. Dropping it takes it away.
#[derive(Debug)]
pub struct Attached {
    /// Closed first, which detaches.
    _link: OwnedFd,
    program: OwnedFd,
}

impl Attached {
    /// Loads and attaches a program. `typedef` is the number of the tracepoint's type.
    ///
    /// # Errors
    /// See [`BpfError`].
    pub fn new(name: &'static str, instructions: &[u64], typedef: u32) -> Result<Self, BpfError> {
        let program = load(name, instructions, typedef, &mut []).or_else(|errno| {
            // Only who is refused asks why.
            let mut log = vec![0; LOG_BYTES];
            load(name, instructions, typedef, &mut log).map_err(|again| match again {
                Errno::PERM => BpfError::of("a program", errno),
                _ => BpfError::Refused { name, errno: again, log: shown(&log) },
            })
        })?;
        let mut attributes = Attributes::new(16).descriptor(8, program.as_fd());
        let link = open(Command::OpenRawTracepoint, &mut attributes);
        let link = link.map_err(|errno| BpfError::of("attaching a program", errno))?;
        Ok(Attached { _link: link, program })
    }

    /// How often it was not run because it was running on the same processor. None where the kernel does not say.
    pub fn missed(&self) -> Option<u64> {
        const INFO_BYTES: usize = 240;
        const MISSED_AT: usize = 208;
        let mut info = [0_u8; INFO_BYTES];
        let mut attributes = Attributes::new(16)
            .descriptor(0, self.program.as_fd())
            .u32(4, INFO_BYTES as u32)
            .address(8, info.as_mut_ptr().cast_const());
        info_of(&mut attributes).ok()?;
        Some(u64::from_ne_bytes(info[MISSED_AT..MISSED_AT + 8].try_into().ok()?))
    }
}

#[expect(unsafe_code, reason = "the system call takes addresses")]
fn info_of(attributes: &mut Attributes) -> Result<i32, Errno> {
    // SAFETY: the only caller says where there are as many bytes as it says.
    unsafe { super::call::call(Command::Info, attributes) }
}

#[expect(unsafe_code, reason = "the system call takes addresses")]
fn open(command: Command, attributes: &mut Attributes) -> Result<OwnedFd, Errno> {
    // SAFETY: what the callers point to lives during the call and is as large as they say; both commands make a descriptor.
    unsafe { super::call::open(command, attributes) }
}

fn load(name: &str, instructions: &[u64], typedef: u32, log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let mut attributes = Attributes::new(120)
        .u32(0, TRACING)
        .u32(4, instructions.len() as u32)
        .address(8, instructions.as_ptr())
        .address(16, LICENCE.as_ptr())
        .bytes(48, &name.as_bytes()[..name.len().min(15)])
        .u32(68, AT_TRACEPOINT)
        .u32(108, typedef);
    if !log.is_empty() {
        attributes =
            attributes.u32(24, 1).u32(28, log.len() as u32).address(32, log.as_mut_ptr().cast_const());
    }
    open(Command::ProgramLoad, &mut attributes)
}

fn shown(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let text = text.trim_end();
    let from = text.char_indices().rev().map(|(at, _)| at).nth(LOG_SHOWN).unwrap_or(0);
    text[from..].replace('\n', " | ")
}
