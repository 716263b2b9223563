//! Bytes that are RESP, or nearly, drawn by proptest: the scanners beside redis-protocol.

use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::encode::extend_encode_borrowed;
use redis_protocol::resp2::types::BorrowedFrame;
use shardwise::resp::ReplyScanner;

use crate::fuzz::resp::{replies_agree, requests_agree};

/// Bytes that are RESP now and then: pieces of it, whole or damaged, in any order.
fn almost_resp() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (0..4usize).prop_map(|n| format!("*{n}\r\n").into_bytes()),
        4 => vec(any::<u8>(), 0..6).prop_map(|bytes| bulk_of(&bytes)),
        1 => any::<i64>().prop_map(|n| format!(":{n}\r\n").into_bytes()),
        1 => "[+-][a-z ]{0,4}\r\n".prop_map(String::into_bytes),
        1 => prop_oneof![Just("$-1\r\n"), Just("*-1\r\n"), Just("\r\n")].prop_map(|text| text.as_bytes().to_vec()),
        1 => "[*$][-0-9]{0,3}\r?\n?".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..3),
    ];
    (vec(piece, 0..12), any::<prop::sample::Index>(), any::<bool>()).prop_map(|(pieces, cut, whole)| {
        let mut input = pieces.concat();
        if !whole {
            input.truncate(cut.index(input.len() + 1));
        }
        input
    })
}

fn bulk_of(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole reply of any shape, at most `depth` levels deep.
fn reply(depth: u32) -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        vec(any::<u8>(), 0..20).prop_map(|bytes| bulk_of(&bytes)),
        any::<i64>().prop_map(|n| format!(":{n}\r\n").into_bytes()),
        "[+-][ -~]{0,20}\r\n".prop_map(String::into_bytes),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
    ];
    leaf.prop_recursive(depth, 64, 4, |inner| {
        vec(inner, 0..4).prop_map(|items| {
            let mut array = format!("*{}\r\n", items.len()).into_bytes();
            array.extend(items.concat());
            array
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_as_replies(input in almost_resp()) {
        replies_agree(&input);
    }

    #[test]
    fn any_bytes_as_requests(input in almost_resp()) {
        requests_agree(&input);
    }

    #[test]
    fn whole_replies_are_found_by_both(first in reply(8), behind in almost_resp(), cut in any::<prop::sample::Index>()) {
        let input = [first.as_slice(), &behind].concat();
        prop_assert!(replies_agree(&input));
        prop_assert_eq!(ReplyScanner::default().scan(&input), Ok(Some(first.len())));
        prop_assert!(!replies_agree(&first[..cut.index(first.len())]), "a part is no reply");
    }

    #[test]
    fn requests_of_their_encoder_are_found_by_both(args in vec(vec(any::<u8>(), 0..40), 1..10), behind in almost_resp()) {
        let frames: Vec<_> = args.iter().map(|arg| BorrowedFrame::BulkString(arg)).collect();
        let mut encoded = bytes::BytesMut::new();
        extend_encode_borrowed(&mut encoded, &BorrowedFrame::Array(&frames), false).unwrap();
        let mut ours = Vec::new();
        shardwise::resp::encode::request(&mut ours, args.iter().map(Vec::as_slice));
        prop_assert_eq!(&encoded[..], &ours[..]);
        prop_assert!(requests_agree(&[&encoded[..], &behind].concat()));
    }
}
