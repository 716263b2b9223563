//! A client's own keys and values, and its random choice of what to say.

use std::collections::HashMap;

use crate::history::check::Check;
use crate::history::phrases::PHRASES;
use crate::history::template::{Node, parse};
use crate::support::Random;

/// The kinds of keys: what is usually found there.
const KINDS: [&str; 14] = [
    "text", "num", "raw", "hash", "tally", "list", "digits", "set", "zset", "lex", "stream", "log", "geo",
    "hll",
];
/// Where commands for other kinds go now and then. No other client reads these, so their values need not name their keys.
const WRONG_KINDS: [&str; 8] = ["num", "raw", "tally", "digits", "stream", "log", "geo", "hll"];
/// Hash tags per client. Keys of one tag live on one server, keys of different ones on any.
const TAGS: usize = 4;
/// Keys of each kind and tag: few, so that commands meet what others left.
const KEYS: usize = 2;
/// Members, fields and elements are mostly among so many.
const MEMBERS: usize = 16;
/// Absolute expiry times begin so far ahead, and relative ones end well before: never within reach of a test, nor of each other.
const FAR: u64 = 200_000;

/// All phrases, parsed; and the scripts they name.
#[derive(Debug)]
pub struct Book {
    phrases: Vec<Vec<Node>>,
    scripts: Vec<Script>,
    /// Seconds since 1970 when the test began.
    pub started: u64,
    /// How many clients there are.
    pub clients: usize,
}

/// A script that phrases call by its name.
#[derive(Debug)]
pub struct Script {
    /// Its name in the phrases.
    pub name: &'static str,
    /// Lua.
    pub body: &'static str,
    /// As SCRIPT LOAD calls it.
    pub sha: String,
}

/// A command to be sent.
#[derive(Debug)]
pub struct Step {
    /// Its words.
    pub args: Vec<Vec<u8>>,
    /// Which of them are keys.
    pub keys: Vec<usize>,
    /// Where DUMP's answer is kept, and RESTORE's taken from.
    pub shelf: (usize, &'static str),
    /// How its answer is compared.
    pub check: Check,
}

/// Makes up what one client says.
#[derive(Debug)]
pub struct Author<'a> {
    book: &'a Book,
    random: Random,
    client: usize,
    /// The newest stream id.
    newest: u64,
    dumps: HashMap<(usize, &'static str), Vec<u8>>,
}

/// What holds within one phrase.
struct Draft {
    step: Step,
    tag: usize,
    /// What `any` stands for.
    any: &'static str,
    /// All keys are of this kind, whatever the phrase wants.
    wrong: Option<&'static str>,
}

impl Book {
    /// For so many clients and a test that begins now; `load` gives the hash of a script.
    pub fn new(clients: usize, started: u64, mut load: impl FnMut(&str) -> String) -> Self {
        let phrases = PHRASES.iter().map(|(phrase, _)| parse(phrase)).collect();
        let scripts = SCRIPTS.iter().map(|&(name, body)| Script { name, body, sha: load(body) }).collect();
        Self { phrases, scripts, started, clients }
    }

    fn script(&self, name: &str) -> &Script {
        self.scripts.iter().find(|script| script.name == name).expect("phrases name scripts that exist")
    }
}

const SCRIPTS: &[(&str, &str)] = &[
    ("get", "return redis.call('GET', KEYS[1])"),
    ("set", "return redis.call('SET', KEYS[1], ARGV[1])"),
    ("push", "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('LRANGE', KEYS[1], 0, -1)"),
    ("types", "return {1, 'two', {3, {KEYS, ARGV}}, redis.status_reply('fine'), false, 'last'}"),
    ("wrong", "return redis.error_reply('MINE is ' .. KEYS[1])"),
];

/// The functions that phrases call.
pub const LIBRARY: &str = "#!lua name=history
redis.register_function('history_write', function(keys, args) return redis.call('SET', keys[1], args[1]) end)
redis.register_function{function_name = 'history_read', flags = {'no-writes'},
    callback = function(keys, args) return redis.call('GET', keys[1]) end}";

impl<'a> Author<'a> {
    /// For one client; what it says depends on `seed` and `client` only (but for what its own DUMPs answered).
    pub fn new(book: &'a Book, client: usize, seed: u64) -> Self {
        let mut mixed = Random::seeded(seed);
        let random = Random::seeded(mixed.bits() ^ (client as u64) << 32);
        Self { book, random, client, newest: 100, dumps: HashMap::new() }
    }

    /// The next pipeline.
    pub fn pipeline(&mut self) -> Vec<Step> {
        let most = *self.random.pick(&[1, 1, 4, 16, 64]);
        let len = 1 + self.random.below(most);
        (0..len).map(|_| self.step()).collect()
    }

    /// Keeps a DUMP's answer for later RESTOREs.
    pub fn shelve(&mut self, step: &Step, dump: Vec<u8>) {
        self.dumps.insert(step.shelf, dump);
    }

    /// How the client splits and words its requests.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn step(&mut self) -> Step {
        let phrase = self.random.below(PHRASES.len());
        let tag = self.random.below(TAGS);
        let check = PHRASES[phrase].1;
        let wrong = (self.random.below(40) == 0 && !matches!(check, Check::Foreign))
            .then(|| *self.random.pick(&WRONG_KINDS));
        let step = Step { args: Vec::new(), keys: Vec::new(), shelf: (tag, KINDS[0]), check };
        let any = *self.random.pick(&KINDS);
        let mut draft = Draft { step, tag, any, wrong };
        let book = self.book;
        self.fill(&book.phrases[phrase], &mut draft);
        if self.random.below(10) == 0 {
            for byte in &mut draft.step.args[0] {
                *byte = if self.random.below(2) == 0 { byte.to_ascii_lowercase() } else { *byte };
            }
        }
        draft.step
    }

