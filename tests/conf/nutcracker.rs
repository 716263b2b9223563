//! What nutcracker accepts, shardwise accepts; what it refuses is refused too, but for what is meant to be more.
//!
//! Both are asked; without nutcracker on the machine the tests say so and pass.

use std::path::Path;
use std::process::{Command, Stdio};

use shardwise::config::Config;

/// A Redis pool with other values of `listen` and `servers`, and with more lines.
fn pool(name: &str, listen: &str, servers: &[&str], more: &str) -> String {
    let servers: String = servers.iter().map(|server| format!("   - {server}\n")).collect();
    format!("{name}:\n  listen: {listen}\n  redis: true\n{more}  servers:\n{servers}")
}

const LISTEN: &str = "127.0.0.1:22121";
const SERVERS: &[&str] = &["127.0.0.1:6379:1"];

fn nutcracker_accepts(folder: &Path, text: &str) -> Option<bool> {
    let file = folder.join("a.yml");
    std::fs::write(&file, text).expect("a temporary file can be written");
    let mut nutcracker = Command::new("nutcracker");
    nutcracker.arg("-t").arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    match nutcracker.status() {
        Ok(status) => Some(status.success()),
        Err(_) => {
            eprintln!("nutcracker isn't installed: nothing compared");
            None
        }
    }
}

/// What each says of each text, one line a text where they differ.
fn differences(texts: &[(String, String)]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut differences = Vec::new();
    for (name, text) in texts {
        let Some(theirs) = nutcracker_accepts(folder.path(), text) else { return Vec::new() };
        let ours = Config::parse(text, Path::new("a.yml"), |_| None);
        if theirs != ours.is_ok() {
            let why = ours.err().map_or(String::new(), |errors| errors.to_string());
            differences.push(format!("{name}: nutcracker {theirs}, shardwise {} {why}", !theirs));
        }
    }
    differences
}

fn with_listen(listen: &str) -> (String, String) {
    (format!("listen {listen:?}"), pool("alpha", listen, SERVERS, ""))
}

fn with_server(server: &str) -> (String, String) {
    (format!("server {server:?}"), pool("alpha", LISTEN, &[server], ""))
}

fn with_line(line: &str) -> (String, String) {
    (format!("line {line:?}"), pool("alpha", LISTEN, SERVERS, &format!("  {line}\n")))
}

#[test]
fn both_take_and_refuse_the_same_addresses() {
    let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    let mut texts: Vec<_> = [
        "127.0.0.1:22121",
        "'127.0.0.1:22121'",
        "::1:22121",
        "127.0.0.1:65535",
        "127.0.0.1:022121",
        "0.0.0.0:22121",
        "0:22121",
        "localhost:22121",
        ":22121",
        "127.0.0.1",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:+1",
        "127.0.0.1:22121x",
        "'127.0.0.1:'",
        "'127.0.0.1 :22121'",
        "/tmp/a",
        "/tmp/a 0600",
        "/tmp/a 660",
        "/tmp/a 0660x",
        "/tmp/a 0999",
        "/tmp/a foo",
        "'/tmp/a '",
        "/tmp/a  0600",
        "/tmp/my sock 0600",
        "/tmp/a 1000",
        "/tmp/a -1",
        "/",
    ]
    .map(with_listen)
    .to_vec();
    texts.extend([107, 108].map(|bytes| with_listen(&long(bytes))));
    texts.extend(
        [
            "127.0.0.1:6379:1",
            "127.0.0.1:6379:1 name",
            "127.0.0.1:06379:01",
            "127.0.0.1:11211:1",
            "redis.invalid:6379:1",
            "::1:6379:1",
            "'[::1]:6379:1'",
            "'::6379:1'",
            "foo:bar:6379:1",
            "':6379:1'",
            "'127.0.0.1:6379:1 '",
            "h:6379:1 a:b",
            "h:6379:1 a:1:1",
            "/tmp/a:1",
            "/tmp/a:1 name",
            "/:1",
            "127.0.0.1:6379",
            "127.0.0.1:6379:0",
            "127.0.0.1:6379:x",
            "127.0.0.1:6379:-1",
            "127.0.0.1:6379:1  name",
            "'127.0.0.1:6379:1 a b'",
            "127.0.0.1:0:1",
            "127.0.0.1:65536:1",
            "127.0.0.1:6379:2147483647",
            "127.0.0.1:6379:2147483648",
            "'h x:6379:1'",
            "' h:6379:1'",
            "'h: 6379:1'",
            "'h:6379: 1'",
            "/tmp/a",
            "/tmp/a:b:1",
            "/a b:1",
            "/tmp/a:0",
            "a",
            "':'",
            "'::'",
            "''",
            "~",
            "a: b",
        ]
        .map(with_server),
    );
    assert_eq!(differences(&texts), Vec::<String>::new());
}

