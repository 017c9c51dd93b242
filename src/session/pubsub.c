/*
 * Who listens to which channel or pattern.
 *
 * Owns two tables by name, of channels and of patterns, and one subscription for each pair of
 * session and entry. A subscription is on two lists: that of its session and that of its entry. An
 * entry lives as long as somebody is subscribed. It does not know what a message means, nor
 * sockets.
 *
 *     session->subscriptions --- subscription --- entry->listeners
 *
 * An entry is a channel or a pattern.
 *
 * What one turn of the loop does for messages is bounded by a budget, in steps of some 100
 * instructions: a message is told at once while there is some left, and else waits in the outbox,
 * and so do those behind it. `at` is how far the first message that is not through has come.
 * Whatever is told may publish again: that waits, too.
 *
 * Invariants: `at` refers to an entry and a subscription that are still to be told, or to none; who
 * has come after a message does not get it.
 */
#include "session/pubsub.h"

#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/util.h"
#include "session/channel.h"
#include "session/session.h"
#include "stats/stats.h"

/* The names come from strangers: keyed hash. */
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)util_hash((key), (len)))
#define uthash_fatal(text) util_die("pubsub: %s", (text))
#include <uthash.h>

/* Steps of one turn, and what takes how many. TELL_STEPS: to make the message for one listener and
 * write it to its socket, and one more for each TELL_BYTES of it. */
enum { TURN_STEPS = 24000, TELL_STEPS = 40, TELL_BYTES = 256, MATCH_BYTES = 8 };
enum { OUTBOX_MAX = 16384 };

struct entry {
    UT_hash_handle hh; /* by name */
    struct glob *glob; /* of a pattern; NULL: a channel */
    char *name;
    size_t len;
    uint32_t n_listeners;
    TAILQ_HEAD(, subscription) listeners;
};

struct subscription {
    TAILQ_ENTRY(subscription) of_session, of_entry;
    struct session *session;
    struct entry *entry;
    uint64_t since; /* the last message before it */
};

struct message {
    TAILQ_ENTRY(message) link; /* in the outbox, else unused */
    const char *channel, *text;
    size_t channel_len, text_len;
    uint64_t number;
};

static struct entry *tables[2]; /* the channels, the patterns */
static uint32_t n_foreign;      /* entries of both that are not holdfast's own */

static TAILQ_HEAD(, message) outbox = TAILQ_HEAD_INITIALIZER(outbox);
static uint32_t n_outbox;
static uint64_t last_message;
static int steps_left = TURN_STEPS;
static bool telling; /* a message is being sent, which may cause others */

/* How far the message under way has come. */
static struct {
    struct entry *entry;      /* the one to look at; NULL: no more of its kind */
    struct subscription *sub; /* the next listener of it */
    bool fits;                /* its listeners get the message: one after the other */
    bool in_patterns;         /* the listeners of the channel itself have it */
} at;

static struct entry *entry_find(bool is_pattern, const char *name, size_t len)
{
    struct entry *e;

    HASH_FIND(hh, tables[is_pattern], name, len, e);
    return e;
}

static struct entry *entry_new(bool is_pattern, const char *name, size_t len)
{
    struct entry *e = util_alloc(sizeof(*e));

    e->name = util_memdup(name, len);
    e->len = len;
    e->glob = is_pattern ? glob_new(name, len) : NULL;
    TAILQ_INIT(&e->listeners);
    HASH_ADD_KEYPTR(hh, tables[is_pattern], e->name, e->len, e);
    n_foreign += !channel_is_own(name, len);
    return e;
}

static void set_next_entry(struct entry *e)
{
    at.entry = e;
    at.sub = NULL;
    at.fits = false;
}

static void entry_free(struct entry *e)
{
    if (at.entry == e)
        set_next_entry(e->glob != NULL ? e->hh.next : NULL);
    HASH_DEL(tables[e->glob != NULL], e); /* NOLINT(clang-analyzer-core.NullDereference) */
    n_foreign -= !channel_is_own(e->name, e->len);
    glob_free(e->glob);
    free(e->name);
    free(e);
}

/* Returns the subscription of this session to this name, or NULL. Walks the shorter of the two
 * lists that it would be on. */
static struct subscription *subscription_find(const struct session *s, struct entry *e)
{
    struct subscription *sub;

    if (e->n_listeners < s->n_subscriptions) {
        TAILQ_FOREACH(sub, &e->listeners, of_entry)
            if (sub->session == s)
                return sub;
    } else {
        TAILQ_FOREACH(sub, &s->subscriptions, of_session)
            if (sub->entry == e)
                return sub;
    }
    return NULL;
}

