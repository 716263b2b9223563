//! The command line: nutcracker's options with their meanings, and a few of our own.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};

use super::bench::BenchOptions;
use super::logging::Verbosity;
use crate::config::Threads;

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// Run the proxy.
    Serve(ServeOptions),
    /// Check the configuration file and end.
    Test {
        /// The file.
        conf_file: PathBuf,
    },
    /// Say what is wrong with a configuration file, or what a reload of it would change.
    Check(CheckOptions),
    /// Print the list of stats and end.
    Describe,
    /// Print where keys go and end.
    Explain(ExplainOptions),
    /// Put load on targets and compare them.
    Bench(Box<BenchOptions>),
}

/// Why there is nothing to do.
#[derive(Debug)]
pub enum Stop {
    /// Help or version was asked for: this is it.
    Shown(String),
    /// The command line is wrong: why, and the usage.
    Refused(String),
}

/// Options of the proxy itself.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    /// Run as a daemon; returns when it serves, or says why it can't
    #[arg(short = 'd', long)]
    pub daemonize: bool,

    /// Log verbosity, 0 to 11: 3 and less errors, 4 warnings, 5 start and end, 7 debug, 8 and more all
    #[arg(short = 'v', long, value_name = "N", default_value = "5")]
    pub verbose: Verbosity,

    /// Append the log to this file [default: standard error]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Configuration file
    #[arg(short = 'c', long, value_name = "FILE", default_value = "conf/nutcracker.yml")]
    pub conf_file: PathBuf,

    /// Port of the stats, 1 to 65535
    #[arg(short = 's', long, value_name = "PORT", default_value = "22222",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub stats_port: u16,

    /// Address of the stats (nutcracker: all addresses)
    #[arg(short = 'a', long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub stats_addr: String,

    /// Accepted and without effect: stats are always live
    #[arg(short = 'i', long, value_name = "MS")]
    pub stats_interval: Option<u64>,

    /// Write the process id to this file
    #[arg(short = 'p', long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,

    /// Accepted and without effect: there are no mbufs; 512 to 16777216
    #[arg(short = 'm', long, value_name = "SIZE",
          value_parser = clap::value_parser!(u32).range(512..=16_777_216))]
    pub mbuf_size: Option<u32>,

    /// Worker threads, overriding the file: a number or `auto`
    #[arg(long, value_name = "N|auto", value_parser = threads)]
    pub threads: Option<Threads>,
}

/// What is to be explained.
#[derive(Args, Clone, Debug)]
pub struct ExplainOptions {
    /// Configuration file
    #[arg(short = 'c', long, value_name = "FILE", default_value = "conf/nutcracker.yml")]
    pub conf_file: PathBuf,

    /// Keys are given as hex digits (`00ff`)
    #[arg(long, conflicts_with = "escaped")]
    pub hex: bool,

    /// Keys may contain `\xNN` (a byte in hex) and `\\`
    #[arg(long)]
    pub escaped: bool,

    /// Pool, by its name in the file
    #[arg(value_name = "POOL")]
    pub pool: String,

    /// Keys
    #[arg(value_name = "KEY", required = true)]
    pub keys: Vec<OsString>,
}

/// What is to be checked.
#[derive(Args, Clone, Debug)]
pub struct CheckOptions {
    /// Configuration file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// What runs now: the file as it was read, or the admin port of the process (HOST:PORT, PORT, or a unix socket; its password
    /// from REDISCLI_AUTH)
    #[arg(long, value_name = "FILE|ADMIN")]
    pub against: Option<String>,
}

/// A Redis sharding proxy: a drop-in successor to twemproxy (nutcracker).
#[derive(Parser, Debug)]
#[command(name = "shardwise", version, args_override_self = true, infer_long_args = true)]
#[command(disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    serve: ServeOptions,

    /// Check the configuration file and end
    #[arg(short = 't', long)]
    test_conf: bool,

    /// Print the list of stats and end
    #[arg(short = 'D', long)]
    describe_stats: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print, offline, where keys go and why
    Explain(ExplainOptions),

    /// Check a configuration file, and say what a reload of it would change; ends with 2 if it is wrong
    Check(CheckOptions),

    /// Put the same load on several targets in turn, and compare them
    Bench(Box<BenchOptions>),

    /// Print the manual page
    #[command(hide = true)]
    Man,

    /// Print what a shell needs to complete the options
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Reads the arguments, the program's name first.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Stop> {
    let line = CommandLine::try_parse_from(arguments).map_err(|error| stop(&error))?;
    Ok(match line.command {
        Some(Command::Explain(options)) => Request::Explain(options),
        Some(Command::Check(options)) => Request::Check(options),
        Some(Command::Bench(options)) => Request::Bench(options),
        Some(Command::Man) => return Err(Stop::Shown(manual())),
        Some(Command::Completions { shell }) => return Err(Stop::Shown(completions(shell))),
        None if line.describe_stats => Request::Describe,
        None if line.test_conf => Request::Test { conf_file: line.serve.conf_file },
        None => Request::Serve(line.serve),
    })
}

