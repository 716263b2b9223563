//! Command mixes from a file: a line `RATIO COMMAND ARGUMENT…` for each command.

use super::template::Template;
use super::workload::{Weighted, Workload};
use crate::resp::{Args, Limits, RequestScanner, Scanned, inline_to_array};

/// Most commands of one mix: they are searched one by one.
const MOST_COMMANDS: usize = 1000;

/// Reads a mix. Empty lines and those that begin with `#` mean nothing; quoting is redis-cli's; `__rand_int__` and
/// `__data__` stand for a random number and a value. `Err`: the line and what is wrong with it.
pub fn read_script(name: &str, text: &str, value_bytes: usize, verify: bool) -> Result<Workload, String> {
    let mut commands = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let command =
            weighted(line, value_bytes, verify).map_err(|why| format!("{name}:{}: {why}", number + 1))?;
        commands.push(command);
    }
    match commands.len() {
        0 => Err(format!("{name}: no command; expected lines like '80 GET key:__rand_int__'")),
        1..=MOST_COMMANDS => Ok(Workload::mix(name, commands)),
        n => Err(format!("{name}: {n} commands, {MOST_COMMANDS} at most")),
    }
}

/// A test of one command, given as its words. It is called by its first one.
pub fn command(words: &[String], value_bytes: usize, verify: bool) -> Workload {
    let args: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let name = words.first().map_or("command", String::as_str).to_ascii_lowercase();
    Workload::one(name, Template::new(&args, value_bytes, verify))
}

fn weighted(line: &str, value_bytes: usize, verify: bool) -> Result<Weighted, String> {
    let (ratio, command) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let weight = ratio.parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
    let weight =
        weight.ok_or_else(|| format!("'{ratio}': expected a ratio from 1 to 1000000, then a command"))?;
    let args = words(command.trim_start()).ok_or("quotes that don't match")?;
    if args.is_empty() {
        return Err("no command after the ratio".into());
    }
    Ok(Weighted { weight, template: Template::new(&args, value_bytes, verify) })
}

/// The words of a command line, quoted as redis-cli takes them; `None` where quotes don't match.
pub fn words(line: &str) -> Option<Vec<Vec<u8>>> {
    if line.is_empty() {
        return Some(Vec::new());
    }
    let array = inline_to_array(line.as_bytes()).ok()?;
    let mut spans = Vec::new();
    match RequestScanner::default().scan(&array, &mut spans, &Limits::default()) {
        Ok(Scanned::Array(_)) => Some(Args::new(&array, &spans).iter_from(0).map(<[u8]>::to_vec).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ratios_and_commands() {
        let text = "# a mix\n80 GET key:__rand_int__\n\n 20 SET key:__rand_int__ \"a b\"\n";
        let mix = read_script("mix", text, 3, false).unwrap();
        let weights: Vec<u64> = mix.commands.iter().map(|command| command.weight).collect();
        assert_eq!(weights, [80, 20]);
        assert!(mix.commands[1].template.bytes.ends_with(b"$3\r\na b\r\n"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, why) in [
            ("", "no command"),
            ("GET a", "mix:1: 'GET': expected a ratio"),
            ("# x\n0 GET a", "mix:2: '0'"),
            ("5", "mix:1: no command"),
            ("5 SET a \"b", "mix:1: quotes"),
        ] {
            let said = read_script("mix", text, 3, false).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
