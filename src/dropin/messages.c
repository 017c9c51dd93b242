/*
 * What goes over the masters is "<broker> <number> <length of the channel> <channel><message>".
 * Each master of the channel's group that can be reached carries it, so it comes several times: by
 * broker and number the first one is known.
 *
 * Invariant: a wait is in `waits` exactly while its `waits` is set.
 */
#include "dropin/messages.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/util.h"
#include "redis/quorum.h"
#include "redis/rounds.h"
#include "session/channel.h"
#include "session/pubsub.h"
#include "stats/stats.h"

/* NUMBERS: of a broker's last messages it is known whether they have come. LINGER_MS: subscriptions
 * that come and go do not make the broker come and go at the masters. */
enum { NUMBERS = 1024, WORD = 64, PEERS_MAX = 256, LINGER_MS = 60000 };

/* Another broker, and which of its messages have come. */
struct peer {
    UT_hash_handle hh; /* in the order in which they were heard last */
    char id[MESSAGES_BROKER_MAX + 1];
    uint64_t last;                 /* the highest number that has come */
    uint64_t come[NUMBERS / WORD]; /* by number modulo NUMBERS: those above last - NUMBERS */
};

struct messages {
    struct messages_setup setup;
    uint64_t n_sent;
    struct peer *peers;
    bool on;                          /* it is to listen */
    bool listens[ROUNDS_MASTERS_MAX]; /* it does, at these masters */
    int64_t wanted_ms;                /* somebody was subscribed then */
    int64_t deadline_ms;              /* of all waits */
    TAILQ_HEAD(, messages_wait) waits;
};

struct messages *messages_new(const struct messages_setup *setup)
{
    struct messages *m = util_alloc(sizeof *m);
    m->setup = *setup;
    TAILQ_INIT(&m->waits);
    return m;
}

void messages_set_listen(struct messages *m, void (*listen)(void *arg, bool on), void *arg)
{
    m->setup.listen = listen;
    m->setup.arg = arg;
}

static void drop_peer(struct messages *m, struct peer *p)
{
    HASH_DEL(m->peers, p); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    free(p);
}

void messages_free(struct messages *m)
{
    if (!m)
        return;
    while (m->peers)
        drop_peer(m, m->peers); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    free(m);
}

/* ---- sending ---- */

int64_t messages_publish(struct messages *m, const char *channel, size_t channel_len,
                         const char *text, size_t len, int64_t now_ms)
{
    struct buf out = {0};
    if (channel_is_own(channel, channel_len))
        return 0;
    buf_printf(&out, "%s %llu %zu ", m->setup.broker, (unsigned long long)++m->n_sent, channel_len);
    buf_append(&out, channel, channel_len);
    buf_append(&out, text, len);
    rounds_publish(m->setup.rounds, channel, channel_len, buf_head(&out), buf_len(&out), now_ms);
    buf_fini(&out);
    return pubsub_publish(channel, channel_len, text, len, now_ms);
}

/* ---- hearing ---- */

/* Returns what is known of this broker; makes room for it. */
static struct peer *peer_of(struct messages *m, const char *id, size_t len)
{
    struct peer *p;
    HASH_FIND(hh, m->peers, id, len, p);
    if (p) {
        HASH_DEL(m->peers, p); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    } else {
        if (HASH_COUNT(m->peers) == PEERS_MAX)
            drop_peer(m, m->peers);
        p = util_alloc(sizeof *p);
        memcpy(p->id, id, len);
    }
    HASH_ADD(hh, m->peers, id[0], len, p); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    return p;
}

static void set_come(struct peer *p, uint64_t number, bool come)
{
    uint64_t bit = UINT64_C(1) << number % WORD, *word = &p->come[number % NUMBERS / WORD];
    *word = come ? *word | bit : *word & ~bit;
}

