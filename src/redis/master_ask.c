/*
 * Items to one master and their answers.
 *
 *   master_ask --> early or open --another script, full, flush--> waiting --flush, room--> unsent
 *              --> renewing ---------------------- full, flush -> renewals --flush-------> unsent
 *   unsent, out --flush--> sent, stream --reply--> answers
 *   any of them --link lost--> dead --loop--> REJECTED or UNKNOWN
 *
 * The server works in order of arrival. So only so much is given to it that it is through within
 * some milliseconds, and the rest waits here, where renewals of the watchdog go before it: what
 * others want must not cost somebody his lock.
 *
 * Owns the batches and the bytes that the stream has not seen yet. Does not know what the scripts
 * mean, only the shape of their replies: whatever a script cannot say ends the link.
 *
 * Invariants: replies come in the order of `sent`; nothing but what is in `sent` has left; calls
 * are numbered when they leave, in that order; a call is in exactly one batch until its on_answer
 * runs. Batches and their buffers are used again: nothing is allocated while things run evenly.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "redis/master_private.h"
#include "redis/partition.h"

/* Bounds the items, renewals aside, that the server has not answered yet: to what it was seen to do
 * in WINDOW_WORK_US, because kinds of lock, and servers, differ much in the work they need. The
 * bound is doubled, tripled... on a slow network: by once more for each WINDOW_US of the quickest
 * answer. */
enum { WINDOW = 1024, WINDOW_WORK_US = 8000, WINDOW_US = 4000 };

/* Bytes to be sent, above which no messages are added. */
enum { BEHIND_MAX = 4 * 1024 * 1024 };

/* ---- batches ---- */

static struct master_batch *new_batch(struct master *m, master_reply_fn on_reply)
{
    struct master_batch *b = TAILQ_FIRST(&m->spare);

    if (b)
        TAILQ_REMOVE(&m->spare, b, link);
    else
        b = util_alloc(sizeof *b);
    b->on_reply = on_reply;
    b->n_items = 0;
    b->lowest = b->highest = 0;
    b->sent_us = 0;
    b->is_renewal = false;
    TAILQ_INIT(&b->calls);
    return b;
}

/* Returns the time after which the scripts refuse to create anything, on our clock. */
static int64_t deadline_ms(const struct master *m, const struct master_batch *b)
{
    return b->asked_ms + 2 * m->setup.request_timeout_ms;
}

static void drop_bytes(struct buf *b)
{
    buf_consume(b, buf_len(b));
}

static void drop_items(struct master_batch *b)
{
    drop_bytes(&b->keys);
    drop_bytes(&b->args);
    drop_bytes(&b->counters);
}

/* Returns the number of the next call: the master's own time in us, because the master forgets
 * numbers by their age (join.lua); never one that is not above the last. */
static int64_t next_number(struct master *m, int64_t now_ms)
{
    int64_t time_us = now_ms * 1000 + m->clock.best.offset_us;
    m->last_number = time_us > m->last_number ? time_us : m->last_number + 1;
    return m->last_number;
}

static void write_batch(struct master *m, struct master_batch *b, int64_t now_ms)
{
    const struct script_row *row = script_get(b->script);
    int has_floors = b->highest > 0, has_counters = buf_len(&b->counters) > 0, has_at = *m->at != 0;

    b->number = next_number(m, now_ms);
    request_array(&m->out, 3 + SCRIPT_HEAD + b->n_items * (1 + (int64_t)row->args) +
                               2 * has_floors + has_counters + has_at);
    buf_append(&m->out, m->head[b->script], (size_t)m->head_len[b->script]);
    request_int(&m->out, b->n_items + has_at);
    buf_append(&m->out, buf_head(&b->keys), buf_len(&b->keys));
    if (has_at)
        request_str(&m->out, m->at);
    if (row->deadline) /* in the master's time */
        request_int(&m->out, deadline_ms(m, b) + m->clock.best.offset_us / 1000);
    else
        request_text(&m->out, "", 0);
    request_int(&m->out, b->number);
    request_str(&m->out, m->setup.broker);
    buf_append(&m->out, buf_head(&b->args), buf_len(&b->args));
    if (has_floors) {
        request_int(&m->out, b->lowest);
        request_int(&m->out, b->highest);
    }
    if (has_counters)
        request_text(&m->out, buf_head(&b->counters), buf_len(&b->counters));
    drop_items(b);
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    m->n_before += b->is_renewal ? 0 : b->n_items;
    stats.renewal_batches += b->is_renewal;
}

