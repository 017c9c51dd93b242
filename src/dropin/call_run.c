/*
 * The way of a call, between its turn and its reply (the drawing is in call.h).
 *
 * Invariants: a call that is not finished waits, asks or pauses; only one that writes is alone in
 * its lines; an answer of the masters counts only for the first in all its lines, as one before it
 * might still write; what a call gives or publishes comes of a run over truths that a majority has
 * confirmed, or that say together that nothing is to be done.
 *
 * In memory stands what the masters have said last of a name, unless the end of a hold was told
 * while the answer was under way, or a call failed and nobody knows what it has done.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dropin/call_private.h"
#include "lock/broker_state.h"
#include "stats/stats.h"

/* How long a call pauses when votes were split: others that took part in that ask again too; and
 * when its lock is just ending: longer than the clocks differ in counting. */
enum { PAUSE_MS = 2 };

const char call_closed[] = "DRAINING this broker is going down: ask another one";

/* ---- runs ---- */

static void run_over_truths(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    const struct truth *truths[KEYS_MAX];
    for (int i = 0; i < c->job.n_names; i++)
        truths[i] = &c->slots[i].truth;
    d->tools.ahead_ms = d->broker->rounds.clock.wall_offset_ms;
    run_job(&d->tools, &c->job, truths, &c->run, now_ms);
    for (int i = 0; i < c->job.n_names; i++)
        c->run.names[i].touched = c->run.names[i].touched || c->slots[i].watched;
    stats.drop_in_runs++;
}

/* ---- exchanges ---- */

static void on_exchanged(struct exchange_item *items, int n, enum exchange_end, const char *reason,
                         void *arg, int64_t now_ms);

static void fill_item(struct dropin_call *c, int i)
{
    const struct run_name *name = &c->run.names[i];
    struct exchange_item *item = &c->items[c->n_items];
    item->lock = c->slots[i].seat.spot->lock;
    item->guess = &c->slots[i].truth;
    item->what = (enum exchange_what)name->what;
    item->text = buf_head(&name->text);
    item->len = buf_len(&name->text);
    item->lease_ms = name->lease_ms;
    item->wants_time = name->read_time;
    item->keeps_time = name->keeps_time;
    c->item_slot[c->n_items++] = (uint8_t)i;
}

static void ask_masters_of_call(struct dropin_call *c, int64_t now_ms)
{
    c->n_items = 0;
    for (int i = 0; i < c->job.n_names; i++) {
        c->slots[i].is_told = false;
        if (c->run.names[i].touched)
            fill_item(c, i);
    }
    c->at_once = c->doubted = false;
    c->asked_ms = now_ms;
    c->state = CALL_ASKS;
    c->asks++;
    stats.drop_in_exchanges++;
    exchange_start(c->dropin->broker, c->items, c->n_items, on_exchanged, c, now_ms);
}

/* ---- turns ---- */

static bool may_go(const struct dropin_call *c, bool writes)
{
    bool may = true;
    for (int i = 0; i < c->job.n_names; i++)
        may = may && turns_may_go(&c->slots[i].seat, writes);
    return may;
}

static bool is_first_in_lines(const struct dropin_call *c)
{
    return may_go(c, true);
}

static void wait(struct dropin_call *c)
{
    c->state = CALL_WAITS;
    for (int i = 0; i < c->job.n_names; i++)
        turns_wait(&c->dropin->turns, &c->slots[i].seat);
}

static void go(struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++)
        turns_go(&c->dropin->turns, &c->slots[i].seat, c->run.writes);
}

/* ---- the loop ---- */

/* Returns whether the call has been tried often or long enough: its client must get a reply in
 * time. */
static bool is_given_up(const struct dropin_call *c, int64_t now_ms)
{
    return c->asks == DROPIN_ASKS ||
           now_ms - c->submitted_ms > c->dropin->broker->conf.request_timeout_ms;
}

static void try_again_later(struct dropin_call *c)
{
    static const char *const why[] = {"is being changed by others", "is waited for by others"};
    char *error = util_format("TRYAGAIN '%.*s' %s: nothing was done", (int)c->job.names[0].len,
                              c->job.names[0].ptr, why[c->asks == 0]);
    stats.drop_in_again++;
    call_fail(c, error);
    free(error);
}

/* Returns whether it is held, as was told, until a time that has passed. */
static bool is_over(const struct truth *t, int64_t now_ms)
{
    bool ends = t->kind == TRUTH_DROPIN || t->kind == TRUTH_NATIVE || t->kind == TRUTH_PLAIN;
    return ends && t->expires_ms <= now_ms;
}

