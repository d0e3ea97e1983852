//! Asks the linker to keep functions that came out the same once and to leave their names out, which takes the command down by a quarter. Nobody needs
//! the names at run time: a panic tells its file and line. (`strip` of a profile does not reach a package that has an optimisation level of its own.)

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    // There rustc brings LLD and links with it, unless somebody has chosen otherwise. Other linkers may not know the options.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = std::env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") && !is_chosen {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all,--strip-all");
    }
}
