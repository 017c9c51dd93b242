/*
 * Whether a master may be used (safety R6), from what its INFO says.
 *
 * Does not trust it: each word is bounded, and the run id goes into the text of scripts only when
 * it is letters and digits. Each refusal names what is to be done.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "redis/master_private.h"

enum { OLDEST_MAJOR = 7 }; /* the first with SET NX GET and PEXPIRE GT, which the scripts use */

static void take_fact(struct master_facts *f, const char *key, size_t key_len, const char *value,
                      size_t len)
{
    const struct {
        const char *key;
        char *word;
        size_t size;
        bool *flag;
    } known[] = {
        {"run_id", f->run_id, sizeof f->run_id, NULL},
        {"redis_version", f->version, sizeof f->version, NULL},
        {"role", f->role, sizeof f->role, NULL},
        {"maxmemory_policy", f->policy, sizeof f->policy, NULL},
        {"used_memory", f->memory_used, sizeof f->memory_used, NULL},
        {"maxmemory", f->memory_max, sizeof f->memory_max, NULL},
        {"second_repl_offset", f->promoted, sizeof f->promoted, NULL},
        {"master_host", f->leader, sizeof f->leader, NULL},
        {"master_port", f->leader_port, sizeof f->leader_port, NULL},
        {"uptime_in_seconds", f->uptime, sizeof f->uptime, NULL},
        {"loading", NULL, 0, &f->loading},
        {"aof_enabled", NULL, 0, &f->aof},
        {"cluster_enabled", NULL, 0, &f->cluster},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].key) != key_len || memcmp(known[i].key, key, key_len) != 0)
            continue;
        if (known[i].flag)
            *known[i].flag = len == 1 && *value == '1';
        else /* no run id, role... is too long for it: one that is counts as none */
            snprintf(known[i].word, known[i].size, "%.*s", len < known[i].size ? (int)len : 0,
                     value);
    }
}

void master_take_info(struct master_facts *f, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *next = eol ? eol + 1 : end, *stop = eol ? eol : end;
        const char *colon = memchr(text, ':', (size_t)(stop - text));
        if (stop > text && stop[-1] == '\r')
            stop--;
        if (colon && colon < stop)
            take_fact(f, text, (size_t)(colon - text), colon + 1, (size_t)(stop - colon - 1));
        text = next;
    }
}

static bool is_plain(const char *word)
{
    for (const char *p = word; *p; p++)
        if (!isalnum((unsigned char)*p))
            return false;
    return *word != 0;
}

/* Looks soon for another server there: after a failover the name of the master leads to the new one
 * in a moment. */
static int refuse_no_master(struct master *m)
{
    const struct master_facts *f = &m->facts;
    char words[REPLY_WORDS_MAX];

    if (m->is_found) { /* which passes by itself */
        master_doubt(m);
        master_drop(m, "it is no master, though %s name it", master_finders(m));
        return -1;
    }
    m->refused_backoff_ms = 0;
    stream_peer_address(m->passed_over, m->link->stream.fd);
    if (strcmp(f->role, "slave") != 0) {
        reply_words(words, sizeof words, f->role, strlen(f->role));
        return master_refuse(m, "it is a %s and no master: name a master in [masters]", words);
    }
    if (!f->leader[0])
        return master_refuse(m, "it is a replica and no master: name its master in [masters]");
    reply_words(words, sizeof words, f->leader, strlen(f->leader));
    return master_refuse(m,
                         "it is a replica and no master: name its master, %s port %d, in "
                         "[masters], or a name that leads to whichever is the master",
                         words, atoi(f->leader_port));
}

