//! Reading proc where nothing may be allocated, locked or panicked: in a process that was just forked from one with several
//! threads. Everything here makes async-signal-safe calls alone.

/// A path or a message of at most `N` bytes, which ends with a zero for the kernel. What does not fit is left out.
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    /// Nothing yet.
    pub const fn empty() -> Self {
        Text { bytes: [0; N], length: 0 }
    }

    /// The same with these bytes behind it.
    pub fn with(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            if self.length + 1 < N {
                self.bytes[self.length] = *byte;
                self.length += 1;
            }
        }
        self
    }

    /// The same with the digits of a number behind it.
    pub fn with_number(self, number: i32) -> Self {
        let mut digits = [0_u8; 10];
        let mut rest = number.unsigned_abs();
        let mut first = digits.len();
        while first == digits.len() || (rest > 0 && first > 0) {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.with(&digits[first..])
    }

    /// What it is, without the zero at its end.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn as_c(&self) -> *const libc::c_char {
        self.bytes.as_ptr().cast()
    }
}

/// An open file, closed with this.
pub struct File(libc::c_int);

impl File {
    /// Opens a file, which is not passed on to other programs; none if that is refused.
    pub fn open<const N: usize>(path: &Text<N>, flags: libc::c_int) -> Option<Self> {
        // SAFETY: the path is live and ends with a zero.
        let file = unsafe { libc::open(path.as_c(), flags | libc::O_CLOEXEC) };
        (file >= 0).then_some(File(file))
    }

    /// What is read of `buffer`'s size; nothing at the end or if it cannot be read.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        &buffer[..usize::try_from(read).unwrap_or(0)]
    }

    /// The same of a folder, in entries as the kernel gives them.
    fn entries<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { libc::syscall(libc::SYS_getdents64, self.0, buffer.as_mut_ptr(), buffer.len()) };
        &buffer[..usize::try_from(read).unwrap_or(0)]
    }

    /// Writes, and says whether all of it was taken.
    pub fn write(&self, bytes: &[u8]) -> bool {
        // SAFETY: the bytes are live.
        unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) == bytes.len() as isize }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: it was opened here and is used by nobody any more.
        unsafe { libc::close(self.0) };
    }
}

/// Writes `bytes` to the file at `path`, which is there.
pub fn write_to<const N: usize>(path: &Text<N>, bytes: &[u8]) -> bool {
    File::open(path, libc::O_WRONLY).is_some_and(|file| file.write(bytes))
}

/// Removes an empty folder; true if it is not there any more.
pub fn remove_folder<const N: usize>(path: &Text<N>) -> bool {
    // SAFETY: the path is live and ends with a zero.
    if unsafe { libc::rmdir(path.as_c()) } == 0 {
        return true;
    }
    // SAFETY: errno is the thread's own.
    unsafe { *libc::__errno_location() == libc::ENOENT }
}

/// Calls `each` with the numbers in a text of decimal numbers with anything between them.
pub fn numbers_of<const N: usize>(path: &Text<N>, mut each: impl FnMut(i32)) {
    let Some(file) = File::open(path, libc::O_RDONLY) else { return };
    let mut buffer = [0_u8; 512];
    let mut number = None;
    loop {
        let read = file.read(&mut buffer);
        for byte in read {
            match byte {
                b'0'..=b'9' => {
                    number =
                        Some(number.unwrap_or(0_i32).wrapping_mul(10).wrapping_add(i32::from(byte - b'0')));
                }
                _ => number.take().into_iter().for_each(&mut each),
            }
        }
        if read.is_empty() {
            return number.into_iter().for_each(each);
        }
    }
}

/// A copy of this process, for one with a single thread. Unlike the C library's it calls no handlers, which may wait for locks that others had held
/// when this process was forked itself. Returns like `fork(2)`, and below zero where that fails.
pub fn fork_alone() -> i32 {
    // SAFETY: without a stack the child goes on with its copy of the caller's; nothing is written for either.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32 }
}

/// Calls `each` with every thread of a process.
pub fn threads_of(process: i32, mut each: impl FnMut(i32)) {
    let path = Text::<40>::empty().with(b"/proc/").with_number(process).with(b"/task");
    let Some(folder) = File::open(&path, libc::O_RDONLY | libc::O_DIRECTORY) else { return };
    let mut buffer = [0_u8; 2048];
    loop {
        let mut entries = folder.entries(&mut buffer);
        if entries.is_empty() {
            return;
        }
        // An entry: inode, offset, its own length in two bytes, a type, and a name that ends with a zero.
        while let (Some(&low), Some(&high)) = (entries.get(16), entries.get(17)) {
            let length = usize::from(u16::from_ne_bytes([low, high]));
            let Some((entry, rest)) = entries.split_at_checked(length).filter(|_| length > 19) else {
                return;
            };
            if let Some(number) = number(&entry[19..]) {
                each(number);
            }
            entries = rest;
        }
    }
}

/// Calls `each` with every process that a thread has started and that still is its own.
pub fn children_of(process: i32, thread: i32, each: impl FnMut(i32)) {
    let path = Text::<64>::empty().with(b"/proc/").with_number(process).with(b"/task/").with_number(thread);
    numbers_of(&path.with(b"/children"), each);
}

/// A name that is a number.
fn number(name: &[u8]) -> Option<i32> {
    let digits = name.split(|byte| *byte == 0).next()?;
    let value = |sum: i32, byte: &u8| {
        sum.checked_mul(10)?.checked_add(i32::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, value) }
}

/// The numbers of a `stat` from its third field on, of which only the one at `field` (as proc(5) counts) is read.
///
/// *Whoever reads it may wait*: newer kernels read a `stat` under a lock (`exec_update_lock`) that a process holds in the middle of an exec. One that
/// is kept from running just then keeps its readers waiting, real-time or not. Nobody may read it who has to let that process run, or
/// who holds what others need for that. What `status` tells is told without waiting: [`crate::proc::activity`].
pub fn stat_field(tid: i32, field: usize) -> Option<u64> {
    let path = Text::<40>::empty().with(b"/proc/").with_number(tid).with(b"/stat");
    let file = File::open(&path, libc::O_RDONLY)?;
    let mut buffer = [0_u8; 512];
    let text = file.read(&mut buffer);
    // The name, in parentheses, may contain anything.
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(after + 2..)?.split(|byte| *byte == b' ');
    let digits = fields.nth(field.checked_sub(3)?)?;
    digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use rustix::thread::gettid;

    #[test]
    fn numbers_are_written_and_what_does_not_fit_is_left_out() {
        let text = Text::<12>::empty().with(b"a").with_number(0).with_number(-120);
        assert_eq!(text.bytes(), b"a0120");
        assert_eq!(text.with_number(i32::MAX).bytes(), b"a0120214748");
    }

    #[test]
    fn a_process_has_its_threads_and_children() {
        let own = getpid().as_raw_nonzero().get();
        let me = gettid().as_raw_nonzero().get();
        let mut found = 0;
        threads_of(own, |tid| found += u32::from(tid == me));
        assert_eq!(found, 1);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id() as i32;
        let mut children = Vec::new();
        threads_of(own, |tid| children_of(own, tid, |child| children.push(child)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(children.contains(&number), "{children:?}");
    }

    #[test]
    fn fields_are_counted_as_the_manual_does() {
        let own = getpid().as_raw_nonzero().get();
        const PARENT: usize = 4;
        let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get() as u64);
        assert_eq!(stat_field(own, PARENT), Some(parent));
        assert_eq!((stat_field(own, 3), stat_field(4_194_304, PARENT)), (None, None));
    }
}
