/*
 * What a round has come to, as its asker and people want to know it.
 */
#include "redis/round.h"

bool round_has_missed(const struct round *r)
{
    for (int i = 0; i < r->quorum.n; i++) {
        if (r->votes[i].state == VOTE_ANSWERED && r->votes[i].code != CODE_YES)
            return true;
    }
    return false;
}

int round_answered(const struct round *r)
{
    int answered = 0;
    for (int i = 0; i < r->quorum.n; i++)
        answered += r->votes[i].state == VOTE_ANSWERED;
    return answered;
}

bool round_may_forget(const struct round *r, int i, int64_t now_ms)
{
    return master_status(r->rounds->masters[i], now_ms)->state == MASTER_QUARANTINE;
}

void round_set_aside(struct round *r, int i)
{
    r->votes[i].state = VOTE_UNKNOWN;
}

void round_describe(struct round *r, struct buf *out, int64_t now_ms)
{
    struct rounds *b = r->rounds;
    const char *separator = " (";
    int answered = round_answered(r);
    if (b->closed) { /* the masters may be gone */
        buf_printf(out, "this broker is going down");
        return;
    }
    const char *veto = rounds_veto(b);
    if (veto && script_get(r->script)->deadline) {
        buf_printf(out, "nothing may be granted while %s", veto);
        return;
    }
    if (b->n == 1)
        buf_printf(out, "the master did not answer");
    else
        buf_printf(out, "only %d of %d masters answered", answered, b->n);
    for (int i = 0; i < b->n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->state == VOTE_ANSWERED)
            continue;
        const struct master_status *s = master_status(b->masters[i], now_ms);
        buf_printf(out, "%s%s: %s", separator, s->name,
                   v->open ? "timeout" : master_reason(b->masters[i], now_ms));
        separator = ", ";
    }
    if (separator[0] == ',')
        buf_append(out, ")", 1);
}
