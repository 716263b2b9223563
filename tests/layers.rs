//! The architecture as a test: which module may import which, which modules are pure, and a few more rules that
//! a reader of the code may rely on. The table below *is* the layer diagram of docs/ARCHITECTURE.md.
//!
//! Sources are read as tokens, not as syntax trees: so paths inside macros' arguments (`assert!(crate::…)`), which
//! a syntax tree doesn't show, count like all others.
//!
//! Unit tests (`#[cfg(test)]`) may import any module at or below their own layer, also one that the code itself may
//! not, and need not be pure. Items pulled in through a module below (`crate::dispatch::…` re-exporting something of
//! `backend`) are that module's own affair.

mod layers {
    pub mod paths;
    mod selftest;
    pub mod sources;
}

use std::collections::HashSet;
use std::path::Path;

use layers::paths::{Mention, Scan};
use layers::sources::{Source, source, sources};

/// One module of the first level under src/.
struct Layer {
    name: &'static str,
    /// Imports go to lower levels only.
    level: u8,
    imports: &'static [&'static str],
    pure: Pure,
}

/// Which files of a module may not touch a socket, a clock, a thread or the file system.
enum Pure {
    /// All.
    Yes,
    /// All, but files may be read.
    ReadsFiles,
    /// These, as paths below src/.
    Files(&'static [&'static str]),
}

#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    Layer { name: "resp",     level: 0, pure: Pure::Yes, imports: &[] },
    Layer { name: "hash",     level: 0, pure: Pure::Yes, imports: &[] },
    Layer { name: "units",    level: 0, pure: Pure::Yes, imports: &[] },
    Layer { name: "stats",    level: 0, pure: Pure::Yes, imports: &[] },
    Layer { name: "command",  level: 1, pure: Pure::Yes, imports: &["resp"] },
    Layer { name: "net",      level: 1, pure: Pure::Files(&[]), imports: &["units"] },
    // The load generator: beside the path of a request, on what it shares with it, so that it measures what it speaks.
    Layer { name: "load",     level: 2, pure: Pure::Files(LOAD_PURE), imports: &["resp", "net", "units"] },
    Layer { name: "config",   level: 2, pure: Pure::ReadsFiles, imports: &["units", "hash", "command"] },
    Layer { name: "topology", level: 3, pure: Pure::Yes, imports: &["hash", "units", "command", "config"] },
    Layer { name: "exchange", level: 3, pure: Pure::Yes, imports: &["resp", "units"] },
    Layer { name: "router",   level: 4, pure: Pure::Yes, imports: &["command", "topology", "config", "resp"] },
    Layer { name: "backend",  level: 5, pure: Pure::Files(&[]),
            imports: &["exchange", "resp", "net", "config", "topology", "stats", "units"] },
    Layer { name: "dispatch", level: 6, pure: Pure::Files(&[]),
            imports: &["router", "backend", "exchange", "topology", "command", "config", "resp", "stats"] },
    Layer { name: "client",   level: 7, pure: Pure::Files(&[]),
            imports: &["dispatch", "backend", "router", "exchange", "topology", "command", "resp", "net", "config",
                       "stats", "units"] },
    Layer { name: "worker",   level: 8, pure: Pure::Files(&[]),
            imports: &["client", "dispatch", "backend", "exchange", "topology", "command", "config", "stats", "net",
                       "units"] },
    Layer { name: "control",  level: 9, pure: Pure::Files(&[]),
            imports: &["worker", "backend", "router", "command", "exchange", "topology", "config", "stats", "net",
                       "resp", "units"] },
    Layer { name: "app",      level: 10, pure: Pure::Files(&[]),
            imports: &["resp", "hash", "units", "stats", "command", "net", "config", "topology", "exchange", "router",
                       "backend", "dispatch", "client", "worker", "control", "load"] },
];

/// What the load generator decides without a socket: what is sent, what a reply must be, how results are shown.
const LOAD_PURE: &[&str] = &[
    "load/batch.rs",
    "load/random.rs",
    "load/script.rs",
    "load/tally.rs",
    "load/template.rs",
    "load/tests_of.rs",
    "load/verify.rs",
    "load/workload.rs",
    "load/report/csv.rs",
    "load/report/histogram.rs",
    "load/report/html.rs",
    "load/report/json.rs",
    "load/report/mod.rs",
    "load/report/svg.rs",
    "load/report/table.rs",
];