static void subscription_free(struct subscription *sub)
{
    struct session *s = sub->session;
    struct entry *e = sub->entry;

    if (at.sub == sub)
        at.sub = TAILQ_NEXT(sub, of_entry);
    TAILQ_REMOVE(&s->subscriptions, sub, of_session);
    TAILQ_REMOVE(&e->listeners, sub, of_entry);
    s->n_subscriptions--;
    s->n_patterns -= e->glob != NULL;
    if (--e->n_listeners == 0)
        entry_free(e);
    free(sub);
}

bool pubsub_has_pattern(const char *pattern, size_t len)
{
    return entry_find(true, pattern, len) != NULL;
}

bool pubsub_is_subscribed(const struct session *s, const char *name, size_t len, bool is_pattern)
{
    struct entry *e = entry_find(is_pattern, name, len);

    return e != NULL && subscription_find(s, e) != NULL;
}

uint32_t pubsub_subscribe(struct session *s, const char *name, size_t len, bool is_pattern)
{
    struct entry *e = entry_find(is_pattern, name, len);

    if (e != NULL && subscription_find(s, e) != NULL)
        return s->n_subscriptions;
    if (e == NULL)
        e = entry_new(is_pattern, name, len);

    struct subscription *sub = util_alloc(sizeof(*sub));
    sub->session = s;
    sub->entry = e;
    sub->since = last_message;
    TAILQ_INSERT_TAIL(&s->subscriptions, sub, of_session);
    TAILQ_INSERT_TAIL(&e->listeners, sub, of_entry);
    e->n_listeners++;
    s->n_patterns += is_pattern;
    return ++s->n_subscriptions;
}

uint32_t pubsub_unsubscribe(struct session *s, const char *name, size_t len, bool is_pattern)
{
    struct entry *e = entry_find(is_pattern, name, len);
    struct subscription *sub = e != NULL ? subscription_find(s, e) : NULL;

    if (sub != NULL)
        subscription_free(sub);
    return s->n_subscriptions;
}

static struct subscription *next_of_kind(struct subscription *sub, bool is_pattern)
{
    while (sub != NULL && (sub->entry->glob != NULL) != is_pattern)
        sub = TAILQ_NEXT(sub, of_session);
    return sub;
}

void pubsub_unsubscribe_all(struct session *s, bool is_pattern,
                            void (*each)(void *arg, const char *name, size_t len, uint32_t left),
                            void *arg)
{
    struct subscription *sub = next_of_kind(TAILQ_FIRST(&s->subscriptions), is_pattern);

    while (sub != NULL) {
        struct subscription *next = next_of_kind(TAILQ_NEXT(sub, of_session), is_pattern);
        if (each != NULL)
            each(arg, sub->entry->name, sub->entry->len, s->n_subscriptions - 1);
        subscription_free(sub);
        sub = next;
    }
}

void pubsub_leave(struct session *s)
{
    struct subscription *sub = TAILQ_FIRST(&s->subscriptions), *next;

    for (; sub != NULL; sub = next) {
        next = TAILQ_NEXT(sub, of_session);
        subscription_free(sub);
    }
}

uint32_t pubsub_count_session(const struct session *s, bool is_pattern)
{
    return is_pattern ? s->n_patterns : s->n_subscriptions - s->n_patterns;
}

/* ---- messages ---- */

bool pubsub_wanted(const char *channel, size_t len)
{
    return tables[true] != NULL ||
           (tables[false] != NULL && entry_find(false, channel, len) != NULL);
}

bool pubsub_is_heard(const char *channel, size_t len)
{
    const struct entry *e;

    if (n_outbox == OUTBOX_MAX)
        return false;
    if (entry_find(false, channel, len) != NULL)
        return true;
    for (e = tables[true]; e != NULL; e = e->hh.next) {
        steps_left -= 1 + (int)glob_steps(e->glob, len) / MATCH_BYTES;
        if (glob_match(e->glob, channel, len))
            return true;
    }
    return false;
}

static void tell_listener(struct subscription *sub, const struct message *m, int64_t now_ms)
{
    const struct entry *e = sub->entry;
    bool is_pattern = e->glob != NULL;
    struct resp_writer w = session_push(sub->session, now_ms);

    resp_push(&w, is_pattern ? 4 : 3);
    resp_str(&w, is_pattern ? "pmessage" : "message");
    if (is_pattern)
        resp_bulk(&w, e->name, e->len);
    resp_bulk(&w, m->channel, m->channel_len);
    resp_bulk(&w, m->text, m->text_len);
    session_push_end(sub->session);
    stats.messages_sent++;
}

/* Sends the message to the listeners of the entry, as far as the steps go; returns to how many. */
static uint32_t tell_listeners(const struct message *m, int64_t now_ms)
{
    struct subscription *sub;
    uint32_t n = 0;

    while ((sub = at.sub) != NULL && steps_left > 0) {
        at.sub = TAILQ_NEXT(sub, of_entry);
        steps_left -= TELL_STEPS + (int)(m->text_len / TELL_BYTES);
        if (sub->since >= m->number)
            continue;
        tell_listener(sub, m, now_ms);
        n++;
    }
    return n;
}

