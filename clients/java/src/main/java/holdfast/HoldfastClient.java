package holdfast;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import java.net.InetSocketAddress;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Lock;

/**
 * One process's access to its brokers: one connection for all its locks, however many wait. It connects by itself; when the
 * connection or the broker is lost it asks the next one of its list, and takes its locks back there.
 *
 * <pre>{@code
 * try (HoldfastClient client = HoldfastClient.connect("redis://broker-a:5625", "redis://broker-b:5625");
 *      HoldfastLock lock = client.lock("invoice:42")) {
 *     pay(lock.token());
 * }
 * }</pre>
 */
public final class HoldfastClient implements AutoCloseable {
    private static final String CLOSED = "CLOSED the client is closed";
    private static final long RETRY_MIN_MS = 20;
    private static final long RETRY_MAX_MS = 1000;

    final Duration timeout;
    final ClientResources resources;
    final AtomicReference<Channel> channel = new AtomicReference<>(); // of the last connection
    final ScheduledExecutorService timers;
    private final List<RedisURI> brokers;
    private final String service;
    private final String id;
    private final AtomicLong owners = new AtomicLong();
    private final Map<String, Set<HoldfastLock>> holds = new ConcurrentHashMap<>();
    private final Map<String, NamedLock.Gate> gates = new ConcurrentHashMap<>();
    private final Thread thread;
    private volatile boolean closed;
    private volatile CompletableFuture<Session> session = new CompletableFuture<>();
    private volatile String reason = "not connected yet";

    /**
     * A client of these brokers, with redis://, rediss:// or redis-socket:// and user and password as Lettuce has them. Of
     * several, each is asked in turn which one to use, as a Sentinel would be; a single one is used as it is.
     */
    public static HoldfastClient connect(String... brokers) {
        return new HoldfastClient(Arrays.stream(brokers).map(RedisURI::create).toList(), Duration.ofSeconds(3), "holdfast");
    }

    /**
     * @param timeout after which a broker is given up that does not answer; well below the lease
     * @param service the name that brokers go by, "holdfast" unless their configuration says otherwise
     */
    public HoldfastClient(List<RedisURI> brokers, Duration timeout, String service) {
        if (brokers.isEmpty()) {
            throw new IllegalArgumentException("no brokers");
        }
        this.brokers = brokers.stream().map(uri -> RedisURI.builder(uri).withTimeout(timeout).build()).toList();
        this.timeout = timeout;
        this.service = service;
        id = "java:" + ProcessHandle.current().pid() + ":" + random() + ":";
        resources = DefaultClientResources.builder().nettyCustomizer(new NettyCustomizer() {
            @Override
            public void afterChannelInitialized(Channel made) {
                channel.set(made);
            }
        }).build();
        var pool = new ScheduledThreadPoolExecutor(1, work -> daemon(work, "holdfast-timers"),
                new ThreadPoolExecutor.DiscardPolicy()); // what comes after close()
        pool.setRemoveOnCancelPolicy(true);
        timers = pool;
        thread = daemon(this::run, "holdfast");
        thread.start();
    }

    private static Thread daemon(Runnable work, String name) {
        Thread made = new Thread(work, name);
        made.setDaemon(true);
        return made;
    }

