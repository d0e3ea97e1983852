//! Dependencies between the crates point one way, down this list, and the library has few.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeSet;
use std::process::Command;

/// Every crate of the workspace; each may depend only on crates before it.
const ORDER: [&str; 39] = [
    "talea-time",
    "talea-text",
    "talea-etcl-derive",
    "talea-etcl",
    "talea-event",
    "talea-wire",
    "talea-measure",
    "talea-statistics",
    "talea-ring",
    "talea-channel",
    "talea-linux",
    "talea-guarantee",
    "talea-model",
    "talea-interchange",
    "talea-policy",
    "talea-policy-tests",
    "talea-operation",
    "talea-analysis",
    "talea-record",
    "talea-notification",
    "talea-transport",
    "talea-samples",
    "talea-insight",
    "talea-replay",
    "talea-recording",
    "talea-export",
    "talea-c",
    "talea-sim",
    "talea-sim-tests",
    "talea-conformance",
    "talea-manage",
    "talea-runtime",
    "talea-check",
    "talea-campaign",
    "talea-figure",
    "talea-lab",
    "talea",
    "talea-cli",
    "xtask",
];

/// Pairs that never know each other, although the order would allow it: both drive the same policies.
const STRANGERS: [(&str, &str); 2] = [("talea-runtime", "talea-sim"), ("talea-manage", "talea-sim")];

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

/// As many crates may an embedding program have to compile for the library, the library itself and its rooms included.
const MOST_CRATES: usize = 90;

/// What only the command needs.
const COMMAND_ONLY: [&str; 7] =
    ["annotate-snippets", "clap", "comfy-table", "indicatif", "parquet", "plotters", "png"];

#[test]
fn the_library_has_few_dependencies() {
    // The tree of the package by itself: metadata have the features that the whole workspace switches on.
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "talea", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).expect("names of crates");
    let crates: BTreeSet<&str> = text.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let name = |line: &&str| line.split(' ').next().unwrap_or_default().to_owned();
    let unwanted: Vec<String> =
        crates.iter().map(name).filter(|name| COMMAND_ONLY.contains(&name.as_str())).collect();
    assert!(unwanted.is_empty(), "the library depends on {}", unwanted.join(", "));
    assert!(crates.len() <= MOST_CRATES, "the library needs {} crates:\n{text}", crates.len());
}
