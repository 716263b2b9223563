//! Clients of both protocols on one port: each gets what a single Redis would give it.

use crate::support::{Redis, Resp, Shards, Value};

/// A client that has said HELLO 3.
fn three(mut client: Resp) -> Resp {
    let hello = client.call(["HELLO", "3"]);
    assert!(matches!(hello, Value::Map(_)), "{hello:?}");
    client
}

/// Requests whose replies differ between the protocols, and some whose don't. `a` is a key of which nothing is known.
fn requests(a: &str) -> Vec<Vec<String>> {
    let text = "DEL A|GET A|SET A v|GET A|SET A w GET|SETNX A x|GETDEL A|MGET A A|STRLEN A\
        |HSET A f v g w|HGETALL A|HGET A f|HGET A none|HRANDFIELD A 2 WITHVALUES|HMGET A f none|HEXISTS A f|DEL A\
        |ZADD A 1.5 x 2 y|ZSCORE A x|ZSCORE A none|ZRANGE A 0 -1 WITHSCORES|ZINCRBY A 0.25 x|ZPOPMIN A|ZMSCORE A y none\
        |ZRANK A y|ZADD A INCR 1 y|ZRANGE A 0 -1|ZADD A NX INCR 1 y|BZPOPMIN A 0.01|BZPOPMIN A 0.01|DEL A\
        |SADD A x|SMEMBERS A|SISMEMBER A x|SPOP A 1|SRANDMEMBER A|DEL A\
        |GEOADD A 13.361389 38.115556 p|GEOPOS A p none|GEOHASH A p|DEL A\
        |RPUSH A x y|LPOP A 2|LPOP A|BLPOP A 0.01|LPOS A x|DEL A\
        |XADD A 1-1 f v|XREAD COUNT 1 STREAMS A 0|XREAD BLOCK 10 STREAMS A $|XRANGE A - +|XINFO STREAM A|DEL A\
        |EVAL return{1,false,'x',{double=1.5},{map={k='v'}},{set={x=true}}} 1 A\
        |EVAL redis.setresp(3);return{redis.call('GET',KEYS[1]),{double=3.5},{map={k='v'}},true} 1 A\
        |OBJECT ENCODING A|TYPE A|TTL A|EXISTS A A|INCR A|INCR|NOSUCH|GET|ECHO x\
        |MULTI|GET A|MGET A A|HGETALL A|ZSCORE A x|EXEC|WATCH A|SET A 1|MULTI|GET A|EXEC|MULTI|NOSUCH|EXEC|EXEC|MULTI|EXEC\
        |SELECT 1|GET A|SELECT 0|CONFIG GET save|COMMAND COUNT x|CLIENT GETNAME|CLIENT SETNAME n|CLIENT GETNAME\
        |LCS A A IDX|MEMORY USAGE none|SORT none|SINTER none|HELLO 4|HELLO x|COMMAND DOCS nosuch\
        |COMMAND INFO nosuch";
    let key = |word: &str| if word == "A" { a.to_owned() } else { word.to_owned() };
    text.split('|').map(|request| request.trim().split(' ').map(key).collect()).collect()
}

#[test]
fn both_protocols_on_one_port_get_what_one_redis_gives() {
    let shards = Shards::<3>::start("");
    let [[a], ..] = shards.keys();
    let alone = Redis::start();
    let requests = requests(&a);
    assert!(requests.len() > 90, "{}", requests.len());
    let (mut ours2, mut ours3) = (shards.client(), three(shards.client()));
    let (mut theirs2, mut theirs3) = (alone.client(), three(alone.client()));
    // In turn, so that a connection that is shared by mistake would show.
    for request in &requests {
        assert_eq!(ours2.call(request), theirs2.call(request), "RESP2: {request:?}");
    }
    for request in &requests {
        assert_eq!(ours3.call(request), theirs3.call(request), "RESP3: {request:?}");
    }
    assert_eq!(ours2.pipeline(&requests), theirs2.pipeline(&requests));
    assert_eq!(ours3.pipeline(&requests), theirs3.pipeline(&requests));
}

#[test]
fn split_commands_are_merged_for_the_clients_protocol() {
    let shards = Shards::<2>::start("");
    let [[a, none], [b, _]] = shards.keys();
    let (mut two, mut three) = (shards.client(), three(shards.client()));
    assert_eq!(three.call(["MSET", &a, "1", &b, "2"]), Value::ok());
    for (client, null) in [(&mut two, Value::Nil), (&mut three, Value::Null)] {
        let values = [Value::bulk("1"), null.clone(), Value::bulk("2"), null];
        assert_eq!(client.call(["MGET", &a, &none, &b, "nosuch"]), Value::array(values));
        assert_eq!(client.call(["EXISTS", &a, &b, &none]), Value::Int(2));
    }
    assert_eq!(three.call(["DEL", &a, &b]), Value::Int(2));
}

/// A server connection of RESP3 is opened when a client needs one, not before.
#[test]
fn resp3_connections_are_opened_on_demand() {
    let shards = Shards::<1>::start("preconnect: true");
    let mut two = shards.client();
    two.call(["SET", "k", "v"]);
    let resp3 = || {
        let list = shards.servers[0].client().call(["CLIENT", "LIST"]);
        String::from_utf8_lossy(list.bytes()).matches("resp=3").count()
    };
    assert_eq!(resp3(), 0);
    let mut three = three(shards.client());
    assert_eq!(resp3(), 0);
    assert_eq!(three.call(["HGETALL", "none"]), Value::Map(Vec::new()));
    assert_eq!(resp3(), 1);
    assert_eq!(two.call(["HGETALL", "none"]), Value::array([]));
}

#[test]
fn hello_changes_a_client_in_one_go() {
    let server = Redis::with(&["--requirepass", "secret"]);
    let shards = Shards::with_servers([server], "redis_auth: secret", &["--threads", "1"]);
    let mut client = shards.client();
    assert!(client.call(["HELLO", "3"]).is_error("NOAUTH "));
    assert!(client.call(["HELLO", "3", "AUTH", "default", "wrong"]).is_error("WRONGPASS "));
    let Value::Map(facts) = client.call(["HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me"]) else {
        panic!("HELLO 3 is answered with a map");
    };
    assert!(facts.contains(&(Value::bulk("proto"), Value::Int(3))), "{facts:?}");
    assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::bulk("me"));
    assert_eq!(client.call(["GET", "k"]), Value::Null);
    // And back, with requests before and behind it in one packet.
    let replies =
        client.pipeline([&["GET", "k"][..], &["HELLO", "2"], &["GET", "k"], &["HELLO", "3"], &["GET", "k"]]);
    assert_eq!((&replies[0], &replies[2], &replies[4]), (&Value::Null, &Value::Nil, &Value::Null));
    assert_eq!(client.call(["RESET"]), Value::simple("RESET"));
    assert!(client.call(["GET", "k"]).is_error("NOAUTH"));
}

/// Large values, pieces and all, go through connections of either protocol.
#[test]
fn large_values_stream_in_resp3_too() {
    let shards = Shards::<1>::start("");
    let mut client = three(shards.client());
    let large = "x".repeat(3_000_000);
    assert_eq!(client.call(["SET", "k", &large]), Value::ok());
    for _ in 0..3 {
        assert_eq!(client.call(["GET", "k"]), Value::bulk(&large));
        assert_eq!(client.call(["GET", "none"]), Value::Null);
    }
}
