//! Drafts: files and folders that are written under another name and get their own when they are complete. So a failure loses nothing
//! that was there before, and leaves nothing that looks like a complete export.
//!
//! A draft is locked while its writer lives. One that is not locked was left behind by a writer that was
//! killed, and is removed by the next writer into the same folder. Ctrl-C removes the drafts of this process.

use crate::cli::failure::Failure;
use crate::cli::failure::path_shown;
use crate::cli::interrupt;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::ffi::OsString;
use std::fs::{DirEntry, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use talea_export::CtfExport;
use talea_text::links::{LinkError, resolved};
use tempfile::{Builder, NamedTempFile, TempDir};

/// What the names of drafts begin with. All that are called so have been locked from the beginning.
const PREFIX: &str = ".talea-draft-";

/// Drafts of this process. A thread that holds the lock may finish or remove them.
static UNDER_WAY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Who may read what is written.
#[derive(Clone, Copy, Debug)]
pub enum Readers<'a> {
    /// Those who may read this.
    Like(&'a Path),
    /// All who may read new files of the user.
    Usual,
    /// The user alone.
    User,
}

impl Readers<'_> {
    fn mode(self) -> io::Result<u32> {
        match self {
            Readers::Like(path) => Ok(std::fs::metadata(path)?.permissions().mode() & 0o666),
            Readers::Usual => Ok(0o666),
            Readers::User => Ok(0o600),
        }
    }
}

/// A file under way; dropping it removes it.
pub enum Draft {
    /// Beside its place.
    Beside { file: NamedTempFile, place: PathBuf },
    /// In its place, which is a device, a pipe or this command's output, and not to be replaced.
    InPlace { file: File },
}

impl Draft {
    /// Begins what is to be at `place`.
    pub fn create(place: &Path, readers: Readers<'_>) -> Result<Self, Failure> {
        if place == Path::new("-") {
            return Err(Failure::new(
                "this goes to a file, not to standard output",
                "give it a name; ./- is the file that is called -, and /dev/stdout is standard output",
            ));
        }
        let failed = |error: io::Error| Failure::uncreated("the file", place, &io::Error::from(error.kind()));
        if is_output(place) {
            let file = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?.into();
            return Ok(Draft::InPlace { file });
        }
        if place.exists() && !place.is_file() {
            let file = File::create(place).map_err(failed)?;
            return Ok(Draft::InPlace { file });
        }
        let mode = readers.mode().map_err(failed)?;
        // A link of the user keeps its target, which is what is replaced.
        let target = resolved(place).map_err(linked)?;
        Self::beside(place, target, mode)
    }

    /// Begins the file `name` of `folder`, which is a file of that folder whatever is there now: a link is replaced, and not followed.
    pub fn create_in(folder: &Path, name: &str, readers: Readers<'_>) -> Result<Self, Failure> {
        let place = folder.join(name);
        let failed = |error: io::Error| Failure::uncreated("the file", &place, &error);
        let mode = readers.mode().map_err(failed)?;
        Self::beside(&place, place.clone(), mode)
    }

    fn beside(place: &Path, target: PathBuf, mode: u32) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::uncreated("the file", place, &io::Error::from(error.kind()));
        let folder = folder_of(&target);
        sweep(folder);
        let permissions = Permissions::from_mode(mode);
        let begin = || Builder::new().prefix(PREFIX).permissions(permissions.clone()).tempfile_in(folder);
        let file = locked(begin, |file| file.as_file().try_clone(), NamedTempFile::path).map_err(failed)?;
        Ok(Draft::Beside { file: file.0, place: target })
    }

    /// What to write to.
    pub fn file(&self) -> &File {
        match self {
            Draft::Beside { file, .. } => file.as_file(),
            Draft::InPlace { file } => file,
        }
    }

    /// The same, for a writer to keep.
    pub fn writer(&self) -> io::Result<File> {
        self.file().try_clone()
    }

    /// What is left of it if it is given up, as a sentence.
    pub fn left(&self, place: &Path) -> String {
        match self {
            Draft::Beside { .. } => left(place),
            Draft::InPlace { .. } => incomplete(place),
        }
    }

    /// Its whole text, with which it takes its place.
    pub fn complete(self, place: &Path, text: &str) -> Result<(), Failure> {
        let left = self.left(place);
        let written = self.file().write_all(text.as_bytes()).and_then(|()| self.finish());
        written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path_shown(place)), left))
    }

    /// It is whole and takes its place.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Draft::Beside { file, place } => {
                let path = file.path().to_owned();
                take_place(&path, || file.persist(place).map(|_| ()).map_err(|error| error.error))
            }
            Draft::InPlace { .. } => Ok(()),
        }
    }
}

