/*
 * The record of each owner of each name. What an owner may rely on is the last validity that it was
 * told, cut short by what it has said itself since then; what a broker relies on is the deadline of
 * its hold, cut short likewise.
 */
#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lock/claim.h"
#include "lock/queue.h"
#include "lock/renew.h"
#include "redis/quorum.h"

enum { NAMES = 512, OWNERS = 40, GRANTS = 4096 };

/* What one owner knows of one name. */
struct belief {
    char owner[16];
    int64_t token, until_us;
    int broker; /* that has granted it last */
    int app;    /* whose connection the hold belongs to; -1: none */
    bool watched;
    int64_t given_up_us; /* by an UNLOCK that was answered then: what was asked for before, too */
    int64_t void_token;  /* holds up to this one are no promise any more */
    int64_t cap_token, cap_us; /* holds up to cap_token are none after cap_us */
    bool capped_unheard;       /* by a request whose answer nobody hears, or is told too late */
    int unlocking, asking;     /* requests under way */
    int asyncs;                /* of them, those with a tag: others may be answered before them */
    int64_t doubt_us;          /* what was asked for before may have been given up since */
    int lingering;             /* UNLOCKs that brokers still have, of connections that have gone */
    int straying;              /* RENEWs likewise: they may move the hold */
    bool shaken; /* one of these was done while its owner asked for something: that may be gone */
    int last_asker; /* application of the last one */
    int count;      /* how often it has locked; valid when certain */
    bool as_reader; /* the last time */
    bool certain;
    int64_t covered_us; /* drop-in: until then it is its own, without a token that it knows */
};

struct grant {
    int64_t token, told_us;
    char owner[16];
};

struct name {
    char name[16];
    struct belief beliefs[OWNERS];
    int n_beliefs;
    struct grant grants[GRANTS];
    int n_grants;
    int64_t highest;         /* token told */
    int forcing;             /* FORCEUNLOCK under way */
    int64_t forced_us;       /* when the last one was answered: what was asked for before is none */
    int64_t forced_until_us; /* one is still done whose connection has gone */
};

static struct name names[NAMES];
static int n_names;
static int64_t data_lost_us; /* when a server last lost its data */
struct history_counts history_counts;
int history_faults;

void history_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "SIM_SEED=%" PRIu64 " at %.3f ms: ", world.conf.seed,
            (double)sim_now_us() / 1000);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

void history_begin(void)
{
    memset(names, 0, (size_t)n_names * sizeof names[0]);
    n_names = 0;
    data_lost_us = 0;
    history_faults = 0;
    history_counts = (struct history_counts){0};
}

void history_data_lost(void)
{
    data_lost_us = sim_now_us();
    for (int i = 0; i < n_names; i++) {
        for (int j = 0; j < names[i].n_beliefs; j++) {
            struct belief *bl = &names[i].beliefs[j];
            bl->certain &= bl->count == 0 && bl->asking == 0;
        }
    }
}

static struct name *name_of(const char *name)
{
    for (int i = 0; i < n_names; i++) {
        if (strcmp(names[i].name, name) == 0)
            return &names[i];
    }
    if (n_names == NAMES)
        history_fail("too many names");
    snprintf(names[n_names].name, sizeof names[0].name, "%s", name);
    return &names[n_names++];
}

