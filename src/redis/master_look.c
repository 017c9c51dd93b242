/*
 * A look at a server that is not to be used now: what would be in the way of using it, without a
 * trace left there.
 *
 *   judge -> {persistence, mark} -> rights -> TIME, again and again -> on_look
 *
 * What a broker needs is tried, as a user of Redis may be allowed less (master_rights.c). The trips
 * of TIME are taken one after the other, so that none waits for another.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "redis/master_private.h"

enum { TRIPS = 50, TRIPS_MS = 2000 };

static int64_t bytes_from(const char *text)
{
    int64_t n;

    return util_parse_int(text, strlen(text), 0, INT64_MAX, &n) == 0 ? n : 0;
}

/* Notes whether the server syncs each write. CONFIG is often forbidden: then it is taken not to. */
static int on_fsync(struct master *m)
{
    const struct reply *r = m->reply;

    m->looking->found.fsync_known = r->values[0].type == REPLY_ARRAY;
    m->looking->found.fsync_always = m->facts.aof && r->values[0].type == REPLY_ARRAY &&
                                     r->count == 3 && reply_is_text(r, &r->values[2], "always");
    return 0;
}

static bool is_text(const struct master *m, int i)
{
    return m->reply->values[i].type == REPLY_TEXT;
}

/* Takes the mark {run_id, state, until, settings}; each is nil when no broker has been there. */
static int on_look_mark(struct master *m)
{
    const struct reply *r = m->reply;
    struct master_looking *l = m->looking;
    int64_t until_ms;

    if (master_said_error(m)) /* of which the rights tell more */
        return 0;
    if (r->values[0].type != REPLY_ARRAY || r->count != 5)
        return -1;
    if (!is_text(m, 1) || !is_text(m, 4) || !reply_is_text(r, &r->values[1], m->run_id))
        return 0;
    l->found.marked = true;
    snprintf(l->settings, sizeof l->settings, "%.*s", (int)r->values[4].len,
             reply_text(r, &r->values[4]));
    if (reply_is_text(r, &r->values[2], "quarantine") && is_text(m, 3) &&
        util_parse_int(reply_text(r, &r->values[3]), r->values[3].len, 0, INT64_MAX, &until_ms) ==
            0) {
        /* In the server's time, which on_look_time() subtracts. */
        l->found.quarantine_left_ms = until_ms;
    }
    return 0;
}

static void tell_look(struct master *m)
{
    struct master_look *found = &m->looking->found;

    if (found->quarantine_left_ms > 0) {
        found->quarantine_left_ms -= clock_ms() + m->clock.best.offset_us / 1000;
        if (found->quarantine_left_ms < 0)
            found->quarantine_left_ms = 0;
    }
    m->setup.on_look(m->setup.arg, m, found);
}

static int on_look_time(struct master *m);

static void ask_look_time(struct master *m)
{
    master_ask_words(m, on_look_time, "TIME");
    master_flush(m, m->heard_ms);
}

static int on_look_time(struct master *m)
{
    if (reply_is_error(m->reply, m->reply->values, "NOPERM")) {
        master_lacks(m, "+time");
        tell_look(m);
        return 0;
    }
    if (master_said_error(m))
        return master_give_up(m, "TIME");
    if (master_on_time(m) != 0)
        return -1;
    if (--m->looking->trips_left > 0 && m->heard_ms < m->looking->end_ms)
        ask_look_time(m);
    else
        tell_look(m);
    return 0;
}

int master_look_on(struct master *m)
{
    ask_look_time(m);
    return 0;
}

void master_look(struct master *m)
{
    const struct master_facts *f = &m->facts;
    struct master_looking *l = m->looking ? m->looking : util_alloc(sizeof *l);

    *l = (struct master_looking){.trips_left = TRIPS, .end_ms = m->heard_ms + TRIPS_MS};
    l->found = (struct master_look){
        .aof = f->aof,
        .memory_used = bytes_from(f->memory_used),
        .memory_max = bytes_from(f->memory_max),
        .settings = l->settings,
        .no_keys = l->no_keys,
        .no_plain_keys = l->no_plain_keys,
        .no_channels = l->no_channels,
        .no_multi = l->no_multi,
        .missing = l->missing,
        .not_useful = l->not_useful,
        .disabled = l->disabled,
        .unchecked = m->unchecked,
    };
    m->looking = l;
    master_ask_words(m, on_fsync, "CONFIG GET appendfsync");
    master_ask_words(m, on_look_mark, "HMGET holdfast:master run_id state until settings");
    master_look_at_rights(m);
    master_flush(m, m->heard_ms);
}
