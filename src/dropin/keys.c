/* What a command looks at, the traits of its row say (store.h); what it writes, the store tells. */
#include "dropin/keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What serves instead of families of others, by how their names begin; the first that fits. */
static const struct {
    const char *prefix, *hint;
} hints[] = {
    {"BL", "LOCK name WAIT ms waits for a lock by itself"},
    {"BR", "LOCK name WAIT ms waits for a lock by itself"},
    {"BZ", "LOCK name WAIT ms waits for a lock by itself"},
    {"SCAN", "LOCKS lists the locks"},
    {"SUBSCRIBE", "a connection listens, no script does"},
    {"SCRIPT", "a script cannot run another one"},
    {"SELECT", "a script stays in its database"},
    {"SETRANGE", "the value of a lock is written whole, by SET"},
    {"SETBIT", "the value of a lock is written whole, by SET"},
    {"L", "lists are not locks; LOCK name WAIT ms FAIR lets wait in the order of arrival"},
    {"RPU", "lists are not locks; LOCK name WAIT ms FAIR lets wait in the order of arrival"},
    {"RPO", "lists are not locks; LOCK name WAIT ms FAIR lets wait in the order of arrival"},
    {"Z", "sorted sets are not locks; LOCK name LIMIT n gives n permits, LOCK name SHARED is for "
          "readers"},
    {"S", "sets are not locks; LOCK name LIMIT n gives n permits, LOCK name SHARED is for readers"},
    {"X", "streams are not locks"},
    {"EVAL", "a script cannot run another one"},
    {"FCALL", "a script cannot run another one"},
    {"KEYS", "LOCKS lists the locks"},
    {"FLUSH", "FORCEUNLOCK name ends one lock"},
    {"HEXPIRE", "a hash has one time to live, by PEXPIRE"},
    {"HPEXPIRE", "a hash has one time to live, by PEXPIRE"},
    {"INCRBYFLOAT", "INCRBY counts in whole numbers"},
    {"HINCRBYFLOAT", "HINCRBY counts in whole numbers"},
    {"APPEND", "the value of a lock is written whole, by SET"},
    {"MSET", "SET writes one key at a time, and all that a script writes is done as one"},
    {"RENAME", "a lock keeps its name"},
    {"COPY", "a lock keeps its name"},
    {"WAIT", "a reply comes when a majority of the masters has confirmed it"},
};

static int which_key(const struct keys *k, const struct resp_arg *name)
{
    for (int i = 0; i < k->n; i++) {
        if (k->names[i].len == name->len && memcmp(k->names[i].ptr, name->ptr, name->len) == 0)
            return i;
    }
    return -1;
}

/* Writes as much of a client's word as can be shown in a message. */
static const char *shown_bytes(const struct resp_arg *word, char out[65])
{
    size_t len = word->len < 64 ? word->len : 64;
    for (size_t i = 0; i < len; i++)
        out[i] = word->ptr[i] > ' ' && word->ptr[i] < 127 ? word->ptr[i] : '?';
    out[len] = '\0';
    return out;
}

/* ---- what the store tells ---- */

static void on_wrote(void *arg, const struct resp_arg *key, bool value, bool time)
{
    struct keys *k = arg;
    int i = which_key(k, key);
    if (i < 0)
        return;
    k->seen[i].wrote_value = k->seen[i].wrote_value || value;
    if (value)
        k->seen[i].is_count = k->is_counting;
    k->seen[i].wrote_time = k->seen[i].wrote_time || time;
}

static int64_t on_publish(void *arg, const struct resp_arg *channel, const struct resp_arg *message)
{
    struct keys *k = arg;
    store_add_text(&k->published, STORE_BULK, channel->ptr, channel->len);
    store_add_text(&k->published, STORE_BULK, message->ptr, message->len);
    return 0;
}

/* ---- the whole ---- */

