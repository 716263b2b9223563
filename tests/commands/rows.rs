//! Every row against COMMAND of Redis 7.0 and of Valkey: nothing missing on either side, and every fact alike but for the
//! differences listed here.

use std::collections::{BTreeMap, BTreeSet};

use shardwise::command::{BeginSearch, CommandIx, CommandTable, FindKeys, Origin};

use super::live::{Server, Value};

/// What is published about one command.
#[derive(Clone, Debug, PartialEq)]
struct Published {
    arity: i64,
    flags: BTreeSet<String>,
    range: (i64, i64, i64),
    categories: BTreeSet<String>,
    tips: BTreeSet<String>,
    keys: Vec<PublishedSpec>,
    group: String,
}

#[derive(Clone, Debug, PartialEq)]
struct PublishedSpec {
    begin: String,
    find: String,
    flags: BTreeSet<String>,
}

/// Where a server publishes something else than the table.
enum Differs {
    Arity(i64),
    Flags { more: &'static [&'static str], less: &'static [&'static str] },
    Tips { more: &'static [&'static str], less: &'static [&'static str] },
    Categories { more: &'static [&'static str] },
    SpecFlags { spec: usize, more: &'static [&'static str], less: &'static [&'static str] },
}

use Differs::*;

/// Later versions made some commands take more arguments. The table takes what any version takes: the server says no.
const REDIS: &[(&str, Differs)] = &[
    ("cluster|replicate", Arity(3)),
    ("command|getkeys", Arity(-4)),
    ("command|getkeysandflags", Arity(-4)),
    ("script|debug", Arity(3)),
    ("zrank", Arity(3)),
    ("zrevrank", Arity(3)),
];

const TO_ALL_NODES: Differs =
    Tips { more: &["request_policy:all_nodes", "response_policy:all_succeeded"], less: &[] };
const IN_SCRIPTS: Differs = Flags { more: &[], less: &["noscript"] };
const WHILE_BUSY: Differs = Flags { more: &["allow_busy"], less: &[] };
const WHILE_LOADING: Differs = Flags { more: &["loading"], less: &[] };
const WHILE_STALE: Differs = Flags { more: &["stale"], less: &[] };
const NOT_IN_MULTI: Differs = Flags { more: &["no_multi"], less: &[] };

/// Valkey goes on from Redis 7.2. The table keeps to Redis 7.0 where both have a command.
const VALKEY: &[(&str, Differs)] = &[
    ("acl|deluser", TO_ALL_NODES),
    ("acl|save", TO_ALL_NODES),
    ("acl|setuser", TO_ALL_NODES),
    ("blmove", IN_SCRIPTS),
    ("blpop", IN_SCRIPTS),
    ("brpop", IN_SCRIPTS),
    ("brpoplpush", IN_SCRIPTS),
    ("bzpopmax", IN_SCRIPTS),
    ("bzpopmin", IN_SCRIPTS),
    ("client|caching", WHILE_BUSY),
    ("client|getname", WHILE_BUSY),
    ("client|getredir", WHILE_BUSY),
    ("client|id", WHILE_BUSY),
    ("client|no-evict", WHILE_BUSY),
    ("client|reply", Flags { more: &["allow_busy", "no_multi"], less: &[] }),
    ("client|setname", WHILE_BUSY),
    ("client|setname", TO_ALL_NODES),
    ("cluster|info", WHILE_LOADING),
    ("cluster|myid", WHILE_LOADING),
    ("cluster|nodes", WHILE_LOADING),
    ("cluster|shards", WHILE_LOADING),
    ("cluster|slots", WHILE_LOADING),
    ("config|resetstat", TO_ALL_NODES),
    ("config|rewrite", TO_ALL_NODES),
    ("exec", Flags { more: &["skip_commandlog"], less: &["skip_slowlog"] }),
    ("georadius", SpecFlags { spec: 1, more: &["variable_flags"], less: &[] }),
    ("georadius", SpecFlags { spec: 2, more: &["variable_flags"], less: &[] }),
    ("georadiusbymember", SpecFlags { spec: 1, more: &["variable_flags"], less: &[] }),
    ("georadiusbymember", SpecFlags { spec: 2, more: &["variable_flags"], less: &[] }),
    ("latency|reset", Tips { more: &["response_policy:agg_sum"], less: &["response_policy:all_succeeded"] }),
    ("memory|malloc-stats", WHILE_LOADING),
    ("memory|purge", WHILE_LOADING),
    ("msetnx", Tips { more: &[], less: &["request_policy:multi_shard", "response_policy:agg_min"] }),
    ("multi", NOT_IN_MULTI),
    ("randomkey", Tips { more: &["response_policy:special"], less: &[] }),
    ("scan", Tips { more: &["response_policy:special"], less: &[] }),
    ("script|exists", WHILE_STALE),
    ("script|flush", WHILE_STALE),
    ("select", WHILE_BUSY),
    ("sinterstore", SpecFlags { spec: 0, more: &["OW"], less: &["RW"] }),
    ("wait", Flags { more: &["blocking"], less: &["noscript"] }),
    ("wait", Categories { more: &["@blocking"] }),
    ("watch", NOT_IN_MULTI),
];

#[test]
fn rows_are_what_redis_publishes() {
    let ours = of_table(|origin| origin == Origin::Redis70);
    compare(with_differences(ours, REDIS), of_server(&mut Server::redis()));
}

