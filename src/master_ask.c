/*
 * Items to one master and their answers.
 *
 *   master_ask -> open batch --another script, full, flush--> out/unsent --flush--> stream/sent
 * --reply--> answers
 *                                                                 \--link lost--> dead --loop-->
 * REJECTED or UNKNOWN
 *
 * Owns the batches and the bytes that the stream has not seen yet. Does not know what the scripts
 * mean, only the shape of their replies: whatever a script cannot say ends the link.
 *
 * Invariants: replies come in the order of `sent`; nothing of `unsent`, `open` and `out` has left;
 * a call is in exactly one batch until its on_answer runs. Batches and their buffers are used
 * again: nothing is allocated while things run evenly.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "master_private.h"

enum { ITEMS_MAX = 64, ITEMS_MAX_LIGHT = 100 };

#define TOKEN_MAX ((int64_t)1 << 53)
#define TIME_MAX_MS ((int64_t)1 << 45)

/* ---- bytes ---- */

/* Writes n so that it ends before `end`; returns where it begins. */
static char *digits(char *end, int64_t n)
{
    uint64_t u = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

    do {
        *--end = (char)('0' + u % 10);
        u /= 10;
    } while (u);
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

/* Writes the open batch. */
static void close_open(struct master *m, int64_t now_ms)
{
    struct master_batch *b = m->open;

    if (!b)
        return;
    const struct script_row *row = script_get(b->script);
    master_put_array(&m->out, 4 + b->n_items + (int64_t)b->n_items * row->args);
    buf_append(&m->out, m->head[b->script], (size_t)m->head_len[b->script]);
    master_put_int(&m->out, b->n_items);
    buf_append(&m->out, buf_head(&m->keys), buf_len(&m->keys));
    if (row->deadline)
        master_put_int(&m->out, deadline_ms(m, now_ms));
    else
        master_put_text(&m->out, "", 0);
    buf_append(&m->out, buf_head(&m->args), buf_len(&m->args));
    drop_bytes(&m->keys);
    drop_bytes(&m->args);
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    m->open = NULL;
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
    bool anyway = script == SCRIPT_PLANT || script == SCRIPT_RELEASE || script == SCRIPT_PEEK;

    if (m->state != MASTER_ACTIVE && !(m->state == MASTER_QUARANTINE && anyway))
        return false;
    if (m->n_items >= m->setup.max_in_flight)
        return false;
    if (script == SCRIPT_RELEASE || !master_is_stalled(m, now_ms * 1000))
        return true;
    m->status.timeouts++;
    return false;
}

int master_ask(struct master *m, enum script script, const struct master_item *item,
               struct master_call *call, int64_t now_ms)
{
    assert(script <= SCRIPT_PEEK);
    if (!takes(m, script, now_ms))
        return -1;
    if (m->open && (m->open->script != script || m->open->n_items == items_max(script)))
        close_open(m, now_ms);
    if (!m->open) {
        m->open = new_batch(m, MASTER_ASK_ITEMS);
        m->open->script = (uint8_t)script;
    }
    buf_append(&m->keys, item->key, item->key_len);
    if (item->args)
        buf_append(&m->args, item->args, item->args_len);
    call->sent_us = now_ms * 1000;
    TAILQ_INSERT_TAIL(&m->open->calls, call, link);
    m->open->n_items++;
    m->n_items++;
    return 0;
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
    }
    stream_flush(&m->stream);
}

/* ---- answers ---- */

