//! The proxy in front of some servers, as most tests want it.

use super::{Port, Random, Redis, Resp, Shardwise, pool};

/// `N` redis-servers and shardwise before them, with one pool named `alpha`.
#[derive(Debug)]
pub struct Shards<const N: usize> {
    /// The proxy.
    pub proxy: Shardwise,
    /// Its servers, in the order of the configuration.
    pub servers: [Redis; N],
    port: Port,
}

impl<const N: usize> Shards<N> {
    /// Starts all of it, with two workers and these further lines of the pool.
    pub fn start(settings: &str) -> Self {
        Self::with_servers(Redis::start_many(), settings, &["--threads", "2"])
    }

    /// Like [`Self::start`], with one worker: what it has read before it answers one client, it has read from others.
    pub fn on_one_thread(settings: &str) -> Self {
        Self::with_servers(Redis::start_many(), settings, &["--threads", "1"])
    }

    /// Starts the proxy with `args` before these servers.
    pub fn with_servers(servers: [Redis; N], settings: &str, args: &[&str]) -> Self {
        let port = Port::claim();
        let yaml = pool("alpha", &port, &servers.each_ref(), settings);
        Self { proxy: Shardwise::with_args(&yaml, args), servers, port }
    }

    /// A client of the proxy.
    pub fn client(&self) -> Resp {
        Resp::port(self.port.number())
    }

    /// The port of the pool.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `K` keys that belong to each server: no key twice. They are found by writing, and removed again.
    pub fn keys<const K: usize>(&self) -> [[String; K]; N] {
        let mut client = self.client();
        // Names that resemble each other have hashes that do, with FNV: most would go to one server.
        let mut random = Random::seeded(7);
        let tries: Vec<String> = (0..N * (K + 10) * 3).map(|_| format!("key:{:x}", random.bits())).collect();
        client.pipeline(tries.iter().map(|key| ["SET", key, ""]));
        self.servers.each_ref().map(|server| {
            let mut server = server.client();
            let exist = server.pipeline(tries.iter().map(|key| ["DEL", key]));
            let own = tries.iter().zip(exist).filter(|(_, deleted)| deleted.int() == 1);
            let own: Vec<String> = own.map(|(key, _)| key.clone()).take(K).collect();
            own.try_into().unwrap_or_else(|own| panic!("a server has fewer keys than its share: {own:?}"))
        })
    }
}
