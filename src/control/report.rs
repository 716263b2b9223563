//! The stats port's JSON: twemproxy's names, shape, order and spacing, with live values and our own numbers behind.

use std::cell::{Cell as StdCell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::publisher::Publisher;
use crate::config::{Config, Kept};
use crate::stats::{
    Cell, Definition, Kind, PoolBlock, PoolHealthBlock, PoolSpreadBlock, ServerBlock, ServerHealthBlock,
    ServerPlaceBlock, pool_definitions, server_definitions,
};
use crate::topology::Generation;
use crate::worker::{Budget, WorkerStats};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What control itself counts, by `PoolIx` and `ServerIx`. Only control writes it.
#[derive(Debug)]
pub struct HealthStats {
    /// By `PoolIx`.
    pub pools: Vec<Arc<PoolHealthStats>>,
}

/// Of one pool.
#[derive(Debug)]
pub struct PoolHealthStats {
    /// The pool's own.
    pub pool: PoolHealthBlock,
    /// By `ServerIx`.
    pub servers: Vec<Arc<ServerHealthBlock>>,
}

/// The sources as they are now: a reload replaces them. Whoever answers a question takes them once.
#[derive(Clone, Debug)]
pub struct Current {
    sources: Rc<RefCell<Rc<Sources>>>,
}

/// Where the numbers come from.
#[derive(Debug)]
pub struct Sources {
    /// Names of pools and servers.
    pub config: Arc<Config>,
    /// By worker.
    pub workers: Vec<Arc<WorkerStats>>,
    /// Control's own.
    pub health: Arc<HealthStats>,
    /// Listening sockets, which twemproxy counts as connections.
    pub listeners: u64,
    /// When the process started.
    pub started: Instant,
    /// The same, as others see it.
    pub started_at: SystemTime,
    /// The process goes down.
    pub draining: Rc<StdCell<bool>>,
    /// Who knows the owners of the keys; without it all servers are live.
    publisher: Option<Publisher>,
    /// What waits in all buffers.
    pub budget: Arc<Budget>,
    /// Lines that the log left out.
    pub suppressed: Arc<Cell>,
    /// Connections of clients and servers that belonged to what is no longer in the configuration, established since
    /// the start.
    retired: u64,
    hostname: OnceCell<String>,
    /// Shares of the key space by `PoolIx` and `ServerIx`, and the generation that they are of.
    shares: RefCell<(u64, Vec<Vec<f64>>)>,
}

impl HealthStats {
    /// All zero, in the shape of the configuration.
    pub fn new(config: &Config) -> Self {
        let pools = config.pools.iter().map(|pool| PoolHealthStats {
            pool: PoolHealthBlock::default(),
            servers: pool.servers.iter().map(|_| Arc::default()).collect(),
        });
        Self { pools: pools.map(Arc::new).collect() }
    }

    /// The same in the shape of the next configuration: what stays keeps its cells.
    pub fn carried(&self, kept: &Kept) -> Self {
        let pools = kept.carry(&self.pools, |pool, before| {
            let cells = PoolHealthBlock::default();
            let old = before.map_or(&[][..], |before| &before.servers);
            cells.server_ejects.set(before.map_or(0, |before| before.pool.server_ejects.value()));
            let servers = pool.carry(old, |cells| cells.cloned().unwrap_or_default());
            Arc::new(PoolHealthStats { pool: cells, servers })
        });
        Self { pools }
    }
}

impl Current {
    /// Starts with these.
    pub fn new(sources: Sources) -> Self {
        Self { sources: Rc::new(RefCell::new(Rc::new(sources))) }
    }

    /// The sources now.
    pub fn now(&self) -> Rc<Sources> {
        Rc::clone(&self.sources.borrow())
    }

    /// From now on the numbers are those of another configuration.
    pub fn replace(
        &self,
        config: Arc<Config>,
        workers: Vec<Arc<WorkerStats>>,
        health: Arc<HealthStats>,
        listeners: u64,
    ) {
        let now = self.now();
        let mut next = Sources::new(config, workers, health, listeners);
        (next.started, next.started_at) = (now.started, now.started_at);
        (next.draining, next.publisher) = (Rc::clone(&now.draining), now.publisher.clone());
        next.budget = Arc::clone(&now.budget);
        next.suppressed = Arc::clone(&now.suppressed);
        // What is counted no more was counted before: the sum of all never goes down.
        next.retired = now.established().saturating_sub(next.established());
        self.sources.replace(Rc::new(next));
    }
}

impl Sources {
    /// Gathers the sources; uptime counts from now.
    pub fn new(
        config: Arc<Config>,
        workers: Vec<Arc<WorkerStats>>,
        health: Arc<HealthStats>,
        listeners: u64,
    ) -> Self {
        Self {
            config,
            workers,
            health,
            listeners,
            started: Instant::now(),
            started_at: SystemTime::now(),
            draining: Rc::default(),
            publisher: None,
            budget: Arc::default(),
            suppressed: Arc::default(),
            retired: 0,
            hostname: OnceCell::new(),
            shares: RefCell::default(),
        }
    }

    /// Who owns which keys is what `publisher` has published last.
    pub fn with_publisher(self, publisher: Publisher) -> Self {
        Self { publisher: Some(publisher), ..self }
    }

    /// What waits in all buffers is counted by `budget`.
    pub fn with_budget(self, budget: Arc<Budget>) -> Self {
        Self { budget, ..self }
    }

    /// `suppressed` counts the lines that the log leaves out.
    pub fn with_suppressed(self, suppressed: Arc<Cell>) -> Self {
        Self { suppressed, ..self }
    }

    /// The generation that is in use.
    pub fn generation(&self) -> Arc<Generation> {
        match &self.publisher {
            Some(publisher) => publisher.generation(),
            None => Arc::new(Generation::first(Arc::clone(&self.config))),
        }
    }

    /// The whole answer: one JSON object and a line feed.
    pub fn render(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spacing::default());
        Report(self).serialize(&mut serializer).expect("writing to memory; every key is text");
        bytes.push(b'\n');
        bytes
    }

    /// Clients that are connected, and requests of theirs that servers have not answered yet.
    pub fn in_flight(&self) -> (u64, u64) {
        let requests = self.server_sum(|block| &block.in_queue) + self.server_sum(|block| &block.out_queue);
        (self.pool_sum(|block| &block.client_connections), requests)
    }

    /// Connections established since the start, those of clients and those of servers.
    fn established(&self) -> u64 {
        self.retired
            + self.pool_sum(|block| &block.client_total)
            + self.server_sum(|block| &block.server_total)
    }

    fn hostname(&self) -> &str {
        self.hostname.get_or_init(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            match name.trim() {
                "" => "unknown".into(),
                name => name.into(),
            }
        })
    }

    /// All numbers of a pool.
    pub fn pool_numbers(&self, pool: usize) -> Vec<Number> {
        let blocks = self.workers.iter().map(|worker| worker.pools[pool].pool.cells());
        let mut numbers = summed(PoolBlock::DEFINITIONS, blocks);
        let health = &self.health.pools[pool].pool;
        numbers.extend(summed(PoolHealthBlock::DEFINITIONS, std::iter::once(health.cells())));
        let spread = self.spread(pool);
        numbers.extend(summed(PoolSpreadBlock::DEFINITIONS, std::iter::once(spread.cells())));
        numbers
    }

    /// All numbers of a server.
    pub fn server_numbers(&self, pool: usize, server: usize) -> Vec<Number> {
        let blocks = self.workers.iter().map(|worker| worker.pools[pool].servers[server].cells());
        let mut numbers = summed(ServerBlock::DEFINITIONS, blocks);
        let health = &self.health.pools[pool].servers[server];
        numbers.extend(summed(ServerHealthBlock::DEFINITIONS, std::iter::once(health.cells())));
        let place = self.place(pool, server);
        numbers.extend(summed(ServerPlaceBlock::DEFINITIONS, std::iter::once(place.cells())));
        numbers
    }

    /// Where a server stands in its pool now.
    fn place(&self, pool: usize, server: usize) -> ServerPlaceBlock {
        let generation = self.generation();
        let mut shares = self.shares.borrow_mut();
        if shares.0 != generation.number {
            *shares = (generation.number, generation.pools.iter().map(|pool| pool.share()).collect());
        }
        let percent = shares.1.get(pool).and_then(|pool| pool.get(server)).copied().unwrap_or_default();
        let live = generation.pools.get(pool).and_then(|pool| pool.live().get(server).copied());
        let place = ServerPlaceBlock::default();
        place.ring_share.set((percent * 10_000.0).round() as u64);
        place.live.set(u64::from(live.unwrap_or(false)));
        place
    }

    fn spread(&self, pool: usize) -> PoolSpreadBlock {
        let clients = || self.workers.iter().map(|worker| worker.pools[pool].pool.client_connections.value());
        let spread = PoolSpreadBlock::default();
        spread.client_connections_most.set(clients().max().unwrap_or(0));
        spread.client_connections_least.set(clients().min().unwrap_or(0));
        spread
    }

    /// Sum of one number over all workers and pools.
    fn pool_sum(&self, number: impl Fn(&PoolBlock) -> &Cell) -> u64 {
        let pools = self.workers.iter().flat_map(|worker| &worker.pools);
        pools.map(|cells| number(&cells.pool).value()).fold(0, u64::wrapping_add)
    }

    /// Sum of one number over all workers, pools and servers.
    fn server_sum(&self, number: impl Fn(&ServerBlock) -> &Cell) -> u64 {
        let servers = self.workers.iter().flat_map(|worker| &worker.pools).flat_map(|cells| &cells.servers);
        servers.map(|block| number(block).value()).fold(0, u64::wrapping_add)
    }
}

