//! `shardwise explain`: where keys go, offline.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use super::cli::ExplainOptions;
use crate::config::Config;
use crate::topology::{self, Generation};

/// One explanation a key, with an empty line between them; or why there is none.
pub fn explain(options: &ExplainOptions) -> Result<String, String> {
    let keys = options.keys.iter().map(|key| bytes(key, options)).collect::<Result<Vec<_>, String>>()?;
    let config = Config::load(&options.conf_file).map_err(|errors| errors.to_string())?;
    let position = config.pools.iter().position(|pool| pool.name == options.pool).ok_or_else(|| {
        let names: Vec<&str> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
        format!("no pool '{}' in {}; it has: {}", options.pool, options.conf_file.display(), names.join(", "))
    })?;
    let generation = Generation::first(Arc::new(config));
    let (pool, topology) = (&generation.config.pools[position], &generation.pools[position]);
    let explained: Vec<String> =
        keys.iter().map(|key| format!("{}\n", topology::explain(pool, topology, key))).collect();
    Ok(explained.join("\n"))
}

fn bytes(key: &OsString, options: &ExplainOptions) -> Result<Vec<u8>, String> {
    let given = key.clone().into_vec();
    let read = match (options.hex, options.escaped) {
        (true, _) => from_hex(&given),
        (false, true) => unescaped(&given),
        (false, false) => Some(given),
    };
    let form = if options.hex { "pairs of hex digits" } else { r"text with \xNN and \\" };
    read.ok_or_else(|| format!("key '{}': expected {form}", key.to_string_lossy()))
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    digits.chunks(2).map(|pair| byte(*pair.first()?, *pair.get(1)?)).collect()
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(next) = rest.next() {
        key.push(match next {
            b'\\' => match rest.next()? {
                b'x' => byte(rest.next()?, rest.next()?)?,
                b'\\' => b'\\',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(key)
}

fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_keys_have_two_forms() {
        assert_eq!(from_hex(b"00fFa0"), Some(vec![0, 255, 160]));
        assert_eq!(from_hex(b""), Some(vec![]));
        assert_eq!(unescaped(br"a\x00\\\xffz"), Some(b"a\0\\\xffz".to_vec()));
        for bad in [&b"0"[..], b"0g", b"+1"] {
            assert_eq!(from_hex(bad), None, "{}", bad.escape_ascii());
        }
        for bad in [&br"\"[..], br"\x", br"\x0", br"\xzz", br"\q"] {
            assert_eq!(unescaped(bad), None, "{}", bad.escape_ascii());
        }
    }
}
