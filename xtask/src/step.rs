//! Steps of a developer command: programs run one after the other until one fails.

use std::process::{Command, ExitCode};
use std::time::Instant;

/// One program to run from the root of the repository.
pub struct Step {
    name: String,
    program: Vec<String>,
    environment: Vec<(String, String)>,
    /// Run `program` only if this fails.
    unless: Option<Vec<String>>,
    need: Need,
}

/// What it means that a step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The command fails.
    Required,
    /// Some tests will be skipped, and say so.
    Optional,
}

impl Step {
    /// `cargo` with these arguments.
    pub fn cargo(name: &str, arguments: &[&str]) -> Self {
        let program = std::iter::once("cargo").chain(arguments.iter().copied()).map(String::from);
        Step {
            name: name.into(),
            program: program.collect(),
            environment: Vec::new(),
            unless: None,
            need: Need::Required,
        }
    }

    /// Installs a toolchain component unless `cargo` with `probe` works.
    pub fn install_component(component: &str, probe: &[&str]) -> Self {
        Step {
            name: format!("toolchain component {component}"),
            program: ["rustup", "component", "add", component].map(String::from).to_vec(),
            environment: Vec::new(),
            unless: Some(std::iter::once("cargo").chain(probe.iter().copied()).map(String::from).collect()),
            need: Need::Required,
        }
    }

    /// Installs a package of Debian, unless the program `probe` works. It needs root and apt-get; where they are missing,
    /// or it fails, the tests that want the package are skipped and say so.
    pub fn install_package(package: &str, probe: &[&str]) -> Self {
        let install = format!("apt-get install -y -q {package}");
        let script = format!(
            "[ \"$(id -u)\" = 0 ] || {{ echo 'only root may install it'; exit 1; }}; \
             command -v apt-get >/dev/null || {{ echo 'there is no apt-get'; exit 1; }}; \
             {install} || {{ apt-get update -q && {install}; }}"
        );
        Step {
            name: format!("package {package}"),
            program: ["sh".into(), "-c".into(), script].to_vec(),
            environment: vec![("DEBIAN_FRONTEND".into(), "noninteractive".into())],
            unless: Some(probe.iter().copied().map(String::from).collect()),
            need: Need::Optional,
        }
    }

    /// The same with an environment variable.
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    fn run(&self) -> Result<(), String> {
        if let Some(probe) = &self.unless {
            let works =
                Command::new(&probe[0]).args(&probe[1..]).output().is_ok_and(|out| out.status.success());
            if works {
                return Ok(());
            }
        }
        println!("==> {}: {}", self.name, self.program.join(" "));
        let start = Instant::now();
        let status = Command::new(&self.program[0])
            .args(&self.program[1..])
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .current_dir(root())
            .status()
            .map_err(|error| format!("{}: cannot run {}: {error}", self.name, self.program[0]))?;
        println!("    {} took {:.1} s", self.name, start.elapsed().as_secs_f64());
        match (status.success(), self.need) {
            (true, _) => Ok(()),
            (false, Need::Required) => Err(format!("{} failed: {status}", self.name)),
            (false, Need::Optional) => {
                println!("    skipped: {} is missing, and so are the tests that want it", self.name);
                Ok(())
            }
        }
    }
}

/// Runs the steps in order and stops at the first that fails.
pub fn run_all(steps: &[Step]) -> ExitCode {
    for step in steps {
        if let Err(message) = step.run() {
            eprintln!("xtask: {message}");
            return ExitCode::FAILURE;
        }
    }
    println!("xtask: all of it passed");
    ExitCode::SUCCESS
}

/// The root of the repository.
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lives in the repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(need: Need) -> Step {
        let program = vec!["false".to_owned()];
        Step { name: "test".into(), program, environment: Vec::new(), unless: None, need }
    }

    #[test]
    fn only_required_steps_may_fail_the_command() {
        assert!(failing(Need::Required).run().is_err());
        assert!(failing(Need::Optional).run().is_ok());
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let there = Step { unless: Some(vec!["true".into()]), ..failing(Need::Required) };
        assert!(there.run().is_ok());
    }
}
