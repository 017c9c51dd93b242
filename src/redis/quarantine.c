/*
 * Looks at every master in quarantine, asks the others, activates. Keeps nothing but since when
 * each quarantine is over; a step that was lost on the way is simply done again the next time.
 */
#include "redis/quarantine.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "redis/master.h"
#include "redis/round.h"

enum {
    LOOK_FIRST_MS = 10, /* after a quarantine has ended: for answers to what was asked */
    LOOK_MS = 250,      /* and later, less and less often, up to this */
    RETURN_MS = 5000,   /* how long masters that are on their way back are waited for */
    VETOED_MS = 500     /* how often quarantines are prolonged while there is a veto */
};

/* What the other masters can say. */
struct others {
    int active, fresh; /* fresh: active, and asked after the end of the quarantine */
    int coming;        /* not reachable now, but they may come back at any time */
    int quarantined;   /* with time left */
    int64_t high;      /* of the fresh ones */
    int64_t any_high;  /* of all, whenever it was said */
};

static void look_at(const struct master_status *s, int64_t over_ms, struct others *o)
{
    if (s->high > o->any_high)
        o->any_high = s->high;
    if (s->state == MASTER_QUARANTINE) {
        o->quarantined += s->quarantine_left_ms > 0;
    } else if (s->state != MASTER_ACTIVE) {
        o->coming += s->state != MASTER_REFUSED;
    } else {
        o->active++;
        if (s->high_asked_ms >= over_ms) {
            o->fresh++;
            o->high = s->high > o->high ? s->high : o->high;
        }
    }
}

static struct others look_around(struct quarantine *r, int i, int64_t now_ms)
{
    struct rounds *b = r->rounds;
    struct others o = {0};
    int first = rounds_group(b, i);

    for (int j = first; j < first + b->n; j++) {
        const struct master_status *s = master_status(b->masters[j], now_ms);
        if (j != i)
            look_at(s, r->masters[i].over_ms, &o);
        else if (s->high > o.any_high)
            o.any_high = s->high;
    }
    return o;
}

static void ask_active(struct quarantine *r, int i, int64_t now_ms)
{
    struct rounds *b = r->rounds;
    int first = rounds_group(b, i);

    for (int j = first; j < first + b->n; j++) {
        const struct master_status *s = master_status(b->masters[j], now_ms);
        if (j != i && s->state == MASTER_ACTIVE && s->high_asked_ms < r->masters[i].over_ms)
            master_ask_high(b->masters[j]);
    }
}

static void activate(struct quarantine *r, int i, int64_t base, const char *why)
{
    struct quarantine_master *rm = &r->masters[i];
    struct master *m = r->rounds->masters[i];

    if (!rm->told)
        log_info("quarantine", "master %s: %s, tokens go on above %" PRId64 " (%s)", master_name(m),
                 rm->trusted ? "trusted by hand" : "its quarantine is over", base, why);
    rm->told = true;
    master_activate(m, base, rm->trusted);
}

/* Case 2 of the header. */
static void activate_by_clock(struct quarantine *r, int i, const struct others *o, int64_t now_ms)
{
    int64_t waited_ms = now_ms - r->masters[i].over_ms;

    if (!r->masters[i].trusted && o->quarantined > 0)
        return;
    if ((o->coming > 0 || o->fresh < o->active) && waited_ms < RETURN_MS)
        return;
    int64_t base = rounds_base(r->rounds, now_ms);
    if (o->any_high > base)
        base = o->any_high;
    activate(r, i, base,
             r->rounds->n == 1 ? "from what is known and the clock"
                               : "too few others are active: from what is known and the clock");
}

static void look_after_master(struct quarantine *r, int i, int64_t now_ms)
{
    int n = r->rounds->n, need = n - quorum_need(n) + 1;
    struct others o = look_around(r, i, now_ms);

    if (o.fresh >= need) {
        activate(r, i, o.high, "as the others say");
        return;
    }
    ask_active(r, i, now_ms);
    if (o.active < need)
        activate_by_clock(r, i, &o, now_ms);
}

/* When this one is to be looked at again. A master that was asked a moment too early has said how
 * much is left, and is asked again when that is over. */
static int64_t next_look_ms(struct quarantine_master *rm, int64_t left_ms, int64_t now_ms)
{
    int64_t wait_ms = LOOK_FIRST_MS << rm->looks;
    if (left_ms > 0 && !rm->trusted)
        return now_ms + left_ms;
    if (wait_ms >= LOOK_MS)
        return now_ms + LOOK_MS;
    rm->looks++;
    return now_ms + wait_ms;
}

/* While there is a veto, now and then, so that little is missing if we end; and once when it is
 * over. */
static bool prolong_all(struct quarantine *r, int64_t now_ms)
{
    bool was_vetoed = r->vetoed;

    r->vetoed = rounds_veto(r->rounds);
    if (!r->vetoed && !was_vetoed)
        return false;
    for (int i = 0; i < r->rounds->n_all; i++) {
        if (!r->masters[i].trusted)
            master_prolong(r->rounds->masters[i]);
    }
    r->next_ms = now_ms + VETOED_MS;
    return true;
}

void quarantine_turn(struct quarantine *r, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;

    if (now_ms < r->next_ms || prolong_all(r, now_ms))
        return;
    for (int i = 0; i < r->rounds->n_all; i++) {
        struct quarantine_master *rm = &r->masters[i];
        const struct master_status *s = master_status(r->rounds->masters[i], now_ms);
        if (s->state != MASTER_QUARANTINE) {
            *rm = (struct quarantine_master){0};
            rollcall_over(&r->roll, i);
            continue;
        }
        if (rollcall_is_on(&r->roll))
            next_ms = util_min(next_ms, rollcall_turn(&r->roll, i, now_ms));
        if (s->quarantine_left_ms > 0 && !rm->trusted) {
            *rm = (struct quarantine_master){0};
        } else {
            if (!rm->over_ms)
                rm->over_ms = now_ms;
            look_after_master(r, i, now_ms);
        }
        int64_t look_ms = next_look_ms(rm, s->quarantine_left_ms, now_ms);
        next_ms = look_ms < next_ms ? look_ms : next_ms;
    }
    r->next_ms = next_ms;
}

const char *quarantine_trust(struct quarantine *r, const char *name, int64_t now_ms)
{
    struct rounds *b = r->rounds;

    for (int i = 0; i < b->n_all; i++) {
        if (strcmp(master_name(b->masters[i]), name) != 0)
            continue;
        if (master_status(b->masters[i], now_ms)->state != MASTER_QUARANTINE)
            return "it is not in quarantine";
        r->masters[i] = (struct quarantine_master){.trusted = true};
        r->next_ms = 0;
        return NULL;
    }
    return "there is no master of this name";
}

void quarantine_set_done(struct quarantine *r, int i, bool done)
{
    if (rollcall_set_done(&r->roll, i, done))
        r->next_ms = 0;
}

void quarantine_on_state(struct quarantine *r)
{
    r->next_ms = 0;
}

int64_t quarantine_next_ms(const struct quarantine *r)
{
    return r->next_ms;
}

void quarantine_init(struct quarantine *r, struct rounds *b)
{
    *r = (struct quarantine){.rounds = b};
    rollcall_init(&r->roll, b);
}
