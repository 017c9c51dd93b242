/*
 * Deliberate mistakes in the broker, as there are some in the scripts (fake_server.c): the linker
 * puts these functions before the real ones (--wrap), which they call unless SIM_MUTATION names
 * their mistake. So the daemon itself has no trace of them.
 *
 * What the judge finds when a rule is missing is that rule's test: see check_mutations.c.
 */
#include <stddef.h>
#include <stdio.h>

#include "dropin/call_private.h"
#include "dropin/exchange_private.h"
#include "dropin/messages.h"
#include "fake_server.h"
#include "lock/broker_state.h"
#include "lock/grave.h"
#include "lock/release.h"
#include "lock/renew.h"
#include "lock/replant.h"
#include "redis/place.h"
#include "redis/quorum.h"
#include "redis/round.h"

enum quorum_state __real_quorum_state(const struct quorum *);
enum quorum_state __wrap_quorum_state(const struct quorum *);
bool __real_quorum_agreed(const struct quorum *);
bool __wrap_quorum_agreed(const struct quorum *);
int64_t __real_quorum_validity_ms(int64_t lease_ms, int64_t sent_ms, int64_t now_ms,
                                  int64_t drift_ppm);
int64_t __wrap_quorum_validity_ms(int64_t lease_ms, int64_t sent_ms, int64_t now_ms,
                                  int64_t drift_ppm);
int64_t __real_renew_lost_ms(int64_t deadline_ms, int64_t lease_ms);
int64_t __wrap_renew_lost_ms(int64_t deadline_ms, int64_t lease_ms);
void __real_broker_op_text(const struct broker *, uint64_t op, char out[BROKER_OP_MAX + 1]);
void __wrap_broker_op_text(const struct broker *, uint64_t op, char out[BROKER_OP_MAX + 1]);
void __real_release_hold(struct broker *, struct lock *, const struct release_what *,
                         const struct ticket_place *, round_fn fn, void *arg, int64_t now_ms);
void __wrap_release_hold(struct broker *, struct lock *, const struct release_what *,
                         const struct ticket_place *, round_fn fn, void *arg, int64_t now_ms);
__typeof__(grave_tell) __real_grave_tell, __wrap_grave_tell;
__typeof__(round_new_life) __real_round_new_life, __wrap_round_new_life;
__typeof__(exchange_start) __real_exchange_start, __wrap_exchange_start;
__typeof__(run_job) __real_run_job, __wrap_run_job;
__typeof__(exchange_undo) __real_exchange_undo, __wrap_exchange_undo;
__typeof__(exchange_judge) __real_exchange_judge, __wrap_exchange_judge;
__typeof__(exchange_count_may_have_done) __real_exchange_count_may_have_done,
    __wrap_exchange_count_may_have_done;

__typeof__(replant_is_done) __real_replant_is_done, __wrap_replant_is_done;
__typeof__(place_complete_ms) __real_place_complete_ms, __wrap_place_complete_ms;

bool __wrap_replant_is_done(const struct broker *b, int i, int64_t now_ms)
{
    return fake_mutation == FAKE_SIGNS_FIRST || __real_replant_is_done(b, i, now_ms);
}

int64_t __wrap_place_complete_ms(const struct place *p, int64_t memory_ms)
{
    return fake_mutation == FAKE_SHORT_MEMORY ? 0 : __real_place_complete_ms(p, memory_ms);
}

/* A majority of those that could be asked. Every quorum is part of a round. */
enum quorum_state __wrap_quorum_state(const struct quorum *q)
{
    const struct round *r =
        (const struct round *)((const char *)q - offsetof(struct round, quorum));
    int asked = 0;
    if (fake_mutation != FAKE_QUORUM_OF_CONNECTED)
        return __real_quorum_state(q);
    for (int i = 0; i < q->n; i++)
        asked += r->votes[i].state != VOTE_UNSENT;
    if (asked > 0 && __builtin_popcount(q->yes) >= quorum_need(asked))
        return QUORUM_WON;
    return __real_quorum_state(q);
}

/* No second round: the largest token counts, whoever knows of it. */
bool __wrap_quorum_agreed(const struct quorum *q)
{
    return fake_mutation == FAKE_NO_COMMIT || __real_quorum_agreed(q);
}

/* Counted from the answers, not from before the questions. */
int64_t __wrap_quorum_validity_ms(int64_t lease_ms, int64_t sent_ms, int64_t now_ms,
                                  int64_t drift_ppm)
{
    if (fake_mutation == FAKE_VALID_FROM_ANSWER)
        sent_ms = now_ms;
    return __real_quorum_validity_ms(lease_ms, sent_ms, now_ms, drift_ppm);
}

