//! Example calls of every command, made from the argument specs that COMMAND DOCS publishes.

use super::live::Value;

/// One example call.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its arguments, the name included.
    pub args: Vec<String>,
    /// Which of them the specs call keys.
    pub keys: Vec<usize>,
}

/// What keys and values of a sample are called.
#[derive(Clone, Copy, PartialEq)]
pub enum Names {
    /// Names that tell their place.
    Plain,
    /// Often the words of options.
    Nasty,
}

/// Words that mean something as options.
pub const OPTIONS: &[&str] = &[
    "STORE",
    "storedist",
    "STREAMS",
    "BLOCK",
    "COUNT",
    "GROUP",
    "NOACK",
    "KEYS",
    "AUTH",
    "AUTH2",
    "BY",
    "GET",
    "LIMIT",
    "DB",
];

/// Random numbers, the same in every run.
pub struct Dice(u64);

impl Dice {
    /// The dice of one command in one test, whatever the order in which a server names its commands.
    pub fn for_command(name: &str, test: u64) -> Dice {
        // FNV-1a, and a bit that keeps the state from being 0.
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Dice(name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ test, fnv) | 1)
    }

    /// Less than `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }
}

/// All commands and sub-commands of a COMMAND DOCS reply, with their argument specs.
pub fn documented(docs: &Value) -> Vec<(String, Vec<Value>)> {
    let mut found = Vec::new();
    for pair in docs.array().chunks(2) {
        match pair[1].field("subcommands") {
            Some(subcommands) => found.extend(documented(subcommands)),
            None => {
                let args = pair[1].field("arguments").map(|args| args.array().to_vec());
                found.push((pair[0].text().to_owned(), args.unwrap_or_default()));
            }
        }
    }
    found
}

/// A random call of `name` that its argument specs allow.
pub fn sample(name: &str, specs: &[Value], names: Names, dice: &mut Dice) -> Sample {
    let args = name.split('|').map(str::to_uppercase).collect();
    // Lists that belong together (keys and ids of XREAD) must be of equal length, so all lists of a sample are.
    let repeats = 1 + dice.roll(3);
    let mut draft = Draft { sample: Sample { args, keys: Vec::new() }, numkeys: None, repeats, names, dice };
    draft.all(specs);
    if let Some(at) = draft.numkeys {
        let counted = draft.sample.keys.iter().filter(|key| **key > at).count();
        draft.sample.args[at] = counted.to_string();
    }
    draft.sample
}

struct Draft<'a> {
    sample: Sample,
    /// Where the number of keys is to be filled in.
    numkeys: Option<usize>,
    repeats: usize,
    names: Names,
    dice: &'a mut Dice,
}

impl Draft<'_> {
    fn all(&mut self, specs: &[Value]) {
        for spec in specs {
            self.argument(spec);
        }
    }

    fn argument(&mut self, spec: &Value) {
        let has = |flag| spec.field("flags").is_some_and(|flags| flags.texts().contains(&flag));
        if has("optional") && self.dice.roll(2) == 0 {
            return;
        }
        let token = spec.field("token").map(Value::text);
        for round in 0..if has("multiple") { self.repeats } else { 1 } {
            if let Some(token) = token.filter(|_| round == 0 || has("multiple_token")) {
                self.sample.args.push(token.to_owned());
            }
            self.value(spec);
        }
    }

    fn value(&mut self, spec: &Value) {
        let at = self.sample.args.len();
        match spec.field("type").expect("each argument has a type").text() {
            "pure-token" => {}
            "block" => self.all(spec.field("arguments").expect("a block has arguments").array()),
            "oneof" => {
                let choices = spec.field("arguments").expect("there is something to choose from").array();
                let choice = self.dice.roll(choices.len());
                self.argument(&choices[choice]);
            }
            "key" => {
                self.sample.keys.push(at);
                self.name("key");
            }
            "integer" if spec.field("name").map(Value::text) == Some("numkeys") => {
                self.numkeys = Some(at);
                self.sample.args.push(String::new());
            }
            "integer" | "double" | "unix-time" => self.sample.args.push(format!("{}", 1 + self.dice.roll(9))),
            "string" | "pattern" => self.name("text"),
            other => panic!("unexpected type of argument: {other}"),
        }
    }

    fn name(&mut self, kind: &str) {
        let name = match self.names {
            Names::Nasty if self.dice.roll(2) == 0 => OPTIONS[self.dice.roll(OPTIONS.len())].to_owned(),
            _ => format!("{kind}:{}", self.sample.args.len()),
        };
        self.sample.args.push(name);
    }
}
