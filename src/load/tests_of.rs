//! The tests that redis-benchmark knows, by its names, and a few for several keys.

use super::template::Template;
use super::workload::Workload;

/// Name, and the command as redis-benchmark sends it.
const TESTS: &[(&str, &str)] = &[
    ("ping_mbulk", "PING"),
    ("set", "SET key:__rand_int__ __data__"),
    ("get", "GET key:__rand_int__"),
    ("incr", "INCR counter:__rand_int__"),
    ("lpush", "LPUSH mylist __data__"),
    ("rpush", "RPUSH mylist __data__"),
    ("lpop", "LPOP mylist"),
    ("rpop", "RPOP mylist"),
    ("sadd", "SADD myset element:__rand_int__"),
    ("hset", "HSET myhash element:__rand_int__ __data__"),
    ("spop", "SPOP myset"),
    ("zadd", "ZADD myzset __rand_int__ element:__rand_int__"),
    ("zpopmin", "ZPOPMIN myzset"),
    ("lrange_100", "LRANGE mylist 0 99"),
    ("lrange_300", "LRANGE mylist 0 299"),
    ("lrange_500", "LRANGE mylist 0 499"),
    ("lrange_600", "LRANGE mylist 0 599"),
];
/// Names that stand for several tests.
const GROUPS: &[(&str, &[&str])] = &[
    ("ping", &["ping_inline", "ping_mbulk"]),
    ("lrange", &["lrange_100", "lrange_300", "lrange_500", "lrange_600"]),
];
/// Commands that take any number of keys: `mget:16`.
const MANY: &[(&str, &str)] = &[
    ("mget", " key:__rand_int__"),
    ("mset", " key:__rand_int__ __data__"),
    ("del", " key:__rand_int__"),
    ("unlink", " key:__rand_int__"),
    ("exists", " key:__rand_int__"),
    ("touch", " key:__rand_int__"),
];
/// Keys of such a command when the name doesn't say (redis-benchmark's MSET has so many).
const KEYS: usize = 10;
/// Most keys of one command.
const MOST_KEYS: usize = 10_000;
/// Elements that the list has before each turn that reads it.
const LIST: u64 = 600;

/// The tests that a name stands for: redis-benchmark's (`get`, `lrange_100`, `ping`), or a command with so many keys
/// (`mget:16`). `Err`: why there is none.
pub fn named(name: &str, value_bytes: usize, verify: bool) -> Result<Vec<Workload>, String> {
    let name = name.to_ascii_lowercase();
    if let Some((_, names)) = GROUPS.iter().find(|(group, _)| *group == name) {
        return Ok(names.iter().filter_map(|name| single(name, value_bytes, verify)).collect());
    }
    if let Some(test) = single(&name, value_bytes, verify) {
        return Ok(vec![test]);
    }
    let (command, keys) = match name.split_once(':') {
        Some((command, keys)) => (command, keys.parse().ok()),
        None => (name.as_str(), Some(KEYS)),
    };
    match (MANY.iter().find(|(known, _)| *known == command), keys) {
        (Some((_, part)), Some(keys @ 1..=MOST_KEYS)) => {
            let line = format!("{}{}", command.to_ascii_uppercase(), part.repeat(keys));
            Ok(vec![Workload::one(name, template(&line, value_bytes, verify))])
        }
        (Some(_), _) => Err(format!("test '{name}': expected 1 to {MOST_KEYS} keys after the colon")),
        (None, _) => Err(format!("no test '{name}'; there are: {}", names().join(", "))),
    }
}

/// Every name that [`named`] knows.
pub fn names() -> Vec<String> {
    let single = ["ping_inline"].into_iter().chain(TESTS.iter().map(|(name, _)| *name)).map(str::to_owned);
    let groups = GROUPS.iter().map(|(name, _)| (*name).to_owned());
    single.chain(groups).chain(MANY.iter().map(|(name, _)| format!("{name}:N"))).collect()
}

fn single(name: &str, value_bytes: usize, verify: bool) -> Option<Workload> {
    if name == "ping_inline" {
        return Some(Workload::one(name, Template::raw(b"PING\r\n")));
    }
    let (_, line) = TESTS.iter().find(|(known, _)| *known == name)?;
    let test = Workload::one(name, template(line, value_bytes, verify));
    if !name.starts_with("lrange_") {
        return Some(test);
    }
    let one = |line| Workload::one("", template(line, value_bytes, false));
    Some(test.after(one("DEL mylist"), 1).after(one("LPUSH mylist __data__"), LIST))
}

fn template(line: &str, value_bytes: usize, verify: bool) -> Template {
    let args: Vec<Vec<u8>> = line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
    Template::new(&args, value_bytes, verify)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_a_test() {
        for name in names() {
            let tests = named(&name.replace(":N", ":3"), 3, false).unwrap();
            assert!(!tests.is_empty(), "{name}");
        }
        assert_eq!(named("lrange", 3, false).unwrap().len(), 4);
        assert_eq!(named("MSET", 3, false).unwrap()[0].commands[0].template.numbers(), 10);
    }

    #[test]
    fn what_is_no_test_is_said_with_what_there_is() {
        assert!(named("gett", 3, false).unwrap_err().contains("lrange_600"));
        for bad in ["mget:0", "mget:x", "mget:10001"] {
            assert!(named(bad, 3, false).unwrap_err().contains("1 to 10000 keys"), "{bad}");
        }
        assert!(named("get:3", 3, false).is_err());
    }
}
