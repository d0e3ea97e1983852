//! The system call bpf(2), and what it is told in which bytes.

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;

/// Of `enum bpf_cmd`.
#[derive(Clone, Copy)]
pub(super) enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    Info = 15,
    OpenRawTracepoint = 17,
}

/// As much of `union bpf_attr` as is used; what is not said is 0, which the kernel takes for the default.
pub(super) struct Attributes {
    bytes: [u8; 128],
    length: usize,
}

impl Attributes {
    /// Of so many bytes.
    pub fn new(length: usize) -> Self {
        Attributes { bytes: [0; 128], length }
    }

    pub fn u32(self, at: usize, value: u32) -> Self {
        self.bytes(at, &value.to_ne_bytes())
    }

    pub fn descriptor(self, at: usize, of: BorrowedFd<'_>) -> Self {
        self.u32(at, of.as_raw_fd() as u32)
    }

    /// The address of something that lives until the call, and that the kernel may write to if it is an address to write to.
    pub fn address<T: ?Sized>(self, at: usize, of: *const T) -> Self {
        self.bytes(at, &(of.cast::<u8>().expose_provenance() as u64).to_ne_bytes())
    }

    pub fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }
}

/// Calls the kernel.
///
/// # Safety
/// What addresses among the attributes point to is as large as the command says, and writable where the kernel writes.
pub(super) unsafe fn call(command: Command, attributes: &mut Attributes) -> Result<i32, Errno> {
    // SAFETY: the attributes are as long as is said; the caller answers for addresses in them.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_int, attributes.bytes.as_mut_ptr(), attributes.length)
    };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(result as i32)
}

/// Calls the kernel, which answers with a descriptor. All of this kind that are used are made to be closed by exec.
///
/// # Safety
/// See [`call`]; the command is one that makes a descriptor.
pub(super) unsafe fn open(command: Command, attributes: &mut Attributes) -> Result<OwnedFd, Errno> {
    // SAFETY: as the caller says.
    let number = unsafe { call(command, attributes) }?;
    // SAFETY: the kernel has just made it, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
