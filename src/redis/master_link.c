/*
 * The link to one master: connecting, looking after it while it is there, and coming back.
 *
 *   retry ----> stream_connect --on_open--> master_greet ... ACTIVE or QUARANTINE
 *     ^                 \                        |
 *     +--- back-off -----+---- master_drop, master_refuse
 *
 * Owns the stream and the timers `retry` and `tick`; what is said over the link is not known here.
 * A REFUSED master is looked at again by a new connection, and stays REFUSED until that one is let
 * in.
 *
 * Invariant: `retry` is set exactly while there is no link, `tick` while there is one.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "redis/cluster.h"
#include "redis/master_private.h"

enum {
    BACKOFF_FIRST_MS = 50,
    ELSEWHERE_MS = 500, /* a new keeper is tried at once */
    BACKOFF_MAX_MS = 2000,
    RESTART_MS = 30000, /* so long after the end of a good link it may be back at any moment */
    REFUSED_FIRST_MS = 1000,
    REFUSED_MAX_MS = 10000,
    SETTLED_MS = 5000, /* a link that lived so long was a good one */
    PROBE_MS = 500,    /* well below what a quarantine is longer than max_lease: master_life.c */
    REVIEW_MS = 5000,
    NAMELESS_MS = 250,
    KEEPALIVE_MS = 15000
};

static void set_link_timer(struct event *timer, int64_t ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    event_add(timer, &tv);
}

/* ---- the link ends ---- */

/* Returns a time between half and all of `ms`, so that brokers do not come in step. */
static int64_t with_jitter(int64_t ms)
{
    uint32_t r;
    util_random(&r, sizeof r);
    return ms / 2 + r % (ms / 2 + 1);
}

static int64_t doubled(int64_t *backoff_ms, int64_t first_ms, int64_t max_ms)
{
    *backoff_ms = *backoff_ms ? *backoff_ms * 2 : first_ms;
    if (*backoff_ms > max_ms)
        *backoff_ms = max_ms;
    return with_jitter(*backoff_ms);
}

/* Nobody gets a lock until a lone master that has restarted is seen: it is tried often at first. */
static int64_t backoff_max_ms(const struct master *m, int64_t now_ms)
{
    return now_ms - m->lost_ms < RESTART_MS ? BACKOFF_FIRST_MS : BACKOFF_MAX_MS;
}

void master_link_close(struct master *m)
{
    if (master_is_joined(m))
        place_broke(&m->place, clock_ms());
    m->links++;
    link_leave(m->link, &m->seat);
    event_del(&m->tick);
    if (m->joined)
        m->old_client_id = m->link->client_id;
    m->joined = m->probing = false;
    snprintf(m->loss, sizeof m->loss, "%s", m->error);
    master_bury(m);
    if (!TAILQ_EMPTY(&m->dead))
        event_active(&m->turn, EV_TIMEOUT, 0);
}

/* Logs the error of the link, unless the last one logged was the same: not one line a try. */
static void say_trouble(struct master *m, const char *text)
{
    if (strcmp(m->logged, m->error) == 0)
        return;
    log_warn(m->object, "%s: %s", text, m->error);
    strcpy(m->logged, m->error);
}

void master_drop(struct master *m, const char *fmt, ...)
{
    bool was_in = master_is_joined(m);
    int64_t now_ms = clock_ms();
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(m->error, sizeof m->error, fmt, ap);
    va_end(ap);
    m->silent = false;
    if (m->opened_ms && now_ms - m->opened_ms > SETTLED_MS) {
        m->down_backoff_ms = 0;
        m->lost_ms = now_ms;
    }
    say_trouble(m, was_in ? "link lost" : "cannot be used");
    m->status.reconnects += was_in;
    master_link_close(m);
    master_move(m, MASTER_DOWN);
    set_link_timer(&m->retry,
                   doubled(&m->down_backoff_ms, BACKOFF_FIRST_MS, backoff_max_ms(m, now_ms)));
}

void master_turned_away(struct master *m, const char *words)
{
    master_doubt(m);
    master_drop(m, "it does not serve this partition: %s", words);
    set_link_timer(&m->retry, with_jitter(ELSEWHERE_MS));
}

int master_refuse(struct master *m, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(m->error, sizeof m->error, fmt, ap);
    va_end(ap);
    say_trouble(m, "refused");
    master_link_close(m);
    if (m->state != MASTER_REFUSED)
        master_move(m, MASTER_REFUSED);
    set_link_timer(&m->retry, doubled(&m->refused_backoff_ms, REFUSED_FIRST_MS, REFUSED_MAX_MS));
    return -1;
}

/* ---- the link begins ---- */

