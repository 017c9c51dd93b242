/*
 * Truths by name, the one that was written last at the end of the table. Each is forgotten when its
 * time is over; one that was put off meanwhile is looked at once more then.
 */
#include "dropin/memory.h"

#include <string.h>
#include <uthash.h>

#include "base/pool.h"
#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/hold.h"
#include "lock/locktab.h"
#include "session/session.h"

struct known {
    UT_hash_handle hh;
    struct due due; /* its time is over */
    struct memory *memory;
    struct truth truth; /* DROPIN or NATIVE */
    int64_t since_ms;
    bool is_held;                 /* by a client of this broker, by commands of Redis */
    uint64_t session_id;          /* of who has taken it here; 0: nobody has */
    int64_t held_since_ms;        /* here, */
    char library[MEMORY_LIBRARY]; /* and by what program */
    size_t bytes;                 /* that it counts for */
    size_t len;
    char name[];
};

/* ---- the table ---- */

static struct known *find_remembered(const struct memory *m, const struct locktab_name *name)
{
    struct known *k;
    HASH_FIND_BYHASHVALUE(hh, m->by_name, name->text, name->len, name->hash, k);
    return k;
}

static void take_out(struct memory *m, struct known *k)
{
    HASH_DEL(m->by_name, k); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    m->n_names--;
    m->bytes -= k->bytes;
    m->broker->n_drop_in -= k->is_held;
}

static void drop_truth(struct memory *m, struct known *k)
{
    take_out(m, k);
    due_cancel(&m->broker->due, &k->due);
    truth_fini(&k->truth);
    pool_put(k, sizeof *k + k->len);
}

/* Forgets a hold whose time is over; waits on if it has been renewed meanwhile. */
static void on_known_due(struct broker *b, struct due *due, int64_t now_ms)
{
    struct known *k = (struct known *)((char *)due - offsetof(struct known, due));
    if (k->truth.expires_ms > now_ms)
        due_at(&b->due, &k->due, k->truth.expires_ms);
    else
        drop_truth(k->memory, k);
}

static struct known *make_remembered(struct memory *m, const struct locktab_name *name)
{
    struct known *k = pool_get(sizeof *k + name->len);
    k->memory = m;
    k->due.fn = on_known_due;
    k->len = name->len;
    memcpy(k->name, name->text, name->len);
    return k;
}

static void put_truth_last(struct memory *m, struct known *k, unsigned hash, const struct truth *t,
                           int64_t since_ms)
{
    if (k->truth.kind != t->kind || strcmp(k->truth.birth, t->birth) != 0) {
        k->session_id = 0;
        k->held_since_ms = since_ms;
        k->library[0] = '\0';
    }
    truth_copy(&k->truth, t);
    k->since_ms = since_ms;
    k->is_held = t->kind == TRUTH_DROPIN && broker_has_op(m->broker, t->op);
    k->bytes = sizeof *k + k->len + buf_len(&t->text);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, m->by_name, k->name, k->len, hash, k);
    m->n_names++;
    m->bytes += k->bytes;
    m->broker->n_drop_in += k->is_held;
    if (!wheel_armed(&k->due.entry) || k->due.entry.due_ms > t->expires_ms)
        due_at(&m->broker->due, &k->due, t->expires_ms);
}

void memory_init(struct memory *m, struct broker *b)
{
    *m = (struct memory){.broker = b};
}

void memory_put(struct memory *m, const struct locktab_name *name, const struct truth *t,
                int64_t since_ms)
{
    struct known *k = find_remembered(m, name);
    if (!t->op[0]) { /* also of readers and permits: nobody says when the last of them has ended */
        if (k)
            drop_truth(m, k);
        return;
    }
    if (k)
        take_out(m, k);
    put_truth_last(m, k ? k : make_remembered(m, name), name->hash, t, since_ms);
    while (m->bytes > MEMORY_BYTES_MAX)
        drop_truth(m, m->by_name);
}

void memory_forget(struct memory *m, const struct locktab_name *name)
{
    struct known *k = find_remembered(m, name);
    if (k)
        drop_truth(m, k);
}

void memory_ended(struct memory *m, const struct locktab_name *name, const char *op, size_t op_len)
{
    struct known *k = find_remembered(m, name);
    if (k && strlen(k->truth.op) == op_len && memcmp(k->truth.op, op, op_len) == 0)
        drop_truth(m, k);
}

void memory_fini(struct memory *m)
{
    while (m->by_name)
        drop_truth(m, m->by_name); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
}

