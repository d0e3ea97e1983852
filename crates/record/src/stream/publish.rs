//! Where streams are: in a directory of the user's own, under `PID.NAME`.
//!
//! The directory is `/dev/shm/talea-UID`, else `$XDG_RUNTIME_DIR/talea`, else `talea-UID` among the temporary files, else
//! `~/.cache/talea-streams`. Everybody may make folders in some of these places, so one that belongs to somebody else is
//! [passed over](StreamDirectory::passed_over); streams that were published in a later one are found, too. The directory and the files in it are
//! open to the user alone. A stream's file goes when its [`Stream`] is dropped. A process that
//! is killed leaves it; the newest [`KEPT_DEAD`] of these stay, so that one can look what happened, and older ones
//! are removed when the next stream is published.

use super::announced::{self, RING_RECORDS, RINGS};
use super::clock::{self, Keeper};
use super::local::{self, AttachThreadError, LocalWriter};
use crate::directory::Directory;
use crate::live::process::{Liveness, Owner};
use crate::read::control_pages;
use crate::ring::{RingFile, RingShape};
use crate::suggestion::{hint, nearest};
use crate::{CreateError, Metadata, RingReader, RingState, TraceError, TraceFile};
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use talea_ring::control::{Control, OPERATOR};
use talea_text::printable;
use thiserror::Error;

/// Streams of dead processes that are kept.
pub const KEPT_DEAD: usize = 8;
/// Longest name of a stream, in bytes.
const NAME_BYTES: usize = 64;
/// Spare rings and records of each, for programs that say nothing else.
const SPARE: usize = 32;
const CAPACITY: usize = 8192;
/// The same of programs that a recorder has started, which may be kept from running while they write.
const RECORDED_CAPACITY: usize = 32 * 1024;
/// Small rings for threads that come when those are taken.
const LATER: usize = 1000;

/// Why streams cannot be found or published in a directory.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The directory could not be made or looked at.
    #[error("cannot use {path} for streams: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a link or a file.
    #[error(
        "{path} is not a directory of its own, but a link or a file of user {owner}; remove it, so that Talea can make one"
    )]
    NotADirectory {
        /// The link or file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// It is another user's.
    #[error(
        "{path} belongs to user {owner}, not to you ({user}); streams there could be another's; have it removed"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This process's user.
        user: u32,
    },
    /// Others may enter.
    #[error("{path} is open to other users (mode {mode:03o}); close it with `chmod 700 {path}`")]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl PlaceError {
    /// Whether somebody else has the place, or keeps it from the user.
    fn is_of_others(&self) -> bool {
        match self {
            PlaceError::Foreign { .. } => true,
            PlaceError::NotADirectory { owner, .. } => *owner != geteuid().as_raw(),
            PlaceError::Open { .. } => false,
            PlaceError::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound
            ),
        }
    }
}

/// Where the streams of a user may be, best places first.
fn places(user: u32) -> Vec<PathBuf> {
    let shared_memory = Path::new("/dev/shm");
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut places = Vec::new();
    if shared_memory.is_dir() {
        places.push(shared_memory.join(format!("talea-{user}")));
    }
    places.extend(folder("XDG_RUNTIME_DIR").map(|runtime| runtime.join("talea")));
    places.push(std::env::temp_dir().join(format!("talea-{user}")));
    // Nobody else makes folders there. It may be on a disk, which is slower.
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    places.extend(cache.map(|cache| cache.join("talea-streams")));
    places
}

/// Whether it is a directory of the user's alone.
fn is_own(path: &Path) -> bool {
    let user = geteuid().as_raw();
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
}

