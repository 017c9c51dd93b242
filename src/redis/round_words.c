/* What a round has come to, as its asker and people want to know it. */
#include "redis/round.h"

#include "base/util.h"

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
    if (r->rounds->closed) /* the masters may be gone */
        return true;
    return master_status(round_master(r, i), now_ms)->state == MASTER_QUARANTINE;
}

void round_set_aside(struct round *r, int i)
{
    r->votes[i].state = VOTE_UNKNOWN;
}

char *round_no_quorum(struct round *r, int64_t now_ms)
{
    struct rounds *b = r->rounds;
    const char *separator = " (";
    if (b->closed) /* the masters may be gone */
        return util_strdup("NOQUORUM this broker is going down");
    const char *veto = rounds_veto(b);
    if (veto && script_get(r->script)->deadline)
        return util_format("NOQUORUM nothing may be granted while %s", veto);
    struct buf text = {0};
    if (b->n == 1)
        buf_printf(&text, "NOQUORUM the master did not answer");
    else
        buf_printf(&text, "NOQUORUM only %d of %d masters answered", round_answered(r), b->n);
    for (int i = 0; i < b->n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->state == VOTE_ANSWERED)
            continue;
        const struct master_status *s = master_status(round_master(r, i), now_ms);
        buf_printf(&text, "%s%s: %s", separator, s->name,
                   v->open ? "timeout" : master_reason(round_master(r, i), now_ms));
        separator = ", ";
    }
    if (separator[0] == ',')
        buf_append(&text, ")", 1);
    char *copy = util_memdup(buf_head(&text), buf_len(&text));
    buf_fini(&text);
    return copy;
}
