package holdfast;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What to lock, and how; each method gives a new one. The options are those of LOCK in holdfast-protocol(7). */
public final class LockRequest {
    final List<String> names;
    final String owner;
    final Duration wait;
    final boolean watched;
    private final List<Object> words;

    private LockRequest(List<String> names, String owner, Duration wait, boolean watched, List<Object> words) {
        this.names = names;
        this.owner = owner;
        this.wait = wait;
        this.watched = watched;
        this.words = words;
    }

    /** One name, or several: all or none. */
    public static LockRequest of(String... names) {
        return new LockRequest(List.of(names), null, null, true, List.of());
    }

    private LockRequest with(Object... more) {
        List<Object> all = new ArrayList<>(words);
        all.addAll(List.of(more));
        return new LockRequest(names, owner, wait, watched && !more[0].equals("LEASE"), all);
    }

    /** Stands in line for so long; zero: one try. Without it, for ever. */
    public LockRequest waitFor(Duration time) {
        return new LockRequest(names, owner, time, watched, words);
    }

    /** Held for this time, renewed by nobody, and not dependent on a connection. */
    public LockRequest lease(Duration time) {
        return with("LEASE", time.toMillis());
    }

    /** Held for this time at most. */
    public LockRequest maxHold(Duration time) {
        return with("MAXHOLD", time.toMillis());
    }

    /** As a reader, together with others. */
    public LockRequest shared() {
        return with("SHARED");
    }

    /** As one of n at a time. */
    public LockRequest limit(int n) {
        return with("LIMIT", n);
    }

    /** In order of arrival across brokers. */
    public LockRequest fair() {
        return with("FAIR");
    }

    /**
     * Who is to hold it. All who name the same owner hold it together: a second lock enters it once more, and it is free
     * after as many unlocks. Without it each lock is an owner of its own.
     */
    public LockRequest owner(String id) {
        return new LockRequest(names, id, wait, watched, words);
    }

    /** The command; left is what is left of the time to wait. */
    List<Object> line(String owner, String id, Duration left) {
        List<Object> line = new ArrayList<>(names.size() == 1 ? List.of("LOCK") : List.of("MLOCK", names.size()));
        line.addAll(names);
        line.addAll(List.of("OWNER", owner, "ID", id));
        line.addAll(words);
        if (left == null) {
            line.addAll(List.of("WAIT", 0));
        } else if (!wait.isZero()) {
            line.addAll(List.of("WAIT", Math.max(1, left.toMillis())));
        }
        return line;
    }
}
