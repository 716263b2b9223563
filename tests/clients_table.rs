//! The table of docs/clients.md: what client libraries and job queues can do behind shardwise, over three shards, and with a
//! single Redis. `UPDATE_DOCS=1 make test-clients` writes it anew.
//!
//! Each program in tests/clients/ takes HOST and PORT, and prints a line for each feature that it tried: its name, `ok` or
//! `FAILED`, and why. What fails behind shardwise and not with Redis fails the test.

mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{Port, Process, Redis, Shardwise, locate, pool};

/// What the table tells of, and how it is asked.
struct Client {
    /// What a library speaks; what keeps the keys of an application together. Programs tell their name and version themselves.
    about: &'static str,
    /// How the program is called, but for host and port; empty: nginx runs it.
    program: fn() -> Vec<String>,
    /// What comes behind host and port.
    last: &'static [&'static str],
    setting: Setting,
}

/// Which pool it needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// Nothing but servers.
    Defaults,
    /// That of conf/framework-clients.yml.
    Framework,
}

/// What a program told.
struct Told {
    /// Name and version.
    client: String,
    /// Features, and why they failed if they did.
    features: Vec<(String, Option<String>)>,
}

const LIBRARIES: &[Client] = &[
    client("RESP2", || python(".venv-clients", "features.py"), &["2"]),
    client("RESP3", || python(".venv-clients", "features.py"), &["3"]),
    client("RESP2", || python(".venv-redis46", "features.py"), &["2"]),
    client("RESP2", || node("features-ioredis.js"), &[]),
    client("RESP2", || node("features-node-redis.js"), &["2"]),
    client("RESP3", || node("features-node-redis.js"), &["3"]),
    client("RESP2", || vec![path(&locate("php")), path(&ours("php/features.php"))], &[]),
    client("RESP2", || vec![path(&home().join("target/clients/hiredis-features"))], &[]),
    client("RESP2", || vec![path(&home().join("target/clients/debug/redis-rs"))], &[]),
    Client {
        setting: Setting::Framework,
        ..client("RESP2", || vec![path(&home().join("target/clients/debug/fred"))], &[])
    },
    client("RESP2", Vec::new, &[]), // lua-resty-redis
];

const APPLICATIONS: &[Client] = &[
    application(
        "`global_keyprefix: \"{celery}\"` in `broker_transport_options` and `result_backend_transport_options`",
        || python(".venv-clients", "celery_features.py"),
    ),
    application("`RQ_KEY_PREFIX={rq}` in the environment, of workers too", || {
        python(".venv-clients", "rq_features.py")
    }),
    application("`\"KEY_PREFIX\": \"{cache}\"` in `CACHES`", || {
        python(".venv-clients", "django_features.py")
    }),
    application("`prefix: '{name}'` of every queue, worker and flow", || node("features-bullmq.js")),
];

