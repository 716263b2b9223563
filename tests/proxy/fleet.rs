//! The proxy before servers named s0, s1, …, with keys of which it is known where they live.

use std::time::Duration;

use shardwise::config::{Config, Pool};
use shardwise::topology::{Draw, Topology};

use crate::support::{PATIENCE, Port, Redis, Resp, Shardwise, Value, pool_of, wait_until};

/// A proxy with one pool, `alpha`. Declare it behind its servers: it must end before them.
#[derive(Debug)]
pub struct Fleet {
    pub proxy: Shardwise,
    pub port: Port,
    pool: Pool,
}

impl Fleet {
    /// In front of these servers, with two workers and these further lines of the pool.
    pub fn of(servers: &[Redis], settings: &str) -> Self {
        Self::over(&entries(servers), settings, &["--threads", "2"])
    }

    /// In front of the servers of these entries, which aren't asked for their commands: scripted ones would have to answer.
    pub fn over(entries: &[String], settings: &str, args: &[&str]) -> Self {
        let port = Port::claim();
        let settings = format!("learn_commands: false\n{settings}");
        let yaml = pool_of("alpha", &port.address(), entries, &settings);
        Self::configured(port, &yaml, args)
    }

    /// With a whole configuration, of which `alpha` listens on `port`.
    pub fn configured(port: Port, yaml: &str, args: &[&str]) -> Self {
        let proxy = Shardwise::with_args(yaml, args);
        let config = Config::load(&proxy.config_path()).expect("the proxy has taken it");
        Self { proxy, port, pool: config.pools[0].clone() }
    }

    /// A client.
    pub fn client(&self) -> Resp {
        Resp::port(self.port.number())
    }

    /// The pool as the proxy sees it.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// `count` keys that live on server `server`; other `prefix`es give other keys.
    pub fn keys(&self, server: usize, prefix: &str, count: usize) -> Vec<String> {
        let (topology, draw) = (Topology::all_live(&self.pool), Draw::seeded(1));
        // The number stands in front: FNV hardly spreads keys that differ in their last byte.
        let keys = (0..).map(|i| format!("{i}:{prefix}"));
        let here =
            |key: &String| topology.server(key.as_bytes(), &draw).is_some_and(|ix| ix.index() == server);
        keys.filter(here).take(count).collect()
    }

    /// One key that lives on server `server`.
    pub fn key(&self, server: usize) -> String {
        self.keys(server, "key", 1).remove(0)
    }

    /// How error replies name server `server`.
    pub fn label(&self, server: usize) -> String {
        let server = &self.pool.servers[server];
        format!("{} ({})", server.name, server.endpoint)
    }

    /// One of the pool's numbers now.
    pub fn stat(&self, name: &str) -> u64 {
        number(&self.proxy.stats()["alpha"][name], name)
    }

    /// One of a server's numbers now.
    pub fn server_stat(&self, server: usize, name: &str) -> u64 {
        number(&self.proxy.stats()["alpha"][&self.pool.servers[server].name][name], name)
    }

    /// Waits until the keys of server `server` are served.
    #[track_caller]
    pub fn wait_served(&self, server: usize, limit: Duration) {
        let key = self.key(server);
        // As many clients as there are workers, and more: each worker has connections of its own.
        let mut clients: Vec<Resp> = (0..4).map(|_| self.client()).collect();
        wait_until("the server to be used again", limit, || {
            clients.iter_mut().all(|client| !matches!(client.call(["GET", &key]), Value::Error(_)))
        });
    }

    /// Waits until no client is left and nothing waits for any server (DESIGN §5.9).
    #[track_caller]
    pub fn wait_idle(&self) {
        let gauges = || {
            let stats = self.proxy.stats();
            let pool = &stats["alpha"];
            let queues = ["in_queue", "in_queue_bytes", "out_queue", "out_queue_bytes"];
            let mut all = vec![("client_connections", number(&pool["client_connections"], "clients"))];
            for server in &self.pool.servers {
                all.extend(queues.map(|name| (name, number(&pool[&server.name][name], name))));
            }
            all
        };
        let idle = crate::support::poll(PATIENCE, || gauges().iter().all(|(_, number)| *number == 0));
        assert!(idle, "gauges do not return to 0: {:?}", gauges());
    }

    /// Resident memory of the proxy, in KiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.proxy.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
        line.trim().trim_end_matches("kB").trim().parse().expect("a number")
    }

    /// Open file descriptors of the proxy.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.proxy.pid())).expect("it runs").count()
    }
}

/// Lines for `servers:`, named s0, s1, …
pub fn entries(servers: &[Redis]) -> Vec<String> {
    servers.iter().enumerate().map(|(i, server)| format!("{} s{i}", server.entry(1))).collect()
}

fn number(value: &serde_json::Value, name: &str) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{name} is no number: {value}"))
}