static struct belief *belief_of(struct name *n, const char *owner)
{
    for (int i = 0; i < n->n_beliefs; i++) {
        if (strcmp(n->beliefs[i].owner, owner) == 0)
            return &n->beliefs[i];
    }
    if (n->n_beliefs == OWNERS)
        history_fail("too many owners");
    struct belief *bl = &n->beliefs[n->n_beliefs++];
    snprintf(bl->owner, sizeof bl->owner, "%s", owner);
    bl->app = -1;
    bl->cap_us = INT64_MAX;
    bl->certain = true;
    bl->last_asker = -1;
    return bl;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Until when a hold with this token is a promise, when its deadline is `until_us`. */
static int64_t promised_us(const struct belief *bl, int64_t token, int64_t until_us)
{
    if (token <= bl->void_token || bl->unlocking > 0 || bl->lingering > 0)
        return 0;
    return token <= bl->cap_token ? min(until_us, bl->cap_us) : until_us;
}

static bool believes(const struct belief *bl)
{
    return bl->token && sim_now_us() < promised_us(bl, bl->token, bl->until_us);
}

static void make_void(struct belief *bl, int64_t token)
{
    bl->void_token = max(bl->void_token, token);
    if (bl->token <= bl->void_token)
        bl->app = -1;
}

/* ---- 1: exclusion ---- */

static bool is_forced(const struct name *n)
{
    return n->forcing > 0 || n->forced_until_us > 0;
}

/* Those who have it at the moment: told, or kept for them by a broker. */
struct holders {
    const char *owner[OWNERS];
    int64_t token[OWNERS];
    char by[OWNERS][32];
    int n;
};

static bool reads(const struct name *n, const char *owner)
{
    int limit;
    const char *kind = world_kind(n->name, owner, &limit);
    return kind && limit == 0;
}

static void add_holder(struct holders *all, const struct name *n, const char *owner, int64_t token,
                       const char *by)
{
    int limit;
    world_kind(n->name, owner, &limit);
    for (int i = 0; i < all->n; i++) {
        if (strcmp(all->owner[i], owner) == 0)
            return;
        if (limit == 0 && !(reads(n, owner) && reads(n, all->owner[i])))
            history_fail("'%s' is held by %s under %" PRId64 " (%s) and by %s under %" PRId64
                         " (%s)",
                         n->name, all->owner[i], all->token[i], all->by[i], owner, token, by);
    }
    if (limit > 0 && all->n == limit)
        history_fail("'%s' has %d permits, and %s has one more under %" PRId64 " (%s)", n->name,
                     limit, owner, token, by);
    all->owner[all->n] = owner;
    all->token[all->n] = token;
    snprintf(all->by[all->n++], sizeof all->by[0], "%s", by);
}

static void check_exclusion(struct name *n)
{
    struct holders all = {.n = 0};
    if (is_forced(n))
        return;
    for (int i = 0; i < n->n_beliefs; i++) {
        const struct belief *bl = &n->beliefs[i];
        if (believes(bl) || sim_now_us() < bl->covered_us)
            add_holder(&all, n, bl->owner, bl->token, "told");
    }
    for (int i = 0; i < world.conf.n_brokers; i++) {
        struct world_broker *wb = &world.brokers[i];
        struct lock *l = wb->alive ? locktab_find(&wb->b.locks, n->name, strlen(n->name)) : NULL;
        struct hold *h;
        char by[32];
        if (!l)
            continue;
        snprintf(by, sizeof by, "kept by broker %d", i);
        LIST_FOREACH(h, &l->holds, of_lock) {
            int64_t until_us = h->deadline_ms * 1000 - wb->local_us;
            const struct belief *bl = belief_of(n, h->owner->text);
            bool is_given_up =
                (h->since_ms - h->asked_before_ms) * 1000 - wb->local_us <= bl->given_up_us;
            /* its connection has gone: nobody is told any more, and who was told is judged above */
            bool is_orphan = h->watched && !h->session;
            if (h->state != HOLD_LOST && !is_given_up && !is_orphan &&
                sim_now_us() < promised_us(bl, h->token, until_us))
                add_holder(&all, n, h->owner->text, h->token, by);
        }
    }
}

/* ---- 2: tokens ---- */

static struct hold *hold_at(struct world_broker *wb, const struct name *n, const char *owner)
{
    struct lock *l = wb->alive ? locktab_find(&wb->b.locks, n->name, strlen(n->name)) : NULL;
    struct hold *h;
    if (!l)
        return NULL;
    LIST_FOREACH(h, &l->holds, of_lock) {
        if (strcmp(h->owner->text, owner) == 0)
            return h;
    }
    return NULL;
}

static void check_token(struct name *n, const struct world_app *app, const struct world_ask *ask,
                        int64_t token)
{
    const struct hold *h = hold_at(app->broker, n, ask->owner);
    int64_t asked_us = ask->said_us;
    /* given up by another connection of its owner before this one heard of it */
    const struct belief *bl = belief_of(n, ask->owner);
    bool is_void = token <= bl->void_token || bl->unlocking > 0; /* or has said so already */
    int limit;
    world_kind(n->name, ask->owner, &limit);
    if (h && h->token == token) {
        asked_us = (h->since_ms - h->asked_before_ms) * 1000 -
                   app->broker->local_us; /* that hold, however often it is told */
        is_void |= asked_us <= max(bl->given_up_us, n->forced_us);
    } else if (limit > 0 || reads(n, ask->owner)) {
        asked_us = 0; /* others may have got one since; when this one began is not known here */
    }
    for (int i = 0; i < n->n_grants; i++) {
        const struct grant *g = &n->grants[i];
        if (g->token == token && strcmp(g->owner, ask->owner) != 0)
            history_fail("token %" PRId64 " of '%s' was given to %s and to %s", token, n->name,
                         g->owner, ask->owner);
        if (g->token == token)
            return; /* judged when it was told first */
    }
    for (int i = 0; i < n->n_grants; i++) {
        const struct grant *g = &n->grants[i];
        bool is_same = strcmp(g->owner, ask->owner) == 0;
        bool excludes = !is_same && !is_void && !is_forced(n) && limit == 0 &&
                        !(reads(n, ask->owner) && reads(n, g->owner));
        if (g->token > token && (g->told_us < asked_us || excludes))
            history_fail("'%s' was granted to %s under token %" PRId64 ", after %" PRId64
                         " had been given to %s",
                         n->name, ask->owner, token, g->token, g->owner);
    }
    if (n->n_grants == GRANTS)
        history_fail("too many grants");
    struct grant *g = &n->grants[n->n_grants++];
    g->token = token;
    g->told_us = sim_now_us();
    snprintf(g->owner, sizeof g->owner, "%s", ask->owner);
    n->highest = max(n->highest, token);
    history_counts.grants++;
    history_counts.faulty_grants += history_faults > 0;
    history_counts.waits += ask->waits && sim_now_us() - ask->said_us > 50000;
}

/* ---- what is said ---- */

/* The highest token of a hold that this owner has, whether it has been told of it or not. */
static int64_t own_token(const struct name *n, const struct belief *bl)
{
    int64_t token = bl->token;
    for (int i = 0; i < world.conf.n_brokers; i++) {
        const struct hold *h = hold_at(&world.brokers[i], n, bl->owner);
        token = h ? max(token, h->token) : token;
    }
    return token;
}

/* From now on the masters may have the lease that this request asks for. */
static void cap(const struct name *n, struct belief *bl, const struct world_ask *ask)
{
    const struct conf_lock *conf = &world.conf.broker;
    int64_t lease_ms = ask->lease_ms ? ask->lease_ms : conf->lease_ms;
    if (ask->maxhold_ms)
        lease_ms = min(lease_ms, ask->maxhold_ms);
    int64_t cap_us = ask->said_us + quorum_validity_ms(lease_ms, 0, 0, conf->drift_ppm) * 1000;
    bl->cap_us = min(bl->cap_us, cap_us); /* until it is told of another hold */
    bl->cap_token = max(bl->cap_token, own_token(n, bl));
}

static bool is_about(const struct world_ask *ask, const struct name *n)
{
    for (int i = 0; i < ask->n_names; i++) {
        if (strcmp(ask->names[i], n->name) == 0)
            return true;
    }
    return false;
}

/* What is under way besides may ask for less than what has just been granted. */
static void cap_by(const struct name *n, struct belief *bl, const struct world_ask *asks,
                   int n_asks)
{
    for (int i = 0; i < n_asks; i++) {
        const struct world_ask *ask = &asks[i];
        bool writes =
            ask->verb == WORLD_LOCK || ask->verb == WORLD_RENEW || ask->verb == WORLD_MLOCK;
        if (writes && is_about(ask, n) && strcmp(ask->owner, bl->owner) == 0)
            cap(n, bl, ask);
    }
}

static void cap_by_others(const struct name *n, struct belief *bl)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        const struct world_app *app = &world.apps[i];
        if (!app->connected)
            continue;
        cap_by(n, bl, app->asks, app->n_asks);
        cap_by(n, bl, app->asyncs, app->n_asyncs);
    }
}