/* ---- what is known ---- */

static const struct truth nothing = {.kind = TRUTH_FREE};

/* Returns what was confirmed last, if it is not over; NULL: nothing. */
static struct known *find_valid(struct memory *m, const struct locktab_name *name, int64_t now_ms)
{
    struct known *k = find_remembered(m, name);
    if (k && k->truth.expires_ms <= now_ms) {
        drop_truth(m, k);
        return NULL;
    }
    return k;
}

/* Returns the hold that a client of this broker took by LOCK; NULL: none. */
static const struct hold *find_local_hold(struct broker *b, const struct locktab_name *name)
{
    const struct lock *l = locktab_find_name(&b->locks, name);
    return l ? lock_first_hold(l) : NULL;
}

static void guess_native(const struct broker *b, const struct hold *h, struct truth *out)
{
    out->kind = TRUTH_NATIVE;
    broker_op_text(b, h->op, out->op);
    out->token = out->fence = h->token;
    out->number = h->seq;
    out->expires_ms = h->deadline_ms;
    buf_append(&out->text, h->owner->text, h->owner->len);
}

void memory_guess(struct memory *m, const struct locktab_name *name, struct truth *out,
                  int64_t now_ms)
{
    struct broker *b = m->broker;
    const struct known *k = find_valid(m, name, now_ms);
    const struct hold *h = find_local_hold(b, name);
    bool is_native = h && h->part.kind == LOCK_EXCLUSIVE && hold_is_valid(h, now_ms);
    if (k && !is_native) {
        truth_copy(out, &k->truth);
        return;
    }
    truth_copy(out, &nothing);
    if (is_native)
        guess_native(b, h, out);
}

bool memory_is_sure(struct memory *m, const struct locktab_name *name, int64_t now_ms)
{
    struct broker *b = m->broker;
    const struct hold *h = find_local_hold(b, name);
    if (h && h->deadline_ms > now_ms)
        return h->state == HOLD_LOST || broker_has_heard(b, h->seen_ms, now_ms);
    const struct known *k = find_valid(m, name, now_ms);
    return k && k->is_held && broker_has_heard(b, k->since_ms, now_ms);
}

/* ---- what clients of this broker hold ---- */

/* Appends as much of the word as there is room for. */
static size_t add_word(char *out, size_t at, const char *word)
{
    size_t room = MEMORY_LIBRARY - 1 - at, len = strnlen(word, room);
    memcpy(out + at, word, len);
    return at + len;
}

static void write_library(char out[MEMORY_LIBRARY], const struct session *s)
{
    size_t at = add_word(out, 0, s->lib_name ? s->lib_name : "");
    if (s->lib_ver)
        at = add_word(out, add_word(out, at, at > 0 ? " " : ""), s->lib_ver);
    out[at] = '\0';
}

void memory_note_taker(struct memory *m, const struct locktab_name *name, const struct session *s,
                       int64_t now_ms)
{
    struct known *k = find_remembered(m, name);
    if (!k)
        return;
    k->session_id = s->id;
    k->held_since_ms = now_ms;
    write_library(k->library, s);
}

static struct memory_hold hold_of_known(const struct known *k)
{
    return (struct memory_hold){.name = k->name,
                                .len = k->len,
                                .truth = &k->truth,
                                .session_id = k->session_id,
                                .held_since_ms = k->held_since_ms,
                                .library = k->library};
}

bool memory_find_hold(struct memory *m, const char *name, size_t len, struct memory_hold *out,
                      int64_t now_ms)
{
    const struct locktab_name hashed = locktab_name(name, len);
    const struct known *k = find_valid(m, &hashed, now_ms);
    if (!k || !k->is_held)
        return false;
    *out = hold_of_known(k);
    return true;
}

uint64_t memory_scan(struct memory *m, uint64_t cursor, memory_hold_fn each, void *arg,
                     int64_t now_ms)
{
    if (!m->by_name)
        return 0;
    UT_hash_table *table = m->by_name->hh.tbl;
    size_t mask = table->num_buckets - 1;
    UT_hash_handle *h = table->buckets[cursor & mask].hh_head;
    for (; h; h = h->hh_next) {
        const struct known *k = ELMT_FROM_HH(table, h);
        struct memory_hold hold = hold_of_known(k);
        if (k->is_held && k->truth.expires_ms > now_ms)
            each(arg, &hold);
    }
    return locktab_next_cursor(cursor, mask);
}
