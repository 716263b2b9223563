//! The pid file: our process id in decimal, for scripts.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A pid file that we wrote. Dropping it removes the file if it still holds our id.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    content: String,
}

impl PidFile {
    /// Writes the id without a line feed, over whatever was there; a new file gets mode 0644.
    pub fn write(path: &Path) -> io::Result<Self> {
        let content = std::process::id().to_string();
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?;
        file.write_all(content.as_bytes())?;
        Ok(Self { path: path.to_owned(), content })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|found| found == self.content) {
            // A file that can't be removed is stale, which scripts have to deal with anyway.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_only_while_it_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        std::fs::write(&path, "an older and longer content").unwrap();
        let file = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        drop(file);
        assert!(!path.exists());

        let file = PidFile::write(&path).unwrap();
        std::fs::write(&path, "1").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1");
    }
}
