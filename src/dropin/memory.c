/*
 * Truths at spots, the one that was written last at the end of the list. Each is forgotten when its
 * time is over; one that was put off meanwhile is looked at once more then.
 */
#include "dropin/memory.h"

#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/hold.h"
#include "lock/locktab.h"
#include "session/session.h"

/* ---- the list ---- */

static void take_out(struct spot *s)
{
    struct memory *m = s->memory;
    TAILQ_REMOVE(&m->known, s, known);
    m->bytes -= s->bytes;
    m->broker->n_remembered--;
    m->broker->n_drop_in -= s->is_held;
}

static void drop_truth(struct spot *s)
{
    struct broker *b = s->memory->broker;
    take_out(s);
    due_cancel(&b->due, &s->due);
    s->is_known = s->is_held = false;
    spot_leave(b, s);
}

/* Forgets a hold whose time is over; waits on if it has been renewed meanwhile. */
static void on_known_due(struct broker *b, struct due *due, int64_t now_ms)
{
    struct spot *s = (struct spot *)((char *)due - offsetof(struct spot, due));
    if (s->truth.expires_ms > now_ms)
        due_at(&b->due, &s->due, s->truth.expires_ms);
    else
        drop_truth(s);
}

static void put_truth_last(struct memory *m, struct spot *s, const struct truth *t,
                           int64_t since_ms)
{
    if (!s->is_known || s->truth.kind != t->kind || strcmp(s->truth.birth, t->birth) != 0) {
        s->session_id = 0;
        s->held_since_ms = since_ms;
        s->library[0] = '\0';
    }
    truth_copy(&s->truth, t);
    s->memory = m;
    s->is_known = true;
    s->since_ms = since_ms;
    s->is_held = t->kind == TRUTH_DROPIN && broker_has_op(m->broker, t->op);
    s->bytes = sizeof *s + s->lock->name_len + truth_len(t);
    TAILQ_INSERT_TAIL(&m->known, s, known);
    m->bytes += s->bytes;
    m->broker->n_remembered++;
    m->broker->n_drop_in += s->is_held;
    s->due.fn = on_known_due;
    if (!wheel_armed(&s->due.entry) || s->due.entry.due_ms > t->expires_ms)
        due_at(&m->broker->due, &s->due, t->expires_ms);
}

void memory_init(struct memory *m, struct broker *b)
{
    *m = (struct memory){.broker = b};
    TAILQ_INIT(&m->known);
}

void memory_put(struct memory *m, struct spot *s, const struct truth *t, int64_t since_ms)
{
    /* also of readers and permits: nobody says when the last of them has ended */
    if (!t->op[0] || m->is_closed) {
        memory_forget(s);
        return;
    }
    if (s->is_known)
        take_out(s);
    put_truth_last(m, s, t, since_ms);
    while (m->bytes > MEMORY_BYTES_MAX)
        drop_truth(TAILQ_FIRST(&m->known));
}

void memory_forget(struct spot *s)
{
    if (s->is_known)
        drop_truth(s);
}

void memory_ended(struct spot *s, const char *op, size_t op_len)
{
    if (s->is_known && strlen(s->truth.op) == op_len && memcmp(s->truth.op, op, op_len) == 0)
        drop_truth(s);
}

void memory_close(struct memory *m)
{
    m->is_closed = true;
    while (!TAILQ_EMPTY(&m->known))
        drop_truth(TAILQ_FIRST(&m->known));
}

/* ---- what is known ---- */

/* Returns whether what was confirmed last is known, and is not over. */
static bool knows(const struct spot *s, int64_t now_ms)
{
    return s->is_known && s->truth.expires_ms > now_ms;
}

static void guess_native(const struct broker *b, const struct hold *h, struct truth *out)
{
    out->kind = TRUTH_NATIVE;
    broker_op_text(b, h->op, out->op);
    out->token = out->fence = h->token;
    out->number = h->seq;
    out->expires_ms = h->deadline_ms;
    truth_set_text(out, h->owner->text, h->owner->len);
}

void memory_guess(const struct memory *m, const struct spot *s, struct truth *out, int64_t now_ms)
{
    const struct hold *h = lock_first_hold(s->lock);
    bool is_native = h && h->part.kind == LOCK_EXCLUSIVE && hold_is_valid(h, now_ms);
    if (knows(s, now_ms) && !is_native) {
        truth_copy(out, &s->truth);
        return;
    }
    truth_set(out, TRUTH_FREE);
    if (is_native)
        guess_native(m->broker, h, out);
}

bool memory_is_sure(const struct memory *m, const struct spot *s, int64_t now_ms)
{
    const struct hold *h = lock_first_hold(s->lock);
    if (h && h->deadline_ms > now_ms)
        return h->state == HOLD_LOST || broker_has_heard(m->broker, s->lock, h->seen_ms, now_ms);
    return knows(s, now_ms) && s->is_held &&
           broker_has_heard(m->broker, s->lock, s->since_ms, now_ms);
}

/* ---- what clients of this broker hold ---- */

/* Appends as much of the word as there is room for. */
static size_t add_word(char *out, size_t at, const char *word)
{
    size_t room = SPOT_LIBRARY - 1 - at, len = strnlen(word, room);
    memcpy(out + at, word, len);
    return at + len;
}

static void write_library(char out[SPOT_LIBRARY], const struct session *s)
{
    size_t at = add_word(out, 0, s->lib_name ? s->lib_name : "");
    if (s->lib_ver)
        at = add_word(out, add_word(out, at, at > 0 ? " " : ""), s->lib_ver);
    out[at] = '\0';
}

void memory_note_taker(struct spot *s, const struct session *session, int64_t now_ms)
{
    if (!s->is_known)
        return;
    s->session_id = session->id;
    s->held_since_ms = now_ms;
    write_library(s->library, session);
}

static bool is_held_still(const struct spot *s, int64_t now_ms)
{
    return s && s->is_held && knows(s, now_ms);
}

static struct memory_hold hold_at(const struct spot *s)
{
    return (struct memory_hold){.name = s->lock->name,
                                .len = s->lock->name_len,
                                .truth = &s->truth,
                                .session_id = s->session_id,
                                .held_since_ms = s->held_since_ms,
                                .library = s->library};
}

bool memory_find_hold(struct memory *m, const char *name, size_t len, struct memory_hold *out,
                      int64_t now_ms)
{
    const struct locktab_name hashed = locktab_name(name, len);
    const struct spot *s = spot_find(m->broker, &hashed);
    if (!is_held_still(s, now_ms))
        return false;
    *out = hold_at(s);
    return true;
}

struct memory_scan {
    memory_hold_fn each;
    void *arg;
    int64_t now_ms;
};

static void scan_spot(void *arg, struct lock *l)
{
    const struct memory_scan *scan = arg;
    if (!is_held_still(l->spot, scan->now_ms))
        return;
    const struct memory_hold hold = hold_at(l->spot);
    scan->each(scan->arg, &hold);
}

uint64_t memory_scan(struct memory *m, uint64_t cursor, memory_hold_fn each, void *arg,
                     int64_t now_ms)
{
    struct memory_scan scan = {each, arg, now_ms};
    if (m->broker->n_drop_in == 0) /* else all locks are gone through, for none */
        return 0;
    return locktab_scan(&m->broker->locks, cursor, scan_spot, &scan);
}
