//! What is to be run, and against what.

use std::time::Duration;

use crate::units::{Endpoint, Secret};

/// The load that every target gets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections in parallel, 1 or more.
    pub clients: usize,
    /// Threads of the generator, 1…`clients`.
    pub threads: usize,
    /// Requests that a client sends before it waits for replies, 1 or more.
    pub pipeline: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Different keys, 1 or more: `__rand_int__` is one of 0…keys-1.
    pub keys: u64,
    /// When a test on a target is over, all rounds together.
    pub length: Length,
    /// Rounds, 1 or more.
    pub rounds: usize,
    /// Whether connections are kept; otherwise each batch has one of its own.
    pub keep_alive: bool,
    /// Whether connections say `HELLO 3`.
    pub resp3: bool,
    /// What connections SELECT; `None`: nothing.
    pub database: Option<u32>,
    /// Requests per second that are due, whatever the replies (open loop); `None`: as fast as replies come.
    pub rate: Option<f64>,
    /// Whether values depend on their keys, and replies are compared with what they must be.
    pub verify: bool,
    /// Whether all keys are written before the first round; with `verify` none may then be missing.
    pub fill: bool,
    /// A turn without any reply for so long ends; what is outstanding is counted as lost.
    pub give_up: Duration,
    /// Seed of the random keys: all targets get the same.
    pub seed: u64,
}

/// How long a test runs on each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many requests.
    Requests(u64),
    /// So long.
    Time(Duration),
}

/// A server or proxy to be measured.
#[derive(Clone, Debug)]
pub struct Target {
    /// As the report calls it.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// For AUTH; `None`: the default user.
    pub user: Option<String>,
    /// For AUTH; `None`: no AUTH.
    pub password: Option<Secret>,
    /// Its processes, if they are on this machine and their CPU is to be measured.
    pub pids: Vec<u32>,
}

impl Settings {
    /// The length of one turn: an equal part for each round, the remainder in the first ones.
    pub fn length_of_round(&self, round: usize) -> Length {
        let rounds = self.rounds as u64;
        match self.length {
            Length::Requests(n) => {
                Length::Requests((n / rounds + u64::from((round as u64) < n % rounds)).max(1))
            }
            Length::Time(time) => Length::Time(time / u32::try_from(rounds).unwrap_or(u32::MAX)),
        }
    }
}
