//! Every file in conf/ loads, without a warning, and listens on this machine only.

use std::path::{Path, PathBuf};

use shardwise::config::Config;
use shardwise::units::Listen;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("conf/ is there")
        .map(|entry| entry.expect("conf/ can be listed").path())
        // Folders are for other programs: Prometheus, Grafana.
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

fn parse(file: &Path) -> Config {
    let text = std::fs::read_to_string(file).expect("a file of conf/ can be read");
    let env = |name: &str| (name == "SHARDWISE_PASSWORD").then(|| "from the environment".to_owned());
    Config::parse(&text, file, env).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_file_loads_and_stays_on_this_machine() {
    let files = files();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        assert_eq!(file.extension().and_then(|ending| ending.to_str()), Some("yml"), "{}", file.display());
        let config = parse(&file);
        assert_eq!(config.warnings, [], "{}", file.display());
        for pool in &config.pools {
            if let Listen::Tcp { host, .. } = &pool.listen {
                assert!(["127.0.0.1", "::1"].contains(&host.as_str()), "{}: {host}", file.display());
            }
        }
    }
}

#[test]
fn the_default_file_is_one_pool_over_four_local_servers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/nutcracker.yml");
    let config = Config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.path, path);
    let [pool] = &config.pools[..] else { panic!("{} pools", config.pools.len()) };
    assert_eq!(pool.listen.to_string(), "127.0.0.1:22121");
    let servers: Vec<_> = pool.servers.iter().map(|server| server.endpoint.to_string()).collect();
    assert_eq!(servers, ["127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381", "127.0.0.1:6382"]);
}