    fn fill(&mut self, nodes: &[Node], draft: &mut Draft) {
        for node in nodes {
            match node {
                Node::Word(word) => self.word(word, draft),
                Node::Choice { optional: true, .. } if self.random.below(3) > 0 => {}
                Node::Choice { options, repeated, .. } => {
                    for _ in 0..if *repeated { 1 + self.random.below(4) } else { 1 } {
                        let option = self.random.below(options.len());
                        self.fill(&options[option], draft);
                    }
                }
            }
        }
    }

    fn word(&mut self, word: &'static str, draft: &mut Draft) {
        let (sigil, name) = word.split_at(1);
        let arg = match sigil {
            _ if name.is_empty() => word.into(),
            "-" | "#" if name.starts_with('%') => [sigil.as_bytes(), &self.value(&name[1..], draft)].concat(),
            "@" => self.key(self.client, draft.tag, name, draft),
            "~" => {
                let tag = self.random.below(TAGS);
                self.key(self.client, tag, name, draft)
            }
            "^" => {
                let (client, tag) = (self.random.below(self.book.clients), self.random.below(TAGS));
                self.key(client, tag, name, draft)
            }
            "$" => self.book.script(name).body.into(),
            "#" => self.book.script(name).sha.clone().into(),
            "%" => self.value(name, draft),
            _ => word.into(),
        };
        draft.step.args.push(arg);
    }

    /// Chooses a key of one of `kinds`, which is the next argument.
    fn key(&mut self, client: usize, tag: usize, kinds: &'static str, draft: &mut Draft) -> Vec<u8> {
        let kinds: Vec<&str> = kinds.split('/').collect();
        let kind = match (draft.wrong, *self.random.pick(&kinds)) {
            (Some(wrong), _) => wrong,
            (None, "any") => draft.any,
            (None, kind) => kind,
        };
        draft.tag = tag;
        draft.step.shelf = (tag, kind);
        draft.step.keys.push(draft.step.args.len());
        format!("{{c{client}.{tag}}}:{kind}:{}", self.random.below(KEYS)).into()
    }

    fn value(&mut self, name: &str, draft: &Draft) -> Vec<u8> {
        let random = &mut self.random;
        let past = self.book.started;
        match name {
            "v" => self.naming(draft),
            "m" => format!("{{c{}.{}}}m{}", self.client, draft.tag, random.below(MEMBERS)).into(),
            "b" => {
                let len = random.below(40);
                random.bytes(len)
            }
            "i" => (random.below(25) as i64 - 10).to_string().into(),
            "n" => (1 + random.below(5)).to_string().into(),
            "f" => format!("{}.{}", random.below(40) as i64 - 20, random.below(2) * 5).into(),
            "off" => random.below(1000).to_string().into(),
            "lon" => format!("{}.{}", random.below(360) as i64 - 180, random.below(1000)).into(),
            "lat" => format!("{}.{}", random.below(160) as i64 - 80, random.below(1000)).into(),
            "min" | "max" => self.score(name).into(),
            "lex" => self.lex(draft),
            "id" => format!("{}-0", self.newest - random.below(20) as u64).into(),
            "newid" => {
                self.newest += 1;
                format!("{}-{}", self.newest, random.pick(&["0", "0", "*"])).into()
            }
            // Relative times end where absolute ones begin, with room for the longest test between them.
            "ttl" => (FAR / 2 + random.below(5) as u64 * 10_000).to_string().into(),
            "ms" => ((FAR / 2 + random.below(5) as u64 * 10_000) * 1000).to_string().into(),
            "at" => (past + FAR + random.below(5) as u64 * 10_000).to_string().into(),
            "atms" => ((past + FAR + random.below(5) as u64 * 10_000) * 1000).to_string().into(),
            "dump" => {
                self.dumps.get(&draft.step.shelf).cloned().unwrap_or_else(|| b"no dump at all".to_vec())
            }
            "weights" => format!("{{c{}.{}}}:num:*", self.client, draft.tag).into(),
            other => panic!("no phrase may say %{other}"),
        }
    }

    /// A value that names the last key: short or longer, binary now and then, large once in a while.
    fn naming(&mut self, draft: &Draft) -> Vec<u8> {
        let mut value = match draft.step.keys.last() {
            Some(key) => draft.step.args[*key].clone(),
            None => b"nobody's".to_vec(),
        };
        value.extend(format!("={}", self.random.below(1000)).into_bytes());
        match self.random.below(400) {
            0 => value.resize(17_000 + self.random.below(120_000), b'.'),
            1..60 => value.resize(value.len() + self.random.below(300), b'_'),
            60..90 => value.extend_from_slice(b"\r\n$5\r\n\0\xff"),
            _ => {}
        }
        value
    }

    fn score(&mut self, name: &str) -> String {
        let score = self.random.below(50) as i64 - 25;
        match self.random.below(5) {
            0 => (if name == "min" { "-inf" } else { "+inf" }).to_owned(),
            1 => format!("({score}"),
            _ => score.to_string(),
        }
    }

    fn lex(&mut self, draft: &Draft) -> Vec<u8> {
        match self.random.below(6) {
            0 => b"-".to_vec(),
            1 => b"+".to_vec(),
            2 => [b"(", &self.value("m", draft)[..]].concat(),
            _ => [b"[", &self.value("m", draft)[..]].concat(),
        }
    }
}
