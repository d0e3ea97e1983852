//! Where a recording goes.

use crate::cli::failure::Failure;
use crate::cli::failure::path_shown;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::Seek;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use talea_recording::recording::Recording;

/// The file to write, tried before anything is started, and this recorder's alone. What is there is not touched until the
/// recording begins.
pub struct TracePlace {
    path: PathBuf,
    is_left: bool,
    /// None to a device, which every recorder may write to.
    _claim: Option<Claim>,
}

impl TracePlace {
    pub fn check(path: &Path) -> Result<Self, Failure> {
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            check_device(path)?;
            return Ok(TracePlace { path: path.into(), is_left: true, _claim: None });
        }
        // Two links to one file are one place.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        let claim = Claim::to(&path)?;
        let is_left = path.exists();
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        opened.map_err(|error| Failure::uncreated("the file", &path, &error))?;
        Recording::remove_left_behind(&path);
        Ok(TracePlace { path, is_left, _claim: Some(claim) })
    }

    /// The recording begins and replaces what is there.
    pub fn keep(&mut self) {
        self.is_left = true;
    }
}

impl Drop for TracePlace {
    fn drop(&mut self) {
        if !self.is_left {
            // An empty file that stays behind is no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A recording is written to at several places, which /dev/null takes, and a pipe or a terminal does not.
fn check_device(path: &Path) -> Result<(), Failure> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let device = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let mut device = device.map_err(|error| Failure::uncreated("the recording", path, &error))?;
    device.stream_position().map(|_| ()).map_err(|_| {
        Failure::new(
            format!(
                "{} takes things in order only, and a recording is written to at several places",
                path_shown(path)
            ),
            "record into a file; `talea trace export` and `talea trace show` write what is in it to anything",
        )
    })
}

/// A recorder's claim to a file, which lasts as long as this and no longer than the process. The recording replaces its
/// file more than once, so the lock is on a file beside it.
struct Claim {
    path: PathBuf,
    _locked: File,
}

impl Claim {
    fn to(path: &Path) -> Result<Self, Failure> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let beside = PathBuf::from(beside);
        let failed = |error: std::io::Error| Failure::uncreated("the file", &beside, &error);
        loop {
            let opened = OpenOptions::new().append(true).create(true).open(&beside);
            // What is told of is the file that was asked for, whose place is the same.
            let file = opened.map_err(|error| Failure::uncreated("the file", path, &error))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Failure::new(
                        format!("another recorder is writing {}", path_shown(path)),
                        "give each recorder a file of its own with --out",
                    ));
                }
                locked => locked.map_err(|error| failed(error.into()))?,
            }
            // Another recorder may have ended, and removed the file, between opening and locking.
            let locked = file.metadata().map_err(failed)?;
            if std::fs::metadata(&beside)
                .is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()))
            {
                return Ok(Claim { path: beside, _locked: file });
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While it is locked, so that what is removed is this one. One that stays behind is free.
        let _ = std::fs::remove_file(&self.path);
    }
}