int master_judge(struct master *m)
{
    const struct master_facts *f = &m->facts;
    char words[REPLY_WORDS_MAX];

    if (!*f->version || !*f->role)
        return master_refuse(m, "its INFO gives no %s: is it a Redis server?",
                             *f->version ? "role" : "redis_version");
    if (!is_plain(f->run_id))
        return master_refuse(m, "its INFO gives no usable run_id: is it a Redis server?");
    if (atoi(f->version) < OLDEST_MAJOR) {
        reply_words(words, sizeof words, f->version, strlen(f->version));
        return master_refuse(m, "its version %s is too old: Redis %d.0 or newer is needed", words,
                             OLDEST_MAJOR);
    }
    if (strcmp(f->role, "master") != 0)
        return refuse_no_master(m);
    if (f->cluster && !m->setup.cluster)
        return master_refuse(m, "it is part of a Redis Cluster: name that by cluster://, or a "
                                "server of its own in [masters]");
    if (!f->cluster && m->setup.cluster)
        return master_refuse(m, "it is no node of a Redis Cluster (cluster_enabled)");
    if (*f->policy && strcmp(f->policy, "noeviction") != 0) {
        reply_words(words, sizeof words, f->policy, strlen(f->policy));
        return master_refuse(m, "it may evict locks (maxmemory-policy is %s): set it to noeviction",
                             words);
    }
    const struct master *twin = master_twin(m, f->run_id);
    if (twin)
        return master_refuse(m, "it is the same server as %s: each master must be one of its own",
                             twin->object);
    return 0;
}

void master_note_unchecked(struct master *m)
{
    const struct master_facts *f = &m->facts;
    const struct {
        bool is_hidden;
        const char *words;
    } facts[] = {
        {!*f->policy && strcmp(f->memory_max, "0") != 0,
         ", maxmemory_policy (with any but noeviction it may evict locks)"},
        {f->is_named, ", run_id (SCRIPT FLUSH counts as a restart)"},
        {!*f->promoted, ", second_repl_offset (a failover there and back goes unnoticed)"},
    };
    struct buf text = {0};

    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (facts[i].is_hidden)
            buf_append(&text, facts[i].words, strlen(facts[i].words));
    char was[MASTER_UNCHECKED_MAX];
    strcpy(was, m->unchecked);
    m->unchecked[0] = 0;
    if (buf_len(&text) > 0)
        snprintf(m->unchecked, sizeof m->unchecked, "it does not tell its %.*s",
                 (int)buf_len(&text) - 2, buf_head(&text) + 2);
    buf_fini(&text);
    if (*m->unchecked && strcmp(was, m->unchecked) != 0)
        log_warn(m->object, "cannot be checked: %s", m->unchecked);
}

static int on_review(struct master *m)
{
    const struct reply_value *v = m->reply->values;
    struct master_facts now = {0};

    /* What it does not tell by these words waits for the next connect. */
    if (!master_is_joined(m) || v->type != REPLY_TEXT)
        return 0;
    master_take_info(&now, reply_text(m->reply, v), v->len);
    if (!*now.policy) /* CONFIG may have told it */
        strcpy(now.policy, m->facts.policy);
    if (m->facts.is_named && !*now.run_id) {
        strcpy(now.run_id, m->run_id);
        now.is_named = true;
    }
    if (!*now.run_id)
        return 0;
    if (strcmp(now.run_id, m->run_id) != 0 || strcmp(now.promoted, m->facts.promoted) != 0) {
        master_greet_again(m);
        return 0;
    }
    m->facts = now;
    (void)master_judge(m);
    return 0;
}

void master_review(struct master *m)
{
    master_ask_words(m, on_review, "INFO server replication memory cluster");
}

static int on_role(struct master *m)
{
    const struct reply_value *v = m->reply->values;
    struct master_facts now = {0};

    if (!master_is_joined(m) || v->type != REPLY_TEXT)
        return 0;
    master_take_info(&now, reply_text(m->reply, v), v->len);
    if (strcmp(now.role, "master") == 0 && strcmp(now.promoted, m->facts.promoted) != 0) {
        master_greet_again(m);
    } else if (*now.role && strcmp(now.role, "master") != 0) {
        strcpy(m->facts.role, now.role);
        strcpy(m->facts.leader, now.leader);
        strcpy(m->facts.leader_port, now.leader_port);
        (void)master_judge(m);
    }
    return 0;
}

void master_ask_role(struct master *m)
{
    master_ask_words(m, on_role, "INFO replication");
}
