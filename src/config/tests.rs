//! What holds for every key of the tables.

use std::collections::HashSet;
use std::path::Path;

use super::keys::{Absent, Field, Key};
use super::{Change, Config, ConfigErrors, Reason, diff, pool_keys, process};

const LISTEN: &str = "  listen: 127.0.0.1:22121\n";
const REDIS: &str = "  redis: true\n";
const SERVERS: &str = "  servers: [127.0.0.1:6379:1, 127.0.0.1:6380:1]\n";

/// A pool with `line` instead of what would give the same key.
fn pool_with(name: &str, line: &str) -> String {
    let rest: String = [("listen", LISTEN), ("redis", REDIS), ("servers", SERVERS)]
        .into_iter()
        .filter(|(key, _)| *key != name)
        .map(|(_, line)| line)
        .collect();
    format!("alpha:\n{line}\n{rest}")
}

fn process_with(line: &str) -> String {
    format!("shardwise:\n{line}\nalpha:\n{LISTEN}{REDIS}{SERVERS}")
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, Path::new("a.yml"), |_| None)
}

/// Values that no such key takes.
fn wrong_values<T>(field: &Field<T>) -> Vec<&'static str> {
    let mut wrong = vec!["", "\"\"", "{a: b}", "{}"];
    wrong.extend(match field {
        Field::Flag(_) => &["yes", "True", "1", "on", "[true]"][..],
        Field::Number(..) | Field::Millis(_) => {
            &["0x10", "-1", "+1", "1_000", "1.0", "1e3", "99999999999", "many", "true", "' 1'", "[1]"]
        }
        Field::LimitNumber(..) => {
            &["-1", "1e3", "99999999999", "observe", "1 off", "1 watch", "off off", "[1]"]
        }
        Field::LimitDuration(..) | Field::LimitSize(..) => {
            &["-1", "1.5s", "observe", "off observe", "1s1s", "[1]"]
        }
        Field::Duration(..) => &["-1", "1.5s", "2d", "s", "99999999999h", "[1]"],
        Field::Size(..) => &["-1", "1.5mb", "1tb", "mb", "99999999999gb", "[1]"],
        Field::Choice(..) => &["none-of-them", "1", "[probe]"],
        Field::Text(..) => &["x", "[x]"],
        Field::Secret(..) => &["[x]"],
        Field::Mapping(..) => {
            &["x", "[x]", "{deny: x}", "{deny: ['no such']}", "{deny: [get], allow: [set]}", "{x: [get]}"]
        }
        Field::List(..) => &["x", "1", "[]"],
    });
    wrong
}

fn assert_names_line(text: &str, path: &str) {
    let errors = parse(text).expect_err(text);
    let named = |error: &super::ConfigError| error.line == Some(2) && error.path.starts_with(path);
    assert!(errors.iter().any(named), "{text}\n{errors}");
    assert!(errors.to_string().contains(&format!("a.yml:2: {path}: ")), "{text}\n{errors}");
}

#[test]
fn every_key_refuses_every_wrong_value_with_line_and_name() {
    for key in pool_keys::KEYS {
        for value in wrong_values(&key.field) {
            let text = pool_with(key.name, &format!("  {}: {value}", key.name));
            assert_names_line(&text, &format!("alpha.{}", key.name));
        }
    }
    for key in process::KEYS {
        for value in wrong_values(&key.field) {
            let text = process_with(&format!("  {}: {value}", key.name));
            assert_names_line(&text, &format!("shardwise.{}", key.name));
        }
    }
}

#[test]
fn every_default_may_be_written_out() {
    fn lines<T>(keys: &[Key<T>]) -> impl Iterator<Item = (&'static str, &'static str)> {
        keys.iter().filter_map(|key| match key.absent {
            Absent::Value(text) => Some((key.name, text)),
            Absent::Required | Absent::Unset(_) => None,
        })
    }
    let plain = parse(&pool_with("", "")).expect("a plain pool");
    for (name, text) in lines(pool_keys::KEYS).filter(|(name, _)| *name != "redis") {
        for quote in ["", "'", "\""] {
            let given = pool_with(name, &format!("  {name}: {quote}{text}{quote}"));
            assert_eq!(parse(&given).map(|config| config.pools), Ok(plain.pools.clone()), "{given}");
        }
    }
    for (name, text) in lines(process::KEYS) {
        let given = process_with(&format!("  {name}: \"{text}\""));
        assert_eq!(parse(&given).map(|config| config.process), Ok(plain.process.clone()), "{given}");
    }
}

