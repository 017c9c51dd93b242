/*
 * A command of this file checks its words, makes a lock_request, and gives it to the session and
 * then to the broker, which finishes it at once or later. The reply is written when it leaves, so
 * that the validity in it is what is left then.
 */
#include "cmd_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker.h"
#include "cmd.h"
#include "keep.h"
#include "pool.h"
#include "user.h"
#include "util.h"

/* ---- replies ---- */

/* Until when what the reply says is true; it may have waited for others before it, and this process
 * may have stood still. What its own connection has given up since, by a later request, was true in
 * its time. 0: not any more. */
static int64_t promised_ms(const struct lock_request *r)
{
    const struct hold *h = r->told;
    if (h->state == HOLD_HELD || h->state == HOLD_JEOPARDY)
        return h->deadline_ms;
    return h->released_by == r->base.session->id ? r->deadline_ms : 0;
}

static void write_granted(struct lock_request *r, struct resp_writer *w, int64_t now_ms)
{
    int64_t until_ms = promised_ms(r);
    if (until_ms > now_ms) {
        resp_array(w, 2);
        resp_int(w, r->token);
        resp_int(w, until_ms - now_ms);
    } else if (r->verb == VERB_LOCK) {
        resp_null_array(w);
    } else {
        cmd_write_error(&r->base, w, "NOTHELD the hold has ended before this reply could leave");
    }
}

static void write_holder(const struct lock_info *info, struct resp_writer *w)
{
    resp_map(w, 7);
    resp_str(w, "owner");
    resp_bulk(w, info->owner->text, info->owner->len);
    resp_str(w, "count");
    resp_int(w, info->count);
    resp_str(w, "token");
    resp_int(w, info->token);
    resp_str(w, "remaining_ms");
    resp_int(w, info->left_ms);
    resp_str(w, "held_ms");
    resp_int(w, info->since_ms);
    resp_str(w, "watched");
    resp_bool(w, info->watched);
    resp_str(w, "connection");
    resp_int(w, (int64_t)info->session_id);
}

/* A hold of another broker, as a majority of masters describes it. */
static const struct lock_info_master *elsewhere(const struct lock_info *info)
{
    for (int i = 0; i < info->n_masters; i++) {
        const struct lock_info_master *m = &info->masters[i];
        int same = 0;
        for (int j = 0; m->held && j < info->n_masters; j++)
            same += info->masters[j].held && strcmp(info->masters[j].op, m->op) == 0;
        if (same >= quorum_need(info->n_masters))
            return m;
    }
    return NULL;
}

static void write_elsewhere(const struct lock_info_master *m, struct resp_writer *w)
{
    resp_map(w, 5);
    resp_str(w, "owner");
    resp_str(w, m->owner);
    resp_str(w, "count");
    resp_int(w, m->count);
    resp_str(w, "token");
    resp_int(w, m->token);
    resp_str(w, "remaining_ms");
    resp_int(w, m->pttl_ms);
    resp_str(w, "connection");
    resp_str(w, "elsewhere");
}

static void write_waiter(const struct lock_info_waiter *waiter, struct resp_writer *w)
{
    resp_map(w, 4);
    resp_str(w, "owner");
    resp_bulk(w, waiter->owner->text, waiter->owner->len);
    resp_str(w, "connection");
    resp_int(w, (int64_t)waiter->session_id);
    resp_str(w, "waited_ms");
    resp_int(w, waiter->waited_ms);
    resp_str(w, "fair");
    resp_bool(w, waiter->fair);
}

static void write_info(const struct lock_request *r, struct resp_writer *w)
{
    const struct lock_info *info = r->info;
    const struct lock_info_master *other = info->owner ? NULL : elsewhere(info);
    struct backend *backend = &r->broker->backend;
    resp_map(w, 6);
    resp_str(w, "kind");
    if (info->owner || other)
        resp_str(w, "exclusive");
    else
        resp_null(w);
    resp_str(w, "limit");
    resp_int(w, 1);
    resp_str(w, "holders");
    resp_array(w, info->owner || other);
    if (info->owner)
        write_holder(info, w);
    else if (other)
        write_elsewhere(other, w);
    resp_str(w, "waiting");
    resp_int(w, info->n_waiters);
    resp_str(w, "waiters");
    resp_array(w, (size_t)info->n_listed);
    for (int i = 0; i < info->n_listed; i++)
        write_waiter(&info->listed[i], w);
    resp_str(w, "masters");
    resp_map(w, (size_t)info->n_masters);
    for (int i = 0; i < info->n_masters; i++) {
        resp_str(w, master_name(backend->masters[i]));
        resp_str(w, info->masters[i].text);
    }
}