#[test]
fn rows_are_what_valkey_publishes() {
    let ours = of_table(|_| true);
    compare(with_differences(ours, VALKEY), of_server(&mut Server::valkey()));
}

fn compare(ours: BTreeMap<String, Published>, theirs: BTreeMap<String, Published>) {
    let names = |map: &BTreeMap<String, Published>| map.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&ours), names(&theirs), "commands");
    for (name, theirs) in &theirs {
        assert_eq!(&ours[name], theirs, "{name}");
    }
}

fn with_differences(
    mut published: BTreeMap<String, Published>,
    differences: &[(&str, Differs)],
) -> BTreeMap<String, Published> {
    for (name, differs) in differences {
        let command =
            published.get_mut(*name).unwrap_or_else(|| panic!("{name} is listed, but there is none"));
        let before = command.clone();
        match differs {
            Arity(arity) => command.arity = *arity,
            Flags { more, less } => edit(&mut command.flags, more, less),
            Tips { more, less } => edit(&mut command.tips, more, less),
            Categories { more } => edit(&mut command.categories, more, &[]),
            SpecFlags { spec, more, less } => edit(&mut command.keys[*spec].flags, more, less),
        }
        assert_ne!(*command, before, "the difference listed for {name} is none");
    }
    published
}

fn edit(set: &mut BTreeSet<String>, more: &[&str], less: &[&str]) {
    set.retain(|text| !less.contains(&text.as_str()));
    set.extend(more.iter().map(|text| text.to_string()));
}

// --- what the table says ---

fn of_table(wanted: impl Fn(Origin) -> bool) -> BTreeMap<String, Published> {
    let table = CommandTable::builtin();
    let rows = table.rows().filter(|(_, row)| wanted(row.origin));
    rows.map(|(ix, row)| (row.name.to_owned(), of_row(table, ix))).collect()
}

fn of_row(table: &CommandTable, ix: CommandIx) -> Published {
    let info = table.info(ix);
    let spec = |spec: &shardwise::command::KeySpec| PublishedSpec {
        begin: match spec.begin {
            BeginSearch::Index(at) => format!("index {at}"),
            BeginSearch::Keyword { word, from } => format!("keyword {word} {from}"),
            BeginSearch::Unknown => "unknown".to_owned(),
        },
        find: match spec.find {
            FindKeys::Range { last, step, limit } => format!("range {last} {step} {limit}"),
            FindKeys::KeyNum { number, first, step } => format!("keynum {number} {first} {step}"),
            FindKeys::Unknown => "unknown".to_owned(),
        },
        flags: owned(spec.flags.names()),
    };
    Published {
        arity: info.row.arity.into(),
        flags: owned(info.row.flags.names()),
        range: (info.range.first.into(), info.range.last.into(), info.range.step.into()),
        categories: owned(info.categories.names()),
        tips: owned(info.tips()),
        keys: info.row.keys.iter().map(spec).collect(),
        group: table.group(ix).name().to_owned(),
    }
}

fn owned<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    texts.into_iter().map(str::to_owned).collect()
}

// --- what a server says ---

fn of_server(server: &mut Server) -> BTreeMap<String, Published> {
    let mut groups = BTreeMap::new();
    collect_groups(&server.ask(&["COMMAND", "DOCS"]), &mut groups);
    let mut published = BTreeMap::new();
    for command in server.ask(&["COMMAND"]).array() {
        collect_commands(command, &groups, &mut published);
    }
    published
}

fn collect_groups(docs: &Value, groups: &mut BTreeMap<String, String>) {
    for pair in docs.array().chunks(2) {
        let group = pair[1].field("group").expect("each command has a group").text();
        groups.insert(pair[0].text().to_owned(), group.to_owned());
        if let Some(subcommands) = pair[1].field("subcommands") {
            collect_groups(subcommands, groups);
        }
    }
}

fn collect_commands(
    reply: &Value,
    groups: &BTreeMap<String, String>,
    published: &mut BTreeMap<String, Published>,
) {
    let [name, arity, flags, first, last, step, categories, tips, keys, subcommands] = reply.array() else {
        panic!("{reply:?} has not ten elements");
    };
    let command = Published {
        arity: arity.int(),
        flags: owned(flags.texts()),
        range: (first.int(), last.int(), step.int()),
        categories: owned(categories.texts()),
        tips: owned(tips.texts()),
        keys: keys.array().iter().map(of_spec).collect(),
        group: groups[name.text()].clone(),
    };
    published.insert(name.text().to_owned(), command);
    for subcommand in subcommands.array() {
        collect_commands(subcommand, groups, published);
    }
}

fn of_spec(reply: &Value) -> PublishedSpec {
    let part = |name, fields: &[&str]| {
        let part = reply.field(name).expect("each spec has both parts");
        let spec = part.field("spec").expect("each part has a spec");
        let values = fields.iter().filter_map(|field| spec.field(field)).map(|value| match value {
            Value::Int(number) => number.to_string(),
            other => other.text().to_owned(),
        });
        std::iter::once(part.field("type").expect("each part has a type").text().to_owned())
            .chain(values)
            .collect::<Vec<_>>()
            .join(" ")
    };
    PublishedSpec {
        begin: part("begin_search", &["index", "keyword", "startfrom"]),
        find: part("find_keys", &["lastkey", "keynumidx", "firstkey", "keystep", "limit"]),
        flags: owned(reply.field("flags").expect("each spec has flags").texts()),
    }
}
