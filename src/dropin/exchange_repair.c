/*
 * Sees to it that a hold stands on all masters, and not only on the majority that has confirmed it:
 * that one could not lose another master. Of each hold that some master was seen not to have, or
 * whose last change some master has not confirmed, there is a repair:
 *
 *   noted --> WAITS --one that lacks it can be reached--> ASKS --whole, ended, over--> gone
 *               ^                                           |
 *               +------------- it lacks it still -----------+
 *
 * A repair looks at the lock by an exchange, which makes what it finds confirmed good where it is
 * missing, as every other one does. Two masters need more than that:
 *
 * - One that shows a hold that is nobody's: it was seen there before, longer ago than any request
 *   can be late, and each time a majority had this one. Whoever asked for it was refused, or has
 *   ended it, and what should have told this master so was lost with its broker.
 * - One that shows nothing, of a hold that another broker has changed last, for as long: that
 *   broker does not see to it, so the hold is written anew as it is, by an exchange.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/util.h"
#include "dropin/exchange_private.h"
#include "lock/due.h"

enum { REPAIRS_MAX = 10000, FIRST_PAUSE_MS = 100, PAUSE_MAX_MS = 5000, AWAY_MS = 1000 };

/* A hold of nobody, at one master, in the way of the confirmed one. */
struct rival {
    char op[DROPIN_OP_MAX + 1]; /* "": there is none */
    int64_t since_ms;
};

struct repair {
    UT_hash_handle hh;
    struct due due;
    struct broker *broker;
    struct truth truth; /* of which a majority has said it */
    struct exchange_item item;
    int64_t pause_ms;
    int64_t absent_ms; /* since when a hold of another broker is not there; 0: it is */
    uint16_t lacking;  /* bit i: master i does not have it, as far as is known */
    bool asks;
    bool is_over; /* to be freed when it does not ask any more */
    struct rival rivals[QUORUM_MASTERS_MAX];
    size_t name_len;
    char key[]; /* the address of the broker, then the name */
};

static struct repair *repairs;

/* ---- the table ---- */

static void write_key(char *key, struct broker *b, const struct lock *l)
{
    memcpy(key, &b, sizeof b);
    memcpy(key + sizeof b, l->name, l->name_len);
}

static struct repair *find_repair(const struct exchange_part *p)
{
    char key[sizeof(struct broker *) + LOCK_NAME_MAX];
    struct repair *e;
    if (!repairs)
        return NULL;
    write_key(key, p->exchange->broker, p->lock);
    HASH_FIND(hh, repairs, key, sizeof e->broker + p->lock->name_len, e);
    return e;
}

static void free_repair(struct repair *e)
{
    truth_fini(&e->truth);
    truth_fini(&e->item.truth);
    free(e);
}

static void end_repair(struct repair *e)
{
    HASH_DEL(repairs, e);
    due_cancel(&e->broker->due, &e->due);
    e->is_over = true;
    if (!e->asks)
        free_repair(e);
}

static void on_repair_due(struct broker *b, struct due *due, int64_t now_ms);

/* Makes a repair; NULL: there are too many, so this hold is left to whoever looks at it next. */
static struct repair *new_repair(const struct exchange_part *p)
{
    if (HASH_COUNT(repairs) >= REPAIRS_MAX)
        return NULL;
    size_t name_len = p->lock->name_len;
    struct repair *e = util_alloc(sizeof *e + sizeof e->broker + name_len);
    e->broker = p->exchange->broker;
    e->name_len = name_len;
    e->due.fn = on_repair_due;
    write_key(e->key, e->broker, p->lock);
    HASH_ADD_KEYPTR(hh, repairs, e->key, sizeof e->broker + name_len, e);
    return e;
}

void exchange_close(struct broker *b)
{
    struct repair *e, *next;
    HASH_ITER(hh, repairs, e, next)
    {
        if (e->broker == b)
            end_repair(e);
    }
}

/* ---- asking ---- */

static void wait_first(struct repair *e, int64_t now_ms)
{
    e->pause_ms = FIRST_PAUSE_MS;
    due_at(&e->broker->due, &e->due, now_ms + e->pause_ms);
}

static void wait_longer(struct repair *e, int64_t now_ms)
{
    e->pause_ms = e->pause_ms * 2 < PAUSE_MAX_MS ? e->pause_ms * 2 : PAUSE_MAX_MS;
    due_at(&e->broker->due, &e->due, now_ms + e->pause_ms);
}

/* Waits until a master that lacks the hold can be reached. */
static void wait_for_masters(struct repair *e, int64_t now_ms)
{
    e->pause_ms = FIRST_PAUSE_MS;
    due_at(&e->broker->due, &e->due, now_ms + AWAY_MS);
}

static void on_repaired(struct exchange_item *items, int n, enum exchange_end end,
                        const char *reason, void *arg, int64_t now_ms)
{
    struct repair *e = arg;
    const struct truth *t = &items[0].truth;
    (void)n, (void)reason;
    e->asks = false;
    if (e->is_over) {
        free_repair(e);
        return;
    }
    if (end == EXCHANGE_REFUSED && t->kind != TRUTH_DROPIN && t->kind != TRUTH_SPLIT) {
        end_repair(e);
        return;
    }
    if (end != EXCHANGE_FAILED && t->kind == TRUTH_DROPIN)
        truth_copy(&e->truth, t);
    if (end == EXCHANGE_REFUSED && t->kind == TRUTH_DROPIN)
        wait_first(e, now_ms);
    else
        wait_longer(e, now_ms);
}

