//! Names, types and texts of the metrics, made from the definitions of the cells; and docs/metrics.md, made from them.

use std::borrow::Cow;
use std::fmt::Write;

use super::{
    Definition, Kind, PoolBlock, ProcessBlock, ProxyBlock, ServerBlock, WorkerBlock, pool_definitions,
    server_definitions,
};

/// What a number is said of: the beginning of its metric's name, and the labels that tell one sample from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process as the system sees it.
    Process,
    /// shardwise as a whole.
    Proxy,
    /// One worker.
    Worker,
    /// One pool, over all workers.
    Pool,
    /// One server of a pool, over all workers.
    Server,
    /// One group of commands in a pool, over all workers.
    Group,
}

/// How a cell's number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As it is.
    Plain,
    /// It is in millionths.
    Millionths,
}

/// The text around the tables of docs/metrics.md.
const FRAME: &str = include_str!("metrics.md");

/// What is known of each group of commands.
const GROUP_TIMES: &[Definition] = &[Definition {
    name: "seconds",
    metric: None,
    kind: Kind::Time,
    help: "from a request's admission until its reply, or the last part of it, had come from a server",
}];

// === impl Scope ===

impl Scope {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Proxy, Self::Process, Self::Worker, Self::Pool, Self::Server, Self::Group];

    /// Names of the labels of each sample.
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Process | Self::Proxy => &[],
            Self::Worker => &["worker"],
            Self::Pool => &["pool"],
            Self::Server => &["pool", "server"],
            Self::Group => &["pool", "group"],
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Process => "process_",
            Self::Proxy => "shardwise_",
            Self::Worker => "shardwise_worker_",
            Self::Pool => "shardwise_pool_",
            Self::Server => "shardwise_server_",
            Self::Group => "shardwise_command_",
        }
    }
}

/// The definitions of all metrics of a scope that are single numbers.
pub fn families(scope: Scope) -> Vec<Definition> {
    match scope {
        Scope::Process => ProcessBlock::DEFINITIONS.to_vec(),
        Scope::Proxy => ProxyBlock::DEFINITIONS.to_vec(),
        Scope::Worker => WorkerBlock::DEFINITIONS.to_vec(),
        Scope::Pool => pool_definitions(),
        Scope::Server => server_definitions(),
        Scope::Group => Vec::new(),
    }
}

/// The definitions of all metrics of a scope that are histograms.
pub fn time_families(scope: Scope) -> &'static [Definition] {
    match scope {
        Scope::Process | Scope::Proxy | Scope::Worker => &[],
        Scope::Pool => PoolBlock::TIMES,
        Scope::Server => ServerBlock::TIMES,
        Scope::Group => GROUP_TIMES,
    }
}

// === impl Definition ===

impl Definition {
    /// The metric's name without what the kind adds to samples: OpenMetrics' name of the family.
    pub fn family(&self, scope: Scope) -> String {
        let base = self.metric.unwrap_or(match scope {
            Scope::Server => self.name.strip_prefix("server_").unwrap_or(self.name),
            _ => self.name,
        });
        let unit = match self.kind {
            Kind::Timestamp if !base.ends_with("_seconds") => "_timestamp_seconds",
            Kind::Share => "_ratio",
            _ => "",
        };
        format!("{}{base}{unit}", scope.prefix())
    }

    /// What a sample's name has behind its family's.
    pub fn suffix(&self) -> &'static str {
        match self.kind {
            Kind::Counter | Kind::Spent => "_total",
            Kind::Gauge | Kind::Timestamp | Kind::Share | Kind::Time => "",
        }
    }

    /// Prometheus's word for its kind.
    pub fn metric_type(&self) -> &'static str {
        match self.kind {
            Kind::Counter | Kind::Spent => "counter",
            Kind::Gauge | Kind::Timestamp | Kind::Share => "gauge",
            Kind::Time => "histogram",
        }
    }

    /// How its number is shown.
    pub fn unit(&self) -> Unit {
        match self.kind {
            Kind::Counter | Kind::Gauge => Unit::Plain,
            Kind::Timestamp | Kind::Spent | Kind::Share | Kind::Time => Unit::Millionths,
        }
    }

    /// What it means, in the metric's own unit.
    pub fn metric_help(&self) -> Cow<'static, str> {
        match self.kind {
            Kind::Timestamp | Kind::Share => {
                let help = self.help.replace(", microseconds since 1970", ", seconds since 1970");
                help.replace(", in millionths", "").into()
            }
            _ => self.help.into(),
        }
    }
}

/// docs/metrics.md.
pub fn metrics_reference() -> String {
    let mut text = FRAME.to_owned();
    for scope in Scope::ALL {
        let mut table = "| Metric | Type | Meaning |\n|---|---|---|\n".to_owned();
        for definition in families(scope).iter().chain(time_families(scope)) {
            let name = definition.family(scope) + definition.suffix();
            // Writing to a String does not fail.
            let _ =
                writeln!(table, "| `{name}` | {} | {} |", definition.metric_type(), definition.metric_help());
        }
        text = text.replace(&format!("{{{{{scope:?}}}}}\n"), &table);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_of_prometheus_form() {
        let mut seen = HashSet::new();
        for scope in Scope::ALL {
            for definition in families(scope).iter().chain(time_families(scope)) {
                let name = definition.family(scope) + definition.suffix();
                assert!(!name.contains("total_total") && !name.contains("server_server"), "{name}");
                assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
                assert!(seen.insert(name.clone()), "{name} twice");
            }
        }
        for name in [
            "shardwise_server_requests_total",
            "shardwise_pool_client_connections",
            "process_cpu_seconds_total",
        ] {
            assert!(seen.contains(name), "{name}");
        }
    }
}