/// What a pure file must not name: the beginning of a path, and what makes it impure.
const IMPURE: &[(&[&str], &str)] = &[
    (&["tokio"], "the runtime"),
    (&["socket2"], "a socket"),
    (&["std", "net"], "a socket"),
    (&["std", "os"], "the operating system"),
    (&["std", "thread"], "a thread"),
    (&["std", "process"], "a process"),
    (&["rlimit"], "the process"),
    (&["daemonize"], "the process"),
];
/// Plain values among what std::net has.
const PURE_NET: &[&str] = &["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "AddrParseError"];
/// Reading the clock, however it was imported.
const CLOCKS: &[[&str; 2]] = &[["Instant", "now"], ["SystemTime", "now"]];

/// Asking whether the thread unwinds touches nothing.
const HARMLESS: &[&str] = &["std", "thread", "panicking"];

/// Longest file allowed, and the length from which the test says a word, in lines.
const MOST_LINES: usize = 800;
const MANY_LINES: usize = 500;

#[test]
fn imports_go_down_and_only_where_the_table_says() {
    assert_none(Rule::Layer);
}

#[test]
fn pure_modules_touch_no_socket_clock_thread_or_file() {
    assert_none(Rule::Purity);
}

#[test]
fn only_config_raw_names_serde_yaml() {
    assert_none(Rule::Yaml);
}

#[test]
fn only_the_app_prints() {
    assert_none(Rule::Print);
}

#[test]
fn unsafe_code_is_forbidden_in_both_crates() {
    for root in ["lib.rs", "main.rs"] {
        let text: String = source(Path::new(root)).text.split_whitespace().collect();
        assert!(text.contains("#![forbid(unsafe_code)]"), "src/{root} must forbid unsafe code");
    }
}

#[test]
fn files_stay_short() {
    let mut too_long = Vec::new();
    for file in sources() {
        let lines = file.text.lines().count();
        if lines > MANY_LINES {
            println!("src/{} has {lines} lines: is it still one thing?", file.path.display());
        }
        if lines > MOST_LINES {
            too_long.push(format!("src/{}: {lines} lines, {MOST_LINES} at most", file.path.display()));
        }
    }
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
}

#[test]
fn the_table_descends_and_names_every_module() {
    for layer in LAYERS {
        for import in layer.imports {
            let below = row(import).unwrap_or_else(|| panic!("{}: no module {import}", layer.name));
            assert!(
                below.level < layer.level,
                "{} may not import {import}, which is not below it",
                layer.name
            );
        }
    }
    let found: HashSet<String> = sources().iter().filter_map(|file| file.module.first().cloned()).collect();
    let known: HashSet<String> = LAYERS.iter().map(|layer| layer.name.to_owned()).collect();
    assert_eq!(found, known, "left: modules under src/, right: rows of the table");
}

// === Rules ===

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Layer,
    Purity,
    Yaml,
    Print,
}

#[derive(Debug)]
struct Violation {
    rule: Rule,
    line: usize,
    text: String,
}

#[track_caller]
fn assert_none(rule: Rule) {
    let files = sources();
    let test_modules: HashSet<Vec<String>> =
        files.iter().flat_map(|file| Scan::of(file, false).test_modules).collect();
    let mut lines = Vec::new();
    for file in &files {
        let in_tests = (1..=file.module.len()).any(|n| test_modules.contains(&file.module[..n]));
        let found = check(file, in_tests).into_iter().filter(|violation| violation.rule == rule);
        lines.extend(found.map(|v| format!("src/{}:{}: {}", file.path.display(), v.line, v.text)));
    }
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

/// All that is wrong in one file. `in_tests`: the whole file is compiled for tests only.
fn check(file: &Source, in_tests: bool) -> Vec<Violation> {
    let scan = Scan::of(file, in_tests);
    let layer =
        file.module.first().map(|name| row(name).unwrap_or_else(|| panic!("no row for module {name}")));
    let mut found = Vec::new();
    for mention in &scan.mentions {
        let mut report = |rule, text: String| {
            let path = mention.path.join("::");
            found.push(Violation { rule, line: mention.line, text: format!("{path}: {text}") });
        };
        if let Some(layer) = layer {
            if let Some(text) = layer_fault(layer, mention) {
                report(Rule::Layer, text);
            }
            if let Some(text) = impurity(layer, file, mention) {
                report(Rule::Purity, text);
            }
        }
        if mention.path.iter().any(|name| name == "serde_yaml") && file.path != Path::new("config/raw.rs") {
            report(Rule::Yaml, "only src/config/raw.rs may know the YAML crate".into());
        }
        let prints = ["print!", "println!", "eprint!", "eprintln!"].contains(&mention.path[0].as_str());
        if prints && !mention.in_tests && layer.is_some_and(|layer| layer.name != "app") {
            report(Rule::Print, "only the app prints; elsewhere it is tracing's".into());
        }
    }
    found
}

fn row(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

fn layer_fault(layer: &Layer, mention: &Mention) -> Option<String> {
    let target = match mention.inside_crate()?.first() {
        None => return Some("the crate's root under another name hides what is imported".into()),
        Some(name) if name == "*" => return Some("everything at once hides what is imported".into()),
        Some(name) => name.clone(),
    };
    let Some(below) = row(&target) else {
        return Some(format!("{target} is no module of the table"));
    };
    if target == layer.name || layer.imports.contains(&below.name) {
        None
    } else if mention.in_tests {
        let up = below.level > layer.level;
        up.then(|| {
            format!(
                "tests of {} (layer {}) may not import from layer {}",
                layer.name, layer.level, below.level
            )
        })
    } else {
        Some(format!("{} may not import {target}", layer.name))
    }
}

fn impurity(layer: &Layer, file: &Source, mention: &Mention) -> Option<String> {
    let may_read_files = match layer.pure {
        Pure::Yes => false,
        Pure::ReadsFiles => true,
        Pure::Files(files) if files.iter().any(|pure| file.path == Path::new(pure)) => false,
        Pure::Files(_) => return None,
    };
    if mention.in_tests {
        return None;
    }
    let path: Vec<&str> = mention.path.iter().map(String::as_str).collect();
    if path.starts_with(&["std", "fs"]) || path.starts_with(&["std", "os", "unix", "fs"]) {
        return (!may_read_files).then(|| "a pure module touches no files".into());
    }
    if CLOCKS.iter().any(|clock| path.windows(2).any(|pair| pair == clock)) || path == [".elapsed"] {
        return Some("a pure module is told the time".into());
    }
    let plain_address =
        path.starts_with(&["std", "net"]) && path.get(2).is_some_and(|name| PURE_NET.contains(name));
    let plain_bytes = path.starts_with(&["std", "os", "unix", "ffi"]);
    if plain_address || plain_bytes {
        return None;
    }
    if path == HARMLESS {
        return None;
    }
    let (_, what) = IMPURE.iter().find(|(beginning, _)| path.starts_with(beginning))?;
    Some(format!("a pure module does not touch {what}"))
}
