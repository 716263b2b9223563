//! Notices that the configuration file has changed.
//!
//! It is looked at once a second: that works for every file system, and for files that are replaced by way of a link, as
//! mounted secrets and Kubernetes' ConfigMaps are.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a file looked like when it was last taken, and at the last look.
#[derive(Debug, Default)]
pub struct ConfigFile {
    taken: Option<Stamp>,
    last: Option<Stamp>,
}

/// What changes with a file: device, inode, size, and time of change in seconds and nanoseconds.
pub type Stamp = (u64, u64, u64, i64, i64);

/// What a file looks like now; `None` while there is none.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

impl ConfigFile {
    /// The file as it is now is known.
    pub fn taken(&mut self, now: Option<Stamp>) {
        (self.taken, self.last) = (now, now);
    }

    /// Whether it has changed, and has not gone on changing since the last look: it may be half written.
    pub fn look(&mut self, now: Option<Stamp>) -> bool {
        let settled = now.is_some() && now == self.last && now != self.taken;
        self.last = now;
        if settled {
            self.taken = now;
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_only_when_it_has_settled() {
        let at = |size| Some((1, 1, size, 0, 0));
        let mut file = ConfigFile::default();
        file.taken(at(1));
        assert!(!file.look(at(1)));
        assert!(!file.look(at(2)), "it may still be written");
        assert!(!file.look(at(3)));
        assert!(file.look(at(3)));
        assert!(!file.look(at(3)), "told already, even if it was wrong");
        assert!(!file.look(None), "an editor is replacing it");
        assert!(!file.look(at(4)));
        assert!(file.look(at(4)));
    }
}
