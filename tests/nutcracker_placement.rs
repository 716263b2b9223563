//! The promise that no key moves, against the real thing: 10,000 keys are written through `nutcracker`, every
//! redis-server is asked which of them it holds, and each must be the one that shardwise names.
//!
//! Needs `nutcracker` and `redis-server` (Debian's packages of these names).

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use shardwise::config::{Distribution, Pool, Server};
use shardwise::hash::{Algorithm, KeyHash};
use shardwise::topology::{Draw, Topology, explain};
use shardwise::units::Endpoint;

mod pools;

use pools::{pool, server};
use process::{Client, Nutcracker, Shard};

const KEYS: usize = 10_000;
const NAMES: [&str; 4] = ["server10", "server9", "b", "c4"];
const UNEQUAL: [u32; 4] = [2, 7, 1, 3];

/// Each of twemproxy's hashes × {ketama, modula} × {named, unnamed} × {equal, unequal weights} × {tag, none}.
#[test]
fn every_combination_places_every_key_alike() {
    let shards = Shards::start(4);
    let keys = keys();
    for algorithm in Algorithm::ALL {
        if algorithm != Algorithm::Xxh3_64 {
            shards.compare(combinations(algorithm, &shards), &keys);
        }
    }
}

/// Labels that twemproxy derives in ways of its own, and a tag whose ends are alike.
#[test]
fn odd_labels_and_tags_place_every_key_alike() {
    let shards = Shards::start(4);
    let all = || shards.list.iter();
    let long = |length: usize| {
        all()
            .zip("abcd".chars())
            .map(move |(shard, letter)| server(&letter.to_string().repeat(length), shard.port, 1))
    };
    let unix = all().map(|shard| Server {
        name: format!("{}:", shard.socket.display()),
        endpoint: Endpoint::Unix(shard.socket.clone()),
        ..server("", 0, 1)
    });
    let named = || all().zip(NAMES).map(|(shard, name)| server(name, shard.port, 1));
    let dollars = KeyHash { tag: Some(*b"$$"), ..KeyHash::default() };

    let cases = [
        ("unix", KeyHash::default(), unix.collect::<Vec<_>>()),
        ("long270", KeyHash::default(), long(270).collect()),
        ("long300", KeyHash::default(), long(300).collect()),
        ("dollars", dollars, named().collect()),
        (
            "heavy",
            KeyHash::default(),
            all()
                .zip([100_000, 1, 1, 50_000])
                .map(|(shard, weight)| server(&format!("127.0.0.1:{}", shard.port), shard.port, weight))
                .collect(),
        ),
    ];
    let pools = cases.into_iter().map(|(name, hash, servers)| Pool {
        name: name.to_owned(),
        ..pool(hash, Distribution::Ketama, servers)
    });
    shards.compare(pools.collect(), &keys());
}

/// After an ejection the ring is made anew of the servers that are left, with their weights and their number.
#[test]
fn ejection_places_every_key_alike() {
    let shards = Shards::start(4);
    // Nobody listens there as long as this socket isn't listening.
    let (_reserved, port) = process::reserve_port();
    let cases = [
        ("ketama-equal", Distribution::Ketama, [1; 5]),
        ("ketama-unequal", Distribution::Ketama, [2, 7, 1, 3, 5]),
        ("modula-unequal", Distribution::Modula, [2, 7, 1, 3, 5]),
    ];
    let pools: Vec<Pool> = cases
        .into_iter()
        .map(|(name, distribution, weights)| {
            let ports = shards.list.iter().map(|shard| shard.port).chain([port]);
            let labels = NAMES.into_iter().chain(["dead"]);
            let servers =
                ports.zip(labels).zip(weights).map(|((port, label), weight)| server(label, port, weight));
            let plain = pool(KeyHash::default(), distribution, servers.collect());
            Pool { name: name.to_owned(), auto_eject_hosts: true, ..plain }
        })
        .collect();
    let nutcracker = shards.front(&pools);
    let keys = keys();
    for pool in &pools {
        let live: Vec<bool> = pool.servers.iter().map(|server| server.name != "dead").collect();
        let mut client = nutcracker.client(&pool.name);
        let refused = (0..1_000).any(|number| {
            let key = format!("eject:{number}");
            client.call(&[b"SET", key.as_bytes(), b""]).starts_with("-")
        });
        assert!(refused, "{}: no request met the dead server", pool.name);
        shards.compare_one(pool, &Topology::new(pool, &live), client, &keys);
    }
}

