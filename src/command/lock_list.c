/*
 * LOCKS, WAITING, CONTENDED, JEOPARDY and MASTERS: what this broker knows of all its locks, of who
 * waits for them, and of the servers that keep them. SCAN, DBSIZE and TYPE tell the same to the
 * tools of Redis: what is held or waited for by LOCK is a key of the type "lock", and what commands
 * of Redis hold, of the type that it would have there.
 */
#include <stdio.h>

#include "base/glob.h"
#include "base/util.h"
#include "command/handlers.h"
#include "conf/conf.h"
#include "dropin/call.h"
#include "dropin/state.h"
#include "lock/lock.h"
#include "lock/view.h"
#include "session/user.h"

/* ---- LOCKS ---- */

/* What one call may do, in steps of some 100 instructions: most buckets may be empty and most names
 * another one's, and a pattern takes its time. The cursor goes on behind it. */
enum { LIST_STEPS = 10000, BUCKET_STEPS = 5, NAME_STEPS = 3, MATCH_BYTES = 8 };
enum { LIST_BYTES = 64 * 1024 };

/* Which locks: those of LOCK, and those of commands of Redis that are a string, or a hash. */
enum { LIST_NATIVE = 1, LIST_STRINGS = 2, LIST_HASHES = 4, LIST_ALL = 7 };

struct listing {
    const struct user *user; /* NULL: all names are shown */
    struct glob *match;      /* NULL: all */
    unsigned what;           /* of the locks */
    struct buf names;
    size_t count;
    int64_t steps; /* done */
};

static void list_lock(void *arg, const char *name, size_t len)
{
    struct listing *listing = arg;
    listing->steps += NAME_STEPS;
    if (listing->match) {
        listing->steps += (int64_t)glob_steps(listing->match, len) / MATCH_BYTES;
        if (!glob_match(listing->match, name, len))
            return;
    }
    if (listing->user) {
        listing->steps += user_steps(listing->user, len) / MATCH_BYTES;
        if (!user_may_use(listing->user, name, len))
            return;
    }
    struct resp_writer w = {&listing->names, 2};
    resp_bulk(&w, name, len);
    listing->count++;
}

static void list_drop_in(void *arg, const struct dropin_hold *h)
{
    struct listing *listing = arg;
    unsigned kind = state_is_hash(h->state, h->state_len) ? LIST_HASHES : LIST_STRINGS;
    listing->steps += NAME_STEPS;
    if ((listing->what & kind) && !view_has_lock(cmd_hooks()->broker, h->name, h->name_len))
        list_lock(listing, h->name, h->name_len);
}

/* Lists a few locks more. First come those of LOCK, at even cursors, then the others. */
static uint64_t list_some(struct listing *listing, uint64_t cursor, int64_t now_ms)
{
    const struct cmd_hooks *hooks = cmd_hooks();
    uint64_t next = 0;
    bool others = hooks->dropin != NULL && (listing->what & ~(unsigned)LIST_NATIVE) != 0;
    if (cursor % 2 == 1)
        next = others ? dropin_scan(hooks->dropin, cursor / 2, list_drop_in, listing, now_ms) : 0;
    else if (listing->what & LIST_NATIVE)
        next = view_scan(hooks->broker, cursor / 2, list_lock, listing);
    if (next > 0)
        return next * 2 + cursor % 2;
    return cursor % 2 == 0 && others ? 1 : 0;
}

/* Lists locks from `cursor` on until there are enough; returns the next cursor. */
static uint64_t list_locks(struct listing *listing, uint64_t cursor, int64_t count, int64_t now_ms)
{
    do {
        cursor = list_some(listing, cursor, now_ms);
        listing->steps += BUCKET_STEPS;
    } while (cursor && (int64_t)listing->count < count && listing->steps < LIST_STEPS &&
             buf_len(&listing->names) < LIST_BYTES);
    cmd_charge(listing->steps * 100);
    return cursor;
}

static void reply_listing(struct cmd_call *c, const struct listing *listing, uint64_t cursor)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, 2);
    resp_str(w, text);
    resp_array(w, listing->count);
    buf_append(w->out, buf_head(&listing->names), buf_len(&listing->names));
}

