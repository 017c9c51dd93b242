<?php
// Lock libraries for PHP, as their users write: what they say, on whatever server they are pointed at.
// usage: php locks.php LIBRARY PORT
error_reporting(E_ALL & ~E_DEPRECATED);
[, $library, $port] = $argv;

function say(string $what, $outcome): void
{
    echo $what, ': ', is_string($outcome) ? $outcome : var_export($outcome, true), "\n";
}

function tried(callable $what)
{
    try {
        return $what();
    } catch (Throwable $err) {
        return 'raises ' . get_class($err);
    }
}

function until(string $what, callable $probe): void
{
    for ($end = microtime(true) + 20; microtime(true) < $end; usleep(20000)) {
        if ($probe()) {
            say($what, 'yes');
            return;
        }
    }
    say($what, 'never');
}

function redis(): Redis
{
    global $port;
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);
    return $redis;
}

const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
const PROLONG = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";

function phpredis(): void
{
    [$a, $b] = [redis(), redis()];
    say('take', $a->set('phpredis', 'one', ['nx', 'px' => 30000]));
    say('refused', $b->set('phpredis', 'two', ['nx', 'px' => 30000]));
    say('the same again', $a->set('phpredis', 'one', ['NX', 'EX' => 30]));
    say('who', $b->get('phpredis'));
    say('extend', $a->eval(PROLONG, ['phpredis', 'one', 20000], 1));
    say('extend of another one\'s', $b->eval(PROLONG, ['phpredis', 'two', 20000], 1));
    say('its time', $b->pttl('phpredis') > 10000);
    say('release of another one\'s', $b->eval(RELEASE, ['phpredis', 'two'], 1));
    $sha = $a->script('load', RELEASE);
    say('sha', $sha);
    say('release', $a->evalSha($sha, ['phpredis', 'one'], 1));
    say('the other one', $b->setnx('phpredis', 'two'));
    say('its time', [$b->expire('phpredis', 30), $a->ttl('phpredis') > 20]);
    $b->watch('phpredis');
    say('transaction', $b->get('phpredis') === 'two' ? $b->multi()->del('phpredis')->exec() : 'not mine');
    say('nobody', $a->exists('phpredis'));
    $a->set('phpredis', 'one', ['nx', 'px' => 300]);
    until('after its end', fn() => $b->set('phpredis', 'two', ['nx', 'px' => 30000]));
    say('release of what has ended', $a->eval(RELEASE, ['phpredis', 'one'], 1));
}

function predis(): void
{
    global $port;
    require_once is_file('/usr/share/php/Predis/Autoloader.php') ? '/usr/share/php/Predis/Autoloader.php' : 'Predis/autoload.php';
    if (class_exists('Predis\Autoloader')) {
        Predis\Autoloader::register();
    }
    [$a, $b] = [new Predis\Client(['port' => $port]), new Predis\Client(['port' => $port])];
    say('take', (string) $a->set('predis', 'one', 'PX', 30000, 'NX'));
    say('refused', $b->set('predis', 'two', 'PX', 30000, 'NX'));
    say('extend', $a->eval(PROLONG, 1, 'predis', 'one', 20000));
    say('release of another one\'s', $b->eval(RELEASE, 1, 'predis', 'two'));
    say('release', $a->eval(RELEASE, 1, 'predis', 'one'));
    say('the other one', (string) $b->set('predis', 'two', 'EX', 30, 'NX'));
    say('transaction', tried(fn() => $b->transaction(['watch' => 'predis', 'cas' => true], function ($tx) {
        $mine = $tx->get('predis') === 'two';
        $tx->multi();
        if ($mine) {
            $tx->del('predis');
        }
    })));
    say('nobody', $a->exists('predis'));
}

function laravel(): void
{
    global $port;
    require_once 'Illuminate/autoload.php';
    $manager = fn() => new Illuminate\Redis\RedisManager(
        new Illuminate\Container\Container(),
        'phpredis',
        ['default' => ['host' => '127.0.0.1', 'port' => $port, 'database' => 0]]
    );
    [$a, $b] = [new Illuminate\Cache\RedisStore($manager(), 'app:'), new Illuminate\Cache\RedisStore($manager(), 'app:')];
    $first = $a->lock('laravel', 30);
    $second = $b->lock('laravel', 30);
    say('take', $first->get());
    say('refused', $second->get());
    say('refused after a wait', tried(fn() => $b->lock('laravel', 30)->block(1)));
    say('release of another one\'s', $second->release());
    say('release', $first->release());
    say('release again', $first->release());
    say('the other one', $second->get());
    say('restored', $a->restoreLock('laravel', $second->owner())->release());
    $free = $a->lock('laravel:free');
    say('without a time', [$free->get(), $b->lock('laravel:free')->get()]);
    $b->lock('laravel:free')->forceRelease();
    say('after force', $b->lock('laravel:free', 10)->get());
    $a->lock('laravel:short', 1)->get();
    until('after its end', fn() => $b->lock('laravel:short', 30)->get());
    say('inside', $a->lock('laravel:inside', 10)->get(fn() => 'done inside'));
    $limiter = $manager()->connection()->funnel('laravel:funnel')->limit(2)->releaseAfter(10)->block(0);
    say('funnel', tried(fn() => $limiter->then(
        fn() => $limiter->then(
            fn() => $limiter->then(fn() => 'three', fn() => 'third refused'),
            fn() => 'second refused'
        ),
        fn() => 'first refused'
    )));
}

function symfony(): void
{
    require_once 'Symfony/Component/Lock/autoload.php';
    $factory = fn() => new Symfony\Component\Lock\LockFactory(new Symfony\Component\Lock\Store\RedisStore(redis()));
    [$a, $b] = [$factory(), $factory()];
    $first = $a->createLock('symfony', 300, false);
    $second = $b->createLock('symfony', 300, false);
    say('take', tried(fn() => $first->acquire()));
    say('refused', tried(fn() => $second->acquire()));
    say('refresh', tried(fn() => $first->refresh()));
    say('acquired', tried(fn() => $first->isAcquired()));
    say('release', tried(fn() => $first->release()));
    say('the other one', tried(fn() => $second->acquire()));
    say('release', tried(fn() => $second->release()));
}

$library();
echo "done\n";
