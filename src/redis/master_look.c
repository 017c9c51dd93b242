/*
 * A look at a server that is not to be used now: what would be in the way of using it, without a
 * trace left there.
 *
 *   judge -> {persistence, mark, a script, a channel} -> TIME, again and again -> on_look
 *
 * The questions are such that what a broker needs (the key of the mark, scripts, channels) is
 * tried, as a user of Redis may be allowed less. The trips of TIME are taken one after the other,
 * so that none waits for another.
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

static void take_refusal(struct master *m, char *out)
{
    const struct reply_value *v = m->reply.values;

    if (v->type == REPLY_ERROR)
        reply_words(out, REPLY_WORDS_MAX, reply_text(&m->reply, v), v->len);
}

/* Notes whether the server syncs each write. CONFIG is often forbidden: then it is taken not to. */
static int on_fsync(struct master *m)
{
    const struct reply *r = &m->reply;

    m->looking->found.fsync_known = r->values[0].type == REPLY_ARRAY;
    m->looking->found.fsync_always = m->facts.aof && r->values[0].type == REPLY_ARRAY &&
                                     r->count == 3 && reply_is_text(r, &r->values[2], "always");
    return 0;
}

static bool is_text(const struct master *m, int i)
{
    return m->reply.values[i].type == REPLY_TEXT;
}

/* Takes the mark {run_id, state, until, settings}; each is nil when no broker has been there. */
static int on_look_mark(struct master *m)
{
    const struct reply *r = &m->reply;
    struct master_looking *l = m->looking;
    int64_t until_ms;

    take_refusal(m, l->no_keys);
    if (l->no_keys[0])
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

static void tell(struct master *m)
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
    if (master_said_error(m))
        return master_give_up(m, "TIME");
    if (master_on_time(m) != 0)
        return -1;
    if (--m->looking->trips_left > 0 && m->heard_ms < m->looking->end_ms)
        ask_look_time(m);
    else
        tell(m);
    return 0;
}

static int on_scripts(struct master *m)
{
    take_refusal(m, m->looking->no_scripts);
    return 0;
}

static int on_plain_keys(struct master *m)
{
    take_refusal(m, m->looking->no_plain_keys);
    return 0;
}

static int on_channels(struct master *m)
{
    take_refusal(m, m->looking->no_channels);
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
        .no_scripts = l->no_scripts,
        .no_channels = l->no_channels,
        .unchecked = m->unchecked,
    };
    m->looking = l;
    master_ask_words(m, on_fsync, "CONFIG GET appendfsync");
    master_ask_words(m, on_look_mark, "HMGET holdfast:master run_id state until settings");
    if (m->setup.mirror) /* any key that is not one of brokers */
        master_ask_words(m, on_plain_keys, "EXISTS lock");
    master_batch_add(m, on_scripts);
    request_strings(&m->out, 3, (const char *const[]){"EVAL", "return 1", "0"});
    /* To a channel that nobody listens to. */
    master_ask_words(m, on_channels, "PUBLISH holdfast:wake: look");
    ask_look_time(m);
}
