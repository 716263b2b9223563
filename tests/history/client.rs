//! One client: says the same to the proxy and to the reference, and compares.

use std::fmt;
use std::io;

use crate::history::author::{Author, Step};
use crate::history::check::{Command, agrees, questions};
use crate::history::coverage::Coverage;
use crate::support::{Random, Resp, Value, encode};

/// A client with its connections.
#[derive(Debug)]
pub struct Client<'a> {
    /// Its number.
    pub number: usize,
    /// What it says.
    pub author: Author<'a>,
    /// Its connection to the proxy.
    pub proxy: Resp,
    /// Its connection to the one plain server.
    pub reference: Resp,
    /// What it has sent.
    pub coverage: Coverage,
    /// Pipelines so far.
    pub pipelines: usize,
}

/// Why a client can't go on.
#[derive(Debug)]
pub enum Trouble {
    /// An answer is wrong.
    Differs(String),
    /// A connection broke, or an answer didn't come.
    Broken { peer: &'static str, error: io::Error },
}

impl Client<'_> {
    /// Sends one pipeline through the proxy, then what belongs to it to the reference, and compares answer by answer.
    pub fn pipeline(&mut self) -> Result<(), Trouble> {
        let steps = self.author.pipeline();
        let random = self.author.random();
        let bytes: Vec<u8> = steps.iter().flat_map(|step| words(step, random)).collect();
        let packets = split(&bytes, random);
        let replies = self.proxy.packets(&packets, steps.len()).map_err(Trouble::broken("the proxy"))?;

        let asked: Vec<Vec<Command>> =
            steps.iter().zip(&replies).map(|(step, reply)| questions(step, reply)).collect();
        let bytes: Vec<u8> = asked.iter().flatten().flat_map(encode).collect();
        let count = asked.iter().map(Vec::len).sum();
        let answers = self.reference.packets(&[&bytes], count).map_err(Trouble::broken("the reference"))?;

        let mut answers = answers.as_slice();
        for (at, (step, reply)) in steps.iter().zip(&replies).enumerate() {
            let (own, rest) = answers.split_at(asked[at].len());
            answers = rest;
            if !agrees(step, reply, own) {
                return Err(Trouble::Differs(self.report(&steps[..=at], &replies, &asked[at], own)));
            }
            self.coverage.note(step, reply);
            if let (Value::Bulk(dump), true) = (reply, step.args[0].eq_ignore_ascii_case(b"DUMP")) {
                self.author.shelve(step, dump.clone());
            }
        }
        self.pipelines += 1;
        Ok(())
    }

    /// `steps` end with the one that went wrong.
    fn report(&self, steps: &[Step], replies: &[Value], asked: &[Command], answers: &[Value]) -> String {
        let (last, before) = steps.split_last().expect("there is the one that went wrong");
        let touched: Vec<&Vec<u8>> = last.keys.iter().map(|key| &last.args[*key]).collect();
        let is_related = |step: &Step| step.keys.iter().any(|key| touched.contains(&&step.args[*key]));
        let mut text =
            format!("client {}, pipeline {}, command {}:\n", self.number, self.pipelines, before.len());
        for (step, reply) in before.iter().zip(replies).filter(|(step, _)| is_related(step)) {
            text.push_str(&format!("  before:    {} → {reply:?}\n", show(&step.args)));
        }
        text.push_str(&format!("  proxy:     {} → {:?}\n", show(&last.args), replies[before.len()]));
        for (question, answer) in asked.iter().zip(answers) {
            text.push_str(&format!("  reference: {} → {answer:?}\n", show(question)));
        }
        text
    }
}

impl Trouble {
    fn broken(peer: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Broken { peer, error }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(report) => f.write_str(report),
            Self::Broken { peer, error } => write!(f, "no answer from {peer}: {error}"),
        }
    }
}

/// The bytes of one request: an array of bulk strings, or an inline command now and then.
fn words(step: &Step, random: &mut Random) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    let fits = step.args.iter().all(|arg| !arg.is_empty() && arg.len() < 1000 && arg.iter().all(is_plain));
    match random.below(30) {
        0 if fits => [&step.args.join(&b' ')[..], b"\r\n"].concat(),
        1 if fits => [&step.args.join(&b"  "[..])[..], b"\n"].concat(),
        _ => encode(&step.args),
    }
}

/// Cuts a pipeline into packets.
fn split<'b>(bytes: &'b [u8], random: &mut Random) -> Vec<&'b [u8]> {
    let most = *random.pick(&[usize::MAX, usize::MAX, 4000, 300, 7]);
    let mut packets = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        // Tiny packets for a while only.
        let most = if packets.len() < 60 { most.min(rest.len()) } else { rest.len() };
        let len = if most == bytes.len() { most } else { 1 + random.below(most) };
        let (packet, behind) = rest.split_at(len);
        packets.push(packet);
        rest = behind;
    }
    packets
}

fn show(args: &[Vec<u8>]) -> String {
    let words = args.iter().map(|arg| match arg.len() {
        0 => "\"\"".to_owned(),
        1..=200 => arg.escape_ascii().to_string(),
        len => format!("{}… ({len} bytes)", arg[..60].escape_ascii()),
    });
    words.collect::<Vec<_>>().join(" ")
}