/* Told when it is over. */
int64_t __wrap_renew_lost_ms(int64_t deadline_ms, int64_t lease_ms)
{
    return fake_mutation == FAKE_TOLD_LATE ? deadline_ms + 500
                                           : __real_renew_lost_ms(deadline_ms, lease_ms);
}

/* Two operations in a row have the same id. */
void __wrap_broker_op_text(const struct broker *b, uint64_t op, char out[BROKER_OP_MAX + 1])
{
    __real_broker_op_text(b, fake_mutation == FAKE_IDS_TWICE ? op / 2 : op, out);
}

/* What nobody waits for the answer to, an undo above all, is not sent. */
void __wrap_release_hold(struct broker *b, struct lock *l, const struct release_what *hold,
                         const struct ticket_place *place, round_fn fn, void *arg, int64_t now_ms)
{
    if (fake_mutation != FAKE_NO_UNDO || fn)
        __real_release_hold(b, l, hold, place, fn, arg, now_ms);
}

/* What was ended for another broker is not told to a master that begins a new life. */
void __wrap_grave_tell(struct broker *b, int i, int64_t now_ms)
{
    if (fake_mutation != FAKE_NO_GRAVES)
        __real_grave_tell(b, i, now_ms);
}

/* What a master said in its former life is a vote. */
void __wrap_round_new_life(struct rounds *b, int i)
{
    if (fake_mutation != FAKE_FORMER_LIFE)
        __real_round_new_life(b, i);
}

/* ---- drop-in ---- */

static exchange_fn on_end_of_guess;

static void end_as_guessed(struct exchange_item *items, int n, enum exchange_end end,
                           const char *reason, void *arg, int64_t now_ms)
{
    bool is_refused = end == EXCHANGE_REFUSED;
    on_end_of_guess(items, n, is_refused ? EXCHANGE_CONFIRMED : end, reason, arg, now_ms);
}

/* A run is part of its call. */
void __wrap_run_job(struct run_tools *tools, const struct job *job,
                    const struct truth *const truths[], struct run *run, int64_t now_ms)
{
    struct dropin_call *c = (struct dropin_call *)((char *)run - offsetof(struct dropin_call, run));
    struct store_reply *p = &run->published;
    __real_run_job(tools, job, truths, run, now_ms);
    if (fake_mutation != FAKE_PUBLISH_FIRST)
        return;
    for (int i = 0; i + 1 < p->n_nodes; i += 2)
        messages_publish(c->dropin->messages, store_text(p, &p->nodes[i]), p->nodes[i].len,
                         store_text(p, &p->nodes[i + 1]), p->nodes[i + 1].len, now_ms);
    store_reply_clear(p);
}

void __wrap_exchange_start(struct broker *b, struct exchange_item *items, int n, exchange_fn fn,
                           void *arg, int64_t now_ms)
{
    if (fake_mutation == FAKE_REPLY_OF_GUESS) {
        on_end_of_guess = fn;
        fn = end_as_guessed;
    }
    __real_exchange_start(b, items, n, fn, arg, now_ms);
}

void __wrap_exchange_undo(struct exchange_part *p, bool pursues, int64_t now_ms)
{
    if (fake_mutation != FAKE_NEVER_PUT_BACK || pursues)
        __real_exchange_undo(p, pursues, now_ms);
}

static bool is_later_truth(const struct truth *a, const struct truth *b)
{
    return a->token > b->token || (a->token == b->token && a->number > b->number);
}

void __wrap_exchange_judge(const struct exchange_part *p, struct truth *out)
{
    const struct truth *latest = NULL;
    __real_exchange_judge(p, out);
    if (fake_mutation != FAKE_LATEST_IS_TRUTH || out->kind != TRUTH_SPLIT)
        return;
    for (int i = 0; i < p->exchange->broker->rounds.n; i++) {
        const struct truth *t = p->said[i].truth;
        if (p->said[i].kind == SAID_OTHER && t->kind == TRUTH_DROPIN &&
            (!latest || is_later_truth(t, latest)))
            latest = t;
    }
    if (latest)
        truth_copy(out, latest);
}

/* Of several masters. */
int __wrap_exchange_count_may_have_done(const struct exchange_part *p)
{
    int n = __real_exchange_count_may_have_done(p);
    return fake_mutation == FAKE_REFUSED_BY_ANSWERS && n > 1 ? 1 : n;
}