/* What was asked for has failed, or has been told: from now on only what is under way counts. */
static void lift_cap(const struct name *n, struct belief *bl)
{
    if (bl->capped_unheard)
        return;
    bl->cap_us = INT64_MAX;
    cap_by_others(n, bl);
}

static bool is_unlock(const struct world_ask *ask)
{
    return ask->verb == WORLD_UNLOCK || ask->verb == WORLD_MUNLOCK;
}

static void said_of(struct name *n, const struct world_app *app, const struct world_ask *ask)
{
    struct belief *bl = belief_of(n, ask->owner);
    if (bl->asking > 0 && (bl->last_asker != app->index || bl->asyncs > 0 || ask->tag[0]))
        bl->certain = false;
    bl->asking++;
    bl->asyncs += ask->tag[0] != '\0';
    bl->last_asker = app->index;
    bl->unlocking += is_unlock(ask);
    if (!is_unlock(ask))
        cap(n, bl, ask);
}

void history_said(struct world_app *app, struct world_ask *ask)
{
    if (ask->verb == WORLD_CANCEL) /* it names a tag */
        return;
    struct name *n = name_of(ask->name);
    ask->highest_token = n->highest;
    n->forcing += ask->verb == WORLD_FORCE;
    for (int i = 0; i < ask->n_names && ask->verb < WORLD_HOLDS; i++)
        said_of(name_of(ask->names[i]), app, ask);
}

