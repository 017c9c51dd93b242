/* Results of requests. What follows is broker_work.c's: the reply, and what waited for the end. */
#include "lock/finish.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "stats/stats.h"

void finish_as(struct broker *b, struct lock_request *r, enum lock_result result)
{
    assert(r->result == RESULT_NONE && b->phase != BROKER_IDLE); /* broker_end() follows */
    if (result == RESULT_NOT_HELD)
        r->text = util_format("NOTHELD '%s' is not held by this owner", r->lock->name);
    r->result = (uint8_t)result;
    r->base.failed = result == RESULT_ERROR || result == RESULT_NOT_HELD;
    due_cancel(&b->due, &r->due);
    if (r->leaves)
        TAILQ_REMOVE(&b->leavers, &r->base, link);
    r->leaves = false;
    work_finished(&b->work, r);
}

void finish_error(struct broker *b, struct lock_request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&r->text, fmt, args) < 0)
        util_die("out of memory");
    va_end(args);
    finish_as(b, r, RESULT_ERROR);
}

void finish_granted(struct broker *b, struct lock_request *r, struct hold *h)
{
    hold_ref_set(&r->hold, h);
    r->token = h->token;
    r->deadline_ms = h->deadline_ms;
    r->base.granted = r->verb == VERB_LOCK;
    finish_as(b, r, RESULT_GRANTED);
}

void finish_not_granted(struct broker *b, struct lock_request *r)
{
    if (r->wait_until_ms)
        stats.acquires_timeout++;
    else
        stats.acquires_busy++;
    finish_as(b, r, RESULT_NOT_GRANTED);
}

void finish_count(struct broker *b, struct lock_request *r, int64_t count)
{
    r->count = count;
    finish_as(b, r, RESULT_COUNT);
}
