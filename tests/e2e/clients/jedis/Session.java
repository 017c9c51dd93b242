// Jedis with its defaults, a pool among them, on RESP2 and RESP3: one session of locking. usage: java Session PORT
import java.util.List;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

public class Session {
  static ProtocolCommand command(String word) {
    return () -> word.getBytes();
  }

  static Object call(JedisPooled c, String word, String... args) {
    return c.sendCommand(command(word), args);
  }

  static void must(String what, boolean ok, Object got) {
    if (!ok) throw new IllegalStateException(what + ": " + got);
  }

  static long grant(JedisPooled c, String... args) {
    Object reply = call(c, "LOCK", args);
    must("LOCK " + args[0], reply instanceof List && ((List<?>) reply).get(0) instanceof Long, reply);
    return (Long) ((List<?>) reply).get(0);
  }

  static void number(long want, JedisPooled c, String word, String... args) {
    Object reply = call(c, word, args);
    must(word, Long.valueOf(want).equals(reply), reply);
  }

  static void refused(String text, Runnable what) {
    try {
      what.run();
    } catch (JedisDataException e) {
      must("the error", e.getMessage().startsWith(text), e.getMessage());
      return;
    }
    throw new IllegalStateException("no error " + text);
  }

  static void echo(JedisPooled c) {
    byte[] reply = (byte[]) call(c, "ECHO", "x");
    must("ECHO", new String(reply).equals("x"), new String(reply));
  }

  static void session(int port, boolean resp3) {
    String name = resp3 ? "jedis3" : "jedis2";
    DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder();
    if (resp3) config.resp3();
    HostAndPort where = new HostAndPort("127.0.0.1", port);
    try (JedisPooled holder = new JedisPooled(where, config.build());
        JedisPooled rival = new JedisPooled(where, config.build())) {
      // held by another, and given back
      grant(holder, name);
      must("what is held by another", call(rival, "LOCK", name) == null, "");
      refused("HELD '" + name + "' is held by this connection already", () -> call(holder, "LOCK", name));
      number(1, holder, "UNLOCK", name);
      refused("NOTHELD", () -> call(holder, "UNLOCK", name));

      // entered again by name, and sent again
      long token = grant(holder, name + ":again", "OWNER", "app");
      for (String id : new String[] {"1", "2", "2"})
        must("the token", grant(holder, name + ":again", "OWNER", "app", "ID", id) == token, id);
      number(3, rival, "HOLDS", name + ":again", "OWNER", "app");

      // lost: nothing comes that was not asked for
      grant(holder, name + ":lost");
      number(1, rival, "FORCEUNLOCK", name + ":lost");
      grant(rival, name + ":lost", "WAIT", "5000");
      Object reply = call(holder, "LOCK", name + ":lost");
      must("what was lost", reply == null, reply);
      echo(holder);
      number(3, rival, "HOLDS", name + ":again", "OWNER", "app");

      // a transaction: nothing of it is run
      refused("EXECABORT nothing of this transaction was run", () -> {
        try (Transaction multi = (Transaction) holder.multi()) {
          CommandArguments words = new CommandArguments(command("LOCK")).add(name + ":multi");
          multi.executeCommand(new CommandObject<>(words, BuilderFactory.RAW_OBJECT));
          multi.exec();
        }
      });
      echo(holder);
      grant(rival, name + ":multi");
    }
  }

  public static void main(String[] args) {
    session(Integer.parseInt(args[0]), false);
    session(Integer.parseInt(args[0]), true);
    System.out.println("ok");
  }
}
