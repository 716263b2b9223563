//! docs/configuration.md is what the tables of keys say. `UPDATE_DOCS=1 cargo test --test conf` writes it anew.

use std::path::Path;

use shardwise::config;

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let reference = config::reference();
    assert!(!reference.contains("{{"), "a table is missing");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("it is in docs/")).expect("docs/ can be made");
        std::fs::write(&path, &reference).expect("docs/configuration.md can be written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/configuration.md is there");
    assert!(
        written == reference,
        "docs/configuration.md is out of date: UPDATE_DOCS=1 cargo test --test conf"
    );
}
