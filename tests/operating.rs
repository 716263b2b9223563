//! What operators point at shardwise: redis_exporter, Prometheus's promtool, a browser. `make test-clients` installs them.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{PATIENCE, Port, Process, Redis, Resp, Shardwise, locate, poll, pool_of};

/// A proxy over two servers, with an admin and a metrics port, that has served some traffic.
struct Site {
    _proxy: Shardwise,
    port: Port,
    admin: Port,
    metrics: Port,
    _servers: [Redis; 2],
}

impl Site {
    fn busy() -> Self {
        let servers = Redis::start_many::<2>();
        let [port, admin, metrics] = [(); 3].map(|()| Port::claim());
        let entries: Vec<String> =
            servers.iter().enumerate().map(|(i, server)| format!("{} s{i}", server.entry(1))).collect();
        let pool = pool_of("alpha", &port.address(), &entries, "hash: murmur");
        let yaml =
            format!("shardwise:\n  admin: {}\n  metrics: {}\n{pool}", admin.number(), metrics.number());
        let site = Self { _proxy: Shardwise::start(&yaml), port, admin, metrics, _servers: servers };
        site.traffic(100);
        site
    }

    fn traffic(&self, rounds: usize) {
        let mut client = Resp::port(self.port.number());
        for i in 0..rounds {
            let key = format!("key:{i}");
            client.call(["SET", &key, "value"]);
            client.call(["GET", &key]);
            client.call(["INCR", "counter"]);
            client.call(["LPUSH", "list", "item"]);
            client.call(["HSET", "hash", "field", "value"]);
        }
    }
}

#[test]
#[ignore = "needs prometheus-redis-exporter: make test-clients"]
fn redis_exporter_reads_the_admin_port_as_if_it_were_a_redis() {
    let site = Site::busy();
    let exporter = Port::claim();
    let args = [
        format!("--redis.addr=redis://{}", site.admin.address()),
        format!("--web.listen-address={}", exporter.address()),
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut process = Process::start("exporter", locate("prometheus-redis-exporter"), &args, folder.path());
    process.wait_ready(|| exporter.is_listened_on());
    let text = get(&exporter, "/metrics");
    assert!(text.contains("\nredis_up 1\n"), "{text}");
    assert!(text.contains("\nredis_exporter_last_scrape_error{err=\"\"} 0\n"), "{text}");
    let value = |line: &&str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    let ours = text.lines().filter(|line| line.starts_with("redis_") && !line.starts_with("redis_exporter_"));
    let told: Vec<&str> = ours.filter(|line| value(line).is_some_and(|value| value != 0.0)).collect();
    println!("{} samples that are not zero:\n{}", told.len(), told.join("\n"));
    assert!(told.len() >= 30, "only {}", told.len());
    assert!(!process.log().contains("level=error"), "{}", process.log());
}

#[test]
#[ignore = "needs promtool: make test-clients"]
fn promtool_accepts_metrics_rules_and_the_queries_of_the_dashboard() {
    let site = Site::busy();
    let text = get(&site.metrics, "/metrics");
    promtool(&["check", "metrics"], &text);
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    promtool(&["check", "rules", &home.join("conf/prometheus/alerts.yml").display().to_string()], "");

    let dashboard = std::fs::read_to_string(home.join("conf/grafana/shardwise.json")).expect("it is there");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries: Vec<String> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().expect("targets"))
        .map(|target| target["expr"].as_str().expect("a query").replace("$__rate_interval", "1m"))
        .collect();
    assert!(queries.len() >= 10);
    let rules: String = queries
        .iter()
        .enumerate()
        .map(|(i, query)| format!("  - record: query:{i}\n    expr: {}\n", serde_json::json!(query)))
        .collect();
    promtool(&["check", "rules", "/dev/stdin"], &format!("groups:\n- name: dashboard\n  rules:\n{rules}"));

    // What rules and queries name exists.
    let alerts = std::fs::read_to_string(home.join("conf/prometheus/alerts.yml")).expect("it is there");
    let named = format!("{alerts}{}", queries.join(" "));
    let names = named.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for name in names.filter(|name| name.starts_with("shardwise_")) {
        assert!(text.contains(&format!("\n{name}")), "no metric {name}");
    }
}

/// A counter on the page rises while requests come. `SCREENSHOT=docs/live-page.png` keeps what it looks like.
#[test]
#[ignore = "needs chromium: make test-clients"]
fn the_live_page_in_a_browser() {
    let site = Site::busy();
    let before = requests_on_page(&site);
    site.traffic(200);
    let after = requests_on_page(&site);
    assert!(before >= 500 && after >= before + 1000, "{before}, then {after}");
    if let Some(path) = std::env::var_os("SCREENSHOT") {
        site.traffic(2000);
        browse(
            &site,
            &[&format!("--screenshot={}", PathBuf::from(path).display()), "--window-size=1100,420"],
        );
    }
}

fn requests_on_page(site: &Site) -> u64 {
    let page = browse(site, &["--dump-dom"]);
    let text = page.split("id=\"requests-alpha\">").nth(1).unwrap_or_else(|| panic!("no counter:\n{page}"));
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    assert!(page.contains("s0 (127.0.0.1:") && page.contains(" ms") | page.contains(" µs"), "{page}");
    digits.parse().expect("a number")
}

/// The page after it has asked for its numbers a few times.
fn browse(site: &Site, args: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(locate("chromium"))
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=3000", "--timeout=20000"])
        .args(args)
        .arg(format!("http://{}/", site.metrics.address()))
        .output()
        .expect("chromium starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Content Security Policy") && !said.contains("Uncaught"), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn promtool(args: &[&str], input: &str) {
    let mut child = Command::new(locate("promtool"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {args:?}: {said}\n{input}");
}

fn get(port: &Port, path: &str) -> String {
    assert!(poll(PATIENCE, || port.is_listened_on()));
    let mut stream = TcpStream::connect(port.socket_addr()).expect("it accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
    body.to_owned()
}
