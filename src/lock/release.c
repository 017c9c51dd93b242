/*
 * Releases. With several masters the agreed one calls up the next in the line when a majority is
 * free and that one has answered, so that nobody is called too early.
 */
#include "lock/release.h"

#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "redis/args.h"

static void let_lock_go(struct round *r)
{
    struct lock *l = r->about;
    r->about = NULL;
    if (l)
        work_unref(&broker_of_round(r)->work, l);
}

static void on_released_everywhere(struct round *r, void *arg, int64_t now_ms)
{
    (void)arg, (void)now_ms;
    let_lock_go(r);
}

/* A majority is free, and the agreed master knows who is next: he finds the way open. */
static void on_release_vote(struct round *r, int i, const struct master_answer *answer,
                            int64_t now_ms)
{
    struct broker *b = broker_of_round(r);
    const struct lock *l = r->about;
    (void)i, (void)answer;
    if (!l || quorum_state(&r->quorum) != QUORUM_WON)
        return;
    int agreed = rounds_agreed(&b->rounds, l->name, l->name_len, now_ms);
    if (agreed >= 0 && r->votes[agreed].open)
        return; /* its answer is still to come */
    const struct vote *v = agreed >= 0 ? &r->votes[agreed] : NULL;
    if (v && v->state == VOTE_ANSWERED && v->code != RELEASE_OTHER && v->value > 0)
        tickets_call(b, l, agreed, now_ms);
    let_lock_go(r);
}

static void append_number(struct buf *b, int64_t n)
{
    char digits[20];
    buf_append(b, digits, (size_t)(util_put_digits(digits, (uint64_t)n) - digits));
}

/* With all that release.lua can be told, in memory that is used again: an operation of another
 * broker, and an owner, are of any length. */
static void add_release(struct args *it, struct broker *b, const struct lock *l,
                        const struct release_what *hold, const struct ticket_place *place,
                        const char *next, int64_t now_ms)
{
    static struct buf what;
    struct tickets_words words;
    char part[LOCK_PART_MAX + 1];
    size_t part_len = lock_part_text(hold->part, hold->owner, part);
    int64_t tomb_ms = hold->origin == RELEASE_FOREIGN ? broker_tomb_ms(b) : 0;
    tickets_words(b, l, place ? place : &(struct ticket_place){0}, &words, now_ms);
    buf_consume(&what, buf_len(&what));
    buf_append_str(&what, hold->op);
    buf_append_str(&what, " tomb=");
    append_number(&what, tomb_ms);
    buf_append_str(&what, " ticket=");
    buf_append_str(&what, words.ticket);
    buf_append_str(&what, " place=");
    buf_append_str(&what, words.place);
    buf_append_str(&what, " next=");
    buf_append_str(&what, next);
    buf_append_str(&what, " part=");
    buf_append(&what, part, part_len); /* any bytes */
    args_text(it, buf_head(&what), buf_len(&what));
}

/* What of several masters has ended is the hold that was to be ended, unless its owner has taken it
 * elsewhere meanwhile: then some have it under another operation, and the others are waited for. */
static bool is_clear(const struct round *r)
{
    int ended = 0, other = 0;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        ended += v->state == VOTE_ANSWERED && v->code == RELEASE_ENDED;
        other += v->state == VOTE_ANSWERED && v->code == RELEASE_OTHER;
    }
    bool is_known = !ended || !other || other >= quorum_need(r->quorum.n);
    return quorum_state(&r->quorum) == QUORUM_WON && is_known;
}

void release_hold(struct broker *b, struct lock *l, const struct release_what *hold,
                  const struct ticket_place *place, round_fn fn, void *arg, int64_t now_ms)
{
    struct args *it = args_begin(l->name, l->name_len);
    /* who stays first himself needs no call: he asks again */
    bool calls = !place || strcmp(place->where, "front") != 0;
    bool is_usual = broker_has_one_master(b) && !place && hold->part.kind == LOCK_EXCLUSIVE;
    it->early = is_usual && hold->origin == RELEASE_GRANTED;
    if (is_usual && hold->origin != RELEASE_FOREIGN)
        args_str(it, hold->op);
    else
        add_release(it, b, l, hold, place, calls && broker_has_one_master(b) ? "call" : "wait",
                    now_ms);
    struct round *r = round_release(&b->rounds, it, hold->lease_ms, fn, arg, now_ms);
    r->is_enough = is_clear;
    if (!calls || broker_has_one_master(b))
        return;
    work_ref(l);
    r->about = l;
    r->on_vote = on_release_vote;
    r->on_done = on_released_everywhere;
}
