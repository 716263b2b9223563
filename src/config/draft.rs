//! From the entries of a pool to a [`Pool`]: what one key alone can't tell.

use std::path::Path;

use crate::command::CommandTable;
use crate::hash::Algorithm;
use crate::units::{Listen, Quoted, Secret};

use super::error::{Reason, SecretError};
use super::findings::Findings;
use super::pool::{Distribution, Pool};
use super::pool_keys::{Draft, KEYS};
use super::process::{self, Process, ProcessDraft};
use super::raw::{Entries, Text};
use super::secret::{self, Outside};
use super::section::{self, Given};
use super::server;
use super::source::{self, Setting};

/// A pool that has been read, and what the file as a whole needs to know of it.
pub(super) struct Read {
    pub(super) pool: Pool,
    /// `redis` is false, or isn't there.
    pub(super) is_memcached: bool,
    /// Line of `listen`, where it is a valid one.
    pub(super) listen_line: Option<usize>,
    /// Every key, with where its value comes from.
    pub(super) settings: Vec<Setting>,
}

/// Reads one pool. After a fault, noted in `findings`, the pool has blanks and must not be used.
pub(super) fn read(name: Text, entries: Entries, outside: &Sources, findings: &mut Findings) -> Read {
    let Text { text: name, line } = name;
    let path = section::join("", &name);
    let mut draft = Draft::new(name);
    let given = section::read(entries, KEYS, &mut draft, (&path, line), findings);
    let place = Place { path: &path, line, given: &given };
    let settings = source::settings(&draft.pool.name, KEYS, &given);

    // A value that is neither true nor false has an error of its own.
    let is_memcached = !draft.redis && !given.is_refused("redis");
    let auth = (draft.redis_auth.as_ref(), draft.redis_auth_file.as_ref());
    let redis_auth = place.password(["redis_auth", "redis_auth_file"], auth, outside, findings);
    let Draft { mut pool, listen, servers, .. } = draft;
    let listen_line = listen.as_ref().and(given.line("listen"));
    if let Some((listen, text)) = listen {
        place.warn_of_lost_mode(&listen, &text, findings);
        pool.listen = listen;
    }
    if let Some(items) = servers {
        let path = section::join(&path, "servers");
        pool.servers = server::read(items, &path, place.line_of("servers"), findings);
    }
    pool.redis_auth = redis_auth;
    place.check_limits(&pool, findings);
    place.warn(&pool, findings);
    Read { pool, is_memcached, listen_line, settings }
}

/// Reads the process-wide section into `process`; returns every key, with where its value comes from.
pub(super) fn read_process(
    name: &Text,
    entries: Entries,
    process: &mut Process,
    outside: &Sources,
    findings: &mut Findings,
) -> Vec<Setting> {
    let mut draft = ProcessDraft::default();
    let given = section::read(entries, process::KEYS, &mut draft, (&name.text, name.line), findings);
    let place = Place { path: &name.text, line: name.line, given: &given };
    let password = (draft.admin_password.as_ref(), draft.admin_password_file.as_ref());
    let keys = ["admin_password", "admin_password_file"];
    draft.process.admin_password = place.password(keys, password, outside, findings);
    place.check_control_ports(&draft.process, password.0.or(password.1).is_some(), findings);
    *process = draft.process;
    source::settings(&name.text, process::KEYS, &given)
}

/// What passwords may come from.
pub(super) struct Sources<'a> {
    /// The folder at which relative names start.
    pub(super) folder: &'a Path,
    pub(super) outside: &'a Outside<'a>,
}

/// Where a pool is in the file.
struct Place<'a> {
    path: &'a str,
    line: usize,
    given: &'a Given,
}

