//! The answers to what is no call, or no call for shardwise: Redis's own words where it has any.

use shardwise::command::{CommandTable, Handling};
use shardwise::resp::ErrorReply;

use super::live::{Server, Value};
use super::request::Request;

/// Requests that a server refuses before it looks at their options.
fn refused() -> Vec<Vec<Vec<u8>>> {
    let long = |byte: u8, len: usize| vec![byte; len];
    let words = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let mut requests: Vec<_> = [
        "FOO",
        "foo a",
        "foo a b c d e f g",
        "getx",
        "ge",
        "foo ",
        "config|get x",
        "CONFIG",
        "CONFIG get",
        "config FOO",
        "Config foo bar",
        "object",
        "OBJECT ENCODING",
        "object  a",
        "GET",
        "get a b",
        "xgroup create a",
        "command getkeysx",
    ]
    .iter()
    .map(|text| words(text))
    .collect();
    requests.extend([
        vec![b"".to_vec()],
        vec![b"".to_vec(), b"".to_vec()],
        vec![long(b'f', 127)],
        vec![long(b'f', 129), long(b'x', 200), long(b'y', 5)],
        vec![b"foo".to_vec(), long(b'x', 100), long(b'y', 100), long(b'z', 1)],
        vec![b"foo".to_vec(), long(b'x', 125), long(b'y', 5)],
        vec![b"foo".to_vec(), long(b'x', 124), long(b'y', 5)],
        vec![b"fo\r\no".to_vec(), b"a\r\n-ERR b".to_vec()],
        vec![b"fo\0o".to_vec(), b"a\0b".to_vec(), b"c".to_vec()],
        vec![b"get\0".to_vec(), b"a".to_vec()],
        vec![b"Config".to_vec(), long(b'f', 200)],
        vec![b"config".to_vec(), b"a\r\nb\0c".to_vec()],
        vec!["gr\u{fc}n".as_bytes().to_vec(), "\u{1f980}".as_bytes().to_vec()],
    ]);
    requests
}

fn refusal(request: &Request) -> ErrorReply {
    CommandTable::builtin().lookup(request.args()).expect_err("no call").reply()
}

#[test]
fn unknown_commands_and_wrong_arity_are_answered_in_the_words_of_redis() {
    for mut server in [Server::redis(), Server::valkey()] {
        for args in refused() {
            let ours = Value::Error(refusal(&Request::new(&args)).as_str().as_bytes().to_vec());
            assert_eq!(server.ask(&args), ours, "{args:?}");
        }
    }
}

/// Redis repeats bytes that are no UTF-8 as they came; error replies of shardwise are text.
#[test]
fn bytes_that_are_no_text_are_replaced() {
    let reply = refusal(&Request::new(&[&b"f\xffo"[..], b"\xfe"]));
    assert_eq!(reply.as_str(), "ERR unknown command 'f\u{fffd}o', with args beginning with: '\u{fffd}' ");
}

#[test]
fn unsupported_commands_are_unknown_and_say_what_is_missing() {
    for (request, answer) in [
        (
            "MONITOR",
            "ERR unknown command 'MONITOR', shardwise does not support the administration of servers",
        ),
        ("replicaof a 1", "ERR unknown command 'replicaof', shardwise does not support replication commands"),
        (
            "client KILL 1.2.3.4:5",
            "ERR unknown command 'client KILL', shardwise does not support the administration of servers",
        ),
    ] {
        let request = Request::words(request);
        let call = CommandTable::builtin().lookup(request.args()).expect("a call");
        let Handling::Unsupported(why) = call.handling() else { panic!("{answer}") };
        assert_eq!(call.refusal(why).as_str(), answer);
    }
}

#[test]
fn the_refusal_of_ping_names_setting_and_pool() {
    let reply = ErrorReply::ping_rejected("alpha\r\n");
    assert!(
        reply.as_str().starts_with("ERR unknown command 'PING', shardwise does not support"),
        "{reply:?}"
    );
    assert!(reply.as_str().ends_with("'ping: reply' in pool alpha  "), "{reply:?}");
}
