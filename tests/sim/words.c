/*
 * How a request is said, and what its reply means.
 */
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static const struct {
    const char *name, *body;
} bodies[] = {
    {"end", "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) "
            "redis.call('publish',KEYS[1],ARGV[2]) return 1 end return 0"},
    {"extend", "if redis.call('get',KEYS[1])==ARGV[1] then "
               "return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"},
    {"take2", "if redis.call('exists',KEYS[1],KEYS[2])>0 then return 0 end "
              "redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) "
              "redis.call('set',KEYS[2],ARGV[1],'PX',ARGV[2]) return 1"},
    {"get2", "return (redis.call('get',KEYS[1]) or '-')..' '..(redis.call('get',KEYS[2]) or '-')"},
    {"end2", "local n=0 for i=1,2 do if redis.call('get',KEYS[i])==ARGV[1] then "
             "n=n+i redis.call('del',KEYS[i]) end end return n"},
    {"enter", "if redis.call('exists',KEYS[1])==0 or redis.call('hexists',KEYS[1],ARGV[1])==1 then "
              "local n=redis.call('hincrby',KEYS[1],ARGV[1],1) "
              "redis.call('pexpire',KEYS[1],ARGV[2]) return n end return -1"},
    {"leave", "if redis.call('hexists',KEYS[1],ARGV[1])==0 then return -1 end "
              "local n=redis.call('hincrby',KEYS[1],ARGV[1],-1) "
              "if n>0 then redis.call('pexpire',KEYS[1],ARGV[2]) return n end "
              "redis.call('del',KEYS[1]) return 0"},
};

void words_begin(void)
{
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        world_script(bodies[i].name, bodies[i].body);
}

static void say_lock(int app, const struct order_op *op, const char *name)
{
    char wait[48] = "";
    if (sim_chance(600))
        snprintf(wait, sizeof wait, " WAIT %" PRId64 "%s",
                 sim_chance(100) ? 0 : sim_between(1, 2000), sim_chance(200) ? " FAIR" : "");
    world_say(app, "LOCK %s LEASE %" PRId64 "%s", name, op->lease_ms, wait);
}

void words_say(int app, const struct order_op *op, int number, const char *name)
{
    const char *owner = world.apps[app].owner;
    int64_t lease_ms = op->lease_ms;
    switch (op->verb) {
    case ORDER_TAKE:
        world_say(app, "SET %s %s NX PX %" PRId64, name, owner, lease_ms);
        break;
    case ORDER_GET:
        world_say(app, "GET %s", name);
        break;
    case ORDER_END:
        world_say(app, "EVAL end 1 %s %s %d", name, owner, number);
        break;
    case ORDER_EXTEND:
        world_say(app, "EVAL extend 1 %s %s %" PRId64, name, owner, lease_ms);
        break;
    case ORDER_TAKE2:
        world_say(app, "EVAL take2 2 s t %s %" PRId64, owner, lease_ms);
        break;
    case ORDER_GET2:
        world_say(app, "EVAL get2 2 s t");
        break;
    case ORDER_END2:
        world_say(app, "EVAL end2 2 s t %s", owner);
        break;
    case ORDER_ENTER:
        world_say(app, "EVAL enter 1 %s %s %" PRId64, name, owner, lease_ms);
        break;
    case ORDER_LEAVE:
        world_say(app, "EVAL leave 1 %s %s %" PRId64, name, owner, lease_ms);
        break;
    case ORDER_LOCK:
        say_lock(app, op, name);
        break;
    case ORDER_UNLOCK:
        world_say(app, "UNLOCK %s", name);
        break;
    case ORDER_FORCE:
        world_say(app, "FORCEUNLOCK %s", name);
        break;
    }
}

static int client_of(const char *value)
{
    return *value == 'v' || *value == 'n' ? atoi(value + 1) : 0;
}

static int read_result(const struct order_op *op, const char *text)
{
    if (op->verb == ORDER_GET)
        return client_of(text);
    if (op->verb == ORDER_GET2)
        return client_of(text) + 16 * client_of(strchr(text, ' ') + 1);
    if (op->verb == ORDER_LOCK)
        return 1;
    return op->verb == ORDER_TAKE ? strcmp(text, "OK") == 0 : atoi(text);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void read_error(struct order_op *op, const char *text)
{
    bool counts = op->verb == ORDER_ENTER || op->verb == ORDER_LEAVE;
    op->outcome = ORDER_UNKNOWN;
    if (starts(text, "-TRYAGAIN")) {
        op->outcome = ORDER_NOT_DONE;
    } else if (counts && starts(text, "-WRONGTYPE")) {
        op->outcome = ORDER_KNOWN;
        op->result = ORDER_WRONGTYPE;
    } else if (op->verb == ORDER_UNLOCK && starts(text, "-NOTHELD")) {
        op->outcome = ORDER_KNOWN;
        op->result = -1;
    }
}

void words_read(struct order_op *op, const char *text)
{
    bool is_error = *text == '-' && text[1] >= 'A';
    snprintf(op->text, sizeof op->text, "%s", text);
    op->outcome = ORDER_KNOWN;
    if (is_error)
        read_error(op, text);
    else if (op->verb == ORDER_FORCE || (op->verb == ORDER_LOCK && *text != '['))
        op->outcome = ORDER_UNKNOWN; /* nil: it may have been granted, and undone */
    else
        op->result = read_result(op, text);
}