/// Why nothing is written where a link leads.
pub fn linked(error: LinkError) -> Failure {
    Failure::new(&error, error.remedy())
}

/// A folder under way; dropping it removes it.
pub enum FolderDraft {
    /// Beside its place; the file is the lock.
    Beside { folder: TempDir, _locked: File, place: PathBuf },
    /// In its place, beside which nothing can be made that could take it.
    InPlace { place: PathBuf },
}

impl FolderDraft {
    /// Begins what is to be at `place`, readable for those only who may read `like`.
    pub fn create(place: &Path, like: &Path) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::uncreated("the folder", place, &io::Error::from(error.kind()));
        let target = resolved(place).map_err(linked)?;
        let parent = folder_of(&target);
        std::fs::create_dir_all(parent).map_err(failed)?;
        let there = std::fs::metadata(&target).ok();
        let around = std::fs::metadata(parent).map_err(failed)?;
        // Processes in a folder would stay in the old one; and a mounted folder cannot be exchanged.
        let is_current = std::env::current_dir().is_ok_and(|current| current.starts_with(&target));
        if is_current || there.as_ref().is_some_and(|there| there.dev() != around.dev()) {
            return Ok(FolderDraft::InPlace { place: target });
        }
        sweep(parent);
        let permissions = Permissions::from_mode(0o777);
        let begin = || Builder::new().prefix(PREFIX).permissions(permissions.clone()).tempdir_in(parent);
        let (folder, lock) = match locked(begin, |folder| File::open(folder.path()), TempDir::path) {
            Ok(begun) => begun,
            Err(error) if there.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(FolderDraft::InPlace { place: target });
            }
            Err(error) => return Err(failed(error)),
        };
        let mode = |path: &Path| std::fs::metadata(path).map(|found| found.permissions().mode());
        let shown = match there {
            Some(there) => there.permissions().mode(),
            None => {
                let readers = mode(like).map_err(failed)? & 0o444;
                mode(folder.path()).map_err(failed)? & (0o700 | readers | readers >> 2)
            }
        };
        std::fs::set_permissions(folder.path(), Permissions::from_mode(shown)).map_err(failed)?;
        Ok(FolderDraft::Beside { folder, _locked: lock, place: target })
    }

    /// Where it is for now.
    pub fn path(&self) -> &Path {
        match self {
            FolderDraft::Beside { folder, .. } => folder.path(),
            FolderDraft::InPlace { place } => place,
        }
    }

    /// What is left of it if it is given up, as a sentence.
    pub fn left(&self, place: &Path) -> String {
        match self {
            FolderDraft::Beside { .. } => left(place),
            FolderDraft::InPlace { .. } => incomplete(place),
        }
    }

    /// It is whole and takes its place; what was there goes.
    pub fn finish(self) -> io::Result<()> {
        let FolderDraft::Beside { folder, place, .. } = self else { return Ok(()) };
        if place.exists() {
            // What was there is the draft then, and removed as that.
            return take_place(folder.path(), || {
                let exchanged = renameat_with(CWD, folder.path(), CWD, &place, RenameFlags::EXCHANGE);
                // Not every file system can.
                exchanged.or_else(|_| move_files(folder.path(), &place))
            });
        }
        take_place(folder.path(), || std::fs::rename(folder.path(), &place))?;
        let _ = folder.keep();
        Ok(())
    }
}

/// Moves the files of an export to where an earlier one is. Without its metadata, which goes first and comes last, none
/// is taken for a trace.
fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    let files = |folder: &Path| {
        let names: io::Result<Vec<OsString>> =
            std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect();
        names.map(|mut names| {
            names.sort_by_key(|name| name != CtfExport::METADATA);
            names
        })
    };
    files(to)?.iter().try_for_each(|name| std::fs::remove_file(to.join(name)))?;
    files(from)?.iter().rev().try_for_each(|name| std::fs::rename(from.join(name), to.join(name)))
}

/// A draft takes its place, or Ctrl-C removes it, and not a half of it each.
fn take_place(draft: &Path, rename: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    under_way.retain(|path| path != draft);
    rename()
}

/// Makes Ctrl-C remove what is under way before it ends the process.
pub fn remove_on_interrupt() -> Result<(), Failure> {
    interrupt::on_interrupt(|| {
        remove_under_way();
        std::process::exit(130);
    })
}

/// Removes what is under way, of a process that ends at once.
pub fn remove_under_way() {
    let under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    under_way.iter().for_each(|path| remove(path));
}

