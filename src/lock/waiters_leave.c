/*
 * How a request gets out of the queue: with the lock it is only taken out, without it gets nil or
 * an error here. Who leaves without a lock gives his place in the line between brokers away, and
 * the broker its own when nobody is left for whom it stands there.
 *
 * It does not know why somebody is refused; except for the end of WAIT, whose timer ends here, the
 * callers decide that. A request that has left is in no list and no timer of the queue any more.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/finish.h"
#include "lock/queue.h"
#include "lock/tickets.h"
#include "lock/waiters_private.h"
#include "session/user.h"
#include "stats/stats.h"

void waiters_remove(struct broker *b, struct lock_request *r)
{
    struct lock_queue *q = r->lock->queue;
    assert(r->place == PLACE_WAITING);
    TAILQ_REMOVE(&q->waiters, r, queued);
    due_cancel(&b->due, &r->due); /* it may go on for a while: a take-over enters once more */
    r->place = PLACE_NOWHERE;
    if (r->async)
        LIST_REMOVE(r, of_owner);
    q->n_tries -= r->wait_until_ms == 0;
    q->n_to_ask -= !r->owner_asked;
    q->n_waiters--;
    b->n_waiters--;
    if (q->upgrader == r)
        q->upgrader = NULL;
    if (r->claim)
        r->claim->request = NULL;
    r->claim = NULL;
    request_unpark(&r->base);
    queue_undefer(&b->work, r->lock); /* what was said behind it */
}

/* Takes a request out of the queue: those behind it are asked for. */
static void leave_queue(struct broker *b, struct lock_request *r)
{
    struct lock *l = r->lock;
    bool was_first = TAILQ_FIRST(&l->queue->waiters) == r;
    waiters_remove(b, r);
    const struct lock_request *first = waiters_first(l->queue);
    if (was_first && first && !waiters_same_question(r->want, first->want))
        due_cancel(&b->due, &l->queue->retry); /* what he wants has not been asked */
}

/* Takes the ticket of a request that is out of the queue, or that of the broker, out of the line.
 */
static void give_place_away(struct broker *b, const struct lock_request *r)
{
    struct lock_queue *q = r->lock->queue;
    if (r->fair && (r->lined || r->turn)) {
        tickets_leave(b, r->lock, r->ticket, b->now_ms);
    } else if (TAILQ_EMPTY(&q->waiters) && (q->lined || q->turn) && q->n_claims == 0 &&
               !q->outside) {
        tickets_leave(b, r->lock, 0, b->now_ms);
        q->lined = q->turn = false;
    }
}

static void get_out_of_line(struct broker *b, struct lock_request *r)
{
    leave_queue(b, r);
    give_place_away(b, r);
}

void waiters_leave(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (r->place == PLACE_WAITING)
        leave_queue(b, r);
    give_place_away(b, r);
    waiters_run(b, r->lock, now_ms);
}

void waiters_leave_later(struct broker *b, struct lock_request *r)
{
    leave_queue(b, r);
    r->leaves = true;
    TAILQ_INSERT_TAIL(&b->leavers, &r->base, link);
}

void waiters_refuse(struct broker *b, struct lock_request *r, const char *failure)
{
    get_out_of_line(b, r);
    if (failure) {
        stats.acquires_no_quorum++;
        finish_error(b, r, "%s; '%s' was not taken", failure, r->lock->name);
        return;
    }
    finish_not_granted(b, r);
}

char *waiters_not_permitted(const struct lock_request *r, const struct lock *l)
{
    const struct session *s = r->base.session;
    if (!s || !r->base.waited || user_may_lock(s->user, l->name, l->name_len))
        return NULL;
    stats.auth_failures_permission++;
    const char *name = s->user ? s->user->name : "nobody";
    return util_format("NOPERM user '%s' may not take '%s' any more: its rights have changed while "
                       "it waited (users: %s.allow, %s.names)",
                       name, l->name, name, name);
}

void waiters_refuse_with(struct broker *b, struct lock_request *r, char *error)
{
    get_out_of_line(b, r);
    finish_error(b, r, "%s", error);
    free(error);
}

bool waiters_may_be_granted(struct broker *b, struct lock_request *r)
{
    char *error = waiters_not_permitted(r, r->lock);
    if (error)
        waiters_refuse_with(b, r, error);
    return !error;
}

/* Two tasks that share a client must not both get in. */
void waiters_held_error(struct broker *b, struct lock_request *r, const struct lock *l)
{
    stats.acquires_held++;
    finish_error(b, r,
                 "HELD '%s' is held by this connection already; name an OWNER to enter it again",
                 l->name);
}

void waiters_kind_error(struct broker *b, struct lock_request *r, const struct lock *l,
                        struct lock_part in_use)
{
    char is[64], wanted[64];
    stats.acquires_kind++;
    finish_error(b, r, "KIND '%s' is held as %s; it cannot be %s before that has ended", l->name,
                 lock_part_words(in_use, is, sizeof is),
                 lock_part_words(r->want, wanted, sizeof wanted));
}

void waiters_refuse_kind(struct broker *b, struct lock_request *r, struct lock_part in_use)
{
    get_out_of_line(b, r);
    waiters_kind_error(b, r, r->lock, in_use);
}

void waiters_refuse_tries(struct broker *b, struct lock *l, const struct claim *c,
                          const char *failure)
{
    struct lock_queue *q = l->queue;
    struct lock_request *r, *next;
    for (r = TAILQ_FIRST(&q->waiters); r && q->n_tries > 0; r = next) {
        next = TAILQ_NEXT(r, queued);
        if (r->wait_until_ms == 0 && !r->claim && (!c || waiters_same_question(c->part, r->want)) &&
            (failure || !waiters_may_own(b, l, r)))
            waiters_refuse(b, r, failure);
    }
}

void waiters_on_wait_over(struct broker *b, struct due *due, int64_t now_ms)
{
    struct lock_request *r =
        (struct lock_request *)((char *)due - offsetof(struct lock_request, due));
    struct lock *l = r->lock;
    if (r->claim && r->claim->takeover) { /* the hold may be here already: its end decides */
        r->wait_until_ms = 0;
        l->queue->n_tries++;
        return;
    }
    waiters_refuse(b, r, l->queue->failure);
    waiters_run(b, l, now_ms); /* those behind it may be able to share what it could not */
}

int waiters_turn_away(struct broker *b, struct lock *l, const char *error, int most)
{
    struct lock_request *r;
    int n = 0;
    while (n < most && l->queue && (r = TAILQ_FIRST(&l->queue->waiters))) {
        waiters_remove(b, r);
        finish_error(b, r, "%s", error);
        n++;
    }
    return n;
}