/// Serialised as streams, not as maps: a server may be called like a counter, and then both are shown.
struct Report<'a>(&'a Sources);

struct PoolReport<'a> {
    sources: &'a Sources,
    pool: usize,
}

struct ServerReport<'a> {
    sources: &'a Sources,
    pool: usize,
    server: usize,
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sources = self.0;
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let total = sources.established();
        let current = sources.pool_sum(|block| &block.client_connections)
            + sources.server_sum(|block| &block.server_connections);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("service", "shardwise")?;
        map.serialize_entry("source", sources.hostname())?;
        map.serialize_entry("version", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("uptime", &sources.started.elapsed().as_secs())?;
        map.serialize_entry("timestamp", &timestamp)?;
        map.serialize_entry("total_connections", &(total + sources.listeners))?;
        map.serialize_entry("curr_connections", &(current + sources.listeners))?;
        for (pool, config) in sources.config.pools.iter().enumerate() {
            map.serialize_entry(&config.name, &PoolReport { sources, pool })?;
        }
        map.end()
    }
}

impl Serialize for PoolReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { sources, pool } = *self;
        let mut map = serializer.serialize_map(None)?;
        write_in_order(&mut map, &pool_definitions(), &sources.pool_numbers(pool))?;
        for (server, config) in sources.config.pools[pool].servers.iter().enumerate() {
            map.serialize_entry(&config.name, &ServerReport { sources, pool, server })?;
        }
        map.end()
    }
}

