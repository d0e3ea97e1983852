//! How large the buffers of a recording are.

/// The kernel's buffer for each processor, if it is granted: a tenth of a second of a million events a second.
pub const KERNEL_BUFFER: u64 = 8 << 20;

/// A number of bytes: 65536, 64K, 8M or 1G.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "it is a number of bytes, such as 65536, 64K, 8M or 1G".to_owned();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(wrong()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    // More than this is not mapped or allocated by anybody.
    bytes.filter(|bytes| (1..=1 << 40).contains(bytes)).ok_or_else(wrong)
}

pub fn at_least_two(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().map_err(|error| error.to_string())?;
    if number >= 2 { Ok(number) } else { Err("a ring has room for at least 2 records".into()) }
}
