/*
 * Where a master is that is found by Sentinels (safety R17): it follows the one that a majority
 * of them names, and is left when none does any more.
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

static void move_to(struct master *m, const char *host, int port)
{
    master_set_address(m, host, port);
    master_secure(m);
    if (m->setup.on_moved)
        m->setup.on_moved(m->setup.arg, m, host, port);
}

void master_lose_name(struct master *m)
{
    char span[48];

    util_format_duration(span, sizeof span, m->setup.sentinel_timeout_ms);
    if (m->state != MASTER_DOWN)
        master_drop(m, "no majority of its Sentinels has named %s within %s", m->address, span);
    m->named_until_ms = 0;
    move_to(m, NULL, 0);
}

static bool is_there(const struct master *m, const struct naming_address *a)
{
    return m->host ? a->port == m->port && strcmp(a->host, m->host) == 0 : !a->port;
}

static void on_sentinels_word(void *arg)
{
    struct master *m = arg;
    const struct naming *n = sentinels_naming(m->sentinels);

    m->named_until_ms = n->until_ms;
    if (is_there(m, &n->named))
        return;
    if (!n->named.port) {
        master_lose_name(m);
        return;
    }
    if (m->state != MASTER_DOWN)
        master_drop(m, "its Sentinels name another server now, no longer %s", m->address);
    move_to(m, n->named.host, n->named.port);
    log_info(m->object, "a majority of its Sentinels names %s", m->address);
    m->down_backoff_ms = m->refused_backoff_ms = 0;
    event_active(&m->retry, EV_TIMEOUT, 0);
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

    m->named_until_ms = 0;
    master_set_address(m, NULL, 0);
    m->sentinels = sentinels_new(&setup, conf);
}

const char *master_sentinels(struct master *m, int64_t now_ms)
{
    return m->sentinels ? sentinels_words(m->sentinels, now_ms) : NULL;
}