/* ---- what is answered ---- */

/* Its owner has taken it back at another broker: this one only knows that it is gone. */
static bool is_elsewhere(const struct name *n, const struct belief *bl, const struct world_app *app)
{
    for (int i = 0; i < world.conf.n_brokers; i++) {
        if (&world.brokers[i] != app->broker && hold_at(&world.brokers[i], n, bl->owner))
            return true;
    }
    return false;
}

/* Whose connection is it? Not always that of the one who has just entered it. */
static int app_of(const struct hold *h)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected && h->session == &world.apps[i].session)
            return i;
    }
    return -1;
}

/* When the masters were asked for what is answered now: much may have happened since then. */
static int64_t asked_us(const struct hold *h, const struct world_app *app,
                        const struct world_ask *ask)
{
    return max(ask->said_us,
               h ? (h->since_ms - h->asked_before_ms) * 1000 - app->broker->local_us : 0);
}

/* Has it locked in one way, and now in the other one too? They are counted apart. */
static bool is_in_both_ways(struct belief *bl, const struct world_ask *ask)
{
    bool as_reader = strstr(ask->text, " SHARED") != NULL;
    bool both = bl->count > 0 && as_reader != bl->as_reader;
    bl->as_reader = as_reader;
    return both;
}

/* How often it is entered, less what is being given back as nobody was told of it. */
static int told_count(const struct hold *h)
{
    return (int)(h->count - h->untold);
}

static void take_grant(struct name *n, struct belief *bl, struct world_app *app,
                       const struct world_ask *ask, int64_t token, int64_t validity_ms)
{
    const struct hold *h = hold_at(app->broker, n, ask->owner);
    bool is_new = token != bl->token;
    bool locks = ask->verb == WORLD_LOCK || ask->verb == WORLD_MLOCK;
    bl->certain &=
        !is_elsewhere(n, bl, app); /* one of the two does not know yet that it has lost it */
    check_token(n, app, ask, token);
    if (token < bl->token ||
        token <= bl->void_token) { /* its owner has gone on elsewhere meanwhile */
        bl->certain = false;
        return;
    }
    if (locks && bl->certain && bl->asking == 0) {
        bl->count++;
        history_counts.reentries += bl->count > 1;
    } else if (locks || !bl->certain) {
        /* busy: a LOCK of a connection that has gone may be under way, and be taken back */
        bl->certain =
            h && !h->busy && h->token == token && bl->asking == 0 && !is_elsewhere(n, bl, app);
        bl->count = bl->certain ? told_count(h) : 0;
    }
    bl->certain &= asked_us(h, app, ask) > max(data_lost_us, bl->doubt_us) && !is_forced(n);
    if (locks && is_in_both_ways(bl, ask))
        bl->certain = false;
    if (asked_us(h, app, ask) <= max(n->forced_us, bl->given_up_us)) {
        make_void(bl, token); /* FORCEUNLOCK or an UNLOCK elsewhere has ended it, or may have */
        bl->certain = false;
    }
    if (bl->certain && h && !h->busy && h->token == token && bl->asking == 0 &&
        told_count(h) != bl->count)
        history_fail("%s has locked '%s' %d times, the broker says %d", bl->owner, n->name,
                     bl->count, told_count(h));
    history_counts.takeovers += is_new && ask->verb == WORLD_RENEW;
    if (is_new) {
        bl->void_token = max(bl->void_token, token - 1); /* what it had elsewhere has moved here */
        bl->app = h && h->token == token ? app_of(h) : -1;
        bl->watched = h && h->watched;
    }
    bl->token = token;
    bl->broker = app->broker->index;
    bl->until_us = sim_now_us() + validity_ms * 1000;
    bl->capped_unheard = false;
    lift_cap(n, bl);
    check_exclusion(n);
}

