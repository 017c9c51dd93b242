/* The words of the Sentinels of one master. There are few of them: each is set beside all others.
 */
#include "redis/naming.h"

#include <assert.h>
#include <string.h>

#include "redis/quorum.h"

void naming_init(struct naming *s, int n, int64_t timeout_ms)
{
    assert(n > 0 && n <= NAMING_SENTINELS_MAX);
    *s = (struct naming){.n = n, .timeout_ms = timeout_ms};
}

bool naming_is_same(const struct naming_address *a, const struct naming_address *b)
{
    return a->port == b->port && (a->port == 0 || strcmp(a->host, b->host) == 0);
}

/* Returns how many Sentinels have named this address in answer to a question that was sent at
 * `since_ms` or later. */
static int count_words(const struct naming *s, const struct naming_address *a, int64_t since_ms)
{
    int count = 0;

    for (int i = 0; i < s->n; i++) {
        const struct naming_word *w = &s->words[i];
        count += w->asked_ms >= since_ms && naming_is_same(&w->address, a);
    }
    return count;
}

/* Returns until when a majority names this address, by the oldest word that the majority needs; 0:
 * none does. */
static int64_t named_until_ms(const struct naming *s, const struct naming_address *a)
{
    int64_t since_ms = -1;

    for (int i = 0; i < s->n; i++) {
        int64_t asked_ms = s->words[i].asked_ms;
        if (asked_ms > since_ms && count_words(s, a, asked_ms) >= quorum_need(s->n))
            since_ms = asked_ms;
    }
    return since_ms < 0 ? 0 : since_ms + s->timeout_ms;
}

static bool judge_words(struct naming *s, int64_t now_ms)
{
    struct naming_address before = s->named;

    s->named = (struct naming_address){.port = 0};
    s->until_ms = 0;
    for (int i = 0; i < s->n && !s->named.port; i++) {
        const struct naming_address *a = &s->words[i].address;
        int64_t until_ms = a->port ? named_until_ms(s, a) : 0;
        if (until_ms <= now_ms)
            continue;
        s->named = *a;
        s->until_ms = until_ms;
    }
    return !naming_is_same(&s->named, &before);
}

bool naming_take(struct naming *s, int i, const struct naming_address *address, int64_t asked_ms,
                 int64_t now_ms)
{
    assert(i >= 0 && i < s->n);
    s->words[i] = (struct naming_word){.address = *address, .asked_ms = asked_ms};
    return judge_words(s, now_ms);
}

bool naming_pass(struct naming *s, int64_t now_ms)
{
    return s->named.port && now_ms >= s->until_ms && judge_words(s, now_ms);
}
