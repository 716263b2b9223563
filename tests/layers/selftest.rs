//! The test's own tests: what a rule can't see, it can't forbid.

use std::path::PathBuf;

use super::sources::{Source, module_of};
use crate::{Rule, check};

fn faults(path: &str, text: &str) -> Vec<(Rule, usize)> {
    let path = PathBuf::from(path);
    let file = Source { module: module_of(&path), path, text: text.to_owned() };
    check(&file, false).iter().map(|violation| (violation.rule, violation.line)).collect()
}

#[test]
fn an_upward_import_is_seen_in_every_form() {
    let forms = [
        "use crate::client::ClientConn;",
        "use crate::{resp::Args, client::{self, ClientConn}};",
        "use {std::fmt, crate::client};",
        "use super::super::client::ClientConn;",
        "use self::super::super::client as below;",
        "pub(crate) use crate::client::*;",
        "fn f() -> usize { crate::client::COUNT }",
        "fn f() { let _ = Vec::<crate::client::ClientConn>::new(); }",
        "struct S(Box<dyn crate::client::Sink>);",
        "impl From<super::super::client::Error> for S {}",
        "fn f() { assert!(matches!(x, crate::client::Mode::Normal)); }",
        "macro_rules! m { () => { $crate::client::f() } }",
        "mod inner { use super::super::super::client; }",
        "#[cfg(test)] mod tests { use crate::client::ClientConn; }",
        "use crate as root;",
        "use crate::*;",
        "use super::super::*;",
        "fn f() { crate::no_such_module::f() }",
    ];
    for form in forms {
        let found = faults("router/plan.rs", form);
        assert!(
            !found.is_empty() && found.iter().all(|fault| *fault == (Rule::Layer, 1)),
            "{form}: {found:?}"
        );
    }
    assert_eq!(faults("router/mod.rs", "\n\nuse super::client;"), [(Rule::Layer, 3)]);
    assert_eq!(
        faults("backend/mod.rs", "use crate::router::Plan;"),
        [(Rule::Layer, 1)],
        "below, but not in its row"
    );
}

#[test]
fn a_downward_import_is_no_fault() {
    let forms = [
        "use crate::resp::{Args, ErrorReply};",
        "use super::fold::Fold; pub(crate) struct S; pub(super) fn f(self) {}",
        "use super::super::topology::ServerIx;",
        "mod inner { use super::*; use super::super::fold; }",
        "#[cfg(test)] mod tests { use super::*; use crate::hash::Algorithm; }",
        "fn f() { x.client.crate_(); let client = worker::spawn(); }",
        "/// [`crate::client`]\nfn f() { let s = \"crate::client\"; }",
    ];
    for form in forms {
        assert_eq!(faults("router/plan.rs", form), [], "{form}");
    }
}

#[test]
fn an_impure_line_is_seen() {
    let forms = [
        "use tokio::sync::mpsc;",
        "use std::{fmt, net::TcpStream};",
        "use std::net::*;",
        "use std::os::unix::net::UnixStream;",
        "fn f() { std::thread::spawn(g); }",
        "use std::time::Instant; fn f() { Instant::now(); }",
        "fn f() { std::time::SystemTime::now(); }",
        "fn f(t: Instant) { t.elapsed(); }",
        "fn f() { assert!(tokio::task::id() == 1); }",
        "fn f() { std::fs::read(\"x\"); }",
        "use std::os::unix::fs::PermissionsExt;",
        "#[cfg(test)] use super::x; use tokio::time;",
        "#[cfg(test)] mod tests { fn f() {} } use tokio::time;",
    ];
    for form in forms {
        assert_eq!(faults("topology/ring.rs", form), [(Rule::Purity, 1)], "{form}");
    }
    let pure = [
        "use std::net::{IpAddr, SocketAddr}; use std::time::{Duration, Instant};",
        "#[cfg(test)] mod tests { use tokio::time; fn f() { std::thread::yield_now(); } }",
        "fn f(s: S) { s.tokio; }",
        "use std::os::unix::ffi::OsStrExt;",
    ];
    for form in pure {
        assert_eq!(faults("topology/ring.rs", form), [], "{form}");
    }
    assert_eq!(
        faults("config/mod.rs", "use std::os::unix::fs::MetadataExt; fn f() { std::fs::read(\"x\"); }"),
        []
    );
    assert_eq!(faults("net/mod.rs", "use tokio::net::TcpListener;"), []);
}

#[test]
fn yaml_and_printing_are_seen_outside_their_places() {
    let yaml = "use serde_yaml::Value;";
    assert_eq!(faults("config/mod.rs", yaml), [(Rule::Yaml, 1)]);
    assert_eq!(faults("config/raw.rs", yaml), []);
    let print = "fn f() { println!(\"x\"); }";
    assert_eq!(faults("worker/mod.rs", print), [(Rule::Print, 1)]);
    assert_eq!(faults("app.rs", print), []);
    assert_eq!(faults("worker/mod.rs", "#[cfg(test)] mod tests { fn f() { eprintln!(\"x\"); } }"), []);
}