/* What has ended since it was told, or may have, is guessed to be free: its masters say whether. A
 * run that takes what it finds free must never take it over from a hold that lasts a moment more.
 */
static void forget_ended(struct dropin_call *c, int64_t now_ms)
{
    for (int i = 0; i < c->job.n_names; i++) {
        struct slot *slot = &c->slots[i];
        if (!is_over(&slot->truth, now_ms))
            continue;
        truth_set(&slot->truth, TRUTH_FREE);
        slot->is_told = false;
    }
}

static void refuse_or_finish(struct dropin_call *c, int64_t now_ms)
{
    if (!call_wait(c, now_ms))
        call_finish_run(c, now_ms);
}

/* Runs over the truths, and asks the masters whether they are true. */
static void run_and_ask(struct dropin_call *c, int64_t now_ms)
{
    forget_ended(c, now_ms);
    if (c->watch && c->job.is_multi && !call_watch_is_met(c)) {
        call_finish_aborted(c);
        return;
    }
    run_over_truths(c, now_ms);
    if (c->run.writes &&
        !is_first_in_lines(c)) { /* only a run over a guess: its turn is still to come */
        c->writes = true;
        c->state = CALL_WAITS;
        return;
    }
    go(c);
    c->state = CALL_WAITS;
    bool is_unaskable = call_is_unaskable(c);
    const char *why_not = call_why_not_taken(c);
    if (why_not)
        call_fail(c, why_not);
    else if (call_is_answered(c) || (is_unaskable && !c->run.writes) ||
             call_is_refused_from_memory(c, now_ms))
        refuse_or_finish(c, now_ms);
    else if (is_unaskable || is_given_up(c, now_ms))
        try_again_later(c);
    else
        ask_masters_of_call(c, now_ms);
}

static void guess(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->place) /* it is its turn */
            truth_set(&c->slots[i].truth, TRUTH_FREE);
        else
            memory_guess(&d->memory, c->slots[i].seat.spot, &c->slots[i].truth, now_ms);
        c->slots[i].is_told = false;
    }
}

/* Starts a waiting call if its turn has come in all its lines. */
static void start(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    if (!may_go(c, c->writes))
        return;
    c->asks = 0;
    guess(c, now_ms);
    if (d->closed)
        call_fail(c, call_closed);
    else if (is_given_up(c, now_ms))
        try_again_later(c);
    else if (c->job.is_multi && c->watch && !call_watch_guess(c, now_ms))
        call_finish_aborted(c);
    else
        run_and_ask(c, now_ms);
}

static void join_lines(struct dropin_call *c, int64_t now_ms)
{
    c->state = CALL_WAITS;
    c->submitted_ms = now_ms;
    for (int i = 0; i < c->job.n_names; i++)
        turns_join(&c->slots[i].seat, spot_get(c->dropin->broker, &c->slots[i].name), c);
}

void call_begin(struct dropin_call *c, int64_t now_ms)
{
    call_make_slots(c);
    join_lines(c, now_ms);
    if (c->job.is_multi && c->watch)
        call_watch_bind(c);
    start(c, now_ms);
}

void call_start_again(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    join_lines(c, now_ms);
    start(c, now_ms);
    call_next(d, now_ms);
    call_tell_finished(d);
}

void call_next(struct dropin *d, int64_t now_ms)
{
    struct dropin_call *c;
    while ((c = turns_next(&d->turns)))
        start(c, now_ms);
}

/* ---- answers ---- */

/* Notes in memory what the masters have said; forgets the name where nobody knows. */
static void remember_truth(struct dropin_call *c, enum exchange_end end)
{
    struct memory *m = &c->dropin->memory;
    for (int j = 0; j < c->n_items; j++) {
        struct spot *s = c->slots[c->item_slot[j]].seat.spot;
        const struct truth *t = &c->items[j].truth;
        if (end == EXCHANGE_FAILED || c->doubted)
            memory_forget(s);
        else
            memory_put(m, s, t, c->asked_ms);
    }
}

/* Takes what the masters have said as the truths of the next run. */
static void take_truths(struct dropin_call *c, bool confirmed)
{
    c->at_once = confirmed;
    for (int j = 0; j < c->n_items; j++) {
        struct slot *slot = &c->slots[c->item_slot[j]];
        const struct truth *t = &c->items[j].truth;
        if (t->kind == TRUTH_UNKNOWN)
            continue; /* the masters say nothing of it: it stays as it was guessed */
        truth_copy(&slot->truth, t);
        slot->is_told = true;
    }
}