/* The highest token that this owner has here: told, or on its way to another of its connections. */
static int64_t kept_token(const struct name *n, const struct belief *bl)
{
    int64_t token = n->highest;
    for (int i = 0; i < world.conf.n_brokers; i++) {
        const struct hold *h = hold_at(&world.brokers[i], n, bl->owner);
        token = h ? max(token, h->token) : token;
    }
    return token;
}

/* UNLOCK has given its hold back here, has not found it on the masters, and has left once where its
 * owner had taken it meanwhile: it goes on here under another token, of which nobody was told. */
static void see_moved(const struct name *n, struct belief *bl, const struct world_app *app)
{
    const struct hold *h = hold_at(app->broker, n, bl->owner);
    if (!h || h->token <= bl->token || bl->broker != app->broker->index)
        return;
    make_void(bl, h->token - 1);
    bl->certain = false;
}

static void take_unlock(struct name *n, struct belief *bl, const struct world_app *app,
                        const char *reply)
{
    bool is_one = strcmp(reply, "1") == 0, is_zero = strcmp(reply, "0") == 0;
    bool not_held = strncmp(reply, "-NOTHELD", 8) == 0;
    bl->unlocking--;
    if (bl->count > 0 || is_one)
        bl->certain &=
            bl->broker == app->broker->index; /* one that has lost it may not know that yet */
    bl->certain &= !is_forced(n) && !(not_held && is_elsewhere(n, bl, app));
    if (bl->certain &&
        ((is_one && bl->count != 1) || (is_zero && bl->count < 2) || (not_held && bl->count > 0)))
        history_fail("%s has locked '%s' %d times, and UNLOCK says %s", bl->owner, n->name,
                     bl->count, reply);
    if (is_zero) {
        bl->count--;
        see_moved(n, bl, app);
        return;
    }
    bl->given_up_us = sim_now_us();
    make_void(bl, kept_token(n, bl));
    bl->count = 0;
    bl->certain &= (is_one || not_held) && bl->asking == 0; /* sure again at the next LOCK */
}

static void end_force(struct name *n)
{
    n->forced_us = sim_now_us();
    for (int i = 0; i < n->n_beliefs; i++) {
        make_void(&n->beliefs[i], kept_token(n, &n->beliefs[i]));
        n->beliefs[i].certain = false;
        n->beliefs[i].covered_us = 0;
    }
}

static void take_force(struct name *n)
{
    n->forcing--;
    end_force(n);
}

/* Its connection has gone, and the broker does it all the same. */
static void leave_force(struct name *n)
{
    take_force(n);
    n->forced_until_us = sim_now_us() + 4 * world.conf.broker.request_timeout_ms * 1000;
}

/* A promise that has run out, or nearly: the count may be gone. */
static void doubt_expired(struct world_app *app, struct name *n, struct belief *bl)
{
    const struct hold *h = hold_at(app->broker, n, bl->owner);
    int64_t until_us = bl->until_us;
    if (h && h->token == bl->token)
        until_us = max(until_us, h->deadline_ms * 1000 - app->broker->local_us);
    if (bl->count > 0 && sim_now_us() + 1000 >= until_us)
        bl->certain = false;
}

/* How many of several were released: of which ones is not said. */
static void take_unlocks(struct name *n, struct belief *bl)
{
    bl->unlocking--;
    make_void(bl, kept_token(n, bl));
    bl->count = 0;
    bl->certain = false;
}