/* Notes that it has come; false: it has come before, or so long ago that nobody knows. */
static bool is_first_time(struct peer *p, uint64_t number)
{
    if (number > p->last && number - p->last >= NUMBERS) {
        memset(p->come, 0, sizeof p->come);
        p->last = number;
    }
    while (p->last < number)
        set_come(p, ++p->last, false);
    if (p->last - number >= NUMBERS || (p->come[number % NUMBERS / WORD] >> number % WORD & 1))
        return false;
    set_come(p, number, true);
    return true;
}

/* Reads a number that a blank ends, and moves behind that. -1: there is none. */
static int take_message_number(const char **at, const char *end, int64_t *number)
{
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));
    if (!blank || util_parse_int(*at, (size_t)(blank - *at), 0, INT64_MAX, number) != 0)
        return -1;
    *at = blank + 1;
    return 0;
}

void messages_heard(struct messages *m, const char *text, size_t len, int64_t now_ms)
{
    const char *end = text + len, *at = memchr(text, ' ', len);
    size_t id_len = at ? (size_t)(at - text) : 0;
    int64_t number, channel_len;
    if (id_len == 0 || id_len > MESSAGES_BROKER_MAX)
        return;
    at++;
    if (take_message_number(&at, end, &number) != 0 ||
        take_message_number(&at, end, &channel_len) != 0 || channel_len > end - at ||
        channel_is_own(at, (size_t)channel_len))
        return;
    if (strlen(m->setup.broker) == id_len && memcmp(m->setup.broker, text, id_len) == 0)
        return; /* its own subscribers have it */
    if (is_first_time(peer_of(m, text, id_len), (uint64_t)number))
        (void)pubsub_publish(at, (size_t)channel_len, at + channel_len,
                             (size_t)(end - at - channel_len), now_ms);
}

/* ---- listening ---- */

/* In each group a majority of masters tells of messages. */
static bool is_heard(const struct messages *m)
{
    const struct rounds *b = m->setup.rounds;
    for (int first = 0; first < b->n_all; first += b->n) {
        int n = 0;
        for (int i = first; i < first + b->n; i++)
            n += m->listens[i];
        if (n < quorum_need(b->n))
            return false;
    }
    return b->n_all > 0;
}

static void set_on(struct messages *m, bool on)
{
    m->on = on;
    if (m->setup.listen)
        m->setup.listen(m->setup.arg, on);
}

static void end_waits(struct messages *m, int64_t now_ms)
{
    struct messages_wait *w;
    while ((w = TAILQ_FIRST(&m->waits))) {
        messages_stop_waiting(m, w);
        w->on_ready(w, now_ms);
    }
}

void messages_listens(struct messages *m, int i, bool listens, int64_t now_ms)
{
    m->listens[i] = listens;
    if (is_heard(m))
        end_waits(m, now_ms);
}

bool messages_want(struct messages *m, int64_t now_ms)
{
    m->wanted_ms = now_ms;
    if (!m->on)
        set_on(m, true);
    return is_heard(m) || !m->setup.listen;
}

void messages_wait(struct messages *m, struct messages_wait *w, int64_t now_ms)
{
    if (TAILQ_EMPTY(&m->waits))
        m->deadline_ms = now_ms + m->setup.rounds->request_timeout_ms;
    TAILQ_INSERT_TAIL(&m->waits, w, next);
    w->waits = true;
}

void messages_stop_waiting(struct messages *m, struct messages_wait *w)
{
    if (w->waits)
        TAILQ_REMOVE(&m->waits, w, next);
    w->waits = false;
}

void messages_look(struct messages *m, int64_t now_ms)
{
    if (now_ms >= m->deadline_ms)
        end_waits(m, now_ms);
    if (pubsub_count_foreign() > 0 || !TAILQ_EMPTY(&m->waits))
        m->wanted_ms = now_ms;
    else if (m->on && now_ms - m->wanted_ms >= LINGER_MS)
        set_on(m, false);
}
