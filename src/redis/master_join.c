/*
 * Joining a master, its quarantine (safety R5), and the look at it now and then while it is idle.
 *
 *   JOINING --join--> ACTIVE
 *              \--> QUARANTINE --activate, or another broker's--> ACTIVE
 *
 * The mark of a run is on the master, so that all brokers see the same; this file only follows it.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redis/master_private.h"

#define SECONDS_MAX ((int64_t)1 << 35)

/* ---- what all of it needs ---- */

int64_t master_quarantine_ms(const struct master *m)
{
    const struct master_setup *s = &m->setup;

    /* So long a broker that is cut off, together with the server that was the master, may use it.
     */
    int64_t longer_ms = m->is_found ? s->sentinel_timeout_ms : 0;

    if (s->quarantine_ms == 0)
        return 0;
    if (s->quarantine_ms > 0)
        return s->quarantine_ms + longer_ms;
    longer_ms += s->max_lease_ms;
    return longer_ms + longer_ms * s->drift_ppm / 1000000 + 1000;
}

void master_put_call(struct master *m, enum script script, int n_args)
{
    int has_at = *m->at != 0;

    request_array(&m->out, 3 + has_at + n_args);
    buf_append(&m->out, m->head[script], (size_t)m->head_len[script]);
    request_int(&m->out, has_at);
    if (has_at)
        request_str(&m->out, m->at);
    request_str(&m->out, m->run_id);
}

void master_put_mark(struct master *m)
{
    char key[64];

    request_text(&m->out, key,
                 (size_t)snprintf(key, sizeof key, "%smaster", *m->at ? m->at : "holdfast:"));
}

bool master_is_row(const struct reply *r, const char *types, int more)
{
    if (r->values[0].type != REPLY_ARRAY || r->count != 1 + (int)strlen(types) + more)
        return false;
    for (int i = 0; types[i]; i++)
        if (r->values[1 + i].type != (types[i] == 'i' ? REPLY_INTEGER : REPLY_TEXT))
            return false;
    return true;
}

int master_take_state(struct master *m, const struct reply_value *state, int64_t left_ms)
{
    if (reply_is_text(m->reply, state, "active")) {
        master_move(m, MASTER_ACTIVE);
        return 0;
    }
    if (!reply_is_text(m->reply, state, "quarantine") || left_ms < 0)
        return -1;
    m->quarantine_end_ms = m->heard_ms + left_ms;
    if (m->state != MASTER_QUARANTINE)
        master_move(m, MASTER_QUARANTINE);
    return 0;
}

/* ---- quarantine ---- */

static int on_activate(struct master *m)
{
    const struct reply *r = m->reply;

    if (m->state != MASTER_QUARANTINE)
        return 0;
    if (master_said_error(m)) {
        m->stranger = reply_is_error(r, r->values, "STRANGER");
        m->status.errors++;
        master_greet_again(m);
        return 0;
    }
    if (!master_is_row(r, "iti", 0) ||
        master_take_state(m, &r->values[2], r->values[3].integer) != 0)
        return -1;
    if (m->state != MASTER_ACTIVE)
        return 0;
    if (master_life_is_over(m)) /* as was heard since it was asked */
        master_join(m);
    else
        master_roll_here(m);
    return 0;
}

void master_activate(struct master *m, int64_t base, bool force)
{
    assert(base >= 0);
    if (m->state != MASTER_QUARANTINE)
        return;
    if (master_life_is_over(m)) { /* joining begins the next one, with its own quarantine */
        master_join(m);
        return;
    }
    master_batch_add(m, on_activate);
    master_put_call(m, SCRIPT_ACTIVATE, 6);
    request_int(&m->out, base);
    request_int(&m->out, force ? 1 : 0);
    request_text(&m->out, m->digest, SETTINGS_DIGEST_LEN);
    request_str(&m->out, m->setup.cluster ? m->setup.brokers : "");
    request_int(&m->out, master_quarantine_ms(m));
    master_flush(m, m->heard_ms);
}

static int on_suspend(struct master *m)
{
    if (!master_said_error(m))
        m->suspend_owed_ms = 0;
    return on_activate(m);
}