static void on_write(struct request *base, struct resp_writer *w, int64_t now_ms)
{
    struct lock_request *r = (struct lock_request *)base;
    switch ((enum lock_result)r->result) {
    case RESULT_GRANTED:
        write_granted(r, w, now_ms);
        break;
    case RESULT_COUNT:
        resp_int(w, r->count);
        break;
    case RESULT_INFO:
        write_info(r, w);
        break;
    case RESULT_NOT_HELD:
    case RESULT_ERROR:
        cmd_write_error(base, w, "%s", r->text);
        break;
    case RESULT_NOT_GRANTED:
    case RESULT_NONE:
        resp_null_array(w);
        break;
    }
}

static void on_abandon(struct request *base, int64_t now_ms)
{
    struct lock_request *r = (struct lock_request *)base;
    broker_abandon(r->broker, r, now_ms);
}

static void on_free(struct request *base)
{
    struct lock_request *r = (struct lock_request *)base;
    if (r->told)
        keep_unpin(r->told);
    lock_request_free(r);
}

static const struct request_type lock_request_type = {on_write, on_abandon, on_free};

/* ---- words ---- */

/* A name or an owner: 1 to `max` bytes, none of them NUL, CR or LF. */
static bool check_id(struct session *s, const char *what, const struct resp_arg *arg, size_t max)
{
    if (arg->len == 0 || arg->len > max) {
        cmd_reply_error(s, "ERR the %s has %zu bytes, it must have 1 to %zu", what, arg->len, max);
        return false;
    }
    if (memchr(arg->ptr, '\0', arg->len) || memchr(arg->ptr, '\r', arg->len) ||
        memchr(arg->ptr, '\n', arg->len)) {
        cmd_reply_error(s, "ERR the %s has a NUL, CR or LF in it", what);
        return false;
    }
    return true;
}

static bool take_ms(struct session *s, const char *option, const struct resp_arg *arg, int64_t min,
                    int64_t max, int64_t *out)
{
    if (util_parse_int(arg->ptr, arg->len, min, max, out) == 0)
        return true;
    cmd_reply_error(s, "ERR %s '%.*s' is not a number of milliseconds from %lld to %lld", option,
                    (int)(arg->len < 32 ? arg->len : 32), arg->ptr, (long long)min, (long long)max);
    return false;
}

enum {
    WITH_OWNER = 1,
    WITH_WAIT = 2,
    WITH_LEASE = 4,
    WITH_MAXHOLD = 8,
    WITH_TELL = 16,
    WITH_FAIR = 32
};

static const struct {
    const char *word;
    unsigned bit;
} options[] = {
    {"OWNER", WITH_OWNER},     {"WAIT", WITH_WAIT}, {"LEASE", WITH_LEASE},
    {"MAXHOLD", WITH_MAXHOLD}, {"TELL", WITH_TELL}, {"FAIR", WITH_FAIR},
};

static unsigned find_option(const struct resp_arg *arg)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (cmd_word_is(arg, options[i].word))
            return options[i].bit;
    }
    return 0;
}

/* A year: times beyond it are mistakes, and sums of two stay far from overflow. */
enum { YEAR_MS_SHIFT = 35 };
static const int64_t time_max_ms = INT64_C(1) << YEAR_MS_SHIFT;

/* Takes the value of one option. 0, or -1 when an error has been replied. */
static int take_option(struct session *s, struct lock_request *r, unsigned option,
                       const struct resp_arg *value, int64_t now_ms)
{
    const struct broker_conf *conf = &r->broker->conf;
    int64_t ms;
    switch (option) {
    case WITH_OWNER:
        if (!check_id(s, "owner", value, LOCK_OWNER_MAX))
            return -1;
        owner_unref(r->owner);
        r->owner = owner_get(value->ptr, value->len);
        return 0;
    case WITH_WAIT:
        if (!take_ms(s, "WAIT", value, 0, time_max_ms, &ms))
            return -1;
        r->wait_until_ms = ms ? now_ms + ms : INT64_MAX;
        return 0;
    case WITH_LEASE:
        if (!take_ms(s, "LEASE", value, 1, time_max_ms, &r->lease_ms))
            return -1;
        if (r->lease_ms <= conf->max_lease_ms)
            return 0;
        cmd_reply_error(s, "LIMIT LEASE %lld is more than max_lease, %lld ms",
                        (long long)r->lease_ms, (long long)conf->max_lease_ms);
        return -1;
    default:
        return take_ms(s, "MAXHOLD", value, 1, time_max_ms, &r->maxhold_ms) ? 0 : -1;
    }
}

