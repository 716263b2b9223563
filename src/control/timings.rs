//! The workers' histograms, added up.

use std::collections::BTreeMap;

use super::report::Sources;
use crate::command::{CommandIx, CommandTable};
use crate::stats::{Scope, ServerBlock, Snapshot};

impl Sources {
    /// The histograms that metrics show, with the values of their labels.
    pub fn times(&self, scope: Scope, name: &str) -> Vec<(Vec<String>, Snapshot)> {
        let pools = self.config.pools.iter().enumerate();
        match scope {
            Scope::Process | Scope::Proxy | Scope::Worker => Vec::new(),
            Scope::Pool => pools.map(|(ix, pool)| (vec![pool.name.clone()], self.write_times(ix))).collect(),
            Scope::Server => pools
                .flat_map(|(ix, pool)| {
                    pool.servers.iter().enumerate().map(move |(server, config)| {
                        let labels = vec![pool.name.clone(), config.name.clone()];
                        (labels, self.server_times(ix, server, name))
                    })
                })
                .collect(),
            Scope::Group => pools
                .flat_map(|(ix, pool)| {
                    let groups = self.group_times(ix).into_iter();
                    groups.map(|(group, times)| (vec![pool.name.clone(), group.to_owned()], times))
                })
                .collect(),
        }
    }

    /// Writing to a pool's clients.
    pub fn write_times(&self, pool: usize) -> Snapshot {
        let mut all = Snapshot::default();
        self.workers.iter().for_each(|worker| all.add(&worker.pools[pool].pool.write_seconds));
        all
    }

    /// One of a server's histograms, by its name in [`ServerBlock::TIMES`].
    pub fn server_times(&self, pool: usize, server: usize, name: &str) -> Snapshot {
        let at = ServerBlock::TIMES.iter().position(|definition| definition.name == name);
        let mut all = Snapshot::default();
        for worker in &self.workers {
            let block = &worker.pools[pool].servers[server];
            block.times().nth(at.unwrap_or_default()).into_iter().for_each(|times| all.add(times));
        }
        all
    }

    /// Each command of a pool that was used.
    pub fn command_times(&self, pool: usize) -> BTreeMap<u16, Snapshot> {
        let mut all: BTreeMap<u16, Snapshot> = BTreeMap::new();
        for (command, times) in self.workers.iter().flat_map(|worker| worker.pools[pool].pool.commands.used())
        {
            all.entry(command).or_default().add(times);
        }
        all
    }

    fn group_times(&self, pool: usize) -> BTreeMap<&'static str, Snapshot> {
        let table = CommandTable::builtin();
        let mut groups: BTreeMap<&'static str, Snapshot> = BTreeMap::new();
        for (command, times) in self.command_times(pool) {
            groups.entry(table.group(CommandIx(command)).name()).or_default().merge(&times);
        }
        groups
    }
}
