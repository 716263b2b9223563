//! The proxy in front of four servers answers what one single server answers.
//!
//! Many clients send random pipelines of every command that works on keys. Each owns its keys, so what a key answers
//! depends on its owner's history alone; the owner tells the same history to one plain redis-server and compares
//! reply by reply. Random answers are checked against what they were drawn from, clocks by their distance. Other
//! clients' keys are read, too: their values must name them.
//!
//! `HISTORY_SECONDS` (8), `HISTORY_CLIENTS` (200) and `HISTORY_SEED` (from the clock; printed) set the size.

mod support;

mod history {
    pub mod author;
    pub mod check;
    pub mod client;
    pub mod coverage;
    pub mod phrases;
    pub mod template;
}

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use history::author::{Author, Book, LIBRARY};
use history::client::{Client, Trouble};
use history::coverage::Coverage;
use support::{Port, Redis, Resp, Shardwise, Value, pool};

/// However slow the machine is, so much is said: enough for every command to come up.
const LEAST_PIPELINES: usize = 2_500;
/// So often each command must be sent.
const LEAST_OF_EACH: u64 = 20;

#[test]
fn no_reply_differs_from_what_a_single_redis_answers() {
    compare("hash_tag: \"{}\"\nserver_connections: 2");
}

/// With bounds so narrow that nearly every pipeline is held up, and goes on, in its middle.
#[test]
fn no_reply_differs_when_requests_have_to_wait() {
    compare("hash_tag: \"{}\"\nmax_pending: 3\nout_soft: 1kb\nhash: murmur\ndistribution: modula");
}

/// With these settings of the pool.
fn compare(settings: &str) {
    let seconds = setting("HISTORY_SECONDS", 8);
    let clients: usize = setting("HISTORY_CLIENTS", 200);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970");
    let seed = setting("HISTORY_SEED", now.as_micros() as u64);
    println!("HISTORY_SEED={seed} HISTORY_CLIENTS={clients} HISTORY_SECONDS={seconds}");

    let shards = Redis::start_many::<4>();
    let reference = Redis::start();
    let book = Book::new(clients, now.as_secs(), |script| {
        shards.iter().for_each(|shard| drop(load(shard, script)));
        load(&reference, script)
    });
    let port = Port::claim();
    let _shardwise = Shardwise::start(&pool("alpha", &port, &shards.each_ref(), settings));

    let end = Instant::now() + Duration::from_secs(seconds);
    let (coverage, troubles) = run(&book, seed, &port, &reference, end);
    let per_second =
        coverage.total() as f64 / (Instant::now() - end + Duration::from_secs(seconds)).as_secs_f64();
    println!("{} commands of {} kinds compared, {per_second:.0}/s", coverage.total(), coverage.rows());
    assert!(troubles.is_empty(), "HISTORY_SEED={seed}: {} clients:\n{}", troubles.len(), troubles.join("\n"));

    let gaps = coverage.gaps(LEAST_OF_EACH);
    assert!(gaps.is_empty(), "sent fewer than {LEAST_OF_EACH} times, or never with success: {gaps:#?}");
    let sizes = shards.each_ref().map(|shard| shard.client().call(["DBSIZE"]).int());
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<i64>(), reference.client().call(["DBSIZE"]).int(), "{sizes:?}");
}

/// All clients at once, until `end`. What they have sent, and what went wrong, if anything.
fn run(book: &Book, seed: u64, port: &Port, reference: &Redis, end: Instant) -> (Coverage, Vec<String>) {
    let stop = AtomicBool::new(false);
    let least = LEAST_PIPELINES / book.clients + 1;
    let serve = |number: usize| {
        let mut client = Client {
            number,
            author: Author::new(book, number, seed),
            proxy: Resp::port(port.number()),
            reference: reference.client(),
            coverage: Coverage::default(),
            pipelines: 0,
        };
        let mut outcome = Ok(());
        while outcome.is_ok()
            && !stop.load(Ordering::Relaxed)
            && (Instant::now() < end || client.pipelines < least)
        {
            outcome = client.pipeline();
        }
        if outcome.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        (client.coverage, outcome)
    };
    std::thread::scope(|scope| {
        let serve = &serve;
        let threads: Vec<_> = (0..book.clients).map(|number| scope.spawn(move || serve(number))).collect();
        let mut coverage = Coverage::default();
        let mut troubles = Vec::new();
        for (number, thread) in threads.into_iter().enumerate() {
            let (own, outcome): (_, Result<(), Trouble>) = thread.join().expect("a client does not panic");
            coverage.add(&own);
            troubles.extend(outcome.err().map(|trouble| format!("client {number}: {trouble}")));
        }
        (coverage, troubles)
    })
}

/// Makes a server know a script and the functions.
fn load(server: &Redis, script: &str) -> String {
    let mut client = server.client();
    assert_eq!(client.call(["FUNCTION", "LOAD", "REPLACE", LIBRARY]), Value::bulk("history"));
    String::from_utf8(client.call(["SCRIPT", "LOAD", script]).bytes().to_vec())
        .expect("a hash is hexadecimal")
}

fn setting<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}
