//! Which arguments are keys: against COMMAND GETKEYS of live servers for calls of every command, and by hand where
//! options decide.

use std::time::Duration;

use proptest::prelude::*;
use shardwise::command::{Call, CallError, CommandTable, Handling, KeyError, Pin, TimeoutAt, Why};

use super::live::{Server, Value};
use super::request::Request;
use super::samples::{Dice, Names, OPTIONS, documented, sample};

/// Samples for each command that has arguments to vary.
const SAMPLES: usize = 60;

fn call<R>(request: &Request, then: impl FnOnce(Call<'_>) -> R) -> R {
    then(CommandTable::builtin().lookup(request.args()).expect("a call"))
}

fn keys_of(request: &Request) -> Result<Vec<usize>, KeyError> {
    call(request, |call| call.keys().map(|keys| keys.iter().collect()))
}

/// What `COMMAND GETKEYS` of the server says.
fn getkeys<T: AsRef<[u8]>>(server: &mut Server, args: &[T]) -> Result<Vec<Vec<u8>>, String> {
    let request: Vec<&[u8]> =
        [&b"COMMAND"[..], b"GETKEYS"].into_iter().chain(args.iter().map(AsRef::as_ref)).collect();
    match server.ask(&request) {
        Value::Array(keys) => Ok(keys.iter().map(|key| key.text().as_bytes().to_vec()).collect()),
        Value::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        other => panic!("{other:?} instead of keys"),
    }
}

/// Every valid call: our keys are the server's, and are what the argument specs call keys.
fn compare_valid_calls(server: &mut Server) {
    let docs = server.ask(&["COMMAND", "DOCS"]);
    let mut with_keys = 0;
    for (name, specs) in &documented(&docs) {
        let mut dice = Dice::for_command(name, 0);
        for _ in 0..SAMPLES {
            let sample = sample(name, specs, Names::Plain, &mut dice);
            let request = Request::new(&sample.args);
            let call = match CommandTable::builtin().lookup(request.args()) {
                Ok(call) => call,
                // Some specs call optional what the arity asks for.
                Err(CallError::WrongArity(_)) => continue,
                Err(error) => panic!("{:?}: {error:?}", sample.args),
            };
            let ours = call.keys().map(|keys| keys.iter().collect::<Vec<_>>());
            let theirs = getkeys(server, &sample.args).ok();
            let ours = match (ours, theirs) {
                (Err(_), None) => continue,
                (Err(error), Some(theirs)) => panic!("{:?}: {error:?} instead of {theirs:?}", sample.args),
                // A server says the same of a command without keys as of one whose keys it can't find.
                (Ok(ours), None) if ours.is_empty() || has_no_source(name, &sample.args) => ours,
                (Ok(ours), theirs) if has_two_destinations(name, &sample.args) => {
                    assert_eq!(theirs.map(|keys| keys.len()), Some(3), "{:?}", sample.args);
                    assert_eq!(ours, [1, sample.keys[2]], "{:?}", sample.args);
                    continue;
                }
                (Ok(ours), theirs) => {
                    let texts = ours.iter().map(|at| sample.args[*at].as_bytes().to_vec()).collect();
                    assert_eq!(Some::<Vec<_>>(texts), theirs, "{:?}", sample.args);
                    ours
                }
            };
            // An empty key of MIGRATE is a key if no list of keys follows; the specs call it a mere placeholder.
            if name != "migrate" || !sample.args[3].is_empty() {
                let mut ours = ours.clone();
                ours.sort_unstable();
                assert_eq!(ours, sample.keys, "{:?}", sample.args);
            }
            with_keys += usize::from(!ours.is_empty());
        }
    }
    assert!(with_keys > 150 * SAMPLES, "only {with_keys} samples have keys: the specs were misread");
}

/// GEORADIUS with both STORE and STOREDIST stores to the last one; the published specs name both.
fn has_two_destinations(name: &str, args: &[String]) -> bool {
    let has = |word: &str| args.iter().any(|arg| arg == word);
    matches!(name, "georadius" | "georadiusbymember") && has("STORE") && has("STOREDIST")
}

/// MIGRATE with an empty list of keys moves nothing; COMMAND GETKEYS takes its placeholder for a key.
fn has_empty_list(name: &str, args: &[String]) -> bool {
    name == "migrate" && args.last().is_some_and(|arg| arg == "KEYS")
}

/// `PFMERGE key` is valid and writes its key; COMMAND GETKEYS finds none because there are no sources.
fn has_no_source(name: &str, args: &[String]) -> bool {
    name == "pfmerge" && args.len() == 2
}

/// Calls that Redis executes with other keys than COMMAND GETKEYS tells.
fn is_read_otherwise(name: &str, args: &[String]) -> bool {
    has_two_destinations(name, args) || has_no_source(name, args) || has_empty_list(name, args)
}

#[test]
fn keys_of_valid_calls_are_those_of_redis() {
    compare_valid_calls(&mut Server::redis());
}

#[test]
fn keys_of_valid_calls_are_those_of_valkey() {
    compare_valid_calls(&mut Server::valkey());
}

/// B15: keys and values that are called like options: our keys are what the argument specs call keys. (The published key
/// specs, and so COMMAND GETKEYS, mistake some of them for the options.)
#[test]
fn names_of_options_mislead_nobody() {
    let docs = Server::redis().ask(&["COMMAND", "DOCS"]);
    for (name, specs) in &documented(&docs) {
        let mut dice = Dice::for_command(name, 2);
        for _ in 0..SAMPLES {
            let sample = sample(name, specs, Names::Nasty, &mut dice);
            let request = Request::new(&sample.args);
            let Ok(call) = CommandTable::builtin().lookup(request.args()) else { continue };
            let ours = match call.keys() {
                Err(KeyError::TwoPlaces) if name == "migrate" => continue,
                Ok(keys) if name == "migrate" && sample.keys.is_empty() => {
                    assert_eq!(keys.single(), Some(3), "{:?}", sample.args);
                    continue;
                }
                Ok(keys) => keys.iter().collect::<Vec<_>>(),
                Err(error) => panic!("{:?}: {error:?}", sample.args),
            };
            match name.as_str() {
                "georadius" | "georadiusbymember" => {
                    let (first, last) = (sample.keys[0], sample.keys[sample.keys.len() - 1]);
                    assert!(ours == [first, last] || ours == [first] && first == last, "{:?}", sample.args);
                }
                _ => assert_eq!(ours, sample.keys, "{:?}", sample.args),
            }
        }
    }
}

fn assert_refused(server: &mut Server, args: &[String]) {
    let reply = server.ask(args);
    assert!(
        matches!(reply, Value::Error(_)),
        "{args:?} has other keys for us, but the server says {reply:?}"
    );
}

/// Calls with an argument dropped, repeated or replaced. Where we find a contradiction, or other keys than the server
/// does, the server answers the call itself with an error: so it doesn't matter which server is asked.
fn compare_damaged_calls(server: &mut Server) {
    const JUNK: &[&str] =
        &["", "0", "-1", "01", "+1", "7", "99999999999999999999", "9223372036854775807", "x"];
    let docs = server.ask(&["COMMAND", "DOCS"]);
    let mut contradictions = 0;
    for (name, specs) in &documented(&docs) {
        let mut dice = Dice::for_command(name, 1);
        for _ in 0..SAMPLES {
            let mut args = sample(name, specs, Names::Plain, &mut dice).args;
            let words = name.split('|').count();
            if args.len() > words {
                let at = words + dice.roll(args.len() - words);
                match dice.roll(3) {
                    0 => drop(args.remove(at)),
                    1 => args.insert(at, args[at].clone()),
                    _ => args[at] = JUNK[dice.roll(JUNK.len())].to_owned(),
                }
            }
            let request = Request::new(&args);
            let Ok(call) = CommandTable::builtin().lookup(request.args()) else { continue };
            let ours = match call.keys() {
                Ok(_) if is_read_otherwise(name, &args) => continue,
                Ok(keys) => keys.iter().map(|at| args[at].as_bytes().to_vec()).collect::<Vec<_>>(),
                Err(_) => {
                    contradictions += 1;
                    assert_refused(server, &args);
                    continue;
                }
            };
            match getkeys(server, &args) {
                Ok(theirs) if theirs == ours => {}
                Err(_) if ours.is_empty() => {}
                // Either reads what it can of a call that makes no sense.
                _ => assert_refused(server, &args),
            }
        }
    }
    assert!(contradictions > 100, "only {contradictions} calls contradict themselves");
}

#[test]
fn keys_of_damaged_calls_are_those_of_redis() {
    compare_damaged_calls(&mut Server::redis());
}

#[test]
fn keys_of_damaged_calls_are_those_of_valkey() {
    compare_damaged_calls(&mut Server::valkey());
}

/// What the exceptions above say, on the server itself.
#[test]
fn keys_are_those_that_redis_writes() {
    let server = &mut Server::redis();
    for (prepare, call, written) in [
        ("GEOADD a 1 1 m", "GEORADIUS a 1 1 1 KM STORE x STOREDIST y", "y"),
        ("GEOADD a 1 1 m", "GEORADIUS a 1 1 1 KM STOREDIST x COUNT 3 STORE y", "y"),
        ("GEOADD a 1 1 m", "GEORADIUS a 1 1 1 KM STORE storedist ASC", "storedist"),
        ("GEOADD a 1 1 m", "GEORADIUSBYMEMBER a m 1 KM STORE x STORE store", "store"),
        ("RPUSH a 1", "SORT a STORE x STORE y", "y"),
        ("RPUSH a 1", "SORT a BY STORE GET STORE STORE by", "by"),
        ("RPUSH a 1", "SORT a LIMIT 0 1 STORE get ALPHA", "get"),
        ("RPUSH a 1", "SORT a store limit desc", "limit"),
        ("SET b 1", "PFMERGE a", "a"),
    ] {
        server.ask(&["FLUSHALL"]);
        server.ask(&prepare.split(' ').collect::<Vec<_>>());
        let words = call.split(' ').collect::<Vec<_>>();
        let reply = server.ask(&words);
        assert!(!matches!(reply, Value::Error(_)), "{call}: {reply:?}");
        for key in ["x", "y", "store", "storedist", "by", "get", "limit"] {
            assert_eq!(server.ask(&["EXISTS", key]).int() == 1, key == written, "{key} after {call}");
        }
        let ours = keys_of(&Request::words(call)).expect("keys");
        assert_eq!(words[*ours.last().expect("a key")], written, "{call}");
    }
}

/// B15: keys are found by position, not by what they are called.
#[test]
fn words_of_options_can_be_keys_and_values() {
    for (call, keys) in [
        ("XREAD COUNT 1 STREAMS a b 0 0", vec![4, 5]),
        ("XREAD streams STREAMS 0", vec![2]),
        ("XREADGROUP GROUP streams block STREAMS a >", vec![5]),
        ("XREADGROUP NOACK COUNT 1 GROUP g streams streams a b > >", vec![8, 9]),
        // An option of a later version: what it means isn't known, but the streams are where they are.
        ("XREADGROUP GROUP g c CLAIM 10 STREAMS a >", vec![7]),
        ("EVAL return 2 a b c", vec![3, 4]),
        ("EVAL return 0 a b c", vec![]),
        ("FCALL f 0", vec![]),
        ("OBJECT ENCODING a", vec![2]),
        ("OBJECT HELP", vec![]),
        ("MEMORY USAGE a SAMPLES 3", vec![2]),
        ("XGROUP CREATE a g $", vec![2]),
        ("BITOP AND a b c", vec![2, 3, 4]),
        ("ZUNIONSTORE a 2 b c WEIGHTS 1 2", vec![1, 3, 4]),
        ("ZDIFF 2 a b WITHSCORES", vec![2, 3]),
        ("LMPOP 2 a b LEFT COUNT 2", vec![2, 3]),
        ("SINTERCARD 2 a b LIMIT 1", vec![2, 3]),
        ("GEOSEARCHSTORE a b FROMMEMBER m BYRADIUS 1 KM", vec![1, 2]),
        ("MSET a 1 b 2", vec![1, 3]),
        ("MSETEX 2 a 1 b 2 EX 5", vec![2, 4]),
        ("RENAME a b", vec![1, 2]),
        ("LCS a b IDX", vec![1, 2]),
        ("SORT_RO a BY x GET y", vec![1]),
        ("SPUBLISH a m", vec![]),
        ("TIME", vec![]),
        ("MIGRATE h 1 a 0 1", vec![3]),
        ("MIGRATE h 1  0 1 AUTH keys KEYS a b", vec![9, 10]),
        ("MIGRATE h 1  0 1 AUTH2 keys keys COPY KEYS a", vec![11]),
    ] {
        assert_eq!(keys_of(&Request::words(call)), Ok(keys), "{call}");
    }
}

/// B18: a key may be empty, and contain anything.
#[test]
fn empty_and_binary_keys_are_keys() {
    for key in [&b""[..], b"\0", b"\xff\r\n", b"STORE\0"] {
        assert_eq!(keys_of(&Request::new(&[b"GET", key])), Ok(vec![1]));
        assert_eq!(keys_of(&Request::new(&[b"DEL", key, b"", key])), Ok(vec![1, 2, 3]));
        assert_eq!(keys_of(&Request::new(&[b"SORT", key, b"STORE\0x", key])), Ok(vec![1, 3]));
    }
}

#[test]
fn contradictions_are_told() {
    for (call, error) in [
        ("EVAL return x a", KeyError::NotANumber),
        ("EVAL return -1 a", KeyError::NotANumber),
        ("EVAL return 01 a", KeyError::NotANumber),
        ("EVAL return 99999999999999999999 a", KeyError::NotANumber),
        ("EVAL return 9223372036854775807 a", KeyError::Missing),
        ("EVAL return 2 a", KeyError::Missing),
        ("MSETEX 3 a 1 b", KeyError::Missing),
        ("ZUNION 0 a", KeyError::NoKey),
        ("XREAD STREAMS a b 0", KeyError::Unpaired),
        ("XREAD COUNT 1 a", KeyError::NoKeyword),
        ("XREAD COUNT 1 STREAMS", KeyError::Missing),
        ("MSET a 1 b", KeyError::Unpaired),
        ("MIGRATE h 1 a 0 1 KEYS b", KeyError::TwoPlaces),
    ] {
        assert_eq!(keys_of(&Request::words(call)), Err(error), "{call}");
    }
}

/// B11: whether XREAD blocks is decided by its arguments, and not by its name.
#[test]
fn options_tell_what_is_pinned_and_what_is_refused() {
    let pinned = |at| Handling::Pinned(Pin::Block(at));
    let elsewhere = Handling::Unsupported(Why::Databases);
    for (request, handling) in [
        ("XREAD STREAMS a 0", Handling::Keyed),
        ("XREAD STREAMS block 0", Handling::Keyed),
        ("XREADGROUP GROUP block block STREAMS a >", Handling::Keyed),
        ("XREAD BLOCK 0 STREAMS a $", pinned(TimeoutAt::Option)),
        ("XREAD COUNT 1 block 10 STREAMS a $", pinned(TimeoutAt::Option)),
        ("XREADGROUP GROUP g c NOACK Block 0 STREAMS a >", pinned(TimeoutAt::Option)),
        ("BLPOP a 0", pinned(TimeoutAt::Last)),
        ("COPY db db", Handling::Keyed),
        ("COPY a b REPLACE", Handling::Keyed),
        ("COPY a b REPLACE db 1", elsewhere),
    ] {
        assert_eq!(call(&Request::words(request), |call| call.handling()), handling, "{request}");
    }
}

/// The pool's timeout must not cut what a client asks to wait for.
#[test]
fn how_long_a_call_may_wait_is_in_its_arguments() {
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
    for (request, expected) in [
        ("BLPOP a 0", None),
        ("BLPOP a b 1.5", seconds(1.5)),
        ("BRPOPLPUSH a b 3", seconds(3.0)),
        ("BLMOVE a b LEFT LEFT 0.25", seconds(0.25)),
        ("BLMPOP 2 1 a LEFT", seconds(2.0)),
        ("BZMPOP 0.0 1 a MIN", None),
        ("BZPOPMIN a 7", seconds(7.0)),
        ("XREAD COUNT 1 BLOCK 1500 STREAMS a $", seconds(1.5)),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS a >", None),
        // Errors, which a server answers at once.
        ("BLPOP a -1", seconds(0.0)),
        ("BLPOP a x", seconds(0.0)),
        ("BLPOP a nan", seconds(0.0)),
        ("XREAD BLOCK x STREAMS a $", seconds(0.0)),
    ] {
        let wait = call(&Request::words(request), |call| match call.handling() {
            Handling::Pinned(Pin::Block(at)) => call.wait(at),
            other => panic!("{request}: {other:?}"),
        });
        assert_eq!(wait, expected, "{request}");
    }
    let century = call(&Request::words("BLPOP a 1e300"), |call| call.wait(TimeoutAt::Last));
    assert!(century.is_some_and(|wait| std::time::Instant::now().checked_add(wait).is_some()));
}

/// What options and numbers of keys may look like.
const NUMBERS: &[&str] =
    &["0", "1", "2", "3", "-1", "01", "18446744073709551615", "9223372036854775807", "", "a", "\0", ">"];

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => prop::sample::select(OPTIONS).prop_map(|word| word.as_bytes().to_vec()),
        2 => prop::sample::select(NUMBERS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    /// Whatever the arguments: no panic, and only indexes of arguments, each once, in order.
    #[test]
    fn keys_lie_inside_the_request(rest in prop::collection::vec(argument(), 0..14)) {
        for (_, row) in CommandTable::builtin().rows() {
            let name = row.name.split('|').map(|word| word.as_bytes().to_vec());
            let args: Vec<Vec<u8>> = name.chain(rest.iter().cloned()).collect();
            let request = Request::new(&args);
            let Ok(call) = CommandTable::builtin().lookup(request.args()) else { continue };
            call.handling();
            let Ok(keys) = call.keys() else { continue };
            let indexes: Vec<usize> = keys.iter().collect();
            prop_assert_eq!(indexes.len(), keys.len());
            prop_assert_eq!(indexes.first().copied(), keys.first());
            prop_assert_eq!(keys.is_empty(), indexes.is_empty());
            prop_assert!(indexes.windows(2).all(|pair| pair[0] < pair[1]), "{:?} of {:?}", indexes, args);
            prop_assert!(indexes.iter().all(|at| (1..args.len()).contains(at)), "{:?} of {:?}", indexes, args);
        }
    }
}
