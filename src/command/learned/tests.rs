use super::*;
use crate::command::{AllKind, Handling, Pin, TimeoutAt, Why};
use crate::resp::{ArgSpan, ErrorReply};

/// A reply to COMMAND with these entries.
fn reply(entries: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", entries.len());
    entries.iter().for_each(|entry| text.push_str(entry));
    text.into_bytes()
}

/// An entry as Redis 7.0 has it. `specs` and `subs` are arrays in RESP.
fn entry(
    name: &str,
    arity: i64,
    flags: &[&str],
    range: [i64; 3],
    tips: &[&str],
    specs: &str,
    subs: &[String],
) -> String {
    let words = |words: &[&str]| {
        words.iter().fold(format!("*{}\r\n", words.len()), |all, word| format!("{all}+{word}\r\n"))
    };
    let [first, last, step] = range;
    format!(
        "*10\r\n${}\r\n{name}\r\n:{arity}\r\n{}:{first}\r\n:{last}\r\n:{step}\r\n*1\r\n+@slow\r\n{}{specs}*{}\r\n{}",
        name.len(),
        words(flags),
        words(tips),
        subs.len(),
        subs.concat()
    )
}

fn spec(flags: &[&str], begin: &str, find: &str) -> String {
    let words = flags.iter().fold(format!("*{}\r\n", flags.len()), |all, word| format!("{all}+{word}\r\n"));
    format!("*6\r\n$5\r\nflags\r\n{words}$12\r\nbegin_search\r\n{begin}$9\r\nfind_keys\r\n{find}")
}

fn search(kind: &str, fields: &[(&str, &str)]) -> String {
    let fields = fields.iter().fold(format!("*{}\r\n", fields.len() * 2), |all, (name, value)| {
        format!("{all}+{name}\r\n{value}\r\n")
    });
    format!("*4\r\n+type\r\n+{kind}\r\n+spec\r\n{fields}")
}

fn specs(specs: &[String]) -> String {
    format!("*{}\r\n{}", specs.len(), specs.concat())
}

fn at(index: u8) -> String {
    search("index", &[("index", &format!(":{index}"))])
}

fn one() -> String {
    search("range", &[("lastkey", ":0"), ("keystep", ":1"), ("limit", ":0")])
}

fn one_key() -> String {
    specs(&[spec(&["RW"], &at(1), &one())])
}

fn learn(entries: &[&str]) -> Learned {
    Lexicon::default().learn(&reply(entries)).unwrap()
}

/// What the words are taken for.
fn with_call<T>(
    learned: &Learned,
    words: &str,
    look: impl FnOnce(Option<Result<Call<'_>, CallError<'_>>>) -> T,
) -> T {
    let (mut raw, mut spans) = (Vec::new(), Vec::new());
    for word in words.split(' ') {
        spans.push(ArgSpan { start: raw.len() as u32, len: word.len() as u32 });
        raw.extend_from_slice(word.as_bytes());
    }
    look(learned.lookup(Args::new(&raw, &spans)))
}

fn handling(learned: &Learned, words: &str) -> Handling {
    with_call(learned, words, |call| call.unwrap().unwrap().handling())
}

fn keys(learned: &Learned, words: &str) -> Vec<usize> {
    with_call(learned, words, |call| call.unwrap().unwrap().keys().unwrap().iter().collect())
}

fn refusal(learned: &Learned, words: &str) -> Option<String> {
    let text = |error: ErrorReply| {
        let mut out = Vec::new();
        error.encode(&mut out);
        String::from_utf8(out).unwrap()
    };
    with_call(learned, words, |call| call.unwrap().err().map(|error| text(error.reply())))
}

#[test]
fn a_command_with_a_key_is_found_in_any_case() {
    let learned =
        learn(&[&entry("Toy.Set", -3, &["write", "denyoom", "module"], [1, 1, 1], &[], &one_key(), &[])]);
    assert_eq!(handling(&learned, "TOY.set k v"), Handling::Keyed);
    assert_eq!(keys(&learned, "toy.SET k v w"), [1]);
    assert!(with_call(&learned, "toy.set k v", |call| call.unwrap().unwrap().row.is_write()));
    assert!(refusal(&learned, "toy.set k").unwrap().contains("wrong number of arguments for 'toy.set'"));
    assert!(with_call(&learned, "toy.get k", |call| call.is_none()));
    assert!(with_call(&learned, &"x".repeat(100_000), |call| call.is_none()));
    assert_eq!((learned.len(), learned.command_named(b"toy.SET").unwrap().name), (1, "toy.set"));
}

#[test]
fn what_the_table_knows_is_not_learned() {
    let learned = learn(&[&entry("GET", 2, &["readonly"], [1, 1, 1], &[], &one_key(), &[])]);
    assert!(learned.is_empty());
}

