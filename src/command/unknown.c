/*
 * What is no command: the text of Redis 7.0 to its limits of 128 bytes, as clients compare it, and
 * behind it what to say here instead. Commands of Redis on locks come here while [drop_in] is
 * turned off.
 */
#include "command/command.h"

#include <string.h>

enum { SHOWN_MAX = 128 };

/* A NUL would end the text early: it is shown as a space, as resp_error() shows line ends. */
static size_t append_word(char *to, size_t room, const struct resp_arg *word)
{
    size_t n = word->len < room ? word->len : room;

    for (size_t i = 0; i < n; i++)
        to[i] = word->ptr[i] == '\0' ? ' ' : word->ptr[i];
    return n;
}

static const struct {
    const char *word, *instead;
} hints[] = {
    {"SET", "LOCK name LEASE ms takes the place of SET name value NX PX ms"},
    {"SETNX", "LOCK name takes the place of SETNX"},
    {"SETEX", "SET name value NX EX seconds takes a lock"},
    {"PSETEX", "SET name value NX PX ms takes a lock"},
    {"GETSET", "SET name value NX PX ms takes a lock"},
    {"DEL", "UNLOCK name gives a lock back, FORCEUNLOCK name whoever holds it"},
    {"UNLINK", "UNLOCK name gives a lock back, FORCEUNLOCK name whoever holds it"},
    {"PEXPIRE", "RENEW name LEASE ms renews a lock"},
    {"EXPIRE", "RENEW name LEASE ms renews a lock"},
    {"GET", "LOCKINFO name shows who holds a lock, HOLDS name whether it is you"},
    {"EXISTS", "LOCKINFO name shows who holds a lock, HOLDS name whether it is you"},
    {"KEYS", "LOCKS MATCH pattern lists locks"},
    {"EVAL", "LOCK name and UNLOCK name take the place of lock scripts"},
    {"EVALSHA", "LOCK name and UNLOCK name take the place of lock scripts"},
    {"HSET", "hashes are written by scripts only: EVAL"},
    {"HSETNX", "hashes are written by scripts only: EVAL"},
    {"HINCRBY", "hashes are written by scripts only: EVAL"},
    {"HDEL", "hashes are written by scripts only: EVAL"},
    {"INCR", "each grant of LOCK name has a fencing token, larger than all before it"},
    {"BLPOP", "LOCK name WAIT ms waits for a lock"},
    {"ZADD", "LOCK name LIMIT n gives n permits"},
    {"PUBLISH", "the broker itself tells of locks: SUBSCRIBE lost, or lock:name"},
};

static const char *hint_for(const struct resp_arg *word)
{
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (cmd_word_is(word, hints[i].word))
            return hints[i].instead;
    return "LOCK name takes a lock, UNLOCK name gives it back";
}

void cmd_reject_unknown(struct cmd_call *c)
{
    char name[SHOWN_MAX + 1], args[SHOWN_MAX + 32];
    size_t len = 0;

    name[append_word(name, SHOWN_MAX, &c->argv[0])] = '\0';
    for (int i = 1; i < c->argc && len < SHOWN_MAX; i++) {
        size_t room = SHOWN_MAX - len;
        args[len++] = '\'';
        len += append_word(args + len, room, &c->argv[i]);
        args[len++] = '\'';
        args[len++] = ' ';
    }
    args[len] = '\0';
    cmd_reply_error(c,
                    "ERR unknown command '%s', with args beginning with: %s"
                    "(holdfast keeps locks, not data; %s; HELP tells more)",
                    name, args, hint_for(&c->argv[0]));
}

void cmd_reject_unknown_sub(struct cmd_call *c, const char *command, const struct resp_arg *word)
{
    char name[SHOWN_MAX + 1];

    name[append_word(name, SHOWN_MAX, word)] = '\0';
    if (strcmp(command, "CONFIG") == 0 && cmd_word_is(word, "REWRITE"))
        cmd_reply_error(c,
                        "ERR unknown subcommand '%s': to keep what CONFIG SET has changed, "
                        "write it into the configuration file yourself",
                        name);
    else
        cmd_reply_error(c, "ERR unknown subcommand '%s'. Try %s HELP.", name, command);
}
