//! INFO's keyspace of a pool: the sums of what its servers say.

use std::collections::BTreeMap;

use super::fold::number;

/// What INFO says of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Database {
    keys: u64,
    expires: u64,
    /// Sum of each server's average, times its keys with an expiry.
    ttl: u128,
}

/// Databases that are told apart: a server has 16 by default. What a server says beyond is left out.
const DATABASES: usize = 4096;

/// `before` and the section Keyspace.
///
/// A sum without one of its parts would be wrong and look right: when a server gives none, there is no sum at all, but a
/// line that says what it gave.
pub(super) fn merge(before: &[u8], parts: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut text = before.to_vec();
    text.extend_from_slice(b"# Keyspace\r\n");
    match sum(parts) {
        Ok(databases) => {
            for (number, all) in databases {
                let ttl = all.ttl.checked_div(all.expires.into()).unwrap_or(0);
                let (keys, expires) = (all.keys, all.expires);
                text.extend_from_slice(
                    format!("db{number}:keys={keys},expires={expires},avg_ttl={ttl}\r\n").as_bytes(),
                );
            }
        }
        Err(why) => {
            text.extend_from_slice(b"keyspace_incomplete:");
            text.extend_from_slice(why);
            text.extend_from_slice(b"\r\n");
        }
    }
    text
}

/// The databases by number, or the first line of a reply that has none.
fn sum(parts: &[impl AsRef<[u8]>]) -> Result<BTreeMap<u32, Database>, &[u8]> {
    let mut databases: BTreeMap<u32, Database> = BTreeMap::new();
    for part in parts {
        let part = part.as_ref();
        // RESP3 servers say that it is text.
        let Some((_, text)) = number(part, b'$').or_else(|| number(part, b'=')) else {
            let line = part.split(|byte| *byte == b'\r').next().unwrap_or_default();
            return Err(line.strip_prefix(b"-").unwrap_or(b"an unexpected answer"));
        };
        for (number, one) in String::from_utf8_lossy(text).lines().filter_map(database) {
            if databases.len() < DATABASES || databases.contains_key(&number) {
                let all = databases.entry(number).or_default();
                all.keys = all.keys.saturating_add(one.keys);
                all.expires = all.expires.saturating_add(one.expires);
                all.ttl = all.ttl.saturating_add(one.ttl);
            }
        }
    }
    Ok(databases)
}

/// `db0:keys=5,expires=1,avg_ttl=1000`, and whatever later versions say behind it.
fn database(line: &str) -> Option<(u32, Database)> {
    let (number, fields) = line.strip_prefix("db")?.split_once(':')?;
    let field = |name: &str| {
        let values = fields.split(',').filter_map(|field| field.split_once('='));
        values.into_iter().find_map(|(key, value)| (key == name).then(|| value.parse::<u64>().ok())?)
    };
    let (keys, expires) = (field("keys")?, field("expires").unwrap_or(0));
    let ttl = u128::from(field("avg_ttl").unwrap_or(0)) * u128::from(expires);
    Some((number.parse().ok()?, Database { keys, expires, ttl }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(parts: &[&str]) -> String {
        let parts: Vec<Vec<u8>> = parts
            .iter()
            .map(|text| match text.starts_with('-') {
                true => format!("{text}\r\n").into_bytes(),
                false => format!("${}\r\n{text}\r\n", text.len()).into_bytes(),
            })
            .collect();
        String::from_utf8(merge(b"a:b\r\n", &parts)).unwrap().replace("\r\n", "\n")
    }

    #[test]
    fn databases_are_added_up() {
        let parts = [
            "# Keyspace\r\ndb0:keys=5,expires=1,avg_ttl=1000\r\ndb3:keys=1,expires=0,avg_ttl=0\r\n",
            "# Keyspace\r\ndb0:keys=7,expires=3,avg_ttl=2000,subexpiry=0\r\n",
            "# Keyspace\r\n",
        ];
        let sums = "a:b\n# Keyspace\ndb0:keys=12,expires=4,avg_ttl=1750\ndb3:keys=1,expires=0,avg_ttl=0\n";
        assert_eq!(merged(&parts), sums);
    }

    /// B13: a sum without a part is none.
    #[test]
    fn a_server_that_gives_none_is_named() {
        let parts =
            ["# Keyspace\r\ndb0:keys=5,expires=1,avg_ttl=1000\r\n", "-ERR Connection refused: s1 (host:1)"];
        let text = "a:b\n# Keyspace\nkeyspace_incomplete:ERR Connection refused: s1 (host:1)\n";
        assert_eq!(merged(&parts), text);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        assert_eq!(merged(&["db0:keys=x\r\ndbx:keys=1\r\ndb1\r\nfoo:keys=1"]), "a:b\n# Keyspace\n");
    }
}
