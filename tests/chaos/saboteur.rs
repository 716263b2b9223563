//! What happens to servers while clients use them.

use std::time::{Duration, Instant};

use crate::support::{Random, Redis};

/// Breaks servers, and mends them.
#[derive(Debug)]
pub struct Saboteur<'a> {
    servers: Vec<(&'a mut Redis, State)>,
    random: Random,
    /// What it has done.
    pub deeds: Deeds,
}

/// How often it did what.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deeds {
    /// SIGKILL, and started again.
    pub kills: u64,
    /// SIGSTOP, and SIGCONT.
    pub stops: u64,
    /// CLIENT KILL of every connection, or of one.
    pub cuts: u64,
    /// A server that is busy for a while (DEBUG SLEEP).
    pub naps: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Well,
    Dead(Instant),
    Stopped(Instant),
    /// It sleeps: nobody may ask it anything until then.
    Asleep(Instant),
}

impl<'a> Saboteur<'a> {
    /// For these servers, which are well.
    pub fn new(servers: impl IntoIterator<Item = &'a mut Redis>, seed: u64) -> Self {
        let servers = servers.into_iter().map(|server| (server, State::Well)).collect();
        Self { servers, random: Random::seeded(seed), deeds: Deeds::default() }
    }

    /// One deed, or none. Returns how long to wait until the next.
    pub fn act(&mut self) -> Duration {
        self.mend(Instant::now());
        let at = self.random.below(self.servers.len());
        let later = |random: &mut Random, most| {
            Instant::now() + Duration::from_millis(30 + random.below(most) as u64)
        };
        let (server, state) = &mut self.servers[at];
        if matches!(state, State::Well) {
            match self.random.below(10) {
                0..3 => {
                    server.kill();
                    *state = State::Dead(later(&mut self.random, 1500));
                    self.deeds.kills += 1;
                }
                3..6 => {
                    server.pause();
                    *state = State::Stopped(later(&mut self.random, 1500));
                    self.deeds.stops += 1;
                }
                6..8 => {
                    server.client().call(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
                    self.deeds.cuts += 1;
                }
                8 => {
                    self.cut_one(at);
                    self.deeds.cuts += 1;
                }
                _ => {
                    let nap = 0.02 + self.random.below(400) as f64 / 1000.0;
                    server.client().send(["DEBUG", "SLEEP", &nap.to_string()]);
                    *state = State::Asleep(Instant::now() + Duration::from_secs_f64(nap));
                    self.deeds.naps += 1;
                }
            }
        }
        Duration::from_millis(20 + self.random.below(180) as u64)
    }

    /// Makes all of them well.
    pub fn end(mut self) -> Deeds {
        self.mend(Instant::now() + Duration::from_secs(3600));
        self.deeds
    }

    /// Makes those well whose time it is.
    fn mend(&mut self, now: Instant) {
        for (server, state) in &mut self.servers {
            match *state {
                State::Dead(until) if until <= now => server.restart(),
                State::Stopped(until) if until <= now => server.resume(),
                State::Asleep(until) if until <= now => {}
                _ => continue,
            }
            *state = State::Well;
        }
    }

    /// Closes one of the server's connections.
    fn cut_one(&mut self, at: usize) {
        let mut client = self.servers[at].0.client();
        let list = client.call(["CLIENT", "LIST", "TYPE", "normal"]);
        let text = String::from_utf8_lossy(list.bytes()).into_owned();
        let own = client.call(["CLIENT", "ID"]).int().to_string();
        let ids = text.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
        let ids: Vec<&str> = ids.filter(|id| *id != own).collect();
        if !ids.is_empty() {
            let id = ids[self.random.below(ids.len())];
            client.call(["CLIENT", "KILL", "ID", id]);
        }
    }
}
