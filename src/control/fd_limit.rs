//! Raises the limit of open files to what the configuration needs, and keeps clients from taking what others need.

use rlimit::{Resource, getrlimit, setrlimit};
use tracing::{info, warn};

use super::doors::sockets;
use crate::config::Config;
use crate::units::Limit;

/// For the log, the config file, stats readers, probes and the runtime.
const CONTROL: u64 = 96;
/// Of each worker's runtime.
const WORKER: u64 = 8;
/// Clients that a pool without `client_connections` is expected to have at least.
const SOME_CLIENTS: u64 = 1024;
/// Where raising the limit for pools without `client_connections` stops.
const PLENTY: u64 = 1 << 20;

/// Descriptors that a configuration needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    /// At all events: listeners, server connections, our own.
    fixed: u64,
    /// For clients, by `client_connections`; without that: how many we would like to be able to serve.
    clients: u64,
    /// Without `client_connections` in some pool: the least that makes sense.
    least_clients: u64,
}

/// Raises the soft limit, and the hard one where that is allowed and needed. Warns if it is still too low. Returns how many
/// clients there are descriptors for: more would take those of the server connections, and nobody would be served.
pub(super) fn raise(config: &Config, workers: usize) -> u32 {
    let need = need(config, workers as u64);
    let (soft, hard) = match getrlimit(Resource::NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            warn!("cannot see the limit of open files: {error}");
            return u32::MAX;
        }
    };
    let least = need.fixed + need.least_clients;
    let mut reached = soft;
    let wanted = if hard < least { least } else { (need.fixed + need.clients).min(hard) };
    if wanted > soft {
        if setrlimit(Resource::NOFILE, wanted, hard.max(wanted)).is_ok() {
            reached = wanted;
        } else if setrlimit(Resource::NOFILE, hard, hard).is_ok() {
            reached = hard;
        }
    }
    if reached < least {
        warn!(
            limit = reached,
            needed = least,
            clients = room(reached, need.fixed),
            "the limit of open files is too low: clients beyond this number are refused"
        );
    } else if reached > soft {
        info!(from = soft, to = reached, "raised the limit of open files");
    }
    room(reached, need.fixed)
}

/// At least one: a proxy for nobody is of no use.
fn room(limit: u64, fixed: u64) -> u32 {
    u32::try_from(limit.saturating_sub(fixed).max(1)).unwrap_or(u32::MAX)
}

fn need(config: &Config, workers: u64) -> Need {
    let mut need = Need { fixed: CONTROL + workers * WORKER, clients: 0, least_clients: 0 };
    for pool in &config.pools {
        let connections = pool.servers.len() as u64 * u64::from(pool.server_connections.get());
        need.fixed += connections * workers + sockets(pool, workers as usize) as u64;
        let most = enforced(&pool.client_connections);
        need.clients += most.unwrap_or(PLENTY);
        need.least_clients += most.unwrap_or(SOME_CLIENTS);
    }
    need.clients = need.clients.min(PLENTY.max(need.least_clients));
    if let Some(most) = enforced(&config.process.max_clients) {
        need.clients = need.clients.min(most);
        need.least_clients = need.least_clients.min(most);
    }
    need
}

/// A limit that only counts bounds nothing.
fn enforced(limit: &Limit<u32>) -> Option<u64> {
    limit.bound().filter(|_| !limit.only_counts()).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_count_once_for_each_worker() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "alpha:\n  listen: 127.0.0.1:1\n  redis: true\n  servers:\n   - 127.0.0.1:2:1 a\n   \
                    - 127.0.0.1:3:1 b\n";
        std::fs::write(file.path(), text).unwrap();
        let config = Config::load(file.path()).unwrap();
        let (one, four) = (need(&config, 1), need(&config, 4));
        assert_eq!(one.fixed, CONTROL + WORKER + 2 + 1);
        assert_eq!(four.fixed, CONTROL + 4 * WORKER + 8 + 1);
        assert_eq!((one.clients, one.least_clients), (PLENTY, SOME_CLIENTS));
        let process = crate::config::Process { max_clients: Limit::enforced(100), ..config.process };
        let few = need(&Config { process, ..config }, 1);
        assert_eq!((few.clients, few.least_clients), (100, 100), "max_clients bounds all pools together");
    }
}
