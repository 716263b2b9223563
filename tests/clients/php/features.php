<?php
// phpredis against HOST PORT, at its defaults. Tells what it could do: a line for the client, then one for each feature.
declare(strict_types=1);

require __DIR__ . '/same.php';

[, $host, $port] = $argv;

function connect(): Redis
{
    global $host, $port;
    $client = new Redis();
    $client->connect($host, (int) $port);
    return $client;
}

/** What one message of a subscription is: the arguments of its callback. Only closing ends subscribe() in this version of phpredis. */
function heard(callable $subscribe): array
{
    $message = [];
    try {
        $subscribe(function (Redis $on, string ...$told) use (&$message): void {
            $message = $told;
            $on->close();
        });
    } catch (RedisException) {
    }
    return $message;
}

/** Sends one command in a process of its own, after 0.2 s. */
function later(string ...$command)
{
    global $host, $port;
    $words = implode(' ', array_map('escapeshellarg', $command));
    return proc_open("sleep 0.2; redis-cli -h $host -p $port $words >/dev/null", [], $pipes);
}

$client = connect();
$checks = [
    'connect' => function () use ($client): void {
        same($client->set('features:connect', "\0\xff\r\n"), true);
        same($client->get('features:connect'), "\0\xff\r\n");
    },
    'pipeline' => function () use ($client): void {
        $batch = $client->pipeline();
        $wanted = [];
        for ($i = 0; $i < 300; $i++) {
            $batch->set("features:p:$i", "$i")->get("features:p:$i");
            array_push($wanted, true, "$i");
        }
        same($batch->exec(), $wanted);
    },
    'transaction' => function () use ($client): void {
        $client->watch('{features}:t');
        same($client->multi()->set('{features}:t', '1')->incr('{features}:t')->get('{features}:t')->exec(), [true, 2, '2']);
        $client->watch('{features}:t');
        connect()->set('{features}:t', 'changed');
        same($client->multi()->get('{features}:t')->exec(), false);
    },
    'blocking pop' => function () use ($client): void {
        $client->del('features:queue');
        same($client->blPop(['features:queue'], 1), []);
        $pusher = later('RPUSH', 'features:queue', 'element');
        same($client->blPop(['features:queue'], 10), ['features:queue', 'element']);
        proc_close($pusher);
    },
    'subscribe' => function (): void {
        $publisher = later('PUBLISH', 'features:channel', 'direct');
        same(heard(fn ($tell) => connect()->subscribe(['features:channel'], $tell)), ['features:channel', 'direct']);
        proc_close($publisher);
        $publisher = later('PUBLISH', 'features:pattern:x', 'matched');
        same(
            heard(fn ($tell) => connect()->psubscribe(['features:pattern:*'], $tell)),
            ['features:pattern:*', 'features:pattern:x', 'matched'],
        );
        proc_close($publisher);
    },
    'script' => function () use ($client): void {
        $double = "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)";
        for ($i = 0; $i < 20; $i++) {
            $client->del("features:script:$i");
            same($client->eval($double, ["features:script:$i", '21'], 1), 42);
            same($client->evalSha(sha1($double), ["features:script:$i", '21'], 1), 84);
        }
        same($client->eval('return ARGV[1]', ['x'], 0), 'x');
    },
    'scan' => function () use ($client): void {
        $names = array_map(fn (int $i) => "features:scan:$i", range(0, 499));
        $client->mset(array_fill_keys($names, '1'));
        $found = [];
        $cursor = null;
        do {
            foreach ($client->scan($cursor, 'features:scan:*', 50) ?: [] as $name) {
                $found[$name] = true;
            }
        } while ($cursor > 0);
        $found = array_keys($found);
        sort($found);
        sort($names);
        same($found, $names);
    },
];

echo "client\tphpredis ", phpversion('redis'), "\n";
$failed = 0;
foreach ($checks as $name => $check) {
    try {
        $check();
        echo "$name\tok\n";
    } catch (Throwable $fault) {
        $failed++;
        echo "$name\tFAILED\t", preg_replace('/\s+/', ' ', $fault->getMessage()), "\n";
    }
}
exit($failed ? 1 : 0);
