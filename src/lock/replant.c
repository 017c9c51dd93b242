/*
 * One sweep for each master: a cursor over the table of locks, and the plants under way. A plant
 * refers to its hold until it is answered. What answers mean is done in the turn, where holds may
 * end.
 *
 * Invariant: a sweep that has been FINISHED went over all locks after the votes of the former life
 * were void, and each hold that it found was planted, or has ended. What was granted or prolonged
 * since then has a majority without these votes.
 */
#include "lock/replant.h"

#include <string.h>

#include "base/pool.h"
#include "lock/broker_state.h"
#include "lock/grave.h"
#include "lock/hold_private.h"
#include "redis/undelivered.h"

/* Plants under way to one master: grants and renewals wait behind them for some milliseconds. And
 * what one turn does at most. */
enum { OPEN_MAX = 256, PLANTS_TURN = 128, BUCKETS_TURN = 4096, PAUSE_MS = 50 };
enum { NOT_ANSWERED = -1 };

/* One plant under way. */
struct replant_call {
    struct master_call call; /* first */
    STAILQ_ENTRY(replant_call) link;
    struct broker *broker;
    struct hold_ref ref;
    uint32_t sweep;
    uint8_t master;
    int8_t code; /* enum replant_code, or NOT_ANSWERED */
};

/* ---- one plant ---- */

static void on_planted(struct master_call *call, const struct master_answer *answer, int64_t now_ms)
{
    struct replant_call *c = (struct replant_call *)call;
    (void)now_ms;
    c->code = answer->result == MASTER_ANSWERED ? (int8_t)answer->values[0] : NOT_ANSWERED;
    STAILQ_INSERT_TAIL(&c->broker->replants[c->master].answered, c, link);
}

static struct replant_call *call_new(struct broker *b, int i, struct hold *h)
{
    struct replant_call *c = pool_get(sizeof *c);
    c->call.on_answer = on_planted;
    c->broker = b;
    c->master = (uint8_t)i;
    c->sweep = b->replants[i].sweep;
    hold_ref_set(&c->ref, h);
    b->n_plants++;
    return c;
}

static void call_free(struct replant_call *c)
{
    hold_ref_clear(&c->ref);
    c->broker->n_plants--;
    pool_put(c, sizeof *c);
}

static void free_calls(struct replant_calls *calls)
{
    struct replant_call *c;
    while ((c = STAILQ_FIRST(calls))) {
        STAILQ_REMOVE_HEAD(calls, link);
        call_free(c);
    }
}

/* Plants the hold of this call, if its holder may rely on it still. Puts the call off when the
 * master takes no more. */
static void plant(struct broker *b, struct replant_call *c, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[c->master];
    const struct hold *h = c->ref.hold;
    struct master_item item;
    if (!h || now_ms > h->deadline_ms) {
        call_free(c);
        return;
    }
    args_bytes(hold_plant_args(b, h, now_ms), &item);
    bool is_asked =
        !r->blocked && !rounds_veto(&b->rounds) &&
        master_ask(b->rounds.masters[c->master], SCRIPT_REPLANT, &item, &c->call, now_ms) == 0;
    r->blocked = !is_asked;
    if (r->blocked)
        STAILQ_INSERT_TAIL(&r->failed, c, link);
    else
        r->n_open++;
}

static void end_sweep(struct broker_replant *r)
{
    free_calls(&r->failed);
    r->state = REPLANT_IDLE;
}

/* Does what the answers to the plants mean. */
static void take_answers(struct broker *b, int i, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[i];
    struct replant_call *c;
    while ((c = STAILQ_FIRST(&r->answered))) {
        struct hold *h = c->ref.hold;
        bool is_current = c->sweep == r->sweep;
        STAILQ_REMOVE_HEAD(&r->answered, link);
        r->n_open--;
        if (is_current && c->code == REPLANT_NONE)
            end_sweep(r); /* its quarantine is over, or was none of a new life */
        if (is_current && h && r->state != REPLANT_IDLE &&
            (c->code == REPLANT_REFUSED || c->code == NOT_ANSWERED)) {
            STAILQ_INSERT_TAIL(&r->failed, c, link);
            continue;
        }
        if (is_current && h && c->code == REPLANT_NEWER)
            hold_moved(b, h, LOST_MOVED, now_ms);
        call_free(c);
    }
}

/* ---- the sweep ---- */

struct sweeper {
    struct broker *b;
    int i, group; /* the master, and the first of its group */
    int left;     /* plants of this turn */
    int64_t now_ms;
};

static void plant_lock(void *arg, struct lock *l)
{
    struct sweeper *s = arg;
    struct hold *h;
    if (LIST_EMPTY(&l->holds) || rounds_first(&s->b->rounds, l->name, l->name_len) != s->group)
        return;
    LIST_FOREACH(h, &l->holds, of_lock) {
        s->left--;
        plant(s->b, call_new(s->b, s->i, h), s->now_ms);
    }
}

static void begin_sweep(struct broker *b, int i, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[i];
    free_calls(&r->failed);
    grave_tell(b, i, now_ms);
    r->state = REPLANT_SWEEPING;
    r->sweep++;
    r->seen_all = r->blocked = false;
    r->cursor = 0;
}