/* token: for this name; 0: it was not granted. */
static void answered_of(struct name *n, struct world_app *app, const struct world_ask *ask,
                        const char *reply, int64_t token, int64_t validity_ms)
{
    struct belief *bl = belief_of(n, ask->owner);
    bl->asking--;
    bl->asyncs -= ask->tag[0] != '\0';
    bl->certain &= bl->straying == 0;
    doubt_expired(app, n, bl);
    if (ask->verb == WORLD_UNLOCK) {
        take_unlock(n, bl, app, reply);
    } else if (ask->verb == WORLD_MUNLOCK) {
        take_unlocks(n, bl);
    } else if (token) {
        take_grant(n, bl, app, ask, token, validity_ms);
    } else if (strcmp(reply, "nil") == 0) {
        history_counts.nils++;
        lift_cap(n, bl);
        /* it may have been granted, released behind, and told only when its time was over */
        bl->certain &= bl->count == 0 && bl->unlocking == 0;
    } else {
        /* the one error that says how often it is entered now */
        bl->certain &= strstr(reply, "still entered as often as before") != NULL;
        /* granted for less than it took to say so, or maybe under way yet */
        bl->capped_unheard |= strstr(reply, "has ended before this reply could leave") != NULL ||
                              strcmp(reply, "-CANCELLED") == 0;
        lift_cap(n, bl);
    }
    if (bl->shaken) {
        make_void(bl, token);
        bl->certain = false;
        bl->shaken = bl->asking > 0;
    }
}

/* "[token validity]" or "[[token token] validity]" */
static void parse_grant(const struct world_ask *ask, const char *reply, int64_t *tokens,
                        int64_t *validity_ms)
{
    bool is_many = ask->verb == WORLD_MLOCK;
    char text[WORLD_TEXT], *p = text + 1 + is_many;
    snprintf(text, sizeof text, "%s", reply);
    memset(tokens, 0, WORLD_NAMES * sizeof *tokens);
    if (is_unlock(ask) || reply[0] != '[')
        return;
    for (int i = 0; i < ask->n_names; i++)
        tokens[i] = strtoll(p, &p, 10);
    *validity_ms = strtoll(p + is_many, NULL, 10);
}

void history_answered(struct world_app *app, const struct world_ask *ask, const char *reply)
{
    int64_t tokens[WORLD_NAMES], validity_ms = 0;
    if (ask->verb == WORLD_FORCE)
        take_force(name_of(ask->name));
    if (ask->verb >= WORLD_HOLDS)
        return;
    parse_grant(ask, reply, tokens, &validity_ms);
    for (int i = 0; i < ask->n_names; i++)
        answered_of(name_of(ask->names[i]), app, ask, reply, tokens[i], validity_ms);
    history_counts.errors += reply[0] == '-' && strncmp(reply, "-NOTHELD", 8) != 0;
    history_counts.cancelled += strcmp(reply, "-CANCELLED") == 0;
}

void history_covered(const char *name, const char *owner, int64_t asked_us, int64_t until_us)
{
    struct name *n = name_of(name);
    if (is_forced(n) || asked_us <= n->forced_us)
        return;
    belief_of(n, owner)->covered_us = until_us;
    history_counts.grants++;
    history_counts.faulty_grants += history_faults > 0;
    check_exclusion(n);
}

int64_t history_uncovered(const char *name, const char *owner, int64_t until_us)
{
    struct belief *bl = belief_of(name_of(name), owner);
    int64_t was_us = bl->covered_us;
    bl->covered_us = min(was_us, until_us);
    return was_us;
}

/* ---- 7: memory ---- */

/* Tells whether a majority was not back soon enough for this broker (holdfast.ini(5), quarantine):
 * a master that has restarted again within its quarantine, and is not there again so long before
 * the end of what the holder was told. */
static bool came_too_late(const struct world_broker *wb, const struct hold *h)
{
    const struct world_conf *conf = &world.conf;
    const int64_t enough_us = (conf->broker.claim_timeout_ms + 600) * 1000,
                  end_us = sim_now_us() + (h->deadline_ms - world_local_ms(wb)) * 1000;
    int n_late = 0, n = conf->partitions ? 1 : conf->n_servers;

    for (int i = 0; i < wb->n_masters; i++)
        n_late += wb->again[i] && end_us - wb->back_us[i] < enough_us;
    return n_late > (n - 1) / 2;
}

/* A hold is lost. Where a lease shorter than usual, or MAXHOLD was asked for, too little may have
 * been left; and o0, who has connections at several brokers, may have moved it or given it back. */
