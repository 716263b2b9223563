//! Options that end at once: help, version, checks of the configuration, explanations, mistakes.

use crate::support::Shardwise;
use crate::{stderr, stdout, yaml};

#[test]
fn help_version_and_the_list_of_stats_end_with_0() {
    for (short, long, expected) in [
        ("-h", "--help", "Usage: shardwise"),
        ("-V", "--version", "shardwise 0."),
        ("-D", "--describe-stats", "client_connections"),
    ] {
        for option in [short, long] {
            let output = Shardwise::run("", &[option]);
            assert_eq!(output.status.code(), Some(0), "{option}");
            assert!(stdout(&output).contains(expected), "{option}: {}", stdout(&output));
        }
    }
    assert!(stdout(&Shardwise::run("", &["-V"])).starts_with("shardwise 0."));
}

#[test]
fn a_wrong_command_line_is_explained_and_ends_with_1() {
    for args in [&["-v", "x"][..], &["-s", "0"], &["-m", "511"], &["-c"], &["--nope"], &["stray"], &["-?"]] {
        let output = Shardwise::run("", args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text.starts_with("error: ") && text.contains("Usage: shardwise"), "{args:?}: {text}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_right_configuration_is_ok() {
    let output = Shardwise::run(&yaml("127.0.0.1:22121"), &["-t", "-c", "conf.yml"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "shardwise: configuration file 'conf.yml' syntax is ok\n");
}

#[test]
fn a_wrong_configuration_is_explained() {
    let wrong = yaml("127.0.0.1:22121").replace("redis: true", "redis: true\n  hsah: md5");
    let output = Shardwise::run(&wrong, &["--test-conf", "--conf-file=conf.yml"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with("conf.yml:") && text.contains("hsah"), "{text}");
    assert!(text.ends_with("shardwise: configuration file 'conf.yml' syntax is invalid\n"), "{text}");

    let missing = Shardwise::run("", &["-t", "-c", "absent.yml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).starts_with("absent.yml: "), "{}", stderr(&missing));
}

#[test]
fn explain_names_the_server_of_each_key() {
    let yaml = yaml("127.0.0.1:22121");
    let explain = |args: &[&str]| {
        let all = [&["explain", "-c", "conf.yml"], args].concat();
        Shardwise::run(&yaml, &all)
    };
    let plain = explain(&["alpha", "apple", "pear"]);
    assert_eq!(plain.status.code(), Some(0), "{}", stderr(&plain));
    let text = stdout(&plain);
    let both = text.contains("apple") && text.contains("pear");
    assert!(both && (text.contains("one") || text.contains("two")), "{text}");

    // Three ways to write one key.
    let expected = stdout(&explain(&["alpha", "apple"]));
    assert_eq!(stdout(&explain(&["--hex", "alpha", "6170706c65"])), expected);
    assert_eq!(stdout(&explain(&["--escaped", "alpha", r"a\x70ple"])), expected);
}

#[test]
fn explain_says_what_is_wrong() {
    let yaml = yaml("127.0.0.1:22121");
    for (args, expected) in [
        (&["explain", "-c", "conf.yml", "beta", "key"][..], "no pool 'beta' in conf.yml; it has: alpha"),
        (&["explain", "-c", "conf.yml", "--hex", "alpha", "0g"], "key '0g': expected pairs of hex digits"),
        (&["explain", "-c", "absent.yml", "alpha", "key"], "absent.yml: "),
        (&["explain", "-c", "conf.yml", "alpha"], "error: "),
    ] {
        let output = Shardwise::run(&yaml, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).starts_with(expected), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_manual_and_the_completions_know_every_option() {
    let manual = Shardwise::run("", &["man"]);
    assert!(
        stdout(&manual).starts_with(".ie") && stdout(&manual).contains("conf\\-file"),
        "{}",
        stdout(&manual)
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = Shardwise::run("", &["completions", shell]);
        assert_eq!(script.status.code(), Some(0));
        assert!(stdout(&script).contains("stats-port") && stdout(&script).contains("explain"), "{shell}");
    }
}
