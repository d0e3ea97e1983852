//! What the fuzz targets share: inputs to begin with.

use std::path::Path;

/// Where a target that starts writes inputs to begin with, one a file.
const FOLDER: &str = "TALEA_FUZZ_SEEDS";

/// Writes these inputs where the environment says, if it does. libFuzzer calls what is in `init` before it reads its corpus, so a target knows its
/// own seeds, and nothing else has to be built for them.
///
/// # Panics
/// The folder cannot be written to.
pub fn seed(inputs: impl IntoIterator<Item = Vec<u8>>) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    for (number, input) in inputs.into_iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{number:04}"));
        std::fs::write(&path, input).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The constraints of `vectors/etcl.json`, and their events as JSON.
///
/// # Panics
/// The file is not as its readme says.
pub fn vectors() -> Vec<(String, String)> {
    let text = include_str!("../../vectors/etcl.json");
    let cases: Vec<serde_json::Value> = serde_json::from_str(text).expect("a list of cases");
    let pair = |case: serde_json::Value| {
        let constraint = case["expr"].as_str().expect("each has a constraint").to_owned();
        (constraint, case["event"].to_string())
    };
    cases.into_iter().map(pair).collect()
}

/// Bytes of which any are an input, without any likeness between them: so many stretches of so many.
pub fn noise(stretches: usize, bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    // Xorshift (Marsaglia 2003), so that they are the same each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..stretches).map(move |_| (0..bytes).map(|_| next()).collect())
}
