//! Has the linker merge identical functions, and leave their names out unless debug information is asked for: that makes the command a quarter smaller.
//! A panic tells its file and line without names. (`strip` of a profile does not reach a package that has an optimisation level of its own.)

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    // There rustc brings LLD and links with it, unless somebody has chosen otherwise. Other linkers may not know the options.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = std::env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") && !is_chosen {
        let names = if is("DEBUG", "false") { ",--strip-all" } else { "" };
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all{names}");
    }
}
