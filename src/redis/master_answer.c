/*
 * Replies of one master to what master_ask.c has sent, in the same order.
 *
 * Knows the shape of what each script can say, and the bounds of its numbers: anything else is no
 * answer but the end of the link, and everything under way is UNKNOWN. A reply is looked at whole
 * before the first call hears of it.
 *
 * Invariant: after each on_answer the link may be gone; `links` tells.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "redis/codes.h"
#include "redis/master_private.h"

#define TIME_MAX_MS ((int64_t)1 << 45)
enum { PTTL_NO_KEY = -2 }; /* the lowest second integer: what PTTL says of what is not there */

/* ---- errors ---- */

void master_answer_calls(struct master *m, struct master_batch *b, enum master_result result,
                         const char *text, int64_t now_ms)
{
    struct master_answer answer = {.result = result, .text = text};
    struct master_call *call;

    if (result == MASTER_REJECTED)
        m->status.rejected += b->n_items;
    m->n_items -= b->n_items;
    m->in_calls = true;
    while ((call = TAILQ_FIRST(&b->calls)) != NULL) {
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
    m->in_calls = false;
    TAILQ_INSERT_HEAD(&m->spare, b, link);
}

/* True when the error proves that the script did not begin: Redis or the script's own first lines
 * have refused it. An error from a command in the middle names the script ("script:" since Redis 7,
 * "Error running script" before) and proves nothing. */
static bool has_not_run(const struct reply *r)
{
    static const char *const codes[] = {
        "LATE",        "STRANGER", "SETTINGS", "QUARANTINE", "NOSCRIPT",  "LOADING",    "NOAUTH",
        "NOPERM",      "BUSY",     "MISCONF",  "READONLY",   "OOM",       "MASTERDOWN", "MOVED",
        "CLUSTERDOWN", "TRYAGAIN", "ASK",      "NOREPLICAS", "EXECABORT", "AHEAD",      NULL};

    const char *text = reply_text(r, r->values);

    if (strstr(text, "script:") || strstr(text, "Error running script"))
        return false;
    for (int i = 0; codes[i]; i++)
        if (reply_is_error(r, r->values, codes[i]))
            return true;
    return false;
}

/* What people have to hear of: for the next replies to clients (master_reason) and for the log. */
static void note_refusal(struct master *m, const char *words, int64_t now_ms)
{
    snprintf(m->refusal, sizeof m->refusal, "%.79s", words);
    m->refusal_ms = now_ms;
    if (log_limited(&m->refusal_log, now_ms))
        log_warn(m->object, "refuses scripts: %s swallowed=%" PRIu64, words,
                 m->refusal_log.swallowed);
}

static void answer_error(struct master *m, struct master_batch *b, int64_t now_ms)
{
    const struct reply *r = m->reply;
    const struct reply_value *v = r->values;
    char words[REPLY_WORDS_MAX];
    unsigned links = m->links;
    bool stranger = reply_is_error(r, v, "STRANGER");
    bool elsewhere = master_said_elsewhere(m);
    bool changed = stranger || reply_is_error(r, v, "NOSCRIPT") || reply_is_error(r, v, "READONLY");
    bool quarantined = reply_is_error(r, v, "QUARANTINE");
    bool disagrees = reply_is_error(r, v, "SETTINGS");

    m->status.errors++;
    reply_words(words, sizeof words, reply_text(r, v), v->len);
    log_debug(m->object, "script=%s error=%s", script_get(b->script)->name, words);
    if (disagrees) /* what differs, join tells */
        master_disagree(m, "other settings than those of this broker are in force there");
    else if (!changed && !quarantined && !elsewhere && !reply_is_error(r, v, "LATE"))
        note_refusal(m, words, now_ms);
    if (elsewhere)
        master_doubt(m);
    master_answer_calls(m, b, has_not_run(m->reply) ? MASTER_REJECTED : MASTER_UNKNOWN, words,
                        now_ms);
    m->stranger |= stranger;
    if (m->links != links)
        return;
    if (elsewhere && master_is_joined(m))
        master_turned_away(m, words);
    else if (changed && master_is_joined(m))
        master_greet_again(m);
    else if ((quarantined && m->state == MASTER_ACTIVE) || (disagrees && master_is_joined(m)))
        master_join(m);
    else if (reply_is_error(r, r->values, "LATE") && m->state == MASTER_ACTIVE)
        master_probe(m); /* it may be the clock that is ahead, and not the request late */
}

/* ---- what a script can say ---- */

static bool is_int(const struct reply_value *v, int64_t min, int64_t max)
{
    return v->type == REPLY_INTEGER && v->integer >= min && v->integer <= max;
}

static bool is_flat_answer(const struct master_batch *b, const struct reply_value *v)
{
    const struct script_row *row = script_get(b->script);
    int width = row->width;
    const struct master_call *call;

    TAILQ_FOREACH(call, &b->calls, link) {
        bool yes = v->integer == CODE_YES;
        int64_t floor = yes ? call->floor : 0;
        int64_t least = row->gives_token && yes ? !row->floors : PTTL_NO_KEY;
        if (!is_int(v, row->code_min, row->code_max))
            return false;
        if (width > 1 && !is_int(v + 1, least, MASTER_TOKEN_MAX - floor))
            return false;
        if (width > 2 && !is_int(v + 2, 0, row->texts ? MASTER_TOKEN_MAX : INT32_MAX))
            return false;
        for (int j = 3; j < width; j++)
            if (!is_int(v + j, 0, MASTER_TOKEN_MAX))
                return false;
        v += width;
        if (row->texts && (v++)->type != REPLY_TEXT)
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

/* What a reply says beside its items. */
struct heading {
    int64_t time_ms, number;
    int64_t above; /* second integer of all items of a brief one */
    bool brief;    /* the items are left out: see struct script_row */
};

/* Up to max numbers with one blank between them, none beyond what Lua can count exactly; how many
 * there are, 0: it is something else. */
static int read_numbers(const char *text, size_t len, int64_t *out, int max)
{
    const char *p = text, *end = text + len;

    for (int n = 0; n < max; n++) {
        const char *blank = memchr(p, ' ', (size_t)(end - p));
        if (util_parse_int(p, (size_t)((blank ? blank : end) - p), 0, MASTER_TOKEN_MAX, &out[n]) !=
            0)
            return 0;
        if (!blank)
            return n + 1;
        p = blank + 1;
    }
    return 0;
}

static bool read_heading(const struct reply *r, struct heading *out)
{
    const struct reply_value *v = r->values;
    int64_t numbers[4] = {0};

    *out = (struct heading){.brief = v->type == REPLY_TEXT};
    if (out->brief) {
        int n = read_numbers(reply_text(r, v), v->len, numbers, 4);
        out->time_ms = numbers[0] * 1000 + numbers[1] / 1000;
        out->number = numbers[2];
        out->above = numbers[3];
        return n == 3 || (n == 4 && out->above > 0);
    }
    if (v->type != REPLY_ARRAY || v->integer < 2 || v[1].type != REPLY_INTEGER ||
        v[2].type != REPLY_INTEGER)
        return false;
    out->time_ms = v[1].integer;
    out->number = v[2].integer;
    return true;
}

/* Whether the reply is one that the script of this batch can give, and to this very call: one that
 * got lost on the way must not shift the answers of all that follow. */
static bool is_answer(const struct master_batch *b, const struct reply *r, struct heading *h)
{
    const struct script_row *row = script_get(b->script);
    const struct reply_value *v = r->values;
    int64_t n = 2 + (int64_t)b->n_items * (row->width ? row->width + row->texts : 1);

    if (!read_heading(r, h) || h->number != b->number || h->time_ms < 1 || h->time_ms > TIME_MAX_MS)
        return false;
    if (h->brief)
        return row->brief && h->above <= (b->highest > 0 ? MASTER_TOKEN_MAX - b->highest : 0);
    if (v->integer != n)
        return false;
    if (row->width == 0)
        return is_nested_answer(b, v + 3, v + r->count);
    return r->count == 1 + n && is_flat_answer(b, v + 3);
}

/* ---- answers ---- */

static void answer_flat(struct master *m, struct master_batch *b, const struct heading *h,
                        int64_t now_ms)
{
    const struct script_row *row = script_get(b->script);
    int width = row->width;
    const struct reply_value *v = m->reply->values + 3;
    const int64_t same[SCRIPT_WIDTH_MAX] = {CODE_YES, h->above};
    int64_t values[SCRIPT_WIDTH_MAX] = {0};
    struct master_value text = {.is_text = true, .text = ""};
    struct master_answer answer = {
        .result = MASTER_ANSWERED, .values = values, .item_text = &text, .text = ""};
    struct master_call *call;

    while ((call = TAILQ_FIRST(&b->calls)) != NULL) {
        for (int i = 0; i < width; i++)
            values[i] = h->brief ? same[i] : (v++)->integer;
        if (row->texts && !h->brief) {
            text.text = reply_text(m->reply, v);
            text.len = (v++)->len;
        }
        values[1] += values[0] == CODE_YES ? call->floor : 0;
        if (values[1] > m->status.high && script_has_token(b->script, values[0]))
            m->status.high = values[1];
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
}

static void answer_nested(struct master *m, struct master_batch *b, int64_t now_ms)
{
    const struct reply_value *v = m->reply->values + 3;
    struct master_value nested[MASTER_NESTED_MAX];
    struct master_answer answer = {.result = MASTER_ANSWERED, .nested = nested, .text = ""};
    struct master_call *call;

    while ((call = TAILQ_FIRST(&b->calls)) != NULL) {
        answer.n_nested = (int)(v++)->integer;
        for (int i = 0; i < answer.n_nested; i++, v++) {
            bool is_text = v->type != REPLY_INTEGER;
            nested[i] = (struct master_value){.is_text = is_text, .integer = v->integer};
            nested[i].text = v->type == REPLY_TEXT ? reply_text(m->reply, v) : "";
            nested[i].len = v->len;
        }
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
}

static void answer_items(struct master *m, struct master_batch *b, const struct heading *h,
                         int64_t now_ms, int64_t now_us)
{
    if (master_clock_take(m, h->time_ms, b->sent_us, now_us)) {
        master_suspend(m);
        master_answer_calls(m, b, MASTER_UNKNOWN, "its clock has jumped ahead", now_ms);
        return;
    }
    m->status.answered += b->n_items;
    m->n_items -= b->n_items;
    m->in_calls = true;
    if (script_get(b->script)->width)
        answer_flat(m, b, h, now_ms);
    else
        answer_nested(m, b, now_ms);
    m->in_calls = false;
    TAILQ_INSERT_HEAD(&m->spare, b, link);
}

/* ---- replies ---- */

/* Notes how long the server works on an item of late: on those of one call since it had them, and
 * had done with the call before. */
static void note_work(struct master *m, const struct master_batch *b, int64_t now_us)
{
    enum { KEPT = 7, OF = 8 };
    int64_t begun_us = b->sent_us + m->quickest_us;

    if (begun_us < m->answered_us)
        begun_us = m->answered_us;
    m->answered_us = now_us;
    m->work_us = m->work_us * KEPT / OF + (now_us > begun_us ? now_us - begun_us : 0);
    m->work_items = m->work_items * KEPT / OF + b->n_items;
}

void master_on_reply(void *arg, int64_t now_ms, int64_t now_us)
{
    struct master *m = arg;
    struct master_batch *b = TAILQ_FIRST(&m->sent);
    struct heading heading;

    if (now_ms >= m->named_until_ms) { /* what a server that may be replaced says counts nothing */
        master_lose_name(m);
        return;
    }
    m->heard_ms = now_ms;
    m->silent = false;
    if (b->on_reply) {
        m->asked_us = b->sent_us;
        m->asked_script = b->script;
        m->heard_us = now_us;
        TAILQ_REMOVE(&m->sent, b, link);
        TAILQ_INSERT_HEAD(&m->spare, b, link);
        if (b->on_reply(m) != 0)
            link_break(m->link, LINK_NONSENSE, "its reply is none to what was asked");
        return;
    }
    if (m->reply->values[0].type != REPLY_ERROR && !is_answer(b, m->reply, &heading)) {
        char why[80];
        snprintf(why, sizeof why, "its reply is none that the script %s gives",
                 script_get(b->script)->name);
        link_break(m->link, LINK_NONSENSE, why);
        return;
    }
    TAILQ_REMOVE(&m->sent, b, link);
    m->n_before -= b->is_renewal ? 0 : b->n_items;
    if (now_us - b->sent_us < m->quickest_us)
        m->quickest_us = now_us - b->sent_us;
    note_work(m, b, now_us);
    if (m->reply->values[0].type == REPLY_ERROR)
        answer_error(m, b, now_ms);
    else
        answer_items(m, b, &heading, now_ms, now_us);
}
