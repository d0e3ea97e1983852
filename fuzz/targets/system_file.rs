//! Any text as a system file (`held_file.rs` among the tests of `talea-model`).

#![no_main]

#[path = "../../crates/model/tests/model/held_file.rs"]
mod held_file;

use libfuzzer_sys::fuzz_target;

/// Tasks, hierarchies, values, channels, windows and nodes.
const FILES: [&str; 8] = [
    include_str!("../../crates/model/tests/good/data.toml"),
    include_str!("../../crates/model/tests/good/everything.toml"),
    include_str!("../../crates/model/tests/good/hierarchy.toml"),
    include_str!("../../crates/model/tests/good/inline.toml"),
    include_str!("../../crates/model/tests/good/windows.toml"),
    include_str!("../../examples/hello.toml"),
    include_str!("../../examples/notification.toml"),
    include_str!("../../examples/two-nodes.toml"),
];

fuzz_target!(
    init: talea_fuzz::seed(FILES.into_iter().map(|file| file.as_bytes().to_vec())),
    |data: &[u8]| held_file::hold(&String::from_utf8_lossy(data))
);
