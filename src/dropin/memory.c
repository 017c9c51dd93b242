/* Truths by name, the one that was written last at the end of the table. */
#include "dropin/memory.h"

#include <string.h>
#include <uthash.h>

#include "base/pool.h"
#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/hold.h"

struct known {
    UT_hash_handle hh;
    struct truth truth; /* DROPIN or NATIVE */
    int64_t since_ms;
    size_t bytes; /* that it counts for */
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
}

static void drop_truth(struct memory *m, struct known *k)
{
    take_out(m, k);
    truth_fini(&k->truth);
    pool_put(k, sizeof *k + k->len);
}

static struct known *make_remembered(const struct locktab_name *name)
{
    struct known *k = pool_get(sizeof *k + name->len);
    k->len = name->len;
    memcpy(k->name, name->text, name->len);
    return k;
}

static void put_truth_last(struct memory *m, struct known *k, unsigned hash, const struct truth *t,
                           int64_t since_ms)
{
    truth_copy(&k->truth, t);
    k->since_ms = since_ms;
    k->bytes = sizeof *k + k->len + buf_len(&t->text);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, m->by_name, k->name, k->len, hash, k);
    m->n_names++;
    m->bytes += k->bytes;
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
    put_truth_last(m, k ? k : make_remembered(name), name->hash, t, since_ms);
    while (m->n_names > MEMORY_NAMES_MAX || m->bytes > MEMORY_BYTES_MAX)
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

/* What was confirmed last and is not over; NULL: nothing. */
static struct known *find_valid(struct memory *m, const struct locktab_name *name, int64_t now_ms)
{
    struct known *k = find_remembered(m, name);
    if (k && k->truth.expires_ms <= now_ms) {
        drop_truth(m, k);
        return NULL;
    }
    return k;
}

/* The hold of a client of this broker, taken by LOCK; NULL: none. */
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

void memory_guess(struct memory *m, struct broker *b, const struct locktab_name *name,
                  struct truth *out, int64_t now_ms)
{
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

/* "<broker>.<number>", of this broker. */
static bool is_ours(const struct broker *b, const char *op)
{
    size_t len = strlen(b->id);
    return strncmp(op, b->id, len) == 0 && op[len] == '.';
}

bool memory_is_sure(struct memory *m, struct broker *b, const struct locktab_name *name,
                    int64_t now_ms)
{
    const struct hold *h = find_local_hold(b, name);
    if (h && h->deadline_ms > now_ms)
        return h->state == HOLD_LOST || broker_has_heard(b, h->seen_ms, now_ms);
    const struct known *k = find_valid(m, name, now_ms);
    return k && k->truth.kind == TRUTH_DROPIN && is_ours(b, k->truth.op) &&
           broker_has_heard(b, k->since_ms, now_ms);
}
