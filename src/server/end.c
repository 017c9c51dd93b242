/*
 * Draining, and the last things before the parts are freed.
 *
 * Invariant: a watched lock of a client that is connected is never released by us while the broker
 * goes down. Its holder releases it, or it lapses.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/systemd.h"
#include "base/util.h"
#include "lock/view.h"
#include "server/private.h"

enum { DRAIN_LOOK_MS = 50 };

/* ---- drain ---- */

/* Locks whose holders rely on being renewed. */
static uint32_t n_relied_on(const struct server *s)
{
    return view_levels(&s->broker).n_relied_on;
}

void server_stop(struct server *s, bool now)
{
    int64_t now_ms = clock_ms();
    char limit[48];

    if (s->phase == SERVER_ENDS) /* the clients may be gone */
        return;
    uint32_t held = n_relied_on(s);
    if (now || s->phase != SERVER_RUNS) {
        log_info("server", "stopping at once, watched locks left to lapse: %" PRIu32, held);
        s->phase = SERVER_ENDS;
        return;
    }
    util_format_duration(limit, sizeof limit, s->conf.drain_timeout_ms);
    log_info("server", "draining: %" PRIu32 " watched lock%s, at most %s; again to stop at once",
             held, util_plural(held), limit);
    s->phase = SERVER_DRAINS;
    s->drain_end_ms = now_ms + s->conf.drain_timeout_ms;
    s->drain_look_ms = now_ms;
    systemd_notify("STOPPING=1");
    broker_drain(&s->broker);
    server_judge_peers(s, now_ms);
    server_update_status(s, now_ms);
}

/* Nobody holds anything any more; replies that still wait for a verdict get the time that a verdict
 * may take. */
void server_look_at_drain(struct server *s, int64_t now_ms)
{
    uint32_t held = n_relied_on(s);

    s->drain_look_ms = now_ms + DRAIN_LOOK_MS;
    if (held > 0)
        s->drained_ms = 0;
    else if (!s->drained_ms)
        s->drained_ms = now_ms;
    bool quiet =
        !view_is_asking(&s->broker) || now_ms - s->drained_ms > s->conf.lock.request_timeout_ms;
    if (held == 0 && quiet) {
        log_info("server", "drained, stopping");
        s->phase = SERVER_ENDS;
    } else if (now_ms >= s->drain_end_ms) {
        log_warn("server", "drain_timeout is over, stopping; watched locks left to lapse: %" PRIu32,
                 held);
        s->phase = SERVER_ENDS;
    }
}

/* ---- the end ---- */

/* Releases and undos get the chance to arrive; what a master does not take now lapses with its
 * lease. */
void server_send_owed(struct server *s)
{
    int64_t now_ms = clock_ms(), end_ms = now_ms + s->conf.lock.request_timeout_ms;

    broker_turn(&s->broker, now_ms);
    while (!view_is_done(&s->broker, now_ms) && now_ms < end_ms) {
        server_turn(s, end_ms);
        now_ms = clock_ms();
    }
}

/* The locks of clients that are connected now are never released from here: nobody has told their
 * holders in time, and a closed connection says nothing to somebody who is at work. They lapse, or
 * are taken back at another broker. */
void server_end_clients(struct server *s)
{
    struct conf_lock conf = s->conf.lock;

    conf.on_disconnect = CONF_DISCONNECT_EXPIRE;
    broker_configure(&s->broker, &conf);
    client_fini(s->clients);
    s->clients = NULL;
}

static bool has_left(const struct server *s, int64_t now_ms)
{
    for (int i = 0; i < view_n_masters(&s->broker); i++) {
        const struct master_status *m = view_master(&s->broker, i, now_ms).status;
        if (master_state_is_joined(m->state) && !m->has_left)
            return false;
    }
    return true;
}

void server_leave(struct server *s)
{
    int64_t now_ms = clock_ms(), end_ms = now_ms + s->conf.lock.request_timeout_ms;
    struct view_levels levels = view_levels(&s->broker);

    if (!s->brokers || view_is_asking(&s->broker))
        return;
    rollcall_leave(&s->quarantine.roll, levels.n_holds + levels.n_drop_in > 0, now_ms);
    while (!has_left(s, now_ms) && now_ms < end_ms) {
        server_turn(s, end_ms);
        now_ms = clock_ms();
    }
}