#[test]
fn keys_by_number_and_by_keyword() {
    let counted = specs(&[
        spec(&["OW"], &at(1), &one()),
        spec(
            &["RO"],
            &at(2),
            &search("keynum", &[("keynumidx", ":0"), ("firstkey", ":1"), ("keystep", ":1")]),
        ),
    ]);
    let behind = search("keyword", &[("keyword", "+FROM"), ("startfrom", ":2")]);
    let behind = specs(&[spec(
        &["RO"],
        &behind,
        &search("range", &[("lastkey", ":-1"), ("keystep", ":1"), ("limit", ":0")]),
    )]);
    let learned = learn(&[
        &entry("toy.union", -4, &["write", "movablekeys"], [1, 1, 1], &[], &counted, &[]),
        &entry("toy.join", -2, &["readonly", "movablekeys"], [0, 0, 0], &[], &behind, &[]),
    ]);
    assert_eq!(keys(&learned, "toy.union d 2 a b WEIGHTS"), [1, 3, 4]);
    assert_eq!(keys(&learned, "toy.join x from a b"), [3, 4]);
}

/// Whose keys can't be told is sent nowhere, but where there is only one place for it.
#[test]
fn what_the_proxy_cannot_route_is_refused() {
    let plain = one_key();
    let incomplete = specs(&[spec(&["RW", "incomplete"], &at(1), &one())]);
    let unknown = specs(&[spec(&["RW"], &search("unknown", &[]), &search("unknown", &[]))]);
    let three = specs(&[1, 3, 5].map(|index| spec(&["RO"], &at(index), &one())));
    let channel = specs(&[spec(&["not_key"], &at(1), &one())]);
    let unheard = Handling::OnlyServer(Why::KeysUnknown);
    let keyless = Handling::OnlyServer(Why::Keyless);
    let all = ["request_policy:all_shards", "response_policy:agg_sum"];
    for (flags, range, tips, specs, expected) in [
        (&["movablekeys", "module"][..], [1, 1, 1], &[][..], &plain, unheard),
        (&["movablekeys"], [0, 0, 0], &[], &incomplete, unheard),
        (&["movablekeys"], [0, 0, 0], &[], &unknown, unheard),
        (&["movablekeys", "module"], [0, 0, 0], &[], &"*0\r\n".to_owned(), unheard),
        (&[], [0, 0, 0], &[], &three, unheard),
        (&["readonly"], [0, 0, 0], &[], &"*0\r\n".to_owned(), keyless),
        (&["readonly"], [0, 0, 0], &[], &channel, keyless),
        (&["readonly"], [0, 0, 0], &all[..1], &"*0\r\n".to_owned(), keyless),
        (&["readonly"], [0, 0, 0], &all, &"*0\r\n".to_owned(), Handling::Everywhere(AllKind::Sum)),
        (&["blocking"], [1, 1, 1], &[], &plain, Handling::Pinned(Pin::Block(TimeoutAt::Unsaid))),
        (&["blocking"], [0, 0, 0], &[], &"*0\r\n".to_owned(), Handling::Unsupported(Why::KeysUnknown)),
        (&["admin"], [1, 1, 1], &[], &plain, Handling::Unsupported(Why::Administration)),
        (&["pubsub"], [0, 0, 0], &[], &"*0\r\n".to_owned(), Handling::Unsupported(Why::ConnectionState)),
    ] {
        let learned = learn(&[&entry("toy.x", -1, flags, range, tips, specs, &[])]);
        assert_eq!(handling(&learned, "toy.x a b c d e f"), expected, "{flags:?} {tips:?} {specs:?}");
    }
}

#[test]
fn subcommands_are_learned_with_their_container_and_keyed_ones_of_known_containers() {
    let sub = |name: &str, specs: &str| entry(name, -3, &["readonly"], [2, 2, 1], &[], specs, &[]);
    let second = specs(&[spec(&["RO"], &at(2), &one())]);
    let learned = learn(&[
        &entry(
            "toy",
            -2,
            &[],
            [0, 0, 0],
            &[],
            "*0\r\n",
            &[sub("toy|info", &second), sub("other|x", &second)],
        ),
        &entry(
            "object",
            -2,
            &[],
            [0, 0, 0],
            &[],
            "*0\r\n",
            &[sub("object|size", &second), sub("object|all", "*0\r\n")],
        ),
        &entry("client", -2, &[], [0, 0, 0], &[], "*0\r\n", &[sub("client|twist", "*0\r\n")]),
    ]);
    assert_eq!(keys(&learned, "TOY info k"), [2]);
    assert!(refusal(&learned, "toy x k").unwrap().contains("unknown subcommand"));
    assert_eq!(keys(&learned, "object SIZE k"), [2]);
    assert!(refusal(&learned, "object all k").unwrap().contains("unknown subcommand"));
    assert!(with_call(&learned, "client twist k", |call| call.is_none()));
    assert_eq!(learned.names().collect::<Vec<_>>(), ["object|size", "toy", "toy|info"]);
    assert_eq!(learned.len(), 1, "OBJECT is no new command");
    assert_eq!(learned.command_named(b"object|size").unwrap().name, "object|size");
    assert!(learned.command_named(b"object").is_none());
}