fn combinations(algorithm: Algorithm, shards: &Shards) -> Vec<Pool> {
    let mut pools = Vec::new();
    for distribution in [Distribution::Ketama, Distribution::Modula] {
        for named in [true, false] {
            for weights in [[1; 4], UNEQUAL] {
                for tag in [None, Some(*b"{}")] {
                    let servers =
                        shards.list.iter().zip(NAMES).zip(weights).map(|((shard, name), weight)| {
                            let unnamed = format!("127.0.0.1:{}", shard.port);
                            server(if named { name } else { &unnamed }, shard.port, weight)
                        });
                    let hash = KeyHash { algorithm, tag, ..KeyHash::default() };
                    let name = format!("{algorithm}-{}", pools.len());
                    pools.push(Pool { name, ..pool(hash, distribution, servers.collect()) });
                }
            }
        }
    }
    assert_eq!(pools.len(), 16);
    pools
}

/// The redis-servers of one test.
struct Shards {
    list: Vec<Shard>,
    /// Sockets and configuration files; gone with the test.
    dir: tempfile::TempDir,
}

impl Shards {
    fn start(count: usize) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let list = (0..count).map(|number| Shard::start(dir.path(), number)).collect();
        Self { list, dir }
    }

    /// Starts a nutcracker with `pools`, each behind a socket of its name.
    fn front(&self, pools: &[Pool]) -> Nutcracker {
        let yaml: String = pools.iter().map(|pool| self.yaml(pool)).collect();
        let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
        Nutcracker::start(self.dir.path(), &yaml, &names)
    }

    fn yaml(&self, pool: &Pool) -> String {
        let mut yaml = format!("{}:\n  redis: true\n  hash: {}\n", pool.name, pool.hash.algorithm);
        let mut line = |text: String| writeln!(yaml, "  {text}").expect("a String takes everything");
        line(format!("listen: {}", self.dir.path().join(&pool.name).display()));
        line(format!("distribution: {}", format!("{:?}", pool.distribution).to_lowercase()));
        if let Some([open, close]) = pool.hash.tag {
            line(format!("hash_tag: \"{}{}\"", char::from(open), char::from(close)));
        }
        if pool.auto_eject_hosts {
            line("auto_eject_hosts: true".to_owned());
            line("server_failure_limit: 1".to_owned());
            line("server_retry_timeout: 600000".to_owned());
        }
        line("servers:".to_owned());
        for server in &pool.servers {
            // nutcracker must find the unnamed ones' labels by itself.
            let (at, unnamed) = match &server.endpoint {
                Endpoint::Tcp { host, port } => (format!("{host}:{port}"), format!("{host}:{port}")),
                Endpoint::Unix(path) => (path.display().to_string(), format!("{}:", path.display())),
            };
            let name = if server.name == unnamed { String::new() } else { format!(" {}", server.name) };
            line(format!("- {at}:{}{name}", server.weight));
        }
        yaml
    }

    fn compare(&self, pools: Vec<Pool>, keys: &[Vec<u8>]) {
        let nutcracker = self.front(&pools);
        for pool in &pools {
            self.compare_one(pool, &Topology::all_live(pool), nutcracker.client(&pool.name), keys);
        }
    }

    /// Writes `keys` through nutcracker and looks for each where `topology` says.
    fn compare_one(&self, pool: &Pool, topology: &Topology, mut client: Client, keys: &[Vec<u8>]) {
        for shard in &self.list {
            assert_eq!(shard.client().call(&[b"FLUSHALL"]), "+OK");
        }
        client.set_all(keys);

        let draw = Draw::seeded(1);
        let mut found = 0;
        for shard in &self.list {
            for key in shard.client().keys() {
                let named = topology.server(&key, &draw).expect("a server is live");
                assert!(
                    shard.is(&pool.servers[named.index()].endpoint),
                    "nutcracker put this key on port {}\n{}\n{pool:#?}",
                    shard.port,
                    explain(pool, topology, &key),
                );
                found += 1;
            }
        }
        assert_eq!(found, keys.len(), "{}: every key was written", pool.name);
    }
}

