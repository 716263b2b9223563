//! The files under src/, and the module that each one is.

use std::path::{Path, PathBuf};

/// One file under src/.
pub struct Source {
    /// Below src/.
    pub path: PathBuf,
    /// Its module path; empty for lib.rs and main.rs.
    pub module: Vec<String>,
    pub text: String,
}

pub fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(src().join(&folder)).expect("a folder under src/") {
            let entry = entry.expect("an entry of a folder under src/");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(source(&path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 10, "the sources are where they are expected");
    found
}

pub fn source(path: &Path) -> Source {
    let text = std::fs::read_to_string(src().join(path)).expect("a file under src/");
    Source { path: path.to_owned(), module: module_of(path), text }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

pub fn module_of(path: &Path) -> Vec<String> {
    let mut module: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|name| name == "mod") || module == ["lib"] || module == ["main"] {
        module.pop();
    }
    module
}
