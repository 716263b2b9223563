<?php
// phpredis against HOST PORT: one line a check, exit code 1 if any fails.
declare(strict_types=1);

require __DIR__ . '/same.php';

$host = $argv[1];
$port = (int) $argv[2];
$name = 'phpredis ' . phpversion('redis');
$client = new Redis();
$client->connect($host, $port, 10);
$client->setOption(Redis::OPT_READ_TIMEOUT, 10);

function key_of(string $name): string
{
    return "smoke:phpredis:$name";
}

$checks = [
    'set and get, binary and empty' => function (Redis $client): void {
        foreach (['plain' => 'value', 'empty' => '', "bin\0\xff\r\n" => implode('', array_map('chr', range(0, 255)))] as $name => $value) {
            same($client->set(key_of($name), $value), true);
            same($client->get(key_of($name)), $value);
        }
        same($client->get(key_of('missing')), false);
    },
    'incr' => function (Redis $client): void {
        $client->del(key_of('n'));
        same([$client->incr(key_of('n')), $client->incrBy(key_of('n'), 41)], [1, 42]);
    },
    'mset and mget over all shards' => function (Redis $client): void {
        $pairs = [];
        for ($i = 0; $i < 200; $i++) {
            $pairs[key_of("many:$i")] = "value $i";
        }
        same($client->mset($pairs), true);
        same($client->mget([...array_keys($pairs), key_of('missing')]), [...array_values($pairs), false]);
        same($client->exists(array_keys($pairs)), 200);
        same($client->del(array_keys($pairs)), 200);
        same($client->exists(array_keys($pairs)), 0);
    },
    'a pipeline of 200 in order' => function (Redis $client): void {
        $batch = $client->pipeline();
        $wanted = [];
        for ($i = 0; $i < 100; $i++) {
            $batch->set(key_of("p:$i"), "value $i");
            $batch->get(key_of("p:$i"));
            array_push($wanted, true, "value $i");
        }
        same($batch->exec(), $wanted);
    },
    'lists' => function (Redis $client): void {
        $client->del(key_of('list'));
        $elements = array_map(fn ($i) => "e$i", range(0, 599));
        same($client->rPush(key_of('list'), ...$elements), 600);
        same($client->lRange(key_of('list'), 0, -1), $elements);
        same($client->lPop(key_of('list')), 'e0');
    },
    'hashes' => function (Redis $client): void {
        $client->del(key_of('hash'));
        same($client->hMSet(key_of('hash'), ['a' => '1', 'b' => '2']), true);
        same($client->hGetAll(key_of('hash')), ['a' => '1', 'b' => '2']);
        same($client->hMGet(key_of('hash'), ['b', 'missing']), ['b' => '2', 'missing' => false]);
    },
    'errors leave the connection usable' => function (Redis $client): void {
        $client->del(key_of('list'));
        $client->rPush(key_of('list'), 'a');
        same($client->get(key_of('list')), false);
        same(substr((string) $client->getLastError(), 0, 9), 'WRONGTYPE');
        $client->clearLastError();
        same($client->rawCommand('NOSUCHCOMMAND', 'x'), false);
        same(substr((string) $client->getLastError(), 0, 19), 'ERR unknown command');
        $client->clearLastError();
        same($client->lLen(key_of('list')), 1);
    },
];

$failed = 0;
foreach ($checks as $title => $check) {
    try {
        $check($client);
        echo "ok     $name: $title\n";
    } catch (Throwable $fault) {
        $failed++;
        echo "FAILED $name: $title\n  {$fault->getMessage()}\n";
    }
}
printf("%d passed, %d failed\n", count($checks) - $failed, $failed);
exit($failed === 0 ? 0 : 1);
