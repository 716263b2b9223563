//! Refused files and what is said about them, word for word: tests/golden/config/NAME.yml and NAME.txt.
//!
//! `UPDATE_GOLDEN=1 cargo test --test conf` writes the texts anew; read the difference before it is committed.

use std::path::Path;

use shardwise::config::Config;

#[test]
fn every_fault_is_named_with_its_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("the golden files are there") {
        let path = entry.expect("the golden files can be listed").path();
        if path.extension().is_none_or(|ending| ending != "yml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a golden file can be read");
        let name = Path::new(path.file_name().expect("it has just been listed"));
        let told = match Config::parse(&text, name, |_| None) {
            Ok(config) => panic!("{} is accepted: {config:?}", path.display()),
            Err(errors) => format!("{errors}\n"),
        };
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&expected, &told).expect("a golden text can be written");
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(told, expected, "{}", path.display());
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} golden files");
}