static void check_kept(const struct name *n, const struct world_app *app, const char *owner,
                       const char *reason)
{
    if (!world.conf.nothing_lost || strcmp(owner, "o0") == 0)
        return;
    const struct hold *h = hold_at(app->broker, n, owner);
    bool was_usual = h && h->lease_ms >= world.conf.broker.lease_ms && h->end_ms == INT64_MAX;
    bool is_for_want = strcmp(reason, "no-quorum") == 0 || strcmp(reason, "gone") == 0;
    if (was_usual && is_for_want && !came_too_late(app->broker, h))
        history_fail("a restart has cost %s '%s': %s", owner, n->name, reason);
}

void history_pushed(struct world_app *app, const char *push)
{
    char what[16], name[16], reason[24];
    int64_t token;
    if (sscanf(push, "%15s %15s %" SCNd64 " %23s", what, name, &token, reason) != 4)
        history_fail("a push that is none: %s", push);
    struct name *n = name_of(name);
    for (int i = 0; i < n->n_grants; i++) {
        if (n->grants[i].token != token)
            continue;
        struct belief *bl = belief_of(n, n->grants[i].owner);
        if (strcmp(what, "renewed") == 0 && bl->token == token)
            bl->until_us = sim_now_us() + atoll(reason) * 1000;
        if (strcmp(what, "lost") == 0) {
            history_counts.lost++;
            check_kept(n, app, n->grants[i].owner, reason);
            make_void(bl, token);
            bl->certain = false;
        }
    }
}

/* ---- ends of connections ---- */

/* Nobody hears any more what becomes of it. */
static void dropped(struct name *n, const struct world_ask *ask)
{
    struct belief *bl = belief_of(n, ask->owner);
    bl->asking--;
    bl->asyncs -= ask->tag[0] != '\0';
    bl->certain = false;
    if (is_unlock(ask)) {
        bl->unlocking--;
        bl->lingering++;
        make_void(bl, kept_token(n, bl));
    }
    bl->capped_unheard |= !is_unlock(ask);
    bl->straying += ask->verb == WORLD_RENEW;
}

void history_closing(struct world_app *app, bool orderly)
{
    const struct hold *h;
    bool releases = world.conf.broker.on_disconnect == CONF_DISCONNECT_RELEASE ||
                    (orderly && world.conf.broker.on_disconnect == CONF_DISCONNECT_AUTO);
    LIST_FOREACH(h, &app->session.holds, of_session) {
        struct belief *bl = belief_of(name_of(h->lock->name), h->owner->text);
        bl->certain = false;
        if (releases && h->watched)
            make_void(bl, h->token);
        if (bl->app == app->index)
            bl->app = -1;
    }
    for (int i = 0; i < app->n_asks + app->n_asyncs; i++) {
        const struct world_ask *ask =
            i < app->n_asks ? &app->asks[i] : &app->asyncs[i - app->n_asks];
        if (ask->verb == WORLD_FORCE)
            leave_force(name_of(ask->name));
        for (int j = 0; j < ask->n_names && ask->verb < WORLD_HOLDS; j++)
            dropped(name_of(ask->names[j]), ask);
    }
    for (int i = 0; i < n_names; i++) {
        for (int j = 0; j < names[i].n_beliefs; j++) {
            if (names[i].beliefs[j].app == app->index)
                names[i].beliefs[j].app = -1;
        }
    }
}

void history_killing(struct world_broker *wb)
{
    (void)wb; /* its applications are closed one by one */
}

/* ---- UNLOCKs that nobody waits for any more ---- */

static bool is_by(const struct lock_request *r, const char *owner, bool renews)
{
    bool is_such =
        r && (renews ? r->verb == VERB_RENEW : r->verb == VERB_UNLOCK || r->verb == VERB_MUNLOCK);
    return is_such && strcmp(r->owner->text, owner) == 0;
}

/* Is an UNLOCK of this owner in these rounds, which release what it gives back? Then it may still
 * look for what its owner has got elsewhere meanwhile. */
static bool has_release(const struct round_list *rounds, const struct lock *l, const char *owner)
{
    const struct round *round;
    TAILQ_FOREACH(round, rounds, by_age) {
        const struct lock_request *r = round->script == SCRIPT_RELEASE ? round->arg : NULL;
        if (r && r->lock == l && is_by(r, owner, false))
            return true;
    }
    return false;
}

