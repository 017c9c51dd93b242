/*
 * The roll call of a master (safety R15): says under the name of this broker that it is here,
 * signs, leaves, and follows what the master says of that. Whether to sign is decided in
 * rollcall.c.
 */
#include <stdio.h>
#include <string.h>

#include "redis/master_private.h"

static void copy_text(const struct master *m, int i, char *out, size_t size)
{
    const struct reply_value *v = &m->reply->values[i];

    snprintf(out, size, "%.*s", (int)v->len, reply_text(m->reply, v));
}

/* Without an answer it is not known who has the name: nothing that was asked behind this on the
 * same link may count. */
static int give_up(struct master *m)
{
    char words[REPLY_WORDS_MAX];
    const struct reply_value *v = m->reply->values;

    if (master_said_elsewhere(m))
        return master_give_up(m, "the roll call");
    m->status.errors++;
    m->stranger |= reply_is_error(m->reply, v, "STRANGER");
    if (m->stranger || reply_is_error(m->reply, v, "SETTINGS")) {
        master_greet_again(m);
        return 0;
    }
    reply_words(words, sizeof words, reply_text(m->reply, v), v->len);
    master_drop(m, "it does not take the name of this broker: %s", words);
    return 0;
}

static bool is_among(const char *names, const char *name, size_t len)
{
    for (; *names; names += strcspn(names, ","), names += *names == ',') {
        if (strcspn(names, ",") == len && memcmp(names, name, len) == 0)
            return true;
    }
    return false;
}

/* Of the names of all brokers keeps those that are not missing, as far as there is room. */
static void note_signed(struct master *m)
{
    size_t used = 0;

    m->roll_signed[0] = 0;
    for (const char *name = m->setup.brokers; *name; name += *name == ',') {
        size_t len = strcspn(name, ",");
        if (!is_among(m->roll_missing, name, len) && used + len + 2 < sizeof m->roll_signed)
            used += (size_t)snprintf(m->roll_signed + used, sizeof m->roll_signed - used, "%s%.*s",
                                     used ? "," : "", (int)len, name);
        name += len;
    }
}

bool master_must_wait(const struct master *m)
{
    return m->setup.cluster && m->setup.brokers && strcmp(m->admitted.text, m->own.text) != 0;
}

/* Takes part in it, as soon as nobody is waited for. */
static void admit(struct master *m)
{
    if (m->place.is_lost)
        return;
    if (m->waits_for[0]) {
        snprintf(m->error, sizeof m->error, "waits until it has been seen there: %.200s",
                 m->waits_for);
        return;
    }
    m->admitted = m->own;
    master_join(m);
}

/* Takes the reply {time, state, left, record, veto, missing}, in a Cluster with `waits`. */
static int on_roll(struct master *m)
{
    const struct reply *r = m->reply;
    struct place_told told;

    if (!master_is_joined(m) && !(m->state == MASTER_JOINING && m->waited_ms))
        return 0;
    if (master_said_error(m))
        return give_up(m);
    if (!master_is_row(r, m->setup.cluster ? "ititttt" : "itittt", 0))
        return -1;
    told = (struct place_told){.record = reply_text(r, &r->values[4]),
                               .len = r->values[4].len,
                               .is_active = reply_is_text(r, &r->values[2], "active"),
                               .asked_ms = m->asked_us / 1000,
                               .heard_ms = m->heard_us / 1000};
    m->seen_ms = r->values[1].integer;
    bool was_lost = m->place.is_lost;
    if (!place_take(&m->place, m->setup.broker, &told, &m->own))
        return -1;
    if (m->place.is_lost && !was_lost)
        log_error(m->object,
                  "another broker has taken the name %s: give each broker a name of its own, and "
                  "end this one",
                  m->setup.broker_name);
    copy_text(m, 5, m->roll_veto, sizeof m->roll_veto);
    copy_text(m, 6, m->roll_missing, sizeof m->roll_missing);
    note_signed(m);
    if (m->setup.cluster)
        copy_text(m, 7, m->waits_for, sizeof m->waits_for);
    if (m->state == MASTER_JOINING) {
        if (told.is_active)
            admit(m);
        else
            master_join(m);
        return 0;
    }
    if (m->state == MASTER_ACTIVE && !told.is_active) {
        master_join(m);
        return 0;
    }
    if (m->state == MASTER_QUARANTINE &&
        master_take_state(m, &r->values[2], r->values[3].integer) != 0)
        return -1;
    if (m->state == MASTER_ACTIVE && master_life_is_over(m)) /* as was heard since it was asked */
        master_join(m);
    return 0;
}

static int on_leave(struct master *m)
{
    m->status.has_left = true;
    return 0;
}

void master_roll(struct master *m, enum master_roll what, int64_t token, int64_t left_ms)
{
    static const char *const words[] = {
        [MASTER_IS_HERE] = "here", [MASTER_SIGNS] = "sign", [MASTER_LEAVES] = "leave"};

    bool is_there = master_is_joined(m) || (m->state == MASTER_JOINING && m->waited_ms);

    if (!m->setup.brokers || !is_there || m->leaves)
        return;
    if (what == MASTER_SIGNS && master_life_is_over(m)) { /* as in master_activate() */
        master_join(m);
        return;
    }
    m->leaves = what == MASTER_LEAVES;
    master_batch_add(m, m->leaves ? on_leave : on_roll);
    master_put_call(m, SCRIPT_ROLL, 14);
    request_str(&m->out, m->slot);
    request_str(&m->out, m->own.text);
    request_text(&m->out, m->digest, SETTINGS_DIGEST_LEN);
    request_str(&m->out, m->setup.broker_name);
    request_str(&m->out, m->setup.broker);
    request_int(&m->out, m->last_number);
    request_str(&m->out, words[what]);
    request_int(&m->out, token);
    request_int(&m->out, left_ms);
    request_str(&m->out, m->setup.brokers);
    request_str(&m->out, m->setup.cluster ? "1" : "0");
    request_int(&m->out, master_quarantine_ms(m));
    request_int(&m->out, m->seen_ms);
    master_flush(m, m->heard_ms);
}

void master_roll_here(struct master *m)
{
    master_roll(m, MASTER_IS_HERE, 0, 0);
}

bool master_admit(struct master *m)
{
    if (m->state != MASTER_JOINING || !m->waited_ms || !m->waits_for[0] || m->place.is_lost)
        return false;
    m->admitted = m->own;
    master_join(m);
    return true;
}

void master_wait_for_others(struct master *m)
{
    m->waited_ms = m->heard_ms;
    master_roll_here(m);
}
