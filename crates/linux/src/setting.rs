//! Settings of the kernel, as files of proc and sys.

/// A file of proc or sys without the surrounding blanks; `None` where it is missing or closed to us.
pub fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
