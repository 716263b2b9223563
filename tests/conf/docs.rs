//! Pages of docs/ that are what tables in the sources say. `make docs` writes them anew.

use std::path::Path;

use shardwise::{config, control, stats};

#[test]
fn the_reference_of_the_configuration_is_current() {
    assert_current("docs/configuration.md", &config::reference());
}

#[test]
fn the_list_of_metrics_is_current() {
    assert_current("docs/metrics.md", &stats::metrics_reference());
}

#[test]
fn the_list_of_admin_commands_is_current() {
    assert_current("docs/admin.md", &control::admin_reference());
}

fn assert_current(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    assert!(!text.contains("{{"), "{page}: a table is missing");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("it is in docs/")).expect("docs/ can be made");
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{page}: {error}"));
    }
    let written = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    assert!(written == text, "{page} is out of date: UPDATE_DOCS=1 cargo test --test conf");
}
