//! Passwords on both sides, and the database behind them.

use crate::support::{PATIENCE, Port, Redis, Resp, Shards, Shardwise, Value, encode, pool, wait_until};

const NOAUTH: &str = "NOAUTH Authentication required";

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

fn with_password<const N: usize>() -> [Redis; N] {
    std::array::from_fn(|_| Redis::with(&["--requirepass", "secret"]))
}

/// A connection to a server past the proxy, with the password given.
fn inside(server: &Redis, password: &str) -> Resp {
    let mut client = server.client();
    assert_eq!(client.call(["AUTH", password]), Value::ok());
    client
}

/// twemproxy's texts: clients were written against them.
#[test]
fn nothing_is_answered_before_the_password() {
    let shards = Shards::with_servers(with_password::<2>(), "redis_auth: secret", &["--threads", "2"]);
    let mut client = shards.client();
    for request in [
        &["GET", "k"][..],
        &["MSET", "a", "1", "b", "2"],
        &["PING"],
        &["ECHO", "x"],
        &["SELECT", "0"],
        &["COMMAND"],
        &["CONFIG", "GET", "*"],
        &["CLIENT", "ID"],
        &["MULTI"],
        &["NOSUCH"],
        &["GET"],
    ] {
        assert_eq!(client.call(request), error(NOAUTH), "{request:?}");
    }
    client.send_raw("GET k\r\n\r\nfoo\r\n");
    assert_eq!([client.read(), client.read()], [error(NOAUTH), error(NOAUTH)]);
    assert_eq!(client.call(["RESET"]), Value::simple("RESET"));
    assert_eq!(client.call(["QUIT"]), Value::ok());
    assert!(client.closed());
}

#[test]
fn auth_with_one_argument_is_twemproxys_and_with_two_redis() {
    let shards = Shards::with_servers(with_password::<2>(), "redis_auth: secret", &["--threads", "2"]);
    let mut client = shards.client();
    assert_eq!(client.call(["AUTH", "wrong"]), error("ERR invalid password"));
    assert_eq!(client.call(["AUTH", "secre"]), error("ERR invalid password"));
    assert_eq!(client.call(["AUTH", ""]), error("ERR invalid password"));
    assert_eq!(client.call(["AUTH", "secret"]), Value::ok());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    assert_eq!(client.call(["AUTH", "wrong"]), error("ERR invalid password"));
    assert_eq!(client.call(["GET", "k"]), error(NOAUTH), "a wrong password takes the right one back");

    let redis = inside(&shards.servers[0], "secret");
    let mut theirs = redis;
    for request in [
        &["AUTH", "default", "wrong"][..],
        &["AUTH", "nobody", "secret"],
        &["AUTH", "default", "secret"],
        &["auth", "DEFAULT", "secret"],
        &["AUTH"],
        &["AUTH", "a", "b", "c"],
    ] {
        theirs.send(request);
        client.send(request);
        let (expected, found) = (theirs.read_bytes(), client.read_bytes());
        assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{request:?}");
    }
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"));
    assert_eq!(client.call(["RESET"]), Value::simple("RESET"));
    assert_eq!(client.call(["GET", "k"]), error(NOAUTH));
}

#[test]
fn hello_can_give_the_password() {
    let shards = Shards::with_servers(with_password::<1>(), "redis_auth: secret", &["--threads", "2"]);
    let (mut theirs, mut ours) = (shards.servers[0].client(), shards.client());
    for request in [
        &["HELLO"][..],
        &["HELLO", "2"],
        &["HELLO", "2", "SETNAME", "me"],
        &["HELLO", "2", "AUTH", "default", "wrong"],
        &["HELLO", "2", "AUTH", "nobody", "secret"],
    ] {
        theirs.send(request);
        ours.send(request);
        let (expected, found) = (theirs.read_bytes(), ours.read_bytes());
        assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{request:?}");
    }
    let greeting = ours.call(["HELLO", "2", "AUTH", "default", "secret", "SETNAME", "me"]);
    assert_eq!(greeting.items()[0], Value::bulk("server"));
    assert_eq!(ours.call(["SET", "k", "v"]), Value::ok());
    assert_eq!(ours.call(["CLIENT", "GETNAME"]), Value::bulk("me"));
}

