/* How many streams of a set are served in one turn of the loop.
 *
 * libevent runs the callbacks of all sockets that are ready: thousands of clients that send
 * something at once would make a turn long in which nobody else is heard. What is beyond the quota
 * waits here, in order; who is ready while others wait goes behind them.
 *
 * Invariant: a stream is in `waiting` exactly while `due` is not 0, and never when it is closed. */
#include "net/stream_private.h"

void stream_quota_init(struct stream_quota *q)
{
    TAILQ_INIT(&q->waiting);
    q->left = STREAM_QUOTA;
}

bool stream_quota_take(struct stream *s, short what)
{
    struct stream_quota *q = s->quota;

    if (q->left > 0 && TAILQ_EMPTY(&q->waiting)) {
        q->left--;
        return true;
    }
    if (!s->due)
        TAILQ_INSERT_TAIL(&q->waiting, s, waiting);
    s->due = (short)(s->due | what);
    return false;
}

void stream_quota_leave(struct stream *s)
{
    if (s->due)
        TAILQ_REMOVE(&s->quota->waiting, s, waiting);
    s->due = 0;
}

void stream_quota_serve(struct stream_quota *q)
{
    struct stream *s;

    while (q->left > 0 && (s = TAILQ_FIRST(&q->waiting)) != NULL) {
        short what = s->due;
        stream_quota_leave(s);
        q->left--;
        stream_serve(s, what);
    }
}

bool stream_quota_refill(struct stream_quota *q)
{
    q->left = STREAM_QUOTA;
    return !TAILQ_EMPTY(&q->waiting);
}
