//! Servers that share the keys by hash, in one of twemproxy's three ways.

use std::num::NonZeroU32;

use super::modula::Run;
use super::{Continuum, Draw, ServerIx, Wheel, fingerprint};
use crate::config::Distribution;
use crate::hash::KeyHash;

/// The live servers of a pool, at least one, and how a key chooses among them.
#[derive(Clone, Debug, PartialEq)]
pub enum Ring {
    /// Consistent hashing.
    Ketama(Continuum),
    /// Hash modulo weights.
    Modula(Wheel),
    /// Any of them, whatever the key and the weights.
    Random(Vec<ServerIx>),
}

/// A server that takes part in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its index.
    pub server: ServerIx,
    /// Its name in the configuration, which alone decides where its points are.
    pub label: &'a str,
    /// Its part of the keys, relative to the others'.
    pub weight: NonZeroU32,
}

impl Ring {
    /// The ring of `members`, which are in the pool's order.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(distribution: Distribution, members: &[Member<'_>]) -> Self {
        assert!(!members.is_empty(), "a ring has at least one server");
        match distribution {
            Distribution::Ketama => Self::Ketama(Continuum::new(members)),
            Distribution::Modula => Self::Modula(Wheel::new(members)),
            Distribution::Random => Self::Random(members.iter().map(|member| member.server).collect()),
        }
    }

    /// The server of `key`. Random doesn't look at the key.
    #[inline]
    pub fn server(&self, hash: &KeyHash, key: &[u8], draw: &Draw) -> ServerIx {
        match self {
            Self::Ketama(continuum) => continuum.server(hash.of(key)),
            Self::Modula(wheel) => wheel.server(hash.of(key)),
            // More than u32::MAX servers can't be: their index has 16 bits.
            Self::Random(servers) => servers[draw.below(servers.len() as u32) as usize],
        }
    }

    /// See [`Topology::fingerprint`](super::Topology::fingerprint).
    pub(super) fn fingerprint(&self) -> u64 {
        match self {
            Self::Ketama(continuum) => fingerprint::of(continuum.points()),
            Self::Modula(wheel) => fingerprint::of(wheel.runs().flat_map(slots)),
            Self::Random(servers) => fingerprint::of(servers.iter().map(|&server| (0, server))),
        }
    }

    /// Tells `add` each server's part of the hash values in percent, possibly in several pieces.
    pub(super) fn shares(&self, mut add: impl FnMut(ServerIx, f64)) {
        match self {
            Self::Ketama(continuum) => {
                continuum.arcs().for_each(|(server, arc)| add(server, 100.0 * arc as f64 / 2f64.powi(32)));
            }
            Self::Modula(wheel) => {
                let slots = wheel.slots() as f64;
                wheel.runs().for_each(|run| add(run.server, 100.0 * run.length as f64 / slots));
            }
            Self::Random(servers) => {
                servers.iter().for_each(|&server| add(server, 100.0 / servers.len() as f64));
            }
        }
    }
}

/// A run as fingerprinted: its slots, each with value 0. A run so long that nobody would want to wait for it counts as
/// one point whose value is its length.
fn slots(run: Run) -> impl Iterator<Item = (u32, ServerIx)> {
    const LONG: u64 = 1 << 16;
    let (value, times) = if run.length < LONG { (0, run.length as usize) } else { (run.length as u32, 1) };
    std::iter::repeat_n((value, run.server), times)
}
