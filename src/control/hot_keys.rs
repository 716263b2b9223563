//! Hot and big keys: what each worker has sampled, as one list.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::questions::ask_all;
use super::report::Sources;
use crate::stats::Heavy;
use crate::topology::PoolId;
use crate::worker::{Ask, KeySample, Order};

/// By what keys are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Requests: hot keys.
    Requests,
    /// Bytes of requests and replies: big keys, or hot ones that aren't small.
    Bytes,
}

/// A key among the heaviest.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyKey {
    /// Name of its pool.
    pub pool: String,
    /// Its first bytes; what isn't printable is escaped.
    pub key: String,
    /// Requests or bytes a second.
    pub rate: f64,
    /// Its part of all requests or bytes.
    pub share: f64,
    /// How much less its part may be: it may have taken the place of another key.
    pub error: f64,
    /// The largest request or reply that was sampled, in bytes.
    pub largest: u64,
}

/// Keys that the live page shows.
const ON_PAGE: usize = 10;

/// What all workers know. One that doesn't answer in time is left out.
pub async fn samples(workers: &[UnboundedSender<Order>]) -> Vec<KeySample> {
    let answers = ask_all(workers, Ask::Keys).await;
    answers.into_iter().map(|(_, sample)| sample).collect()
}

/// The `most` heaviest keys over all workers, the heaviest first. A worker's rate is that of its own time; keys of pools that have gone
/// are left out.
pub fn heaviest(samples: &[KeySample], sources: &Sources, by: By, most: usize) -> Vec<HeavyKey> {
    let generation = sources.generation();
    let name = |pool: u32| {
        let at = generation.ids.iter().position(|id| *id == PoolId(pool))?;
        generation.config.pools.get(at).map(|pool| pool.name.clone())
    };
    let of = |sample: &KeySample| match by {
        By::Requests => sample.requests.clone(),
        By::Bytes => sample.bytes.clone(),
    };
    let all: u64 = samples.iter().map(|sample| of(sample).0).sum();
    let part = |weight: u64| weight as f64 / all.max(1) as f64;
    let mut keys: HashMap<(u32, Box<[u8]>), HeavyKey> = HashMap::new();
    for sample in samples {
        let per_second = f64::from(sample.one_in) / sample.time.as_secs_f64().max(1.0);
        for Heavy { pool, name: key, weight, error, largest } in of(sample).1 {
            let Some(pool_name) = name(pool) else { continue };
            let shown = key.escape_ascii().to_string();
            let sum = keys.entry((pool, key)).or_insert_with(|| HeavyKey {
                pool: pool_name,
                key: shown,
                rate: 0.0,
                share: 0.0,
                error: 0.0,
                largest: 0,
            });
            sum.rate += weight as f64 * per_second;
            sum.share += part(weight);
            sum.error += part(error);
            sum.largest = sum.largest.max(largest);
        }
    }
    let mut keys: Vec<HeavyKey> = keys.into_values().collect();
    // What is certain decides: a key that has only just come has the weight of the one whose place it took. One of which nothing
    // is certain is as good as any other, and not shown.
    let certain = |key: &HeavyKey| key.share - key.error;
    keys.retain(|key| certain(key) > 0.0);
    keys.sort_by(|a, b| certain(b).total_cmp(&certain(a)).then_with(|| a.key.cmp(&b.key)));
    keys.truncate(most);
    keys
}

/// What the live page shows; `null` when nothing is sampled.
pub async fn on_page(workers: &[UnboundedSender<Order>], sources: &Sources) -> Value {
    if sources.config.process.hot_keys == 0 {
        return Value::Null;
    }
    let samples = samples(workers).await;
    let list = |by| {
        let keys = heaviest(&samples, sources, by, ON_PAGE);
        let key = |key: HeavyKey| json!({ "pool": key.pool, "key": key.key, "rate": key.rate, "share": key.share, "error": key.error });
        keys.into_iter().map(key).collect::<Value>()
    };
    json!({ "one_in": sources.config.process.hot_keys, "requests": list(By::Requests), "bytes": list(By::Bytes) })
}

impl HeavyKey {
    /// A line of the admin port: pairs of name and value.
    pub fn line(&self, by: By) -> Vec<String> {
        let Self { pool, key, rate, share, error, largest } = self;
        let rate = match by {
            By::Requests => format!("requests_per_second={rate:.0}"),
            By::Bytes => format!("bytes_per_second={rate:.0}"),
        };
        let mut line = vec![format!("pool={pool}"), format!("key=\"{key}\""), rate];
        line.extend([format!("share={share:.4}"), format!("error={error:.4}")]);
        if by == By::Bytes {
            line.push(format!("largest_bytes={largest}"));
        }
        line
    }
}
