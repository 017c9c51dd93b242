package holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** What needs no fault; clients/scenarios has those. HOLDFAST_BROKER is a broker, as redis://host:port. */
@EnabledIfEnvironmentVariable(named = "HOLDFAST_BROKER", matches = ".+")
class HoldfastClientTest {
    private static final String BROKER = System.getenv("HOLDFAST_BROKER");
    private HoldfastClient a;
    private HoldfastClient b;
    private String name;
    private int inside; // guarded by the lock under test alone

    @BeforeEach
    void connect(TestInfo info) {
        a = HoldfastClient.connect(BROKER);
        b = HoldfastClient.connect(BROKER);
        name = "java:" + info.getDisplayName();
    }

    @AfterEach
    void close() {
        a.close();
        b.close();
    }

    @Test
    void givesBackOnce() throws InterruptedException {
        HoldfastLock first = a.lock(name);
        assertTrue(first.isHeld() && b.tryLock(name).isEmpty() && a.tryLock(name).isEmpty());
        first.unlock();
        assertFalse(first.isHeld());
        try (HoldfastLock second = b.lock(name)) {
            assertTrue(second.token() > first.token());
            first.close(); // of which nobody hears
            second.check();
        }
    }

    @Test
    void threadsExcludeEachOther() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            Lock lock = (i % 2 == 0 ? a : b).threadLock(name);
            threads.add(new Thread(() -> {
                for (int n = 0; n < 5; n++) {
                    lock.lock();
                    assertTrue(lock.tryLock());
                    int before = inside;
                    Thread.yield();
                    inside = before + 1;
                    lock.unlock();
                    lock.unlock();
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(200, inside);
    }

    @Test
    void threadLockIsOfItsThread() throws InterruptedException {
        Lock lock = new HoldfastLockRegistry(a, name).obtain(42);
        Lock same = new HoldfastLockRegistry(a, name).obtain(42);
        Lock elsewhere = new HoldfastLockRegistry(b, name).obtain(42);
        lock.lock();
        assertTrue(same.tryLock());
        same.unlock();
        assertFalse(elsewhere.tryLock(50, TimeUnit.MILLISECONDS));
        CompletableFuture.runAsync(() -> {
            assertFalse(lock.tryLock());
            assertThrows(IllegalMonitorStateException.class, lock::unlock);
        }).join();
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, elsewhere::lockInterruptibly);
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, same::lockInterruptibly);
        lock.unlock();
        assertTrue(elsewhere.tryLock(10, TimeUnit.SECONDS));
        elsewhere.unlock();
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    }

    @Test
    void cancelledAnywhere() throws InterruptedException {
        List<CompletableFuture<?>> ends = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            CompletableFuture<HoldfastLock> taken = a.lockAsync(LockRequest.of(name));
            ends.add(taken.thenCompose(HoldfastLock::unlockAsync).handle((done, e) -> done));
            ends.add(CompletableFuture.runAsync(() -> taken.cancel(true),
                    CompletableFuture.delayedExecutor(ThreadLocalRandom.current().nextInt(20000), TimeUnit.MICROSECONDS)));
        }
        CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).join();
        assertTrue(b.tryLock(LockRequest.of(name).waitFor(Duration.ofSeconds(10))).isPresent());
    }

    @Test
    void closeEndsEverything() throws Exception {
        HoldfastLock held = a.lock(name);
        CompletableFuture<HoldfastLock> waits = a.lockAsync(LockRequest.of(name));
        a.close();
        assertFalse(held.isHeld());
        ExecutionException e = assertThrows(ExecutionException.class, () -> waits.get(10, TimeUnit.SECONDS));
        assertEquals("CLOSED", ((HoldfastException) e.getCause()).code());
        assertThrows(HoldfastException.class, () -> a.lock(name));
        assertTrue(b.tryLock(LockRequest.of(name).waitFor(Duration.ofSeconds(10))).isPresent());
    }

    @Test
    void refusalsAreNamed() throws InterruptedException {
        a.lock(LockRequest.of(name).limit(2));
        assertEquals("KIND", assertThrows(HoldfastException.class, () -> b.tryLock(name)).code());
        assertEquals("ERR", assertThrows(HoldfastException.class, () -> b.lock("")).code());
        try (HoldfastClient nobody = HoldfastClient.connect("redis://127.0.0.1:1")) {
            LockRequest soon = LockRequest.of(name).waitFor(Duration.ofMillis(100));
            assertEquals("NOBROKER", assertThrows(HoldfastException.class, () -> nobody.lock(soon)).code());
        }
    }
}
