//! `talea new`: a project to start from. That its code compiles and runs, the library's examples show, one of which it is.

use crate::support::{folder, run, within};
use std::path::Path;

#[test]
fn a_project_is_made_that_can_be_checked_and_simulated() {
    let place = folder();
    let project = within(&place, "first");
    let made = run(&["new", &project]).exits(0);
    assert!(made.stderr.contains("./run.sh") && made.stderr.contains("cargo test"), "{}", made.stderr);
    let system = format!("{project}/system.toml");
    run(&["check", &system]).exits(0);
    run(&["sim", &system, "--for", "1s"]).exits(0);
    let manifest = std::fs::read_to_string(format!("{project}/Cargo.toml")).expect("it is there");
    assert!(manifest.contains("name = \"first\""), "{manifest}");
    let library = manifest.split("talea = { path = ").nth(1).and_then(|rest| rest.split(" }").next());
    let library: String = serde_json::from_str(library.expect("it depends on talea")).expect("a text");
    assert!(Path::new(&library).join("src/lib.rs").is_file(), "{library}");
}

#[test]
fn nothing_is_overwritten_and_names_are_checked() {
    let place = folder();
    let project = within(&place, "first");
    std::fs::create_dir(&project).expect("made");
    let refused = run(&["new", &project]).exits(2);
    assert!(refused.stderr.contains("is there already"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(&project).expect("readable").count(), 0);
    for name in ["1st", "talea", "a b", ".."] {
        assert!(
            run(&["new", &within(&place, name)]).exits(2).stderr.contains("no name for a project"),
            "{name}"
        );
    }
    let nowhere = within(&place, "nowhere");
    let refused = run(&["new", &within(&place, "second"), "--talea", &nowhere]).exits(2);
    assert!(refused.stderr.contains("--talea"), "{}", refused.stderr);
    assert!(!Path::new(&within(&place, "second")).exists());
    assert!(run(&["new", &format!("{nowhere}/deep")]).exits(2).stderr.contains("make it first"));
}
