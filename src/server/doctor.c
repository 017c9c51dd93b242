/*
 * Looks at the masters and judges them in words: the text of `holdfastd -tt`. They are connected to
 * by the module that the broker uses, which here stops short of joining.
 *
 * An error keeps a master from being used, or locks from being had; a warning will hurt some day; a
 * hint says what follows from how things are.
 *
 * Invariant: what is seen first of a master counts, it may try again meanwhile.
 */
#include "server/doctor.h"

#include <event2/dns.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "redis/quorum.h"
#include "redis/settings.h"
#include "server/doctor_private.h"
#include "server/private.h"
#include "stats/stats.h"

enum severity { ERROR, WARNING, HINT, SEVERITIES };

enum {
    CLOCK_OFFSET_MS = 1000, /* more of it is worth a word */
    MEMORY_NEAR = 80        /* percent */
};

struct findings {
    const struct conf *conf;
    struct buf text[SEVERITIES];
    int count[SEVERITIES];
};

__attribute__((format(printf, 4, 5))) static void
add_finding(struct findings *f, enum severity severity, const char *name, const char *fmt, ...)
{
    static const char *const words[] = {"error", "warning", "hint"};
    char text[1000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_printf(&f->text[severity], "%-8s %s%s%s\n", words[severity], name, *name ? ": " : "", text);
    f->count[severity]++;
}

/* ---- one master ---- */

static void judge_rights(struct findings *f, const struct conf_master *master,
                         const struct master_look *look)
{
    const char *name = master->name, *user = master->user ? master->user : "default";

    if (*look->no_keys)
        add_finding(f, ERROR, name,
                    "its user may not use the keys of brokers: ACL SETUSER %s ~holdfast:* (%s)",
                    user, look->no_keys);
    if (*look->no_plain_keys)
        add_finding(f, ERROR, name,
                    "its user may not use all keys (~*), as mirror = yes needs (%s)",
                    look->no_plain_keys);
    if (*look->missing)
        add_finding(f, ERROR, name, "its user may not do what brokers need: ACL SETUSER %s %s",
                    user, look->missing);
    if (*look->disabled)
        add_finding(f, ERROR, name, "these commands are disabled or renamed there: %s",
                    look->disabled);
    if (*look->no_channels)
        add_finding(f, WARNING, name,
                    "its user may not use the channels of brokers: who waits for a lock that "
                    "another broker has is woken late: ACL SETUSER %s &holdfast:* (%s)",
                    user, look->no_channels);
    if (*look->not_useful)
        add_finding(f, HINT, name, "brokers do without, but it is better: ACL SETUSER %s %s", user,
                    look->not_useful);
    if (*look->no_multi)
        add_finding(f, HINT, name,
                    "what its user may not do cannot be told: ACL SETUSER %s +multi +discard (%s)",
                    user, look->no_multi);
}

static void judge_settings(struct findings *f, const char *name, const struct master_look *look)
{
    char *ours = settings_text(f->conf), differs[SETTINGS_WORDS_MAX];

    if (look->marked && strcmp(look->settings, ours) != 0) {
        settings_difference(ours, look->settings, differs);
        add_finding(f, ERROR, name,
                    "brokers disagree: %s: make them the same, or say MASTER %s ADOPT to a broker "
                    "with these (holdfastd(8), Growing from one master to three)",
                    differs, name);
    }
    free(ours);
}

static void judge_memory(struct findings *f, const char *name, const struct master_look *look)
{
    int64_t percent = look->memory_max > 0 ? look->memory_used * 100 / look->memory_max : 0;

    if (percent >= 100)
        add_finding(f, ERROR, name, "its memory is full (maxmemory): it grants no lock");
    else if (percent >= MEMORY_NEAR)
        add_finding(f, WARNING, name,
                    "%" PRId64 " %% of its maxmemory are used: at 100 it grants no lock", percent);
}

static void tell_sentinels(struct findings *f, const struct doctor_seen *seen)
{
    const char *words = master_sentinels(seen->master, clock_ms());

    if (words)
        add_finding(f, HINT, seen->conf->name, "its Sentinels: %s", words);
}

static int64_t quarantine_ms(const struct conf *c)
{
    int64_t longer_ms = 0;

    for (size_t i = 0; i < c->master_count; i++)
        if (c->masters[i].by_sentinels)
            longer_ms = c->sentinel_timeout_ms;
    if (c->quarantine_ms != CONF_QUARANTINE_AUTO)
        return c->quarantine_ms == 0 ? 0 : c->quarantine_ms + longer_ms;
    longer_ms += c->lock.max_lease_ms;
    return longer_ms + longer_ms * c->lock.drift_ppm / 1000000 + 1000;
}

static void judge_restart(struct findings *f, const char *name, const struct master_look *look)
{
    int64_t ms = quarantine_ms(f->conf);
    char span[48];

    util_format_duration(span, sizeof span, ms / 1000 * 1000);
    if (ms == 0)
        add_finding(f, WARNING, name,
                    "quarantine is off: a second holder can get what it forgets when it restarts");
    else if (!look->marked)
        add_finding(f, HINT, name,
                    "no broker has used it since it started: it begins with a quarantine of %s",
                    span);
}

static void judge_quarantine(struct findings *f, const char *name, const struct master_look *look)
{
    char span[48];

    if (look->quarantine_left_ms <= 0)
        return;
    util_format_duration(span, sizeof span, (look->quarantine_left_ms + 999) / 1000 * 1000);
    add_finding(f, HINT, name,
                "in quarantine for %s more; MASTER %s TRUST ends it, when nobody holds locks there",
                span, name);
}

static void judge_clock(struct findings *f, const char *name, int64_t offset_ms)
{
    if (llabs(offset_ms) < CLOCK_OFFSET_MS)
        return;
    add_finding(f, WARNING, name,
                "its clock is %.1f s %s the one of this machine: that does no harm, but the step "
                "that puts it right can end leases early (let NTP slew it)",
                (double)llabs(offset_ms) / 1000, offset_ms > 0 ? "ahead of" : "behind");
}

static void judge_latency(struct findings *f, const char *name, const struct hist *trips)
{
    int64_t timeout_us = f->conf->lock.request_timeout_ms * 1000;
    double half_ms = (double)hist_quantile(trips, 0.5) / 1000;
    double most_ms = (double)hist_quantile(trips, 0.99) / 1000;

    if (half_ms * 1000 >= (double)timeout_us)
        add_finding(f, ERROR, name,
                    "every other answer takes %.0f ms or more: later than request_timeout (%" PRId64
                    " ms), so it has no vote",
                    half_ms, f->conf->lock.request_timeout_ms);
    else if (most_ms * 2000 >= (double)timeout_us)
        add_finding(f, WARNING, name,
                    "one answer in a hundred takes %.0f ms: near request_timeout (%" PRId64 " ms)",
                    most_ms, f->conf->lock.request_timeout_ms);
}

static void judge_master(struct findings *f, const struct doctor_seen *seen)
{
    const char *name = seen->conf->name;

    tell_sentinels(f, seen);
    if (!seen->good) {
        bool told = seen->status.state == MASTER_REFUSED || strncmp(seen->error, "it ", 3) == 0;
        add_finding(f, ERROR, name, "%s%s%s", told ? "" : "cannot be reached: ", seen->error,
                    !told && seen->conf->tls ? " (does it speak TLS there?)" : "");
        return;
    }
    judge_rights(f, seen->conf, &seen->look);
    if (*seen->look.unchecked)
        add_finding(f, WARNING, name, "cannot be checked: %s", seen->look.unchecked);
    judge_settings(f, name, &seen->look);
    judge_memory(f, name, &seen->look);
    judge_latency(f, name, seen->status.trip_us);
    judge_clock(f, name, seen->clock_offset_ms);
    judge_restart(f, name, &seen->look);
    judge_quarantine(f, name, &seen->look);
}

/* ---- all of it ---- */

static void judge_number(struct findings *f, int good)
{
    int n = (int)f->conf->master_count, need = quorum_need(n);
    int64_t ms = quarantine_ms(f->conf);
    char span[48];

    util_format_duration(span, sizeof span, ms / 1000 * 1000);
    if (good < need)
        add_finding(f, ERROR, "",
                    "%d of %d masters can be used, and %d %s needed: no lock can be had", good, n,
                    need, need == 1 ? "is" : "are");
    if (n == 1 && ms > 0)
        add_finding(f, HINT, "", "after each restart of the one master nobody gets a lock for %s",
                    span);
    if (n > 1 && n % 2 == 0)
        add_finding(f, HINT, "", "%d masters can do without as many of them as %d can", n, n - 1);
}

static int tell_findings(const struct conf *conf, const struct doctor_seen *seen, FILE *out)
{
    struct findings f = {.conf = conf};
    bool usable[CONF_MASTERS_MAX];
    int good = 0;

    for (size_t i = 0; i < conf->master_count; i++) {
        int errors = f.count[ERROR];
        judge_master(&f, &seen[i]);
        usable[i] = f.count[ERROR] == errors;
        good += usable[i];
    }
    judge_number(&f, good);
    fputs("\n", out);
    doctor_table(conf, seen, usable, out);
    fputs("\n", out);
    for (int i = 0; i < SEVERITIES; i++) {
        if (buf_len(&f.text[i]) > 0)
            fwrite(buf_head(&f.text[i]), 1, buf_len(&f.text[i]), out);
        buf_fini(&f.text[i]);
    }
    fprintf(out, "%d of %d masters can be used: %d error%s, %d warning%s, %d hint%s\n", good,
            (int)conf->master_count, f.count[ERROR], util_plural(f.count[ERROR]), f.count[WARNING],
            util_plural(f.count[WARNING]), f.count[HINT], util_plural(f.count[HINT]));
    return f.count[ERROR];
}

/* ---- looking at them ---- */

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
        .mirror = conf->mirror,
        .request_timeout_ms = conf->lock.request_timeout_ms,
        .max_lease_ms = conf->lock.max_lease_ms,
        .drift_ppm = conf->lock.drift_ppm,
        .sentinel_timeout_ms = conf->sentinel_timeout_ms,
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

    if (conf_is_clustered(conf)) {
        fputs("the nodes of a Redis Cluster are not looked at\n", out);
        return 0;
    }
    l.base = event_base_new();
    if (!l.base)
        util_die("cannot make an event loop");
    dns = server_make_dns(l.base);
    l.seen = util_alloc(l.n * sizeof l.seen[0]);
    start_masters(&l, conf, dns);
    wait_for_all(&l);
    int errors = tell_findings(conf, l.seen, out);
    for (size_t i = 0; i < l.n; i++)
        master_free(l.seen[i].master);
    free(l.seen);
    evdns_base_free(dns, 0);
    event_base_loop(l.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    event_base_free(l.base);
    libevent_global_shutdown();
    return errors;
}