/// A value that isn't the default.
fn other_value<T>(key: &Key<T>) -> String {
    match &key.field {
        Field::Flag(_) => (key.absent != Absent::Value("true")).to_string(),
        Field::Number(..) if key.name == "max_ejected" => "50".to_owned(),
        Field::Number(range, _) => range.end().min(&7777).to_string(),
        Field::LimitNumber(range, ..) => format!("{} observe", range.end().min(&7777)),
        Field::LimitSize(..) if key.name == "out_soft" => "2kb observe".to_owned(),
        Field::LimitSize(..) => "2gb observe".to_owned(),
        Field::LimitDuration(..) => "7s observe".to_owned(),
        Field::Millis(_) => "77".to_owned(),
        Field::Duration(..) => "77ms".to_owned(),
        Field::Size(..) => "4kb".to_owned(),
        Field::Choice(_, names, _) => names().last().map_or(String::new(), |name| (*name).to_owned()),
        Field::Text(..) => {
            let address = "127.0.0.1:1";
            let values = [
                ("listen", address),
                ("metrics", address),
                ("admin", address),
                ("handover", "/run/shardwise.sock"),
                ("hash_tag", "\"{}\""),
                ("threads", "3"),
            ];
            values.iter().find(|(name, _)| *name == key.name).map_or("?", |(_, value)| *value).to_owned()
        }
        Field::Secret(..) => "other".to_owned(),
        Field::Mapping(..) => "{deny: [flushall]}".to_owned(),
        Field::List(..) => "[127.0.0.1:6379:1]".to_owned(),
    }
}

/// So that a new key can't be forgotten in `diff`, nor its value on the way to the pool.
#[test]
fn a_change_of_any_key_is_seen() {
    let plain = parse(&pool_with("", "")).expect("a plain pool");
    assert_eq!(diff(&plain, &plain), []);
    for key in pool_keys::KEYS {
        // Not a setting: a condition; lists are compared item by item; a file isn't read here.
        if ["redis", "servers", "redis_auth_file"].contains(&key.name) {
            continue;
        }
        let text = pool_with(key.name, &format!("  {}: {}", key.name, other_value(key)));
        let changed = parse(&text).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        let expected = Change::Setting { pool: "alpha".to_owned(), key: key.name };
        assert_eq!(diff(&plain, &changed), [expected], "{text}");
    }
    for key in process::KEYS {
        if key.name == "admin_password_file" {
            continue;
        }
        let text = process_with(&format!("  {}: {}", key.name, other_value(key)));
        let changed = parse(&text).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        assert_eq!(diff(&plain, &changed), [Change::Process(key.name)], "{text}");
    }
}

#[test]
fn rows_are_whole_and_names_differ() {
    fn check<T>(keys: &[Key<T>], names: &mut HashSet<&'static str>) {
        for key in keys {
            assert!(names.insert(key.name), "{} twice", key.name);
            assert!(key.meaning.ends_with(['.', ')']) && !key.meaning.contains(['|', '\n']), "{}", key.name);
            assert!(!key.field.wanted().is_empty(), "{}", key.name);
        }
    }
    // Across both tables, or a misplaced key couldn't be sent to the other.
    let mut names = HashSet::new();
    check(pool_keys::KEYS, &mut names);
    check(process::KEYS, &mut names);
}

#[test]
fn many_faults_are_cut_but_memcached_pools_are_always_named() {
    let keys: String = (0..300).map(|n| format!("  k{n}: 1\n")).collect();
    let errors = parse(&format!("alpha:\n{LISTEN}{SERVERS}{keys}")).expect_err("300 unknown keys");
    assert!(errors.to_string().ends_with("\nand 200 more"), "{errors}");
    assert!(errors.iter().any(|error| matches!(error.reason, Reason::Memcached(_))), "{errors}");
}