/// Why a stream could not be published. Nothing is left behind.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The name cannot be a part of a file's name.
    #[error(
        "\"{0}\" cannot name a stream; use up to {NAME_BYTES} letters, digits, '-', '_' and '.', and begin with no '.'"
    )]
    Name(String),
    /// This process has a stream of that name.
    #[error("this process publishes a stream \"{0}\" already; give this one another name")]
    Taken(String),
    /// What the environment says of the rings cannot be.
    #[error("{name}={value} in the environment is no number of {what}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it should be a number of.
        what: &'static str,
    },
    /// There is no place for streams.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The file could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
}

/// Why no stream was found.
#[derive(Debug, Error)]
pub enum FindError {
    /// No stream goes by that name or number.
    #[error("there is no stream \"{name}\"{}", hint("streams", suggestion))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most similar name.
        suggestion: Option<String>,
    },
    /// Several streams do.
    #[error("\"{name}\" can be any of {}; write one of these", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The streams it may mean, as `PID.NAME`.
        candidates: Vec<String>,
    },
    /// The directory cannot be read.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

/// A directory of streams.
#[derive(Clone, Debug)]
pub struct StreamDirectory {
    path: PathBuf,
    /// Others of the user in which streams may be, from when another place was free.
    others: Vec<PathBuf>,
    /// Why it is not where it should be.
    passed_over: Option<String>,
}

/// A stream that this process publishes. Dropping it removes it from the directory; consumers that are attached keep
/// what is in it.
#[derive(Debug)]
pub struct Stream {
    /// Its rings.
    pub rings: RingFile,
    published: Published,
    /// While there is a stream, time stamps are cheap.
    _keeper: Arc<Keeper>,
}

/// The file's name in the directory, for as long as it is there.
#[derive(Debug)]
struct Published {
    path: PathBuf,
    pid: u32,
}

impl Drop for Published {
    fn drop(&mut self) {
        // A process that was forked off has not published it. That it is gone already is no harm.
        if self.pid == std::process::id() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Stream {
    /// Publishes a stream of a program that is no Talea system, in the user's directory, with some spare rings for its
    /// threads.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish(name: &str) -> Result<Self, PublishError> {
        let directory = StreamDirectory::of_user()?;
        let is_recorded = announced::recorder(&directory.path) != 0;
        let capacity = if is_recorded { RECORDED_CAPACITY } else { CAPACITY };
        let shape = RingShape { writers: &[], spare: SPARE, capacity, later: LATER };
        let stream = directory.publish(name, &Metadata::bare(name), shape)?;
        stream.rings.prefault();
        Ok(stream)
    }

    /// Gives the calling thread a ring of this stream, called `name`. Allocates.
    ///
    /// # Errors
    /// [`AttachThreadError::Exhausted`] if all spare rings are taken.
    ///
    /// # Panics
    /// If the thread holds a [`LocalWriter`] already.
    pub fn attach_thread(&self, name: &str) -> Result<LocalWriter, AttachThreadError> {
        local::attach_to(self.rings.live(), name)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.published.path
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        local::end(self.rings.live());
    }
}

/// A stream found in a directory.
#[derive(Debug)]
pub struct Listed {
    /// Its file.
    pub path: PathBuf,
    /// The process that publishes it.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Whether that process is there.
    pub liveness: Liveness,
    /// What is in it, or why it cannot be read.
    pub content: Result<Content, TraceError>,
}

/// What a stream holds at the moment.
#[derive(Debug)]
pub struct Content {
    /// Its tables.
    pub metadata: Metadata,
    /// Its families.
    pub directory: Directory,
    /// Who follows it.
    pub consumers: Vec<ListedConsumer>,
    /// Events and passive entities that are switched on by hand, as `family.name`.
    pub by_hand: Vec<String>,
    /// Its rings, without spare ones that were never used.
    pub rings: Vec<ListedRing>,
    /// Events that found no ring.
    pub unringed: u64,
}

/// A consumer of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConsumer {
    /// Its process.
    pub pid: u32,
    /// What it calls itself.
    pub name: String,
    /// Whether its process is there; one that is not will be removed by the next consumer.
    pub liveness: Liveness,
    /// Events and passive entities it wants, as `family.name`.
    pub wants: Vec<String>,
}

