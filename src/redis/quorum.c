/*
 * Votes are two sets of bits, so that "who has said what" can be told to people afterwards.
 * Invariants: yes & no == 0; n_yes and n_no are how many there are of each.
 */
#include "redis/quorum.h"

#include <assert.h>

/* Covers the millisecond steps of the clocks on both sides. */
enum { CLOCK_STEP_MS = 2 };

void quorum_init(struct quorum *q, int n)
{
    assert(n > 0 && n <= QUORUM_MASTERS_MAX);
    q->n = (uint8_t)n;
    q->n_yes = q->n_no = 0;
    q->n_top = 0;
    q->top = 0;
    q->yes = q->no = 0;
    q->vetoed = false;
}

static bool has_voted(const struct quorum *q, int i)
{
    assert(i >= 0 && i < q->n);
    return ((q->yes | q->no) >> i) & 1;
}

void quorum_yes(struct quorum *q, int i, int64_t token)
{
    if (has_voted(q, i))
        return;
    q->yes |= (uint16_t)(1u << i);
    q->n_yes++;
    if (token > q->top) {
        q->top = token;
        q->n_top = 0;
    }
    q->n_top += token == q->top;
}

void quorum_no(struct quorum *q, int i)
{
    if (has_voted(q, i))
        return;
    q->no |= (uint16_t)(1u << i);
    q->n_no++;
}

void quorum_veto(struct quorum *q)
{
    q->vetoed = true;
}

enum quorum_state quorum_state(const struct quorum *q)
{
    int need = quorum_need(q->n);
    if (q->vetoed)
        return QUORUM_LOST;
    if (q->n_yes >= need)
        return QUORUM_WON;
    return q->n - q->n_no < need ? QUORUM_LOST : QUORUM_PENDING;
}

int64_t quorum_token(const struct quorum *q)
{
    return q->top;
}

bool quorum_agreed(const struct quorum *q)
{
    return q->n_top >= quorum_need(q->n);
}

int64_t quorum_validity_ms(int64_t lease_ms, int64_t sent_ms, int64_t now_ms, int64_t drift_ppm)
{
    return lease_ms - (now_ms - sent_ms) - (lease_ms * drift_ppm + 999999) / 1000000 -
           CLOCK_STEP_MS;
}

int64_t quorum_lease_ms(int64_t validity_ms, int64_t drift_ppm)
{
    int64_t least_ms = validity_ms + CLOCK_STEP_MS, part = 1000000 - drift_ppm;
    return (least_ms * 1000000 + part - 1) / part;
}