static int take_options(struct session *s, struct lock_request *r, unsigned allowed, int argc,
                        const struct resp_arg *argv, int64_t now_ms)
{
    unsigned seen = 0;
    for (int i = 2; i < argc; i++) {
        unsigned option = find_option(&argv[i]) & allowed;
        if (!option || (seen & option)) {
            cmd_reply_error(s, "ERR syntax error: %s '%.*s'", option ? "twice" : "unknown option",
                            (int)(argv[i].len < 64 ? argv[i].len : 64), argv[i].ptr);
            return -1;
        }
        seen |= option;
        if (option == WITH_TELL) {
            r->tell = true;
        } else if (option == WITH_FAIR) {
            r->fair = true;
        } else if (++i == argc) {
            cmd_reply_error(s, "ERR syntax error: '%.*s' needs a value", (int)argv[i - 1].len,
                            argv[i - 1].ptr);
            return -1;
        } else if (take_option(s, r, option, &argv[i], now_ms) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- commands ---- */

/* The owner that a connection spoke for last stays known, so that it is seen when two act for the
 * same one. */
static void remember_owner(struct session *s, struct owner *owner)
{
    if (owner == s->acted_for)
        return;
    owner_unref(s->acted_for);
    s->acted_for = owner_ref(owner);
    owner_used(owner, s->id);
}

static void ask(struct session *s, enum lock_verb verb, unsigned allowed, int argc,
                const struct resp_arg *argv, int64_t now_ms)
{
    if (!check_id(s, "name", &argv[1], LOCK_NAME_MAX))
        return;
    struct lock_request *r = pool_get(sizeof *r);
    r->base.type = &lock_request_type;
    r->broker = cmd_hooks()->broker;
    r->owner = owner_ref(s->owner);
    r->verb = (uint8_t)verb;
    if (take_options(s, r, allowed, argc, argv, now_ms) != 0) {
        lock_request_free(r);
        return;
    }
    remember_owner(s, r->owner);
    session_ask(s, &r->base);
    broker_submit(r->broker, r, argv[1].ptr, argv[1].len, now_ms);
}

void cmd_lock_acquire(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    ask(s, VERB_LOCK, WITH_OWNER | WITH_WAIT | WITH_LEASE | WITH_MAXHOLD | WITH_TELL | WITH_FAIR,
        argc, argv, now_ms);
}

void cmd_lock_release(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    ask(s, VERB_UNLOCK, WITH_OWNER, argc, argv, now_ms);
}

void cmd_lock_renew(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    ask(s, VERB_RENEW, WITH_OWNER | WITH_LEASE, argc, argv, now_ms);
}

void cmd_lock_holds(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    ask(s, VERB_HOLDS, WITH_OWNER, argc, argv, now_ms);
}

void cmd_lock_info(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    ask(s, VERB_INFO, 0, argc, argv, now_ms);
}

void cmd_lock_force(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    ask(s, VERB_FORCE, 0, argc, argv, now_ms);
}

void cmd_lock_owner(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)now_ms;
    if (argc > 2) {
        cmd_reply_error(s, "ERR wrong number of arguments for 'owner' command");
        return;
    }
    if (argc > 1) {
        if (!check_id(s, "owner", &argv[1], LOCK_OWNER_MAX))
            return;
        owner_unref(s->owner);
        s->owner = owner_get(argv[1].ptr, argv[1].len);
        owner_used(s->owner, s->id);
        cmd_reply_ok(s);
        return;
    }
    struct resp_writer w = session_reply(s);
    resp_bulk(&w, s->owner->text, s->owner->len);
    session_reply_end(s);
}

/* ---- LOCKS ---- */

enum { LIST_BUCKETS = 65536, LIST_BYTES = 64 * 1024 };

struct listing {
    const struct user *user;      /* NULL: all names are shown */
    const struct resp_arg *match; /* NULL: all */
    struct buf names;
    size_t count;
};

static void list_lock(void *arg, struct lock *l)
{
    struct listing *listing = arg;
    if (listing->match &&
        !util_match(listing->match->ptr, listing->match->len, l->name, l->name_len))
        return;
    if (listing->user && !user_may_use(listing->user, l->name, l->name_len))
        return;
    struct resp_writer w = {&listing->names, 2};
    resp_bulk(&w, l->name, l->name_len);
    listing->count++;
}

void cmd_lock_list(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct listing listing = {.user = users_active() ? s->user : NULL};
    int64_t cursor = 0, count = 10;
    (void)now_ms;
    for (int i = 1; i < argc; i += 2) {
        bool ok = i + 1 < argc;
        if (ok && cmd_word_is(&argv[i], "CURSOR"))
            ok = util_parse_int(argv[i + 1].ptr, argv[i + 1].len, 0, INT64_MAX, &cursor) == 0;
        else if (ok && cmd_word_is(&argv[i], "COUNT"))
            ok = util_parse_int(argv[i + 1].ptr, argv[i + 1].len, 1, 100000, &count) == 0;
        else if (ok && cmd_word_is(&argv[i], "MATCH"))
            listing.match = &argv[i + 1];
        else
            ok = false;
        if (!ok) {
            cmd_reply_error(
                s, "ERR syntax error at '%.*s': LOCKS [CURSOR n] [MATCH glob] [COUNT 1..100000]",
                (int)(argv[i].len < 64 ? argv[i].len : 64), argv[i].ptr);
            return;
        }
    }
    struct locktab *locks = &cmd_hooks()->broker->locks;
    uint64_t next = (uint64_t)cursor;
    int steps = LIST_BUCKETS; /* most may be empty: the work of one call is bounded */
    do
        next = locktab_scan(locks, next, list_lock, &listing);
    while (next && (int64_t)listing.count < count && buf_len(&listing.names) < LIST_BYTES &&
           --steps > 0);
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)next);
    struct resp_writer w = session_reply(s);
    resp_array(&w, 2);
    resp_str(&w, text);
    resp_array(&w, listing.count);
    buf_append(w.out, buf_head(&listing.names), buf_len(&listing.names));
    session_reply_end(s);
    buf_fini(&listing.names);
}

