//! What accepted files mean.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use shardwise::config::{
    Config, ConfigErrors, Distribution, LogFormat, Outside, Ping, Pool, Readmit, SecretFile, Threads,
};
use shardwise::hash::{Algorithm, CharSign};
use shardwise::units::Limit;

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, Path::new("etc/a.yml"), |name| (name == "PASSWORD").then(|| "hunter2".to_owned()))
}

fn accepted(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// A pool with two servers and `more` keys.
fn pool(more: &str) -> Pool {
    let text = format!("a: {{listen: 127.0.0.1:1, redis: true, servers: [h:1:1, h:2:1], {more}}}");
    accepted(&text).pools.remove(0)
}

fn warnings(text: &str) -> Vec<String> {
    accepted(text).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_not_given_is_as_with_twemproxy() {
    let config =
        accepted("alpha:\n  listen: 127.0.0.1:22121\n  redis: true\n  servers:\n   - 127.0.0.1:6379:1\n");
    let pool = &config.pools[0];
    assert_eq!((pool.name.as_str(), pool.servers.len()), ("alpha", 1));
    assert_eq!(pool.hash.algorithm, Algorithm::Fnv1a_64);
    assert_eq!((pool.hash.tag, pool.hash.char_sign), (None, CharSign::Signed));
    assert_eq!(pool.distribution, Distribution::Ketama);
    assert_eq!((pool.timeout, pool.backlog, pool.client_connections), (None, 512, Limit::off()));
    assert!(!pool.tcpkeepalive && !pool.reuseport && !pool.preconnect && !pool.auto_eject_hosts);
    assert_eq!((&pool.redis_auth, pool.redis_db), (&None, 0));
    assert_eq!((pool.server_connections.get(), pool.server_failure_limit.get()), (1, 2));
    assert_eq!(pool.server_retry_timeout, Duration::from_secs(30));
    assert_eq!((pool.ping, pool.readmit, pool.read_only), (Ping::Reject, Readmit::Probe, false));
    assert_eq!(pool.connect_timeout, Duration::from_secs(1));
    assert_eq!((pool.max_pending.at, pool.out_soft.at, pool.out_hard.at), (1024, 1 << 20, 1 << 30));
    assert_eq!((pool.max_leases.get(), pool.databases.get()), (1000, 16));
    assert_eq!((pool.max_bulk, pool.max_args, pool.max_inline), (512 << 20, 1 << 20, 64 << 10));
    let process = &config.process;
    assert_eq!((process.threads, process.max_clients), (Threads::Auto, Limit::off()));
    assert_eq!((process.drain_timeout, process.log_format), (Duration::from_secs(10), LogFormat::Text));
    assert_eq!(config.warnings, []);
}

#[test]
fn zeros_mean_what_they_mean_to_twemproxy() {
    let pool = pool(
        "timeout: 0, client_connections: 0, server_failure_limit: 0, server_retry_timeout: 0, backlog: 0",
    );
    assert_eq!((pool.timeout, pool.client_connections, pool.backlog), (None, Limit::off(), 0));
    assert_eq!(pool.server_failure_limit.get(), 1);
    assert_eq!(pool.server_retry_timeout, Duration::ZERO);
}

#[test]
fn keys_of_ours_have_units() {
    let given = pool(
        "connect_timeout: 250, out_soft: 64kb, out_hard: 2MiB, max_bulk: 1000k, ping: reply, hash: xxh3-64",
    );
    assert_eq!(given.connect_timeout, Duration::from_millis(250));
    assert_eq!((given.out_soft.at, given.out_hard.at, given.max_bulk), (64 << 10, 2 << 20, 1_000_000));
    assert_eq!((given.ping, given.hash.algorithm), (Ping::Reply, Algorithm::Xxh3_64));
    assert_eq!(pool("connect_timeout: 2s").connect_timeout, Duration::from_secs(2));
}

/// Both orders are visible: in stats, and in what modula and random choose from.
#[test]
fn pools_and_servers_are_sorted_by_length_and_then_by_bytes() {
    let text = "pool10: &p {listen: /p10, redis: true, servers: [h:1:1 server10, h:2:1 server9, h:3:1 server2, h:4:1 Z]}\n\
                pool2: {listen: /p2, redis: true, servers: [10.0.0.1:11211:1, 9.0.0.1:6379:1]}\n\
                b: {listen: /b, redis: true, servers: [h:1:1]}\n\
                a: {listen: /a, redis: true, servers: [h:1:1]}\n";
    let config = accepted(text);
    let names: Vec<_> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "pool2", "pool10"]);
    let servers = |pool: &Pool| pool.servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
    assert_eq!(servers(&config.pools[3]), ["Z", "server2", "server9", "server10"]);
    assert_eq!(servers(&config.pools[2]), ["10.0.0.1", "9.0.0.1:6379"]);
}