/* Begins with the listeners of the entry, which is a channel, or a pattern that fits. */
static void look_closer(const struct message *m)
{
    struct entry *e = at.entry;

    if (e->glob != NULL) {
        steps_left -= 1 + (int)glob_steps(e->glob, m->channel_len) / MATCH_BYTES;
        if (!glob_match(e->glob, m->channel, m->channel_len)) {
            set_next_entry(e->hh.next);
            return;
        }
    }
    at.fits = true;
    at.sub = TAILQ_FIRST(&e->listeners);
}

static void begin_message(const struct message *m)
{
    set_next_entry(entry_find(false, m->channel, m->channel_len));
    at.in_patterns = false;
}

/* Goes on with the message that is under way. Returns true when nobody is left to get it. */
static bool tell_some(const struct message *m, uint32_t *n_told, int64_t now_ms)
{
    while (at.entry != NULL || !at.in_patterns) {
        if (steps_left <= 0)
            return false;
        if (at.entry == NULL) {
            at.in_patterns = true;
            set_next_entry(tables[true]);
            continue;
        }
        if (!at.fits) {
            look_closer(m);
            continue;
        }
        *n_told += tell_listeners(m, now_ms);
        if (at.sub == NULL && at.entry != NULL && at.fits)
            set_next_entry(at.in_patterns ? at.entry->hh.next : NULL);
    }
    return true;
}

/* Puts a copy of the message into the outbox, before or behind all others. */
static void post(const struct message *m, bool first)
{
    struct message *copy = util_alloc(sizeof *copy + m->channel_len + m->text_len);
    char *bytes = (char *)(copy + 1);

    *copy = *m;
    copy->channel = memcpy(bytes, m->channel, m->channel_len);
    copy->text = memcpy(bytes + m->channel_len, m->text, m->text_len);
    n_outbox++;
    if (first)
        TAILQ_INSERT_HEAD(&outbox, copy, link);
    else
        TAILQ_INSERT_TAIL(&outbox, copy, link);
}

/* Sends from the outbox, as far as the steps go; `at` is about the first message. */
static void send_outbox(int64_t now_ms)
{
    struct message *m, *next;
    uint32_t ignored = 0;

    telling = true;
    for (m = TAILQ_FIRST(&outbox); m != NULL && tell_some(m, &ignored, now_ms); m = next) {
        next = TAILQ_NEXT(m, link);
        TAILQ_REMOVE(&outbox, m, link);
        n_outbox--;
        free(m);
        if (next != NULL)
            begin_message(next);
    }
    telling = false;
}

/* Sends a message at once, as none waits. Returns to how many. */
static uint32_t send_at_once(const struct message *m, int64_t now_ms)
{
    uint32_t n_told = 0;

    telling = true;
    begin_message(m);
    bool through = tell_some(m, &n_told, now_ms);
    telling = false;
    if (!through)
        post(m, true);
    else if (!TAILQ_EMPTY(&outbox)) { /* published meanwhile */
        begin_message(TAILQ_FIRST(&outbox));
        send_outbox(now_ms);
    }
    return n_told;
}

uint32_t pubsub_publish(const char *channel, size_t channel_len, const char *text, size_t text_len,
                        int64_t now_ms)
{
    const struct message m = {.channel = channel,
                              .text = text,
                              .channel_len = channel_len,
                              .text_len = text_len,
                              .number = ++last_message};

    if (!telling && n_outbox == 0)
        return send_at_once(&m, now_ms);
    if (n_outbox == OUTBOX_MAX)
        stats.messages_dropped++;
    else
        post(&m, false);
    return 0;
}

void pubsub_turn(int64_t now_ms)
{
    if (n_outbox > 0)
        send_outbox(now_ms);
    steps_left = TURN_STEPS;
}

bool pubsub_waits(void)
{
    return n_outbox > 0;
}

/* ---- figures ---- */

void pubsub_each_channel(bool (*each)(void *arg, const char *name, size_t len, uint32_t n_sessions),
                         void *arg)
{
    for (struct entry *e = tables[false]; e != NULL; e = e->hh.next)
        if (!each(arg, e->name, e->len, e->n_listeners))
            return;
}

uint32_t pubsub_count_channels(void)
{
    return HASH_COUNT(tables[false]);
}

uint32_t pubsub_count_channel(const char *name, size_t len)
{
    struct entry *e = entry_find(false, name, len);

    return e != NULL ? e->n_listeners : 0;
}

uint32_t pubsub_count_patterns(void)
{
    return HASH_COUNT(tables[true]);
}

uint32_t pubsub_count_foreign(void)
{
    return n_foreign;
}
