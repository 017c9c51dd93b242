#pragma once
/*
 * Between the files of store: the values of keys, and what every command needs. store.c has the
 * keys and the table of commands, store_<type>.c the commands of that type, store_keys.c those of
 * keys of any type; store_words.c reads their words, store_reply.c makes their replies.
 */
#include <string.h>
#include <strings.h>
#include <uthash.h>

#include "dropin/store.h"

struct store_bytes {
    char *ptr; /* of the pool; never NULL */
    size_t len;
};
struct store_bytes store_bytes_of(const struct resp_arg *); /* a copy */
void store_bytes_fini(struct store_bytes *);                /* also all zero */

/* First member of what stands in a struct store_table. */
struct store_entry {
    struct store_entry *prev, *next; /* in the order in which they were added */
    UT_hash_handle hh;
    const char *name; /* bytes of the same object */
    size_t len;
};
struct store_entry *store_table_find(const struct store_table *, const struct resp_arg *name);
/* There is none of its name. */
void store_table_add(struct store_table *, struct store_entry *);
void store_table_drop(struct store_table *, struct store_entry *);

/* Field of a hash, or member of a set (which has no value). */
struct store_field {
    struct store_entry entry;
    struct store_bytes value;
    char name[];
};
void store_field_drop(struct store_table *, struct store_field *);

struct store_member {
    UT_hash_handle hh;
    double score;
    size_t len;
    char name[];
};

enum store_type { STORE_STRING, STORE_HASH, STORE_LIST, STORE_SET, STORE_ZSET };

struct store_key {
    struct store_entry entry;
    uint8_t type;       /* enum store_type */
    int64_t expires_ms; /* there until this millisecond is over; INT64_MAX: no time to live */
    union {
        struct store_bytes string;
        struct store_table fields; /* STORE_HASH and STORE_SET */
        struct {
            struct store_bytes *items; /* from the head */
            size_t n, cap;
        } list;
        struct {
            struct store_member *members, **order; /* order: by score, then by name */
            size_t n, cap;
        } zset;
    };
    char name[];
};

/* One call on its way through a command. */
struct store_run {
    struct store *store;
    const struct resp_arg *argv;
    int argc;
    int64_t now_ms;
    struct store_reply *out;
};

/* ---- keys ---- */

/* What is there under this name now; NULL: nothing. */
struct store_key *store_key_find(struct store_run *, const struct resp_arg *name);
/* The same, but for something of another type: then the error has been added, *wrong is true and
 * NULL is returned. */
struct store_key *store_key_get(struct store_run *, const struct resp_arg *name,
                                enum store_type type, bool *wrong);
/* Makes an empty one where there is none; NULL: wrong type, and the error has been added. A new
 * string has no bytes yet: the caller sets them. */
struct store_key *store_key_make(struct store_run *, const struct resp_arg *name,
                                 enum store_type type);
void store_key_drop(struct store *, struct store_key *);
/* Tells who wants to know that this key has been written. */
void store_wrote(struct store_run *, const struct resp_arg *name, bool value, bool time);
/* Frees the value, not the key. */
void store_value_fini(struct store_key *);

/* ---- arguments ---- */

/* Is this the word, in any case? `word` is in capitals. Most are of two letters: no function is
 * called for them. */
static inline bool store_is(const struct resp_arg *arg, const char *word)
{
    if (strlen(word) != arg->len)
        return false;
    for (size_t i = 0; i < arg->len; i++) {
        char c = arg->ptr[i];
        if ((c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c) != word[i])
            return false;
    }
    return true;
}
/* Strict decimal numbers, as string2ll() of Redis. False: it is none. */
bool store_int(const struct resp_arg *, int64_t *out);
/* As above; adds the error that Redis gives. */
bool store_want_int(struct store_run *, const struct resp_arg *, int64_t *out);
bool store_want_double(struct store_run *, const struct resp_arg *, double *out);
/* A time to live or a point in time, as an option or argument of a command. `unit_ms`: 1 or 1000;
 * `is_relative`: from now on. Adds the error "invalid expire time in '<command>' command". */
bool store_want_time(struct store_run *, const struct resp_arg *, int64_t unit_ms, bool is_relative,
                     bool may_be_past, int64_t *at_ms);
/* start and stop, which may count from the end, cut to 0 .. n-1. False: the range is empty. */
bool store_range(int64_t n, int64_t *start, int64_t *stop);

/* ---- replies ---- */

void store_ok(struct store_run *);
void store_bulk(struct store_run *, const void *text, size_t len);
void store_syntax_error(struct store_run *);
void store_double(struct store_run *, double);

/* ---- the commands ---- */
typedef void (*store_fn)(struct store_run *);
void store_key_del(struct store_run *); /* DEL of all words but the first */
struct store_command {
    const char *name;
    int arity;  /* words with the name; negative: at least so many */
    int traits; /* of enum store_trait */
    store_fn fn;
};
/* Usual traits. */
enum {
    STORE_LOOK = STORE_SERVED | STORE_KEY,
    STORE_CHANGE = STORE_SERVED | STORE_KEY | STORE_WRITES
};
/* Each ends with a row without a name. Those of lists and sorted sets are not part of the daemon:
 * who wants them links them and calls store_learn(). */
extern const struct store_command store_string_commands[], store_key_commands[],
    store_hash_commands[], store_set_commands[], store_list_commands[], store_zset_commands[];