static bool is_split(const struct dropin_call *c)
{
    for (int j = 0; j < c->n_items; j++) {
        if (c->items[j].truth.kind == TRUTH_SPLIT)
            return true;
    }
    return false;
}

/* Returns whether the masters still have a lock that is over by our clock: they count in whole
 * milliseconds, too. */
static bool is_ending(const struct dropin_call *c, int64_t now_ms)
{
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->slots[i].is_told && is_over(&c->slots[i].truth, now_ms))
            return true;
    }
    return false;
}

/* Somebody has what this call wanted to take, and nobody knows who: it is refused, if it is one
 * that takes what is free and leaves alone what is not. A script may let its holder enter again:
 * it is not told that somebody else has it. */
static bool refuse_as_held(struct dropin_call *c, int64_t now_ms)
{
    bool took = true;
    for (int j = 0; j < c->n_items; j++) {
        int i = c->item_slot[j];
        took =
            took && (c->items[j].truth.kind != TRUTH_SPLIT || c->run.names[i].what == EXCHANGE_NEW);
    }
    if (!took || !is_split(c) || c->job.script)
        return false;
    run_over_truths(c, now_ms);
    return !c->run.writes && c->run.reply.nodes[0].kind != STORE_ERROR;
}

static void on_call_pause_over(struct broker *b, struct due *due, int64_t now_ms)
{
    (void)b;
    struct dropin_call *c = (struct dropin_call *)((char *)due - offsetof(struct dropin_call, due));
    struct dropin *d = c->dropin;
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->slots[i].truth.kind == TRUTH_SPLIT)
            memory_guess(&d->memory, c->slots[i].seat.spot, &c->slots[i].truth, now_ms);
        c->slots[i].is_told = false;
    }
    run_and_ask(c, now_ms);
    call_next(d, now_ms);
    call_tell_finished(d);
}

/* Lets a call pause whose votes were split, or whose lock is just ending. */
static void pause_call(struct dropin_call *c, int64_t now_ms)
{
    struct broker *b = c->dropin->broker;
    uint64_t most_ms = (uint64_t)PAUSE_MS << c->asks;
    c->state = CALL_PAUSES;
    c->due.fn = on_call_pause_over;
    due_at(&b->due, &c->due, now_ms + PAUSE_MS + (int64_t)util_jitter(&b->rng, most_ms));
}

static void on_refused(struct dropin_call *c, int64_t now_ms)
{
    take_truths(c, false);
    if (!is_split(c) && !is_ending(c, now_ms))
        run_and_ask(c, now_ms);
    else if (!is_given_up(c, now_ms))
        pause_call(c, now_ms);
    else if (refuse_as_held(c, now_ms))
        refuse_or_finish(c, now_ms);
    else
        try_again_later(c);
}

/* Returns whether the run is a look that has read a time: its reply must come of the time that the
 * masters have told. */
static bool must_run_again(const struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->run.names[i].read_time && !c->run.writes)
            return true;
    }
    return false;
}

static void note_taken(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->run.names[i].what != EXCHANGE_NEW)
            continue;
        c->base.granted = true;
        stats.drop_in_long += c->run.names[i].lease_ms > d->broker->conf.max_lease_ms;
        if (c->base.session)
            memory_note_taker(c->slots[i].seat.spot, c->base.session, now_ms);
    }
}

static void on_confirmed(struct dropin_call *c, int64_t now_ms)
{
    bool is_again = must_run_again(c);
    if (is_again || c->job.is_watch)
        take_truths(c, true);
    if (is_again) {
        run_and_ask(c, now_ms);
        return;
    }
    note_taken(c, now_ms);
    if (c->run.writes)
        call_finish_run(c, now_ms);
    else
        refuse_or_finish(c, now_ms);
}

static void on_exchanged(struct exchange_item *items, int n, enum exchange_end end,
                         const char *reason, void *arg, int64_t now_ms)
{
    struct dropin_call *c = arg;
    struct dropin *d = c->dropin;
    (void)items;
    assert(c->state == CALL_ASKS && n == c->n_items);
    remember_truth(c, end);
    c->state = CALL_WAITS;
    if (end == EXCHANGE_FAILED)
        call_fail(c, reason);
    else if (!is_first_in_lines(c))
        wait(c);
    else if (end == EXCHANGE_CONFIRMED)
        on_confirmed(c, now_ms);
    else if (d->closed)
        call_fail(c, call_closed);
    else
        on_refused(c, now_ms);
    call_next(d, now_ms);
    call_tell_finished(d);
}
