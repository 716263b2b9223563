//! docs/configuration.md, from the tables of keys.

use super::keys::{Absent, Field, Key, Origin};
use super::{pool_keys, process};

/// The text around the tables.
const FRAME: &str = include_str!("reference.md");

/// The reference of the configuration in Markdown: docs/configuration.md.
pub fn reference() -> String {
    FRAME
        .replace("{{pool keys of twemproxy}}\n", &table(pool_keys::KEYS, Origin::Twemproxy))
        .replace("{{pool keys of shardwise}}\n", &table(pool_keys::KEYS, Origin::Shardwise))
        .replace("{{process keys}}\n", &table(process::KEYS, Origin::Shardwise))
}

fn table<T>(keys: &[Key<T>], origin: Origin) -> String {
    let rows = keys.iter().filter(|key| key.origin == origin).map(row);
    "| Key | Takes | Default | Meaning |\n|---|---|---|---|\n".to_owned() + &rows.collect::<String>()
}

fn row<T>(key: &Key<T>) -> String {
    let default = match key.absent {
        Absent::Required => "**required**".to_owned(),
        Absent::Unset(meaning) => format!("unset: {meaning}"),
        Absent::Value(text) => format!("`{text}`"),
    };
    format!("| `{}` | {} | {default} | {} |\n", key.name, takes(&key.field), key.meaning)
}

fn takes<T>(field: &Field<T>) -> String {
    if field.is_choice() {
        return field.choices().iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
    }
    match field.range() {
        Some(range) => format!("{}, {range}", field.wanted()),
        None => field.wanted(),
    }
}
