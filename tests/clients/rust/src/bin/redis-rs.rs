//! redis-rs against HOST PORT, at its defaults.

use std::collections::HashSet;
use std::time::Duration;

use redis::{Client, Commands, Connection, Script};
use shardwise_client_features::{Outcome, address, begin, same, tell};

fn main() -> std::process::ExitCode {
    let (host, port) = address();
    let client = Client::open((host, port)).expect("an address");
    begin("redis-rs");
    type Check = fn(&Client, &mut Connection) -> Outcome;
    let checks: [(&str, Check); 7] = [
        ("connect", connect),
        ("pipeline", pipeline),
        ("transaction", transaction),
        ("blocking pop", blocking_pop),
        ("subscribe", subscribe),
        ("script", script),
        ("scan", scan),
    ];
    let run = |check: Check| check(&client, &mut client.get_connection()?);
    let passed = checks.map(|(feature, check)| tell(feature, &run(check)));
    if passed.contains(&false) { std::process::ExitCode::FAILURE } else { std::process::ExitCode::SUCCESS }
}

fn connect(_: &Client, connection: &mut Connection) -> Outcome {
    let value = b"\x00\xff\r\n";
    let _: () = connection.set("features:connect", value)?;
    same(connection.get::<_, Vec<u8>>("features:connect")?, value.to_vec())
}

fn pipeline(_: &Client, connection: &mut Connection) -> Outcome {
    let mut batch = redis::pipe();
    for i in 0..300 {
        batch.set(format!("features:p:{i}"), i).ignore().get(format!("features:p:{i}"));
    }
    same(batch.query::<Vec<u32>>(connection)?, (0..300).collect())
}

fn transaction(client: &Client, connection: &mut Connection) -> Outcome {
    let key = "{features}:t";
    let mut other = client.get_connection()?;
    let mut rounds = 0;
    let () = other.set(key, 1)?;
    // What is watched changes during the first round, so that there is a second one.
    let (value,): (i32,) = redis::transaction(connection, &[key], |connection, batch| {
        rounds += 1;
        let value: i32 = connection.get(key)?;
        if rounds == 1 {
            let () = other.set(key, 20)?;
        }
        batch.set(key, value + 1).ignore().get(key).query(connection)
    })?;
    same((rounds, value), (2, 21))
}

fn blocking_pop(client: &Client, connection: &mut Connection) -> Outcome {
    let key = "features:queue";
    let () = connection.del(key)?;
    same(connection.blpop::<_, Option<(String, String)>>(key, 1.0)?, None)?;
    let mut other = client.get_connection()?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            other.rpush::<_, _, i32>(key, "element")
        });
        same(connection.blpop(key, 10.0)?, (key.to_owned(), "element".to_owned()))
    })
}

fn subscribe(client: &Client, connection: &mut Connection) -> Outcome {
    let mut listening = client.get_connection()?;
    listening.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut listener = listening.as_pubsub();
    listener.subscribe("features:channel")?;
    listener.psubscribe("features:pattern:*")?;
    let _: i32 = connection.publish("features:channel", "direct")?;
    same(listener.get_message()?.get_payload::<String>()?, "direct".to_owned())?;
    let _: i32 = connection.publish("features:pattern:x", "matched")?;
    let message = listener.get_message()?;
    same((message.get_channel_name(), message.from_pattern()), ("features:pattern:x", true))?;
    same(message.get_payload::<String>()?, "matched".to_owned())
}

fn script(_: &Client, connection: &mut Connection) -> Outcome {
    let double = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)");
    for i in 0..20 {
        let key = format!("features:script:{i}");
        let () = connection.del(&key)?;
        same(double.key(&key).arg(21).invoke::<i32>(connection)?, 42)?;
    }
    same(Script::new("return ARGV[1]").arg("x").invoke::<String>(connection)?, "x".to_owned())
}

fn scan(_: &Client, connection: &mut Connection) -> Outcome {
    let names: HashSet<String> = (0..500).map(|i| format!("features:scan:{i}")).collect();
    for name in &names {
        let () = connection.set(name, 1)?;
    }
    let found = connection.scan_match::<_, String>("features:scan:*")?.collect::<Result<HashSet<_>, _>>()?;
    same(found, names)
}
