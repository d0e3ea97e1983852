//! `talea new`.

use super::failure::{Failure, Verdict, path_shown};
use super::output::tell;
use clap::Args;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Make a project of your own: a source, a filter and a sink with code, to start from
///
/// The folder has a Cargo project that depends on the checkout which this command was built from, a system file, the code of its three
/// operations, a test of it in virtual time, and a script that runs it on threads.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea new first && cd first && ./run.sh     the first values in a minute
  talea new arm --talea ~/src/talea           by a checkout that is elsewhere")]
pub struct Options {
    /// The folder to make, whose name the project has
    name: PathBuf,
    /// The checkout of Talea to depend on [default: the one that this command was built from]
    #[arg(long, value_name = "FOLDER")]
    talea: Option<PathBuf>,
}

/// The project, which is an example of the library as well, so that it is compiled and tried with it.
const SYSTEM: &str = include_str!("../../../../examples/new/system.toml");
const MAIN: &str = include_str!("../../../../examples/new/src/main.rs");
const RUN: &str = include_str!("../../../../examples/new/run.sh");

pub fn main(options: &Options) -> super::Outcome {
    let library = library(options)?;
    let name = project_name(&options.name)?;
    let folder = &options.name;
    fs::create_dir(folder).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            format!("{} is there already, and nothing in it was touched", path_shown(folder)),
            "choose another name, or move it",
        ),
        _ => Failure::uncreated("the folder", folder, &cause),
    })?;
    let manifest = manifest(&name, &library);
    let files = [
        ("Cargo.toml", &*manifest),
        ("system.toml", SYSTEM),
        ("src/main.rs", MAIN),
        ("run.sh", RUN),
        (".gitignore", "/target\n"),
    ];
    for (file, text) in files {
        write(&folder.join(file), text)?;
    }
    let script = folder.join("run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .map_err(|cause| Failure::file("make executable", &script, cause))?;
    let shown = path_shown(folder);
    tell!("made {shown}: system.toml says what runs, src/main.rs is its code");
    tell!(
        "  cd {shown} && ./run.sh       runs it on threads; building the library for the first time takes a minute or two"
    );
    tell!("  cd {shown} && cargo test     tries it in virtual time");
    tell!("  talea check {shown}/system.toml");
    Ok(Verdict::Fine)
}

/// The library in the checkout.
fn library(options: &Options) -> Result<PathBuf, Failure> {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checkout = options.talea.as_deref().unwrap_or(&built_from);
    let library = checkout.join("crates/talea");
    let found = library.join("Cargo.toml").is_file().then(|| library.canonicalize().ok()).flatten();
    found.ok_or_else(|| {
        let message = format!("there is no checkout of Talea in {}", path_shown(checkout));
        Failure::new(message, "name the folder of one with --talea FOLDER: the one that has crates/talea")
    })
}

/// A name that Cargo takes for a package.
fn project_name(folder: &Path) -> Result<String, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.chars().all(is_word)
        && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name != "talea"
    {
        return Ok(name.to_owned());
    }
    let message = format!("\"{}\" is no name for a project", path_shown(folder));
    Err(Failure::new(
        message,
        "begin with a letter, go on with letters, digits, '-' and '_', and do not call it talea",
    ))
}

fn manifest(name: &str, library: &Path) -> String {
    // What JSON escapes in a text, TOML reads the same way.
    let path = serde_json::Value::from(library.to_string_lossy());
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ntalea = {{ path = {path} }}\n\n\
         # A project of its own, also where a workspace is around it.\n[workspace]\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|cause| Failure::uncreated("the folder", folder, &cause))?;
    }
    fs::write(path, text).map_err(|cause| Failure::uncreated("the file", path, &cause))
}
