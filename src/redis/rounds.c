/* What all rounds of a broker have in common. No round is looked at here: that is round.c's. */
#include "redis/rounds.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"
#include "redis/args.h"
#include "redis/undelivered.h"

void rounds_init(struct rounds *b, int64_t request_timeout_ms)
{
    memset(b, 0, sizeof *b);
    b->request_timeout_ms = request_timeout_ms;
    TAILQ_INIT(&b->asked);
    TAILQ_INIT(&b->decided[true]);
    TAILQ_INIT(&b->decided[false]);
}

void rounds_add_master(struct rounds *b, struct master *m, const char *identity)
{
    int i = b->n_all++;

    assert(i < ROUNDS_MASTERS_MAX);
    b->n += master_partition(m) == 0;
    b->rank[i] = (uint64_t)util_fixed_hash(identity, strlen(identity));
    b->undelivered[i] = undelivered_new(m, &b->clock);
    b->masters[i] = m;
    assert(rounds_group(b, i) == master_partition(m) * b->n);
}

void rounds_close(struct rounds *b)
{
    b->closed = true;
    for (int i = 0; i < b->n_all; i++)
        undelivered_close(b->undelivered[i]);
}

/* ---- tokens ---- */

static void read_master_clocks(struct rounds *b, int64_t now_ms)
{
    int64_t times_ms[ROUNDS_MASTERS_MAX];
    int n = 0;

    for (int i = 0; i < b->n_all && !b->closed; i++) {
        int64_t offset_ms = master_status(b->masters[i], now_ms)->clock_offset_ms;
        if (offset_ms) /* else it is not known yet */
            times_ms[n++] = now_ms + offset_ms;
    }
    token_set_masters(&b->clock, times_ms, n, now_ms);
}

void rounds_set_wall(struct rounds *b, int64_t wall_ms, int64_t now_ms)
{
    token_set_wall(&b->clock, wall_ms, now_ms);
    read_master_clocks(b, now_ms);
}

int64_t rounds_floor(struct rounds *b, int64_t now_ms)
{
    if (!b->clock.has_masters)
        read_master_clocks(b, now_ms);
    return token_floor(&b->clock, now_ms);
}

int64_t rounds_base(struct rounds *b, int64_t now_ms)
{
    read_master_clocks(b, now_ms);
    return token_base(&b->clock, now_ms);
}

void rounds_saw_token(struct rounds *b, int64_t token)
{
    token_saw(&b->clock, token);
}

int rounds_bucket(const struct rounds *b, const char *name, size_t name_len)
{
    return b->n == 1 ? -1 : token_bucket(name, name_len);
}

void rounds_counter(const struct rounds *b, const char *name, size_t name_len,
                    char out[TOKEN_COUNTER_MAX + 1])
{
    token_counter(rounds_bucket(b, name, name_len), out);
}

int64_t rounds_master_ms(struct rounds *b, int i, int64_t at_ms, int64_t now_ms)
{
    return b->closed ? at_ms : at_ms + master_status(b->masters[i], now_ms)->clock_offset_ms;
}

int64_t rounds_clock_offset_ms(const struct rounds *b, const struct master_status *s)
{
    return s->clock_offset_ms ? s->clock_offset_ms - b->clock.wall_offset_ms : 0;
}

/* ---- whether and where masters vote ---- */

const char *rounds_veto(const struct rounds *b)
{
    for (int i = 0; i < b->n_all && !b->closed; i++) {
        const char *why = master_disagrees(b->masters[i]);
        if (why)
            return why;
    }
    return NULL;
}

static bool has_majority(struct rounds *b, int first, int64_t now_ms)
{
    int up = 0;
    for (int i = first; i < first + b->n; i++) {
        const struct master_status *s = master_status(b->masters[i], now_ms);
        up += master_state_votes(s->state) && !s->stalled;
    }
    return up >= quorum_need(b->n);
}

bool rounds_has_quorum(struct rounds *b, int64_t now_ms)
{
    bool found = false;
    for (int first = 0; first < b->n_all && !found; first += b->n)
        found = has_majority(b, first, now_ms);
    return found && !rounds_veto(b);
}

/* The highest of what name and master make together: each name has its own order of masters, the
 * same at every broker (rendezvous hashing, Thaler and Ravishankar 1998). */
int rounds_agreed(struct rounds *b, const char *name, size_t name_len, int64_t now_ms)
{
    uint64_t hash = util_fixed_hash(name, name_len), best = 0;
    int agreed = -1, first = rounds_first(b, name, name_len);
    for (int i = 0; i < b->n && !b->closed; i++) {
        const struct master_status *s = master_status(b->masters[first + i], now_ms);
        uint64_t weight = (hash ^ b->rank[first + i]) * 0x9e3779b97f4a7c15u >> 1;
        if (s->state == MASTER_ACTIVE && !s->stalled && weight >= best) {
            best = weight;
            agreed = i;
        }
    }
    return agreed;
}

/* ---- what masters must still hear ---- */

bool rounds_resend(struct rounds *b, const char *name, size_t name_len, int64_t now_ms)
{
    bool sent = false;
    int first = rounds_first(b, name, name_len);
    for (int i = first; i < first + b->n; i++) {
        if (!undelivered_is_empty(b->undelivered[i]))
            sent |= undelivered_resend_key(b->undelivered[i], args_begin(name, name_len), now_ms);
    }
    return sent;
}

void rounds_master_back(struct rounds *b, int i, int64_t now_ms)
{
    undelivered_resend(b->undelivered[i], now_ms);
}

void rounds_publish(struct rounds *b, const char *channel, size_t channel_len, const char *text,
                    size_t len, int64_t now_ms)
{
    int first = rounds_first(b, channel, channel_len);
    for (int i = first; i < first + b->n && !b->closed; i++)
        master_publish(b->masters[i], text, len, now_ms);
    b->n_asks++;
}

void rounds_send(struct rounds *b, int64_t now_ms)
{
    for (int i = 0; i < b->n_all; i++)
        master_flush(b->masters[i], now_ms);
}
