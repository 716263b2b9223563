//! A client that pipelines, and does not always behave.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::request::{Keys, Verdict, Wanted};
use crate::support::{PATIENCE, Random, Resp};

/// A client of one pool.
#[derive(Debug)]
pub struct Client<'a> {
    place: Place<'a>,
    number: usize,
    random: Random,
    resp: Resp,
    keys: Keys,
    /// Connections so far.
    lives: usize,
    /// Requests so far.
    serial: u64,
    tally: Tally,
}

/// The pool that a client uses.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its name.
    pub pool: &'a str,
    /// Its port.
    pub port: u16,
    /// Whether it neither ejects servers nor gives requests up.
    pub steady: bool,
    /// Addresses of its servers, one of which each error must name.
    pub servers: &'a [String],
}

/// Answers by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The right ones.
    pub right: u64,
    /// Errors that are clear.
    pub errors: u64,
    /// Clients that were closed in the middle of a large answer, as they must be when its server fails.
    pub cut: u64,
    /// Connections that the client itself dropped.
    pub dropped: u64,
}

/// How a client goes about a pipeline.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// One write.
    Whole,
    /// A few bytes at a time.
    InPieces,
    /// One write, and it is long until it reads.
    ReadsLate,
    /// Behind the last request it closes its side.
    HalfCloses,
    /// It goes in the middle of a request.
    LeavesMidRequest,
    /// It goes in the middle of a reply.
    LeavesMidReply,
}

impl<'a> Client<'a> {
    /// Connects.
    pub fn new(place: Place<'a>, number: usize, seed: u64) -> Self {
        Self {
            place,
            number,
            random: Random::seeded(seed ^ (number as u64) << 32),
            resp: Resp::port(place.port),
            keys: Keys::new(place.pool, number, 0, place.steady),
            lives: 0,
            serial: 0,
            tally: Tally::default(),
        }
    }

    /// One pipeline. The error says what was wrong, or lost.
    pub fn pipeline(&mut self) -> Result<(), String> {
        let manner = match self.random.below(200) {
            0..6 => Manner::InPieces,
            6..10 => Manner::ReadsLate,
            10..12 => Manner::HalfCloses,
            12..14 => Manner::LeavesMidRequest,
            14..16 => Manner::LeavesMidReply,
            _ => Manner::Whole,
        };
        let most = if matches!(manner, Manner::InPieces) { 4 } else { 60 };
        let mut bytes = Vec::new();
        let wanted: Vec<Wanted> = (0..1 + self.random.below(most))
            .map(|_| {
                self.serial += 1;
                self.keys.draw(&mut self.random, self.serial, &mut bytes)
            })
            .collect();
        match manner {
            Manner::Whole => self.send_and_read(&[&bytes], &wanted),
            Manner::InPieces => {
                let size = 1 + self.random.below(3).max(bytes.len() / 500);
                self.send_and_read(&bytes.chunks(size).collect::<Vec<_>>(), &wanted)
            }
            Manner::ReadsLate => self.read_late(bytes, &wanted),
            Manner::HalfCloses => {
                // The whole fits any buffer, or the write could wait for reads.
                bytes.clear();
                let wanted: Vec<Wanted> = (0..3).map(|_| self.echo(&mut bytes)).collect();
                if self.resp.try_send_raw(&bytes).and_then(|()| self.resp.try_finish()).is_ok() {
                    self.read_all(&wanted)?;
                    if !self.resp.closed() {
                        return Err(format!("{}: not closed after its FIN", self.who()));
                    }
                }
                self.reconnect();
                Ok(())
            }
            Manner::LeavesMidRequest => {
                bytes.truncate(self.random.below(bytes.len()).min(30_000));
                let _gone = self.resp.try_send_raw(&bytes);
                self.leave();
                Ok(())
            }
            Manner::LeavesMidReply => {
                bytes.truncate(30_000);
                // At least one answer comes, since one request goes first that any server's state answers.
                let mut first = Vec::new();
                self.echo(&mut first);
                first.extend(bytes);
                if self.resp.try_send_raw(&first).is_ok() {
                    let _some = self.resp.read_some();
                }
                self.leave();
                Ok(())
            }
        }
    }

    /// What it got.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn echo(&mut self, bytes: &mut Vec<u8>) -> Wanted {
        self.serial += 1;
        let token = format!("{} {}", self.who(), self.serial);
        bytes.extend(crate::support::encode(["PING", &token]));
        Wanted::Echo(token)
    }

    fn send_and_read(&mut self, pieces: &[&[u8]], wanted: &[Wanted]) -> Result<(), String> {
        let mut sender = self.resp.sender();
        std::thread::scope(|scope| {
            // From beside, where a write could wait for our reads.
            let long = pieces.iter().map(|piece| piece.len()).sum::<usize>() > 16 << 10;
            let mut send = move || pieces.iter().try_for_each(|piece| sender.send(piece));
            // Where sending fails, reading tells why.
            if long {
                scope.spawn(send);
            } else {
                let _reading_tells = send();
            }
            self.read_all(wanted)
        })
    }

    fn read_late(&mut self, bytes: Vec<u8>, wanted: &[Wanted]) -> Result<(), String> {
        let mut sender = self.resp.sender();
        let pause = Duration::from_millis(self.random.below(400) as u64);
        std::thread::scope(|scope| {
            scope.spawn(move || sender.send(&bytes));
            std::thread::sleep(pause);
            self.read_all(wanted)
        })
    }

    /// Reads an answer to each; the end of the connection is right in the middle of a large value only.
    fn read_all(&mut self, wanted: &[Wanted]) -> Result<(), String> {
        let outcome = self.read_each(wanted);
        if outcome.is_err() {
            // Whoever still sends on this connection must not wait for ever.
            let _ended = self.resp.try_finish();
        }
        outcome
    }

    fn read_each(&mut self, wanted: &[Wanted]) -> Result<(), String> {
        for (at, one) in wanted.iter().enumerate() {
            match self.resp.try_read() {
                Ok(answer) => match self.keys.judge(one, &answer, self.place.servers) {
                    Verdict::Right => self.tally.right += 1,
                    Verdict::Error => self.tally.errors += 1,
                    Verdict::Wrong(why) => return Err(format!("{}: WRONG: {why}", self.who())),
                },
                Err(error) if is_end(&error) && one.may_be_cut() => {
                    self.tally.cut += 1;
                    self.reconnect();
                    return Ok(());
                }
                Err(error) => {
                    let lost = wanted.len() - at;
                    return Err(format!("{}: LOST {lost}, after {PATIENCE:?}: {error}; {one:?}", self.who()));
                }
            }
        }
        Ok(())
    }

    /// Goes without a word, and comes back.
    fn leave(&mut self) {
        self.tally.dropped += 1;
        self.reconnect();
    }

    fn reconnect(&mut self) {
        self.lives += 1;
        self.resp = Resp::port(self.place.port);
        self.keys = Keys::new(self.place.pool, self.number, self.lives, self.place.steady);
    }

    fn who(&self) -> String {
        format!("client {} of {}, connection {}", self.number, self.place.pool, self.lives)
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.right += other.right;
        self.errors += other.errors;
        self.cut += other.cut;
        self.dropped += other.dropped;
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
