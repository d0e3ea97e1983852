//! Dependencies between the crates point one way: down this list.

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Every crate of the workspace; each may depend only on crates before it.
const ORDER: [&str; 13] = [
    "talea-time",
    "talea-measure",
    "talea-guarantee",
    "talea-model",
    "talea-interchange",
    "talea-policy",
    "talea-analysis",
    "talea-trace",
    "talea-sim",
    "talea-runtime",
    "talea-lab",
    "talea",
    "xtask",
];

/// Pairs that never know each other, although the order would allow it: both drive the same policies.
const STRANGERS: [(&str, &str); 1] = [("talea-runtime", "talea-sim")];

#[test]
fn dependencies_point_down() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata works in the workspace");
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let Some(own) = place(&package.name) else {
            wrong.push(format!("{} has no place in the order", package.name));
            continue;
        };
        let normal =
            package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        for dependency in normal {
            let strangers = STRANGERS.contains(&(package.name.as_str(), dependency.name.as_str()));
            if strangers || place(&dependency.name).is_some_and(|other| other >= own) {
                wrong.push(format!("{} must not depend on {}", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(metadata.packages.len(), ORDER.len(), "a crate in the order is missing from the workspace");
}