/* Goes on with the locks until the master takes no more or the turn has done enough. */
static void sweep(struct broker *b, int i, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[i];
    struct sweeper s = {b, i, rounds_group(&b->rounds, i), PLANTS_TURN, now_ms};
    for (int n = 0; n < BUCKETS_TURN && !r->seen_all && !r->blocked; n++) {
        if (s.left <= 0 || r->n_open >= OPEN_MAX)
            return;
        r->cursor = locktab_scan(&b->locks, r->cursor, plant_lock, &s);
        r->seen_all = r->cursor == 0;
    }
    if (r->n_open > 0 || (!r->seen_all && !r->blocked))
        return;
    bool is_over = r->seen_all && STAILQ_EMPTY(&r->failed);
    r->state = is_over ? REPLANT_FINISHED : REPLANT_PAUSED;
    r->resume_ms = now_ms + PAUSE_MS;
}

/* After a pause: what failed is planted once more, and the sweep goes on where it was. */
static void resume(struct broker *b, int i, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[i];
    struct replant_calls failed = STAILQ_HEAD_INITIALIZER(failed);
    struct replant_call *c;
    STAILQ_CONCAT(&failed, &r->failed);
    r->state = REPLANT_SWEEPING;
    r->blocked = false;
    while ((c = STAILQ_FIRST(&failed))) {
        STAILQ_REMOVE_HEAD(&failed, link);
        plant(b, c, now_ms);
    }
}

/* ---- lives ---- */

static void begin_life(struct broker *b, int i, const struct master_status *s, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[i];
    round_new_life(&b->rounds, i);
    strcpy(r->life.text, s->life);
    end_sweep(r);
    if (s->state == MASTER_QUARANTINE)
        begin_sweep(b, i, now_ms);
}

static void look(struct broker *b, int i, int64_t now_ms)
{
    const struct master_status *s = master_status(b->rounds.masters[i], now_ms);
    struct broker_replant *r = &b->replants[i];
    bool is_joined = s->state == MASTER_ACTIVE || s->state == MASTER_QUARANTINE;
    b->n_quarantined -= r->quarantined;
    r->quarantined = s->state == MASTER_QUARANTINE;
    b->n_quarantined += r->quarantined;
    if (is_joined && strcmp(s->life, r->life.text) != 0)
        begin_life(b, i, s, now_ms);
    else if (s->state == MASTER_ACTIVE)
        end_sweep(r);
    else if (!r->quarantined && r->state == REPLANT_SWEEPING)
        r->state = REPLANT_PAUSED;
}

void replant_on_state(struct broker *b, int i, int64_t now_ms)
{
    look(b, i, now_ms);
}

/* ---- the turn ---- */

/* A server that loses its data in quarantine goes on in another life and in the same state. */
static void turn_of(struct broker *b, int i, int64_t now_ms)
{
    struct broker_replant *r = &b->replants[i];
    take_answers(b, i, now_ms);
    if (!r->quarantined)
        return;
    look(b, i, now_ms);
    if (r->quarantined && r->state == REPLANT_PAUSED && now_ms >= r->resume_ms)
        resume(b, i, now_ms);
    if (r->quarantined && r->state == REPLANT_SWEEPING)
        sweep(b, i, now_ms);
}

void replant_turn(struct broker *b, int64_t now_ms)
{
    for (int i = 0; i < b->rounds.n_all && !b->rounds.closed; i++)
        turn_of(b, i, now_ms);
}

void replant_fini(struct broker *b)
{
    for (int i = 0; i < ROUNDS_MASTERS_MAX; i++) {
        free_calls(&b->replants[i].answered);
        free_calls(&b->replants[i].failed);
    }
}

void replant_init(struct broker *b)
{
    for (int i = 0; i < ROUNDS_MASTERS_MAX; i++) {
        STAILQ_INIT(&b->replants[i].answered);
        STAILQ_INIT(&b->replants[i].failed);
    }
}

int64_t replant_next_ms(const struct broker *b)
{
    int64_t next_ms = INT64_MAX;
    for (int i = 0; b->n_quarantined > 0 && i < b->rounds.n_all; i++) {
        const struct broker_replant *r = &b->replants[i];
        bool sweeps = r->state == REPLANT_SWEEPING && !r->seen_all && !r->blocked;
        if (!r->quarantined)
            continue;
        if (!STAILQ_EMPTY(&r->answered) || (sweeps && r->n_open < OPEN_MAX))
            return 0;
        if (r->state == REPLANT_PAUSED && r->resume_ms < next_ms)
            next_ms = r->resume_ms;
    }
    return next_ms;
}

bool replant_is_done(const struct broker *b, int i, int64_t now_ms)
{
    const struct broker_replant *r = &b->replants[i];
    const struct master_status *s = master_status(b->rounds.masters[i], now_ms);
    return r->state == REPLANT_FINISHED && r->n_open == 0 && s->state == MASTER_QUARANTINE &&
           strcmp(s->life, r->life.text) == 0 && undelivered_is_empty(b->rounds.undelivered[i]) &&
           !undelivered_has_changes(b->rounds.undelivered[i]) && grave_has_all(b, now_ms) &&
           now_ms >= b->inherited_until_ms && now_ms >= b->exchanges_until_ms;
}

int64_t replant_left(const struct broker *b, int i)
{
    return b->replants[i].n_open;
}