/// shardwise(1), in roff.
fn manual() -> String {
    let mut page = Vec::new();
    clap_mangen::Man::new(CommandLine::command()).render(&mut page).expect("writing to memory");
    String::from_utf8_lossy(&page).into_owned()
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "shardwise", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn stop(error: &clap::Error) -> Stop {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Shown(error.to_string()),
        // clap takes any stray word for a mistyped subcommand.
        ErrorKind::InvalidSubcommand => {
            let word = error.get(ContextKind::InvalidSubcommand).map_or("".into(), ToString::to_string);
            let usage = error.get(ContextKind::Usage).map_or("".into(), ToString::to_string);
            Stop::Refused(format!("error: unexpected argument '{word}' found\n\n{usage}"))
        }
        _ => Stop::Refused(with_usage(error.to_string())),
    }
}

/// clap leaves the usage out when only a value is wrong.
fn with_usage(text: String) -> String {
    if text.contains("Usage: ") {
        return text;
    }
    let reason = text.split("\n\nFor more information").next().unwrap_or_default();
    format!("{}\n\n{}", reason.trim_end(), CommandLine::command().render_usage())
}

fn threads(text: &str) -> Result<Threads, String> {
    if text == "auto" {
        return Ok(Threads::Auto);
    }
    let number = text.parse().ok().filter(|number: &NonZeroU32| number.get() <= 1024);
    number.map(Threads::Fixed).ok_or_else(|| "expected 1 to 1024, or auto".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, Stop> {
        parse(std::iter::once("shardwise").chain(line.split_whitespace()).map(OsString::from))
    }

    fn served(line: &str) -> ServeOptions {
        match parsed(line) {
            Ok(Request::Serve(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        match parsed(line) {
            Err(Stop::Refused(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_nutcrackers_but_for_the_stats_address() {
        let options = served("");
        assert_eq!(options.conf_file, PathBuf::from("conf/nutcracker.yml"));
        assert_eq!((options.stats_addr.as_str(), options.stats_port), ("127.0.0.1", 22222));
        assert_eq!(options.verbose, Verbosity::new(5));
        assert!(!options.daemonize && options.output.is_none() && options.pid_file.is_none());
    }

    #[test]
    fn every_option_of_nutcracker_is_taken_in_both_forms() {
        let short = served("-d -v 7 -o /l -c /c -s 1 -a ::1 -i 10 -p /p -m 512");
        let long = served(
            "--daemonize --verbose=7 --output=/l --conf-file=/c --stats-port=1 --stats-addr=::1 \
             --stats-interval=10 --pid-file=/p --mbuf-size=512",
        );
        let glued = served("-dv7 -o/l -c/c -s1 -a::1 -i10 -p/p -m512");
        for options in [&long, &glued] {
            assert_eq!(format!("{options:?}"), format!("{short:?}"));
        }
        assert!(
            matches!(parsed("-t -c /c"), Ok(Request::Test { conf_file }) if conf_file.as_os_str() == "/c")
        );
        assert!(matches!(parsed("--test-conf"), Ok(Request::Test { .. })));
        assert!(matches!(parsed("-D"), Ok(Request::Describe)));
        assert!(matches!(parsed("--describe-stats"), Ok(Request::Describe)));
        assert!(matches!(parsed("-h"), Err(Stop::Shown(_))));
        assert!(matches!(parsed("-V"), Err(Stop::Shown(text)) if text.starts_with("shardwise ")));
    }

    #[test]
    fn as_with_getopt_long_names_may_be_cut_and_the_last_of_two_wins() {
        assert_eq!(served("--conf /c --verb 3 -c /d -d -d").conf_file, PathBuf::from("/d"));
    }

    #[test]
    fn verbosity_is_clamped() {
        assert_eq!(served("-v 99999999999999999999").verbose, Verbosity::new(11));
        assert_eq!(served("-v 0").verbose, Verbosity::new(0));
    }

    #[test]
    fn bad_values_are_refused_with_one_clear_line_and_the_usage() {
        let bad = [
            "-v x",
            "-v -1",
            "-s 0",
            "-s 65536",
            "-s x",
            "-m 511",
            "-m 16777217",
            "-i x",
            "-x",
            "--nope",
            "-c",
            "--threads 0",
            "--threads many",
            "stray",
            "-d stray",
            "-?",
        ];
        for line in bad {
            let text = refused(line);
            let first = text.lines().next().unwrap();
            assert!(first.starts_with("error: ") && text.contains("Usage: shardwise"), "{line}: {text}");
        }
        assert!(refused("stray").starts_with("error: unexpected argument 'stray' found"));
    }

    #[test]
    fn threads_override_the_file() {
        assert_eq!(served("").threads, None);
        assert_eq!(served("--threads auto").threads, Some(Threads::Auto));
        assert_eq!(served("--threads 4").threads, NonZeroU32::new(4).map(Threads::Fixed));
    }

    #[test]
    fn explain_takes_a_pool_and_keys() {
        let Ok(Request::Explain(options)) = parsed("explain -c /c --hex alpha 00 ff") else {
            panic!("not understood")
        };
        assert_eq!((options.pool.as_str(), options.keys.len(), options.hex), ("alpha", 2, true));
        assert!(refused("explain alpha").contains("KEY"));
    }
}
