//! Fixed loops over pieces of the pure core, for `benches/instructions.py` to count their instructions under callgrind.
//!
//! `instructions PIECE ROUNDS` runs one piece; without arguments every piece runs once, so that it is known to work.

use std::hint::black_box;

use shardwise::command::CommandTable;
use shardwise::resp::{Args, Limits, ReplyScanner, RequestScanner};

#[path = "../tests/round_trip/mod.rs"]
mod round_trip;

use round_trip::script::{Order, Script};
use round_trip::{Owners, array, bulk, keys, request};

/// One round of what is to be counted.
type Round = Box<dyn FnMut()>;

/// What can be counted, by name.
fn pieces() -> Vec<(&'static str, Round)> {
    let keys: Vec<String> = keys().take(16).collect();
    let get = request(["GET", &keys[0]]);
    let set = request(["SET", &keys[0], "xyz"]);
    let mget = request(["MGET"].into_iter().chain(keys.iter().map(String::as_str)));
    vec![
        ("scan-get", scan(get.clone())),
        ("scan-set", scan(set)),
        ("scan-mget16", scan(mget.clone())),
        ("scan-reply-bulk", scan_reply(bulk("xyz"))),
        ("scan-reply-lrange600", scan_reply(array(&vec![bulk("xyz"); 600]))),
        ("lookup-get", lookup(get.clone())),
        ("plan-get", plan(get)),
        ("plan-mget16", plan(mget)),
        ("round-trip-get", round_trip(Script::get(), 1)),
        ("round-trip-get-50-clients", round_trip(Script::get(), 50)),
        ("round-trip-set", round_trip(Script::set(), 1)),
        ("round-trip-16", round_trip(Script::pipeline("one server", 1), 1)),
        ("round-trip-16-reversed", round_trip(Script::scattered("16 servers", Order::Reversed), 1)),
        ("round-trip-mget16", round_trip(Script::mget("four servers", 4), 1)),
    ]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut pieces = pieces();
    match arguments.as_slice() {
        [option] if option == "--list" => pieces.iter().for_each(|(name, _)| println!("{name}")),
        [piece, rounds] if !piece.starts_with('-') => {
            let rounds: u64 = rounds.parse().expect("ROUNDS is a number");
            let (_, round) =
                pieces.iter_mut().find(|(name, _)| name == piece).expect("PIECE is one of --list");
            (0..rounds).for_each(|_| round());
        }
        // `cargo bench` and `cargo test --benches` come here, with options of their own.
        _ => pieces.iter_mut().for_each(|(_, round)| round()),
    }
}

fn scan(bytes: Vec<u8>) -> Round {
    let (mut scanner, mut spans, limits) = (RequestScanner::default(), Vec::new(), Limits::default());
    Box::new(move || {
        black_box(scanner.scan(black_box(&bytes), &mut spans, &limits)).expect("a request");
    })
}

fn scan_reply(bytes: Vec<u8>) -> Round {
    let mut scanner = ReplyScanner::default();
    Box::new(move || {
        black_box(scanner.scan(black_box(&bytes))).expect("a reply");
    })
}

fn lookup(bytes: Vec<u8>) -> Round {
    let mut spans = Vec::new();
    RequestScanner::default().scan(&bytes, &mut spans, &Limits::default()).expect("a request");
    Box::new(move || {
        black_box(CommandTable::builtin().lookup(Args::new(black_box(&bytes), &spans))).expect("a command");
    })
}

fn plan(bytes: Vec<u8>) -> Round {
    let (mut spans, owners) = (Vec::new(), Owners::new(4));
    RequestScanner::default().scan(&bytes, &mut spans, &Limits::default()).expect("a request");
    Box::new(move || {
        let call = CommandTable::builtin().lookup(Args::new(black_box(&bytes), &spans)).expect("a command");
        black_box(owners.plan(&call));
    })
}

fn round_trip(script: Script, clients: usize) -> Round {
    let stage = script.stage(clients);
    Box::new(move || stage.play(&script, clients))
}
