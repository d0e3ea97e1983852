//! Who is at the other end of a Unix socket.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The process that has connected, as it was then. It may have ended since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number; 0 if it is in a PID namespace that this one does not see.
    pub process: u32,
    /// The number of the user as whom it runs.
    pub user: u32,
}

/// The process at the other end of `stream`.
///
/// # Errors
/// The kernel's, if it is no connected socket.
pub fn of(stream: &UnixStream) -> io::Result<Peer> {
    // `rustix` has this call, too, with a number that cannot be 0.
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes no more than `length` bytes to `found`, which are three numbers, whatever they are.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    match code {
        0 => Ok(Peer { process: u32::try_from(found.pid).unwrap_or(0), user: found.uid }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_this_process() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let own = Peer { process: std::process::id(), user: rustix::process::getuid().as_raw() };
        assert_eq!((of(&one).expect("connected"), of(&other).expect("connected")), (own, own));
    }
}
