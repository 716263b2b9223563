//! Servers that fail, under `auto_eject_hosts`.

use crate::support::{PATIENCE, Port, Redis, Shardwise, Value, pool, wait_until};

struct Fixture {
    proxy: Shardwise,
    port: Port,
    servers: [Redis; 3],
}

fn start(settings: &str) -> Fixture {
    let (port, servers) = (Port::claim(), Redis::start_many());
    let [a, b, c] = &servers;
    let settings = format!("auto_eject_hosts: true\nserver_retry_timeout: 300\n{settings}");
    let proxy = Shardwise::start(&pool("alpha", &port, &[a, b, c], &settings));
    Fixture { proxy, port, servers }
}

impl Fixture {
    /// Asks for keys of all servers; how many requests failed.
    fn failures(&self) -> usize {
        let mut client = crate::support::Resp::port(self.port.number());
        // The number stands in front: FNV hardly spreads keys that differ in their last byte.
        let mut get = |key: u32| client.call(["GET".to_owned(), format!("{key}:of some key")]);
        (0..100).map(&mut get).filter(|reply| !matches!(reply, Value::Bulk(_) | Value::Nil)).count()
    }

    fn ejects(&self) -> u64 {
        self.proxy.stats()["alpha"]["server_ejects"].as_u64().unwrap()
    }

    fn wait_for_ejects(&self, number: u64) {
        wait_until("the ejection", PATIENCE, || {
            self.failures();
            self.ejects() == number
        });
    }
}

#[test]
fn a_dead_server_loses_its_keys_and_gets_them_back_when_it_answers() {
    let mut fixture = start("");
    assert_eq!(fixture.failures(), 0);
    fixture.servers[0].kill();
    fixture.wait_for_ejects(1);
    wait_until("the others to have all keys", PATIENCE, || fixture.failures() == 0);
    let name = fixture.servers[0].address();
    let at = |fixture: &Fixture| fixture.proxy.stats()["alpha"][&name]["server_ejected_at"].as_u64().unwrap();
    let ejected_at = at(&fixture);
    assert!(ejected_at > 1_600_000_000_000_000, "{ejected_at} is no time in microseconds");

    // Probes fail and no client notices: it doesn't come back before it lives.
    wait_until("a probe", PATIENCE, || fixture.proxy.log().contains("server stays ejected"));
    assert_eq!((fixture.failures(), fixture.ejects()), (0, 1));

    fixture.servers[0].restart();
    wait_until("the return", PATIENCE, || fixture.proxy.log().contains("server readmitted"));
    wait_until("its keys to be served by it", PATIENCE, || {
        fixture.failures() == 0 && fixture.servers[0].info("keyspace_misses") > 0
    });
    assert_eq!((fixture.ejects(), at(&fixture)), (1, ejected_at));
}

#[test]
fn the_last_server_is_never_ejected() {
    let mut fixture = start("");
    fixture.servers.iter_mut().for_each(Redis::kill);
    fixture.wait_for_ejects(2);
    wait_until("a word about the last", PATIENCE, || {
        fixture.failures();
        fixture.proxy.log().contains("it is the last live one of its pool")
    });
    assert!(fixture.failures() > 0);
    assert_eq!(fixture.ejects(), 2);
    fixture.servers.iter_mut().for_each(Redis::restart);
    wait_until("all to be back", PATIENCE, || fixture.proxy.log().matches("server readmitted").count() == 2);
    wait_until("all keys", PATIENCE, || fixture.failures() == 0);
}

#[test]
fn an_optimistic_pool_tries_with_live_traffic() {
    let mut fixture = start("readmit: optimistic");
    fixture.servers[0].kill();
    fixture.wait_for_ejects(1);
    // It comes back dead, fails requests, and is ejected once more.
    fixture.wait_for_ejects(2);
    fixture.servers[0].restart();
    wait_until("all keys", PATIENCE, || {
        fixture.failures() == 0 && fixture.servers[0].info("keyspace_misses") > 0
    });
}

#[test]
fn nothing_is_ejected_unless_asked_for() {
    let mut fixture = start("");
    drop(fixture.proxy);
    let [a, b, c] = &fixture.servers;
    fixture.proxy = Shardwise::start(&pool("alpha", &fixture.port, &[a, b, c], ""));
    fixture.servers[0].kill();
    let name = fixture.servers[0].address();
    wait_until("many failures", PATIENCE, || {
        assert!(fixture.failures() > 0, "its keys belong to nobody else");
        fixture.proxy.stats()["alpha"][&name]["failed_attempts"].as_u64().unwrap() >= 4
    });
    assert_eq!(fixture.ejects(), 0);
}
