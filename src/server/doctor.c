/*
 * Looks at the masters. They are connected to and judged by the module that the broker uses, which
 * here stops short of joining; doctor_findings.c tells what was seen.
 *
 * Invariant: what is seen first of a master counts, it may try again meanwhile.
 */
#include <event2/dns.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "redis/master.h"
#include "server/doctor_private.h"
#include "server/private.h"

enum { LOOK_EVERY_MS = 20, LOOK_MAX_MS = 10000, LOOK_REPLY_MAX = 1 << 20, LOOK_IN_FLIGHT = 1024 };

struct looking {
    struct event_base *base;
    int64_t end_ms;
    size_t n;
    struct doctor_seen *seen;
};

static void on_look(void *arg, struct master *m, const struct master_look *look)
{
    struct looking *l = arg;
    struct doctor_seen *seen = &l->seen[master_index(m)];
    int64_t now_ms = clock_ms();

    if (seen->error[0])
        return;
    seen->good = true;
    seen->look = *look;
    seen->status = *master_status(m, now_ms);
    seen->clock_offset_ms = seen->status.clock_offset_ms - (clock_wall_ms() - now_ms);
}

/* Takes the errors of masters; returns true when there is nothing more to wait for. */
static bool take_errors(struct looking *l, int64_t now_ms)
{
    bool done = true;

    for (size_t i = 0; i < l->n; i++) {
        struct doctor_seen *seen = &l->seen[i];
        if (seen->good || seen->error[0])
            continue;
        const char *error = master_status(seen->master, now_ms)->error;
        if (!*error && now_ms >= l->end_ms)
            error = "it does not answer";
        done = done && *error;
        snprintf(seen->error, sizeof seen->error, "%s", error);
        seen->status = *master_status(seen->master, now_ms);
    }
    return done;
}

static void on_look_tick(evutil_socket_t fd, short what, void *arg)
{
    struct looking *l = arg;

    (void)fd, (void)what;
    if (take_errors(l, clock_ms()))
        event_base_loopbreak(l->base);
}

static void wait_for_all(struct looking *l)
{
    static const struct timeval every = {.tv_usec = LOOK_EVERY_MS * 1000};
    struct event *tick = event_new(l->base, -1, EV_PERSIST, on_look_tick, l);

    if (!tick)
        util_die("cannot make an event");
    event_add(tick, &every);
    l->end_ms = clock_ms() + LOOK_MAX_MS;
    event_base_dispatch(l->base);
    event_free(tick);
}

static void start_masters(struct looking *l, const struct conf *conf, struct evdns_base *dns)
{
    const struct master_setup setup = {
        .base = l->base,
        .dns = dns,
        .request_timeout_ms = conf->lock.request_timeout_ms,
        .max_lease_ms = conf->lock.max_lease_ms,
        .drift_ppm = conf->lock.drift_ppm,
        .max_reply = LOOK_REPLY_MAX,
        .max_in_flight = LOOK_IN_FLIGHT,
        .client_name = "holdfastd-tt",
        .on_look = on_look,
        .arg = l,
    };

    for (size_t i = 0; i < l->n; i++) {
        l->seen[i].conf = &conf->masters[i];
        l->seen[i].master = master_new(&setup, &conf->masters[i], (int)i);
        master_start(l->seen[i].master);
    }
}

int doctor_examine(const struct conf *conf, FILE *out)
{
    struct looking l = {.n = conf->master_count};
    struct evdns_base *dns;

    l.base = event_base_new();
    if (!l.base)
        util_die("cannot make an event loop");
    dns = server_make_dns(l.base);
    l.seen = util_alloc(l.n * sizeof l.seen[0]);
    start_masters(&l, conf, dns);
    wait_for_all(&l);
    int errors = doctor_tell(conf, l.seen, out);
    for (size_t i = 0; i < l.n; i++)
        master_free(l.seen[i].master);
    free(l.seen);
    evdns_base_free(dns, 0);
    event_base_loop(l.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    event_base_free(l.base);
    libevent_global_shutdown();
    return errors;
}