const fn client(about: &'static str, program: fn() -> Vec<String>, last: &'static [&'static str]) -> Client {
    Client { about, program, last, setting: Setting::Defaults }
}

const fn application(about: &'static str, program: fn() -> Vec<String>) -> Client {
    Client { about, program, last: &[], setting: Setting::Framework }
}

#[test]
#[ignore = "needs client libraries of many kinds: make test-clients"]
fn every_client_can_do_what_it_can_with_a_single_redis() {
    let site = Site::start();
    let mut faults = Vec::new();
    let libraries = libraries_table(&site, &mut faults);
    let applications = applications_table(&site, &mut faults);
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    let page = std::fs::read_to_string(ours("page.md")).expect("the page's text");
    let page = page.replace("{{libraries}}\n", &libraries).replace("{{applications}}\n", &applications);
    let written = home().join("docs/clients.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&written, &page).expect("docs/ can be written to");
    }
    let found = std::fs::read_to_string(&written).expect("docs/clients.md");
    let current = without_versions(&found) == without_versions(&page);
    assert!(current, "docs/clients.md is out of date: UPDATE_DOCS=1 make test-clients");
}

/// A proxy with both kinds of pools over three shards, and a Redis to compare with.
struct Site {
    _proxy: Shardwise,
    shards: [Redis; 3],
    single: Redis,
    plain: Port,
    framework: Port,
}

impl Site {
    fn start() -> Self {
        let shards = Redis::start_many::<3>();
        let [plain, framework] = [(); 2].map(|()| Port::claim());
        let mut yaml =
            std::fs::read_to_string(home().join("conf/framework-clients.yml")).expect("an example");
        yaml = yaml.replace("127.0.0.1:22121", &framework.address());
        for (place, shard) in shards.iter().enumerate() {
            yaml = yaml.replace(&format!("127.0.0.1:{}:", 6379 + place), &format!("{}:", shard.address()));
        }
        yaml += &pool("plain", &plain, &shards.each_ref(), "");
        let proxy = Shardwise::start(&yaml);
        Self { _proxy: proxy, shards, single: Redis::start(), plain, framework }
    }

    /// What the client tells behind shardwise. What it can't do there, or with Redis, is a fault.
    fn ask(&self, client: &Client, faults: &mut Vec<String>) -> Told {
        let port = match client.setting {
            Setting::Defaults => self.plain.number(),
            Setting::Framework => self.framework.number(),
        };
        for server in self.shards.iter().chain([&self.single]) {
            server.client().call(["FLUSHALL"]);
        }
        let (told, direct) = (run(client, port), run(client, self.single.port()));
        for (place, one) in [("shardwise", &told), ("Redis", &direct)] {
            for (feature, fault) in &one.features {
                println!("{:<22} {place:<10} {feature:<14} {}", one.client, mark(fault));
                faults.extend(fault.as_ref().map(|why| format!("{}, {place}: {feature}: {why}", one.client)));
            }
        }
        assert_eq!(told.names(), direct.names(), "{}: one of the two ended early", told.client);
        told
    }
}

impl Told {
    fn names(&self) -> Vec<&str> {
        self.features.iter().map(|(feature, _)| feature.as_str()).collect()
    }
}

fn libraries_table(site: &Site, faults: &mut Vec<String>) -> String {
    let told: Vec<Told> = LIBRARIES.iter().map(|client| site.ask(client, faults)).collect();
    let features = told[0].names();
    let mut table = format!("| Client | Protocol | {} | Pool |\n", features.join(" | "));
    writeln!(table, "|---|---|{}---|", "---|".repeat(features.len())).unwrap();
    for (client, told) in LIBRARIES.iter().zip(&told) {
        assert_eq!(told.names(), features, "{} was not asked the same", told.client);
        let marks: Vec<String> = told.features.iter().map(|(_, fault)| mark(fault)).collect();
        let pool = if client.setting == Setting::Framework { "`ping: reply`" } else { "defaults" };
        writeln!(table, "| {} | {} | {} | {pool} |", told.client, client.about, marks.join(" | ")).unwrap();
    }
    table
}

fn applications_table(site: &Site, faults: &mut Vec<String>) -> String {
    let mut table = "| Application | What was done, each ok | Its keys' tag |\n|---|---|---|\n".to_owned();
    for client in APPLICATIONS {
        let told = site.ask(client, faults);
        writeln!(table, "| {} | {} | {} |", told.client, told.names().join(", "), client.about).unwrap();
    }
    table
}

fn mark(fault: &Option<String>) -> String {
    fault.as_ref().map_or_else(|| "ok".to_owned(), |why| format!("no: {why}"))
}

/// Runs a program to its end, at most two minutes.
fn run(client: &Client, port: u16) -> Told {
    let program = (client.program)();
    let output = if program.is_empty() {
        through_nginx(port)
    } else {
        let mut command = Command::new(locate("timeout"));
        command.arg("120").args(program).args(["127.0.0.1", &port.to_string()]).args(client.last);
        command.output().expect("the program starts")
    };
    let mut told = parse(&String::from_utf8_lossy(&output.stdout));
    told.client = with_version(told.client);
    let failed = told.features.iter().any(|(_, fault)| fault.is_some());
    // One that hangs, or dies, has told less than all.
    assert!(failed || output.status.success(), "{}, {}: {output:?}", told.client, output.status);
    if failed {
        println!("{}", String::from_utf8_lossy(&output.stderr));
    }
    told
}

fn parse(output: &str) -> Told {
    let mut told = Told { client: String::new(), features: Vec::new() };
    for line in output.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["client", name] => told.client = name.to_owned(),
            [feature, "ok"] => told.features.push((feature.to_owned(), None)),
            [feature, "FAILED", why] => told.features.push((feature.to_owned(), Some(why.to_owned()))),
            _ => {}
        }
    }
    told
}

/// Rust's programs don't know what they were built with.
fn with_version(client: String) -> String {
    let name = match client.as_str() {
        "redis-rs" => "redis",
        "fred" => "fred",
        _ => return client,
    };
    let lock = std::fs::read_to_string(ours("rust/Cargo.lock")).expect("Rust's clients have a lock file");
    let entry = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).expect("it is a dependency").1;
    format!("{client} {}", entry.split('"').next().unwrap_or_default())
}

/// lua-resty-redis lives in nginx: a page of it is the program.
fn through_nginx(port: u16) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let http = Port::claim();
    let text = std::fs::read_to_string(ours("lua/nginx.conf")).expect("nginx's file");
    let text = text
        .replace("@FOLDER@", &path(folder.path()))
        .replace("@HTTP@", &http.number().to_string())
        .replace("@PROGRAM@", &path(&ours("lua/features.lua")));
    std::fs::write(folder.path().join("nginx.conf"), text).expect("a file of our own");
    let args =
        ["-c", &path(&folder.path().join("nginx.conf")), "-p", &path(folder.path())].map(str::to_owned);
    let mut nginx = Process::start("nginx", locate("nginx"), &args, folder.path());
    nginx.wait_ready(|| http.is_listened_on());
    let page = format!("http://{}/features?host=127.0.0.1&port={port}", http.address());
    Command::new(locate("curl")).args(["-sSf", "--max-time", "120", &page]).output().expect("curl starts")
}

fn python(environment: &str, program: &str) -> Vec<String> {
    vec![path(&home().join(environment).join("bin/python")), path(&ours("python").join(program))]
}

fn node(program: &str) -> Vec<String> {
    vec![path(&locate("node")), path(&ours("node").join(program))]
}

/// `redis-py 8.1.0` and `redis-py 8.2.0` are one client.
fn without_versions(page: &str) -> String {
    page.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

fn ours(name: &str) -> PathBuf {
    home().join("tests/clients").join(name)
}

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn path(path: &Path) -> String {
    path.to_str().expect("a path that is text").to_owned()
}
