package holdfast;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** A lock that is held until it is given back or lost. */
public final class HoldfastLock implements AutoCloseable {
    private static final long TOLD_BEFORE_NS = Duration.ofMillis(500).toNanos();

    final LockRequest request;
    private final HoldfastClient client;
    private final String owner;
    private final CompletableFuture<LockLostException> lost = new CompletableFuture<>();
    private List<Long> tokens = List.of();
    private long deadline;
    private RuntimeException end; // why it is over
    private boolean released;
    private boolean troubled;
    private Consumer<Boolean> listener = bad -> { };
    private ScheduledFuture<?> expiry;
    private ScheduledFuture<?> renewal;

    HoldfastLock(HoldfastClient client, LockRequest request, String owner) {
        this.client = client;
        this.request = request;
        this.owner = owner;
    }

    /** What is locked. */
    public List<String> names() {
        return request.names;
    }

    /** Who holds it, as LOCKINFO shows it. */
    public String owner() {
        return owner;
    }

    /** The fencing token; it grows when the lock is taken back after its connection was lost, so ask each time. */
    public long token() {
        return tokens().get(0);
    }

    /** Those of all names. */
    public synchronized List<Long> tokens() {
        return tokens;
    }

    /** For how long the lock is promised by now; that of a watched lock goes on. */
    public synchronized Duration remaining() {
        return Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
    }

    /** Whether the lock may be relied on, by the clock. */
    public boolean isHeld() {
        boolean late;
        synchronized (this) {
            late = !tokens.isEmpty() && deadline - System.nanoTime() <= 0;
        }
        if (late) {
            lose(0, "expired");
        }
        synchronized (this) {
            return end == null && !tokens.isEmpty();
        }
    }

    /** Throws why the lock may not be relied on, if so. */
    public void check() {
        if (!isHeld()) {
            synchronized (this) {
                throw end == null ? new HoldfastException("NOTHELD not granted yet") : end;
            }
        }
    }

    /** Completes when the lock is lost; it is not when it is given back. */
    public CompletableFuture<LockLostException> lost() {
        return lost.copy();
    }

    /** Called with true when a renewal has failed, and with false when the lock is safe again. It must not block. */
    public void onJeopardy(Consumer<Boolean> called) {
        boolean now;
        synchronized (this) {
            listener = called;
            now = troubled;
        }
        if (now) {
            called.accept(true);
        }
    }

    /**
     * Gives the lock back. LockLostException tells that it had been lost before, HoldfastException that the broker could not
     * be told: it is then free when its lease ends.
     */
    public void unlock() {
        try {
            unlockAsync().join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause
                    : new HoldfastException("NOBROKER " + names() + " could not be given back");
        }
    }

    /** As unlock; a second one does nothing. */
    @Override
    public void close() {
        unlock();
    }

    /** As unlock, without blocking. */
    public CompletableFuture<Void> unlockAsync() {
        RuntimeException before = finish(new HoldfastException("RELEASED given back"));
        synchronized (this) {
            if (released) {
                return CompletableFuture.completedFuture(null);
            }
            released = true;
        }
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int i = 0; i < names().size(); i++) {
            CompletableFuture<Void> one = new CompletableFuture<Void>().orTimeout(4 * client.timeout.toMillis(), TimeUnit.MILLISECONDS);
            giveBack(i, false, one);
            all.add(one);
        }
        // of one that is lost the broker hears too, as it may still renew it
        return before != null ? CompletableFuture.failedFuture(before) : CompletableFuture.allOf(all.toArray(CompletableFuture[]::new));
    }

    private void giveBack(int i, boolean again, CompletableFuture<Void> done) {
        client.session().whenComplete((on, closing) -> {
            if (closing != null || done.isDone()) {
                done.completeExceptionally(closing);
                return;
            }
            on.call("UNLOCK", names().get(i), "OWNER", owner).whenCompleteAsync((reply, e) -> {
                boolean notHeld = e instanceof HoldfastException no && no.code().equals("NOTHELD");
                if (e instanceof HoldfastException.Broken && request.owner == null
                        || e == null && reply.get(0).equals(0L) && request.owner == null) {
                    giveBack(i, true, done); // a request that two brokers have seen counts twice
                } else if (e == null || notHeld && again) {
                    done.complete(null);
                } else {
                    done.completeExceptionally(notHeld ? new LockLostException(names().get(i), tokens().get(i), "notheld") : e);
                }
            });
        });
    }

    // ---- what happens to it

    void hold(List<?> granted, long until) {
        extend(granted.stream().map(token -> (Long) token).toList(), until);
        client.add(this);
    }

    /** A lock is lost as long before its deadline as a broker tells of that: a tenth, 500 ms at most. */
    private synchronized void extend(List<Long> now, long until) {
        if (end != null) {
            return;
        }
        tokens = now;
        deadline = until;
        long left = until - System.nanoTime();
        stop();
        expiry = client.timers.schedule(() -> lose(0, "expired"), left - Math.min(left / 10, TOLD_BEFORE_NS), TimeUnit.NANOSECONDS);
        renewAfter(left / 3);
    }

    private synchronized void renewAfter(long ns) {
        if (request.watched && end == null) {
            renewal = client.timers.schedule(() -> client.session().thenAccept(this::renew), ns, TimeUnit.NANOSECONDS);
        }
    }

    private void stop() {
        for (ScheduledFuture<?> timer : new ScheduledFuture<?>[] {expiry, renewal}) {
            if (timer != null) {
                timer.cancel(false);
            }
        }
    }

    /** The broker has to confirm what the holder may rely on; on a new session this takes the lock back. */
    void renew(Session on) {
        synchronized (this) {
            if (!request.watched || end != null) {
                return;
            }
        }
        long asked = System.nanoTime();
        List<CompletableFuture<List<Object>>> replies = names().stream().map(name -> on.call("RENEW", name, "OWNER", owner)).toList();
        CompletableFuture.allOf(replies.toArray(CompletableFuture[]::new)).whenComplete((all, e) -> {
            List<Long> now = new ArrayList<>();
            long least = Long.MAX_VALUE;
            for (int i = 0; i < replies.size(); i++) {
                try {
                    List<Object> reply = replies.get(i).join();
                    now.add((Long) reply.get(0));
                    least = Math.min(least, (Long) reply.get(1));
                } catch (CompletionException failed) {
                    refused(i, (HoldfastException) failed.getCause());
                    return;
                }
            }
            extend(now, asked + Duration.ofMillis(least).toNanos());
            trouble(false);
        });
    }

    private void refused(int i, HoldfastException e) {
        if (e.code().equals("NOTHELD")) {
            lose(i, "notheld");
        } else if (!(e instanceof HoldfastException.Broken)) { // then the next session renews it
            trouble(true);
            renewAfter(Math.min(remaining().toNanos() / 10, TOLD_BEFORE_NS));
        }
    }

    void trouble(boolean bad) {
        Consumer<Boolean> called;
        synchronized (this) {
            if (troubled == bad || end != null) {
                return;
            }
            troubled = bad;
            called = listener;
        }
        called.accept(bad);
    }

    void lose(int i, String reason) {
        LockLostException e = new LockLostException(names().get(i), tokens().get(i), reason);
        if (finish(e) == null) {
            lost.completeAsync(() -> e);
        }
    }

    /** Ends the hold; gives what has ended it before. */
    RuntimeException finish(RuntimeException why) {
        synchronized (this) {
            if (end != null) {
                return end;
            }
            end = why;
            stop();
        }
        client.remove(this);
        return null;
    }
}
