//! Execution times: a constant, a uniform range, a list, or a trace file.

use super::file;
use super::values::{Misfit, Reading, elements, found, time};
use crate::execution::Execution;
use crate::keys::Key;
use crate::suggest::{known_words, time_fault};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use talea_time::Work;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The forms that are tables.
const FORMS: [&str; 3] = ["uniform", "list", "trace"];

/// Trace files that were read; many subtasks may share one.
pub(super) struct Traces {
    base_dir: PathBuf,
    read: HashMap<PathBuf, Result<Arc<[Work]>, file::Fault>>,
}

/// Reads an execution time.
pub(super) fn execution(
    key: &'static Key,
    value: &Spanned<DeValue<'_>>,
    traces: &mut Traces,
) -> Reading<Execution> {
    let misfit = |message: String, remedy: String| Misfit { span: value.span(), message, remedy };
    let table = match value.get_ref() {
        DeValue::Table(table) => table,
        _ => return time(key, value).map(|time| Execution::Constant(time.as_work())),
    };
    if let Some((name, _)) = table.iter().find(|(name, _)| !FORMS.contains(&name.get_ref().as_ref())) {
        let message = format!("unknown form \"{}\" of \"{}\"", name.get_ref(), key.name);
        return Err(Misfit { span: name.span(), message, remedy: known_words(name.get_ref(), FORMS) });
    }
    let Some((form, content)) = only(table) else {
        return Err(misfit(
            format!("\"{}\" has {} forms", key.name, table.len()),
            "give exactly one of uniform, list, trace".into(),
        ));
    };
    match form {
        "uniform" => match works(key, content)?[..] {
            [low, high] => Ok(Execution::Uniform(low, high)),
            _ => Err(Misfit {
                span: content.span(),
                message: format!("\"{}\": uniform takes two times", key.name),
                remedy: "write the least and the greatest: uniform = [\"1ms\", \"5ms\"]".into(),
            }),
        },
        "list" => Ok(Execution::List(works(key, content)?.into())),
        _ => traces.read(key, content).map(Execution::List),
    }
}

fn only<'v, 'i>(table: &'v DeTable<'i>) -> Option<(&'v str, &'v Spanned<DeValue<'i>>)> {
    let mut entries = table.iter();
    let (name, value) = entries.next()?;
    entries.next().is_none().then_some((name.get_ref().as_ref(), value))
}

fn works(key: &Key, list: &Spanned<DeValue<'_>>) -> Reading<Vec<Work>> {
    elements(key, list)?.iter().map(|element| time(key, element).map(|time| time.as_work())).collect()
}

impl Traces {
    pub(super) fn new(base_dir: &Path) -> Self {
        Traces { base_dir: base_dir.into(), read: HashMap::new() }
    }

    /// Where a file is that the system file names.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        self.base_dir.join(written)
    }

    fn read(&mut self, key: &Key, name: &Spanned<DeValue<'_>>) -> Reading<Arc<[Work]>> {
        let DeValue::String(written) = name.get_ref() else {
            return Err(Misfit {
                span: name.span(),
                message: format!(
                    "\"{}\": trace is the path of a file, not {}",
                    key.name,
                    found(name.get_ref())
                ),
                remedy: "write trace = \"times.csv\"".into(),
            });
        };
        let path = self.path(written);
        let times = self.read.entry(path).or_insert_with_key(|path| read_trace(path));
        times.clone().map_err(|fault| Misfit {
            span: name.span(),
            message: format!("trace \"{written}\": {}", fault.message),
            remedy: fault.remedy,
        })
    }
}

/// One time per line; `#` begins a comment.
fn read_trace(path: &Path) -> Result<Arc<[Work]>, file::Fault> {
    if !path.exists() {
        let remedy = "write its path relative to the system file".into();
        return Err(file::Fault { message: "there is no such file".into(), remedy });
    }
    let text = talea_text::read::text(path)?;
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let written = line.split('#').next().unwrap_or("").trim();
        if written.is_empty() {
            continue;
        }
        let time = written.parse::<Work>().map_err(|error| {
            let (fault, remedy) = time_fault(error);
            file::Fault { message: format!("line {}: {fault}", index + 1), remedy }
        })?;
        times.push(time);
    }
    if times.is_empty() {
        let remedy = "write one execution time per line, such as 5ms".into();
        return Err(file::Fault { message: "the file holds no time".into(), remedy });
    }
    Ok(times.into())
}
