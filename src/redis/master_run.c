/*
 * Which run of a server answers, where its INFO gives no run id, as managed servers may do.
 *
 *   {TIME, run_id of the mark} --> SCRIPT EXISTS --> it is that run
 *                                        \------> SCRIPT LOAD --> a run of a new name
 *
 * Such a run is named after a script that says something random: its SHA-1, and the second at which
 * it was loaded, "<sha1>t<seconds>". A server keeps loaded scripts in its memory alone: they are
 * neither on its disk nor do its replicas have them. So the run that the mark names is this one if
 * it has that script, and if it has not started after that second, where INFO tells its uptime
 * (for servers that keep scripts all the same). In doubt it is another run, which costs a
 * quarantine: after SCRIPT FLUSH, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/master_private.h"

#define SECONDS_MAX ((int64_t)1 << 32)

enum { CLOCK_SLACK_S = 1, SECRET_LEN = 26 };

static int64_t seconds(const char *text)
{
    int64_t s;

    return util_parse_int(text, strlen(text), 0, SECONDS_MAX, &s) == 0 ? s : -1;
}

/* Returns the second at which the server has started; 0: its INFO does not tell. */
static int64_t started_s(const struct master_facts *f)
{
    return seconds(f->uptime) < 0 ? 0 : seconds(f->now) - seconds(f->uptime);
}

/* Returns the second in the name of a run; -1 when it is none that was made here. */
static int64_t named_s(const char *run)
{
    if (strspn(run, "0123456789abcdef") != MASTER_DIGEST_LEN || run[MASTER_DIGEST_LEN] != 't')
        return -1;
    return seconds(run + MASTER_DIGEST_LEN + 1);
}

static int on_named(struct master *m)
{
    struct master_facts *f = &m->facts;
    const struct reply_value *v = m->reply->values;

    if (master_said_error(m))
        return master_give_up(m, "SCRIPT LOAD");
    if (v->type != REPLY_TEXT || v->len != MASTER_DIGEST_LEN)
        return -1;
    int64_t since_s = started_s(f) > seconds(f->now) ? started_s(f) : seconds(f->now);
    snprintf(f->run_id, sizeof f->run_id, "%st%" PRId64, reply_text(m->reply, v), since_s);
    return named_s(f->run_id) < 0 ? -1 : master_take_facts(m);
}

static int name_anew(struct master *m)
{
    char secret[SECRET_LEN + 1], text[80];

    if (m->setup.on_look) { /* leaves no trace: nobody else has this name */
        snprintf(m->facts.run_id, sizeof m->facts.run_id, "unnamed%d", m->index);
        return master_take_facts(m);
    }
    util_random_id(secret, SECRET_LEN);
    snprintf(text, sizeof text, "return 'holdfast: this run is %s'", secret);
    master_batch_add(m, on_named);
    request_strings(&m->out, 3, (const char *const[]){"SCRIPT", "LOAD", text});
    master_flush(m, m->heard_ms);
    return 0;
}

static int on_known(struct master *m)
{
    const struct reply *r = m->reply;
    struct master_facts *f = &m->facts;

    if (master_said_error(m))
        return master_give_up(m, "SCRIPT EXISTS");
    if (r->values[0].type != REPLY_ARRAY || r->count != 2 || r->values[1].type != REPLY_INTEGER)
        return -1;
    if (r->values[1].integer != 1 || started_s(f) > named_s(f->run_id) + CLOCK_SLACK_S)
        return name_anew(m);
    return master_take_facts(m);
}

static int on_marked(struct master *m)
{
    const struct reply_value *v = m->reply->values;
    struct master_facts *f = &m->facts;
    char words[32 + MASTER_DIGEST_LEN];

    if (master_said_error(m))
        return master_give_up(m, "HGET");
    if (v->type == REPLY_TEXT && v->len < sizeof f->run_id)
        strcpy(f->run_id, reply_text(m->reply, v));
    if (named_s(f->run_id) < 0)
        return name_anew(m);
    snprintf(words, sizeof words, "SCRIPT EXISTS %.*s", MASTER_DIGEST_LEN, f->run_id);
    master_ask_words(m, on_known, words);
    master_flush(m, m->heard_ms);
    return 0;
}

static int on_now(struct master *m)
{
    const struct reply *r = m->reply;

    if (master_said_error(m))
        return master_give_up(m, "TIME");
    if (r->values[0].type != REPLY_ARRAY || r->count != 3 || r->values[1].type != REPLY_TEXT ||
        r->values[1].len >= sizeof m->facts.now)
        return -1;
    strcpy(m->facts.now, reply_text(r, &r->values[1]));
    return seconds(m->facts.now) < 0 ? -1 : 0;
}

void master_find_run(struct master *m)
{
    m->facts.is_named = true;
    master_ask_words(m, on_now, "TIME");
    master_batch_add(m, on_marked);
    request_array(&m->out, 3);
    request_str(&m->out, "HGET");
    master_put_mark(m);
    request_str(&m->out, "run_id");
}