static void close_batch(struct master_batch **open, struct master_batches *into)
{
    if (*open)
        TAILQ_INSERT_TAIL(into, *open, link);
    *open = NULL;
}

static void close_open(struct master *m)
{
    close_batch(&m->early, &m->waiting);
    close_batch(&m->open, &m->waiting);
}

struct master_batch *master_batch_add(struct master *m, master_reply_fn on_reply)
{
    struct master_batch *b = new_batch(m, on_reply);
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    return b;
}

/* ---- asking ---- */

bool master_is_stalled(const struct master *m, int64_t now_us)
{
    const struct master_batch *b = TAILQ_FIRST(&m->sent);
    return b && now_us - b->sent_us > m->setup.request_timeout_ms * 1000;
}

static bool takes(struct master *m, enum script script, bool undoes, int64_t now_ms)
{
    if (m->state != MASTER_ACTIVE &&
        !(m->state == MASTER_QUARANTINE && script_runs_in_quarantine(script)))
        return false;
    if (m->n_items >= m->setup.max_in_flight)
        return false;
    if (script == SCRIPT_RELEASE || undoes || !master_is_stalled(m, now_ms * 1000))
        return true;
    m->status.timeouts++;
    return false;
}

static bool has_room(const struct master_batch *b, enum script script, int n)
{
    return !b || (b->script == script && b->n_items + n <= script_get(script)->items_max);
}

/* Returns the batch that the item goes into. Releases and acquires come mixed: were each to close
 * the batch of the other script, calls would be short. So releases that may overtake (`early`) are
 * gathered in a batch of their own. */
static struct master_batch *batch_for(struct master *m, enum script script,
                                      const struct master_item *item, int64_t now_ms)
{
    bool early = item->early && (!m->open || m->open->script == SCRIPT_ACQUIRE);
    struct master_batch **open = item->renewal ? &m->renewing : early ? &m->early : &m->open;

    if (item->renewal && !has_room(*open, script, 1))
        close_batch(open, &m->renewals);
    else if (!has_room(*open, script, 1))
        close_open(m);
    if (!*open) {
        *open = new_batch(m, NULL);
        (*open)->script = (uint8_t)script;
        (*open)->is_renewal = item->renewal;
        (*open)->asked_ms = now_ms;
    }
    return *open;
}

static void add_counter(struct buf *counters, int bucket)
{
    char text[24], *end = text + sizeof text;
    char *p = util_digits(end, (uint64_t)bucket);
    if (buf_len(counters) > 0)
        *--p = ' ';
    buf_append(counters, p, (size_t)(end - p));
}

int master_ask(struct master *m, enum script script, const struct master_item *item,
               struct master_call *call, int64_t now_ms)
{
    assert(script_get(script)->items_max > 0);
    if (!takes(m, script, item->undoes, now_ms))
        return -1;
    struct master_batch *b = batch_for(m, script, item, now_ms);
    assert(item->floor == 0 || item->floor > b->highest);
    buf_append(&b->keys, item->key, item->key_len);
    if (script_get(script)->floors && item->bucket >= 0)
        add_counter(&b->counters, item->bucket);
    buf_append(&b->args, item->args, item->args_len);
    call->sent_us = now_ms * 1000;
    call->floor = item->floor;
    b->lowest = b->lowest ? b->lowest : item->floor;
    b->highest = item->floor ? item->floor : b->highest;
    TAILQ_INSERT_TAIL(&b->calls, call, link);
    b->n_items++;
    m->n_items++;
    return 0;
}

void master_together(struct master *m, enum script script, int n, int64_t now_ms)
{
    (void)now_ms;
    assert(n <= script_get(script)->items_max);
    if (!has_room(m->open, script, n))
        close_open(m);
}

/* ---- messages ---- */

static int on_published(struct master *m)
{
    char words[REPLY_WORDS_MAX];

    if (master_said_error(m) && log_limited(&m->refusal_log, m->heard_ms))
        log_warn(m->object, "a message was not published: %s",
                 reply_words(words, sizeof words, reply_text(m->reply, m->reply->values),
                             m->reply->values->len));
    return 0;
}

void master_said_channel(int partition, int db, char out[MASTER_SAID_MAX])
{
    const char *at = partition_at(partition);

    if (*at)
        snprintf(out, MASTER_SAID_MAX, MASTER_SAID_IN_PARTITION, at);
    else
        snprintf(out, MASTER_SAID_MAX, MASTER_SAID_CHANNEL, db);
}

