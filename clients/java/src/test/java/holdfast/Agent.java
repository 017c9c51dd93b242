package holdfast;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.lettuce.core.RedisURI;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;

/** Takes part in the scenarios that all client packages are held to: see clients/scenarios. */
public final class Agent {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, CompletableFuture<HoldfastLock>> TAKEN = new ConcurrentHashMap<>();
    private static HoldfastClient client;

    private Agent() { }

    private static synchronized void write(String event, String hold, Object... more) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        if (hold != null) {
            line.put("hold", hold);
        }
        for (int i = 0; i < more.length; i += 2) {
            line.put((String) more[i], more[i + 1]);
        }
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static LockRequest request(JsonNode c) {
        List<String> names = new ArrayList<>();
        c.get("names").forEach(name -> names.add(name.asText()));
        LockRequest request = LockRequest.of(names.toArray(String[]::new));
        request = c.has("wait") ? request.waitFor(Duration.ofMillis(c.get("wait").asLong())) : request;
        request = c.has("lease") ? request.lease(Duration.ofMillis(c.get("lease").asLong())) : request;
        request = c.has("max_hold") ? request.maxHold(Duration.ofMillis(c.get("max_hold").asLong())) : request;
        request = c.has("shared") ? request.shared() : request;
        request = c.has("limit") ? request.limit(c.get("limit").asInt()) : request;
        return c.has("fair") ? request.fair() : request;
    }

    private static void lock(String hold, JsonNode c) {
        CompletableFuture<HoldfastLock> taken = client.lockAsync(request(c));
        TAKEN.put(hold, taken);
        taken.whenComplete((lock, e) -> {
            if (e == null) {
                write("granted", hold, "tokens", lock.tokens());
                lock.onJeopardy(bad -> write(bad ? "jeopardy" : "safe", hold));
                lock.lost().thenAccept(lost -> write("lost", hold, "text", lost.reason));
            } else if (e instanceof CancellationException) {
                write("cancelled", hold);
            } else if (e instanceof HoldfastException.NotGranted) {
                write("timeout", hold);
            } else {
                write("error", hold, "text", e.getMessage());
            }
        });
    }

    private static void unlock(String hold) {
        TAKEN.get(hold).join().unlockAsync().whenComplete((done, e) -> {
            Throwable cause = e instanceof CompletionException ? e.getCause() : e;
            if (cause == null) {
                write("released", hold);
            } else if (cause instanceof LockLostException) {
                write("notheld", hold);
            } else {
                write("error", hold, "text", String.valueOf(cause));
            }
        });
    }

    private static void state(String hold) {
        CompletableFuture<HoldfastLock> taken = TAKEN.get(hold);
        if (taken == null || !taken.isDone() || taken.isCompletedExceptionally()) {
            write("state", hold, "held", false, "tokens", List.of(), "remaining", 0);
            return;
        }
        HoldfastLock lock = taken.join();
        write("state", hold, "held", lock.isHeld(), "tokens", lock.tokens(), "remaining", lock.remaining().toMillis());
    }

    /** A lock that a thread enters twice, or two locks of the same name. */
    private static void nested(String hold, String name, boolean reentrant) {
        boolean entered;
        try {
            if (reentrant) {
                var lock = client.threadLock(name);
                lock.lock();
                entered = lock.tryLock();
                lock.unlock();
                if (entered) {
                    lock.unlock();
                }
            } else {
                try (HoldfastLock outer = client.lock(name)) {
                    entered = client.tryLock(name).isPresent();
                    outer.check();
                }
            }
            write(entered ? "entered" : "refused", hold);
        } catch (RuntimeException | InterruptedException e) {
            write("error", hold, "text", String.valueOf(e));
        }
    }

    private static void obey(JsonNode c) {
        String hold = c.path("hold").asText(null);
        switch (c.get("do").asText()) {
            case "connect" -> {
                List<RedisURI> brokers = new ArrayList<>();
                c.get("brokers").forEach(uri -> brokers.add(RedisURI.create(uri.asText())));
                client = new HoldfastClient(brokers, Duration.ofMillis(c.get("timeout").asLong()), "holdfast");
                client.connected().thenRun(() -> write("connected", null));
            }
            case "lock" -> lock(hold, c);
            case "cancel" -> TAKEN.get(hold).cancel(true);
            case "unlock" -> unlock(hold);
            case "state" -> state(hold);
            case "nested" -> new Thread(() -> nested(hold, c.get("name").asText(), c.get("reentrant").asBoolean())).start();
            case "close" -> {
                client.close();
                write("closed", null);
            }
            default -> throw new IllegalArgumentException(c.toString());
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            obey(JSON.readTree(line));
        }
        Runtime.getRuntime().halt(0);
    }
}
