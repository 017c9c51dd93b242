/*
 * The small things that every flow needs. Nothing here decides anything.
 */
#include "lock/broker_state.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/util.h"
#include "redis/args.h"

/* "<broker><separator><number in base 36>" */
static void numbered(const struct broker *b, char separator, uint64_t number, char *out)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char text[16];
    char *end = text + sizeof text, *p = end;
    do {
        *--p = digits[number % 36];
        number /= 36;
    } while (number);
    size_t id_len = strlen(b->id);
    memcpy(out, b->id, id_len);
    out[id_len] = separator;
    memcpy(out + id_len + 1, p, (size_t)(end - p));
    out[id_len + 1 + (size_t)(end - p)] = '\0';
}

struct broker *broker_of_round(const struct round *r)
{
    return (struct broker *)((char *)r->rounds - offsetof(struct broker, rounds));
}

void broker_op_text(const struct broker *b, uint64_t op, char out[BROKER_OP_MAX + 1])
{
    numbered(b, '.', op, out);
}

void broker_ticket_text(const struct broker *b, uint64_t number, char out[BROKER_TICKET_MAX + 1])
{
    if (number)
        numbered(b, '/', number, out);
    else
        strcpy(out, b->id);
}

/* A creating request's deadline is two time-outs after it was sent, by the master's clock as we
 * know it, and that may be wrong by as much again. */
int64_t broker_tomb_ms(const struct broker *b)
{
    return 4 * b->conf.request_timeout_ms;
}

void broker_add_part(struct args *it, struct lock_part part, const struct owner *owner)
{
    char text[LOCK_PART_MAX + 1];
    args_text(it, text, lock_part_text(part, owner, text));
}

/* xorshift64*, by Marsaglia and Vigna: jitter needs no more. */
uint64_t broker_random(struct broker *b, uint64_t below)
{
    b->rng ^= b->rng >> 12;
    b->rng ^= b->rng << 25;
    b->rng ^= b->rng >> 27;
    return below ? (b->rng * 0x2545f4914f6cdd1dULL >> 11) % below : 0;
}

/* A majority of masters has to be asked to take a hold away: so one of any majority has told. */
bool broker_has_heard(const struct broker *b, int64_t since_ms, int64_t now_ms)
{
    int hear = 0;
    for (int i = 0; i < b->rounds.n; i++)
        hear += b->ears[i].since_ms <= since_ms && b->ears[i].heard_ms >= now_ms - BROKER_MEMORY_MS;
    return hear >= quorum_need(b->rounds.n);
}

void broker_due_at(struct broker *b, struct due *due, int64_t due_ms)
{
    broker_due_cancel(b, due);
    due->first = false;
    wheel_add(&b->wheel, &due->entry, due_ms);
}

void broker_due_first(struct broker *b, struct due *due, int64_t due_ms)
{
    broker_due_cancel(b, due);
    due->first = true;
    wheel_add(&b->first, &due->entry, due_ms);
}

void broker_due_cancel(struct broker *b, struct due *due)
{
    wheel_cancel(due->first ? &b->first : &b->wheel, &due->entry);
}

void broker_use(struct lock *l)
{
    l->refs++;
}

/* While it is held, how often others were passed over still counts, even if nobody waits here for a
 * moment: a few clients that take turns would starve the other brokers. */
static bool waits_nobody(const struct lock *l)
{
    const struct lock_queue *q = l->queue;
    return TAILQ_EMPTY(&q->waiters) && TAILQ_EMPTY(&q->deferred) && q->n_claims == 0 &&
           (q->passed == 0 || LIST_EMPTY(&l->holds));
}

void broker_put(struct broker *b, struct lock *l)
{
    assert(l->refs > 0);
    if (--l->refs > 0)
        return;
    if (l->queue && waits_nobody(l)) {
        broker_due_cancel(b, &l->queue->retry);
        broker_due_cancel(b, &l->queue->undefer);
        free(l->queue->failure);
        pool_put(l->queue, sizeof *l->queue);
        l->queue = NULL;
    }
    locktab_drop(&b->locks, l);
}

void broker_finish(struct broker *b, struct lock_request *r, enum lock_result result)
{
    struct lock *l = r->lock;
    assert(!r->waiting && !r->deferred && r->result == RESULT_NONE);
    broker_due_cancel(b, &r->due);
    if (r->multilock)
        b->multilock_over(b, r);
    if (result == RESULT_NOT_HELD &&
        asprintf(&r->text, "NOTHELD '%s' is not held by this owner", l->name) < 0)
        util_die("out of memory");
    r->result = (uint8_t)result;
    r->base.failed = result == RESULT_ERROR || result == RESULT_NOT_HELD;
    r->lock = NULL;
    request_finish(&r->base); /* frees it when nobody waits for it any more */
    if (l)
        broker_put(b, l);
}

void broker_finish_error(struct broker *b, struct lock_request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&r->text, fmt, args) < 0)
        util_die("out of memory");
    va_end(args);
    broker_finish(b, r, RESULT_ERROR);
}

void broker_finish_granted(struct broker *b, struct lock_request *r, struct hold *h)
{
    h->pins++;
    r->told = h;
    r->token = h->token;
    r->deadline_ms = h->deadline_ms;
    r->base.granted = r->verb == VERB_LOCK;
    broker_finish(b, r, RESULT_GRANTED);
}

void broker_finish_count(struct broker *b, struct lock_request *r, int64_t count)
{
    r->count = count;
    broker_finish(b, r, RESULT_COUNT);
}