/* Returns whether a master that lacks the hold can be reached: in quarantine it can be planted. */
static bool can_be_reached(const struct repair *e, int64_t now_ms)
{
    const struct rounds *r = &e->broker->rounds;
    int first = rounds_first(r, e->key + sizeof e->broker, e->name_len);
    for (int i = 0; i < r->n && !r->closed; i++) {
        if (!(e->lacking >> i & 1))
            continue;
        const struct master_status *s = master_status(r->masters[first + i], now_ms);
        if ((s->state == MASTER_ACTIVE && !s->stalled) || s->state == MASTER_QUARANTINE)
            return true;
    }
    return false;
}

static void ask_again(struct repair *e, int64_t now_ms)
{
    struct broker *b = e->broker;
    const char *name = e->key + sizeof e->broker;
    bool is_left = e->absent_ms && now_ms - e->absent_ms >= broker_tomb_ms(b);
    struct truth told = e->item.truth;
    e->item = (struct exchange_item){.lock = locktab_get(&b->locks, name, e->name_len),
                                     .guess = &e->truth,
                                     .what = is_left ? EXCHANGE_IN_PLACE : EXCHANGE_LOOK,
                                     .text = truth_bytes(&e->truth),
                                     .len = truth_len(&e->truth),
                                     .lease_ms = e->truth.expires_ms - now_ms,
                                     .keeps_time = true,
                                     .truth = told};
    e->asks = true;
    exchange_start(b, &e->item, 1, on_repaired, e, now_ms);
}

static void on_repair_due(struct broker *b, struct due *due, int64_t now_ms)
{
    struct repair *e = (struct repair *)((char *)due - offsetof(struct repair, due));
    (void)b;
    if (e->truth.expires_ms <= now_ms)
        end_repair(e);
    else if (can_be_reached(e, now_ms))
        ask_again(e, now_ms);
    else
        wait_for_masters(e, now_ms);
}

/* ---- what the masters have said ---- */

/* Returns the masters that lack the hold. One that has not answered stays as it was known to a
 * look; a change it has missed. */
static uint16_t find_lacking(const struct exchange_part *p, uint16_t before)
{
    bool looks = p->what == EXCHANGE_LOOK;
    uint16_t lacking = 0;
    for (int i = 0; i < p->exchange->broker->rounds.n; i++) {
        uint8_t kind = p->said[i].kind;
        bool has_it = kind == SAID_DONE || (looks && kind == SAID_AS_GUESS);
        if (looks && kind == SAID_NOTHING)
            has_it = !(before >> i & 1);
        lacking |= (uint16_t)(!has_it << i);
    }
    return lacking;
}

/* Returns whether a master shows another hold, not the confirmed one or a version of it. */
static bool shows_rival(const struct repair *e, const struct exchange_said *said)
{
    const struct truth *t = said->truth;
    return said->kind == SAID_OTHER && t->kind == TRUTH_DROPIN &&
           (strcmp(t->birth, e->truth.birth) != 0 || t->number >= e->truth.number);
}

static void note_rival(struct repair *e, struct exchange_part *p, int i, int64_t now_ms)
{
    const struct exchange_said *said = &p->said[i];
    struct rival *rival = &e->rivals[i];
    bool is_rival = shows_rival(e, said);
    if (said->kind == SAID_NOTHING)
        return;
    if (is_rival && strcmp(said->truth->op, rival->op) == 0) {
        if (now_ms - rival->since_ms >= broker_tomb_ms(e->broker))
            exchange_heal_over_rival(p, i, rival->op, now_ms);
        return;
    }
    strcpy(rival->op, is_rival ? said->truth->op : "");
    rival->since_ms = now_ms;
}

/* Notes since when a master shows nothing where only the hold's own broker may plant it. */
static void note_absent(struct repair *e, const struct exchange_part *p, int64_t now_ms)
{
    bool is_absent = false;
    for (int i = 0; i < e->broker->rounds.n; i++)
        is_absent |= p->said[i].kind == SAID_OTHER && p->said[i].truth->kind == TRUTH_FREE;
    if (!is_absent || broker_has_op(e->broker, e->truth.op))
        e->absent_ms = 0;
    else if (!e->absent_ms)
        e->absent_ms = now_ms;
}

void exchange_repair_note(struct exchange_part *p, int64_t now_ms)
{
    if (!repairs && exchange_count_done(p) == p->exchange->broker->rounds.n)
        return;
    struct repair *e = find_repair(p);
    uint16_t lacking = find_lacking(p, e ? e->lacking : 0);
    bool is_hold =
        p->what != EXCHANGE_END && (p->what != EXCHANGE_LOOK || p->guess.kind == TRUTH_DROPIN);
    if (exchange_is_superseded(p) || (!e && (!lacking || !is_hold)))
        return;
    if (!lacking || !is_hold) {
        end_repair(e);
        return;
    }
    if (!e && !(e = new_repair(p)))
        return;
    exchange_result(p, &e->truth);
    e->lacking = lacking;
    note_absent(e, p, now_ms);
    for (int i = 0; i < e->broker->rounds.n; i++)
        note_rival(e, p, i, now_ms);
    if (!e->pause_ms)
        wait_first(e, now_ms);
}
