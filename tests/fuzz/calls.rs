//! Body of a fuzz target: a sequence of operations on a few keys, planned, split and folded over several servers, must
//! answer what one server answers.

use std::collections::BTreeMap;

use shardwise::command::{Call, CommandTable, Handling};
use shardwise::config::Distribution;
use shardwise::hash::KeyHash;
use shardwise::resp::{ArgSpan, Args, Limits, Protocol, ReplyScanner, RequestScanner, Scanned, encode};
use shardwise::router::{FoldError, Plan, Rules, plan};
use shardwise::topology::{Draw, ServerIx, Topology};

use super::pools;

type Store = BTreeMap<Vec<u8>, Vec<u8>>;

const SERVERS: usize = 4;
const COMMANDS: [&[u8]; 7] = [b"SET", b"GET", b"MSET", b"MGET", b"DEL", b"EXISTS", b"UNLINK"];

/// The first byte says which servers are live and how keys are spread; then each operation takes a byte for its command
/// and number of keys, and a byte for each key.
pub fn calls(input: &[u8]) {
    let mut bytes = input.iter().copied();
    let Some(first) = bytes.next() else { return };
    let distribution = if first & 0x10 == 0 { Distribution::Modula } else { Distribution::Ketama };
    let pool = pools::pool(KeyHash::default(), distribution, pools::servers(&[1; SERVERS]));
    let live: [bool; SERVERS] = std::array::from_fn(|i| first & (1 << i) == 0);
    let (topology, draw) = (Topology::new(&pool, &live), Draw::seeded(1));
    let mut one = Store::new();
    let mut several: [Store; SERVERS] = Default::default();
    while let Some(operation) = bytes.next() {
        let Some(request) = request(operation, &mut bytes) else { return };
        let mut spans: Vec<ArgSpan> = Vec::new();
        let scanned = RequestScanner::default().scan(&request, &mut spans, &Limits::default());
        assert_eq!(scanned, Ok(Scanned::Array(request.len())));
        let args = Args::new(&request, &spans);
        let call = CommandTable::builtin().lookup(args).expect("these are commands");
        let answer = carry_out(&call, &topology, &draw, &mut several);
        match answer {
            Some(answer) => assert_eq!(
                answer.escape_ascii().to_string(),
                execute(args, &mut one).escape_ascii().to_string(),
                "{}",
                request.escape_ascii()
            ),
            None => assert!(!live.contains(&true), "refused although a server is live"),
        }
    }
}

/// Replies as they may come from broken servers: they are merged to one reply, or refused, and nothing else. The merged one is of
/// the protocol that the parts are of; what is no reply of RESP2 never gets past a connection that speaks it.
pub fn folds(input: &[u8]) {
    let Some((&count, bytes)) = input.split_first() else { return };
    let parts: Vec<&[u8]> = bytes.splitn(usize::from(count % 5) + 1, |byte| *byte == 0).collect();
    let order: Vec<u16> = (0..usize::from(count / 5)).map(|i| (i % parts.len()) as u16).collect();
    use shardwise::router::Fold;
    let is_resp2 = |part: &&[u8]| ReplyScanner::default().scan(part) == Ok(Some(part.len()));
    let protocol = if parts.iter().all(is_resp2) { Protocol::Resp2 } else { Protocol::Resp3 };
    for fold in [Fold::Concat { order }, Fold::Sum, Fold::AllOk] {
        let mut out = Vec::new();
        match fold.merge(&parts, &mut out) {
            Ok(()) => assert_eq!(ReplyScanner::of(protocol).scan(&out), Ok(Some(out.len()))),
            Err(FoldError::ErrorReply(part) | FoldError::Unexpected(part)) => assert!(part < parts.len()),
            Err(FoldError::CursorTooBig) => {}
        }
    }
}

fn request(operation: u8, bytes: &mut impl Iterator<Item = u8>) -> Option<Vec<u8>> {
    let name = COMMANDS[usize::from(operation) % COMMANDS.len()];
    let count = match name {
        b"SET" | b"GET" => 1,
        _ => 1 + usize::from(operation) / COMMANDS.len() % 8,
    };
    let mut args = vec![name.to_vec()];
    for _ in 0..count {
        let key = bytes.next()?;
        args.push(vec![b'k', key % 32]);
        if matches!(name, b"SET" | b"MSET") {
            args.push(vec![operation, key]);
        }
    }
    let mut request = Vec::new();
    encode::request(&mut request, args.iter().map(Vec::as_slice));
    Some(request)
}

/// What the client gets from the servers; `None` for a refusal.
fn carry_out(
    call: &Call<'_>,
    topology: &Topology,
    draw: &Draw,
    stores: &mut [Store; SERVERS],
) -> Option<Vec<u8>> {
    match plan(call, topology, draw, Rules::default()) {
        Plan::One(server) => {
            check_owner(topology, server);
            Some(execute(call.args, &mut stores[server.index()]))
        }
        Plan::Split { parts, fold } => {
            let Handling::Split(kind) = call.handling() else { panic!("only such calls are split") };
            let mut keys: Vec<u32> = parts.iter().flat_map(|part| part.keys.iter().copied()).collect();
            keys.sort_unstable();
            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "a key in two parts");
            assert!(parts.len() > 1 && parts.iter().all(|part| !part.keys.is_empty()));
            let replies: Vec<Vec<u8>> = parts
                .iter()
                .map(|part| {
                    check_owner(topology, part.server);
                    let mut request = Vec::new();
                    part.encode(call.args, kind.arguments_per_key(), &mut request);
                    let mut spans: Vec<ArgSpan> = Vec::new();
                    let scanned = RequestScanner::default().scan(&request, &mut spans, &Limits::default());
                    assert_eq!(scanned, Ok(Scanned::Array(request.len())));
                    execute(Args::new(&request, &spans), &mut stores[part.server.index()])
                })
                .collect();
            let mut merged = Vec::new();
            fold.merge(&replies, &mut merged).expect("these servers answer as they should");
            Some(merged)
        }
        Plan::Refuse(_) => None,
        other => panic!("{other:?} for a call with keys"),
    }
}

fn check_owner(topology: &Topology, server: ServerIx) {
    assert!(topology.live()[server.index()], "a server that is out owns a key");
}

/// What one server answers.
fn execute(args: Args<'_>, store: &mut Store) -> Vec<u8> {
    let rest: Vec<&[u8]> = args.iter_from(1).collect();
    let mut out = Vec::new();
    let value = |out: &mut Vec<u8>, value: Option<&Vec<u8>>| match value {
        Some(value) => encode::bulk(out, value),
        None => out.extend_from_slice(b"$-1\r\n"),
    };
    match args.name() {
        b"SET" | b"MSET" => {
            for pair in rest.chunks(2) {
                store.insert(pair[0].to_vec(), pair[1].to_vec());
            }
            encode::simple(&mut out, "OK");
        }
        b"GET" => value(&mut out, store.get(rest[0])),
        b"MGET" => {
            encode::array(&mut out, rest.len());
            rest.iter().for_each(|key| value(&mut out, store.get(*key)));
        }
        b"EXISTS" => {
            let count = rest.iter().filter(|key| store.contains_key(**key)).count();
            encode::integer(&mut out, count as i64);
        }
        _ => {
            let count = rest.iter().filter(|key| store.remove(**key).is_some()).count();
            encode::integer(&mut out, count as i64);
        }
    }
    out
}