/// A ring of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRing {
    /// What its writer calls itself.
    pub name: String,
    /// What its writer does.
    pub state: RingState,
    /// Records ever written.
    pub written: u64,
}

impl StreamDirectory {
    /// The user's directory, made if it is not there, in the first of its places that nobody else has taken.
    ///
    /// # Errors
    /// If it cannot be made or is not the user's alone, in any of the places.
    pub fn of_user() -> Result<Self, PlaceError> {
        Self::first_of(&places(geteuid().as_raw()))
    }

    /// The first of these places, one at least, that nobody else has taken.
    ///
    /// # Errors
    /// The first place's, if all are taken; that of the first one that is the user's and cannot be used.
    pub fn first_of(places: &[PathBuf]) -> Result<Self, PlaceError> {
        let mut passed_over: Option<PlaceError> = None;
        for (index, place) in places.iter().enumerate() {
            match Self::at(place) {
                Ok(mut directory) => {
                    directory.others =
                        places[index + 1..].iter().filter(|other| is_own(other)).cloned().collect();
                    let elsewhere = |error| format!("{error}; {} is used instead", place.display());
                    directory.passed_over = passed_over.map(elsewhere);
                    return Ok(directory);
                }
                Err(error) if error.is_of_others() => passed_over = passed_over.or(Some(error)),
                Err(error) => return Err(passed_over.unwrap_or(error)),
            }
        }
        Err(passed_over.expect("one place at least was tried"))
    }

    /// Why it is not in the first of its places, and where it is, if somebody else has taken that.
    pub fn passed_over(&self) -> Option<&str> {
        self.passed_over.as_deref()
    }

    /// Directories of the user's in which something may be, too, from when another place was free.
    pub fn others(&self) -> &[PathBuf] {
        &self.others
    }

    /// The directory at `path`, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or is not the user's alone.
    pub fn at(path: &Path) -> Result<Self, PlaceError> {
        let io = |source| PlaceError::Io { path: path.into(), source };
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
            _ => {}
        }
        // Not following links: one here would be somebody's trick.
        let found = fs::symlink_metadata(path).map_err(io)?;
        let (owner, user, mode) = (found.uid(), geteuid().as_raw(), found.mode() & 0o777);
        if !found.is_dir() {
            return Err(PlaceError::NotADirectory { path: path.into(), owner });
        }
        if owner != user {
            return Err(PlaceError::Foreign { path: path.into(), owner, user });
        }
        if mode & 0o077 != 0 {
            return Err(PlaceError::Open { path: path.into(), mode });
        }
        Ok(StreamDirectory { path: path.into(), others: Vec::new(), passed_over: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Publishes a stream of this process, and removes what the dead have left beyond the newest [`KEPT_DEAD`]. Where the
    /// environment has [`RING_RECORDS`] or [`RINGS`], they go before what `shape` says of capacity and spare rings. If this
    /// process was started by a recorder that looks into this directory, it follows the stream when this returns.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish(
        &self,
        name: &str,
        metadata: &Metadata,
        shape: RingShape<'_>,
    ) -> Result<Stream, PublishError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES || name.starts_with('.') || !name.bytes().all(is_plain)
        {
            return Err(PublishError::Name(name.into()));
        }
        self.clear_up()?;
        let pid = std::process::id();
        let path = self.path.join(format!("{pid}.{name}"));
        // One of an earlier process with this number is replaced.
        if path.exists() && liveness(&path, pid) == Liveness::Alive {
            return Err(PublishError::Taken(name.into()));
        }
        let capacity = in_environment(RING_RECORDS, "records, of which a ring has at least 2")?;
        let spare = in_environment(RINGS, "rings")?;
        let shape = RingShape {
            capacity: capacity.unwrap_or(shape.capacity),
            spare: spare.unwrap_or(shape.spare),
            ..shape
        };
        let rings = RingFile::create_announcing(&path, metadata, shape, announced::recorder(&self.path))?;
        announced::wait(rings.live());
        local::publish(rings.live());
        Ok(Stream { rings, published: Published { path, pid }, _keeper: clock::keep() })
    }