void keys_begin(struct keys *k, const struct resp_arg *names, int n, int64_t now_us)
{
    store_flush(&k->store);
    k->store.now_us = now_us;
    k->store.arg = k;
    k->store.publish = on_publish;
    k->store.wrote = on_wrote;
    k->names = names;
    k->n = n;
    k->read_clock = k->is_counting = false;
    memset(k->seen, 0, sizeof k->seen);
    store_reply_clear(&k->published);
}

void keys_fini(struct keys *k)
{
    store_fini(&k->store);
    store_reply_fini(&k->published);
}

void keys_suppose(struct keys *k, const struct resp_arg *argv, int argc, struct store_reply *out)
{
    struct store_reply unheard = {0};
    k->store.wrote = NULL;
    k->store.publish = NULL;
    store_call(&k->store, argv, argc, out ? out : &unheard);
    k->store.wrote = on_wrote;
    k->store.publish = on_publish;
    store_reply_fini(&unheard);
}

int keys_end(struct keys *k, char *why, size_t size)
{
    char text[65];
    for (int i = 0; i < k->n; i++) {
        if (!k->seen[i].is_count)
            continue;
        struct store_seen left = store_see(&k->store, &k->names[i]);
        if (!left.is_there || left.expires_ms != INT64_MAX)
            continue;
        snprintf(why, size,
                 "counts in '%s', which has no time to live: a counter that is to stay is no lock; "
                 "LOCK gives a fencing token with each grant",
                 shown_bytes(&k->names[i], text));
        return -1;
    }
    return 0;
}

bool keys_wrote(const struct keys *k)
{
    bool wrote = k->published.n_nodes > 0;
    for (int i = 0; i < k->n; i++)
        wrote = wrote || k->seen[i].wrote_value || k->seen[i].wrote_time;
    return wrote;
}

/* ---- calls ---- */

static int refuse_unserved(const struct resp_arg *word, char *why, size_t size)
{
    char text[65];
    const char *hint = NULL;
    for (size_t i = 0; !hint && i < sizeof hints / sizeof hints[0]; i++) {
        size_t len = strlen(hints[i].prefix);
        if (word->len >= len && strncasecmp(hints[i].prefix, word->ptr, len) == 0)
            hint = hints[i].hint;
    }
    snprintf(why, size, "calls %s, which is not served%s%s", shown_bytes(word, text),
             hint ? ": " : "", hint ? hint : "");
    return -1;
}

/* Finds the keys of a command and notes what it looks at; -1: `why` says what does not fit. */
static int see_keys(struct keys *k, int traits, const struct resp_arg *argv, int argc, char *why,
                    size_t size)
{
    bool reads_time = (traits & STORE_READS_TIME) || ((traits & STORE_WEIGHS_TIME) && argc > 3);
    int last = traits & STORE_KEYS ? argc - 1 : traits & STORE_KEY ? 1 : 0;
    char text[2][65];
    for (int i = 1; i <= last && i < argc; i++) {
        int key = which_key(k, &argv[i]);
        if (key < 0) {
            snprintf(why, size,
                     "calls %s on '%s', which is not among its KEYS: all names have to be known "
                     "before it runs, as in Redis Cluster",
                     shown_bytes(&argv[0], text[0]), shown_bytes(&argv[i], text[1]));
            return -1;
        }
        k->seen[key].is_read = true;
        k->seen[key].read_time = k->seen[key].read_time || reads_time;
    }
    return 0;
}

int keys_run(struct keys *k, const struct store_command *command, const struct resp_arg *argv,
             int argc, struct store_reply *out, char *why, size_t size)
{
    int traits = command ? store_traits(command) : 0;
    if (!(traits & STORE_SERVED))
        return refuse_unserved(&argv[0], why, size);
    if (see_keys(k, traits, argv, argc, why, size) < 0)
        return -1;
    k->read_clock = k->read_clock || (traits & STORE_READS_CLOCK);
    k->is_counting = (traits & STORE_COUNTS) != 0;
    store_run(&k->store, command, argv, argc, out);
    return 0;
}

int keys_call(void *keys, const struct resp_arg *argv, int argc, struct store_reply *out, char *why,
              size_t size)
{
    return keys_run(keys, store_find(&argv[0]), argv, argc, out, why, size);
}
