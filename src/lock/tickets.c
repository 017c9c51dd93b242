/*
 * Tickets and calls. Which waiter of this broker is meant by a call is queue's business.
 *
 * Invariant: with several masters only the agreed one's line decides whose turn it is; the lines of
 * the others are kept alike as well as may be, for the day when another one is agreed on.
 */
#include "lock/tickets.h"

#include "lock/broker_state.h"
#include "redis/args.h"
#include "stats/stats.h"

static void put_ticket(struct broker *b, struct args *it, uint64_t number)
{
    char ticket[BROKER_TICKET_MAX + 1];
    broker_ticket_text(b, number, ticket);
    args_str(it, ticket);
}

void tickets_words(struct broker *b, const struct lock *l, const struct ticket_place *place,
                   struct tickets_words *out, int64_t now_ms)
{
    int judge = -1, first = rounds_first(&b->rounds, l->name, l->name_len);
    *out = (struct tickets_words){"-", "keep", "-"};
    if (!place->where)
        return;
    broker_ticket_text(b, place->number, out->ticket);
    out->place = place->where;
    if (place->number && !broker_has_one_master(b))
        judge = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    if (judge >= 0)
        out->judge = master_status(b->rounds.masters[first + judge], now_ms)->run_id;
}

int64_t tickets_length(struct broker *b, const struct lock *l, const struct round *r,
                       int64_t now_ms)
{
    int agreed =
        broker_has_one_master(b) ? 0 : rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    int64_t most = 0;
    if (agreed >= 0 && r->votes[agreed].state == VOTE_ANSWERED)
        return r->votes[agreed].extra;
    for (int i = 0; i < r->quorum.n; i++) {
        if (r->votes[i].state == VOTE_ANSWERED && r->votes[i].extra > most)
            most = r->votes[i].extra;
    }
    return most;
}

void tickets_join(struct broker *b, const struct lock *l, uint64_t number, int64_t now_ms)
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

void tickets_call(struct broker *b, const struct lock *l, int i, int64_t now_ms)
{
    pass(b, l, i, false, 0, true, now_ms);
}

void tickets_leave(struct broker *b, const struct lock *l, uint64_t number, int64_t now_ms)
{
    int agreed = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    stats.turns_passed++;
    for (int i = 0; i < b->rounds.n; i++)
        pass(b, l, i, true, number, i == agreed, now_ms);
}

void tickets_call_next(struct broker *b, const struct lock *l, int64_t now_ms)
{
    int agreed = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    stats.turns_passed++;
    if (agreed >= 0)
        tickets_call(b, l, agreed, now_ms);
}
