//! What bytes from strangers may ask for.

/// How large an event may be that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All of it, in bytes.
    pub bytes: usize,
    /// Each name of a domain, type, event, property, label or encoding, in bytes.
    pub name_bytes: usize,
    /// Properties of each list.
    pub properties: usize,
    /// Values within values.
    pub depth: usize,
}

impl Default for Limits {
    /// A mebibyte, names of 255 bytes, 256 properties, 16 levels.
    fn default() -> Self {
        Limits { bytes: 1 << 20, name_bytes: 255, properties: 256, depth: 16 }
    }
}
