//! Options of `shardwise bench`: redis-benchmark's letters where it has one for the same thing.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::load::{Length, Settings, Target, Workload, command, named, read_script};
use crate::units::{Endpoint, Secret};

/// What is to be measured.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Tests: those of redis-benchmark by its names, and COMMAND:N for several keys (mget:16). \
Instead of tests, a command of your own may stand behind `--`, with __rand_int__ for a random key number and __data__ \
for a value.\n\nExample: shardwise bench --target redis=127.0.0.1:6379 --target proxy=127.0.0.1:22121 -c 50 -n 1000000 \
-d 1000 --keys 100000 -t set,get,mget:16 --html result.html"
)]
pub struct BenchOptions {
    /// Target, `NAME=HOST:PORT`, `NAME=/PATH` or without a name; may be repeated, the first is what others are compared with
    #[arg(long = "target", value_name = "NAME=ADDR", required = true, value_parser = target)]
    pub targets: Vec<Target>,

    /// Clients in parallel
    #[arg(short = 'c', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub clients: u32,

    /// Requests per test and target, all rounds together
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,

    /// Seconds per test and target, all rounds together, instead of a number of requests
    #[arg(long, value_name = "S", conflicts_with = "requests", value_parser = positive)]
    pub seconds: Option<f64>,

    /// Requests that a client sends before it waits for their replies
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub pipeline: u32,

    /// Bytes of a value
    #[arg(short = 'd', long = "data-size", value_name = "BYTES", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(..=512 * 1024 * 1024))]
    pub data_size: u32,

    /// Different keys
    #[arg(short = 'r', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub keys: u64,

    /// Tests, separated by commas [default: set,get]
    #[arg(short = 't', long, value_name = "TESTS", value_delimiter = ',')]
    pub tests: Vec<String>,

    /// File with a mix of commands, a line `RATIO COMMAND ARGUMENT…` for each; may be repeated
    #[arg(long = "script", value_name = "FILE")]
    pub scripts: Vec<PathBuf>,

    /// 1: keep connections, 0: a connection for each batch
    #[arg(short = 'k', long = "keep-alive", value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub keep_alive: u8,

    /// Requests per second, whatever the replies (open loop): latency counts from when a request was due
    #[arg(long, value_name = "N", value_parser = positive)]
    pub rate: Option<f64>,

    /// Rounds: in each of them every target has its turn with every test
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Threads of the generator [default: half of the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Password of the targets [default: $REDISCLI_AUTH]
    #[arg(short = 'a', long, value_name = "PASSWORD")]
    pub password: Option<String>,

    /// User for the password
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Database to SELECT
    #[arg(long, value_name = "N")]
    pub db: Option<u32>,

    /// Speak RESP3
    #[arg(short = '3')]
    pub resp3: bool,

    /// Compare replies with what they must be: values depend on their keys
    #[arg(long)]
    pub verify: bool,

    /// Write all keys before the first round; with --verify a missing one is then an error
    #[arg(long)]
    pub fill: bool,

    /// End a turn after so many seconds without any reply
    #[arg(long, value_name = "S", default_value = "10", value_parser = positive)]
    pub give_up: f64,

    /// Processes of a target on this machine, `NAME=PID,…`: their CPU per request is reported; may be repeated
    #[arg(long = "pid", value_name = "NAME=PID", value_parser = pids)]
    pub pids: Vec<(String, Vec<u32>)>,

    /// Seed of the random keys: the same one gives the same keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Write the results as JSON; `-`: to the standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the table as CSV; `-`: to the standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write one page with table and plots; `-`: to the standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// No progress bar, no histogram
    #[arg(short = 'q', long)]
    pub quiet: bool,

    /// A command of your own
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl BenchOptions {
    /// The load.
    pub fn settings(&self) -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let clients = self.clients as usize;
        let threads = self.threads.map_or((cores / 2).max(1), |threads| threads as usize);
        let length = match self.seconds {
            Some(seconds) => Length::Time(Duration::from_secs_f64(seconds)),
            None => Length::Requests(self.requests),
        };
        Settings {
            clients,
            threads: threads.min(clients),
            pipeline: self.pipeline as usize,
            value_bytes: self.data_size as usize,
            keys: self.keys,
            length,
            rounds: self.rounds as usize,
            keep_alive: self.keep_alive == 1,
            resp3: self.resp3,
            database: self.db,
            rate: self.rate,
            verify: self.verify,
            fill: self.fill,
            give_up: Duration::from_secs_f64(self.give_up),
            seed: self.seed,
        }
    }

    /// The targets, with their passwords and processes.
    pub fn targets(&self) -> Result<Vec<Target>, String> {
        let password = self.password.clone().or_else(|| std::env::var("REDISCLI_AUTH").ok());
        let mut targets = self.targets.clone();
        for target in &mut targets {
            target.password = password.as_ref().map(|password| Secret::new(password.as_bytes()));
            target.user = self.user.clone();
        }
        for (i, target) in targets.iter().enumerate() {
            if targets[..i].iter().any(|other| other.name == target.name) {
                return Err(format!("two targets are called '{}'", target.name));
            }
        }
        for (name, pids) in &self.pids {
            match targets.iter_mut().find(|target| target.name == *name) {
                Some(target) => target.pids.extend(pids),
                None => return Err(format!("--pid: no target is called '{name}'")),
            }
        }
        Ok(targets)
    }

    /// The tests, in the order given: `-t`, scripts, the command.
    pub fn tests(&self) -> Result<Vec<Workload>, String> {
        let (value_bytes, verify) = (self.data_size as usize, self.verify);
        let mut names = self.tests.clone();
        if names.is_empty() && self.scripts.is_empty() && self.command.is_empty() {
            names = vec!["set".into(), "get".into()];
        }
        let mut tests = Vec::new();
        for name in &names {
            tests.extend(named(name, value_bytes, verify)?);
        }
        for path in &self.scripts {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.file_stem().map_or("script".into(), |stem| stem.to_string_lossy());
            tests.push(read_script(&name, &text, value_bytes, verify)?);
        }
        if !self.command.is_empty() {
            tests.push(command(&self.command, value_bytes, verify));
        }
        Ok(tests)
    }
}

fn target(text: &str) -> Result<Target, String> {
    let (name, address) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() {
        return Err("expected NAME=HOST:PORT or NAME=/PATH".into());
    }
    let endpoint = match address.strip_prefix("unix:").unwrap_or(address) {
        path if path.starts_with('/') => Endpoint::unix(path),
        address => match address.rsplit_once(':') {
            Some((host, port)) => Endpoint::tcp(host, port),
            None => return Err(format!("'{address}': expected HOST:PORT or /PATH")),
        },
    };
    let endpoint = endpoint.map_err(|error| format!("'{address}': {error}"))?;
    Ok(Target { name: name.into(), endpoint, user: None, password: None, pids: Vec::new() })
}

fn pids(text: &str) -> Result<(String, Vec<u32>), String> {
    let (name, list) = text.split_once('=').ok_or("expected NAME=PID")?;
    let pids = list.split(',').map(str::parse).collect::<Result<_, _>>();
    Ok((name.into(), pids.map_err(|_| format!("'{list}': expected process ids with commas between them"))?))
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value: &f64| *value > 0.0 && *value <= 1e9)
        .ok_or_else(|| "expected a number above 0".into())
}