/* Reads the options; -1: an error was answered. */
static int read_options(struct cmd_call *c, int64_t *cursor, int64_t *count,
                        const struct resp_arg **match)
{
    for (int i = 1; i < c->argc; i += 2) {
        bool ok = i + 1 < c->argc;
        if (ok && cmd_word_is(&c->argv[i], "CURSOR"))
            ok = util_parse_int(c->argv[i + 1].ptr, c->argv[i + 1].len, 0, INT64_MAX, cursor) == 0;
        else if (ok && cmd_word_is(&c->argv[i], "COUNT"))
            ok = util_parse_int(c->argv[i + 1].ptr, c->argv[i + 1].len, 1, 100000, count) == 0;
        else if (ok && cmd_word_is(&c->argv[i], "MATCH"))
            *match = &c->argv[i + 1];
        else
            ok = false;
        if (!ok) {
            cmd_reply_error(
                c, "ERR syntax error at '%.*s': LOCKS [CURSOR n] [MATCH glob] [COUNT 1..100000]",
                (int)(c->argv[i].len < 64 ? c->argv[i].len : 64), c->argv[i].ptr);
            return -1;
        }
    }
    return 0;
}

static void run_listing(struct cmd_call *c, unsigned what, const struct resp_arg *match,
                        int64_t cursor, int64_t count)
{
    struct listing listing = {.user = users_active() ? c->session->user : NULL, .what = what};
    if (match && !(listing.match = cmd_glob(c, match)))
        return;
    uint64_t next = list_locks(&listing, (uint64_t)cursor, count, c->now_ms);
    reply_listing(c, &listing, next);
    glob_free(listing.match);
    buf_fini(&listing.names);
}

void cmd_lock_list(struct cmd_call *c)
{
    const struct resp_arg *match = NULL;
    int64_t cursor = 0, count = 10;
    if (read_options(c, &cursor, &count, &match) == 0)
        run_listing(c, LIST_ALL, match, cursor, count);
}

/* ---- as Redis tells of its keys ---- */

void cmd_lock_scan(struct cmd_call *c)
{
    const struct resp_arg *match = NULL, *type = NULL;
    int64_t cursor, count = 10;
    if (!cmd_number(c, &c->argv[1], 0, INT64_MAX, &cursor, "ERR invalid cursor"))
        return;
    for (int i = 2; i < c->argc; i += 2) {
        bool has_value = i + 1 < c->argc;
        if (has_value && cmd_word_is(&c->argv[i], "MATCH")) {
            match = &c->argv[i + 1];
        } else if (has_value && cmd_word_is(&c->argv[i], "TYPE")) {
            type = &c->argv[i + 1];
        } else if (!has_value || !cmd_word_is(&c->argv[i], "COUNT")) {
            cmd_reply_syntax(c);
            return;
        } else if (!cmd_number(c, &c->argv[i + 1], 1, INT64_MAX, &count,
                               "ERR value is not an integer or out of range")) {
            return;
        }
    }
    unsigned what = !type                         ? LIST_ALL
                    : cmd_word_is(type, "LOCK")   ? LIST_NATIVE
                    : cmd_word_is(type, "STRING") ? LIST_STRINGS
                    : cmd_word_is(type, "HASH")   ? LIST_HASHES
                                                  : 0;
    run_listing(c, what, match, cursor, count);
}

void cmd_lock_count(struct cmd_call *c)
{
    struct view_levels levels = view_levels(cmd_hooks()->broker);

    cmd_reply_int(c, (int64_t)levels.n_names + levels.n_drop_in);
}

/* What is held or waited for here by LOCK is known; the masters are asked for what commands of
 * Redis hold. */
void cmd_lock_type(struct cmd_call *c)
{
    const struct user *user = c->session->user;
    bool may_ask = !users_active() || (user->allow & CONF_ALLOW_DROP_IN) != 0;

    if (view_has_lock(cmd_hooks()->broker, c->argv[1].ptr, c->argv[1].len))
        resp_simple(cmd_reply(c), "lock");
    else if (cmd_dropin_is_on() && may_ask)
        cmd_dropin_command(c);
    else
        resp_simple(cmd_reply(c), "none");
}

/* ---- WAITING ---- */

enum { WAITING_USUAL = 10, WAITING_MAX = 100, WAITING_LOOK = 100 /* instructions */ };
_Static_assert((int)WAITING_MAX == (int)VIEW_CONTENDED_MAX, "COUNT of all three has one bound");