#[test]
fn without_a_password_auth_is_told_so() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    assert_eq!(client.call(["AUTH", "x"]), error("ERR Client sent AUTH, but no password is set"));
    assert_eq!(
        client.call(["AUTH", "default", "x"]),
        Value::ok(),
        "Redis's default user takes any password then"
    );
    assert!(client.call(["AUTH", "nobody", "x"]).is_error("WRONGPASS "));
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
}

/// Strangers get small bounds, as from Redis: they must not fill the memory before they have said who they are.
#[test]
fn strangers_are_kept_short_until_they_give_the_password() {
    let shards = Shards::with_servers(with_password::<1>(), "redis_auth: secret", &["--threads", "1"]);
    let long = "x".repeat(16_385);
    for input in [
        b"*11\r\n".to_vec(),
        b"*1048576\r\n".to_vec(),
        b"*2\r\n$4\r\nECHO\r\n$16385\r\n".to_vec(),
        b"*1\r\n$536870912\r\n".to_vec(),
        encode(["ECHO", &long]),
    ] {
        let (mut theirs, mut ours) = (shards.servers[0].client(), shards.client());
        theirs.send_raw(&input);
        ours.send_raw(&input);
        assert_eq!(ours.read(), theirs.read(), "{}", input[..20.min(input.len())].escape_ascii());
        assert!(ours.closed() && theirs.closed());
    }
    // In one packet with the password, in two, and taken back again.
    let many: Vec<&str> = ["EXISTS"].into_iter().chain(std::iter::repeat_n("k", 10)).collect();
    let mut client = shards.client();
    client.send_raw([encode(["AUTH", "secret"]), encode(&many), encode(["ECHO", &long])].concat());
    assert_eq!([client.read(), client.read()], [Value::ok(), Value::Int(0)]);
    assert_eq!(client.read().bytes().len(), long.len());
    assert_eq!(client.call(&many), Value::Int(0));
    client.send_raw([encode(["AUTH", "wrong"]), encode(&many)].concat());
    assert_eq!(client.read(), error("ERR invalid password"));
    assert_eq!(client.read(), error("ERR Protocol error: unauthenticated multibulk length"));
    assert!(client.closed());
}

/// twemproxy sent SELECT before AUTH, or, to unix sockets, not at all, looked at neither answer, and all data went to
/// database 0 (issues 457 and 491 of its tracker).
#[test]
fn data_lands_in_the_database_of_the_pool() {
    let servers = [
        Redis::with(&["--requirepass", "secret"]),
        Redis::on_unix_socket(&["--requirepass", "secret"]),
        Redis::with(&["--requirepass", "secret"]),
    ];
    let settings = "hash: murmur\nredis_auth: secret\nredis_db: 5\nserver_connections: 3";
    let shards = Shards::with_servers(servers, settings, &["--threads", "2"]);
    let mut clients: Vec<Resp> = (0..20).map(|_| shards.client()).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.call(["AUTH", "secret"]), Value::ok());
        let pairs = (0..50).flat_map(|key| [format!("key:{i}:{key}"), "v".to_owned()]);
        assert_eq!(client.call(["MSET".to_owned()].into_iter().chain(pairs)), Value::ok());
    }
    let mut total = 0;
    for server in &shards.servers {
        let mut server = inside(server, "secret");
        assert_eq!(server.call(["DBSIZE"]), Value::Int(0), "database 0 stays empty");
        assert_eq!(server.call(["SELECT", "5"]), Value::ok());
        let here = server.call(["DBSIZE"]).int();
        assert!(here > 0);
        total += here;
    }
    assert_eq!(total, 1_000);
}

/// A database without a password: the other half of the same story.
#[test]
fn a_database_needs_no_password() {
    let servers = [Redis::start(), Redis::on_unix_socket(&[])];
    let shards = Shards::with_servers(servers, "redis_db: 9", &["--threads", "1"]);
    let mut client = shards.client();
    let keys: Vec<String> = (0..100).map(|i| format!("key:{i}")).collect();
    let pairs = keys.iter().flat_map(|key| [key.as_str(), "v"]);
    assert_eq!(client.call(["MSET"].into_iter().chain(pairs)), Value::ok());
    let sizes = shards.servers.each_ref().map(|server| {
        let mut server = server.client();
        assert_eq!(server.call(["DBSIZE"]), Value::Int(0));
        server.call(["SELECT", "9"]);
        server.call(["DBSIZE"]).int()
    });
    assert_eq!(sizes.iter().sum::<i64>(), 100);
}

