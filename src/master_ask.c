/*
 * Items to one master and their answers.
 *
 *   master_ask --> early or open --another script, full, flush--> out/unsent --flush--> stream/sent
 *   sent --reply--> answers
 *   any of them --link lost--> dead --loop--> REJECTED or UNKNOWN
 *
 * Owns the batches and the bytes that the stream has not seen yet. Does not know what the scripts
 * mean, only the shape of their replies: whatever a script cannot say ends the link.
 *
 * Invariants: replies come in the order of `sent`; nothing of `unsent`, `early`, `open` and `out`
 * has left; a call is in exactly one batch until its on_answer runs. Batches and their buffers are
 * used again: nothing is allocated while things run evenly.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "master_private.h"

enum { ITEMS_MAX = 64, ITEMS_MAX_LIGHT = 100 };

/* ---- bytes ---- */

static char *digits(char *end, int64_t n)
{
    end = util_digits(end, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    if (n < 0)
        *--end = '-';
    return end;
}

static void put_number(struct buf *b, char type, int64_t n)
{
    char text[32] = {[30] = '\r', [31] = '\n'};
    char *p = digits(text + 30, n);

    *--p = type;
    buf_append(b, p, (size_t)(text + sizeof text - p));
}

void master_put_array(struct buf *b, int64_t n)
{
    put_number(b, '*', n);
}

void master_put_text(struct buf *b, const char *text, size_t len)
{
    put_number(b, '$', (int64_t)len);
    buf_append(b, text, len);
    buf_append(b, "\r\n", 2);
}

void master_put_int(struct buf *b, int64_t n)
{
    char text[32], *end = text + sizeof text;
    char *p = digits(end, n);

    master_put_text(b, p, (size_t)(end - p));
}

void master_put_words(struct buf *b, const char *words)
{
    int n = 1;

    for (const char *p = words; *p; p++)
        n += *p == ' ';
    master_put_array(b, n);
    for (const char *p = words; n > 0; n--) {
        size_t len = strcspn(p, " ");
        master_put_text(b, p, len);
        p += len + 1;
    }
}

/* ---- batches ---- */

static struct master_batch *new_batch(struct master *m, enum master_ask_kind kind)
{
    struct master_batch *b = TAILQ_FIRST(&m->spare);

    if (b)
        TAILQ_REMOVE(&m->spare, b, link);
    else
        b = util_alloc(sizeof *b);
    b->kind = (uint8_t)kind;
    b->n_items = 0;
    b->sent_us = 0;
    TAILQ_INIT(&b->calls);
    return b;
}

/* How many items of a script go into one call: renew and release do little for each. */
static int items_max(enum script script)
{
    return script == SCRIPT_RENEW || script == SCRIPT_RELEASE ? ITEMS_MAX_LIGHT : ITEMS_MAX;
}

/* The deadline by its own clock; the scripts refuse to create anything after it. */
static int64_t deadline_ms(const struct master *m, int64_t now_ms)
{
    return now_ms + m->clock.offset_us / 1000 + 2 * m->setup.request_timeout_ms;
}

static void drop_bytes(struct buf *b)
{
    buf_consume(b, buf_len(b));
}

/* Calls are numbered by the master's own time in us, by which it forgets them (join.lua), and never
 * backwards. */
static int64_t next_number(struct master *m, int64_t now_ms)
{
    int64_t time_us = now_ms * 1000 + m->clock.offset_us;
    m->last_number = time_us > m->last_number ? time_us : m->last_number + 1;
    return m->last_number;
}

static void drop_open(struct master_open *o)
{
    drop_bytes(&o->keys);
    drop_bytes(&o->args);
    drop_bytes(&o->counters);
    o->batch = NULL;
}

static void write_open(struct master *m, struct master_open *o, int64_t now_ms)
{
    struct master_batch *b = o->batch;

    if (!b)
        return;
    const struct script_row *row = script_get(b->script);
    b->number = next_number(m, now_ms);
    bool has_counters = buf_len(&o->counters) > 0;
    master_put_array(&m->out, 3 + row->head + b->n_items * (1 + (int64_t)row->args) + has_counters);
    buf_append(&m->out, m->head[b->script], (size_t)m->head_len[b->script]);
    master_put_int(&m->out, b->n_items);
    buf_append(&m->out, buf_head(&o->keys), buf_len(&o->keys));
    if (row->deadline)
        master_put_int(&m->out, deadline_ms(m, now_ms));
    else
        master_put_text(&m->out, "", 0);
    master_put_int(&m->out, b->number);
    master_put_text(&m->out, m->setup.broker, strlen(m->setup.broker));
    if (b->script == SCRIPT_ACQUIRE) {
        master_put_int(&m->out, TAILQ_FIRST(&b->calls)->floor);
        master_put_int(&m->out, TAILQ_LAST(&b->calls, master_calls)->floor);
    }
    buf_append(&m->out, buf_head(&o->args), buf_len(&o->args));
    if (has_counters)
        master_put_text(&m->out, buf_head(&o->counters), buf_len(&o->counters));
    drop_open(o);
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    stats.renewal_batches += b->script == SCRIPT_RENEW;
}

static void close_open(struct master *m, int64_t now_ms)
{
    write_open(m, &m->early, now_ms);
    write_open(m, &m->open, now_ms);
}

struct master_batch *master_batch_add(struct master *m, enum master_ask_kind kind)
{
    close_open(m, clock_ms());
    struct master_batch *b = new_batch(m, kind);
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    return b;
}

/* ---- asking ---- */

bool master_is_stalled(const struct master *m, int64_t now_us)
{
    const struct master_batch *b = TAILQ_FIRST(&m->sent);
    return b && now_us - b->sent_us > m->setup.request_timeout_ms * 1000;
}

static bool takes(struct master *m, enum script script, int64_t now_ms)
{
    bool anyway = script == SCRIPT_PLANT || !script_get(script)->deadline;

    if (m->state != MASTER_ACTIVE && !(m->state == MASTER_QUARANTINE && anyway))
        return false;
    if (m->n_items >= m->setup.max_in_flight)
        return false;
    if (script == SCRIPT_RELEASE || !master_is_stalled(m, now_ms * 1000))
        return true;
    m->status.timeouts++;
    return false;
}

/* Unlocks and locks come mixed. Were each to end the call of the other kind, calls would be short;
 * so those releases that may go first are gathered in a call of their own. */
static bool has_room(const struct master_open *o, enum script script, int n)
{
    const struct master_batch *b = o->batch;
    return !b || (b->script == script && b->n_items + n <= items_max(script));
}

static void add_counter(struct buf *counters, int bucket)
{
    char text[24], *end = text + sizeof text;
    char *p = digits(end, bucket);
    if (buf_len(counters) > 0)
        *--p = ' ';
    buf_append(counters, p, (size_t)(end - p));
}

int master_ask(struct master *m, enum script script, const struct master_item *item,
               struct master_call *call, int64_t now_ms)
{
    assert(script <= SCRIPT_PEEK);
    bool early = item->early && (!m->open.batch || m->open.batch->script == SCRIPT_ACQUIRE);
    struct master_open *o = early ? &m->early : &m->open;
    if (!takes(m, script, now_ms))
        return -1;
    if (!has_room(o, script, 1))
        close_open(m, now_ms);
    if (!o->batch) {
        o->batch = new_batch(m, MASTER_ASK_ITEMS);
        o->batch->script = (uint8_t)script;
    }
    struct master_call *last = TAILQ_LAST(&o->batch->calls, master_calls);
    assert(script != SCRIPT_ACQUIRE || !last || last->floor < item->floor);
    buf_append(&o->keys, item->key, item->key_len);
    if (script == SCRIPT_ACQUIRE && item->bucket >= 0)
        add_counter(&o->counters, item->bucket);
    if (item->args)
        buf_append(&o->args, item->args, item->args_len);
    call->sent_us = now_ms * 1000;
    call->floor = item->floor;
    TAILQ_INSERT_TAIL(&o->batch->calls, call, link);
    o->batch->n_items++;
    m->n_items++;
    return 0;
}

void master_together(struct master *m, enum script script, int n, int64_t now_ms)
{
    assert(n <= ITEMS_MAX);
    if (!has_room(&m->open, script, n))
        close_open(m, now_ms);
}

void master_flush(struct master *m, int64_t now_ms)
{
    struct buf *out = stream_out(&m->stream);
    struct master_batch *b;

    close_open(m, now_ms);
    if (TAILQ_EMPTY(&m->unsent))
        return;
    int64_t now_us = clock_us();
    TAILQ_FOREACH(b, &m->unsent, link)
        b->sent_us = now_us;
    TAILQ_CONCAT(&m->sent, &m->unsent, link);
    if (buf_len(out) == 0) {
        struct buf swapped = *out;
        *out = m->out;
        m->out = swapped;
    } else {
        buf_append(out, buf_head(&m->out), buf_len(&m->out));
        drop_bytes(&m->out);
        buf_trim(&m->out);
    }
    stream_flush(&m->stream);
}

/* ---- the end of a link ---- */

static void bury_all(struct master *m, struct master_batches *from, enum master_result fate)
{
    struct master_batch *b;

    while ((b = TAILQ_FIRST(from)) != NULL) {
        TAILQ_REMOVE(from, b, link);
        b->fate = (uint8_t)fate;
        if (TAILQ_EMPTY(&b->calls))
            TAILQ_INSERT_HEAD(&m->spare, b, link);
        else
            TAILQ_INSERT_TAIL(&m->dead, b, link);
    }
}

static void bury_open(struct master *m, struct master_open *o)
{
    if (o->batch)
        TAILQ_INSERT_TAIL(&m->unsent, o->batch, link);
    drop_open(o);
}

void master_bury(struct master *m)
{
    bury_open(m, &m->early);
    bury_open(m, &m->open);
    bury_all(m, &m->sent, MASTER_UNKNOWN);
    bury_all(m, &m->unsent, MASTER_REJECTED);
    drop_bytes(&m->out);
}

void master_deliver(struct master *m, int64_t now_ms)
{
    struct master_batch *b;

    while ((b = TAILQ_FIRST(&m->dead)) != NULL) {
        bool unknown = b->fate == MASTER_UNKNOWN;
        TAILQ_REMOVE(&m->dead, b, link);
        master_answer_calls(m, b, b->fate, unknown ? m->loss : "not sent", now_ms);
    }
}

static void fini_open(struct master_open *o)
{
    buf_fini(&o->keys);
    buf_fini(&o->args);
    buf_fini(&o->counters);
}

void master_forget(struct master *m)
{
    struct master_batch *b;

    assert(TAILQ_EMPTY(&m->dead) && TAILQ_EMPTY(&m->sent) && TAILQ_EMPTY(&m->unsent));
    assert(!m->early.batch && !m->open.batch);
    while ((b = TAILQ_FIRST(&m->spare)) != NULL) {
        TAILQ_REMOVE(&m->spare, b, link);
        free(b);
    }
    fini_open(&m->early);
    fini_open(&m->open);
    buf_fini(&m->out);
}