#[test]
fn anchors_share_values() {
    let text = "a: {listen: 127.0.0.1:1, redis: &yes true, servers: &all [h:1:1, h:2:1]}\n\
                b: {listen: 127.0.0.1:2, redis: *yes, servers: *all}\n";
    let config = accepted(text);
    assert_eq!(config.pools[0].servers, config.pools[1].servers);
}

#[test]
fn passwords_come_from_the_text_or_from_the_environment() {
    let password = |more: &str| {
        let pool = pool(more);
        pool.redis_auth.map(|secret| String::from_utf8_lossy(secret.expose()).into_owned())
    };
    assert_eq!(password("redis_auth: 0123").as_deref(), Some("0123"));
    assert_eq!(password("redis_auth: \"a$b$$c\"").as_deref(), Some("a$b$$c"));
    assert_eq!(password("redis_auth: \"x${PASSWORD}y\"").as_deref(), Some("xhunter2y"));
    assert_eq!(password("redis_auth: \"$${PASSWORD}\"").as_deref(), Some("${PASSWORD}"));
    // Nothing else is expanded.
    let text = "a: {listen: 127.0.0.1:1, redis: true, servers: [\"h:1:1 ${PASSWORD}\"]}";
    assert_eq!(accepted(text).pools[0].servers[0].name, "${PASSWORD}");
}

#[test]
fn no_error_repeats_a_password() {
    for value in ["s3cret${", "s3cret${NONE}", "[s3cret]", "{s3cret: s3cret}"] {
        let text = format!("a: {{listen: /a, redis: true, servers: [h:1:1], redis_auth: {value}}}");
        let told =
            parse(&text).map(|config| format!("{config:?}")).unwrap_or_else(|errors| errors.to_string());
        assert!(!told.contains("s3cret"), "{told}");
    }
    let shown = format!("{:?}", pool("redis_auth: s3cret"));
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_password_file_is_looked_for_beside_the_configuration() {
    let text = "a: {listen: /a, redis: true, servers: [h:1:1], redis_auth_file: keys/a}";
    let asked = std::cell::RefCell::new(Vec::new());
    let secret_file = |path: &Path| {
        asked.borrow_mut().push(path.to_owned());
        Ok(SecretFile { bytes: b"${NOT_EXPANDED}\n".to_vec(), is_public: true })
    };
    let outside = Outside { env: &|_| None, secret_file: &secret_file };
    let config = Config::parse_with(text, Path::new("etc/a.yml"), &outside).expect("a password file");
    assert_eq!(asked.into_inner(), [Path::new("etc/keys/a")]);
    let password = config.pools[0].redis_auth.as_ref().map(|secret| secret.expose().to_vec());
    assert_eq!(password.as_deref(), Some(&b"${NOT_EXPANDED}"[..]));
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["line 1: a.redis_auth_file: others than the owner can read this file, chmod 600 it"]
    );

    let missing = |_: &Path| Err(io::Error::other("gone"));
    let outside = Outside { env: &|_| None, secret_file: &missing };
    let errors = Config::parse_with(text, Path::new("a.yml"), &outside).expect_err("no password file");
    assert_eq!(errors.to_string(), "a.yml:1: a.redis_auth_file: keys/a cannot be read: gone");
}