/// Whether it is this command's standard output.
pub fn is_output(place: &Path) -> bool {
    let output = io::stdout().as_fd().try_clone_to_owned().and_then(|output| File::from(output).metadata());
    let same = |there: std::fs::Metadata, output: std::fs::Metadata| {
        (there.dev(), there.ino()) == (output.dev(), output.ino())
    };
    std::fs::metadata(place).and_then(|there| Ok(same(there, output?))).unwrap_or(false)
}

/// Something new, and the file that locks it. A sweep of another process may come between making and locking.
fn locked<T>(
    begin: impl Fn() -> io::Result<T>,
    lock: impl Fn(&T) -> io::Result<File>,
    path: impl Fn(&T) -> &Path,
) -> io::Result<(T, File)> {
    // Held all the while, so that Ctrl-C finds no draft that is there and not yet known.
    let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let begun = begin()?;
        let file = lock(&begun)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_at(&file, path(&begun)) {
            under_way.push(path(&begun).into());
            return Ok((begun, file));
        }
    }
}

/// Removes drafts of this user in `folder` whose writers are no more. What cannot be removed stays.
fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.for_each(|entry| {
        // The lock lasts until the draft is gone: a writer that has locked a new one looks whether it is still there.
        let left_behind = left_behind(&entry);
        if left_behind.is_some() {
            remove(&entry.path());
        }
    });
}

/// A draft whose writer is gone, locked.
fn left_behind(entry: &DirEntry) -> Option<File> {
    let is_ours = |entry: &DirEntry| {
        let kind = entry.file_type()?;
        let own = entry.metadata()?.uid() == rustix::process::geteuid().as_raw();
        Ok::<_, io::Error>(own && (kind.is_file() || kind.is_dir()))
    };
    if !entry.file_name().to_string_lossy().starts_with(PREFIX) || !is_ours(entry).unwrap_or(false) {
        return None;
    }
    let file = File::open(entry.path()).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_at(&file, &entry.path()).then_some(file)
}

fn is_at(file: &File, path: &Path) -> bool {
    let numbers = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(file), Ok(there)) => numbers(file) == numbers(there),
        _ => false,
    }
}

/// What has gone already, or stays, is as well.
fn remove(path: &Path) {
    let not_empty = |error: &io::Error| error.kind() == io::ErrorKind::DirectoryNotEmpty;
    // A writer that has not noticed may put a file where all had gone.
    while path.is_dir() && std::fs::remove_dir_all(path).is_err_and(|error| not_empty(&error)) {}
    let _ = std::fs::remove_file(path);
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn left(place: &Path) -> String {
    match place.exists() {
        true => format!("{} is as it was before", path_shown(place)),
        false => format!("there is no {}", path_shown(place)),
    }
}

fn incomplete(place: &Path) -> String {
    format!("{} is incomplete; do not use it", path_shown(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(folder).expect("readable");
        let mut names: Vec<OsString> = entries.map(|entry| entry.expect("readable").file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_what_nobody_holds_is_swept() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        std::fs::write(at(".talea-draft-dead"), "half").expect("writable");
        std::fs::create_dir(at(".talea-draft-folder")).expect("writable");
        std::fs::write(at(".talea-draft-folder/stream_0"), "half").expect("writable");
        std::fs::write(at(".talea-other"), "mine").expect("writable");
        std::os::unix::fs::symlink(at(".talea-other"), at(".talea-draft-link")).expect("writable");
        let held = File::create(at(".talea-draft-held")).expect("writable");
        flock(&held, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        sweep(place.path());
        assert_eq!(names(place.path()), [".talea-draft-held", ".talea-draft-link", ".talea-other"]);
        drop(held);
        sweep(place.path());
        assert_eq!(names(place.path()), [".talea-draft-link", ".talea-other"]);
    }

    #[test]
    fn files_are_moved_where_folders_cannot_be_exchanged() {
        let [from, to] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        for (folder, files) in [(&from, ["metadata", "stream_0"]), (&to, ["metadata", "stream_7"])] {
            files.iter().for_each(|name| {
                std::fs::write(folder.path().join(name), folder.path().as_os_str().as_encoded_bytes())
                    .expect("writable");
            });
        }
        move_files(from.path(), to.path()).expect("writable");
        assert_eq!(names(to.path()), ["metadata", "stream_0"]);
        assert!(names(from.path()).is_empty());
        let text = std::fs::read(to.path().join("metadata")).expect("readable");
        assert_eq!(text, from.path().as_os_str().as_encoded_bytes(), "the new one");
    }
}