impl Serialize for ServerReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { sources, pool, server } = *self;
        let mut map = serializer.serialize_map(None)?;
        write_in_order(&mut map, &server_definitions(), &sources.server_numbers(pool, server))?;
        map.end()
    }
}

/// A number and its name in the definitions.
pub type Number = (&'static str, u64);

/// One number for each definition: counters and gauges are added up, of points in time the latest counts.
pub(super) fn summed<'a, C>(definitions: &[Definition], blocks: impl Iterator<Item = C>) -> Vec<Number>
where
    C: Iterator<Item = &'a Cell>,
{
    let mut numbers: Vec<Number> = definitions.iter().map(|definition| (definition.name, 0)).collect();
    for cells in blocks {
        for ((cell, definition), (_, number)) in cells.zip(definitions).zip(&mut numbers) {
            *number = match definition.kind {
                Kind::Counter | Kind::Gauge | Kind::Spent | Kind::Time => number.wrapping_add(cell.value()),
                Kind::Timestamp | Kind::Share => cell.value().max(*number),
            };
        }
    }
    numbers
}

fn write_in_order<M: SerializeMap>(
    map: &mut M,
    order: &[Definition],
    numbers: &[Number],
) -> Result<(), M::Error> {
    for definition in order {
        let number = numbers.iter().find(|(name, _)| *name == definition.name);
        let (name, value) = number.expect("the order lists the definitions of the same blocks");
        map.serialize_entry(name, value)?;
    }
    Ok(())
}

/// `"key":value, "key":value, "key": {…}`, as twemproxy spaces it.
#[derive(Default)]
struct Spacing {
    depth: usize,
}

impl serde_json::ser::Formatter for Spacing {
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(if self.depth == 1 { b"{" } else { b" {" })
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{TWEMPROXY_POOL, TWEMPROXY_SERVER};

    const POOL: &str = r#"
"al\"pha":
  listen: 127.0.0.1:22121
  redis: true
  servers:
   - 127.0.0.1:6379:1 one
   - 127.0.0.1:6380:1 client_eof
"#;

    fn config() -> Arc<Config> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), POOL).unwrap();
        Arc::new(Config::load(file.path()).unwrap())
    }

    fn worker(config: &Config) -> Arc<WorkerStats> {
        Arc::new(WorkerStats::new(config.pools.iter().map(|pool| pool.servers.len())))
    }

    fn sources() -> Sources {
        let config = config();
        let workers = vec![worker(&config), worker(&config)];
        let health = Arc::new(HealthStats::new(&config));
        Sources::new(config, workers, health, 2)
    }

    fn rendered(sources: &Sources) -> (String, serde_json::Value) {
        let text = String::from_utf8(sources.render()).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }

    #[test]
    fn the_shape_is_twemproxys() {
        let (text, value) = rendered(&sources());
        assert!(text.starts_with(r#"{"service":"shardwise", "source":""#), "{text}");
        assert!(
            text.contains(r#", "al\"pha": {"client_eof":0, "client_err":0, "client_connections":0, "#),
            "{text}"
        );
        assert!(text.ends_with("}}}\n"), "{text}");
        let global: Vec<&String> = value.as_object().unwrap().keys().take(7).collect();
        let expected =
            ["service", "source", "version", "uptime", "timestamp", "total_connections", "curr_connections"];
        assert_eq!(global, expected);
        let server: Vec<&String> = value["al\"pha"]["one"].as_object().unwrap().keys().collect();
        assert_eq!(server[..13], TWEMPROXY_SERVER);
    }

    #[test]
    fn pool_counters_come_before_the_servers_in_twemproxys_order() {
        let (text, _) = rendered(&sources());
        let places: Vec<usize> =
            TWEMPROXY_POOL.iter().map(|name| text.find(&format!("\"{name}\":0")).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(places[5] < text.find("\"one\": {").unwrap(), "{text}");
    }

    #[test]
    fn a_server_called_like_a_counter_hides_nothing() {
        let (text, _) = rendered(&sources());
        assert!(text.contains(r#""client_eof":0"#) && text.contains(r#""client_eof": {"#), "{text}");
    }

    #[test]
    fn workers_are_added_up_and_times_are_not() {
        let sources = sources();
        for (index, worker) in (1..).zip(&sources.workers) {
            worker.pools[0].pool.client_connections.set(10 * index);
            worker.pools[0].pool.client_total.set(100 * index);
            let server =
                sources.config.pools[0].servers.iter().position(|server| server.name == "one").unwrap();
            worker.pools[0].servers[server].requests.set(index);
            worker.pools[0].servers[server].server_connections.set(1);
            worker.pools[0].servers[server].last_success.set(1000 * index);
        }
        sources.health.pools[0].pool.server_ejects.set(7);
        let (_, value) = rendered(&sources);
        assert_eq!(value["total_connections"], 300 + 2);
        assert_eq!(value["curr_connections"], 30 + 2 + 2);
        assert_eq!(value["al\"pha"]["client_connections"], 30);
        assert_eq!(value["al\"pha"]["client_connections_most"], 20);
        assert_eq!(value["al\"pha"]["client_connections_least"], 10);
        assert_eq!(value["al\"pha"]["server_ejects"], 7);
        assert_eq!(value["al\"pha"]["one"]["requests"], 3);
        assert_eq!(value["al\"pha"]["one"]["last_success"], 2000);
    }
}
