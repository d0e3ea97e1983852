//! What people already have, to and from a system description.

#![forbid(unsafe_code)]
