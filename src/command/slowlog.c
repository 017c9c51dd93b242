/*
 * A ring of the last slow requests. Entry `id` stands in ring[id % SLOWLOG_LEN]; the ring holds the
 * ids from first_id up to next_id. Texts are copies, cut to their bounds.
 */
#include "command/slowlog.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static struct slowlog_entry ring[SLOWLOG_LEN];
static int64_t first_id, next_id;

static void entry_fini(struct slowlog_entry *e)
{
    for (int i = 0; i < e->argc; i++)
        free(e->argv[i]);
    free(e->peer);
    free(e->name);
    memset(e, 0, sizeof(*e));
}

static char *copy_arg(const struct resp_arg *word)
{
    char text[SLOWLOG_ARG_LEN + 48];
    size_t n = word->len < SLOWLOG_ARG_LEN ? word->len : SLOWLOG_ARG_LEN;

    for (size_t i = 0; i < n; i++)
        text[i] = word->ptr[i] == '\0' ? '?' : word->ptr[i];
    text[n] = '\0';
    if (word->len > n)
        snprintf(text + n, sizeof(text) - n, "... (%zu more bytes)", word->len - n);
    return util_strdup(text);
}

void slowlog_add(int64_t wall_ms, int64_t duration_us, int argc, const struct resp_arg *argv,
                 bool secret, const char *peer, const char *name)
{
    struct slowlog_entry *e = &ring[next_id % SLOWLOG_LEN];

    if (next_id - first_id == SLOWLOG_LEN)
        first_id++;
    entry_fini(e);
    e->id = next_id++;
    e->wall_ms = wall_ms;
    e->duration_us = duration_us;
    e->peer = util_strdup(peer);
    e->name = util_strdup(name != NULL ? name : "");
    e->argc = argc < SLOWLOG_ARGS ? argc : SLOWLOG_ARGS;
    for (int i = 0; i < e->argc; i++)
        e->argv[i] = secret && i > 0 ? util_strdup("(redacted)") : copy_arg(&argv[i]);
    if (argc > SLOWLOG_ARGS) {
        char text[48];
        snprintf(text, sizeof(text), "... (%d more arguments)", argc - SLOWLOG_ARGS + 1);
        free(e->argv[SLOWLOG_ARGS - 1]);
        e->argv[SLOWLOG_ARGS - 1] = util_strdup(text);
    }
}

uint32_t slowlog_count(void)
{
    return (uint32_t)(next_id - first_id);
}

const struct slowlog_entry *slowlog_get(uint32_t i)
{
    assert(i < slowlog_count());
    return &ring[(next_id - 1 - i) % SLOWLOG_LEN];
}

void slowlog_reset(void)
{
    for (int i = 0; i < SLOWLOG_LEN; i++)
        entry_fini(&ring[i]);
    first_id = next_id;
}
