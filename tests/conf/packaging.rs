//! What is under packaging/ is well formed, and what of it shardwise reads, it takes. None of it is run here: tests/package.sh runs the
//! Debian package.

use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_yaml::Value;
use shardwise::config::Config;

fn file(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_kubernetes_example_holds_together() {
    let text = file("kubernetes/shardwise.yaml");
    let documents: Vec<Value> = serde_yaml::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let of_kind = |kind: &str| {
        documents.iter().find(|one| one["kind"] == *kind).unwrap_or_else(|| panic!("there is a {kind}"))
    };
    assert!(documents.iter().all(|one| one["apiVersion"].is_string() && one["metadata"]["name"].is_string()));

    let yaml = of_kind("ConfigMap")["data"]["shardwise.yml"].as_str().expect("a text");
    let env = |name: &str| (name == "SHARDWISE_PASSWORD").then(|| "secret".to_owned());
    let config =
        Config::parse(yaml, Path::new("shardwise.yml"), env).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.warnings, []);

    let pod = &of_kind("Deployment")["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"], of_kind("Service")["spec"]["selector"]);
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().expect("seconds");
    assert!(
        grace > config.process.drain_timeout.as_secs() + 2,
        "SIGKILL must not come before the drain is over"
    );
    let port = pod["spec"]["containers"][0]["ports"][0]["containerPort"].as_u64();
    assert_eq!(config.pools[0].listen.to_string(), format!("0.0.0.0:{}", port.expect("a port")));
    assert!(pod["spec"]["containers"][0]["lifecycle"].is_null(), "SIGTERM alone drains");
}

#[test]
fn the_unit_leaves_time_to_drain_and_drops_all_rights() {
    let unit = file("systemd/shardwise.service");
    let setting = |key: &str| {
        let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.next().unwrap_or_else(|| panic!("{key} is set")).to_owned()
    };
    assert_eq!((setting("Type"), setting("CapabilityBoundingSet")), ("notify".into(), String::new()));
    assert!(setting("TimeoutStopSec").parse::<u64>().expect("seconds") > 12);
    let listen = file("systemd/shardwise.socket");
    let conf = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/nutcracker.yml");
    let config = Config::load(&conf).unwrap_or_else(|errors| panic!("{errors}"));
    let address = format!("ListenStream={}", config.pools[0].listen);
    assert!(listen.lines().any(|line| line == address), "the socket is that of the package's configuration");
}

#[test]
fn the_dockerfile_has_known_instructions_only() {
    let text = file("Dockerfile");
    let known = ["FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"];
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for line in &lines {
        let word = line.split(' ').next().unwrap_or_default();
        assert!(known.contains(&word), "{line}");
    }
    assert!(lines.iter().any(|line| line.starts_with("STOPSIGNAL SIGTERM")));
}
