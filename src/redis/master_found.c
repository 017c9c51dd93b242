/*
 * Where a master is that is found by Sentinels, or as the keeper of a partition of a Cluster
 * (safety R17): it follows the server that a majority of them names, and is left when none does any
 * more.
 *
 *   no address --named A--> A --named B--> B      a move ends the link at once
 *        ^                  |              |
 *        +-- nobody is named, or the words are too old (also seen by master_link, master_answer)
 *
 * Which life it is that answers at the new address, and what it has forgotten, joining it tells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "redis/cluster.h"
#include "redis/master_private.h"

void master_set_address(struct master *m, const char *host, int port)
{
    char *old = m->host;

    m->host = util_strdup(host);
    m->port = port;
    free(old);
    if (!host)
        snprintf(m->address, sizeof m->address, "(not named)");
    else if (m->is_unix)
        snprintf(m->address, sizeof m->address, "unix:%s", host);
    else
        snprintf(m->address, sizeof m->address, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
                 port);
}

void master_leave_link(struct master *m)
{
    if (m->link == m->own_link)
        return;
    cluster_unlink(m->setup.cluster, m->link);
    master_use_link(m, m->own_link);
}

/* In a Cluster the link is that of all masters there. Its seat was left before. */
static void move_to(struct master *m, const char *host, int port)
{
    master_set_address(m, host, port);
    master_leave_link(m);
    if (m->setup.cluster && host)
        master_use_link(m, cluster_link(m->setup.cluster, host, port));
    master_secure(m);
    if (m->setup.on_moved)
        m->setup.on_moved(m->setup.arg, m, host, port);
}

void master_lose_name(struct master *m)
{
    char span[48];

    util_format_duration(span, sizeof span, m->setup.sentinel_timeout_ms);
    if (m->state != MASTER_DOWN)
        master_drop(m, "no majority of %s has named %s within %s", master_finders(m), m->address,
                    span);
    m->named_until_ms = 0;
    move_to(m, NULL, 0);
}

static bool is_there(const struct master *m, const struct naming_address *a)
{
    return m->host ? a->port == m->port && strcmp(a->host, m->host) == 0 : !a->port;
}

/* Port 0: nobody is named. */
static void take_name(struct master *m, const struct naming_address *named, int64_t until_ms)
{
    m->named_until_ms = until_ms;
    if (is_there(m, named))
        return;
    if (!named->port) {
        master_lose_name(m);
        return;
    }
    if (m->state != MASTER_DOWN)
        master_drop(m, "%s name another server now, no longer %s", master_finders(m), m->address);
    move_to(m, named->host, named->port);
    if (m->sentinels)
        log_info(m->object, "a majority of its Sentinels names %s", m->address);
    m->down_backoff_ms = m->refused_backoff_ms = 0;
    event_active(&m->retry, EV_TIMEOUT, 0);
}

static void on_sentinels_word(void *arg)
{
    struct master *m = arg;
    const struct naming *n = sentinels_naming(m->sentinels);

    take_name(m, &n->named, n->until_ms);
}

static void on_cluster_word(void *arg)
{
    static const struct naming_address nowhere = {.port = 0};
    struct master *m = arg;
    const struct shards *s = cluster_shards(m->setup.cluster);
    const struct shards_node *keeper = shards_keeper(s, m->setup.partition);

    take_name(m, keeper ? &keeper->address : &nowhere, s->named[m->setup.partition].until_ms);
}

void master_find(struct master *m, const struct conf_master *conf)
{
    const struct sentinels_setup setup = {
        .base = m->setup.base,
        .dns = m->setup.dns,
        .timeout_ms = m->setup.sentinel_timeout_ms,
        .max_reply = m->setup.max_reply,
        .object = m->object,
        .on_word = on_sentinels_word,
        .arg = m,
    };

    m->is_found = true;
    m->named_until_ms = 0;
    master_set_address(m, NULL, 0);
    if (m->setup.cluster)
        cluster_follow(m->setup.cluster, m->setup.partition, on_cluster_word, m);
    else
        m->sentinels = sentinels_new(&setup, conf);
}

const char *master_finders(const struct master *m)
{
    return m->sentinels ? "its Sentinels" : "the masters of the Cluster";
}

void master_doubt(struct master *m)
{
    if (m->setup.cluster)
        cluster_doubt(m->setup.cluster);
}

bool master_said_elsewhere(const struct master *m)
{
    static const char *const codes[] = {"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"};

    for (size_t i = 0; m->setup.cluster && i < sizeof codes / sizeof codes[0]; i++)
        if (reply_is_error(m->reply, m->reply->values, codes[i]))
            return true;
    return false;
}

const char *master_sentinels(struct master *m, int64_t now_ms)
{
    return m->sentinels       ? sentinels_words(m->sentinels, now_ms)
           : m->setup.cluster ? cluster_words(m->setup.cluster, now_ms)
                              : NULL;
}
