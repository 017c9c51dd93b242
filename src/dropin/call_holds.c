/* What clients of this broker hold by commands of Redis, for those who show it to people. */
#include "dropin/call_private.h"

static struct dropin_hold shown_hold(const struct memory_hold *h, int64_t now_ms)
{
    return (struct dropin_hold){.name = h->name,
                                .name_len = h->len,
                                .state = truth_bytes(h->truth),
                                .state_len = truth_len(h->truth),
                                .token = h->truth->fence,
                                .session_id = h->session_id,
                                .library = h->library,
                                .held_ms = now_ms - h->held_since_ms,
                                .left_ms = h->truth->expires_ms - now_ms};
}

bool dropin_find_hold(struct dropin *d, const char *name, size_t len, struct dropin_hold *out,
                      int64_t now_ms)
{
    struct memory_hold h;
    if (!memory_find_hold(&d->memory, name, len, &h, now_ms))
        return false;
    *out = shown_hold(&h, now_ms);
    return true;
}

struct scan {
    dropin_hold_fn each;
    void *arg;
    int64_t now_ms;
};

static void show_scanned(void *arg, const struct memory_hold *h)
{
    const struct scan *scan = arg;
    struct dropin_hold shown = shown_hold(h, scan->now_ms);
    scan->each(scan->arg, &shown);
}

uint64_t dropin_scan(struct dropin *d, uint64_t cursor, dropin_hold_fn each, void *arg,
                     int64_t now_ms)
{
    struct scan scan = {each, arg, now_ms};
    return memory_scan(&d->memory, cursor, show_scanned, &scan, now_ms);
}