void master_publish(struct master *m, const char *text, size_t len, int64_t now_ms)
{
    char channel[MASTER_SAID_MAX];
    size_t behind = buf_len(&m->out) + buf_len(link_out(m->link));

    if (!master_is_joined(m) || master_is_stalled(m, now_ms * 1000) || behind > BEHIND_MAX)
        return;
    (void)master_batch_add(m, on_published);
    master_said_channel(m->setup.partition, m->db, channel);
    request_array(&m->out, 3);
    request_str(&m->out, *m->at ? "SPUBLISH" : "PUBLISH");
    request_str(&m->out, channel);
    request_text(&m->out, text, len);
}

/* ---- sending ---- */

/* Returns whether so many items more may be sent now; one call always may. */
static bool has_window(const struct master *m, int64_t n_items)
{
    int64_t trips = m->quickest_us < INT64_MAX ? m->quickest_us / WINDOW_US : 0;
    int64_t window = WINDOW;
    if (m->work_us * WINDOW > m->work_items * WINDOW_WORK_US)
        window = m->work_items * WINDOW_WORK_US / m->work_us;
    return m->n_before == 0 || m->n_before + n_items <= window * (1 + trips);
}

static void write_waiting(struct master *m, int64_t now_ms)
{
    struct master_batch *b;

    close_batch(&m->renewing, &m->renewals);
    close_open(m);
    while ((b = TAILQ_FIRST(&m->renewals)) != NULL) {
        TAILQ_REMOVE(&m->renewals, b, link);
        write_batch(m, b, now_ms);
    }
    while ((b = TAILQ_FIRST(&m->waiting)) != NULL && has_window(m, b->n_items)) {
        TAILQ_REMOVE(&m->waiting, b, link);
        if (!script_get(b->script)->deadline || now_ms <= deadline_ms(m, b)) {
            write_batch(m, b, now_ms);
        } else { /* the server would refuse it as late, and its callers have had their verdict */
            drop_items(b);
            b->fate = MASTER_REJECTED;
            TAILQ_INSERT_TAIL(&m->dead, b, link);
            event_active(&m->turn, EV_TIMEOUT, 0);
        }
    }
}

void master_flush(struct master *m, int64_t now_ms)
{
    struct buf *out = link_out(m->link);
    struct master_batch *b;
    int n = 0;

    write_waiting(m, now_ms);
    if (TAILQ_EMPTY(&m->unsent))
        return;
    int64_t now_us = clock_us();
    TAILQ_FOREACH(b, &m->unsent, link) {
        b->sent_us = now_us;
        n++;
    }
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
    link_write(m->link, &m->seat, n);
}

void masters_write(void)
{
    links_write();
}

/* ---- the end of a link ---- */

static void bury_all(struct master *m, struct master_batches *from, enum master_result fate)
{
    struct master_batch *b;

    while ((b = TAILQ_FIRST(from)) != NULL) {
        TAILQ_REMOVE(from, b, link);
        drop_items(b);
        b->fate = (uint8_t)fate;
        if (TAILQ_EMPTY(&b->calls))
            TAILQ_INSERT_HEAD(&m->spare, b, link);
        else
            TAILQ_INSERT_TAIL(&m->dead, b, link);
    }
}

void master_bury(struct master *m)
{
    close_batch(&m->renewing, &m->renewals);
    close_open(m);
    bury_all(m, &m->sent, MASTER_UNKNOWN);
    bury_all(m, &m->unsent, MASTER_REJECTED);
    bury_all(m, &m->renewals, MASTER_REJECTED);
    bury_all(m, &m->waiting, MASTER_REJECTED);
    drop_bytes(&m->out);
    m->n_before = 0;
    m->quickest_us = INT64_MAX;
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

void master_forget(struct master *m)
{
    struct master_batch *b;

    assert(TAILQ_EMPTY(&m->dead) && TAILQ_EMPTY(&m->sent) && TAILQ_EMPTY(&m->unsent));
    assert(TAILQ_EMPTY(&m->waiting) && TAILQ_EMPTY(&m->renewals));
    assert(!m->early && !m->open && !m->renewing);
    while ((b = TAILQ_FIRST(&m->spare)) != NULL) {
        TAILQ_REMOVE(&m->spare, b, link);
        buf_fini(&b->keys);
        buf_fini(&b->args);
        buf_fini(&b->counters);
        free(b);
    }
    buf_fini(&m->out);
}