/// twemproxy didn't look at the answer to its AUTH: each command was then answered NOAUTH. Here the connection isn't used,
/// the error names the server, the log has the server's own words, and others work.
#[test]
fn a_server_that_refuses_the_password_is_named() {
    let servers = [Redis::with(&["--requirepass", "secret"]), Redis::with(&["--requirepass", "other"])];
    let shards = Shards::with_servers(servers, "hash: murmur\nredis_auth: secret", &["--threads", "1"]);
    let mut client = shards.client();
    client.call(["AUTH", "secret"]);
    let mut refused = 0;
    for i in 0..100 {
        let reply = client.call(["SET", &format!("key:{i:x}"), "v"]);
        if reply != Value::ok() {
            let text = format!(
                "ERR Connection refused: {}, AUTH, HELLO or SELECT failed",
                shards.servers[1].address()
            );
            assert_eq!(reply, error(&text));
            refused += 1;
        }
    }
    assert!((1..100).contains(&refused), "{refused} of 100 keys");
    assert_eq!(inside(&shards.servers[0], "secret").call(["DBSIZE"]), Value::Int(100 - refused));
    assert!(shards.proxy.log().contains("WRONGPASS"), "{}", shards.proxy.log());
    assert!(!shards.proxy.log().contains("secret"), "no password in the log");

    // Set right at the server, it is used again, without touching the proxy.
    inside(&shards.servers[1], "other").call(["CONFIG", "SET", "requirepass", "secret"]);
    wait_until("the server is used", PATIENCE, || {
        (0..100).all(|i| client.call(["SET", &format!("key:{i:x}"), "v"]) == Value::ok())
    });
}

#[test]
fn a_database_that_the_server_does_not_have_is_an_error() {
    let shards = Shards::with_servers([Redis::start()], "redis_db: 99", &["--threads", "1"]);
    let text =
        format!("ERR Connection refused: {}, AUTH, HELLO or SELECT failed", shards.servers[0].address());
    assert_eq!(shards.client().call(["SET", "k", "v"]), error(&text));
    assert!(shards.proxy.log().contains("DB index is out of range"), "{}", shards.proxy.log());
}

/// A password for clients only: nutcracker's users have it, since it never looked at what the servers said to its AUTH.
#[test]
fn servers_without_a_password_take_part_in_a_pool_with_one() {
    let shards =
        Shards::with_servers([Redis::start()], "redis_auth: secret\nredis_db: 2", &["--threads", "1"]);
    let mut client = shards.client();
    assert_eq!(client.call(["SET", "k", "v"]), error(NOAUTH));
    assert_eq!(client.call(["AUTH", "secret"]), Value::ok());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    let mut server = shards.servers[0].client();
    server.call(["SELECT", "2"]);
    assert_eq!(server.call(["GET", "k"]), Value::bulk("v"));
}

/// Without redis_auth, what a server with a password says comes through.
#[test]
fn a_server_with_a_password_in_a_pool_without_one_says_so() {
    let shards = Shards::with_servers(with_password::<1>(), "", &["--threads", "1"]);
    assert_eq!(shards.client().call(["GET", "k"]), error("NOAUTH Authentication required."));
}

#[test]
fn the_password_can_be_in_a_file_or_in_the_environment() {
    let dir = tempfile::Builder::new().prefix("shardwise-").tempdir().expect("a temporary folder");
    let file = dir.path().join("password");
    std::fs::write(&file, "se cret\"'${x}\n").expect("a file in a folder of our own");
    // Every process has it.
    let path = std::env::var("PATH").expect("a PATH");
    for (setting, password) in [
        (format!("redis_auth_file: {}", file.display()), "se cret\"'${x}".to_owned()),
        ("redis_auth: \"${PATH}\"".to_owned(), path.clone()),
        ("redis_auth: \"a${PATH}$${b\"".to_owned(), format!("a{path}${{b")),
        ("redis_auth: a$b".to_owned(), "a$b".to_owned()),
    ] {
        let server = Redis::start();
        server.client().call(["CONFIG", "SET", "requirepass", &password]);
        let port = Port::claim();
        let _proxy = Shardwise::start(&pool("alpha", &port, &[&server], &setting));
        let mut client = Resp::port(port.number());
        assert_eq!(client.call(["AUTH", &setting]), error("ERR invalid password"), "{setting}");
        assert_eq!(client.call(["AUTH", &password]), Value::ok(), "{setting}");
        assert_eq!(client.call(["SET", "k", "v"]), Value::ok(), "{setting}");
    }
}
