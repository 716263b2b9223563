//! The fuzz targets' bodies as plain tests: over the kept inputs in `tests/fuzz/corpus`, all their beginnings, and variations
//! of them that are the same in every run. `make fuzz` looks for new ones.

mod fuzz;
mod support;

mod fuzz_bodies {
    mod oracle;
}

use std::path::Path;

use support::Random;

/// Variations of each input.
const VARIATIONS: u64 = 300;

#[test]
fn requests() {
    try_all("requests", fuzz::resp::requests);
}

#[test]
fn replies() {
    try_all("replies", fuzz::resp::replies);
}

#[test]
fn config() {
    try_all("config", fuzz::config::config);
    for file in files(Path::new("conf")) {
        variations(&file, fuzz::config::config);
    }
}

#[test]
fn calls() {
    try_all("calls", fuzz::calls::calls);
}

#[test]
fn folds() {
    try_all("folds", fuzz::calls::folds);
}

fn try_all(target: &str, body: fn(&[u8])) {
    let corpus = files(&Path::new("tests/fuzz/corpus").join(target));
    assert!(!corpus.is_empty(), "no inputs for {target}");
    for input in corpus {
        (0..=input.len().min(2_000)).for_each(|len| body(&input[..len]));
        body(&input);
        variations(&input, body);
    }
}

/// With bytes changed, doubled, or taken away.
fn variations(input: &[u8], body: fn(&[u8])) {
    if input.is_empty() {
        return;
    }
    for seed in 0..VARIATIONS {
        let mut random = Random::seeded(seed);
        let mut varied = input.to_vec();
        for _ in 0..1 + random.below(4) {
            if varied.is_empty() {
                break;
            }
            let at = random.below(varied.len());
            match random.below(4) {
                0 => varied[at] = random.bytes(1)[0],
                1 => drop(varied.remove(at)),
                2 => varied.insert(at, *random.pick(b"*$+-:\r\n0123456789 \"'{}[]#&\0")),
                _ => {
                    let end = (at + random.below(40)).min(varied.len());
                    let piece = varied[at..end].to_vec();
                    varied.splice(at..at, piece);
                }
            }
        }
        body(&varied);
    }
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is in the repository")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.is_file())
        .map(|path| std::fs::read(path).expect("a file in the repository"))
        .collect()
}
