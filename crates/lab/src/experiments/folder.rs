//! Where results go. Every file is complete or not there: it is written under another name first.

use super::ExperimentError;
use std::path::PathBuf;
use talea_figure::chart::Chart;

/// A chart and the name of its files.
pub struct Picture {
    /// File name without extension.
    pub name: String,
    /// The drawing.
    pub chart: Chart,
}

/// A folder that files are written to.
pub struct Folder {
    path: PathBuf,
    files: Vec<PathBuf>,
}

impl Folder {
    /// Makes the folder.
    ///
    /// # Errors
    /// [`ExperimentError::Unwritable`].
    pub fn make(path: PathBuf) -> Result<Self, ExperimentError> {
        std::fs::create_dir_all(&path).map_err(|cause| ExperimentError::unwritable(&path, cause))?;
        Ok(Folder { path, files: Vec::new() })
    }

    /// Writes a file as a whole.
    ///
    /// # Errors
    /// [`ExperimentError::Unwritable`]; a file that was there before is as it was.
    pub fn write(&mut self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), ExperimentError> {
        let path = self.path.join(name);
        let partial = self.path.join(format!(".{name}.partial"));
        let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, &path));
        if let Err(cause) = written {
            // What is left of it, if anything, is not a result.
            let _ = std::fs::remove_file(&partial);
            return Err(ExperimentError::unwritable(&path, cause));
        }
        self.files.push(path);
        Ok(())
    }

    /// Writes a picture as SVG and as PNG.
    ///
    /// # Errors
    /// [`ExperimentError::Unwritable`].
    pub fn draw(&mut self, picture: &Picture) -> Result<(), ExperimentError> {
        let name = |extension: &str| format!("{}.{extension}", picture.name);
        let svg = picture
            .chart
            .svg()
            .map_err(|cause| ExperimentError::unwritable(&self.path.join(name("svg")), cause))?;
        let png = picture
            .chart
            .png()
            .map_err(|cause| ExperimentError::unwritable(&self.path.join(name("png")), cause))?;
        self.write(&name("svg"), svg)?;
        self.write(&name("png"), png)
    }

    /// What was written.
    pub fn files(self) -> Vec<PathBuf> {
        self.files
    }
}
