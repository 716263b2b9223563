//! The ground that the other tests stand on, tested by itself: a test that trusts a broken fixture proves nothing.

use std::time::Duration;

use crate::support::{Nutcracker, PATIENCE, Port, Redis, Resp, Value, poll, pool, wait_until};

#[test]
fn redis_starts_answers_and_ends_with_its_owner() {
    let redis = Redis::start();
    let (port, pid) = (redis.port(), redis.pid());
    assert_eq!(redis.client().call(["SET", "k", "v"]), Value::ok());
    assert_eq!(redis.client().call(["GET", "k"]), Value::bulk("v"));
    assert_eq!(redis.info("total_commands_processed"), 3, "PING, SET and GET");
    drop(redis);
    assert!(!std::fs::exists(format!("/proc/{pid}")).unwrap(), "the process is gone");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn redis_restarts_empty_on_the_same_port() {
    let mut redis = Redis::start();
    let port = redis.port();
    let mut client = redis.client();
    client.call(["SET", "k", "v"]);
    redis.kill();
    assert!(client.closed());
    redis.restart();
    assert_eq!(redis.port(), port);
    assert_eq!(redis.client().call(["GET", "k"]), Value::Nil);
}

#[test]
fn a_paused_redis_is_silent_until_it_is_resumed() {
    let mut redis = Redis::start();
    let mut client = redis.client();
    redis.pause();
    client.send(["PING"]);
    assert!(client.silent_for(Duration::from_millis(200)));
    redis.resume();
    assert_eq!(client.read(), Value::simple("PONG"));
}

#[test]
fn redis_takes_options_and_unix_sockets() {
    let redis = Redis::on_unix_socket(&["--requirepass", "secret"]);
    let mut client = redis.client();
    assert!(client.call(["GET", "k"]).is_error("NOAUTH"));
    assert_eq!(client.call(["AUTH", "secret"]), Value::ok());
    assert_eq!(client.call(["GET", "k"]), Value::Nil);
}

#[test]
fn resp_reads_every_type_and_keeps_the_order_of_a_pipeline() {
    let redis = Redis::start();
    let mut client = redis.client();
    let replies = client.pipeline([
        vec!["SET", "s", "a\r\nb"],
        vec!["GET", "s"],
        vec!["INCR", "s"],
        vec!["INCR", "n"],
        vec!["LRANGE", "none", "0", "-1"],
        vec!["MGET", "s", "none"],
        vec!["GET", "none"],
    ]);
    assert_eq!(
        replies,
        [
            Value::ok(),
            Value::bulk("a\r\nb"),
            Value::Error("ERR value is not an integer or out of range".into()),
            Value::Int(1),
            Value::array([]),
            Value::array([Value::bulk("a\r\nb"), Value::Nil]),
            Value::Nil,
        ]
    );
}

#[test]
fn resp_sees_raw_bytes_and_the_end() {
    let redis = Redis::start();
    let mut client = redis.client();
    client.send_raw("PING\r\n*1\r\n$4\r\nPI");
    assert_eq!(client.read_raw(7), b"+PONG\r\n");
    client.send_raw("NG\r\n");
    assert_eq!(client.read(), Value::simple("PONG"));
    client.finish();
    assert!(client.closed());
}

#[test]
fn a_pipeline_larger_than_every_socket_buffer_goes_through() {
    let redis = Redis::start();
    let value = "v".repeat(1 << 20);
    redis.client().call(["SET", "k", &value]);
    let replies = redis.client().pipeline((0..64).map(|_| ["SET", "k", &value]));
    assert!(replies.iter().all(|reply| *reply == Value::ok()));
    let replies = redis.client().pipeline((0..64).map(|_| ["GET", "k"]));
    assert!(replies.iter().all(|reply| reply.bytes().len() == 1 << 20));
}

#[test]
fn ports_differ_and_are_given_back() {
    let ports: Vec<Port> = (0..50).map(|_| Port::claim()).collect();
    let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 50);
    assert!(ports.iter().all(|port| !port.is_listened_on()));
}

#[test]
fn nutcracker_serves_a_pool_over_two_servers() {
    let servers = Redis::start_many::<2>();
    let port = Port::claim();
    let _nutcracker = Nutcracker::start(&pool("alpha", &port, &[&servers[0], &servers[1]], "hash: murmur"));
    let mut client = Resp::port(port.number());
    for key in 0..100 {
        assert_eq!(client.call(["SET".into(), format!("key:{key}"), "v".into()]), Value::ok());
    }
    let sizes = servers.each_ref().map(|server| server.client().call(["DBSIZE"]).int());
    assert_eq!(sizes.iter().sum::<i64>(), 100);
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
}

#[test]
fn waiting_ends_with_the_condition_or_with_the_limit() {
    let mut looks = 0;
    wait_until("the third look", PATIENCE, || {
        looks += 1;
        looks == 3
    });
    assert!(!poll(Duration::from_millis(20), || false));
}
