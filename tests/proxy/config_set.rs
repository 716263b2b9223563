//! CONFIG on the admin port: settings, where they come from, and other values for them.

use super::admin::{lines, ruled_pool};
use crate::support::{Redis, Resp, Shardwise, Value};

fn told(admin: &mut Resp, word: &str, name: &str) -> String {
    let [_, value] = &lines(admin.call(["CONFIG", word, name]))[..] else { panic!("not one {name}") };
    value.clone()
}

#[test]
fn settings_change_without_the_file_until_the_next_reload() {
    let servers = Redis::start_many::<2>();
    let (mut fleet, mut admin) = ruled_pool(&servers, "", "backlog: 100");
    let path = "conf.yml";
    assert_eq!(told(&mut admin, "GET", "alpha.read_only"), "false");
    assert_eq!(told(&mut admin, "ORIGIN", "alpha.read_only"), "default");
    assert!(told(&mut admin, "ORIGIN", "alpha.backlog").starts_with(&format!("{path}:")));
    assert_eq!(told(&mut admin, "ORIGIN", "slowlog_slower_than"), "default");
    assert!(lines(admin.call(["CONFIG", "GET", "alpha.*"])).len() > 50);

    let mut client = fleet.client();
    let key = fleet.key(1);
    assert_eq!(client.call(["SET", &key, "v"]), Value::ok());
    let set = ["CONFIG", "SET", "alpha.read_only", "true", "shardwise.drain_timeout", "3s"];
    assert_eq!(admin.call(set), Value::ok());
    assert!(client.call(["SET", &key, "w"]).is_error("READONLY"), "it holds with the answer");
    assert_eq!(told(&mut admin, "GET", "alpha.read_only"), "true");
    assert_eq!(told(&mut admin, "ORIGIN", "alpha.read_only"), "CONFIG SET");
    assert_eq!(told(&mut admin, "GET", "drain_timeout"), "3s");

    // The file may be on its way to something else: it is not looked at.
    let yaml = std::fs::read_to_string(fleet.proxy.config_path()).unwrap();
    std::fs::write(fleet.proxy.config_path(), "nonsense").unwrap();
    assert_eq!(admin.call(["CONFIG", "SET", "maxclients", "77"]), Value::ok());
    assert_eq!(told(&mut admin, "GET", "maxclients"), "77");
    assert_eq!(told(&mut admin, "GET", "alpha.read_only"), "true", "what was set before still holds");

    let said = fleet.proxy.reload(&yaml);
    assert!(said.contains("pool 'alpha': read_only changed"), "{said}");
    assert_eq!(client.call(["SET", &key, "w"]), Value::ok());
    assert_eq!(told(&mut admin, "ORIGIN", "alpha.read_only"), "default");
}

/// What runs is what counts, not the file that it was started with.
#[test]
fn check_asks_the_running_process() {
    let servers = Redis::start_many::<2>();
    let (fleet, mut admin) = ruled_pool(&servers, "  admin_password: sesame", "timeout: 400");
    assert_eq!(admin.call(["AUTH", "sesame"]), Value::ok());
    assert_eq!(admin.call(["CONFIG", "SET", "alpha.timeout", "300"]), Value::ok());
    let yaml = std::fs::read_to_string(fleet.proxy.config_path()).unwrap();
    let port = yaml.lines().find_map(|line| line.trim().strip_prefix("admin: ")).unwrap().to_owned();
    let check = |yaml: &str, password: &str, against: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new.yml");
        std::fs::write(&file, yaml).unwrap();
        let mut command = std::process::Command::new(Shardwise::PROGRAM);
        command.arg("check").arg(&file).args(["--against", against]).env("REDISCLI_AUTH", password);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = check(&yaml, "sesame", &port);
    assert!(code == Some(0) && out.starts_with("pool 'alpha': timeout changed\ncloses: "), "{out}{err}");
    let third = yaml.replace("timeout: 400", "timeout: 300").replace(":1 s1", ":5 s1");
    let (code, out, err) = check(&third, "sesame", &format!("127.0.0.1:{port}"));
    assert!(code == Some(0) && out.contains("weight of server 's1' changed\n"), "{out}{err}");
    assert!(out.contains("% of the keys move") && !out.contains("timeout"), "{out}");
    let (code, _, err) = check(&yaml, "wrong", &port);
    assert!(code == Some(2) && err.contains("WRONGPASS"), "{err}");
    let (code, _, err) = check(&yaml, "sesame", &fleet.port.number().to_string());
    assert!(code == Some(2) && err.contains("ERR"), "a pool is no admin port: {err}");
    assert_eq!(told(&mut admin, "ORIGIN", "alpha.timeout"), "CONFIG SET", "nothing has changed");
}

#[test]
fn what_can_not_be_set_changes_nothing() {
    let servers = Redis::start_many::<1>();
    let (_fleet, mut admin) = ruled_pool(&servers, "", "redis_auth: sesame");
    let refused = [
        (
            ["alpha.nonsense", "1"],
            "ERR Unknown option or number of arguments for CONFIG SET - 'alpha.nonsense'",
        ),
        (["beta.timeout", "1"], "ERR Unknown option"),
        (
            ["alpha.timeout", "soon"],
            "ERR nothing has changed: conf.yml: alpha.timeout: 'soon' is not a number",
        ),
        (
            ["alpha.servers", "127.0.0.1:1:1"],
            "ERR nothing has changed: conf.yml: alpha.servers: must be a list",
        ),
        (["threads", "7"], "ERR nothing has changed: shardwise.threads changed (needs a restart)"),
        (["slowlog-log-slower-than", "never"], "ERR value is not an integer"),
    ];
    for ([name, value], error) in refused {
        let reply = admin.call(["CONFIG", "SET", "alpha.timeout", "321", name, value]);
        assert!(reply.is_error(error), "{name}: {reply:?}");
    }
    assert_eq!(told(&mut admin, "GET", "alpha.timeout"), "", "all or none");
    assert!(
        admin.call(["CONFIG", "SET", "alpha.timeout", "1", "x"]).is_error("ERR wrong number of arguments")
    );
    assert_eq!(told(&mut admin, "GET", "alpha.redis_auth"), "(redacted)");
}