#[test]
fn both_take_and_refuse_the_same_values() {
    let texts = [
        "hash: md5",
        "hash: 'md5'",
        "hash: fnv1a_64",
        "hash: MD5",
        "hash: fnv",
        "hash: ''",
        "hash:",
        "distribution: random",
        "distribution: modula",
        "distribution: Ketama",
        "hash_tag: '{}'",
        "hash_tag: $$",
        "hash_tag: é",
        "hash_tag: '{'",
        "hash_tag: '{}x'",
        "hash_tag: {}",
        "timeout: 400",
        "timeout: '400'",
        "timeout: 0",
        "timeout: 0400",
        "timeout: |-\n    400",
        "timeout: 2147483647",
        "timeout: 0x10",
        "timeout: -1",
        "timeout: +1",
        "timeout: 1_000",
        "timeout: 1.0",
        "timeout: 2s",
        "timeout: ' 4'",
        "timeout: >\n    400",
        "timeout:",
        "timeout: ''",
        "preconnect: true",
        "preconnect: 'false'",
        "preconnect: True",
        "preconnect: yes",
        "preconnect: 1",
        "tcpkeepalive: true",
        "auto_eject_hosts: on",
        "backlog: 0",
        "client_connections: 0",
        "client_connections: 7",
        "server_connections: 0",
        "server_connections: 3",
        "server_failure_limit: 0",
        "server_retry_timeout: 0",
        "redis_db: 99",
        "redis_auth: foo",
        "redis_auth: 123",
        "redis_auth: ~",
        "redis_auth: 'a b'",
        "redis_auth: a$b",
        "redis_auth: |\n    foo",
        "redis_auth: ''",
        "foo: 1",
        "Timeout: 4",
        "'timeout': 4",
        "timeout: 4\n  timeout: 4",
        "redis: true",
        "servers: a",
        "listen: 127.0.0.1:2",
    ]
    .map(with_line);
    assert_eq!(differences(&texts), Vec::<String>::new());
}

#[test]
fn both_take_and_refuse_the_same_files() {
    let one = pool("alpha", LISTEN, SERVERS, "");
    let two = |name: &str, listen: &str| format!("{one}{}", pool(name, listen, SERVERS, ""));
    let servers = |servers: &[&str]| pool("alpha", LISTEN, servers, "");
    let texts = [
        ("one pool", one.clone()),
        ("CRLF", one.replace('\n', "\r\n")),
        ("byte order mark", format!("\u{feff}{one}")),
        ("comments", one.replace('\n', " # comment\n")),
        ("tabs", one.replace("  listen", "\tlisten")),
        ("flat list", one.replace("   - ", "  - ")),
        ("servers first", "a:\n  servers:\n  - h:1:1\n  redis: true\n  listen: 127.0.0.1:1\n".to_owned()),
        ("two pools", two("beta", "127.0.0.1:2")),
        ("same pool", two("alpha", "127.0.0.1:2")),
        ("same listen", two("beta", LISTEN)),
        ("number as name", pool("1", LISTEN, SERVERS, "")),
        ("space in name", pool("'a b'", LISTEN, SERVERS, "")),
        ("empty name", pool("''", LISTEN, SERVERS, "")),
        ("same server", servers(&["h:1:1", "h:1:2"])),
        ("same server, other names", servers(&["h:1:1 a", "h:1:2 b"])),
        ("same name", servers(&["h:1:1 a", "h:2:1 a"])),
        ("no server", servers(&[])),
        ("servers twice", format!("{one}  servers:\n   - h:2:1\n")),
        ("no listen", "a:\n  redis: true\n  servers:\n  - h:1:1\n".to_owned()),
        ("no servers", "a:\n  redis: true\n  listen: 127.0.0.1:1\n".to_owned()),
        ("empty", String::new()),
        ("a comment", "# nothing\n".to_owned()),
        ("a text", "a\n".to_owned()),
        ("a list", "- a\n".to_owned()),
        ("a pool without anything", "a:\n".to_owned()),
        ("a pool that is a text", "a: b\n".to_owned()),
        ("a pool that is a list", "a:\n - b\n".to_owned()),
        ("two documents", format!("{one}---\n{}", one.replace("alpha", "beta"))),
        ("a tag", one.replace("true", "!!bool true").replace("127.0.0.1:22121", "!x 127.0.0.1:22121")),
        ("a directive", format!("%YAML 1.1\n---\n{one}")),
        ("a mapping as value", one.replace("redis: true", "redis:\n    true: true")),
    ]
    .map(|(name, text)| (name.to_owned(), text));
    assert_eq!(differences(&texts), Vec::<String>::new());
}

/// Where the two are meant to differ: each of these must.
#[test]
fn known_differences() {
    let one = pool("alpha", LISTEN, SERVERS, "");
    let unix = |listen: &str, name: &str| pool(name, listen, SERVERS, "");
    let texts = [
        // More than nutcracker takes.
        ("a start of document", format!("---\n{one}")),
        ("flow style", "a: {listen: 127.0.0.1:1, redis: true, servers: [h:1:1]}\n".to_owned()),
        ("an anchor", one.replace("127.0.0.1:22121", "&l 127.0.0.1:22121")),
        ("brackets", one.replace("127.0.0.1:22121", "'[::1]:22121'")),
        ("a key of ours", with_line("ping: reply").1),
        ("a hash of ours", with_line("hash: xxh3_64").1),
        // Less: nutcracker wraps them round.
        ("a number of more than 31 bits", with_line("timeout: 99999999999").1),
        ("a weight of more than 31 bits", with_server("127.0.0.1:6379:4294967297").1),
        // Less: it can't work. The second pool would take the first one's socket away; the path is cut by the kernel.
        ("one socket twice", unix("/tmp/a", "alpha") + &unix("/tmp/a 0600", "beta")),
        // Less: it reads like all addresses, and nutcracker makes it ::1.
        ("a star as host", with_listen("'*:22121'").1),
        ("a socket's path that is too long", with_server(&format!("/{}:1", "a".repeat(120))).1),
        // Less: not ours.
        ("a memcached pool", one.replace("redis: true", "redis: false")),
        ("the reserved name", pool("shardwise", LISTEN, SERVERS, "")),
        ("a variable", with_line("redis_auth: '${NONE}'").1),
    ]
    .map(|(name, text)| (name.to_owned(), text));
    if nutcracker_accepts(tempfile::tempdir().expect("a temporary folder").path(), &one).is_some() {
        assert_eq!(differences(&texts).len(), texts.len(), "{:#?}", differences(&texts));
    }
}