static int64_t connect_timeout_ms(const struct master *m)
{
    int64_t ms = 4 * m->setup.request_timeout_ms;
    return ms < 1000 ? 1000 : ms;
}

static void on_open(void *arg)
{
    struct master *m = arg;
    struct stream_keepalive k = {.idle_ms = KEEPALIVE_MS, .timeout_ms = master_patience_ms(m)};

    stream_keepalive(&m->link->stream, &k);
    m->opened_ms = m->heard_ms = clock_ms();
    if (m->state == MASTER_CONNECTING)
        master_move(m, MASTER_GREETING);
    master_greet(m);
}

static void on_end(void *arg, enum link_end end, const char *text)
{
    struct master *m = arg;

    m->status.errors += end == LINK_NONSENSE;
    master_doubt(m);
    if (end == LINK_SILENT)
        m->status.timeouts += m->n_items;
    master_drop(m, "%s", text);
    m->silent = end == LINK_SILENT;
}

static const struct link_events link_events = {
    .on_open = on_open,
    .on_reply = master_on_reply,
    .on_end = on_end,
};

/* Says what is missing once all who could name it had the time to say a word. */
static void wait_for_name(struct master *m)
{
    set_link_timer(&m->retry, NAMELESS_MS);
    if (m->sentinels ? !sentinels_have_spoken(m->sentinels) : !cluster_has_spoken(m->setup.cluster))
        return;
    snprintf(m->error, sizeof m->error, "no majority of %s names a server", master_finders(m));
    say_trouble(m, "cannot be used");
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct master *m = arg;

    (void)fd, (void)what;
    if (m->seat.taken) /* it is being tried (ADOPT) */
        return;
    if (!m->host) {
        wait_for_name(m);
        return;
    }
    m->started_ms = m->ticked_ms = clock_ms();
    m->opened_ms = 0;
    if (m->state == MASTER_DOWN)
        master_move(m, MASTER_CONNECTING);
    set_link_timer(&m->tick, MASTER_TICK_MS);
    if (m->secure && !m->tls) {
        master_drop(m, "its files for TLS are not good");
        return;
    }
    link_connect(m->link, &m->seat, m->setup.dns, m->host, m->is_unix ? 0 : m->port,
                 (size_t)m->setup.max_reply);
    if (!m->link->is_shared) /* else it may be there already, and has one address */
        stream_begin_behind(&m->link->stream, m->passed_over);
}

static void look_after(struct master *m, int64_t now_ms)
{
    const struct master_batch *oldest = TAILQ_FIRST(&m->sent);
    bool is_in = master_is_joined(m);
    char words[64];

    if (now_ms >= m->named_until_ms) {
        master_lose_name(m);
    } else if (!link_is_open(m->link)) {
        if (now_ms - m->started_ms <= connect_timeout_ms(m))
            return;
        snprintf(words, sizeof words, "no connection within %" PRId64 " ms", connect_timeout_ms(m));
        link_break(m->link, LINK_LOST, words);
    } else if (oldest && now_ms - oldest->sent_us / 1000 > master_patience_ms(m)) {
        link_break(m->link, LINK_SILENT, "it does not answer");
    } else if (m->state == MASTER_JOINING && m->waited_ms) {
        if (TAILQ_EMPTY(&m->sent))
            master_wait_for_others(m);
    } else if (is_in && !m->probing && now_ms - m->probed_ms >= PROBE_MS) {
        m->probed_ms = now_ms;
        master_probe(m);
    } else if (is_in && now_ms - m->judged_ms > REVIEW_MS) {
        m->judged_ms = now_ms;
        master_review(m);
    }
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct master *m = arg;
    int64_t now_ms = clock_ms();
    bool late = now_ms - m->ticked_ms > 5 * MASTER_TICK_MS;

    (void)fd, (void)what;
    m->ticked_ms = now_ms;
    set_link_timer(&m->tick, MASTER_TICK_MS);
    if (!late) /* else this process stood still: replies that have come since are read first */
        look_after(m, now_ms);
}

void master_use_link(struct master *m, struct link *l)
{
    m->link = l;
    m->reply = &l->reply;
}

void master_link_init(struct master *m)
{
    m->own_link = link_new(m->setup.base, false);
    m->seat = (struct link_seat){.events = &link_events, .arg = m};
    master_use_link(m, m->own_link);
    event_assign(&m->retry, m->setup.base, -1, 0, on_retry, m);
    event_assign(&m->tick, m->setup.base, -1, 0, on_tick, m);
}

void master_start(struct master *m)
{
    m->lost_ms = clock_ms();
    set_link_timer(&m->retry, 0);
}