static bool has_request(struct world_broker *wb, const struct name *n, const char *owner,
                        bool renews)
{
    struct lock *l = wb->alive ? locktab_find(&wb->b.locks, n->name, strlen(n->name)) : NULL;
    const struct lock_request *r;
    const struct claim *c;
    if (l && !renews &&
        (has_release(&wb->b.rounds.asked, l, owner) ||
         has_release(&wb->b.rounds.decided[false], l, owner)))
        return true;
    if (!l || !l->queue)
        return false;
    LIST_FOREACH(c, &l->queue->claims, of_lock) {
        if (is_by(c->request, owner, renews) || is_by(c->releaser, owner, renews))
            return true;
    }
    TAILQ_FOREACH(r, &l->queue->deferred, queued) {
        if (is_by(r, owner, renews))
            return true;
    }
    return false;
}

static bool is_anywhere(const struct name *n, const char *owner, bool renews)
{
    for (int i = 0; i < world.conf.n_brokers; i++) {
        if (has_request(&world.brokers[i], n, owner, renews))
            return true;
    }
    return false;
}

/* What a connection said before it went is still done, maybe to what its owner got meanwhile. */
static void see_lingering(struct name *n, struct belief *bl)
{
    if (bl->straying > 0) {
        bl->certain = false;
        bl->shaken |= bl->asking > 0;
        bl->straying = is_anywhere(n, bl->owner, true) ? bl->straying : 0;
    }
    bl->shaken |= bl->lingering > 0 && bl->asking > 0;
    if (bl->lingering == 0 || is_anywhere(n, bl->owner, false))
        return;
    bl->lingering = 0;
    bl->doubt_us = sim_now_us();
    make_void(bl, kept_token(n, bl));
    bl->certain = false;
}

/* ---- 4: one end ---- */

/* Who has gone waits for nothing: he would be granted it for nobody. */
static void check_waiters(const struct name *n, struct world_broker *wb)
{
    struct lock *l = wb->alive ? locktab_find(&wb->b.locks, n->name, strlen(n->name)) : NULL;
    const struct lock_request *r;
    if (!l || !l->queue)
        return;
    TAILQ_FOREACH(r, &l->queue->waiters, queued) {
        if (!r->base.session && !r->item) /* one name of an MLOCK never has one */
            history_fail("a LOCK of %s, whose connection has gone, waits for '%s'", r->owner->text,
                         n->name);
    }
}

/* ---- 5: told in time ---- */

static void check_told(struct name *n, const struct belief *bl)
{
    const struct world_app *app = &world.apps[bl->app];
    if (!app->connected || !app->broker->alive || app->broker->paused || bl->asking > 0 ||
        bl->token <= bl->void_token)
        return;
    const struct hold *h = hold_at(app->broker, n, bl->owner);
    if (!h || h->token != bl->token || h->state == HOLD_LOST)
        history_fail("the hold of %s on '%s' under %" PRId64 " is over, and it was not told",
                     bl->owner, n->name, bl->token);
    if (h->session != &app->session)
        history_fail("the hold of %s on '%s' belongs to another connection", bl->owner, n->name);
    if (sim_now_us() > h->deadline_ms * 1000 - app->broker->local_us + 1000)
        history_fail("the hold of %s on '%s' is past its deadline, and it was not told", bl->owner,
                     n->name);
}

void history_turned(struct world_broker *wb)
{
    for (int i = 0; i < n_names; i++) {
        struct name *n = &names[i];
        if (n->forced_until_us && sim_now_us() >= n->forced_until_us) {
            n->forced_until_us = 0;
            end_force(n);
        }
        for (int j = 0; j < n->n_beliefs; j++)
            see_lingering(n, &n->beliefs[j]);
        check_exclusion(n);
        check_waiters(n, wb);
        for (int j = 0; j < n->n_beliefs; j++) {
            const struct belief *bl = &n->beliefs[j];
            if (bl->app >= 0 && bl->watched && world.apps[bl->app].broker == wb && !is_forced(n))
                check_told(n, bl);
        }
    }
}

void history_check_answered(void)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        const struct world_app *app = &world.apps[i];
        if (app->connected && app->n_asks > 0)
            history_fail("application %d still waits for the answer to: %s", i, app->asks[0].text);
        if (app->connected && app->n_asyncs > 0)
            history_fail("application %d still waits for the end of: %s", i, app->asyncs[0].text);
    }
}