/// The same keys at each run: text, tags good and broken, any bytes, and the empty one.
fn keys() -> Vec<Vec<u8>> {
    let draw = Draw::seeded(2026);
    let byte = || draw.below(256) as u8;
    let below = |bound| draw.below(bound) as usize;
    let mut keys = HashSet::from([Vec::new()]);
    while keys.len() < KEYS {
        keys.insert(match draw.below(8) {
            0 | 1 => format!("user:{}:name", draw.below(1_000_000)).into_bytes(),
            2 => format!("user:{{{}}}:{}", draw.below(1_000), draw.below(1_000)).into_bytes(),
            // Mostly delimiters.
            3 => (0..below(12)).map(|_| b"{}$ab\r\n\0\x80\xff"[below(10)]).collect(),
            4 => [b"{".as_slice(), &std::array::from_fn::<_, 5, _>(|_| byte()), b"}", &[byte(), byte()]]
                .concat(),
            5 => (0..below(400)).map(|_| byte()).collect(),
            _ => (0..1 + below(40)).map(|_| byte()).collect(),
        });
    }
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort();
    keys
}

mod process {
    //! Real processes, as much of them as this test needs.

    use std::io::{self, BufRead, BufReader, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::{Endpoint, PathBuf};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A child that doesn't outlive its owner.
    struct Running(Child);

    impl Running {
        fn start(command: &mut Command, package: &str) -> Self {
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            Self(child.unwrap_or_else(|error| {
                panic!("{package} doesn't start ({error}); install it: apt-get install {package}")
            }))
        }

        /// Whether `ready` came true before the process ended.
        fn wait(&mut self, ready: impl Fn() -> bool) -> bool {
            let limit = Instant::now() + PATIENCE;
            while !ready() {
                if self.0.try_wait().expect("it is our child").is_some() {
                    return false;
                }
                assert!(Instant::now() < limit, "not ready after {PATIENCE:?}");
                #[allow(clippy::disallowed_methods)] // the pause of a bounded poll
                std::thread::sleep(Duration::from_millis(5));
            }
            true
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            // Fails only for one that has ended.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A port of loopback that stays ours, and refuses connections, while the socket lives.
    pub(super) fn reserve_port() -> (socket2::Socket, u16) {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        let any = std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        (socket, address.as_socket().expect("an IPv4 address").port())
    }

    fn free_port() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.local_addr().expect("it is bound").port()
    }

    /// A redis-server.
    pub(super) struct Shard {
        pub(super) port: u16,
        pub(super) socket: PathBuf,
        _process: Running,
    }

    impl Shard {
        pub(super) fn start(dir: &Path, number: usize) -> Self {
            let socket = dir.join(format!("shard-{number}"));
            // Another process may take the port between our look and the server's; then look again.
            (0..5)
                .find_map(|_| {
                    let port = free_port();
                    let mut command = Command::new("redis-server");
                    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
                    command.arg(port.to_string()).arg("--unixsocket").arg(&socket).arg("--dir").arg(dir);
                    let mut process = Running::start(&mut command, "redis-server");
                    let up = process.wait(|| UnixStream::connect(&socket).is_ok());
                    up.then(|| Self { port, socket: socket.clone(), _process: process })
                })
                .expect("one of five ports is still free")
        }

        pub(super) fn client(&self) -> Client {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the server is up");
            stream.set_read_timeout(Some(PATIENCE)).expect("a valid timeout");
            Client::new(stream)
        }

        pub(super) fn is(&self, endpoint: &Endpoint) -> bool {
            match endpoint {
                Endpoint::Tcp { port, .. } => *port == self.port,
                Endpoint::Unix(path) => *path == self.socket,
            }
        }
    }

    /// A nutcracker whose pools listen at sockets of their names in `dir`.
    pub(super) struct Nutcracker {
        dir: PathBuf,
        _process: Running,
    }

    impl Nutcracker {
        pub(super) fn start(dir: &Path, yaml: &str, pools: &[&str]) -> Self {
            let conf = dir.join("nutcracker.yml");
            let log = dir.join("nutcracker.log");
            std::fs::write(&conf, yaml).expect("the directory is ours");
            let process = (0..5).find_map(|_| {
                let mut command = Command::new(program());
                command.arg("-c").arg(&conf).arg("-o").arg(&log);
                command.args(["-a", "127.0.0.1", "-s", &free_port().to_string()]);
                let mut process = Running::start(&mut command, "nutcracker");
                let up =
                    process.wait(|| pools.iter().all(|pool| UnixStream::connect(dir.join(pool)).is_ok()));
                up.then_some(process)
            });
            let Some(process) = process else {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("nutcracker ends at once\n{log}\n{yaml}");
            };
            Self { dir: dir.to_owned(), _process: process }
        }

        pub(super) fn client(&self, pool: &str) -> Client {
            let stream = UnixStream::connect(self.dir.join(pool)).expect("nutcracker is up");
            stream.set_read_timeout(Some(PATIENCE)).expect("a valid timeout");
            Client::new(stream)
        }
    }

    /// Debian has it in /usr/sbin, which may not be in the PATH.
    fn program() -> &'static str {
        let debian = "/usr/sbin/nutcracker";
        if Path::new(debian).exists() { debian } else { "nutcracker" }
    }

    trait Stream: Read + Write {}
    impl<S: Read + Write> Stream for S {}

    /// A connection to something that speaks RESP.
    pub(super) struct Client(BufReader<Box<dyn Stream>>);

    impl Client {
        fn new(stream: impl Stream + 'static) -> Self {
            Self(BufReader::new(Box::new(stream)))
        }

        /// One command with a one-line reply, which is returned with its type byte.
        pub(super) fn call(&mut self, arguments: &[&[u8]]) -> String {
            let mut request = Vec::new();
            encode(&mut request, arguments);
            self.0.get_mut().write_all(&request).expect("the server takes a request");
            self.line()
        }

        /// Sets each key, many at a time, to nothing.
        pub(super) fn set_all(&mut self, keys: &[Vec<u8>]) {
            for some in keys.chunks(500) {
                let mut requests = Vec::new();
                some.iter().for_each(|key| encode(&mut requests, &[b"SET", key, b""]));
                self.0.get_mut().write_all(&requests).expect("the server takes requests");
                for key in some {
                    assert_eq!(self.line(), "+OK", "{}", key.escape_ascii());
                }
            }
        }

        /// All keys of the server.
        pub(super) fn keys(&mut self) -> Vec<Vec<u8>> {
            let header = self.call(&[b"KEYS", b"*"]);
            let count: usize = header.strip_prefix('*').expect("an array").parse().expect("its length");
            (0..count).map(|_| self.bulk().expect("a whole reply")).collect()
        }

        fn bulk(&mut self) -> io::Result<Vec<u8>> {
            let length: usize =
                self.line().strip_prefix('$').expect("a bulk string").parse().expect("its length");
            let mut bytes = vec![0; length + 2];
            self.0.read_exact(&mut bytes)?;
            bytes.truncate(length);
            Ok(bytes)
        }

        fn line(&mut self) -> String {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line of text");
            line.strip_suffix("\r\n").expect("a whole line").to_owned()
        }
    }

    fn encode(into: &mut Vec<u8>, arguments: &[&[u8]]) {
        write!(into, "*{}\r\n", arguments.len()).expect("a Vec takes everything");
        for argument in arguments {
            write!(into, "${}\r\n", argument.len()).expect("a Vec takes everything");
            into.extend_from_slice(argument);
            into.extend_from_slice(b"\r\n");
        }
    }
}