    static String random() {
        byte[] bytes = new byte[12];
        new SecureRandom().nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    // ---- taking locks

    /** Waits until the lock is granted. */
    public HoldfastLock lock(String name) throws InterruptedException {
        return lock(LockRequest.of(name));
    }

    /** Waits for the lock. NotGranted tells that the time of the request is over; an interrupt ends the wait. */
    public HoldfastLock lock(LockRequest request) throws InterruptedException {
        CompletableFuture<HoldfastLock> taken = lockAsync(request);
        try {
            return taken.get();
        } catch (InterruptedException e) {
            taken.cancel(true);
            throw e;
        } catch (ExecutionException e) {
            throw (HoldfastException) e.getCause();
        }
    }

    /** The lock, if it is free. */
    public Optional<HoldfastLock> tryLock(String name) throws InterruptedException {
        return tryLock(LockRequest.of(name).waitFor(Duration.ZERO));
    }

    /** The lock, if it is granted in the time of the request. */
    public Optional<HoldfastLock> tryLock(LockRequest request) throws InterruptedException {
        try {
            return Optional.of(lock(request));
        } catch (HoldfastException.NotGranted e) {
            return Optional.empty();
        }
    }

    /** The lock, when it is granted; cancel() ends the wait. Nothing of it blocks. */
    public CompletableFuture<HoldfastLock> lockAsync(LockRequest request) {
        String owner = request.owner != null ? request.owner : id + owners.incrementAndGet();
        HoldfastLock lock = new HoldfastLock(this, request, owner);
        CompletableFuture<HoldfastLock> taken = new CompletableFuture<>();
        attempt(lock, random(), System.nanoTime(), taken);
        if (request.wait != null) {
            Duration reach = request.wait.isZero() ? timeout.multipliedBy(2) : request.wait;
            timers.schedule(() -> reach(taken), reach.toMillis(), TimeUnit.MILLISECONDS);
        }
        return taken;
    }

    /** A request that waits for no broker any more. */
    private void reach(CompletableFuture<HoldfastLock> taken) {
        if (!taken.isDone() && !session.isDone()) {
            taken.completeExceptionally(new HoldfastException("NOBROKER none could be reached: " + reason));
        } else if (!taken.isDone()) {
            timers.schedule(() -> reach(taken), RETRY_MAX_MS, TimeUnit.MILLISECONDS);
        }
    }

    /** One session's try; another one follows when it ends, under the same ID, so that it counts once. */
    private void attempt(HoldfastLock lock, String once, long since, CompletableFuture<HoldfastLock> taken) {
        session.whenComplete((on, closing) -> {
            if (closing != null) {
                taken.completeExceptionally(closing);
            }
            if (taken.isDone()) {
                return;
            }
            Duration left = lock.request.wait == null ? null : lock.request.wait.minusNanos(System.nanoTime() - since);
            Session.Ask ask = on.ask(lock, lock.request.line(lock.owner(), once, left));
            taken.whenComplete((got, e) -> {
                if (taken.isCancelled()) {
                    on.call("CANCEL", ask.tag());
                }
            });
            ask.end().whenCompleteAsync((granted, e) -> {
                if (e instanceof HoldfastException.Broken) {
                    attempt(lock, once, since, taken);
                } else if (e instanceof HoldfastException no && no.code().equals("DRAINING") && brokers.size() > 1) {
                    on.fail();
                    attempt(lock, once, since, taken);
                } else if (e != null) {
                    taken.completeExceptionally(e);
                } else if (!granted) {
                    taken.completeExceptionally(new HoldfastException.NotGranted(lock.names().get(0)));
                } else if (!taken.complete(lock)) {
                    lock.unlockAsync();
                }
            });
        });
    }

    /** Completes when there is a broker. Locks may be asked for before. */
    public CompletableFuture<Void> connected() {
        return session.thenAccept(on -> { });
    }

    /**
     * A java.util.concurrent lock over all processes. A thread enters it as often as it likes, as it does a ReentrantLock;
     * all that this client gives for a name are the same lock.
     */
    public Lock threadLock(String name) {
        return new NamedLock(this, gates, name);
    }

    // ---- sessions

    private void run() {
        long pause = RETRY_MIN_MS;
        for (int next = 0; !closed; next++) {
            try {
                Session made = new Session(this, address(brokers.get(next % brokers.size())));
                long since = System.nanoTime();
                serve(made);
                if (System.nanoTime() - since > Duration.ofMillis(RETRY_MAX_MS).toNanos()) {
                    pause = RETRY_MIN_MS;
                }
            } catch (RuntimeException e) {
                reason = String.valueOf(e.getMessage());
            }
            try {
                Thread.sleep(closed ? 0 : pause);
            } catch (InterruptedException e) {
                return; // by close()
            }
            pause = Math.min(2 * pause, RETRY_MAX_MS);
        }
    }

    private void serve(Session made) {
        try {
            made.call("CLIENT", "TELL", "ON").join();
            session.complete(made);
            all().forEach(lock -> lock.renew(made));
            made.over.join();
        } finally {
            made.fail();
            if (session.isDone()) { // else somebody waits for it still
                session = new CompletableFuture<>();
            }
            if (closed) {
                session.completeExceptionally(new HoldfastException(CLOSED));
            }
        }
    }

    /** Which broker to use, by the word of this one. */
    private RedisURI address(RedisURI broker) {
        if (brokers.size() == 1) {
            return broker;
        }
        RedisClient redis = RedisClient.create(resources);
        try (var sentinel = redis.connectSentinel(StringCodec.UTF8, broker)) {
            InetSocketAddress found = (InetSocketAddress) sentinel.sync().getMasterAddrByName(service);
            if (found == null) {
                throw new HoldfastException("ERR " + broker + " does not know of " + service);
            }
            return RedisURI.builder(broker).withHost(found.getHostString()).withPort(found.getPort()).build();
        } finally {
            redis.shutdownAsync(0, 0, TimeUnit.SECONDS);
        }
    }

    /** The session that there is, or the next one. */
    CompletableFuture<Session> session() {
        return session;
    }

    // ---- what is held

    void add(HoldfastLock lock) {
        lock.names().forEach(name -> holds.computeIfAbsent(name, n -> ConcurrentHashMap.newKeySet()).add(lock));
        if (closed) {
            lock.finish(new HoldfastException(CLOSED));
        }
    }

    void remove(HoldfastLock lock) {
        lock.names().forEach(name -> holds.computeIfPresent(name, (n, set) -> set.remove(lock) && set.isEmpty() ? null : set));
    }

    private List<HoldfastLock> all() {
        return holds.values().stream().flatMap(Set::stream).distinct().toList();
    }

    /** lost, jeopardy or safe; name, token, and the reason or the validity. */
    void told(String what, List<Object> words) {
        String name = words.get(1).toString();
        for (HoldfastLock lock : holds.getOrDefault(name, Set.of())) {
            int i = lock.names().indexOf(name);
            if (!lock.tokens().get(i).equals(words.get(2))) {
                continue;
            }
            if (what.equals("lost") && words.get(3).equals("moved") && lock.request.owner == null) {
                session.thenAccept(lock::renew); // a request of its own that came late has moved it
            } else if (what.equals("lost")) {
                lock.lose(i, words.get(3).toString());
            } else {
                lock.trouble(what.equals("jeopardy"));
            }
        }
    }

    /** Ends all locks, and gives them back but those with a lease. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        HoldfastException end = new HoldfastException(CLOSED);
        all().forEach(lock -> lock.finish(end));
        CompletableFuture<Session> last = session;
        if (!last.completeExceptionally(end)) {
            Session on = last.join();
            try {
                on.call("QUIT").orTimeout(timeout.toMillis(), TimeUnit.MILLISECONDS).join();
            } catch (CompletionException e) {
                // it has ended by itself
            }
            on.fail();
        }
        thread.interrupt();
        session.completeExceptionally(end);
        timers.shutdownNow();
        resources.shutdown(0, 0, TimeUnit.SECONDS);
    }
}
