// Jedis and Lettuce in their Sentinel modes: hold a lock and say at which broker.
// usage: java Find LIBRARY NAME PORT PORT
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.masterreplica.MasterReplica;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisSentinelPool;

public final class Find {
  interface Client {
    List<?> call(String word, String... words);
  }

  static Client jedis(List<String> ports) {
    Set<HostAndPort> brokers =
        ports.stream().map(port -> new HostAndPort("127.0.0.1", Integer.parseInt(port))).collect(Collectors.toSet());
    DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().timeoutMillis(1000).build();
    JedisSentinelPool pool = new JedisSentinelPool("holdfast", brokers, config, config);
    return (word, words) -> {
      try (Jedis jedis = pool.getResource()) {
        return (List<?>) jedis.sendCommand(() -> word.getBytes(), words);
      }
    };
  }

  static ProtocolKeyword keyword(String word) {
    return new ProtocolKeyword() {
      public byte[] getBytes() {
        return word.getBytes();
      }

      public String name() {
        return word;
      }
    };
  }

  static Client lettuce(List<String> ports) {
    RedisURI.Builder brokers = RedisURI.builder().withSentinelMasterId("holdfast").withTimeout(Duration.ofSeconds(1));
    for (String port : ports) brokers.withSentinel("127.0.0.1", Integer.parseInt(port));
    RedisURI uri = brokers.build();
    RedisClient client = RedisClient.create();
    // client.connect() would stay on a connection for as long as that is open, whoever has stopped behind it
    StatefulRedisConnection<String, String> connection = MasterReplica.connect(client, StringCodec.UTF8, uri);
    return (word, words) -> connection.sync().dispatch(keyword(word), new NestedMultiOutput<>(StringCodec.UTF8),
        new CommandArgs<>(StringCodec.UTF8).addValues(words));
  }

  static String text(Object word) {
    return word instanceof byte[] ? new String((byte[]) word, StandardCharsets.UTF_8) : String.valueOf(word);
  }

  public static void main(String[] args) throws InterruptedException {
    List<String> ports = Arrays.asList(args).subList(2, args.length);
    Client client = args[0].equals("jedis") ? jedis(ports) : lettuce(ports);
    client.call("LOCK", args[1], "OWNER", "app", "LEASE", "30000");
    for (;;) {
      try {
        client.call("RENEW", args[1], "OWNER", "app", "LEASE", "30000");
        System.out.println(text(client.call("CONFIG", "GET", "announce").get(1)));
      } catch (RuntimeException err) {
        // no reply, or none that is good, yet
      }
      Thread.sleep(100);
    }
  }
}