/* Reads [COUNT n]; -1: an error was answered. */
static int read_max(struct cmd_call *c, const char *command, int *max)
{
    int64_t count = WAITING_USUAL;

    if (c->argc != 1 &&
        (c->argc != 3 || !cmd_word_is(&c->argv[1], "COUNT") ||
         util_parse_int(c->argv[2].ptr, c->argv[2].len, 1, WAITING_MAX, &count) != 0)) {
        cmd_reply_error(c, "ERR syntax error: %s [COUNT 1..%d]", command, WAITING_MAX);
        return -1;
    }
    *max = (int)count;
    return 0;
}

struct longest {
    const struct request *rows[WAITING_MAX]; /* in order of arrival: the longest wait first */
    int n, max;
    int64_t looked_at;
};

/* Adds a request in its place; the shortest wait may fall out. */
static void keep_longest(struct longest *l, const struct request *r)
{
    int i = l->n < l->max ? l->n++ : l->max - 1;

    if (l->rows[i] && l->rows[i]->arrived_us <= r->arrived_us)
        return;
    for (; i > 0 && l->rows[i - 1]->arrived_us > r->arrived_us; i--)
        l->rows[i] = l->rows[i - 1];
    l->rows[i] = r;
}

static void look_for_wait(struct session *s, void *arg)
{
    struct longest *l = arg;
    const struct request *r = NULL;

    l->looked_at++;
    for (int n = 0; n <= l->max && (r = session_waiting(s, r)) != NULL; n++) {
        keep_longest(l, r);
        l->looked_at++;
    }
}

static void write_wait(struct resp_writer *w, const struct request *r, int64_t now_ms)
{
    const char *client = r->session->name;

    resp_map(w, 4);
    resp_str(w, "lock");
    resp_bulk(w, r->subject, r->subject_len);
    resp_str(w, "connection");
    resp_int(w, (int64_t)r->session->id);
    resp_str(w, "client");
    resp_str(w, client ? client : "");
    resp_str(w, "waited_ms");
    resp_int(w, now_ms - r->arrived_us / 1000);
}

void cmd_lock_waiting(struct cmd_call *c)
{
    struct longest l = {.n = 0};

    if (read_max(c, "WAITING", &l.max) != 0)
        return;
    cmd_hooks()->each_client(cmd_hooks()->clients, look_for_wait, &l);
    cmd_charge(l.looked_at * WAITING_LOOK);
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)l.n);
    for (int i = 0; i < l.n; i++)
        write_wait(w, l.rows[i], c->now_ms);
}

/* ---- CONTENDED ---- */

/* Instructions for each lock that is shown, and of a step of the look. */
enum { CONTENDED_LOOK = 20000, CONTENDED_STEP = 50 };

static void write_groups(struct resp_writer *w, const struct view_group *groups, int n)
{
    resp_array(w, (size_t)n);
    for (int i = 0; i < n; i++) {
        resp_map(w, 3);
        resp_pair_str(w, "client", groups[i].client ? groups[i].client : "");
        resp_pair_str(w, "kind", lock_kind_name(groups[i].kind));
        resp_pair_int(w, "count", groups[i].n);
    }
}

static void write_contended(struct resp_writer *w, const struct view_lock *l)
{
    resp_map(w, 8);
    resp_str(w, "lock");
    resp_bulk(w, l->name, l->name_len);
    resp_pair_int(w, "waiting", l->n_waiters);
    resp_pair_int(w, "waited_ms", l->waited_ms);
    resp_str(w, "waiters");
    write_groups(w, l->waiters, l->n_waiter_groups);
    resp_pair_int(w, "holding", l->n_holders);
    resp_pair_int(w, "held_ms", l->held_ms);
    resp_pair_int(w, "remaining_ms", l->left_ms);
    resp_str(w, "holders");
    write_groups(w, l->holders, l->n_holder_groups);
}

void cmd_lock_contended(struct cmd_call *c)
{
    struct view_lock seen[VIEW_CONTENDED_MAX];
    int max;

    if (read_max(c, "CONTENDED", &max) != 0)
        return;
    int steps, n = view_contended(cmd_hooks()->broker, c->now_ms, seen, max, &steps);
    cmd_charge((int64_t)n * CONTENDED_LOOK + (int64_t)steps * CONTENDED_STEP);
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)n);
    for (int i = 0; i < n; i++)
        write_contended(w, &seen[i]);
}

/* ---- JEOPARDY ---- */

