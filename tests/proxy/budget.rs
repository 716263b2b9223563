//! `max_buffers`: memory for all that waits in the process, and who has to stop when it is spent.

use crate::support::{PATIENCE, Port, Redis, Resp, Shardwise, Value, encode, pool, wait_until};

const MB: usize = 1 << 20;

/// Two servers behind a proxy whose buffers may take so much.
fn limited(limit: &str, settings: &str, threads: &str) -> ([Redis; 2], Port, Shardwise) {
    let servers: [Redis; 2] = Redis::start_many();
    let port = Port::claim();
    let pool = pool("alpha", &port, &servers.each_ref(), settings);
    let proxy =
        Shardwise::with_args(&format!("{pool}shardwise:\n  max_buffers: {limit}\n"), &["--threads", threads]);
    (servers, port, proxy)
}

fn over(proxy: &Shardwise) -> i64 {
    proxy.stats()["alpha"]["over_max_buffers"].as_i64().expect("a number")
}

/// Each of these clients stays under its own bounds, and all of them together would take 300 MB.
#[test]
fn clients_that_do_not_read_are_closed_before_the_process_takes_too_much() {
    let (_servers, port, proxy) = limited("32mb", "max_pending: 1000\nout_soft: 64mb\nout_hard: 64mb", "2");
    let mut good = Resp::port(port.number());
    let value = "v".repeat(MB);
    assert_eq!(good.call(["SET", "large", &value]), Value::ok());
    let mut greedy: Vec<Resp> = (0..10).map(|_| Resp::port(port.number())).collect();
    for client in &mut greedy {
        client.send_raw(encode(["GET", "large"]).repeat(30));
    }
    wait_until("the end of some of them", PATIENCE, || {
        good.call(["INCR", "n"]);
        over(&proxy) > 0 && proxy.stats()["alpha"]["client_connections"].as_i64() < Some(11)
    });
    for i in 0..100 {
        assert_eq!(good.call(["SET", "small", &i.to_string()]), Value::ok());
        assert_eq!(good.call(["GET", "large"]).bytes().len(), MB, "who reads is served");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says so");
    let peak: usize = peak.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("KB");
    assert!(peak < 150 << 10, "{peak} KB");
    // Whoever was not closed gets all that it asked for.
    let whole = greedy
        .iter_mut()
        .map(|client| (0..30).all(|_| client.try_read().is_ok_and(|reply| reply.bytes().len() == MB)));
    assert!(whole.filter(|whole| !whole).count() >= 1);
}

/// A request for which there is no room is refused by a word, as soon as its length is known.
#[test]
fn a_request_larger_than_the_memory_is_refused_in_words() {
    let (_servers, port, proxy) = limited("8mb", "", "2");
    let mut client = Resp::port(port.number());
    client.send_raw("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000000\r\n");
    client.send_raw("v".repeat(1000));
    assert!(client.read().is_error("OOM no memory left for this request, see max_buffers"));
    assert!(client.closed());
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", &"v".repeat(4 * MB)]), Value::ok());
    assert_eq!(over(&proxy), 1);
}

#[test]
fn observed_it_only_counts() {
    let (_servers, port, proxy) = limited("8mb observe", "", "2");
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", &"v".repeat(20 * MB)]), Value::ok());
    assert_eq!(client.call(["GET", "k"]).bytes().len(), 20 * MB);
    assert!(over(&proxy) > 0);
}

/// A server that hangs takes no requests: what clients send it would fill the memory, and requests for the others need little.
#[test]
fn requests_for_a_server_that_hangs_leave_room_for_the_others() {
    // One worker: its connections are there when the server stops.
    let (mut servers, port, proxy) = limited("16mb", "timeout: 60000", "1");
    let mut client = Resp::port(port.number());
    let keys: Vec<String> = (0..40).map(|i| format!("key:{i}:{}", i * 7919)).collect();
    for key in &keys {
        assert_eq!(client.call(["SET", key, "v"]), Value::ok());
    }
    let [hung, fine]: [Vec<&String>; 2] = servers.each_ref().map(|server| {
        let mut direct = server.client();
        keys.iter().filter(|key| direct.call(["EXISTS", key.as_str()]) == Value::Int(1)).collect()
    });
    servers[0].pause();
    let value = "v".repeat(100_000);
    let mut writers: Vec<Resp> = (0..4).map(|_| Resp::port(port.number())).collect();
    // Whoever has been refused is read no further while that waits for it: they send beside the test.
    let sending: Vec<_> = writers
        .iter()
        .map(|writer| {
            let (mut sender, requests) = (writer.sender(), encode(["SET", hung[0], &value]).repeat(100));
            std::thread::spawn(move || sender.send(&requests).expect("it is read"))
        })
        .collect();
    wait_until("the first refused request", PATIENCE, || {
        proxy.stats()["alpha"].as_object().is_some_and(|pool| {
            pool.values().any(|server| server["over_max_buffers"].as_i64().unwrap_or_default() > 0)
        })
    });
    for i in 0..100 {
        assert_eq!(client.call(["SET", fine[0], &i.to_string()]), Value::ok());
    }
    servers[0].resume();
    // Each request has its answer, done or refused.
    let (mut done, mut refused) = (0, 0);
    for writer in &mut writers {
        for _ in 0..100 {
            match writer.read() {
                reply if reply == Value::ok() => done += 1,
                reply if reply.is_error("ERR Connection busy") => refused += 1,
                reply => panic!("{reply:?}"),
            }
        }
    }
    sending.into_iter().for_each(|sender| sender.join().expect("it has sent"));
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    wait_until("the memory to be free again", PATIENCE, || {
        client.call(["SET", hung[0], &value]) == Value::ok()
            && client.call(["GET", hung[0]]).bytes().len() == 100_000
    });
}
