package holdfast;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** A name as a Lock: the threads of this client exclude each other by a gate, and who is inside holds the lock. */
final class NamedLock implements Lock {
    /** There while somebody uses it. */
    static final class Gate {
        final ReentrantLock lock = new ReentrantLock();
        int users;
        HoldfastLock held;
    }

    private final HoldfastClient client;
    private final Map<String, Gate> gates;
    private final String name;

    NamedLock(HoldfastClient client, Map<String, Gate> gates, String name) {
        this.client = client;
        this.gates = gates;
        this.name = name;
    }

    private Gate enter() {
        return gates.compute(name, (n, gate) -> {
            Gate entered = gate == null ? new Gate() : gate;
            entered.users++;
            return entered;
        });
    }

    private void leave() {
        gates.computeIfPresent(name, (n, gate) -> --gate.users == 0 ? null : gate);
    }

    @Override
    public void lock() {
        boolean interrupted = false;
        while (true) {
            try {
                lockInterruptibly();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        take(null);
    }

    @Override
    public boolean tryLock() {
        boolean interrupted = Thread.interrupted();
        try {
            return take(Duration.ZERO);
        } catch (InterruptedException e) {
            interrupted = true;
            return false;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        return take(Duration.ofNanos(Math.max(0, unit.toNanos(time))));
    }

    /** Whether it is inside; wait is as in a request. */
    private boolean take(Duration wait) throws InterruptedException {
        long since = System.nanoTime();
        Gate gate = enter();
        boolean entered = false;
        boolean inside = false;
        try {
            if (wait == null) {
                gate.lock.lockInterruptibly();
            } else if (!gate.lock.tryLock(wait.toNanos(), TimeUnit.NANOSECONDS)) {
                return false;
            }
            entered = true;
            if (gate.lock.getHoldCount() == 1) {
                LockRequest request = LockRequest.of(name);
                if (wait != null) {
                    Duration left = wait.minusNanos(System.nanoTime() - since);
                    request = request.waitFor(left.isNegative() ? Duration.ZERO : left);
                }
                Optional<HoldfastLock> taken = client.tryLock(request);
                gate.held = taken.orElse(null);
                inside = taken.isPresent();
            } else {
                gate.held.check();
                inside = true;
            }
            return inside;
        } finally {
            if (entered && !inside) {
                gate.lock.unlock();
            }
            if (!inside) {
                leave();
            }
        }
    }

    /** Gives it back; LockLostException tells that it had been lost before. */
    @Override
    public void unlock() {
        Gate gate = gates.get(name);
        if (gate == null || !gate.lock.isHeldByCurrentThread()) {
            throw new IllegalMonitorStateException("this thread does not hold '" + name + "'");
        }
        try {
            if (gate.lock.getHoldCount() == 1) {
                HoldfastLock held = gate.held;
                gate.held = null;
                held.unlock();
            }
        } finally {
            gate.lock.unlock();
            leave();
        }
    }

    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("conditions do not reach other processes");
    }
}
