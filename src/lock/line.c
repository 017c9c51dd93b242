/*
 * Tickets and calls. Which waiter of this broker is meant by a call is queue's business.
 *
 * Invariant: with several masters only the agreed one's line decides whose turn it is; the lines of
 * the others are kept alike as well as may be, for the day when another one is agreed on.
 */
#include "lock/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lock/broker_state.h"
#include "redis/args.h"
#include "stats/stats.h"

static bool is_alone(const struct broker *b)
{
    return b->rounds.n == 1;
}

static void put_ticket(struct broker *b, struct args *it, uint64_t number)
{
    char ticket[BROKER_TICKET_MAX + 1];
    broker_ticket_text(b, number, ticket);
    args_str(it, ticket);
}

void line_words(struct broker *b, const struct lock *l, const struct line_place *place,
                struct line_words *out, int64_t now_ms)
{
    int judge = -1;
    *out = (struct line_words){"-", "keep", "-"};
    if (!place->where)
        return;
    broker_ticket_text(b, place->number, out->ticket);
    out->place = place->where;
    if (place->number && !is_alone(b))
        judge = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    if (judge >= 0)
        out->judge = master_status(b->rounds.masters[judge], now_ms)->run_id;
}

int64_t line_length(struct broker *b, const struct lock *l, const struct round *r, int64_t now_ms)
{
    int agreed = is_alone(b) ? 0 : rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    int64_t most = 0;
    if (agreed >= 0 && r->votes[agreed].state == VOTE_ANSWERED)
        return r->votes[agreed].extra;
    for (int i = 0; i < r->quorum.n; i++) {
        if (r->votes[i].state == VOTE_ANSWERED && r->votes[i].extra > most)
            most = r->votes[i].extra;
    }
    return most;
}

void line_join(struct broker *b, const struct lock *l, uint64_t number, int64_t now_ms)
{
    struct args *it = args_begin(l->name, l->name_len);
    put_ticket(b, it, number);
    for (int i = 0; i < b->rounds.n; i++)
        round_tell(&b->rounds, i, SCRIPT_LINE, it, now_ms);
}

static void pass(struct broker *b, const struct lock *l, int i, bool has_ticket, uint64_t number,
                 bool calls, int64_t now_ms)
{
    struct args *it = args_begin(l->name, l->name_len);
    if (has_ticket)
        put_ticket(b, it, number);
    else
        args_str(it, "-");
    args_str(it, calls ? "call" : "wait");
    round_tell(&b->rounds, i, SCRIPT_PASS, it, now_ms);
}

void line_leave(struct broker *b, const struct lock *l, uint64_t number, int64_t now_ms)
{
    int agreed = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    stats.turns_passed++;
    for (int i = 0; i < b->rounds.n; i++)
        pass(b, l, i, true, number, i == agreed, now_ms);
}

void line_call_next(struct broker *b, const struct lock *l, int64_t now_ms)
{
    int agreed = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    stats.turns_passed++;
    if (agreed >= 0)
        pass(b, l, agreed, false, 0, true, now_ms);
}

/* ---- release ---- */

static void settle(struct round *r)
{
    struct lock *l = r->about;
    r->about = NULL;
    if (l)
        broker_put(broker_of_round(r), l);
}

static void on_released_everywhere(struct round *r, void *arg, int64_t now_ms)
{
    (void)arg;
    (void)now_ms;
    settle(r);
}

/* A majority is free, and the agreed master knows who is next: he finds the way open. */
static void on_release_vote(struct round *r, int i, const struct master_answer *answer,
                            int64_t now_ms)
{
    struct broker *b = broker_of_round(r);
    const struct lock *l = r->about;
    (void)i;
    (void)answer;
    if (!l || quorum_state(&r->quorum) != QUORUM_WON)
        return;
    int agreed = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    if (agreed >= 0 && r->votes[agreed].open)
        return; /* its answer is still to come */
    const struct vote *v = agreed >= 0 ? &r->votes[agreed] : NULL;
    if (v && v->state == VOTE_ANSWERED && v->code >= 0 && v->value > 0)
        pass(b, l, agreed, false, 0, true, now_ms);
    settle(r);
}

void line_add_part(struct args *it, struct lock_part part, const struct owner *owner)
{
    char text[LOCK_PART_MAX + 1];
    args_text(it, text, lock_part_text(part, owner, text));
}

/* With all that release.lua can be told, in memory that is used again: an operation of another
 * broker, and an owner, are of any length. */
static void add_release(struct args *it, struct broker *b, const struct lock *l,
                        const struct line_hold *hold, const struct line_place *place,
                        const char *next, int64_t now_ms)
{
    static struct buf what;
    struct line_words words;
    char part[LOCK_PART_MAX + 1];
    size_t part_len = lock_part_text(hold->part, hold->owner, part);
    int64_t tomb_ms = hold->origin == LINE_FOREIGN ? broker_tomb_ms(b) : 0;
    line_words(b, l, place ? place : &(struct line_place){0}, &words, now_ms);
    buf_consume(&what, buf_len(&what));
    buf_printf(&what, "%s %" PRId64 ",%s,%s,%s,", hold->op, tomb_ms, words.ticket, words.place,
               next);
    buf_append(&what, part, part_len); /* any bytes */
    args_text(it, buf_head(&what), buf_len(&what));
}

void line_release(struct broker *b, struct lock *l, const struct line_hold *hold,
                  const struct line_place *place, round_fn fn, void *arg, int64_t now_ms)
{
    struct args *it = args_begin(l->name, l->name_len);
    /* who stays first himself needs no call: he asks again */
    bool calls = !place || strcmp(place->where, "front") != 0;
    bool is_usual = is_alone(b) && !place && hold->part.kind == LOCK_EXCLUSIVE;
    it->early = is_usual && hold->origin == LINE_GRANTED;
    if (is_usual && hold->origin != LINE_FOREIGN)
        args_str(it, hold->op);
    else
        add_release(it, b, l, hold, place, calls && is_alone(b) ? "call" : "wait", now_ms);
    struct round *r = round_release(&b->rounds, it, hold->lease_ms, fn, arg, now_ms);
    if (!calls || is_alone(b))
        return;
    broker_use(l);
    r->about = l;
    r->on_vote = on_release_vote;
    r->on_done = on_released_everywhere;
}
