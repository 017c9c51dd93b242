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
 */
#include "pubsub.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "util.h"

/* The names come from strangers: keyed hash. */
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)util_hash((key), (len)))
#define uthash_fatal(text) util_die("pubsub: %s", (text))
#include <uthash.h>

struct entry {
    UT_hash_handle hh; /* by name */
    char *name;
    size_t len;
    uint32_t n_listeners;
    TAILQ_HEAD(, subscription) listeners;
};

struct subscription {
    TAILQ_ENTRY(subscription) of_session, of_entry;
    struct session *session;
    struct entry *entry;
    bool is_pattern;
};

static struct entry *channels, *patterns;
static uint32_t n_channels, n_patterns;

static struct entry *find(bool is_pattern, const char *name, size_t len)
{
    struct entry *e;

    HASH_FIND(hh, is_pattern ? patterns : channels, name, len, e);
    return e;
}

static struct entry *entry_new(bool is_pattern, const char *name, size_t len)
{
    struct entry *e = util_alloc(sizeof(*e));

    e->name = util_memdup(name, len);
    e->len = len;
    TAILQ_INIT(&e->listeners);
    if (is_pattern) {
        HASH_ADD_KEYPTR(hh, patterns, e->name, e->len, e);
        n_patterns++;
    } else {
        HASH_ADD_KEYPTR(hh, channels, e->name, e->len, e);
        n_channels++;
    }
    return e;
}

static void entry_free(bool is_pattern, struct entry *e)
{
    if (is_pattern) {
        HASH_DEL(patterns, e); /* NOLINT(clang-analyzer-core.NullDereference) */
        n_patterns--;
    } else {
        HASH_DEL(channels, e); /* NOLINT(clang-analyzer-core.NullDereference) */
        n_channels--;
    }
    free(e->name);
    free(e);
}

/* The subscription of this session to this name. Walks the shorter of the two lists it would be on.
 */
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

    TAILQ_REMOVE(&s->subscriptions, sub, of_session);
    TAILQ_REMOVE(&e->listeners, sub, of_entry);
    s->n_subscriptions--;
    if (--e->n_listeners == 0)
        entry_free(sub->is_pattern, e);
    free(sub);
}

bool pubsub_is_subscribed(const struct session *s, const char *name, size_t len, bool is_pattern)
{
    struct entry *e = find(is_pattern, name, len);

    return e != NULL && subscription_find(s, e) != NULL;
}

uint32_t pubsub_subscribe(struct session *s, const char *name, size_t len, bool is_pattern)
{
    struct entry *e = find(is_pattern, name, len);

    if (e != NULL && subscription_find(s, e) != NULL)
        return s->n_subscriptions;
    if (e == NULL)
        e = entry_new(is_pattern, name, len);

    struct subscription *sub = util_alloc(sizeof(*sub));
    sub->session = s;
    sub->entry = e;
    sub->is_pattern = is_pattern;
    TAILQ_INSERT_TAIL(&s->subscriptions, sub, of_session);
    TAILQ_INSERT_TAIL(&e->listeners, sub, of_entry);
    e->n_listeners++;
    return ++s->n_subscriptions;
}

uint32_t pubsub_unsubscribe(struct session *s, const char *name, size_t len, bool is_pattern)
{
    struct entry *e = find(is_pattern, name, len);
    struct subscription *sub = e != NULL ? subscription_find(s, e) : NULL;

    if (sub != NULL)
        subscription_free(sub);
    return s->n_subscriptions;
}

static struct subscription *next_of_kind(struct subscription *sub, bool is_pattern)
{
    while (sub != NULL && sub->is_pattern != is_pattern)
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
    struct subscription *sub;
    uint32_t n = 0;

    TAILQ_FOREACH(sub, &s->subscriptions, of_session)
        n += sub->is_pattern == is_pattern;
    return n;
}

/* ---- messages ---- */

bool pubsub_wanted(const char *channel, size_t len)
{
    if (channels != NULL && find(false, channel, len) != NULL)
        return true;
    for (struct entry *e = patterns; e != NULL; e = e->hh.next)
        if (util_match(e->name, e->len, channel, len))
            return true;
    return false;
}

struct message {
    const char *channel, *text;
    size_t channel_len, text_len;
    int64_t now_ms;
};

static uint32_t send_to_all(struct entry *e, bool is_pattern, const struct message *m)
{
    struct subscription *sub;

    TAILQ_FOREACH(sub, &e->listeners, of_entry) {
        struct resp_writer w = session_push(sub->session, m->now_ms);
        resp_push(&w, is_pattern ? 4 : 3);
        resp_str(&w, is_pattern ? "pmessage" : "message");
        if (is_pattern)
            resp_bulk(&w, e->name, e->len);
        resp_bulk(&w, m->channel, m->channel_len);
        resp_bulk(&w, m->text, m->text_len);
        session_push_end(sub->session);
    }
    return e->n_listeners;
}

uint32_t pubsub_publish(const char *channel, size_t channel_len, const char *text, size_t text_len,
                        int64_t now_ms)
{
    struct message m = {channel, text, channel_len, text_len, now_ms};
    struct entry *e = find(false, channel, channel_len);
    uint32_t n = e != NULL ? send_to_all(e, false, &m) : 0;

    for (e = patterns; e != NULL; e = e->hh.next)
        if (util_match(e->name, e->len, channel, channel_len))
            n += send_to_all(e, true, &m);
    return n;
}

/* ---- figures ---- */

void pubsub_each_channel(void (*each)(void *arg, const char *name, size_t len, uint32_t n_sessions),
                         void *arg)
{
    for (struct entry *e = channels; e != NULL; e = e->hh.next)
        each(arg, e->name, e->len, e->n_listeners);
}

uint32_t pubsub_count_channels(void)
{
    return n_channels;
}

uint32_t pubsub_count_channel(const char *name, size_t len)
{
    struct entry *e = find(false, name, len);

    return e != NULL ? e->n_listeners : 0;
}

uint32_t pubsub_count_patterns(void)
{
    return n_patterns;
}
