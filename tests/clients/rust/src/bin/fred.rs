//! fred against HOST PORT, at its defaults.

use std::collections::HashSet;
use std::time::Duration;

use fred::prelude::*;
use fred::types::Expiration;
use fred::types::scan::Scanner;
use fred::types::scripts::Script;
use futures_util::TryStreamExt;
use shardwise_client_features::{Outcome, address, begin, same, tell};

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let (host, port) = address();
    begin("fred");
    let client = match connected(&host, port).await {
        Ok(client) => client,
        Err(error) => {
            tell("connect", &Err(error.into()));
            return std::process::ExitCode::FAILURE;
        }
    };
    let other = connected(&host, port).await.expect("a second connection");
    let passed = [
        tell("connect", &connect(&client).await),
        tell("pipeline", &pipeline(&client).await),
        tell("transaction", &transaction(&client).await),
        tell("blocking pop", &blocking_pop(&client, &other).await),
        tell(
            "subscribe",
            &subscribe(&connected(&host, port).await.expect("a third connection"), &other).await,
        ),
        tell("script", &script(&client).await),
        tell("scan", &scan(&client).await),
    ];
    if passed.contains(&false) { std::process::ExitCode::FAILURE } else { std::process::ExitCode::SUCCESS }
}

async fn connected(host: &str, port: u16) -> Result<Client, Error> {
    let client = Builder::from_config(Config::from_url(&format!("redis://{host}:{port}"))?).build()?;
    client.init().await?;
    Ok(client)
}

async fn connect(client: &Client) -> Outcome {
    let value = b"\x00\xff\r\n";
    let _: () = client.set("features:connect", &value[..], None::<Expiration>, None, false).await?;
    same(client.get::<Vec<u8>, _>("features:connect").await?, value.to_vec())
}

async fn pipeline(client: &Client) -> Outcome {
    let batch = client.pipeline();
    for i in 0..300 {
        let key = format!("features:p:{i}");
        let _: () = batch.set(&key, i, None, None, false).await?;
        let _: () = batch.get(&key).await?;
    }
    let replies: Vec<String> = batch.all().await?;
    same(replies, (0..300).flat_map(|i| ["OK".to_owned(), i.to_string()]).collect())
}

async fn transaction(client: &Client) -> Outcome {
    let batch = client.multi();
    let _: () = batch.set("{features}:t", 1, None, None, false).await?;
    let _: () = batch.incr("{features}:t").await?;
    let _: () = batch.get("{features}:t").await?;
    let replies: (String, i32, String) = batch.exec(true).await?;
    same(replies, ("OK".to_owned(), 2, "2".to_owned()))
}

async fn blocking_pop(client: &Client, other: &Client) -> Outcome {
    let key = "features:queue";
    let _: () = client.del(key).await?;
    let push = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        other.rpush::<i32, _, _>(key, "element").await
    };
    let (popped, pushed) = tokio::join!(client.blpop::<(String, String), _>(key, 10.0), push);
    pushed?;
    same(popped?, (key.to_owned(), "element".to_owned()))
}

async fn subscribe(client: &Client, other: &Client) -> Outcome {
    let mut messages = client.message_rx();
    client.subscribe("features:channel").await?;
    client.psubscribe("features:pattern:*").await?;
    for (channel, text) in [("features:channel", "direct"), ("features:pattern:x", "matched")] {
        publish(other, channel, text).await?;
        let message = tokio::time::timeout(Duration::from_secs(10), messages.recv()).await??;
        same(message.channel.to_string(), channel.to_owned())?;
        same(message.value.convert::<String>()?, text.to_owned())?;
    }
    Ok(())
}

/// Publishes until somebody hears it: fred tells that it is subscribed when it has asked for it, before it is.
async fn publish(client: &Client, channel: &str, text: &str) -> Outcome {
    for _ in 0..1_000 {
        if client.publish::<i32, _, _>(channel, text).await? > 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("nobody listens to {channel}").into())
}

async fn script(client: &Client) -> Outcome {
    let double = Script::from_lua("return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)");
    for i in 0..20 {
        let key = format!("features:script:{i}");
        let _: () = client.del(&key).await?;
        same(double.evalsha_with_reload::<i32, _, _>(client, key, 21).await?, 42)?;
    }
    same(client.eval::<String, _, _, _>("return ARGV[1]", Vec::<String>::new(), "x").await?, "x".to_owned())
}

async fn scan(client: &Client) -> Outcome {
    let names: HashSet<String> = (0..500).map(|i| format!("features:scan:{i}")).collect();
    for name in &names {
        let _: () = client.set(name, 1, None, None, false).await?;
    }
    let mut found = HashSet::new();
    let mut pages = client.scan("features:scan:*", Some(50), None);
    while let Some(mut page) = pages.try_next().await? {
        for key in page.take_results().unwrap_or_default() {
            found.insert(key.into_string().ok_or("a key that is no text")?);
        }
        page.next();
    }
    same(found, names)
}