void master_suspend(struct master *m)
{
    int64_t ms = master_quarantine_ms(m);

    if (ms == 0 || m->suspend_owed_ms <= m->heard_ms)
        return;
    if (!master_is_joined(m))
        return; /* on_join() calls this again */
    /* Begins the quarantine anew, because by a clock that has jumped it would end too early. */
    m->quarantine_end_ms = m->heard_ms + ms;
    if (m->state == MASTER_ACTIVE)
        master_move(m, MASTER_QUARANTINE);
    master_batch_add(m, on_suspend);
    master_put_call(m, SCRIPT_SUSPEND, 2);
    request_int(&m->out, ms);
    master_flush(m, m->heard_ms);
}

void master_prolong(struct master *m)
{
    if (m->state != MASTER_QUARANTINE)
        return;
    m->suspend_owed_ms = m->heard_ms + master_quarantine_ms(m);
    master_suspend(m);
}

/* ---- settings ---- */

const char *master_disagrees(const struct master *m)
{
    return m->disagreement[0] ? m->disagreement : NULL;
}

void master_disagree(struct master *m, const char *how)
{
    snprintf(
        m->disagreement, sizeof m->disagreement,
        "brokers disagree: %s: give all brokers the same configuration, or say MASTER %s ADOPT "
        "to one that has the right one",
        how, m->name);
}

/* Returns whether the settings in force on the master are ours; refuses the master if not. */
static bool agrees(struct master *m, const struct reply_value *settings)
{
    const char *ours = m->setup.settings ? m->setup.settings : "";
    char theirs[MASTER_SETTINGS_MAX], differs[SETTINGS_WORDS_MAX];

    if (reply_is_text(m->reply, settings, ours)) {
        m->disagreement[0] = 0;
        return true;
    }
    snprintf(theirs, sizeof theirs, "%.*s", (int)settings->len, reply_text(m->reply, settings));
    settings_difference(ours, theirs, differs);
    master_disagree(m, differs);
    master_refuse(m, "%s", m->disagreement);
    return false;
}

/* ---- joining ---- */

/* Returns whether the reply is {time, state, left, settings, high, life, ...}. */
static bool is_join_answer(struct master *m)
{
    const struct reply *r = m->reply;

    return master_is_row(r, "ititi", master_count_lives(m)) && r->values[5].integer >= 0 &&
           r->values[5].integer <= MASTER_TOKEN_MAX && master_are_lives(m, &r->values[6]);
}

static void take_high(struct master *m, int64_t high)
{
    if (high > m->status.high)
        m->status.high = high;
    m->status.high_asked_ms = m->asked_us / 1000;
}

static void ask_join(struct master *m, master_reply_fn on_reply)
{
    const char *settings = m->setup.settings ? m->setup.settings : "";

    master_batch_add(m, on_reply);
    master_put_call(m, SCRIPT_JOIN, 6 + 2 * master_count_lives(m));
    request_int(&m->out, master_quarantine_ms(m));
    request_str(&m->out, settings);
    request_int(&m->out, m->adopt ? 1 : 0);
    request_text(&m->out, m->digest, SETTINGS_DIGEST_LEN);
    request_str(&m->out, m->facts.promoted);
    master_put_lives(m);
    m->adopt = false;
    m->told = m->newest;
    master_flush(m, m->heard_ms);
}

static int on_join(struct master *m)
{
    const struct reply *r = m->reply;

    if (m->state != MASTER_JOINING)
        return 0; /* greet_again has been called since */
    if (master_said_error(m))
        return master_give_up(m, "join");
    if (!is_join_answer(m))
        return -1;
    if (!agrees(m, &r->values[4]))
        return 0;
    master_take_lives(m, &r->values[6]);
    if (master_life_is_denied(m))
        return -1;
    (void)master_clock_take(m, r->values[1].integer, m->asked_us, m->heard_us);
    take_high(m, r->values[5].integer);
    if (m->stranger) {
        m->status.data_losses++;
        log_warn(m->object, "has lost its data");
    }
    m->stranger = false;
    if (master_life_is_over(m)) { /* as was heard since it was asked */
        ask_join(m, on_join);
        return 0;
    }
    if (reply_is_text(r, &r->values[2], "active") && master_must_wait(m)) {
        master_wait_for_others(m);
        return 0;
    }
    if (master_take_state(m, &r->values[2], r->values[3].integer) != 0)
        return -1;
    m->roll_veto[0] = m->roll_missing[0] = m->roll_signed[0] = 0;
    m->seen_ms = 0;
    master_roll_here(m); /* before anything that is asked on this link */
    master_suspend(m);
    master_spread_lives(m);
    return 0;
}

