//! Hashes and rings against what twemproxy itself computes (see `tests/golden/README.md`).

use shardwise::hash::{Algorithm, CharSign};

#[test]
fn every_hash_of_every_golden_key() {
    let mut lines = include_str!("golden/hashes.tsv").lines();
    let header = lines.next().expect("the file has a header").split('\t').skip(1);
    let columns: Vec<Algorithm> =
        header.map(|name| Algorithm::from_name(name).expect("a column per algorithm")).collect();
    assert_eq!(columns.len(), 12, "all of twemproxy's");
    let mut keys = 0;
    for line in lines {
        let mut fields = line.split('\t');
        let key = unhex(fields.next().expect("a key"));
        for &algorithm in &columns {
            let expected: u32 = fields.next().expect("a value").parse().expect("a number");
            assert_eq!(algorithm.hash(CharSign::Signed, &key), expected, "{algorithm} of {}", key.escape_ascii());
        }
        keys += 1;
    }
    assert_eq!(keys, 26);
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}
