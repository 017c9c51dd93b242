package holdfast;

import java.util.concurrent.locks.Lock;
import org.springframework.integration.support.locks.LockRegistry;

/** The locks of a client for Spring Integration: the name is a prefix, and the key as a string. */
public final class HoldfastLockRegistry implements LockRegistry {
    private final HoldfastClient client;
    private final String prefix;

    /** Whoever has the same prefix has the same locks. */
    public HoldfastLockRegistry(HoldfastClient client, String prefix) {
        this.client = client;
        this.prefix = prefix;
    }

    @Override
    public Lock obtain(Object lockKey) {
        return client.threadLock(prefix + lockKey);
    }
}
