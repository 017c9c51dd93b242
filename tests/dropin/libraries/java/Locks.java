// Lock libraries for Java, as their users write: what they say, on whatever server they are pointed at.
// usage: java Locks LIBRARY PORT
import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.sync.RedisCommands;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.jedis4.JedisLockProvider;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.params.SetParams;

public final class Locks {
    static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
    static int port;

    static void say(String what, Object outcome) {
        System.out.println(what + ": " + outcome);
    }

    static Object tried(Callable<?> call) {
        try {
            Object value = call.call();
            return value == null ? "nothing" : value;
        } catch (Exception err) {
            return "raises " + err.getClass().getSimpleName();
        }
    }

    static Object tried(Runnable run) {
        return tried(() -> {
            run.run();
            return "fine";
        });
    }

    static void until(String what, Callable<Boolean> probe) throws Exception {
        for (int i = 0; i < 1000; i++) {
            if (probe.call()) {
                say(what, "yes");
                return;
            }
            Thread.sleep(20);
        }
        say(what, "never");
    }

    interface Enter {
        Runnable enter() throws Exception;
    }

    /** Several threads behind one lock: the counter is exact, and nobody is inside with another one. */
    static void contenders(Enter enter) throws Exception {
        AtomicInteger inside = new AtomicInteger(), together = new AtomicInteger(), count = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            threads.add(new Thread(() -> {
                try {
                    for (int i = 0; i < 5; i++) {
                        Runnable leave = enter.enter();
                        together.accumulateAndGet(inside.incrementAndGet(), Math::max);
                        int seen = count.get();
                        Thread.sleep(2);
                        count.set(seen + 1);
                        inside.decrementAndGet();
                        leave.run();
                    }
                } catch (Exception err) {
                    say("contender", err);
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join(60000);
        say("contenders", count + " rounds, " + together + " at once");
    }

    static void jedis() throws Exception {
        Jedis a = new Jedis("127.0.0.1", port), b = new Jedis("127.0.0.1", port);
        say("take", a.set("jedis", "one", SetParams.setParams().nx().px(30000)));
        say("refused", b.set("jedis", "two", SetParams.setParams().nx().ex(30)));
        say("who", b.get("jedis"));
        say("its time", b.pttl("jedis") > 10000);
        say("release of another one's", b.eval(RELEASE, List.of("jedis"), List.of("two")));
        String sha = a.scriptLoad(RELEASE);
        say("known", b.scriptExists(sha));
        say("release", a.evalsha(sha, List.of("jedis"), List.of("one")));
        say("setnx", b.setnx("jedis", "two"));
        say("expire", b.expire("jedis", 30));
        b.watch("jedis");
        Transaction transaction = b.multi();
        transaction.pexpire("jedis", 20000L);
        transaction.del("jedis");
        say("transaction", transaction.exec());
        b.set("jedis", "one", SetParams.setParams().nx().px(300));
        until("after its end", () -> a.set("jedis", "two", SetParams.setParams().nx().px(30000)) != null);
    }

    static void lettuce() throws Exception {
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + port);
        RedisCommands<String, String> a = client.connect().sync(), b = client.connect().sync();
        say("take", a.set("lettuce", "one", SetArgs.Builder.nx().px(30000)));
        say("refused", b.set("lettuce", "two", SetArgs.Builder.nx().px(30000)));
        say("release of another one's", b.<Long>eval(RELEASE, ScriptOutputType.INTEGER, new String[] {"lettuce"}, "two"));
        String sha = a.scriptLoad(RELEASE);
        say("release", a.<Long>evalsha(sha, ScriptOutputType.INTEGER, new String[] {"lettuce"}, "one"));
        say("setnx", b.setnx("lettuce", "two"));
        say("expire", b.pexpire("lettuce", 20000));
        say("its time", a.pttl("lettuce") > 10000);
        b.watch("lettuce");
        b.multi();
        b.del("lettuce");
        say("transaction", b.exec().wasDiscarded());
        say("nobody", a.exists("lettuce"));
        client.shutdown(0, 2, TimeUnit.SECONDS);
    }

    static RedissonClient redissonClient() {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port)
            .setConnectionMinimumIdleSize(1).setConnectionPoolSize(8);
        config.setLockWatchdogTimeout(1500);
        return Redisson.create(config);
    }

    static void redisson() throws Exception {
        RedissonClient a = redissonClient(), b = redissonClient();
        RLock first = a.getLock("redisson"), second = b.getLock("redisson");
        say("take", first.tryLock(0, 30, TimeUnit.SECONDS));
        say("refused", second.tryLock());
        say("refused after a wait", second.tryLock(300, TimeUnit.MILLISECONDS));
        say("enter again", first.tryLock(0, 30, TimeUnit.SECONDS));
        say("how often", first.getHoldCount());
        say("locked", second.isLocked() + " " + second.isHeldByCurrentThread() + " " + first.isHeldByCurrentThread());
        say("its time", second.remainTimeToLive() > 10000);
        say("release of another one's", tried((Runnable) second::unlock));
        first.unlock();
        say("still", second.isLocked());
        Thread waiting = new Thread(() -> {
            second.lock(30, TimeUnit.SECONDS);
            say("woken", second.isHeldByCurrentThread());
            second.unlock();
        });
        waiting.start();
        Thread.sleep(300);
        first.unlock();
        waiting.join(20000);
        say("release again", tried((Runnable) first::unlock));
        RLock watched = a.getLock("redisson:watched");
        watched.lock();
        Thread.sleep(3000);
        say("renewed by the watchdog", b.getLock("redisson:watched").isLocked());
        watched.unlock();
        say("force", a.getLock("redisson:forced").tryLock() + " " + b.getLock("redisson:forced").forceUnlock());
        RLock shortOne = a.getLock("redisson:short");
        shortOne.lock(300, TimeUnit.MILLISECONDS);
        say("after its end", b.getLock("redisson:short").tryLock(20, 30, TimeUnit.SECONDS));
        say("release of what has ended", tried((Runnable) shortOne::unlock));
        contenders(() -> {
            RLock held = (Math.random() < 0.5 ? a : b).getLock("redisson:many");
            held.lock(30, TimeUnit.SECONDS);
            return held::unlock;
        });
        a.shutdown();
        b.shutdown();
    }

    static RedisConnectionFactory factory(boolean byJedis) {
        RedisStandaloneConfiguration where = new RedisStandaloneConfiguration("127.0.0.1", port);
        if (byJedis) {
            JedisConnectionFactory made = new JedisConnectionFactory(where);
            made.afterPropertiesSet();
            made.start();
            return made;
        }
        LettuceConnectionFactory made = new LettuceConnectionFactory(where);
        made.afterPropertiesSet();
        made.start();
        return made;
    }

    static void spring(boolean byJedis, RedisLockRegistry.RedisLockType type) throws Exception {
        RedisLockRegistry a = new RedisLockRegistry(factory(byJedis), "reg", 30000);
        RedisLockRegistry b = new RedisLockRegistry(factory(byJedis), "reg", 30000);
        RedisLockRegistry brief = new RedisLockRegistry(factory(byJedis), "reg", 400);
        for (RedisLockRegistry registry : List.of(a, b, brief)) registry.setRedisLockType(type);
        Lock first = a.obtain("spring"), second = b.obtain("spring");
        say("take", first.tryLock());
        say("refused", second.tryLock());
        say("refused after a wait", second.tryLock(300, TimeUnit.MILLISECONDS));
        say("enter again", first.tryLock());
        first.unlock();
        say("extend", tried(() -> a.renewLock("spring")));
        say("release of another one's", tried((Runnable) second::unlock));
        say("release", tried((Runnable) first::unlock));
        say("the other one", second.tryLock(20, TimeUnit.SECONDS));
        second.unlock();
        Lock shortOne = brief.obtain("spring:short");
        shortOne.lock();
        Thread later = new Thread(() -> {
            Lock other = b.obtain("spring:short");
            say("after its end", tried(() -> other.tryLock(20, TimeUnit.SECONDS)));
        });
        later.start();
        later.join(30000);
        say("release of what has ended", tried((Runnable) shortOne::unlock));
        contenders(() -> {
            Lock held = (Math.random() < 0.5 ? a : b).obtain("spring:many");
            held.lock();
            return held::unlock;
        });
        a.destroy();
        b.destroy();
    }

    static void shedlock(LockProvider a, LockProvider b, boolean canExtend) throws Exception {
        Callable<LockConfiguration> task = () ->
            new LockConfiguration(Instant.now(), "task", Duration.ofHours(2), Duration.ZERO);
        Optional<SimpleLock> first = a.lock(task.call());
        say("take", first.isPresent());
        say("refused", b.lock(task.call()).isPresent());
        if (canExtend) {
            first = first.get().extend(Duration.ofHours(3), Duration.ZERO);
            say("extend", first.isPresent());
        }
        first.get().unlock();
        Optional<SimpleLock> second = b.lock(task.call());
        say("the other one", second.isPresent());
        second.get().unlock();
        Optional<SimpleLock> least =
            a.lock(new LockConfiguration(Instant.now(), "least", Duration.ofSeconds(30), Duration.ofMillis(700)));
        least.get().unlock();
        LockConfiguration again = new LockConfiguration(Instant.now(), "least", Duration.ofSeconds(30), Duration.ZERO);
        say("not before its least time", b.lock(again).isPresent());
        until("after its least time",
            () -> b.lock(new LockConfiguration(Instant.now(), "least", Duration.ofSeconds(30), Duration.ZERO)).isPresent());
    }

    static void shedlockByJedis() throws Exception {
        shedlock(new JedisLockProvider(new JedisPool("127.0.0.1", port), "by-jedis"),
            new JedisLockProvider(new JedisPool("127.0.0.1", port), "by-jedis"), true);
    }

    static void shedlockBySpring() throws Exception {
        LockProvider[] made = new LockProvider[2];
        for (int i = 0; i < 2; i++) {
            made[i] = new RedisLockProvider(factory(false), "by-spring");
        }
        shedlock(made[0], made[1], false);
    }

    public static void main(String[] args) throws Exception {
        port = Integer.parseInt(args[1]);
        switch (args[0]) {
            case "jedis" -> jedis();
            case "lettuce" -> lettuce();
            case "redisson" -> redisson();
            case "spring_lettuce" -> spring(false, RedisLockRegistry.RedisLockType.SPIN_LOCK);
            case "spring_jedis" -> spring(true, RedisLockRegistry.RedisLockType.SPIN_LOCK);
            case "spring_pubsub" -> spring(false, RedisLockRegistry.RedisLockType.PUB_SUB_LOCK);
            case "shedlock_jedis" -> shedlockByJedis();
            case "shedlock_spring" -> shedlockBySpring();
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println("done");
        System.exit(0);
    }
}