    /// The streams there are, of living processes first, then by process and name.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, PlaceError> {
        let mut found: Vec<Listed> = self.files()?.into_iter().filter_map(look_into).collect();
        found.sort_by(|a, b| {
            let key = |listed: &Listed| (listed.liveness == Liveness::Dead, listed.pid);
            (key(a), &a.name).cmp(&(key(b), &b.name))
        });
        Ok(found)
    }

    /// The files there are, with the process that each belongs to, without looking into them.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn published(&self) -> Result<Vec<(u32, PathBuf)>, PlaceError> {
        let files = self.files()?.into_iter();
        Ok(files.filter_map(|path| parse(&path).map(|(pid, _)| (pid, path))).collect())
    }

    /// The stream that `which` means, as [`Self::find_all`], where it means one.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn find(&self, which: &str) -> Result<Listed, FindError> {
        let mut meant = self.find_all(which)?;
        match meant.len() {
            1 => Ok(meant.remove(0)),
            _ => Err(ambiguous(which, &meant)),
        }
    }

    /// The streams that `which` means, at least one: that of a name, `NAME` or `PID.NAME`; those of a process, by its
    /// number; or else, where a program of several processes publishes `ofp.mission` and `ofp.display`, both by
    /// `ofp`. Streams of living processes go before those of dead ones.
    ///
    /// # Errors
    /// See [`FindError`]. Streams of one name in several processes are not meant together.
    pub fn find_all(&self, which: &str) -> Result<Vec<Listed>, FindError> {
        let all = self.list()?;
        let part =
            |listed: &Listed| listed.name.strip_prefix(which).is_some_and(|rest| rest.starts_with('.'));
        let whole = |listed: &Listed| {
            full(listed) == which || listed.name == which || listed.pid.to_string() == which
        };
        let (mut meant, others) = match all.iter().any(whole) {
            true => all.into_iter().partition::<Vec<_>, _>(whole),
            false => all.into_iter().partition(part),
        };
        if meant.is_empty() {
            let suggestion = nearest(which, others.iter().map(|listed| listed.name.as_str()));
            return Err(FindError::Unknown { name: which.to_owned(), suggestion });
        }
        if meant.iter().any(|listed| listed.liveness == Liveness::Alive) {
            meant.retain(|listed| listed.liveness == Liveness::Alive);
        }
        let names: BTreeSet<&str> = meant.iter().map(|listed| listed.name.as_str()).collect();
        if names.len() < meant.len() {
            return Err(ambiguous(which, &meant));
        }
        Ok(meant)
    }

    fn files(&self) -> Result<Vec<PathBuf>, PlaceError> {
        let io = |source| PlaceError::Io { path: self.path.clone(), source };
        let listed = |path: &Path| -> io::Result<Vec<PathBuf>> {
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect()
        };
        let mut files = listed(&self.path).map_err(io)?;
        // Of another one that goes meanwhile there is nothing to be found.
        files.extend(self.others.iter().filter_map(|other| listed(other).ok()).flatten());
        Ok(files)
    }

    /// Removes the streams of the dead, except for the newest.
    fn clear_up(&self) -> Result<(), PlaceError> {
        let made = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
        let mut dead: Vec<(SystemTime, PathBuf)> = Vec::new();
        for path in self.files()? {
            let Some((pid, _)) = parse(&path) else { continue };
            if liveness(&path, pid) == Liveness::Dead
                // Another process may have removed it meanwhile.
                && let Ok(made) = made(&path)
            {
                dead.push((made, path));
            }
        }
        dead.sort_by(|a, b| b.cmp(a));
        for (_, path) in dead.into_iter().skip(KEPT_DEAD) {
            // What another process removed or protects is not ours to remove.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// A stream's name that no other one has.
fn full(listed: &Listed) -> String {
    format!("{}.{}", listed.pid, listed.name)
}

/// The number in this variable of the environment, if it is there.
fn in_environment(name: &'static str, what: &'static str) -> Result<Option<usize>, PublishError> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    match value.parse() {
        Ok(number) if number > usize::from(name == RING_RECORDS) => Ok(Some(number)),
        _ => Err(PublishError::Environment { name, value, what }),
    }
}

fn ambiguous(which: &str, meant: &[Listed]) -> FindError {
    FindError::Ambiguous { name: which.to_owned(), candidates: meant.iter().map(full).collect() }
}

impl Listed {
    /// The stream in this file, wherever it is. Where the file's name is not of the form `PID.NAME`, all of it is the
    /// name.
    pub fn at(path: &Path) -> Self {
        let named = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (pid, name) = parse(path).unwrap_or_else(|| (writer(path).map_or(0, Owner::pid), named()));
        let content = TraceFile::open(path).and_then(|trace| content(&trace));
        Listed { liveness: liveness(path, pid), content, pid, name, path: path.into() }
    }
}

/// Process and name of a stream's file.
fn parse(path: &Path) -> Option<(u32, String)> {
    let (pid, name) = path.file_name()?.to_str()?.split_once('.')?;
    Some((pid.parse().ok()?, name.to_owned()))
}

/// Whether the process that wrote the file is there. A file that does not say so yet goes by the number in its name.
fn liveness(path: &Path, pid: u32) -> Liveness {
    writer(path).or(Owner::from_word(u64::from(pid))).map_or(Liveness::Dead, Owner::liveness)
}

/// The process that wrote the file, if it says so.
fn writer(path: &Path) -> Option<Owner> {
    let pages = control_pages(path).ok()?;
    // A log has none.
    (!pages.is_empty()).then(|| Control::new(&pages).writer()).and_then(Owner::from_word)
}

fn look_into(path: PathBuf) -> Option<Listed> {
    let (pid, name) = parse(&path)?;
    let opened = TraceFile::open(&path);
    // It may have been removed since its name was read.
    if let Err(TraceError::Io(error)) = &opened
        && error.kind() == io::ErrorKind::NotFound
    {
        return None;
    }
    let content = opened.and_then(|trace| content(&trace));
    Some(Listed { liveness: liveness(&path, pid), content, pid, name, path })
}

fn content(trace: &TraceFile) -> Result<Content, TraceError> {
    let mapping = trace.mapping().ok_or(TraceError::NotATrace)?;
    let control = Control::new(mapping.part(trace.header().regions.control.clone()));
    let directory = trace.directory()?;
    let wanted = |bit| {
        let wanted = control.wanted(bit);
        let wants = directory.entities().filter(|(_, _, switch)| wanted.contains(*switch));
        wants.map(|(family, name, _)| format!("{family}.{name}")).collect()
    };
    let consumer = |(bit, owner, name): (_, u64, String)| {
        let owner = Owner::from_word(owner)?;
        Some(ListedConsumer {
            pid: owner.pid(),
            liveness: owner.liveness(),
            name: printable(&name).into_owned(),
            wants: wanted(bit),
        })
    };
    let ring =
        |ring: RingReader| ListedRing { name: ring.name(), state: ring.state(), written: ring.written() };
    Ok(Content {
        metadata: trace.metadata().clone(),
        consumers: control.consumers().into_iter().filter_map(consumer).collect(),
        by_hand: wanted(OPERATOR),
        rings: trace.rings().into_iter().map(ring).filter(|ring| ring.state != RingState::Unused).collect(),
        unringed: control.unringed(),
        directory,
    })
}
