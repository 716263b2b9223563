//! Scripts that clients have shown to the proxy, so that a server that lacks one can be given it.
//!
//! `EVALSHA` names a script by its SHA-1. A client loads it once and takes it for known from then on; but here the next key
//! may live on a server that was restarted since, or that never saw the `EVAL`. So what goes by is remembered.

use std::sync::PoisonError;

use bytes::Bytes;
use lru::LruCache;
use sha1::{Digest, Sha1};

/// The SHA-1 of a script's text, by which Redis names it.
pub(super) type Sha = [u8; 20];

/// The scripts of all pools and workers.
///
/// Shared, because the client that loads a script and the one that calls it may be on different workers. The lock is taken
/// for calls of scripts only, each of which keeps a server busy for many times as long.
#[derive(Debug)]
#[allow(clippy::disallowed_types)] // never on the path of a plain request, and held for a look into a map
pub struct Scripts(std::sync::Mutex<Remembered>);

#[derive(Debug)]
struct Remembered {
    /// By pool and SHA-1; the least recently used one goes first.
    bodies: LruCache<(u32, Sha), Bytes>,
    /// Bytes of them, [`OVERHEAD`] included.
    bytes: usize,
}

/// Bytes of scripts that are remembered in the whole process.
const LIMIT: usize = 16 << 20;

/// A script larger than this is not remembered: it would push too many others out.
const LONGEST: usize = LIMIT / 4;

/// What a remembered script costs beside its text: table entries and the allocation.
const OVERHEAD: usize = 200;

impl Default for Scripts {
    fn default() -> Self {
        Self(Remembered { bodies: LruCache::unbounded(), bytes: 0 }.into())
    }
}

impl Scripts {
    /// Keeps a script of a pool, in place of those that were not used for the longest time.
    pub(super) fn remember(&self, pool: u32, body: &[u8]) -> Sha {
        let sha = sha_of(body);
        if body.len() <= LONGEST {
            self.with(|all| all.remember((pool, sha), body));
        }
        sha
    }

    /// The script of that name, if it was seen in the pool and is still there.
    pub(super) fn body(&self, pool: u32, sha: &Sha) -> Option<Bytes> {
        self.with(|all| all.bodies.get(&(pool, *sha)).cloned())
    }

    /// SCRIPT FLUSH: none of the pool's are remembered any more.
    pub(super) fn forget(&self, pool: u32) {
        self.with(|all| {
            let gone: Vec<_> = all.bodies.iter().map(|(key, _)| *key).filter(|key| key.0 == pool).collect();
            for key in gone {
                all.bytes -= all.bodies.pop(&key).map_or(0, |body| body.len() + OVERHEAD);
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Remembered) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Remembered {
    fn remember(&mut self, key: (u32, Sha), body: &[u8]) {
        if self.bodies.get(&key).is_some() {
            return;
        }
        self.bytes += body.len() + OVERHEAD;
        self.bodies.put(key, Bytes::copy_from_slice(body));
        while self.bytes > LIMIT
            && let Some((_, body)) = self.bodies.pop_lru()
        {
            self.bytes -= body.len() + OVERHEAD;
        }
    }
}

/// The SHA-1 of a script.
fn sha_of(body: &[u8]) -> Sha {
    Sha1::digest(body).into()
}

/// The SHA-1 that a client wrote: 40 hexadecimal digits in any case.
pub(super) fn parse_sha(text: &[u8]) -> Option<Sha> {
    let (digits, []) = text.as_chunks::<2>() else { return None };
    let mut sha = [0; 20];
    if digits.len() != sha.len() {
        return None;
    }
    for (byte, [high, low]) in sha.iter_mut().zip(digits) {
        *byte = (hex(*high)? << 4) | hex(*low)?;
    }
    Some(sha)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_under_its_sha_in_its_own_pool() {
        let scripts = Scripts::default();
        let sha = scripts.remember(1, b"return 1");
        assert_eq!(parse_sha(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"), Some(sha));
        assert_eq!(parse_sha(b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"), Some(sha));
        assert_eq!(scripts.body(1, &sha).as_deref(), Some(&b"return 1"[..]));
        assert_eq!(scripts.body(2, &sha), None);
        scripts.remember(2, b"return 1");
        scripts.forget(1);
        assert_eq!(scripts.body(1, &sha), None);
        assert!(scripts.body(2, &sha).is_some());
        assert_eq!(scripts.with(|all| all.bytes), 8 + OVERHEAD);
        for odd in [
            "",
            "x",
            "e0e1f9fabfc9d4800c877a703b823ac0578ff8d",
            "e0e1f9fabfc9d4800c877a703b823ac0578ff8dbe",
            "g0e1f9fabfc9d4800c877a703b823ac0578ff8db",
        ] {
            assert_eq!(parse_sha(odd.as_bytes()), None, "{odd}");
        }
    }

    /// Scripts that are made up for each call must not fill the memory, nor push out one that is in use.
    #[test]
    fn the_least_recently_used_go_first_and_the_bound_holds() {
        let scripts = Scripts::default();
        let used = scripts.remember(1, b"return 'used'");
        let first = scripts.remember(1, b"return 'first'");
        for i in 0..40_000 {
            scripts.remember(1, format!("return '{i}{}'", " ".repeat(1000)).as_bytes());
            assert!(scripts.body(1, &used).is_some(), "after {i}");
        }
        assert_eq!(scripts.body(1, &first), None);
        assert!(scripts.with(|all| all.bytes) <= LIMIT);
        let large = scripts.remember(1, &vec![b' '; LONGEST + 1]);
        assert_eq!(scripts.body(1, &large), None);
    }
}
