//! Body of a fuzz target: any text as a configuration file.

use std::path::Path;
use std::sync::Arc;

use shardwise::config::Config;
use shardwise::topology::{Draw, Generation};

/// Rings of more points are correct and slow to make.
const MOST_SERVERS: usize = 20;

/// It is refused with words, or gives pools whose keys have owners.
pub fn config(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let config = match Config::parse(&text, Path::new("fuzz.yml"), |name| Some(format!("value of {name}"))) {
        Ok(config) => config,
        Err(errors) => return assert!(!errors.to_string().is_empty()),
    };
    assert!(!config.pools.is_empty());
    if config.pools.iter().map(|pool| pool.servers.len()).sum::<usize>() > MOST_SERVERS {
        return;
    }
    let generation = Generation::first(Arc::new(config));
    for (pool, topology) in generation.config.pools.iter().zip(&generation.pools) {
        let server = topology.server(b"some key", &Draw::seeded(1)).expect("every server is live");
        assert!(server.index() < pool.servers.len());
        if let (Some(soft), Some(hard)) = (pool.out_soft.bound(), pool.out_hard.bound()) {
            assert!(soft <= hard);
        }
    }
}