enum { JEOPARDY_LOOKED_AT = 20000, JEOPARDY_LOOK = 60 /* instructions */ };

struct endangered {
    struct {
        struct view_hold hold;
        uint64_t client;
    } rows[WAITING_MAX]; /* the first to end first */
    int n, max;
    uint64_t client; /* the one that is looked at */
    uint32_t left;   /* so many have not been found yet */
    int64_t looked_at, now_ms;
};

static bool keep_endangered(void *arg, const struct view_hold *h)
{
    struct endangered *e = arg;

    e->looked_at++;
    if (!h->in_jeopardy)
        return e->looked_at < JEOPARDY_LOOKED_AT;
    e->left--;
    int i = e->n < e->max ? e->n++ : e->max;
    for (; i > 0 && e->rows[i - 1].hold.left_ms > h->left_ms; i--, e->looked_at++)
        if (i < e->max)
            e->rows[i] = e->rows[i - 1];
    if (i < e->max) {
        e->rows[i].hold = *h;
        e->rows[i].client = e->client;
    }
    return e->left > 0 && e->looked_at < JEOPARDY_LOOKED_AT;
}

static void look_for_endangered(struct session *s, void *arg)
{
    struct endangered *e = arg;

    e->client = s->id;
    e->looked_at++;
    if (e->left > 0 && e->looked_at < JEOPARDY_LOOKED_AT)
        view_holds(s, e->now_ms, keep_endangered, e);
}

void cmd_lock_jeopardy(struct cmd_call *c)
{
    struct endangered e = {.now_ms = c->now_ms};

    if (read_max(c, "JEOPARDY", &e.max) != 0)
        return;
    e.left = view_levels(cmd_hooks()->broker).n_jeopardy;
    if (e.left > 0)
        cmd_hooks()->each_client(cmd_hooks()->clients, look_for_endangered, &e);
    cmd_charge(e.looked_at * JEOPARDY_LOOK);
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)e.n);
    for (int i = 0; i < e.n; i++) {
        const struct view_hold *h = &e.rows[i].hold;
        resp_map(w, 4);
        resp_str(w, "lock");
        resp_bulk(w, h->name, h->name_len);
        resp_pair_int(w, "connection", (int64_t)e.rows[i].client);
        resp_pair_int(w, "held_ms", h->held_ms);
        resp_pair_int(w, "remaining_ms", h->left_ms);
    }
}

/* ---- MASTERS ---- */

/* Says whether this broker asks that master for new locks now. */
static const char *new_locks(const struct broker *b, const struct view_master *m)
{
    if (view_is_draining(b) || view_is_paused(b))
        return view_is_draining(b) ? "draining" : "paused";
    return m->votes && !view_veto(b) ? "yes" : "no";
}

static void write_master(struct resp_writer *w, const struct broker *b,
                         const struct view_master *seen, const char *sentinels)
{
    const struct master_status *m = seen->status;

    resp_map(w, 15 + (sentinels != NULL));
    resp_pair_str(w, "name", m->name);
    resp_pair_str(w, "address", m->address);
    resp_pair_str(w, "state", master_status_name(m));
    resp_pair_int(w, "since_ms", seen->since_ms);
    resp_pair_str(w, "new_locks", new_locks(b, seen));
    resp_pair_int(w, "quarantine_left_ms", m->quarantine_left_ms);
    resp_pair_str(w, "missing", m->roll_missing);
    resp_pair_str(w, "signed", m->roll_signed);
    resp_pair_str(w, "no_roll_call", m->roll_veto);
    resp_pair_int(w, "latency_us", m->latency_us);
    resp_pair_int(w, "clock_offset_ms", seen->clock_offset_ms);
    resp_pair_int(w, "in_flight", m->in_flight);
    resp_pair_int(w, "restarts", m->restarts);
    resp_pair_str(w, "redis_version", m->version);
    resp_pair_str(w, "last_error", m->error);
    if (sentinels)
        resp_pair_str(w, "sentinels", sentinels);
}

void cmd_lock_masters(struct cmd_call *c)
{
    const struct broker *b = cmd_hooks()->broker;
    int n = view_n_masters(b);
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)n);
    for (int i = 0; i < n; i++) {
        struct view_master seen = view_master(b, i, c->now_ms);
        write_master(w, b, &seen, view_master_sentinels(b, i, c->now_ms));
    }
}
