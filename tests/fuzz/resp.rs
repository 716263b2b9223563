//! Bodies of two fuzz targets: the scanners on any bytes, in any pieces, beside the decoder of the crate redis-protocol.
//! Where both find a message it is the same message: a request that two readers delimit differently is a hole.
//!
//! redis-protocol recurses once a level and accepts any two bytes behind a bulk, so it is asked about bounded nesting only,
//! and what one of them refuses is not compared.

use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use shardwise::command::CommandTable;
use shardwise::resp::{ArgSpan, Args, Limits, ReplyScanner, RequestScanner, Scanned, inline_to_array};

/// Levels that redis-protocol is trusted with.
const MOST_NESTED: usize = 100;

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Found<T> {
    Nothing,
    Message(T),
    Refused,
}

/// `input` as the requests of a client: its first byte says into how large pieces the rest is cut.
pub fn requests(input: &[u8]) {
    let Some((&size, bytes)) = input.split_first() else { return };
    let piece = usize::from(size).max(1);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let limits = Limits { authenticated: size.is_multiple_of(2), ..Limits::default() };
        let mut spans = Vec::new();
        let whole = RequestScanner::default().scan(rest, &mut spans, &limits);
        let mut pieces_spans: Vec<ArgSpan> = Vec::new();
        let mut scanner = RequestScanner::default();
        let mut end = 0;
        let in_pieces = loop {
            end = (end + piece).min(rest.len());
            match scanner.scan(&rest[..end], &mut pieces_spans, &limits) {
                Ok(Scanned::Incomplete) if end < rest.len() => {}
                found => break found,
            }
        };
        assert_eq!(whole, in_pieces, "pieces of {piece}: {}", rest.escape_ascii());
        match whole {
            Ok(Scanned::Array(len)) => {
                assert!(len > 0 && len <= rest.len());
                let args = Args::new(&rest[..len], &spans);
                let in_pieces = Args::new(&rest[..len], &pieces_spans);
                assert!(args.iter_from(0).eq(in_pieces.iter_from(0)));
                look_up(args);
                requests_agree(rest);
                at += len;
            }
            Ok(Scanned::Inline { line, len }) => {
                assert!(line < len && len <= rest.len());
                if let Ok(array) = inline_to_array(&rest[..line]) {
                    let mut spans = Vec::new();
                    let found = RequestScanner::default().scan(&array, &mut spans, &Limits::default());
                    assert!(matches!(found, Ok(Scanned::Array(n) | Scanned::Nothing(n)) if n == array.len()));
                }
                at += len;
            }
            Ok(Scanned::Nothing(len)) => {
                assert!(len > 0 && len <= rest.len());
                at += len;
            }
            Ok(Scanned::Incomplete) => return,
            Err(error) => return assert!(!error.reply().as_str().is_empty()),
        }
    }
}

/// `input` as the replies of a server, cut in the same way.
pub fn replies(input: &[u8]) {
    let Some((&size, bytes)) = input.split_first() else { return };
    let piece = usize::from(size).max(1);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let whole = ReplyScanner::default().scan(rest);
        let mut scanner = ReplyScanner::default();
        let mut end = 0;
        let in_pieces = loop {
            end = (end + piece).min(rest.len());
            match scanner.scan(&rest[..end]) {
                Ok(None) if end < rest.len() => {
                    // What it says is lacking must not be there yet.
                    let lacking = scanner.missing(end);
                    assert!(
                        whole.is_ok_and(|whole| whole.is_none_or(|len| end + lacking <= len))
                            || whole.is_err()
                    );
                }
                found => break found,
            }
        };
        assert_eq!(whole, in_pieces, "pieces of {piece}: {}", rest.escape_ascii());
        replies_agree(rest);
        let Ok(Some(len)) = whole else { return };
        at += len;
    }
}

/// Whatever a client sends, its keys are arguments of its own.
fn look_up(args: Args<'_>) {
    match CommandTable::builtin().lookup(args) {
        Ok(call) => {
            if let Ok(keys) = call.keys() {
                assert!(keys.iter().all(|key| key > 0 && key < args.len()));
            }
        }
        Err(error) => assert!(!error.reply().as_str().is_empty()),
    }
}

/// The start of `input` as the replies of a server. Whether both found a whole one.
pub fn replies_agree(input: &[u8]) -> bool {
    let ours = match ReplyScanner::default().scan(input) {
        Ok(None) => Found::Nothing,
        Ok(Some(len)) => Found::Message(len),
        Err(_) => Found::Refused,
    };
    let theirs = match theirs(input) {
        Found::Message((_, len)) => Found::Message(len),
        Found::Nothing => Found::Nothing,
        Found::Refused => Found::Refused,
    };
    if ours == Found::Refused || theirs == Found::Refused {
        return false;
    }
    assert_eq!(ours, theirs, "{}", input.escape_ascii());
    ours != Found::Nothing
}

/// The start of `input` as the requests of a client. Whether both found a whole one.
pub fn requests_agree(input: &[u8]) -> bool {
    let mut spans = Vec::new();
    let ours = match RequestScanner::default().scan(input, &mut spans, &Limits::default()) {
        Ok(Scanned::Incomplete) => Found::Nothing,
        Ok(Scanned::Array(len)) => Found::Message((arguments(&input[..len], &spans), len)),
        // What asks for nothing and inline commands are no RESP.
        Ok(Scanned::Nothing(_) | Scanned::Inline { .. }) | Err(_) => Found::Refused,
    };
    let theirs = match theirs(input) {
        Found::Message((OwnedFrame::Array(frames), len)) => match frames.into_iter().map(bulk).collect() {
            Some(arguments) => Found::Message((arguments, len)),
            None => Found::Refused,
        },
        Found::Nothing if input.first() == Some(&b'*') => Found::Nothing,
        _ => Found::Refused,
    };
    if ours == Found::Refused || theirs == Found::Refused {
        return false;
    }
    assert_eq!(ours, theirs, "{}", input.escape_ascii());
    ours != Found::Nothing
}

fn theirs(input: &[u8]) -> Found<(OwnedFrame, usize)> {
    if input.iter().filter(|byte| **byte == b'*').count() > MOST_NESTED {
        return Found::Refused;
    }
    match decode(input) {
        Ok(None) => Found::Nothing,
        Ok(Some(found)) => Found::Message(found),
        Err(_) => Found::Refused,
    }
}

fn arguments(raw: &[u8], spans: &[ArgSpan]) -> Vec<Vec<u8>> {
    Args::new(raw, spans).iter_from(0).map(<[u8]>::to_vec).collect()
}

fn bulk(frame: OwnedFrame) -> Option<Vec<u8>> {
    match frame {
        OwnedFrame::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}
