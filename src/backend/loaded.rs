//! Which scripts a server has, as far as a worker knows.

use std::cell::RefCell;
use std::collections::HashSet;

/// What one worker takes for loaded on one server. Being wrong costs a needless `SCRIPT LOAD`, or a second try.
#[derive(Debug, Default)]
pub struct Loaded(RefCell<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Number of connections that had been lost when the rest was noted: a server that restarts loses them all.
    epoch: u64,
    scripts: HashSet<[u8; 20]>,
}

/// Scripts that are noted for one server. Who has more makes them up as he goes; they are noted anew.
const KNOWN_LIMIT: usize = 4096;

impl Loaded {
    /// Whether the script has to be loaded first, as far as is known; from now on it is taken for loaded. `epoch` counts
    /// the connections to the server that were lost.
    pub fn lacks(&self, sha: &[u8; 20], epoch: u64) -> bool {
        let mut known = self.0.borrow_mut();
        if known.epoch != epoch || known.scripts.len() >= KNOWN_LIMIT {
            known.scripts.clear();
            known.epoch = epoch;
        }
        known.scripts.insert(*sha)
    }

    /// Nothing is loaded any more.
    pub fn clear(&self) {
        self.0.borrow_mut().scripts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_knows_nothing() {
        let loaded = Loaded::default();
        assert!(loaded.lacks(&[1; 20], 1));
        assert!(!loaded.lacks(&[1; 20], 1));
        assert!(loaded.lacks(&[1; 20], 2));
        loaded.clear();
        assert!(loaded.lacks(&[1; 20], 2));
    }
}
