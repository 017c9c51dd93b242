#pragma once
/*
 * store: what a Redis server keeps, without the server: strings, hashes, lists, sets and sorted
 * sets with times to live, and the commands that scripts say about them. The replies, errors
 * included, are those of Redis 7.0, word for word.
 *
 * The time is the caller's: it stands still within a call and may jump between two. Nothing is
 * asked of the operating system but memory.
 *
 * A key whose time is over is gone from the next look at it on, as in Redis; one that nobody looks
 * at stays in memory until store_sweep().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/resp.h"

struct store_command;
struct store_entry;
struct resp_writer;

/* What is found by a name, in the order in which it was added. All zero is an empty one. */
struct store_table {
    struct store_entry *first;
    struct store_entry *by_name; /* by hash; NULL: they are few, and looked through */
    size_t n;
};

struct store {
    struct store_table keys;
    int64_t now_us; /* time of this server; set by the caller before each call */
    /* PUBLISH: returns how many have heard it. NULL: nobody listens. The texts are lent. */
    int64_t (*publish)(void *arg, const struct resp_arg *channel, const struct resp_arg *message);
    /* A command has written what this key holds, or when it ends, or both (also to what it was
     * before). NULL: nobody wants to know. A key that ends by its time is not told. */
    void (*wrote)(void *arg, const struct resp_arg *key, bool value, bool time);
    void *arg;
};

/* ---- replies: a tree in preorder, its texts in one block ---- */

enum store_kind {
    STORE_NIL,
    STORE_STATUS,
    STORE_ERROR,
    STORE_INT,
    STORE_BULK,
    STORE_ARRAY, /* `n` elements follow, each with all that belongs to it */
    STORE_MAP    /* the same: keys and values in turn. A map in RESP3, an array in RESP2 */
};

struct store_node {
    uint8_t kind;   /* enum store_kind */
    int64_t n;      /* STORE_INT: the number; STORE_ARRAY, STORE_MAP: elements */
    size_t at, len; /* text: these bytes of `texts` */
};

/* All zero is an empty one. */
struct store_reply {
    struct store_node *nodes;
    int n_nodes, cap;
    struct buf texts;
};
void store_reply_clear(struct store_reply *); /* keeps the memory */
void store_reply_fini(struct store_reply *);
/* Text of a node; not NUL-terminated. Holds until something is added to the reply. */
const char *store_text(const struct store_reply *, const struct store_node *);

void store_add_nil(struct store_reply *);
void store_add_int(struct store_reply *, int64_t n);
void store_add_array(struct store_reply *, int64_t n); /* then its elements */
void store_add_map(struct store_reply *, int64_t n);
void store_add_text(struct store_reply *, enum store_kind, const void *text, size_t len);
/* Adds an error or a status as it goes over the wire: the text up to its first NUL, line ends as
 * blanks; those at the end of an error are cut off. */
void store_add_line(struct store_reply *, enum store_kind, const char *text);
void store_add_error(struct store_reply *, const char *text); /* the same, of an error */
/* Writes it as Redis sends it. */
void store_reply_write(const struct store_reply *, struct resp_writer *);

/* ---- the store ---- */

void store_init(struct store *);
void store_fini(struct store *);
void store_flush(struct store *); /* FLUSHALL */
void store_sweep(struct store *); /* frees every key whose time is over */

/* Adds a table of commands to those of strings, keys, hashes and sets, for all stores of the
 * process; it ends with a row without a name. A table that has been added is left out. */
void store_learn(const struct store_command *);

/* What has to be known of a command beside what it does. */
enum store_trait {
    STORE_SERVED = 1, /* in the make-believe of scripts (keys.h) */
    STORE_KEY = 2,    /* its first word behind the name is a key */
    STORE_KEYS = 4,   /* all of them are */
    STORE_WRITES = 8,
    STORE_DELETES = 16,      /* DEL and UNLINK */
    STORE_COUNTS = 32,       /* INCR and its family */
    STORE_READS_TIME = 64,   /* a time to live */
    STORE_WEIGHS_TIME = 128, /* a time to live, when it has a fourth word: a condition on it */
    STORE_READS_CLOCK = 256
};

/* Finds a command by its name, in any case; NULL: the store does not know it. */
const struct store_command *store_find(const struct resp_arg *word);
int store_traits(const struct store_command *); /* of enum store_trait */

/* Runs the command that store_find() has found by the first word, and adds exactly one reply. Its
 * options in any case. One that the store does not know (NULL) or that has too few or too many
 * words is an error as of a script. */
void store_run(struct store *, const struct store_command *, const struct resp_arg *argv, int argc,
               struct store_reply *);
/* The same by its name alone. */
void store_call(struct store *, const struct resp_arg *argv, int argc, struct store_reply *);

/* ---- without words and replies, for who supposes a state and reads one; nobody is told ---- */

struct store_seen {
    bool is_there, is_string, is_hash;
    int64_t expires_ms; /* INT64_MAX: no time to live */
    const char *ptr;    /* of a string; lent */
    size_t len;
};
struct store_seen store_see(struct store *, const struct resp_arg *name);
/* Puts a string where nothing is. */
void store_put_string(struct store *, const struct resp_arg *name, const struct resp_arg *value);
/* Sets when a key ends, which is there. */
void store_put_time(struct store *, const struct resp_arg *name, int64_t expires_ms);

/* Calls `each` for every key that is there now, oldest first; it must not change the store. */
void store_each(struct store *, void (*each)(void *arg, const char *key, size_t len), void *arg);
