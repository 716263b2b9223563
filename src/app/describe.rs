//! `-D`: what the stats port tells.

use std::fmt::Write;

use crate::stats::{Definition, pool_definitions, server_definitions};

/// The list of all stats, in the order in which the stats port shows them.
pub fn stats() -> String {
    let mut text = format!("shardwise {}\n", env!("CARGO_PKG_VERSION"));
    section(&mut text, "pool stats", &pool_definitions());
    section(&mut text, "server stats", &server_definitions());
    text
}

fn section(text: &mut String, title: &str, definitions: &[Definition]) {
    let width = definitions.iter().map(|definition| definition.name.len()).max().unwrap_or(0);
    // Writing to a String does not fail.
    let _ = writeln!(text, "\n{title}:");
    for Definition { name, help, .. } in definitions {
        let _ = writeln!(text, "  {name:width$}  \"{help}\"");
    }
}