impl Place<'_> {
    fn line_of(&self, key: &str) -> usize {
        self.given.line(key).unwrap_or(self.line)
    }

    fn error(&self, key: &str, reason: Reason, findings: &mut Findings) {
        findings.error(self.line_of(key), section::join(self.path, key), reason, None);
    }

    fn warning(&self, key: &str, why: &str, findings: &mut Findings) {
        findings.warning(self.line_of(key), &section::join(self.path, key), why);
    }

    /// A password that is given as it is, or as the name of a file; `keys` are those of the one and of the other.
    fn password(
        &self,
        keys: [&'static str; 2],
        given: (Option<&Text>, Option<&Text>),
        sources: &Sources,
        findings: &mut Findings,
    ) -> Option<Secret> {
        let (key, password) = match given {
            (None, None) => return None,
            (Some(_), Some(_)) => {
                let why = "excludes the password itself, give one of the two";
                self.error(keys[1], Reason::Conflict(why), findings);
                return None;
            }
            (Some(text), None) => (keys[0], secret::expand(&text.text, sources.outside.env)),
            (None, Some(name)) => (keys[1], self.password_file(keys[1], &name.text, sources, findings)),
        };
        match password {
            Ok(secret) => Some(secret),
            Err(why) => {
                self.error(key, Reason::Secret(why), findings);
                None
            }
        }
    }

    fn password_file(
        &self,
        key: &str,
        name: &str,
        sources: &Sources,
        findings: &mut Findings,
    ) -> Result<Secret, SecretError> {
        let path = sources.folder.join(name);
        match (sources.outside.secret_file)(&path) {
            Ok(file) => {
                if file.is_public {
                    let why = "others than the owner can read this file, chmod 600 it";
                    self.warning(key, why, findings);
                }
                secret::from_file(&file.bytes)
            }
            Err(why) => Err(SecretError::File { path, why: why.to_string() }),
        }
    }

    /// Whoever reaches the admin port rules the process; whoever reaches the other one only reads.
    fn check_control_ports(&self, process: &Process, has_password: bool, findings: &mut Findings) {
        if process.admin.as_ref().is_some_and(|listen| !listen.is_local()) && !has_password {
            let why = "can be reached from other machines, give admin_password as well";
            self.error("admin", Reason::Conflict(why), findings);
        }
        if process.metrics.as_ref().is_some_and(Listen::is_any_address) {
            let why = "listens on all addresses and asks for no password: whoever reaches this machine sees the numbers";
            self.warning("metrics", why, findings);
        }
        if process.metrics.is_some() && process.metrics == process.admin {
            self.error("admin", Reason::Conflict("must differ from metrics"), findings);
        }
    }

    fn check_limits(&self, pool: &Pool, findings: &mut Findings) {
        let (soft, hard) = (pool.out_soft.bound(), pool.out_hard.bound());
        if soft.zip(hard).is_some_and(|(soft, hard)| hard < soft) {
            // The default of either may be the one that is in the way.
            let key = if self.given.line("out_hard").is_some() { "out_hard" } else { "out_soft" };
            self.error(key, Reason::Conflict("out_hard must not be less than out_soft"), findings);
        }
    }

    /// Says what is accepted for twemproxy's sake, or as it stands, but is likely not meant.
    fn warn(&self, pool: &Pool, findings: &mut Findings) {
        let several = pool.servers.len() > 1;
        let algorithm = pool.hash.algorithm;
        if several && algorithm == Algorithm::Crc32 && pool.distribution == Distribution::Ketama {
            let why = "crc32 has 15 bits, with ketama practically every key goes to one server; \
                       take modula, or another hash (crc32a has all 32 bits)";
            self.warning("hash", why, findings);
        }
        if several && pool.distribution == Distribution::Random {
            let why = "random sends each request to any server, so a key is rarely read where it was written";
            self.warning("distribution", why, findings);
        }
        let named = pool.commands.iter().flat_map(|commands| commands.unknown(CommandTable::builtin()));
        for name in named {
            let why = match pool.learn_commands {
                true => "is no command of docs/commands.md: it is meant for servers that know it",
                false => "is no command of docs/commands.md, and with learn_commands: false it has no effect",
            };
            self.warning("commands", &format!("{} {why}", Quoted(name)), findings);
        }
        if self.given.line("hash_char").is_some() && !algorithm.depends_on_sign() {
            let why = format!("has no effect with hash {}", algorithm.name());
            self.warning("hash_char", &why, findings);
        }
        if pool.listen.is_any_address() && pool.redis_auth.is_none() {
            let why =
                "listens on all addresses without redis_auth: whoever reaches this machine can use the pool";
            self.warning("listen", why, findings);
        }
    }

    /// `/tmp/my sock` listens on `/tmp/my`, as with nutcracker.
    fn warn_of_lost_mode(&self, listen: &Listen, text: &str, findings: &mut Findings) {
        if let (Listen::Unix { path, mode: None }, Some((_, perm))) = (listen, text.rsplit_once(' ')) {
            let path = path.display().to_string();
            let why = format!(
                "{} is no octal mode and has no effect, the socket is {}",
                Quoted(perm),
                Quoted(&path)
            );
            self.warning("listen", &why, findings);
        }
    }
}
