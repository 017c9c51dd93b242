/* The data of a queue: made, looked at, freed. */
#include "lock/queue.h"

#include <stdlib.h>

#include "base/pool.h"

struct lock_queue *queue_get(struct lock *l)
{
    if (!l->queue) {
        l->queue = pool_get(sizeof *l->queue);
        TAILQ_INIT(&l->queue->waiters);
        TAILQ_INIT(&l->queue->deferred);
        LIST_INIT(&l->queue->claims);
    }
    return l->queue;
}

/* While the lock is held, how often others were passed over still counts, even if nobody waits here
 * for a moment: a few clients that take turns would starve the other brokers. */
bool queue_is_over(const struct lock *l)
{
    const struct lock_queue *q = l->queue;
    return TAILQ_EMPTY(&q->waiters) && TAILQ_EMPTY(&q->deferred) && q->n_claims == 0 &&
           !q->outside && (q->passed == 0 || LIST_EMPTY(&l->holds));
}

void queue_set_failure(struct lock_queues *failed, struct lock_queue *q, char *text)
{
    if (q->failure)
        LIST_REMOVE(q, failed);
    free(q->failure);
    q->failure = text;
    if (text)
        LIST_INSERT_HEAD(failed, q, failed);
}

void queue_free(struct lock *l)
{
    queue_set_failure(NULL, l->queue, NULL);
    if (l->queue->is_waited)
        LIST_REMOVE(l->queue, waited);
    pool_put(l->queue, sizeof *l->queue);
    l->queue = NULL;
}
