//! Within a crate, its top-level modules depend on each other in one direction: no circle of `use` leads back.
//!
//! What a file names of its own crate is found in its text: paths that begin with `crate::`, or with as many `super::` as lead to the
//! crate's root, and names that the root re-exports from a module. Comments, and modules of tests, do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What the modules of a crate name of each other: from, to, and a file that does.
type Uses = BTreeMap<String, BTreeMap<String, PathBuf>>;

fn crates() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
    let entries = fs::read_dir(folder).expect("the crates are there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("it is readable").path()).collect();
    found.sort();
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("it is readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The text without comments and without what stands behind `#[cfg(test)]`, which by habit ends a file.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("sources are text");
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The code with paths that climb from the module of `file`, which is below `source`, to the crate's root written from there.
fn from_root(file: &Path, source: &Path, code: &str) -> String {
    let below = file.strip_prefix(source).expect("it is below").with_extension("");
    let steps = below.iter().filter(|step| *step != "mod").count();
    code.replace(&"super::".repeat(steps), "crate::")
}

/// The first name of each path in a tree of paths such as `a::b, c::{d, e}`.
fn first_names(tree: &str) -> Vec<String> {
    let (mut names, mut depth, mut path) = (Vec::new(), 0, String::new());
    for letter in tree.chars().chain([',']) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(std::mem::take(&mut path)),
            _ => {}
        }
        if depth == 0 && letter != ',' {
            path.push(letter);
        }
    }
    let first =
        |path: String| path.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(String::from);
    names.into_iter().filter_map(first).filter(|name| !name.is_empty()).collect()
}

/// The braces at the beginning of `text` with what is in them, or the path there.
fn tree_at(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('{') else {
        return text.split([';', ',', ')', '{', '\n']).next().unwrap_or_default();
    };
    let mut depth = 1;
    let end = inner.find(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth == 0
    });
    &inner[..end.unwrap_or(inner.len())]
}

/// Names that the root takes from a module: the name and the module.
fn reexported(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root.split("pub use ").chain(root.split("pub(crate) use ")).skip(1) {
        let path = statement.split(';').next().unwrap_or_default();
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            found.entry(name.to_owned()).or_insert_with(|| module.trim().to_owned());
        }
    }
    found
}

fn uses(source: &Path) -> Uses {
    let root = source.join("lib.rs");
    let reexported = if root.exists() { reexported(&code(&root)) } else { BTreeMap::new() };
    let mut files = Vec::new();
    sources(source, &mut files);
    let module = |file: &Path| {
        let first = file.strip_prefix(source).expect("it is below").iter().next().expect("a name");
        first.to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).collect();
    let mut uses = Uses::new();
    for file in files.iter().filter(|file| file.file_name().is_some_and(|name| name != "tests.rs")) {
        let (from, code) = (module(file), from_root(file, source, &code(file)));
        if ["lib", "main"].contains(&from.as_str()) {
            continue;
        }
        for (at, _) in code.match_indices("crate::").filter(|(at, _)| !code[..*at].ends_with(['$', '_'])) {
            for name in first_names(tree_at(&code[at + "crate::".len()..])) {
                let to = if modules.contains(&name) { Some(&name) } else { reexported.get(&name) };
                let Some(to) = to.filter(|to| **to != from && modules.contains(*to)) else { continue };
                uses.entry(from.clone()).or_default().entry(to.clone()).or_insert_with(|| file.clone());
            }
        }
    }
    uses
}

/// A way from `module` back to itself, if there is one.
fn circle(uses: &Uses, module: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![module.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        for next in uses.get(way.last().expect("it has a beginning")).into_iter().flat_map(BTreeMap::keys) {
            let longer = way.iter().chain([next]).cloned().collect();
            if next == module {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

#[test]
fn no_circle_leads_through_the_modules_of_a_crate() {
    for package in crates() {
        let name = package.file_name().expect("a name").to_string_lossy().into_owned();
        let uses = uses(&package.join("src"));
        let found = uses.keys().find_map(|module| circle(&uses, module));
        if let Some(way) = found {
            let because = way.windows(2).map(|pair| {
                let file = &uses[&pair[0]][&pair[1]];
                format!("\n    {} names {} in {}", pair[0], pair[1], file.display())
            });
            panic!("{name}: {}", because.collect::<String>());
        }
    }
}

#[test]
fn paths_to_the_root_are_found_however_they_are_written() {
    let from = |file: &str, code| from_root(Path::new(file), Path::new("src"), code);
    assert_eq!(from("src/lane.rs", "use super::job::Job;"), "use crate::job::Job;");
    assert_eq!(from("src/lane/mod.rs", "use super::job::Job;"), "use crate::job::Job;");
    assert_eq!(from("src/lane/queue.rs", "use super::Lane;"), "use super::Lane;");
    assert_eq!(from("src/lane/queue.rs", "use super::super::job::Job;"), "use crate::job::Job;");
}

#[test]
fn paths_are_found_in_trees() {
    assert_eq!(first_names("record::{Event, Record}, ring, merge::Merge as M"), ["record", "ring", "merge"]);
    assert_eq!(tree_at("{a::{b, c}, d};\nuse x;"), "a::{b, c}, d");
    assert_eq!(tree_at("time::Instant;"), "time::Instant");
    assert_eq!(first_names(tree_at("names::{Names, causes};")), ["names"]);
    let reexported = reexported("pub use ring::{Ring, reader::Reader};\nmod ring;\npub use record::Record;");
    assert_eq!(reexported["Reader"], "ring");
    assert_eq!(reexported["Record"], "record");
}