/* Hands the same answer to every call of a batch, or each its own when values are given. */
static void answer_calls(struct master *m, struct master_batch *b, enum master_result result,
                         const char *text, int64_t now_ms)
{
    struct master_answer answer = {.result = result, .text = text};
    struct master_call *call;

    if (result == MASTER_REJECTED)
        m->status.rejected += b->n_items;
    else
        m->status.unknown += b->n_items;
    m->n_items -= b->n_items;
    m->in_calls = true;
    while ((call = TAILQ_FIRST(&b->calls)) != NULL) {
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
    m->in_calls = false;
    TAILQ_INSERT_HEAD(&m->spare, b, link);
}

static bool is_code(const char *text, const char *code)
{
    size_t len = strlen(code);
    return strncmp(text, code, len) == 0 && (text[len] == ' ' || text[len] == 0);
}

/* True when the error proves that the script did not begin: Redis or the script's own first lines
 * have refused it. An error from a command in the middle names the script ("script:" since Redis 7,
 * "Error running script" before) and proves nothing. */
static bool has_not_run(const char *text)
{
    static const char *const codes[] = {
        "LATE",   "STRANGER",    "QUARANTINE", "NOSCRIPT",   "LOADING",   "NOAUTH",
        "NOPERM", "BUSY",        "MISCONF",    "READONLY",   "OOM",       "MASTERDOWN",
        "MOVED",  "CLUSTERDOWN", "TRYAGAIN",   "NOREPLICAS", "EXECABORT", NULL};

    if (strstr(text, "script:") || strstr(text, "Error running script"))
        return false;
    for (int i = 0; codes[i]; i++)
        if (is_code(text, codes[i]))
            return true;
    return false;
}

static void answer_error(struct master *m, struct master_batch *b, int64_t now_ms)
{
    const struct reply_value *v = m->reply.values;
    const char *text = reply_text(&m->reply, v);
    char words[REPLY_WORDS_MAX];
    unsigned links = m->links;
    bool stranger = is_code(text, "STRANGER");
    bool changed = stranger || is_code(text, "NOSCRIPT") || is_code(text, "READONLY");
    bool quarantined = is_code(text, "QUARANTINE");

    m->status.errors++;
    reply_words(words, sizeof words, text, v->len);
    log_debug(m->object, "script=%s error=%s", script_get(b->script)->name, words);
    answer_calls(m, b, has_not_run(text) ? MASTER_REJECTED : MASTER_UNKNOWN, words, now_ms);
    m->stranger |= stranger;
    if (m->links != links)
        return;
    if (changed && (m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE))
        master_greet_again(m);
    else if (quarantined && m->state == MASTER_ACTIVE)
        master_join(m);
}

/* Lowest and highest first integer of an item, by script. */
static const int8_t codes[][2] = {
    [SCRIPT_ACQUIRE] = {-2, 2}, [SCRIPT_COMMIT] = {0, 2}, [SCRIPT_TAKEOVER] = {-1, 1},
    [SCRIPT_RENEW] = {-1, 1},   [SCRIPT_PLANT] = {0, 1},  [SCRIPT_RELEASE] = {-1, 1},
};

static bool is_int(const struct reply_value *v, int64_t min, int64_t max)
{
    return v->type == REPLY_INTEGER && v->integer >= min && v->integer <= max;
}

static bool is_flat_answer(const struct master_batch *b, const struct reply_value *v)
{
    int width = script_get(b->script)->width;

    for (int i = 0; i < b->n_items; i++, v += width) {
        if (!is_int(v, codes[b->script][0], codes[b->script][1]))
            return false;
        if (width > 1 && !is_int(v + 1, v->integer == 1 ? 1 : -2, TOKEN_MAX))
            return false;
        if (width > 2 && !is_int(v + 2, 0, INT32_MAX))
            return false;
    }
    return true;
}

static bool is_nested_answer(const struct master_batch *b, const struct reply_value *v,
                             const struct reply_value *end)
{
    for (int i = 0; i < b->n_items; i++) {
        if (v == end || v->type != REPLY_ARRAY || v->integer > MASTER_NESTED_MAX ||
            end - v <= v->integer)
            return false;
        const struct reply_value *item = v + 1;
        v = item + v->integer;
        for (; item < v; item++)
            if (item->type != REPLY_INTEGER && item->type != REPLY_TEXT && item->type != REPLY_NIL)
                return false;
    }
    return v == end;
}

/* Whether the reply is one that the script of this batch can give. */
static bool is_answer(const struct master_batch *b, const struct reply *r)
{
    const struct script_row *row = script_get(b->script);
    const struct reply_value *v = r->values;
    int64_t n = 1 + (int64_t)b->n_items * (row->width ? row->width : 1);

    if (v->type != REPLY_ARRAY || v->integer != n || !is_int(v + 1, 1, TIME_MAX_MS))
        return false;
    if (row->width == 0)
        return is_nested_answer(b, v + 2, v + r->count);
    return r->count == 1 + n && is_flat_answer(b, v + 2);
}

static void see_token(struct master *m, enum script script, const int64_t *values)
{
    bool token = script == SCRIPT_COMMIT ? values[0] >= 1 : values[0] == 1;

    if ((script <= SCRIPT_TAKEOVER) && token && values[1] > m->status.high)
        m->status.high = values[1];
}

static void answer_flat(struct master *m, struct master_batch *b, int64_t now_ms)
{
    int width = script_get(b->script)->width;
    const struct reply_value *v = m->reply.values + 2;
    int64_t values[SCRIPT_WIDTH_MAX];
    struct master_answer answer = {.result = MASTER_ANSWERED, .values = values, .text = ""};
    struct master_call *call;

    while ((call = TAILQ_FIRST(&b->calls)) != NULL) {
        for (int i = 0; i < width; i++)
            values[i] = (v++)->integer;
        see_token(m, b->script, values);
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
}

static void answer_nested(struct master *m, struct master_batch *b, int64_t now_ms)
{
    const struct reply_value *v = m->reply.values + 2;
    struct master_value nested[MASTER_NESTED_MAX];
    struct master_answer answer = {.result = MASTER_ANSWERED, .nested = nested, .text = ""};
    struct master_call *call;

    while ((call = TAILQ_FIRST(&b->calls)) != NULL) {
        answer.n_nested = (int)(v++)->integer;
        for (int i = 0; i < answer.n_nested; i++, v++) {
            bool is_text = v->type != REPLY_INTEGER;
            nested[i] = (struct master_value){.is_text = is_text, .integer = v->integer};
            nested[i].text = v->type == REPLY_TEXT ? reply_text(&m->reply, v) : "";
            nested[i].len = v->len;
        }
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
}

static void answer_items(struct master *m, struct master_batch *b, int64_t now_ms, int64_t now_us)
{
    master_clock_take(m, m->reply.values[1].integer, b->sent_us, now_us);
    m->status.answered += b->n_items;
    m->n_items -= b->n_items;
    m->in_calls = true;
    if (script_get(b->script)->width)
        answer_flat(m, b, now_ms);
    else
        answer_nested(m, b, now_ms);
    m->in_calls = false;
    TAILQ_INSERT_HEAD(&m->spare, b, link);
}

/* ---- replies ---- */

static void on_reply(struct master *m, int64_t now_ms, int64_t now_us)
{
    struct master_batch *b = TAILQ_FIRST(&m->sent);

    if (!b) {
        master_drop(m, "it said something that nobody had asked");
        return;
    }
    if (b->kind != MASTER_ASK_ITEMS) {
        struct master_batch asked = *b;
        TAILQ_REMOVE(&m->sent, b, link);
        TAILQ_INSERT_HEAD(&m->spare, b, link);
        if (master_greet_reply(m, &asked, now_us) != 0)
            master_drop(m, "its reply is none to what was asked");
        return;
    }
    if (m->reply.values[0].type != REPLY_ERROR && !is_answer(b, &m->reply)) {
        m->status.errors++;
        master_drop(m, "its reply is none that the script %s gives", script_get(b->script)->name);
        return;
    }
    TAILQ_REMOVE(&m->sent, b, link);
    if (m->reply.values[0].type == REPLY_ERROR)
        answer_error(m, b, now_ms);
    else
        answer_items(m, b, now_ms, now_us);
}

size_t master_on_bytes(void *arg, const char *data, size_t len)
{
    struct master *m = arg;
    unsigned links = m->links;
    int64_t now_us = clock_us(), now_ms = now_us / 1000;
    enum reply_result result = REPLY_MORE;

    m->heard_ms = now_ms;
    for (size_t done = 0, n; done < len && m->links == links; done += n) {
        n = len - done < REPLY_FEED_MAX ? len - done : REPLY_FEED_MAX;
        reply_feed(&m->reply, data + done, n);
        while ((result = reply_next(&m->reply)) == REPLY_READY) {
            on_reply(m, now_ms, now_us);
            if (m->links != links)
                return len;
        }
        if (result == REPLY_BROKEN) {
            m->status.errors++;
            master_drop(m, "%s", m->reply.error);
        } else if (m->reply.unfinished > 0 && TAILQ_EMPTY(&m->sent)) {
            master_drop(m, "it said something that nobody had asked");
        }
    }
    return len;
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

void master_bury(struct master *m)
{
    if (m->open) {
        TAILQ_INSERT_TAIL(&m->unsent, m->open, link);
        m->open = NULL;
    }
    bury_all(m, &m->sent, MASTER_UNKNOWN);
    bury_all(m, &m->unsent, MASTER_REJECTED);
    drop_bytes(&m->keys);
    drop_bytes(&m->args);
    drop_bytes(&m->out);
}

void master_deliver(struct master *m, int64_t now_ms)
{
    struct master_batch *b;

    while ((b = TAILQ_FIRST(&m->dead)) != NULL) {
        bool unknown = b->fate == MASTER_UNKNOWN;
        TAILQ_REMOVE(&m->dead, b, link);
        answer_calls(m, b, b->fate, unknown ? m->loss : "not sent", now_ms);
    }
}

void master_forget(struct master *m)
{
    struct master_batch *b;

    assert(TAILQ_EMPTY(&m->dead) && TAILQ_EMPTY(&m->sent) && TAILQ_EMPTY(&m->unsent) && !m->open);
    while ((b = TAILQ_FIRST(&m->spare)) != NULL) {
        TAILQ_REMOVE(&m->spare, b, link);
        free(b);
    }
    buf_fini(&m->keys);
    buf_fini(&m->args);
    buf_fini(&m->out);
}
