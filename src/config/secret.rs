//! Passwords: `${VARIABLE}` in `redis_auth`, and files with one.

use std::io;
use std::path::Path;

use crate::units::Secret;

use super::error::SecretError;

/// What a password may need from outside the file that names it.
pub struct Outside<'a> {
    /// The value of an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// A file with a password.
    pub secret_file: &'a dyn Fn(&Path) -> io::Result<SecretFile>,
}

/// A file with a password.
#[derive(Clone)]
pub struct SecretFile {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether others than its owner may read it.
    pub is_public: bool,
}

/// Replaces each `${VARIABLE}` of `text`; `$${` stands for a plain `${`, and any other `$` for itself.
pub(super) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Secret, SecretError> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let opened = &from[2..];
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = opened;
            continue;
        }
        let (name, after) = opened.split_once('}').ok_or(SecretError::Malformed)?;
        if !is_variable(name) {
            return Err(SecretError::Malformed);
        }
        expanded.push_str(before);
        expanded.push_str(&env(name).ok_or_else(|| SecretError::Unset(name.to_owned()))?);
        rest = after;
    }
    expanded.push_str(rest);
    if expanded.is_empty() {
        return Err(SecretError::Empty);
    }
    Ok(Secret::new(expanded.into_bytes()))
}

/// The password in a file: all of it but one newline at its end.
pub(super) fn from_file(bytes: &[u8]) -> Result<Secret, SecretError> {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(SecretError::Empty);
    }
    Ok(Secret::new(line))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, SecretError> {
        let env = |name: &str| match name {
            "PW" => Some("s3cret".to_owned()),
            "_2" => Some("${PW}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand(text, &env).map(|secret| String::from_utf8_lossy(secret.expose()).into_owned())
    }

    #[test]
    fn variables_are_replaced_once() {
        assert_eq!(expanded("${PW}").as_deref(), Ok("s3cret"));
        assert_eq!(expanded("a${PW}b${PW}").as_deref(), Ok("as3cretbs3cret"));
        // What a variable contains isn't looked into again.
        assert_eq!(expanded("${_2}").as_deref(), Ok("${PW}"));
        assert_eq!(expanded("x${EMPTY}").as_deref(), Ok("x"));
    }

    #[test]
    fn other_dollars_stay() {
        for text in ["$", "$$", "pa$$word", "$PW", "a$", "{PW}", "$ {PW}"] {
            assert_eq!(expanded(text).as_deref(), Ok(text));
        }
        assert_eq!(expanded("$${PW}").as_deref(), Ok("${PW}"));
        assert_eq!(expanded("$$${PW}").as_deref(), Ok("$${PW}"));
        assert_eq!(expanded("$${").as_deref(), Ok("${"));
    }

    #[test]
    fn what_can_not_be_replaced_is_an_error() {
        assert_eq!(expanded("${NONE}"), Err(SecretError::Unset("NONE".to_owned())));
        assert_eq!(expanded("${EMPTY}"), Err(SecretError::Empty));
        for text in ["${", "${}", "${PW", "a${P W}", "${1}", "${PW:-x}"] {
            assert_eq!(expanded(text), Err(SecretError::Malformed), "{text}");
        }
    }

    #[test]
    fn one_newline_ends_a_file() {
        let password = |bytes: &[u8]| from_file(bytes).map(|secret| secret.expose().to_vec());
        assert_eq!(password(b"pw").as_deref(), Ok(&b"pw"[..]));
        assert_eq!(password(b"pw\n").as_deref(), Ok(&b"pw"[..]));
        assert_eq!(password(b"pw\r\n").as_deref(), Ok(&b"pw"[..]));
        assert_eq!(password(b" p\xff\n\n").as_deref(), Ok(&b" p\xff\n"[..]));
        assert_eq!(password(b"\n"), Err(SecretError::Empty));
        assert_eq!(password(b""), Err(SecretError::Empty));
    }
}