#[test]
fn load_reads_the_file_and_what_it_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, secret) = (folder.path().join("a.yml"), folder.path().join("secret"));
    std::fs::write(&file, "a: {listen: /a, redis: true, servers: [h:1:1], redis_auth_file: secret}")
        .expect("written");
    std::fs::write(&secret, "pw\n").expect("written");
    for (mode, warnings) in [(0o600, 0), (0o640, 1), (0o604, 1)] {
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(mode)).expect("chmod");
        let config = Config::load(&file).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(config.pools[0].redis_auth.as_ref().is_some_and(|secret| secret.matches(b"pw")));
        assert_eq!(config.warnings.len(), warnings, "{mode:o}");
    }
}

#[test]
fn what_load_can_not_read_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let told = |path: &Path| Config::load(path).expect_err("it can't be read").to_string();
    let missing = folder.path().join("missing.yml");
    assert!(told(&missing).starts_with(&format!("{}: cannot be read: ", missing.display())));
    assert!(told(folder.path()).contains("cannot be read: "));
    let latin = folder.path().join("latin.yml");
    std::fs::write(&latin, b"a: \xe9\n").expect("written");
    assert!(told(&latin).ends_with(": is not UTF-8"));
    // Without an end, and without being read whole.
    assert!(told(Path::new("/dev/zero")).ends_with(": is larger than 4mb"));
}

#[test]
fn what_is_likely_not_meant_gets_a_word() {
    for (keys, warned) in [
        ("listen: 127.0.0.1:1, servers: [h:1:1, h:2:1], hash: crc32", Some("a.hash: crc32 has 15 bits")),
        ("listen: 127.0.0.1:1, servers: [h:1:1], hash: crc32", None),
        ("listen: 127.0.0.1:1, servers: [h:1:1, h:2:1], hash: crc32, distribution: modula", None),
        ("listen: 127.0.0.1:1, servers: [h:1:1, h:2:1], hash: crc32a", None),
        (
            "listen: 127.0.0.1:1, servers: [h:1:1, h:2:1], distribution: random",
            Some("a.distribution: random"),
        ),
        ("listen: 127.0.0.1:1, servers: [h:1:1], distribution: random", None),
        (
            "listen: 127.0.0.1:1, servers: [h:1:1], hash: md5, hash_char: unsigned",
            Some("a.hash_char: has no effect"),
        ),
        ("listen: 127.0.0.1:1, servers: [h:1:1], hash_char: unsigned", None),
        ("listen: 0.0.0.0:1, servers: [h:1:1]", Some("a.listen: listens on all addresses")),
        ("listen: \"[::]:1\", servers: [h:1:1]", Some("a.listen: listens on all addresses")),
        ("listen: 0.0.0.0:1, servers: [h:1:1], redis_auth: x", None),
        ("listen: /tmp/my sock, servers: [h:1:1]", Some("a.listen: 'sock' is no octal mode")),
        ("listen: /tmp/my 0600, servers: [h:1:1]", None),
        ("listen: /a, servers: [a:b:1:1]", Some("a.servers[0]: nothing can be reached at '[a:b]:1'")),
        ("listen: /a, servers: [\"h:1:1 \"]", Some("a.servers[0]: the name is empty")),
        ("listen: /a, servers: [\"[fe80::1%eth0]:1:1\"]", None),
    ] {
        let told = warnings(&format!("a: {{redis: true, {keys}}}"));
        match warned {
            Some(start) => {
                assert_eq!(told.len(), 1, "{keys}: {told:?}");
                assert!(told[0].starts_with(&format!("line 1: {start}")), "{keys}: {told:?}");
            }
            None => assert!(told.is_empty(), "{keys}: {told:?}"),
        }
    }
}
