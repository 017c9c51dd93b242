package holdfast;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.push.PushMessage;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelOption;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** One connection to a broker; when it fails the session is over, and the next one takes back what was held. */
final class Session {
    /** A LOCK that has not ended: true when granted, false when not in time or cancelled. */
    record Ask(HoldfastLock lock, long at, String tag, CompletableFuture<Boolean> end) {}

    private record Word(String name) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return name.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public String toString() {
            return name;
        }
    }

    final CompletableFuture<Void> over = new CompletableFuture<>();
    private final HoldfastClient client;
    private final RedisClient redis;
    private final StatefulRedisConnection<String, String> connection;
    private final Channel channel;
    private final Set<CompletableFuture<?>> calls = ConcurrentHashMap.newKeySet();
    private final Map<String, Ask> waiting = new ConcurrentHashMap<>();
    private final AtomicLong tags = new AtomicLong();
    private final ScheduledFuture<?> pings;
    private CompletableFuture<?> pong = CompletableFuture.completedFuture(null);
    private volatile long heard;

    Session(HoldfastClient client, RedisURI uri) {
        this.client = client;
        redis = RedisClient.create(client.resources);
        redis.setOptions(ClientOptions.builder().autoReconnect(false).protocolVersion(ProtocolVersion.RESP3)
                .timeoutOptions(TimeoutOptions.builder().timeoutCommands(false).build()) // ping() sees to that
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .socketOptions(SocketOptions.builder().connectTimeout(client.timeout).build()).build());
        try {
            connection = redis.connect(StringCodec.UTF8, uri);
        } catch (RuntimeException e) {
            redis.shutdownAsync(0, 0, TimeUnit.SECONDS);
            throw e;
        }
        channel = client.channel.get();
        channel.closeFuture().addListener(end -> fail());
        connection.addListener(this::told);
        long third = client.timeout.toMillis() / 3 + 1;
        pings = client.timers.scheduleAtFixedRate(this::ping, third, third, TimeUnit.MILLISECONDS);
    }

    /** Silence for the time-out ends the session; a request that is behind many others is none. */
    private void ping() {
        if (pong.isDone()) {
            heard = System.nanoTime();
            pong = call("PING");
        } else if (System.nanoTime() - heard > client.timeout.toNanos()) {
            fail();
        }
    }

    /**
     * Says a command. It fails with what the broker has refused it with, or with Broken, and then it may have been carried
     * out.
     */
    CompletableFuture<List<Object>> call(Object... words) {
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (int i = 1; i < words.length; i++) {
            args.add(words[i].toString());
        }
        CompletableFuture<List<Object>> answer = new CompletableFuture<>();
        calls.add(answer);
        try {
            connection.async().dispatch(new Word(words[0].toString()), new NestedMultiOutput<>(StringCodec.UTF8), args)
                    .whenComplete((reply, e) -> {
                        heard = System.nanoTime();
                        if (e == null) {
                            answer.complete(reply);
                        } else if (e instanceof RedisCommandExecutionException) {
                            answer.completeExceptionally(new HoldfastException(e.getMessage()));
                        } else {
                            answer.completeExceptionally(new HoldfastException.Broken());
                        }
                        calls.remove(answer);
                    });
        } catch (RuntimeException e) {
            answer.completeExceptionally(new HoldfastException.Broken());
            calls.remove(answer);
        }
        if (over.isDone()) {
            answer.completeExceptionally(new HoldfastException.Broken());
            calls.remove(answer);
        }
        return answer;
    }

    /** Asks for a lock; at is taken before the request is sent. */
    Ask ask(HoldfastLock lock, List<Object> line) {
        Ask ask = new Ask(lock, System.nanoTime(), "t" + tags.incrementAndGet(), new CompletableFuture<>());
        waiting.put(ask.tag, ask);
        line.addAll(List.of("ASYNC", ask.tag));
        call(line.toArray()).whenComplete((queued, e) -> {
            if (e != null && waiting.remove(ask.tag) != null) {
                ask.end.completeExceptionally(e);
            }
        });
        return ask;
    }

    private void told(PushMessage push) {
        heard = System.nanoTime();
        List<Object> words = push.getContent(StringCodec.UTF8::decodeValue);
        switch (push.getType()) {
            case "async" -> ended(words);
            case "lost", "jeopardy", "safe" -> client.told(push.getType(), words);
            default -> { }
        }
    }

    /** async, tag, granted, token or tokens, validity, waited; or timeout, cancelled, error and its text. */
    private void ended(List<Object> words) {
        Ask ask = waiting.remove(words.get(1));
        if (ask == null) {
            return;
        }
        switch (words.get(2).toString()) {
            case "granted" -> {
                List<?> tokens = words.get(3) instanceof List<?> several ? several : List.of(words.get(3));
                long ms = (Long) words.get(4) + (Long) words.get(5);
                ask.lock.hold(tokens, ask.at + Duration.ofMillis(ms).toNanos());
                ask.end.completeAsync(() -> true);
            }
            case "error" -> ask.end.completeExceptionally(new HoldfastException(words.get(3).toString()));
            default -> ask.end.completeAsync(() -> false);
        }
    }

    /**
     * Gives the connection up, by a reset: said in order, its end could reach a broker that stood still behind a RENEW that
     * it has not read yet, and release there what another broker holds by now.
     */
    void fail() {
        if (!over.complete(null)) {
            return;
        }
        pings.cancel(false);
        try {
            channel.config().setOption(ChannelOption.SO_LINGER, 0);
        } catch (ChannelException e) {
            // the other side has closed it
        }
        channel.close();
        redis.shutdownAsync(0, 0, TimeUnit.SECONDS);
        calls.forEach(call -> call.completeExceptionally(new HoldfastException.Broken()));
        waiting.values().forEach(ask -> {
            if (waiting.remove(ask.tag) != null) {
                ask.end.completeExceptionally(new HoldfastException.Broken());
            }
        });
    }
}