void master_join(struct master *m)
{
    if (m->state != MASTER_JOINING || !m->waited_ms) /* else it has waited (master_roll.c) */
        master_move(m, MASTER_JOINING);
    m->waited_ms = 0;
    m->joined = true;
    ask_join(m, on_join);
}

static int on_high(struct master *m)
{
    const struct reply *r = m->reply;

    if (!master_is_joined(m))
        return 0;
    if (master_said_error(m)) {
        master_greet_again(m);
        return 0;
    }
    if (!is_join_answer(m))
        return -1;
    master_take_lives(m, &r->values[6]);
    /* The server was emptied, or another broker has activated it: joins it to follow. */
    if (reply_is_text(r, &r->values[2], "active") != (m->state == MASTER_ACTIVE))
        master_join(m);
    else
        take_high(m, r->values[5].integer);
    master_spread_lives(m);
    return 0;
}

/* Asks by join.lua, which tells the highest token and changes nothing when it is repeated. */
void master_ask_high(struct master *m)
{
    if (master_is_joined(m))
        ask_join(m, on_high);
}

void master_adopt(struct master *m)
{
    m->adopt = true;
    if (m->state == MASTER_REFUSED)
        event_active(&m->retry, EV_TIMEOUT, 0);
    else
        master_ask_high(m);
}

/* ---- the look now and then ---- */

int master_on_time(struct master *m)
{
    const struct reply *r = m->reply;
    int64_t s, us;

    if (master_said_error(m))
        return 0;
    if (!master_is_row(r, "tt", 0) ||
        util_parse_int(reply_text(r, &r->values[1]), r->values[1].len, 1, SECONDS_MAX, &s) != 0 ||
        util_parse_int(reply_text(r, &r->values[2]), r->values[2].len, 0, 999999, &us) != 0)
        return -1;
    if (master_clock_take(m, s * 1000 + us / 1000, m->asked_us, m->heard_us))
        master_suspend(m);
    return 0;
}

/* Follows what others have done to the server meanwhile: ended its quarantine, begun one, or
 * emptied it. */
static int on_mark(struct master *m)
{
    const struct reply *r = m->reply;
    const struct life joined = m->own;

    m->probing = false;
    if (!master_is_joined(m))
        return 0;
    if (master_said_error(m) || r->values[0].type != REPLY_ARRAY ||
        r->count != 4 + master_count_lives(m) || !master_are_lives(m, &r->values[4])) {
        master_greet_again(m);
        return 0;
    }
    if (!reply_is_text(r, &r->values[1], m->run_id)) {
        m->stranger = true;
        master_greet_again(m);
        return 0;
    }
    master_take_lives(m, &r->values[4]);
    if (strcmp(joined.text, m->own.text) != 0 ||
        reply_is_text(r, &r->values[2], "active") != (m->state == MASTER_ACTIVE))
        master_join(m);
    else if (agrees(m, &r->values[3]))
        master_heed_lives(m);
    return 0;
}

void master_probe(struct master *m)
{
    static const char *const words[] = {"run_id", "state", "settings"};

    master_ask_words(m, master_on_time, "TIME");
    master_ask_role(m);
    master_batch_add(m, on_mark);
    request_array(&m->out, 5 + master_count_lives(m));
    request_str(&m->out, "HMGET");
    master_put_mark(m);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        request_str(&m->out, words[i]);
    master_put_life_fields(m);
    m->probing = true;
    master_roll_here(m);
    master_flush(m, m->heard_ms);
}