/* ---- MASTERS ---- */

/* Whether this broker asks it for new locks now. */
static const char *new_locks(const struct broker *b, const struct master_status *m)
{
    if (b->draining || b->paused)
        return b->draining ? "draining" : "paused";
    return master_state_votes(m->state) && !m->stalled ? "yes" : "no";
}

static void write_master(struct resp_writer *w, const struct broker *broker,
                         const struct master_status *m)
{
    const struct backend *b = &broker->backend;

    resp_map(w, 11);
    resp_str(w, "name");
    resp_str(w, m->name);
    resp_str(w, "address");
    resp_str(w, m->address);
    resp_str(w, "state");
    resp_str(w, m->stalled ? "stalled" : master_state_name(m->state));
    resp_str(w, "new_locks");
    resp_str(w, new_locks(broker, m));
    resp_str(w, "quarantine_left_ms");
    resp_int(w, m->quarantine_left_ms);
    resp_str(w, "latency_us");
    resp_int(w, m->latency_us);
    resp_str(w, "clock_offset_ms");
    resp_int(w, backend_clock_offset_ms(b, m));
    resp_str(w, "in_flight");
    resp_int(w, m->in_flight);
    resp_str(w, "restarts");
    resp_int(w, m->restarts);
    resp_str(w, "redis_version");
    resp_str(w, m->version);
    resp_str(w, "last_error");
    resp_str(w, m->error);
}

void cmd_lock_masters(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct broker *b = cmd_hooks()->broker;
    struct backend *backend = &b->backend;
    struct resp_writer w = session_reply(s);
    (void)argc;
    (void)argv;
    resp_array(&w, (size_t)backend->n);
    for (int i = 0; i < backend->n; i++)
        write_master(&w, b, master_status(backend->masters[i], now_ms));
    session_reply_end(s);
}
