//! Hundreds of pipelining clients while servers are killed, stopped, restarted and ejected, connections cut, and clients
//! come and go in the middle of requests and replies: nobody gets a reply that is another's, and no request stays
//! without its answer.
//!
//! Each value names its key and version in every byte, each echo its client and request. Two pools share the servers: one
//! gives requests up and ejects servers; one never does, so that what it acknowledged may be lost with a server and never
//! be older. Narrow bounds hold its pipelines up in their middle.
//!
//! `CHAOS_SECONDS` (8), `CHAOS_CLIENTS` (200), `CHAOS_SEED` (from the clock; printed) and `CHAOS_ANSWERS`, the least number
//! of right ones, set the size. The seed repeats what is sent and done, not the order in which threads run.

#![allow(clippy::disallowed_methods)] // clients and saboteur take their time

mod support;

mod chaos {
    pub mod client;
    pub mod request;
    pub mod saboteur;
}

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chaos::client::{Client, Place, Tally};
use chaos::saboteur::{Deeds, Saboteur};
use support::{PATIENCE, Port, Redis, Shardwise, pool, wait_until};

/// However slow the machine is, a run with fewer right answers has proved nothing.
const LEAST_ANSWERS: u64 = 5_000;

#[test]
fn nothing_is_lost_and_nobody_crossed_while_everything_fails() {
    let seconds = setting("CHAOS_SECONDS", 8);
    let clients: usize = setting("CHAOS_CLIENTS", 200);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970");
    let seed = setting("CHAOS_SEED", now.as_micros() as u64);
    println!("CHAOS_SEED={seed} CHAOS_CLIENTS={clients} CHAOS_SECONDS={seconds}");

    let mut servers = Redis::start_many::<4>();
    let addresses = servers.each_ref().map(Redis::address);
    let ports = [Port::claim(), Port::claim()];
    let ejecting = "ping: reply\ntimeout: 250\nauto_eject_hosts: true\nserver_failure_limit: 2\nserver_retry_timeout: 400\n\
                    server_connections: 2";
    let steady = "ping: reply\ndistribution: modula\nmax_pending: 5\nout_soft: 2kb\nserver_connections: 3";
    let yaml = pool("alpha", &ports[0], &servers.each_ref(), ejecting)
        + &pool("beta", &ports[1], &servers.each_ref(), steady);
    let mut proxy = Shardwise::start(&yaml);
    let places = [("alpha", false), ("beta", true)];
    let places = [0, 1].map(|i| Place {
        pool: places[i].0,
        port: ports[i].number(),
        steady: places[i].1,
        servers: &addresses,
    });

    let end = Instant::now() + Duration::from_secs(seconds);
    let (tally, deeds, troubles) = run(&mut servers, &places, clients, seed, end);
    println!("{tally:?} wrong: 0, lost: 0 unless said below; {deeds:?}");
    assert!(troubles.is_empty(), "CHAOS_SEED={seed}: {} clients:\n{}", troubles.len(), troubles.join("\n"));
    let least = setting("CHAOS_ANSWERS", LEAST_ANSWERS);
    assert!(tally.right >= least, "only {} right answers", tally.right);
    assert!(deeds.kills.min(deeds.stops).min(deeds.cuts) > 0, "too little happened: {deeds:?}");
    assert!(tally.errors > 0, "nobody noticed what happened");

    wait_until("every gauge to be 0 again", PATIENCE, || busy_gauges(&proxy.stats()).is_empty());
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    assert!(!proxy.log().contains("panicked"), "{}", proxy.log());
}

/// All clients at once until `end`, and what they got; what happened to the servers; what went wrong, if anything.
fn run(
    servers: &mut [Redis],
    places: &[Place<'_>; 2],
    clients: usize,
    seed: u64,
    end: Instant,
) -> (Tally, Deeds, Vec<String>) {
    let stop = AtomicBool::new(false);
    let serve = |number: usize| {
        let mut client = Client::new(places[number % 2], number, seed);
        let mut outcome = Ok(());
        while outcome.is_ok() && !stop.load(Ordering::Relaxed) {
            outcome = client.pipeline();
        }
        if outcome.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        (client.tally(), outcome)
    };
    std::thread::scope(|scope| {
        let serve = &serve;
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || serve(number))).collect();
        let mut saboteur = Saboteur::new(servers, seed);
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            let pause = saboteur.act();
            std::thread::sleep(pause);
        }
        stop.store(true, Ordering::Relaxed);
        let deeds = saboteur.end();
        let mut tally = Tally::default();
        let mut troubles = Vec::new();
        for thread in threads {
            let (own, outcome) = thread.join().expect("a client does not panic");
            tally += own;
            troubles.extend(outcome.err());
        }
        (tally, deeds, troubles)
    })
}

/// Gauges that say that something is still on its way, with their values.
fn busy_gauges(stats: &serde_json::Value) -> Vec<String> {
    const OF_POOL: [&str; 1] = ["client_connections"];
    const OF_SERVER: [&str; 4] = ["in_queue", "in_queue_bytes", "out_queue", "out_queue_bytes"];
    let busy = |of: &serde_json::Value, names: &[&str]| -> Vec<String> {
        let values = names.iter().map(|name| (name, of[name].as_u64()));
        values.filter(|(_, n)| n.is_some_and(|n| n > 0)).map(|(name, n)| format!("{name}: {n:?}")).collect()
    };
    let mut all = Vec::new();
    for pool in ["alpha", "beta"].map(|name| &stats[name]) {
        assert!(pool["client_connections"].is_u64(), "no pool in {stats}");
        all.extend(busy(pool, &OF_POOL));
        let servers = pool.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
        all.extend(servers.flat_map(|(_, server)| busy(server, &OF_SERVER)));
    }
    all
}

fn setting<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}
