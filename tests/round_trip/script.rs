//! What arrives in one round, and what the client must get for it.

use super::{Owners, RoundTrip, array, bulk, keys, request};

/// One client's requests, in one read, and the replies of the servers, in the order in which they come.
pub struct Script {
    /// What it is called in reports.
    pub name: &'static str,
    /// Requests in it.
    pub requests: u32,
    servers: usize,
    sent: Vec<u8>,
    replies: Vec<(usize, Vec<u8>)>,
    expected: Vec<u8>,
}

/// In which order sixteen servers answer a pipeline of one request to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As it was asked: every reply goes straight through.
    Asked,
    /// The last first: fifteen replies have to wait for the first one.
    Reversed,
}

const PIPELINE: usize = 16;

impl Script {
    /// GET of three bytes, from one of four servers.
    pub fn get() -> Self {
        let mut script = Self::new("GET", 4);
        script.one_of_each(1, |key| request(["GET", key]), |_| bulk("xyz"));
        script
    }

    /// SET of three bytes, to one of four servers.
    pub fn set() -> Self {
        let mut script = Self::new("SET", 4);
        script.one_of_each(1, |key| request(["SET", key, "xyz"]), |_| b"+OK\r\n".to_vec());
        script
    }

    /// Sixteen GETs in one read, over `servers` servers, each of which answers its share in one read.
    pub fn pipeline(name: &'static str, servers: usize) -> Self {
        let mut script = Self::new(name, servers);
        script.one_of_each(PIPELINE, |key| request(["GET", key]), |i| bulk(format!("value {i:02}")));
        script
    }

    /// Sixteen GETs in one read, each from another server; the servers answer in this order.
    pub fn scattered(name: &'static str, order: Order) -> Self {
        let mut script = Self::new(name, PIPELINE);
        let owners = Owners::new(PIPELINE);
        for server in 0..PIPELINE {
            let key = owners.keys_of(server, 1).remove(0);
            let reply = bulk(format!("value {server:02}"));
            script.sent.extend(request(["GET", &key]));
            script.expected.extend(&reply);
            script.replies.push((server, reply));
        }
        script.requests = PIPELINE as u32;
        if order == Order::Reversed {
            script.replies.reverse();
        }
        script
    }

    /// MGET of sixteen keys, split over `servers` servers.
    pub fn mget(name: &'static str, servers: usize) -> Self {
        let mut script = Self::new(name, servers);
        let owners = Owners::new(servers);
        let keys: Vec<String> = keys().take(PIPELINE).collect();
        let value = |i: usize| bulk(format!("value {i:02}"));
        let mut shares = vec![Vec::new(); servers];
        for (i, key) in keys.iter().enumerate() {
            shares[owners.of(key)].push(value(i));
        }
        script.sent = request(["MGET"].into_iter().chain(keys.iter().map(String::as_str)));
        script.expected = array(&(0..PIPELINE).map(value).collect::<Vec<_>>());
        let answers = shares.iter().enumerate().filter(|(_, share)| !share.is_empty());
        script.replies = answers.map(|(server, share)| (server, array(share))).collect();
        assert_eq!(script.replies.len(), servers, "every server has a share");
        script.requests = 1;
        script
    }

    /// A round trip that it can be played on.
    pub fn stage(&self, clients: usize) -> RoundTrip {
        RoundTrip::new(clients, self.servers)
    }

    fn new(name: &'static str, servers: usize) -> Self {
        let (sent, replies, expected) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, requests: 0, servers, sent, replies, expected }
    }

    /// `count` requests for a key each; every server sends its replies in one read.
    fn one_of_each(
        &mut self,
        count: usize,
        ask: impl Fn(&str) -> Vec<u8>,
        answer: impl Fn(usize) -> Vec<u8>,
    ) {
        let owners = Owners::new(self.servers);
        let mut shares = vec![Vec::new(); self.servers];
        for (i, key) in keys().take(count).enumerate() {
            self.sent.extend(ask(&key));
            self.expected.extend(answer(i));
            shares[owners.of(&key)].extend(answer(i));
        }
        self.requests = count as u32;
        self.replies = shares.into_iter().enumerate().filter(|(_, share)| !share.is_empty()).collect();
    }
}

// === impl RoundTrip ===

impl RoundTrip {
    /// One round: `clients` clients send the script's requests in one turn, and get their replies in another.
    pub fn play(&self, script: &Script, clients: usize) {
        (0..clients).for_each(|client| self.receive(client, &script.sent));
        self.end_turn();
        for (server, replies) in &script.replies {
            self.sent_to_server(*server, |sent| assert!(!sent.is_empty()));
            (0..clients).for_each(|_| self.reply(*server, replies));
        }
        self.end_turn();
        for client in 0..clients {
            self.sent_to_client(client, |sent| assert!(sent == script.expected));
        }
    }
}
