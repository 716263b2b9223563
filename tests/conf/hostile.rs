//! Whatever a file contains, reading it ends, soon, and without a panic.

use std::path::Path;

use proptest::prelude::*;
use shardwise::config::{Config, ConfigErrors, MOST_BYTES};

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, Path::new("a.yml"), |_| Some("value".to_owned()))
}

/// Reads `text` and looks at all that came out of it.
fn survive(text: &str) {
    match parse(text) {
        Ok(config) => {
            assert!(!config.pools.is_empty());
            assert!(config.pools.iter().all(|pool| !pool.servers.is_empty()));
        }
        Err(errors) => {
            assert!(errors.iter().count() > 0);
            // YAML knows more ends of a line than '\n'.
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
            for error in errors.iter() {
                // A fault at the end of the file may be on the line behind the last.
                assert!(error.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{error}");
                assert!(!error.to_string().contains('\n'), "{error:?}");
            }
        }
    }
}

/// Pieces that a configuration is made of, right and wrong.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "alpha",
            "shardwise",
            "listen",
            "servers",
            "redis",
            "true",
            "false",
            "hash",
            "md5",
            "timeout",
            "redis_auth",
            "hash_tag",
            "distribution",
            "127.0.0.1:22121",
            "127.0.0.1:6379:1",
            "/tmp/a",
            "0600",
            ": ",
            ":",
            "\n",
            "\n  ",
            "\n   - ",
            "- ",
            " ",
            "\"",
            "'",
            "{",
            "}",
            "[",
            "]",
            ",",
            "#",
            "&a ",
            "*a",
            "!a ",
            "!!int ",
            "? ",
            "|\n",
            ">\n",
            "---\n",
            "...\n",
            "%TAG ! x\n",
            "\t",
            "\r\n",
            "${",
            "$${",
            "0",
            "-1",
            "99999999999999999999",
            "\u{feff}",
            "\0",
            "é",
            "~",
            "<<",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,8}",
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_survived(text in any::<String>()) {
        survive(&text);
    }

    #[test]
    fn nearly_right_text_is_survived(pieces in proptest::collection::vec(piece(), 0..40)) {
        survive(&pieces.concat());
    }

    #[test]
    fn a_damaged_file_is_survived(at in 0_usize..4000, cut in 0_usize..40, insert in piece()) {
        let whole: Vec<char> = include_str!("../../conf/many-pools.yml").chars().collect();
        let at = at.min(whole.len());
        let end = (at + cut).min(whole.len());
        let (before, after): (String, String) = (whole[..at].iter().collect(), whole[end..].iter().collect());
        survive(&format!("{before}{insert}{after}"));
    }

    #[test]
    fn any_server_and_any_address_is_survived(entry in "[0-9a-z:/ \\[\\]%.]{0,24}") {
        survive(&format!("a:\n  listen: \"{entry}\"\n  redis: true\n  servers:\n  - \"{entry}\"\n"));
    }
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let errors = parse(&" ".repeat(MOST_BYTES + 1)).expect_err("too large");
    assert_eq!(errors.to_string(), "a.yml: is larger than 4mb");
}

/// As much as fits into the largest file.
#[test]
fn the_largest_files_are_read() {
    let mut pools = String::new();
    for n in 0.. {
        let pool = format!(
            "p{n}: {{listen: /s/{n}, redis: true, servers: [h{n}:1:1, \"[::1]:{}:1\"]}}\n",
            n % 60_000 + 1
        );
        if pools.len() + pool.len() > MOST_BYTES || n == 65_535 {
            break;
        }
        pools.push_str(&pool);
    }
    let config = parse(&pools).expect("many pools");
    assert!(config.pools.len() > 40_000, "{}", config.pools.len());

    let servers: String = (0..65_535).map(|n| format!("   - server{n}:6379:1 name{n}\n")).collect();
    let config = parse(&format!("a:\n  listen: 127.0.0.1:1\n  redis: true\n  servers:\n{servers}"));
    assert_eq!(config.expect("many servers").pools[0].servers.len(), 65_535);

    let errors = parse(&"a:\n".repeat(400_000)).expect_err("many duplicates");
    assert!(errors.to_string().contains("a.yml:2: a: is a duplicate, line 1 has it already"));
}
