/* An answer is there as soon as it is asked for: how long it takes only makes its word older. */
#include "fake_sentinels.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "fake_mutations.h"
#include "sim_time.h"

enum { BEATS_PER_TIMEOUT = 5 };

static int64_t ear_ms(const struct fake_ear *e)
{
    return (sim_now_us() + e->local_us) / 1000;
}

static void hear(struct fake_ear *e, int i)
{
    const struct fake_server *s = e->sentinels->names[i];
    struct naming_address address = {.port = s ? 1 : 0};
    int64_t now_ms = ear_ms(e);

    if (e->deaf >> i & 1)
        return;
    if (s)
        snprintf(address.host, sizeof address.host, "%s", s->name);
    (void)naming_take(&e->naming, i, &address, now_ms, now_ms);
}

static void on_beat(void *arg)
{
    struct fake_ear *e = arg;
    e->beat =
        sim_at(sim_now_us() + e->sentinels->timeout_ms * 1000 / BEATS_PER_TIMEOUT, on_beat, e);
    for (int i = 0; i < FAKE_SENTINELS; i++)
        hear(e, i);
    (void)naming_pass(&e->naming, ear_ms(e));
    e->on_word(e->arg);
}

void fake_sentinel_names(struct fake_sentinels *s, int i, struct fake_server *server)
{
    struct fake_ear *e;
    int k = 0;
    while (s->known[k] && s->known[k] != server)
        k++;
    assert(k + 1 < 2 * FAKE_SENTINELS);
    s->known[k] = s->names[i] = server;
    LIST_FOREACH(e, &s->ears, link) {
        hear(e, i);
        e->on_word(e->arg);
    }
}

void fake_sentinels_name(struct fake_sentinels *s, struct fake_server *server)
{
    for (int i = 0; i < FAKE_SENTINELS; i++)
        fake_sentinel_names(s, i, server);
}

void fake_ear_open(struct fake_ear *e, struct fake_sentinels *s)
{
    bool forever = fake_mutation == FAKE_WORDS_FOR_EVER;
    e->sentinels = s;
    naming_init(&e->naming, FAKE_SENTINELS, forever ? INT64_MAX / 4 : s->timeout_ms);
    LIST_INSERT_HEAD(&s->ears, e, link);
    e->beat = sim_at(sim_now_us(), on_beat, e);
}

void fake_ear_close(struct fake_ear *e)
{
    LIST_REMOVE(e, link);
    sim_cancel(e->beat);
}

struct fake_server *fake_ear_named(const struct fake_ear *e)
{
    struct fake_server *const *s = e->sentinels->known;

    if (!e->naming.named.port)
        return NULL;
    while (strcmp((*s)->name, e->naming.named.host) != 0)
        s++;
    return *s;
}

bool fake_ear_is_over(const struct fake_ear *e)
{
    return ear_ms(e) >= e->naming.until_ms;
}
