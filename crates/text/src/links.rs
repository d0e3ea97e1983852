//! Where a link leads, before something is written there.
//!
//! A link that the user has made may keep its place: what is written goes where it leads. One that somebody else has put there, or that leads
//! into a folder of somebody else, would have the user overwrite what was not meant.

use rustix::process::geteuid;
use std::fs::{metadata, symlink_metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why nothing is written through a link.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// Somebody else has made it.
    #[error("{path} is a link of user {owner}, who decides where it leads")]
    NotYours {
        /// The link.
        path: PathBuf,
        /// Who made it.
        owner: u32,
    },
    /// It leads into a folder of somebody else.
    #[error("{path} is a link to {target}, a place of user {owner}")]
    Foreign {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
        /// Whose folder that is, or is in.
        owner: u32,
    },
}

impl LinkError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        "name the place itself if it is the one you mean, or remove the link"
    }
}

/// The place at which is written what is to be at `path`: that itself, or where a link of the user leads, into a folder or onto a file of the
/// user. A link that leads nowhere is replaced.
///
/// # Errors
/// See [`LinkError`].
pub fn resolved(path: &Path) -> Result<PathBuf, LinkError> {
    resolved_as(path, What::File)
}

/// The same of a folder into which files are to be written: a link leads to a folder of the user.
///
/// # Errors
/// See [`LinkError`].
pub fn resolved_folder(path: &Path) -> Result<PathBuf, LinkError> {
    resolved_as(path, What::Folder)
}

/// What a path is the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    File,
    Folder,
}

fn resolved_as(path: &Path, what: What) -> Result<PathBuf, LinkError> {
    let Some(link) = symlink_metadata(path).ok().filter(|found| found.file_type().is_symlink()) else {
        return Ok(path.into());
    };
    let user = geteuid().as_raw();
    if link.uid() != user && link.uid() != 0 {
        return Err(LinkError::NotYours { path: path.into(), owner: link.uid() });
    }
    let Ok(target) = path.canonicalize() else { return Ok(path.into()) };
    let owner = |path: &Path| metadata(path).map(|found| found.uid()).ok();
    let folder = match what {
        What::File => target.parent().and_then(owner),
        What::Folder => owner(&target),
    };
    match folder.filter(|owner_of_folder| *owner_of_folder != user && owner(&target) != Some(user)) {
        Some(owner) => Err(LinkError::Foreign { path: path.into(), target, owner }),
        None => Ok(target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn links_are_followed_to_what_is_the_users() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().canonicalize().expect("there");
        let at = |name: &str| root.join(name);
        std::fs::create_dir(at("folder")).expect("writable");
        std::fs::write(at("folder/file"), "").expect("writable");
        symlink(at("folder/file"), at("link")).expect("writable");
        symlink(at("none"), at("nowhere")).expect("writable");
        assert_eq!(resolved(&at("link")), Ok(at("folder/file")));
        assert_eq!(resolved(&at("nowhere")), Ok(at("nowhere")));
        assert_eq!(resolved(&at("new")), Ok(at("new")));
        // Only root can make what is somebody else's.
        if chown(at("folder/file"), Some(4711), None).is_err() {
            return;
        }
        assert_eq!(resolved(&at("link")), Ok(at("folder/file")), "the folder is the user's");
        chown(at("folder"), Some(4711), None).expect("root");
        let foreign = LinkError::Foreign { path: at("link"), target: at("folder/file"), owner: 4711 };
        assert_eq!(resolved(&at("link")), Err(foreign));
        symlink(at("folder"), at("results")).expect("writable");
        let foreign = LinkError::Foreign { path: at("results"), target: at("folder"), owner: 4711 };
        assert_eq!(resolved_folder(&at("results")), Err(foreign));
        assert_eq!(resolved_folder(&at("folder")), Ok(at("folder")), "it is named itself");
        std::os::unix::fs::lchown(at("link"), Some(4711), None).expect("root");
        assert_eq!(resolved(&at("link")), Err(LinkError::NotYours { path: at("link"), owner: 4711 }));
    }
}