#[test]
fn servers_before_redis_7_have_only_ranges() {
    let old = |name: &str, flags: &str, range: [i64; 3]| {
        let [first, last, step] = range;
        format!("*6\r\n+{name}\r\n:-2\r\n*1\r\n+{flags}\r\n:{first}\r\n:{last}\r\n:{step}\r\n")
    };
    let learned = learn(&[
        &old("toy.one", "write", [1, 1, 1]),
        &old("toy.pairs", "write", [1, -1, 2]),
        &old("toy.moved", "movablekeys", [1, 1, 1]),
        &old("toy.odd", "write", [3, 1, 1]),
    ]);
    assert_eq!(keys(&learned, "toy.one a b"), [1]);
    assert_eq!(keys(&learned, "toy.pairs a b c d"), [1, 3]);
    assert_eq!(handling(&learned, "toy.moved a"), Handling::OnlyServer(Why::KeysUnknown));
    assert_eq!(handling(&learned, "toy.odd a"), Handling::OnlyServer(Why::KeysUnknown));
}

#[test]
fn servers_of_a_pool_may_differ() {
    let mut lexicon = Lexicon::default();
    let mut learn = |entries: &[String]| {
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        lexicon.learn(&reply(&entries)).unwrap()
    };
    let toy =
        |name, arity, flags: &[&str], specs: &str| entry(name, arity, flags, [1, 1, 1], &[], specs, &[]);
    let second = specs(&[spec(&["RW"], &at(2), &one())]);
    let a = learn(&[toy("toy.a", 2, &["readonly"], &one_key()), toy("toy.b", 3, &["write"], &one_key())]);
    let b = learn(&[
        toy("toy.a", 3, &["write"], &one_key()),
        toy("toy.b", 3, &["write"], &second),
        toy("toy.c", 2, &[], &one_key()),
    ]);
    let both = lexicon.merge([&a, &Learned::default(), &b]);
    assert_eq!(both.names().collect::<Vec<_>>(), ["toy.a", "toy.b", "toy.c"]);
    // Any number of arguments, and a write.
    assert_eq!(handling(&both, "toy.a k x y"), Handling::Keyed);
    assert!(with_call(&both, "toy.a k", |call| call.unwrap().unwrap().row.is_write()));
    assert_eq!(handling(&both, "toy.b k x"), Handling::Unsupported(Why::Disagreement));
    assert_eq!(handling(&both, "toy.c k"), Handling::Keyed);
    assert_eq!(lexicon.merge([&a, &b]), both, "what is agreed once stays");
}

#[test]
fn what_is_known_takes_no_room_twice_and_there_is_a_bound() {
    let entries: Vec<String> = (0..3000)
        .map(|i| entry(&format!("toy.c{i}"), 2, &["write"], [1, 1, 1], &[], &one_key(), &[]))
        .collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let mut lexicon = Lexicon::default();
    let first = lexicon.learn(&reply(&entries)).unwrap();
    assert_eq!((first.len(), lexicon.is_full()), (MOST_LEARNED, false));
    assert_eq!(lexicon.learn(&reply(&entries)).unwrap(), first);
    assert!(!lexicon.is_full());

    let mut lexicon = Lexicon::bounded(10_000);
    for round in 0..1000 {
        let new = entry(&format!("toy.r{round}"), 2, &["write"], [1, 1, 1], &[], &one_key(), &[]);
        let learned = lexicon.learn(&reply(&[&new, entries[0]])).unwrap();
        assert!(learned.command_named(b"toy.c0").is_some(), "what was learned before the bound stays");
    }
    assert!(lexicon.is_full());
}

/// Whatever a server answers: an error, or what makes sense of it.
#[test]
fn nonsense_is_no_answer() {
    let good = entry("toy.x", 2, &["write"], [1, 1, 1], &[], &one_key(), &[]);
    let whole = reply(&[&good, &good]);
    for cut in 0..whole.len() {
        assert!(Lexicon::default().learn(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for nonsense in [
        &b""[..],
        b"+OK\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"*99999999999\r\n",
        b"*1\r\n*9999999\r\n",
        b"?",
        b"*-7\r\n",
    ] {
        assert!(Lexicon::default().learn(nonsense).is_err(), "{}", nonsense.escape_ascii());
    }
    let odd = b"*9\r\n*0\r\n:1\r\n$-1\r\n*1\r\n*1\r\n*1\r\n*0\r\n+x\r\n*2\r\n+a\r\n:1\r\n\
        *6\r\n:1\r\n+x\r\n:1\r\n*1\r\n*0\r\n+x\r\n*-1\r\n*6\r\n+a b\r\n:1\r\n*0\r\n:1\r\n:1\r\n:1\r\n\
        *6\r\n+toy.y\r\n:700\r\n*0\r\n:1\r\n:1\r\n:1\r\n*7\r\n+toy|z\r\n:0\r\n*0\r\n:1\r\n:1\r\n:1\r\n*0\r\n";
    let learned = Lexicon::default().learn(odd).unwrap();
    assert_eq!(learned.names().collect::<Vec<_>>(), ["toy.y"]);
    let deep = [b"*1\r\n".repeat(100_000), b":1\r\n".to_vec()].concat();
    assert!(Lexicon::default().learn(&deep).unwrap().is_empty());
}
